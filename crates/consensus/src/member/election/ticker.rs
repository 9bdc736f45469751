//! Time for the algorithm: ticks of a tenth of the election timer, and seeded election timeouts.
//!
//! An election timeout is the timer plus up to one second (docs/spec/distribution.md 1.2). The part
//! that does not fill a whole tick delays the next tick, so that members with a long timer do not
//! stand for election at the same moment.

use corvid_json::splitmix::SplitMix64;

use crate::raft_node::ELECTION_TICKS;

/// The random part of an election timeout, ms.
const SPREAD_MS: u64 = 1000;
/// Ticks that are made up for after a pause. A process that was stopped for longer first hears what
/// its peers sent in the meantime.
const LATE_TICKS_MAX: u32 = 3;

/// The source of ticks and election timeouts.
#[derive(Debug)]
pub(crate) struct Ticker {
    timer_ms: u64,
    next_ms: u64,
    random: SplitMix64,
    /// Whether election timeouts are longer by one election timer.
    is_delayed: bool,
}

impl Ticker {
    pub(crate) fn new(timer_ms: u64, now_ms: u64, seed: u64) -> Ticker {
        let mut ticker = Ticker {
            timer_ms: timer_ms.max(10),
            next_ms: 0,
            random: SplitMix64::new(seed),
            is_delayed: false,
        };
        ticker.next_ms = now_ms + ticker.period_ms();
        ticker
    }

    /// The election timer, ms.
    pub(crate) fn timer_ms(&self) -> u64 {
        self.timer_ms
    }

    pub(crate) fn set_timer(&mut self, timer_ms: u64, now_ms: u64) {
        self.timer_ms = timer_ms.max(10);
        self.next_ms = self.next_ms.min(now_ms + self.period_ms());
    }

    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    fn period_ms(&self) -> u64 {
        self.timer_ms / ELECTION_TICKS as u64
    }

    /// Draws a new election timeout, ticks; its remainder delays the next tick.
    pub(crate) fn draw(&mut self) -> usize {
        let more = self.random(SPREAD_MS);
        let period = self.period_ms();
        self.next_ms += more % period;
        let delay = if self.is_delayed { ELECTION_TICKS } else { 0 };
        ELECTION_TICKS + delay + usize::try_from(more / period).unwrap_or(0)
    }

    /// Sets whether timeouts drawn from now on are longer by one election timer. Returns whether
    /// that is a change.
    pub(crate) fn set_delayed(&mut self, is_delayed: bool) -> bool {
        std::mem::replace(&mut self.is_delayed, is_delayed) != is_delayed
    }

    /// A random number less than `below`.
    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random.draw() % below.max(1)
    }

    /// Takes the ticks that are due.
    pub(crate) fn due(&mut self, now_ms: u64) -> u32 {
        let mut ticks = 0;
        while self.next_ms <= now_ms && ticks < LATE_TICKS_MAX {
            ticks += 1;
            self.next_ms += self.period_ms();
        }
        if self.next_ms <= now_ms {
            self.next_ms = now_ms + self.period_ms();
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_spread_over_a_second_with_any_timer() {
        for timer in [100, 1000, 16_000, 600_000] {
            let mut shortest = u64::MAX;
            let mut longest = 0;
            for seed in 0..300 {
                let mut ticker = Ticker::new(timer, 0, seed);
                let ticks = ticker.draw() as u64;
                let first = ticker.next_ms();
                let timeout = first + (ticks - 1) * (timer / 10);
                shortest = shortest.min(timeout);
                longest = longest.max(timeout);
            }
            assert!(
                (timer..timer + 50).contains(&shortest),
                "{timer}: {shortest}"
            );
            assert!(
                (timer + 950..timer + 1000).contains(&longest),
                "{timer}: {longest}"
            );
        }
    }

    #[test]
    fn delayed_timeouts_are_longer_by_the_timer() {
        let mut usual = Ticker::new(1000, 0, 7);
        let mut delayed = Ticker::new(1000, 0, 7);
        assert!(delayed.set_delayed(true));
        assert!(!delayed.set_delayed(true));
        for _ in 0..100 {
            assert_eq!(delayed.draw(), usual.draw() + ELECTION_TICKS);
        }
        assert!(delayed.set_delayed(false));
        assert_eq!(delayed.draw(), usual.draw());
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let mut ticker = Ticker::new(1000, 0, 1);
        assert_eq!(ticker.due(250), 2);
        assert_eq!(ticker.due(90_000), 3);
        assert_eq!(ticker.due(90_050), 0);
        assert_eq!(ticker.next_ms(), 90_100);
    }
}
