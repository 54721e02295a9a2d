# SPDX-License-Identifier: BSD-3-Clause
"""The control channel by hand, for ends that break its rules: frames, nonces, and the codes of ends
that share a secret."""
import hmac
import os
import re
import socket
import threading

from tap import Process, check, equal

VERSION = "02"
HEAD = 16
CODE = 32
BEAT = b"0" * 16


def frame(kind, body, version=VERSION, length=None):
    size = len(body) if length is None else length
    return f"WEFT{version} {kind} {size:06x}\n".encode() + body


def nonce_frame(nonce=None, secret=False):
    nonce = nonce or os.urandom(32).hex().encode()
    return frame("N", b"nonce=%s\nsecret=%d\n" % (nonce, secret))


def read_frame(s, code=False):
    """The next frame as it came; EOFError if there is none."""
    head = read_exactly(s, HEAD)
    check(re.match(rb"WEFT\d\d [A-Z] [0-9a-f]{6}\n$", head), ascii(head))
    return head + read_exactly(s, int(head[9:15], 16) + (CODE if code else 0))


def read_exactly(s, count):
    data = b""
    while len(data) < count:
        piece = s.recv(count - len(data))
        if not piece:
            raise EOFError(data)
        data += piece
    return data


class Wire:
    """One end. secret: 32 bytes, or None."""

    def __init__(self, s, client=True, secret=None):
        self.s, self.client, self.secret = s, client, secret
        self.nonce = os.urandom(32).hex().encode()
        self.keys = None
        self.sent = self.heard = 0

    def key(self, client, nonces):
        label = b"weft client" if client else b"weft server"
        text = label + bytes([int(VERSION)]) + b"".join(nonces)
        return hmac.digest(self.secret, text, "sha256")

    def hello(self):
        """Exchanges the nonces. The server's answer is kept in their_hello."""
        mine = nonce_frame(self.nonce, self.secret is not None)
        if self.client:
            self.s.sendall(mine)
        kind, body = self.recv()
        check(kind == "N", "no nonce", kind, body)
        theirs = re.match(rb"nonce=([0-9a-f]{64})\nsecret=[01]\n$", body)[1]
        if not self.client:
            self.s.sendall(mine)
        if self.secret is not None:
            nonces = (self.nonce, theirs) if self.client else (theirs, self.nonce)
            self.keys = [self.key(self.client, nonces), self.key(not self.client, nonces)]
        return self

    def code(self, key, number, data):
        return hmac.digest(key, number.to_bytes(8, "big") + data, "sha256")

    def bytes_of(self, kind, body):
        """The next frame, as it is sent."""
        data = frame(kind, body)
        if self.keys:
            data += self.code(self.keys[0], self.sent, data)
        self.sent += 1
        return data

    def send(self, kind, body):
        self.s.sendall(self.bytes_of(kind, body))
        return self

    def recv(self):
        """(kind, body) of the next frame; EOFError if there is none."""
        data = read_frame(self.s)
        kind = chr(data[7])
        if self.keys and kind != "R":
            code = read_exactly(self.s, CODE)
            check(hmac.compare_digest(code, self.code(self.keys[1], self.heard, data)),
                  "a code is wrong", data)
            self.heard += 1
        return kind, data[HEAD:]

    def skip_to(self, wanted):
        """The body of the next frame of this kind."""
        while True:
            kind, body = self.recv()
            if kind == wanted:
                return body


def real_greeting(tool, *args):
    """The body of a client's greeting."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        client = Process([tool, "127.0.0.1", "-p", str(listener.getsockname()[1]), *args])
        with listener.accept()[0] as s:
            s.settimeout(10)
            kind, body = Wire(s, client=False).hello().recv()
        client.end()
    equal(kind, "H", body)
    return body


class Between:
    """A stranger on the way: takes one client to a server, frame by frame. change(from_client, number,
    frame) says what is passed on, a list of bytes; sealed: the frames after the nonces have codes."""

    def __init__(self, server, change, sealed=False):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(10)
        self.port = str(self.listener.getsockname()[1])
        self.server, self.change, self.sealed = server, change, sealed
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        try:
            with self.listener.accept()[0] as client, \
                    socket.create_connection(("127.0.0.1", int(self.server.port))) as server:
                back = threading.Thread(target=self.one_way, args=(server, client, False), daemon=True)
                back.start()
                self.one_way(client, server, True)
                back.join()
        except OSError:
            pass

    def one_way(self, source, sink, from_client):
        number = 0
        try:
            while True:
                data = read_frame(source, self.sealed and number > 0)
                for piece in self.change(from_client, number, data):
                    sink.sendall(piece)
                number += 1
        except (OSError, EOFError):
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_WR if end is sink else socket.SHUT_RD)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.thread.join(10)


def by_body(change):
    """A change for Between of ends without a secret: change(kind, body, from_client) gives the body
    to pass on, or None: nothing more goes that way."""
    muted = set()

    def by_frame(from_client, _, data):
        if from_client in muted:
            return []
        kind = chr(data[7])
        body = change(kind, data[HEAD:], from_client)
        if body is None:
            muted.add(from_client)
        return [] if body is None else [frame(kind, body)]

    return by_frame


def value(body, key):
    """The value of key in a body of lines, or None."""
    found = re.search(rb"^" + re.escape(key.encode()) + rb"=(.*)$", body, re.M)
    return found[1].decode() if found else None


def with_value(body, key, text):
    """The body with another value of key, if it has one."""
    return re.sub(rb"(?m)^(" + re.escape(key.encode()) + rb"=).*$", lambda m: m[1] + text.encode(),
                  body)
