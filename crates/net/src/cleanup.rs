//! What has to be done before this process ends: files that must not outlive it (pidfile and sockets), and last words of others.
//!
//! One list of each per process. They are worked off on orderly exit, by fatal errors and by caught fatal signals, and are
//! forgotten in a forked child, whose parent's files are not its own. A path in the list exists or is
//! about to be made by this process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errno;
use crate::logging::{self, Module};

static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static LAST_WORDS: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has `words` called at the end, on the thread that ends the process. They must not take long.
pub fn say_at_last(words: impl FnOnce() + Send + 'static) {
    let mut all = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(Box::new(words));
}

/// Adds a file to be removed at the end.
pub fn add(path: &Path) {
    files().push(absolute(path));
}

/// Takes a file off the list without removing it.
pub fn forget(path: &Path) {
    let path = absolute(path);
    let mut files = files();
    if let Some(position) = files.iter().position(|file| *file == path) {
        files.swap_remove(position);
    }
}

/// Removes a file now and takes it off the list.
///
/// # Errors
/// The file cannot be removed; logged as well.
pub fn unlink_now(path: &Path) -> io::Result<()> {
    forget(path);
    std::fs::remove_file(path).inspect_err(|error| could_not_unlink(path, error))
}

/// Lets everybody say their last words, and removes all files of the list. What is gone already, or belongs to another by now, is nobody's
/// concern at the end.
pub fn run() {
    let words = std::mem::take(&mut *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner));
    for say in words {
        say();
    }
    let files = std::mem::take(&mut *files());
    for file in files {
        let _ = std::fs::remove_file(&file);
    }
}

/// Forgets everything: it is the business of the parent of this forked process.
pub fn forget_all() {
    files().clear();
    LAST_WORDS
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

/// Detaching changes the working directory, so only absolute names stay true.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_files_stay_and_listed_ones_go() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, removed) = (
            directory.path().join("kept"),
            directory.path().join("removed"),
        );
        std::fs::write(&kept, "").unwrap();
        std::fs::write(&removed, "").unwrap();
        add(&kept);
        add(&removed);
        forget(&kept);
        unlink_now(&removed).unwrap();
        assert!(kept.exists() && !removed.exists());
        assert!(!files().contains(&kept) && !files().contains(&removed));
    }
}
