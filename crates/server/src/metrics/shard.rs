//! The figures of one shard: what passes is counted by its thread alone, how its sessions stand is told when it is called.

use std::sync::atomic::{AtomicU64, Ordering};

use corvid_net::clock;
use corvid_shell::durations::Durations;

use super::call::Call;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed.
    Client,
    /// Reading or writing failed.
    Error,
    /// It sent what is no message.
    BadMessage,
    /// It gave no sign of life.
    Probe,
    /// It left too much unread, or sent too much at once.
    Limit,
    /// The server wanted it to start over.
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

    /// As labels name it.
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
    /// Reading the envelope of one text and sending it on its way.
    pub(crate) read: Durations,
    /// From the moment at which updates for a session are handed to the shard until all its output has been taken by the system.
    pub(crate) drain: Durations,
    /// JSON received and sent, bytes.
    pub(crate) received_bytes: AtomicU64,
    /// See there.
    pub(crate) sent_bytes: AtomicU64,
    /// Sessions that began.
    pub(crate) opened: AtomicU64,
    closed: [AtomicU64; End::ALL.len()],
    /// TLS connections that clients made.
    pub(crate) handshakes: AtomicU64,
    /// Those that failed.
    pub(crate) handshakes_failed: AtomicU64,
    standing: [AtomicU64; 5],
    call: Call,
}

/// How the sessions of a shard stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Sessions.
    pub(crate) sessions: u64,
    /// Those that have yet to take output.
    pub(crate) behind: u64,
    /// Output that waits for them, bytes.
    pub(crate) backlog_bytes: u64,
    /// The most that waits for one of them, bytes.
    pub(crate) backlog_max_bytes: u64,
    /// For how long the oldest update has not been taken, ns.
    pub(crate) lag_max_ns: u64,
}

impl std::ops::AddAssign for Standing {
    fn add_assign(&mut self, other: Standing) {
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

    /// Sessions that ended so.
    #[must_use]
    pub(crate) fn closed(&self, why: End) -> u64 {
        self.closed[why as usize].load(Ordering::Relaxed)
    }

    /// Notes that the shard is about to be called; a message to it must follow.
    pub(super) fn make_call(&self) {
        self.call.make(clock::mono_ms());
    }

    /// How its call stands.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// The shard has come, and its sessions stand so.
    pub(crate) fn look(&self, standing: Standing) {
        let values = [
            standing.sessions,
            standing.behind,
            standing.backlog_bytes,
            standing.backlog_max_bytes,
            standing.lag_max_ns,
        ];
        for (cell, value) in self.standing.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
        self.call.answer(clock::mono_ms());
    }

    /// How its sessions stood when it last came.
    #[must_use]
    pub(crate) fn standing(&self) -> Standing {
        let value = |place: usize| self.standing[place].load(Ordering::Relaxed);
        Standing {
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
        for (place, why) in End::ALL.into_iter().enumerate() {
            assert_eq!(place, why as usize);
            (0..=place).for_each(|_| figures.close(why));
        }
        let counts = End::ALL.map(|why| figures.closed(why));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn of_several_shards_sums_and_maxima_are_told() {
        let figures = ShardFigures::default();
        figures.make_call();
        figures.look(Standing {
            sessions: 3,
            behind: 1,
            backlog_bytes: 10,
            backlog_max_bytes: 10,
            lag_max_ns: 7,
        });
        let mut all = figures.standing();
        all += Standing {
            sessions: 1,
            behind: 1,
            backlog_bytes: 5,
            backlog_max_bytes: 5,
            lag_max_ns: 9,
        };
        let expected = Standing {
            sessions: 4,
            behind: 2,
            backlog_bytes: 15,
            backlog_max_bytes: 10,
            lag_max_ns: 9,
        };
        assert_eq!(all, expected);
        assert!(!figures.call().is_made());
    }
}
