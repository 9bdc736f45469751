"""The plays of `commands` on each library and each server, their transcripts compared.

The measure is the original `ovs` on the reference's server. Beside it stand the original on the server under test, and,
when OVS_UNDER_TEST names the folders of another `ovs` (a value for PYTHONPATH), that one on both servers.
"""

import difflib
import json
import os
import re
import signal
import subprocess
import threading

from differences import EXPECTED
from harness import programs
from harness.server import Server, create
from schemas import all_schemas

DIFF_LINES_MAX = 60
TIMEOUT_S = 120


class Side:
    """One library on one server, both in processes of their own."""

    def __init__(self, suite, library, server, python, perform):
        self.name = f"{library} library, {server} server"
        self.library = library
        self.directory = suite.subdirectory(f"plays-{library}-{server}")
        self.transcript = os.path.join(self.directory, "transcript")
        binary = programs.under_test("ovsdb-server") if server == "tested" else programs.reference("ovsdb-server")
        files = []
        for name, schema in all_schemas().items():
            path = os.path.join(self.directory, f"{name}.ovsschema")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(schema, file)
            files.append(create(os.path.join(self.directory, f"{name}.db"), path))
        self.server = Server(binary, self.directory, files)
        self.argv = [python, perform, self.transcript]
        self.peer = None
        self.output = ""
        self.status = None

    def run(self):
        with self.server as server:
            with server.connect() as connection:
                # As `ovs-vsctl init` does. No ovs-vswitchd runs, so every configuration counts as applied beforehand.
                connection.transact("Open_vSwitch", {"op": "insert", "table": "Open_vSwitch", "row": {"cur_cfg": 1 << 40}})
            # The stacks of a peer that is aborted because it hangs are in its output.
            extra = {"PYTHONFAULTHANDLER": "1"}
            if self.library == "tested":
                extra["PYTHONPATH"] = os.environ["OVS_UNDER_TEST"]
            env = programs.environment(self.directory, extra)
            if self.library != "tested":
                env.pop("PYTHONPATH", None)
            self.peer = peer = subprocess.Popen(
                [*self.argv, f"unix:{server.sock}", server.sock],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            watchdog = threading.Timer(TIMEOUT_S, peer.send_signal, (signal.SIGABRT,))
            watchdog.start()
            try:
                for line in peer.stdout:
                    if line.strip() == "RESTART":
                        server.restart()
                        peer.stdin.write("restarted\n")
                        peer.stdin.flush()
                    else:
                        self.output += line
                self.status = peer.wait()
            finally:
                watchdog.cancel()
                peer.kill()
                peer.wait()

    def end(self):
        if self.peer is not None and self.peer.poll() is None:
            self.peer.kill()
        self.server.kill()

    def lines(self):
        with open(self.transcript, encoding="utf-8") as file:
            return file.read().splitlines()


def without_expected(lines):
    """`lines` with every expected difference brought to one form."""
    out = []
    for line in lines:
        for pattern, form, _ in EXPECTED:
            line = re.sub(pattern, form, line)
        # Coverage is counted from calls and refusals, which are compared themselves.
        if line and not line.startswith("COVERED "):
            out.append(line)
    return out


def stale_differences(sides):
    """Patterns that match the same in the transcripts of all sides, so that they hide nothing and are not needed."""
    texts = ["\n".join(side.lines()) for side in sides]
    stale = []
    for pattern, _, reason in EXPECTED:
        found = [[match.group(0) for match in re.finditer(pattern, text, re.MULTILINE)] for text in texts]
        if all(matches == found[0] for matches in found):
            stale.append(f"{pattern}: {reason}")
    return stale


def shortened_diff(measure, tested):
    diff = list(difflib.unified_diff(measure, tested, "measure", "tested", n=3, lineterm=""))
    shown = [line if len(line) < 400 else line[:400] + " ..." for line in diff[:DIFF_LINES_MAX]]
    if len(diff) > DIFF_LINES_MAX:
        shown.append(f"... and {len(diff) - DIFF_LINES_MAX} lines more")
    return "\n".join(shown)


def compare(suite, python, perform):
    libraries = ["original"] + (["tested"] if os.environ.get("OVS_UNDER_TEST") else [])
    sides = [Side(suite, library, server, python, perform) for server in ("reference", "tested") for library in libraries]
    # Most of the time passes in waits for connections, so the sides run side by side.
    threads = [threading.Thread(target=side.run) for side in sides]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        # When the suite is told to stop, the threads end with their processes.
        for side in sides:
            side.end()
    measure = sides[0].lines()
    calls = sum(line.startswith("> ") for line in measure)
    for side in sides:
        suite.check(side.status == 0, f"{side.name}: the plays end", side.output)
    for line in measure:
        if line.startswith("COVERED "):
            print(f"        {line}", flush=True)
    gaps = [line for line in measure if line.startswith("GAP ")]
    suite.check(not gaps, "every method of every API is played", "\n".join(gaps))
    stale = [line for line in measure if line.strip().startswith(("REPLICA DIFFERS", "TIMEOUT", "BROKE OFF"))]
    suite.check(not stale, "the replica of the measure equals its server", "\n".join(stale))
    expected = without_expected(measure)
    for side in sides[1:]:
        got = without_expected(side.lines())
        suite.check(got == expected, f"{side.name}: {calls} calls and {len(measure)} lines as the original library on the reference's server", shortened_diff(expected, got))
    if "tested" in libraries and sides[0].server.binary != sides[-1].server.binary:
        suite.check(not (unneeded := stale_differences(sides)), "every expected difference is there", "\n".join(unneeded))
    for side in sides:
        if side.server.binary != programs.reference("ovsdb-server"):
            complaints = [line for line in side.server.complaints() if line not in sides[0].server.complaints()]
            suite.check(not complaints, f"{side.name}: nothing at WARN or above that the reference does not log", "\n".join(complaints))
