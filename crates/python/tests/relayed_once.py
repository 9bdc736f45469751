"""Each transaction is executed once, with relays between clients and their server.

Two relays stand in front of a server. Programs know both relays, and do what those of `test_once`
do. A proxy in front of each relay and one in front of the server lose messages, or have a relay or
the server killed. `tests: transactions_through_relays_are_executed_once` runs this module.
"""

import collections
import os
import signal
import subprocess
import time
import unittest
import unittest.mock

import corvid
import ovs.db.idl

from .drop_in import DropInTest
from .test_once import REFERENCE, Proxy
from .zoo import PATIENCE, program

#: How many accidents happen in each play: by default, one of each kind.
ROUNDS = int(os.environ.get("CORVID_ONCE_ROUNDS", 8))
#: How many accidents show that programs of the field do it twice.
ROUNDS_OF_REFERENCE = 2

#: Where an accident happens, and the message at which it does.
KINDS = [
    (place, event, is_reply)
    for place in ("relay", "server")
    for event in ("lose", "kill")
    for is_reply in (False, True)
]


class Relay:
    """A relay of the servers at some remotes, in the directory of another server."""

    def __init__(self, directory, name, sources):
        self.remote = f"unix:{directory}/{name}.sock"
        self.command = [
            program("OVSDB_SERVER_UNDER_TEST", "ovsdb-server"),
            f"relay:Zoo:{sources}",
            f"--remote=p{self.remote}",
            f"--unixctl={directory}/{name}.ctl",
            "-vconsole:off",
            "--no-chdir",
        ]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.remote[len("unix:"):]):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("a relay did not start")
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.unlink(self.remote[len("unix:"):])


class Accidents:
    """The next accident on the way of a transaction, once each time `arm` is called."""

    def __init__(self):
        self.kind = None
        self.happened = collections.Counter()
        self.is_busy = False

    def arm(self, kind):
        # The process that the last accident killed is up again.
        end = time.monotonic() + PATIENCE
        while self.is_busy and time.monotonic() < end:
            time.sleep(0.001)
        self.kind = kind

    def at(self, place, server):
        """What a proxy in front of this server calls with each message."""

        def happen(is_reply, text):
            if self.kind is None or (place, is_reply) != (self.kind[0], self.kind[2]):
                return None
            is_request = b'"transact' in text and b'"insert"' in text
            is_answer = b'"uuid"' in text and b'"result":[' in text
            if not (is_answer if is_reply else is_request):
                return None
            kind, self.kind = self.kind, None
            self.happened[kind] += 1
            if kind[1] == "kill":
                self.is_busy = True
                server.stop()
                server.start()
                self.is_busy = False
            return "lose"

        return happen


class RelayedTest(DropInTest):
    def setUp(self):
        super().setUp()
        self.accidents = Accidents()
        sources = self.proxy("server", self.server)
        self.relays = []
        for name in ("relay-a", "relay-b"):
            relay = Relay(self.server.directory, name, sources)
            self.addCleanup(relay.stop)
            self.relays.append(relay)
        remotes = [self.proxy("relay", relay).split(",") for relay in self.relays]
        self.remote = ",".join(remote for pair in zip(*remotes) for remote in pair)

    def proxy(self, place, server):
        name = os.path.basename(server.remote).removesuffix(".sock")
        proxy = Proxy(server, f"{self.server.directory}/{name}-proxy")
        proxy.accident = self.accidents.at(place, server)
        self.addCleanup(proxy.close)
        return proxy.remote

    def counts(self):
        """How many rows there are of each name."""
        with corvid.connect(self.server.remote, "Zoo", timeout=PATIENCE) as client:
            return collections.Counter(row.name for row in client.Keeper)

    def check(self, names):
        counts = self.counts()
        self.assertEqual(set(counts), set(names))
        self.assertEqual([name for name in names if counts[name] != 1], [])
        self.assertEqual(sum(self.accidents.happened.values()), len(names))

    def drop_in_at_relays(self):
        helper = ovs.db.idl.SchemaHelper(f"{self.server.directory}/zoo.ovsschema")
        helper.register_columns("Keeper", ["name"])
        idl = ovs.db.idl.Idl(self.remote, helper, leader_only=False)
        self.addCleanup(idl.close)
        self.run_until(idl, idl.has_ever_connected)
        return idl

    def insert(self, idl, name):
        """What a program does: makes the transaction until it has an outcome that lasts.

        A relay of the reference that loses its source gives an error, which such programs take for
        the same: nobody knows whether the transaction was executed.
        """
        end = time.monotonic() + PATIENCE
        while True:
            self.assertLess(time.monotonic(), end)
            txn = ovs.db.idl.Transaction(idl)
            row = txn.insert(idl.tables["Keeper"])
            row.name = name
            status = txn.commit_block()
            if status == txn.SUCCESS:
                return
            is_canceled = "canceled" in (txn.get_error() or "")
            self.assertTrue(status == txn.TRY_AGAIN or is_canceled, txn.get_error())
            again = time.monotonic() + 0.05
            self.run_until(idl, lambda: time.monotonic() > again)


class OnceTest(RelayedTest):
    def test_the_drop_in(self):
        idl = self.drop_in_at_relays()
        names = [str(number) for number in range(ROUNDS)]
        for number, name in enumerate(names):
            self.accidents.arm(KINDS[number % len(KINDS)])
            self.insert(idl, name)
        self.check(names)

    def test_the_own_library(self):
        client = corvid.connect(self.remote, "Zoo", timeout=PATIENCE, leader_only=False)
        self.addCleanup(client.close)
        names = [str(number) for number in range(ROUNDS)]
        for number, name in enumerate(names):
            self.accidents.arm(KINDS[-1 - number % len(KINDS)])
            client.transact(lambda txn, name=name: txn.insert("Keeper", name=name), timeout=PATIENCE)
        self.check(names)


@unittest.skipUnless(os.path.exists(REFERENCE), f"{REFERENCE} is not installed")
class ReferenceTest(RelayedTest):
    """Servers and relays of the reference cannot tell, so a program that tries again does it twice."""

    def setUp(self):
        patch = unittest.mock.patch.dict(os.environ, OVSDB_SERVER_UNDER_TEST=REFERENCE)
        patch.start()
        self.addCleanup(patch.stop)
        super().setUp()

    def play(self, kind):
        idl = self.drop_in_at_relays()
        for number in range(ROUNDS_OF_REFERENCE):
            self.accidents.arm(kind)
            self.insert(idl, str(number))
        self.assertEqual(set(self.counts().values()), {2})

    def test_the_reply_of_a_relay_is_lost(self):
        self.play(("relay", "lose", True))

    def test_a_relay_is_killed(self):
        self.play(("relay", "kill", True))

    def test_the_source_is_killed(self):
        self.play(("server", "kill", True))


del DropInTest, RelayedTest
