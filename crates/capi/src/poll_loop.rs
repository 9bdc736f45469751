//! The events that a thread waits for, for programs in the shape of the reference's: each part of a
//! main loop registers its events, then the loop blocks once.
//!
//! Each thread has a list of its own. A program that has a loop already takes the events out of the
//! list and registers them with that loop.

use std::cell::RefCell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use crate::abi::SizedOut;
use crate::client::corvid_wait;
use crate::error::{Failure, corvid_error, guard, guard_find};

#[derive(Default)]
struct Wanted {
    fds: Vec<libc::pollfd>,
    until: Option<Instant>,
}

impl Wanted {
    /// The milliseconds until the time limit, as for poll(2).
    fn timeout_ms(until: Instant) -> c_int {
        let left = until.saturating_duration_since(Instant::now());
        c_int::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    }

    fn take_one(&mut self) -> Option<corvid_wait> {
        if let Some(pollfd) = self.fds.pop() {
            return Some(corvid_wait {
                size: size_of::<corvid_wait>(),
                fd: pollfd.fd,
                events: pollfd.events,
                timeout_ms: -1,
            });
        }
        let until = self.until.take()?;
        Some(corvid_wait {
            size: size_of::<corvid_wait>(),
            fd: -1,
            events: 0,
            timeout_ms: Wanted::timeout_ms(until),
        })
    }
}

thread_local! {
    static WANTED: RefCell<Wanted> = RefCell::default();
}

/// Registers a descriptor for the next corvid_poll_block of this thread; `events` is made of POLLIN
/// and POLLOUT.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_poll_fd(fd: c_int, events: i16) -> corvid_error {
    guard("corvid_poll_fd", || {
        if fd < 0 {
            return Err(Failure::argument("the descriptor is negative"));
        }
        WANTED.with_borrow_mut(|wanted| {
            wanted.fds.push(libc::pollfd {
                fd,
                events,
                revents: 0,
            });
        });
        Ok(())
    })
}

/// Limits the next corvid_poll_block of this thread to some milliseconds from now; 0 lets it return
/// at once.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_poll_timer(timeout_ms: i64) -> corvid_error {
    guard("corvid_poll_timer", || {
        let timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
        let until = Instant::now().checked_add(Duration::from_millis(timeout_ms));
        WANTED.with_borrow_mut(|wanted| {
            wanted.until = match (wanted.until, until) {
                (Some(former), Some(until)) => Some(former.min(until)),
                (former, until) => former.or(until),
            };
        });
        Ok(())
    })
}

/// Takes one of the events that are registered for the next corvid_poll_block of this thread, for
/// a program that waits in a loop of its own: a descriptor with its events, or a time limit with
/// the descriptor -1. CORVID_ERR_NONE: none is left; corvid_error_text stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_poll_next(wait: *mut corvid_wait) -> corvid_error {
    guard_find("corvid_poll_next", || {
        let out = SizedOut::new(wait)?;
        let event = WANTED.with_borrow_mut(Wanted::take_one);
        Ok(event.map(|event| out.set(event)))
    })
}

/// Waits until one of the registered descriptors is ready, the time has come or a signal arrives.
/// Forgets what was registered.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_poll_block() -> corvid_error {
    guard("corvid_poll_block", || {
        let mut wanted = WANTED.take();
        let timeout_ms = wanted.until.map_or(-1, Wanted::timeout_ms);
        let count = libc::nfds_t::try_from(wanted.fds.len()).unwrap_or(0);
        // SAFETY: the array has `count` elements and is used during the call only.
        unsafe { libc::poll(wanted.fds.as_mut_ptr(), count, timeout_ms) };
        Ok(())
    })
}
