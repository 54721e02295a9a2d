# SPDX-License-Identifier: BSD-3-Clause
"""Maps read back: weft report draws them, weft compare tells whether a node became slower, and what is
no map is refused in a sentence."""
import copy
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import maps
import schema
import tap
from tap import check, ended, equal, one_sentence, run, test

WEFT = tap.tool_path("weft")


def saved(document):
    return tap.file_with(json.dumps(document))


def page_of(*documents, name="page.html"):
    path = os.path.join(tap.folder(), name)
    ended(run(WEFT, "report", *map(saved, documents), "-o", path), 0)
    with open(path, encoding="utf-8") as file:
        return file.read()


@test
def what_tests_make_is_what_the_schema_says():
    for what in ({"nodes": 4}, {"nodes": 9, "groups": 3, "slow": {2: 0.1}, "lost": (1,)}):
        schema.read(json.dumps(maps.make(**what)), "weft-map")


@test
def a_page_has_every_node_and_every_pair():
    page = page_of(maps.make(nodes=16, groups=2, slow={5: 0.14}, lost=(3,)))
    names = re.search(r'data-names="([^"]*)"', page)[1].split("|")
    equal(sorted(names), [f"n{i:03d}" for i in range(16)])
    equal(names.index("n005"), 7, "the slowest of its group is last")
    equal(len(re.search(r'data-p50="([^"]*)"', page)[1].split("|")), 16 * 15 // 2)
    check("node n005" in page and "Lost: n003 in round 3" in page)
    check("<script" in page and page.count("<script") == 1)


@test
def a_page_of_256_nodes_is_small_and_a_picture_stands_alone():
    document = maps.make(nodes=256, groups=8)
    check(len(page_of(document)) < 4 << 20)
    picture = page_of(document, name="map.svg")
    check(picture.startswith("<svg") and "<style>" in picture and "<script" not in picture)
    check("var(" not in picture and "fill: #650826" in picture, "colours that not every reader has")
    equal(len(re.findall(r"rotate\(90\)", picture)), 8, "names of groups")


@test
def a_title_is_in_the_page_and_in_every_picture():
    first, second = saved(maps.make(nodes=4)), saved(maps.make(nodes=5))
    folder = os.path.join(tap.folder(), "pages")
    ended(run(WEFT, "report", first, second, "--title", "A & B", "-o", folder + "/"), 0)
    equal(sorted(os.listdir(folder)), ["index.html", "map-2.svg", "map.svg"])
    for name, ranks in (("map.svg", 4), ("map-2.svg", 5)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            picture = file.read()
        check(">A &amp; B: Median of every pair<" in picture and f"{ranks} ranks on" in picture, picture[:3000])
    with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
        check("<title>A &amp; B" in file.read())
    process = ended(run(WEFT, "report", first, second, "-o", os.path.join(folder, "both.svg")), 2)
    check("a picture has one map" in process.err, process)


@test
def a_page_says_of_a_node_only_what_looked_slow_and_of_a_bandwidth_how_large_it_is():
    document = maps.make(nodes=6, slow={5: 0.14})
    document["nodes"][2].update(verdict="not again", effect_percent=0.4)
    document["nodes"][3].update(verdict="not again", effect_percent=7)
    page = page_of(document)
    equal(page.count("<td>not again</td>"), 1)
    check("MB/s" not in page and "15 pairs in 5 rounds" in page)
    document.update(time="time per operation", test="put_bw", size=1 << 20, pairs_planned=20)
    page = page_of(document)
    check("MB/s</th>" in page and f"{(1 << 20) / 1.7:.2f}</td>" in page and "15 of 20 pairs" in page)
    document.update(findings=[{"kind": "node", "a": 1, "verdict": "cannot tell", "first_percent": 20,
                               "effect_percent": None, "low_percent": None, "high_percent": None, "cells": 0}])
    check("cannot tell: measured too seldom again" in page_of(document))
    document.update(findings=[])
    for change, words in (({}, "Nothing looked slow."), ({"ending": {"code": 4, "reason": "lost"}}, "too many ranks were lost."),
                          ({"pairs": [], "pairs_measured": 0}, "no pair was measured.")):
        document.update(change)
        check(f"<p>{words}</p>" in page_of(document) or f"<p>Not judged: {words}</p>" in page_of(document), words)
    document["pairs_planned"] = -1
    check("pairs_planned" in one_sentence(ended(run(WEFT, "report", saved(document), "-o", "-"), 2), "weft report"))


@test
def names_from_outside_stay_text():
    document = maps.make(nodes=4)
    document["nodes"][1]["name"] = '"><script>alert(1)</script>|'
    document["nodes"][2]["group"] = "<b>"
    page = page_of(document)
    check("<script>alert" not in page and "<b>" not in page)
    equal(len(re.search(r'data-names="([^"]*)"', page)[1].split("|")), 4)


@test
def a_node_that_became_slower_is_named():
    old, new = maps.make(nodes=16, seed=1), maps.make(nodes=16, seed=2, slow={7: 0.1})
    process = ended(run(WEFT, "compare", saved(old), saved(new)), 3)
    check(re.search(r"^n007 .* slower$", process.out, re.M), process)
    check("Slower: 1 of 16 nodes" in process.out, process)
    process = ended(run(WEFT, "compare", saved(new), saved(old)), 0)
    check(re.search(r"^n007 .* faster$", process.out, re.M), process)


@test
def equal_maps_are_the_same_and_a_shift_of_all_cannot_be_told():
    old, new = maps.make(nodes=16, seed=1), maps.make(nodes=16, seed=2)
    process = ended(run(WEFT, "compare", saved(old), saved(new)), 0)
    check("Same: no node is slower by 5 % or more" in process.out, process)
    process = ended(run(WEFT, "compare", saved(old),
                        saved(maps.make(nodes=16, seed=2, factor=1.3))), 5)
    check("all pairs moved by +30" in process.out, process)


@test
def maps_that_have_nothing_in_common_are_refused():
    old, new = maps.make(nodes=6), maps.make(nodes=6)
    new["test"] = "put_bw"
    check("different tests" in one_sentence(
        ended(run(WEFT, "compare", saved(old), saved(new)), 2), "weft compare"))
    ended(run(WEFT, "compare", "--force", saved(old), saved(new)), 0)
    for node in new["nodes"]:
        node["name"] += "x"
    check("no pair of nodes in common" in one_sentence(
        ended(run(WEFT, "compare", "--force", saved(old), saved(new)), 2), "weft compare"))


def broken(change):
    document = copy.deepcopy(maps.make(nodes=5, groups=2, slow={1: 0.1}, lost=(2,)))
    change(document)
    return saved(document)


HOSTILE = {
    "a pair of a node that is not there": lambda d: d["pairs"][0].update(b=5),
    "a pair of one node": lambda d: d["pairs"][0].update(b=d["pairs"][0]["a"]),
    "a negative node": lambda d: d["pairs"][0].update(a=-1),
    "a time of 0": lambda d: d["pairs"][0].update(p50_us=0),
    "a time that is text": lambda d: d["pairs"][0].update(p50_us="fast"),
    "a finding of a node that is not there": lambda d: d["findings"][0].update(a=1 << 40),
    "a pair without a second node": lambda d: d["findings"][0].update(kind="pair"),
    "an unknown verdict": lambda d: d["findings"][0].update(verdict="fine"),
    "a group that is not there": lambda d: d["findings"][0].update(kind="group", a=2),
    "a lost node that is not there": lambda d: d["lost"][0].update(node=9),
    "no nodes": lambda d: d.update(nodes=[]),
    "nodes that are no list": lambda d: d.update(nodes={}),
    "groups that are numbers": lambda d: d.update(groups=[1, 2]),
    "no ending": lambda d: d.pop("ending"),
    "another version": lambda d: d.update(version=2),
}


@test
def what_cannot_be_is_refused_in_a_sentence():
    for what, change in HOSTILE.items():
        process = run(WEFT, "report", broken(change), "-o", "-")
        check(process.code == 2 and not process.out, what, process)
        one_sentence(process, "weft report")


@test
def maps_and_results_do_not_go_on_one_page():
    a = saved(maps.make(nodes=4))
    process = ended(run(WEFT, "report", a, tap.file_with('{"schema":"weft-result","version":2}'),
                        "-o", "-"), 2)
    check("is no map" in one_sentence(process, "weft report"), process)
    process = ended(run(WEFT, "report", a, "-o", a), 2)
    one_sentence(process, "weft report")


tap.main()
