# SPDX-License-Identifier: BSD-3-Clause
"""Other users of the machine: what they put where results are written or read, what they set in the
environment of a program with more rights, and what they write into names and documents."""
import os
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
import documents
import tap
from tap import Process, check, ended, equal, one_sentence, run, skip, test

WRITE, WEFT = tap.tool_path("cxi_write_lat"), tap.tool_path("weft")
QUICK = ("--local", "-d", "null", "-n", "10", "--latency-gap", "0")
ANOTHER = 65534  # a user that owns nothing here


def as_root():
    if os.geteuid():
        skip("only root can make files of another user")


def common_folder():
    """Where everybody may create files, as /tmp."""
    place = os.path.join(tap.folder(), "common")
    os.mkdir(place)
    os.chmod(place, 0o1777)
    return place


def written(path, text="precious\n"):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def refused(path, *words):
    """A sentence about path, nothing measured, and nothing left behind."""
    before = sorted(os.listdir(os.path.dirname(path)))
    process = run(WRITE, *QUICK, "--json", path, limit=20)
    equal(process.code, 1, process)
    check(all(word in one_sentence(process, "cxi_write_lat") for word in (*words, "another user")),
          process)
    equal(process.out, "", process)
    equal(sorted(os.listdir(os.path.dirname(path))), before)


# ---- files of others ----

@test
def a_link_of_another_user_in_a_common_folder_is_not_followed():
    as_root()
    victim = written(os.path.join(tap.folder(), "victim"))
    link = os.path.join(common_folder(), "result.json")
    os.symlink(victim, link)
    os.lchown(link, ANOTHER, ANOTHER)
    refused(link, "result.json", "link")
    equal(content(victim), "precious\n")
    check(os.path.islink(link), "the link was replaced")


@test
def a_link_of_another_user_on_the_way_is_not_followed_either():
    as_root()
    victim, place = tap.folder(), common_folder()
    os.symlink(victim, os.path.join(place, "way"))
    os.lchown(os.path.join(place, "way"), ANOTHER, ANOTHER)
    refused(os.path.join(place, "way", "result.json"), "way", "link")
    # Nor by a link of our own to it.
    own = os.path.join(tap.folder(), "own.json")
    os.symlink(os.path.join(place, "way", "result.json"), own)
    refused(own, "link")
    equal(os.listdir(victim), [])


@test
def a_file_or_pipe_of_another_user_in_a_common_folder_is_not_written():
    as_root()
    place = common_folder()
    bait = written(os.path.join(place, "bait.json"))
    os.chmod(bait, 0o666)  # the document would get this mode
    os.chown(bait, ANOTHER, ANOTHER)
    refused(bait, "bait.json", "file")
    equal(content(bait), "precious\n")
    pipe = os.path.join(place, "pipe.json")
    os.mkfifo(pipe)
    os.chown(pipe, ANOTHER, ANOTHER)
    refused(pipe, "pipe.json", "pipe")


@test
def a_folder_of_another_user_is_not_taken_for_the_documents_of_repeat():
    as_root()
    theirs = os.path.join(common_folder(), "runs")
    os.mkdir(theirs)
    os.chown(theirs, ANOTHER, ANOTHER)
    process = run(WEFT, "repeat", "-o", theirs, "1", "--", WRITE, *QUICK)
    equal(process.code, 1, process)
    check("another user" in process.err, process)
    equal(os.listdir(theirs), [])


@test
def links_of_our_own_and_of_the_owner_of_the_folder_are_followed():
    as_root()
    for owner, of_folder in ((0, 0), (0, ANOTHER), (ANOTHER, ANOTHER)):
        place, target = common_folder(), os.path.join(tap.folder(), "target.json")
        link = os.path.join(place, "result.json")
        os.symlink(target, link)
        os.lchown(link, owner, owner)
        os.chown(place, of_folder, of_folder)
        ended(Process([WRITE, *QUICK, "--json", link]), 0)
        check(os.path.islink(link) and content(target).startswith("{"), link)


@test
def a_file_that_two_names_have_keeps_its_content_under_the_other():
    place = common_folder()
    victim = written(os.path.join(place, "victim"))
    os.link(victim, os.path.join(place, "result.json"))
    ended(Process([WRITE, *QUICK, "--json", os.path.join(place, "result.json")]), 0)
    equal(content(victim), "precious\n")
    equal(sorted(os.listdir(place)), ["result.json", "victim"])


@test
def a_descriptor_of_another_process_is_written_as_it_is():
    with open(os.path.join(tap.folder(), "log"), "w+", encoding="utf-8") as log:
        own = os.path.join(tap.folder(), "link")
        os.symlink(f"/proc/{os.getpid()}/fd/{log.fileno()}", own)
        ended(Process([WRITE, *QUICK, "--json", own]), 0)
        check(content(log.name).startswith("{"), content(log.name)[:200])


# ---- documents of others ----

@test
def what_is_no_file_in_a_folder_of_results_is_refused_at_once():
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        place = tap.folder()
        make(os.path.join(place, "x.json"))
        for command in (("report", place, "-o", "-"), ("compare", place, place)):
            process = run(WEFT, *command, limit=20)
            equal(process.code, 2, process)
            check("x.json: is a pipe or a device, not a file" in process.err, process)


@test
def a_pipe_that_is_named_is_read():
    with open(documents.write(os.path.join(tap.folder(), "a.json"), documents.document()), "rb") as file:
        tap.need_weft([WEFT])
        done = subprocess.run([WEFT, "report", "/dev/stdin", "-o", "-"], stdin=file, timeout=30,
                              capture_output=True, check=False)
    equal(done.returncode, 0, done.stderr)


# ---- the terminal ----

EVIL = "a\x1b[2Jb\u009b2Jc\x07"


@test
def documents_and_names_cannot_command_the_terminal():
    place = os.path.join(tap.folder(), EVIL)
    found = documents.document()
    found["results"][0]["fabric"]["form"] = EVIL
    os.mkdir(place)
    path = documents.write(os.path.join(place, EVIL + ".json"), found)
    for command in (("compare", path, path), ("compare", place, place), ("report", place, "-o", place)):
        process = run(WEFT, *command)
        text = process.raw["out"] + process.raw["err"]
        check(b"J" in text, process)
        check(not set(text) & {0x1b, 0x07, 0x9b}, text)


@test
def a_sentence_with_a_lone_byte_of_c1_is_clean():
    process = run(WRITE, b"--device=\x9b2J\xc2\x9b2J\xc3\xbc", "--local")
    check(process.code in (1, 2), process.code)
    check(b"\x9b" not in process.raw["err"] and b"\xc3\xbc" in process.raw["err"],
          process.raw["err"])


# ---- the environment ----

@test
def a_program_with_more_rights_than_its_caller_heeds_no_paths_of_the_environment():
    as_root()
    if tap.SANITIZED:
        skip("sanitizers do not run with rights of another user")
    place = tap.folder()
    os.chmod(place, 0o755)
    if os.statvfs(place).f_flag & os.ST_NOSUID:
        skip(f"{place} is on a file system where programs cannot have rights of their own")
    services = written(os.path.join(place, "services"), "not a service\n")
    modules = os.path.join(place, "modules")
    shutil.copytree(tap.doubles_folder(), modules, ignore=lambda _, names: [
        name for name in names if name != "weft-counts.so"])
    tool = shutil.copy(WRITE, os.path.join(place, "cxi_write_lat"))
    os.chown(tool, ANOTHER, ANOTHER)

    def said(mode, device, **env):
        os.chmod(tool, mode)
        done = subprocess.run([tool, "--local", "-n", "1", "-d", device], user=1, group=1, env=env,
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    for device, env, plain, with_rights in (("counts", {"WEFT_MODULE_PATH": modules}, 0, 1),
                                            ("cxi0", {"WEFT_SERVICES": services}, 2, 0)):
        code, sentence = said(0o755, device, **env)
        equal(code, plain, device, sentence)
        code, sentence = said(0o755 | stat.S_ISUID, device, **env)
        equal(code, with_rights, device, sentence)


if __name__ == "__main__":
    tap.main()
