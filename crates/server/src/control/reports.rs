//! ReportRequests that every database answers for itself: how much memory what takes (`memory/show`), and which tables are logged
//! (`ovsdb-server/tlog-list`). An answer goes out when the last report is in.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use corvid_service::message::Report;
use corvid_shell::memory::Usage;

use crate::server::Server;

/// Reports by name of the database.
pub(crate) type Reports = BTreeMap<String, Report>;

/// What to do with them.
type Finish = Box<dyn FnOnce(&mut Server, Reports)>;

/// ReportRequests that are under way.
#[derive(Default)]
pub(crate) struct ReportRequests {
    last: u64,
    /// By number of the question.
    open: HashMap<u64, ReportRequest>,
    /// ReportRequest and database of each report that is awaited, by its token.
    awaited: HashMap<u64, (u64, String)>,
}

struct ReportRequest {
    left: usize,
    reports: Reports,
    finish: Finish,
}

impl ReportRequests {
    /// Notes a question to these databases; returns the token of each.
    pub(crate) fn ask(
        &mut self,
        databases: impl Iterator<Item = String>,
        finish: impl FnOnce(&mut Server, Reports) + 'static,
    ) -> Vec<(String, u64)> {
        self.last += 1;
        let number = self.last;
        let mut asked = Vec::new();
        for database in databases {
            self.last += 1;
            self.awaited.insert(self.last, (number, database.clone()));
            asked.push((database, self.last));
        }
        let question = ReportRequest {
            left: asked.len(),
            reports: Reports::new(),
            finish: Box::new(finish),
        };
        self.open.insert(number, question);
        asked
    }

    /// Takes a report; the last one of a question yields what to do with all.
    pub(crate) fn answered(&mut self, token: u64, report: Report) -> Option<(Finish, Reports)> {
        let (number, database) = self.awaited.remove(&token)?;
        let question = self.open.get_mut(&number)?;
        question.reports.insert(database, report);
        question.left -= 1;
        if question.left > 0 {
            return None;
        }
        let question = self.open.remove(&number)?;
        Some((question.finish, question.reports))
    }
}

/// The counts of `memory/show` (docs/spec/cli.md 2.4): zeros are left out but for two.
#[must_use]
pub(crate) fn usage(reports: &Reports, sessions: usize) -> Usage {
    let sum = |count: fn(&corvid_service::message::Usage) -> u64| {
        reports.values().map(|report| count(&report.usage)).sum()
    };
    let counts: [(&str, u64); 8] = [
        ("atoms", sum(|usage| usage.atoms)),
        ("cells", sum(|usage| usage.cells)),
        ("monitors", sum(|usage| usage.monitors)),
        ("n-weak-refs", sum(|usage| usage.weak_references)),
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

/// Reads the arguments of `ovsdb-server/tlog-set`: database, table, and whether its rows are to be logged.
///
/// # Errors
/// The reference's texts.
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
    // Colons only separate: there are two names between them, or the argument is invalid.
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
    fn zeros_are_left_out_but_for_two() {
        let mut report = Report::default();
        report.usage.atoms = 35;
        report.usage.cells = 44;
        let reports = Reports::from([("a".to_owned(), report.clone()), ("b".to_owned(), report)]);
        let shown = corvid_shell::memory::show(usage(&reports, 1));
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
