//! Ids and results of transactions in the records of a standalone file, so that a restarted server
//! knows them (docs/reference/files.md, "Transaction ids").
//!
//! The last line of a record's `_comment` names the commit, if its client may send the transaction
//! again. A compaction drops the records, so it writes one record without rows that has a line for
//! each of the last commits.
//!
//! ```text
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=+92b1…,1,-      insert, update, comment
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 result=[{"rows":[]}]     any other short result
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11                           a long one, or no id
//! ```
//!
//! A backup's commits have no ids of its own. If its file has lines of an earlier time, the records
//! of these commits end them (`corvid: txn=none`).
//!
//! Invariant: the lines of a file are those of its last commits with ids, without a gap up to its
//! end. So a commit that is in the file and is followed by no line of a transaction proves that the
//! transaction was not executed after it, as in memory. A line that a client wrote as its own
//! comment is never the last one.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_data::{Recorded, Uuid};
use corvid_json::{Kind, Reader};

use super::IDS_MAX;

/// The beginning of a line.
const PREFIX: &str = "corvid: txn=";
/// The longest result in a line, bytes.
const RESULT_BYTES_MAX: usize = 4096;
/// Commits of which a compaction writes lines.
pub(super) const COMPACTED_MAX: usize = 10_000;
/// The comment of a record after which the lines before it prove nothing.
pub(crate) const END_LINE: &str = "corvid: txn=none";
/// The comment line of the record without rows, before the commits.
const HEADING: &str = "corvid: the last commits before this file was written";

/// A commit as a record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedCommit {
    /// Its id.
    pub(crate) id: Uuid,
    /// The result of its transaction.
    pub(crate) result: Option<Bytes>,
}

impl RecordedCommit {
    /// Reads a line; `None` if it is not one of ours.
    fn parse(line: &str) -> Option<RecordedCommit> {
        let rest = line.strip_prefix(PREFIX)?;
        let (id, result) = rest.split_once(' ').unwrap_or((rest, ""));
        let id = Uuid::parse(id.as_bytes())?;
        let result = match result.split_once('=') {
            Some(("results", items)) => Some(expand(items)?),
            Some(("result", json)) => {
                Reader::new(json.as_bytes()).value().ok()?;
                Some(json.as_bytes().to_vec())
            }
            _ => None,
        };
        Some(RecordedCommit {
            id,
            result: result.map(Bytes::from),
        })
    }

    /// Appends the line, without a line feed.
    fn write(&self, out: &mut String) {
        write_line(out, self.id, self.result.as_deref());
    }
}

/// Appends the line of a commit, without a line feed.
fn write_line(out: &mut String, id: Uuid, result: Option<&[u8]>) {
    out.push_str(PREFIX);
    out.push_str(&id.to_string());
    let Some(result) = result else {
        return;
    };
    if let Some(items) = shorten(result) {
        out.push_str(" results=");
        out.push_str(&items);
    } else if result.len() <= RESULT_BYTES_MAX
        && let Ok(text) = std::str::from_utf8(result)
        // A line feed would end the line. Our own results have none.
        && !text.contains('\n')
    {
        out.push_str(" result=");
        out.push_str(text);
    }
}

/// The usual results of operations in a short form; `None` if there is another one.
fn shorten(result: &[u8]) -> Option<String> {
    let mut reader = Reader::trusted(result);
    reader.begin_array().ok()?;
    let mut out = String::new();
    while reader.next_element().ok()? {
        if out.len() > RESULT_BYTES_MAX {
            return None;
        }
        if !out.is_empty() {
            out.push(',');
        }
        if reader.peek().ok()? != Kind::Object {
            return None;
        }
        let text = std::str::from_utf8(reader.skip().ok()?).ok()?;
        if text == "{}" {
            out.push('-');
        } else if let Some(uuid) = between(text, r#"{"uuid":["uuid",""#, r#""]}"#) {
            out.push('+');
            out.push_str(&Uuid::parse(uuid.as_bytes())?.to_string());
        } else {
            let count = between(text, r#"{"count":"#, "}")?;
            out.push_str(&count.parse::<u64>().ok()?.to_string());
        }
    }
    // An empty result has no short form, because an empty list of items has one item.
    (!out.is_empty()).then_some(out)
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// The result with these items.
fn expand(items: &str) -> Option<Vec<u8>> {
    let mut out = vec![b'['];
    for item in items.split(',') {
        if out.len() > 1 {
            out.push(b',');
        }
        let text = if item == "-" {
            "{}".to_owned()
        } else if let Some(uuid) = item.strip_prefix('+') {
            format!(r#"{{"uuid":["uuid","{}"]}}"#, Uuid::parse(uuid.as_bytes())?)
        } else {
            format!(r#"{{"count":{}}}"#, item.parse::<u64>().ok()?)
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b']');
    Some(out)
}

/// Makes the last line of a commit's comment that of a transaction which its client may send again
/// (`Some`: the commit's id, and the result), or any line that is not of this form.
pub(crate) fn complete_comment(comment: &mut String, commit: Option<(Uuid, Option<&[u8]>)>) {
    match commit {
        Some((id, result)) => {
            if !comment.is_empty() {
                comment.push('\n');
            }
            write_line(comment, id, result);
        }
        // The client wrote it. It must not speak for a transaction.
        None if last_line(comment).starts_with(PREFIX) => comment.push('\n'),
        None => {}
    }
}

/// A commit's comment without our line, for people.
pub(crate) fn clients_comment(comment: &str) -> &str {
    let last = last_line(comment);
    if !last.starts_with(PREFIX) {
        return comment;
    }
    let rest = &comment[..comment.len() - last.len()];
    rest.strip_suffix('\n').unwrap_or(rest)
}

fn last_line(comment: &str) -> &str {
    comment.rsplit_once('\n').map_or(comment, |(_, last)| last)
}

/// The commits that a record names. `has_rows`: it is the record of a commit.
pub(crate) fn of_record(comment: Option<&str>, has_rows: bool) -> Vec<RecordedCommit> {
    let Some(comment) = comment.filter(|comment| comment.contains(PREFIX)) else {
        return Vec::new();
    };
    if has_rows {
        return RecordedCommit::parse(last_line(comment))
            .into_iter()
            .collect();
    }
    let mut lines = comment.lines();
    // A client's transaction without rows makes no record, but another program may write one.
    if lines.next() != Some(HEADING) {
        return Vec::new();
    }
    lines.filter_map(RecordedCommit::parse).collect()
}

/// The last commits of a file that its records name, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCommits {
    commits: VecDeque<RecordedCommit>,
    /// A record says that no earlier commit counts.
    ends_earlier: bool,
}

impl RecordedCommits {
    /// Adds commits that follow the ones so far.
    pub(crate) fn extend(&mut self, commits: Vec<RecordedCommit>) {
        self.commits.extend(commits);
        // The table keeps no more.
        let excess = self.commits.len().saturating_sub(IDS_MAX);
        self.commits.drain(..excess);
    }

    /// The commits that one transaction of a file names.
    #[must_use]
    pub fn of(transaction: &Recorded) -> RecordedCommits {
        let has_rows = !transaction.rows.is_empty();
        let comment = transaction.comment.as_deref();
        RecordedCommits {
            commits: of_record(comment, has_rows).into(),
            ends_earlier: comment == Some(END_LINE),
        }
    }

    /// Adds commits that follow the ones so far.
    pub fn append(&mut self, later: RecordedCommits) {
        if later.ends_earlier {
            self.commits.clear();
        }
        self.extend(later.commits.into());
    }

    /// The commits, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &RecordedCommit> {
        self.commits.iter()
    }

    /// The comment of the record without rows; `None` without commits.
    pub(crate) fn to_comment(&self) -> Option<String> {
        if self.commits.is_empty() {
            return None;
        }
        let mut out = HEADING.to_owned();
        for commit in &self.commits {
            out.push('\n');
            commit.write(&mut out);
        }
        Some(out)
    }

    /// The commits of such a comment.
    pub(crate) fn of_comment(comment: &str) -> RecordedCommits {
        RecordedCommits {
            commits: of_record(Some(comment), false).into(),
            ends_earlier: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u8, result: Option<&'static str>) -> RecordedCommit {
        RecordedCommit {
            id: Uuid([number; 16]),
            result: result.map(Bytes::from),
        }
    }

    #[test]
    fn results_survive_in_a_line() {
        let insert = r#"[{"uuid":["uuid","d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10"]},{"count":3},{}]"#;
        for (result, line) in [
            (
                Some(insert),
                " results=+d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10,3,-",
            ),
            (Some("[{}]"), " results=-"),
            (Some("[]"), " result=[]"),
            (Some(r#"[{"count":1},{"rows":[{"a":"b\n"}]}]"#), ""),
            (Some(r#"[null,{"error":"x"}]"#), ""),
            (None, ""),
        ] {
            let commit = commit(7, result);
            let mut comment = "why\nso".to_owned();
            complete_comment(&mut comment, Some((commit.id, commit.result.as_deref())));
            assert!(comment.contains(line), "{comment}");
            assert_eq!(of_record(Some(&comment), true), [commit]);
            assert_eq!(clients_comment(&comment), "why\nso");
        }
        let long = format!(r#"[{{"rows":["{}"]}}]"#, "x".repeat(RESULT_BYTES_MAX));
        let mut comment = String::new();
        complete_comment(&mut comment, Some((Uuid([7; 16]), Some(long.as_bytes()))));
        assert_eq!(of_record(Some(&comment), true), [commit(7, None)]);
        assert_eq!(clients_comment(&comment), "");
    }

    #[test]
    fn a_client_speaks_for_no_transaction() {
        let mut own = String::new();
        commit(7, Some("[{}]")).write(&mut own);
        let mut comment = own.clone();
        complete_comment(&mut comment, None);
        assert_eq!(of_record(Some(&comment), true), []);
        let mut comment = own.clone();
        complete_comment(&mut comment, Some((Uuid([8; 16]), None)));
        assert_eq!(of_record(Some(&comment), true), [commit(8, None)]);
        assert_eq!(of_record(Some(&own), false), []);
        for odd in [
            "corvid: txn=x",
            "corvid: txn=07070707-0707-0707-0707-070707070707 results=",
            "corvid: txn=07070707-0707-0707-0707-070707070707 results=+1",
            "corvid: txn=07070707-0707-0707-0707-070707070707 result=[",
        ] {
            assert_eq!(of_record(Some(odd), true), [], "{odd}");
        }
    }

    #[test]
    fn commits_of_a_source_end_the_lines_before_them() {
        let mut commits = RecordedCommits::default();
        commits.extend(vec![commit(1, None)]);
        let replicated = Recorded {
            comment: Some(END_LINE.to_owned()),
            ..Recorded::default()
        };
        commits.append(RecordedCommits::of(&replicated));
        commits.extend(vec![commit(2, None)]);
        assert_eq!(
            commits.to_comment().map(|text| text.lines().count()),
            Some(2)
        );
    }

    #[test]
    fn a_compaction_keeps_all_lines() {
        let mut commits = RecordedCommits::default();
        assert_eq!(commits.to_comment(), None);
        commits.extend(vec![commit(1, None), commit(2, Some("[{}]"))]);
        let comment = commits.to_comment().expect("commits");
        assert_eq!(RecordedCommits::of_comment(&comment), commits);
        assert_eq!(of_record(Some(&comment), false).len(), 2);
    }
}
