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
    /// The text is only the beginning of the value.
    is_cut: bool,
}

/// The value of a column.
#[derive(Template)]
#[template(path = "cell.html")]
pub(crate) struct Cell {
    parts: Vec<Part>,
    /// The number of elements that are not shown.
    more: usize,
    /// An element is not shown, or not as a whole.
    is_cut: bool,
}

/// The letters of a cell on the page of its row.
const WHOLE_LETTERS_MAX: usize = 20_000;

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
        let letters_max = ELEMENTS_MAX * 2 * LETTERS_MAX;
        Cell::with(
            context,
            value,
            column_type,
            ELEMENTS_MAX,
            (LETTERS_MAX, letters_max),
        )
    }

    /// The cell of a value on the page of its row: at most `elements_max` elements, whole ones as
    /// long as there is room.
    pub(crate) fn whole(
        context: Context<'_>,
        value: &Datum,
        column_type: &ColumnType,
        elements_max: usize,
    ) -> Cell {
        Cell::with(
            context,
            value,
            column_type,
            elements_max,
            (WHOLE_LETTERS_MAX, WHOLE_LETTERS_MAX),
        )
    }

    /// `letters_max` are the letters of an element, and those of all of them.
    fn with(
        context: Context<'_>,
        value: &Datum,
        column_type: &ColumnType,
        elements_max: usize,
        letters_max: (usize, usize),
    ) -> Cell {
        let key_reference = column_type.key.reference.as_ref();
        let value_type = column_type.value.as_ref();
        let reference = value_type.map_or(key_reference, |base| base.reference.as_ref());
        let mut room = letters_max.1;
        let mut parts: Vec<Part> = Vec::new();
        for (key, value) in value.iter().take(elements_max) {
            if room == 0 {
                break;
            }
            let letters_max = letters_max.0.min(room);
            let mut part = part(context, value.unwrap_or(key), reference, letters_max);
            if value.is_some() {
                let key = self::part(context, key, key_reference, LETTERS_MAX);
                part.is_cut |= key.is_cut;
                part.key = key.text + "=";
            }
            room = room.saturating_sub((part.key.len() + part.text.len()).max(1));
            parts.push(part);
        }
        let more = value.len() - parts.len();
        Cell {
            is_cut: more > 0 || parts.iter().any(|part| part.is_cut),
            parts,
            more,
        }
    }

    /// Whether an element is not shown, or not as a whole.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The cell as HTML.
    pub(crate) fn html(&self) -> String {
        self.render().unwrap_or_default()
    }
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
        is_cut: false,
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
                ..=LETTERS_MAX => short(uuid),
                _ => uuid.to_string(),
            };
            part.title = uuid.to_string();
            part.class = "uuid";
        }
        (AtomRef::String(text), _) => {
            part.text = cut(text, letters_max);
            if text.is_empty() {
                part.text = "\"\"".to_owned();
                part.class = "none";
            } else if text.chars().nth(letters_max).is_some() {
                part.title = format!("{} bytes", text.len());
                part.is_cut = true;
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
