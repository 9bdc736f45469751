//! The events of a run, one line each, hashed or printed on demand. Two runs of one seed must have
//! the same hash.
//!
//! Most runs produce no lines: formatting text that nobody reads would take a third of a run's
//! time.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[derive(Debug)]
struct Lines {
    hash: u64,
    count: u64,
    is_printed: bool,
    /// The last line of the run; `None` if it runs to its end.
    last: Option<u64>,
}

/// The payload of the unwinding that ends a run after its last line.
#[derive(Debug)]
pub(super) struct Stopped;

/// How a run treats its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// Discard them; the hash is 0.
    None,
    /// Hash their lines.
    Hashed,
    /// Also print the lines to standard output.
    Printed,
    /// The same, and end the run after the line with this number.
    PrintedUntil(u64),
}

/// A trace, shared by all parts that add to it; `None` if no lines are produced.
#[derive(Clone, Debug)]
pub struct Trace(Option<Arc<Mutex<Lines>>>);

impl Trace {
    /// An empty trace.
    #[must_use]
    pub fn new(tracing: Tracing) -> Trace {
        let is_made = tracing != Tracing::None;
        let last = match tracing {
            Tracing::PrintedUntil(last) => Some(last),
            Tracing::None | Tracing::Hashed | Tracing::Printed => None,
        };
        Trace(is_made.then(|| {
            Arc::new(Mutex::new(Lines {
                hash: OFFSET_BASIS,
                count: 0,
                is_printed: tracing == Tracing::Printed || last.is_some(),
                last,
            }))
        }))
    }

    fn lines(&self) -> Option<MutexGuard<'_, Lines>> {
        let lines = self.0.as_ref()?;
        Some(lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a line. A run that has its last line ends here instead, so that the details of the last
    /// line are still printed: [`run_until`](super::seeds::run_until) catches the unwinding.
    pub fn line(&self, text: fmt::Arguments<'_>) {
        let Some(mut lines) = self.lines() else {
            return;
        };
        if lines.last == Some(lines.count) {
            drop(lines);
            // Unlike a panic it prints nothing.
            resume_unwind(Box::new(Stopped));
        }
        lines.count += 1;
        let text = text.to_string();
        for byte in text.bytes().chain([b'\n']) {
            lines.hash = (lines.hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        if lines.is_printed {
            println!("{:5} {text}", lines.count);
        }
    }

    /// Prints a line that is too long to be hashed in every run. It has no number.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        if self.lines().is_some_and(|lines| lines.is_printed) {
            println!("      {}", text());
        }
    }

    /// FNV-1a hash of all lines so far; 0 if none are produced.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.lines().map_or(0, |lines| lines.hash)
    }
}
