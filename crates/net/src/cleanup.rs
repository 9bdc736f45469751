//! Work before this process ends: files to remove (pidfile and sockets), and actions of other
//! parts.
//!
//! There is one list of each per process. A program runs both on orderly exit, after fatal errors
//! and after caught fatal signals, and clears them in a forked child, which does not own its
//! parent's files. This process made every file in the list. If another process has since put its
//! own file in that place, the file stays. A program that embeds the client library need not run
//! the lists: a closed listener removes its socket file itself.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errno;
use crate::logging::{self, Module};

static FILES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
static AT_EXIT: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// A file that this process has made.
struct Entry {
    path: PathBuf,
    /// Device and inode. No other file gets them while this process has the file open.
    identity: Option<(u64, u64)>,
}

impl Entry {
    /// Whether the path still leads to the file that this process made. True if that is unknown.
    fn is_ours(&self) -> bool {
        match (self.identity, identity(&self.path)) {
            (Some(made), Some(present)) => made == present,
            _ => true,
        }
    }
}

/// Device and inode of a file or socket.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn files() -> MutexGuard<'static, Vec<Entry>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `action` before the process ends, on the thread that ends it. The action must not take
/// long.
pub fn at_exit(action: impl FnOnce() + Send + 'static) {
    let mut all = AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(Box::new(action));
}

/// Adds a file that this process has made, to be removed before the process ends.
pub fn add(path: &Path) {
    let path = absolute(path);
    let identity = identity(&path);
    let mut files = files();
    // A second socket of this process at the same path has replaced the first: the file is still
    // this process's.
    for known in files.iter_mut().filter(|known| known.path == path) {
        known.identity = identity;
    }
    files.push(Entry { path, identity });
}

/// Removes a path from the list; the file stays.
pub fn unregister(path: &Path) {
    let _ = take(path);
}

fn take(path: &Path) -> Option<Entry> {
    let path = absolute(path);
    let mut files = files();
    let position = files.iter().position(|file| file.path == path)?;
    Some(files.swap_remove(position))
}

/// Removes a file now, and its path from the list. A file that another process has put in its place
/// stays.
///
/// # Errors
/// The file cannot be removed; also logged.
pub fn unlink_now(path: &Path) -> io::Result<()> {
    if take(path).is_some_and(|entry| !entry.is_ours()) {
        return Ok(());
    }
    std::fs::remove_file(path).inspect_err(|error| could_not_unlink(path, error))
}

/// Runs all actions and removes all files in the list. Failures are ignored: a file may already be
/// gone.
pub fn run() {
    let actions = std::mem::take(&mut *AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner));
    for action in actions {
        action();
    }
    let files = std::mem::take(&mut *files());
    for file in files {
        if file.is_ours() {
            let _ = std::fs::remove_file(&file.path);
        }
    }
}

/// Clears both lists in a forked process: they belong to its parent.
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
        let listed = |path: &PathBuf| files().iter().any(|file| file.path == *path);
        assert!(!listed(&kept) && !listed(&removed));
    }

    #[test]
    fn a_file_of_another_process_in_its_place_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        let ours = std::fs::File::create(&path).unwrap();
        add(&path);
        std::fs::write(&other, "theirs").unwrap();
        std::fs::rename(&other, &path).unwrap();
        unlink_now(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        drop(ours);
    }
}
