"""Dicts that list their keys in order.

A `SortedDict` is a `dict` with a sorted list of its keys beside it.
"""

from collections.abc import ItemsView, KeysView, Sequence, ValuesView

from .sortedlist import SortedList


class SortedDict(dict):
    """A dict with sorted keys.

    The first argument may be a function of a key, or None; keys are then in the order of its
    results.  The other arguments are those of `dict`.
    """

    def __init__(self, *args, **kwargs):
        self._key = None
        if args and (args[0] is None or callable(args[0])):
            self._key = args[0]
            args = args[1:]
        dict.__init__(self)
        self._list = SortedList(key=self._key)
        self.update(*args, **kwargs)

    @property
    def key(self):
        """The function that keys are sorted by, or None."""
        return self._key

    def __setitem__(self, key, value):
        if key not in self:
            # First into the list, so that a key that cannot be compared leaves no trace.
            self._list.add(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key):
        dict.__delitem__(self, key)
        self._list.remove(key)

    def __iter__(self):
        return iter(self._list)

    def __reversed__(self):
        return reversed(self._list)

    def clear(self):
        """Removes all keys."""
        dict.clear(self)
        self._list.clear()

    def copy(self):
        """Returns a dict with the same keys and values."""
        return type(self)(self._key, self.items())

    __copy__ = copy

    @classmethod
    def fromkeys(cls, iterable, value=None):
        """Returns a dict with the keys of `iterable`, all with `value`."""
        return cls((key, value) for key in iterable)

    def keys(self):
        """Returns a view of the keys, which is also a sequence."""
        return SortedKeysView(self)

    def items(self):
        """Returns a view of the pairs of keys and values in the order of keys."""
        return SortedItemsView(self)

    def values(self):
        """Returns a view of the values in the order of keys."""
        return SortedValuesView(self)

    _NOT_GIVEN = object()

    def pop(self, key, default=_NOT_GIVEN):
        """Removes `key` and returns its value, or `default` if there is no such key."""
        if key in self:
            self._list.remove(key)
            return dict.pop(self, key)
        if default is SortedDict._NOT_GIVEN:
            raise KeyError(key)
        return default

    def popitem(self, index=-1):
        """Removes the pair at position `index` and returns it."""
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        key = self._list.pop(index)
        return key, dict.pop(self, key)

    def peekitem(self, index=-1):
        """Returns the pair at position `index`."""
        key = self._list[index]
        return key, self[key]

    def setdefault(self, key, default=None):
        """Returns the value of `key`, which becomes `default` if there is no such key."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        """Adds keys and values like `dict.update`."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __or__(self, other):
        if not isinstance(other, dict):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        if not isinstance(other, dict):
            return NotImplemented
        result = type(self)(self._key, other)
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self

    # The list of keys offers positions and ranges of keys.

    def bisect_left(self, key):
        """Returns the position before `key`."""
        return self._list.bisect_left(key)

    def bisect_right(self, key):
        """Returns the position behind `key`."""
        return self._list.bisect_right(key)

    bisect = bisect_right

    def index(self, key, start=None, stop=None):
        """Returns the position of `key`, or raises `ValueError`."""
        return self._list.index(key, start, stop)

    def irange(self, minimum=None, maximum=None, inclusive=(True, True), reverse=False):
        """Returns an iterator of the keys from `minimum` to `maximum`."""
        return self._list.irange(minimum, maximum, inclusive, reverse)

    def islice(self, start=None, stop=None, reverse=False):
        """Returns an iterator of the keys from position `start` up to `stop`."""
        return self._list.islice(start, stop, reverse)

    def __getattr__(self, name):
        # Only lists with a key function have these.
        if name in ("bisect_key", "bisect_key_left", "bisect_key_right", "irange_key"):
            return getattr(self._list, name)
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    def __reduce__(self):
        return type(self), (self._key, dict(dict.items(self)))

    def __repr__(self):
        first = "" if self._key is None else "%r, " % self._key
        return "%s(%s{%s})" % (type(self).__name__, first,
                               ", ".join("%r: %r" % item for item in self.items()))


class SortedKeysView(KeysView, Sequence):
    """The keys of a `SortedDict`."""

    @classmethod
    def _from_iterable(cls, iterable):
        return set(iterable)

    def __getitem__(self, index):
        return self._mapping._list[index]

    def __delitem__(self, index):
        keys = self._mapping._list[index]
        for key in keys if isinstance(index, slice) else [keys]:
            del self._mapping[key]

    def __reversed__(self):
        return reversed(self._mapping)


class SortedItemsView(ItemsView, Sequence):
    """The pairs of keys and values of a `SortedDict`."""

    @classmethod
    def _from_iterable(cls, iterable):
        return set(iterable)

    def __getitem__(self, index):
        keys = self._mapping._list[index]
        if isinstance(index, slice):
            return [(key, self._mapping[key]) for key in keys]
        return keys, self._mapping[keys]

    def __reversed__(self):
        return ((key, self._mapping[key]) for key in reversed(self._mapping))


class SortedValuesView(ValuesView, Sequence):
    """The values of a `SortedDict`."""

    def __getitem__(self, index):
        keys = self._mapping._list[index]
        if isinstance(index, slice):
            return [self._mapping[key] for key in keys]
        return self._mapping[keys]

    def __reversed__(self):
        return (self._mapping[key] for key in reversed(self._mapping))
