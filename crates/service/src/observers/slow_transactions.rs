//! Transactions that take long, for the log: client, duration, operations.
//!
//! A commit is timed when its reply is released, so its time includes the disk. A transaction
//! without a commit is answered while it is executed, and this crate has no clock. So the last such
//! transaction is kept until the driver says the time ([`SlowLog::report`]). A transaction is
//! described only when it is slow. Time that a `wait` spends blocked is intended, so transactions
//! that blocked are left out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use corvid_data::Delta;
use corvid_json::{Reader, Value};
use corvid_log::commit_client;

use crate::message::Now;
use crate::message::{Event, Request, SessionInfo};

/// Longer requests are described by their length, bytes: parsing them again would take long, too.
const READ_BYTES_MAX: usize = 1 << 20;

/// Characters of a comment that are shown.
const COMMENT_MAX: usize = 200;

/// The threshold, and the transaction that may have been slow.
#[derive(Debug)]
pub(crate) struct SlowLog {
    threshold_ms: u64,
    /// When the present input arrived, or its replies are released.
    now_ms: u64,
    last: Option<Answered>,
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
            now_ms: 0,
            last: None,
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
        self.now_ms = now.mono_ms;
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
            Answered::Short(request) => describe(request.params()),
            Answered::Long { bytes, .. } => format!("{bytes} bytes"),
        };
        Some(slow_event(info, database, elapsed_ms, &what))
    }

    /// Reports a transaction whose long result is about to be sent, if it was slow.
    pub(crate) fn report_result(&self, request: &Request, database: &str) -> Option<Event> {
        let elapsed_ms = self.slow_request(request)?;
        let what = describe(request.params());
        Some(slow_event(&request.info, database, elapsed_ms, &what))
    }

    /// Reports a commit that is about to be answered, if it was slow.
    pub(super) fn report_commit(
        &self,
        request: &Request,
        delta: &Delta,
        database: &str,
    ) -> Option<Event> {
        let elapsed_ms = self.slow_request(request)?;
        let rows = delta.changes.len();
        let plural = if rows == 1 { "" } else { "s" };
        let mut what = describe(request.params());
        if request.params().len() > READ_BYTES_MAX {
            append_comment(&mut what, commit_client::split(&delta.comment).1);
        }
        let what = format!("{what}; {rows} row{plural} changed");
        Some(slow_event(&request.info, database, elapsed_ms, &what))
    }

    /// How long a transaction that did not block has taken, if that is slow.
    fn slow_request(&self, request: &Request) -> Option<u64> {
        let slow = self.slow_since(request.arrived_ms, self.now_ms);
        slow.filter(|_| !request.blocked)
    }

    fn slow_since(&self, since_ms: u64, now_ms: u64) -> Option<u64> {
        let elapsed_ms = now_ms.saturating_sub(since_ms);
        (elapsed_ms >= self.threshold_ms).then_some(elapsed_ms)
    }
}

fn slow_event(info: &SessionInfo, database: &str, elapsed_ms: u64, what: &str) -> Event {
    let who = info.who();
    Event::Slow(format!(
        "{who}: transaction on {database} took {elapsed_ms}ms ({what})"
    ))
}

/// `2 insert, 1 wait; comment "…"`
fn describe(params: &[u8]) -> String {
    if params.len() > READ_BYTES_MAX {
        return format!("{} bytes", params.len());
    }
    let (operations, comment) = operations(params);
    let mut out = String::new();
    for (name, count) in operations {
        let separator = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{separator}{count} {name}");
    }
    append_comment(&mut out, &comment);
    out
}

fn append_comment(out: &mut String, comment: &str) {
    if !comment.is_empty() {
        let shown: String = comment.chars().take(COMMENT_MAX).collect();
        // Quoted as JSON, as the log escapes other texts.
        let _ = write!(out, "; comment {}", Value::string(shown));
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
            describe(params),
            r#"1 comment, 2 insert, 1 wait; comment "a \"b\"\nc""#
        );
        assert_eq!(describe(br#"["D"]"#), "");
        let mut long = b"[\"D\",\"".to_vec();
        long.resize(READ_BYTES_MAX + 1, b'x');
        assert_eq!(describe(&long), "1048577 bytes");
    }
}
