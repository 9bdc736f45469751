//! The database of clients and servers: its schema, wide and narrow, its first file, the parts that
//! clients replicate, and the changes that they make.

use corvid_data::{Arc, Atom, Datum, Schema, Str};
use corvid_idl::{Class, Column, Idl, IndexColumn, Misuse, RowId};
use corvid_json::Value;

use crate::world::dice::Dice;

/// Name of the index over items, which every class has.
pub(super) const INDEX: &str = "by_n";

pub(super) const LOCK: &str = "L";

/// Columns that only the wide schema has.
const WIDE: [(&str, &str); 3] = [("Item", "opt"), ("Item", "map"), ("Member", "n")];

const SCHEMA: &str = r#"{"name":"A","version":"2.0.0","tables":{
"Head":{"isRoot":true,"maxRows":1,"columns":{"count":{"type":"integer"},
 "txns":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
"Item":{"isRoot":true,"indexes":[["name"]],"columns":{"name":{"type":"string"},"n":{"type":"integer"},
 "opt":{"type":{"key":"integer","min":0,"max":1}},
 "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
 "map":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},
 "big":{"type":{"key":"integer","min":0,"max":"unlimited"}},
 "peer":{"type":{"key":{"type":"uuid","refTable":"Item","refType":"weak"},"min":0,"max":1}}}},
"Group":{"isRoot":true,"columns":{"name":{"type":"string"},
 "members":{"type":{"key":{"type":"uuid","refTable":"Member"},"min":0,"max":"unlimited"}}}},
"Member":{"columns":{"name":{"type":"string"},"n":{"type":"integer"}}}}}"#;

/// Returns the schema as JSON.
pub(super) fn schema_json(is_wide: bool) -> Value {
    let mut json = Value::parse(SCHEMA.as_bytes()).expect("a constant");
    if is_wide {
        return json;
    }
    if let Value::Object(members) = &mut json {
        members.insert("version".into(), Value::String("1.0.0".into()));
        for (table, column) in WIDE {
            let tables = members.get_mut("tables".as_bytes());
            if let Some(Value::Object(tables)) = tables
                && let Some(Value::Object(table)) = tables.get_mut(table.as_bytes())
                && let Some(Value::Object(columns)) = table.get_mut("columns".as_bytes())
            {
                columns.remove(column.as_bytes());
            }
        }
    }
    json
}

fn schema() -> Schema {
    Schema::from_json(&schema_json(true)).expect("a constant")
}

/// Returns a file with the wide or the narrow schema and an empty head.
pub(super) fn first_file(is_wide: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let schema = Schema::from_json(&schema_json(is_wide)).expect("a constant");
    corvid_log::write_schema(&mut file, &schema);
    let body =
        b"{\"_date\":0,\"_is_diff\":true,\"Head\":{\"00000000-0000-4000-8000-000000000001\":{}}}\n";
    corvid_log::header::Header::of(body).write(corvid_log::Magic::Standalone, &mut file);
    file.extend_from_slice(body);
    file
}

/// Draws the part that a client replicates: everything, everything except the large column, or
/// less.
pub(super) fn class(dice: &mut Dice) -> Class {
    let schema = Arc::new(schema());
    let mut class = if dice.chance(70) {
        Class::everything(schema)
    } else {
        let mut class = Class::new(schema);
        let parts = [
            ("Head", "txns"),
            ("Head", "count"),
            ("Item", "name"),
            ("Item", "n"),
            ("Item", "tags"),
            ("Group", "members"),
            ("Member", "name"),
        ];
        for (table, column) in parts {
            let column = class.column(table, column).expect("a constant");
            class.add_column(column);
        }
        class
    };
    // Columns that are not replicated are also read, and must show their defaults.
    class.set_strict(false);
    class.track_all();
    if dice.chance(60) {
        let big = class.column("Item", "big").expect("a constant");
        class.on_demand(big);
    }
    let n = class.column("Item", "n").expect("a constant");
    let name = class.column("Item", "name").expect("a constant");
    let columns = vec![IndexColumn::descending(n), IndexColumn::ascending(name)];
    class.add_index(n.table, INDEX, columns).expect("new");
    class
}

pub(super) fn column(idl: &Idl, table: &str, column: &str) -> Column {
    idl.class().column(table, column).expect("of the schema")
}

/// Returns the rows of a table, in an order that follows from their UUIDs.
pub(super) fn rows(idl: &Idl, table: &str) -> Vec<RowId> {
    let table = idl.class().table(table).expect("of the schema");
    let mut rows: Vec<RowId> = idl.rows(table).collect();
    rows.sort();
    rows
}

pub(super) fn text(text: &str) -> Atom {
    Atom::String(Str::new(text))
}

fn integer(value: i64) -> Datum {
    Datum::one(Atom::Integer(value))
}

/// Marks the open transaction in the head. Returns false if the replica has no head to mark.
pub(super) fn mark(idl: &mut Idl, number: i64) -> Result<bool, Misuse> {
    let Some(head) = rows(idl, "Head").first().copied() else {
        return Ok(false);
    };
    let (txns, count) = (column(idl, "Head", "txns"), column(idl, "Head", "count"));
    idl.add_value(head, txns, Atom::Integer(number))?;
    idl.increment(head, count, false)?;
    Ok(true)
}

/// Makes one change in the open transaction. A refusal by the library is an error, because every
/// change drawn here is valid.
pub(super) fn change(idl: &mut Idl, dice: &mut Dice) -> Result<(), Misuse> {
    let items = rows(idl, "Item");
    let number = dice.between(0, 9);
    let kind = dice.below(12);
    if items.is_empty() || kind == 0 {
        let table = column(idl, "Item", "name").table;
        let row = idl.insert_new(table)?;
        let name = text(&format!("k{}", dice.below(14)));
        idl.write(row, column(idl, "Item", "name"), Datum::one(name))?;
        return idl.write(row, column(idl, "Item", "n"), integer(number));
    }
    let item = *dice.pick(&items);
    let tag = text(["red", "green", "blue"][dice.below(3)]);
    match kind {
        1 => idl.delete(item),
        2 | 3 => {
            let n = column(idl, "Item", "n");
            if dice.chance(30) {
                idl.verify(item, n)?;
            }
            idl.write(item, n, integer(number))
        }
        4 => idl
            .add_value(item, column(idl, "Item", "tags"), tag)
            .map(drop),
        5 => idl
            .remove_value(item, column(idl, "Item", "tags"), tag)
            .map(drop),
        6 if is_held(idl, "Item", "map") => {
            let map = column(idl, "Item", "map");
            idl.set_key(item, map, tag, Atom::Integer(number)).map(drop)
        }
        7 if is_held(idl, "Item", "map") => idl
            .remove_key(item, column(idl, "Item", "map"), tag)
            .map(drop),
        8 if is_held(idl, "Item", "peer") => {
            let peer = Datum::one(Atom::Uuid(dice.pick(&items).uuid));
            idl.write(item, column(idl, "Item", "peer"), peer)
        }
        9 if is_held(idl, "Item", "big") => {
            let values = Datum::one(Atom::Integer(number));
            idl.write(item, column(idl, "Item", "big"), values)
        }
        10 => {
            let (name, members) = (
                column(idl, "Member", "name"),
                column(idl, "Group", "members"),
            );
            let member = idl.insert_new(name.table)?;
            let groups = rows(idl, "Group");
            let group = match groups.len() {
                0..3 => idl.insert_new(members.table)?,
                _ => *dice.pick(&groups),
            };
            idl.write(member, name, Datum::one(tag))?;
            idl.add_value(group, members, Atom::Uuid(member.uuid))
                .map(drop)
        }
        11 => {
            let groups = rows(idl, "Group");
            let members = column(idl, "Group", "members");
            match groups.first() {
                Some(group) if dice.chance(70) => idl.write(*group, members, Datum::empty()),
                Some(group) => idl.delete(*group),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Whether a replica has a column, so that its single elements can be changed.
pub(super) fn is_held(idl: &Idl, table: &str, name: &str) -> bool {
    let column = column(idl, table, name);
    idl.class().mode(column).is_monitored && idl.server_column(column).is_some()
}
