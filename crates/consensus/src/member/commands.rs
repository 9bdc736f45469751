//! Operators' commands (docs/spec/distribution.md 1.5, 1.10 and 1.11): which parts execute each
//! one, and its reply.
//!
//! Invariant: each command is answered once, either immediately or when the leadership has changed.

use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, ELECTION_TIMER_MIN_MS};
use corvid_rpc::Level;

use super::disk::records::Records;
use super::roster::leaving::Requested;
use super::{Command, CommandToken, Member, Output, Rehearsal};
use crate::message::PeerMessage;

impl Member {
    pub(super) fn handle_command(&mut self, token: CommandToken, command: Command) {
        let reply = match command {
            Command::ChangeElectionTimer(timer_ms) => self.change_election_timer(timer_ms),
            Command::TransferLeadership(to) => match self.transfer_leadership(token, to.as_deref())
            {
                Some(reply) => reply,
                None => return,
            },
            Command::Leave => self.start_leaving(),
            Command::Kick(server) => self.kick(&server),
            Command::Rehearse(rehearsal) => {
                self.rehearse(rehearsal);
                Ok(String::new())
            }
            Command::Shutdown => {
                if self.hand_over_leadership() {
                    self.note_transfer("this server is shutting down");
                    self.election.await_transfer(&self.cx, Some(token), true);
                    return;
                }
                Ok(String::new())
            }
        };
        self.cx.put(Output::CommandDone(token, reply));
    }

    fn change_election_timer(&mut self, timer_ms: u64) -> Result<String, String> {
        let current_ms = self.election.timer_ms();
        let not_leading = || Err("election timer must be changed through leader.".to_owned());
        // Accepted as soon as `cluster/status` shows a leader: the entry follows the one that
        // begins the leadership.
        if !self.cx.node.is_leader() {
            return not_leading();
        }
        if self.commits.proposed_timer_ms().is_some() {
            return Err("election timer change pending.".to_owned());
        }
        if timer_ms == current_ms {
            return Ok("change election timer to current value.".to_owned());
        }
        if !(ELECTION_TIMER_MIN_MS..=ELECTION_TIMER_MAX_MS).contains(&timer_ms) {
            return Err(format!(
                "election timer must be between {ELECTION_TIMER_MIN_MS} and {ELECTION_TIMER_MAX_MS}, in msec."
            ));
        }
        if timer_ms > current_ms.saturating_mul(2) {
            return Err(
                "election timer increase should not exceed the current value x 2.".to_owned(),
            );
        }
        if !self.commits.propose_timer(&mut self.cx, timer_ms) {
            return not_leading();
        }
        Ok("change of election timer initiated.".to_owned())
    }

    /// Starts a transfer. `None`: the reply comes when another member leads.
    fn transfer_leadership(
        &mut self,
        token: CommandToken,
        to: Option<&str>,
    ) -> Option<Result<String, String>> {
        if !self.cx.node.is_leader() {
            return Some(Err(
                "leadership must be transferred through leader.".to_owned()
            ));
        }
        if self.election.is_transferring() {
            return Some(Err("leadership transfer in progress.".to_owned()));
        }
        let target = match to {
            Some(text) => match self.roster.find(text) {
                Some(sid) if sid == self.cx.own() => {
                    return Some(Ok("this server is leader already.".to_owned()));
                }
                Some(sid) if self.cx.peers.takes_part(sid) => Some(sid),
                Some(_) => return Some(Err("server is not connected.".to_owned())),
                None => return Some(Err("unknown server".to_owned())),
            },
            None => self.election.successor(&self.cx, &self.roster),
        };
        let Some(target) = target else {
            return Some(Err("no other server is connected.".to_owned()));
        };
        self.cx.node.transfer(target);
        self.note_transfer("an operator asked for it");
        self.election.await_transfer(&self.cx, Some(token), false);
        None
    }

    fn kick(&mut self, server: &str) -> Result<String, String> {
        let Some(target) = self.roster.find(server) else {
            return Err("unknown server".to_owned());
        };
        if self.roster.is_going(target) {
            return Err("unknown server".to_owned());
        }
        if self.leads() {
            let lease = &self.election.lease;
            let requested = self
                .roster
                .request_removal(&mut self.cx, lease, true, target, None);
            return match requested {
                Requested::Begun => Ok("started removal".to_owned()),
                Requested::Leave => self.start_leaving(),
                Requested::Ended(true, comment) => Ok(comment),
                Requested::Ended(false, reason) => Err(format!(
                    "request via unixctl to remove {} from cluster {} failed ({reason})",
                    self.roster.name_of(target),
                    self.cx.cid_text()
                )),
            };
        }
        if target == self.cx.own() {
            return self.start_leaving();
        }
        let Some(leader) = self.cx.reachable_leader() else {
            return Err("failed to send removal request".to_owned());
        };
        let message = PeerMessage::RemoveServer { server_id: target };
        self.cx.send(leader, message);
        Ok("sent removal request to leader".to_owned())
    }

    /// Starts leaving, and asks for the removal at once.
    pub(super) fn start_leaving(&mut self) -> Result<String, String> {
        let is_repairing = self.disk.is_repairing();
        self.roster.start_leaving(&mut self.cx, is_repairing)?;
        self.continue_leaving();
        Ok(String::new())
    }

    /// Asks to be removed, or first transfers the leadership, if it is time.
    pub(super) fn continue_leaving(&mut self) {
        let timer_ms = self.election.timer_ms();
        if self.roster.leaving_time(&mut self.cx, timer_ms) && self.hand_over_leadership() {
            self.note_transfer("this server is leaving the cluster");
        }
    }

    /// Asks the best member to take over. Returns `false` if this member does not lead, or no other
    /// member can.
    pub(super) fn hand_over_leadership(&mut self) -> bool {
        self.election.hand_over(&mut self.cx, &self.roster)
    }

    /// Logs a transfer, and writes a note for people into the file.
    fn note_transfer(&mut self, reason: &str) {
        let Some(to) = self.cx.node.transferee() else {
            return;
        };
        let name = self.roster.name_of(to);
        // The line begins like the reference's line about snapshots, which is what people search
        // for.
        let text = format!("Transferring leadership to {name} because {reason}.");
        self.cx.log(Level::Info, text);
        let comment = format!("transferring leadership to {name} because {reason}");
        let mut records = Records::default();
        records.note("transfer leadership", comment);
        self.disk.append(&mut self.cx, records);
    }

    /// Starts a rehearsal (`cluster/failure-test`), or ends the current one. The server provokes
    /// the failures that concern messages and the process.
    fn rehearse(&mut self, rehearsal: Rehearsal) {
        match rehearsal {
            Rehearsal::ForceElection => {
                let is_unfit = self.cx.has_failed() || self.snapshots.receiving.is_installing();
                if !self.cx.node.is_leader() && !is_unfit {
                    self.election.force(&mut self.cx);
                }
            }
            Rehearsal::Transfer => self.transfer_for_test(),
            _ => self.election.set_rehearsal(&mut self.cx, rehearsal),
        }
    }

    pub(super) fn transfer_for_test(&mut self) {
        if !self.election.is_transferring() && self.hand_over_leadership() {
            self.note_transfer("a test asked for it");
            self.election.await_transfer(&self.cx, None, false);
        }
    }
}
