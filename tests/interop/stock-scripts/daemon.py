"""A daemonised ovsdb-server as stock scripts see it: a pidfile, /proc, a control socket, a log file."""

import fcntl
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import time

POLL_S = 0.02
PATIENCE_S = 60


class Daemon:
    """What belongs to one start line. `env` finds the programs under test first; directories are the daemon's."""

    def __init__(self, suite, env, pidfile, ctl=None, log=None, sock=None):
        self.suite = suite
        self.env = env
        self.pidfile = pidfile
        self.explicit_ctl = ctl
        self.log = log
        self.sock = sock

    def shell(self, line, cwd="/", timeout_s=60):
        """Runs one line of shell with an umask of 022, as an init script would."""
        return subprocess.run(
            ["sh", "-c", f"umask 022; {line}"], env=self.env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s
        )

    def works(self, line, what=None, quiet=True, **options):
        """Runs a line that must succeed; `quiet` says that it must print nothing, for scripts capture outputs."""
        done = self.shell(line, **options)
        holds = done.returncode == 0 and not (quiet and (done.stdout or done.stderr))
        self.suite.check(holds, what or line.strip(), f"status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def pid(self):
        with open(self.pidfile) as file:
            return int(file.read())

    @property
    def ctl(self):
        return self.explicit_ctl or os.path.join(self.env["OVS_RUNDIR"], f"ovsdb-server.{self.pid()}.ctl")

    def lock_holder(self):
        """Who holds the POSIX lock of the pidfile, as F_GETLK tells it; 0 for nobody."""
        with open(self.pidfile, "r+") as file:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, holder = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))
        return 0 if kind == fcntl.F_UNLCK else holder

    def running(self, cwd="/", monitored=False):
        """The checks of both script libraries, made the moment the start line returned."""
        check = self.suite.check
        pid = self.pid()
        with open(f"/proc/{pid}/comm") as file:
            comm = file.read().strip()
        check(comm == "ovsdb-server", "the pidfile's process is called ovsdb-server", comm)
        check(self.lock_holder() == pid, "that process holds the lock of the pidfile", f"{self.lock_holder()} != {pid}")
        check(stat.S_IMODE(os.stat(self.pidfile).st_mode) == 0o644, "mode of the pidfile", oct(os.stat(self.pidfile).st_mode))
        client = socket.socket(socket.AF_UNIX)
        client.connect(self.sock)
        client.close()
        check(stat.S_IMODE(os.stat(self.sock).st_mode) == 0o750, "mode of the database socket", oct(os.stat(self.sock).st_mode))
        check(os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(cwd), f"working directory is {cwd}", os.readlink(f"/proc/{pid}/cwd"))
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)]
        check(files == ["/dev/null"] * 3, "standard files are /dev/null", files)
        version = self.works(f"ovs-appctl -T {PATIENCE_S} -t {self.ctl} version | awk 'NR==1{{print $NF}}'", "version is asked", quiet=False).strip()
        check(re.fullmatch(r"\d+(\.\d+)+", version) and tuple(map(int, version.split("."))) >= (2, 5, 90), "version is at least 2.5.90", version)
        with open(f"/proc/{pid}/stat") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        if monitored:
            with open(f"/proc/{parent}/comm") as file:
                supervisor = file.read().strip()
            with open(f"/proc/{parent}/cmdline") as file:
                title = file.read().replace("\0", " ").strip()
            check(supervisor == "monitor" and title == f"ovsdb-server: monitoring pid {pid} (healthy)", "its parent is the supervisor", title)
        with open(self.log) as file:
            first = file.readline()
        check(first.rstrip("\n").endswith(f"|vlog|INFO|opened log file {self.log}"), "the log file begins as expected", first)
        check(stat.S_IMODE(os.stat(self.log).st_mode) == 0o640, "mode of the log file", oct(os.stat(self.log).st_mode))
        return pid, parent

    def rotate(self):
        """What logrotate does."""
        os.rename(self.log, self.log + ".1")
        self.works(f"ovs-appctl -t {self.ctl} vlog/reopen")
        with open(self.log) as file:
            self.suite.check("|vlog|INFO|opened log file" in file.readline(), "a new log file after rotation")
        with open(self.log + ".1") as file:
            self.suite.check("|vlog|INFO|closing log file" in file.read(), "the old log file is closed")

    def gone(self, pid, what):
        """Waits until process `pid` ended, whether or not somebody reaped it."""
        deadline = time.monotonic() + PATIENCE_S
        while alive(pid):
            if time.monotonic() > deadline:
                return self.suite.check(False, what, f"pid {pid} still runs after {PATIENCE_S} s")
            time.sleep(POLL_S)
        return self.suite.check(True, what)

    def stop(self, parent=None):
        """The stop sequence of both script libraries, its first step, which must do; they wait a second for it, a test longer."""
        pid, ctl = self.pid(), self.ctl
        self.works(f"ovs-appctl -T {PATIENCE_S} -t {ctl} exit")
        self.gone(pid, "the server ends on exit")
        if parent:
            self.gone(parent, "so does its supervisor")
        for path in (self.pidfile, ctl, self.sock):
            self.suite.check(not os.path.lexists(path), f"{os.path.basename(path)} is removed")

    def terminate(self):
        """The second step: SIGTERM."""
        pid, ctl = self.pid(), self.ctl
        os.kill(pid, signal.SIGTERM)
        self.gone(pid, "the server ends on SIGTERM")
        for path in (self.pidfile, ctl, self.sock):
            self.suite.check(not os.path.lexists(path), f"{os.path.basename(path)} is removed")

    def clean(self):
        """Kills what a failed check left running."""
        for path in (self.pidfile,):
            try:
                os.kill(self.pid(), signal.SIGKILL)
            except (OSError, ValueError):
                pass


def alive(pid):
    """Whether a thread of process `pid` still runs, its dead not reaped left out.

    The first thread of a killed process is a zombie while others still end, and only with the last do its locks and sockets go.
    """
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(_runs(f"/proc/{pid}/task/{task}/stat") for task in tasks)


def _runs(stat_file):
    try:
        with open(stat_file) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False
