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
        .map(|row| {
            row.iter()
                .map(|cell| truncated(cell.to_text(style.cells), style.column_width_max))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = (0..table.headings.len())
        .map(|column| {
            let widest = cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
            if style.headings {
                widest.max(table.headings[column].len())
            } else {
                widest
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

/// Cuts at `max` bytes, back to a character boundary.
fn truncated(mut text: String, max: usize) -> String {
    if max > 0 && text.len() > max {
        let end = (0..=max)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn line(cells: &[String], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if column > 0 {
            text.push(' ');
        }
        text.push_str(cell);
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.len())));
    }
    writeln!(out, "{}", text.trim_end_matches(' '))
}
