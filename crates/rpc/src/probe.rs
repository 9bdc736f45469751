//! The inactivity probe of one connection (docs/spec/protocol.md 1.9): when to send a probe, and
//! when to give up on the peer.
//!
//! Invariant: an interval expires only if the caller tried to read after its end. So a process that
//! was busy or suspended reads the bytes that arrived meanwhile before it drops its peer. Accepted
//! sessions and the reconnect machine use this; it sends nothing.
//!
//! Example with an interval of 5 s: the process is suspended from 0 to 60 s. At 60 s no probe is
//! due, because nothing was read since 5 s. The caller reads, finds bytes, and the interval starts
//! again.

/// The shortest interval, ms; shorter ones, except 0, are raised to it.
pub const INTERVAL_MS_MIN: u64 = 1000;

/// Default interval of connections over a network, ms.
pub const INTERVAL_MS_DEFAULT: u64 = 5000;

/// The timer of one connection. All times are monotonic ms.
#[derive(Debug, Clone)]
pub struct Probe {
    /// 0 disables probes.
    interval_ms: u64,
    phase: Phase,
    /// When the caller last tried to read.
    attempted_ms: u64,
    /// Silence before this time does not count.
    excused_ms: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The peer was last active at this time.
    Alive { since_ms: u64 },
    /// A probe was sent at this time.
    Pending { since_ms: u64 },
}

/// The action due when an interval has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Send [`crate::message::PROBE`].
    Probe {
        /// How long the peer has been silent, ms.
        idle_ms: u64,
    },
    /// Drop the connection.
    Disconnect {
        /// Time since the probe was sent, ms.
        unanswered_ms: u64,
    },
}

impl Probe {
    /// The timer of a connection that has just been established. An interval of 0 disables it.
    #[must_use]
    pub fn new(now_ms: u64, interval_ms: u64) -> Self {
        Probe {
            interval_ms: raise(interval_ms),
            phase: Phase::Alive { since_ms: now_ms },
            attempted_ms: now_ms,
            excused_ms: 0,
        }
    }

    /// The current interval, ms; 0 if disabled.
    #[must_use]
    pub fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    /// Changes the interval; applies to the silence so far as well.
    pub fn set_interval(&mut self, interval_ms: u64) {
        self.interval_ms = raise(interval_ms);
    }

    /// A byte has arrived, or queued output has been sent.
    pub fn activity(&mut self, now_ms: u64) {
        self.phase = Phase::Alive { since_ms: now_ms };
    }

    /// The caller has tried to read, with or without success.
    pub fn receive_attempted(&mut self, now_ms: u64) {
        self.attempted_ms = now_ms;
    }

    /// Until this time the peer is busy with work from this side: no interval expires earlier.
    pub fn excuse_until(&mut self, at_ms: u64) {
        self.excused_ms = self.excused_ms.max(at_ms);
    }

    /// Whether a probe has been sent and the peer has not been active since.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Pending { .. })
    }

    /// The action that is due now, if any. Each expired interval yields one action.
    pub fn handle(&mut self, now_ms: u64) -> Option<Demand> {
        let expiry_ms = self.expiry_ms()?;
        if now_ms < expiry_ms || self.attempted_ms < expiry_ms {
            return None;
        }
        match self.phase {
            Phase::Alive { since_ms } => {
                self.phase = Phase::Pending { since_ms: now_ms };
                Some(Demand::Probe {
                    idle_ms: now_ms - since_ms,
                })
            }
            Phase::Pending { since_ms } => Some(Demand::Disconnect {
                unanswered_ms: now_ms - since_ms,
            }),
        }
    }

    /// When to call [`Probe::handle`] next; `None` if never. After the end of an interval this is
    /// one millisecond away, until a read is tried.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        let expiry_ms = self.expiry_ms()?;
        Some(if now_ms < expiry_ms || self.attempted_ms >= expiry_ms {
            expiry_ms
        } else {
            now_ms + 1
        })
    }

    fn expiry_ms(&self) -> Option<u64> {
        let (Phase::Alive { since_ms } | Phase::Pending { since_ms }) = self.phase;
        let expiry_ms = since_ms.saturating_add(self.interval_ms);
        (self.interval_ms > 0).then(|| expiry_ms.max(self.excused_ms))
    }
}

fn raise(interval_ms: u64) -> u64 {
    if interval_ms == 0 {
        0
    } else {
        interval_ms.max(INTERVAL_MS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Probe};

    /// Tries to read, without success, and returns the due action.
    fn read(probe: &mut Probe, now_ms: u64) -> Option<Demand> {
        probe.receive_attempted(now_ms);
        probe.handle(now_ms)
    }

    #[test]
    fn silence_is_probed_once_and_then_disconnected() {
        let mut probe = Probe::new(100, 5000);
        assert_eq!(probe.deadline_ms(100), Some(5100));
        assert_eq!(read(&mut probe, 5099), None);
        assert_eq!(
            read(&mut probe, 5101),
            Some(Demand::Probe { idle_ms: 5001 })
        );
        assert_eq!(read(&mut probe, 5101), None);
        assert_eq!(probe.deadline_ms(5101), Some(10_101));
        assert_eq!(
            read(&mut probe, 10_101),
            Some(Demand::Disconnect {
                unanswered_ms: 5000
            })
        );
    }

    #[test]
    fn any_byte_restarts_the_interval() {
        let mut probe = Probe::new(0, 5000);
        assert!(read(&mut probe, 5000).is_some());
        assert!(probe.is_pending());
        probe.activity(9999);
        assert!(!probe.is_pending());
        assert_eq!(read(&mut probe, 14_998), None);
        assert_eq!(
            read(&mut probe, 14_999),
            Some(Demand::Probe { idle_ms: 5000 })
        );
    }

    #[test]
    fn a_stopped_process_reads_before_it_probes() {
        let mut probe = Probe::new(0, 5000);
        assert_eq!(probe.handle(60_000), None);
        assert_eq!(probe.deadline_ms(60_000), Some(60_001));
        probe.activity(60_001);
        assert_eq!(read(&mut probe, 60_001), None);
    }

    #[test]
    fn an_interval_is_off_or_at_least_a_second() {
        let mut probe = Probe::new(0, 0);
        assert_eq!(probe.deadline_ms(0), None);
        assert_eq!(read(&mut probe, u64::MAX), None);
        probe.set_interval(1);
        assert_eq!(probe.interval_ms(), 1000);
        assert_eq!(
            read(&mut probe, 1000),
            Some(Demand::Probe { idle_ms: 1000 })
        );
    }

    #[test]
    fn an_excused_peer_may_be_silent() {
        let mut probe = Probe::new(0, 2000);
        probe.excuse_until(5000);
        probe.excuse_until(3000);
        // Bytes that were on their way do not end the excuse.
        probe.activity(1000);
        probe.receive_attempted(4999);
        assert_eq!(probe.handle(4999), None);
        assert_eq!(probe.deadline_ms(4999), Some(5000));
        probe.receive_attempted(5000);
        assert_eq!(probe.handle(5000), Some(Demand::Probe { idle_ms: 4000 }));
    }
}
