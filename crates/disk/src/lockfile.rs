//! Lock files next to databases: one writer per file (docs/spec/storage.md 6).
//!
//! The lock is a POSIX record lock, which belongs to the process and is lost when any descriptor of
//! the lock file is closed. So a table lists the files that this process has locked, by device and
//! inode. A second lock of the same file is refused before it is opened, because closing it again
//! would drop the first lock. Lock files are never removed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid_net::errno;
use corvid_shell::events;
use corvid_shell::pidfile;
use corvid_shell::vlog::{self, Module};

/// Device and inode of each lock file that this process holds.
static HELD: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<(u64, u64)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lockfile {
    /// `None` only in `drop`.
    file: Option<File>,
    key: (u64, u64),
}

impl Lockfile {
    /// The lock file of a database: `.NAME.~lock~` in the directory of the file to which `database`
    /// finally leads.
    #[must_use]
    pub fn path_for(database: &Path) -> PathBuf {
        let target = follow_links(database);
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(".~lock~");
        target.with_file_name(name)
    }

    /// Locks a database file, which need not exist.
    ///
    /// # Errors
    /// EDEADLK if this process already holds the lock, EAGAIN if another one does (both as the
    /// reference reports them), otherwise the system's error. Each is logged at WARN.
    pub fn lock(database: &Path) -> io::Result<Lockfile> {
        let locked = Lockfile::try_lock(database);
        match locked {
            Ok(_) => events::LOCKFILE_LOCK.bump(),
            Err(_) => events::LOCKFILE_ERROR.bump(),
        }
        locked
    }

    fn try_lock(database: &Path) -> io::Result<Lockfile> {
        let path = Lockfile::path_for(database);
        let shown = path.display();
        let warn = |what: &str| vlog::warn(Module::Lockfile, format_args!("{shown}: {what}"));
        // Hold the table's lock throughout, so that two threads cannot both open the same lock
        // file.
        let mut held = held();
        if std::fs::metadata(&path).is_ok_and(|data| held.contains(&(data.dev(), data.ino()))) {
            warn("cannot lock file because this process has already locked it");
            return Err(errno::from_code(libc::EDEADLK));
        }
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let file = file.inspect_err(|error| {
            // Two lines about one failure, as in the reference, which calls stat before open.
            let step = if error.raw_os_error() == Some(libc::ENOTDIR) {
                "stat"
            } else {
                "open"
            };
            warn(&format!(
                "failed to {step} lock file: {}",
                errno::text(error)
            ));
            warn(&format!("failed to lock file: {}", errno::text(error)));
        })?;
        let data = file.metadata()?;
        let key = (data.dev(), data.ino());
        if let Err(error) = pidfile::lock(&file) {
            if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) {
                warn(&format!("failed to lock file: {}", errno::text(&error)));
                return Err(error);
            }
            match pidfile::lock_holder(&file) {
                Ok(Some(0)) => warn(
                    "cannot lock file because it is already locked by a process of another PID namespace",
                ),
                Ok(Some(pid)) => warn(&format!(
                    "cannot lock file because it is already locked by pid {pid}"
                )),
                _ => warn("cannot lock file because it is already locked by another process"),
            }
            return Err(errno::from_code(libc::EAGAIN));
        }
        held.insert(key);
        Ok(Lockfile {
            file: Some(file),
            key,
        })
    }
}

impl Drop for Lockfile {
    fn drop(&mut self) {
        // Close the descriptor while the table is locked: closing it later would drop a lock that
        // another thread may have acquired in the meantime.
        events::LOCKFILE_UNLOCK.bump();
        let mut held = held();
        self.file = None;
        held.remove(&self.key);
    }
}

/// Maximum number of symbolic links that are resolved, as in the reference.
const LINKS_MAX: usize = 10;

/// The file to which a name leads through symbolic links, whether or not it exists.
#[must_use]
pub fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = std::fs::read_link(&path) else {
            break;
        };
        // An absolute link replaces the directory; a relative one is joined to it.
        path = path
            .parent()
            .map_or_else(|| link.clone(), |directory| directory.join(&link));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_and_its_target_share_one_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a.db"), directory.path().join("b.db"));
        std::os::unix::fs::symlink("a.db", &link).unwrap();
        let lock = Lockfile::lock(&file).unwrap();
        assert!(directory.path().join(".a.db.~lock~").exists());
        assert_eq!(
            Lockfile::lock(&link).unwrap_err().raw_os_error(),
            Some(libc::EDEADLK)
        );
        drop(lock);
        drop(Lockfile::lock(&link).unwrap());
        assert!(directory.path().join(".a.db.~lock~").exists());
    }

    #[test]
    fn a_lock_of_another_process_is_respected() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.db");
        let script = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print('ok',flush=True); sys.stdin.read()";
        let mut other = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(Lockfile::path_for(&file))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(other.stdout.take().unwrap()),
            &mut line,
        )
        .unwrap();
        let error = Lockfile::lock(&file).unwrap_err();
        assert_eq!(errno::text(&error), "Resource temporarily unavailable");
        drop(other.stdin.take());
        other.wait().unwrap();
        Lockfile::lock(&file).unwrap();
    }
}
