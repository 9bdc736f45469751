//! A descriptor that a signal handler makes readable, so that a poll loop notices the signal.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that is never closed; -1 before [`Event::open`].
#[derive(Debug)]
pub(crate) struct Event(AtomicI32);

impl Event {
    /// An event without a descriptor.
    pub(crate) const fn new() -> Event {
        Event(AtomicI32::new(-1))
    }

    /// Creates a new descriptor. A forked child calls this again to get its own.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn open(&self) -> io::Result<RawFd> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into_raw_fd();
        self.0.store(event, Ordering::SeqCst);
        Ok(event)
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        let event = self.0.load(Ordering::SeqCst);
        (event >= 0).then_some(event)
    }

    /// Makes the descriptor readable. Async-signal-safe: one system call, which does not change
    /// errno.
    pub(crate) fn raise(&self) {
        if let Some(event) = self.borrowed() {
            // Fails only if the counter is full; then the descriptor is readable anyway.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// Whether the event was raised since the last call.
    pub(crate) fn take(&self) -> bool {
        let mut count = [0; 8];
        self.borrowed()
            .is_some_and(|event| rustix::io::read(event, &mut count) == Ok(8))
    }

    fn borrowed(&self) -> Option<BorrowedFd<'static>> {
        // SAFETY: the descriptor is never closed.
        self.fd()
            .map(|event| unsafe { BorrowedFd::borrow_raw(event) })
    }
}
