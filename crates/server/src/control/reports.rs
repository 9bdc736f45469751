//! Commands that need a report from every database: memory usage (`memory/show`), and the tables
//! whose changes are logged (`ovsdb-server/tlog-list`). A command is answered when the last report
//! has arrived.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use corvid_log::storage::StoreError;
use corvid_service::message::Report;
use corvid_shell::memory::Usage;

use crate::metrics::relay::RelayFigures;
use crate::server::Server;

/// The reports, by database name.
pub(crate) type Reports = BTreeMap<String, Report>;

/// Receives all reports.
type Finish = Box<dyn FnOnce(&mut Server, Reports)>;

/// A request to several databases that have not all reported yet. Every clone is the same request.
#[derive(Clone)]
pub(crate) struct Gathering(Rc<RefCell<Gathered>>);

struct Gathered {
    left: usize,
    reports: Reports,
    /// Taken by the last report.
    finish: Option<Finish>,
}

impl Gathering {
    /// Begins a request to this number of databases.
    pub(crate) fn begin(
        databases: usize,
        finish: impl FnOnce(&mut Server, Reports) + 'static,
    ) -> Gathering {
        Gathering(Rc::new(RefCell::new(Gathered {
            left: databases,
            reports: Reports::new(),
            finish: Some(Box::new(finish)),
        })))
    }

    /// Adds a report. The last one returns the continuation and all reports.
    pub(crate) fn add(&self, database: String, report: Report) -> Option<(Finish, Reports)> {
        let mut gathered = self.0.borrow_mut();
        gathered.reports.insert(database, report);
        gathered.left -= 1;
        let finish = (gathered.left == 0)
            .then(|| gathered.finish.take())
            .flatten()?;
        Some((finish, std::mem::take(&mut gathered.reports)))
    }
}

/// The text of `ovsdb-server/get-db-storage-status`. Scripts compare the first line, so a warning
/// about the file's name goes on a second line.
#[must_use]
pub(crate) fn storage_status(error: Option<&StoreError>, warning: Option<&str>) -> String {
    let status = error.map_or("ok".to_owned(), |error| error.to_wire().to_string());
    let warning = warning.map_or_else(String::new, |words| format!("warning: {words}\n"));
    format!("status: {status}\n{warning}")
}

/// Counts over all members of clusters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterUsage {
    /// Unsent bytes of connections to peers.
    pub(crate) backlog_bytes: u64,
    /// Open connections to and from peers.
    pub(crate) connections: u64,
    /// Log entries in memory.
    pub(crate) log: u64,
}

/// Counts over all relays.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayUsage {
    /// Requests that wait for disconnected sources.
    pub(crate) waiting: u64,
    /// Requests sent to sources and not answered yet.
    pub(crate) sent: u64,
}

impl RelayUsage {
    /// Adds the counts of one relay.
    pub(crate) fn add(&mut self, figures: &RelayFigures) {
        self.waiting += figures.waiting.load(Ordering::Relaxed);
        self.sent += figures.sent.load(Ordering::Relaxed);
    }
}

/// The counts of `memory/show` (docs/spec/cli.md 2.4). Zeros are left out, except for two counts.
#[must_use]
pub(crate) fn usage(
    reports: &Reports,
    sessions: usize,
    clusters: &ClusterUsage,
    relays: &RelayUsage,
) -> Usage {
    let sum = |count: fn(&corvid_service::message::Usage) -> u64| {
        reports.values().map(|report| count(&report.usage)).sum()
    };
    let counts: [(&str, u64); 13] = [
        ("atoms", sum(|usage| usage.atoms)),
        ("cells", sum(|usage| usage.cells)),
        ("monitors", sum(|usage| usage.monitors)),
        ("n-weak-refs", sum(|usage| usage.weak_references)),
        ("raft-backlog-kB", clusters.backlog_bytes / 1024),
        ("raft-connections", clusters.connections),
        ("raft-log", clusters.log),
        ("relay-requests-sent", relays.sent),
        ("relay-requests-waiting", relays.waiting),
        ("sessions", sessions as u64),
        ("triggers", sum(|usage| usage.triggers)),
        ("txn-history", sum(|usage| usage.history_commits)),
        ("txn-history-atoms", sum(|usage| usage.history_atoms)),
    ];
    let is_shown =
        |(name, count): &(&str, u64)| *count > 0 || matches!(*name, "monitors" | "n-weak-refs");
    let shown = counts.into_iter().filter(is_shown);
    shown
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// The text of `ovsdb-server/tlog-list`.
#[must_use]
pub(crate) fn row_logs(reports: &Reports) -> String {
    let mut out = "database        table                       logging\n\
                   --------        -----                       -------\n"
        .to_owned();
    for (database, report) in reports {
        let _ = writeln!(out, "{database:<16} ");
        for table in &report.tables {
            let (name, state) = (&table.name, if table.is_logged { "ON" } else { "OFF" });
            let _ = writeln!(out, "{:16}{name:<27} {state}", "");
        }
    }
    out
}

/// Parses the arguments of `ovsdb-server/tlog-set`. Returns the database, the table, and whether
/// the table's rows are to be logged.
///
/// # Errors
/// An argument is invalid; the error is the reference's text.
pub(crate) fn row_log_of<'a>(
    table: &'a str,
    state: &str,
) -> Result<(&'a str, &'a str, bool), &'static str> {
    let is_logged = if state.eq_ignore_ascii_case("on") {
        true
    } else if state.eq_ignore_ascii_case("off") {
        false
    } else {
        return Err("invalid command argument");
    };
    // Empty names do not count: exactly two names must remain between the colons.
    let mut names = table.split(':').filter(|name| !name.is_empty());
    match (names.next(), names.next(), names.next()) {
        (Some(database), Some(table), None) => Ok((database, table, is_logged)),
        _ => Err("invalid DB:TABLE argument"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_service::message::TableReport;

    #[test]
    fn tables_are_listed_under_their_database() {
        let report = |tables: &[(&str, bool)]| Report {
            tables: tables
                .iter()
                .map(|(name, is_logged)| TableReport {
                    name: (*name).to_owned(),
                    is_logged: *is_logged,
                    rows: 0,
                })
                .collect(),
            ..Report::default()
        };
        let reports = Reports::from([
            ("_Server".to_owned(), report(&[("Database", false)])),
            ("mydb".to_owned(), report(&[("T", true)])),
        ]);
        let listed = [
            "database        table                       logging",
            "--------        -----                       -------",
            "_Server          ",
            "                Database                    OFF",
            "mydb             ",
            "                T                           ON",
            "",
        ];
        assert_eq!(row_logs(&reports), listed.join("\n"));
    }

    #[test]
    fn only_two_zero_counts_are_shown() {
        let mut report = Report::default();
        report.usage.atoms = 35;
        report.usage.cells = 44;
        let reports = Reports::from([("a".to_owned(), report.clone()), ("b".to_owned(), report)]);
        let shown = corvid_shell::memory::show(usage(
            &reports,
            1,
            &ClusterUsage::default(),
            &RelayUsage::default(),
        ));
        assert_eq!(
            shown,
            "atoms:70 cells:88 monitors:0 n-weak-refs:0 sessions:1\n"
        );
    }

    #[test]
    fn arguments_are_checked_in_the_order_of_the_reference() {
        assert_eq!(row_log_of("x", "maybe"), Err("invalid command argument"));
        assert_eq!(row_log_of("x", "on"), Err("invalid DB:TABLE argument"));
        assert_eq!(row_log_of("a:b", "OFF"), Ok(("a", "b", false)));
        for invalid in ["a:b:c", "a:", ":b"] {
            assert_eq!(row_log_of(invalid, "on"), Err("invalid DB:TABLE argument"));
        }
    }
}
