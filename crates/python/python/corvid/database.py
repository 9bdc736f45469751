"""The parts that the fronts share: tables, transactions, settings of the session. This module never
waits.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from . import _native
from .chosen import Chosen
from .conditions import Condition
from .errors import FetchError, Mismatch, NotLocked, Refused, SchemaError, TransactionError, TryAgain, UnknownName, UsageError
from .tables import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typing import RowBase
    from .settings import Settings

#: The tables and columns that a client replicates: all of them (None), some tables by name with all
#: their columns, or for each table its columns: all of them (None), some of them by name, or each
#: with its mode: "read", "write" (changes of it wake nobody) or "on_demand" (fetched, not
#: replicated).
Tables = Union[None, Iterable[str], Mapping[str, Union[None, Iterable[str], Mapping[str, str]]]]
#: Classes for the rows of tables, by name.
RowClasses = Optional[Mapping[str, Type["RowBase"]]]


def modes(schema: "_native.Schema", tables: Tables) -> Dict[str, Dict[str, str]]:
    """The mode of each column that is replicated."""
    if isinstance(tables, str):
        raise Mismatch(f"tables are a list of names, or a dict of their columns, not {tables!r}")
    if not isinstance(tables, Mapping):
        tables = {table: None for table in (schema.tables() if tables is None else tables)}
    found: Dict[str, Dict[str, str]] = {}
    for table, columns in tables.items():
        if columns is None:
            columns = [column.name for column in schema.columns(table)]
        if isinstance(columns, str):
            raise Mismatch(f"the columns of table {table} are a list of names, not {columns!r}")
        found[table] = dict(columns) if isinstance(columns, Mapping) else {column: "read" for column in columns}
    return found


def row_classes(schema: "_native.Schema") -> Dict[str, Type["_native.Row"]]:
    """Classes for the rows of all tables, with the columns in their annotations and docstrings: for
    ``row_classes`` of :func:`corvid.connect`.

    ``ovsdb-idlc python`` writes such classes as text, for type checkers.
    """
    classes = {}
    for table in schema.tables():
        columns = {column.name: column.type for column in schema.columns(table)}
        lines = "".join(f"\n    {name}: {kind}" for name, kind in columns.items())
        members = {"__slots__": (), "__doc__": f"A row of table {table}.\n{lines}\n", "__annotations__": columns, "__module__": "corvid"}
        classes[table] = type(table, (_native.Row,), members)
    return classes


class Database:
    """A replica of a database. Its tables are attributes, and items by name: ``db.Bridge``,
    ``db["Bridge"]``.
    """

    def __init__(
        self, schema: "_native.Schema", remotes: str, tables: Tables = None, *, row_classes: RowClasses = None, **settings: "Unpack[Settings]"
    ) -> None:
        chosen = modes(schema, tables)
        self._chosen = Chosen(schema, chosen)
        #: The core.
        self.native = _native.Client(schema, remotes, chosen, row_classes=row_classes, **settings)
        # Levels may change later; asking for them at each message would cost more than the message.
        if logging.getLogger("corvid").isEnabledFor(logging.DEBUG):
            self.native.show_messages(True)
        self._tables: Dict[str, Table[Any]] = {}

    @property
    def schema(self) -> "_native.Schema":
        """The schema of the client: that of the server when it connected first, or the one that was
        given.
        """
        return self.native.schema

    @property
    def session(self) -> "_native.Session":
        """The state of the session at this moment."""
        return self.native.session

    @property
    def seqno(self) -> int:
        """A number that grows with each change of the replica or of the lock."""
        return self.native.seqno

    def __getitem__(self, name: str) -> Table[Any]:
        if name not in self._tables:
            self._tables[name] = Table(self, name)
        return self._tables[name]

    def __getattr__(self, name: str) -> Table[Any]:
        if name.startswith("_") or "native" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self[name]
        except SchemaError as error:
            raise UnknownName(str(error)) from None

    def __dir__(self) -> List[str]:
        return [*object.__dir__(self), *self.schema.tables()]

    def _wake(self) -> None:
        """Ends a wait for the session, which may be one for a descriptor that is closed now. Fronts
        that wait override it.
        """

    def set_remotes(self, remotes: str) -> None:
        """Connects to other remotes. A connection to one that is still listed is kept."""
        self.native.set_remotes(remotes)
        self._wake()

    def set_leader_only(self, leader_only: bool) -> None:
        """Whether the client connects only to the leader of a cluster."""
        self.native.set_leader_only(leader_only)
        self._wake()

    def set_probe_interval(self, seconds: Optional[float]) -> None:
        """How long the server may be silent before it is probed: 0 never, None as is the
        default.
        """
        self.native.set_probe_interval(seconds)
        self._wake()

    def set_lock(self, name: Optional[str]) -> None:
        """Asks the server for a lock, or gives it back (None). While a lock is set, transactions
        need it.
        """
        self.native.set_lock(name)
        self._wake()

    @property
    def has_lock(self) -> bool:
        """Whether the lock is held, by the server's last message."""
        return self.session.lock == "held"

    def reconnect(self) -> None:
        """Ends the connection and makes another one."""
        self.native.reconnect()
        self._wake()

    def metrics(self) -> Dict[str, int]:
        """Counters of the client."""
        return dict(self.native.metrics())

    @contextlib.contextmanager
    def _opened(self, comment: Optional[str], dry_run: bool = False) -> Iterator["_native.Transaction"]:
        """A transaction that is open within the block. The end of the block sends it, an exception
        aborts it.
        """
        txn = self.native.begin()
        try:
            if comment is not None:
                txn.comment(comment)
            if dry_run:
                txn.set_dry_run()
            yield txn
            txn.commit()
        except BaseException:
            txn.abort()
            raise

    def _watch(self, tables: Sequence[str]) -> "_native.Watch":
        for table in tables:
            self._chosen.check(table)
        return self.native.watch(list(tables) or list(self._chosen))

    def __repr__(self) -> str:
        return f"<client of {self.schema.name}: {self.session!r}>"

    def _is_synced(self) -> bool:
        return self.session.is_synced

    def _is_lock_answered(self) -> bool:
        return self.session.lock in ("held", "refused")

    def _check_lock(self) -> None:
        """Raises the error of a request for a lock that the server has refused."""
        refusal = self.session.lock_refusal
        if refusal is not None:
            raise NotLocked(f"the server refused the lock: {refusal}")

    def _set_condition(self, table: str, condition: Condition) -> int:
        self._chosen.check(table)
        return self.native.set_condition(table, condition.clauses)

    def _check_condition(self, promise: int) -> None:
        """Raises the error of a change of conditions that the server has refused."""
        refusal = self.native.condition_refusal(promise)
        if refusal is not None:
            raise UsageError(f"the server refused the condition, so the one before it stays in force: {refusal}")


def check(txn: "_native.Transaction") -> None:
    """Raises the error of a transaction that has ended without success."""
    status = txn.status
    if status in ("success", "unchanged"):
        return
    if status == "try again":
        raise TryAgain("the transaction lost a race or its connection: look at the contents and make it again")
    if status == "not locked":
        raise NotLocked("the lock is not held")
    if status == "error":
        tag, details, operation = txn.refusal or (None, "", None)
        raise Refused(tag, details, operation)
    raise TransactionError(status)


class Fetch:
    """A fetch of values on demand that has begun."""

    def __init__(self, native: "_native.Client", table: str, column: Optional[str], row: Optional["RowBase"] = None) -> None:
        self._native = native
        self._number = native.fetch(table, column, row)
        self._outcome: Tuple[bool, Optional[str]] = (False, None)

    def is_over(self) -> bool:
        """Whether it has ended."""
        if not self._outcome[0]:
            self._outcome = self._native.fetch_outcome(self._number)
        return self._outcome[0]

    def check(self) -> None:
        """Raises the error of one that has failed."""
        if self._outcome[1] is not None:
            raise FetchError(self._outcome[1])


class Deadline:
    """The end of a time limit; None is never."""

    def __init__(self, timeout: Optional[float]) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> Optional[float]:
        """Seconds until then, at least 0."""
        return None if self._end is None else max(self._end - time.monotonic(), 0)


def forward_log() -> None:
    """Passes messages of the library on to ``logging``; the loggers are called ``corvid.client``
    and the like.
    """
    for level, name, text in _native.take_log_messages():
        logging.getLogger(name).log(level, "%s", text)


Predicate = Callable[[], bool]
