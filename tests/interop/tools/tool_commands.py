"""Every standalone command of ovsdb-tool and ovs-appctl, with its mistakes, for a transcript session."""

import re

import commands
from harness.canonical import UUID
from harness.transcript import sorted_tree

SCHEMAS = commands.SCHEMAS
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+")
VERSION = re.compile(r"(by ovsdb-tool) [\d.]+")
SHORT_UUID = re.compile(r"\b[0-9a-f]{8}\b")


def log_lines(text):
    """show-log without times and uuids, rows and columns of a record sorted, since they come in hash order."""
    text = SHORT_UUID.sub("UUID8", UUID.sub("UUID", VERSION.sub(r"\1 VERSION", TIME.sub("TIME", text))))
    return "\n\n".join(sorted_tree(record) for record in re.split(r"(?m)^(?=record \d)", text))


def nothing(_):
    """For text that is free: only the exit status counts."""
    return ""


def files(s):
    one, two, narrow = (f"{SCHEMAS}/inventory-{n}.ovsschema" for n in ("1", "2", "narrow"))
    s.run(f"ovsdb-tool create a.db {one}")
    s.run("cat a.db", "json", out=lambda text: text.split("\n", 1)[-1])
    s.run(f"ovsdb-tool create a.db {one}")
    s.run("ovsdb-tool create b.db nosuch.ovsschema")
    s.run(["sh", "-c", "echo '{\"name\":\"x\",' > broken; ovsdb-tool create b.db broken; echo '{\"name\":\"x\"}' > broken; ovsdb-tool create b.db broken"])
    s.run(f"ovsdb-tool create nodir/b.db {one}")
    for command in ("db-name", "db-version", "db-cksum"):
        s.run(f"ovsdb-tool {command} a.db")
        s.run(f"ovsdb-tool {command} nosuch.db")
        s.run(f"ovsdb-tool {command} {one}")
    for command in ("schema-name", "schema-version", "schema-cksum"):
        s.run(f"ovsdb-tool {command} {one}")
        s.run(f"ovsdb-tool {command} /usr/share/ovn/ovn-nb.ovsschema")
        s.run(f"ovsdb-tool {command}")
        s.run(f"ovsdb-tool {command} nosuch")
        s.run(f"ovsdb-tool {command} a.db")
    for a, op, b in (("1.2.3", "<", "1.2.4"), ("1.2.3", "==", "1.2.3"), ("1.10.0", ">", "1.9.9"), ("1.2.3", "!=", "1.2.3"),
                     ("2.0.0", "<=", "1.0.0"), ("2.0.0", ">=", "1.0.0"), ("1.2", "<", "1.2.3"), ("a", "<", "b"), ("1.2.3", "=", "1.2.3")):
        s.run(["ovsdb-tool", "compare-versions", a, op, b])
    s.run(f"ovsdb-tool needs-conversion a.db {one}")
    s.run(f"ovsdb-tool needs-conversion a.db {two}")
    s.run("ovsdb-tool needs-conversion a.db nosuch")
    s.run(f"ovsdb-tool needs-conversion nosuch {one}")
    transact = lambda *operations: s.run(["ovsdb-tool", "transact", "a.db", commands.transaction(*operations)])  # noqa: E731
    query = lambda *operations: s.run(["ovsdb-tool", "query", "a.db", commands.transaction(*operations)])  # noqa: E731
    s.run(["ovsdb-tool", "transact", "a.db", commands.FILL], "lines", out=lambda text: UUID.sub("UUID", text))
    transact({"op": "comment", "comment": "one \"note\""}, commands.insert("Note", text="n"))
    transact({"op": "update", "table": "Note", "where": [["text", "==", "n"]], "row": {"levels": ["set", [1, 2]]}})
    transact({"op": "mutate", "table": "Note", "where": [["text", "==", "n"]], "mutations": [["levels", "insert", 3]]})
    transact({"op": "delete", "table": "Note", "where": [["text", "==", "n"]]})
    transact({"op": "delete", "table": "Note", "where": [["text", "==", "nothing"]]})
    transact({"op": "frobnicate"})
    transact(commands.insert("Device", name="x", kind="toaster"))
    transact(commands.insert("Site", name="north"))
    query({"op": "select", "table": "Site", "where": [["name", "==", "north"]], "columns": ["name", "labels", "altitude", "open"]})
    query({"op": "select", "table": "Device", "where": [["name", "==", "core"]], "columns": ["ports", "weights"]})
    query({"op": "select", "table": "Site", "where": [["name", "==", "north"]], "columns": ["name"]})
    s.run(["ovsdb-tool", "query", "a.db", '["wrong",{"op":"select","table":"Site","where":[]}]'])
    s.run(["ovsdb-tool", "query", "a.db", "garbage"])
    s.run(["ovsdb-tool", "query", "a.db", "{}"])
    s.run(["ovsdb-tool", "query", "a.db", "[]"])
    s.run(["ovsdb-tool", "query", "nosuch.db", commands.transaction()])
    s.run("ovsdb-tool show-log a.db", out=log_lines)
    s.run("ovsdb-tool -m show-log a.db", out=log_lines)
    s.run("ovsdb-tool -mm show-log a.db", out=log_lines)
    s.run("ovsdb-tool --more --more show-log a.db", out=log_lines)
    s.run("ovsdb-tool show-log nosuch.db")
    s.run("ovsdb-tool compact a.db compacted.db")
    s.run("ovsdb-tool compact a.db")
    s.run("ovsdb-tool compact nosuch.db")
    s.run("ovsdb-tool -mm show-log a.db", out=log_lines)
    s.run("ovsdb-tool -mm show-log compacted.db", out=log_lines)
    s.run(f"ovsdb-tool convert a.db {narrow} narrow.db")
    s.run(f"ovsdb-tool convert a.db {two} two.db")
    s.run(f"ovsdb-tool convert a.db {two}")
    s.run("ovsdb-tool db-version a.db")
    s.run(f"ovsdb-tool needs-conversion two.db {two}")
    s.run("ovsdb-tool -mm show-log two.db", out=log_lines)
    s.run(["sh", "-c", "cp two.db torn.db; printf 'OVSDB JSON 100 0000' >> torn.db; ovsdb-tool db-name torn.db; ovsdb-tool -m show-log torn.db"], out=log_lines)
    s.run(["sh", "-c", "(cat two.db; printf 'OVSDB JSON 3 0000000000000000000000000000000000000000\\nabc') > bad.db; ovsdb-tool show-log bad.db"], out=log_lines)
    s.run(["ovsdb-tool", "query", "bad.db", commands.transaction({"op": "select", "table": "Site", "where": [["name", "==", "north"]], "columns": ["name"]})])
    s.run(["sh", "-c", "echo hello > text.db; ovsdb-tool db-name text.db; : > empty.db; ovsdb-tool db-name empty.db"])


def served(s):
    """What happens to a file that a running server holds open."""
    held = s.server.databases[0]
    s.run(["ovsdb-tool", "transact", held, commands.transaction({"op": "comment", "comment": "no"})])
    s.run(f"ovsdb-tool compact {held}")
    s.run(f"ovsdb-tool convert {held} {SCHEMAS}/inventory-2.ovsschema")
    s.run(["ovsdb-tool", "query", held, commands.transaction({"op": "select", "table": "Note", "where": [["text", "==", "zz"]]})])
    s.run(f"ovsdb-tool db-name {held}")


ID4 = re.compile(r"(_id: |_eid: |\beid: |_servers: |: server )[0-9a-f]{4}\b")


def cluster_lines(text):
    return log_lines(ID4.sub(r"\1ID", text))


def clusters(s):
    """Files of cluster members: made of a schema and of a database, looked at, rescued."""
    one = f"{SCHEMAS}/inventory-1.ovsschema"
    s.run(f"ovsdb-tool -vconsole:off create-cluster c.db {one} tcp:127.0.0.1:6643")
    s.run(f"ovsdb-tool -vconsole:off create-cluster c.db {one} tcp:127.0.0.1:6643")
    s.run("ovsdb-tool -vconsole:off --election-timer=2500 create-cluster d.db narrow.db ssl:[::1]:6643")
    s.run("ovsdb-tool join-cluster j.db Inventory tcp:127.0.0.1:6644 tcp:127.0.0.1:6643")
    s.run("ovsdb-tool --cid=00000000-0000-4000-8000-000000000001 join-cluster k.db Inventory unix:k.raft unix:c.raft")
    for name in ("c.db", "d.db", "j.db", "k.db", "narrow.db"):
        for command in ("db-is-clustered", "db-is-standalone", "db-name", "db-version", "db-local-address"):
            s.run(f"ovsdb-tool {command} {name}")
        for command in ("db-cid", "db-sid"):
            s.run(f"ovsdb-tool {command} {name}", out=lambda text: UUID.sub("UUID", text))
        s.run(f"ovsdb-tool -mm show-log {name}", out=cluster_lines)
    s.run("ovsdb-tool check-cluster c.db j.db")
    s.run("ovsdb-tool check-cluster d.db")
    s.run(["sh", "-c", "ovsdb-tool check-cluster c.db c.db 2>&1"], out=lambda text: re.sub(r"ID [0-9a-f]{4}", "ID", text))
    s.run("ovsdb-tool check-cluster narrow.db")
    s.run("ovsdb-tool cluster-to-standalone rescued.db d.db")
    s.run("ovsdb-tool -mm show-log rescued.db", out=log_lines)
    s.run("ovsdb-tool cluster-to-standalone rescued.db d.db")
    s.run("ovsdb-tool cluster-to-standalone again.db narrow.db")
    s.run("ovsdb-tool compact c.db")
    s.run(f"ovsdb-tool convert c.db {one}")


def mistakes(s):
    s.run("ovsdb-tool")
    s.run("ovsdb-tool frobnicate")
    s.run("ovsdb-tool db-name a b")
    s.run("ovsdb-tool compare-versions 1.2.3")
    s.run("ovsdb-tool transact a.db")
    s.run("ovsdb-tool --bogus db-name a.db")
    s.run("ovsdb-tool --timeout=1 db-name a.db")
    s.run("ovsdb-tool -vbogus db-name a.db")
    s.run("ovsdb-tool -vconsole:off db-name nosuch.db")
    s.run("ovsdb-tool db-name -vconsole:off a.db")
    s.run("ovsdb-tool --help", out=nothing)
    s.run("ovsdb-tool -V", out=lambda text: re.sub(r"[\d.]+", "N", text.split("\n")[0]))


def appctl(s):
    ctl = s.server.ctl
    s.run(f"ovs-appctl -t {ctl} version")
    s.run(f"ovs-appctl --target={ctl} list-commands")
    s.run(f"ovs-appctl -t {ctl} -T 5 ovsdb-server/list-dbs")
    s.run(f"ovs-appctl -t {ctl} --timeout=5 ovsdb-server/list-remotes")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/add-remote punix:second.sock")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/add-remote db:nosuch,a,b")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/remove-remote punix:second.sock")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/remove-remote punix:second.sock")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/remove-db nosuch")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/add-db nosuch")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/compact")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/compact nosuch")
    s.run(f"ovs-appctl -t {ctl} nosuch-command")
    s.run(f"ovs-appctl -t {ctl} ovsdb-server/compact a b c")
    s.run(f"ovs-appctl -t {ctl} vlog/set -vbogus")
    s.run(f"ovs-appctl -t {ctl} vlog/set jsonrpc:file:dbg")
    s.run(f"ovs-appctl -t {ctl} vlog/set bogus:file:dbg")
    s.run(f"ovs-appctl -t {ctl} vlog/list")
    s.run(f"ovs-appctl -t {ctl} vlog/set")
    s.run(f"ovs-appctl -t {ctl} vlog/set ANY:file:info")
    s.run(f"ovs-appctl -e -t {ctl} version")
    s.run(f"ovs-appctl -t {ctl} -t {ctl} version")
    s.run(f"ovs-appctl -t {ctl}")
    s.run("ovs-appctl -t nosuch version")
    s.run("ovs-appctl version")
    s.run("ovs-appctl -t /nosuch/socket version")
    s.run("ovs-appctl --bogus version")
    s.run(f"ovs-appctl -T 0 -t {ctl} version")
    s.run("ovs-appctl --help", out=nothing)
    s.run("ovs-appctl --version", out=lambda text: re.sub(r"[\d.]+", "N", text.split("\n")[0]))
