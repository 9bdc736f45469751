//! Tables of results and their five print formats (docs/spec/cli.md 3.5).
//!
//! A [`Table`] is filled cell by cell, then printed once by a [`Printer`], which writes separators
//! between tables.

mod cell;
mod csv;
mod html;
mod json;
mod list;
mod text;

use std::io::{self, Write};

pub use cell::{Cell, CellStyle};
use corvid_json::shown;

/// The layout of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// One `column: value` line per cell.
    List,
    /// HTML.
    Html,
    /// Comma-separated values.
    Csv,
    /// One JSON object per table.
    Json,
}

impl Format {
    /// The format named `name` on the command line.
    #[must_use]
    pub fn parse(name: &str) -> Option<Format> {
        Some(match name {
            "table" => Format::Table,
            "list" => Format::List,
            "html" => Format::Html,
            "csv" => Format::Csv,
            "json" => Format::Json,
            _ => return None,
        })
    }
}

/// Print options.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Layout.
    pub format: Format,
    /// The form of cells.
    pub cells: CellStyle,
    /// Print heading lines or names.
    pub headings: bool,
    /// Indent JSON.
    pub pretty: bool,
    /// The maximum column width in the table layout, bytes, unless the heading is wider; 0:
    /// unlimited.
    pub column_width_max: usize,
    /// A person reads the output: newlines in cells of tables and lists are escaped, so that no
    /// value can forge a row.
    pub is_shown: bool,
}

impl Style {
    /// The text of a cell, for layouts in which a line ends a row.
    fn line_text(&self, cell: &Cell) -> String {
        let text = cell.to_text(self.cells);
        match self.is_shown {
            true => shown::line(&text).into_owned(),
            false => text,
        }
    }
}

impl Default for Style {
    fn default() -> Style {
        Style {
            format: Format::Table,
            cells: CellStyle::String,
            headings: true,
            pretty: false,
            column_width_max: 0,
            is_shown: false,
        }
    }
}

/// A table of cells.
#[derive(Debug, Default)]
pub struct Table {
    /// A line above the table.
    pub caption: Option<String>,
    /// The time printed above the table.
    pub timestamp: Option<String>,
    /// Column names.
    pub headings: Vec<String>,
    /// Rows; each has as many cells as there are headings.
    pub rows: Vec<Vec<Cell>>,
}

/// Prints the tables of one run.
#[derive(Debug)]
pub struct Printer {
    style: Style,
    is_first: bool,
}

impl Printer {
    /// A printer that has not printed a table yet.
    #[must_use]
    pub fn new(style: Style) -> Printer {
        Printer {
            style,
            is_first: true,
        }
    }

    /// Prints one table, after an empty line if the format separates tables.
    ///
    /// # Errors
    /// Writing failed.
    pub fn print(&mut self, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        let separated = matches!(
            self.style.format,
            Format::Table | Format::List | Format::Csv
        );
        if separated && !std::mem::replace(&mut self.is_first, false) {
            writeln!(out)?;
        }
        match self.style.format {
            Format::Table => text::print(table, &self.style, out),
            Format::List => list::print(table, &self.style, out),
            Format::Html => html::print(table, &self.style, out),
            Format::Csv => csv::print(table, &self.style, out),
            Format::Json => json::print(table, &self.style, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, AtomType, ColumnType, Datum, Str};
    use std::rc::Rc;

    fn sample() -> Table {
        let text = Rc::new(ColumnType::scalar(AtomType::String));
        let integer = Rc::new(ColumnType::scalar(AtomType::Integer));
        let row = |name: &str, n: i64| {
            vec![
                Cell::Datum(Datum::one(Atom::String(Str::new(name))), text.clone()),
                Cell::Datum(Datum::one(Atom::Integer(n)), integer.clone()),
                Cell::Empty,
            ]
        };
        Table {
            caption: Some("T table".to_owned()),
            timestamp: None,
            headings: vec!["name".to_owned(), "n".to_owned(), "rest".to_owned()],
            rows: vec![row("a b", 5), row("<&>", -12)],
        }
    }

    fn printed(style: Style) -> String {
        let mut out = Vec::new();
        Printer::new(style).print(&sample(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn table_columns_align_without_trailing_spaces() {
        let expected = "T table\nname  n   rest\n----- --- ----\n\"a b\" 5\n\"<&>\" -12\n";
        assert_eq!(printed(Style::default()), expected);
    }

    #[test]
    fn list_separates_rows_by_empty_lines() {
        let expected = "T table\nname                : \"a b\"\nn                   : 5\nrest                : \n\n\
                        name                : \"<&>\"\nn                   : -12\nrest                : \n";
        assert_eq!(
            printed(Style {
                format: Format::List,
                ..Style::default()
            }),
            expected
        );
    }

    #[test]
    fn a_value_forges_no_row_on_a_terminal() {
        let text = Rc::new(ColumnType::scalar(AtomType::String));
        let value = Datum::one(Atom::String(Str::new("a\nb\u{1b}[H")));
        let table = Table {
            headings: vec!["n".to_owned()],
            rows: vec![vec![Cell::Datum(value, text)]],
            ..Table::default()
        };
        let printed = |format, is_shown| {
            let style = Style {
                format,
                cells: CellStyle::Bare,
                is_shown,
                ..Style::default()
            };
            let mut out = Vec::new();
            Printer::new(style).print(&table, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let shown = printed(Format::Table, true);
        assert_eq!(shown, "n\n------------\na\\nb\\u001b[H\n");
        let shown = printed(Format::List, true);
        assert_eq!(shown, "n                   : a\\nb\\u001b[H\n");
        // Scripts get the same bytes as from the reference.
        let exact = printed(Format::List, false);
        assert_eq!(exact, "n                   : a\nb\u{1b}[H\n");
        let csv = "n\n\"a\nb\u{1b}[H\"\n";
        assert_eq!(printed(Format::Csv, false), csv);
        assert_eq!(printed(Format::Csv, true), csv);
    }

    #[test]
    fn csv_doubles_quotes() {
        let expected = "T table\nname,n,rest\n\"\"\"a b\"\"\",5,\n\"\"\"<&>\"\"\",-12,\n";
        assert_eq!(
            printed(Style {
                format: Format::Csv,
                ..Style::default()
            }),
            expected
        );
    }

    #[test]
    fn html_escapes() {
        let text = printed(Style {
            format: Format::Html,
            headings: false,
            ..Style::default()
        });
        assert!(
            text.contains("    <td>&quot;&lt;&amp;&gt;&quot;</td>\n"),
            "{text}"
        );
    }

    #[test]
    fn json_holds_values() {
        let expected = "{\"caption\":\"T table\",\"data\":[[\"a b\",5,null],[\"<&>\",-12,null]],\"headings\":[\"name\",\"n\",\"rest\"]}\n";
        assert_eq!(
            printed(Style {
                format: Format::Json,
                ..Style::default()
            }),
            expected
        );
    }
}
