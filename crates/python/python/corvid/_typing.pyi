"""Types that exist for type checkers only."""

from typing import Any, Dict, Union
from uuid import UUID

from ._native import Client

class RowBase:
    """Whatever all rows have. Classes that ovsdb-idlc generates are derived of it, so that a column that they do not have is an error."""

    def __new__(cls, client: Client, table: str, uuid: Union[UUID, "RowBase", str, bytes]) -> "RowBase": ...
    @property
    def uuid(self) -> UUID: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Any) -> None: ...
    def __hash__(self) -> int: ...
    def as_dict(self) -> Dict[str, Any]:
        """The values of all columns that are replicated, by name."""
