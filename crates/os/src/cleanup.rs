//! Files that must not outlive this process: pidfile and sockets.
//!
//! One list per process. It is emptied by deletion on orderly exit, by fatal errors and by caught fatal signals, and is
//! forgotten (without deletion) in a forked child, whose parent's files are not its own. A path in the list exists or is
//! about to be made by this process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errno;
use crate::vlog::{self, Module};

static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Removes all files of the list. What is gone already, or belongs to another by now, is nobody's concern at the end.
pub fn unlink_all() {
    let files = std::mem::take(&mut *files());
    for file in files {
        let _ = std::fs::remove_file(&file);
    }
}

/// Forgets all files: they belong to the parent of this forked process.
pub(crate) fn forget_all() {
    files().clear();
}

fn could_not_unlink(path: &Path, error: &io::Error) {
    vlog::warn(
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
        let directory = crate::test_dir::TestDir::new();
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
