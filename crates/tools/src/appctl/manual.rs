//! The manual of `ovs-appctl`: the source of `--help`, the manual page and completions.
//!
//! Options come from the table in [`crate::appctl::options`]. Commands belong to the daemon; those
//! that every daemon has are listed here.

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
                (
                    "vlog/reopen",
                    "reopen the log file by name, after it was renamed",
                ),
                (
                    "vlog/close",
                    "close the log file; `vlog/reopen` opens it again",
                ),
                ("memory/show", "print memory usage of the target"),
                ("coverage/show", "print counts and rates of events"),
                (
                    "coverage/read-counter COUNTER",
                    "print one of these counters",
                ),
            ],
        )],
        description: DESCRIPTION,
        chapters: vec![
            Chapter::prose("TARGETS", TARGETS),
            Chapter::list("LOG LEVELS", LEVELS).with_text(LOGGING),
            Chapter::list("LOG PATTERNS", ESCAPES).with_text(PATTERNS),
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
`{program}` sends one command to a running daemon over its control socket and prints the reply. Options end at the first non-option word.
That word and all words after it are sent to the daemon unchanged. The manual of `ovsdb-server`(1) lists that daemon's commands.";

const TARGETS: &str = "\
A TARGET that begins with `/` is the control socket of a daemon. Each daemon opens one named PROGRAM.PID.ctl in {rundir}, unless its option \
`--unixctl` names another.

Any other TARGET is the name of a daemon that was started with `--pidfile`: its process id is in {rundir}/TARGET.pid, and its socket is \
{rundir}/TARGET.PID.ctl. A stale pidfile is not used. The default TARGET is ovs-vswitchd.

A command has no time limit unless `--timeout` sets one: a daemon that is stopped or busy answers late or never. The program is then ended by \
SIGALRM, and the daemon may execute the command all the same. `--version` and `--help` are about this program; `version` and `list-commands` ask \
the daemon.";

const LOGGING: &str = "\
`vlog/set SPEC` changes what a daemon logs, without a restart and until its end. SPEC consists of words between colons, commas or spaces: at most \
one module, as `vlog/list` shows them, one destination (`syslog`, `console`, `file`) and one level. A missing module or destination means all of \
them, a missing level means `dbg`. Case does not count. Nothing goes to a file unless the daemon was started with `--log-file`. Messages of the \
level and of more severe ones are logged:";

const LEVELS: &[(&str, &str)] = &[
    ("off", "nothing: switches a destination off"),
    ("emer", "the process cannot continue"),
    (
        "err",
        "something that a user relies on has failed, and needs attention",
    ),
    (
        "warn",
        "something has failed that may recover or be handled elsewhere",
    ),
    ("info", "useful when a problem is investigated later"),
    (
        "dbg",
        "for developers, and far too verbose for production; off by default",
    ),
];

const PATTERNS: &str = "\
`vlog/set PATTERN:DESTINATION:PATTERN` sets the form of the lines of a destination, and `vlog/set FACILITY:NAME` the facility of messages to the \
system log. `vlog/list-pattern` prints both. In a pattern, characters stand for themselves, but for these. Between `%` and the letter there may \
be `-` (align to the left), `0` (fill with zeros) and a width, in this order.";

const ESCAPES: &[(&str, &str)] = &[
    ("%A", "name of the program"),
    (
        "%B",
        "priority of RFC 5424: facility and severity as a number",
    ),
    ("%c", "module"),
    (
        "%d, %d{FORMAT}",
        "local date and time: YYYY-MM-DD HH:MM:SS, or in a FORMAT of strftime(3), where # is a digit of the fraction of a second",
    ),
    ("%D, %D{FORMAT}", "the same in UTC"),
    ("%E", "name of the host"),
    ("%m", "message"),
    ("%n", "end of a line"),
    (
        "%N",
        "number of the message since the start of the program, from 1",
    ),
    ("%p", "level"),
    ("%P", "process id"),
    ("%r", "milliseconds since the start of the program"),
    (
        "%t",
        "process or thread within the program: `main`, `monitor` for a supervisor, or another name",
    ),
    ("%T", "the same in parentheses, and nothing for `main`"),
    ("%%", "a percent sign"),
];

const EXAMPLES: &str = "\
List the commands of the database server of this host, and compact its databases:

    ovs-appctl -t ovsdb-server list-commands
    ovs-appctl -t ovsdb-server ovsdb-server/compact

Address the server of OVN's northbound database by its socket:

    ovs-appctl -t /var/run/ovn/ovnnb_db.ctl memory/show";
