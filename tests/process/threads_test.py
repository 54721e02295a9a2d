# SPDX-License-Identifier: BSD-3-Clause
"""Both ends in one process, on every fabric: runs between two threads end well one after the other,
and an end that goes on after the other has left does not crash."""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, ended, equal, run, skip

PROGRAMS = os.path.join(tap.build_folder(), "tests", "process")
TIMES = 3
RUNS = (("write", "latency", "8"), ("read", "latency", "1048576"), ("send", "latency", "1048576"),
        ("write", "stream", "65536"), ("read", "stream", "8"))
FABRICS = ("soft", "ofi:tcp", "ofi:shm", "uct:posix/memory", "uct:sysv/memory", "uct:cma/memory",
           "uct:tcp/lo")


def in_one_process(program, device, *args):
    module = device.partition(":")[0]
    if ":" in device and not os.path.exists(os.path.join(tap.build_folder(), "modules",
                                                         f"weft-{module}.so")):
        skip(f"weft-{module}.so is not built")
    return ended(run(os.path.join(PROGRAMS, program), device, *args, limit=60), 0)


def runs_well(device):
    done = 0
    for words in RUNS:
        process = in_one_process("threads_pair", device, *words, str(TIMES))
        if re.search(r" cannot (read|send)$", process.err, re.M):
            continue
        equal((process.out, process.err), (f"{TIMES}\n", ""), process)
        done += 1
    check(done >= 3, "few runs were possible")


def goes_on(device):
    equal(in_one_process("one_process", device).out, "left\n")


for _device in FABRICS:
    tap.add(f"{_device}: two threads of one process measure", runs_well, _device)
    tap.add(f"{_device}: an end goes on after the other end in its process has left", goes_on,
            _device)

if __name__ == "__main__":
    tap.main(workers=2)
