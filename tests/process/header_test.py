# SPDX-License-Identifier: BSD-3-Clause
"""What the header and standard error say of a run is what the run does: requests that hold or not,
services, the device that counts, who a process is on the fabric, options without effect."""
import sys

sys.dont_write_bytecode = True
import os
import re

import tap
from tap import (Client, Process, Server, alone, check, ended, equal, header_value, pair, run,
                 sentences, skip, test)

QUICK = ("-n", "20", "--latency-gap", "0")


def tool(word):
    return tap.tool_path(f"cxi_{word}_lat")


def local(word, *args):
    return ended(run(tool(word), "--local", *QUICK, *args), 0)


def on(device, word, *args):
    """A local run, or a skip where the fabric is not built."""
    name = device.partition(":")[0]
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", f"weft-{name}.so")):
        skip(f"the module for {name} was not built")
    return local(word, "-d", device, *args)


# ---- requests to the NIC ----

@test
def low_latency_issue_ends_where_commands_are_queued():
    if tap.available_bytes() < 1 << 30:
        skip("less than 1 GiB of memory available")
    for size, value in (("67108864", "Enabled"), ("67108865", "Disabled (over 67108864 bytes)")):
        process = local("read", "-s", size, "-n", "1", "--warmup", "0")
        equal(header_value(process, "LL Cmd Launch"), value, process)


@test
def matching_that_there_is_not_changes_nothing_else():
    process = on("ofi:tcp", "atomic", "--matching")
    check(header_value(process, "Matching LEs").startswith("n/a ("), process)
    check(header_value(process, "IDC").startswith("n/a ("), process)
    equal(header_value(process, "Restricted"), "Enabled", process)
    process = local("atomic", "--matching")
    for label, value in (("Matching LEs", "Enabled"), ("IDC", "Disabled - Not Applicable"),
                         ("Restricted", "Disabled - Not Applicable")):
        equal(header_value(process, label), value, process)


@test
def a_service_is_shown_where_there_are_services():
    equal(header_value(local("write"), "Service ID"), "1")
    equal(header_value(local("write", "-d", "null"), "Service ID"), "n/a (null has no services)")
    for device in ("uct:tcp", "ofi:tcp"):
        process = on(device, "write")
        check(re.fullmatch(r"n/a \(.* services\)", header_value(process, "Service ID")), process)


@test
def verifying_has_a_line_of_its_own():
    process = local("write", "--verify")
    check("\nHugepages        : Disabled\nVerify           : Every iteration, not timed\nClock "
          in process.out, process)
    check("\nVerify" not in local("write").out)


# ---- who and where ----

@test
def the_server_shows_the_delay_that_is_measured():
    for own in ("null:delay=5ms", "null"):
        server, client = pair(tool("write"), "-d", "null:delay=3us", *QUICK,
                              server_args=("-d", own))
        for end in (server, client):
            equal(header_value(end, "Device"), "null:delay=3us", end)
            check("delay 3 us" in header_value(end, "Fabric"), end)
        check(f"--device {own} is the client's to say: null:delay=3us" in server.err, server)


@test
def on_one_nic_the_server_is_pid_0_and_the_client_pid_1():
    traces = tap.Traces()
    for word in ("write", "read", "send", "atomic"):
        server, client = pair(tool(word), *QUICK, env=traces.env)
        for end, mine, other in ((server, "server", "client"), (client, "client", "server")):
            pids = {"server": 0, "client": 1}
            name = header_value(end, f"Local ({mine})")
            check(re.fullmatch(rf"NIC 0x\w+ PID {pids[mine]} VNI {traces.vni}", name), end)
            check(header_value(end, f"Remote ({other})").endswith(f" PID {pids[other]}"), end)


@test
def a_refusal_names_no_device_that_the_run_would_not_use():
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", "weft-uct.so")):
        skip("the module for UCX was not built")
    for args in (("--local",), ("--port", "0")):
        process = ended(run(tool("atomic"), "-d", "uct:tcp", *args), 1)
        equal(sentences(process), ["cxi_atomic_lat: uct:tcp cannot do atomics"], process)


@alone
def an_end_that_sleeps_is_not_said_to_share_a_cpu():
    """Something else takes the client's CPU; the server of a write waits in its sleep."""
    server = Server(tool("write"))
    hogs = [Process([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    client = ended(Client(tool("write"), server, "-n", "60", "-s", "8M", "--latency-gap", "0"), 0)
    for hog in hogs:
        hog.kill()
    if tap.preempted(client) < 10:
        skip("the client was not taken off its CPU")
    check("one CPU" not in client.err, client)


# ---- options without effect ----

@test
def options_of_the_other_role_are_said_to_have_no_effect():
    for name, args in ((tool("write"), QUICK),
                       (tap.tool_path("ucx_perftest"), ("-t", "put_lat", "-x", "soft", "-n", "20"))):
        server, client = pair(name, "--bind", "127.0.0.9", *args, server_args=("--wait", "9"))
        word = os.path.basename(name)
        check(f"{word}: --bind is for a server: it has no effect here" in sentences(client), client)
        check(f"{word}: --wait is for a client: it has no effect here" in sentences(server), server)
        server, client = pair(name, "--wait", "9", *args, server_args=("--bind", "127.0.0.1"))
        check("no effect" not in client.err + server.err, client, server)


if __name__ == "__main__":
    tap.main()
