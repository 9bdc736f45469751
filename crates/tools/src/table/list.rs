//! `--format=list`: one line per cell, an empty line between rows.

use std::io::{self, Write};

use super::{Style, Table};

pub(super) fn print(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in [&table.timestamp, &table.caption].into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    for (number, row) in table.rows.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        for (heading, cell) in table.headings.iter().zip(row) {
            if style.headings {
                write!(out, "{heading:<20}: ")?;
            }
            writeln!(out, "{}", style.line_text(cell))?;
        }
    }
    Ok(())
}
