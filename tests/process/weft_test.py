#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft on documents that nobody measured: what compare concludes, which files are refused and how,
and that repeat runs what it was told to, in turns, and leaves nothing behind."""
import copy
import html
import json
import math
import os
import random
import re
import signal
import stat
import sys
import time

sys.dont_write_bytecode = True
import documents
import schema
import tap
from tap import Process, alone, check, ended, equal, lines_of, skip, test

NAME = "weft"
TOOL = tap.tool_path(NAME)
SIZES = (8, 64, 4096)
REFUSAL_S = 20


def path_in(*names):
    return os.path.join(tap.folder(), *names)


def put(text, name="document.json"):
    path = path_in(name)
    with open(path, "wb") as out:
        out.write(text if isinstance(text, bytes) else text.encode())
    return path


def a_document(**keys):
    return documents.write(path_in("document.json"), documents.document(**keys))


def a_set(count=8, turn=0, **keys):
    """Runs that take turns with those of another set, ten seconds apart."""
    keys.setdefault("sizes", SIZES)
    keys.setdefault("seed", turn + 1)
    keys.setdefault("noise", 0.004)
    return documents.runs(path_in("set"), count, begun_s=10 * turn, every_s=20, **keys)


def weft(code, *args, **more):
    return ended(Process([TOOL, *args], **more), code)


def compare(code, *args):
    process = weft(code, "compare", *args)
    check(all(line.isprintable() for line in lines_of(process.out) + lines_of(process.err)),
          "control characters on the terminal", ascii(process.out), ascii(process.err))
    return process


def comparison(code, *args):
    """As JSON, checked against its schema."""
    return schema.read(compare(code, *args).out, "weft-comparison")


def refused(code, *args, names=(), **more):
    """One sentence, nothing on stdout."""
    process = weft(code, *args, **{"limit": REFUSAL_S, **more})
    said = lines_of(process.err)
    check(len(said) == 1 and said[0].startswith(f"{NAME} {args[0]}: "),
          "one line of ours is wanted", process)
    check(said[0].isprintable(), "control characters on the terminal", ascii(said[0]))
    equal(process.out, "", process)
    for name in names:
        check(name in said[0], f"{name!r} is not in the sentence", process)
    return said[0]


def verdict(process):
    return lines_of(process.out)[-1]


# ---- compare: what it concludes ----

@test
def runs_of_the_same_are_the_same():
    process = compare(0, a_set(turn=0), a_set(turn=1))
    check(verdict(process).startswith("Same: "), process)
    equal(process.err, "", process)
    equal(len(re.findall(r" same$", process.out, re.M)), len(SIZES), process)


@test
def five_percent_more_are_slower_and_less_are_faster():
    fast = a_set(turn=0)
    slow = a_set(turn=1, median_us=2.1, device="null:delay=2100ns")
    process = compare(3, fast, slow)
    check(re.fullmatch(r"Slower: 3 of 3 rows, by up to [456]\.\d %", verdict(process)), process)
    check("\ndevice: null:delay=2us -> null:delay=2100ns\n" in process.out, process)
    process = compare(0, slow, fast)
    check(verdict(process).startswith("Faster: 3 of 3 rows, by up to "), process)


@test
def slower_at_one_size_is_slower():
    process = compare(3, a_set(turn=0, medians_us=(2, 2, 2), noise=0),
                      a_set(turn=1, medians_us=(2, 2, 2.2), noise=0))
    check(verdict(process).startswith("Slower: 1 of 3 rows, by up to "), process)


@test
def a_shift_below_the_least_effect_is_the_same():
    sets = a_set(turn=0), a_set(turn=1, median_us=2.1)
    check(verdict(compare(0, *sets, "--min-effect", "10")).startswith("Same: "))
    compare(3, *sets, "--min-effect", "0.5")


@test
def one_run_a_side_can_never_tell():
    process = compare(5, a_document(median_us=2.0), a_document(median_us=4.0))
    equal(verdict(process), "Cannot tell: 1 run per side; at least 5 needed (see weft repeat)")
    check(re.search(r"^ +8 +2\.0\d +(3\.9|4\.0)\d +\+(99|100|101)\.\d\d% +- +-  cannot tell$",
                    process.out, re.M), process)


@test
def four_runs_a_side_cannot_tell_and_five_can():
    process = compare(5, a_set(4, turn=0), a_set(4, turn=1, median_us=4.0))
    equal(verdict(process),
          "Cannot tell: 4 and 4 runs; at least 5 per side needed (see weft repeat)")
    compare(3, a_set(5, turn=0), a_set(5, turn=1, median_us=4.0))


@test
def few_runs_of_many_sizes_say_how_many_it_takes():
    process = compare(5, a_set(5, turn=0), a_set(5, turn=1, medians_us=(2, 2, 4)))
    check(re.search(r"^ +4096 .* cannot tell$", process.out, re.M), process)
    equal(verdict(process), "Cannot tell: 1 of 3 rows may have changed by 2 % or more; about 6 runs "
          "per side would tell, if shift and spread stay as they are (see weft repeat)", process)


@test
def runs_that_scatter_are_not_called_the_same():
    process = compare(5, a_set(turn=0, noise=0.03), a_set(turn=1, noise=0.03))
    said = re.fullmatch(r"Cannot tell: 3 of 3 rows may have changed by 2 % or more; about (\d+) runs "
                        r"per side would tell, if shift and spread stay as they are \(see weft repeat\)",
                        verdict(process))
    check(said and 20 <= int(said[1]) < 1000, process)
    sets = a_set(turn=0, noise=0.5, seed=1), a_set(turn=1, noise=0.5, seed=1)
    process = compare(5, *sets)
    check(" and 1000 runs per side may not tell either: find what disturbs" in verdict(process),
          process)
    equal(comparison(5, *sets, "--json", "-")["verdict"], "cannot tell")


@test
def the_worst_row_decides():
    def one_scatters(turn, first_us):
        folder, rng = path_in("set"), random.Random(turn)
        os.makedirs(folder)
        for i in range(8):
            documents.write(os.path.join(folder, f"{i}.json"), documents.document(
                sizes=SIZES, begun_s=20 * i + 10 * turn, seed=rng.random(),
                medians_us=(first_us, 2, 2 * math.exp(rng.gauss(0, 0.05)))))
        return folder

    faster = compare(0, a_set(turn=0), a_set(turn=1, medians_us=(1.8, 2, 2)))
    check(verdict(faster).startswith("Faster: 1 of 3 rows"), faster)
    unsure = compare(5, one_scatters(0, 4), one_scatters(1, 3))
    check("\nFaster: 1 of 3 rows" in unsure.out, unsure)
    check(verdict(unsure).startswith("Cannot tell: 1 of 3 rows"), unsure)
    slower = compare(3, one_scatters(0, 3), one_scatters(1, 4))
    equal(verdict(slower).split(",")[0], "Slower: 1 of 3 rows", slower)


@test
def with_no_least_effect_nothing_is_the_same():
    process = compare(5, a_set(turn=0), a_set(turn=1), "--min-effect", "0")
    check(verdict(process).startswith("Cannot tell: 3 of 3 rows may have changed by 0 % or more"),
          process)


@test
def sets_run_one_after_the_other_are_doubted():
    process = compare(0, a_set(turn=0), a_set(turn=100))
    check("all runs of one set began before the other" in process.err, process)


@test
def percentiles_are_compared_and_missing_ones_are_said():
    process = compare(3, a_set(turn=0), a_set(turn=1, median_us=2.1), "--percentiles", "50,99,99.9")
    equal(len(re.findall(r"^(?:median|p99) +\d+ .* slower$", process.out, re.M)), 6, process)
    equal(len(re.findall(r"^p99\.9 +\d+ +- +- +- +- +-  -$", process.out, re.M)), 3, process)
    check("3 of 9 rows not compared" in process.err, process)
    process = compare(5, a_set(turn=0), a_set(turn=1), "--percentiles", "99.99")
    equal(verdict(process), "Cannot tell: 3 of 3 rows lack a value in some run (too few samples)")
    # What was asked for and is not there does not pass either.
    process = compare(5, a_set(turn=0), a_set(turn=1), "--percentiles", "50,99.99")
    equal(verdict(process), "Cannot tell: 3 of 6 rows lack a value in some run (too few samples)")


@test
def what_the_clock_does_not_resolve_is_not_compared():
    process = compare(5, a_set(turn=0, resolution_ns=2500.0),
                      a_set(turn=1, median_us=2.4, resolution_ns=2500.0))
    equal(verdict(process), "Cannot tell: 3 of 3 rows are below what the clock resolves (see "
          "--ops-per-sample)", process)
    check("3 of 3 rows not compared: below what the clock resolves" in process.err, process)
    compare(3, a_set(turn=0, resolution_ns=1900.0),
            a_set(turn=1, median_us=2.4, resolution_ns=1900.0))


@test
def streams_are_compared_by_their_rate():
    keys = {"tool": "ucx_perftest", "test": "put_bw", "method": "stream", "fabric": "soft"}
    process = compare(3, a_set(turn=0, **keys), a_set(turn=1, median_us=2.2, **keys))
    equal(len(re.findall(r"^per message +\d+ .* slower$", process.out, re.M)), 3, process)


@test
def what_differs_besides_is_shown():
    process = compare(0, a_set(turn=0), a_set(turn=1, options={"iters": 3000, "extra": True},
                                              client={"cpu": "Other CPU"},
                                              server={"cpu": "Other CPU", "system": "Linux 7"}))
    for line in ("iters: 2000 -> 3000", "extra: - -> 1", "cpu: Example CPU 3.0 GHz -> Other CPU",
                 "server system: Linux 6.1.0 -> Linux 7"):
        equal(lines_of(process.out).count(line), 1, line, process)
    check("server cpu" not in process.out and "client cpu" not in process.out, process)


@test
def what_differs_is_said_once_and_only_if_figures_may_come_from_it():
    passing = dict.fromkeys(("json", "csv", "percentiles", "fail-if", "report-all", "csv-table",
                             "final", "numeric", "list", "help", "version", "port", "wait", "bind"))
    mine = a_document(options={"gap": None, "huge": "2M", **{k: None for k in passing}})
    other = a_document(options={"gap": 7, "huge": "", **{k: True for k in passing}})
    process = compare(5, mine, other)
    equal([line for line in lines_of(process.out) if " -> " in line],
          ["gap: - -> 7", "huge: 2M -> -"], process)
    whole = comparison(5, mine, other, "--json", "-")
    equal(whole["differences"], [{"name": "gap", "a": "-", "b": "7"},
                                 {"name": "huge", "a": "2M", "b": "-"}])


@test
def one_run_a_side_has_no_p():
    whole = comparison(5, a_document(), a_document(), "--json", "-")
    equal([s["p"] for s in whole["shifts"]], [None])
    whole = comparison(5, a_set(2), a_set(2, turn=1), "--json", "-")
    check(all(s["p"] > 0 for s in whole["shifts"]), whole)


@test
def the_comparison_can_be_had_as_json():
    sets = a_set(turn=0), a_set(turn=1, median_us=2.1, device="null:delay=2100ns")
    whole = comparison(3, *sets, "--json", "-")
    equal((whole["schema"], whole["version"], whole["verdict"]), ("weft-comparison", 1, "slower"))
    equal([s["size"] for s in whole["shifts"]], list(SIZES))
    check(all(s["low_percent"] < s["shift_percent"] < s["high_percent"] and s["p"] < 0.001 and
              s["verdict"] == "slower" for s in whole["shifts"]), whole)
    equal(whole["differences"],
          [{"name": "device", "a": "null:delay=2us", "b": "null:delay=2100ns"}])
    path = path_in("out.json")
    process = compare(3, *sets, "--json", path)
    check(verdict(process).startswith("Slower: "), process)
    with open(path, encoding="utf-8") as file:
        equal(json.load(file), whole)


def both_sides():
    """A folder as written by repeat with two commands."""
    place = tap.folder()
    documents.runs(os.path.join(place, "a"), 5, every_s=20)
    documents.runs(os.path.join(place, "b"), 5, begun_s=10, every_s=20, median_us=4.0)
    return place


@test
def a_folder_with_both_sides_is_both_operands():
    place = both_sides()
    process = compare(3, place)
    equal(process.out, compare(3, place + "/a", place + "/b").out)
    check(f"A: {place}/a: 5 runs" in process.out and f"B: {place}/b: 5 runs" in process.out, process)
    page = weft(0, "report", place, "-o", "-").out
    equal(page, weft(0, "report", place + "/a", place + "/b", "-o", "-").out)
    # With documents of its own it is a set like any other.
    documents.write(os.path.join(place, "001.json"), documents.document())
    refused(2, "compare", place, names=("1 given",))
    equal(weft(0, "report", place, "-o", "-").out,
          weft(0, "report", place + "/001.json", "-o", "-").out)


# ---- compare: what it refuses ----

@test
def other_ops_sizes_and_fabrics_are_not_comparable_unless_forced():
    mine = a_set(turn=0)
    for name, keys in {"test write in": {"test": "read"}, "size 8 in": {"sizes": (16, 64, 4096)},
                       "3 results in": {"sizes": SIZES + (8192,)},
                       "fabric null in": {"fabric": "soft"},
                       "method latency in": {"method": "ping-pong"},
                       "label ": {"label": "x"}, "layout none in": {"layout": "short"}}.items():
        other = a_set(turn=1, **keys)
        refused(2, "compare", mine, other, names=(name, "not comparable", "--force"))
        process = compare(0, mine, other, "--force")
        check("compared anyway (--force): not comparable: " + name in process.err, process)
    refused(2, "compare", mine, a_set(turn=1, sizes=(7, 9)), "--force",
            names=("no result is present in all runs",))


@test
def one_result_is_not_many():
    refused(2, "compare", a_document(), a_document(sizes=(8, 64)), names=("1 result in", "2 in"))


@test
def a_set_whose_own_runs_differ_is_refused():
    mine = a_set(turn=0)
    documents.write(os.path.join(mine, "004.json"), documents.document(sizes=(8, 64)))
    refused(2, "compare", mine, a_set(turn=1), names=("3 results in", "001.json", "004.json"))


@test
def a_run_that_is_not_complete_is_refused_by_name_unless_forced():
    for state in ("interrupted", "failed"):
        mine = a_set(turn=0)
        documents.write(os.path.join(mine, "003.json"),
                        documents.document(sizes=SIZES, state=state, begun_s=33))
        refused(2, "compare", mine, a_set(turn=1), names=("003.json: " + state, "--force"))
        compare(0, mine, a_set(turn=1), "--force")


@test
def operands_and_options_that_make_no_sense_are_refused():
    mine = a_document()
    for args, name in (((), "0 given"), ((mine,), "1 given"), ((mine,) * 3, "3 given"),
                       ((mine, mine, "--min-effect", "x"), '"x"'),
                       ((mine, mine, "--min-effect", ""), '""'),
                       ((mine, mine, "--min-effect", "-1"), '"-1"'),
                       ((mine, mine, "--min-effect", "nan"), '"nan"'),
                       ((mine, mine, "--percentiles", "0"), '"0"'),
                       ((mine, mine, "--percentiles", ""), "LIST"),
                       ((mine, mine, "--percentiles", "50,100"), '"100"'),
                       ((mine, mine, "--nosuch"), "--nosuch")):
        refused(2, "compare", *args, names=(name,))
    refused(1, "compare", mine, mine, "--json", "/nonexistent/x", names=("/nonexistent/x",))


@test
def words_that_are_no_command_are_refused():
    for args, name in ((("nosuch",), '"nosuch"'), (("--nosuch",), "--nosuch"), (("help", "nosuch"), '"nosuch"'),
                       (("help", "info", "info"), "[COMMAND]"), (("comapre", "a"), "did you mean compare?")):
        process = weft(2, *args)
        check(name in process.err and len(lines_of(process.err)) == 1 and not process.out, process)
    check("did you mean" not in weft(2, "nosuch").err)
    check("\n  compare   Tell whether" in weft(0, "--help").out)
    check(weft(0, "--version").out.startswith("weft (Weft) "))


@test
def help_is_of_all_commands_or_of_one():
    everything = weft(0, "--help").out
    equal((weft(0).out, weft(0, "help").out), (everything, everything))
    equal(weft(0, "help", "keygen").out, weft(0, "keygen", "--help").out)


# ---- documents of the first version ----

def first_document(tool):
    """As the tools of that time wrote it."""
    with open(os.path.join(os.path.dirname(documents.__file__), "version-1", f"{tool}.json"),
              encoding="utf-8") as file:
        return schema.read(file.read(), schema=schema.FIRST)


FIRST = {tool: first_document(tool) for tool in ("cxi_write_lat", "cxi_read_lat", "cxi_send_lat",
                                                 "cxi_atomic_lat", "ucx_perftest")}


def first_version(tool):
    whole = FIRST[tool]
    path = documents.write(path_in("first.json"), whole)
    page = weft(0, "report", path, "-o", "-").out
    for text in (tool, whole["begun"], *whole["said"], *(one["value"] for one in whole["options"])):
        check(html.escape(text).replace("&#x27;", "&#39;") in page, text)
    process = compare(5, path, path)
    equal(len(re.findall("cannot tell$", process.out, re.M)), len(whole["results"]), process)
    check(" -> " not in process.out, process)


for _tool in FIRST:
    tap.add(f"a document of version 1 of {_tool} is drawn and compared", first_version, _tool)


@test
def both_versions_say_the_same_of_the_same_options():
    first = FIRST["cxi_write_lat"]
    flags = {one["name"] for one in first["options"] if one["value"] in ("0", "1")} - {
        "help", "version", "latency-gap", "svc-id"}
    whole = documents.document(sizes=(8, 16), percentiles=(50, 75, 90, 99, 99.9, 99.99))
    whole["options"] = {one["name"]: {"value": one["value"] == "1" if one["name"] in flags else
                                      int(one["value"]) if one["value"].isdigit() else
                                      one["value"] or None, "origin": one["origin"]}
                        for one in first["options"] if one["name"] not in ("help", "version")}
    whole["ends"] = copy.deepcopy(first["ends"])
    documents.validate(whole)
    process = compare(5, documents.write(path_in("1.json"), first),
                      documents.write(path_in("2.json"), whole))
    check(" -> " not in process.out, process)
    equal(comparison(5, documents.write(path_in("1.json"), first),
                     documents.write(path_in("2.json"), whole), "--json", "-")["differences"], [])


# ---- documents that are none ----

DEEP = 100000
GOOD = documents.document(sizes=(8, 64), series=3, percentiles=(50, 99), verdicts=[
    {"condition": "p99 > 1us", "result": 1, "value": 2.0, "verdict": "failed"}],
    warnings=("disturbed",))
GOOD["options"]["iters"] = {"value": 0, "origin": "resolved", "by": "duration"}
HOSTILE = {
    "nothing": b"",
    "blanks": b" \n\t ",
    "junk": bytes(range(256)) * 8,
    "NULs": bytes(4096),
    "an ELF file": b"\x7fELF" + bytes(60),
    "a number": b"1",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "two documents": json.dumps(GOOD).encode() * 2,
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep lists without an end": b"[" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a key twice": json.dumps(GOOD).replace('"version": 2', '"version": 2, "version": 2').encode(),
    "a deep key twice": json.dumps(GOOD).replace('"size": 64', '"size": 8, "size": 64').encode(),
    "NaN": json.dumps(GOOD).replace('"median_us": ', '"median_us": NaN, "x": ').encode(),
    "Infinity": json.dumps(GOOD).replace('"median_us": ', '"median_us": Infinity, "x": ').encode(),
    "1e999": json.dumps(GOOD).replace('"median_us": ', '"median_us": 1e999, "x": ').encode(),
    "a count too large": json.dumps(GOOD).replace('"count": 2000', '"count": ' + "9" * 30).encode(),
    "a NUL in a text": json.dumps(GOOD).replace("node1", "no\\u0000de").encode(),
    "half a surrogate": json.dumps(GOOD).replace("node1", "\\ud800").encode(),
    "not UTF-8": json.dumps(GOOD).encode().replace(b"node1", b"\xff\xfe"),
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "escapes for a terminal": b'{"\x1b[2J":',
    "an empty bucket": json.dumps(GOOD).replace('"histogram": [',
                                                '"histogram": [[1, 2, 0], ').encode(),
    "a bucket of no width": json.dumps(GOOD).replace('"histogram": [',
                                                     '"histogram": [[1, 1, 3], ').encode(),
    "a verdict on nothing": json.dumps(GOOD).replace('"result": 1', '"result": 2').encode(),
    "another schema": json.dumps({**GOOD, "schema": "other"}).encode(),
    "no schema": json.dumps({k: v for k, v in GOOD.items() if k != "schema"}).encode(),
    "a version in words": json.dumps({**GOOD, "version": "2"}).encode(),
}
for what, text in HOSTILE.items():
    def hostile(text=text):
        path = put(text)
        refused(2, "report", path, "-o", "-", names=("document.json: ",))
        refused(2, "compare", a_document(), path, names=("document.json: ",))
    tap.add(f"{what} is no document", hostile)


@test
def another_version_is_named():
    for version in (0, 3, 99, -1):
        refused(2, "report", put(json.dumps({**GOOD, "version": version})), "-o", "-",
                names=(f"schema version {version}, this weft reads 1 to 2",))
    # The form of the other version is not taken for this one.
    for version, key in ((1, "options"), (2, "build")):
        first = FIRST["cxi_write_lat"] if version == 2 else GOOD
        refused(2, "report", put(json.dumps({**first, "version": version})), "-o", "-", names=(key,))


@test
def what_is_not_ours_is_said_to_be_so():
    for text in ('{"a": 1}', "[1, 2]", '"weft-result"'):
        refused(2, "report", put(text), "-o", "-", names=("not a result of a Weft tool",))


@test
def an_empty_file_is_said_to_be_empty():
    refused(2, "report", put(""), "-o", "-", names=("document.json: the file is empty",))


@test
def a_document_cut_short_anywhere_is_refused():
    text = json.dumps(GOOD).encode()
    cuts = [*range(0, len(text), len(text) // 60), *range(len(text) - 3, len(text))]

    def cut(at):
        refused(2, "report", put(text[:at]), "-o", "-", names=("document.json: ",))

    tap.in_parallel(cut, cuts, 4)


@test
def a_file_that_is_too_long_is_refused_unread():
    path = path_in("long.json")
    with open(path, "wb") as out:
        out.truncate(300 << 20)
    refused(2, "report", path, "-o", "-", names=("300.0 MiB", "the maximum is 256.0 MiB"))
    with open(path, "wb") as out:
        out.truncate(1 << 40)
    refused(2, "report", path, "-o", "-", names=("the file has 1.0 TiB",))


@test
def what_has_no_end_is_read_no_further_than_a_document_may_be():
    refused(2, "report", "/dev/zero", "-o", "-", names=("/dev/zero: longer than",))


@alone
def a_short_text_for_a_large_tree_is_refused():
    if tap.SANITIZED or tap.available_bytes() < 3 << 30:
        skip("not enough memory to try")
    refused(2, "report", put(b"[" + b"[]," * 14000000 + b"[]]"), "-o", "-",
            names=("needs more than",), limit=60)


@test
def a_long_text_is_read():
    whole = copy.deepcopy(GOOD)
    whole["ends"]["client"]["host"] = "x" * (8 << 20)
    weft(0, "report", put(json.dumps(whole)), "-o", "/dev/null")


@test
def files_that_cannot_be_had_are_named():
    refused(2, "report", "/nonexistent.json", "-o", "-", names=("/nonexistent.json: No such file",))
    refused(2, "compare", tap.folder(), a_document(), names=("contains no *.json file",))
    place = tap.folder()
    os.mkdir(os.path.join(place, "x.json"))
    refused(2, "report", place, "-o", "-", names=("x.json: is a folder, not a file",))


@test
def escapes_in_texts_do_not_reach_the_terminal():
    evil = "\x1b[2J\x07\x9b31m\r\n"
    keys = {"label": evil, "options": {evil: evil, "x": evil},
            "client": {"host": evil, "cpu": evil}}
    mine, other = documents.document(**keys), documents.document(device=evil, server={evil: evil})
    mine["tool"]["name"] = other["tool"]["name"] = evil
    mine, other = (documents.write(path_in("d.json"), d) for d in (mine, other))
    process = compare(5, mine, other, "--force")
    check("?[2J" in process.out, process)
    refused(2, "compare", mine, other)
    compare(5, mine, other, "--force", "--json", "-")


@test
def formats_in_texts_are_not_obeyed():
    evil = "%s%n%s%n%p" * 20
    whole = documents.document(label=evil, device=evil, client={evil: evil}, options={evil: evil})
    path = documents.write(path_in("d.json"), whole)
    check("%s%n%s" in compare(5, path, a_document(), "--force").out)
    refused(2, "compare", path, a_document(), names=("%s%n%s",))


@test
def unknown_keys_are_passed_over():
    whole = copy.deepcopy(GOOD)
    whole["later"] = {"more": [1]}
    whole["results"][0]["later"] = None
    weft(0, "report", put(json.dumps(whole)), "-o", "/dev/null")


def paths_of(value, path=()):
    """Every place in a document, the first of each list standing for all."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths_of(value[key], path + (key,))
    elif isinstance(value, list) and value:
        yield from paths_of(value[0], path + (0,))


def with_change(path, change):
    whole = copy.deepcopy(GOOD)
    at = whole
    for step in path[:-1]:
        at = at[step]
    change(at, path[-1])
    return whole


@test
def what_the_schema_does_not_allow_is_refused_wherever_it_is():
    try:
        import jsonschema
    except ImportError:
        skip("python3-jsonschema is missing")
    values = [None, True, -1, 0, 1.5, "text", [], {}, "1e9", [None], 10 ** 17]
    mutants = []
    for path in [p for p in paths_of(GOOD) if p]:
        for value in values:
            mutants.append((path, value,
                            with_change(path, lambda o, k, v=value: o.__setitem__(k, v))))
        if isinstance(path[-1], str):
            mutants.append((path, "nothing", with_change(path, lambda o, k: o.pop(k))))

    def judge(mutant):
        path, value, whole = mutant
        try:
            documents.validate(whole)
            allowed = True
        except jsonschema.ValidationError:
            allowed = False
        process = tap.run(TOOL, "report", put(json.dumps(whole)), "-o", "/dev/null")
        # Order in a histogram, what a verdict is about: the schema cannot say these. Nothing is
        # below 0, though it does not always say so.
        stricter = "histogram" in path or path[-1] in ("result", "results") or value == -1
        check(process.code == (0 if allowed else 2) or (stricter and process.code == 2),
              f"{path} = {value!r}: {'' if allowed else 'not '}allowed by the schema", process)

    check(len(mutants) > 500, len(mutants))
    tap.in_parallel(judge, mutants, 4)


# ---- report ----

@test
def a_page_is_written_whole_or_not_at_all():
    good, page = a_document(), path_in("page.html")
    weft(0, "report", good, "-o", page)
    with open(page, encoding="utf-8") as file:
        before = file.read()
    check(before.lower().startswith("<!doctype html>"), before[:100])
    equal(stat.S_IMODE(os.stat(page).st_mode) & 0o400, 0o400)
    refused(2, "report", good, put("{"), "-o", page)
    with open(page, encoding="utf-8") as file:
        equal(file.read(), before)
    equal(os.listdir(os.path.dirname(page)), ["page.html"])
    check(weft(0, "report", good, "-o", "-").out.lower().startswith("<!doctype html>"))


@test
def a_page_of_a_folder_has_all_its_runs():
    weft(0, "report", a_set(5), a_document(), "-o", "/dev/null")


def read(path):
    with open(path, "rb") as file:
        return file.read()


@test
def a_result_is_never_written_over():
    mine, other, several = a_document(), a_document(seed=2), a_set(5)
    linked = path_in("linked.html")
    os.symlink(mine, linked)
    renamed = os.path.join(several, "result.html")
    os.link(os.path.join(several, "003.json"), renamed)
    before = [read(mine), read(other), read(renamed)]
    for args in ((mine, "-o", linked), (other, mine, "-o", linked), (several, "-o", renamed)):
        refused(2, "report", *args, names=("would be overwritten", args[-1]))
    one = os.path.join(several, "003.json")
    for args in ((mine, other, "--json", mine), (mine, other, "--json", other),
                 (several, several, "--json", one), (mine, other, "--json", linked)):
        refused(2, "compare", *args, names=("would be overwritten", args[-1]))
    equal([read(mine), read(other), read(renamed)], before)
    equal(os.readlink(linked), mine)


@test
def what_is_no_page_by_its_name_is_refused():
    mine = a_document(sizes=(8, 64))
    before = read(mine)
    refused(2, "report", "-o", mine, a_document(), names=("only HTML and SVG can be written",))
    refused(2, "report", mine, "-o", mine, names=("only HTML and SVG can be written",))
    equal(read(mine), before)
    for name in ("new.json", "new.JSON", "x.pdf", "x.Png"):
        refused(2, "report", mine, "-o", path_in(name),
                names=(name + ": only HTML and SVG can be written",))
    for name in ("x.svg", "x.SVG"):
        page = path_in(name)
        weft(0, "report", mine, "-o", page)
        check(read(page).startswith(b"<svg"), name)


@test
def a_report_needs_results_and_a_page():
    refused(2, "report", a_document(), names=("-o PAGE",))
    refused(2, "report", "-o", "x", names=("no result",))
    refused(1, "report", a_document(), "-o", "/nonexistent/page", names=("/nonexistent/page",))


# ---- repeat ----

STUB = """#!/bin/sh
# Notes its words, and copies the next document of the folder in its first to where --json says.
echo "$*" >>"$NOTES"
echo "a table"
echo "a remark" >&2
from=$1
while [ $# -gt 2 ]; do shift; done
[ "$1" = --json ] || exit 9
n=$(basename "$2")
cp "$from/$n" "$2"
"""


class Stub:
    """A tool that measures nothing."""

    def __init__(self, text=STUB):
        place = tap.folder()
        self.path = os.path.join(place, "stub")
        self.notes = os.path.join(place, "notes")
        self.tmp = tap.folder()
        self.env = {"NOTES": self.notes, "TMPDIR": self.tmp}
        # By another process: what a thread of ours forks meanwhile would have it open for writing,
        # and the kernel starts no such file.
        ended(tap.run("install", "-m", "755", tap.file_with(text), self.path), 0)

    def noted(self):
        if not os.path.exists(self.notes):
            return []
        with open(self.notes, encoding="utf-8") as file:
            return file.read().splitlines()

    def await_note(self, number=1):
        until = time.monotonic() + 20
        while len(self.noted()) < number and time.monotonic() < until:
            time.sleep(0.02)
        check(len(self.noted()) >= number, "it was not started", self.noted())
        return self.noted()[0]

    def repeat(self, code, *args):
        process = weft(code, "repeat", *args, env=self.env)
        equal(os.listdir(self.tmp), [], "left behind", process)
        return process


@test
def two_commands_take_turns_and_are_compared():
    stub, a, b = Stub(), a_set(turn=0), a_set(turn=1, median_us=2.1)
    process = stub.repeat(3, "8", "--", stub.path, a, "first", "--", stub.path, b, "second")
    turns = "".join("A" if a in line else "B" for line in stub.noted())
    equal(turns, "ABBA" * 4)
    check(all(re.search(r" (first|second) --json \S+/00[1-8]\.json$", n) for n in stub.noted()),
          stub.noted())
    check(verdict(process).startswith("Slower: 3 of 3"), process)
    check(lines_of(process.out)[0].startswith(f"A: {stub.path} {a} first: 8 runs of cxi_write_lat"),
          process)
    equal(lines_of(process.err), ["a remark"] * 16, process)
    process = stub.repeat(0, "8", "--", stub.path, a, "--", stub.path, a)
    check(verdict(process).startswith("Same: "), process)
    process = stub.repeat(5, "1", "--", stub.path, a, "--", stub.path, b)
    check(verdict(process).startswith("Cannot tell: 1 run per side"), process)


@test
def one_command_is_summed_up():
    stub = Stub()
    process = stub.repeat(0, "5", "--", stub.path, a_set(5))
    equal(len(stub.noted()), 5)
    equal(len(re.findall(r"^ +(?:8|64|4096) +[12]\.\d\d +[12]\.\d\d +[12]\.\d\d +\d\.\d\d%$",
                         process.out, re.M)), 3, process)
    check("a table" not in process.out, process)
    check("a table" in stub.repeat(0, "-v", "2", "--", stub.path, a_set(5)).out)


@test
def documents_are_kept_where_asked_and_nothing_is_overwritten():
    stub, a, out = Stub(), a_set(turn=0), path_in("out")
    stub.repeat(5, "2", "-o", out, "--", stub.path, a, "--", stub.path, a)
    found = sorted(os.path.relpath(os.path.join(at, name), out)
                   for at, _, names in os.walk(out) for name in names)
    equal(found, ["a/001.json", "a/002.json", "b/001.json", "b/002.json"])
    process = stub.repeat(1, "2", "-o", out, "--", stub.path, a)
    check("not an empty folder" in process.err, process)
    equal(len(stub.noted()), 4)
    empty = tap.folder()
    stub.repeat(0, "2", "-o", empty, "--", stub.path, a)
    equal(sorted(os.listdir(empty)), ["001.json", "002.json"])
    compare(5, empty, os.path.join(out, "b"))
    process = stub.repeat(1, "2", "-o", "/nonexistent/x", "--", stub.path, a)
    check("/nonexistent/x" in process.err, process)


@test
def the_first_run_that_fails_ends_it_with_its_exit_code():
    stub, a = Stub(STUB + '[ "$n" != 002.json ] || exit 7\n'), a_set(turn=0)
    process = stub.repeat(7, "5", "--", stub.path, a)
    equal(len(stub.noted()), 2)
    check("run 2 of 5 failed with exit code 7" in process.err, process)
    process = stub.repeat(7, "5", "--", stub.path, a, "--", stub.path, a)
    check("run 2 of 5 of b failed with exit code 7" in process.err, process)
    killed = Stub("#!/bin/sh\nkill -9 $$\n")
    check("killed by signal 9" in killed.repeat(137, "2", "--", killed.path).err)


def cut_set(state="interrupted"):
    """Runs, and beside them what is left of one that is cut short."""
    place = a_set(5)
    documents.write(os.path.join(place, "cut"), documents.document(sizes=SIZES[:1], state=state))
    return place


CUT = STUB + """[ "$n" = 003.json ] || exit 0
trap 'cp "$from/cut" "$2"; exit 130' INT TERM
echo waiting >>"$NOTES"
while :; do sleep 0.05; done
"""


@test
def what_was_complete_before_an_interrupt_is_summed_up_and_the_rest_put_aside():
    stub, a, out = Stub(CUT), cut_set(), path_in("out")
    process = Process([TOOL, "repeat", "5", "-o", out, "--", stub.path, a], env=stub.env)
    stub.await_note(4)
    process.kill(signal.SIGINT)
    ended(process, 130)
    equal(sorted(os.listdir(out)), ["001.json", "002.json", "003.json.failed"])
    check(f"run 3 of 5 is not complete: kept as {out}/003.json.failed" in process.err, process)
    check("interrupted during run 3 of 5" in lines_of(process.err)[-1], process)
    check(": 2 runs of cxi_write_lat" in lines_of(process.out)[0], process)
    equal(len(lines_of(process.out)), 2 + len(SIZES), process)
    compare(5, out, a)


@test
def what_was_not_asked_to_be_kept_is_summed_up_too_but_not_of_two_commands():
    for commands, notes, lines in ((1, 4, 2 + len(SIZES)), (2, 6, 0)):
        stub, a = Stub(CUT), cut_set()
        process = Process([TOOL, "repeat", "5", *("--", stub.path, a) * commands], env=stub.env)
        stub.await_note(notes)
        process.kill(signal.SIGTERM)
        ended(process, 143)
        equal(len(lines_of(process.out)), lines, process)
        check("003.json" not in process.err, process)
        equal(os.listdir(stub.tmp), [])


@test
def the_document_of_a_run_that_failed_does_not_count():
    failing = STUB + '[ "$n" != 003.json ] || { cp "$from/cut" "$2"; exit 1; }\n'
    stub, a, out = Stub(failing), cut_set("failed"), path_in("out")
    process = stub.repeat(1, "5", "-o", out, "--", stub.path, a)
    equal(sorted(os.listdir(out)), ["001.json", "002.json", "003.json.failed"])
    check("kept as " + out + "/003.json.failed" in process.err and not process.out, process)
    compare(5, out, a)
    stub, out = Stub('#!/bin/sh\necho x >"$2"\n'), path_in("out")
    stub.repeat(2, "5", "-o", out, "--", stub.path)
    equal(os.listdir(out), ["001.json.failed"])
    # A condition that was not met: all was measured nevertheless.
    stub, out = Stub(STUB + '[ "$n" != 003.json ] || exit 3\n'), path_in("out")
    stub.repeat(3, "5", "-o", out, "--", stub.path, a)
    equal(sorted(os.listdir(out)), ["001.json", "002.json", "003.json"])


@test
def too_few_runs_to_tell_are_said_before_they_are_made():
    stub, a = Stub("#!/bin/sh\nexit 7\n"), a_set()
    for runs, said in (("1", 1), ("4", 1), ("5", 0)):
        process = stub.repeat(7, runs, "--", stub.path, a, "--", stub.path, a)
        found = [line for line in lines_of(process.err) if "at least 5 needed for a verdict" in line]
        equal(len(found), said, process)
    check("per side" not in stub.repeat(7, "2", "--", stub.path, a).err)


@test
def a_tool_without_dashes_before_it_is_said_to_lack_them():
    for args in (("2", "cxi_write_lat", "--local"), ("2", "cxi_write_lat", "-n", "100"),
                 ("-o", "x", "2", "cxi_write_lat", "-s", "8")):
        refused(2, "repeat", *args, names=("-- is missing before cxi_write_lat",))
    refused(2, "repeat", "2", "--nosuch", "--", "x", names=("unknown option: --nosuch",))
    refused(2, "repeat", "2", "--nosuch", names=("unknown option: --nosuch",))


@test
def commands_that_do_not_do_their_part_are_refused():
    stub = Stub()
    for code, args, name in ((2, (), "the number of runs"), (2, ("3",), "a command is missing"),
                             (2, ("3", "--"), "a command is missing"),
                             (2, ("3", "--", "x", "--"), "a command is missing"),
                             (2, ("3", "--", "--", "x"), "a command is missing"),
                             (2, ("3", "--", "x", "--", "y", "--", "z"), "more than two"),
                             (2, ("0", "--", "x"), '"0"'), (2, ("x", "--", "x"), '"x"'),
                             (2, ("-1", "--", "x"), "-1"), (2, ("5000", "--", "x"), "4096"),
                             (2, ("3", "--", "x", "--json", "y"), "--json must not be given"),
                             (2, ("3", "--", "x", "--json=y"), "--json must not be given"),
                             (2, ("3", "--json", "-", "--", "x"), "two commands"),
                             (1, ("3", "--", "/nonexistent/x"), "cannot start"),
                             (1, ("3", "--", "no-such-tool"), "cannot start"),
                             (1, ("3", "--", "true"), "wrote no document"),
                             (2, ("3", "--", "sh", "-c", 'echo x >"$1"'), "not JSON")):
        process = stub.repeat(code, *args)
        check(name in process.err and not process.out, args, name, process)
        equal(len(lines_of(process.err)), 1, process)


@test
def commands_that_cannot_be_compared_are_found_out_after_one_run_of_each():
    stub, a, b = Stub(), a_set(turn=0), a_set(turn=1, fabric="soft")
    process = stub.repeat(2, "8", "--", stub.path, a, "--", stub.path, b)
    check("not comparable: fabric null in run 1 of A, soft in run 1 of B" in process.err, process)
    check(stub.tmp not in process.err, process)
    equal(len(stub.noted()), 2)
    kept = path_in("kept")
    process = stub.repeat(2, "8", "-o", kept, "--", stub.path, a, "--", stub.path, b)
    check(f"null in {kept}/a/001.json, soft in {kept}/b/001.json" in process.err, process)
    stub.repeat(0, "8", "--force", "--", stub.path, a, "--", stub.path, b)


def interrupted(number):
    stub = Stub('#!/bin/sh\ntrap "echo told >>$NOTES; exit 3" INT TERM\necho up >>$NOTES\n'
                "while :; do sleep 0.05; done\n")
    process = Process([TOOL, "repeat", "3", "--", stub.path], env=stub.env)
    stub.await_note()
    process.kill(number)
    ended(process, 128 + number)
    check("interrupted during run 1 of 3" in process.err, process)
    equal(stub.noted(), ["up", "told"])
    equal(os.listdir(stub.tmp), [])


tap.add("an interrupt is passed on and ends it", interrupted, signal.SIGINT)
tap.add("a request to end is passed on and ends it", interrupted, signal.SIGTERM)


@test
def a_command_ends_with_weft():
    stub = Stub("#!/bin/sh\necho $$ >>$NOTES\nexec sleep 60\n")
    process = Process([TOOL, "repeat", "3", "--", stub.path], env=stub.env)
    pid = int(stub.await_note())
    start = tap.start_time(pid)
    process.kill()
    process.wait()
    until = time.monotonic() + 10
    while tap.start_time(pid) == start and time.monotonic() < until:
        time.sleep(0.02)
    check(start and tap.start_time(pid) != start, "still running", pid)


@alone
def tools_beside_weft_are_found_and_a_programmed_difference_is_seen():
    run = ("cxi_write_lat", "--local", "-n", "300", "--latency-gap", "0", "-d")
    process = weft(3, "repeat", "5", "--", *run, "null:delay=20us", "--", *run, "null:delay=40us",
                   limit=120, env={"PATH": "/usr/bin:/bin"})
    check(verdict(process).startswith("Slower: 1 of 1 rows, by up to "), process)
    check("\ndevice: null:delay=20us -> null:delay=40us\n" in process.out, process)


# ---- keygen ----

@test
def a_new_secret_is_64_digits_that_only_its_owner_may_read():
    path, texts = path_in("secret"), []
    for _ in range(2):
        process = weft(0, "keygen", path)
        equal(process.out + process.err, "", process)
        file = os.lstat(path)
        check(stat.S_ISREG(file.st_mode), file)
        equal(stat.S_IMODE(file.st_mode), 0o600, file)
        with open(path, encoding="utf-8") as text:
            texts.append(text.read())
        os.remove(path)
    texts.append(weft(0, "keygen", "-").out)
    check(all(re.fullmatch("[0-9a-f]{64}\n", text) for text in texts), texts)
    equal(len(set(texts)), 3)


@test
def a_new_secret_never_replaces_anything():
    path, there = path_in("secret"), put("something", "there")
    os.symlink(there, path)
    for name in (there, path, path_in("no", "folder"), tap.folder()):
        process = weft(1, "keygen", name)
        check(name in process.err and not process.out, process)
    with open(there, encoding="utf-8") as text:
        equal(text.read(), "something")
    for args in ((), ("a", "b")):
        weft(2, "keygen", *args)


if __name__ == "__main__":
    tap.main()
