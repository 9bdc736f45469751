"""ovn-ctl with a northbound server that follows another one over `ssl:`: started as a backup, promoted, the old one demoted, as Pacemaker's agent
does it. One server is under test, the other the reference's, and each of them follows the other in its turn.
"""

import os
import re
import time

from daemon import Daemon, alive
from encrypted import OVN_CTL, Keys, bound_port, is_under_test
from harness import programs

POLL_S = 0.02


class Node:
    """A northbound server in a scratch file system of its own, started by ovn-ctl."""

    def __init__(self, suite, keys, base, env, is_reference):
        env = dict(env)
        for kind in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"):
            folder = f"{base}/{kind.lower()}"
            os.makedirs(folder)
            env.update({f"OVS_{kind}": folder, f"OVN_{kind}": folder})
        if is_reference:
            env["PATH"] = programs.SYSTEM_PATH
        run = env["OVN_RUNDIR"]
        self.suite = suite
        self.is_reference = is_reference
        self.daemon = Daemon(suite, env, f"{run}/ovnnb_db.pid", ctl=f"{run}/ovnnb_db.ctl", sock=f"{run}/ovnnb_db.sock")
        self.port = None
        key, certificate = keys.server
        # Both ways over TLS: a server shows the same certificate to whom it follows, so one authority signs for both.
        self.keys = f"--ovn-nb-db-ssl-key={key} --ovn-nb-db-ssl-cert={certificate} --ovn-nb-db-ssl-ca-cert={keys.of_servers}"

    def ctl(self, words, options=""):
        return self.daemon.works(f"{OVN_CTL} {self.keys} {options} {words}", f"ovn-ctl {words}", quiet=False)

    def start(self, options=""):
        self.ctl("start_nb_ovsdb", options)
        if not self.is_reference:
            is_under_test(self.suite, self.daemon)

    def nbctl(self, words):
        return self.daemon.works(f"ovn-nbctl --no-leader-only {words}", f"ovn-nbctl {words}", quiet=False)

    def status(self):
        return self.ctl("status_ovnnb").strip()

    def waits_for(self, what, is_so, patience_s=60):
        deadline = time.monotonic() + patience_s
        while not is_so() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.suite.check(is_so(), what)

    def has(self, switches):
        listed = self.daemon.shell("ovn-nbctl --no-leader-only --bare --columns=name list logical_switch").stdout
        return set(listed.split()) == switches


def following(node):
    return f"--db-nb-sync-from-proto=ssl --db-nb-sync-from-addr=127.0.0.1 --db-nb-sync-from-port={node.port}"


def own_port(node):
    """Where it listens; the row's status may still be the copy of another server's."""
    log = f"{node.daemon.env['OVN_LOGDIR']}/ovsdb-server-nb.log"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(log) as file:
            found = re.findall(r"0:127\.0\.0\.1: listening on port (\d+)", file.read())
        told = re.sub(r"\D", "", node.daemon.shell("ovn-nbctl --no-leader-only --if-exists get connection . status:bound_port").stdout)
        if told and told in found:
            return told
        time.sleep(POLL_S)
    node.suite.check(False, "the new active server tells where it listens")
    return None


def ovn(suite, base, env):
    keys = Keys(suite)
    one, other = (Node(suite, keys, f"{base}/{name}", env, name == "reference") for name in ("reference", "ours"))
    try:
        one.start()
        one.nbctl("set-connection pssl:0:127.0.0.1")
        one.port = bound_port(one.daemon, "ovn-nbctl --if-exists get connection . status:bound_port")
        one.nbctl("ls-add before")
        suite.equal(one.status(), "running/active", "who follows nobody is active")

        other.start(following(one))
        suite.equal(other.status(), "running/backup", "who follows is a backup")
        other.waits_for("the backup has what was there", lambda: other.has({"before"}))
        one.nbctl("ls-add meanwhile")
        other.waits_for("the backup is told", lambda: other.has({"before", "meanwhile"}))
        refused = other.daemon.shell("ovn-nbctl --no-leader-only ls-add refused")
        suite.check("insert operation not allowed when database server is in read only mode" in refused.stderr, "a backup is written by nobody", refused.stderr)
        other.ctl("promote_ovnnb")
        suite.equal(other.status(), "running/active", "who is promoted is active")
        other.nbctl("ls-add promoted")
        other.nbctl("set-connection pssl:0:127.0.0.1")
        other.port = own_port(other)
        one.nbctl("ls-add lost")
        one.ctl("demote_ovnnb", following(other))
        suite.equal(one.status(), "running/backup", "who is demoted is a backup")
        one.waits_for("the old one has what the new one has", lambda: one.has({"before", "meanwhile", "promoted"}))
        one.ctl("promote_ovnnb")
        one.nbctl("ls-add again")
        one.port = own_port(one)
        other.ctl("demote_ovnnb", following(one))
        other.waits_for("and the other way round", lambda: other.has({"before", "meanwhile", "promoted", "again"}))
        for node in (one, other):
            pid = node.daemon.pid()
            node.ctl("stop_nb_ovsdb")
            suite.check(not alive(pid), "ovn-ctl stop_nb_ovsdb ended the server")
    finally:
        for node in (one, other):
            node.daemon.clean()
