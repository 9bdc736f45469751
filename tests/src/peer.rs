//! Runs the reference's offline tool on a file, as operators do when they change implementations.
//!
//! Called by the tests of storage. A missing tool is reported on standard error, past the capture of the test runner.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary;

/// Reports loudly that a test is skipped in this run.
pub fn say_skipped(what: &str) {
    // The runner captures the macros only; this line must be seen.
    let _ = writeln!(io::stderr(), "\nSKIPPED: {what}");
}

/// The output of the reference's `ovsdb-tool` when it runs `params` on the file, `None` when it is not installed.
///
/// # Errors
///
/// A tool that fails, with its output.
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
/// A program that cannot be run, or does not succeed, with its output.
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
