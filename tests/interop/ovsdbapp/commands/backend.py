"""The part that every API of ovsdbapp inherits: the db_* commands, look-ups, indexes, transactions, start and stop.

`everyday` runs for each API with rows of its own schema, so that no API has these methods unproved.
"""

import uuid

from ovsdbapp.backend.ovs_idl import command, rowview

# API: (table, how a row is made, its name, a map column, a set column and members, an index column)
SAMPLES = {
    "northbound": ("Address_Set", {"name": "sample"}, "sample", "external_ids", ("addresses", ["10.0.0.2", "10.0.0.1"]), "addresses"),
    "southbound": ("Chassis", {"name": "sample"}, "sample", "external_ids", ("transport_zones", ["z2", "z1"]), "hostname"),
    "open_vswitch": ("Bridge", {"name": "sample"}, "sample", "external_ids", ("protocols", ["OpenFlow13", "OpenFlow10"]), "datapath_type"),
    "hardware_vtep": ("Logical_Switch", {"name": "sample"}, "sample", "other_config", ("tunnel_key", [7]), "description"),
    "interconnection": ("Transit_Switch", {"name": "sample"}, "sample", "external_ids", None, "other_config"),
}
# Where rows of that table cannot stand alone: (another table, its columns).
BRIEF = {"open_vswitch": ("Queue", {}), "southbound": ("Chassis_Private", {"name": "brief"})}
NOWHERE = uuid.UUID("00000000-0000-4000-8000-000000000001")


def everyday(play):
    table, columns, name, pairs, members, _ = SAMPLES[play.title]
    do = play.do
    play.scene("the commands of every API")
    if play.title == "open_vswitch":
        do.add_br(name)
    elif play.title == "southbound":
        do.chassis_add(name, ["geneve"], "192.0.2.200")
    else:
        do.db_create(table, **columns)
    do.db_create(table, **columns)
    # A column that is not there is left to the other plays: the original cannot put the new row into its message.
    do.db_create("Nosuch", name="x")
    play.contents(table)
    maps(play, table, name, pairs)
    if members:
        sets(play, table, name, *members)
    reading(play, table, name, pairs)
    lookups(play, table, name)
    transactions(play, table, name, pairs)
    play.contents(table)
    play.scene("removal of the sample")
    do.db_destroy(table, name)
    brief, values = BRIEF.get(play.title, (table, {"name": "brief"}))
    made = do.db_create_row(brief, **values)
    do.db_destroy(brief, made.uuid)
    do.db_destroy(brief, made.uuid)
    do.db_destroy(table, "nosuch")
    do.db_destroy(table, NOWHERE)
    play.contents()
    connection(play)


def maps(play, table, name, pairs):
    do = play.do
    play.scene("maps")
    do.db_set(table, name, (pairs, {"a": "1", "b": "2"}))
    do.db_set(table, name, (pairs, {"b": "3"}))
    do.db_set(table, name, (pairs, {"b": "3"}))
    do.db_set(table, name, (pairs, {"b": 4}))
    do.db_set(table, name, **{pairs: {"c": "5"}})
    do.db_set(table, name, (pairs, [("d", "6")]))
    # A scalar for a map is left out: the original raises while it commits and leaves its transaction open for ever.
    # A map for a column that is not there is left out: the original keeps the verify and fails every later transaction.
    do.db_set(table, name, ("nosuch", 1))
    do.db_set(table, "nosuch", (pairs, {}))
    do.db_set(table, "nosuch", (pairs, {}), if_exists=False)
    do.db_set(table, NOWHERE, (pairs, {}), if_exists=False)
    do.db_add(table, name, pairs, {"a": "not over"}, {"e": "7"})
    do.db_add(table, name, pairs, {"e": 8})
    do.db_add(table, "nosuch", pairs, {"e": "8"})
    do.db_get(table, name, pairs)
    do.db_remove(table, name, pairs, "a", "nosuch")
    do.db_remove(table, name, pairs, b="3")
    do.db_remove(table, name, pairs, c="wrong value", nosuch="x")
    do.db_remove(table, name, pairs, "a", if_exists=True)
    do.db_remove(table, "nosuch", pairs, "a")
    do.db_remove(table, "nosuch", pairs, "a", if_exists=True)
    do.db_remove(table, name, "nosuch", "a")
    play.contents(table)
    do.db_clear(table, name, pairs)
    do.db_clear(table, name, pairs)
    do.db_clear(table, name, "nosuch")
    do.db_clear(table, "nosuch", pairs)
    do.db_get(table, name, pairs)


def sets(play, table, name, column, members):
    do = play.do
    play.scene("sets")
    do.db_set(table, name, (column, members))
    do.db_set(table, name, (column, tuple(members)))
    do.db_set(table, name, (column, set(members)))
    do.db_set(table, name, (column, members[0]))
    do.db_add(table, name, column, *members)
    do.db_add(table, name, column, members[0])
    do.db_add(table, name, column, {"a": "map"})
    do.db_add(table, name, column, 1.5)
    do.db_get(table, name, column)
    do.db_find(table, (column, "=", members), columns=["name", column])
    do.db_find(table, (column, "!=", members), columns=["name", column])
    if len(members) > 1:
        # With an optional column, the exception depends on which row comes first.
        do.db_find(table, (column, "{>=}", members), columns=["name"])
    do.db_remove(table, name, column, members[0])
    do.db_remove(table, name, column, members[0])
    do.db_remove(table, name, column, 1.5)
    do.db_clear(table, name, column)
    do.db_get(table, name, column)


def reading(play, table, name, pairs):
    do = play.do
    play.scene("reading")
    do.db_set(table, name, (pairs, {"k": "v", "l": "w"}))
    do.db_get(table, name, "name")
    do.db_get(table, name, "_uuid")
    do.db_get(table, name, "nosuch")
    do.db_get(table, "nosuch", "name")
    do.db_get("Nosuch", name, "name")
    do.db_list(table)
    do.db_list(table, columns=["name", "_uuid"])
    do.db_list(table, [name], columns=["name", pairs])
    do.db_list(table, [name, "nosuch"], columns=["name"])
    do.db_list(table, [name, "nosuch"], columns=["name"], if_exists=True)
    do.db_list(table, ["nosuch"], if_exists=True)
    do.db_list(table, [name], columns=["nosuch"])
    do.db_list(table, [])
    do.db_list_rows(table)
    do.db_list_rows(table, [name])
    do.db_list_rows(table, ["nosuch"])
    do.db_list_rows(table, ["nosuch"], if_exists=True)
    do.db_find(table, ("name", "=", name))
    do.db_find(table, ("name", "!=", name), columns=["name"])
    do.db_find(table, ("name", "=", "nosuch"), columns=["name"])
    do.db_find(table, ("name", "=", name), (pairs, "=", {"k": "v"}), columns=["name"])
    do.db_find(table, (pairs, "=", {"k": "other"}), columns=["name"])
    do.db_find(table, (pairs, "!=", {"k": "other"}), columns=["name"])
    do.db_find(table, (pairs, "!=", {"nosuch": "v"}), columns=["name"])
    do.db_find(table, (pairs, "<", {"k": "v"}), columns=["name"])
    do.db_find(table, ("name", "<", name), columns=["name"])
    do.db_find(table, ("name", "=", 1))
    do.db_find(table, ("nosuch", "=", 1))
    do.db_find("Nosuch")
    do.db_find(table, columns=["name"])
    do.db_find_rows(table, ("name", "=", name))
    do.db_find_rows(table)
    view = play.api.db_find_rows(table, ("name", "=", name)).execute(check_error=True)[0]
    view_of_row(play, view)


def view_of_row(play, view):
    """A RowView and its row: text, equality, hash, attributes, dictionary."""
    row = view._row
    other = rowview.RowView(row)
    play.attempt("RowView as text", lambda: str(view))
    play.attempt("RowView as a dictionary", view.asdict)
    play.attempt("RowView equal to itself, another view, its row, nothing", lambda: [view == view, view == other, view == row, row == view, view != other])
    play.attempt("RowView compared with None", lambda: view == None)  # noqa: E711
    play.attempt("RowView in a set", lambda: len({view, other}))
    play.attempt("RowView of a column that is not there", lambda: view.nosuch)
    play.attempt("RowView setting a column outside a transaction", lambda: setattr(row, "name", "x"))
    play.attempt("Row as text", lambda: str(row))


def lookups(play, table, name):
    play.scene("look-ups")
    call = play.call
    found = call("lookup", table, name)
    call("lookup", table, str(found.uuid))
    call("lookup", table, found.uuid)
    call("lookup", table, "nosuch")
    call("lookup", table, "nosuch", None)
    call("lookup", table, "nosuch", default="default")
    call("lookup", table, NOWHERE)
    call("lookup", table, str(NOWHERE))
    call("lookup", table, NOWHERE, default=None)
    call("lookup", table, "")
    call("lookup", table, None)
    call("lookup", table, 7)
    call("lookup", "Nosuch", name)
    call("lookup", table, name, timeout=1)
    call("lookup", table, play.api.db_create(table, name="made by a command"))


class Failing(command.BaseCommand):
    def run_idl(self, txn):
        raise LookupError("fails on purpose")


def transactions(play, table, name, pairs):
    api = play.api
    play.scene("transactions")
    play.coverage.called("transaction", (), {})
    play.coverage.called("create_transaction", (), {})

    def several():
        with api.transaction(check_error=True) as txn:
            one = txn.add(api.db_set(table, name, (pairs, {"t": "1"})))
            txn.extend([api.db_get(table, name, pairs), api.db_set(table, name, (pairs, {"t": "2"}))])
        return [one, txn.result]

    def nested(flag):
        with api.transaction(check_error=True) as outer:
            outer.add(api.db_set(table, name, (pairs, {"outer": str(flag)})))
            with api.transaction(check_error=True, nested=flag) as inner:
                inner.add(api.db_set(table, name, (pairs, {"inner": str(flag)})))
            return inner is outer

    def broken(check_error):
        with api.transaction(check_error=check_error) as txn:
            txn.add(api.db_set(table, name, (pairs, {"broken": "yes"})))
            txn.add(Failing(api))
            txn.add(api.db_set(table, name, (pairs, {"after": "yes"})))
        return txn.result

    def left():
        with api.transaction(check_error=True) as txn:
            txn.add(api.db_set(table, name, (pairs, {"left": "yes"})))
            raise KeyError("leaves the block")

    def by_hand():
        txn = api.create_transaction(check_error=True)
        txn.add(api.db_set(table, name, (pairs, {"hand": "yes"})))
        return [txn.commit(), str(txn)]

    play.attempt("several commands, reading between", several)
    play.attempt("nested transactions become one", lambda: nested(True))
    play.attempt("nested transactions kept apart", lambda: nested(False))
    play.attempt("a command fails in the middle, check_error", lambda: broken(True))
    play.attempt("a command fails in the middle, no check_error", lambda: broken(False))
    play.attempt("the block is left by an exception", left)
    play.attempt("a transaction made by hand", by_hand)
    play.attempt("an empty transaction", lambda: api.create_transaction(check_error=True).commit())


def connection(play):
    play.scene("indexes and the connection")
    table, _, _, _, _, column = SAMPLES[play.title]
    # Together with the name, because maps have no order.
    play.call("create_index", table, "name", column)
    play.call("create_index", table, column, "name")
    play.call("create_index", "Nosuch", "name")
    play.attempt("indexes", lambda: {name: sorted(one.rows.indexes) for name, one in play.api.tables.items() if one.rows.indexes})
    play.call("autocreate_indices")
    play.attempt("indexes", lambda: {name: sorted(one.rows.indexes) for name, one in play.api.tables.items() if one.rows.indexes})
    play.call("start_connection", play.connection)
    play.resume(play.label("restart_connection", (), {}), lambda: play.api.restart_connection())
    play.coverage.called("restart_connection", (), {})
    play.attempt("start of a connection that runs", play.connection.start)
    if play.title == "interconnection":
        # Each start waits for the backoff, so one API is enough.
        play.attempt("stop", lambda: play.connection.stop(10))
        play.attempt("stop of a connection that does not run", lambda: play.connection.stop(10))
        play.resume("start again", play.connection.start)
    play.attempt("state", lambda: [play.idl.has_ever_connected(), play.connection.is_running, play.idl.state])
    play.contents()
