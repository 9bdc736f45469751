//! `--format=table`: aligned columns.

use std::io::{self, Write};

use super::{Style, Table};

pub(super) fn print(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in [&table.timestamp, &table.caption].into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| style.line_text(cell)).collect())
        .collect();
    let widths: Vec<usize> = (0..table.headings.len())
        .map(|column| {
            let longest = cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
            let capped = match style.column_width_max {
                0 => longest,
                max => longest.min(max),
            };
            if style.headings {
                capped.max(table.headings[column].len())
            } else {
                capped
            }
        })
        .collect();
    if style.headings {
        line(&table.headings, &widths, out)?;
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        line(&dashes, &widths, out)?;
    }
    cells.iter().try_for_each(|row| line(row, &widths, out))
}

/// Prints one line: each cell is cut or padded to the width of its column. Widths count bytes, so a
/// cut may split a character, as in the reference.
fn line(cells: &[String], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if column > 0 {
            text.push(b' ');
        }
        let end = text.len() + width;
        text.extend_from_slice(&cell.as_bytes()[..cell.len().min(*width)]);
        text.resize(end, b' ');
    }
    let end = text.iter().rposition(|byte| *byte != b' ');
    text.truncate(end.map_or(0, |last| last + 1));
    text.push(b'\n');
    out.write_all(&text)
}
