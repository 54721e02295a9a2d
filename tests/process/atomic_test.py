# SPDX-License-Identifier: BSD-3-Clause
"""cxi_atomic_lat: every op, type and compare that go together, each checked after every iteration
against the plain model in the tool; every pair that does not go together; and what the header says.
Under a sanitizer every fifth run of the sweep is made."""
import sys

sys.dont_write_bytecode = True
import tap
from tap import (SANITIZED, check, ended, equal, header_value, lines_of, one_sentence, pair,
                 rows_of, run, sentences, test)

NAME = "cxi_atomic_lat"
TOOL = tap.tool_path(NAME)
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
ITERS = 120  # more than the steps after which a target is set back

OPS = ("MIN", "MAX", "SUM", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "SWAP", "CSWAP", "AXOR")
COMPARES = ("EQ", "NE", "LE", "LT", "GE", "GT")
ORDERED = ("MIN", "MAX", "SUM", "SWAP", "CSWAP")
PLAIN = ("SUM", "SWAP", "CSWAP")
# type: (bytes, ops, compares)
TYPES = {
    "INT8": (1, OPS, COMPARES), "UINT8": (1, OPS, COMPARES),
    "INT16": (2, OPS, COMPARES), "UINT16": (2, OPS, COMPARES),
    "INT32": (4, OPS, COMPARES), "UINT32": (4, OPS, COMPARES),
    "INT64": (8, OPS, COMPARES), "UINT64": (8, OPS, COMPARES),
    "FLOAT": (4, ORDERED, COMPARES), "DOUBLE": (8, ORDERED, COMPARES),
    "FLOAT_COMPLEX": (8, PLAIN, ("EQ", "NE")), "DOUBLE_COMPLEX": (16, PLAIN, ("EQ", "NE")),
    "UINT128": (16, ("CSWAP",), ("EQ",)),
}
FETCHING = ((), ("--fetching",))
MATCHING = ((), ("--matching",))


def combinations(kind):
    """[(op, compare or None)] that a type takes."""
    _, ops, compares = TYPES[kind]
    return [(op, compare) for op in ops for compare in (compares if op == "CSWAP" else (None,))]


def words_of(kind, op, compare):
    return ("-T", kind, "-A", op, *(("-C", compare) if compare else ()))


def one_by_one(function, items):
    """Two at a time; all of them are tried before it fails."""
    wrong = []

    def one(item):
        try:
            function(*item)
        except tap.Failure as why:
            wrong.append(f"{item}: {why}")

    tap.in_parallel(one, items, 2)
    check(not wrong, f"{len(wrong)} of {len(items)}", *wrong)


# ---- what goes together ----

def verified(kind, op, compare, *flags):
    client = ended(run(TOOL, "--local", "--verify", *words_of(kind, op, compare), *flags, "-n",
                       str(ITERS), "--latency-gap", "0", "--warmup", "0"), 0)
    equal([row[:2] for row in rows_of(client)], [(TYPES[kind][0], ITERS)], client)
    equal(header_value(client, "Atomic Op"),
          " ".join(["FETCHING" if "--fetching" in flags else "NON-FETCHING", op]
                   + ([compare] if compare else [])), client)
    equal(header_value(client, "Atomic Type").partition(" (")[0], kind, client)
    equal(header_value(client, "Matching LEs"),
          "Enabled" if "--matching" in flags else "Disabled", client)
    equal(sentences(client), [], client)


SWEEP = [(kind, op, compare, *fetching, *matching) for kind in TYPES
         for op, compare in combinations(kind) for fetching in FETCHING for matching in MATCHING]
TAKEN = SWEEP[::5] if SANITIZED else SWEEP


@test
def the_sweep_has_all_165_combinations_four_times():
    equal((len(SWEEP), len(set(SWEEP))), (4 * 165, 4 * 165))
    tap.note(f"{len(TAKEN)} of {len(SWEEP)} are run")


for kind in TYPES:
    mine = [item for item in TAKEN if item[0] == kind]
    if mine:
        tap.add(f"{kind}: every op and compare it takes passes --verify, {len(mine)} runs",
                one_by_one, verified, mine)


@test
def every_way_to_issue_passes_verify():
    ways = (("--unrestricted",), ("--no-idc",), ("--no-ll",),
            ("--unrestricted", "--no-idc", "--no-ll"),
            ("--matching", "--unrestricted", "--no-idc", "--no-ll"))
    which = (("UINT64", "SUM", None), ("UINT8", "AXOR", None), ("DOUBLE", "MIN", None),
             ("DOUBLE_COMPLEX", "SUM", None), ("UINT128", "CSWAP", "EQ"))
    one_by_one(verified, [(*item, *way, *fetching) for item in which[::2 if SANITIZED else 1]
                          for way in ways for fetching in FETCHING])


@test
def two_processes_with_a_warmup_pass_verify():
    for more in ((), ("-A", "MAX", "-T", "INT8"), ("-A", "CSWAP", "-C", "GT", "-T", "FLOAT"),
                 ("-A", "LAND", "--fetching", "--matching")):
        _, client = pair(TOOL, "--verify", "-n", "50", "--warmup", "77", "--latency-gap", "0",
                         *more)
        equal(rows_of(client)[0][1], 50)


@test
def verify_catches_a_target_that_is_not_what_it_should_be():
    # A fabric for tests turns over one bit of every twentieth write: here of what sets it back.
    env = {"WEFT_MODULE_PATH": tap.doubles_folder()}
    for op in (("BOR",), ("LOR", "--fetching"), ("LAND", "--fetching")):
        words = ("--local", "-d", "corrupts", "-A", *op, "-n", "100", "--latency-gap", "0")
        ended(run(TOOL, *words, env=env), 0)
        caught = ended(run(TOOL, *words, "--verify", env=env), 1)
        check("verify" in one_sentence(caught, NAME), caught)
        equal(lines_of(caught.out)[-1], "-" * 71, caught)


# ---- what does not ----

INVALID = [(kind, op, compare) for kind in TYPES for op in OPS
           for compare in (COMPARES if op == "CSWAP" else (None,))
           if (op, compare) not in combinations(kind)]


def refused(*words):
    process = ended(run(TOOL, *words, limit=5), 2)
    equal(process.out, "", process)
    sentence = one_sentence(process, NAME)
    check(sentence.isprintable(), ascii(sentence))
    return sentence


def refused_pair(kind, op, compare, *role):
    """Says what was asked for and what the type takes."""
    sentence = refused(*(role or ("--local",)), *words_of(kind, op, compare))
    _, ops, compares = TYPES[kind]
    takes = [name if name != "CSWAP" or compares == COMPARES else
             f"CSWAP {'/'.join(compares)}" for name in ops]
    for word in ("Invalid Op and Type combination", op, kind, compare or op, ", ".join(takes)):
        check(word in sentence, f"no {word!r}", sentence)
    check(sentence.endswith(", ".join(takes)), "it takes something else", sentence)


@test
def every_invalid_pair_is_refused_with_what_the_type_takes():
    equal(len(INVALID), 56)
    one_by_one(refused_pair, INVALID)


@test
def an_invalid_pair_is_refused_in_every_role():
    for role in (("-p", "0"), ("127.0.0.1",), ("--local", "--fetching", "--matching")):
        refused_pair("FLOAT", "BXOR", None, *role)
        refused_pair("DOUBLE_COMPLEX", "CSWAP", "GT", *role)
        sentence = refused(*role, "-T", "UINT128")  # the default op
        check("SUM" in sentence and "UINT128" in sentence, sentence)


@test
def a_compare_without_cswap_is_refused():
    for op in OPS:
        for compare in ("NE", "EQ"):
            if op != "CSWAP":
                sentence = refused("--local", "-A", op, "-C", compare)
                for word in ("--cswap-op", "CSWAP", op, compare):
                    check(word in sentence, f"no {word!r}", sentence)
    refused("-p", "0", "--cswap-op=GT")
    refused("127.0.0.1", "-C", "LE", "-T", "INT32")


# ---- header ----

NOT_APPLICABLE = "Disabled - Not Applicable"
HEADERS = (
    ((), {"Atomic Op": "NON-FETCHING SUM", "Atomic Type": "UINT64", "IDC": "Enabled",
          "Matching LEs": "Disabled", "Restricted": "Enabled", "LL Cmd Launch": "Enabled"}),
    (("--fetching",), {"Atomic Op": "FETCHING SUM", "IDC": "Enabled", "Restricted": "Enabled"}),
    (("-A", "CSWAP"), {"Atomic Op": "NON-FETCHING CSWAP EQ"}),
    (("--fetching", "-A", "CSWAP", "-C", "EQ", "-T", "INT8"),
     {"Atomic Op": "FETCHING CSWAP EQ", "Atomic Type": "INT8"}),
    (("--atomic-op=CSWAP", "--cswap-op", "GE", "--atomic-type=DOUBLE"),
     {"Atomic Op": "NON-FETCHING CSWAP GE", "Atomic Type": "DOUBLE"}),
    (("--matching",), {"Matching LEs": "Enabled", "IDC": NOT_APPLICABLE,
                       "Restricted": NOT_APPLICABLE, "LL Cmd Launch": "Enabled"}),
    (("--matching", "--unrestricted", "--no-idc", "--no-ll"),
     {"Matching LEs": "Enabled", "IDC": NOT_APPLICABLE, "Restricted": NOT_APPLICABLE,
      "LL Cmd Launch": "Disabled"}),
    (("--unrestricted",), {"Restricted": "Disabled", "IDC": "Enabled"}),
    (("--no-idc",), {"IDC": "Disabled", "Restricted": "Enabled"}),
    (("--no-ll",), {"LL Cmd Launch": "Disabled"}),
)


def header_shows(options, wanted):
    for process in pair(TOOL, *QUICK, *options):
        for label, value in wanted.items():
            equal(header_value(process, label), value, process)
        for label in ("Write Size", "Atomic Size", "Hugepages", "Client TX Mem", "Server RX Mem"):
            check(f"\n{label:<17}: " not in process.out, f"{label} is not for atomics", process)


for options, wanted in HEADERS:
    tap.add(f"the header shows {' '.join(options) or 'the defaults'}", header_shows, options,
            wanted)


@test
def the_header_says_how_16_bytes_are_done():
    ways = ("16 bytes by compare-and-swap", "16 bytes under a lock")
    for words in (("-T", "UINT128", "-A", "CSWAP"), ("-T", "DOUBLE_COMPLEX")):
        for process in pair(TOOL, *QUICK, *words):
            kind, _, how = header_value(process, "Atomic Type").partition(" (")
            equal(kind, words[1], process)
            check(how.removesuffix(")") in ways, f"it says how, one of {ways}", process)


@test
def eight_bytes_or_less_need_no_explanation():
    _, client = pair(TOOL, *QUICK, "-T", "FLOAT_COMPLEX")
    equal(header_value(client, "Atomic Type"), "FLOAT_COMPLEX", client)


@test
def the_servers_own_op_and_type_are_overridden_and_it_says_so():
    server, client = pair(TOOL, *QUICK, "-A", "MAX", "-T", "INT16", "--fetching",
                          server_args=("-A", "CSWAP", "-C", "NE", "-T", "FLOAT", "--matching"))
    for process in (server, client):
        equal(header_value(process, "Atomic Op"), "FETCHING MAX", process)
        equal(header_value(process, "Atomic Type"), "INT16", process)
        equal(header_value(process, "Matching LEs"), "Disabled", process)
    for option in ("--atomic-op CSWAP", "--cswap-op NE", "--atomic-type FLOAT", "--matching"):
        check(option in server.err, f"nothing of {option}", server)
    equal(sentences(client), [], client)


@test
def all_samples_are_listed_by_op_number():
    _, client = pair(TOOL, "-n", "4", "--report-all", "--latency-gap", "0", "--fetching")
    lines = lines_of(client.out)
    separator = "-" * 71
    results = lines[lines.index(separator, 1) + 1:]
    equal([results[0], results[5], results[6][:11], results[8]],
          ["     OpNum  Latency[us]", separator, "AMO Size[B]", separator], client)
    equal([len(samples) for samples in tap.samples_of(client)], [4], client)


if __name__ == "__main__":
    tap.main(workers=1)
