"""Types of columns: JSON of all kinds, valid and invalid, printed again and in English."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import ovs.db.data as data
import ovs.db.types as types
from transcript import attempt, generator, say, text

rng = generator("db_types")

PREDICATES = ("is_valid", "is_scalar", "is_optional", "is_composite", "is_set", "is_map",
              "is_smap", "is_optional_pointer")
NAMES = ["integer", "real", "boolean", "string", "uuid"]

for atomic in types.ATOMIC_TYPES:
    say("atomic", text(atomic), attempt(atomic.to_json), attempt(atomic.to_string),
        text(atomic.name), text(atomic.default), len(atomic.python_types))
for name in NAMES + ["void", "", "Integer", None, 5, ["integer"]]:
    say("named", text(name), attempt(types.AtomicType.from_json, name),
        attempt(types.AtomicType.from_string, name))
say("identity", types.AtomicType.from_json("uuid") is types.UuidType,
    types.BaseType.from_json("string").type is types.StringType,
    [t.name for t in types.ATOMIC_TYPES],
    types.Type.DEFAULT_MIN, types.Type.DEFAULT_MAX, types.REAL_PYTHON_TYPES == (int, float))
for x in (0, 7, 999, 1000, 12345, 999999, 1000000, -1, -999, -1000, -1234567, 2 ** 63):
    say("commas", types.commafy(x))
for s in ("", "plain", 'q"b\\', "\a\b\f\n\r\t\v\x00\x01\x1f\x7f", "\u00e9?'"):
    say("escape", ascii(types.escapeCString(s)), ascii(data.escapeCString(s)),
        ascii(types.returnUnchanged(s)), ascii(data.returnUnchanged(s)))


def some_bound():
    return rng.choice([0, 1, 2, 5, -5, 1000, 123456, 0.5, 1.5, 2.0, 1e20, "x", None, []])


def some_atom(name):
    if rng.random() < 0.1:
        # Never a boolean for a number, which the original accepts.
        name = rng.choice(["real", "string", "uuid"])
    return {"integer": lambda: rng.choice([0, 1, 2, 3, -4, 5.0, 1234567]),
            "real": lambda: rng.choice([0.5, 1, 2, 2.5, 1e20, 123456789.125]),
            "boolean": lambda: rng.choice([True, False]),
            "string": lambda: rng.choice(["a", "b", "c d", "true", "", "x-y", "\u00e9"]),
            "uuid": lambda: ["uuid", "%08x-0000-0000-0000-000000000000" % rng.randrange(4)],
            }[name]()


def some_base():
    name = rng.choice(NAMES)
    dice = rng.random()
    if dice < 0.2:
        return name
    if dice < 0.23:
        return rng.choice(["void", "", 5, None, [], {}, {"type": 5}, {"type": "void"}])
    json = {"type": name}
    dice = rng.random()
    if dice < 0.2:
        atoms = [some_atom(name) for i in range(rng.randrange(6))]
        json["enum"] = rng.choice([["set", atoms], ["set", atoms], some_atom(name)])
    elif name in ("integer", "real"):
        suffix = {"integer": "Integer", "real": "Real"}[name if rng.random() < 0.95 else "real"]
        for member in rng.sample(["min", "max"], rng.randrange(3)):
            json[member + suffix] = some_bound()
    elif name == "string":
        for member in rng.sample(["minLength", "maxLength"], rng.randrange(3)):
            json[member] = some_bound()
    elif name == "uuid" and rng.random() < 0.8:
        json["refTable"] = rng.choice(["Bridge", "Port", "QoS", "Ports", "Chassis", "HA_Chassis",
                                        "Policy", "_T", "1T", "", 5, None])
        if rng.random() < 0.5:
            json["refType"] = rng.choice(["strong", "weak", "weak", "other", 5])
    if rng.random() < 0.05:
        json[rng.choice(["foo", "minReal", "refType", "maxLength", "enum"])] = rng.choice(
            [1, "a", None])
    return json


def some_type():
    dice = rng.random()
    if dice < 0.1:
        return rng.choice(NAMES + ["void", 5, None, [], {}, True])
    json = {"key": some_base()}
    if rng.random() < 0.4:
        json["value"] = some_base()
    if rng.random() < 0.6:
        json["min"] = rng.choice([0, 0, 0, 1, 1, 2, -1, 1.0, 0.5, "unlimited", None])
    if rng.random() < 0.7:
        json["max"] = rng.choice(["unlimited", "unlimited", 1, 2, 3, 4096, 1234567, 0, -1, "x",
                                  2.0, 1.5, 2 ** 40, 2 ** 70, None])
    if rng.random() < 0.03:
        json["foo"] = 1
    return json


def literal(s):
    return "'" + s + "'"


def number(s):
    return "#" + s


seen = []
for case in range(4000):
    json = some_type()
    result = attempt(types.Type.from_json, json)
    if "other member" in result:
        result = "members in excess"
    say("type", ascii(json), result)
    try:
        type_ = types.Type.from_json(json)
    except Exception:
        continue
    say("   json", ascii(type_.to_json()),
        attempt(lambda: types.Type.from_json(type_.to_json()) == type_))
    say("   is", *[name for name in PREDICATES if getattr(type_, name)()])
    say("   english", ascii(type_.toEnglish()), ascii(type_.toEnglish(literal)))
    for base in (type_.key, type_.value):
        if base is None:
            continue
        say("   base", base.has_constraints(), base.is_valid(), base.is_ref(),
            base.is_strong_ref(), base.is_weak_ref(), attempt(base.without_constraints),
            ascii(base.toEnglish()), ascii(base.to_json()))
        if base.enum is None or base.type is not types.UuidType:
            # The original has no English for allowed UUIDs.
            say("   constraints", ascii(base.constraintsToEnglish()),
                ascii(base.constraintsToEnglish(literal, number)))
        if base.enum is not None:
            say("   copy", base.copy() == base, base.copy() is base)
    if type_.key.enum is None and (type_.value is None or type_.value.enum is None):
        say("   constraints", ascii(type_.constraintsToEnglish(literal, number)))
    seen.append(type_)
    other = rng.choice(seen)
    say("   equal", type_ == other, type_ != other, type_.key == other.key, type_.key != other.key,
        type_ == 5, type_.key == 5, type_ != 5, type_.key != 5)

for name in NAMES:
    say("enum type", text(types.BaseType.get_enum_type(types.AtomicType.from_string(name))))
I, S, U = types.IntegerType, types.StringType, types.UuidType
for base in (types.BaseType(I), types.BaseType(I, min=5, max=3), types.BaseType(I, min=3),
             types.BaseType(S, min_length=5, max_length=3), types.BaseType(S, None, 1, 2, 3, 4),
             types.BaseType(U, ref_table_name="T"), types.BaseType(types.VoidType)):
    say("made", text(base), base.is_valid(), base.has_constraints(), base.is_ref(),
        ascii(base.to_json()), attempt(types.Type(base).is_valid),
        attempt(types.Type(types.BaseType(I), base).is_valid),
        attempt(types.Type(base, None, 0, 0).is_valid), attempt(types.Type(base, None, 2, 3).is_valid))
say("refused", attempt(types.BaseType, "integer"), attempt(hash, types.BaseType(I)),
    attempt(hash, types.Type(types.BaseType(I))))
