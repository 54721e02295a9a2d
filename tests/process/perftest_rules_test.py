# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest: titles, headers, what verifying names, and what a server does with options."""
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, ended, equal, lines_of, one_sentence, run, test

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
QUICK = ("--local", "-x", "soft", "-n", "200", "-w", "10", "--interval", "0")


def good(*args, **more):
    return ended(run(TOOL, *QUICK, *args, **more), 0)


def title_of(process):
    return lines_of(process.out)[1].split("|")[2].strip()


@test
def what_is_not_alone_under_way_has_no_latency():
    for name in ("get", "fadd"):
        equal(title_of(good("-t", name)), "latency (usec)")
        equal(title_of(good("-t", name, "-O", "4")), "overhead (usec)")
        equal(title_of(good("-t", name, "-O", "4", "--verify")), "latency (usec)")


@test
def a_header_of_another_length_takes_the_layout_that_has_one():
    process = good("-t", "am_lat", "-H", "16", "-s", "64", "--verify")
    check("data layout zcopy" in process.err, process)
    for layout in ("short", "bcopy"):
        process = ended(run(TOOL, *QUICK, "-t", "am_lat", "-H", "16", "-s", "64", "-D", layout), 2)
        equal(one_sentence(process, NAME), f"{NAME}: a header of 16 bytes is for layout zcopy: in "
              f"{layout} it has 8 bytes")


@test
def verifying_names_the_get_that_was_wrong():
    # The double spoils every twentieth get of a process; they are numbered from 0.
    env = {"WEFT_MODULE_PATH": tap.doubles_folder()}
    for more in ((), ("--bidir",)):
        process = ended(run(TOOL, "--local", "-x", "corrupts_all", "-t", "get", "-n", "100", "-w",
                            "5", "--verify", *more, env=env), 1)
        check("verify: get 19 of 8 bytes: byte 0 is 0x" in one_sentence(process, NAME), process)


if __name__ == "__main__":
    tap.main()
