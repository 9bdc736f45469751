//! Leaving and kicking (docs/spec/distribution.md 1.10): both the member that goes and the leader that lets it go.
//!
//! A leader never proposes its own removal: it hands the leadership over first. A removal is refused when fewer members that are alive and
//! have caught up would remain than the new list needs for a majority: when it is asked for, and again when it is proposed, because it may have
//! waited for other changes of the list.

use std::collections::BTreeSet;

use corvid_log::cluster::{Index, Servers, Sid, Term};
use corvid_log::storage::StorageRequest;
use corvid_rpc::Level;

use super::membership::{Departing, Leaving, Removal};
use super::records::Records;
use super::{Member, Output, Repeated};
use crate::entry::EntryBody;
use crate::message::PeerMessage;
use crate::raft_node::Outgoing;

impl Member {
    /// This member wants to leave.
    pub(super) fn start_leaving(&mut self) -> Result<String, String> {
        if self.leaving.is_some() {
            return Err("already in progress leaving cluster".to_owned());
        }
        if self.joining.is_some() {
            return Err("can't leave while join in progress".to_owned());
        }
        if self.repairing.is_some() {
            return Err("can't leave while the damaged file is replaced".to_owned());
        }
        if self.failure.is_some() {
            return Err("can't leave after failure".to_owned());
        }
        let (own, cid) = (self.settings.sid, self.cid_text());
        let text = format!("{own}: starting to leave cluster {cid}");
        self.log(Level::Info, text);
        self.leaving = Some(Leaving {
            next_ms: self.now_ms,
        });
        self.leaving_time();
        Ok(String::new())
    }

    /// Asks to be removed, if it is time.
    pub(super) fn leaving_time(&mut self) {
        let Some(leaving) = &mut self.leaving else {
            return;
        };
        if leaving.next_ms > self.now_ms {
            return;
        }
        let timer_ms = self.ticker.timer_ms();
        leaving.next_ms = self.now_ms + timer_ms;
        if self.node.is_leader() {
            // The next request follows soon after the change of leadership.
            leaving.next_ms = self.now_ms + timer_ms / 5;
            if self.hand_over_leadership() {
                self.note_transfer("this server is leaving the cluster");
            }
            return;
        }
        let own = self.settings.sid;
        self.log(
            Level::Info,
            "sending remove request (joining=false, leaving=true)".to_owned(),
        );
        for sid in self.membership.sids() {
            let message = PeerMessage::RemoveServer { server_id: own };
            self.send(sid, message);
        }
    }

    /// A member asks for a removal.
    pub(super) fn remove_server(&mut self, from: Sid, target: Sid) {
        // Any process may connect; a server that is no member may ask about itself alone.
        if from != target && !self.membership.contains(from) {
            let text =
                format!("ignoring request by {from}, which is no member, to remove {target}");
            return self.log_repeated(Level::Warn, Repeated::Stranger, text);
        }
        if target == self.settings.sid {
            // Kicked through another member.
            let comment = match self.start_leaving() {
                Ok(_) => "in progress".to_owned(),
                Err(error) => error,
            };
            return self.answer_removal(Some(from), target, false, &comment);
        }
        let refusal = self.request_removal(target, Some(from));
        if let Some((is_success, comment)) = refusal {
            self.removal_answered(Some(from), target, is_success, &comment);
        }
    }

    /// Success and comment; `None`: the removal is under way.
    pub(super) fn request_removal(
        &mut self,
        target: Sid,
        requester: Option<Sid>,
    ) -> Option<(bool, String)> {
        let no = |comment: &str| Some((false, comment.to_owned()));
        if self.announced_term().is_none() {
            return no("not leader");
        }
        if let Some(joiner) = self.membership.joiners.get(&target) {
            if joiner.is_proposed {
                return no("committing");
            }
            self.membership.joiners.remove(&target);
            self.node.apply_change(target, false, false);
            let message = PeerMessage::AddServerReply {
                is_success: false,
                comment: "canceled".to_owned(),
                remote_addresses: Vec::new(),
            };
            self.send(target, message);
        }
        if self
            .membership
            .removals
            .iter()
            .any(|it| it.target == target)
        {
            return no("in progress");
        }
        if !self.membership.contains(target) {
            return Some((true, "already not in cluster".to_owned()));
        }
        let going = self.membership.removals.len() + 1;
        if self.membership.count() <= going {
            return no("empty");
        }
        let going = self.membership.removals.iter().map(|it| it.target);
        let going: Vec<Sid> = going.chain([target]).collect();
        if let Err(reason) = self.check_removals(&going) {
            return Some((false, reason));
        }
        self.membership.removals.push_back(Removal {
            target,
            requester,
            is_proposed: false,
        });
        None
    }

    /// Whether the members that would remain can go on without these.
    fn check_removals(&self, going: &[Sid]) -> Result<(), String> {
        let mut remaining = self.membership.sids();
        remaining.retain(|sid| !going.contains(sid));
        let quorum = remaining.len() / 2 + 1;
        let fit = remaining
            .iter()
            .filter(|sid| self.is_caught_up(**sid))
            .count();
        if fit < quorum {
            return Err(format!(
                "only {fit} of the {} remaining members would be alive and caught up, fewer than the {quorum} that must agree",
                remaining.len()
            ));
        }
        Ok(())
    }

    /// Whether a member is alive and has what was committed a moment ago. One that has lost its power is connected for some time.
    pub(super) fn is_caught_up(&self, sid: Sid) -> bool {
        sid == self.settings.sid
            || self.takes_part(sid)
                && self.has_answered(sid)
                && self.node.progress(sid).is_some_and(|progress| {
                    !progress.is_in_snapshot && progress.matched >= self.commit_before
                })
    }

    /// Proposes the next removal.
    pub(super) fn propose_removal(&mut self, servers: &Servers) {
        let Some(removal) = self.membership.removals.front() else {
            return;
        };
        if removal.is_proposed {
            return;
        }
        let (target, requester) = (removal.target, removal.requester);
        let list = servers.without(target).ok_or_else(|| "empty".to_owned());
        let checked = list.and_then(|list| self.check_removals(&[target]).map(|()| list));
        let list = match checked {
            Ok(list) => list,
            Err(reason) => {
                self.membership.removals.pop_front();
                return self.removal_answered(requester, target, false, &reason);
            }
        };
        if self
            .node
            .propose_change(target, false, &EntryBody::servers(&list))
        {
            self.membership.proposed = Some(list);
            if let Some(removal) = self.membership.removals.front_mut() {
                removal.is_proposed = true;
            }
        }
    }

    /// A list is committed that lacks this server.
    pub(super) fn removal_committed(&mut self, target: Sid) {
        let removals = &mut self.membership.removals;
        if let Some(at) = removals.iter().position(|it| it.target == target)
            && let Some(removal) = removals.remove(at)
        {
            self.removal_answered(removal.requester, target, true, "completed");
        }
    }

    /// The next leader gets the requests again.
    pub(super) fn forget_removals(&mut self) {
        for removal in std::mem::take(&mut self.membership.removals) {
            self.removal_answered(removal.requester, removal.target, false, "lost leadership");
        }
    }

    fn removal_answered(
        &mut self,
        requester: Option<Sid>,
        target: Sid,
        is_success: bool,
        comment: &str,
    ) {
        let whom = match requester {
            Some(requester) if requester == target => {
                format!("request by {} to remove itself from", self.name_of(target))
            }
            Some(requester) => {
                let (requester, target) = (self.name_of(requester), self.name_of(target));
                format!("request by {requester} to remove {target} from")
            }
            None => format!(
                "request via unixctl to remove {} from",
                self.name_of(target)
            ),
        };
        let result = if is_success { "succeeded" } else { "failed" };
        let text = format!("{whom} cluster {} {result} ({comment})", self.cid_text());
        self.log(Level::Info, text);
        self.answer_removal(requester, target, is_success, comment);
    }

    /// Tells the requester, and a server that is out of the list itself.
    fn answer_removal(
        &mut self,
        requester: Option<Sid>,
        target: Sid,
        is_success: bool,
        comment: &str,
    ) {
        let reply = |target: Option<Sid>| PeerMessage::RemoveServerReply {
            is_success,
            target,
            comment: comment.to_owned(),
        };
        if let Some(requester) = requester.filter(|requester| *requester != target) {
            self.send(requester, reply(Some(target)));
        }
        if is_success && self.file.is_list_pending() {
            let message = Outgoing::Message(reply(None));
            self.file.send_with_list(target, message);
        } else if requester == Some(target) || is_success {
            self.send(target, reply(None));
        }
    }

    /// An answer to a request for a removal.
    pub(super) fn remove_server_reply(
        &mut self,
        from: Sid,
        is_success: bool,
        target: Option<Sid>,
        comment: &str,
    ) {
        let own = self.settings.sid;
        if target.is_none_or(|target| target == own) {
            if is_success && self.joining.is_none() && self.membership.contains(from) {
                self.finish_leaving();
            }
            return;
        }
        let result = if is_success { "succeeded" } else { "failed" };
        if let Some(target) = target {
            let text = format!("removal of {} {result} ({comment})", self.name_of(target));
            self.log(Level::Info, text);
        }
    }

    /// This server is no member any more.
    pub(super) fn finish_leaving(&mut self) {
        if self.has_left {
            return;
        }
        let (own, cid) = (self.settings.sid, self.cid_text());
        let text = format!("{own}: finished leaving cluster {cid}");
        self.log(Level::Info, text);
        let mut records = Records::default();
        records.left();
        let mut requests: Vec<StorageRequest> = Vec::new();
        self.file.append(records, &mut requests);
        self.request(requests);
        self.leaving = None;
        self.has_left = true;
        self.update_view();
        self.outputs.push_back(Output::Left);
    }

    /// A server that is no member stands for election: it was removed while it was down. Returns whether it was told.
    pub(super) fn tell_not_member(&mut self, from: Sid) -> bool {
        let is_known =
            self.membership.contains(from) || self.membership.joiners.contains_key(&from);
        // The leader has every committed list; others know what they have seen.
        let is_certain = self.announced_term().is_some() || self.membership.removed.contains(&from);
        if is_known || !is_certain || self.file.is_list_pending() {
            return false;
        }
        let term = self.node.term();
        self.send(from, PeerMessage::NotMember { term });
        true
    }

    /// A member says that this server is none.
    pub(super) fn not_member(&mut self, from: Sid, term: Term) {
        if term < self.node.term() || !self.membership.contains(from) {
            return;
        }
        let text = format!(
            "server {} says that this server was removed from cluster {} while it was away",
            self.name_of(from),
            self.cid_text()
        );
        self.log(Level::Warn, text);
        self.finish_leaving();
    }

    /// The file says that this server is no member any more, but not that it has left. It may have led, and may be alone in knowing that its
    /// removal is committed: then the others may need its vote. So it votes until a member says that it knows.
    pub(super) fn departure_resumed(&mut self) {
        let Some(index) = self.membership.last_index() else {
            return;
        };
        let text = format!(
            "this server was removed from cluster {} by entry {index}: asking the members whether they know",
            self.cid_text()
        );
        self.log(Level::Info, text);
        self.departing = Some(Departing {
            index,
            told: BTreeSet::new(),
        });
        self.leaving = Some(Leaving {
            next_ms: self.now_ms,
        });
    }

    /// A message says how far its sender has committed.
    pub(super) fn departure_noted(&mut self, from: Sid, message: &PeerMessage) {
        let Some(departing) = &mut self.departing else {
            return;
        };
        let (commit, is_leader) = match message {
            PeerMessage::AppendReply { commit, .. }
            | PeerMessage::HeartbeatReply { commit, .. } => (*commit, false),
            PeerMessage::Append { term, commit, .. } | PeerMessage::Heartbeat { term, commit } => {
                (*commit, *term >= self.node.term())
            }
            _ => return,
        };
        if commit < departing.index || !self.membership.contains(from) {
            return;
        }
        departing.told.insert(from);
        if is_leader || departing.told.len() > self.membership.count() / 2 {
            self.finish_leaving();
        }
    }

    /// A list of servers is committed.
    pub(super) fn servers_committed(&mut self, index: Index, servers: Servers) {
        let own = self.settings.sid;
        self.file.list_committed();
        let (added, gone) = self.membership.committed(index, servers);
        // The library ends the process when a leader applies its own removal, so that is not applied at all.
        if gone.contains(&own) {
            if !self.node.is_leader() || self.membership.count() == 0 {
                return self.finish_leaving();
            }
            self.departing = Some(Departing {
                index,
                told: BTreeSet::new(),
            });
            return;
        }
        for sid in added {
            self.node.apply_change(sid, true, false);
            self.joiner_committed(sid);
            if sid == own {
                if self.joining.is_some() {
                    let eid = self.last_eid.0;
                    let text = format!(
                        "added to configuration without reply (eid: {eid}, commit index: {index})"
                    );
                    self.log(Level::Info, text);
                }
                self.joined();
                self.catching_up.listed(index);
            }
        }
        for sid in gone {
            self.node.apply_change(sid, false, false);
            self.sending.remove(&sid);
            self.removal_committed(sid);
        }
    }
}
