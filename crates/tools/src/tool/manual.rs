//! The manual of `ovsdb-tool`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in [`crate::tool::options`], commands from the one in
//! [`crate::tool::commands`].

use corvid_shell::manual::{Chapter, Manual, Placeholders, help, shared};
use corvid_shell::vlog;

use crate::command;
use crate::tool::commands::{COMMANDS, TOPICS};
use crate::tool::explanations;
use crate::tool::options;

const DEFAULTS: &str = "\
The default DB is {dbdir}/conf.db. The default SCHEMA is {pkgdatadir}/vswitch.ovsschema.";

/// The text that `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Placeholders::of_process())
}

/// The whole manual.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-tool",
        section: 1,
        purpose: "Open vSwitch database management utility",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: vec![vlog::GROUP],
        options: options::entries(),
        commands: command::chapters(&TOPICS, &COMMANDS, explanations::of),
        notes: vec![Chapter::prose("Defaults", DEFAULTS)],
        description: DESCRIPTION,
        chapters: vec![
            shared::environment(),
            Chapter::list(
                "FILES",
                &[
                    ("{dbdir}/conf.db", "the default DB"),
                    ("{pkgdatadir}/vswitch.ovsschema", "the default SCHEMA"),
                ],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[
                    ("0", "success, or yes"),
                    ("1", "error"),
                    (
                        "2",
                        "no, for db-is-clustered, db-is-standalone and compare-versions; not known yet, for db-cid; refused, for a transaction with `--fail`; something was lost, for salvage",
                    ),
                ],
            ),
            Chapter::prose("DAMAGED FILES", DAMAGED),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-server`(1), `ovsdb-client`(1)"),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` works on database files without a server. Commands that change a file lock it, and so refuse a file that a server has open.
Read-only commands can be used at any time. To work on a database that a server serves, use `ovsdb-client`(1).

There are two kinds of files. A standalone file holds a database that one server serves, or that a server keeps as an active backup of another \
one. The file of a cluster's member holds the log of one member. Most commands accept only one kind, as described below. \
`db-is-clustered` and `db-is-standalone` tell which one a file is.

A file whose server was killed needs no repair: the server, and the commands here, read every record that is complete. Damage within a file \
is an error in every command that would lose rows, and the message names the record and its offset.

Commands that take more than a second show their progress on a terminal, never in a file or pipe.";

const DAMAGED: &str = "\
Commands stop at the first damaged record, with exit status 1, and change nothing. `ovsdb-server` repairs only one kind of damage: a last
record whose write was interrupted. It does not open a file whose complete records have changed.

`salvage FILE NEW` reads FILE, which may belong to a member of a cluster, and writes a standalone database to NEW, which must not exist.
A record with one flipped bit is repaired with the help of its hash. From other damaged records it takes every readable row, and every
readable column of a damaged row: such values are plausible, but no hash proves them. Then it removes everything that violates the schema:
references to lost rows, rows with the key of another row, unreferenced rows. It prints one line for each repaired record and each loss, with
the contents of removed rows, and a summary. Exit status 2 means that something was lost. Read the list,
restore a backup if there is one, and compare. If the schema itself is damaged, name a file with SCHEMA.

If no member of a cluster is intact, `salvage` the file of the member with the longest log, then `create-cluster` with NEW.";

const EXAMPLES: &str = "\
Create the database of a virtual switch:

    ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema

Convert it to a newer schema, if needed:

    test \"$(ovsdb-tool needs-conversion conf.db new.ovsschema)\" = no ||
        ovsdb-tool convert conf.db new.ovsschema

Show the last changes, column by column:

    ovsdb-tool -mm show-log conf.db | tail -40";
