//! Pidfiles: the process that runs under a name, proven by a lock.
//!
//! The file holds a pid and a newline. The process that it names keeps it open, under a POSIX
//! record lock, for its whole life. Readers ask the kernel which process holds the lock, and trust
//! the file only if both agree. The lock belongs to the process, is not inherited by fork, and is
//! lost when *any* descriptor of the file is closed. The file is therefore opened in the final
//! process and never again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};

use crate::program;
use crate::vlog::{self, Module};
use corvid_net::{cleanup, dirs, errno};

/// The path of `--pidfile[=NAME]`.
#[must_use]
pub fn path(name: Option<&str>) -> PathBuf {
    match name {
        Some(name) => dirs::absolute_under(&dirs::run(), name),
        None => dirs::run().join(format!("{}.pid", program::name())),
    }
}

/// Acquires the write lock on a whole file without waiting.
///
/// # Errors
/// Another process holds the lock (EAGAIN or EACCES), or the file system has no locks.
pub fn lock(file: &File) -> io::Result<()> {
    fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).map_err(Into::into)
}

/// The other process that holds a lock on a file, if any. The descriptor need not be writable.
///
/// # Errors
/// The file system has no locks.
pub fn lock_holder(file: &File) -> io::Result<Option<i32>> {
    let holder = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?;
    Ok(holder.map(|lock| Pid::as_raw(lock.pid)))
}

/// Writes the pidfile of this process and keeps it locked until the process ends. Ends the process
/// if that is impossible, or if another process runs under this name (unless `overwrite`).
pub fn create_or_die(path: &Path, overwrite: bool) {
    let shown = path.display();
    let pid = std::process::id();
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    if overwrite {
        temporary.push(pid.to_string());
    }
    let temporary = PathBuf::from(temporary);
    let temporary_shown = temporary.display();
    let give_up = |what: &str, error: &io::Error| -> ! {
        let text = errno::text(error);
        program::fatal_logged(
            Module::DaemonUnix,
            format_args!("{temporary_shown}: {what} failed ({text})"),
        )
    };
    // The file is not truncated here, because another process may hold the lock and have written
    // its pid.
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .mode(0o666)
        .open(&temporary)
        .unwrap_or_else(|error| give_up("create", &error));
    // The file is locked before it gets its name, so a pidfile without a lock is always stale.
    if let Err(error) = lock(&file) {
        give_up("fcntl(F_SETLK)", &error);
    }
    cleanup::add(&temporary);
    if !overwrite {
        check_or_die(path);
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{pid}"));
    if let Err(error) = written {
        give_up("write", &error);
    }
    if let Err(error) = std::fs::rename(&temporary, path) {
        let text = errno::text(&error);
        let line = format_args!("failed to rename \"{temporary_shown}\" to \"{shown}\" ({text})");
        program::fatal_logged(Module::DaemonUnix, line);
    }
    cleanup::unregister(&temporary);
    cleanup::add(path);
    // Closing the descriptor would drop the lock, so it stays open.
    let _ = ManuallyDrop::new(file);
}

/// Ends the process if another one holds the pidfile. A stale file is ignored.
fn check_or_die(path: &Path) {
    let owner = match Owner::of(path) {
        Ok(Owner::Nobody) => return,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return,
        owner => owner,
    };
    let shown = path.display();
    let text = match owner {
        Ok(Owner::Process(pid)) => {
            let line = format_args!("{shown}: already running as pid {pid}, aborting");
            program::fatal_logged(Module::DaemonUnix, line);
        }
        // A held lock proves that a process is alive, even if this process cannot see which one.
        Ok(Owner::Hidden { written, holder }) => {
            let line = format_args!(
                "{shown}: the file names pid {written}, and pid {holder} holds its lock (0: a process of another PID namespace)"
            );
            vlog::warn(Module::DaemonUnix, line);
            errno::text(&errno::from_code(libc::ESRCH))
        }
        Ok(Owner::Nobody) => return,
        Err(error) => {
            let text = errno::text(&error);
            vlog::warn(Module::DaemonUnix, format_args!("{shown}: open: {text}"));
            text
        }
    };
    let line = format_args!("{shown}: pidfile check failed ({text}), aborting");
    program::fatal_logged(Module::DaemonUnix, line);
}

/// The pid of the live process whose pidfile this is.
///
/// # Errors
/// ESRCH if nobody holds the lock (the file is stale), or if the holder is invisible to this
/// process; else the error of opening or reading. Also logged.
pub fn read(path: &Path) -> io::Result<i32> {
    match Owner::of(path) {
        Ok(Owner::Process(pid)) => Ok(pid),
        Ok(Owner::Nobody | Owner::Hidden { .. }) => Err(errno::from_code(libc::ESRCH)),
        Err(error) => {
            let text = errno::text(&error);
            let line = format_args!("{}: open: {text}", path.display());
            vlog::warn(Module::DaemonUnix, line);
            Err(error)
        }
    }
}

/// The owner of a pidfile.
enum Owner {
    /// Nobody holds the lock: the file is stale.
    Nobody,
    /// The process with this pid, which holds the lock.
    Process(i32),
    /// A process that the file does not name holds the lock. A process of another PID namespace has
    /// pid 0 here and another pid there.
    Hidden { written: i32, holder: i32 },
}

/// A pidfile may be replaced while it is read, but more often than this in a row is a fault.
const REPLACED_MAX: u32 = 100;

impl Owner {
    /// Asks the kernel for the owner.
    fn of(path: &Path) -> io::Result<Owner> {
        for _ in 0..REPLACED_MAX {
            // A process must not ask about its own pidfile: closing the descriptor would drop its
            // lock.
            let mut file = File::open(path)?;
            // A directory cannot be locked, and would look like an unlocked file.
            if file.metadata()?.is_dir() {
                return Err(errno::from_code(libc::EISDIR));
            }
            let holder = lock_holder(&file)?;
            let mut text = String::new();
            if holder.is_some() {
                file.read_to_string(&mut text)?;
            }
            // If another file was renamed over the open one, it belongs to a newer process; try
            // again with that file.
            let (now, then) = (std::fs::metadata(path)?, file.metadata()?);
            if (now.dev(), now.ino()) != (then.dev(), then.ino()) {
                continue;
            }
            let Some(holder) = holder else {
                return Ok(Owner::Nobody);
            };
            let written = text.trim_end().parse();
            let written = written.map_err(|_| errno::from_code(libc::EINVAL))?;
            return Ok(if holder == written {
                Owner::Process(written)
            } else {
                Owner::Hidden { written, holder }
            });
        }
        Err(errno::from_code(libc::EAGAIN))
    }
}
