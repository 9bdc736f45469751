//! Compares a leader's statements about its log with what this member knows to be committed.
//!
//! A leader has every committed entry, so its log equals this member's up to the commit index. If
//! the two differ, files have lost entries: either the leader and its voters once had them, or this
//! member's file is not its own. Either way two histories exist, and one member must not take part
//! in both.
//!
//! ```text
//! this member   1 1 1 1 1          committed through 5
//! leader        1 1 1 2 2 2        elected by members whose files lost entries 4 and 5
//!                     ^ an append that names entry 4, as its position or among its entries
//! ```
//!
//! The library compares only past the commit index, and answers anything older with the commit
//! index itself. So this comparison must come before the library sees the message.
//!
//! Invariant: only statements of a leader of this or a later term are compared. An older leader may
//! still send entries that were never committed.

use std::fmt::Debug;

use corvid_log::cluster::{Eid, Index, Sid, Term};

use super::{GuardView, Refusal};
use crate::entry::EntryBody;
use crate::message::SnapshotMeta;

/// The committed part of a member's log.
pub trait CommittedLog: Debug {
    /// The last committed entry.
    fn commit(&self) -> Index;
    /// The entry before the first one in memory. Of earlier entries, only a bound of the term is
    /// known: this entry's term. Never after the commit index.
    fn boundary(&self) -> (Index, Term);
    /// The term of the boundary's entry, or of an entry in memory.
    fn term(&self, index: Index) -> Option<Term>;
    /// The transaction id of an entry in memory, if it commits a transaction.
    fn eid(&self, index: Index) -> Option<Eid>;
}

/// A difference between this member's committed log and its leader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The entry at which the logs differ.
    pub index: Index,
    /// Its term in this member's log, or the term of a later entry, which is an upper bound.
    pub own: Term,
    /// Its term in the leader's log.
    pub leader: Term,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Divergence { index, own, leader } = self;
        if own == leader {
            write!(
                f,
                "this member has committed another entry {index} of term {own} than its leader"
            )
        } else {
            write!(
                f,
                "this member has committed entry {index} in term {own}, but its leader has one of term {leader} there"
            )
        }
    }
}

/// Checks the position of an append, and those of its entries that this member has committed.
pub(super) fn check_append(
    view: &GuardView<'_>,
    (prev_index, prev_term): (Index, Term),
    entries: &[(Term, EntryBody)],
) -> Result<(), Refusal> {
    let commit = view.log.commit();
    check_entry(view.log, prev_index, prev_term, None)?;
    // Past the commit index the library compares.
    let committed = usize::try_from(commit.0.saturating_sub(prev_index.0)).unwrap_or(usize::MAX);
    let mut index = prev_index;
    for (term, body) in entries.iter().take(committed) {
        index = index.next();
        check_entry(view.log, index, *term, Some(body))?;
    }
    Ok(())
}

/// Checks the last entry of a snapshot that the leader offers.
pub(super) fn check_snapshot(view: &GuardView<'_>, snapshot: &SnapshotMeta) -> Result<(), Refusal> {
    let (index, term) = (snapshot.index, snapshot.term);
    check_entry(view.log, index, term, None)?;
    // Terms do not decrease along a log. A later entry with an earlier term belongs to another log.
    let commit = view.log.commit();
    match view.log.term(commit) {
        Some(own) if index > commit && term < own => Err(Refusal::Diverged(Divergence {
            index: commit,
            own,
            leader: term,
        })),
        _ => Ok(()),
    }
}

/// Checks the commit index of a candidate or voter against an entry that this member has committed
/// too. It is unknown which of the two is right, so neither stops; but they must not elect a leader
/// together.
pub(super) fn check_history(
    view: &GuardView<'_>,
    from: Sid,
    (commit, commit_term): (Index, Term),
) -> Result<(), Refusal> {
    // A reply that grants a vote names no commit index.
    if commit == Index(0) || commit_term == Term(0) {
        return Ok(());
    }
    match check_entry(view.log, commit, commit_term, None) {
        Err(Refusal::Diverged(Divergence { index, own, leader })) => Err(Refusal::OtherHistory {
            from,
            index,
            own,
            theirs: leader,
        }),
        other => other,
    }
}

fn check_entry(
    log: &dyn CommittedLog,
    index: Index,
    term: Term,
    body: Option<&EntryBody>,
) -> Result<(), Refusal> {
    if index > log.commit() {
        return Ok(());
    }
    let (boundary, boundary_term) = log.boundary();
    let (own, is_same) = match log.term(index) {
        Some(own) => (own, own == term),
        // The entry is no longer in memory. Terms do not decrease along a log, so its term was at
        // most this.
        None if index < boundary => (boundary_term, term <= boundary_term),
        None => return Ok(()),
    };
    // Equal terms do not suffice: members whose files lost their votes too may have used a term
    // twice.
    let is_same_commit = || {
        let theirs = body.and_then(EntryBody::as_commit).map(|(eid, _)| eid);
        match (log.eid(index), theirs) {
            (Some(own), Some(theirs)) => own == theirs,
            _ => true,
        }
    };
    if is_same && is_same_commit() {
        return Ok(());
    }
    Err(Refusal::Diverged(Divergence {
        index,
        own,
        leader: term,
    }))
}
