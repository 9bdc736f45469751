//! The differences of two schemas, as a conversion from one to the other has them.
//!
//! A function of two schemas. The columns that a conversion loses come first in each table.

use std::fmt;

use corvid_data::{ColumnSchema, Schema, TableSchema};

use super::describe::{indexes, kind, type_in_words};

/// A difference. Displays as a line that begins with `-`, `~` or `+`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// A table that the new schema lacks.
    Table(String),
    /// A column that the new schema lacks.
    Column(String, String),
    /// A column with another type.
    Type {
        table: String,
        column: String,
        old: String,
        new: String,
    },
    /// Another difference, which loses nothing by itself.
    Other(String),
}

impl Loss {
    /// The table whose rows are concerned.
    pub(super) fn table(&self) -> Option<&str> {
        match self {
            Loss::Table(table) | Loss::Column(table, _) | Loss::Type { table, .. } => Some(table),
            Loss::Other(_) => None,
        }
    }

    /// The column that is concerned.
    pub(super) fn column(&self) -> Option<&str> {
        match self {
            Loss::Column(_, column) | Loss::Type { column, .. } => Some(column),
            Loss::Table(_) | Loss::Other(_) => None,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Table(table) => write!(f, "- table {table}, with its rows"),
            Loss::Column(table, column) => write!(f, "- {table}.{column}, with its values"),
            Loss::Type {
                table,
                column,
                old,
                new,
            } => write!(f, "~ {table}.{column}: {old} -> {new}"),
            Loss::Other(text) => f.write_str(text),
        }
    }
}

/// The differences.
pub(super) fn losses(old: &Schema, new: &Schema) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut other = |text: String| losses.push(Loss::Other(text));
    if old.name != new.name {
        other(format!("~ name: {} -> {}", old.name, new.name));
    }
    if old.version != new.version {
        other(format!("~ version: {} -> {}", old.version, new.version));
    }
    for table in old.tables() {
        match new.table_id(&table.name) {
            None => losses.push(Loss::Table(table.name.to_string())),
            Some(id) => in_table(&mut losses, table, new.table(id)),
        }
    }
    for table in new.tables() {
        if old.table_id(&table.name).is_none() {
            losses.push(Loss::Other(format!("+ table {}", table.name)));
        }
    }
    losses
}

fn in_table(losses: &mut Vec<Loss>, old: &TableSchema, new: &TableSchema) {
    let name = &old.name;
    for column in old.columns() {
        let same = new.column_id(&column.name).map(|id| new.column(id));
        match same {
            None => losses.push(Loss::Column(name.to_string(), column.name.to_string())),
            Some(same) => in_column(losses, name, column, same),
        }
    }
    for column in new.columns() {
        if old.column_id(&column.name).is_none() {
            let words = type_in_words(&column.column_type);
            losses.push(Loss::Other(format!("+ {name}.{}: {words}", column.name)));
        }
    }
    let mut differs = |what: &str, old: String, new: String| {
        if old != new {
            let shown = |text: String| {
                if text.is_empty() {
                    "none".to_owned()
                } else {
                    text
                }
            };
            let (old, new) = (shown(old), shown(new));
            losses.push(Loss::Other(format!(
                "~ table {name}, {what}: {old} -> {new}"
            )));
        }
    };
    differs("rows", kind(old), kind(new));
    differs("indexes", indexes(old), indexes(new));
}

fn in_column(losses: &mut Vec<Loss>, table: &str, old: &ColumnSchema, new: &ColumnSchema) {
    let words = |column: &ColumnSchema| type_in_words(&column.column_type);
    if words(old) != words(new) {
        losses.push(Loss::Type {
            table: table.to_owned(),
            column: old.name.to_string(),
            old: words(old),
            new: words(new),
        });
    }
    let mut differs = |old_is: bool, new_is: bool, yes: &str, no: &str| {
        let say = |is| if is { yes } else { no };
        if old_is != new_is {
            let (from, to) = (say(old_is), say(new_is));
            losses.push(Loss::Other(format!(
                "~ {table}.{}: {from} -> {to}",
                old.name
            )));
        }
    };
    differs(old.mutable, new.mutable, "mutable", "not mutable");
    differs(
        old.persistent,
        new.persistent,
        "stored on disk",
        "not stored on disk",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    fn schema(tables: &str) -> Schema {
        let text = format!("{{\"name\":\"D\",\"tables\":{tables}}}");
        Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn what_a_conversion_loses_is_listed() {
        let old = schema(
            r#"{"A":{"columns":{"x":{"type":"string"},"y":{"type":"integer"}}},"B":{"columns":{"x":{"type":"string"}}}}"#,
        );
        let new = schema(
            r#"{"A":{"isRoot":true,"indexes":[["y"]],"columns":{"y":{"type":{"key":"integer","min":0,"max":1}},"z":{"type":"real","mutable":false}}},"C":{"columns":{"x":{"type":"string"}}}}"#,
        );
        let shown: Vec<String> = losses(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "- A.x, with its values",
                "~ A.y: integer -> optional integer",
                "+ A.z: real",
                "~ table A, indexes: none -> y",
                "- table B, with its rows",
                "+ table C",
            ],
            "A is a root table in both: the old schema has no root table, so all are"
        );
        assert_eq!(losses(&old, &old), []);
    }
}
