//! Fatal signals, caught so that the process can clean up before it dies of them.
//!
//! The handler only notes the signal and makes a descriptor readable; whoever waits on [`fd`] then calls [`run`], which
//! removes the files of [`corvid_net::cleanup`], restores the default action and raises the signal again, so that the parent
//! sees the true cause of death. A signal that was ignored at start stays ignored. Call [`init`] once, after the last fork. SIGHUP is none of
//! them in programs that read files again instead ([`hangup`]).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::hangup;
use crate::vlog::{self, Module};
use corvid_net::{cleanup, errno, interrupt};

const FATAL: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGALRM];

/// The last fatal signal received, 0 for none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// An eventfd that becomes and stays readable when a fatal signal has come; -1 before [`init`].
static EVENT: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::SeqCst);
    let one = 1u64;
    // SAFETY: write(2) is async-signal-safe, the buffer is 8 valid bytes, and the descriptor is never closed. errno is
    // saved and restored because the interrupted code may be about to read it.
    unsafe {
        let saved = *libc::__errno_location();
        libc::write(EVENT.load(Ordering::SeqCst), (&raw const one).cast(), 8);
        *libc::__errno_location() = saved;
    }
}

/// Catches the fatal signals. May be called again in a forked child, which then has a descriptor of its own.
///
/// # Errors
/// No descriptor is left.
pub fn init() -> io::Result<()> {
    // SAFETY: eventfd takes no pointers.
    let event = errno::check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    EVENT.store(event, Ordering::SeqCst);
    interrupt::install(event, run);
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // The runtime's handler looks for stack overflows and swallows the first such signal that another process sends; a
        // supervisor waits for this process to die of it. Daemons have a handler of their own (`crate::crash`).
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    if hangup::is_reload() {
        hangup::catch()?;
    }
    for signal in FATAL {
        if signal == libc::SIGHUP && hangup::is_reload() {
            continue;
        }
        // SAFETY: all-zero `sigaction` values are valid; `old` and `new` outlive the calls; `note` has the signature that a
        // handler without SA_SIGINFO must have and does only what is async-signal-safe.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = note as *const () as libc::sighandler_t;
            new.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const new, std::ptr::null_mut());
        }
    }
    Ok(())
}

/// The descriptor that is readable once a fatal signal has come; poll for it, do not read it. `None` before [`init`].
#[must_use]
pub fn fd() -> Option<RawFd> {
    let event = EVENT.load(Ordering::SeqCst);
    (event >= 0).then_some(event)
}

/// The fatal signal that has come, if any.
#[must_use]
pub fn received() -> Option<i32> {
    let signal = RECEIVED.load(Ordering::SeqCst);
    (signal != 0).then_some(signal)
}

/// Dies of the fatal signal that has come, after cleaning up; returns when none has.
pub fn run() {
    if let Some(signal) = received() {
        let name = name(signal);
        vlog::warn(
            Module::FatalSignal,
            format_args!("terminating with signal {signal} ({name})"),
        );
        cleanup::run();
        die_of(signal);
    }
}

/// Dies of a signal by its default action, without cleaning up.
pub fn die_of(signal: i32) -> ! {
    set_default(signal);
    // SAFETY: neither call takes pointers that outlive it; the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    // The first process of a container does not die of its own signals: it ends as a shell would report such a death.
    std::process::exit(128 + signal)
}

/// Restores the default action, as a forked child needs before it waits or executes something else.
pub(crate) fn set_default(signal: i32) {
    // SAFETY: SIG_DFL is always a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Restores the default action of all fatal signals that are caught here; ignored ones stay ignored.
pub(crate) fn set_all_default() {
    hangup::set_default();
    for signal in FATAL {
        // SAFETY: as in `init`; only a disposition that points to our handler is changed.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == note as *const () as libc::sighandler_t {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// Writing to a closed socket is an error to be handled, not a reason to die.
pub(crate) fn ignore_sigpipe() {
    // SAFETY: SIG_IGN is always a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// The C library's name for a signal, for example `Terminated`.
#[must_use]
pub fn name(signal: i32) -> String {
    // SAFETY: strsignal returns null or a terminated string that stays valid until the next call in this thread.
    unsafe {
        let text = libc::strsignal(signal);
        if text.is_null() {
            return format!("signal {signal}");
        }
        std::ffi::CStr::from_ptr(text)
            .to_string_lossy()
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_c_library() {
        assert_eq!(name(libc::SIGTERM), "Terminated");
        assert_eq!(name(libc::SIGALRM), "Alarm clock");
    }
}
