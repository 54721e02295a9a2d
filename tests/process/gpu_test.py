# SPDX-License-Identifier: BSD-3-Clause
"""The tools on the memory of a real NVIDIA GPU: gpu_test.py BUILD [--full]. It needs the tools of a
build folder and nothing else; where there is no GPU every test is a skip. With --full the long
commands run with their usual numbers of iterations."""
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (Client, Server, Traces, alone, check, ended, equal, header_value,
                 one_sentence, rows_of, run, skip)

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
