# SPDX-License-Identifier: BSD-3-Clause
"""The tools on the memory of a real NVIDIA GPU: gpu_test.py BUILD [--full]. It needs the tools of a
build folder and nothing else; where there is no GPU every test is a skip. With --full the long
commands run with their usual numbers of iterations."""
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (Client, Server, Traces, alone, check, ended, equal, header_value,
                 one_sentence, rows_of, run, sentences, skip)

FULL = "--full" in sys.argv
LARGEST = 256 << 20
SIZES = [8 << i for i in range(26)]
RANGE = ("-s", f"8:{LARGEST}", "--verify")
QUICK = () if FULL else ("-n", "3", "--warmup", "1", "--latency-gap", "0")
LIMIT_S = 900 if FULL else 300
OPS = {"write": ("cxi_write_lat",), "read": ("cxi_read_lat",), "send": ("cxi_send_lat",),
       "send by rendezvous": ("cxi_send_lat", "-R")}
PLACES = {"GPU to GPU": ("-t", "0", "-r", "0"), "GPU to host": ("-t", "0"),
          "host to GPU": ("-r", "0")}


def found():
    """How many GPUs the tools find."""
    process = run(tap.tool_path("cxi_write_lat"), "--local", "-t", "0", "-n", "1", "--latency-gap",
                  "0", limit=120)
    match = re.search(r"Found (\d+) GPU\(s\)", process.err)
    if not match and process.code == 1 and "no GPU here" in process.err:
        return 0
    check(match and process.code == 0, process)
    return int(match[1])


_count = []


def needs_gpu():
    if not _count:
        _count.append(found())
    if not _count[0]:
        skip("there is no GPU here")
    return _count[0]


def whole_range(op, place):
    needs_gpu()
    tool, *more = OPS[op]
    process = run(tap.tool_path(tool), "--local", *more, *PLACES[place], *RANGE, *QUICK,
                  limit=LIMIT_S)
    ended(process, 0)
    equal([row[0] for row in rows_of(process)], SIZES)
    check("copy engine of NVIDIA GPU 0" in header_value(process, "Fabric"), process)
    for option, label in (("-t", "Client"), ("-r", "Server")):
        memory = header_value(process, f"{label} {'TX' if option == '-t' else 'RX'} Mem")
        equal(memory, "GPU 0" if option in PLACES[place] else "System")
        if option in PLACES[place]:
            equal(header_value(process, f"{label} GPU Type"), "NVIDIA")
    tap.note(process.out)


for op in OPS:
    for place in PLACES:
        tap.add(f"{op}, {place}: 8 B to 256 MiB arrive whole", whole_range, op, place,
                by_itself=True)


def whole_lists(op, place):
    """Places that are used again, more than the fabric holds, and sizes that are not whole lists."""
    needs_gpu()
    tool, *more = OPS[op]
    process = run(tap.tool_path(tool.replace("_lat", "_bw")), "--local", *more, *PLACES[place], "-s",
                  "8:4M", "-l", "70", "--buf-sz", "64M", "-n", "3", "--verify", limit=LIMIT_S)
    ended(process, 0)
    equal([int(line.split()[0]) for line in process.out.splitlines() if re.match(r" +\d+ +210 ", line)],
          SIZES[:20], process)
    tap.note(process.out)


for op in OPS:
    for place in PLACES:
        tap.add(f"lists, {op}, {place}: 8 B to 4 MiB arrive whole", whole_lists, op, place,
                by_itself=True)


def loops_back(place):
    needs_gpu()
    for size in ("8", "512K", "2M"):
        process = run(tap.tool_path("cxi_gpu_loopback_bw"), *PLACES[place], "-i", "2", "-n", "100",
                      "-s", size, "--verify", limit=LIMIT_S)
        ended(process, 0)
        equal(header_value(process, "GPU Type"), "NVIDIA")
        tap.note(process.out)


for place in PLACES:
    tap.add(f"cxi_gpu_loopback_bw, {place}: every byte arrives", loops_back, place, by_itself=True)


def two_ways(test, memory, layout):
    needs_gpu()
    process = run(tap.tool_path("ucx_perftest"), "--local", "-t", test, "-m", memory, "-n", "300",
                  "-w", "20", "--verify", "-f", *layout, limit=120)
    ended(process, 0)
    tap.note(process.out)


for test in ("am_lat", "put_lat", "get", "am_bw", "put_bw"):
    for memory in ("cuda", "cuda,host", "host,cuda"):
        for layout in (("-D", "bcopy"), ("-D", "zcopy", "-s", "4096")):
            tap.add(f"ucx_perftest {test} -m {memory} {' '.join(layout)}", two_ways, test, memory,
                    layout, by_itself=True)


# ---- UCX's protocol layer ----

MODULE = os.path.join(tap.build_folder(), "modules", "weft-ucp.so")
LAYER = ("tag_lat", "tag_bw", "tag_sync_lat", "ucp_am_lat", "ucp_am_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
         "stream_lat", "stream_bw")
CHOICE = "UCX's choice"
PATHS = {CHOICE: ("-x", "ucp"), "shared memory": ("-x", "posix,cuda_copy"),
         "shared memory and IPC": ("-x", "posix,cuda_copy,cuda_ipc"), "TCP": ("-x", "tcp,cuda_copy", "-d", "lo")}


def on_layer(*args, limit=120):
    """One that the UCX here carries; it may have been built without CUDA."""
    needs_gpu()
    if not os.path.exists(MODULE):
        skip("weft-ucp.so is not built")
    process = run(tap.tool_path("ucx_perftest"), "--local", *args, limit=limit)
    if process.code == 1 and "no support for CUDA memory" in process.err:
        skip(one_sentence(process, "ucx_perftest").strip())
    return process


def layer_lines(sizes, verify):
    """Eager ones, and such as go by rendezvous. Each has memory of its own, where the last one's was."""
    for name in LAYER:
        for size in sizes:
            yield f"{name}_{size} -t {name} -s {size} {verify}"
    yield f"window -t ucp_am_bw -s 8M -O 20 {verify}"
    yield f"lent -t stream_bw -s 100000 -r recv_data {verify}"
    yield f"header -t ucp_am_lat -H 16 -s 100000 {verify}"
    yield f"copied -t ucp_am_bw -y -s 100000 {verify}"
    yield f"registered -t tag_bw -z -s 100000 {verify}"


def runs_lines(memory, path, lines):
    process = on_layer("-m", memory, *PATHS[path], "-n", "20", "-w", "3", "--interval", "0", "-v", "-b",
                       tap.file_with("\n".join(lines) + "\n"), limit=LIMIT_S)
    ended(process, 0)
    equal([row.split(",")[:2] for row in process.out.splitlines()[1:]], [[line.split()[0], "20"] for line in lines],
          process)
    tap.note(process.out)


def layer_moves(memory, path, verify):
    runs_lines(memory, path, list(layer_lines((8, 65536, 4194304) if path == CHOICE else (8, 100000), verify)))


def every_size(memory, path):
    """With the windows that nobody asked for. The largest are several pieces of what UCX goes through."""
    sizes = SIZES if FULL else SIZES[:21]
    runs_lines(memory, path, [f"{name}_{size} -t {name} -s {size} --verify" for name in
                              ("tag_lat", "tag_bw", "ucp_am_bw", "ucp_put_lat", "stream_bw") for size in sizes])


for path in PATHS:
    for memory in ("cuda", "cuda,host", "host,cuda"):
        for verify in ("", "--verify") if path == CHOICE else ("--verify",):
            tap.add(f"UCX's protocol layer by {path} -m {memory} {verify}", layer_moves, memory, path, verify,
                    by_itself=True)
        tap.add(f"every size of the protocol layer by {path} -m {memory}", every_size, memory, path, by_itself=True)


@alone
def what_uses_tags_on_a_gpu_goes_by_the_protocol_layer():
    ended(on_layer("-t", "tag_bw", "-m", "cuda", "-n", "20"), 0)
    ended(on_layer("-t", "tag_bw", "-m", "cuda", "-n", "200", "-T", "2", "-s", "100000", "--verify"), 0)


@alone
def the_protocol_layer_refuses_what_it_has_not():
    process = ended(on_layer("-t", "ucp_add", "-m", "cuda", "-n", "20"), 1)
    check("cannot do atomics on GPU memory" in one_sentence(process, "ucx_perftest"), process)
    process = ended(on_layer("-t", "tag_lat", "-m", "cuda", "-n", "20", "-x", "tcp", "-d", "lo"), 1)
    check("name cuda_copy too" in one_sentence(process, "ucx_perftest"), process)


def trusted():
    """To strangers a server offers less than UCX's choice."""
    path = tap.file_with("5" * 64 + "\n")
    os.chmod(path, 0o600)
    return {"WEFT_SECRET": path}


def layer_refuses(name, memory):
    """Before anything is timed, with the same words at both ends."""
    on_layer("-t", "tag_lat", "-m", memory, "-n", "1")
    env, words = trusted(), r"ucx_perftest: ucp \S+ \(UCX 1\.[\d.]+\) cannot do atomics on GPU memory"
    server = Server(tap.tool_path("ucx_perftest"), "-x", "ucp", env=env)
    client = Client(tap.tool_path("ucx_perftest"), server, "-x", "ucp", "-t", name, "-m", memory, "-n", "20", env=env)
    for end in (client, server):
        ended(end, 1)
        check(re.fullmatch(words, one_sentence(end, "ucx_perftest")), client, server)


for name in ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"):
    for memory in ("cuda", "cuda,host", "host,cuda"):
        tap.add(f"{name} -m {memory} is refused at both ends of the protocol layer", layer_refuses, name, memory,
                by_itself=True)


def layer_killed(victim, name):
    on_layer("-t", name, "-m", "cuda", "-n", "1")
    for path in (CHOICE, "shared memory and IPC", "TCP"):
        tap.kills_an_end(victim, *PATHS[path], "-m", "cuda", "-t", name, "-s", "1M", env=trusted())


for name in ("tag_bw", "ucp_put_bw", "ucp_am_lat", "stream_bw"):
    for victim in ("server", "client"):
        tap.add(f"a killed {victim} ends the other in {name} on the protocol layer", layer_killed, victim, name,
                by_itself=True)


@alone
def two_processes_that_were_started_by_hand_measure_alike():
    needs_gpu()
    server = Server(tap.tool_path("cxi_write_lat"), "-r", "0", limit=120)
    client = Client(tap.tool_path("cxi_write_lat"), server, "-t", "0", "-s", "8:1M", "--verify",
                    "-n", "20", "--latency-gap", "0", limit=120)
    ended(client, 0)
    ended(server, 0)
    for end in (server, client):
        check(re.search(r"Found \d+ GPU\(s\)", end.err), end)
        equal(header_value(end, "Client TX Mem"), "GPU 0")
        equal(header_value(end, "Server RX Mem"), "GPU 0")


@alone
def a_gpu_that_is_not_there_is_refused_with_the_number_of_those_that_are():
    count = needs_gpu()
    for option in ("-t", "-r"):
        process = run(tap.tool_path("cxi_write_lat"), "--local", option, str(count + 8), limit=60)
        ended(process, 1)
        said = one_sentence(process, "cxi_write_lat")
        check(f"no GPU {count + 8}" in said and str(count) in said, process)


@alone
def a_gpu_of_another_maker_is_refused():
    needs_gpu()
    process = run(tap.tool_path("cxi_read_lat"), "--local", "-t", "0", "-g", "AMD", limit=60)
    ended(process, 1)
    check("no GPU of AMD here" in one_sentence(process, "cxi_read_lat"), process)
    check("of NVIDIA" in process.err, process)


@alone
def where_no_gpu_is_visible_that_is_said():
    needs_gpu()
    process = run(tap.tool_path("cxi_send_lat"), "--local", "-t", "0", limit=60,
                  env={"CUDA_VISIBLE_DEVICES": ""})
    ended(process, 1)
    check("no GPU here" in one_sentence(process, "cxi_send_lat"), process)


@alone
def a_server_that_is_killed_takes_the_client_along_and_leaves_nothing():
    needs_gpu()
    traces = Traces()
    tool = tap.tool_path("cxi_send_lat")
    server = Server(tool, "-r", "0", env=traces.env, limit=120)
    client = Client(tool, server, "-t", "0", "-n", "1000000000", "--latency-gap", "0", "-s", "1M",
                    env=traces.env, limit=120)
    client.wait_for("^Remote ", 60)
    time.sleep(1)
    traces.watch(server, client)
    server.kill(signal.SIGKILL)
    ended(client, 4, 30)
    traces.nothing(10)


tap.main(workers=1)
