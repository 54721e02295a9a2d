# SPDX-License-Identifier: BSD-3-Clause
"""What makes the tools easy to use: options cut short, numbers with K, lists, suggestions, and
sentences that say what to do next."""
import os
import pty
import re
import shutil
import signal
import sys

sys.dont_write_bytecode = True
import tap
from tap import (Client, Process, Server, check, ended, equal, header_value, one_sentence, run, sentences,
                 test)

CXI = [tap.tool_path(f"cxi_{word}_lat") for word in ("write", "read", "send", "atomic")]
TOOL = CXI[0]
PERF = tap.tool_path("ucx_perftest")
WEFT = tap.tool_path("weft")
MODULES = os.path.join(tap.build_folder(), "modules")
NOBODY = 65534


# ---- the command line ----

@test
def long_options_may_be_cut_short():
    process = ended(run(TOOL, "--loc", "--lat", "0", "--it=20", "--dev", "null"), 0)
    equal(header_value(process, "Inter-Iter Gap"), "0 microseconds")
    equal(header_value(process, "Iterations"), "20")
    ended(run(WEFT, "info", "--js", os.path.join(tap.folder(), "x.json")), 0)
    process = ended(run(PERF, "--loc", "--te", "get", "--it", "100", "--dev", "null"), 0)
    check(process.out, process)


@test
def what_may_be_cut_from_several_lists_them():
    process = ended(run(TOOL, "--lo"), 2)
    equal(one_sentence(process, "cxi_write_lat"),
          "cxi_write_lat: --lo may be --local, --loop: write more of it")
    ended(run(PERF, "--l", "8"), 2)


@test
def counts_take_k_m_and_g_and_times_and_ports_do_not():
    for tool in CXI:
        process = ended(run(tool, "--local", "-d", "null", "-n", "1K", "--warmup", "1K",
                            "--latency-gap", "0"), 0)
        equal(header_value(process, "Iterations"), "1024")
        equal(header_value(process, "Warmup Iters"), "1024")
    for name in ("-p", "-D", "--timeout", "--wait", "--cpu", "--latency-gap"):
        ended(run(TOOL, "127.0.0.1", name, "1K"), 2)
    process = ended(run(PERF, "--local", "-d", "null", "-t", "get", "-n", "2K", "-w", "1K", "-O",
                        "1K", "-s", "1K", "-v", "-f"), 0)
    check(process.out.splitlines()[1].startswith("2048,"), process)


# ---- what there is ----

@test
def every_tool_lists_the_devices_of_every_fabric():
    wanted = {"soft:cxi0", "null"}
    for name, device in (("uct", "uct:posix/memory"), ("ofi", "ofi:tcp/lo")):
        if os.path.exists(os.path.join(MODULES, f"weft-{name}.so")):
            wanted.add(device)
    lists = {ended(run(tool, "--list"), 0).out for tool in (*CXI, PERF, WEFT)}
    equal(len(lists), 1, "the same in every tool", *lists)
    devices = {line.split()[0] for line in lists.pop().splitlines()}
    check(wanted <= devices, wanted - devices)


@test
def a_mistyped_device_has_a_suggestion():
    for tool, more in ((TOOL, ()), (PERF, ("-t", "get"))):
        for typed, meant in (("sofft", "soft"), ("sfot:cxi0", "soft"), ("cxio0", "cxi0"),
                             ("nul", "null")):
            process = ended(run(tool, "--local", "-d", typed, *more), 1)
            check(f"(did you mean {meant}?)" in process.err, process)
        process = ended(run(tool, "--local", "-d", "elephant", *more), 1)
        check("did you mean" not in process.err, process)


@test
def a_client_without_a_device_takes_the_fabric_of_the_server():
    for tool, more in ((TOOL, ("-n", "20", "--latency-gap", "0", "--percentiles", "50")),
                       (PERF, ("-t", "get", "-n", "20"))):
        server = Server(tool, "-d", "null:delay=300us")
        client = ended(Client(tool, server, *more), 0)
        ended(server, 0)
        check("null (moves nothing" in client.out + client.err, client)


# ---- a server whose output nobody reads ----

@test
def a_server_goes_on_when_nobody_reads_its_output():
    for tool, more in ((TOOL, ()), (PERF, ("-t", "get"))):
        inlet, outlet = os.pipe()
        server = Process([tool, "-p", "0", "--loop", "--bind", "127.0.0.1"], stdout=outlet)
        os.close(outlet)
        with os.fdopen(inlet, encoding="utf-8") as reader:
            port = reader.readline().split()[3]
        for _ in range(2):
            ended(run(tool, "127.0.0.1", "-p", port, "-n", "20", *more), 0)
        check(server.running(), server)
        server.kill(signal.SIGTERM)
        ended(server, 143)
        check("writing" not in server.err and "pipe" not in server.err, server)


# ---- what to do next ----

def as_user(tool, user):
    """A copy that this user may run, and the words to do so."""
    if os.geteuid():
        tap.skip("only root can be two users")
    if not shutil.which("setpriv"):
        tap.skip("setpriv is not installed")
    place = tap.folder()
    os.chmod(place, 0o755)
    copy = shutil.copy(tool, place)
    return copy, ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


@test
def two_users_are_told_which_fabric_works_between_them():
    for tool, more in ((TOOL, ()), (PERF, ("-t", "put_lat", "-x", "soft"))):
        copy, prefix = as_user(tool, NOBODY)
        server = Server(tool)
        client = Client(copy, server, *more, prefix=prefix)
        ended(client, 1)
        ended(server, 1)
        for end in (client, server):
            check("device ofi:tcp works between users" in sentences(end)[-1], end)


# ---- weft on a terminal ----

def on_terminal(*args, env):
    """What a terminal is given on both streams."""
    leader, follower = pty.openpty()
    process = Process([WEFT, *args], stdout=follower, stderr=follower, env=env)
    ended(process, 0)
    os.close(follower)
    said = b""
    try:
        while piece := os.read(leader, 65536):
            said += piece
    except OSError:
        pass  # nobody has the other side any more
    os.close(leader)
    return said.decode()


@test
def a_terminal_has_colors_unless_the_user_wants_none():
    for colors, more in (True, {}), (False, {"NO_COLOR": "1"}), (False, {"TERM": "dumb"}), (True, {"NO_COLOR": ""}):
        said = on_terminal("help", env={"TERM": "xterm", "NO_COLOR": "", **more})
        equal("\033[1m" in said, colors, ascii(said))
    check("\033" not in ended(Process([WEFT, "help"], env={"TERM": "xterm"}), 0).out)


@test
def repeat_says_on_a_terminal_where_it_is_in_one_line():
    said = on_terminal("repeat", "2", "--", tap.tool_path("cxi_write_lat"), "--local", "-d", "null",
                       "-n", "10", "-s", "8", env={"TERM": "xterm"})
    check("\rrun 1 of 2\033[K\r" in said and re.search(r"\rrun 2 of 2, \d+ s left\033\[K\r", said), ascii(said))


if __name__ == "__main__":
    tap.main()
