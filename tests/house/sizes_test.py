# SPDX-License-Identifier: BSD-3-Clause
"""sizes_test.py BUILD SOURCE: nothing in the tree is too large to be read at once, and one thing
has one name."""
import pathlib
import re
import sys

import tap
from tap import check, equal, test

SOURCE = pathlib.Path(sys.argv[2])
MOST_FILE, MOST_TEST, MOST_FUNCTION, MOST_MEMBERS = 500, 1000, 60, 20
# What the first edition had twice.
GONE = "struct (test_op|test_method|bench_wish|test_facts|bench_facts|test_audience)"


def read(path):
    return path.read_text(encoding="utf-8")


def sources(folder="src"):
    found = sorted(path for path in (SOURCE / folder).rglob("*") if path.suffix in (".c", ".h"))
    check(found, f"no source in {folder}")
    return found


def named(path):
    return str(path.relative_to(SOURCE))


def functions(text):
    """[(name, lines)]: as clang-format leaves them, signature and both braces counted."""
    lines, found = text.split("\n"), []
    for at, line in enumerate(lines):
        if line != "{":
            continue
        first = at
        while first and lines[first - 1].strip() and not re.search(r"(\*/|[;}#])$", lines[first - 1]):
            first -= 1
        signature = " ".join(lines[first:at])
        name = re.search(r"(\w+)\(", signature)
        found.append((name[1] if name else signature, lines.index("}", at) - first + 1))
    return found


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs(text):
    """[(name, members)]: declarators of every struct that has a name; a struct within one, named or
    not, is one member of it."""
    text, found = without_comments(text), []
    for match in re.finditer(r"\bstruct (\w+)\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body, before = text[match.end():at - 1], None
        while body != before:  # whatever is in braces, brackets or parentheses is no declarator
            before, body = body, re.sub(r"\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]", "", body)
        found.append((match[1], sum(part.count(",") + 1 for part in body.split(";") if part.strip())))
    return found


@test
def no_file_of_the_source_is_over_500_lines():
    equal([named(path) for path in sources() if read(path).count("\n") > MOST_FILE], [])


@test
def no_test_is_over_1000_lines():
    long = [named(path) for path in (SOURCE / "tests").rglob("*.*")
            if path.suffix in (".c", ".h", ".py") and read(path).count("\n") > MOST_TEST]
    equal(long, [])


@test
def no_function_is_over_60_lines():
    found = [(named(path), *function) for path in sources() for function in functions(read(path))]
    check(len(found) > 500, "too few functions are seen")
    equal([entry for entry in found if entry[2] > MOST_FUNCTION], [])


@test
def no_struct_of_bench_has_more_than_20_members():
    found = {name: members for path in sources("src/bench") for name, members in structs(read(path))}
    check({"op", "method", "run", "session", "spec"} <= set(found), "too few structs are seen", found)
    equal({name: members for name, members in found.items() if members > MOST_MEMBERS}, {})


@test
def one_engine_has_one_name_for_each_thing():
    folders = ("src", "tools", "include", "tests/unit", "tests/support", "tests/fuzz",
               "tests/conformance", "examples")
    files = [path for folder in folders for path in sources(folder)]
    equal([named(path) for path in files if re.search(GONE, read(path))], [])


# The checks above must be able to see what they look for.

@test
def functions_and_members_are_counted_as_written():
    equal(functions("static int a(int b,\n             int c)\n{\n    return b;\n}\n\n/* b */\nvoid d"
                    "(void)\n{\n}\n"), [("a", 5), ("d", 3)])
    equal(structs("struct a {\n    int b, c; /* d, e; */\n    int (*f)(int g, int h);\n"
                  "    char i[2][3];\n    struct {\n        int j, k;\n    } l;\n    struct m n, *o;\n"
                  "};\nstruct p *q(void);\n"), [("a", 7)])


if __name__ == "__main__":
    tap.main()
