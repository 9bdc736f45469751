"""Row events: conditions on new and old values, kinds, priorities, events that fire once, handlers that fail."""

import threading

from ovsdbapp.backend.ovs_idl import event

from transcript import plain

CREATE, UPDATE, DELETE = event.RowEvent.ROW_CREATE, event.RowEvent.ROW_UPDATE, event.RowEvent.ROW_DELETE
WAIT_S = 10


class Recording(event.RowEvent):
    """Keeps what it is run with; `rank` orders it among the others, because those of one priority have no order."""

    def __init__(self, kept, name, rank, *arguments, columns=("name", "integer", "set_string", "map_string"), **options):
        self.kept = kept
        self.priority = rank
        self.columns = columns
        super().__init__(*arguments, **options)
        self.event_name = name

    def run(self, kind, row, old):
        values = {column: plain(getattr(row, column)) for column in self.columns}
        before = None if old is None else {column: plain(getattr(old, column)) for column in old._table.columns if hasattr(old, column)}
        self.kept.append((self.event_name, kind, values, before))


class Choosy(Recording):
    def match_fn(self, kind, row, old):
        return row.integer > 5 and (old is None or hasattr(old, "integer"))


class Breaking(Recording):
    def match_fn(self, kind, row, old):
        raise ValueError("fails while it matches")


class BreakingLater(Recording):
    def run(self, kind, row, old):
        raise ValueError("fails while it runs")


class Awaited(event.WaitEvent):
    event_name = "Awaited"


def drain(play, kept):
    play.idl.notify_handler.notifications.join()
    # Rows that changed in one transaction come in the order of their uuids.
    for name, kind, values, before in sorted(kept, key=lambda one: one[2]["name"]):
        play.say(f"  {name}: {kind} {play.show(values)} before {play.show(before)}")
    kept.clear()
    play.settle()


def watched(play, kept):
    every = (CREATE, UPDATE, DELETE)
    return [
        Recording(kept, "all", 90, every, "Everything", None),
        Recording(kept, "created", 80, (CREATE,), "Everything", None),
        Recording(kept, "updated", 79, (UPDATE,), "Everything", None),
        Recording(kept, "deleted", 78, (DELETE,), "Everything", None),
        Recording(kept, "named", 70, every, "Everything", (("name", "=", "one"),)),
        Recording(kept, "not named", 69, every, "Everything", (("name", "!=", "one"),)),
        Recording(kept, "seven", 68, every, "Everything", (("integer", "=", 7),)),
        Recording(kept, "was seven", 67, (UPDATE,), "Everything", None, old_conditions=(("integer", "=", 7),)),
        Recording(kept, "seven to eight", 66, (UPDATE,), "Everything", (("integer", "=", 8),), old_conditions=(("integer", "=", 7),)),
        Recording(kept, "map has", 65, every, "Everything", (("map_string", "=", {"k": "v"}),)),
        Recording(kept, "map had", 64, (UPDATE,), "Everything", None, old_conditions=(("map_string", "=", {"k": "v"}),)),
        Recording(kept, "set has", 63, every, "Everything", (("set_string", "=", ["x"]),)),
        Recording(kept, "wrong operand", 62, every, "Everything", (("integer", "=", "text"),)),
        Choosy(kept, "choosy", 50, every, "Everything", None),
        Breaking(kept, "breaking", 40, (CREATE,), "Everything", None),
        BreakingLater(kept, "breaking later", 39, (CREATE,), "Everything", None),
        Recording(kept, "children", 30, every, "Child", None, columns=("name", "count")),
    ]


def perform(play):
    handler, kept, api = play.idl.notify_handler, [], play.api
    do = play.do
    play.scene("events")
    events = watched(play, kept)
    handler.watch_events(events)
    once = Awaited((UPDATE,), "Everything", (("name", "=", "one"),), timeout=WAIT_S)
    handler.watch_event(once)
    play.attempt("events as text", lambda: [repr(one) for one in events[:3]])
    play.attempt("events compared", lambda: [events[0] == events[0], events[0] == events[1], len({*events, *events}) > 1])
    do.db_create("Everything", name="one", integer=7, choice="red")
    drain(play, kept)
    do.db_set("Everything", "one", ("integer", 8))
    drain(play, kept)
    play.attempt("the awaited event came", once.wait)
    play.attempt("and is watched no more", lambda: once in set(handler._watched_events))
    for column, value in (("integer", 7), ("integer", 7), ("map_string", {"k": "v"}), ("map_string", {"k": "w", "l": "v"}), ("set_string", ["x", "y"]), ("set_string", ["z"]), ("maybe_real", 1.5), ("maybe_real", [])):
        do.db_set("Everything", "one", (column, value))
        drain(play, kept)
    several(play, kept)
    references(play, kept)
    others(play, kept)
    handler.unwatch_event(events[0])
    handler.unwatch_events(events[1:4])
    handler.unwatch_event(once)
    do.db_set("Everything", "one", ("integer", 1))
    do.db_destroy("Everything", "one")
    drain(play, kept)
    conditional(play, kept, api)


def several(play, kept):
    """Several changes of one row in one transaction are one event; a row made and removed in one is none."""
    api = play.api
    with api.transaction(check_error=True) as txn:
        for column, value in (("integer", 1), ("string", "a"), ("real", 2.5), ("string", "b"), ("boolean", True)):
            txn.add(api.db_set("Everything", "one", (column, value)))
        txn.add(api.db_add("Everything", "one", "set_integer", 3, 1, 2))
        txn.add(api.db_remove("Everything", "one", "map_string", "k"))
    drain(play, kept)
    with api.transaction(check_error=True) as txn:
        brief = txn.add(api.db_create("Everything", name="brief", choice="red"))
        txn.add(api.db_destroy("Everything", brief))
        txn.add(api.db_set("Everything", "one", ("integer", 2)))
    drain(play, kept)


def references(play, kept):
    """A child goes with its last reference; weak references go with the row they point at."""
    api, do = play.api, play.do
    with api.transaction(check_error=True) as txn:
        child = txn.add(api.db_create("Child", name="c", count=1))
        txn.add(api.db_set("Everything", "one", ("child", child)))
    drain(play, kept)
    do.db_set("Child", "one", ("count", 2))
    drain(play, kept)
    do.db_create("Everything", name="friend", choice="green")
    do.db_set("Everything", "one", ("friends", [api.lookup("Everything", "friend")]))
    drain(play, kept)
    do.db_destroy("Everything", "friend")
    drain(play, kept)
    do.db_clear("Everything", "one", "child")
    drain(play, kept)


def others(play, kept):
    """Changes of another client."""
    where = [["name", "==", "one"]]
    play.other({"op": "update", "table": "Everything", "where": where, "row": {"integer": 70, "set_string": ["set", ["p", "q"]]}})
    play.until("the change is here", lambda: play.api.lookup("Everything", "one").integer == 70)
    drain(play, kept)
    play.other({"op": "mutate", "table": "Everything", "where": where, "mutations": [["integer", "+=", 1], ["set_string", "insert", "r"], ["map_integer", "insert", ["map", [["n", 5]]]]]})
    play.until("the mutation is here", lambda: play.api.lookup("Everything", "one").integer == 71)
    drain(play, kept)


def conditional(play, kept, api):
    """Rows come and go with the condition of a table."""
    do = play.do
    play.scene("conditions of tables")
    for number in range(4):
        do.db_create("Late", name=f"late{number}", count=number)
    handler = play.idl.notify_handler
    handler.watch_event(Recording(kept, "late", 20, (CREATE, UPDATE, DELETE), "Late", None, columns=("name", "count")))

    def conditioned(condition, names):
        with play.connection.lock:
            play.idl.cond_change("Late", condition)
        play.connection.txns.alert_notify()
        play.until(f"rows are {names}", lambda: sorted(row.name for row in play.idl.tables["Late"].rows.values()) == names)
        drain(play, kept)

    conditioned([["count", "<", 2]], ["late0", "late1"])
    conditioned([["count", "==", 0], ["name", "==", "late3"]], ["late0", "late3"])
    conditioned([False], [])
    conditioned([], [])
    conditioned([True], ["late0", "late1", "late2", "late3"])
    play.attempt("a condition of a table that is not there", lambda: play.idl.cond_change("Nosuch", [True]))
    for number in range(4):
        do.db_destroy("Late", f"late{number}")
    drain(play, kept)
    play.attempt("threads are daemons", lambda: all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()))
