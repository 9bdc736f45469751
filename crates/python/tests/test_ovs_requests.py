"""Requests of the drop-in that a server would refuse: errors of the call, where the original sends them and goes on as if they were in force."""

import ovs.db.error
import ovs.db.idl
import ovs.jsonrpc
import ovs.stream

from .drop_in import DropInTest


class Requests(DropInTest):
    def idl(self):
        return self.drop_in("Cage", ["name"])

    def test_a_refused_condition_leaves_the_former_one(self):
        writer = self.connect()
        with writer.transaction() as txn:
            for number in range(3):
                txn.insert("Cage", name=f"c{number}", number=number)
        idl = self.idl()
        seqno = idl.cond_change("Cage", [["name", "==", "c1"]])
        self.run_until(idl, lambda: idl.cond_seqno >= seqno)
        state = idl.tables["Cage"].condition_state
        for condition in ([["name", "<", "zzz"]], [["nmae", "==", "c"]], [["name", "==", 5]], [["name", "like", "c"]], ["name"]):
            with self.subTest(condition=condition), self.assertRaises(ovs.db.error.Error):
                idl.cond_change("Cage", condition)
            self.assertEqual((state.latest, state.new, state.requested), ([["name", "==", "c1"]], None, None))
        with self.assertRaises(ovs.db.error.Error):
            idl.tables["Cage"].condition = [["name", "<", "zzz"]]
        # A column that is not registered can choose rows all the same.
        seqno = idl.cond_change("Cage", [["number", ">=", 1]])
        self.run_until(idl, lambda: idl.cond_seqno >= seqno)
        self.assertEqual(sorted(row.name for row in idl.tables["Cage"].rows.values()), ["c1", "c2"])

    def test_a_name_that_no_lock_can_have_is_an_error(self):
        idl = self.idl()
        with self.assertRaises(ovs.db.error.Error):
            idl.set_lock("no id")
        self.assertIsNone(idl.lock_name)
        idl.set_lock("zoo")
        self.run_until(idl, lambda: idl.has_lock)

    def test_a_lost_lock_is_seen_even_if_it_comes_back_at_once(self):
        idl = self.idl()
        idl.set_lock("zoo")
        self.run_until(idl, lambda: idl.has_lock)
        error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open(self.server.remote))
        self.assertEqual(error, 0)
        thief = ovs.jsonrpc.Connection(stream)
        self.addCleanup(thief.close)
        for round_ in range(30):
            with self.subTest(round=round_):
                for method in ("steal", "unlock"):
                    error, reply = thief.transact_block(ovs.jsonrpc.Message.create_request(method, ["zoo"]))
                    self.assertEqual((error, reply.error), (0, None))
                self.run_until(idl, lambda: not idl.has_lock)
                self.run_until(idl, lambda: idl.has_lock)
        for _ in range(5):
            idl.force_reconnect()
            self.run_until(idl, lambda: not idl.has_lock)
            self.run_until(idl, lambda: idl.has_lock)

    def test_the_class_of_a_row_makes_rows(self):
        writer = self.connect()
        with writer.transaction() as txn:
            txn.insert("Cage", name="c")
        idl = self.idl()
        [row] = idl.tables["Cage"].rows.values()
        self.assertIsInstance(row, ovs.db.idl.Row)
        former = type(row).from_json(idl, row._table, row.uuid, {"name": "former"})
        self.assertEqual((former.name, row.name), ("former", "c"))

    def test_an_index_without_columns_has_all_rows(self):
        idl = self.idl()
        index = idl.index_create("Cage", "all")
        writer = self.connect()
        with writer.transaction() as txn:
            for number in range(3):
                txn.insert("Cage", name=f"c{number}")
        rows = idl.tables["Cage"].rows
        self.run_until(idl, lambda: len(rows) == 3)
        entry = rows.IndexEntry(name="nobody")
        for found in (index, index.irange(None, None), index.irange(entry, entry), idl.index_equal("Cage", "all", entry)):
            self.assertEqual(sorted(row.name for row in found), ["c0", "c1", "c2"])
        index.add_column("name")
        self.assertEqual([row.name for row in index], ["c0", "c1", "c2"])
        self.assertEqual(list(index.irange(entry, entry)), [])
