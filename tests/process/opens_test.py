# SPDX-License-Identifier: BSD-3-Clause
"""How often a device is opened, counted by the fabric of tests/doubles/fabric_counts.c around soft
and libfabric: once by each end, however many tests and sizes there are. Only a server that is to
use any of several networks opens again, when it knows on which of them its client came."""
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, add, ended, equal, skip, test

OFI = os.path.join(tap.build_folder(), "modules", "weft-ofi.so")
CXI = ("cxi_write_lat", "cxi_read_lat", "cxi_send_lat", "cxi_atomic_lat")
QUICK = ("-n", "20", "--latency-gap", "0", "--warmup", "5")
DEVICES = ("counts", "counts:cxi1", "counts:ofi:tcp")
# Ten tests of ucx_perftest, with sizes that grow and shrink.
BATCH = ("am_lat -t am_lat -s 64", "put_lat -t put_lat -s 8", "get -t get -s 65536 -D bcopy",
         "add -t add_lat -s 8", "put_bw -t put_bw -s 200", "fadd -t fadd -s 4",
         "am_bw -t am_bw -s 4096", "swap -t swap -s 8", "get_large -t get -s 262144 -D zcopy",
         "last -t am_lat -s 16")


# Ends that wait for each other by turns are slow on one CPU.
CPUS = sorted(os.sched_getaffinity(0))
HERE, THERE = (("--cpu", str(cpu)) for cpu in (CPUS[-1], CPUS[0]))


def need(device):
    if ":ofi:" in device and not os.path.exists(OFI):
        skip("weft-ofi.so is not built")


class Record:
    """What the ends wrote down."""

    def __init__(self):
        self.path = os.path.join(tap.folder(), "counts")
        self.env = {"WEFT_TEST_COUNTS": self.path}

    def of(self, process):
        """{what: how often}, by a process."""
        with open(self.path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        found = [what for pid, what in lines if int(pid) == process.pid]
        return {what: found.count(what) for what in ("open", "connect")}


def one_pair(tool, *args, server_args=(), clients=1):
    """The record of a server and its clients, one after the other."""
    record, path = Record(), tap.tool_path(tool)
    server = Server(path, *THERE, *server_args, env=record.env, limit=60)
    done = [ended(Client(path, server, *HERE, *args, env=record.env, limit=60), 0)
            for _ in range(clients)]
    if clients == 1:
        ended(server, 0)
    return record, server, done


def once(tool, device, *args):
    need(device)
    record, server, clients = one_pair(tool, "-d", device, *QUICK, *args,
                                       server_args=("-d", device))
    follows = device == "counts:ofi:tcp"
    equal(record.of(clients[0]), {"open": 1, "connect": 1}, clients[0])
    equal(record.of(server), {"open": 2 if follows else 1, "connect": 1}, server)


for _tool in CXI:
    for _device in DEVICES:
        _args = () if _tool == "cxi_atomic_lat" else ("-s", "1:4096")
        add(f"{_tool} on {_device} is opened and connected once", once, _tool, _device, *_args)
        if _device == "counts":
            add(f"{_tool} on {_device} opens once to verify too", once, _tool, _device, "--verify",
                *_args)


def batch_opens_once(device, *lines):
    need(device)
    path = tap.file_with("\n".join((*BATCH, *lines)) + "\n")
    record, server, (client,) = one_pair("ucx_perftest", "-d", device, "-b", path, "-n", "100",
                                         "-w", "10", "--interval", "0", "-v", server_args=("-d", device))
    equal(len(tap.lines_of(client.out)), 1 + len(BATCH) + len(lines), client)
    for process in (server, client):
        equal(record.of(process)["open"], 1, process)


for _device in DEVICES:
    add(f"ten tests of a batch of ucx_perftest on {_device} open it once", batch_opens_once, _device)
add("a batch with verified messages among its tests opens once", batch_opens_once, "counts",
    "verified -t am_bw --verify")


@test
def a_server_that_stays_opens_once_for_all_its_clients():
    record, server, clients = one_pair("cxi_write_lat", "-d", "counts", *QUICK,
                                       server_args=("-d", "counts", "--loop"), clients=4)
    for client in clients:
        equal(record.of(client), {"open": 1, "connect": 1}, client)
    equal(record.of(server), {"open": 1, "connect": 4}, server)


if __name__ == "__main__":
    tap.main()
