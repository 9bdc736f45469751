"""Indexes that a program makes over the rows of a table of its replica.

It owns the collection of the rows of a table and the sorted indexes over them.  An index holds
entries, which are named tuples of the indexed values and the row's UUID, never rows: an entry does
not change when its row does.  The index remembers the entry of each row, so that a row can be
removed or indexed again after its columns have changed.
"""

import collections
import collections.abc
import functools
import operator

from . import data

try:
    from ..compat.sortedcontainers import SortedKeyList
except ImportError:
    from sortedcontainers import SortedKeyList

OVSDB_INDEX_ASC = "ASC"
OVSDB_INDEX_DESC = "DESC"

ColumnIndex = collections.namedtuple("ColumnIndex", ["column", "direction", "key"])

DictBase = collections.UserDict


@functools.total_ordering
class _Descending(object):
    """A value that sorts in the opposite order."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return other.value < self.value

    __hash__ = None


class MultiColumnIndex(object):
    """Rows sorted by one column, rows equal in it by the next column, and so on.

    Attributes:
        name: The name of the index.
        columns: A list of `ColumnIndex`.
        values: A `SortedKeyList` of the entries.

    Invariant: each entry in `values` belongs to exactly one (row, entry) pair in `_entries`, and
    an index with columns has an entry for each row of its table that has a value in all of them.
    """

    def __init__(self, name):
        self.name = name
        self.columns = []
        self.values = SortedKeyList(key=self._sort_key)
        # The IndexedRows whose rows this index sorts, or None for an index that stands alone.
        self._rows = None
        # The pairs of a row and its entry, by UUID.  More than one row may have a UUID while the
        # reply to an insertion is outstanding.
        self._entries = {}

    def __repr__(self):
        return "%s(name=%s)" % (self.__class__.__name__, self.name)

    def __str__(self):
        return repr(self) + " columns=%s values=%s" % (self.columns,
                                                       [str(v) for v in self.values])

    def add_column(self, column, direction=OVSDB_INDEX_ASC, key=None):
        """Sorts rows that are equal so far by `column`.

        `key`, a function of an entry, replaces the value of the column.
        """
        self.columns.append(ColumnIndex(column, direction, key or operator.attrgetter(column)))
        self._rebuild()

    def add_columns(self, *columns):
        """Adds columns by name, each in ascending order."""
        self.columns.extend(ColumnIndex(column, OVSDB_INDEX_ASC, operator.attrgetter(column))
                            for column in columns)
        self._rebuild()

    def _sort_key(self, entry):
        return [_Descending(column.key(entry)) if column.direction == OVSDB_INDEX_DESC
                else column.key(entry) for column in self.columns]

    def index_entry_from_row(self, row):
        """Returns the entry of `row`; columns that are not indexed have their defaults in it."""
        rows = self._rows if self._rows is not None else row._table.rows
        return rows.IndexEntry(uuid=row.uuid, **{column.column: getattr(row, column.column)
                                                 for column in self.columns})

    def _entry_if_complete(self, row):
        """Returns the entry of `row`, or None if the row lacks a value in an indexed column."""
        try:
            return self.index_entry_from_row(row)
        except AttributeError:
            # An error that has another cause than an absent value must not hide.
            if all(hasattr(row, column.column) for column in self.columns):
                raise
            return None

    def add(self, row):
        """Puts `row` into the index, unless it lacks a value in an indexed column."""
        entry = self._entry_if_complete(row)
        if entry is not None:
            self.values.add(entry)
            self._entries.setdefault(row.uuid, []).append((row, entry))

    def remove(self, row):
        """Takes `row` out of the index; raises ValueError if it is not there.

        The row is found even if its columns have changed since it was added.
        """
        pairs = self._entries.get(row.uuid, ())
        position = self._find(pairs, row)
        if position is None:
            raise ValueError("%r not in list" % (self.index_entry_from_row(row),))
        entry = pairs.pop(position)[1]
        if not pairs:
            del self._entries[row.uuid]
        self.values.remove(entry)

    def _find(self, pairs, row):
        """Returns the position of `row` among the `pairs` of its UUID, or None."""
        for position in reversed(range(len(pairs))):
            if pairs[position][0] is row:
                return position
        if not pairs:
            return None
        # Another object can stand for the same row if its values are the same.
        entry = self.index_entry_from_row(row)
        for position in reversed(range(len(pairs))):
            if pairs[position][1] == entry:
                return position
        return None

    def discard(self, row):
        """Takes `row` out of the index if it is there."""
        if any(pair[0] is row for pair in self._entries.get(row.uuid, ())):
            self.remove(row)

    def refresh(self, row):
        """Puts `row` where its present values belong, whether or not it was in the index."""
        self.discard(row)
        self.add(row)

    def clear(self):
        """Takes all rows out of the index; its columns stay."""
        self.values.clear()
        self._entries.clear()

    def _rebuild(self):
        """Sorts all rows again, because the columns have changed."""
        if self._rows is not None:
            rows = [row for stack in self._rows.data.values() for row in stack]
        else:
            rows = [row for pairs in self._entries.values() for row, entry in pairs]
        self.clear()
        pairs = [(row, self._entry_if_complete(row)) for row in rows]
        pairs = [(row, entry) for row, entry in pairs if entry is not None]
        self.values.update([entry for row, entry in pairs])
        for row, entry in pairs:
            self._entries.setdefault(row.uuid, []).append((row, entry))

    def _row(self, entry):
        rows = self._rows if self._rows is not None else entry._table.rows
        return rows[entry.uuid]

    def irange(self, start, end):
        """Returns an iterator over the rows from `start` to `end`, both included.

        Either is an entry, a row, or None for no limit.
        """
        return (self._row(entry) for entry in self.values.irange(start, end))

    def __iter__(self):
        return (self._row(entry) for entry in self.values)


class _RowsView(collections.abc.ValuesView):
    """The newest row of each UUID."""

    def __iter__(self):
        for stack in self._mapping.data.values():
            yield stack[-1]


class _ItemsView(collections.abc.ItemsView):
    """The pairs of a UUID and its newest row."""

    def __iter__(self):
        for uuid, stack in self._mapping.data.items():
            yield uuid, stack[-1]


class IndexedRows(DictBase, object):
    """The rows of a table by UUID, with the indexes over them.

    Attributes:
        table: The table.
        indexes: The indexes by name.
        data: A dict from each UUID to a list of rows, of which the last one counts.  The list has
            more than one row only while a row that the program inserted with a UUID of its choice
            and the same row from the server exist side by side.
    """

    def __init__(self, table, *args, **kwargs):
        self.table = table
        self.indexes = {}
        DictBase.__init__(self, *args, **kwargs)

    @property
    def IndexEntry(self):
        """The class of index entries of the table."""
        # Most tables never need the class, which is expensive to create.
        class_ = self.__dict__.get("_index_entry_class")
        if class_ is None:
            class_ = self.__dict__["_index_entry_class"] = IndexEntryClass(self.table)
        return class_

    def index_create(self, name):
        """Returns a new index.

        The rows that are already here are sorted when the index gets its first column.
        """
        if name in self.indexes:
            raise ValueError("An index named %s already exists" % name)
        index = self.indexes[name] = MultiColumnIndex(name)
        index._rows = self
        return index

    def __getitem__(self, key):
        return self.data[key][-1]

    def __setitem__(self, key, item):
        stack = self.data.setdefault(key, [])
        stack.append(item)
        for index in self.indexes.values():
            index.add(item)

    def __delitem__(self, key):
        stack = self.data[key]
        row = stack.pop()
        if not stack:
            del self.data[key]
        for index in self.indexes.values():
            index.discard(row)

    def values(self):
        return _RowsView(self)

    def items(self):
        return _ItemsView(self)

    def clear(self):
        """Removes all rows; the indexes stay, without rows."""
        self.data.clear()
        for index in self.indexes.values():
            index.clear()

    # The operations below would bypass the indexes.

    def update(self, dict=None, **kwargs):
        raise NotImplementedError()

    def setdefault(self, key, failobj=None):
        raise NotImplementedError()

    def pop(self, key, *args):
        raise NotImplementedError()

    def popitem(self):
        raise NotImplementedError()

    @classmethod
    def fromkeys(cls, iterable, value=None):
        raise NotImplementedError()


def IndexEntryClass(table):
    """Returns the class of index entries of `table`.

    It is a named tuple with the field "uuid" and a field for each column, with the default value
    of the column.  A column whose name cannot be a field has a numbered field instead.
    """
    names = ["uuid"]
    defaults = [None]
    for name, column in table.columns.items():
        names.append(name)
        defaults.append(data.Datum.default(column.type).to_python(lambda value, base: value))
    class_ = collections.namedtuple(table.name, names, defaults=defaults, rename=True)
    class_._table = table
    return class_
