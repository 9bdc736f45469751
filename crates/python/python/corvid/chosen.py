"""The tables and columns that a client replicates, and the error of using others: their contents
are not known.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, Iterator, Mapping

from . import _native
from .errors import SchemaError, UsageError


class Chosen:
    """The replicated columns of each replicated table."""

    def __init__(self, schema: "_native.Schema", columns: Mapping[str, Iterable[str]]) -> None:
        self._schema = schema
        self._columns: Dict[str, FrozenSet[str]] = {table: frozenset(names) for table, names in columns.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, table: str) -> bool:
        return table in self._columns

    def check(self, table: str, columns: Iterable[str] = ()) -> None:
        """Raises the error of a use of a table that is not replicated, or of columns of it that are
        not.
        """
        known = {column.name for column in self._schema.columns(table)}
        if table not in self._columns:
            raise UsageError(f"table {table} is not replicated: select it in the tables of connect")
        for column in columns:
            if column not in known:
                raise SchemaError(f"table {table} has no column {column}")
            if column not in self._columns[table]:
                raise UsageError(f"column {column} of table {table} is not replicated: select it in the tables of connect")
