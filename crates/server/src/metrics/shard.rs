//! The figures of one shard. Only its thread counts; the totals of its sessions are published when
//! a [`StatusRequest`] asks for them.

use std::sync::atomic::{AtomicU64, Ordering};

use corvid_net::clock;
use corvid_shell::durations::Durations;

use super::status_request::StatusRequest;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed the connection.
    Client,
    /// Reading or writing failed.
    Error,
    /// The client sent bytes that are not a message.
    BadMessage,
    /// The client did not answer a probe.
    Probe,
    /// The client left too much output unread, or sent too much at once.
    Limit,
    /// The server closed the session so that the client reconnects.
    Disconnected,
    /// The session's remote was removed.
    RemoteRemoved,
    /// The server is exiting.
    Shutdown,
}

impl End {
    /// All reasons, in order.
    pub(crate) const ALL: [End; 8] = [
        End::Client,
        End::Error,
        End::BadMessage,
        End::Probe,
        End::Limit,
        End::Disconnected,
        End::RemoteRemoved,
        End::Shutdown,
    ];

    /// The value of the label `reason`.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Error => "error",
            End::BadMessage => "bad_message",
            End::Probe => "probe",
            End::Limit => "limit",
            End::Disconnected => "disconnected",
            End::RemoteRemoved => "remote_removed",
            End::Shutdown => "shutdown",
        }
    }
}

/// The figures of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardFigures {
    /// Reading the envelope of one message and forwarding the message.
    pub(crate) read: Durations,
    /// From the arrival of updates for a session at the shard until the system has accepted all its
    /// output.
    pub(crate) drain: Durations,
    /// JSON received, bytes.
    pub(crate) received_bytes: AtomicU64,
    /// JSON sent, bytes.
    pub(crate) sent_bytes: AtomicU64,
    /// Sessions that began.
    pub(crate) opened: AtomicU64,
    closed: [AtomicU64; End::ALL.len()],
    /// TLS connections that clients opened.
    pub(crate) handshakes: AtomicU64,
    /// TLS handshakes of clients that failed.
    pub(crate) handshakes_failed: AtomicU64,
    totals: [AtomicU64; 5],
    request: StatusRequest,
}

/// Totals of a shard's sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionTotals {
    /// The number of sessions.
    pub(crate) sessions: u64,
    /// The number of sessions with output that the system has not accepted.
    pub(crate) behind: u64,
    /// Output queued for all sessions together, bytes.
    pub(crate) backlog_bytes: u64,
    /// The largest output queued for one session, bytes.
    pub(crate) backlog_max_bytes: u64,
    /// The age of the oldest queued update, ns.
    pub(crate) lag_max_ns: u64,
}

impl std::ops::AddAssign for SessionTotals {
    fn add_assign(&mut self, other: SessionTotals) {
        self.sessions += other.sessions;
        self.behind += other.behind;
        self.backlog_bytes += other.backlog_bytes;
        self.backlog_max_bytes = self.backlog_max_bytes.max(other.backlog_max_bytes);
        self.lag_max_ns = self.lag_max_ns.max(other.lag_max_ns);
    }
}

impl ShardFigures {
    /// Counts the end of a session.
    pub(crate) fn close(&self, why: End) {
        self.closed[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of sessions that ended for this reason.
    #[must_use]
    pub(crate) fn closed(&self, why: End) -> u64 {
        self.closed[why as usize].load(Ordering::Relaxed)
    }

    /// Records a request for the totals; the caller must then send a message to the shard.
    pub(super) fn request_status(&self) {
        self.request.send(clock::mono_ms());
    }

    /// The request for the totals.
    pub(super) fn request(&self) -> &StatusRequest {
        &self.request
    }

    /// Publishes the totals, as the answer to the request.
    pub(crate) fn set_totals(&self, totals: SessionTotals) {
        let values = [
            totals.sessions,
            totals.behind,
            totals.backlog_bytes,
            totals.backlog_max_bytes,
            totals.lag_max_ns,
        ];
        for (cell, value) in self.totals.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
        self.request.answer(clock::mono_ms());
    }

    /// The last published totals.
    #[must_use]
    pub(crate) fn totals(&self) -> SessionTotals {
        let value = |index: usize| self.totals[index].load(Ordering::Relaxed);
        SessionTotals {
            sessions: value(0),
            behind: value(1),
            backlog_bytes: value(2),
            backlog_max_bytes: value(3),
            lag_max_ns: value(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_count() {
        let figures = ShardFigures::default();
        for (index, why) in End::ALL.into_iter().enumerate() {
            assert_eq!(index, why as usize);
            (0..=index).for_each(|_| figures.close(why));
        }
        let counts = End::ALL.map(|why| figures.closed(why));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn totals_of_several_shards_are_sums_and_maxima() {
        let figures = ShardFigures::default();
        figures.request_status();
        figures.set_totals(SessionTotals {
            sessions: 3,
            behind: 1,
            backlog_bytes: 10,
            backlog_max_bytes: 10,
            lag_max_ns: 7,
        });
        let mut all = figures.totals();
        all += SessionTotals {
            sessions: 1,
            behind: 1,
            backlog_bytes: 5,
            backlog_max_bytes: 5,
            lag_max_ns: 9,
        };
        let expected = SessionTotals {
            sessions: 4,
            behind: 2,
            backlog_bytes: 15,
            backlog_max_bytes: 10,
            lag_max_ns: 9,
        };
        assert_eq!(all, expected);
        assert!(!figures.request().is_pending());
    }
}
