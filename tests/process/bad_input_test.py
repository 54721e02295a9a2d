# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be done is said in one sentence, at once, with the right exit code: 2 for what is
wrong on every machine, 1 for what is impossible on this one, 4 where there is no peer."""
import os
import re
import socket
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import (SANITIZED, Client, Process, Server, alone, between, check, ended, equal,
                 header_value, lines_of, one_sentence, rows_of, run, skip, test)

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
REFUSAL_S = 20 if SANITIZED else 5  # a look for leaks takes seconds on a busy machine
ROLES = (("-p", "0"), ("127.0.0.1",), ("--local",))  # server, client, both


def refused(code, *args, names=(), env=None, tool=NAME):
    """Ends within the limit with this code, one line on stderr, nothing on stdout."""
    traces = tap.Traces()
    process = Process([tap.tool_path(tool), *args], limit=REFUSAL_S, env=env or traces.env)
    traces.watch(process)
    ended(process, code)
    lines = lines_of(process.err)
    check(len(lines) == 1 and lines[0].startswith(tool + ": "), "one line of ours is wanted",
          process)
    check(lines[0].isprintable(), "control characters on the terminal", ascii(lines[0]))
    for name in names:
        check(name in lines[0], f"{name!r} is not in the sentence", process)
    equal(process.out, "", "nothing on stdout is wanted", process)
    traces.nothing()
    return lines[0]


# ---- malformed values ----

# Wrong as any number.
NO_NUMBER = ("", "x", "8x", "-1", "+1", " 1", "1 ", "0x10", "1.5", "1e3", "1,000", "٣", "--",
             "NaN", "18446744073709551616", "99999999999999999999999999", "9" * 100)
NO_SIZE = ("", "x", "8x", "-1", "+1", " 8", "8 ", "0x10", "1.5", "1e3", "8k", "8KB", "8KiB", "8T",
           "K", "8KK", "K8", "0", "0K", "4294967296", "4G", "5G", "17179869184G",
           "18014398509481985K", "18446744073709551616", "8:", ":8", ":", "8:4", "3:8", "8:12",
           "0:8", "1:2:4", "8-16", "1:4294967296", "1:8x", "x:8", "-1:8", "8:-1", "8 :16")
BAD = (
    (("-v", "--svc-id"), NO_NUMBER + ("1K",)),
    (("-p", "--port"), NO_NUMBER + ("1K", "65536", "70000", "4294967297", "http")),
    (("-t", "--tx-gpu"), NO_NUMBER + ("1K", "GPU0")),
    (("-r", "--rx-gpu"), NO_NUMBER + ("1K", "all")),
    (("-g", "--gpu-type"), ("", "ATI", "AMDx", "AM", "0", "AMD,NVIDIA", "AMD ")),
    (("-n", "--iters"), NO_NUMBER + ("1k", "1KK", "0", "0K")),
    (("-D", "--duration"), NO_NUMBER + ("1K", "0", "1s", "1m")),
    (("", "--warmup"), NO_NUMBER + ("1k", "K")),
    (("", "--latency-gap"), NO_NUMBER + ("1K", "1us")),
    (("-s", "--size"), NO_SIZE),
    (("", "--use-hp"), ("", "2", "4K", "2MB", "1GB", "2M,1G", "yes")),
    (("-c", "--clock"), ("", "sundial", "cycle", "tsc ")),
    (("", "--timeout"), NO_NUMBER + ("1K", "0", "1s")),
    (("", "--wait"), NO_NUMBER + ("1K", "1s")),
    (("", "--cpu"), ("", "x", "-1", "+1", "0,", ",0", ",", "0,1,2", "0-1", "0 1", "0;1", "0x0",
                     "18446744073709551616")),
    (("-d", "--device"), ("", "d" * 5000)),
    (("", "--bind"), ("", "b" * 5000)),
    (("-d", "--device"), ("null:delay=2", "null:delay=x", "null:delay=", "null:delay=-1us",
                          "null:delay=2 us", "null:delay=2parsec", "null:jitter=1", "null:request=1us",
                          "null:delay=1us,jitter", "null:delay=18446744073709551616ps",
                          "null:delay=99999999999999s", "null:2us")),
)


def printable(text):
    return ascii(text)[1:-1] if len(text) < 40 else ascii(text[:8])[1:-1] + "..."


def to_be_named(value):
    """What of a value the sentence must have: of a fabric's settings the wrong one (the last), and
    a long one need not be repeated to its end."""
    if value.startswith("null:"):
        name, _, setting = value.partition(":")[2].rpartition(",")[2].partition("=")
        return name if not setting or name == "request" else setting
    return value[:30]


def malformed_values(short, long, values, tool=NAME):
    """Every value in a way of writing it, in turn; all of them are tried before it fails."""
    wrong = []

    def one(item):
        number, value = item
        ways = [(long, value), (f"{long}={value}",)]
        if short:
            ways += [(short, value)] + ([(short + value,)] if value else [])
        args = ways[number % len(ways)]
        free = () if short == "-p" else ("-p", "0")
        try:
            refused(2, *free, *args, names=(to_be_named(value),), tool=tool)
        except tap.Failure as why:
            wrong.append(f"{printable(' '.join(args))}: {why}")

    tap.in_parallel(one, list(enumerate(values)), 4)
    check(not wrong, f"{len(wrong)} of {len(values)} values", *wrong)


for (short, long), values in BAD:
    kind = " for a fabric" if values[0].startswith("null:") else ""
    tap.add(f"every malformed value of {long}{kind} is refused", malformed_values, short, long,
            values)


# ---- the other tools ----

OTHERS = ("cxi_read_lat", "cxi_send_lat", "cxi_atomic_lat")
ATOMIC = "cxi_atomic_lat"
ONLY_SIZED = ("--tx-gpu", "--rx-gpu", "--gpu-type", "--size", "--use-hp")
# Rows are shared: of what all tools take a few values do. (short, long, values)
BAD_ATOMIC = (
    (("-A", "--atomic-op"), ("", "x", "SU", "SUMM", "SUM ", " SUM", "0", "SUM,MIN", "CSWAP EQ",
                             "EQ", "UINT64", "٣", "S" * 100)),
    (("-C", "--cswap-op"), ("", "x", "E", "EQQ", "==", "<", "EQ ", "0", "EQ,NE", "SUM", "CSWAP")),
    (("-T", "--atomic-type"), ("", "x", "INT", "UINT", "INT128", "UINT64 ", "UINT63", "64", "8",
                               "FLOAT COMPLEX", "COMPLEX", "SUM", "INT8,INT16", "U" * 100)),
)


def malformed_common_values(tool):
    wrong = []
    for number, ((short, long), values) in enumerate(BAD):
        if tool == ATOMIC and long in ONLY_SIZED:
            continue
        few = [value for at, value in enumerate(values) if at % 5 == number % 5][:5]
        try:
            malformed_values(short, long, few, tool)
        except tap.Failure as why:
            wrong.append(f"{long}: {why}")
    check(not wrong, *wrong)


for tool in OTHERS:
    tap.add(f"{tool}: malformed values of the shared options are refused", malformed_common_values,
            tool)
tap.add("cxi_send_lat: every malformed value of --size is refused", malformed_values, "-s",
        "--size", NO_SIZE, "cxi_send_lat")
for (short, long), values in BAD_ATOMIC:
    tap.add(f"every malformed value of {long} is refused", malformed_values, short, long, values,
            ATOMIC)


@test
def an_unknown_op_compare_or_type_is_refused_with_those_there_are():
    refused(2, "--local", "-A", "MUL", names=("MIN", "LXOR", "CSWAP", "AXOR"), tool=ATOMIC)
    refused(2, "--local", "-A", "CSWAP", "-C", "ZZ", names=("EQ", "NE", "LE", "LT", "GE", "GT"),
            tool=ATOMIC)
    refused(2, "--local", "-T", "INT256", names=("INT8", "UINT64", "DOUBLE_COMPLEX", "UINT128"),
            tool=ATOMIC)


# What a tool does not have; another one has it, or had it.
FOREIGN = {
    "cxi_read_lat": ("--no-idc", "-R", "--rdzv", "-A", "--atomic-op=SUM", "--fetching"),
    "cxi_send_lat": ("--unrestricted", "-A", "--fetching", "--matching", "-T"),
    ATOMIC: ("-s", "--size=8", "-t", "--tx-gpu=0", "-r", "--rx-gpu=0", "-g", "--gpu-type=AMD",
             "--use-hp=2M", "-R", "--rdzv"),
}


def foreign_options(tool):
    for option in FOREIGN[tool]:
        refused(2, "-p", "0", option, names=(option.partition("=")[0],), tool=tool)


def roles_of(tool):
    refused(2, "127.0.0.1", "127.0.0.2", names=("127.0.0.2",), tool=tool)
    refused(2, "--local", "127.0.0.1", names=("--local", "127.0.0.1"), tool=tool)
    refused(2, "--loop", "--local", names=("--loop", "--local"), tool=tool)
    refused(2, "", tool=tool)
    refused(2, "-p", "0", "--cpu", "0,1", names=("--cpu",), tool=tool)


def flags_of(tool):
    mine = {"cxi_read_lat": ("--unrestricted",), "cxi_send_lat": ("--rdzv", "--no-idc"),
            ATOMIC: ("--fetching", "--matching", "--unrestricted", "--no-idc")}[tool]
    for option in (*mine, "--no-ll", "--report-all", "--verify"):
        refused(2, "-p", "0", f"{option}=1", names=(option,), tool=tool)
        refused(2, "-p", "0", f"{option}=", names=(option,), tool=tool)


def missing_values_of(tool):
    for option in ("-d", "-p", "-n", "-D", "-c", "--warmup", "--timeout", "--cpu") + (
            ("-A", "-C", "-T", "--atomic-op", "--cswap-op", "--atomic-type") if tool == ATOMIC else
            ("-s", "--size", "--use-hp", "-t")):
        refused(2, option, names=(option,), tool=tool)


def devices_of(tool):
    for role in ROLES:
        refused(1, *role, "-d", "cxi99", names=("cxi99", "cxi0"), tool=tool)
        if tool != ATOMIC:
            gpu = "-r" if role == ROLES[0] else "-t"
            process = ended(Process([tap.tool_path(tool), *role, gpu, "65535"], limit=REFUSAL_S), 1)
            check("GPU" in one_sentence(process, tool), process)


for tool in OTHERS:
    tap.add(f"{tool}: options of other tools are refused", foreign_options, tool)
    tap.add(f"{tool}: roles that exclude each other are refused", roles_of, tool)
    tap.add(f"{tool}: a value behind a flag is refused", flags_of, tool)
    tap.add(f"{tool}: an option without its value is refused", missing_values_of, tool)
    tap.add(f"{tool}: what is not on this machine is refused", devices_of, tool)


@test
def two_tools_that_differ_are_told_so():
    for ours, theirs in zip(OTHERS, OTHERS[1:] + (NAME,)):
        server = Server(tap.tool_path(ours))
        client = ended(Client(tap.tool_path(theirs), server, *QUICK), 1, 5)
        sentence = one_sentence(client, theirs)
        check(ours in sentence and theirs in sentence, sentence)
        server.wait_for(theirs, 5, "err")
        ended(Client(tap.tool_path(ours), server, *QUICK), 0)
        ended(server, 0)


@test
def control_characters_in_a_value_stay_off_the_terminal():
    wrong = []
    for (_, long), values in BAD:
        for value in ("1\n", "1\n2", "\x1b[31m1", "\x7f", "1\r"):
            try:
                refused(2, "-p", "0", long, value)
            except tap.Failure as why:
                wrong.append(f"{long} {ascii(value)}: {str(why).splitlines()[0]}")
    for args in (("--no\nsuch",), ("-\x1b",), ("127.0.0.1", "two\nlines"), ("--no-ll=\x1b[2J",),
                 ("--local", "a\nb"), ("-d", "null:a\nb=1us")):
        try:
            refused(2, "-p", "0", *args)
        except tap.Failure as why:
            wrong.append(f"{ascii(args)}: {str(why).splitlines()[0]}")
    check(not wrong, *wrong)


def flag_with_value(option):
    refused(2, "-p", "0", f"{option}=1", names=(option,))
    refused(2, "-p", "0", f"{option}=perhaps", names=(option, "perhaps"))
    refused(2, "-p", "0", f"{option}=", names=(option,))


for flag in ("--unrestricted", "--no-idc", "--no-ll", "--report-all", "--help", "--version",
             "--ignore-cpu-freq-mismatch", "--local", "--loop", "--verify"):
    tap.add(f"a value behind {flag} is refused", flag_with_value, flag)


@test
def an_option_without_its_value_is_refused():
    for option in ("-d", "-v", "-p", "-t", "-r", "-g", "-n", "-D", "-s", "-c"):
        refused(2, option, names=(option,))
    for option in ("--device", "--svc-id", "--port", "--tx-gpu", "--rx-gpu", "--gpu-type",
                   "--iters", "--duration", "--warmup", "--latency-gap", "--size", "--use-hp",
                   "--clock", "--bind", "--timeout", "--wait", "--cpu"):
        refused(2, option, names=(option,))


@test
def unknown_options_are_refused():
    for option in ("--nosuch", "--nosuch=1", "-z", "--siz", "--Size", "--n", "--use_hp", "---",
                   "-é", "--rdzv", "-R", "--fetching", "-nz"):
        named = option.partition("=")[0] if option.isascii() else "-"
        refused(2, "-p", "0", option, names=("z" if option == "-nz" else named,))
    refused(2, "-p", "0", "--" + "x" * 5000)


@test
def a_near_miss_names_what_was_meant():
    refused(2, "-p", "0", "--latency_gap", "5", names=("--latency_gap", "--latency-gap"))


@test
def roles_that_exclude_each_other_are_refused():
    refused(2, "127.0.0.1", "127.0.0.2", names=("127.0.0.2",))
    refused(2, "127.0.0.1", *QUICK, "second", "third", names=("second",))
    refused(2, "--local", "127.0.0.1", names=("--local", "127.0.0.1"))
    refused(2, "--loop", "127.0.0.1", names=("--loop",))
    refused(2, "--loop", "--local", names=("--loop", "--local"))
    refused(2, "-p", "0", "--cpu", "0,1", names=("--cpu",))


@test
def an_empty_address_is_refused():
    # What a script leaves when its variable is not set.
    refused(2, "")
    refused(2, "", *QUICK)


@test
def behind_a_double_dash_stands_an_address():
    sentence = refused(1, "--", "--no.such..host")
    check("--no.such..host" in sentence, sentence)


# ---- devices and services ----

@test
def devices_that_are_not_here_are_refused_with_a_list():
    for device in ("cxi99", "nosuch:x", "foo", "CXI0", "cxi00", "cxi-1", "cxi0 ",
                   "mlx5_1:1", ":", ":cxi0", "soft:cxi99", "soft:foo"):
        for role in ROLES:
            refused(1, *role, "-d", device, names=(device.removeprefix("soft:"), "cxi0"))
    refused(1, "-p", "0", "-d", "foo", names=("cxi0", "cxi1", "null"))


def service_fails(services, service, *names):
    env = {"WEFT_SERVICES": tap.file_with(services) if services else "/nonexistent/services"}
    for role in ROLES:
        refused(1, *role, "-v", service, names=names, env=env)


tap.add("an unknown service is refused with a list", service_fails, "2 20\n3 30\n", "9",
        "service 9", "1, 2, 3")
tap.add("an unknown service is refused where there is no services file", service_fails, "", "9",
        "service 9", "there are: 1", "/nonexistent/services")
tap.add("a disabled service is refused", service_fails, "# ours\n2 20 disabled\n", "2",
        "service 2", "disabled")
tap.add("service 1 can be disabled too", service_fails, "1 10 disabled\n", "1", "service 1",
        "disabled")


def services_file_is_wrong(text, line):
    path = tap.file_with(text)
    for role in ROLES:
        refused(2, *role, "-v", "2", names=(f"{path} line {line}",), env={"WEFT_SERVICES": path})


for text, line in (("2 twenty\n", 1), ("2 20\n3\n", 2), ("\n# no\n2 20 off\n", 3),
                   ("2 20 disabled now\n", 1), ("-2 20\n", 1), ("2 0\n", 1), ("2 65536\n", 1),
                   ("2 20x\n", 1), ("2 18446744073709551616\n", 1), ("2, 20\n", 1),
                   ("2 20\n2 \x1b[31m\n", 2), ("2 " + "1" * 4000 + "\n", 1)):
    tap.add(f"a services file with {printable(text)} is refused", services_file_is_wrong, text,
            line)


@test
def a_services_file_gives_a_service_its_vni():
    path = tap.file_with("# id vni\n\n  2\t20  # ours\n3 30 disabled\n")
    for process in tap.pair(TOOL, *QUICK, "-v", "2", server_args=("-v", "2"),
                            env={"WEFT_SERVICES": path}):
        equal(header_value(process, "Service ID"), "2")
        check("VNI 20\n" in process.out, process)


@test
def two_services_with_one_vni_connect():
    path = tap.file_with("2 20\n4 20\n")
    tap.pair(TOOL, *QUICK, "-v", "2", server_args=("-v", "4"), env={"WEFT_SERVICES": path})


@test
def a_vni_mismatch_is_told_to_both():
    path = tap.file_with("2 20\n3 30\n")
    server = Server(TOOL, "-v", "2", env={"WEFT_SERVICES": path})
    client = Client(TOOL, server, "-v", "3", *QUICK, env={"WEFT_SERVICES": path})
    for end in (client, server):
        ended(end, 1, 5)
        sentence = one_sentence(end, NAME)
        check("VNI 20" in sentence and "VNI 30" in sentence, sentence)
        check("RDMA Size" not in end.out, end)


@test
def ends_on_different_fabrics_are_told_so():
    server = Server(TOOL, "-d", "soft:cxi0")
    client = Client(TOOL, server, *QUICK, "-d", "null")
    ended(client, 1, 5)
    sentence = one_sentence(client, NAME)
    check("null" in sentence and "soft" in sentence, sentence)
    server.wait_for("null", 5, "err")
    check(server.running(), "a server waits on for a client it can serve", server)


# ---- what this machine does not have ----

@test
def a_gpu_that_is_not_here_is_refused():
    # -t is the client's and -r the server's; --local has both.
    for args in (("-t", "65535"), ("-r", "65535"), ("-t", "65535", "-g", "amd"),
                 ("--rx-gpu=65535", "-g", "NVIDIA"), ("-t", "65535", "-g", "intel")):
        for role in ROLES:
            mine = "-r" if role == ROLES[0] else "-t"
            if role != ROLES[2] and mine[1] != args[0].strip("-")[0]:
                continue
            process = ended(Process([TOOL, *role, *args], limit=REFUSAL_S), 1)
            check("GPU" in one_sentence(process, NAME), process)
            equal(process.out, "")


@test
def huge_pages_for_gpu_buffers_have_no_effect_and_stderr_says_so():
    process = ended(Process([TOOL, "-p", "0", "-r", "65535", "--use-hp", "2M"], limit=REFUSAL_S), 1)
    check("--use-hp" in process.err and "no effect" in process.err, process)


@test
def a_cpu_that_is_not_here_is_refused():
    for cpu in ("4095", "65535"):
        refused(1, "-p", "0", "--cpu", cpu, names=(f"CPU {cpu}: no such CPU",))
        ended(run(TOOL, "--local", "--cpu", cpu, *QUICK), 1)
        process = ended(run(TOOL, "--local", "--cpu", f"0,{cpu}", *QUICK), 1)
        check(cpu in one_sentence(process, NAME), process)


def huge_pages(page_kib, what, number=None):
    path = f"/sys/kernel/mm/hugepages/hugepages-{page_kib}kB/{what}"
    try:
        with open(path, "r" if number is None else "w", encoding="utf-8") as file:
            return int(file.read()) if number is None else file.write(str(number))
    except OSError:
        skip(f"no {path}")


def not_enough_huge_pages(name, page_kib, size, pages):
    if huge_pages(page_kib, "free_hugepages"):
        skip("this machine has free huge pages")
    traces = tap.Traces()
    process = ended(run(TOOL, "--local", "--use-hp", name, "-s", size, *QUICK, env=traces.env), 1)
    sentence = one_sentence(process, NAME)
    for word in (f"of {name}: {2 * pages} needed by both ends, 0 free", f"echo {2 * pages} > /sys",
                 "nr_hugepages"):
        check(word in sentence, f"no {word!r}", sentence)
    traces.nothing()


tap.add("not enough huge pages of 2M: how many, and how to get them", not_enough_huge_pages, "2M",
        2048, "5M", 3, by_itself=True)
tap.add("not enough huge pages of 1G: how many, and how to get them", not_enough_huge_pages, "1G",
        1048576, "8", 1, by_itself=True)


@test
def two_kinds_of_huge_pages_that_are_missing_are_asked_for_at_once():
    if huge_pages(2048, "free_hugepages") or huge_pages(1048576, "free_hugepages"):
        skip("this machine has free huge pages")
    process = run(tap.tool_path("ucx_perftest"), "--local", "-t", "put_lat", "-x", "soft", "-m",
                  "2M,1G")
    sentence = one_sentence(ended(process, 1), "ucx_perftest")
    check("of 2M: 1 needed, 0 free; of 1G: 1 needed, 0 free; as root: echo" in sentence, sentence)
    equal(sentence.count("; echo 1 > /sys/kernel/mm/hugepages"), 1, sentence)


@alone
def huge_pages_are_used_where_there_are_enough():
    before = huge_pages(2048, "nr_hugepages")
    if os.geteuid():
        skip("only root can set huge pages aside")

    def restore():
        huge_pages(2048, "nr_hugepages", before)

    tap.at_exit(restore)
    try:
        huge_pages(2048, "nr_hugepages", before + 8)
        if huge_pages(2048, "free_hugepages") < 8:
            skip("the kernel has no 8 huge pages to set aside")
        for size, pages in (("8", 1), ("2M", 1), ("5M", 3)):
            for process in tap.pair(TOOL, *QUICK, "--use-hp", "2M", "-s", size, "--verify"):
                equal(header_value(process, "Hugepages"), f"Enabled (2M - {pages} pages)")
        process = ended(run(TOOL, "--local", *QUICK, "--use-hp", "2M", "-s", "32M"), 1)
        advice = re.search(r"32 needed by both ends, .*: echo (\d+) > /sys/kernel/mm/hugepages/"
                           r"hugepages-2048kB/nr_hugepages$", one_sentence(process, NAME))
        check(advice, process)
        huge_pages(2048, "nr_hugepages", int(advice[1]))
        if huge_pages(2048, "free_hugepages") >= 32:
            ended(run(TOOL, "--local", *QUICK, "--use-hp", "2M", "-s", "32M"), 0)
        for _ in range(20):
            if huge_pages(2048, "free_hugepages") >= 8:
                break
            time.sleep(0.1)
        check(huge_pages(2048, "free_hugepages") >= 8, "huge pages are not given back")
    finally:
        restore()
    equal(huge_pages(2048, "nr_hugepages"), before)


@alone
def the_largest_size_that_fits_works():
    if SANITIZED:
        skip("a sanitizer needs more memory and time")
    fits = tap.available_bytes()
    if fits < 4 << 30:
        skip("needs 4 GiB of available memory")
    size = 4294967295 if fits >= 12 << 30 and "--full" in sys.argv else 1 << 30
    client = ended(run(TOOL, "--local", "-s", str(size), "-n", "1", "--warmup", "0",
                       "--latency-gap", "0", limit=60), 0)
    equal([row[:2] for row in rows_of(client)], [(size, 1)])
    equal(header_value(client, "Write Size"), str(size))


@alone
def the_largest_rendezvous_works():
    if SANITIZED or "--full" not in sys.argv:
        skip("takes half a minute and 16 GiB: see make soak")
    if tap.available_bytes() < 20 << 30:
        skip("needs 20 GiB of available memory")
    client = ended(run(tap.tool_path("cxi_send_lat"), "--local", "-R", "-s", "4294967295", "-n",
                       "1", "--warmup", "0", "--latency-gap", "0", limit=120), 0)
    equal([row[:2] for row in rows_of(client)], [(4294967295, 1)])
    equal(header_value(client, "Send Size"), "4294967295")


def says_what_is_missing(iters):
    """All samples are kept for --report-all, 8 bytes each: in half of the memory at most."""
    iters = iters or str(tap.available_bytes() * 7 // 10 // 8)
    process = ended(run(TOOL, "--local", "-n", iters, "--report-all", limit=10), 1)
    sentence = one_sentence(process, NAME)
    check("memory" in sentence and "samples need" in sentence and "available" in sentence, sentence)
    check("RDMA" not in process.out, process)


for iters in ("18446744073709551615", "2305843009213693952", "100000000000000", ""):
    tap.add(f"{iters or 'most of it in'} samples do not fit into memory, and it says what is "
            "missing", says_what_is_missing, iters)


@test
def a_buffer_that_cannot_be_mapped_is_a_sentence():
    if SANITIZED:
        skip("a sanitizer needs the address space")
    limited = ("sh", "-c", 'ulimit -v 1000000; exec "$0" "$@"', TOOL)
    process = ended(run(*limited, "--local", "-s", "2G", *QUICK), 1)
    check("2147483648" in one_sentence(process, NAME) or "GiB" in process.err, process)


@test
def too_few_descriptors_are_a_sentence():
    for number in range(3, 9):
        limited = ("sh", "-c", f'ulimit -n {number}; exec "$0" "$@"', TOOL)
        process = run(*limited, "--local", *QUICK, limit=10)
        if process.code == 127 or process.code == 0:
            continue  # not even the shell or the loader could start; or it was enough
        check(process.code in (1, 4), process)
        check(tap.sentences(process), process)


# ---- nobody there ----

@test
def no_server_is_exit_4_after_the_wait():
    for wait, low, high in (("1", 0.9, 3), ("0", 0, 2), ("2", 1.9, 4)):
        port = tap.free_port()
        begin = time.monotonic()
        process = ended(run(TOOL, "127.0.0.1", "-p", port, "--wait", wait), 4)
        between(time.monotonic() - begin, low, high, "seconds")
        sentence = one_sentence(process, NAME)
        check("127.0.0.1" in sentence and port in sentence, sentence)
        equal(process.out, "")


@test
def a_name_that_does_not_resolve_is_exit_1():
    for name in ("a..b", "x" * 300):
        begin = time.monotonic()
        process = ended(run(TOOL, name, "--wait", "2"), 1)
        check(name[:60] in one_sentence(process, NAME), process)
        check(time.monotonic() - begin < 5, process)
        equal(process.out, "")


@test
def a_name_that_nobody_has_is_exit_1():
    try:
        socket.getaddrinfo("no-such-host.invalid", 1)
    except socket.gaierror as why:
        if why.errno == socket.EAI_AGAIN:
            skip("no name server answers here")
    process = ended(run(TOOL, "no-such-host.invalid", "--wait", "2"), 1)
    check("no-such-host.invalid" in one_sentence(process, NAME), process)


@test
def a_name_with_control_characters_does_not_reach_the_terminal():
    process = run(TOOL, "a\x1b[2J..\nb", "--wait", "1")
    check(process.code in (1, 2), process)
    check(one_sentence(process, NAME).isprintable(), ascii(process.err))


@test
def a_port_in_use_is_exit_1():
    server = Server(TOOL)
    for args in ((), ("--bind", "127.0.0.1"), ("--bind", "localhost"), ("--local",)):
        process = ended(run(TOOL, "-p", server.port, *args, limit=5), 1)
        check(server.port in one_sentence(process, NAME), process)
        equal(process.out, "")
    ended(Client(TOOL, server, *QUICK), 0)
    ended(server, 0)


@test
def an_address_that_is_not_ours_cannot_be_bound():
    for address in ("192.0.2.1", "a..b"):
        process = ended(run(TOOL, "-p", "0", "--bind", address, limit=10), 1)
        check(address in one_sentence(process, NAME), process)
        equal(process.out, "")


if __name__ == "__main__":
    tap.main()
