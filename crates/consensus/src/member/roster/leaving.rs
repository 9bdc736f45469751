//! Leaving and kicking (docs/spec/distribution.md 1.10): both the member that leaves and the leader
//! that removes it.
//!
//! A leader never proposes its own removal: it transfers the leadership first. A removal is refused
//! if too few members that are alive and caught up would remain for a majority of the new list.
//! That is checked on request and again before the proposal, because the removal may have waited
//! for other changes of the list.

use std::collections::BTreeSet;

use corvid_log::cluster::{Index, Servers, Sid, Term};
use corvid_rpc::Level;

use super::Roster;
use super::membership::Removal;
use crate::entry::EntryBody;
use crate::member::Repeated;
use crate::member::context::Context;
use crate::member::disk::log_file::LogFile;
use crate::member::disk::records::Records;
use crate::member::election::lease::Lease;
use crate::message::PeerMessage;
use crate::raft_node::Outgoing;

/// This member's request to be removed.
#[derive(Debug)]
pub(crate) struct Leaving {
    next_ms: u64,
}

impl Leaving {
    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }
}

/// This leader has committed its own removal. It leaves once a majority of the others knows that:
/// without its vote they might never find out.
#[derive(Debug)]
pub(crate) struct Departing {
    /// The entry with the list.
    index: Index,
    /// Members that have committed it.
    told: BTreeSet<Sid>,
}

impl Departing {
    pub(crate) fn new(index: Index) -> Departing {
        Departing {
            index,
            told: BTreeSet::new(),
        }
    }
}

/// The answer to a request for a removal.
#[derive(Debug)]
pub(crate) enum Requested {
    /// It is under way; its end is logged and told to its requester.
    Begun,
    /// This leader itself can be spared. It must leave.
    Leave,
    /// It has ended: success and comment.
    Ended(bool, String),
}

/// The leaving member's side.
impl Roster {
    /// Starts leaving; the request follows in the next [`Roster::leaving_time`].
    pub(crate) fn start_leaving(
        &mut self,
        cx: &mut Context,
        is_repairing: bool,
    ) -> Result<(), String> {
        let refusal = if self.leaving.is_some() {
            "already in progress leaving cluster"
        } else if self.joining.is_some() {
            "can't leave while join in progress"
        } else if is_repairing {
            "can't leave while the damaged file is being replaced"
        } else if cx.has_failed() {
            "can't leave after failure"
        } else {
            let (own, cid) = (cx.own(), cx.cid_text());
            let text = format!("{own}: starting to leave cluster {cid}");
            cx.log(Level::Info, text);
            self.leaving = Some(Leaving { next_ms: cx.now_ms });
            return Ok(());
        };
        Err(refusal.to_owned())
    }

    /// Asks to be removed, if it is time. Returns `true` if this member leads and must transfer the
    /// leadership instead.
    pub(crate) fn leaving_time(&mut self, cx: &mut Context, timer_ms: u64) -> bool {
        let now_ms = cx.now_ms;
        let Some(leaving) = self.leaving.as_mut().filter(|it| it.next_ms <= now_ms) else {
            return false;
        };
        if cx.node.is_leader() {
            // The next request follows soon after the change of leadership.
            leaving.next_ms = now_ms + timer_ms / 5;
            return true;
        }
        leaving.next_ms = now_ms + timer_ms;
        let own = cx.own();
        cx.log(
            Level::Info,
            "sending remove request (joining=false, leaving=true)".to_owned(),
        );
        for sid in self.others(own) {
            let message = PeerMessage::RemoveServer { server_id: own };
            cx.send(sid, message);
        }
        false
    }

    /// The leadership has just ended: delays the next request until the next leader may be known.
    pub(crate) fn delay_leaving(&mut self, next_ms: impl FnOnce() -> u64) {
        if let Some(leaving) = &mut self.leaving {
            leaving.next_ms = next_ms();
        }
    }

    /// The file records that this server is no longer a member, but not that it has left. It may
    /// have been the leader, and may be the only one that knows of the committed removal: then the
    /// others may need its vote. So it keeps voting until a member says that it knows.
    pub(crate) fn resume_departure(&mut self, cx: &mut Context) {
        let Some(index) = self.list.last_index() else {
            return;
        };
        let text = format!(
            "this server was removed from cluster {} by entry {index}: asking the members whether they know",
            cx.cid_text()
        );
        cx.log(Level::Info, text);
        self.departing = Some(Departing::new(index));
        self.leaving = Some(Leaving { next_ms: cx.now_ms });
    }

    /// Notes how far a message's sender has committed. Returns whether enough members know of this
    /// member's removal.
    pub(crate) fn note_departure(
        &mut self,
        cx: &Context,
        from: Sid,
        message: &PeerMessage,
    ) -> bool {
        let members = self.list.count();
        let Some(departing) = &mut self.departing else {
            return false;
        };
        let (commit, is_leader) = match message {
            PeerMessage::AppendReply { commit, .. }
            | PeerMessage::HeartbeatReply { commit, .. } => (*commit, false),
            PeerMessage::Append { term, commit, .. } | PeerMessage::Heartbeat { term, commit } => {
                (*commit, *term >= cx.node.term())
            }
            _ => return false,
        };
        if commit < departing.index || !self.list.contains(from) {
            return false;
        }
        // A leader that has committed the list sends it to all others, so it suffices alone.
        // Followers suffice as a majority: any later leader then has the list.
        departing.told.insert(from);
        is_leader || departing.told.len() > members / 2
    }

    /// Handles an answer to a removal request. Returns whether this member is out of the list.
    pub(crate) fn hear_removal(
        &mut self,
        cx: &mut Context,
        from: Sid,
        is_success: bool,
        target: Option<Sid>,
        comment: &str,
    ) -> bool {
        let own = cx.own();
        let Some(target) = target.filter(|target| *target != own) else {
            return is_success && self.joining.is_none() && self.contains(from);
        };
        let result = if is_success { "succeeded" } else { "failed" };
        let text = format!("removal of {} {result} ({comment})", self.name_of(target));
        cx.log(Level::Info, text);
        false
    }

    /// A server says that this one is not a member. Returns whether to believe it.
    pub(crate) fn hear_not_member(&self, cx: &mut Context, from: Sid, term: Term) -> bool {
        if term < cx.node.term() || !self.contains(from) {
            return false;
        }
        let text = format!(
            "server {} says that this server was removed from cluster {} while it was away",
            self.name_of(from),
            cx.cid_text()
        );
        cx.log(Level::Warn, text);
        true
    }

    /// This server is no longer a member: records that in its file, for good.
    pub(crate) fn leave(&mut self, cx: &mut Context, file: &mut LogFile) {
        assert!(!self.has_left, "a server leaves its cluster once");
        let (own, cid) = (cx.own(), cx.cid_text());
        let text = format!("{own}: finished leaving cluster {cid}");
        cx.log(Level::Info, text);
        let mut records = Records::default();
        records.left();
        let mut requests = Vec::new();
        file.append(records, &mut requests);
        cx.store(requests);
        self.leaving = None;
        self.has_left = true;
    }
}

/// The removing leader's side.
impl Roster {
    /// Requests a removal, perhaps of this leader itself. `leads`: this member's database leads.
    pub(crate) fn request_removal(
        &mut self,
        cx: &mut Context,
        lease: &Lease,
        leads: bool,
        target: Sid,
        requester: Option<Sid>,
    ) -> Requested {
        let no = |comment: &str| Requested::Ended(false, comment.to_owned());
        if !leads {
            return no("not leader");
        }
        // A joiner can simply be dropped, unless the list with it is already proposed.
        if let Some(joiner) = self.list.joiners.get(&target) {
            if joiner.is_proposed {
                return no("committing");
            }
            self.list.joiners.remove(&target);
            cx.node.apply_change(target, false, false);
            let message = PeerMessage::AddServerReply {
                is_success: false,
                comment: "canceled".to_owned(),
                remote_addresses: Vec::new(),
            };
            cx.send(target, message);
        }
        if self.list.is_going(target) {
            return no("in progress");
        }
        if !self.contains(target) {
            return Requested::Ended(true, "already not in cluster".to_owned());
        }
        if let Err(reason) = self.check_removal(cx, lease, target) {
            return Requested::Ended(false, reason);
        }
        // It gives up its leadership to leave, and no later refusal ends its request. So it is
        // checked before.
        if target == cx.own() {
            return Requested::Leave;
        }
        self.list.removals.push_back(Removal {
            target,
            requester,
            is_proposed: false,
        });
        // Each is a member, listed once, and at least one member stays.
        assert!(
            self.list.removals.len() < self.count(),
            "{} of {} members are being removed",
            self.list.removals.len(),
            self.count()
        );
        Requested::Begun
    }

    /// Whether a server is being removed.
    pub(crate) fn is_going(&self, sid: Sid) -> bool {
        self.list.is_going(sid)
    }

    /// Checks that a member can be spared as well as those that are being removed.
    fn check_removal(&self, cx: &Context, lease: &Lease, target: Sid) -> Result<(), String> {
        let going = self.list.removals.iter().map(|it| it.target);
        let going: Vec<Sid> = going.chain([target]).collect();
        if self.count() <= going.len() {
            return Err("empty".to_owned());
        }
        self.check_removals(cx, lease, &going)
    }

    /// Checks that the members that would remain without `going` include a working majority.
    fn check_removals(&self, cx: &Context, lease: &Lease, going: &[Sid]) -> Result<(), String> {
        let members = self.members().map(|(sid, _)| sid);
        let remaining: Vec<Sid> = members.filter(|sid| !going.contains(sid)).collect();
        let quorum = remaining.len() / 2 + 1;
        let fit = remaining
            .iter()
            .filter(|sid| lease.is_caught_up(cx, **sid))
            .count();
        if fit < quorum {
            return Err(format!(
                "only {fit} of the {} remaining members would be alive and caught up, fewer than the {quorum} that must agree",
                remaining.len()
            ));
        }
        Ok(())
    }

    /// Proposes the next change of the list, if one is due and possible. Called while this member's
    /// database leads.
    pub(crate) fn propose_change(
        &mut self,
        cx: &mut Context,
        file: &mut LogFile,
        lease: &Lease,
        timer_ms: u64,
    ) {
        if self.departing.is_some() || !cx.node.may_change_voters() {
            return;
        }
        self.watch_joiners(cx, timer_ms);
        let Some(servers) = self.list.servers().cloned() else {
            return;
        };
        if !self.propose_joiner(cx, &servers) {
            self.propose_removal(cx, file, lease, &servers);
        }
    }

    /// Proposes the next removal.
    fn propose_removal(
        &mut self,
        cx: &mut Context,
        file: &mut LogFile,
        lease: &Lease,
        servers: &Servers,
    ) {
        let Some(removal) = self.list.removals.front() else {
            return;
        };
        if removal.is_proposed {
            return;
        }
        let (target, requester) = (removal.target, removal.requester);
        let list = servers.without(target).ok_or_else(|| "empty".to_owned());
        // The removal may have waited for other changes of the list, so check again.
        let checked =
            list.and_then(|list| self.check_removals(cx, lease, &[target]).map(|()| list));
        let list = match checked {
            Ok(list) => list,
            Err(reason) => {
                self.list.removals.pop_front();
                return self.end_removal(cx, file, (requester, target), false, &reason);
            }
        };
        let body = EntryBody::servers(&list);
        if cx.node.propose_change(target, false, &body)
            && let Some(removal) = self.list.removals.front_mut()
        {
            removal.is_proposed = true;
        }
    }

    /// A list without this server has been committed.
    pub(crate) fn complete_removal(&mut self, cx: &mut Context, file: &mut LogFile, target: Sid) {
        let removals = &mut self.list.removals;
        if let Some(at) = removals.iter().position(|it| it.target == target)
            && let Some(removal) = removals.remove(at)
        {
            self.end_removal(cx, file, (removal.requester, target), true, "completed");
        }
    }

    /// Forgets all removals; requesters have to ask the next leader.
    pub(crate) fn forget_removals(&mut self, cx: &mut Context, file: &mut LogFile) {
        for removal in std::mem::take(&mut self.list.removals) {
            let ends = (removal.requester, removal.target);
            self.end_removal(cx, file, ends, false, "lost leadership");
        }
    }

    /// Ends a removal: logs the result, and answers the requester.
    pub(crate) fn end_removal(
        &self,
        cx: &mut Context,
        file: &mut LogFile,
        (requester, target): (Option<Sid>, Sid),
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
        let text = format!("{whom} cluster {} {result} ({comment})", cx.cid_text());
        cx.log(Level::Info, text);
        answer_removal(cx, file, (requester, target), is_success, comment);
    }

    /// This leader begins to leave, because another member asked for that: its answer.
    pub(crate) fn answer_own_removal(&self, cx: &mut Context, file: &mut LogFile, requester: Sid) {
        let ends = (Some(requester), cx.own());
        answer_removal(cx, file, ends, false, "in progress");
    }

    /// A server that is not a member stands for election or asks for a snapshot: it was removed
    /// while it was down. Returns whether it was told so.
    pub(crate) fn tell_not_member(
        &self,
        cx: &mut Context,
        from: Sid,
        leads: bool,
        is_list_pending: bool,
    ) -> bool {
        let is_known = self.contains(from) || self.list.joiners.contains_key(&from);
        // A leader knows every committed list; other members know only what they have seen.
        let is_certain = leads || self.list.removed.contains(&from);
        if is_known || !is_certain || is_list_pending {
            return false;
        }
        let term = cx.node.term();
        cx.send(from, PeerMessage::NotMember { term });
        true
    }

    /// Whether this server may ask for this removal.
    pub(crate) fn may_ask_for_removal(&self, cx: &mut Context, from: Sid, target: Sid) -> bool {
        // Any process may connect. A server that is not a member may ask only about itself.
        let may_ask = from == target || self.contains(from);
        if !may_ask {
            let text =
                format!("ignoring request by {from}, which is not a member, to remove {target}");
            cx.log_repeated(Level::Warn, Repeated::Stranger, text);
        }
        may_ask
    }
}

/// Tells the requester about a removal, and the removed server itself.
fn answer_removal(
    cx: &mut Context,
    file: &mut LogFile,
    (requester, target): (Option<Sid>, Sid),
    is_success: bool,
    comment: &str,
) {
    let reply = |target: Option<Sid>| PeerMessage::RemoveServerReply {
        is_success,
        target,
        comment: comment.to_owned(),
    };
    if let Some(requester) = requester.filter(|requester| *requester != target) {
        cx.send(requester, reply(Some(target)));
    }
    if is_success && file.is_list_pending() {
        // On hearing this the server leaves, and its vote is gone. So the list must be stored
        // first.
        let message = Outgoing::Message(reply(None));
        file.send_with_list(target, message);
    } else if requester == Some(target) || is_success {
        cx.send(target, reply(None));
    }
}
