# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest as users of current UCX type it: options that it takes with their meaning, the table that their
scripts read, and what a letter means here where it is something else."""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, ended, equal, run, test

TOOL = tap.tool_path("ucx_perftest")
SOFT = ("--local", "-x", "soft", "-n", "2000", "-w", "10", "--interval", "0")
STAGE = ("|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |")
ROW = r"%s *(\d+) +([<\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) +(\d+)"


def good(*args):
    process = run(TOOL, *SOFT, *args)
    ended(process, 0)
    return process


def bad(code, words, *args):
    process = run(TOOL, *SOFT, *args)
    equal(process.code, code, process)
    check(words in process.err, words, process)


@test
def the_table_of_current_ucx_has_a_stage_and_a_final_row():
    for name in ("tag_lat", "am_bw"):
        lines = good("-t", name, "--form=ucx").out.splitlines()
        equal(lines[3], STAGE)
        equal({len(line) for line in lines[:5]}, {len(STAGE)}, lines)
        check(re.fullmatch(ROW % "Final:", lines[-1]), lines)
        equal(lines[-1][:28], "Final:" + "2000".rjust(22), lines)


@test
def both_ways_of_a_ping_pong_count_in_the_table_of_current_ucx():
    for form, ways in (("weft", 1), ("ucx", 2)):
        for name, legs in (("tag_lat", 2), ("tag_bw", 1)):
            row = good("-t", name, f"--form={form}", "-v").out.splitlines()[-1].split(",")
            overall_us, rate = float(row[3]), float(row[7])
            times = ways if legs == 2 else 1
            wanted = 1e6 / overall_us / legs * times
            check(abs(rate / wanted - 1) < 0.05, form, name, row)


@test
def the_first_column_is_the_percentile_that_was_asked_for():
    header, row = good("-t", "tag_lat", "-R", "99", "-v", "--percentiles", "99").out.splitlines()
    equal(header.split(",")[1], "99.0_percentile_lat")
    equal(row.split(",")[1], row.split(",")[-1], row)
    low, high = (float(good("-t", "tag_lat", "-R", rank, "-v").out.splitlines()[1].split(",")[1].lstrip("<"))
                 for rank in ("0", "100"))
    check(low < high, low, high)
    check("| 99.9%ile|" in good("-t", "tag_lat", "-R", "99.9").out)
    for rank in ("101", "-1", "x", "nan", "5x"):
        bad(2, "a percentile is 0 to 100", "-t", "tag_lat", f"--rank={rank}")


@test
def a_sweep_is_a_batch_of_sizes():
    rows = good("-t", "tag_bw", "--sizes=8:64", "-v").out.splitlines()
    equal(rows[0].split(",")[0], "size", rows)
    equal([row.split(",")[0] for row in rows[1:]], ["8", "16", "32", "64"], rows)
    bad(2, "--sizes", "-t", "tag_bw", "--sizes=8:65")


@test
def a_target_may_stay_out_where_nothing_needs_it():
    for name in ("put_bw", "get", "fadd"):
        good("-t", name, "-o")
    for name in ("put_lat", "tag_bw", "am_lat"):
        bad(2, "a target that takes no part", "-t", name, "-o")


@test
def options_without_effect_are_taken():
    good("-t", "tag_lat", "-6", "-q", "-P", "0", "-I", "-M", "multi", "-O", "0")
    bad(2, "no launcher", "-t", "tag_lat", "-P", "1")


def tasks(count, *words):
    """As srun starts them without an MPI."""
    env = {"SLURM_STEP_NUM_TASKS": str(count), "SLURM_STEP_NODELIST": "127.0.0.1", "WEFT_BIND": "127.0.0.1",
           "SLURM_JOB_ID": str(int.from_bytes(os.urandom(4), "little")), "SLURM_STEP_ID": "0"}
    started = [tap.Process([tap.tool_path("ucx_perftest"), *words], env={**env, "SLURM_PROCID": str(rank)})
               for rank in range(count)]
    for task in started:
        task.wait()
    return started


@test
def what_a_letter_means_here_is_said_to_who_means_something_else():
    server = tap.Server(TOOL, "-l", "-t", "tag_lat")
    server.wait_for("-l serves one client after another; UCX's -l, a test within one process, is --loopback",
                    stream="err")
    for args, count in ((("-V",), 0), (("-t", "tag_lat", "-V"), 1), (("127.0.0.1", "-V", "-t", "put_lat"), 1)):
        process = ended(run(TOOL, *args), 0)
        check(process.out.startswith("ucx_perftest (Weft) "), process)
        equal(process.err.count("UCX's -V, a check of the data, is --verify here"), count, process)
        equal(len(process.err.splitlines()), count, process)


@test
def two_tasks_without_an_mpi_are_the_two_ends():
    server, client = tasks(2, "-t", "tag_lat", "-n", "50", "-f", "-v", "-x", "soft")
    equal((server.code, client.code), (0, 0), server, client)
    equal(server.out, "", server)
    equal([row.split(",")[0] for row in client.out.splitlines()], ["iterations", "50"], client)


@test
def tasks_without_an_mpi_that_cannot_be_two_ends_say_so_once():
    for count, code, sentence, words in ((3, 2, "2 ranks are needed, the launcher started 3", ()),
                                         (2, 2, "unknown option: --bogus", ("--bogus",)),
                                         (2, 1, 'no device "nothing" on soft', ("-t", "tag_lat", "-d", "soft:nothing"))):
        ends = tasks(count, *words)
        equal([end.code for end in ends], [code] * count, *ends)
        equal(sum(end.err.count(sentence) for end in ends), 1, *ends)


if __name__ == "__main__":
    tap.main()
