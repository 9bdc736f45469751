//! The CPU time that each session costs, measured always.
//!
//! The clock of a thread's CPU time is a system call, some 15 times as dear as the monotonic clock.
//! So spans of work are measured with the monotonic clock, which the loops read anyway, and
//! [`cpu_ns`] turns a span into CPU time: a short span is taken as it is, and a long one is held
//! against the CPU time that the thread has really used, because the thread may have been preempted
//! or have waited for the disk.
//!
//! | Thread | A span | Charged to |
//! |---|---|---|
//! | holder of a database's mailbox | the execution of one request | its session |
//! | the same | from there until deliveries are posted: composing records and updates, and writing | the sessions of the deliveries, in equal shares |
//! | shard | one wake-up, without what it executes inline | the sessions that it has read from or written to, by bytes |
//! | `texts` | parsing one long request | its session |
//! | `contents` | one slice of a long body | the first session that asked for it |
//! | `history-read` | what a reading has used until a page, or its end | its session |
//!
//! A session's cost is an atomic in its `SessionInfo`. Work that no session has asked for is
//! charged to none: entries of a cluster, conversions, files. Nothing here knows what a request or
//! an update is.

use std::cell::Cell;

use corvid_monitor::SessionId;
use corvid_net::clock;

/// Spans below this are CPU time: a preempted thread waits longer than this, ns.
const SHORT_NS: u64 = 50_000;

/// The CPU time of the thread is read at least once in so much charged time, ns. It bounds what the
/// thread may have used without charging it, which a long span could be charged with.
const UNREAD_NS: u64 = 10_000_000;

/// Bytes that one transfer counts for in addition to its own: a system call costs about as much as
/// copying so many bytes.
const TRANSFER_BYTES: u64 = 4096;

thread_local! {
    static METER: Meter = const {
        Meter {
            charged_ns: Cell::new(0),
            read_ns: Cell::new(0),
            inline_ns: Cell::new(0),
        }
    };
}

/// The account of one thread.
struct Meter {
    /// Charged since the thread's CPU time was last read, ns.
    charged_ns: Cell<u64>,
    /// The thread's CPU time when it was last read, ns.
    read_ns: Cell<u64>,
    /// Time spent holding databases, since the thread began, ns.
    inline_ns: Cell<u64>,
}

/// The CPU time of a span of this thread's work that has just ended and took `elapsed_ns`.
pub(crate) fn cpu_ns(elapsed_ns: u64) -> u64 {
    METER.with(|meter| meter.cpu_ns(elapsed_ns, clock::thread_cpu_ns))
}

/// The CPU time that this thread has used and not charged yet, for threads that work for one
/// session only.
pub(crate) fn uncharged_ns() -> u64 {
    METER.with(|meter| {
        let now_ns = clock::thread_cpu_ns();
        let used_ns = now_ns.saturating_sub(meter.read_ns.replace(now_ns));
        used_ns.saturating_sub(meter.charged_ns.replace(0))
    })
}

impl Meter {
    fn cpu_ns(&self, elapsed_ns: u64, thread_cpu_ns: impl FnOnce() -> u64) -> u64 {
        let charged_ns = self.charged_ns.get() + elapsed_ns;
        if elapsed_ns < SHORT_NS && charged_ns < UNREAD_NS {
            self.charged_ns.set(charged_ns);
            return elapsed_ns;
        }
        let now_ns = thread_cpu_ns();
        let used_ns = now_ns.saturating_sub(self.read_ns.replace(now_ns));
        let uncharged_ns = used_ns.saturating_sub(self.charged_ns.replace(0));
        if elapsed_ns < SHORT_NS {
            elapsed_ns
        } else {
            elapsed_ns.min(uncharged_ns)
        }
    }
}

/// The spans of the holder of a database.
#[derive(Debug, Default)]
pub(crate) struct HolderSpans {
    /// When the batch began, monotonic ns; 0: no batch is in progress.
    began_ns: u64,
    /// The end of the last span.
    since_ns: u64,
}

impl HolderSpans {
    /// The clock has been read in a batch; the first reading begins it.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.began_ns == 0 {
            (self.began_ns, self.since_ns) = (now_ns, now_ns);
        }
    }

    /// Ends a span now. Returns its CPU time, ns.
    pub(crate) fn end_span(&mut self, now_ns: u64) -> u64 {
        let since_ns = std::mem::replace(&mut self.since_ns, now_ns);
        cpu_ns(now_ns.saturating_sub(since_ns))
    }

    /// Ends a span that no session is charged with.
    pub(crate) fn skip_span(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// Ends the batch, so that a shard that executes inline does not charge its spans again.
    pub(crate) fn end(&mut self) {
        let began_ns = std::mem::take(&mut self.began_ns);
        if began_ns != 0 {
            let held_ns = self.since_ns - began_ns;
            METER.with(|meter| meter.inline_ns.set(meter.inline_ns.get() + held_ns));
        }
    }
}

/// One wake-up of a shard.
#[derive(Debug, Default)]
pub(crate) struct ShardSpan {
    /// When it began, monotonic ns; 0: no session has transferred anything in it.
    began_ns: u64,
    /// The time that the thread had spent holding databases when it began, ns.
    inline_ns: u64,
    /// The sessions that have transferred something, and the bytes that count for them.
    transfers: Vec<(SessionId, u64)>,
}

impl ShardSpan {
    /// Counts a transfer of a session in the wake-up that began at `began_ns`.
    pub(crate) fn transferred(&mut self, began_ns: u64, session: SessionId, bytes: usize) {
        if self.began_ns == 0 {
            self.began_ns = began_ns;
        }
        let weight = TRANSFER_BYTES + bytes as u64;
        match self.transfers.last_mut() {
            Some((last, total)) if *last == session => *total += weight,
            _ => self.transfers.push((session, weight)),
        }
    }

    /// Ends the wake-up. Calls `charge` with the share of each session, ns.
    pub(crate) fn end(&mut self, charge: impl FnMut(SessionId, u64)) {
        let inline_ns = METER.with(|meter| meter.inline_ns.get());
        let held_ns = inline_ns - std::mem::replace(&mut self.inline_ns, inline_ns);
        if self.began_ns != 0 {
            let began_ns = std::mem::take(&mut self.began_ns);
            let elapsed_ns = clock::mono_ns().saturating_sub(began_ns + held_ns);
            self.divide(cpu_ns(elapsed_ns), charge);
        }
    }

    fn divide(&mut self, cpu_ns: u64, mut charge: impl FnMut(SessionId, u64)) {
        let total: u64 = self.transfers.iter().map(|(_, weight)| weight).sum();
        for (session, weight) in self.transfers.drain(..) {
            charge(session, cpu_ns.saturating_mul(weight) / total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_span_is_charged_with_no_more_cpu_time_than_the_thread_has_used() {
        let meter = Meter {
            charged_ns: Cell::new(0),
            read_ns: Cell::new(0),
            inline_ns: Cell::new(0),
        };
        let unread = || -> u64 { panic!("the CPU time is not read for short spans") };
        assert_eq!(meter.cpu_ns(40_000, unread), 40_000);
        // The thread was preempted: it has used 70 us, of which 40 us are charged.
        assert_eq!(meter.cpu_ns(4_000_000, || 70_000), 30_000);
        assert_eq!(meter.cpu_ns(4_000_000, || 9_000_000), 4_000_000);
        // From time to time the clock is read for a short span too, which stays as it is.
        for _ in 0..249 {
            assert_eq!(meter.cpu_ns(40_000, unread), 40_000);
        }
        assert_eq!(meter.cpu_ns(40_000, || 30_000_000), 40_000);
        assert_eq!(meter.cpu_ns(1_000_000, || 30_300_000), 300_000);
    }

    #[test]
    fn a_wake_up_is_divided_by_bytes() {
        let mut span = ShardSpan::default();
        let (idle, busy) = (SessionId(1), SessionId(2));
        span.transferred(1, busy, 100);
        span.transferred(1, busy, 20_000);
        span.transferred(1, idle, 100);
        span.transferred(1, busy, 0);
        let mut charged = [0; 2];
        span.divide(40_000, |session, cpu_ns| {
            charged[usize::from(session == busy)] += cpu_ns;
        });
        assert!(charged[1] > 5 * charged[0], "{charged:?}");
        assert!((39_990..=40_000).contains(&(charged[0] + charged[1])));
        span.divide(40_000, |_, _| panic!("everything is charged once"));
    }
}
