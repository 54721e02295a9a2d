#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""completion_test.py BUILD SOURCE: what shells complete, as the build has made it of the option rows."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tap
from lists import entries
from tap import check, equal, skip, test

BUILD, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
MADE = BUILD / "share"
TOOLS = [name for _, name, _ in entries(SOURCE / "src/tool/tools.def") if (BUILD / "tools" / name).exists()]
BASH = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
"_weft_complete_$3"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def need(program):
    if not (MADE / "cxi_write_lat").exists():
        skip("this build has no completion")
    if not shutil.which(program):
        skip(f"{program} is not installed")


def run(*words):
    path = f"{BUILD / 'tools'}:{os.environ['PATH']}"
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": path})
    equal(done.returncode, 0, done.stdout, done.stderr)
    return done.stdout


def bash(line):
    """What bash offers after this; it splits words at = and : too."""
    need("bash")
    words = [word for word in re.split(r"\s+|([=:])", line) if word]
    if line.endswith(" "):
        words.append("")
    return run("bash", "-c", BASH, "bash", MADE / words[0], line, *words).split()


@test
def bash_completes_options_and_choices():
    equal(bash("cxi_write_lat --dev"), ["--device="])
    equal(bash("cxi_write_lat --gpu-type="), ["AMD", "NVIDIA", "INTEL"])
    check({"put_lat", "put_bw"} <= set(bash("ucx_perftest -t put")))
    equal(bash("cxi_write_lat --iters="), [])


@test
def bash_completes_devices_as_list_has_them():
    equal(bash("cxi_send_bw -d soft:cxi1"), ["cxi1"])
    equal(bash("cxi_send_bw --device=soft:cxi1"), ["cxi1"])
    check("soft:cxi0" in bash("ucx_perftest -d "), bash("ucx_perftest -d "))


@test
def bash_completes_the_commands_of_weft_and_their_options():
    tap.need_weft([BUILD / "tools/weft"])
    equal(bash("weft comp"), ["compare"])
    check("--min-effect=" in bash("weft compare --"))
    check("--min-effect=" not in bash("weft info --"))
    check("--version" in bash("weft --"))


def offers_every_option(tool):
    need("cat")
    shown = run(BUILD / "tools" / tool, "--help")
    names = set(re.findall(r"^ +(?:-\w, )?--([a-z][\w-]*)", shown, re.M))
    for path in MADE / tool, MADE / f"_{tool}", MADE / f"{tool}.fish":
        text = path.read_text(encoding="utf-8")
        equal([name for name in names if not re.search(rf"(--|-l ){name}\b", text)], [], path)


for _name in TOOLS:
    tap.add(f"completion has every option of {_name} --help", offers_every_option, _name)


@test
def fish_reads_its_files_and_completes():
    need("fish")
    for tool in TOOLS:
        run("fish", "-n", MADE / f"{tool}.fish")
    said = run("fish", "--no-config", "-c", f"source {MADE}/cxi_write_lat.fish; complete -C 'cxi_write_lat -d soft:cxi1'")
    equal(said.split()[0], "soft:cxi1")


@test
def zsh_reads_its_files():
    need("zsh")
    for tool in TOOLS:
        run("zsh", "-n", MADE / f"_{tool}")


if __name__ == "__main__":
    tap.main()
