//! What `ovsdb-client` tells people of itself: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::client::settings`], commands from the one in [`crate::client::commands`].

use corvid_shell::manual::{Chapter, Manual, Places, help, shared};

use crate::client::commands::{COMMANDS, TOPICS};
use crate::client::settings;
use crate::command;

const DEFAULTS: &str = "\
The default SERVER is unix:{rundir}/db.sock. The default DATABASE is Open_vSwitch, or the only one there is.

SERVER may be a list with commas between; one that suits is used.";

/// What `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Places::of_process())
}

/// All of it.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-client",
        section: 1,
        purpose: "Open vSwitch database JSON-RPC client",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: settings::GROUPS.to_vec(),
        options: settings::entries(),
        commands: command::chapters(&TOPICS, COMMANDS),
        notes: vec![
            Chapter::prose("Defaults", DEFAULTS),
            shared::active_methods("Active SERVER connection methods"),
            shared::passive_methods(
                "Passive SERVER connection methods, which wait for one connection",
            ),
        ],
        description: DESCRIPTION,
        chapters: vec![
            Chapter::prose("OUTPUT", OUTPUT),
            Chapter::prose("HEALTH CHECKS", HEALTH_CHECKS),
            shared::environment(),
            Chapter::list(
                "FILES",
                &[(
                    "{rundir}/db.sock",
                    "the server that is meant when none is named",
                )],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[
                    (
                        "0",
                        "done; also when an operation of a transaction failed, which its result tells",
                    ),
                    (
                        "1",
                        "could not connect, refused, or the connection was lost",
                    ),
                    ("142", "as shells show it: no time was left (SIGALRM)"),
                ],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose(
                "SEE ALSO",
                "`ovsdb-server`(1), `ovsdb-tool`(1), `ovs-appctl`(8)",
            ),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` sends one command to an OVSDB server and prints what it answers. `monitor`, `lock` and `steal` go on until they are
interrupted or the connection ends; with `--detach` they do so in the background, and can then be steered by `ovs-appctl`(8).";

const OUTPUT: &str = "\
`--format` and `--data` shape what `dump`, `list-tables`, `list-columns` and the monitors print. For scripts, `--format=json` or `--bare` with
named columns is best. Rows of `dump` are sorted by their contents, so that two dumps of equal contents are equal but for UUIDs.";

const HEALTH_CHECKS: &str = "\
`ping` is for scripts and for the health checks of containers: it prints how long an `echo` took and exits with status 0, or prints the
reason and exits with status 1. With a DATABASE, the server must serve it too; a member of a cluster must be connected to the others, and
lead them unless `--no-leader-only` is given. Of several servers one must do. Each server has 5 seconds; with `--timeout` only that counts, and
ends the program by SIGALRM.";

const EXAMPLES: &str = "\
Print a column of the bridges of this host:

    ovsdb-client --bare dump unix:{rundir}/db.sock Open_vSwitch Bridge name

Follow the ports of a database on another host, over SSL/TLS:

    ovsdb-client -p key.pem -c cert.pem -C ca.pem \\
        monitor ssl:192.0.2.1:6641 OVN_Northbound Logical_Switch_Port name,up

Check that a server answers and serves a database:

    ovsdb-client ping unix:{rundir}/db.sock Open_vSwitch

Copy a database while it is served, and put the copy back:

    ovsdb-client backup OVN_Northbound > nb.db
    ovsdb-client restore OVN_Northbound < nb.db";
