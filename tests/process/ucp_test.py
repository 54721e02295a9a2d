# SPDX-License-Identifier: BSD-3-Clause
"""UCX's protocol layer in ucx_perftest: every test of it with the data checked, in shared memory and over TCP; a
killed end ends the other."""
import os
import signal
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, add, check, ended, equal, run, sentences, skip

TOOL = tap.tool_path("ucx_perftest")
MODULE = os.path.join(tap.build_folder(), "modules", "weft-ucp.so")
TESTS = ("stream_lat", "stream_bw", "ucp_am_lat", "ucp_am_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "tag_lat",
         "tag_bw", "tag_sync_lat", "tag_sync_bw")
ATOMICS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
FABRICS = {"posix": ("-x", "posix"), "tcp": ("-x", "tcp", "-d", "lo")}
QUICK = ("-n", "20", "-w", "3", "--interval", "0", "-v")


def need():
    if not os.path.exists(MODULE):
        skip("weft-ucp.so is not built")


def lines_for(verify):
    """Eager ones, and such as go by rendezvous; headers, copies, and both kinds of stream."""
    for name in TESTS:
        for size in (1, 100, 100000) if verify else (8,):
            yield f"{name}_{size} -t {name} -s {size} {verify}"
    for name in ATOMICS:
        for size in (4, 8):
            yield f"{name}_{size} -t {name} -s {size} {verify}"
    yield f"lent -t stream_lat -s 3000 -r recv_data {verify}"
    yield f"lent_bw -t stream_bw -s 100000 -r recv_data {verify}"
    yield f"window -t ucp_am_bw -s 8M -O 20 {verify}"
    yield f"header -t ucp_am_lat -H 16 -s 5 {verify}"
    yield f"copied -t ucp_am_bw -y -s 200 {verify}"


def runs(fabric, verify, *more):
    need()
    lines = list(lines_for(verify))
    path = os.path.join(tap.folder(), "batch")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    process = run(TOOL, "--local", *QUICK, *FABRICS[fabric], *more, "-b", path, limit=60)
    ended(process, 0)
    rows = [row.split(",")[:2] for row in process.out.splitlines()[1:]]
    equal(rows, [[line.split()[0], "20"] for line in lines], process)
    said = [line.split(" protocol of ")[1].split(":")[0] for line in sentences(process) if " protocol of " in line]
    equal(said, [line.split()[2] for line in lines] if "-X" in more else [], process)


def killed(fabric, victim, name, *more):
    """UCX must not look at what nobody has set: memory that it gets is not all zeroes."""
    need()
    tap.kills_an_end(victim, *FABRICS[fabric], "-t", name, *more, env={"MALLOC_PERTURB_": "85"})


def noticed(fabric):
    need()
    if tap.SANITIZED:
        skip("nothing can be preloaded before a sanitizer")
    env = {"LD_PRELOAD": os.path.join(tap.doubles_folder(), "ucx_corrupts.so")}
    size = "100" if fabric == "posix" else "100000"

    def one(name):
        process = run(TOOL, "--local", *FABRICS[fabric], "-t", name, "-s", size, "-n", "100", "-w", "0", "--verify",
                      env=env)
        ended(process, 1)
        check("byte 0 is" in process.err, name, process)

    # A failed run waits a second for the other end.
    tap.in_parallel(one, [name for name in TESTS if name != "ucp_get"], 5)


def aborts(victim, where):
    """As UCX does to a process whose peer is lost."""
    need()
    if tap.SANITIZED:
        skip("nothing can be preloaded before a sanitizer")
    file = os.path.join(tap.folder(), "now")
    env = {"LD_PRELOAD": os.path.join(tap.doubles_folder(), "ucx_aborts.so"), "WEFT_TEST_ABORTS": file}
    give = {end: env if end == victim else {} for end in ("client", "server")}
    server = Server(TOOL, *FABRICS[where], env=give["server"])
    client = Client(TOOL, server, *FABRICS[where], "-t", "tag_bw", "-n", "0", "--timeout", "5", "-w", "10",
                    env=give["client"])
    client.wait_for(r"^\| # iterations .*\n\+-.*\+$")
    with open(file, "w", encoding="utf-8"):
        pass
    hit, other = (client, server) if victim == "client" else (server, client)
    ended(hit, -signal.SIGABRT if where == "posix" else 4, 30)
    check(where == "posix" or "UCX aborted its work on it" in hit.err, hit)
    ended(other, 4, 30)
    check(not os.path.exists(file), "UCX has not aborted", hit)


for victim in ("client", "server"):
    add(f"the {victim} outlives an abort in UCX on a network", aborts, victim, "tcp")
add("an abort of a process that has no network is not touched", aborts, "client", "posix")
for fabric in FABRICS:
    add(f"every test of UCX's protocol layer runs on {fabric}", runs, fabric, "")
    add(f"every test of UCX's protocol layer moves what was sent on {fabric}", runs, fabric, "--verify")
    add(f"of every test of UCX's protocol layer the protocol is asked for on {fabric}", runs, fabric, "", "-X")
    add(f"wrong data in a message or a put by UCX's layer is noticed on {fabric}", noticed, fabric)
    for victim, *test in (*((("client", "server")[i % 2], name) for i, name in enumerate(TESTS + ATOMICS)),
                          ("client", "ucp_put_bw", "--bidir", "-s", "1M", "-O", "8"),
                          ("server", "tag_lat", "-U"), ("client", "stream_lat", "-E", "sleep")):
        add(f"a killed {victim} ends the other in {' '.join(test)} on {fabric}", killed, fabric, victim, *test)


@tap.test
def a_layout_is_refused_because_the_layer_chooses():
    need()
    process = run(TOOL, "--local", *QUICK, "-t", "ucp_put_bw", "-x", "posix", "-D", "short")
    ended(process, 1)
    check("UCP chooses by size" in process.err, process)


@tap.test
def every_release_has_atomics_unless_it_is_asked_to_handle_errors_too():
    """Releases whose protocols exclude the two from each other would never complete one."""
    need()
    for words in ((), ("-x", "posix"), ("-x", "tcp"), ("-enone", "-x", "tcp")):
        ended(run(TOOL, "--local", *QUICK, "-t", "ucp_fadd", *words), 0)
    process = run(TOOL, "--local", *QUICK, "-t", "ucp_fadd", "-epeer", "-x", "posix")
    check(process.code == 0 or (process.code == 1 and "cannot fadd" in process.err), process)


@tap.test
def without_a_transport_the_layer_chooses_one():
    need()
    process = run(TOOL, "--local", *QUICK, "-t", "ucp_put_bw")
    ended(process, 0)
    check(any("carried by ucp " in line for line in sentences(process)), process)


if __name__ == "__main__":
    tap.main()
