"""The transcript of a play of `ovs.db.idl`: lines that are the same in every run, whichever library the play runs on.

UUIDs have names in the order of their appearance, and log messages are lines among the others.
"""

import pathlib
import re
import sys
import uuid

import ovs.db.idl
import ovs.poller
import ovs.vlog

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "schemas"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")

_names = {}


def plain(text):
    """A text without what differs from run to run."""
    text = UUID.sub(lambda match: _names.setdefault(match.group(), f"<{len(_names)}>"), str(text))
    text = ADDRESS.sub("", text).replace(REMOTE, "REMOTE")
    return text


def say(*words):
    print(plain(" ".join(map(str, words))), flush=True)


def show(value):
    """A value with rows and UUIDs as their names. Dicts are in order of their keys."""
    if isinstance(value, ovs.db.idl.Row):
        # Rows have the names that the plays gave them.
        name = getattr(value, "name", None) or getattr(value, "text", None) or value.uuid
        return plain(f"{value._table.name}:{name}")
    if isinstance(value, uuid.UUID):
        return plain(value)
    if isinstance(value, dict):
        pairs = sorted((show(key), show(of_key)) for key, of_key in value.items())
        return "{" + ", ".join(f"{key}: {of_key}" for key, of_key in pairs) + "}"
    if isinstance(value, (list, tuple)):
        shown = [show(element) for element in value]
        # The order of references is that of their UUIDs, which differ from run to run.
        if value and isinstance(value[0], (ovs.db.idl.Row, uuid.UUID)):
            shown.sort()
        return "[" + ", ".join(shown) + "]"
    if isinstance(value, float) and value.is_integer():
        # The original shows reals without a fraction as integers.
        value = int(value)
    return plain(repr(value))


def attempt(what, action):
    """Prints the value of an action, or its exception."""
    try:
        say(what, "->", show(action()))
    except Exception as error:  # noqa: BLE001 - each of them is a line of the transcript
        say(what, "!!", *of_error(error))


def of_error(error):
    """Kind and text of an exception; those of an assertion differ in their texts."""
    if isinstance(error, AssertionError):
        return ("AssertionError",)
    return ("KeyError" if isinstance(error, KeyError) else type(error).__name__, error)


def row_values(row):
    """All columns of a row that have a value."""
    values = {}
    for name in sorted(row._table.columns):
        if hasattr(row, name):
            values[name] = getattr(row, name)
    return values


def _capture(level):
    def log(self, message, *arguments, **_keywords):
        say("log", level, message % arguments if arguments else message)

    return log


for _level in ("emer", "err", "warn"):
    setattr(ovs.vlog.Vlog, _level, _capture(_level))
setattr(ovs.vlog.Vlog, "info", lambda self, message, *arguments, **keywords: None)

REMOTE = "unix:" + sys.argv[1]


def helper(schema, tables=None):
    """A choice of tables: all, or columns (and read-only columns) by table."""
    made = ovs.db.idl.SchemaHelper(location=str(SCHEMAS / schema))
    if tables is None:
        made.register_all()
    for table, columns in (tables or {}).items():
        made.register_columns(table, *columns) if isinstance(columns, tuple) else made.register_columns(table, columns)
    return made


def until(idls, holds):
    """Runs replicas until something holds."""
    idls = idls if isinstance(idls, (list, tuple)) else [idls]
    while True:
        for idl in idls:
            idl.run()
        if holds():
            return
        poller = ovs.poller.Poller()
        for idl in idls:
            idl.wait(poller)
        poller.timer_wait(100)
        poller.block()


def connected(schema, tables=None, kind=ovs.db.idl.Idl, **options):
    """A replica with its contents."""
    idl = kind(REMOTE, helper(schema, tables), **options)
    until(idl, lambda: idl.change_seqno)
    return idl


def only(idl, table):
    """The only row of a table."""
    (row,) = idl.tables[table].rows.values()
    return row


def by_name(idl, table, name, column="name"):
    """A row by name."""
    return next(row for row in idl.tables[table].rows.values() if getattr(row, column) == name)


def contents(idl):
    """Prints all rows of a replica, by the text of their values."""
    for table in sorted(idl.tables):
        lines = [show(row_values(row)) for row in idl.tables[table].rows.values()]
        for line in sorted(lines, key=lambda line: re.sub(r"<\d+>", "", line)):
            say(table, line)
