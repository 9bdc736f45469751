//! The rows that changed since a transaction that a client names, as they were after it: what a
//! client that was away needs besides the present rows (docs/internals/monitors.md, "Long
//! absences").
//!
//! ```text
//! pass 1, newest file first    ids of commits; (table, row) of every change after the named one
//! pass 2, the file that has it the contents of these rows then, and of no others
//! ```
//!
//! Invariant: an answer is complete, or there is none. Every file from the named commit on must
//! begin where the one before it ends ([`Mark`]), under the same schema. Memory is bounded by
//! [`PastLimits`] and by the longest record of a commit.

use std::collections::BTreeSet;

use corvid_data::{Arc, AtomRef, Datum, Schema, TableId, Uuid};
use corvid_json::{Kind, Reader};
use corvid_log::CommitIds;
use corvid_log::cluster::TransactionReader;
use corvid_log::commit_ids::Numbering;
use memchr::memmem;

use crate::ReadAt;
use crate::change::Columns;
use crate::commit::{Commit, CommitId};
use crate::commits::{Check, Commits, parse_schema};
use crate::error::HistoryError;
use crate::filter::Selection;
use crate::segment;
use crate::timeline::Timeline;
use crate::walk::{State, convert, rows_of};

/// Bytes of a row apart from its columns.
const ROW_BYTES: u64 = 64;
/// Bytes of an atom apart from the characters of a string.
const ATOM_BYTES: u64 = 16;

/// How much an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastLimits {
    /// Rows that changed.
    pub rows_max: usize,
    /// Bytes of their contents, estimated.
    pub bytes_max: u64,
    /// Bytes of the record that has the contents with which a file begins: it is read whole.
    pub record_max: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPast {
    /// No file has the transaction.
    #[error("no file has the transaction")]
    Unknown,
    /// More has changed since than the limits allow.
    #[error("too much has changed since")]
    TooMuch,
    /// The schema has changed since.
    #[error("the database was converted since")]
    Converted,
    /// Commits may be missing between this file and the one before it, or at its end.
    #[error("commits may be missing at {0}")]
    Missing(String),
    /// A file cannot be read.
    #[error(transparent)]
    Unusable(#[from] HistoryError),
}

/// A row as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRow {
    /// Its table.
    pub table: TableId,
    /// Its UUID.
    pub uuid: Uuid,
    /// Its columns, in the order of the schema; `None` if it did not exist.
    pub columns: Option<Columns>,
}

/// The rows that changed since a transaction, as they were after it.
#[derive(Clone, Debug)]
pub struct Past {
    /// The schema then and now.
    pub schema: Arc<Schema>,
    /// The rows, sorted by table and UUID.
    pub rows: Vec<PastRow>,
    /// The id of the last commit that was read; `None` if nothing says it.
    pub last: Option<Uuid>,
}

type Keys = BTreeSet<(TableId, Uuid)>;

/// The rows that changed, in some tables.
struct Changed<'n> {
    names: &'n [String],
    tables: Vec<bool>,
    keys: Keys,
    rows_max: usize,
    is_too_much: bool,
}

impl Selection for Changed<'_> {
    fn wants_table(&self, table: TableId) -> bool {
        self.tables.get(usize::from(table.0)) == Some(&true)
    }

    fn wants(&self, table: TableId, uuid: Uuid) -> bool {
        self.keys.contains(&(table, uuid))
    }
}

impl<'n> Changed<'n> {
    fn new(names: &'n [String], rows_max: usize) -> Changed<'n> {
        Changed {
            names,
            tables: Vec::new(),
            keys: Keys::new(),
            rows_max,
            is_too_much: false,
        }
    }

    fn set_schema(&mut self, schema: &Schema) {
        let is_asked =
            |table: &corvid_data::TableSchema| self.names.iter().any(|name| **name == *table.name);
        self.tables = schema.tables().iter().map(is_asked).collect();
    }

    /// The same rows under another schema, in which tables have other numbers.
    fn under(&self, own: &Schema, other: &Schema) -> Changed<'n> {
        let mut changed = Changed::new(self.names, self.rows_max);
        changed.set_schema(other);
        let keys = self.keys.iter().filter_map(|(table, uuid)| {
            let table = other.table_named(own.table(*table).name.as_bytes())?;
            Some((table, *uuid))
        });
        changed.keys = keys.collect();
        changed
    }

    /// Forgets everything: the changes so far came before the named commit.
    fn clear(&mut self) {
        self.keys.clear();
        self.is_too_much = false;
    }

    fn add(&mut self, key: (TableId, Uuid)) {
        if !self.is_too_much {
            self.keys.insert(key);
            self.is_too_much = self.keys.len() > self.rows_max;
        }
    }

    fn merge(&mut self, later: Changed<'_>) {
        self.is_too_much |= later.is_too_much;
        self.keys.extend(later.keys);
        self.is_too_much |= self.keys.len() > self.rows_max;
    }
}

/// A moment, as two files tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing tells it.
    Unknown,
    /// After this entry of a cluster's log.
    Entry(Uuid),
    /// Before the next record of this numbering.
    Numbered(Numbering),
}

impl Mark {
    fn of(ids: &CommitIds) -> Mark {
        ids.numbering().map_or(Mark::Unknown, Mark::Numbered)
    }
}

/// The findings of pass 1 in one file.
struct Pass<'n> {
    /// The place of the named commit; that of the contents is the base.
    found: Option<u64>,
    /// The changes after it, or all.
    changed: Changed<'n>,
    /// The schema has changed after it, or at all.
    is_converted: bool,
    /// Where the file begins and ends, which its neighbours must say, too.
    first: Mark,
    end: Mark,
    /// The id of its last commit.
    last: Option<Uuid>,
    first_schema: Arc<Schema>,
    last_schema: Arc<Schema>,
}

impl<F: ReadAt> Timeline<F> {
    /// The rows of these tables that changed after the commit `txn`, as they were after it.
    ///
    /// # Errors
    /// The answer is not known, or too long.
    pub fn past(&self, txn: Uuid, tables: &[String], limits: PastLimits) -> Result<Past, NoPast> {
        let mut later: Option<Pass<'_>> = None;
        for part in (0..self.parts().len()).rev() {
            let kind = self.parts()[part].beginning()?.kind;
            if kind == segment::Kind::Clustered {
                self.check_contents(part, 0, limits)?;
            }
            let mut pass = self.pass(part, txn, tables, limits.rows_max)?;
            if let Some(later) = later.take() {
                if !pass.last_schema.same_as(&later.first_schema) {
                    return Err(NoPast::Converted);
                }
                if pass.end == Mark::Unknown || pass.end != later.first {
                    let name = self.parts()[part + 1].name();
                    return Err(NoPast::Missing(name.to_owned()));
                }
                pass.changed.merge(later.changed);
                pass.last = later.last;
                pass.end = later.end;
                pass.last_schema = later.last_schema;
            }
            if pass.is_converted {
                return Err(NoPast::Converted);
            }
            // More files could only add to it.
            if pass.changed.is_too_much {
                return Err(NoPast::TooMuch);
            }
            let Some(place) = pass.found else {
                later = Some(pass);
                continue;
            };
            if kind == segment::Kind::Standalone {
                self.check_contents(part, 1, limits)?;
            }
            let rows = self.rows_at(part, place, &pass, limits.bytes_max)?;
            return Ok(Past {
                schema: pass.last_schema,
                rows,
                last: pass.last,
            });
        }
        Err(NoPast::Unknown)
    }

    /// Checks that the record with the contents of a file is not too long.
    fn check_contents(&self, part: usize, number: u64, limits: PastLimits) -> Result<(), NoPast> {
        let file = &self.parts()[part];
        let mut records = file.all_records(None, false)?;
        while let Some(heading) = records.next().map_err(|error| file.error(error))? {
            if heading.number < number {
                continue;
            }
            return match heading.end - heading.start <= limits.record_max {
                true => Ok(()),
                false => Err(NoPast::TooMuch),
            };
        }
        Ok(())
    }

    /// Pass 1.
    fn pass<'n>(
        &self,
        part: usize,
        txn: Uuid,
        tables: &'n [String],
        rows_max: usize,
    ) -> Result<Pass<'n>, NoPast> {
        let name = self.parts()[part].name();
        let mut commits = Commits::open(&self.parts()[part], self.limit(part)?, Check::All)?;
        let mut ids = CommitIds::default();
        if let Some(text) = commits.last_commits()? {
            ids.append(&comment(text).unwrap_or_default(), has_rows(text));
        }
        // The contents are those after a commit, which a record may name.
        let base = commits.base_id();
        let first = base.or(ids.last());
        let mark = base.map_or(Mark::of(&ids), Mark::Entry);
        let mut changed = Changed::new(tables, rows_max);
        changed.set_schema(commits.schema());
        let mut pass = Pass {
            found: (first == Some(txn)).then(|| commits.base()),
            changed,
            is_converted: false,
            first: mark,
            end: mark,
            last: first,
            first_schema: commits.schema().clone(),
            last_schema: commits.schema().clone(),
        };
        let mut before = commits.base();
        while let Some(commit) = commits.next()? {
            if !commit.is_confirmed {
                return Err(NoPast::Missing(name.to_owned()));
            }
            let preceding = pass.add(&commit, &mut ids, name)?;
            if preceding == Some(txn) && pass.last != Some(txn) {
                // This record names the one before it, whose changes have been added already.
                pass.begin_at(before);
                pass.add_changes(&commit, name)?;
            }
            if pass.last == Some(txn) {
                pass.begin_at(commit.place);
            }
            before = commit.place;
        }
        Ok(pass)
    }

    /// Pass 2: the rows that a pass has found, as they were at a place of a file.
    fn rows_at(
        &self,
        part: usize,
        place: u64,
        pass: &Pass<'_>,
        bytes_max: u64,
    ) -> Result<Vec<PastRow>, NoPast> {
        let changed = &pass.changed;
        let file = self.parts()[part].name();
        if changed.keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut commits = Commits::open(&self.parts()[part], self.limit(part)?, Check::All)?;
        // The rows of an earlier schema are those with the same UUIDs in tables of the same names.
        let mut wanted = changed.under(&pass.last_schema, commits.schema());
        let schema = commits.schema().clone();
        let rows = match commits.contents()? {
            Some(text) => rows_of(text, &schema, &wanted).map_err(|error| {
                HistoryError::file(file, format_args!("its contents cannot be used: {error}"))
            })?,
            None => crate::walk::Rows::new(),
        };
        let mut state = State { schema, rows };
        let mut reader = TransactionReader::default();
        while let Some(commit) = commits.next()? {
            if commit.place > place {
                break;
            }
            let failed =
                |error: &corvid_data::WireError| HistoryError::record(file, commit.start, error);
            if let Some(text) = commit.schema {
                let schema = parse_schema(text).map_err(|error| HistoryError::file(file, error))?;
                let schema = Arc::new(schema);
                wanted = changed.under(&pass.last_schema, &schema);
                reader = TransactionReader::default();
                let rows = match commit.transaction {
                    Some(text) => {
                        rows_of(text, &schema, &wanted).map_err(|error| failed(&error))?
                    }
                    None => convert(&state, &schema, &wanted),
                };
                state = State { schema, rows };
                continue;
            }
            let Some(text) = commit.transaction else {
                continue;
            };
            let mut is_wanted = false;
            changed_rows(text, &state.schema, &wanted, &mut |key| {
                is_wanted |= wanted.keys.contains(&key);
            })
            .map_err(|error| HistoryError::file(file, error))?;
            if is_wanted {
                let recorded = reader
                    .read(text, &state.schema)
                    .map_err(|error| failed(&error))?;
                state
                    .apply(recorded, &wanted)
                    .map_err(|error| failed(&error))?;
            }
        }
        let mut bytes = 0;
        let mut past = Vec::with_capacity(changed.keys.len());
        for (table, uuid) in &changed.keys {
            let columns = state.rows.remove(&(*table, *uuid));
            bytes += columns.as_deref().map_or(0, row_bytes);
            if bytes > bytes_max {
                return Err(NoPast::TooMuch);
            }
            past.push(PastRow {
                table: *table,
                uuid: *uuid,
                columns,
            });
        }
        Ok(past)
    }
}

impl Pass<'_> {
    /// The named commit is at this place: only what follows counts.
    fn begin_at(&mut self, place: u64) {
        self.found = Some(place);
        self.changed.clear();
        self.is_converted = false;
    }

    /// Adds a commit. Returns the id of the commit before it if only this one tells it.
    fn add(
        &mut self,
        commit: &Commit<'_>,
        ids: &mut CommitIds,
        file: &str,
    ) -> Result<Option<Uuid>, NoPast> {
        let mut preceding = None;
        match commit.id {
            CommitId::Entry(eid) => {
                self.last = Some(eid);
                self.end = Mark::Entry(eid);
            }
            CommitId::Hash(_) => {
                let text = commit.transaction.unwrap_or_default();
                preceding = ids.append(&comment(text).unwrap_or_default(), has_rows(text));
                self.last = ids.last();
                self.end = Mark::of(ids);
            }
        }
        if let Some(text) = commit.schema {
            let schema = parse_schema(text).map_err(|error| HistoryError::file(file, error))?;
            self.last_schema = Arc::new(schema);
            self.changed.set_schema(&self.last_schema);
            self.is_converted = true;
            return Ok(preceding);
        }
        self.add_changes(commit, file)?;
        Ok(preceding)
    }

    fn add_changes(&mut self, commit: &Commit<'_>, file: &str) -> Result<(), NoPast> {
        let Some(text) = commit.transaction.filter(|_| !self.is_converted) else {
            return Ok(());
        };
        let schema = self.last_schema.clone();
        let mut keys = Vec::new();
        changed_rows(text, &schema, &self.changed, &mut |key| keys.push(key))
            .map_err(|error| HistoryError::file(file, error))?;
        for key in keys {
            self.changed.add(key);
        }
        Ok(())
    }
}

/// The comment of a record. The needle cannot occur in a string, where quotes are escaped.
fn comment(text: &[u8]) -> Option<String> {
    const COMMENT: &[u8] = b"\"_comment\":";
    let at = memmem::find(text, COMMENT)? + COMMENT.len();
    let comment = Reader::new(&text[at..]).string().ok()?;
    String::from_utf8(comment.to_vec()).ok()
}

/// Whether a record has rows. Names of tables do not begin with an underscore.
fn has_rows(text: &[u8]) -> bool {
    let mut reader = Reader::new(text);
    let mut has_rows = || -> Result<bool, corvid_json::Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            if !name.starts_with(b"_") {
                reader.begin_object()?;
                if reader.next_member()?.is_some() {
                    return Ok(true);
                }
                continue;
            }
            reader.skip()?;
        }
        Ok(false)
    };
    has_rows().unwrap_or(false)
}

/// Reports the rows of wanted tables that a record changes, without reading their columns.
fn changed_rows(
    text: &[u8],
    schema: &Schema,
    wanted: &Changed<'_>,
    report: &mut dyn FnMut((TableId, Uuid)),
) -> Result<(), String> {
    let mut reader = Reader::new(text);
    let mut read = || -> Result<(), corvid_json::Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            let table = schema
                .table_named(&name)
                .filter(|table| wanted.wants_table(*table));
            let is_object = reader.peek()? == Kind::Object;
            let Some(table) = table.filter(|_| is_object) else {
                reader.skip()?;
                continue;
            };
            reader.begin_object()?;
            while let Some(name) = reader.next_member()? {
                if let Some(uuid) = Uuid::parse(&name) {
                    report((table, uuid));
                }
                reader.skip()?;
            }
        }
        Ok(())
    };
    read().map_err(|error| error.to_string())
}

/// The size of a row. Assumes that all atoms of a column are as long as the first. O(columns).
fn row_bytes(columns: &[Datum]) -> u64 {
    let bytes = |datum: &Datum| {
        let characters = match datum.first() {
            Some(AtomRef::String(text)) => text.len() as u64,
            _ => 0,
        };
        datum.atom_count() * (ATOM_BYTES + characters)
    };
    ROW_BYTES + columns.iter().map(bytes).sum::<u64>()
}
