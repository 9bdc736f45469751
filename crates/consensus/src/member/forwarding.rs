//! Transactions on their way from a follower to the leader, and their outcomes on the way back.
//!
//! Each follower numbers its transactions in each term. The leader executes them in the order of
//! their numbers, each once. It keeps outcomes until the follower has them; outcomes that become
//! known in one turn leave in one message. The numbers of a process begin after a random base, so a
//! restarted follower is not mistaken for its predecessor, nor the predecessor's late messages for
//! its own. Transactions without an outcome are resent after a reconnect, and after a timeout.
//!
//! Invariant: all of this ends with the term. A transaction is executed in the term in which it was
//! forwarded, or never. This part must not know the file, snapshots or the list of members.

pub(crate) mod followers;
pub(crate) mod queue;

use std::collections::BTreeSet;

use corvid_log::cluster::{Eid, Sid, Term};

use super::context::Context;
use crate::database::{Forward, ForwardOrigin, ForwardOutcome};
use followers::{Followers, Sent};
use queue::Queue;

/// The number and id of a transaction, and its outcome.
pub(crate) type Numbered = (u64, Eid, ForwardOutcome);

/// The low bits of a number, which count from its base.
const COUNT_BITS: u32 = 32;

/// The follower's and the leader's side; the role decides which is in use.
#[derive(Debug)]
pub(crate) struct Forwarding {
    term: Term,
    queue: Queue,
    followers: Followers,
}

impl Forwarding {
    /// `random` distinguishes this process from other processes of the same member.
    pub(crate) fn new(random: u64) -> Forwarding {
        Forwarding {
            term: Term(0),
            queue: Queue::new(random),
            followers: Followers::default(),
        }
    }

    /// Starts a new term. Returns the outcomes of the old one that followers may not have received.
    pub(crate) fn restart(
        &mut self,
        term: Term,
    ) -> impl Iterator<Item = (Eid, ForwardOutcome)> + use<> {
        // If the term did not grow, a transaction resent in it would be executed twice, because its
        // outcome is forgotten here.
        assert!(
            term > self.term,
            "the term goes from {} to {term}",
            self.term
        );
        self.term = term;
        self.queue.restart();
        std::mem::take(&mut self.followers).into_outcomes()
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        self.queue.deadline_ms()
    }

    /// The database wants the leader to execute a transaction.
    pub(crate) fn forward(
        &mut self,
        cx: &mut Context,
        timer_ms: u64,
        term: Term,
        forward: Forward,
    ) {
        if term != cx.node.term() || term != self.term || cx.node.is_leader() {
            return;
        }
        self.queue.push(forward);
        self.queue.send(cx, term, timer_ms);
    }

    /// Resends every transaction without an outcome.
    pub(crate) fn resend(&mut self, cx: &mut Context, timer_ms: u64) {
        self.queue.resend(cx, self.term, timer_ms);
    }

    /// Handles a member's transactions. Returns whether this member leads their term and so accepts
    /// them.
    pub(crate) fn hear_forwards(
        &mut self,
        cx: &mut Context,
        from: Sid,
        term: Term,
        sent: Sent,
    ) -> bool {
        let is_led = term == cx.node.term() && cx.node.is_leader();
        if is_led {
            self.followers.accept(cx, from, term, sent);
        }
        is_led
    }

    /// Passes accepted transactions to the database, which leads in this term.
    pub(crate) fn execute(&mut self, cx: &mut Context, term: Term) {
        self.followers.execute(cx, term);
    }

    /// Records the outcome of a follower's transaction. Returns whether the follower still waits
    /// for it.
    pub(crate) fn keep_outcome(
        &mut self,
        cx: &mut Context,
        origin: ForwardOrigin,
        id: Eid,
        outcome: ForwardOutcome,
    ) -> bool {
        origin.term == self.term && self.followers.keep(cx, origin, id, outcome)
    }

    /// Sends the outcomes of this turn.
    pub(crate) fn send_outcomes(&mut self, cx: &mut Context) {
        self.followers.send_gathered(cx, self.term);
    }

    /// Handles outcomes from the leader.
    pub(crate) fn hear_outcomes(
        &mut self,
        cx: &mut Context,
        timer_ms: u64,
        from: Sid,
        term: Term,
        outcomes: Vec<Numbered>,
    ) {
        if term == self.term && cx.node.leader() == Some(from) {
            self.queue.hear_outcomes(cx, term, timer_ms, outcomes);
        }
    }

    /// The retained outcomes of these transactions, which this member executed for a follower in
    /// the present term.
    pub(crate) fn outcomes_of(
        &self,
        sid: Sid,
        ids: &BTreeSet<Eid>,
    ) -> impl Iterator<Item = (Eid, ForwardOutcome)> {
        self.followers.outcomes_of(sid, ids)
    }
}
