//! Namespaces of its own for one test, which runs itself again in them.
//!
//! Invariant: the namespaces, and all that was mounted and made in them, end with the inner run, whatever happens. Needs `unshare` and the right to
//! use it: root, or unprivileged user namespaces. Called by [`crate::network`] and [`crate::small_disk`], which know the purpose of the namespaces.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::peer;

/// The namespaces of a test.
#[derive(Debug, Clone, Copy)]
pub struct Namespaces<'a> {
    /// Options of `unshare`: without rights of one's own, and as root where user namespaces are forbidden.
    pub ways: [&'a str; 2],
    /// A shell script that runs in them first, and becomes its arguments.
    pub set_up: &'a str,
    /// Variables of the environment for the script and the inner run, which finds out by one of them that it is one.
    pub variables: &'a [(&'a str, &'a OsStr)],
    /// A shell script that succeeds where the machine has and allows all that the test needs.
    pub trial: &'a str,
    /// The end of the report where the trial fails: this machine lets nobody do that.
    pub permission: &'a str,
}

impl Namespaces<'_> {
    /// Runs a test in them; `test` is its full name, its module included. Where the machine does not allow that, reports it and returns.
    ///
    /// # Panics
    ///
    /// When the inner run fails, or cannot be started.
    pub fn run(&self, test: &str) {
        let inside = |way: &str| {
            let mut command = Command::new("unshare");
            command
                .args([way, "sh", "-c", self.set_up, "sh"])
                .envs(self.variables.iter().copied())
                .stdin(Stdio::null());
            command
        };
        let is_possible = |way: &&str| {
            let output = inside(way).args(["sh", "-c", self.trial]).output();
            output.is_ok_and(|output| output.status.success())
        };
        let Some(way) = self.ways.into_iter().find(is_possible) else {
            let permission = self.permission;
            return peer::say_skipped(&format!("{test}: this machine lets nobody {permission}"));
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
}
