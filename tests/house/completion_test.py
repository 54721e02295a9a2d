#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""completion_test.py BUILD SOURCE: what shells complete, as the build has made it of the option rows."""
import json
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
OPTIONS = {row["name"]: row["value"] for row in
           json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8"))}
BASH = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
"_weft_complete_$3"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def called(tool):
    """As it is installed: packages have another package's names aside (tools/meson.build)."""
    return ("weft_" if tool in OPTIONS["aside"] else "") + tool


PERFTEST = called("ucx_perftest")


def path_of_tools():
    """With the tools of the build by the names that they are installed with."""
    place = pathlib.Path(tap.folder())
    for tool in TOOLS:
        (place / called(tool)).symlink_to((BUILD / "tools" / tool).resolve())
    return f"{place}:{os.environ['PATH']}"


def need(program):
    if not (MADE / "cxi_write_lat").exists():
        skip("this build has no completion")
    if not shutil.which(program):
        skip(f"{program} is not installed")


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": path_of_tools()})
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
    check({"put_lat", "put_bw"} <= set(bash(f"{PERFTEST} -t put")))
    equal(bash("cxi_write_lat --iters="), [])


@test
def bash_completes_devices_as_list_has_them():
    equal(bash("cxi_send_bw -d soft:cxi1"), ["cxi1"])
    equal(bash("cxi_send_bw --device=soft:cxi1"), ["cxi1"])
    check("soft:cxi0" in bash(f"{PERFTEST} -d "), bash(f"{PERFTEST} -d "))


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
    name = called(tool)
    for path in MADE / name, MADE / f"_{name}", MADE / f"{name}.fish":
        text = path.read_text(encoding="utf-8")
        equal([option for option in names if not re.search(rf"(--|-l ){option}\b", text)], [], path)


for _name in TOOLS:
    tap.add(f"completion has every option of {_name} --help", offers_every_option, _name)


def said_of(tool):
    """What fish and zsh say about each option, without their quoting."""
    said = re.findall(r" -l ([a-z][\w-]*).* -d '((?:[^']|'\\'')*)'$", (MADE / f"{tool}.fish").read_text("utf-8"), re.M)
    more = re.findall(r"--([a-z][\w-]*)=?\}?'?\[((?:[^\]\\]|\\.)*)\]", (MADE / f"_{tool}").read_text("utf-8"))
    check(said and more, tool)
    return [(name, re.sub(r"\\([\[\]:])", r"\1", words.replace("'\\''", "'"))) for name, words in said + more]


def says_whole_sentences(tool):
    """A sentence of help may go on in the next line: no word at which only a line ends, nothing left open."""
    need("cat")
    for name, words in said_of(tool):
        check(not re.search(r"([,:;(]|\b(a|an|the|of|to|and|or|as|with|this|where|each|instead of))$", words), tool,
              name, words)
        equal(words.count("("), words.count(")"), tool, name, words)


for _name in TOOLS:
    tap.add(f"completion says whole sentences about the options of {_name}", says_whole_sentences, _name)


@test
def completion_says_what_help_says():
    need("cat")
    said = set(said_of("cxi_write_lat"))
    for one in (("timeout", "Fail after this long without progress or sign of life (default: 10)."),
                ("size", "Write size or range to use (default: 8)"),
                ("allow", "Server: take clients from these networks only, such as 10.0.0.0/8,fe80::/10")):
        check(one in said, one, sorted(said))


def fish(line):
    """The words that fish offers after this, without what it says about them."""
    need("fish")
    tool = line.split()[0]
    said = run("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", MADE / f"{tool}.fish", line)
    return [offer.partition("\t")[0] for offer in said.splitlines()]


@test
def fish_reads_its_files():
    need("fish")
    for tool in TOOLS:
        run("fish", "-n", MADE / f"{called(tool)}.fish")


@test
def fish_completes_options_choices_and_devices():
    equal(fish("cxi_write_lat --dev"), ["--device"])
    equal(fish("cxi_write_lat -g N"), ["NVIDIA"])
    equal(fish("cxi_write_lat -d soft:cxi1"), ["soft:cxi1"])
    check({"put_lat", "put_bw"} <= set(fish(f"{PERFTEST} -t put")))


@test
def fish_completes_the_commands_of_weft_and_their_options():
    tap.need_weft([BUILD / "tools/weft"])
    equal(fish("weft comp"), ["compare"])
    equal(fish("weft compare --min"), ["--min-effect"])
    equal(fish("weft info --min"), [])


ZSH = """
fpath=($MADE $fpath)
autoload -U compinit && compinit -u -D
zle-line-init() { zle complete-word; print -r -- $BUFFER >$ZDOTDIR/line; exit }
zle -N zle-line-init
print -z -- $TYPED
"""


def zsh(line):
    """The line after a tab at its end. zsh completes in its line editor alone, which wants a terminal."""
    need("zsh")
    folder = pathlib.Path(tap.folder())
    (folder / ".zshrc").write_text(ZSH, encoding="utf-8")
    ours, its = os.openpty()
    try:
        done = subprocess.run(["zsh", "-d", "-i"], stdin=its, stdout=its, stderr=its, timeout=60, check=False,
                              start_new_session=True,
                              env={**os.environ, "PATH": path_of_tools(), "TERM": "dumb",
                                   "ZDOTDIR": str(folder), "MADE": str(MADE), "TYPED": line})
    finally:
        os.close(its)
        os.close(ours)
    check((folder / "line").exists(), f"zsh ended with {done.returncode} before it completed {line!r}")
    return (folder / "line").read_text(encoding="utf-8").rstrip("\n")


@test
def zsh_reads_its_files():
    need("zsh")
    for tool in TOOLS:
        run("zsh", "-n", MADE / f"_{called(tool)}")


@test
def zsh_completes_options_choices_and_devices():
    equal(zsh("cxi_write_lat --dev"), "cxi_write_lat --device=")
    equal(zsh("cxi_write_lat --gpu-type=NV"), "cxi_write_lat --gpu-type=NVIDIA ")
    equal(zsh("cxi_send_bw -d nul"), "cxi_send_bw -d null ")
    equal(zsh(f"{PERFTEST} -t put_l"), f"{PERFTEST} -t put_lat ")


@test
def zsh_completes_the_commands_of_weft_and_their_options():
    tap.need_weft([BUILD / "tools/weft"])
    equal(zsh("weft comp"), "weft compare ")
    equal(zsh("weft compare --min"), "weft compare --min-effect=")
    equal(zsh("weft info --min"), "weft info --min")


if __name__ == "__main__":
    tap.main()
