"""Tables of a replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Generic, Iterator, List, Optional, Tuple, TypeVar, Union
from uuid import UUID

from . import _native
from .conditions import ColumnRef
from .errors import RowError, SchemaError, UnknownName, UsageError

if TYPE_CHECKING:
    from ._typing import RowBase
    from .database import Database


R = TypeVar("R", bound="RowBase")


class Columns:
    """The columns of a table as attributes, for conditions: ``table.c.name == "br0"``."""

    def __init__(self, table: str, columns: List["_native.Column"]) -> None:
        self._table = table
        self._columns: Dict[str, ColumnRef[Any]] = {column.name: ColumnRef(column) for column in columns}

    def __getattr__(self, name: str) -> ColumnRef[Any]:
        columns: Dict[str, ColumnRef[Any]] = self.__dict__.get("_columns", {})
        if name not in columns:
            raise UnknownName(f"table {self.__dict__.get('_table')} has no column {name}")
        return columns[name]

    def __getitem__(self, name: str) -> ColumnRef[Any]:
        if name not in self._columns:
            raise SchemaError(f"table {self._table} has no column {name}")
        return self._columns[name]

    def __iter__(self) -> Iterator[ColumnRef[Any]]:
        return iter(self._columns.values())

    def __dir__(self) -> List[str]:
        return list(self._columns)


class Table(Generic[R]):
    """The rows of one table. While a transaction is open, they are as it has changed them."""

    def __init__(self, database: "Database", name: str) -> None:
        self._native = database.native
        # Not the database, which would keep itself alive through its tables.
        self._chosen = database._chosen
        self._is_chosen = name in database._chosen
        self._indexes: Dict[Tuple[str, ...], _native.Index[R]] = {}
        #: Its name.
        self.name = name
        #: Its columns, to be compared.
        self.c = Columns(name, self._native.schema.columns(name))

    def __iter__(self) -> Iterator[R]:
        if not self._is_chosen:
            self._chosen.check(self.name)
        return iter(self._native.rows(self.name))

    def __len__(self) -> int:
        if not self._is_chosen:
            self._chosen.check(self.name)
        return self._native.row_count(self.name)

    def get(self, uuid: Union[UUID, str]) -> Optional[R]:
        """The row with this UUID; None if it is not there."""
        if not self._is_chosen:
            self._chosen.check(self.name)
        return self._native.row(self.name, uuid)

    def __getitem__(self, uuid: Union[UUID, str]) -> R:
        row = self.get(uuid)
        if row is None:
            raise RowError(f"there is no row {uuid} in table {self.name}", self.name, str(uuid))
        return row

    def __contains__(self, row: Any) -> bool:
        if isinstance(row, _native.Row):
            return _native.table_of(row) == self.name and self.get(row.uuid) == row
        return self.get(row) is not None

    def index(self, *columns: str) -> "_native.Index[R]":
        """The rows in the order of these columns; one with a leading ``-`` descends. It is made at
        the first call, and kept up.
        """
        if not columns:
            raise UsageError("an index needs columns")
        if columns not in self._indexes:
            self._chosen.check(self.name, [column[1:] if column.startswith("-") else column for column in columns])
            self._indexes[columns] = self._native.add_index(self.name, list(columns))
        return self._indexes[columns]

    def find_all(self, **values: Any) -> List[R]:
        """The rows whose columns have these values, by an index."""
        columns = tuple(sorted(values))
        index = self.index(*columns)
        key = values[columns[0]] if len(columns) == 1 else tuple(values[column] for column in columns)
        return index.range(key, key)

    def find(self, **values: Any) -> Optional[R]:
        """The first row whose columns have these values, by an index; None if there is none."""
        columns = tuple(sorted(values))
        index = self.index(*columns)
        return index.get(values[columns[0]] if len(columns) == 1 else tuple(values[column] for column in columns))

    def __repr__(self) -> str:
        return f"<table {self.name}, {self._native.row_count(self.name)} rows>"
