# SPDX-License-Identifier: BSD-3-Clause
"""A folder in the place of /sys, for processes that are started in a mount namespace."""
import functools
import pathlib
import subprocess

import tap


@functools.cache
def need_mounts():
    words = ["unshare", "-m", "mount", "--bind", "/tmp", "/sys"]
    try:
        made = subprocess.run(words, capture_output=True, check=False, timeout=20).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        tap.skip("a folder cannot be put in the place of /sys: that takes root, and unshare")


class Tree:
    """A folder in the place of /sys, with a folder in it that is filled by put()."""

    def __init__(self, where):
        need_mounts()
        self.root = pathlib.Path(tap.folder())
        self.where = self.root / where
        self.where.mkdir(parents=True)

    def put(self, **values):
        for name, value in values.items():
            new = self.where / f".{name}"
            new.write_text(f"{value}\n", encoding="utf-8")
            new.rename(self.where / name)

    def prefix(self):
        return ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /sys && exec "$@"', str(self.root))
