"""A suite whose peer is a program of its own that reports findings, one a line: `ok: WHAT` or `FAILED: WHAT`.

The peer may ask for the server to be restarted with the line `RESTART`; it gets a line on standard input when the
server serves again.
"""

import signal
import subprocess
import threading

from . import programs

LIMIT_S = 240


def converse(suite, server, argv, env=None):
    """Runs the peer `argv` to its end and counts its findings."""
    peer = subprocess.Popen(
        argv,
        env=programs.environment(server.directory, {"PYTHONFAULTHANDLER": "1", **(env or {})}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # A peer that hangs is aborted, so that the stacks of its threads are in the output.
    watchdog = threading.Timer(LIMIT_S, peer.send_signal, (signal.SIGABRT,))
    watchdog.start()
    try:
        for line in peer.stdout:
            line = line.rstrip("\n")
            if line == "RESTART":
                server.restart()
                peer.stdin.write("restarted\n")
                peer.stdin.flush()
            elif line.startswith("ok: "):
                suite.check(True, line[4:])
            elif line.startswith("FAILED: "):
                suite.check(False, line[8:])
            else:
                print(f"        {line}", flush=True)
        suite.check(peer.wait(timeout=60) == 0, "the peer ends without an error")
    finally:
        watchdog.cancel()
        if peer.poll() is None:
            peer.kill()
            peer.wait()
