#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# The tools on an NVIDIA GPU's memory beside a bare loop over its driver: gpu.py BUILD. Whole
# processes alternate; what is compared are medians of their medians, or with --lists of the bandwidth of
# lists. It needs the tools and bench/gpu
# of a build folder and nothing else, and asserts nothing: the status is 0 unless something fails.

import argparse
import os
import re
import statistics
import subprocess
import sys

SAMPLE = re.compile(r"^\s+\d+\s+(\d+\.\d{3})$", re.M)
SIZES = {8: 2000, 4096: 2000, 1 << 20: 400, 256 << 20: 30}
# What is copied: the bare loop's way, and the command whose copy is the same.
PATHS = [("host to GPU", "in", ("cxi_write_lat", "-r", "0")),
         ("GPU to host", "out", ("cxi_read_lat", "-r", "0")),
         ("GPU to host, written", "out", ("cxi_write_lat", "-t", "0")),
         ("GPU to GPU", "within", ("cxi_write_lat", "-t", "0", "-r", "0")),
         ("GPU to GPU, read", "within", ("cxi_read_lat", "-t", "0", "-r", "0"))]
# Lists: bytes, copies in a list, lists.
LISTS = ((64 << 10, 256, 400), (1 << 20, 256, 40), (256 << 20, 8, 10))
LIST_PATHS = [("host to GPU", "in", ("cxi_write_bw", "-r", "0")),
              ("GPU to host", "out", ("cxi_write_bw", "-t", "0")),
              ("GPU to GPU", "within", ("cxi_write_bw", "-t", "0", "-r", "0"))]
ROW = re.compile(r"^ +\d+ +\d+ +(\d+\.\d+) +\d+\.\d+$", re.M)
HOWS = ("stream", "plain", "query", "flag", "kernel", "spin")
DEADLINE_S = 120


def output_of(argv, cpu=None):
    def place():
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False, preexec_fn=place)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def cpus():
    """Two that the bare loop and the tools both use; the first one has the clock."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[1] if len(allowed) > 1 else allowed[0]


def bare(build, how, way, size, count):
    return float(output_of([f"{build}/bench/gpu", how, way, str(size), str(count)], cpus()[0]))


def ours(build, command, size, count):
    tool, *options = command
    one, two = cpus()
    said = output_of([f"{build}/tools/{tool}", "--local", *options, "-s", str(size), "-n",
                      str(count), "--warmup", "20", "--latency-gap", "0", "--report-all",
                      "--cpu", f"{one},{two}"])
    samples = [float(text) for text in SAMPLE.findall(said)]
    if len(samples) != count:
        raise RuntimeError(f"{tool}: {len(samples)} samples of {count}\n{said}")
    return statistics.median(samples)


def text_of(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def speed(size, us):
    return f"{size / us / 1000:.1f} GB/s" if size >= 1 << 20 else f"{us:.2f} us"


def compare(build, repeat, factor, only):
    print("| path | size | bare | ours | ours/bare (latency) | bandwidth | bare spread | target |")
    print("|---|---|---|---|---|---|---|---|")
    for name, way, command in PATHS:
        for size, count in SIZES.items():
            if only not in f"{name}, {text_of(size)}":
                continue
            count = max(int(count * factor), 5)
            pairs = [(bare(build, "stream", way, size, count), ours(build, command, size, count))
                     for _ in range(repeat)]
            floor = statistics.median(pair[0] for pair in pairs)
            mine = statistics.median(pair[1] for pair in pairs)
            spread = max(pair[0] for pair in pairs) / min(pair[0] for pair in pairs)
            holds = mine / floor <= 1.10 if size < 1 << 20 else floor / mine >= 0.95
            print(f"| {name} | {text_of(size)} | {speed(size, floor)} | {speed(size, mine)} | "
                  f"{mine / floor:.3f} | {floor / mine:.3f} | {spread:.2f} | "
                  f"{'holds' if holds else 'MISSED'} |", flush=True)


def bare_list(build, way, size, length, count):
    us = float(output_of([f"{build}/bench/gpu", "list", way, str(size), str(count), str(length)],
                         cpus()[0]))
    return size * length / us / 1000


def our_list(build, command, size, length, count):
    tool, *options = command
    said = output_of([f"{build}/tools/{tool}", "--local", *options, "-s", str(size), "-l",
                      str(length), "-n", str(count), "--cpu", "{},{}".format(*cpus())])
    rows = ROW.findall(said)
    if len(rows) != 1:
        raise RuntimeError(f"{tool}: {len(rows)} rows\n{said}")
    return float(rows[0]) / 1000


def compare_lists(build, repeat, factor, only):
    print("| path | size | list | bare | ours | ours/bare | bare/bare | target 0.97 |")
    print("|---|---|---|---|---|---|---|---|")
    for name, way, command in LIST_PATHS:
        for size, length, count in LISTS:
            if only not in f"{name}, {text_of(size)}":
                continue
            count = max(int(count * factor), 2)
            pairs = [(bare_list(build, way, size, length, count),
                      our_list(build, command, size, length, count)) for _ in range(repeat)]
            bares = [pair[0] for pair in pairs]
            floor, mine = statistics.median(bares), statistics.median(pair[1] for pair in pairs)
            # The peer against itself: every other run beside the rest.
            itself = statistics.median(bares[::2]) / statistics.median(bares[1::2] or bares)
            print(f"| {name} | {text_of(size)} | {length} | {floor:.2f} GB/s | {mine:.2f} GB/s | "
                  f"{mine / floor:.3f} | {itself:.3f} | "
                  f"{'holds' if mine / floor >= 0.97 else 'MISSED'} |", flush=True)


def explore(build, repeat, factor):
    """Other ways to make a small copy and to know that it is done."""
    print("| how | way | size | us |")
    print("|---|---|---|---|")
    for way in ("in", "out", "within"):
        for size in (8, 4096, 65536):
            for how in HOWS:
                count = max(int(2000 * factor), 5)
                try:
                    us = statistics.median(bare(build, how, way, size, count)
                                           for _ in range(repeat))
                    print(f"| {how} | {way} | {text_of(size)} | {us:.2f} |", flush=True)
                except RuntimeError as error:
                    print(f"| {how} | {way} | {text_of(size)} | n/a: {str(error).splitlines()[-1]} |",
                          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--repeat", type=int, default=13)
    parser.add_argument("--factor", type=float, default=1, help="more or fewer iterations")
    parser.add_argument("--only", default="", help='these rows: "GPU to host", "read, 1 MiB"')
    parser.add_argument("--lists", action="store_true", help="bandwidth of lists of copies")
    parser.add_argument("--ways", action="store_true", help="ways of copying, in the bare loop alone")
    a = parser.parse_args()
    try:
        output_of([f"{a.build}/bench/gpu", "stream", "in", "8", "10"])
        if a.ways:
            explore(a.build, a.repeat, a.factor)
        elif a.lists:
            compare_lists(a.build, a.repeat, a.factor, a.only)
        else:
            compare(a.build, a.repeat, a.factor, a.only)
    except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"gpu.py: {error}")


main()
