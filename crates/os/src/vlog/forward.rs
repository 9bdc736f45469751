//! Messages of a library: handed to a function instead of the destinations of a program.
//!
//! A program of ours calls [`crate::program::init`] first, and its messages go to console, system log and file. Any other program that
//! uses connections has a log of its own; a library gives it what is said here with [`forward`]. A program of ours always wins,
//! whichever came first.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Level, Module};

/// Takes a message. Called on whichever thread logs; it must not log here itself.
pub type Forward = fn(Module, Level, fmt::Arguments<'_>);

static TARGET: OnceLock<Forward> = OnceLock::new();
static IS_CLAIMED: AtomicBool = AtomicBool::new(false);

/// Hands all messages of every level to `target`, unless a program of ours logs them itself. The first call counts.
pub fn forward(target: Forward) {
    TARGET.get_or_init(|| target);
}

/// A program of ours logs from now on.
pub(super) fn claim() {
    IS_CLAIMED.store(true, Ordering::Relaxed);
}

/// Where messages go instead of the destinations.
pub(super) fn target() -> Option<Forward> {
    if IS_CLAIMED.load(Ordering::Relaxed) {
        return None;
    }
    TARGET.get().copied()
}
