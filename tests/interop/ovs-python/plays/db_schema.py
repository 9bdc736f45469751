"""Schemas: whole ones with every attribute, and thousands with faults, with the exact errors.

Paths of further schema files may be given as arguments.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import copy
import json as json_module

import ovs.db.schema as schema
import ovs.db.types as types
from transcript import attempt, generator, say, text

rng = generator("db_schema")

COLUMN_TYPES = ["integer", "string", "uuid", {"key": "string", "min": 0},
                {"key": "string", "value": "string", "min": 0, "max": "unlimited"},
                {"key": {"type": "uuid", "refTable": "Bridge"}, "min": 0, "max": "unlimited"},
                {"key": {"type": "uuid", "refTable": "Port"}},
                {"key": {"type": "uuid", "refTable": "Port", "refType": "weak"}, "min": 0},
                {"key": "integer", "value": {"type": "uuid", "refTable": "Queue"}, "min": 0},
                {"key": "integer", "value": {"type": "uuid", "refTable": "Queue",
                                             "refType": "weak"}, "min": 0, "max": 9},
                {"key": {"type": "integer", "minInteger": 0, "maxInteger": 4095}},
                {"key": {"type": "string", "enum": ["set", ["b", "a"]]}}]


def describe_column(column):
    return "%s mutable=%s persistent=%s unique=%s type=%s extensions=%s" % (
        ascii(column.name), column.mutable, column.persistent, column.unique,
        ascii(column.type.to_json()), text(column.extensions))


def describe_table(table):
    return "%s mutable=%s max_rows=%s is_root=%s indexes=%s extensions=%s columns=%s" % (
        ascii(table.name), table.mutable, table.max_rows, table.is_root,
        [[c.name for c in index] for index in table.indexes], text(table.extensions),
        [describe_column(c) for c in table.columns.values()])


def describe(db):
    lines = ["%s version=%s" % (ascii(db.name), text(db.version))]
    for table in db.tables.values():
        lines.append(describe_table(table))
        for column in table.columns.values():
            for base in (column.type.key, column.type.value):
                if base is not None and base.ref_table_name:
                    lines.append("%s.%s refers to %s: %s" % (
                        table.name, column.name, base.ref_table.name,
                        base.ref_table is db.tables[base.ref_table_name]))
    return "\n    ".join(lines)


def some_column():
    json = {"type": rng.choice(COLUMN_TYPES)}
    if rng.random() < 0.15:
        json["mutable"] = rng.choice([True, False])
    if rng.random() < 0.15:
        json["ephemeral"] = rng.choice([True, False])
    if rng.random() < 0.1:
        json["extensions"] = {"x": [1]}
    return json


def some_table():
    names = rng.sample(["name", "ports", "tag", "other_config", "qos"], rng.randrange(1, 5))
    json = {"columns": {name: some_column() for name in names}}
    if rng.random() < 0.4:
        json["isRoot"] = rng.choice([True, True, False])
    if rng.random() < 0.3:
        json["maxRows"] = rng.choice([1, 2, 1000, 2.0, 2 ** 40])
    if rng.random() < 0.2:
        json["mutable"] = rng.choice([True, False])
    if rng.random() < 0.4:
        json["indexes"] = [rng.sample(names, rng.randrange(1, len(names) + 1))
                           for i in range(rng.randrange(3))]
    if rng.random() < 0.1:
        json["extensions"] = {"documentation": "text"}
    return json


def some_schema():
    tables = ["Bridge", "Port", "Queue"]
    if rng.random() < 0.05:
        tables.pop()
    json = {"name": "Open_vSwitch", "tables": {name: some_table() for name in tables}}
    if rng.random() < 0.7:
        json["version"] = rng.choice(["1.2.3", "0.0.0", "10.20.30"])
    if rng.random() < 0.3:
        json["cksum"] = "1 2"
    if rng.random() < 0.3:
        json["idlPrefix"] = "p_"
        json["idlHeader"] = "<header.h>"
        if rng.random() < 0.5:
            json["cDecls"] = "int c;"
            json["hDecls"] = "int h;"
    if rng.random() < 0.05:
        json["extensions"] = {}
    return json


FAULTS = [None, 5, 1.5, -1, 0, "x", "_x", "1x", "a-b", "1.2", "1.2.3x", "", True, [], ["a"],
          [["name"]], [[]], [["name", "name"]], [["nothing"]], ["name"], [[5]], {}, {"a": 1},
          {"type": "integer"}, {"columns": {"name": {"type": "integer"}}},
          {"key": {"type": "uuid", "refTable": "Nowhere"}},
          {"key": "string", "value": {"type": "uuid", "refTable": "Nowhere"}}]


def spoil(json):
    """Changes one place of a schema at random."""
    place = json
    while True:
        if not isinstance(place, dict) or not place:
            return
        name = rng.choice(list(place))
        inner = place[name]
        if isinstance(inner, dict) and inner and rng.random() < 0.8:
            place = inner
            continue
        dice = rng.random()
        if dice < 0.5:
            place[name] = copy.deepcopy(rng.choice(FAULTS))
        elif dice < 0.7:
            del place[name]
        elif dice < 0.85:
            place[rng.choice(["foo", "_foo", "1foo", "f-o"])] = inner
        else:
            place[rng.choice(["mutable", "maxRows", "isRoot", "indexes", "version", "name", "type",
                              "ephemeral"])] = copy.deepcopy(rng.choice(FAULTS))
        return


def is_unfair(json):
    """Returns whether `json` has a place where ours differs from the original on purpose."""
    tables = json.get("tables") if isinstance(json, dict) else None
    for table in tables.values() if isinstance(tables, dict) else ():
        indexes = table.get("indexes") if isinstance(table, dict) else None
        if isinstance(indexes, list) and None in indexes:
            return True
    return False


folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "schemas")
for file in sorted(os.listdir(folder)) + sys.argv[1:]:
    if file.endswith(".ovsschema"):
        with open(os.path.join(folder, file)) as f:
            db = schema.DbSchema.from_json(json_module.load(f))
        say("file", file, describe(db))
        say("    json", ascii(db.to_json()), describe(db.copy()) == describe(db))
        for table in db.tables.values():
            for column in table.columns.values():
                say("   ", column.name, ascii(column.type.toEnglish()),
                    ascii(column.type.constraintsToEnglish()))

for case in range(3000):
    json = some_schema()
    if case % 3:
        spoil(json)
    if is_unfair(json):
        continue
    for parse in ((lambda: schema.DbSchema.from_json(copy.deepcopy(json))),
                  (lambda: schema.DbSchema.from_json(copy.deepcopy(json), True)),
                  (lambda: schema.IdlSchema.from_json(copy.deepcopy(json)))):
        result = attempt(parse)
        if "other member" in result:
            result = "members in excess"
        say("schema", case, result)
        try:
            db = parse()
        except Exception:
            continue
        say("   ", describe(db))
        say("    json", ascii(db.to_json()))
        if isinstance(db, schema.IdlSchema):
            say("    idl", text([db.idlPrefix, db.idlHeader, db.cDecls, db.hDecls]))
        elif not any(c.extensions for t in db.tables.values() for c in t.columns.values()):
            again = db.copy()
            say("    copy", describe(again) == describe(db), again.to_json() == db.to_json(),
                again is db, again.tables is db.tables)
        for table in db.tables.values():
            say("    table", ascii(table.to_json()), ascii(table.to_json(True)))
            for column in table.columns.values():
                say("       ", ascii(column.to_json()))

for case in range(1500):
    json = some_table()
    if case % 2:
        spoil(json)
    if is_unfair({"tables": {"T": json}}):
        continue
    for extensions in (False, True):
        result = attempt(lambda: schema.TableSchema.from_json(json, "T", extensions).to_json())
        say("table", ascii(json), "members in excess" if "other member" in result else result)
    for name, column in (json.get("columns") or {}).items() if isinstance(
            json.get("columns"), dict) else ():
        result = attempt(lambda: describe_column(schema.ColumnSchema.from_json(column, name)))
        say("column", ascii(column), "members in excess" if "other member" in result else result)

column = schema.ColumnSchema("c", True, False, types.Type.from_json("integer"))
table = schema.TableSchema("T", {"c": column})
say("made", describe_table(table), describe_column(column), ascii(table.to_json()))
db = schema.DbSchema("D", "1.2.3", {"T": table})
say("made", describe(db), ascii(db.to_json()))
columns = {"a": 1, "b": 2, "c": 3}
for json in ([], ["a"], ["c", "a"], ["a", "a"], ["d"], [5], "a", 5, {}, [None], ("a",)):
    say("columns", text(json), attempt(schema.column_set_from_json, json, columns))
