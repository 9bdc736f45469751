"""Sorted lists, dicts and sets, without the package `sortedcontainers`."""

import os
import sys

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)


class Absent(object):
    """Makes the imports of the third-party package fail, so that the package's own is used."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "sortedcontainers":
            raise ImportError(name)
        return None


sys.meta_path.insert(0, Absent())

import copy
import operator

import ovs.compat.sortedcontainers as sc
from transcript import generator, say

rng = generator("sortedcontainers")


def negative(x):
    return -x


def tens(x):
    return x // 10


def show(value):
    if isinstance(value, (sc.SortedList, sc.SortedSet)):
        return "%s%r" % (type(value).__name__, list(value))
    if isinstance(value, sc.SortedDict):
        return "SortedDict%r" % (list(value.items()),)
    if hasattr(value, "__next__"):
        return repr(list(value))
    return repr(value)


def attempt(function, *args, **kwargs):
    try:
        return show(function(*args, **kwargs))
    except Exception as e:
        return "raises %s" % type(e).__name__


say(sorted(sc.__all__), sc.SortedListWithKey is sc.SortedKeyList)
say(type(sc.SortedList([1], key=negative)).__name__, sc.SortedList().key, sc.SortedList([2, 1]),
    sc.SortedKeyList([1, 2], key=negative).key is negative, sc.SortedDict(negative).key is negative,
    sc.SortedDict().key, sc.SortedDict({2: 1, 1: 2}), sc.SortedSet([2, 1]))


def number():
    return rng.randrange(60)


def numbers():
    return [number() for _ in range(rng.randrange(6))]


def bound():
    return rng.choice([None, number(), number()])


def position():
    return rng.choice([None, rng.randrange(-8, 8)])


def a_slice():
    return slice(position(), position(), rng.choice([None, None, 1, 2]))


def flags():
    return (rng.random() < 0.5, rng.random() < 0.5)


LIST = [
    lambda: ("add", number()), lambda: ("add", number()), lambda: ("add", number()),
    lambda: ("update", numbers()), lambda: ("update", numbers()),
    lambda: ("discard", number()), lambda: ("remove", number()), lambda: ("pop",),
    lambda: ("pop", rng.randrange(-5, 20)), lambda: ("__contains__", number()),
    lambda: ("count", number()), lambda: ("index", number()),
    lambda: ("index", number(), rng.randrange(-5, 10), rng.randrange(-5, 20)),
    lambda: ("bisect", number()), lambda: ("bisect_left", number()),
    lambda: ("bisect_right", number()), lambda: ("__getitem__", rng.randrange(-20, 20)),
    lambda: ("__getitem__", a_slice()), lambda: ("__delitem__", rng.randrange(-20, 20)),
    lambda: ("__delitem__", slice(rng.randrange(-3, 9), rng.randrange(3, 9))),
    lambda: ("irange", bound(), bound(), flags(), rng.random() < 0.3),
    lambda: ("islice", position(), position(), rng.random() < 0.3),
    lambda: ("__reversed__",), lambda: ("copy",), lambda: ("__len__",),
    lambda: ("__add__", numbers()), lambda: ("__mul__", 2), lambda: ("append", 5),
    lambda: ("extend", [5]), lambda: ("insert", 0, 5), lambda: ("reverse",),
    lambda: ("__setitem__", 0, 5),
]
KEYED = LIST + [
    lambda: ("bisect_key", rng.randrange(-60, 60)), lambda: ("bisect_key_left", rng.randrange(6)),
    lambda: ("bisect_key_right", rng.randrange(6)),
    lambda: ("irange_key", rng.randrange(-60, 6), rng.randrange(6), flags()),
]
DICT = [
    lambda: ("__setitem__", number(), number()), lambda: ("__setitem__", number(), number()),
    lambda: ("setdefault", number(), number()), lambda: ("setdefault", number()),
    lambda: ("update", [(number(), number())]), lambda: ("update", {number(): 1, number(): 2}),
    lambda: ("__delitem__", number()), lambda: ("pop", number()), lambda: ("pop", number(), 7),
    lambda: ("popitem",), lambda: ("popitem", rng.randrange(-3, 3)), lambda: ("peekitem",),
    lambda: ("peekitem", rng.randrange(-3, 9)), lambda: ("get", number()),
    lambda: ("__getitem__", number()), lambda: ("__contains__", number()),
    lambda: ("bisect", number()), lambda: ("bisect_left", number()), lambda: ("index", number()),
    lambda: ("irange", bound(), bound(), flags(), rng.random() < 0.3),
    lambda: ("islice", position(), position()), lambda: ("__reversed__",), lambda: ("copy",),
    lambda: ("__or__", {number(): 5}), lambda: ("__ror__", {number(): 5}),
    lambda: ("__eq__", {}), lambda: ("clear",) if rng.random() < 0.1 else ("__len__",),
]
SET = [
    lambda: ("add", number()), lambda: ("add", number()), lambda: ("add", number()),
    lambda: ("update", numbers(), numbers()), lambda: ("discard", number()),
    lambda: ("remove", number()), lambda: ("pop",), lambda: ("pop", rng.randrange(-3, 9)),
    lambda: ("count", number()), lambda: ("index", number()),
    lambda: ("__getitem__", rng.randrange(-9, 9)), lambda: ("__getitem__", a_slice()),
    lambda: ("__delitem__", rng.randrange(-9, 9)), lambda: ("bisect", number()),
    lambda: ("irange", bound(), bound(), flags(), rng.random() < 0.3),
    lambda: ("islice", position(), position()), lambda: ("copy",),
    lambda: ("union", numbers()), lambda: ("difference", numbers(), numbers()),
    lambda: ("intersection", range(30)), lambda: ("symmetric_difference", numbers()),
    lambda: ("difference_update", numbers()), lambda: ("symmetric_difference_update", numbers()),
    lambda: ("intersection_update", range(50)), lambda: ("isdisjoint", numbers()),
    lambda: ("__or__", set(numbers())), lambda: ("__and__", set(range(20))),
    lambda: ("__sub__", set(numbers())), lambda: ("__xor__", set(numbers())),
    lambda: ("__le__", set(range(60))), lambda: ("__eq__", set(numbers())),
]

for title, make, calls in (
        ("list", lambda: sc.SortedList(numbers()), LIST),
        ("negative", lambda: sc.SortedKeyList(numbers(), key=negative), KEYED),
        ("tens", lambda: sc.SortedListWithKey(numbers(), key=tens), KEYED),
        ("dict", lambda: sc.SortedDict({n: str(n) for n in numbers()}), DICT),
        ("negative dict", lambda: sc.SortedDict(negative, {n: str(n) for n in numbers()}), DICT),
        ("set", lambda: sc.SortedSet(numbers()), SET),
        ("negative set", lambda: sc.SortedSet(numbers(), key=negative), SET)):
    for _ in range(5):
        value = make()
        say(title, show(value))
        for _ in range(100):
            call = rng.choice(calls)()
            result = attempt(lambda: getattr(value, call[0])(*call[1:]))
            say(title, call, result, show(value))

for keyed in (sc.SortedDict({3: "c", 1: "a", 2: "b"}),
              sc.SortedDict(negative, [(3, "c"), (1, "a"), (2, "b")])):
    keys, items, values = keyed.keys(), keyed.items(), keyed.values()
    keyed[5] = "e"
    say(list(keys), list(items), list(values), keys[0], items[0], values[-1], keys[1:], items[:2],
        values[:2], list(reversed(values)), 3 in keys, (1, "a") in items, "z" in values,
        len(keys), sorted(keys & {1, 9}), sorted(keys | {9}), keys.index(2), values.count("a"))
    say(list(copy.copy(keyed).items()), list(copy.deepcopy(sc.SortedDict(keyed)).items()))
say(list(sc.SortedDict.fromkeys([2, 1], 5).items()), list(sc.SortedDict(b=1, a=2).items()))

a, b = sc.SortedList([1, 2, 3]), sc.SortedList([1, 3])
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    say(name, getattr(operator, name)(a, b), getattr(operator, name)(a, [1, 2, 3]),
        attempt(getattr(operator, name), a, 5))
a += [0]
b *= 2
say(a, b, 3 * b, [9] + a, attempt(hash, a), copy.deepcopy(a), attempt(sc.SortedList([1]).add, "x"))
s = sc.SortedSet([1, 2, 3])
s |= {0}
s -= {1}
s &= {0, 2, 5}
s ^= {2, 7}
say(s, attempt(hash, s), attempt(lambda: {7, 8} - s), sc.SortedSet([2, 1], key=negative)[0])
