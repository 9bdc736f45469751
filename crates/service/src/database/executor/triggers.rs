//! Blocked transactions: retried, oldest first, when rows change that they have read, and at their deadlines (docs/spec/protocol.md 4.3).
//!
//! Invariant: every blocked transaction is in `blocked` under its sequence number, in `by_session` under its session, in `by_table` or
//! `always` by its read set, and in `deadlines` if it has a deadline. Cost of a commit: the blocked transactions that it can affect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use corvid_data::TrustedKeys;
use corvid_data::{Delta, TableId};
use corvid_engine::{ReadSet, RowsRead};
use corvid_monitor::SessionId;

use crate::client_memory::{Retained, SMALL_KEPT_BYTES};
use crate::message::Request;
use crate::session_limits::{WAITS_MAX, is_exhausted};

/// A blocked transaction.
#[derive(Debug)]
pub(in super::super) struct Trigger {
    /// The request, which is executed again as a whole.
    pub(in super::super) request: Box<Request>,
    /// When to try again at the latest, ms on the monotonic clock.
    pub(in super::super) deadline_ms: Option<u64>,
    /// The rows that it read until it blocked.
    pub(in super::super) reads: ReadSet,
    /// Counts its memory.
    pub(in super::super) _retained: Retained,
}

/// Bytes of a blocked transaction besides its text and its conditions.
const TRIGGER_BYTES: usize = 512;

/// The memory of a blocked transaction, bytes.
pub(in super::super) fn trigger_bytes(request: &Request, reads: &ReadSet) -> usize {
    TRIGGER_BYTES + request.frame.len() + reads.bytes()
}

/// The blocked transactions of one session.
#[derive(Debug, Default)]
struct OfSession {
    seqnos: Vec<u64>,
    /// The length of their requests.
    bytes: usize,
}

/// Blocked transactions by their sequence number, which is the order of first execution.
#[derive(Debug, Default)]
pub(in super::super) struct Triggers {
    blocked: BTreeMap<u64, Trigger>,
    deadlines: BTreeSet<(u64, u64)>,
    by_session: HashMap<SessionId, OfSession, TrustedKeys>,
    by_table: HashMap<TableId, BTreeSet<u64>, TrustedKeys>,
    /// Transactions that any commit may affect.
    always: BTreeSet<u64>,
}

impl Triggers {
    pub(in super::super) fn len(&self) -> usize {
        self.blocked.len()
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.blocked.is_empty()
    }

    /// Whether nothing of any transaction is left behind.
    pub(in super::super) fn is_clean(&self) -> bool {
        self.blocked.is_empty()
            && self.deadlines.is_empty()
            && self.by_session.is_empty()
            && self.by_table.is_empty()
            && self.always.is_empty()
    }

    /// Whether a session keeps so little, with one more request of this length, that memory for it
    /// is never refused.
    pub(in super::super) fn is_small(&self, session: SessionId, bytes: usize) -> bool {
        let kept = self.by_session.get(&session).map_or(0, |of| of.bytes);
        kept + bytes <= SMALL_KEPT_BYTES
    }

    /// Whether a session may have one more blocked transaction, with a request of this length.
    pub(in super::super) fn admits(&self, session: SessionId, bytes: usize) -> bool {
        let found = self.by_session.get(&session);
        found.is_none_or(|of| !is_exhausted(of.seqnos.len(), WAITS_MAX, of.bytes, bytes))
    }

    pub(in super::super) fn insert(&mut self, seqno: u64, trigger: Trigger) {
        if let Some(deadline_ms) = trigger.deadline_ms {
            self.deadlines.insert((deadline_ms, seqno));
        }
        let session = trigger.request.session;
        let of = self.by_session.entry(session).or_default();
        of.seqnos.push(seqno);
        of.bytes += trigger.request.frame.len();
        match &trigger.reads {
            ReadSet::Anything => {
                self.always.insert(seqno);
            }
            ReadSet::Rows(read) => {
                for RowsRead { table, .. } in read {
                    self.by_table.entry(*table).or_default().insert(seqno);
                }
            }
        }
        self.blocked.insert(seqno, trigger);
    }

    /// Removes and returns a transaction, to be retried or dropped.
    pub(in super::super) fn remove(&mut self, seqno: u64) -> Option<Trigger> {
        let trigger = self.blocked.remove(&seqno)?;
        if let Some(deadline_ms) = trigger.deadline_ms {
            self.deadlines.remove(&(deadline_ms, seqno));
        }
        let session = trigger.request.session;
        if let Some(of) = self.by_session.get_mut(&session) {
            of.seqnos.retain(|found| *found != seqno);
            of.bytes -= trigger.request.frame.len();
            if of.seqnos.is_empty() {
                self.by_session.remove(&session);
            }
        }
        match &trigger.reads {
            ReadSet::Anything => {
                self.always.remove(&seqno);
            }
            ReadSet::Rows(read) => {
                for RowsRead { table, .. } in read {
                    if let Some(seqnos) = self.by_table.get_mut(table) {
                        seqnos.remove(&seqno);
                        if seqnos.is_empty() {
                            self.by_table.remove(table);
                        }
                    }
                }
            }
        }
        Some(trigger)
    }

    /// Removes and returns all of them, oldest first.
    pub(in super::super) fn take_all(&mut self) -> Vec<Trigger> {
        let blocked = std::mem::take(self).blocked;
        blocked.into_values().collect()
    }

    /// The transactions that a commit may unblock.
    pub(in super::super) fn affected(&self, delta: &Delta) -> BTreeSet<u64> {
        if self.is_empty() {
            return BTreeSet::new();
        }
        let mut seqnos = self.always.clone();
        for changes in delta.changes.chunk_by(|a, b| a.table == b.table) {
            let table = changes[0].table;
            let blocked = self.by_table.get(&table).into_iter().flatten();
            seqnos.extend(blocked.filter(|seqno| {
                let trigger = self.blocked.get(seqno);
                trigger.is_some_and(|trigger| trigger.reads.are_affected_by(table, changes))
            }));
        }
        seqnos
    }

    /// The transactions whose deadline has come.
    pub(in super::super) fn expired(&self, now_ms: u64) -> BTreeSet<u64> {
        self.deadlines
            .range(..=(now_ms, u64::MAX))
            .map(|(_, seqno)| *seqno)
            .collect()
    }

    /// The earliest deadline.
    pub(in super::super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    /// A session's blocked transaction with this request id.
    pub(in super::super) fn find(&self, session: SessionId, id: &[u8]) -> Option<u64> {
        let of = self.by_session.get(&session)?;
        of.seqnos.iter().copied().find(|seqno| {
            self.blocked
                .get(seqno)
                .is_some_and(|trigger| *trigger.request.id == *id)
        })
    }

    /// Drops the transactions of a closed session.
    pub(in super::super) fn remove_session(&mut self, session: SessionId) {
        let of = self.by_session.get(&session);
        for seqno in of.map(|of| of.seqnos.clone()).unwrap_or_default() {
            self.remove(seqno);
        }
    }
}
