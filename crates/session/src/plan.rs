//! The tables and columns that a client monitors: its interest, and the part of it that a server's
//! schema has (docs/spec/idl.md 1.8).
//!
//! Invariant: a plan names only tables and columns of its schema, so a server never refuses a
//! monitor request because of a missing table or column.

use std::fmt::{self, Display, Formatter};

use corvid_data::{Arc, ColumnId, ColumnType, Schema, Str, TableId, TableSchema};
use corvid_json::{ArrayWriter, ObjectWriter, write};

use crate::conditions::Conditions;
use crate::log_message::LogMessage;

/// The tables and columns of a database that a client wants.
#[derive(Debug, Clone)]
pub enum Interest {
    /// All tables and columns that the server has, as for a relay.
    All,
    /// These tables.
    Tables(Vec<TableInterest>),
}

/// One table of an [`Interest`].
#[derive(Debug, Clone)]
pub struct TableInterest {
    /// The table's name.
    pub name: Str,
    /// Names of the columns. Without any, only insertions and deletions of rows are reported.
    pub columns: Vec<Str>,
}

/// A part of an [`Interest`] that a server's schema lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Name of the table.
    pub table: Str,
    /// Name of the column; `None` if the whole table is missing.
    pub column: Option<Str>,
}

impl Display for Missing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column {column} of table {}", self.table),
            None => write!(f, "table {}", self.table),
        }
    }
}

/// The monitored part of a server's database: tables and columns by their positions in its schema.
#[derive(Debug)]
pub struct Plan {
    schema: Arc<Schema>,
    /// The monitored columns of each table of the schema, in order; `None` if the table is not
    /// monitored.
    tables: Vec<Option<Box<[ColumnId]>>>,
    missing: Vec<Missing>,
}

impl Plan {
    /// The part of `interest` that `schema` has. Missing tables and columns are logged.
    pub(crate) fn new(interest: &Interest, schema: Arc<Schema>, log: &mut Vec<LogMessage>) -> Plan {
        let mut tables: Vec<Option<Box<[ColumnId]>>> = vec![None; schema.tables().len()];
        let known = log.len();
        match interest {
            Interest::All => {
                for (place, table) in tables.iter_mut().zip(schema.tables()) {
                    *place = Some(table.iter().map(|(id, _)| id).collect());
                }
            }
            Interest::Tables(wanted) => {
                for wanted in wanted {
                    match schema.table_id(&wanted.name) {
                        Some(id) => {
                            let table = schema.table(id);
                            tables[usize::from(id.0)] = Some(columns(wanted, table, &schema, log));
                        }
                        None => log.push(LogMessage::TableMissing {
                            database: schema.name.to_string(),
                            table: wanted.name.to_string(),
                        }),
                    }
                }
            }
        }
        let missing = log[known..].iter().filter_map(missing).collect();
        Plan {
            schema,
            tables,
            missing,
        }
    }

    /// The parts of the interest that the server's schema lacks.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The server's schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The monitored columns of a table of the schema, in order; `None` if the table is not
    /// monitored.
    #[must_use]
    pub fn columns(&self, table: TableId) -> Option<&[ColumnId]> {
        self.tables.get(usize::from(table.0))?.as_deref()
    }

    /// The schema of a monitored table; `None` if the table is not monitored.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableSchema> {
        let id = self.schema.table_id(name)?;
        self.columns(id).map(|_| self.schema.table(id))
    }

    /// Whether another plan monitors the same tables and columns in the same forms. If so, contents
    /// that followed it can be continued with the changes since.
    pub(crate) fn is_same(&self, other: &Plan) -> bool {
        let has_form_of = |a: &ColumnType, b: &ColumnType| a.is_composite() == b.is_composite();
        self.is_within(other, has_form_of) && other.is_within(self, has_form_of)
    }

    /// Whether another plan monitors the same tables and columns with the same types. If so, a
    /// server sends for both the same.
    pub(crate) fn has_types_of(&self, other: &Plan) -> bool {
        let is_equal = |a: &ColumnType, b: &ColumnType| a == b;
        self.is_within(other, is_equal) && other.is_within(self, is_equal)
    }

    fn is_within(&self, other: &Plan, is_alike: impl Fn(&ColumnType, &ColumnType) -> bool) -> bool {
        (self.schema.iter().zip(&self.tables)).all(|((_, table), columns)| {
            let Some(columns) = columns else { return true };
            let Some(other_id) = other.schema.table_id(&table.name) else {
                return false;
            };
            let (other_table, other_columns) =
                (other.schema.table(other_id), other.columns(other_id));
            columns.iter().all(|&id| {
                let column = table.column(id);
                other_table.column_id(&column.name).is_some_and(|id| {
                    other_columns.is_some_and(|columns| columns.contains(&id))
                        && is_alike(&column.column_type, &other_table.column(id).column_type)
                })
            }) && other_columns.is_some()
        })
    }

    /// The third parameter of a monitor request, with `conditions` if given.
    pub(crate) fn requests(&self, conditions: Option<&Conditions>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (table, columns) in self.schema.tables().iter().zip(&self.tables) {
            let Some(columns) = columns else { continue };
            let mut requests = ArrayWriter::new(object.member(&*table.name));
            let mut request = ObjectWriter::new(requests.element());
            let mut names = ArrayWriter::new(request.member("columns"));
            for &column in columns {
                write::string(names.element(), table.column(column).name.as_bytes());
            }
            names.end();
            if let Some(condition) = conditions.and_then(|conditions| conditions.acked(&table.name))
            {
                request.member("where").extend(condition.to_json());
            }
            request.end();
            requests.end();
        }
        object.end();
        out
    }
}

/// The missing part that a log message names.
fn missing(message: &LogMessage) -> Option<Missing> {
    match message {
        LogMessage::TableMissing { table, .. } => Some(Missing {
            table: Str::new(table),
            column: None,
        }),
        LogMessage::ColumnMissing { table, column, .. } => Some(Missing {
            table: Str::new(table),
            column: Some(Str::new(column)),
        }),
        _ => None,
    }
}

/// The wanted columns of a table that the server has.
fn columns(
    wanted: &TableInterest,
    table: &TableSchema,
    schema: &Schema,
    log: &mut Vec<LogMessage>,
) -> Box<[ColumnId]> {
    let mut found: Vec<ColumnId> = Vec::with_capacity(wanted.columns.len());
    for name in &wanted.columns {
        match table.column_id(name).filter(|id| !id.is_standard()) {
            Some(id) => found.push(id),
            None => log.push(LogMessage::ColumnMissing {
                database: schema.name.to_string(),
                table: table.name.to_string(),
                column: name.to_string(),
            }),
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    fn schema(tables: &str) -> Arc<Schema> {
        let text = format!(r#"{{"name":"D","version":"1.0.0","tables":{tables}}}"#);
        Arc::new(Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap())
    }

    fn interest(tables: &[(&str, &[&str])]) -> Interest {
        let table = |(name, columns): &(&str, &[&str])| TableInterest {
            name: Str::new(name),
            columns: columns.iter().map(|name| Str::new(name)).collect(),
        };
        Interest::Tables(tables.iter().map(table).collect())
    }

    const WIDE: &str = r#"{"T":{"columns":{"a":{"type":"integer"},"b":{"type":"string"}}},"U":{"columns":{"c":{"type":"real"}}}}"#;
    const NARROW: &str = r#"{"T":{"columns":{"a":{"type":"integer"}}}}"#;

    #[test]
    fn what_the_server_lacks_is_left_out_with_a_word() {
        let mut log = Vec::new();
        let wanted = interest(&[("T", &["b", "a"]), ("U", &[])]);
        let plan = Plan::new(&wanted, schema(NARROW), &mut log);
        assert_eq!(plan.requests(None), br#"{"T":[{"columns":["a"]}]}"#);
        let log: Vec<String> = log.iter().map(ToString::to_string).collect();
        assert_eq!(
            log,
            [
                "T table in D database lacks b column (database needs upgrade?)",
                "D database lacks U table (database needs upgrade?)"
            ]
        );
        let plan = Plan::new(&Interest::All, schema(WIDE), &mut Vec::new());
        assert_eq!(
            plan.requests(None),
            br#"{"T":[{"columns":["a","b"]}],"U":[{"columns":["c"]}]}"#
        );
    }

    #[test]
    fn contents_carry_on_only_where_the_same_is_monitored() {
        let wanted = interest(&[("T", &["a", "b"]), ("U", &[])]);
        let plan = |tables| Plan::new(&wanted, schema(tables), &mut Vec::new());
        let (wide, narrow) = (plan(WIDE), plan(NARROW));
        assert!(wide.is_same(&plan(WIDE)) && narrow.is_same(&narrow));
        assert!(!wide.is_same(&narrow) && !narrow.is_same(&wide));
        let optional =
            plan(r#"{"T":{"columns":{"a":{"type":{"key":"integer","max":"unlimited"}}}}}"#);
        assert!(!optional.is_same(&wide) && !optional.is_same(&narrow));
    }
}
