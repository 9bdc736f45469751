//! Work before this process ends: files to be removed (pidfile and sockets), and actions of other parts.
//!
//! There is one list of each per process. A program runs them on orderly exit, after fatal errors and after caught fatal signals, and clears
//! them in a forked child, which does not own its parent's files. A path in the list exists or is about to be made by this process. A program
//! that embeds the client library need not run them: a listener removes its socket file itself when it is closed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errno;
use crate::logging::{self, Module};

static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static AT_EXIT: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `action` before the process ends, on the thread that ends it. It must not take long.
pub fn at_exit(action: impl FnOnce() + Send + 'static) {
    let mut all = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(Box::new(action));
}

/// Adds a file to be removed before the process ends.
pub fn add(path: &Path) {
    files().push(absolute(path));
}

/// Removes a path from the list; the file stays.
pub fn unregister(path: &Path) {
    let path = absolute(path);
    let mut files = files();
    if let Some(position) = files.iter().position(|file| *file == path) {
        files.swap_remove(position);
    }
}

/// Removes a file now, and its path from the list.
///
/// # Errors
/// The file cannot be removed; logged as well.
pub fn unlink_now(path: &Path) -> io::Result<()> {
    unregister(path);
    std::fs::remove_file(path).inspect_err(|error| could_not_unlink(path, error))
}

/// Runs all actions and removes all files of the list. Failures are ignored: a file may have been removed already.
pub fn run() {
    let actions = std::mem::take(&mut *AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner));
    for action in actions {
        action();
    }
    let files = std::mem::take(&mut *files());
    for file in files {
        let _ = std::fs::remove_file(&file);
    }
}

/// Clears both lists in a forked process: they are its parent's.
pub fn clear() {
    files().clear();
    AT_EXIT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

fn could_not_unlink(path: &Path, error: &io::Error) {
    logging::warn(
        Module::FatalSignal,
        format_args!(
            "could not unlink \"{}\" ({})",
            path.display(),
            errno::text(error)
        ),
    );
}

/// Detaching changes the working directory, so only absolute paths stay valid.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unregistered_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, removed) = (
            directory.path().join("kept"),
            directory.path().join("removed"),
        );
        std::fs::write(&kept, "").unwrap();
        std::fs::write(&removed, "").unwrap();
        add(&kept);
        add(&removed);
        unregister(&kept);
        unlink_now(&removed).unwrap();
        assert!(kept.exists() && !removed.exists());
        assert!(!files().contains(&kept) && !files().contains(&removed));
    }
}
