# SPDX-License-Identifier: BSD-3-Clause
"""every_tool_test.py BUILD TOOLS_DEF FABRICS_DEF: what must hold of every tool of the CXI family,
read from the lists, so that a new tool or fabric is tested without being told."""
import json
import re
import sys

sys.dont_write_bytecode = True
import lists
import tap
from tap import (check, ended, equal, header_value, lines_of, one_sentence, pair, run,
                 sentences)

PAIRS = lists.cxi_tools(sys.argv[2])
ALONE = lists.loopback_tools(sys.argv[2])
TOOLS = PAIRS + ALONE
DEVICES = [(kind == "FABRIC_MODULE", device) for kind, _, words in
           lists.entries(sys.argv[3], "FABRIC_") for device in words[-1].split()]
COUNT = 20
LIST = 30
# By method, and of tools that are both ends: what makes it short, what its header has, and how many
# operations it counts.
QUICK = {"latency": ("-n", str(COUNT), "--latency-gap", "0", "--warmup", "2"),
         "list": ("-n", str(COUNT), "-l", str(LIST), "--warmup", "2"),
         "alone": ("-i", str(COUNT), "-n", str(LIST), "--warmup", "2")}
LABELS = {"latency": ("Device", "Fabric", "Service ID", "Test Type", "Iterations", "Warmup Iters",
                      "Inter-Iter Gap", "LL Cmd Launch", "Results Reported", "Clock"),
          "list": ("Device", "Fabric", "Service ID", "Test Type", "Iterations", "Warmup Lists",
                   "List Size", "Bidirectional"),
          "alone": ("Device", "Fabric", "Service ID", "TX Mem", "RX Mem", "Test Type", "Iterations",
                    "Warmup Lists", "Write Size (B)", "Cmds per iter", "Hugepages")}
COUNTED = {"latency": COUNT, "list": COUNT * LIST, "alone": COUNT * LIST}
METHOD = {**{name: method for name, _title, _op, method in PAIRS},
          **{name: "alone" for name, *_ in ALONE}}


def is_list(name):
    return METHOD[name] != "latency"


def is_alone(name):
    return METHOD[name] == "alone"


def has_sizes(name):
    """Not an atomic, whose type has its size."""
    return re.search(r"^ +(-s, )?--size=", run(tap.tool_path(name), "--help").out, re.M)


def table_of(process):
    """(title, [rows as lists of words]): all rows have a word for each column."""
    lines = lines_of(process.out)
    check(lines, "no table", process)
    rule = lines[0]
    check(set(rule) == {"-"}, "the first line is no separator", process)
    places = [i for i, line in enumerate(lines) if line == rule]
    equal(places[0], 0, process)
    equal(places[-1], len(lines) - 1, "the last line is a separator", process)
    equal(len(places), 3, "header and table", process)
    titles, *rows = lines[places[1] + 1:places[2]]
    columns = len(re.split(r" {2,}", titles.strip()))
    for row in rows:
        equal(len(row.split()), columns, "words in a row", process)
        # What moves nothing is faster than its column is wide.
        check(len(row) == len(titles) or "moves nothing" in process.out, "the length of a row", process)
    return titles, [row.split() for row in rows]


def header_is_whole(name, process, title, device):
    lines = lines_of(process.out)
    equal(lines[1], "    " + title, process)
    for line in lines[2:lines.index(lines[0], 1)]:
        check(re.fullmatch(r"\S.{15} : \S.*", line), f"a header line: {line!r}", process)
    for label in LABELS[METHOD[name]]:
        check(header_value(process, label), label, process)
    equal(header_value(process, "Device"), device)
    equal(header_value(process, "Iterations"), str(COUNT))
    for label in ("Local (client)", "Remote (server)"):
        equal(f"\n{label}" in process.out, not is_alone(name), label, process)


def rows_are_sane(name, process, sizes=None):
    titles, rows = table_of(process)
    if sizes:
        equal([int(row[0]) for row in rows], sizes, process)
    else:
        equal(len(rows), 1, "one size, one row", process)
    columns = re.split(r" {2,}", titles.strip())
    for row in rows:
        equal(int(row[1]), COUNTED[METHOD[name]], "operations", process)
        of = dict(zip(columns, row))
        if is_list(name):
            check(float(row[-1]) > 0, "a rate", process)
            continue
        least, mean, most = (float(of[key].lstrip("<")) for key in ("Min[us]", "Mean[us]", "Max[us]"))
        check(least <= mean <= most, process)


def local(name, device, *args, **more):
    both = () if is_alone(name) else ("--local",)
    return run(tap.tool_path(name), *both, "-d", device, *QUICK[METHOD[name]], *args, **more)


def good(process):
    ended(process, 0)
    equal([said for said in sentences(process) if "disturbed while measuring" not in said], [],
          process)
    return process


# ---- alone ----

def help_and_version(name, _title, _op, _method):
    shown = ended(run(tap.tool_path(name), "--help"), 0)
    check(name in shown.out, shown)
    for option in ("--local", "--verify", "--json", "--help"):
        equal(bool(re.search(rf"^ +(-\w, )?{option}\b", shown.out, re.M)),
              option != "--local" or not is_alone(name), option, shown)
    equal(shown.err, "")
    check(ended(run(tap.tool_path(name), "--version"), 0).out.startswith(f"{name} (Weft) "))


def nonsense_is_refused(name, _title, _op, _method):
    for words in (("--nosuch",), ("-n", "x"), ("--local", "host"), ("-d",)):
        process = ended(run(tap.tool_path(name), *words), 2)
        one_sentence(process, name)
        equal(process.out, "")


# ---- two ends ----

def both_ends_here(name, title, _op, _method):
    for device in ("soft", "null"):
        process = good(local(name, device))
        header_is_whole(name, process, title, device)
        rows_are_sane(name, process)


def a_range_has_a_row_a_size(name, title, _op, _method):
    if not has_sizes(name) or is_alone(name):
        tap.skip("it measures one size")
    for device in ("soft", "null"):
        process = good(local(name, device, "-s", "1:64"))
        header_is_whole(name, process, title, device)
        rows_are_sane(name, process, [1, 2, 4, 8, 16, 32, 64])


def data_is_verified(name, title, _op, _method):
    process = good(local(name, "soft", "--verify"))
    header_is_whole(name, process, title, "soft")
    rows_are_sane(name, process)
    if has_sizes(name):
        for size in ("1", "7", "225", "4097", "65536"):
            rows_are_sane(name, good(local(name, "soft", "--verify", "-s", size)), [int(size)])


def null_has_nothing_to_verify(name, _title, _op, _method):
    process = local(name, "null", "--verify")
    check(process.code in (1, 2), process)
    check("moves nothing" in one_sentence(process, name), process)


def wrong_data_is_found(name, _title, _op, _method):
    # What is written over and over in one place is checked once.
    many = ("-i", "100", "-n", "1") if is_alone(name) else ("-n", "100")
    process = local(name, "corrupts_all", "--verify", *many)
    check(process.code == 1, "wrong data passed for right", process)
    check("verify" in one_sentence(process, name), process)


def a_server_and_a_client(name, title, _op, _method):
    server, client = pair(tap.tool_path(name), *QUICK[METHOD[name]])
    rows_are_sane(name, client)
    header_is_whole(name, client, title, "cxi0")
    if is_list(name):
        # The same figures, without a count: it has initiated nothing.
        equal(lines_of(server.out)[-2].split(), [word if i != 1 else "-" for i, word in
                                                 enumerate(lines_of(client.out)[-2].split())])
    else:
        equal(lines_of(server.out)[-2], "See client for results.", server)
    for label in LABELS[METHOD[name]][3:6]:
        equal(header_value(server, label), header_value(client, label))


def two_tools_do_not_talk(name, _title, _op, _method):
    others = [other for other, *_ in PAIRS if other != name]
    server = tap.Server(tap.tool_path(name), "--timeout", "5")
    client = ended(tap.Client(tap.tool_path(others[0]), server, *QUICK[METHOD[others[0]]]), 1)
    check(others[0] in client.err and name in client.err, client)


def every_sample_is_printed(name, _title, _op, _method):
    if is_list(name):
        tap.skip("its samples are lists")
    process = good(local(name, "soft", "--report-all"))
    equal([len(samples) for samples in tap.samples_of(process)], [COUNT], process)


def unresolved(process):
    return [line for line in lines_of(process.err) if ": not resolved: " in line]


def many_together_are_resolved(name, _title, op, _method):
    if is_list(name):
        tap.skip("its samples are lists")
    together = good(local(name, "null", "--ops-per-sample", "1000"))
    equal(header_value(together, "Ops per Sample"), "1000")
    equal([int(row[1]) for row in table_of(together)[1]], [1000 * COUNT], together)
    equal(unresolved(together), [], together)
    for _ in range(5):  # a busy machine makes nothing long
        alone = good(local(name, "null", "--percentiles", "50"))
        if tap.SANITIZED or unresolved(alone):
            break
    check("Ops per Sample" not in alone.out, alone)
    if tap.SANITIZED:
        return
    columns = re.split(r" {2,}", table_of(alone)[0].strip())
    of = dict(zip(columns, table_of(alone)[1][0]))
    # What other ops do besides may last as long as a costly clock needs; a write does not.
    below = [column for column in ("Min[us]", "p50[us]") if of[column].startswith("<")]
    check(len(unresolved(alone)) == ("p50[us]" in below), alone)
    check(below == ["Min[us]", "p50[us]"] or (op != "write" and "p50[us]" not in below), alone)
    check(all(re.fullmatch(r"<?0\.\d{3}", of[column]) for column in ("Min[us]", "p50[us]")), alone)


def the_document_has_the_same(name, _title, op, method):
    process = good(local(name, "soft", "--json", "-"))
    document = json.loads(process.out)
    equal(document["tool"]["name"], name)
    equal([(r["test"], r["method"]["name"], r["count"], r["operations"])
           for r in document["results"]], [(op, method, COUNT, COUNTED[METHOD[name]])])


for _tool in TOOLS:
    for _test in (help_and_version, nonsense_is_refused, both_ends_here, a_range_has_a_row_a_size,
                  data_is_verified, null_has_nothing_to_verify, wrong_data_is_found,
                  every_sample_is_printed, many_together_are_resolved, the_document_has_the_same):
        tap.add(f"{_tool[0]}: {_test.__name__}", _test, *_tool)
for _tool in PAIRS:
    for _test in (a_server_and_a_client, two_tools_do_not_talk):
        tap.add(f"{_tool[0]}: {_test.__name__}", _test, *_tool)


# ---- every fabric ----

def runs_or_says_why_not(name, title, is_module, device):
    sizes = [8, 16, 32, 64] if has_sizes(name) and not is_alone(name) else None
    process = local(name, device, "--verify", *(("-s", "8:64") if sizes else ()))
    if process.code == 0:
        header_is_whole(name, process, title, device)
        rows_are_sane(name, process, sizes)
        return
    check(process.code in (1, 2), process)
    said = one_sentence(process, name)
    check(len(said) > len(name) + 10, process)
    if is_module and ("there is no" in said or "not installed" in said):
        tap.skip(said)


for _name, _title, *_ in TOOLS:
    for _module, _device in DEVICES:
        tap.add(f"{_name} on {_device} runs or says why not", runs_or_says_why_not, _name, _title,
                _module, _device)

if __name__ == "__main__":
    tap.main()
