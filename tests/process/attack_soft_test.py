# SPDX-License-Identifier: BSD-3-Clause
"""Other users of the machine against ends on soft: they take names, reach what they may not, and
pose as another thread of a process. Needs root, to be several users."""
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import tap
import wire
from tap import Client, Process, Server, check, ended, header_value, one_sentence, skip, test

NAME = "cxi_write_lat"
TOOL = tap.tool_path(NAME)
QUICK = ("-n", "3", "--latency-gap", "0", "--warmup", "0")
NOBODY = 65534
PIDS = 511

# Binds every PID of a user on cxi0. Every other socket does not even listen if half is given.
TAKE_ALL = f"""
import os, socket, sys, time
vni, user, of, half = sys.argv[1:]
os.setgroups([])
os.setresuid(*3 * [int(user)])
held = []
for pid in range({PIDS}):
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    held[-1].bind(f"\\0weft/nic-00012/vni-{{vni}}/user-{{of}}/pid-{{pid}}")
    if half == "all" or pid % 2:
        held[-1].listen(64)
print("ready", flush=True)
time.sleep(60)
"""

# The first of a PID namespace: impostor.py FILE NAME COMMAND... A process listens on a socket, leaves it
# to another one, and ends; the command gets its process id. The impostor tells who connects that its
# memory is at an address of no use, under the key that is in the file by then.
IMPOSTOR = f"""
import os, socket, sys, time
file, name, command = sys.argv[1], sys.argv[2], sys.argv[3:]
ready, told = os.pipe()
listens = os.fork()
if not listens:
    os.setgroups([])
    os.setresuid(*3 * [{NOBODY}])
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("\\0" + name)
    listener.listen(8)
    if os.fork():
        os._exit(0)
    os.write(told, b"1")
    end = listener.accept()[0]
    end.recv(100)
    with open(file) as keys:
        for key in "0", keys.read():
            end.send(f"key={{key}}\\nlength=4194304\\naddress=0x1000\\n".encode())
    time.sleep(30)
    os._exit(0)
os.waitpid(listens, 0)
os.read(ready, 1)
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(listens - 1))
client = os.fork()
if not client:
    os.execv(command[0], command)
how = os.waitpid(client, 0)[1]
print("the same process id" if client == listens else "another process id", file=sys.stderr)
os._exit(os.WEXITSTATUS(how) if os.WIFEXITED(how) else 128 + os.WTERMSIG(how))
"""


def need_root():
    if os.geteuid():
        skip("acting as another user needs root")


def as_nobody():
    """The words before a command of another user."""
    need_root()
    words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    if not shutil.which(words[0]):
        skip("there is no setpriv")
    if tap.run(*words, "test", "-x", TOOL).code:
        skip("another user cannot run what is in the build folder")
    return words


def services():
    """(VNI, environment) of a virtual network that nobody else uses; any user may read its file."""
    vni = tap.own_vni()
    path = tap.file_with(f"1 {vni}\n")
    os.chmod(os.path.dirname(path), 0o755)
    return vni, {"WEFT_SERVICES": path}


def take_all(vni, user, half):
    need_root()
    holder = Process([sys.executable, "-c", TAKE_ALL, str(vni), str(user), "0", half])
    holder.wait_for("ready")
    return holder


@test
def a_server_starts_and_measures_though_another_user_has_bound_all_its_names():
    vni, env = services()
    take_all(vni, NOBODY, "half")
    server = Server(TOOL, "-d", "cxi0", env=env)
    client = Client(TOOL, server, "-d", "cxi0", *QUICK, env=env)
    ended(client, 0)
    ended(server, 0)


@test
def a_user_that_has_all_its_pids_itself_is_told():
    vni, env = services()
    take_all(vni, 0, "all")
    process = ended(Process([TOOL, "-p", "0", "-d", "cxi0"], env=env), 1)
    check(f"user 0 has all {PIDS} PIDs of cxi0 in VNI {vni}" in one_sentence(process, NAME), process)


@test
def each_user_has_its_own_pids_and_root_reaches_the_server_of_another():
    other = as_nobody()
    _, env = services()
    server = Server(TOOL, "-d", "cxi0", prefix=other, env=env)
    client = Client(TOOL, server, "-d", "cxi0", *QUICK, env=env)
    ended(client, 0)
    ended(server, 0)
    for process in server, client:
        side = "Local (server)" if process is server else "Local (client)"
        check("PID 0" in header_value(process, side), process)


@test
def the_client_of_another_user_does_not_reach_the_server_of_root():
    other = as_nobody()
    _, env = services()
    server = Server(TOOL, "-d", "cxi0", env=env)
    client = Client(TOOL, server, "-d", "cxi0", *QUICK, prefix=other, env=env)
    ended(client, 1)
    check(f"user {NOBODY}" in client.err and "only a server's own user, or root" in client.err,
          client)


@test
def an_impostor_whose_process_id_was_used_again_chooses_no_address():
    other = as_nobody()
    vni, env = services()
    apart = ("unshare", "--pid", "--fork", "--kill-child")
    if tap.run(*apart, "true").code:
        skip("no PID namespace can be made")
    file = os.path.join(tap.folder(), "key")
    server = Server(TOOL, "-d", "cxi0", prefix=other, env=env)

    def lead_astray(from_client, _number, data):
        key = re.search(rb"\nkey=(\d+)\n", data)
        if not from_client and key:
            with open(file, "wb") as out:
                out.write(key[1])
            os.chmod(os.path.dirname(file), 0o755)
        return [data if from_client else data.replace(b"\npid=0\n", b"\npid=5\n")]

    with wire.Between(server, lead_astray) as between:
        name = f"weft/nic-00012/vni-{vni}/user-{NOBODY}/pid-5"
        client = Process([*apart, sys.executable, "-c", IMPOSTOR, file, name, TOOL, "127.0.0.1", "-p",
                          between.port, "-d", "cxi0", "--timeout", "20", *QUICK], env=env)
        client.wait()
    if "another process id" in client.err:
        skip("another process came before the client")
    check("the same process id" in client.err, client)
    check(client.code == 1 and "soft: a message without its descriptor" in client.err, client)


tap.main()
