//! Joining (docs/spec/distribution.md 1.9): both the server that asks and the leader that admits.
//!
//! A joiner gets the log without a vote. When it has caught up, a list with it is proposed; committed, the list makes it a voter. A leader
//! forgets its joiners when its leadership ends; they ask again.

use corvid_log::cluster::ids::nickname;
use corvid_log::cluster::{Index, Servers, Sid};
use corvid_rpc::Level;

use super::Member;
use super::membership::Joiner;
use crate::entry::EntryBody;
use crate::guard::SERVERS_MAX;
use crate::message::PeerMessage;

/// Servers that are being added, at most; the others ask again.
const JOINERS_MAX: usize = 64;
/// Time between requests for admission, ms.
const RETRY_MS: u64 = 1000;

/// The answer to a server that is being added already.
const IN_PROGRESS: &str = "in progress";

impl Member {
    /// Asks for admission, if it is time.
    pub(super) fn joining_time(&mut self) {
        let Some(joining) = &mut self.joining else {
            return;
        };
        if joining.next_ms > self.now_ms {
            return;
        }
        joining.next_ms = self.now_ms + RETRY_MS;
        if self.failure.is_some() {
            return;
        }
        let message = PeerMessage::AddServer {
            address: self.settings.address.clone(),
            name: self.settings.name.clone(),
        };
        let peers = self.peers.iter().filter(|(_, peer)| peer.is_up);
        let up: Vec<Sid> = peers.map(|(sid, _)| *sid).collect();
        for sid in up {
            self.send(sid, message.clone());
        }
    }

    /// A server asks for admission.
    pub(super) fn add_server(&mut self, from: Sid, address: &str, name: &str) {
        let (is_success, comment) = match self.admit(from, address, name) {
            Some(answer) => answer,
            None => return,
        };
        let text = if is_success { "succeeded" } else { "failed" };
        let text = format!("{} {text} ({comment})", self.adding(from, address));
        // A joiner repeats its request until it is added; the repetitions say nothing new.
        let level = if comment == IN_PROGRESS {
            Level::Debug
        } else {
            Level::Info
        };
        self.log(level, text);
        self.answer_joiner(from, is_success, &comment);
    }

    /// Success and comment; `None`: the server is admitted and gets its answer later.
    fn admit(&mut self, from: Sid, address: &str, name: &str) -> Option<(bool, String)> {
        let no = |comment: &str| Some((false, comment.to_owned()));
        if self.announced_term().is_none() {
            return no("not leader");
        }
        if name != self.settings.name {
            let own = &self.settings.name;
            return Some((false, format!("wrong database {name} (expected {own})")));
        }
        if self.membership.removals.iter().any(|it| it.target == from) {
            return no("committing");
        }
        if self.membership.contains(from) {
            return Some((true, "already in cluster".to_owned()));
        }
        if self.membership.joiners.contains_key(&from) {
            return no(IN_PROGRESS);
        }
        if self.membership.removed.contains(&from) && self.file.is_list_pending() {
            return no("committing");
        }
        if self.membership.removed.contains(&from) {
            // It may have been added and removed without learning of either.
            let term = self.node.term();
            self.send(from, PeerMessage::NotMember { term });
            return no("removed from the cluster; join with a new file");
        }
        if self.node.collides(from) {
            return no("server id collides with that of another member; join with a new file");
        }
        if self.membership.joiners.len() >= JOINERS_MAX {
            return no("too many servers are being added");
        }
        if self.membership.count() + self.membership.joiners.len() >= SERVERS_MAX {
            return no("too many servers");
        }
        let cid = self.cid_text();
        let text = format!(
            "starting to add server {} ({from} at {address}) to cluster {cid}",
            nickname(address, Some(from))
        );
        self.log(Level::Info, text);
        self.node.apply_change(from, true, true);
        let joiner = Joiner {
            address: address.to_owned(),
            target: self.node.last_index(),
            since_ms: self.now_ms,
            is_caught_up: false,
            is_proposed: false,
        };
        self.membership.joiners.insert(from, joiner);
        self.started_to_add();
        None
    }

    fn adding(&self, sid: Sid, address: &str) -> String {
        let (name, cid) = (nickname(address, Some(sid)), self.cid_text());
        format!("adding {name} ({sid} at {address}) to cluster {cid}")
    }

    fn answer_joiner(&mut self, to: Sid, is_success: bool, comment: &str) {
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let remote_addresses = servers.map(|(_, address)| address.to_owned()).collect();
        let message = PeerMessage::AddServerReply {
            is_success,
            comment: comment.to_owned(),
            remote_addresses,
        };
        self.send(to, message);
    }

    /// An answer to this server's request.
    pub(super) fn add_server_reply(
        &mut self,
        from: Sid,
        is_success: bool,
        comment: &str,
        remote_addresses: Vec<String>,
    ) {
        let own = self.settings.address.clone();
        let Some(joining) = &mut self.joining else {
            return;
        };
        if !is_success {
            let new: Vec<String> = remote_addresses
                .into_iter()
                .filter(|address| *address != own && !joining.remotes.contains(address))
                .collect();
            joining.remotes.extend(new.iter().cloned());
            for address in new {
                let text = format!("{address}: learned new server address for joining cluster");
                self.log(Level::Info, text);
            }
            let is_usual = ["not leader", "in progress", "lost leadership", "canceled"];
            if !is_usual.contains(&comment) {
                let text =
                    format!("server {from} refuses to add this server to its cluster: {comment}");
                self.log(Level::Warn, text);
            }
            return;
        }
        // Without a snapshot there is nothing to be a member with; the list arrives with the log.
        if self.snapshot_index() > Index(0) && self.membership.contains(self.settings.sid) {
            self.joined();
        }
    }

    /// This server is a member now.
    pub(super) fn joined(&mut self) {
        if self.joining.take().is_some() {
            let text = format!("joined cluster {}", self.cid_text());
            self.log(Level::Info, text);
        }
    }

    /// Proposes the next change of the list, if one is due and possible.
    pub(super) fn change_servers(&mut self) {
        let is_leading = self.announced_term().is_some() && self.departing.is_none();
        if !is_leading || !self.node.may_change_voters() {
            return;
        }
        self.watch_joiners();
        let Some(servers) = self.membership.servers().cloned() else {
            return;
        };
        let ready = self.membership.joiners.iter_mut();
        let ready = ready.filter(|(_, joiner)| joiner.is_caught_up && !joiner.is_proposed);
        if let Some((sid, joiner)) = ready.into_iter().next() {
            let list = servers.with(*sid, &joiner.address);
            if self
                .node
                .propose_change(*sid, true, &EntryBody::servers(&list))
            {
                joiner.is_proposed = true;
                self.membership.proposed = Some(list);
            }
            return;
        }
        self.propose_removal(&servers);
    }

    /// A joiner has caught up when it gets within an election timer what was new when the timer began.
    fn watch_joiners(&mut self) {
        let (now_ms, timer_ms, last) =
            (self.now_ms, self.ticker.timer_ms(), self.node.last_index());
        for (sid, joiner) in &mut self.membership.joiners {
            let Some(progress) = self.node.progress(*sid) else {
                continue;
            };
            if joiner.is_caught_up || progress.is_in_snapshot || progress.matched < joiner.target {
                continue;
            }
            joiner.is_caught_up = now_ms.saturating_sub(joiner.since_ms) <= timer_ms;
            joiner.target = last;
            joiner.since_ms = now_ms;
        }
    }

    /// A joiner is a member.
    pub(super) fn joiner_committed(&mut self, sid: Sid) {
        if let Some(joiner) = self.membership.joiners.remove(&sid) {
            let text = format!(
                "{} succeeded (completed)",
                self.adding(sid, &joiner.address)
            );
            self.log(Level::Info, text);
            self.answer_joiner(sid, true, "completed");
        }
    }

    /// The connection of a joiner has ended: it begins anew.
    pub(super) fn joiner_down(&mut self, sid: Sid) {
        let is_waiting = |joiner: &Joiner| !joiner.is_proposed;
        if self.membership.joiners.get(&sid).is_some_and(is_waiting)
            && let Some(joiner) = self.membership.joiners.remove(&sid)
        {
            self.node.apply_change(sid, false, false);
            let name = nickname(&joiner.address, Some(sid));
            let (cid, address) = (self.cid_text(), joiner.address);
            let text =
                format!("cluster {cid}: server {name} ({address}) disconnected while joining");
            self.log(Level::Info, text);
        }
    }

    /// Joiners have to ask the next leader.
    pub(super) fn forget_joiners(&mut self) {
        for (sid, joiner) in std::mem::take(&mut self.membership.joiners) {
            self.node.apply_change(sid, false, false);
            let text = format!(
                "{} failed (lost leadership)",
                self.adding(sid, &joiner.address)
            );
            self.log(Level::Info, text);
            self.answer_joiner(sid, false, "lost leadership");
        }
    }

    /// The cluster's id in log lines.
    pub(super) fn cid_text(&self) -> String {
        let uuid = self
            .cid
            .map_or(corvid_data::Uuid::ZERO, corvid_log::cluster::Cid::uuid);
        corvid_log::cluster::ids::short(uuid)
    }
}
