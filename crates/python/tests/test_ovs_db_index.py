"""Program-made indexes of `ovs.db.custom_index` where they behave otherwise than the original."""

import unittest
import uuid

from corvid.ovs.db import custom_index, schema


class Row:
    def __init__(self, table, number, **columns):
        self._table = table
        self.uuid = uuid.UUID(int=number)
        self.__dict__.update(columns)


class Indexes(unittest.TestCase):
    def setUp(self):
        columns = {"name": {"type": "string"}, "num": {"type": "integer"}}
        self.table = schema.TableSchema.from_json({"columns": columns}, "Bridge")
        self.rows = self.table.rows = custom_index.IndexedRows(self.table)

    def insert(self, number, **columns):
        row = Row(self.table, number, **columns)
        self.rows[row.uuid] = row
        return row

    def index(self, *columns):
        index = self.rows.index_create(" ".join(columns))
        index.add_columns(*columns)
        return index

    def test_late_index_has_the_rows_that_were_there(self):
        b = self.insert(1, name="b", num=1)
        a = self.insert(2, name="a", num=2)
        index = self.index("name")
        self.assertEqual(list(index), [a, b])
        del self.rows[b.uuid]
        self.assertEqual(list(index), [a])

    def test_later_column_sorts_again(self):
        index = self.index("num")
        rows = [self.insert(i, name=name, num=1) for i, name in enumerate("cab")]
        self.assertEqual(list(index), rows)
        index.add_column("name", custom_index.OVSDB_INDEX_DESC)
        self.assertEqual([row.name for row in index], ["c", "b", "a"])

    def test_row_with_changed_columns_is_found(self):
        index = self.index("name")
        a, b = self.insert(1, name="a", num=1), self.insert(2, name="b", num=1)
        a.name = "z"
        index.refresh(a)
        self.assertEqual(list(index), [b, a])
        a.name = "a"
        del self.rows[a.uuid]
        self.assertEqual(list(index), [b])
        self.assertEqual(len(index.values), 1)

    def test_row_without_a_value_joins_when_it_has_one(self):
        index = self.index("name", "num")
        row = self.insert(1, name="a")
        self.assertEqual(list(index), [])
        row.num = 5
        index.refresh(row)
        self.assertEqual(list(index), [row])
        bare = self.insert(2)
        del self.rows[bare.uuid]
        self.assertEqual(list(index), [row])

    def test_two_rows_of_one_uuid(self):
        index = self.index("name")
        old, new = self.insert(1, name="b", num=1), self.insert(1, name="a", num=1)
        self.assertEqual([entry.name for entry in index.values], ["a", "b"])
        old.name = "x"
        del self.rows[new.uuid]
        self.assertEqual([entry.name for entry in index.values], ["b"])
        self.assertIs(self.rows[old.uuid], old)

    def test_other_errors_of_rows_do_not_hide(self):
        class Broken(Row):
            @property
            def num(self):
                raise ZeroDivisionError

        self.index("num")
        row = Broken(self.table, 1)
        with self.assertRaises(ZeroDivisionError):
            self.rows[row.uuid] = row

    def test_entries_of_columns_that_are_keywords(self):
        table = schema.TableSchema.from_json({"columns": {"class": {"type": "integer"}, "a": {"type": "string"}}}, "T")
        entry = custom_index.IndexedRows(table).IndexEntry(a="x")
        self.assertEqual((entry.uuid, entry.a, entry._fields[1]), (None, "x", "_1"))
