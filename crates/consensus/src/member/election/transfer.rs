//! Handing the leadership over to the most up-to-date member, and commands that wait for it
//! (docs/spec/distribution.md 1.5 and 1.11).
//!
//! Invariant: one transfer at a time is waited for. It ends when another member leads, or after an
//! election timer; its command is answered once.

use corvid_log::cluster::{Index, Sid};

use super::ticker::Ticker;
use crate::member::context::Context;
use crate::member::roster::Roster;
use crate::member::{CommandToken, Output};

/// A command, or a test, that waits for a change of leadership.
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

    /// It takes too long.
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

/// Asks the best member to lead. `false`: this member does not lead, or there is no other one.
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

/// The member that is most up to date among those that are connected: with everything, else with
/// everything committed, else any.
pub(crate) fn successor(cx: &Context, roster: &Roster, ticker: &mut Ticker) -> Option<Sid> {
    let own = cx.own();
    let commit = cx.node.commit();
    let mut best: Option<((bool, Index), Sid)> = None;
    let up: Vec<Sid> = roster
        .sids()
        .into_iter()
        .filter(|sid| *sid != own && cx.peers.takes_part(*sid))
        .collect();
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
