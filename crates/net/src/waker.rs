//! A waker that ends another thread's wait for a connection.
//!
//! The pair are connected sockets: the waker writes a byte to one, the sleeper polls the other and
//! reads all bytes at once. A full buffer means that the sleeper is already woken. A wake-up before
//! the wait ends the wait at once, so none is lost.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use socket2::SockRef;

use crate::{poll, socket};

/// Wakes a [`Sleeper`].
#[derive(Debug)]
pub struct Waker(UnixStream);

/// Waits for a connection or for its [`Waker`].
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
    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        // A full buffer has already woken the sleeper. A dropped sleeper needs no wake-up.
        let _ = socket::send(&SockRef::from(&self.0), &[0]);
    }
}

impl Sleeper {
    /// Waits until the descriptor, if any, is ready as wanted or has failed, until a wake-up, or
    /// until the timeout; `None`: no timeout.
    ///
    /// # Errors
    /// poll(2) fails.
    pub fn wait(
        &mut self,
        fd: Option<RawFd>,
        (readable, writable): (bool, bool),
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let wanted = fd.map(|fd| (fd, poll::events(readable, writable)));
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
    fn a_wake_up_ends_the_present_or_the_next_wait() {
        let (waker, mut sleeper) = pair().unwrap();
        let nothing = (false, false);
        waker.wake();
        waker.wake();
        sleeper.wait(None, nothing, None).unwrap();
        let (begin, brief) = (Instant::now(), Duration::from_millis(2));
        sleeper.wait(None, nothing, Some(brief)).unwrap();
        assert!(begin.elapsed() >= brief, "one wait consumed both wake-ups");
        let waking = std::thread::spawn(move || waker.wake());
        sleeper.wait(None, nothing, None).unwrap();
        waking.join().unwrap();
    }
}
