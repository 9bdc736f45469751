//! A table of the page: chosen columns, figures in units for people with the exact value on hover.
//! On narrow screens its rows are cards.

use askama::Template;
use corvid::json::Value;
use corvid_tools::status::document;

use super::metric::Metric;
use crate::database::cell::cut;
use crate::pages::grid::{bytes, duration};

/// The number of characters of a text.
const LETTERS_MAX: usize = 200;

/// A table.
#[derive(Default, Template)]
#[template(path = "server_list.html")]
pub(super) struct List {
    /// The name of the part, as an id of the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// A sentence above the table.
    pub(super) summary: String,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Row>,
    /// The number of rows that are left out.
    pub(super) more: usize,
}

/// The head of a column.
pub(super) struct Head {
    title: &'static str,
    is_number: bool,
    metric: Metric,
}

/// A row.
#[derive(Default)]
pub(super) struct Row {
    /// Marks the row: `this` server, or one with a fault.
    pub(super) class: &'static str,
    pub(super) cells: Vec<Cell>,
}

/// A cell.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The exact value, or more about it; empty: the text says all.
    pub(super) title: String,
    pub(super) class: &'static str,
    /// Text in a quieter colour after it.
    pub(super) more: String,
    /// Words that are set off, as `leader`.
    pub(super) marks: Vec<&'static str>,
    /// The amount that is done, and the whole.
    pub(super) progress: Option<(i64, i64)>,
    /// Where a link with the text leads.
    pub(super) href: String,
}

impl Head {
    pub(super) fn text(title: &'static str) -> Head {
        Head {
            title,
            is_number: false,
            metric: Metric::default(),
        }
    }

    pub(super) fn number(title: &'static str) -> Head {
        Head {
            is_number: true,
            ..Head::text(title)
        }
    }

    /// The same, with the metric behind the figures.
    pub(super) fn measured(self, metric: &'static str, page: Option<&str>) -> Head {
        Head {
            metric: Metric::new(metric, page),
            ..self
        }
    }
}

impl Cell {
    /// A text; a long one is cut and whole on hover.
    pub(super) fn text(text: &str) -> Cell {
        let shown = cut(text, LETTERS_MAX);
        Cell {
            title: if shown == text {
                String::new()
            } else {
                text.to_owned()
            },
            text: shown,
            ..Cell::default()
        }
    }

    /// The cell of an unknown value.
    pub(super) fn unknown() -> Cell {
        Cell {
            text: "–".to_owned(),
            class: "none",
            ..Cell::default()
        }
    }

    pub(super) fn of(text: Option<&str>) -> Cell {
        text.filter(|text| !text.is_empty())
            .map_or_else(Cell::unknown, Cell::text)
    }

    /// The same, in the type of addresses and ids.
    pub(super) fn mono(self) -> Cell {
        Cell {
            class: if self.class.is_empty() {
                "mono"
            } else {
                self.class
            },
            ..self
        }
    }

    fn right(self) -> Cell {
        Cell {
            class: "right",
            ..self
        }
    }

    pub(super) fn number(number: Option<i64>) -> Cell {
        match number {
            Some(number) => Cell::text(&grouped(number)),
            None => Cell::unknown(),
        }
        .right()
    }

    pub(super) fn bytes(number: Option<i64>) -> Cell {
        let Some(number) = number else {
            return Cell::unknown().right();
        };
        Cell {
            title: format!("{} bytes", grouped(number)),
            ..Cell::text(&bytes(number))
        }
        .right()
    }

    pub(super) fn micros(number: Option<i64>) -> Cell {
        let Some(number) = number else {
            return Cell::unknown().right();
        };
        Cell {
            title: format!("{} µs", grouped(number)),
            ..Cell::text(&duration(number))
        }
        .right()
    }

    pub(super) fn millis(number: Option<i64>) -> Cell {
        let Some(number) = number else {
            return Cell::unknown().right();
        };
        Cell {
            title: format!("{} ms", grouped(number)),
            ..Cell::text(&duration(number.saturating_mul(1000)))
        }
        .right()
    }
}

/// A text of an object.
pub(super) fn text<'v>(object: &'v Value, path: &str) -> Option<&'v str> {
    document::text(object, path)
}

/// A number with its digits in groups of three.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    match number < 0 {
        true => format!("-{out}"),
        false => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_values_are_there_on_hover() {
        let cell = Cell::bytes(Some(2048));
        assert_eq!(
            (cell.text.as_str(), cell.title.as_str()),
            ("2.0 KiB", "2\u{202f}048 bytes")
        );
        let cell = Cell::millis(Some(61_000));
        assert_eq!(cell.text, "1 min 1 s");
        assert_eq!(Cell::number(None).text, "–");
        assert_eq!(grouped(-1_234_567), "-1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
    }
}
