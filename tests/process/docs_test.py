# SPDX-License-Identifier: BSD-3-Clause
"""Every command block of README.md, doc/ and the manuals is run, or marked with what it needs; and every line of
output that they show is printed, in this order, but for what depends on the machine (transcripts.varying).

Markdown: ```sh is run by bash, with the built tools in PATH, in a new folder. `exit: N` after it says which verdict
a reader gets, `needs: WHAT` means that it is not run. The ```text after it is its output, unless `from: WHERE` says
that it comes from elsewhere. Files of doc/ci are run likewise.
Manuals: the lines `$ COMMAND` of .Bd -literal, each with its output; a comment `.\\" needs: WHAT` before it means that
they are not run. A lone server gets a port of its own, which the clients after it are told. Counts are run as at
most 100, ranks of a map as 6, and repeat as 2, or as 5 where a comparison is shown."""
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, equal
from transcripts import not_printed, varying

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOLS = os.path.join(tap.build_folder(), "tools")
LANGUAGES = {"sh", "text", "c", "yaml", "bibtex"}
MOST = 100
NAMES = sorted(os.listdir(os.path.join(ROOT, "doc")))
PAGES = ["README.md"] + [f"doc/{name}" for name in NAMES if name.endswith(".md")]
MANUALS = [f"man/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "man")))
           if re.search(r"\.[137]$", name)]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def shortened(script, runs=2):
    """The same with counts that take no time."""
    def fewer(match):
        scale = {"": 1, "K": 1 << 10, "M": 1 << 20}[match[3]]
        return match[0] if int(match[2]) * scale <= MOST else match[1] + str(MOST)

    script = re.sub(r"(\s-n )(\d+)([KM]?)\b", fewer, script)
    script = re.sub(r"(map --local )\d+", r"\g<1>6", script)
    script = re.sub(r"(weft repeat )\d+", rf"\g<1>{runs}", script).replace("--duration 3", "--duration 1")
    return re.sub(r"^(ucx_perftest (?!.* -n ).*? )(?=-t )", rf"\1-n {MOST} ", script, flags=re.M)


def bash(script, where, folder, fails=False, runs=2):
    """With both outputs in one, as a terminal has them. 3 and 5 are verdicts, which depend on the load of the machine."""
    env = {"PATH": f"{TOOLS}:{os.environ['PATH']}",
           "GITHUB_STEP_SUMMARY": os.path.join(folder, "summary.md")}
    trap = "trap 'code=$?; case $code in 3|5) ;; *) exit $code;; esac' ERR\nexec 2>&1\n"
    process = tap.run("bash", "-o", "pipefail", "-c", trap + shortened(script, runs), cwd=folder, env=env)
    good = process.code not in (0, 3, 5) if fails else process.code in (0, 3, 5)
    check(good, f"{where}: exit code {process.code}", process)
    return process


def exact(line):
    """Sentences of a command that fails have no numbers that were measured."""
    return re.sub(r"\bUCX \d+\.\d+", "UCX #", line)


def compare(where, shown, process, mask=varying):
    line = not_printed(shown, process.raw["out"].decode().split("\n"), mask)
    check(line is None, f"{where} shows a line that is not printed here, or not in this order:", line, process)


# ---- pages ----

def blocks(text):
    """(line, language, words after it, content) of every fenced block."""
    found, begun = [], None
    for number, line in enumerate(text.split("\n"), 1):
        fence = re.match(r"```(\S*) *(.*)$", line)
        if fence and begun is None:
            begun = (number, fence[1], fence[2], [])
        elif fence:
            found.append((*begun[:3], "\n".join(begun[3])))
            begun = None
        elif begun is not None:
            begun[3].append(line)
    return found


def known(language, words):
    return re.fullmatch({"sh": r"|exit: \d+|needs: \S.*", "text": r"|from: \S.*"}.get(language, ""), words)


def with_output(text):
    """[(line, words, script, lines shown)] of the blocks of commands."""
    found = []
    for number, language, words, content in blocks(text):
        if language == "sh":
            found.append((number, words, content, []))
        elif language == "text" and not words and found:
            found[-1][3].extend(content.split("\n"))
    return found


def block(name, number, words, script, shown):
    """What is found slow is shown only if it was: another verdict than the one marked is another machine's load."""
    if "jq " in script and not shutil.which("jq"):
        tap.skip("jq is missing")
    where, runs = f"{name}:{number}", 5 if shown else 2
    tap.undisturbed(lambda: bash(script, where, tap.folder(), runs=runs),
                    lambda process: compare(where, shown, process),
                    lambda process: words.startswith("exit: ") and words != f"exit: {process.code}", attempts=3)


@tap.test
def every_block_says_what_it_is():
    wrong = [f"{name}:{number}: ```{language} {words}" for name in PAGES
             for number, language, words, _ in blocks(read(name))
             if language not in LANGUAGES or not known(language, words)]
    equal(wrong, [])
    begun = [(name, *found) for name in PAGES for found in [(0, "", "", "")] + blocks(read(name))]
    alone = [f"{name}:{number}" for (_, _, before, mark, _), (name, number, language, words, _) in zip(begun, begun[1:])
             if language == "text" and not words and (before != "sh" or mark.startswith("needs: "))]
    equal(alone, [], "output after no command that is run: it needs a mark `from: WHERE`")
    unmarked = [f"{name}:{number}" for name in PAGES for number, language, _, script in blocks(read(name))
                if language == "text" and re.search(r"^(?:\$ |weft |cxi_|ucx_)", script, re.M)]
    equal(unmarked, [], "commands in a block that is not run")


@tap.test
def every_page_is_linked_and_every_link_leads_somewhere():
    readme = read("README.md")
    equal([name for name in PAGES[1:] if f"({name})" not in readme], [])
    for name in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", read(name)):
            path = os.path.join(ROOT, os.path.dirname(name), target)
            check(os.path.exists(path), f"{name}: {target} is not there")


for page in PAGES:
    for line, words, script, shown in with_output(read(page)):
        if not words.startswith("needs: "):
            does = "run and print what is shown" if shown else "run"
            tap.add(f"the commands at {page}:{line} {does}", block, page, line, words, script, shown,
                    by_itself=bool(shown and words))


# ---- pipelines ----

def steps(text):
    """[(runs after a failure too, script)] of a pipeline, but for what is below a comment `# needs: `."""
    found, skip, always, lines = [], False, False, text.split("\n")
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        skip = True if "# needs: " in line else skip
        always = re.match(r" *- if: always\(\)", line) is not None or always and not line.lstrip().startswith("- ")
        begun = re.match(r" *(?:- )?(run: \||script:|before_script:|after_script:)$", line)
        if not begun:
            continue
        inner = []
        for later in lines[number + 1:]:
            if later.strip() and len(later) - len(later.lstrip()) <= indent:
                break
            inner.append(later)
        if not skip:
            script = "\n".join(inner) if begun[1] == "run: |" else listed(inner)
            found.append((always or begun[1] == "after_script:", script))
        skip = False
    return found


def listed(lines):
    """The items of a list; a folded one becomes one line."""
    items = []
    for line in lines:
        if re.match(r" *- ", line):
            items.append(re.sub(r"^ *- >?", "", line))
        elif line.strip():
            items[-1] += " " + line.strip()
    return "\n".join(items)


def pipeline(name):
    folder, scripts = tap.folder(), steps(read(name))
    check(scripts, name)
    for _, script in scripts:
        bash(script, name, folder)
    check(os.path.exists(os.path.join(folder, "page", "index.html")), name, os.listdir(folder))


@tap.test
def pipelines_draw_the_page_whatever_the_verdict():
    """repeat exits with 3 or 5, which ends its step."""
    for name in sorted(os.listdir(os.path.join(ROOT, "doc", "ci"))):
        equal([(always, "weft repeat" in script) for always, script in steps(read(f"doc/ci/{name}"))
               if "weft report" in script], [(True, False)], name)


for name in sorted(os.listdir(os.path.join(ROOT, "doc", "ci"))):
    tap.add(f"the commands of doc/ci/{name} run", pipeline, f"doc/ci/{name}")


# ---- manuals ----

def manual_blocks(text):
    """[(line, what it needs, [(command, lines shown, fails)])] of the literal blocks with commands."""
    found, needs, inner = [], "", None
    for number, line in enumerate(text.split("\n"), 1):
        marked = re.match(r"\.\\\" needs: (.*)", line)
        needs = marked[1] if marked else needs
        if line.startswith(".Bd -literal"):
            inner, begun = [], number
        elif line == ".Ed" and inner is not None:
            commands = commands_in(inner)
            if commands:
                found.append((begun, needs, commands))
            inner, needs = None, ""
        elif inner is not None:
            inner.append(line.replace("\\e", "\\").replace("\\&", "").replace("\\-", "-"))
    return found


def commands_in(lines):
    """A command whose output is a sentence of the tool and nothing else fails; what `cat FILE` prints is made first."""
    found = []
    for part in re.split(r"^\$ ", "\n".join(lines), flags=re.M)[1:]:
        command, _, output = part.replace("\\\n", " ").rstrip("\n").partition("\n")
        if command.startswith("cat "):
            found.append((f"cat >{command[4:]} <<'END'\n{output}\nEND", [], False))
        else:
            fails = re.fullmatch(r"(cxi_\w+|ucx_perftest|weft[ \w]*): \S.*", output)
            found.append((command, output.split("\n"), bool(fails)))
    return found


def manual(name):
    folder, server = tap.folder(), None
    for line, needs, commands in manual_blocks(read(name)):
        for command, shown, fails in commands if not needs else ():
            where, words = f"{name}:{line}", command.split()
            if len(words) == 1:
                server = tap.Server(os.path.join(TOOLS, words[0]), prefix=("sh", "-c", 'exec "$0" "$@" 2>&1'))
                to_compare = where, shown
                continue
            serves = server and "localhost" in words and not fails
            process = bash(f"{command} -p {server.port}" if serves else command, where, folder, fails, 5)
            compare(where, shown, process, exact if fails else varying)
            if serves:
                compare(*to_compare, tap.ended(server, 0))
                server = None


for page in MANUALS:
    if manual_blocks(read(page)):
        tap.add(f"the commands of {page} run and print what is shown", manual, page)

if __name__ == "__main__":
    tap.main(workers=4)
