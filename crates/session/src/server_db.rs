//! A server's `_Server` database, and whether the server is suitable (docs/spec/idl.md 1.7,
//! docs/spec/protocol.md 6).
//!
//! `_Server` has a row for each of the server's databases. The session monitors it from the start
//! of a connection, so it leaves a server as soon as the server loses its cluster or its
//! leadership. The state machine calls this file and acts on its verdict.

use std::collections::BTreeMap;

use corvid_data::{Arc, ColumnId, Datum, Schema, Str, Uuid};

use crate::decoder::Decoder;
use crate::failure::Failure;
use crate::log_message::LogMessage;
use crate::plan::{Interest, Plan, TableInterest};
use crate::update::{RowChange, TableUpdates};

/// The database's name.
pub(crate) const NAME: &str = "_Server";
const TABLE: &str = "Database";
const COLUMNS: [&str; 7] = [
    "name",
    "model",
    "connected",
    "leader",
    "schema",
    "cid",
    "index",
];

/// The requirements that a server must meet.
#[derive(Debug, Clone)]
pub(crate) struct ServerRequirements {
    pub(crate) database: String,
    /// A cluster id as text, or its beginning.
    pub(crate) cluster_id: Option<String>,
    pub(crate) leader_only: bool,
    /// The highest index seen from a member of the cluster.
    pub(crate) index_min: Option<i64>,
}

/// The verdict on a suitable server.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Text of the database's schema.
    pub(crate) schema: Str,
    /// The index, if the server is a member of a cluster.
    pub(crate) index: Option<i64>,
}

/// A server's role for a database, according to its `_Server` database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// `standalone`, `clustered` or `relay`.
    pub model: Str,
    /// Whether the server is connected to its cluster or, as a relay, to its source. True for
    /// standalone databases.
    pub is_connected: bool,
    /// Whether the server leads its cluster. True for standalone databases.
    pub is_leader: bool,
    /// The cluster's id.
    pub cluster_id: Option<Uuid>,
    /// The log index that a member of a cluster has applied.
    pub index: Option<i64>,
}

/// The rows of `_Server`.
#[derive(Debug)]
pub(crate) struct ServerDb {
    pub(crate) decoder: Decoder,
    /// Every column of each row, in schema order.
    rows: BTreeMap<Uuid, Vec<Datum>>,
}

impl ServerDb {
    /// No rows yet; `schema` is the schema of the server's `_Server`.
    pub(crate) fn new(schema: Schema, log: &mut Vec<LogMessage>) -> ServerDb {
        let interest = Interest::Tables(vec![TableInterest {
            name: Str::new(TABLE),
            columns: COLUMNS.map(Str::new).into(),
        }]);
        let plan = Plan::new(&interest, Arc::new(schema), log);
        ServerDb {
            decoder: Decoder::new(Arc::new(plan), false),
            rows: BTreeMap::new(),
        }
    }

    /// The third parameter of the monitor request.
    pub(crate) fn requests(&self) -> Vec<u8> {
        self.decoder.plan().requests(None)
    }

    /// Applies an update; fails if it does not fit the rows.
    pub(crate) fn apply(&mut self, updates: &TableUpdates) -> Result<(), Failure> {
        let schema = self.decoder.plan().schema().clone();
        for table in &updates.tables {
            let types = schema.table(table.table);
            for row in &table.rows {
                let held = self.rows.contains_key(&row.uuid);
                match &row.change {
                    RowChange::Insert(columns) if !held => {
                        let mut new: Vec<Datum> = (types.columns().iter())
                            .map(|column| Datum::default_for(&column.column_type))
                            .collect();
                        for (id, datum) in columns {
                            new[usize::from(id.0)] = datum.clone();
                        }
                        self.rows.insert(row.uuid, new);
                    }
                    RowChange::Delete if held => {
                        self.rows.remove(&row.uuid);
                    }
                    // All columns hold at most one element, so a difference equals the new value.
                    RowChange::Diff(columns) | RowChange::Replace(columns) if held => {
                        if let Some(row) = self.rows.get_mut(&row.uuid) {
                            for (id, datum) in columns {
                                row[usize::from(id.0)] = datum.clone();
                            }
                        }
                    }
                    _ => {
                        let details = format!("{NAME} row {}", row.uuid);
                        return Err(Failure::Inconsistent(details));
                    }
                }
            }
        }
        Ok(())
    }

    /// Judges whether the server meets the requirements; otherwise returns the first reason against
    /// it.
    pub(crate) fn judge(&self, requirements: &ServerRequirements) -> Result<Accepted, Failure> {
        let row = self.row(requirements).ok_or(Failure::NoSuchDatabase)?;
        let is = |column| row(column).and_then(Datum::as_boolean).unwrap_or(false);
        let index = row("index").and_then(Datum::as_integer);
        let schema = (row("schema").and_then(Datum::as_string))
            .filter(|text| !text.is_empty())
            .ok_or(Failure::NoSchema)?;
        let model = row("model").and_then(Datum::as_string);
        let model = model.map_or("standalone", |model| model.as_str());
        if matches!(model, "clustered" | "relay") {
            if !is("connected") {
                return Err(Failure::Disconnected);
            }
            if requirements.leader_only && (model == "relay" || !is("leader")) {
                return Err(Failure::NotLeader);
            }
        }
        let index = index.filter(|_| model == "clustered");
        if index < requirements.index_min && model == "clustered" {
            return Err(Failure::Stale);
        }
        Ok(Accepted {
            schema: schema.clone(),
            index,
        })
    }

    /// The server's role for the database; `None` if the server does not have it.
    pub(crate) fn status(&self, requirements: &ServerRequirements) -> Option<ServerStatus> {
        let row = self.row(requirements)?;
        let is = |column| row(column).and_then(Datum::as_boolean).unwrap_or(false);
        let model = row("model").and_then(Datum::as_string);
        Some(ServerStatus {
            model: model.cloned().unwrap_or_else(|| Str::new("standalone")),
            is_connected: is("connected"),
            is_leader: is("leader"),
            cluster_id: row("cid").and_then(Datum::as_uuid),
            index: row("index").and_then(Datum::as_integer),
        })
    }

    /// The columns of the database's row, by name.
    fn row<'a>(
        &'a self,
        requirements: &ServerRequirements,
    ) -> Option<impl Fn(&str) -> Option<&'a Datum> + use<'a>> {
        let table = self.decoder.plan().table(TABLE)?;
        let place = |name: &str| table.column_id(name).map(|ColumnId(at)| usize::from(at));
        let (name, cid) = (place("name"), place("cid"));
        let row = self
            .rows
            .values()
            .find(|row| match &requirements.cluster_id {
                Some(wanted) => cid
                    .and_then(|at| row[at].as_uuid())
                    .is_some_and(|id| id.to_string().starts_with(&wanted.to_ascii_lowercase())),
                None => name
                    .and_then(|at| row[at].as_string())
                    .is_some_and(|name| name.as_str() == requirements.database),
            })?;
        Some(move |name: &str| {
            let place = table.column_id(name).map(|ColumnId(at)| usize::from(at))?;
            row.get(place)
        })
    }
}
