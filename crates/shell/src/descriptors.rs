//! The limit of open descriptors: raised as far as this process may, and put back for programs that it starts.
//!
//! The usual soft limit of 1024 is there for programs that still use `select`; a server wants what the administrator allows at all,
//! the hard limit. Called once at start, before connections are accepted.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use corvid_net::errno;

/// The soft limit that the process began with.
static INHERITED: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one; returns how many descriptors there may be.
///
/// # Errors
/// The kernel's; the limit is then what it was.
pub fn raise() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call, which fills it.
    errno::check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    INHERITED.get_or_init(|| limit);
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        set(&limit)?;
    }
    Ok(limit.rlim_cur)
}

/// Has a program that is about to be started begin with the soft limit that we began with.
pub fn restore_for(command: &mut Command) {
    let Some(inherited) = INHERITED.get().copied() else {
        return;
    };
    // SAFETY: between fork and exec the closure makes one system call that is safe there, with a value of its own.
    unsafe {
        command.pre_exec(move || set(&inherited));
    }
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` outlives the call, which reads it.
    errno::check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }).map(drop)
}
