//! A disk that is slow or fails, for any server process. It consists of the library of
//! `troubled_disk.c`, which is loaded before the C library. This file has the names of the
//! environment variables that control the library. Called by the tests of slow and failing disks;
//! the load generator uses the same C source.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer;

/// Variable: only files whose path contains this text are affected.
pub const FILE: &str = "CORVID_DISK_FILE";
/// Variable: files are only affected while a file with this name exists.
pub const WHILE: &str = "CORVID_DISK_WHILE";
/// Variable: how long a read takes, in microseconds.
pub const READ_US: &str = "CORVID_DISK_READ_US";
/// Variable: the maximum number of bytes that a slow read returns.
pub const READ_BYTES: &str = "CORVID_DISK_READ_BYTES";
/// Variable: `1` if a read waits until [`WHILE`] is over.
pub const READ_HOLDS: &str = "CORVID_DISK_READ_HOLDS";
/// Variable: how long a write takes, in microseconds.
pub const WRITE_US: &str = "CORVID_DISK_WRITE_US";
/// Variable: how long a sync takes, in microseconds.
pub const SYNC_US: &str = "CORVID_DISK_SYNC_US";
/// Variable: the error number with which a sync fails.
pub const SYNC_ERRNO: &str = "CORVID_DISK_SYNC_ERRNO";
/// Variable: the error number with which a write fails.
pub const WRITE_ERRNO: &str = "CORVID_DISK_WRITE_ERRNO";
/// Variable: the error number with which the sync of a directory fails.
pub const DIRECTORY_ERRNO: &str = "CORVID_DISK_DIRECTORY_ERRNO";
/// Variable: a file to which a line is appended for each sync, each truncation and each read that
/// waits: `THREAD sync`, `THREAD cut`, `THREAD read`.
pub const TRACE: &str = "CORVID_DISK_TRACE";

/// Builds the library in `folder` and returns its path, which must be put into `LD_PRELOAD`.
///
/// # Panics
///
/// If there is no C compiler, which the build also needs.
pub fn library(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/troubled_disk.c");
    let library = folder.join("troubled_disk.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source);
    peer::run(&mut compiler).expect("a C compiler, which the build needs too");
    library
}
