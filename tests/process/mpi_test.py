# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks under real launchers: they agree, they refuse a wrong number of ranks or a wrong MPI,
and whatever happens to one of them, the launcher ends and nothing stays behind."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from lists import perf_tests
from tap import Process, between, check, equal, processes_with, skip, start_time

BUILD = tap.build_folder()
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAYER = os.path.join(BUILD, "modules", "weft-ucp.so")
PAIR = os.path.join(BUILD, "tests", "process", "mpi_pair")
LIMIT_S = 30
SOON_S = 20
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
SIZES = {"openmpi": "OMPI_COMM_WORLD_SIZE", "mpich": "PMI_SIZE"}


def module_of(mpi):
    return os.path.join(BUILD, "modules", f"weft-mpi_{mpi}.so")


def need(mpi, *modules):
    if not shutil.which(f"mpirun.{mpi}"):
        skip(f"mpirun.{mpi} is not installed")
    for name in (mpi, *modules):
        if not os.path.exists(module_of(name)):
            skip(f"weft-mpi_{name}.so is not built")


class Job:
    """A launcher and its ranks, which are known by a folder of their own in the environment."""

    def __init__(self, mpi, ranks, what, pair=PAIR, **env):
        self.mark = tap.folder()
        self.launcher = Process([f"mpirun.{mpi}", "-n", str(ranks), pair, what], limit=LIMIT_S,
                                env={**tap.mpi_env(), "WEFT_TEST_MARK": self.mark, **env})

    def ended(self, within=LIMIT_S):
        """The launcher's exit code; fails if any process of the job outlives it."""
        code = self.launcher.wait(within)
        until = time.monotonic() + 5
        while self.living() and time.monotonic() < until:
            time.sleep(0.05)
        left = self.living()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        check(not left, f"left running: {left}", self.launcher)
        return code

    def living(self):
        return [pid for pid in processes_with(f"WEFT_TEST_MARK={self.mark}") if start_time(pid)]

    def waiting_ranks(self):
        self.launcher.wait_for(r"waiting \d+\n(.*\n)*?.*waiting \d+")
        return [int(pid) for pid in re.findall(r"waiting (\d+)", self.launcher.out)]

    def lines(self):
        return sorted(line for line in self.launcher.out.splitlines() if line)

    def sentences(self):
        return re.findall(r"mpi_pair: (.*)", self.launcher.err)


def two_ranks_agree(mpi):
    need(mpi)
    job = Job(mpi, 2, "talk")
    equal(job.ended(), 0, job.launcher)
    equal(job.lines(), ["client done", "server done"], job.launcher)


def a_rank_that_is_slow_to_leave_is_waited_for(mpi):
    need(mpi)
    job = Job(mpi, 2, "slow")
    equal(job.ended(), 0, job.launcher)
    equal(job.lines(), ["client done", "server done"], job.launcher)


def last_words_reach_the_other_rank(mpi):
    need(mpi)
    job = Job(mpi, 2, "end")
    check(job.ended(SOON_S) != 0, job.launcher)
    equal(sorted(job.sentences()), ["broken on purpose", "the client says: broken on purpose"],
          job.launcher)


def another_number_of_ranks_is_refused(mpi, ranks):
    need(mpi)
    job = Job(mpi, ranks, "talk")
    check(job.ended(SOON_S) != 0, job.launcher)
    said = job.sentences()
    # A launcher may end the others as soon as the first has left.
    between(len(said), 1, ranks, job.launcher)
    equal(set(said), {f"2 ranks are needed, the launcher started {ranks}"}, job.launcher)


def the_wrong_mpi_is_refused_with_both_sizes(mpi):
    wrong = "mpich" if mpi == "openmpi" else "openmpi"
    need(mpi, wrong)
    job = Job(mpi, 2, "talk", WEFT_MPI=wrong)
    check(job.ended(SOON_S) != 0, job.launcher)
    said = job.sentences()
    check(said, "no sentence", job.launcher)
    for sentence in said:
        check(sentence.startswith(f"{SIZES[mpi]}=2, but {NAMES[wrong]} counts 1"), job.launcher)


def the_right_mpi_may_be_named(mpi):
    need(mpi)
    job = Job(mpi, 2, "talk", WEFT_MPI=mpi)
    equal(job.ended(), 0, job.launcher)


def a_missing_module_is_named(mpi):
    need(mpi)
    # The module is looked for beside the program.
    alone = os.path.join(tap.folder(), "mpi_pair")
    shutil.copy(PAIR, alone)
    job = Job(mpi, 2, "talk", pair=alone, WEFT_MODULE_PATH="")
    if job.ended(SOON_S) == 0:
        skip("the module is installed")
    said = job.sentences()
    check(said and said[0].startswith(f"weft-mpi_{mpi}.so is not found: the package's mpi feature"),
          job.launcher)


def hydra_version():
    said = subprocess.run(["mpirun.mpich", "--version"], capture_output=True, text=True, timeout=SOON_S).stdout
    found = re.search(r"Version:\s+(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def ends_in_failure(job, mpi):
    """Hydra 4.2 answers 0 for half of the jobs of which a rank was killed after MPI_Init."""
    code = job.ended(SOON_S)
    if mpi == "mpich" and code == 0 and hydra_version() >= (4, 2):
        tap.note("mpirun.mpich answered 0")
        return
    check(code != 0, job.launcher)


def a_killed_rank_ends_the_job(mpi, place):
    need(mpi)
    job = Job(mpi, 2, "wait")
    ranks = job.waiting_ranks()
    os.kill(ranks[place], signal.SIGKILL)
    ends_in_failure(job, mpi)


def a_frozen_rank_is_lost_and_the_other_leaves(mpi):
    need(mpi)
    job = Job(mpi, 2, "wait")
    ranks = job.waiting_ranks()
    time.sleep(0.3)
    os.kill(ranks[0], signal.SIGSTOP)
    job.launcher.wait_for(r"mpi_pair: lost the (server|client): no sign of life for 4 s",
                          within=SOON_S, stream="err")
    # Both launchers end the job once a rank has left without MPI_Finalize.
    until = time.monotonic() + SOON_S
    while start_time(ranks[1]) and time.monotonic() < until:
        time.sleep(0.05)
    check(not start_time(ranks[1]), "the rank that gave up did not leave", job.launcher)
    if start_time(ranks[0]):
        os.kill(ranks[0], signal.SIGCONT)
    ends_in_failure(job, mpi)


def an_interrupted_rank_tells_the_other(mpi):
    need(mpi)
    job = Job(mpi, 2, "wait")
    ranks = job.waiting_ranks()
    os.kill(ranks[0], signal.SIGTERM)
    ends_in_failure(job, mpi)
    said = job.sentences()
    check("interrupted" in said, job.launcher)
    check(any(re.fullmatch("the (server|client) was interrupted", s) for s in said), job.launcher)


def rows_of_perftest(mpi, lines, *more):
    """All of them in one job."""
    batch = tap.file_with("\n".join(lines) + "\n")
    job = Process([f"mpirun.{mpi}", "-n", "2", tap.tool_path("ucx_perftest"), "-b", batch, "-n", "10", "-w", "1",
                   "--interval", "0", "-v", "--verify", "--timeout", "20", *more], limit=LIMIT_S, env=tap.mpi_env())
    equal(job.wait(LIMIT_S), 0, job)
    rows = [row.split(",")[0] for row in job.out.splitlines()[1:] if row]
    equal(rows, [line.split()[0] for line in lines], job)


def all_kinds_of_tests_of_ucx_perftest_run(mpi):
    """Every line switches something."""
    need(mpi)
    lines = ["tag -t tag_lat -x soft", "pieces -t tag_bw -x soft -s 5000:2 -D iov,iov -i 8K",
             "none -t tag_lat -x soft -s 0", "threads -t put_bw -x soft -T 2", "early -t tag_lat -x soft -U",
             "asleep -t am_lat -x soft -E sleep"]
    if os.path.exists(LAYER):
        lines += ["ucp -t ucp_put_lat -x ucp:posix", "stream -t stream_bw -x ucp:posix -r recv_data",
                  "ucp_am -t ucp_am_bw -x ucp:tcp -d lo -s 8,8 -D iov -z", "sync -t tag_sync_lat -x ucp:tcp -d lo -e"]
    rows_of_perftest(mpi, lines)


def every_test_of_ucx_perftest_runs(mpi):
    """-p alone would make a server of each; with -P 1 they are ranks all the same."""
    need(mpi)
    lines = []
    for name, *_ in perf_tests(SOURCE):
        layer = name.startswith(("ucp_", "stream_"))
        if not layer or os.path.exists(LAYER):
            lines.append(f"{name} -t {name} -x {'ucp:posix' if layer else 'soft'}")
    rows_of_perftest(mpi, lines, "-P", "1", "-p", "1")


def an_unknown_name_is_refused():
    need("mpich")
    job = Job("mpich", 2, "talk", WEFT_MPI="lam")
    check(job.ended(SOON_S) != 0, job.launcher)
    equal(set(job.sentences()), {"WEFT_MPI=lam: openmpi and mpich are known"}, job.launcher)


for _mpi in NAMES:
    for _test, *_arguments in ((two_ranks_agree,),
                               (a_rank_that_is_slow_to_leave_is_waited_for,),
                               (last_words_reach_the_other_rank,),
                               (another_number_of_ranks_is_refused, 1),
                               (another_number_of_ranks_is_refused, 3),
                               (the_wrong_mpi_is_refused_with_both_sizes,),
                               (the_right_mpi_may_be_named,),
                               (a_missing_module_is_named,),
                               (a_killed_rank_ends_the_job, 0),
                               (a_killed_rank_ends_the_job, 1),
                               (a_frozen_rank_is_lost_and_the_other_leaves,),
                               (an_interrupted_rank_tells_the_other,),
                               (all_kinds_of_tests_of_ucx_perftest_run,),
                               (every_test_of_ucx_perftest_runs,)):
        _words = " ".join([_test.__name__, *map(str, _arguments), "under", _mpi])
        tap.add(_words, _test, _mpi, *_arguments)
tap.add("an_unknown_name_is_refused", an_unknown_name_is_refused)

if __name__ == "__main__":
    # Ranks spin.
    tap.main(workers=2)
