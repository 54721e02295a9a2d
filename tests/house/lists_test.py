# SPDX-License-Identifier: BSD-3-Clause
"""lists_test.py BUILD SOURCE: what the lists name is built and tested, and what stands in the tree
is in the lists."""
import json
import os
import pathlib
import re
import subprocess
import sys

import tap
from lists import cxi_tools, entries, perf_tests
from tap import check, equal, skip, test

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])
TESTS = json.loads((BUILD / "meson-info/intro-tests.json").read_text(encoding="utf-8"))


def in_source(*path):
    return (SOURCE / pathlib.PurePath(*path)).read_text(encoding="utf-8")


FABRICS = entries(SOURCE / "src/fabric/fabrics.def", "FABRIC_")
MEMORIES = entries(SOURCE / "src/memory/memories.def", "MEMORY")
OPS = [name for _, name, _ in entries(SOURCE / "src/bench/ops.def", "OP")]
METHODS = [words[0] for _, _, words in entries(SOURCE / "src/bench/methods.def", "METHOD")]
TOOLS = [name for _, name, _ in entries(SOURCE / "src/tool/tools.def")]
CXI_TOOLS = cxi_tools(SOURCE / "src/tool/tools.def")
PERF_TESTS = perf_tests(SOURCE)


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
    if not (BUILD / "tools/weft").exists():
        there = {name for name in there if not name.startswith("study_")}
    if not (BUILD / "modules/weft-uct.so").exists():
        there -= {"uct_test"}
    if not (BUILD / "modules/weft-ucp.so").exists():
        there -= {"fabric_ucp_test"}
    equal(there - run, set())


@test
def every_script_that_measures_is_run_alone_too():
    alone = {pathlib.PurePath(word).stem for t in TESTS if "--alone" in t["cmd"] for word in t["cmd"]}
    measuring = {path.stem for path in (SOURCE / "tests/process").glob("*_test.py")
                 if re.search(r"by_itself=True|^@(tap\.)?alone\b", path.read_text(encoding="utf-8"), re.M)}
    equal(measuring - alone, set(), "not in the list measuring of tests/process/meson.build")


# ---- operations and methods ----

def run_by_processes():
    """[(name, op, method)]: what tests of real processes measure. Every tool of the CXI family is
    run by a test that reads the list; a test of ucx_perftest by a script that names it."""
    scripts = "\n".join(path.read_text(encoding="utf-8")
                        for path in (SOURCE / "tests/process").glob("*_test.py"))
    generic = any("every_tool_test.py" in word for t in TESTS for word in t["cmd"])
    tools = [(name, op, method) for name, _, op, method in CXI_TOOLS if generic]
    return tools + [test for test in PERF_TESTS if re.search(rf"\b{test[0]}\b", scripts)]


def in_order(names, name):
    check(name in names, f"{name!r} is in no list: there are {names}")


@test
def tools_and_tests_measure_what_the_lists_have():
    for _, op, method in [(name, op, method) for name, _, op, method in CXI_TOOLS] + PERF_TESTS:
        in_order(OPS, op)
        in_order(METHODS, method)


def is_measured(place, word):
    check(any(test[place] == word for test in run_by_processes()),
          f"no tool in tools.def and no test of ucx_perftest that a script runs measures {word}")


for _op in OPS:
    tap.add(f"a test of processes measures op {_op}", is_measured, 1, _op)
for _method in METHODS:
    tap.add(f"a test of processes measures by method {_method}", is_measured, 2, _method)


@test
def every_test_of_ucx_perftest_is_run_by_a_script():
    equal({name for name, *_ in PERF_TESTS} - {name for name, *_ in run_by_processes()}, set())


@test
def every_file_of_an_op_or_a_method_is_in_its_list():
    symbols = [name for _, name, _ in entries(SOURCE / "src/bench/methods.def", "METHOD")]
    for kind, names in (("op", OPS), ("method", symbols)):
        files = {path.stem.partition("_")[2] for path in (SOURCE / "src/bench").glob(f"{kind}_*.c")}
        # What an op is in lists may have a file of its own.
        files = {name for name in files if not name.endswith("_list")}
        equal(files, set(names), kind)


# ---- tools ----

def is_known(name):
    page = SOURCE / "man" / f"{name}.1"
    check(page.exists(), f"man/{name}.1 is missing")
    check(re.search(rf"^\.Nm {name}$", page.read_text(encoding="utf-8"), re.M), f"{page}: no .Nm")
    tap.need_weft([BUILD / "tools" / name])
    shown = subprocess.run([BUILD / "tools" / name, "--help"], capture_output=True, text=True,
                           timeout=30, check=False)
    equal((shown.returncode, shown.stderr), (0, ""), name)
    check(name in shown.stdout, f"{name} --help does not say its name", shown.stdout)


for _name in TOOLS:
    tap.add(f"{_name} has a page, is listed and has help", is_known, _name)


@test
def every_page_of_a_command_is_of_a_tool_or_of_a_command_of_weft():
    equal({path.stem for path in (SOURCE / "man").glob("*.1")}, set(TOOLS) | {"weft-map"})


@test
def every_table_of_option_rows_fits():
    tables = re.compile(r"^(?:static )?const struct opt (\w+)\[\]", re.M)
    found = [(path.name, name, f"OPT_FITS({name});" in text)
             for path in (SOURCE / "src").rglob("*.c")
             for text in [path.read_text(encoding="utf-8")] for name in tables.findall(text)]
    check({"spec_rows", "cxi_rows", "perf_rows"} <= {name for _, name, _ in found}, found)
    equal([entry for entry in found if not entry[2]], [])


if __name__ == "__main__":
    tap.main()
