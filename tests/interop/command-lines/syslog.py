"""The system log: what arrives at a socket in the places where `--syslog-method` and `--syslog-target` send it (docs/spec/cli.md 7.1, 7.2).

Datagrams are compared without times, pids and counters. A server that runs a command sends a few lines and ends. On a slow machine it
tries its remote again before that, so the texts are compared, not how often each comes.
"""

import os
import re
import socket

from side import TIMED_MODULES, Side

# Something to be told: a database that is not there, and a remote that cannot be.
RUN = "ovsdb-server -vconsole:off --no-dbs --remote=bogus:1 --run true"
PLACE = "PLACE"

WAYS = (
    ("unix", f"{RUN} --syslog-method=unix:{PLACE}"),
    ("udp", f"{RUN} --syslog-method=udp:127.0.0.1:{PLACE}"),
    ("udp", f"OVS_SYSLOG_METHOD=udp:127.0.0.1:{PLACE} {RUN}"),
    ("udp", f"{RUN} --syslog-method=null --syslog-target=127.0.0.1:{PLACE}"),
    ("udp", f"{RUN} --syslog-method=udp:127.0.0.1:{PLACE} -vFACILITY:local3 -vsyslog:dbg -vPATTERN:syslog:%c:%p:%m"),
    ("udp", f"{RUN} --syslog-method=udp:127.0.0.1:{PLACE} -vsyslog:warn"),
    ("udp", f"{RUN} --syslog-method=null --syslog-target=127.0.0.1:{PLACE} -vFACILITY:mail"),
)

MEANINGLESS = (
    (re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z"), b"TIME"),
    (re.compile(rb"\w{3} [ \d]\d \d\d:\d\d:\d\d"), b"TIME"),
    (re.compile(rb"ovs\|\d{5}\|"), b"ovs|N|"),
    (re.compile(rb"(ovsdb-server )\d+ "), rb"\1PID "),
    (re.compile(rb"(ovsdb-server)\[\d+\]"), rb"\1[PID]"),
)

DEPENDS_ON_TIME = re.compile(rf"\b({'|'.join(TIMED_MODULES)})\b|waiting \d+ seconds before reconnect".encode())


def received(side, kind, line):
    """The datagrams that a line sends, in order."""
    with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET, socket.SOCK_DGRAM) as listener:
        if kind == "unix":
            place = os.path.join(side.directory, "log")
            if os.path.lexists(place):
                os.unlink(place)
            listener.bind(place)
        else:
            listener.bind(("127.0.0.1", 0))
            place = str(listener.getsockname()[1])
        outcome = side.run(line.replace(PLACE, place))
        listener.settimeout(0)
        found = []
        while True:
            try:
                text = listener.recv(65536)
            except BlockingIOError:
                return outcome[-1:], found
            # Chatter about how programs are made inside is nobody's business.
            if b"DBG" in text or DEPENDS_ON_TIME.search(text):
                continue
            for pattern, replacement in MEANINGLESS:
                text = pattern.sub(replacement, text)
            if text not in found:
                found.append(text)


def compare(suite, name):
    """Runs every way on both sides."""
    ours, theirs = Side(suite, True, name), Side(suite, False, name)
    for number, (kind, line) in enumerate(WAYS):
        got, expected = received(ours, kind, line), received(theirs, kind, line)
        suite.check(len(expected[1]) > 0 or "syslog:warn" in line, f"{name}: way {number}: the reference says something")
        suite.equal(got, expected, f"{name}: {line}")
