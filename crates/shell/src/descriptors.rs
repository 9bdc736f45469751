//! The limit of open descriptors: raised as far as this process may, and restored for programs that
//! it starts.
//!
//! The usual soft limit of 1024 exists for programs that still use `select`; a server wants the
//! hard limit, which the administrator sets. Called once at the start, before connections are
//! accepted.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits that the process began with.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard limit. Returns the number of descriptors that may be open.
///
/// # Errors
/// The kernel rejects the new limit, which stays as it was.
pub fn raise() -> io::Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    INHERITED.get_or_init(|| limit);
    // `None` means unlimited.
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < most) {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
        return Ok(most);
    }
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// Restores the inherited limits in a program that is about to be started.
pub fn restore_for(command: &mut Command) {
    let Some(&inherited) = INHERITED.get() else {
        return;
    };
    // SAFETY: between fork and exec the closure makes one system call that is safe there, with a
    // value of its own.
    unsafe {
        command.pre_exec(move || Ok(setrlimit(Resource::Nofile, inherited)?));
    }
}
