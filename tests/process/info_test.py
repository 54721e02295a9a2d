#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""info_test.py BUILD: weft info on this machine, and with libraries that hang or die."""
import json
import os
import re
import shutil

import schema
import tap
from sysfs import Tree
from tap import check, equal

WEFT = tap.tool_path("weft")
SECTIONS = ["Machine", "Caches", "Clocks", "Memory", "GPUs", "Network devices", "CXI devices", "Fabrics",
            "Measured", "What will distort results"]


def info(*args, **more):
    return tap.run(WEFT, "info", *args, **more)


def headings(text):
    return [line for line in tap.lines_of(text) if line and line[0] != " "]


@tap.alone
def every_section_is_printed_and_nothing_on_standard_error():
    run = tap.ended(info(), 0)
    equal(headings(run.out), SECTIONS, run)
    equal(run.err, "", run)
    check(re.search(r"^  host +\S", run.out, re.M), run)
    check(re.search(r"^  clock_gettime +two reads cost \d", run.out, re.M), run)
    check(re.search(r"^  CPU \d+ +\d+ gaps? of more than 10 us in 200 ms", run.out, re.M), run)


@tap.test
def every_device_of_the_list_is_there():
    listed = tap.run(tap.tool_path("ucx_perftest"), "--list")
    devices = [line.split()[0] for line in tap.lines_of(listed.out)]
    run = tap.ended(info(), 0)
    shown = re.findall(r"^    (\S+)  ", run.out, re.M)
    check(devices, listed)
    equal([d for d in devices if d not in shown], [], run)


@tap.test
def verbose_shows_what_completion_proves():
    run = tap.ended(info("-v"), 0)
    equal(headings(run.out), SECTIONS, run)
    check(re.search(r"^ +done: the bytes are in the target's memory", run.out, re.M), run)
    check(re.search(r"^      same as soft:cxi0$", run.out, re.M), run)


@tap.test
def json_has_the_same_content():
    run = tap.ended(info("--json", "-", "-v"), 0)
    document = schema.read(run.out, "weft-info")
    equal(run.err, "", run)
    equal((document["schema"], document["version"]), ("weft-info", 3))
    equal(document["cpus"], os.cpu_count())
    equal(document["memory_bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    check(document["memlock_unlimited"] == (document["memlock_bytes"] is None), run)
    fabrics = {fabric["name"]: fabric for fabric in document["fabrics"]}
    first = fabrics["soft"]["devices"][0]
    equal((first["name"], first["usable"]), ("soft:cxi0", True))
    check({"write", "read", "send", "atomic", "am"} <= set(first["ops"]), run)
    equal([one["kind"] for one in document["network"] if one["name"] == "lo"], ["loopback"])
    for finding in document["findings"]:
        equal(sorted(finding), ["check", "fix", "severity", "what", "why"])
    path = os.path.join(tap.folder(), "info.json")
    equal(tap.ended(info("--json", path), 0).out, "")
    with open(path, encoding="utf-8") as file:
        equal(json.load(file)["host"], document["host"])


@tap.test
def json_has_cxi_devices_and_what_cannot_be_read_of_them():
    tree = Tree("class/cxi/cxi0/device/properties")
    tree.put(link=1, speed=200000)
    telemetry = tree.where.parent / "telemetry"
    telemetry.mkdir()
    (telemetry / "pct_spt_timeouts").write_text("3@1.5\n", encoding="utf-8")
    services = tree.root / "kernel/debug/cxi/cxi0"
    services.mkdir(parents=True)
    (services / "services").write_text("ID: 1\n  Name:default\n  State:Disabled\n", encoding="utf-8")
    run = tap.ended(tap.run(*tree.prefix(), WEFT, "info", "--json", "-"), 0)
    device, = schema.read(run.out, "weft-info")["cxi"]
    equal([missing["what"] for missing in device.pop("missing")],
          ["nic_address", "cassini", "numa_node", "firmware"])
    equal(device, {"name": "cxi0", "link": "up", "speed_mbits": 200000, "counters": {"pct_spt_timeouts": 3},
                   "services": [{"id": 1, "name": "default", "enabled": False}]})


def usage(words, *args):
    run = tap.ended(info(*args), 2)
    equal(run.out, "")
    check(words in tap.one_sentence(run, "weft info"), run)


tap.add("an unknown option is refused", usage, "--colour", "--colour")
tap.add("an unexpected argument is refused", usage, "everything", "everything")


@tap.test
def what_cannot_be_written_is_a_failure():
    for args, stream in ((), "the results"), (("--json", "-"), "JSON"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = tap.ended(info(*args, stdout=full), 1, None, stream)
            tap.one_sentence(run, "weft info")
    usage_run = tap.ended(info("--json", "/nosuch/file"), 1)
    equal(usage_run.out, "")


@tap.test
def help_is_printed():
    run = tap.ended(info("--help"), 0)
    check("--verbose" in run.out and "--json" in run.out, run)
    check(re.search(r"^  info +\S", tap.run(WEFT, "--help").out, re.M))


# ---- libraries that hang ----

def with_hanging(where):
    """The module of the tests in the place of UCX's."""
    path = tap.module_in_place_of("uct", "hangs") + ":" + os.environ.get("WEFT_MODULE_PATH", "")
    run = tap.ended(info(env={"WEFT_MODULE_PATH": path, "WEFT_TEST_HANGS": where}), 0)
    equal(headings(run.out), SECTIONS, run)
    equal(run.err, "", run)
    check(re.search(r"^    soft:cxi0 ", run.out, re.M), run)
    return re.search(r"^  uct .*\n(?:    .*\n)*", run.out, re.M)[0]


def hangs(where, wanted):
    text = with_hanging(where)
    check(f"    no answer within 10 s, while {wanted}\n" in text, text)


tap.add("a library that hangs when it is loaded is killed", hangs, "load", "loading it")
tap.add("a library that hangs when it lists its devices is killed", hangs, "list", "listing its devices")
tap.add("a device that hangs when it is opened is killed", hangs, "open", "opening uct:good")


@tap.test
def the_output_of_a_library_that_crashes_is_shown():
    text = with_hanging("die")
    check("it crashed (Aborted), while listing its devices\n" in text, text)
    check("its output: the vendor's ?[31mlast words\n" in text, text)


@tap.test
def a_library_that_works_is_named_with_its_version():
    text = with_hanging("nowhere")
    check(text.startswith("  uct (module, Library 9): a fabric that hangs\n"), text)
    check("    uct:good               a device\n" in text, text)


@tap.test
def a_fabric_that_is_not_installed_is_reported():
    folder = tap.folder()
    alone = os.path.join(folder, "bin", "weft")
    os.mkdir(os.path.dirname(alone))
    shutil.copy(WEFT, alone)
    run = tap.ended(tap.run(alone, "info", env={"WEFT_MODULE_PATH": folder}), 0)
    text = re.search(r"^  uct \(module.*\): (.*)$", run.out, re.M)[1]
    # An installed module may be found all the same.
    check("not installed" in text or "transports" in text, run)


tap.main(workers=4)
