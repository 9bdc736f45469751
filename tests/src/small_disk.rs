//! A file system of a few megabytes for one test, so that a test fills the disk in milliseconds.
//!
//! The test runs itself again in a mount namespace of its own, where a `tmpfs` is mounted; the namespace and all that was
//! mounted end with that process, whatever happens. Needs `unshare` and the right to use it: root, or unprivileged user
//! namespaces. Called by the tests of full disks.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::peer;

/// Tells the inner run where its file system is.
const VARIABLE: &str = "CORVID_SMALL_DISK";
/// Size of the file system, if a test asks for no other.
const SIZE: &str = "2m";
/// Ways to a mount namespace: without rights of one's own, and as root where user namespaces are forbidden.
const WAYS: [&str; 2] = ["-Urm", "-m"];
/// Mounts at its first argument and becomes the others.
const MOUNT: &str = r#"at=$1; shift; mount -t tmpfs -o size="$SIZE" small "$at" && exec "$@""#;

/// Runs `play` with the folder of a small file system. `test` is the full name of the calling test, its module included. Where the machine allows no
/// mounts, reports that and returns.
///
/// # Panics
///
/// When `play` does, or the inner run cannot be started.
pub fn on_small_disk(test: &str, play: impl FnOnce(&SmallDisk)) {
    on_disk_of(test, SIZE, play);
}

/// The same, with a file system of another size, `16m` for example.
///
/// # Panics
///
/// As [`on_small_disk`].
pub fn on_disk_of(test: &str, size: &str, play: impl FnOnce(&SmallDisk)) {
    if let Some(folder) = env::var_os(VARIABLE) {
        return play(&SmallDisk::at(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inside = |way: &str| {
        let mut command = Command::new("unshare");
        command
            .args([way, "sh", "-c", MOUNT, "sh"])
            .arg(folder.path())
            .env("SIZE", size)
            .env(VARIABLE, folder.path())
            .stdin(Stdio::null());
        command
    };
    let is_possible = |way: &&str| {
        let output = inside(way).arg("true").output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(way) = WAYS.into_iter().find(is_possible) else {
        peer::say_skipped(&format!(
            "{test}: this machine lets nobody mount a small file system (unshare)"
        ));
        return;
    };
    let program = env::current_exe().expect("the running test has a program");
    let output = inside(way)
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .output()
        .expect("unshare ran a moment ago");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // With a wrong name, no test would run, and the inner run would succeed.
    assert!(said.contains("1 passed"), "no test {test}: {said}");
}

/// The small file system, seen from inside.
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

    /// The path of a file on it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Uses up so many bytes.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn take(&self, bytes: usize) -> io::Result<()> {
        fs::write(&self.ballast, vec![1; bytes])
    }

    /// Uses up all room but so many bytes.
    ///
    /// # Errors
    ///
    /// An error of the operating system other than that there is no room.
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

    /// Frees the bytes that were taken.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn give_back(&self) -> io::Result<()> {
        fs::remove_file(&self.ballast)
    }
}
