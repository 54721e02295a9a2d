# SPDX-License-Identifier: BSD-3-Clause
"""Signals at any moment: what a tool has promised is there, and the exit code says which signal it was."""
import os
import random
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import documents
import schema
import tap
from tap import Process, check, ended, equal, in_parallel, one_sentence, test

SEND, PERF, WEFT = (tap.tool_path(name) for name in ("cxi_send_lat", "ucx_perftest", "weft"))
QUICK = ("--local", "-d", "null", "-n", "10", "--latency-gap", "0")
NUMBERS = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}


def catches(process, number):
    """Has its main begun? Before, only the system can answer."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            mask = re.search(r"^SigCgt:\s*(\w+)", file.read(), re.M)
    except OSError:
        return False
    return bool(mask and int(mask[1], 16) >> (number - 1) & 1)


def kill_early(number, delay_s, begun):
    """Kills a long run after a delay, counted from the start or from the first line of main. Returns
    whether main had begun."""
    path = os.path.join(tap.folder(), "result.json")
    process = Process([SEND, "--local", "-D", "60", "--json", path], limit=30)
    until = time.monotonic() + 10
    while begun and not catches(process, number) and time.monotonic() < until:
        time.sleep(0.0005)
    time.sleep(delay_s)
    caught = catches(process, number)
    process.kill(number)
    process.wait()
    if not caught:
        check(process.code in (NUMBERS[number], -number), process)
        return False
    equal(process.code, NUMBERS[number], process)
    with open(path, encoding="utf-8") as file:
        found = schema.read(file.read())
    equal(found["status"]["state"], "interrupted", found["status"])
    equal(found["status"]["exit"], NUMBERS[number])
    return True


@test
def a_signal_at_an_early_moment_leaves_the_document_and_its_exit_code():
    rng = random.Random(14)
    rounds = [(rng.choice(list(NUMBERS)), rng.uniform(0, 0.03), i % 2) for i in range(60)]
    caught = in_parallel(lambda one: kill_early(*one), rounds, 4)
    check(sum(caught) >= 30, f"in {sum(caught)} of 60 rounds main had begun")
    tap.note(f"in {sum(caught)} of 60 rounds main had begun")


def maps(process, name):
    try:
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
            return name in file.read()
    except OSError:
        return False


@test
def a_signal_while_the_options_are_checked_leaves_the_document_too():
    path = os.path.join(tap.folder(), "result.json")
    process = Process([os.path.join(tap.doubles_folder(), "gpu_cxi_send_lat"), "--local", "-D", "60",
                       "--tx-gpu", "0", "--json", path], limit=30,
                      env={"WEFT_TEST_GPU": tap.doubles_folder(), "FAKE_CUDA_GPUS": "1",
                           "FAKE_INIT_MS": "1000"})
    process.wait_until(lambda: maps(process, "double-libcuda"), 20)
    process.kill(signal.SIGTERM)
    ended(process, 143)
    with open(path, encoding="utf-8") as file:
        equal(schema.read(file.read())["status"]["state"], "interrupted")


@test
def a_signal_while_a_batch_file_is_opened_ends_the_tool_with_its_exit_code():
    pipe = os.path.join(tap.folder(), "batch")
    os.mkfifo(pipe)
    for number, code in NUMBERS.items():
        process = Process([PERF, "--local", "-b", pipe], limit=30)
        process.wait_until(lambda p=process, n=number: catches(p, n), 10)
        time.sleep(0.05)
        process.kill(number)
        ended(process, code)
        one_sentence(process, "ucx_perftest")


@test
def a_signal_while_a_page_waits_for_its_reader_ends_the_tool_with_its_exit_code():
    place = tap.folder()
    pipe = os.path.join(place, "page.html")
    os.mkfifo(pipe)
    path = documents.write(os.path.join(place, "a.json"), documents.document())
    process = Process([WEFT, "report", path, "-o", pipe], limit=30)
    process.wait_until(lambda: catches(process, signal.SIGTERM), 10)
    time.sleep(0.05)
    process.kill(signal.SIGTERM)
    ended(process, 143)


def limited(*argv, stdout=None):
    """With files of at most one block."""
    return Process(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *argv], limit=30, stdout=stdout)


@test
def a_file_that_may_not_grow_fails_with_a_sentence():
    place = tap.folder()
    process = ended(limited(SEND, *QUICK, "--json", os.path.join(place, "a.json")), 1)
    check("a.json: cannot be written: File too large" in one_sentence(process, "cxi_send_lat"), process)
    equal(os.listdir(place), [])
    with open(os.path.join(place, "table"), "w", encoding="utf-8") as table:
        process = ended(limited(SEND, *QUICK, "-s", "1:1M", stdout=table), 1)
    check("File too large" in process.err, process)
    process = ended(limited(PERF, "--local", "-x", "null", "-t", "put_lat", "-n", "10", "--csv",
                            os.path.join(place, "a.csv")), 1)
    check("a.csv: cannot be written: File too large" in process.err, process)


if __name__ == "__main__":
    tap.main()
