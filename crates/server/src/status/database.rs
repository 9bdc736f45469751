//! The status of one database.

use std::fmt::Write;

use corvid_json::Value;
use corvid_json::shown::Shown;
use corvid_service::message::{FileReport, Report, SlowTransaction, TableReport};

use super::{MemberStatus, count, counted, list, object};
use crate::metrics::relay::RelayStage;

/// One database, as far as the main thread knows it.
pub(crate) struct DatabaseStatus {
    /// The database's name.
    pub(crate) name: String,
    /// `standalone`, `clustered`, `relay`, `backup`, or `memory` for `_Server`.
    pub(crate) model: &'static str,
    /// The database's file; `None`: it has none.
    pub(crate) file: Option<String>,
    /// Whether it has contents; if not, its server joins a cluster, its file is damaged, or its
    /// relay has not reached its source.
    pub(crate) has_contents: bool,
    /// The report of the database's thread; `None`: it has no contents, or has not answered.
    pub(crate) report: Option<Report>,
    /// The member of the database's cluster.
    pub(crate) member: Option<MemberStatus>,
    /// The relay.
    pub(crate) relay: Option<RelayStatus>,
    /// The source of a backup.
    pub(crate) source: Option<String>,
}

/// The status of a relay.
pub(crate) struct RelayStatus {
    /// The servers that the relay may connect to, separated by commas.
    pub(crate) source: String,
    /// Whether it has contents and a connection.
    pub(crate) stage: RelayStage,
    /// Time since that last changed, ms.
    pub(crate) stage_ms: u64,
    /// Requests that wait for a connection.
    pub(crate) waiting: u64,
    /// Requests that the source has not answered.
    pub(crate) sent: u64,
    /// Changes received from the source.
    pub(crate) changes: u64,
    /// Bytes received from the source.
    pub(crate) received_bytes: u64,
    /// Bytes of changes that the database has not applied.
    pub(crate) unapplied_bytes: u64,
    /// Connections that were established.
    pub(crate) connects: u64,
}

impl DatabaseStatus {
    /// A database of which nothing else is known.
    #[cfg(test)]
    pub(super) fn empty(name: &str, model: &'static str) -> DatabaseStatus {
        DatabaseStatus {
            name: name.to_owned(),
            model,
            file: None,
            has_contents: true,
            report: None,
            member: None,
            relay: None,
            source: None,
        }
    }

    pub(super) fn json(&self) -> Value {
        let text = |text: &Option<String>| text.as_ref().map_or(Value::Null, Value::string);
        let mut members = vec![
            ("name", Value::string(&self.name)),
            ("model", Value::string(self.model)),
            ("file", text(&self.file)),
            ("has_contents", Value::Bool(self.has_contents)),
        ];
        if let Some(report) = &self.report {
            members.extend(of_report(report));
            let file = report.file.as_ref();
            members.extend(file.map(|file| ("storage", of_file(file))));
        }
        if let Some(member) = &self.member {
            members.push(("cluster", member.json()));
        }
        if let Some(relay) = &self.relay {
            members.push(("relay", relay.json()));
        }
        if let Some(report) = self.report.as_ref()
            && let Some(standing) = report.replication
        {
            let replication = [
                ("source", text(&self.source)),
                ("state", Value::string(standing.name())),
            ];
            members.push(("replication", object(replication)));
        }
        object(members)
    }

    /// The database on one line.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{}: {}", Shown(&self.name), self.model);
        if let Some(member) = &self.member {
            let _ = write!(line, ", {}", member.words());
        }
        if let Some(relay) = &self.relay {
            let _ = write!(line, ", {} {}", relay.words(), Shown(&relay.source));
        }
        if let Some(report) = &self.report {
            let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
            let tables = counted(report.tables.len() as u64, "table");
            let monitors = counted(report.usage.monitors, "monitor");
            let _ = write!(line, ", {} in {tables}, {monitors}", counted(rows, "row"));
            if let Some(file) = &report.file {
                let _ = write!(line, ", file of {}", counted(file.size, "byte"));
            }
        }
        line
    }
}

fn of_report(report: &Report) -> [(&'static str, Value); 9] {
    let (usage, counts) = (&report.usage, &report.counts);
    let table = |table: &TableReport| {
        object([
            ("name", Value::string(&table.name)),
            ("rows", count(table.rows)),
            ("logged", Value::Bool(table.is_logged)),
        ])
    };
    let failed: u64 = counts.failed.iter().map(|(_, count)| count).sum();
    [
        ("tables", list(report.tables.iter().map(table))),
        ("atoms", count(usage.atoms)),
        ("monitors", count(usage.monitors)),
        ("blocked_transactions", count(usage.triggers)),
        (
            "transactions",
            object([
                ("committed", count(counts.committed)),
                ("unchanged", count(counts.unchanged)),
                ("failed", count(failed)),
                ("blocked", count(counts.blocked)),
            ]),
        ),
        (
            "history",
            object([
                ("commits", count(usage.history_commits)),
                ("atoms", count(usage.history_atoms)),
            ]),
        ),
        (
            "queue",
            object([
                ("requests", count(report.queued)),
                ("replies", count(report.pending)),
            ]),
        ),
        ("converting", Value::Bool(report.is_converting)),
        (
            "slow_transactions",
            list(report.slow_transactions.iter().map(of_slow)),
        ),
    ]
}

fn of_slow(slow: &SlowTransaction) -> Value {
    object([
        ("time_ms", Value::Integer(slow.time_ms)),
        ("duration_ms", count(slow.duration_ms)),
        ("client", Value::string(&slow.client)),
        ("operations", Value::string(&slow.operations)),
        ("comment", Value::string(&slow.comment)),
    ])
}

fn of_file(file: &FileReport) -> Value {
    object([
        ("bytes", count(file.size)),
        ("compacted_bytes", count(file.base)),
        ("records", count(file.records)),
        ("failed", Value::Bool(file.error.is_some())),
        (
            "error",
            file.error.as_ref().map_or(Value::Null, Value::string),
        ),
        ("compacting", Value::Bool(file.is_rewriting)),
    ])
}

impl RelayStatus {
    fn json(&self) -> Value {
        let stage = match self.stage {
            RelayStage::Empty => "connecting",
            RelayStage::Connected => "connected",
            RelayStage::Lost => "disconnected",
        };
        object([
            ("source", Value::string(&self.source)),
            ("state", Value::string(stage)),
            ("state_age_ms", count(self.stage_ms)),
            ("waiting_requests", count(self.waiting)),
            ("sent_requests", count(self.sent)),
            ("changes", count(self.changes)),
            ("received_bytes", count(self.received_bytes)),
            ("unapplied_bytes", count(self.unapplied_bytes)),
            ("connects", count(self.connects)),
        ])
    }

    fn words(&self) -> &'static str {
        match self.stage {
            RelayStage::Empty => "not yet connected to",
            RelayStage::Connected => "connected to",
            RelayStage::Lost => "disconnected from",
        }
    }
}
