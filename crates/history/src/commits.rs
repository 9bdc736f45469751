//! The commits of one file, oldest first: the records of a standalone database after its contents,
//! or the entries of a member's log that have data.
//!
//! Entries that a later entry supersedes are left out, so an entry waits until the file says that
//! it is committed. Entries at the end of the file of which it does not say so come last, and are
//! marked. Invariant: what waits is what one file has between two notes of its commit index.

use std::collections::VecDeque;

use corvid_data::{Arc, Schema, Uuid};
use corvid_json::Value;
use corvid_log::cluster::{Data, Eid, Header, Index, Kind, Parts, Record, Replay};

use crate::ReadAt;
use crate::commit::{Commit, CommitId};
use crate::error::HistoryError;
use crate::part::Part;
use crate::records::{Heading, Records};
use crate::segment;

/// Where a file's commits end, because the next file has the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// With the file.
    #[default]
    None,
    /// Before the record at this offset.
    Offset(u64),
    /// With this entry, which is committed.
    Index(u64),
}

/// Which bodies of a plain standalone file are compared with their hashes. Those of other files
/// always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Those that somebody wants ([`Commit::check`]).
    Wanted,
    /// All that are read.
    All,
}

/// A pass over the commits of a file.
#[derive(Debug)]
pub(crate) struct Commits<'t> {
    file: &'t str,
    schema: Arc<Schema>,
    base: u64,
    base_id: Option<Uuid>,
    form: Form<'t>,
}

#[derive(Debug)]
enum Form<'t> {
    Standalone {
        records: Records<'t>,
        /// How many of the next records are not commits; the first has contents.
        contents: u64,
        is_unchecked: bool,
    },
    Clustered(Box<Entries<'t>>),
}

/// The entries of a member's file.
#[derive(Debug)]
struct Entries<'t> {
    records: Records<'t>,
    log: Replay,
    /// The rows of the snapshot.
    contents: Option<Data>,
    /// Entries that may still be superseded.
    pending: VecDeque<Pending>,
    /// The entry that was returned last, whose text is lent.
    current: Option<Pending>,
    /// Entries after this one belong to the next file.
    last: u64,
    has_ended: bool,
}

#[derive(Debug)]
struct Pending {
    index: Index,
    eid: Eid,
    data: Data,
    heading: Heading,
}

impl<'t> Commits<'t> {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn open<F: ReadAt>(
        part: &'t Part<F>,
        limit: Limit,
        check: Check,
    ) -> Result<Commits<'t>, HistoryError> {
        let file = part.name();
        let failed = |error: &dyn ToString| part.error(error.to_string());
        let beginning = part.beginning()?;
        let end = match limit {
            Limit::Offset(end) => Some(end),
            _ => None,
        };
        let is_checked = beginning.kind == segment::Kind::Clustered || check == Check::All;
        let mut records = part.all_records(end, is_checked)?;
        let heading = records.next().map_err(|error| failed(&error))?;
        if heading.is_none() {
            return Err(part.error("unexpected end of file"));
        }
        let body = records.body().map_err(|error| failed(&error))?;
        match beginning.kind {
            segment::Kind::Standalone => {
                let schema = parse_schema(body).map_err(|error| part.error(error))?;
                let contents = beginning.contents;
                Ok(Commits {
                    file,
                    schema: Arc::new(schema),
                    base: contents,
                    base_id: None,
                    form: Form::Standalone {
                        contents,
                        is_unchecked: !part.is_segment() && !is_checked,
                        records,
                    },
                })
            }
            segment::Kind::Clustered => {
                let header = Header::decode(body).map_err(|error| failed(&error))?;
                let (Some(log), Some(snapshot)) = (Replay::new(&header), header.snapshot()) else {
                    let problem = "it has not joined its cluster, so there are no contents";
                    return Err(part.error(problem));
                };
                let base_id = Some(snapshot.eid.0);
                let parts = snapshot.data.parts();
                let schema = parts.as_ref().and_then(|parts| parts.schema);
                let schema = schema.ok_or_else(|| part.error("there is no schema in it"))?;
                let schema = parse_schema(schema).map_err(|error| part.error(error))?;
                let entries = Entries {
                    records,
                    log,
                    contents: Some(snapshot.data.clone()),
                    pending: VecDeque::new(),
                    current: None,
                    last: match limit {
                        Limit::Index(last) => last,
                        _ => u64::MAX,
                    },
                    has_ended: false,
                };
                Ok(Commits {
                    file,
                    schema: Arc::new(schema),
                    // The log begins after the snapshot.
                    base: entries.log.start().0.saturating_sub(1),
                    base_id,
                    form: Form::Clustered(Box::new(entries)),
                })
            }
        }
    }

    /// The schema at the beginning of the file.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The place of the contents: that of the first commit is greater.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The id of the contents, if the head of the file says it.
    pub(crate) fn base_id(&self) -> Option<Uuid> {
        self.base_id
    }

    /// The text of the record of a standalone file that names the commits before it. To be called
    /// before the first commit, in place of [`Commits::contents`], which are not read.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn last_commits(&mut self) -> Result<Option<&[u8]>, HistoryError> {
        if let Form::Standalone {
            records, contents, ..
        } = &mut self.form
            && *contents > 1
        {
            *contents -= 1;
            let file = self.file;
            let next = records.next();
            next.map_err(|error| HistoryError::file(file, error))?;
            return self.contents();
        }
        Ok(None)
    }

    /// The text of a transaction that inserts every row that the file begins with; `None` if it
    /// begins empty. To be asked for before the first commit.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn contents(&mut self) -> Result<Option<&[u8]>, HistoryError> {
        match &mut self.form {
            Form::Standalone {
                records, contents, ..
            } => {
                if *contents == 0 {
                    return Ok(None);
                }
                *contents -= 1;
                let next = records.next();
                let file = self.file;
                if next
                    .map_err(|error| HistoryError::file(file, error))?
                    .is_none()
                {
                    return Ok(None);
                }
                let body = records
                    .body()
                    .map_err(|error| HistoryError::file(file, error))?;
                Ok(Some(body))
            }
            Form::Clustered(entries) => Ok(entries
                .contents
                .as_ref()
                .and_then(Data::parts)
                .and_then(|parts| parts.transaction)),
        }
    }

    /// The next commit; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<Commit<'_>>, HistoryError> {
        let file = self.file;
        match &mut self.form {
            Form::Standalone {
                records,
                contents,
                is_unchecked,
            } => {
                let damaged = |error| HistoryError::file(file, error);
                for _ in 0..std::mem::take(contents) {
                    records.next().map_err(damaged)?;
                }
                let Some(heading) = records.next().map_err(damaged)? else {
                    return Ok(None);
                };
                let body = records.body().map_err(damaged)?;
                Ok(Some(Commit {
                    id: CommitId::Hash(heading.sha1),
                    place: heading.number,
                    start: heading.start,
                    end: heading.end,
                    schema: None,
                    transaction: Some(body),
                    is_confirmed: true,
                    sha1: is_unchecked.then_some(heading.sha1),
                }))
            }
            Form::Clustered(entries) => entries.next(file),
        }
    }
}

impl Entries<'_> {
    fn next(&mut self, file: &str) -> Result<Option<Commit<'_>>, HistoryError> {
        while !self.is_next_committed() && !self.has_ended {
            self.read(file)?;
        }
        // The next file begins after `last`, so everything up to there is committed, if the file
        // has all of it.
        let end = self.log.end().0;
        let committed = self.log.commit_index().0;
        let known = if self.last < end {
            self.last.max(committed)
        } else {
            committed
        };
        let next = self
            .pending
            .pop_front()
            .filter(|next| next.index.0 <= self.last);
        self.current = next;
        let Some(current) = &self.current else {
            return Ok(None);
        };
        let wrong = || {
            let problem = "the data of an entry is not an array of two";
            HistoryError::file(
                file,
                format_args!(
                    "{problem}, in the record at offset {}",
                    current.heading.start
                ),
            )
        };
        let Parts {
            schema,
            transaction,
        } = current.data.parts().ok_or_else(wrong)?;
        Ok(Some(Commit {
            id: CommitId::Entry(current.eid.0),
            place: current.index.0,
            start: current.heading.start,
            end: current.heading.end,
            schema,
            transaction,
            is_confirmed: current.index.0 <= known,
            sha1: None,
        }))
    }

    /// Whether no later record can supersede the next entry.
    fn is_next_committed(&self) -> bool {
        let next = self.pending.front();
        next.is_some_and(|next| next.index <= self.log.commit_index())
    }

    /// Reads one record.
    fn read(&mut self, file: &str) -> Result<(), HistoryError> {
        let damaged = |error| HistoryError::file(file, error);
        let Some(heading) = self.records.next().map_err(damaged)? else {
            self.has_ended = true;
            return Ok(());
        };
        let body = self.records.body().map_err(damaged)?;
        // A member's own state has no data, and short records.
        let record =
            decode(body).map_err(|error| HistoryError::record(file, heading.start, &error))?;
        // Inconsistent votes and commit indexes do not affect the contents.
        if let Err(violation) = self.log.apply(&record)
            && matches!(record.kind, Kind::Entry(_))
        {
            let text = violation.text(heading.number, |sid| sid.to_string());
            return Err(HistoryError::file(file, text));
        }
        if let Kind::Entry(entry) = record.kind {
            while self
                .pending
                .back()
                .is_some_and(|last| last.index >= entry.index)
            {
                self.pending.pop_back();
            }
            if let Some(payload) = entry.payload {
                self.pending.push_back(Pending {
                    index: entry.index,
                    eid: payload.eid,
                    data: payload.data,
                    heading,
                });
            }
        }
        Ok(())
    }
}

/// Decodes a record, which need not be valid JSON.
fn decode(body: &[u8]) -> Result<Record, corvid_data::WireError> {
    let mut reader = corvid_json::Reader::new(body);
    let valid = reader.outermost().and_then(|()| reader.skip().map(|_| ()));
    valid.and_then(|()| reader.end()).map_err(|error| {
        corvid_data::WireError::new(corvid_data::Tag::SyntaxError, error.to_string())
    })?;
    Record::decode(body)
}

/// Parses a schema.
pub(crate) fn parse_schema(text: &[u8]) -> Result<Schema, String> {
    let json = Value::parse(text).map_err(|error| error.to_string())?;
    Schema::from_json(&json).map_err(|error| error.to_string())
}
