//! TLS settings and remotes that columns of databases name. Commands about remotes: those given
//! directly, and those that rows of databases name (`db:DB,TABLE,COLUMN`). Part of the main thread.
//!
//! The database of a `db:` remote reads the column and reports each change of its rows. The command
//! that adds such a remote is answered when the database has found the column. [`crate::remotes`]
//! opens and closes the remotes.

use std::collections::BTreeSet;
use std::sync::Arc;

use corvid_net::clock::Now;
use corvid_rpc::remote::ColumnRemote;
use corvid_service::message::Control;
use corvid_service::remote_rows::RemoteRows;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use crate::remotes::options::RemoteOptions;

/// A database whose input queue is longer gets no status of remotes: the status would be stale by
/// the time the database reads it.
const STATUS_QUEUED_MAX: usize = 1024;

/// The columns that the configuration being applied waits for.
#[derive(Debug, Default)]
pub(super) struct PendingColumns {
    columns: Vec<String>,
    /// The error of the first unusable column.
    refusal: Option<String>,
}

/// Columns that hold TLS settings: read at the start and at each reload, which wait for them, and
/// again whenever their database is added again.
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

/// Remotes.
impl Server {
    /// Adds a remote by command. `replier` is answered when the remote is added, or when its column
    /// is not found; in that case the remote is not added.
    pub(crate) fn add_remote(&mut self, remote: &str, options: RemoteOptions, replier: Replier) {
        if self.remotes.contains(remote)
            || !ColumnRemote::matches(remote)
            || self.has_no_contents_yet(remote)
        {
            self.remotes.add(remote, options);
            self.save();
            replier.reply(Ok(String::new()));
            return;
        }
        match self.watch_column(remote, false) {
            Ok(()) => {
                let waiting = self
                    .pending
                    .column_reads
                    .entry(remote.to_owned())
                    .or_default();
                waiting.push(replier);
            }
            Err(error) => replier.reply(Err(error)),
        }
    }

    /// Adds a remote of the configuration, or checks it again. The remote stays even if its column
    /// is not found, because the column may appear later. `remotes_outcome` returns the errors.
    pub(crate) fn configure_remote(&mut self, remote: &str, options: RemoteOptions) {
        self.remotes.add(remote, options);
        self.save();
        if !ColumnRemote::matches(remote) || self.has_no_contents_yet(remote) {
            return;
        }
        if !self.pending.column_reads.contains_key(remote) {
            if let Err(error) = self.watch_column(remote, false) {
                self.pending.bad_remotes.push(error);
                return;
            }
            self.pending
                .column_reads
                .insert(remote.to_owned(), Vec::new());
        }
        self.pending.checked_remotes.insert(remote.to_owned());
    }

    /// Whether the database of a column is still joining. Its columns are read once it has
    /// contents.
    pub(super) fn has_no_contents_yet(&self, column: &str) -> bool {
        ColumnRemote::parse(column)
            .is_some_and(|source| self.databases.joining(source.database).is_some())
    }

    /// Asks a database to read a column and report its changes: remotes, or a TLS setting
    /// (`texts_only`).
    pub(super) fn watch_column(&self, remote: &str, texts_only: bool) -> Result<(), String> {
        let source =
            ColumnRemote::parse(remote).ok_or_else(|| format!("\"{remote}\": invalid syntax"))?;
        if !self.databases.serves(source.database) {
            let database = source.database;
            return Err(format!("\"{remote}\": no database named {database}"));
        }
        let watch = Control::WatchColumn {
            name: remote.to_owned(),
            table: source.table.to_owned(),
            column: source.column.to_owned(),
            texts_only,
        };
        self.databases.control(source.database, watch);
        Ok(())
    }

    /// Rereads the columns that remotes and TLS settings name in a database that was added or
    /// removed.
    pub(super) fn watch_columns_again(&mut self, database: &str) {
        let names_it = |remote: &str| {
            ColumnRemote::parse(remote).is_some_and(|source| source.database == database)
        };
        for column in self.tls.columns().filter(|column| names_it(column)) {
            if let Err(error) = self.watch_column(column, true) {
                vlog::warn(Module::OvsdbServer, format_args!("{error}"));
            }
        }
        let given = self.remotes.given().filter(|remote| names_it(remote));
        for remote in given.map(str::to_owned).collect::<Vec<_>>() {
            match self.watch_column(&remote, false) {
                Ok(()) => {
                    self.pending.column_reads.entry(remote).or_default();
                }
                Err(error) => {
                    vlog::warn(Module::OvsdbServer, format_args!("{error}"));
                    self.remotes.set_rows(&remote, RemoteRows::new());
                }
            }
        }
    }

    pub(super) fn column_read(&mut self, remote: &str, found: Result<RemoteRows, String>) {
        if self.tls.concerns(remote) {
            self.tls_column_read(remote, found);
            return;
        }
        let repliers = self.pending.column_reads.remove(remote).unwrap_or_default();
        let is_checked = self.pending.checked_remotes.remove(remote);
        let is_given = self.remotes.contains(remote);
        match found {
            Ok(rows) if is_given || !repliers.is_empty() => {
                self.remotes.add(remote, RemoteOptions::default());
                self.remotes.set_rows(remote, rows);
                self.save();
            }
            Err(error) if is_given => {
                self.remotes.set_rows(remote, RemoteRows::new());
                if is_checked {
                    self.pending.bad_remotes.push(error);
                } else {
                    vlog::warn(Module::OvsdbServer, format_args!("{error}"));
                }
            }
            Err(error) => {
                self.unwatch_column(remote);
                for replier in repliers {
                    replier.reply(Err(error.clone()));
                }
                return;
            }
            Ok(_) => self.unwatch_column(remote),
        }
        for replier in repliers {
            replier.reply(Ok(String::new()));
        }
    }

    /// Takes the outcome of all column reads that the configuration has waited for.
    ///
    /// # Errors
    /// The error of each column that is not found, each on its own line.
    pub(super) fn remotes_outcome(&mut self) -> Result<(), String> {
        let bad = std::mem::take(&mut self.pending.bad_remotes);
        if bad.is_empty() {
            Ok(())
        } else {
            Err(bad.join("\n"))
        }
    }

    /// Stops the reports of a column's changes.
    fn unwatch_column(&self, remote: &str) {
        if let Some(source) = ColumnRemote::parse(remote) {
            self.databases
                .control(source.database, Control::UnwatchColumn(remote.to_owned()));
        }
    }

    /// Closes a remote and its sessions.
    ///
    /// # Errors
    /// `no such remote`
    pub(crate) fn remove_remote(&mut self, remote: &str) -> Result<(), String> {
        self.unwatch_column(remote);
        if self.remotes.remove(remote) {
            self.save();
            Ok(())
        } else {
            Err("no such remote".to_owned())
        }
    }

    /// The given remotes, sorted.
    pub(crate) fn remote_names(&self) -> impl Iterator<Item = &str> {
        self.remotes.given()
    }

    /// Writes the status of remotes to the rows that configure them.
    pub(crate) fn show_status(&self) {
        let sources: BTreeSet<&str> = self
            .remotes
            .given()
            .filter_map(|remote| Some(ColumnRemote::parse(remote)?.database))
            .collect();
        if sources.is_empty() {
            return;
        }
        let locks = self.shared.locks();
        let statuses = Arc::new(self.remotes.statuses(Now::read(), &locks));
        drop(locks);
        let served = sources.iter();
        let served = served.filter_map(|name| self.databases.served(name));
        for served in served.filter(|served| served.mailbox.queued() < STATUS_QUEUED_MAX) {
            served.control(Control::ShowStatus(statuses.clone()));
        }
    }
}
