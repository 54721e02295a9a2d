#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""packaging_test.py BUILD SOURCE: packages say what the tree says, and a tarball has what the tree has."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

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
def pages_keep_their_names_and_folders_in_packages():
    check("usr/share/doc/weft\n" in text("packaging/debian/weft.install"))
    check("%doc %{_datadir}/doc/weft\n" in text("packaging/weft.spec"))
    kept = set(re.findall(r"-X(\.\w+)", re.search(r"\tdh_compress(.*)", text("packaging/debian/rules"))[1]))
    pages = re.search(r"^foreach folder, names : \{\n(.*?)\}\n", text("share/meson.build"), re.M | re.S)[1]
    equal(set(re.findall(r"(\.\w+)'", pages)) - kept, set())


@test
def the_recipe_for_spack_names_options_of_meson():
    options = set(re.findall(r"^option\('(\w+)'", text("meson_options.txt"), re.M))
    for on in True, False:
        package, variants = spack_args.recipe(SOURCE / "packaging/spack/package.py", on)
        args = package.meson_args()
        check(variants and args, variants, args)
        given = {re.match(r"-D(\w+)=\w", arg)[1] for arg in args}
        equal(given - options, set())
        # Left to chance, a library that happens to be there would be linked.
        equal(set(re.findall(r"^option\('(\w+)', type: 'feature'", text("meson_options.txt"), re.M)) - given, set())


def control_needs(tests):
    """What debian/control has, with what only tests need or without."""
    control = re.search(r"^Build-Depends: (.*?)^\S", text("packaging/debian/control"), re.M | re.S)[1]
    found = {re.match(r"[\w.+-]+", entry.strip())[0] for entry in control.split(",") if tests or "nocheck" not in entry}
    return {name.replace("debhelper-compat", "debhelper") for name in found}


def spec_needs(tests):
    """What weft.spec has, by Debian's names."""
    spec = text("packaging/weft.spec")
    conditional = re.search(r"^%if %\{with tests\}\n(BuildRequires:.*?)^%endif", spec, re.M | re.S)[0]
    lines = re.findall(r"^BuildRequires:(.*)$", spec if tests else spec.replace(conditional, ""), re.M)
    return {re.sub(r"^(?:lib)?(\w+)-devel$", r"lib\1-dev", re.sub(r" >=.*", "", name.strip()))
            .replace("liblib", "lib").replace("pkgconf-pkg-config", "pkg-config")
            for line in lines for name in line.split(",")}


@test
def packages_need_every_library_that_is_linked():
    libraries = set(re.findall(r"^FABRIC_MODULE\(\w+, \"([^\"]+)\"", text("src/fabric/fabrics.def"), re.M))
    libraries |= set(re.findall(r"\bdependency\('([\w-]+)'", text("modules/meson.build") + text("src/meson.build")))
    mpi = {"ompi-c": "libopenmpi-dev", "mpich": "libmpich-dev"}
    names = {"ucx-uct": "libucx-dev", "libfabric": "libfabric-dev", **mpi}
    needed = {names.get(name, f"lib{name.split('-')[0]}-dev") for name in libraries}
    equal(needed - control_needs(False), set())
    equal(needed - spec_needs(False) - set(mpi.values()), set())


@test
def make_installs_what_packages_are_built_with():
    if not shutil.which("make"):
        tap.skip("make is missing")
    for target, needs in ("need-deb", control_needs), ("need-rpm", spec_needs):
        for tests, words in (True, ()), (False, ("DEB_BUILD_PROFILES=nocheck", "RPM_FLAGS=--without tests")):
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("MAKEFLAGS", "DEB_BUILD_PROFILES", "RPM_FLAGS")}
            said = subprocess.run(["make", "-n", "-C", SOURCE, target, *words], env=clean, capture_output=True,
                                  text=True, timeout=60)
            equal(said.returncode, 0, said.stderr)
            named = set(re.findall(r"=([\w.+-]+)", said.stdout))
            equal(needs(tests) - named, set(), target, tests)
            equal(named & (control_needs(True) - control_needs(False)),
                  control_needs(True) - control_needs(False) if tests else set(), target, tests)


@test
def the_image_has_what_the_packages_are_built_with():
    needed = control_needs(False)
    installed = set(re.split(r"\s+", re.search(r"recommends (build-essential.*?)\nCOPY",
                                               text("packaging/Dockerfile"), re.S)[1].replace("\\\n", " ")))
    equal(needed - installed, set())


# ---- tarballs, of a tree that is small ----

def commands(*names, **scripts):
    """A folder with these commands of this machine and these scripts, to be all of PATH."""
    place = pathlib.Path(tap.folder())
    for name in names:
        (place / name).symlink_to(shutil.which(name))
    for name, script in scripts.items():
        (place / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (place / name).chmod(0o755)
    return place


NEEDED = ("cat", "dirname", "find", "gzip", "mkdir", "mv", "rm", "sed", "sh", "sort", "stat", "tar")


def small_tree(*more):
    """With what package.sh reads, and these files."""
    tree = pathlib.Path(tap.folder())
    (tree / "packaging").mkdir()
    shutil.copy(SOURCE / "packaging/package.sh", tree / "packaging")
    (tree / "meson.build").write_text(text("meson.build"), encoding="utf-8")
    for name in more:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name, encoding="utf-8")
    return tree


def dist(tree, path):
    """The tarball, and what it has; with only these commands."""
    done = subprocess.run(["sh", tree / "packaging/package.sh", "dist"], env={"PATH": str(path)},
                          capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, done.stdout, done.stderr)
    tarball = tree / f"build-dist/weft-{VERSION}.tar.gz"
    equal(done.stdout, f"{tarball}\n", done.stderr)
    with tarfile.open(tarball) as packed:
        return tarball, {name.removeprefix(f"weft-{VERSION}/") for name in packed.getnames()}


@test
def a_clone_on_a_machine_without_git_makes_a_tarball_of_all_but_git_and_builds():
    tree = small_tree(".git/config", "build/tool", "build-asan/tool", "tests/__pycache__/x.pyc", "src/build/kept",
                      ".ci")
    _, names = dist(tree, commands(*NEEDED))
    equal(names, {"meson.build", "packaging/package.sh", "src/build/kept", ".ci", "COMMIT"})


@test
def what_cannot_be_listed_or_packed_makes_no_tarball():
    for broken in "git", "sort", "tar", "gzip":
        tree = small_tree(".git/config")
        path = commands(*set(NEEDED) - {broken}, **{"git": "echo meson.build", broken: "exit 1"})
        done = subprocess.run(["sh", tree / "packaging/package.sh", "dist"], env={"PATH": str(path)},
                              capture_output=True, text=True, timeout=60)
        check(done.returncode != 0, broken, done.stdout, done.stderr)
        equal(list(tree.rglob("*.tar.gz")), [], broken)


def commit_in(tarball):
    with tarfile.open(tarball) as packed:
        return packed.extractfile(f"weft-{VERSION}/COMMIT").read().decode()


@test
def a_tarball_names_its_commit_and_one_made_of_it_is_the_same():
    if not shutil.which("git"):
        tap.skip("git is missing")
    tree, path = small_tree("file"), commands(*NEEDED, "git")

    def git(*words):
        done = subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], cwd=tree,
                              capture_output=True, text=True, timeout=60)
        equal(done.returncode, 0, done.stderr)
        return done.stdout

    for words in ("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one"), ("tag", "v1"):
        git(*words)
    commit = git("rev-parse", "--short=12", "HEAD").strip()
    (tree / "untracked").write_text("")
    tarball, names = dist(tree, path)
    equal((commit_in(tarball), names), (f"{commit}\n", {"meson.build", "packaging/package.sh", "file", "COMMIT"}))
    (tree / "file").write_text("changed")
    tarball, _ = dist(tree, path)
    equal(commit_in(tarball), f"{commit}+\n")
    other = pathlib.Path(tap.folder())
    subprocess.run(["tar", "-C", other, "-xzf", tarball], check=True, timeout=60)
    again, _ = dist(other / f"weft-{VERSION}", path)
    equal(again.read_bytes(), tarball.read_bytes())
    # The build of a clone says the same.
    asked = re.search(r"'describe'(?:, '[^']*')+", text("src/meson.build"))[0].replace("'", "").split(", ")
    equal(git(*asked), f"{commit}+\n")


@test
def a_tree_without_git_is_told_its_commit():
    """As by the image's build argument."""
    tree, path = small_tree(), commands(*NEEDED)
    for given, wanted in ({}, "unknown"), ({"WEFT_COMMIT": ""}, "unknown"), ({"WEFT_COMMIT": "abc"}, "abc"):
        said = subprocess.run(["sh", tree / "packaging/package.sh", "commit"], env={"PATH": str(path), **given},
                              capture_output=True, text=True, timeout=60)
        equal((said.stdout, said.stderr), (f"{wanted}\n", ""), given)


@test
def the_image_is_built_of_what_a_tarball_has():
    """Neither a clone's history nor its builds are copied into it."""
    check("ARG WEFT_COMMIT\nCOPY . /weft\n" in text("packaging/Dockerfile"))
    equal(set(text(".dockerignore").split()), {".git", "build*", "**/__pycache__"})


# ---- the matrix, with commands that build nothing ----

MATRIX = ("cat", "chown", "date", "dirname", "grep", "mkdir", "rm", "rmdir", "sh", "sleep", "tail", "tar", "xargs")


def matrix(*entries, **scripts):
    """What matrix.sh prints in a small tree, on a machine of eight CPUs."""
    tree = small_tree()
    (tree / "tests/house").mkdir(parents=True)
    shutil.copy(SOURCE / "tests/house/matrix.sh", tree / "tests/house")
    path = commands(*MATRIX, nproc="echo 8", id="echo 1000", gcc="exit 0", **{"pkg-config": "exit 0"}, **scripts)
    done = subprocess.run(["tests/house/matrix.sh", *entries], cwd=tree, env={"PATH": str(path)}, capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@test
def logs_of_failing_entries_are_printed_one_after_the_other():
    meson = "for n in 1 2 3; do echo \"$2 $n\"; sleep 0.1; done; exit 1"
    code, said = matrix("without-UCX", "without-MPI", meson=meson)
    check(code == 1 and said.count("FAIL  ") == 2 and "FAIL  " not in said[said.index("== "):], said)
    for name in "without-UCX", "without-MPI":
        check(re.search(rf"^== {name}\n(.*/{name} [123]\n){{3}}(==|matrix: FAILED)", said, re.M), said)


@test
def no_entry_of_the_matrix_takes_all_cpus():
    """Four at a time on eight CPUs have three processes each."""
    shows = 'echo "$(basename "$0") $*"; [ "$1" != test ]'
    code, said = matrix("archive", meson=shows, ninja=shows, basename='echo "${1##*/}"')
    check(code == 1 and "ninja -j 3 -C build\n" in said, said)
    check(re.search(r"^meson test .*--num-processes 3 ", said, re.M), said)


if __name__ == "__main__":
    tap.main()
