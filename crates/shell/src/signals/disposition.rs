//! Signal dispositions, read and changed by sigaction(2).
//!
//! Implemented here because signal libraries keep their handler for good: they can neither tell
//! whether a signal was ignored at start nor restore the default action. A process that dies of its
//! signal, and a forked child, need both.

#![allow(unsafe_code)]

use std::io;

use corvid_net::errno;

/// A handler without SA_SIGINFO. It may do only async-signal-safe work.
pub(crate) type Handler = extern "C" fn(libc::c_int);

/// The process's action on a signal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disposition {
    /// The default action.
    Default,
    /// The signal is ignored.
    Ignore,
    /// This function runs; system calls that it interrupts are restarted.
    Handle(Handler),
}

/// The address by which the C library names a disposition.
fn address(disposition: Disposition) -> libc::sighandler_t {
    match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignore => libc::SIG_IGN,
        Disposition::Handle(handler) => handler as *const () as libc::sighandler_t,
    }
}

/// Whether a signal currently has this disposition.
pub(crate) fn is(signal: libc::c_int, disposition: Disposition) -> bool {
    // SAFETY: an all-zero `sigaction` is valid; the call fills it in, and it outlives the call.
    let present = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present);
        present.sa_sigaction
    };
    present == address(disposition)
}

/// Changes the disposition of a signal.
///
/// # Errors
/// If the system rejects the request, because the number is not a signal or the signal cannot be
/// caught.
pub(crate) fn set(signal: libc::c_int, disposition: Disposition) -> io::Result<()> {
    // SAFETY: an all-zero `sigaction` is valid and outlives the call; a `Handler` has the signature
    // that a handler without SA_SIGINFO must have.
    let outcome = unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = address(disposition);
        new.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const new, std::ptr::null_mut())
    };
    errno::check(outcome).map(drop)
}

/// Installs a handler, unless the signal is ignored: a signal that was ignored at start stays
/// ignored.
pub(crate) fn handle(signal: libc::c_int, handler: Handler) {
    if !is(signal, Disposition::Ignore) {
        // The signals handled here can be caught.
        let _ = set(signal, Disposition::Handle(handler));
    }
}
