"""The fronts for asyncio and for event loops of programs; threads."""

import asyncio
import gc
import select
import sys
import threading
import time
import tracemalloc
import unittest

import corvid

from .zoo import PATIENCE, ZooTest


class Polled(ZooTest):
    def drive(self, client, holds):
        end = time.monotonic() + PATIENCE
        while True:
            client.run()
            if holds():
                return
            self.assertLess(time.monotonic(), end)
            fd, events, timeout = client.wait()
            poller = select.poll()
            if fd is not None:
                poller.register(fd, events)
            poller.poll(1000 if timeout is None else min(1000, timeout * 1000 + 1))

    def test_a_loop_of_its_own(self):
        schema = self.connect().schema
        client = corvid.polled.Client(schema, self.server.remote, {"Cage": ["name", "number"]})
        self.addCleanup(client.close)
        watch = client.watch("Cage")
        self.drive(client, lambda: client.session.has_contents)
        txn = client.begin()
        txn.insert("Cage", name="c")
        self.assertEqual(txn.commit(), "incomplete")
        self.drive(client, lambda: txn.status != "incomplete")
        client.check(txn)
        self.assertEqual([change.row.name for change in watch.take()], ["c"])
        promise = client.set_condition("Cage", corvid.NONE)
        self.drive(client, lambda: client.condition_seqno >= promise)
        self.assertEqual((len(client.Cage), [change.kind for change in watch.take()]), (0, ["delete"]))


class Asyncio(ZooTest):
    def run_async(self, main):
        asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))

    async def open(self, tables=None, **settings):
        return await corvid.aio.connect(self.server.remote, "Zoo", tables, timeout=PATIENCE, **settings)

    def test_transactions_and_changes(self):
        async def main():
            async with await self.open() as db, await self.open({"Cage": ["name", "number"]}) as watcher:
                seen = []

                async def watch():
                    async for change in watcher.changes("Cage"):
                        seen.append((change.kind, change.row.name, change.row.number))
                        if change.kind == "delete":
                            return

                task = asyncio.create_task(watch())
                await asyncio.sleep(0)
                async with db.transaction("why", timeout=PATIENCE) as txn:
                    cage = txn.insert("Cage", name="c")
                cage = txn.inserted(cage)
                await asyncio.gather(*(db.transact(lambda txn, n=n: txn.add(cage, "tags", f"{n}"), timeout=PATIENCE) for n in range(20)))
                self.assertEqual(len(cage.tags), 20)
                await watcher.wait_until(lambda: len(seen) == 1, PATIENCE)
                async with db.transaction(timeout=PATIENCE) as txn:
                    txn.delete(cage)
                await asyncio.wait_for(task, PATIENCE)
                self.assertEqual(seen[0], ("insert", "c", 0))
                self.assertEqual(seen[-1][0], "delete")
                with self.assertRaises(corvid.Refused):
                    async with db.transaction(timeout=PATIENCE) as txn:
                        txn.insert("index")
                        txn.insert("index")
                with self.assertRaises(ZeroDivisionError):
                    async with db.transaction(timeout=PATIENCE) as txn:
                        1 / 0
                await db.set_condition("Cage", corvid.NONE, PATIENCE)

        self.run_async(main)

    def test_a_block_may_wait_while_updates_come(self):
        async def main():
            async with await self.open() as db, await self.open() as other:
                async with db.transaction(timeout=PATIENCE) as txn:
                    txn.insert("Cage", name="a")
                    async with other.transaction(timeout=PATIENCE) as theirs:
                        theirs.insert("Cage", name="b")
                    await asyncio.sleep(0.05)
                    self.assertEqual(len(db.Cage), 1, "the replica stands still")
                await db.wait_until(lambda: len(db.Cage) == 2, PATIENCE)

        self.run_async(main)

    def test_a_transaction_within_another_one_is_an_error(self):
        async def main():
            async with await self.open() as db:
                async with db.transaction(timeout=PATIENCE) as txn:
                    txn.insert("Cage", name="a")
                    with self.assertRaises(corvid.UsageError):
                        async with db.transaction(timeout=PATIENCE):
                            pass
                    with self.assertRaises(corvid.UsageError):
                        await db.transact(lambda txn: None, timeout=PATIENCE)
                async with db.transaction(timeout=PATIENCE) as txn:
                    txn.insert("Cage", name="b")
                self.assertEqual(len(db.Cage), 2)

        self.run_async(main)

    def test_changes_begin_at_the_call_and_end_after_the_limit(self):
        async def main():
            async with await self.open() as db:
                changes = db.changes("Cage", timeout=0.2)
                async with db.transaction(timeout=PATIENCE) as txn:
                    txn.insert("Cage", name="a")
                self.assertEqual([change.row.name async for change in changes], ["a"])

        self.run_async(main)

    def test_time_limits_and_failures(self):
        async def main():
            with self.assertRaises(corvid.TimedOut):
                await corvid.aio.connect(self.server.remote, "Nobody", timeout=0.2)
            with self.assertRaises(corvid.NoServer):
                await corvid.aio.connect(f"unix:{self.server.directory}/nothing", "Zoo", retry=False, timeout=PATIENCE)
            async with await self.open({"Cage": {"name": "read", "photo": "on_demand"}}, lock="keepers") as db:
                await db.wait_for_lock(PATIENCE)
                async with db.transaction(timeout=PATIENCE) as txn:
                    cage = txn.insert("Cage", name="c", photo="pixels")
                cage = txn.inserted(cage)
                self.assertEqual(await db.fetch(cage, "photo", PATIENCE), "pixels")
                await db.fetch_column("Cage", "photo", PATIENCE)
                await db.fetch_table("Cage", PATIENCE)
                with self.assertRaises(corvid.TimedOut):
                    await db.wait_until(lambda: False, 0.05)
                before = db.seqno
                self.server.stop()
                self.server.start()
                await db.wait_until(lambda: db.seqno != before and db.session.is_synced, PATIENCE)

        self.run_async(main)


class Threads(ZooTest):
    def test_a_wait_goes_on_over_a_reconnection_that_another_thread_asks_for(self):
        # Without probes nothing else ends a wait for the descriptor of the former connection.
        db = self.connect(probe_interval=0)
        seen = []
        changes = db.changes("Keeper", timeout=PATIENCE)
        waiting = threading.Thread(target=lambda: seen.append(next(changes).row.name))
        waiting.start()
        while not db._waiter._is_polled:
            time.sleep(0.001)
        db.reconnect()
        with self.connect().transaction() as txn:
            txn.insert("Keeper", name="ann")
        waiting.join()
        self.assertEqual(seen, ["ann"])

    def test_a_client_that_is_closed_ends_the_waits_of_other_threads(self):
        db = self.connect()
        ended = []

        def wait():
            try:
                db.wait_until(lambda: False)
            except corvid.NoServer as error:
                ended.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        db.close()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(len(ended), 3)

    def test_threads_share_a_client(self):
        db = self.connect()
        failures = []

        def work(number):
            try:
                for step in range(20):
                    name = f"{number}-{step}"
                    db.transact(lambda txn: txn.insert("Cage", name=name) and None, timeout=PATIENCE)
                    if not any(cage.name == name for cage in db.Cage):
                        failures.append(name)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        # One that is not woken waits for its time limit.
        self.assertLess(time.monotonic() - begin, PATIENCE)
        self.assertEqual(len(db.Cage), 120)

    def test_other_threads_run_while_contents_are_applied(self):
        writer = self.connect()
        with writer.transaction() as txn:
            for number in range(20_000):
                txn.insert("Cage", name=f"c{number}", labels={"a": "b", "c": f"{number}"}, tags={"x", "y", "z"})
        schema = writer.schema
        client = corvid.polled.Client(schema, self.server.remote)
        self.addCleanup(client.close)
        longest, is_over = 0.0, threading.Event()

        def tick():
            nonlocal longest
            last = time.monotonic()
            while not is_over.is_set():
                time.sleep(0)
                now = time.monotonic()
                longest, last = max(longest, now - last), now

        ticker = threading.Thread(target=tick)
        ticker.start()
        spent = 0.0
        while not client.session.has_contents:
            fd, events, timeout = client.wait()
            poller = select.poll()
            if fd is not None:
                poller.register(fd, events)
            poller.poll(1000 if timeout is None else timeout * 1000 + 1)
            begin = time.monotonic()
            client.run()
            spent = max(spent, time.monotonic() - begin)
        is_over.set()
        ticker.join()
        self.assertEqual(len(client.Cage), 20_000)
        print(f"the longest run took {spent * 1000:.0f} ms, another thread was held up for {longest * 1000:.0f} ms at most", file=sys.stderr)


class Leaks(ZooTest):
    def test_changes_leave_nothing_behind(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", name="c")
        cage = txn.inserted(cage)
        changes = db.changes("Cage", timeout=PATIENCE)

        def some(count):
            for number in range(count):
                with db.transaction() as txn:
                    cage.number = number % 500
                    txn.set_key(cage, "labels", "k", f"{number}")
                change = next(changes)
                self.assertEqual(len(change.columns) + len(change.old) > 0, True)

        some(500)
        gc.collect()
        tracemalloc.start()
        some(50)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        some(2000)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(after - before, 100_000, "bytes after 2,000 changes")


if __name__ == "__main__":
    unittest.main()
