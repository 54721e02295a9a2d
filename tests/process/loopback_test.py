# SPDX-License-Identifier: BSD-3-Clause
"""cxi_gpu_loopback_bw: what it prints, what scripts in the field read out of it, and how it ends. The
texts are transcripts/loopback_*.txt, the command in the first line. GPUs are doubles (fake_gpu.c)."""
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
import transcripts
from tap import (Process, Traces, alone, check, ended, equal, header_value, lines_of, mask_fields,
                 one_sentence, run, sentences, test)

NAME = "cxi_gpu_loopback_bw"
TOOL = tap.tool_path(NAME)
QUICK = ("-i", "3", "-n", "64", "-s", "4K")
ADDED = ("Fabric           : ", "Warmup Lists     : ")
FOLDER = tap.doubles_folder()
ON_GPUS = os.path.join(FOLDER, "gpu_" + NAME)
GPUS = {"WEFT_TEST_GPU": FOLDER, "FAKE_CUDA_GPUS": "2"}


def good(process):
    ended(process, 0)
    equal([said for said in sentences(process) if "disturbed while" not in said and
           "Found" not in said], [], process)
    return process


# ---- what it prints ----

def masked(line):
    """Sizes stay, counts and figures do not."""
    match = re.fullmatch(r"( *\d+)((?:  +[\d.]+){3})", line)
    return match[1] + mask_fields(match[2]) if match else line


def transcript(name):
    typed, *wanted = lines_of(transcripts.read(f"loopback_{name}"))
    equal(typed.split()[:2], ["$", NAME])
    process = good(run(ON_GPUS, *typed.split()[2:], env=GPUS))
    got = [line for line in lines_of(process.out) if not line.startswith(ADDED)]
    equal(len(lines_of(process.out)) - len(got), len(ADDED), "lines of ours", process)
    equal([masked(line) for line in got], [masked(line) for line in wanted], process)


for _name in ("system", "duration", "gpu", "one_gpu"):
    tap.add(f"the transcript of {_name}", transcript, _name)


@alone
def bandwidth_is_payload_by_time():
    process = ended(run(TOOL, "-i", "3", "-n", "640", "-d", "null:delay=20ms"), 0)
    size, count, gbits, packets = map(float, lines_of(process.out)[-2].split())
    equal((size, count), (524288, 3 * 640), process)
    # 64 are held at a time: 10 delays a list.
    tap.between(count * size * 8 / gbits / 1e9, 0.99 * 3 * 0.2, 3 * 0.4, process)
    tap.between(packets / (gbits / 8e-3 / 2048), 0.99, 1.01, process)


# ---- scripts in the field ----

@test
def reframe_finds_the_bandwidth():
    process = good(run(TOOL, "-i", "2", "-n", "8"))
    equal(len(re.findall(r"CXI Loopback Bandwidth Test", process.out)), 1)
    found = re.findall(r"^\s+\d+\s+\d+\s+(\S+)\s+\S+", process.out, re.M)
    equal(len(found), 1, process)
    row = lines_of(process.out)[-2].split()
    equal((row[2], row[:2]), (found[0], ["524288", "16"]))
    check(float(found[0]) > 0)


@test
def the_vendors_script_finds_the_bandwidth_of_every_node():
    folder = tap.folder()
    rows = {}
    for node in ("node1", "node2"):
        process = good(run(TOOL, "-i", "2", "-n", "8"))
        rows[node] = lines_of(process.out)[-2].split()[2]
        with open(os.path.join(folder, node), "w", encoding="ascii") as file:
            file.write(process.out)
    script = "grep 524288 node* | grep -v Size | awk '{print $1, $4}'"
    shown = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True,
                           timeout=20, check=True)
    equal(lines_of(shown.stdout), [f"{node}: {rows[node]}" for node in sorted(rows)])


# ---- memory ----

@test
def every_byte_arrives_wherever_it_lies():
    for words in ((), ("-t", "0"), ("-r", "1"), ("-t", "0", "-r", "0"), ("-t", "1", "-r", "0")):
        for size in ("1", "4096", "512K", "3M"):
            process = good(run(ON_GPUS, "-i", "2", "-n", "10", "-s", size, "--verify", *words,
                               env=GPUS))
            equal(header_value(process, "TX Mem"), f"GPU {words[1]}" if "-t" in words else "System")


@test
def a_list_of_copies_is_waited_for_once():
    path = os.path.join(tap.folder(), "counts")
    good(run(ON_GPUS, "-i", "4", "-n", "1000", "-s", "4K", "-r", "0",
             env={**GPUS, "FAKE_COUNTS": path}))
    with open(path, encoding="ascii") as file:
        (_, copies, waits), = map(str.split, file)
    equal(int(copies) - int(waits), 5 * 999)


@test
def a_gpu_that_is_not_there_is_refused():
    for option in ("-t", "-r"):
        process = ended(run(ON_GPUS, *QUICK, option, "7", env=GPUS), 1)
        check("no GPU 7: there are 2 GPUs" in one_sentence(process, "gpu_" + NAME), process)
        equal(process.out, "")


@test
def a_copy_that_fails_ends_it():
    process = ended(run(ON_GPUS, *QUICK, "-r", "0", env={**GPUS, "FAKE_FAULT": "copy@40"}), 1)
    said = [line for line in sentences(process) if "Found" not in line]
    equal(len(said), 1, process)
    check("copying 4096 bytes from the host" in said[0], process)


# ---- options ----

@test
def its_letters_are_its_own():
    process = good(run(TOOL, "-i2", "-n", "100", "-s", "1K", "-v", "1", "-d", "soft:cxi1"))
    equal([header_value(process, label) for label in
           ("Device", "Service ID", "Iterations", "Write Size (B)", "Cmds per iter", "Hugepages")],
          ["soft:cxi1", "1", "2", "1024", "100", "Disabled"])
    equal(lines_of(process.out)[-2].split()[:2], ["1024", "200"])


@test
def values_are_refused_as_by_its_siblings():
    for words in (("-i", "0"), ("-i", "x"), ("-n", "0"), ("-n", "16383"), ("-s", "0"), ("-s", "8x"),
                  ("-s", "4294967296"), ("-s", "8:64"), ("-t", "-1"), ("-g", "ARM"), ("-D", "0"),
                  ("-v", "0"), ("--use-hp", "3M"), ("--warmup", "-1"), ("--local",), ("-p", "1"),
                  ("-b",), ("--cpu", "0,1")):
        process = ended(run(TOOL, *words), 2)
        one_sentence(process, NAME)
        equal(process.out, "")


@test
def a_stray_argument_is_ignored_with_a_warning():
    process = ended(run(TOOL, "10.1.1.8", *QUICK), 0)
    check('ignored: "10.1.1.8"' in process.err, process)
    equal(lines_of(process.out)[-2].split()[:2], ["4096", "192"])


@test
def conditions_and_documents_are_those_of_the_others():
    folder = tap.folder()
    path, sheet = os.path.join(folder, "a.json"), os.path.join(folder, "a.csv")
    process = ended(run(TOOL, *QUICK, "-i", "40", "--json", path, "--csv", sheet, "--percentiles", "50",
                        "--fail-if", "p50 > 1ns"), 3)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    equal((document["tool"]["name"], document["results"][0]["operations"]), (NAME, 40 * 64))
    with open(sheet, encoding="utf-8") as file:
        equal(len(file.read().splitlines()), 2)
    check("p50[us]" in process.out, process)


# ---- how it ends ----

@test
def a_signal_ends_it_with_what_was_measured():
    traces = Traces()
    process = Process([TOOL, "-D", "1000", "-n", "64", "-s", "4K"], env=traces.env)
    process.wait_for("^Hugepages")
    traces.watch(process)
    process.kill(signal.SIGINT)
    ended(process, 130, 20)
    check("Interrupted" in process.out, process)
    traces.nothing()


@alone
def what_takes_longer_than_the_timeout_ends_it():
    process = ended(run(TOOL, *QUICK, "-d", "null:delay=9s", "--timeout", "1"), 4)
    check("did not complete within 1 s" in process.err, process)


if __name__ == "__main__":
    tap.main()
