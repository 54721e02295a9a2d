# SPDX-License-Identifier: BSD-3-Clause
"""Kills, stops and cut links with long messages under way, on every fabric: the end that is left
ends in time, with a sentence, a document and without a crash, and nothing stays behind. Each round
draws its fabric, operation, size, fault and moment; of several pairs of processes, one is hit.
--seconds N or --rounds N, of the bandwidth tools alone with --lists; WEFT_SEED with --round N of one
fabric (--only) repeats one."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import netns
import schema
import tap
from tap import Client, Server, Traces, check, sentences, skip

SEED = os.environ.get("WEFT_SEED") or str(random.SystemRandom().randrange(10 ** 9))
TIMEOUT_S = 2
GRACE_S = 2
HANG_S = 25  # what takes longer has no end
WORKERS = 4
MODULES = os.path.join(tap.build_folder(), "modules")

# What both ends are given. Null moves nothing: it shows what the tools do by themselves.
FABRICS = {"soft": "soft", "null": "null:delay=50us", "ofi:tcp": "ofi:tcp", "ofi:shm": "ofi:shm",
           "uct:posix": "uct:posix/memory", "uct:sysv": "uct:sysv/memory",
           "uct:cma": "uct:cma/memory", "uct:tcp": "uct:tcp",
           "ucp:sysv": "ucp:sysv/memory", "ucp:tcp": "ucp:tcp"}
SIZES = ("64K", "1M", "16M")
PERF = ("ucx_perftest", "-n", "0", "-w", "3", "-t")
CXI = ("-n", "1000000000000", "--warmup", "1", "--latency-gap", "0")
OPS = {"write": ("cxi_write_lat", *CXI), "read": ("cxi_read_lat", *CXI),
       "send": ("cxi_send_lat", *CXI), "rendezvous": ("cxi_send_lat", *CXI, "-R"),
       "atomic": ("cxi_atomic_lat", *CXI, "--fetching"),
       "put_lat": (*PERF, "put_lat"), "am_lat": (*PERF, "am_lat"), "fadd": (*PERF, "fadd"),
       "put_bw": (*PERF, "put_bw", "-O", "16"), "get": (*PERF, "get", "-O", "16"),
       "am_bw": (*PERF, "am_bw", "-O", "16"), "tag_lat": (*PERF, "tag_lat"),
       "tag_bw": (*PERF, "tag_bw", "-O", "16"), "stream_lat": (*PERF, "stream_lat"),
       "stream_bw": (*PERF, "stream_bw", "-O", "16"), "add_mr": (*PERF, "add_mr", "-O", "16"),
       "put_bw both ways": (*PERF, "put_bw", "-O", "8", "--bidir"),
       "get both ways": (*PERF, "get", "-O", "8", "--bidir")}
LIST = ("-n", "1000000000000", "-l", "2")
LISTS = {"list of writes": ("cxi_write_bw", *LIST), "list of reads": ("cxi_read_bw", *LIST),
         "list of sends": ("cxi_send_bw", *LIST), "list of pulls": ("cxi_send_bw", *LIST, "-R"),
         "list of atomics": ("cxi_atomic_bw", *LIST, "--fetching"),
         "writes both ways": ("cxi_write_bw", *LIST, "-b"),
         "sends both ways": ("cxi_send_bw", *LIST, "-b"),
         "two lists of writes": ("cxi_write_bw", *LIST, "--procs", "2"),
         "two lists of sends": ("cxi_send_bw", *LIST, "--procs", "2"),
         "two lists of reads": ("cxi_read_bw", *LIST, "--procs", "2")}
OPS = LISTS if "--lists" in sys.argv else {**OPS, **LISTS}
COPIES = ("uct:posix", "uct:sysv")  # they have no other layout; their active messages are short
ATOMICS = {"atomic", "fadd", "add_mr", "list of atomics"}
SENDS = {op for op in LISTS if "send" in op or "pull" in op}
READS = {op for op in LISTS if "read" in op}
STREAMS = {"stream_lat", "stream_bw"}
UCP = {"tag_lat", "tag_bw", *STREAMS}
LACKS = {"soft": STREAMS, "null": {"put_lat", "am_lat", "am_bw", *UCP},
         "ofi:tcp": STREAMS, "ofi:shm": STREAMS, "uct:posix": UCP, "uct:sysv": UCP,
         "uct:cma": {"send", "rendezvous", "am_lat", "am_bw", *SENDS, *ATOMICS, *UCP},
         "uct:tcp": {"read", "get", "get both ways", *READS, *ATOMICS, *UCP}}
CUT = "cut the link"
FAULTS = ("kill the client", "kill the server", "stop the client", "stop the server")
UCX_SAYS = r"\[\S+:\d+ *:\S*\] +\S+:\d+ "  # before it aborts
BEGUN = rb"^Remote .*\n-+$|^\| # iterations .*\n\+-.*\+$"

_links = {}


def number_of(option):
    return next((int(sys.argv[i + 1]) for i, word in enumerate(sys.argv[:-1]) if word == option),
                None)


# ---- what a round is ----

class Plan:
    """Drawn from the seed, the fabric and the number of the round."""

    def __init__(self, fabric, number):
        chance = random.Random(f"{SEED}/{fabric}/{number}")
        self.fabric, self.number = fabric, number
        self.op = chance.choice([op for op in OPS if op not in LACKS.get(fabric, ())])
        self.size = chance.choice(SIZES)
        self.fault = chance.choice(FAULTS + (CUT,) * (2 if fabric.endswith(":tcp") else 0))
        self.early = chance.random() < 0.2
        self.wait_s = chance.uniform(0, 0.3)
        self.at_there = chance.random() < 0.5
        self.verify = chance.random() < 0.2 and fabric != "null" and "both" not in self.op
        self.child = self.op.startswith("two ") and not self.early and chance.random() < 0.7
        self.tool, *args = OPS[self.op]
        copies = fabric in COPIES
        if self.op.startswith("am") and not fabric.startswith("ucp:"):
            self.size = "4K" if copies else "64K"
        if self.op not in ATOMICS:
            args += ["-s", self.size]
            if self.tool == "ucx_perftest" and not fabric.startswith("ucp:") and self.op not in UCP:
                args += ["-D", "bcopy" if copies else "zcopy"]
        self.args = (*args, *(("--verify",) if self.verify else ()), "--timeout", str(TIMEOUT_S))

    def __str__(self):
        moment = f"{self.wait_s:.3f} s after {'the start' if self.early else 'the header'}"
        whom = " of the second pair" if self.child else ""
        return (f"WEFT_SEED={SEED} --only '{self.fabric}:' --round {self.number}: "
                f"{self.tool} {' '.join(self.args)}, {self.fault}{whom}, {moment}")


class Slow(Exception):
    """It ended as it should, but late."""


class Round:
    def __init__(self, plan):
        self.plan = plan
        self.traces = Traces()
        folder = tap.folder()
        self.path = os.path.join(folder, "client.json")
        self.link = link = link_of(plan.fabric) if plan.fault == CUT else None
        tool, device = tap.tool_path(plan.tool), FABRICS[plan.fabric]
        more = {"env": self.traces.env, "cwd": folder, "limit": 4 * HANG_S}
        most = ("--max-procs", "2") if "--procs" in plan.args else ()
        self.server = Server(tool, "-d", device, "--timeout", str(TIMEOUT_S), *most,
                             prefix=netns.inside(link.here) if link else (), **more)
        self.client = Client(tool, self.server, "-d", device, "--wait", "1", *plan.args,
                             "--json", self.path, address="10.99.0.1" if link else "127.0.0.1",
                             prefix=netns.inside(link.there) if link else (), **more)

    def begin(self):
        """Until the moment of the fault."""
        if not self.plan.early:
            out = self.client.raw
            self.client.wait_until(lambda: self.client.code is not None or
                                   re.search(BEGUN, out["out"], re.M), HANG_S)
        time.sleep(self.plan.wait_s)
        self.traces.watch(self.server, self.client)
        check(self.plan.early or self.client.running() and self.server.running(),
              "one ended by itself", self.client, self.server)

    def strike(self):
        """The ends that are left, and the one that was hit if it may go on later."""
        plan, began = self.plan, time.monotonic()
        if self.link:
            self.link.cut(plan.at_there)
            return (self.client, self.server), None, began
        hit, left = (self.client, self.server) if "client" in plan.fault else \
            (self.server, self.client)
        number = signal.SIGKILL if plan.fault.startswith("kill") else signal.SIGSTOP
        if plan.child:
            (pid, _), = tap.children_of(hit.pid)
            os.kill(pid, number)
            return (hit, left), None, began
        hit.kill(number)
        return (left,), hit, began

    def judge(self, end, since):
        """It lost its peer: code 4, in time, a sentence, a document."""
        if self.goes_on(end, "it hangs"):
            return
        if end.code == 1 and self.plan.early and self.link and "No such device" in end.err:
            return  # it came to open a device that the cut had taken away
        check(end.code == 4, f"exit code {end.code}, 4 is wanted", end)
        said = [line for line in sentences(end) if not re.match(UCX_SAYS, line)]
        check(said and all(line.startswith(self.plan.tool + ": ") for line in said),
              "no sentence, or another voice", end)
        self.document(end)
        took = end.ended - since
        if took > TIMEOUT_S + GRACE_S:
            raise Slow(f"{took:.1f} s\n{end}")

    def goes_on(self, end, words):
        """An end that does not end hangs, but a server with which nothing was agreed waits for the
        next client, until it is told not to."""
        serves = end is self.server and self.plan.early
        end.wait_until(lambda: end.code is not None and not end.open,
                       TIMEOUT_S + GRACE_S if serves else HANG_S)
        if not end.running():
            return False
        if serves:
            end.kill(signal.SIGTERM)
            end.wait_until(lambda: end.code is not None, HANG_S)
        check(serves and end.code == 143, words, stack_of(end), end)
        return True

    def document(self, end):
        if end is self.server:
            return
        check(os.path.exists(self.path), "no document", end)
        with open(self.path, encoding="utf-8") as file:
            found = schema.read(file.read())
        tap.equal(found["status"]["exit"], 4, end)

    def wake(self, hit):
        """The one that was stopped finds nobody."""
        hit.kill(signal.SIGCONT)
        if not self.goes_on(hit, "it hangs after it went on"):
            check(hit.code == 4, f"exit code {hit.code} after it went on, 4 is wanted", hit)

    def end(self, hit):
        if hit and self.plan.fault.startswith("kill"):
            hit.wait(HANG_S)
            if self.plan.early:
                self.forget(hit)
        self.traces.nothing()
        tap.equal(segments(self.traces.pids), [], "segments are left behind")

    def forget(self, dead):
        """What has a name until both have it open is left by an end that is killed meanwhile. UCX's names
        say nothing of their owner; rounds of other fabrics run at the same time, and have none."""
        ours = "ucx_shm_" if self.plan.fabric == "uct:posix" else str(dead.pid)
        for name in tap.shared_memory() - self.traces.shm:
            if str(dead.pid) in name or name.startswith(ours):
                try:
                    os.unlink(f"/dev/shm/{name}")
                except OSError:
                    pass


def stack_of(process):
    if not shutil.which("gdb"):
        return "(gdb would say where)"
    done = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt"],
                          capture_output=True, text=True, timeout=60, check=False)
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread")))


def segments(pids):
    """System V segments that these processes made and that are still there."""
    try:
        with open("/proc/sysvipc/shm", encoding="utf-8") as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
    except OSError:
        return []
    return [row[1] for row in rows if int(row[4]) in pids]


def attempt(plan):
    one = Round(plan)
    try:
        one.begin()
        left, hit, since = one.strike()
        for end in left:
            one.judge(end, since)
        if hit and plan.fault.startswith("stop"):
            one.wake(hit)
        one.end(hit)
    finally:
        if one.link:
            one.link.mend(plan.at_there)
        for end in (one.server, one.client):
            end.end()


def play(plan, tries=3):
    """On a busy machine an end may come late once, not three times."""
    for left in reversed(range(tries)):
        try:
            return attempt(plan)
        except Slow as why:
            if not left:
                raise tap.Failure(f"{plan}\nlate in each of {tries} attempts: {why}") from None
        except tap.Failure as why:
            raise tap.Failure(f"{plan}\n{why}") from None
    return None


# ---- rounds ----

def need(fabric):
    module = fabric.partition(":")[0]
    if ":" in fabric and not os.path.exists(os.path.join(MODULES, f"weft-{module}.so")):
        skip(f"weft-{module}.so is not built")


def link_of(fabric):
    """Cut links need rights; without them there are no such rounds."""
    if fabric not in _links:
        number = len(_links)
        try:
            _links[fabric] = netns.Link(*(f"weft-{end}{number}-{os.getpid()}" for end in "ef"))
        except tap.Skip as why:
            _links[fabric] = None
            tap.note(f"no link is cut: {why}")
    return _links[fabric]


def rounds(fabric, seconds, count):
    need(fabric)
    tap.note(f"WEFT_SEED={SEED}")
    until, done, number = time.monotonic() + seconds, {}, 0
    while sum(done.values()) < count and time.monotonic() < until:
        plan = Plan(fabric, number)
        number += 1
        if plan.fault != CUT or link_of(fabric):
            play(plan)
            done[plan.fault] = done.get(plan.fault, 0) + 1
    tap.note(f"{sum(done.values())} rounds: " +
             ", ".join(f"{times} x {fault}" for fault, times in sorted(done.items())))


def one_round(fabric, number):
    need(fabric)
    play(Plan(fabric, number), tries=1)


# ---- locks ----

def dies_with_a_lock(number, victim):
    """The ends of ofi:shm share spinlocks: one that is killed or stopped while it holds one must not
    leave the other spinning."""
    need("ofi:shm")
    now = os.path.join(tap.folder(), "now")
    holds = {"LD_PRELOAD": os.path.join(tap.doubles_folder(), "holds_lock.so"),
             "WEFT_TEST_HOLDS": f"{int(number)} {now}"}
    env = {end: holds if end == victim else {} for end in ("client", "server")}
    traces, args = Traces(), ("-d", "ofi:shm", "--timeout", str(TIMEOUT_S))
    tool = tap.tool_path("ucx_perftest")
    server = Server(tool, *args, env={**traces.env, **env["server"]})
    client = Client(tool, server, *args, *PERF[1:], "get", "-O", "2", "-s", "1M", "-D", "zcopy",
                    env={**traces.env, **env["client"]})
    hit, left = (server, client) if victim == "server" else (client, server)
    client.wait_for(BEGUN.decode())
    with open(now, "w", encoding="utf-8"):
        pass
    traces.watch(server, client)
    until = time.monotonic() + 2 * TIMEOUT_S
    while os.path.exists(now) and time.monotonic() < until:
        time.sleep(0.05)
    if os.path.exists(now):
        for end in (client, server):
            end.kill(signal.SIGKILL)
            end.wait(HANG_S)
        skip("this libfabric takes no spinlock in the memory that its ends share")
    tap.ended(left, 4, HANG_S, hit)
    hit.kill(signal.SIGCONT)
    tap.ended(hit, 4 if number == signal.SIGSTOP else -number, HANG_S)
    traces.nothing()


def add_all():
    total, single = number_of("--rounds"), number_of("--round")
    seconds = float("inf") if total else (number_of("--seconds") or 20)
    for fabric in FABRICS:
        name = f"{fabric}: whatever happens to one end, the other ends"
        if single is not None:
            tap.add(name, one_round, fabric, single)
        else:
            tap.add(name, rounds, fabric, seconds * WORKERS / len(FABRICS),
                    -(-total // len(FABRICS)) if total else float("inf"))


add_all()
for _number in (signal.SIGKILL, signal.SIGSTOP):
    for _victim in ("client", "server"):
        tap.add(f"the {_victim} gets {_number.name} with a lock of the shared memory",
                dies_with_a_lock, _number, _victim)
if __name__ == "__main__":
    tap.main(workers=WORKERS)
