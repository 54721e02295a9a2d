# SPDX-License-Identifier: BSD-3-Clause
"""Whatever happens to one end of ucx_perftest, the other ends in time with a sentence, and nothing
stays behind: in each of the ten tests, on the software NIC and on UCX's shared memory. With --full
the kills at random moments are many. WEFT_SEED repeats a run's random choices."""
import os
import random
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (Client, Process, Server, Traces, check, ended, equal, lines_of, run, sentences,
                 skip, test)

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
UCT = os.path.join(tap.build_folder(), "modules", "weft-uct.so")
FULL = "--full" in sys.argv
ROUNDS = 50 if FULL else 1
SEED = os.environ.get("WEFT_SEED") or str(random.SystemRandom().randrange(10 ** 9))
TESTS = ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap", "cswap", "am_bw", "put_bw",
         "add_mr")
FABRICS = {"soft": ("-x", "soft"), "posix": ("-x", "posix", "-d", "memory"),
           "sysv": ("-x", "sysv", "-d", "memory")}
TIMEOUT_S = 1
GRACE_S = 4  # on top of the timeout; one second on a quiet machine
ENDLESS = ("-n", "0", "-w", "100", "--timeout", str(TIMEOUT_S))
QUICK = ("-n", "50", "-w", "5", "--interval", "0", "--timeout", "10")
LAST_OF_BOX = r"^\| # iterations .*\n\+-.*\+$"
ROW = r" *\d+( +<?\d+\.\d{3}){3}( +\d+\.\d{2}){2}( +\d+){2}"


def need(fabric):
    if fabric != "soft" and not os.path.exists(UCT):
        skip("weft-uct.so is not built")


class Pair(tap.RunningPair):
    """Server and client in the middle of an endless test."""

    def __init__(self, *args, fabric="soft", settle=0.2, server_args=()):
        where = FABRICS.get(fabric, ("-d", fabric))
        super().__init__(TOOL, (*where, *server_args), (*ENDLESS, *where, *args))
        self.client.wait_for(LAST_OF_BOX)
        self.settle(settle)


def lost_its_peer(end, *words):
    """Ends with code 4 in time and says in one sentence what it lost."""
    ended(end, 4, TIMEOUT_S + GRACE_S)
    said = [line for line in sentences(end) if "one CPU" not in line]
    check(len(said) == 1 and said[0].startswith(NAME + ": "), "one sentence is wanted", end)
    for word in words:
        check(word in said[0], f"no {word!r}", end)


def rows_of(client):
    lines = lines_of(client.out)
    return [line for line in lines if re.fullmatch(ROW, line)]


# ---- killed ----

def killed_round(name, fabric, victim, choice):
    """The blow falls at a moment between the client's start and some way into the test."""
    traces = Traces()
    server = Server(TOOL, *FABRICS[fabric], env=traces.env)
    client = Client(TOOL, server, *ENDLESS, *FABRICS[fabric], "-t", name, env=traces.env)
    # UCX names its memory for a moment while it opens: who is killed just then leaves a file.
    begun = choice.random() < 0.7 or fabric != "soft"
    moment = choice.uniform(0, 0.25)
    if begun:
        client.wait_for(LAST_OF_BOX)
    traces.watch(server, client)
    time.sleep(moment if begun else moment / 5)
    hit, survivor = (client, server) if victim == "client" else (server, client)
    words = f"{name} on {fabric}, {victim}, {'begun' if begun else 'early'} {moment:.4f} s"
    check(survivor.running(), words, survivor)
    hit.kill()
    hit.wait(5)
    if victim == "client" and not begun:
        # It may have come to nothing yet; then the server waits for a real one.
        time.sleep(0.3)
        if survivor.running():
            late = Client(TOOL, server, "-t", name, *QUICK, *FABRICS[fabric], env=traces.env)
            late.wait(15)
            survivor.wait(TIMEOUT_S + GRACE_S)
            check((late.code == 0 and survivor.code == 0) or survivor.code == 4, words, late,
                  survivor)
            traces.nothing()
            return
    try:
        lost_its_peer(survivor, victim if begun else "")
    except tap.Failure as why:
        raise tap.Failure(f"{words}\n{why}") from None
    traces.nothing()


def killed(name, fabric):
    need(fabric)
    tap.note(f"WEFT_SEED={SEED}")
    choice = random.Random(f"{SEED} {name} {fabric}")
    for _ in range(ROUNDS):
        for victim in ("client", "server"):
            killed_round(name, fabric, victim, choice)


for fabric in ("soft", "posix"):
    for name in TESTS:
        tap.add(f"{name} on {fabric}: one end is killed at random, the other ends with 4", killed,
                name, fabric)


@test
def one_end_is_killed_between_two_tests_of_a_batch():
    tap.note(f"WEFT_SEED={SEED}")
    choice = random.Random(f"{SEED} batch")
    lines = tap.file_with("\n".join(f"{i} -t {TESTS[i % 10]}" for i in range(500)) + "\n")
    for _ in range(ROUNDS):
        for victim in ("client", "server"):
            traces = Traces()
            server = Server(TOOL, env=traces.env)
            client = Client(TOOL, server, "-b", lines, "-n", "1", "-w", "0", "-x", "soft",
                            "--timeout", str(TIMEOUT_S), env=traces.env)
            client.wait_for(LAST_OF_BOX)
            time.sleep(choice.uniform(0, 0.05))
            traces.watch(server, client)
            hit, survivor = (client, server) if victim == "client" else (server, client)
            if not survivor.running():
                continue
            hit.kill()
            survivor.wait(TIMEOUT_S + GRACE_S)
            check(survivor.code in (0, 4), victim, survivor)
            check(len(lines_of(survivor.err)) <= 3, "it is said once or twice", survivor)
            traces.nothing()


def segments(pids):
    """System V segments that these processes made and that are still there."""
    try:
        with open("/proc/sysvipc/shm", encoding="utf-8") as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
    except OSError:
        return []
    return [row[1] for row in rows if int(row[4]) in pids]


def both_killed(fabric):
    need(fabric)
    for name in ("put_lat", "am_bw"):
        pair = Pair("-t", name, fabric=fabric)
        for end in (pair.server, pair.client):
            end.kill()
        for end in (pair.server, pair.client):
            end.wait(5)
        pair.traces.nothing()
        equal(segments(pair.traces.pids), [], "segments are left behind")


for fabric in FABRICS:
    tap.add(f"both ends on {fabric} are killed and leave nothing behind", both_killed, fabric)


# ---- stopped ----

def stopped(name, fabric):
    need(fabric)
    for victim in ("client", "server"):
        pair = Pair("-t", name, fabric=fabric)
        asleep, survivor = pair.ends(victim)
        asleep.kill(signal.SIGSTOP)
        begin = time.monotonic()
        lost_its_peer(survivor, victim)
        check(survivor.ended - begin > TIMEOUT_S * 0.5, "it did not wait for the timeout", survivor)
        asleep.kill(signal.SIGCONT)
        ended(asleep, 4, TIMEOUT_S + GRACE_S)
        pair.traces.nothing()


for name in TESTS:
    tap.add(f"{name}: one end is stopped, the other ends with 4", stopped, name, "soft")
for name in ("put_lat", "am_bw", "get"):
    tap.add(f"{name} on posix: one end is stopped, the other ends with 4", stopped, name, "posix")


@test
def a_stop_shorter_than_the_timeout_is_no_fault():
    server = Server(TOOL)
    client = Client(TOOL, server, "-t", "am_lat", "-x", "soft", "--duration", "2", "--timeout", "5")
    client.wait_for(LAST_OF_BOX)
    tap.stop_for(server, 0.7)
    ended(client, 0)
    ended(server, 0)


@test
def a_server_stopped_before_the_greeting_is_not_waited_for_without_end():
    server = Server(TOOL)
    server.kill(signal.SIGSTOP)
    client = Client(TOOL, server, *ENDLESS, "-t", "get", "-x", "soft")
    lost_its_peer(client, "server")
    equal(client.out, "", client)
    server.kill(signal.SIGCONT)


# ---- interrupted ----

# Who is told why the other left need not wait for its silence.
TOLD = ("--timeout", "3")


def interrupted(name, number, code):
    pair = Pair("-t", name, "-w", "0", *TOLD, settle=0.3)
    pair.client.kill(number)
    ended(pair.client, code, GRACE_S)
    check("interrupted" in "".join(sentences(pair.client)), pair.client)
    rows = rows_of(pair.client)
    check(rows and float(rows[-1].split()[0]) > 0, "what was measured is printed", pair.client)
    equal(lines_of(pair.client.out)[-1], rows[-1], pair.client)
    lost_its_peer(pair.server, "client", "interrupted")
    pair.traces.nothing()


for i, name in enumerate(TESTS):
    which = (signal.SIGINT, 130) if i % 3 else (signal.SIGTERM, 143)
    tap.add(f"{name}: an interrupted client prints what it measured", interrupted, name, *which,
            by_itself=True)
tap.add("am_lat: Ctrl-C at the client", interrupted, "am_lat", signal.SIGINT, 130,
        by_itself=True)


@test
def an_interrupted_server_ends_its_client():
    for name in ("am_lat", "get", "put_bw"):
        pair = Pair("-t", name, *TOLD)
        pair.server.kill(signal.SIGINT)
        ended(pair.server, 130, GRACE_S)
        lost_its_peer(pair.client, "server", "interrupted")
        pair.traces.nothing()


@test
def an_interruption_while_warming_up_prints_no_row():
    for name in ("am_lat", "get"):
        pair = Pair("-t", name, *TOLD, fabric="null:delay=60s")
        pair.client.kill(signal.SIGINT)
        ended(pair.client, 130, GRACE_S)
        equal(rows_of(pair.client), [], pair.client)
        lost_its_peer(pair.server, "client", "interrupted")
        pair.traces.nothing()


@test
def an_interruption_ends_a_batch_and_not_only_its_line():
    lines = tap.file_with("a -t get\nb -t put_lat\nc -t am_lat\n")
    pair = Pair("-b", lines, "-w", "0", *TOLD, settle=0.3)
    pair.client.kill(signal.SIGINT)
    ended(pair.client, 130, GRACE_S)
    equal(len(rows_of(pair.client)), 1, pair.client)
    lost_its_peer(pair.server, "client", "interrupted")
    pair.traces.nothing()


@test
def an_interrupted_local_run_takes_its_server_with_it():
    for everyone in (False, True):
        traces = Traces()
        client = Process([TOOL, "--local", *ENDLESS, "-t", "put_lat", "-x", "soft"],
                         env=traces.env, group=True)
        client.wait_for(LAST_OF_BOX)
        traces.watch(client)
        time.sleep(0.2)
        if everyone:
            os.killpg(client.pid, signal.SIGINT)
        else:
            client.kill(signal.SIGINT)
        ended(client, 130, GRACE_S)
        equal(len(rows_of(client)), 1, client)
        traces.nothing()


@test
def a_killed_local_run_takes_its_server_with_it():
    for name in ("am_lat", "get"):
        traces = Traces()
        client = Process([TOOL, "--local", *ENDLESS, "-t", name, "-x", "soft"], env=traces.env)
        client.wait_for(LAST_OF_BOX)
        traces.watch(client)
        equal(len(traces.pids), 2, "a client and its server")
        client.kill()
        client.wait(5)
        traces.nothing()


@test
def a_library_that_hangs_is_left_by_a_second_signal_after_a_while():
    folder = tap.module_in_place_of("uct", "hangs")
    traces = Traces()
    process = Process([TOOL, "--local", "-t", "put_lat", "-d", "uct:good"],
                      env={**traces.env, "WEFT_MODULE_PATH": folder, "WEFT_TEST_HANGS": "open"})
    time.sleep(1)
    traces.watch(process)
    for _ in range(2):
        process.kill(signal.SIGTERM)
        time.sleep(0.1)
        check(process.running(), "signals at once are one signal", process)
    time.sleep(2)
    process.kill(signal.SIGTERM)
    ended(process, -signal.SIGTERM, GRACE_S)
    traces.nothing()


@test
def a_local_run_whose_server_is_killed_ends_with_4():
    traces = Traces()
    client = Process([TOOL, "--local", *ENDLESS, "-t", "put_lat", "-x", "soft"], env=traces.env)
    client.wait_for(LAST_OF_BOX)
    time.sleep(0.2)
    traces.watch(client)
    os.kill(tap.children_of(client.pid)[0][0], signal.SIGKILL)
    lost_its_peer(client, "server")
    traces.nothing()


# ---- output that cannot be written ----

@test
def a_reader_that_goes_away_ends_the_run():
    for name in ("get", "am_lat"):
        traces = Traces()
        server = Server(TOOL, env=traces.env)
        reader, writer = os.pipe()
        client = Client(TOOL, server, *ENDLESS, "-t", name, "-x", "soft", stdout=writer,
                        env=traces.env)
        traces.watch(server, client)
        os.close(writer)
        os.read(reader, 10)
        os.close(reader)
        client.wait(8)
        check(client.code in (1, -signal.SIGPIPE), client)
        server.wait(TIMEOUT_S + GRACE_S)
        check(server.code in (1, 4), server)
        traces.nothing()


@test
def head_takes_a_line_and_the_run_ends():
    for more in ((), ("-v",)):
        begin = time.monotonic()
        process = run("sh", "-c", '"$0" "$@" | head -1', TOOL, "--local", *ENDLESS, "-t", "put_lat",
                      "-x", "soft", *more, limit=15)
        equal(len(lines_of(process.out)), 1, process)
        check(time.monotonic() - begin < 10, process)


@test
def what_cannot_be_written_is_an_error():
    for where in (">&-", ">/dev/full"):
        for args in (("--local", "-t", "get", *QUICK, "-x", "soft"), ("-h",), ("--list",),
                     ("--version",), ("-p", "0")):
            process = run("sh", "-c", f'exec "$0" "$@" {where}', TOOL, *args, limit=10)
            ended(process, 1, None, where)
            check(len(sentences(process)) == 1, where, process)


if __name__ == "__main__":
    tap.main()
