#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hosts_test.py BUILD: two hosts, as network namespaces that this test makes and takes away: joined
by a veth pair, and, to know the delay of a link, by two TUN devices and a forwarder that holds every
packet for two milliseconds. Three hosts around a hub make a map, one of them behind such a forwarder.
Shared memory crosses namespaces, so every test looks at which fabric carried it."""
import json
import os
import re
import statistics
import threading
import time

import netns
import tap
from netns import inside, ip
from tap import Client, Server, check, ended, equal, header_value, skip

HERE, THERE = f"weft-a{os.getpid()}", f"weft-b{os.getpid()}"
SLOW_HERE, SLOW_THERE = f"weft-c{os.getpid()}", f"weft-d{os.getpid()}"
HUB, STAR = f"weft-h{os.getpid()}", [f"weft-{letter}{os.getpid()}" for letter in "efg"]
DELAY_S = 0.002
TIMEOUT = ("--timeout", "3")
CXI = ("cxi_write_lat", "cxi_read_lat", "cxi_send_lat", "cxi_atomic_lat")
PERFTESTS = ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap", "cswap", "am_bw", "put_bw",
             "add_mr")
_made = {}
_making = threading.Lock()


def module(name):
    return os.path.exists(os.path.join(tap.build_folder(), "modules", f"weft-{name}.so"))


tap.at_exit(lambda: netns.remove(SLOW_HERE, SLOW_THERE))


def hosts():
    """Two namespaces and a link, made once."""
    with _making:
        if "link" in _made:
            return
        _made["link"] = netns.Link(HERE, THERE)
        os.makedirs(f"/etc/netns/{THERE}", exist_ok=True)
        with open(f"/etc/netns/{THERE}/hosts", "w", encoding="utf-8") as names:
            names.write("127.0.0.1 localhost\n10.99.0.1 weft-server\n")


def both(tool, *args, address="10.99.0.1", server_args=(), server_at=None, client_at=None,
         limit=60):
    """The server in one host, the client in the other; both ended well."""
    path = tap.tool_path(tool)
    server = Server(path, *server_args, prefix=inside(server_at or HERE), limit=limit)
    client = Client(path, server, *args, address=address, prefix=inside(client_at or THERE),
                    limit=limit)
    ended(client, 0)
    ended(server, 0)
    return server, client


def by_libfabric(process):
    carried = header_value(process, "Fabric")
    check(carried.startswith("ofi tcp"), carried, process)
    # Namespaces of one kernel are not two machines.
    check("the ends are on two networks of one machine" in carried, "not the reason", carried)


def need_ofi():
    if not module("ofi"):
        skip("the module for libfabric was not built")
    hosts()


# ---- all tools over the link ----

def tools_run_over_tcp_with_no_other_option(tool):
    need_ofi()
    server, client = both(tool)
    by_libfabric(client)
    by_libfabric(server)


def tools_verify_over_tcp(tool, *args):
    need_ofi()
    _, client = both(tool, "--verify", "-n", "10", "--latency-gap", "0", *args)
    by_libfabric(client)


@tap.test
def every_test_of_ucx_perftest_verifies_between_two_hosts():
    need_ofi()
    path = tap.file_with("".join(f"{name} -t {name}\n" for name in PERFTESTS))
    _, client = both("ucx_perftest", "-b", path, "-x", "ofi:tcp", "-n", "50", "-w", "5", "-f",
                     "--verify")
    check(len(re.findall(r"^ +50 +[\d.]+", client.out, re.M)) == len(PERFTESTS), client)


for _tool in CXI:
    tap.add(f"{_tool} runs between two hosts with no other option",
            tools_run_over_tcp_with_no_other_option, _tool)
for _tool, *_args in (("cxi_write_lat", "-s", "1:65536"), ("cxi_read_lat", "-s", "1:65536"),
                      ("cxi_send_lat", "-s", "1:65536"), ("cxi_send_lat", "-s", "1:65536", "-R"),
                      ("cxi_atomic_lat",), ("cxi_atomic_lat", "-A", "CSWAP", "--fetching")):
    tap.add(" ".join([_tool, *_args, "verifies between two hosts"]), tools_verify_over_tcp, _tool,
            *_args)


@tap.test
def ucx_perftest_chooses_a_network_by_itself():
    need_ofi()
    args = ("-t", "am_lat", "-n", "1000", "-w", "10", "-f")
    _, client = both("ucx_perftest", *args)
    check("carried by ofi tcp" in client.err, client)
    # Ends that know each other need not be guarded from each other.
    path = os.path.join(tap.folder(), "secret")
    ended(tap.run(tap.tool_path("weft"), "keygen", path), 0)
    secret = ("--secret-file", path)
    _, client = both("ucx_perftest", *args, *secret, server_args=secret)
    check(f"carried by {'uct tcp/weftb' if module('uct') else 'ofi tcp'}" in client.err, client)


# ---- addresses ----

@tap.test
def ipv6_carries_a_run():
    need_ofi()
    _, client = both("cxi_write_lat", "-n", "20", address="fd99::1")
    by_libfabric(client)


@tap.test
def a_name_from_the_hosts_file_is_reached():
    need_ofi()
    _, client = both("cxi_read_lat", "-n", "20", address="weft-server")
    by_libfabric(client)


@tap.test
def a_run_within_one_host_stays_in_its_memory():
    hosts()
    _, client = both("cxi_write_lat", "-n", "20", address="127.0.0.1", client_at=HERE)
    check(header_value(client, "Fabric").startswith("soft"), client)


@tap.test
def soft_is_refused_between_two_hosts_in_a_sentence():
    hosts()
    path = tap.tool_path("cxi_write_lat")
    server = Server(path, "-d", "soft:cxi0", prefix=inside(HERE))
    client = Client(path, server, "-d", "soft:cxi0", address="10.99.0.1", prefix=inside(THERE))
    ended(client, 1)
    check("another network namespace" in client.err, client)


# ---- faults ----

def a_cut_link_ends_both_within_the_timeout(number, tool, *args):
    """Each with a link of its own: the others use theirs meanwhile."""
    need_ofi()
    link = netns.Link(f"{HERE}-{number}", f"{THERE}-{number}")
    path = tap.tool_path(tool)
    server = Server(path, *TIMEOUT, prefix=inside(link.here), limit=60)
    client = Client(path, server, *TIMEOUT, *args, address="10.99.0.1", prefix=inside(link.there),
                    limit=60)
    client.wait_for(r"Fabric|iterations")
    time.sleep(1)
    link.cut()
    ended(client, 4, 25)
    ended(server, 4, 25)
    for process in (client, server):
        check(re.search(r"no sign of life|did not complete|lost the|lost:", process.err), process)


for _number, (_tool, *_args) in enumerate((
        ("cxi_write_lat", "-D", "30"), ("cxi_send_lat", "-D", "30"),
        ("ucx_perftest", "-t", "am_lat", "-x", "ofi:tcp", "--duration", "30"))):
    tap.add(f"a link that is cut under {_tool} ends both within the timeout",
            a_cut_link_ends_both_within_the_timeout, _number, _tool, *_args)


@tap.test
def a_server_that_is_killed_ends_the_client():
    need_ofi()
    path = tap.tool_path("cxi_send_lat")
    server = Server(path, *TIMEOUT, prefix=inside(HERE), limit=60)
    client = Client(path, server, *TIMEOUT, "-D", "30", address="10.99.0.1",
                    prefix=inside(THERE), limit=60)
    client.wait_for(r"Fabric")
    time.sleep(0.5)
    server.kill()
    ended(client, 4, 15)


# ---- a link with a known delay ----

def slow_hosts():
    if "slow" in _made:
        return
    need_ofi()
    ends = []
    for name, number, other in ((SLOW_HERE, 1, 2), (SLOW_THERE, 2, 1)):
        ip("netns", "add", name)
        ends.append(netns.tun_in(name, "weftt"))
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"10.98.0.{number}", "peer", f"10.98.0.{other}", "dev",
           "weftt")
        ip("-n", name, "link", "set", "weftt", "mtu", "9000", "up")
    _made["slow"] = netns.Forwarder(*ends, DELAY_S)


def a_known_delay_is_read(tool, legs, *args):
    """Half a round trip of a send is one delay; a read, and a write that is delivered, take two."""
    slow_hosts()
    wanted_us = legs * DELAY_S * 1e6

    def measure():
        _made["slow"].late_s.clear()
        _, client = both(tool, "-n", "200", "--report-all", "--latency-gap", "0", *args,
                         address="10.98.0.1", server_at=SLOW_HERE, client_at=SLOW_THERE)
        by_libfabric(client)
        # Whatever else runs here, nothing is early.
        samples = tap.samples_of(client)[0]
        check(min(samples) >= 0.98 * wanted_us, f"minimum {min(samples)} us", client)
        return client

    def attempt(client):
        tap.between(statistics.median(tap.samples_of(client)[0]), 0.98 * wanted_us,
                    1.5 * wanted_us, client)

    # The forwarder runs beside both ends, on as few CPUs, and knows when it was late.
    tap.undisturbed(measure, attempt, lambda client: tap.preempted(client) >= 10 or
                    statistics.median(_made["slow"].late_s) > DELAY_S / 10, attempts=3)


for _tool, _legs in (("cxi_send_lat", 1), ("cxi_read_lat", 2), ("cxi_write_lat", 2)):
    tap.add(f"{_tool} reads a delay of 2 ms a way as {2 * _legs} ms", a_known_delay_is_read, _tool,
            _legs, by_itself=True)


# ---- a map of three hosts, one of them far away ----

def star():
    if "star" not in _made:
        _made["star"] = netns.Star(HUB, STAR, DELAY_S)
    return _made["star"]


def map_of_the_star(device):
    """{hosts of a pair: what was measured}, by a leader on the hub."""
    path = os.path.join(tap.folder(), "map.json")
    process = tap.run(*inside(HUB), tap.tool_path("weft"), "map", "--hosts", ",".join(STAR), "--agent",
                      "ip netns exec %h", "-t", "send_lat", "-d", device, "-n", "200",
                      "--at-once", "1", "--json", path)
    # Three are too few for a verdict.
    ended(process, 5)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    equal((document["failed"], document["lost"]), ([], []), process)
    names = [node["name"] for node in document["nodes"]]
    pairs = {tuple(sorted((names[p["a"]], names[p["b"]]))): p for p in document["pairs"]}
    equal(sorted(pairs), [(STAR[0], STAR[1]), (STAR[0], STAR[2]), (STAR[1], STAR[2])], process)
    return pairs


def a_map_reads_a_delay(module_name, device):
    """Half a round trip of a send. Only the last host is far away."""
    if not module(module_name):
        skip(f"the module {module_name} was not built")
    forwarder, wanted_us = star().forwarder, DELAY_S * 1e6

    def measure():
        forwarder.late_s.clear()
        pairs = map_of_the_star(device)
        for ends, pair in pairs.items():
            if STAR[2] in ends:
                check(pair["min_us"] >= wanted_us, "earlier than the delay", ends, pair)
            else:
                check(pair["min_us"] < wanted_us / 2, "not delayed by anything", ends, pair)
        return pairs

    def attempt(pairs):
        for ends, pair in pairs.items():
            if STAR[2] in ends:
                tap.between(pair["p50_us"], wanted_us, 1.5 * wanted_us, ends, pair)

    # How busy the machine is the forwarder knows, and the pair that is near.
    tap.undisturbed(measure, attempt,
                    lambda pairs: statistics.median(forwarder.late_s) > DELAY_S / 10 or
                    pairs[(STAR[0], STAR[1])]["p99_us"] > wanted_us / 2, attempts=3)


for _module, _device in (("ofi", "ofi:tcp"), ("uct", "uct:tcp")):
    tap.add(f"a map over {_device} reads a delay of 2 ms a way as 2 ms", a_map_reads_a_delay, _module,
            _device, by_itself=True)


if __name__ == "__main__":
    tap.main()
