"""The past of a database: readings of its history, and queries of its contents at a moment."""

import asyncio
import contextlib
import datetime
import gc
import os
import subprocess
import threading
import time
import unittest

import corvid
from corvid import history

from .zoo import PATIENCE, ZooTest, program

REFERENCE = "/usr/sbin/ovsdb-server"
#: Most of a page of history.
BLOB = "x" * 200 * 1024
NAMES = {"op": "select", "table": "Keeper", "where": [], "columns": ["name"]}


def names_of(results):
    return sorted(row["name"] for row in results[0]["rows"])


class HistoryTest(ZooTest):
    def insert(self, client, *names, **values):
        for name in names:
            with client.transaction(f"hire {name}", timeout=PATIENCE) as txn:
                txn.insert("Keeper", name=name, **values)

    def insert_pages(self, client):
        """Three commits that do not fit into one page."""
        for name in "abc":
            with client.transaction(timeout=PATIENCE) as txn:
                txn.insert("Cage", name=name, photo=BLOB)

    def readings(self):
        """The threads of the server that read history."""
        tasks = f"/proc/{self.server.process.pid}/task"
        names = []
        for task in os.listdir(tasks):
            with contextlib.suppress(OSError), open(f"{tasks}/{task}/comm") as comm:
                names.append(comm.read())
        return sum(name.startswith("history-read") for name in names)

    def wait_for_no_reading(self):
        end = time.monotonic() + PATIENCE
        while self.readings():
            self.assertLess(time.monotonic(), end, "a reading stays at the server")
            time.sleep(0.01)


class Questions(unittest.TestCase):
    def test_moments_are_texts_or_dates(self):
        utc = datetime.timezone.utc
        date = datetime.datetime(2026, 11, 28, 10, 0, 0, 123999, utc)
        self.assertEqual(history.moment_text(date), "@1795860000123")
        east = datetime.timezone(datetime.timedelta(hours=2))
        self.assertEqual(history.moment_text(date.astimezone(east)), "@1795860000123")
        local = date.astimezone().replace(tzinfo=None)
        self.assertEqual(history.moment_text(local), "@1795860000123")
        self.assertEqual(history.moment_text("HEAD~3"), "HEAD~3")
        with self.assertRaises(corvid.Mismatch):
            history.log(since=5)

    def test_a_question_shows_itself(self):
        question = history.log(table="Port", since="-2h", newest=3)
        self.assertEqual(repr(question), "<log of the history table='Port' since='-2h' newest=3>")


class Blocking(HistoryTest):
    def test_a_log_is_restricted(self):
        db = self.connect()
        self.insert(db, "ann", "bob")
        with db.transaction("train bob", timeout=PATIENCE):
            db.Keeper.find(name="bob").count = 3
        bob = db.Keeper.find(name="bob")

        def comments(**members):
            return [event["comment"] for event in db.read_history(history.log(**members), timeout=PATIENCE)]

        self.assertEqual(comments(), ["hire ann", "hire bob", "train bob"])
        self.assertEqual(comments(newest=1), ["train bob"])
        self.assertEqual(comments(since="HEAD~2"), ["hire bob", "train bob"])
        self.assertEqual(comments(until="HEAD~2"), ["hire ann"])
        self.assertEqual(comments(client="hire"), ["hire ann", "hire bob"])
        self.assertEqual(comments(row=str(bob.uuid)), ["hire bob", "train bob"])
        self.assertEqual(comments(row=str(bob.uuid)[:8], table="Keeper", column="count"), comments(column="count"))
        self.assertEqual(comments(table="Cage"), [])
        self.assertEqual(comments(since="HEAD"), [])
        self.assertEqual(comments(until=datetime.datetime.now(datetime.timezone.utc)), comments())

        [event] = db.read_history(history.log(newest=1), timeout=PATIENCE)
        [change] = event["changes"]
        self.assertEqual((event["event"], change["op"], change["table"], change["row"]), ("commit", "modify", "Keeper", str(bob.uuid)))
        self.assertEqual(change["columns"], {"count": {"old": 0, "new": 3}})
        self.assertLess(abs(event["date"] / 1000 - time.time()), PATIENCE)

    def test_files_differences_and_schemas_are_read(self):
        db = self.connect()
        self.insert(db, "ann", "bob")
        [file] = db.read_history(history.files(), timeout=PATIENCE)
        self.assertEqual((file["database"], file["transactions"]), ("Zoo", 2))
        changes = list(db.read_history(history.diff("HEAD~1", "HEAD"), timeout=PATIENCE))
        self.assertEqual([(change["op"], change["columns"]["name"]["new"]) for change in changes], [("insert", "bob")])
        [schema] = db.read_history(history.schema("HEAD"), timeout=PATIENCE)
        self.assertEqual(schema["name"], "Zoo")

    def test_moments_are_queried(self):
        db = self.connect()
        self.insert(db, "ann", "bob", "cid")
        [first] = db.read_history(history.log(client="ann"), timeout=PATIENCE)
        self.assertEqual(names_of(db.select_at("HEAD~2", NAMES, timeout=PATIENCE)), ["ann"])
        self.assertEqual(names_of(db.select_at(first["id"], NAMES, timeout=PATIENCE)), ["ann"])
        date = datetime.datetime.fromtimestamp(first["date"] / 1000 + 0.0005)
        self.assertIn("ann", names_of(db.select_at(date, NAMES, timeout=PATIENCE)))
        now = db.select_at("HEAD", NAMES, {**NAMES, "where": [["name", "==", "bob"]]}, timeout=PATIENCE)
        self.assertEqual((names_of(now), names_of(now[1:])), (["ann", "bob", "cid"], ["bob"]))
        self.assertEqual(db.select_at("HEAD", timeout=PATIENCE), [])

    def test_errors_say_what_is_wrong(self):
        db = self.connect()
        self.insert(db, "ann")
        with self.assertRaisesRegex(corvid.UsageError, '"newest" must be at least 1'):
            db.read_history(history.log(newest=0))
        with self.assertRaises(TypeError):
            history.diff("HEAD~1", "HEAD", since="-2h")
        with self.assertRaisesRegex(corvid.UsageError, 'a reading of "diff" takes no "since"'):
            db.read_history(history.Question("diff", {"from": "HEAD~1", "to": "HEAD", "since": "-2h"}))
        with self.assertRaises(corvid.Mismatch):
            db.read_history("log")
        with self.assertRaises(corvid.Mismatch):
            db.select_at("HEAD", {"op": object()})
        with self.assertRaises(corvid.HistoryRefused) as caught:
            list(db.read_history(history.log(since="HEAD~9"), timeout=PATIENCE))
        self.assertEqual(caught.exception.tag, "invalid parameters")
        self.assertIn("is before the history", caught.exception.details)
        with self.assertRaises(corvid.HistoryRefused) as caught:
            db.select_at("HEAD", {"op": "delete", "table": "Keeper", "where": []}, timeout=PATIENCE)
        self.assertEqual(caught.exception.tag, "not allowed")
        self.assertEqual(len(db.Keeper), 1)

    def test_a_reading_tells_how_far_it_is(self):
        db = self.connect()
        self.insert_pages(db)
        with db.read_history(history.log(), timeout=PATIENCE) as reading:
            self.assertEqual((reading.done, reading.at), (0, None))
            next(reading)
            self.assertLess(reading.done, 1)
            self.assertLess(abs((datetime.datetime.now(datetime.timezone.utc) - reading.at).total_seconds()), PATIENCE)
            self.assertIn("done", repr(reading))
            self.assertEqual(len(list(reading)), 2)
            self.assertEqual(list(reading), [])
            self.assertEqual(reading.done, 1)

    def test_readings_that_are_given_up_end_at_the_server(self):
        db = self.connect()
        self.insert_pages(db)
        # More than a server does at a time.
        for _ in range(6):
            for _event in db.read_history(history.log(), timeout=PATIENCE):
                break
        gc.collect()
        for _ in range(6):
            reading = db.read_history(history.log(), timeout=PATIENCE)
            next(reading)
            reading.close()
            self.assertEqual(list(reading), [])
        self.wait_for_no_reading()
        for _ in range(6):
            with self.assertRaises(corvid.TimedOut):
                list(db.read_history(history.log(), timeout=0))
            with self.assertRaises(corvid.TimedOut):
                db.select_at("HEAD", NAMES, timeout=0)
        # Takes the pages that were under way.
        self.assertEqual(len(list(db.read_history(history.log(), timeout=PATIENCE))), 3)
        self.wait_for_no_reading()

    def test_a_reading_ends_with_its_connection(self):
        db = self.connect()
        self.insert_pages(db)
        reading = db.read_history(history.log(), timeout=PATIENCE)
        next(reading)
        connects = db.metrics()["connects"]
        db.reconnect()
        db.wait_until(lambda: db.metrics()["connects"] > connects, PATIENCE)
        with self.assertRaises(corvid.HistoryLost):
            list(reading)
        self.assertEqual(list(reading), [])
        self.assertEqual(len(list(db.read_history(history.log(), timeout=PATIENCE))), 3)

    def test_threads_read_at_the_same_time(self):
        db = self.connect()
        self.insert_pages(db)
        found = []

        def read():
            found.append([event["changes"][0]["columns"]["name"]["new"] for event in db.read_history(history.log(), timeout=PATIENCE)])
            found.append(names_of(db.select_at("HEAD~1", {**NAMES, "table": "Cage"}, timeout=PATIENCE)))

        # No more than a server does for a session at a time.
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), sorted([["a", "b", "c"], ["a", "b"]] * 2))

    def test_a_client_does_not_wait_for_itself(self):
        db = self.connect()
        self.insert_pages(db)
        readings = [db.read_history(history.log(), timeout=PATIENCE) for _ in range(2)]
        for reading in readings:
            next(reading)
        with self.assertRaisesRegex(corvid.HistoryRefused, "another reading of history of this session stands still"):
            list(db.read_history(history.log(), timeout=PATIENCE))
        self.assertEqual([len(list(reading)) for reading in readings], [2] * 2)

    def test_a_relay_has_its_source_read_the_past(self):
        self.insert(self.connect(), "ann")
        relay = f"{self.server.directory}/relay"
        server = program("OVSDB_SERVER_UNDER_TEST", "ovsdb-server")
        command = [server, f"relay:Zoo:{self.server.remote}", f"--remote=punix:{relay}", f"--unixctl={relay}.ctl", "-vconsole:off", "--no-chdir"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with corvid.connect(f"unix:{relay}", "Zoo", timeout=PATIENCE, leader_only=False) as db:
            events = list(db.read_history(history.log(), timeout=PATIENCE))
            self.assertEqual([event["changes"][0]["columns"]["name"]["new"] for event in events], ["ann"])


class Asyncio(HistoryTest):
    def run_async(self, main):
        asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))

    async def open(self):
        return await corvid.aio.connect(self.server.remote, "Zoo", timeout=PATIENCE)

    def test_the_past_is_read(self):
        self.insert_pages(self.connect())

        async def main():
            async with await self.open() as db:
                events = [event async for event in db.read_history(history.log(table="Cage"), timeout=PATIENCE)]
                self.assertEqual([event["changes"][0]["columns"]["name"]["new"] for event in events], ["a", "b", "c"])
                select = {**NAMES, "table": "Cage"}
                both = await asyncio.gather(db.select_at("HEAD~2", select, timeout=PATIENCE), db.select_at(events[1]["id"], select, timeout=PATIENCE))
                self.assertEqual([names_of(results) for results in both], [["a"], ["a", "b"]])
                with self.assertRaises(corvid.HistoryRefused):
                    await db.select_at("HEAD~9", select, timeout=PATIENCE)

        self.run_async(main)

    def test_readings_that_are_given_up_end_at_the_server(self):
        self.insert_pages(self.connect())

        async def main():
            async with await self.open() as db:
                for _ in range(6):
                    async with db.read_history(history.log(), timeout=PATIENCE) as reading:
                        await reading.__anext__()
                for _ in range(6):
                    task = asyncio.create_task(db.select_at("HEAD", NAMES))
                    await asyncio.sleep(0)
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                events = [event async for event in db.read_history(history.log(), timeout=PATIENCE)]
                self.assertEqual(len(events), 3)
                self.wait_for_no_reading()

        self.run_async(main)


class Polled(HistoryTest):
    def drive(self, client, step):
        end = time.monotonic() + PATIENCE
        while not step():
            self.assertLess(time.monotonic(), end)
            client.wait()
            time.sleep(0.001)
            client.run()

    def test_the_past_is_read(self):
        db = self.connect()
        self.insert_pages(db)
        client = corvid.polled.Client(db.schema, self.server.remote, {})
        self.addCleanup(client.close)
        reading, events = client.read_history(history.log()), []

        def step():
            events.extend(reading.take())
            return reading.is_over

        self.drive(client, step)
        self.assertEqual((len(events), reading.done, reading.take()), (3, 1, []))
        query, found = client.select_at("HEAD~1", {**NAMES, "table": "Cage"}), []

        def look():
            results = query.take()
            found.extend(results or [])
            return found

        self.drive(client, look)
        self.assertEqual((names_of(found), query.take()), (["a", "b"], None))
        client.select_at("HEAD", NAMES).close()


@unittest.skipUnless(os.path.exists(REFERENCE), f"{REFERENCE} is not installed")
class Reference(HistoryTest):
    """The server of the reference does not read history."""

    def setUp(self):
        before = os.environ.get("OVSDB_SERVER_UNDER_TEST")
        os.environ["OVSDB_SERVER_UNDER_TEST"] = REFERENCE
        try:
            super().setUp()
        finally:
            if before is None:
                del os.environ["OVSDB_SERVER_UNDER_TEST"]
            else:
                os.environ["OVSDB_SERVER_UNDER_TEST"] = before

    def test_the_past_is_not_offered(self):
        db = self.connect()
        with self.assertRaisesRegex(corvid.HistoryUnsupported, "the server does not read history"):
            list(db.read_history(history.log(), timeout=PATIENCE))
        with self.assertRaises(corvid.HistoryUnsupported):
            db.select_at("HEAD", NAMES, timeout=PATIENCE)
        self.insert(db, "ann")


del HistoryTest
