"""A client for asyncio. One task takes what the server sends; all else happens in the tasks of the
program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Type, TypeVar, overload

from . import _native
from .conditions import Condition
from .database import Database, Deadline, Fetch, Predicate, RowClasses, Tables, check, forward_log
from .errors import NoServer, TimedOut, UsageError
from .history import Line, Moment, Pages, Question, moment_text, operations_json

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typing import RowBase
    from .settings import Settings

Result = TypeVar("Result")
C = TypeVar("C", bound="Client")


async def _ready(native: "_native.Client", woken: asyncio.Event) -> None:
    """Waits for the descriptor, the time, or a call that has left something to send."""
    loop = asyncio.get_running_loop()
    process = os.getpid()
    fd, readable, writable, timeout = native.wait()
    if fd is not None and readable:
        loop.add_reader(fd, woken.set)
    if fd is not None and writable:
        loop.add_writer(fd, woken.set)
    try:
        await asyncio.wait_for(woken.wait(), timeout)
    except asyncio.TimeoutError:
        pass
    finally:
        # A forked child shares the loop's selector, and would deafen its parent.
        if fd is not None and os.getpid() == process:
            loop.remove_reader(fd)
            loop.remove_writer(fd)
        woken.clear()


class Client(Database):
    """A client for one event loop. :func:`connect` makes one. A time limit of None waits for
    ever.
    """

    def __init__(
        self, schema: "_native.Schema", remotes: str, tables: Tables = None, *, row_classes: RowClasses = None, **settings: "Unpack[Settings]"
    ) -> None:
        super().__init__(schema, remotes, tables, row_classes=row_classes, **settings)
        self._woken = asyncio.Event()
        self._changed = asyncio.Condition()
        # One transaction is open at a time; no update is taken meanwhile.
        self._turn = asyncio.Lock()
        self._owner: Optional[asyncio.Task[Any]] = None
        self._failure: Optional[BaseException] = None
        self._driver = asyncio.get_running_loop().create_task(self._drive())

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the session. Rows can still be read."""
        self._driver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._driver
        self.native.close()

    def _wake(self) -> None:
        self._woken.set()

    async def _drive(self) -> None:
        try:
            while True:
                async with self._turn:
                    self.native.run()
                forward_log()
                async with self._changed:
                    self._changed.notify_all()
                await _ready(self.native, self._woken)
        except Exception as failure:
            self._failure = failure
            async with self._changed:
                self._changed.notify_all()
            raise

    async def wait_until(self, holds: Predicate, timeout: Optional[float] = None) -> None:
        """Waits until ``holds()`` is true. It is called after each update."""
        self._woken.set()

        async def wait() -> None:
            async with self._changed:
                while not holds():
                    if self._failure is not None:
                        raise self._failure
                    session = self.session
                    if not session.is_alive:
                        raise NoServer(f"no server is left to try: {session.last_failure}")
                    await self._changed.wait()

        try:
            await asyncio.wait_for(wait(), timeout)
        except asyncio.TimeoutError:
            failure = self.session.last_failure
            reason = f": {failure}" if failure else ""
            raise TimedOut(f"timed out after {timeout} s{reason}") from None

    async def wait_for_change(self, timeout: Optional[float] = None) -> int:
        """Waits for the next change of the replica. Returns the new :attr:`seqno`."""
        before = self.seqno
        await self.wait_until(lambda: self.seqno != before, timeout)
        return self.seqno

    async def wait_for_lock(self, timeout: Optional[float] = None) -> None:
        """Waits until the lock is held that :meth:`set_lock` asked for. Raises
        :class:`~corvid.errors.NotLocked` if the server refuses it.
        """
        await self.wait_until(self._is_lock_answered, timeout)
        self._check_lock()

    async def set_condition(self, table: str, condition: Condition, timeout: Optional[float] = None) -> None:
        """Chooses the rows of a table that are replicated, and waits until the server applies it.

        A clause that a server would refuse raises :class:`~corvid.errors.ColumnError`. In this and
        any other refusal the condition before it stays in force.
        """
        promise = self._set_condition(table, condition)
        await self.wait_until(lambda: self.native.condition_seqno >= promise, timeout)
        self._check_condition(promise)

    async def fetch(self, row: "RowBase", column: str, timeout: Optional[float] = None) -> Any:
        """Fetches a value on demand. Returns it."""
        await self._finish(Fetch(self.native, _native.table_of(row), column, row), timeout)
        return row[column]

    async def fetch_column(self, table: str, column: str, timeout: Optional[float] = None) -> None:
        """Fetches the values of a column on demand, of all rows."""
        await self._finish(Fetch(self.native, table, column), timeout)

    async def fetch_table(self, table: str, timeout: Optional[float] = None) -> None:
        """Fetches the values of all columns on demand of a table, of all rows."""
        await self._finish(Fetch(self.native, table, None), timeout)

    async def _finish(self, fetch: Fetch, timeout: Optional[float]) -> None:
        await self.wait_until(fetch.is_over, timeout)
        fetch.check()

    @contextlib.asynccontextmanager
    async def transaction(
        self, comment: Optional[str] = None, *, dry_run: bool = False, timeout: Optional[float] = None
    ) -> AsyncIterator["_native.Transaction"]:
        """Opens a transaction. The end of the block commits it and waits; an exception within the
        block aborts it.

        Without a connection it waits for one, and for the contents; the time limit is for each of
        the two waits. Raises
        :class:`~corvid.errors.TryAgain`, :class:`~corvid.errors.NotLocked` or :class:`~corvid.errors.Refused`. The replica stands still while the
        block waits for something else.
        """
        self._check_not_owner()
        await self.wait_until(self._is_synced, timeout)
        async with self._turn:
            self._owner = asyncio.current_task()
            try:
                with self._opened(comment, dry_run) as txn:
                    yield txn
            finally:
                self._owner = None
        await self.wait_until(lambda: txn.status != "incomplete", timeout)
        check(txn)

    def _check_not_owner(self) -> None:
        """Raises the error of a task that would wait for the end of its own transaction."""
        if self._owner is not None and self._owner is asyncio.current_task():
            raise UsageError("this task has a transaction open: end its block first")

    async def transact(
        self, change: Callable[["_native.Transaction"], Result], comment: Optional[str] = None, timeout: Optional[float] = None
    ) -> Result:
        """Calls ``change`` with an open transaction and commits; does it again from the new
        contents as long as that loses races.

        ``change`` is a plain function. Returns what it has returned. See
        :meth:`corvid.blocking.Client.transact`.
        """
        self._check_not_owner()
        deadline = Deadline(timeout)
        while True:
            await self.wait_until(self._is_synced, deadline.left())
            before = self.seqno
            async with self._turn:
                with self._opened(comment) as txn:
                    result = change(txn)
            await self.wait_until(lambda: txn.status != "incomplete", deadline.left())
            if txn.status != "try again":
                check(txn)
                return result
            await self.wait_until(lambda: self.seqno != before, deadline.left())

    def read_history(self, question: "Question[Line]", *, timeout: Optional[float] = None) -> "Reading[Line]":
        """Reads the past of the database from the server, line by line::

            async for event in db.read_history(corvid.history.log(since="-2h")):
                if event["event"] == "commit":
                    print(event["id"], event["changes"])

        See :meth:`corvid.blocking.Client.read_history`.
        """
        return Reading(self, question, timeout)

    async def select_at(self, moment: Moment, *operations: Mapping[str, Any], timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Executes ``select`` operations on the contents at a moment. Returns their results. See
        :meth:`corvid.blocking.Client.select_at`.
        """
        query = self.native.select_at(moment_text(moment), operations_json(operations))
        deadline = Deadline(timeout)
        try:
            while True:
                await self.wait_until(query.is_ready, deadline.left())
                page = query.take()
                if page is not None:
                    results: List[Dict[str, Any]] = json.loads(page[0][0])
                    return results
        finally:
            query.cancel()

    def changes(self, *tables: str, timeout: Optional[float] = None) -> AsyncIterator["_native.Change"]:
        """The changes of these tables (of all, if none is named) from the call on, one by one.

        With a time limit it ends when no change has come for that long.
        """
        return self._changes(self._watch(tables), timeout)

    async def _changes(self, watch: "_native.Watch", timeout: Optional[float]) -> AsyncIterator["_native.Change"]:
        while True:
            before = self.seqno
            taken = watch.take()
            for change in taken:
                yield change
            if not taken and self.seqno == before:
                try:
                    await self.wait_until(lambda: self.seqno != before, timeout)
                except TimedOut:
                    return


class Reading(Pages[Line], AsyncIterator[Line]):
    """A reading of the history: an asynchronous iterator over its lines.
    :meth:`Client.read_history` makes one.
    """

    def __init__(self, client: Client, question: "Question[Line]", timeout: Optional[float]) -> None:
        super().__init__(client.native, question)
        self._client = client
        self._timeout = timeout

    async def __aenter__(self) -> "Reading[Line]":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the reading, also at the server. Nothing is awaited."""
        self._cancel()

    def __aiter__(self) -> "Reading[Line]":
        return self

    async def __anext__(self) -> Line:
        while not self._lines:
            if self._has_ended():
                raise StopAsyncIteration
            await self._client.wait_until(self._native.is_ready, self._timeout)
            self._take()
        return self._lines.popleft()


@overload
async def connect(
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
async def connect(
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


async def connect(
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
    """Connects to a database and waits until its contents are there. The arguments are those of
    :func:`corvid.connect`.
    """
    deadline = Deadline(timeout)
    if schema is None:
        probe = Client(_native.Schema.empty(database), remotes, {}, **{**settings, "lock": None})
        try:
            await probe.wait_until(lambda: probe.native.server_schema() is not None, timeout)
            schema = probe.native.server_schema()
        finally:
            await probe.close()
    assert schema is not None
    client = client_class(schema, remotes, tables, row_classes=row_classes, **settings)
    try:
        await client.wait_until(lambda: client.session.has_contents, deadline.left())
    except BaseException:
        await client.close()
        raise
    return client
