//! Forks, and the question which process owns a connection.
//!
//! A forked child has copies of its parent's descriptors but none of its threads. A byte that the
//! child sends lands in the middle of its parent's messages, and a lock that another thread held
//! stays locked in the child forever. Connections and threads therefore record the process that
//! made them, and a child uses neither. A fork by a bare system call, bypassing the C library, is
//! not noticed.

#![allow(unsafe_code)]

mod lock;

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

pub use lock::{Lock, LockError};

/// The number of forks between the process that first asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The number of these forks whose child has no right to its parent's connections.
static BREAKS: AtomicU32 = AtomicU32::new(0);

/// The process that owns a connection: the one that made it, or the child that inherits it
/// ([`inherit`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    breaks: u32,
}

impl Owner {
    /// The calling process, as an owner.
    #[must_use]
    pub fn this_process() -> Owner {
        watch();
        Owner {
            breaks: BREAKS.load(Ordering::Relaxed),
        }
    }

    /// Whether the owner is the calling process.
    #[must_use]
    pub fn is_this_process(self) -> bool {
        self.breaks == BREAKS.load(Ordering::Relaxed)
    }
}

/// The process in which a thread runs, or in which random bytes were drawn. No child inherits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    forks: u32,
}

impl Home {
    /// The calling process, as a home.
    #[must_use]
    pub fn this_process() -> Home {
        Home { forks: forks() }
    }

    /// Whether the home is the calling process.
    #[must_use]
    pub fn is_this_process(self) -> bool {
        self.forks == forks()
    }
}

/// Gives the parent's connections to this process, a child that was just forked. The parent must
/// not use them any more; a program that detaches from its terminal does not.
pub fn inherit() {
    // Zero if the parent has made no connection, so that no fork was counted.
    let breaks = BREAKS.load(Ordering::Relaxed);
    BREAKS.store(breaks.saturating_sub(1), Ordering::Relaxed);
}

/// The number of forks between the process that first asked and this one.
fn forks() -> u32 {
    watch();
    FORKS.load(Ordering::Relaxed)
}

/// Starts counting forks, at the first call.
fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler only changes two atomic numbers, which is allowed in a forked child.
        let outcome = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(outcome, 0, "no memory is left to watch forks");
    });
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    BREAKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` in a forked child. Returns its result, which must be below 100.
    pub(super) fn in_a_child(work: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child reads atomic numbers and ends without running anything else.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0, "no process is left");
            if child == 0 {
                libc::_exit(work());
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert!(libc::WIFEXITED(status), "the child died: {status}");
            libc::WEXITSTATUS(status)
        }
    }

    #[test]
    fn a_child_owns_what_it_inherits_and_no_thread() {
        let (owner, home) = (Owner::this_process(), Home::this_process());
        let seen = in_a_child(|| {
            let before = owner.is_this_process();
            inherit();
            i32::from(before)
                | i32::from(owner.is_this_process()) << 1
                | i32::from(home.is_this_process()) << 2
        });
        assert_eq!(seen, 2);
        assert!(owner.is_this_process() && home.is_this_process());
        // Grandchildren do not own it either.
        let seen = in_a_child(|| in_a_child(|| i32::from(owner.is_this_process())));
        assert_eq!(seen, 0);
    }
}
