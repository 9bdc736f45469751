//! The history of one database: its segments and its present file, in order.
//!
//! ```text
//! segment 1   [schema][1] ... [n] ... [k]
//! segment 2            [schema][rows][n+1] ... [k] ... [m] ... [o]
//! present file                             [schema][rows][m+1] ... [o] ...
//! ```
//!
//! A file begins with the contents after commit n, and has a copy of what was written to the file
//! before it while it was made. So the commits of a file end where the next one begins; in a
//! standalone database that is found by the copied records, which are equal byte for byte, and in a
//! cluster by the index of the snapshot.
//!
//! Opening reads the indexes of segments only. A plain file is scanned when it is needed.

use std::cell::OnceCell;

use corvid_log::{HistoryForm, HistoryName};

use crate::ReadAt;
use crate::commits::{Check, Commits, Limit};
use crate::error::HistoryError;
use crate::part::Part;
use crate::scan::date_of;
use crate::segment::{FrameMemory, Identity, Kind};

/// Attempts to open the files while a server compresses or removes some of them.
const ATTEMPTS: usize = 5;

/// The files of one database's history.
pub trait Files {
    /// An open file.
    type Handle: ReadAt;

    /// Opens the present file; `None` if it does not exist.
    ///
    /// # Errors
    /// The operating system's error text.
    fn present(&self) -> Result<Option<Self::Handle>, String>;

    /// The names in the folder of the history; none without a folder.
    ///
    /// # Errors
    /// The operating system's error text.
    fn list(&self) -> Result<Vec<String>, String>;

    /// Opens a file of the folder.
    ///
    /// # Errors
    /// The operating system's error text.
    fn open(&self, name: &str) -> Result<Opened<Self::Handle>, String>;

    /// How messages name a file of the folder, or the present file.
    fn shown(&self, name: Option<&str>) -> String;
}

/// The outcome of opening a file of the history's folder.
#[derive(Debug)]
pub enum Opened<F> {
    /// The open file.
    Handle(F),
    /// It does not exist any more.
    Gone,
    /// It is a second name of the present file that was opened last.
    Present,
}

/// The history of a database, open for reading.
#[derive(Debug)]
pub struct Timeline<F> {
    parts: Vec<Part<F>>,
    limits: Vec<OnceCell<Limit>>,
    gaps: Vec<String>,
}

/// A moment of the history: after a commit, or the contents that a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The file, counting from the oldest.
    pub part: usize,
    /// The number of the record, or the index of the entry.
    pub place: u64,
    /// The offset just past its record, in a standalone database.
    pub(crate) end: u64,
}

/// Where the present file ends for a reader, although a server may be writing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Before the record at this offset of a standalone file.
    Offset(u64),
    /// With this entry of a member's log, which is committed.
    Index(u64),
}

/// The number in the name of a file of the history, and whether the file is compressed. `None` for
/// any other name, also for that of a segment that is being written.
#[must_use]
pub fn parse_name(name: &str) -> Option<(u64, bool)> {
    let name: HistoryName = name.parse().ok()?;
    match name.form {
        HistoryForm::Segment => Some((name.number, true)),
        HistoryForm::Plain => Some((name.number, false)),
        HistoryForm::Partial | HistoryForm::Gone => None,
    }
}

/// The highest number that the folder keeps taken for a missing file; 0: there is none.
fn last_gone(names: &[String]) -> u64 {
    let names = names.iter().filter_map(|name| name.parse().ok());
    let gone = names.filter(|name: &HistoryName| name.form == HistoryForm::Gone);
    gone.map(|name| name.number).fold(0, u64::max)
}

impl<F: ReadAt> Timeline<F> {
    /// Opens all files.
    ///
    /// # Errors
    /// A file cannot be opened, a segment is damaged or belongs to another database, or there is no
    /// file at all.
    pub fn open<S: Files<Handle = F>>(files: &S) -> Result<Timeline<F>, HistoryError> {
        // A server may compress, prune and replace files meanwhile. The present file comes first:
        // if it is replaced afterwards, it is still what it was.
        for _ in 0..ATTEMPTS {
            if let Some((parts, gone)) = open_all(files)? {
                return Timeline::before_gone(parts, gone);
            }
        }
        let problem = "files appear and disappear while they are opened; try again";
        Err(HistoryError::file(&files.shown(None), problem))
    }

    /// Makes a timeline of files that are open, oldest first.
    ///
    /// # Errors
    /// A segment belongs to another database than the last file.
    pub fn of(parts: Vec<Part<F>>) -> Result<Timeline<F>, HistoryError> {
        Timeline::before_gone(parts, 0)
    }

    /// As [`Timeline::of`], of a folder in which this number belongs to a missing file; 0: none.
    fn before_gone(mut parts: Vec<Part<F>>, gone: u64) -> Result<Timeline<F>, HistoryError> {
        // A server that was joining a cluster had a file without contents.
        while parts.len() > 1 && parts[0].has_not_joined() {
            parts.remove(0);
        }
        let gaps = check_numbers(&parts, gone);
        let limits = parts.iter().map(|_| OnceCell::new()).collect();
        check_identities(&parts)?;
        Ok(Timeline {
            parts,
            limits,
            gaps,
        })
    }

    /// Leaves out what the present file has after `bound`. Called before anything is read.
    ///
    /// # Errors
    /// The file cannot be read, or is of the other kind: another database has taken its name.
    ///
    /// # Panics
    /// Something has been read: it may have been beyond the bound.
    pub fn end_at(&mut self, bound: Bound) -> Result<(), HistoryError> {
        let last = self.parts.len() - 1;
        let kind = self.parts[last].beginning()?.kind;
        // A bound of the other kind would be none, and show what may still be undone.
        let limit = match (bound, kind) {
            (Bound::Offset(offset), Kind::Standalone) => Limit::Offset(offset),
            (Bound::Index(index), Kind::Clustered) => Limit::Index(index),
            (Bound::Offset(_), Kind::Clustered) | (Bound::Index(_), Kind::Standalone) => {
                return Err(self.parts[last].error("it is not the file of the served database"));
            }
        };
        let is_first = self.limits[last].set(limit).is_ok();
        assert!(is_first, "a history is bounded before it is read");
        Ok(())
    }

    /// The files, oldest first.
    #[must_use]
    pub fn parts(&self) -> &[Part<F>] {
        &self.parts
    }

    /// Descriptions, for people, of files that are missing or out of order.
    #[must_use]
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Which database it is.
    ///
    /// # Errors
    /// The last file cannot be read.
    pub fn identity(&self) -> Result<&Identity, HistoryError> {
        self.parts[self.parts.len() - 1].identity()
    }

    /// The commits of a file that the next file does not have.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn commits(&self, part: usize) -> Result<Commits<'_>, HistoryError> {
        Commits::open(&self.parts[part], self.limit(part)?, Check::Wanted)
    }

    /// Where the commits of a file end.
    ///
    /// # Errors
    /// This file or the next one is damaged.
    pub(crate) fn limit(&self, part: usize) -> Result<Limit, HistoryError> {
        if let Some(limit) = self.limits[part].get() {
            return Ok(*limit);
        }
        let limit = match self.parts.get(part + 1) {
            None => Limit::None,
            Some(next) => match next.identity()?.kind {
                Kind::Clustered => {
                    Limit::Index(Commits::open(next, Limit::None, Check::Wanted)?.base())
                }
                Kind::Standalone => copied_from(&self.parts[part], next)?,
            },
        };
        Ok(*self.limits[part].get_or_init(|| limit))
    }
}

/// Open files, oldest first, and the last number that belongs to a missing one ([`last_gone`]).
type OpenParts<F> = (Vec<Part<F>>, u64);

/// Opens all files once; `None` if one that was listed is gone.
fn open_all<S: Files>(files: &S) -> Result<Option<OpenParts<S::Handle>>, HistoryError> {
    let shown = files.shown(None);
    let present = files
        .present()
        .map_err(|error| HistoryError::file(&shown, error))?;
    let names = files
        .list()
        .map_err(|error| HistoryError::file(&shown, error))?;
    let gone = last_gone(&names);
    let mut numbered: Vec<(u64, bool, String)> = names
        .into_iter()
        .filter_map(|name| parse_name(&name).map(|(number, zst)| (number, zst, name)))
        .collect();
    // A file that was just compressed has both names for a moment.
    numbered.sort_by_key(|(number, is_compressed, _)| (*number, !is_compressed));
    numbered.dedup_by_key(|(number, ..)| *number);
    let memory = FrameMemory::default();
    let mut parts = Vec::with_capacity(numbered.len() + 1);
    for (number, is_compressed, name) in &numbered {
        let shown = files.shown(Some(name));
        let opened = files.open(name);
        let file = match opened.map_err(|error| HistoryError::file(&shown, error))? {
            Opened::Handle(file) => file,
            Opened::Gone => return Ok(None),
            Opened::Present => continue,
        };
        parts.push(match is_compressed {
            true => Part::segment(&shown, *number, file, memory.clone())?,
            false => Part::plain(&shown, Some(*number), file),
        });
    }
    match present {
        Some(file) => parts.push(Part::present(&shown, file)?),
        None if parts.is_empty() => {
            return Err(HistoryError::file(&shown, "No such file or directory"));
        }
        None => {}
    }
    Ok(Some((parts, gone)))
}

/// Reports numbers that are missing between the files. The present file has none of its own: it
/// follows `gone`, if that is the last one.
fn check_numbers<F: ReadAt>(parts: &[Part<F>], gone: u64) -> Vec<String> {
    let mut gaps = Vec::new();
    for (part, next) in parts.iter().zip(&parts[1.min(parts.len())..]) {
        let Some(number) = part.number() else {
            continue;
        };
        let follower = next.number().unwrap_or(gone.saturating_add(1));
        let missing = match follower.saturating_sub(number) {
            0 | 1 => continue,
            2 => format!("segment {} is missing", number + 1),
            _ => format!("segments {} to {} are missing", number + 1, follower - 1),
        };
        gaps.push(format!("{missing} before {}", next.name()));
    }
    gaps
}

/// Checks that all segments are of one database. Plain files are checked as far as that is known.
fn check_identities<F: ReadAt>(parts: &[Part<F>]) -> Result<(), HistoryError> {
    // An unreadable present file is reported when it is needed.
    let Some(expected) = parts.iter().rev().find_map(Part::identity_if_known) else {
        return Ok(());
    };
    for part in parts {
        let Some(identity) = part.identity_if_known() else {
            continue;
        };
        if let Some(difference) = difference(&identity, &expected) {
            return Err(part.error(format_args!(
                "it does not belong to this history: {difference}"
            )));
        }
    }
    Ok(())
}

/// Why a file is not of the same database.
fn difference(found: &Identity, expected: &Identity) -> Option<String> {
    let shown = |id: corvid_data::Uuid| id.to_text().map(char::from).iter().collect::<String>();
    if found.kind != expected.kind {
        let kind = |kind| match kind {
            Kind::Standalone => "a standalone database",
            Kind::Clustered => "a cluster's member",
        };
        return Some(format!(
            "it is the file of {}, the others are of {}",
            kind(found.kind),
            kind(expected.kind)
        ));
    }
    if found.name != expected.name {
        return Some(format!(
            "its database is \"{}\", that of the others is \"{}\"",
            found.name, expected.name
        ));
    }
    for (what, found, expected) in [
        ("cluster", found.cluster_id, expected.cluster_id),
        ("server", found.server_id, expected.server_id),
    ] {
        if let (Some(found), Some(expected)) = (found, expected)
            && found != expected
        {
            return Some(format!(
                "its {what} ID is {}, that of the others is {}",
                shown(found),
                shown(expected)
            ));
        }
    }
    None
}

/// The offset in a standalone file where the records begin that the next file has copied. After a
/// conversion they are not copies: the same commits were recorded again under the new schema, and
/// only their dates are the same.
fn copied_from<F: ReadAt>(part: &Part<F>, next: &Part<F>) -> Result<Limit, HistoryError> {
    let first = {
        let mut records = next.records(None)?;
        let index = next.index()?;
        let contents = index.records - index.transactions;
        let mut first = None;
        while let Some(heading) = records.next().map_err(|error| next.error(error))? {
            if heading.number >= contents {
                let body = records.body().map_err(|error| next.error(error))?;
                first = Some((heading, date_of(body)));
                break;
            }
        }
        first
    };
    let Some((first, date_ms)) = first else {
        return Ok(Limit::None);
    };
    let is_converted = have_different_schemas(part, next)?;
    for frame in &part.index()?.frames {
        let Some(within) = frame.first_record else {
            continue;
        };
        // The copy has the same date.
        let may_have = match (date_ms, frame.dates_ms) {
            (Some(date_ms), Some((least, greatest))) => {
                (is_converted || least <= date_ms) && date_ms <= greatest
            }
            (Some(_), None) => false,
            (None, _) => true,
        };
        if !may_have {
            continue;
        }
        let mut start = (frame.text_offset + u64::from(within), frame.record);
        let mut records = part.records_at(start, None)?;
        for _ in 0..frame.records {
            let heading = records.next().map_err(|error| part.error(error))?;
            let Some(heading) = heading else { break };
            start = (heading.start, heading.number);
            let is_it = match date_ms.filter(|_| is_converted) {
                Some(date_ms) => {
                    let body = records.body().map_err(|error| part.error(error))?;
                    heading.number > 0 && date_of(body).is_some_and(|date| date >= date_ms)
                }
                None => {
                    heading.sha1 == first.sha1
                        && is_copy(part, start, next, (first.start, first.number))?
                }
            };
            if is_it {
                return Ok(Limit::Offset(heading.start));
            }
        }
    }
    Ok(Limit::None)
}

/// Whether two standalone files have different schemas.
fn have_different_schemas<F: ReadAt>(part: &Part<F>, next: &Part<F>) -> Result<bool, HistoryError> {
    let schema = |part: &Part<F>| {
        let heading = part
            .records(None)?
            .next()
            .map_err(|error| part.error(error))?;
        Ok::<_, HistoryError>(heading.map(|heading| heading.sha1))
    };
    Ok(schema(part)? != schema(next)?)
}

/// Whether the records of `part` from `start` to its end are those of `next` from `copy` on.
fn is_copy<F: ReadAt>(
    part: &Part<F>,
    start: (u64, u64),
    next: &Part<F>,
    copy: (u64, u64),
) -> Result<bool, HistoryError> {
    let mut records = part.records_at(start, None)?;
    let mut copies = next.records_at(copy, None)?;
    while let Some(heading) = records.next().map_err(|error| part.error(error))? {
        let copied = copies.next().map_err(|error| next.error(error))?;
        let is_same = copied.is_some_and(|copied| {
            copied.sha1 == heading.sha1 && copied.end - copied.start == heading.end - heading.start
        });
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}
