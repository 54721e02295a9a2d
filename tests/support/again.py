# SPDX-License-Identifier: BSD-3-Clause
# again.py LOG: prints the names of the tests that failed, one a line, if it is worth running them again alone:
# not if a sanitizer spoke, which is no matter of the machine's load, and not if many failed.
import json
import re
import sys

MOST = 6
REAL = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error: ")

failed = []
try:
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL"):
                continue
            failed.append(test["name"].split(" / ", 1)[-1])
            if REAL.search(test.get("stdout", "") + test.get("stderr", "")):
                sys.exit(0)
except FileNotFoundError:
    sys.exit(0)
if len(failed) <= MOST:
    print("\n".join(failed))
