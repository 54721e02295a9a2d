# SPDX-License-Identifier: BSD-3-Clause
"""hardening_test.py BUILD SOURCE: what is installed was built so that a mistake of ours is hard to
use: read from the files themselves."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import tap
from tap import check, skip, test

BUILD, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def tools():
    listed = re.findall(r"^(?:CXI_|LOOPBACK_)?TOOL\((\w+),", (SOURCE / "src/tool/tools.def").read_text(), re.M)
    check(listed, "tools.def has no tools")
    # Without jansson there is no weft.
    return [path for path in (BUILD / "tools" / name for name in listed) if path.name != "weft" or path.exists()]


def shared():
    return sorted((BUILD / "modules").glob("weft-*.so")) + [BUILD / "lib" / "libweft.so"]


def said(*words):
    if not shutil.which(words[0]):
        skip(f"{words[0]} is missing")
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def symbols(path):
    return re.findall(r" U (\w+)", said("nm", "-D", path))


@test
def every_tool_is_position_independent():
    for path in tools():
        check(re.search(r"Type: +DYN", said("readelf", "-h", path)), path)
        check(re.search(r"\(FLAGS_1\).*\bPIE\b", said("readelf", "-d", path)), path)


@test
def every_file_has_full_relro():
    for path in tools() + shared():
        check("GNU_RELRO" in said("readelf", "-lW", path), path)
        check(re.search(r"\(FLAGS_1\).*\bNOW\b", said("readelf", "-d", path)), path)


@test
def no_file_has_an_executable_stack():
    for path in tools() + shared():
        check(re.search(r"GNU_STACK .* RW ", said("readelf", "-lW", path)), path)


@test
def every_file_checks_its_stack_and_its_copies():
    if tap.SANITIZED:
        skip("sanitizers check more")
    text = (BUILD / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8")
    options = {row["name"]: row["value"] for row in json.loads(text)}
    if options["optimization"] == "plain" and "_FORTIFY_SOURCE" not in " ".join(options["c_args"]):
        skip("the packager's flags are without _FORTIFY_SOURCE")
    for path in tools() + shared():
        used = symbols(path)
        check("__stack_chk_fail" in used, path)
        checked = [name for name in used if re.match(r"__\w+_chk$", name)]
        check(checked or "snprintf" not in used, path, used)


@test
def every_tool_marks_where_a_jump_may_land():
    machine = said("readelf", "-h", tools()[0])
    mark = "endbr64" if "X86-64" in machine else r"\b(bti|paciasp)\b" if "AArch64" in machine else None
    if not mark:
        skip("a CPU without such marks")
    for path in tools():
        check(re.search(mark, said("objdump", "-d", "--disassemble=tool_main", path)), path)


if __name__ == "__main__":
    tap.main()
