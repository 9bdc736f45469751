//! Changes of rows that somebody looks at: as events for pages, and the latest of them for the page
//! of changes.
//!
//! An event names rows and has the new cells as HTML, so that a page replaces what it shows. It is
//! encoded once for all viewers.

use std::collections::VecDeque;
use std::time::SystemTime;

use corvid::data::{AtomRef, ColumnId, Datum, TableId, Uuid, text};
use corvid::json::write;
use corvid::{Column, Idl, RowId, Tracked};

use super::cell::{Cell, Context, ELEMENTS_MAX, cut};
use super::renamed::Renamed;

/// The number of rows that an event describes. A page that is told of more reads itself anew.
const ROWS_MAX: usize = 200;

/// The longest event. A cell may show a dozen long texts.
const EVENT_BYTES_MAX: usize = 256 * 1024;

/// The number of updates that are kept.
const RECENT_MAX: usize = 200;

/// The number of rows of one update that are kept.
const RECENT_ROWS_MAX: usize = 20;

/// The bytes of texts that are kept.
const RECENT_BYTES_MAX: usize = 256 * 1024;

/// The number of characters of a value that are kept.
const LETTERS_MAX: usize = 80;

/// The kind of a change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Modify,
    Delete,
}

impl Kind {
    /// The kind; `None` if the row is as it was: it was inserted and deleted again, or only a row
    /// that it refers to has changed. The replica lists both.
    fn of(change: &Tracked) -> Option<Kind> {
        match (change.is_new, change.is_deleted) {
            (true, true) => None,
            (true, false) => Some(Kind::Insert),
            (false, true) => Some(Kind::Delete),
            (false, false) if change.updated().next().is_none() => None,
            (false, false) => Some(Kind::Modify),
        }
    }

    /// The word for people and for the style sheet.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Modify => "modify",
            Kind::Delete => "delete",
        }
    }
}

/// A row of an event.
pub(super) struct Shown<'t> {
    kind: Kind,
    change: &'t Tracked,
    /// Columns that have not changed, but show the new name of another row.
    named: Vec<ColumnId>,
}

/// The rows of an event: those that have changed, and those that show another name.
pub(super) fn shown<'t>(idl: &'t Idl, table: TableId, renamed: &Renamed) -> Vec<Shown<'t>> {
    let changes = idl.changes(table).iter();
    let shown = changes.filter_map(|change| {
        let named = renamed.columns(idl, table, change);
        let kind = Kind::of(change).or((!named.is_empty()).then_some(Kind::Modify))?;
        Some(Shown {
            kind,
            change,
            named,
        })
    });
    shown.collect()
}

/// The changes that are listed on the page of changes.
pub(super) fn told(tracked: &[Tracked]) -> Vec<(Kind, &Tracked)> {
    let changes = tracked.iter();
    changes
        .filter_map(|change| Some((Kind::of(change)?, change)))
        .collect()
}

/// The changes of one table in one update.
#[derive(Clone, Debug)]
pub(crate) struct TableChange {
    /// When it arrived.
    pub(crate) at: SystemTime,
    /// The table.
    pub(crate) table: TableId,
    /// The first rows.
    pub(crate) rows: Vec<RowChange>,
    /// The number of rows that are left out.
    pub(crate) more: usize,
}

/// The change of a row.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    /// The row.
    pub(crate) uuid: Uuid,
    /// Its name.
    pub(crate) label: String,
    /// The kind of the change.
    pub(crate) kind: Kind,
    /// Changed columns: name, value before, value now.
    pub(crate) columns: Vec<(String, String, String)>,
}

/// The latest changes, newest first.
#[derive(Default)]
pub(crate) struct Recent {
    changes: VecDeque<TableChange>,
    bytes: usize,
}

impl Recent {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TableChange> {
        self.changes.iter()
    }

    pub(super) fn add(&mut self, change: TableChange) {
        self.bytes += change.bytes();
        self.changes.push_front(change);
        while self.changes.len() > RECENT_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.changes.pop_back() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

impl TableChange {
    fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| {
            let columns = row.columns.iter();
            let texts = columns.map(|(name, old, new)| name.len() + old.len() + new.len() + 72);
            row.label.len() + 80 + texts.sum::<usize>()
        });
        64 + rows.sum::<usize>()
    }
}

/// The changes of a table for the page of changes.
pub(super) fn described(
    context: Context<'_>,
    table: TableId,
    changes: &[(Kind, &Tracked)],
) -> TableChange {
    let shown = |id: ColumnId, value: &Datum| {
        let column_type = &context.idl.schema().table(table).column(id).column_type;
        let mut out = String::new();
        // A set of a million elements, or a text of a megabyte, is not printed to be cut.
        let is_long = |atom: AtomRef<'_>| {
            atom.as_string()
                .is_some_and(|text| text.len() > LETTERS_MAX * 4)
        };
        let has_long = || {
            let mut elements = value.iter();
            elements.any(|(key, value)| is_long(key) || value.is_some_and(is_long))
        };
        if value.len() > ELEMENTS_MAX {
            out = format!("{} elements", value.len());
        } else if !has_long() {
            text::write_datum(&mut out, value, column_type);
        } else if let (1, Some(AtomRef::String(text))) = (value.len(), value.first()) {
            out = cut(text, LETTERS_MAX);
        } else {
            out = format!("{} elements", value.len());
        }
        cut(&out, LETTERS_MAX)
    };
    let described = changes.iter().map(|&(kind, change)| {
        let row = RowId {
            table,
            uuid: change.uuid,
        };
        let columns = change.updated().filter(|_| kind != Kind::Delete).map(|id| {
            let name = context
                .idl
                .schema()
                .table(table)
                .column(id)
                .name
                .to_string();
            let old = change.old(id).map(|old| shown(id, old)).unwrap_or_default();
            let new = context
                .idl
                .read(row, Column { table, id })
                .unwrap_or_default();
            (name, old, shown(id, &new))
        });
        RowChange {
            uuid: change.uuid,
            label: context.naming.label(context.idl, table, change.uuid),
            kind,
            columns: columns.collect(),
        }
    });
    TableChange {
        at: SystemTime::now(),
        table,
        rows: described.take(RECENT_ROWS_MAX).collect(),
        more: changes.len().saturating_sub(RECENT_ROWS_MAX),
    }
}

/// The changes of a table as event `number` for its pages:
/// `{"total":N,"rows":[["UUID","modify",{"COLUMN":"HTML"}]]}`; without `rows` if there are too
/// many, or if they are too long. `rows` is empty if only rows of other tables have changed and no
/// cell shows it: a filter of the page may name them.
pub(super) fn encoded(
    context: Context<'_>,
    table: TableId,
    changes: &[Shown<'_>],
    number: u64,
) -> Vec<u8> {
    let Context { idl, .. } = context;
    let schema = idl.schema().table(table);
    let mut out = format!("id: {number}\ndata: {{\"total\":").into_bytes();
    write::integer(
        &mut out,
        i64::try_from(idl.row_count(table)).unwrap_or_default(),
    );
    let total = out.len();
    if changes.len() <= ROWS_MAX {
        out.extend_from_slice(b",\"rows\":[");
        let mut is_first = true;
        for Shown {
            kind,
            change,
            named,
        } in changes
        {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(b"[\"");
            out.extend_from_slice(&change.uuid.to_text());
            out.extend_from_slice(b"\",\"");
            out.extend_from_slice(kind.word().as_bytes());
            out.extend_from_slice(b"\",{");
            let row = RowId {
                table,
                uuid: change.uuid,
            };
            let updated = change.updated().filter(|_| *kind == Kind::Modify);
            let columns = updated.chain(named.iter().copied());
            for (index, id) in columns.enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                let column = schema.column(id);
                let value = idl.read(row, Column { table, id }).unwrap_or_default();
                let cell = Cell::new(context, &value, &column.column_type);
                write::string(&mut out, column.name.as_bytes());
                out.push(b':');
                write::string(&mut out, cell.html().as_bytes());
            }
            out.extend_from_slice(b"}]");
            if out.len() > EVENT_BYTES_MAX {
                break;
            }
        }
        out.push(b']');
    }
    if out.len() > EVENT_BYTES_MAX {
        out.truncate(total);
    }
    out.extend_from_slice(b"}\n\n");
    out
}
