//! The observers of a database, which only look on: counters, the audit trail, the log of slow
//! transactions, logged rows, and columns that configure remotes.
//!
//! Invariant: an observer is told what has happened and returns events and entries for operators.
//! It changes no row, no reply and no order, and nothing waits for it. So the same inputs have the
//! same replies, whichever observers are on. Observers know no file and no queue, and of a session
//! only what describes it; the commits and requests that they are shown are kept by others.

mod audit_entries;
mod row_log;
mod slow_transactions;
mod watched_columns;

use corvid_engine::Database;

use crate::barrier::{Activity, UnderWay};
use crate::counters::Counters;
use crate::replies::{Commit, Origin, Outputs};
pub(crate) use audit_entries::AuditEntries;
use row_log::RowLog;
pub(crate) use slow_transactions::SlowLog;
use watched_columns::WatchedColumns;

/// The observers of one database.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) counts: Counters,
    pub(crate) audit: AuditEntries,
    pub(crate) slow: SlowLog,
    pub(crate) row_log: RowLog,
    pub(crate) watched_columns: WatchedColumns,
}

impl Observers {
    /// Reports whether a commit has more to be read than its rows.
    pub(crate) fn report_activity(&self, activity: &mut Activity) {
        let Observers {
            counts: _,
            audit: _,
            slow: _,
            row_log: _,
            watched_columns,
        } = self;
        activity.report(UnderWay::WatchedColumns, !watched_columns.is_empty());
    }

    /// Observes that a commit is released. `database` has at least that commit.
    pub(crate) fn observe_commit(
        &mut self,
        commit: &Commit,
        date_ms: i64,
        origin: &Origin,
        database: &Database,
        outputs: &mut Outputs,
    ) {
        let (delta, schema) = (&commit.delta, database.schema());
        self.counts.committed += 1;
        let remotes = self.watched_columns.changed_by(delta, database);
        outputs.events.extend(remotes);
        outputs.events.extend(self.row_log.lines(schema, delta));
        let entry = self.audit.of_commit(schema, date_ms, origin, commit);
        outputs.audit.extend(entry);
        if let Origin::Client(request) = origin {
            let slow = self.slow.report_commit(request, delta, &schema.name);
            outputs.events.extend(slow);
        }
    }

    /// Observes that commits were undone: remotes that they had configured are reported as they are
    /// now.
    pub(crate) fn observe_undo(&mut self, database: &Database, outputs: &mut Outputs) {
        outputs
            .events
            .extend(self.watched_columns.changed(database));
    }
}
