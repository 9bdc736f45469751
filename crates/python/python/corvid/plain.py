"""Values of columns as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any
from uuid import UUID

from . import _native


def as_json(value: Any) -> Any:
    """A value that ``json.dumps`` takes: sets are sorted lists, UUIDs and rows the text of the
    UUID, maps have texts for such keys.

    For the contents of a row: ``json.dumps(corvid.as_json(row.as_dict()))``.
    """
    if isinstance(value, _native.Row):
        return str(value.uuid)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {as_json(key): as_json(of_key) for key, of_key in value.items()}
    if isinstance(value, Set):
        # The elements of a column have one type.
        return sorted(as_json(element) for element in value)
    return value
