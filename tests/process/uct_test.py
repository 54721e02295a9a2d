# SPDX-License-Identifier: BSD-3-Clause
"""The tools on UCX's transports: how a device is named, what is refused and in which words, what a
transport lacks, and what is left when one end is killed."""
import sys

sys.dont_write_bytecode = True
import os
import re
import shutil

import tap
from tap import (Client, Server, check, ended, equal, header_value, one_sentence, rows_of, run,
                 sentences, test)

QUICK = ("--local", "-n", "200", "--latency-gap", "0")


def tool(word):
    return tap.tool_path(f"cxi_{word}_lat")


def good(word, device, *args):
    """A local run that succeeds, or a skip where the transport is not there."""
    process = run(tool(word), "-d", device, *QUICK, *args)
    if process.code == 1 and "there is no" in process.err:
        tap.skip(process.err.strip())
    return ended(process, 0)


def refused(word, device, code, *args):
    process = ended(run(tool(word), "-d", device, *QUICK, *args), code)
    return one_sentence(process, f"cxi_{word}_lat").partition(": ")[2]


# ---- names ----

@test
def a_transport_alone_takes_the_device_of_the_control_connection():
    process = good("write", "uct:tcp")
    check(header_value(process, "Fabric").startswith("uct tcp/lo (UCX "), process)


@test
def a_device_alone_takes_a_transport_that_has_it():
    process = good("write", "uct:/memory")
    check("/memory (UCX " in header_value(process, "Fabric"), process)


@test
def what_is_not_there_is_refused_by_its_name_and_what_there_is_listed():
    for word in ("nosuch", "nosuch/memory", "posix/nosuch", "/nosuch", "/", "x" * 60, "a/b/c"):
        sentence = refused("write", f"uct:{word}", 1)
        check(f'"{word.removeprefix("/")}"' in sentence and "posix/memory" in sentence, sentence)


@test
def no_name_at_all_lists_what_there_is():
    for device in ("uct", "uct:"):
        check("posix/memory" in refused("write", device, 1), device)


# ---- what there is, checked byte by byte ----

@test
def writes_reads_sends_and_atomics_in_shared_memory_are_right():
    for device in ("uct:posix/memory", "uct:sysv/memory"):
        for word in ("write", "read", "send"):
            process = good(word, device, "-s", "1:128K", "--verify")
            equal(len(rows_of(process)), 18, process)
        good("send", device, "-s", "1:128K", "--verify", "-R")
        for args in ((), ("--fetching",), ("--fetching", "-A", "CSWAP"), ("-T", "INT32")):
            good("atomic", device, "--verify", *args)


@test
def writes_and_sends_by_tcp_are_right():
    for word in ("write", "send"):
        good(word, "uct:tcp/lo", "-s", "1:1M", "--verify")


@test
def writes_and_reads_by_cma_are_right():
    for word in ("write", "read"):
        good(word, "uct:cma/memory", "-s", "1:128K", "--verify")


# ---- what there is not ----

@test
def what_a_transport_lacks_is_refused_by_name():
    good("write", "uct:cma/memory")
    for word, device, cannot in (("send", "cma/memory", "send"), ("read", "tcp/lo", "read"),
                                 ("atomic", "tcp/lo", "do atomics")):
        sentence = refused(word, f"uct:{device}", 1)
        check(re.fullmatch(rf"uct {device} \(UCX [\d.]+\) cannot {cannot}", sentence), sentence)
    check("has no" in refused("atomic", "uct:posix/memory", 1, "-T", "DOUBLE"))


@test
def a_transport_of_one_process_is_refused_between_two():
    # UCX calls its device memory0, since 1.15 memory.
    sentence = refused("write", "uct:self/memory0", 1)
    if "there is no" in sentence:
        sentence = refused("write", "uct:self/memory", 1)
    check("with itself only" in sentence, sentence)


@test
def a_transport_of_one_process_is_not_listed():
    process = ended(run(tap.tool_path("ucx_perftest"), "--list"), 0)
    check("uct:posix/memory" in process.out and "uct:self" not in process.out, process)


@test
def huge_pages_are_refused_where_the_transport_places_the_memory():
    check("huge pages" in refused("write", "uct:posix/memory", 1, "--use-hp", "2M"))


# ---- what UCX does to a process ----

@test
def what_ucx_logs_goes_to_standard_error():
    perftest = tap.tool_path("ucx_perftest")
    args = ("--local", "-t", "am_lat", "-x", "posix", "-n", "100", "-v", "-f")
    process = ended(run(perftest, *args, env={"UCX_LOG_LEVEL": "debug"}), 0)
    check("UCX  DEBUG" in process.err, process)
    equal(len(process.out.splitlines()), 2, process.out[:2000])
    path = os.path.join(tap.folder(), "log")
    process = ended(run(perftest, *args, env={"UCX_LOG_LEVEL": "debug", "UCX_LOG_FILE": path}), 0)
    check("UCX  DEBUG" not in process.err and os.path.getsize(path) > 0, process)


@test
def nothing_of_ours_looks_at_memory_that_was_never_written():
    if tap.SANITIZED or not shutil.which("valgrind"):
        tap.skip("valgrind is not installed, or not for this build")
    perftest = tap.tool_path("ucx_perftest")
    server = Server(perftest, "-x", "posix", "--timeout", "60")
    client = Client(perftest, server, "-t", "am_lat", "-x", "posix", "-n", "50", "-w", "10",
                    "--timeout", "60", prefix=("valgrind", "-q"))
    ended(client, 0)
    ours = {name for _, _, names in os.walk(os.path.join(os.path.dirname(__file__), "../../src"))
            for name in names if name.endswith(".c")}
    first = re.findall(r"==\d+==    at .*\((\w+\.c):\d+\)", client.err)
    first += re.findall(r"==\d+==    at .*\n==\d+==    by .*\((\w+\.c):\d+\)", client.err)
    equal([name for name in first if name in ours], [], client)


# ---- a killed end ----

@test
def the_end_that_is_left_says_so_and_leaves_nothing_behind():
    before = tap.shared_memory()
    for device in ("uct:posix/memory", "uct:tcp/lo"):
        for word in ("write", "send"):
            server = Server(tool(word), "-d", device)
            client = Client(tool(word), server, "-d", device, "-D", "30", "--latency-gap", "0",
                            "--timeout", "5")
            client.wait_for(r"^Remote \(server\)")
            server.kill()
            ended(client, 4, 8)
            equal(len(sentences(client)), 1, client)
    left = {name for name in tap.shared_memory() - before if name.startswith("ucx")}
    equal(left, set())


if __name__ == "__main__":
    tap.main(workers=1)
