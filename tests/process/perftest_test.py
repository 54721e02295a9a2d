# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest as it is used: every test between two processes, its table and its CSV, batches,
servers that stay, UCX's transports, and two ranks of an MPI."""
import csv
import io
import os
import re
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
import transcripts
from tap import (Client, Process, Server, Traces, alone, between, check, ended, equal,
                 lines_of, run, sentences, skip, test)
from wire import Wire

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
CXI = tap.tool_path("cxi_write_lat")
UCT = os.path.join(tap.build_folder(), "modules", "weft-uct.so")
LATENCIES = ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap", "cswap")
STREAMS = ("am_bw", "put_bw", "add_mr")
TESTS = LATENCIES + STREAMS
COUNT = 300
# One row, also where the two ends have to take turns on a CPU.
QUICK = ("-n", str(COUNT), "-w", "20", "--interval", "0")
# Nobody else's NICs are waited for.
SOFT = ("-x", "soft")
CARRIED = (NAME + ": carried by soft (software NIC, shared memory); -x and -d choose another")
REFUSAL_S = 2

RULE = lines_of(transcripts.read("ucx_perftest_latency"))[-2]
FIELDS = ["iterations", "typical_lat", "avg_lat", "overall_lat", "avg_bw", "overall_bw", "avg_mr",
          "overall_mr"]
ROW = re.compile(r"^(?=.{14} )( *\d+) ( *<?\d+\.\d{3}) ( *\d+\.\d{3}) ( *\d+\.\d{3})"
                 r" ( *\d+\.\d{2}) ( *\d+\.\d{2}) ( *\d+) ( *\d+)$")
WIDTHS = (14, 9, 9, 9, 10, 10, 11, 11)


def table(test_name):
    """The lines above the row, and the row with its numbers masked."""
    kind = "overhead" if test_name in STREAMS else "latency"
    return lines_of(transcripts.read(f"ucx_perftest_{kind}"))


def box(test_name):
    return table(test_name)[:-1]


def border(labels):
    return "+" + labels + RULE[1 + len(labels):]


def row_of(line, *words):
    """The numbers of a row, whose columns are as wide as they ought to be."""
    match = ROW.match(line)
    check(match, "no row", line, *words)
    equal(tuple(len(field) for field in match.groups()), WIDTHS, line, *words)
    return numbers(match.groups())


def numbers(fields):
    """What the clock does not resolve is less than what is printed."""
    return [float(field.replace("<", "")) for field in fields]


def sane(figures, size, *words):
    """Latency, bandwidth and rate of a row agree with each other."""
    iterations, typical, average, overall, bw_now, bw, rate_now, rate = figures
    check(iterations >= 1 and min(average, overall, rate, rate_now) > 0 and typical >= 0, *words,
          figures)
    for mbs, per_s in ((bw_now, rate_now), (bw, rate)):
        wanted = per_s * size / 1048576
        check(abs(mbs - wanted) <= 0.006 + wanted * 1e-3, "bandwidth is not rate times size",
              *words, figures)
    return figures


def half_trips(test_name):
    return 2 if test_name.endswith("_lat") else 1


def said(process):
    """What was said besides which fabric it is."""
    return [line for line in sentences(process) if line != CARRIED and "share one CPU" not in line
            and "on one CPU" not in line]


# Ends that wait for each other by turns are slow on one CPU.
CPUS = sorted(os.sched_getaffinity(0))
HERE, THERE = (("-c", str(CPUS[-1])), ("-c", str(CPUS[0]))) if len(CPUS) > 1 else ((), ())


def both(*args, server_args=(), **more):
    """Server and client until both have ended well, and nothing but the transcript was said."""
    server = Server(TOOL, *THERE, *server_args, **more)
    client = Client(TOOL, server, *HERE, *args, **more)
    ended(client, 0, None, server)
    ended(server, 0)
    equal(lines_of(server.out), [f"Listening on port {server.port} for client to connect..."],
          server)
    equal(said(server), [], server)
    return client


def csv_of(process, labels=0):
    """[header, row...], each with as many fields."""
    rows = list(csv.reader(io.StringIO(process.out)))
    check(rows, "no CSV", process)
    equal(rows[0][labels:], FIELDS, process)
    for row in rows:
        equal(len(row), len(FIELDS) + labels, "fields of a row", process)
    for row in rows[1:]:
        for field in row[labels:]:
            # Below the clock's resolution a cell says so.
            check(re.fullmatch(r"<?\d+(\.\d+)?", field), "no number", field, process)
    return rows


def batch_file(name, *lines):
    path = os.path.join(tap.folder(), name)
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    return path


# ---- the ten tests ----

def one_test(name):
    client = both("-t", name, *QUICK)
    lines = lines_of(client.out)
    masked = " ".join("#" * len(field) for field in ROW.match(lines[-1]).groups())
    equal(lines[:-1] + [masked], table(name), client)
    numbers = sane(row_of(lines[-1], client), 8, client)
    equal(numbers[0], COUNT, client)
    wanted = 1e6 / numbers[7] / half_trips(name)
    # The rate is a whole number.
    check(abs(numbers[3] - wanted) < 0.002 + wanted * (1e-3 + 1 / numbers[7]),
          "latency does not follow from the rate", client)
    equal(sentences(client)[:1], [CARRIED], client)
    equal(said(client), [], client)


for name in TESTS:
    tap.add(f"{name}: its table is that of the manual", one_test, name)


@test
def every_test_is_verified_on_request():
    batch = batch_file("tests", *(f"{name} -t {name}" for name in TESTS))
    for layout in ("-s", "8"), ("-s", "4", "-D", "bcopy"):
        client = Process([TOOL, "--local", *SOFT, *QUICK, "--verify", "-v", "-b", batch, *layout])
        client.wait()
        rows = csv_of(client, 1)[1:]
        if layout[1] == "8":
            ended(client, 0)
            equal([row[:2] for row in rows], [[name, str(COUNT)] for name in TESTS], client)
        else:
            # Atomics have no other layout than short, and say so.
            ended(client, 1)
            equal([row[0] for row in rows], ["am_lat", "put_lat", "get", "am_bw", "put_bw"], client)


def layouts_of(name, layouts):
    for layout in layouts:
        for size in ("8", "64", "200") + (("4096",) if layout != "short" else ()):
            client = both("-t", name, *QUICK, *SOFT, "-D", layout, "-s", size, "--verify")
            sane(row_of(lines_of(client.out)[-1]), int(size), client)


tap.add("messages of every layout and several sizes", layouts_of, "am_lat",
        ("short", "bcopy", "zcopy"))
tap.add("puts of every layout and several sizes", layouts_of, "put_lat",
        ("short", "bcopy", "zcopy"))
tap.add("gets of both layouts and several sizes", layouts_of, "get", ("bcopy", "zcopy"))


@test
def both_ways_at_once_tells_of_the_other_way():
    for name in ("get", "fadd", "swap", "cswap") + STREAMS:
        client = both("-t", name, *QUICK, *SOFT, "--bidir")
        equal(row_of(lines_of(client.out)[-1])[0], COUNT, client)
        check(re.fullmatch(NAME + rf": the other way at the same time: {COUNT} messages, [\d.]+ "
                           r"MB/s; both ways [\d.]+ MB/s, \d+ msg/s", "\n".join(said(client))),
              client)


@test
def messages_both_ways_at_once_are_verified():
    client = both("-t", "am_bw", *QUICK, *SOFT, "--bidir", "--verify")
    equal(row_of(lines_of(client.out)[-1])[0], COUNT, client)


@test
def window_and_outstanding_and_header_are_obeyed_by_both():
    for more in (("-W", "1"), ("-W", "3"), ("-O", "16"), ("-H", "0", "-D", "zcopy", "-s", "64"),
                 ("-H", "64", "-D", "zcopy", "-s", "64"), ("-H", "24", "-D", "zcopy", "-s", "4K")):
        both("-t", "am_bw", *QUICK, *SOFT, "--verify", *more)


@test
def a_cpu_may_be_chosen_at_each_end():
    cpus = sorted(os.sched_getaffinity(0))
    both("-t", "am_lat", *QUICK, "-c", str(cpus[-1]), server_args=("-c", str(cpus[0])))
    ended(run(TOOL, "--local", "-t", "am_lat", *QUICK, "-c", f"{cpus[-1]},{cpus[0]}"), 0)


@test
def the_server_may_have_a_device_of_its_own():
    both("-t", "put_lat", *QUICK, "-d", "soft:cxi0", server_args=("-d", "soft:cxi1"))
    both("-t", "put_lat", *QUICK, "-x", "soft", "-d", "cxi2")


# ---- rows ----

@alone
def a_row_is_printed_every_interval_and_one_at_the_end():
    client = both("-t", "put_lat", *SOFT, "--interval", "1", "--duration", "2")
    lines = lines_of(client.out)
    equal(lines[:5], box("put_lat"), client)
    rows = [sane(row_of(line, client), 8, client) for line in lines[5:]]
    between(len(rows), 2, 3, "rows in two seconds", client)
    for before, after in zip(rows, rows[1:]):
        check(after[0] >= before[0], "iterations go on", client)
    between(client.ended - client.began, 1.9, 20, client)


@test
def only_the_final_row_is_printed_with_f():
    client = both("-t", "get", *SOFT, "--interval", "1", "--duration", "2", "-f")
    lines = lines_of(client.out)
    equal(len(lines), 6, client)
    check(row_of(lines[5], client)[0] > 1000, client)


@test
def no_interval_is_only_the_last_row():
    client = both("-t", "get", *SOFT, "--interval", "0", "--duration", "1", "-v")
    equal(len(csv_of(client)), 2, client)


@test
def with_n_and_a_duration_what_comes_first_counts():
    client = both("-t", "get", *SOFT, "-n", "1K", "--duration", "30", "-v")
    equal(csv_of(client)[1][0], "1024", client)


@test
def thousands_are_separated_without_a_locale():
    for env in ({"LC_ALL": "C"}, {"LC_ALL": "nowhere.UTF-8"}):
        client = both("-t", "put_bw", *SOFT, "-n", "1234567", "-N", "-f", "--interval", "0",
                      env=env)
        last = lines_of(client.out)[-1]
        check(last.startswith("     1,234,567 "), client)
        rate = last.split()[-1]
        check(re.fullmatch(r"\d{1,3}(,\d{3})+", rate), rate, client)
        equal(len(last), sum(WIDTHS) + len(WIDTHS) - 1, client)


@test
def csv_is_a_header_and_rows_and_nothing_else():
    client = both("-t", "am_bw", *QUICK, *SOFT, "-v")
    rows = csv_of(client)
    equal(len(rows), 2, client)
    equal(rows[1][0], str(COUNT), client)
    equal(said(client), [], client)


@alone
def csv_has_a_row_every_interval_too():
    client = both("-t", "put_bw", *SOFT, "--duration", "2", "-v")
    between(len(csv_of(client)), 3, 4, client)


@test
def separators_are_not_for_csv_and_that_is_said():
    client = both("-t", "put_bw", "-n", "1234567", *SOFT, "-v", "-N", "-f")
    equal(csv_of(client)[1][0], "1234567", client)
    check(len(said(client)) == 1 and "-N has no effect on CSV" in client.err, client)


# ---- batches ----

def products():
    """Two files, and what they come to in both orders: [(files, labels, sizes)]."""
    kinds = batch_file("kinds", "# what", "put -t put_lat", "", "bw -t put_bw # a stream")
    sizes = batch_file("sizes", "small -s 8", "'not, so \"small\"' -s 64")
    names, labels = ("put", "bw"), ("small", 'not, so "small"')
    return [((kinds, sizes), [[k, s] for k in names for s in labels], [8, 64, 8, 64]),
            ((sizes, kinds), [[s, k] for s in labels for k in names], [8, 8, 64, 64])]


@test
def several_batch_files_are_multiplied_in_either_order():
    for files, labels, sizes in products():
        flags = [word for path in files for word in ("-b", path)]
        client = both(*QUICK, *SOFT, "-v", *flags)
        rows = csv_of(client, 2)
        equal(rows[0][:2], [os.path.basename(path) for path in files], client)
        equal([row[:2] for row in rows[1:]], labels, client)
        for row, size in zip(rows[1:], sizes):
            sane(numbers(row[2:]), size, client)


@test
def labels_stand_in_the_border_of_their_rows():
    for files, labels, sizes in products():
        flags = [word for path in files for word in ("-b", path)]
        client = both(*QUICK, *SOFT, *flags)
        wanted, group = [], None
        for label, size in zip(labels, sizes):
            name = "put_bw" if "bw" in label else "put_lat"
            wanted += box(name) if name != group else []
            wanted += [border("/".join(label)), size]
            group = name
        lines = lines_of(client.out)
        equal(len(lines), len(wanted), client)
        for line, want in zip(lines, wanted):
            if isinstance(want, int):
                sane(row_of(line, client), want, client)
            else:
                equal(line, want, client)


@test
def three_files_are_multiplied_and_the_inner_one_wins():
    outer = batch_file("outer", "a -s 16 -t get", "b -s 32 -t get")
    middle = batch_file("middle", "x -s 64", "y")
    inner = batch_file("inner", "1 -D bcopy", "2 -D zcopy")
    client = both(*QUICK, *SOFT, "-s", "8", "-t", "am_lat", "-v", "-b", outer, "-b", middle, "-b",
                  inner)
    rows = csv_of(client, 3)[1:]
    equal(["".join(row[:3]) for row in rows],
          ["ax1", "ax2", "ay1", "ay2", "bx1", "bx2", "by1", "by2"], client)
    for row, size in zip(rows, (64, 64, 16, 16, 64, 64, 32, 32)):
        sane(numbers(row[3:]), size, client)


@test
def options_of_the_command_line_hold_for_every_line():
    lines = batch_file("lines", "a -t put_lat", "'' -t get", "c -t am_lat -s 8")
    client = both("-b", lines, *QUICK, *SOFT, "-s", "128", "-v")
    rows = csv_of(client, 1)[1:]
    equal([row[:2] for row in rows], [[label, str(COUNT)] for label in ("a", "", "c")], client)
    for row, size in zip(rows, (128, 128, 8)):
        sane(numbers(row[1:]), size, client)


@test
def a_batch_file_may_come_from_another_system():
    path = os.path.join(tap.folder(), "crlf")
    with open(path, "wb") as out:
        out.write(b"a -t get\r\n\r\n# no\r\nb -t 'put_lat'")
    client = both("-b", path, *QUICK, *SOFT, "-v")
    equal([row[0] for row in csv_of(client, 1)[1:]], ["a", "b"], client)


# ---- alone, and what there is ----

@test
def a_local_run_starts_its_own_server():
    for name in TESTS:
        traces = Traces()
        client = Process([TOOL, "--local", "-t", name, *QUICK, *SOFT], env=traces.env)
        traces.watch(client)
        ended(client, 0)
        lines = lines_of(client.out)
        equal(lines[:-1], box(name), client)
        equal(row_of(lines[-1])[0], COUNT, client)
        equal(said(client), [], client)
        traces.nothing()


@test
def the_list_names_what_can_be_used():
    process = ended(run(TOOL, "--list"), 0)
    devices = [line.split()[0] for line in lines_of(process.out)]
    for wanted in ("soft:cxi0", "null") + (("uct:posix/memory", "uct:tcp/lo")
                                           if os.path.exists(UCT) else ()):
        check(wanted in devices, wanted, process)
    check(all(len(line.split()) > 1 for line in lines_of(process.out)), process)
    equal(process.err, "", process)


@test
def what_is_listed_of_the_software_nic_can_be_used():
    for line in lines_of(ended(run(TOOL, "--list"), 0).out):
        device = line.split()[0]
        if device.startswith("soft:"):
            both("-t", "am_lat", *QUICK, "-d", device)


@test
def help_is_that_of_the_manual():
    process = ended(run(TOOL, "-h"), 0)
    words = [" ".join(line.split()) for line in lines_of(process.out)]
    for wanted in ("Usage: ucx_perftest [ server-hostname ] [ options ]",
                   "This test can be also launched as an MPI application",
                   "Common options:", "Test options:", "-t <test> Test to run.",
                   "am_lat : active message latency.", "put_lat : put latency.",
                   "add_lat : atomic add latency.",
                   "get : get latency / bandwidth / message rate.",
                   "fadd : atomic fetch-and-add latency / message rate.",
                   "swap : atomic swap latency / message rate.",
                   "cswap : atomic compare-and-swap latency / message rate.",
                   "am_bw : active message bandwidth / message rate.",
                   "put_bw : put bandwidth / message rate.", "add_mr : atomic add message rate.",
                   "-D <layout> Data layout.",
                   "short : Use short messages API (cannot used for get).",
                   "bcopy : Use copy-out API (cannot used for atomics).",
                   "zcopy : Use zero-copy API (cannot used for atomics).",
                   "-d <device> Device to use for testing.",
                   "-x <tl> Transport to use for testing.",
                   "-c <cpu> Set affinity to this CPU. (off)",
                   "-n <iters> Number of iterations to run. (1000000)",
                   "-s <size> Message size. (8)", "-H <size> AM Header size. (8)",
                   "-w <iters> Number of warm-up iterations. (10000)",
                   "-W <count> Flow control window size, for active messages. (128)",
                   "-O <count> Maximal number of uncompleted outstanding sends. (1)",
                   "-N Use numeric formatting - thousands separator.",
                   "-f Print only final numbers.", "-v Print CSV-formatted output.",
                   "-p <port> TCP port to use for data exchange. (13337)",
                   "-b <batchfile> Batch mode. Read and execute tests from a file.",
                   "Every line of the file is a test to run. The first word is the",
                   "test name, and the rest are command-line arguments for the test.",
                   "-h Show this help message.", "Server options:",
                   "-l Accept clients in an infinite loop"):
        check(wanted in words, f"not in the help: {wanted}", process)
    equal(process.err, "", process)


# ---- a server that stays ----

def listens_again(server, times, within=10):
    until = time.monotonic() + within
    while server.out.count("Listening on port") < times and time.monotonic() < until:
        time.sleep(0.01)
    equal(server.out.count("Listening on port"), times, server)


def interrupt(server):
    server.kill(signal.SIGINT)
    ended(server, 130, 5)


@test
def a_server_with_l_serves_one_client_after_another():
    traces = Traces()
    server = Server(TOOL, "-l", env=traces.env)
    traces.watch(server)
    for name in ("am_lat", "get", "put_bw", "cswap"):
        client = Client(TOOL, server, "-t", name, *QUICK, *SOFT, env=traces.env)
        ended(client, 0, None, server)
    listens_again(server, 5)
    equal(said(server), [], server)
    interrupt(server)
    traces.nothing()


@test
def clients_that_come_at_once_are_served_in_turn():
    server = Server(TOOL, "-l")
    clients = [Client(TOOL, server, "-t", "am_bw", *QUICK, *SOFT) for _ in range(4)]
    for client in clients:
        ended(client, 0, None, server)
    interrupt(server)


@test
def whatever_came_before_the_next_client_is_served():
    traces = Traces()
    server = Server(TOOL, "-l", env=traces.env)
    traces.watch(server)

    def probe():
        tap.dial(server.port).close()

    def garbage():
        with tap.dial(server.port) as s:
            s.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)))

    def foreign_words():
        with tap.dial(server.port) as s:
            Wire(s).hello().send("H", b".tool=something\n")

    def greets_and_goes():
        with tap.dial(server.port) as s:
            Wire(s).hello().send("H", b".tool=ucx_perftest\n")

    def killed():
        client = Client(TOOL, server, "-t", "am_lat", "-n", "0", *SOFT, env=traces.env)
        client.wait_for(r"^\| # iterations")
        client.kill()
        client.wait(5)

    def refused():
        ended(Client(TOOL, server, "-t", "put_lat", "-D", "short", "-s", "64K", *SOFT), 1, 5, server)

    def another_tool():
        ended(Client(CXI, server, "-n", "3"), 1, 5, server)

    def interrupted():
        client = Client(TOOL, server, "-t", "get", "-n", "0", *SOFT, env=traces.env)
        client.wait_for(r"^\| # iterations")
        client.kill(signal.SIGINT)
        ended(client, 130, 5, server)

    for before in (probe, garbage, foreign_words, greets_and_goes, killed, refused, another_tool,
                   interrupted):
        before()
        client = Client(TOOL, server, "-t", "put_lat", *QUICK, *SOFT, env=traces.env)
        ended(client, 0, 15, f"after {before.__name__}", server)
        equal(row_of(lines_of(client.out)[-1])[0], COUNT, client)
    check(server.running(), server)
    for line in lines_of(server.err):
        check(line.startswith(NAME + ": ") and line.isprintable(), ascii(line))
    interrupt(server)
    traces.nothing()


@test
def a_server_without_l_waits_for_a_client_of_its_kind_and_ends_with_it():
    server = Server(TOOL)
    tap.dial(server.port).close()
    ended(Client(CXI, server, "-n", "3"), 1, 5, server)
    ended(Client(TOOL, server, "-t", "get", *QUICK, *SOFT), 0, 10, server)
    ended(server, 0, 5)


@test
def a_refused_test_does_not_end_a_connection():
    lines = batch_file("lines", "a -t put_lat", "b -t put_lat -D short -s 64K", "c -t get")
    server = Server(TOOL)
    client = Client(TOOL, server, "-b", lines, *QUICK, *SOFT, "-v")
    ended(client, 1, None, server)
    equal([row[0] for row in csv_of(client, 1)[1:]], ["a", "c"], client)
    told = said(client)
    equal(len(told), 2, client)
    check(told[0].startswith(f"{NAME}: {lines}:2: soft ") and "65536" in told[0], client)
    equal(told[1], f"{NAME}: 1 of 3 tests failed", client)
    ended(server, 1, 5)
    check("65536" in "".join(said(server)), server)


# ---- what a transport lacks ----

def lacks(words, *args, server_args=()):
    """Both ends say the same and exit with 1."""
    server = Server(TOOL, *server_args)
    client = Client(TOOL, server, *QUICK, *args)
    for end in (client, server):
        ended(end, 1, REFUSAL_S + 3)
        check(end.ended - client.began < REFUSAL_S, "it took too long", end)
    equal(client.out, "", client)
    equal(len(said(client)), 1, client)
    equal(said(client), said(server), client, server)
    for word in words:
        check(word in said(client)[0], word, client)


@test
def what_the_software_nic_does_not_take_is_said_by_both():
    lacks(("put", "short", "224", "4096"), "-t", "put_lat", "-D", "short", "-s", "4K",
          *SOFT)
    lacks(("am", "short", "224", "225"), "-t", "am_bw", "-D", "short", "-s", "225", *SOFT)
    lacks(("header", "1024", "2048"), "-t", "am_lat", "-s", "4K", "-D", "zcopy", "-H", "2K", *SOFT)


@test
def what_nobody_answers_on_null_is_said_by_both():
    for name, words in (("put_lat", ("put", "ping-pong")), ("add_lat", ("add", "ping-pong")),
                        ("am_bw", ("am", "stream"))):
        lacks(("null", *words), "-t", name, "-x", "null")


@test
def null_runs_the_others_and_reads_what_was_programmed():
    for name in ("get", "fadd", "swap", "cswap", "am_lat", "put_bw", "add_mr"):
        client = both("-t", name, *QUICK, "-x", "null")
        equal(row_of(lines_of(client.out)[-1])[0], COUNT, client)


@alone
def a_programmed_delay_is_read():
    for name in ("get", "fadd", "am_lat"):
        client = both("-t", name, "-n", "4000", "-w", "100", "-d", "null:delay=20us", "-v")
        between(float(csv_of(client)[1][1]), 19.6, 24, client)


# ---- UCX ----

def need_uct(device=None):
    if not os.path.exists(UCT):
        skip("weft-uct.so is not built")
    if device and not re.search(rf"^uct:{re.escape(device)} ", run(TOOL, "--list").out, re.M):
        skip(f"UCX has no {device} here")


@alone
def a_slow_warm_up_is_cut_short_and_says_so():
    need_uct("posix/memory")
    args = ("--local", "-t", "put_bw", "-s", "16M", "-n", "10", "-x", "posix", "-D", "bcopy", "-v")
    client = ended(run(TOOL, *args, limit=60), 0)
    found = re.search(r"the warm-up ended after 100 ms: (\d+) of 10000 iterations", client.err)
    check(found and 0 < int(found[1]) < 10000, client)
    elapsed = 10 * float(csv_of(client)[1][3]) / 1e6
    check(client.ended - client.began - elapsed < 5, f"{elapsed} s were measured", client)
    quick = ended(run(TOOL, "--local", *SOFT, "-t", "put_bw", "-n", "10", "-w", "3"), 0)
    check("the warm-up ended" not in quick.err, quick)


def all_on(transport):
    need_uct(f"{transport}/memory")
    batch = batch_file("tests", *(f"{name} -t {name}" for name in TESTS))
    traces = Traces()
    for more in ((), ("--verify",)):
        client = both("-b", batch, *QUICK, "-x", transport, "-d", "memory", "-v", *more,
                      env=traces.env, server_args=("-x", transport))
        rows = csv_of(client, 1)[1:]
        equal([row[:2] for row in rows], [[name, str(COUNT)] for name in TESTS], client)
        for row in rows:
            sane(numbers(row[1:]), 8, client)
        equal(said(client), [], client)
    traces.nothing()


for transport in ("posix", "sysv"):
    tap.add(f"all ten tests on {transport}, verified too", all_on, transport)


# A server names what does not guard its memory.
TCP, POSIX = ("-x", "tcp"), ("-x", "posix")


@test
def messages_of_every_layout_over_tcp():
    need_uct("tcp/lo")
    for layout in ("short", "bcopy", "zcopy"):
        client = both("-t", "am_lat", *QUICK, "-x", "tcp", "-d", "lo", "-D", layout, "--verify",
                      server_args=TCP)
        equal(row_of(lines_of(client.out)[-1])[0], COUNT, client)
    both("-t", "am_bw", *QUICK, "-x", "tcp", "-d", "lo", server_args=TCP)
    both("-t", "put_bw", *QUICK, "-x", "tcp", "-d", "lo", "-D", "zcopy", "--verify",
         server_args=TCP)


@test
def what_a_transport_lacks_is_said_by_both():
    need_uct("tcp/lo")
    need_uct("posix/memory")
    lacks(("tcp/lo", "get"), "-t", "get", *TCP, "-d", "lo", server_args=TCP)
    lacks(("tcp/lo", "add"), "-t", "add_lat", *TCP, "-d", "lo", server_args=TCP)
    lacks(("tcp/lo", "fadd"), "-t", "fadd", *TCP, "-d", "lo", server_args=TCP)
    lacks(("tcp/lo", "put", "short", "zcopy"), "-t", "put_lat", "-D", "short", *TCP, "-d", "lo",
          server_args=TCP)
    lacks(("posix/memory", "put", "zcopy", "short, bcopy"), "-t", "put_lat", *POSIX, "-D", "zcopy",
          server_args=POSIX)
    lacks(("posix/memory", "am", "short", "2048"), "-t", "am_lat", "-D", "short", *POSIX, "-s",
          "2K", server_args=POSIX)


@test
def without_a_layout_the_first_that_takes_it_is_used_and_said():
    for words, layout in ((("-t", "put_lat", "-s", "4K", *SOFT), "bcopy"),
                          (("-t", "am_lat", "-s", "4", *SOFT), "bcopy"),
                          (("-t", "am_lat", "-s", "64K", *SOFT), "zcopy")):
        server = Server(TOOL)
        client = Client(TOOL, server, *QUICK, *words)
        ended(client, 0)
        ended(server, 0)
        check(f"data layout {layout}," in client.err, client)
    server = Server(TOOL)
    client = Client(TOOL, server, *QUICK, "-t", "put_lat", *SOFT)
    ended(client, 0)
    check("data layout" not in client.err, client)


@test
def a_put_by_tcp_needs_no_layout():
    need_uct("tcp/lo")
    server = Server(TOOL, *TCP)
    client = Client(TOOL, server, *QUICK, "-t", "put_lat", *TCP, "-d", "lo")
    ended(client, 0)
    check("data layout zcopy," in client.err, client)


@test
def a_transport_alone_takes_its_device():
    need_uct("posix/memory")
    for words in (POSIX, ("-x", "uct:posix", "-d", "memory"), ("-d", "uct:posix/memory")):
        both("-t", "put_lat", *QUICK, *words, server_args=words)
    both("-t", "put_lat", *QUICK, *POSIX, server_args=("-x", "posix", "-d", "memory"))


# ---- MPI ----

def ranks(mpi, *args, count=2):
    if not shutil.which(f"mpirun.{mpi}"):
        skip(f"mpirun.{mpi} is not installed")
    if not os.path.exists(os.path.join(os.path.dirname(UCT), f"weft-mpi_{mpi}.so")):
        skip(f"weft-mpi_{mpi}.so is not built")
    job = Process([f"mpirun.{mpi}", "-n", str(count), TOOL, *args], env=tap.mpi_env())
    job.wait()
    return job


def table_once(mpi):
    for name in ("put_lat", "am_bw"):
        job = ended(ranks(mpi, "-t", name, *QUICK, "-x", "soft"), 0)
        lines = [line for line in lines_of(job.out) if line]
        equal(lines[:-1], box(name), job)
        equal(row_of(lines[-1])[0], COUNT, job)


def batch_by_ranks(mpi):
    batch = batch_file("tests", *(f"{name} -t {name}" for name in TESTS))
    job = ended(ranks(mpi, "-b", batch, *QUICK, "-x", "soft", "-v"), 0)
    equal([row[0] for row in csv_of(job, 1)[1:]], list(TESTS), job)


def refused_by_ranks(mpi):
    job = ranks(mpi, "-t", "put_lat", "-D", "short", "-s", "64K", "-x", "soft")
    check(job.code != 0, job)
    check(RULE not in job.out, job)
    said_ = re.findall(r"^ucx_perftest: (.*65536.*)$", job.err, re.M)
    equal(len(said_), 1, "both ranks have it, one says it", job)
    check(job.ended - job.began < 45, job)


def wrong_by_ranks(mpi):
    job = ranks(mpi, "-t", "get", "-D", "short", "-x", "soft")
    check(job.code != 0, job)
    equal(len(re.findall("^ucx_perftest: .*not for get", job.err, re.M)), 1, "one says it", job)
    check(RULE not in job.out, job)
    lines = batch_file("lines", "a -t get", "b -t nosuch")
    for args in (("-t", "get", "--bogus"), ("-s", "8"), ("-b", lines, *QUICK)):
        job = ranks(mpi, *args, "-x", "soft")
        check(job.code != 0, job)
        # Of a batch, the line is named and in the end the failures are counted.
        told = [line for line in said(job) if line.startswith("ucx_perftest: ")]
        equal(len(told), 1 + (lines in args), "one rank says it", job)


for mpi in ("openmpi", "mpich"):
    tap.add(f"two ranks of {mpi} print one table", table_once, mpi)
    tap.add(f"two ranks of {mpi} run a batch", batch_by_ranks, mpi)
    tap.add(f"two ranks of {mpi} end with a refused test", refused_by_ranks, mpi)
    tap.add(f"two ranks of {mpi} end with what is wrong everywhere", wrong_by_ranks, mpi)

if __name__ == "__main__":
    tap.main(workers=2)
