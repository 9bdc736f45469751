//! The head of the page: what the server is, and whether it is well.

use corvid::SessionState;
use corvid::json::Value;
use corvid_net::clock;
use corvid_shell::date::utc_text;
use corvid_tools::status::document;

use super::list::{grouped, text};
use super::members::{Cluster, short};
use super::metric::Metric;
use crate::pages::grid::{bytes, duration};
use crate::pages::model;
use crate::status::Status;

/// A fact.
#[derive(Default)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) text: String,
    /// The exact value, or more about it.
    pub(super) title: String,
    /// A second line.
    pub(super) more: String,
    pub(super) class: &'static str,
    pub(super) metric: Metric,
}

/// The facts about the server of a database.
pub(super) fn facts(
    session: &SessionState,
    status: Option<&Status>,
    served: Option<&Value>,
    cluster: Option<&Cluster<'_>>,
) -> Vec<Fact> {
    let metrics = status.and_then(Status::metrics);
    let metric = |name| Metric::new(name, metrics.as_deref());
    let document = status.map(|status| &*status.document);
    let number = |path: &str| document.and_then(|it| document::number(it, path));
    let mut facts = vec![Fact {
        name: "Model",
        text: model::words(session),
        more: session.remote.clone().unwrap_or_default(),
        title: "the server that this console reads from".to_owned(),
        ..Fact::default()
    }];
    facts.extend(cluster.map(leader));
    facts.extend(health(document, served).map(|fact| Fact {
        metric: metric("corvid_ready"),
        ..fact
    }));
    if let Some(program) = document.and_then(|it| text(it, "server.program")) {
        let as_reference = document.and_then(|it| text(it, "server.ovsdb_version"));
        facts.push(Fact {
            name: "Version",
            text: program.to_owned(),
            more: as_reference
                .map(|version| format!("speaks as {version}"))
                .unwrap_or_default(),
            metric: metric("corvid_build_info"),
            ..Fact::default()
        });
    }
    if let Some(started_ms) = number("server.started_ms") {
        let now_ms = number("time_ms").unwrap_or_else(clock::wall_ms);
        facts.push(Fact {
            name: "Up for",
            text: duration(
                now_ms
                    .saturating_sub(started_ms)
                    .max(0)
                    .saturating_mul(1000),
            ),
            title: format!("since {} UTC", utc_text(started_ms)),
            more: match number("server.pid") {
                Some(pid) => format!("process {pid}"),
                None => String::new(),
            },
            metric: metric("process_start_time_seconds"),
            ..Fact::default()
        });
    }
    facts.extend(served.and_then(file).map(|fact| Fact {
        metric: metric("corvid_database_file_bytes"),
        ..fact
    }));
    if let (Some(open), Some(limit)) = (
        number("server.descriptors"),
        number("server.descriptors_max"),
    ) {
        let is_near = open.saturating_mul(10) > limit.saturating_mul(8);
        facts.push(Fact {
            name: "Descriptors",
            text: format!("{} of {}", grouped(open), grouped(limit)),
            more: match number("server.threads") {
                Some(threads) => format!("{threads} threads"),
                None => String::new(),
            },
            class: if is_near { "bad" } else { "" },
            metric: metric("process_open_fds"),
            ..Fact::default()
        });
    }
    facts
}

fn leader(cluster: &Cluster<'_>) -> Fact {
    match cluster.leader_id() {
        Some(id) => Fact {
            name: "Leader",
            text: short(id).to_owned(),
            title: id.to_owned(),
            more: cluster.address(id).unwrap_or_default().to_owned(),
            ..Fact::default()
        },
        None => Fact {
            name: "Leader",
            text: "none".to_owned(),
            more: "no writes until one is elected".to_owned(),
            class: "bad",
            ..Fact::default()
        },
    }
}

/// Whether clients should be sent to the server, and why not.
fn health(document: Option<&Value>, served: Option<&Value>) -> Option<Fact> {
    let document = document?;
    let is_ready = document::flag(document, "server.ready")?;
    let mut troubles: Vec<String> = Vec::new();
    for fault in document::list(document, "server.faults").unwrap_or_default() {
        let parts = [text(fault, "check"), text(fault, "why")];
        troubles.push(parts.into_iter().flatten().collect::<Vec<_>>().join(": "));
    }
    for thread in document::list(document, "unanswered").unwrap_or_default() {
        troubles.extend(
            thread
                .as_str()
                .map(|thread| format!("{thread} does not answer")),
        );
    }
    if served.and_then(|it| document::flag(it, "storage.failed")) == Some(true) {
        let why = served.and_then(|it| text(it, "storage.error"));
        let why = why.unwrap_or("check the disk");
        troubles.push(format!("the last commit could not be stored: {why}"));
    }
    if served.and_then(|it| document::flag(it, "has_contents")) == Some(false) {
        troubles.push("the database has no contents yet".to_owned());
    }
    let is_well = is_ready && troubles.is_empty();
    Some(Fact {
        name: "Health",
        text: match (is_ready, is_well) {
            (_, true) => "ready",
            (true, false) => "ready, with trouble",
            (false, _) => "not ready",
        }
        .to_owned(),
        more: troubles.join("; "),
        class: if is_well { "good" } else { "bad" },
        ..Fact::default()
    })
}

fn records_of(count: i64) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} record{ending}", grouped(count))
}

fn file(served: &Value) -> Option<Fact> {
    let size = document::number(served, "storage.bytes")
        .or_else(|| document::number(served, "local_file_bytes"))?;
    let compacted = document::number(served, "storage.compacted_bytes");
    let records = document::number(served, "storage.records");
    Some(Fact {
        name: "File",
        text: bytes(size),
        title: match text(served, "file") {
            Some(file) => format!("{file}: {} bytes", grouped(size)),
            None => format!("{} bytes", grouped(size)),
        },
        more: match (compacted, records) {
            (Some(0) | None, Some(records)) => records_of(records),
            (Some(compacted), Some(records)) => format!(
                "{} compacted, {} since",
                bytes(compacted),
                records_of(records)
            ),
            _ => String::new(),
        },
        ..Fact::default()
    })
}
