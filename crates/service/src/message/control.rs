//! Control messages from the server's main thread to a database, and the answers.
//!
//! A control command that a database answers is one variant of [`Control`] with a number. The
//! answer returns in [`Event::Answered`] with the same number. This file holds everything that
//! depends on the kind of message, except its execution: its form in a recording, whether it waits
//! until the database is quiet, and the answer of a database that is being removed.
//!
//! Invariant: each message with a number is answered exactly once, by the database or by
//! [`Control::refused`].

use std::sync::Arc;

use corvid_engine::Snapshot;
use corvid_log::cluster::Index;
use corvid_log::storage::StoreError;

use super::{Event, Report};
use crate::applied_index::AppliedIndex;
use crate::codec::{Damage, Reader, Recordable, Writer, recorded};
use crate::remote_status::{RemoteStatus, RemoteStatuses};
use crate::replication::{Exclusions, Following, Role, SourceId};

/// A control message of the server's main thread to a database.
#[derive(Debug)]
pub enum Control {
    /// Execute this `params` text (database name first) as the server, without access control. It
    /// must succeed: a failure is a bug in the server. A database that follows another server
    /// ignores it.
    Transact(Vec<u8>),
    /// Rewrite the file without its old records; answered by [`ControlAnswer::Compacted`]. `None`:
    /// the file has grown and no command asked; ends with [`Event::Compacted`].
    Compact(Option<u64>),
    /// Record modified columns as differences from now on (`ovsdb/file/column-diff-enable`).
    EnableColumnDiff,
    /// From now on, propose conversions of a clustered database without its rows
    /// (`ovsdb/file/no-data-conversion-enable`).
    EnableNoDataConversion,
    /// Copy the database's contents; answered by [`ControlAnswer::Snapshot`] once everything in the
    /// copy is stored.
    Snapshot(u64),
    /// The database is being removed: cancel monitors and pending transactions; answered by
    /// [`Event::Removed`].
    Remove,
    /// Become active or a backup, once nothing is pending; answered by [`ControlAnswer::RoleSet`].
    SetRole(Role, u64),
    /// Report whether the last commit was stored; answered by [`ControlAnswer::StorageStatus`].
    StorageStatus(u64),
    /// Watch the remotes that a column names (`db:DB,TABLE,COLUMN`). Answered by
    /// [`Event::ColumnWatched`]; later changes are reported by [`Event::RemotesChanged`]. A column
    /// that does not exist is watched too, in case a conversion adds it.
    WatchColumn {
        /// The remote as configured: `db:DB,TABLE,COLUMN`.
        name: String,
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
        /// The column must hold strings (TLS settings), not references to rows.
        texts_only: bool,
    },
    /// Stop watching the column of this remote.
    UnwatchColumn(String),
    /// From now on, report transactions that take at least this long, ms ([`Event::Slow`]).
    SetSlow(u64),
    /// Whether to keep a transaction history from now on; a kept history starts empty.
    SetHistory(bool),
    /// Whether to write an audit trail from now on.
    SetAudited(bool),
    /// Whether records name the clients of their commits from now on.
    SetRecordClients(bool),
    /// Report the database's state; answered by [`ControlAnswer::Report`].
    Report(u64),
    /// Log changes of this table's rows, or stop. Not answered; an unknown table is ignored.
    LogRows(String, bool),
    /// Write this status to the rows that configure remotes through watched columns.
    ShowStatus(Arc<RemoteStatuses>),
    /// To `_Server`: show the current index of a clustered database.
    ShowIndex(AppliedIndex),
}

recorded! { Control:
    0 (params) => [Control::Transact(params)];
    1 (token) => [Control::Compact(token)];
    2 () => [Control::EnableColumnDiff];
    3 (token) => [Control::Snapshot(token)];
    4 () => [Control::Remove];
    5 (token, role) => [Control::SetRole(role, token)];
    6 (token) => [Control::StorageStatus(token)];
    7 (name, table, column, texts_only) => [Control::WatchColumn { name, table, column, texts_only }];
    8 (name) => [Control::UnwatchColumn(name)];
    9 (threshold_ms) => [Control::SetSlow(threshold_ms)];
    10 (is_kept) => [Control::SetHistory(is_kept)];
    11 (is_audited) => [Control::SetAudited(is_audited)];
    12 (token) => [Control::Report(token)];
    13 (table, is_logged) => [Control::LogRows(table, is_logged)];
    14 (statuses) => [Control::ShowStatus(statuses)];
    15 () => [Control::EnableNoDataConversion];
    16 (applied) => [Control::ShowIndex(applied)];
    17 (are_recorded) => [Control::SetRecordClients(are_recorded)];
}

/// The answer of a database to a [`Control`] message with a number.
#[derive(Debug)]
pub enum ControlAnswer {
    /// To [`Control::Compact`]: no crash can bring the old file back; or the reason why nothing was
    /// compacted.
    Compacted(Result<(), StoreError>),
    /// To [`Control::Snapshot`]; `None`: the database is being removed.
    Snapshot(Option<Snapshot>),
    /// To [`Control::SetRole`]: later requests are served in the new role.
    RoleSet,
    /// To [`Control::StorageStatus`]: why the last commit could not be stored; `None` if it was.
    StorageStatus(Option<StoreError>),
    /// To [`Control::Report`]: empty if the database is being removed.
    Report(Box<Report>),
}

impl Control {
    /// Whether the message replaces the database's file, history or role, or starts to. Such a
    /// message is executed once everything before it is stored.
    pub(crate) fn replaces_something(&self) -> bool {
        matches!(
            self,
            Control::Compact(_)
                | Control::Remove
                | Control::SetRole(..)
                | Control::SetHistory(_)
                | Control::WatchColumn { .. }
        )
    }

    /// The event that answers the message when its database is being removed: the sender did not
    /// know that yet. `None` if the message is not answered.
    pub(crate) fn refused(self, database: &str) -> Option<Event> {
        match self {
            Control::Compact(token) => {
                Some(Event::compacted(token, Err(database_removed(database))))
            }
            Control::Snapshot(token) => Some(Event::Answered(token, ControlAnswer::Snapshot(None))),
            Control::SetRole(_, token) => Some(Event::Answered(token, ControlAnswer::RoleSet)),
            Control::StorageStatus(token) => {
                let answer = ControlAnswer::StorageStatus(Some(database_removed(database)));
                Some(Event::Answered(token, answer))
            }
            Control::Report(token) => {
                let answer = ControlAnswer::Report(Box::default());
                Some(Event::Answered(token, answer))
            }
            Control::WatchColumn { name, .. } => {
                let error = format!("\"{name}\": no database named {database}");
                Some(Event::ColumnWatched(name, Err(error)))
            }
            Control::Transact(_)
            | Control::Remove
            | Control::EnableColumnDiff
            | Control::EnableNoDataConversion
            | Control::UnwatchColumn(_)
            | Control::SetSlow(_)
            | Control::SetAudited(_)
            | Control::SetHistory(_)
            | Control::SetRecordClients(_)
            | Control::ShowStatus(_)
            | Control::ShowIndex(_)
            | Control::LogRows(..) => None,
        }
    }
}

/// The error of a command to a database that is being removed.
pub(crate) fn database_removed(database: &str) -> StoreError {
    StoreError {
        details: format!("{database}: database removed"),
        io_error: String::new(),
    }
}

impl Event {
    /// The outcome of a compaction: the answer to the command with this number, or
    /// [`Event::Compacted`] if no command asked for it.
    pub(crate) fn compacted(token: Option<u64>, outcome: Result<(), StoreError>) -> Event {
        match token {
            Some(token) => Event::Answered(token, ControlAnswer::Compacted(outcome)),
            None => Event::Compacted(outcome),
        }
    }
}

impl ControlAnswer {
    /// The outcome of an order; `Ok` for an answer that only informs.
    ///
    /// # Errors
    /// The order was not carried out, for this reason.
    pub fn outcome(self) -> Result<(), StoreError> {
        match self {
            ControlAnswer::Compacted(outcome) => outcome,
            ControlAnswer::Snapshot(_)
            | ControlAnswer::RoleSet
            | ControlAnswer::StorageStatus(_)
            | ControlAnswer::Report(_) => Ok(()),
        }
    }
}

recorded!(SourceId);
recorded!(Following {
    id,
    server_id,
    excluded
});
recorded!(RemoteStatus {
    is_connected,
    status
});

impl Recordable for Role {
    fn write(&self, out: &mut Writer<'_>) {
        let following = match self {
            Role::Active => None,
            Role::Backup(following) => Some(&**following),
        };
        out.option(following, |out, following| following.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Role, Damage> {
        let following = from.option(Following::read)?;
        Ok(following.map_or(Role::Active, |following| Role::Backup(Box::new(following))))
    }
}

impl Recordable for Exclusions {
    fn write(&self, out: &mut Writer<'_>) {
        let tables: Vec<&str> = self.tables().collect();
        out.text(&tables.join(","));
    }

    fn read(from: &mut Reader<'_>) -> Result<Exclusions, Damage> {
        Ok(Exclusions::of("", &from.text()?))
    }
}

impl Recordable for Arc<RemoteStatuses> {
    fn write(&self, out: &mut Writer<'_>) {
        RemoteStatuses::write(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Arc<RemoteStatuses>, Damage> {
        RemoteStatuses::read(from).map(Arc::new)
    }
}

impl Recordable for AppliedIndex {
    /// Records only the database's name. The index is recorded where it is read, when it is shown.
    fn write(&self, out: &mut Writer<'_>) {
        out.text(self.database());
    }

    fn read(from: &mut Reader<'_>) -> Result<AppliedIndex, Damage> {
        Ok(AppliedIndex::new(&from.text()?, Index(0)))
    }
}
