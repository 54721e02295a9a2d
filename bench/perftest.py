#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Our ucx_perftest beside UCX's own: whole processes in turn on the same two CPUs, elapsed time over
# iterations, ratios of medians with their 95 % confidence intervals (bootstrap over the repetitions),
# and the peer against itself. A virtual machine may move its CPUs nearer to each other, or apart, while it
# runs; so one cache line goes there and back before and after each group of runs, and those of near CPUs
# are not compared with those of far ones. It judges and asserts nothing: the status is 0 unless a
# program fails.

import argparse
import functools
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import bench
from bench import Failed

PEER = "/usr/bin/ucx_perftest"
RESAMPLES = 2000
APART = 1.8  # a line that takes so many times as long goes between CPUs that are further apart
FEW = 5  # repetitions from which nothing is concluded
NUMBERS = re.compile(r"^(?:Final:)?\s*(\d+)((?:\s+<?[\d.]+){7})\s*$")

# Label, test, layout, size, iterations, transport and device, and whether more is better.
POSIX, TCP = ("posix", "memory"), ("tcp", "lo")
CASES = [
    ("put_lat short 8 B", "put_lat", "short", 8, 500000, POSIX, False),
    ("am_lat short 8 B", "am_lat", "short", 8, 300000, POSIX, False),
    ("am_lat bcopy 4 KiB", "am_lat", "bcopy", 4096, 100000, POSIX, False),
    ("get bcopy 8 B", "get", "bcopy", 8, 5000000, POSIX, False),
    ("fadd 8 B", "fadd", "short", 8, 5000000, POSIX, False),
    ("add_lat 8 B", "add_lat", "short", 8, 500000, POSIX, False),
    ("tcp am_lat short 8 B", "am_lat", "short", 8, 30000, TCP, False),
    ("put_bw bcopy 4 KiB", "put_bw", "bcopy", 4096, 2000000, POSIX, True),
    ("am_bw bcopy 4 KiB", "am_bw", "bcopy", 4096, 300000, POSIX, True),
    ("am_bw short 8 B", "am_bw", "short", 8, 3000000, POSIX, True),
    ("add_mr 8 B", "add_mr", "short", 8, 5000000, POSIX, True),
]
# Of the protocol layer, which chooses the layout; its transports are named in the environment of UCX's own.
for where, few in ((POSIX, 1), (TCP, 20)):
    CASES += [(f"{where[0]} {test} {size} B", test, None, size, count // few, where, more)
              for test, size, count, more in (
                  ("tag_lat", 8, 300000, False), ("tag_lat", 4096, 100000, False),
                  ("tag_bw", 8, 2000000, True), ("tag_bw", 65536, 40000, True),
                  ("ucp_put_lat", 8, 500000, False), ("ucp_am_lat", 8, 300000, False),
                  ("stream_bw", 8, 2000000, True), ("stream_bw", 65536, 40000, True))]


def rate_of(text, argv):
    """Iterations a second from the last row, whose rate has the most digits. A ping-pong counts one
    iteration for there and back, whatever the tool calls a message."""
    rows = [match for match in map(NUMBERS.match, text.splitlines()) if match]
    if not rows:
        raise Failed(f"{' '.join(argv)}: no result:\n{text}")
    numbers = [float(word.lstrip("<")) for word in rows[-1].group(2).split()]
    latency_us, rate = numbers[2], numbers[6]
    halves = "_lat" in argv[argv.index("-t") + 1]
    if halves and latency_us and rate * latency_us / 1e6 > 0.75:
        rate /= 2  # it counts both ways
    return rate


@functools.cache
def without_mpi(peer):
    """A release that is built with MPI takes part in a job of it unless it is told otherwise."""
    done = subprocess.run([peer, "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return ["-P", "0"] if re.search(r"^\s+-P ", done.stdout + done.stderr, re.M) else []


def listens(port):
    """Waits for somebody to listen there."""
    wanted = re.compile(rf":{port:04X} \S+ 0A ")
    for _ in range(200):
        if any(wanted.search(bench.text_of(f"/proc/net/{name}")) for name in ("tcp", "tcp6")):
            return True
        time.sleep(0.01)
    return False


class Perf:
    def __init__(self, build, peer, cpus):
        self.tool = str(build / "tools" / "ucx_perftest")
        self.floor = str(build / "bench" / "floor")
        self.peer = peer
        self.cpus = cpus
        self.begun = time.time_ns() // 1000
        self.groups = []  # of each group of runs: its case, the line before and after, what each reached

    def line(self):
        """Half a round trip of one cache line, in ns; NaN where others had the CPUs all the time."""
        if not Path(self.floor).exists():
            raise Failed(f"{self.floor} is not built: ninja -C {Path(self.floor).parent.parent} bench/floor")
        try:
            return bench.number_of([self.floor, "--cpu", ",".join(map(str, self.cpus)), "line"], "ns")
        except Failed:
            return math.nan

    def port(self):
        """Another one each time, and other ones than a run on other CPUs, which may go on beside this."""
        self.begun += 1
        return 12000 + self.cpus[0] % 16 * 1000 + self.begun % 1000

    def ours(self, words, where):
        target, initiator = self.cpus
        argv = [self.tool, "--local", "-f", "-c", f"{initiator},{target}", *where, *words]
        return rate_of(bench.output_of(argv), argv)

    def theirs(self, words, where):
        """A server that was spoken to too early is of no use any more: begin again."""
        for _ in range(5):
            rate = self.peer_rate(words, where)
            if rate:
                return rate
        raise Failed(f"{self.peer} {' '.join(words)}: no result")

    def peer_rate(self, words, where):
        target, initiator = self.cpus
        port = self.port()
        layer = "-D" not in words
        common = [self.peer, *without_mpi(self.peer), "-p", str(port), *([] if layer else where)]
        env = dict(os.environ)
        if layer:
            env["UCX_TLS"] = where[1]
            if where[3] != "memory":
                env["UCX_NET_DEVICES"] = where[3]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL, "env": env}
        argv = ["taskset", "-c", str(initiator), *common, "-f", *words, "localhost"]
        with subprocess.Popen(["taskset", "-c", str(target), *common], **quiet) as server:
            try:
                if not listens(port):
                    return None
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=20, check=False, env=env)
                rows = any(map(NUMBERS.match, done.stdout.splitlines()))
                return rate_of(done.stdout, argv) if done.returncode == 0 and rows else None
            except subprocess.TimeoutExpired:
                return None
            finally:
                server.kill()

    def repetition(self, cases):
        before = self.line()
        for label, test, layout, size, count, (transport, device), _ in cases:
            words = ["-t", test, "-s", str(size), "-n", str(count)]
            words += ["-D", layout] if layout else []
            where = ["-x", transport, "-d", device]
            runs = [("ours", self.ours, where), ("theirs", self.theirs, where), ("again", self.theirs, where)]
            if transport != "tcp" and (layout or test.startswith("tag_")):
                runs.append(("soft", self.ours, ["-x", "soft"]))
            rates = {who: run(words, at) for who, run, at in random.sample(runs, len(runs))}
            after = self.line()
            self.groups.append((label, (before, after), rates))
            before = after


def distances(groups):
    """The limits between which a line is near or far: all of them, or two ranges if it moved."""
    lines = [line for _, between, _ in groups for line in between if line > 0]
    if not lines or max(lines) < APART * min(lines):
        return [(0.0, math.inf)]
    middle = math.sqrt(max(lines) * min(lines))
    return [(0.0, middle), (middle, math.inf)]


def at_distance(groups, low, high):
    """The groups that were measured at that distance from their beginning to their end."""
    return [group for group in groups if all(low <= line < high for line in group[1])]


def ratio(ours, theirs, more):
    """Latency over latency, or rate over rate; and its interval."""
    def of(a, b):
        a, b = statistics.median(a), statistics.median(b)
        return a / b if more else b / a

    count = len(ours)
    drawn = []
    for _ in range(RESAMPLES):
        picks = [random.randrange(count) for _ in range(count)]
        drawn.append(of([ours[i] for i in picks], [theirs[i] for i in picks]))
    drawn.sort()
    return of(ours, theirs), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)]


def verdict(found, itself, bound, more):
    value, low, high = found
    if value >= bound if more else value <= bound:
        return "holds"
    apart = high < itself[1] if more else low > itself[2]
    return "MISSED" if apart else "not to be told from the peer itself"


def figure(rate, test):
    """What the tools print: time an iteration and way, or iterations a second."""
    if test.endswith(("_bw", "_mr")):
        return f"{rate / 1e6:9.3f} M/s"
    return f"{1e9 / rate / (2 if test.endswith('_lat') else 1):9.1f} ns "


def show_case(case, who, groups):
    label, test, *_, more = case
    ours, theirs, again = ([rates[k] for name, _, rates in groups if name == label and k in rates]
                           for k in (who, "theirs", "again"))
    if not ours:
        return
    words = f"  {label:22}{figure(statistics.median(ours), test):>13}{figure(statistics.median(theirs), test):>14}"
    if len(ours) < FEW:
        print(f"{words}   {len(ours)} repetitions: too few")
        return
    found, itself = ratio(ours, theirs, more), ratio(again, theirs, more)
    bound = (0.95 if more else 1.05) if who == "ours" else 1.0
    if who == "soft" and test in ("am_lat", "tag_lat"):
        bound = 0.5
    print(f"{words}   {found[0]:5.2f} ({found[1]:.2f} - {found[2]:.2f})  {itself[0]:5.2f} ({itself[1]:.2f} - "
          f"{itself[2]:.2f})  {len(ours):3}  {'at least' if more else 'at most'} {bound}: "
          f"{verdict(found, itself, bound, more)}")


def show(groups, cases):
    ranges = distances(groups)
    names = ("CPUs near", "CPUs far") if len(ranges) > 1 else ("CPUs",)
    for name, limits in zip(names, ranges):
        there = at_distance(groups, *limits)
        lines = [line for _, between, _ in there for line in between]
        if not there:
            continue
        print(f"\n{name}: a line takes {min(lines):.0f} to {max(lines):.0f} ns\n"
              f"{'':24}{'ours':>13}{'UCX':>14}   {'ratio':>5} (95 %)         {'UCX/itself':>10}         runs")
        for who, title in (("ours", "The same transport"), ("soft", "soft, beside UCX's posix")):
            if any(who in rates for _, _, rates in there):
                print(title)
            for case in cases:
                show_case(case, who, there)
    moved = len(groups) - sum(len(at_distance(groups, *limits)) for limits in ranges)
    if moved:
        print(f"\n{moved} of {len(groups)} groups of runs left out: the CPUs moved, or others had them")


def arguments():
    parser = argparse.ArgumentParser(description="Our ucx_perftest beside UCX's own.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=21, help="repetitions (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose label contains this")
    parser.add_argument("--cpu", metavar="TARGET,INITIATOR", help="the two CPUs")
    parser.add_argument("--peer", default=PEER, help="UCX's own tool (%(default)s)")
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(asked):
    cases = [case for case in CASES if asked.only in case[0]]
    cpus = tuple(map(int, asked.cpu.split(","))) if asked.cpu else bench.cpus_choose()
    perf = Perf(asked.build, asked.peer, cpus)
    print(f"{bench.machine()}\n{asked.pairs} repetitions in random order; target on CPU {cpus[0]}, "
          f"initiator on CPU {cpus[1]}", flush=True)
    for _ in range(asked.pairs):
        perf.repetition(cases)
    show(perf.groups, cases)


def main():
    try:
        measure(arguments())
    except Failed as reason:
        print(f"perftest.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
