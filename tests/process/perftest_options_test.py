# SPDX-License-Identifier: BSD-3-Clause
"""Options of ucx_perftest that users of current UCX type, on the software NIC and on UCX's protocol layer, with the
data checked; what makes no sense is refused in a sentence."""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from lists import perf_tests
from tap import Client, Server, add, check, ended, equal, file_with, one_sentence, run, sentences, skip, test

TOOL = tap.tool_path("ucx_perftest")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODULE = os.path.join(tap.build_folder(), "modules", "weft-ucp.so")
FABRICS = {"soft": ("-x", "soft"), "posix": ("-x", "ucp:posix"), "tcp": ("-x", "ucp:tcp", "-d", "lo")}
QUICK = ("-n", "10", "-w", "1", "--interval", "0", "-v")


def need(fabric):
    if fabric != "soft" and not os.path.exists(MODULE):
        skip("weft-ucp.so is not built")


def batch(fabric, lines, *args):
    """All of them in one process: each has its row."""
    need(fabric)
    process = ended(run(TOOL, "--loopback", *QUICK, *FABRICS[fabric], *args, "-b", file_with("\n".join(lines) + "\n"),
                        limit=60), 0)
    rows = [row.split(",")[:2] for row in process.out.splitlines()[1:]]
    equal(rows, [[line.split()[0], "20" if "-T 2" in line else "10"] for line in lines], process)
    return process


def refused(code, words, *args):
    process = run(TOOL, "--loopback", *QUICK, *args)
    equal(process.code, code, process)
    check(words in process.err, words, process)


# ---- both ends in one process ----

def loops(fabric):
    names = [name for name, *_ in perf_tests(SOURCE) if fabric != "soft" or not name.startswith("stream_")]
    batch(fabric, [f"{name} -t {name}" for name in names] + ["threads -t tag_bw -T 2"], "--verify")


for fabric in FABRICS:
    add(f"every test has both its ends in one process on {fabric}", loops, fabric)


@test
def one_process_is_no_client_of_another():
    for args, words in ((("127.0.0.1",), "the address"), (("--local",), "--local"), (("-l",), "--loop")):
        refused(2, f"--loopback is both ends in this process: leave out {words}", "-t", "get", *args)
    process = ended(run(TOOL, "--loopback", "-t", "put_lat", "-x", "uct:nothing"), 1)
    check("nothing" in one_sentence(process, "ucx_perftest"), process)


# ---- pieces, and nothing ----

def pieces(fabric):
    lines = ["short -t tag_lat -s 3,5,7 -D iov,iov -i 9", "send -t tag_lat -s 512,512 -D iov,contig -i 8192",
             "recv -t tag_lat -s 512,512 -D contig,iov", "long -t tag_bw -s 8192:4,1 -D iov,iov -i 10000",
             "pulled -t tag_bw -s 40000,50000 -D iov", "sync -t tag_sync_bw -s 100:32 -D iov,iov -i 200",
             "early -t tag_lat -s 9000,9000 -D iov,iov -U", "one -t tag_lat -s 16,16 -D contig,contig",
             "alone -t tag_lat -s 64 -D iov,iov", "am -t ucp_am_lat -s 5,6 -D iov -i 100",
             "am_long -t ucp_am_bw -s 9000,9000 -D iov -H 16",
             "none -t tag_lat -s 0", "none_bw -t tag_bw -s 0", "none_am -t ucp_am_lat -s 0 -H 16",
             "none_am_bw -t ucp_am_bw -s 0"]
    if fabric != "soft":
        lines += ["stream -t stream_lat -s 3,5 -D iov -i 9", "stream_bw -t stream_bw -s 20000,20000 -D iov"]
    batch(fabric, lines, "--verify")


for fabric in FABRICS:
    add(f"messages in pieces and of nothing arrive whole on {fabric}", pieces, fabric)


@test
def wrong_data_in_pieces_is_noticed():
    refused(1, "byte 0 is", "-x", "corrupts_all", "-t", "tag_lat", "-s", "32,32", "-D", "iov,iov", "-i", "64",
            "--verify", "-n", "100")


@test
def pieces_that_make_no_sense_are_refused():
    for code, words, args in (
            (2, "a piece of 9 bytes does not fit into a stride of 8",
             ("tag_lat", "-s", "8,9", "-i", "8", "-D", "iov")),
            (2, "--size has too many parts", ("tag_lat", "-s", "8:33")),
            (2, "--size has too many parts", ("tag_lat", "-s", "8:0")),
            (2, "--size is not a whole number", ("tag_lat", "-s", "8,x")),
            (2, "--size is not a whole number", ("tag_lat", "-s", "8,")),
            (2, "--layout is not known", ("tag_lat", "-D", "iov,iof")),
            (2, "a piece of 0 bytes", ("tag_lat", "-s", "8,0", "-D", "iov")),
            (2, "put in ping-pong cannot be sent from pieces", ("put_lat", "-s", "8,8", "-D", "iov")),
            (2, "am in ping-pong cannot be received into pieces", ("ucp_am_lat", "-s", "8,8", "-D", "contig,iov")),
            (2, "pieces are for a header that is not part of the message", ("am_lat", "-s", "8,8", "-D", "iov")),
            (2, 'size is out of range: "0" (accepted: 1 to', ("put_lat", "-s", "0")),
            (2, "where its header is part of an active message", ("am_lat", "-s", "0"))):
        refused(code, words, "-x", "soft", "-t", *args)


@test
def a_fabric_without_pieces_says_so():
    process = run(TOOL, "--loopback", *QUICK, "-x", "ofi:tcp", "-d", "lo", "-t", "tag_lat", "-s", "8,8", "-D", "iov")
    check(process.code == 1 and ("in one piece only" in process.err or "not installed" in process.err), process)


# ---- as they are typed for UCX's own tool ----

def typed(fabric):
    lines = ["any -t tag_lat -C", "probed -t tag_lat -U", "any_probed -t tag_bw -UC -O 0", "awake -t tag_lat -I",
             "asleep -t tag_bw -I -E sleep", "asleep_probed -t tag_lat -U -E sleep",
             "asleep_2 -t tag_lat -E sleep -T 2 -M multi",
             "copied -t am_lat -y", "copied_bw -t am_bw -y -O 0", "windowed -t am_bw -W 2", "few -t tag_sync_bw -O 2"]
    process = batch(fabric, lines, "-q", "-6", "-P", "0", "-N", "-f", "-R", "50", "--form=ucx", "--verify")
    check("50.0_percentile_lat" in process.out.splitlines()[0], process)
    check(all(re.fullmatch("-|[<.0-9]+", row.split(",")[2]) for row in process.out.splitlines()[1:]), process)


def out_of_it(fabric):
    need(fabric)
    for name in ("ucp_put_bw", "ucp_get", "ucp_fadd"):
        refused(1, "completes only while the target makes progress", *FABRICS[fabric], "-t", name, "-o")


for fabric in FABRICS:
    add(f"options of current UCX are taken on {fabric}", typed, fabric)
    if fabric != "soft":
        add(f"a target that is to take no part is refused on {fabric}", out_of_it, fabric)


# ---- settings of UCX's protocol layer ----

def tuned(fabric):
    lines = ["none -t tag_lat -enone", "peer -t tag_lat -e", "registered -t tag_bw -s 100000 -z",
             "put -t ucp_put_bw -z", "get -t ucp_get -s 5000 -z -B", "pieces -t tag_lat -s 8,8 -D iov,iov -z", "am -t ucp_am_bw -z -s 20000",
             "threads -t tag_bw -z -e -T 2"]
    batch(fabric, lines, "--verify")


for fabric in ("posix", "tcp"):
    add(f"tests run with and without error handling and handles on {fabric}", tuned, fabric)


@test
def the_protocol_that_ucx_chose_is_printed_and_in_the_document():
    need("posix")
    path = os.path.join(tap.folder(), "run.json")
    lines = ["eager -t tag_bw -s 8", "rendezvous -t tag_lat -s 1M", "eager -t ucp_am_lat -s 8",
             "posix -t ucp_put_bw -s 64", "completed -t ucp_get -s 8"]
    process = batch("posix", lines, "-X", "--json", path)
    said = [line for line in sentences(process) if "protocol of" in line]
    equal(len(said), len(lines), process)
    with open(path, encoding="utf-8") as file:
        results = json.load(file)["results"]
    for line, sentence, result in zip(lines, said, results):
        words = line.split()
        protocol = result["fabric"]["protocol"]
        equal(sentence, f"ucx_perftest: protocol of {words[2]}: {protocol}")
        check(protocol.split()[0] in ("eager", "rendezvous", "completed", "copy-in", "short", "zero-copy",
                                        "multi-frag", "software"), protocol)


@test
def settings_that_a_fabric_does_not_have_are_refused():
    for args, words in ((("-z",), 'has no setting "registered"'), (("-e",), 'has no setting "errors"'),
                        (("-X",), 'has no setting "protocols"'), (("-B",), 'has no setting "nonblock"')):
        refused(1, words, "-x", "soft", "-t", "tag_lat", *args)
    need("posix")
    refused(1, "has no error handling by failover", "-x", "ucp:posix", "-t", "tag_lat", "-efailover")
    refused(2, "--errors is not known", "-x", "ucp:posix", "-t", "tag_lat", "-ex")


# ---- batch files ----

def without_counts(name):
    """The lines of an installed batch file, so that each runs as often as the command line says."""
    path = os.path.join(SOURCE, "share", "perftest", name)
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].rstrip() for line in file]
    return [re.sub(r" -n \d+", "", line) for line in lines if line]


def installed(fabric, name, *args):
    need(fabric)
    batch(fabric, without_counts(name), *args, "--verify")


for fabric in FABRICS:
    if fabric != "soft":
        add(f"every line of ucp-tests runs on {fabric}", installed, fabric, "ucp-tests", "-s", "512:2")
        add(f"every line of ucp-rma runs on {fabric}", installed, fabric, "ucp-rma")
        add(f"every line of ucp-amo runs on {fabric}", installed, fabric, "ucp-amo")
    add(f"every line of sizes-iov runs on {fabric}", installed, fabric, "sizes-iov", "-t", "tag_bw", "-D", "iov,iov")


# ---- ends that die ----

def killed(fabric, victim, *args):
    need(fabric)
    server = Server(TOOL, *FABRICS[fabric])
    client = Client(TOOL, server, *FABRICS[fabric], *args, "-n", "0", "--timeout", "2", "-w", "10")
    client.wait_for(r"^\| # iterations .*\n\+-.*\+$")
    hit, other = (client, server) if victim == "client" else (server, client)
    hit.kill()
    hit.wait(5)
    ended(other, 4, 20)


for fabric, victim, args in (("soft", "server", ("-t", "tag_bw", "-s", "9000:2", "-D", "iov,iov")),
                             ("posix", "client", ("-t", "tag_bw", "-s", "9000:2", "-D", "iov,iov", "-z")),
                             ("tcp", "server", ("-t", "tag_lat", "-enone", "-X")),
                             ("tcp", "client", ("-t", "ucp_am_lat", "-s", "0", "-e"))):
    add(f"a killed {victim} ends the other on {fabric} with {' '.join(args)}", killed, fabric, victim, *args)


if __name__ == "__main__":
    tap.main()
