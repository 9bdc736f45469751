//! The interruption of this process's blocking waits: a descriptor, and a function that runs on the
//! waiting thread when the descriptor is readable.
//!
//! A program that catches signals installs both, so that a signal is handled while a client blocks
//! (the crate `shell` does so for fatal signals). A program that embeds the client library installs
//! nothing, and its waits end only as their callers ask.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// The installed descriptor; -1: none.
static FD: AtomicI32 = AtomicI32::new(-1);
static HANDLER: OnceLock<fn()> = OnceLock::new();

/// From now on every wait runs `handler` when it begins and when `fd` becomes readable. A later
/// call, for example in a forked child, replaces the descriptor but keeps the handler.
pub fn install(fd: RawFd, handler: fn()) {
    HANDLER.get_or_init(|| handler);
    FD.store(fd, Ordering::SeqCst);
}

/// The descriptor; -1 for none, which poll(2) ignores.
pub(crate) fn fd() -> RawFd {
    FD.load(Ordering::SeqCst)
}

/// Runs the handler, if one is installed.
pub(crate) fn run() {
    if let Some(handler) = HANDLER.get() {
        handler();
    }
}
