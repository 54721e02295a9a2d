#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# cxi_send_lat on libfabric beside libfabric's own fi_pingpong: the same provider, 64 bytes, whole
# processes in turn on the same two CPUs, mean half round trips, ratios of medians with their 95 %
# confidence intervals, and the peer against itself. Also what it costs to start a tool that does not
# use libfabric. It judges and asserts nothing.

import argparse
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import bench
import perftest
from bench import Failed

PEER = "fi_pingpong"
# Provider as we and as the peer name it, and iterations.
CASES = [("tcp", "tcp;ofi_rxm", ["-d", "lo"], 100000), ("shm", "shm", [], 300000)]
SIZE = 64
ROW = re.compile(rf"^{SIZE}\s+.*?\s([\d.]+)\s+[\d.]+\s*$", re.MULTILINE)
START_UPS = 21


class Fabric:
    def __init__(self, build, cpus):
        self.build, self.cpus = build, cpus
        self.port = 22000 + (time.time_ns() // 1000) % 10000
        self.seen = {}

    def add(self, key, value):
        self.seen.setdefault(key, []).append(value)

    def ours(self, key, provider, count):
        target, initiator = self.cpus
        argv = [str(self.build / "tools" / "cxi_send_lat"), "--local", "-d", f"ofi:{provider}",
                "-s", str(SIZE), "-n", str(count), "--latency-gap", "0", "--warmup", "1000",
                "--clock", "cycles", "--report-all", "--cpu", f"{initiator},{target}"]
        samples = bench.samples_ns_of(bench.output_of(argv))
        self.add(key, statistics.fmean(samples))
        self.add(f"{key} median", statistics.median(samples))

    def theirs(self, key, provider, more, count):
        for _ in range(5):
            mean_ns = self.peer_mean(provider, more, count)
            if mean_ns:
                self.add(key, mean_ns)
                return
        raise Failed(f"{PEER} -p {provider}: no result")

    def peer_mean(self, provider, more, count):
        target, initiator = self.cpus
        self.port += 1
        common = [PEER, "-p", provider, "-e", "rdm", *more, "-I", str(count), "-S", str(SIZE)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL}
        with subprocess.Popen(["taskset", "-c", str(target), *common, "-B", str(self.port)],
                              **quiet) as server:
            try:
                if not perftest.listens(self.port):
                    return None
                done = subprocess.run(
                    ["taskset", "-c", str(initiator), *common, "-P", str(self.port), "127.0.0.1"],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                    check=False)
                found = ROW.search(done.stdout)
                return float(found.group(1)) * 1000 if found else None
            except subprocess.TimeoutExpired:
                return None
            finally:
                server.kill()

    def repetition(self):
        for name, peer_name, more, count in CASES:
            runs = [lambda n=name, c=count: self.ours(f"ours {n}", n, c),
                    lambda n=name, p=peer_name, m=more, c=count: self.theirs(f"theirs {n}", p, m, c),
                    lambda n=name, p=peer_name, m=more, c=count: self.theirs(f"again {n}", p, m, c)]
            random.shuffle(runs)
            for run in runs:
                run()

    def start_ups(self):
        tool = str(self.build / "tools" / "cxi_send_lat")
        for _ in range(START_UPS):
            self.add("/bin/true", bench.wall_ms(["/bin/true"], 0))
            self.add("refused", bench.wall_ms([tool, "-n", "8x"], 2))


def show(fabric):
    print(f"\n{'':22}{'ours':>10}{'fi_pingpong':>14}   {'ratio':>5} (95 %)         "
          f"{'peer/itself':>10}")
    for name, *_ in CASES:
        theirs, again = fabric.seen[f"theirs {name}"], fabric.seen[f"again {name}"]
        for key, label in ((f"ours {name}", "mean"), (f"ours {name} median", "median")):
            # perftest's ratios are of rates.
            found = perftest.ratio([1 / v for v in fabric.seen[key]], [1 / v for v in theirs], False)
            itself = perftest.ratio([1 / v for v in again], [1 / v for v in theirs], False)
            print(f"  {name} send {SIZE} B, {label:8}{statistics.median(fabric.seen[key]):8.0f} ns"
                  f"{statistics.median(theirs):11.0f} ns   {found[0]:5.2f} ({found[1]:.2f} - "
                  f"{found[2]:.2f})  {itself[0]:5.2f} ({itself[1]:.2f} - {itself[2]:.2f})   "
                  f"at most 1.05: {perftest.verdict(found, itself, 1.05, False)}")
    print(f"  start-up without libfabric: {statistics.median(fabric.seen['refused']):.1f} ms, "
          f"/bin/true {statistics.median(fabric.seen['/bin/true']):.1f} ms")


def main():
    parser = argparse.ArgumentParser(description="cxi_send_lat on libfabric beside fi_pingpong.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=21, help="repetitions (%(default)s)")
    parser.add_argument("--cpu", metavar="TARGET,INITIATOR", help="the two CPUs")
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not shutil.which(PEER):
        print(f"libfabric.py: {PEER} is not installed", file=sys.stderr)
        return 1
    try:
        cpus = tuple(map(int, asked.cpu.split(","))) if asked.cpu else bench.cpus_choose()
        fabric = Fabric(asked.build, cpus)
        print(f"{bench.machine()}\n{asked.pairs} repetitions in random order", flush=True)
        for _ in range(asked.pairs):
            fabric.repetition()
        fabric.start_ups()
        show(fabric)
    except Failed as reason:
        print(f"libfabric.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
