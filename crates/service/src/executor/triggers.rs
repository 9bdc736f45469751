//! Blocked transactions: retried, oldest first, when rows change that they have read, and at their
//! deadlines (docs/spec/protocol.md 4.3).
//!
//! Invariant: every blocked transaction is in `blocked` under its sequence number, in `by_session`
//! under its session, in `by_table` or `always` by its read set, and in `deadlines` if it has a
//! deadline. Cost of a commit: the blocked transactions that it can affect.

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
pub(crate) struct Trigger {
    /// The request, which is executed again as a whole.
    pub(crate) request: Box<Request>,
    /// When to try again at the latest, ms on the monotonic clock.
    pub(crate) deadline_ms: Option<u64>,
    /// The rows that it read until it blocked.
    pub(crate) reads: ReadSet,
    /// Counts its memory.
    pub(crate) _retained: Retained,
}

/// Bytes of a blocked transaction besides its text and its conditions.
const TRIGGER_BYTES: usize = 512;

/// The memory of a blocked transaction, bytes.
pub(crate) fn trigger_bytes(request: &Request, reads: &ReadSet) -> usize {
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
pub(crate) struct Triggers {
    blocked: BTreeMap<u64, Trigger>,
    deadlines: BTreeSet<(u64, u64)>,
    by_session: HashMap<SessionId, OfSession, TrustedKeys>,
    by_table: HashMap<TableId, BTreeSet<u64>, TrustedKeys>,
    /// Transactions that any commit may affect.
    always: BTreeSet<u64>,
}

impl Triggers {
    pub(crate) fn len(&self) -> usize {
        self.blocked.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocked.is_empty()
    }

    /// Whether nothing of any transaction is left behind.
    pub(crate) fn is_clean(&self) -> bool {
        self.blocked.is_empty()
            && self.deadlines.is_empty()
            && self.by_session.is_empty()
            && self.by_table.is_empty()
            && self.always.is_empty()
    }

    /// Whether a session keeps so little, with one more request of this length, that memory for it
    /// is never refused.
    pub(crate) fn is_small(&self, session: SessionId, bytes: usize) -> bool {
        let kept = self.by_session.get(&session).map_or(0, |of| of.bytes);
        kept + bytes <= SMALL_KEPT_BYTES
    }

    /// Whether a session may have one more blocked transaction, with a request of this length.
    pub(crate) fn admits(&self, session: SessionId, bytes: usize) -> bool {
        let found = self.by_session.get(&session);
        found.is_none_or(|of| !is_exhausted(of.seqnos.len(), WAITS_MAX, of.bytes, bytes))
    }

    pub(crate) fn insert(&mut self, seqno: u64, trigger: Trigger) {
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
        assert_eq!(
            trigger.request.seqno,
            Some(seqno),
            "a blocked transaction keeps its number"
        );
        let before = self.blocked.insert(seqno, trigger);
        assert!(before.is_none(), "a number is that of one transaction");
    }

    /// Removes and returns a transaction, to be retried or dropped.
    pub(crate) fn remove(&mut self, seqno: u64) -> Option<Trigger> {
        let trigger = self.blocked.remove(&seqno)?;
        if let Some(deadline_ms) = trigger.deadline_ms {
            let was_there = self.deadlines.remove(&(deadline_ms, seqno));
            assert!(was_there, "a deadline is kept until its transaction ends");
        }
        let session = trigger.request.session;
        if let Some(of) = self.by_session.get_mut(&session) {
            let before = of.seqnos.len();
            of.seqnos.retain(|found| *found != seqno);
            assert_eq!(
                of.seqnos.len() + 1,
                before,
                "a session has each blocked transaction once"
            );
            of.bytes -= trigger.request.frame.len();
            if of.seqnos.is_empty() {
                assert_eq!(
                    of.bytes, 0,
                    "the bytes of a session are those of its requests"
                );
                self.by_session.remove(&session);
            }
        }
        match &trigger.reads {
            ReadSet::Anything => {
                let was_there = self.always.remove(&seqno);
                assert!(
                    was_there,
                    "a transaction waits for any commit until it ends"
                );
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

    /// Checks that all indexes have the same transactions. O(blocked transactions): for
    /// simulations.
    ///
    /// # Panics
    /// They differ.
    pub(crate) fn check(&self) {
        let (mut deadlines, mut always, mut tables) = (0, 0, BTreeSet::new());
        for (seqno, trigger) in &self.blocked {
            deadlines += usize::from(trigger.deadline_ms.is_some());
            let of = self.by_session.get(&trigger.request.session);
            assert!(
                of.is_some_and(|of| of.seqnos.contains(seqno)),
                "a session knows its blocked transactions"
            );
            match &trigger.reads {
                ReadSet::Anything => always += 1,
                ReadSet::Rows(read) => {
                    tables.extend(read.iter().map(|read| (read.table, *seqno)));
                }
            }
        }
        let of_sessions = self.by_session.values();
        let counted: usize = of_sessions.clone().map(|of| of.seqnos.len()).sum();
        assert_eq!(counted, self.blocked.len(), "each is of one session");
        let bytes: usize = of_sessions.map(|of| of.bytes).sum();
        let requests = self.blocked.values().map(|trigger| &trigger.request);
        let lengths: usize = requests.map(|request| request.frame.len()).sum();
        assert_eq!(bytes, lengths, "their bytes are those of the requests");
        assert_eq!(
            deadlines,
            self.deadlines.len(),
            "each deadline is kept once"
        );
        assert_eq!(
            always,
            self.always.len(),
            "any commit retries the same ones"
        );
        let by_table: usize = self.by_table.values().map(BTreeSet::len).sum();
        assert_eq!(by_table, tables.len(), "each waits for the tables it read");
    }

    /// Removes and returns all of them, oldest first.
    pub(crate) fn take_all(&mut self) -> Vec<Trigger> {
        let blocked = std::mem::take(self).blocked;
        blocked.into_values().collect()
    }

    /// The transactions that a commit may unblock.
    pub(crate) fn affected(&self, delta: &Delta) -> BTreeSet<u64> {
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

    /// Removes and returns those that their clients may send again, oldest first.
    pub(crate) fn take_with_ids(&mut self) -> Vec<Trigger> {
        let with_ids = self.blocked.iter();
        let with_ids = with_ids.filter(|(_, trigger)| trigger.request.once.is_some());
        let seqnos: Vec<u64> = with_ids.map(|(seqno, _)| *seqno).collect();
        let taken = seqnos.into_iter().filter_map(|seqno| self.remove(seqno));
        taken.collect()
    }

    /// The transactions whose deadline has come.
    pub(crate) fn expired(&self, now_ms: u64) -> BTreeSet<u64> {
        self.deadlines
            .range(..=(now_ms, u64::MAX))
            .map(|(_, seqno)| *seqno)
            .collect()
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    /// A session's blocked transaction with this request id.
    pub(crate) fn find(&self, session: SessionId, id: &[u8]) -> Option<u64> {
        let of = self.by_session.get(&session)?;
        of.seqnos.iter().copied().find(|seqno| {
            self.blocked
                .get(seqno)
                .is_some_and(|trigger| *trigger.request.id == *id)
        })
    }

    /// Drops the transactions of a closed session.
    pub(crate) fn remove_session(&mut self, session: SessionId) {
        let of = self.by_session.get(&session);
        for seqno in of.map(|of| of.seqnos.clone()).unwrap_or_default() {
            self.remove(seqno);
        }
    }
}
