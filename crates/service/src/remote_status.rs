//! The status that the server writes into the rows that configure its remotes: whether a client is
//! connected, and details (docs/spec/cli.md 1.6).
//!
//! The server has the status of each remote by target. This file turns it into a transaction on the
//! rows that differ, if any. The cost is proportional to the referenced rows, which are as many as
//! there are remotes.

use std::collections::BTreeMap;

use bstr::BString;
use corvid_data::{AtomRef, AtomType, ColumnId, Datum, Row, TableId, TableSchema};
use corvid_engine::Database;
use corvid_json::Value;

use crate::remote_rows::RemoteColumn;

/// The status of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStatus {
    /// `is_connected`: whether a client is connected.
    pub is_connected: bool,
    /// All pairs of `status`.
    pub status: BTreeMap<String, String>,
}

impl Default for RemoteStatus {
    /// The status of a new listener, and of a target that is not a remote at present.
    fn default() -> RemoteStatus {
        let zero = |key: &str| (key.to_owned(), "0".to_owned());
        RemoteStatus {
            is_connected: false,
            status: [zero("sec_since_connect"), zero("sec_since_disconnect")].into(),
        }
    }
}

impl RemoteStatus {
    /// Sets a pair of `status`.
    pub fn set(&mut self, key: &str, value: String) {
        self.status.insert(key.to_owned(), value);
    }
}

/// The status of all remotes, by target.
pub type RemoteStatuses = BTreeMap<String, RemoteStatus>;

/// The columns of a table that show a status, where they exist.
struct StatusColumns {
    table: TableId,
    is_connected: Option<ColumnId>,
    status: Option<ColumnId>,
}

impl StatusColumns {
    fn find(schema: &TableSchema, table: TableId) -> StatusColumns {
        let column = |name: &str, fits: fn(&corvid_data::ColumnType) -> bool| {
            let id = schema.column_id(name).filter(|id| !id.is_standard())?;
            fits(&schema.column(id).column_type).then_some(id)
        };
        let is_flag = |column: &corvid_data::ColumnType| {
            column.key.atom == AtomType::Boolean && !column.is_map()
        };
        let is_strings = |column: &corvid_data::ColumnType| {
            let value = column.value.as_ref().map(|value| value.atom);
            column.key.atom == AtomType::String && value == Some(AtomType::String)
        };
        StatusColumns {
            table,
            is_connected: column("is_connected", is_flag),
            status: column("status", is_strings),
        }
    }
}

/// The transaction, and the warnings, for the rows that a column refers to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WriteBack {
    /// `params` of a transaction; `None` if all rows show the status already.
    pub params: Option<Vec<u8>>,
    /// The table of the rows, if it has no `status` column.
    pub without_status: Option<String>,
    /// The table of the rows, if one of them has no `target`.
    pub without_target: Option<String>,
}

/// Compares the rows that `column` refers to with the status of remotes.
#[must_use]
pub fn write_back(database: &Database, column: &RemoteColumn, known: &RemoteStatuses) -> WriteBack {
    let Some(table) = column.described_in() else {
        return WriteBack::default();
    };
    let schema = database.schema().table(table);
    let columns = StatusColumns::find(schema, table);
    let unknown = RemoteStatus::default();
    let operations: Vec<Value> = column
        .described(database)
        .filter_map(|(target, row)| {
            let status = known.get(target).unwrap_or(&unknown);
            update(database, &columns, row, status)
        })
        .collect();
    WriteBack {
        params: (!operations.is_empty()).then(|| {
            let name = Value::string(&*database.schema().name);
            let params = std::iter::once(name).chain(operations).collect();
            Value::Array(params).to_bytes()
        }),
        without_status: (columns.status.is_none() && column.described(database).next().is_some())
            .then(|| schema.name.to_string()),
        without_target: (column.lacks_a_target(database)).then(|| schema.name.to_string()),
    }
}

/// The operation that makes a row show `status`; `None` if it does already.
fn update(
    database: &Database,
    columns: &StatusColumns,
    row: &Row,
    status: &RemoteStatus,
) -> Option<Value> {
    let cell = |id: ColumnId| &row.columns[usize::from(id.0)];
    let mut values = BTreeMap::new();
    if let Some(id) = columns.is_connected
        && cell(id).first().and_then(AtomRef::as_boolean) != Some(status.is_connected)
    {
        let value = Value::Bool(status.is_connected);
        values.insert(BString::from("is_connected"), value);
    }
    if let Some(id) = columns.status
        && !shows(cell(id), &status.status)
    {
        values.insert(BString::from("status"), map(&status.status));
    }
    if values.is_empty() {
        return None;
    }
    let schema = database.schema().table(columns.table);
    let uuid = Value::Array(vec![
        Value::string("uuid"),
        Value::string(row.uuid.to_string()),
    ]);
    let clause = vec![Value::string("_uuid"), Value::string("=="), uuid];
    let operation = [
        ("op", Value::string("update")),
        ("table", Value::string(&*schema.name)),
        ("where", Value::Array(vec![Value::Array(clause)])),
        ("row", Value::Object(values)),
    ];
    let members = operation.map(|(name, value)| (BString::from(name), value));
    Some(Value::Object(members.into_iter().collect()))
}

/// Whether a map of strings holds exactly these pairs.
fn shows(datum: &Datum, wanted: &BTreeMap<String, String>) -> bool {
    datum.len() == wanted.len()
        && datum.iter().all(|pair| match pair {
            (AtomRef::String(key), Some(AtomRef::String(value))) => wanted
                .get(key.as_str())
                .is_some_and(|wanted| *wanted == value.as_str()),
            _ => false,
        })
}

fn map(pairs: &BTreeMap<String, String>) -> Value {
    let pairs = pairs
        .iter()
        .map(|(key, value)| Value::Array(vec![Value::string(key), Value::string(value)]));
    Value::Array(vec![Value::string("map"), Value::Array(pairs.collect())])
}
