//! The manual of `corvid-console`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in `settings.rs`.

use corvid_shell::manual::{Chapter, Manual, shared};

use crate::settings;

/// The whole manual.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "corvid-console",
        section: 8,
        purpose: "show OVSDB databases in a browser",
        usage: &["[OPTIONS] [NAME=REMOTES[/DATABASE]]..."],
        groups: settings::GROUPS.to_vec(),
        options: settings::entries(),
        notes: vec![
            Chapter::list("Databases", WORDS),
            shared::active_methods("Active REMOTE connection methods"),
        ],
        description: DESCRIPTION,
        chapters: vec![
            shared::environment(),
            Chapter::list(
                "EXIT STATUS",
                &[("1", "the command line is wrong, or the address is in use")],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose(
                "SEE ALSO",
                "`corvid`(1), `ovsdb-client`(1), `ovsdb-server`(1)",
            ),
        ],
        ..Manual::default()
    }
}

const WORDS: &[(&str, &str)] = &[
    (
        "NAME=REMOTES[/DATABASE]",
        "show DATABASE of the servers REMOTES, separated by commas, under NAME; without DATABASE the only one that they serve",
    ),
    (
        "NAME.database=DATABASE",
        "the same, for remotes that end in the path of a socket",
    ),
    (
        "NAME.status=ADDRESS",
        "read the server's status at http://HOST:PORT/status.json, or from the control socket at this path; those of several members are separated by commas",
    ),
];

const DESCRIPTION: &str = "\
`{program}` serves pages that show the tables, rows and changes of OVSDB databases, of any server and with any schema, and prints their address \
as its first line. Pages are live: a change is visible without reloading. They can also be read without scripts.

Without words it shows the database of the server at unix:{rundir}/db.sock.

It is one client of each database, and monitors only the tables that somebody looks at. It listens on the loopback address \
unless told otherwise; an address that other machines reach needs TLS, and a token or certificates of viewers. It changes nothing unless \
`--writable` is given.";

const EXAMPLES: &str = "\
Show the databases of OVN and of this host's switch:

    corvid-console nb=unix:/run/ovn/ovnnb_db.sock sb=tcp:192.0.2.1:6642,tcp:192.0.2.2:6642 \\
        ovs=unix:/run/openvswitch/db.sock

Serve other machines, whose viewers know a token:

    corvid-console --listen=0.0.0.0:8640 --listen-private-key=key.pem --listen-certificate=certificate.pem \\
        --token-file=token nb=unix:/run/ovn/ovnnb_db.sock";
