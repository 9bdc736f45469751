"""A replica of a database, kept up to date, with transactions.

The replica, the session and the transactions are in the core of Corvid, in Rust. This module gives
them the names and the manners of the original: a program calls :meth:`Idl.run` in its main loop,
and :meth:`Idl.wait` before it sleeps.
"""

import collections
import enum
import uuid as _uuid

from corvid import _native
from corvid import errors as _errors

from .. import jsonrpc, ovsuuid, reconnect  # noqa: F401 - programs reach them through this module
from .. import poller as _poller
from .. import vlog as _vlog
from . import data as _data  # noqa: F401 - programs reach it through this module
from . import error as _error
from ._conditions import ConditionState, normalized
from ._core import core_of, forward_log, json_text, tls_files, wants_messages
from ._row import ColumnDefaultDict, DetachedRow, Row, live_row
from ._schema_helper import SchemaHelper
from ._session import Session as _Session
from ._table import IdlColumn, IdlTable, TableRows
from ._transaction import Transaction

__all__ = [
    "CLUSTERED", "RELAY", "ROW_CREATE", "ROW_DELETE", "ROW_UPDATE", "OVSDB_UPDATE", "OVSDB_UPDATE2", "OVSDB_UPDATE3", "ColumnDefaultDict", "ConditionState", "Idl",
    "IdlColumn", "IdlTable", "Monitor", "Notice", "Row", "SchemaHelper", "Transaction",
]

vlog = _vlog.Vlog("idl")

ROW_CREATE = "create"
ROW_UPDATE = "update"
ROW_DELETE = "delete"

OVSDB_UPDATE = "update"
OVSDB_UPDATE2 = "update2"
OVSDB_UPDATE3 = "update3"

CLUSTERED = "clustered"
RELAY = "relay"


Notice = collections.namedtuple("Notice", ("event", "row", "updates"), defaults=(None,))
Notice.__doc__ = "The arguments of a call of :meth:`Idl.notify`."


class Monitor(enum.Enum):
    """The methods of monitoring, each with the notification that brings its updates."""

    monitor = OVSDB_UPDATE
    monitor_cond = OVSDB_UPDATE2
    monitor_cond_since = OVSDB_UPDATE3


class _Tables(dict):
    """Tables by name. Programs may add and remove tables at run time.

    The Idl replicates the tables that are there when it next connects, as the original does.
    """

    has_changed = False

    def __setitem__(self, name, table):
        super().__setitem__(name, table)
        self.has_changed = True

    def __delitem__(self, name):
        super().__delitem__(name)
        self.has_changed = True

    def pop(self, *arguments):
        self.has_changed = True
        return super().pop(*arguments)


def _row_to_uuid(value):
    """The UUID of a row; any other value as it is. Not public, but every ovsdbapp up to 2.15 calls
    it.
    """
    return value.uuid if isinstance(value, Row) else value


def _uuid_name_from_uuid(uuid):
    """The name of a new row in the operations of its transaction. Not public, but Neutron calls
    it.
    """
    return "row" + str(uuid).replace("-", "_")


class Idl:
    """A replica of some tables of a database.

    ``remote`` is a list of remotes, separated by commas. ``schema_helper`` chooses the tables and
    columns. ``probe_interval`` is in milliseconds: after so long a silence the server is probed; 0
    never probes, None is the default. With ``leader_only`` only the leader of a cluster will do.
    """

    IDL_S_INITIAL = 0
    IDL_S_SERVER_SCHEMA_REQUESTED = 1
    IDL_S_SERVER_MONITOR_REQUESTED = 2
    IDL_S_DATA_MONITOR_REQUESTED = 3
    IDL_S_DATA_MONITOR_COND_REQUESTED = 4
    IDL_S_DATA_MONITOR_COND_SINCE_REQUESTED = 5
    IDL_S_MONITORING = 6

    def __init__(self, remote, schema_helper, probe_interval=None, leader_only=True):
        schema = schema_helper.get_idl_schema()
        self._native = None
        self._replicated = {}
        self._is_reconnection_asked = False
        self._events = None
        self._db = schema
        self._remote = remote
        self._closed = False
        self._base_seqno = 0
        self._epoch = 0
        self._has_lock_by_hand = None
        self._held_lock = False
        self.readonly = getattr(schema, "readonly", {}) or {}
        self.leader_only = leader_only
        self.cluster_id = None
        self.lock_name = None
        self.txn = None
        self.uuid = _uuid.uuid4()
        self.cond_changed = False
        self.tables = _Tables(IdlTable.schema_tables(self, schema))
        self._session = _Session(self, probe_interval)
        self._promised = {}
        self._connect()

    # The core.

    def _connect(self):
        """Makes the core's client for the tables that are there."""
        if self._native is not None:
            self._base_seqno = self.change_seqno + 1
            self._native.forget_rows()
            self._native.close()
        self.tables.has_changed = False
        for name, table in list(self.tables.items()):
            dict.__setitem__(self.tables, name, self._adopt(table))
        self._tls_files = tls_files()
        self._native = core_of(self, self._tls_files)
        self._shows_messages = False
        self._replicated = dict(self.tables)
        self._events = _native.Events(self._native)
        self._epoch = self._native.resync_epoch
        for table in self.tables.values():
            if table._condition_state.latest != [True]:
                self._resend_condition(table)

    def _adopt(self, table):
        """A table that a program has added may be one of the schema alone, with rows of its own."""
        if not isinstance(table, IdlTable):
            condition = getattr(table, "condition", [True])
            adopted = IdlTable(self, table)
            if isinstance(condition, list):
                adopted._condition_state.init(condition)
            table = adopted
        if not isinstance(table.rows, TableRows):
            rows = TableRows(self, table)
            for name, index in getattr(table.rows, "indexes", {}).items():
                rows.index_create(name).columns.extend(index.columns)
            table.rows = rows
        if isinstance(getattr(table, "condition_state", None), ConditionState):
            return table
        table._condition_state = ConditionState()
        return table

    def _make_row(self, native, table_name, uuid):
        return live_row(self, native, self._replicated[table_name], uuid)

    # The main loop.

    def run(self):
        """Does all work that needs no waiting, and calls :meth:`notify` for what has changed.
        Returns whether ``change_seqno`` has changed.
        """
        assert self.txn is None, "a transaction is open"
        if self._closed:
            return False
        # A set of tables that has changed takes effect with a new connection. Until then the rows
        # stay as they are: a program that reads them meanwhile must not see them come anew.
        if self.tables.has_changed and (self._is_reconnection_asked or not self._native.session.is_synced):
            self._connect()
        self._is_reconnection_asked = False
        seqno = self.change_seqno
        failure = None
        is_heard = self._is_heard("notify", Idl.notify)
        self._events.set_wanted(is_heard)
        yields = self._is_heard("cooperative_yield", Idl.cooperative_yield)
        native = self._native
        # What the program saw last: a call in between, such as force_reconnect, may have lost the
        # lock.
        had_lock = self._held_lock
        self._take_tls_files()
        self._choose_messages()
        for _ in range(50):
            has_changed = native.run_until_change()
            forward_log()
            if native.resync_epoch != self._epoch:
                # All rows came anew. Those that did not come have no notification, so nothing else
                # would let their objects go.
                self._epoch = native.resync_epoch
                native.forget_rows()
            for event, row, updates in self._events.take():
                if yields:
                    self.cooperative_yield()
                if is_heard and row._table.name in self.tables and self._counts(row, updates):
                    try:
                        self.notify(event, row, updates)
                    except Exception as error:  # noqa: BLE001 - the others hear of their rows first
                        failure = failure or error
            # A lock that is lost may come back with the next message: the program has to see it
            # first.
            if not has_changed or self._closed or (had_lock and not self._holds_lock()):
                break
        self._held_lock = self._holds_lock()
        self._acknowledge_conditions()
        if failure is not None:
            raise failure
        return self.change_seqno != seqno

    def _choose_messages(self):
        """A program may change the levels of the log at any time, so this comes before each use of
        the session.
        """
        wants = wants_messages()
        if wants != self._shows_messages:
            self._shows_messages = wants
            self._native.show_messages(wants)

    def _take_tls_files(self):
        """A program may name the files for TLS after it has made the replica."""
        files = tls_files()
        if files != self._tls_files:
            self._tls_files = files
            self._native.set_tls_files(**files)

    def _is_heard(self, name, default):
        """Whether a class or an instance has a method of its own."""
        return name in self.__dict__ or getattr(type(self), name) is not default

    @staticmethod
    def _counts(row, updates):
        """Whether a change has a column that alerts; insertions and deletions always count."""
        if updates is None:
            return True
        columns = row._table.columns
        return all(column.alert for column in columns.values()) or any(
            column.alert and hasattr(updates, name) for name, column in columns.items()
        )

    def wait(self, poller):
        """Has the poller wake when :meth:`run` would do something."""
        if self._closed:
            return
        fd, is_readable, is_writable, seconds = self._native.wait()
        if fd is not None:
            events = (_poller.POLLIN if is_readable else 0) | (_poller.POLLOUT if is_writable else 0)
            if events:
                poller.fd_wait(fd, events)
        if seconds is not None:
            if seconds <= 0:
                poller.immediate_wake()
            else:
                # Rounded up, so that the time has come when the poller wakes.
                poller.timer_wait(int(seconds * 1000) + 1)

    def close(self):
        """Ends the session. The rows stay readable."""
        if not self._closed:
            self._closed = True
            self._native.close()

    def notify(self, event, row, updates=None):
        """Called for each row that has changed, when the server's message has been applied as a
        whole.

        ``event`` is ROW_CREATE, ROW_UPDATE or ROW_DELETE. For an update, ``updates`` has the former
        values of the columns that changed, and no other columns. Programs override this method, in
        a class or an instance.
        """

    def cooperative_yield(self):
        """Called before each notification, for programs that have to let others run. Programs
        override it.
        """

    # The state.

    @property
    def change_seqno(self):
        """Changes with the replica."""
        return self._base_seqno + self._native.seqno if self._native is not None else 0

    @property
    def state(self):
        """How far the connection is: IDL_S_MONITORING when the replica is complete and follows the
        server.
        """
        if self._closed:
            return Idl.IDL_S_INITIAL
        session = self._native.session
        if session.is_synced:
            return Idl.IDL_S_MONITORING
        return Idl.IDL_S_SERVER_SCHEMA_REQUESTED if session.is_connected else Idl.IDL_S_INITIAL

    @property
    def last_id(self):
        """The id of the last transaction in the replica."""
        return self._native.last_id

    def has_ever_connected(self):
        """Whether the replica has ever been complete."""
        return self._base_seqno > 0 or self._native.session.has_contents

    def session_name(self):
        """The remote that is connected, or is tried."""
        return self._session.get_name()

    def force_reconnect(self):
        """Ends the connection and makes another one."""
        if self._closed:
            # Programs that closed an Idl start it again so.
            self._closed = False
            self._native.set_remotes(self._remote)
        self._is_reconnection_asked = True
        self._native.reconnect()

    def set_cluster_id(self, cluster_id):
        """Only servers of this cluster will do."""
        self.cluster_id = cluster_id
        self._native.set_cluster_id(cluster_id)

    # The lock.

    def set_lock(self, lock_name):
        """Asks for a lock, which transactions need from now on; None gives it back."""
        assert self.txn is None, "a transaction is open"
        try:
            self._native.set_lock(lock_name)
        except _errors.UsageError as error:
            raise _error.Error(str(error)) from None
        self.lock_name = lock_name
        self._has_lock_by_hand = None

    def _holds_lock(self):
        return self.lock_name is not None and self._native.session.lock == "held"

    @property
    def has_lock(self):
        """Whether the lock is there."""
        if self._has_lock_by_hand is not None:
            return self._has_lock_by_hand
        return self._holds_lock()

    @has_lock.setter
    def has_lock(self, has_lock):
        # Tests of programs do that.
        self._has_lock_by_hand = has_lock

    @property
    def is_lock_contended(self):
        """Whether another client has the lock."""
        return self._native.session.lock == "contended"

    # Conditions.

    def cond_change(self, table_name, cond):
        """Replicates only the rows of a table for which one of the clauses ``[column, function,
        value]`` holds.

        True stands for all rows, False and an empty list for none. Returns the ``cond_seqno`` at
        which the condition is in force; compare with ``>=``.
        """
        table = self.tables.get(table_name)
        if table is None:
            raise _error.Error('Unknown table "%s"' % table_name)
        return self._set_condition(table, normalized(cond))

    def _set_condition(self, table, condition):
        seqno = self._send_condition(table, condition)
        # A condition that the core has refused leaves the former one in place.
        state = table._condition_state
        if condition != state.latest:
            state.init(condition)
        if table.name in self._promised:
            state.request()
        return seqno

    def _resend_condition(self, table):
        """Sets the condition of a table again, for a client of the core that has just been made."""
        try:
            self._send_condition(table, table._condition_state.latest)
        except _error.Error as error:
            # It was set before the core knew the table, so this is the first one to judge it.
            vlog.err("condition of table %s: %s" % (table.name, error))
        else:
            table._condition_state.request()

    def _send_condition(self, table, condition):
        if table.name not in self._replicated:
            # The connection that the next run makes begins with it.
            return self.cond_seqno + 1
        text = json_text(condition)
        try:
            seqno = self._native.set_condition_json(table.name, text)
        except _errors.ColumnError as error:
            raise _error.Error(str(error)) from None
        except _errors.UsageError:
            raise _error.Error("%s is not a condition" % text) from None
        self._promised[table.name] = seqno
        return seqno

    def _acknowledge_conditions(self):
        if self._promised:
            reached = self._native.condition_seqno
            for name in [name for name, seqno in self._promised.items() if seqno <= reached]:
                del self._promised[name]
                if name in self.tables:
                    self.tables[name]._condition_state.ack()

    @property
    def cond_seqno(self):
        """Grows when conditions come into force."""
        return self._native.condition_seqno

    # Indexes.

    def index_create(self, table, name):
        """Creates an index of a table, without columns."""
        return self.tables[table].rows.index_create(name)

    def index_irange(self, table, name, start, end):
        """The rows of an index from one entry to another, both included."""
        return self.tables[table].rows.indexes[name].irange(start, end)

    def index_equal(self, table, name, value):
        """The rows of an index that equal an entry."""
        return self.index_irange(table, name, value, value)


# Programs and messages name these classes as those of this module.
for _class in (ColumnDefaultDict, ConditionState, IdlColumn, IdlTable, Row, DetachedRow, SchemaHelper, Transaction):
    _class.__module__ = __name__
