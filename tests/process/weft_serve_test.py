# SPDX-License-Identifier: BSD-3-Clause
"""weft serve: one port for the clients of all tools, several at once, and none that is a stranger to
the rules of a server."""
import os
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import Client, Process, check, ended, run, test
from wire import Wire

WEFT, SEND, READ, BW, PERF = map(tap.tool_path, ("weft", "cxi_send_lat", "cxi_read_lat",
                                                  "cxi_write_bw", "ucx_perftest"))
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
PERF_QUICK = ("-t", "put_lat", "-n", "3", "-w", "0")
LONG = ("-D", "60", "--latency-gap", "1000")


class Daemon(Process):
    def __init__(self, *args, **more):
        super().__init__([WEFT, "serve", "-p", "0", "--bind", "127.0.0.1", *args], **more)
        self.port = self.wait_for(r"^Listening on port (\d+) for client to connect\.\.\.$")[1]

    def children(self):
        try:
            with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as names:
                return names.read().split()
        except OSError:
            return []

    def wait_for_children(self, count):
        self.wait_until(lambda: len(self.children()) == count, 30)
        tap.equal(len(self.children()), count, "processes of clients", self)


def gone(pids):
    """None of them is there any more, not even as a zombie."""
    until = time.monotonic() + 10
    while time.monotonic() < until and any(os.path.exists(f"/proc/{pid}") for pid in pids):
        time.sleep(0.05)
    left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    check(not left, f"left behind: {left}")


@test
def clients_of_all_tools_are_served_by_one_process():
    server = Daemon()
    for tool, args in ((SEND, QUICK), (READ, QUICK), (BW, ("-n", "3", "-l", "4")),
                       (PERF, PERF_QUICK)):
        ended(Client(tool, server, *args), 0, None, server)
    server.wait_for_children(0)
    server.kill(signal.SIGTERM)
    ended(server, 128 + signal.SIGTERM)


@test
def several_are_served_at_once_and_one_too_many_is_refused_politely():
    server = Daemon("--max-clients", "2")
    first = [Client(SEND, server, *LONG) for _ in range(2)]
    server.wait_for_children(2)
    third = ended(Client(READ, server, *QUICK), 1, None, server)
    check("the server has 2 clients already, and takes no more: try again later" in third.err, third)
    check(all(client.running() for client in first), *first)
    first[0].kill(signal.SIGINT)
    first[0].wait()
    server.wait_for_children(1)
    ended(Client(READ, server, *QUICK), 0, None, server)
    pids = server.children()
    server.kill(signal.SIGTERM)
    ended(server, 128 + signal.SIGTERM)
    gone(pids)
    first[1].wait(30)
    check(first[1].code in (4, 1), "its server has left", first[1])


@test
def killed_it_leaves_no_process():
    server = Daemon()
    client = Client(SEND, server, *LONG)
    server.wait_for_children(1)
    pids = server.children()
    server.kill()
    server.wait()
    gone(pids)
    ended(client, 4)


@test
def a_process_that_is_killed_by_a_signal_leaves_a_line():
    server = Daemon()
    client = Client(SEND, server, *LONG)
    server.wait_for_children(1)
    pid = server.children()[0]
    os.kill(int(pid), signal.SIGSEGV)
    server.wait_for(rf"^weft serve: a client's process \({pid}\) was killed by signal 11$", stream="err")
    ended(client, 4)
    ended(Client(READ, server, *QUICK), 0, None, server)


@test
def a_device_that_is_none_is_refused_at_once():
    for device in ("nonsense", "cxi99"):
        process = ended(run(WEFT, "serve", "-p", "0", "--bind", "127.0.0.1", "-d", device), 1)
        check(f'no device "{device}" here' in process.err, process)
    Daemon("-d", "soft:cxi0")
    Daemon("-d", "cxi0")


@test
def a_client_dies_and_the_others_and_the_server_go_on():
    server = Daemon()
    dying, living = Client(SEND, server, *LONG), Client(READ, server, *LONG)
    server.wait_for_children(2)
    dying.kill()
    server.wait_for_children(1)
    check(living.running(), living)
    ended(Client(PERF, server, *PERF_QUICK), 0, None, server)


@test
def the_rules_of_a_server_hold():
    secret = os.path.join(tap.folder(), "secret")
    ended(run(WEFT, "keygen", secret), 0)
    server = Daemon("--secret-file", secret, "--max-memory", "1M")
    ended(Client(SEND, server, *QUICK, "--secret-file", secret), 0, None, server)
    without = Client(SEND, server, *QUICK)
    check(without.wait() != 0, without)
    large = ended(Client(SEND, server, *QUICK, "-s", "4M", "--secret-file", secret), 1)
    check("--max-memory" in large.err, large)
    other = Daemon("--allow", "10.9.8.7")
    check(Client(SEND, other, *QUICK).wait() != 0)
    check("its address is not allowed" in other.err, other)


@test
def a_module_is_not_loaded_for_a_stranger():
    server = Daemon()
    client = ended(Client(SEND, server, *QUICK, "-d", "counts:cxi0"), 1, None, server)
    check("is no fabric of Weft's own" in client.err, client)


@test
def several_pairs_and_unknown_tools_are_refused_in_a_sentence():
    server = Daemon()
    client = ended(Client(BW, server, "-n", "3", "--procs", "2"), 1, None, server)
    check("weft serve takes one pair per client" in client.err, client)
    for name in (b"weft", b"cxi_gpu_loopback_bw", b"../weft", b"sh"):
        said = Wire(socket.create_connection(("127.0.0.1", int(server.port)), 10)).hello().send(
            "H", b".tool=" + name + b"\n").skip_to("E").decode()
        check("which weft serve does not know" in said, said, server)
    tap.equal(server.children(), [], server)


@test
def silent_and_garbled_connections_make_no_process_and_keep_nobody_out():
    server = Daemon("--max-clients", "1")
    strangers = [socket.create_connection(("127.0.0.1", int(server.port))) for _ in range(20)]
    for place, stranger in enumerate(strangers[10:]):
        stranger.sendall(bytes([place]) * 4000)
    tap.equal(server.children(), [], server)
    ended(Client(SEND, server, *QUICK), 0, None, server)
    for stranger in strangers:
        stranger.close()
    ended(Client(PERF, server, *PERF_QUICK), 0, None, server)


tap.main(4)
