//! Chapters that the manuals of several programs share, about what this crate does for all of them.

use super::Chapter;

/// The methods for connections that a program opens.
#[must_use]
pub fn active_methods(title: &'static str) -> Chapter {
    Chapter::list(
        title,
        &[
            ("tcp:HOST:PORT", "PORT at remote HOST"),
            ("ssl:HOST:PORT", "SSL/TLS PORT at remote HOST"),
            ("unix:FILE", "Unix domain socket named FILE"),
        ],
    )
}

/// The methods for sockets on which a program listens.
#[must_use]
pub fn passive_methods(title: &'static str) -> Chapter {
    Chapter::list(
        title,
        &[
            ("ptcp:[PORT][:IP]", "listen to TCP PORT on IP"),
            ("pssl:[PORT][:IP]", "listen for SSL/TLS on PORT on IP"),
            ("punix:FILE", "listen on Unix domain socket FILE"),
        ],
    )
}

/// The environment variables of every program.
#[must_use]
pub fn environment() -> Chapter {
    Chapter::list(
        "ENVIRONMENT",
        &[
            (
                "OVS_RUNDIR",
                "directory of sockets and pidfiles, and base of their relative names (default: {rundir})",
            ),
            ("OVS_LOGDIR", "directory of log files (default: {logdir})"),
            ("OVS_DBDIR", "directory of databases (default: {dbdir})"),
            (
                "OVS_SYSCONFDIR",
                "without `OVS_DBDIR`, databases are in its subdirectory openvswitch",
            ),
            (
                "OVS_PKGDATADIR",
                "directory of schemas (default: {pkgdatadir})",
            ),
            ("OVS_SYSLOG_METHOD", "the default of `--syslog-method`"),
            (
                "OVS_CTL_TIMEOUT",
                "default of `--timeout` for tools, in seconds",
            ),
            (
                "POSIXLY_CORRECT",
                "if set, options end at the first non-option argument",
            ),
        ],
    )
}

/// How command lines are parsed.
pub const COMMAND_LINES: &str = "\
Long options may be abbreviated if the abbreviation is unambiguous. An optional argument must be attached with `=`. Options
take effect from left to right.";
