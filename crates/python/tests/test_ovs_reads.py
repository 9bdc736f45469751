"""Reads of the drop-in's rows. The objects of columns that were read are kept, and each read shows what a first one would."""

import uuid

import ovs.db.idl

from .drop_in import DropInTest


class Reads(DropInTest):
    COLUMNS = ("name", "number", "size", "is_open", "mark", "note", "tags", "kind", "built")

    def setUp(self):
        super().setUp()
        self.writer = self.connect()
        with self.writer.transaction() as txn:
            for number in range(3):
                txn.insert("Cage", name=f"c{number}", number=number)
        self.idl = self.drop_in("Cage", self.COLUMNS)
        self.rows = {row.name: row for row in self.idl.tables["Cage"].rows.values()}

    def values(self, row):
        """Each column read twice, the second time from what the first one left."""
        first, second = ([getattr(row, name) for name in self.COLUMNS] for _ in range(2))
        self.assertEqual(first, second)
        return dict(zip(self.COLUMNS, first))

    def test_reads_follow_a_transaction_and_its_end(self):
        row = self.rows["c1"]
        before = self.values(row)
        for is_committed in (False, True):
            txn = ovs.db.idl.Transaction(self.idl)
            row.number, row.size, row.is_open, row.mark, row.kind = 7, 2.5, True, uuid.UUID(int=5), "pool"
            row.tags, row.note = ["t"], "n"
            written = self.values(row)
            self.assertEqual((written["number"], written["size"], written["is_open"], written["kind"]), (7, 2.5, True, "pool"))
            self.assertEqual((written["mark"], written["tags"], written["note"]), (uuid.UUID(int=5), ["t"], ["n"]))
            row.number = 8
            self.assertEqual(self.values(row), {**written, "number": 8})
            if is_committed:
                self.assertEqual(txn.commit_block(), txn.SUCCESS)
                self.assertEqual(self.values(row), {**written, "number": 8})
            else:
                txn.abort()
                self.assertEqual(self.values(row), before)

    def test_reads_follow_the_server(self):
        row, other = self.rows["c1"], self.rows["c2"]
        before, of_other = self.values(row), self.values(other)
        [cage] = [cage for cage in self.writer.Cage if cage.name == "c1"]
        for number in (10, 11):
            with self.writer.transaction():
                cage.number = number
            self.run_until(self.idl, lambda: row.number == number)
            self.assertEqual(self.values(row), {**before, "number": number})
            self.assertEqual(self.values(other), of_other)

    def test_a_deleted_row_shows_its_last_values_and_a_later_one_in_its_place_its_own(self):
        row = self.rows["c1"]
        before = self.values(row)
        txn = ovs.db.idl.Transaction(self.idl)
        row.delete()
        with self.assertRaises(AssertionError):
            row.number
        later = txn.insert(self.idl.tables["Cage"])
        with self.assertRaises(AttributeError):
            later.number
        later.name = "later"
        later.number = 100
        self.assertEqual((later.number, later.number), (100, 100))
        self.assertEqual(txn.commit_block(), txn.SUCCESS)
        self.assertEqual(self.values(row), before)
        [later] = [row for row in self.idl.tables["Cage"].rows.values() if row.name == "later"]
        self.assertEqual(self.values(later)["number"], 100)

    def test_values_that_can_be_changed_are_new_objects(self):
        row = self.rows["c0"]
        row.tags.append("of the program")
        self.assertEqual(row.tags, [])

    def test_short_texts_are_kept_and_long_ones_are_not(self):
        for name, is_kept in (("n" * 128, True), ("n" * 1000, False)):
            with self.writer.transaction() as txn:
                txn.insert("Cage", name=name, number=1)
            found = lambda: [row for row in self.idl.tables["Cage"].rows.values() if row.name == name]
            self.run_until(self.idl, found)
            [row] = found()
            self.assertEqual(row.name is row.name, is_kept)
            self.assertEqual(row.name, name)

    def test_a_reconnection_brings_all_rows_anew(self):
        row = self.rows["c0"]
        before = self.values(row)
        seqno = self.idl.change_seqno
        self.idl.force_reconnect()
        self.run_until(self.idl, lambda: self.idl.change_seqno != seqno and len(self.idl.tables["Cage"].rows) == 3)
        [again] = [row for row in self.idl.tables["Cage"].rows.values() if row.name == "c0"]
        self.assertEqual(self.values(again), before)
