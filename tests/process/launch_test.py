# SPDX-License-Identifier: BSD-3-Clause
"""Ranks under real launchers become a group, every tool runs on two of them, and whatever happens to
one rank, the others finish and tell it. Slurm runs on hosts made of namespaces: four, or as many as
WEFT_TEST_HOSTS says."""
import functools
import json
import os
import random
import re
import shutil
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster

cluster.move_away()
import schema
import tap
from tap import check, equal, skip, test

BUILD = tap.build_folder()
RANK = os.path.join(BUILD, "tests", "process", "launch_rank")
HOSTS = int(os.environ.get("WEFT_TEST_HOSTS", "4"))
LIMIT_S = 90 if HOSTS == 4 else 300
_making = threading.Lock()


@functools.cache
def _made():
    return cluster.Cluster(HOSTS)


def slurm():
    with _making:
        return _made()


def need_pmix():
    if not os.path.exists(os.path.join(BUILD, "modules", "weft-pmix.so")):
        skip("weft-pmix.so is not built")


def srun(*words, mpi=None, ranks=None):
    """A command of srun on the head, one rank per host unless told."""
    if mpi == "pmix":
        need_pmix()
    hosts = slurm()
    options = [f"--mpi={mpi}"] if mpi else []
    return hosts.run("srun", f"-N{min(HOSTS, ranks or HOSTS)}", f"-n{ranks or HOSTS}", *options,
                     *words, limit=LIMIT_S)


def launched(launcher, ranks, *words):
    if not shutil.which(launcher):
        skip(f"{launcher} is not installed")
    if "openmpi" in launcher:
        need_pmix()
    # Their launchers must not think that they run below Slurm.
    return tap.Process([launcher, "-n", str(ranks), *words], limit=LIMIT_S, env=tap.mpi_env())


def good(job, by, ranks=HOSTS, secret=True, nodes=None, met=None):
    """All ranks were there to the end."""
    equal(job.wait(), 0, job)
    there = re.findall(r'^rank (\d+) on (\S+) in "(\S*)": met (\d+)$', job.out, re.M)
    equal([int(one[0]) for one in there], list(range(ranks)), job)
    check(f"{ranks} ranks by {by}{', with a secret' if secret else ''}\n" in job.out, job)
    if nodes:
        equal([one[1] for one in there], nodes, job)
    if met:
        equal({int(one[3]) for one in there}, {met}, job)
    return there


def lost(job, rank, round_number, *reasons):
    """All but one were."""
    equal(job.wait(), 0, job)
    found = re.findall(r"^lost rank (\d+) in round (\d+): (.*)$", job.out, re.M)
    equal([(int(one[0]), int(one[1])) for one in found], [(rank, round_number)], job)
    check(any(reason in found[0][2] for reason in reasons), job)
    there = [int(one) for one in re.findall(r"^rank (\d+) on", job.out, re.M)]
    equal(there, [i for i in range(there[-1] + 1) if i != rank], job)


def ranks_of_srun_are_a_group(mpi, by, secret):
    there = good(srun(RANK, "2", "10", mpi=mpi), by, secret=secret, met=2,
                 nodes=[f"n{i}" for i in range(HOSTS)])
    if by in ("slurm", "pals"):
        equal([one[2] for one in there], [f"s{i // 2}" for i in range(HOSTS)])


for words in ((None, "slurm", False), ("pmi2", "pmi", True), ("pmix", "pmix", True),
              ("cray_shasta", "pals", False)):
    tap.add(f"ranks of srun --mpi={words[0]} are a group", ranks_of_srun_are_a_group, *words)


def a_killed_rank_is_lost_and_the_others_finish(launcher, by):
    job = launched(launcher, 4, RANK, "3", "50", "kill", "2", "2")
    lost(job, 2, 2, "its connection was closed")
    check(f"by {by}" in job.out, job)


tap.add("a killed rank is lost and the others finish under hydra",
        a_killed_rank_is_lost_and_the_others_finish, "mpiexec.hydra", "pmi")
tap.add("a killed rank is lost and the others finish under Open MPI",
        a_killed_rank_is_lost_and_the_others_finish, "mpirun.openmpi", "pmix")


@test
def a_killed_rank_is_lost_and_the_others_finish_under_srun():
    job = srun(RANK, "3", "100", "kill", "2", "2", mpi="pmi2")
    job.wait()
    check("lost rank 2 in round 2: its connection was closed" in job.out, job)
    check(f"{HOSTS} ranks by pmi" in job.out, job)


@test
def ranks_of_agents_are_a_group():
    hosts = slurm()
    agent = "nsenter --net=/run/netns/%h"
    job = hosts.run(RANK, "--hosts", f"n[0-{HOSTS - 1}]", agent, "2", "10", limit=LIMIT_S)
    good(job, "hosts", nodes=[f"n{i}" for i in range(HOSTS)], met=2)
    check("secret" not in " ".join(job.argv), job)


@test
def local_ranks_are_a_group_and_a_stopped_one_is_lost():
    job = tap.run(RANK, "--local", "6", "3", "50", "stop", "4", "2", limit=LIMIT_S)
    lost(job, 4, 2, "silent for")


@tap.alone
def a_rank_whose_link_is_cut_is_lost():
    """With everything that it was about to say."""
    hosts = slurm()
    agent = "nsenter --net=/run/netns/%h"
    job = hosts.run(RANK, "--hosts", f"n[0-{HOSTS - 1}]", agent, "6", "700", limit=LIMIT_S)
    job.wait_until(lambda: len(tap.children_of(job.pid)) >= HOSTS, 20)
    threading.Event().wait(1.5)
    hosts.cut("n2")
    try:
        equal(job.wait(), 0, job)
        check(re.search(r"^lost rank 2 in round \d: silent for", job.out, re.M), job)
    finally:
        hosts.mend("n2")


# Faults by chance: some here, many with WEFT_TEST_FAULTS.

FAULTS = int(os.environ.get("WEFT_TEST_FAULTS", "2"))


def unlucky(number, tries=3):
    """One rank dies or stops, under any launcher, in any round: the others finish and say so."""
    chance = random.Random(number)
    how, rank, when = chance.choice(("kill", "stop")), chance.randrange(1, 4), chance.randrange(1, 4)
    words = (RANK, "4", "30", how, str(rank), str(when))
    way = chance.choice(("hydra", "openmpi", "srun", "pmi2", "pmix", "local", "hosts"))
    tap.note(f"{number}: {way} {how} rank {rank} in round {when}")
    if way in ("hydra", "openmpi"):
        job = launched({"hydra": "mpiexec.hydra", "openmpi": "mpirun.openmpi"}[way], 4, *words)
    elif way == "local":
        job = tap.Process([RANK, "--local", "4", *words[1:]], limit=LIMIT_S)
    elif way == "hosts":
        job = slurm().run(RANK, "--hosts", "n[0-3]", "nsenter --net=/run/netns/%h", *words[1:],
                          limit=LIMIT_S)
    else:
        job = srun("--wait=2", "--kill-on-bad-exit=0", *words, mpi=None if way == "srun" else way,
                   ranks=4)
    job.wait()
    # Slurm's daemons connect to each other when they first need to: one whose rank is dead by then is gone, and
    # the other ends the job.
    if tries > 1 and re.search("mpi/pmix.*Cannot establish", job.err):
        unlucky(number, tries - 1)
        return
    check(re.search(rf"^lost rank {rank} in round {when}: ", job.out, re.M), number, way, job)
    there = [int(one) for one in re.findall(r"^rank (\d+) on", job.out, re.M)]
    equal(there, [i for i in range(4) if i != rank], number, way, job)


@test
def faults_by_chance_leave_the_others_complete():
    first = int(os.environ.get("WEFT_TEST_SEED", str(int(time.time()))))
    for number in range(first, first + FAULTS):
        unlucky(number)


# Every tool, on two ranks.

def two_ranks_measure(start, tool, *words):
    path = tap.tool_path(tool)
    job = start(path, *words)
    equal(job.wait(), 0, job)
    equal(len(re.findall(r"^\s+8\s", job.out, re.M)), 1, job)
    check("Listening" not in job.out, job)


def by_srun(mpi):
    return lambda *words: srun(*words, mpi=mpi, ranks=2)


def by_launcher(name):
    return lambda *words: launched(name, 2, *words)


for title, starter in (("srun", by_srun(None)), ("srun --mpi=pmi2", by_srun("pmi2")),
                       ("mpiexec.hydra", by_launcher("mpiexec.hydra")),
                       ("mpirun.openmpi", by_launcher("mpirun.openmpi"))):
    device = "ofi:tcp" if "srun" in title else "soft:cxi0"
    tap.add(f"two ranks of {title} measure", two_ranks_measure, starter, "cxi_send_lat", "-s", "8",
            "-n", "50", "-d", device)
tap.add("two ranks of hydra measure bandwidth", two_ranks_measure, by_launcher("mpiexec.hydra"),
        "cxi_write_bw", "-s", "8", "-n", "2", "-d", "soft:cxi0")


def two_ranks_of_ucx_perftest_measure(mpi):
    """Without an MPI that connects them."""
    job = srun(tap.tool_path("ucx_perftest"), "-t", "tag_lat", "-n", "50", "-f", "-v", "-d", "ofi:tcp", mpi=mpi,
               ranks=2)
    equal(job.wait(), 0, job)
    equal(len(re.findall(r"^50,", job.out, re.M)), 1, job)
    check("Listening" not in job.out, job)


for words in (None, "cray_shasta"):
    tap.add(f"two ranks of ucx_perftest measure under srun --mpi={words}", two_ranks_of_ucx_perftest_measure, words)


@test
def another_number_of_ranks_is_refused_once():
    job = launched("mpiexec.hydra", 3, tap.tool_path("cxi_send_lat"))
    check(job.wait() != 0, job)
    equal(job.err.count("2 ranks are needed, the launcher started 3"), 1, job)


@test
def a_server_and_a_client_in_a_job_are_what_they_were():
    """An address, a port or --local says that no rank is meant."""
    job = launched("mpiexec.hydra", 2, tap.tool_path("cxi_send_lat"), "--local", "-s", "8", "-n", "20",
                   "-d", "soft:cxi0")
    equal(job.wait(), 0, job)
    equal(len(re.findall(r"^\s+8\s", job.out, re.M)), 2, job)


# weft map.

def limit_rate(hosts, name):
    """100 Mbit/s both ways."""
    for where, device in (("head", f"to-{name}"), (name, "eth0")):
        tap.run("nsenter", f"--net=/run/netns/{where}", "tc", "qdisc", "add", "dev", device, "root",
                "tbf", "rate", "100mbit", "burst", "64k", "latency", "50ms")


@tap.alone
def a_map_under_srun_names_the_host_with_a_slow_link():
    if HOSTS < 6:
        skip("a suspect needs at least five partners: run with WEFT_TEST_HOSTS=6")
    if not shutil.which("tc"):
        skip("tc is not installed")
    hosts = slurm()
    path = os.path.join(tap.folder(), "map.json")
    limit_rate(hosts, "n2")
    job = srun(tap.tool_path("weft"), "map", "-t", "put_bw", "-s", "64K", "-d", "ofi:tcp", "--slot", "50",
               "--min-effect", "100", "--json", path, mpi="pmi2")
    equal(job.wait(), 3, job)
    equal(re.findall(r"^node (\S+) .* slower$", job.out, re.M), ["n2"], job)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    equal(document["launch"]["muster"], "pmi")
    check(document["launch"]["trusted"], document["launch"])


def map_by(way, *words):
    words = (tap.tool_path("weft"), "map", *words)
    if way in ("hydra", "openmpi"):
        return launched({"hydra": "mpiexec.hydra", "openmpi": "mpirun.openmpi"}[way], 4, *words)
    if way == "hosts":
        return slurm().run(*words, "--hosts", "n[0-3]", "--agent", "nsenter --net=/run/netns/%h",
                           limit=LIMIT_S)
    # A stopped rank would keep srun for ever.
    return srun("--wait=20", "--kill-on-bad-exit=0", *words, mpi=None if way == "srun" else way, ranks=4)


def words_of(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def measuring_ranks(way):
    """{rank: its process}, of the map that runs: guards and agents have a child, those that measure none."""
    weft, parents, found = tap.tool_path("weft").encode(), set(), {}
    pids = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                parents.add(file.read().rsplit(") ", 1)[1].split()[1])
        except OSError:
            pass
    for pid in pids:
        if words_of(pid, "cmdline")[:2] != [weft, b"map"] or pid in parents:
            continue
        if way == "hosts":
            ranks = [i for i in range(4) if os.path.samefile(f"/proc/{pid}/ns/net", f"/run/netns/n{i}")]
        else:
            ranks = [int(word.split(b"=")[1]) for word in words_of(pid, "environ")
                     if re.match(rb"(PMI_RANK|PMIX_RANK|SLURM_PROCID)=\d+$", word)]
        if ranks:
            found[ranks[0]] = int(pid)
    return found


def whole(path):
    """The document, once there is one: a launcher may still be about."""
    try:
        with open(path, encoding="utf-8") as file:
            return schema.read(file.read(), "weft-map")
    except (OSError, ValueError):
        return None


def strike(way, how, rank, pid):
    if how != "cut":
        os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        return
    slurm().cut(f"n{rank}")


def unlucky_map(number, tries=3):
    """A rank of a map is killed or stopped, or its host cut off, at any time and under any launcher: the document
    is whole, the others have measured all their pairs, and nothing is left."""
    chance = random.Random(number)
    way = chance.choice(("hydra", "openmpi", "srun", "pmi2", "pmix", "hosts"))
    how = chance.choice(("kill", "stop") if way in ("hydra", "openmpi") else ("kill", "stop", "cut"))
    rank, after_s = chance.randrange(1, 4), chance.uniform(0, 2)
    device = chance.choice(("null:delay=20us", "ofi:tcp"))
    path = os.path.join(tap.folder(), "map.json")
    tap.note(f"{number}: {way} {how} rank {rank} after {after_s:.2f} s, {device}")
    job = map_by(way, "-d", device, "--at-once", "1", "--slot", "100", "--partners", "all+4", "--timeout", "3",
                 "--json", path)
    job.wait_until(lambda: len(measuring_ranks(way)) == 4, 30)
    ranks = measuring_ranks(way)
    time.sleep(after_s)
    early = job.running()
    strike(way, how, rank, ranks[rank])
    try:
        job.wait_until(lambda: whole(path) or not job.running(), LIMIT_S)
    finally:
        if how == "cut":
            slurm().mend(f"n{rank}")
    job.wait()
    if how == "cut":
        slurm().ready()
    # It may have struck before the ranks had met.
    if re.search("weft map: .*(PMIx_Fence|came within)", job.err):
        return
    # Slurm itself may end a job of which it misses a host.
    if tries > 1 and re.search("mpi/pmix.*Cannot establish|Node failure on", job.err):
        unlucky_map(number, tries - 1)
        return
    document = whole(path)
    check(document, number, "no document", job)
    lost = [entry["node"] for entry in document["lost"]]
    check(lost in ([rank], []), number, lost, job)
    pairs = {(p["a"], p["b"]) for p in document["pairs"] + document["failed"]}
    others = [i for i in range(4) if i != rank]
    check({(a, b) for a in others for b in others if a < b} <= pairs, number, "pairs are missing", job)
    check(lost or len(pairs) == 6 or not early, number, "it was struck, and nobody knows", job)
    until = time.monotonic() + 20
    while measuring_ranks(way) and time.monotonic() < until:
        time.sleep(0.1)
    equal(measuring_ranks(way), {}, number, "processes are left", job)
    equal(os.listdir(os.path.dirname(path)), ["map.json"], number, job)


@tap.alone
def maps_outlive_faults_by_chance():
    first = int(os.environ.get("WEFT_TEST_SEED", str(int(time.time()))))
    for number in range(first, first + FAULTS // 2):
        unlucky_map(number)


tap.main(workers=3)
