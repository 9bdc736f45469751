//! Whether a source's schema fits into this server's (docs/spec/distribution.md 3.3): every table
//! must exist here, and every column with the same definition. This server's schema may have more.

use std::fmt::{self, Display, Formatter};

use corvid_data::Schema;

/// A table or column of the source's schema that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// This server has no such table.
    Table(String),
    /// This server's table has no such column.
    NoColumn {
        /// The column's table.
        table: String,
        /// The column's name.
        column: String,
    },
    /// This server's column has another definition.
    OtherColumn {
        /// The column's table.
        table: String,
        /// The column's name.
        column: String,
    },
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Table(table) => write!(f, "Table {table} not present in the local db schema"),
            Mismatch::NoColumn { table, column } => write!(
                f,
                "Column {column} not present in the local db schema table {table}."
            ),
            Mismatch::OtherColumn { table, column } => {
                write!(
                    f,
                    "Column {column} mismatch in local db schema table {table}."
                )
            }
        }
    }
}

/// All tables and columns of `source` that do not fit into `local`.
#[must_use]
pub fn mismatches(local: &Schema, source: &Schema) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for theirs in source.tables() {
        let table = theirs.name.to_string();
        let Some(ours) = local.table_id(&table).map(|id| local.table(id)) else {
            found.push(Mismatch::Table(table));
            continue;
        };
        for column in theirs.columns() {
            let name = column.name.to_string();
            let table = table.clone();
            match ours.column_id(&name).map(|id| ours.column(id)) {
                None => found.push(Mismatch::NoColumn {
                    table,
                    column: name,
                }),
                // Compared as text: referenced tables have other numbers if this server has more
                // tables.
                Some(own) if own.to_json() != column.to_json() => {
                    found.push(Mismatch::OtherColumn {
                        table,
                        column: name,
                    });
                }
                Some(_) => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    fn schema(tables: &str) -> Schema {
        let text = format!(r#"{{"name":"D","tables":{tables}}}"#);
        Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_local_schema_may_have_more_tables_and_columns_and_no_other_difference() {
        let reference = r#"{"key":{"type":"uuid","refTable":"T"},"min":0}"#;
        let small = format!(
            r#"{{"T":{{"columns":{{"n":{{"type":"integer"}},"r":{{"type":{reference}}}}}}}}}"#
        );
        let large = format!(
            r#"{{"A":{{"columns":{{"x":{{"type":"string"}}}}}},
               "T":{{"maxRows":3,"columns":{{"m":{{"type":"real"}},"n":{{"type":"integer"}},"r":{{"type":{reference}}}}}}}}}"#
        );
        let (small, large) = (schema(&small), schema(&large));
        assert_eq!(mismatches(&large, &small), []);
        let missing: Vec<String> = mismatches(&small, &large)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            missing,
            [
                "Table A not present in the local db schema",
                "Column m not present in the local db schema table T."
            ]
        );
        let other = schema(r#"{"T":{"columns":{"n":{"type":"integer","ephemeral":true}}}}"#);
        assert_eq!(
            mismatches(&large, &other)[0].to_string(),
            "Column n mismatch in local db schema table T."
        );
    }
}
