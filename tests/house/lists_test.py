# SPDX-License-Identifier: BSD-3-Clause
"""lists_test.py BUILD SOURCE: what the lists name is built and tested, and what stands in the tree
is in the lists."""
import json
import os
import pathlib
import re
import sys

import tap
from tap import check, equal, skip, test

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])
TESTS = json.loads((BUILD / "meson-info/intro-tests.json").read_text(encoding="utf-8"))
MOST_LINES = 1000


def entries(path, macro):
    """[(first word, [quoted words])] of a list that C and meson read."""
    text = (SOURCE / path).read_text(encoding="utf-8")
    lines = re.findall(rf"^({macro}\w*)\((\w+), (.*)\)$", text, re.M)
    check(lines, f"no entry in {path}")
    return [(kind, name, re.findall(r'"([^"]*)"', rest)) for kind, name, rest in lines]


FABRICS = entries("src/fabric/fabrics.def", "FABRIC_")
MEMORIES = entries("src/memory/memories.def", "MEMORY")


def conformance_arguments():
    """What the program is given in each test of it."""
    return [words[i + 1:] for words in (t["cmd"] for t in TESTS)
            for i, word in enumerate(words) if os.path.basename(word) == "conformance"]


def conformance_runs_on(kind, name, built):
    if kind == "FABRIC_MODULE" and not built:
        skip(f"weft-{name}.so is not built: its library is not here")
    devices = [word for words in conformance_arguments() for word in words
               if word.partition(":")[0] == name]
    check(devices, f"fabrics.def lists {name}, and no conformance test runs on a device of it")


for _kind, _name, _ in FABRICS:
    tap.add(f"conformance runs on fabric {_name}", conformance_runs_on, _kind, _name,
            (BUILD / f"modules/weft-{_name}.so").exists())


@test
def every_folder_of_a_fabric_is_in_the_list():
    folders = {path.name for path in (SOURCE / "src/fabric").iterdir() if path.is_dir()}
    equal(folders, {name for _, name, _ in FABRICS})


@test
def conformance_runs_on_every_kind_of_memory():
    used = {word for words in conformance_arguments() for word in words} | {"host"}
    equal({words[0] for _, _, words in MEMORIES} - used, set(), "kinds that no test uses")


@test
def every_test_in_the_tree_is_run():
    run = {pathlib.PurePath(word).stem for t in TESTS for word in t["cmd"]}
    there = {path.stem for folder in ("unit", "process", "house")
             for path in (SOURCE / "tests" / folder).glob("*_test.*")}
    check(there)
    equal(there - run, set())


@test
def no_test_is_over_1000_lines():
    long = [path.name for path in (SOURCE / "tests").rglob("*.*")
            if path.suffix in (".c", ".h", ".py")
            and len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES]
    equal(long, [])


if __name__ == "__main__":
    tap.main()
