//! The status of one cluster member: the text of `cluster/status`, and its JSON form.

use corvid_consensus::Status;
use corvid_consensus::member::{Connected, PeerStatus, Phase, Role};
use corvid_json::Value;
use corvid_log::cluster::{Index, Sid};

use super::{count, list, object, optional};
use crate::jobs::{JobKind, ListedJob};
use crate::member::status_text;

/// The state of a member and its connections.
#[derive(Debug)]
pub(crate) struct MemberStatus {
    /// The member.
    pub(crate) status: Status,
    /// Its connections in the reference's notation.
    pub(crate) connections: String,
    /// Connections that have ended.
    pub(crate) disconnections: u64,
}

impl MemberStatus {
    /// The text of `cluster/status`.
    pub(crate) fn text(&self) -> String {
        status_text::render(&self.status, &self.connections, self.disconnections)
    }

    /// The snapshots that the member receives and sends.
    pub(crate) fn transfers(&self, database: &str) -> Vec<ListedJob> {
        let status = &self.status;
        let received = status.receiving.map(|bytes| {
            let kind = match status.connected {
                Connected::Joining | Connected::Repairing(_) => JobKind::Joining,
                _ => JobKind::Snapshot,
            };
            ListedJob::transfer(database, kind, bytes)
        });
        let sent = status.servers.iter().filter_map(|peer| peer.snapshot);
        let sent = sent.map(|bytes| ListedJob::transfer(database, JobKind::Snapshot, bytes));
        received.into_iter().chain(sent).collect()
    }

    /// The role, the term and the number of members.
    pub(super) fn words(&self) -> String {
        let (status, members) = (&self.status, self.status.servers.len());
        let state = status_text::state(&status.connected, status.file);
        let role = role(status.role);
        let term = status.term;
        format!("{state}, {role} in term {term} of {members} servers")
    }

    /// The object that the status has under `cluster`, and `ovs-appctl -f json cluster/status`
    /// prints.
    pub(crate) fn json(&self) -> Value {
        let status = &self.status;
        let server =
            |sid: Option<Sid>| sid.map_or(Value::Null, |sid| Value::string(sid.0.to_string()));
        let cid = status.cid.map(|cid| cid.uuid().to_string());
        let servers = status.servers.iter().map(|peer| self.peer(peer));
        object([
            ("name", Value::string(&status.name)),
            ("cluster_id", cid.map_or(Value::Null, Value::string)),
            ("server_id", server(Some(status.sid))),
            ("address", Value::string(&status.address)),
            (
                "status",
                Value::string(status_text::state(&status.connected, status.file)),
            ),
            (
                "file_error",
                status
                    .file_error
                    .as_ref()
                    .map_or(Value::Null, Value::string),
            ),
            ("role", Value::string(role(status.role))),
            ("term", count(status.term.0)),
            ("leader", server(status.leader)),
            ("vote", server(status.vote)),
            ("election_timer_ms", count(status.election_timer_ms)),
            ("elections", count(status.elections)),
            (
                "election_started_age_ms",
                optional(status.election_started.map(|(age_ms, _)| age_ms)),
            ),
            ("election_won_age_ms", optional(status.election_won_ms)),
            ("log_first", index(status.log_start)),
            ("log_end", index(status.log_end)),
            ("log_bytes", count(status.log_bytes)),
            ("committed", index(status.commit)),
            ("applied", index(status.applied)),
            ("known_committed", index(status.known_commit)),
            (
                "stalled_ms",
                optional(status.is_still.then_some(status.index_age_ms)),
            ),
            ("disconnections", count(self.disconnections)),
            ("servers", list(servers)),
        ])
    }

    fn peer(&self, peer: &PeerStatus) -> Value {
        let snapshot = peer.snapshot.map_or(Value::Null, |(sent, of)| {
            object([("sent_bytes", count(sent)), ("bytes", count(of))])
        });
        object([
            ("server_id", Value::string(peer.sid.0.to_string())),
            ("address", Value::string(&peer.address)),
            ("self", Value::Bool(peer.sid == self.status.sid)),
            ("phase", Value::string(phase(peer.phase))),
            ("connected", Value::Bool(peer.is_up)),
            ("next", peer.next_index.map_or(Value::Null, index)),
            ("match", peer.match_index.map_or(Value::Null, index)),
            ("last_message_age_ms", optional(peer.last_message_ms)),
            (
                "silent_ms",
                optional(peer.is_silent.then_some(peer.silent_ms)),
            ),
            (
                "stalled_ms",
                optional(peer.index_age_ms.filter(|_| peer.is_still)),
            ),
            ("snapshot", snapshot),
        ])
    }
}

fn index(index: Index) -> Value {
    count(index.0)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Stable => "member",
        Phase::CatchUp | Phase::CaughtUp | Phase::Committing => "being added",
        Phase::Removing => "being removed",
    }
}
