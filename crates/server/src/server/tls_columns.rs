//! Reads the TLS settings that database columns hold: at the start and at each reload, which wait
//! for them, and again whenever their database is added again. Part of the main thread.

use corvid_service::remote_rows::RemoteRows;
use corvid_shell::vlog::{self, Module};

use super::Server;

/// The columns that the configuration being applied waits for.
#[derive(Debug, Default)]
pub(super) struct PendingColumns {
    columns: Vec<String>,
    /// The error of the first unusable column.
    refusal: Option<String>,
}

impl Server {
    /// Asks the databases for the columns that hold TLS settings.
    ///
    /// # Errors
    /// A column's database is not served.
    pub(super) fn read_tls_columns(&mut self) -> Result<(), String> {
        for column in self.tls.columns() {
            if self.has_no_contents_yet(column) {
                continue;
            }
            self.watch_column(column, true)?;
            self.pending.tls.columns.push(column.to_owned());
        }
        Ok(())
    }

    /// Whether columns are still to be read and none has failed.
    pub(super) fn awaits_tls_columns(&self) -> bool {
        !self.pending.tls.columns.is_empty() && self.pending.tls.refusal.is_none()
    }

    /// Takes the error of the first unusable column.
    pub(super) fn tls_outcome(&mut self) -> Result<(), String> {
        self.pending.tls.refusal.take().map_or(Ok(()), Err)
    }

    /// Rereads changed TLS files.
    pub(crate) fn refresh_tls(&self) {
        self.tls.credentials().refresh();
    }

    /// Handles the outcome of reading a column. An error fails the configuration that waits for the
    /// column; if none waits, the error is logged.
    pub(super) fn tls_column_read(&mut self, column: &str, found: Result<RemoteRows, String>) {
        let count = self.pending.tls.columns.len();
        self.pending.tls.columns.retain(|waiting| waiting != column);
        match found {
            Ok(texts) => self.tls.set(column, &texts),
            Err(error) if self.pending.tls.columns.len() < count => {
                self.pending.tls.refusal.get_or_insert(error);
            }
            Err(error) => vlog::warn(Module::OvsdbServer, format_args!("{error}")),
        }
    }
}
