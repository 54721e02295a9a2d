# SPDX-License-Identifier: BSD-3-Clause
"""weft map goes on without ranks that die or stop: they are struck with round and reason, the others
finish, and the document is written. With --full, a hundred faults at random moments."""
import os
import random
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
import schema
import tap
from tap import Process, check, ended, equal, test

WEFT = tap.tool_path("weft")
RANKS = 5
LIMIT_S = 240
FULL = "--full" in sys.argv


def children(process):
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as names:
            return [int(name) for name in names.read().split()]
    except OSError:
        return []


def begin(*args):
    """A map that takes some seconds, and the processes of its ranks from 1 on."""
    path = os.path.join(tap.folder(), "map.json")
    process = Process([WEFT, "map", "--local", str(RANKS), "-d", "null:delay=20us", "--at-once",
                       "1", "--slot", "25", "--partners", "all+4", "--timeout", "3", "--json", path, *args],
                      limit=LIMIT_S)
    process.wait_until(lambda: len(children(process)) == RANKS - 1, 60)
    ranks = children(process)
    equal(len(ranks), RANKS - 1, process)
    return process, ranks, path


def gone(pids):
    until = time.monotonic() + 20
    while time.monotonic() < until and any(os.path.exists(f"/proc/{pid}") for pid in pids):
        time.sleep(0.05)
    check(not [pid for pid in pids if os.path.exists(f"/proc/{pid}")], "processes are left")


def cells_of(path, whole=True):
    """[(stage, a, b)] of the file of --cells, of which every line can be read."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    check(not lines.pop() or not whole, "the last line has no end", path)
    check(lines[0].startswith("# weft-cells 1: "), lines[0])
    nodes = [line for line in lines if line.startswith("# node ")]
    rows = [line.split(" ") for line in lines[1 + len(nodes):]]
    for stage, a, b, _, count, *times in rows:
        check(stage in ("1", "2", "3") and int(a) < int(b) < len(nodes) and int(count) > 0, rows)
        check(len(times) == 4 and sorted(times, key=float) == times, "times are not in order", times)
    return [(int(row[0]), int(row[1]), int(row[2])) for row in rows]


def strike(number, after_s, rng):
    """One rank gets a signal: all pairs of the others are there, and the rank is named."""
    process, ranks, path = begin()
    time.sleep(after_s)
    rank = rng.randrange(1, RANKS)
    running = process.running()
    try:
        os.kill(ranks[rank - 1], number)
    except ProcessLookupError:
        running = False
    process.wait()
    gone(ranks)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    pairs = {(p["a"], p["b"]) for p in document["pairs"]}
    others = [i for i in range(RANKS) if i != rank]
    wanted = {(a, b) for a in others for b in others if a < b}
    failed = {(p["a"], p["b"]) for p in document["failed"]}
    check(wanted <= pairs | failed, "pairs of the others are missing", process)
    lost = [entry["node"] for entry in document["lost"]]
    check(lost in ([rank], []), lost, process)
    check(lost or not running or len(pairs) == RANKS * (RANKS - 1) // 2,
          "it was struck before the end, and nobody knows", process)
    for entry in document["lost"]:
        check(entry["reason"] and "\n" not in entry["reason"], entry)
        equal(document["nodes"][rank]["state"], "lost")
        check(f"Lost: {document['nodes'][rank]['name']} in round" in process.out, process)
    check(process.code in ((5, 3) if lost else (0, 3, 5)), "exit code", process)
    return bool(lost)


if FULL:
    @test
    def a_hundred_ranks_are_struck_at_random_moments():
        rng = random.Random(19)
        hit = sum(strike(rng.choice((signal.SIGKILL, signal.SIGSTOP)), rng.uniform(0, 3), rng)
                  for _ in range(100))
        check(hit >= 30, f"only {hit} of 100 came before the end")

    tap.main(1)
    sys.exit()


@test
def a_rank_that_is_killed_is_struck_and_the_others_finish():
    check(any(strike(signal.SIGKILL, after, random.Random(after)) for after in (0.7, 0.3, 0.1)),
          "every time it was done before")


@test
def a_rank_that_stops_is_struck_and_the_others_finish():
    check(any(strike(signal.SIGSTOP, after, random.Random(after)) for after in (0.7, 0.3, 0.1)),
          "every time it was done before")


@test
def an_interrupt_writes_what_was_measured():
    cells = os.path.join(tap.folder(), "cells")
    process, ranks, path = begin("--slot", "200", "--cells", cells)
    time.sleep(2)
    process.kill(signal.SIGINT)
    process.wait()
    gone(ranks)
    equal(process.code, 130, process)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            document = schema.read(file.read(), "weft-map")
        check("Ended early" in document["ending"]["reason"], document["ending"])
        count = len(document["pairs"])
        equal(document["pairs_planned"], RANKS * (RANKS - 1) // 2, process)
        if count < document["pairs_planned"]:
            check(f" {count} of {document['pairs_planned']} pairs" in process.out, process)
            equal(sum(node["pairs"] for node in document["nodes"]), 2 * count, process)
            page = tap.run(WEFT, "report", path, "-o", "-").out
            check("Not judged: the map ended early." in page and "looked slow" not in page, page[-3000:])
            check(f">{count} of {document['pairs_planned']} pairs" in page, page[-3000:])
        pairs = [(1, p["a"], p["b"]) for p in document["pairs"]]
        equal(sorted(cell for cell in cells_of(cells) if cell[0] == 1), sorted(pairs), process)


def ranks_below(pid):
    """Processes of weft that have no child, below a launcher: those that measure, not their guards."""
    parents, names = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                name, rest = file.read().split(") ", 1)
        except (OSError, ValueError):
            continue
        parents[int(entry)], names[int(entry)] = int(rest.split()[1]), name.split("(")[1]

    def below(one):
        return one == pid or (one in parents and below(parents[one]))

    return sorted(one for one in parents if names[one] == "weft" and below(one)
                  and one not in parents.values())


@test
def a_launcher_that_kills_the_job_does_not_when_a_rank_dies():
    launcher = shutil.which("mpiexec.hydra")
    if not launcher:
        tap.skip("mpiexec.hydra is not installed")
    path = os.path.join(tap.folder(), "map.json")
    process = Process([launcher, "-n", "5", WEFT, "map", "-d", "null:delay=20us", "--at-once", "1",
                       "--slot", "40", "--partners", "all+4", "--timeout", "4", "--json",
                       path], limit=LIMIT_S)
    process.wait_until(lambda: len(ranks_below(process.pid)) == 5, 60)
    time.sleep(0.5)
    ranks = ranks_below(process.pid)
    for rank in ranks:
        with open(f"/proc/{rank}/environ", "rb") as file:
            if b"PMI_RANK=3" in file.read().split(b"\0"):
                os.kill(rank, signal.SIGKILL)
    process.wait()
    gone(ranks)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    check([entry["node"] for entry in document["lost"]] in ([3], []), process)
    left = {n for n in range(5) if document["nodes"][n]["state"] == "present"}
    pairs = {(p["a"], p["b"]) for p in document["pairs"] + document["failed"]}
    check({(a, b) for a in left for b in left if a < b} <= pairs, process)


@test
def the_leader_dies_and_no_rank_is_left():
    process, ranks, path = begin()
    process.kill()
    process.wait()
    gone(ranks)
    check(not os.path.exists(path), "half a document")


# ---- cells, which are written as they come in ----

@test
def cells_stay_when_the_leader_is_killed():
    cells = tap.file_with("of an older map\n")
    process, ranks, _ = begin("--slot", "150", "--cells", cells)

    def count():
        with open(cells, encoding="utf-8") as file:
            return len([line for line in file if line.startswith("1 ")])

    process.wait_until(lambda: count() >= 3, 60)
    process.kill()
    process.wait()
    gone(ranks)
    equal(process.code, -signal.SIGKILL, process)
    found = cells_of(cells)
    check(3 <= len(found) < RANKS * (RANKS - 1) // 2, "all of it, or hardly anything", found, process)
    equal(len(set(found)), len(found), "a pair twice", found)


def limited(*args, limit=()):
    """A small map, to its end; no rank is left."""
    process = Process([*limit, WEFT, "map", "--local", "16", "-d", "null:delay=5us", "--slot", "2", "--at-once", "1",
                       "--partners", "all+4", *args], limit=LIMIT_S)
    process.wait()
    check(not tap.children_of(process.pid), "ranks are left", process)
    return process


@test
def cells_that_cannot_be_written_are_said_before_anything_is_measured():
    missing = os.path.join(tap.folder(), "missing", "cells")
    for path, code, words in (("/dev/full", 1, "/dev/full: cannot be written: No space left"),
                              (missing, 1, f"{missing}: cannot be written: No such file"),
                              (tap.folder(), 1, "cannot be written: Is a directory")):
        process = ended(limited("--cells", path), code)
        check(words in tap.one_sentence(process, "weft map"), process)
        equal(process.out, "", process)


@test
def what_cannot_be_written_keeps_nothing_else_back():
    csv = os.path.join(tap.folder(), "map.csv")
    process = ended(limited("--json", "/dev/full", "--csv", csv), 1)
    equal(tap.one_sentence(process, "weft map"), "weft map: /dev/full: cannot be written: No space left on device",
          process)
    check("120 pairs" in process.out, process)
    with open(csv, encoding="utf-8") as file:
        check(len(file.readlines()) > 120, "the other document is not whole")


@test
def two_documents_in_one_file_are_refused():
    path = os.path.join(tap.folder(), "file")
    process = ended(limited("--json", path, "--cells", path), 2)
    equal(tap.one_sentence(process, "weft map"), f"weft map: --json and --cells both write to {path}", process)


@test
def a_disk_that_fills_up_ends_the_cells_and_not_the_map():
    cells = os.path.join(tap.folder(), "cells")
    process = ended(limited("--cells", cells, limit=("prlimit", "--fsize=5000")), 1)
    equal(tap.one_sentence(process, "weft map"), f"weft map: {cells}: cannot be written: File too large", process)
    check("\nPairs, " in process.out and "120 pairs" in process.out, "no transcript", process)
    equal(os.path.getsize(cells), 5000)
    check(len(cells_of(cells, whole=False)) > 50, process)


@test
def a_reader_that_leaves_does_not_end_the_map():
    reader, writer = os.pipe()
    path = os.path.join(tap.folder(), "map.json")
    process = Process([WEFT, "map", "--local", "4", "-d", "null:delay=5us", "--slot", "100", "--at-once", "1",
                       "--cells", "-", "--json", path], limit=LIMIT_S, stdout=writer)
    os.close(writer)
    check(os.read(reader, 4096).startswith(b"# weft-cells 1"), process)
    os.close(reader)
    ended(process, 1)
    with open(path, encoding="utf-8") as file:
        equal(schema.read(file.read(), "weft-map")["pairs_measured"], 6, process)
    equal(tap.one_sentence(process, "weft map"), "weft map: standard output: cannot be written: Broken pipe", process)


tap.main(2)
