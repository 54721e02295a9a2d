# SPDX-License-Identifier: BSD-3-Clause
"""weft map on one machine, over null, which does what it is told: the slow rank is named and nothing
else, equal ranks are equal, and documents are what the schema says. With --full, twenty maps."""
import os
import re
import shutil
import signal
import sys

sys.dont_write_bytecode = True
import schema
import tap
from tap import check, ended, equal, run, test

WEFT = tap.tool_path("weft")
LIMIT_S = 300  # on a machine that does twenty other things
FULL = "--full" in sys.argv
SLOW = "null:delay=20us,extra=2us,slow=5,rank=%r"
QUICK = ("-n", "20", "--at-once", "1", "--partners", "all+8")


def map_of(ranks, *args, code=None):
    path = os.path.join(tap.folder(), "map.json")
    process = run(WEFT, "map", "--local", str(ranks), "--timeout", "60", "--json", path, *args,
                  limit=LIMIT_S)
    check(code is None or process.code == code, f"exit code {process.code}, {code} is wanted",
          process)
    with open(path, encoding="utf-8") as file:
        return process, schema.read(file.read(), "weft-map")


def named(document):
    """What is slower: [(kind, numbers of nodes)]."""
    return [(f["kind"], f["a"], f.get("b")) for f in document["findings"]
            if f["verdict"] == "slower"]


def quiet_map(device, code):
    """A map that could tell. On a machine that does other things, most say that they cannot."""
    for _ in range(4):
        process, document = map_of(24, "-d", device, *QUICK)
        if process.code != 5:
            check(process.code == code, f"exit code {process.code}, {code} is wanted", process)
            return process, document
    return tap.skip("other work on this machine hid the slow rank in every attempt: "
                    f"{os.getloadavg()[0]:.0f} processes")


def slow_rank_is_named():
    process, document = quiet_map(SLOW, 3)
    equal(named(document), [("node", 5, None)], process)
    return process, document


def equal_ranks_are_equal():
    process, document = quiet_map("null:delay=20us", 0)
    equal(named(document), [], process)


def tries(what, count, wanted):
    good = 0
    for _ in range(count):
        try:
            what()
            good += 1
        except tap.Failure as why:
            tap.note(str(why)[-1500:])
    check(good >= wanted, f"{good} of {count} maps hold")


if FULL:
    @test
    def nineteen_of_twenty_maps_name_the_slow_rank_and_nothing_else():
        tries(slow_rank_is_named, 20, 19)

    @test
    def nineteen_of_twenty_maps_of_equal_ranks_name_none():
        tries(equal_ranks_are_equal, 20, 19)

    tap.main(1)
    sys.exit()


@test
def a_rank_whose_pairs_are_slower_by_a_tenth_is_named_and_nothing_else():
    process, document = slow_rank_is_named()
    check("slower" in process.out and "would be found with probability" in process.out, process)
    check("\x1b" not in process.out, "colours in a pipe", process)
    equal(document["pairs_measured"], 276)
    pairs = {(p["a"], p["b"]) for p in document["pairs"]}
    equal(pairs, {(a, b) for a in range(24) for b in range(a + 1, 24)}, "all pairs, once")
    tap.between(document["nodes"][5]["effect_percent"], 8, 12, "a programmed 10 %")
    check(document["model"]["power"][1]["probability"] > 0.8, document["model"])


@test
def equal_ranks_exit_with_0():
    equal_ranks_are_equal()


@test
def sixty_four_ranks_give_a_complete_map():
    path = os.path.join(tap.folder(), "cells")
    process, document = map_of(64, "-d", "null:delay=5us", "-n", "3", "--partners", "4+2",
                               "--timeout", "120", "--cells", path)
    equal(document["lost"], [], process)
    equal(document["failed"], [], process)
    equal(document["pairs_measured"], 4 * 32, process)
    check("A single slow pair could not be found" in process.out, process)
    with open(path, encoding="utf-8") as file:
        first = [line for line in file if line.startswith("1 ")]
    equal(len(first), 4 * 32)


@test
def a_pair_on_this_machine_has_two_cpus():
    """Left alone, its ends are put on one, and each message waits for a switch between them."""
    if len(os.sched_getaffinity(0)) < 2:
        tap.skip("there is one CPU")
    process, document = map_of(3, "-d", "soft:cxi0", "-n", "200", "--at-once", "1", "--partners", "1+1")
    for pair in document["pairs"]:
        check(pair["min_us"] < 5, "each message took a switch of processes", pair, process)


@test
def more_ranks_than_cpus_are_told_so():
    process = run(WEFT, "map", "--local", str(2 * os.cpu_count() + 2), "-d", "null", "--slot", "1", "--partners",
                  "1+1", limit=LIMIT_S)
    check(f"measure at once on {os.cpu_count()} CPU" in process.err, process)


@test
def ranks_that_measure_for_longer_than_the_timeout_are_not_lost():
    """Each pair takes 2 s of operations, one after the other."""
    process, document = map_of(4, "-d", "null:delay=1ms", "-n", "2000", "--at-once", "1", "--partners", "1+1",
                               "--timeout", "1")
    equal(document["lost"], [], process)
    equal(document["failed"], [], process)
    check(document["pairs_measured"] >= 2, process)


def names_of_tests():
    """As the tool says them where it knows none."""
    said = run(WEFT, "map", "--local", "2", "-t", "fly").err
    return re.findall(r"\w+", said[said.index("accepted:") + len("accepted:"):])


@test
def an_odd_number_of_ranks_and_any_test_of_the_suite():
    names = names_of_tests()
    check(len(names) > 30 and {"send_lat", "atomic_bw", "cswap", "ucp_am_bw", "stream_lat"} <= set(names), names)
    layer = os.path.exists(os.path.join(tap.build_folder(), "modules", "weft-ucp.so"))
    for what in names:
        ucp = what.startswith(("ucp_", "stream_"))
        if ucp and not layer:
            continue
        process, document = map_of(3, "-t", what, "-s", "8", "-n", "20")
        equal(document["pairs_measured"], 3, what, process)
        equal((document["failed"], document["lost"]), ([], []), what, process)
        check(not ucp or document["fabric"]["device"].startswith("ucp"), process)
    for what, device in (("put_bw", "cxi0"), ("send_bw", "null:delay=1us")):
        _, document = map_of(3, "-t", what, "-s", "4K", "-d", device, "-n", "20")
        equal(document["pairs_measured"], 3)


@test
def groups_come_from_a_file():
    groups = tap.file_with("# the cluster\n" + "".join(
        f"{os.uname().nodename}:{i} {'east' if i < 3 else 'west'}\n" for i in range(5)))
    _, document = map_of(6, "-d", "null:delay=2us", "-n", "5", "--groups", groups)
    equal(document["groups"], ["east", "west", "other"])
    equal([node["group"] for node in document["nodes"]],
          ["east"] * 3 + ["west"] * 2 + ["other"])


@test
def groups_that_fit_no_node_are_warned_of():
    groups = tap.file_with("nobody east\n")
    process, document = map_of(3, "-d", "null:delay=2us", "-n", "5", "--groups", groups,
                               "--min-effect", "7.5%")
    equal(document["groups"], [], process)
    check(f"0 of 3 nodes are in {groups}" in process.err, process)
    process, _ = map_of(3, "-d", "null:delay=2us", "-n", "5", "--groups", "switch")
    check("--groups switch: no device has the address of a switch" in process.err, process)


@test
def csv_has_a_line_per_pair_and_json_on_standard_output_stands_alone():
    path = os.path.join(tap.folder(), "pairs.csv")
    process = run(WEFT, "map", "--local", "4", "-d", "null", "-n", "5", "--timeout", "60",
                  "--csv", path, "--json", "-", limit=LIMIT_S)
    equal(schema.read(process.out, "weft-map")["launch"]["muster"], "local", process)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    equal(lines[0], "a,b,round,count,min_us,p50_us,p99_us,max_us")
    equal(len(lines), 1 + 6)


@test
def hosts_are_started_by_an_agent_and_named():
    path = os.path.join(tap.folder(), "map.json")
    process = run(WEFT, "map", "--hosts", "n[0-3]", "--agent", "env X=%h", "-d", "null:delay=5us",
                  "-n", "10", "--timeout", "60", "--json", path, limit=LIMIT_S)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    equal([node["name"] for node in document["nodes"]], ["n0", "n1", "n2", "n3"], process)
    equal((document["launch"]["muster"], document["launch"]["trusted"]), ("hosts", True))
    equal(document["pairs_measured"], 6, process)


# Makes hosts slow: adds to the device of those before the first word.
AGENT = '''slow=$1 host=$2; shift 2
for word; do
    shift
    case ",$slow, $word" in *,$host,*--device=null:*) word="$word,extra=4us";; esac
    set -- "$@" "$word"
done
exec "$@"
'''


def hosts_map(count, slow, *args):
    path = os.path.join(tap.folder(), "map.json")
    agent = tap.file_with(AGENT)
    process = run(WEFT, "map", "--hosts", f"n[0-{count - 1}]", "--agent", f"sh {agent} {slow} %h", "-d",
                  "null:delay=20us", "-n", "30", "--at-once", "1", "--timeout", "60", "--json", path, *args, limit=LIMIT_S)
    with open(path, encoding="utf-8") as file:
        return process, schema.read(file.read(), "weft-map")


@test
def three_slow_hosts_of_eight_are_all_named_and_no_other_is_mentioned():
    for _ in range(4):
        process, document = hosts_map(8, "n0,n3,n5")
        if process.code != 5:
            break
    else:
        tap.skip("other work on this machine hid the slow hosts in every attempt")
    equal(process.code, 3, process)
    equal(sorted(named(document)), [("node", i, None) for i in (0, 3, 5)], process)
    for i, node in enumerate(document["nodes"]):
        check(node["verdict"] == "slower" if i in (0, 3, 5) else node["verdict"] is None or
              node["effect_percent"] >= 5, node, process)
    for finding in document["findings"]:
        check(finding["verdict"] == "slower" or finding["first_percent"] >= 5, finding, process)
        check(finding["verdict"] != "not again" or finding["high_percent"] < 5, finding, process)


@test
def what_cannot_be_told_says_why_and_what_helps():
    null = ("-d", "null:delay=20us", "-n", "20")
    slow = ("-d", "null:delay=20us,extra=40us,slow=3,rank=%r", "-n", "20", "--at-once", "1")
    for ranks, args, words in (
            (2, null, "2 ranks are too few to find a slow one; use 5 or more"),
            (4, null, "4 ranks are too few"),
            (4, slow, ":3 may be slow; use more ranks"),
            (9, slow + ("--partners", "3+2"), ":3 may be slow; use a larger K2 (--partners K+K2), 4 or more"),
            (8, null + ("--partners", "2+8"), "use more partners (--partners K+K2)")):
        for _ in range(4):
            process, document = map_of(ranks, *args, code=5)
            if words in document["ending"]["reason"]:
                break
        else:  # other work on this machine made other ranks look slow
            check("may be slow" in document["ending"]["reason"], words, process)
        check(document["ending"]["reason"].startswith("Cannot tell: "), process)
        check(document["ending"]["reason"] in process.out, process)
    check("1 pair in 1 round\n" in map_of(2, *null)[0].out)


@test
def what_the_clock_cannot_resolve_is_not_judged():
    process, document = map_of(8, "-d", "null", "-n", "20")
    if document["pairs_unresolved"] < 14:
        tap.skip("the clock resolves null here: a build with sanitizers, or a slow machine")
    equal(process.code, 5, process)
    check(re.search(r"^Cannot tell: the clock cannot resolve the medians of \d+ of 28 pairs; ", process.out, re.M), process)


@test
def a_map_of_which_no_pair_could_be_measured_has_failed():
    agent = tap.file_with('case $1 in n1) device=soft;; *) device=null;; esac; shift\nexec "$@" --device=$device\n')
    path = os.path.join(tap.folder(), "map.json")
    process = run(WEFT, "map", "--hosts", "n[0-1]", "--agent", f"sh {agent} %h", "-d", "null", "-n", "5",
                  "--timeout", "60", "--json", path, limit=LIMIT_S)
    ended(process, 1)
    check("0 of 1 pair\n" in process.out and "\nNo pair could be measured\n" in process.out, process)
    check("probability" not in process.out, process)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    equal((document["pairs_planned"], document["pairs_measured"], len(document["failed"])), (1, 0, 1), process)


@test
def times_of_a_node_are_the_medians_of_its_pairs():
    process, document = map_of(6, "-d", "null:delay=20us", "-n", "20", "--at-once", "1")

    def middle(values):
        values = sorted(values)
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

    for number, node in enumerate(document["nodes"]):
        mine = [pair for pair in document["pairs"] if number in (pair["a"], pair["b"])]
        for key in ("p50_us", "p99_us"):
            check(abs(node[key] - middle([pair[key] for pair in mine])) < 1e-4, key, node, process)
        check(node["p50_us"] <= node["p99_us"] and "mb_per_s" not in node, node, process)
    shown = re.search(r"p50 ([0-9.]+) us \(.*p99 ([0-9.]+) us", process.out)
    check(float(shown[1]) <= float(shown[2]), process)


@test
def a_bandwidth_is_shown_in_megabytes_per_second():
    path = os.path.join(tap.folder(), "pairs.csv")
    process, document = map_of(3, "-d", "null:delay=20us", "-t", "put_bw", "-s", "1M", "-n", "20", "--csv", path)
    shown = re.search(r"^Pairs, bandwidth: p50 ([0-9.]+) MB/s \(([0-9.]+) to ([0-9.]+)\)$", process.out, re.M)
    check(shown, process)
    rates = sorted(pair["mb_per_s"] for pair in document["pairs"])
    for rate, number in zip(rates, (2, 1, 3)):
        check(abs(rate / float(shown[number]) - 1) < 1e-3, rates, process)
    for entry in document["pairs"] + document["nodes"]:
        check(abs(entry["mb_per_s"] * entry["p50_us"] / (1 << 20) - 1) < 1e-3, entry, process)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    equal(lines[0], "a,b,round,count,min_us,p50_us,p99_us,max_us,mb_per_s")
    for line, pair in zip(lines[1:], document["pairs"]):
        check(abs(float(line.split(",")[-1]) / pair["mb_per_s"] - 1) < 1e-3, line, process)


@test
def small_effects_are_printed_as_they_are_and_in_order():
    for least, effects in (("0.1", ("0.1", "0.2", "0.3")), ("5", ("5", "10", "15")), ("2.5", ("2.5", "5", "7.5"))):
        process, _ = map_of(6, "-d", "null:delay=20us", "-n", "5", "--min-effect", least)
        first, second, third = map(re.escape, effects)
        check(re.search(f"^A node {first} % slower would be found with probability [0-9.]+; {second} %: [0-9.]+; "
                        f"{third} %: [0-9.]+$", process.out, re.M), process)


@test
def hosts_get_the_secret_of_a_file_from_the_leader():
    secret = os.path.join(tap.folder(), "secret")
    ended(run(WEFT, "keygen", secret), 0)
    process = run(WEFT, "map", "--hosts", "a,b,c", "--agent", "env X=%h", "-d", "null:delay=5us",
                  "-n", "10", "--timeout", "60", "--secret-file", secret, "--json", "-",
                  limit=LIMIT_S)
    document = schema.read(process.out, "weft-map")
    equal((document["pairs_measured"], document["launch"]["trusted"]), (3, True), process)
    equal(process.err, "", process)


def agent(script):
    path = tap.file_with("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)
    return f"{path} %h"


@test
def an_agent_that_ends_is_said_at_once_and_its_host_is_lost_by_name():
    path = os.path.join(tap.folder(), "map.json")
    fails = agent('[ "$1" = bad1 ] && exit 3\nshift\nexec "$@"\n')
    process = run(WEFT, "map", "--hosts", "a,b,bad1,c", "--agent", fails, "-d", "null:delay=5us",
                  "-n", "10", "--wait", "200", "--timeout", "60", "--json", path, limit=100)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    equal(document["nodes"][2]["name"], "bad1", process)
    equal([(one["node"], one["reason"]) for one in document["lost"]], [(2, "the agent ended with 3")])
    check("weft map: host bad1: the agent ended with 3\n" in process.err, process)
    check("Lost: bad1 in round 0: the agent ended with 3" in process.out, process)
    equal(document["pairs_measured"], 3, process)


@test
def agents_that_all_end_or_cannot_be_started_are_not_waited_for():
    for what, code, words in (
            ("false", 4, "host b: the agent ended with 1"),
            ("false", 4, "no other of 2 ranks came: the agent ended with 1"),
            (agent("kill -9 $$\n"), 4, "host a: the agent was killed by signal 9"),
            ("/missing/command %h", 1,
             "--agent: /missing/command cannot be started: No such file or directory")):
        process = ended(run(WEFT, "map", "--hosts", "a,b", "--agent", what, "-d", "null",
                            "--wait", "200", limit=100), code)
        check(words in process.err, words, process)


@test
def a_host_that_does_not_come_keeps_its_name():
    path = os.path.join(tap.folder(), "map.json")
    sleeps = agent('[ "$1" = late ] && exec sleep 300\nshift\nexec "$@"\n')
    process = run(WEFT, "map", "--hosts", "a,late,b", "--agent", sleeps, "-d", "null:delay=5us",
                  "-n", "10", "--wait", "5", "--timeout", "60", "--json", path, limit=LIMIT_S)
    with open(path, encoding="utf-8") as file:
        document = schema.read(file.read(), "weft-map")
    equal(document["nodes"][1]["name"], "late", process)
    check("Lost: late in round 0: it did not come within 5 s" in process.out, process)


@test
def a_node_of_slurm_that_does_not_come_keeps_its_name():
    """srun's variables are enough: one of three ranks is not there."""
    ranks = [tap.Process([WEFT, "map", "-d", "null:delay=5us", "-n", "10", "--wait", "5",
                          "--timeout", "60", "--json", "-"], limit=LIMIT_S,
                         env={**os.environ, "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "3",
                              "SLURM_STEP_NODELIST": "localhost,n[1-2]", "SLURM_JOB_ID": "1"})
             for rank in range(2)]
    for rank in ranks:
        rank.wait()
    document = schema.read(ranks[0].out, "weft-map")
    equal(document["nodes"][2]["name"], "n2", *ranks)
    equal([one["node"] for one in document["lost"]], [2], *ranks)


@test
def a_local_rank_that_is_killed_is_lost_by_its_signal():
    cells = os.path.join(tap.folder(), "cells")
    process = tap.Process([WEFT, "map", "--local", "4", "-d", "null:delay=5us", "--slot", "200",
                           "--timeout", "60", "--cells", cells, "--json", "-"],
                          limit=LIMIT_S)
    process.wait_until(lambda: os.path.exists(cells) and os.path.getsize(cells), 60)
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as names:
        os.kill(int(names.read().split()[1]), signal.SIGKILL)
    process.wait()
    document = schema.read(process.out, "weft-map")
    equal([(one["node"], one["reason"]) for one in document["lost"]],
          [(2, "killed by signal 9")], process)


@test
def a_launcher_starts_it_and_one_rank_speaks():
    launcher = shutil.which("mpiexec.hydra")
    if not launcher:
        tap.skip("mpiexec.hydra is not installed")
    process = run(launcher, "-n", "4", WEFT, "map", "-d", "null:delay=5us", "-n", "10",
                  "--timeout", "60", "--json", "-", limit=LIMIT_S)
    equal(schema.read(process.out, "weft-map")["launch"]["muster"], "pmi", process)
    process = ended(run(launcher, "-n", "1", WEFT, "map", "-d", "null", limit=LIMIT_S), 2)
    check("the launcher started 1 rank, at least 2 are needed" in process.err, process)
    process = run(launcher, "-n", "4", WEFT, "map", "-t", "fly", limit=LIMIT_S)
    equal(process.err.count("--test is not known"), 1, process)
    for path, words in (("/dev/full", "No space left"), ("/missing/cells", "No such file")):
        process = ended(run(launcher, "-n", "4", WEFT, "map", "-d", "null:delay=5us", "-n", "10", "--cells",
                            path, limit=LIMIT_S), 1)
        equal(process.err.count(f"{path}: cannot be written: {words}"), 1, process)


@test
def usage_errors_are_one_sentence():
    third = tap.file_with("vm:1 east # of the rack\nvm:0 rack 7\n")
    for args, words in ((("--local", "4", "-t", "fly"), "--test is not known"),
                        (("--local", "1"), "--local"),
                        (("--local", "4", "--partners", "x"), "is not K or K+K2"),
                        (("--local", "4", "--min-effect", "many"), "is not a percentage"),
                        (("--local", "4", "--min-effect", "%"), "is not a percentage"),
                        (("--local", "4", "--min-effect", "5%%"), "is not a percentage"),
                        (("--local", "4", "-s", "0"), '--test send_lat: size is out of range: "0"'),
                        (("--local", "4", "--groups", "/"), "--groups /: Is a directory"),
                        (("--local", "4", "--groups", "/dev/null"), "it has no line NODE GROUP"),
                        (("--local", "4", "--groups", third), f"{third}, line 2: more than two words"),
                        (("--local", "4", "--groups", "/missing/f"), "No such file"),
                        (("--local", "4", "-s", "8:64"), "a map is of one size"),
                        (("--local", "4", "--slot", "5", "-n", "3"), "give one of them"),
                        (("--local", "4", "stray"), "unexpected argument"),
                        ((), "no ranks")):
        process = run(WEFT, "map", *args)
        check(process.code == 2 and words in process.err, words, process)
        equal(len(process.err.splitlines()), 1, process)
        equal(process.out, "", process)


@test
def a_device_that_nobody_has_is_said_once():
    process = ended(run(WEFT, "map", "--local", "4", "-d", "cxi9", "-n", "3"), 1)
    equal(len(process.err.splitlines()), 1, process)
    check('no device "cxi9" here' in process.err, process)


tap.main(1)
