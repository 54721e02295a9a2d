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
def a_node_that_became_slower_is_named_though_partners_are_random():
    sampled = {"nodes": 24, "partners": 8, "noise": 0.02}
    old, new = maps.make(seed=1, **sampled), maps.make(seed=2, slow={7: 0.1}, **sampled)
    process = ended(run(WEFT, "compare", saved(old), saved(new)), 3)
    check("nodes are judged by their effects" in process.out, process)
    check(re.search(r"^n007 +8 .* slower$", process.out, re.M), process)
    check("Slower: 1 of 24 nodes" in process.out, process)
    process = ended(run(WEFT, "compare", saved(new), saved(old)), 0)
    check(re.search(r"^n007 .* faster$", process.out, re.M), process)


@test
def equal_maps_with_random_partners_name_no_node():
    named = 0
    for seed in range(200):
        pair = [saved(maps.make(nodes=24, partners=8, noise=0.05, seed=2 * seed + i)) for i in range(2)]
        process = run(WEFT, "compare", *pair, "--min-effect", "2")
        named += process.code == 3
        check(process.code in (3, 5) and "A node that became" in process.out, process)
        process = run(WEFT, "compare", *pair)
        named += process.code == 3
    check(named <= 4, f"{named} of 200 pairs of maps name a node")
    for seed in range(50):
        pair = [saved(maps.make(nodes=24, partners=8, noise=0.02, seed=2 * seed + i)) for i in range(2)]
        process = ended(run(WEFT, "compare", *pair), 0)
        check("Same: no node is slower by 5 % or more" in process.out, process)


@test
def maps_too_noisy_to_find_a_slow_node_say_so():
    pair = [saved(maps.make(nodes=24, partners=6, noise=0.1, seed=i)) for i in (1, 2)]
    process = ended(run(WEFT, "compare", *pair), 5)
    check(re.search(r"A node that became [2-9]\d\.\d % slower would be found", process.out), process)
    check("may be slower" in process.out or "might not be found" in process.out, process)


@test
def maps_of_more_nodes_than_a_document_has_pairs_of_are_compared():
    old, same = maps.make(nodes=300, seed=1), maps.make(nodes=300, seed=2)
    new = maps.make(nodes=300, seed=3, slow={7: 0.1})
    equal(len(old["pairs"]), 1000)
    process = ended(run(WEFT, "compare", saved(old), saved(same)), 0)
    check("Same: no node" in process.out, process)
    process = ended(run(WEFT, "compare", saved(old), saved(new)), 3)
    check(re.search(r"^n007 +299 .* slower$", process.out, re.M), process)
    check("Slower: 1 of 300 nodes" in process.out, process)


@test
def a_group_that_became_slower_is_seen_though_effects_are_within_groups():
    sampled = {"nodes": 40, "partners": 12, "groups": 4, "noise": 0.01}
    old, new = maps.make(seed=1, **sampled), maps.make(seed=2, **sampled)
    finding = {"kind": "group", "a": 2, "verdict": "slower", "first_percent": 10, "effect_percent": 10,
               "low_percent": 9, "high_percent": 11, "cells": 10}
    new["findings"].append(finding)
    process = ended(run(WEFT, "compare", saved(old), saved(new)), 3)
    check("Slower: 10 of 40 nodes" in process.out, process)
    old["findings"].append(finding)
    ended(run(WEFT, "compare", saved(old), saved(new)), 0)


@test
def every_node_that_is_not_compared_is_named():
    for partners in (0, 8):
        old = maps.make(nodes=24, seed=1, partners=partners)
        new = maps.make(nodes=24, seed=2, partners=partners)
        old["nodes"][3]["name"], new["nodes"][4]["name"] = "gone", "new"
        new["nodes"][5].update(pairs=3, effect_percent=None)
        new["pairs"] = [p for p in new["pairs"] if 5 not in (p["a"], p["b"])]
        new["pairs_measured"] = len(new["pairs"])
        process = ended(run(WEFT, "compare", saved(old), saved(new)), 5)
        for line in (r"Only in A: 2 nodes: gone, n004", r"Only in B: 2 nodes: n003, new",
                     r"Not judged, too few pairs: 1 of 22 nodes: n005",
                     r"Cannot tell: too few pairs to judge 1 of 22 nodes"):
            check(re.search(f"^{line}$", process.out, re.M), line, process)


@test
def what_makes_maps_differ_beside_their_nodes_is_a_warning():
    def warned(sentence, change, *options, code=0, **what):
        old, new = maps.make(seed=1, **what), maps.make(seed=2, **what)
        change(new)
        process = ended(run(WEFT, "compare", *options, saved(old), saved(new)), code)
        equal(process.err.count("\n"), 1 if sentence else 0, process)
        check((sentence or "") in process.err, sentence, process)

    warned(None, lambda d: None)
    warned("different fabrics: libfabric cxi and shared memory",
           lambda d: d["fabric"].update(form="shared memory"))
    warned("different devices: ofi:cxi and ofi:tcp", lambda d: d["fabric"].update(device="ofi:tcp"))
    warned(None, lambda d: d["fabric"].update(device="ofi:tcp"), "--across-fabrics")
    warned("compared anyway (--force): sizes 8 and 4096", lambda d: d.update(size=4096), "--force")
    warned("ranks were lost: 1 of 16", lambda d: d["lost"].append(
        {"node": 3, "round": 2, "reason": "it was silent"}))
    warned("the map is not complete: Ended early: interrupted", lambda d: d.update(
        ending={"code": 130, "reason": "Ended early: interrupted"}))
    warned("different groups", lambda d: d.update(groups=["a", "b"]), nodes=24, partners=8)


@test
def options_that_are_not_for_maps_are_refused():
    pair = [saved(maps.make(seed=seed)) for seed in (1, 2)]
    for option in ("--percentiles=50,99", "--percentiles=50", "--json=-", "--junit=-", "--markdown"):
        process = ended(run(WEFT, "compare", option, *pair), 2)
        check(option.split("=")[0] in one_sentence(process, "weft compare"), process)


@test
def maps_that_have_nothing_in_common_are_refused():
    old, new = maps.make(nodes=6), maps.make(nodes=6)
    new["test"] = "put_bw"
    check("different tests" in one_sentence(
        ended(run(WEFT, "compare", saved(old), saved(new)), 2), "weft compare"))
    ended(run(WEFT, "compare", "--force", saved(old), saved(new)), 0)
    twice = maps.make(nodes=6)
    twice["nodes"][2]["name"] = "n001"
    check("two nodes are called n001" in one_sentence(
        ended(run(WEFT, "compare", saved(twice), saved(old)), 2), "weft compare"))
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


def folder_of(*documents):
    folder = os.path.join(tap.folder(), f"maps{folder_of.made}")
    folder_of.made += 1
    os.mkdir(folder)
    for i, document in enumerate(documents):
        with open(os.path.join(folder, f"m{i}.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(document))
    return folder


folder_of.made = 0


@test
def a_folder_with_one_map_is_that_map():
    old, new = folder_of(maps.make(seed=1)), folder_of(maps.make(seed=2, slow={7: 0.1}))
    process = ended(run(WEFT, "compare", old, new), 3)
    check("Slower: 1 of 16 nodes" in process.out, process)
    page = os.path.join(tap.folder(), "folder.html")
    ended(run(WEFT, "report", old, new, "-o", page), 0)
    with open(page, encoding="utf-8") as file:
        equal(file.read().count('data-names="'), 2)


@test
def a_folder_with_several_maps_is_refused_in_a_sentence():
    one, two = maps.make(seed=1), maps.make(seed=2)
    result = {"schema": "weft-result", "version": 2}
    for documents, sentence in (((one, two), "a folder with 2 maps: give one of them, such as"),
                                ((one, result), "a folder with maps and other documents: m1.json is no map"),
                                ((result, one), "m0.json: ")):
        folder = folder_of(*documents)
        for command in (("compare", saved(one), folder), ("compare", folder, saved(one)),
                        ("report", folder, "-o", "-")):
            process = ended(run(WEFT, *command), 2)
            if command[0] == "report" or documents[0] is one:
                check(sentence in one_sentence(process, f"weft {command[0]}"), process)
            check("not a result of a Weft tool" not in process.err, process)


@test
def maps_and_results_do_not_go_on_one_page():
    a = saved(maps.make(nodes=4))
    process = ended(run(WEFT, "report", a, tap.file_with('{"schema":"weft-result","version":2}'),
                        "-o", "-"), 2)
    check("is no map" in one_sentence(process, "weft report"), process)
    process = ended(run(WEFT, "report", a, "-o", a), 2)
    one_sentence(process, "weft report")


tap.main()
