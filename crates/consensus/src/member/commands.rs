//! Operators' commands, and handing the leadership over (docs/spec/distribution.md 1.5, 1.10 and 1.11).

use corvid_log::cluster::{ELECTION_TIMER_MAX_MS, ELECTION_TIMER_MIN_MS, Index, Sid};
use corvid_rpc::Level;

use super::membership::Transfer;
use super::records::Records;
use super::{Command, CommandToken, Member, Output};
use crate::entry::EntryBody;
use crate::message::PeerMessage;

impl Member {
    pub(super) fn command(&mut self, token: CommandToken, command: Command) {
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
                if !self.node.is_leader() || !self.hand_over_leadership() {
                    Ok(String::new())
                } else {
                    self.note_transfer("this server is shutting down");
                    self.await_transfer(Some(token), true);
                    return;
                }
            }
        };
        self.outputs.push_back(Output::CommandDone(token, reply));
    }

    fn change_election_timer(&mut self, timer_ms: u64) -> Result<String, String> {
        let current_ms = self.ticker.timer_ms();
        // From the moment that `cluster/status` says so: the entry follows the one that begins the leadership.
        if !self.node.is_leader() {
            return Err("election timer must be changed through leader.".to_owned());
        }
        if self.next_timer_ms.is_some() {
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
        if !self.node.propose(vec![EntryBody::election_timer(timer_ms)]) {
            return Err("election timer must be changed through leader.".to_owned());
        }
        self.next_timer_ms = Some(timer_ms);
        Ok("change of election timer initiated.".to_owned())
    }

    /// `None`: done when another member leads.
    fn transfer_leadership(
        &mut self,
        token: CommandToken,
        to: Option<&str>,
    ) -> Option<Result<String, String>> {
        if !self.node.is_leader() {
            return Some(Err(
                "leadership must be transferred through leader.".to_owned()
            ));
        }
        if self.transfer.is_some() {
            return Some(Err("leadership transfer in progress.".to_owned()));
        }
        let target = match to {
            Some(text) => match self.membership.find(text) {
                Some(sid) if sid == self.settings.sid => {
                    return Some(Ok("this server is leader already.".to_owned()));
                }
                Some(sid) if self.takes_part(sid) => Some(sid),
                Some(_) => return Some(Err("server is not connected.".to_owned())),
                None => return Some(Err("unknown server".to_owned())),
            },
            None => self.successor(),
        };
        let Some(target) = target else {
            return Some(Err("no other server is connected.".to_owned()));
        };
        self.node.transfer(target);
        self.note_transfer("an operator asked for it");
        self.await_transfer(Some(token), false);
        None
    }

    fn kick(&mut self, server: &str) -> Result<String, String> {
        let Some(target) = self.membership.find(server) else {
            return Err("unknown server".to_owned());
        };
        if target == self.settings.sid {
            return self.start_leaving();
        }
        if self
            .membership
            .removals
            .iter()
            .any(|it| it.target == target)
        {
            return Err("unknown server".to_owned());
        }
        if self.announced_term().is_some() {
            return match self.request_removal(target, None) {
                None => Ok("started removal".to_owned()),
                Some((true, comment)) => Ok(comment),
                Some((false, reason)) => Err(format!(
                    "request via unixctl to remove {} from cluster {} failed ({reason})",
                    self.name_of(target),
                    self.cid_text()
                )),
            };
        }
        let Some(leader) = self.reachable_leader() else {
            return Err("failed to send removal request".to_owned());
        };
        let message = PeerMessage::RemoveServer { server_id: target };
        self.send(leader, message);
        Ok("sent removal request to leader".to_owned())
    }

    /// The member that is most up to date among those that are connected: with everything, else with everything committed, else any.
    fn successor(&mut self) -> Option<Sid> {
        let own = self.settings.sid;
        let commit = self.node.commit();
        let mut best: Option<((bool, Index), Sid)> = None;
        let up: Vec<Sid> = self
            .membership
            .sids()
            .into_iter()
            .filter(|sid| *sid != own && self.takes_part(*sid))
            .collect();
        let start = usize::try_from(self.ticker.random(up.len() as u64)).unwrap_or(0);
        for at in 0..up.len() {
            let sid = up[(start + at) % up.len()];
            let Some(progress) = self.node.progress(sid) else {
                continue;
            };
            let rank = (progress.matched >= commit, progress.matched);
            if best.is_none_or(|(known, _)| rank > known) {
                best = Some((rank, sid));
            }
        }
        best.map(|(_, sid)| sid)
    }

    /// Asks the best member to lead. `false`: there is none.
    pub(super) fn hand_over_leadership(&mut self) -> bool {
        if !self.node.is_leader() {
            return false;
        }
        if self.node.transferee().is_some() {
            return true;
        }
        let Some(to) = self.successor() else {
            return false;
        };
        self.node.transfer(to);
        true
    }

    /// A remark in the file, for people.
    pub(super) fn note_transfer(&mut self, reason: &str) {
        let Some(to) = self.node.transferee() else {
            return;
        };
        let name = self.name_of(to);
        // The log begins as the reference's line about snapshots does, which is what people search for.
        let text = format!("Transferring leadership to {name} because {reason}.");
        self.log(Level::Info, text);
        let comment = format!("transferring leadership to {name} because {reason}");
        let mut records = Records::default();
        records.note("transfer leadership", comment);
        let mut requests = Vec::new();
        self.file.append(records, &mut requests);
        self.request(requests);
    }

    pub(super) fn await_transfer(&mut self, token: Option<CommandToken>, is_shutdown: bool) {
        let until_ms = self.now_ms + self.ticker.timer_ms();
        self.transfer = Some(Transfer {
            token,
            until_ms,
            is_shutdown,
        });
    }

    /// Role, term or leader have changed.
    pub(super) fn transfer_changed(&mut self) {
        let is_done = !self.node.is_leader() && self.node.leader().is_some();
        if is_done
            && let Some(Transfer {
                token: Some(token), ..
            }) = self.transfer.take()
        {
            let reply = Ok(String::new());
            self.outputs.push_back(Output::CommandDone(token, reply));
        }
    }

    /// The transfer takes too long.
    pub(super) fn transfer_time(&mut self) {
        let now_ms = self.now_ms;
        let Some(transfer) = self
            .transfer
            .take_if(|transfer| transfer.until_ms <= now_ms)
        else {
            return;
        };
        if let Some(token) = transfer.token {
            let reply = if transfer.is_shutdown {
                Ok(String::new())
            } else {
                Err("leadership transfer timed out.".to_owned())
            };
            self.outputs.push_back(Output::CommandDone(token, reply));
        }
    }

    /// This member does not lead any more.
    pub(super) fn leadership_lost(&mut self) {
        self.held.clear();
        self.next_timer_ms = None;
        self.membership.proposed = None;
        self.sending.clear();
        self.forget_joiners();
        self.forget_removals();
        if let Some(leaving) = &mut self.leaving {
            let delay_ms = self.ticker.timer_ms() / 10;
            leaving.next_ms = self.now_ms + delay_ms + self.ticker.random(delay_ms);
        }
    }
}
