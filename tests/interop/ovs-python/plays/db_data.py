"""Atoms and datums: JSON and Python values right and wrong, constraints, diffs, order, text.

Cases in which ours differs from the original on purpose do not occur here: booleans for numbers,
infinities, default scalars, order of datums, texts of large integer bounds, maps and sets confused by `from_python`.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import operator
import uuid

import ovs.db.data as data
import ovs.db.types as types
from transcript import attempt, generator, say, text

rng = generator("db_data")

Atom = data.Atom
Datum = data.Datum
NAMES = ["integer", "real", "boolean", "string", "uuid"]
OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
STRINGS = ["", "a", "b", "ab", "abc", "true", "truely", "false", "True", "a b", "a-b.c_d", "x9",
           "_", "-", "9", "1.5", 'q"x', "back\\slash", "tab\there", "nl\n", "\u00e9", "\u65e5\u672c",
           "\U0001f600", "\x00", "\x7f", "/", "00000000-0000-0000-0000-000000000001"]
NUMBERS = [0, 1, 2, 3, -1, -5, 10, 1000, 123456789, 2 ** 53, -2 ** 53, 2 ** 63 - 1, -2 ** 63]
REALS = [0.5, 1.5, 2.0, -0.25, 0.1 + 0.2, 1e-7, 1e15, 1e16, 1e20, 1e300, 123456789.123456789,
         2.0 ** 53, -2.0 ** 53, 2.0 ** 53 - 1]


def some_uuid():
    return uuid.UUID(int=rng.randrange(5) << rng.choice([0, 64, 124]))


def some_value(name):
    """Returns a Python value of atomic type `name`."""
    return {"integer": lambda: rng.choice(NUMBERS),
            "real": lambda: rng.choice(NUMBERS + REALS * 2),
            "boolean": lambda: rng.choice([True, False]),
            "string": lambda: rng.choice(STRINGS),
            "uuid": some_uuid}[name]()


def some_json(name):
    value = some_value(name)
    return ["uuid", str(value)] if name == "uuid" else value


def wrong_json(name):
    value = rng.choice([None, "a", 1, 1.5, [], {}, ["a"], ["uuid", "x"], ["uuid", 5], ["uuid"],
                        ["named-uuid", "x"], ["named-uuid", 1], ["set", []], ["map", []],
                        ["set", [1]], ["uuid", "0-0"], ["uuid", str(some_uuid()), 1],
                        ["uuid", str(some_uuid()).upper()], ["uuid", "{%s}" % some_uuid()]])
    return value


def some_base(name, constrained=True):
    json = {"type": name}
    dice = rng.random()
    if not constrained or dice < 0.4:
        return types.BaseType.from_json(json)
    if dice < 0.55:
        wanted = [some_json(name) for i in range(rng.randrange(1, 5))]
        json["enum"] = ["set", [x for i, x in enumerate(wanted) if x not in wanted[:i]]]
    elif name in ("integer", "real"):
        bounds = sorted([some_value(name), some_value(name)])
        if name == "integer":
            # The original rounds larger bounds in its messages.
            bounds = sorted(rng.sample(NUMBERS[:9], 2))
        suffix = "Integer" if name == "integer" else "Real"
        for member, bound in zip(("min", "max"), bounds):
            if rng.random() < 0.7:
                json[member + suffix] = bound
    elif name == "string":
        bounds = sorted([rng.randrange(4), rng.randrange(4)])
        for member, bound in zip(("minLength", "maxLength"), bounds):
            if rng.random() < 0.7:
                json[member] = bound
    elif name == "uuid" and rng.random() < 0.7:
        json["refTable"] = "T"
        json["refType"] = rng.choice(["strong", "weak"])
    try:
        return types.BaseType.from_json(json)
    except Exception:
        # Two spellings of one number.
        return types.BaseType.from_json(name)


def some_type(constrained=True):
    key = some_base(rng.choice(NAMES), constrained)
    value = some_base(rng.choice(NAMES), constrained) if rng.random() < 0.4 else None
    n_min = rng.randrange(2)
    n_max = rng.choice([1, 1, 1, 2, 3, 1000, 2 ** 63 - 1])
    return types.Type(key, value, n_min, n_max)


def some_datum_json(type_):
    def element(base):
        return some_json(base.type.name) if rng.random() < 0.97 else wrong_json(base.type.name)

    dice = rng.random()
    n = rng.choice([0, 1, 1, 1, 2, 2, 3, 4, 6])
    if dice < 0.04:
        return rng.choice([wrong_json("any"), ["set", 5], ["map", 5], ["set"], ["map"],
                           ["set", [], 1], ["map", {}], ["map", [[]]], ["map", [1]],
                           ["map", [[1, 2, 3]]], ["set", [None]]])
    if type_.value is not None:
        return ["map", [[element(type_.key), element(type_.value)] for i in range(n)]]
    if n == 1 and rng.random() < 0.7:
        return element(type_.key)
    return ["set", [element(type_.key) for i in range(n)]]


def is_number_from_boolean(type_, json):
    """Returns whether `json` has a boolean where a number is expected."""
    def bad(base, x):
        return isinstance(x, bool) and base.type.name in ("integer", "real")

    try:
        return bad(type_.key, json) or any(
            bad(type_.key, x) or (isinstance(x, list) and (bad(type_.key, x[0])
                                                          or bad(type_.value, x[1])))
            for x in json[1])
    except Exception:
        return False


say("--- atoms")
for name in NAMES:
    base = types.BaseType.from_json(name)
    values = {"integer": NUMBERS, "real": NUMBERS + REALS, "boolean": [True, False],
              "string": STRINGS, "uuid": [uuid.UUID(int=i) for i in (0, 1, 2, 1 << 127)]}[name]
    atoms = [Atom(base.type, value) for value in values]
    for atom, value in zip(atoms, values):
        say(text(atom), ascii(atom.to_string()), text(atom.to_json()),
            attempt(Atom.from_json, base, atom.to_json()), attempt(Atom.from_python, base, value),
            hash(atom) == hash(value), atom == Atom(base.type, value), atom != Atom(base.type, value))
        if name != "uuid":
            say("   english", ascii(atom.toEnglish()), ascii(atom.toEnglish(lambda s: "<%s>" % s)))
    for a in atoms:
        say("   order", "".join("FT"[op(a, b)] for b in atoms for op in OPERATORS))
    for other in (Atom(types.VoidType, 5), 1, "a", None):
        say("   other", *[attempt(op, atoms[1], other) for op in OPERATORS])
    say("   sorted", *[ascii(a.to_string()) for a in sorted(atoms)])
    for json in [wrong_json(name) for i in range(30)]:
        say("   wrong", ascii(json), attempt(Atom.from_json, base, json))
    for value in [None, "a", 1, 1.0, 1.5, [], {}, (), b"a", uuid.UUID(int=3), Atom]:
        say("   python", text(value), attempt(Atom.from_python, base, value))
for x in (0, 5, -1, 1.0, 2.5, "", "x", "5"):
    say("new", text(x), attempt(Atom.new, x), attempt(Atom.new(x).to_json))
symtab = {"known": uuid.UUID(int=9)}
base = types.BaseType.from_json("uuid")
say("named", attempt(Atom.from_json, base, ["named-uuid", "known"], symtab),
    attempt(Atom.from_json, base, ["named-uuid", "known"]),
    attempt(Atom.from_json, base, ["named-uuid", 5], symtab),
    Atom.from_json(base, ["named-uuid", "new"], symtab).value == symtab["new"], len(symtab))

say("--- constraints")
for case in range(2500):
    base = some_base(rng.choice(NAMES))
    value = some_value(base.type.name)
    json = ["uuid", str(value)] if isinstance(value, uuid.UUID) else value
    say("constraint", ascii(base.to_json()), text(value),
        attempt(Atom(base.type, value).check_constraints, base), attempt(Atom.from_json, base, json),
        attempt(Atom.from_python, base, value))

say("--- datums from JSON")
pool = {}
for case in range(5000):
    type_ = some_type()
    json = some_datum_json(type_)
    if is_number_from_boolean(type_, json):
        continue
    say("datum", ascii(type_.to_json()), ascii(json), attempt(Datum.from_json, type_, json))
    try:
        datum = Datum.from_json(type_, json)
    except Exception:
        continue
    say("   ", ascii(datum.to_json()), ascii(datum.to_string()), ascii(str(datum)),
        text(datum.as_list()), text(datum.as_dict()), text(datum.as_scalar()),
        datum.conforms_to_type(), attempt(datum.check_constraints))
    say("   python", text(datum.to_python(lambda value, base: (base.type.name, value))))
    dropped = set(v for i, v in enumerate(datum.values) if i % 2)
    dropped = set(v.value for v in dropped)
    if not type_.is_scalar():
        say("   dangling", text(datum.to_python(
            lambda value, base: None if value in dropped else value)))
        if type_.n_min == 0:
            say("   default", datum.is_default(), datum == Datum.default(type_))
    copy = datum.copy()
    say("   copy", copy == datum, copy is datum, copy.values is datum.values, copy.type is type_)
    key = (type_.key.type.name, type_.value is None)
    pool.setdefault(key, []).append(datum)
    other = rng.choice(pool[key])
    say("   equal", datum == other, datum != other, datum == 5, datum != 5)
    say("   contains", *[k in datum for k in list(other.values)[:3]])
    if type_.value is not None:
        keys = [k for k in other.values if k.type not in (types.UuidType, types.BooleanType)]
        for k in keys[:3]:
            say("   member", attempt(datum.__getitem__, k), attempt(datum.__getitem__, k.value),
                attempt(datum.get, k, "none"), attempt(datum.get, k.value))

say("--- diffs")
for case in range(3000):
    type_ = some_type(False)
    try:
        a = Datum.from_json(type_, some_datum_json(type_))
        wide = types.Type(type_.key, type_.value, 0, 2 ** 63 - 1)
        b = Datum.from_json(type_ if type_.n_max == 1 else wide, some_datum_json(wide))
    except Exception:
        continue
    if any(isinstance(atom.value, bool) and atom.type is not types.BooleanType
           for d in (a, b) for atom in list(d.values) + list(d.values.values()) if atom):
        continue
    before = text(a)
    result = a.diff(b)
    say("diff", ascii(type_.to_json()), before, text(b), text(result), result.type is type_,
        result.conforms_to_type(), attempt(result.to_string))

say("--- datums from Python")


class Row(object):
    def __init__(self, uuid):
        self.uuid = uuid


def row_to_uuid(value):
    return value.uuid if isinstance(value, Row) else value


def some_python(base):
    dice = rng.random()
    if dice < 0.05:
        return rng.choice([None, "a", 1.5, 7, b"x", [1], (), uuid.UUID(int=1)])
    value = some_value(base.type.name)
    if isinstance(value, uuid.UUID) and dice < 0.6:
        return Row(value)
    if base.type is types.IntegerType and abs(value) < 2 ** 50 and dice < 0.3:
        return float(value)
    return value


for case in range(4000):
    type_ = some_type()
    n = rng.choice([0, 1, 1, 1, 2, 3])
    if type_.value is not None:
        try:
            value = {some_python(type_.key): some_python(type_.value) for i in range(n)}
        except TypeError:
            continue
    else:
        value = [some_python(type_.key) for i in range(n)]
        if n == 1 and rng.random() < 0.5:
            value = value[0]
        elif rng.random() < 0.3:
            value = tuple(value)
    say("python", ascii(type_.to_json()), text(value),
        attempt(Datum.from_python, type_, value, row_to_uuid))
    if isinstance(value, list) and n < 2:
        try:
            say("   set", attempt(Datum.from_python, type_, set(value), row_to_uuid))
        except TypeError:
            pass
for value in ([], (), set(), {}):
    for type_ in (types.Type.from_json("integer"), types.Type.from_json({"key": "string", "min": 0}),
                  types.Type.from_json({"key": "string", "value": "string", "min": 0})):
        say("empty", text(type_), attempt(Datum.from_python, type_, value, row_to_uuid))
violation = data.ConstraintViolation("some text", [1])
say("violation", text(violation.msg), text(violation.json), text(violation.tag), str(violation))
say("hash", attempt(hash, Datum(types.Type.from_json("integer"))))
