"""Every command of ovsdb-client, in every output format and with every kind of mistake.

A script for a transcript session: `s.server` serves the `inventory` schema (schemas/inventory-1.ovsschema).
"""

import itertools
import json
import os
import re

SCHEMAS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schemas")


def transaction(*operations):
    return json.dumps(["inventory", *operations])


def insert(table, uuid_name=None, /, **row):
    operation = {"op": "insert", "table": table, "row": row}
    if uuid_name:
        operation["uuid-name"] = uuid_name
    return operation


def reference(*names):
    return ["set", [["named-uuid", name] for name in names]]


FILL = transaction(
    insert("Device", "d1", name="core", kind="router", ports=["set", [1, 2, 3]], weights=["map", [[1, 0.5], [2, 1e21]]]),
    insert("Device", "d2", name="leaf \"a\"", kind="switch", uplink=["named-uuid", "d1"], ports=7,
           peers=["map", [["up", ["named-uuid", "d1"]], ["side", ["named-uuid", "d3"]]]]),
    insert("Device", "d3", name="true", kind="server", token=["uuid", "11111111-2222-3333-4444-555555555555"]),
    insert("Rack", "r1", name="r-1", units=42, serial="s<&>1", devices=reference("d1", "d2")),
    insert("Rack", "r2", name="r,2", units=10, serial="é\n\t", devices=reference("d3")),
    insert("Site", name="north", racks=reference("r1"), altitude=-12.5, open=True, contact="alice",
           labels=["map", [["k", "v"], ["key two", "v, 2"], ["", "empty"]]]),
    insert("Site", name="south", racks=reference("r2"), altitude=3),
    insert("Note", text="plain", levels=["set", [3, 1, 2]], flags=True),
    insert("Note", text="11111111-2222-3333-4444-555555555555", levels=5),
    insert("Note", text="x" * 60, flags=["set", [True, False]]),
    {"op": "comment", "comment": "filled"},
)


def backup_lines(text):
    """A backup without lengths, digests, date and uuids as keys, its tables in order."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("{"):
            record = json.loads(line)
            record.pop("_date", None)
            if "tables" in record:
                lines.append(json.dumps(record, sort_keys=True))
                continue
            for table, rows in record.items():
                if isinstance(rows, dict):
                    lines += sorted(f"{table} {json.dumps(row, sort_keys=True)}" for row in rows.values())
                else:
                    lines.append(f"{table} {rows}")
    return "\n".join(sorted(lines))


def without_ids(text):
    """A monitor's output without transaction ids: the reference has none in standalone mode, ours keeps a history."""
    return re.sub(r"last_id: \S+", "last_id: ID", text)


def schemas(s):
    s.run("ovsdb-client list-dbs")
    s.run("ovsdb-client list-dbs unix:$DIR/db.sock".replace("$DIR", s.server.directory))
    s.run("ovsdb-client get-schema")
    s.run("ovsdb-client --pretty get-schema inventory")
    s.run("ovsdb-client get-schema nosuch")
    s.run("ovsdb-client get-schema-version")
    s.run("ovsdb-client get-schema-version _Server")
    s.run("ovsdb-client get-schema-cksum")
    s.run("ovsdb-client get-schema-cksum _Server")
    s.run("ovsdb-client list-tables", "lines")
    s.run("ovsdb-client list-tables _Server")
    s.run("ovsdb-client -f csv list-columns inventory", "lines")
    s.run("ovsdb-client list-columns inventory Device", "lines")
    s.run("ovsdb-client list-columns inventory Nosuch")
    s.run("ovsdb-client -f json list-columns _Server Database", "json")


def transactions(s):
    s.run(["ovsdb-client", "transact", FILL])
    run = lambda *operations: s.run(["ovsdb-client", "transact", transaction(*operations)])  # noqa: E731
    run({"op": "select", "table": "Note", "where": [["text", "==", "plain"]], "columns": ["text", "levels", "flags"]})
    run({"op": "update", "table": "Site", "where": [["name", "==", "south"]], "row": {"open": True}})
    run({"op": "mutate", "table": "Site", "where": [], "mutations": [["altitude", "+=", 1], ["labels", "insert", ["map", [["n", "1"]]]]]})
    run({"op": "mutate", "table": "Site", "where": [], "mutations": [["altitude", "/=", 0]]})
    run(insert("Site", name="north"))
    run(insert("Rack", name="loose", units=99))
    run(insert("Device", name="odd", kind="toaster"))
    run(insert("Site", name="far", altitude=9001))
    run(insert("Site", name="short", contact="ab"))
    run(insert("Nosuch", name="a"))
    run(insert("Site", nosuch="a"))
    run({"op": "frobnicate"})
    run({"op": "update", "table": "Rack", "where": [], "row": {"serial": "changed"}})
    run({"op": "delete", "table": "Rack", "where": [["name", "==", "r-1"]]})
    run({"op": "wait", "table": "Site", "where": [], "columns": ["name"], "until": "==", "rows": [], "timeout": 0})
    run({"op": "abort"})
    run({"op": "assert", "lock": "l"})
    run({"op": "commit", "durable": True})
    run({"op": "select", "table": "Site", "where": [["altitude", ">=", 0]], "columns": ["name"]},
        {"op": "select", "table": "Site", "where": [["nosuch", ">=", 0]]},
        {"op": "select", "table": "Site", "where": []})
    run(*[insert("Device", name=f"many{n}", kind="server") for n in range(25)])
    run()
    s.run(["ovsdb-client", "query", transaction({"op": "delete", "table": "Note", "where": []})])
    s.run(["ovsdb-client", "query", transaction({"op": "frobnicate"})])
    s.run(["ovsdb-client", "query", transaction({"op": "abort"})])
    s.run(["ovsdb-client", "transact", '["nosuch"]'])
    s.run(["ovsdb-client", "transact", "[]"])
    s.run(["ovsdb-client", "transact", "{}"])
    s.run(["ovsdb-client", "transact", "[3]"])
    s.run(["ovsdb-client", "transact", '["inventory",'])
    s.run(["ovsdb-client", "transact", "garbage"])
    s.run(["ovsdb-client", "transact", '["inventory",3]'])
    s.run(["ovsdb-client", "transact", '["inventory",{"op":"select","table":"Site","where":[],"bogus":1}]'])


def dumps(s):
    for form in ("table", "list", "html", "csv", "json"):
        order = {"list": "blocks", "json": "json"}.get(form, "exact")
        # In HTML the reference takes the JSON text of a uuid for the uuid and cuts it after eight characters.
        for data in ("string", "bare", "json") if form != "html" else ("string", "bare"):
            s.run(f"ovsdb-client --format={form} --data={data} dump", order)
            s.run(f"ovsdb-client -f {form} -d {data} --no-headings dump inventory Note", order)
    s.run("ovsdb-client --bare dump inventory Site name open labels")
    s.run("ovsdb-client --max-column-width=12 dump inventory Note text levels flags")
    s.run("ovsdb-client --format=json --pretty dump inventory Note text levels flags")
    s.run("ovsdb-client dump inventory Site altitude name")
    s.run("ovsdb-client dump inventory Device name peers uplink")
    s.run("ovsdb-client dump inventory Nosuch")
    s.run("ovsdb-client dump inventory Site nosuch")
    s.run("ovsdb-client dump nosuch")
    s.run("ovsdb-client dump _Server Database name model connected leader")
    s.run("ovsdb-client --format=yaml dump")
    s.run("ovsdb-client --data=yaml dump")


def followed(s, command, order=None):
    """A monitor that sees a row come, change, change into what it was, and go; each step waits for the one before.

    One row is there from the beginning, so that its appearance shows that the monitor is set up.
    """
    s.run(["ovsdb-client", "transact", transaction(insert("Note", text="note-0"))])
    watch = s.watch(command).until("note-0")
    row = {"text": "note-1", "levels": ["set", [1, 2]]}
    steps = [
        ("note-1", insert("Note", **row)),
        ("note-2", {"op": "update", "table": "Note", "where": [["text", "==", "note-1"]], "row": {"text": "note-2"}}),
        ("[1, 3]" if "monitor-cond" in command else "[2, 3]", {"op": "mutate", "table": "Note", "where": [["text", "==", "note-2"]],
                    "mutations": [["levels", "insert", 3], ["levels", "delete", 1]]}),
        ("note-3", {"op": "update", "table": "Note", "where": [["text", "==", "note-2"]], "row": {"text": "note-3"}}),
        ("delete", {"op": "delete", "table": "Note", "where": [["text", "==", "note-3"]]}),
        ("note-end", insert("Note", text="note-end")),
    ]
    for expected, operation in steps:
        s.run(["ovsdb-client", "transact", transaction(operation)])
        watch.until(expected.replace(", ", ",") if "json" in command else expected)
    watch.end(order, out=without_ids)
    s.run(["ovsdb-client", "transact", transaction({"op": "delete", "table": "Note", "where": []})])


def without(s, kind):
    """A monitor with one kind of change switched off. Probes show when it is set up; they are left out."""
    watch = s.watch(["ovsdb-client", "--format=csv", "monitor", "inventory", "Site", f"name,open,!{kind}"])
    probes = itertools.count()
    while kind == "initial" and not watch.output() and next(probes) < 200:
        s.quietly(["ovsdb-client", "transact", transaction(insert("Site", name=f"probe{next(probes)}"))])
    if kind != "initial":
        watch.until("north")
    update = lambda old, **row: {"op": "update", "table": "Site", "where": [["name", "==", old]], "row": row}  # noqa: E731
    for operation in (
        insert("Site", name="tmp"),
        update("tmp", open=True),
        {"op": "delete", "table": "Site", "where": [["name", "==", "tmp"]]},
        insert("Site", name="last"),
        update("last", name="last2"),
        {"op": "delete", "table": "Site", "where": [["name", "==", "last2"]]},
    ):
        s.run(["ovsdb-client", "transact", transaction(operation)])
    watch.until("delete,last2" if kind != "delete" else "new,last2")
    watch.end("events", out=lambda text: "\n".join(line for line in text.split("\n") if "probe" not in line))
    s.quietly(["ovsdb-client", "transact", transaction({"op": "delete", "table": "Site", "where": [["name", "excludes", "north"], ["name", "excludes", "south"]]})])


def monitors(s):
    s.run(["ovsdb-client", "transact", transaction({"op": "delete", "table": "Note", "where": []})])
    followed(s, "ovsdb-client monitor Note text levels")
    followed(s, "ovsdb-client monitor inventory Note text,levels,flags")
    followed(s, "ovsdb-client monitor inventory Note")
    followed(s, "ovsdb-client --format=csv monitor inventory ALL", "lines")
    followed(s, "ovsdb-client --format=json monitor inventory Note text levels")
    followed(s, """ovsdb-client monitor-cond inventory '[["text","!=","nothing"]]' Note text,levels""")
    followed(s, """ovsdb-client monitor-cond inventory '[true]' Note""")
    followed(s, """ovsdb-client monitor-cond-since inventory '[["text","!=","nothing"]]' Note text,levels""")
    for kind in ("initial", "insert", "delete", "modify"):
        without(s, kind)
    s.run("ovsdb-client monitor inventory Note text,text")
    s.run("ovsdb-client monitor inventory Note nosuch")
    s.run("ovsdb-client monitor inventory Nosuch")
    s.run("ovsdb-client monitor")
    s.run("ovsdb-client monitor-cond inventory nonsense Note")
    s.run("""ovsdb-client monitor-cond inventory '[["nosuch","==",1]]' Note""")
    s.run("""ovsdb-client monitor-cond inventory '[["text","~",1]]' Note""")


def locks(s):
    first = s.watch("ovsdb-client lock main").until("locked")
    second = s.watch("ovsdb-client lock main").until('"locked":false')
    third = s.watch("ovsdb-client steal main").until('"locked":true')
    first.until("stolen")
    third.end()
    first.until('["main"]', 2).end()
    second.until('["main"]').end()


def copies(s):
    path = os.path.join(s.server.directory, "backup")
    s.run(["sh", "-c", f"ovsdb-client backup > {path} && cat {path}"], out=backup_lines)
    s.run(["ovsdb-client", "transact", transaction({"op": "delete", "table": "Site", "where": []}, insert("Note", text="later"))])
    s.run(["sh", "-c", f"ovsdb-client restore < {path}"])
    s.run("ovsdb-client dump")
    s.run(["sh", "-c", "echo garbage > garbage; ovsdb-client restore < garbage"])
    s.run(f"ovsdb-client needs-conversion {SCHEMAS}/inventory-1.ovsschema")
    s.run(f"ovsdb-client needs-conversion {SCHEMAS}/inventory-2.ovsschema")
    s.run("ovsdb-client needs-conversion nosuch.ovsschema")
    watch = s.watch("ovsdb-client monitor inventory Site name").until("north")
    s.run(f"ovsdb-client convert {SCHEMAS}/inventory-2.ovsschema")
    watch.end(kill=False, order="lines", log=False)
    s.run("ovsdb-client get-schema-version")
    s.run("ovsdb-client dump")
    s.run(f"ovsdb-client needs-conversion {SCHEMAS}/inventory-2.ovsschema")
    s.run(["sh", "-c", f"ovsdb-client restore < {path}"])
    s.run(["sh", "-c", f"ovsdb-client --force restore < {path}"])
    s.run(["ovsdb-client", "convert", f"{SCHEMAS}/nosuch"])


def waits(s):
    socket = f"unix:{s.server.sock}"
    s.run(f"ovsdb-client -t 20 wait {socket} inventory connected")
    s.run(f"ovsdb-client -t 20 wait {socket} inventory added")
    s.run(f"ovsdb-client -t 20 wait {socket} nosuch removed")
    s.run(f"ovsdb-client -t 20 wait {socket} inventory sideways")
    s.run(f"ovsdb-client -t 1 wait {socket} nosuch added")
    removed = s.watch(f"ovsdb-client -t 20 wait {socket} inventory removed")
    monitor = s.watch("ovsdb-client monitor inventory Site name").until("north")
    s.run(f"ovs-appctl -t {s.server.ctl} ovsdb-server/remove-db inventory")
    removed.end(kill=False, log=False)
    monitor.end(kill=False, order="lines", log=False)
    added = s.watch(f"ovsdb-client -t 20 wait {socket} inventory added")
    s.run(f"ovs-appctl -t {s.server.ctl} ovsdb-server/add-db {s.server.databases[0]}")
    added.end(kill=False, log=False)
    s.run("ovsdb-client list-dbs")
    ended = s.watch(f"ovsdb-client monitor {socket} inventory Site name").until("north")
    s.run(f"ovs-appctl -t {s.server.ctl} exit")
    s.note(f"server ended with {s.server.process.wait(timeout=30)}")
    ended.end(kill=False, order="lines", log=False)
    s.run("ovsdb-client list-dbs")


def mistakes(s):
    s.run("ovsdb-client")
    s.run("ovsdb-client frobnicate")
    s.run("ovsdb-client transact")
    s.run("ovsdb-client get-schema a b c d")
    s.run("ovsdb-client --bogus list-dbs")
    s.run("ovsdb-client --form")
    s.run("ovsdb-client --da=bare -fcsv list-dbs")
    s.run("ovsdb-client -t 0 list-dbs")
    s.run("ovsdb-client -t x list-dbs")
    s.run("ovsdb-client -vbogus list-dbs")
    s.run("ovsdb-client -vconsole:off list-dbs unix:nowhere")
    s.run("ovsdb-client list-dbs unix:nowhere")
    s.run("ovsdb-client list-dbs tcp:127.0.0.1:1")
    s.run("ovsdb-client list-dbs bogus:1")
    s.run("ovsdb-client list-dbs tcp:127.0.0.1:99999")
    s.run(f"ovsdb-client list-dbs tcp:127.0.0.1:{s.server.port}")
    s.run(f"ovsdb-client dump tcp:127.0.0.1:{s.server.port} inventory Note text")
    s.run(f"ovsdb-client dump unix:nowhere,tcp:127.0.0.1:{s.server.port} inventory Note text", "lines")
    s.run(f"ovsdb-client dump tcp:127.0.0.1:{s.server.port},tcp:127.0.0.1:{s.server.port}")


def script(s):
    schemas(s)
    transactions(s)
    dumps(s)
    mistakes(s)
    locks(s)
    monitors(s)
    copies(s)
    waits(s)
