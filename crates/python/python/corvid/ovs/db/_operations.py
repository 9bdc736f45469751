"""Operations of RFC 7047 5.2 as a transaction adds them itself: for rows that the replica does not
have, the core cannot make them.
"""

from . import data as _data
from . import error as _error


def where_uuid_is(uuid):
    """The rows of one UUID."""
    return [["_uuid", "==", ["uuid", str(uuid)]]]


def update_operation(table, uuid, column_name, datum):
    """A new value of a column."""
    return {"op": "update", "table": table.name, "where": where_uuid_is(uuid), "row": {column_name: datum.to_json()}}


def element_mutations(column, kind, key, value):
    """The mutations for a change of one element.

    Raises :class:`ovs.db.error.Error` for an element that does not fit the column.
    """
    key_json = _atom_json(column.type.key, key)
    if kind == "add":
        return [[column.name, "insert", ["set", [key_json]]]]
    if kind in ("remove", "remove_key"):
        return [[column.name, "delete", ["set", [key_json]]]]
    # The server's insertion leaves the value of a key that is there.
    pair = [key_json, _atom_json(column.type.value, value)]
    return [[column.name, "delete", ["set", [key_json]]], [column.name, "insert", ["map", [pair]]]]


def _atom_json(base, value):
    if base is None:
        raise _error.Error("the column has no elements of this kind")
    uuid = getattr(value, "uuid", value)
    atom = _data.Atom.new(uuid)
    if atom.type != base.type:
        raise _error.Error("expected %s, got %s" % (base.type.to_string(), type(value)))
    return atom.to_json()
