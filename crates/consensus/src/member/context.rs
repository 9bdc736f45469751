//! The surroundings of every part of a member: its identity, the time, the algorithm, its
//! connections, whether it has failed, and the queue of outputs.
//!
//! Invariant: a part changes its own fields and this context, and nothing of another part, except
//! that the roster writes to the file. The context must not know the parts.

use corvid_log::cluster::{Cid, Sid};
use corvid_log::storage::StorageRequest;
use corvid_rpc::Level;

use super::failure::Failure;
use super::outbox::Outbox;
use super::peers::PeerTable;
use super::{Output, Repeated, Settings};
use crate::database::MemberEvent;
use crate::message::PeerMessage;
use crate::raft_node::RaftNode;

/// The state that all parts of a member share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    /// The cluster, if known.
    pub(crate) cid: Option<Cid>,
    pub(crate) now_ms: u64,
    pub(crate) node: RaftNode,
    pub(crate) peers: PeerTable,
    /// Why the member can no longer take part; `None` if it can.
    pub(crate) failure: Option<Failure>,
    pub(crate) outbox: Outbox,
}

impl Context {
    /// This member's id.
    pub(crate) fn own(&self) -> Sid {
        self.settings.sid
    }

    pub(crate) fn put(&mut self, output: Output) {
        self.outbox.put(output);
    }

    pub(crate) fn send(&mut self, to: Sid, message: PeerMessage) {
        if to != self.own() {
            self.put(Output::Send { to, message });
        }
    }

    pub(crate) fn tell_database(&mut self, event: MemberEvent) {
        self.put(Output::Database(event));
    }

    pub(crate) fn store(&mut self, requests: Vec<StorageRequest>) {
        if !requests.is_empty() {
            self.put(Output::Store(requests));
        }
    }

    pub(crate) fn log(&mut self, level: Level, text: String) {
        self.put(Output::Log(level, None, text));
    }

    /// Logs a line of a kind with a rate limit.
    pub(crate) fn log_repeated(&mut self, level: Level, kind: Repeated, text: String) {
        self.put(Output::Log(level, Some(kind), text));
    }

    /// Records that this member no longer takes part, and why.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.log(Level::Error, failure.text().to_owned());
        self.put(Output::Failed(failure.text().to_owned()));
        self.failure = Some(failure);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The leader, if another member leads and messages can be sent to it.
    pub(crate) fn reachable_leader(&self) -> Option<Sid> {
        let leader = self.node.leader()?;
        (leader != self.own() && self.peers.is_up(leader)).then_some(leader)
    }

    /// The short form of the cluster's id, for log lines.
    pub(crate) fn cid_text(&self) -> String {
        let uuid = self.cid.map_or(corvid_data::Uuid::ZERO, Cid::uuid);
        corvid_log::cluster::ids::short(uuid)
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    //! Contexts for the tests of parts.

    use super::*;
    use crate::entry::EntryBody;
    use crate::member::KeptEntries;
    use crate::raft_node::{LogEntry, Opening};
    use corvid_data::Uuid;
    use corvid_log::cluster::{Index, Servers, Term};

    pub(crate) fn sid(number: u8) -> Sid {
        Sid(Uuid([number; 16]))
    }

    /// A list of these servers.
    pub(crate) fn list(numbers: &[u8]) -> Servers {
        let server = |number: &u8| format!("\"{}\":\"tcp:10.0.0.{number}:6644\"", sid(*number).0);
        let servers: Vec<String> = numbers.iter().map(server).collect();
        Servers::decode(format!("{{{}}}", servers.join(",")).as_bytes()).expect("a list")
    }

    /// Member 1 of these voters, in term 3, with entries up to `last`, all committed.
    fn member(voters: &[u8], last: u64) -> Context {
        let entry = |index| LogEntry {
            term: Term(2),
            index: Index(index),
            body: EntryBody::empty(),
        };
        let opening = Opening {
            sid: sid(1),
            snapshot: (Index(1), Term(1)),
            entries: (2..=last).map(entry).collect(),
            term: Term(3),
            vote: None,
            commit: Index(last),
            voters: voters.iter().copied().map(sid).collect(),
        };
        Context {
            settings: Settings {
                sid: sid(1),
                name: "D".to_owned(),
                address: "tcp:10.0.0.1:6644".to_owned(),
                kept: KeptEntries::NONE,
            },
            cid: None,
            now_ms: 0,
            node: RaftNode::new(&opening, 10).expect("a state"),
            peers: PeerTable::default(),
            failure: None,
            outbox: Outbox::default(),
        }
    }

    /// Member 1, which follows member 2 in term 3 and can reach it.
    pub(crate) fn follower() -> Context {
        let mut cx = member(&[1, 2], 1);
        let (term, commit) = (Term(3), Index(1));
        cx.node
            .step(sid(2), PeerMessage::Heartbeat { term, commit });
        cx.peers.admit(sid(2), true).expect("a member").is_up = true;
        assert_eq!(cx.reachable_leader(), Some(sid(2)));
        cx
    }

    /// Member 1, which is alone and leads.
    pub(crate) fn leader() -> Context {
        leader_with_log(1)
    }

    /// Like [`leader`], with entries up to `last`.
    pub(crate) fn leader_with_log(last: u64) -> Context {
        let mut cx = member(&[1], last);
        cx.node.campaign();
        assert!(cx.node.is_leader());
        cx
    }

    /// Takes the messages put so far, with their receivers.
    pub(crate) fn take_messages(cx: &mut Context) -> Vec<(Sid, PeerMessage)> {
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let messages = outputs.filter_map(|output| match output {
            Output::Send { to, message } => Some((to, message)),
            _ => None,
        });
        messages.collect()
    }
}
