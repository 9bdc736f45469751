//! The events of a run, one line each: always hashed, printed on demand. Two runs of one seed must have the same hash.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[derive(Debug)]
struct Lines {
    hash: u64,
    count: u64,
    is_printed: bool,
}

/// A trace, shared by all parts that add to it.
#[derive(Clone, Debug)]
pub struct Trace(Arc<Mutex<Lines>>);

impl Trace {
    /// An empty one; `is_printed`: every line also goes to standard output.
    #[must_use]
    pub fn new(is_printed: bool) -> Trace {
        Trace(Arc::new(Mutex::new(Lines {
            hash: OFFSET_BASIS,
            count: 0,
            is_printed,
        })))
    }

    /// Adds a line.
    pub fn line(&self, text: fmt::Arguments<'_>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.count += 1;
        let text = text.to_string();
        for byte in text.bytes().chain([b'\n']) {
            lines.hash = (lines.hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        if lines.is_printed {
            println!("{:5} {text}", lines.count);
        }
    }

    /// Prints a line that is too long to be hashed in every run; it has no number.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_printed {
            println!("      {}", text());
        }
    }

    /// FNV-1a of all lines so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.hash
    }
}
