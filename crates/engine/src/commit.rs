//! The commit: an ordered pipeline over the touched rows (docs/spec/protocol.md 5.12), one file per
//! step, that ends in a [`Delta`].
//!
//! Invariant: until the last step only rows change. Changes in counts of strong references are
//! collected in [`Commit::strong`], and back references stay as they are. So if a step fails, the
//! transaction's rollback restores everything. The work of each step is proportional to the touched
//! rows and the references to them, not to a table.

mod finish;
mod garbage;
mod max_rows;
mod net_change;
pub(crate) mod references;
mod strong;
mod unique;
mod weak;

use corvid_data::uuid::UuidSource;
use corvid_data::{Delta, WireError};

use crate::hash::{Map, Set};
use crate::row_id::RowId;
use crate::transaction::Transaction;
use crate::work_budget::TooLong;

/// A commit in progress.
struct Commit<'t, 'd> {
    txn: &'t mut Transaction<'d>,
    /// The change in the number of strong references to each row.
    strong: Map<RowId, i64>,
    /// Rows that were deleted, explicitly or as garbage, whose weak references are not dropped yet.
    deleted: Vec<RowId>,
    /// Rows that may have become garbage and have not been checked yet.
    suspects: Vec<RowId>,
    /// Missing rows to which weak references were dropped.
    dropped: &'t mut Set<RowId>,
}

/// Why a transaction is not committed.
pub(crate) enum Refusal {
    /// The transaction breaks a rule.
    Error(WireError),
    /// The commit does not fit into the transaction's budget.
    TooLong,
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Refusal {
        Refusal::Error(error)
    }
}

impl From<TooLong> for Refusal {
    fn from(TooLong: TooLong) -> Refusal {
        Refusal::TooLong
    }
}

/// Commits, as [`commit`] does, within the transaction's budget. If that is too small, nothing has
/// changed.
pub(crate) fn commit_within(
    txn: Transaction<'_>,
    uuids: &mut dyn UuidSource,
) -> Result<Delta, Refusal> {
    let mut dropped = Set::with_hasher(txn.database.seed);
    run(txn, uuids, &mut dropped)
}

/// Commits, or returns the error and changes nothing. The delta has neither a comment nor `durable`
/// yet. The transaction must be unlimited.
///
/// # Errors
/// The first violation found, with the text of docs/spec/protocol.md 5.12.
pub(crate) fn commit(txn: Transaction<'_>, uuids: &mut dyn UuidSource) -> Result<Delta, WireError> {
    let mut dropped = Set::with_hasher(txn.database.seed);
    commit_recording_dropped(txn, uuids, &mut dropped)
}

/// Commits, as [`commit`] does, and adds to `dropped` the missing rows whose weak references it
/// removed from columns.
///
/// # Errors
/// Those of [`commit`].
pub(crate) fn commit_recording_dropped(
    txn: Transaction<'_>,
    uuids: &mut dyn UuidSource,
    dropped: &mut Set<RowId>,
) -> Result<Delta, WireError> {
    run(txn, uuids, dropped).map_err(|refusal| match refusal {
        Refusal::Error(error) => error,
        Refusal::TooLong => unreachable!("the budget is unlimited"),
    })
}

fn run(
    mut txn: Transaction<'_>,
    uuids: &mut dyn UuidSource,
    dropped: &mut Set<RowId>,
) -> Result<Delta, Refusal> {
    let mut commit = Commit {
        strong: Map::with_hasher(txn.database.seed),
        txn: &mut txn,
        deleted: Vec::new(),
        suspects: Vec::new(),
        dropped,
    };
    match commit.check() {
        Ok(()) => Ok(commit.finish(uuids)),
        Err(refusal) => {
            txn.rollback();
            Err(refusal)
        }
    }
}

impl Commit<'_, '_> {
    fn check(&mut self) -> Result<(), Refusal> {
        // The order decides which rows survive and which error a client sees (docs/spec/protocol.md
        // 5.12). Rows without a net change drop out first, so that no later step sees them.
        if !self.find_net_changes() {
            return Ok(());
        }
        // Deletions are refused before garbage is collected: references that garbage holds still
        // count.
        self.count_strong_references()?;
        self.refuse_referenced_deletions()?;
        // Garbage goes before the limits are checked, so it does not count towards them. Deleting
        // it also breaks weak references, so those are dropped after it.
        self.collect_garbage()?;
        self.check_max_rows()?;
        self.drop_weak_references()?;
        // A map pair that is dropped for its weak half may hold the last strong reference to
        // another row. That row becomes garbage, and its references go with it. The loop ends,
        // because each round deletes a row.
        while !self.suspects.is_empty() {
            self.collect_garbage()?;
            self.drop_weak_references()?;
        }
        // Only the final state must be unique, so a transaction may swap two keys.
        self.check_indexes()?;
        Ok(())
    }
}
