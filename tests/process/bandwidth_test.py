# SPDX-License-Identifier: BSD-3-Clause
"""Documents of lists: what the bandwidth tools write, what weft compare and weft report make of it."""
import os
import re
import sys

sys.dont_write_bytecode = True
import documents
import schema
import tap
from tap import Process, check, ended, equal, run, test

BW = {name: tap.tool_path(f"cxi_{name}_bw") for name in ("write", "read", "send", "atomic")}
WEFT = tap.tool_path("weft")
LISTS = {"tool": "cxi_write_bw", "method": "list", "fabric": "soft", "sizes": (8, 64, 4096)}

# ---- what the tools write ----


def document(name, *args):
    return schema.read(ended(run(BW[name], "--local", *args, "--json", "-"), 0).out)


def list_document(name):
    """A sample is a list's time, and is called so; ceilings are those of one direction."""
    args = ("-n", "40", "-l", "16", *(() if name == "atomic" else ("-s", "64:256")))
    found = document(name, *args)
    for result in found["results"]:
        method = result["method"]
        equal((method["name"], method["sample"]), ("list", "list time"))
        equal((result["count"], result["operations"], result["ops_per_sample"]), (40, 640, 16))
        equal(result["ceilings"]["link_bytes_per_s"], None)
        check(result["ceilings"]["memcpy_bytes_per_s"] > 1e6, result["ceilings"])
        check("reverse" not in result, result)
    both = document(name, *args, "-b")
    equal({result["method"]["name"] for result in both["results"]}, {"lists both ways"})
    check(all(result["reverse"]["count"] == 640 for result in both["results"]), both["results"])


for _name in BW:
    tap.add(f"cxi {_name} bw writes a document of lists", list_document, _name)


@test
def a_ceiling_is_measured_only_where_bytes_move():
    result, = document("write", "-d", "null:delay=1ms", "-n", "5")["results"]
    equal(result["ceilings"], {"memcpy_bytes_per_s": None, "link_bytes_per_s": None})


@test
def percentiles_of_lists_are_titled_as_such():
    said = ended(run(BW["write"], "--local", "-s", "64", "-n", "200", "--percentiles", "50,90"), 0).out
    check(re.search(r"^RDMA Size\[B\] +Writes +BW\[MB/s\] +PktRate\[Mpkt/s\]  List p50\[us\]  "
                    r"List p90\[us\]$", said, re.M), said)


@test
def an_end_that_is_done_hears_the_other_between_lists_however_long_they_take():
    """Lists of 5 ms, uncounted, go on until the other end is done: not for a thousand of them."""
    ended(run(BW["write"], "--local", "-d", "null:delay=5ms", "-n", "3", "-l", "4", "-b", "--timeout",
              "3"), 0)


# ---- compare and report ----


def weft(code, *args):
    return ended(Process([WEFT, *args]), code)


def compare(code, *args):
    return weft(code, "compare", *args)


def a_set(count=8, turn=0, **keys):
    """Runs that take turns with those of another set, ten seconds apart."""
    return documents.runs(os.path.join(tap.folder(), "set"), count, begun_s=10 * turn, every_s=20,
                          seed=turn + 1, noise=0.004, **{**LISTS, **keys})


@test
def lists_are_compared_by_their_bandwidth_and_more_is_faster():
    fast, slow = a_set(turn=0), a_set(turn=1, median_us=2.2)
    process = compare(3, fast, slow)
    check(re.search(r"^Metric +Bytes +A\[MB/s\] +B\[MB/s\] +Shift ", process.out, re.M), process)
    equal(len(re.findall(r"^bandwidth +\d+ +\d+\.\d\d +\d+\.\d\d +-[89]\.\d\d% .* slower$",
                         process.out, re.M)), 3, process)
    check("\nFaster: 3 of 3 rows" in compare(0, slow, fast).out)


@test
def percentiles_of_lists_are_called_list_times_and_units_stand_beside_them():
    sets = a_set(turn=0), a_set(turn=1)
    process = compare(0, *sets, "--percentiles", "50,90")
    check(re.search(r"^Metric +Bytes +A +B +Shift ", process.out, re.M), process)
    equal(len(re.findall(r"^bandwidth\[MB/s\] +\d+ ", process.out, re.M)), 3, process)
    equal(len(re.findall(r"^list p90\[us\] +\d+ +[12]\.\d\d ", process.out, re.M)), 3, process)
    process = compare(0, *sets, "--percentiles", "90")
    check(re.search(r"^Metric +Bytes +A\[us\] +B\[us\] ", process.out, re.M), process)
    equal(len(re.findall(r"^list p90 +\d+ ", process.out, re.M)), 3, process)


@test
def a_comparison_of_lists_has_bytes_per_second_of_both_directions_together():
    keys = {"method": "lists both ways"}
    process = compare(3, a_set(turn=0, **keys), a_set(turn=1, median_us=2.2, **keys),
                      "--percentiles", "50,90", "--json", "-")
    whole = schema.read(process.out, "weft-comparison")
    for shift in whole["shifts"]:
        bandwidth = shift["percent"] == 50
        equal(shift["metric"], "bandwidth" if bandwidth else "percentile", shift)
        equal((shift["a_us"] is None, shift["a_bytes_per_s"] is None), (bandwidth, not bandwidth))
        if bandwidth:
            check(0.95 < shift["a_bytes_per_s"] / (2 * 256 * shift["size"] / 2e-6) < 1.05, shift)
            check(-11 < shift["shift_percent"] < -7, shift)
        else:
            check(7 < shift["shift_percent"] < 13, shift)


@test
def a_page_of_lists_has_their_bandwidth_and_its_ceilings():
    page = weft(0, "report", a_set(2, turn=0), "-o", "-").out
    for words in ("Bandwidth versus size", "memcpy, 1 CPU", 'data-name="link"', "List time"):
        check(words in page, words)
    check("Latency" not in page)
    picture = os.path.join(tap.folder(), "plot.svg")
    weft(0, "report", a_set(1, turn=0), "-o", picture)
    with open(picture, encoding="utf-8") as file:
        check("Bandwidth [MB/s]" in file.read())


if __name__ == "__main__":
    tap.main()
