"""Conditions, made by comparing columns: ``(c.type == "remote") | (c.type == "localport")``."""

from __future__ import annotations

from typing import Any, Generic, Iterable, List, Optional, Tuple, TypeVar

from . import _native
from .errors import Mismatch

#: The values that a column may be compared with.
Value = TypeVar("Value")
#: Column, function, value.
Clause = Tuple[str, str, Any]


class Condition:
    """The rows of a table that a client wants: those for which any of the clauses holds."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: Optional[Iterable[Clause]]) -> None:
        #: The clauses; None for all rows.
        self.clauses: Optional[List[Clause]] = None if clauses is None else list(clauses)

    def __or__(self, other: "Condition") -> "Condition":
        if not isinstance(other, Condition):
            return NotImplemented
        if self.clauses is None or other.clauses is None:
            return ALL
        return Condition(self.clauses + other.clauses)

    def __bool__(self) -> bool:
        raise Mismatch("a condition has no truth value: the server evaluates it. Join conditions with |")

    def __repr__(self) -> str:
        if self.clauses is None:
            return "<all rows>"
        if not self.clauses:
            return "<no rows>"
        return "<" + " | ".join(f"{column} {function} {value!r}" for column, function, value in self.clauses) + ">"


#: All rows.
ALL = Condition(None)
#: No rows.
NONE = Condition([])


class ColumnRef(Generic[Value]):
    """A column, to be compared. The comparisons make a :class:`Condition`."""

    __slots__ = ("name", "info")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, info: "_native.Column") -> None:
        #: Its name.
        self.name = info.name
        #: Its type.
        self.info = info

    def _clause(self, function: str, value: Value) -> Condition:
        return Condition([(self.name, function, value)])

    def __eq__(self, value: Value) -> Condition:  # type: ignore[override]
        return self._clause("==", value)

    def __ne__(self, value: Value) -> Condition:  # type: ignore[override]
        return self._clause("!=", value)

    def __lt__(self, value: Value) -> Condition:
        return self._clause("<", value)

    def __le__(self, value: Value) -> Condition:
        return self._clause("<=", value)

    def __gt__(self, value: Value) -> Condition:
        return self._clause(">", value)

    def __ge__(self, value: Value) -> Condition:
        return self._clause(">=", value)

    def includes(self, value: Value) -> Condition:
        """Rows whose set or map has all of these elements."""
        return self._clause("includes", value)

    def excludes(self, value: Value) -> Condition:
        """Rows whose set or map has none of these elements."""
        return self._clause("excludes", value)

    def __repr__(self) -> str:
        return f"<column {self.name}: {self.info.type}>"
