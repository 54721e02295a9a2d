# SPDX-License-Identifier: BSD-3-Clause
# count.py BROKEN BUILD...: adds up what meson's logs say of every single test, under the names that they have
# with the wrapper apart.sh. BROKEN is 1 if a build or a runner failed, which counts as a failure of its own when
# no test does; so does a run without any test. A test that failed beside others and was run again alone counts
# as it ended then, and is named.
import os
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
broken = sys.argv[1] != "0"
for build in sys.argv[2:]:
    log = os.path.join(build, "meson-logs", "testlog-apart.sh.junit.xml")
    if not os.path.exists(log):
        broken = True
        continue
    suites = list(tree.parse(log).getroot().iter("testsuite"))
    again = {}
    second = os.path.join(build, "meson-logs", "again-apart.sh.junit.xml")
    if os.path.exists(second):
        again = {suite.get("name"): suite for suite in tree.parse(second).getroot().iter("testsuite")}
        suites = [suite for suite in suites if suite.get("name") not in again] + list(again.values())
        for name in again:
            print("RUN AGAIN, ALONE: %s: %s" % (build, name))
    for suite in suites:
        for case in suite.iter("testcase"):
            # A test that ended without a result has no suite of its own.
            if "%s.%s" % (suite.get("name"), case.get("name")) in again:
                continue
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
