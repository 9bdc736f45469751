//! What `ovsdb-tool` tells people of itself: `--help`, the manual page, completions.
//!
//! Options come from the table in [`crate::tool::options`], commands from the one in [`crate::tool::commands`].

use corvid_shell::manual::{Chapter, Manual, Places, help, shared};
use corvid_shell::vlog;

use crate::command;
use crate::tool::commands::{COMMANDS, TOPICS};
use crate::tool::options;

const DEFAULTS: &str = "\
The default DB is {dbdir}/conf.db. The default SCHEMA is {pkgdatadir}/vswitch.ovsschema.";

/// What `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Places::of_process())
}

/// All of it.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-tool",
        section: 1,
        purpose: "Open vSwitch database management utility",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: vec![vlog::GROUP],
        options: options::entries(),
        commands: command::chapters(&TOPICS, &COMMANDS),
        notes: vec![Chapter::prose("Defaults", DEFAULTS)],
        description: DESCRIPTION,
        chapters: vec![
            shared::environment(),
            Chapter::list(
                "FILES",
                &[
                    ("{dbdir}/conf.db", "the DB that is meant when none is named"),
                    (
                        "{pkgdatadir}/vswitch.ovsschema",
                        "the SCHEMA that is meant when none is named",
                    ),
                ],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[
                    ("0", "done, or yes"),
                    ("1", "could not be done"),
                    (
                        "2",
                        "no: db-is-clustered, db-is-standalone, compare-versions; not known yet: db-cid",
                    ),
                ],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-server`(1), `ovsdb-client`(1)"),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` works on database files without a server. Commands that change a file lock it first and refuse one that is served; those that
look may be used at any time.";

const EXAMPLES: &str = "\
Make the database of a virtual switch:

    ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema

Bring it to a newer schema, if it needs that:

    test \"$(ovsdb-tool needs-conversion conf.db new.ovsschema)\" = no ||
        ovsdb-tool convert conf.db new.ovsschema

See what changed last, column by column:

    ovsdb-tool -mm show-log conf.db | tail -40";
