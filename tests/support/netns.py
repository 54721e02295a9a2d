# SPDX-License-Identifier: BSD-3-Clause
"""Hosts as network namespaces: made by the test that needs them, and taken away at its end."""
import ctypes
import fcntl
import functools
import heapq
import os
import select
import shutil
import struct
import subprocess
import threading
import time

import tap


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20)
    tap.check(done.returncode == 0, " ".join(words), done.stderr)


def _quietly(*words):
    return subprocess.run(["ip", "netns", *words], capture_output=True, check=False,
                          timeout=20).returncode == 0


@functools.cache
def _work():
    """Looked at once; what was made for it is gone again."""
    probe = f"weft-p{os.getpid()}"
    made = _quietly("add", probe)
    try:
        return made and _quietly("exec", probe, "true")
    finally:
        if made:
            _quietly("del", probe)


def need():
    if os.geteuid() != 0 or not shutil.which("ip"):
        tap.skip("network namespaces need root and iproute2")
    if not _work():
        tap.skip("this machine, or chroot, makes no network namespaces in which something can be run")


def inside(name):
    return ("ip", "netns", "exec", name)


def remove(*names):
    for name in names:
        _quietly("del", name)
        shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)


class Link:
    """Two namespaces joined by a cable: 10.99.0.1 and fd99::1 at wefta, ...2 at weftb."""

    def __init__(self, here, there):
        need()
        self.here, self.there = here, there
        tap.at_exit(lambda: remove(here, there))
        ip("netns", "add", here)
        ip("netns", "add", there)
        ip("link", "add", "wefta", "netns", here, "type", "veth", "peer", "name", "weftb", "netns",
           there)
        for name, device, number in ((here, "wefta", 1), (there, "weftb", 2)):
            ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", device)
            ip("-n", name, "addr", "add", f"fd99::{number}/64", "dev", device, "nodad")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", device, "up")
        self._wait()

    def _wait(self):
        """Until both ends have a carrier: UCX lists no device without one."""
        until = time.monotonic() + 5
        for name, device in ((self.here, "wefta"), (self.there, "weftb")):
            words = ["ip", "-n", name, "-o", "link", "show", "dev", device]
            while "state UP" not in subprocess.run(words, capture_output=True, text=True,
                                                   check=False, timeout=20).stdout:
                tap.check(time.monotonic() < until, f"{device} does not come up")
                time.sleep(0.02)

    def cut(self, at_there=False):
        name, device, _ = self._end(at_there)
        ip("-n", name, "link", "set", device, "down")

    def mend(self, at_there=False):
        """A link that goes down loses its IPv6 address."""
        name, device, number = self._end(at_there)
        ip("-n", name, "link", "set", device, "up")
        ip("-n", name, "addr", "replace", f"fd99::{number}/64", "dev", device, "nodad")
        self._wait()

    def _end(self, at_there):
        return (self.there, "weftb", 2) if at_there else (self.here, "wefta", 1)


# ---- a link with a known delay ----

CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454CA, 0x0001, 0x1000


def tun_in(name, device):
    """A TUN device that lives in that namespace: its descriptor."""
    made = []

    def enter():
        # Only this thread goes there.
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/var/run/netns/{name}", "rb") as place:
            if libc.setns(place.fileno(), CLONE_NEWNET):
                return
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH14x", device.encode(), IFF_TUN | IFF_NO_PI))
        made.append(fd)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if not made:
        tap.skip("no TUN device can be made here")
    return made[0]


class Forwarder(threading.Thread):
    """Joins two TUN devices: holds every packet for the delay, then hands it to the other side. Knows by
    how much it was late."""

    def __init__(self, one, two, delay_s):
        super().__init__(daemon=True)
        self.other, self.delay_s = {one: two, two: one}, delay_s
        self.held, self.count, self.over = [], 0, False
        self.late_s = []
        self.start()
        tap.at_exit(lambda: setattr(self, "over", True))

    def run(self):
        while not self.over:
            now = time.monotonic()
            while self.held and self.held[0][0] <= now:
                due, _, to, packet = heapq.heappop(self.held)
                self.late_s.append(now - due)
                try:
                    os.write(to, packet)
                except OSError:
                    pass
            wait = min(0.05, max(0, self.held[0][0] - now)) if self.held else 0.05
            for fd in select.select(list(self.other), [], [], wait)[0]:
                self.take(fd)

    def take(self, fd):
        try:
            packet = os.read(fd, 65536)
        except OSError:
            return
        self.count += 1
        heapq.heappush(self.held, (time.monotonic() + self.delay_s, self.count, self.other[fd],
                                   packet))


class Star:
    """A host per name, each on a cable of its own to a hub that routes: 10.97.1.1 and on. The cable of the
    last one is a forwarder with a delay."""

    def __init__(self, hub, names, delay_s):
        need()
        tap.at_exit(lambda: remove(hub, *names))
        ip("netns", "add", hub)
        for number, name in enumerate(names, 1):
            ip("netns", "add", name)
            port, at_hub, at_host = f"port{number}", f"10.97.{number}.254", f"10.97.{number}.1"
            if number < len(names):
                ip("link", "add", port, "netns", hub, "type", "veth", "peer", "name", "weftt", "netns", name)
            else:
                self.forwarder = Forwarder(tun_in(hub, port), tun_in(name, "weftt"), delay_s)
            ip("-n", hub, "addr", "add", at_hub, "peer", at_host, "dev", port)
            ip("-n", name, "addr", "add", at_host, "peer", at_hub, "dev", "weftt")
            ip("-n", hub, "link", "set", port, "up")
            for device in ("lo", "weftt"):
                ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "route", "add", "default", "via", at_hub)
        ip("netns", "exec", hub, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
