//! Memory of the process: the text of `memory/show`, and the log lines about memory growth.
//!
//! The first line appears ten seconds after the start, further ones when the peak has grown by
//! half. The program supplies its own counts (rows, sessions, ...).

#![allow(unsafe_code)]

use crate::vlog::{self, Module};

/// The interval between two readings of the resident set, ms.
const INTERVAL_MS: u64 = 10_000;

/// Named counts, shown sorted by name.
pub type Usage = Vec<(String, u64)>;

/// Decides when to log. Call [`MemoryLog::run`] from the main loop.
#[derive(Debug)]
pub struct MemoryLog {
    next_ms: u64,
    /// The peak (kB) and the time (monotonic ms) of the last line.
    logged: Option<(u64, u64)>,
    peak_kb: fn() -> u64,
}

impl MemoryLog {
    /// Starts measuring at this monotonic time.
    #[must_use]
    pub fn new(now_ms: u64) -> MemoryLog {
        MemoryLog {
            next_ms: now_ms + INTERVAL_MS,
            logged: None,
            peak_kb,
        }
    }

    /// When [`MemoryLog::run`] is next due, monotonic ms.
    #[must_use]
    pub fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Logs the peak, if that is due. If it returns true, the caller logs the program's counts
    /// ([`log_usage`]).
    pub fn run(&mut self, now_ms: u64) -> bool {
        let line = self.due(now_ms);
        if let Some(line) = &line {
            vlog::info(Module::Memory, format_args!("{line}"));
        }
        line.is_some()
    }

    fn due(&mut self, now_ms: u64) -> Option<String> {
        if now_ms < self.next_ms {
            return None;
        }
        self.next_ms = now_ms + INTERVAL_MS;
        let peak = (self.peak_kb)();
        let line = match self.logged {
            None => format!("{peak} kB peak resident set size after 10.0 seconds"),
            // The peak has grown by half since the last line.
            Some((before, then_ms)) if peak >= before + before / 2 && peak > before => {
                let percent = ((peak as f64 / before.max(1) as f64 - 1.0) * 100.0).round();
                let seconds = now_ms.saturating_sub(then_ms) as f64 / 1000.0;
                format!(
                    "peak resident set size grew {percent:.0}% in last {seconds:.1} seconds, from {before} kB to {peak} kB"
                )
            }
            Some(_) => return None,
        };
        self.logged = Some((peak, now_ms));
        Some(line)
    }
}

/// Logs the program's counts.
pub fn log_usage(usage: Usage) {
    vlog::info(Module::Memory, format_args!("{}", show(usage).trim_end()));
}

/// The text of `memory/show`.
#[must_use]
pub fn show(mut usage: Usage) -> String {
    usage.sort();
    let words: Vec<String> = usage
        .into_iter()
        .map(|(name, count)| format!("{name}:{count}"))
        .collect();
    words.join(" ") + "\n"
}

/// The largest resident set that this process has ever had, kB.
fn peak_kb() -> u64 {
    // SAFETY: an all-zero `rusage` is valid, and getrusage fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_after_ten_seconds_and_with_growth_by_half() {
        let mut log = MemoryLog::new(1000);
        log.peak_kb = || 1000;
        assert_eq!(log.due(10_999), None);
        let first = "1000 kB peak resident set size after 10.0 seconds";
        assert_eq!(log.due(11_000).as_deref(), Some(first));
        log.peak_kb = || 1499;
        assert_eq!(log.due(21_000), None);
        log.peak_kb = || 1600;
        let grown = "peak resident set size grew 60% in last 35.2 seconds, from 1000 kB to 1600 kB";
        assert_eq!(log.due(46_200).as_deref(), Some(grown));
        assert!(peak_kb() > 0);
    }

    #[test]
    fn counts_are_sorted_by_name() {
        let usage = vec![("sessions".to_owned(), 1), ("atoms".to_owned(), 35)];
        assert_eq!(show(usage), "atoms:35 sessions:1\n");
    }
}
