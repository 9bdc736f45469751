//! The programs next to this one, run as a script would run them.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use corvid_net::errno;

/// Runs a tool to its end. Returns its output.
pub(crate) fn tool(command: &mut Command) -> Result<String, String> {
    let program = PathBuf::from(command.get_program());
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| about(&program, &error))?;
    // `ovsdb-tool transact` exits with success even if the transaction fails; in that case a result
    // is an error.
    let answer = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !answer.contains("\"error\"") {
        Ok(answer.into_owned())
    } else {
        Err(format!(
            "{}: {}\n{answer}{}",
            program.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

pub(crate) fn about(path: &Path, error: &io::Error) -> String {
    format!("{}: {}", path.display(), errno::text(error))
}

/// The path of a program that was built next to this one, else the bare name, to be found in
/// `PATH`.
pub(crate) fn sibling(name: &str) -> PathBuf {
    env::current_exe()
        .ok()
        .map(|exe| exe.with_file_name(name))
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}
