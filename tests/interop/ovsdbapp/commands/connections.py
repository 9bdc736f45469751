"""Connections: made from the server's schema, tables added and removed at run time, reconnection, restarts, failures."""

import threading

from harness.connection import Connection as Wire
from ovsdbapp.backend.ovs_idl import connection, idlutils, vlog

from stage import Play, Watched, fresh
from types_api import Acting, TypesApi

WAIT_S = 10


class Yielding(Watched):
    """Counts the rows between which it lets others run."""

    def __init__(self, *arguments, **options):
        self.yields = 0
        self.connected = 0
        super().__init__(*arguments, **options)

    def cooperative_yield(self):
        self.yields += 1

    def post_connect(self):
        self.connected += 1


def some_tables(transcript, remote, address, _restart_server):
    """An Idl of some tables of the server; tables come and go at run time."""
    idl = Yielding.from_server(remote, "Types", helper_tables=["Everything", "Single"])
    play = Play(transcript, "some tables", remote, address, TypesApi, idl=idl)
    play.scene("tables at run time")
    play.attempt("tables", lambda: sorted(play.idl.tables))
    play.attempt("post_connect was called", lambda: idl.connected)
    play.do.db_create("Everything", name="some", choice="red")
    play.attempt("yields between rows", lambda: idl.yields > 0)
    play.do.db_create("Late", name="x")
    play.attempt("a column that refers to a table that is not there", lambda: play.api.lookup("Everything", "some").children)
    play.other({"op": "insert", "table": "Late", "row": {"name": "early", "count": 4}})
    add_tables(play)
    remove_tables(play)
    play.do.db_destroy("Everything", "some")
    play.finish()


def add_tables(play):
    idl = play.idl
    with play.connection.lock:
        idl.update_tables(["Late", "Nosuch"], play.schema)
    play.attempt("tables after Late was added", lambda: sorted(idl.tables))
    with play.connection.lock:
        idl.tables["Late"].rows.index_create("name").add_column("name")
    play.resume("force_reconnect", play.connection.force_reconnect)
    play.until("the rows of Late are here", lambda: len(idl.tables["Late"].rows) == 1)
    play.do.db_list("Late")
    play.do.db_create("Late", name="added", count=1)
    play.do.db_set("Late", "added", ("count", 2))
    play.do.db_get("Late", "added", "count")
    play.do.db_find("Late", ("name", "=", "added"))
    play.do.db_destroy("Late", "added")
    play.do.db_set("Everything", "some", ("integer", 3))
    play.contents("Late", "Everything")


def remove_tables(play):
    idl = play.idl
    smaller = {**play.schema, "tables": {name: table for name, table in play.schema["tables"].items() if name != "Late"}}
    with play.connection.lock:
        idl.update_tables([], smaller)
    play.attempt("tables after Late was removed", lambda: sorted(idl.tables))
    play.resume("force_reconnect", play.connection.force_reconnect)
    play.other({"op": "insert", "table": "Late", "row": {"name": "unseen"}})
    play.other({"op": "update", "table": "Everything", "where": [["name", "==", "some"]], "row": {"integer": 9}})
    play.until("a change of another table is here", lambda: play.api.lookup("Everything", "some").integer == 9)
    play.do.db_list("Late")
    play.do.db_set("Everything", "some", ("integer", 10))
    play.other({"op": "delete", "table": "Late", "where": []})
    play.contents("Everything")


def failures(transcript, remote, address, _restart_server):
    """Connections that cannot be made, transactions that nobody takes."""
    play = Play(transcript, "failures", remote, address, TypesApi)
    play.scene("failures")
    api_class = fresh(TypesApi)
    play.attempt("a database that is not there", lambda: idlutils.get_schema_helper(remote, "Nosuch"))
    helper = idlutils.get_schema_helper(remote, "Types")
    helper.register_table("Late")
    absent = Watched("unix:/nonexistent/socket", helper)
    play.attempt("a server that is not there", lambda: api_class(connection.Connection(idl=absent, timeout=0.5)))
    helper = idlutils.get_schema_helper(remote, "Types")
    helper.register_table("Late")
    idle = fresh(TypesApi)(connection.Connection(idl=Watched(remote, helper), timeout=0.5), start=False)
    play.attempt("a connection that was not started", lambda: idle.db_create("Late", name="x").execute(check_error=True))
    play.attempt("its queue is full", lambda: idle.db_create("Late", name="x").execute(check_error=True))
    play.attempt("a table that was not registered", lambda: idlutils.get_schema_helper(remote, "Types").register_table("Nosuch"))
    play.attempt("a column that is not there", lambda: idlutils.get_schema_helper(remote, "Types").register_columns("Late", ["nosuch"]))
    play.finish()


def early_locks(transcript, remote, address, _restart_server):
    """A lock that is asked for before the first connection, free and taken; the replica is loaded all the same."""
    with Wire(address) as wire:
        wire.transact("Types", {"op": "insert", "table": "Late", "row": {"name": "loaded"}})
        for taken in (False, True):
            if taken:
                wire.call("lock", "early_True")
            idl = Watched.from_server(remote, "Types")
            idl.set_lock(f"early_{taken}")
            heard = []
            idl.notify_lock = lambda name, held, heard=heard: heard.append([name, held])
            play = Play(transcript, f"early locks, taken {taken}", remote, address, TypesApi, idl=idl)
            play.scene("a lock before the connection")
            play.attempt("rows", lambda: sorted(row.name for row in play.idl.tables["Late"].rows.values()))
            play.until("the lock is known", lambda: idl.is_lock_contended if taken else idl.has_lock)
            play.attempt("state", lambda: [idl.has_lock, idl.is_lock_contended])
            play.do.db_set("Late", "loaded", ("count", 5 + taken))
            play.resume("force_reconnect", play.connection.force_reconnect)
            play.until("the lock is known again", lambda: idl.is_lock_contended if taken else idl.has_lock)
            play.do.db_set("Late", "loaded", ("count", 7 + taken))
            play.contents("Late")
            play.attempt("a lock set within a transaction", lambda: Acting(play.api, "lock", lambda _: idl.set_lock("x")).execute(check_error=True))
            play.say(f"  heard first {heard[:1]}")
            play.finish()


def messages(transcript, remote, address, _restart_server):
    """ovsdbapp takes the functions of the library's log and gives them back."""
    play = Play(transcript, "messages", remote, address, TypesApi)
    play.scene("messages of the library")
    levels = list(vlog.ALL_LEVELS)
    play.attempt("taken", lambda: [vlog.is_patched(level) for level in levels])
    vlog.reset_logger()
    play.attempt("given back", lambda: [vlog.is_patched(level) for level in levels])
    vlog.use_python_logger(max_level=vlog.INFO)
    play.attempt("taken up to INFO", lambda: [vlog.is_patched(level) for level in levels])
    vlog.reset_logger()
    vlog.use_python_logger(levels=[vlog.WARN])
    play.attempt("one level", lambda: [vlog.is_patched(level) for level in levels])
    vlog.reset_logger()
    vlog.use_python_logger(max_level=vlog.WARN)
    play.finish()


def reconnections(transcript, remote, address, restart_server):
    """Reconnection on demand, then a restart of the server under a stream of transactions."""
    play = Play(transcript, "reconnections", remote, address, TypesApi)
    play.scene("reconnection")
    play.do.db_create("Everything", name="steady", choice="red", set_string=["a"])
    play.do.db_create("Late", name="late")
    seqno = play.idl.change_seqno
    play.resume("force_reconnect", play.connection.force_reconnect)
    play.do.db_set("Everything", "steady", ("integer", 1))
    play.attempt("changes were counted", lambda: play.idl.change_seqno > seqno)
    play.contents("Everything", "Late")
    play.scene("restart of the server")
    stream(play, restart_server)
    play.contents("Everything", "Late")
    play.do.db_create("Late", name="after", count=3)
    play.do.db_destroy("Late", "late")
    play.do.db_destroy("Late", "after")
    play.do.db_destroy("Everything", "steady")
    play.contents("Everything", "Late")
    play.finish()


def stream(play, restart_server):
    """Transactions before, while and after the server is down; every one is carried out in the end."""
    problems, done, stop = [], [], threading.Event()

    def write():
        while not stop.is_set() or len(done) < 5:
            number = len(done)
            try:
                play.api.db_set("Everything", "steady", ("integer", number)).execute(check_error=True)
                if play.api.db_get("Everything", "steady", "integer").execute(check_error=True) != number:
                    problems.append("reads something else")
            except Exception as error:  # noqa: BLE001
                problems.append(f"{type(error).__name__}: {error}")
                return
            done.append(number)

    known = set(play.transcript.names)
    writer = threading.Thread(target=write)
    writer.start()
    play.wire.close()
    restart_server()
    stop.set()
    writer.join(WAIT_S * 2)
    play.rewire()
    # How many transactions were done depends on the machine.
    play.api.db_set("Everything", "steady", ("integer", -1)).execute(check_error=True)
    play.idl.notify_handler.notifications.join()
    play.changes.clear()
    play.messages.take()
    play.say(f"  problems {problems}, writer left {writer.is_alive()}, some were done {len(done) > 0}")
    play.do.db_set("Everything", "steady", ("integer", 1000))
    play.until("the value is here", lambda: play.api.lookup("Everything", "steady").integer == 1000, known)
