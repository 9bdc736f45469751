"""What programs look at inside rows and transactions: `_data`, `_changes`, `_txn_rows`, in every state of a row."""
# needs: server inventory-1.ovsschema

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
from idl_transcript import attempt, by_name, connected, say, until  # noqa: E402


def keys(value):
    """The names in a mapping of columns."""
    return None if value is None else sorted(value)


def inside(what, txn, **rows):
    for name, row in rows.items():
        attempt(f"{what}: {name}: _data", lambda: keys(row._data))
        attempt(f"{what}: {name}: _changes", lambda: keys(row._changes))
        attempt(f"{what}: {name}: in _txn_rows", lambda: row.uuid in txn._txn_rows and txn._txn_rows[row.uuid] is row)
    attempt(f"{what}: rows of the transaction", lambda: len(txn._txn_rows))
    attempt(f"{what}: rows whose insertion was sent", lambda: len(txn._inserted_rows))


def main():
    idl = connected("inventory-1.ovsschema")
    txn = ovs.db.idl.Transaction(idl)
    inside("nothing done", txn)
    new = txn.insert(idl.tables["Site"])
    inside("inserted", txn, new=new)
    new.name = "first"
    inside("one column set", txn, new=new)
    other = txn.insert(idl.tables["Site"])
    other.name = "second"
    say(txn.commit())
    attempt("sent: rows whose insertion was sent", lambda: len(txn._inserted_rows))
    attempt("sent: the UUID of a row", lambda: txn._inserted_rows[new.uuid].real)
    say(txn.commit_block())
    inside("committed", txn)
    attempt("committed: the UUID of a row", lambda: txn._inserted_rows[new.uuid].real == txn.get_insert_uuid(new.uuid))
    until([idl], lambda: len(idl.tables["Site"].rows) == 2)
    first, second = by_name(idl, "Site", "first"), by_name(idl, "Site", "second")
    attempt("arrived: _changes", lambda: keys(first._changes))

    txn = ovs.db.idl.Transaction(idl)
    inside("opened", txn, first=first)
    first.contact = "alice"
    inside("written", txn, first=first, second=second)
    attempt("written: value in _data", lambda: first._data["contact"].to_string())
    attempt("written: value in _changes", lambda: first._changes["contact"].to_string())
    first.contact = first.contact
    inside("written again", txn, first=first)
    second.verify("name")
    inside("verified", txn, second=second)
    second.delete()
    inside("deleted", txn, second=second)
    attempt("deleted: value in _data", lambda: second._data["name"].to_string())
    txn.abort()
    inside("aborted", txn, first=first, second=second)

    txn = ovs.db.idl.Transaction(idl)
    first.name = "first"
    inside("written as it was", txn, first=first)
    fleeting = txn.insert(idl.tables["Site"])
    fleeting.delete()
    inside("inserted and deleted", txn, fleeting=fleeting)
    second.delete()
    say(txn.commit_block())
    until([idl], lambda: len(idl.tables["Site"].rows) == 1)
    attempt("gone: _data", lambda: keys(second._data))
    attempt("gone: _changes", lambda: keys(second._changes))


main()
