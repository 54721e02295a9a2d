#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Our figures beside the floors of this machine: medians, spreads, ratios, and whether each target
# holds. It judges and asserts nothing: the status is 0 unless a program fails to run.
# Whole processes alternate, one of each a repetition, because one process proves nothing: where
# its pages lie and what the neighbours do can double everything. Both ends run on the same two
# CPUs as the floors, the timed end always on the same one.

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIZES = {"8 B": 8, "4 KiB": 4096, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
TITLES = re.compile(r"^ *\S.*  Min\[us\]     Max\[us\]    Mean\[us\]  StdDev\[us\]$")
FINAL = re.compile(r"^Final:\s+\d+\s+([\d.]+)")
RESULT = re.compile(r"^\s+(\d+)\s+(\d+)((?:\s+<?[\d.]+){4})\s*$")
SAMPLE = re.compile(r"^\s+\d+\s+(\d+\.\d{3})$")
START_UPS = 51
MEMORY_RUNS = 3
DEADLINE_S = 120


class Failed(Exception):
    """A program did not run to its end, or said something else than it should."""


# ---- running ---------------------------------------------------------------


def output_of(argv):
    command = " ".join(map(str, argv))
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command}: no end within {DEADLINE_S} s") from None
    except OSError as error:
        raise Failed(f"{command}: {error.strerror}") from None
    if done.returncode != 0:
        raise Failed(f"{command}: status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def number_of(argv, unit):
    """The one number that floor and peak print."""
    said = output_of(argv)
    words = said.split()
    if len(words) < 2 or words[1] != unit:
        raise Failed(f"{' '.join(argv)}: not a number of {unit}: {said.strip()!r}")
    return float(words[0])


def wall_ms(argv, status):
    """From spawn to end, as whoever waits for the command sees it."""
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    start_ns = time.perf_counter_ns()
    try:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=nowhere)
    except OSError as error:
        raise Failed(f"{argv[0]}: {error.strerror}") from None
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    wall_ns = time.perf_counter_ns() - start_ns
    if ended != status:
        raise Failed(f"{' '.join(argv)}: status {ended}, not {status}")
    return wall_ns / 1e6


# ---- what a tool says ------------------------------------------------------


def result_of(text):
    """How many operations the last row counts."""
    lines = text.splitlines()
    if not any(map(TITLES.match, lines)):
        raise Failed(f"no titles in what the tool printed:\n{text}")
    results = list(filter(None, map(RESULT.match, lines)))
    if not results:
        raise Failed(f"no result in what the tool printed:\n{text}")
    return int(results[-1].group(2))


def samples_ns_of(text):
    matches = filter(None, map(SAMPLE.match, text.splitlines()))
    samples = [float(match.group(1)) * 1000 for match in matches]
    count = result_of(text)
    if len(samples) != count:
        raise Failed(f"the tool printed {len(samples)} samples and counts {count}")
    return samples


def middle_mean(samples):
    """The mean of the middle half: finer than a clock that steps, and no outlier is in it."""
    ranked = sorted(samples)
    quarter = len(ranked) // 4
    return statistics.fmean(ranked[quarter:len(ranked) - quarter])


# ---- the machine -----------------------------------------------------------


def text_of(path, otherwise=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return otherwise


def cpus_of(text):
    """0-2,5 as a set."""
    cpus = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def cache_mates(cpu):
    """The CPUs that share the last-level cache with this one."""
    caches = Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")
    by_level = {text_of(cache / "level", "0"): cache for cache in caches}
    return cpus_of(text_of(by_level[max(by_level)] / "shared_cpu_list")) if by_level else set()


def cpus_choose():
    """(target, initiator): two that share a cache and are not one core, if there are such."""
    allowed = sorted(os.sched_getaffinity(0))
    first, others = allowed[0], allowed[1:]
    core = cpus_of(text_of(f"/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list"))
    near = [cpu for cpu in others if cpu in cache_mates(first) and cpu not in core]
    apart = [cpu for cpu in others if cpu not in core]
    for found in (near, apart, others):
        if found:
            return first, found[0]
    raise Failed("two CPUs are needed, only one is ours")


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", text_of("/proc/cpuinfo"), re.MULTILINE)
    name = model.group(1) if model else platform.processor() or platform.machine()
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{name}, {os.cpu_count()} CPUs, {kernel}"


# ---- measuring -------------------------------------------------------------


class Bench:
    def __init__(self, build, cpus):
        target, initiator = cpus
        self.floor_argv = [str(build / "bench" / "floor"), "--cpu", f"{target},{initiator}"]
        self.peak_argv = [str(build / "bench" / "peak")]
        self.stream_argv = [str(build / "bench" / "stream"), "soft"]
        self.tools = build / "tools"
        self.cpus = cpus
        self.tool = str(self.tools / "cxi_write_lat")
        self.local = self.local_of("cxi_write_lat")
        self.ucx = shutil.which("/usr/bin/ucx_perftest")
        self.port = 20000 + os.getpid() % 20000
        self.seen = {}
        for program in (self.floor_argv[0], self.peak_argv[0], self.stream_argv[0], self.tool):
            if not os.access(program, os.X_OK):
                raise Failed(f"{program}: not there; make bench builds it")

    def local_of(self, tool):
        target, initiator = self.cpus
        return [str(self.tools / tool), "--local", "--cpu", f"{initiator},{target}",
                "--latency-gap", "0"]

    def add(self, key, value):
        self.seen.setdefault(key, []).append(value)

    def median(self, key):
        return statistics.median(self.seen[key])

    def floor(self, *words):
        self.add(" ".join(words), number_of([*self.floor_argv, *words], "ns"))

    def floors(self):
        for words in (["clock"], ["clock", "cycles"], ["clock-call"], ["line"], ["line-clock"],
                      ["two-lines"], ["two-lines-clock"], ["tcp"]):
            self.floor(*words)
        for size, size_bytes in SIZES.items():
            argv = [*self.floor_argv, "memcpy", str(size_bytes)]
            self.add(f"memcpy {size}", number_of(argv, "ns"))
        self.add("two clock calls", 2 * self.seen["clock-call"][-1])

    def null(self):
        count = result_of(output_of([*self.local, "-d", "null", "-D", "1"]))
        if count == 0:
            raise Failed("no iteration on null in a whole second")
        self.add("null iteration", 1e9 / count)

    def soft(self, size, iterations, warmup, *more, name=""):
        argv = [*self.local, "-s", str(SIZES[size]), "-n", str(iterations)]
        argv += ["--warmup", str(warmup), "--report-all", *more]
        samples = samples_ns_of(output_of(argv))
        self.add(f"soft {size}{name}", statistics.median(samples))
        self.add(f"soft {size}{name} middle", middle_mean(samples))

    def tool_median(self, key, tool, iterations, *more):
        argv = [*self.local_of(tool), "-n", str(iterations), "--warmup", "1000", "--report-all"]
        samples = samples_ns_of(output_of([*argv, *more]))
        self.add(key, statistics.median(samples))
        self.add(f"{key} middle", middle_mean(samples))

    def peer(self, key, *words):
        """UCX's own tool on posix shared memory, whole processes on the same two CPUs."""
        if not self.ucx:
            return
        target, initiator = self.cpus
        self.port += 1
        common = [self.ucx, "-d", "memory", "-x", "posix", "-p", str(self.port)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL}
        with subprocess.Popen(["taskset", "-c", str(target), *common], **quiet) as server:
            try:
                for _ in range(100):
                    time.sleep(0.05)
                    done = subprocess.run(
                        ["taskset", "-c", str(initiator), *common, *words, "localhost"],
                        stdin=subprocess.DEVNULL, capture_output=True, text=True,
                        timeout=DEADLINE_S, check=False)
                    final = [m for m in map(FINAL.match, done.stdout.splitlines()) if m]
                    if done.returncode == 0 and final:
                        self.add(key, float(final[-1].group(1)) * 1000)
                        return
                raise Failed(f"ucx_perftest {' '.join(words)}: {done.stderr.strip()[-300:]}")
            finally:
                server.kill()

    def family(self):
        """Ours and the peer's in turn, and the peer once more against itself."""
        short = ["-t", "am_lat", "-D", "short", "-s", "8", "-n", "300000"]
        bcopy = ["-t", "am_lat", "-D", "bcopy", "-s", "4096", "-n", "100000"]
        get = ["-t", "get", "-D", "bcopy", "-s", "8", "-n", "1000000"]
        fadd = ["-t", "fadd", "-s", "8", "-n", "1000000"]
        for key, words in (("ucx am", short), ("ucx am 4K", bcopy), ("ucx get", get),
                           ("ucx fadd", fadd)):
            self.peer(key, *words)
        self.tool_median("send 8 B", "cxi_send_lat", 50001, "-s", "8")
        self.tool_median("send 4 KiB", "cxi_send_lat", 20001, "-s", "4096")
        self.tool_median("send -R 1 MiB", "cxi_send_lat", 501, "-s", "1M", "-R")
        self.tool_median("read 8 B", "cxi_read_lat", 50001, "-s", "8")
        self.tool_median("fadd", "cxi_atomic_lat", 50001, "--fetching")
        for key, words in (("ucx am again", short), ("ucx am 4K again", bcopy),
                           ("ucx get again", get), ("ucx fadd again", fadd)):
            self.peer(key, *words)
        argv = [*self.stream_argv, "8", f"{self.cpus[0]},{self.cpus[1]}"]
        self.add("stream 8 B", number_of(argv, "M/s"))
        self.add("send -R GB/s", (1 << 20) / self.seen["send -R 1 MiB"][-1])
        self.add("memcpy 1M GB/s", (1 << 20) / self.seen["memcpy 1 MiB"][-1])

    def tails(self):
        """Ten seconds of sends: all of them, as the tool keeps them."""
        argv = [*self.local_of("cxi_send_lat"), "-n", "20000000", "--report-all"]
        samples = sorted(samples_ns_of(output_of(argv)))
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("maximum", 1)):
            self.add(f"tail {name}", samples[min(len(samples) - 1, int(len(samples) * share))])

    def repetition(self):
        self.floors()
        self.family()
        self.null()
        self.soft("8 B", 20001, 10000)
        self.soft("8 B", 20001, 10000, "--clock", "cycles", name=" cycles")
        self.soft("4 KiB", 2001, 1000)
        self.soft("1 MiB", 2001, 100)
        self.soft("64 MiB", 31, 3)
        for who in ("memcpy", "soft"):
            self.add(f"{who} GB/s", SIZES["64 MiB"] / self.seen[f"{who} 64 MiB"][-1])

    def start_ups(self):
        for _ in range(START_UPS):
            self.add("/bin/true", wall_ms(["/bin/true"], 0))
            self.add("help", wall_ms([self.tool, "--help"], 0))
            self.add("refused", wall_ms([self.tool, "-n", "8x"], 2))

    def memory(self, most):
        for _ in range(MEMORY_RUNS):
            for key, count in (("-n 1000", 1000), ("many", most)):
                argv = [*self.peak_argv, *self.local, "-d", "null", "-n", str(count)]
                self.add(key, number_of(argv, "KiB"))
            self.add("growth", self.seen["many"][-1] - self.seen["-n 1000"][-1])


# ---- the table -------------------------------------------------------------

# A row: its label, what was measured, its unit, the peer it is compared with, and the target: in
# words, and as what says whether it holds of our median and the peer's.


def rows(most, ucx):
    def no_more_than(factor):
        return f"at most {factor} x peer", lambda value, peer: value <= factor * peer

    clock = ("at most peer + 15 ns", lambda value, peer: value <= peer + 15)
    bandwidth = ("at least 0.9 x peer", lambda value, peer: value >= 0.9 * peer)
    start = ("under 5 ms", lambda value, _: value < 5)
    growth = ("at most 1024 KiB", lambda value, _: value <= 1024)
    return [
        ("Floors",),
        ("clock_gettime, two reads back to back", "clock", "ns"),
        ("fenced cycles, two reads back to back", "clock cycles", "ns"),
        ("clock_gettime, one call of many", "clock-call", "ns"),
        ("one line, half round trip", "line", "ns"),
        ("one line, each round timed", "line-clock", "ns", "line"),
        ("two lines, half round trip", "two-lines", "ns", "line"),
        ("two lines, each round timed", "two-lines-clock", "ns", "line"),
        ("TCP loopback 8 B, half round trip", "tcp", "ns", "line"),
        *((f"memcpy {size}", f"memcpy {size}", "ns") for size in SIZES),
        ("Harness",),
        ("two clock calls (2 x one of many)", "two clock calls", "ns"),
        ("null, a whole iteration (1 s / count)", "null iteration", "ns", "two clock calls", clock),
        ("Soft write, median of samples",),
        ("8 B", "soft 8 B", "ns", "line", no_more_than(0.5)),
        ("8 B, mean of the middle half", "soft 8 B middle", "ns", "line"),
        ("8 B, --clock cycles", "soft 8 B cycles", "ns", "line", no_more_than(0.5)),
        ("8 B, cycles, mean of the middle half", "soft 8 B cycles middle", "ns", "line"),
        ("4 KiB", "soft 4 KiB", "ns", "memcpy 4 KiB"),
        ("4 KiB, mean of the middle half", "soft 4 KiB middle", "ns", "memcpy 4 KiB"),
        ("1 MiB", "soft 1 MiB", "ns", "memcpy 1 MiB"),
        ("64 MiB", "soft 64 MiB", "ns", "memcpy 64 MiB"),
        ("64 MiB, bandwidth", "soft GB/s", "GB/s", "memcpy GB/s", bandwidth),
        ("Send, half round trip, median of samples",),
        ("8 B", "send 8 B", "ns", "line-clock", no_more_than(1.3)),
        ("8 B, mean of the middle half", "send 8 B middle", "ns", "line-clock"),
        *([("8 B", "send 8 B", "ns", "ucx am", no_more_than(0.5)),
           ("4 KiB", "send 4 KiB", "ns", "ucx am 4K", no_more_than(0.6)),
           ("ucx_perftest am_lat short 8 B", "ucx am", "ns", "ucx am again"),
           ("ucx_perftest am_lat bcopy 4 KiB", "ucx am 4K", "ns", "ucx am 4K again")] if ucx else []),
        ("rendezvous 1 MiB", "send -R 1 MiB", "ns", "memcpy 1 MiB"),
        ("rendezvous 1 MiB, bandwidth", "send -R GB/s", "GB/s", "memcpy 1M GB/s",
         ("at least 0.8 x peer", lambda value, peer: value >= 0.8 * peer)),
        ("one way, 8 B", "stream 8 B", "M/s", None, ("at least 20", lambda value, _: value >= 20)),
        ("Read and fetching atomic, median of samples, clock cost removed",),
        ("read 8 B", "read 8 B", "ns", "ucx get" if ucx else None,
         no_more_than(1) if ucx else None),
        ("read 8 B, mean of the middle half", "read 8 B middle", "ns"),
        ("fetching SUM UINT64", "fadd", "ns", "ucx fadd" if ucx else None,
         no_more_than(1) if ucx else None),
        ("fetching SUM, mean of the middle half", "fadd middle", "ns"),
        *([("ucx_perftest get bcopy 8 B", "ucx get", "ns", "ucx get again"),
           ("ucx_perftest fadd", "ucx fadd", "ns", "ucx fadd again")] if ucx else []),
        ("Tails of 20,000,000 sends of 8 B, one run",),
        *((name, f"tail {name}", "ns", "tail p50" if name != "p50" else None)
          for name in ("p50", "p99", "p99.9", "maximum")),
        (f"Start-up, wall time of {START_UPS} runs",),
        ("/bin/true", "/bin/true", "ms"),
        ("--help", "help", "ms", "/bin/true", start),
        ("a refused command line, -n 8x", "refused", "ms", "/bin/true", start),
        ("Memory, largest resident size on null",),
        ("-n 1000", "-n 1000", "KiB"),
        (f"-n {most}", "many", "KiB", "-n 1000"),
        ("the difference", "growth", "KiB", None, growth),
    ]


def figure(value):
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def row_text(bench, label, key, unit, peer=None, target=None):
    value, values = bench.median(key), bench.seen[key]
    peer_value = bench.median(peer) if peer else None
    spread = f"{figure(min(values))} - {figure(max(values))}"
    text = f"  {label:38}{figure(value):>10} {unit:4}  {spread:>21}"
    if peer:
        ratio = f"{value / peer_value:.2f}" if peer_value else "-"
        text += f"  {ratio:>8} x {peer:16}"
    if target:
        words, holds = target
        text = f"{text:108}  {words}: {'holds' if holds(value, peer_value) else 'MISSED'}"
    return text.rstrip()


def table(bench, most):
    print(f"\n  {'':38}{'median':>10}       {'min - max':>21}  {'ratio':>8}   {'peer':17} target")
    for row in rows(most, bench.ucx):
        print(row[0] if len(row) == 1 else row_text(bench, *row))


# ---- the command line ------------------------------------------------------


def arguments():
    parser = argparse.ArgumentParser(description="Our figures beside the floors of this machine.")
    parser.add_argument("build", type=Path, help="the build directory")
    parser.add_argument("--pairs", type=int, default=11, help="repetitions (%(default)s)")
    parser.add_argument("--cpu", metavar="TARGET,INITIATOR",
                        help="the two CPUs (two of one cache, not of one core)")
    parser.add_argument("--full", action="store_true",
                        help="memory over 100,000,000 iterations, not 10,000,000")
    asked = parser.parse_args()
    if asked.pairs < 1:
        parser.error("--pairs must be at least 1")
    if asked.cpu and not re.fullmatch(r"\d+,\d+", asked.cpu):
        parser.error(f"--cpu is not two CPUs, as in 0,1: {asked.cpu}")
    return asked


def measure(asked):
    cpus = tuple(map(int, asked.cpu.split(","))) if asked.cpu else cpus_choose()
    most = 100_000_000 if asked.full else 10_000_000
    bench = Bench(asked.build, cpus)
    print(machine())
    print(f"{asked.pairs} alternating repetitions, ratios of medians, no gap; "
          f"target on CPU {cpus[0]}, initiator on CPU {cpus[1]}", flush=True)
    for _ in range(asked.pairs):
        bench.repetition()
    bench.tails()
    bench.start_ups()
    bench.memory(most)
    table(bench, most)


def main():
    try:
        measure(arguments())
    except Failed as reason:
        print(f"bench.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
