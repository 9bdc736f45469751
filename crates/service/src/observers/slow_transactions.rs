//! Transactions that take long, for the log and the status: client, duration, operations.
//!
//! A commit is timed when its reply is released, so its time includes the disk. A transaction
//! without a commit is answered while it is executed, and this crate has no clock. So the last such
//! transaction is kept until the driver says the time ([`SlowLog::report`]). A transaction is
//! described only when it is slow. Time that a `wait` spends blocked is intended, so transactions
//! that blocked are left out.
//!
//! The last [`KEPT_MAX`] are kept for the status from [`KEPT_MS`] on, or from the log's threshold
//! on if that is lower.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::Arc;

use corvid_data::Delta;
use corvid_json::{Reader, Value};
use corvid_log::commit_client;

use crate::message::Now;
use crate::message::{Event, Request, SessionInfo, SlowTransaction};

/// Longer requests are described by their length, bytes: parsing them again would take long, too.
const READ_BYTES_MAX: usize = 1 << 20;

/// Characters of a comment that are shown.
const COMMENT_MAX: usize = 200;

/// Transactions that are kept.
const KEPT_MAX: usize = 32;

/// Transactions that take at least this long are kept, ms.
const KEPT_MS: u64 = 100;

/// Characters of the operations of a transaction that are kept: clients choose their names.
const OPERATIONS_MAX: usize = 200;

/// The threshold, the transaction that may have been slow, and the last ones that were.
#[derive(Debug)]
pub(crate) struct SlowLog {
    threshold_ms: u64,
    /// When the present input arrived, or its replies are released.
    now: Now,
    last: Option<Answered>,
    /// The newest first.
    kept: VecDeque<SlowTransaction>,
}

/// A transaction that has been answered and has changed nothing.
#[derive(Debug)]
enum Answered {
    Short(Box<Request>),
    /// Its request is freed already, because it was large.
    Long {
        info: Arc<SessionInfo>,
        arrived_ms: u64,
        bytes: usize,
    },
}

impl Default for SlowLog {
    fn default() -> SlowLog {
        SlowLog {
            threshold_ms: u64::MAX,
            now: Now::default(),
            last: None,
            kept: VecDeque::new(),
        }
    }
}

impl SlowLog {
    /// Sets from which duration on transactions are reported ([`Event::Slow`]), ms; none are at
    /// first.
    pub(crate) fn set_threshold_ms(&mut self, threshold_ms: u64) {
        self.threshold_ms = threshold_ms;
    }

    /// Sets the present time.
    pub(crate) fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// Keeps a request that has just been answered.
    pub(crate) fn keep(&mut self, request: Box<Request>) {
        if !request.blocked {
            self.last = Some(Answered::Short(request));
        }
    }

    /// The same, for a request that the reaper frees.
    pub(crate) fn keep_long(&mut self, request: &Request) {
        if !request.blocked {
            self.last = Some(Answered::Long {
                info: request.info.clone(),
                arrived_ms: request.arrived_ms,
                bytes: request.frame.len(),
            });
        }
    }

    /// The last slow transactions, the newest first.
    pub(crate) fn kept(&self) -> Vec<SlowTransaction> {
        self.kept.iter().cloned().collect()
    }

    /// Reports the last answered transaction on `database` if it was slow.
    pub(crate) fn report(&mut self, now: Now, database: &str) -> Option<Event> {
        let last = self.last.take()?;
        let (info, arrived_ms) = match &last {
            Answered::Short(request) => (&request.info, request.arrived_ms),
            Answered::Long {
                info, arrived_ms, ..
            } => (info, *arrived_ms),
        };
        let elapsed_ms = self.slow_since(arrived_ms, now.mono_ms)?;
        let what = match &last {
            Answered::Short(request) => Description::of(request.params()),
            Answered::Long { bytes, .. } => Description::of_bytes(*bytes),
        };
        self.slow_event(now, info, database, elapsed_ms, &what)
    }

    /// Reports a transaction whose long result is about to be sent, if it was slow.
    pub(crate) fn report_result(&mut self, request: &Request, database: &str) -> Option<Event> {
        let elapsed_ms = self.slow_request(request)?;
        let what = Description::of(request.params());
        self.slow_event(self.now, &request.info, database, elapsed_ms, &what)
    }

    /// Reports a commit that is about to be answered, if it was slow.
    pub(super) fn report_commit(
        &mut self,
        request: &Request,
        delta: &Delta,
        database: &str,
    ) -> Option<Event> {
        let elapsed_ms = self.slow_request(request)?;
        let mut what = Description::of(request.params());
        if request.params().len() > READ_BYTES_MAX {
            commit_client::split(&delta.comment)
                .1
                .clone_into(&mut what.comment);
        }
        what.rows = Some(delta.changes.len());
        self.slow_event(self.now, &request.info, database, elapsed_ms, &what)
    }

    /// How long a transaction that did not block has taken, if that is slow.
    fn slow_request(&self, request: &Request) -> Option<u64> {
        let slow = self.slow_since(request.arrived_ms, self.now.mono_ms);
        slow.filter(|_| !request.blocked)
    }

    fn slow_since(&self, since_ms: u64, now_ms: u64) -> Option<u64> {
        let elapsed_ms = now_ms.saturating_sub(since_ms);
        (elapsed_ms >= self.threshold_ms.min(KEPT_MS)).then_some(elapsed_ms)
    }

    /// Keeps a slow transaction. Returns the event for the log, if it is slow enough for that.
    fn slow_event(
        &mut self,
        now: Now,
        info: &SessionInfo,
        database: &str,
        duration_ms: u64,
        what: &Description,
    ) -> Option<Event> {
        let client = info.who();
        let line = (duration_ms >= self.threshold_ms)
            .then(|| format!("{client}: transaction on {database} took {duration_ms}ms ({what})"));
        self.kept.truncate(KEPT_MAX - 1);
        self.kept.push_front(SlowTransaction {
            time_ms: now.wall_ms,
            duration_ms,
            client,
            operations: beginning(&what.operations, OPERATIONS_MAX),
            comment: beginning(&what.comment, COMMENT_MAX),
        });
        line.map(Event::Slow)
    }
}

/// The beginning of a text.
fn beginning(text: &str, characters_max: usize) -> String {
    text.chars().take(characters_max).collect()
}

/// The description of a transaction.
#[derive(Default)]
struct Description {
    /// `2 insert, 1 wait`, or the length.
    operations: String,
    /// Its comments, joined by LF; empty if it has none.
    comment: String,
    /// The rows that it has changed, if it was a commit.
    rows: Option<usize>,
}

impl Description {
    fn of(params: &[u8]) -> Description {
        if params.len() > READ_BYTES_MAX {
            return Description::of_bytes(params.len());
        }
        let (operations, comment) = operations(params);
        let mut out = String::new();
        for (name, count) in operations {
            let separator = if out.is_empty() { "" } else { ", " };
            let _ = write!(out, "{separator}{count} {name}");
        }
        Description {
            operations: out,
            comment,
            rows: None,
        }
    }

    /// A transaction of so many bytes, which is not read.
    fn of_bytes(bytes: usize) -> Description {
        Description {
            operations: format!("{bytes} bytes"),
            ..Description::default()
        }
    }
}

/// `2 insert, 1 wait; comment "…"; 3 rows changed`
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operations)?;
        if !self.comment.is_empty() {
            let shown = beginning(&self.comment, COMMENT_MAX);
            // Quoted as JSON, as the log escapes other texts.
            write!(f, "; comment {}", Value::string(shown))?;
        }
        if let Some(rows) = self.rows {
            let plural = if rows == 1 { "" } else { "s" };
            write!(f, "; {rows} row{plural} changed")?;
        }
        Ok(())
    }
}

/// How many operations of each name there are, and their comments, joined by LF. Framing has
/// checked the syntax.
pub(super) fn operations(params: &[u8]) -> (BTreeMap<String, usize>, String) {
    let mut operations = BTreeMap::new();
    let mut comments: Vec<String> = Vec::new();
    // The first element is the database's name.
    for element in elements(params).skip(1) {
        if let Some(name) = member(element, "op") {
            if name == "comment" {
                comments.extend(member(element, "comment"));
            }
            *operations.entry(name).or_insert(0) += 1;
        }
    }
    (operations, comments.join("\n"))
}

/// The elements of an array whose syntax has been checked.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::trusted(array);
    let mut is_open = reader.begin_array().is_ok();
    std::iter::from_fn(move || {
        is_open = is_open && matches!(reader.next_element(), Ok(true));
        is_open.then(|| reader.skip().ok()).flatten()
    })
}

/// A member of an object, if it is a string.
pub(super) fn member(object: &[u8], name: &str) -> Option<String> {
    let mut reader = Reader::trusted(object);
    reader.begin_object().ok()?;
    while let Some(found) = reader.next_member().ok()? {
        if found.as_ref() == name.as_bytes() {
            let text = reader.string().ok()?;
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
        reader.skip().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_described_by_their_operations() {
        let params = br#"["D",{"op":"insert","row":{"op":"x"},"table":"T"},{"comment":"a \"b\"\nc","op":"comment"},
            {"op":"wait"},{"op":"insert"},7,{"op":3}]"#;
        assert_eq!(
            Description::of(params).to_string(),
            r#"1 comment, 2 insert, 1 wait; comment "a \"b\"\nc""#
        );
        assert_eq!(Description::of(br#"["D"]"#).to_string(), "");
        let mut long = b"[\"D\",\"".to_vec();
        long.resize(READ_BYTES_MAX + 1, b'x');
        assert_eq!(Description::of(&long).to_string(), "1048577 bytes");
    }

    #[test]
    fn the_last_slow_transactions_are_kept_whether_or_not_they_are_logged() {
        let info = SessionInfo::new(false, String::new(), None);
        let info = info.of_peer("tcp:192.0.2.1:5000".into(), "ptcp:6641".into());
        let mut slow = SlowLog::default();
        let answer = |slow: &mut SlowLog, took_ms: u64| {
            let params = format!(
                r#"["D",{{"op":"{}"}},{{"op":"comment","comment":"{took_ms}"}}]"#,
                "x".repeat(300)
            );
            let now = Now {
                mono_ms: 10_000,
                wall_ms: 7,
            };
            let elapsed_ms = slow.slow_since(now.mono_ms - took_ms, now.mono_ms)?;
            let what = Description::of(params.as_bytes());
            slow.slow_event(now, &info, "D", elapsed_ms, &what)
        };
        for took_ms in 90..150 {
            assert!(answer(&mut slow, took_ms).is_none(), "no threshold is set");
        }
        let kept = slow.kept();
        assert_eq!(kept.len(), KEPT_MAX);
        let durations: Vec<u64> = kept.iter().map(|kept| kept.duration_ms).collect();
        assert!(
            durations.iter().copied().eq((118..150).rev()),
            "{durations:?}"
        );
        assert_eq!((kept[0].time_ms, kept[0].comment.as_str()), (7, "149"));
        assert_eq!(kept[0].operations.chars().count(), OPERATIONS_MAX);
        // A lower threshold holds for both, a higher one for the log alone.
        slow.set_threshold_ms(20);
        assert!(answer(&mut slow, 19).is_none() && slow.kept()[0].duration_ms == 149);
        assert!(answer(&mut slow, 20).is_some() && slow.kept()[0].duration_ms == 20);
        slow.set_threshold_ms(1000);
        assert!(answer(&mut slow, 500).is_none() && slow.kept()[0].duration_ms == 500);
    }
}
