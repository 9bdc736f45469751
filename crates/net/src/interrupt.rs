//! The interruption of this process's blocking waits: a descriptor, and a function that runs on the
//! waiting thread when the descriptor is readable.
//!
//! A program that catches signals installs both, so that a signal is handled while a client blocks
//! (the crate `shell` does so for fatal signals). A program that embeds the client library installs
//! nothing, and its waits end only as their callers ask.
//!
//! An interactive program may also [`cancel`] what it is doing: until [`take_cancellation`], every
//! wait fails at once.

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::errno;

/// The installed descriptor; -1: none.
static FD: AtomicI32 = AtomicI32::new(-1);
static HANDLER: OnceLock<fn()> = OnceLock::new();
/// Whether waits fail.
static IS_CANCELLED: AtomicBool = AtomicBool::new(false);

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

/// Makes every wait fail, until [`take_cancellation`]. Async-signal-safe. A wait in progress fails
/// if the caller also makes the installed descriptor readable.
pub fn cancel() {
    IS_CANCELLED.store(true, Ordering::SeqCst);
}

/// Whether waits were cancelled since the last call. From now on they work again.
pub fn take_cancellation() -> bool {
    IS_CANCELLED.swap(false, Ordering::SeqCst)
}

/// Whether waits are cancelled, so that long work should end early.
#[must_use]
pub fn is_cancelled() -> bool {
    IS_CANCELLED.load(Ordering::SeqCst)
}

/// Fails if waits are cancelled.
///
/// # Errors
/// `ECANCELED`.
pub fn check() -> io::Result<()> {
    match is_cancelled() {
        true => Err(errno::from_code(libc::ECANCELED)),
        false => Ok(()),
    }
}
