# SPDX-License-Identifier: BSD-3-Clause
"""Is what src/fabric/cxi/cassini.h and cassini.def say of the Cassini's interface what the public headers say?

usage: cassini_test.py BUILD SOURCE

WEFT_CASSINI_HEADERS names the folders of cassini_user_defs.h and cxi_prov_hw.h, of libcxi.h, and of
uapi/ethernet/cxi-abi.h, with colons between them. Without it this is skipped. Sizes, offsets and constants are
compared by the compiler; fields of a few bits by a program that sets each to all ones and looks where they are.
"""
import os
import re
import subprocess
import sys
import tempfile

import tap
from tap import equal, skip, test

SOURCE = sys.argv[2]
FOLDER = os.path.join(SOURCE, 'src/fabric/cxi')
HEADERS = os.environ.get('WEFT_CASSINI_HEADERS', '')

CHECK = '''
static int bits(const unsigned char *bytes, unsigned length, unsigned at, unsigned width)
{
    for (unsigned i = 0; i < 8 * length; i++)
        if ((bytes[i / 8] >> i % 8 & 1) != (i >= at && i < at + width))
            return 1;
    return 0;
}
'''


def listed(word):
    """The entries of cassini.def of one kind, as lists of arguments."""
    with open(os.path.join(FOLDER, 'cassini.def'), encoding='utf-8') as file:
        return [re.split(r',\s*', match) for match in re.findall(rf'^{word}\((.*)\)$', file.read(), re.M)]


def structs():
    """Our structs of cassini.h: a name and its members, without those that are ours alone."""
    with open(os.path.join(FOLDER, 'cassini.h'), encoding='utf-8') as file:
        text = file.read()
    for name, body in re.findall(r'^struct weft_(\w+) \{\n(.*?)^\};', text, re.M | re.S):
        members = re.findall(r'^\s.*?(\w+)(\[\d*\])?;', body, re.M)
        yield name, [(member, size) for member, size in members if not member.endswith('_')]


def program():
    """A C program that compares all, and how many comparisons there are."""
    same, fields = [], []
    for name, value in listed('CONST'):
        same.append(f'(long)({name}) == (long)({value})')
    for name, size in listed('SIZE'):
        same.append(f'sizeof(struct {name}) == {size}')
    for name, members in structs():
        same.append(f'sizeof(struct weft_{name}) == sizeof(struct {name})')
        for member, size in members:
            same.append(f'offsetof(struct weft_{name}, {member}) == offsetof(struct {name}, {member})')
            if size != '[]':
                same.append(f'sizeof((struct weft_{name} *)0)->{member} == sizeof((struct {name} *)0)->{member}')
    for name, _, byte, bit, width, member in listed('FIELD'):
        fill = f'memset(&s.{member}, 255, sizeof s.{member})' if member.endswith('dfa') else f's.{member} = -1'
        fields.append(f'    {{ struct {name} s; memset(&s, 0, sizeof s); {fill}; '
                      f'if (bits((void *)&s, sizeof s, {byte} * 8 + {bit}, {width})) '
                      f'printf("{name} {member}\\n"), wrong++; }}')
    asserts = '\n'.join(f'_Static_assert({text}, "{text}");' for text in same)
    includes = '\n'.join(f'#include <{name}>' for name in
                         ['stddef.h', 'stdint.h', 'stdbool.h', 'stdio.h', 'string.h', 'libcxi.h', 'cxi_prov_hw.h'])
    return (f'{includes}\n#include "fabric/cxi/cassini.h"\n{asserts}\n{CHECK}'
            'int main(void)\n{\n    int wrong = 0;\n' + '\n'.join(fields) + '\n    return wrong != 0;\n}\n',
            len(same), len(fields))


@test
def the_formats_of_the_cassini_are_those_of_the_public_headers():
    if not HEADERS:
        skip("WEFT_CASSINI_HEADERS does not name the folders of the public headers")
    text, same, fields = program()
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        places = ["-I" + place for place in HEADERS.split(":")]
        built = subprocess.run(
            ["cc", "-std=gnu11", "-w", "-I" + os.path.join(SOURCE, "src"), *places, "-o", binary, source],
            capture_output=True, text=True, timeout=120, check=False)
        equal(built.returncode, 0, built.stderr[:3000])
        ran = subprocess.run([binary], capture_output=True, text=True, timeout=60, check=False)
        equal(ran.stdout, "", "these fields lie elsewhere:")
        equal(ran.returncode, 0)
    print(f"# {same} sizes, offsets and constants, {fields} fields: {same + fields} comparisons hold")


if __name__ == "__main__":
    tap.main()
