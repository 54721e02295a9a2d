# SPDX-License-Identifier: BSD-3-Clause
"""--report-counters: how far the counters of both ends' network devices came, on the real ones of lo and
on trees of files that stand in the place of /sys."""
import os
import pathlib
import re
import sys
import threading

sys.dont_write_bytecode = True
import schema
import tap
from cassini import nics
from sysfs import Tree
from tap import Client, Server, check, ended, equal, one_sentence, run, test

TOOLS = [f"cxi_{op}_{what}" for op in ("write", "read", "send", "atomic") for what in ("lat", "bw")]
LAT, WEFT, UCX = (tap.tool_path(name) for name in ("cxi_write_lat", "weft", "ucx_perftest"))
LO = ("--local", "-d", "ofi:tcp/lo")
QUICK = ("-n", "20", "--latency-gap", "0")


def counters_of(text):
    return [ends for result in schema.read(text)["results"] for ends in result["counters"]]


# ---- on the real ones ----


def shown(name):
    """The table is as without the option, standard error has a line per end, the document both."""
    args = ("-x", "ofi:tcp/lo", "-t", "put_lat", "-n", "100", "-w", "10", "-f") \
        if name == "ucx_perftest" else ("-d", "ofi:tcp/lo", "-n", "10",
                                        *(("-l", "4") if name.endswith("bw") else ("--latency-gap", "0")))
    path = os.path.join(tap.folder(), name)
    done = ended(run(tap.tool_path(name), "--local", *args, "--report-counters", "--json", path), 0)
    check("counter" not in done.out, done)
    equal(len(re.findall(rf"^{name}: counters: size \d+, (client|server) lo: .*rx_bytes \+\d+",
                         done.err, re.M)), 2, done)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check(not any("counters:" in line for line in schema.read(text)["warnings"]), text)
    for ends in counters_of(text):
        for end in ends.values():
            equal((end["device"], end["why"]), ("lo", ""))
            check(end["deltas"]["rx_bytes"] > 10 * 8, end)
            check(None not in end["deltas"].values(), end)


for _name in (*TOOLS, "ucx_perftest"):
    tap.add(f"{_name} shows counters of both ends", shown, _name)


@test
def a_range_has_those_of_each_size():
    done = ended(run(LAT, *LO, *QUICK, "-s", "1024:65536", "--report-counters=rx_bytes", "--json", "-"), 0)
    ends = counters_of(done.out)
    equal(len(ends), 7)
    check(ends[6]["client"]["deltas"]["rx_bytes"] > 20 * 65536, ends)
    equal([list(one["server"]["deltas"]) for one in ends], [["rx_bytes"]] * 7)


@test
def pairs_of_processes_on_one_device_have_one_entry():
    done = ended(run(tap.tool_path("cxi_write_bw"), *LO, "-n", "5", "-l", "4", "--procs", "2",
                     "--report-counters=rx_bytes", "--json", "-"), 0)
    ends, = counters_of(done.out)
    check(ends["client"]["deltas"]["rx_bytes"] > 5 * 4 * 65536, ends)


@test
def readers_take_a_document_with_counters():
    paths = [os.path.join(tap.folder(), name) for name in ("a.json", "b.json")]
    for path in paths:
        ended(run(LAT, *LO, *QUICK, "--report-counters", "--json", path), 0)
    ended(run(WEFT, "compare", *paths), 5)
    ended(run(WEFT, "report", *paths, "-o", os.path.join(tap.folder(), "page.html")), 0)
    whole = schema.read(pathlib.Path(paths[0]).read_text(encoding="utf-8"))
    for deltas in ({"rx_bytes": -1}, {"rx_bytes": "1"}, [], None):
        whole["results"][0]["counters"][0]["server"]["deltas"] = deltas
        pathlib.Path(paths[1]).write_text(schema.json.dumps(whole), encoding="utf-8")
        check("counters[0].server." in ended(run(WEFT, "compare", *paths), 2).err, deltas)


@test
def errors_that_grew_are_in_comparisons_and_pages():
    paths = [os.path.join(tap.folder(), name) for name in ("a.json", "b.json")]
    for path in paths:
        ended(run(LAT, *LO, *QUICK, "-s", "8:16", "--report-counters", "--json", path), 0)
    whole = schema.read(pathlib.Path(paths[1]).read_text(encoding="utf-8"))
    for result, errors in zip(whole["results"], (3, 4)):
        result["counters"][0]["server"]["deltas"]["rx_errors"] = errors
    pathlib.Path(paths[1]).write_text(schema.json.dumps(whole), encoding="utf-8")
    done = ended(run(WEFT, "compare", *paths), 5)
    equal(re.findall("^Errors.*", done.out, re.M), ["Errors in B: server lo: rx_errors +7 in 1 of 1 run"], done)
    found = schema.read(ended(run(WEFT, "compare", *paths, "--json", "-"), 5).out, "weft-comparison")
    equal((found["a"]["errors"], found["b"]["errors"]),
          ([], [{"end": "server", "device": "lo", "counter": "rx_errors", "delta": 7, "runs": 1}]))
    page = os.path.join(tap.folder(), "page.html")
    ended(run(WEFT, "report", *paths, "-o", page), 0)
    text = pathlib.Path(page).read_text(encoding="utf-8")
    equal(text.count("<h4>Counters of network devices</h4>"), 2)
    for words in ("<td>server lo</td>", '<span class="badge bad">rx_errors +4</span>', " unchanged</td>"):
        check(words in text, words)


@test
def a_name_that_neither_end_has_is_refused_at_both_before_anything_is_timed():
    server = Server(LAT, "-d", "ofi:tcp/lo")
    client = ended(Client(LAT, server, "-d", "ofi:tcp/lo", "--report-counters=rx_bytes,rx_byte"), 2)
    one_sentence(client, "cxi_write_lat")
    ended(server, 2)
    for end in (client, server):
        check("counter rx_byte: neither lo at the client nor lo at the server has it" in end.err, end)
    check("Writes" not in client.out, client)


@test
def a_batch_goes_on_after_a_name_that_is_refused():
    lines = tap.file_with("one -t put_lat -s 8\ntwo -t put_lat -s 16\n")
    done = ended(run(UCX, "--local", "-x", "ofi:tcp/lo", "-n", "10", "-w", "0", "-b", lines,
                     "--report-counters=nothing"), 1)
    equal(len(re.findall("counter nothing: neither lo", done.err)), 2, done)
    check("2 of 2 tests failed" in done.err, done)


@test
def a_fabric_without_a_network_device_has_none_and_says_so_once():
    done = ended(run(LAT, "--local", *QUICK, "-s", "8:16", "--report-counters=errors", "--json", "-"), 0)
    for ends in counters_of(done.out):
        for end in ends.values():
            equal(end, {"device": None, "why": "fabric soft uses no network device", "deltas": {}})
    equal(done.err.count("n/a (fabric soft uses no network device)"), 2, done)
    done = ended(run(LAT, "--local", *QUICK, "--report-counters", "--fail-if", "counter:errors > 0"), 5)
    check("cannot tell whether counter:errors > 0" in done.err, done)


@test
def what_is_typed_is_checked():
    for words, sentence in (
            (["--report-counters=../x"], 'counters: "../x" is neither'),
            (["--report-counters=a,,b"], "is neither"),
            (["--fail-if", "counter:rx_errors > 0"], "needs --report-counters"),
            (["--report-counters", "--fail-if", "counter:a/b > 0"], "unknown metric"),
            (["--report-counters", "--fail-if", "counter:a > 5us"], "a plain number")):
        done = ended(run(LAT, *LO, *words), 2)
        one_sentence(done, "cxi_write_lat")
        check(sentence in done.err, done)


# ---- on trees of files ----


def bumped(client, server, steps, args, device="ofi:tcp/lo", **more):
    """A run; meanwhile steps, of trees and their files, are added to their values again and again."""
    begun = Server(LAT, "-d", device, prefix=server.prefix(), **more)
    path = os.path.join(tap.folder(), "out.json")
    visitor = Client(LAT, begun, "-d", device, "-n", "10", "--latency-gap", "30000", "--json", path,
                     *args, prefix=client.prefix(), **more)
    over = threading.Event()

    def bump():
        number = 0
        while not over.wait(0.02):
            number += 1
            for tree, name, start, step in steps:
                tree.put(**{name: start + number * step})
    thread = threading.Thread(target=bump)
    thread.start()
    try:
        visitor.wait(40)
    finally:
        over.set()
        thread.join()
    ended(begun, 0)
    ends, = counters_of(pathlib.Path(path).read_text(encoding="utf-8"))
    return visitor, ends


def statistics():
    trees = Tree("class/net/lo/statistics"), Tree("class/net/lo/statistics")
    for tree in trees:
        tree.put(rx_bytes=1000, rx_errors=7, tx_dropped=0)
    return trees


@test
def an_error_at_the_other_end_fails_the_condition():
    client, server = statistics()
    done, ends = bumped(client, server, [(server, "rx_errors", 7, 1), (client, "rx_bytes", 1000, 10)],
                        ("--report-counters", "--fail-if", "counter:rx_errors > 0"))
    ended(done, 3)
    mine, other = ends["client"]["deltas"], ends["server"]["deltas"]
    check(mine["rx_bytes"] > 0 and mine["rx_bytes"] % 10 == 0, ends)
    equal((mine["rx_errors"], mine["tx_dropped"], other["rx_bytes"]), (0, 0, 0))
    check(other["rx_errors"] > 0, ends)
    check(f"failed, because counter:rx_errors > 0: size 8 has {other['rx_errors']}" in done.err, done)
    check(f"client lo: rx_bytes +{mine['rx_bytes']}, 2 unchanged" in done.err, done)


@test
def what_was_reset_is_not_known_and_not_negative():
    client, server = statistics()
    done, ends = bumped(client, server, [(client, "rx_errors", 10 ** 6, -1)],
                        ("--report-counters=errors", "--fail-if", "counter:errors > 0",
                         "--fail-if", "counter:server:errors > 0"))
    ended(done, 5)
    equal(ends["client"]["deltas"], {"rx_errors": None, "tx_dropped": 0})
    equal(ends["server"]["deltas"], {"rx_errors": 0, "tx_dropped": 0})
    check("client lo: rx_errors n/a, 1 unchanged" in done.err, done)
    equal(done.err.count("cannot tell"), 1, done)


@test
def a_counter_of_one_end_is_missing_at_the_other_only():
    client, server = statistics()
    server.put(rx_packets=1)
    done, ends = bumped(client, server, [], ("--report-counters=rx_packets,rx_errors",))
    ended(done, 0)
    equal(ends["client"]["deltas"], {"rx_packets": None, "rx_errors": 0})
    equal(ends["server"]["deltas"], {"rx_packets": 0, "rx_errors": 0})


def on_device(fabric, device, where, env, **values):
    """The first of the values grows, at the client."""
    trees = Tree(where), Tree(where)
    for tree in trees:
        tree.put(**values)
    grows = next(iter(values))
    done, ends = bumped(*trees, [(trees[0], grows, 100, 1)], ("--report-counters",), fabric, env=env)
    ended(done, 0)
    equal({end["device"] for end in ends.values()}, {device})
    check(ends["client"]["deltas"].pop(grows) > 0, ends)
    equal(ends["server"]["deltas"].pop(grows), 0)
    return ends["client"]["deltas"]


@test
def telemetry_of_a_cxi_device_is_read():
    """On the native fabric, over the software Cassini."""
    equal(on_device("cxi:cxi0", "cxi0", "class/cxi/cxi0/device/telemetry", nics(),
                    hni_pcs_uncorrected_cw="5@1.5", hni_sts_rx_ok_octets="100@1.5"),
          {"hni_sts_rx_ok_octets": 0})


@test
def counters_of_an_infiniband_port_are_read():
    env = {"WEFT_TEST_DEVICE": "mlx5_0:1", "WEFT_TEST_COUNTS": "/dev/null",
           "WEFT_MODULE_PATH": tap.doubles_folder()}
    equal(on_device("counts:cxi1", "mlx5_0:1", "class/infiniband/mlx5_0/ports/1/hw_counters", env,
                    out_of_sequence=5, lifespan=10), {})


tap.main()
