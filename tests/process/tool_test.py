# SPDX-License-Identifier: BSD-3-Clause
"""cxi_write_lat as its user meets it: two processes, their transcripts, and whether the numbers are
true. What the other tools have in common with it follows at the end, and what they have of their
own."""
import os
import re
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
import tap
import transcripts
from tap import (SANITIZED, SEPARATOR, Client, Process, Server, alone, between, check, ended, equal,
                 fits, header_value, lines_of, mask_fields, pair, rows_of, run, samples_of, sentences,
                 skip, test)

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")

def whole_transcript(process):
    """Separators of 72, never two in a row, one at the end."""
    lines = lines_of(process.out)
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith("---"):
            equal(line, SEPARATOR, "a separator", process)
            check(following != SEPARATOR, "two separators in a row", process)
    equal(lines[-1], SEPARATOR, "the last line", process)
    return lines


def summary_follows_from_samples(process):
    lists, rows = samples_of(process), rows_of(process)
    equal(len(lists), len(rows), "a list of samples for each row", process)
    for samples, (size, count, *printed) in zip(lists, rows):
        equal(count, len(samples), f"samples of size {size}", process)
        computed = (min(samples), max(samples), statistics.fmean(samples),
                    statistics.pstdev(samples))
        for what, text, value in zip(("min", "max", "mean", "deviation"), printed, computed):
            check(fits(text, value),
                  f"size {size}: {what} {text}, from the printed samples {value:.5f}", process)
            equal(len(text.partition(".")[2]), 3 if float(text.lstrip("<")) < 1 else 2,
                  f"decimals of {text}", process)


# ---- transcripts ----

@test
def server_and_client_print_what_the_guide_shows():
    server = Server(TOOL)
    client = Client(TOOL, server, "-n", "5", "--report-all", address="localhost")
    ended(client, 0)
    ended(server, 0)
    transcripts.same(server, "guide_cxi_write_lat", "server")
    transcripts.same(client, "guide_cxi_write_lat", "client")
    whole_transcript(client)
    summary_follows_from_samples(client)
    check(not sentences(server) and not sentences(client), "something on stderr", server, client)


@test
def both_ends_agree_on_nic_pid_and_clock():
    server, client = pair(TOOL, *QUICK)
    local, remote = header_value(client, "Local (client)"), header_value(client, "Remote (server)")
    equal(header_value(server, "Remote (client)") + " VNI 10", local)
    equal(header_value(server, "Local (server)"), remote + " VNI 10")
    check(local != remote + " VNI 10", "two ends on one NIC have different PIDs", client)
    equal(header_value(server, "Clock"), header_value(client, "Clock"))


@test
def two_ends_alone_on_a_nic_have_pids_0_and_1():
    traces = tap.Traces()
    server, client = pair(TOOL, *QUICK, env=traces.env)
    for process, line in ((client, "Local (client)"), (server, "Local (server)")):
        check(re.fullmatch(rf"NIC 0x12 PID [01] VNI {traces.vni}", header_value(process, line)),
              process)
    check(header_value(client, "Local (client)") != header_value(server, "Local (server)"), client)
    traces.watch(server, client)
    traces.nothing()


@test
def two_devices_are_two_nics():
    traces = tap.Traces()
    _, client = pair(TOOL, *QUICK, "-d", "cxi1", server_args=("--device", "cxi0"), env=traces.env)
    equal(header_value(client, "Device"), "cxi1")
    equal(header_value(client, "Local (client)"), f"NIC 0x13 PID 0 VNI {traces.vni}")
    equal(header_value(client, "Remote (server)"), "NIC 0x12 PID 0")


@test
def help_lists_what_is_ours():
    ours = run(TOOL, "--help").out.partition("\nWeft options:\n")[2]
    for option in ("-c, --clock", "--ignore-cpu-freq-mismatch", "--local", "--loop", "--bind",
                   "--timeout", "--wait", "--cpu", "--verify"):
        check(re.search(rf"^ +{re.escape(option)}\b", ours, re.M), f"no {option}", ours)


@test
def help_has_the_name_the_tool_was_called_by():
    other = os.path.join(tap.folder(), "site_" + NAME)
    os.symlink(TOOL, other)
    shown = ended(run(other, "--help"), 0)
    check(shown.out.startswith(transcripts.USAGE[NAME].replace(NAME, "site_" + NAME)), shown)
    check(run(other, "--nosuch").err.startswith(f"site_{NAME}: "))


@test
def help_wins_whatever_stands_beside_it():
    equal(ended(run(TOOL, "127.0.0.1", "-n", "5", "--help"), 0).out, run(TOOL, "--help").out)


@test
def version_is_one_line():
    for option in ("-V", "--version"):
        shown = ended(run(TOOL, option), 0)
        check(re.fullmatch(rf"{NAME} \(Weft\) \d+\.\d+\.\d+\n", shown.out), shown)
        equal(shown.err, "")


@test
def a_range_with_all_samples_has_a_block_a_size():
    _, client = pair(TOOL, "-s", "1:4", "-n", "2", "--report-all", "--latency-gap", "0")
    lines = whole_transcript(client)
    results = lines[lines.index(SEPARATOR, 1) + 1:]
    titles = "RDMA Size[B]      Writes     Min[us]     Max[us]    Mean[us]  StdDev[us]"
    block = ["  WriteNum  Latency[us]", "#" * 23, "#" * 23, SEPARATOR, titles, "#" * 72, SEPARATOR]
    equal([mask_fields(line) if line[-1].isdigit() else line for line in results], block * 3)
    equal([row[0] for row in rows_of(client)], [1, 2, 4])
    summary_follows_from_samples(client)


@test
def a_range_without_samples_has_its_titles_once():
    _, client = pair(TOOL, "-s", "1:1024", *QUICK)
    lines = whole_transcript(client)
    results = lines[lines.index(SEPARATOR, 1) + 1:]
    equal(len(results), 13, client)
    check(results[0].startswith("RDMA Size[B]"), client)
    for line in results[1:-1]:
        equal(mask_fields(line), "#" * 72, "a row", client)
    equal([row[:2] for row in rows_of(client)], [(1 << i, 3) for i in range(11)])
    equal(header_value(client, "Min Write Size"), "1")
    equal(header_value(client, "Max Write Size"), "1024")
    check("\nWrite Size " not in client.out, client)


@test
def sizes_take_k_m_and_g():
    for typed, header in (("4K", "4096"), ("1M", "1048576"), ("0004", "4")):
        client = ended(run(TOOL, "--local", *QUICK, "-s", typed), 0)
        equal(header_value(client, "Write Size"), header)
        equal([row[0] for row in rows_of(client)], [int(header)])
    client = ended(run(TOOL, "--local", *QUICK, "--size=1K:4K"), 0)
    equal([row[0] for row in rows_of(client)], [1024, 2048, 4096])
    equal((header_value(client, "Min Write Size"), header_value(client, "Max Write Size")),
          ("1024", "4096"))


@test
def a_range_of_one_size_is_that_size():
    client = ended(run(TOOL, "--local", *QUICK, "-s", "64:64"), 0)
    equal([row[0] for row in rows_of(client)], [64])


@test
def a_duration_shows_in_the_header():
    client = ended(run(TOOL, "--local", "-D", "1", "--latency-gap", "100"), 0)
    equal(header_value(client, "Test Type"), "Duration")
    equal(header_value(client, "Duration"), "1 seconds")
    check("\nIterations " not in client.out, client)
    whole_transcript(client)


# (options, {label: value}) for both ends' headers
HEADERS = (
    (("--no-idc",), {"IDC": "Disabled"}),
    (("--no-ll",), {"LL Cmd Launch": "Disabled"}),
    (("--unrestricted",), {"Restricted": "Disabled"}),
    (("--no-idc", "--no-ll", "--unrestricted"),
     {"IDC": "Disabled", "LL Cmd Launch": "Disabled", "Restricted": "Disabled"}),
    (("-s", "224"), {"IDC": "Enabled", "Write Size": "224"}),
    (("-s", "225"), {"IDC": "Disabled (over 224 bytes)", "Write Size": "225"}),
    (("-s", "8:256"), {"IDC": "Enabled"}),
    (("-s", "256:1K"), {"IDC": "Disabled (over 224 bytes)"}),
    (("-s", "8:256", "--no-idc"), {"IDC": "Disabled"}),
    (("-n", "7", "--warmup", "3", "--latency-gap", "20"),
     {"Iterations": "7", "Warmup Iters": "3", "Inter-Iter Gap": "20 microseconds"}),
    (("--report-all",), {"Results Reported": "All"}),
    ((), {"Results Reported": "Summary", "Hugepages": "Disabled", "IDC": "Enabled",
          "Restricted": "Enabled", "LL Cmd Launch": "Enabled", "Test Type": "Iteration"}),
)


def header_shows(options, wanted):
    for process in pair(TOOL, "-n", "2", "--latency-gap", "0", *options):
        for label, value in wanted.items():
            equal(header_value(process, label), value, process)


for options, wanted in HEADERS:
    tap.add(f"the header shows {' '.join(options) or 'the defaults'}", header_shows, options,
            wanted)


@test
def what_a_fabric_cannot_honour_says_so():
    client = ended(run(TOOL, "--local", *QUICK, "-d", "null", "--no-idc"), 0)
    for label in ("IDC", "Restricted", "LL Cmd Launch"):
        check(re.fullmatch(r"n/a \(.+\)", header_value(client, label)), label, client)
    check(header_value(client, "Fabric").startswith("null "), client)


@test
def the_clock_line_names_the_clock():
    if not has_cycles():
        skip("this machine has no cycle counter that can be trusted")
    client = ended(run(TOOL, "--local", *QUICK, "-c", "cycles"), 0)
    check(re.match(r"cycles, step [\d.]+ ns, cost [\d.]+ ns, [\d.]+ ns per sample subtracted",
                   header_value(client, "Clock")), client)


# ---- ways to meet ----

def meets(address, before, after, server_args=()):
    server = Server(TOOL, *server_args)
    client = ended(Process([TOOL, *before, "-p", server.port, address, *after]), 0)
    ended(server, 0)
    equal(rows_of(client)[0][:2], (8, 3), client)


for words in ("options before the address", "options after the address"):
    tap.add(words, meets, "127.0.0.1", *((QUICK, ()) if "before" in words else ((), QUICK)))
tap.add("options on both sides of the address", meets, "127.0.0.1", QUICK[:2], QUICK[2:])
tap.add("an IPv4 address", meets, "127.0.0.1", QUICK, ())
tap.add("a name", meets, "localhost", QUICK, ())


@test
def an_ipv6_address():
    if not tap.has_ipv6():
        skip("this machine has no IPv6")
    meets("::1", QUICK, ())
    meets("::1", QUICK, (), ("--bind", "::1"))


@test
def bind_listens_on_that_address_only():
    server = Server(TOOL, "--bind", "127.0.0.1")
    elsewhere = run(TOOL, "127.0.0.2", "-p", server.port, "--wait", "0")
    ended(elsewhere, 4)
    check(server.running(), server)
    ended(Client(TOOL, server, *QUICK), 0)
    ended(server, 0)
    meets("localhost", QUICK, (), ("--bind", "localhost"))


@test
def without_bind_every_address_is_listened_on():
    meets("127.0.0.2", QUICK, ())


@test
def a_client_waits_for_a_server_that_is_not_up_yet():
    port = tap.free_port()
    client = Process([TOOL, "127.0.0.1", "-p", port, *QUICK])
    time.sleep(0.5)
    check(client.running(), client)
    server = Server(TOOL, port=port)
    ended(client, 0)
    ended(server, 0)


@test
def loop_serves_one_client_after_another_until_interrupted():
    server = Server(TOOL, "--loop")
    for _ in range(3):
        ended(Client(TOOL, server, *QUICK), 0)
    deadline = time.monotonic() + 10
    while server.out.count("See client for results.\n") < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    equal(server.out.count("See client for results.\n"), 3, server)
    check(server.running(), server)
    server.kill(signal.SIGINT)
    ended(server, 130, 5)


@test
def a_server_without_loop_serves_one():
    server = Server(TOOL)
    client = Client(TOOL, server, "-n", "1000", "--latency-gap", "1000")
    server.wait_for("^Remote ")
    ended(run(TOOL, "127.0.0.1", "-p", server.port, "--wait", "0"), 4)
    ended(client, 0)
    ended(server, 0)


@test
def local_prints_the_clients_transcript_alone():
    client = ended(run(TOOL, "--local", "-n", "5", "--report-all"), 0)
    transcripts.same(client, "guide_cxi_write_lat", "client")
    summary_follows_from_samples(client)


@test
def local_listens_on_the_port_it_is_given():
    traces = tap.Traces()
    port = tap.free_port()
    client = Process([TOOL, "--local", "-p", port, "-n", "1000000000", "--latency-gap", "0"],
                     env=traces.env)
    client.wait_for("^Remote ")
    traces.watch(client)
    client.kill(signal.SIGINT)
    ended(client, 130, 5)
    traces.nothing()


@test
def local_takes_a_cpu_for_each_end():
    cpus = sorted(os.sched_getaffinity(0))
    ended(run(TOOL, "--local", *QUICK, "--cpu", f"{cpus[0]},{cpus[-1]}"), 0)
    ended(run(TOOL, "--local", *QUICK, "--cpu", str(cpus[-1])), 0)


# ---- who decides ----

@test
def the_servers_overridden_options_are_reported():
    server, client = pair(TOOL, *QUICK, "--no-ll",
                          server_args=("-s", "64", "-n", "7", "--no-idc", "--latency-gap", "0"))
    equal(header_value(server, "Write Size"), "8")
    equal(header_value(server, "Iterations"), "3")
    equal(header_value(server, "IDC"), "Enabled")
    equal(header_value(server, "LL Cmd Launch"), "Disabled")
    said = "\n".join(sentences(server))
    for option in ("--size 64", "--iters 7", "--no-idc"):
        check(option in said, f"nothing of {option}", server)
    for option in ("--latency-gap", "--no-ll", "--warmup"):
        check(option not in said, f"{option} was not overridden", server)
    equal(sentences(client), [], client)


@test
def a_duration_wins_over_iterations_and_stderr_says_so():
    client = ended(run(TOOL, "--local", "-n", "5", "-D", "1"), 0)
    equal(header_value(client, "Test Type"), "Duration")
    check(re.search("--duration.*--iters|--iters.*--duration", client.err), client)
    check(rows_of(client)[0][1] > 5, client)


@test
def all_samples_and_a_duration_do_not_go_together_and_stderr_says_so():
    client = ended(run(TOOL, "--local", "--report-all", "-D", "1"), 0)
    check(re.search("--report-all.*ignored", client.err), client)
    equal(header_value(client, "Results Reported"), "Summary")
    check("WriteNum" not in client.out, client)


# ---- true numbers ----

@test
def the_summary_follows_from_the_printed_samples():
    for more in ((), ("-c", "cycles"), ("-d", "null:delay=3us"), ("-s", "1:64K", "--no-ll")):
        client = run(TOOL, "--local", "-n", "300", "--latency-gap", "0", "--report-all", *more)
        if "cycles" in more and client.code == 1:
            continue
        ended(client, 0)
        summary_follows_from_samples(client)


@test
def the_deviation_is_the_populations():
    # So few and so different that the other deviation would be a fifth larger.
    for count in ("1", "2", "3"):
        client = ended(run(TOOL, "--local", "-d", "null:delay=1us,jitter=300us", "-n", count,
                           "--warmup", "0", "--latency-gap", "0", "--report-all"), 0)
        summary_follows_from_samples(client)


@test
def verify_passes_for_many_sizes_and_every_way_to_write():
    ways = ((), ("--no-ll",), ("--no-idc",), ("--unrestricted",),
            ("--no-ll", "--no-idc", "--unrestricted"))
    for way in ways:
        client = ended(run(TOOL, "--local", "--verify", *QUICK, "-s", "1:128K", *way), 0)
        equal(len(rows_of(client)), 18, client)
    for size in (3, 7, 9, 63, 65, 223, 224, 225, 4095, 4097, 1000003):
        ended(run(TOOL, "--local", "--verify", *QUICK, "-s", str(size), "--no-ll"), 0)
        ended(run(TOOL, "--local", "--verify", *QUICK, "-s", str(size)), 0)


@test
def verify_works_between_two_devices():
    pair(TOOL, *QUICK, "--verify", "-d", "cxi2", "-s", "1:4K", server_args=("-d", "cxi3"))


@test
def verify_catches_a_corrupted_bit():
    # A fabric for tests turns over one bit of every twentieth write.
    env = {"WEFT_MODULE_PATH": tap.doubles_folder()}
    faulty = ("--local", "-d", "corrupts", "-n", "100", "--latency-gap", "0")
    ended(run(TOOL, *faulty, env=env), 0)
    for more in ((), ("-s", "1"), ("-s", "225"), ("-s", "64K"), ("--no-idc", "--unrestricted")):
        caught = ended(run(TOOL, *faulty, "--verify", *more, env=env), 1)
        tap.one_sentence(caught, NAME)
        equal(lines_of(caught.out)[-1], SEPARATOR, caught)


@test
def null_refuses_verify():
    refused = ended(run(TOOL, "--local", "-d", "null", "--verify"), 2)
    check("verify" in tap.one_sentence(refused, NAME), refused)
    equal(refused.out, "")


@test
def a_row_appears_when_its_size_is_done():
    # Three sizes of at least half a second each, read through a pipe.
    client = Process([TOOL, "--local", "-s", "1:4", "-n", "500"])
    client.wait_for("^RDMA Size")
    client.wait_for(r"^ {11}1  ")
    check(not re.search(r"^ {11}4  ", client.out, re.M), "the first row came with the last", client)
    client.wait_for(r"^ {11}2  ")
    check(not re.search(r"^ {11}4  ", client.out, re.M), "the second came with the last", client)
    ended(client, 0)


@test
def the_header_appears_before_the_first_row():
    client = Process([TOOL, "--local", "-n", "1000000000", "--latency-gap", "1000"])
    client.wait_for("^Remote .*\n" + SEPARATOR)
    check(client.running() and "RDMA Size" not in client.out, client)


@test
def the_listening_line_is_there_at_once():
    server = Process([TOOL, "-p", "0"])
    server.wait_for(r"^Listening on port \d+ for client to connect\.\.\.\n\Z", within=2)
    check(server.running(), server)


def undisturbed(attempt, *args, tool=TOOL):
    """attempt is given a run that ended well."""
    return tap.undisturbed(lambda: ended(run(tool, "--local", *args, limit=60), 0), attempt,
                           lambda process: tap.preempted(process) >= 10)


@alone
def the_gap_is_real_time():
    def attempt(client):
        count = rows_of(client)[0][1]
        if count > 1000:
            raise AssertionError(f"{count} samples in a second of 1000 us gaps")
        check(count >= 900, f"{count} samples", client)

    undisturbed(attempt, "-D", "1", "--latency-gap", "1000")


@alone
def a_run_takes_its_gaps():
    for _ in range(2):
        client = Process([TOOL, "--local", "-n", "10", "--warmup", "5", "--latency-gap", "50000"])
        client.wait_for("^Remote ")
        begin = time.monotonic()
        ended(client, 0)
        if client.ended - begin > 0.6:
            break
    check(client.ended - begin > 0.6, "15 gaps of 50 ms took less than 0.6 s", client)


@alone
def no_gap_outlives_the_run():
    """Neither after the last iteration, nor beyond the duration."""
    for args in (("-D", "1"), ("-n", "1")):
        client = Process([TOOL, "--local", "--latency-gap", "20000000", "--warmup", "0", *args])
        client.wait_for("^Remote ")
        begin = time.monotonic()
        ended(client, 0)
        check(client.ended - begin < 12, "a gap of 20 s was waited for", client)
        equal(rows_of(client)[0][1], 1, client)


@alone
def without_a_gap_there_are_millions_a_second():
    if SANITIZED:
        skip("a sanitizer slows it down")
    undisturbed(lambda client: check(rows_of(client)[0][1] > 1000000, client),
                "-D", "1", "--latency-gap", "0")


def has_cycles():
    return run(TOOL, "--local", *QUICK, "-c", "cycles").code != 1


def programmed_delay(clock, name=NAME, iters=100000):
    if clock == "cycles" and not has_cycles():
        skip("this machine has no cycle counter that can be trusted")

    def attempt(client):
        samples = samples_of(client)[0]
        equal(len(samples), iters)
        summary_follows_from_samples(client)
        # The clock's cost, which is subtracted, may have changed by a step of the clock.
        if min(samples) < 1.99:
            raise AssertionError(f"a delay of 2 us was measured as {min(samples)}")
        median = statistics.median(samples)
        tap.note(f"minimum {min(samples):.3f}, median {median:.3f}")
        if not SANITIZED:
            # The delay ends with the first look at the clock after it: up to two looks late.
            between(median, 1.96, 2.1, "median of a delay of 2 us")

    undisturbed(attempt, "-d", "null:delay=2us", "--latency-gap", "0", "-n", str(iters),
                "--report-all", "-c", clock, tool=tap.tool_path(name))


tap.add("a programmed delay of 2 us reads 2 us by clock_gettime", programmed_delay, "clock_gettime",
        by_itself=True)
tap.add("a programmed delay of 2 us reads 2 us by cycles", programmed_delay, "cycles",
        by_itself=True)


# A send is half of two delays.
for name in ("cxi_send_lat", "cxi_read_lat", "cxi_atomic_lat"):
    for clock in ("clock_gettime", "cycles"):
        tap.add(f"a programmed delay of 2 us reads 2 us by {clock} in {name}", programmed_delay,
                clock, name, 50000, by_itself=True)


@alone
def a_programmed_jitter_is_seen():
    def attempt(client):
        samples = sorted(samples_of(client)[0])
        if samples[0] < 1000:
            raise AssertionError(f"{samples[0]} us is below the delay")
        quarter = len(samples) // 4
        between(samples[2 * quarter], 1300, 1700, "median of 1 ms and up to 1 ms more")
        between(samples[-len(samples) // 10], 1700, 2100, "nine of ten samples")
        check(samples[3 * quarter] - samples[quarter] > 200, "no spread")

    undisturbed(attempt, "-d", "null:delay=1ms,jitter=1ms", "--latency-gap", "0", "-n", "300",
                "--report-all")


# ---- the other tools ----

# tool: (title, width of a separator, first column, title of the samples, a size)
OTHERS = {
    "cxi_read_lat": ("CXI RDMA Read Latency Test", 72, "RDMA Size[B]       Reads", "   ReadNum",
                     ("-s", "64")),
    "cxi_send_lat": ("CXI RDMA Send Latency Test", 70, "     Bytes       Sends", "   SendNum",
                     ("-s", "64")),
    "cxi_atomic_lat": ("CXI Atomic Memory Operation Latency Test", 71, "AMO Size[B]         Ops",
                       "     OpNum", ("-A", "MAX")),
}


def each_other(function):
    """Registers a test of every other tool."""
    words = function.__name__.replace("_", " ")
    for name in OTHERS:
        tap.add(f"{name}: {words}", function, name)
    return function


def whole_transcript_of(name, process):
    """Separators of the tool's width, never two in a row, one at the end."""
    title, width, *_ = OTHERS[name]
    lines, separator = lines_of(process.out), "-" * width
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith("---"):
            equal(line, separator, "a separator", process)
            check(following != separator, "two separators in a row", process)
    equal(lines[-1], separator, "the last line", process)
    check("    " + title in lines, process)
    return lines


@each_other
def both_ends_agree(name):
    tool, size = tap.tool_path(name), OTHERS[name][4]
    server, client = pair(tool, *QUICK, *size, "-d", "cxi1", server_args=("-d", "cxi0"))
    whole_transcript_of(name, server)
    whole_transcript_of(name, client)
    equal(header_value(server, "Remote (client)") + " VNI 10",
          header_value(client, "Local (client)"))
    equal(header_value(server, "Local (server)"),
          header_value(client, "Remote (server)") + " VNI 10")
    equal(header_value(server, "Clock"), header_value(client, "Clock"))
    equal(sentences(server) + sentences(client), [], server, client)
    check(server.out.count("See client for results.\n") == 1, server)
    check("See client" not in client.out and "Min[us]" not in server.out, server, client)


@each_other
def version_and_help(name):
    tool = tap.tool_path(name)
    for option in ("-V", "--version"):
        shown = ended(run(tool, option), 0)
        check(re.fullmatch(rf"{name} \(Weft\) \d+\.\d+\.\d+\n", shown.out), shown)
    equal(ended(run(tool, "127.0.0.1", "-n", "5", "--help"), 0).out, run(tool, "--help").out)
    ours = run(tool, "--help").out.partition("\nWeft options:\n")[2]
    for option in ("-c, --clock", "--ignore-cpu-freq-mismatch", "--local", "--loop", "--bind",
                   "--timeout", "--wait", "--cpu", "--verify"):
        check(re.search(rf"^ +{re.escape(option)}\b", ours, re.M), f"no {option}", ours)


@each_other
def the_summary_follows_from_its_samples(name):
    _, width, column, number, _ = OTHERS[name]
    for more in ((), ("--no-ll",), ("-d", "null:delay=3us"),
                 ("-d", "null:delay=1us,jitter=300us", "-n", "3", "--warmup", "0")):
        client = ended(run(tap.tool_path(name), "--local", "-n", "300", "--latency-gap", "0",
                           "--report-all", *more), 0)
        summary_follows_from_samples(client)
        lines = whole_transcript_of(name, client)
        check(f"{number}  Latency[us]" in lines, client)
        titles = f"{column}     Min[us]     Max[us]    Mean[us]  StdDev[us]"
        equal((len(titles), lines[-3]), (width, titles), client)


@each_other
def all_samples_and_a_duration_do_not_go_together(name):
    server, client = pair(tap.tool_path(name), "--report-all", "-D", "1", "-n", "5",
                          "--latency-gap", "100")
    check(re.search("--report-all.*ignored", client.err), client)
    check(re.search("--duration.*--iters|--iters.*--duration", client.err), client)
    for process in (server, client):
        equal(header_value(process, "Results Reported"), "Summary")
        equal(header_value(process, "Duration"), "1 seconds")
    check(OTHERS[name][3] not in client.out and rows_of(client)[0][1] > 5, client)


@each_other
def overridden_options_are_reported(name):
    server, client = pair(tap.tool_path(name), *QUICK, "--no-ll",
                          server_args=("-n", "7", "--report-all", "--latency-gap", "0"))
    equal(header_value(server, "Iterations"), "3")
    equal(header_value(server, "Results Reported"), "Summary")
    equal(header_value(server, "LL Cmd Launch"), "Disabled")
    said = "\n".join(sentences(server))
    for option in ("--iters 7", "--report-all"):
        check(option in said, f"nothing of {option}", server)
    check("--latency-gap" not in said and not sentences(client), server, client)


@each_other
def null_says_what_it_cannot_honour(name):
    tool = tap.tool_path(name)
    ways = {"cxi_send_lat": ((), ("-R",)), "cxi_atomic_lat":
            ((), ("--fetching", "--matching"), ("-A", "CSWAP", "-C", "NE", "-T", "DOUBLE"),
             ("-T", "UINT128", "-A", "CSWAP"))}.get(name, ((), ("-s", "1:1M")))
    for way in ways:
        client = ended(run(tool, "--local", *QUICK, "-d", "null", *way), 0)
        check(header_value(client, "Fabric").startswith("null "), client)
        for label in {"cxi_read_lat": ("Restricted", "LL Cmd Launch"),
                      "cxi_send_lat": ("IDC", "LL Cmd Launch", *(("Rendezvous PUTs",) if way else ())),
                      "cxi_atomic_lat": ("IDC", "Matching LEs", "Restricted", "LL Cmd Launch")
                      }[name]:
            check(re.fullmatch(r"n/a \(.+\)", header_value(client, label)), label, client)
        check(rows_of(client) and all(row[1] == 3 for row in rows_of(client)), client)
        refused = ended(run(tool, "--local", "-d", "null", "--verify", *way), 2)
        check("verify" in tap.one_sentence(refused, name), refused)
        equal(refused.out, "")


@alone
def a_row_of_a_send_appears_when_its_size_is_done():
    client = Process([tap.tool_path("cxi_send_lat"), "--local", "-s", "1:4", "-n", "300"])
    client.wait_for(r"^ {9}1  ")
    check(not re.search(r"^ {9}4  ", client.out, re.M), "the first row came with the last", client)
    ended(client, 0)


# ---- read ----

READ, SEND = tap.tool_path("cxi_read_lat"), tap.tool_path("cxi_send_lat")
ODD_SIZES = (3, 7, 9, 63, 65, 223, 224, 225, 4095, 4097, 1000003)


@test
def verify_passes_for_many_sizes_and_every_way_to_read():
    for way in ((), ("--no-ll",), ("--unrestricted",), ("--no-ll", "--unrestricted")):
        client = ended(run(READ, "--local", "--verify", *QUICK, "-s", "1:1M", *way), 0)
        equal([row[:2] for row in rows_of(client)], [(1 << i, 3) for i in range(21)], client)
        equal(header_value(client, "LL Cmd Launch"),
              "Disabled" if "--no-ll" in way else "Enabled")
        equal(header_value(client, "Restricted"),
              "Disabled" if "--unrestricted" in way else "Enabled")
        check("\nIDC " not in client.out, "a read has no immediate data", client)
    for size in ODD_SIZES:
        for way in ((), ("--no-ll", "--unrestricted")):
            ended(run(READ, "--local", "--verify", *QUICK, "-s", str(size), *way), 0)
    pair(READ, *QUICK, "--verify", "-d", "cxi2", "-s", "1:4K", server_args=("-d", "cxi3"))


# ---- send ----

# (options, IDC, Rendezvous) for sizes of which some are immediate
SENDS = {
    "eager": ((), None), "rendezvous": (("-R",), "Disabled - Not Applicable"),
    "eager without immediate data": (("--no-idc",), "Disabled"),
    "eager through the queue": (("--no-ll",), None),
    "rendezvous through the queue": (("-R", "--no-ll"), "Disabled - Not Applicable"),
    "eager through the queue without immediate data": (("--no-ll", "--no-idc"), "Disabled"),
}


def verified_sends(way, idc):
    traces = tap.Traces()
    client = ended(run(SEND, "--local", "--verify", *QUICK, "-s", "1:16777216", *way, limit=60,
                       env=traces.env), 0)
    equal([row[:2] for row in rows_of(client)], [(1 << i, 3) for i in range(25)], client)
    check(header_value(client, "IDC") == idc if idc else
          header_value(client, "IDC").startswith("Enabled"), client)
    equal(header_value(client, "LL Cmd Launch"), "Disabled" if "--no-ll" in way else "Enabled")
    check(("\nRendezvous PUTs  : Enabled\n" in client.out) == ("-R" in way), client)
    check("\nRestricted " not in client.out, client)
    for size in ODD_SIZES:
        ended(run(SEND, "--local", "--verify", *QUICK, "-s", str(size), *way), 0)
    traces.nothing()


for words, (way, idc) in SENDS.items():
    tap.add(f"verify passes for sends of 1 to 16777216 bytes, {words}", verified_sends, way, idc)


@test
def verify_of_many_sends_in_two_processes():
    for way in ((), ("-R",), ("--no-ll", "-s", "4K"), ("-R", "-s", "300000")):
        _, client = pair(SEND, "--verify", "-n", "2000", "--latency-gap", "0", *way)
        equal(rows_of(client)[0][1], 2000, client)


def sends_for_a_second(*way):
    """Both ends stop after the same iteration, also where another size follows."""
    for gap in ("1000", "0"):
        server, client = pair(SEND, "-D", "1", "-s", "8:16", "--latency-gap", gap, *way)
        equal([row[0] for row in rows_of(client)], [8, 16], client)
        check(all(row[1] > 10 for row in rows_of(client)), client)
        equal(lines_of(server.out)[-2:], ["See client for results.", "-" * 70], server)
        equal(sentences(server) + sentences(client), [], server, client)
        between(client.ended - client.began, 2, 8, "two sizes of a second each")


for way in ((), ("-R",), ("--no-ll", "--no-idc")):
    tap.add(f"sends for a second a size end cleanly at both ends {' '.join(way)}",
            sends_for_a_second, *way)

if __name__ == "__main__":
    tap.main()
