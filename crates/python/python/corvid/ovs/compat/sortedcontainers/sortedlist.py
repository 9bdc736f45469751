"""Sorted lists on plain lists and `bisect`.

A `SortedList` keeps its elements in order.  A `SortedKeyList` keeps them in the order of their
keys, which it computes once and keeps in a second list.  Elements with equal keys stay in the
order of their insertion.  Inserting moves the elements behind, which is fast for the sizes of
OVSDB tables.
"""

import bisect
from collections.abc import MutableSequence


class SortedList(MutableSequence):
    """A list that sorts its elements.  With a `key` function it is a `SortedKeyList`."""

    key = None

    def __new__(cls, iterable=None, key=None):
        if key is not None and not issubclass(cls, SortedKeyList):
            if cls is not SortedList:
                raise TypeError("inherit SortedKeyList for key argument")
            cls = SortedKeyList
        return object.__new__(cls)

    def __init__(self, iterable=None, key=None):
        self._items = []
        self._set_up(key)
        if iterable is not None:
            self.update(iterable)

    # The order.  `_keys` is the list that is searched; here it is the list of elements itself.

    def _set_up(self, key):
        self._keys = self._items

    def _key_of(self, value):
        return value

    def _insert_at(self, position, key, value):
        self._items.insert(position, value)

    def _replace_all(self, values):
        self._items[:] = sorted(values)

    def _remove_slice(self, index):
        del self._items[index]

    # Changes.

    def add(self, value):
        """Adds `value` behind the elements that are not greater."""
        key = self._key_of(value)
        self._insert_at(bisect.bisect_right(self._keys, key), key, value)

    def update(self, iterable):
        """Adds all elements of `iterable`."""
        self._replace_all(self._items + list(iterable))

    def clear(self):
        """Removes all elements."""
        self._remove_slice(slice(None))

    def discard(self, value):
        """Removes one element equal to `value` if there is one."""
        position = self._find(value)
        if position is not None:
            self._remove_slice(position)

    def remove(self, value):
        """Removes one element equal to `value`, or raises `ValueError`."""
        position = self._find(value)
        if position is None:
            raise ValueError("%r not in list" % (value,))
        self._remove_slice(position)

    def pop(self, index=-1):
        """Removes and returns the element at `index`."""
        if not self._items:
            raise IndexError("pop index out of range")
        value = self._items[index]
        self._remove_slice(index)
        return value

    def __delitem__(self, index):
        self._remove_slice(index)

    def __setitem__(self, index, value):
        raise NotImplementedError("use ``del sl[index]`` and ``sl.add(value)`` instead")

    def append(self, value):
        raise NotImplementedError("use ``sl.add(value)`` instead")

    def extend(self, values):
        raise NotImplementedError("use ``sl.update(values)`` instead")

    def insert(self, index, value):
        raise NotImplementedError("use ``sl.add(value)`` instead")

    def reverse(self):
        raise NotImplementedError("use ``reversed(sl)`` instead")

    # Look-ups.

    def _find(self, value, start=0, stop=None):
        """Returns the first position of an element equal to `value`, or None."""
        key = self._key_of(value)
        stop = len(self._items) if stop is None else stop
        position = max(bisect.bisect_left(self._keys, key), start)
        while position < stop and not key < self._keys[position]:
            if self._items[position] == value:
                return position
            position += 1
        return None

    def __contains__(self, value):
        return self._find(value) is not None

    def __getitem__(self, index):
        return self._items[index]

    def __iter__(self):
        return iter(self._items)

    def __reversed__(self):
        return reversed(self._items)

    def __len__(self):
        return len(self._items)

    def bisect_left(self, value):
        """Returns the position before the elements equal to `value`."""
        return bisect.bisect_left(self._keys, self._key_of(value))

    def bisect_right(self, value):
        """Returns the position behind the elements equal to `value`."""
        return bisect.bisect_right(self._keys, self._key_of(value))

    bisect = bisect_right

    def count(self, value):
        """Returns the number of elements equal to `value`."""
        return sum(1 for item in self._items[self.bisect_left(value):self.bisect_right(value)]
                   if item == value)

    def index(self, value, start=None, stop=None):
        """Returns the first position of `value` from `start` up to `stop`, or raises."""
        start, stop, _ = slice(start, stop).indices(len(self._items))
        position = self._find(value, start, stop)
        if position is None:
            raise ValueError("%r is not in list" % (value,))
        return position

    def islice(self, start=None, stop=None, reverse=False):
        """Returns an iterator of the elements from position `start` up to `stop`."""
        items = self._items[start:stop]
        return reversed(items) if reverse else iter(items)

    def irange(self, minimum=None, maximum=None, inclusive=(True, True), reverse=False):
        """Returns an iterator of the elements from `minimum` to `maximum`.

        `inclusive` says for both bounds whether elements equal to them belong to the range.
        """
        return self._between(None if minimum is None else self._key_of(minimum),
                             None if maximum is None else self._key_of(maximum),
                             inclusive, reverse)

    def _between(self, minimum, maximum, inclusive, reverse):
        start, stop = 0, len(self._items)
        if minimum is not None:
            search = bisect.bisect_left if inclusive[0] else bisect.bisect_right
            start = search(self._keys, minimum)
        if maximum is not None:
            search = bisect.bisect_right if inclusive[1] else bisect.bisect_left
            stop = search(self._keys, maximum)
        return self.islice(start, max(start, stop), reverse)

    # Lists as values.

    def _same_kind(self, values):
        return type(self)(values)

    def copy(self):
        """Returns a list with the same elements."""
        return self._same_kind(self._items)

    __copy__ = copy

    def __add__(self, other):
        return self._same_kind(self._items + list(other))

    __radd__ = __add__

    def __iadd__(self, other):
        self.update(other)
        return self

    def __mul__(self, number):
        return self._same_kind(self._items * number)

    __rmul__ = __mul__

    def __imul__(self, number):
        self._replace_all(self._items * number)
        return self

    def _compared(self, other, result):
        if not hasattr(other, "__getitem__") or not hasattr(other, "__len__"):
            return NotImplemented
        return result(self._items, list(other))

    def __eq__(self, other):
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other):
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compared(other, lambda a, b: a >= b)

    # It is mutable.
    __hash__ = None

    def __reduce__(self):
        return type(self), (self._items,)

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, self._items)


class SortedKeyList(SortedList):
    """A list that sorts its elements by the results of a function."""

    def __init__(self, iterable=None, key=lambda value: value):
        SortedList.__init__(self, iterable, key)

    def __new__(cls, iterable=None, key=None):
        return object.__new__(cls)

    def _set_up(self, key):
        self.key = key
        self._keys = []

    def _key_of(self, value):
        return self.key(value)

    def _insert_at(self, position, key, value):
        self._keys.insert(position, key)
        self._items.insert(position, value)

    def _replace_all(self, values):
        items = sorted(values, key=self.key)
        self._keys[:] = [self.key(item) for item in items]
        self._items[:] = items

    def _remove_slice(self, index):
        del self._items[index]
        del self._keys[index]

    def bisect_key_left(self, key):
        """Returns the position before the elements with the key `key`."""
        return bisect.bisect_left(self._keys, key)

    def bisect_key_right(self, key):
        """Returns the position behind the elements with the key `key`."""
        return bisect.bisect_right(self._keys, key)

    bisect_key = bisect_key_right

    def irange_key(self, min_key=None, max_key=None, inclusive=(True, True), reverse=False):
        """Like `irange`, with bounds that are keys."""
        return self._between(min_key, max_key, inclusive, reverse)

    def _same_kind(self, values):
        return type(self)(values, key=self.key)

    def __reduce__(self):
        return type(self), (self._items, self.key)

    def __repr__(self):
        return "%s(%r, key=%r)" % (type(self).__name__, self._items, self.key)


SortedListWithKey = SortedKeyList
