//! The leader's side of forwarding: followers' transactions, each executed once and in its
//! follower's order, and their outcomes until the follower has them.
//!
//! Invariant: the numbers of one process of a follower are consecutive. A repeated number gets the
//! retained outcome and is not executed again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corvid_log::cluster::{Eid, Sid, Term};

use super::{COUNT_BITS, Numbered};
use crate::database::{Forward, ForwardOrigin, ForwardOutcome, MemberEvent};
use crate::member::context::Context;
use crate::message::PeerMessage;

/// Bytes of outcomes that are gathered before they are sent, within a turn.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of outcomes that the leader retains for one follower. It ignores further
/// transactions of that follower, which resends them.
const KEPT_MAX: usize = 2 * super::queue::SENT_MAX;

/// Maximum number of followers' processes that the leader tracks in a term. Beyond it, the oldest
/// ones that have ended are forgotten.
const FOLLOWERS_MAX: usize = 4096;

/// The transactions of all followers in one term.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    /// By follower and the base of its numbers.
    followers: BTreeMap<(Sid, u64), Follower>,
    /// Number of followers' processes seen so far.
    processes: u64,
    /// The base and number of each accepted transaction without an outcome, by follower and id.
    executing: BTreeMap<(Sid, Eid), (u64, u64)>,
    /// Outcomes of this turn, which leave together.
    gathered: BTreeMap<Sid, Vec<Numbered>>,
    gathered_bytes: usize,
}

/// One process of a follower, as its leader sees it.
#[derive(Debug, Default)]
struct Follower {
    /// Grows with each process, so that the oldest are known.
    order: u64,
    /// The number of the first transaction in `kept`.
    first: u64,
    /// Accepted transactions: their ids, and their outcomes once known.
    kept: VecDeque<(Eid, Option<ForwardOutcome>)>,
    /// Transactions accepted but not yet passed to the database, which may not lead yet.
    early: Vec<Forward>,
}

/// Transactions as a follower has sent them.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The number of the first transaction.
    pub(crate) first: u64,
    /// The follower has the outcomes up to this number.
    pub(crate) answered: u64,
    pub(crate) forwards: Vec<Forward>,
}

impl Followers {
    /// Accepts the transactions that come next, and resends outcomes that are already known.
    pub(crate) fn accept(&mut self, cx: &mut Context, from: Sid, term: Term, sent: Sent) {
        let base = sent.first >> COUNT_BITS << COUNT_BITS;
        if !self.followers.contains_key(&(from, base)) {
            self.end_processes(from);
            self.add_follower(from, base);
        }
        let Some(follower) = self.followers.get_mut(&(from, base)) else {
            return;
        };
        // Acknowledged outcomes go first: they make room for the transactions of this message.
        follower.drop_acknowledged(sent.answered);
        let mut again = Vec::new();
        for (number, forward) in (sent.first..).zip(sent.forwards) {
            let next = follower.first + follower.kept.len() as u64;
            // Only the next number is accepted. A gap means that a message was lost, and the
            // follower resends from there. A known number is a repetition: it gets its outcome if
            // there is one, and otherwise it is still being executed.
            if number == next && follower.kept.len() < KEPT_MAX {
                follower.kept.push_back((forward.id, None));
                self.executing.insert((from, forward.id), (base, number));
                follower.early.push(forward);
            } else if number < next && number >= follower.first {
                let at = usize::try_from(number - follower.first).unwrap_or(usize::MAX);
                if let Some((id, Some(outcome))) = follower.kept.get(at) {
                    again.push((number, *id, outcome.clone()));
                }
            }
        }
        assert!(
            follower.kept.len() <= KEPT_MAX,
            "{} outcomes are kept for a follower",
            follower.kept.len()
        );
        send_again(cx, from, term, again);
    }

    /// A new process means that the previous one has ended, and its clients with it. Its numbers
    /// stay known, so that its late messages are not executed.
    fn end_processes(&mut self, from: Sid) {
        let processes = self.followers.range_mut((from, 0)..=(from, u64::MAX));
        for (_, follower) in processes {
            follower.first += follower.kept.len() as u64;
            for (id, _) in follower.kept.drain(..) {
                self.executing.remove(&(from, id));
            }
            follower.early.clear();
        }
    }

    /// The first transaction of a process has arrived.
    fn add_follower(&mut self, from: Sid, base: u64) {
        if self.followers.len() >= FOLLOWERS_MAX {
            let ended = self.followers.iter().filter(|(_, it)| it.kept.is_empty());
            let oldest = ended.min_by_key(|(_, it)| it.order).map(|(key, _)| *key);
            if let Some(key) = oldest {
                self.followers.remove(&key);
            }
        }
        self.processes += 1;
        let follower = Follower {
            order: self.processes,
            first: base + 1,
            ..Follower::default()
        };
        self.followers.insert((from, base), follower);
    }

    /// Passes accepted transactions to the database, which leads in this term.
    pub(crate) fn execute(&mut self, cx: &mut Context, term: Term) {
        for ((sid, _), follower) in &mut self.followers {
            if !follower.early.is_empty() {
                let origin = ForwardOrigin { sid: *sid, term };
                let forwards = std::mem::take(&mut follower.early);
                cx.tell_database(MemberEvent::Execute { origin, forwards });
            }
        }
    }

    /// Records the outcome of a transaction. Returns whether the follower still waits for it.
    pub(crate) fn keep(
        &mut self,
        cx: &mut Context,
        origin: ForwardOrigin,
        id: Eid,
        outcome: ForwardOutcome,
    ) -> bool {
        let Some((base, number)) = self.executing.remove(&(origin.sid, id)) else {
            return false;
        };
        let Some(follower) = self.followers.get_mut(&(origin.sid, base)) else {
            return false;
        };
        let at = number.checked_sub(follower.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some((kept_id, kept)) = at.and_then(|at| follower.kept.get_mut(at)) else {
            return false;
        };
        // An outcome under another number would be another client's reply.
        assert!(
            *kept_id == id && kept.is_none(),
            "transaction {number} has its outcome, or another id"
        );
        *kept = Some(outcome.clone());
        self.gathered_bytes += outcome.result().map_or(0, bytes::Bytes::len);
        let outcomes = self.gathered.entry(origin.sid).or_default();
        outcomes.push((number, id, outcome));
        if self.gathered_bytes > GATHERED_BYTES_MAX {
            self.send_gathered(cx, origin.term);
        }
        true
    }

    /// Sends the outcomes of this turn, one message per follower.
    pub(crate) fn send_gathered(&mut self, cx: &mut Context, term: Term) {
        self.gathered_bytes = 0;
        for (sid, outcomes) in std::mem::take(&mut self.gathered) {
            cx.send(sid, PeerMessage::Outcomes { term, outcomes });
        }
    }

    /// Takes all outcomes that followers have not acknowledged, oldest first for each.
    pub(crate) fn into_outcomes(self) -> impl Iterator<Item = (Eid, ForwardOutcome)> {
        self.followers
            .into_values()
            .flat_map(|follower| follower.kept)
            .filter_map(|(id, outcome)| Some((id, outcome?)))
    }

    /// The retained outcomes of these transactions of a follower.
    pub(crate) fn outcomes_of(
        &self,
        sid: Sid,
        ids: &BTreeSet<Eid>,
    ) -> impl Iterator<Item = (Eid, ForwardOutcome)> {
        let of_follower = self.followers.range((sid, 0)..=(sid, u64::MAX));
        let kept = of_follower.flat_map(|(_, follower)| &follower.kept);
        let wanted = kept.filter(|(id, _)| ids.contains(id));
        wanted.filter_map(|(id, outcome)| Some((*id, outcome.clone()?)))
    }
}

impl Follower {
    /// Drops outcomes up to this number, which the follower has. A transaction without an outcome
    /// stays.
    fn drop_acknowledged(&mut self, answered: u64) {
        while self.first <= answered
            && self
                .kept
                .front()
                .is_some_and(|(_, outcome)| outcome.is_some())
        {
            self.kept.pop_front();
            self.first += 1;
        }
    }
}

/// Resends retained outcomes, in messages no longer than those of one turn: all of them together
/// might exceed what a peer accepts.
fn send_again(cx: &mut Context, to: Sid, term: Term, outcomes: Vec<Numbered>) {
    let mut part = Vec::new();
    let mut bytes = 0;
    for numbered in outcomes {
        bytes += numbered.2.result().map_or(0, bytes::Bytes::len);
        part.push(numbered);
        if bytes > GATHERED_BYTES_MAX {
            bytes = 0;
            let outcomes = std::mem::take(&mut part);
            cx.send(to, PeerMessage::Outcomes { term, outcomes });
        }
    }
    if !part.is_empty() {
        let outcomes = part;
        cx.send(to, PeerMessage::Outcomes { term, outcomes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{ClientIdentity, ForwardMethod};
    use crate::member::context::fixture::{self, sid};
    use bytes::Bytes;
    use corvid_data::Uuid;
    use corvid_log::cluster::Index;

    fn sent(first: u64, answered: u64, ids: &[u8]) -> Sent {
        let forward = |id: &u8| Forward {
            id: Eid(Uuid([*id; 16])),
            method: ForwardMethod::Transact,
            params: Bytes::from_static(br#"["D"]"#),
            client: ClientIdentity::default(),
            elapsed_ms: 0,
            once: None,
        };
        let forwards = ids.iter().map(forward).collect();
        Sent {
            first,
            answered,
            forwards,
        }
    }

    /// The ids of the transactions that the database has received since the last call.
    fn take_executed(leader: &mut Followers, cx: &mut Context) -> Vec<u8> {
        leader.execute(cx, Term(3));
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let executed = outputs.filter_map(|output| match output {
            crate::Output::Database(MemberEvent::Execute { forwards, .. }) => Some(forwards),
            _ => None,
        });
        let forwards = executed.flatten();
        forwards.map(|forward| forward.id.0.0[0]).collect()
    }

    #[test]
    fn a_transaction_that_comes_again_gets_its_outcome_and_is_not_executed_again() {
        let mut cx = fixture::leader();
        let mut leader = Followers::default();
        leader.accept(&mut cx, sid(2), Term(3), sent(1, 0, &[11, 12]));
        assert_eq!(take_executed(&mut leader, &mut cx), [11, 12]);
        let term = Term(3);
        let origin = ForwardOrigin { sid: sid(2), term };
        let outcome = ForwardOutcome::Blocked(Index(4));
        let id = Eid(Uuid([12; 16]));
        assert!(leader.keep(&mut cx, origin, id, outcome.clone()));
        assert!(!leader.keep(&mut cx, origin, id, outcome.clone()), "once");
        leader.send_gathered(&mut cx, term);
        let outcomes = vec![(2, id, outcome)];
        let message = PeerMessage::Outcomes { term, outcomes };
        let expected = [(sid(2), message)];
        assert_eq!(fixture::take_messages(&mut cx), expected);
        // The message was lost. A gap is ignored, and the next number is executed.
        leader.accept(&mut cx, sid(2), term, sent(5, 0, &[15]));
        leader.accept(&mut cx, sid(2), term, sent(1, 0, &[11, 12, 13]));
        assert_eq!(fixture::take_messages(&mut cx), expected);
        assert_eq!(take_executed(&mut leader, &mut cx), [13]);
        // Another process of the follower starts with new numbers.
        leader.accept(&mut cx, sid(2), term, sent((1 << COUNT_BITS) + 1, 0, &[21]));
        assert_eq!(take_executed(&mut leader, &mut cx), [21]);
        leader.accept(&mut cx, sid(2), term, sent(1, 0, &[11]));
        assert!(take_executed(&mut leader, &mut cx).is_empty(), "it ended");
    }

    #[test]
    fn processes_that_have_ended_are_forgotten_oldest_first() {
        let mut leader = Followers::default();
        let sid = |number: u64| Sid(corvid_data::Uuid([(number % 5) as u8 + 1; 16]));
        let base = |number: u64| (1 << 50) - (number << COUNT_BITS);
        let count = FOLLOWERS_MAX as u64;
        for number in 0..count {
            leader.add_follower(sid(number), base(number));
        }
        // The first process has a transaction that is still being executed.
        let first = leader.followers.get_mut(&(sid(0), base(0)));
        let eid = Eid(corvid_data::Uuid::ZERO);
        first.expect("a process").kept.push_back((eid, None));
        for number in count..count + 10 {
            leader.add_follower(sid(number), base(number));
        }
        assert_eq!(leader.followers.len(), FOLLOWERS_MAX);
        for number in 0..count + 10 {
            let is_known = leader.followers.contains_key(&(sid(number), base(number)));
            assert_eq!(is_known, !(1..=10).contains(&number), "{number}");
        }
    }
}
