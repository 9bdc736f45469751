"""How a suite says what came out of it.

Exit status 0: passed. 1: failed, with every failure printed. 77: skipped, with a line that nobody overlooks, because
the peer is not installed on this machine. INTEROP_KEEP=1 keeps the scratch directory of a suite that passed.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

from . import programs

SKIPPED = 77


class Suite:
    """Collects failures; `directory` is a scratch directory that is removed when the suite passed."""

    def __init__(self, name):
        self.name = name
        self.failures = 0
        self.checks = 0
        self.directory = tempfile.mkdtemp(prefix=f"interop-{name}-")

    def subdirectory(self, name):
        path = os.path.join(self.directory, name)
        os.makedirs(path, exist_ok=True)
        return path

    def check(self, holds, what, detail=""):
        self.checks += 1
        if holds:
            print(f"ok      {self.name}: {what}", flush=True)
        else:
            self.failures += 1
            print(f"FAILED  {self.name}: {what}", flush=True)
            if detail:
                print("        " + str(detail).rstrip("\n").replace("\n", "\n        "), flush=True)
        return holds

    def equal(self, got, expected, what):
        return self.check(got == expected, what, f"got:      {got!r}\nexpected: {expected!r}")

    def no_new_complaints(self, server, reference):
        """The server under test may not log at WARN or above what the reference does not log."""
        new = [line for line in server.complaints() if line not in reference.complaints()]
        self.check(not new, f"{server.name}: nothing at WARN or above that the reference does not log", "\n".join(new))


def skip(name, reason):
    print(f"SKIPPED {name}: {reason}", flush=True)
    print(f"******* {name} DID NOT RUN ON THIS MACHINE *******", flush=True)
    sys.exit(SKIPPED)


def require(name, *needed):
    """Skips the suite when one of the reference programs it needs is missing."""
    for program in needed:
        if programs.reference(program) is None:
            skip(name, f"{program} is not installed")


def main(name, body, needed=("ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-appctl")):
    """Runs `body(suite)` and exits with the verdict. An exception is a failure like any other."""
    require(name, *needed)
    # A driver that is told to stop must still end what it started, so the signal becomes an exception.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begin = time.monotonic()
    suite = Suite(name)
    for program, variable in programs.VARIABLES.items():
        if variable in os.environ:
            print(f"        {name}: {program} under test is {programs.under_test(program)}", flush=True)
    try:
        body(suite)
    except Exception:  # noqa: BLE001 - whatever went wrong, the suite failed and says so
        suite.check(False, "ran to its end", traceback.format_exc())
    elapsed = time.monotonic() - begin
    if suite.failures:
        print(f"FAILED  {name}: {suite.failures} of {suite.checks} checks, {elapsed:.1f} s; see {suite.directory}", flush=True)
        sys.exit(1)
    if not os.environ.get("INTEROP_KEEP"):
        shutil.rmtree(suite.directory, ignore_errors=True)
    print(f"PASSED  {name}: {suite.checks} checks, {elapsed:.1f} s", flush=True)
    sys.exit(0)
