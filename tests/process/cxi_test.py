# SPDX-License-Identifier: BSD-3-Clause
"""The tools on the native cxi fabric, over the software Cassini of tests/doubles/cassini: every tool
with its data checked, what the device says of itself, faults of the NIC, and ends that are killed."""
import sys

sys.dont_write_bytecode = True
import os
import re

import schema
import tap
from cassini import nics
from sysfs import Tree
from tap import Client, Server, check, ended, equal, header_value, one_sentence, rows_of, run, test

LATENCY = ("-n", "20", "--latency-gap", "0", "--warmup", "2", "--verify")
LISTS = ("-n", "3", "-l", "16", "--warmup", "1", "--verify")


def tool(word):
    return tap.tool_path(f"cxi_{word}")


def good(word, *args, device="cxi:cxi0"):
    return ended(run(tool(word), "-d", device, "--local", *args, env=nics()), 0)


def between(word, *args, server=None, client=None):
    """Server and client on two NICs, each with an environment of its own."""
    env = nics()
    one = Server(tool(word), "-d", "cxi:cxi0", "--timeout", "3", env={**env, **(server or {})})
    two = Client(tool(word), one, "-d", "cxi:cxi1", "--timeout", "3", *args,
                 env={**env, **(client or {})})
    return one, two


def failed(ends, word):
    """What client and server say when both fail."""
    said = []
    for end in reversed(ends):
        end.wait()
        check(end.code in (1, 4), end)
        said.append(one_sentence(end, f"cxi_{word}"))
    return said


# ---- every tool, every form of a command ----

@test
def latency_tools_move_what_they_say():
    for word in ("write_lat", "read_lat", "send_lat"):
        equal(len(rows_of(good(word, "-s", "1:4096", *LATENCY))), 13)
    good("atomic_lat", *LATENCY)


@test
def commands_of_other_forms_move_the_same():
    for args in (("--no-idc",), ("--no-ll",), ("--no-idc", "--no-ll", "--unrestricted"),
                 ("--unrestricted",)):
        good("write_lat", "-s", "8:512", *LATENCY, *args)
    good("read_lat", "-s", "65536", "--unrestricted", *LATENCY)
    for args in (("-R",), ("--no-idc",)):
        good("send_lat", "-s", "8:32768", *LATENCY, *args)


@test
def atomics_of_other_forms_do_the_same():
    for args in (("--fetching",), ("--no-idc", "--fetching"), ("--matching", "--fetching"),
                 ("-A", "CSWAP", "-T", "UINT128", "--fetching"), ("-A", "MAX", "-T", "DOUBLE"),
                 ("--unrestricted", "-A", "AXOR")):
        good("atomic_lat", *LATENCY, *args)


@test
def bandwidth_tools_move_what_they_say():
    for word in ("write_bw", "read_bw", "send_bw"):
        good(word, "-s", "64:4096", *LISTS)
    good("atomic_bw", *LISTS)


@test
def lists_of_other_forms_and_both_ways_move_the_same():
    good("write_bw", "-s", "4096", "--no-hrp", "-b", *LISTS)
    good("write_bw", "-s", "4096", "--unrestricted", *LISTS)
    good("send_bw", "-s", "4096", "-R", "-b", *LISTS)
    good("atomic_bw", "--fetching", "-b", *LISTS)


# ---- several processes, several NICs ----

@test
def pairs_of_processes_share_a_nic():
    env = nics()
    for word in ("write_bw", "read_bw", "send_bw", "atomic_bw"):
        one = Server(tool(word), "-d", "cxi:cxi0", env=env)
        two = ended(Client(tool(word), one, "-d", "cxi:cxi1", "--procs", "2", *LISTS, env=env), 0)
        ended(one, 0)
        equal(len(re.findall("^cxi_.*: size .*, pair [01] ", two.err, re.M)), 2, two)


@test
def pairs_on_two_nics_have_the_counters_of_each():
    trees = Tree("class/cxi"), Tree("class/cxi")
    for tree in trees:
        for device in ("cxi0", "cxi1", "cxi2", "cxi3"):
            place = tree.where / device / "device/telemetry"
            place.mkdir(parents=True)
            (place / "hni_sts_rx_ok_octets").write_text("7@1.5\n", encoding="utf-8")
    env = nics(CASSINI_DEVICES="4")
    one = Server(tool("write_bw"), "-d", "cxi:cxi0,cxi:cxi1", env=env, prefix=trees[0].prefix())
    path = os.path.join(tap.folder(), "out.json")
    two = ended(Client(tool("write_bw"), one, "-d", "cxi:cxi2,cxi:cxi3", *LISTS, "--report-counters", "--json", path,
                       env=env, prefix=trees[1].prefix()), 0)
    ended(one, 0)
    with open(path, encoding="utf-8") as file:
        result, = schema.read(file.read())["results"]
    equal([(ends["client"]["device"], ends["server"]["device"]) for ends in result["counters"]],
          [("cxi2", "cxi0"), ("cxi3", "cxi1")], two)
    for ends in result["counters"]:
        equal([end["deltas"] for end in ends.values()], [{"hni_sts_rx_ok_octets": 0}] * 2)


@test
def a_map_has_its_groups_from_the_switches():
    process = run(tap.tool_path("weft"), "map", "--local", "4", "-d", "cxi:cxi%r", "--groups", "switch",
                  "-n", "5", "--timeout", "60", "--json", "-", env=nics(CASSINI_DEVICES="4"), limit=120)
    document = schema.read(process.out, "weft-map")
    equal(document["groups"], ["switch 0x68", "switch 0x69"], process)
    equal([node["group"] for node in document["nodes"]],
          [name for name in document["groups"] for _ in range(2)], process)


# ---- GPUs: their memory is mapped as a dma-buf ----

def on_gpus(word, *args, code=0, **more):
    folder = os.path.join(tap.build_folder(), "tests/doubles")
    gpus = {"WEFT_MODULE_PATH": os.path.join(tap.build_folder(), "modules"), "WEFT_TEST_GPU": folder,
            "FAKE_CUDA_GPUS": "2", "FAKE_ROCM_GPUS": "2", "FAKE_ZE_GPUS": "2"}
    return ended(run(os.path.join(folder, f"gpu_cxi_{word}"), "-d", "cxi:cxi0", "--local", *args,
                     env={**nics(**gpus), **more}), code)


@test
def memory_of_gpus_is_reached_where_it_lies():
    for vendor in ("AMD", "NVIDIA", "INTEL"):
        for word, args in (("write_lat", ("-t", "0", "-r", "1")), ("read_lat", ("-r", "0")),
                           ("send_lat", ("-t", "1", "-R")), ("send_lat", ("-t", "0", "-r", "0"))):
            on_gpus(word, "-s", "1:65536", "-n", "2", "--latency-gap", "0", "--warmup", "0", "--verify",
                    "-g", vendor, *args)
        for word in ("write_bw", "read_bw", "send_bw"):
            on_gpus(word, "-s", "4096", *LISTS, "-t", "0", "-r", "1", "-g", vendor)


@test
def memory_of_a_gpu_that_the_driver_does_not_take_is_refused_in_a_sentence():
    process = on_gpus("write_lat", "-t", "0", "-g", "NVIDIA", code=1, FAKE_FAULT="dmabuf")
    check("bytes of a GPU cannot be mapped on cxi0: " in process.err, process)


# ---- the device ----

@test
def the_header_says_what_the_device_says():
    one, two = between("write_lat", *LATENCY)
    ended(two, 0)
    ended(one, 0)
    equal(header_value(two, "Local (client)"), "NIC 0x1a21 PID 0 VNI 10")
    equal(header_value(two, "Remote (server)"), "NIC 0x1a20 PID 0")
    check("libcxi" in header_value(two, "Fabric"), two)
    for word, args in (("write_lat", LATENCY), ("read_bw", LISTS)):
        check(re.fullmatch(r"NIC 0x1a20 PID [01] \(loopback\)", header_value(good(word, *args), "Remote (server)")), word)


def high_rate(type_, client, server):
    """(what the client's header says of HRP, whether it has changed to the profile for it) between NICs
    of two revisions."""
    trace = os.path.join(tap.folder(), f"{type_}-{client}-{server}")
    one, two = between("atomic_bw", "-T", type_, *LISTS, server={"CASSINI_REVISION": server},
                       client={"CASSINI_REVISION": client, "CASSINI_TRACE": trace})
    ended(two, 0)
    equal(header_value(ended(one, 0), "HRP"), header_value(two, "HRP"))
    with open(trace, encoding="utf-8") as file:
        commands = file.read()
    check("amo_op=" in commands or "c_idc_put_cmd 0x40" in commands, commands)
    return header_value(two, "HRP"), "c_cq_cmd 0x27" in commands


@test
def high_rate_atomics_are_not_for_a_type_that_a_nic_loses():
    for type_, client, server, holds in (("UINT64", "2", "2", True), ("INT32", "2", "2", True),
                                         ("UINT32", "2", "2", False), ("UINT32", "3", "2", False),
                                         ("UINT32", "3", "3", True)):
        equal(high_rate(type_, client, server), ("Enabled" if holds else "Disabled - Not Applicable", holds))


@test
def services_are_the_devices_own():
    process = good("write_lat", "-v", "2", *LATENCY)
    check("VNI 77" in header_value(process, "Local (client)"), process)
    for service, words in (("9", "disabled"), ("5", "no service 5")):
        process = ended(run(tool("write_lat"), "-d", "cxi:cxi0", "--local", "-v", service,
                            env=nics()), 1)
        check(words in process.err, process)


@test
def ends_in_two_vnis_do_not_meet_and_both_say_why():
    env = nics()
    one = Server(tool("write_lat"), "-d", "cxi:cxi0", "-v", "2", env=env)
    two = ended(Client(tool("write_lat"), one, "-d", "cxi:cxi1", env=env), 1)
    check("in VNI 77, this one in VNI 10" in one_sentence(two, "cxi_write_lat"), two)
    check("in VNI 10, this one in VNI 77" in one_sentence(ended(one, 1), "cxi_write_lat"), one)


@test
def a_device_or_library_that_is_not_there_is_named():
    process = ended(run(tool("write_lat"), "-d", "cxi:cxi7", "--local", env=nics()), 1)
    check('no device "cxi7"' in process.err, process)
    process = ended(run(tool("write_lat"), "-d", "cxi:cxi0", "--local",
                        env={"LD_LIBRARY_PATH": ""}), 1)
    check("libcxi.so.1" in process.err, process)


# ---- faults of the NIC: each ends in a sentence ----

@test
def a_revoked_service_is_named():
    process = ended(run(tool("write_lat"), "-d", "cxi:cxi0", "--local",
                        env=nics(CASSINI_FAULT="revoked")), 1)
    check("logical network interface" in process.err and "revoked" in process.err, process)


def gap(word):
    return ("--latency-gap", "0") if word.endswith("lat") else ()


# Where it happens, to which tool, and what is said of it at both ends.
FAULTS = (
    ("server", "error:60", "write_lat", (), "PCIe"),
    ("server", "dropped:60", "read_lat", (), "dropped"),
    ("server", "error:60", "write_bw", ("-l", "16"), "a write of a list failed: PCIe"),
    ("server", "error:60", "atomic_lat", (), "an atomic of 8 bytes failed"),
    ("client", "error:60", "send_lat", ("-R", "-s", "20000"), "PCIe"),
    ("server", "disabled:60", "write_lat", (), "the target's portal table entry is disabled"),
    ("server", "disabled:60", "send_lat", (), "disabled"),
    ("server", "target_event:60", "send_lat", (), "a memory error that cannot be corrected"),
    ("client", "target_event:60", "send_bw", ("-b", "-l", "16"), "a memory error that cannot be corrected"),
    ("client", "translation:60", "write_lat", ("--no-idc",), "an address that is not mapped"),
    ("server", "translation:60", "send_lat", ("--no-idc",), "an address that is not mapped"),
    ("client", "bad_command:60", "write_lat", (), "refuses a command"),
    ("server", "bad_command:60", "send_lat", (), "refuses a command"),
    ("client", "overflow:60", "write_lat", (), "event queue was full"),
    ("server", "overflow:60", "send_lat", (), "event queue was full"),
)


@test
def errors_of_either_nic_end_a_run_in_a_sentence_at_both_ends():
    for end, what, word, args, words in FAULTS:
        said = failed(between(word, "-n", "500", *gap(word), *args, **{end: {"CASSINI_FAULT": what}}), word)
        check(all(words in one for one in said), f"{what} at the {end} of {word}: {said}")


# What is lost or taken away makes no event: the deadline ends it.
LOST = (
    ("server", "lost_ack:60", "write_lat", ()),
    ("server", "lost_data:60", "read_lat", ()),
    ("server", "lost_ack:60", "write_bw", ("-l", "16")),
    ("server", "lost_ack:60", "send_bw", ("-l", "16", "-s", "4096")),
    ("client", "gone:60", "write_lat", ()),
    ("server", "gone:60", "send_lat", ()),
)


@test
def what_is_lost_ends_a_run_in_time_at_both_ends():
    at_once = 2  # each is two ends that poll and two NICs: more would starve other tests
    for first in range(0, len(LOST), at_once):
        runs = [(between(word, "-n", "500", *gap(word), *args, **{end: {"CASSINI_FAULT": what}}), what, word)
                for end, what, word, args in LOST[first:first + at_once]]
        for ends, what, word in runs:
            said = failed(ends, word)
            check(any("within 3" in one for one in said), f"{what} {word}: {said}")


@test
def a_nic_that_does_not_pull_by_itself_is_told_to():
    one, two = between("send_lat", "-R", "-s", "20000", *LATENCY, server={"CASSINI_FAULT": "no_get"},
                       client={"CASSINI_FAULT": "no_get"})
    ended(two, 0)
    ended(one, 0)


# ---- ends that die ----

@test
def the_other_end_outlives_a_kill_and_says_so():
    for word, victim, *args in (("write_lat", 0), ("send_lat", 1), ("send_bw", 0), ("write_bw", 1),
                                ("read_lat", 1, "-s", "16M"), ("send_lat", 0, "-s", "16M"),
                                ("write_bw", 0, "-s", "16M", "-l", "4"), ("send_bw", 1, "-s", "16M", "-l", "4", "-R")):
        ends = between(word, "-D", "60", *args)
        ends[1].wait_for("Local \\(client\\)")
        ends[victim].popen.kill()
        ends[victim].wait()
        other = ends[1 - victim]
        other.wait()
        check(other.code not in (0, None) and other.err.strip(), other)


if __name__ == "__main__":
    tap.main()
