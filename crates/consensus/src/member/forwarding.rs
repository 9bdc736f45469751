//! Transactions on their way from a follower to the leader, and their outcomes on the way back.
//!
//! Each follower numbers its transactions in each term. The leader executes them in the order of their numbers and each once; it keeps
//! outcomes until the follower has them, and those that become known in one turn leave in one message. The numbers of a process begin behind
//! a random base, so that one that starts again within a term is not taken for the one before, nor late messages of that one for its own. Transactions without an outcome are sent again when a
//! connection is made again, and after a time. All of it ends with the term.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corvid_log::cluster::{Eid, Sid, Term};

use super::{Member, Output};
use crate::database::{Forward, ForwardOrigin, ForwardOutcome, MemberEvent};
use crate::limits;
use crate::message::PeerMessage;

/// Transactions that a follower has sent and that are not answered; further ones wait.
const SENT_MAX: usize = 1024;
/// Bytes of them.
const SENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A slow network carries so many bytes in a millisecond.
const SLOW_BYTES_PER_MS: u64 = 4096;
/// Bytes of outcomes that wait for the others of their turn.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;
/// Outcomes that the leader keeps for one follower; beyond it ignores further transactions of that follower, which sends them again.
const KEPT_MAX: usize = 2 * SENT_MAX;

/// Processes of followers whose numbers the leader keeps in a term, beyond which it forgets the ones that began first and have ended.
const FOLLOWERS_MAX: usize = 4096;

/// Both sides; which one is used depends on the role.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    term: Term,
    /// The numbers of this process begin behind this one.
    base: u64,
    /// The number of the first transaction in `queue`.
    first: u64,
    /// Transactions without an outcome, in order; `None`: has its outcome, but one before it has not.
    queue: VecDeque<Option<Forward>>,
    /// How many of `queue` were sent.
    sent: usize,
    sent_bytes: usize,
    /// When what was sent is sent again, ms.
    resend_ms: u64,
    /// By follower and the base of its numbers.
    followers: BTreeMap<(Sid, u64), Follower>,
    /// Processes of followers so far.
    processes: u64,
    /// The base and the number of accepted transactions without an outcome, by follower and id.
    executing: BTreeMap<(Sid, Eid), (u64, u64)>,
    /// Outcomes of this turn, which leave together.
    gathered: BTreeMap<Sid, Vec<Numbered>>,
    gathered_bytes: usize,
}

/// An outcome with the number and the id of its transaction.
type Numbered = (u64, Eid, ForwardOutcome);

/// Bits of a number behind its base.
const COUNT_BITS: u32 = 32;
/// Bits of a base.
const BASE_BITS: u32 = 29;

/// A follower, as its leader sees it.
#[derive(Debug, Default)]
struct Follower {
    /// Grows with each process, so that the first ones are known.
    order: u64,
    /// The number of the first in `kept`.
    first: u64,
    /// Transactions that were accepted: their ids, and their outcomes once known.
    kept: VecDeque<(Eid, Option<ForwardOutcome>)>,
    /// Accepted before the database was told that it leads.
    early: Vec<Forward>,
}

impl Forwarding {
    /// `random` tells this process from others of the same member.
    pub(super) fn new(random: u64) -> Forwarding {
        Forwarding {
            base: (random % (1 << BASE_BITS)) << COUNT_BITS,
            ..Forwarding::default()
        }
    }

    /// A new term: nothing of the old one is true any more.
    pub(super) fn restart(&mut self, term: Term) {
        *self = Forwarding {
            term,
            base: self.base,
            first: self.base + 1,
            resend_ms: u64::MAX,
            ..Forwarding::default()
        };
    }

    pub(super) fn deadline_ms(&self) -> u64 {
        if self.sent == 0 {
            u64::MAX
        } else {
            self.resend_ms
        }
    }

    /// Takes all outcomes that followers have not acknowledged, oldest first for each.
    pub(super) fn take_outcomes(&mut self) -> impl Iterator<Item = (Eid, ForwardOutcome)> + use<> {
        let followers = std::mem::take(&mut self.followers).into_values();
        followers
            .flat_map(|follower| follower.kept)
            .filter_map(|(id, outcome)| Some((id, outcome?)))
    }

    /// The outcomes of these transactions, which this member executed for a follower in the present term, as far as they are kept.
    pub(super) fn outcomes_of(
        &self,
        sid: Sid,
        ids: &BTreeSet<Eid>,
    ) -> impl Iterator<Item = (Eid, ForwardOutcome)> {
        let of_follower = self.followers.range((sid, 0)..=(sid, u64::MAX));
        let kept = of_follower.flat_map(|(_, follower)| &follower.kept);
        let wanted = kept.filter(|(id, _)| ids.contains(id));
        wanted.filter_map(|(id, outcome)| Some((*id, outcome.clone()?)))
    }

    /// The first transaction of a process has come.
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

    /// The first number without an outcome is the one of `first`, because answered ones are dropped from the front.
    fn drop_answered(&mut self) {
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
            self.sent = self.sent.saturating_sub(1);
        }
    }
}

impl Member {
    /// The database wants the leader to execute a transaction.
    pub(super) fn forward(&mut self, term: Term, forward: Forward) {
        if term != self.node.term() || term != self.forwarding.term || self.node.is_leader() {
            return;
        }
        self.forwarding.queue.push_back(Some(forward));
        self.send_forwards();
    }

    /// Sends what was not sent and fits.
    pub(super) fn send_forwards(&mut self) {
        let Some(leader) = self.reachable_leader() else {
            return;
        };
        let resend_ms = self.now_ms + 2 * self.ticker.timer_ms();
        let forwarding = &mut self.forwarding;
        let mut first = None;
        let mut forwards = Vec::new();
        while let Some(waiting) = forwarding.queue.get(forwarding.sent) {
            if forwarding.sent >= SENT_MAX || forwarding.sent_bytes >= SENT_BYTES_MAX {
                break;
            }
            let number = forwarding.first + forwarding.sent as u64;
            forwarding.sent += 1;
            match waiting {
                Some(forward) => {
                    first.get_or_insert(number);
                    forwarding.sent_bytes += limits::forward_bytes(forward);
                    forwards.push(forward.clone());
                }
                // Numbers in one message follow one another.
                None if forwards.is_empty() => {}
                None => break,
            }
        }
        let Some(first) = first else { return };
        let message = PeerMessage::Forward {
            term: forwarding.term,
            first,
            answered: forwarding.first - 1,
            forwards,
        };
        // Long ones are still on their way when short ones would be taken for lost.
        let way_ms = forwarding.sent_bytes as u64 / SLOW_BYTES_PER_MS;
        forwarding.resend_ms = resend_ms + way_ms;
        self.send(leader, message);
    }

    /// Sends everything again that has no outcome.
    pub(super) fn resend_forwards(&mut self) {
        self.forwarding.sent = 0;
        self.forwarding.sent_bytes = 0;
        // One message carries what lies between answered ones; each has at least one transaction.
        let mut before = usize::MAX;
        while self.forwarding.sent != before {
            before = self.forwarding.sent;
            self.send_forwards();
        }
    }

    /// A follower has sent transactions.
    pub(super) fn forwards_received(
        &mut self,
        from: Sid,
        term: Term,
        first: u64,
        answered: u64,
        forwards: Vec<Forward>,
    ) {
        if term != self.node.term() || !self.node.is_leader() || !self.membership.contains(from) {
            return;
        }
        let base = first >> COUNT_BITS << COUNT_BITS;
        let followers = &mut self.forwarding.followers;
        if !followers.contains_key(&(from, base)) {
            // The process before has ended, and its clients with it. Its numbers stay known.
            for (_, follower) in followers.range_mut((from, 0)..=(from, u64::MAX)) {
                follower.first += follower.kept.len() as u64;
                for (id, _) in follower.kept.drain(..) {
                    self.forwarding.executing.remove(&(from, id));
                }
                follower.early.clear();
            }
            self.forwarding.add_follower(from, base);
        }
        let followers = &mut self.forwarding.followers;
        let Some(follower) = followers.get_mut(&(from, base)) else {
            return;
        };
        while follower.first <= answered
            && follower
                .kept
                .front()
                .is_some_and(|(_, outcome)| outcome.is_some())
        {
            follower.kept.pop_front();
            follower.first += 1;
        }
        let mut again = Vec::new();
        for (number, forward) in (first..).zip(forwards) {
            let next = follower.first + follower.kept.len() as u64;
            if number == next && follower.kept.len() < KEPT_MAX {
                follower.kept.push_back((forward.id, None));
                let executing = &mut self.forwarding.executing;
                executing.insert((from, forward.id), (base, number));
                follower.early.push(forward);
            } else if number < next && number >= follower.first {
                let at = usize::try_from(number - follower.first).unwrap_or(usize::MAX);
                if let Some((id, Some(outcome))) = follower.kept.get(at) {
                    again.push((number, *id, outcome.clone()));
                }
            }
        }
        self.send_outcomes_again(from, term, again);
        self.execute_forwards();
    }

    /// Sends kept outcomes, in messages that are no longer than those of one turn: all of them
    /// together may be longer than a peer takes.
    fn send_outcomes_again(&mut self, to: Sid, term: Term, outcomes: Vec<Numbered>) {
        let mut part = Vec::new();
        let mut bytes = 0;
        for numbered in outcomes {
            bytes += numbered.2.result().map_or(0, bytes::Bytes::len);
            part.push(numbered);
            if bytes > GATHERED_BYTES_MAX {
                bytes = 0;
                let outcomes = std::mem::take(&mut part);
                self.send(to, PeerMessage::Outcomes { term, outcomes });
            }
        }
        if !part.is_empty() {
            let outcomes = part;
            self.send(to, PeerMessage::Outcomes { term, outcomes });
        }
    }

    /// Passes accepted transactions to the database, once it leads.
    pub(super) fn execute_forwards(&mut self) {
        let Some(term) = self.announced_term() else {
            return;
        };
        for ((sid, _), follower) in &mut self.forwarding.followers {
            if !follower.early.is_empty() {
                let origin = ForwardOrigin { sid: *sid, term };
                let forwards = std::mem::take(&mut follower.early);
                let event = MemberEvent::Execute { origin, forwards };
                self.outputs.push_back(Output::Database(event));
            }
        }
    }

    /// The database has executed a transaction of a follower.
    pub(super) fn outcome(&mut self, origin: ForwardOrigin, id: Eid, outcome: ForwardOutcome) {
        if origin.term != self.forwarding.term {
            return;
        }
        let forwarding = &mut self.forwarding;
        let Some((base, number)) = forwarding.executing.remove(&(origin.sid, id)) else {
            return;
        };
        let Some(follower) = forwarding.followers.get_mut(&(origin.sid, base)) else {
            return;
        };
        let at = number.checked_sub(follower.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some((_, kept)) = at.and_then(|at| follower.kept.get_mut(at)) else {
            return;
        };
        *kept = Some(outcome.clone());
        // The follower answers its client when it has applied what the outcome is based on.
        self.notice.await_through(self.node.last_index());
        let forwarding = &mut self.forwarding;
        forwarding.gathered_bytes += outcome.result().map_or(0, bytes::Bytes::len);
        let outcomes = forwarding.gathered.entry(origin.sid).or_default();
        outcomes.push((number, id, outcome));
        if forwarding.gathered_bytes > GATHERED_BYTES_MAX {
            self.send_outcomes();
        }
    }

    /// Sends the outcomes of this turn: one message to each follower.
    pub(super) fn send_outcomes(&mut self) {
        let forwarding = &mut self.forwarding;
        forwarding.gathered_bytes = 0;
        let term = forwarding.term;
        for (sid, outcomes) in std::mem::take(&mut forwarding.gathered) {
            self.send(sid, PeerMessage::Outcomes { term, outcomes });
        }
    }

    /// The leader has answered.
    pub(super) fn outcomes_received(&mut self, from: Sid, term: Term, outcomes: Vec<Numbered>) {
        if term != self.forwarding.term || self.node.leader() != Some(from) {
            return;
        }
        for (number, id, outcome) in outcomes {
            let Some(at) = number.checked_sub(self.forwarding.first) else {
                continue;
            };
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(waiting) = self.forwarding.queue.get_mut(at) else {
                continue;
            };
            if waiting.as_ref().is_some_and(|forward| forward.id == id)
                && let Some(forward) = waiting.take()
            {
                let bytes = limits::forward_bytes(&forward);
                self.forwarding.sent_bytes = self.forwarding.sent_bytes.saturating_sub(bytes);
                let event = MemberEvent::Outcome { id, outcome };
                self.outputs.push_back(Output::Database(event));
            }
        }
        self.forwarding.drop_answered();
        let way_ms = self.forwarding.sent_bytes as u64 / SLOW_BYTES_PER_MS;
        self.forwarding.resend_ms = self.now_ms + 2 * self.ticker.timer_ms() + way_ms;
        self.send_forwards();
    }

    /// The leader, if messages can be sent to it.
    pub(super) fn reachable_leader(&self) -> Option<Sid> {
        let leader = self.node.leader()?;
        (leader != self.settings.sid && self.is_up(leader)).then_some(leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_ended_are_forgotten_oldest_first() {
        let mut forwarding = Forwarding::new(1);
        let sid = |number: u64| Sid(corvid_data::Uuid([(number % 5) as u8 + 1; 16]));
        let base = |number: u64| (1 << 50) - (number << COUNT_BITS);
        let count = FOLLOWERS_MAX as u64;
        for number in 0..count {
            forwarding.add_follower(sid(number), base(number));
        }
        // The first one has a transaction that is executed.
        let first = forwarding.followers.get_mut(&(sid(0), base(0)));
        let eid = Eid(corvid_data::Uuid::ZERO);
        first.expect("a process").kept.push_back((eid, None));
        for number in count..count + 10 {
            forwarding.add_follower(sid(number), base(number));
        }
        assert_eq!(forwarding.followers.len(), FOLLOWERS_MAX);
        for number in 0..count + 10 {
            let is_known = forwarding
                .followers
                .contains_key(&(sid(number), base(number)));
            assert_eq!(is_known, !(1..=10).contains(&number), "{number}");
        }
    }
}
