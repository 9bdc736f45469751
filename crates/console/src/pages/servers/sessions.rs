//! Sessions with their cost, slow transactions, locks, and jobs with their progress.

use std::cmp::Reverse;

use corvid::json::Value;
use corvid_shell::date::utc_text;
use corvid_tools::status::document;

use super::list::{Cell, Head, List, Row, grouped, text};
use crate::pages::grid::{bytes, duration};

/// The number of rows of a table.
const ROWS_MAX: usize = 200;

/// The number of waiting sessions that a lock names.
const WAITING_MAX: usize = 8;

/// The sessions, the most expensive first. `closing` is the address of the page that closes one.
pub(super) fn sessions(status: &Value, metrics: Option<&str>, closing: Option<&str>) -> List {
    let Some(sessions) = document::list(status, "sessions") else {
        let count = document::number(status, "server.session_count");
        return List {
            id: "sessions",
            title: "Sessions",
            summary: match count {
                Some(count) => format!("Sessions: {count}. The server tells no more about them"),
                None => "The server has not told its sessions".to_owned(),
            },
            ..List::default()
        };
    };
    let mut sorted: Vec<&Value> = sessions.iter().collect();
    sorted.sort_by_key(|session| Reverse(document::number(session, "cost.cpu_us")));
    let sum = |path: &str| -> i64 {
        let of_session = |session| document::number(session, path).unwrap_or(0);
        sessions.iter().map(of_session).sum()
    };
    let mut heads = vec![
        Head::text("Client"),
        Head::text("Role"),
        Head::number("CPU").measured("process_cpu_seconds_total", metrics),
        Head::number("Requests").measured("corvid_request_parse_seconds", metrics),
        Head::number("Received").measured("corvid_session_received_bytes_total", metrics),
        Head::number("Sent").measured("corvid_session_sent_bytes_total", metrics),
        Head::number("Backlog").measured("corvid_session_backlog_bytes", metrics),
        Head::number("Monitors").measured("corvid_database_monitors", metrics),
        Head::text("Last request"),
        Head::number("Open for"),
    ];
    if closing.is_some() {
        heads.push(Head::text("Action"));
    }
    List {
        id: "sessions",
        title: "Sessions",
        summary: format!(
            "{}; all together {} of CPU, {} unread",
            match sessions.len() {
                1 => "1 session".to_owned(),
                count => format!(
                    "{} sessions",
                    grouped(i64::try_from(count).unwrap_or(i64::MAX))
                ),
            },
            duration(sum("cost.cpu_us")),
            bytes(sum("backlog_bytes"))
        ),
        heads,
        rows: sorted
            .iter()
            .take(ROWS_MAX)
            .map(|session| row(session, closing))
            .collect(),
        more: sorted.len().saturating_sub(ROWS_MAX),
    }
}

fn row(session: &Value, closing: Option<&str>) -> Row {
    let number = |path: &str| document::number(session, path);
    let id = text(session, "id").unwrap_or_default();
    let backlog = number("backlog_bytes");
    let mut requests = Cell::number(number("cost.requests"));
    if let Some(waiting) = number("requests").filter(|waiting| *waiting > 0) {
        requests.more = format!("{waiting} unanswered");
    }
    let mut monitors = Cell::number(number("monitors"));
    if let Some(updates) = number("cost.updates") {
        monitors.title = format!("{} updates sent", grouped(updates));
    }
    let mut cells = vec![
        Cell {
            title: format!("session {id} at {}", text(session, "remote").unwrap_or("?")),
            more: program(session).unwrap_or_default(),
            ..Cell::of(text(session, "peer")).mono()
        },
        Cell {
            more: match document::flag(session, "read_only") {
                Some(true) => "read-only".to_owned(),
                _ => String::new(),
            },
            ..Cell::of(text(session, "role"))
        },
        Cell::micros(number("cost.cpu_us")),
        requests,
        Cell::bytes(number("received_bytes")),
        Cell::bytes(number("sent_bytes")),
        Cell {
            class: match backlog {
                Some(1..) => "right warn",
                _ => "right",
            },
            ..Cell::bytes(backlog)
        },
        monitors,
        Cell {
            more: number("last_request_age_ms")
                .map(|age_ms| format!("{} ago", duration(age_ms.saturating_mul(1000))))
                .unwrap_or_default(),
            ..Cell::of(text(session, "last_request"))
        },
        Cell::millis(number("age_ms")),
    ];
    if let Some(closing) = closing {
        cells.push(Cell {
            text: "Close".to_owned(),
            href: format!("{closing}&id={}", encoded(id)),
            ..Cell::default()
        });
    }
    Row { class: "", cells }
}

/// A value in the query of an address.
pub(super) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The program of a session with its process, or the name of its certificate.
pub(super) fn program(session: &Value) -> Option<String> {
    let pid = document::number(session, "pid");
    let program = match (text(session, "program"), pid) {
        (Some(program), Some(pid)) => Some(format!("{program} ({pid})")),
        (program, _) => program.map(str::to_owned),
    };
    program.or_else(|| text(session, "client").map(str::to_owned))
}

/// The latest transactions that took long, the longest first.
pub(super) fn slow(database: &Value, metrics: Option<&str>) -> Option<List> {
    let list = document::list(database, "slow_transactions")?;
    let mut sorted: Vec<&Value> = list.iter().collect();
    sorted.sort_by_key(|one| Reverse(document::number(one, "duration_ms")));
    let row = |one: &&Value| Row {
        class: "",
        cells: vec![
            Cell::millis(document::number(one, "duration_ms")),
            match document::number(one, "time_ms") {
                Some(time_ms) => Cell::text(&utc_text(time_ms)),
                None => Cell::unknown(),
            },
            Cell::of(text(one, "client")).mono(),
            Cell::of(text(one, "operations")),
            Cell::of(text(one, "comment")),
        ],
    };
    (!sorted.is_empty()).then(|| List {
        id: "slow",
        title: "Slow transactions",
        summary: String::new(),
        heads: vec![
            Head::number("Took").measured("corvid_database_transaction_seconds", metrics),
            Head::text("Answered (UTC)"),
            Head::text("Client"),
            Head::text("Operations"),
            Head::text("Comment"),
        ],
        rows: sorted.iter().take(ROWS_MAX).map(row).collect(),
        more: sorted.len().saturating_sub(ROWS_MAX),
    })
}

/// The locks with their owners and those that wait.
pub(super) fn locks(status: &Value, metrics: Option<&str>) -> Option<List> {
    let list = document::list(status, "locks")?;
    let waiting = |lock: &Value| document::list(lock, "waiting").unwrap_or_default().len();
    let mut sorted: Vec<&Value> = list.iter().collect();
    sorted.sort_by_key(|lock| Reverse(waiting(lock)));
    let row = |lock: &&Value| {
        let queue = document::list(lock, "waiting").unwrap_or_default();
        let names = queue.iter().filter_map(Value::as_str);
        let names: Vec<&str> = names.take(WAITING_MAX).collect();
        let more = queue.len().saturating_sub(names.len());
        Row {
            class: "",
            cells: vec![
                Cell::of(text(lock, "name")),
                match text(lock, "owner") {
                    Some(owner) => Cell::text(owner).mono(),
                    None => Cell::text("not granted by the source yet"),
                },
                Cell {
                    more: match more {
                        0 => String::new(),
                        more => format!("and {more} more"),
                    },
                    ..Cell::of(Some(&names.join(", "))).mono()
                },
            ],
        }
    };
    (!sorted.is_empty()).then(|| List {
        id: "locks",
        title: "Locks",
        summary: String::new(),
        heads: vec![
            Head::text("Lock").measured("corvid_locks_held", metrics),
            Head::text("Owner"),
            Head::text("Queue").measured("corvid_lock_waiters", metrics),
        ],
        rows: sorted.iter().take(ROWS_MAX).map(row).collect(),
        more: sorted.len().saturating_sub(ROWS_MAX),
    })
}

/// Compactions, conversions, backups and other long jobs.
pub(super) fn jobs(status: &Value, metrics: Option<&str>) -> Option<List> {
    let list = document::list(status, "jobs")?;
    let row = |job: &Value| {
        let (done, total) = (
            document::number(job, "done"),
            document::number(job, "total"),
        );
        let amount = |number: i64| match text(job, "unit") {
            Some("bytes") => bytes(number),
            unit => format!("{} {}", grouped(number), unit.unwrap_or_default()),
        };
        let progress = match (done, total) {
            (Some(done), Some(total)) => Cell {
                text: format!(
                    "{} %",
                    (done.max(0).saturating_mul(100) / total.max(1)).min(100)
                ),
                more: format!("{} of {}", amount(done), amount(total)),
                progress: Some((done.clamp(0, total.max(0)), total.max(1))),
                ..Cell::default()
            },
            (Some(done), None) => Cell::text(&amount(done)),
            _ => Cell::unknown(),
        };
        Row {
            class: "",
            cells: vec![
                Cell::of(
                    text(job, "kind")
                        .map(|kind| kind.replace('_', " "))
                        .as_deref(),
                ),
                Cell::of(text(job, "database")),
                progress,
                Cell::millis(document::number(job, "age_ms")),
            ],
        }
    };
    (!list.is_empty()).then(|| List {
        id: "jobs",
        title: "Jobs",
        summary: String::new(),
        heads: vec![
            Head::text("Job"),
            Head::text("Database"),
            Head::text("Progress").measured("corvid_database_file_rewriting", metrics),
            Head::number("Since"),
        ],
        rows: list.iter().take(ROWS_MAX).map(row).collect(),
        more: list.len().saturating_sub(ROWS_MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_expensive_sessions_come_first_and_the_rest_is_counted() {
        let sessions_of = (0..250).map(|id| {
            format!(r#"{{"id":"{id:x}","peer":"tcp:192.0.2.1:{id}","cost":{{"cpu_us":{id},"requests":1}},"backlog_bytes":0}}"#)
        });
        let text = format!(
            r#"{{"sessions":[{}]}}"#,
            sessions_of.collect::<Vec<_>>().join(",")
        );
        let list = sessions(
            &Value::parse(text.as_bytes()).expect("JSON"),
            None,
            Some("/x?do=close"),
        );
        assert_eq!((list.rows.len(), list.more), (200, 50));
        assert_eq!(list.rows[0].cells[0].text, "tcp:192.0.2.1:249");
        assert_eq!(list.rows[0].cells[10].href, "/x?do=close&id=f9");
    }

    #[test]
    fn jobs_have_their_progress() {
        let status = br#"{"jobs":[{"database":"D","kind":"history_reading","age_ms":5,"done":512,"total":2048,"unit":"bytes"},
            {"database":"D","kind":"compaction","age_ms":5,"done":3,"total":null,"unit":"rows"}]}"#;
        let list = jobs(&Value::parse(status).expect("JSON"), None).expect("jobs");
        let cell = &list.rows[0].cells[2];
        assert_eq!(
            (cell.text.as_str(), cell.progress),
            ("25 %", Some((512, 2048)))
        );
        assert_eq!(cell.more, "512 B of 2.0 KiB");
        assert_eq!(list.rows[0].cells[0].text, "history reading");
        assert_eq!(list.rows[1].cells[2].text, "3 rows");
    }

    #[test]
    fn a_long_queue_is_cut() {
        let waiting: Vec<String> = (0..10).map(|n| format!("\"c{n}\"")).collect();
        let text = format!(
            r#"{{"locks":[{{"name":"l","owner":null,"waiting":[{}]}}]}}"#,
            waiting.join(",")
        );
        let list = locks(&Value::parse(text.as_bytes()).expect("JSON"), None).expect("locks");
        assert_eq!(list.rows[0].cells[1].text, "not granted by the source yet");
        assert_eq!(list.rows[0].cells[2].more, "and 2 more");
    }
}
