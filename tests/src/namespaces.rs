//! Separate namespaces for one test, which runs itself again in them.
//!
//! Invariant: the namespaces, and everything that was mounted or created in them, end with the
//! inner run, whatever happens. This needs `unshare` and the right to use it: root, or unprivileged
//! user namespaces. Called by [`crate::network`] and [`crate::small_disk`], which know what the
//! namespaces are for.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::peer;

/// The namespaces of a test.
#[derive(Debug, Clone, Copy)]
pub struct Namespaces<'a> {
    /// The options of `unshare`: first those for a user without special rights, then those for root
    /// where user namespaces are forbidden.
    pub ways: [&'a str; 2],
    /// A shell script that runs first in the namespaces. It ends by executing its arguments.
    pub set_up: &'a str,
    /// Environment variables for the script and the inner run. By one of them, the inner run
    /// notices that it is the inner one.
    pub variables: &'a [(&'a str, &'a OsStr)],
    /// A shell script that succeeds if the machine has and allows everything that the test needs.
    pub trial: &'a str,
    /// The end of the message if the trial fails: what this machine does not allow.
    pub permission: &'a str,
}

impl Namespaces<'_> {
    /// Runs a test in the namespaces. `test` is its full name including its module. If the machine
    /// does not allow this, reports that and returns.
    ///
    /// # Panics
    ///
    /// If the inner run fails or cannot be started.
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
        // With a wrong name, no test would run and the inner run would succeed.
        assert!(said.contains("1 passed"), "no test {test}: {said}");
    }
}
