#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# What a round of weft map costs besides its measurement: each rank leaves its partner, connects to
# another one, sends a message and takes a turn with all. Milliseconds per round, median and quartiles
# over all rounds, beside what is aimed at. It judges and asserts nothing.

import argparse
import os
import statistics
import sys
from pathlib import Path

import bench

AIMS = {"soft:cxi0": 5, "uct:tcp": 10, "ofi:tcp": 20}


def rounds(build, device, ranks, count):
    argv = [str(build / "bench" / "rounds"), device, str(ranks), str(count)]
    return [float(line) for line in bench.output_of(argv).split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    args, _ = parser.parse_known_args()
    print(f"A round of {args.ranks} ranks on {os.cpu_count()} CPUs, ms: leave, connect to another "
          "partner, one message, a turn of all")
    print(f"{'device':<12} {'median':>8} {'quartiles':>17} {'aim':>6}")
    for device, aim in AIMS.items():
        try:
            seen = rounds(args.build, device, args.ranks, args.rounds)
        except bench.Failed as failed:
            print(f"{device:<12} not measured: {failed}")
            continue
        low, middle, high = statistics.quantiles(seen, n=4)
        print(f"{device:<12} {middle:8.2f} {low:8.2f} {high:8.2f} {aim:6d}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
