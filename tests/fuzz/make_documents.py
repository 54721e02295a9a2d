#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_documents.py FOLDER: seeds for the readers of results, such as the tools write today: few
samples, everything that a document may have."""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import documents
import maps

SMALL = {"count": 12}
BATCH = [{"size": 8, "test": "put_lat", "label": "8/put", "method": "ping-pong", **SMALL},
         {"size": 64, "test": "am_bw", "label": "64/am", "layout": "bcopy", "method": "stream", **SMALL}]
ONE = {
    "latency": documents.document(sizes=(8, 64), series=3, **SMALL),
    "kept": documents.document(report_all=True, **SMALL),
    "pingpong": documents.document(tool="ucx_perftest", method="ping-pong", **SMALL),
    "stream": documents.document(tool="ucx_perftest", method="stream both ways", **SMALL),
    "batch": documents.batch(BATCH, **SMALL),
    "interrupted": documents.document(state="interrupted", complete=False, server=False, **SMALL),
}


def counted(document, errors):
    """With counters of a network device at both ends."""
    for result in document["results"]:
        result["counters"] = [{end: {"device": "cxi0", "why": "",
                                     "deltas": {"rx_ok_octets": 100, "rx_errors": errors, "tx_retries": None}}
                               for end in ("client", "server")}]
    documents.validate(document)
    return document


def huge(document):
    """With the largest numbers that there are."""
    for result in document["results"]:
        result.update({"min_us": 1.7e308, "max_us": 1.7e308, "median_us": 1.7e308, "mean_us": 1.7e308})
        for percentile in result["percentiles"]:
            percentile.update({"us": 1.7e308, "low_us": 1.7e308, "high_us": 1.7e308})
    return document


ONE["counted"] = counted(documents.document(**SMALL), 3)
FIRST = pathlib.Path(documents.__file__).parent / "version-1"
for _path in FIRST.glob("*.json"):
    ONE[f"first_{_path.stem}"] = json.loads(_path.read_text(encoding="utf-8"))


def text(document):
    return json.dumps(document, separators=(",", ":")).encode()


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, document in ONE.items():
        (folder / "document").mkdir(parents=True, exist_ok=True)
        (folder / "document" / name).write_bytes(text(document))
    sets = {"same": [documents.document(seed=i, **SMALL) for i in range(10)],
            "slower": [documents.document(seed=i, median_us=2.0 + (i > 4), begun_s=i, **SMALL)
                       for i in range(10)],
            "few": [documents.document(seed=i, method="stream", tool="ucx_perftest", **SMALL)
                    for i in range(2)],
            "counted": [counted(documents.document(seed=i, **SMALL), i) for i in range(4)],
            "huge": [documents.document(**SMALL), huge(documents.document(seed=1, **SMALL))],
            "different": [ONE["latency"], ONE["stream"]]}
    (folder / "compare").mkdir(parents=True, exist_ok=True)
    for name, runs in sets.items():
        (folder / "compare" / name).write_bytes(b"\0".join(text(run) for run in runs))
    (folder / "map").mkdir(parents=True, exist_ok=True)
    for name, document in {"equal": maps.make(nodes=4), "odd": maps.make(nodes=5, lost=(2,)),
                           "slow": maps.make(nodes=6, groups=2, slow={1: 0.2}),
                           "cut": dict(maps.make(nodes=6, groups=2), pairs_measured=99)}.items():
        (folder / "map" / name).write_bytes(text(document))


main()
