#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""manual_test.py BUILD SOURCE: a tool's page and its --help name the same options.
Every entry of SOURCE/src/tool/tools.def is a tool. In a page an option is an ".It Fl" of OPTIONS, and its
default is a line ".Pq default: VALUE" below it. Where --help shows a letter alone, the long name is
the one in the tool's rows. A tool with commands has a part ".Ss TOOL COMMAND" for each, or a page TOOL-COMMAND."""
import pathlib
import re
import shutil
import subprocess
import sys

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])
LONG = r"--([\w-]+)(?:=(\S+)|(\[=\S+\]))?"  # name, argument word, one that may be left out
checks = []  # (sentence, list of complaints, or a str: why it was skipped)


def long_names():
    """letter -> long name, of the rows whose help shows letters alone."""
    rows = (SOURCE / "src/tool/perftest_rows.c").read_text(encoding="utf-8")
    return dict(re.findall(r"\.letter = '(\w)', \.name = \"([\w-]+)\"", rows))


def letter_options(text):
    """The rows of a help text that have no long name: "   -s <size>   Message size. (8)"."""
    names, options = long_names(), {}
    for letter, word, words in re.findall(r"^ +-(\w) (?:<(\S+)>)? +(.*)$", text, re.M):
        default = re.search(r"\. \((\w+)\)$", words)
        options[names.get(letter, "without a name: -" + letter)] = (letter, word or None,
                                                                    default and default[1])
    return options


def help_text(tool, *command):
    program = BUILD / "tools" / tool
    if not program.exists():
        return ""
    return subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, text=True,
                          timeout=20, check=False).stdout


def commands_of(tool):
    part = re.search(r"^Commands.*:\n((?:  \w.*\n)+)", help_text(tool), re.M)
    return re.findall(r"^  (\w+) ", part[1], re.M) if part else []


def help_options(said):
    """name -> (letter, argument word, default), from --help."""
    options = letter_options(said)
    for text in re.split(r"^ +(?=(?:-\w, )?--[a-z])", said, flags=re.M)[1:]:
        letter, name, word, maybe = re.match(rf"(?:-(\w), )?{LONG}", text).groups()
        default = re.search(r'\(default: "?([^")]*)"?\)', text)
        options[name] = (letter, word or maybe, default and default[1])
    return options


def page_options(text, part):
    """The same from a section of a page."""
    section = re.search(rf"^\.{part}\n(.*?)(?=^\.S[hs] )", text, re.M | re.S)
    options = {}
    for item in re.split(r"^\.It (?=Fl)", section[1] if section else "", flags=re.M)[1:]:
        head, _, body = item.partition("\n")
        # What mdoc makes of the line: Fl is a dash, Oo and Oc are brackets, Ns joins.
        head = re.sub(r"\bFl ", "-", head)
        head = head.replace("Oo", "[").replace("Oc", "]")
        head = re.sub(r"\b(Ns|Ar|Cm)\b", "", head).replace(" ", "")
        found = re.fullmatch(rf"(?:-(\w),)?{LONG}", head)
        if not found:
            options["line that cannot be read: .It " + item.partition("\n")[0]] = (None,) * 3
            continue
        letter, name, word, maybe = found.groups()
        default = re.search(r"^\.Pq default: (.*?)(?: [.,;])?$", body, re.M)
        options[name] = (letter, word or maybe, default and default[1])
    return options


def compare(program, page, *command):
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    tool = " ".join([program, *command])
    said = help_options(help_text(program, *command))
    inside = command and page.stem == program
    written = page_options(text, f"Ss {tool}" if inside else "Sh OPTIONS")
    checks.append((f"{tool} --help names options", [] if said else ["none found"]))
    checks.append((f"every option of {tool} --help is in {page.name}",
                   [f"--{n} is missing" for n in said if n not in written]))
    checks.append((f"every option in {page.name} is in {tool} --help",
                   [f"--{n} is unknown" for n in written if n not in said]))
    for place, what in enumerate(["short letters", "argument words", "defaults"]):
        checks.append((f"{tool} --help and {page.name} agree on {what}",
                       [f"--{n}: --help has {said[n][place]}, the page {written[n][place]}"
                        for n in said if n in written and said[n][place] != written[n][place]]))


def sections(page):
    have = re.findall(r'^\.Sh "?(.*?)"?$', page.read_text(encoding="utf-8"), re.M)
    missing = [s for s in ("NAME", "SEE ALSO") if s not in have]
    if "SYNOPSIS" not in have and "DESCRIPTION" not in have:
        missing.append("SYNOPSIS or DESCRIPTION")
    checks.append((f"{page.name} has the sections every page has",
                   [f"{s} is missing" for s in missing]))


def lint(page):
    complaints = "mandoc is not installed"
    if shutil.which("mandoc"):
        run = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(page)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        complaints = run.stdout.splitlines() or ["mandoc failed"] if run.returncode else []
    checks.append((f"mandoc has no warning about {page.name}", complaints))


def example():
    """The page of the library shows examples/four_threads.c, from its first #include on."""
    there = (SOURCE / "examples/four_threads.c").read_text(encoding="utf-8")
    page = (SOURCE / "man/weft_run.3").read_text(encoding="utf-8")
    shown = [block.replace("\\e", "\\") for block in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", page, re.M | re.S)]
    checks.append(("weft_run(3) shows the example of four threads as it is",
                   [] if there[there.index("#include"):] in shown else ["they differ"]))


def abi():
    """weft-fabric(3) is of the port as it is."""
    header = (SOURCE / "src/fabric/fabric.h").read_text(encoding="utf-8")
    page = (SOURCE / "man/weft-fabric.3").read_text(encoding="utf-8")
    number, = re.findall(r"FABRIC_ABI = (\d+)", header)
    checks.append(("weft-fabric(3) has the ABI of the port",
                   [] if f"which is {number}; a module" in page else [f"it is {number}"]))


TOOLS = re.findall(r"^(?:CXI_|LOOPBACK_)?TOOL\((\w+),", (SOURCE / "src/tool/tools.def").read_text(encoding="utf-8"), re.M)
for tool in TOOLS:
    page = SOURCE / "man" / (tool + ".1")
    if tool == "weft" and not (BUILD / "tools" / tool).exists():
        checks.append(("weft --help and its page agree", "this build has no weft: it was made without jansson"))
        continue
    compare(tool, page)
    for command in commands_of(tool):
        own = SOURCE / "man" / f"{tool}-{command}.1"
        compare(tool, own if own.exists() else page, command)
for page in sorted((SOURCE / "man").glob("*.[1-9]")):
    sections(page)
    lint(page)
abi()
example()

print(f"1..{len(checks)}")
for number, (sentence, complaints) in enumerate(checks, 1):
    skipped = isinstance(complaints, str)
    print(("not ok" if complaints and not skipped else "ok"), number, "-", sentence,
          *(["# SKIP", complaints] if skipped else []))
    for complaint in [] if skipped else complaints:
        print("#", complaint)
sys.exit(any(c for _, c in checks if not isinstance(c, str)))
