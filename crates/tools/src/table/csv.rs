//! `--format=csv`.

use std::io::{self, Write};

use super::{Style, Table};

pub(super) fn print(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in [&table.timestamp, &table.caption].into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    if style.headings {
        line(table.headings.iter().cloned(), out)?;
    }
    table
        .rows
        .iter()
        .try_for_each(|row| line(row.iter().map(|cell| cell.to_text(style.cells)), out))
}

fn line(fields: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    for (column, field) in fields.enumerate() {
        if column > 0 {
            write!(out, ",")?;
        }
        if field.contains(['"', ',', '\n']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            write!(out, "{field}")?;
        }
    }
    writeln!(out)
}
