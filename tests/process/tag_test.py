# SPDX-License-Identifier: BSD-3-Clause
"""Tagged messages in ucx_perftest: every test and kind of receive, with the data checked, on the software NIC
and on libfabric; what one end cannot do is refused at both; a killed end ends the other."""
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import add, check, ended, equal, run, sentences, skip

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
OFI = os.path.join(tap.build_folder(), "modules", "weft-ofi.so")
TESTS = ("tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw")
FABRICS = {"soft": ("-x", "soft"), "tcp": ("-x", "ofi:tcp", "-d", "lo"), "shm": ("-x", "ofi:shm")}
QUICK = ("-n", "20", "-w", "3", "--interval", "0", "-v")


def need(fabric):
    if fabric != "soft" and not os.path.exists(OFI):
        skip("weft-ofi.so is not built")


def probes(fabric):
    return fabric != "shm"  # of libfabric 1


def lines_for(fabric, verify):
    """Short ones, some that fill a line, and such as the receiver pulls; all kinds of receives; both ways."""
    for name in TESTS:
        for size in (1, 100, 20000) if verify else (8,):
            yield f"{name}_{size} -t {name} -s {size} {verify}"
    for name in ("tag_lat", "tag_bw"):
        if not verify:
            break
        yield f"{name}_C -t {name} -C {verify}"
        if probes(fabric):
            yield f"{name}_U -t {name} -U {verify}"
            yield f"{name}_UC -t {name} -s 20000 -UC {verify}"
    yield f"both -t tag_bw --bidir -s 64 {verify}"
    if probes(fabric):
        yield f"both_U -t tag_bw --bidir -U {verify}"


def runs(fabric, verify):
    need(fabric)
    lines = list(lines_for(fabric, verify))
    path = os.path.join(tap.folder(), "batch")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    process = run(TOOL, "--local", *QUICK, *FABRICS[fabric], "-b", path)
    ended(process, 0)
    rows = [row.split(",")[:2] for row in process.out.splitlines()[1:]]
    equal(rows, [[line.split()[0], "20"] for line in lines], process)
    kinds = [line.split("tag messages: ")[1] for line in sentences(process) if "tag messages: " in line]
    equal([kind.startswith("unexpected") for kind in kinds], ["U" in line for line in lines], process)
    equal(["any tag" in kind for kind in kinds], ["C" in line.split()[0] for line in lines], process)
    equal(["synchronous" in kind for kind in kinds], ["sync" in line for line in lines], process)


def killed(fabric, name, victim):
    need(fabric)
    tap.kills_an_end(victim, *FABRICS[fabric], "-t", name)


for fabric in FABRICS:
    add(f"all tests of tagged messages run on {fabric}", runs, fabric, "")
    add(f"all tests of tagged messages move what was sent on {fabric}", runs, fabric, "--verify")
    for victim in ("client", "server"):
        add(f"a killed {victim} ends the other in tag_bw on {fabric}", killed, fabric, "tag_bw", victim)
add("a killed client ends the server that probes", killed, "soft", "tag_lat", "client")


@tap.test
def wrong_data_in_a_tagged_message_is_noticed():
    for name in ("tag_lat", "tag_bw"):
        process = run(TOOL, "--local", "-x", "corrupts_all", "-t", name, "-n", "100", "-w", "0", "--verify")
        equal(process.code, 1, process)
        check("byte 0 is" in process.err, process)


@tap.test
def what_has_no_sense_is_refused_before_anything_runs():
    for args, code, words in (
            (("-t", "am_lat", "-U"), 2, "-C and -U are for tagged messages: am_lat has none"),
            (("-t", "tag_lat", "-D", "short"), 2, "data layout short is not for tag"),
            (("-t", "tag_bw", "-W", "129"), 2, "each has its receive posted, at most 128"),
            (("-t", "tag_sync_lat", "-x", "null"), 1, "no synchronous tagged messages"),
            (("-t", "tag_bw", "-x", "null"), 1, "nobody is there to answer"),
            (("-t", "tag_lat", "-x", "uct:posix"), 1, "cannot")):
        process = run(TOOL, "--local", *QUICK, *args)
        check(process.code == code or "not installed" in process.err, process)
        check(words in process.err or "not installed" in process.err, words, process)


@tap.test
def nothing_limits_how_many_are_outstanding_but_what_the_test_says():
    for name, outstanding in (("tag_bw", "32"), ("get_bw", "32"), ("get", "1")):
        for given in ((), ("-O", "0")):
            process = run(TOOL, "--local", *QUICK, "-x", "soft", "-t", name, *given, "--json", "-")
            ended(process, 0)
            check(f'"outstanding": {{"value": {outstanding},' in process.out, process)


if __name__ == "__main__":
    tap.main()
