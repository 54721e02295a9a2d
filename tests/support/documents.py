#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes documents such as the tools write with --json, without measuring anything: any tool, any
sizes, any shape of latency, the same for the same seed. Where python3-jsonschema is there, each is
checked against the schema. By hand: documents.py OUT.json [KEY=VALUE ...]."""
import ast
import json
import math
import pathlib
import random
import sys

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "share/schema/weft-result-2.schema.json"
MACHINE = {"host": "node1", "weft": "0.1.0", "system": "Linux 6.1.0", "architecture": "x86_64",
           "cpu": "Example CPU 3.0 GHz", "cpus": "16", "allowed": "0-15", "memory": "68719476736",
           "clocksource": "tsc", "governor": "performance", "buffer": "host"}
LIST = 256
_validator = []


def validate(document):
    """Raises if the schema does not allow it; does nothing where there is no jsonschema."""
    if not _validator:
        try:
            import jsonschema
        except ImportError:
            _validator.append(None)
        else:
            with open(SCHEMA, encoding="utf-8") as file:
                _validator.append(jsonschema.Draft202012Validator(json.load(file)))
    if _validator[0]:
        _validator[0].validate(document)


# ---- shapes of latency: a function of a random.Random, about 1 in the middle ----

def normal(rng):
    return max(0.01, rng.gauss(1, 0.01))


def lognormal(rng):
    return rng.lognormvariate(0, 0.25)


def bimodal(rng):
    return rng.gauss(1, 0.01) if rng.random() < 0.7 else rng.gauss(1.6, 0.02)


def tailed(rng):
    return rng.gauss(1, 0.01) if rng.random() < 0.98 else 1 + rng.expovariate(0.1)


SHAPES = {f.__name__: f for f in (normal, lognormal, bimodal, tailed)}

# ---- figures ----


def percentile(ordered, percent):
    """None where fewer than ten samples lie beyond it."""
    n = len(ordered)
    if n * (1 - percent / 100) < 10:
        return {"percent": percent, "us": None, "low_us": None, "high_us": None}
    share = percent / 100
    reach = 1.96 * math.sqrt(n * share * (1 - share))

    def at(rank):
        return round(ordered[min(n - 1, max(0, round(rank)))], 6)

    return {"percent": percent, "us": at(n * share), "low_us": at(n * share - reach),
            "high_us": at(n * share + reach)}


def histogram(ordered):
    """Buckets 0.2 % wide."""
    buckets = {}
    for us in ordered:
        place = math.floor(math.log(max(us, 1e-6)) / math.log(1.002))
        buckets[place] = buckets.get(place, 0) + 1
    return [[round(1.002 ** k, 9), round(1.002 ** (k + 1), 9), n]
            for k, n in sorted(buckets.items())]


def intervals(samples, pieces):
    found, size = [], max(1, len(samples) // pieces)
    for start in range(0, len(samples), size):
        part = samples[start:start + size]
        found.append({"end_s": round(sum(samples[:start + size]) / 1e6, 6), "count": len(part),
                      "mean_us": round(sum(part) / len(part), 6), "min_us": round(min(part), 6),
                      "max_us": round(max(part), 6)})
    return found


def result(rng, size, *, test="write", label="", layout=None, fabric="null",
           device="null:delay=2us", method="latency", median_us=2.0, shape="normal", count=2000,
           series=0, complete=True, resolution_ns=41.0,
           percentiles=(50, 90, 99, 99.9), report_all=False):
    samples = [max(0.0, median_us * SHAPES[shape](rng)) for _ in range(count)]
    ordered = sorted(samples)
    mean = sum(samples) / count if count else 0
    figures = {
        "test": test, "label": label, "size": size, "layout": layout,
        "fabric": {"name": fabric, "device": device, "form": "moves nothing", "why": "",
                   "library": None},
        "method": {"name": method, "half_round_trip": method == "ping-pong",
                   "clock": "clock_gettime", "clock_cost_ns": 20.5, "clock_step_ns": 1.0,
                   "clock_subtracted": True,
                   "completion_proves": "the programmed delay has passed"},
        "hints": {"idc": {"asked": True, "honoured": False, "why": "null moves nothing"},
                  "ll": {"asked": False, "honoured": False, "why": ""}},
        "complete": complete, "operations": count, "ops_per_sample": 1, "warmup": 10,
        "resolved": median_us * 1000 >= resolution_ns, "resolution_ns": resolution_ns,
        "clamped": 0, "count": count,
        "min_us": round(ordered[0], 6) if count else 0,
        "max_us": round(ordered[-1], 6) if count else 0,
        "mean_us": round(mean, 6),
        "deviation_us": round(math.sqrt(sum((s - mean) ** 2 for s in samples) / count), 6)
                        if count else 0,
        "median_us": round(ordered[count // 2], 6) if count else 0,
        "percentiles": [percentile(ordered, p) for p in percentiles],
        "elapsed_s": None, "bytes_per_s": None, "messages_per_s": None,
        "interference": {"preempted": rng.randrange(3), "migrated": 0, "page_faults": 0,
                         "steal_ms": 0},
        "histogram": histogram(ordered),
        "series": intervals(samples, series) if series else []}
    operations = count * (LIST if method.startswith("list") else 1)
    if method != "latency":
        elapsed = max(sum(samples) / 1e6, 1e-9)
        figures.update(elapsed_s=round(elapsed, 9), messages_per_s=round(operations / elapsed, 3),
                       bytes_per_s=round(operations * size / elapsed, 3), operations=operations)
    if method.startswith("list"):
        figures["method"]["sample"] = "list time"
        figures["ops_per_sample"] = LIST
        figures["ceilings"] = {"memcpy_bytes_per_s": 1.25 * figures["bytes_per_s"],
                               "link_bytes_per_s": 25e9}
    if method.endswith("both ways"):
        figures["reverse"] = {"count": operations, "elapsed_s": figures["elapsed_s"]}
    if report_all:
        figures["samples_us"] = [round(s, 6) for s in samples]
    return figures


def moment(second):
    """A time, so many seconds into a day."""
    whole = int(second)
    return (f"2026-01-02T{whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}."
            f"{int(second * 1000) % 1000:03}Z")


def document(*, tool="cxi_write_lat", sizes=(8,), seed=1, options=None, state="complete", reason="",
             begun_s=0, lasts_s=1, medians_us=None, client=None, server=None, slope_us=0.0,
             verdicts=(), warnings=(), **figures):
    """One run. medians_us gives the median of each size; otherwise it is median_us, and slope_us
    more a byte. The other keys are result()'s."""
    rng = random.Random(seed)
    base = figures.pop("median_us", 2.0)
    device = figures.get("device", "null:delay=2us")
    medians = medians_us or [base + slope_us * size for size in sizes]
    said = {"device": device, "size": f"{min(sizes)}:{max(sizes)}", "iters": 2000, "local": True,
            **(options or {})}
    whole = {
        "schema": "weft-result", "version": 2,
        "tool": {"name": tool, "version": "0.1.0",
                 "command": [tool, "--local", "-d", device, "--json", "out.json"]},
        "build": {"version": "0.1.0", "commit": "0123456789ab", "compiler": "gcc 12.2.0",
                  "flags": "-O2 -g", "libraries": []},
        "begun": moment(begun_s), "ended": moment(begun_s + lasts_s),
        "status": {"state": state, "exit": {"complete": 0, "interrupted": 130}.get(state, 1),
                   "reason": reason or ("" if state == "complete" else "it did not end well")},
        "options": {k: {"value": v, "origin": "user"} for k, v in said.items()},
        "ends": {"client": {**MACHINE, **(client or {})},
                 "server": None if server is False else {**MACHINE, **(server or {})}},
        "warnings": list(warnings),
        "verdicts": list(verdicts),
        "results": [result(rng, size, median_us=us, **figures)
                    for size, us in zip(sizes, medians)]}
    validate(whole)
    return whole


def batch(tests, **common):
    """One document of ucx_perftest: tests is a list of result()'s keys, each with its size."""
    whole = document(tool="ucx_perftest", sizes=(8,), **common)
    rng = random.Random(common.get("seed", 1))
    whole["results"] = [result(rng, **one) for one in tests]
    validate(whole)
    return whole


def write(path, whole):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(whole, out)
        out.write("\n")
    return str(path)


def runs(folder, number, /, *, noise=0.01, seed=1, begun_s=0, every_s=10, median_us=2.0, **keys):
    """A folder of runs whose medians differ by the noise, as those of processes do."""
    rng = random.Random(seed)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(number):
        write(folder / f"{i + 1:03}.json",
              document(seed=rng.random(), begun_s=begun_s + i * every_s,
                       median_us=median_us * math.exp(rng.gauss(0, noise)), **keys))
    return str(folder)


def literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    write(sys.argv[1], document(**{k: literal(v) for k, v in
                                   (word.split("=", 1) for word in sys.argv[2:])}))
