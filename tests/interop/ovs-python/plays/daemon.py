"""Daemons: options, pidfiles and their locks, detaching, monitoring and restarts."""

# differs: debian: same pid in a child: the original returns the pid of the caller
# differs: pypi: same pid in a child: the original returns the pid of the caller
# differs: debian: deleted stale pidfile: ours replaces such a file
# differs: pypi: deleted stale pidfile: ours replaces such a file
# differs: debian: left \[.*tmpPID|^  left \[\]$: the original leaves a temporary file
# differs: pypi: left \[.*tmpPID|^  left \[\]$: the original leaves a temporary file
# differs: debian: ^part early death, detached exit status: the original reports success
# differs: pypi: ^part early death, detached exit status: the original reports success

import argparse
import fcntl
import os
import re
import resource
import select
import signal
import sys
import time

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import ovs.daemon as daemon
import ovs.dirs
import ovs.process
import ovs.util
import ovs.vlog
from transcript import say

BASE = os.getcwd()
ovs.dirs.RUNDIR = BASE
ovs.util.PROGRAM_NAME = "player"
PIDFILE = os.path.join(BASE, "player.pid")
# A core of each process that dies here is of no use.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def trace(*words):
    """Appends a line to the file of this part, which all its processes share."""
    fd = os.open(os.path.join(BASE, "trace"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(fd, (" ".join(str(word) for word in words) + "\n").encode())
    os.close(fd)


def normal(text):
    return re.sub(r"\bpid \d+", "pid PID", re.sub(r"tmp\d+", "tmpPID", text)).replace(BASE, "BASE")


def read(name):
    try:
        with open(os.path.join(BASE, name)) as f:
            return f.read()
    except OSError:
        return ""


def part(title, function, meanwhile=None):
    """Runs a function in a new process and waits until all processes that it makes have ended."""
    sys.stdout.flush()
    alive, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(alive)
        with open(os.path.join(BASE, "output"), "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        ovs.vlog.Vlog.set_level("any", "console", "off")
        ovs.vlog.Vlog.set_level("any", "syslog", "off")
        ovs.vlog.Vlog.init(os.path.join(BASE, "log"))
        ovs.vlog.Vlog.set_pattern("file", "%c %p %m")
        # It stays open in every process of this part.
        os.set_inheritable(held, True)
        status = 0
        try:
            function()
        except SystemExit as e:
            raise
        except Exception as e:
            trace("raises", type(e).__name__, e)
            status = 99
        sys.exit(status)
    os.close(held)
    _, status = os.waitpid(pid, 0)
    if meanwhile:
        meanwhile()
    if not select.select([alive], [], [], 15)[0]:
        say("part", title, "still has processes")
        for line in read("pids").split():
            os.kill(int(line), signal.SIGKILL)
    os.close(alive)
    say("part", title, ovs.process.status_msg(status))
    for name in ("output", "trace", "log"):
        for line in read(name).splitlines():
            say(" ", name, normal(line))
    say(" ", "left", sorted(normal(name) for name in os.listdir(BASE)
                            if re.match(r".*\.pid(\.|$)", name)))
    for name in os.listdir(BASE):
        if name not in ("transcript", "stderr") and os.path.isfile(os.path.join(BASE, name)):
            os.unlink(os.path.join(BASE, name))


def started():
    """Says how this process is placed, and returns the number of the start."""
    with open(os.path.join(BASE, "pids"), "a") as f:
        f.write("%d\n" % os.getpid())
    number = len(read("pids").split())
    trace("start", number, "own session", os.getsid(0) == os.getpid(), "in", os.getcwd(),
          "pidfile", read("player.pid") == "%d\n" % os.getpid(),
          "leads", [os.readlink("/proc/self/fd/%d" % fd) for fd in (0, 1, 2)])
    return number


def setup(*names):
    daemon.set_pidfile(None)
    for name in names:
        getattr(daemon, name)()


def wait_for(name, text):
    for _ in range(1000):
        if text in read(name):
            return
        time.sleep(0.01)
    say("no", text, "in", name)


say("exit code", daemon.RESTART_EXIT_CODE, daemon.get_detach())
say("restart", [s for s in range(1, 65) if daemon._should_restart(s)],
    [s for s in range(256) if daemon._should_restart(s << 8)])
for name in (None, "", "a", "a.pid", "b/c", "/x/y"):
    say("name", name, daemon.make_pidfile_name(name))

parser = argparse.ArgumentParser()
daemon.add_args(parser)
for argv in ([], ["--detach", "--monitor", "--no-chdir", "--overwrite-pidfile"], ["--pidfile"],
             ["--pidfile", "a"], ["--pidfile=/a"]):
    say("options", argv, sorted(vars(parser.parse_args(argv)).items()))


def by_options():
    daemon.handle_args(parser.parse_args(["--pidfile=b.pid", "--detach", "--no-chdir"]))
    trace(daemon.get_detach())
    daemon.daemonize()
    trace(os.path.exists("b.pid"))
    started()


part("options", by_options)


def plain(*names):
    def run():
        setup(*names)
        trace("result", daemon.daemonize_start())
        started()
        trace("result", daemon.daemonize_complete())
        started()
    return run


def at_once():
    setup("set_detach")
    trace(daemon.daemonize())
    started()


part("foreground", plain())
part("detached", plain("set_detach"))
part("detached at once", at_once)
part("detached in place", plain("set_detach", "set_no_chdir"))
part("monitored", plain("set_monitor"))
part("both", plain("set_detach", "set_monitor"))


def early(status, *names):
    def run():
        setup(*names)
        daemon.daemonize_start()
        started()
        if status < 0:
            os.kill(os.getpid(), -status)
        sys.exit(status)
    return run


part("early exit, foreground", early(7))
part("early exit, detached", early(7, "set_detach"))
part("early exit, both", early(7, "set_detach", "set_monitor"))
part("early exit without failure", early(0, "set_detach"))
part("early death, detached", early(-signal.SIGSEGV, "set_detach"))
part("early death, monitored", early(-signal.SIGTERM, "set_monitor"))


def late(first, *names):
    def run():
        setup(*names)
        daemon.daemonize()
        if started() == 1:
            if first < 0:
                os.kill(os.getpid(), -first)
            sys.exit(first)
    return run


for name in ("set_monitor", "set_detach"):
    part("exit 3", late(3, "set_monitor", name))
    part("exit 5", late(5, "set_monitor", name))
    part("segmentation fault", late(-signal.SIGSEGV, "set_monitor", name))
    part("killed", late(-signal.SIGKILL, "set_monitor", name))
part("exit 5 without a monitor", late(5, "set_detach"))


def waiting():
    setup("set_detach", "set_monitor")
    daemon.daemonize()
    trace("waits")
    time.sleep(20)


def terminated():
    wait_for("trace", "waits")
    pid = daemon.read_pidfile(PIDFILE)
    say("pidfile", read("player.pid") == "%d\n" % pid, oct(os.stat(PIDFILE).st_mode))
    os.kill(pid, signal.SIGTERM)


def second(*names):
    def run():
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                setup(*names)
                daemon.daemonize()
                trace("second", read("player.pid") == "%d\n" % os.getpid())
                sys.stdout.flush()
            except SystemExit as e:
                trace("second exits", e.code)
            sys.stderr.flush()
            os._exit(0)
        os.waitpid(child, 0)
    return run


def twice(*names):
    def run():
        setup()
        daemon.daemonize()
        trace("child", "same pid in a child", daemon.read_pidfile(PIDFILE) == os.getpid())
        ended = os.fork()
        if ended == 0:
            trace("same pid in a child", daemon.read_pidfile(PIDFILE) == os.getppid())
            os._exit(0)
        os.waitpid(ended, 0)
        second(*names)()
    return run


part("terminated", waiting, terminated)
part("started twice", twice())
part("started twice, detached", twice("set_detach"))


def stale():
    with open(PIDFILE, "w") as f:
        f.write("1\n")
    plain()()


part("stale", stale)


def elsewhere(name):
    def run():
        daemon.set_pidfile(name)
        daemon.daemonize()
    return run


part("no directory", elsewhere("/nonexistent/a.pid"))


def numbers():
    contents = {"empty": "", "text": "text\n", "number": "12", "line": "12\n", "two": "12\n13\n"}
    for name, text in contents.items():
        with open(name, "w") as f:
            f.write(text)
    trace("missing", daemon.read_pidfile("none"), daemon.read_pidfile(BASE))
    for name in sorted(contents):
        trace(name, daemon.read_pidfile(name))
    locked, write = os.pipe()
    child = os.fork()
    if child == 0:
        files = [open(name, "r+") for name in contents]
        for f in files:
            fcntl.lockf(f, fcntl.LOCK_EX)
        os.write(write, b"x")
        time.sleep(20)
    os.read(locked, 1)
    for name in sorted(contents):
        trace(name, "locked", daemon.read_pidfile(name))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


part("numbers", numbers)
