//! Questions about rows for completion: small, quick, and never in the way of the shell.
//!
//! OVSDB cannot ask for the first rows of a table. So each question has a connection of its own,
//! which is closed as soon as the answer is longer than [`BYTES_MAX`] or takes longer than
//! [`QUESTION_MS`]. A table for which that happened is not asked about again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corvid_data::{ColumnId, Datum, Schema, TableId};
use corvid_net::clock;
use corvid_net::tls::Credentials;

use super::candidates::Rows;
use crate::contents::{Contents, Source, is_row};
use crate::failure::Failure;
use crate::grammar::record;
use crate::server::Server;

/// Limit on the size of an answer, bytes: about ten thousand names.
const BYTES_MAX: usize = 1 << 20;
/// Limit on the time of a question. The user waits.
const QUESTION_MS: u64 = 900;
/// An answer is used again for this time.
const FRESH_MS: u64 = 3_000;

/// Asks the server that the shell is connected to.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    /// The server's address; `None`: nothing is asked.
    pub remote: Option<String>,
    /// The database in use.
    pub database: String,
    /// Keys and certificates.
    pub credentials: Arc<Credentials>,
    /// The names of rows by table, and when they were read (monotonic ms).
    names: BTreeMap<TableId, (u64, Vec<(String, String)>)>,
    /// Tables that are too large to ask about.
    large: BTreeSet<TableId>,
}

impl Lookup {
    /// The same lookup for another database or after a loss of the connection.
    pub(crate) fn forget(&mut self) {
        self.names.clear();
        self.large.clear();
    }

    /// Asks a question about a table.
    fn ask<T>(
        &mut self,
        table: TableId,
        question: impl FnOnce(&mut Server) -> Result<T, Failure>,
    ) -> Option<T> {
        let remote = self.remote.as_deref()?;
        if self.large.contains(&table) {
            return None;
        }
        let deadline_ms = clock::mono_ms() + QUESTION_MS;
        let mut server = Server::connect_briefly(
            remote,
            &self.database,
            &self.credentials,
            BYTES_MAX,
            deadline_ms,
        )
        .ok()?;
        let answer = question(&mut server).ok();
        if server.is_exhausted() {
            self.large.insert(table);
        }
        answer
    }
}

impl Rows for Lookup {
    fn names(&mut self, schema: &Schema, table: TableId) -> Vec<(String, String)> {
        if let Some((read_ms, names)) = self.names.get(&table)
            && clock::mono_ms() < read_ms + FRESH_MS
        {
            return names.clone();
        }
        let columns = record::naming_columns(schema, table);
        if columns.is_empty() {
            return Vec::new();
        }
        let found = self.ask(table, |server| {
            server.select(schema.table(table), &[], &columns)
        });
        let mut names = Vec::new();
        for found in found.unwrap_or_default() {
            let uuid = String::from_utf8_lossy(&found.uuid.to_text()).into_owned();
            let named = found.values.iter().filter_map(Datum::as_string);
            names.extend(
                named
                    .filter(|name| !name.is_empty())
                    .map(|name| (uuid.clone(), name.to_string())),
            );
        }
        self.names.insert(table, (clock::mono_ms(), names.clone()));
        names
    }

    fn values(
        &mut self,
        schema: &Schema,
        table: TableId,
        record: Option<&str>,
        column: ColumnId,
    ) -> Vec<Datum> {
        let answer = self.ask(table, |server| {
            let clauses = match record {
                None => Vec::new(),
                Some(word) => {
                    let mut contents = Contents::new(schema, server);
                    match record::find(&mut contents, table, word)? {
                        Some(uuid) => vec![is_row(uuid)],
                        None => return Ok(Vec::new()),
                    }
                }
            };
            server.select(schema.table(table), &clauses, &[column])
        });
        let rows = answer.unwrap_or_default().into_iter();
        rows.flat_map(|found| found.values).collect()
    }
}
