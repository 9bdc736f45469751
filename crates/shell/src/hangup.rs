//! SIGHUP as a request to reread files, for programs that opt in; all others die of it
//! ([`crate::signals`]).
//!
//! The handler only makes a descriptor readable. A loop that waits for [`fd`] calls [`take`]
//! afterwards. In a supervisor, the handler forwards the signal to the server. A signal that was
//! ignored at start stays ignored. Call [`reload`] before the process becomes a daemon.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::signals::disposition::{self, Disposition};
use crate::signals::event::Event;

/// Whether this program rereads files instead of dying.
static IS_RELOAD: AtomicBool = AtomicBool::new(false);
/// Raised by the signal; has no descriptor while the signal is not caught here.
static EVENT: Event = Event::new();
/// The process to which a supervisor forwards the signal; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Makes SIGHUP a request to reread files from now on.
pub fn reload() {
    IS_RELOAD.store(true, Ordering::SeqCst);
}

/// Whether SIGHUP is a request to reread files.
pub(crate) fn is_reload() -> bool {
    IS_RELOAD.load(Ordering::SeqCst)
}

extern "C" fn raise_event(_: libc::c_int) {
    EVENT.raise();
}

extern "C" fn pass_on(_: libc::c_int) {
    // One system call, which is async-signal-safe and does not change errno.
    if let Some(child) = Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
        let _ = kill_process(child, Signal::HUP);
    }
}

/// Catches the signal in a server.
///
/// # Errors
/// No descriptor is left.
pub(crate) fn catch() -> io::Result<()> {
    EVENT.open()?;
    disposition::handle(libc::SIGHUP, raise_event);
    Ok(())
}

/// Catches the signal in a supervisor, if the program has opted in: from now on it is forwarded to
/// `child`. 0: there is no child at the moment; the next one reads all files anyway.
pub(crate) fn pass_on_to(child: libc::pid_t) {
    if is_reload() {
        CHILD.store(child, Ordering::SeqCst);
        disposition::handle(libc::SIGHUP, pass_on);
    }
}

/// Restores the default action in a forked child, unless the signal is ignored.
pub(crate) fn set_default() {
    CHILD.store(0, Ordering::SeqCst);
    for handler in [raise_event, pass_on] {
        if disposition::is(libc::SIGHUP, Disposition::Handle(handler)) {
            let _ = disposition::set(libc::SIGHUP, Disposition::Default);
        }
    }
}

/// The descriptor that becomes readable when the signal arrives; `None` unless the signal is caught
/// here.
#[must_use]
pub fn fd() -> Option<RawFd> {
    EVENT.fd()
}

/// Whether the signal has arrived since the last call.
#[must_use]
pub fn take() -> bool {
    EVENT.take()
}
