# SPDX-License-Identifier: BSD-3-Clause
"""Ends that sleep while they wait: with every method, on every fabric that has events, the data is right, a
killed peer ends both, and the CPU time of a receiver that waits is a fraction of a polling one's."""
import json
import sys

sys.dont_write_bytecode = True
import tap
from cassini import nics
from tap import check, ended, equal, header_value, run, sentences, test

PERF = tap.tool_path("ucx_perftest")
TIMEOUT_S, GRACE_S = 1, 4
# For each fabric: the tests of ucx_perftest and the CXI tools that can sleep on it.
ALL_TESTS = ("tag_lat", "tag_sync_bw", "am_lat", "am_bw", "put_lat", "put_bw", "add_lat", "get", "fadd")
ALL_WORDS = ("write", "read", "send", "atomic")
FABRICS = {"soft": (ALL_TESTS, ALL_WORDS),
           "uct:posix": (("am_lat", "am_bw", "put_bw", "get"), ALL_WORDS),
           "uct:tcp": (("am_lat", "am_bw", "put_lat", "put_bw"), ("write", "send")),
           "ucp:posix": (("tag_lat", "am_bw"), ()),
           "ucp:tcp": (("tag_sync_bw", "am_lat", "put_lat"), ()),
           "ofi:tcp": (("am_lat", "am_bw", "put_lat"), ("read", "send")),
           "ofi:shm": (("am_lat",), ("send",)),
           "cxi:cxi0": (("am_lat", "am_bw", "put_bw", "get"), ALL_WORDS)}
LIST_TOOLS = ("cxi_write_bw", "cxi_read_bw", "cxi_send_bw", "cxi_atomic_bw")


def tool(word):
    return tap.tool_path(f"cxi_{word}_lat")


def env_of(fabric):
    return nics() if fabric.startswith("cxi:") else {}


def missing(process):
    """No such fabric or transport, or it has no events here."""
    words = ("there is no", "not installed", "no descriptor to wait for")
    return process.code == 1 and any(word in process.err for word in words)


def there(process):
    """A good run, or a skip."""
    if missing(process):
        tap.skip(process.err.strip())
    return ended(process, 0)


def said_cpu(process):
    """One line on the CPU time, and nothing else but what was chosen, is on stderr."""
    said = [line for line in sentences(process)
            if ": data layout " not in line and ": tag messages: " not in line]
    equal([": CPU time per " in line for line in said], [True], process)


# ---- the data, with every method ----

def sleeps_and_verifies(fabric):
    names, words = FABRICS[fabric]
    env = env_of(fabric)
    for name in names:
        verify = () if name in ("add_lat", "fadd") else ("--verify",)
        process = there(run(PERF, "--local", "-x", fabric, "-t", name, "-n", "200", "-w", "20", "-E", "sleep",
                            "-f", *verify, env=env))
        said_cpu(process)
    for word in words:
        process = there(run(tool(word), "--local", "-d", fabric, "-e", "-n", "20", "--verify",
                            "--latency-gap", "100", env=env))
        said_cpu(process)
        equal(header_value(process, "Waits"), "Sleep until an event")


for each in FABRICS:
    tap.add(f"ends_that_sleep_on_{each}_lose_nothing", sleeps_and_verifies, each)


@test
def long_messages_and_lists_sleep_too():
    for args in (("-s", "80M"), ("-s", "1M", "-R"), ("-s", "1M", "--no-ll", "--no-idc")):
        there(run(tool("send"), "--local", "-d", "soft", "-e", "-n", "2", "--warmup", "1", "--verify",
                  *args))
    for name in LIST_TOOLS:
        for args in ((), ("-b",)) if name != "cxi_atomic_bw" else ((),):
            size = () if name == "cxi_atomic_bw" else ("-s", "4096")
            said_cpu(there(run(tap.tool_path(name), "--local", "-d", "soft", "-e", "-n", "5", "--verify",
                               *size, *args)))
    said_cpu(there(run(tap.tool_path("cxi_send_bw"), "--local", "-d", "cxi:cxi0", "-e", "-n", "3", "-l", "16",
                       "-b", "-R", "--verify", env=nics())))


@test
def threads_sleep_too():
    process = there(run(PERF, "--local", "-x", "soft", "-t", "am_lat", "-n", "200", "-w", "20", "-T", "2",
                        "-E", "sleep", "--verify"))
    check(": CPU time per am: size 8, client " in process.err, process)


@test
def wakeup_alone_polls_and_says_nothing_of_it():
    process = there(run(PERF, "--local", "-x", "soft", "-t", "am_lat", "-n", "200", "-w", "20", "-I"))
    equal(sentences(process), [], process)


@test
def what_cannot_wake_is_refused_in_a_sentence_at_both_ends():
    def refused(*args, **more):
        process = ended(run(PERF, "--local", "-n", "10", *args, **more), 1)
        return process.err

    for args in (("-E", "sleep"), ("-I",)):
        check("has no events to sleep on: null does" in refused("-d", "null", "-t", "put_bw", *args), args)
    said = refused("-x", "uct:posix", "-t", "put_lat", "-E", "sleep")
    check("does not wake the other end for a put: it can only poll" in said or "not installed" in said, said)
    said = refused("-x", "cxi:cxi0", "-t", "am_lat", "-E", "sleep", env=nics(CASSINI_FAULT="no_wait"))
    check("has no events to sleep on: the driver gives no wait object" in said, said)


# ---- CPU time ----

def cpu_of(*args):
    """(client, server): CPU time per operation in ns, of sends that are 5 ms apart."""
    process = there(run(tool("send"), "--local", "-n", "40", "--warmup", "2", "--latency-gap", "5000",
                        "--json", "-", *args))
    result = json.loads(process.out)["results"][0]["cpu_ns_per_op"]
    return result["client"], result["server"]


@test
def a_sleeping_receiver_uses_a_fraction_of_the_cpu_time_of_a_polling_one():
    def measure():
        return cpu_of("-d", "soft"), cpu_of("-d", "soft", "-e")

    def attempt(found):
        (_, polling), (_, sleeping) = found
        check(sleeping * 5 < polling, f"{sleeping} ns asleep, {polling} ns polling")

    # Where others have the CPU, a polling end uses little of it too.
    tap.undisturbed(measure, attempt, lambda found: found[0][1] < 2.5e6)


@test
def cpu_time_is_a_condition():
    common = (tool("send"), "--local", "-d", "soft", "-n", "20", "--latency-gap", "100")
    ended(run(*common, "--fail-if", "client_cpu_ns < 1", "--fail-if", "server_cpu_ns < 1"), 0)
    ended(run(*common, "--fail-if", "server_cpu_ns > 1"), 3)


# ---- a peer that dies ----

def dies(fabric, who):
    endless = ("-n", "0", "-w", "10", "--timeout", str(TIMEOUT_S), "-t", "am_lat", "-E", "sleep")
    where = ("-x", fabric)
    pair = tap.RunningPair(PERF, where, (*endless, *where), env=env_of(fabric))
    pair.client.wait_until(lambda: "# iterations" in pair.client.out or pair.client.code is not None, 15)
    if not pair.client.running() and pair.client.wait() and missing(pair.client):
        pair.server.end()
        tap.skip(pair.client.err.strip())
    pair.settle(0.3)
    hit, left = pair.ends(who)
    hit.kill()
    ended(left, 4, TIMEOUT_S + GRACE_S)
    pair.traces.nothing()


for each in FABRICS:
    for end in ("client", "server"):
        tap.add(f"a_{end}_killed_on_{each}_ends_the_sleeper_in_time", dies, each, end)


if __name__ == "__main__":
    tap.main()
