//! A shard's counts, and the totals of its sessions, with `--metrics-listen`.

use corvid_net::clock;
use corvid_reactor::shard::{CloseReason, ConnId, ConnInfo, Io};
use corvid_service::frontend::Close;
use corvid_service::message::Deliver;
use std::sync::atomic::Ordering;

use super::ShardSessions;
use crate::metrics::shard::{End, SessionTotals, ShardFigures};

impl End {
    /// Why the server closes a session; `None`: the end of the connection's input gives the reason.
    pub(super) fn of(why: &Close) -> Option<End> {
        match why {
            Close::BadMessage(_) | Close::UnexpectedReply => Some(End::BadMessage),
            Close::EndOfInput => None,
            Close::Disconnect(_) => Some(End::Disconnected),
        }
    }
}

impl ShardFigures {
    /// Counts a session that began.
    pub(super) fn open(&self, info: &ConnInfo) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if info.listener.is_some() && info.name.starts_with("ssl:") {
            self.handshakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the end of a connection. `session`: `None` if it had no session, else the known
    /// reason of the session's end, if any; `is_ours`: the server opened the connection.
    pub(super) fn ended(&self, is_ours: bool, session: Option<Option<End>>, reason: &CloseReason) {
        let Some(known) = session else {
            // The server accepted the connection but it never became open: only a handshake can
            // fail there.
            if !is_ours && matches!(reason, CloseReason::ConnectFailed(_)) {
                self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            }
            return;
        };
        self.close(known.unwrap_or(match reason {
            CloseReason::EndOfFile => End::Client,
            CloseReason::BadFraming => End::BadMessage,
            CloseReason::LimitReached => End::Limit,
            CloseReason::ListenerRemoved => End::RemoteRemoved,
            CloseReason::Shutdown => End::Shutdown,
            CloseReason::Local => End::Disconnected,
            _ => End::Error,
        }));
    }
}

impl ShardSessions {
    /// Records when the oldest update queued for a session arrived.
    pub(super) fn stamp_updates(&mut self, deliver: &Deliver) {
        if !self.figures.is_on() || !deliver.report_drained {
            return;
        }
        let conn = self.conns.get(&deliver.session);
        if let Some(client) = conn.and_then(|conn| self.sessions.get_mut(conn))
            && client.updates_since_ns == 0
        {
            client.updates_since_ns = clock::mono_ns();
        }
    }

    /// Counts how long a session's updates were queued, once all its output is written. The clock
    /// is read once for all sessions.
    pub(super) fn count_drained(&mut self, conn: ConnId, now_ns: &mut Option<u64>) {
        let Some(figures) = self.figures.counted() else {
            return;
        };
        if let Some(client) = self.sessions.get_mut(&conn)
            && client.updates_since_ns != 0
        {
            let now_ns = *now_ns.get_or_insert_with(clock::mono_ns);
            figures
                .drain
                .add(now_ns.saturating_sub(client.updates_since_ns));
            client.updates_since_ns = 0;
        }
    }

    /// Publishes the totals of the sessions.
    pub(super) fn publish_totals(&self, io: &Io) {
        let now_ns = clock::mono_ns();
        let mut totals = SessionTotals::default();
        for (conn, client) in &self.sessions {
            let backlog_bytes = io.backlog_bytes(*conn) as u64;
            let lag_ns = match client.updates_since_ns {
                0 => 0,
                since_ns => now_ns.saturating_sub(since_ns),
            };
            totals += SessionTotals {
                sessions: 1,
                behind: u64::from(!io.is_drained(*conn)),
                backlog_bytes,
                backlog_max_bytes: backlog_bytes,
                lag_max_ns: lag_ns,
            };
        }
        self.figures.state().set_totals(totals);
    }
}
