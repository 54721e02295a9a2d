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
from tap import Process, check, equal, test

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


def strike(number, after_s, rng):
    """One rank gets a signal: all pairs of the others are there, and the rank is named."""
    process, ranks, path = begin()
    time.sleep(after_s)
    rank = rng.randrange(1, RANKS)
    running = process.running()
    os.kill(ranks[rank - 1], number)
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
    process, ranks, path = begin("--slot", "200")
    time.sleep(2)
    process.kill(signal.SIGINT)
    process.wait()
    gone(ranks)
    equal(process.code, 130, process)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            document = schema.read(file.read(), "weft-map")
        check("Ended early" in document["ending"]["reason"], document["ending"])


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


tap.main(2)
