# SPDX-License-Identifier: BSD-3-Clause
"""The bandwidth tools' form: every line of a run at both ends as transcripts/bw has it, every option
accepted or refused in the words that scripts know, the usage text, and the scripts themselves."""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
import transcripts
from tap import (Client, Process, Server, check, ended, equal, header_value, lines_of, mask_fields,
                 one_sentence, pair, run, sentences, skip, test)

OPS = ("write", "read", "send", "atomic")
SIZED = OPS[:3]
SEPARATOR = "-" * 51
QUICK = ("-n", "2", "-l", "8")


def tool(op):
    return tap.tool_path(f"cxi_{op}_bw")


# ---- transcripts ----

EXAMPLES = sorted(path.name.partition(".")[0]
                  for path in (transcripts.FOLDER / "bw").glob("*.client.txt"))
# Lines of ours, and where each stands.
ADDED = ((("Device           : ",), r"Fabric           : soft \(.+\)"),
         (("Iterations       : ", "Duration         : "), r"Warmup Lists     : 1"))
ROW = r"( *\d+)(  +(?:\d+|-))((?:  +\d+\.\d{2}))((?:  +\d+\.\d{6}))"


def masked(line, counted):
    """Without what two machines need not share. The software NIC has no high-rate puts, and says so
    instead of whether it uses them; it holds a list in parts."""
    for pattern, replacement in (transcripts.PORT, transcripts.NIC,
                                 (r"^(List Size +: \d+) \(\d+ at a time\)$", r"\1"),
                                 (r"^(HRP +: ).*$", r"\1")):
        line = re.sub(pattern, replacement, line)
    row = re.fullmatch(ROW, line)
    if not row:
        return line
    count = row[2] if counted or row[2].endswith("-") else mask_fields(row[2])
    # 100 GB/s, which memory reaches, are a digit wider than their column.
    bandwidth = re.sub(r"\d+(?=\d{5}\.)", "", row[3])
    return row[1] + count + mask_fields(bandwidth) + mask_fields(row[4])


def same(process, name, end):
    theirs = lines_of(transcripts.read(f"bw/{name}.{end}"))[1:]
    ours = transcripts.without_added(process.out, ADDED)
    counted = "Test Type        : Iteration" in theirs
    for number, (our, their) in enumerate(zip(ours, theirs), 1):
        equal(masked(our, counted), masked(their, counted), f"line {number}", process)
    equal(len(ours), len(theirs), "lines", process)


def figures(process):
    """(BW, rate) of every row, as printed."""
    return [re.fullmatch(ROW, line).groups()[2:] for line in lines_of(process.out)
            if re.fullmatch(ROW, line)]


def example(name):
    word, *server_args = transcripts.command(f"bw/{name}", "server")
    same_word, _address, *args = transcripts.command(f"bw/{name}", "client")
    equal(same_word, word)
    env, path = None, tap.tool_path(word)
    if name.endswith("_gpu"):
        folder = tap.doubles_folder()
        env, path = {"WEFT_TEST_GPU": folder, "FAKE_CUDA_GPUS": "2"}, os.path.join(folder, "gpu_" + word)
    server, client = pair(path, *args, server_args=server_args, env=env)
    same(server, name, "server")
    same(client, name, "client")
    equal(figures(server), figures(client), "both ends print the same figures", server, client)
    equal(sentences(server) + sentences(client), [], server, client)


for _name in sorted(EXAMPLES, key=lambda name: "duration" not in name):
    tap.add(f"the transcript of {_name}", example, _name)


@test
def every_tool_has_its_transcripts():
    wanted = {f"{op}_{case}" for op in OPS for case in ("one_way", "both_ways", "duration")}
    wanted |= {f"{op}_{case}" for op in SIZED for case in ("range", "gpu")}
    equal(set(EXAMPLES), wanted | {"send_rendezvous", "atomic_fetching", "write_loopback"})


# ---- what holds for a size ----

ORDERED = "--unrestricted"
# (op, options, {label: value}), on a fabric that says it is a NIC with high-rate puts
HINTS = (
    ("write", (), {"HRP": "Disabled (over 2048 bytes)", "IDC": "Disabled (over 224 bytes)"}),
    ("write", ("-s", "224"), {"HRP": "Enabled", "IDC": "Enabled", "Restricted": "Enabled"}),
    ("write", ("-s", "2048"), {"HRP": "Enabled", "IDC": "Disabled (over 224 bytes)"}),
    ("write", ("-s", "8:4096"), {"HRP": "Enabled (not over 2048 bytes)",
                                 "IDC": "Enabled (not over 224 bytes)"}),
    ("write", ("-s", "193", ORDERED), {"HRP": "Disabled - Not Applicable", "Restricted": "Disabled",
                                       "IDC": "Disabled (over 192 bytes)"}),
    ("write", ("-s", "8", "--no-hrp", "--no-idc"), {"HRP": "Disabled", "IDC": "Disabled"}),
    ("read", (ORDERED,), {"Restricted": "Disabled"}),
    ("send", ("-s", "192"), {"IDC": "Enabled", "Rendezvous PUTs": "Disabled"}),
    ("send", ("-s", "193"), {"IDC": "Disabled (over 192 bytes)"}),
    ("send", ("-s", "8", "-R"), {"IDC": "Disabled (not by rendezvous)",
                                 "Rendezvous PUTs": "Enabled"}),
    ("atomic", (), {"HRP": "Enabled", "IDC": "Enabled", "Matching LEs": "Disabled",
                    "Restricted": "Enabled"}),
    ("atomic", ("--fetching",), {"HRP": "Disabled - Not Applicable", "IDC": "Enabled"}),
    ("atomic", ("--matching",), {"HRP": "Disabled - Not Applicable", "Matching LEs": "Enabled",
                                 "IDC": "Disabled - Not Applicable",
                                 "Restricted": "Disabled - Not Applicable"}),
    ("atomic", ("--no-hrp", "--no-idc"), {"HRP": "Disabled", "IDC": "Disabled"}),
)
NIC = {"WEFT_MODULE_PATH": tap.doubles_folder()}


@test
def the_header_says_what_holds_for_the_sizes():
    def one(case):
        op, options, wanted = case
        process = ended(run(tool(op), "--local", "-d", "nic", *QUICK, *options, env=NIC), 0)
        for label, value in wanted.items():
            equal(header_value(process, label), value, process)

    tap.in_parallel(one, HINTS, 4)


# ---- options ----

# option: (the tools that have it, [a value that is good], [(a bad one, how the sentence begins)])
WRS, ALL = SIZED, OPS
OPTIONS = {
    "-d": (ALL, "cxi1", [("foo", "Device name must include cxi prefix (ex: cxi0): foo"),
                         ("cxi99", "Invalid device name: cxi99"),
                         ("cxi0x", "Invalid device name: cxi0x")]),
    "-v": (ALL, "1", [(text, f"Invalid svc_id: {text}") for text in ("0", "2147483648", "0x1")]),
    "-p": (ALL, "0", [(text, f"Invalid port: {text}") for text in ("65536", "http", "-1")]),
    "-t": (WRS, None, [(text, f"Invalid src gpu device: {text}") for text in ("x", "-1")]),
    "-r": (WRS, None, [(text, f"Invalid dest gpu device: {text}") for text in ("x", "65536")]),
    "-g": (WRS, "intel", [("ATI", "Invalid gpu type: ATI. Must be AMD or NVIDIA")]),
    "-n": (ALL, "3", [(text, f"Invalid iteration count: {text}") for text in ("0", "-1", "1e3")]),
    "-D": (ALL, "1", [(text, f"Invalid duration: {text}") for text in ("0", "1.5", "1s")]),
    "-s": (WRS, "8:64", [(text, f"Invalid size: {text}")
                         for text in ("0", "8x", "-1", "4294967296", "8:4", "8:")] +
           [("3:8", "Invalid size: 3:8 (ranges must be powers of 2)")]),
    "-l": (ALL, "16382", [(text, f"Invalid list size: {text}")
                          for text in ("0", "16383", "65537", "-1")]),
    "-b": (ALL, None, []),
    "-R": (("send",), None, []),
    "--unrestricted": (("write", "read", "atomic"), None, []),
    "--no-hrp": (("write", "atomic"), None, []),
    "--no-idc": (("write", "send", "atomic"), None, []),
    "--buf-sz": (WRS, "1M", [(text, f"Invalid buffer size: {text}") for text in ("0", "-1", "1x")]),
    "--buf-align": (WRS, "24", [(text, f"Invalid buffer alignment: {text}") for text in ("0", "x")]),
    "--use-hp": (WRS, None, [("4K", "Invalid hugepage type: 4K. Must be 2M or 1G")]),
    "-A": (("atomic",), "min", [("MUL", "Invalid atomic operation: MUL")]),
    "-C": (("atomic",), None, [("ZZ", "Invalid CSWAP operation: ZZ")]),
    "-T": (("atomic",), "int32", [("INT256", "Invalid atomic type: INT256")]),
    "--fetching": (("atomic",), None, []),
    "--matching": (("atomic",), None, []),
}
# What no single option is to blame for.
TOGETHER = [(op, ("--buf-sz", "100", "-s", "64:128"),
             f"Max RDMA buffer size (100) < max {op} size (128)!") for op in SIZED]
TOGETHER += [("atomic", ("-A", "BOR", "-T", "FLOAT"), "Invalid Op and Type combination: BOR")]
for _op in OPS:
    TOGETHER += [(_op, ("one", "two", "three"), "Unexpected argument: two"),
                 # Values first, wherever they stand.
                 (_op, ("one", "two", "-n", "0"), "Invalid iteration count: 0"),
                 (_op, ("-n",), "-n (--iters) needs a value"), (_op, ("--nosuch",), "unknown option")]
TOGETHER += [("write", ("--buf-sz", "1", "one", "-t", "65535"), "Max RDMA buffer size (1) <"),
             ("write", ("one", "-t", "65535", "-d", "foo"),
              "Invalid GPU type or unable to find GPU libraries")]
FLAGS = [option for option, (_, _, bad) in OPTIONS.items() if not bad]


def refused(op, args, begins):
    process = run(tool(op), *args, limit=10)
    check(process.code in (1, 2), "refused", process)
    said = one_sentence(process, f"cxi_{op}_bw")
    check(said.startswith(f"cxi_{op}_bw: {begins}"), f"{begins!r} is wanted", process)
    equal(process.out, "", process)


def options_of(op):
    cases = [case[1:] for case in TOGETHER if case[0] == op]
    for option, (ops, _, bad) in OPTIONS.items():
        if op not in ops:
            words = (option,) if option in FLAGS else (option, "1")
            cases.append((words, f"unknown option: {option}"))
        for value, begins in bad if op in ops else ():
            cases.append(((option, value), begins))
    cases += [((option + "=1",), f"{option} takes no value") for option in FLAGS
              if option.startswith("--") and op in OPTIONS[option][0]]
    cases.append((("--emu-mode",), "--emu-mode is for time from a register"))
    tap.in_parallel(lambda case: refused(op, *case), cases, 4)


def server_takes_all(op):
    """As HPE's scripts start it; the client's options are the ones that count."""
    args = []
    for option, (ops, good, _) in OPTIONS.items():
        if op in ops and (good or option in FLAGS) and option not in ("-p", "-d"):
            args += [option] + ([good] if good else [])
    server, client = pair(tool(op), *QUICK, server_args=args)
    equal(header_value(server, "Iterations"), "2", server)
    equal(header_value(server, "Bidirectional"), "Disabled", server)
    equal(figures(server), figures(client))


def abbreviations(op):
    """Options may be cut short, and stand anywhere."""
    server = Server(tool(op))
    client = ended(Process([tool(op), "--iter", "2", "127.0.0.1", "--list-s=8", "-bp", server.port]), 0)
    ended(server, 0)
    for end in (server, client):
        equal([header_value(end, label) for label in ("Iterations", "List Size", "Bidirectional")],
              ["2", "8", "Enabled"], end)


# In the order of the specification.
LONG = {"-d": "device=DEV", "-v": "svc-id=SVC_ID", "-p": "port=PORT", "-t": "tx-gpu=GPU",
        "-r": "rx-gpu=GPU", "-g": "gpu-type=TYPE", "-n": "iters=ITERS", "-D": "duration=SEC",
        "-s": "size=MIN[:MAX]", "-l": "list-size=SIZE", "-b": "bidirectional", "-R": "rdzv",
        "-A": "atomic-op", "-C": "cswap-op", "-T": "atomic-type", "-h": "help", "-V": "version"}
TAIL = ("buf-sz=SIZE", "buf-align=ALIGN", "use-hp=SIZE", "-h", "-V")
FIRST = ("-d", "-v", "-p", "-t", "-r", "-g", "-n", "-D", "-s", "-l", "-b")
ORDER = {"write": (*FIRST, "unrestricted", "no-hrp", "no-idc", *TAIL),
         "read": (*FIRST, "unrestricted", *TAIL), "send": (*FIRST, "-R", "no-idc", *TAIL),
         "atomic": ("-d", "-v", "-p", "-n", "-D", "-l", "-A", "-C", "-T", "-b", "fetching",
                    "matching", "unrestricted", "no-hrp", "no-idc", "-h", "-V")}
DEFAULTS = {"device": '"cxi0"', "svc-id": "1", "port": "49194", "iters": "1000", "size": "65536",
            "list-size": "256", "buf-sz": "4294967296", "buf-align": "64"}


def usage(op):
    shown = ended(run(tool(op), "--help"), 0)
    theirs, _, ours = shown.out.partition("\nWeft options:\n")
    rows = re.findall(r"^  (-\w, |    )--(\S+)( *)(\S.*)$", theirs, re.M)
    equal([f"{letter.strip(', ')}" if letter.strip() else name for letter, name, *_ in rows],
          list(ORDER[op]), shown)
    for letter, name, gap, _ in rows:
        equal(8 + len(name) + len(gap), 25, f"the column of --{name}", shown)
        equal(name, LONG.get(letter.strip(", "), name), shown)
    check(all(len(line) - len(line.lstrip()) in (0, 1, 2, 6, 25) for line in lines_of(theirs)), shown)
    named = dict(DEFAULTS, **({"iters": "10000", "list-size": "4096"} if op == "atomic" else {}))
    for option, value in named.items():
        text = re.search(rf"--{option}=.*?\(default: (.*?)\)", theirs, re.S)
        equal(text[1] if text else value, value, option, shown)
    if op == "atomic":
        heads = re.findall(r"^(\w+ (?:Ops|Types)):$", theirs, re.M)
        equal(heads, ["Atomic Ops", "CSWAP Ops", "Atomic Types"], shown)
    check("emu-mode" not in shown.out and "--warmup=LISTS" in ours, shown)


for _op in OPS:
    tap.add(f"cxi_{_op}_bw: what is wrong is said in the known words", options_of, _op)
    tap.add(f"cxi_{_op}_bw: a server takes every option", server_takes_all, _op)
    tap.add(f"cxi_{_op}_bw: options cut short, anywhere", abbreviations, _op)
    tap.add(f"cxi_{_op}_bw: the usage text", usage, _op)


# ---- scripts in the field ----

def through_shell(text, script):
    return subprocess.run(["sh", "-c", script], input=text, stdout=subprocess.PIPE, text=True,
                          timeout=20, check=True).stdout


@test
def bwcheck_reads_the_bandwidth():
    """HPE's: server with a duration of its own, both directions, the third word of the row."""
    for op in SIZED:
        path = os.path.join(tap.folder(), "json")
        server = Server(tool(op), "-D", "10")
        client = ended(Client(tool(op), server, "-D", "1", "-s", "65536", "-b", "--json", path), 0)
        ended(server, 0)
        with open(path, encoding="utf-8") as file:
            result, = json.load(file)["results"]
        for end in (client, server):
            text = through_shell(end.out, "grep 65536 | grep -v Size | awk '{print $3}'")
            equal(text, f"{result['sum']['bytes_per_s'] / 1e6:.2f}\n", end)


@test
def the_plot_script_runs_its_sizes():
    if tap.available_bytes() < 10 << 30:
        skip("two buffers of 1 GiB, a quarter of what is available each")
    for op in SIZED:
        few = () if op == "write" else ("-l", "4")
        client = ended(run(tool(op), "--local", "--size=1:4194304", "-n", "1", "--warmup", "0", *few), 0)
        sizes = through_shell(client.out, "awk '$1 ~ /^[0-9]+$/ {print $1}'").split()
        equal([int(size) for size in sizes], [1 << i for i in range(23)], client)
        used = (1 << 22) * (256 if op == "write" else 4)
        equal(header_value(client, "Max RDMA Buf"), f"4294967296 ({used} used)", client)


if __name__ == "__main__":
    tap.main()
