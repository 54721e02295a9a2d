#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# What several threads add: ucx_perftest --local with one thread at each end and with more, whole
# processes in turn; ratios of the message rates to those of one thread, with their 95 % confidence
# intervals, and one thread against itself. Every thread has a CPU of its own where there are enough:
# otherwise the ratio is that of threads that take turns. It judges and asserts nothing.

import argparse
import os
import random
import statistics
import sys
from pathlib import Path

import bench
import perftest
from bench import Failed

SECONDS = "1"
CASES = {"soft put_lat 8 B": ["-x", "soft", "-t", "put_lat"],
         "soft am_lat 8 B": ["-x", "soft", "-t", "am_lat"],
         "soft put_bw 8 B": ["-x", "soft", "-t", "put_bw"],
         "soft am_bw 8 B": ["-x", "soft", "-t", "am_bw"],
         "soft put_bw 64 KiB": ["-x", "soft", "-t", "put_bw", "-s", "64K"],
         "null put_bw 8 B": ["-x", "null", "-t", "put_bw"]}
AGAIN = "again"
LEAST = {"soft put_lat 8 B": 1.8, "soft am_lat 8 B": 1.8, "soft put_bw 8 B": 1.8}  # of two threads


def cores_first():
    """The CPUs of this process, one thread of each core first."""
    def second(cpu):
        core = bench.text_of(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        return cpu != min(bench.cpus_of(core) or [cpu])

    return sorted(os.sched_getaffinity(0), key=lambda cpu: (second(cpu), cpu))


def cpu_list(cpus, threads):
    """CLIENT/SERVER, a CPU for each thread; none if there are too few."""
    if 2 * threads > len(cpus):
        return []
    ends = cpus[:threads], cpus[threads:2 * threads]
    return ["-c", "/".join(",".join(map(str, end)) for end in ends)]


def once(build, case, threads, cpus):
    argv = [str(build / "tools" / "ucx_perftest"), "--local", *CASES[case], "--duration", SECONDS,
            "--interval", "0", "-f", "-T", str(threads), *cpu_list(cpus, threads)]
    rows = [line.split() for line in bench.output_of(argv).splitlines()
            if perftest.NUMBERS.match(line)]
    if not rows:
        raise Failed(f"{' '.join(argv)}: no result")
    return float(rows[-1][-1])


def measure(build, pairs, counts, cases, cpus):
    seen = {}
    ways = [1, AGAIN, *counts]
    for _ in range(pairs):
        for case in cases:
            for way in random.sample(ways, len(ways)):
                rate = once(build, case, 1 if way == AGAIN else way, cpus)
                seen.setdefault((case, way), []).append(rate)
    return seen


def show(seen, counts, cases, cpus):
    print(f"\n{'rate':22}{'1 thread':>14}   {'again':>20}"
          + "".join(f"   {f'{n} threads':>20}" for n in counts))
    for case in cases:
        one = seen[case, 1]
        line = f"  {case:20}{statistics.median(one) / 1e6:10.3f} M/s"
        for way in (AGAIN, *counts):
            value, low, high = perftest.ratio(seen[case, way], one, True)
            line += f"   {value:5.2f} ({low:5.2f} -{high:6.2f})"
            crowded = way != AGAIN and 2 * way > len(cpus)
            if way == 2 and case in LEAST and not crowded:
                line += f" {'holds' if value >= LEAST[case] else 'MISSED'}: {LEAST[case]}"
        print(line)
    short = [str(n) for n in counts if 2 * n > len(cpus)]
    if short:
        print(f"Fewer CPUs than threads of both ends ({len(cpus)}), so that they take turns: "
              f"{', '.join(short)} threads.")


def arguments():
    parser = argparse.ArgumentParser(description="What several threads add to the message rate.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=21, help="repetitions (%(default)s)")
    parser.add_argument("--threads", default="2,4", help="numbers of threads (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose label contains this")
    parser.add_argument("--cpus", default="", help="one by one (default: all of this process)")
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    asked = arguments()
    counts = [int(word) for word in asked.threads.split(",")]
    cpus = ([int(word) for word in asked.cpus.split(",")] if asked.cpus
            else cores_first())
    cases = [case for case in CASES if asked.only in case]
    print(f"{bench.machine()}\n{asked.pairs} repetitions in random order, {SECONDS} s each, on CPUs "
          f"{','.join(map(str, cpus))}", flush=True)
    try:
        show(measure(asked.build, asked.pairs, counts, cases, cpus), counts, cases, cpus)
    except Failed as reason:
        print(f"threads.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
