//! A naive client. It keeps rows as JSON values and applies notifications by the letter of
//! docs/spec/protocol.md 4.6 and 4.7. It fails wherever real clients detect an inconsistency
//! (docs/spec/protocol.md 8.2).

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{ColumnId, ColumnType, Schema, TableSchema, wire};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::Version;

/// A column's value. The order of its elements does not affect comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// As compact JSON; also optional scalars, and maps of at most one pair.
    Whole(Vec<u8>),
    Set(BTreeSet<Vec<u8>>),
    Map(BTreeMap<Vec<u8>, Vec<u8>>),
}

pub(crate) type Row = BTreeMap<String, Cell>;

/// Rows by table and UUID.
pub(crate) type Rows = BTreeMap<(String, String), Row>;

impl Cell {
    pub(crate) fn parse(value: &Value, column_type: &ColumnType) -> Cell {
        if !column_type.is_composite() {
            return Cell::Whole(value.to_bytes());
        }
        let tagged = |tag: &str| {
            let pair = value.as_array()?;
            (pair.first()?.as_str() == Some(tag))
                .then(|| pair[1].as_array())
                .flatten()
        };
        if column_type.is_map() {
            let pairs = tagged("map").expect("map").iter();
            let pair = |pair: &Value| {
                let pair = pair.as_array().expect("pair");
                (pair[0].to_bytes(), pair[1].to_bytes())
            };
            return Cell::Map(pairs.map(pair).collect());
        }
        match tagged("set") {
            Some(elements) => Cell::Set(elements.iter().map(Value::to_bytes).collect()),
            None => Cell::Set([value.to_bytes()].into()),
        }
    }

    /// Applies a difference of docs/spec/protocol.md 4.7.
    fn apply(&mut self, difference: Cell) {
        match (self, difference) {
            (Cell::Whole(own), Cell::Whole(new)) => *own = new,
            (Cell::Set(own), Cell::Set(toggled)) => {
                for element in toggled {
                    if !own.remove(&element) {
                        own.insert(element);
                    }
                }
            }
            (Cell::Map(own), Cell::Map(pairs)) => {
                for (key, value) in pairs {
                    if own.get(&key) == Some(&value) {
                        own.remove(&key);
                    } else {
                        own.insert(key, value);
                    }
                }
            }
            (own, difference) => panic!("{difference:?} is no difference of {own:?}"),
        }
    }
}

/// Applies `<table-updates>` or `<table-updates2>`. `columns` are the monitored ones, by table.
pub(crate) fn apply(
    rows: &mut Rows,
    schema: &Schema,
    version: Version,
    columns: &BTreeMap<String, Vec<String>>,
    updates: &Value,
) {
    for (table, updates) in updates.as_object().expect("tables") {
        let table = table.to_string();
        let id = schema.table_id(&table).expect("known table");
        let updates = updates.as_object().expect("rows");
        assert!(!updates.is_empty(), "a table without rows");
        for (uuid, update) in updates {
            let key = (table.clone(), uuid.to_string());
            match version {
                Version::V1 => apply_rows(rows, schema.table(id), key, update),
                _ => apply_differences(rows, schema.table(id), &columns[&table], key, update),
            }
        }
    }
}

fn apply_rows(rows: &mut Rows, table: &TableSchema, key: (String, String), update: &Value) {
    let part = |name: &str| update.get(name).map(|row| parse_row(table, row));
    match (part("old"), part("new")) {
        (None, Some(new)) => assert!(rows.insert(key, new).is_none(), "insert of a known row"),
        (Some(old), None) => assert_eq!(rows.remove(&key), Some(old), "delete"),
        (Some(old), Some(new)) => {
            assert!(!old.is_empty(), "a modification of nothing");
            let row = rows.get_mut(&key).expect("modification of a known row");
            for (column, cell) in &old {
                assert_eq!(&row[column], cell, "old value of {column}");
                assert_ne!(&new[column], cell, "{column} did not change");
            }
            *row = new;
        }
        (None, None) => panic!("neither old nor new"),
    }
}

fn apply_differences(
    rows: &mut Rows,
    table: &TableSchema,
    columns: &[String],
    key: (String, String),
    update: &Value,
) {
    let update = update.as_object().expect("object");
    assert_eq!(update.len(), 1, "exactly one kind");
    let (kind, value) = update.iter().next().expect("one");
    match kind.to_string().as_str() {
        "initial" | "insert" => {
            let mut row = parse_row(table, value);
            for column in columns {
                let default = default_of(table, column);
                let given = row.entry(column.clone()).or_insert_with(|| default.clone());
                assert!(
                    value.get(column).is_none() || *given != default,
                    "a default is left out"
                );
            }
            assert!(rows.insert(key, row).is_none(), "insert of a known row");
        }
        "modify" => {
            let row = rows.get_mut(&key).expect("modification of a known row");
            let differences = parse_row(table, value);
            assert!(!differences.is_empty(), "a modification of nothing");
            for (column, difference) in differences {
                let cell = row.get_mut(&column).expect("monitored column");
                let before = cell.clone();
                cell.apply(difference);
                assert_ne!(*cell, before, "{column} did not change");
            }
        }
        "delete" => {
            assert_eq!(*value, Value::Null);
            assert!(rows.remove(&key).is_some(), "delete of an unknown row");
        }
        other => panic!("unknown kind {other}"),
    }
}

fn parse_row(table: &TableSchema, row: &Value) -> Row {
    let parse = |(name, value): (&bstr::BString, &Value)| {
        let name = name.to_string();
        let column = table.column_id(&name).expect("known column");
        let cell = Cell::parse(value, &table.column(column).column_type);
        (name, cell)
    };
    row.as_object().expect("row").iter().map(parse).collect()
}

fn default_of(table: &TableSchema, name: &str) -> Cell {
    let column = table.column_id(name).expect("known column");
    let column_type = &table.column(column).column_type;
    datum_cell(&corvid_data::Datum::default_for(column_type), column_type)
}

fn datum_cell(datum: &corvid_data::Datum, column_type: &ColumnType) -> Cell {
    let mut text = Vec::new();
    wire::write_datum(&mut text, datum, column_type.is_map());
    Cell::parse(&Value::parse(&text).expect("datum"), column_type)
}

/// Every row of the tables `Keeper` and `Pet` with all its columns, including `_uuid` and
/// `_version`.
pub(crate) fn content(database: &Database) -> Rows {
    let mut rows = Rows::new();
    let schema = database.schema();
    for (id, table) in schema.iter().filter(|(_, table)| &*table.name != "Ballast") {
        for row in database.rows(id) {
            let mut cells: Row = table
                .iter()
                .map(|(ColumnId(column), schema)| {
                    let datum = &row.columns[usize::from(column)];
                    (
                        schema.name.to_string(),
                        datum_cell(datum, &schema.column_type),
                    )
                })
                .collect();
            for (name, uuid) in [("_uuid", row.uuid), ("_version", row.version)] {
                let text = format!("[\"uuid\",\"{uuid}\"]");
                cells.insert(name.to_owned(), Cell::Whole(text.into_bytes()));
            }
            rows.insert((table.name.to_string(), row.uuid.to_string()), cells);
        }
    }
    rows
}
