"""Transactions: outcomes, changes of single elements, and misuse."""

import threading

import corvid

from .zoo import PATIENCE, ZooTest


class Transactions(ZooTest):
    def cage(self, db, **values):
        with db.transaction() as txn:
            cage = txn.insert("Cage", **values)
        return txn.inserted(cage)

    def test_changes_of_single_elements(self):
        db = self.connect()
        cage = self.cage(db, name="c", tags={"a"}, labels={"k": "v"})
        with db.transaction() as txn:
            txn.add(cage, "tags", "b", "c")
            txn.remove(cage, "tags", "a")
            txn.set_key(cage, "labels", "k", "w")
            txn.set_key(cage, "labels", "l", "x")
            self.assertEqual((cage.tags, cage.labels), ({"b", "c"}, {"k": "w", "l": "x"}), "seen at once")
        self.assertEqual((cage.tags, cage.labels), ({"b", "c"}, {"k": "w", "l": "x"}))
        with db.transaction() as txn:
            txn.remove(cage, "labels", "k", "nothing")
        self.assertEqual(cage.labels, {"l": "x"})
        with self.assertRaises(corvid.ColumnError), db.transaction() as txn:
            txn.set_key(cage, "tags", "k", "v")
        with self.assertRaises(corvid.ColumnError), db.transaction() as txn:
            txn.add(cage, "tags", 5)

    def test_elements_that_others_add_are_kept(self):
        db, other = self.connect(), self.connect()
        cage = self.cage(db, name="c")
        other.wait_until(lambda: len(other.Cage) == 1, PATIENCE)
        [same] = other.Cage
        with db.transaction() as txn:
            txn.add(cage, "tags", "a")
        with other.transaction() as txn:
            txn.add(same, "tags", "b")
        db.wait_until(lambda: cage.tags == {"a", "b"}, PATIENCE)

    def test_an_exception_in_the_block_aborts(self):
        db = self.connect()
        with self.assertRaises(ZeroDivisionError), db.transaction() as txn:
            txn.insert("Cage", name="c")
            self.assertEqual(len(db.Cage), 1)
            1 / 0
        self.assertEqual((len(db.Cage), txn.status), (0, "aborted"))
        self.cage(db, name="c")

    def test_nothing_to_send(self):
        db = self.connect()
        cage = self.cage(db, name="c")
        with db.transaction() as txn:
            cage.name = "c"
        self.assertEqual(txn.status, "unchanged")

    def test_the_server_refuses(self):
        db = self.connect()
        self.cage(db, name="c")
        with self.assertRaises(corvid.Refused) as caught, db.transaction() as txn:
            txn.insert("Cage", name="c")
        self.assertEqual((caught.exception.tag, caught.exception.operation), ("constraint violation", None))
        self.assertIn("identical values", caught.exception.details)
        self.assertEqual(txn.status, "error")

    def test_a_verified_column_that_another_client_changes(self):
        db, other = self.connect(), self.connect()
        cage = self.cage(db, name="c", number=1)
        other.wait_until(lambda: len(other.Cage) == 1, PATIENCE)
        [same] = other.Cage
        with self.assertRaises(corvid.TryAgain), db.transaction() as txn:
            txn.verify(cage, "number")
            with other.transaction():
                same.number = 2
            cage.number = cage.number + 1
        db.wait_until(lambda: cage.number == 2, PATIENCE)

    def test_transact_repeats_what_has_lost_a_race(self):
        clients = [self.connect() for _ in range(4)]
        cage = self.cage(clients[0], name="c")
        for client in clients:
            client.wait_until(lambda: client.Cage.get(cage.uuid) is not None, PATIENCE)
        calls = []

        def count(client):
            row = client.Cage[cage.uuid]

            def one_more(txn):
                calls.append(1)
                txn.verify(row, "number")
                row.number = row.number + 1

            for _ in range(25):
                client.transact(one_more, timeout=PATIENCE)

        threads = [threading.Thread(target=count, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clients[0].wait_until(lambda: cage.number == 100, PATIENCE)
        self.assertGreaterEqual(len(calls), 100)

    def test_transact_returns_the_value_of_its_function(self):
        db = self.connect()
        self.assertEqual(db.transact(lambda txn: txn.insert("Cage") and 5, "why"), 5)
        with self.assertRaises(ZeroDivisionError):
            db.transact(lambda txn: 1 / 0)
        self.assertEqual(len(db.Cage), 1)

    def test_increment(self):
        db = self.connect()
        with db.transaction() as txn:
            ann = txn.insert("Keeper", name="ann")
            txn.increment(ann, "count")
        ann = txn.inserted(ann)
        self.assertEqual((txn.incremented_to, ann.count), (1, 1))
        with db.transaction() as txn:
            txn.increment(ann, "count", force=True)
        self.assertEqual((txn.incremented_to, ann.count), (2, 2))
        with self.assertRaises(corvid.ColumnError), db.transaction() as txn:
            txn.increment(ann, "name")

    def test_only_a_committed_insertion_has_a_row(self):
        db = self.connect()
        cage = self.cage(db, name="c")
        with db.transaction() as txn:
            new = txn.insert("Cage", name="d")
            with self.assertRaisesRegex(corvid.UsageError, "uncommitted"):
                txn.inserted(new)
        self.assertEqual(txn.inserted(new).name, "d")
        with self.assertRaisesRegex(corvid.UsageError, "did not insert and commit this row"):
            txn.inserted(cage)

    def test_dry_run(self):
        db = self.connect()
        with db.transaction(dry_run=True) as txn:
            txn.insert("Cage", name="c")
        self.assertEqual((txn.status, len(db.Cage)), ("success", 0))

    def test_delete_and_rows_that_are_gone(self):
        db = self.connect()
        cage = self.cage(db, name="c")
        with db.transaction() as txn:
            txn.delete(cage)
            self.assertNotIn(cage, db.Cage)
        with self.assertRaises(corvid.RowError) as caught:
            cage.name
        self.assertEqual((caught.exception.table, caught.exception.row), ("Cage", str(cage.uuid)))
        with self.assertRaises(corvid.RowError), db.transaction() as txn:
            txn.delete(cage)
        with self.assertRaises(corvid.RowError), db.transaction():
            cage.name = "x"

    def test_misuse(self):
        db = self.connect()
        cage = self.cage(db, name="c")
        with self.assertRaises(corvid.UsageError):
            cage.name = "d"
        with db.transaction() as txn:
            with self.assertRaises(corvid.UsageError):
                db.native.begin()
            with self.assertRaises(corvid.UsageError):
                db.native.run()
            cage.name = "d"
        with self.assertRaises(corvid.UsageError):
            txn.insert("Cage")
        with self.assertRaises(corvid.UsageError):
            txn.commit()
        self.assertEqual(cage.name, "d")

    def test_rows_of_other_clients_and_tables(self):
        db, other = self.connect(), self.connect()
        cage = self.cage(db, name="c")
        with db.transaction() as txn:
            keeper = txn.insert("Keeper", name="ann")
        keeper = txn.inserted(keeper)
        other.wait_until(lambda: len(other.Keeper) == 1, PATIENCE)
        [same], [keeper_there] = other.Cage, other.Keeper
        with db.transaction() as txn:
            for call in (
                lambda: txn.add(same, "tags", "x"),
                lambda: txn.remove(same, "tags", "x"),
                lambda: txn.set_key(same, "labels", "k", "v"),
                lambda: txn.delete(same),
                lambda: txn.verify(same, "name"),
                lambda: txn.increment(keeper_there, "count"),
            ):
                with self.assertRaises(corvid.UsageError):
                    call()
            with self.assertRaisesRegex(corvid.ColumnError, "a row of table Keeper"):
                cage.keeper = cage
            cage.keeper = keeper_there
        self.assertEqual(cage.keeper, keeper, "a reference is a UUID, whichever replica it comes from")

    def test_what_an_iterator_raises_stays_as_it_is(self):
        db = self.connect()

        def failing():
            yield "a"
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt), db.transaction() as txn:
            txn.insert("Cage", tags=failing())

    def test_an_insert_with_a_bad_value_leaves_no_row(self):
        db = self.connect()
        with db.transaction() as txn:
            with self.assertRaises(corvid.ColumnError):
                txn.insert("Cage", name="c", number=5000)
            self.assertEqual(len(db.Cage), 0)
            txn.insert("Cage", name="d")
        self.assertEqual([cage.name for cage in db.Cage], ["d"])

    def test_locks(self):
        first, second = self.connect(lock="keepers"), self.connect()
        first.wait_for_lock(PATIENCE)
        second.set_lock("keepers")
        second.wait_until(lambda: second.session.lock == "contended", PATIENCE)
        with self.assertRaises(corvid.NotLocked), second.transaction() as txn:
            txn.insert("Cage", name="c")
        self.cage(first, name="c")
        first.set_lock(None)
        first.run()
        second.wait_for_lock(PATIENCE)
        self.cage(second, name="d")
        second.set_lock("l" * 5000)
        with self.assertRaisesRegex(corvid.NotLocked, "the server refused the lock: "):
            second.wait_for_lock(PATIENCE)
        self.assertEqual(second.session.lock, "refused")
