//! The commit: an ordered pipeline over the touched rows (docs/spec/protocol.md 5.12), one step per file, that ends in a [`Delta`].
//!
//! Invariant: until the last step only rows are changed. Changes in counts of strong references are collected in
//! [`Commit::strong`], and back references are not changed, so a failing step needs only the transaction's rollback.
//! Every step's work is proportional to the touched rows and the references to them, not to a table.

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
    /// Rows deleted, explicitly or as garbage, for which the weak references to them are not dropped yet.
    deleted: Vec<RowId>,
    /// Rows that may have become garbage and have not been checked yet.
    suspects: Vec<RowId>,
    /// Rows to which weak references were dropped.
    dropped: &'t mut Set<RowId>,
}

/// The reasons for which a transaction is not committed.
pub(crate) enum Refusal {
    /// It breaks a rule.
    Error(WireError),
    /// It does not fit into the budget of its transaction.
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

/// [`commit`] within the transaction's budget. If it is too long, nothing has changed.
pub(crate) fn commit_within(
    txn: Transaction<'_>,
    uuids: &mut dyn UuidSource,
) -> Result<Delta, Refusal> {
    let mut dropped = Set::with_hasher(txn.database.seed);
    run(txn, uuids, &mut dropped)
}

/// Commits, or returns the error and changes nothing. The delta has no comment and no `durable` yet. The transaction
/// must be unlimited.
///
/// # Errors
/// The first violation found, in the words of docs/spec/protocol.md 5.12.
pub(crate) fn commit(txn: Transaction<'_>, uuids: &mut dyn UuidSource) -> Result<Delta, WireError> {
    let mut dropped = Set::with_hasher(txn.database.seed);
    commit_recording_dropped(txn, uuids, &mut dropped)
}

/// [`commit`] that adds to `dropped` the absent rows whose weak references it removed from columns.
///
/// # Errors
/// As [`commit`].
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
        if !self.find_net_changes() {
            return Ok(());
        }
        self.count_strong_references()?;
        self.refuse_referenced_deletions()?;
        self.collect_garbage()?;
        self.check_max_rows()?;
        self.drop_weak_references()?;
        // A pair that is dropped for its weak half may hold the last strong reference to another row. That row becomes
        // garbage, and its references go with it.
        while !self.suspects.is_empty() {
            self.collect_garbage()?;
            self.drop_weak_references()?;
        }
        self.check_indexes()?;
        Ok(())
    }
}
