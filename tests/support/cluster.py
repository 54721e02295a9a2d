# SPDX-License-Identifier: BSD-3-Clause
"""A cluster with a real Slurm on one machine: hosts are network namespaces joined by a bridge, each
with a host name of its own. All of it, processes too, is in namespaces of the calling test: nobody
else sees it, and it ends with the test."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import tap

ALONE = "WEFT_TEST_ALONE"
COMMANDS = ("slurmctld", "slurmd", "srun", "munged", "ip", "nsenter", "unshare")


def move_away():
    """This program again, in mount and process namespaces of its own, if that is possible."""
    if ALONE in os.environ or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    apart = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
             "--propagation", "private"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False, timeout=20).returncode:
        return
    os.environ[ALONE] = "1"
    os.makedirs("/run/netns", exist_ok=True)
    setup = 'mount -t tmpfs none /run/netns && exec "$0" "$@"'
    os.execvp(apart[0], [*apart, "sh", "-c", setup, sys.executable, *sys.argv])


def need():
    if ALONE not in os.environ:
        tap.skip("a cluster needs root, and namespaces of its own")
    for command in COMMANDS:
        if not shutil.which(command):
            tap.skip(f"{command} is not installed")


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=20)
    if done.returncode:
        tap.skip(f"no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")


CONF = """ClusterName=weft
SlurmctldHost={head}(10.98.0.1)
AuthType=auth/munge
AuthInfo=socket={at}/munge.sock
MpiDefault=none
ProctrackType=proctrack/linuxproc
ReturnToService=2
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.%n.pid
SlurmctldPort=16817
SlurmdSpoolDir={at}/spool.%n
StateSaveLocation={at}/state
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd.%n.log
SlurmUser=root
SwitchType=switch/none
TopologyPlugin=topology/tree
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType={select}
KillWait=2
MinJobAge=5
SlurmctldTimeout=30
SlurmdTimeout=60
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
"""


class Cluster:
    """Hosts n0 ... at 10.98.1.1 ..., two to a switch, and a head from which commands are given."""

    def __init__(self, count):
        need()
        self.count = count
        self.at = tempfile.mkdtemp(prefix="weft-cluster-")
        os.chmod(self.at, 0o755)
        self.daemons, self.states = [], ""
        tap.at_exit(self.down)
        self._network()
        self._files()
        self._munge()
        self._slurm()

    def _network(self):
        for name in self.names() + ["head"]:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", "head", "link", "add", "bridge", "type", "bridge")
        ip("-n", "head", "addr", "add", "10.98.0.1/16", "dev", "bridge")
        ip("-n", "head", "link", "set", "bridge", "up")
        for number, name in enumerate(self.names()):
            ip("-n", "head", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", "head", "link", "set", f"to-{name}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.98.1.{number + 1}/16", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def names(self):
        return [f"n{i}" for i in range(self.count)]

    def path(self, name):
        return os.path.join(self.at, name)

    def _write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)

    def _files(self):
        hosts = "".join(f"10.98.1.{i + 1} {name}\n" for i, name in enumerate(self.names()))
        self._write("hosts", f"127.0.0.1 localhost\n10.98.0.1 weft-head\n{hosts}")
        nodes = "".join(f"NodeName={name} NodeAddr=10.98.1.{i + 1} Port=17000 CPUs=8 State=UNKNOWN\n"
                        for i, name in enumerate(self.names()))
        last = self.count - 1
        # No control groups. Releases before 23.11 do not look for them if they are told the kind.
        version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=False,
                                 timeout=20)
        old = version.stdout.split()[-1:] < ["23.11"]
        # And newer ones give out whole nodes along a tree of switches only by the second of these.
        select = "select/linear" if old else "select/cons_tres"
        self._write("cgroup.conf", f"CgroupPlugin={'cgroup/v1' if old else 'disabled'}\n")
        self._write("slurm.conf", CONF.format(at=self.at, head="weft-head", select=select) + nodes +
                    f"PartitionName=all Nodes=n[0-{last}] Default=YES MaxTime=INFINITE State=UP\n")
        switches = "".join(f"SwitchName=s{i} Nodes=n[{2 * i}-{2 * i + 1}]\n"
                           for i in range(self.count // 2))
        self._write("topology.conf",
                    f"{switches}SwitchName=top Switches=s[0-{self.count // 2 - 1}]\n")
        self._write("mpi.conf", f"PMIxCliTmpDirBase={self.at}/tmp\n")
        for name in ("state", "tmp", *(f"spool.{n}" for n in self.names()),
                     *(f"tmp.{n}" for n in self.names())):
            os.mkdir(self.path(name))

    def _start(self, *argv):
        """Below this program, so that it ends with it."""
        log = open(self.path(f"daemon-{len(self.daemons)}.log"), "wb")
        self.daemons.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT))
        log.close()

    def inside(self, name, *argv):
        """argv on a host, or on the head."""
        files = f"mount --bind {self.path('hosts')} /etc/hosts"
        if name == "head":
            files += "; hostname weft-head"
        else:
            files += (f"; mount --bind {self.path('tmp.' + name)} {self.path('tmp')}"
                      f"; hostname {name}")
        return ["nsenter", f"--net=/run/netns/{name}", "unshare", "-m", "-u", "--propagation",
                "private", "sh", "-c", f'{files}; exec "$0" "$@"', *argv]

    def _munge(self):
        with open(self.path("munge.key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(self.path("munge.key"), 0o400)
        self._start("munged", "--foreground", "--force", f"--socket={self.path('munge.sock')}",
                    f"--key-file={self.path('munge.key')}", f"--pid-file={self.path('munge.pid')}",
                    f"--log-file={self.path('munge.log')}", f"--seed-file={self.path('munge.seed')}")
        self._until(lambda: os.path.exists(self.path("munge.sock")), "munged does not listen")

    def _slurm(self):
        conf = self.path("slurm.conf")
        self._start(*self.inside("head", "slurmctld", "-D", "-f", conf))
        for name in self.names():
            self._start(*self.inside(name, "slurmd", "-D", "-f", conf, "-N", name))
        self._until(self._idle, "the nodes do not come up")

    def _ask(self, *argv):
        return subprocess.run(self.inside("head", *argv), check=False, env=self.env(),
                              capture_output=True, text=True, timeout=30).stdout

    def _idle(self):
        self.states = self._ask("sinfo", "-h", "-o", "%T %D %N")
        return self.states.split()[:2] == ["idle", str(self.count)]

    def _idle_again(self):
        """A host that was away for long is down until somebody says that it is not."""
        if self._idle():
            return True
        self._ask("scontrol", "update", f"NodeName=n[0-{self.count - 1}]", "State=RESUME")
        return False

    def _until(self, condition, words, within_s=60):
        until = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > until:
                logs = ""
                for name in sorted(os.listdir(self.at)):
                    if name.endswith(".log"):
                        with open(self.path(name), errors="replace", encoding="utf-8") as file:
                            logs += f"{name}:\n" + "".join(file.readlines()[-8:])
                tap.check(False, words, self.states, logs)
            time.sleep(0.1)

    def env(self, **more):
        return {**os.environ, "SLURM_CONF": self.path("slurm.conf"), **more}

    def run(self, *argv, limit=60, **env):
        """A command on the head."""
        return tap.Process(self.inside("head", *argv), limit=limit, env=self.env(**env))

    def cut(self, name):
        ip("-n", "head", "link", "set", f"to-{name}", "down")

    def mend(self, name):
        ip("-n", "head", "link", "set", f"to-{name}", "up")

    def ready(self):
        """Slurm has noticed that all of them are there again."""
        self._until(self._idle_again, "the nodes do not come back", 150)

    def down(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
        for daemon in self.daemons:
            daemon.wait(timeout=10)
        shutil.rmtree(self.at, ignore_errors=True)
