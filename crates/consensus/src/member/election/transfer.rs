//! Transferring the leadership to the most up-to-date member, and commands that wait for it
//! (docs/spec/distribution.md 1.5 and 1.11).
//!
//! Invariant: one transfer at a time is awaited. It ends when another member leads, or after an
//! election timer. Its command is answered once.

use corvid_log::cluster::{Index, Sid};

use super::ticker::Ticker;
use crate::member::context::Context;
use crate::member::roster::Roster;
use crate::member::{CommandToken, Output};

/// A command or test that waits for a change of leadership.
#[derive(Debug)]
pub(crate) struct Transfer {
    token: Option<CommandToken>,
    until_ms: u64,
    is_shutdown: bool,
}

impl Transfer {
    pub(crate) fn new(token: Option<CommandToken>, until_ms: u64, is_shutdown: bool) -> Transfer {
        Transfer {
            token,
            until_ms,
            is_shutdown,
        }
    }

    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Another member leads.
    pub(crate) fn succeed(self, cx: &mut Context) {
        self.answer(cx, Ok(String::new()));
    }

    /// The transfer has timed out.
    pub(crate) fn time_out(self, cx: &mut Context) {
        let reply = if self.is_shutdown {
            Ok(String::new())
        } else {
            Err("leadership transfer timed out.".to_owned())
        };
        self.answer(cx, reply);
    }

    fn answer(self, cx: &mut Context, reply: Result<String, String>) {
        if let Some(token) = self.token {
            cx.put(Output::CommandDone(token, reply));
        }
    }
}

/// Asks the best member to take over. Returns `false` if this member does not lead, or no other
/// member can.
pub(crate) fn hand_over(cx: &mut Context, roster: &Roster, ticker: &mut Ticker) -> bool {
    if !cx.node.is_leader() {
        return false;
    }
    if cx.node.transferee().is_some() {
        return true;
    }
    let Some(to) = successor(cx, roster, ticker) else {
        return false;
    };
    cx.node.transfer(to);
    true
}

/// The most up-to-date connected member: preferably with the most entries, and at least with
/// everything committed. Ties are broken at random.
pub(crate) fn successor(cx: &Context, roster: &Roster, ticker: &mut Ticker) -> Option<Sid> {
    let commit = cx.node.commit();
    let mut best: Option<((bool, Index), Sid)> = None;
    let others = roster.others(cx.own());
    let up: Vec<Sid> = others.filter(|sid| cx.peers.takes_part(*sid)).collect();
    let start = usize::try_from(ticker.random(up.len() as u64)).unwrap_or(0);
    for at in 0..up.len() {
        let sid = up[(start + at) % up.len()];
        let Some(progress) = cx.node.progress(sid) else {
            continue;
        };
        let rank = (progress.matched >= commit, progress.matched);
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, sid));
        }
    }
    best.map(|(_, sid)| sid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, list, sid};

    #[test]
    fn a_command_is_answered_and_a_shutdown_never_fails() {
        let mut cx = fixture::leader();
        let token = |number| Some(CommandToken(number));
        Transfer::new(token(1), 5, false).succeed(&mut cx);
        Transfer::new(token(2), 5, false).time_out(&mut cx);
        Transfer::new(token(3), 5, true).time_out(&mut cx);
        Transfer::new(None, 5, false).time_out(&mut cx);
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let replies = outputs.map(|output| match output {
            Output::CommandDone(token, reply) => (token.0, reply.is_ok()),
            other => panic!("{other:?}"),
        });
        let replies: Vec<_> = replies.collect();
        assert_eq!(replies, [(1, true), (2, false), (3, true)]);
    }

    #[test]
    fn a_member_alone_hands_over_to_nobody() {
        let mut cx = fixture::leader();
        let roster = |numbers| {
            let first = Some((Index(1), list(numbers)));
            Roster::new(first, Vec::new(), None, 0)
        };
        let mut ticker = Ticker::new(1000, 0, 7);
        assert!(!hand_over(&mut cx, &roster(&[1]), &mut ticker));
        // A listed member that is not connected cannot take over either.
        assert_eq!(successor(&cx, &roster(&[1, 2]), &mut ticker), None);
        cx.peers.admit(sid(2), true).expect("a member").is_up = true;
        let unknown = successor(&cx, &roster(&[1, 2]), &mut ticker);
        assert_eq!(unknown, None, "the algorithm does not know it yet");
    }
}
