//! The log of a daemon that crashes: its standard error is no longer read by anybody.
//!
//! A panic is logged at level EMER with its backtrace before it unwinds or, in release builds,
//! aborts. A segmentation fault cannot be logged in the usual way. Its handler writes a line and
//! the addresses of the calls directly to the log file, and a copy of the process writes the
//! functions after them ([`functions`]). Then the process dies of the signal, so that the
//! supervisor sees the true cause. Call [`init`] once, after the last fork and after
//! `signals::init`.

#![allow(unsafe_code)]

mod functions;

use std::backtrace::Backtrace;
use std::panic;
use std::sync::atomic::{AtomicI32, Ordering};

use functions::DEPTH_MAX;

use crate::vlog::{self, Module};
use corvid_net::errno;

/// The log file's descriptor, -1 if there is none. The log file keeps it up to date.
static LOG_FILE: AtomicI32 = AtomicI32::new(-1);

/// Sets the descriptor of the log file; -1 for none.
pub(crate) fn write_to(descriptor: i32) {
    LOG_FILE.store(descriptor, Ordering::Relaxed);
}

/// Installs the panic hook and the handler of SIGSEGV.
///
/// # Errors
/// The kernel rejects the handler.
pub(crate) fn init() -> std::io::Result<()> {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        usual(info);
        let trace = Backtrace::force_capture();
        vlog::log_panic(Module::Util, &info.to_string(), &trace);
    }));
    functions::prepare()?;
    // The C library loads its unwinder at the first use, which must not happen in the handler.
    let mut addresses = [std::ptr::null_mut(); 1];
    // SAFETY: the array has room for one address.
    unsafe { libc::backtrace(addresses.as_mut_ptr(), 1) };
    // SAFETY: an all-zero `sigaction` is valid; `action` outlives the call; `last_line` has the
    // signature that a handler without SA_SIGINFO must have and calls only what may be called
    // there. The runtime gives every thread another stack for handlers, so that one that has run
    // out of its own can still run this.
    errno::check(unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = last_line as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut())
    })?;
    Ok(())
}

extern "C" fn last_line(signal: libc::c_int) {
    const LINE: &[u8] = b"SIGSEGV detected, backtrace:\n";
    let descriptor = LOG_FILE.load(Ordering::Relaxed);
    let mut addresses = [std::ptr::null_mut(); DEPTH_MAX];
    // SAFETY: write(2) and raise(3) are async-signal-safe, and so are the other two once the
    // unwinder is loaded. Buffers are as long as the calls are told. The default action is in force
    // again, and the signal arrives when the handler returns.
    unsafe {
        if descriptor >= 0 {
            libc::write(descriptor, LINE.as_ptr().cast(), LINE.len());
            let found = libc::backtrace(addresses.as_mut_ptr(), DEPTH_MAX as libc::c_int);
            libc::backtrace_symbols_fd(addresses.as_ptr(), found, descriptor);
            let found = usize::try_from(found).unwrap_or(0);
            functions::write(&addresses[..found.min(DEPTH_MAX)], descriptor);
        }
        libc::raise(signal);
    }
}
