#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What weft makes of documents for other programs: comparisons as Markdown, JUnit and JSON;
pages and plots in folders, of sets that are kept apart."""
import os
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import documents
import schema
import tap
from tap import Process, check, ended, equal, lines_of, one_sentence, test

TOOL = tap.tool_path("weft")
SIZES = (8, 64, 4096)


def path_in(*names):
    return os.path.join(tap.folder(), *names)


def a_document(**keys):
    return documents.write(path_in("document.json"), documents.document(**keys))


def a_set(count=8, turn=0, **keys):
    """Runs that take turns with those of another set, ten seconds apart."""
    keys = {"sizes": SIZES, "seed": turn + 1, "noise": 0.004, **keys}
    return documents.runs(path_in("set"), count, begun_s=10 * turn, every_s=20, **keys)


def weft(code, *args):
    return ended(Process([TOOL, *args]), code)


def compare(code, *args):
    return weft(code, "compare", *args)


def comparison(code, *args):
    return schema.read(compare(code, *args).out, "weft-comparison")


def refused(said, *args):
    process = compare(2, *args)
    equal(process.out, "", process)
    check(said in one_sentence(process, "weft compare"), process)


# ---- comparisons ----

@test
def the_comparison_can_be_had_as_markdown_and_for_a_ci_server():
    sets = a_set(turn=0), a_set(turn=1, medians_us=(2, 2.2, 2), noise=0)
    junit = path_in("junit.xml")
    lines = lines_of(compare(3, *sets, "--markdown", "--junit", junit).out)
    equal(lines[0], "### weft compare: slower")
    rows = [line for line in lines if line.startswith("| write")]
    equal([line.split(" | ")[-1] for line in rows], ["same |", "**slower** |", "same |"], lines)
    equal({line.count("|") for line in lines if line.startswith("|")}, {10}, lines)
    suite, = xml.etree.ElementTree.parse(junit).getroot()
    equal((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("3", "1", "0"))
    failed, = (case for case in suite.iter("testcase") if case.find("failure") is not None)
    check("64 bytes" in failed.get("name"), failed.attrib)
    few = compare(5, a_document(), a_document(), "--junit", "-")
    suite, = xml.etree.ElementTree.fromstring(few.out)
    equal((suite.get("failures"), suite.get("skipped")), ("0", "1"), few)
    refused("--json and --junit", *sets, "--json", junit, "--junit", junit)


@test
def a_stored_baseline_is_flagged_as_not_interleaved():
    stored, now = a_set(turn=0), a_set(turn=100)
    equal(comparison(0, stored, now, "--json", "-")["interleaved"], False)
    check("> Not interleaved: " in compare(0, stored, now, "--markdown").out)
    equal(comparison(0, stored, a_set(turn=1), "--json", "-")["interleaved"], True)


@test
def one_fabric_is_compared_with_another_when_asked():
    one, other = a_set(turn=0), a_set(turn=1, fabric="soft", median_us=2.2)
    refused("fabric null", one, other)
    compare(3, one, other, "--across-fabrics")
    # All but the fabric must match.
    refused("results", one, a_set(turn=1, fabric="soft", sizes=(8,)), "--across-fabrics")


# ---- pages and plots ----

def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


@test
def a_folder_gets_the_page_and_every_plot_in_literal_colours():
    made = path_in("made", "")
    weft(0, "report", a_document(sizes=(8, 4096), series=5), "-o", made, "--title", "Ours & theirs")
    equal(sorted(os.listdir(made)),
          ["histogram-4K.svg", "histogram-8.svg", "index.html", "latency.svg", "over-time-4K.svg",
           "over-time-8.svg", "percentiles-4K.svg", "percentiles-8.svg"])
    check("<h1>Ours &amp; theirs</h1>" in read(made, "index.html"))
    for name in (name for name in os.listdir(made) if name.endswith(".svg")):
        text = read(made, name)
        xml.etree.ElementTree.fromstring(text)
        check("var(" not in text and "#1857c8" in text and "[us]" in text, name)
    check(">Ours &amp; theirs: Latency versus size<" in read(made, "latency.svg"))


@test
def two_sets_are_kept_apart_and_have_a_verdict():
    page = path_in("page.html")
    weft(0, "report", a_set(turn=0), a_set(turn=1, median_us=2.2), "-o", page)
    text = read(page)
    check("<h2>B is slower than A</h2>" in text and "A, 8 runs: " in text and "B, 8 runs: " in text)
    weft(0, "report", a_set(turn=0), a_set(turn=1, sizes=(8,)), "-o", page)
    check("<h2>A and B are not compared</h2>" in read(page))
    weft(0, "report", a_document(), a_document(), "-o", page)
    check("id=\"verdict\"" not in read(page), "one run per side is no set")


@test
def what_disturbed_a_run_is_at_the_top():
    whole = documents.document()
    whole["results"][0]["interference"].update(preempted=3, page_faults=2)
    path = documents.write(path_in("document.json"), whole)
    page = path_in("page.html")
    weft(0, "report", path, "-o", page)
    top = read(page).split("</header>")[0]
    check("1 of 1 results disturbed: preempted 3 times" in top and "2 page faults" in top, top)


if __name__ == "__main__":
    tap.main()
