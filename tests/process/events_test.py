# SPDX-License-Identifier: BSD-3-Clause
"""Ends that sleep while they wait: with every method, on every fabric that has events, the data is right, a
killed peer ends both, and the CPU time of a receiver that waits is a fraction of a polling one's."""
import json
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, ended, equal, header_value, run, sentences, test

PERF = tap.tool_path("ucx_perftest")
TIMEOUT_S, GRACE_S = 1, 4
# For each fabric: the tests of ucx_perftest and the CXI tools that can sleep on it.
ALL_TESTS = ("am_lat", "am_bw", "put_lat", "put_bw", "add_lat", "get", "fadd")
FABRICS = {"soft": (ALL_TESTS, ("write", "read", "send", "atomic"))}
LIST_TOOLS = ("cxi_write_bw", "cxi_read_bw", "cxi_send_bw", "cxi_atomic_bw")


def tool(word):
    return tap.tool_path(f"cxi_{word}_lat")


def there(process):
    """A good run, or a skip where there is no such fabric or transport."""
    if process.code == 1 and ("there is no" in process.err or "not installed" in process.err):
        tap.skip(process.err.strip())
    return ended(process, 0)


def said_cpu(process, count=1):
    """The line on the CPU time, and nothing else, is on stderr."""
    said = sentences(process)
    equal([": CPU time per " in line for line in said], [True] * count, process)


# ---- the data, with every method ----

def sleeps_and_verifies(fabric):
    names, words = FABRICS[fabric]
    for name in names:
        args = ("-x", fabric) if fabric in ("soft", "posix", "tcp") else ("-d", fabric)
        verify = () if name in ("add_lat", "fadd") else ("--verify",)
        process = there(run(PERF, "--local", *args, "-t", name, "-n", "200", "-w", "20", "-E", "sleep",
                            "-f", *verify))
        said_cpu(process)
    for word in words:
        device = fabric if ":" in fabric or fabric == "soft" else f"uct:{fabric}"
        process = there(run(tool(word), "--local", "-d", device, "-e", "-n", "20", "--verify",
                            "--latency-gap", "100"))
        said_cpu(process)
        equal(header_value(process, "Waits"), "Sleep until an event")


for each in FABRICS:
    tap.add(f"ends_that_sleep_on_{each}_lose_nothing", sleeps_and_verifies, each)


@test
def long_messages_and_lists_sleep_too():
    for args in (("-s", "128M"), ("-s", "1M", "-R"), ("-s", "1M", "--no-ll", "--no-idc")):
        there(run(tool("send"), "--local", "-d", "soft", "-e", "-n", "3", "--warmup", "1", "--verify",
                  *args))
    for name in LIST_TOOLS:
        for args in ((), ("-b",)) if name != "cxi_atomic_bw" else ((),):
            said_cpu(there(run(tap.tool_path(name), "--local", "-d", "soft", "-e", "-n", "5", "--verify",
                               *args)))


@test
def wakeup_alone_polls_and_says_nothing_of_it():
    process = there(run(PERF, "--local", "-x", "soft", "-t", "am_lat", "-n", "200", "-w", "20", "-I"))
    equal(sentences(process), [], process)


@test
def what_cannot_wake_is_refused_in_a_sentence_at_both_ends():
    for args, words in (((PERF, "-d", "null", "-t", "put_bw", "-E", "sleep"), "no events to sleep on"),
                        ((PERF, "-d", "null", "-t", "put_bw", "-I"), "no events to sleep on")):
        process = ended(run(*args, "--local", "-n", "10"), 1)
        check(words in process.err, process)


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
    where = ("-x", fabric) if ":" not in fabric else ("-d", fabric)
    pair = tap.RunningPair(PERF, where, (*endless, *where))
    pair.client.wait_until(lambda: "# iterations" in pair.client.out or pair.client.code is not None, 15)
    if pair.client.code == 1 and "there is no" in pair.client.err:
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
