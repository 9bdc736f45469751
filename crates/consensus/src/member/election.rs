//! Elections: when this member stands for one, how long it leads, to whom it transfers the
//! leadership, and what others are told of its role.
//!
//! | File | Owns |
//! |---|---|
//! | `ticker.rs` | ticks and election timeouts |
//! | `lease.rs` | how long a leader leads without a majority |
//! | `succession.rs` | elections before the timeout, when the leader's process is gone |
//! | `transfer.rs` | leadership transfers |
//! | `view.rs` | role, term and leader as the database, `_Server` and the log were told |
//!
//! Invariant: this part decides only timing and hints. Votes and terms belong to the algorithm.
//! Every change of role draws a new timeout from this member's seed. This part must not know the
//! file, snapshots or transactions.

pub(crate) mod lease;
pub(crate) mod succession;
pub(crate) mod ticker;
pub(crate) mod transfer;
pub(crate) mod view;

use corvid_log::cluster::{Sid, Term};
use corvid_rpc::Level;

use super::context::Context;
use super::roster::Roster;
use super::{CommandToken, Rehearsal, Repeated, Role};
use crate::message::PeerMessage;
use lease::Lease;
use succession::Succession;
use ticker::Ticker;
use transfer::Transfer;
use view::{RoleChange, View};

/// Timing of elections and leadership.
#[derive(Debug)]
pub(crate) struct Election {
    pub(crate) ticker: Ticker,
    pub(crate) lease: Lease,
    pub(crate) view: View,
    /// Set while the leader's process is known to be gone.
    succession: Option<Succession>,
    transfer: Option<Transfer>,
    rehearsal: Rehearsal,
}

impl Election {
    pub(crate) fn new(own: Sid, ticker: Ticker, now_ms: u64) -> Election {
        Election {
            ticker,
            lease: Lease::new(own),
            view: View::new(now_ms),
            succession: None,
            transfer: None,
            rehearsal: Rehearsal::None,
        }
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        let transfer = self.transfer.as_ref().map_or(u64::MAX, Transfer::until_ms);
        let succession = self
            .succession
            .as_ref()
            .map_or(u64::MAX, Succession::next_ms);
        self.ticker.next_ms().min(transfer).min(succession)
    }

    /// The election timer, ms.
    pub(crate) fn timer_ms(&self) -> u64 {
        self.ticker.timer_ms()
    }

    /// The term in which the database has been told that it leads, if this member still leads in
    /// it.
    pub(crate) fn announced_term(&self, cx: &Context) -> Option<Term> {
        let term = self.view.told_term()?;
        (cx.node.is_leader() && cx.node.term() == term).then_some(term)
    }

    /// Draws a new election timeout.
    pub(crate) fn draw_timeout(&mut self, cx: &mut Context) {
        let ticks = self.ticker.draw();
        cx.node.set_timeout(ticks);
    }

    /// Stands for election at once, as the only voter.
    pub(crate) fn stand_alone(&mut self, cx: &mut Context) {
        self.view.begin_election(cx.now_ms, false);
        cx.node.campaign();
        // The reference logs the same, because its timer has run since the machine started.
        let (term, now_ms) = (cx.node.term(), cx.now_ms);
        let text = format!("term {term}: {now_ms} ms timeout expired, starting election (vote)");
        cx.log_repeated(Level::Info, Repeated::Timeout, text);
    }

    /// Advances the algorithm by one tick.
    pub(crate) fn tick(&mut self, cx: &mut Context, roster: &Roster) {
        let was_leader = cx.node.is_leader();
        if cx.node.tick() && !was_leader {
            self.draw_timeout(cx);
            self.view.time_out(cx);
        }
        // The lease is checked after the algorithm's own tick, so a leadership that this tick began
        // or ended is judged by its new state.
        let leads = was_leader && cx.node.is_leader();
        let voters = roster.members().map(|(sid, _)| sid);
        if self.lease.tick(leads, voters) {
            let (term, timer_ms) = (cx.node.term(), self.timer_ms());
            let text = format!(
                "term {term}: no majority of the servers has answered for {timer_ms} ms, so this server steps down"
            );
            cx.log(Level::Info, text);
            cx.node.step_down();
        }
        cx.node.forget_known();
        self.lease.end_tick(cx.node.commit());
    }

    /// This peer's process is gone. If it led, an election need not wait for the timeout.
    pub(crate) fn note_refused(&mut self, cx: &mut Context, roster: &Roster, sid: Sid) {
        let is_delayed = self.rehearsal == Rehearsal::DelayElections;
        if cx.node.leader() != Some(sid) || cx.peers.is_up(sid) || is_delayed {
            return;
        }
        self.succession = Some(Succession::begin(cx, roster, &mut self.ticker, sid));
    }

    /// Another member stands for election.
    pub(crate) fn note_candidacy(&mut self, cx: &Context, message: &PeerMessage) {
        if let Some(succession) = &mut self.succession {
            succession.note_candidacy(cx, message);
        }
    }

    /// Ends a transfer that takes too long.
    pub(crate) fn transfer_time(&mut self, cx: &mut Context) {
        let now_ms = cx.now_ms;
        if let Some(transfer) = self.transfer.take_if(|it| it.until_ms() <= now_ms) {
            transfer.time_out(cx);
        }
    }

    /// Begins an election because the leader's process is gone, if it is time.
    pub(crate) fn succession_time(&mut self, cx: &mut Context) {
        let now_ms = cx.now_ms;
        let Some(succession) = self.succession.as_mut().filter(|it| it.next_ms() <= now_ms) else {
            return;
        };
        if succession.is_over(cx) {
            self.succession = None;
            return;
        }
        let (begins, is_last) = succession.attempt(cx, &mut self.ticker);
        if is_last {
            self.succession = None;
        }
        if begins {
            self.view.begin_election(now_ms, false);
            view::log_election(cx, "pre-vote");
            cx.node.campaign();
        }
    }

    /// Role, term or leader has changed: logs it, draws a new timeout, and completes a transfer
    /// that succeeded.
    pub(crate) fn adopt(&mut self, cx: &mut Context, roster: &Roster, change: RoleChange) {
        self.view.adopt(cx, roster, change);
        self.draw_timeout(cx);
        let is_done = !cx.node.is_leader() && cx.node.leader().is_some();
        if let Some(transfer) = self.transfer.take_if(|_| is_done) {
            transfer.succeed(cx);
        }
    }

    /// Asks the best member to take over. Returns `false` if this member does not lead, or no other
    /// member can.
    pub(crate) fn hand_over(&mut self, cx: &mut Context, roster: &Roster) -> bool {
        transfer::hand_over(cx, roster, &mut self.ticker)
    }

    /// The member best suited to lead after this one.
    pub(crate) fn successor(&mut self, cx: &Context, roster: &Roster) -> Option<Sid> {
        transfer::successor(cx, roster, &mut self.ticker)
    }

    /// Whether a command waits for a transfer.
    pub(crate) fn is_transferring(&self) -> bool {
        self.transfer.is_some()
    }

    /// Waits for the transfer that was begun, for at most one election timer.
    pub(crate) fn await_transfer(
        &mut self,
        cx: &Context,
        token: Option<CommandToken>,
        is_shutdown: bool,
    ) {
        let until_ms = cx.now_ms + self.timer_ms();
        self.transfer = Some(Transfer::new(token, until_ms, is_shutdown));
    }

    /// Sets the failure to provoke from now on (`cluster/failure-test`), or none.
    pub(crate) fn set_rehearsal(&mut self, cx: &mut Context, rehearsal: Rehearsal) {
        self.rehearsal = rehearsal;
        let is_delayed = rehearsal == Rehearsal::DelayElections;
        if self.ticker.set_delayed(is_delayed) {
            self.draw_timeout(cx);
        }
    }

    /// This leader has begun to add a server. Returns whether a rehearsal wants it to transfer the
    /// leadership now.
    pub(crate) fn take_transfer_on_add(&mut self) -> bool {
        let is_wanted = self.rehearsal == Rehearsal::TransferAfterStartingToAdd;
        if is_wanted {
            self.rehearsal = Rehearsal::None;
        }
        is_wanted
    }

    /// Stands for election before the timeout. A healthy cluster ignores it, and the next heartbeat
    /// turns this member into a follower again.
    pub(crate) fn force(&mut self, cx: &mut Context) {
        cx.node.campaign();
        if cx.node.role() != Role::Candidate {
            // Not a member, or its log is not stored yet.
            return;
        }
        self.draw_timeout(cx);
        self.view.begin_election(cx.now_ms, false);
        let kind = view::election_kind(cx);
        view::log_election(cx, kind);
    }
}
