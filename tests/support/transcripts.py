# SPDX-License-Identifier: BSD-3-Clause
"""What the guide and the manuals show: the files in tests/process/transcripts, word for word. Where
our output may differ from them is named here one by one."""
import pathlib
import re

from tap import REMARK, check, equal, lines_of, mask_fields

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "process/transcripts"


def read(name):
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


USAGE = {path.stem.partition("_")[2]: read(path.stem) for path in FOLDER.glob("usage_*.txt")}
# "guide_cxi_write_lat" and the like: each has a file for each end, the command in its first line.
EXAMPLES = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.client.txt"))

# Lines that we add: (the line stands after one that begins so, its form). The first that fits.
ADDED = (
    (("Device           : ",), r"Fabric           : soft \(software NIC, shared memory\)"),
    (("Hugepages        : ", "Results Reported : "),
     r"Clock            : clock_gettime, step [\d.]+ ns, cost [\d.]+ ns, [\d.]+ ns per sample "
     r"subtracted( \(estimate: (\d+ %|more than) (of )?the median\))?"),
)


def lines(*text):
    return "".join(line + "\n" for line in text)


def rows(like, *sizes):
    """Rows of a table like this one, for other sizes."""
    size, rest = re.fullmatch(r"( *\d+)(  .*)", like).groups()
    return lines(*(f"{value:>{len(size)}}{rest}" for value in sizes))


POWERS = [1 << i for i in range(11)]
READ_64 = "          64       97181        2.61       13.91        2.70        0.07"
SEND_8 = "         8         100        1.60        2.65        1.64        0.13"
# Misprints, and lines that the guide lacks: (what, which example, is replaced, by this). What there
# is to replace must stand in the text, in both ends' or in the client's alone.
MISPRINTS = (
    ("the guide's write header lacks Restricted", "guide_cxi_write_lat",
     lines("IDC              : Enabled"),
     lines("IDC              : Enabled", "Restricted       : Enabled")),
    ("the guide's read header lacks Restricted", "guide_cxi_read_lat",
     lines("Max Read Size    : 1024"),
     lines("Max Read Size    : 1024", "Restricted       : Enabled")),
    ("the guide's read example asks for 1:1024, its header shows 64", "guide_cxi_read_lat",
     lines("Min Read Size    : 64"), lines("Min Read Size    : 1")),
    ("the guide's read example asks for 1:1024, its rows begin with 64", "guide_cxi_read_lat",
     lines(READ_64), rows(READ_64, *POWERS[:7])),
    ("the guide's send example asks for 1:1024, its header shows 8", "guide_cxi_send_lat",
     lines("Send Size        : 8"),
     lines("Min Send Size    : 1", "Max Send Size    : 1024")),
    ("the guide's send example asks for 1:1024 and shows one row", "guide_cxi_send_lat",
     lines(SEND_8), rows(SEND_8, *POWERS)),
    ("the atomic manual's first example lacks Service ID", "atomic_manual_example_1",
     lines("Device           : cxi0"),
     lines("Device           : cxi0", "Service ID       : 1")),
)
# Numbers that their machines and ours need not share, and nothing else.
PORT = (r"^(Listening on port )\d+( for client to connect\.\.\.)$", r"\1#\2")
NIC = (r"^((?:Local|Remote) \((?:client|server)\) *: NIC )0x[0-9a-f]+ PID \d+", r"\1# PID #")
SAMPLE = r"( *\d+)(  +\d+\.\d{3})"
ROW = r"( *\d+)(  +\d+)((?:  +<?\d+\.\d{2,3}){4})"


def corrected(example, theirs, client):
    """A transcript without the misprints of its example."""
    for what, where, misprint, right in MISPRINTS:
        if where == example and (client or not re.match(" *[0-9]", misprint)):
            equal(theirs.count(misprint), 1, what, theirs)
            theirs = theirs.replace(misprint, right)
    return theirs


def without_added(out, added=ADDED):
    """Takes our lines out, each of which must stand at its place."""
    got = lines_of(out)
    for before, form in added:
        at = [i for i, line in enumerate(got) if re.fullmatch(form, line)]
        equal(len(at), 1, f"lines of the form {form!r}", out)
        start = next(word for word in before if any(line.startswith(word) for line in got))
        check(got[at[0] - 1].startswith(start), f"{form!r} does not stand after {start!r}", out)
        del got[at[0]]
    return got


def masked(line, counted):
    """Without the numbers that differ; sizes stay, and so do counts that were asked for."""
    for pattern, replacement in (PORT, NIC):
        line = re.sub(pattern, replacement, line)
    match = re.fullmatch(SAMPLE, line)
    if match:
        return match[1] + mask_fields(match[2])
    match = re.fullmatch(ROW, line)
    if match:
        return match[1] + (match[2] if counted else mask_fields(match[2])) + mask_fields(match[3])
    return line


def same_transcript(got, wanted):
    got, wanted = without_added(got), lines_of(wanted)
    counted = "Test Type        : Iteration" in wanted
    for number, (ours, theirs) in enumerate(zip(got, wanted), 1):
        equal(masked(ours, counted), masked(theirs, counted), f"line {number} is not theirs",
              "\n".join(got))
    equal(len(got), len(wanted), "as many lines as theirs", "\n".join(got))


def command(name, end):
    """The words that were typed, without the prompt."""
    prompt, *words = read(f"{name}.{end}").split("\n", 1)[0].split()
    equal(prompt, "$")
    return words


def same(process, name, end):
    """The output of a process is that of one end of an example."""
    shown = read(f"{name}.{end}").split("\n", 1)[1]
    same_transcript(process.out, corrected(name, shown, end == "client"))


# ---- what documents show of a run ----

NUMBER = r"[-+<]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
VARIES = (
    (r"^(?:Faster: |Slower: |Same: |Cannot tell|Nothing is slower ).*", "VERDICT"),
    (r"  (?:faster|slower|same|cannot tell)$", "  VERDICT"),
    (r"^node [^:\s]+", "node HOST"),
)


def varying(line):
    """Without what another machine, another load or fewer iterations change. Sizes stay, and so does the place of
    each column in a row of numbers. Only rows of ucx_perftest, of eight numbers, begin with a count."""
    for _, form in ADDED:
        if re.fullmatch(form, line):
            return form
    numbers = re.findall(NUMBER, line)
    row = re.fullmatch(rf"(?: *{NUMBER})+", line)
    size = re.match(r" +\d+(?=  )|", line)[0] if len(numbers) != 8 else ""
    rest = masked(line, counted=False)[len(size):]
    for pattern, replacement in VARIES:
        rest = re.sub(pattern, replacement, rest)
    if row:
        return size + re.sub(f" *{NUMBER}", lambda m: "#" * len(m[0]), rest)
    return size + (re.sub(" +", " ", re.sub(NUMBER, "#", rest)) if numbers else rest)


def not_printed(shown, printed, mask=varying):
    """The first of the lines shown that is not among those printed, in this order; None if all are. The document may
    leave out lines; it may have remarks on the load of its machine, and more rows of a run that lasted longer."""
    left, before = (mask(line) for line in printed), None  # "in" goes on where it was
    for line in shown:
        wanted = mask(line)
        if wanted not in ("", before) and not REMARK.search(line) and wanted not in left:
            return line
        before = wanted
    return None
