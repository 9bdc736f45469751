//! Event counters: how often something happened, in total and over the last seconds, minute and hour.
//!
//! A counter is a `static` made with [`Counter::new`] and bumped with one relaxed addition. It enters the list of
//! `coverage/show` when it is first bumped; those never bumped are not known, so "never hit" counts registered ones only.
//! [`run`] must be called about every [`RUN_INTERVAL_MS`] (late calls only blur the averages).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock;
use crate::unixctl::Registry;
use crate::vlog::{self, Module};

/// How often [`run`] samples, ms.
pub const RUN_INTERVAL_MS: u64 = 5000;
/// Samples in a minute.
const PER_MINUTE: usize = 12;
/// Minutes in an hour.
const PER_HOUR: usize = 60;

/// A named counter.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    total: AtomicU64,
    is_listed: AtomicBool,
}

impl Counter {
    /// A counter at zero.
    #[must_use]
    pub const fn new(name: &'static str) -> Counter {
        Counter {
            name,
            total: AtomicU64::new(0),
            is_listed: AtomicBool::new(false),
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
        self.total.fetch_add(count, Ordering::Relaxed);
        if !self.is_listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Enters the counter into the list without counting, so that it shows up as never hit.
    pub fn list(&'static self) {
        let mut state = state();
        if !self.is_listed.swap(true, Ordering::Relaxed) {
            state.counters.push(Tracked {
                counter: self,
                seconds: [0; PER_MINUTE],
                minutes: [0; PER_HOUR],
                seen: 0,
            });
            state.counters.sort_by_key(|tracked| tracked.counter.name);
        }
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
    counters: Vec<Tracked>,
    samples: usize,
    next_ms: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    counters: Vec::new(),
    samples: 0,
    next_ms: 0,
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
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
        for tracked in &mut state.counters {
            let total = tracked.counter.total.load(Ordering::Relaxed);
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
    let (hit, never): (Vec<&Tracked>, Vec<&Tracked>) = state
        .counters
        .iter()
        .partition(|tracked| tracked.counter.total.load(Ordering::Relaxed) > 0);
    // The hash lets a reader see whether two outputs have the same counters hit (FNV-1a of their names).
    let hash = hit
        .iter()
        .flat_map(|tracked| tracked.counter.name.bytes())
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
    for tracked in hit {
        let total = tracked.counter.total.load(Ordering::Relaxed);
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

/// Logs what `coverage/show` tells, a line for each counter; while the same counters are hit, no more than once an hour.
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
        vlog::info(
            Module::Coverage,
            format_args!("Skipping details of duplicate event coverage for hash={hash}"),
        );
        return;
    }
    *last = Some((hash.to_owned(), now_ms));
    drop(last);
    for line in text.lines() {
        vlog::info(Module::Coverage, format_args!("{line}"));
    }
}

/// Hash and time of what was logged last.
static LAST_LOGGED: Mutex<Option<(String, u64)>> = Mutex::new(None);
/// Between two logs of the same counters, ms.
const REPEAT_MS: u64 = 60 * 60 * 1000;

/// Registers `coverage/show` and `coverage/read-counter`.
pub(crate) fn register_commands<C: 'static>(registry: &mut Registry<C>) {
    registry.register("coverage/show", "", 0, 0, |_, _| Ok(show()));
    registry.register("coverage/read-counter", "COUNTER", 1, 1, |_, args| {
        let state = state();
        let found = state
            .counters
            .iter()
            .find(|tracked| tracked.counter.name == args[0])
            .ok_or("No such counter")?;
        Ok(format!("{}\n", found.counter.total.load(Ordering::Relaxed)))
    });
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
}
