//! Event counters: how often something happened, in total and over the last seconds, minute and hour.
//!
//! A counter is a `static` made with [`Counter::new`]. Each thread counts into cells of its own, which no other thread writes, so counting
//! shares no cache line; a reader adds the cells up. The cells of an ended thread, with their counts, go to the next thread that counts.
//!
//! A counter enters the list of `coverage/show` when it first counts or when [`Counter::list`] is called. Programs list their
//! counters when they start, so that counters never hit are shown too. [`run`] must be called about every [`RUN_INTERVAL_MS`] (late calls only
//! blur the averages).

pub mod events;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock;
use crate::logging::{self, Module};

/// How often [`run`] samples, ms.
pub const RUN_INTERVAL_MS: u64 = 5000;
/// Samples in a minute.
const PER_MINUTE: usize = 12;
/// Minutes in an hour.
const PER_HOUR: usize = 60;
/// The most counters, of all crates together.
const COUNTERS_MAX: usize = 64;

/// A named counter.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    /// Its cell in every [`Cells`], plus one; 0 while it is not listed.
    slot: AtomicUsize,
}

/// The counts of one thread.
struct Cells([AtomicU64; COUNTERS_MAX]);

/// The cells of a thread, for as long as it runs.
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
        // A thread that is ending and has returned its cells counts no more.
        let _ = OWN.try_with(|own| {
            let cell = &own.0.0[slot - 1];
            // No other thread writes here, so this needs no atomic addition.
            cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        });
    }

    /// Enters the counter into the list without counting, so that it shows up as never hit. Returns its slot.
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
    /// Events in each of the last 5-second intervals.
    seconds: [u64; PER_MINUTE],
    /// Events in each of the last minutes.
    minutes: [u64; PER_HOUR],
    /// The total at the last sample.
    seen: u64,
}

struct State {
    /// By slot.
    counters: Vec<Tracked>,
    /// Of all threads that have ever counted at the same time. Never freed: there are as many as there were such threads.
    cells: Vec<&'static Cells>,
    /// Those whose thread has ended.
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

    /// Counters and their totals, by name.
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

/// Takes a sample when one is due; returns when the next one is, monotonic ms.
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
    // The hash lets a reader see whether two outputs have the same counters hit (FNV-1a of their names).
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

/// Logs the text of `coverage/show`, a line for each counter; while the same counters are hit, at most once an hour.
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

/// Hash and time of the last log.
static LAST_LOGGED: Mutex<Option<(String, u64)>> = Mutex::new(None);
/// Between two logs of the same counters, ms.
const REPEAT_MS: u64 = 60 * 60 * 1000;

/// The total of the counter of this name; `None` when no listed counter has it.
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
        // A scoped thread may return its cells a moment after it is joined, so new cells are no fault.
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
