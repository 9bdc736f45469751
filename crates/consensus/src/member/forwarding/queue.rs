//! The follower's side of forwarding: transactions on their way to the leader, until their outcomes
//! arrive.
//!
//! ```text
//! queue   | answered | sent, not answered ........ | not sent |
//!          first                                    first + sent
//! ```
//!
//! Invariant: numbers are consecutive from `first` on, and the first transaction in the queue has
//! no outcome. Transactions are sent in the order of their numbers, and at most `SENT_MAX` are in
//! flight.

use std::collections::VecDeque;

use corvid_log::cluster::Term;

use super::{COUNT_BITS, Numbered};
use crate::database::{Forward, MemberEvent};
use crate::limits;
use crate::member::context::Context;
use crate::message::PeerMessage;

/// Maximum number of transactions in flight; further ones wait.
pub(crate) const SENT_MAX: usize = 1024;
/// Bytes in flight beyond which further transactions wait.
const SENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes per millisecond that even a slow network carries.
const SLOW_BYTES_PER_MS: u64 = 4096;
/// Number of bits of a base.
const BASE_BITS: u32 = 29;

/// Transactions that this follower forwards.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The numbers of this process follow this one.
    base: u64,
    /// The number of the first transaction in `waiting`.
    first: u64,
    /// Transactions without an outcome, in order. `None`: the transaction has its outcome, but an
    /// earlier one does not.
    waiting: VecDeque<Option<Forward>>,
    /// How many of `waiting` were sent.
    sent: usize,
    sent_bytes: usize,
    /// When to resend what is in flight, ms.
    resend_ms: u64,
}

impl Queue {
    /// `random` distinguishes this process from other processes of the same member.
    pub(crate) fn new(random: u64) -> Queue {
        Queue::behind((random % (1 << BASE_BITS)) << COUNT_BITS)
    }

    fn behind(base: u64) -> Queue {
        Queue {
            base,
            first: base + 1,
            waiting: VecDeque::new(),
            sent: 0,
            sent_bytes: 0,
            resend_ms: u64::MAX,
        }
    }

    /// Starts a new term, which invalidates everything sent in the old one.
    pub(crate) fn restart(&mut self) {
        *self = Queue::behind(self.base);
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        if self.sent == 0 {
            u64::MAX
        } else {
            self.resend_ms
        }
    }

    pub(crate) fn push(&mut self, forward: Forward) {
        self.waiting.push_back(Some(forward));
    }

    /// Sends the unsent transactions that fit, if the leader is reachable.
    pub(crate) fn send(&mut self, cx: &mut Context, term: Term, timer_ms: u64) {
        let Some(leader) = cx.reachable_leader() else {
            return;
        };
        let mut first = None;
        let mut forwards = Vec::new();
        while let Some(waiting) = self.waiting.get(self.sent) {
            if self.sent >= SENT_MAX || self.sent_bytes >= SENT_BYTES_MAX {
                break;
            }
            let number = self.first + self.sent as u64;
            self.sent += 1;
            match waiting {
                Some(forward) => {
                    first.get_or_insert(number);
                    self.sent_bytes += limits::forward_bytes(forward);
                    forwards.push(forward.clone());
                }
                // Numbers in one message are consecutive.
                None if forwards.is_empty() => {}
                None => break,
            }
        }
        assert!(
            self.sent <= SENT_MAX && self.sent <= self.waiting.len(),
            "{} of {} transactions are sent",
            self.sent,
            self.waiting.len()
        );
        let Some(first) = first else { return };
        let message = PeerMessage::Forward {
            term,
            first,
            answered: self.first - 1,
            forwards,
        };
        self.delay_resend(cx, timer_ms);
        cx.send(leader, message);
    }

    /// Allows for the time in transit, so that long transactions are not taken for lost while they
    /// are in flight.
    fn delay_resend(&mut self, cx: &Context, timer_ms: u64) {
        let way_ms = self.sent_bytes as u64 / SLOW_BYTES_PER_MS;
        self.resend_ms = cx.now_ms + 2 * timer_ms + way_ms;
    }

    /// Resends every transaction without an outcome.
    pub(crate) fn resend(&mut self, cx: &mut Context, term: Term, timer_ms: u64) {
        self.sent = 0;
        self.sent_bytes = 0;
        // Each message carries the transactions between two answered ones, and has at least one.
        let mut before = usize::MAX;
        while self.sent != before {
            before = self.sent;
            self.send(cx, term, timer_ms);
        }
    }

    /// Handles outcomes from the leader: tells the database those that are news, and sends what
    /// fits now.
    pub(crate) fn hear_outcomes(
        &mut self,
        cx: &mut Context,
        term: Term,
        timer_ms: u64,
        outcomes: Vec<Numbered>,
    ) {
        for (number, id, outcome) in outcomes {
            let Some(at) = number.checked_sub(self.first) else {
                continue;
            };
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(waiting) = self.waiting.get_mut(at) else {
                continue;
            };
            if waiting.as_ref().is_some_and(|forward| forward.id == id)
                && let Some(forward) = waiting.take()
            {
                // A transaction that is queued to be resent is not counted as in flight.
                if at < self.sent {
                    self.sent_bytes -= limits::forward_bytes(&forward);
                }
                cx.tell_database(MemberEvent::Outcome { id, outcome });
            }
        }
        self.drop_answered();
        debug_assert_eq!(
            self.sent_bytes,
            self.count_sent_bytes(),
            "the bytes under way are those of the transactions"
        );
        self.delay_resend(cx, timer_ms);
        self.send(cx, term, timer_ms);
    }

    fn count_sent_bytes(&self) -> usize {
        let sent = self.waiting.iter().take(self.sent).flatten();
        sent.map(limits::forward_bytes).sum()
    }

    /// Drops answered transactions from the front, so that the first one in the queue has no
    /// outcome.
    fn drop_answered(&mut self) {
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.first += 1;
            self.sent = self.sent.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{ClientIdentity, ForwardMethod, ForwardOutcome};
    use crate::member::context::fixture;
    use bytes::Bytes;
    use corvid_data::Uuid;
    use corvid_log::cluster::{Eid, Index};

    fn forward(number: u8) -> Forward {
        Forward {
            id: Eid(Uuid([number; 16])),
            method: ForwardMethod::Transact,
            params: Bytes::from_static(br#"["D"]"#),
            client: ClientIdentity::default(),
            elapsed_ms: 0,
            once: None,
        }
    }

    /// The numbers after the base, with the ids, of each message that was put.
    fn take_sent(cx: &mut Context, base: u64) -> Vec<Vec<(u64, u8)>> {
        let sent = |message| match message {
            PeerMessage::Forward {
                first, forwards, ..
            } => {
                let numbers = first - base..;
                let ids = forwards.iter().map(|forward| forward.id.0.0[0]);
                numbers.zip(ids).collect()
            }
            other => panic!("{other:?}"),
        };
        let messages = fixture::take_messages(cx).into_iter();
        messages.map(|(_, message)| sent(message)).collect()
    }

    #[test]
    fn transactions_without_an_outcome_are_sent_again_under_their_numbers() {
        let mut cx = fixture::follower();
        let mut queue = Queue::new(5);
        let base = queue.base;
        for number in 1..=4 {
            queue.push(forward(number));
        }
        queue.send(&mut cx, Term(3), 1000);
        assert_eq!(
            take_sent(&mut cx, base),
            [vec![(1, 1), (2, 2), (3, 3), (4, 4)]]
        );
        assert_eq!(queue.deadline_ms(), 2000);
        let outcome = ForwardOutcome::Blocked(Index(1));
        let id = |number: u8| Eid(Uuid([number; 16]));
        let outcomes = vec![
            (base + 2, id(2), outcome.clone()),
            (base + 3, id(9), outcome.clone()),
            (base + 5, id(5), outcome.clone()),
        ];
        queue.hear_outcomes(&mut cx, Term(3), 1000, outcomes);
        assert!(take_sent(&mut cx, base).is_empty(), "all are under way");
        queue.resend(&mut cx, Term(3), 1000);
        let again = [vec![(1, 1)], vec![(3, 3), (4, 4)]];
        assert_eq!(take_sent(&mut cx, base), again, "the third had another id");
        let outcomes = vec![(base + 1, id(1), outcome)];
        queue.hear_outcomes(&mut cx, Term(3), 1000, outcomes);
        queue.push(forward(5));
        queue.send(&mut cx, Term(3), 1000);
        assert_eq!(take_sent(&mut cx, base), [vec![(5, 5)]]);
        queue.restart();
        assert_eq!(queue.deadline_ms(), u64::MAX);
        queue.push(forward(6));
        queue.send(&mut cx, Term(4), 1000);
        assert_eq!(take_sent(&mut cx, base), [vec![(1, 6)]], "a new term");
    }

    #[test]
    fn transactions_beyond_the_limit_wait() {
        let mut cx = fixture::follower();
        let mut queue = Queue::new(5);
        for _ in 0..=SENT_MAX {
            queue.push(forward(1));
        }
        queue.send(&mut cx, Term(3), 1000);
        let sent = take_sent(&mut cx, queue.base);
        assert_eq!(sent.concat().len(), SENT_MAX);
        assert_eq!(queue.waiting.len(), SENT_MAX + 1);
    }

    /// A transaction of half as many bytes as may be under way.
    fn long(number: u8) -> Forward {
        let params = vec![b' '; SENT_BYTES_MAX / 2];
        Forward {
            params: Bytes::from(params),
            ..forward(number)
        }
    }

    fn answer(queue: &mut Queue, cx: &mut Context, number: u8) {
        let id = Eid(Uuid([number; 16]));
        let outcome = ForwardOutcome::Blocked(Index(1));
        let outcomes = vec![(queue.base + u64::from(number), id, outcome)];
        queue.hear_outcomes(cx, Term(3), 1000, outcomes);
    }

    #[test]
    fn bytes_that_are_answered_make_room() {
        let mut cx = fixture::follower();
        let mut queue = Queue::new(5);
        for number in 1..=4 {
            queue.push(long(number));
        }
        queue.send(&mut cx, Term(3), 1000);
        let base = queue.base;
        assert_eq!(take_sent(&mut cx, base), [vec![(1, 1), (2, 2)]]);
        // Out of order: the first one still counts, the second does not.
        answer(&mut queue, &mut cx, 2);
        assert_eq!(take_sent(&mut cx, base), [vec![(3, 3)]]);
        answer(&mut queue, &mut cx, 1);
        assert_eq!(take_sent(&mut cx, base), [vec![(4, 4)]]);
        answer(&mut queue, &mut cx, 3);
        answer(&mut queue, &mut cx, 4);
        assert_eq!((queue.sent, queue.sent_bytes), (0, 0));
        assert_eq!(queue.deadline_ms(), u64::MAX);
    }

    #[test]
    fn an_outcome_of_a_transaction_that_is_not_sent_again_yet_changes_no_account() {
        let mut cx = fixture::follower();
        let mut queue = Queue::new(5);
        for number in 1..=3 {
            queue.push(long(number));
        }
        queue.send(&mut cx, Term(3), 1000);
        take_sent(&mut cx, queue.base);
        // Nothing can be sent again: the connection is gone. Its last message arrives all the same.
        cx.peers
            .admit(fixture::sid(2), true)
            .expect("a member")
            .is_up = false;
        queue.resend(&mut cx, Term(3), 1000);
        assert_eq!((queue.sent, queue.sent_bytes), (0, 0));
        answer(&mut queue, &mut cx, 1);
        assert_eq!((queue.sent, queue.sent_bytes), (0, 0));
        cx.peers
            .admit(fixture::sid(2), true)
            .expect("a member")
            .is_up = true;
        queue.send(&mut cx, Term(3), 1000);
        let base = queue.base;
        assert_eq!(take_sent(&mut cx, base), [vec![(2, 2), (3, 3)]]);
        answer(&mut queue, &mut cx, 2);
        answer(&mut queue, &mut cx, 3);
        assert_eq!((queue.sent, queue.sent_bytes), (0, 0));
    }
}
