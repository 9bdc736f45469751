//! SIGHUP as an order to read files again, for programs that want it so; all others die of it ([`crate::signals`]).
//!
//! The handler only makes a descriptor readable. Whoever waits on [`fd`] asks [`take`] afterwards. In a supervisor the handler passes the signal
//! on to the process that serves. A signal that was ignored at start stays ignored. Call [`reload`] before the process becomes a daemon.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use corvid_net::errno;

/// Whether this program reads files again instead of dying.
static IS_RELOAD: AtomicBool = AtomicBool::new(false);
/// An eventfd that counts the signals since the last [`take`]; -1: they are not caught here.
static EVENT: AtomicI32 = AtomicI32::new(-1);
/// The process that a supervisor passes the signal on to; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// From now on SIGHUP means that files are to be read again.
pub fn reload() {
    IS_RELOAD.store(true, Ordering::SeqCst);
}

/// Whether SIGHUP means that.
pub(crate) fn is_reload() -> bool {
    IS_RELOAD.load(Ordering::SeqCst)
}

extern "C" fn count(_: libc::c_int) {
    let one = 1u64;
    // SAFETY: write(2) is async-signal-safe, the buffer is 8 valid bytes, and the descriptor is never closed. errno is saved and restored
    // because the interrupted code may be about to read it.
    unsafe {
        let saved = *libc::__errno_location();
        libc::write(EVENT.load(Ordering::SeqCst), (&raw const one).cast(), 8);
        *libc::__errno_location() = saved;
    }
}

extern "C" fn pass_on(_: libc::c_int) {
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 {
        // SAFETY: kill(2) is async-signal-safe and takes no pointers; errno as above.
        unsafe {
            let saved = *libc::__errno_location();
            libc::kill(child, libc::SIGHUP);
            *libc::__errno_location() = saved;
        }
    }
}

/// Catches the signal in a process that serves.
///
/// # Errors
/// No descriptor is left.
pub(crate) fn catch() -> io::Result<()> {
    // SAFETY: eventfd takes no pointers.
    let event = errno::check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    EVENT.store(event, Ordering::SeqCst);
    install(count);
    Ok(())
}

/// Catches the signal in a supervisor, if the program wants it: `child` gets it from now on. 0: there is no child just now, and one that begins
/// reads everything anyway.
pub(crate) fn pass_on_to(child: libc::pid_t) {
    if is_reload() {
        CHILD.store(child, Ordering::SeqCst);
        install(pass_on);
    }
}

fn install(handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all-zero `sigaction` values are valid; `old` and `new` outlive the calls; the handlers have the signature that one without
    // SA_SIGINFO must have and do only what is async-signal-safe.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut old);
        if old.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGHUP, &raw const new, std::ptr::null_mut());
    }
}

/// Restores the default action in a forked child, unless the signal is ignored.
pub(crate) fn set_default() {
    CHILD.store(0, Ordering::SeqCst);
    // SAFETY: as in `install`; only a disposition that points to a handler of ours is changed.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut old);
        let ours = [count as *const (), pass_on as *const ()];
        if ours
            .iter()
            .any(|handler| old.sa_sigaction == *handler as libc::sighandler_t)
        {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
        }
    }
}

/// The descriptor that is readable once the signal has come; `None` unless it is caught here.
#[must_use]
pub fn fd() -> Option<RawFd> {
    let event = EVENT.load(Ordering::SeqCst);
    (event >= 0).then_some(event)
}

/// Whether the signal has come since the last call.
#[must_use]
pub fn take() -> bool {
    let Some(event) = fd() else {
        return false;
    };
    let mut signals = 0u64;
    // SAFETY: the buffer is 8 valid bytes, and the descriptor is never closed.
    let got = unsafe { libc::read(event, (&raw mut signals).cast(), 8) };
    got == 8 && signals > 0
}
