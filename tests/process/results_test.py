# SPDX-License-Identifier: BSD-3-Clause
"""Documents of real runs: every tool's, by schema; the numbers in them against each other and
against the table; verdicts; files that cannot be written; runs that are cut short; progress."""
import copy
import csv
import math
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import schema
import tap
from tap import (Client, Process, Server, alone, between, check, ended, equal, fits, one_sentence,
                 rows_of, run, sentences, skip, test)

CXI = {name: tap.tool_path(f"cxi_{name}_lat") for name in ("write", "read", "send", "atomic")}
PERF = tap.tool_path("ucx_perftest")
PERF_TESTS = ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap", "cswap", "am_bw", "put_bw",
              "add_mr")
QUICK = ("--local", "--latency-gap", "0", "-n", "300")
PERF_QUICK = ("--local", "-x", "soft", "-n", "2000", "-w", "20")


def read(text, *words):
    try:
        return schema.read(text)
    except (AssertionError, ValueError) as why:
        check(False, f"not a document: {why}", text[:2000], *words)


def read_file(path, *words):
    with open(path, encoding="utf-8") as file:
        return read(file.read(), *words)


def document(tool, *args, code=0, **more):
    """The document that a run writes to standard output."""
    process = Process([tool, *args, "--json", "-"], **more)
    ended(process, code)
    return read(process.out, process)


def option(found, name):
    return found["options"][name]


def percentile(result, percent):
    return next(one for one in result["percentiles"] if one["percent"] == percent)


def near(got, wanted, share, *words):
    check(abs(got - wanted) <= share * abs(wanted) + 1.5e-6, *words, f"{got} is not {wanted}")


# ---- what is in them ----

def check_sense(found, *words):
    """What any document must agree on with itself."""
    for result in found["results"]:
        histogram = result["histogram"]
        equal(sum(bucket[2] for bucket in histogram), result["count"], *words)
        check(result["count"] * result["ops_per_sample"] >= result["operations"], *words)
        if result["elapsed_s"]:
            near(result["messages_per_s"], result["operations"] / result["elapsed_s"], 1e-4, *words)
        check(result["min_us"] <= result["median_us"] <= result["max_us"], *words, result["size"])
        for low, high, _ in histogram:
            check(low < high <= max(low * (1 + 1 / 512) * 1.00001, low + 1e-3), low, high, *words)
        check(all(a[1] <= b[0] + 1e-6 for a, b in zip(histogram, histogram[1:])), *words)
        mean = sum((low + high) / 2 * count for low, high, count in histogram) / result["count"]
        if result["elapsed_s"] is None:
            near(mean, result["mean_us"], 0.0011, "mean", *words)
        known = [one for one in result["percentiles"] if one["us"] is not None]
        for one in known:
            check(one["low_us"] <= one["us"] <= one["high_us"], one, *words)
        check(all(a["us"] <= b["us"] for a, b in zip(known, known[1:])), *words)
        for one in result["percentiles"]:
            beyond = result["count"] - math.ceil(one["percent"] / 100 * result["count"] - 1e-9)
            equal(one["us"] is None, beyond < 10, one, *words)
        series = result["series"]
        if series:
            equal(sum(one["count"] for one in series), result["operations"], *words)
            check(all(a["end_s"] < b["end_s"] for a, b in zip(series, series[1:])), *words)


def cxi_document(name):
    found = document(CXI[name], *QUICK)
    equal(found["tool"]["name"], f"cxi_{name}_lat")
    equal(found["status"], {"state": "complete", "exit": 0, "reason": ""})
    equal(found["verdicts"], [])
    result, = found["results"]
    equal((result["test"], result["size"], result["count"], result["layout"]), (name, 8, 300, None))
    equal(result["label"], "SUM UINT64" if name == "atomic" else "")
    equal(result["fabric"]["name"], "soft")
    equal(result["method"]["name"], "latency")
    equal(result["method"]["half_round_trip"], name == "send")
    check(result["method"]["clock_subtracted"] and result["method"]["completion_proves"], result)
    equal((result["elapsed_s"], result["series"]), (None, []))
    check_sense(found)


for _name in CXI:
    tap.add(f"cxi {_name} lat writes a document", cxi_document, _name)


def perf_document(name):
    found = document(PERF, *PERF_QUICK, "-t", name)
    result, = found["results"]
    equal((result["test"], result["size"], result["operations"]), (name, 8, 2000))
    equal(result["count"] == 2000, result["ops_per_sample"] == 1, result)
    check(result["ops_per_sample"] == 1 or not name.endswith("_lat"), result)
    equal(result["method"]["half_round_trip"], name.endswith("_lat"))
    equal(result["method"]["clock_subtracted"], False)
    near(result["messages_per_s"], 2000 / result["elapsed_s"], 0.001)
    near(result["bytes_per_s"], 8 * result["messages_per_s"], 0.001)
    legs = 2 if name.endswith("_lat") else 1
    near(result["mean_us"], result["elapsed_s"] * 1e6 / 2000 / legs, 0.001)
    for end in found["ends"].values():
        equal((end["buffer"], end["fabric"].split()[0]), ("host", "soft"), end)
        check(end["name"].startswith("NIC "), end)
    check_sense(found)


for _name in PERF_TESTS:
    tap.add(f"ucx perftest {_name} writes a document", perf_document, _name)


@test
def every_option_is_there_with_its_origin():
    found = document(CXI["send"], *QUICK, "-s", "1:64", "--rdzv")
    shown = run(CXI["send"], "--help").out
    names = set(re.findall(r"--([a-z][a-z-]+)", shown)) - {"dashes"}
    equal(set(found["options"]), names - {"help", "version", "list"})
    equal(option(found, "size"), {"value": "1:64", "origin": "user"})
    equal(option(found, "rdzv"), {"value": True, "origin": "user"})
    equal(option(found, "no-ll"), {"value": False, "origin": "default"})
    equal(option(found, "warmup"), {"value": 10, "origin": "default"})
    equal(option(found, "duration"), {"value": None, "origin": "default"})
    equal([result["size"] for result in found["results"]], [1, 2, 4, 8, 16, 32, 64])


@test
def both_machines_are_described():
    found = document(CXI["write"], *QUICK)
    for end in ("client", "server"):
        facts = found["ends"][end]
        equal(facts["host"], os.uname().nodename)
        equal(facts["system"], f"Linux {os.uname().release}")
        equal(facts["buffer"], "host")
        check(facts["cpu"] and facts["fabric"].startswith("soft"), facts)
    check(found["ends"]["client"]["name"] != found["ends"]["server"]["name"], found["ends"])
    equal(document(PERF, *PERF_QUICK, "-t", "put_lat")["ends"]["server"]["host"],
          os.uname().nodename)


@test
def samples_are_kept_and_every_number_follows_from_them():
    found = document(CXI["send"], *QUICK[:-1], "20000", "--report-all", "--percentiles",
                     "1,25,75,99.9")
    result, = found["results"]
    samples = sorted(result["samples_us"])
    equal(len(samples), 20000)
    near(result["mean_us"], sum(samples) / len(samples), 1e-6)
    near(result["deviation_us"], math.sqrt(sum((s - result["mean_us"]) ** 2 for s in samples) /
                                           len(samples)), 1e-4)
    equal((result["min_us"], result["max_us"]), (samples[0], samples[-1]))
    equal([one["percent"] for one in result["percentiles"]], [1, 25, 50, 75, 90, 99, 99.9, 99.99])
    for one in result["percentiles"][:-1]:
        rank = math.ceil(one["percent"] / 100 * len(samples) - 1e-9)
        equal(one["us"], samples[rank - 1], one)
    equal(percentile(result, 99.99)["us"], None)
    check_sense(found)


@test
def the_table_and_the_document_say_the_same():
    path = os.path.join(tap.folder(), "a.json")
    process = ended(Process([CXI["read"], *QUICK, "-s", "8:1024", "--json", path, "--csv",
                             path + ".csv", "--percentiles", "50,90,99.9"]), 0)
    found = read_file(path, process)
    rows = re.findall(r"^ *(\d+)  +(\d+)" + 7 * r"  +(<?[\d.-]+)" + "$", process.out, re.M)
    equal(len(rows), 8, process)
    with open(path + ".csv", encoding="utf-8", newline="") as file:
        sheet = list(csv.DictReader(file))
    equal(len(sheet), 8)
    for row, result, line in zip(rows, found["results"], sheet):
        size, count, least, most, mean, _deviation, p50, p90, p999 = row
        equal((int(size), int(count)), (result["size"], result["count"]), process)
        for text, value in ((least, result["min_us"]), (most, result["max_us"]),
                            (mean, result["mean_us"]), (p50, percentile(result, 50)["us"]),
                            (p90, percentile(result, 90)["us"])):
            check(fits(text, value), text, value, process)
        equal((p999, percentile(result, 99.9)["us"], line["p99.9_us"]), ("-", None, ""), process)
        equal((int(line["size"]), int(line["count"])), (result["size"], result["count"]))
        for key in ("min_us", "median_us", "mean_us", "max_us"):
            near(float(line[key]), result[key], 1e-9)
        near(float(line["p90_low_us"]), percentile(result, 90)["low_us"], 1e-9)
        equal(None in line, False, "a row with more fields than titles")


@test
def histograms_are_fine_coarse_or_left_out():
    """Figures do not depend on it: they are computed before."""
    for form, most in (("sparse", 1 / 32), ("none", 0)):
        result, = document(CXI["send"], *QUICK, "--histogram", form)["results"]
        counts = [bucket[2] for bucket in result["histogram"]]
        equal(sum(counts), result["count"] if most else 0, form)
        for low, high, _ in result["histogram"]:
            check(low < high <= max(low * (1 + most) * 1.001, low + 0.02), low, high)
        check(percentile(result, 90)["us"] > 0, result["percentiles"])
    for words, said in ((QUICK, "--histogram: needs --json"), ((), "is for the client")):
        refused = run(CXI["send"], *words, "--histogram=none")
        ended(refused, 2)
        check(said in one_sentence(refused, "cxi_send_lat"), refused)


@alone
def a_run_with_a_duration_has_a_series():
    found = document(CXI["write"], "--local", "-d", "null:delay=20us", "-D", "1", "--latency-gap",
                     "0")
    result, = found["results"]
    between(len(result["series"]), 20, 102)
    between(result["series"][-1]["end_s"], 0.99, 5)
    for one in result["series"]:
        # The clock's cost, which is subtracted, is not the same all the time.
        check(19.98 <= one["min_us"] <= one["mean_us"] <= one["max_us"] <= result["max_us"], one)
        check(one["p50_us"] is None or one["min_us"] * 0.98 <= one["p50_us"], one)
        check(one["p99_us"] is None or one["p50_us"] <= one["p99_us"] <= one["max_us"] * 1.02, one)
    check(any(one["p50_us"] for one in result["series"]), "no interval of 20 samples")
    check_sense(found)


@test
def intervals_of_ucx_perftest_are_a_series():
    found = document(PERF, "--local", "-d", "null:delay=20us", "-t", "am_lat", "--duration", "3")
    result, = found["results"]
    between(len(result["series"]), 2, 4)
    equal(option(found, "iters"), {"value": 0, "origin": "resolved", "by": "duration"})
    for one in result["series"]:
        equal(one["min_us"], None)
        # On a busy machine an interval may have too few samples for a percentile of 99.
        check(19.6 < one["p50_us"] <= (one["p99_us"] or one["max_us"]) <= one["max_us"], one)
        check(one["mean_us"] >= 20, one)
    check_sense(found)


@test
def both_directions_are_in_it():
    result, = document(PERF, *PERF_QUICK, "-t", "put_bw", "--bidir")["results"]
    equal(result["method"]["name"], "stream both ways")
    equal(result["reverse"]["count"], 2000)
    process = ended(Process([PERF, *PERF_QUICK, "-t", "put_bw", "--bidir", "--csv", "-"]), 0)
    equal([row["method"] for row in csv.DictReader(process.out.splitlines())], ["stream both ways"])


@test
def a_batch_is_one_document():
    folder = tap.folder()
    for name, text in (("sizes", "one -s 8\ntwo -s 64\n"), ("tests", "p -t put_lat\nb -t am_bw\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    found = document(PERF, *PERF_QUICK, "-b", os.path.join(folder, "sizes"), "-b",
                     os.path.join(folder, "tests"))
    equal([(one["label"], one["test"], one["size"]) for one in found["results"]],
          [("one/p", "put_lat", 8), ("one/b", "am_bw", 8), ("two/p", "put_lat", 64),
           ("two/b", "am_bw", 64)])
    equal(found["results"][2]["options"], {"test": {"value": "put_lat", "origin": "batch"},
                                           "size": {"value": 64, "origin": "batch"}})
    equal(option(found, "batch")["value"].count(folder), 2, found)
    check_sense(found)


@test
def words_that_are_no_text_do_not_break_it():
    path = os.path.join(tap.folder(), os.fsdecode(b"\xff\"\\.json"))
    process = ended(Process([CXI["write"], *QUICK, "--json", path]), 0)
    found = read_file(path, process)
    check("\ufffd\"\\.json" in found["tool"]["command"][-1], found["tool"])


@test
def jq_reads_it():
    if not shutil.which("jq"):
        skip("jq is not installed")
    process = ended(Process([CXI["write"], *QUICK, "--json", "-"]), 0)
    got = subprocess.run(["jq", "-r", ".results[0].count"], input=process.out, text=True, check=True,
                         capture_output=True, timeout=20)
    equal(got.stdout, "300\n")


@test
def the_schema_notices_what_is_wrong():
    good = document(CXI["write"], *QUICK)

    def broken(change):
        bad = copy.deepcopy(good)
        change(bad)
        return schema.errors(bad, schema.SCHEMA)

    equal(broken(lambda d: None), [])
    for change in (lambda d: d.pop("ends"), lambda d: d.update(version=1),
                   lambda d: d["results"][0].update(count=-1),
                   lambda d: d["results"][0].update(size=1.5),
                   lambda d: d["results"][0].pop("median_us"),
                   lambda d: d["results"][0].update(more=1),
                   lambda d: d["results"][0]["histogram"].append([1, 2]),
                   lambda d: d["results"][0]["percentiles"][0].update(percent=100),
                   lambda d: d["options"]["size"].update(origin="nobody"),
                   lambda d: d["options"]["size"].update(origin="resolved"),
                   lambda d: d["options"]["size"].update(value=["8"]),
                   lambda d: d["build"].pop("commit"),
                   lambda d: d["results"][0]["hints"]["ll"].pop("why"),
                   lambda d: d["ends"].update(client=None),
                   lambda d: d.update(begun="yesterday")):
        check(broken(change), "a document that was broken is taken")


@test
def mpi_ranks_write_one_document():
    for mpi in ("openmpi", "mpich"):
        module = os.path.join(tap.build_folder(), "modules", f"weft-mpi_{mpi}.so")
        if not shutil.which(f"mpirun.{mpi}") or not os.path.exists(module):
            skip(f"{mpi} is not here")
        path = os.path.join(tap.folder(), "a.json")
        ended(Process([f"mpirun.{mpi}", "-n", "2", PERF, "-x", "soft", "-t", "put_lat", "-n", "2000",
                       "--json", path], limit=60,
                      env=tap.mpi_env()), 0)
        equal(len(read_file(path)["results"]), 1)


# ---- verdicts ----

@test
def a_condition_that_holds_exits_with_3_and_is_named():
    args = ("--local", "-d", "null:delay=50us", "--latency-gap", "0", "-n", "100", "-s", "8:16")
    process = ended(Process([CXI["write"], *args, "--fail-if", "median > 40us", "--fail-if",
                             "min@8 < 1us"]), 3)
    said = sentences(process)
    equal(len(said), 2, process)
    for size, line in zip((8, 16), said):
        check(re.fullmatch(rf"cxi_write_lat: failed, because median > 40us: size {size} has "
                           r"\d+\.\d{3} us", line), process)
    equal(len(rows_of(process)), 2, process)
    found = document(CXI["write"], *args, "--fail-if", "median > 40us", "--fail-if", "min@8 < 1us",
                     code=3)
    equal(found["status"], {"state": "complete", "exit": 3, "reason": ""})
    equal([(one["condition"], one["result"], one["verdict"]) for one in found["verdicts"]],
          [("median > 40us", 0, "failed"), ("min@8 < 1us", 0, "passed"),
           ("median > 40us", 1, "failed")])


@test
def a_condition_that_does_not_hold_changes_nothing():
    process = ended(Process([PERF, *PERF_QUICK, "-t", "am_bw", "--fail-if", "rate < 1", "--fail-if",
                             "p50 > 10s"]), 0)
    equal(sentences(process), [], process)


@test
def a_condition_that_cannot_be_judged_exits_with_5():
    process = ended(Process([CXI["write"], *QUICK, "--fail-if", "p99.9 > 1s"]), 5)
    equal(one_sentence(process, "cxi_write_lat"), "cxi_write_lat: cannot tell whether p99.9 > 1s: "
          "size 8 has 300 samples, 10000 are needed", process)
    found = document(CXI["write"], *QUICK, "--fail-if", "p99.9 > 1s", code=5)
    equal([(one["value"], one["verdict"]) for one in found["verdicts"]], [(None, "unknown")])
    # What is known to have failed counts for more.
    ended(Process([CXI["write"], *QUICK, "--fail-if", "p99.9 > 1s", "--fail-if", "count < 1000"]), 3)


@test
def a_condition_that_is_too_fine_for_the_clock_exits_with_5():
    if tap.SANITIZED:
        skip("a sanitizer makes null slow enough to be resolved")
    args = (*QUICK, "-d", "null", "--fail-if", "median > 1ns")
    process = ended(Process([CXI["write"], *args]), 5)
    check(re.search(r"cxi_write_lat: cannot tell whether median > 1ns: size 8: the clock resolves "
                    r"[\d.]+ ns\n", process.err), process)
    equal(process.err.count(": not resolved: size 8: the clock (step "), 1, process)
    ended(Process([CXI["write"], *QUICK, "-d", "null", "--fail-if", "median > 1us"]), 0)


@test
def a_condition_about_a_size_that_was_not_measured_exits_with_5():
    for tool, args in ((CXI["write"], QUICK), (PERF, (*PERF_QUICK, "-t", "put_lat"))):
        process = ended(Process([tool, *args, "--fail-if", "max@9 > 1s", "--fail-if", "max@8 > 9s"]),
                        5)
        check("cannot tell whether max@9 > 1s: there is no such result" in process.err, process)


@test
def wishes_that_make_no_sense_are_refused_before_anything_runs():
    cases = ((CXI["write"], ("--percentiles", "50,x"), '"x" is not a percentile'),
             (CXI["write"], ("--fail-if", "p99 > 5"), "the bound must be a time"),
             (CXI["write"], ("--fail-if", "bandwidth < 5MB/s"), "measures latency alone"),
             (PERF, ("-t", "put_lat", "--fail-if", "speed > 5"), "unknown metric"),
             (CXI["write"], ("--json", "-", "--csv", "-"), "both write to -"),
             (CXI["write"], ("--json", "-", "--csv", "/dev/stdout"), "both write to -"),
             (CXI["write"], ("--json", "/tmp/weft-a", "--csv", "/tmp/../tmp/./weft-a"),
              "both write to /tmp/weft-a"))
    for tool, args, words in cases:
        process = ended(Process([tool, "--local", *args]), 2)
        check(words in one_sentence(process, os.path.basename(tool)), process)
        equal(process.out, "", process)
    for args in (("--json", "x"), ("--csv", "x"), ("--fail-if", "max > 1s"), ("--percentiles", "9")):
        process = ended(Process([CXI["write"], *args]), 2)
        check("is for the client" in one_sentence(process, "cxi_write_lat"), process)


# ---- files that cannot be written ----

@test
def a_file_that_cannot_be_written_is_said_before_the_run():
    folder = tap.folder()
    for path in (os.path.join(folder, "missing", "a.json"), folder, "/proc/a.json"):
        for letter in ("--json", "--csv"):
            process = ended(Process([CXI["write"], "--local", letter, path]), 1)
            check("cannot be written" in one_sentence(process, "cxi_write_lat"), process)
            equal(process.out, "", process)
    process = ended(Process([PERF, "--local", "-t", "put_lat", "--json", "/proc/x"]), 1)
    check("cannot be written" in one_sentence(process, "ucx_perftest"), process)


@test
def a_file_that_turns_out_to_be_full_leaves_the_table_and_exits_with_1():
    process = ended(Process([CXI["write"], *QUICK, "--json", "/dev/full"]), 1)
    check("/dev/full: cannot be written: No space left" in one_sentence(process, "cxi_write_lat"),
          process)
    equal(len(rows_of(process)), 1, process)
    folder = tap.folder()
    path = os.path.join(folder, "a.json")
    ended(Process([CXI["write"], *QUICK, "--csv", "/dev/full", "--json", path]), 1)
    equal(read_file(path)["status"]["exit"], 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("old")

    popen = subprocess.Popen([CXI["write"], "--local", "-D", "1", "-s", "8:16", "--json", path],
                             preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    resource.prlimit(popen.pid, resource.RLIMIT_FSIZE, (6000, 6000))
    out, errors = popen.communicate(timeout=60)
    equal(popen.returncode, 1, errors)
    check("cannot be written: File too large" in errors, errors)
    check("RDMA Size[B]" in out, out)
    with open(path, encoding="utf-8") as file:
        equal(file.read(), "old", "half a document stands where a whole one was")
    equal(os.listdir(folder), ["a.json"])


@test
def a_descriptor_that_is_named_is_added_to():
    for name, stream in (("/dev/stdout", "stdout"), ("/dev/stderr", "stderr"), ("/dev/fd/1", "stdout")):
        path = os.path.join(tap.folder(), "log")
        with open(path, "w", encoding="utf-8") as log:
            log.write("kept\n")
        with open(path, "a", encoding="utf-8") as log:
            ended(Process([CXI["write"], *QUICK, "--csv", name], **{stream: log}), 0)
        with open(path, encoding="utf-8") as log:
            text = log.read()
        check(text.startswith("kept\n") and "\nbegun,tool," in text, text)
        check(stream == "stderr" or "RDMA Size[B]" in text, text)


@test
def a_file_keeps_its_mode():
    path = os.path.join(tap.folder(), "a.json")
    with open(path, "w", encoding="utf-8"):
        os.chmod(path, 0o600)
    ended(Process([CXI["write"], *QUICK, "--json", path]), 0)
    equal(os.stat(path).st_mode & 0o777, 0o600)


@test
def a_full_standard_output_is_an_error():
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = Process([CXI["write"], *QUICK, "--json", "-"], stdout=full)
        ended(process, 1)
        check("cannot be written" in process.err, process)


# ---- runs that are cut short ----

@test
def an_interrupted_run_leaves_its_document():
    for tool, args in ((CXI["write"], ("--latency-gap", "100", "-s", "8:16", "-D", "20")),
                       (PERF, ("-t", "put_lat", "--duration", "20", "-x", "soft"))):
        path = os.path.join(tap.folder(), "a.json")
        process = Process([tool, "--local", *args, "--json", path])
        time.sleep(2)
        process.kill(signal.SIGINT)
        ended(process, 130, 10)
        found = read_file(path, process)
        equal((found["status"]["state"], found["status"]["exit"]), ("interrupted", 130))
        check(found["status"]["reason"], found["status"])
        equal([one["complete"] for one in found["results"]], [False])
        check(found["results"][0]["count"] > 10, found["results"][0]["count"])
        check_sense(found)


@test
def a_hangup_and_a_closed_pipe_leave_their_documents():
    path = os.path.join(tap.folder(), "a.json")
    process = Process([CXI["write"], "--local", "--latency-gap", "100", "-D", "20", "--json", path])
    time.sleep(2)
    process.kill(signal.SIGHUP)
    ended(process, 129, 10)
    found = read_file(path, process)
    equal((found["status"]["state"], found["status"]["exit"]), ("interrupted", 129))
    os.unlink(path)
    ends = os.pipe()
    with os.fdopen(ends[1], "w") as pipe:
        process = Process([CXI["write"], "--local", "-D", "1", "-s", "8:16", "--json", path],
                          stdout=pipe)
    time.sleep(1)
    os.close(ends[0])
    ended(process, 1, 15)
    found = read_file(path, process)
    equal(found["status"]["state"], "failed")
    check("Broken pipe" in found["status"]["reason"], found["status"])


@test
def a_test_whose_peer_is_lost_leaves_what_was_known():
    path = os.path.join(tap.folder(), "a.json")
    server = Server(PERF)
    client = Client(PERF, server, "-x", "soft", "-t", "am_bw", "--duration", "20", "--json", path)
    time.sleep(3.5)
    server.kill()
    ended(client, 4, 15)
    result, = read_file(path, client)["results"]
    equal(result["complete"], False)
    check(result["operations"] > 1000 and result["series"], result["count"])


@test
def what_was_said_is_in_it():
    found = document(PERF, "--local", "-t", "put_lat", "-n", "2000")
    check(any("carried by soft" in one for one in found["warnings"]), found["warnings"])
    # Also what was printed before anything was opened.
    found = document(CXI["write"], *QUICK, "-D", "1", "--report-all", "--gpu-type", "AMD")
    equal(found["warnings"][:3],
          ["--gpu-type has no effect without --tx-gpu or --rx-gpu",
           "--duration and --iters are both given: --duration wins",
           "--report-all is ignored with --duration"])


@test
def every_sentence_of_standard_error_is_in_it():
    path = os.path.join(tap.folder(), "a.json")
    process = ended(Process([CXI["write"], "--local", "-d", "null:delay=50us", "-n", "50", "--fail-if",
                             "min > 1us", "--latency-gap", "0", "--gpu-type", "AMD", "--json", path]), 3)
    said = [line.partition(": ")[2] for line in sentences(process)]
    check(len(said) >= 2, process)
    equal([one for one in read_file(path)["warnings"] if "disturbed" not in one],
          [one for one in said if "disturbed" not in one], process)


@test
def what_one_option_makes_of_another_is_in_it():
    found = document(CXI["write"], "--local", "-D", "1", "-n", "7", "--report-all")
    for name, value, by in (("iters", 0, "duration"), ("report-all", False, "duration"),
                            ("bind", "127.0.0.1", "local")):
        equal(option(found, name), {"value": value, "origin": "resolved", "by": by})
    port, cpu = option(found, "port"), option(found, "cpu")
    equal((port["origin"], port["by"]), ("resolved", "local"), port)
    between(port["value"], 1024, 65535)
    if len(os.sched_getaffinity(0)) > 1:
        equal(cpu, {"value": ",".join(found["ends"][end]["ran_on"] for end in ("client", "server")),
                    "origin": "resolved", "by": "local"})
    server = Server(CXI["write"])
    client = Client(CXI["write"], server, *QUICK[1:], "--json", "-")
    ended(client, 0)
    equal(option(read(client.out), "port"), {"value": int(server.port), "origin": "user"})


@test
def a_device_of_the_other_end_is_named_as_its():
    server = Server(CXI["write"], "-d", "null:delay=3us")
    client = ended(Client(CXI["write"], server, *QUICK[1:], "--json", "-"), 0)
    found = read(client.out)
    equal(option(found, "device"), {"value": "null:delay=3us", "origin": "peer"})


@test
def requests_are_there_as_asked_and_as_honoured():
    def hints(*args):
        return [{name: (one["asked"], one["honoured"], one["why"]) for name, one in
                 result["hints"].items()} for result in document(CXI["write"], *args)["results"]]

    yes, no = (True, True, ""), (False, False, "")
    equal(hints(*QUICK, "-s", "128:256", "--no-ll"),
          [{"idc": yes, "ll": no, "restricted": yes},
           {"idc": (True, False, "over 224 bytes"), "ll": no, "restricted": yes}])
    lacks = (True, False, "null moves nothing")
    equal(hints(*QUICK, "-d", "null", "--unrestricted"), [{"idc": lacks, "ll": lacks, "restricted": no}])
    equal(document(PERF, *PERF_QUICK, "-t", "put_lat")["results"][0]["hints"], {})


@test
def the_build_is_named():
    found = document(CXI["write"], *QUICK)
    build = found["build"]
    equal(build["version"], found["tool"]["version"])
    check(re.fullmatch(r"[0-9a-f]{12,40}\+?|unknown", build["commit"]), build)
    check(re.match(r"(gcc|clang) \d", build["compiler"]) and "-O" in build["flags"], build)
    equal(build["libraries"], [])
    for end in found["ends"].values():
        equal((end["weft"], end["commit"]), (build["version"], build["commit"]), end)
    for device, name in (("uct:tcp", "UCX"), ("ofi:tcp", "libfabric")):
        if os.path.exists(os.path.join(tap.build_folder(), "modules", f"weft-{device[:3]}.so")):
            found = document(CXI["write"], *QUICK, "-d", device)
            library, = found["build"]["libraries"]
            check(re.fullmatch(rf"{name} \d+\.\d+\.\d+\S*", library), library)
            equal({end["library"] for end in found["ends"].values()}, {library})
            equal(found["results"][0]["fabric"]["library"], library)


@test
def how_samples_were_taken_is_in_it():
    found = document(CXI["write"], "--local", "-d", "null:delay=20us", "--latency-gap", "0", "-n", "50",
                     "--ops-per-sample", "4", "--warmup", "7")
    result, = found["results"]
    equal((result["count"], result["ops_per_sample"], result["warmup"], result["resolved"],
           result["clamped"]), (50, 4, 7, True, 0))
    check(0 < result["resolution_ns"] < 1000 and 0 < result["method"]["clock_step_ns"] < 1000, result)
    result, = document(CXI["write"], *QUICK, "-d", "null")["results"]
    equal(result["resolved"], result["median_us"] * 1000 >= result["resolution_ns"])


@test
def a_count_that_readers_could_not_take_is_no_whole_number():
    path = os.path.join(tap.folder(), "a.json")
    ended(Process([CXI["write"], "127.0.0.1", "-p", str(tap.free_port()), "--wait", "0", "-n",
                   str(2 ** 64 - 1), "--json", path]), 4)
    equal(option(read_file(path), "iters")["value"], float(2 ** 64 - 1))
    ended(run(tap.tool_path("weft"), "report", path, "-o", "/dev/null"), 0)


@test
def the_columns_of_csv_say_what_was_run_and_where():
    def first(*args):
        process = ended(Process([*args, "--csv", "-"]), 0)
        row, = csv.DictReader(process.out.splitlines())
        return row

    row = first(CXI["write"], "--local", "-d", "null:delay=2us", "--latency-gap", "5", "-n", "60")
    wanted = {"host": os.uname().nodename, "fabric": "null", "device": "null:delay=2us",
              "iterations": "60", "count": "60", "operations": "60", "ops_per_sample": "1"}
    equal({key: row[key] for key in wanted}, wanted, row)
    equal(float(row["gap_us"]), 5.0, row)
    check(row["form"].startswith("null (moves nothing"), row)
    equal(row["version"], document(CXI["write"], *QUICK)["tool"]["version"])
    row = first(CXI["write"], "--local", "-d", "null:delay=2us", "-D", "1", "--latency-gap", "0")
    equal((row["iterations"], float(row["gap_us"])), ("", 0.0), row)
    row = first(PERF, *PERF_QUICK, "-t", "put_lat")
    equal((row["iterations"], row["gap_us"], row["fabric"]), ("2000", "", "soft"), row)


@test
def each_end_says_its_cpus():
    if len(os.sched_getaffinity(0)) < 2:
        skip("one CPU")
    for tool, args in ((CXI["write"], QUICK), (PERF, (*PERF_QUICK, "-t", "put_lat"))):
        ends = document(tool, *args)["ends"]
        allowed = [ends[end]["allowed"] for end in ("client", "server")]
        check(allowed[0] != allowed[1] and all(one.isdigit() for one in allowed), tool, allowed)
        equal(ends["client"]["buffer"], "host")


@test
def a_run_whose_peer_is_lost_leaves_its_document():
    path = os.path.join(tap.folder(), "a.json")
    server = Server(CXI["write"])
    client = Client(CXI["write"], server, "-D", "20", "--latency-gap", "100", "--json", path)
    time.sleep(1.5)
    server.kill()
    ended(client, 4, 15)
    found = read_file(path, client)
    equal((found["status"]["state"], found["status"]["exit"]), ("failed", 4))
    check("lost the server" in found["status"]["reason"], found["status"])
    equal([one["complete"] for one in found["results"]], [False])


@test
def a_run_that_never_began_leaves_its_document():
    path = os.path.join(tap.folder(), "a.json")
    process = ended(Process([CXI["write"], "127.0.0.1", "-p", str(tap.free_port()), "--wait", "0",
                             "--json", path]), 4)
    found = read_file(path, process)
    equal((found["status"]["state"], found["status"]["exit"]), ("failed", 4))
    equal((found["ends"]["server"], found["results"]), (None, []))
    process = ended(Process([CXI["write"], "--local", "-d", "soft:cxi99", "--json", path]), 1)
    check("cxi99" in read_file(path, process)["status"]["reason"], process)


# ---- progress ----

def in_terminal(*argv, seconds=40):
    """What a program writes to a terminal on standard error, its standard output in a pipe."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=follower, env={**os.environ, "TERM": "xterm"})
    os.close(follower)
    shown, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if not select.select([leader], [], [], 0.5)[0]:
            continue
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        shown += piece
    out = process.stdout.read()
    code = process.wait(10)
    os.close(leader)
    return code, out.decode(), shown.decode()


@test
def a_terminal_shows_how_far_a_long_run_is_and_is_clean_behind_it():
    code, out, shown = in_terminal(CXI["write"], "--local", "-D", "2", "-s", "8:16", "--latency-gap",
                                   "0")
    equal(code, 0, shown)
    check(re.search(r"\rsize 8 \(1 of 2\): \d+ % done, \d+ s left\x1b\[K", shown), shown)
    check(re.search(r"\rsize 16 \(2 of 2\): \d+ % done, \d+ s left\x1b\[K", shown), shown)
    shares = [int(share) for share in re.findall(r"(\d+) % done", shown)]
    check(shares == sorted(shares) and shares[-1] <= 100, shares)
    last = shown.rfind(" left\x1b[K")
    check("\r\x1b[K" in shown[last + 8:], repr(shown[last:]))
    check("done" not in out, out)


@alone
def a_short_run_and_a_pipe_show_no_progress():
    code, _out, shown = in_terminal(CXI["write"], *QUICK)
    equal(code, 0)
    check("done" not in shown and "\x1b" not in shown, repr(shown))
    process = ended(Process([CXI["write"], "--local", "-D", "3", "--latency-gap", "0"]), 0)
    check("done" not in process.err and "\r" not in process.err, process)


@test
def a_terminal_shows_that_a_run_is_being_set_up_and_a_pipe_does_not():
    argv = (CXI["write"], "127.0.0.1", "-p", tap.free_port(), "--wait", "3")
    code, out, shown = in_terminal(*argv)
    equal((code, out), (4, ""), shown)
    last = shown.rfind("\rsetting up, ")
    check(re.match(r"\rsetting up, \d s\x1b\[K\r\x1b\[Kcxi_write_lat: ", shown[last:]), repr(shown))
    process = ended(Process(argv), 4)
    check("setting up" not in process.err and "\r" not in process.err, process)


@test
def ucx_perftest_shows_progress_too():
    code, out, shown = in_terminal(PERF, "--local", "-x", "soft", "-t", "put_lat", "--duration", "4",
                                   "-f")
    equal(code, 0, shown)
    check(re.search(r"\rsize 8: \d+ % done, \d+ s left\x1b\[K", shown), shown)
    check("done" not in out, out)


if __name__ == "__main__":
    tap.main()
