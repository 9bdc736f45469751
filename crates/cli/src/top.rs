//! The picture of `top`: what a server has done between two readings of its status.
//!
//! Functions of two status documents and a width. Rates are differences of counters by the
//! server's own clock; a counter that the server lacks, or that began anew, is `-`. The command
//! `top` reads the documents and owns the terminal.

use corvid_json::Value;
use corvid_shell::date;
use corvid_shell::terminal::{Colour, Painted, cut};
use corvid_tools::table::{Cell, CellStyle, Table};

use crate::doctor::{bytes, why_not_stored};
use crate::page::{self, Layout, Shape};
use corvid_tools::status::document;

/// A column is not narrower than this, with the gap after it; those that find no room are left
/// out.
const COLUMN_WIDTH: usize = 9;
/// The number of slow transactions that are shown.
const SLOW_MAX: usize = 5;
/// The number of locks that are shown.
const LOCKS_MAX: usize = 3;
/// The number of sessions that are shown where the height does not limit them.
const SESSIONS_MAX: usize = 20;

/// Two readings of the status of a server.
pub(crate) struct Readings<'d> {
    /// The earlier one.
    pub before: &'d Value,
    /// The later one.
    pub now: &'d Value,
}

impl Readings<'_> {
    /// The time between them, ms; `None` if the server has started anew or told the same status
    /// twice.
    fn elapsed_ms(&self) -> Option<i64> {
        let started = |document| document::number(document, "server.started_ms");
        let time = |document| document::number(document, "time_ms");
        let elapsed_ms = time(self.now)?.saturating_sub(time(self.before)?);
        (started(self.now) == started(self.before) && elapsed_ms > 0).then_some(elapsed_ms)
    }

    /// How much a counter has grown, in an object that both have.
    fn growth(&self, before: Option<&Value>, now: &Value, path: &str) -> Option<i64> {
        let before = document::number(before?, path)?;
        let grown = document::number(now, path)?.saturating_sub(before);
        (grown >= 0).then_some(grown)
    }

    /// The growth of a counter per second.
    fn rate(&self, before: Option<&Value>, now: &Value, path: &str) -> Option<f64> {
        let grown = self.growth(before, now, path)?;
        Some(grown as f64 * 1e3 / self.elapsed_ms()? as f64)
    }
}

/// The picture for a width.
pub(crate) fn picture(page: &mut Painted, address: &str, readings: &Readings<'_>, width: usize) {
    head(page, address, readings, width);
    page.end_line();
    add(page, databases(readings), width);
    jobs(page, readings, width);
    locks(page, readings, width);
    page.end_line();
    add(page, sessions(readings), width);
    page.end_line();
    slow(page, readings, width);
}

/// A line, cut to the width.
fn line(page: &mut Painted, colour: Colour, text: &str, width: usize) {
    let text = corvid_json::shown::line(text);
    page.part(colour, cut(&text, width));
    page.end_line();
}

/// The process.
fn head(page: &mut Painted, address: &str, readings: &Readings<'_>, width: usize) {
    let now = readings.now;
    let number = |path: &str| document::number(now, path);
    let program = document::text(now, "server.program").unwrap_or("?");
    let up_ms = number("time_ms")
        .zip(number("server.started_ms"))
        .map(|(time_ms, started_ms)| time_ms.saturating_sub(started_ms));
    let up = up_ms.map_or("-".to_owned(), duration);
    let ready = match document::flag(now, "server.ready") {
        Some(true) => "ready",
        Some(false) => "NOT READY",
        None => "-",
    };
    let title = format!("{address}  {program}  up {up}  {ready}");
    line(page, Colour::Bold, &title, width);
    let cpu = readings.rate(Some(readings.before), now, "server.cpu_ms");
    let cpu = cpu.map_or("-".to_owned(), |ms| format!("{:.1} %", ms / 10.0));
    let memory = number("server.memory_bytes").map_or("-".to_owned(), bytes);
    let count = |path: &str| number(path).map_or("-".to_owned(), |count| count.to_string());
    let sessions = document::list(now, "sessions");
    let backlog = sessions.map(|sessions| {
        let sizes = sessions.iter();
        sizes
            .filter_map(|session| document::number(session, "backlog_bytes"))
            .fold(0, i64::saturating_add)
    });
    let text = format!(
        "cpu {cpu}  memory {memory}  descriptors {}/{}  threads {}  sessions {}  backlog {}  requests {} ({}/s)",
        count("server.descriptors"),
        count("server.descriptors_max"),
        count("server.threads"),
        sessions.map_or("-".to_owned(), |sessions| sessions.len().to_string()),
        backlog.map_or("-".to_owned(), bytes),
        count("server.requests"),
        rate_text(readings.rate(Some(readings.before), now, "server.requests")),
    );
    line(page, Colour::Plain, &text, width);
    for (name, database) in document::databases(now) {
        if let Some(why) = why_not_stored(database) {
            let text = format!("commits of {name} cannot be stored: {why}");
            line(page, Colour::Red, &text, width);
        }
    }
    let silent = document::list(now, "unanswered").unwrap_or_default();
    if !silent.is_empty() {
        let names: Vec<&str> = silent.iter().filter_map(Value::as_str).collect();
        let text = format!("no answer from: {}", names.join(", "));
        line(page, Colour::Red, &text, width);
    }
}

/// A duration for people.
fn duration(ms: i64) -> String {
    let s = ms / 1000;
    match s {
        s if s >= 86_400 => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
        s if s >= 3_600 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        s if s >= 60 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

fn rate_text(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"))
}

/// Bytes per second.
fn flow_text(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| bytes(rate as i64))
}

/// A table of texts.
struct Rows {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// Adds a table, without the last columns if they find no room.
fn add(page: &mut Painted, table: Rows, width: usize) {
    let count = (width / COLUMN_WIDTH).clamp(1, table.headings.len());
    let cells = |row: Vec<String>| row.into_iter().take(count).map(Cell::Text).collect();
    let table = Table {
        headings: table
            .headings
            .iter()
            .take(count)
            .map(|&heading| heading.to_owned())
            .collect(),
        rows: table.rows.into_iter().map(cells).collect(),
        ..Table::default()
    };
    let shape = Shape {
        layout: Layout::Table,
        cells: CellStyle::String,
        has_headings: true,
        columns: width,
    };
    page::add_table(page, &table, shape);
}

/// A row for each database.
fn databases(readings: &Readings<'_>) -> Rows {
    let row = |(name, now): (&str, &Value)| {
        let before = document::database(readings.before, name);
        let rate = |path: &str| rate_text(readings.rate(before, now, path));
        let count =
            |path: &str| document::number(now, path).map_or("-".to_owned(), |it| it.to_string());
        let role = document::text(now, "cluster.role").or_else(|| document::text(now, "model"));
        let tables = document::list(now, "tables");
        let rows = tables.map(|tables| {
            let counts = tables.iter();
            counts
                .filter_map(|table| document::number(table, "rows"))
                .fold(0, i64::saturating_add)
        });
        vec![
            name.to_owned(),
            role.unwrap_or("-").to_owned(),
            rate("transactions.committed"),
            rate("transactions.failed"),
            rate("transactions.unchanged"),
            count("blocked_transactions"),
            count("queue.requests"),
            rows.map_or("-".to_owned(), |rows| rows.to_string()),
            document::number(now, "storage.bytes").map_or("-".to_owned(), bytes),
        ]
    };
    Rows {
        headings: vec![
            "database",
            "role",
            "commits/s",
            "failed/s",
            "no-op/s",
            "blocked",
            "queued",
            "rows",
            "file",
        ],
        rows: document::databases(readings.now).map(row).collect(),
    }
}

/// The jobs that run.
fn jobs(page: &mut Painted, readings: &Readings<'_>, width: usize) {
    for job in document::list(readings.now, "jobs").unwrap_or_default() {
        let text = |path| document::text(job, path).unwrap_or("?");
        let age_ms = document::number(job, "age_ms").unwrap_or(0);
        let share = document::number(job, "done").zip(document::number(job, "total"));
        let share = match share {
            Some((done, total)) if total > 0 => format!(", {} %", done.saturating_mul(100) / total),
            _ => String::new(),
        };
        let text = format!(
            "{} of {} for {}{share}",
            text("kind"),
            text("database"),
            duration(age_ms)
        );
        line(page, Colour::Yellow, &text, width);
    }
}

/// The locks that sessions wait for.
fn locks(page: &mut Painted, readings: &Readings<'_>, width: usize) {
    let locks = document::list(readings.now, "locks").unwrap_or_default();
    let waited = locks.iter().filter_map(|lock| {
        let waiting = document::list(lock, "waiting")?.len();
        (waiting > 0).then_some((lock, waiting))
    });
    for (lock, waiting) in waited.take(LOCKS_MAX) {
        let text = |path| document::text(lock, path).unwrap_or("?");
        let (name, owner) = (text("name"), text("owner"));
        let text = format!("lock {name}: held by {owner}, {waiting} wait");
        line(page, Colour::Plain, &text, width);
    }
}

/// A row for each session, the most expensive first.
fn sessions(readings: &Readings<'_>) -> Rows {
    let list = |document| document::list(document, "sessions").unwrap_or_default();
    let mut rows: Vec<((i64, i64), Vec<String>)> = list(readings.now)
        .iter()
        .map(|now| {
            let id = document::text(now, "id");
            let mut same = list(readings.before).iter();
            let before = same.find(|it| document::text(it, "id") == id);
            session(readings, before, now)
        })
        .collect();
    rows.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    rows.truncate(SESSIONS_MAX);
    Rows {
        headings: vec![
            "session",
            "program",
            "cpu",
            "requests/s",
            "in/s",
            "out/s",
            "backlog",
            "monitors",
            "last request",
        ],
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    }
}

/// The cost of a session, by which it is sorted, and its row.
fn session(
    readings: &Readings<'_>,
    before: Option<&Value>,
    now: &Value,
) -> ((i64, i64), Vec<String>) {
    let text = |path: &str| document::text(now, path).filter(|text| !text.is_empty());
    let rate = |path: &str| readings.rate(before, now, path);
    let cpu = rate("cost.cpu_us");
    let (received, sent) = (
        rate("cost.received_bytes").or_else(|| rate("received_bytes")),
        rate("cost.sent_bytes").or_else(|| rate("sent_bytes")),
    );
    let backlog =
        document::number(now, "cost.queued_bytes").max(document::number(now, "backlog_bytes"));
    let program = match (text("program"), document::number(now, "pid")) {
        (Some(program), Some(pid)) => format!("{program}/{pid}"),
        (Some(program), None) => program.to_owned(),
        (None, _) => text("client").unwrap_or("-").to_owned(),
    };
    let number =
        |path: &str| document::number(now, path).map_or("-".to_owned(), |it| it.to_string());
    let row = vec![
        text("peer")
            .or_else(|| text("id"))
            .unwrap_or("?")
            .to_owned(),
        program,
        // A microsecond in a second is a ten-thousandth of a percent.
        cpu.map_or("-".to_owned(), |us| format!("{:.1} %", us / 1e4)),
        rate_text(rate("cost.requests")),
        flow_text(received),
        flow_text(sent),
        backlog.map_or("-".to_owned(), bytes),
        number("monitors"),
        text("cost.last_request")
            .or_else(|| text("last_request"))
            .unwrap_or("-")
            .to_owned(),
    ];
    let flow = received.unwrap_or(0.0) + sent.unwrap_or(0.0);
    ((cpu.map_or(-1, |us| us as i64), flow as i64), row)
}

/// The slowest transactions.
fn slow(page: &mut Painted, readings: &Readings<'_>, width: usize) {
    let mut is_told = false;
    let mut all: Vec<(i64, String)> = Vec::new();
    for (name, database) in document::databases(readings.now) {
        let Some(list) = document::list(database, "slow_transactions") else {
            continue;
        };
        is_told = true;
        for it in list {
            let duration_ms = document::number(it, "duration_ms").unwrap_or(0);
            let time = document::number(it, "time_ms").map_or("-".to_owned(), date::utc_text);
            let text = |path| document::text(it, path).unwrap_or("-");
            let operations = match document::member(it, "operations") {
                Some(Value::String(text)) => text.to_string(),
                Some(other) => other.to_string(),
                None => "-".to_owned(),
            };
            let shown = format!(
                "{duration_ms:>7} ms  {time}  {name}  {}  {operations}",
                text("client")
            );
            all.push((duration_ms, shown));
        }
    }
    if !is_told {
        line(
            page,
            Colour::Plain,
            "slow transactions: this server does not tell them",
            width,
        );
        return;
    }
    let title = match all.is_empty() {
        true => "no slow transactions",
        false => "slowest transactions",
    };
    line(page, Colour::Bold, title, width);
    all.sort_by_key(|(duration_ms, _)| std::cmp::Reverse(*duration_ms));
    for (_, text) in all.iter().take(SLOW_MAX) {
        line(page, Colour::Plain, text, width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::shown;
    use corvid_shell::terminal::width;

    fn status(time_ms: i64, committed: i64, sessions: &str, more: &str) -> Value {
        let text = format!(
            r#"{{"version":1,"time_ms":{time_ms},"server":{{"program":"Corvid 1","started_ms":0,"cpu_ms":{},"requests":{committed}0,"ready":true,"descriptors":5,"descriptors_max":9}},
            "databases":[{{"name":"Lab","model":"standalone","transactions":{{"committed":{committed},"failed":1}},"tables":[{{"rows":2}},{{"rows":3}}]{more}}}],
            "sessions":[{sessions}]}}"#,
            time_ms / 4
        );
        Value::parse_text(text.as_bytes()).unwrap()
    }

    fn shown_at(before: &Value, now: &Value, columns: usize) -> String {
        let mut page = Painted::new(true, false);
        picture(&mut page, "unix:/a", &Readings { before, now }, columns);
        page.as_str().to_owned()
    }

    #[test]
    fn rates_are_differences_by_the_clock_of_the_server() {
        let session = |id: &str, cpu_us: i64| {
            format!(
                r#"{{"id":"{id}","peer":"unix#{id}","cost":{{"cpu_us":{cpu_us},"requests":4}},"sent_bytes":0}}"#
            )
        };
        let both = |a, b| format!("{},{}", session("1", a), session("2", b));
        let before = status(1_000, 10, &both(0, 0), "");
        let now = status(3_000, 30, &both(2_000, 500_000), "");
        let text = shown_at(&before, &now, 200);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "unix:/a  Corvid 1  up 3 s  ready");
        assert!(
            lines[1].starts_with("cpu 25.0 %  memory -  descriptors 5/9"),
            "{text}"
        );
        assert!(lines[1].ends_with("requests 300 (100.0/s)"), "{text}");
        let of = |start: &str| {
            let line = lines.iter().find(|line| line.starts_with(start));
            let words = line.expect(start).split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("Lab")[..4], ["Lab", "standalone", "10.0", "0.0"]);
        // The most expensive one comes first.
        assert!(
            text.find("unix#2").unwrap() < text.find("unix#1").unwrap(),
            "{text}"
        );
        assert_eq!(of("unix#2")[2..4], ["25.0", "%"]);
    }

    #[test]
    fn counters_that_began_anew_have_no_rate() {
        let before = status(1_000, 10, "", "");
        let text = shown_at(&before, &status(3_000, 3, "", ""), 200);
        let line = text.lines().find(|line| line.starts_with("Lab")).unwrap();
        assert!(line.starts_with("Lab       standalone  - "), "{line}");
        // The same document twice.
        let text = shown_at(&before, &before, 200);
        assert!(text.contains("cpu -  "), "{text}");
    }

    #[test]
    fn slow_transactions_are_sorted_and_jobs_told() {
        let slow = r#","slow_transactions":[{"time_ms":0,"duration_ms":5,"client":"c1","operations":"x"},{"time_ms":0,"duration_ms":70,"client":"c2","operations":{"insert":1}}]"#;
        let now = status(3_000, 3, "", slow);
        let text = shown_at(&now, &now, 200);
        assert!(
            text.find("c2").unwrap() < text.find("c1").unwrap(),
            "{text}"
        );
        assert!(
            shown_at(&status(1, 1, "", ""), &status(2, 1, "", ""), 200).contains("does not tell")
        );
        let job = r#"{"version":1,"databases":[],"jobs":[{"kind":"compaction","database":"Lab","age_ms":61000,"done":1,"total":4}],
            "locks":[{"name":"a","owner":"unix#1","waiting":["unix#2"]},{"name":"b","owner":"unix#1","waiting":[]}]}"#;
        let job = Value::parse_text(job.as_bytes()).unwrap();
        let text = shown_at(&job, &job, 200);
        assert!(
            text.contains("compaction of Lab for 1 min 1 s, 25 %"),
            "{text}"
        );
        let held = "lock a: held by unix#1, 1 wait\n";
        assert!(text.contains(held) && !text.contains("lock b"), "{text}");
    }

    #[test]
    fn a_database_that_stores_nothing_says_why() {
        let more = r#","storage":{"failed":true,"error":"No space left on device"}"#;
        let now = status(3_000, 3, "", more);
        let text = shown_at(&now, &now, 200);
        let expected = "commits of Lab cannot be stored: No space left on device";
        assert!(text.lines().any(|line| line == expected), "{text}");
        let now = status(3_000, 3, "", r#","storage":{"failed":false,"error":null}"#);
        let text = shown_at(&now, &now, 200);
        assert!(!text.contains("cannot be stored"), "{text}");
    }

    /// Hostile names, at every width that a terminal has.
    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let hostile = r"x\u001b[2J\u009b31m\r\nforged \u202ey 日本日本日本日本";
        let session = format!(
            r#"{{"id":"1","peer":"{hostile}","program":"{hostile}","pid":3,"last_request":"{hostile}"}}"#
        );
        let slow = format!(
            r#","slow_transactions":[{{"duration_ms":5,"client":"{hostile}","operations":"{hostile}"}}]"#
        );
        let now = status(3_000, 3, &session, &slow);
        for columns in 20..=300 {
            let text = shown_at(&now, &now, columns);
            let is_raw = |letter: char| letter != '\n' && shown::is_control(letter);
            assert!(!text.contains(is_raw), "{text:?}");
            let widest = text.lines().map(width).max().unwrap_or(0);
            assert!(widest <= columns, "{widest} of {columns}:\n{text}");
        }
    }
}
