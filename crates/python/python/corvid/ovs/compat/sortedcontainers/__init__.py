"""Sorted lists, dicts and sets.

These are the classes of the package `sortedcontainers` when it is installed, and our own with the
same interface otherwise.
"""

try:
    from sortedcontainers import (SortedDict, SortedItemsView, SortedKeyList, SortedKeysView,
                                  SortedList, SortedListWithKey, SortedSet, SortedValuesView)
except ImportError:
    from .sorteddict import SortedDict, SortedItemsView, SortedKeysView, SortedValuesView
    from .sortedlist import SortedKeyList, SortedList, SortedListWithKey
    from .sortedset import SortedSet

__all__ = [
    "SortedList",
    "SortedKeyList",
    "SortedListWithKey",
    "SortedDict",
    "SortedKeysView",
    "SortedItemsView",
    "SortedValuesView",
    "SortedSet",
]
