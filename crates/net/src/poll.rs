//! Blocking waits for one or two descriptors, by poll(2).
//!
//! A wait resumes after a signal handler has interrupted it. The handler installed in
//! [`crate::interrupt`], if any, runs during a wait.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::{errno, interrupt};

/// The poll events for a wait for readability, writability, or both.
#[must_use]
pub fn events(readable: bool, writable: bool) -> i16 {
    let readable = if readable { libc::POLLIN } else { 0 };
    let writable = if writable { libc::POLLOUT } else { 0 };
    readable | writable
}

/// Waits until `wanted` (a descriptor and poll events) is ready, at most `timeout`; `None` waits
/// forever. Returns the ready events, 0 after a timeout.
///
/// # Errors
/// poll(2) fails, or the wait is cancelled (`ECANCELED`).
pub fn wait(wanted: Option<(RawFd, i16)>, timeout: Option<Duration>) -> io::Result<i16> {
    wait_for_two([wanted, None], timeout).map(|[events, _]| events)
}

/// As [`wait`], for two descriptors.
///
/// # Errors
/// poll(2) fails.
pub fn wait_for_two(
    wanted: [Option<(RawFd, i16)>; 2],
    timeout: Option<Duration>,
) -> io::Result<[i16; 2]> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        interrupt::run();
        interrupt::check()?;
        let interrupting = (interrupt::fd(), libc::POLLIN);
        let mut fds = [wanted[0], wanted[1], Some(interrupting)].map(|each| {
            let (fd, events) = each.unwrap_or((-1, 0));
            libc::pollfd {
                fd,
                events,
                revents: 0,
            }
        });
        let timeout_ms = deadline.map_or(-1, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up: waking early would make the caller spin through the last millisecond.
            left.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32
        });
        // SAFETY: `fds` is a valid array of the stated length; negative descriptors are skipped by
        // poll.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
        match errno::check(ready) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) if fds[2].revents != 0 => {}
            Ok(_) => return Ok([fds[0].revents, fds[1].revents]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_nothing_ends_with_its_timeout() {
        assert_eq!(wait(None, Some(Duration::from_millis(2))).unwrap(), 0);
    }
}
