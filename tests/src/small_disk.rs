//! A file system of a few megabytes for one test, which the test can fill in milliseconds.
//!
//! The test runs itself again in a separate mount namespace ([`crate::namespaces`]), in which a
//! `tmpfs` is mounted. Called by the tests of full disks.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::namespaces::Namespaces;

/// The environment variable by which the inner run finds its file system.
const VARIABLE: &str = "CORVID_SMALL_DISK";
/// The size of the file system, unless a test asks for another size.
const SIZE: &str = "2m";
/// The shell script that mounts the file system.
const SET_UP: &str = r#"mount -t tmpfs -o size="$SIZE" small "$CORVID_SMALL_DISK" && exec "$@""#;

/// Runs `play` with the folder of a small file system. `test` is the full name of the calling test
/// including its module. If the machine does not allow mounts, reports that and returns.
///
/// # Panics
///
/// If `play` panics, or if the inner run cannot be started.
pub fn on_small_disk(test: &str, play: impl FnOnce(&SmallDisk)) {
    on_disk_of(test, SIZE, play);
}

/// Like [`on_small_disk`], with a file system of another size, for example `16m`.
///
/// # Panics
///
/// See [`on_small_disk`].
pub fn on_disk_of(test: &str, size: &str, play: impl FnOnce(&SmallDisk)) {
    if let Some(folder) = env::var_os(VARIABLE) {
        return play(&SmallDisk::at(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let namespaces = Namespaces {
        ways: ["-Urm", "-m"],
        set_up: SET_UP,
        variables: &[
            (VARIABLE, folder.path().as_os_str()),
            ("SIZE", OsStr::new(size)),
        ],
        trial: "true",
        permission: "mount a small file system (unshare)",
    };
    namespaces.run(test);
}

/// The small file system, as the inner run sees it.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    ballast: PathBuf,
}

impl SmallDisk {
    fn at(folder: &Path) -> SmallDisk {
        SmallDisk {
            folder: folder.to_owned(),
            ballast: folder.join("ballast"),
        }
    }

    /// Returns the path of a file on the file system.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Uses up `bytes` bytes.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn take(&self, bytes: usize) -> io::Result<()> {
        fs::write(&self.ballast, vec![1; bytes])
    }

    /// Uses up all room except for `bytes` bytes.
    ///
    /// # Errors
    ///
    /// An error of the operating system, except that there is no room.
    pub fn take_all_but(&self, bytes: u64) -> io::Result<()> {
        let mut ballast = File::create(&self.ballast)?;
        loop {
            match ballast.write(&[1; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error),
            }
        }
        let end = ballast.metadata()?.len();
        ballast.set_len(end.saturating_sub(bytes))
    }

    /// Frees the bytes that were used up.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn give_back(&self) -> io::Result<()> {
        fs::remove_file(&self.ballast)
    }
}
