# SPDX-License-Identifier: BSD-3-Clause
"""What a process that was killed leaves behind, the next start removes; what a living one uses, and what
another user or program has, stays."""
import mmap
import os
import signal
import sys

sys.dont_write_bytecode = True
import tap
from tap import Process, Server, check, ended, equal, skip, test

WRITE, WEFT = tap.tool_path("cxi_write_lat"), tap.tool_path("weft")
QUICK = ("--local", "-d", "null", "-n", "10", "--latency-gap", "0")
SHM = "/dev/shm"


# ---- weft repeat ----

def repeat(place, *tool):
    return Process([WEFT, "repeat", "3", "--", *tool], env={"TMPDIR": place}, limit=60)


def begun(process, place, count):
    process.wait_until(lambda: len(os.listdir(place)) == count, 20)
    equal(len(os.listdir(place)), count, process)


@test
def repeat_removes_the_folders_of_runs_that_were_killed_and_no_others():
    place = tap.folder()
    long_run = (WRITE, "--local", "-d", "null", "-D", "60")
    killed = repeat(place, *long_run, "--", *long_run)
    begun(killed, place, 1)
    dead = os.listdir(place)
    killed.wait_until(lambda: os.path.isdir(os.path.join(place, dead[0], "a")), 20)
    living = repeat(place, *long_run)
    begun(living, place, 2)
    alive = [name for name in os.listdir(place) if name not in dead]
    killed.kill(signal.SIGKILL)
    killed.wait()
    others = ["weft-repeat-1-abc", "weft-repeat-me", "weft-repeat-12-abcdefg", "other"]
    for name in others:
        os.mkdir(os.path.join(place, name))
    if not os.geteuid():
        others.append("weft-repeat-12-abcdef")
        os.mkdir(os.path.join(place, others[-1]))
        os.chown(os.path.join(place, others[-1]), 65534, 65534)
    check(os.path.isdir(os.path.join(place, dead[0], "a")), dead)
    ended(repeat(place, WRITE, *QUICK), 0)
    equal(sorted(os.listdir(place)), sorted(others + alive))
    living.kill(signal.SIGTERM)
    ended(living, 143)
    equal(sorted(os.listdir(place)), sorted(others))


# ---- shared memory ----

def usable(device):
    process = tap.run(WRITE, "--local", "-d", device, "-n", "1")
    if process.code:
        skip(f"no {device} here: {process.err.strip()}")


def segment(name):
    path = os.path.join(SHM, name)
    with open(path, "xb") as file:
        file.truncate(4096)
    tap.at_exit(lambda: os.path.exists(path) and os.unlink(path))
    return path


def number():
    """Not that of any process, and another one in every run of this test."""
    return f"{4194304 + os.getpid()}"


@test
def segments_that_nobody_has_are_removed_when_a_module_is_opened():
    usable("ofi:tcp")
    digits = number()
    gone = [segment(f"ucx_shm_posix_{digits}"), segment(f"{digits}:0:0")]
    stay = [segment(name) for name in (f"ucx_shm_other_{digits}", f"ucx_shm_posix_{digits}x", f"{digits}:0",
                                       f"{digits}:0:0:0", f"weft-{digits}")]
    in_use = segment(f"ucx_shm_posix_{digits}a")
    with open(in_use, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    if not os.geteuid():
        stay.append(segment(f"{digits}:1:1"))
        os.chown(stay[-1], 65534, 65534)
    os.symlink(in_use, os.path.join(SHM, f"{digits}:2:2"))
    tap.at_exit(lambda: os.unlink(os.path.join(SHM, f"{digits}:2:2")))
    ended(Process([WRITE, "--local", "-d", "ofi:tcp", "-n", "1"]), 0)
    left = [path for path in gone + stay + [in_use] if os.path.exists(path)]
    equal(left, stay + [in_use])
    mapped.close()


@test
def what_a_killed_server_on_shared_memory_left_is_removed_by_the_next():
    usable("ofi:shm")
    server = Server(WRITE, "-d", "ofi:shm")
    mine = [name for name in os.listdir(SHM) if name.startswith(f"{server.pid}:")]
    check(mine, "libfabric has no segment of this server", os.listdir(SHM))
    ended(Process([WRITE, "--local", "-d", "ofi:shm", "-n", "1"]), 0)
    check(set(mine) <= set(os.listdir(SHM)), "the segment of a living server was removed")
    server.kill(signal.SIGKILL)
    server.wait()
    ended(Process([WRITE, "--local", "-d", "ofi:shm", "-n", "1"]), 0)
    check(not set(mine) & set(os.listdir(SHM)), mine, os.listdir(SHM))


if __name__ == "__main__":
    tap.main()
