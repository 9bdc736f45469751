"""Indexes over rows, compared with sorted lists: entries, ranges, directions."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import uuid

import ovs.db.custom_index as custom_index
import ovs.db.schema as schema
from transcript import attempt, generator, say, text

rng = generator("db_custom_index")

ASC = custom_index.OVSDB_INDEX_ASC
DESC = custom_index.OVSDB_INDEX_DESC
table = schema.TableSchema.from_json({"columns": {
    "name": {"type": "string"}, "num": {"type": "integer"},
    "tags": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
    "config": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
    "Bridge")


class Row(object):
    def __init__(self, number, **columns):
        self.uuid = uuid.UUID(int=number)
        self._table = table
        self.__dict__.update(columns)

    def __str__(self):
        return "row%d(%s,%s)" % (self.uuid.int, getattr(self, "name", None),
                                 getattr(self, "num", None))


def fresh_rows():
    rows = custom_index.IndexedRows(table)
    table.rows = rows
    return rows


def show(rows):
    return " ".join(str(row) for row in rows)


rows = fresh_rows()
Entry = rows.IndexEntry
say(ASC, DESC, custom_index.ColumnIndex._fields, Entry.__name__, Entry._fields)
say(text(Entry()), text(Entry(name="x", tags=[1])), Entry(num=1) == Entry(num=1),
    Entry(uuid=uuid.UUID(int=1)) < Entry(uuid=uuid.UUID(int=2)), attempt(Entry, foo=1),
    attempt(Entry, 1, 2, 3, 4, 5), Entry._table is table)
index = rows.index_create("by_name")
index.add_column("name")
say(repr(index), text(index.name), [(c.column, c.direction) for c in index.columns], list(index),
    len(index.values), rows.indexes["by_name"] is index)
try:
    rows.index_create("by_name")
except ValueError as e:
    say("again", e)
for name, arguments in (("update", ({},)), ("setdefault", (1,)), ("pop", (1,)), ("popitem", ()),
                        ("fromkeys", ([],)), ("copy", ())):
    say(name, attempt(getattr(rows, name), *arguments))
say("with rows", attempt(custom_index.IndexedRows, table, {1: 2}),
    attempt(custom_index.IndexedRows, table, x=2))
say("empty", len(rows), bool(rows), list(rows), attempt(rows.__getitem__, 5), rows.get(5), 5 in rows,
    attempt(rows.__delitem__, 5))


def length(entry):
    return len(entry.name)


def count(entry):
    return len(entry.tags)


def plain(column):
    return lambda entry: getattr(entry, column)


SHAPES = [[("name", ASC, None)], [("num", DESC, None)], [("num", ASC, None), ("name", DESC, None)],
          [("name", DESC, None), ("num", DESC, None)], [("name", ASC, length), ("num", ASC, None)],
          [("tags", ASC, None), ("name", ASC, None)], [("tags", DESC, count)], []]


def sort_of(shape, items):
    """Sorts by a list of columns, one stable sort for each, the least important first."""
    items = list(items)
    for column, direction, key in reversed(shape):
        items.sort(key=key or plain(column), reverse=direction == DESC)
    return items


def some_row(number):
    return Row(number, name=rng.choice(["", "a", "b", "bb", "ccc", "z"]), num=rng.randrange(-2, 4),
               tags=sorted(rng.sample(range(4), rng.randrange(3))), config={})


for round_ in range(60):
    rows = fresh_rows()
    indexes = []
    for number, shape in enumerate(SHAPES):
        index = rows.index_create("index%d" % number)
        for column, direction, key in shape:
            if direction == ASC and key is None:
                index.add_columns(column)
            else:
                index.add_column(column, direction, key)
        indexes.append(index)
    live = []
    for step in range(40):
        if live and rng.random() < 0.3:
            row = live[rng.randrange(len(live))]
            # The original cannot delete a row that lacks an indexed column.
            if all(hasattr(row, column) for column in ("name", "num", "tags")):
                live.remove(row)
                del rows[row.uuid]
        else:
            row = some_row(round_ * 1000 + step)
            if rng.random() < 0.1:
                delattr(row, rng.choice(["name", "num", "tags"]))
            rows[row.uuid] = row
            live.append(row)
    say("rows", len(rows), show(rows.values()), sorted(u.int for u in rows),
        all(rows[row.uuid] is row for row in live))
    for shape, index in zip(SHAPES, indexes):
        wanted = [row for row in live if all(hasattr(row, c) for c, d, k in shape)]
        got = list(index)
        keys = [[(k or plain(c))(row) for c, d, k in shape] for row in got]
        best = [[(k or plain(c))(row) for c, d, k in shape] for row in sort_of(shape, wanted)]
        say("index", index.name, keys == best, show(got), len(index.values))
        say("   entries", *[(text(e.uuid)) for e in index.values])
        for probe in range(4):
            a, b = some_row(0), some_row(1)
            start = rng.choice([None, a, Entry(name=a.name, num=a.num, tags=a.tags)])
            end = rng.choice([None, b, Entry(name=b.name, num=b.num, tags=b.tags)])
            found = list(index.irange(start, end))
            say("   range", start and str(a), end and str(b), show(found),
                [e.uuid.int for e in index.values.irange(start, end)] == [
                    row.uuid.int for row in found])
    for index in indexes:
        if live:
            row = rng.choice(live)
            say("   entry", attempt(index.index_entry_from_row, row))
            say("   again", attempt(index.remove, row), attempt(index.add, row), show(index))
    say("absent", *[attempt(index.remove, some_row(77)) for index in indexes])
    rows.clear()
    say("clear", len(rows), sorted(rows.indexes), [show(index) for index in indexes],
        [len(index.columns) for index in indexes])
    rows[live[0].uuid] = live[0] if live else None
    say("after", [show(index) for index in indexes])

alone = custom_index.MultiColumnIndex("alone")
alone.add_column("num", DESC)
rows = fresh_rows()
for number in range(5):
    row = Row(number, num=number % 3)
    rows[row.uuid] = row
    alone.add(row)
say("alone", str(alone).split(" ")[0], show(alone), show(alone.irange(None, Entry(num=1))))
alone.remove(rows[uuid.UUID(int=4)])
say("alone", show(alone), alone.clear(), show(alone))
