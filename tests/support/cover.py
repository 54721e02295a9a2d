#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cover.py FILE ...: reads what a fuzz target prints with -print_coverage=1, and prints how many edges of
these files of src it reached, and of how many."""
import collections
import re
import sys

EDGES = re.compile(r"^(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) \S+ (\S+?):\d+", re.M)


def main():
    reached, there = collections.Counter(), collections.Counter()
    for got, of, path in EDGES.findall(sys.stdin.read()):
        name = path.split("/src/")[-1]
        reached[name] += int(got)
        there[name] += int(of)
    files = sys.argv[1:]
    for name in files:
        print(f"   {name:28} {reached[name]:5} of {there[name]:5} edges")
    all_reached, all_there = (sum(counts[name] for name in files) for counts in (reached, there))
    print(f"   {'together':28} {all_reached:5} of {all_there:5} edges, "
          f"{100 * all_reached / max(all_there, 1):.0f} %; of the whole program "
          f"{sum(reached.values())} of {sum(there.values())}")


main()
