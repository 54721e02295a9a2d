# SPDX-License-Identifier: BSD-3-Clause
"""Several threads at each end of ucx_perftest: -T N, on every kind of fabric, on CPUs of a list."""
import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
import schema
import tap
from tap import Client, Process, Server, Traces, check, ended, equal, run, sentences, skip, test

NAME = "ucx_perftest"
TOOL, WEFT = tap.tool_path(NAME), tap.tool_path("weft")
COUNT = 200
QUICK = ("-n", str(COUNT), "-w", "10", "--interval", "0", "--timeout", "20")
FABRICS = {"null": ("-x", "null"), "soft": ("-x", "soft"), "ofi:tcp": ("-x", "ofi:tcp"),
           "uct:posix": ("-x", "posix", "-d", "memory"), "ucp:posix": ("-x", "ucp:posix"),
           "ucp:tcp": ("-x", "ucp:tcp", "-d", "lo")}
CPUS = sorted(os.sched_getaffinity(0))
DOUBLES = {"WEFT_MODULE_PATH": tap.doubles_folder()}


def need(fabric):
    module = fabric.partition(":")[0]
    if ":" in fabric and not os.path.exists(os.path.join(tap.build_folder(), "modules",
                                                         f"weft-{module}.so")):
        skip(f"weft-{module}.so is not built")


def document(*args, env=None):
    """The client of a local run, and what it wrote."""
    path = os.path.join(tap.folder(), "result.json")
    client = ended(run(TOOL, "--local", *args, "--json", path, env=env), 0)
    with open(path, encoding="utf-8") as file:
        return client, schema.read(file.read()), path


# ---- sums ----

def adds_up(result, threads, row, client):
    every = result.get("threads", [])
    equal(len(every), threads if threads > 1 else 0, client)
    equal([result["operations"], int(row)], [threads * COUNT] * 2, client)
    equal(sum(bucket[2] for bucket in result["histogram"]), result["count"])
    if threads == 1:
        return
    equal([thread["operations"] for thread in every], [COUNT] * threads)
    for key in ("messages_per_s", "bytes_per_s"):
        total = sum(thread[key] for thread in every)
        check(abs(result[key] - total) <= 1e-6 * total, key, result, client)
    equal(result["elapsed_s"], max(thread["elapsed_s"] for thread in every))
    medians = [thread["median_us"] for thread in every]
    check(min(medians) * 0.99 <= result["median_us"] <= max(medians) * 1.01, result["median_us"],
          medians)


def all_add_up(fabric, *tests):
    """Each a number of threads and the words of a test; one after the other on one connection."""
    need(fabric)
    batch = tap.file_with("".join(f"t{i} -t {words} -T {threads}\n"
                                  for i, (threads, words) in enumerate(tests)))
    client, found, _ = document(*FABRICS[fabric], "-b", batch, "-f", "-v", *QUICK)
    rows = [line.split(",")[1] for line in client.out.splitlines()[1:]]
    for (threads, _), result, row in zip(tests, found["results"], rows, strict=True):
        adds_up(result, threads, row, client)
    equal(re.findall(r"size \d+, thread (\d+) ", client.err),
          [str(i) for threads, _ in tests if threads > 1 for i in range(threads)], client)


for _fabric in FABRICS:
    _check = "" if _fabric == "null" else " --verify"
    tap.add(f"{_fabric}: with 1, 2 and 4 threads rows and documents have the sum", all_add_up, _fabric,
            *((n, words + _check) for n in (1, 2, 4) for words in ("am_lat", "put_bw -s 4096")))
tap.add("every test is verified in three threads", all_add_up, "soft",
        *((3, f"{name} --verify") for name in ("am_lat", "put_lat", "add_lat", "get", "fadd", "swap",
                                               "cswap", "am_bw", "put_bw", "add_mr", "tag_lat")),
        (3, "tag_bw"), (3, "tag_sync_bw"))
for _fabric in ("ucp:posix", "ucp:tcp"):
    tap.add(f"{_fabric}: tests of UCX's layer are verified in four threads", all_add_up, _fabric,
            *((4, f"{name} --verify") for name in ("tag_lat", "stream_lat", "ucp_am_lat", "ucp_put_lat", "ucp_get",
                                                   "ucp_fadd")))
tap.add("both ways: two threads of each end send at once", all_add_up, "soft",
        (2, "put_bw --bidir"), (2, "am_bw --bidir"))


@test
def rows_of_intervals_are_sums():
    """Every get takes 1 ms: a thread alone has no more than 1000 a second."""
    client, found, _ = document("-d", "null:delay=1ms", "-t", "get", "-T", "2", "--duration", "3",
                                "--interval", "1", "-w", "10")
    rows = [line.split() for line in client.out.splitlines() if re.match(r" *\d", line)]
    check(len(rows) >= 2, client)
    check(all(int(a[0]) <= int(b[0]) for a, b in zip(rows, rows[1:])), client)
    check(all(float(row[6]) <= 2001 for row in rows), client)
    equal(int(rows[-1][0]), found["results"][0]["operations"])


@test
def csv_has_one_row_which_is_the_sum():
    client = ended(run(TOOL, "--local", "-x", "soft", "-t", "put_lat", "-T", "2", *QUICK, "-v"), 0)
    equal([line.split(",")[0] for line in client.out.splitlines()], ["iterations", str(2 * COUNT)])


@test
def batches_have_tests_of_any_number_of_threads():
    batch = tap.file_with("one -t put_lat\ntwo -t put_lat -T 2\nthree -t am_bw -T 3\nagain -t put_lat\n")
    client = ended(run(TOOL, "--local", "-x", "soft", "-b", batch, *QUICK, "-f", "-v"), 0)
    equal([line.split(",")[1] for line in client.out.splitlines()[1:]],
          [str(n * COUNT) for n in (1, 2, 3, 1)], client)


@test
def documents_with_threads_are_read_back():
    _, _, path = document("-x", "soft", "-t", "put_lat", "-T", "2", *QUICK)
    page = os.path.join(os.path.dirname(path), "page.html")
    ended(run(WEFT, "report", path, "-o", page), 0)
    compared = run(WEFT, "compare", path, path)
    check("cannot tell" in compared.out, compared)
    with open(path, encoding="utf-8") as file:
        changed = json.load(file)
    changed["results"][0]["threads"][1]["operations"] = -1
    bad = tap.file_with(json.dumps(changed))
    refused = ended(run(WEFT, "report", bad, "-o", page), 2)
    check("threads" in refused.err, refused)


@test
def each_thread_has_a_buffer_of_its_own_on_a_gpu():
    tool = os.path.join(tap.doubles_folder(), "gpu_ucx_perftest")
    batch = tap.file_with("a -t put_lat -T 3\nb -t put_lat -m cuda -T 3\nc -t put_bw -m cuda -T 2\n")
    env = {"WEFT_TEST_GPU": tap.doubles_folder(), "FAKE_CUDA_GPUS": "1"}
    client = ended(run(tool, "--local", "-x", "soft", "-b", batch, "--verify", "-f", "-v", *QUICK, env=env),
                   0)
    equal([line.split(",")[1] for line in client.out.splitlines()[1:]],
          [str(n * COUNT) for n in (3, 3, 2)], client)


@test
def a_thread_level_is_accepted():
    for mode in ("single", "serialized", "multi"):
        ended(run(TOOL, "--local", "-x", "null", "-t", "put_bw", "-T", "2", "-M", mode, *QUICK), 0)
    check("--thread-mode" in ended(run(TOOL, "--local", "-t", "get", "-M", "some"), 2).err)


# ---- CPUs ----

def cpus_of(*args):
    _, found, _ = document("-x", "soft", "-t", "put_lat", *QUICK, *args)
    every = found["results"][0].get("threads")
    if not every:
        return [[int(found["ends"][end]["ran_on"])] for end in ("client", "server")]
    return [[thread[f"{end}_cpu"] for thread in every] for end in ("client", "server")]


@test
def threads_run_on_the_cpus_of_their_ends_list():
    first, last = CPUS[0], CPUS[-1]
    equal(cpus_of("-T", "2", "-c", f"{first},{last}/{last},{first}"),
          [[first, last], [last, first]])
    equal(cpus_of("-T", "3", "-c", f"{first}/{last}"), [[first] * 3, [last] * 3])
    equal(cpus_of("-T", "2", "-c", f"{first},{first},{last},{last}"), [[first] * 2, [last] * 2])
    equal(cpus_of("-c", f"{last},{first}"), [[last], [first]])
    equal(cpus_of("-c", f"{first}-{first}/{last}"), [[first], [last]])


@test
def each_end_has_its_own_list():
    server = Server(TOOL, "-x", "soft", "-c", f"{CPUS[-1]},{CPUS[0]}", "--max-threads", "2")
    path = os.path.join(tap.folder(), "result.json")
    ended(Client(TOOL, server, "-t", "put_lat", "-x", "soft", "-T", "2", *QUICK, "--json", path,
                 "-c", f"{CPUS[0]},{CPUS[-1]}"), 0, None, server)
    ended(server, 0)
    with open(path, encoding="utf-8") as file:
        every = schema.read(file.read())["results"][0]["threads"]
    equal([thread["client_cpu"] for thread in every], [CPUS[0], CPUS[-1]])
    equal([thread["server_cpu"] for thread in every], [CPUS[-1], CPUS[0]])


@test
def near_a_nic_that_there_is_not_is_warned_of():
    client = ended(run(TOOL, "--local", "-x", "soft", "-t", "put_lat", "-c", "near", *QUICK), 0)
    equal(client.err.count("--cpu near has no effect: the NUMA node of "), 1, client)


@test
def lists_that_are_none_are_refused():
    for text in ("x", "0,", ",0", "3-1", "0-", "-1", "0 1", "0-100000", "nearby", "0/", "/0", "0/1/2"):
        refused = ended(run(TOOL, "--local", "-t", "get", "-c", text), 2)
        check("is no list of CPUs" in refused.err, text, refused)


# ---- what is refused ----

def refused_by(words, *args, server_args=()):
    server = Server(TOOL, "-l", *server_args)
    client = ended(Client(TOOL, server, "-t", "put_lat", "-x", "soft", *QUICK, *args), 1)
    check(len(sentences(client)) == 1 and re.search(words, client.err), words, client, server)
    # It goes on for others.
    ended(Client(TOOL, server, "-t", "put_lat", "-x", "soft", *QUICK), 0, None, server)


@test
def a_server_bounds_the_threads_of_its_clients():
    many = str(len(CPUS) + 1)
    refused_by(rf"wants {many} threads, and the server allows {len(CPUS)}: start it with "
               rf"--max-threads {many}", "-T", many)
    refused_by(r"wants 2 threads, and the server allows 1", "-T", "2",
               server_args=("--max-threads", "1"))


@test
def all_threads_together_are_within_the_memory_that_a_server_grants():
    refused_by(r"takes 32.0 MiB of the server's memory, and the server allows 20.0 MiB", "-T", "2", "-s",
               "8M", server_args=("--max-memory", "20M", "--max-threads", "2"))


@test
def unequal_numbers_are_refused():
    server = Server(TOOL, "-T", "2", "--max-threads", "4")
    client = ended(Client(TOOL, server, "-t", "put_lat", "-x", "soft", "-T", "3", *QUICK), 2)
    check("the client has 3 threads, the server 2: give both the same --threads" in client.err, client)
    ended(server, 2)


@test
def numbers_that_make_no_sense_are_refused():
    for number in ("0", "129", "two", "-1"):
        check("--threads" in ended(run(TOOL, "--local", "-t", "get", "-T", number), 2).err, number)


# ---- what fails ----

@test
def wrong_data_in_one_thread_ends_all():
    client = ended(run(TOOL, "--local", "-d", "corrupts:cxi0", "-t", "put_bw", "-T", "3", "--verify",
                       *QUICK, env=DOUBLES), 1, 20)
    equal(sum("byte" in line for line in sentences(client)), 1, client)


def one_killed(fabric, victim):
    need(fabric)
    traces = Traces()
    args = (*FABRICS[fabric], "--timeout", "2")
    server = Server(TOOL, *args, "--max-threads", "4", env=traces.env)
    client = Client(TOOL, server, *args, "-t", "put_lat", "-T", "3", "-n", "0", "--interval", "1",
                    env=traces.env)
    client.wait_for(r"^ +\d+ +\d")
    hit, survivor = (client, server) if victim == "client" else (server, client)
    hit.kill(signal.SIGKILL)
    ended(survivor, 4, 15)
    equal(sum("lost" in line or "gave up" in line for line in sentences(survivor)), 1, survivor)


for _fabric in ("soft", "ofi:tcp", "uct:posix", "ucp:posix", "ucp:tcp"):
    for _victim in ("client", "server"):
        tap.add(f"{_fabric}: a {_victim} of three threads is killed, and all threads of the other end",
                one_killed, _fabric, _victim)


@test
def an_interrupt_ends_all_threads_with_what_was_measured():
    path = os.path.join(tap.folder(), "result.json")
    client = Process([TOOL, "--local", "-x", "soft", "-t", "put_lat", "-T", "2", "-n", "0", "--interval",
                      "1", "--json", path])
    client.wait_for(r"^ +\d+ +\d")
    client.kill(signal.SIGINT)
    ended(client, 130, 10)
    with open(path, encoding="utf-8") as file:
        result, = schema.read(file.read())["results"]
    check(not result["complete"] and result["operations"] > 0, result)
    equal(len(result["threads"]), 2)


if __name__ == "__main__":
    tap.main(workers=2)
