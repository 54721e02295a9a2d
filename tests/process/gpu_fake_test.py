# SPDX-License-Identifier: BSD-3-Clause
"""Buffers on GPUs of all three vendors, between two real processes, on doubles of their libraries
(fake_gpu.c). The tools are the installed ones but for the function that opens such a library."""
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (Client, Server, Traces, check, ended, equal, header_value, one_sentence,
                 rows_of, run, sentences, skip, test)

FOLDER = tap.doubles_folder()
MODULES = os.path.join(tap.build_folder(), "modules")
VENDORS = {"NVIDIA": "CUDA", "AMD": "ROCM", "INTEL": "ZE"}
CALLED = {"NVIDIA": "CUDA", "AMD": "ROCm", "INTEL": "Level Zero"}
KINDS = {"NVIDIA": "cuda", "AMD": "rocm", "INTEL": "ze"}
LIBRARIES = {"NVIDIA": "libcuda.so.1", "AMD": "libamdhip64.so", "INTEL": "libze_loader.so.1"}
OPS = {"write": ("cxi_write_lat",), "read": ("cxi_read_lat",), "send": ("cxi_send_lat",),
       "send by rendezvous": ("cxi_send_lat", "-R"),
       "write through the queue": ("cxi_write_lat", "--no-ll"),
       "read through the queue": ("cxi_read_lat", "--no-ll"),
       "send through the queue": ("cxi_send_lat", "--no-ll"),
       "send without immediate data": ("cxi_send_lat", "--no-idc")}
# (the client's GPU, the server's)
PLACES = {"GPU to GPU": ("0", "0"), "GPU to another GPU": ("0", "1"), "GPU to host": ("1", None),
          "host to GPU": (None, "0")}
QUICK = ("-n", "3", "--warmup", "1", "--latency-gap", "0")
SIZES = [1 << i for i in range(21)]


def tool(name):
    return os.path.join(FOLDER, "gpu_" + name)


def machine(vendor=None, gpus=2, **more):
    """The environment of a machine with such GPUs."""
    env = {"WEFT_TEST_GPU": FOLDER, **more}
    if vendor:
        env[f"FAKE_{VENDORS[vendor]}_GPUS"] = str(gpus)
    return env


def options_of(place):
    tx, rx = PLACES[place]
    return (("-t", tx) if tx else ()), (("-r", rx) if rx else ())


class Pair:
    """Server and client, each with its own environment."""

    def __init__(self, name, place, *args, env, server_env=None, server_args=()):
        tx, rx = options_of(place)
        self.traces = Traces()
        self.server = Server(tool(name), *rx, *server_args,
                             env={**(server_env or env), **self.traces.env})
        self.client = Client(tool(name), self.server, *tx, *args, env={**env, **self.traces.env})

    def ended(self, code, within=20):
        self.client.wait(within)
        self.server.wait_until(lambda: self.server.code is not None or "refused a client" in self.server.err,
                               within)
        if "refused a client" in self.server.err:
            # A server that refuses waits for the next client.
            self.server.kill(signal.SIGINT)
            self.server.wait(within)
            equal(self.server.code, 130, self.server)
            equal(self.client.code, code, self.client)
            self.traces.nothing()
            return
        self.server.wait(within)
        for end in (self.client, self.server):
            check(end.code == code, f"exit code {code} is wanted", self.client, self.server)
        self.traces.nothing()

    def refused(self, *names, code=1):
        """Both end, with one sentence each that has all of these words."""
        self.ended(code)
        for end in (self.client, self.server):
            said = [line for line in sentences(end) if "Found" not in line and not line.endswith("interrupted")]
            check(len(said) == 1, "one sentence is wanted", end)
            for name in names:
                check(name in said[0], f"no {name!r} in it", end)


# ---- what moves ----

def moves(vendor, op, place):
    name, *more = OPS[op]
    pair = Pair(name, place, *more, *QUICK, "-s", "1:1M", "--verify", env=machine(vendor))
    pair.ended(0)
    equal([row[0] for row in rows_of(pair.client)], SIZES)


for vendor in VENDORS:
    for op in OPS:
        for place in PLACES:
            tap.add(f"{vendor}: {op}, {place}: every byte arrives", moves, vendor, op, place)


# ---- copies in flight ----

LISTS = {"write": "cxi_write_bw", "read": "cxi_read_bw", "send": "cxi_send_bw"}


def lists_arrive(vendor, op, more=(), fault=""):
    """More than the fabric holds at a time, and places that are used again."""
    for place in PLACES:
        pair = Pair(LISTS[op], place, "-n", "2", "-l", "70", "-s", "1:64K", "--buf-sz", "2M",
                    "--verify", *more, env=machine(vendor, FAKE_FAULT=fault))
        pair.ended(0)
        rows = re.findall(r"^ +(\d+) +140 ", pair.client.out, re.M)
        equal(list(map(int, rows)), SIZES[:17], pair.client)


for vendor in VENDORS:
    for op in LISTS:
        tap.add(f"{vendor}: a list of {op}s: every byte arrives", lists_arrive, vendor, op)
tap.add("a list of sends by rendezvous: every byte arrives", lists_arrive, "NVIDIA", "send", ("-R",))
tap.add("INTEL: a driver whose lists are not in order", lists_arrive, "INTEL", "write", (),
        "at once")


def waited(process, path):
    """(copies, how often they were waited for) of a process."""
    with open(path, encoding="ascii") as file:
        counts = {int(pid): (int(copies), int(waits)) for pid, copies, waits in map(str.split, file)}
    return counts[process.pid]


def waits_once(vendor, op, place):
    """5 lists of 100, beside what clears the buffer one by one."""
    path = os.path.join(tap.folder(), "counts")
    pair = Pair(LISTS[op], place, "-n", "4", "-l", "100", "-s", "4K",
                env=machine(vendor, FAKE_COUNTS=path))
    pair.ended(0)
    copies, waits = waited(pair.client, path)
    check(copies >= 500, copies)
    # Sends are as many together as the fabric holds and the other end has receives for.
    if op == "send":
        check(copies - waits >= 400, (copies, waits))
    else:
        equal(copies - waits, 5 * 99, (copies, waits))


for vendor in VENDORS:
    for op in LISTS:
        tap.add(f"{vendor}: a list of {op}s is waited for together", waits_once, vendor, op,
                "host to GPU")
tap.add("within a GPU a list is waited for together", waits_once, "NVIDIA", "write", "GPU to GPU")


@test
def a_stream_has_many_copies_in_flight():
    path = os.path.join(tap.folder(), "counts")
    process = run(tool("ucx_perftest"), "--local", "-t", "put_bw", "-D", "zcopy", "-O", "64", "-s",
                  "4096", "-m", "host,cuda", "-n", "1000", "-w", "0", "-f",
                  env=machine("NVIDIA", FAKE_COUNTS=path))
    ended(process, 0)
    copies, waits = waited(process, path)
    check(copies >= 1000 and waits * 10 <= copies, (copies, waits))


def list_fault(fault, words):
    good, bad = machine("NVIDIA"), machine("NVIDIA", FAKE_FAULT=fault)
    pair = Pair("cxi_write_bw", "host to GPU", "-n", "100", "-l", "50", "-s", "4096", env=bad,
                server_env=good)
    pair.refused("GPU 0 (NVIDIA)", words)


tap.add("a list that a copy cannot be begun of ends both", list_fault, "copy@120",
        "copying 4096 bytes from the host")
tap.add("a GPU that is lost in a list ends both", list_fault, "lost@120", "waiting for copies")


@test
def an_end_that_is_killed_in_a_list_takes_the_other_along():
    for victim in ("server", "client"):
        pair = Pair("cxi_write_bw", "GPU to GPU", "-n", "1000000000", "-l", "1000", "-s", "4K",
                    env=machine("NVIDIA"))
        pair.client.wait_for("^Remote ")
        time.sleep(0.2)
        pair.traces.watch(pair.server, pair.client)
        other = pair.client if victim == "server" else pair.server
        getattr(pair, victim).kill()
        ended(other, 4, 20)
        pair.traces.nothing()


# ---- the header ----

def header_of(vendor, place):
    pair = Pair("cxi_write_lat", place, *QUICK, env=machine(vendor))
    pair.ended(0)
    tx, rx = PLACES[place]
    for end in (pair.client, pair.server):
        equal(header_value(end, "Client TX Mem"), f"GPU {tx}" if tx else "System")
        equal(header_value(end, "Server RX Mem"), f"GPU {rx}" if rx else "System")
        for label, gpu in (("Client", tx), ("Server", rx)):
            lines = re.findall(rf"^{label} GPU Type  : (.*)$", end.out, re.M)
            equal(lines, [vendor] if gpu else [], end)
        equal(header_value(end, "IDC"), "Disabled (from a GPU)" if tx else "Enabled")
        form = header_value(end, "Fabric")
        check(f"copy engine of {vendor} GPU" in form, form)
        check(("page-locked host memory" in form) == (not (tx and rx)), form)
        check(tx and rx or f"{vendor} GPU {tx or rx}" in form, form)
    for end, gpu in ((pair.client, tx), (pair.server, rx)):
        equal("Found 2 GPU(s)" in end.err, gpu is not None, end)


for vendor in VENDORS:
    for place in PLACES:
        tap.add(f"{vendor}: {place}: the header says what lies where", header_of, vendor, place)


def locked(vendor, place):
    for op in ("write", "read", "send", "send by rendezvous"):
        name, *more = OPS[op]
        pair = Pair(name, place, *more, *QUICK, "-s", "1:1M",
                    env=machine(vendor, FAKE_PINNED="1"))
        pair.ended(0)


for vendor in VENDORS:
    for place in ("GPU to host", "host to GPU"):
        tap.add(f"{vendor}: {place}: all host memory of the copies is page-locked", locked, vendor,
                place)


def by_kernel(op, place):
    """NVIDIA's: few bytes go by a kernel where that is faster."""
    name, *more = OPS[op]
    pair = Pair(name, place, *more, *QUICK, "-s", "1:64K", "--verify",
                env=machine("NVIDIA", FAKE_KERNEL="1"))
    pair.ended(0)
    for end in (pair.client, pair.server):
        check("kernel to 4096 B and copy engine of NVIDIA GPU" in header_value(end, "Fabric"), end)
    equal([row[0] for row in rows_of(pair.client)], SIZES[:17])


for op in OPS:
    for place in PLACES:
        tap.add(f"NVIDIA, by a kernel: {op}, {place}: every byte arrives", by_kernel, op, place)


@test
def memory_that_is_not_locked_is_left_to_the_copy_engine():
    pair = Pair("cxi_write_lat", "host to GPU", *QUICK, "-s", "1:4K", "--verify",
                env=machine("NVIDIA", FAKE_KERNEL="1", FAKE_FAULT="pin"))
    pair.ended(0)
    check("kernel" not in header_value(pair.client, "Fabric"), pair.client)


@test
def a_kernel_is_named_only_where_it_copies():
    for place, kernel in (("GPU to GPU", False), ("host to GPU", True)):
        pair = Pair("cxi_write_lat", place, *QUICK, "--verify",
                    env=machine("NVIDIA", FAKE_KERNEL="2"))
        pair.ended(0)
        for end in (pair.client, pair.server):
            equal("kernel to 4096 B" in header_value(end, "Fabric"), kernel, end)


@test
def a_kernel_that_does_not_end_is_given_up():
    good = machine("NVIDIA", FAKE_KERNEL="1")
    pair = Pair("cxi_write_lat", "host to GPU", "-n", "1000", "--latency-gap", "0",
                env={**good, "FAKE_FAULT": "hang@1000"}, server_env=good)
    pair.refused("GPU 0 (NVIDIA): copying 8 bytes from the host: it has not answered for 0.3 s")


@test
def a_gpu_whose_kernels_do_not_end_is_refused_when_it_is_opened():
    process = run(tool("cxi_write_lat"), "--local", "-t", "0", "-r", "0", *QUICK,
                  env=machine("NVIDIA", FAKE_KERNEL="1", FAKE_FAULT="hang@5"))
    ended(process, 1)
    check("GPU 0 (NVIDIA): cannot be used: it has not answered" in process.err, process)


def kernel_lost(server):
    good = machine("NVIDIA", FAKE_KERNEL="1")
    bad = machine("NVIDIA", FAKE_KERNEL="1", FAKE_FAULT="lost@3000")
    pair = Pair("cxi_send_lat", "GPU to GPU", "-n", "100000", "--latency-gap", "0",
                env=good if server else bad, server_env=bad if server else good)
    pair.refused("GPU 0", "NVIDIA", "copying 8 bytes")


for server in (False, True):
    tap.add(f"NVIDIA, by a kernel: lost at the {'server' if server else 'client'}: both end",
            kernel_lost, server)


def not_locked(vendor, fault):
    pair = Pair("cxi_write_lat", "host to GPU", *QUICK, "-s", "1:64K", "--verify",
                env=machine(vendor, FAKE_FAULT=fault))
    pair.ended(0)
    for end in (pair.client, pair.server):
        equal(end.err.count("copies will be slower"), 1, end)
        check("not page-locked" in header_value(end, "Fabric"), end)


for vendor in VENDORS:
    tap.add(f"{vendor}: pages that cannot be locked are a remark, not an end", not_locked, vendor,
            "pin")
tap.add("INTEL: a driver that locks no pages is a remark, not an end", not_locked, "INTEL", "no pin")


# A batch: both ends start once.
MOVES = ("-t am_lat", "-t am_lat -D zcopy", "-t put_lat", "-t put_lat -s 5",
         "-t put_lat -D zcopy -s 64K", "-t get", "-t get -D zcopy", "-t am_bw -s 8K",
         "-t am_bw -D zcopy -s 64K", "-t put_bw", "-t put_bw -D zcopy -O 8")


def perftest(vendor, memory):
    path = tap.file_with("".join(f"t{i} {words}\n" for i, words in enumerate(MOVES)))
    process = run(tool("ucx_perftest"), "--local", "-b", path, "-m", memory, "-n", "50", "-w", "5",
                  "--verify", "-f", env=machine(vendor))
    ended(process, 0)
    equal(len(re.findall(r"^ +50 +[\d.]+", process.out, re.M)), len(MOVES), process)
    # A pair means something else there: said once.
    equal(process.err.count("in UCX it is what each end"), "," in memory, process)


for vendor, kind in KINDS.items():
    for memory in (kind, f"{kind},host", f"host,{kind}:1", f"{kind}:0,{kind}:1"):
        tap.add(f"ucx_perftest -m {memory}: every test of moving bytes", perftest, vendor, memory)


@test
def one_connection_carries_a_batch_of_kinds_of_memory():
    path = tap.file_with("a -m host\nb -m cuda\nc -m cuda,host\nd -m host,cuda\ne -m rocm\n"
                         "f -m host\n")
    process = run(tool("ucx_perftest"), "--local", "-t", "put_lat", "-n", "50", "-w", "5", "-v",
                  "-b", path, env=machine("NVIDIA"))
    ended(process, 1)
    rows = [line for line in process.out.splitlines() if re.match("[abcdef],", line)]
    equal([row[0] for row in rows], list("abcdf"), process)
    check("no GPU of AMD here" in process.err and "1 of 6 tests failed" in process.err, process)


@test
def what_no_gpu_does_is_refused_by_name():
    for args, words in ((("-t", "fadd"), "cannot do atomics on GPU memory"),
                        (("-t", "add_lat"), "cannot do atomics on GPU memory"),
                        (("-t", "put_lat", "-D", "short"), "has no layout short for GPU memory")):
        process = run(tool("ucx_perftest"), "--local", *args, "-m", "cuda", "-n", "10",
                      env=machine("NVIDIA"))
        ended(process, 1)
        check(words in one_sentence(process, "gpu_ucx_perftest"), process)
    for name in ("add_mr", "fadd", "swap", "cswap"):
        process = run(tool("ucx_perftest"), "--local", "-d", "null", "-t", name, "-m", "cuda", "-n",
                      "10", env=machine("NVIDIA"))
        ended(process, 1)
        check("cannot do atomics on GPU memory" in one_sentence(process, "gpu_ucx_perftest"),
              process)
    for memory in ("cuba", "cuda:", "cuda:x", "cuda:-1", "host:1", "", "cuda,", "cuda,rocm,ze"):
        process = run(tool("ucx_perftest"), "--local", "-t", "get", "-m", memory, "-n", "10",
                      env=machine("NVIDIA"))
        ended(process, 2)
        one_sentence(process, "gpu_ucx_perftest")


@test
def null_takes_any_memory():
    process = run(tool("cxi_write_lat"), "--local", "-d", "null", "-t", "0", "-r", "1", *QUICK,
                  env=machine("AMD"))
    ended(process, 0)


# ---- who says which ----

@test
def each_end_says_its_own_gpu():
    pair = Pair("cxi_write_lat", "host to GPU", "-r", "1", *QUICK, env=machine("NVIDIA"))
    pair.ended(0)
    check("--rx-gpu is the server's to say" in pair.client.err, pair.client)
    equal(header_value(pair.client, "Server RX Mem"), "GPU 0")
    pair = Pair("cxi_write_lat", "GPU to GPU", *QUICK, env=machine("NVIDIA"),
                server_args=("-t", "1"))
    pair.ended(0)
    check("--tx-gpu" in pair.server.err, pair.server)
    equal(header_value(pair.server, "Client TX Mem"), "GPU 0")


@test
def the_type_decides_where_there_are_several():
    env = {**machine("NVIDIA"), **machine("INTEL")}
    for words, vendor in (((), "NVIDIA"), (("-g", "intel"), "INTEL"), (("-g", "Nvidia"), "NVIDIA")):
        process = run(tool("cxi_read_lat"), "--local", "-t", "0", "-r", "0", *words, *QUICK,
                      "--verify", env=env)
        ended(process, 0)
        equal(header_value(process, "Client GPU Type"), vendor)
        equal(header_value(process, "Server GPU Type"), vendor)


@test
def a_loop_of_clients_with_and_without_gpus_is_served():
    traces = Traces()
    env = {**machine("NVIDIA"), **traces.env}
    server = Server(tool("cxi_send_lat"), "--loop", "-r", "1", env=env)
    for args in (("-t", "0"), (), ("-t", "1", "-R"), ("-R",)):
        client = Client(tool("cxi_send_lat"), server, *args, *QUICK, "--verify", "-s", "1:64K",
                        env=env)
        ended(client, 0)
        equal(header_value(client, "Server RX Mem"), "GPU 1")
    server.kill(signal.SIGINT)
    ended(server, 130)
    traces.nothing()


@test
def huge_pages_have_no_effect_on_a_gpu():
    process = run(tool("cxi_write_lat"), "--local", "-t", "0", "-r", "0", "--use-hp", "2M", *QUICK,
                  env=machine("NVIDIA"))
    ended(process, 0)
    check("--use-hp has no effect on GPU buffers" in process.err, process)
    equal(header_value(process, "Hugepages"), "Disabled")


# ---- what is not there ----

def alone_refused(*args, env, names):
    process = run(tool("cxi_write_lat"), *args, env=env)
    ended(process, 1)
    said = one_sentence(process, "gpu_cxi_write_lat")
    for name in names:
        check(name in said, f"no {name!r} in it", process)
    equal(process.out, "")


ROLES = {"server": (("-p", "0"), "-r"), "client": (("127.0.0.1",), "-t"),
         "both, client's": (("--local",), "-t"), "both, server's": (("--local",), "-r")}


def missing(role):
    args, option = ROLES[role]
    empty = tap.folder()
    alone_refused(*args, option, "0", env={"WEFT_TEST_GPU": empty},
                  names=("no GPU here", "no driver", *LIBRARIES.values()))
    alone_refused(*args, option, "0", env=machine(), names=("no GPU here", "ERROR_NO_DEVICE"))
    for vendor in VENDORS:
        alone_refused(*args, option, "0", "-g", vendor, env={"WEFT_TEST_GPU": empty},
                      names=(f"no GPU of {vendor} here", "no driver", LIBRARIES[vendor]))
        alone_refused(*args, option, "0", "-g", vendor, env=machine(),
                      names=(f"no GPU of {vendor} here",))
        alone_refused(*args, option, "9", env=machine(vendor, 1),
                      names=("no GPU 9", "there is 1 GPU", vendor))
        alone_refused(*args, option, "2", env=machine(vendor, 2),
                      names=("no GPU 2", "there are 2 GPUs", vendor, "0 to 1"))
        other = next(name for name in VENDORS if name != vendor)
        alone_refused(*args, option, "0", "-g", other, env=machine(vendor),
                      names=(f"no GPU of {other} here", f"2 of {vendor}"))


for role in ROLES:
    tap.add(f"{role}: a GPU that is not there is refused in a sentence", missing, role)


@test
def a_library_without_what_is_needed_is_named():
    folder = tap.folder()
    # A library, but another vendor's.
    os.symlink(os.path.join(FOLDER, "double-libze_loader.so.1"),
               os.path.join(folder, "double-libcuda.so.1"))
    alone_refused("--local", "-t", "0", "-g", "NVIDIA", env={"WEFT_TEST_GPU": folder},
                  names=("libcuda.so.1 has no cu",))


# ---- what goes wrong ----

def memory_short(vendor, place):
    pair = Pair("cxi_write_lat", place, *QUICK, "-s", "16M",
                env=machine(vendor, FAKE_BYTES=str(8 << 20)))
    pair.refused("not enough memory on GPU", vendor, "16.0 MiB needed")


def fault_of(vendor, fault, server, words):
    """At one end alone, and both hear of it."""
    good, bad = machine(vendor), machine(vendor, FAKE_FAULT=fault)
    pair = Pair("cxi_send_lat", "GPU to GPU", "-n", "1000", "--latency-gap", "0", "-s", "4096",
                env=good if server else bad, server_env=bad if server else good)
    pair.refused("GPU 0", vendor, words)


FAULTS = {"open": "cannot be used", "export": "gives no handle for another process",
          "import": "does not open the other end's memory", "copy@40": "copying 4096 bytes",
          "lost@40": "copying 4096 bytes"}
for vendor in VENDORS:
    for place in ("GPU to host", "host to GPU"):
        tap.add(f"{vendor}: {place}: too little GPU memory", memory_short, vendor, place)
    for fault, words in FAULTS.items():
        for server in (False, True):
            tap.add(f"{vendor}: {fault} fails at the {'server' if server else 'client'}: both end",
                    fault_of, vendor, fault, server, words)


def one_sided_fault(vendor, op):
    name, *more = OPS[op]
    pair = Pair(name, "host to GPU", *more, "-n", "1000", "--latency-gap", "0",
                env=machine(vendor, FAKE_FAULT="copy@40"), server_env=machine(vendor))
    pair.refused("GPU 0", vendor, "copying 8 bytes")


for vendor in VENDORS:
    for op in ("write", "read", "write through the queue", "read through the queue"):
        tap.add(f"{vendor}: {op}: a copy that fails ends both", one_sided_fault, vendor, op)


@test
def a_copy_that_fails_in_put_lat_with_verify_ends_it():
    for number in range(2, 5):
        process = run(tool("ucx_perftest"), "--local", "-t", "put_lat", "-s", "64", "-m", "cuda",
                      "--verify", "-n", "10",
                      env=machine("NVIDIA", FAKE_FAULT=f"copy@{number}"))
        ended(process, 1)
        check("GPU 0 (NVIDIA): copying" in process.err, process)


@test
def a_gpu_that_opens_slowly_is_not_taken_for_dead():
    pair = Pair("cxi_write_lat", "host to GPU", "--timeout", "1", *QUICK, env=machine("AMD"),
                server_env=machine("AMD", FAKE_OPEN_MS="1100"))
    pair.ended(0)


@test
def immediate_data_is_for_whoever_sends_from_the_host():
    for place, said in (("GPU to GPU", "Disabled (from a GPU)"),
                        ("GPU to host", "Enabled (not from the client's GPU)"),
                        ("host to GPU", "Enabled (not from the server's GPU)")):
        pair = Pair("cxi_send_lat", place, *QUICK, env=machine("AMD"))
        pair.ended(0)
        for end in (pair.client, pair.server):
            equal(header_value(end, "IDC"), said, end)


@test
def no_copy_reaches_gpus_of_two_vendors():
    env = {**machine("NVIDIA"), **machine("AMD")}
    pair = Pair("cxi_write_lat", "GPU to GPU", "-g", "AMD", *QUICK, env=env)
    pair.refused("AMD", "NVIDIA", "no copy engine reaches both")


@test
def an_end_that_is_killed_takes_the_other_along_and_leaves_nothing():
    for vendor in VENDORS:
        for victim in ("server", "client"):
            pair = Pair("cxi_send_lat", "GPU to GPU", "-n", "1000000000", "--latency-gap", "0",
                        env=machine(vendor))
            pair.client.wait_for("^Remote ")
            time.sleep(0.2)
            pair.traces.watch(pair.server, pair.client)
            other = pair.client if victim == "server" else pair.server
            getattr(pair, victim).kill()
            ended(other, 4, 20)
            pair.traces.nothing()


@test
def fabrics_that_do_not_reach_gpus_are_refused_by_name():
    env = machine("NVIDIA")
    tried = 0
    for device in ("ofi:tcp", "ofi:shm", "uct:tcp/lo", "uct:posix/memory"):
        process = run(tool("cxi_write_lat"), "--local", "-d", device, *QUICK, env=env)
        if process.code:
            continue
        tried += 1
        for place in ("GPU to GPU", "host to GPU"):
            tx, rx = options_of(place)
            process = run(tool("cxi_write_lat"), "--local", "-d", device, *tx, *rx, *QUICK, env=env)
            ended(process, 1)
            said = [line for line in sentences(process) if "Found" not in line]
            check(len(said) == 1 and device.split(":")[1].split("/")[0] in said[0] and
                  "GPU" in said[0], process)
    if not tried:
        skip("neither ofi nor uct is here")


def ucx_lacks(vendor):
    """At both ends, before anything is timed, and with the release of UCX."""
    if not os.path.exists(os.path.join(MODULES, "weft-ucp.so")):
        skip("weft-ucp.so is not built")
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"):
        skip("there is a real GPU")
    env = machine(vendor, WEFT_MODULE_PATH=MODULES)
    kind = KINDS[vendor]
    words = rf"ucp \S+ \(UCX 1\.[\d.]+\) does not reach memory of {vendor} GPUs: this UCX has no support for " \
            rf"{CALLED[vendor]} memory, or finds no driver for it"
    for memory in (kind, f"{kind},host", f"host,{kind}"):
        for args in (("-t", "tag_bw"), ("-t", "ucp_put_lat"), ("-x", "tcp", "-d", "lo", "-t", "stream_bw"),
                     ("-t", "ucp_add")):
            process = run(tool("ucx_perftest"), "--local", *args, "-m", memory, "-n", "10", env=env)
            ended(process, 1)
            check(re.search(words + "$", one_sentence(process, "gpu_ucx_perftest")), process)
            equal(process.out, "")
    server = Server(tool("ucx_perftest"), "-x", "ucp", env=env)
    client = Client(tool("ucx_perftest"), server, "-x", "ucp", "-t", "tag_bw", "-m", f"host,{kind}", env=env)
    ended(client, 1)
    server.wait_until(lambda: re.search(words, server.err), 20)
    check(re.search(words, client.err), client)
    server.kill(signal.SIGINT)
    server.wait(20)


for vendor in VENDORS:
    tap.add(f"{vendor}: UCX without support for its memory is refused with its release", ucx_lacks, vendor)


# ---- what is installed ----

@test
def what_is_installed_opens_no_double():
    for name in os.listdir(os.path.join(tap.build_folder(), "tools")):
        path = os.path.join(tap.build_folder(), "tools", name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                check(b"WEFT_TEST_GPU" not in file.read(), name)
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"):
        skip("there is a real GPU")
    process = run(tap.tool_path("cxi_write_lat"), "--local", "-t", "0", *QUICK,
                  env=machine("NVIDIA"))
    ended(process, 1)
    check("no GPU here" in one_sentence(process, "cxi_write_lat"), process)


tap.main()
