//! What a shard counts of its sessions, where somebody wants to know.

use corvid_net::clock;
use corvid_reactor::shard::{CloseReason, ConnId, ConnInfo, Io};
use corvid_service::frontend::Close;
use corvid_service::message::{Piece, ToShard};
use std::sync::atomic::Ordering;

use super::ShardSessions;
use crate::metrics::shard::{End, ShardFigures, Standing};

/// Bytes of a piece of output.
pub(super) fn length(piece: &Piece) -> usize {
    match piece {
        Piece::Message(bytes) => bytes.len(),
        Piece::Update(frame) => {
            let body = frame.body.pieces().iter().map(|piece| piece.len());
            frame.head.len() + body.sum::<usize>() + frame.tail.len()
        }
    }
}

impl End {
    /// Why the server closes a session; `None`: the end of the connection's input is the reason.
    pub(super) fn of(why: &Close) -> Option<End> {
        match why {
            Close::BadMessage(_) | Close::UnexpectedReply => Some(End::BadMessage),
            Close::EndOfInput => None,
            Close::Disconnect(_) => Some(End::Disconnected),
        }
    }
}

impl ShardFigures {
    /// A session began.
    pub(super) fn open(&self, info: &ConnInfo) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if info.listener.is_some() && info.name.starts_with("ssl:") {
            self.handshakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection is gone. `session`: it had one, and what was known of its end before; `is_ours`: we made it.
    pub(super) fn ended(&self, is_ours: bool, session: Option<Option<End>>, reason: &CloseReason) {
        let Some(known) = session else {
            // A connection that we accepted and that never stood: only a handshake can fail there.
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
    /// Updates are about to be sent to a session.
    pub(super) fn note_updates(&mut self, message: &ToShard) {
        let ToShard::Deliver(deliver) = message else {
            return;
        };
        if self.figures.is_none() || !deliver.updates {
            return;
        }
        let conn = self.conns.get(&deliver.session);
        if let Some(client) = conn.and_then(|conn| self.sessions.get_mut(conn))
            && client.told_ns == 0
        {
            client.told_ns = clock::mono_ns();
        }
    }

    /// A session has taken all that was sent. The clock is read once for all, when the first asks.
    pub(super) fn note_drained(&mut self, conn: ConnId, now_ns: &mut Option<u64>) {
        let Some(figures) = &self.figures else {
            return;
        };
        if let Some(client) = self.sessions.get_mut(&conn)
            && client.told_ns != 0
        {
            let now_ns = *now_ns.get_or_insert_with(clock::mono_ns);
            figures.drain.add(now_ns.saturating_sub(client.told_ns));
            client.told_ns = 0;
        }
    }

    /// Tells how the sessions stand.
    pub(super) fn look(&self, io: &Io) {
        let Some(figures) = &self.figures else {
            return;
        };
        let now_ns = clock::mono_ns();
        let mut standing = Standing::default();
        for (conn, client) in &self.sessions {
            let backlog_bytes = io.backlog_bytes(*conn) as u64;
            let lag_ns = match client.told_ns {
                0 => 0,
                since_ns => now_ns.saturating_sub(since_ns),
            };
            standing += Standing {
                sessions: 1,
                behind: u64::from(!io.is_drained(*conn)),
                backlog_bytes,
                backlog_max_bytes: backlog_bytes,
                lag_max_ns: lag_ns,
            };
        }
        figures.look(standing);
    }
}
