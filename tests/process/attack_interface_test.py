# SPDX-License-Identifier: BSD-3-Clause
"""Clients that would have a server listen on another network, or connect to somebody else. All of it
runs in a network namespace of its own, with two interfaces besides lo."""
import ctypes
import os
import re
import shutil
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, equal, header_value, skip, test
from wire import Between, by_body, value, with_value

WRITE, PERF = map(tap.tool_path, ("cxi_write_lat", "ucx_perftest"))
QUICK = ("-n", "20", "--latency-gap", "0", "--warmup", "0")
PERF_QUICK = ("-t", "put_lat", "-n", "20", "-w", "0")
LOOPBACK, HERE, OTHER = "127.0.0.1", "10.97.1.1", "10.97.2.1"
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
_missing = []


def move_there():
    """This process, and with it all that it starts, moves into a network of its own."""
    if os.geteuid() or not shutil.which("ip"):
        return "network namespaces need root and iproute2"
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | CLONE_NEWNS):
        return "this machine makes no network namespaces"
    # UCX looks for its interfaces in /sys.
    for words in ("mount --make-rslave /", "mount -t sysfs sysfs /sys", "ip link set lo up",
                  "ip link add weft0 type veth peer name weft1",
                  f"ip addr add {HERE}/24 dev weft0", f"ip addr add {OTHER}/24 dev weft1",
                  "ip link set weft0 up", "ip link set weft1 up"):
        done = subprocess.run(words.split(), capture_output=True, text=True, timeout=20, check=False)
        if done.returncode:
            return f"{words}: {done.stderr.strip()}"
    return None


def need(name):
    if _missing:
        skip(_missing[0])
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", f"weft-{name}.so")):
        skip(f"weft-{name}.so is not built")


def addresses_of(process):
    """Where it listens: IPv4 addresses."""
    inodes = set()
    for fd in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process.pid}/fd/{fd}")))
        except OSError:
            pass
    with open(f"/proc/{process.pid}/net/tcp", encoding="utf-8") as file:
        rows = [line.split() for line in file.read().splitlines()[1:]]
    words = [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]
    return {socket.inet_ntoa(bytes.fromhex(word)[::-1]) for word in words}


# ---- interfaces ----

def other_interface(tool, quick, *args):
    """Refused by the server, which goes on and listens where it did."""
    need("uct" if "tcp" in args else "ofi")
    server = Server(tool, "--bind", LOOPBACK, "--loop", *(("-x", "tcp") if "tcp" in args else ()))
    client = Client(tool, server, *quick, *args)
    client.wait(20)
    check(client.code == 1, client, server)
    check("weft0" in client.err and "on lo (127.0.0.1)" in client.err, client)
    server.wait_for(r"leave the interface to the server, or start it with -[dx] .*weft0", 5, "err")
    equal(addresses_of(server), {LOOPBACK}, server)


tap.add("a client's interface is not listened on by cxi_write_lat", other_interface, WRITE, QUICK,
        "-d", "ofi:tcp/weft0")
tap.add("a client's interface is not listened on by ucx_perftest", other_interface, PERF,
        PERF_QUICK, "-x", "ofi:tcp", "-d", "weft0")


@test
def the_interface_that_the_client_came_by_may_be_named():
    need("ofi")
    server = Server(WRITE)
    client = Client(WRITE, server, *QUICK, "-d", "ofi:tcp/weft0", address=HERE)
    ended(client, 0, None, server)
    check("weft0" in header_value(client, "Fabric"), client)


def fabric_follows(module, *device):
    """The fabric listens where the control connection does, and nowhere else."""
    need(module)
    server = Server(WRITE, "--bind", HERE, *device)
    client = Client(WRITE, server, "-D", "30", *device, address=HERE)
    server.wait_for("Fabric")
    equal(addresses_of(server), {HERE}, server)
    client.kill()
    server.wait(15)


tap.add("ofi:tcp follows --bind", fabric_follows, "ofi", "-d", "ofi:tcp")
tap.add("uct:tcp follows --bind", fabric_follows, "uct", "-d", "uct:tcp")


@test
def the_servers_own_device_decides_and_its_client_must_come_from_there():
    need("ofi")
    device = ("-d", "ofi:tcp/weft0")
    server = Server(WRITE, *device, "--loop")
    ended(Client(WRITE, server, *QUICK, *device, address=HERE), 0, None, server)
    client = Client(WRITE, server, *QUICK, *device)
    ended(client, 1, 20)
    check(f"another address ({HERE}) than it comes from ({LOOPBACK})" in client.err, client)


@test
def a_client_with_the_secret_may_have_another_address():
    need("ofi")
    path = os.path.join(tap.folder(), "secret")
    ended(tap.run(tap.tool_path("weft"), "keygen", path), 0)
    device, secret = ("-d", "ofi:tcp/weft0"), ("--secret-file", path)
    server = Server(WRITE, *device, *secret)
    ended(Client(WRITE, server, *QUICK, *device, *secret), 0, None, server)


@test
def loopback_has_two_families_and_is_one():
    need("ofi")
    if not tap.has_ipv6():
        skip("no IPv6 here")
    for device in (("-d", "ofi:tcp"), ("-d", "ofi:tcp/lo")):
        ended(tap.run(WRITE, "--local", *QUICK, "--bind", "::1", *device), 0)
        server = Server(WRITE, "--bind", "::1", *device)
        ended(Client(WRITE, server, *QUICK, *device, address="::1"), 0, None, server)


# ---- addresses ----

def third_address(module, field, change, *device):
    """The server says so and connects to nobody."""
    need(module)
    server = Server(WRITE, "--loop", *device)
    with socket.create_server((OTHER, 0)) as bystander:
        bystander.settimeout(1)
        port = bystander.getsockname()[1]

        def point_there(_, body, from_client):
            was = value(body, field) if from_client else None
            return with_value(body, field, change(was, port)) if was else body

        with Between(server, by_body(point_there)) as way:
            client = Client(WRITE, way, *QUICK, *device, "--timeout", "5")
            client.wait(20)
        check(client.code in (1, 4), client, server)
        server.wait_for(rf"another address \({OTHER}\) than it comes from \({LOOPBACK}\)", 5, "err")
        check(f"another address ({OTHER})" in client.err, client)
        try:
            bystander.accept()
        except TimeoutError:
            return
    check(False, "the server connected to a bystander", server)


def ofi_name(text, port):
    """The address in a sockaddr_in: family, port, address."""
    return text[:4] + f"{port:04x}" + socket.inet_aton(OTHER).hex() + text[16:]


def uct_device(text, _):
    """The address of UCX's tcp on lo has a mark instead of an IP address."""
    flags_and_family = "00" + text[2:4]
    return (flags_and_family + socket.inet_aton(OTHER).hex()).ljust(len(text), "0")


tap.add("a server on ofi:tcp connects to no third address", third_address, "ofi", "name", ofi_name,
        "-d", "ofi:tcp")
tap.add("a server on uct:tcp connects to no third address", third_address, "uct", "device",
        uct_device, "-d", "uct:tcp")


if __name__ == "__main__":
    _reason = move_there()
    if _reason:
        _missing.append(_reason)
    tap.main()
