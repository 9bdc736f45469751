"""Clients that no program refers to any more end by themselves, and their descriptors with them."""

import gc
import os
import threading
import weakref

import corvid

from .zoo import ZooTest


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Collected(ZooTest):
    def client(self, **settings):
        return corvid.connect(self.server.remote, "Zoo", timeout=60, **settings)

    def assert_ends(self, make, *, collect):
        """What `make` makes and drops leaves nothing, `collect` with or without the collector."""
        make()
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        before = descriptors()
        gone = [weakref.ref(make()) for _ in range(3)]
        if collect:
            gc.collect()
        self.assertEqual([ref() for ref in gone], [None] * 3)
        self.assertEqual(descriptors(), before)

    def test_without_the_collector(self):
        def make():
            db = self.client()
            with db.transaction() as txn:
                txn.insert("Keeper", name="ann")
            list(db.Keeper)
            return db

        self.assert_ends(make, collect=False)

    def test_row_classes_that_reach_the_client(self):
        def make():
            class Cage(corvid.Row):
                __slots__ = ()

            Cage.database = self.client(row_classes={"Cage": Cage})
            return Cage.database

        self.assert_ends(make, collect=True)

    def test_everything_that_reaches_the_client(self):
        def make():
            class Cage(corvid.Row):
                __slots__ = ()

            db = self.client(row_classes={"Cage": Cage})
            db.changes_of_all = db.changes()
            db.index = db.Keeper.index("name")
            with db.transaction() as txn:
                new = txn.insert("Cage", name="c%d" % len(db.Cage))
            db.outcome, db.row = txn, txn.inserted(new)
            db.change = next(db.changes_of_all)
            Cage.database = db
            return db

        self.assert_ends(make, collect=True)

    def test_a_failed_connection_leaves_nothing(self):
        schema = self.client().schema
        gc.collect()
        before = descriptors()
        for known in (None, schema):
            with self.assertRaises(corvid.TimedOut):
                corvid.connect("unix:/nowhere", "Zoo", timeout=0.1, schema=known)
        gc.collect()
        self.assertEqual(descriptors(), before)

    def test_a_client_in_use_is_not_collected(self):
        db = self.client()
        rows = db.Keeper
        seen = threading.Event()
        changes = db.changes("Keeper", timeout=60)
        waiting = threading.Thread(target=lambda: (next(changes), seen.set()))
        waiting.start()
        gc.collect()
        with db.transaction() as txn:
            txn.insert("Keeper", name="ann")
        waiting.join()
        self.assertTrue(seen.is_set())
        self.assertEqual(len(rows), 1)
