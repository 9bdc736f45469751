"""Questions about the past of a database, for ``read_history`` of clients, and the lines that
answer them.

A moment is text: ``"HEAD"``, ``"HEAD~3"``, ``"-2h"``, ``"2026-11-28T10:00Z"`` (without a zone it is
UTC), the id of a commit; or a ``datetime``. ``docs/operate/history.md`` describes them.
"""

from __future__ import annotations

import json
from collections import deque
from datetime import datetime, timedelta, timezone
from typing import Any, Deque, Dict, Generic, List, Literal, Mapping, Optional, Tuple, TypedDict, TypeVar, Union

from . import _native
from .errors import Mismatch

#: A point in the history.
Moment = Union[str, datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class ChangedColumn(TypedDict, total=False):
    """A column of a changed row, in the notation of RFC 7047 5.1. A set or map has the elements that
    were added and removed instead of whole values.
    """

    old: Any
    new: Any
    added: Any
    removed: Any


class _RowChange(TypedDict):
    table: str
    #: Its UUID.
    row: str
    #: "insert", "modify" or "delete".
    op: str
    columns: Dict[str, ChangedColumn]


class RowChange(_RowChange, total=False):
    """A row that was inserted, modified or deleted."""

    #: Of a row that has one.
    name: str


class CommitClient(TypedDict, total=False):
    """The client that made a commit, as far as the server recorded it (``--record-clients``)."""

    #: The name in its certificate.
    client: str
    #: Its address.
    peer: str
    role: str
    #: The relays and members that passed the transaction on.
    via: List[str]


class _Dated(TypedDict, total=False):
    #: ms since the Unix epoch. Every commit of a server has one.
    date: int
    #: The event has many changes, and this line has more of those of the line before it.
    continued: bool


class _Commit(TypedDict):
    event: Literal["commit"]
    #: The id of the commit, or the beginning of it.
    id: str
    #: The file in which it is.
    file: str
    changes: List[RowChange]


class Commit(_Commit, _Dated, total=False):
    """A commit in a log."""

    client: CommitClient
    comment: str
    #: False for a commit of a member whose cluster has not confirmed it.
    confirmed: bool


class _Beginning(TypedDict):
    #: Where the history begins, or where a part of it is missing.
    event: Literal["begin", "gap"]
    file: str
    #: The contents, or what has changed in the missing part.
    changes: List[RowChange]


class Beginning(_Beginning, _Dated):
    """The place in a log where the history begins, or goes on after a gap."""


class _Conversion(TypedDict):
    event: Literal["schema"]
    file: str
    #: The version of the schema before it.
    old: str
    #: The version of the schema after it.
    new: str


class Conversion(_Conversion, _Dated):
    """A conversion of the database in a log."""


#: A line of a log: ``event["event"]`` tells which.
Event = Union[Commit, Beginning, Conversion]


class File(TypedDict, total=False):
    """A file of the history; or, with ``gap`` alone, what is missing."""

    file: str
    #: Of a kept file; the present one has none.
    number: int
    database: str
    schema_version: str
    compressed: bool
    bytes: int
    text_bytes: int
    torn_bytes: int
    records: int
    transactions: int
    #: The first date in it, ms since the Unix epoch.
    first: int
    last: int
    gap: str


Line = TypeVar("Line")


class Question(Generic[Line]):
    """What a program asks: made by :func:`log`, :func:`diff`, :func:`files` or :func:`schema`."""

    __slots__ = ("members", "newest", "read")

    def __init__(self, read: str, members: Mapping[str, Optional[Moment]], newest: Optional[int] = None) -> None:
        #: What is read.
        self.read = read
        #: The members of the question that are texts.
        self.members: List[Tuple[str, str]] = [(name, moment_text(value)) for name, value in members.items() if value is not None]
        #: The number of commits.
        self.newest = newest

    def __repr__(self) -> str:
        members = "".join(f" {name}={text!r}" for name, text in self.members)
        newest = "" if self.newest is None else f" newest={self.newest}"
        return f"<{self.read} of the history{members}{newest}>"


def log(
    *,
    table: Optional[str] = None,
    row: Optional[str] = None,
    column: Optional[str] = None,
    client: Optional[str] = None,
    since: Optional[Moment] = None,
    until: Optional[Moment] = None,
    newest: Optional[int] = None,
) -> "Question[Event]":
    """The commits with their changes, oldest first.

    They can be restricted to rows of a table, to rows whose UUID begins with ``row``, to rows of
    which a column has changed, to commits with a text in their client or comment, to changes after
    one moment and up to another one, and to the last ``newest`` commits.
    """
    members = {"table": table, "row": row, "column": column, "client": client, "since": since, "until": until}
    return Question("log", members, newest)


def diff(
    from_moment: Moment, to_moment: Moment, *, table: Optional[str] = None, row: Optional[str] = None, column: Optional[str] = None
) -> "Question[RowChange]":
    """The rows that differ between two moments, restricted as in :func:`log`."""
    return Question("diff", {"from": from_moment, "to": to_moment, "table": table, "row": row, "column": column})


def files() -> "Question[File]":
    """The files of the history, oldest first, and then what is missing between them."""
    return Question("files", {})


def schema(moment: Moment) -> "Question[Dict[str, Any]]":
    """The schema at a moment, as JSON: one line."""
    return Question("schema", {"at": moment})


def moment_text(moment: Moment) -> str:
    """A moment as servers read it."""
    if isinstance(moment, datetime):
        # One without a zone is a local time, as it is for `datetime` itself.
        since_epoch = (moment if moment.tzinfo is not None else moment.astimezone()) - _EPOCH
        return f"@{since_epoch // timedelta(milliseconds=1)}"
    if not isinstance(moment, str):
        raise Mismatch(f"expected text or a datetime, not {moment!r}")
    return moment


def operations_json(operations: Tuple[Mapping[str, Any], ...]) -> str:
    """Operations as JSON."""
    try:
        return json.dumps([dict(operation) for operation in operations])
    except (TypeError, ValueError) as error:
        raise Mismatch(f"an operation is not JSON: {error}") from None


class Pages(Generic[Line]):
    """A reading that has begun: the part that the fronts share. It never waits.

    A reading that is closed, or forgotten by the program, ends at the server too, which does few at
    a time.
    """

    def __init__(self, native: "_native.Client", question: "Question[Line]") -> None:
        if not isinstance(question, Question):
            raise Mismatch(f"expected a question, such as corvid.history.log(), not {question!r}")
        self._lines: Deque[Line] = deque()
        self._at_ms: Optional[int] = None
        self._done = 0.0
        self._native = native.read_history(question.read, question.members, question.newest)

    @property
    def done(self) -> float:
        """The part of the history that has been read, from 0 to 1."""
        return self._done

    @property
    def at(self) -> Optional[datetime]:
        """The date that the reading has reached, in UTC."""
        return None if self._at_ms is None else _EPOCH + timedelta(milliseconds=self._at_ms)

    def _take(self) -> bool:
        """Takes the next page, or asks for it. Returns whether there was one."""
        page = self._native.take()
        if page is None:
            return False
        lines, self._at_ms, self._done = page
        self._lines.extend(json.loads(line) for line in lines)
        return True

    def _has_ended(self) -> bool:
        return not self._lines and self._native.is_over

    def _cancel(self) -> None:
        self._lines.clear()
        self._native.cancel()

    def __del__(self) -> None:
        # It may not have begun.
        if hasattr(self, "_native"):
            self._native.cancel()

    def __repr__(self) -> str:
        return f"<reading of the history, {self._done:.0%} done>"
