"""Whatever has names in the library `ovs`: its modules and classes, and an object of each kind that programs meet."""

import importlib
import inspect
import types

import ovs.db.custom_index
import ovs.db.data
import ovs.db.idl
import ovs.db.schema
import ovs.jsonrpc
import ovs.poller
import ovs.reconnect
import ovs.stream
import ovs.unixctl.server
import ovs.vlog

MODULES = [
    "ovs", "ovs.daemon", "ovs.dirs", "ovs.dns_resolve", "ovs.fatal_signal", "ovs.json", "ovs.jsonrpc", "ovs.ovsuuid", "ovs.poller", "ovs.process",
    "ovs.reconnect", "ovs.socket_util", "ovs.stream", "ovs.timeval", "ovs.unixctl", "ovs.unixctl.client", "ovs.unixctl.server", "ovs.util", "ovs.version",
    "ovs.vlog", "ovs.db", "ovs.db.custom_index", "ovs.db.data", "ovs.db.error", "ovs.db.idl", "ovs.db.parser", "ovs.db.schema", "ovs.db.types",
]


def modules():
    """The modules by name, and the classes in them."""
    found = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        found[name] = module
        for member, value in vars(module).items():
            if inspect.isclass(value) and value.__module__.split(".")[0] == "ovs":
                found[f"{name}.{member}"] = value
    return found


def objects(idl):
    """Objects of a replica that has a row in table Site, by what they are. Leaves a transaction open."""
    table = idl.tables["Site"]
    index = table.rows.index_create("by name")
    index.add_columns("name")
    (row,) = table.rows.values()
    committed = ovs.db.idl.Transaction(idl)
    committed.add_comment("nothing")
    committed.commit()
    txn = ovs.db.idl.Transaction(idl)
    new = txn.insert(idl.tables["Note"])
    new.text = "new"
    column = table.columns["name"]
    datum = ovs.db.data.Datum.from_python(column.type, "a", ovs.db.idl._row_to_uuid)
    session = ovs.jsonrpc.Session.open("unix:nowhere")
    found = {
        "an Idl": idl,
        "a session of an Idl": idl._session,
        "a reconnection of an Idl": idl._session.reconnect,
        "a schema of an Idl": idl._db,
        "tables of an Idl": idl.tables,
        "a table of an Idl": table,
        "a condition": getattr(table, "condition_state", None),
        "rows of a table": table.rows,
        "an index": index,
        "an entry of an index": table.rows.IndexEntry(name="a"),
        "a column of an Idl": column,
        "a type": column.type,
        "a base type": column.type.key,
        "an atomic type": column.type.key.type,
        "a row": row,
        "a new row": new,
        "an open transaction": txn,
        "a transaction that has ended": committed,
        "a datum": datum,
        "an atom": next(iter(datum.values)),
        "a poller": ovs.poller.Poller(),
        "a session": session,
        "a reconnection": session.reconnect,
        "a message": ovs.jsonrpc.Message.create_request("echo", []),
        "a log": ovs.vlog.Vlog("owners"),
        "an error": ovs.db.error.Error("text"),
        "a helper": ovs.db.idl.SchemaHelper(schema_json='{"name": "a", "tables": {}}'),
    }
    error, stream = ovs.stream.Stream.open("unix:nowhere")
    if not error:
        found["a stream"] = stream
    return {name: value for name, value in found.items() if value is not None}


def names_of(owner):
    """All names of an owner but those that every object has."""
    names = set(dir(owner))
    if not inspect.ismodule(owner) and not inspect.isclass(owner):
        names |= set(getattr(owner, "__dict__", ()))
        # Names that are handed on to an object within: a table or column of a schema.
        for inner in ("_table", "_column"):
            if isinstance(owner, (getattr(ovs.db.idl, "IdlTable", ()), getattr(ovs.db.idl, "IdlColumn", ()))):
                names |= set(dir(owner.__dict__.get(inner)))
    return names - set(dir(object)) - {"__weakref__", "__dict__", "__module__", "__slots__", "__annotations__"}


def kind_of(owner, name):
    """The kind of a thing, as far as a program that uses it depends on it."""
    try:
        value = getattr(owner, name)
    except Exception as error:  # noqa: BLE001 - the name is there or not
        return f"no such name ({type(error).__name__})"
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    if callable(value):
        return "callable"
    if value is None:
        return "None"
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "property"
    for kind in (bool, int, float, str, bytes):
        if isinstance(value, kind):
            return kind.__name__
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return "mapping"
    if isinstance(value, types.GeneratorType) or hasattr(value, "__iter__"):
        return "collection"
    return "object"
