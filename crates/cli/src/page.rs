//! Output for a person at a terminal: tables that fit its width, wide rows as records.
//!
//! Functions of a table and a width. `chain_run` prints the result, and prints exactly what the
//! reference's tools print if nobody sits at a terminal.

use corvid_json::shown;
use corvid_shell::terminal::{Colour, Painted, cut, width};
use corvid_tools::table::{CellStyle, Table};

/// The layout of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Aligned columns if every value is shown whole in them, else records.
    Fitting,
    /// Aligned columns, whose longest values are cut; records if even that does not fit.
    Table,
    /// One line for each value.
    Records,
}

/// The columns between two columns of a table.
const GAP: usize = 2;
/// Columns of a table are not cut shorter than this.
const WIDTH_MIN: usize = 6;
/// Ends a value that is cut.
const CUT: &str = "…";

/// How a table is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Its layout.
    pub(crate) layout: Layout,
    /// The form of its values.
    pub(crate) cells: CellStyle,
    /// Whether the names of columns are shown.
    pub(crate) has_headings: bool,
    /// The width of the terminal.
    pub(crate) columns: usize,
}

/// Adds a table.
pub(crate) fn add_table(page: &mut Painted, table: &Table, shape: Shape) {
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            let texts = row.iter().map(|cell| cell.to_text(shape.cells));
            texts.map(|text| shown::line(&text).into_owned()).collect()
        })
        .collect();
    match widths(&table.headings, &rows, shape) {
        Some(widths) => add_aligned(page, &table.headings, &rows, &widths, shape.has_headings),
        None => add_records(page, &table.headings, &rows, shape.has_headings),
    }
}

/// The widths of aligned columns; `None` if the rows are to be shown as records.
fn widths(headings: &[String], rows: &[Vec<String>], shape: Shape) -> Option<Vec<usize>> {
    if shape.layout == Layout::Records {
        return None;
    }
    let natural: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let longest = rows.iter().map(|row| width(&row[column])).max();
            let heading = if shape.has_headings {
                width(heading)
            } else {
                0
            };
            longest.unwrap_or(0).max(heading)
        })
        .collect();
    let room = shape
        .columns
        .checked_sub(GAP * headings.len().saturating_sub(1))?;
    let total = |limit: usize| {
        natural
            .iter()
            .map(|width| (*width).min(limit))
            .sum::<usize>()
    };
    if total(usize::MAX) <= room {
        return Some(natural);
    }
    if shape.layout == Layout::Fitting {
        return None;
    }
    // The highest limit with which the columns fit.
    let limit = (WIDTH_MIN..room)
        .take_while(|limit| total(*limit) <= room)
        .last()?;
    Some(natural.into_iter().map(|width| width.min(limit)).collect())
}

fn add_aligned(
    page: &mut Painted,
    headings: &[String],
    rows: &[Vec<String>],
    widths: &[usize],
    has_headings: bool,
) {
    if has_headings {
        add_line(page, headings, widths, Colour::Bold);
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        add_line(page, &dashes, widths, Colour::Plain);
    }
    for row in rows {
        add_line(page, row, widths, Colour::Plain);
    }
}

/// Adds a line of a table, without blanks at its end.
fn add_line(page: &mut Painted, cells: &[String], widths: &[usize], colour: Colour) {
    let last = cells.iter().rposition(|cell| !cell.is_empty());
    let shown = last.map_or(0, |last| last + 1);
    for (number, (cell, room)) in cells.iter().zip(widths).take(shown).enumerate() {
        let (beginning, mark) = match width(cell) > *room {
            true => (cut(cell, room.saturating_sub(width(CUT))), CUT),
            false => (cell.as_str(), ""),
        };
        page.part(colour, beginning);
        page.part(colour, mark);
        if number + 1 < shown {
            let taken = width(beginning) + width(mark);
            page.part(Colour::Plain, &" ".repeat(room - taken + GAP));
        }
    }
    page.end_line();
}

fn add_records(page: &mut Painted, headings: &[String], rows: &[Vec<String>], has_headings: bool) {
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            page.end_line();
        }
        for (heading, cell) in headings.iter().zip(row) {
            if has_headings {
                page.part(Colour::Bold, &format!("{heading:<20}"));
                page.part(Colour::Plain, ": ");
            }
            page.part(Colour::Plain, cell);
            page.end_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_tools::table::Cell;

    fn table(headings: &[&str], rows: &[&[&str]]) -> Table {
        let cells = |row: &&[&str]| {
            let cells = row.iter().map(|text| Cell::Text((*text).to_owned()));
            cells.collect()
        };
        Table {
            headings: headings.iter().map(|name| (*name).to_owned()).collect(),
            rows: rows.iter().map(cells).collect(),
            ..Table::default()
        }
    }

    fn shown(table: &Table, layout: Layout, columns: usize) -> String {
        let mut page = Painted::new(true, false);
        let shape = Shape {
            layout,
            cells: CellStyle::String,
            has_headings: true,
            columns,
        };
        add_table(&mut page, table, shape);
        page.as_str().to_owned()
    }

    #[test]
    fn a_narrow_table_is_aligned() {
        let table = table(
            &["name", "n"],
            &[&["web-1", "1"], &["日本", "22"], &["x", ""]],
        );
        let expected = "name   n\n-----  --\nweb-1  1\n日本   22\nx\n";
        assert_eq!(shown(&table, Layout::Fitting, 9), expected);
        assert_eq!(shown(&table, Layout::Table, 300), expected);
    }

    #[test]
    fn a_wide_row_is_a_record_or_cut_on_demand() {
        let table = table(&["name", "text"], &[&["a", "one two three"], &["b", ""]]);
        assert_eq!(
            shown(&table, Layout::Fitting, 15),
            "name                : a\ntext                : one two three\n\nname                : b\ntext                : \n"
        );
        assert_eq!(
            shown(&table, Layout::Table, 15),
            "name  text\n----  ---------\na     one two …\nb\n"
        );
        // Not even the beginnings fit.
        assert_eq!(
            shown(&table, Layout::Table, 11),
            shown(&table, Layout::Records, 11)
        );
    }

    /// Hostile and wide values, at every width that a terminal has.
    #[test]
    fn no_line_of_a_table_is_wider_than_the_terminal() {
        let long = "日本\u{1b}[2J\n".repeat(9);
        let rows: Vec<Vec<&str>> = (0..30)
            .map(|number| {
                (0..9)
                    .map(|column| match (number * column) % 5 {
                        0 => "",
                        1 => "e\u{301}",
                        2 => "\u{202e}a\tb\r",
                        3 => &long,
                        _ => "value",
                    })
                    .collect()
            })
            .collect();
        let (mut aligned, mut records) = (0, 0);
        for columns in 40..=300 {
            for count in 1..=9 {
                let headings: Vec<&str> = ["n", "name", "a_long_heading"]
                    .into_iter()
                    .cycle()
                    .take(count)
                    .collect();
                let rows: Vec<&[&str]> = rows.iter().map(|row| &row[..count]).collect();
                let table = table(&headings, &rows);
                for layout in [Layout::Fitting, Layout::Table] {
                    let text = shown(&table, layout, columns);
                    let is_raw = |letter: char| letter != '\n' && shown::is_control(letter);
                    assert!(!text.contains(is_raw), "{text:?}");
                    if text.starts_with(&format!("{:<20}: ", headings[0])) {
                        records += 1;
                        continue;
                    }
                    aligned += 1;
                    let widest = text.lines().map(width).max().unwrap_or(0);
                    assert!(widest <= columns, "{widest} of {columns}:\n{text}");
                    if layout == Layout::Fitting {
                        assert!(!text.contains(CUT), "{text}");
                    }
                }
            }
        }
        assert!(aligned > 1000 && records > 1000, "{aligned} {records}");
    }
}
