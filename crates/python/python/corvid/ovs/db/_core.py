"""The core's client for an Idl, and its messages."""

import copy
import json
import re
import uuid as _uuid

from corvid import _native

from .. import jsonrpc as _jsonrpc
from .. import stream as _stream
from .. import vlog as _vlog

_idl_log = _vlog.Vlog("idl")
_reconnect_log = _vlog.Vlog("reconnect")
_OF_REMOTE = re.compile(r"p?(tcp|ssl|unix):.*: ")
_OF_MESSAGE = re.compile(r"p?(tcp|ssl|unix):.*?: (send|received) (request|reply|notification|error), ")


_PASSIVE = re.compile(r"ptcp:([^:,]*[^0-9:,][^:,]*|\[[^]]*\]):([0-9]+)")


def core_of(idl, files):
    """A client of the core for the tables of an Idl, with these files for TLS.

    As in the original, whether remotes and files can be used shows when they are.
    """
    tables, unregistered = _schema_json(idl)
    schema = _native.Schema(json.dumps({"name": idl._db.name, "version": _version(idl._db), "tables": tables}))
    columns, read_only = {}, []
    for name, table in idl.tables.items():
        of_table = idl.readonly.get(name, ())
        read_only.extend((name, column) for column in of_table if column in table.columns)
        columns[name] = {column: "on_demand" if column in of_table else "read" for column in table.columns}
    probe = idl._session._probe_interval
    native = _native.Client(
        schema, _PASSIVE.sub(r"ptcp:\2:\1", idl._remote), columns, leader_only=idl.leader_only, probe_interval=None if probe is None else probe / 1000,
        lock=idl.lock_name, live_rows=idl._make_row, read_only=read_only, unregistered=unregistered, check_remotes=False, **files,
    )
    if idl.cluster_id is not None:
        native.set_cluster_id(idl.cluster_id)
    return native


def _version(schema):
    return getattr(schema, "version", None) or "0.0.0"


def tls_files():
    """The files for TLS that the program has named so far."""
    stream = _stream.Stream
    files = {
        "private_key": getattr(stream, "_SSL_private_key_file", None),
        "certificate": getattr(stream, "_SSL_certificate_file", None),
        "ca_cert": getattr(stream, "_SSL_ca_cert_file", None),
    }
    return {name: file for name, file in files.items() if file}


def _schema_json(idl):
    """The tables as the core reads them. References to tables that are not there are UUIDs, listed
    beside.
    """
    tables, unregistered = {}, []
    for name, table in idl.tables.items():
        columns = {}
        for column_name, column in table.columns.items():
            of_column = copy.deepcopy(column.to_json())
            for target in _drop_unknown_references(of_column["type"], idl.tables):
                unregistered.append((name, column_name, target))
            of_column.pop("ephemeral", None)
            columns[column_name] = {"type": of_column["type"], "mutable": bool(column.mutable)}
        tables[name] = {"columns": columns, "isRoot": bool(table.is_root), "maxRows": table.max_rows}
        if table.max_rows is None or table.max_rows > 2**31:
            del tables[name]["maxRows"]
    return tables, unregistered


def _drop_unknown_references(column_type, tables):
    if not isinstance(column_type, dict):
        return
    for part in ("key", "value"):
        base = column_type.get(part)
        if isinstance(base, dict) and base.get("refTable", None) not in (None, *tables):
            yield base.pop("refTable")
            base.pop("refType", None)


def json_text(value):
    """JSON of a condition or an operation. Rows and UUIDs become UUIDs of RFC 7047."""
    return json.dumps(value, default=_uuid_json)


def _uuid_json(value):
    uuid = getattr(value, "uuid", value)
    if isinstance(uuid, _uuid.UUID):
        return ["uuid", str(uuid)]
    raise TypeError("%r has no JSON" % (value,))


def wants_messages():
    """Whether the program logs each message of a session."""
    return _jsonrpc.vlog.dbg_is_enabled()


def forward_log():
    """Writes the core's messages to the log."""
    for level, _name, text in _native.take_log_messages():
        if text.startswith(("transaction error: ", "no server with the contents so far: ")):
            # Programs read the first with `Transaction.get_error`. The original logs neither.
            continue
        # The original's modules, by which programs set levels: messages about a remote are those of
        # its reconnection.
        logger = _reconnect_log if _OF_REMOTE.match(text) else _idl_log
        if level < 20 and _OF_MESSAGE.match(text):
            logger = _jsonrpc.vlog
        if ": connection attempt failed (" in text:
            # The original warns of each.
            level = 30
        if level >= 40:
            logger.err(text)
        elif level >= 30:
            logger.warn(text)
        elif level >= 20:
            logger.info(text)
        else:
            logger.dbg(text)
