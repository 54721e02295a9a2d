# SPDX-License-Identifier: BSD-3-Clause
# again.py LOG: prints the names of the tests that failed, one a line, if it is worth running them again alone:
# not if a sanitizer or the C library's heap spoke or a program crashed, which is no matter of the machine's
# load, and not if many failed. Leaks alone are
# no such word where a check failed: a test that ends in the middle frees nothing.
import json
import re
import sys

MOST = 6
REAL = re.compile(r"ERROR: AddressSanitizer|(Thread|UndefinedBehavior)Sanitizer|runtime error: |"
                  r"(free|malloc|realloc)\(\): |corrupted|Segmentation fault|stack smashing")
LEAK = re.compile(r"ERROR: LeakSanitizer")
CHECK = re.compile(r"^not ok (?!.*# SKIP)", re.MULTILINE)

failed = []
try:
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL"):
                continue
            failed.append(test["name"].split(" / ", 1)[-1])
            said = test.get("stdout", "") + test.get("stderr", "")
            if REAL.search(said) or (LEAK.search(said) and not CHECK.search(said)):
                sys.exit(0)
except FileNotFoundError:
    sys.exit(0)
if len(failed) <= MOST:
    print("\n".join(failed))
