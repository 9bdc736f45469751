//! Where the programs under test are: ours in a build directory, the reference's in the system directories.
//!
//! Called by everything that starts a process. It only computes paths; whether a file exists is the caller's question.

use std::env;
use std::path::{Path, PathBuf};

/// The path of one of our binaries, such as `ovsdb-server`.
///
/// The directory is that of the environment variable `CORVID_BIN_DIR`, or `target/release` of this repository, or, when that has no
/// such file, the build directory that the running test came from.
///
/// # Examples
///
/// ```
/// assert!(corvid_tests::binary::bin("ovsdb-server").ends_with("ovsdb-server"));
/// ```
pub fn bin(name: &str) -> PathBuf {
    if let Some(dir) = env::var_os("CORVID_BIN_DIR") {
        return Path::new(&dir).join(name);
    }
    let released = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../target/release")
        .join(name);
    match beside_this_test(name) {
        Some(path) if !released.is_file() => path,
        _ => released,
    }
}

/// A file in the directory above that of the running test, where Cargo puts what it makes in the same profile.
///
/// # Panics
/// The test's own program has no path.
pub fn beside_tests(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a path");
    let directory = test.parent().and_then(Path::parent).expect("a directory");
    directory.join(name)
}

fn beside_this_test(name: &str) -> Option<PathBuf> {
    let path = beside_tests(name);
    path.is_file().then_some(path)
}

/// The path of a program of the reference implementation, or `None` when it is not installed.
///
/// Only the system directories are searched, never `PATH`, so that a Corvid build earlier in `PATH` cannot stand in
/// for the program it is measured against.
pub fn reference(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.is_file())
}
