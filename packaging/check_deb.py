#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_deb.py SUITE: builds the packages for a release of Debian by the commands of packaging/Dockerfile, each
of its stages in a chroot of its own; tries what is installed in the second one; purges it, and looks for what is
left. As root. debootstrap's chroot is kept in build-distro/SUITE.base; everything is mounted in a mount namespace
of its own."""
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = "weft weft-modules libweft0 libweft-dev"
MOUNTS = """
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs tmpfs run
exec chroot . sh -ec "$2"
"""


def say(text):
    print("== " + text, flush=True)


def run(root, command, env=None):
    """Runs it in the chroot; its output is shown if it fails."""
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child",
             "sh", "-ec", MOUNTS, "sh", str(root), command]
    clean = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
             "LC_ALL": "C.UTF-8", **(env or {})}
    done = subprocess.run(words, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=3600, check=False)
    if done.returncode:
        print(done.stdout[-6000:] + done.stderr[-6000:], flush=True)
        sys.exit(f"failed ({done.returncode}): {command}")
    return done.stdout


def mirror():
    given = os.environ.get("WEFT_MIRROR")
    if given:
        return given
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                           "Origin: Debian", "Component: main"], capture_output=True, text=True, check=False)
    found = [line for line in said.stdout.split() if "security" not in line]
    return found[0] if found else sys.exit("apt knows no mirror yet: run apt-get update, or set WEFT_MIRROR")


def base(suite):
    root = TREE / "build-distro" / (suite + ".base")
    if not (root / ".made").exists():
        say(f"debootstrap {suite}")
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite, root, mirror()], check=True,
                       stdout=subprocess.DEVNULL)
        (root / ".made").touch()
    return root


def stages():
    """[[(instruction, words)]], one list per FROM."""
    text = (TREE / "packaging/Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.M))
    found = []
    for line in filter(None, text.split("\n")):
        what, words = line.split(None, 1)
        if what == "FROM":
            found.append([])
        elif found:
            found[-1].append((what, words))
    return found


def copy_tree(target):
    """What git tracks, as it is now; in a tree or on a machine without git, everything but builds. Never .git: Docker
    leaves it out too (.dockerignore)."""
    target.mkdir(parents=True)
    if (TREE / ".git").exists() and shutil.which("git"):
        names = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, capture_output=True, check=True).stdout
        packed = subprocess.run(["tar", "--null", "-T", "-", "-c"], cwd=TREE, input=names, capture_output=True, check=True)
    else:
        packed = subprocess.run(["tar", "--exclude=./build*", "--exclude=./.git", "-c", "."], cwd=TREE,
                                capture_output=True, check=True)
    subprocess.run(["tar", "-C", target, "-x"], input=packed.stdout, check=True)


@functools.lru_cache
def commit():
    """Of the tree when it was copied: it may go on meanwhile."""
    return subprocess.run([TREE / "packaging/package.sh", "commit"], capture_output=True, text=True,
                          check=True).stdout.strip()


def build_stage(instructions, root, before):
    """Does what Docker would do."""
    env = {}
    for what, words in instructions:
        if what == "ENV":
            env.update(word.split("=", 1) for word in shlex.split(words))
        elif what == "ARG":
            env.update({"WEFT_COMMIT": commit()} if words == "WEFT_COMMIT" else {})
        elif what == "COPY":
            *source, target = words.split()
            target = root / target.lstrip("/")
            if source[0].startswith("--from="):
                shutil.copytree(before / source[1].lstrip("/"), target)
            else:
                copy_tree(target)
        elif what == "RUN":
            say(words[:100])
            run(root, words, env)


def fresh(suite, stage):
    root = TREE / "build-distro" / f"{suite}.{stage}"
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", base(suite), root], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    return root


def files(root):
    """Everything but what apt and dpkg keep for themselves."""
    own = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "tmp", "proc", "sys", "dev", "run")
    found = set()
    for folder, names, plain in os.walk(root):
        inside = os.path.relpath(folder, root)
        names[:] = [name for name in names if os.path.normpath(os.path.join(inside, name)) not in own]
        found.update(os.path.normpath(os.path.join(inside, name)) for name in names + plain)
    return found


def none_of_ours(left):
    ours = sorted(path for path in left if re.search("weft|cxi_|ucx_perftest", path))
    if ours:
        sys.exit("left behind: " + " ".join(ours))


def try_tools(root, *more):
    """Every tool, with both ends on this machine, as an ordinary user."""
    listed = re.findall(r"^(\w*TOOL)\((\w+),", (TREE / "src/tool/tools.def").read_text(encoding="utf-8"), re.M)
    lines = ["weft --version", "weft info >/dev/null"]
    for kind, name in listed:
        if kind == "CXI_TOOL":
            lines.append(f"{name} --local -n 100 >/dev/null")
        elif kind == "LOOPBACK_TOOL":
            lines.append(f"{name} -n 10 >/dev/null")
    lines += ["weft_ucx_perftest --local -t put_lat -n 1000 -w 10 >/dev/null",
              f"weft_ucx_perftest --local -t put_lat -n 10 -w 1 --json - | grep -F '\"commit\": \"{commit()}\"'",
             "weft_ucx_perftest --list | grep -q ^uct:", "weft_ucx_perftest --list | grep -q ^ofi:", *more]
    for line in lines:
        print(f"   {line}", flush=True)
    script = root / "tmp/try.sh"
    script.write_text("set -ex\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(run(root, "exec setpriv --reuid=1000 --regid=1000 --clear-groups sh /tmp/try.sh"), flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_deb.py SUITE, for example bookworm")
    if os.getuid():
        sys.exit("A chroot needs root")
    suite = sys.argv[1]
    build, final = stages()
    made = fresh(suite, "build")
    build_stage(build, made, None)
    root = fresh(suite, "clean")
    before = files(root)
    out = TREE / "build-distro" / f"{suite}.packages"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(made / "packages", out)
    build_stage(final, root, made)
    try_tools(root, "test ! -e /usr/bin/ucx_perftest", "test -e /usr/share/doc/weft/doc/decisions.md",
              "test -e /usr/share/man/man1/weft_ucx_perftest.1.gz")
    say("the library and its header")
    shutil.copytree(out, root / "packages")
    run(root, "apt-get update && apt-get install -y --no-install-recommends /packages/libweft0_*.deb "
              "/packages/libweft-dev_*.deb && rm -rf /packages")
    run(root, "test -e /usr/include/weft.h && ls /usr/lib/*/libweft.so")
    say("purge")
    run(root, f"apt-get purge -y {PACKAGES} && apt-get autoremove -y --purge && rm -rf /var/lib/apt/lists/*")
    left = files(root) - before
    none_of_ours(left)
    # What other packages need has come to stay, such as adduser.
    print(f"   {len(left)} files of other packages are left, none of Weft", flush=True)
    for stage in "build", "clean":
        shutil.rmtree(TREE / "build-distro" / f"{suite}.{stage}")
    say(f"{suite}: the packages install, run and leave nothing; they are in {out}")


if __name__ == "__main__":
    main()
