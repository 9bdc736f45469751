"""Each transaction is executed once, whatever happens to connections and servers.

The programs here do what programs of Open vSwitch's library do: they make a transaction again when
it ends as "try again". A proxy loses requests and replies, or has the server killed.
"""

import collections
import os
import socket
import threading
import time
import unittest

import corvid
import ovs.db.idl

from .drop_in import DropInTest
from .zoo import PATIENCE

#: How often each kind of accident happens.
ROUNDS = 50
REFERENCE = "/usr/sbin/ovsdb-server"


class Proxy:
    """Passes bytes between clients and a server, until an accident. It has many addresses.

    `accident` is called with whether bytes are the server's, and the bytes. It returns None to pass
    them on. Otherwise the connection ends: with "lose" without these bytes, with "pass" after them.
    """

    def __init__(self, server, path):
        self.server = server
        self.accident = lambda is_reply, text: None
        # A client tries each remote once without a wait, so many remotes make short tests.
        paths = [f"{path}{number}" for number in range(2 * ROUNDS)]
        self.remote = ",".join(f"unix:{path}" for path in paths)
        self.listeners = []
        for path in paths:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            self.listeners.append(listener)
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = self.dial()
            for source, sink, is_reply in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=(source, sink, is_reply), daemon=True).start()

    def dial(self):
        """A connection to the server, once it is up again."""
        end = time.monotonic() + PATIENCE
        while True:
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server.remote[len("unix:"):])
                return server
            except OSError:
                server.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def pump(self, source, sink, is_reply):
        try:
            while text := source.recv(1 << 20):
                outcome = self.accident(is_reply, text)
                if outcome == "lose":
                    break
                sink.sendall(text)
                if outcome == "pass":
                    # The server is to read the request before the connection ends.
                    time.sleep(0.01)
                    break
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self):
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


class Accidents:
    """Accidents that happen to the transaction under way, once each time `arm` is called."""

    def __init__(self, server):
        self.server = server
        self.kind = None
        self.happened = collections.Counter()
        self.lock = threading.Lock()

    def arm(self, kind):
        self.kind = kind

    def __call__(self, is_reply, text):
        kind = self.kind
        if kind is None:
            return None
        is_request = not is_reply and b'"transact' in text and b'"insert"' in text
        is_answer = is_reply and b'"uuid"' in text and b'"result":[' in text
        if not (is_answer if kind in ("reply", "kill after") else is_request):
            return None
        self.kind = None
        self.happened[kind] += 1
        if kind.startswith("kill"):
            # The next accident may come before this one has seen its server start.
            with self.lock:
                self.server.stop()
                self.server.start()
        return "pass" if kind == "unread reply" else "lose"


class OnceTest(DropInTest):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.server, f"{self.server.directory}/proxy")
        self.addCleanup(self.proxy.close)
        self.accidents = self.proxy.accident = Accidents(self.server)

    def counts(self):
        """How many rows there are of each name."""
        with corvid.connect(self.server.remote, "Zoo", timeout=PATIENCE) as client:
            return collections.Counter(row.name for row in client.Keeper)

    def check(self, names, kinds):
        counts = self.counts()
        self.assertEqual(set(counts), set(names))
        self.assertEqual([name for name in names if counts[name] != 1], [])
        for kind in kinds:
            self.assertGreaterEqual(self.accidents.happened[kind], ROUNDS // len(kinds) - 1)

    def drop_in_at_proxy(self):
        helper = ovs.db.idl.SchemaHelper(f"{self.server.directory}/zoo.ovsschema")
        helper.register_columns("Keeper", ["name"])
        idl = ovs.db.idl.Idl(self.proxy.remote, helper)
        self.addCleanup(idl.close)
        self.run_until(idl, idl.has_ever_connected)
        return idl

    def insert(self, idl, name):
        """What a program does: makes the transaction until it has an outcome that lasts."""
        end = time.monotonic() + PATIENCE
        while True:
            self.assertLess(time.monotonic(), end)
            seqno = idl.change_seqno
            txn = ovs.db.idl.Transaction(idl)
            row = txn.insert(idl.tables["Keeper"])
            row.name = name
            status = txn.commit_block()
            if status == txn.SUCCESS:
                return
            self.assertEqual(status, txn.TRY_AGAIN, txn.get_error())
            self.run_until(idl, lambda: idl.change_seqno != seqno)

    def play(self, kinds):
        idl = self.drop_in_at_proxy()
        names = [str(number) for number in range(ROUNDS)]
        for number, name in enumerate(names):
            self.accidents.arm(kinds[number % len(kinds)])
            self.insert(idl, name)
        self.check(names, kinds)

    def test_lost_requests_and_replies(self):
        self.play(["request", "reply", "unread reply"])

    def test_killed_servers(self):
        self.play(["kill before", "kill after"])

    def test_the_own_library(self):
        client = corvid.connect(self.proxy.remote, "Zoo", timeout=PATIENCE)
        self.addCleanup(client.close)
        kinds = ["request", "reply", "unread reply", "kill after"]
        names = [str(number) for number in range(ROUNDS)]
        for number, name in enumerate(names):
            self.accidents.arm(kinds[number % len(kinds)])
            client.transact(lambda txn, name=name: txn.insert("Keeper", name=name), timeout=PATIENCE)
        self.check(names, kinds)


@unittest.skipUnless(os.path.exists(REFERENCE), f"{REFERENCE} is not installed")
class ReferenceTest(OnceTest):
    """The server of the reference cannot tell, so a program that tries again does it twice."""

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

    def test_lost_requests_and_replies(self):
        idl = self.drop_in_at_proxy()
        for number in range(5):
            self.accidents.arm("reply")
            self.insert(idl, str(number))
        self.assertEqual(set(self.counts().values()), {2})

    test_killed_servers = None
    test_the_own_library = None


del DropInTest
