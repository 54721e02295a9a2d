#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Heartbeats as fast as they can be sent, to either end, before, during and instead of a run: the tool
still ends when it is told to, and a run beside them still ends well."""
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, equal, one_sentence, test
from wire import BEAT, Between, Wire, frame, real_greeting

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
PERFTEST = tap.tool_path("ucx_perftest")
FULL = "--full" in sys.argv
ENDLESS = ("-n", "1000000000000", "--latency-gap", "0")
GRACE_S = 5
BEATS = frame("B", BEAT) * 512


class Flood:
    """Sends heartbeats over a socket from another thread, and reads nothing."""

    def __init__(self, s):
        self.s, self.over, self.sent = s, threading.Event(), 0
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        try:
            while not self.over.is_set():
                self.sent += self.s.send(BEATS)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(10)


def told_to_end(process, number=signal.SIGINT):
    process.kill(number)
    ended(process, 128 + number, GRACE_S)


@test
def a_server_ends_when_it_is_told_to_while_its_client_floods_it():
    body = real_greeting(TOOL, *ENDLESS)
    server = Server(TOOL)
    with tap.dial(server.port) as s:
        equal(Wire(s).hello().send("H", body).skip_to("D")[:6], b"yes=1\n")
        with Flood(s) as flood:
            time.sleep(1)
            check(server.running() and flood.sent > 10 * len(BEATS), flood.sent, server)
            told_to_end(server)
    one_sentence(server, NAME)


@test
def a_perftest_server_does_too():
    server = Server(PERFTEST, "-l")
    with tap.dial(server.port) as s:
        Wire(s).hello().send("H", b".tool=ucx_perftest\n").skip_to("D")
        with Flood(s):
            time.sleep(0.5)
            told_to_end(server, signal.SIGTERM)


@test
def a_server_gives_up_a_client_whose_flood_ends():
    body = real_greeting(TOOL, *ENDLESS, "--timeout", "1")
    server = Server(TOOL)
    with tap.dial(server.port) as s:
        Wire(s).hello().send("H", body).skip_to("D")
        with Flood(s):
            time.sleep(0.5)
        ended(server, 4, 1 + GRACE_S)
    check("no sign of life for 1 s" in one_sentence(server, NAME), server)


@test
def a_client_ends_when_it_is_told_to_while_its_server_floods_it():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        client = tap.Process([TOOL, "127.0.0.1", "-p", str(listener.getsockname()[1]), *ENDLESS])
        with listener.accept()[0] as s:
            s.settimeout(10)
            equal(Wire(s, client=False).hello().recv()[0], "H")
            with Flood(s):
                time.sleep(1)
                check(client.running(), client)
                told_to_end(client)
    one_sentence(client, NAME)


def flooding(from_client, number, data):
    """Many heartbeats between any two messages."""
    return [data, BEATS * 16] if number else [data]


@test
def a_run_beside_floods_in_both_directions_ends_well():
    for tool, args in ((TOOL, ("-n", "200", "-s", "8:64")), (PERFTEST, ("-t", "am_bw", "-n", "2000"))):
        server = Server(tool)
        with Between(server, flooding) as way:
            client = Client(tool, way, *args)
            ended(client, 0, 30, server)
            ended(server, 0, GRACE_S)


@test
def both_ends_of_a_run_beside_floods_end_when_one_is_told_to():
    for who in ("client", "server"):
        server = Server(TOOL)
        with Between(server, flooding) as way:
            client = Client(TOOL, way, *ENDLESS)
            client.wait_for("^Remote ", 15)
            time.sleep(0.5)
            first, second = (client, server) if who == "client" else (server, client)
            told_to_end(first)
            second.wait(GRACE_S)
            # The reason may still be behind the flood when the fabric fails.
            check(second.code in (1, 4, 130), second)


# ---- alive, and doing nothing; each takes more than a minute ----

def beating(wire, over):
    """As often as an honest client, and never with news."""
    try:
        while not over.wait(0.25):
            wire.send("B", BEAT)
    except OSError:
        pass


def only_beats():
    body = real_greeting(TOOL, *ENDLESS)
    server, over = Server(TOOL), threading.Event()
    with tap.dial(server.port) as s:
        wire = Wire(s).hello().send("H", body)
        equal(wire.skip_to("D")[:6], b"yes=1\n")
        thread = threading.Thread(target=beating, args=(wire, over))
        thread.start()
        try:
            time.sleep(50)
            check(server.running(), "given up too early", server)
            ended(server, 4, 20 + GRACE_S)
        finally:
            over.set()
            thread.join()
    check("the client made no progress for 60 s" in one_sentence(server, NAME), server)


def is_served(tool, *args):
    server = Server(tool, "--timeout", "100", limit=150)
    ended(Client(tool, server, *args, limit=150), 0, 120, server)
    ended(server, 0, GRACE_S)


if FULL:
    tap.add("a client that only beats is given up after a minute", only_beats)
    for words, tool, args in (
            ("a long gap", TOOL, ("-n", "2", "--warmup", "0", "--latency-gap", "70000000")),
            ("one long operation", TOOL, ("-d", "null:delay=70s", "-s", "2097152", "-n", "1", "--warmup",
                                          "0", "--latency-gap", "0", "--timeout", "100")),
            ("a long run", TOOL, ("-D", "70")),
            ("a long ping-pong", PERFTEST, ("-t", "put_lat", "--duration", "70")),
            ("a long stream", PERFTEST, ("-t", "am_bw", "--duration", "70", "--interval", "0"))):
        tap.add(f"{words} is progress", is_served, tool, *args)


if __name__ == "__main__":
    tap.main()
