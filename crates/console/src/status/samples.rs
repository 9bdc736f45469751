//! The last hour of a server: a sample of its status every [`PERIOD`], in a ring of fixed size.
//!
//! A thread of each database takes them, whether or not somebody looks, so that an hour is there
//! when somebody does. While nobody has looked for an hour, a server with many sessions is asked
//! less often, because each costs it some 11 µs of CPU time a reading: at most 0.1 % of a core is
//! spent. Rates are differences of two samples of the same process; a server that was started anew,
//! or another member of the cluster, leaves a gap.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corvid::json::{Object, Value};
use corvid_tools::status::document;
use tokio::runtime::Handle;

use super::Status;
use crate::database::{Database, State};

/// The time between two samples.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// The pause until the database is known.
const RETRY: Duration = Duration::from_secs(1);

/// The number of samples: an hour.
pub(crate) const SAMPLES_MAX: usize = 360;

/// A server with this number of sessions is asked every second [`PERIOD`] while nobody looks, one
/// with twice as many every third, and so on.
const SESSIONS_CHEAP: usize = 500;

/// The longest pause while nobody looks, in periods.
const PERIODS_MAX: u32 = 30;

/// How much later than expected a sample may come.
const LATE: Duration = Duration::from_secs(15);

/// How long the shortest pauses last after somebody has looked.
const LOOKED: Duration = Duration::from_secs(3600);

/// The number of figures of a sample.
pub(crate) const FIGURES: usize = 6;

/// A figure of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Commits a second.
    Commits,
    /// Requests a second.
    Requests,
    /// Sessions.
    Sessions,
    /// Resident memory, bytes.
    Memory,
    /// Unread output of all sessions, bytes.
    Backlog,
    /// CPU time, hundredths of a core.
    Cpu,
}

/// A sample; a figure is `None` if the server does not tell it, or nothing precedes it.
pub(crate) type Sample = [Option<f64>; FIGURES];

/// The samples of a database's server.
#[derive(Default)]
pub(crate) struct Samples {
    ring: VecDeque<Sample>,
    last: Option<Counters>,
    brief: Option<Brief>,
    /// The server tells only texts, from which no samples are made.
    is_foreign: bool,
    /// When somebody looked last.
    looked: Option<Instant>,
}

/// The counters of the last sample.
struct Counters {
    at: Instant,
    /// The process: its id and its start.
    process: (Option<i64>, Option<i64>),
    commits: Option<i64>,
    cpu_ms: Option<i64>,
    sessions: usize,
    /// The requests of all sessions, those that have ended included.
    requests: Option<i64>,
}

/// The parts of a status that describe the server and its databases.
#[derive(Clone)]
pub(crate) struct Brief {
    /// When a later one was due; after it the server does not answer.
    pub(crate) until: Instant,
    /// The parts `server` and `databases`, without tables and slow transactions.
    pub(crate) document: Arc<Value>,
}

impl Samples {
    /// The samples, oldest first.
    pub(crate) fn ring(&self) -> &VecDeque<Sample> {
        &self.ring
    }

    /// The last status.
    pub(crate) fn brief(&self) -> Option<&Brief> {
        self.brief.as_ref()
    }

    /// Notes that somebody looks.
    pub(crate) fn look(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// The pause until the next sample, in periods.
    fn pause(&self) -> u32 {
        if self.is_foreign {
            return PERIODS_MAX;
        }
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOKED) {
            return 1;
        }
        let sessions = self.last.as_ref().map_or(0, |last| last.sessions);
        let periods = u32::try_from(1 + sessions / SESSIONS_CHEAP);
        periods.unwrap_or(PERIODS_MAX).min(PERIODS_MAX)
    }

    /// Adds the sample of a status for so many periods; `None`: the server does not tell any.
    fn add(&mut self, status: Option<&Status>, database: &str, at: Instant, periods: u32) {
        self.is_foreign = status.is_some_and(|status| !status.is_own());
        let sample = match status.filter(|status| status.is_own()) {
            Some(status) => {
                let counters = Counters::of(&status.document, database, at);
                let sample = sample(&status.document, &counters, self.last.as_ref());
                self.last = Some(counters);
                self.brief = Some(Brief {
                    until: at + PERIOD.saturating_mul(self.pause()) + LATE,
                    document: Arc::new(brief(&status.document)),
                });
                sample
            }
            None => {
                self.last = None;
                [None; FIGURES]
            }
        };
        for _ in 0..periods {
            if self.ring.len() == SAMPLES_MAX {
                self.ring.pop_front();
            }
            self.ring.push_back(sample);
        }
    }
}

impl Counters {
    fn of(status: &Value, database: &str, at: Instant) -> Counters {
        let served = super::of_database(status, database);
        let sessions = document::list(status, "sessions").unwrap_or_default();
        Counters {
            at,
            process: (
                document::number(status, "server.pid"),
                document::number(status, "server.started_ms"),
            ),
            commits: served.and_then(|it| document::number(it, "transactions.committed")),
            cpu_ms: document::number(status, "server.cpu_ms"),
            sessions: sessions.len(),
            requests: document::number(status, "server.requests"),
        }
    }
}

/// The figures of a status. Rates need the counters of an earlier one of the same process.
fn sample(status: &Value, now: &Counters, last: Option<&Counters>) -> Sample {
    let last = last.filter(|last| last.process == now.process);
    let seconds = last.map(|last| now.at.duration_since(last.at).as_secs_f64());
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let rate = |count: i64| seconds.map(|seconds| count.max(0) as f64 / seconds);
    let grown = |now: Option<i64>, last: Option<i64>| rate(now?.checked_sub(last?)?);
    let sessions = document::list(status, "sessions");
    let backlog = sessions.map(|sessions| {
        let of_session = |session| document::number(session, "backlog_bytes").unwrap_or(0);
        sessions.iter().map(of_session).sum::<i64>() as f64
    });
    let cpu = grown(now.cpu_ms, last.and_then(|last| last.cpu_ms));
    [
        grown(now.commits, last.and_then(|last| last.commits)),
        grown(now.requests, last.and_then(|last| last.requests)),
        sessions.map(|sessions| sessions.len() as f64),
        document::number(status, "server.memory_bytes").map(|bytes| bytes as f64),
        backlog,
        // Milliseconds a second are thousandths of a core.
        cpu.map(|millis| millis / 10.0),
    ]
}

/// A status without what describes sessions, tables and settings.
pub(crate) fn brief(status: &Value) -> Value {
    let only = |object: &Value, is_kept: &dyn Fn(&[u8]) -> bool| match object {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| is_kept(name));
            let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
            Value::Object(kept.collect::<Object>())
        }
        other => other.clone(),
    };
    let databases = document::list(status, "databases").unwrap_or_default();
    let databases = databases.iter().map(|database| {
        only(database, &|name| {
            name != b"tables" && name != b"slow_transactions"
        })
    });
    let mut whole = Object::new();
    whole.insert("databases".into(), Value::Array(databases.collect()));
    if let Some(server) = status.get("server") {
        whole.insert("server".into(), server.clone());
    }
    Value::Object(whole)
}

/// Starts the thread that takes the samples.
///
/// # Errors
/// No thread is available.
pub(crate) fn start(database: Arc<Database>) -> std::io::Result<()> {
    let runtime = Handle::try_current().ok();
    thread::Builder::new()
        .name(format!("status:{}", database.source.name))
        .spawn(move || {
            let _within = runtime.as_ref().map(Handle::enter);
            let mut periods = 1;
            loop {
                let pause = match take(&database, periods) {
                    Some(next) => {
                        periods = next;
                        PERIOD.saturating_mul(next)
                    }
                    None => RETRY,
                };
                thread::sleep(pause);
            }
        })?;
    Ok(())
}

/// Takes a sample for so many periods, unless the database is not known yet. Returns the number of
/// periods until the next one.
fn take(database: &Database, periods: u32) -> Option<u32> {
    let State::Open(open) = database.state() else {
        return None;
    };
    if let Some(remote) = &open.client.session().remote {
        database.status.prefer(remote);
    }
    let status = database.status.main();
    let mut samples = database
        .samples
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    samples.add(
        status.as_deref(),
        &open.schema.name,
        Instant::now(),
        periods,
    );
    Some(samples.pause())
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_tools::status::source::Source;

    fn status(pid: i64, commits: i64, cpu_ms: i64, sessions: &str) -> Status {
        let requests = commits * 2;
        let text = format!(
            r#"{{"version":1,"server":{{"pid":{pid},"started_ms":1,"cpu_ms":{cpu_ms},"requests":{requests},
                "memory_bytes":2048}},
                "databases":[{{"name":"D","tables":[1],"transactions":{{"committed":{commits}}}}}],
                "sessions":[{sessions}],"settings":{{"a":"b"}}}}"#
        );
        Status {
            document: Arc::new(Value::parse(text.as_bytes()).expect("JSON")),
            source: Source::pages("h:1"),
        }
    }

    #[test]
    fn rates_are_differences_of_one_process() {
        let mut samples = Samples::default();
        let begin = Instant::now();
        let session = r#"{"id":"1","backlog_bytes":7}"#;
        let later = r#"{"id":"2","backlog_bytes":0},{"id":"3"}"#;
        samples.add(Some(&status(1, 100, 1000, session)), "D", begin, 1);
        samples.add(Some(&status(1, 150, 1500, later)), "D", begin + PERIOD, 1);
        // Started anew: its counters tell nothing about the time between.
        samples.add(Some(&status(2, 3, 10, "")), "D", begin + 2 * PERIOD, 1);
        samples.add(None, "D", begin + 3 * PERIOD, 1);
        let figures: Vec<Sample> = samples.ring().iter().copied().collect();
        let (none, memory) = (None, Some(2048.0));
        assert_eq!(figures[0], [none, none, Some(1.0), memory, Some(7.0), none]);
        assert_eq!(
            figures[1],
            [
                Some(5.0),
                // Of sessions that have ended, too.
                Some(10.0),
                Some(2.0),
                memory,
                Some(0.0),
                Some(5.0)
            ]
        );
        assert_eq!(figures[2], [none, none, Some(0.0), memory, Some(0.0), none]);
        assert_eq!(figures[3], [none; FIGURES]);
    }

    #[test]
    fn the_ring_keeps_an_hour_and_the_brief_no_sessions() {
        let mut samples = Samples::default();
        let at = Instant::now();
        for _ in 0..=SAMPLES_MAX {
            samples.add(Some(&status(1, 1, 1, r#"{"id":"1"}"#)), "D", at, 1);
        }
        assert_eq!(samples.ring().len(), SAMPLES_MAX);
        let brief = samples.brief().expect("a status").document.to_string();
        assert!(
            !brief.contains("sessions") && !brief.contains("tables"),
            "{brief}"
        );
        assert!(
            brief.contains("committed") && brief.contains("pid"),
            "{brief}"
        );
    }

    #[test]
    fn a_server_with_many_sessions_is_asked_less_often_while_nobody_looks() {
        let mut samples = Samples::default();
        assert_eq!(samples.pause(), 1);
        let sessions = vec![r#"{"id":"1"}"#; 1200].join(",");
        samples.add(Some(&status(1, 1, 1, &sessions)), "D", Instant::now(), 3);
        assert_eq!((samples.pause(), samples.ring().len()), (3, 3));
        samples.look();
        assert_eq!(samples.pause(), 1);
    }
}
