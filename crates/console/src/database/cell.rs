//! The value of a column as a viewer sees it: elements of sets and maps, references as links,
//! long values cut.

use askama::Template;
use corvid::Idl;
use corvid::data::{AtomRef, ColumnType, Datum, Reference, text};

use super::naming::{Naming, short};

/// The number of elements that a cell of a table shows.
pub(crate) const ELEMENTS_MAX: usize = 12;

/// The number of characters of an element that a cell of a table shows.
const LETTERS_MAX: usize = 120;

/// An element of a cell.
pub(crate) struct Part {
    /// The key and an equal sign, for an element of a map.
    key: String,
    /// The value.
    text: String,
    /// The page of the row that the value refers to.
    href: Option<String>,
    /// More about the value, shown on hover; may be empty.
    title: String,
    /// The kind of the value, a class of the style sheet.
    class: &'static str,
}

/// The value of a column.
#[derive(Template)]
#[template(path = "cell.html")]
pub(crate) struct Cell {
    parts: Vec<Part>,
    /// The number of elements that are not shown.
    more: usize,
}

/// Where links of cells lead, and what names rows.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c> {
    /// The name of the database in addresses.
    pub(crate) database: &'c str,
    /// The replica.
    pub(crate) idl: &'c Idl,
    /// The names of rows.
    pub(crate) naming: &'c Naming,
}

impl Cell {
    /// The cell of a value in a table: few elements, long ones cut.
    pub(crate) fn new(context: Context<'_>, value: &Datum, column_type: &ColumnType) -> Cell {
        Cell::with(context, value, column_type, ELEMENTS_MAX, LETTERS_MAX)
    }

    /// The cell of a value on the page of its row: whole elements, at most `elements_max`.
    pub(crate) fn whole(
        context: Context<'_>,
        value: &Datum,
        column_type: &ColumnType,
        elements_max: usize,
    ) -> Cell {
        Cell::with(context, value, column_type, elements_max, usize::MAX)
    }

    fn with(
        context: Context<'_>,
        value: &Datum,
        column_type: &ColumnType,
        shown: usize,
        letters_max: usize,
    ) -> Cell {
        let parts = value.iter().take(shown).map(|(key, value)| match value {
            None => part(
                context,
                key,
                column_type.key.reference.as_ref(),
                letters_max,
            ),
            Some(value) => {
                let reference = column_type
                    .value
                    .as_ref()
                    .and_then(|base| base.reference.as_ref());
                let part = part(context, value, reference, letters_max);
                Part {
                    key: key_text(context, key, column_type.key.reference.as_ref()) + "=",
                    ..part
                }
            }
        });
        Cell {
            parts: parts.collect(),
            more: value.len().saturating_sub(shown),
        }
    }

    /// The cell as HTML.
    pub(crate) fn html(&self) -> String {
        self.render().unwrap_or_default()
    }
}

fn key_text(context: Context<'_>, key: AtomRef<'_>, reference: Option<&Reference>) -> String {
    part(context, key, reference, LETTERS_MAX).text
}

fn part(
    context: Context<'_>,
    atom: AtomRef<'_>,
    reference: Option<&Reference>,
    letters_max: usize,
) -> Part {
    let mut part = Part {
        key: String::new(),
        text: String::new(),
        href: None,
        title: String::new(),
        class: "",
    };
    match (atom, reference) {
        (AtomRef::Uuid(uuid), Some(reference)) => {
            let Context {
                database,
                idl,
                naming,
            } = context;
            let table = &idl.schema().table(reference.table).name;
            part.text = naming.label(idl, reference.table, uuid);
            part.href = Some(format!("/db/{database}/table/{table}/row/{uuid}"));
            part.title = format!("{table} {uuid}");
        }
        (AtomRef::Uuid(uuid), None) => {
            part.text = match letters_max {
                usize::MAX => uuid.to_string(),
                _ => short(uuid),
            };
            part.title = uuid.to_string();
            part.class = "uuid";
        }
        (AtomRef::String(text), _) => {
            part.text = cut(text, letters_max);
            if text.is_empty() {
                part.text = "\"\"".to_owned();
                part.class = "none";
            } else if part.text.len() < text.len() {
                part.title = format!("{} bytes", text.len());
            }
        }
        (AtomRef::Boolean(is_true), _) => {
            part.text = is_true.to_string();
            part.class = if is_true { "true" } else { "false" };
        }
        (number, _) => {
            text::write_atom_bare(&mut part.text, number);
            part.class = "number";
        }
    }
    part
}

/// The beginning of a text, with an ellipsis if it is longer.
pub(crate) fn cut(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
