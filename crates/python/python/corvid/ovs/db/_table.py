"""The tables of an Idl: what the schema says of them, and their rows.

The rows are in the core; :class:`TableRows` reads them there, and so do the indexes.
"""

import functools
import uuid as _uuid
from collections import abc

from corvid import errors as _errors

from . import custom_index
from ._conditions import ConditionState, normalized


class IdlColumn:
    """A column of a table, and whether its changes count: with ``alert`` false they are not
    notified.
    """

    def __init__(self, column):
        self._column = column
        self.alert = True

    def __getattr__(self, attr):
        if attr == "_column":
            raise AttributeError(attr)
        return getattr(self._column, attr)


class IdlTable:
    """A table of an Idl."""

    def __init__(self, idl, table):
        self._table = table
        self.need_table = False
        self.idl = idl
        self.columns = {name: IdlColumn(column) for name, column in table.columns.items()}
        self.rows = TableRows(idl, self)
        self._condition_state = ConditionState()

    def __getattr__(self, attr):
        if attr == "_table":
            raise AttributeError(attr)
        return getattr(self._table, attr)

    @property
    def condition_state(self):
        """The condition on its way to the server."""
        return self._condition_state

    @property
    def condition(self):
        """The last condition that was set."""
        return self._condition_state.latest

    @condition.setter
    def condition(self, condition):
        self.idl._set_condition(self, normalized(condition))

    @classmethod
    def schema_tables(cls, idl, schema):
        """The tables of a schema, by name."""
        return {name: cls(idl, table) for name, table in schema.tables.items()}


class TableRows(abc.Mapping):
    """The rows of a table by UUID. In an open transaction it shows the rows as the transaction
    leaves them.
    """

    def __init__(self, idl, table):
        self._idl = idl
        self._table = table
        self.indexes = {}

    @property
    def table(self):
        """The table."""
        return self._table

    @property
    def data(self):
        """Rows by UUID, each in a list, as the original stores them. Made for the look of it at
        each use.
        """
        return {row.uuid: [row] for row in self.values()}

    def _native(self):
        """The core's client; None while it does not have the table, which a program may have added
        since.
        """
        return self._idl._native if self._table.name in self._idl._replicated else None

    def __getitem__(self, key):
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def get(self, key, default=None):
        """The row of a UUID."""
        native = self._native()
        if native is None or not isinstance(key, _uuid.UUID):
            return default
        row = native.row(self._table.name, key)
        return default if row is None else row

    def __contains__(self, key):
        native = self._native()
        return native is not None and isinstance(key, _uuid.UUID) and native.has_row(self._table.name, key)

    def __len__(self):
        native = self._native()
        return 0 if native is None else native.row_count(self._table.name)

    def __iter__(self):
        native = self._native()
        return iter(() if native is None else native.uuids(self._table.name))

    def values(self):
        """The rows."""
        native = self._native()
        return [] if native is None else native.rows(self._table.name)

    def keys(self):
        """The UUIDs."""
        return list(self)

    def items(self):
        """UUIDs and rows."""
        return [(row.uuid, row) for row in self.values()]

    def copy(self):
        """The rows of this moment, as a dict."""
        return dict(self.items())

    def __str__(self):
        return str(self.data)

    @functools.cached_property
    def IndexEntry(self):  # noqa: N802 - the name of the original
        """A tuple of values of columns, to look an index up with."""
        return custom_index.IndexEntryClass(self._table)

    def index_create(self, name):
        """Creates an index without columns."""
        if name in self.indexes:
            raise ValueError("An index named {} already exists".format(name))
        index = self.indexes[name] = TableIndex(name, self)
        return index

    def _read_only(self, *_arguments, **_keywords):
        raise NotImplementedError

    update = setdefault = pop = popitem = fromkeys = _read_only


class TableIndex:
    """The rows of a table in the order of some of its columns.

    The core keeps the order, unless a column has a function ``key``: then the rows are sorted at
    each use.
    """

    def __init__(self, name, rows):
        self.name = name
        self.columns = []
        self._rows = rows
        self._core = None

    def __repr__(self):
        return "{}(name={})".format(type(self).__name__, self.name)

    def add_column(self, column, direction=custom_index.OVSDB_INDEX_ASC, key=None):
        """Adds a column, behind the others."""
        self.columns.append(custom_index.ColumnIndex(column, direction, key))
        self._core = None
        # The rows that are there are put in order now, not at the first look-up.
        self._of_core()

    def add_columns(self, *columns):
        """Adds columns, ascending."""
        self.columns.extend(
            custom_index.ColumnIndex(column, custom_index.OVSDB_INDEX_ASC, None) for column in columns
        )
        self._core = None
        self._of_core()

    def _of_core(self):
        """The index of the core; None where a function of the program decides, or where nothing
        does.
        """
        native = self._rows._native()
        if native is None or not self.columns or any(column.key is not None for column in self.columns):
            return None
        if self._core is None or self._core[0] is not native:
            names = [
                "-" + column.column if column.direction == custom_index.OVSDB_INDEX_DESC else column.column
                for column in self.columns
            ]
            self._core = (native, native.add_index(self._rows._table.name, names))
        return self._core[1]

    def irange(self, start, end):
        """The rows from one entry to another, both included."""
        core = self._of_core()
        if core is None:
            return iter(self._sorted_between(start, end))
        try:
            return iter(core.range(self._key(start), self._key(end)))
        except _errors.ColumnError as error:
            raise TypeError(str(error)) from None

    def _key(self, entry):
        if entry is None:
            return None
        values = tuple(getattr(entry, column.column) for column in self.columns)
        if None in values:
            raise TypeError("an index entry of %s lacks a value" % self._rows._table.name)
        return values[0] if len(values) == 1 else values

    def _sorted(self):
        return sorted(self._rows.values(), key=functools.cmp_to_key(self._compare))

    def _sorted_between(self, start, end):
        rows = self._sorted()
        if start is not None:
            rows = [row for row in rows if self._compare(row, start, False) >= 0]
        if end is not None:
            rows = [row for row in rows if self._compare(row, end, False) <= 0]
        return rows

    def _compare(self, left, right, is_total=True):
        for column in self.columns:
            key = column.key or (lambda entry, name=column.column: getattr(entry, name))
            of_left, of_right = key(left), key(right)
            if of_left != of_right:
                is_less = (of_left < of_right) == (column.direction != custom_index.OVSDB_INDEX_DESC)
                return -1 if is_less else 1
        if not is_total:
            return 0
        return -1 if left.uuid < right.uuid else int(left.uuid > right.uuid)

    def __iter__(self):
        core = self._of_core()
        return iter(self._sorted() if core is None else core.range())

    def __len__(self):
        return len(self._rows)

    def __contains__(self, row):
        return row.uuid in self._rows

    @property
    def values(self):
        """The entries of the index."""
        return _Entries(self)

    def clear(self):
        """Rows leave an index when they leave the table, so there is nothing to do."""

    add = remove = clear


class _Entries:
    """The entries of an index, in order."""

    def __init__(self, index):
        self._index = index

    def irange(self, start=None, end=None):
        """The entries from one to another, both included."""
        return map(_Entry, self._index.irange(start, end))

    def __iter__(self):
        return map(_Entry, self._index)

    def __len__(self):
        return len(self._index)


@functools.total_ordering
class _Entry:
    """An entry of an index: a row that compares by UUID with those of other indexes, so that
    programs can intersect ranges of equal keys.
    """

    __slots__ = ("_row", "uuid")

    def __init__(self, row):
        self._row = row
        self.uuid = row.uuid

    def __getattr__(self, name):
        return getattr(self._row, name)

    def __eq__(self, other):
        return self.uuid == other.uuid

    def __lt__(self, other):
        return self.uuid < other.uuid

    def __hash__(self):
        return hash(self.uuid)
