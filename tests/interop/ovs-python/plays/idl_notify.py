"""Notifications: which, in which order, with which values, and what a program may do in them."""
# needs: server inventory-1.ovsschema
# not on: debian: it notifies of the rows of `_Server` too, and waits for ever where a notification is lost
# differs: both: ^silent column: the original notifies of it

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
from idl_transcript import attempt, by_name, connected, contents, row_values, say, show, until  # noqa: E402

Transaction = ovs.db.idl.Transaction


class Watching(ovs.db.idl.Idl):
    """Prints what it hears."""

    def notify(self, event, row, updates=None):
        old = {name: getattr(updates, name) for name in sorted(row._table.columns) if updates is not None and hasattr(updates, name)}
        say("notify", event, row._table.name, show(row_values(row)), "from", show(old))
        say("  seqno has moved:", self.change_seqno != self.before, "in rows:", row.uuid in row._table.rows)

    def run(self):
        self.before = self.change_seqno
        return super().run()


def commit(idl, change):
    txn = Transaction(idl)
    change(txn)
    say(txn.commit_block())


def main():
    writer = connected("inventory-1.ovsschema")
    commit(writer, lambda txn: setattr(txn.insert(writer.tables["Site"]), "name", "first"))
    idl = connected("inventory-1.ovsschema", kind=Watching)
    say("seqno after one row", idl.change_seqno > 0, idl.has_ever_connected(), idl.state)

    def settle(holds):
        until([writer, idl], holds)

    site = by_name(idl, "Site", "first")
    commit(writer, lambda txn: setattr(by_name(writer, "Site", "first"), "contact", "alice"))
    settle(lambda: site.contact == ["alice"])

    def several(txn):
        of_writer = by_name(writer, "Site", "first")
        of_writer.contact, of_writer.labels = [], {"a": "b"}

    commit(writer, several)
    settle(lambda: site.labels)
    commit(writer, lambda txn: by_name(writer, "Site", "first").setkey("labels", "c", "d"))
    settle(lambda: len(site.labels) == 2)

    def referring(txn):
        rack = txn.insert(writer.tables["Rack"])
        rack.name, rack.serial, rack.units = "r", "x", 5
        by_name(writer, "Site", "first").racks = [rack]

    events = []
    idl.notify = lambda event, row, updates=None: events.append((event, row._table.name))
    commit(writer, referring)
    settle(lambda: idl.tables["Rack"].rows)
    say("by an attribute of the instance", sorted(events))
    del idl.notify

    calls = []

    def failing(event, row, updates=None):
        calls.append(row._table.name)
        raise ValueError(row._table.name)

    idl.notify = failing
    commit(writer, lambda txn: [setattr(txn.insert(writer.tables["Note"]), "text", f"n{n}") for n in range(3)])
    failures = 0
    while len(idl.tables["Note"].rows) < 3 or not failures:
        try:
            until([writer, idl], lambda: len(idl.tables["Note"].rows) == 3)
        except ValueError:
            failures += 1
    say("failures", failures, "heard at least once", "Note" in calls)
    idl.notify = lambda event, row, updates=None: None
    commit(writer, lambda txn: [row.delete() for row in list(writer.tables["Note"].rows.values())])
    settle(lambda: not idl.tables["Note"].rows)
    del idl.notify

    gone = idl.tables["Rack"].rows
    rack = next(iter(gone.values()))
    commit(writer, lambda txn: setattr(by_name(writer, "Site", "first"), "racks", []))
    settle(lambda: not idl.tables["Rack"].rows)
    attempt("a deleted row", lambda: show(row_values(rack)))
    attempt("write to it", lambda: setattr(rack, "name", "x"))

    idl.tables["Site"].columns["seen"].alert = False
    seqno = idl.change_seqno

    def silent(event, row, updates=None):
        say("silent column", event)

    idl.notify = silent
    commit(writer, lambda txn: setattr(by_name(writer, "Site", "first"), "seen", 8))
    settle(lambda: site.seen == 8)
    del idl.notify

    commit(writer, lambda txn: by_name(writer, "Site", "first").delete())
    settle(lambda: not idl.tables["Site"].rows)
    attempt("its last values", lambda: show(row_values(site)))

    commit(writer, lambda txn: setattr(txn.insert(writer.tables["Site"]), "name", "second"))
    settle(lambda: idl.tables["Site"].rows)
    say("reconnecting")
    seqno = idl.change_seqno
    idl.force_reconnect()
    settle(lambda: idl.change_seqno != seqno and idl.tables["Site"].rows)
    contents(idl)


main()
