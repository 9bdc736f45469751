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

/// Columns that hold TLS settings: read at the start and at each reload, which wait for them, and
/// again whenever their database is added again.
impl Server {
    /// Asks the databases for the columns that hold TLS settings.
    ///
    /// # Errors
    /// A column's database is not served.
    pub(super) fn read_tls_columns(&mut self) -> Result<(), String> {
        for column in self.tls.columns() {
            if self.databases.has_no_contents_yet(column) {
                continue;
            }
            self.databases.watch_column(column, true)?;
            self.pending.columns.await_tls(column);
        }
        Ok(())
    }

    /// Rereads changed TLS files.
    pub(crate) fn refresh_tls(&self) {
        self.tls.credentials().refresh();
    }

    /// Handles the outcome of reading a column. An error fails the configuration that waits for the
    /// column; if none waits, the error is logged.
    pub(super) fn tls_column_read(&mut self, column: &str, found: Result<RemoteRows, String>) {
        let was_awaited = self.pending.columns.end_tls(column);
        match found {
            Ok(texts) => self.tls.set(column, &texts),
            Err(error) if was_awaited => self.pending.columns.refuse_tls(error),
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
            || self.databases.has_no_contents_yet(remote)
        {
            self.remotes.add(remote, options);
            self.save();
            replier.reply(Ok(String::new()));
            return;
        }
        match self.databases.watch_column(remote, false) {
            Ok(()) => {
                let waiting = self
                    .pending
                    .columns
                    .reads
                    .entry(remote.to_owned())
                    .or_default();
                waiting.push(replier);
            }
            Err(error) => replier.reply(Err(error)),
        }
    }

    /// Adds a remote of the configuration, or checks it again. The remote stays even if its column
    /// is not found, because the column may appear later. [`ColumnReads`] keeps the errors.
    pub(crate) fn configure_remote(&mut self, remote: &str, options: RemoteOptions) {
        self.remotes.add(remote, options);
        self.save();
        if !ColumnRemote::matches(remote) || self.databases.has_no_contents_yet(remote) {
            return;
        }
        if !self.pending.columns.reads.contains_key(remote) {
            if let Err(error) = self.databases.watch_column(remote, false) {
                self.pending.columns.refuse_remote(error);
                return;
            }
            self.pending
                .columns
                .reads
                .insert(remote.to_owned(), Vec::new());
        }
        self.pending
            .columns
            .checked_remotes
            .insert(remote.to_owned());
    }

    /// Rereads the columns that remotes and TLS settings name in a database that was added or
    /// removed.
    pub(super) fn watch_columns_again(&mut self, database: &str) {
        let names_it = |remote: &str| {
            ColumnRemote::parse(remote).is_some_and(|source| source.database == database)
        };
        for column in self.tls.columns().filter(|column| names_it(column)) {
            if let Err(error) = self.databases.watch_column(column, true) {
                vlog::warn(Module::OvsdbServer, format_args!("{error}"));
            }
        }
        let given = self.remotes.given().filter(|remote| names_it(remote));
        for remote in given.map(str::to_owned).collect::<Vec<_>>() {
            match self.databases.watch_column(&remote, false) {
                Ok(()) => {
                    self.pending.columns.reads.entry(remote).or_default();
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
        let repliers = self
            .pending
            .columns
            .reads
            .remove(remote)
            .unwrap_or_default();
        let is_checked = self.pending.columns.checked_remotes.remove(remote);
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
                    self.pending.columns.refuse_remote(error);
                } else {
                    vlog::warn(Module::OvsdbServer, format_args!("{error}"));
                }
            }
            Err(error) => {
                self.databases.unwatch_column(remote);
                for replier in repliers {
                    replier.reply(Err(error.clone()));
                }
                return;
            }
            Ok(_) => self.databases.unwatch_column(remote),
        }
        for replier in repliers {
            replier.reply(Ok(String::new()));
        }
    }

    /// Closes a remote and its sessions.
    ///
    /// # Errors
    /// `no such remote`
    pub(crate) fn remove_remote(&mut self, remote: &str) -> Result<(), String> {
        self.databases.unwatch_column(remote);
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
