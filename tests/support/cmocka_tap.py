# SPDX-License-Identifier: BSD-3-Clause
# cmocka_tap.py PROGRAM [ARGUMENT...]: runs a cmocka program and corrects its TAP: cmocka prints
# "not ok N # SKIP name" for a skipped test, which meson takes for a failure. Several groups become one list,
# and newer releases print a version before each.
import re
import subprocess
import sys

run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True, errors="replace")
reason = ""
count = 0
for line in run.stdout:
    if re.fullmatch(r"1\.\.[1-9]\d*\n|TAP version \d+\n", line):
        continue
    if re.match(r"(not )?ok \d+", line):
        count += 1
        line = re.sub(r"\d+", str(count), line, count=1)
    skipped = re.match(r"not ok (\d+) # SKIP (.*)", line)
    if skipped:
        line = "ok %s - %s # SKIP %s\n" % (skipped.group(1), skipped.group(2), reason)
    reason = line[2:].strip() if line.startswith("# ") else ""
    sys.stdout.write(line)
    sys.stdout.flush()
if count:
    print("1..%d" % count)
sys.exit(1 if run.wait() else 0)
