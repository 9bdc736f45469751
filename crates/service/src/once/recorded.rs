//! Ids and results of transactions in the records of a file, so that a restarted server knows them
//! (docs/reference/files.md, "Transaction ids").
//!
//! In a standalone file the last line of a record's `_comment` names the commit, if its client may
//! send the transaction again. A compaction drops the records, so it writes one record without rows
//! that has a line for each of the last commits.
//!
//! ```text
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=+92b1…,1,-      insert, update, comment
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 result=[{"rows":[]}]     any other short result
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11                           a long one, or no id
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 ids=5f1c… results=-       later commits are numbered
//! ```
//!
//! The first line of a run has the seed of a [`Numbering`], so that later commits without a line
//! are known, too.
//!
//! A member's entries have ids. Its snapshots name those of the last commits, without results, in
//! the same form:
//!
//! ```text
//! compacting database online
//! corvid: the last commits before this file was written
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11
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
use std::fmt::Write as _;

use bytes::Bytes;
use corvid_data::{Recorded, Uuid};
use corvid_json::{Kind, Reader};
use corvid_log::cluster::{Eid, Term};
use corvid_log::commit_client::{LAST_COMMITS as HEADING, TRANSACTION_PREFIX as PREFIX, last_line};
use corvid_log::commit_ids::{CommitLine, NUMBERING_PREFIX, Numbering, is_commit};

use super::{IDS_MAX, is_execution_in};

/// The longest result in a line, bytes.
const RESULT_BYTES_MAX: usize = 4096;
/// Commits of which a compaction writes lines.
pub(super) const COMPACTED_MAX: usize = 10_000;
pub(crate) use corvid_log::commit_ids::END_LINE;

/// A commit as a record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedCommit {
    /// Its id.
    pub(crate) id: Uuid,
    /// The result of its transaction.
    pub(crate) result: Option<Bytes>,
}

impl RecordedCommit {
    /// Reads a line, with the seed of the numbering that it begins; `None` if it is not one of
    /// ours.
    fn parse(line: &str) -> Option<(RecordedCommit, Option<Uuid>)> {
        let CommitLine { id, seed, rest } = CommitLine::parse(line)?;
        let result = match rest.split_once('=') {
            Some(("results", items)) => Some(expand(items)?),
            Some(("result", json)) => {
                Reader::new(json.as_bytes()).value().ok()?;
                Some(json.as_bytes().to_vec())
            }
            _ => None,
        };
        let result = result.map(Bytes::from);
        Some((RecordedCommit { id, result }, seed))
    }

    /// The line.
    fn line(&self) -> Line<'_> {
        Line {
            id: self.id,
            seed: None,
            result: self.result.as_deref(),
        }
    }
}

/// The line of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The id of the commit.
    pub(crate) id: Uuid,
    /// The seed of the numbering that begins with it.
    pub(crate) seed: Option<Uuid>,
    /// The result of its transaction.
    pub(crate) result: Option<&'a [u8]>,
}

/// Appends the line of a commit, without a line feed.
fn write_line(out: &mut String, line: Line<'_>) {
    out.push_str(PREFIX);
    out.push_str(&line.id.to_string());
    if let Some(seed) = line.seed {
        out.push_str(" ids=");
        out.push_str(&seed.to_string());
    }
    let Some(result) = line.result else {
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
/// or that begins a numbering (`Some`), or any line that is not of this form.
pub(crate) fn complete_comment(comment: &mut String, line: Option<Line<'_>>) {
    match line {
        Some(line) => {
            if !comment.is_empty() {
                comment.push('\n');
            }
            write_line(comment, line);
        }
        // The client wrote it. It must not speak for a transaction.
        None if last_line(comment).starts_with(PREFIX) => comment.push('\n'),
        None => {}
    }
}

/// Whether a compaction has written these lines because clients send transactions with ids. For
/// the ids of later commits alone it writes one line, which has no result.
fn are_of_clients(commits: &VecDeque<RecordedCommit>) -> bool {
    commits.len() > 1 || commits.iter().any(|commit| commit.result.is_some())
}

/// Makes the last line of a comment the one after which the lines before it prove nothing.
pub(crate) fn end_lines(comment: &mut String) {
    if !comment.is_empty() {
        comment.push('\n');
    }
    comment.push_str(END_LINE);
}

/// The statement of one record of a file about commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedIn {
    /// It is not a commit, and names none.
    Nothing,
    /// It is the record of a commit and does not name it.
    Unnamed,
    /// It is the record of this commit.
    Named(Box<NamedCommit>),
    /// It names the last commits before the file was written.
    Last(Box<RecordedCommits>),
    /// It says that no earlier line counts.
    End,
}

/// A commit that its record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCommit {
    commit: RecordedCommit,
    /// The seed of the numbering that begins with it.
    seed: Option<Uuid>,
}

impl RecordedIn {
    /// Reads a transaction of a file.
    #[must_use]
    pub fn of(transaction: &Recorded) -> RecordedIn {
        let comment = transaction.comment.as_deref().unwrap_or_default();
        RecordedIn::of_comment(comment, !transaction.rows.is_empty())
    }

    /// Reads the comment of a transaction with rows.
    #[must_use]
    pub fn of_rows(comment: &str) -> RecordedIn {
        RecordedIn::of_comment(comment, true)
    }

    /// `has_rows`: it has rows, not only a comment.
    fn of_comment(comment: &str, has_rows: bool) -> RecordedIn {
        if last_line(comment) == END_LINE {
            return RecordedIn::End;
        }
        if is_commit(comment, has_rows) {
            let named = RecordedCommit::parse(last_line(comment));
            return named.map_or(RecordedIn::Unnamed, |(commit, seed)| {
                RecordedIn::Named(Box::new(NamedCommit { commit, seed }))
            });
        }
        // A client's transaction without rows makes no record, but another program may write one.
        match comment.split_once('\n') {
            Some((HEADING, lines)) => RecordedIn::Last(Box::new(RecordedCommits::parse(lines))),
            _ => RecordedIn::Nothing,
        }
    }
}

/// The comment of a member's snapshot: its own text, then a line for each of these commits.
pub(crate) fn snapshot_comment(text: &str, commits: &[Eid]) -> String {
    let mut out = text.to_owned();
    if !commits.is_empty() {
        out.push('\n');
        out.push_str(HEADING);
    }
    for commit in commits {
        out.push('\n');
        let (id, seed, result) = (commit.0, None, None);
        write_line(&mut out, Line { id, seed, result });
    }
    out
}

/// The last commits of a file, oldest first, and how those after them are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCommits {
    commits: VecDeque<RecordedCommit>,
    numbering: Option<Numbering>,
    /// A record shows that a client has sent a transaction with an id.
    has_ids: bool,
}

impl RecordedCommits {
    /// These commits, and the numbering of later ones.
    pub(crate) fn new(
        commits: VecDeque<RecordedCommit>,
        numbering: Option<Numbering>,
    ) -> RecordedCommits {
        let has_ids = are_of_clients(&commits);
        RecordedCommits {
            commits,
            numbering,
            has_ids,
        }
    }

    /// Whether a record shows that a client has sent a transaction with an id. The one that names
    /// the first seed may have been written for the ids alone.
    pub(crate) fn has_ids(&self) -> bool {
        self.has_ids
    }

    /// Has it say so, or not.
    pub(crate) fn set_has_ids(&mut self, has_ids: bool) {
        self.has_ids = has_ids;
    }

    /// The id of the file's last commit, if the file tells the ids of all up to its end.
    pub(crate) fn last(&self) -> Option<Uuid> {
        self.numbering?;
        self.commits.back().map(|commit| commit.id)
    }

    fn parse(lines: &str) -> RecordedCommits {
        let commits = lines.lines().filter_map(RecordedCommit::parse);
        let commits = commits.map(|(commit, _)| commit).collect();
        RecordedCommits::new(commits, Numbering::parse(last_line(lines)))
    }

    /// Adds what the next record of the file says.
    pub fn append(&mut self, record: RecordedIn) {
        let numbered = match (&record, &mut self.numbering) {
            (RecordedIn::Named(_) | RecordedIn::Unnamed, Some(numbering)) => Some(numbering.take()),
            _ => None,
        };
        match record {
            RecordedIn::Nothing => {}
            RecordedIn::Unnamed => match numbered {
                Some(id) => self.commits.push_back(RecordedCommit { id, result: None }),
                // Another program wrote it, or it was an entry of a cluster. It may be any
                // transaction, so the commits before it do not prove that one did not happen.
                None => self.commits.clear(),
            },
            RecordedIn::Named(named) => {
                self.has_ids |= named.seed.is_none() || named.commit.result.is_some();
                self.commits.push_back(named.commit);
                if let Some(seed) = named.seed {
                    self.numbering = Some(Numbering::begin(seed));
                }
            }
            RecordedIn::Last(last) => {
                self.commits.extend(last.commits);
                self.numbering = last.numbering;
                self.has_ids |= last.has_ids;
            }
            RecordedIn::End => *self = RecordedCommits::default(),
        }
        // The table keeps no more.
        let excess = self.commits.len().saturating_sub(IDS_MAX);
        self.commits.drain(..excess);
    }

    /// How the commits after them are numbered.
    pub(crate) fn numbering(&self) -> Option<Numbering> {
        self.numbering
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
            write_line(&mut out, commit.line());
        }
        if let Some(Numbering { seed, next }) = self.numbering {
            let _ = write!(out, "\n{NUMBERING_PREFIX}{seed} next={next}");
        }
        Some(out)
    }

    /// The commits whose ids the comment of a member's snapshot names.
    #[must_use]
    pub fn of_snapshot(comment: &str) -> RecordedCommits {
        let mut lines = comment.lines();
        let is_named = lines.any(|line| line == HEADING);
        let commits = lines.filter_map(RecordedCommit::parse);
        let commits: VecDeque<RecordedCommit> = commits.map(|(commit, _)| commit).collect();
        RecordedCommits {
            // Servers write these lines only if clients send transactions with ids.
            has_ids: is_named && !commits.is_empty(),
            commits,
            numbering: None,
        }
    }

    /// These commits of a snapshot, if they end with its last one. Otherwise that one alone: others
    /// may lie between, and a transaction among them would count as one that never happened.
    #[must_use]
    pub fn through(mut self, last: Eid) -> RecordedCommits {
        let id = last.0;
        if self.commits.back().is_none_or(|named| named.id != id) {
            self.commits.clear();
            self.commits.push_back(RecordedCommit { id, result: None });
        }
        self
    }

    /// Adds the commit of an entry that follows those before, made by the leader of this term.
    pub fn append_entry(&mut self, commit: Eid, term: Term) {
        let id = commit.0;
        self.has_ids |= is_execution_in(id, term);
        self.commits.push_back(RecordedCommit { id, result: None });
        if self.commits.len() > IDS_MAX {
            self.commits.pop_front();
        }
    }

    /// The commits of such a comment.
    pub(crate) fn of_comment(comment: &str) -> RecordedCommits {
        let mut commits = RecordedCommits::default();
        commits.append(RecordedIn::of_comment(comment, false));
        commits
    }
}

#[cfg(test)]
mod tests {
    use corvid_data::{RecordedRow, TableId};
    use corvid_log::commit_client;

    use super::*;

    /// The commit that a record with rows and this comment names.
    fn named(comment: &str) -> Option<RecordedCommit> {
        match RecordedIn::of_comment(comment, true) {
            RecordedIn::Named(named) => Some(named.commit),
            RecordedIn::Unnamed => None,
            other => panic!("{other:?}"),
        }
    }

    fn add(commits: &mut RecordedCommits, commit: RecordedCommit, seed: Option<Uuid>) {
        commits.append(RecordedIn::Named(Box::new(NamedCommit { commit, seed })));
    }

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
            complete_comment(&mut comment, Some(commit.line()));
            assert!(comment.contains(line), "{comment}");
            assert_eq!(named(&comment), Some(commit));
            assert_eq!(commit_client::split(&comment).1, "why\nso");
        }
        let long = format!(r#"[{{"rows":["{}"]}}]"#, "x".repeat(RESULT_BYTES_MAX));
        let mut comment = String::new();
        let long = RecordedCommit {
            result: Some(Bytes::from(long)),
            ..commit(7, None)
        };
        complete_comment(&mut comment, Some(long.line()));
        assert_eq!(named(&comment), Some(commit(7, None)));
        assert_eq!(commit_client::split(&comment).1, "");
    }

    #[test]
    fn a_client_speaks_for_no_transaction() {
        let mut own = String::new();
        write_line(&mut own, commit(7, Some("[{}]")).line());
        let mut comment = own.clone();
        complete_comment(&mut comment, None);
        assert_eq!(named(&comment), None);
        let mut comment = own.clone();
        complete_comment(&mut comment, Some(commit(8, None).line()));
        assert_eq!(named(&comment), Some(commit(8, None)));
        assert_eq!(RecordedIn::of_comment(&own, false), RecordedIn::Nothing);
        for odd in [
            "corvid: txn=x",
            "corvid: txn=07070707-0707-0707-0707-070707070707 results=",
            "corvid: txn=07070707-0707-0707-0707-070707070707 results=+1",
            "corvid: txn=07070707-0707-0707-0707-070707070707 result=[",
            "corvid: txn=07070707-0707-0707-0707-070707070707 ids=x results=-",
        ] {
            assert_eq!(named(odd), None, "{odd}");
        }
    }

    #[test]
    fn commits_of_a_source_end_the_lines_before_them() {
        let mut commits = RecordedCommits::default();
        add(&mut commits, commit(1, None), Some(Uuid([9; 16])));
        let replicated = Recorded {
            comment: Some(END_LINE.to_owned()),
            ..Recorded::default()
        };
        commits.append(RecordedIn::of(&replicated));
        commits.append(RecordedIn::Unnamed);
        add(&mut commits, commit(2, None), None);
        assert_eq!(
            commits.to_comment().map(|text| text.lines().count()),
            Some(2)
        );
    }

    /// The reference's `cluster-to-standalone` copies the comment of a member's snapshot into a
    /// record with rows, and entries after it.
    #[test]
    fn a_commit_that_nothing_names_ends_what_those_before_it_prove() {
        let of = |comment: String| Recorded {
            comment: Some(comment),
            rows: vec![RecordedRow {
                table: TableId(0),
                uuid: Uuid([5; 16]),
                columns: None,
            }]
            .into(),
            ..Recorded::default()
        };
        let snapshot = snapshot_comment("compacting", &[Eid(Uuid([1; 16])), Eid(Uuid([2; 16]))]);
        let mut commits = RecordedCommits::default();
        commits.append(RecordedIn::of(&of(snapshot)));
        assert_eq!(commits.iter().count(), 1, "the last one");
        commits.append(RecordedIn::of(&of("an entry".to_owned())));
        assert_eq!(commits.iter().count(), 0);
    }

    #[test]
    fn a_compaction_keeps_all_lines_and_the_numbering() {
        let mut commits = RecordedCommits::default();
        assert_eq!(commits.to_comment(), None);
        commits.append(RecordedIn::Unnamed);
        assert_eq!(commits.to_comment(), None, "no seed yet");
        add(&mut commits, commit(1, None), None);
        add(&mut commits, commit(2, Some("[{}]")), Some(Uuid([9; 16])));
        commits.append(RecordedIn::Unnamed);
        commits.append(RecordedIn::Nothing);
        add(&mut commits, commit(3, None), None);
        let comment = commits.to_comment().expect("commits");
        let mut compacted = RecordedCommits::of_comment(&comment);
        assert_eq!(compacted, commits);
        assert_eq!(comment.lines().count(), 6);
        // Numbers go on with the records that follow.
        for commits in [&mut compacted, &mut commits] {
            commits.append(RecordedIn::Unnamed);
        }
        assert_eq!(compacted, commits);
        assert_eq!(compacted.iter().count(), 5);
        let ids: std::collections::BTreeSet<Uuid> =
            commits.iter().map(|commit| commit.id).collect();
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn a_seed_stands_between_the_id_and_the_result() {
        let mut comment = String::new();
        let named = commit(7, Some("[{},{\"count\":1}]"));
        let line = Line {
            seed: Some(Uuid([9; 16])),
            ..named.line()
        };
        complete_comment(&mut comment, Some(line));
        assert_eq!(
            comment,
            "corvid: txn=07070707-0707-0707-0707-070707070707 ids=09090909-0909-0909-0909-090909090909 results=-,1"
        );
        let seed = Some(Uuid([9; 16]));
        assert_eq!(
            RecordedIn::of_comment(&comment, true),
            RecordedIn::Named(Box::new(NamedCommit {
                commit: named,
                seed
            }))
        );
    }
}
