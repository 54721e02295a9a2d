# SPDX-License-Identifier: BSD-3-Clause
"""Several pairs of processes that measure together: --procs N, and -d A,B."""
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import schema
import tap
from tap import Client, Process, Server, Traces, check, ended, equal, run, sentences, skip, test

WRITE, READ, SEND, ATOMIC, LAT, WEFT = map(
    tap.tool_path, ("cxi_write_bw", "cxi_read_bw", "cxi_send_bw", "cxi_atomic_bw", "cxi_write_lat",
                    "weft"))
SLOW = {"WEFT_MODULE_PATH": tap.doubles_folder()}
QUICK = ("-n", "20", "-l", "32")
ROW = re.compile(r"^ *(\d+)  +(\d+|-)  +([\d.]+)  +([\d.]+)((?:  +\S+)*)$", re.M)
PAIR = re.compile(r"^\S+: size (\d+), pair (\d+) \((\S+?)(?:, CPU \d+ to \d+)?\): ([\d.]+) MB/s$", re.M)


def document(*argv, env=None):
    """The client, and what it wrote."""
    path = os.path.join(tap.folder(), "result.json")
    client = ended(run(*argv, "--json", path, env=env), 0)
    with open(path, encoding="utf-8") as file:
        return client, schema.read(file.read()), path


def rows(process):
    return ROW.findall(process.out)


def rate(result, key="bytes_per_s"):
    """Of a pair: what went there and what came back."""
    back = result.get("reverse", {"count": 0, "elapsed_s": 1})
    forth = result["operations"] / result["elapsed_s"]
    return forth if key != "bytes_per_s" else forth + back["count"] / back["elapsed_s"]


def near(got, wanted, share=1e-6):
    check(abs(got - wanted) <= share * wanted, f"{got} is not {wanted}")


# ---- sums ----

def adds_up(tool, *args):
    lists, list_size, count = 5, 16, 3
    client, found, path = document(tool, "--local", "--procs", "3", "-n", "5", "-l", "16", *args)
    for row, result in zip(rows(client), found["results"], strict=True):
        pairs = result["pairs"]
        equal([pair["operations"] for pair in pairs], [lists * list_size] * count)
        equal([int(row[1]), result["operations"]], [count * lists * list_size] * 2)
        near(result["bytes_per_s"], sum(pair["bytes_per_s"] for pair in pairs))
        near(result["messages_per_s"], sum(pair["messages_per_s"] for pair in pairs))
        near(result["elapsed_s"], max(pair["elapsed_s"] for pair in pairs))
        check(tap.fits(row[2], sum(map(rate, pairs)) * result["size"] / 1e6), client, pairs)
        equal(result["count"], count * lists, "the list times of all pairs are samples")
        said = [line for line in PAIR.findall(client.err) if line[0] == row[0]]
        equal([line[1] for line in said], ["0", "1", "2"], client)
        for line, pair in zip(said, pairs):
            check(tap.fits(line[3], rate(pair) * result["size"] / 1e6), line, pair)
    check(not any("pair" in line for line in found["warnings"]), found["warnings"])
    ended(run(WEFT, "report", path, "-o", os.path.join(os.path.dirname(path), "page.html")), 0)


for _name, _tool, _args in (("write", WRITE, ("-s", "64:4K", "--verify")), ("read", READ, ()),
                            ("send", SEND, ("--verify",)), ("atomic", ATOMIC, ("--verify",)),
                            ("write both ways", WRITE, ("-b",)),
                            ("send both ways", SEND, ("-b", "--verify"))):
    tap.add(f"{_name}: the row is the sum of three pairs, which stderr and the document have", adds_up,
            _tool, *_args)


@test
def both_ends_print_the_same_sums():
    server = Server(WRITE, "--max-procs", "2")
    client = ended(Client(WRITE, server, "--procs", "2", *QUICK, "-s", "1K:4K", "-b"), 0, None, server)
    ended(server, 0)
    equal(rows(client), rows(server))
    equal(len(rows(client)), 3, client)
    for end in (client, server):
        equal(tap.header_value(end, "Pairs"), "2")


@test
def a_sum_is_that_of_the_delays_that_were_programmed():
    """Each pair alone: 64 operations in 20 ms, and in 5 ms. The fast one goes on until the other is
    done, and what it does then does not count."""
    _, found, _ = document(WRITE, "--local", "-d", "null:delay=20ms,null:delay=5ms", "-s", "1000",
                           "-n", "10", "-l", "64")
    result, = found["results"]
    equal([pair["operations"] for pair in result["pairs"]], [640, 640])
    for pair, delay_s in zip(result["pairs"], (0.020, 0.005)):
        check(pair["elapsed_s"] >= 10 * delay_s, pair)
    check(result["bytes_per_s"] <= 64000 / 0.020 + 64000 / 0.005, result["bytes_per_s"])


@test
def one_pair_is_as_without_the_option():
    plain, one = (ended(run(WRITE, "--local", *QUICK, *more), 0) for more in ((), ("--procs", "1")))
    masked = [re.sub(r"PID \d+", "PID", re.sub(r"^( *\d+  +\d+).*$", r"\1", text, flags=re.M))
              for text in (plain.out, one.out)]
    equal(*masked)
    check("pair" not in one.err, one)


# ---- devices ----

def devices(*more):
    client, found, _ = document(WRITE, "--local", "-d", "cxi0,soft:cxi1", *QUICK, "-s", "4K:8K",
                                *more)
    table = rows(client)
    equal([(row[0], row[-1].split()[-1]) for row in table],
          [(size, name) for size in ("4096", "8192") for name in ("cxi0", "soft:cxi1", "sum")], client)
    for one, other, both in (table[:3], table[3:]):
        check(abs(float(one[2]) + float(other[2]) - float(both[2])) < 0.02, client)
        equal(int(one[1]) + int(other[1]), int(both[1]))
    equal([pair["device"] for pair in found["results"][0]["pairs"]], ["cxi0", "soft:cxi1"])
    equal(tap.header_value(client, "Pairs"), "2")


tap.add("devices have a row each and a sum", devices)
tap.add("devices have a row each and a sum, and percentiles", devices, "--percentiles", "50")


@test
def scripts_read_one_device_as_ever():
    client = ended(run(WRITE, "--local", "--procs", "2", "-d", "cxi0", *QUICK), 0)
    read = [line.split()[2] for line in client.out.splitlines() if "65536" in line and "Size" not in line]
    equal(len(read), 1, client)
    near(float(read[0]), sum(float(line[3]) for line in PAIR.findall(client.err)), 1e-3)


# ---- what is refused ----

def refused(code, words, *argv):
    process = ended(run(*argv), code)
    said = sentences(process)
    check(len(said) == 1 and re.search(words, said[0]), words, process)


@test
def counts_that_make_no_sense_are_refused_in_a_sentence():
    for words, *args in ((r"--procs.*\"0\"", "--procs", "0"), (r"--procs.*129.*128", "--procs", "129"),
                         (r"--interval is for one pair", "--procs", "2", "-D", "2", "--interval", "1"),
                         (r"--procs 3 on 2 devices", "--procs", "3", "-d", "cxi0,cxi1"),
                         (r"empty name", "-d", "cxi0,,cxi1"), (r"empty name", "-d", "cxi0,")):
        refused(2, words, WRITE, "--local", *args)
    refused(2, r"latency is measured on one device", LAT, "--local", "-d", "cxi0,cxi1")


@test
def a_server_bounds_the_pairs_of_its_clients():
    server = Server(WRITE, "--max-procs", "2", "--procs", "2")
    for count, words in (("3", "3 pairs, and the server allows 2: start it with --max-procs 3"),
                         ("1", "1 pairs, the server 2: give both the same --procs")):
        client = run(WRITE, "127.0.0.1", "-p", server.port, *QUICK, "--procs", count)
        check(client.code == 1 and words in client.err and client.out == "", client)
        server.wait_for(re.escape(words), stream="err")
        equal(tap.children_of(server.pid), [], server)
    ended(Client(WRITE, server, *QUICK, "--procs", "2"), 0)
    ended(server, 0)


@test
def all_pairs_together_are_within_the_memory_that_a_server_grants():
    server = Server(WRITE, "--max-procs", "2", "--max-memory", "1M")
    args = ("-s", "64K", "-l", "12", "-n", "3")
    client = run(WRITE, "127.0.0.1", "-p", server.port, *args, "--procs", "2")
    check(client.code == 1 and "takes 1.5 MiB" in client.err, client)
    ended(Client(WRITE, server, *args), 0)


def lacks_a_device(client_args, server_args):
    """It is found out by a process that pair 0 has started, when pair 0 has nothing left to wait for."""
    traces = Traces()
    server = Server(WRITE, "--max-procs", "2", *server_args, env=traces.env)
    client = Client(WRITE, server, *client_args, *QUICK, env=traces.env)
    for end in (client, server):
        ended(end, 1, 30, client, server)
        check("pair 1: " in end.err and "cxi99" in end.err, client, server)
        check(not rows(end), end)
    traces.nothing()


tap.add("a device that the client's second pair lacks ends all pairs", lacks_a_device,
        ("-d", "cxi0,cxi99"), ())
tap.add("a device that the server's second pair lacks ends all pairs", lacks_a_device,
        ("--procs", "2"), ("-d", "cxi0,cxi99"))


@test
def the_place_of_a_pair_comes_from_its_parent_alone():
    for place in ("", "1", "1 2", "1 0 -1", "999 3 -1", "-1 -1 -1", "x"):
        process = ended(run(WRITE, "--local", *QUICK, env={"WEFT_PAIR": place}), 2)
        check("WEFT_PAIR is set by Weft alone: unset it" in process.err, place, process)


# ---- secrets ----

@test
def every_connection_shows_the_secret():
    path = os.path.join(tap.folder(), "secret")
    ended(run(WEFT, "keygen", path), 0)
    server = Server(WRITE, "--max-procs", "3", "--secret-file", path)
    with open(path, "rb") as held:
        os.set_inheritable(held.fileno(), True)
        client = ended(Process(["/bin/sh", "-c", f'exec "$@" <&- 5<"{path}"', "sh", WRITE, "127.0.0.1",
                                "-p", server.port, "--procs", "3", *QUICK, "--secret-file", "fd:5"]), 0,
                       None, server)
    ended(server, 0)
    equal(len(rows(client)), 1, client)


# ---- CPUs ----

@test
def near_needs_a_nic_whose_node_is_known():
    process = ended(run(WRITE, "--local", "--cpu", "near", *QUICK), 0)
    check("--cpu near has no effect: the NUMA node of cxi0 is not known" in process.err, process)
    check("CPU  " not in process.out, process)


@test
def a_nic_whose_node_is_known_decides_the_cpu():
    """The interface lo as a NIC of one node, in a mount namespace of the test's own."""
    if os.geteuid():
        skip("this needs root")
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", "weft-ofi.so")):
        skip("weft-ofi.so is not built")
    last = max(os.sched_getaffinity(0))
    script = ("mount -t tmpfs none /sys/class/net && mkdir -p /sys/class/net/lo/device && "
              "echo 0 > /sys/class/net/lo/device/numa_node && "
              f"echo {last} > /sys/class/net/lo/device/local_cpulist && exec \"$@\"")
    inside = ["unshare", "-m", "sh", "-c", script, "sh"]
    if run(*inside, "true").code:
        skip("no mount namespace can be made here")
    lat, write = (LAT, "-n", "3", "--latency-gap", "0"), (WRITE, "-n", "3", "-l", "2", "-s", "8")
    given = str(min(os.sched_getaffinity(0)))
    for (tool, *args), shown in ((lat, True), ((*write, "--cpu", "near"), True),
                                 ((*write, "--cpu", given), False)):
        server = Server(tool, "-d", "ofi:tcp")
        client = ended(Client(tool, server, "-d", "ofi:tcp/lo", *args, prefix=inside), 0)
        equal(re.findall(r"^CPU  +: (.*)$", client.out, re.M), [f"{last} (near lo)"] if shown else [])
        ended(server, 0)
        check("CPU  " not in server.out, server)


# ---- one pair is lost ----

def lost(end, which, number, tool, *args):
    """A process of one end is struck while all measure: all end in time, with what was measured."""
    timeout_s, traces = 1, Traces()
    path = os.path.join(tap.folder(), "result.json")
    server = Server(tool, "--max-procs", "3", "--timeout", str(timeout_s), env=traces.env)
    client = Client(tool, server, "--procs", "3", "-n", "1000000000", "-l", "32", *args, "--timeout",
                    str(timeout_s), "--json", path, env=traces.env)
    client.wait_for(r"^Remote .*\n-+$")
    time.sleep(0.3)
    traces.watch(server, client)
    hit = {"client": client, "server": server}[end]
    pids = sorted(pid for pid, _ in tap.children_of(hit.pid))
    equal(len(pids), 2, hit)
    struck = hit.pid if which == 0 else pids[which - 1]
    os.kill(struck, number)
    left = [one for one in (client, server) if which or one is not hit]
    for one in left:
        ended(one, 4, timeout_s + 20, hit)
        check(sentences(one), one)
    if which == 0 and number == signal.SIGSTOP:
        hit.kill(signal.SIGCONT)
        ended(hit, 4, 20)
    if client in left:
        with open(path, encoding="utf-8") as file:
            found = schema.read(file.read())
        equal(found["status"]["exit"], 4)
        check(re.search(r"^Incomplete: ", client.out, re.M), client)
        if number == signal.SIGKILL and which:
            equal([row[0] for row in rows(client)], [str(result["size"]) for result in found["results"]])
    hit.wait(20)
    traces.nothing()


for _end, _which, _number in (("client", 0, signal.SIGKILL), ("client", 1, signal.SIGKILL),
                              ("client", 1, signal.SIGSTOP), ("server", 0, signal.SIGSTOP),
                              ("server", 1, signal.SIGKILL)):
    tap.add(f"pair {_which}'s {_end} gets {_number.name}, and all pairs end", lost, _end, _which, _number,
            WRITE if _which else SEND)


@test
def a_pair_whose_both_ends_stop_is_missed_by_the_others():
    """Neither has anybody at the other end who would notice."""
    traces, args = Traces(), ("--timeout", "1")
    server = Server(WRITE, "--max-procs", "2", *args, env=traces.env)
    client = Client(WRITE, server, "--procs", "2", "-n", "1000000000", "-l", "32", *args, env=traces.env)
    client.wait_for(r"^Remote .*\n-+$")
    time.sleep(0.3)
    traces.watch(server, client)
    for end in (client, server):
        (pid, _), = tap.children_of(end.pid)
        os.kill(pid, signal.SIGSTOP)
    for end in (client, server):
        ended(end, 4, 20)
        check("pair 1: no sign of life of its process here for 1 s" in client.err + server.err, client,
              server)
    traces.nothing()


@test
def a_pair_that_is_lost_while_it_connects_ends_all():
    """It takes a second and a half for that; pair 0 has nothing left to do but wait."""
    traces, device = Traces(), "soft:cxi0,slow:cxi1"
    server = Server(WRITE, "--max-procs", "2", "-d", device, env={**traces.env, **SLOW})
    client = Client(WRITE, server, "-d", device, "-n", "1000000000", env={**traces.env, **SLOW})
    client.wait_until(lambda: len(tap.children_of(server.pid)) == 1, 10)
    time.sleep(0.6)
    traces.watch(server, client)
    (pid, _), = tap.children_of(client.pid)
    os.kill(pid, signal.SIGKILL)
    for end in (client, server):
        ended(end, 4, 20)
        check("pair 1: " in end.err, client, server)
    traces.nothing()


@test
def an_interrupt_ends_all_pairs_with_what_was_measured():
    traces = Traces()
    client = Process([WRITE, "--local", "--procs", "2", "-n", "1000000000", "-s", "64"], env=traces.env)
    client.wait_for(r"^Remote .*\n-+$")
    time.sleep(0.3)
    traces.watch(client)
    client.kill(signal.SIGINT)
    ended(client, 130, 20)
    check(re.search(r"^Interrupted: ", client.out, re.M) and len(rows(client)) == 1, client)
    traces.nothing()


if __name__ == "__main__":
    tap.main()
