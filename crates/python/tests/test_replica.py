"""The replica: which rows and columns it has, indexes, conditions, fetches, changes, reconnection."""

import threading

import corvid

from .zoo import PATIENCE, ZooTest


class Replica(ZooTest):
    def fill(self, db, count):
        with db.transaction() as txn:
            for number in range(count):
                txn.insert("Cage", name=f"c{number:03}", number=number % 10, tags={"even"} if number % 2 == 0 else ())

    def test_tables(self):
        db = self.connect()
        self.fill(db, 20)
        self.assertEqual(len(db.Cage), 20)
        self.assertEqual(sorted(cage.name for cage in db.Cage)[0], "c000")
        cage = next(iter(db.Cage))
        self.assertEqual(db.Cage[cage.uuid], cage)
        self.assertEqual(db.Cage[str(cage.uuid)], cage)
        self.assertIsNone(db.Cage.get("00000000-0000-0000-0000-000000000000"))
        with self.assertRaises(corvid.RowError):
            db.Cage["00000000-0000-0000-0000-000000000000"]
        self.assertTrue(cage in db.Cage and cage.uuid in db.Cage and cage not in db.Keeper)
        self.assertEqual(repr(db.Cage), "<table Cage, 20 rows>")

    def test_indexes(self):
        db = self.connect()
        self.fill(db, 100)
        self.assertEqual(db.Cage.find(name="c042").number, 2)
        self.assertIsNone(db.Cage.find(name="nobody"))
        self.assertEqual(sorted(cage.name for cage in db.Cage.find_all(number=3)), [f"c{n:03}" for n in range(3, 100, 10)])
        self.assertEqual(db.Cage.find(number=3, name="c013").name, "c013")
        index = db.Cage.index("-number", "name")
        self.assertEqual(len(index), 100)
        found = [(cage.number, cage.name) for cage in index.range((9, ""), (9, "~"))]
        self.assertEqual(found, [(9, f"c{n:03}") for n in range(9, 100, 10)])
        self.assertEqual([cage.number for cage in index.range()], sorted((n % 10 for n in range(100)), reverse=True))
        with db.transaction() as txn:
            txn.insert("Cage", name="c500", number=9)
            self.assertIsNotNone(index.get((9, "c500")), "indexes show the open transaction")
        with self.assertRaises(corvid.UsageError):
            index.get((9,))
        with self.assertRaises(corvid.ColumnError):
            index.get(("9", "x"))
        with self.assertRaises(corvid.UsageError):
            db.Cage.index()
        with self.assertRaises(corvid.SchemaError):
            db.Cage.index("nmae")

    def test_conditions(self):
        db, writer = self.connect(), self.connect()
        self.fill(writer, 20)
        c = db.Cage.c
        cases = [
            (c.number == 3, 2),
            ((c.number == 3) | (c.name == "c000"), 3),
            (c.number != 3, 18),
            (c.number < 3, 6),
            (c.number <= 3, 8),
            (c.number > 3, 12),
            (c.number >= 3, 14),
            (c.tags.includes("even"), 10),
            (c.tags.excludes({"even"}), 10),
            (corvid.NONE, 0),
            (corvid.ALL, 20),
            ((c.number == 3) | corvid.ALL, 20),
        ]
        for condition, count in cases:
            with self.subTest(condition=condition):
                db.set_condition("Cage", condition, PATIENCE)
                self.assertEqual(len(db.Cage), count)
        with self.assertRaises(TypeError):
            bool(c.number == 3)
        with self.assertRaises(AttributeError):
            c.nmae
        with self.assertRaises(corvid.ColumnError):
            db.set_condition("Cage", c.number == "3")
        seqno = db.native.condition_seqno
        with self.assertRaisesRegex(corvid.ColumnError, 'Type mismatch: "<" operator may not be applied to column name'):
            db.set_condition("Cage", c.name < "zzz")
        self.assertEqual((len(db.Cage), db.native.condition_seqno), (20, seqno))
        db.set_condition("Cage", c.number == 3, PATIENCE)
        self.assertEqual(len(db.Cage), 2, "later conditions work")

    def test_some_columns_and_fetches(self):
        writer = self.connect()
        with writer.transaction() as txn:
            txn.insert("Cage", name="c", photo="pixels", tags={"a"})
            txn.insert("Keeper", name="ann")
        db = self.connect({"Cage": {"name": "read", "photo": "on_demand", "tags": "write"}})
        [cage] = db.Cage
        self.assertEqual((cage.name, cage.photo, cage.tags), ("c", "", {"a"}))
        self.assertEqual(db.fetch(cage, "photo", PATIENCE), "pixels")
        with writer.transaction():
            [row] = writer.Cage
            row.photo = "others"
        db.fetch_column("Cage", "photo", PATIENCE)
        self.assertEqual(cage.photo, "others")
        with writer.transaction():
            row.photo = "third"
        db.fetch_table("Cage", PATIENCE)
        self.assertEqual(cage.photo, "third")
        with self.assertRaises(corvid.FetchError):
            db.fetch(cage, "name", PATIENCE)
        with self.assertRaises(corvid.FetchError):
            db.fetch_table("Keeper", PATIENCE)
        with self.assertRaises(corvid.UsageError):
            self.connect({"Cage": {"name": "red"}})

    def test_changes(self):
        db, writer = self.connect(), self.connect()
        changes = db.changes("Cage", timeout=PATIENCE)
        with writer.transaction() as txn:
            cage = txn.insert("Cage", name="c", tags={"a", "b"}, labels={"k": "v", "l": "w"})
            txn.insert("Keeper", name="nobody asks")
        cage = txn.inserted(cage)
        change = next(changes)
        self.assertEqual((change.kind, change.table, change.row.name, change.old), ("insert", "Cage", "c", {}))
        with writer.transaction() as txn:
            cage.name = "d"
            txn.add(cage, "tags", "c")
            txn.remove(cage, "tags", "a")
            txn.set_key(cage, "labels", "k", "x")
        change = next(changes)
        self.assertEqual((change.kind, change.row.name), ("update", "d"))
        self.assertEqual(change.columns, {"name", "tags", "labels"})
        self.assertEqual(change.old, {"name": "c", "tags": {"a", "b"}, "labels": {"k": "v", "l": "w"}})
        self.assertEqual((change.added("tags"), change.removed("tags")), ({"c"}, {"a"}))
        self.assertEqual((change.added("labels"), change.removed("labels")), ({"k": "x"}, {"k": "v"}))
        self.assertEqual((change.added("photo"), change.added("doors")), (None, frozenset()))
        with writer.transaction() as txn:
            txn.delete(cage)
        change = next(changes)
        self.assertEqual((change.kind, change.row.name, change.row.tags), ("delete", "d", {"b", "c"}))
        self.assertEqual(change.row.uuid, cage.uuid)

    def test_watches_are_apart_and_end(self):
        db = self.connect()
        cages, keepers, all_changes = db.changes("Cage", timeout=0.05), db.changes("Keeper", timeout=0.05), db.changes(timeout=0.05)
        with db.transaction() as txn:
            txn.insert("Cage", name="c")
            txn.insert("Keeper", name="ann")
        self.assertEqual([change.table for change in keepers], ["Keeper"])
        self.assertEqual([change.table for change in cages], ["Cage"])
        self.assertEqual(sorted(change.table for change in all_changes), ["Cage", "Keeper"])
        watch = db.native.watch(["Cage"])
        before = dict(db.native.metrics())["events"]
        del watch, cages, keepers, all_changes
        with db.transaction() as txn:
            txn.insert("Cage", name="d")
        self.assertEqual(dict(db.native.metrics())["events"], before, "nobody is called any more")
        with self.assertRaises(corvid.SchemaError):
            db.changes("Cgae")

    def test_the_references_of_rows_that_went_together_are_told(self):
        db = self.connect()
        with db.transaction() as txn:
            lion = txn.insert("Animal", name="lion")
            cage = txn.insert("Cage", name="c", animals={lion})
        cage, lion = txn.inserted(cage), txn.inserted(lion)
        changes = db.changes("Cage", timeout=PATIENCE)
        with db.transaction() as txn:
            txn.delete(cage)
        self.assertEqual(next(changes).row.animals, {lion})

    def test_a_reconnection_tells_the_difference(self):
        db = self.connect()
        self.fill(db, 10)
        changes = db.changes("Cage", timeout=PATIENCE)
        before = db.seqno
        self.server.stop()
        self.server.start()
        writer = self.connect()
        with writer.transaction() as txn:
            txn.delete(writer.Cage.find(name="c003"))
            writer.Cage.find(name="c004").number = 999
        told = sorted([(change.kind, change.row.name) for change in (next(changes), next(changes))])
        self.assertEqual(told, [("delete", "c003"), ("update", "c004")])
        self.assertGreater(db.seqno, before)
        self.assertEqual(len(db.Cage), 9)

    def test_the_state_of_the_session(self):
        db = self.connect()
        session = db.session
        self.assertTrue(session.is_connected and session.is_synced and session.is_leader and session.is_alive)
        self.assertEqual((session.remote, session.last_failure), (self.server.remote, None))
        self.server.stop()
        db.wait_until(lambda: not db.session.is_connected, PATIENCE)
        db.wait_until(lambda: db.session.last_failure is not None, PATIENCE)
        self.assertGreater(sum(db.metrics().values()), 0)
        with self.assertRaises(corvid.TimedOut), db.transaction(timeout=0.05) as txn:
            txn.insert("Cage")
        with self.assertRaises(corvid.TimedOut):
            db.transact(lambda txn: txn.insert("Cage"), timeout=0.05)
        with self.assertRaises(corvid.TimedOut):
            db.wait_until(lambda: False, 0.05)
        db.close()
        self.assertFalse(db.session.is_alive)
        with self.assertRaises(corvid.NoServer):
            db.wait_until(lambda: False, PATIENCE)

    def test_a_transaction_waits_for_a_server_that_comes_back(self):
        db = self.connect()
        self.server.stop()
        db.wait_until(lambda: not db.session.is_connected, PATIENCE)
        threading.Timer(0.2, self.server.start).start()
        with db.transaction(timeout=PATIENCE) as txn:
            txn.insert("Cage", name="c")
        self.assertEqual([cage.name for cage in db.Cage], ["c"])

    def test_what_cannot_be_connected(self):
        for remotes in ("", "foo:bar", "tcp:", "ssl:127.0.0.1:1"):
            with self.subTest(remotes=remotes), self.assertRaises(corvid.RemoteError):
                corvid.connect(remotes, "Zoo", timeout=1)
        with self.assertRaises(corvid.TimedOut) as caught:
            corvid.connect(self.server.remote, "Nobody", timeout=0.2)
        self.assertIn("does not have the database", str(caught.exception))
        with self.assertRaises(corvid.NoServer):
            corvid.connect(f"unix:{self.server.directory}/nothing", "Zoo", retry=False, timeout=PATIENCE)
        with self.assertRaises(corvid.SchemaError):
            corvid.Schema("{")
        with self.assertRaises(corvid.SchemaError):
            corvid.Schema("{}")
