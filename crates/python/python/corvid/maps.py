"""Maps, as columns are read."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import UsageError


class Map(dict[Any, Any]):
    """A copy of a map column. It is a dict that refuses changes, because a change of the copy would
    change no row.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError("a map that was read is a copy: change the row with Transaction.set_key and Transaction.remove, or assign a whole map to its column")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        # By default the elements would be set one by one.
        return Map, (dict(self),)

    def __copy__(self) -> "Map":
        return self

    def __deepcopy__(self, _: Any) -> "Map":
        return self
