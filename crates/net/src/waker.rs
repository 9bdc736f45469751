//! Ending another thread's wait for a connection.
//!
//! A pair of connected sockets: who wakes writes a byte to one, who waits polls the other. Waking often costs a byte each time until
//! the buffer is full, and then nothing; the waiter takes all of them at once. A wake-up before the wait ends it at once, so none is lost.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::poll;

/// Wakes a [`Sleeper`].
#[derive(Debug)]
pub struct Waker(UnixStream);

/// Waits for what it wants, or for its [`Waker`].
#[derive(Debug)]
pub struct Sleeper(UnixStream);

/// A waker and the sleeper that it wakes.
///
/// # Errors
/// No descriptor is left.
pub fn pair() -> io::Result<(Waker, Sleeper)> {
    let (waker, sleeper) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    sleeper.set_nonblocking(true)?;
    Ok((Waker(waker), Sleeper(sleeper)))
}

impl Waker {
    /// Ends the present wait, or the next one.
    pub fn wake(&self) {
        // A full buffer means that there is something to wake up for already.
        let _ = (&self.0).write(&[0]);
    }
}

impl Sleeper {
    /// Waits until the descriptor, if there is one, can be read or written as wanted or has failed, until it is woken, or until the time is
    /// over; `None` is for ever.
    ///
    /// # Errors
    /// poll(2) fails.
    pub fn wait(
        &mut self,
        fd: Option<RawFd>,
        (readable, writable): (bool, bool),
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let readable = if readable { libc::POLLIN } else { 0 };
        let writable = if writable { libc::POLLOUT } else { 0 };
        let wanted = fd.map(|fd| (fd, readable | writable));
        let own = (self.0.as_raw_fd(), libc::POLLIN);
        let [_, woken] = poll::wait_for_two([wanted, Some(own)], timeout)?;
        if woken != 0 {
            let mut bytes = [0; 64];
            while matches!(self.0.read(&mut bytes), Ok(count) if count > 0) {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_wait_ends_when_it_is_woken_before_or_after_it_began() {
        let (waker, mut sleeper) = pair().unwrap();
        let nothing = (false, false);
        waker.wake();
        waker.wake();
        sleeper.wait(None, nothing, None).unwrap();
        let (begin, brief) = (Instant::now(), Duration::from_millis(2));
        sleeper.wait(None, nothing, Some(brief)).unwrap();
        assert!(begin.elapsed() >= brief, "both wake-ups were taken at once");
        let waking = std::thread::spawn(move || waker.wake());
        sleeper.wait(None, nothing, None).unwrap();
        waking.join().unwrap();
    }
}
