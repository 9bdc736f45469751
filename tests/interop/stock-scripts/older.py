"""ovs-ctl finds a database of an older schema: it copies the file, compacts and converts it, and serves what was in it."""

import glob
import json
import os

from daemon import Daemon, alive
from harness import programs

OVS_CTL = "/usr/share/openvswitch/scripts/ovs-ctl"


def older_schema(path):
    """The schema of the packages as it might have been before: another version, a column less."""
    with open(programs.VSWITCH_SCHEMA) as file:
        schema = json.load(file)
    schema["version"] = "8.2.0"
    schema["cksum"] = "1 2"
    del schema["tables"]["Open_vSwitch"]["columns"]["dpdk_version"]
    with open(path, "w") as file:
        json.dump(schema, file)


def upgrade(suite, base, env):
    """Start, look, stop."""
    daemon = Daemon(suite, env, f"{base}/run/ovsdb-server.pid", log=f"{base}/log/ovsdb-server.log", sock=f"{base}/run/db.sock")
    works = daemon.works
    database, schema = f"{base}/etc/conf.db", f"{base}/older.ovsschema"
    older_schema(schema)
    works(f"ovsdb-tool create {database} {schema}")
    bridge = '["Open_vSwitch",{"op":"insert","table":"Open_vSwitch","row":{"external_ids":["map",[["kept","yes"]]]}}]'
    works(f"ovsdb-tool transact {database} '{bridge}'", quiet=False)
    try:
        said = works(f"{OVS_CTL} --no-ovs-vswitchd --no-monitor --system-id=one --no-record-hostname --ovsdb-server-priority=10 start", "ovs-ctl start", quiet=False)
        for step in ("Backing up database to ", "Compacting database", "Converting database schema"):
            suite.check(step in said, f"ovs-ctl says: {step.strip()}", said)
        suite.equal(works("ovs-vsctl get Open_vSwitch . external_ids:kept", quiet=False), "yes\n", "what was in it is there")
        suite.equal(works("ovsdb-client get-schema-version", quiet=False), "8.3.1\n", "under the schema of the packages")
        copies = [os.path.basename(path) for path in glob.glob(f"{database}.backup*")]
        suite.equal(copies, ["conf.db.backup8.2.0-1"], "the older file is kept beside it")
        suite.equal(works(f"ovsdb-tool db-version {database}.backup8.2.0-1", quiet=False), "8.2.0\n", "as it was")
        pid = daemon.pid()
        works(f"{OVS_CTL} --no-ovs-vswitchd stop", "ovs-ctl stop", quiet=False)
        suite.check(not alive(pid), "ovs-ctl stop ended the server")
    finally:
        daemon.clean()
