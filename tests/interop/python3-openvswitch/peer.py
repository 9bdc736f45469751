#!/usr/bin/python3
"""The peer: a replica of the `ovs` Python package, driven by the suite.

Arguments: remote, schema file, control socket of the server. Prints one line for each finding, `ok` or `FAILED`; exit
status 1 when one failed. The package decides how it connects and monitors; this program only uses its public surface.
"""

import json
import os
import sys
import time

import ovs.db.idl
import ovs.jsonrpc
import ovs.poller
import ovs.stream
import ovs.unixctl.client

REMOTE, SCHEMA = sys.argv[1:3]
failures = 0


def check(holds, what, detail=""):
    global failures
    failures += not holds
    print(f"{'ok' if holds else 'FAILED'}: {what} {'' if holds else detail}", flush=True)
    return holds


class Replica:
    """An Idl that runs until a condition holds, as a daemon's main loop would."""

    def __init__(self, tables, conditions=None, events=None):
        helper = ovs.db.idl.SchemaHelper(location=SCHEMA)
        for table, columns in tables.items():
            helper.register_columns(table, columns) if columns else helper.register_table(table)
        self.idl = (ovs.db.idl.Idl if events is None else watching(events))(REMOTE, helper, probe_interval=0)
        for table, condition in (conditions or {}).items():
            self.idl.cond_change(table, condition)

    def until(self, holds, what, timeout_s=60):
        deadline = time.monotonic() + timeout_s
        while True:
            self.idl.run()
            if self.idl.has_ever_connected() and holds():
                return True
            if time.monotonic() > deadline:
                check(False, what, "timed out")
                return False
            poller = ovs.poller.Poller()
            self.idl.wait(poller)
            poller.timer_wait(100)
            poller.block()

    def commit(self, change):
        """Runs `change(txn)` in a transaction until it is decided; returns (status, error, result of change)."""
        while True:
            txn = ovs.db.idl.Transaction(self.idl)
            result = change(txn)
            status = txn.commit_block()
            if status != ovs.db.idl.Transaction.TRY_AGAIN:
                return status, txn.get_error(), result, txn
            self.until(lambda: True, "again")

    def rows(self, table):
        return list(self.idl.tables[table].rows.values())

    def column(self, table, column):
        return sorted(getattr(row, column) for row in self.rows(table))


def watching(events):
    class Watching(ovs.db.idl.Idl):
        def notify(self, event, row, updates=None):
            events.append((event, row._table.name, getattr(row, "name", None)))

    return Watching


def request(method, params):
    """One plain request over a second connection."""
    error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open(REMOTE))
    assert not error, os.strerror(error)
    connection = ovs.jsonrpc.Connection(stream)
    error, reply = connection.transact_block(ovs.jsonrpc.Message.create_request(method, params))
    connection.close()
    assert not error and not reply.error, (error, reply and reply.error)
    return reply.result


def dump(table, columns):
    """Rows of `table` as the server has them: {uuid: {column: notation}}."""
    result = request("transact", ["inventory", {"op": "select", "table": table, "where": [], "columns": ["_uuid", *columns]}])
    rows = {}
    for row in result[0]["rows"]:
        uuid = row.pop("_uuid")[1]
        rows[uuid] = {column: canonical(value) for column, value in row.items()}
    return rows


def canonical(value):
    """A datum with its elements in order, whichever way it was spelled."""
    if isinstance(value, list) and value and value[0] in ("set", "map"):
        items = sorted(value[1], key=json.dumps)
        return items[0] if value[0] == "set" and len(items) == 1 else [value[0], items]
    return value


def replica_equals_server(replica, what):
    for table, columns in TABLES.items():
        have = {}
        for row in replica.rows(table):
            have[str(row.uuid)] = {column: canonical(row._data[column].to_json()) for column in columns}
        check(have == dump(table, columns), f"{what}: replica of {table} equals the server", f"{have} != {dump(table, columns)}")


TABLES = {
    "Site": ["name", "racks", "labels", "altitude", "open", "contact", "seen"],
    "Rack": ["name", "units", "devices", "serial"],
    "Device": ["name", "kind", "ports", "weights", "uplink", "peers", "token"],
    "Note": ["text", "levels", "flags"],
}


def transactions(replica):
    def fill(txn):
        devices = []
        for n in range(6):
            device = txn.insert(replica.idl.tables["Device"])
            device.name, device.kind, device.ports = f"d{n}", ("router", "server", "switch")[n % 3], list(range(n))
            device.weights = {n: n / 3}
            device.uplink = devices[0] if devices else []
            devices.append(device)
        rack = txn.insert(replica.idl.tables["Rack"])
        rack.name, rack.units, rack.serial, rack.devices = "r0", 42, "s-0", devices
        site = txn.insert(replica.idl.tables["Site"])
        site.name, site.racks, site.labels, site.altitude = "north", [rack], {"k": "v", "é": '"'}, 12.5
        note = txn.insert(replica.idl.tables["Note"])
        note.text, note.levels, note.flags = "first", [3, 1, 2], [True, False]
        txn.add_comment("filled")
        return site

    status, error, site, txn = replica.commit(fill)
    check(status == txn.SUCCESS, "a transaction with references between new rows commits", error)
    uuid = txn.get_insert_uuid(site.uuid)
    replica.until(lambda: uuid in replica.idl.tables["Site"].rows, "the inserted row arrives")
    replica_equals_server(replica, "after the first transaction")
    site = replica.idl.tables["Site"].rows[uuid]

    def change(txn):
        site.verify("labels")
        site.setkey("labels", "new", "value")
        site.delkey("labels", "k")
        site.open = True
        for row in replica.rows("Device"):
            if row.name == "d1":
                row.addvalue("ports", 7)
                row.delvalue("ports", 0)

    status, error, _, _ = replica.commit(change)
    check(status == ovs.db.idl.Transaction.SUCCESS, "partial changes of maps and sets commit", error)
    replica.until(lambda: site.open, "the change arrives")
    replica_equals_server(replica, "after partial changes")

    def again(txn):
        site.open = True

    check(replica.commit(again)[0] == ovs.db.idl.Transaction.UNCHANGED, "a transaction that changes nothing is UNCHANGED")

    def bad(txn):
        row = txn.insert(replica.idl.tables["Site"])
        row.name = "north"

    status, error, _, _ = replica.commit(bad)
    check(status == ovs.db.idl.Transaction.ERROR and "constraint violation" in error, "a duplicate index value is an error", error)

    # Only a transaction that changes something else increments.
    def count(txn):
        site.contact = "counted"
        site.increment("seen")

    status, error, _, txn = replica.commit(count)
    if check(status == txn.SUCCESS, "increment commits", f"{txn.status_to_string(status)} {error}"):
        check(txn.get_increment_new_value() == 1, "increment returns the new value", txn.get_increment_new_value())

    # The server has changed meanwhile: verify must make the transaction start again.
    request("transact", ["inventory", {"op": "update", "table": "Site", "where": [], "row": {"altitude": 99}}])
    stale = ovs.db.idl.Transaction(replica.idl)
    site.verify("altitude")
    site.contact = "alice"
    status = stale.commit_block()
    check(status == stale.TRY_AGAIN, "a prerequisite that no longer holds means TRY_AGAIN", stale.status_to_string(status))

    def remove(txn):
        for row in replica.rows("Note"):
            row.delete()
        site.racks = []

    check(replica.commit(remove)[0] == ovs.db.idl.Transaction.SUCCESS, "deletion commits")
    replica.until(lambda: not replica.rows("Rack") and not replica.rows("Note"), "unreferenced rows disappear")
    replica_equals_server(replica, "after garbage collection")


def volume(replica):
    """Many changes by another client arrive in order and completely."""
    for n in range(60):
        request("transact", ["inventory",
            {"op": "insert", "table": "Note", "row": {"text": f"n{n:03}", "levels": ["set", list(range(n % 5))]}},
            {"op": "mutate", "table": "Note", "where": [], "mutations": [["levels", "insert", n]]},
            *([{"op": "delete", "table": "Note", "where": [["text", "==", f"n{n - 3:03}"]]}] if n % 4 == 0 else []),
        ])
    replica.until(lambda: any(row.text == "n059" for row in replica.rows("Note")), "the last change arrives")
    replica_equals_server(replica, "after sixty transactions of another client")


def conditions():
    replica = Replica({"Note": ["text", "levels"]}, {"Note": [["text", "==", "n002"]]})
    replica.until(lambda: replica.rows("Note"), "conditional replica")
    check(replica.column("Note", "text") == ["n002"], "only rows that match are replicated", replica.column("Note", "text"))
    replica.idl.cond_change("Note", [["text", "==", "n002"], ["text", "==", "n003"], ["levels", "includes", 59]])
    everything = dump("Note", ["text", "levels"])
    matching = sorted(
        row["text"] for row in everything.values()
        if row["text"] in ("n002", "n003") or 59 in (row["levels"][1] if isinstance(row["levels"], list) else [row["levels"]])
    )
    replica.until(lambda: replica.column("Note", "text") == matching, f"a wider condition brings {len(matching)} rows")
    replica.idl.cond_change("Note", [["text", "==", "n003"]])
    replica.until(lambda: replica.column("Note", "text") == ["n003"], "a narrower condition removes rows")
    request("transact", ["inventory", {"op": "update", "table": "Note", "where": [["text", "==", "n003"]], "row": {"text": "moved"}}])
    replica.until(lambda: not replica.rows("Note"), "a row that no longer matches disappears")
    request("transact", ["inventory", {"op": "update", "table": "Note", "where": [["text", "==", "moved"]], "row": {"text": "n003"}}])
    replica.until(lambda: replica.column("Note", "text") == ["n003"], "a row that matches again appears")
    replica.idl.cond_change("Note", [False])
    replica.until(lambda: not replica.rows("Note"), "false matches nothing")
    replica.idl.cond_change("Note", [True])
    replica.until(lambda: len(replica.rows("Note")) == len(everything), "true matches everything")
    replica.idl.close()


def locks():
    first, second = (Replica({"Site": ["name", "contact"]}) for _ in range(2))
    first.idl.set_lock("inventory_lock")
    first.until(lambda: first.idl.has_lock, "the first client gets the lock")
    second.idl.set_lock("inventory_lock")
    second.until(lambda: second.idl.is_lock_contended, "the second client is told that it waits")
    check(not second.idl.has_lock, "the second client has no lock")
    first.idl.set_lock(None)
    first.idl.run()
    second.until(lambda: second.idl.has_lock, "the lock passes to the second client")

    def change(client):
        def contact(_):
            for row in client.rows("Site"):
                row.contact = "under lock"

        return client.commit(contact)[0]

    check(change(second) == ovs.db.idl.Transaction.SUCCESS, "the holder of the lock commits")
    first.idl.set_lock("inventory_lock")
    first.until(lambda: first.idl.is_lock_contended, "the first client waits for the lock")
    check(change(first) == ovs.db.idl.Transaction.NOT_LOCKED, "who waits for the lock cannot commit")
    second.idl.close()
    first.until(lambda: first.idl.has_lock, "a client that ends frees its lock")
    first.idl.close()


def restart(replica, events):
    """The suite restarts the server when told so, and answers on standard input when it is done."""
    events.clear()
    before = replica.idl.change_seqno
    print("RESTART", flush=True)
    sys.stdin.readline()
    replica.until(lambda: replica.idl.change_seqno != before, "the replica connects again after a restart")
    request("transact", ["inventory", {"op": "insert", "table": "Note", "row": {"text": "after restart"}}])
    replica.until(lambda: "after restart" in replica.column("Note", "text"), "changes after the restart arrive")
    replica_equals_server(replica, "after the restart")


def main():
    events = []
    replica = Replica(TABLES, events=events)
    replica.until(lambda: True, "the replica connects")
    check(not replica.rows("Site"), "the replica of an empty database is empty")
    transactions(replica)
    volume(replica)
    kinds = {event[0] for event in events}
    check({"create", "update", "delete"} <= kinds, "notifications of every kind came", kinds)
    conditions()
    locks()
    restart(replica, events)
    sys.exit(1 if failures else 0)


main()
