//! Control messages: from the server's main thread to a database, and the answers.
//!
//! A control command that a database answers travels as one variant of [`Control`] with a number,
//! and comes back in [`Event::Answered`] with the same number. Everything that depends on the kind
//! of message, except its execution, is in this file: its form in a recording, whether it waits for
//! the database to be quiet, and the answer of a database that is being removed.
//!
//! Invariant: each message with a number is answered once, by the database or by
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
    /// Execute this `params` text (database name first) as the server, read-only or not; the result
    /// is checked.
    Transact(Vec<u8>),
    /// Rewrite the file without its old records; answered by [`ControlAnswer::Compacted`]. `None`:
    /// because the file has grown, which ends with [`Event::Compacted`].
    Compact(Option<u64>),
    /// Record modified columns as differences from now on (`ovsdb/file/column-diff-enable`).
    EnableColumnDiff,
    /// Propose conversions of a clustered database without their rows from now on
    /// (`ovsdb/file/no-data-conversion-enable`).
    EnableNoDataConversion,
    /// Answered by [`ControlAnswer::Snapshot`], when everything in it has been stored.
    Snapshot(u64),
    /// The database is being removed: cancel monitors and pending transactions; answered by
    /// [`Event::Removed`].
    Remove,
    /// Become active or a backup when nothing is pending; answered by [`ControlAnswer::RoleSet`].
    SetRole(Role, u64),
    /// Answered by [`ControlAnswer::StorageStatus`].
    StorageStatus(u64),
    /// Watch the remotes that a column names (`db:DB,TABLE,COLUMN`): answered by
    /// [`Event::ColumnWatched`], then reported when they change. A column that does not exist is
    /// watched too, in case a conversion adds it.
    WatchColumn {
        /// The remote's text.
        name: String,
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
        /// Whether the column must hold strings (for settings of TLS), not references to rows.
        texts_only: bool,
    },
    /// Stop watching it.
    UnwatchColumn(String),
    /// Transactions that take this long, ms, are reported from now on ([`Event::Slow`]).
    SetSlow(u64),
    /// Whether a transaction history is kept from now on; it begins anew.
    SetHistory(bool),
    /// Whether there is an audit trail from now on.
    SetAudited(bool),
    /// Answered by [`ControlAnswer::Report`].
    Report(u64),
    /// Log the rows of this table as they change, or stop. Not answered; an unknown table does no
    /// harm.
    LogRows(String, bool),
    /// Write this status to the rows behind watched columns.
    ShowStatus(Arc<RemoteStatuses>),
    /// To `_Server`: show the newest index of a clustered database.
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
}

/// The answer of a database to a [`Control`] message with a number.
#[derive(Debug)]
pub enum ControlAnswer {
    /// To [`Control::Compact`]: a crash cannot bring the old file back, or the reason why nothing
    /// was compacted.
    Compacted(Result<(), StoreError>),
    /// To [`Control::Snapshot`]; `None`: the database is being removed.
    Snapshot(Option<Snapshot>),
    /// To [`Control::SetRole`]: from here on requests are served in the new role.
    RoleSet,
    /// To [`Control::StorageStatus`]: why the last commit could not be stored.
    StorageStatus(Option<StoreError>),
    /// To [`Control::Report`]; of a database that is being removed it is empty.
    Report(Box<Report>),
}

impl Control {
    /// Whether it replaces the database's file, history or role, or begins to. It is executed when
    /// everything before it is stored.
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

    /// The event by which a database with this name that is being removed answers the message,
    /// which its sender has sent before it knew.
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
    /// The outcome of [`Control::Compact`] with this number.
    pub(crate) fn compacted(token: Option<u64>, outcome: Result<(), StoreError>) -> Event {
        match token {
            Some(token) => Event::Answered(token, ControlAnswer::Compacted(outcome)),
            None => Event::Compacted(outcome),
        }
    }
}

impl ControlAnswer {
    /// Whether an order was carried out; `Ok` of an answer that only informs.
    ///
    /// # Errors
    /// It was not, for this reason.
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
    /// The index is read when it is shown, and recorded there.
    fn write(&self, out: &mut Writer<'_>) {
        out.text(self.database());
    }

    fn read(from: &mut Reader<'_>) -> Result<AppliedIndex, Damage> {
        Ok(AppliedIndex::new(&from.text()?, Index(0)))
    }
}
