//! Pidfiles: the process that runs under a name, proven by a lock.
//!
//! The file holds a pid and a newline and stays open, under a POSIX record lock, for the life of the process that it names.
//! Readers ask the kernel for the holder of the lock and trust the file only when both agree. The lock belongs to the process, is
//! not inherited by fork, and is lost when *any* descriptor of the file is closed: therefore the file is opened in the
//! final process and never again.

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

/// The pidfile that `--pidfile[=NAME]` means.
#[must_use]
pub fn path(name: Option<&str>) -> PathBuf {
    match name {
        Some(name) => dirs::absolute_under(&dirs::run(), name),
        None => dirs::run().join(format!("{}.pid", program::name())),
    }
}

/// Acquires the write lock on a whole file without waiting.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).map_err(Into::into)
}

/// The process that holds a lock on a file, if any other does. The descriptor need not be writable.
pub(crate) fn lock_holder(file: &File) -> io::Result<Option<i32>> {
    let holder = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?;
    Ok(holder.map(|lock| Pid::as_raw(lock.pid)))
}

/// Writes the pidfile of this process and keeps it locked until the process ends. Ends the process when that is not
/// possible, or when another one runs under this name (unless `overwrite`).
pub fn create_or_die(path: &Path, overwrite: bool) {
    let shown = path.display();
    let pid = std::process::id();
    let temporary = PathBuf::from(if overwrite {
        format!("{shown}.tmp{pid}")
    } else {
        format!("{shown}.tmp")
    });
    let temporary_shown = temporary.display();
    let give_up = |what: &str, error: &io::Error| -> ! {
        let text = errno::text(error);
        program::fatal_logged(
            Module::DaemonUnix,
            format_args!("{temporary_shown}: {what} failed ({text})"),
        )
    };
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .mode(0o666)
        .open(&temporary)
        .unwrap_or_else(|error| give_up("create", &error));
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
    // Closing the descriptor would drop the lock, so it stays open for good.
    let _ = ManuallyDrop::new(file);
}

/// Ends the process when another one holds the pidfile. A stale file is ignored.
fn check_or_die(path: &Path) {
    match read_quietly(path) {
        Ok(pid) => {
            let line = format_args!("{}: already running as pid {pid}, aborting", path.display());
            program::fatal_logged(Module::DaemonUnix, line);
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {}
        Err(error) => {
            let text = errno::text(&error);
            vlog::warn(
                Module::DaemonUnix,
                format_args!("{}: open: {text}", path.display()),
            );
            let line = format_args!(
                "{}: pidfile check failed ({text}), aborting",
                path.display()
            );
            program::fatal_logged(Module::DaemonUnix, line);
        }
    }
}

/// The pid of the live process whose pidfile this is.
///
/// # Errors
/// ESRCH when nobody holds the lock (the file is stale), else what opening and reading give; logged as well.
pub fn read(path: &Path) -> io::Result<i32> {
    read_quietly(path).inspect_err(|error| {
        if error.raw_os_error() != Some(libc::ESRCH) {
            let text = errno::text(error);
            vlog::warn(
                Module::DaemonUnix,
                format_args!("{}: open: {text}", path.display()),
            );
        }
    })
}

fn read_quietly(path: &Path) -> io::Result<i32> {
    // A process must not ask about its own pidfile: closing the descriptor would drop its lock.
    let mut file = File::open(path)?;
    // A directory cannot be locked, and would look like an unlocked file.
    if file.metadata()?.is_dir() {
        return Err(errno::from_code(libc::EISDIR));
    }
    let Some(holder) = lock_holder(&file)? else {
        return Err(errno::from_code(libc::ESRCH));
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let pid = text
        .trim_end()
        .parse()
        .map_err(|_| errno::from_code(libc::EINVAL))?;
    // A file renamed over the open one belongs to a newer process.
    let same = std::fs::metadata(path)
        .is_ok_and(|now| file.metadata().is_ok_and(|then| now.ino() == then.ino()));
    if holder != pid || !same {
        Err(errno::from_code(libc::ESRCH))
    } else {
        Ok(pid)
    }
}
