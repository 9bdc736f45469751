"""Transactions: statuses, errors, element changes, prerequisites, counters, operations of the program's own."""
# needs: server inventory-1.ovsschema
# not on: debian: it has no operations of the program's own
# differs: both: ^set and remove: the original sends both
# differs: both: ^verify alone: the original does not send it
# differs: both: ^counter without another change ->: the original fails when the counter is 0

import json
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
from idl_transcript import attempt, by_name, connected, contents, only, say, until  # noqa: E402

Transaction = ovs.db.idl.Transaction


def commit(idl, what, change, **attributes):
    """Runs a change in a transaction of its own."""
    txn = Transaction(idl)
    for name, value in attributes.items():
        setattr(txn, name, value)
    try:
        change(txn)
    except Exception as error:  # noqa: BLE001 - it is a line of the transcript
        say(what, "!!", type(error).__name__)
        txn.abort()
        return txn
    status = txn.commit_block()
    say(what, "->", status, details(txn) if status == txn.ERROR else "")
    return txn


def details(txn):
    """An error. Which of two rows is named first in it is chance."""
    error = json.loads(txn.get_error())
    return error["error"], error["details"].partition(".")[0]


def fill(txn):
    idl = txn.idl
    for number in range(3):
        site = txn.insert(idl.tables["Site"])
        site.name, site.labels = f"s{number}", {"n": str(number), "k": "v"}
        device = txn.insert(idl.tables["Device"])
        device.name, device.ports, device.kind = f"d{number}", [1, 2, number + 5], "switch"
        rack = txn.insert(idl.tables["Rack"])
        rack.name, rack.serial, rack.units, rack.devices = f"r{number}", f"x{number}", 1 + number, [device]
        site.racks = [rack]


def main():
    idl = connected("inventory-1.ovsschema")
    other = connected("inventory-1.ovsschema")
    attempt("names", lambda: [Transaction.status_to_string(getattr(Transaction, name)) for name in (
        "UNCOMMITTED", "UNCHANGED", "INCOMPLETE", "ABORTED", "SUCCESS", "TRY_AGAIN", "NOT_LOCKED", "ERROR")])
    commit(idl, "fill", fill)
    until([idl, other], lambda: len(other.tables["Site"].rows) == 3)
    contents(other)

    txn = Transaction(idl)
    attempt("a second one", lambda: Transaction(idl) and None)
    attempt("run in between", idl.run)
    attempt("open", lambda: (txn.get_error(), txn.idl is idl, idl.txn is txn))
    site = by_name(idl, "Site", "s0")
    site.contact = "alice"
    attempt("commit", lambda: txn.commit() in (txn.INCOMPLETE, txn.SUCCESS))
    attempt("no transaction is open", lambda: (idl.txn, site.contact))
    attempt("then", txn.commit_block)
    attempt("once more", txn.commit)
    attempt("seen", lambda: site.contact)
    attempt("insert when it is over", lambda: txn.insert(idl.tables["Site"]))

    new = {}

    def insert(txn):
        new["row"] = txn.insert(idl.tables["Site"])
        new["row"].name = "new"

    txn = commit(idl, "insert", insert)
    attempt("its UUID", lambda: txn.get_insert_uuid(new["row"].uuid) == by_name(idl, "Site", "new").uuid)
    attempt("UUID of another", lambda: txn.get_insert_uuid(uuid.uuid4()))

    def vanish(txn):
        new["row"] = txn.insert(idl.tables["Site"])
        new["row"].name = "gone"
        new["row"].delete()

    txn = commit(idl, "insert and delete", vanish)
    commit(idl, "nothing", lambda txn: None)
    commit(idl, "equal value", lambda txn: setattr(site, "contact", "alice"))
    commit(idl, "only a comment", lambda txn: txn.add_comment("hello"))
    commit(idl, "duplicate", lambda txn: setattr(txn.insert(idl.tables["Site"]), "name", "s1"))
    commit(idl, "aborted in between", lambda txn: txn.abort())
    commit(idl, "dry run", lambda txn: setattr(site, "contact", "bob"), dry_run=True)
    attempt("nothing has changed", lambda: site.contact)
    commit(idl, "an attribute of the program's own", lambda txn: setattr(site, "contact", "carol"), expected_ifaces={1})

    commit(idl, "set key", lambda txn: site.setkey("labels", "a", "1"))
    commit(idl, "replace key", lambda txn: site.setkey("labels", "a", "2"))
    commit(idl, "equal key", lambda txn: site.setkey("labels", "a", "2"))
    commit(idl, "remove key", lambda txn: site.delkey("labels", "n"))
    commit(idl, "remove a key of another value", lambda txn: site.delkey("labels", "k", "other"))
    commit(idl, "remove a key of this value", lambda txn: site.delkey("labels", "k", "v"))

    def set_and_remove(txn):
        site.setkey("labels", "b", "1")
        site.delkey("labels", "b")

    commit(idl, "set and remove", set_and_remove)
    until(idl, lambda: site.labels.get("a") == "2")
    commit(idl, "clean up", lambda txn: site.delkey("labels", "b"))
    attempt("labels", lambda: site.labels)
    device = by_name(idl, "Device", "d0")
    commit(idl, "remove a key that is not there", lambda txn: site.delkey("labels", "nothing"))
    commit(idl, "add a value that is there", lambda txn: device.addvalue("ports", 1))
    commit(idl, "remove a value that is not there", lambda txn: device.delvalue("ports", 77))

    def equal_and_other(txn):
        site.setkey("labels", "a", "2")
        site.setkey("labels", "a", "3")

    commit(idl, "equal key, then another value", equal_and_other)
    until(idl, lambda: site.labels.get("a") == "3")
    commit(idl, "add value", lambda txn: device.addvalue("ports", 9))
    commit(idl, "remove value", lambda txn: device.delvalue("ports", 1))
    commit(idl, "wrong value", lambda txn: device.addvalue("ports", "x"))
    attempt("ports", lambda: device.ports)

    def partial(txn):
        device.addvalue("ports", 20)
        say("seen in the transaction", device.ports)
        device.delvalue("ports", 2)
        say("seen in the transaction", device.ports)

    commit(idl, "several values", partial)
    attempt("ports", lambda: device.ports)

    def nested(txn):
        rack = txn.insert(idl.tables["Rack"])
        rack.name, rack.serial, rack.units = "rn", "xn", 4
        site.addvalue("racks", rack)
        device = txn.insert(idl.tables["Device"])
        device.name, device.kind = "dn", "server"
        rack.addvalue("devices", device)

    commit(idl, "new rows in element changes", nested)
    attempt("racks", lambda: sorted(rack.name for rack in site.racks))

    def change_elsewhere(contact):
        txn = Transaction(other)
        by_name(other, "Site", "s0").contact = contact
        say("elsewhere ->", txn.commit_block())

    def verify_and_write(txn):
        site.verify("contact")
        change_elsewhere("dave")
        site.open = True

    commit(idl, "verify of a value that has changed", verify_and_write)
    until(idl, lambda: site.contact == ["dave"])

    def verify_alone(txn):
        site.verify("contact")
        change_elsewhere("erin")
        by_name(idl, "Site", "s1").open = True

    commit(idl, "verify alone", verify_alone)
    commit(idl, "verify alone, and then without", lambda txn: setattr(by_name(idl, "Site", "s1"), "open", True))
    until(idl, lambda: site.contact == ["erin"])

    def verify_unchanged(txn):
        site.verify("contact")
        site.open = True

    commit(idl, "verify of a value that is the same", verify_unchanged)

    commit(idl, "counter without another change", lambda txn: site.increment("seen"))

    def count(txn):
        site.contact = "frank"
        site.increment("seen")

    txn = commit(idl, "counter", count)
    attempt("its value", txn.get_increment_new_value)

    def count_twice(txn):
        site.increment("seen")
        site.increment("seen")

    commit(idl, "two counters", count_twice)
    commit(idl, "an operation", lambda txn: txn.add_op({"op": "insert", "table": "Site", "row": {"name": "by operation"}}))
    commit(idl, "a wrong operation", lambda txn: txn.add_op({"op": "nothing"}))
    until(idl, lambda: len(idl.tables["Site"].rows) == 5)

    commit(idl, "delete a row of a root table", lambda txn: by_name(idl, "Site", "by operation").delete())
    commit(idl, "delete a row of another table", lambda txn: by_name(idl, "Rack", "r1").delete())
    attempt("it stays", lambda: len(idl.tables["Rack"].rows))

    def reference_to_nothing(txn):
        site.racks = [uuid.UUID(int=7)]

    commit(idl, "a reference to nothing", reference_to_nothing)
    until([idl, other], lambda: idl.change_seqno and len(other.tables["Site"].rows) == 4)
    contents(idl)
    commit(idl, "delete everything", lambda txn: [row.delete() for row in list(idl.tables["Site"].rows.values())])
    until(idl, lambda: not idl.tables["Rack"].rows)
    contents(idl)


main()
