//! The interruption of blocking waits of this process: a descriptor, and a function that runs on the waiting thread when it is readable.
//!
//! A program that catches signals installs both, so that a signal is handled while a client blocks (the crate `shell` does it for fatal
//! signals). Nothing is installed in a program that embeds the client library, and its waits end only as their callers ask.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// -1: no descriptor is installed.
static FD: AtomicI32 = AtomicI32::new(-1);
static HANDLER: OnceLock<fn()> = OnceLock::new();

/// From now on every wait runs `handler` when it begins and when `fd` becomes readable. A later call, for example in a forked child,
/// replaces the descriptor and keeps the handler.
pub fn install(fd: RawFd, handler: fn()) {
    HANDLER.get_or_init(|| handler);
    FD.store(fd, Ordering::SeqCst);
}

/// The descriptor, -1 for none, which poll(2) skips.
pub(crate) fn fd() -> RawFd {
    FD.load(Ordering::SeqCst)
}

/// Runs the handler, if there is one.
pub(crate) fn run() {
    if let Some(handler) = HANDLER.get() {
        handler();
    }
}
