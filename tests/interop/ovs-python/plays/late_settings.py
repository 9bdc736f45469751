"""What programs do before a replica can work: modules reached through others, remotes and files for TLS that are not usable yet."""
# needs: server inventory-1.ovsschema

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
import ovs.reconnect  # noqa: E402
from idl_transcript import say  # noqa: E402

# A program that imports the module on the left uses the others through it.
REACHED = {
    "daemon": "dirs fatal_signal poller process socket_util timeval util vlog",
    "db.custom_index": "db.data",
    "db.data": "db.error db.parser db.types json jsonrpc ovsuuid poller socket_util util",
    "db.error": "json",
    "db.idl": "db.custom_index db.data db.error db.parser db.schema json jsonrpc ovsuuid poller reconnect stream timeval vlog",
    "db.schema": "db.error db.parser db.types json ovsuuid util",
    "db.types": "db.data db.error db.parser ovsuuid util",
    "jsonrpc": "json poller reconnect stream timeval util vlog",
    "ovsuuid": "db.error db.parser",
    "unixctl": "util",
}


def reach(module, others):
    names = ["ovs." + other for other in others.split()]
    program = "import ovs.%s; print(*[name for name in %r if not eval('hasattr(%%s, %%r)' %% tuple(name.rsplit('.', 1)))])" % (module, names)
    return subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True).stdout.strip()


def make(remote, runs):
    helper = ovs.db.idl.SchemaHelper(schema_json=SCHEMA)
    helper.register_columns("Site", ["name"])
    idl = ovs.db.idl.Idl(remote, helper)
    for _ in range(runs):
        idl.run()
    named = idl.has_ever_connected()
    idl.close()
    return named


def silence():
    reconnect = ovs.reconnect.Reconnect(0)
    reconnect.enable(0)
    reconnect.run(0)
    reconnect.connecting(0)
    reconnect.connected(0)
    reconnect.receive_attempted(None)
    return [(reconnect.timeout(now), reconnect.run(now)) for now in (0, 5000, 6000)]


SCHEMA = {"name": "Inventory", "version": "1.0.0", "tables": {"Site": {"columns": {"name": {"type": "string"}}, "isRoot": True}}}


def main():
    for module, others in REACHED.items():
        say("not reached through", module, reach(module, others))
    for value in (5, None, "text"):
        say("no row", ovs.db.idl._row_to_uuid(value))
    # A run without files for TLS is an exception in the original, and one that nobody connects to waits.
    for remote, runs in (("remote", 3), ("ssl:127.0.0.1:1", 0), ("ptcp:127.0.0.1:0", 0)):
        say(remote, make(remote, runs))
    say("a program that looked for input", silence())


main()
