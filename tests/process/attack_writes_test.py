# SPDX-License-Identifier: BSD-3-Clause
"""Clients that write, or read, where they may not. Between an honest client and the server stands a
stranger who changes keys and addresses on the way: the client then does what an attacker would. On
guarded fabrics nothing of the server changes; what does not guard is not served to strangers."""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, equal, sentences, skip, test
from wire import Between, by_body, value, with_value

WRITE, READ, ATOMIC = map(tap.tool_path, ("cxi_write_lat", "cxi_read_lat", "cxi_atomic_lat"))
PERF = tap.tool_path("ucx_perftest")
SIZE = 65536
QUICK = ("-n", "5", "--latency-gap", "0", "--warmup", "0")
LARGE = (*QUICK, "-s", str(SIZE))
MARK = 256
WORD = 1 << 64


def need(name):
    if not os.path.exists(os.path.join(tap.build_folder(), "modules", f"weft-{name}.so")):
        skip(f"weft-{name}.so is not built")


# ---- looking into a server ----

def maps_of(process):
    """[(start, end, rights, name)]"""
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
        found = re.findall(r"^(\w+)-(\w+) (\S+) \S+ \S+ \S+ *(.*)$", file.read(), re.M)
    return [(int(start, 16), int(end, 16), rights, name) for start, end, rights, name in found]


def unused(server):
    """The address of some zeroes that nothing of the server uses: what follows its variables."""
    own = [end for _, end, rights, name in maps_of(server)
           if rights == "rw-p" and name == server.argv[0]]
    check(own, "no variables", server)
    end = max(own)
    more = [stop for start, stop, rights, name in maps_of(server)
            if start == end and rights == "rw-p" and not name]
    return (more or [end])[0] - MARK


def bytes_at(server, address):
    try:
        with open(f"/proc/{server.pid}/mem", "rb") as file:
            file.seek(address)
            return file.read(MARK)
    except PermissionError:
        return skip("the memory of a process cannot be looked at here")


def buffer_of(server):
    """Where the buffer of the run is."""
    places = [start for start, end, _, name in maps_of(server)
              if "memfd:weft" in name and end - start == SIZE]
    check(len(places) == 1, "no buffer", places, server)
    return places[0]


# ---- what is changed on the way ----

def in_key(change):
    """Of the message in which the server gives its key, a body."""
    def by_way(_, body, from_client):
        is_key = not from_client and value(body, "entry") is not None
        return change(body) if is_key else body
    return by_body(by_way)


def number(body, key, change):
    was = int(value(body, key), 0)
    return with_value(body, key, hex(change(was) % WORD))


KEYS = {
    "another key": lambda body: number(body, "rkey", lambda key: key ^ 1),
    "the first key that a counter would give": lambda body: number(body, "rkey", lambda key: 1),
    "no key": lambda body: number(body, "rkey", lambda key: 0),
    "an address after the buffer": lambda body: number(body, "base", lambda base: base + SIZE),
    "an address half a buffer further": lambda body: number(body, "base",
                                                            lambda base: base + SIZE // 2),
    "an address before the buffer": lambda body: number(body, "base", lambda base: base - SIZE),
}


def attacked(tool, device, change, *args, server_args=()):
    """The client fails in a sentence, the server says why, is as it was, and serves on."""
    server = Server(tool, "--loop", *server_args)
    place = unused(server)
    before = bytes_at(server, place)
    with Between(server, change(server, place)) as way:
        client = Client(tool, way, "-d", device, *args)
        client.wait(30)
    check(client.code in (1, 4), "the client was not refused", client, server)
    check(re.search(r"^\w+: .*(ofi|soft|server|did not connect)", client.err, re.M), client)
    server.wait_for(r"^\w+: .*(client|did not connect)", 5, "err")
    check(server.running(), "the server ended", server)
    equal(bytes_at(server, place), before, "the server's memory was changed", server)
    ended(Client(tool, server, "-d", device, *QUICK), 0, None, server)
    return client, server


def key_attack(tool, words):
    need("ofi")
    attacked(tool, "ofi:tcp", lambda server, place: in_key(KEYS[words]), *LARGE, "--verify")


for _words in KEYS:
    tap.add(f"a write on ofi:tcp with {_words} is refused", key_attack, WRITE, _words)
for _words in ("another key", "an address before the buffer"):
    tap.add(f"a read on ofi:tcp with {_words} is refused", key_attack, READ, _words)


def aimed(server, place, relative=True):
    """The other end writes to that address."""
    def aim(body):
        return number(body, "base", lambda base: place - buffer_of(server) if relative else place)
    return in_key(aim)


@test
def a_write_on_ofi_tcp_to_a_foreign_address_is_refused():
    need("ofi")
    attacked(WRITE, "ofi:tcp", aimed, *LARGE, "--verify")


@test
def an_atomic_on_ofi_tcp_with_another_key_is_refused():
    need("ofi")
    attacked(ATOMIC, "ofi:tcp", lambda server, place: in_key(KEYS["another key"]), *QUICK)


@test
def a_write_that_is_longer_than_the_servers_buffer_is_refused():
    need("ofi")

    def longer(_, body, from_client):
        if from_client:
            return with_value(body, "size", "64")
        return with_value(body, "length", str(SIZE)) if value(body, "entry") else body

    attacked(WRITE, "ofi:tcp", lambda server, place: by_body(longer), *LARGE)


def no_right(tool, verb, allowed):
    """The server has agreed on something else."""
    need("ofi")

    def ask(_, body, from_client):
        body = with_value(body, ".tool", f"cxi_{allowed}_lat")
        return with_value(body, "op", allowed) if from_client else body

    server = Server(tap.tool_path(f"cxi_{allowed}_lat"), "--loop")
    with Between(server, by_body(ask)) as way:
        client = Client(tool, way, "-d", "ofi:tcp", *LARGE)
        client.wait(30)
    check(client.code in (1, 4) and f"ofi: {verb}" in client.err, client, server)
    check(server.running(), server)


tap.add("a buffer that is to be read cannot be written", no_right, WRITE, "write", "read")
tap.add("a buffer that is to be written cannot be read", no_right, READ, "read", "write")


def loader_variables(server):
    """Where an attacker would like to write: the end of the dynamic loader's variables."""
    found = [end for _, end, rights, name in maps_of(server)
             if rights == "rw-p" and "/ld-" in name]
    return max(found) - MARK if found else skip("this loader has another name")


@test
def a_write_whose_length_wraps_does_not_reach_what_is_loaded():
    """libfabric does not notice that the end of such a write is before its beginning. Nothing but the
    stack is above the buffer, and how far away that is cannot be known."""
    need("ofi")
    if tap.SANITIZED:
        skip("nothing can be preloaded before a sanitizer")
    far = os.path.join(tap.folder(), "distance")
    env = {"LD_PRELOAD": os.path.join(tap.doubles_folder(), "wire_wraps.so"), "WEFT_TEST_WRAP": far}
    server = Server(WRITE, "--loop")
    client = Client(WRITE, server, "-d", "ofi:tcp", "-s", str(SIZE), "-D", "30", env=env)
    server.wait_for("Fabric")
    place = loader_variables(server)
    before = bytes_at(server, place)
    with open(far, "w", encoding="utf-8") as file:
        file.write(f"{(place - buffer_of(server)) % WORD}\n")
    client.wait_until(lambda: client.code is not None or "was changed" in client.err, 20)
    if "was changed" not in client.err:
        skip("libfabric's tcp has another form of requests here")
    client.wait(20)
    check(client.code in (1, 4) and "ofi: write" in client.err, client, server)
    check(server.running(), server)
    equal(bytes_at(server, place), before, "the server's loader was changed", server)


# ---- soft ----

@test
def a_client_on_soft_with_another_nonce_gets_no_memory():
    def other(_, body, from_client):
        nonce = value(body, ".nonce")
        return with_value(body, ".nonce", nonce[::-1]) if from_client and nonce else body

    client, _ = attacked(WRITE, "soft:cxi0", lambda server, place: by_body(other), *QUICK,
                         "--timeout", "2")
    check("did not connect within 2 s" in client.err, client)


@test
def a_key_of_soft_that_was_not_given_opens_nothing():
    attacked(WRITE, "soft:cxi0",
             lambda server, place: in_key(lambda body: number(body, "key", lambda key: key ^ 1)),
             *QUICK, "--timeout", "2")


# ---- what does not guard ----

def not_loaded(server):
    names = " ".join(name for *_, name in maps_of(server))
    check("weft-" not in names and "libuct" not in names, "a module was loaded", names)


def unguarded(tool, device, words, *args):
    """Refused before anything of it is loaded, at both ends with the same words."""
    server = Server(tool, "--loop")
    client = Client(tool, server, *args)
    ended(client, 1, 20)
    sentence = (f"{device} is not known to protect the server's memory from its clients: start the "
                f"server with {words}, or with a secret")
    check(sentences(client)[-1].endswith(sentence), client)
    server.wait_for(re.escape(sentence), 5, "err")
    not_loaded(server)


for _device, _words in (("uct:tcp", "uct:tcp"), ("uct:posix", "uct:posix/memory"),
                        ("ofi:shm", "ofi:shm"), ("ofi:", "ofi:"), ("ofi:cxi", "ofi:cxi/cxi0"),
                        ("cxi:cxi0", "cxi:cxi0")):
    def _cxi(device=_device, words=_words):
        need(device[:3])
        unguarded(WRITE, device, f"-d {device}", "-d", words, *QUICK)
    tap.add(f"a server of the CXI tools serves {_device} to no stranger", _cxi)

for _device, _args, _words in (("uct:tcp", ("-x", "tcp", "-d", "lo"), "-x tcp"),
                               ("uct:posix", ("-d", "uct:posix/memory"), "-x posix"),
                               ("ofi:shm", ("-x", "ofi:shm"), "-x ofi:shm")):
    def _perf(device=_device, args=_args, words=_words):
        need(device[:3])
        unguarded(PERF, device, words, "-t", "am_lat", "-n", "10", "-w", "1", *args)
    tap.add(f"a server of ucx_perftest serves {_device} to no stranger", _perf)


@test
def a_servers_device_alone_does_not_name_a_transport():
    need("uct")
    server = Server(PERF, "-d", "lo")
    client = Client(PERF, server, "-t", "am_lat", "-x", "tcp", "-n", "10", "-w", "1")
    ended(client, 1, 20)
    check("start the server with -x tcp" in client.err, client)


@test
def a_foreign_module_is_not_loaded_for_a_client_whatever_it_is_called():
    for device in ("counts", "counts:cxi0", "mpi_openmpi", "mpi_openmpi:x"):
        server = Server(WRITE, "--loop")

        def name_it(_, body, from_client, device=device):
            body = with_value(body, ".device", device) if from_client else body
            return with_value(body, ".fabric", device.split(":")[0]) if from_client else body

        with Between(server, by_body(name_it)) as way:
            client = Client(WRITE, way, "-d", "soft:cxi0", *QUICK)
            ended(client, 1, 20)
        not_loaded(server)
        server.wait_for("is no fabric of Weft's own|no device|not such a module", 5, "err")


@test
def what_a_server_names_it_serves_and_uct_tcp_then_writes_anywhere():
    need("uct")
    server = Server(WRITE, "-d", "uct:tcp")
    place = unused(server)
    equal(bytes_at(server, place), bytes(MARK), server)
    hit = []

    def watch(change):
        def by_frame(from_client, at, data):
            hit.append(bytes_at(server, place) if server.running() else b"")
            return change(from_client, at, data)
        return by_frame

    with Between(server, watch(aimed(server, place, relative=False))) as way:
        Client(WRITE, way, "-d", "uct:tcp", *QUICK, "-s", "64", "--verify").wait(30)
    check(any(any(seen) for seen in hit), "this attack does nothing: the others prove nothing",
          server)


if __name__ == "__main__":
    tap.main()
