//! Forks, and which process owns a connection.
//!
//! A forked child has copies of its parent's descriptors and none of its threads. A byte that the
//! child sends appears in the middle of its parent's messages, and a lock that another thread held
//! stays locked in the child for ever. So connections and threads record the process that made
//! them, and a child uses neither. A fork by a bare system call, past the C library, is not seen.

#![allow(unsafe_code)]

mod lock;

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

pub use lock::{Lock, LockError};

/// Forks between the process that first asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Those of them after which the child has no right to its parent's connections.
static BREAKS: AtomicU32 = AtomicU32::new(0);

/// The process that owns a connection: the one that made it, or the child that inherits it
/// ([`inherit`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    breaks: u32,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn this_process() -> Owner {
        watch();
        Owner {
            breaks: BREAKS.load(Ordering::Relaxed),
        }
    }

    /// Whether it is this process.
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
    /// This process.
    #[must_use]
    pub fn this_process() -> Home {
        Home { forks: forks() }
    }

    /// Whether it is this process.
    #[must_use]
    pub fn is_this_process(self) -> bool {
        self.forks == forks()
    }
}

/// Gives the parent's connections to this process, a child that was just forked. The parent must
/// not use them any more, as a program does not that detaches from its terminal.
pub fn inherit() {
    // It is 0 if the parent has made no connection, so that no fork was counted.
    let breaks = BREAKS.load(Ordering::Relaxed);
    BREAKS.store(breaks.saturating_sub(1), Ordering::Relaxed);
}

/// How many forks lie between the process that first asked and this one.
fn forks() -> u32 {
    watch();
    FORKS.load(Ordering::Relaxed)
}

/// Begins to count forks, at the first call.
fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler changes two atomic numbers, which a forked child may do.
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

    /// Runs `work` in a forked child; returns what it returns, below 100.
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
        // Grandchildren too.
        let seen = in_a_child(|| in_a_child(|| i32::from(owner.is_this_process())));
        assert_eq!(seen, 0);
    }
}
