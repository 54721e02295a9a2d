# SPDX-License-Identifier: BSD-3-Clause
"""Strangers at the listening port, servers that are none, and ends of another tool or version: each
is reported, and a real client still gets through."""
import contextlib
import os
import random
import re
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
import tap
from tap import (Client, Server, Traces, check, ended, equal, lines_of, one_sentence,
                 sentences, test)
from wire import BEAT, Wire, frame, nonce_frame, real_greeting

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
SEED = os.environ.get("WEFT_SEED") or str(random.SystemRandom().randrange(10 ** 9))
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
ENDLESS = ("-n", "1000000000000", "--timeout", "1")
TIMEOUT_S = 1
GRACE_S = 3  # on top of the timeout; one second on a quiet machine

# ---- strangers at the door ----

def still_serves(server, within=3, **more):
    """A real client comes and is served promptly."""
    client = Client(TOOL, server, *QUICK, **more)
    ended(client, 0, within + 2, "the real client was not served", server)
    check(client.ended - client.began < within, "the real client had to wait", client, server)
    ended(server, 0, 5)


def reported(server, count=1, within=3):
    """One line on stderr for each stranger, with its address."""
    server.wait_for(r"(?s)(^cxi_write_lat: .*127\.0\.0\.1.*){%d}" % count, within, "err")
    check(all(line.isprintable() for line in lines_of(server.err)), ascii(server.err))
    check(server.running(), server)


_random = random.Random(SEED)
STRANGERS = {
    "a probe that says nothing": b"",
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "an SSH greeting": b"SSH-2.0-OpenSSH_9.2\r\n",
    "random bytes": bytes(_random.randrange(256) for _ in range(100000)),
    "random bytes behind the magic": b"WEFT02" + bytes(_random.randrange(256) for _ in range(5000)),
    "a frame of 16 MiB": b"WEFT02 D ffffff\n" + b"x" * 200000,
    "a greeting of 16 MiB": b"WEFT02 H ffffff\n" + b"x" * 200000,
    "a raw length of 4 GiB": b"\xff\xff\xff\xff" + bytes(64),
    "a negative length": b"WEFT02 H -00001\n" + bytes(64),
    "a length that is no number": b"WEFT02 H 0x0010\n" + bytes(64),
    "half a frame": b"WEFT02 H 0000ff\ntool=cxi_write_lat\n",
    "half a head": b"WEFT02",
    "a nonce and nothing else": nonce_frame(),
    "a nonce that is none": frame("N", b"nonce=zz\nsecret=0\n"),
    "two nonces": nonce_frame() * 2,
    "a greeting without a nonce": frame("H", b".tool=cxi_write_lat\n"),
    "a refusal": frame("R", b"secret required"),
    "a farewell": frame("E", b"code=0\nwhy=nothing\n"),
    "a farewell in colour": frame("E", b"code=5\nwhy=\x1b[31mred\x1b[0m\x07\n"),
    "a frame out of turn": frame("D", b"meet=end\n"),
    "an unknown kind of frame": frame("?", b""),
    "ten thousand heartbeats": frame("B", BEAT) * 10000,
}


def send_what_it_takes(s, data):
    """The server may have closed the connection before all of it is sent."""
    try:
        s.sendall(data)
    except OSError:
        pass


def stranger(data):
    server = Server(TOOL)
    with tap.dial(server.port) as s:
        send_what_it_takes(s, data)
    reported(server)
    still_serves(server)


for who, data in STRANGERS.items():
    tap.add(f"{who} is reported, and the server waits on", stranger, data)


@test
def strangers_that_stay_connected_do_not_keep_a_client_waiting():
    for data in (b"", b"WEFT02 H", STRANGERS["random bytes"]):
        server = Server(TOOL)
        with tap.dial(server.port) as s:
            send_what_it_takes(s, data)
            time.sleep(0.2)
            still_serves(server)


@test
def a_crowd_of_silent_strangers_does_not_lock_the_door():
    server = Server(TOOL)
    crowd = [tap.dial(server.port) for _ in range(12)]
    still_serves(server)
    for s in crowd:
        s.close()


@test
def more_strangers_than_the_server_has_places_only_delay_a_client():
    server = Server(TOOL)
    crowd = []
    for _ in range(20):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", int(server.port)))
        crowd.append(s)
    time.sleep(0.3)
    still_serves(server, within=9)
    for s in crowd:
        s.close()


def dribble(port, data, stop):
    """One byte a second."""
    with tap.dial(port) as s:
        for byte in data:
            try:
                s.send(bytes([byte]))
            except OSError:
                return
            if stop.wait(1):
                return


@contextlib.contextmanager
def one_byte_a_second():
    """A server with a client that greets it so slowly."""
    server = Server(TOOL)
    stop = threading.Event()
    slow = threading.Thread(target=dribble, args=(server.port, b"WEFT02 H 000100\ntool=", stop))
    slow.start()
    try:
        yield server
    finally:
        stop.set()
        slow.join()


@test
def one_byte_a_second_does_not_keep_a_client_waiting():
    with one_byte_a_second() as server:
        time.sleep(1.2)
        still_serves(server)


@test
def one_byte_a_second_is_reported_in_the_end():
    with one_byte_a_second() as server:
        reported(server, within=12)
        still_serves(server)


@test
def a_server_reports_each_of_many_strangers():
    server = Server(TOOL)
    for _ in range(8):
        with tap.dial(server.port) as s:
            s.sendall(b"hello\n")
    reported(server, 8)
    equal(len(sentences(server)), 8, server)
    still_serves(server)


# ---- another tool, another version ----

def answer_to(server, data, hello=True):
    """What the server says to this, until it closes."""
    with tap.dial(server.port) as s:
        if hello:
            Wire(s).hello()
        s.sendall(data)
        said = b""
        while True:
            try:
                piece = s.recv(4096)
            except OSError:
                piece = b""
            if not piece:
                return said.decode("utf-8", "replace")
            said += piece


def greeted_wrongly(data, *words, hello=True):
    """Both sides hear why, and the server waits on."""
    server = Server(TOOL)
    said = answer_to(server, data, hello)
    server.wait_for("(?i)client", 3, "err")
    for word in words:
        check(word in said, f"the client is not told {word!r}", said)
        check(word in server.err, f"the server does not say {word!r}", server)
    still_serves(server)


@test
def another_protocol_version_is_told_to_both():
    for version in ("99", "01"):
        greeted_wrongly(frame("N", b"", version=version), version, "02", hello=False)
    greeted_wrongly(frame("H", b".tool=cxi_write_lat\n", version="01"), "01", "02", hello=False)
    greeted_wrongly(frame("H", b"", version="99"), "99", "02")


@test
def another_tool_is_told_to_both():
    body = real_greeting(TOOL, *QUICK)
    other = body.replace(b"tool=" + NAME.encode(), b"tool=cxi_read_lat")
    check(other != body, ascii(body))
    greeted_wrongly(frame("H", other), "cxi_read_lat", NAME)


@test
def a_greeting_with_bad_values_is_refused_and_the_server_waits_on():
    body = real_greeting(TOOL, *QUICK)
    text, faults = body.decode(), []
    changes = [("size", "0"), ("size", "18446744073709551615"), ("size", "8:4"), ("size", "\x00"),
               ("size", "\x1b[31m8"), ("iterations", "-1"), ("clock", "sundial"), ("timeout_ms", "0"),
               ("nonce", "a" * 1000), ("nonce", None), ("tool", None), ("tool", "\x1b[31mx"),
               ("fabric", "../../x"), ("fabric", None), ("fabric", r"null\n.device=null:delay=x"),
               ("", ""), ("", "\x00" * 500)]
    for key, value in changes:
        wrong = value
        if key:
            line = "" if value is None else rf"\g<1>{key}={value}\n"
            wrong = re.sub(rf"^(\.?){key}=.*\n", line, text, flags=re.M)
        check(wrong != text, f"{key} is not in the greeting", text)
        server = Server(TOOL)
        answer_to(server, frame("H", wrong.encode()))
        try:
            server.wait_for(r"^cxi_write_lat: .*\n", 3, "err")
            for line in lines_of(server.err):
                check(line.isprintable(), "control characters on the terminal", ascii(line))
            still_serves(server)
        except tap.Failure as why:
            faults.append(f"{key}={ascii(value)}: {why}")
    check(not faults, *faults)


@test
def a_client_that_greets_and_goes_silent_is_given_up():
    body = real_greeting(TOOL, *ENDLESS)
    traces = Traces()
    server = Server(TOOL, env=traces.env)
    traces.watch(server)
    with tap.dial(server.port) as s:
        Wire(s).hello().send("H", body)
        ended(server, 4, TIMEOUT_S + GRACE_S)
        check("client" in one_sentence(server, NAME), server)
    traces.nothing()


@test
def a_client_that_greets_and_leaves_is_given_up():
    body = real_greeting(TOOL, *ENDLESS)
    server = Server(TOOL)
    with tap.dial(server.port) as s:
        Wire(s).hello().send("H", body)
        check(s.recv(16))
    ended(server, 4, GRACE_S)
    one_sentence(server, NAME)


@test
def a_client_that_greets_and_talks_nonsense_is_given_up():
    body = real_greeting(TOOL, *ENDLESS)
    for nonsense in (b"nonsense\n" * 100, frame("D", b"\xff" * 100), frame("D", b""),
                     frame("H", body), frame("D", b"", length=0xffffff),
                     frame("D", b"nic=0x12\npid=0\nvni=10\n") * 20):
        server = Server(TOOL)
        with tap.dial(server.port) as s:
            Wire(s).hello()
            s.sendall(frame("H", body) + nonsense)
            server.wait_for(f"^{NAME}: ", TIMEOUT_S + GRACE_S, "err")
        check(server.err.isprintable() or lines_of(server.err)[0].isprintable(), ascii(server.err))
        if "refused a client" in server.err:
            still_serves(server)
        else:
            server.wait(GRACE_S)
            check(server.code in (1, 4), server)


# ---- servers that are none ----

class FakeServer:
    """Accepts one client, says what it is given, and stays or leaves."""

    def __init__(self, data, stays, hello):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port = str(self.listener.getsockname()[1])
        self.data, self.stays, self.hello, self.done = data, stays, hello, threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        try:
            with self.listener.accept()[0] as s:
                if self.hello:
                    Wire(s, client=False).hello()
                s.sendall(self.data)
                if self.stays:
                    self.done.wait(15)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.listener.close()


def dials_a_stranger(data, stays, code, *words, hello=False):
    with FakeServer(data, stays, hello) as fake:
        client = Client(TOOL, fake, *ENDLESS)
        ended(client, code, TIMEOUT_S + GRACE_S)
    sentence = one_sentence(client, NAME)
    check(sentence.isprintable(), ascii(sentence))
    for word in words:
        check(word in sentence, f"no {word!r}", sentence)
    equal(client.out, "")


for words, data, stays, code, says in (
        ("an SSH server", b"SSH-2.0-x\r\n", True, 1, ("Weft",)),
        ("an SMTP server that hangs up", b"220 mail ESMTP\r\n", False, None, ()),
        ("a server that says nothing", b"", True, 4, ("server",)),
        ("a server that hangs up", b"", False, 4, ("server",)),
        ("a server of another version", b"WEFT99 D 000006\nyes=1\n", True, 1, ("99", "02")),
        ("a server that announces 16 MiB", b"WEFT02 D ffffff\n", True, 1, ()),
        ("a server that answers nonsense at once", frame("D", b"maybe=1\n"), True, 1, ()),
        ("a server of the version before", b"WEFT01 E 000000\n", True, 1, ("01", "02")),
        ("a server whose refusal cannot be read", frame("R", b"\x1b[31mno"), True, 1, ("refusal",)),
        ("a server that refuses in colour", frame("E", b"code=1\nwhy=\x1b[31mno\n"), True, 1,
         ("no",)),
        ("a server that stops in the middle of a frame", b"WEFT02 D 000010\nyes", True, 4,
         ("server",))):
    if code is None:
        # Whether the greeting or the hanging up is noticed first is chance.
        def either(data=data, stays=stays):
            try:
                dials_a_stranger(data, stays, 1)
            except tap.Failure:
                dials_a_stranger(data, stays, 4)
        tap.add(f"a client that dials {words}", either)
    else:
        tap.add(f"a client that dials {words}", dials_a_stranger, data, stays, code, *says)


def greets_a_stranger(data, stays, code, *words):
    dials_a_stranger(data, stays, code, *words, hello=True)


for words, data, stays, code, says in (
        ("says nothing more", b"", True, 4, ("server",)),
        ("hangs up then", b"", False, 4, ("server",)),
        ("answers nonsense", frame("D", b"maybe=1\n"), True, 1, ()),
        ("refuses in colour", frame("E", b"code=1\nwhy=\x1b[31mno\n"), True, 1, ("no",)),
        ("sends another nonce", nonce_frame(), True, 1, ("turn",)),
        ("stops in the middle of a frame", b"WEFT02 D 000010\nyes", True, 4, ("server",))):
    tap.add(f"a client that greets a server that {words}", greets_a_stranger, data, stays, code, *says)


if __name__ == "__main__":
    tap.main()
