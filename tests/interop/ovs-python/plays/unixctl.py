"""Control commands: registry, server, client, and both programs ovs-appctl."""

# needs: server inventory-1
# differs: debian: list-commands: ours has this command, which every daemon in C has
# differs: pypi: list-commands: ours has this command, which every daemon in C has
# differs: debian: ^json: formats of replies are newer
# differs: debian: set-options: formats of replies are newer
# differs: pypi: set-options takes: the message about its arguments is ours

import atexit
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import ovs.daemon
import ovs.dirs
import ovs.poller
import ovs.unixctl
import ovs.unixctl.client
import ovs.unixctl.server
import ovs.version
import ovs.vlog
from transcript import say

sys.stderr = sys.stdout
ovs.dirs.RUNDIR = os.getcwd()
SOCKET = os.path.join(os.getcwd(), "play.ctl")


class Conn(object):
    def reply(self, body):
        for line in body.split("\n"):
            say("  reply", repr(line))


def attempt(function, *args):
    try:
        return repr(function(*args))
    except Exception as e:
        return "raises %s" % type(e).__name__


def echo(conn, argv, aux):
    conn.reply("|".join(argv) + (aux or ""))


say("registry", sorted(set(ovs.unixctl.commands) - {"list-commands"}))
for args in ((5, "", 0, 0, echo, None), ("a", 5, 0, 0, echo, None), ("a", "", "0", 0, echo, None),
             ("a", "", 0, None, echo, None), ("a", "", 0, 0, 5, None),
             ("echo", "[arg]...", 0, 9, echo, None), ("echo", "", 1, 1, echo, "other"),
             ("aux", "", 0, 0, echo, "the aux"), ("two", "one two", 2, 3, echo, None),
             ("a-command-with-a-long-name-here", "arg", 0, 0, echo, None)):
    say("register", args[:4], attempt(ovs.unixctl.command_register, *args))
command = ovs.unixctl.commands["echo"]
say(command.usage, command.min_args, command.max_args, command.aux, command.callback is echo)
ovs.unixctl.commands["help"].callback(Conn(), [], None)

for name, text in (("stale", "12\n"), ("empty", ""), ("junk", "text\n")):
    with open(name + ".pid", "w") as f:
        f.write(text)
child = os.fork()
if child == 0:
    with open("live.pid", "w") as f:
        f.write("%d\n" % os.getpid())
        f.flush()
        fcntl.lockf(f, fcntl.LOCK_EX)
        open("locked", "w").close()
        time.sleep(60)
    os._exit(0)
while not os.path.exists("locked"):
    time.sleep(0.01)
for target in ("/a/b", "stale", "empty", "junk", "none", "a/b", "", "live"):
    say("target", target, str(ovs.unixctl.socket_name_from_target(target)).replace(str(child), "PID"))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)

for path in ("/nonexistent/a.ctl", SOCKET, "relative.ctl", None):
    error, server = ovs.unixctl.server.UnixctlServer.create(path)
    say("create", path and path.replace(os.getcwd(), "DIR"), error, type(server).__name__,
        sorted(n.replace(str(os.getpid()), "PID") for n in os.listdir(".") if n.endswith(".ctl")
               and n != "db.ctl"))
    if server:
        server.run()
        server.wait(ovs.poller.Poller())
        server.close()
say("create", attempt(ovs.unixctl.server.UnixctlServer.create, 5),
    [n for n in os.listdir(".") if n.endswith(".ctl") and n != "db.ctl"])

running = True
kept = []


def stop(conn, argv, aux):
    global running
    running = False
    conn.reply(None)


def fail(conn, argv, aux):
    conn.reply_error(argv[0] if argv else None)


def later(conn, argv, aux):
    kept.append(conn)


def now(conn, argv, aux):
    for other in kept:
        other.reply("at last")
    del kept[:]
    conn.reply("done")


def value(conn, argv, aux):
    if hasattr(conn, "reply_json"):
        conn.reply_json({"a": [1, True]})
    else:
        conn.reply("")


def serve():
    for name, callback in (("exit", stop), ("fail", fail), ("later", later), ("now", now),
                           ("value", value)):
        ovs.unixctl.command_register(name, "", 0, 1, callback, None)
    ovs.vlog.Vlog.init()
    ovs.vlog.Vlog.set_level("any", "any", "off")
    error, server = ovs.unixctl.server.UnixctlServer.create(SOCKET, "9.9")
    while running:
        server.run()
        poller = ovs.poller.Poller()
        server.wait(poller)
        if running:
            poller.block()
    server.run()
    server.close()


def in_child(function):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException as e:
            say("server", type(e).__name__, e)
        sys.stdout.flush()
        os._exit(0)
    return pid


def connected():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(SOCKET)
    return s


def end(server_pid):
    """Ends the server when the play fails before the server's exit."""
    try:
        if os.waitpid(server_pid, os.WNOHANG)[0] == 0:
            os.kill(server_pid, signal.SIGKILL)
            os.waitpid(server_pid, 0)
    except ChildProcessError:
        pass


pid = in_child(serve)
atexit.register(end, pid)
while True:
    try:
        connected().close()
        break
    except OSError:
        time.sleep(0.01)

error, client = ovs.unixctl.client.UnixctlClient.create(SOCKET)
say("client", error, type(client).__name__)
for name, argv in (("version", []), ("echo", []), ("echo", ["a", "b c", "\u00e9", ""]), ("aux", []),
                   ("two", ["1"]), ("two", ["1", "2"]), ("two", ["1", "2", "3", "4"]), ("none", []),
                   ("version", ["x"]), ("fail", []), ("fail", ["text"]), ("fail", ["line\n"]),
                   ("vlog/set", ["none"]), ("vlog/set", []), ("vlog/reopen", [])):
    error, text, result = client.transact(name, argv)
    say("transact", name, ascii(argv), error, repr(text and text.rstrip("\n")),
        ascii(result and result.rstrip("\n").replace(ovs.version.VERSION, "VERSION")))
for line in client.transact("help", [])[2].rstrip("\n").split("\n"):
    say("help", repr(line))
for args in ((5, []), ("x", None), ("x", "text"), ("x", [5])):
    say("transact", attempt(client.transact, *args))
client.close()
say("client", ovs.unixctl.client.UnixctlClient.create("/nonexistent/a"),
    attempt(ovs.unixctl.client.UnixctlClient.create, None))


def raw(prefix, *requests):
    """Sends requests over one connection and prints the answers; None is the end."""
    s = connected()
    for request in requests:
        s.sendall((request if isinstance(request, str) else json.dumps(request)).encode())
        answers = s.recv(65536).decode()
        say(prefix, request, repr(answers.replace("\\n\"", "\"")))
        if not answers:
            break
    s.close()


def request(method, *params):
    return {"id": 1, "method": method, "params": list(params)}


raw("raw", request("echo", "a"), {"id": "x", "method": "echo", "params": ["b"]},
    request("echo", 5), request("echo", None), request("two", ["1"], "2"))
for odd in ({"id": None, "method": "echo", "params": []}, {"id": 1, "result": 1, "error": None},
            {"odd": 1}, {"id": 1, "method": "echo", "params": "x"}, []):
    raw("raw", odd)
raw("json", request("set-options", "--format", "json"), request("echo", "a"), request("fail", "b"),
    request("value"), request("none"), request("set-options", "--format=text"), request("echo", "c"),
    request("value"), request("set-options"), request("set-options", "a", "b", "c"),
    request("set-options", "--format", "JSON"))

first, second = connected(), connected()
first.sendall((json.dumps(request("later")) + json.dumps(request("echo", "next"))).encode())
time.sleep(0.1)
second.sendall(json.dumps(request("now")).encode())
received = second.recv(1000)
while received.count(b"id") < 3:
    received += first.recv(1000)
say("later", received.replace(b"\\n", b"").decode())
first.sendall(json.dumps(request("later")).encode())
time.sleep(0.1)
first.close()
second.sendall(json.dumps(request("now")).encode())
say("gone", second.recv(1000).replace(b"\\n", b"").decode())
second.close()

for program in (shutil.which("ovs-appctl"), os.environ["PLAY_APPCTL"]):
    for words in (["version"], ["echo", "a", "b"], ["help"], ["none"], ["fail", "x"], ["two"],
                  ["vlog/list"], ["vlog/set", "any:off"]):
        done = subprocess.run([program, "-t", SOCKET] + words, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        say("appctl", words, done.returncode, bool(done.stderr))
        for line in done.stdout.rstrip("\n").replace(ovs.version.VERSION, "VERSION").split("\n"):
            if "info" not in line and "off" not in line:
                say("appctl", repr(line))

error, client = ovs.unixctl.client.UnixctlClient.create(SOCKET)
say("exit", client.transact("exit", []))
os.waitpid(pid, 0)
say("gone", client.transact("echo", [])[1:], os.path.exists(SOCKET))

error, client = ovs.unixctl.client.UnixctlClient.create(
    os.path.join(os.path.dirname(sys.argv[1]), "db.ctl"))
for name, argv in (("version", []), ("none", []), ("ovsdb-server/list-dbs", []),
                   ("ovsdb-server/list-remotes", []), ("vlog/set", ["any:file:info"]), ("help", ["x"])):
    say("server", name, client.transact(name, argv))
client.close()
