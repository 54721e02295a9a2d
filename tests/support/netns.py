# SPDX-License-Identifier: BSD-3-Clause
"""Hosts as network namespaces: made by the test that needs them, and taken away at its end."""
import functools
import os
import shutil
import subprocess
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
