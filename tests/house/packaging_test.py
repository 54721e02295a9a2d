#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""packaging_test.py BUILD SOURCE: packages say what the tree says."""
import pathlib
import re
import sys

import spack_args
import tap
from tap import check, equal, test

SOURCE = pathlib.Path(sys.argv[2])


def text(*path):
    return SOURCE.joinpath(*path).read_text(encoding="utf-8")


VERSION = re.search(r"^  version: '(.*)',", text("meson.build"), re.M)[1]
PACKAGES = re.findall(r"^Package: (.*)$", text("packaging/debian/control"), re.M)


@test
def packages_have_the_version_of_the_tree():
    equal(re.match(r"weft \((.*)-\w+\)", text("packaging/debian/changelog"))[1], VERSION)
    check(f"{VERSION}}}" in text("packaging/weft.spec") and f"> - {VERSION}-1\n" in text("packaging/weft.spec"))
    check(f'version("{VERSION}")' in text("packaging/spack/package.py"))


@test
def the_library_is_packaged_by_its_soname():
    number = re.search(r"soversion: '(\d+)'", text("lib/meson.build"))[1]
    equal(set(PACKAGES), {"weft", "weft-modules", f"libweft{number}", "libweft-dev"})
    for name in PACKAGES:
        check((SOURCE / "packaging/debian" / f"{name}.install").exists(), name)


@test
def the_recipe_for_spack_names_options_of_meson():
    options = set(re.findall(r"^option\('(\w+)'", text("meson_options.txt"), re.M))
    for on in True, False:
        package, variants = spack_args.recipe(SOURCE / "packaging/spack/package.py", on)
        args = package.meson_args()
        check(variants and args, variants, args)
        equal([arg for arg in args if re.match(r"-D(\w+)=\w", arg)[1] not in options], [])


@test
def the_image_has_what_the_packages_are_built_with():
    control = re.search(r"^Build-Depends: (.*?)^\S", text("packaging/debian/control"), re.M | re.S)[1]
    needed = {re.match(r"[\w.+-]+", entry.strip())[0] for entry in control.split(",") if "nocheck" not in entry}
    installed = set(re.split(r"\s+", re.search(r"recommends (build-essential.*?)\nCOPY",
                                               text("packaging/Dockerfile"), re.S)[1].replace("\\\n", " ")))
    equal({name for name in needed if not name.startswith("debhelper")} - installed, set())


if __name__ == "__main__":
    tap.main()
