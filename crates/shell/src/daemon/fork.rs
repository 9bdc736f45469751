//! Forks a process, and waits until the child reports that it is ready.
//!
//! The child holds the writing end of a pipe: one byte means ready; the end of the pipe without a
//! byte means that the child has ended.

#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::{program, signals};
use corvid_net::errno;

/// The side of the fork that returned.
pub(super) enum Forked {
    /// The child is ready.
    Parent { child: libc::pid_t },
    /// Announce readiness on this descriptor.
    Child { ready: OwnedFd },
}

/// Forks. The parent returns once the child is ready; if the child exits with a failure instead,
/// the parent exits with the same status.
///
/// # Errors
/// Forking failed, or the child died in another way; the text is for the log.
pub(super) fn fork_and_wait() -> Result<Forked, String> {
    let (reader, writer) =
        io::pipe().map_err(|error| format!("pipe failed ({})", errno::text(&error)))?;
    // SAFETY: the process has one thread (see the head of `daemon`), so the child's copy of memory
    // is consistent: no lock is held by a thread that the child lacks.
    let pid = errno::check(unsafe { libc::fork() })
        .map_err(|error| format!("fork failed ({})", errno::text(&error)))?;
    if pid == 0 {
        drop(reader);
        super::become_child();
        return Ok(Forked::Child {
            ready: writer.into(),
        });
    }
    drop(writer);
    let mut byte = [0];
    let mut reader = reader;
    match reader.read_exact(&mut byte) {
        Ok(()) => Ok(Forked::Parent { child: pid }),
        Err(_) => {
            let status = wait_for(pid);
            if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) != 0 {
                program::exit(libc::WEXITSTATUS(status));
            }
            Err(format!(
                "fork child died before signaling startup ({})",
                describe(status)
            ))
        }
    }
}

/// Reports to the parent that this process is ready.
pub(super) fn announce(ready: Option<OwnedFd>) {
    if let Some(ready) = ready {
        // Writing fails only if the parent has ended.
        let _ = io::PipeWriter::from(ready).write_all(&[0]);
    }
}

/// Waits for the end of a child.
pub(super) fn wait_for(pid: libc::pid_t) -> libc::c_int {
    loop {
        match waitpid(Pid::from_raw(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.as_raw(),
            Err(Errno::INTR) => {}
            // The process is not a child any more; report an orderly end.
            Ok(None) | Err(_) => return 0,
        }
    }
}

/// A wait status in words: `exit status 1`, `killed (Aborted), core dumped`.
pub(super) fn describe(status: libc::c_int) -> String {
    let mut text = if libc::WIFEXITED(status) {
        format!("exit status {}", libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        format!("killed ({})", signals::name(libc::WTERMSIG(status)))
    } else if libc::WIFSTOPPED(status) {
        format!("stopped ({})", signals::name(libc::WSTOPSIG(status)))
    } else {
        format!("terminated abnormally ({status:x})")
    };
    if libc::WCOREDUMP(status) {
        text.push_str(", core dumped");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_described_as_the_log_shows_them() {
        assert_eq!(describe(3 << 8), "exit status 3");
        assert_eq!(describe(libc::SIGTERM), "killed (Terminated)");
        assert_eq!(
            describe(libc::SIGSEGV | 0x80),
            "killed (Segmentation fault), core dumped"
        );
    }
}
