//! Detects a demo that is already running, by the control socket of its server.

use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::programs::sibling;

/// Returns an error if a demo is already running in `directory`. The sockets of its server would be
/// in `folder`.
///
/// # Errors
/// A demo is running; the text says how to reach it and how to end it.
pub(crate) fn refuse(directory: &Path, folder: &Path) -> Result<(), String> {
    let control = folder.join("ovsdb-server.ctl");
    // The socket of a killed server stays in its directory and accepts nothing.
    if UnixStream::connect(&control).is_err() {
        return Ok(());
    }
    Err(format!(
        "a demo runs in {} already, at unix:{}\n\
         To end it: Ctrl-C in its terminal, or {} -t {} exit\n\
         To start another one: corvid-demo DIRECTORY",
        directory.display(),
        folder.join("db.sock").display(),
        sibling("ovs-appctl").display(),
        control.display(),
    ))
}
