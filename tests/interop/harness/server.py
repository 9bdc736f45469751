"""One ovsdb-server process in a directory of its own.

Started in the foreground and killed by pid, so that nothing outlives a suite. Readiness is an accepted connection, a
port chosen by the kernel is read from the log, as scripts do.
"""

import os
import re
import subprocess
import time

from . import programs
from .connection import Connection, wait_for_socket

# Lines at WARN that say what a peer or the machine did, not what the server did wrong.
HARMLESS = re.compile(
    r"reset by peer|[Bb]roken pipe|not connected|Unreasonably long|faults:|disk:|context switches:|Dropped \d+ log"
    r"|terminating with signal|excessive sending backlog"
)


class Server:
    """`databases` are paths of existing files; use `create` to make one from a schema."""

    def __init__(self, binary, directory, databases, *, name="db", tcp=False, options=()):
        self.binary = binary
        self.directory = directory
        self.databases = list(databases)
        self.name = name
        self.tcp = tcp
        self.options = list(options)
        self.sock = os.path.join(directory, f"{name}.sock")
        self.ctl = os.path.join(directory, f"{name}.ctl")
        self.log = os.path.join(directory, f"{name}.log")
        self.pidfile = os.path.join(directory, f"{name}.pid")
        self.process = None
        self.port = None

    def start(self):
        argv = [self.binary, "-vconsole:off", "-vfile:info", f"--log-file={self.log}", f"--pidfile={self.pidfile}"]
        argv += [f"--unixctl={self.ctl}", f"--remote=punix:{self.sock}"]
        if self.tcp:
            argv.append(f"--remote=ptcp:{self.port or 0}:127.0.0.1")
        argv += self.options + self.databases
        with open(os.path.join(self.directory, f"{self.name}.stderr"), "ab") as stderr:
            self.process = subprocess.Popen(
                argv,
                env=programs.environment(self.directory),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                cwd=self.directory,
                start_new_session=True,
            )
        try:
            # The reference opens its control socket last.
            for socket in (self.sock, self.ctl):
                wait_for_socket(socket, self.process)
            if self.tcp and self.port is None:
                self.port = self._port_from_log()
        except RuntimeError as error:
            self.kill()
            with open(os.path.join(self.directory, f"{self.name}.stderr"), errors="replace") as stderr:
                raise RuntimeError(f"{' '.join(argv)}: {error}\n{stderr.read()}") from error
        return self

    def _port_from_log(self, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with open(self.log, errors="replace") as log:
                found = re.search(r"\|socket_util\|INFO\|0:127\.0\.0\.1: listening on port (\d+)", log.read())
            if found:
                return int(found.group(1))
            time.sleep(0.02)
        raise RuntimeError("no 'listening on port' line in the log")

    def ended(self):
        """True when the process is not running."""
        return self.process is None or self.process.poll() is not None

    def connect(self):
        return Connection(self.sock)

    def appctl(self, *command, timeout_s=30):
        """Runs the reference control client on this server; returns the finished process."""
        return subprocess.run(
            [programs.reference("ovs-appctl"), "-t", self.ctl, *command],
            env=programs.environment(self.directory),
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def stop(self):
        """Asks the server to exit and waits; kills it when it does not. Returns its exit status."""
        if self.process is None or self.process.poll() is not None:
            return self.process and self.process.returncode
        try:
            self.appctl("exit")
            self.process.wait(timeout=60)
        except (subprocess.TimeoutExpired, OSError):
            self.kill()
        return self.process.returncode

    def kill(self):
        """SIGKILL, as a crash would end it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def restart(self, crash=False):
        self.kill() if crash else self.stop()
        return self.start()

    def complaints(self):
        """The log lines at WARN or above, without time and counter, harmless ones left out, each once."""
        lines = set()
        if os.path.exists(self.log):
            with open(self.log, errors="replace") as log:
                for line in log:
                    fields = line.rstrip("\n").split("|", 4)
                    if len(fields) == 5 and fields[3] in ("WARN", "ERR", "EMER") and not HARMLESS.search(line):
                        text = re.sub(r"unix#\d+", "unix#N", "|".join(fields[2:]))
                        lines.add(text.replace(self.directory, "$DIR"))
        return sorted(lines)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        self.kill()


def create(path, schema, tool=None):
    """Makes the database file `path` from `schema`, with the reference tool unless `tool` is given."""
    subprocess.run(
        [tool or programs.reference("ovsdb-tool"), "create", path, schema],
        env=programs.environment(os.path.dirname(path)),
        check=True,
        timeout=60,
    )
    return path
