# SPDX-License-Identifier: BSD-3-Clause
"""What ucx_perftest cannot do it says in one sentence, at once, with the right exit code: 2 for what
is wrong on every machine, before anybody is reached for; 1 for what is impossible here; 4 where
there is no peer. A line of a batch that cannot run does not keep the others from it."""
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Process, Server, Traces, check, ended, equal, lines_of, sentences, test

NAME = "ucx_perftest"
TOOL = tap.tool_path(NAME)
UCT = os.path.join(tap.build_folder(), "modules", "weft-uct.so")
QUICK = ("-n", "50", "-w", "5", "--interval", "0", "-x", "soft")
REFUSAL_S = 4
# Nobody listens there: who tries would say so, with another exit code.
NOWHERE = ("127.0.0.1", "-p", "1", "--wait", "0")
TESTS = ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap", "cswap", "am_bw", "put_bw",
         "add_mr")


def sentence_of(process):
    lines = lines_of(process.err)
    check(len(lines) == 1 and lines[0].startswith(NAME + ": "), "one line of ours is wanted",
          process)
    check(lines[0].isprintable(), "control characters on the terminal", ascii(lines[0]))
    return lines[0]


def refused(code, *args, names=()):
    """Ends at once with this code, one line on stderr, nothing on stdout."""
    traces = Traces()
    process = Process([TOOL, *args], limit=REFUSAL_S, env=traces.env)
    traces.watch(process)
    ended(process, code)
    sentence = sentence_of(process)
    for name in names:
        check(name in sentence, f"{name!r} is not in the sentence", process)
    equal(process.out, "", "nothing on stdout is wanted", process)
    traces.nothing()
    return sentence


# ---- malformed values ----

NO_AMOUNT = ("abc", "", "x", "8x", "-1", "+1", " 8", "8 ", "0x10", "1.5", "1e3", "8k", "8KB", "8T",
             "K", "8KK", "18446744073709551616", "17179869184G", "9" * 100, "٣")
NO_NUMBER = NO_AMOUNT + ("1K",)
MALFORMED = {
    "-s": NO_AMOUNT + ("0", "5G", "4G", "4294967296"),
    "-n": NO_AMOUNT,
    "-w": NO_AMOUNT,
    "-H": NO_AMOUNT + ("4294967296",),
    "-W": NO_AMOUNT + ("0", "2M"),
    "-O": NO_AMOUNT + ("2M",),
    "-p": NO_NUMBER + ("65536", "http"),
    "-c": ("x", "-1", "0,1,", "1-0", ","),
    "-t": ("nosuch", "", "am", "am_lat ", "get,put_lat", "0"),
    "-D": ("nosuch", "", "shor", "iow", "0"),
    "--duration": NO_NUMBER + ("1s",),
    "--interval": NO_NUMBER + ("0.5",),
    "--timeout": NO_NUMBER + ("0", "1s"),
    "--wait": NO_NUMBER,
}


def malformed(option, values):
    wrong = []
    for value in values:
        try:
            refused(2, *NOWHERE, "-t", "get", option, value, names=(value[:20],))
        except tap.Failure as why:
            wrong.append(f"{option} {ascii(value[:20])}: {why}")
    check(not wrong, f"{len(wrong)} of {len(values)} values", *wrong)


for option, values in MALFORMED.items():
    tap.add(f"every malformed value of {option} is refused", malformed, option, values)


@test
def sizes_take_units_of_1024():
    for text, size in (("8K", 8192), ("1M", 1048576), ("200", 200)):
        sentence = refused(2, *NOWHERE, "-t", "fadd", "-s", text)
        check(f" {size} bytes" in sentence, sentence)


@test
def an_unknown_test_is_answered_with_the_list_and_the_nearest_one():
    for wrong, nearest in (("put_lta", "put_lat"), ("tag_lta", "tag_lat"), ("cswp", "cswap"),
                           ("put_be", "put_bw"), ("add_lat2", "add_lat")):
        sentence = refused(2, *NOWHERE, "-t", wrong, names=(f'"{wrong}"', *TESTS))
        check(f"did you mean {nearest}?" in sentence, sentence)
    check("did you mean" not in refused(2, *NOWHERE, "-t", "ucp_stream_bandwidth", names=TESTS))


@test
def an_unknown_layout_is_answered_with_those_there_are():
    refused(2, *NOWHERE, "-t", "get", "-D", "nosuch", names=("nosuch", "short", "bcopy", "zcopy"))


# ---- what does not go together ----

@test
def a_client_without_a_test_is_told_so():
    refused(2, *NOWHERE, names=("-t",))
    refused(2, "--local", names=("-t",))


@test
def a_layout_that_an_operation_has_not_is_refused():
    refused(2, *NOWHERE, "-t", "get", "-D", "short", names=("short", "get", "bcopy", "zcopy"))
    for name in ("add_lat", "fadd", "swap", "cswap", "add_mr"):
        for layout in ("bcopy", "zcopy"):
            refused(2, *NOWHERE, "-t", name, "-D", layout, names=(layout, "atomics"))


@test
def atomics_have_four_or_eight_bytes():
    for name in ("add_lat", "fadd", "swap", "cswap", "add_mr"):
        for size in ("7", "1", "16", "2", "8K"):
            refused(2, *NOWHERE, "-t", name, "-s", size, names=("4 or 8",))


@test
def a_short_message_has_room_for_its_header():
    for size in ("4", "1", "7"):
        refused(2, *NOWHERE, "-t", "am_lat", "-D", "short", "-s", size,
                names=(f"{size} bytes", "8 bytes"))


@test
def a_header_is_no_longer_than_its_message():
    refused(2, *NOWHERE, "-t", "am_lat", "-D", "zcopy", "-s", "8", "-H", "16", names=("8", "16"))
    refused(2, *NOWHERE, "-t", "am_bw", "-D", "zcopy", "-s", "64", "-H", "65", names=("64", "65"))
    refused(2, *NOWHERE, "-t", "am_bw", "-D", "zcopy", "-s", "64", "-H", "7", names=("7",))


@test
def both_ways_at_once_is_for_streams():
    for name in ("am_lat", "put_lat", "add_lat"):
        refused(2, *NOWHERE, "-t", name, "--bidir", names=("--bidir", name))


@test
def verifying_what_is_sent_both_ways_is_refused_where_it_must_ask():
    for name in ("put_bw", "add_mr", "fadd"):
        refused(2, *NOWHERE, "-t", name, "--bidir", "--verify", names=("both directions",))


@test
def options_of_the_other_role_are_refused():
    refused(2, "-l", *NOWHERE, "-t", "get", names=("--loop", "server"))
    refused(2, "-l", "--local", "-t", "get", names=("--loop", "--local"))
    refused(2, "--local", "127.0.0.1", "-t", "get", names=("--local", "127.0.0.1"))
    refused(2, "127.0.0.1", "-p", "0", "-t", "get", names=("--port 0",))
    refused(2, "127.0.0.1", "127.0.0.2", "-t", "get", names=("127.0.0.2",))
    refused(2, "", "-t", "get", names=('""',))
    refused(2, "-p", "0", "-c", "0/1", names=("--cpu 0/1",))


@test
def an_unknown_option_is_named():
    for option in ("--nosuch", "-J", "-Z", "--sizz", "--iov"):
        refused(2, *NOWHERE, "-t", "get", option, names=(option,))
    refused(2, *NOWHERE, "-t", "get", "--verify=1", names=("--verify",))
    refused(2, *NOWHERE, "-t", "get", "--local=", names=("--local",))


@test
def an_option_without_its_value_is_named():
    for option in ("-t", "-D", "-d", "-x", "-c", "-n", "-s", "-H", "-w", "-W", "-O", "-b",
                   "--duration", "--timeout"):
        refused(2, *NOWHERE, option, names=(option,))


# ---- what is not here ----

def impossible(*args, names=(), server_args=()):
    """Between two ends, and alone: exit code 1 at both, the same sentence, nothing printed."""
    server = Server(TOOL, *server_args)
    client = Client(TOOL, server, "-n", "50", "-w", "5", *args, limit=REFUSAL_S)
    ended(client, 1, None, server)
    equal(client.out, "", client)
    sentence = sentence_of(client)
    for name in names:
        check(name in sentence, f"{name!r} is not in the sentence", client)
    return server, sentence


def said_there(*args, names=(), server_args=()):
    server, sentence = impossible(*args, names=names, server_args=server_args)
    ended(server, 1, 5)
    equal(sentence_of(server), sentence, server)


@test
def a_software_nic_that_there_is_not_is_refused_with_those_there_are():
    for words in (("-d", "soft:cxi99"), ("-x", "soft", "-d", "cxi99")):
        said_there("-t", "get", *words, names=("cxi99", "cxi0", "cxi3"))
        refused(1, "--local", "-t", "get", *words, names=("cxi99", "cxi0"))


@test
def a_device_or_transport_that_there_is_not_is_refused_with_those_there_are():
    for words in (("-x", "nosuch"), ("-d", "nosuch"), ("-x", "tcp", "-d", "nosuch"),
                  ("-x", "nosuch", "-d", "lo"), ("-d", "cxi99nosuch"), ("-x", "rc_mlx5", "-d", "nosuch:1")):
        if words[0] == "-d":
            refused(1, *NOWHERE, "-t", "am_lat", *words, names=("nosuch", "soft:cxi0"))
        elif os.path.exists(UCT):
            said_there("-t", "am_lat", *words, server_args=words, names=("nosuch", "tcp/lo"))
        else:
            refused(1, *NOWHERE, "-t", "am_lat", *words, names=("nosuch", "--list"))


@test
def a_server_whose_own_device_is_not_there_says_so_to_its_client():
    said_there("-t", "get", "-x", "soft", server_args=("-d", "cxi99"), names=("cxi99",))


@test
def ends_of_two_fabrics_are_refused():
    said_there("-t", "get", "-d", "null", server_args=("-d", "soft:cxi0"),
               names=("null", "soft"))


@test
def a_cpu_that_there_is_not_is_refused():
    said_there("-t", "get", "-x", "soft", "-c", "65535", names=("65535",))
    refused(1, "-p", "0", "-c", "65535", names=("65535",))


@test
def a_delay_that_is_none_is_refused():
    server = Server(TOOL, "-l")
    client = Client(TOOL, server, "-n", "50", "-t", "get", "-d", "null:delay=x", limit=REFUSAL_S)
    client.wait()
    check(client.code in (1, 2) and "x" in sentence_of(client), client)
    equal(client.out, "", client)
    ended(Client(TOOL, server, "-t", "get", *QUICK), 0, 10, server)


@test
def where_no_server_is_the_client_gives_up():
    refused(4, "127.0.0.1", "-p", tap.free_port(), "--wait", "1", "-t", "get", names=("127.0.0.1",))
    refused(4, "127.0.0.1", "-p", tap.free_port(), "--wait", "0", "-t", "get", names=("no server",))


@test
def a_port_that_is_taken_is_refused():
    server = Server(TOOL)
    refused(1, "-p", server.port, names=(server.port,))
    ended(Client(TOOL, server, "-t", "get", *QUICK), 0, 10, server)


# ---- tools that are not of a kind ----

def other_kind(ours, theirs, args):
    server = Server(tap.tool_path(ours))
    client = Client(tap.tool_path(theirs), server, *args)
    ended(client, 1, 8, server)
    lines = sentences(client)
    check(len(lines) == 1 and ours in lines[0] and theirs in lines[0], client)
    equal(client.out, "", client)
    server.wait_for(theirs, 5, "err")
    check(server.running(), "it waits for the right one", server)


CXI_QUICK = ("-n", "3", "--latency-gap", "0")
for cxi in ("cxi_write_lat", "cxi_read_lat", "cxi_send_lat", "cxi_atomic_lat"):
    tap.add(f"a ucx_perftest server refuses {cxi}", other_kind, NAME, cxi, CXI_QUICK)
    tap.add(f"a {cxi} server refuses ucx_perftest", other_kind, cxi, NAME, ("-t", "get", *QUICK))


# ---- batches ----

@test
def a_batch_file_that_cannot_be_had_ends_the_tool_before_anything_starts():
    good = tap.file_with("a -t get\n")
    for path, why in (("/nonexistent/batch", "No such file"), (tap.folder(), "folder"),
                      (tap.file_with(""), "no test"), (tap.file_with("# only\n\n"), "no test"),
                      (tap.file_with("#" * (1 << 20) + "\n"), "1 MiB"),
                      (tap.file_with("a\n" * 10001), "10000")):
        refused(2, *NOWHERE, "-b", path, names=(path, why))
        refused(2, *NOWHERE, "-b", good, "-b", path, names=(path, why))
        refused(2, "--local", "-b", path, "-b", good, names=(path, why))


@test
def more_batch_files_than_there_is_room_for_are_refused():
    good = tap.file_with("a -t get\n")
    refused(2, *NOWHERE, *("-b", good) * 9, names=("8",))


BAD_LINES = (("b -t nosuch", ("nosuch",)),
             ("b -t", ("-t", "value")),
             ("b -t get -s abc", ("abc",)),
             ("b -t get -p 4000", ("-p", "command line")),
             ("b -t get -l", ("-l", "command line")),
             ("b -t get -v", ("-v", "command line")),
             ("b -t get -b other", ("-b", "command line")),
             ("b -t get --timeout 3", ("timeout", "command line")),
             ("b -t get --local", ("--local", "command line")),
             ("b -t get 10.0.0.1", ("10.0.0.1",)),
             ("b -t get --nosuch", ("--nosuch",)),
             ("b '-t get", ("quote",)),
             ("b -t get \x07", ("control character",)),
             ("b" + " -f" * 64, ("64 words",)),
             ("b -t get -D short", ("short", "get")),
             ("b -t fadd -s 7", ("4 or 8",)),
             ("b -t am_lat --bidir", ("--bidir",)),
             ("b", ("-t",)),
             ("b -t get -d cxi99", ("cxi99",)),
             ("b -t put_lat -D short -s 64K", ("65536",)))


def bad_line(line, words):
    batch = tap.file_with(f"a -t get\n# a comment\n{line}\nc -t put_lat\n")
    traces = Traces()
    client = Process([TOOL, "--local", "-b", batch, *QUICK, "-v"], env=traces.env, limit=15)
    traces.watch(client)
    ended(client, 1)
    rows = [row.split(",")[:2] for row in lines_of(client.out)[1:]]
    equal(rows, [["a", "50"], ["c", "50"]], client)
    said = sentences(client)
    equal(len(said), 2, client)
    check(said[0].startswith(f"{NAME}: {batch}:3: "), client)
    for word in words:
        check(word in said[0], f"{word!r} is not in the sentence", client)
    equal(said[1], f"{NAME}: 1 of 3 tests failed", client)
    check(client.err.isprintable() or "\x07" not in client.err, ascii(client.err))
    traces.nothing()


for line, words in BAD_LINES:
    shown = ascii(line)[1:-1]
    tap.add(f"a line of a batch that cannot run: {shown if len(shown) < 40 else 'too many words'}",
            bad_line, line, words)


@test
def lines_that_can_never_run_are_counted_once_and_the_product_goes_on():
    outer = tap.file_with("a -t get\nb -t nosuch\n")
    inner = tap.file_with("1\n2 '\n3 -s 64\n")
    client = Process([TOOL, "--local", "-b", outer, "-b", inner, *QUICK, "-v"], limit=15)
    ended(client, 1)
    equal([row.split(",")[:2] for row in lines_of(client.out)[1:]], [["a", "1"], ["a", "3"]],
          client)
    said = sentences(client)
    equal(len(said), 3, client)
    check(f"{outer}:2: " in said[0] and f"{inner}:2: " in said[1], client)
    equal(said[2], f"{NAME}: 2 of 4 tests failed", client)


@test
def a_batch_of_bad_lines_alone_prints_nothing():
    batch = tap.file_with("a -t nosuch\nb -t get -D short\n")
    server = Server(TOOL, "-l")
    client = Client(TOOL, server, "-b", batch, *QUICK, limit=REFUSAL_S)
    ended(client, 1, None, server)
    equal(client.out, "", client)
    said = sentences(client)
    check(len(said) == 3 and said[2] == f"{NAME}: 2 of 2 tests failed", client)
    ended(Client(TOOL, server, "-t", "get", *QUICK), 0, 10, server)


@test
def a_batch_without_a_server_says_so_once():
    batch = tap.file_with("a -t get\nb -t put_lat\n")
    refused(4, *NOWHERE, "-b", batch, names=("no server",))


if __name__ == "__main__":
    tap.main(workers=2)
