# SPDX-License-Identifier: BSD-3-Clause
"""The lists that C, meson and tests read: an entry is MACRO(NAME), or MACRO(NAME, "WORDS", ...)."""
import pathlib
import re


def entries(path, macro=""):
    """[(macro, name, [quoted words])] of the macros whose names begin with this."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    found = re.findall(rf"^({macro}\w*)\((\w+)(.*)\)$", text, re.M)
    if not found:
        raise ValueError(f"no entry of {macro or 'any kind'} in {path}")
    return [(kind, name, re.findall(r'"([^"]*)"', rest)) for kind, name, rest in found]


def cxi_tools(tools_def):
    """[(name, title, op, method)]"""
    return [(name, *words) for kind, name, words in entries(tools_def) if kind == "CXI_TOOL"]


def loopback_tools(tools_def):
    """The same, of those that are both ends in one process."""
    return [(name, *words) for kind, name, words in entries(tools_def) if kind == "LOOPBACK_TOOL"]


def perf_tests(source):
    """[(name, op, method)] of ucx_perftest, from the table that its help is made of."""
    return [(name, *words[:2]) for _, name, words in entries(pathlib.Path(source) / "src/tool/tests.def", "TEST")]
