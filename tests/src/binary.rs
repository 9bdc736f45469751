//! The paths of the programs under test. Ours are in a build directory; the reference's are in the
//! system directories.
//!
//! Everything that starts a process calls this module. It only computes paths; the caller checks
//! whether a file exists.

use std::env;
use std::path::{Path, PathBuf};

/// Returns the path of one of our binaries, such as `ovsdb-server`.
///
/// The directory is the value of the environment variable `CORVID_BIN_DIR`. If it is not set, the
/// directory is `target/release` of this repository or, if that does not contain the file, the
/// build directory of the running test.
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

/// Returns the path of a file in the parent of the directory of the running test, where Cargo puts
/// what it builds with the same profile.
///
/// # Panics
/// If the test's own program has no path.
pub fn beside_tests(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a path");
    let directory = test.parent().and_then(Path::parent).expect("a directory");
    directory.join(name)
}

fn beside_this_test(name: &str) -> Option<PathBuf> {
    let path = beside_tests(name);
    path.is_file().then_some(path)
}

/// Returns the path of a program of the reference implementation, or `None` if the program is not
/// installed.
///
/// Only the system directories are searched, never `PATH`. Otherwise a Corvid build in `PATH` could
/// be mistaken for the program with which it is compared.
pub fn reference(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.is_file())
}
