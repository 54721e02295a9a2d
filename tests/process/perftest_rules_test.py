# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest: titles, headers, what verifying names, and what a server does with options."""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, equal, lines_of, one_sentence, run, test

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
UCT = os.path.join(tap.build_folder(), "modules", "weft-uct.so")
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
def only_final_rows_have_one_header():
    batch = tap.file_with("a -t put_lat\nb -t put_bw\nc -t get\nd -t add_mr\n")
    rule = "+--------------+-----------------------------+"
    process = good("-b", batch, "-f")
    equal(process.out.count(rule), 1, process)
    equal(title_of(process), "overhead/latency (usec)")
    equal(len(lines_of(process.out)), 5 + 2 * 4, process)
    equal(len({len(line) for line in lines_of(process.out)[:5]}), 1, process)
    equal(good("-b", batch).out.count(rule), 4)
    same = tap.file_with("a -t put_lat\nb -t am_lat\n")
    equal(title_of(good("-b", same, "-f")), "latency (usec)")


@test
def a_server_takes_and_ignores_what_is_the_clients():
    server = Server(TOOL, "-t", "put_lat", "-b", "/nowhere/batch",
                    "-s", "4K", "-f", "--json", "/nowhere/x.json")
    client = Client(TOOL, server, "-t", "get", "-n", "100", "-w", "5", "-v")
    ended(client, 0)
    ended(server, 0)
    equal(one_sentence(server, NAME), f"{NAME}: no effect at a server, which takes its tests from "
          "the client: --test, --size, --final, --batch, --json")
    server = Server(TOOL, "-d", "soft:cxi1", "-c", "0", "--bind", "127.0.0.1", "--timeout", "10")
    ended(Client(TOOL, server, "-t", "get", "-n", "100", "-w", "5", "-v"), 0)
    equal(tap.sentences(ended(server, 0)), [])


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


@test
def the_manual_shows_errors_as_they_are():
    with open(os.path.join(os.path.dirname(__file__), "../../man/ucx_perftest.1"),
              encoding="utf-8") as file:
        shown = re.search(r"Errors are one sentence.*?\.Bd -literal\n(.*?)\.Ed", file.read(),
                          re.S)[1].splitlines()
    for command, sentence in zip(shown[::2], shown[1::2]):
        words = command.split()
        equal(words[:2], ["$", NAME])
        if "-x" in words and not os.path.exists(UCT):
            continue
        process = run(TOOL, *words[2:])
        check(process.code in (1, 2), process)
        equal(*(re.sub(r"UCX [\d.]+", "UCX", text)
                for text in (one_sentence(process, NAME), sentence)), process)


if __name__ == "__main__":
    tap.main()
