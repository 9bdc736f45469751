//! The manual of `ovsdb-server`: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::options`], control commands from the registry that
//! `control::commands` fills.

pub mod reference;
mod topics;

use corvid_shell::manual::{Chapter, Manual, shared};

use crate::control::commands;
use crate::options;

/// The manual of `ovsdb-server`.
#[must_use]
pub fn manual() -> Manual {
    let mut manual = Manual {
        name: "ovsdb-server",
        section: 1,
        purpose: "Open vSwitch database server",
        usage: &["[OPTIONS] [DATABASE...]"],
        introduction: "Each DATABASE is a database file (default: {dbdir}/conf.db, if none is given), or relay:NAME:REMOTES, a relay of another server's database.",
        description: DESCRIPTION,
        groups: options::GROUPS.to_vec(),
        options: options::entries(),
        notes: vec![
            shared::active_methods("Active OVSDB connection methods"),
            shared::passive_methods("Passive OVSDB connection methods"),
        ],
        chapters: vec![
            commands::all()
                .chapter(reference::CONTROL_COMMANDS)
                .with_text(CONTROL_COMMANDS),
            Chapter::prose("CONFIGURATION FILE", CONFIGURATION_FILE),
            signals(),
            files(),
            shared::environment(),
            Chapter::list(
                "EXIT STATUS",
                &[
                    ("0", "ended by the command `exit`, or after the COMMAND of `--run` succeeded"),
                    ("1", "could not start, or the COMMAND of `--run` failed"),
                    ("128 and more", "ended by a signal, as shells report it; pidfile and sockets were removed first"),
                ],
            )
            .with_text("With `--detach`, the exit status of the command tells whether the daemon has started to serve."),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-client`(1), `ovsdb-tool`(1), `ovs-appctl`(8)"),
        ],
        ..Manual::default()
    };
    // These chapters follow the control commands, to which they refer.
    manual.chapters.splice(1..1, topics::chapters());
    manual
}

fn signals() -> Chapter {
    Chapter::list(
        "SIGNALS",
        &[
            (
                "SIGHUP",
                "read the configuration file and certificates again, and open log files again by name; a supervisor passes it on",
            ),
            ("SIGTERM, SIGINT, SIGALRM", "end the server: it removes its pidfile and sockets, then dies by that signal"),
            ("SIGUSR1, SIGUSR2", "end the process at once"),
            ("SIGPIPE", "ignored"),
        ],
    )
    .with_text(
        "`ovsdb-server/reload`, `vlog/reopen` and `ovsdb-server/reopen-audit-log` on the control socket each do one part of this, and report \
         errors. A signal that was ignored at the start stays ignored.",
    )
}

fn files() -> Chapter {
    Chapter::list(
        "FILES",
        &[
            ("{dbdir}/conf.db", "the database served if none is named"),
            (
                ".DATABASE.~lock~",
                "next to each database file: locked while the database is served",
            ),
            (
                "{rundir}/{program}.PID.ctl",
                "the control socket, unless `--unixctl` says otherwise",
            ),
            ("{rundir}/{program}.pid", "the pidfile of `--pidfile`"),
            ("{logdir}/{program}.log", "the log of `--log-file`"),
        ],
    )
}

const DESCRIPTION: &str = "\
`{program}` serves databases of the Open vSwitch Database protocol (RFC 7047 and the extensions that Open vSwitch and OVN use) to any
number of clients. Each database is a file, created by `ovsdb-tool create`, to which transactions are appended. Open vSwitch's
own server reads and writes the same files.

A server also serves the database `_Server`, which lists the databases with their schemas and roles; clients read there whether a member is connected \
to its cluster and leads it.

Clients reach it where `--remote` says; without one it can be reached by its control socket only, with `ovs-appctl`(8).";

const CONTROL_COMMANDS: &str = "\
Send these with `ovs-appctl -t {program} COMMAND`, or name the control socket with `-t PATH`.";

const CONFIGURATION_FILE: &str = "\
`--config-file` names a file with one JSON object. Its member `remotes` holds an object for each connection method, with the members
`max-backoff`, `inactivity-probe`, `dscp`, `read-only` and `role`, all of them optional; its member `databases` holds one for each
database file, with `service-model`.

    {
      \"remotes\": {
        \"punix:db.sock\": {},
        \"pssl:6640\": {\"inactivity-probe\": 16000, \"read-only\": true}
      },
      \"databases\": {
        \"conf.db\": {\"service-model\": \"standalone\"}
      }
    }

After a change, `ovs-appctl -t {program} ovsdb-server/reload` applies the differences.";

const EXAMPLES: &str = "\
Serve a database with your own schema, on a Unix socket and to TCP clients of this host, in the background:

    ovsdb-tool create /var/lib/inventory.db inventory.ovsschema
    ovsdb-server /var/lib/inventory.db --remote=punix:inventory.sock \\
        --remote=ptcp:6640:127.0.0.1 --pidfile --detach --log-file

Add a listener for SSL/TLS at run time, and list the remotes:

    ovs-appctl -t ovsdb-server ovsdb-server/add-remote pssl:6641
    ovs-appctl -t ovsdb-server ovsdb-server/list-remotes

Rotate its log:

    mv /var/log/openvswitch/ovsdb-server.log{,.1}
    ovs-appctl -t ovsdb-server vlog/reopen";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_meaning() {
        let mut manual = manual();
        manual
            .commands
            .push(commands::all().chapter(reference::CONTROL_COMMANDS));
        assert_eq!(manual.complaints(), [""; 0]);
    }
}
