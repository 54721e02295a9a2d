# SPDX-License-Identifier: BSD-3-Clause
"""Strangers and several pairs: nobody takes a place among another client's processes, and no client makes
a server start more of them than it grants."""
import os
import socket
import sys
import time

sys.dont_write_bytecode = True
import tap
import wire
from tap import Client, Server, Traces, check, children_of, ended, equal, run, test
from wire import Wire, with_value

WRITE, WEFT = map(tap.tool_path, ("cxi_write_bw", "weft"))
QUICK = ("-n", "5", "-l", "8", "-s", "64")
MOST = 3


def dial(server):
    s = socket.create_connection(("127.0.0.1", int(server.port)), 10)
    s.settimeout(10)
    return s


def hello(ticket, number):
    """The first message of a further connection."""
    nonce = os.urandom(32).hex().encode()
    return wire.frame("N", b"nonce=" + nonce + b"\nsecret=0\nticket=" + ticket + b"\nnumber=" + number +
                      b"\n")


class First:
    """A client's first connection, by hand: it asks for so many pairs, and has the ticket."""

    def __init__(self, server, pairs=MOST):
        self.server = server
        body = with_value(wire.real_greeting(WRITE, *QUICK, "--procs", str(MOST)), ".procs", str(pairs))
        self.wire = Wire(dial(server)).hello().send("H", body)

    def ticket(self):
        return wire.value(self.wire.skip_to("D"), ".ticket").encode()

    def refusal(self):
        return self.wire.skip_to("E").decode()

    def end(self):
        self.wire.s.close()


def settled(server, count):
    """It has so many processes, and a moment later it still has."""
    server.wait_until(lambda: len(children_of(server.pid)) >= count, 5)
    time.sleep(0.5)
    equal(len(children_of(server.pid)), count, server)


def serves(server, *more, env=None):
    ended(Client(WRITE, server, *QUICK, "--procs", str(MOST), *more, env=env), 0, None, server)


@test
def a_ticket_makes_no_more_processes_than_were_granted():
    traces = Traces()
    server = Server(WRITE, "--loop", "--max-procs", str(MOST), env=traces.env)
    first = First(server)
    ticket = first.ticket()
    others = [dial(server) for _ in range(24)]
    for i, one in enumerate(others):
        one.sendall(hello(ticket, (b"1", b"1", b"0", b"%d" % MOST, b"99", b"-1", b"1x", b"")[i % 8]))
    settled(server, 1)
    traces.watch(server)
    for one in (*others, first.wire.s):
        one.close()
    server.wait_until(lambda: not children_of(server.pid), 10)
    serves(server, env=traces.env)
    server.kill(15)
    ended(server, 143)
    traces.nothing()


@test
def a_stranger_without_the_ticket_gets_no_process_and_disturbs_nobody():
    server = Server(WRITE, "--loop", "--max-procs", str(MOST))
    first = First(server)
    ticket = first.ticket()
    wrong = [ticket[:-1], ticket + b"0", b"0" * 64, b"", bytes(reversed(ticket)), b"x" * 3000]
    strangers = [dial(server) for _ in wrong]
    for one, text in zip(strangers, wrong):
        one.sendall(hello(text, b"1"))
    halves = [dial(server) for _ in range(3)]
    for one in halves:
        one.sendall(hello(ticket, b"1")[:50])
    settled(server, 0)
    first.end()
    server.wait_for(r"client", 10, "err")
    serves(server)
    for one in (*strangers, *halves):
        one.close()


@test
def a_pair_of_a_run_that_is_over_is_not_served():
    """It would be measured as if it were the only one."""
    server = Server(WRITE, "--loop", "--max-procs", str(MOST))
    body = with_value(wire.real_greeting(WRITE, *QUICK, "--procs", str(MOST)), ".pair", "1")
    late = Wire(dial(server)).hello().send("H", body)
    check(b"this is not the server of pair 1 of 3" in late.skip_to("E"), server)
    equal(children_of(server.pid), [], server)
    serves(server)


@test
def counts_that_are_no_counts_are_refused():
    server = Server(WRITE, "--loop", "--max-procs", str(MOST))
    for pairs, words in (("4", "allows 3"), ("4294967297", "allows 3"), ("18446744073709551615", "allows 3"),
                         ("18446744073709551616", "cannot be read"), ("0", "cannot be read"),
                         ("-1", "cannot be read"), ("x", "cannot be read"), ("", "cannot be read"),
                         ("9" * 300, "cannot be read")):
        first = First(server, pairs)
        check(words in first.refusal(), pairs, server)
        first.end()
        equal(children_of(server.pid), [], server)
    serves(server)


@test
def the_ticket_is_no_secret():
    """Who has only overheard the ticket is refused by the process that gets the connection, and the run
    ends: what it cannot do is measure."""
    path = os.path.join(tap.folder(), "secret")
    ended(run(WEFT, "keygen", path), 0)
    with open(path, encoding="utf-8") as file:
        secret = bytes.fromhex(file.read().strip())
    server = Server(WRITE, "--loop", "--max-procs", str(MOST), "--secret-file", path)
    body = wire.real_greeting(WRITE, *QUICK, "--procs", str(MOST))
    first = Wire(dial(server), secret=secret).hello().send("H", body)
    ticket = wire.value(first.skip_to("D"), ".ticket").encode()
    thief = dial(server)
    thief.sendall(hello(ticket, b"1"))
    said = wire.read_frame(thief)
    check(b"secret required" in said, said, server)
    said = first.skip_to("E")
    check(b"pair 1: it has no secret, and one is required" in said, said, server)
    serves(server, "--secret-file", path)


@test
def a_client_that_opens_no_further_connection_is_given_up():
    server = Server(WRITE, "--loop", "--max-procs", str(MOST), "--timeout", "1")
    body = with_value(wire.real_greeting(WRITE, *QUICK, "--procs", str(MOST), "--timeout", "1"), "x", "")
    first = Wire(dial(server)).hello().send("H", body)
    first.skip_to("D")
    server.wait_for(r"lost the client: no sign of life", 15, "err")
    serves(server, "--timeout", "1")


if __name__ == "__main__":
    tap.main()
