#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# The bandwidth tools beside what the machine and its libraries can do: bare loops over the same
# places, UCX's own tool, a bare loop over libfabric, iperf3. Whole processes in turn on the same two
# CPUs, ratios of medians with their 95 % confidence intervals, the peer against itself, and the best of
# ours against the best of the peer's, which a busy machine disturbs least. It judges and asserts
# nothing: the status is 0 unless a program fails.

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import bench
import perftest
from bench import Failed

LIST, ATOMIC_LIST = 256, 4096
IPERF_SECONDS = 1

# Bare loops and ours are compared by their median lists, which other work on the machine disturbs little;
# other tools by what both print, the average.
AVERAGES = ("ucx", "iperf3", "one_pair")
SCALES = 1.8 if len(os.sched_getaffinity(0)) >= 4 else None

# Label, our command, and the peer: its kind, what it is given, what it is called; and the ratio to
# reach, or None.
CASES = [
    ("soft write 64 KiB", ["cxi_write_bw", "-s", "65536", "-n", "200"],
     ("lists", ["copy", "65536", LIST], "memcpy"), 0.95),
    ("soft write 8 B", ["cxi_write_bw", "-s", "8", "-n", "1000000"],
     ("lists", ["store", "8", LIST], "stores"), 0.8),
    ("soft write 8 B", ["cxi_write_bw", "-s", "8", "-n", "1000000"],
     ("lists", ["words", "8", LIST], "words copied"), None),
    ("soft atomic SUM 8 B", ["cxi_atomic_bw", "-n", "15000"],
     ("lists", ["add", "8", ATOMIC_LIST], "locked adds"), 0.9),
    ("soft write 4 KiB, --procs 2", ["cxi_write_bw", "-s", "4096", "-n", "6000", "--procs", "2"],
     ("one_pair", ["cxi_write_bw", "-s", "4096", "-n", "6000"], "one pair"), SCALES),
    ("uct:posix write 4 KiB, one place", ["cxi_write_bw", "-d", "uct:posix", "-s", "4096", "-n",
                                          "12000", "--buf-sz", "4096"],
     ("ucx", ["-t", "put_bw", "-D", "bcopy", "-s", "4096", "-n", "3000000"], "ucx put_bw"), 1.0),
    ("uct:posix write 4 KiB", ["cxi_write_bw", "-d", "uct:posix", "-s", "4096", "-n", "6000"],
     ("ucx", ["-t", "put_bw", "-D", "bcopy", "-s", "4096", "-n", "3000000"], "ucx put_bw"), None),
    ("ofi:tcp send 64 KiB", ["cxi_send_bw", "-d", "ofi:tcp", "-s", "65536", "-n", "20"],
     ("rdm", ["tcp", "65536", LIST, "20"], "libfabric"), 0.97),
    ("ofi:tcp send 64 KiB", ["cxi_send_bw", "-d", "ofi:tcp", "-s", "65536", "-n", "20"],
     ("iperf3", [], "iperf3"), None),
]


def bandwidth_of(text, argv, average):
    try:
        result, = json.loads(text)["results"]
    except ValueError:
        raise Failed(f"{' '.join(argv)}: no document:\n{text}") from None
    typical = result["size"] * result["ops_per_sample"] / result["median_us"]
    return result["bytes_per_s"] / 1e6 if average else typical


class Lists:
    """Everything in MB/s of 10^6 bytes."""

    def __init__(self, build, cpus):
        self.build, self.cpus = build, cpus
        self.perf = perftest.Perf(build, perftest.PEER, cpus)
        self.seen = {}

    def add(self, key, value):
        self.seen.setdefault(key, []).append(value)

    def ours(self, command, average):
        target, initiator = self.cpus
        # Several pairs have CPUs of their own.
        cpus = [] if "--procs" in command else ["--cpu", f"{initiator},{target}"]
        argv = [str(self.build / "tools" / command[0]), "--local", *cpus, *command[1:], "--json", "-"]
        return bandwidth_of(bench.output_of(argv), argv, average)

    def one_pair(self, command):
        return self.ours(command, True)

    def lists(self, words):
        return self.bare("lists", words)

    def rdm(self, words):
        return self.bare("rdm", words)

    def bare(self, program, words):
        argv = [str(self.build / "bench" / program), *map(str, words),
                f"{self.cpus[0]},{self.cpus[1]}"]
        return bench.number_of(argv, "MB/s")

    def ucx(self, words):
        rate = None
        for _ in range(5):
            rate = rate or self.perf.peer_rate(words, ["-x", "posix", "-d", "memory"])
        if not rate:
            raise Failed(f"{perftest.PEER} {' '.join(words)}: no result")
        return rate * int(words[words.index("-s") + 1]) / 1e6

    def iperf3(self, _):
        target, initiator = self.cpus
        port = self.perf.port()
        where = ["-p", str(port)]
        with subprocess.Popen(["iperf3", "-s", "-1", *where, "-A", str(target)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                if not perftest.listens(port):
                    raise Failed("iperf3 -s does not listen")
                said = bench.output_of(["iperf3", "-c", "127.0.0.1", *where, "-A", str(initiator),
                                        "-t", str(IPERF_SECONDS), "-l", "65536", "-J"])
                return json.loads(said)["end"]["sum_received"]["bits_per_second"] / 8e6
            finally:
                server.kill()

    def case(self, number):
        _, command, (kind, words, _), _ = CASES[number]
        peer = getattr(self, kind)
        runs = [("ours", lambda: self.ours(command, kind in AVERAGES)), ("theirs", lambda: peer(words)),
                ("again", lambda: peer(words))]
        random.shuffle(runs)
        for who, run in runs:
            self.add((who, number), run())


def show(lists, numbers):
    print(f"\n{'':34}{'ours':>9}{'peer':>10} MB/s  {'ratio':>5} (95 %)         {'peer/itself':17} "
          f"{'best':>5}")
    for number in numbers:
        label, _, (_, _, called), bound = CASES[number]
        ours, theirs, again = (lists.seen[who, number] for who in ("ours", "theirs", "again"))
        found, itself = (perftest.ratio(values, theirs, True) for values in (ours, again))
        judged = f"at least {bound}: {perftest.verdict(found, itself, bound, True)}" if bound else ""
        best = max(ours) / max(theirs)
        line = (f"  {label:32}{statistics.median(ours):9.0f}{statistics.median(theirs):10.0f}       "
                f"{found[0]:5.2f} ({found[1]:.2f} - {found[2]:.2f})  {itself[0]:5.2f} "
                f"({itself[1]:.2f} - {itself[2]:.2f})  {best:5.2f}  {called:14} {judged}")
        print(line.rstrip())


def missing(kind):
    """Why a peer cannot be run here, or None."""
    program = {"ucx": perftest.PEER, "iperf3": "iperf3"}.get(kind)
    return f"{program} is not installed" if program and not shutil.which(program) else None


def measure(asked):
    cpus = tuple(map(int, asked.cpu.split(","))) if asked.cpu else bench.cpus_choose()
    lists = Lists(asked.build, cpus)
    print(f"{bench.machine()}\n{asked.pairs} repetitions in random order; target on CPU {cpus[0]}, "
          f"initiator on CPU {cpus[1]}", flush=True)
    numbers = []
    for number, (label, _, (kind, _, called), _) in enumerate(CASES):
        if asked.only not in f"{label}, {called}":
            continue
        if missing(kind):
            print(f"  {label} beside {called}: left out: {missing(kind)}")
        else:
            numbers.append(number)
    for _ in range(asked.pairs):
        for number in numbers:
            lists.case(number)
    show(lists, numbers)


def main():
    parser = argparse.ArgumentParser(description="The bandwidth tools beside their peers.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=21, help="repetitions (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose label or peer contains this")
    parser.add_argument("--cpu", metavar="TARGET,INITIATOR", help="the two CPUs")
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    try:
        measure(parser.parse_args())
    except Failed as reason:
        print(f"lists.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
