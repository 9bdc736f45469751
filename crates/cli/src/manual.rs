//! The manual of `corvid`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in `settings.rs`, commands from the one in `commands.rs`.

use corvid_shell::manual::{Chapter, Entry, Manual, Placeholders, help, shared};

use crate::commands::COMMANDS;
use crate::settings;

const GRAMMAR: &str = "\
TABLE and COLUMN may be abbreviated, in any case and with `-` for `_`, as long as they are unique. RECORD is a UUID or at least its first four \
digits, `.` for the only record of a table, or a name: the column `name`, or a column that is an index of the table.

Several commands, separated by `--`, are one transaction. Options of a command precede its name; those of the first command may \
also stand among the options of the program.";

/// The text that `--help` and the command `help` print.
pub(crate) fn help() -> String {
    help::text(&manual(), &Placeholders::of_process())
}

/// The whole manual.
#[must_use]
pub fn manual() -> Manual {
    let entries = COMMANDS.iter().map(|command| Entry {
        term: command.synopsis.to_owned(),
        meaning: command.meaning,
        detail: command.detail,
    });
    Manual {
        name: "corvid",
        section: 1,
        purpose: "read and change any OVSDB database",
        usage: &[
            "[SERVER] [OPTIONS] COMMAND [ARG...] [-- [OPTIONS] COMMAND [ARG...]]...",
            "[SERVER] [OPTIONS]",
        ],
        groups: settings::GROUPS.to_vec(),
        options: settings::entries(),
        commands: vec![Chapter {
            title: "Database commands",
            text: "",
            entries: entries.collect(),
        }],
        notes: vec![
            Chapter::prose("Tables, columns and records", GRAMMAR),
            shared::active_methods("Active SERVER connection methods"),
            shared::passive_methods(
                "Passive SERVER connection methods, which wait for one connection",
            ),
        ],
        description: DESCRIPTION,
        chapters: vec![
            shared::environment(),
            Chapter::prose("SHELL", SHELL),
            Chapter::list(
                "FILES",
                &[
                    ("{rundir}/db.sock", "the default SERVER"),
                    (
                        "~/.config/corvid/servers.toml",
                        "names of servers, with their addresses, databases and TLS files",
                    ),
                    (
                        "~/.local/state/corvid/history",
                        "the lines of earlier shells",
                    ),
                ],
            ),
            Chapter::list(
                "EXIT STATUS",
                &[
                    (
                        "0",
                        "the commands succeeded, and their transaction is committed",
                    ),
                    (
                        "1",
                        "a record or a key does not exist; with --quiet also: no record matched; `doctor` found something",
                    ),
                    ("2", "the command line is wrong"),
                    (
                        "3",
                        "the server refused the transaction, and nothing was changed",
                    ),
                    ("4", "the connection failed or was lost"),
                    (
                        "142",
                        "the time limit was reached (SIGALRM), as shells report it",
                    ),
                ],
            ),
            Chapter::prose("EXAMPLES", EXAMPLES),
            Chapter::prose("SEE ALSO", "`ovsdb-client`(1), `ovsdb-server`(1)"),
        ],
        ..Manual::default()
    }
}

const DESCRIPTION: &str = "\
`{program}` reads and changes the rows of any OVSDB database, with any schema. Its commands are the database commands of `ovs-vsctl`(8), \
`ovn-nbctl`(8) and their relatives, with the same arguments and the same output.

A command reads only the rows that it needs. If other clients change them before the commit, the commands run again on the new contents.

SERVER may name several servers of a cluster, separated by commas. Without SERVER, the variables `OVN_NB_DB`, `OVN_SB_DB`, `OVN_IC_NB_DB` and \
`OVN_IC_SB_DB` name the servers of the databases `OVN_Northbound`, `OVN_Southbound`, `OVN_IC_Northbound` and `OVN_IC_Southbound`. SERVER may \
also be a name of the file `servers.toml`, whose `default` is used if nothing else names a server.

On a terminal, records are a table if their values fit its width, and otherwise one line for each value; control characters in values are \
escaped. Headings and changes are in colour, unless `NO_COLOR` is set. Output that is longer than the screen goes through the command in `PAGER`, by \
default `less`. Pipes and files get the layout of the reference, without colours.";

const SHELL: &str = "\
Without COMMAND, `{program}` reads commands, a chain on each line: from a terminal with history, completion and hints, else from standard \
input. A line that ends in a backslash or within quotes is continued. Besides the commands above there are `begin`, `commit` and `abort`, which \
collect the changes of several lines in one transaction, `use DATABASE`, `connect SERVER`, `help [COMMAND]` and `quit`. Ctrl-C cancels a running \
command. Lines of standard input are all executed; the exit status is that of the last one that failed.";

const EXAMPLES: &str = "\
Print two columns of the bridges of this host, and change one of them:

    corvid --columns=name,datapath_type list Bridge
    corvid set Bridge br0 external_ids:owner=me fail_mode=secure

Create two rows that belong together, in one transaction:

    corvid tcp:192.0.2.1:6641 --database=OVN_Northbound \\
        -- --id=@p create Logical_Switch_Port name=p1 \\
        -- create Logical_Switch name=sw1 ports=@p

Wait until a port is up:

    corvid --timeout=10 wait-until Logical_Switch_Port p1 up=true";
