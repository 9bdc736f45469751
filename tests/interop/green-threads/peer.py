"""A program of green threads: whatever one of them waits for, the others go on.

    peer.py eventlet|gevent corvid|ovs REMOTE SCHEMA
"""

import signal
import sys

# A wait that stops all green threads ends here.
signal.alarm(60)
LIBRARY, PACKAGE, REMOTE, SCHEMA = sys.argv[1:]
if LIBRARY == "eventlet":
    import eventlet

    eventlet.monkey_patch()
else:
    import gevent.monkey

    gevent.monkey.patch_all()

import threading  # noqa: E402 - the patched one
import time  # noqa: E402

NAMES = [f"{thread}-{number}" for thread in range(5) for number in range(5)]


class Ticks(threading.Thread):
    """Counts as long as nothing stops it."""

    count = 0

    def __init__(self):
        super().__init__(daemon=True)
        self.start()

    def run(self):
        while True:
            time.sleep(0.005)
            self.count += 1

    def go_on(self):
        """Waits until more have been counted."""
        before = self.count
        while self.count < before + 20:
            time.sleep(0.005)


def all_of(*targets):
    """Runs functions as green threads to their ends. Raises the exception of one."""
    failures = []

    def guarded(target):
        try:
            target()
        except BaseException as error:  # noqa: BLE001 - the program fails with it
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def with_corvid(ticks):
    import corvid

    db = corvid.connect(REMOTE, "inventory", timeout=30)
    changes = db.changes("Site")
    seen = []

    def reader():
        for change in changes:
            seen.append(change.row.name)
            if len(seen) == len(NAMES):
                return

    def writer(names):
        def write():
            for name in names:
                db.transact(lambda txn, name=name: txn.insert("Site", name=name), timeout=30)

        return write

    def first():
        # The reader waits meanwhile.
        ticks.go_on()
        all_of(*(writer(NAMES[first : first + 5]) for first in range(0, len(NAMES), 5)))

    all_of(reader, first)
    assert sorted(seen) == sorted(NAMES), seen
    try:
        db.wait_until(lambda: False, timeout=0.3)
    except corvid.TimedOut:
        pass
    # A wait without an end of its own ends when the connection is made anew.
    before = db.seqno
    all_of(lambda: db.wait_until(lambda: db.session.is_synced and not seen, timeout=30), ticks.go_on, seen.clear, db.reconnect)
    assert db.seqno >= before
    db.close()


def with_ovs(ticks):
    import ovs.db.idl
    import ovs.poller

    seen = []

    class Idl(ovs.db.idl.Idl):
        def notify(self, event, row, updates=None):
            if event == ovs.db.idl.ROW_CREATE:
                seen.append(row.name)

    def replica():
        helper = ovs.db.idl.SchemaHelper(SCHEMA)
        helper.register_all()
        return Idl(REMOTE, helper)

    def until(idl, holds):
        while True:
            idl.run()
            if holds():
                return
            poller = ovs.poller.Poller()
            idl.wait(poller)
            poller.block()

    reading, writing = replica(), replica()
    until(writing, lambda: writing.change_seqno)

    def write():
        ticks.go_on()
        for name in NAMES:
            txn = ovs.db.idl.Transaction(writing)
            txn.insert(writing.tables["Site"]).name = name
            assert txn.commit_block() == txn.SUCCESS

    all_of(lambda: until(reading, lambda: len(set(seen)) == len(NAMES)), write)
    reading.close()
    writing.close()


ticks = Ticks()
{"corvid": with_corvid, "ovs": with_ovs}[PACKAGE](ticks)
print("ok")
