"""The schemas of the plays: the installed ones of the packages, and those that no package of the machine brings.

The Northbound schema gets the columns of newer OVN that commands of ovsdbapp look for, when it lacks them. The schemas
of hardware_vtep and OVN_IC_Northbound are cut to the tables and columns that ovsdbapp works with.
"""

import json

from harness import programs

UNLIMITED = "unlimited"


def atoms(kind, least=0, most=UNLIMITED, **constraints):
    return {"type": {"key": {"type": kind, **constraints}, "min": least, "max": most}}


def pairs(key, value):
    return {"type": {"key": key, "value": value, "min": 0, "max": UNLIMITED}}


def rows(table, least=0, most=UNLIMITED, kind="strong"):
    return {"type": {"key": reference(table, kind), "min": least, "max": most}}


def reference(table, kind="strong"):
    return {"type": "uuid", "refTable": table, "refType": kind}


TEXT = {"type": "string"}
TEXT_PAIRS = pairs("string", "string")


def northbound():
    """The installed Northbound schema with what newer versions added."""
    with open(programs.NB_SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    schema.pop("cksum", None)
    tables = schema["tables"]
    rule = {"priority": atoms("integer", 1, 1, minInteger=0, maxInteger=32767), "match": TEXT, "action": atoms("string", 1, 1, enum=["set", ["mirror", "skip"]])}
    tables.setdefault("Mirror_Rule", {"columns": rule})
    additions = {
        "ACL": {"tier": atoms("integer", 1, 1, minInteger=0, maxInteger=3)},
        "DNS": {"options": TEXT_PAIRS},
        "Logical_Router_Policy": {"chain": atoms("string", 0, 1), "jump_chain": atoms("string", 0, 1)},
        "Mirror": {"mirror_rules": rows("Mirror_Rule")},
    }
    for table, columns in additions.items():
        for name, column in columns.items():
            tables[table]["columns"].setdefault(name, column)
    for table, column, value in (("Mirror", "type", "lport"), ("Logical_Router_Policy", "action", "jump"), ("Mirror", "filter", "both")):
        values = tables[table]["columns"][column]["type"]["key"]["enum"][1]
        if value not in values:
            values.append(value)
    return schema


def macs(locator):
    columns = {"MAC": TEXT, "logical_switch": rows("Logical_Switch", 1, 1), "ipaddr": TEXT}
    return {"isRoot": True, "columns": columns | locator}


def hardware_vtep():
    unicast = {"locator": rows("Physical_Locator", 1, 1)}
    multicast = {"locator_set": rows("Physical_Locator_Set", 1, 1)}
    bindings = {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 4095}, "value": reference("Logical_Switch"), "min": 0, "max": UNLIMITED}}
    tables = {
        "Global": {"isRoot": True, "maxRows": 1, "columns": {"switches": rows("Physical_Switch"), "other_config": TEXT_PAIRS}},
        "Physical_Switch": {
            "columns": {
                "name": TEXT,
                "description": TEXT,
                "ports": rows("Physical_Port"),
                "management_ips": atoms("string"),
                "tunnel_ips": atoms("string"),
                "switch_fault_status": atoms("string"),
                "other_config": TEXT_PAIRS,
            },
            "indexes": [["name"]],
        },
        "Physical_Port": {
            "columns": {"name": TEXT, "description": TEXT, "vlan_bindings": bindings, "vlan_stats": pairs("integer", "string"), "port_fault_status": atoms("string")},
        },
        "Logical_Switch": {
            "isRoot": True,
            "columns": {"name": TEXT, "description": TEXT, "tunnel_key": atoms("integer", 0, 1), "other_config": TEXT_PAIRS},
            "indexes": [["name"]],
        },
        "Physical_Locator": {"columns": {"encapsulation_type": atoms("string", 1, 1, enum=["set", ["vxlan_over_ipv4"]]), "dst_ip": TEXT}, "indexes": [["encapsulation_type", "dst_ip"]]},
        "Physical_Locator_Set": {"columns": {"locators": rows("Physical_Locator", 1)}},
    }
    for side in ("Local", "Remote"):
        tables[f"Ucast_Macs_{side}"] = macs(unicast)
        tables[f"Mcast_Macs_{side}"] = macs(multicast)
    # A locator may exist before the row that refers to it, so that plays can name it.
    tables["Physical_Locator"]["isRoot"] = True
    return {"name": "hardware_vtep", "version": "1.7.0", "tables": tables}


def interconnection():
    switch = {"isRoot": True, "columns": {"name": TEXT, "other_config": TEXT_PAIRS, "external_ids": TEXT_PAIRS}, "indexes": [["name"]]}
    return {"name": "OVN_IC_Northbound", "version": "1.0.0", "tables": {"Transit_Switch": switch}}


def types():
    """A database of our own: a column of every type, for conditions, conversions and changes of tables at run time."""
    columns = {"name": TEXT}
    for kind in ("integer", "real", "boolean", "string", "uuid"):
        # A row has an attribute `uuid` of its own.
        columns |= {"ident" if kind == "uuid" else kind: atoms(kind, 1, 1), f"maybe_{kind}": atoms(kind, 0, 1), f"set_{kind}": atoms(kind), f"map_{kind}": pairs("string", kind), f"map_of_{kind}": pairs(kind, "string")}
    columns |= {"small": atoms("integer", 0, 3, minInteger=1, maxInteger=9), "choice": atoms("string", 1, 1, enum=["set", ["red", "green"]])}
    columns |= {"child": rows("Child", 0, 1), "children": rows("Child"), "friends": rows("Everything", kind="weak"), "named": {"type": {"key": "string", "value": reference("Child"), "min": 0, "max": UNLIMITED}}}
    columns |= {"fixed": {"type": "string", "mutable": False}}
    tables = {
        "Everything": {"isRoot": True, "columns": columns, "indexes": [["name"]]},
        "Child": {"columns": {"name": TEXT, "count": {"type": "integer"}}},
        "Single": {"isRoot": True, "maxRows": 1, "columns": {"count": {"type": "integer"}, "notes": TEXT_PAIRS}},
        "Pair": {"isRoot": True, "columns": {"left": TEXT, "right": {"type": "integer"}, "note": TEXT}, "indexes": [["left", "right"]]},
        "Late": {"isRoot": True, "columns": {"name": TEXT, "count": {"type": "integer"}}, "indexes": [["name"]]},
    }
    return {"name": "Types", "version": "1.0.0", "tables": tables}


def all_schemas():
    """{file name: schema} of the databases that a server of the plays serves."""
    made = {"nb": northbound(), "vtep": hardware_vtep(), "ic": interconnection(), "types": types()}
    for name, path in (("conf", programs.VSWITCH_SCHEMA), ("sb", programs.SB_SCHEMA)):
        with open(path, encoding="utf-8") as file:
            made[name] = json.load(file)
    return made
