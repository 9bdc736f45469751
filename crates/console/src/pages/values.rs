//! The values of a column by frequency: on a page of their own, and as candidates for a filter.
//!
//! They are counted in the replica, so they cost a server no more than the table's page does. The
//! page reads at most [`ROWS_MAX`] rows and tells apart at most [`DISTINCT_MAX`] values; the page
//! says so if there are more.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use corvid::data::{AtomRef, BaseType, ColumnId, ColumnType, TableId, text};
use corvid::{Column, Idl, RowId};

use crate::database::cell::cut;
use crate::database::naming::Naming;
use crate::database::{Database, Open};
use crate::pages::frame::{self, Frame};
use crate::pages::params::Params;
use crate::web::{App, reply};

/// The number of rows that the page's count reads.
const ROWS_MAX: usize = 100_000;

/// The number of values that a count tells apart.
const DISTINCT_MAX: usize = 10_000;

/// The number of values that the page shows.
const SHOWN_MAX: usize = 50;

/// The longest value that is shown whole, in characters.
const LETTERS_MAX: usize = 120;

/// A longer text is counted by its beginning, bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The width of the longest bar.
const BAR_WIDTH: usize = 160;

/// A value and its number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// For people: a name, for a row that the value refers to.
    pub(crate) shown: String,
    /// The key, for a map.
    pub(crate) key: Option<String>,
    /// As a filter has it.
    pub(crate) word: String,
    /// Rows that have it.
    pub(crate) count: usize,
    /// The text was cut, so no comparison finds it.
    is_cut: bool,
}

/// The outcome of a count.
pub(crate) struct Counts {
    /// The values, the most frequent first.
    pub(crate) values: Vec<Counted>,
    /// Rows without a value.
    empty: usize,
    /// Rows that were read.
    rows: usize,
    /// There are more values than were told apart.
    has_more_values: bool,
}

/// Counts the values of a column in the replica, in at most `rows_max` rows.
pub(crate) fn count(
    idl: &Idl,
    naming: &Naming,
    table: TableId,
    id: ColumnId,
    rows_max: usize,
) -> Counts {
    let column_type = &idl.schema().table(table).column(id).column_type;
    let mut counts = Counts {
        values: Vec::new(),
        empty: 0,
        rows: 0,
        has_more_values: false,
    };
    let mut known: BTreeMap<(Option<String>, String), (usize, bool)> = BTreeMap::new();
    for row in idl.rows(table).take(rows_max) {
        counts.rows += 1;
        let row = RowId {
            table,
            uuid: row.uuid,
        };
        let value = idl.read(row, Column { table, id }).unwrap_or_default();
        counts.empty += usize::from(value.is_empty());
        for (key, value) in &value {
            let (atom, key) = match value {
                Some(value) => (value, Some(word(key).0)),
                None => (key, None),
            };
            let (text, is_cut) = word(atom);
            if let Some(entry) = known.get_mut(&(key.clone(), text.clone())) {
                entry.0 += 1;
            } else if known.len() < DISTINCT_MAX {
                known.insert((key, text), (1, is_cut));
            } else {
                counts.has_more_values = true;
            }
        }
    }
    let base = element(column_type);
    let counted = known
        .into_iter()
        .map(|((key, word), (count, is_cut))| Counted {
            shown: shown(idl, naming, base, &word),
            key,
            word,
            count,
            is_cut,
        });
    counts.values = counted.collect();
    counts.values.sort_by_key(|one| Reverse(one.count));
    counts
}

/// The type of what a filter compares with: the value of a map, else the element.
pub(crate) fn element(column_type: &ColumnType) -> &BaseType {
    column_type.value.as_ref().unwrap_or(&column_type.key)
}

/// A value as a filter has it, quoted if need be; and whether it was cut.
fn word(atom: AtomRef<'_>) -> (String, bool) {
    let AtomRef::String(text) = atom else {
        let mut word = String::new();
        text::write_atom_bare(&mut word, atom);
        return (word, false);
    };
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (quoted(&text[..end]), end < text.len())
}

/// A text as a filter has it.
pub(crate) fn quoted(text: &str) -> String {
    let is_word = !text.is_empty()
        && text.chars().all(|letter| {
            letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | ':' | '@')
        })
        && !["and", "or", "not", "in"]
            .iter()
            .any(|keyword| text.eq_ignore_ascii_case(keyword));
    if is_word {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

fn shown(idl: &Idl, naming: &Naming, base: &BaseType, word: &str) -> String {
    let uuid = corvid::data::Uuid::parse(word.as_bytes());
    match (&base.reference, uuid) {
        (Some(reference), Some(uuid)) => naming.label(idl, reference.table, uuid),
        _ => cut(word, LETTERS_MAX),
    }
}

#[derive(Template)]
#[template(path = "values.html")]
struct Values {
    frame: Frame,
    table: String,
    column: String,
    kind: String,
    address: String,
    rows: usize,
    total: usize,
    empty: usize,
    distinct: usize,
    is_partial: bool,
    lines: Vec<Line>,
    trouble: String,
}

struct Line {
    text: String,
    href: Option<String>,
    count: usize,
    share: String,
    width: usize,
}

/// The page of a column's values.
pub(crate) fn page(
    app: &App,
    database: &Database,
    open: &Open,
    table: TableId,
    name: &str,
) -> Response {
    let schema = open.schema.table(table);
    let Some(id) = schema.column_id(name) else {
        let text = format!("{} has no column \"{name}\".", schema.name);
        return frame::missing(app, &text);
    };
    let has_arrived = open.look(table);
    let (counts, total) = open.client.read(|idl| {
        let counts = count(idl, &open.naming, table, id, ROWS_MAX);
        (counts, idl.row_count(table))
    });
    let column = schema.column(id);
    let address = format!("/db/{}/table/{}", database.source.name, schema.name);
    let largest = counts.values.first().map_or(1, |one| one.count.max(1));
    let href = |filter: String| format!("{address}{}", Params::default().with("where", &filter));
    let lines = counts.values.iter().take(SHOWN_MAX).map(|one| {
        let place = match &one.key {
            Some(key) => format!("{}:{key}", column.name),
            None => column.name.to_string(),
        };
        let text = match &one.key {
            Some(key) => format!("{key}={}", one.shown),
            None => one.shown.clone(),
        };
        Line {
            text,
            href: (!one.is_cut).then(|| href(format!("{place} == {}", one.word))),
            count: one.count,
            share: share(one.count, counts.rows),
            width: (one.count * BAR_WIDTH).div_ceil(largest),
        }
    });
    let page = Values {
        frame: Frame::of(app, database, "tables", &format!("{}.{name}", schema.name)),
        table: schema.name.to_string(),
        column: name.to_owned(),
        kind: column.column_type.english(),
        rows: counts.rows,
        total,
        empty: counts.empty,
        distinct: counts.values.len(),
        is_partial: counts.has_more_values,
        lines: lines.collect(),
        trouble: match has_arrived {
            true => String::new(),
            false => frame::ARRIVING.to_owned(),
        },
        address,
    };
    reply::page_with(frame::status_of_rows(open, has_arrived), &page)
}

/// A share of all rows, per cent.
fn share(count: usize, all: usize) -> String {
    let tenths = (count * 1000).checked_div(all).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_a_filter_would_take_them_apart() {
        for (text, wanted) in [
            ("br-int", "br-int"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("and", "\"and\""),
            ("x==1", "\"x==1\""),
        ] {
            assert_eq!(quoted(text), wanted);
        }
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(0, 0), "0.0 %");
    }
}
