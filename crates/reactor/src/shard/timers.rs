//! One timer per connection, kept in a heap with lazy removal.
//!
//! A timer that is only ever moved later (the inactivity probe) costs one comparison per move: the
//! heap keeps the early entry and requeues it when its time comes. Each timer has one live heap
//! entry; other entries are stale and are skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ConnId;

/// The timer of one connection; lives with the connection.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// When the timer should fire.
    wanted_ms: Option<u64>,
    /// The live heap entry.
    queued_ms: Option<u64>,
}

/// All timers of a shard.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, ConnId)>>);

impl Timers {
    pub(super) fn set(&mut self, conn: ConnId, timer: &mut Timer, at_ms: Option<u64>) {
        timer.wanted_ms = at_ms;
        if let Some(at_ms) =
            at_ms.filter(|&at_ms| timer.queued_ms.is_none_or(|queued| at_ms < queued))
        {
            timer.queued_ms = Some(at_ms);
            self.0.push(Reverse((at_ms, conn)));
        }
    }

    /// The time of the first entry.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ms, _))| *at_ms)
    }

    /// Removes an entry whose time has come; [`Timers::fires`] tells whether it is live.
    pub(super) fn pop(&mut self, now_ms: u64) -> Option<(u64, ConnId)> {
        let Reverse((at_ms, conn)) = *self.0.peek()?;
        if at_ms > now_ms {
            return None;
        }
        self.0.pop();
        Some((at_ms, conn))
    }

    /// Whether the entry `at_ms` of this connection's timer fires now. Requeues the timer if it was
    /// moved later.
    pub(super) fn fires(
        &mut self,
        conn: ConnId,
        timer: &mut Timer,
        at_ms: u64,
        now_ms: u64,
    ) -> bool {
        if timer.queued_ms != Some(at_ms) {
            return false;
        }
        timer.queued_ms = None;
        match timer.wanted_ms {
            Some(wanted) if wanted <= now_ms => {
                timer.wanted_ms = None;
                true
            }
            wanted => {
                self.set(conn, timer, wanted);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(timers: &mut Timers, timer: &mut Timer, now_ms: u64) -> usize {
        let mut count = 0;
        while let Some((at_ms, conn)) = timers.pop(now_ms) {
            count += usize::from(timers.fires(conn, timer, at_ms, now_ms));
        }
        count
    }

    #[test]
    fn a_timer_fires_once_at_its_latest_setting() {
        let (mut timers, mut timer, conn) = (Timers::default(), Timer::default(), ConnId(1));
        for at_ms in 10..1000 {
            timers.set(conn, &mut timer, Some(at_ms));
        }
        assert_eq!(timers.0.len(), 1);
        assert_eq!(fired(&mut timers, &mut timer, 998), 0);
        assert_eq!(fired(&mut timers, &mut timer, 999), 1);
        assert_eq!(fired(&mut timers, &mut timer, 5000), 0);
        timers.set(conn, &mut timer, Some(9000));
        timers.set(conn, &mut timer, Some(6000));
        assert_eq!(fired(&mut timers, &mut timer, 6000), 1);
        timers.set(conn, &mut timer, Some(7000));
        timers.set(conn, &mut timer, None);
        assert_eq!(fired(&mut timers, &mut timer, 20_000), 0);
        assert_eq!(timers.next_ms(), None);
    }
}
