//! Runs the reference's offline tool on a file, as operators do when they change implementations.
//!
//! Called by the tests of storage. If the tool is not installed, this is reported on standard error
//! in a way that the test runner does not capture.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary;

/// Reports visibly that a test is skipped in this run.
pub fn say_skipped(what: &str) {
    // The runner only captures the output of the macros. This line must be seen.
    let _ = writeln!(io::stderr(), "\nSKIPPED: {what}");
}

/// Runs the reference's `ovsdb-tool` with `params` on the file and returns its output; `None` if
/// the tool is not installed.
///
/// # Errors
///
/// If the tool fails. The text contains its output.
pub fn query(file: &Path, params: &Value) -> io::Result<Option<Value>> {
    let Some(tool) = binary::reference("ovsdb-tool") else {
        return Ok(None);
    };
    let text = run(Command::new(tool)
        .arg("query")
        .arg(file)
        .arg(params.to_string()))?;
    Ok(Some(serde_json::from_str(&text)?))
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
///
/// If the program cannot be run or does not succeed. The text contains its output.
pub fn run(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{command:?}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
