"""Exceptions. Each of them is an :class:`Error`, and can be pickled."""

from __future__ import annotations

from typing import Any, Dict, Tuple, Type


class Error(Exception):
    """The base of all exceptions of this package."""

    # Some classes are a KeyError too, whose text would be a literal of Python.
    __str__ = Exception.__str__

    def __reduce__(self) -> Any:
        # Constructors take other arguments than the text, so an exception is not pickled by calling
        # them again.
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(class_: Type[Error], args: Tuple[Any, ...], attributes: Dict[str, Any]) -> Error:
    error = class_.__new__(class_)
    error.args = args
    error.__dict__.update(attributes)
    return error


class UsageError(Error, RuntimeError):
    """A call that is not allowed now, or not with these arguments. Nothing has changed."""


class Mismatch(Error, TypeError):
    """A value that has another type than is needed, where it is for no column."""


class RemoteError(Error, ValueError):
    """A list of remotes with which no attempt can succeed."""


class SchemaError(Error, LookupError):
    """A name that the schema does not have, or a schema that is none."""


class UnknownName(SchemaError, AttributeError, KeyError):
    """An attribute or item that a database, table or row does not have."""


class RowError(Error, LookupError):
    """A row that is not there, or no longer."""

    def __init__(self, text: str, table: str, row: str) -> None:
        super().__init__(text)
        #: The name of the table.
        self.table = table
        #: The UUID of the row, as text.
        self.row = row


class ColumnError(Error, ValueError):
    """A value or a change that does not fit a column."""

    def __init__(self, text: str, table: str, column: str, row: str | None) -> None:
        super().__init__(text)
        #: The name of the table.
        self.table = table
        #: The name of the column.
        self.column = column
        #: The UUID of the row, as text; None where it is about no row.
        self.row = row


class FetchError(Error):
    """Values on demand that could not be fetched."""


class TimedOut(Error, TimeoutError):
    """The time limit has passed. The client goes on, so the awaited event may still occur."""


class NoServer(Error, ConnectionError):
    """No server is left to try."""


class TransactionError(Error):
    """A transaction that was not committed, or may not have been."""

    #: The status: "try again", "not locked", "error", "aborted".
    status = "error"


class TryAgain(TransactionError):
    """It lost a race with another client, or the connection was lost: it may have been committed.
    Look at the contents, and make it again.
    """

    status = "try again"


class NotLocked(TransactionError):
    """The client has set a lock and does not hold it."""

    status = "not locked"


class Refused(TransactionError):
    """The server refused the transaction."""

    def __init__(self, tag: str | None, details: str, operation: int | None) -> None:
        place = "" if operation is None else f"operation {operation}: "
        named = ": ".join(part for part in (tag, details) if part)
        super().__init__(place + (named or "no reason given"))
        #: The kind of error (RFC 7047 3.1): "constraint violation" and the like; None if it is not
        #: known.
        self.tag = tag
        #: The server's explanation.
        self.details = details
        #: The place of the operation that failed, from 0; None for the transaction as a whole.
        self.operation = operation


class HistoryError(Error):
    """The past of a database that could not be read."""


class HistoryUnsupported(HistoryError):
    """The server does not read history: it is an older release or another program."""


class HistoryRefused(HistoryError):
    """The server refused: there is no such moment or table, or it has no file of the database."""

    def __init__(self, tag: str | None, details: str) -> None:
        super().__init__(": ".join(part for part in (tag, details) if part) or "no reason given")
        #: The kind of error: "invalid parameters", "not supported" and the like.
        self.tag = tag
        #: The server's explanation.
        self.details = details


class HistoryLost(HistoryError, ConnectionError):
    """The connection was lost while history was read. Read again from the beginning."""
