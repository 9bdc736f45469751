"""More than one at work: changes by another client under a transaction, locks, threads, dependent commands."""

import threading
import uuid

from ovsdbapp.backend.ovs_idl import transaction

from types_api import Acting

WAIT_S = 10
THREADS = 6
ROUNDS = 12


def retried(play):
    """Another client changes what a transaction read, before it commits: it is tried again with the new values."""
    play.scene("changes under a transaction")
    api = play.api
    play.do.db_create("Everything", name="contested", choice="red", map_string={"a": "1"})
    where = [["name", "==", "contested"]]
    attempts = []

    def interfere(_txn):
        attempts.append(1)
        if len(attempts) < 3:
            play.other({"op": "mutate", "table": "Everything", "where": where, "mutations": [["map_string", "insert", ["map", [[f"other{len(attempts)}", "x"]]]]]})
        return len(attempts)

    def contested():
        with api.transaction(check_error=True) as txn:
            txn.add(api.db_set("Everything", "contested", ("map_string", {"mine": "y"})))
            txn.add(Acting(api, "interfere", interfere))
        return txn.result

    play.attempt("a map that another client changes meanwhile", contested)
    play.contents("Everything")

    def vanish(_txn):
        attempts.append(1)
        if len(attempts) == 4:
            play.other({"op": "delete", "table": "Everything", "where": where})

    def vanished():
        with api.transaction(check_error=True) as txn:
            txn.add(api.db_set("Everything", "contested", ("map_string", {"late": "z"})))
            txn.add(Acting(api, "vanish", vanish))
        return txn.result

    play.attempt("a row that another client removes meanwhile", vanished)
    endless(play)


def endless(play):
    api = play.api
    play.do.db_create("Everything", name="endless", choice="red")
    count = []

    def always(_txn):
        count.append(1)
        play.other({"op": "mutate", "table": "Everything", "where": [["name", "==", "endless"]], "mutations": [["map_integer", "insert", ["map", [[f"k{len(count)}", 1]]]]]})

    def tried():
        txn = transaction.Transaction(api, play.connection, 0.3, check_error=True)
        txn.add(api.db_set("Everything", "endless", ("map_integer", {"mine": 1})))
        txn.add(Acting(api, "always", always))
        try:
            # The connection is asked itself, because a queued transaction is waited for no longer than it may take.
            with play.connection.lock:
                return txn.do_commit()
        finally:
            # How often it was tried depends on the machine.
            api.db_destroy("Everything", "endless").execute(check_error=True)
            play.changes.clear()

    play.attempt("changes without end", tried)


def dependent(play):
    """Results of commands as values of later ones: alone, in lists, tuples and maps, as the record of others."""
    play.scene("commands that depend on each other")
    api = play.api

    def chain():
        with api.transaction(check_error=True) as txn:
            children = [txn.add(api.db_create_row("Child", name=f"dep{number}")) for number in range(3)]
            parent = txn.add(api.db_create("Everything", name="parent", choice="green", child=children[0], children=children[1:]))
            txn.add(api.db_set("Everything", parent, ("named", {"n": children[2]}), ("string", "set in the same transaction")))
            txn.add(api.db_add("Everything", parent, "friends", parent))
            txn.add(api.db_set("Child", children[0], ("count", 5)))
            txn.add(Acting(api, "look", lambda _: api.lookup("Everything", "parent").name))
        return txn.result

    play.attempt("a chain of commands", chain)
    play.contents("Everything", "Child")

    def within():
        found = []

        def look(txn):
            row = api.lookup("Everything", "parent")
            row.addvalue("set_integer", 5)
            row.setkey("map_integer", "k", 6)
            row.integer = 9
            found.append([row.set_integer, row.map_integer, row.integer])
            made = txn.insert(api.tables["Everything"])
            made.name, made.choice = "inside", "red"
            found.append([api.lookup("Everything", "inside") == made, made.name, hasattr(made, "string"), made in list(api.tables["Everything"].rows.values())])
            made.delete()
            found.append([api.lookup("Everything", "inside", None), len(found)])
            return found

        return Acting(api, "look", look).execute(check_error=True)

    play.attempt("a row within its transaction", within)
    play.contents("Everything")

    def removed_and_read():
        with api.transaction(check_error=True) as txn:
            txn.add(api.db_destroy("Everything", "parent"))
            txn.add(api.db_get("Everything", "parent", "name"))
        return txn.result

    play.attempt("a row removed, then looked up", removed_and_read)
    dangling(play)
    persistent(play)
    play.do.db_destroy("Everything", "parent")
    play.contents()


def dangling(play):
    api = play.api

    def orphan():
        with api.transaction(check_error=True) as txn:
            return [txn.add(api.db_create("Child", name="orphan")), txn.add(api.db_set("Single", ".", ("notes", {"n": "1"})))]

    play.do.db_create("Single", count=2)
    play.attempt("a child that nothing refers to", orphan)
    play.do.db_create("Single", count=3)
    play.do.db_destroy("Single", ".")
    play.do.db_set("Everything", "parent", ("child", uuid.UUID(int=77)))


def persistent(play):
    """Whether the library can ask for a uuid, as applications probe it, and what comes of it."""
    api = play.api
    wanted = uuid.UUID("33333333-3333-4333-8333-333333333333")

    def insert(txn):
        row = txn.insert(api.tables["Late"], new_uuid=wanted, persist_uuid=True)
        row.name = "persistent"
        return row.uuid == wanted

    play.attempt("an insertion with a uuid of our choice", lambda: Acting(api, "persist", insert).execute(check_error=True))
    play.attempt("its uuid", lambda: str(api.lookup("Late", "persistent").uuid) == str(wanted))
    play.attempt("the same uuid again", lambda: Acting(api, "persist", insert).execute(check_error=True))
    play.do.db_destroy("Late", wanted)


def locks(play):
    """Locks: held by another client, given up, stolen; transactions need them."""
    play.scene("locks")
    api, idl = play.api, play.idl
    heard = []
    idl.notify_handler.lock_acquired = lambda name: heard.append(f"acquired {name}")
    idl.notify_handler.lock_lost = lambda name: heard.append(f"lost {name}")
    idl.notify_lock = idl.notify_handler.notify_lock
    play.wire.call("lock", "plays")

    def set_lock(name):
        with play.connection.lock:
            idl.set_lock(name)
        play.connection.txns.alert_notify()

    def state():
        return [idl.lock_name, idl.has_lock, idl.is_lock_contended]

    set_lock("plays")
    play.until("the lock is contended", lambda: idl.is_lock_contended)
    play.attempt("state", state)
    play.do.db_create("Late", name="unlocked")
    play.wire.call("unlock", "plays")
    play.until("the lock is ours", lambda: idl.has_lock)
    play.attempt("state", state)
    play.do.db_create("Late", name="locked")
    play.wire.call("steal", "plays")
    play.until("the lock is stolen", lambda: not idl.has_lock)
    play.attempt("state", state)
    play.do.db_set("Late", "locked", ("count", 1))
    play.wire.call("unlock", "plays")
    play.until("the lock is ours again", lambda: idl.has_lock)
    idl.notify_handler.notifications.join()
    play.say(f"  heard {heard}")
    idl.notify_lock = None
    set_lock(None)
    play.attempt("state without a lock", state)
    play.do.db_set("Late", "locked", ("count", 2))
    set_lock("others")
    play.until("another lock is ours", lambda: idl.has_lock)
    play.do.db_destroy("Late", "locked")
    set_lock(None)
    play.contents()


def threads(play):
    """Many threads submit commands at once; each sees the results of its own."""
    play.scene("threads")
    api = play.api
    play.do.db_create("Everything", name="shared", choice="red")
    play.idl.notify_handler.unwatch_events(list(play.idl.notify_handler._watched_events))
    problems = []

    def work(number):
        try:
            for turn in range(ROUNDS):
                name = f"t{number}-{turn}"
                row = api.db_create_row("Late", name=name, count=turn).execute(check_error=True)
                if row.name != name or api.db_get("Late", name, "count").execute(check_error=True) != turn:
                    problems.append(name)
                with api.transaction(check_error=True) as txn:
                    txn.add(api.db_set("Late", name, ("count", turn * 10)))
                    txn.add(api.db_add("Everything", "shared", "set_string", name))
                    txn.add(api.db_set("Everything", "shared", ("map_integer", {name: turn})))
                if turn % 3 == 0:
                    api.db_destroy("Late", name).execute(check_error=True)
                    if api.lookup("Late", name, None) is not None:
                        problems.append(f"{name} is still there")
        except Exception as error:  # noqa: BLE001
            problems.append(f"{type(error).__name__}: {error}")

    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT_S * 3)
    play.say(f"  problems {sorted(problems)}, threads left {sum(worker.is_alive() for worker in workers)}")
    # The rows came in the order of the threads, so they are named by what they hold.
    play.settle()
    play.contents()
    for row in sorted(api.db_list_rows("Late").execute(check_error=True), key=lambda row: row.name):
        api.db_destroy("Late", row.uuid).execute(check_error=True)
    api.db_destroy("Everything", "shared").execute(check_error=True)
    play.settle()


def perform(play):
    retried(play)
    dependent(play)
    locks(play)
    threads(play)
