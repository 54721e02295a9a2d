# SPDX-License-Identifier: BSD-3-Clause
# count.py BROKEN BUILD...: adds up what meson's logs say of every single test. BROKEN is 1 if a build
# or a runner failed, which counts as a failure of its own when no test does; so does a run without
# any test.
import os
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
broken = sys.argv[1] != "0"
for build in sys.argv[2:]:
    log = os.path.join(build, "meson-logs", "testlog.junit.xml")
    if not os.path.exists(log):
        broken = True
        continue
    for suite in tree.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                print("FAILED: %s: %s: %s" % (build, suite.get("name"), case.get("name")))
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
if (broken or not passed) and not failed:
    failed += 1
print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
sys.exit(1 if failed else 0)
