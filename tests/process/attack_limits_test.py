# SPDX-License-Identifier: BSD-3-Clause
"""Clients that would hold a server, or its memory: a server's --timeout, --max-memory and
--max-session are the most that it grants."""
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, one_sentence, sentences, test
from wire import Between, by_body, with_value

WRITE, SEND, PERF = map(tap.tool_path, ("cxi_write_lat", "cxi_send_lat", "ucx_perftest"))
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
PERF_QUICK = ("-t", "put_lat", "-n", "3", "-w", "0")
AT_ONCE_S = 5
GIB = 1 << 30


def refused(client, server, *words):
    """At once, in one sentence that both ends say."""
    client.wait(AT_ONCE_S)
    check(client.code == 1, "exit code 1 is wanted", client, server)
    for end in (client, server):
        end.wait_for(r"^\w+: .*" + ".*".join(words), 5, "err")
    check(client.out == "", client)


def served(tool, server, *args):
    ended(Client(tool, server, *args), 0, None, server)


def buffers(server):
    """Bytes of memory that it has made for clients, present or not."""
    with open(f"/proc/{server.pid}/maps", encoding="utf-8") as maps:
        places = [line.split()[0].split("-") for line in maps if "memfd:weft" in line]
    return sum(int(end, 16) - int(start, 16) for start, end in places)


# ---- asking for too much ----

@test
def a_client_that_would_be_silent_for_a_day_is_refused_at_once():
    server = Server(WRITE)
    refused(Client(WRITE, server, *QUICK, "--timeout", "86400"), server, "86400 s", "600 s",
            "start the server with --timeout 86400")
    check(server.running(), server)
    served(WRITE, server, *QUICK, "--timeout", "600")


@test
def a_silent_client_that_asks_for_8_gib_and_a_day_gets_neither():
    server = Server(SEND)

    def ask(kind, body, up):
        if not up:
            return body
        if kind == "D":
            return None
        return with_value(with_value(body, "size", "4294967295"), "timeout_ms", "86400000")

    with Between(server, by_body(ask)) as way:
        refused(Client(SEND, way, *QUICK), server, "86400 s")
    check(buffers(server) < GIB, "it holds the client's memory", server)
    served(SEND, server, *QUICK)


@test
def more_than_a_quarter_of_the_memory_is_refused_by_default():
    if tap.available_bytes() / 4 > 7.5 * GIB:
        tap.skip("a quarter of the memory here is more than a client can ask for")
    server = Server(SEND)
    refused(Client(SEND, server, *QUICK, "-s", "4294967295"), server, "8.0 GiB",
            "start it with --max-memory 8192M")
    served(SEND, server, *QUICK)


def bounded(tool, quick, mib):
    server = Server(tool, "--max-memory", "1M", "--loop")
    refused(Client(tool, server, *quick, "-s", "2M"), server, f"{mib}.0 MiB", "1.0 MiB",
            f"--max-memory {mib}M")
    served(tool, server, *quick, "-s", "64K")
    refused(Client(tool, server, *quick, "--timeout", "601"), server, "601 s", "600 s")
    served(tool, server, *quick)


tap.add("cxi_write_lat grants a client no more memory than --max-memory", bounded, WRITE, QUICK, 2)
tap.add("ucx_perftest grants a client no more memory than --max-memory", bounded, PERF, PERF_QUICK,
        4)


@test
def a_timeout_that_the_servers_user_gave_binds():
    server = Server(WRITE, "--timeout", "5")
    refused(Client(WRITE, server, *QUICK), server, "10 s", "5 s", "--timeout 10")
    served(WRITE, server, *QUICK, "--timeout", "5")


@test
def a_local_run_has_what_it_asks_for_unless_it_is_bounded():
    ended(tap.run(WRITE, "--local", *QUICK, "--timeout", "700"), 0)
    ended(tap.run(WRITE, "--local", *QUICK, "-s", "1M", "--max-memory", "2M"), 0)
    bounded_run = ended(tap.run(WRITE, "--local", *QUICK, "-s", "4M", "--max-memory", "2M"), 1)
    check("2.0 MiB" in one_sentence(bounded_run, "cxi_write_lat"), bounded_run)


# ---- saying what only this end may say ----

def a_number_of_the_clients_means_nothing_here(tool, quick, code):
    """A client agrees to nothing, with the number of an interruption, or of what is to be tried again: a server
    for one client ends as after any refusal, and one with --loop goes on."""
    def refuse(kind, body, up):
        return f"code={code}\nwhy=no\n".encode() if up and kind == "D" and body.startswith(b"go=") else body

    for loop in ((), ("--loop",)):
        server = Server(tool, *loop)
        with Between(server, by_body(refuse)) as way:
            Client(tool, way, *quick).wait(15)
        server.wait_for(r"\bno$", 5, "err")
        if loop:
            served(tool, server, *quick)
            check(server.running(), server)
        else:
            ended(server, 1, 10)


for number in (4, 11):
    tap.add(f"a refusal with code {number} is one of cxi_write_lat", a_number_of_the_clients_means_nothing_here,
            WRITE, QUICK, number)
    tap.add(f"a refusal with code {number} is one of ucx_perftest", a_number_of_the_clients_means_nothing_here,
            PERF, PERF_QUICK, number)


# ---- staying too long ----

def session_ends(tool, *args):
    """The server ends it, both say so, and the next client is served."""
    quick, *endless = args
    server = Server(tool, "--max-session", "1", "--loop")
    client = Client(tool, server, *endless)
    ended(client, 4, 20)
    check("ends a session after 1 s (--max-session)" in sentences(client)[-1], client)
    server.wait_for(r"ends a session after 1 s", 5, "err")
    served(tool, server, *quick)


tap.add("a session of cxi_write_lat ends after --max-session", session_ends, WRITE, QUICK, "-D",
        "60")
tap.add("a session of ucx_perftest ends after --max-session", session_ends, PERF, PERF_QUICK, "-t",
        "am_lat", "-n", "0")


@test
def a_client_of_ucx_perftest_that_asks_for_no_test_is_ended_too():
    server = Server(PERF, "--max-session", "1")

    def nothing(kind, body, up):
        return None if up and kind == "D" else body

    with Between(server, by_body(nothing)) as way:
        client = Client(PERF, way, *PERF_QUICK)
        for end in (server, client):
            ended(end, 4, 15)
            check("--max-session" in sentences(end)[-1], end)


if __name__ == "__main__":
    tap.main()
