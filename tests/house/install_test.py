#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""install_test.py BUILD SOURCE: what is installed can be used by others. The build is installed into
a scratch folder; the examples are built there with what pkg-config says and nothing else, and run."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

import tap
from tap import check, equal, skip

SOURCE = pathlib.Path(sys.argv[2])
_root = []
_installing = threading.Lock()  # the build remembers one installation


def install(folder, *words):
    done = subprocess.run(["meson", "install", "-C", tap.build_folder(), "--no-rebuild", *words,
                           "--destdir", folder], capture_output=True, text=True, timeout=120)
    equal(done.returncode, 0, done.stdout, done.stderr)


def root():
    """Where it is installed; the prefix is below."""
    if tap.SANITIZED:
        skip("a sanitized library needs a sanitized program")
    if not shutil.which("pkg-config") or not shutil.which("meson"):
        skip("pkg-config or meson is missing")
    with _installing:
        if not _root:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-install-"))
            tap.at_exit(lambda: shutil.rmtree(folder, ignore_errors=True))
            install(folder)
            _root.append(folder)
    return _root[0]


def option(name):
    said = subprocess.run(["meson", "introspect", "--buildoptions", tap.build_folder()],
                          capture_output=True, text=True, timeout=60).stdout
    return {row["name"]: row["value"] for row in json.loads(said)}[name]


def library_folder():
    found = list(root().rglob("libweft.so"))
    equal(len(found), 1, found)
    return found[0].parent


def words(*args):
    """What pkg-config says, as a list."""
    place = library_folder() / "pkgconfig"
    said = subprocess.run(["pkg-config", *args, "weft"], capture_output=True, text=True, timeout=20,
                          env={**os.environ, "PKG_CONFIG_PATH": str(place),
                               "PKG_CONFIG_SYSROOT_DIR": str(root())})
    equal(said.returncode, 0, said.stderr)
    return shlex.split(said.stdout)


def build(source, *flags, compiler="cc"):
    program = pathlib.Path(tap.folder()) / "program"
    done = subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", source, *flags, "-o", program],
                          capture_output=True, text=True, timeout=120)
    equal(done.returncode, 0, done.stderr)
    return program


def example(name):
    return build(SOURCE / "examples" / name, *words("--cflags", "--libs"), "-pthread")


def start(program, *args):
    return tap.Process([str(program), *args], limit=60,
                       env={"LD_LIBRARY_PATH": str(library_folder())})


def run(program):
    return tap.ended(start(program), 0).out


def looks_right(out):
    check("in all 100000 messages there and back: median " in out, out)
    check("carried by soft" in out, out)


@tap.test
def a_folder_that_is_set_up_follows_the_prefix_that_is_given():
    def plan(*words):
        done = tap.run("make", "-n", "-C", str(SOURCE), "install", f"BUILD={tap.build_folder()}",
                       *words, env={"MAKEFLAGS": ""})
        lines = tap.ended(done, 0).out.split("\n")
        return [line for line in lines if line.startswith("meson configure")]

    equal(plan(), [f"meson configure {tap.build_folder()} --prefix /usr/local "])
    equal(plan("PREFIX=/opt/x", "MESON_FLAGS=-Dtool_prefix=w_"),
          [f"meson configure {tap.build_folder()} --prefix /opt/x -Dtool_prefix=w_"])


@tap.test
def what_is_uninstalled_leaves_no_file():
    root()
    folder = pathlib.Path(tap.folder())
    with _installing:
        install(folder)
        there = [path.name for path in folder.rglob("bin/*")]
        done = subprocess.run(["ninja", "-C", tap.build_folder(), "uninstall"], capture_output=True,
                              text=True, timeout=60)
    equal(done.returncode, 0, done.stdout, done.stderr)
    check("cxi_write_lat" in there and "ucx_perftest" in there, there)
    equal([path for path in folder.rglob("*") if not path.is_dir()], [])


@tap.test
def tools_belong_to_the_runtime_and_are_stripped_on_demand():
    root()
    folder = pathlib.Path(tap.folder())
    with _installing:
        install(folder, "--tags", "runtime", "--strip")
    tools = list(folder.rglob("bin/*"))
    check(len(tools) > 10, tools)
    for path in tools:
        said = subprocess.run(["nm", path], capture_output=True, text=True, timeout=20)
        check("no symbols" in said.stderr, path, said.stdout[:200], said.stderr)


@tap.test
def pages_name_the_folders_of_the_build():
    pages = {path.name: path.read_text(encoding="utf-8") for path in root().rglob("man?/*")}
    etc = os.path.join(option("prefix"), option("sysconfdir"), "weft/services")
    check(f".It Pa {etc}\n" in pages["weft.7"], etc)
    equal(pages["weft_session_run.3"], ".so man3/weft_run.3\n")


@tap.test
def the_schemas_of_what_is_written_are_installed():
    for name, version in ("result", 1), ("result", 2), ("comparison", 1), ("info", 3), ("map", 1):
        found = list(root().rglob(f"weft/weft-{name}-{version}.schema.json"))
        equal(len(found), 1, found)
        text = found[0].read_text(encoding="utf-8")
        equal(json.loads(text)["properties"]["schema"], {"const": f"weft-{name}"})


@tap.test
def pages_are_installed_with_all_that_they_link():
    folder = next(root().rglob("doc/weft/README.md")).parent
    equal({path.name for path in (folder / "doc").glob("*.md")}, {path.name for path in (SOURCE / "doc").glob("*.md")})
    for page in sorted(folder.rglob("*.md")):
        links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        equal([link for link in links if not (page.parent / link).is_file()], [], page)


def without_jansson_only_weft_is_missing(installed):
    listed = re.findall(r"^\w*TOOL\((\w+),", (SOURCE / "src/tool/tools.def").read_text(encoding="utf-8"), re.M)
    tools = {path for path in installed if "/bin/" in path}
    equal(tools, {f"/usr/local/bin/{name}" for name in listed if name not in ("weft", "ucx_perftest")} |
          {"/usr/local/lib/weft/bin/ucx_perftest", "/usr/local/bin/weft_ucx_perftest"})
    pages = {os.path.basename(path) for path in installed if "/man1/" in path}
    equal(pages, {f"{name}.1" for name in listed if name not in ("weft", "ucx_perftest")} |
          {"weft_ucx_perftest.1"})


@tap.test
def a_tree_without_git_names_the_commit_of_its_tarball_and_no_folder():
    """Also inside another repository. This build has no jansson, and another package has a ucx_perftest."""
    outer = pathlib.Path(tap.folder())
    if not shutil.which("meson") or not shutil.which("git"):
        skip("meson or git is missing")
    subprocess.run(["git", "init", "-q", outer], check=True, timeout=20)
    tree = outer / "weft"
    shutil.copytree(SOURCE, tree, ignore=lambda path, names: [
        name for name in names if path == str(SOURCE) and (name in (".git", "COMMIT") or name.startswith("build"))])

    def done(*command):
        ended = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=90)
        check(ended.returncode == 0, ended.stdout, ended.stderr)

    def made(name):
        return (tree / "build/src" / name).read_text(encoding="utf-8")

    done("meson", "setup", "build", "-Dtests=disabled", "-Dmpi=disabled", "-Duct=disabled", "-Dofi=disabled",
         "-Djansson=disabled", "-Daside=ucx_perftest", f"-Dc_args=-ffile-prefix-map={tree}=.")
    done("ninja", "-C", "build", "src/commit.c")
    check('"unknown"' in made("commit.c"), made("commit.c"))
    check(str(outer) not in made("commit.c") + made("build.c"), made("commit.c"), made("build.c"))
    (tree / "COMMIT").write_text("0123456789ab+\n", encoding="utf-8")
    done("meson", "setup", "--reconfigure", "build")
    done("ninja", "-C", "build", "src/commit.c")
    check('"0123456789ab+"' in made("commit.c"), made("commit.c"))
    said = subprocess.run(["meson", "introspect", "--installed", "build"], cwd=tree, capture_output=True, text=True,
                          timeout=60)
    without_jansson_only_weft_is_missing(json.loads(said.stdout).values())


@tap.test
def the_example_runs_with_what_pkg_config_says():
    looks_right(run(example("two_threads.c")))


@tap.test
def every_example_is_tried():
    equal(sorted(path.name for path in (SOURCE / "examples").iterdir()),
          ["four_threads.c", "read_latency.c", "session.c", "two_threads.c"])


@tap.test
def the_example_of_four_threads_adds_them_up():
    line, = tap.lines_of(run(example("four_threads.c")))
    check(re.fullmatch(r"400000 messages by 4 threads over soft .*: \d+ MB/s, \d+ messages a second",
                       line), line)


@tap.test
def two_processes_run_the_example_of_read_latency():
    program, port = example("read_latency.c"), tap.free_port()
    check(len((SOURCE / "examples/read_latency.c").read_text(encoding="utf-8").split("\n")) <= 60)
    server = start(program, port)
    client = tap.ended(start(program, port, "127.0.0.1"), 0)
    equal(tap.ended(server, 0).out, "", server)
    lines = tap.lines_of(client.out)
    equal([line.split()[0] for line in lines[:-1]], [str(8 << i) for i in range(10)], client)
    for line in lines[:-1]:
        check(re.fullmatch(r" *\d+ bytes: min [\d.]+, median [\d.]+, mean [\d.]+ us, "
                           r"50 % [\d.]+, 90 % [\d.]+, 99 % [\d.]+, 99\.9 % [\d.]+", line),
              line, client)
    check(lines[-1].startswith("carried by soft"), client)


@tap.test
def the_example_of_a_session_runs_two_tests():
    lines = tap.lines_of(run(example("session.c")))
    equal(len(lines), 2, lines)
    check(re.fullmatch(r"write of 64 bytes, latency: median [\d.]+ us", lines[0]), lines)
    check(re.fullmatch(r"read of 1048576 bytes, stream: median [\d.]+ us, \d+ MB/s", lines[1]),
          lines)


@tap.test
def the_example_runs_when_linked_statically():
    archive = library_folder() / "libweft.a"
    if option("default_library") == "shared":
        skip("this build has no static library")
    check(archive.exists(), "no libweft.a")
    private = [w for w in words("--libs", "--static") if w not in ("-lweft",)]
    program = build(SOURCE / "examples/two_threads.c", *words("--cflags"), archive, *private,
                    "-pthread")
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=20).stdout
    check("libweft" not in needed, needed)
    looks_right(run(program))


@tap.test
def neither_library_has_another_name_than_weft():
    libraries = [(library_folder() / "libweft.so", ["-D"])]
    if option("default_library") != "shared":
        libraries.append((library_folder() / "libweft.a", ["-g"]))
    for path, flags in libraries:
        names = subprocess.run(["nm", *flags, "--defined-only", path], capture_output=True,
                               text=True, timeout=20).stdout.split("\n")
        names = [n.split()[-1] for n in names if len(n.split()) == 3]
        check(len(names) > 10, names)
        equal([n for n in names if not n.lower().startswith("weft_")], [])


@tap.test
def the_shared_librarys_names_are_versioned():
    names = subprocess.run(["nm", "-D", "--defined-only", library_folder() / "libweft.so"],
                           capture_output=True, text=True, timeout=20).stdout
    for name in "weft_run", "weft_session_open":
        check(f" {name}@@WEFT_0_2\n" in names, names)


@tap.test
def the_header_alone_suffices_in_c_and_in_cplusplus():
    for compiler, suffix in (("cc", "c"), ("c++", "cc")):
        if not shutil.which(compiler):
            tap.note(f"no {compiler} here")
            continue
        text = "#include <weft.h>\nint main(void) { return weft_version()[0] == 0; }\n"
        source = pathlib.Path(tap.folder()) / f"header.{suffix}"
        source.write_text(text)
        run(build(source, *words("--cflags", "--libs"), compiler=compiler))


@tap.test
def an_installed_tool_finds_its_modules():
    tools = list(root().rglob("bin/ucx_perftest"))
    equal(len(tools), 1, tools)
    if not list(root().rglob("weft-uct.so")):
        skip("the module for UCX was not built")
    env = {**os.environ, "WEFT_MODULE_PATH": str(library_folder() / "weft")}
    said = subprocess.run([tools[0], "--list"], capture_output=True, text=True, timeout=30, env=env)
    check("uct:tcp/lo" in said.stdout, said.stdout, said.stderr)


if __name__ == "__main__":
    tap.main(workers=1)
