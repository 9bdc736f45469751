//! `--format=html`: UUIDs become links to the rows that they identify.

use std::io::{self, Write};

use corvid_data::Uuid;

use super::{Style, Table};

const UUID_LEN: usize = 36;
/// The number of characters of a UUID that links and anchors show.
const SHOWN_LEN: usize = 8;

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
            let content = match heading.as_str() {
                "_uuid" => anchor(&text),
                _ => with_links(&text),
            };
            writeln!(out, "    <td>{content}</td>")?;
        }
        writeln!(out, "  </tr>")?;
    }
    writeln!(out, "</table>")
}

/// The anchor of a row, the target of links to it. Its name is the cell's whole text; only the
/// beginning is shown.
fn anchor(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_LEN).collect();
    format!("<a name=\"{}\">{}</a>", escaped(text), escaped(&shown))
}

/// The cell's text with every UUID turned into a link.
fn with_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest
            .get(..UUID_LEN)
            .filter(|word| Uuid::parse(word.as_bytes()).is_some())
        {
            Some(uuid) => {
                out.push_str(&format!("<a href=\"#{uuid}\">{}</a>", &uuid[..SHOWN_LEN]));
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
