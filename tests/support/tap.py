# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests that are sentences and prints TAP; starts tools, reads them while they run, and finds
what they leave behind. Every process has a hard limit. Other Weft processes on the machine do not
disturb: a test looks for its own pids, ports, sockets and a virtual network of its own."""
import concurrent.futures
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback


SANITIZED = os.environ.get("WEFT_SANITIZED", "") not in ("", "0")
SEPARATOR = "-" * 72
ANNOUNCED = re.compile(r"^\S+: listening on .*\n", re.M)
LIMIT_S = 90  # a run that takes a second, on a machine with twenty others


class Failure(Exception):
    """What is wrong, and everything that helps to see why."""


class Skip(Exception):
    """Why this cannot be tested here."""


def skip(reason):
    raise Skip(reason)


def shown(value):
    return str(value) if isinstance(value, (str, Process)) else repr(value)


def check(condition, *words):
    if not condition:
        raise Failure("\n".join(shown(word) for word in words) or "a condition does not hold")


def equal(got, wanted, *words):
    check(got == wanted, *words, f"got:    {got!r}", f"wanted: {wanted!r}")


def between(value, low, high, *words):
    check(low <= value <= high, *words, f"{value!r} is not between {low!r} and {high!r}")


# ---- tests ----

_tests = []
_here = threading.local()
_running = set()
_at_exit = []
_lock = threading.Lock()


def test(function):
    """Registers a test that may run beside others."""
    add(function.__name__, function)
    return function


def alone(function):
    """Registers a test that measures time or changes the machine: nothing runs beside it, here or in
    another program of the same test run."""
    add(function.__name__, function, by_itself=True)
    return function


def add(name, function, *arguments, by_itself=False):
    # A hash would begin a directive.
    _tests.append((name.replace("_", " ").replace("#", ""), function, arguments, by_itself))


def at_exit(function):
    """Also called when the run is ended by a signal."""
    _at_exit.append(function)


def _run_one(function, arguments):
    """("ok" | "not ok" | "skip", detail)"""
    _here.processes, _here.folders, _here.notes = [], [], []
    try:
        function(*arguments)
        return "ok", "\n".join(_here.notes)
    except Skip as why:
        return "skip", str(why)
    except Failure as why:
        return "not ok", "\n".join(_here.notes + [str(why)])
    except Exception:
        return "not ok", traceback.format_exc()
    finally:
        for process in _here.processes:
            process.end()
        for folder in _here.folders:
            shutil.rmtree(folder, ignore_errors=True)


def note(text):
    """A line of the report that is no failure."""
    _here.notes.append(text)


class _Report:
    """Results in the order of the tests, each as soon as those before it are known."""

    def __init__(self, names):
        self.names, self.results, self.next, self.failed = names, {}, 0, 0
        self.lock = threading.Lock()
        print(f"1..{len(names)}", flush=True)

    def add(self, number, result):
        with self.lock:
            self.results[number] = result
            while self.next in self.results:
                self.say(self.next, *self.results[self.next])
                self.next += 1

    def say(self, number, what, detail):
        tail = " # SKIP " + " ".join(detail.split()) if what == "skip" else ""
        print(f"{'ok' if what == 'skip' else what} {number + 1} - {self.names[number]}{tail}")
        if what != "skip" and detail:
            for line in detail.splitlines()[:120]:
                print("#   " + line.encode("unicode_escape").decode().replace("\\\\", "\\"))
        self.failed += what == "not ok"
        sys.stdout.flush()


def _clean_up():
    with _lock:
        left = list(_running)
    for process in left:
        process.end()
    for function in _at_exit:
        function()
    _at_exit.clear()


def _on_signal(number, _frame):
    _clean_up()
    print("Bail out! ended by a signal", flush=True)
    os._exit(128 + number)


def main(workers=None):
    """Runs everything; --only TEXT (may be repeated) runs the tests whose names contain it, --times
    says which took longest. --alone runs what needs the machine to itself, --beside the rest."""
    wanted = [sys.argv[i + 1] for i, word in enumerate(sys.argv[:-1]) if word == "--only"]
    tests = [t for t in _tests if not wanted or any(w.replace("_", " ") in t[0] for w in wanted)]
    if "--alone" in sys.argv or "--beside" in sys.argv:
        tests = [t for t in tests if t[3] == ("--alone" in sys.argv)]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _on_signal)
    report = _Report([t[0] for t in tests])
    workers = workers or max(4, min(16, 2 * (os.cpu_count() or 2)))

    seconds = {}

    def run(number):
        _, function, arguments, _ = tests[number]
        begun = time.monotonic()
        result = _run_one(function, arguments)
        seconds[number] = time.monotonic() - begun
        report.add(number, result)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, [i for i, t in enumerate(tests) if not t[3]]))
    for number in [i for i, t in enumerate(tests) if t[3]]:
        run(number)
    _clean_up()
    if "--times" in sys.argv:
        by_itself = sum(seconds[i] for i, t in enumerate(tests) if t[3])
        print(f"# {by_itself:.1f} s alone; {sum(seconds.values()) - by_itself:.1f} s by {workers} "
              "at a time")
        for number in sorted(seconds, key=seconds.get, reverse=True)[:25]:
            print(f"# {seconds[number]:6.2f} s  {'alone ' if tests[number][3] else ''}"
                  f"{tests[number][0]}")
    sys.exit(1 if report.failed else 0)


def in_parallel(function, items, workers):
    """For tests made of many rounds; the first failure is raised."""
    mine = _here.processes, _here.folders, _here.notes

    def call(item):
        _here.processes, _here.folders, _here.notes = mine
        return function(item)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(call, items))


def folder():
    path = tempfile.mkdtemp(prefix="weft-test-")
    _here.folders.append(path)
    return path


def file_with(text):
    path = os.path.join(folder(), "file")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


# ---- processes ----

def build_folder():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} BUILD [--only TEXT]")
    return os.path.abspath(sys.argv[1])


def doubles_folder():
    """Fabrics and GPU libraries that are made for tests, and the tools that load the latter."""
    return os.path.join(build_folder(), "tests", "doubles")


def module_in_place_of(name, double):
    """A folder in which the module of fabric name is a test fabric."""
    place = folder()
    shutil.copy(os.path.join(doubles_folder(), f"weft-{double}.so"),
                os.path.join(place, f"weft-{name}.so"))
    return place


def tool_path(name):
    path = os.path.join(build_folder(), "tools", name)
    if not os.access(path, os.X_OK) and name != "weft":
        sys.exit(f"{path} is not there: build first")
    return path


def need_weft(argv):
    """weft is not in a build without jansson: what runs it is skipped there."""
    for word in argv:
        if str(word) == tool_path("weft") and not os.access(word, os.X_OK):
            skip("this build has no weft: it was made without jansson")


class Process:
    """A started program. Its output is read as it comes: out, err, and when each line came."""

    def __init__(self, argv, limit=LIMIT_S, env=None, stdout=None, stderr=None, group=False,
                 cwd=None):
        need_weft(argv)
        self.argv, self.limit, self.overdue = list(argv), limit, False
        self.raw = {"out": b"", "err": b""}
        self.news = threading.Condition()
        self.open = 0
        self.code = None
        self.began = time.monotonic()
        self.ended = None
        self.popen = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, cwd=cwd, start_new_session=group,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE if stderr is None else stderr,
            env={**os.environ, "LC_ALL": "C", "WEFT_SERVICES": "/dev/null", **(env or {})})
        self.pid = self.popen.pid
        self.start = start_time(self.pid)
        self.timer = threading.Timer(limit, self._too_late)
        self.timer.daemon = True
        self.timer.start()
        _here.processes.append(self)
        with _lock:
            _running.add(self)
        for name, stream in (("out", self.popen.stdout), ("err", self.popen.stderr)):
            if stream:
                self.open += 1
                threading.Thread(target=self._read, args=(name, stream), daemon=True).start()
        threading.Thread(target=self._reap, daemon=True).start()

    def _too_late(self):
        self.overdue = True
        self.popen.kill()

    def _read(self, name, stream):
        while True:
            try:
                piece = os.read(stream.fileno(), 65536)
            except OSError:
                piece = b""
            with self.news:
                self.raw[name] += piece
                if not piece:
                    self.open -= 1
                self.news.notify_all()
            if not piece:
                stream.close()
                return

    def _reap(self):
        code = self.popen.wait()
        with self.news:
            self.code, self.ended = code, time.monotonic()
            self.news.notify_all()
        self.timer.cancel()

    def text(self, name):
        """Without the line of a server on what it serves, which is in announced."""
        with self.news:
            return ANNOUNCED.sub("", self.raw[name].decode("utf-8", "replace"))

    @property
    def announced(self):
        with self.news:
            return ANNOUNCED.findall(self.raw["err"].decode("utf-8", "replace"))

    @property
    def out(self):
        return self.text("out")

    @property
    def err(self):
        return self.text("err")

    def _await(self, condition, within):
        until = time.monotonic() + within
        with self.news:
            while not condition():
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self.news.wait(min(left, 0.5))
            return True

    def wait_until(self, condition, within):
        """Waits until it holds, and no longer than that."""
        self._await(condition, within)

    def wait_for(self, pattern, within=15, stream="out"):
        """Waits for text that matches, and returns the match."""
        found = []

        def look():
            text = ANNOUNCED.sub("", self.raw[stream].decode("utf-8", "replace"))
            match = re.search(pattern, text, re.M)
            if match:
                found.append(match)
            return match or (self.code is not None and not self.open)

        self._await(look, within)
        check(found, f"no {pattern!r} on std{stream} within {within} s", self)
        return found[0]

    def running(self):
        return self.code is None

    def wait(self, within=None):
        """The exit code; a failure if it does not end."""
        ended = self._await(lambda: self.code is not None, within or self.limit + 5)
        check(ended and not self.overdue, f"still running after {within or self.limit} s", self)
        # What it had written is there when the pipes are closed.
        self._await(lambda: not self.open, 2)
        return self.code

    def kill(self, number=signal.SIGKILL):
        if self.running():
            try:
                self.popen.send_signal(number)
            except ProcessLookupError:
                pass

    def end(self):
        if self.running():
            for number in (signal.SIGKILL, signal.SIGCONT):
                self.kill(number)
            self._await(lambda: self.code is not None, 5)
        with _lock:
            _running.discard(self)

    def __str__(self):
        return "\n".join([f"$ {' '.join(self.argv)}", f"exit code {self.code}",
                          "stdout:", self.out[-3000:], "stderr:", self.err[-2000:]])


def ended(process, code, within=None, *words):
    """Waits, and compares the exit code."""
    process.wait(within)
    check(process.code == code, *words, f"exit code {process.code}, {code} is wanted", process)
    return process


class Server(Process):
    """A tool that waits for its client; port is the one it listens on."""

    def __init__(self, tool, *args, port="0", prefix=(), **more):
        super().__init__([*prefix, tool, "-p", port, *args], **more)
        self.port = self.wait_for(r"^Listening on port (\d+) for client to connect\.\.\.$")[1]
        self.inodes = listening(int(self.port))


class Client(Process):
    def __init__(self, tool, server, *args, address="127.0.0.1", prefix=(), **more):
        super().__init__([*prefix, tool, address, "-p", server.port, *args], **more)


def kills_an_end(victim, *args, env=None):
    """ucx_perftest with these arguments: once it measures, one end is killed, and the other ends."""
    tool = tool_path("ucx_perftest")
    server = Server(tool, *args[:args.index("-t")], env=env)
    client = Client(tool, server, *args, "-n", "0", "--timeout", "5", "-w", "10", env=env)
    client.wait_for(r"^\| # iterations .*\n\+-.*\+$")
    hit, other = (client, server) if victim == "client" else (server, client)
    hit.kill()
    hit.wait(5)
    ended(other, 4, 20)


def pair(tool, *args, server_args=(), limit=LIMIT_S, **more):
    """Server and client until both have ended well."""
    server = Server(tool, *server_args, limit=limit, **more)
    client = Client(tool, server, *args, limit=limit, **more)
    ended(client, 0)
    ended(server, 0)
    return server, client


def run(*argv, limit=LIMIT_S, **more):
    process = Process(argv, limit=limit, **more)
    process.wait()
    return process


# ---- text ----

def lines_of(text):
    check(text == "" or text.endswith("\n"), "the last line has no end", text[-200:])
    return text.split("\n")[:-1]


# What depends on the load of the machine and on its clock.
REMARK = re.compile(": (disturbed while measuring|not resolved|both ends seem to have run on one CPU|the warm-up "
                    "ended after [0-9]+ ms|an operation takes less than 100 ns: samples are means)")


def sentences(process):
    """Lines of stderr, without remarks on what the machine did meanwhile and what its clock resolves."""
    return [line for line in lines_of(process.err) if not REMARK.search(line)]


def preempted(process):
    """How often a tool lost its CPU while it measured, as it reports itself."""
    match = re.search(r"disturbed while measuring: (\d+)x preempted", process.err)
    return int(match[1]) if match else 0


def undisturbed(measure, attempt, busy, attempts=6):
    """For tests that need a quiet machine: attempt(measure()) passes once. A noisy neighbour spoils
    one attempt, not all; if busy(what was measured) each time, it is a skip."""
    crowded = True
    for left in reversed(range(attempts)):
        measured = measure()
        try:
            return attempt(measured)
        except Failure:
            crowded = crowded and busy(measured)
            if not left and not crowded:
                raise
            time.sleep(0.3)
    return skip("other work on this machine took the CPU away in every attempt")


def stop_for(process, seconds):
    process.kill(signal.SIGSTOP)
    time.sleep(seconds)
    process.kill(signal.SIGCONT)


def one_sentence(process, name):
    said = sentences(process)
    check(len(said) == 1 and said[0].startswith(name + ": "),
          f"one line from {name} is wanted on stderr", process)
    return said[0]


def header_value(process, label):
    match = re.search(r"^" + re.escape(f"{label:<17}: ") + "(.*)$", process.out, re.M)
    check(match, f"no header line {label!r}", process)
    return match[1]


def rows_of(process):
    """[(size, count, min, max, mean, deviation)] of the results, latencies as printed: a number, or
    "<" and one that it is below."""
    found = re.findall(r"^ *(\d+)  +(\d+)" + 4 * r"  +(<?[\d.]+)" + "$", process.out, re.M)
    return [(int(size), int(count), *numbers) for size, count, *numbers in found]


def fits(text, value):
    """Is this what the value reads, to the last digit? "<0.022" is all that is known below that."""
    if text.startswith("<"):
        return value < float(text[1:])
    return abs(float(text) - value) <= 0.5001 * 10 ** -len(text.partition(".")[2])


def samples_of(process):
    """Printed samples, one list a size."""
    lists = []
    for line in process.out.split("\n"):
        if line.endswith("  Latency[us]"):
            lists.append([])
        match = re.fullmatch(r" *(\d+)  +(\d+\.\d{3})", line)
        if match and lists:
            check(int(match[1]) == len(lists[-1]), "samples are not numbered from 0", line)
            lists[-1].append(float(match[2]))
    return lists


def mask_fields(line):
    """Right-aligned numbers become as many marks as the field is wide."""
    return re.sub(r" *<?\d+(\.\d+)?", lambda m: "#" * len(m.group()), line)


# ---- what is left behind ----

def start_time(pid):
    """Tells a process from a later one with its pid; None if there is none (or only a zombie)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def children_of(pid):
    """[(pid, start time)]"""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(pid):
            found.append((int(entry), fields[19]))
    return found


def listening(port):
    """Inodes of the sockets that listen on a TCP port."""
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name, encoding="utf-8") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, rows):
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def nic_sockets(vni):
    """Abstract sockets of the software NIC in one virtual network."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        return re.findall(rf"@(weft/nic-[0-9a-f]+/vni-{vni}/user-\S+)", file.read())


def mpi_env():
    """For launchers: a test may run as root and on fewer cores than ranks, in a network that is
    loopback alone; sanitizers know nothing of MPI's own leaks. PRTE is Open MPI 5's launcher."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "^tcp",
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def processes_with(variable):
    """Pids of the living processes that have this in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if variable.encode() in file.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def shared_memory():
    try:
        return set(os.listdir("/dev/shm"))
    except OSError:
        return set()


def _used_by_others(name):
    """Is a living process holding this object of /dev/shm?"""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/maps", encoding="utf-8", errors="replace") as file:
                    if f"/dev/shm/{name}" in file.read():
                        return True
            except OSError:
                pass
    return False


_next_vni = [1024 + os.getpid() * 613 % 50000]


def own_vni():
    """A virtual network nobody else here uses."""
    with _lock:
        _next_vni[0] += 1
        return _next_vni[0]


class Traces:
    """What there was before. env gives the tools a virtual network and a folder of their own, and
    nothing() fails if anything of theirs is still there a moment later."""

    def __init__(self):
        self.vni = own_vni()
        self.shm = shared_memory()
        self.tmp = folder()
        self.env = {"WEFT_SERVICES": file_with(f"1 {self.vni}\n"), "TMPDIR": self.tmp}
        self.pids, self.inodes, self.ports = {}, set(), set()

    def watch(self, *processes):
        for process in processes:
            if process.start:
                self.pids[process.pid] = process.start
            for pid, start in children_of(process.pid):
                self.pids[pid] = start
            for inode in getattr(process, "inodes", ()):
                self.inodes.add(inode)
                self.ports.add(int(process.port))

    def left(self):
        pids = {pid for pid, start in self.pids.items() if start_time(pid) == start}
        pids.update(processes_with(f"TMPDIR={self.tmp}"))
        found = [f"process {pid}" for pid in pids]
        found += [f"socket {name}" for name in nic_sockets(self.vni)]
        found += [f"port {port}" for port in self.ports if listening(port) & self.inodes]
        found += [f"file {name}" for name in os.listdir(self.tmp)]
        found += [f"shared memory {name}" for name in shared_memory() - self.shm
                  if not _used_by_others(name) and not self.made_by_others(name)]
        return found

    def made_by_others(self, name):
        """libfabric calls its objects PID:..., Open MPI, whose ranks other tests run, sm_segment...;
        of other names nobody knows."""
        pid = name.partition(":")[0]
        return (name.startswith(("sm_segment.", "vader_segment.")) or
                ":" in name and pid.isdigit() and int(pid) not in self.pids)

    def nothing(self, within=3):
        until = time.monotonic() + within
        found = self.left()
        while found and time.monotonic() < until:
            time.sleep(0.05)
            found = self.left()
        check(not found, "left behind: " + ", ".join(found))


# ---- sockets of the test itself ----

def dial(port, limit=10):
    return socket.create_connection(("127.0.0.1", int(port)), limit)


def free_port():
    """A port that nobody listens on (for a while)."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def available_bytes():
    with open("/proc/meminfo", encoding="utf-8") as file:
        match = re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.M)
    return int(match[1]) * 1024 if match else 0


class RunningPair:
    """Server and client of a run that does not end by itself, and their traces."""

    def __init__(self, tool, server_args, client_args, env=None, **more):
        self.traces = Traces()
        env = {**(env or {}), **self.traces.env}
        self.server = Server(tool, *server_args, env=env, **more)
        self.client = Client(tool, self.server, *client_args, env=env, **more)

    def settle(self, seconds):
        """Called once both are under way."""
        time.sleep(seconds)
        check(self.server.running() and self.client.running(), self.server, self.client)
        self.traces.watch(self.server, self.client)

    def ends(self, who):
        return (self.client, self.server) if who == "client" else (self.server, self.client)
