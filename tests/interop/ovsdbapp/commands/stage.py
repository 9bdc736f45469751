"""The stage of a play: one ovsdbapp API over a connection of its own, whose every command goes into the transcript.

`play.do.NAME(...)` makes the command NAME, executes it, and writes its arguments, its result or exception, the messages
that ovsdbapp logged and the row events that came of it. A command that fails with `check_error` is executed again without
it, because callers use both. `play.contents()` writes the rows of every table that changed since it was last asked,
and says where the replica differs from what another connection selects.
"""

import json
import logging
import time

from harness.connection import Connection as Wire
from ovsdbapp.backend.ovs_idl import connection, event

from coverage import Coverage
from transcript import plain

TIMEOUT_S = 10
MESSAGES_MAX = 200
# Commands whose results are lists of names in the order of rows.
UNORDERED = {"list_br", "list_ports", "list_ifaces", "get_manager", "get_controller"}
# Columns that count transactions: a library may leave out transactions that change nothing.
HIDDEN = {("Open_vSwitch", "next_cfg")}


class Messages(logging.Handler):
    """Keeps the messages that are logged between two commands, a trace as its last line."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.kept = []

    def emit(self, record):
        lines = record.getMessage().strip().split("\n")
        if lines[0].startswith("Traceback"):
            lines = [f"Traceback: {lines[-1]}"]
        if record.exc_info and not lines[0].startswith("Error executing"):
            lines[0] += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        # A connection whose replica fails logs without end.
        if len(self.kept) < MESSAGES_MAX:
            self.kept.append(f"{record.levelname} {lines[0]}")

    def take(self):
        kept, self.kept = self.kept, []
        return kept


class Everything(event.RowEvent):
    """Matches every change of one table and keeps it."""

    def __init__(self, table, kept):
        self.kept = kept
        super().__init__((self.ROW_CREATE, self.ROW_UPDATE, self.ROW_DELETE), table, None)

    def match_fn(self, kind, row, old):
        # The values are taken here, in the thread of the connection, because the row changes later.
        table = row._table.columns
        values = {column: plain(getattr(row, column)) for column in table if hasattr(row, column)}
        before = {column: plain(getattr(old, column)) for column in table if old is not None and hasattr(old, column)}
        self.kept.append((kind, row._table.name, row.uuid, values, before))
        return True

    def run(self, kind, row, old):
        pass


class Watched(connection.OvsdbIdl):
    """An Idl whose changes go to a row event handler, as applications of ovsdbapp have it."""

    def __init__(self, *arguments, **options):
        self.notify_handler = event.RowEventHandler()
        super().__init__(*arguments, **options)

    def notify(self, kind, row, updates=None):
        self.notify_handler.notify(kind, row, updates)


def fresh(api_class):
    """A subclass with a connection of its own, because a Backend keeps its connection in the class."""
    return type(api_class.__name__, (api_class,), {"_ovsdb_connection": None})


class Play:
    """`address` is where the harness connects, `remote` the same place as ovsdbapp names it."""

    def __init__(self, transcript, title, remote, address, api_class, *, idl=None, watch=True, coverage=None):
        self.transcript = transcript
        self.title = title
        self.remote = remote
        self.database = api_class.schema
        self.messages = Messages()
        logger = logging.getLogger("ovsdbapp")
        logger.handlers[:] = [self.messages]
        logger.propagate = False
        self.address = address
        self.rewire()
        self.schema = self.wire.call("get_schema", self.database)
        self.idl = idl or Watched.from_server(remote, self.database)
        self.connection = connection.Connection(idl=self.idl, timeout=TIMEOUT_S)
        self.changes = []
        if watch:
            self.idl.notify_handler.watch_events([Everything(table, self.changes) for table in self.idl.tables])
        self.api = fresh(api_class)(self.connection)
        self.coverage = coverage or Coverage(title, api_class)
        self.do = Doer(self)
        self.shown = {}
        self.settle()

    def rewire(self):
        """Connects the other client, also after the server went away."""
        self.wire = Wire(self.address)

    def say(self, text):
        self.transcript.say(text)

    def scene(self, title):
        self.say(f"== {self.title}: {title}")

    def show(self, value, **options):
        return self.transcript.show(value, **options)

    def settle(self, known=()):
        """Names new rows, then writes the messages and events that came since the last time, creations of `known` left out."""
        handler = getattr(self.idl, "notify_handler", None)
        with self.connection.lock:
            self.transcript.forget_order(self.idl.tables)
        if handler:
            handler.notifications.join()
        for message in self.messages.take():
            self.say("  log " + self.transcript.text(message))
        changes, self.changes[:] = list(self.changes), []
        # Rows come in the order of their uuids, so only the order of the events of one row says anything.
        for kind, table, key, values, before in sorted(changes, key=lambda change: self.transcript.name(change[2])):
            if kind == "create" and key in known:
                continue
            values, before = ({column: value for column, value in side.items() if (table, column) not in HIDDEN} for side in (values, before))
            if kind == "update" and not before:
                continue
            if kind == "update":
                values = {column: value for column, value in values.items() if column in before}
                line = f"{self.show(before)} -> {self.show(values)}"
            else:
                line = self.show({column: value for column, value in values.items() if value not in ([], {}, "", 0, False)})
            self.say(f"  event {kind} <{self.transcript.name(key)}> {line}")

    def resume(self, label, function):
        """Like `attempt`, for a function after which the replica is loaded anew.

        Whether rows that were known are reported as created again depends on what the server still knows of the client's
        last transaction, so those reports are left out.
        """
        known = set(self.transcript.names)
        before = self.idl.change_seqno
        self.say("> " + self.transcript.text(label))
        result = function()
        self.until("the connection is up", lambda: self.idl.change_seqno != before and self.idl.state == self.idl.IDL_S_MONITORING, known)
        self.say("  = " + self.show(result))

    def attempt(self, label, function, unordered=False):
        """Calls `function` and writes what came of it under `label`. Returns (succeeded, result)."""
        self.say("> " + self.transcript.text(label))
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - the exception is what the transcript compares
            self.settle()
            self.say(f"  ! {describe(self.transcript, error)}")
            return False, None
        self.settle()
        self.say("  = " + self.show(result, unordered=unordered))
        return True, result

    def execute(self, name, arguments, options):
        label = self.label(name, arguments, options)
        unordered = name in UNORDERED
        self.coverage.called(name, arguments, options)
        self.say("> " + label)
        try:
            command = getattr(self.api, name)(*arguments, **options)
        except Exception as error:  # noqa: BLE001
            self.coverage.failed(name)
            self.say(f"  ! not made: {describe(self.transcript, error)}")
            return None
        try:
            result = command.execute(check_error=True)
        except Exception as error:  # noqa: BLE001
            self.coverage.failed(name)
            self.settle()
            self.say(f"  ! {describe(self.transcript, error)}")
            quiet = getattr(self.api, name)(*arguments, **options).execute(check_error=False)
            self.settle()
            self.say(f"  without check_error: {self.show(quiet, unordered=unordered)}")
            return None
        self.settle()
        self.say("  = " + self.show(result, unordered=unordered))
        return result

    def call(self, name, *arguments, **options):
        """Calls the method NAME of the API, one that makes no command."""
        self.coverage.called(name, arguments, options)
        succeeded, result = self.attempt(self.label(name, arguments, options), lambda: getattr(self.api, name)(*arguments, **options))
        if not succeeded:
            self.coverage.failed(name)
        return result

    def label(self, name, arguments, options):
        shown = [self.show(one) for one in arguments] + [f"{key}={self.show(one)}" for key, one in options.items()]
        return f"{name}({', '.join(shown)})"

    def other(self, *operations):
        """A transaction of another client."""
        return self.wire.transact(self.database, *operations)

    def until(self, what, holds, known=()):
        """Waits until `holds()`, asked under the lock of the connection."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            with self.connection.lock:
                if holds():
                    break
            if time.monotonic() > deadline:
                self.say(f"  TIMEOUT waiting until {what}")
                return
            time.sleep(0.005)
        self.settle(known)
        self.say(f"  until {what}")

    def contents(self, *tables):
        """Writes the tables that changed since the last time, as db_list reads them."""
        self.settle()
        for table in tables or sorted(self.schema["tables"]):
            if table not in self.idl.tables:
                continue
            rows = self.api.db_list(table).execute(check_error=True)
            for row in rows:
                for column in [name for name in row if (table, name) in HIDDEN]:
                    del row[column]
            lines = sorted(self.show(row) for row in rows)
            if self.shown.get(table, []) != lines:
                self.shown[table] = lines
                self.say(f"  table {table}: {len(lines)} rows")
                for line in lines:
                    self.say("    " + line)
            self.agree(table)

    def agree(self, table):
        """Says where the rows of the replica differ from those that another connection selects."""
        reply = self.wire.transact(self.database, {"op": "select", "table": table, "where": []})
        with self.connection.lock:
            replica = {
                str(row.uuid): {column: canonical(plain(getattr(row, column))) for column in self.idl.tables[table].columns}
                for row in self.idl.tables[table].rows.values()
            }
        server = {row["_uuid"][1]: {column: raw(row[column]) for column in self.idl.tables[table].columns} for row in reply[0]["rows"]}
        if replica != server:
            for key in sorted(replica.keys() | server.keys()):
                if replica.get(key) != server.get(key):
                    self.say(self.transcript.text(f"  REPLICA DIFFERS {table} {key}: {replica.get(key)} not {server.get(key)}"))

    def finish(self):
        self.connection.stop(TIMEOUT_S)
        if handler := getattr(self.idl, "notify_handler", None):
            handler.shutdown()
        self.wire.close()


class Doer:
    """Makes `play.do.NAME(...)` execute the command NAME."""

    def __init__(self, play):
        self.play = play

    def __getattr__(self, name):
        return lambda *arguments, **options: self.play.execute(name, arguments, options)


def describe(transcript, error):
    return f"{type(error).__module__}.{type(error).__qualname__}: {transcript.text(str(error))}"


def canonical(value):
    """A value of the replica in a form that a value of the wire can take too."""
    if isinstance(value, dict):
        return sorted([number(key), number(one)] for key, one in value.items())
    if isinstance(value, list):
        return sorted(number(one) for one in value)
    return [number(value)]


def raw(value):
    """A value of the wire in the same form."""
    if isinstance(value, list) and value[0] == "map":
        return sorted([raw(key)[0], raw(one)[0]] for key, one in value[1])
    if isinstance(value, list) and value[0] == "set":
        return sorted(raw(one)[0] for one in value[1])
    return [number(value[1] if isinstance(value, list) else value)]


def number(value):
    """An atom as text; a real number that is whole looks like an integer on one of the sides."""
    return json.dumps(float(value)) if type(value) in (int, float) else str(value)
