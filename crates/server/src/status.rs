//! The status of the server as one JSON document, for programs that watch servers: the control
//! command `ovsdb-server/status` and the page `/status.json`.
//!
//! [`Status`] is the state that the main thread has gathered; [`Status::json`] is the document and
//! [`Status::text`] its short form for people. Both are pure. `docs/reference/status.md` describes
//! each member. [`VERSION`] changes when a member goes or changes its meaning; members that are
//! added leave it.

mod database;
mod member;

use std::fmt::Write;

use corvid_json::shown::Shown;
use corvid_json::{Object, Value};
use corvid_shell::program;

pub(crate) use database::{DatabaseStatus, RelayStatus};
pub(crate) use member::MemberStatus;

use crate::jobs::ListedJob;
use crate::process_figures::ProcessFigures;

/// The version of the document.
const VERSION: i64 = 1;

/// The state that the main thread has gathered.
pub(crate) struct Status {
    /// When it was gathered, ms since the Unix epoch.
    pub(crate) time_ms: i64,
    /// The process.
    pub(crate) process: ProcessFigures,
    /// The checks of `/readyz` that fail: the name of each and why.
    pub(crate) faults: Vec<(String, String)>,
    /// The configuration file, if there is one.
    pub(crate) config_file: Option<String>,
    /// The remotes that are given, except those of rows.
    pub(crate) remotes: Vec<String>,
    /// Requests received so far, those of sessions that have ended included; `None`: a shard has
    /// not answered.
    pub(crate) requests: Option<u64>,
    /// The databases, by name.
    pub(crate) databases: Vec<DatabaseStatus>,
    /// The sessions as `ovsdb-server/list-sessions` shows them; `None`: a shard has not answered.
    pub(crate) sessions: Option<Value>,
    /// The locks with their owners and those who wait; `None`: a shard has not answered.
    pub(crate) locks: Option<Value>,
    /// The long jobs that run now.
    pub(crate) jobs: Vec<ListedJob>,
    /// The settings with their values.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// The threads that have not answered in time.
    pub(crate) unanswered: Vec<String>,
}

impl Status {
    /// The document.
    pub(crate) fn json(&self) -> Value {
        let process = &self.process;
        let started_ms = process.started_seconds.map(|seconds| seconds * 1000.0);
        let strings = |names: &[String]| list(names.iter().map(Value::string));
        let faults = self.faults.iter().map(|(check, why)| {
            object([("check", Value::string(check)), ("why", Value::string(why))])
        });
        let settings = self.settings.iter();
        let settings = settings.map(|(name, value)| (*name, Value::string(value)));
        object([
            ("version", Value::Integer(VERSION)),
            ("time_ms", Value::Integer(self.time_ms)),
            (
                "server",
                object([
                    ("program", Value::string(program::CORVID)),
                    ("ovsdb_version", Value::string(program::VERSION)),
                    ("pid", count(u64::from(std::process::id()))),
                    ("started_ms", started_ms.map_or(Value::Null, whole)),
                    (
                        "cpu_ms",
                        process
                            .cpu_seconds
                            .map_or(Value::Null, |it| whole(it * 1000.0)),
                    ),
                    ("memory_bytes", optional(process.resident_bytes)),
                    ("threads", optional(process.threads)),
                    ("descriptors", optional(process.open_descriptors)),
                    ("descriptors_max", optional(process.descriptors_max)),
                    ("requests", optional(self.requests)),
                    ("ready", Value::Bool(self.faults.is_empty())),
                    ("faults", list(faults)),
                    (
                        "config_file",
                        self.config_file.as_ref().map_or(Value::Null, Value::string),
                    ),
                    ("remotes", strings(&self.remotes)),
                ]),
            ),
            (
                "databases",
                list(self.databases.iter().map(DatabaseStatus::json)),
            ),
            ("sessions", self.sessions.clone().unwrap_or(Value::Null)),
            ("locks", self.locks.clone().unwrap_or(Value::Null)),
            ("jobs", list(self.jobs.iter().map(ListedJob::json))),
            ("settings", object(settings)),
            ("unanswered", strings(&self.unanswered)),
        ])
    }

    /// A few lines for people: the server, each database, and what is wrong.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{}, process {}", program::CORVID, std::process::id());
        if let Some(started) = self.process.started_seconds {
            let seconds = self.time_ms as f64 / 1000.0 - started;
            let _ = write!(out, ", up {}", duration(seconds.max(0.0) as u64));
        }
        match &self.sessions {
            Some(Value::Array(sessions)) => {
                let _ = writeln!(out, ", {}", counted(sessions.len() as u64, "session"));
            }
            _ => out.push('\n'),
        }
        for database in &self.databases {
            let _ = writeln!(out, "{}", database.line());
        }
        for (check, why) in &self.faults {
            let _ = writeln!(out, "not ready: {}: {}", Shown(check), Shown(why));
        }
        for thread in &self.unanswered {
            let _ = writeln!(out, "no answer: {}", Shown(thread));
        }
        out
    }
}

/// A list of these elements.
pub(crate) fn list(elements: impl Iterator<Item = Value>) -> Value {
    Value::Array(elements.collect())
}

/// An object with these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let members = members.into_iter();
    let members: Object = members.map(|(name, value)| (name.into(), value)).collect();
    Value::Object(members)
}

pub(crate) fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(crate) fn optional(number: Option<u64>) -> Value {
    number.map_or(Value::Null, count)
}

/// A number without its fraction.
fn whole(number: f64) -> Value {
    Value::Integer(number as i64)
}

/// A number with its unit: "1 row", "2 rows".
fn counted(number: u64, unit: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

/// A duration with its two largest units.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_silent_is_named_and_its_parts_are_null() {
        let status = Status {
            time_ms: 1_700_000_100_000,
            process: ProcessFigures {
                started_seconds: Some(1_700_000_000.0),
                ..ProcessFigures::default()
            },
            faults: vec![("storage:D".to_owned(), "the disk is\nfull".to_owned())],
            config_file: None,
            remotes: vec!["punix:db.sock".to_owned()],
            requests: None,
            databases: vec![DatabaseStatus::empty("D", "standalone")],
            sessions: None,
            locks: None,
            jobs: Vec::new(),
            settings: vec![("slow-transaction", "0".to_owned())],
            unanswered: vec!["sessions".to_owned()],
        };
        let json = status.json();
        assert_eq!(json.get("version").and_then(Value::as_integer), Some(1));
        assert_eq!(json.get("sessions"), Some(&Value::Null));
        let server = json.get("server").expect("a part");
        assert_eq!(server.get("ready").and_then(Value::as_bool), Some(false));
        assert_eq!(server.get("threads"), Some(&Value::Null));
        let text = status.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(", up 1 min 40 s"), "{text}");
        assert_eq!(
            lines[1..],
            [
                "D: standalone",
                "not ready: storage:D: the disk is\\nfull",
                "no answer: sessions"
            ]
        );
    }

    #[test]
    fn durations_have_two_units() {
        let shown = [59, 60, 3_600, 90_000].map(duration);
        assert_eq!(shown, ["59 s", "1 min 0 s", "1 h 0 min", "1 d 1 h"]);
    }
}
