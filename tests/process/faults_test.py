# SPDX-License-Identifier: BSD-3-Clause
"""Whatever happens to one end, the other ends in time with a sentence, and nothing stays behind.
faults_large_test.py draws faults on every fabric; here are those of each phase of a run. With --full
every tool has every fault in every phase. WEFT_SEED repeats a run's random choices."""
import os
import random
import re
import shutil
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (SANITIZED, SEPARATOR, Client, Process, Server, Traces, alone, between, check,
                 ended, equal, lines_of, one_sentence, rows_of, run, sentences, skip, test)

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
FULL = "--full" in sys.argv
SEED = os.environ.get("WEFT_SEED") or str(random.SystemRandom().randrange(10 ** 9))
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
ENDLESS = ("-n", "1000000000000", "--timeout", "1")
TIMEOUT_S = 1
GRACE_S = 3  # on top of the timeout; one second on a quiet machine
# What an endless run is doing when something happens to it.
PHASES = {"without gaps": ("--latency-gap", "0"),
          "in a long gap": ("--latency-gap", "60000000", "--warmup", "0")}


# The other tools, each in its ways: (tool, options).
KINDS = {"read": ("cxi_read_lat", ()),
         "an eager send": ("cxi_send_lat", ()),
         "a rendezvous send": ("cxi_send_lat", ("-R",)),
         "an atomic": ("cxi_atomic_lat", ("--fetching",))}
SEPARATORS = {"cxi_write_lat": 72 * "-", "cxi_read_lat": 72 * "-", "cxi_send_lat": 70 * "-",
              "cxi_atomic_lat": 71 * "-", "cxi_write_bw": 51 * "-"}


# Each of these falls on each tool in each phase, or, without --full, one after the other does.
BLOWS = [(victim, blow) for victim in ("server", "client") for blow in ("killed", "stopped")]


def in_turn(number, blows):
    return blows if FULL else [blows[number % len(blows)]]


def name_of(end):
    """The tool that a process runs."""
    return next(name for name in map(os.path.basename, end.argv) if name in SEPARATORS)


def separator_of(end):
    return SEPARATORS[name_of(end)]


class Pair(tap.RunningPair):
    """Server and client in the middle of an endless run."""

    def __init__(self, *args, server_args=(), settle=0.4, name=NAME, **more):
        super().__init__(tap.tool_path(name), server_args, (*ENDLESS, *args), **more)
        for end in (self.server, self.client):
            end.wait_for("^Remote .*\n" + separator_of(end) + "$")
        self.settle(settle)


def lost_its_peer(end, *words):
    """Ends with code 4 in time and says in one sentence what it lost."""
    ended(end, 4, TIMEOUT_S + GRACE_S)
    sentence = one_sentence(end, name_of(end))
    for word in words:
        check(word in sentence, f"no {word!r}", sentence)


def told_what_was_measured(client, *marks):
    """A row with what there is, marked as not complete, and a separator."""
    lines = lines_of(client.out)
    equal(lines[-1], separator_of(client), client)
    rows = rows_of(client)
    check(len(rows) == 1 and rows[0][1] >= 1, "a row of what was measured", client)
    check(any(re.search(mark, line, re.I) for line in lines[-3:] for mark in marks),
          f"not marked {marks}", client)


# ---- killed and stopped ----

def killed(victim, phase):
    run_ = Pair(*PHASES[phase])
    dead, survivor = run_.ends(victim)
    dead.kill()
    lost_its_peer(survivor, victim)
    if victim == "server":
        told_what_was_measured(run_.client, "incomplete", "interrupted")
    run_.traces.nothing()


@test
def the_end_that_was_killed_is_named_and_not_what_the_fabric_made_of_it():
    """libfabric notices the loss first, as an operation that was cancelled."""
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", "weft-ofi.so")):
        skip("weft-ofi.so is not built")
    for _ in range(4):
        run_ = Pair("-d", "ofi:tcp", "-s", "8", name="cxi_write_bw")
        run_.server.kill()
        lost_its_peer(run_.client, "lost the server")
        run_.traces.nothing()


def stopped(victim, phase):
    run_ = Pair(*PHASES[phase])
    asleep, survivor = run_.ends(victim)
    asleep.kill(signal.SIGSTOP)
    begin = time.monotonic()
    lost_its_peer(survivor, victim)
    check(survivor.ended - begin > TIMEOUT_S * 0.5, "it did not wait for the timeout", survivor)
    if victim == "server":
        told_what_was_measured(run_.client, "incomplete", "interrupted")
    asleep.kill(signal.SIGCONT)
    ended(asleep, 4, TIMEOUT_S + GRACE_S)
    run_.traces.nothing()


for phase in PHASES:
    for victim in ("server", "client"):
        tap.add(f"the {victim} is killed {phase}: the other ends with 4", killed, victim, phase)
        tap.add(f"the {victim} is stopped {phase}: the other ends with 4", stopped, victim, phase)


# What the other tools are doing when it happens; in the last two something was measured before.
MOMENTS = {"while it warms up": ("--warmup", "1000000000000", "--latency-gap", "0"), **PHASES}


def struck(kind, blow, victim, moment):
    """One end is killed or stopped: the other ends in time, and what it measured is told."""
    name, args = KINDS[kind]
    run_ = Pair(*args, *MOMENTS[moment], name=name)
    hit, survivor = run_.ends(victim)
    hit.kill(signal.SIGKILL if blow == "killed" else signal.SIGSTOP)
    begin = time.monotonic()
    lost_its_peer(survivor, victim)
    equal(lines_of(survivor.out)[-1], separator_of(survivor), survivor)
    if moment not in PHASES:
        equal(rows_of(run_.client), [], "nothing was measured yet", run_.client)
    elif victim == "server":
        told_what_was_measured(run_.client, "incomplete", "interrupted")
    if blow == "stopped":
        check(survivor.ended - begin > TIMEOUT_S * 0.5, "it did not wait for the timeout", survivor)
        hit.kill(signal.SIGCONT)
        ended(hit, 4, TIMEOUT_S + GRACE_S)
    run_.traces.nothing()


for i, kind in enumerate(KINDS):
    for k, moment in enumerate(MOMENTS):
        for victim, blow in in_turn(i + k, BLOWS):
            tap.add(f"{kind}: the {victim} is {blow} {moment}", struck, kind, blow, victim, moment)


def struck_mid_rendezvous(blow, victim):
    if SANITIZED or tap.available_bytes() < 2 << 30:
        skip("needs 2 GiB of memory and no sanitizer")
    # A message takes some hundredths of a second, and there is nothing but messages.
    run_ = Pair("-R", "-s", "256M", "--warmup", "0", "--latency-gap", "0", name="cxi_send_lat",
                settle=0.2)
    hit, survivor = run_.ends(victim)
    hit.kill(signal.SIGKILL if blow == "killed" else signal.SIGSTOP)
    lost_its_peer(survivor, victim)
    if blow == "stopped":
        hit.kill(signal.SIGCONT)
        ended(hit, 4, TIMEOUT_S + GRACE_S)
    run_.traces.nothing()


for victim, blow in in_turn(0, BLOWS):
    tap.add(f"the {victim} is {blow} in the middle of a rendezvous", struck_mid_rendezvous, blow,
            victim, by_itself=True)


def struck_between_sizes(name, args, blow, victim):
    """A size is one iteration, so that most of the time passes between sizes. It ends with the
    first round in which the other was not done yet."""
    for _ in range(6):
        traces = Traces()
        server = Server(tap.tool_path(name), env=traces.env)
        client = Client(tap.tool_path(name), server, *args, "-s", "1:32M", "-n", "1", "--warmup",
                        "0", "--latency-gap", "0", "--timeout", str(TIMEOUT_S), env=traces.env)
        hit, survivor = (client, server) if victim == "client" else (server, client)
        client.wait_for(r"^ +1  +1  ")
        hit.kill(signal.SIGKILL if blow == "killed" else signal.SIGSTOP)
        traces.watch(server, client)
        survivor.wait(TIMEOUT_S + GRACE_S)
        if survivor.code:
            lost_its_peer(survivor, victim)
            equal(rows_of(client)[0][:2], (1, 1), client)
        hit.kill(signal.SIGCONT)
        hit.wait(TIMEOUT_S + GRACE_S)
        traces.nothing()
        if survivor.code:
            return
    skip("every run was over before it was hit")


for i, (kind, (name, args)) in enumerate({"write": (NAME, ()), **KINDS}.items()):
    if name != "cxi_atomic_lat":
        for victim, blow in in_turn(i, BLOWS):
            tap.add(f"{kind}: the {victim} is {blow} between sizes", struck_between_sizes, name,
                    args, blow, victim)


def waits_between_sizes(kind, blow):
    """One-sided: a client whose server is stopped ends its size, and waits before the next one.
    Then that client, too, goes; the server wakes up and finds nobody."""
    name, args = KINDS[kind]
    traces = Traces()
    server = Server(tap.tool_path(name), env=traces.env)
    client = Client(tap.tool_path(name), server, *args, "-s", "1:8", "-n", "10", "--latency-gap",
                    "30000", "--warmup", "0", "--timeout", str(TIMEOUT_S), env=traces.env)
    client.wait_for("^Remote ")
    server.wait_for("^Remote ")
    traces.watch(server, client)
    time.sleep(0.1)  # until the server has said that the first size may begin; it takes 0.3 s
    server.kill(signal.SIGSTOP)
    client.wait_for(r"^ +1  +10  ", 3)
    if blow == "killed":
        client.kill()
        client.wait(5)
    else:
        lost_its_peer(client, "server")
        equal([row[:2] for row in rows_of(client)], [(1, 10)], client)
    server.kill(signal.SIGCONT)
    lost_its_peer(server, "client")
    traces.nothing()


tap.add("read: a client that waits before the next size is given up too", waits_between_sizes,
        "read", "killed")
tap.add("read: a client does not wait for ever before the next size", waits_between_sizes, "read",
        "stopped")


@test
def a_stop_shorter_than_the_timeout_is_no_fault():
    for victim in ("server", "client"):
        server = Server(TOOL)
        client = Client(TOOL, server, "-n", "1500", "--timeout", "5")
        client.wait_for("^Remote ")
        tap.stop_for(server if victim == "server" else client, 1.5)
        ended(client, 0)
        ended(server, 0)


@test
def a_fabric_that_is_at_work_for_longer_than_the_timeout_is_no_fault():
    if tap.available_bytes() < 1 << 30:
        skip("needs 1 GiB of memory")

    def measure():
        return run(TOOL, "--local", "-d", "slow:cxi1", "-s", "64M", "-n", "1", "--warmup", "0",
                   "--latency-gap", "0", "--timeout", "1",
                   env={"WEFT_MODULE_PATH": tap.doubles_folder()})

    def attempt(client):
        ended(client, 0)
        check(float(rows_of(client)[0][2]) > 1.5e6, "it was not slow", client)

    # A second without a CPU looks like a second without a sign of life.
    tap.undisturbed(measure, attempt, lambda client: False, attempts=4)


@test
def a_server_stopped_before_the_greeting_is_not_waited_for_without_end():
    server = Server(TOOL)
    server.kill(signal.SIGSTOP)
    client = Client(TOOL, server, *ENDLESS)
    lost_its_peer(client, "server")
    equal(client.out, "")
    server.kill(signal.SIGCONT)


@test
def gaps_longer_than_the_timeout_are_progress():
    server = Server(TOOL)
    client = Client(TOOL, server, "--latency-gap", "3000000", "--timeout", "1", "-n", "3",
                    "--warmup", "0")
    ended(client, 0)
    ended(server, 0)
    equal(rows_of(client)[0][:2], (8, 3))
    between(client.ended - client.began, 5.9, 15, "two gaps of 3 s")


# ---- interrupted ----

SIGNALS = {"SIGINT": (signal.SIGINT, 130), "SIGTERM": (signal.SIGTERM, 143)}


def interrupted_in_a_run(name, victim, phase):
    number, code = SIGNALS[name]
    run_ = Pair(*PHASES[phase])
    asked, other = run_.ends(victim)
    asked.kill(number)
    ended(asked, code, GRACE_S)
    lost_its_peer(other, victim, "interrupted")
    check("interrupted" in one_sentence(asked, NAME), asked)
    told_what_was_measured(run_.client, "interrupted" if victim == "client" else "incomplete")
    equal(lines_of(run_.server.out)[-1], SEPARATOR, run_.server)
    run_.traces.nothing()


def interrupted_while_listening(name, *args):
    number, code = SIGNALS[name]
    traces = Traces()
    server = Server(TOOL, *args, env=traces.env)
    traces.watch(server)
    server.kill(number)
    ended(server, code, GRACE_S)
    one_sentence(server, NAME)
    equal(len(lines_of(server.out)), 1, server)
    traces.nothing()


def interrupted_while_dialling(name):
    number, code = SIGNALS[name]
    client = Process([TOOL, "127.0.0.1", "-p", tap.free_port(), "--wait", "20"])
    time.sleep(0.3)
    client.kill(number)
    ended(client, code, GRACE_S)
    one_sentence(client, NAME)
    equal(client.out, "")


def interrupted_while_greeting(name):
    number, code = SIGNALS[name]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Process([TOOL, "127.0.0.1", "-p", str(silent.getsockname()[1])])
        silent.settimeout(10)
        with silent.accept()[0] as end:
            end.settimeout(10)
            check(end.recv(16))
            time.sleep(0.2)
            client.kill(number)
            ended(client, code, GRACE_S)
    one_sentence(client, NAME)


def interrupted_local(name, everyone):
    number, code = SIGNALS[name]
    traces = Traces()
    client = Process([TOOL, "--local", *ENDLESS, "--latency-gap", "0"], env=traces.env, group=True)
    client.wait_for("^Remote .*\n" + SEPARATOR)
    time.sleep(0.3)
    traces.watch(client)
    if everyone:
        os.killpg(client.pid, number)
    else:
        client.kill(number)
    ended(client, code, GRACE_S)
    check("interrupted" in one_sentence(client, NAME), client)
    told_what_was_measured(client, "interrupted")
    traces.nothing()


for name in SIGNALS:
    tap.add(f"{name} to a listening server", interrupted_while_listening, name)
    tap.add(f"{name} to a listening server with --loop", interrupted_while_listening, name,
            "--loop")
    tap.add(f"{name} to a client that waits for its server", interrupted_while_dialling, name)
    tap.add(f"{name} to a client that waits for an answer", interrupted_while_greeting, name)
    for victim in ("client", "server"):
        for phase in PHASES:
            tap.add(f"{name} to the {victim} {phase}: what was measured is told",
                    interrupted_in_a_run, name, victim, phase)
    tap.add(f"{name} to a --local run", interrupted_local, name, False)
    tap.add(f"{name} from the terminal to a --local run", interrupted_local, name, True)


def interrupted_at_work(kind, signal_name, victim, moment):
    number, code = SIGNALS[signal_name]
    name, args = KINDS[kind]
    run_ = Pair(*args, *MOMENTS[moment], name=name)
    asked, other = run_.ends(victim)
    asked.kill(number)
    ended(asked, code, GRACE_S)
    lost_its_peer(other, victim, "interrupted")
    check("interrupted" in one_sentence(asked, name), asked)
    if moment in PHASES:
        told_what_was_measured(run_.client, "interrupted" if victim == "client" else "incomplete")
    else:
        equal(rows_of(run_.client), [], run_.client)
    for end in (asked, other):
        equal(lines_of(end.out)[-1], separator_of(end), end)
    run_.traces.nothing()


for i, kind in enumerate(KINDS):
    for victim in in_turn(i, ("client", "server")):
        for name, moment in zip(("SIGINT", "SIGTERM", "SIGINT"), MOMENTS):
            tap.add(f"{kind}: {name} to the {victim} {moment}", interrupted_at_work, kind, name,
                    victim, moment)


@test
def an_interruption_while_warming_up_says_that_nothing_was_measured():
    run_ = Pair("--latency-gap", "0", "--warmup", "1000000000000")
    run_.client.kill(signal.SIGINT)
    ended(run_.client, 130, GRACE_S)
    lost_its_peer(run_.server, "client", "interrupted")
    equal(rows_of(run_.client), [], run_.client)
    check(re.search("interrupted", run_.client.out, re.I), run_.client)
    equal(lines_of(run_.client.out)[-1], SEPARATOR, run_.client)


@test
def an_interrupted_range_keeps_the_sizes_that_are_done():
    server = Server(TOOL)
    client = Client(TOOL, server, "-s", "1:1M", "-n", "500", "--latency-gap", "1000")
    client.wait_for(r"^ {11}1  ")
    time.sleep(0.2)
    client.kill(signal.SIGTERM)
    ended(client, 143, GRACE_S)
    rows = rows_of(client)
    equal(rows[0][:2], (1, 500), client)
    between(len(rows), 2, 20, client)
    check(rows[-1][1] <= 500, client)
    lost_its_peer(server, "client", "interrupted")


@test
def a_signal_while_memory_is_placed():
    if SANITIZED or tap.available_bytes() < 6 << 30:
        skip("needs 6 GiB of memory and no sanitizer")
    for victim in ("client", "server"):
        traces = Traces()
        server = Server(TOOL, env=traces.env)
        client = Client(TOOL, server, *ENDLESS, "-s", "2G", "--latency-gap", "0", env=traces.env)
        asked, other = (client, server) if victim == "client" else (server, client)
        time.sleep(0.15)
        traces.watch(server, client)
        asked.kill(signal.SIGINT)
        ended(asked, 130, GRACE_S + 2)
        if victim == "client" and "refused" in other.wait_for("(lost the client|refused a client)", 10, "err")[0]:
            # Nothing was agreed on yet: the server waits for the next one.
            ended(Client(TOOL, server, "-n", "3", "--latency-gap", "0", env=traces.env), 0, 10, server)
            ended(other, 0)
        else:
            ended(other, 4, TIMEOUT_S + GRACE_S + 2)
        traces.nothing()


# ---- --local ----

@test
def a_killed_local_run_takes_its_server_with_it():
    for phase in PHASES.values():
        traces = Traces()
        client = Process([TOOL, "--local", *ENDLESS, *phase], env=traces.env)
        client.wait_for("^Remote ")
        traces.watch(client)
        check(len(traces.pids) == 2, "a client and its server", traces.pids)
        client.kill()
        client.wait(5)
        traces.nothing()


@test
def a_local_run_killed_while_it_starts_leaves_no_server():
    def one(number):
        traces = Traces()
        client = Process([TOOL, "--local", *ENDLESS], env=traces.env)
        time.sleep(number * 0.0005)
        client.kill()
        client.wait(5)
        traces.nothing()

    tap.in_parallel(one, range(40), 4)


@test
def a_local_run_whose_server_is_killed_ends_with_4():
    traces = Traces()
    client = Process([TOOL, "--local", *ENDLESS, "--latency-gap", "0"], env=traces.env)
    client.wait_for("^Remote ")
    time.sleep(0.3)
    traces.watch(client)
    servers = tap.children_of(client.pid)
    equal(len(servers), 1)
    os.kill(servers[0][0], signal.SIGKILL)
    lost_its_peer(client, "server")
    told_what_was_measured(client, "incomplete", "interrupted")
    traces.nothing()


# ---- one CPU ----

def share_a_cpu(*args, name=NAME):
    if not shutil.which("taskset"):
        skip("no taskset here")
    cpu = str(min(os.sched_getaffinity(0)))
    prefix = ("taskset", "-c", cpu)
    tool = tap.tool_path(name)
    server = Server(tool, prefix=prefix)
    client = Client(tool, server, "-n", "1000", "--latency-gap", "0", *args, prefix=prefix)
    ended(client, 0)
    ended(server, 0)
    equal(rows_of(client)[0][1], 1000)
    check(client.ended - client.began < 10, "a switch for every iteration took too long", client)
    check("one CPU" in client.err, "no warning", client)


tap.add("both ends on one CPU: works and warns", share_a_cpu, by_itself=True)
tap.add("both ends on one CPU with a hop an iteration", share_a_cpu, "--verify", by_itself=True)
tap.add("both ends on one CPU through the command queue", share_a_cpu, "--no-ll", "-s", "64K",
        by_itself=True)


def other_shares_a_cpu(kind, *args):
    name, options = KINDS[kind]
    share_a_cpu(*options, *args, name=name)


for kind in KINDS:
    for more in ((), ("--no-ll", "--verify")):
        tap.add(f"{kind}: both ends on one CPU {' '.join(more)}", other_shares_a_cpu, kind, *more,
                by_itself=True)


@alone
def a_local_run_on_one_cpu_works_and_warns():
    cpu = str(min(os.sched_getaffinity(0)))
    client = ended(run(TOOL, "--local", "--cpu", f"{cpu},{cpu}", "-n", "1000", "--latency-gap", "0",
                       "--verify"), 0, 15)
    check("one CPU" in client.err, client)


@alone
def ends_on_two_cpus_are_not_warned():
    if len(os.sched_getaffinity(0)) < 2:
        skip("this machine has one CPU")
    client = ended(run(TOOL, "--local", *QUICK), 0)
    check("one CPU" not in client.err, client)


# ---- output that cannot be written ----

CLOSED = ">&-"
NOWHERE = {"closed": CLOSED, "full": ">/dev/full"}


def redirected(where, *argv):
    return ("sh", "-c", f'exec "$0" "$@" {where}', *argv)


def cannot_write(where, *args):
    process = run(*redirected(where, TOOL, *args), limit=8)
    ended(process, 1)
    one_sentence(process, NAME)


def client_cannot_write(where):
    traces = Traces()
    server = Server(TOOL, env=traces.env)
    client = Process(redirected(where, TOOL, "127.0.0.1", "-p", server.port, *QUICK), limit=8,
                     env=traces.env)
    traces.watch(server, client)
    ended(client, 1)
    one_sentence(client, NAME)
    server.wait(8)
    check(server.code in (0, 1, 4), server)
    check("speak" not in server.err, "the client's text went to the server", server)
    traces.nothing()


def server_cannot_write(where):
    port = tap.free_port()
    server = Process(redirected(where, TOOL, "-p", port), limit=5)
    ended(server, 1)
    one_sentence(server, NAME)


for word, where in NOWHERE.items():
    tap.add(f"--help on a {word} stdout", cannot_write, where, "--help")
    tap.add(f"--version on a {word} stdout", cannot_write, where, "--version")
    tap.add(f"a --local run on a {word} stdout", cannot_write, where, "--local", *QUICK)
    tap.add(f"a --local run with all samples on a {word} stdout", cannot_write, where, "--local",
            "-n", "20000", "--latency-gap", "0", "--report-all")
    tap.add(f"a client on a {word} stdout", client_cannot_write, where)
    tap.add(f"a server on a {word} stdout", server_cannot_write, where)


@test
def closed_standard_descriptors_are_not_mistaken_for_connections():
    # On one CPU there is a warning in the middle of the run: it must not go to the other end.
    if not shutil.which("taskset"):
        skip("no taskset here")
    prefix = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    for where in ("2>&-", "<&-", "<&- 2>&-"):
        server = Server(TOOL, prefix=prefix)
        client = Process([*prefix, *redirected(where, TOOL, "127.0.0.1", "-p", server.port, *QUICK,
                                               "--verify")])
        ended(client, 0, 10, server)
        ended(server, 0, 10)
        port = tap.free_port()
        server = Process([*prefix, *redirected(where, TOOL, "-p", port)])
        server.wait_for("^Listening")
        client = Process([*prefix, TOOL, "127.0.0.1", "-p", port, *QUICK, "--verify"])
        ended(client, 0, 10, server)
        ended(server, 0, 10)


@test
def a_reader_that_goes_away_ends_the_run():
    server = Server(TOOL)
    reader, writer = os.pipe()
    client = Client(TOOL, server, "-s", "1:1K", "-n", "200", stdout=writer)
    os.close(writer)
    os.read(reader, 10)
    os.close(reader)
    client.wait(10)
    check(client.code in (1, -signal.SIGPIPE), client)
    server.wait(TIMEOUT_S + GRACE_S)
    check(server.code in (1, 4), server)


@test
def the_port_is_free_again_at_once():
    port = tap.free_port()
    for _ in range(3):
        server = Server(TOOL, port=port)
        client = Client(TOOL, server, *ENDLESS)
        client.wait_for("^Remote ")
        server.kill()
        lost_its_peer(client, "server")


# ---- a server that stays ----

@test
def with_loop_a_killed_client_does_not_end_the_server():
    traces = Traces()
    server = Server(TOOL, "--loop", env=traces.env)
    for number in (signal.SIGKILL, signal.SIGINT):
        client = Client(TOOL, server, *ENDLESS, "--latency-gap", "0", env=traces.env)
        client.wait_for("^Remote ")
        client.kill(number)
        client.wait(5)
        traces.watch(client)
    ended(Client(TOOL, server, *QUICK, env=traces.env), 0)
    check(server.running() and len(sentences(server)) == 2, server)
    traces.watch(server)
    server.kill(signal.SIGINT)
    ended(server, 130, GRACE_S)
    traces.nothing()


def grows(server):
    """What a leak would add to."""
    with open(f"/proc/{server.pid}/maps", encoding="utf-8") as file:
        maps = len(file.read().splitlines())
    return len(os.listdir(f"/proc/{server.pid}/fd")), maps


def comes(server, text, count, within=15):
    """Waits until a text has been printed so often."""
    until = time.monotonic() + within
    while server.out.count(text) < count and time.monotonic() < until:
        time.sleep(0.01)
    equal(server.out.count(text), count, f"{text!r} within {within} s", server)


WAYS = {
    NAME: ((), ("--no-ll", "-s", "1:4K"), ("--verify",), ("-s", "3M")),
    "cxi_read_lat": ((), ("--no-ll", "-s", "1:4K"), ("--verify",), ("-s", "3M")),
    "cxi_send_lat": ((), ("-R", "-s", "1:4K"), ("--no-ll", "--verify"), ("-R", "-s", "3M")),
    "cxi_atomic_lat": ((), ("--fetching", "--matching"), ("-T", "UINT128", "-A", "CSWAP"),
                       ("--verify", "--no-ll", "-A", "MIN")),
}


def loop_leaks_nothing(name, at_once, broken):
    """Clients of every way, and some that are killed in the middle."""
    tool, ways = tap.tool_path(name), WAYS[name]
    traces = Traces()
    server = Server(tool, "--loop", env=traces.env, limit=90)
    served = 0

    def serve(number):
        nonlocal served
        clients = [Client(tool, server, *QUICK, *ways[(number + i) % len(ways)], env=traces.env)
                   for i in range(at_once)]
        for client in clients:
            ended(client, 0, 20, "while others wait, too" if at_once > 1 else "", server)
        if broken:
            clients = [Client(tool, server, *ENDLESS, *ways[number % len(ways)], "--latency-gap",
                              "0", env=traces.env)]
            comes(server, "\nRemote ", served + at_once + 1)
            clients[0].kill()
        served += at_once + bool(broken)
        # The server has done with the last one when it listens again.
        comes(server, "Listening on port ", served + 1)
        return grows(server)

    for number in range(len(ways)):
        before = serve(number)
    rounds = -(-20 // at_once)
    for number in range(rounds if not broken else 8):
        after = serve(number)
    tap.note(f"{served} clients; descriptors and mappings {before} before, {after} after")
    equal(after[0], before[0], "descriptors", server)
    # A sanitizer keeps a stack of an ended thread, or not.
    most = before[1] + (2 if SANITIZED else 0)
    check(after[1] <= most, f"mappings: {before[1]} before, {after[1]} after", server)
    traces.watch(server)
    server.kill(signal.SIGINT)
    ended(server, 130, GRACE_S)
    traces.nothing()


for name in WAYS:
    tap.add(f"{name} --loop serves one after another and keeps nothing", loop_leaks_nothing, name,
            1, False)
    tap.add(f"{name} --loop serves several that come at once", loop_leaks_nothing, name, 4, False)
    tap.add(f"{name} --loop keeps nothing of clients that are killed", loop_leaks_nothing, name, 1,
            True)


# ---- killed at random ----

def local_round(tool, chance, traces, args):
    client = Process([tool, "--local", *ENDLESS, *args], env=traces.env)
    time.sleep(chance.choice((chance.uniform(0, 0.03), chance.uniform(0, 0.5))))
    servers = tap.children_of(client.pid)
    traces.watch(client)
    if servers and chance.random() < 0.5:
        os.kill(servers[0][0], signal.SIGKILL)
        client.wait(TIMEOUT_S + GRACE_S)
        check(client.code in (1, 4) and sentences(client), client)
    else:
        client.kill()
        client.wait(5)


def pair_round(tool, chance, traces, args):
    server = Server(tool, env=traces.env)
    client = Client(tool, server, *ENDLESS, "--wait", "1", *args, env=traces.env)
    victim = chance.choice(("server", "client"))
    time.sleep(chance.choice((chance.uniform(0, 0.03), chance.uniform(0, 0.5))))
    traces.watch(server, client)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    dead.kill()
    if victim == "client":
        time.sleep(0.2)
        if server.running() and "Remote" not in server.out:
            # Perhaps it died before it had greeted: then the server waits for the next.
            until = time.monotonic() + TIMEOUT_S + GRACE_S
            while server.running() and time.monotonic() < until:
                time.sleep(0.05)
            if server.running():
                ended(Client(tool, server, *QUICK, env=traces.env), 0)
                ended(server, 0)
                return
    lost_its_peer(survivor)


def kill_round(number):
    chance = random.Random(f"{SEED}/{number}")
    traces = Traces()
    name = list(WAYS)[number % len(WAYS)]
    ways = [(), ("--no-ll",), ("--verify",)]
    if name == "cxi_atomic_lat":
        ways += [("--fetching",), ("--matching", "-T", "UINT128", "-A", "CSWAP")]
    else:
        ways += [("-s", "1:4M"), ("-s", "64M")]
    if name == "cxi_send_lat":
        ways += [("-R",), ("-R", "-s", "64M"), ("-R", "--verify", "-s", "1:1M")]
    args = (*chance.choice(ways),
            *chance.choice((("--latency-gap", "0"), ("--latency-gap", "100"),
                            ("--latency-gap", "60000000"))))
    try:
        kind_of_round = local_round if number % 3 == 2 else pair_round
        kind_of_round(tap.tool_path(name), chance, traces, args)
        traces.nothing()
    except tap.Failure as why:
        what = f"WEFT_SEED={SEED}, round {number}, {name} {' '.join(args)}"
        raise tap.Failure(f"{what}\n{why}") from None


@test
def killed_at_random_moments_nothing_is_left_behind():
    tap.note(f"seed {SEED}")
    tap.in_parallel(kill_round, range(200 if FULL else 12), 4)


if __name__ == "__main__":
    tap.main()
