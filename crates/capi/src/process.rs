//! Forks and signals: what a daemon does around a client.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use corvid::fork::{self, Home};

/// Gives the clients that the parent has connected to this process, a child that was just forked.
/// For daemons that detach after they have run a client. The parent must not use its clients any
/// more, not even free them. Without this call, functions that would use such a client in the child
/// return CORVID_ERR_FORKED, and the parent's connection is not touched. A client that has not run
/// yet may be used in the child as it is.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_inherit_connections() {
    fork::inherit();
}

/// Whether blocking calls are to return.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The end of the pipe that corvid_interrupt writes to; -1 as long as nothing has blocked.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// The pipe of the process that made it. A forked child makes another one: the byte that wakes it
/// must not be read by its parent.
static PIPE: Mutex<Option<(Home, c_int)>> = Mutex::new(None);

/// Ends the blocking calls of this process, those that wait now and those to come, until
/// corvid_interrupt_clear: corvid_idl_txn_commit_block returns CORVID_TXN_INCOMPLETE,
/// corvid_idl_get_initial_snapshot returns without a snapshot. It may be called in a signal
/// handler.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_interrupt() {
    // First: a call that does not see the byte sees this.
    IS_INTERRUPTED.store(true, Ordering::SeqCst);
    let write_end = WRITE_END.load(Ordering::SeqCst);
    if write_end >= 0 {
        // SAFETY: errno belongs to the code that the signal has interrupted; the byte is read
        // during the call only. A full pipe wakes as well.
        unsafe {
            let errno = libc::__errno_location();
            let former = *errno;
            libc::write(write_end, (&raw const BYTE).cast(), 1);
            *errno = former;
        }
    }
}

static BYTE: u8 = 0;

/// Lets blocking calls wait again.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_interrupt_clear() {
    IS_INTERRUPTED.store(false, Ordering::SeqCst);
}

/// Whether blocking calls are to return.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// A descriptor that becomes readable with corvid_interrupt; -1 if none is left. Ask for it before
/// [`is_interrupted`], and then wait.
pub(crate) fn interrupting_fd() -> c_int {
    let mut pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    match *pipe {
        Some((home, read_end)) if home.is_this_process() => read_end,
        _ => {
            let mut ends = [-1; 2];
            // SAFETY: the array has two elements.
            if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } < 0 {
                return -1;
            }
            let former = pipe.replace((Home::this_process(), ends[0]));
            let former_write_end = WRITE_END.swap(ends[1], Ordering::SeqCst);
            if let Some((_, former_read_end)) = former {
                // SAFETY: copies of the parent's ends, which nothing here uses any more.
                unsafe {
                    libc::close(former_read_end);
                    libc::close(former_write_end);
                }
            }
            ends[0]
        }
    }
}

/// Reads the bytes of former interrupts, so that they end no wait any more.
pub(crate) fn drain(read_end: c_int) {
    let mut bytes = [0_u8; 64];
    // SAFETY: the buffer has that many bytes; the descriptor does not block.
    while unsafe { libc::read(read_end, bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {}
}
