//! Waits for one descriptor, or none, with a time limit: by poll(2), or as a tokio future.
//!
//! For clients, which have one connection at a time; servers with many use the crate `reactor`. A
//! wait says when to try again, not what will succeed: the caller then tries its read or write,
//! which may still block.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

#[cfg(feature = "tokio")]
use tokio::io::{Interest, unix::AsyncFd};

#[cfg(feature = "tokio")]
use crate::fork::Home;
use crate::poll;

/// The events of a wait; the first one ends it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The descriptor; `None`: wait for the timeout alone.
    pub fd: Option<BorrowedFd<'a>>,
    /// End when the descriptor is readable or has failed.
    pub readable: bool,
    /// End when the descriptor is writable or has failed.
    pub writable: bool,
    /// The time limit; `None`: forever.
    pub timeout: Option<Duration>,
}

/// Blocks the thread until one of the events occurs. The handler installed in [`crate::interrupt`],
/// if any, runs during the wait.
///
/// # Errors
/// poll(2) fails.
pub fn wait(wanted: &Wanted<'_>) -> io::Result<()> {
    let events = poll::events(wanted.readable, wanted.writable);
    let fd = wanted.fd.map(|fd| (fd.as_raw_fd(), events));
    poll::wait(fd, wanted.timeout).map(drop)
}

/// Waits within a tokio runtime that has I/O and time enabled. Requires the feature `tokio`.
///
/// # Errors
/// The descriptor cannot be polled.
///
/// # Panics
/// Called outside of such a runtime.
#[cfg(feature = "tokio")]
pub async fn ready(wanted: Wanted<'_>) -> io::Result<()> {
    let timeout = wanted.timeout.unwrap_or(Duration::MAX);
    let interest = match (wanted.readable, wanted.writable) {
        (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
        (false, true) => Some(Interest::WRITABLE),
        (true, false) => Some(Interest::READABLE),
        (false, false) => None,
    };
    let (Some(fd), Some(interest)) = (wanted.fd, interest) else {
        tokio::time::sleep(timeout).await;
        return Ok(());
    };
    // SAFETY: the descriptor is borrowed for longer than `registered` lives, so it stays open, and
    // a borrow never changes its number.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    let registered = Registered {
        fd: Some(registered.map_err(|error| error.into_parts().1)?),
        home: Home::this_process(),
    };
    let Some(fd) = &registered.fd else {
        return Ok(());
    };
    match tokio::time::timeout(timeout, fd.ready(interest)).await {
        Ok(outcome) => outcome.map(drop),
        // The timeout has passed.
        Err(_) => Ok(()),
    }
}

/// A descriptor registered with the runtime's poll. A forked child shares the kernel's list of
/// descriptors with its parent, so it removes nothing from that list.
#[cfg(feature = "tokio")]
struct Registered<'a> {
    fd: Option<AsyncFd<BorrowedFd<'a>>>,
    home: Home,
}

#[cfg(feature = "tokio")]
impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if !self.home.is_this_process() {
            std::mem::forget(self.fd.take());
        }
    }
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_kinds_of_wait_end_at_readiness_or_timeout() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut wanted = Wanted {
            fd: Some(ours.as_fd()),
            readable: true,
            writable: false,
            timeout: Some(Duration::from_millis(2)),
        };
        wait(&wanted).unwrap();
        runtime.block_on(ready(wanted)).unwrap();
        theirs.write_all(b"x").unwrap();
        wanted.timeout = None;
        wait(&wanted).unwrap();
        runtime.block_on(ready(wanted)).unwrap();
        let nothing = Wanted {
            fd: None,
            timeout: Some(Duration::from_millis(2)),
            ..wanted
        };
        wait(&nothing).unwrap();
        runtime.block_on(ready(nothing)).unwrap();
    }
}
