# SPDX-License-Identifier: BSD-3-Clause
"""Options of ucx_perftest that users of current UCX type, on the software NIC and on UCX's protocol layer, with the
data checked; what makes no sense is refused in a sentence."""
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import add, check, ended, equal, file_with, one_sentence, run, skip, test

TOOL = tap.tool_path("ucx_perftest")
MODULE = os.path.join(tap.build_folder(), "modules", "weft-ucp.so")
FABRICS = {"soft": ("-x", "soft"), "posix": ("-x", "ucp:posix"), "tcp": ("-x", "ucp:tcp", "-d", "lo")}
QUICK = ("-n", "10", "-w", "1", "--interval", "0", "-v")


def need(fabric):
    if fabric != "soft" and not os.path.exists(MODULE):
        skip("weft-ucp.so is not built")


def batch(fabric, lines, *args):
    """All of them in one process: each has its row."""
    need(fabric)
    process = ended(run(TOOL, "--loopback", *QUICK, *FABRICS[fabric], *args, "-b", file_with("\n".join(lines) + "\n"),
                        limit=60), 0)
    rows = [row.split(",")[:2] for row in process.out.splitlines()[1:]]
    equal(rows, [[line.split()[0], "20" if "-T 2" in line else "10"] for line in lines], process)
    return process


def refused(code, words, *args):
    process = run(TOOL, "--loopback", *QUICK, *args)
    equal(process.code, code, process)
    check(words in process.err, words, process)


# ---- both ends in one process ----

def loops(fabric):
    names = ["tag_lat", "tag_bw", "am_lat", "am_bw", "put_lat", "put_bw", "get"]
    batch(fabric, [f"{name} -t {name}" for name in names] + ["threads -t tag_bw -T 2"], "--verify")


for fabric in FABRICS:
    add(f"both ends are in one process on {fabric}", loops, fabric)


@test
def one_process_is_no_client_of_another():
    for args, words in ((("127.0.0.1",), "the address"), (("--local",), "--local"), (("-l",), "--loop")):
        refused(2, f"--loopback is both ends in this process: leave out {words}", "-t", "get", *args)
    process = ended(run(TOOL, "--loopback", "-t", "put_lat", "-x", "uct:nothing"), 1)
    check("nothing" in one_sentence(process, "ucx_perftest"), process)


if __name__ == "__main__":
    tap.main()
