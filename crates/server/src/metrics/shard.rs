//! The figures of one shard. Its thread alone counts; the totals of its sessions are published when a [`StatusRequest`] asks for them.

use std::sync::atomic::{AtomicU64, Ordering};

use corvid_net::clock;
use corvid_shell::durations::Durations;

use super::status_request::StatusRequest;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed.
    Client,
    /// Reading or writing failed.
    Error,
    /// It sent bytes that are no message.
    BadMessage,
    /// It did not answer a probe.
    Probe,
    /// It left too much unread, or sent too much at once.
    Limit,
    /// The server closed it so that it reconnects.
    Disconnected,
    /// Its remote was removed.
    RemoteRemoved,
    /// The server exits.
    Shutdown,
}

impl End {
    /// All, in order.
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

    /// The label's value.
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

/// The figures.
#[derive(Debug, Default)]
pub(crate) struct ShardFigures {
    /// Reading the envelope of one message and forwarding it.
    pub(crate) read: Durations,
    /// From the moment at which updates for a session reach the shard until the system has accepted all its output.
    pub(crate) drain: Durations,
    /// JSON received, bytes.
    pub(crate) received_bytes: AtomicU64,
    /// JSON sent, bytes.
    pub(crate) sent_bytes: AtomicU64,
    /// Sessions that began.
    pub(crate) opened: AtomicU64,
    closed: [AtomicU64; End::ALL.len()],
    /// TLS connections that clients made.
    pub(crate) handshakes: AtomicU64,
    /// TLS handshakes of clients that failed.
    pub(crate) handshakes_failed: AtomicU64,
    totals: [AtomicU64; 5],
    request: StatusRequest,
}

/// Totals of a shard's sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionTotals {
    /// Sessions.
    pub(crate) sessions: u64,
    /// Sessions with output that the system has not accepted.
    pub(crate) behind: u64,
    /// Output that is queued for all sessions, bytes.
    pub(crate) backlog_bytes: u64,
    /// The most output that is queued for one session, bytes.
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
    /// A session ended.
    pub(crate) fn close(&self, why: End) {
        self.closed[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Sessions that ended for this reason.
    #[must_use]
    pub(crate) fn closed(&self, why: End) -> u64 {
        self.closed[why as usize].load(Ordering::Relaxed)
    }

    /// Records a request for the totals; a message to the shard must follow.
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
