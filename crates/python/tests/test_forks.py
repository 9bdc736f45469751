"""Clients in a forked child: an error there, and no harm to the parent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import unittest

import corvid

from .zoo import PATIENCE, SCHEMA, ZooTest


class ForkTest(ZooTest):
    def in_a_child(self, work):
        """Runs `work` in a forked child, where it has to return and not raise."""
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(PATIENCE)
                work()
                os._exit(0)
            except BaseException as error:
                os.write(2, f"in the child: {error!r}\n".encode())
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def add(self, db, name):
        with db.transaction(timeout=PATIENCE) as txn:
            txn.insert("Cage", name=name)

    def test_a_connected_client(self):
        db = self.connect()
        self.add(db, "a")
        row = next(iter(db.Cage))

        def misuse():
            for use in (db.run, db.wait_for_change, lambda: self.add(db, "x"), lambda: db.wait_until(lambda: True)):
                with self.assertRaisesRegex(corvid.UsageError, "belongs to the parent"):
                    use()
            self.assertEqual(row.name, "a")
            db.close()

        self.in_a_child(misuse)
        self.add(db, "b")
        self.assertEqual((len(db.Cage), db.metrics()["connects"]), (2, 1))

    def test_a_client_that_another_thread_waits_with(self):
        db = self.connect()
        over = threading.Event()

        def wait():
            db.wait_until(over.is_set, PATIENCE)

        waiting = threading.Thread(target=wait)
        waiting.start()
        try:
            for _ in range(5):

                def misuse():
                    with self.assertRaises(corvid.UsageError):
                        db.wait_for_change(PATIENCE)
                    db.close()

                self.in_a_child(misuse)
                self.add(db, f"cage {len(db.Cage)}")
        finally:
            over.set()
            db.run()
            waiting.join()
        self.assertEqual((len(db.Cage), db.metrics()["connects"]), (5, 1))

    def test_an_event_loop(self):
        async def main():
            db = await corvid.aio.connect(self.server.remote, "Zoo", timeout=PATIENCE)
            changes = db.changes("Cage", timeout=PATIENCE)

            def give_up():
                # What a collector does to a task that is left.
                db._driver.get_coro().close()
                with self.assertRaises(corvid.UsageError):
                    db.native.run()
                db.native.close()

            self.in_a_child(give_up)
            self.add(self.connect(), "a")
            self.assertEqual((await changes.__anext__()).row.name, "a")
            self.assertEqual(db.metrics()["connects"], 1)
            await db.close()

        asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))


class Daemons(ZooTest):
    def test_a_daemon_inherits_the_connection_of_the_process_that_starts_it(self):
        text = """
            import json, os, sys
            from corvid.ovs import daemon
            from corvid.ovs.db import idl, schema
            from corvid.ovs.poller import Poller
            helper = idl.SchemaHelper(schema_json=json.loads(sys.argv[2]))
            helper.register_all()
            replica = idl.Idl(sys.argv[1], helper)

            def run_until(holds):
                while not holds():
                    replica.run()
                    poller = Poller()
                    replica.wait(poller)
                    poller.timer_wait(100)
                    poller.block()

            run_until(lambda: replica.has_ever_connected())
            connects = dict(replica._native.metrics())["connects"]
            daemon.set_detach()
            daemon.daemonize_start()
            txn = idl.Transaction(replica)
            txn.insert(replica.tables["Cage"]).name = "by the daemon"
            run_until(lambda: txn.commit() != idl.Transaction.INCOMPLETE)
            assert txn.commit() == idl.Transaction.SUCCESS, txn.commit()
            assert dict(replica._native.metrics())["connects"] == connects
            daemon.daemonize_complete()
        """
        path = [os.path.abspath(folder) for folder in sys.path if folder]
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(path), OVS_SYSLOG_METHOD="null")
        subprocess.run([sys.executable, "-c", textwrap.dedent(text), self.server.remote, json.dumps(SCHEMA)], env=env, check=True, timeout=PATIENCE)
        self.assertEqual([row.name for row in self.connect().Cage], ["by the daemon"])


if __name__ == "__main__":
    unittest.main()
