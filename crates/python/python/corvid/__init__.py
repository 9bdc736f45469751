"""A client for OVSDB, the configuration database of Open vSwitch and OVN.

The server sends the rows that a program asks for once, and every change after that, so the program
reads from memory::

    import corvid

    with corvid.connect("unix:/run/ovn/ovnnb_db.sock", "OVN_Northbound") as db:
        for switch in db.Logical_Switch:
            print(switch.name, len(switch.ports))
        with db.transaction() as txn:
            port = txn.insert("Logical_Switch_Port", name="lsp1")
            txn.add(switch, "ports", port)

Values are Python's own: ``int``, ``float``, ``bool``, ``str``, ``uuid.UUID``; a reference is a
:class:`Row`; a column with one value or none has ``None`` for none, a set is a ``frozenset``, a map
a ``dict`` that refuses changes (:class:`Map`), because values are copies: write the column, or
change elements with
:meth:`Transaction.add`, :meth:`Transaction.remove` and :meth:`Transaction.set_key`.

``corvid.aio`` is the same for asyncio, ``corvid.polled`` for programs with an event loop of their
own.
"""

import logging

from . import aio, blocking, history, polled
from ._native import Change, Column, Index, Row, Schema, Session, Transaction, Watch, __version__, exists, table_of
from .blocking import Client, Reading, connect
from .conditions import ALL, NONE, Condition
from .database import Database, Tables, row_classes
from .errors import (
    ColumnError,
    Error,
    FetchError,
    HistoryError,
    HistoryLost,
    HistoryRefused,
    HistoryUnsupported,
    Mismatch,
    NoServer,
    NotLocked,
    Refused,
    RemoteError,
    RowError,
    SchemaError,
    TimedOut,
    TransactionError,
    TryAgain,
    UnknownName,
    UsageError,
)
from .maps import Map
from .plain import as_json
from .settings import Settings
from .tables import Table

__all__ = [
    "ALL",
    "Change",
    "Client",
    "Column",
    "ColumnError",
    "Condition",
    "Database",
    "Error",
    "FetchError",
    "HistoryError",
    "HistoryLost",
    "HistoryRefused",
    "HistoryUnsupported",
    "Index",
    "Map",
    "Mismatch",
    "NONE",
    "NoServer",
    "NotLocked",
    "Reading",
    "Refused",
    "RemoteError",
    "Row",
    "RowError",
    "Schema",
    "SchemaError",
    "Session",
    "Settings",
    "Table",
    "Tables",
    "TimedOut",
    "Transaction",
    "TransactionError",
    "TryAgain",
    "UnknownName",
    "UsageError",
    "Watch",
    "__version__",
    "aio",
    "as_json",
    "blocking",
    "connect",
    "exists",
    "history",
    "polled",
    "row_classes",
    "table_of",
]

# A library prints nothing: a program that wants to see the messages configures logging.
logging.getLogger("corvid").addHandler(logging.NullHandler())
