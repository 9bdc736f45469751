//! The list of sessions for operators (`ovsdb-server/list-sessions`): one line of `NAME=VALUE`
//! pairs for each session, or a JSON array.
//!
//! Shards make the entries; the locks come from the table that shards share.
//! `docs/operate/configuration.md` documents names and units.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use corvid_json::Value;
use corvid_json::shown::{self, Shown};
use corvid_monitor::SessionId;
use corvid_service::locks::Locks;
use corvid_service::message::SessionInfo;

use crate::status::{count, list, object, optional};

/// A session as operators see it.
#[derive(Debug)]
pub(crate) struct ListedSession {
    /// The session's number.
    pub(crate) session: SessionId,
    /// The session's peer, remote, role and client name.
    pub(crate) info: Arc<SessionInfo>,
    /// The client's process and its program, if they are known.
    pub(crate) process: Option<(u32, Arc<str>)>,
    /// The number of the session's monitors.
    pub(crate) monitors: usize,
    /// The number of the session's unanswered requests.
    pub(crate) requests: usize,
    /// Bytes received since the session began.
    pub(crate) received_bytes: u64,
    /// Bytes sent since the session began.
    pub(crate) sent_bytes: u64,
    /// Queued output, bytes.
    pub(crate) backlog_bytes: usize,
    /// The age of the session, ms.
    pub(crate) age_ms: u64,
    /// The last request other than `echo`: its method, and its age, ms.
    pub(crate) last_request: Option<(&'static str, u64)>,
    /// The cost of the session since it began.
    pub(crate) cost: SessionCost,
}

/// The cost of a session, except bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionCost {
    /// CPU time of its requests and updates, us.
    pub(crate) cpu_us: u64,
    /// Its requests.
    pub(crate) requests: u64,
    /// Updates of its monitors that were sent.
    pub(crate) updates: u64,
}

/// The sessions of one shard, or of all.
#[derive(Debug, Default)]
pub(crate) struct SessionList {
    /// The sessions.
    pub(crate) sessions: Vec<ListedSession>,
    /// Requests received so far, those of sessions that have ended included.
    pub(crate) requests: u64,
}

impl ListedSession {
    /// The session's members, in order.
    fn members(&self, locks: &Locks) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::string(text);
        let info = &self.info;
        let claims = locks.requested_by(self.session);
        let (method, ago_ms) = self.last_request.unzip();
        let mut members = vec![
            ("id", text(&format!("{:x}", self.session.0))),
            ("peer", text(&info.peer)),
            ("remote", text(&info.remote)),
            ("role", text(&info.role)),
            (
                "client",
                text(info.client_id.as_deref().unwrap_or_default()),
            ),
        ];
        if let Some((pid, program)) = &self.process {
            members.push(("program", text(program)));
            members.push(("pid", count(u64::from(*pid))));
        }
        members.extend([
            ("read_only", Value::Bool(info.read_only)),
            ("change_aware", Value::Bool(info.is_aware())),
            ("monitors", count(self.monitors as u64)),
            ("locks", count(claims.owned.len() as u64)),
            ("requests", count(self.requests as u64)),
            ("received_bytes", count(self.received_bytes)),
            ("sent_bytes", count(self.sent_bytes)),
            ("backlog_bytes", count(self.backlog_bytes as u64)),
            ("age_ms", count(self.age_ms)),
            ("last_request", text(method.unwrap_or_default())),
            ("last_request_age_ms", optional(ago_ms)),
            (
                "cost",
                object([
                    ("cpu_us", count(self.cost.cpu_us)),
                    ("requests", count(self.cost.requests)),
                    ("updates", count(self.cost.updates)),
                    ("received_bytes", count(self.received_bytes)),
                    ("sent_bytes", count(self.sent_bytes)),
                    ("queued_bytes", count(self.backlog_bytes as u64)),
                    ("last_request", method.map_or(Value::Null, text)),
                    ("last_request_age_ms", optional(ago_ms)),
                ]),
            ),
        ]);
        members
    }
}

/// A line for each session.
#[must_use]
pub(crate) fn lines(sessions: &[ListedSession], locks: &Locks) -> String {
    let mut out = String::new();
    for session in sessions {
        let members = session.members(locks);
        // The line ends with the parts of `cost` that it does not have already.
        let members = members.iter().filter(|(name, _)| *name != "cost");
        for (index, (name, value)) in members.enumerate() {
            let blank = if index == 0 { "" } else { " " };
            let _ = write!(out, "{blank}{name}={}", plain(value));
        }
        let cost = session.cost;
        let _ = writeln!(
            out,
            " cost.cpu_us={} cost.requests={} cost.updates={}",
            cost.cpu_us, cost.requests, cost.updates
        );
    }
    out
}

/// An object for each session.
#[must_use]
pub(crate) fn json(sessions: &[ListedSession], locks: &Locks) -> Value {
    list(
        sessions
            .iter()
            .map(|session| object(session.members(locks))),
    )
}

/// The locks with their owners and those who wait, named by their peers.
#[must_use]
pub(crate) fn locks_json(sessions: &[ListedSession], locks: &Locks) -> Value {
    let peers: HashMap<SessionId, &str> = sessions
        .iter()
        .map(|listed| (listed.session, &*listed.info.peer))
        .collect();
    // A session that began after the sessions were listed has no name yet.
    let peer = |session| {
        peers
            .get(&session)
            .map_or(Value::Null, |peer| Value::string(*peer))
    };
    list(locks.list().into_iter().map(|lock| {
        object([
            ("name", Value::string(&lock.name)),
            ("owner", lock.owner.map_or(Value::Null, peer)),
            ("waiting", list(lock.waiting.into_iter().map(peer))),
        ])
    }))
}

/// A value for scripts: a string is quoted only if it contains blanks, quotes or control
/// characters; null is empty.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(_) => {
            let text = value.as_str().unwrap_or_default();
            let needs_quotes =
                |letter: char| letter.is_whitespace() || shown::is_control(letter) || letter == '"';
            if text.contains(needs_quotes) {
                // Control characters that JSON does not escape are escaped too: a person or a
                // script reads this.
                Shown(value).to_string()
            } else {
                text.to_owned()
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_session_can_be_split_at_blanks() {
        let info = SessionInfo::new(
            true,
            "ovn controller".to_owned(),
            Some("ch1\u{9b}\n".to_owned()),
        );
        let session = ListedSession {
            session: SessionId(0x1_0000_0000_0002),
            process: Some((71, "ovn controller".into())),
            info: Arc::new(info.of_peer("ssl:192.0.2.1:5000".into(), "pssl:6642".into())),
            monitors: 2,
            requests: 0,
            received_bytes: 300,
            sent_bytes: 4000,
            backlog_bytes: 0,
            age_ms: 65_000,
            last_request: None,
            cost: SessionCost {
                cpu_us: 70,
                requests: 3,
                updates: 5,
            },
        };
        let expected = "id=1000000000002 peer=ssl:192.0.2.1:5000 remote=pssl:6642 role=\"ovn controller\" client=\"ch1\\u009b\\n\" program=\"ovn controller\" pid=71 read_only=true \
            change_aware=false monitors=2 locks=0 requests=0 received_bytes=300 sent_bytes=4000 backlog_bytes=0 age_ms=65000 last_request= last_request_age_ms= cost.cpu_us=70 cost.requests=3 cost.updates=5\n";
        let sessions = [session];
        assert_eq!(lines(&sessions, &Locks::new()), expected);
        let json = json(&sessions, &Locks::new());
        let first = &json.as_array().unwrap()[0];
        assert_eq!(
            first.get("role").and_then(Value::as_str),
            Some("ovn controller")
        );
        assert_eq!(first.get("last_request_age_ms"), Some(&Value::Null));
        let cost = first.get("cost").expect("an object");
        assert_eq!(cost.get("updates").and_then(Value::as_integer), Some(5));
        assert_eq!(cost.get("last_request"), Some(&Value::Null));
    }
}
