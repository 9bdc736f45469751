//! `--format=html`: UUIDs become links to the rows that they name.

use std::io::{self, Write};

use corvid_data::Uuid;

use super::{Style, Table};

const UUID_LEN: usize = 36;

pub(super) fn print(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if let Some(timestamp) = &table.timestamp {
        writeln!(out, "{timestamp}")?;
    }
    writeln!(out, "<table border=1>")?;
    if let Some(caption) = &table.caption {
        writeln!(out, "    <caption>{}</caption>", escaped(caption))?;
    }
    if style.headings {
        writeln!(out, "  <tr>")?;
        for heading in &table.headings {
            writeln!(out, "    <th>{}</th>", escaped(heading))?;
        }
        writeln!(out, "  </tr>")?;
    }
    for row in &table.rows {
        writeln!(out, "  <tr>")?;
        for (heading, cell) in table.headings.iter().zip(row) {
            let text = cell.to_text(style.cells);
            writeln!(out, "    <td>{}</td>", content(&text, heading == "_uuid"))?;
        }
        writeln!(out, "  </tr>")?;
    }
    writeln!(out, "</table>")
}

/// The cell's text with every UUID in it made a link, or an anchor where it is the row's own.
fn content(text: &str, is_anchor: bool) -> String {
    if is_anchor && Uuid::parse(text.as_bytes()).is_some() {
        return format!("<a name=\"{text}\">{}</a>", &text[..8]);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest
            .get(..UUID_LEN)
            .filter(|word| Uuid::parse(word.as_bytes()).is_some())
        {
            Some(uuid) => {
                out.push_str(&format!("<a href=\"#{uuid}\">{}</a>", &uuid[..8]));
                rest = &rest[UUID_LEN..];
            }
            None => {
                escape(first, &mut out);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    text.chars().for_each(|c| escape(c, &mut out));
    out
}

fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        other => out.push(other),
    }
}
