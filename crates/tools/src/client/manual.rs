//! The manual of `ovsdb-client`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in [`crate::client::settings`], commands from the one in
//! [`crate::client::commands`].

use corvid_shell::manual::{Chapter, Manual, Placeholders, help, shared};

use crate::client::commands::{COMMANDS, TOPICS};
use crate::client::explanations;
use crate::client::settings;
use crate::command;

const DEFAULTS: &str = "\
The default SERVER is unix:{rundir}/db.sock. The default DATABASE is Open_vSwitch, or the only database if there is just one.

SERVER may be a comma-separated list; the first suitable server is used.";

/// The text that `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Placeholders::of_process())
}

/// The whole manual.
#[must_use]
pub fn manual() -> Manual {
    Manual {
        name: "ovsdb-client",
        section: 1,
        purpose: "Open vSwitch database JSON-RPC client",
        usage: &["[OPTIONS] COMMAND [ARG...]"],
        groups: settings::GROUPS.to_vec(),
        options: settings::entries(),
        commands: command::chapters(&TOPICS, COMMANDS, explanations::of),
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
            Chapter::list("FILES", &[("{rundir}/db.sock", "the default SERVER")]),
            Chapter::list(
                "EXIT STATUS",
                &[
                    (
                        "0",
                        "success; also when an operation of a transaction failed, which the printed result shows, unless `--fail` is given",
                    ),
                    (
                        "1",
                        "the connection failed or was lost, or the server refused the request",
                    ),
                    (
                        "2",
                        "`revert`, and with `--fail`: the transaction was refused, and nothing was changed",
                    ),
                    (
                        "142",
                        "the time limit was reached (SIGALRM), as shells report it",
                    ),
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
`{program}` sends one command to an OVSDB server and prints the answer. `monitor`, `lock` and `steal` run until they are
interrupted or the connection ends. With `--detach` they run in the background, where `ovs-appctl`(8) controls them.

SERVER may name several servers of a cluster, separated by commas. They are tried once each, in the given order, until one serves the \
database, is connected to its cluster and leads it (with `--no-leader-only`, any connected member will do). Such a command line must name the \
DATABASE.

Output is buffered when it goes to a file or a pipe, and written at once after each change that a monitor prints. If the reader of the \
output stops early, as `head` or `grep -q` do, the command does not fail. If output is lost in another way, for example on a full disk, it \
does.

Commands that take more than a second show their progress on a terminal, never in a file or pipe.";

const OUTPUT: &str = "\
`--format` and `--data` set the output format of `dump`, `list-tables`, `list-columns` and the monitors. In scripts, use `--format=json`, or
`--bare` with named columns. `dump` sorts rows by their contents, so dumps of equal contents differ only in UUIDs.

Formats of tables: `table` has aligned columns; `list` has one column per line and an empty line between rows; `html` is a table of HTML; `csv` has \
values separated by commas, as RFC 4180 describes them; `json` prints one object for each table, with the members `caption` (absent if there is \
none), `headings`, an array of texts, and `data`, an array of rows, each an array of cells. Cells of `json` are always JSON, regardless of \
`--data`.

Forms of cells: `string` is the notation of `ovs-vsctl`(8), in which sets are in brackets, maps in braces, and strings are quoted where they could \
be taken for something else; `bare` has no brackets, braces and quotes and separates elements by spaces, which is easy to read for a script but \
does not distinguish a space in a string from one between strings; `json` is the notation of the protocol.

`--pretty` indents all JSON except cells of tables: schemas, results, `--format=json`, errors. `--max-column-width` truncates cells of the format `table` only. `--timestamp` prints \
the time in UTC above each table of a monitor, in `json` as the member `time`.";

const HEALTH_CHECKS: &str = "\
`ping` is for scripts and for the health checks of containers. It prints how long an `echo` took and exits with status 0, or prints the
reason of a failure and exits with status 1. With a DATABASE, the server must also serve it; a member of a cluster must be connected to its
cluster, and lead it unless `--no-leader-only` is given. Of several servers, one must pass. Each server has 5 seconds to answer. `--timeout`
replaces that limit and ends the program by SIGALRM.";

const EXAMPLES: &str = "\
Print a column of the bridges of this host:

    ovsdb-client --bare dump unix:{rundir}/db.sock Open_vSwitch Bridge name

Watch the ports of a database on another host, over SSL/TLS:

    ovsdb-client -p key.pem -c cert.pem -C ca.pem \\
        monitor ssl:192.0.2.1:6641 OVN_Northbound Logical_Switch_Port name,up

Check that a server answers and serves a database:

    ovsdb-client ping unix:{rundir}/db.sock Open_vSwitch

Back up a database while it is served, and restore it:

    ovsdb-client backup OVN_Northbound > nb.db
    ovsdb-client restore OVN_Northbound < nb.db

Find out who has changed the ports since yesterday, and what a database looked like an hour ago:

    ovsdb-client --table=Port --since=-1d log Open_vSwitch
    ovsdb-client --at=-1h dump Open_vSwitch Port";
