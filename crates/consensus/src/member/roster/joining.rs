//! Joining (docs/spec/distribution.md 1.9): both the server that asks and the leader that admits.
//!
//! A joiner receives the log without a vote. Once it has caught up, the leader proposes a list with
//! it; when that is committed, the joiner becomes a voter. A leader forgets its joiners when its
//! leadership ends, and they ask again.

use corvid_log::cluster::ids::nickname;
use corvid_log::cluster::{Servers, Sid};
use corvid_rpc::Level;

use super::Roster;
use super::membership::Joiner;
use crate::entry::EntryBody;
use crate::guard::SERVERS_MAX;
use crate::member::Repeated;
use crate::member::context::Context;
use crate::message::PeerMessage;

/// Maximum number of servers being added at a time; the others ask again.
const JOINERS_MAX: usize = 64;
/// Time between requests for admission, ms.
const RETRY_MS: u64 = 1000;

/// The answer to a server that is already being added.
const IN_PROGRESS: &str = "in progress";

/// This server's request for admission.
#[derive(Debug)]
pub(crate) struct Joining {
    remotes: Vec<String>,
    next_ms: u64,
}

impl Joining {
    /// `remotes`: the servers to ask.
    pub(crate) fn new(remotes: Vec<String>, now_ms: u64) -> Joining {
        Joining {
            remotes,
            next_ms: now_ms,
        }
    }

    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    pub(crate) fn remotes(&self) -> &[String] {
        &self.remotes
    }

    /// Asks for admission, if it is time.
    fn ask(&mut self, cx: &mut Context) {
        if self.next_ms > cx.now_ms {
            return;
        }
        self.next_ms = cx.now_ms + RETRY_MS;
        if cx.has_failed() {
            return;
        }
        let message = PeerMessage::AddServer {
            address: cx.settings.address.clone(),
            name: cx.settings.name.clone(),
        };
        let up: Vec<Sid> = cx.peers.connected().collect();
        for sid in up {
            cx.send(sid, message.clone());
        }
    }

    /// A server that was asked has named further ones.
    fn learn(&mut self, cx: &mut Context, remotes: Vec<String>) {
        let own = &cx.settings.address;
        let new: Vec<String> = remotes
            .into_iter()
            .filter(|address| address != own && !self.remotes.contains(address))
            .collect();
        self.remotes.extend(new.iter().cloned());
        for address in new {
            let text = format!("{address}: learned new server address for joining cluster");
            cx.log(Level::Info, text);
        }
    }
}

/// The joining server's side.
impl Roster {
    /// Asks for admission, if it is time.
    pub(crate) fn joining_time(&mut self, cx: &mut Context) {
        if let Some(joining) = &mut self.joining {
            joining.ask(cx);
        }
    }

    /// A connection is up: a joining server need not wait any longer.
    pub(crate) fn ask_now(&mut self, cx: &mut Context) {
        if let Some(joining) = &mut self.joining {
            joining.next_ms = cx.now_ms;
            joining.ask(cx);
        }
    }

    /// Handles an answer to this server's request. `has_snapshot`: its file has the contents of a
    /// member.
    pub(crate) fn hear_admission(
        &mut self,
        cx: &mut Context,
        from: Sid,
        (is_success, comment): (bool, &str),
        remote_addresses: Vec<String>,
        has_snapshot: bool,
    ) {
        let Some(joining) = &mut self.joining else {
            return;
        };
        if !is_success {
            joining.learn(cx, remote_addresses);
            let is_usual = ["not leader", "in progress", "lost leadership", "canceled"];
            if !is_usual.contains(&comment) {
                let text =
                    format!("server {from} refuses to add this server to its cluster: {comment}");
                cx.log(Level::Warn, text);
            }
            return;
        }
        // Without a snapshot the server has no contents yet. The list arrives with the log.
        if has_snapshot {
            self.complete_joining(cx);
        }
    }

    /// Stops asking once the committed list contains this server.
    pub(crate) fn complete_joining(&mut self, cx: &mut Context) {
        if self.contains(cx.own()) && self.joining.take().is_some() {
            let text = format!("joined cluster {}", cx.cid_text());
            cx.log(Level::Info, text);
        }
    }
}

/// The admitting leader's side.
impl Roster {
    /// Handles a server's request for admission. `leads`: this member's database leads. Returns
    /// whether this leader starts to add the server.
    pub(crate) fn hear_joiner(
        &mut self,
        cx: &mut Context,
        leads: bool,
        is_list_pending: bool,
        from: Sid,
        (address, name): (&str, &str),
    ) -> bool {
        let Some((is_success, comment)) =
            self.refuse_joiner(cx, leads, is_list_pending, from, name)
        else {
            self.admit(cx, from, address);
            return true;
        };
        let text = if is_success { "succeeded" } else { "failed" };
        let text = format!("{} {text} ({comment})", adding(cx, from, address));
        // A joiner repeats its request until it is added; repetitions are not news.
        let level = if comment == IN_PROGRESS {
            Level::Debug
        } else {
            Level::Info
        };
        cx.log_repeated(level, Repeated::Joiner, text);
        self.answer_joiner(cx, from, is_success, &comment);
        false
    }

    /// Success and comment of an immediate answer; `None` if the server can be admitted, which is
    /// answered later.
    fn refuse_joiner(
        &self,
        cx: &mut Context,
        leads: bool,
        is_list_pending: bool,
        from: Sid,
        name: &str,
    ) -> Option<(bool, String)> {
        let no = |comment: &str| Some((false, comment.to_owned()));
        if !leads {
            return no("not leader");
        }
        let own = &cx.settings.name;
        if name != own {
            return Some((false, format!("wrong database {name} (expected {own})")));
        }
        // A server that is being removed is still in the list. It must not be told that it is a
        // member, so this check comes first.
        if self.list.is_going(from) {
            return no("committing");
        }
        if self.contains(from) {
            return Some((true, "already in cluster".to_owned()));
        }
        if self.list.joiners.contains_key(&from) {
            return no(IN_PROGRESS);
        }
        // The committed list is not stored yet. Until it is, no reply may reveal it.
        if self.list.removed.contains(&from) && is_list_pending {
            return no("committing");
        }
        if self.list.removed.contains(&from) {
            // The server may have been added and removed without learning of either.
            let term = cx.node.term();
            cx.send(from, PeerMessage::NotMember { term });
            return no("removed from the cluster; join with a new file");
        }
        if cx.node.collides(from) {
            return no("server id collides with that of another member; join with a new file");
        }
        if self.list.joiners.len() >= JOINERS_MAX {
            return no("too many servers are being added");
        }
        if self.count() + self.list.joiners.len() >= SERVERS_MAX {
            return no("too many servers");
        }
        None
    }

    /// Starts sending the server the log, without a vote.
    fn admit(&mut self, cx: &mut Context, from: Sid, address: &str) {
        let text = format!(
            "starting to add server {} ({from} at {address}) to cluster {}",
            nickname(address, Some(from)),
            cx.cid_text()
        );
        cx.log(Level::Info, text);
        cx.node.apply_change(from, true, true);
        let joiner = Joiner {
            address: address.to_owned(),
            target: cx.node.last_index(),
            since_ms: cx.now_ms,
            is_caught_up: false,
            is_proposed: false,
        };
        self.list.joiners.insert(from, joiner);
        assert!(
            self.list.joiners.len() <= JOINERS_MAX,
            "{} servers are being added",
            self.list.joiners.len()
        );
    }

    pub(crate) fn answer_joiner(&self, cx: &mut Context, to: Sid, is_success: bool, comment: &str) {
        let members = self.members();
        let remote_addresses = members.map(|(_, address)| address.to_owned()).collect();
        let message = PeerMessage::AddServerReply {
            is_success,
            comment: comment.to_owned(),
            remote_addresses,
        };
        cx.send(to, message);
    }

    /// Proposes the list with a joiner that has caught up. Returns whether there is such a joiner.
    pub(crate) fn propose_joiner(&mut self, cx: &mut Context, servers: &Servers) -> bool {
        let mut ready = self.list.joiners.iter_mut();
        let Some((sid, joiner)) = ready.find(|(_, it)| it.is_caught_up && !it.is_proposed) else {
            return false;
        };
        let list = servers.with(*sid, &joiner.address);
        let body = EntryBody::servers(&list);
        if cx.node.propose_change(*sid, true, &body) {
            joiner.is_proposed = true;
        }
        true
    }

    /// Marks joiners that have caught up. A joiner has caught up if it receives, within one
    /// election timer, everything that was in the log when the timer started.
    pub(crate) fn watch_joiners(&mut self, cx: &Context, timer_ms: u64) {
        let (now_ms, last) = (cx.now_ms, cx.node.last_index());
        for (sid, joiner) in &mut self.list.joiners {
            let Some(progress) = cx.node.progress(*sid) else {
                continue;
            };
            if joiner.is_caught_up || progress.is_in_snapshot || progress.matched < joiner.target {
                continue;
            }
            // If this round took too long, start another: its target is the log's end now.
            joiner.is_caught_up = now_ms.saturating_sub(joiner.since_ms) <= timer_ms;
            joiner.target = last;
            joiner.since_ms = now_ms;
        }
    }

    /// A joiner has become a member.
    pub(crate) fn complete_joiner(&mut self, cx: &mut Context, sid: Sid) {
        if let Some(joiner) = self.list.joiners.remove(&sid) {
            let text = format!("{} succeeded (completed)", adding(cx, sid, &joiner.address));
            cx.log(Level::Info, text);
            self.answer_joiner(cx, sid, true, "completed");
        }
    }

    /// The connection of a joiner is down: it has to start over.
    pub(crate) fn drop_joiner(&mut self, cx: &mut Context, sid: Sid) {
        let is_waiting = |joiner: &Joiner| !joiner.is_proposed;
        if self.list.joiners.get(&sid).is_some_and(is_waiting)
            && let Some(joiner) = self.list.joiners.remove(&sid)
        {
            cx.node.apply_change(sid, false, false);
            let name = nickname(&joiner.address, Some(sid));
            let (cid, address) = (cx.cid_text(), joiner.address);
            let text =
                format!("cluster {cid}: server {name} ({address}) disconnected while joining");
            cx.log(Level::Info, text);
        }
    }

    /// Forgets all joiners; they have to ask the next leader.
    pub(crate) fn forget_joiners(&mut self, cx: &mut Context) {
        for (sid, joiner) in std::mem::take(&mut self.list.joiners) {
            cx.node.apply_change(sid, false, false);
            let text = format!(
                "{} failed (lost leadership)",
                adding(cx, sid, &joiner.address)
            );
            cx.log(Level::Info, text);
            self.answer_joiner(cx, sid, false, "lost leadership");
        }
    }
}

fn adding(cx: &Context, sid: Sid, address: &str) -> String {
    let (name, cid) = (nickname(address, Some(sid)), cx.cid_text());
    format!("adding {name} ({sid} at {address}) to cluster {cid}")
}
