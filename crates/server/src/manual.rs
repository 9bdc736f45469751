//! The manual of `ovsdb-server`: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::options`], control commands from the registry that
//! `control::commands` fills.

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
                .chapter("CONTROL COMMANDS")
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
                    ("128 and more", "as shells show it: ended by a signal, after its pidfile and sockets were removed"),
                ],
            )
            .with_text("With `--detach`, the status of the command that was typed says whether the daemon serves."),
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
            ("SIGTERM, SIGINT, SIGALRM", "end the server: pidfile and sockets are removed, then it dies by that signal"),
            ("SIGUSR1, SIGUSR2", "end the process at once"),
            ("SIGPIPE", "ignored"),
        ],
    )
    .with_text(
        "`ovsdb-server/reload`, `vlog/reopen` and `ovsdb-server/audit-reopen` on the control socket do one part of what SIGHUP does, and answer. A \
         signal that was ignored at the start stays ignored.",
    )
}

fn files() -> Chapter {
    Chapter::list(
        "FILES",
        &[
            (
                "{dbdir}/conf.db",
                "the database that is served when none is named",
            ),
            (
                ".DATABASE.~lock~",
                "beside each database: locked as long as it is served",
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
number of clients. Each database is a file, made by `ovsdb-tool create`, to which transactions are appended. The files are those of
Open vSwitch's own server and can be handed to it and back.

A server also serves the database `_Server`, which lists the databases with their schemas and roles; clients read there whether a member is connected \
to its cluster and leads it.

Clients reach it where `--remote` says; without one it can be reached by its control socket only, with `ovs-appctl`(8).";

const CONTROL_COMMANDS: &str = "\
To be sent with `ovs-appctl -t {program} COMMAND`, or with `-t` and the path of the control socket.";

const CONFIGURATION_FILE: &str = "\
`--config-file` names a file with one JSON object. Its member `remotes` holds an object for each connection method, with the members
`max-backoff`, `inactivity-probe`, `dscp`, `read-only` and `role`, all of which may be left out; its member `databases` holds one for each
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

After a change, `ovs-appctl -t {program} ovsdb-server/reload` applies what differs.";

const EXAMPLES: &str = "\
Serve a database of a schema of one's own on a Unix socket and to TCP clients of this host, in the background:

    ovsdb-tool create /var/lib/inventory.db inventory.ovsschema
    ovsdb-server /var/lib/inventory.db --remote=punix:inventory.sock \\
        --remote=ptcp:6640:127.0.0.1 --pidfile --detach --log-file

Add a listener for SSL/TLS while it runs, and look at the remotes:

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
            .push(commands::all().chapter("CONTROL COMMANDS"));
        assert_eq!(manual.complaints(), [""; 0]);
    }
}
