# SPDX-License-Identifier: BSD-3-Clause
"""A group without a secret meets strangers on the port of its root: they are refused, or struck as
the rank that they took, and the real ranks finish."""
import hashlib
import os
import re
import struct
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import check, equal, test
from wire import Wire

RANK = os.path.join(tap.build_folder(), "tests", "process", "launch_rank")
LIMIT_S = 60


class Ranks:
    """The variables of srun, without it."""

    def __init__(self, size):
        self.size = size
        self.job = int.from_bytes(os.urandom(4), "little")
        self.id = f"slurm-{self.job}.0"
        digest = hashlib.sha256(self.id.encode()).digest()
        self.port = 20000 + (digest[0] << 8 | digest[1]) % 12000
        self.started = {}

    def start(self, rank):
        env = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(self.size),
               "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_JOB_ID": str(self.job),
               "SLURM_STEP_ID": "0", "WEFT_BIND": "127.0.0.1"}
        self.started[rank] = tap.Process([RANK, "2", "10"], limit=LIMIT_S, env=env)
        return self.started[rank]

    def stranger(self, text):
        """A connection that has greeted the root."""
        until = time.monotonic() + 20
        while True:
            try:
                wire = Wire(tap.dial(self.port))
                break
            except OSError:
                check(time.monotonic() < until, "the root does not listen", self.started[0])
                time.sleep(0.05)
        wire.hello()
        wire.send("H", f"group={self.id}\n{text}".encode())
        return wire


def told(wire):
    """What the root says to it before it closes."""
    said = b""
    try:
        while True:
            kind, body = wire.recv()
            if kind == "E":
                said += body
    except (EOFError, OSError):
        return said.decode()


def finish(ranks, lost=()):
    root = ranks.started[0]
    equal(root.wait(), 0, root)
    there = [int(one) for one in re.findall(r"^rank (\d+) on", root.out, re.M)]
    equal(there, [i for i in range(ranks.size) if i not in lost], root)
    return root


@test
def strangers_that_are_no_rank_are_refused_and_the_ranks_finish():
    ranks = Ranks(3)
    ranks.start(0)
    for text, why in (("ask=join\nrank=7\nsize=3\nport=5\n", "it is rank 7 of 3"),
                      ("ask=join\nrank=1\nsize=4\nport=5\n", "this group has 3 ranks"),
                      ("ask=join\nrank=1\nsize=3\nport=0\n", "cannot be read"),
                      ("ask=join\nrank=0\nsize=3\nport=5\n", "rank 0 is here already"),
                      ("ask=attach\nrank=99\nhave=0\n", "at another turn"),
                      ("ask=attach\nrank=1\nhave=3\n", "at another turn"),
                      ("ask=pair\nfrom=1\nto=2\nticket=1\n", "this is another rank"),
                      ("ask=nothing\n", "cannot be read"), ("", "cannot be read")):
        said = told(ranks.stranger(text))
        check(why in said, text, said)
    wire = Wire(tap.dial(ranks.port)).hello()
    wire.send("H", b"group=another\nask=join\nrank=1\nsize=3\nport=5\n")
    check("another group" in told(wire))
    ranks.start(1)
    ranks.start(2)
    finish(ranks)


def piece(kind, turn, *records, last=1):
    return kind + bytes([last, 0, 0]) + struct.pack("<Q", turn) + b"".join(records)


def record(kind, rank, body, length=None):
    return struct.pack("<BBBBIII", kind, 0, 0, 0, rank, 0,
                       len(body) if length is None else length) + body + bytes(-len(body) % 8)


def a_stranger_as_a_rank_is_struck(reason, message):
    """It has taken the place of rank 2."""
    ranks = Ranks(3)
    ranks.start(0)
    ranks.start(1)
    joined = ranks.stranger("ask=join\nrank=2\nsize=3\nport=9\nnode=x\x1b[31m\n")
    kind, _ = joined.recv()
    equal(kind, "D")
    child = ranks.stranger("ask=attach\nrank=2\nhave=0\n")
    child.send("D", message)
    root = finish(ranks, lost=(2,))
    check(re.search(rf"^lost rank 2 in round \d: .*{reason}", root.out, re.M), root)
    check("\x1b" not in root.out, root)


for title, why, what in (
        ("that ends within a record", "ends within a record",
         piece(b"U", 1, record(1, 2, b"abc", 400))),
        ("about another rank", "not its sender's", piece(b"U", 1, record(1, 1, b"abc"))),
        ("about a rank that is none", "not its sender's", piece(b"U", 1, record(1, 4000000000, b""))),
        ("of an unknown type", "unknown type", piece(b"U", 1, record(9, 2, b""))),
        ("of a later turn", "at turn 77", piece(b"U", 77)),
        ("that is no piece", "cannot be read", b"U"),
        ("that goes the wrong way", "cannot be read", piece(b"D", 1, record(4, 0, b"dead")))):
    tap.add(f"a stranger as a rank is struck for a message {title}",
            a_stranger_as_a_rank_is_struck, why, what)

tap.main(workers=3)
