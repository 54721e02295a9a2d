#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A secret keeps strangers out, whatever they send: without it, with another one, with a recorded
conversation, or between two ends that have it. Files that others may read are no secrets."""
import os
import re
import socket
import sys
import threading

sys.dont_write_bytecode = True
import tap
from tap import Client, Process, Server, check, ended, equal, one_sentence, test
from wire import Between, Wire, frame, nonce_frame, read_frame, real_greeting

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
PERFTEST = tap.tool_path("ucx_perftest")
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
TIMEOUT_S = 5


def secret_file(digit="5", mode=0o600):
    path = os.path.join(tap.folder(), "secret")
    with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as out:
        out.write(digit * 64 + "\n")
    os.chmod(path, mode)
    return path


SECRET = bytes.fromhex("5" * 64)


def guarded(tool=TOOL, *args, **more):
    return Server(tool, "--secret-file", secret_file(), *args, **more)


def still_serves(server, *args, tool=TOOL):
    ended(Client(tool, server, *(args or QUICK), "--secret-file", secret_file()), 0, 20, server)
    ended(server, 0, 10)


def refused(server, says, *args, tool=TOOL):
    client = Client(tool, server, *args)
    ended(client, 1, 15)
    check(says in client.err and len(tap.lines_of(client.err)) == 1, client)
    equal(client.out, "")


# ---- clients ----

@test
def a_client_without_the_secret_or_with_another_is_refused_and_the_server_waits_on():
    for tool, args in ((TOOL, QUICK), (PERFTEST, ("-t", "put_lat", "-n", "10"))):
        server = guarded(tool)
        refused(server, "the server requires a secret", *args, tool=tool)
        refused(server, "holds another secret", *args, "--secret-file", secret_file("6"), tool=tool)
        server.wait_for(r"ignored a connection from 127\.0\.0\.1 port \d+: it has no secret", 5, "err")
        server.wait_for(r"ignored a connection from 127\.0\.0\.1 port \d+: it holds another", 5, "err")
        still_serves(server, *args, tool=tool)


@test
def the_environment_may_name_the_secret_and_the_option_wins():
    server = Server(TOOL, env={"WEFT_SECRET": secret_file()})
    check(", secret required: " in server.announced[0], server)
    ended(Client(TOOL, server, *QUICK, "--secret-file", secret_file("6"),
                 env={"WEFT_SECRET": secret_file()}), 1, 15)
    ended(Client(TOOL, server, *QUICK, env={"WEFT_SECRET": secret_file()}), 0, 15, server)


def heard_until_closed(s):
    said = b""
    while True:
        try:
            piece = s.recv(4096)
        except OSError:
            return said
        if not piece:
            return said
        said += piece


@test
def a_refused_client_learns_no_more_than_that():
    greeting = real_greeting(TOOL, *QUICK)
    server = guarded()
    with tap.dial(server.port) as s:
        s.sendall(nonce_frame() + frame("H", greeting))
        equal(heard_until_closed(s), b"WEFT02 R 00000f\nsecret required")
    for tail in (frame("H", greeting), frame("H", greeting) + bytes(32), frame("H", b"") + b"x" * 40):
        for early in (False, True):
            with tap.dial(server.port) as s:
                # Together with the nonce, or after the server's.
                s.sendall(nonce_frame(secret=True) + (tail + bytes(32) if early else b""))
                nonce = read_frame(s)
                check(nonce.startswith(b"WEFT02 N ") and nonce.endswith(b"\nsecret=1\n"), nonce)
                if not early:
                    s.sendall(tail + bytes(32))
                equal(heard_until_closed(s), b"WEFT02 R 00000c\nwrong secret")
    check(not re.search("Fabric|Test Type", server.out), server)
    for nonsense in (b"WEFT02 H ffffff\n", b"GET / HTTP/1.1\r\n", frame("D", b"meet=end\n"),
                     nonce_frame(b"zz"), frame("N", b"", version="01")):
        with tap.dial(server.port) as s:
            s.sendall(nonsense)
            equal(heard_until_closed(s),
                  b"WEFT02 E 000025\ncode=71\nwhy=this is another protocol\n", nonsense)
    still_serves(server)


@test
def a_recorded_conversation_is_of_no_use():
    recorded = []

    def note(from_client, number, data):
        if from_client:
            recorded.append(data)
        return [data]

    server = guarded()
    with Between(server, note, sealed=True) as way:
        client = Client(TOOL, way, *QUICK, "--secret-file", secret_file())
        ended(client, 0, 20, server)
        ended(server, 0, 10)
    check(len(recorded) > 5, recorded)
    server = guarded()
    for pieces in (recorded, recorded[:2]):
        with tap.dial(server.port) as s:
            for data in pieces:
                try:
                    s.sendall(data)
                except OSError:
                    pass
            said = heard_until_closed(s)
            check(b"WEFT02 D" not in said, said)
    server.wait_for("it holds another secret", 5, "err")
    still_serves(server)


# ---- between two ends ----

def flipped(data, bit):
    at = bit // 8
    return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1:]


def tampered(change, *args):
    """Both ends notice, and nothing is taken for a result."""
    server = guarded(TOOL, "--timeout", str(TIMEOUT_S))
    with Between(server, change, sealed=True) as way:
        client = Client(TOOL, way, *(args or QUICK), "--timeout", str(TIMEOUT_S), "--secret-file",
                        secret_file())
        client.wait(TIMEOUT_S + 10)
    check(client.code in (1, 4), client, server)
    server.wait_until(lambda: server.code is not None or "ignored" in server.err, TIMEOUT_S + 5)
    check(re.search("changed, repeated or reordered|another secret|did not show|nonce cannot be read",
                    client.err + server.err), client, server)
    if server.running():  # it was not even a client
        still_serves(server, *QUICK, "--timeout", str(TIMEOUT_S))
    else:
        check(server.code in (1, 4), server)


def a_bit(from_client, number, bit):
    def change(whose, at, data):
        hit = whose == from_client and at == number
        return [flipped(data, bit % (8 * len(data)))] if hit else [data]
    return change


for whose, numbers in ((True, (0, 1, 2, 4)), (False, (0, 1, 2, 3))):
    for number in numbers:
        # In the head it is the number, and in the content or the code a digit.
        tap.add(f"a bit changed in frame {number} of the {'client' if whose else 'server'} is noticed",
                tampered, a_bit(whose, number, -77 - 128 * number))


def repeat(from_client, number):
    return lambda whose, at, data: [data] * (2 if whose == from_client and at == number else 1)


def omit(from_client, number):
    return lambda whose, at, data: [] if whose == from_client and at == number else [data]


def reflect(whose, at, data):
    """The server's first answer is the client's greeting."""
    if whose and at == 1:
        reflect.greeting = data
    return [reflect.greeting] if not whose and at == 1 else [data]


tap.add("a repeated message is noticed by the server", tampered, repeat(True, 2))
tap.add("a repeated message is noticed by the client", tampered, repeat(False, 2))
tap.add("a message that is missing is noticed", tampered, omit(True, 2),
        "-n", "1000000000", "--latency-gap", "1000")
tap.add("a message that is sent back is noticed", tampered, reflect)


@test
def reordered_messages_are_noticed():
    greeting = real_greeting(TOOL, *QUICK)
    server = guarded()
    with tap.dial(server.port) as s:
        wire = Wire(s, secret=SECRET).hello().send("H", greeting)
        equal(wire.skip_to("D")[:6], b"yes=1\n")
        first, second = (wire.bytes_of("D", b"go=1\n") for _ in range(2))
        s.sendall(second + first)
        ended(server, 1, 10)
    check("changed, repeated or reordered" in one_sentence(server, NAME), server)


@test
def an_end_by_hand_with_the_secret_is_let_in():
    """Otherwise the tests above would hold of a server that lets in nobody."""
    greeting = real_greeting(TOOL, *QUICK)
    server = guarded()
    with tap.dial(server.port) as s:
        wire = Wire(s, secret=SECRET).hello().send("H", greeting)
        equal(wire.skip_to("D")[:6], b"yes=1\n")
        wire.send("E", b"code=5\nwhy=that is enough\n")
        ended(server, 1, 10)
    check("the client says: that is enough" in one_sentence(server, NAME), server)


# ---- servers that are none ----

class Impostor:
    """Says that it has the secret, and answers what it is told to."""

    def __init__(self, answers, secret=True):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port = str(self.listener.getsockname()[1])
        self.answers, self.secret = answers, secret
        self.heard = b""
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            with self.listener, self.listener.accept()[0] as s:
                s.settimeout(10)
                read_frame(s)
                s.sendall(nonce_frame(secret=self.secret))
                self.heard = read_frame(s, self.secret)
                for answer in self.answers:
                    s.sendall(answer(self.heard) if callable(answer) else answer)
                heard_until_closed(s)
        except (OSError, EOFError):
            pass


def fooled(says, *answers, secret=True):
    server = Impostor(answers, secret)
    client = Client(TOOL, server, *QUICK, "--secret-file", secret_file(), "--timeout", "5")
    ended(client, 1, 15)
    check(says in one_sentence(client, NAME), client)
    equal(client.out, "")
    return server


@test
def a_client_with_a_secret_is_not_fooled_by_a_server_without_it():
    shown = "the server did not show that it holds the secret"
    fooled(shown, frame("D", b"yes=1\n"), bytes(32))
    fooled(shown, frame("D", b"yes=1\n") * 5)
    fooled(shown, lambda greeting: greeting)
    fooled(shown, frame("E", b"code=5\nwhy=give up the secret\n"), bytes(32))
    server = fooled("the server has no secret", secret=False)
    check(b".tool=" not in server.heard, "the greeting was sent", server.heard)


# ---- files ----

def bad_secrets():
    link = os.path.join(tap.folder(), "link")
    os.symlink(secret_file(), link)
    fifo = os.path.join(tap.folder(), "fifo")
    os.mkfifo(fifo, 0o600)
    yield secret_file(mode=0o644), "has mode 0644"
    yield secret_file(mode=0o660), "has mode 0660"
    yield link, "is a symbolic link"
    yield fifo, "is not a regular file"
    yield tap.folder(), "is not a regular file"
    yield tap.file_with("5" * 63 + "\n"), "has mode"
    yield "/nonexistent/secret", "No such file"
    yield "fd:99", "Bad file descriptor"


@test
def files_that_are_no_secrets_are_refused_by_both_ends():
    for path, says in bad_secrets():
        for tool in (TOOL, PERFTEST):
            for ends in ((), ("127.0.0.1", "-p", tap.free_port(), "--wait", "0")):
                process = Process([tool, *ends, "--secret-file", path])
                ended(process, 1, 15)
                check(says in process.err and path in process.err, says, process)
                equal(process.out, "")
    for args, says in ((("--secret-file", ""), "empty"), (("--secret-file", "fd:x"), "fd:3"),
                       (("--local", "--secret-file", secret_file()), "--local")):
        process = Process([TOOL, *args])
        ended(process, 2, 15)
        check(says in process.err, process)


# ---- local ----

@test
def both_ends_of_local_have_a_secret_that_nobody_else_sees():
    for tool, args in ((TOOL, ("-n", "1000000000")), (PERFTEST, ("-t", "put_lat", "-n", "0"))):
        client = Process([tool, "--local", *args], env={"WEFT_SECRET": secret_file("6")})
        client.wait_until(lambda: tap.children_of(client.pid), 10)  # pylint: disable=cell-var-from-loop
        client.wait_for("Remote|iterations", 15)
        (server, _), = tap.children_of(client.pid)
        with open(f"/proc/{server}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        check(re.fullmatch(rb"fd:\d+", words[words.index(b"--secret-file") + 1]), words)
        with open(f"/proc/{server}/environ", "rb") as file:
            check(not re.search(rb"[0-9a-f]{64}", file.read()), "a secret in the environment")
        kept = [os.readlink(f"/proc/{server}/fd/{n}") for n in os.listdir(f"/proc/{server}/fd")]
        check(not any("weft-secret" in name for name in kept), kept)
        client.kill(2)
        ended(client, 130, 10)


# ---- addresses ----

@test
def a_server_takes_clients_from_the_allowed_networks_only():
    for nets, served in (("10.0.0.0/8", False), ("10.0.0.0/8,127.0.0.0/8", True), ("::1", False)):
        server = Server(TOOL, "--allow", nets)
        check(f" for {nets}, no secret: " in server.announced[0], server.announced)
        client = Client(TOOL, server, *QUICK)
        ended(client, 0 if served else 4, 15, server)
        if not served:
            server.wait_for(r"ignored a connection from 127\.0\.0\.1 port \d+: its address is not "
                            "allowed", 5, "err")
            server.kill(2)
        server.wait(5)


@test
def networks_that_are_none_and_clients_that_allow_are_usage_errors():
    for tool in (TOOL, PERFTEST):
        for args in (("--allow", "10.0.0.0/33"), ("--allow", "localhost"), ("--allow", ""),
                     ("--allow", "::1,"), ("127.0.0.1", "--allow", "::1"), ("--local", "--allow", "::1")):
            process = Process([tool, *args])
            ended(process, 2, 15)
            check("--allow" in process.err and len(tap.lines_of(process.err)) == 1, process)


@test
def a_site_sets_where_servers_listen():
    for args, env, address in (((), {}, "all addresses"), ((), {"WEFT_BIND": ""}, "all addresses"),
                               ((), {"WEFT_BIND": "127.0.0.1"}, "127.0.0.1"),
                               (("--bind", "127.0.0.2"), {"WEFT_BIND": "127.0.0.1"}, "127.0.0.2"),
                               (("--bind", "0.0.0.0"), {"WEFT_BIND": "127.0.0.1"},
                                "all IPv4 addresses")):
        server = Server(TOOL, *args, env=env)
        check(re.match(rf"{NAME}: listening on {address}, no secret: serves ", server.announced[0]),
              server.announced)
        equal(len(server.announced), 1)
        server.end()
    process = Process([TOOL, "-p", "0"], env={"WEFT_BIND": "203.0.113.77"})
    ended(process, 1, 15)
    check("WEFT_BIND: cannot listen on 203.0.113.77" in process.err, process)
    ended(Process([TOOL, "--local", *QUICK], env={"WEFT_BIND": "203.0.113.77"}), 0, 20)


if __name__ == "__main__":
    tap.main()
