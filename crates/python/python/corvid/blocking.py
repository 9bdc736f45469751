"""A client for programs that do one thing at a time: each call blocks until its result is there.
Several threads may share it.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Type, TypeVar, overload

from . import _native
from .conditions import Condition
from .database import Database, Deadline, Fetch, Predicate, RowClasses, Tables, check
from .errors import TimedOut, UsageError
from .history import Line, Moment, Pages, Question, moment_text, operations_json
from .waiting import Waiter

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typing import RowBase
    from .settings import Settings

Result = TypeVar("Result")
C = TypeVar("C", bound="Client")


class Client(Database):
    """A client whose calls block. :func:`connect` makes one. A time limit of None waits for
    ever.
    """

    def __init__(
        self, schema: "_native.Schema", remotes: str, tables: Tables = None, *, row_classes: RowClasses = None, **settings: "Unpack[Settings]"
    ) -> None:
        super().__init__(schema, remotes, tables, row_classes=row_classes, **settings)
        # Held while the replica takes an update and while a transaction is open: neither may happen
        # during the other.
        self._turn = threading.RLock()
        # Not a method of this object, which would keep itself alive: it ends with the last
        # reference to it.
        self._waiter = Waiter(self.native, self._turn)

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session, and the waits of other threads with :class:`~corvid.errors.NoServer`.
        Rows can still be read.
        """
        self.native.close()
        with contextlib.suppress(UsageError):
            self._waiter.interrupt()

    def _wake(self) -> None:
        self._waiter.interrupt()

    def run(self) -> bool:
        """Takes what the server has sent, without waiting. Returns whether something changed."""
        return bool(self._waiter.run())

    def wait_until(self, holds: Predicate, timeout: Optional[float] = None) -> None:
        """Waits until ``holds()`` is true. It is called after each update."""
        self._waiter.wait_until(holds, timeout)

    def wait_for_change(self, timeout: Optional[float] = None) -> int:
        """Waits for the next change of the replica. Returns the new :attr:`seqno`."""
        self.native.check_process()
        before = self.seqno
        self.wait_until(lambda: self.seqno != before, timeout)
        return self.seqno

    def wait_for_lock(self, timeout: Optional[float] = None) -> None:
        """Waits until the lock is held that :meth:`set_lock` asked for. Raises
        :class:`~corvid.errors.NotLocked` if the server refuses it.
        """
        self.wait_until(self._is_lock_answered, timeout)
        self._check_lock()

    def set_condition(self, table: str, condition: Condition, timeout: Optional[float] = None) -> None:
        """Chooses the rows of a table that are replicated, and waits until the server applies it.

        A clause that a server would refuse raises :class:`~corvid.errors.ColumnError`. In this and
        any other refusal the condition before it stays in force.
        """
        promise = self._set_condition(table, condition)
        self.wait_until(lambda: self.native.condition_seqno >= promise, timeout)
        self._check_condition(promise)

    def fetch(self, row: "RowBase", column: str, timeout: Optional[float] = None) -> Any:
        """Fetches a value on demand. Returns it."""
        self._finish(Fetch(self.native, _native.table_of(row), column, row), timeout)
        return row[column]

    def fetch_column(self, table: str, column: str, timeout: Optional[float] = None) -> None:
        """Fetches the values of a column on demand, of all rows."""
        self._finish(Fetch(self.native, table, column), timeout)

    def fetch_table(self, table: str, timeout: Optional[float] = None) -> None:
        """Fetches the values of all columns on demand of a table, of all rows."""
        self._finish(Fetch(self.native, table, None), timeout)

    def _finish(self, fetch: Fetch, timeout: Optional[float]) -> None:
        self.wait_until(fetch.is_over, timeout)
        fetch.check()

    @contextlib.contextmanager
    def transaction(
        self, comment: Optional[str] = None, *, dry_run: bool = False, timeout: Optional[float] = None
    ) -> Iterator["_native.Transaction"]:
        """Opens a transaction, on contents that are up to date. The end of the block commits it and
        waits; an exception within the block aborts it.

        Without a connection it waits for one, and for the contents; the time limit is for each of
        the two waits. Raises
        :class:`~corvid.errors.TryAgain`, :class:`~corvid.errors.NotLocked` or :class:`~corvid.errors.Refused`.
        """
        self.wait_until(self._is_synced, timeout)
        with self._turn, self._opened(comment, dry_run) as txn:
            yield txn
        self.wait_until(lambda: txn.status != "incomplete", timeout)
        check(txn)

    def transact(
        self, change: Callable[["_native.Transaction"], Result], comment: Optional[str] = None, timeout: Optional[float] = None
    ) -> Result:
        """Calls ``change`` with an open transaction and commits; does it again from the new
        contents as long as that loses races.

        Returns what ``change`` has returned. After a lost connection a server of Corvid tells the
        outcome of the first attempt. If no server can tell, ``change`` is called again, and should
        look at the contents before it changes them.
        """
        deadline = Deadline(timeout)
        while True:
            self.wait_until(self._is_synced, deadline.left())
            before = self.seqno
            with self._turn, self._opened(comment) as txn:
                result = change(txn)
            self.wait_until(lambda: txn.status != "incomplete", deadline.left())
            if txn.status != "try again":
                check(txn)
                return result
            self.wait_until(lambda: self.seqno != before, deadline.left())

    def read_history(self, question: "Question[Line]", *, timeout: Optional[float] = None) -> "Reading[Line]":
        """Reads the past of the database from the server, line by line, as ``ovsdb-client log``
        does::

            for event in db.read_history(corvid.history.log(table="Port", since="-2h")):
                if event["event"] == "commit":
                    print(event["id"], event.get("comment"), event["changes"])

        The lines are the objects that ``ovsdb-tool --json`` prints. The time limit is for each wait
        for a page. Missing parts are logged as warnings. Raises
        :class:`~corvid.errors.HistoryUnsupported`, :class:`~corvid.errors.HistoryRefused` or
        :class:`~corvid.errors.HistoryLost` while it is read.
        """
        return Reading(self, question, timeout)

    def select_at(self, moment: Moment, *operations: Mapping[str, Any], timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Executes ``select`` operations of RFC 7047 on the contents at a moment, under the schema
        that the database had then. Returns their results::

            [result] = db.select_at("-2h", {"op": "select", "table": "Port", "where": [], "columns": ["name"]})
            print([row["name"] for row in result["rows"]])

        Raises what :meth:`read_history` raises.
        """
        query = self.native.select_at(moment_text(moment), operations_json(operations))
        deadline = Deadline(timeout)
        try:
            while True:
                self.wait_until(query.is_ready, deadline.left())
                page = query.take()
                if page is not None:
                    results: List[Dict[str, Any]] = json.loads(page[0][0])
                    return results
        finally:
            query.cancel()

    def changes(self, *tables: str, timeout: Optional[float] = None) -> Iterator["_native.Change"]:
        """The changes of these tables (of all, if none is named) from now on, one by one; waits for
        them.

        With a time limit it ends when no change has come for that long.
        """
        return self._changes(self._watch(tables), timeout)

    def _changes(self, watch: "_native.Watch", timeout: Optional[float]) -> Iterator["_native.Change"]:
        while True:
            before = self.seqno
            taken = watch.take()
            yield from taken
            if not taken and self.seqno == before:
                try:
                    self.wait_until(lambda: self.seqno != before, timeout)
                except TimedOut:
                    return


class Reading(Pages[Line], Iterator[Line]):
    """A reading of the history: an iterator over its lines, which waits for them.
    :meth:`Client.read_history` makes one.
    """

    def __init__(self, client: Client, question: "Question[Line]", timeout: Optional[float]) -> None:
        super().__init__(client.native, question)
        self._client = client
        self._timeout = timeout

    def __enter__(self) -> "Reading[Line]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the reading, also at the server."""
        self._cancel()

    def __iter__(self) -> "Reading[Line]":
        return self

    def __next__(self) -> Line:
        while not self._lines:
            if self._has_ended():
                raise StopIteration
            self._client.wait_until(self._native.is_ready, self._timeout)
            self._take()
        return self._lines.popleft()


@overload
def connect(
    remotes: str,
    database: str,
    tables: Tables = None,
    *,
    schema: Optional["_native.Schema"] = None,
    timeout: Optional[float] = 60,
    row_classes: RowClasses = None,
    **settings: "Unpack[Settings]",
) -> Client: ...


@overload
def connect(
    remotes: str,
    database: str,
    tables: Tables = None,
    *,
    schema: Optional["_native.Schema"] = None,
    timeout: Optional[float] = 60,
    client_class: Type[C],
    row_classes: RowClasses = None,
    **settings: "Unpack[Settings]",
) -> C: ...


def connect(
    remotes: str,
    database: str,
    tables: Tables = None,
    *,
    schema: Optional["_native.Schema"] = None,
    timeout: Optional[float] = 60,
    client_class: Type[Any] = Client,
    row_classes: RowClasses = None,
    **settings: Any,
) -> Any:
    """Connects to a database and waits until its contents are there.

    ``remotes`` is a list like ``"ssl:10.0.0.1:6641,ssl:10.0.0.2:6641"``. ``tables`` says what is
    replicated; see :data:`corvid.Tables`. Without a ``schema`` that of the server is taken.
    ``row_classes`` has classes for the rows of tables, by name. Other settings: ``leader_only``
    (True), ``retry`` (True), ``shuffle`` (True), ``probe_interval`` in seconds, ``lock``; for
    ``ssl:`` the files ``private_key``, ``certificate`` and ``ca_cert``.
    """
    deadline = Deadline(timeout)
    if schema is None:
        probe = _native.Client(_native.Schema.empty(database), remotes, {}, **{**settings, "lock": None})
        try:
            Waiter(probe).wait_until(lambda: probe.server_schema() is not None, timeout)
            schema = probe.server_schema()
        finally:
            probe.close()
    assert schema is not None
    client = client_class(schema, remotes, tables, row_classes=row_classes, **settings)
    try:
        client.wait_until(lambda: client.session.has_contents, deadline.left())
    except BaseException:
        client.close()
        raise
    return client
