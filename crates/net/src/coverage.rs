//! Event counters: how often something happened, in total and over the last seconds, minute and
//! hour.
//!
//! A counter is a `static` made with [`Counter::new`]. Each thread counts in its own cells, which
//! no other thread writes, so counting shares no cache line; a reader sums the cells. The cells of
//! an ended thread, with their counts, pass to the next thread that counts.
//!
//! A counter enters the list of `coverage/show` when it first counts or when [`Counter::list`] is
//! called. Programs list their counters when they start, so that counters never hit are shown too.
//! [`run`] must be called about every [`RUN_INTERVAL_MS`] (late calls only blur the averages).

pub mod events;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock;
use crate::logging::{self, Module};

/// The interval at which [`run`] samples, ms.
pub const RUN_INTERVAL_MS: u64 = 5000;
/// The number of samples in a minute.
const PER_MINUTE: usize = 12;
/// The number of minutes in an hour.
const PER_HOUR: usize = 60;
/// The maximum number of counters in all crates together.
const COUNTERS_MAX: usize = 64;

/// A named counter.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    /// The index of its cell in every [`Cells`], plus one; 0 while the counter is not listed.
    slot: AtomicUsize,
}

/// The counts of one thread.
struct Cells([AtomicU64; COUNTERS_MAX]);

/// The cells of a thread, while it runs.
struct OwnCells(&'static Cells);

thread_local! {
    static OWN: OwnCells = OwnCells(state().acquire_cells());
}

impl Drop for OwnCells {
    fn drop(&mut self) {
        state().free.push(self.0);
    }
}

impl Counter {
    /// A counter at zero.
    #[must_use]
    pub const fn new(name: &'static str) -> Counter {
        Counter {
            name,
            slot: AtomicUsize::new(0),
        }
    }

    /// Counts one event.
    #[inline]
    pub fn bump(&'static self) {
        self.add(1);
    }

    /// Counts several events.
    #[inline]
    pub fn add(&'static self, count: u64) {
        let slot = match self.slot.load(Ordering::Relaxed) {
            0 => self.list(),
            slot => slot,
        };
        // A thread that is ending and has returned its cells no longer counts.
        let _ = OWN.try_with(|own| {
            let cell = &own.0.0[slot - 1];
            // No other thread writes here, so the addition need not be atomic.
            cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        });
    }

    /// Enters the counter into the list without counting, so that it is shown as never hit. Returns
    /// its slot.
    pub fn list(&'static self) -> usize {
        let mut state = state();
        let known = self.slot.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let slot = state.counters.len() + 1;
        assert!(slot <= COUNTERS_MAX, "there is room for each counter");
        self.slot.store(slot, Ordering::Relaxed);
        state.counters.push(Tracked {
            counter: self,
            seconds: [0; PER_MINUTE],
            minutes: [0; PER_HOUR],
            seen: 0,
        });
        slot
    }
}

struct Tracked {
    counter: &'static Counter,
    /// The number of events in each of the last 5-second intervals.
    seconds: [u64; PER_MINUTE],
    /// The number of events in each of the last minutes.
    minutes: [u64; PER_HOUR],
    /// The total at the last sample.
    seen: u64,
}

struct State {
    /// The listed counters, by slot.
    counters: Vec<Tracked>,
    /// One per thread, reused after the thread ends and never freed: there are as many as threads
    /// have ever counted at the same time.
    cells: Vec<&'static Cells>,
    /// The cells whose thread has ended.
    free: Vec<&'static Cells>,
    samples: usize,
    next_ms: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    counters: Vec::new(),
    cells: Vec::new(),
    free: Vec::new(),
    samples: 0,
    next_ms: 0,
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn acquire_cells(&mut self) -> &'static Cells {
        self.free.pop().unwrap_or_else(|| {
            let cells = Box::leak(Box::new(Cells([const { AtomicU64::new(0) }; COUNTERS_MAX])));
            self.cells.push(cells);
            cells
        })
    }

    /// The total of the counter at this index of the list.
    fn total(&self, index: usize) -> u64 {
        let cell = |cells: &&Cells| cells.0[index].load(Ordering::Relaxed);
        self.cells.iter().map(cell).sum()
    }

    /// Counters and their totals, sorted by name.
    fn totals(&self) -> Vec<(&Tracked, u64)> {
        let mut totals: Vec<(&Tracked, u64)> = self
            .counters
            .iter()
            .enumerate()
            .map(|(index, tracked)| (tracked, self.total(index)))
            .collect();
        totals.sort_by_key(|(tracked, _)| tracked.counter.name);
        totals
    }
}

/// Takes a sample if one is due. Returns when the next sample is due, monotonic ms.
pub fn run(now_ms: u64) -> u64 {
    let mut state = state();
    if state.next_ms == 0 {
        state.next_ms = now_ms + RUN_INTERVAL_MS;
    }
    while now_ms >= state.next_ms {
        state.next_ms += RUN_INTERVAL_MS;
        let sample = state.samples;
        state.samples += 1;
        for index in 0..state.counters.len() {
            let total = state.total(index);
            let tracked = &mut state.counters[index];
            tracked.seconds[sample % PER_MINUTE] = total - tracked.seen;
            tracked.seen = total;
            if (sample + 1).is_multiple_of(PER_MINUTE) {
                tracked.minutes[sample / PER_MINUTE % PER_HOUR] = tracked.seconds.iter().sum();
            }
        }
    }
    state.next_ms
}

/// The text of `coverage/show`.
#[must_use]
pub fn show() -> String {
    let state = state();
    let (hit, never): (Vec<_>, Vec<_>) = state
        .totals()
        .into_iter()
        .partition(|(_, total)| *total > 0);
    // The hash (FNV-1a over the names) lets a reader compare whether two outputs have hit the same
    // counters.
    let hash = hit
        .iter()
        .flat_map(|(tracked, _)| tracked.counter.name.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    let mut out = format!(
        "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash={hash:08x}:\n"
    );
    let latest = state
        .samples
        .checked_sub(1)
        .map_or(0, |sample| sample % PER_MINUTE);
    for (tracked, total) in hit {
        let five = tracked.seconds[latest] as f64 / 5.0;
        let minute = tracked.seconds.iter().sum::<u64>() as f64 / 60.0;
        let hour = tracked.minutes.iter().sum::<u64>() as f64 / 3600.0;
        let name = tracked.counter.name;
        out += &format!(
            "{name:<24} {five:5.1}/sec {minute:9.3}/sec {hour:13.4}/sec   total: {total}\n"
        );
    }
    out + &format!("{} events never hit\n", never.len())
}

/// Logs the text of `coverage/show`, one line per counter. While the counters hit stay the same,
/// logs at most once an hour.
pub fn log() {
    let text = show();
    let hash = text
        .lines()
        .next()
        .and_then(|head| head.rsplit('=').next())
        .unwrap_or_default();
    let now_ms = clock::mono_ms();
    let mut last = LAST_LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = last
        .as_ref()
        .is_some_and(|(known, at_ms)| *known == hash && now_ms < at_ms + REPEAT_MS);
    if is_known {
        let hash = hash.trim_end_matches(':');
        logging::info(
            Module::Coverage,
            format_args!("Skipping details of duplicate event coverage for hash={hash}"),
        );
        return;
    }
    *last = Some((hash.to_owned(), now_ms));
    drop(last);
    for line in text.lines() {
        logging::info(Module::Coverage, format_args!("{line}"));
    }
}

/// The hash and the time of the last log.
static LAST_LOGGED: Mutex<Option<(String, u64)>> = Mutex::new(None);
/// The minimum time between two logs of the same counters, ms.
const REPEAT_MS: u64 = 60 * 60 * 1000;

/// The total of the counter with this name; `None` if no listed counter has it.
#[must_use]
pub fn read(name: &str) -> Option<u64> {
    let state = state();
    let totals = state.totals();
    let found = totals.iter().find(|(it, _)| it.counter.name == name);
    found.map(|(_, total)| *total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_with_rates() {
        static EVENTS: Counter = Counter::new("test_events");
        run(1_000);
        EVENTS.add(60);
        assert_eq!(run(6_000), 11_000);
        let text = show();
        let line =
            "test_events               12.0/sec     1.000/sec        0.0000/sec   total: 60\n";
        assert!(text.contains(line), "{text}");
        assert!(text.starts_with(
            "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash="
        ));
    }

    /// Later threads continue the cells of ended threads.
    #[test]
    fn counts_of_ended_threads_are_kept() {
        static EVENTS: Counter = Counter::new("test_threads");
        let count = || {
            (0..8).for_each(|_| EVENTS.bump());
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(count);
            });
        });
        // A scoped thread may return its cells a moment after it is joined, so new cells are not a
        // fault.
        for _ in 0..4 {
            std::thread::spawn(count).join().unwrap();
        }
        count();
        let state = state();
        let totals = state.totals();
        let total = totals
            .iter()
            .find(|(it, _)| it.counter.name == "test_threads")
            .map(|(_, total)| *total);
        assert_eq!(total, Some(72));
        assert!(state.cells.len() < 64, "{}", state.cells.len());
    }
}
