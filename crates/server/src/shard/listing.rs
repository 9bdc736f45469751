//! The list of a shard's sessions, for operators.

use corvid_net::clock::Now;
use corvid_reactor::shard::Io;

use super::ShardSessions;
use crate::control::sessions::{ListedSession, SessionCost, SessionList};

impl ShardSessions {
    /// An entry for each session of this shard, and the number of its requests.
    pub(super) fn list(&self, now: Now, io: &Io) -> SessionList {
        let sessions = self.sessions.iter();
        let listed = sessions.filter_map(|(conn, client)| {
            let standing = self.frontend.status(client.session)?;
            let (received_bytes, sent_bytes) = io.traffic(*conn);
            let since = |at_ms: u64| now.mono_ms.saturating_sub(at_ms);
            Some(ListedSession {
                session: client.session,
                process: client.process.clone(),
                monitors: standing.monitors,
                requests: standing.requests,
                received_bytes,
                sent_bytes,
                backlog_bytes: io.backlog_bytes(*conn),
                age_ms: since(client.opened_ms),
                cost: SessionCost {
                    cpu_us: standing.info.cpu_ns() / 1000,
                    requests: standing.requests_received,
                    updates: standing.updates_sent,
                },
                info: standing.info,
                last_request: standing
                    .last_request
                    .map(|(method, at_ms)| (method, since(at_ms))),
            })
        });
        SessionList {
            sessions: listed.collect(),
            requests: self.frontend.requests_received(),
        }
    }
}
