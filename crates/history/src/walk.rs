//! The changes between two positions, oldest first, in one pass.
//!
//! A record holds differences, so the rows that may be reported are kept as they are after each
//! commit, and no others. At the beginning of a file they are compared with the contents that the
//! file begins with. If they differ, commits are missing in between, and the difference is reported
//! as a gap.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use corvid_data::{
    Arc, ColumnId, Datum, Recorded, RecordedRow, Schema, TableId, Tag, Uuid, WireError, wire,
};
use corvid_json::{Kind, Reader};
use corvid_log::cluster::TransactionReader;
use corvid_log::commit_client::{self, CommitClient};

use crate::ReadAt;
use crate::change::{Columns, RowChange};
use crate::commit::{Commit, CommitId};
use crate::commits::parse_schema;
use crate::error::HistoryError;
use crate::filter::{Filter, Search, Selection, Wanted, impossible};
use crate::scan::date_of;
use crate::timeline::{Position, Timeline};

/// The part of the history that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Changes after this position; without one also the contents that the history begins with.
    pub since: Option<Position>,
    /// Changes up to this position, its own commit included.
    pub until: Option<Position>,
}

/// A finding of a walk.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The history begins with contents.
    Begin {
        /// The file.
        file: &'a str,
        /// When the contents were written, ms since the Unix epoch.
        date_ms: Option<i64>,
        /// The wanted rows, as insertions.
        changes: &'a [RowChange],
    },
    /// A commit with wanted changes.
    Commit {
        /// The id.
        id: CommitId,
        /// The file.
        file: &'a str,
        /// When it was made, ms since the Unix epoch.
        date_ms: Option<i64>,
        /// Its client, if its record names one.
        client: Option<&'a CommitClient>,
        /// Its comments, without the line of the client.
        comment: Option<&'a str>,
        /// Whether it is known to be committed.
        is_confirmed: bool,
        /// The wanted changes.
        changes: &'a [RowChange],
    },
    /// The database was converted to another schema.
    Schema {
        /// The file.
        file: &'a str,
        /// When that was, ms since the Unix epoch.
        date_ms: Option<i64>,
        /// The schema before.
        old: &'a Schema,
        /// The schema after.
        new: &'a Schema,
    },
    /// Commits are missing: the file does not continue where the one before it ended.
    Gap {
        /// The file that comes after the gap.
        file: &'a str,
        /// When it begins, ms since the Unix epoch.
        date_ms: Option<i64>,
        /// The differences of wanted rows.
        changes: &'a [RowChange],
    },
}

impl<'a> Event<'a> {
    /// The changes; none of a conversion.
    #[must_use]
    pub fn changes(&self) -> &'a [RowChange] {
        match *self {
            Event::Begin { changes, .. }
            | Event::Commit { changes, .. }
            | Event::Gap { changes, .. } => changes,
            Event::Schema { .. } => &[],
        }
    }

    /// When it was, ms since the Unix epoch.
    #[must_use]
    pub fn date_ms(&self) -> Option<i64> {
        match *self {
            Event::Begin { date_ms, .. }
            | Event::Commit { date_ms, .. }
            | Event::Gap { date_ms, .. }
            | Event::Schema { date_ms, .. } => date_ms,
        }
    }

    /// The same event with some of its changes.
    #[must_use]
    pub fn with_changes(mut self, some: &'a [RowChange]) -> Event<'a> {
        match &mut self {
            Event::Begin { changes, .. }
            | Event::Commit { changes, .. }
            | Event::Gap { changes, .. } => *changes = some,
            Event::Schema { .. } => {}
        }
        self
    }
}

/// Gets the events; a break ends the walk.
pub type Sink<'s> = &'s mut dyn FnMut(&Event<'_>) -> ControlFlow<()>;

/// How far a walk has come: the commit that it looks at next.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The file, counting from the oldest.
    pub part: usize,
    /// Offset just past the commit's record in the file's text.
    pub end: u64,
    transaction: Option<&'a [u8]>,
}

impl Step<'_> {
    /// When the commit was made, ms since the Unix epoch.
    #[must_use]
    pub fn date_ms(&self) -> Option<i64> {
        self.transaction.and_then(date_of)
    }
}

/// Gets each step; a break ends the walk.
pub type Watch<'s> = &'s mut dyn FnMut(&Step<'_>) -> ControlFlow<()>;

impl<F: ReadAt> Timeline<F> {
    /// Reports every wanted change of a range, oldest first.
    ///
    /// # Errors
    /// A file is damaged, or no schema of the range has the table or column of the filter.
    pub fn walk(&self, filter: &Filter, range: Range, sink: Sink<'_>) -> Result<(), HistoryError> {
        self.walk_watched(filter, range, sink, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Timeline::walk`]; `watch` learns how far the walk has come, at every commit.
    ///
    /// # Errors
    /// As for [`Timeline::walk`].
    pub fn walk_watched(
        &self,
        filter: &Filter,
        range: Range,
        sink: Sink<'_>,
        watch: Watch<'_>,
    ) -> Result<(), HistoryError> {
        let first = range.since.map_or(0, |since| since.part);
        let last = range
            .until
            .map_or(self.parts().len() - 1, |until| until.part);
        if first > last {
            return Ok(());
        }
        let mut walk = Walk {
            filter,
            range,
            state: None,
            is_possible: false,
        };
        for part in first..=last {
            if walk.file(self, part, sink, watch)?.is_break() {
                return Ok(());
            }
        }
        match walk.is_possible {
            true => Ok(()),
            false => Err(impossible(filter)),
        }
    }
}

struct Walk<'f> {
    filter: &'f Filter,
    range: Range,
    state: Option<State>,
    /// Whether a schema has the table and the column.
    is_possible: bool,
}

/// The wanted rows after the commits so far.
pub(crate) struct State {
    pub(crate) schema: Arc<Schema>,
    pub(crate) rows: Rows,
}

pub(crate) type Rows = BTreeMap<(TableId, Uuid), Columns>;

impl Walk<'_> {
    fn file<F: ReadAt>(
        &mut self,
        timeline: &Timeline<F>,
        part: usize,
        sink: Sink<'_>,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, HistoryError> {
        let file = timeline.parts()[part].name();
        let mut commits = timeline.commits(part)?;
        let schema = commits.schema().clone();
        let mut wanted = Wanted::new(self.filter, &schema);
        let mut search = Search::new(self.filter, &schema);
        self.is_possible |= wanted.is_possible();
        let base = commits.base();
        let (rows, date_ms) = match commits.contents()? {
            Some(text) if search.may_concern(text) => {
                let rows = rows_of(text, &schema, &wanted).map_err(|error| {
                    HistoryError::file(file, format_args!("its contents cannot be used: {error}"))
                })?;
                (rows, date_of(text))
            }
            contents => (Rows::new(), contents.and_then(date_of)),
        };
        let mut state = State { schema, rows };
        if self
            .begin(file, date_ms, part, base, &state, &wanted, sink)
            .is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let mut reader = TransactionReader::default();
        while let Some(commit) = commits.next()? {
            let place = (part, commit.place);
            if self
                .range
                .until
                .is_some_and(|until| place > (until.part, until.place))
            {
                break;
            }
            let step = Step {
                part,
                end: commit.end,
                transaction: commit.transaction,
            };
            if watch(&step).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let is_reported = self.is_reported(place);
            if let Some(schema) = commit.schema {
                let schema =
                    parse_schema(schema).map_err(|error| HistoryError::file(file, error))?;
                let schema = Arc::new(schema);
                wanted = Wanted::new(self.filter, &schema);
                search = Search::new(self.filter, &schema);
                self.is_possible |= wanted.is_possible();
                reader = TransactionReader::default();
                let event = Event::Schema {
                    file,
                    date_ms: commit.transaction.and_then(date_of),
                    old: &state.schema,
                    new: &schema,
                };
                // A record of a conversion names no client.
                let is_reported = is_reported && self.filter.client.is_none();
                if is_reported && sink(&event).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let rows = match commit.transaction {
                    Some(text) => rows_of(text, &schema, &wanted)
                        .map_err(|error| HistoryError::record(file, commit.start, &error))?,
                    None => convert(&state, &schema, &wanted),
                };
                state = State { schema, rows };
                continue;
            }
            let Some(text) = commit.transaction.filter(|text| search.may_concern(text)) else {
                continue;
            };
            commit.check(file)?;
            let failed = |error: &WireError| HistoryError::record(file, commit.start, error);
            let recorded = reader
                .read(text, &state.schema)
                .map_err(|error| failed(&error))?;
            let (comment, date_ms) = (recorded.comment.clone(), recorded.date_ms);
            let changes = state
                .apply(recorded, &wanted)
                .map_err(|error| failed(&error))?;
            if !is_reported || changes.is_empty() {
                continue;
            }
            let (client, text) = commit_client::split(comment.as_deref().unwrap_or_default());
            let comment = CommitComment {
                client: client.as_ref(),
                text: Some(text).filter(|text| !text.is_empty()),
            };
            if wanted.wants_client(comment.client, comment.text)
                && report(file, &commit, date_ms, comment, changes, &wanted, sink).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.state = Some(state);
        Ok(ControlFlow::Continue(()))
    }

    fn is_reported(&self, place: (usize, u64)) -> bool {
        self.range
            .since
            .is_none_or(|since| place > (since.part, since.place))
    }

    /// Reports what the beginning of a file tells: the beginning of the history, a conversion, or a
    /// gap.
    #[allow(clippy::too_many_arguments)] // the facts of one event
    fn begin(
        &mut self,
        file: &str,
        date_ms: Option<i64>,
        part: usize,
        base: u64,
        state: &State,
        wanted: &Wanted<'_>,
        sink: Sink<'_>,
    ) -> ControlFlow<()> {
        let Some(before) = self.state.take() else {
            // Contents without a row may be an empty database that was just created.
            let is_beginning = part == 0 && self.range.since.is_none() && base > 0;
            // No client made the contents with which a history begins.
            if !is_beginning || self.filter.client.is_some() {
                return ControlFlow::Continue(());
            }
            let changes = differences(&state.schema, &Rows::new(), &state.rows, wanted);
            return sink(&Event::Begin {
                file,
                date_ms,
                changes: &changes,
            });
        };
        if !before.schema.same_as(&state.schema) {
            if self.filter.client.is_some() {
                return ControlFlow::Continue(());
            }
            return sink(&Event::Schema {
                file,
                date_ms,
                old: &before.schema,
                new: &state.schema,
            });
        }
        let changes = differences(&state.schema, &before.rows, &state.rows, wanted);
        match changes.is_empty() {
            true => ControlFlow::Continue(()),
            false => sink(&Event::Gap {
                file,
                date_ms,
                changes: &changes,
            }),
        }
    }
}

/// The comment of a record, in parts.
#[derive(Clone, Copy)]
struct CommitComment<'a> {
    client: Option<&'a CommitClient>,
    text: Option<&'a str>,
}

fn report(
    file: &str,
    commit: &Commit<'_>,
    date_ms: Option<i64>,
    comment: CommitComment<'_>,
    mut changes: Vec<RowChange>,
    wanted: &Wanted<'_>,
    sink: Sink<'_>,
) -> ControlFlow<()> {
    changes.retain(|change| wanted.wants_change(change));
    if changes.is_empty() {
        return ControlFlow::Continue(());
    }
    sink(&Event::Commit {
        id: commit.id,
        file,
        date_ms,
        client: comment.client,
        comment: comment.text,
        is_confirmed: commit.is_confirmed,
        changes: &changes,
    })
}

impl State {
    /// Applies a commit, and returns the changes of wanted rows.
    pub(crate) fn apply(
        &mut self,
        recorded: Recorded,
        wanted: &impl Selection,
    ) -> Result<Vec<RowChange>, WireError> {
        let is_diff = recorded.is_diff;
        let mut changes = Vec::new();
        for row in recorded.rows {
            if !wanted.wants(row.table, row.uuid) {
                continue;
            }
            let key = (row.table, row.uuid);
            let old = self.rows.get(&key).cloned();
            let new = match row.columns {
                None if old.is_none() => {
                    let uuid: String = row.uuid.to_text().map(char::from).iter().collect();
                    let details = format!("transaction deletes row {uuid} that does not exist");
                    return Err(WireError::new(Tag::SyntaxError, details));
                }
                None => {
                    self.rows.remove(&key);
                    None
                }
                Some(columns) => {
                    let new = changed(&self.schema, row.table, old.as_ref(), columns, is_diff)?;
                    self.rows.insert(key, new.clone());
                    Some(new)
                }
            };
            changes.push(RowChange {
                schema: self.schema.clone(),
                table: row.table,
                uuid: row.uuid,
                old,
                new,
            });
        }
        Ok(changes)
    }
}

/// The columns of a row after a record changes some of them. Those of a new row are values, those
/// of an existing one differences if the record says so.
fn changed(
    schema: &Schema,
    table: TableId,
    old: Option<&Columns>,
    columns: Vec<(ColumnId, Datum)>,
    is_diff: bool,
) -> Result<Columns, WireError> {
    let table = schema.table(table);
    let mut new: Vec<Datum> = match old {
        Some(old) => old.to_vec(),
        None => defaults(table),
    };
    for (id, datum) in columns {
        let Some(present) = new.get_mut(usize::from(id.0)) else {
            continue;
        };
        if old.is_some() && is_diff {
            present.apply_diff(&datum, &table.column(id).column_type)?;
        } else {
            *present = datum;
        }
    }
    Ok(Arc::from(new))
}

fn defaults(table: &corvid_data::TableSchema) -> Vec<Datum> {
    let columns = table.columns().iter();
    columns
        .map(|column| Datum::default_for(&column.column_type))
        .collect()
}

/// The wanted rows of a text that inserts every row. The others are skipped.
pub(crate) fn rows_of(
    text: &[u8],
    schema: &Schema,
    wanted: &impl Selection,
) -> Result<Rows, WireError> {
    let malformed = |error: corvid_json::Error| WireError::new(Tag::SyntaxError, error.to_string());
    let mut rows = Rows::new();
    let mut reader = Reader::new(text);
    reader.begin_object().map_err(malformed)?;
    while let Some(name) = reader.next_member().map_err(malformed)? {
        let table = schema
            .table_named(&name)
            .filter(|table| wanted.wants_table(*table));
        let is_object = reader.peek().map_err(malformed)? == Kind::Object;
        let Some(table) = table.filter(|_| is_object) else {
            reader.skip().map_err(malformed)?;
            continue;
        };
        reader.begin_object().map_err(malformed)?;
        while let Some(name) = reader.next_member().map_err(malformed)? {
            let uuid = Uuid::parse(&name);
            let Some(uuid) = uuid.filter(|uuid| wanted.wants(table, *uuid)) else {
                reader.skip().map_err(malformed)?;
                continue;
            };
            let row = row_of(&mut reader, schema, table, uuid)?;
            let columns = row.columns.unwrap_or_default();
            rows.insert((table, uuid), changed(schema, table, None, columns, false)?);
        }
    }
    Ok(rows)
}

/// Reads one row of contents.
fn row_of(
    reader: &mut Reader<'_>,
    schema: &Schema,
    table: TableId,
    uuid: Uuid,
) -> Result<RecordedRow, WireError> {
    let malformed = |error: corvid_json::Error| WireError::new(Tag::SyntaxError, error.to_string());
    let described = schema.table(table);
    let mut columns = Vec::new();
    reader.begin_object().map_err(malformed)?;
    while let Some(name) = reader.next_member().map_err(malformed)? {
        match described.column_named(&name).filter(|id| !id.is_standard()) {
            Some(id) => {
                let column_type = &described.column(id).column_type;
                columns.push((id, wire::read_datum(reader, column_type, None)?));
            }
            None => {
                reader.skip().map_err(malformed)?;
            }
        }
    }
    Ok(RecordedRow {
        table,
        uuid,
        columns: Some(columns),
    })
}

/// The wanted changes from one set of rows to another, in the order of tables and UUIDs.
pub(crate) fn differences(
    schema: &Arc<Schema>,
    old: &Rows,
    new: &Rows,
    wanted: &Wanted<'_>,
) -> Vec<RowChange> {
    let change = |(table, uuid): (TableId, Uuid), old, new| RowChange {
        schema: schema.clone(),
        table,
        uuid,
        old,
        new,
    };
    let mut changes = BTreeMap::new();
    for (key, columns) in old {
        match new.get(key) {
            Some(other) if other == columns => {}
            other => {
                changes.insert(*key, change(*key, Some(columns.clone()), other.cloned()));
            }
        }
    }
    for (key, columns) in new {
        if !old.contains_key(key) {
            changes.insert(*key, change(*key, None, Some(columns.clone())));
        }
    }
    changes
        .into_values()
        .filter(|change| wanted.wants_change(change))
        .collect()
}

/// The wanted rows under another schema. A value that does not fit a column any more becomes its
/// default: only rows that are shown depend on it.
pub(crate) fn convert(state: &State, schema: &Schema, wanted: &impl Selection) -> Rows {
    let mut rows = Rows::new();
    for ((table, uuid), columns) in &state.rows {
        let before = state.schema.table(*table);
        let Some(table) = schema.table_named(before.name.as_bytes()) else {
            continue;
        };
        if !wanted.wants(table, *uuid) {
            continue;
        }
        let after = schema.table(table);
        let mut new = defaults(after);
        for ((id, column), datum) in before.iter().zip(columns.iter()) {
            let Some(to) = after.column_named(column.name.as_bytes()) else {
                continue;
            };
            let _ = id;
            let mut text = Vec::new();
            wire::write_datum(&mut text, datum, column.column_type.is_map());
            let read =
                wire::read_datum(&mut Reader::new(&text), &after.column(to).column_type, None);
            if let (Ok(datum), Some(place)) = (read, new.get_mut(usize::from(to.0))) {
                *place = datum;
            }
        }
        rows.insert((table, *uuid), Arc::from(new));
    }
    rows
}
