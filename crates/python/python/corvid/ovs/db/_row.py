"""Rows.

A row that the replica has is a :class:`Row`: the core keeps its values, and makes one object for
each row. :class:`DetachedRow` is a row that a program made itself, of values of its own.
"""

import functools

from corvid import _native

from .. import vlog as _vlog
from . import data as _data
from . import error as _error
from ._operations import update_operation, where_uuid_is

vlog = _vlog.Vlog("idl")


class UnknownColumn(KeyError, AttributeError):
    """An assignment to a column that the table does not have.

    The original raises KeyError, though attributes are at stake; programs may expect either.
    """


class ColumnDefaultDict(dict):
    """Values by column. All columns of the table are keys; those without a value have the default
    of their type, and `get` does not know them.
    """

    __slots__ = ("_table",)

    def __init__(self, table):
        super().__init__()
        self._table = table

    def __missing__(self, name):
        return _data.Datum.default(self._table.columns[name].type)

    def keys(self):
        """The names of all columns."""
        return self._table.columns.keys()

    def values(self):
        """The values of all columns."""
        return (self[name] for name in self)

    def __iter__(self):
        return iter(self._table.columns)

    def __contains__(self, name):
        return name in self._table.columns


class Row(_native.LiveRow):
    """A row of a table. Its columns are attributes.

    Reading a set or a map makes a new ``list`` or ``dict`` each time. A column of one value is an
    ``int``, ``float``, ``bool``, ``str`` or ``uuid.UUID``, perhaps the object of an earlier read.
    References are rows. Assigning needs an open transaction of the row's Idl. Inside it the row
    shows what was assigned.
    """

    __slots__ = ("_idl", "_table", "_persist_uuid")

    def __new__(cls, idl, table, uuid, data, persist_uuid=False):
        """A row apart from the replica, for changes of a row that has not arrived, and for
        tests.
        """
        row = _native.LiveRow.__new__(DetachedRow, _nowhere(), "Nowhere", uuid)
        _fill(row, idl, table, persist_uuid)
        if not isinstance(row, cls):
            # Of the class of a table's rows, for which Python calls no __init__.
            DetachedRow.__init__(row, idl, table, uuid, data, persist_uuid)
        return row

    def __init__(self, idl, table, uuid, data, persist_uuid=False):
        """As ``__new__``, which has made the row."""

    @classmethod
    def from_json(cls, idl, table, uuid, row_json):
        """A row apart from the replica, with values as in RFC 7047's ``<row>``. Columns that the
        table does not have are left out with a warning.
        """
        values = {}
        for name, value in row_json.items():
            column = table.columns.get(name)
            if column is None:
                vlog.warn("unknown column %s in table %s" % (name, table.name))
                continue
            try:
                values[name] = _data.Datum.from_json(column.type, value)
            except _error.Error as error:
                vlog.warn("error parsing column %s in table %s: %s" % (name, table.name, error))
        return cls(idl, table, uuid, values)

    # Hooks of the core, which decides nothing about texts.

    def _unknown_column(self, name):
        raise UnknownColumn(name)

    def _read_only_column(self, name):
        vlog.warn("attempting to write to readonly column %s" % name)

    def _bad_value(self, name, text):
        vlog.err("attempting to write bad value to column %s (%s)" % (name, text))

    def _bad_removal(self, name, text):
        vlog.err("attempting to delete bad value from column %s (%s)" % (name, text))

    def _immutable_column(self, name, value):
        datum = _data.Datum.from_python(self._table.columns[name].type, value, row_to_uuid)
        self._idl.txn._add_unseen(update_operation(self._table, self.uuid, name, datum))

    # The state that the original keeps in attributes, for those who look at it.

    @property
    def _data(self):
        """The server's values, by column; of a new row None. A transaction that deletes the row
        leaves them.

        A column that has to be fetched has a value when it was.
        """
        found = ColumnDefaultDict(self._table)
        if self._has_own_values():
            found.update((name, datum) for name in self._table.columns if (datum := self._datum(name)) is not None)
            return found
        committed = {name: self._committed(name) for name in self._table.columns}
        if None in committed.values():
            return None
        found.update((name, self._datum_of(name, value)) for name, value in committed.items() if self._is_held(name))
        return found

    @property
    def _changes(self):
        """The written columns of the open transaction; None of a row that it deletes."""
        if self._idl.txn is None:
            return {}
        return self._idl.txn._changes_of(self)

    def _datum(self, name):
        try:
            value = getattr(self, name)
        except AttributeError:
            return None
        return self._datum_of(name, value)

    def _datum_of(self, name, value):
        return _data.Datum.from_python(self._table.columns[name].type, value, row_to_uuid)

    def _uuid_to_row(self, atom, base):
        """The row of a UUID that refers to one, or any other value as it is."""
        if base.ref_table_name is None:
            return atom
        table = self._idl.tables.get(base.ref_table_name)
        if table is None:
            raise AttributeError("Table %s is not registered" % base.ref_table_name)
        return table.rows.get(atom)

    # Changes.

    def _txn(self):
        txn = self._idl.txn
        assert txn is not None, "no transaction is open"
        return txn

    def verify(self, column_name):
        """Commits only if the column still has the value that it has now; otherwise the transaction
        is to be tried again.
        """
        txn = self._txn()
        if column_name in self._table.columns:
            txn._verify(self, column_name)

    def delete(self):
        """Deletes the row."""
        self._txn()._delete(self)

    def addvalue(self, column_name, key):
        """Adds an element to a set, whatever else other clients do to the set."""
        self._change("add", column_name, key)

    def delvalue(self, column_name, key):
        """Removes an element from a set."""
        self._change("remove", column_name, key)

    def setkey(self, column_name, key, value):
        """Sets the value of a key of a map."""
        self._change("set", column_name, key, value)

    def delkey(self, column_name, key, value=None):
        """Removes a key from a map; with ``value`` only if that is its value here."""
        self._txn()
        if value is not None:
            mapping = getattr(self, column_name)
            if key not in mapping or mapping[key] != value:
                return
        self._change("remove_key", column_name, key)

    def _change(self, kind, column_name, key, value=None):
        txn = self._txn()
        has_changed = self._change_element(kind, column_name, key, value)
        if has_changed is None:
            txn._change_unseen(self, kind, column_name, key, value)
        else:
            txn._touch(self, column_name)
            if not has_changed:
                txn._repeat(self, kind, column_name, key)

    def increment(self, column_name):
        """Adds one to an integer at the end of the transaction, if that changes anything else."""
        self._txn()._increment(self, column_name)

    def fetch(self, column_name):
        """Asks for the value of a column that is not replicated; it is there when the transaction
        has succeeded.
        """
        self._txn()._fetch(self, column_name)

    def __str__(self):
        values = ["uuid=%s" % self.uuid]
        for name in sorted(self._table.columns):
            try:
                values.append("%s=%s" % (name, rows_to_uuid_strings(getattr(self, name))))
            except AttributeError:
                pass
        return "%s(%s)" % (self._table.name, ", ".join(values))

    def __repr__(self):
        return object.__repr__(self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


_set_idl = Row._idl.__set__
_set_table = Row._table.__set__
_set_persist_uuid = Row._persist_uuid.__set__


@functools.lru_cache(maxsize=None)
def _nowhere():
    """A client that never connects, for the core's part of rows apart."""
    schema = _native.Schema('{"name": "Nowhere", "version": "0.0.0", "tables": {"Nowhere": {"columns": {"nothing": {"type": "string"}}}}}')
    return _native.Client(schema, "unix:/nowhere", {})


def _fill(row, idl, table, persist_uuid=False):
    _set_idl(row, idl)
    _set_table(row, table)
    _set_persist_uuid(row, persist_uuid)


def live_row(idl, native, table, uuid):
    """The object of a row that the replica has, or had."""
    row = _native.LiveRow.__new__(native.row_class(table.name, Row), native, table.name, uuid)
    _fill(row, idl, table)
    return row


class DetachedRow(Row):
    """A row of values of its own. Changes of its elements are sent to the server, which alone knows
    whether it has the row.
    """

    __slots__ = ("_values", "_pending")

    def __new__(cls, *arguments):  # pragma: no cover - rows are made by Row
        raise TypeError("make a Row")

    def __init__(self, idl, table, uuid, data, persist_uuid=False):
        DetachedRow._values.__set__(self, dict(data) if isinstance(data, dict) else {})
        DetachedRow._pending.__set__(self, {})

    @property
    def _data(self):
        return self._values

    def __getattribute__(self, name):
        # The values of its own come before those of a row of this UUID that the replica may have.
        if name.startswith("_") or name not in getattr(self._table, "columns", ()):
            return super().__getattribute__(name)
        if name in self._pending:
            return self._pending[name]
        datum = self._values.get(name)
        if datum is None:
            raise AttributeError("Row instance has no attribute '%s'" % name)
        return datum.to_python(self._uuid_to_row)

    def __setattr__(self, name, value):
        self._txn()
        column = self._table.columns.get(name)
        if column is None:
            raise UnknownColumn(name)
        try:
            datum = _data.Datum.from_python(column.type, value, row_to_uuid)
        except _error.Error as error:
            self._bad_value(name, error)
            return
        self._pending[name] = datum.to_python(self._uuid_to_row)
        self._idl.txn._add_unseen(update_operation(self._table, self.uuid, name, datum))

    def delete(self):
        """Deletes the row of this UUID at the server."""
        operation = {"op": "delete", "table": self._table.name, "where": where_uuid_is(self.uuid)}
        self._txn()._add_unseen(operation)

    def verify(self, column_name):
        """Nothing is known of the row, so nothing can be verified."""
        self._txn()

    def _change(self, kind, column_name, key, value=None):
        self._txn()._change_unseen(self, kind, column_name, key, value)
        if column_name in self._table.columns:
            self._show(kind, column_name, key, value)

    def _show(self, kind, name, key, value):
        try:
            shown = getattr(self, name)
        except AttributeError:
            shown = {} if self._table.columns[name].type.is_map() else []
        if kind == "set":
            shown[key] = value
        elif kind == "remove_key":
            shown.pop(key, None)
        elif kind == "add" and key not in shown:
            shown.append(key)
        elif kind == "remove" and key in shown:
            shown.remove(key)
        self._pending[name] = shown


def row_to_uuid(value):
    """The UUID of a row, and any other value as it is."""
    return value.uuid if isinstance(value, Row) else value


def rows_to_uuid_strings(value):
    """A value of a column, with the UUIDs of rows as text."""
    if isinstance(value, Row):
        return str(value.uuid)
    if isinstance(value, list):
        return [rows_to_uuid_strings(element) for element in value]
    if isinstance(value, dict):
        return {rows_to_uuid_strings(key): rows_to_uuid_strings(of_key) for key, of_key in value.items()}
    return value

