"""One side of a comparison: a scratch directory, and programs that are found by their names, those under test or the reference's.

A line is a line of shell, run in that directory. What it did becomes a text without times, pids, paths and uuids, so that the texts
of two sides can be compared. Nothing here knows which differences are meant.
"""

import os
import re
import signal
import subprocess

from harness import programs

LINE_TIMEOUT_S = 60

# What a server logs when its machine is slow or its time has come, so a comparison cannot know it.
TIMED_MODULES = ("coverage", "memory", "poll_loop", "timeval")
TIMED_LINE = re.compile(rf"(?:TIME\|N\|)?(?:{'|'.join(TIMED_MODULES)})(?:\([^)]*\))?\|[A-Z]+\|.*")
# Options that keep it out of the log, where a line of shell counts the log's lines.
NO_TIMED_MODULES = " ".join(f"-v{module}:off" for module in TIMED_MODULES)

# Beginning of every line: an umask as an init script has it, and what lines that start daemons need. A process has gone when its last
# thread is dead, for the first may be a zombie while others still hold locks and sockets.
PRELUDE = """umask 022
gone() { while grep -qs ') [^ZX] ' /proc/$1/task/*/stat; do sleep .02; done; }
titled() { while [ -e /proc/$1/cmdline ] && ! grep -qs "$2" /proc/$1/cmdline; do sleep .02; done; }
until_there() { n=0; until [ -e "$1" ]; do sleep .02; n=$((n + 1)); [ $n -lt 1000 ] || { echo "no $1"; break; }; done; }
until_said() { n=0; until grep -qs "$2" "$1"; do sleep .02; n=$((n + 1)); [ $n -lt 1000 ] || { echo "no $2 in $1"; break; }; done; }
"""

MEANINGLESS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\|\d+\|"), "TIME|N|"),
    (re.compile(r"\(Open vSwitch\) [\d.]+"), "(Open vSwitch) VERSION"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\bpid \d+"), "pid PID"),
    (re.compile(r"\.\d+\.ctl\b"), ".PID.ctl"),
    (re.compile(r"\.tmp\d+\b"), ".tmpPID"),
    (re.compile(r"listening on port \d+"), "listening on port PORT"),
)


class Side:
    """`tested`: the programs under test, otherwise the reference's."""

    def __init__(self, suite, tested, name):
        kind = "test" if tested else "reference"
        self.tested = tested
        # Names of one length, since some texts are cut to a width.
        self.directory = suite.subdirectory(f"{name}/{'ours' if tested else 'ref_'}")
        self.env = programs.environment(self.directory)
        box = programs.toolbox(os.path.join(suite.directory, f"bin-{kind}"), tested)
        self.env["PATH"] = f"{box}:{programs.SYSTEM_PATH}"

    def run(self, line):
        """Output lines, error lines marked by `!`, and the exit status of a line."""
        process = subprocess.Popen(
            ["sh", "-c", PRELUDE + line],
            env=self.env,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=LINE_TIMEOUT_S)
            status = str(process.returncode)
        except subprocess.TimeoutExpired:
            # The whole session of this line: what it left in the background holds the pipes too.
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            status = f"killed after {LINE_TIMEOUT_S} s"
        lines = [f"  {line}" for line in self.normal(out)]
        lines += [f"! {line}" for line in self.normal(err)]
        return [*lines, f"= {status}"]

    def normal(self, text):
        """The lines of `text` without what changes from run to run."""
        text = text.replace(os.path.realpath(self.directory), "$DIR").replace(self.directory, "$DIR")
        for pattern, replacement in MEANINGLESS:
            text = pattern.sub(replacement, text)
        return [line for line in text.splitlines() if not TIMED_LINE.fullmatch(line)]

    def end_daemons(self):
        """Kills what pidfiles of the directory still name, so that a line that failed leaves nothing behind."""
        for name in os.listdir(self.directory):
            if not name.endswith(".pid"):
                continue
            try:
                with open(os.path.join(self.directory, name)) as file:
                    pid = int(file.read())
                if os.readlink(f"/proc/{pid}/cwd").startswith(self.directory) or self._holds(pid):
                    os.kill(pid, signal.SIGKILL)
            except (OSError, ValueError):
                pass

    def _holds(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"OVS_RUNDIR={self.directory}\0".encode() in file.read()
