//! What `ovs-appctl` tells people of itself: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::options`]. Commands are the daemon's own; those that every daemon has are named here.

use corvid_os::manual::{Chapter, Manual};

use crate::options;

/// All of it.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovs-appctl",
        section: 8,
        purpose: "for querying and controlling Open vSwitch daemons",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: options::GROUPS.to_vec(),
        options: options::entries(),
        commands: vec![Chapter::list(
            "Commands that every daemon has",
            &[
                ("list-commands", "list the commands of the target"),
                ("version", "print the version of the target"),
                ("vlog/list", "list logging levels"),
                ("vlog/list-pattern", "list logging patterns"),
                (
                    "vlog/set [SPEC]",
                    "set logging levels: module, destination (syslog, console, file) and level (off, emer, err, warn, info, dbg)",
                ),
                ("vlog/reopen", "reopen the log file"),
            ],
        )],
        ..Manual::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_meaning() {
        assert_eq!(manual().complaints(), [""; 0]);
    }
}
