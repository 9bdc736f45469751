"""Sets that list their elements in order: a `set` with a sorted list of its elements beside it."""

from collections.abc import MutableSet, Sequence
from itertools import chain

from .sortedlist import SortedList


class SortedSet(MutableSet, Sequence):
    """A set with sorted elements, by the results of the function `key` if there is one."""

    def __init__(self, iterable=None, key=None):
        self._key = key
        self._set = set()
        self._list = SortedList(key=key)
        if iterable is not None:
            self.update(iterable)

    @property
    def key(self):
        """The function that elements are sorted by, or None."""
        return self._key

    def _from_iterable(self, iterable):
        return type(self)(iterable, key=self._key)

    def __contains__(self, value):
        return value in self._set

    def __getitem__(self, index):
        return self._list[index]

    def __delitem__(self, index):
        values = self._list[index]
        for value in values if isinstance(index, slice) else [values]:
            self.remove(value)

    def __iter__(self):
        return iter(self._list)

    def __reversed__(self):
        return reversed(self._list)

    def __len__(self):
        return len(self._set)

    def add(self, value):
        """Adds `value` if it is not there."""
        if value not in self._set:
            # First into the list, so that a value that cannot be compared leaves no trace.
            self._list.add(value)
            self._set.add(value)

    def discard(self, value):
        """Removes `value` if it is there."""
        if value in self._set:
            self._set.remove(value)
            self._list.remove(value)

    def remove(self, value):
        """Removes `value`, or raises `KeyError`."""
        if value not in self._set:
            raise KeyError(value)
        self.discard(value)

    def pop(self, index=-1):
        """Removes and returns the element at position `index`."""
        value = self._list.pop(index)
        self._set.remove(value)
        return value

    def clear(self):
        """Removes all elements."""
        self._set.clear()
        self._list.clear()

    def copy(self):
        """Returns a set with the same elements."""
        return self._from_iterable(self._set)

    __copy__ = copy

    def count(self, value):
        """Returns 1 if `value` is there, otherwise 0."""
        return 1 if value in self._set else 0

    def update(self, *iterables):
        """Adds the elements of all `iterables`."""
        for value in chain(*iterables):
            self.add(value)
        return self

    def union(self, *iterables):
        """Returns the set of the elements of this set and all `iterables`."""
        return self._from_iterable(self._set.union(*iterables))

    def difference(self, *iterables):
        """Returns the set of the elements that are in none of `iterables`."""
        return self._from_iterable(self._set.difference(*iterables))

    def intersection(self, *iterables):
        """Returns the set of the elements that are in all `iterables` too."""
        return self._from_iterable(self._set.intersection(*iterables))

    def symmetric_difference(self, other):
        """Returns the set of the elements that are in one of both sets only."""
        return self._from_iterable(self._set.symmetric_difference(other))

    def difference_update(self, *iterables):
        """Removes the elements of `iterables`."""
        return self._become(self._set.difference(*iterables))

    def intersection_update(self, *iterables):
        """Removes the elements that are not in all `iterables`."""
        return self._become(self._set.intersection(*iterables))

    def symmetric_difference_update(self, other):
        """Keeps the elements that are in one of both sets only."""
        return self._become(self._set.symmetric_difference(other))

    def _become(self, values):
        self.clear()
        return self.update(values)

    def __or__(self, other):
        return self.union(other)

    def __and__(self, other):
        return self.intersection(other)

    def __sub__(self, other):
        return self.difference(other)

    def __xor__(self, other):
        return self.symmetric_difference(other)

    def __rsub__(self, other):
        return self._from_iterable(set(other).difference(self._set))

    __ror__ = __or__
    __rand__ = __and__
    __rxor__ = __xor__

    def __ior__(self, other):
        return self.update(other)

    def __isub__(self, other):
        return self.difference_update(other)

    def __iand__(self, other):
        return self.intersection_update(other)

    def __ixor__(self, other):
        return self.symmetric_difference_update(other)

    def _elements(self, other):
        return other._set if isinstance(other, SortedSet) else other

    def __eq__(self, other):
        return self._set == self._elements(other)

    def __ne__(self, other):
        return self._set != self._elements(other)

    def __lt__(self, other):
        return self._set < self._elements(other)

    def __le__(self, other):
        return self._set <= self._elements(other)

    def __gt__(self, other):
        return self._set > self._elements(other)

    def __ge__(self, other):
        return self._set >= self._elements(other)

    # It is mutable.
    __hash__ = None

    # Positions and ranges are those of the list.

    def bisect_left(self, value):
        """Returns the position before `value`."""
        return self._list.bisect_left(value)

    def bisect_right(self, value):
        """Returns the position behind `value`."""
        return self._list.bisect_right(value)

    bisect = bisect_right

    def index(self, value, start=None, stop=None):
        """Returns the position of `value`, or raises `ValueError`."""
        return self._list.index(value, start, stop)

    def irange(self, minimum=None, maximum=None, inclusive=(True, True), reverse=False):
        """Returns an iterator of the elements from `minimum` to `maximum`."""
        return self._list.irange(minimum, maximum, inclusive, reverse)

    def islice(self, start=None, stop=None, reverse=False):
        """Returns an iterator of the elements from position `start` up to `stop`."""
        return self._list.islice(start, stop, reverse)

    def __reduce__(self):
        return type(self), (list(self._list), self._key)

    def __repr__(self):
        key = "" if self._key is None else ", key=%r" % self._key
        return "%s(%r%s)" % (type(self).__name__, list(self._list), key)
