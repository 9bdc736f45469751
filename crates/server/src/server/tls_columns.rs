//! Settings of TLS in columns, from the main thread's side: asked for at the start and at each reload, which wait for them, and again
//! whenever their database comes back.

use corvid_service::remote_rows::RemoteRows;
use corvid_shell::vlog::{self, Module};

use super::Server;

/// What a rollout still waits for.
#[derive(Debug, Default)]
pub(super) struct PendingColumns {
    columns: Vec<String>,
    /// Why the first column that cannot be used cannot be.
    refusal: Option<String>,
}

impl Server {
    /// Asks for the settings of TLS that columns hold.
    ///
    /// # Errors
    /// A column names no database.
    pub(super) fn ask_tls(&mut self) -> Result<(), String> {
        for column in self.tls.columns() {
            self.follow(column, true)?;
            self.pending.tls.columns.push(column.to_owned());
        }
        Ok(())
    }

    /// Whether columns have yet to be read, and all could be so far.
    pub(super) fn tls_is_awaited(&self) -> bool {
        !self.pending.tls.columns.is_empty() && self.pending.tls.refusal.is_none()
    }

    /// Why a column cannot be used, if one cannot.
    pub(super) fn tls_outcome(&mut self) -> Result<(), String> {
        self.pending.tls.refusal.take().map_or(Ok(()), Err)
    }

    /// Looks whether files of TLS have changed.
    pub(crate) fn refresh_tls(&self) {
        self.tls.credentials().refresh();
    }

    /// A column was read, or cannot be: a rollout that waits for it fails, later it is told.
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
