//! Fatal signals, caught so that the process can clean up before it dies of them.
//!
//! The handler records the signal and makes a descriptor readable. A loop that waits for [`fd`]
//! then calls [`run`], which removes the files in the cleanup list, restores the default action and
//! raises the signal again. So the parent sees the true cause of death. Blocking waits in `net` do
//! the same ([`corvid_net::interrupt`]). A signal that was ignored at start stays ignored. Call
//! [`init`] once, after the last fork. Programs that reread files on SIGHUP do not die of it
//! ([`hangup`]). In an interactive program, SIGINT cancels the running command instead
//! ([`cancel_by_interrupt`]).

#![allow(unsafe_code)]

pub(crate) mod disposition;
pub(crate) mod event;

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::hangup;
use crate::vlog::{self, Module};
use corvid_net::{cleanup, interrupt};

use disposition::Disposition;
use event::Event;

const FATAL: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGALRM];

/// The last fatal signal received; 0 for none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Stays raised once a fatal signal has arrived.
static EVENT: Event = Event::new();
static BEFORE_DEATH: OnceLock<fn()> = OnceLock::new();

extern "C" fn record(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::SeqCst);
    EVENT.raise();
}

/// Catches the fatal signals. May be called again in a forked child, which then gets its own
/// descriptor.
///
/// # Errors
/// No descriptor is left.
pub fn init() -> io::Result<()> {
    interrupt::install(EVENT.open()?, run);
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // The runtime's handler looks for stack overflows, and swallows the first such signal that
        // another process sends; a supervisor waits for this process to die of it. Daemons have
        // their own handler (`crate::crash`).
        set_default(signal);
    }
    if hangup::is_reload() {
        hangup::catch()?;
    }
    for signal in FATAL {
        if signal != libc::SIGHUP || !hangup::is_reload() {
            disposition::handle(signal, record);
        }
    }
    Ok(())
}

/// From now on SIGINT cancels blocking waits instead of ending the process. Call it again after a
/// library has installed a handler of its own.
pub fn cancel_by_interrupt() {
    disposition::handle(libc::SIGINT, cancel);
}

extern "C" fn cancel(_: libc::c_int) {
    interrupt::cancel();
    EVENT.raise();
}

/// Whether SIGINT has arrived since the last call. From now on waits work again.
pub fn take_cancellation() -> bool {
    let is_cancelled = interrupt::take_cancellation();
    // The descriptor stays readable for a fatal signal. One that arrives right here is noticed when
    // the next wait begins.
    if is_cancelled && received().is_none() {
        EVENT.take();
    }
    is_cancelled
}

/// Runs `hook` when a fatal signal ends the process, for example to restore the terminal.
pub fn before_death(hook: fn()) {
    BEFORE_DEATH.get_or_init(|| hook);
}

/// The descriptor that becomes readable when a fatal signal arrives; poll it, do not read it.
/// `None` before [`init`].
#[must_use]
pub fn fd() -> Option<RawFd> {
    EVENT.fd()
}

/// The fatal signal that has arrived, if any.
#[must_use]
pub fn received() -> Option<i32> {
    let signal = RECEIVED.load(Ordering::SeqCst);
    (signal != 0).then_some(signal)
}

/// Cleans up and dies of the fatal signal that has arrived. Returns if none has.
pub fn run() {
    if let Some(signal) = received() {
        let name = name(signal);
        vlog::warn(
            Module::FatalSignal,
            format_args!("terminating with signal {signal} ({name})"),
        );
        cleanup::run();
        if let Some(hook) = BEFORE_DEATH.get() {
            hook();
        }
        die_of(signal);
    }
}

/// Dies of a signal by its default action, without cleaning up.
pub fn die_of(signal: i32) -> ! {
    set_default(signal);
    // SAFETY: neither call takes pointers that outlive it; the set is initialised by sigemptyset
    // before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    // The first process of a container does not die of its own signals, so it exits as a shell
    // would report such a death.
    std::process::exit(128 + signal)
}

/// Restores the default action, as a forked child must before it waits or executes another program.
pub(crate) fn set_default(signal: i32) {
    // Every caller passes a signal that has a default action.
    let _ = disposition::set(signal, Disposition::Default);
}

/// Restores the default action of all fatal signals caught here; ignored ones stay ignored.
pub(crate) fn set_all_default() {
    hangup::set_default();
    for signal in FATAL {
        if disposition::is(signal, Disposition::Handle(record)) {
            set_default(signal);
        }
    }
}

/// Ignores SIGPIPE: writing to a closed socket is an error to handle, not a reason to die.
pub(crate) fn ignore_sigpipe() {
    // SIGPIPE can always be ignored.
    let _ = disposition::set(libc::SIGPIPE, Disposition::Ignore);
}

/// The C library's name for a signal, for example `Terminated`.
#[must_use]
pub fn name(signal: i32) -> String {
    // SAFETY: strsignal returns null or a terminated string that stays valid until the next call in
    // this thread.
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
    fn names_are_of_the_c_library() {
        assert_eq!(name(libc::SIGTERM), "Terminated");
        assert_eq!(name(libc::SIGALRM), "Alarm clock");
    }
}
