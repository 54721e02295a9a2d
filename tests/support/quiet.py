# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need a quiet machine have it to themselves; all others run side by side. The lock is
the file WEFT_TEST_LOCK; without it nothing waits."""
import contextlib
import fcntl
import os


@contextlib.contextmanager
def machine(alone):
    path = os.environ.get("WEFT_TEST_LOCK")
    if not path:
        yield
        return
    # A test that waits to be alone holds the turn, so that no other begins meanwhile.
    with open(path + ".turn", "w", encoding="utf-8") as turn, \
            open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(turn, fcntl.LOCK_UN)
        yield
