//! The manual of `ovs-appctl`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in [`crate::appctl::options`]. Commands are the daemon's; those that every daemon has are listed here.

use corvid_shell::manual::{Chapter, Manual, shared};

use crate::appctl::options;

/// The whole manual.
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
        description: DESCRIPTION,
        chapters: vec![
            shared::environment(),
            Chapter::list(
                "FILES",
                &[
                    (
                        "{rundir}/TARGET.pid",
                        "the process id of a TARGET; used only while that process has the file locked",
                    ),
                    ("{rundir}/TARGET.PID.ctl", "its control socket"),
                ],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[
                    ("0", "success"),
                    ("1", "the target could not be reached"),
                    ("2", "the target answered with an error"),
                    (
                        "142",
                        "the time limit was reached (SIGALRM), as shells report it",
                    ),
                ],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-server`(1)"),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` sends one command to a running daemon over its control socket and prints the answer. Options end at the first word that is not
an option. That word and the words after it are sent to the daemon unchanged. The manual of `ovsdb-server`(1) lists that daemon's commands.";

const EXAMPLES: &str = "\
List the commands of the database server of this host, and compact its databases:

    ovs-appctl -t ovsdb-server list-commands
    ovs-appctl -t ovsdb-server ovsdb-server/compact

Address the server of OVN's northbound database by its socket:

    ovs-appctl -t /var/run/ovn/ovnnb_db.ctl memory/show";
