"""Transactions."""

import functools
import uuid as _uuid

from corvid import errors as _errors

from .. import json as ovs_json
from .. import poller as _poller
from .. import vlog as _vlog
from . import error as _error
from ._operations import element_mutations, where_uuid_is
from ._row import Row

vlog = _vlog.Vlog("idl")


class _InsertedRow:
    """A row whose insertion has been sent."""

    __slots__ = ("_txn", "_row")

    def __init__(self, txn, row):
        self._txn = txn
        self._row = row

    @property
    def real(self):
        """The UUID that the server has given to it; None until the transaction has succeeded."""
        return self._txn._native.inserted_uuid(self._row)


class Transaction:
    """Changes of rows that the server makes together or not at all. An Idl has one open transaction
    at most; any number may be on the way.

    After :meth:`commit` the rows show the server's state again; the changes come with its update,
    which is there before the transaction succeeds.
    """

    #: Open.
    UNCOMMITTED = "uncommitted"
    #: Nothing had to be changed, so nothing was sent.
    UNCHANGED = "unchanged"
    #: Sent; call :meth:`Idl.run` and :meth:`commit` until the status changes.
    INCOMPLETE = "incomplete"
    #: Given up.
    ABORTED = "aborted"
    #: Committed.
    SUCCESS = "success"
    #: The database has changed meanwhile: wait for ``Idl.change_seqno`` to change, and make the
    #: changes again.
    TRY_AGAIN = "try again"
    #: The Idl has not got its lock.
    NOT_LOCKED = "not locked"
    #: Refused by the server: see :meth:`get_error`.
    ERROR = "error"

    def __init__(self, idl):
        assert idl.txn is None, "a transaction is open"
        idl.txn = self
        self.idl = idl
        self.dry_run = False
        self._client = idl._native
        self._native = self._client.begin()
        self._status = Transaction.UNCOMMITTED
        self._comments = []
        # Rows that this transaction inserts, by their UUID.
        self._new_rows = {}
        # Those whose insertion has been sent. Programs look at it, so it is filled no earlier.
        self._inserted_rows = {}
        # Operations for rows that the replica does not have, and those of programs.
        self._unseen = []
        self._operations = []
        self._counter = None
        self._fetches = []
        # Changes of elements that change nothing: the row, whether the element is to be there,
        # column and key.
        self._repeated = []
        # Columns that were written, by the UUID of their row.
        self._written = {}

    @staticmethod
    def status_to_string(status):
        """The status in words, which is the status."""
        return status

    # What rows call.

    def _verify(self, row, column_name):
        # A row of this transaction has nothing that could change.
        if row.uuid not in self._new_rows:
            self._native.verify(row, column_name)

    def _delete(self, row):
        assert row.uuid in row._table.rows, "there is no such row"
        self._native.delete(row)
        self._new_rows.pop(row.uuid, None)

    def _increment(self, row, column_name):
        assert self._counter is None, "a transaction increments one column"
        self._counter = (row, column_name)

    def _fetch(self, row, column_name):
        self._fetches.append((row, column_name))

    def _touch(self, row, column_name):
        self._written.setdefault(row.uuid, set()).add(column_name)

    def _repeat(self, row, kind, column_name, key):
        """A change of an element that changes nothing here. Programs rely on it being sent: a
        transaction of nothing else is a success, not unchanged.
        """
        if row.uuid not in self._new_rows:
            self._repeated.append((row, kind in ("add", "set"), column_name, key))

    def _repetitions(self):
        """Operations for them, as far as the rest of the transaction has left them true."""
        for row, is_there, column_name, key in self._repeated:
            try:
                value = getattr(row, column_name)
            except (AssertionError, AttributeError):
                continue
            if (key in value) != is_there:
                continue
            is_map = isinstance(value, dict)
            kind = ("set" if is_map else "add") if is_there else "remove"
            yield self._mutation(row, kind, column_name, key, value.get(key) if is_map else None)

    def _mutation(self, row, kind, column_name, key, value):
        mutations = element_mutations(row._table.columns[column_name], kind, key, value)
        return {"op": "mutate", "table": row._table.name, "where": where_uuid_is(row.uuid), "mutations": mutations}

    @property
    def _txn_rows(self):
        """The rows that this transaction inserts, changes or deletes, by UUID; none once it is not
        open.
        """
        return {row.uuid: row for row in self._native.touched_rows()}

    def _changes_of(self, row):
        if row.uuid not in row._table.rows:
            return None
        changes = {}
        written = {*self._native.written_columns(row), *self._written.get(row.uuid, ())}
        for name in row._table.columns:
            if row.uuid in self._new_rows or name in written:
                datum = row._datum(name)
                if datum is not None:
                    changes[name] = datum
        return changes

    def _change_unseen(self, row, kind, column_name, key, value):
        """A change of an element of a row that the replica does not have."""
        column = row._table.columns.get(column_name)
        if column is None:
            row._unknown_column(column_name)
        try:
            self._add_unseen(self._mutation(row, kind, column_name, key, value))
        except _error.Error as error:
            row._bad_value(column_name, error)

    def _add_unseen(self, operation):
        self._unseen.append(operation)

    # The surface.

    def add_comment(self, comment):
        """Adds a line to the comment that the server logs."""
        self._comments.append(comment)
        if self._status == Transaction.UNCOMMITTED:
            self._native.comment(comment)

    def add_op(self, op):
        """Adds an operation of RFC 7047 behind all others."""
        self._operations.append(op)

    def insert(self, table, new_uuid=None, persist_uuid=False):
        """Inserts a row. It goes by ``new_uuid`` until the server has given it another one, or for
        good with ``persist_uuid``.
        """
        assert self._status == Transaction.UNCOMMITTED, "the transaction is not open"
        uuid = new_uuid or _uuid.uuid4()
        try:
            row = self._native.insert_as(table.name, uuid, bool(persist_uuid))
        except _errors.UsageError:
            # The row is there already. The server says so, when the transaction is committed.
            row = Row(self.idl, table, uuid, {})
            self._add_unseen({"op": "insert", "table": table.name, "uuid": str(uuid), "row": {}})
            return row
        row._is_new()
        self._new_rows[row.uuid] = row
        return row

    def wait(self, poller):
        """Wakes the poller if the transaction has ended."""
        if self._status not in (Transaction.UNCOMMITTED, Transaction.INCOMPLETE):
            poller.immediate_wake()

    def commit(self):
        """Sends the changes, or looks whether they have arrived. Returns the status."""
        if self is self.idl.txn:
            self._send()
        if self._status == Transaction.INCOMPLETE:
            self._look()
        return self._status

    def _send(self):
        self.idl._choose_messages()
        try:
            if self.dry_run:
                self._native.set_dry_run()
            operations = [*self._repetitions(), *self._unseen, *self._operations]
            for operation in operations:
                self._native.add_operation(ovs_json.to_string(operation))
            if self._counter is not None:
                # It counts if anything else changes, and the core does not know whether the
                # operations do.
                self._native.increment(*self._counter, force=bool(operations))
            self._status = self._native.commit()
            if self._status == Transaction.INCOMPLETE:
                self._inserted_rows = {uuid: _InsertedRow(self, row) for uuid, row in self._new_rows.items()}
        finally:
            self._leave()
        for row, column_name in self._fetches:
            self._begin_fetch(row, column_name)

    def _begin_fetch(self, row, column_name):
        if self._status in (Transaction.UNCHANGED, Transaction.INCOMPLETE):
            fetch = self._client.fetch(row._table.name, column_name, row)
            self._pending_fetches.append(fetch)
            if self._status == Transaction.UNCHANGED:
                self._status = Transaction.INCOMPLETE
                self._is_fetch_only = True

    @functools.cached_property
    def _pending_fetches(self):
        return []

    _is_fetch_only = False

    def _look(self):
        """Whether the answer is there, and those to fetches."""
        if self._pending_fetches:
            left = []
            for fetch in self._pending_fetches:
                has_ended, failure = self._client.fetch_outcome(fetch)
                if failure is not None:
                    vlog.warn("fetch failed: %s" % failure)
                if not has_ended:
                    left.append(fetch)
            self.__dict__["_pending_fetches"] = left
        status = Transaction.SUCCESS if self._is_fetch_only else self._native.status
        if status == Transaction.INCOMPLETE or (self._pending_fetches and status == Transaction.SUCCESS):
            return
        self._status = status

    def _leave(self):
        """The transaction is not the open one any more, and its rows are gone until the server's
        update brings them.
        """
        self.idl.txn = None
        for row in self._new_rows.values():
            self._client.forget_row(row)

    def commit_block(self):
        """Commits, and waits for the outcome."""
        while True:
            status = self.commit()
            if status != Transaction.INCOMPLETE:
                return status
            self.idl.run()
            if self.commit() != Transaction.INCOMPLETE:
                return self._status
            poller = _poller.Poller()
            self.idl.wait(poller)
            self.wait(poller)
            poller.block()

    def abort(self):
        """Gives the changes up. Those that were sent may be made all the same."""
        if self is self.idl.txn:
            self._native.abort()
            self._leave()
            self._status = Transaction.ABORTED
        elif self._status == Transaction.INCOMPLETE:
            self._native.abort()
            self._status = Transaction.ABORTED

    def get_error(self):
        """Of a transaction that failed: the first error of the server, as JSON. Otherwise the
        status.
        """
        if self._status != Transaction.ERROR:
            return self._status
        return self._native.error or "no error details available"

    def get_increment_new_value(self):
        """The value of the column that was incremented."""
        assert self._status == Transaction.SUCCESS
        return self._native.incremented_to

    def get_insert_uuid(self, uuid):
        """The UUID that the server has given to a row that was inserted; None if this transaction
        did not insert it.
        """
        assert self._status in (Transaction.SUCCESS, Transaction.UNCHANGED)
        inserted = self._inserted_rows.get(uuid)
        return None if inserted is None else inserted.real
