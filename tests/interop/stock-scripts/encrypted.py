"""ovs-ctl and ovn-ctl with certificates of ovs-pki: keys as options of the scripts and as rows, then northd and the command line
tools over `ssl:`.
"""

import os
import re

from daemon import Daemon, alive
from harness import pki, programs

OVS_CTL = "/usr/share/openvswitch/scripts/ovs-ctl"
OVN_CTL = "/usr/share/ovn/scripts/ovn-ctl"


class Keys:
    """Who takes part: servers and clients, each below an authority of its own."""

    def __init__(self, suite):
        made = pki.Pki(suite.subdirectory("pki"))
        self.server, self.client = made.signed("server", "switch"), made.signed("client", "controller")
        self.of_servers, self.of_clients = made.authority("switch"), made.authority("controller")
        self.stranger = made.self_signed("stranger")

    def as_client(self, own=None):
        return " ".join(pki.options(own or self.client, self.of_servers))


def is_under_test(suite, daemon):
    """The script has started the program under test, not the one of the packages."""
    running = os.path.realpath(f"/proc/{daemon.pid()}/exe")
    suite.equal(running, os.path.realpath(programs.under_test("ovsdb-server")), "the script started the program under test")


def bound_port(daemon, command):
    """The port of the only remote in a table, once its status tells."""
    daemon.works(f"for i in $(seq 500); do {command} | grep -q '[0-9]' && break; sleep .02; done")
    return re.sub(r"\D", "", daemon.works(command, quiet=False))


def ovs(suite, base, env):
    """ovs-ctl: start, set-ssl, a manager's port over TLS, restart, stop."""
    keys = Keys(suite)
    daemon = Daemon(suite, env, f"{base}/run/ovsdb-server.pid", log=f"{base}/log/ovsdb-server.log", sock=f"{base}/run/db.sock")
    options = "--no-ovs-vswitchd --no-monitor --system-id=one --no-record-hostname --ovsdb-server-priority=10"
    works = daemon.works
    try:
        works(f"{OVS_CTL} {options} start", "ovs-ctl start", quiet=False)
        is_under_test(suite, daemon)
        works(f"ovs-vsctl --no-wait set-ssl {' '.join(keys.server)} {keys.of_clients}")
        works("ovs-vsctl --no-wait set-manager pssl:0:127.0.0.1")
        port = bound_port(daemon, "ovs-vsctl --if-exists get manager . status:bound_port")
        vsctl = f"ovs-vsctl --no-wait {keys.as_client()} --db=ssl:127.0.0.1:{port}"
        works(f"{vsctl} add-br br0", "ovs-vsctl changes a bridge over TLS")
        works(f"ovs-vsctl --no-wait set-manager pssl:{port}:127.0.0.1")
        before = daemon.pid()
        works(f"{OVS_CTL} {options} restart", "ovs-ctl restart", quiet=False)
        suite.check(daemon.pid() != before and not alive(before), "the server is another one after the restart")
        is_under_test(suite, daemon)
        suite.equal(works(f"{vsctl} -t 20 list-br", quiet=False), "br0\n", "key, port and data are what they were")
        done = daemon.shell(f"ovsdb-client -t 10 {keys.as_client(keys.stranger)} list-dbs ssl:127.0.0.1:{port}")
        suite.check(done.returncode == 1 and not done.stdout, "a stranger is not served", done.stderr)
        last = daemon.pid()
        works(f"{OVS_CTL} --no-ovs-vswitchd stop", "ovs-ctl stop", quiet=False)
        suite.check(not alive(last), "ovs-ctl stop ended the server")
    finally:
        daemon.clean()


def ovn(suite, base, env):
    """ovn-ctl: the northbound server's key by options, the southbound one's by a row; northd and tools over TLS."""
    keys = Keys(suite)
    key, certificate = keys.server
    given = f"--ovn-nb-db-ssl-key={key} --ovn-nb-db-ssl-cert={certificate} --ovn-nb-db-ssl-ca-cert={keys.of_clients}"
    starts = {"nb": given, "sb": ""}
    daemons, ports, targets = {}, {}, {}
    northd = Daemon(suite, env, f"{base}/run/ovn-northd.pid")
    try:
        for db, options in starts.items():
            daemon = Daemon(suite, env, f"{base}/run/ovn{db}_db.pid", ctl=f"{base}/run/ovn{db}_db.ctl", sock=f"{base}/run/ovn{db}_db.sock")
            daemons[db] = daemon
            works = daemon.works
            works(f"{OVN_CTL} {options} start_{db}_ovsdb", f"ovn-ctl start_{db}_ovsdb", quiet=False)
            is_under_test(suite, daemon)
            if not options:
                works(f"ovn-{db}ctl set-ssl {key} {certificate} {keys.of_clients}")
            works(f"ovn-{db}ctl set-connection pssl:0:127.0.0.1")
            ports[db] = bound_port(daemon, f"ovn-{db}ctl --if-exists get connection . status:bound_port")
            targets[db] = f"ssl:127.0.0.1:{ports[db]}"
        works = northd.works
        works(
            f"{OVN_CTL} --ovn-manage-ovsdb=no --ovn-northd-nb-db={targets['nb']} --ovn-northd-sb-db={targets['sb']} --ovn-northd-ssl-key={keys.client[0]}"
            f" --ovn-northd-ssl-cert={keys.client[1]} --ovn-northd-ssl-ca-cert={keys.of_servers} start_northd",
            "ovn-ctl start_northd over TLS", quiet=False,
        )
        nbctl, sbctl = (f"ovn-{db}ctl {keys.as_client()} --db={targets[db]}" for db in ("nb", "sb"))
        works(f"{nbctl} --timeout=60 --wait=sb ls-add sw0 -- lsp-add sw0 p0 -- lsp-set-addresses p0 '00:00:00:00:00:01 10.0.0.1'", "northd has done what ovn-nbctl asked")
        suite.equal(works(f"{sbctl} --bare --columns=logical_port list port_binding", quiet=False), "p0\n", "ovn-sbctl sees what northd wrote")
        suite.check("ls_in_l2_lkup" in works(f"{sbctl} lflow-list sw0", quiet=False), "and its flows")
        for db in starts:
            status = works(f"{OVN_CTL} status_ovn{db}", quiet=False)
            suite.equal(status.strip(), "running/active", f"ovn-ctl status_ovn{db}")
            works(f"ovn-{db}ctl --timeout=60 wait-until connection . is_connected=true", "the connection's row shows that somebody is connected")
        works(f"{OVN_CTL} status_ovsdb", "ovn-ctl status_ovsdb", quiet=False)
        works(f"{OVN_CTL} status_northd", "ovn-ctl status_northd", quiet=False)
        daemon, before = daemons["sb"], daemons["sb"].pid()
        works(f"ovn-sbctl set-connection pssl:{ports['sb']}:127.0.0.1")
        daemon.works(f"{OVN_CTL} restart_sb_ovsdb", "ovn-ctl restart_sb_ovsdb", quiet=False)
        suite.check(daemon.pid() != before, "the southbound server is another one")
        works(f"{nbctl} --timeout=60 --wait=sb lsp-add sw0 p1", "northd has found the southbound server again")
        works(f"{OVN_CTL} --ovn-manage-ovsdb=no stop_northd", "ovn-ctl stop_northd", quiet=False)
        for db, daemon in daemons.items():
            pid = daemon.pid()
            daemon.works(f"{OVN_CTL} stop_{db}_ovsdb", f"ovn-ctl stop_{db}_ovsdb", quiet=False)
            suite.check(not alive(pid), f"which ended the {db} server")
    finally:
        for daemon in (northd, *daemons.values()):
            daemon.clean()
