//! Requests in flight that an installed snapshot may contain: the question about them, and the
//! effect of the answers.
//!
//! Invariant: a sought request stays sought until it is answered, returns to its earlier stage, or
//! is abandoned.

use std::collections::BTreeSet;

use corvid_consensus::database::Finding;
use corvid_log::cluster::{Eid, Index, Term};

use super::super::request_stage::{Entry, Stage};
use super::{InFlight, Number};
use crate::message::DatabaseMethod;
use crate::replies::Answer;

impl InFlight {
    /// A snapshot whose last entry has this term has been installed. Seeks the requests that may be
    /// part of it, after the entry `after`. Those of closed sessions end without a reply.
    pub(crate) fn seek(&mut self, last: Term, after: Index) {
        let entries = self.entries.iter();
        let doubtful = entries.filter(|(_, entry)| {
            // An entry of a later term than the snapshot's last entry cannot be in the snapshot.
            // Requests that are sought already have no term.
            let term = entry.stage.term();
            term.is_some_and(|term| term <= last)
        });
        let doubtful: Vec<Number> = doubtful.map(|(number, _)| *number).collect();
        for number in doubtful {
            let Some((entry, before)) = self.take(number) else {
                continue;
            };
            if entry.is_withdrawn {
                self.forget(entry.request.session, number);
                continue;
            }
            let stage = Stage::Sought {
                after,
                finding: None,
                before: Box::new(before),
            };
            self.insert(entry, stage);
        }
    }

    /// The question to ask for a snapshot through this entry: the entry after which requests are
    /// sought, and the ids of theirs. `None` if nothing is sought.
    pub(crate) fn question(&mut self, through: Index) -> Option<(Index, Vec<Eid>)> {
        let mut first: Option<Index> = None;
        let mut ids = BTreeSet::new();
        for entry in self.entries.values_mut() {
            if let Stage::Sought {
                after,
                finding,
                before,
            } = &mut entry.stage
            {
                // An entry that earlier snapshots lack may be in this one.
                finding.take_if(|finding| *finding == Finding::Absent);
                first = Some(first.map_or(*after, |first| first.min(*after)));
                ids.extend(before.id().or(before.seen()));
            }
        }
        self.sought_through = through;
        first.map(|after| (after, ids.into_iter().collect()))
    }

    /// Whether findings for a snapshot through this entry are complete.
    pub(crate) fn is_sought_through(&self, through: Index) -> bool {
        self.sought_through == through
    }

    /// The entry of a sought request is committed. Takes the request if its reply is known.
    pub(crate) fn take_found(&mut self, number: Number) -> Option<(Entry, Answer)> {
        let (entry, mut stage) = self.take(number)?;
        if let Stage::Sought {
            finding, before, ..
        } = &mut stage
        {
            // Recorded even if the reply is unknown: earlier requests of the session then know that
            // they can no longer be executed before this one.
            *finding = Some(Finding::Committed);
            if let Some(reply) = before.take_reply(entry.request.method) {
                return Some((entry, reply));
            }
        }
        self.insert(entry, stage);
        None
    }

    /// The sought request whose entry has this id.
    pub(crate) fn sought(&self, id: Eid) -> Option<Number> {
        let number = self.by_id.get(&id).copied();
        number.filter(|number| self.is_sought(*number))
    }

    /// The sought requests that have seen the entry with this id.
    pub(crate) fn sought_behind(&self, id: Eid) -> Vec<Number> {
        let seen = self.by_seen.range((id, Number(0))..);
        let seen = seen.take_while(|(after, _)| *after == id);
        let seen = seen.map(|(_, number)| *number);
        seen.filter(|number| self.is_sought(*number)).collect()
    }

    fn is_sought(&self, number: Number) -> bool {
        let entry = self.entries.get(&number);
        entry.is_some_and(|entry| matches!(entry.stage, Stage::Sought { .. }))
    }

    /// The entry of a sought request is not in the snapshot: the request returns to its earlier
    /// stage. If a later request of its session has happened, this one changed nothing, and stays
    /// sought for its outcome.
    pub(crate) fn set_absent(&mut self, number: Number) {
        let is_overtaken = self.is_overtaken(number);
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        let session = entry.request.session;
        if is_overtaken && let Stage::Sought { finding, .. } = &mut entry.stage {
            *finding = Some(Finding::Absent);
        } else if let Some((entry, stage)) = self.take(number) {
            self.insert(entry, stage.before_search());
            self.due.push(session);
        }
    }

    /// Whether a later request of the same session has happened.
    pub(crate) fn is_overtaken(&self, number: Number) -> bool {
        let entry = self.entries.get(&number);
        // A blocked request is outside the order of its session.
        let Some(entry) = entry.filter(|entry| !entry.request.blocked) else {
            return false;
        };
        let of = self.by_session.get(&entry.request.session);
        let ordered = of.into_iter().flat_map(|of| of.ordered.iter().rev());
        let mut later = ordered.take_while(|it| **it > number);
        later.any(|later| {
            let later = self.entries.get(later).map(|later| &later.stage);
            later.is_some_and(Stage::has_happened)
        })
    }

    /// An earlier transaction of the session that has not been executed, and can no longer be
    /// executed before this request.
    pub(crate) fn overtaken_by(&self, number: Number) -> Option<Number> {
        let entry = self.entries.get(&number)?;
        let of = self.by_session.get(&entry.request.session)?;
        let is_unexecuted = |number: &Number| {
            self.entries.get(number).is_some_and(|entry| {
                entry.request.method == DatabaseMethod::Transact
                    && matches!(entry.stage, Stage::Local | Stage::Waiting)
            })
        };
        let mut earlier = of.ordered.iter().copied().take_while(|it| *it < number);
        earlier.find(is_unexecuted)
    }
}
