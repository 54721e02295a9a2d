#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# What writing documents and showing progress does to the figures: the same run plain, with --json and
# --csv, and on a terminal, whole processes in turn; ratios of the medians that the runs print, with
# their 95 % confidence intervals, and the plain run against itself. It judges and asserts nothing.

import argparse
import os
import pty
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import bench
import perftest
from bench import Failed

# Long enough for progress to be shown.
SECONDS = "3"
CASES = {"write on null, 500 ns": ["cxi_write_lat", "-d", "null:delay=500ns"],
         "send on soft": ["cxi_send_lat"]}
WAYS = ("plain", "documents", "terminal", "again")


def on_terminal(argv):
    """What it prints, while its standard error is a terminal that shows progress."""
    leader, follower = pty.openpty()
    try:
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=follower, text=True,
                              env={**os.environ, "TERM": "xterm"}) as process:
            out, _ = process.communicate(timeout=bench.DEADLINE_S)
            if process.returncode:
                raise Failed(f"{' '.join(argv)}: status {process.returncode}")
    finally:
        os.close(follower)
        shown = os.read(leader, 65536)
        os.close(leader)
    if b"% done" not in shown:
        raise Failed(f"{' '.join(argv)}: no progress was shown")
    return out


def median_us(text):
    found = re.search(r"^ *8 .* ([\d.]+)$", text, re.M)
    if not found:
        raise Failed(f"no row in {text!r}")
    return float(found[1])


def once(build, case, way, folder):
    argv = [str(build / "tools" / CASES[case][0]), *CASES[case][1:], "--local", "-D", SECONDS,
            "--latency-gap", "0", "--clock", "cycles", "--percentiles", "50"]
    if way == "documents":
        argv += ["--json", f"{folder}/a.json", "--csv", f"{folder}/a.csv"]
    return median_us(on_terminal(argv) if way == "terminal" else bench.output_of(argv))


def measure(build, pairs):
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(pairs):
            for case in CASES:
                for way in random.sample(WAYS, len(WAYS)):
                    seen.setdefault((case, way), []).append(once(build, case, way, folder))
    return seen


def show(seen):
    print("\nmedian of 8 bytes           plain    with documents         on a terminal          "
          "plain again")
    for case in CASES:
        plain = [1 / value for value in seen[case, "plain"]]
        line = f"  {case:22}{1000 * statistics.median(seen[case, 'plain']):8.0f} ns"
        for way in WAYS[1:]:
            value, low, high = perftest.ratio([1 / v for v in seen[case, way]], plain, False)
            line += f"   {value:5.3f} ({low:.3f} - {high:.3f})"
        print(line)


def main():
    parser = argparse.ArgumentParser(description="What documents and progress cost.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=9, help="repetitions (%(default)s)")
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    try:
        show(measure(asked.build, asked.pairs))
    except Failed as reason:
        print(f"output.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
