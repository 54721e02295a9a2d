#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_rpm.py: installs the packages that `make rpm` has made, tries what is installed, erases them, and looks for
what is left. As root. This machine's files are the lower layer of an overlay, so that the libraries are there and the
upper layer has what the packages brought; a mount namespace of its own ends with this program."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import check_deb
from check_deb import TREE, run, say

MADE = TREE / "build-dist/rpm/RPMS"
PLACE = TREE / "build-dist/check-rpm"
NAMES = "weft weft-modules weft-libs weft-devel"
# On Debian rpm's database does not know what is installed.
RPM = "rpm --nodeps" if os.path.exists("/etc/debian_version") else "rpm"
LIBRARY = """
export PKG_CONFIG_PATH=$(rpm --eval %_libdir)/pkgconfig LD_LIBRARY_PATH=$(rpm --eval %_libdir)
cc -o /packages/two_threads /packages/two_threads.c $(pkg-config --cflags --libs weft)
/packages/two_threads
"""


def main():
    if os.getuid():
        sys.exit("An overlay needs root")
    if sys.argv[1:] != ["mounted"]:
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "mounted"])
    shutil.rmtree(PLACE, ignore_errors=True)
    upper, work, root = (PLACE / name for name in ("upper", "work", "root"))
    for folder in upper, work, root:
        folder.mkdir(parents=True)
    layers = f"lowerdir=/,upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, root], check=True)
    (root / "packages").mkdir()
    for path in sorted(MADE.glob("*/*.rpm")) + [TREE / "examples/two_threads.c"]:
        shutil.copy(path, root / "packages")
    say("install")
    run(root, f"{RPM} -i /packages/*.rpm && {RPM} --verify {NAMES}")
    check_deb.try_tools(root, "test -e /usr/lib/weft/bin/ucx_perftest",
                        "test -e /usr/share/doc/weft/doc/decisions.md", "ls /usr/share/man/man1/weft_ucx_perftest.1*")
    say("the library and its header")
    run(root, LIBRARY)
    say("erase")
    installed = len(check_deb.files(upper))
    run(root, f"{RPM} -e {NAMES} && rm -r /packages")
    check_deb.none_of_ours(check_deb.files(upper))
    subprocess.run(["umount", root], check=True)
    shutil.rmtree(PLACE)
    say(f"the packages install {installed} files and folders, run, and leave nothing; they are in {MADE}")


if __name__ == "__main__":
    main()
