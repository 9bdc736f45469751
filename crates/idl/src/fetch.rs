//! Fetches columns that are not monitored (docs/spec/idl.md 4).
//!
//! Every fetch is a separate request: fetches of a row, of a column and of a table are independent.
//! Each ends exactly once, with an outcome, even if the connection ends. The client never repeats a
//! fetch by itself: the program has to know that its values are stale. Requests hold UUIDs, so rows
//! may be deleted meanwhile.
//!
//! ```
//! use corvid_data::{Arc, Schema};
//! use corvid_idl::{Class, FetchError, FetchOutcome, Idl};
//! use corvid_json::Value;
//!
//! let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
//!     "name":{"type":"string"},"age":{"type":"integer"},"photo":{"type":"string"},
//!     "tags":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;
//! let schema = Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap());
//! let mut class = Class::new(schema);
//! let photo = class.column("Keeper", "photo")?;
//! class.on_demand(photo);
//! let mut idl = Idl::new(class, 1);
//! match idl.fetch_column(photo) {
//!     Err(FetchError::NotConnected) => {}         // as here: it has no remote
//!     Err(error) => panic!("{error}"),
//!     // Check again whenever the change number has moved. On success the replica has the value.
//!     Ok(fetch) => assert_eq!(idl.take_fetch_outcome(fetch), Some(FetchOutcome::Pending)),
//! }
//! assert!(!idl.is_column_fetch_pending(photo));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use corvid_data::{ColumnId, Datum, TableId, Uuid, wire};
use corvid_json::{ArrayWriter, Reader, Value, write};
use corvid_session::RequestId;
use thiserror::Error;

use crate::replica::Replica;

/// The id of a fetch. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u64);

/// How a fetch ended, if it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The reply has not arrived yet.
    Pending,
    /// The server's values are in the replica, for the rows that the replica has.
    Success,
    /// The row no longer exists.
    RowGone,
    /// The server refused the fetch, or its reply is malformed. Carries the server's error as JSON,
    /// or the reason.
    Error(String),
    /// The connection ended before the reply arrived.
    Disconnected,
}

/// Why a fetch could not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The client is not connected, or its contents are not complete yet.
    #[error("not connected")]
    NotConnected,
    /// The row does not exist, or not on the server yet.
    #[error("there is no such row")]
    RowGone,
    /// The column is not fetched on demand; or no column of the table is; or the server lacks all
    /// of these columns.
    #[error("no column to fetch on demand")]
    NotOnDemand,
}

/// The scope of a fetch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Row(TableId, Uuid),
    Column(TableId, ColumnId),
    Table(TableId),
}

#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) id: FetchId,
    pub(crate) scope: Scope,
    pub(crate) columns: Vec<ColumnId>,
}

/// All fetches of a client.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    pending: BTreeMap<RequestId, Fetch>,
    /// Number of pending fetches per scope.
    counts: BTreeMap<Scope, usize>,
    outcomes: BTreeMap<FetchId, FetchOutcome>,
    last: u64,
}

impl Fetches {
    pub(crate) fn begun(
        &mut self,
        request: RequestId,
        scope: Scope,
        columns: Vec<ColumnId>,
    ) -> FetchId {
        self.last += 1;
        let id = FetchId(self.last);
        *self.counts.entry(scope.clone()).or_insert(0) += 1;
        self.outcomes.insert(id, FetchOutcome::Pending);
        let fetch = Fetch { id, scope, columns };
        self.pending.insert(request, fetch);
        id
    }

    pub(crate) fn is_pending(&self, scope: &Scope) -> bool {
        self.counts.contains_key(scope)
    }

    /// The outcome of a fetch. A final outcome is removed and returned once.
    pub(crate) fn take_outcome(&mut self, id: FetchId) -> Option<FetchOutcome> {
        match self.outcomes.get(&id)? {
            FetchOutcome::Pending => Some(FetchOutcome::Pending),
            _ => self.outcomes.remove(&id),
        }
    }

    pub(crate) fn take(&mut self, request: RequestId) -> Option<Fetch> {
        self.pending.remove(&request)
    }

    pub(crate) fn ended(&mut self, fetch: &Fetch, outcome: FetchOutcome) {
        if let Some(count) = self.counts.get_mut(&fetch.scope) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&fetch.scope);
            }
        }
        self.outcomes.insert(fetch.id, outcome);
    }
}

/// The `select` operation that fetches columns.
pub(crate) fn select(replica: &Replica, scope: &Scope, columns: &[ColumnId]) -> Vec<u8> {
    let (Scope::Row(table, _) | Scope::Column(table, _) | Scope::Table(table)) = scope;
    let table = replica.class.schema.table(*table);
    let mut out = b"{\"op\":\"select\",\"table\":".to_vec();
    write::string(&mut out, table.name.as_bytes());
    out.extend_from_slice(b",\"where\":[");
    if let Scope::Row(_, uuid) = scope {
        out.extend_from_slice(b"[\"_uuid\",\"==\",");
        wire::write_atom(&mut out, corvid_data::AtomRef::Uuid(*uuid));
        out.push(b']');
    }
    out.extend_from_slice(b"],\"columns\":");
    let mut names = ArrayWriter::new(&mut out);
    write::string(names.element(), b"_uuid");
    for &column in columns {
        write::string(names.element(), table.column(column).name.as_bytes());
    }
    names.end();
    out.push(b'}');
    out
}

/// Stores the result of a fetch in the replica. Rows that the replica lacks are skipped.
pub(crate) fn apply(replica: &mut Replica, fetch: &Fetch, result: &[u8]) -> FetchOutcome {
    let (Scope::Row(table, _) | Scope::Column(table, _) | Scope::Table(table)) = fetch.scope;
    let cells = match read(replica, table, fetch, result) {
        Ok(cells) => cells,
        Err(reason) => return FetchOutcome::Error(reason),
    };
    let mut is_any_known = false;
    for (uuid, column, value) in cells {
        is_any_known |= replica.set_fetched(table, uuid, column, value);
    }
    // The row is gone on the server, or was deleted here while the reply was on its way.
    if matches!(fetch.scope, Scope::Row(..)) && !is_any_known {
        return FetchOutcome::RowGone;
    }
    FetchOutcome::Success
}

type Cell = (Uuid, ColumnId, Datum);

/// Parses the whole result before any of it is applied.
fn read(
    replica: &Replica,
    table: TableId,
    fetch: &Fetch,
    result: &[u8],
) -> Result<Vec<Cell>, String> {
    let malformed = || "malformed result of a fetch".to_owned();
    let json = Value::parse(result).map_err(|error| error.to_string())?;
    let only = json.as_array().and_then(<[Value]>::first);
    let only = only.ok_or_else(malformed)?;
    if only.get("error").is_some() {
        return Err(only.to_string());
    }
    let rows = only.get("rows").and_then(Value::as_array);
    let schema = replica.class.schema.table(table);
    let mut cells = Vec::new();
    for row in rows.ok_or_else(malformed)? {
        let uuid = match row.get("_uuid").and_then(Value::as_array) {
            Some([_, uuid]) => uuid.as_str().and_then(|text| Uuid::parse(text.as_bytes())),
            _ => None,
        };
        let uuid = uuid.ok_or_else(malformed)?;
        for &column in &fetch.columns {
            let column_schema = schema.column(column);
            let value = row.get(&column_schema.name).ok_or_else(malformed)?;
            let text = value.to_bytes();
            let mut reader = Reader::trusted(&text);
            let value = wire::read_diff(&mut reader, &column_schema.column_type, None);
            cells.push((uuid, column, value.map_err(|error| error.to_string())?));
        }
    }
    Ok(cells)
}
