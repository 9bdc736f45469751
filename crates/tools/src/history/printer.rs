//! Files, events and changes as people read them; events in the manner of `git log -p`:
//!
//! ```text
//! commit 5f36b2ea2906
//! Date:    2026-11-28T10:00:00.123Z
//! Client:  ssl:192.0.2.7:50122 (client "hv1", role "ovn-controller")
//!
//!     ovs-vsctl: set port p1 tag=6
//!
//! modify Port "p1" 5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11
//! - tag: 5
//! + tag: 6
//! ```
//!
//! The input are the lines of `corvid_history::json`, each one object. `ovsdb-tool` makes them,
//! `ovsdb-client` gets them from a server, which divides events with many changes: the other lines
//! of such an event have the member `continued`. The server's release may be another, so a line of
//! an unknown kind is printed as it is.
//!
//! Control characters of foreign texts are escaped in a pipe too: a carriage return in a comment
//! would forge a line on the terminal that shows the output later. `--json` is exact.

use std::io::{self, Write};

use bstr::BStr;
use corvid_data::{AtomRef, Str, text};
use corvid_json::Value;
use corvid_json::shown::{self, Shown};
use corvid_log::CommitClient;

use super::date_text;
use crate::typed_json;

/// Prints lines of the history.
#[derive(Debug)]
pub(crate) struct Printer<W> {
    out: W,
    /// Lines are printed as they are.
    is_json: bool,
    is_first: bool,
    /// The text of a line, which is written in one piece.
    text: Vec<u8>,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, is_json: bool) -> Printer<W> {
        Printer {
            out,
            is_json,
            is_first: true,
            text: Vec::new(),
        }
    }

    /// Prints a line. An event, and a change that is not part of one, comes after an empty line if
    /// it is not the first.
    ///
    /// # Errors
    /// Writing failed.
    pub(crate) fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let object = match self.is_json {
            true => None,
            false => typed_json::parse(line).ok(),
        };
        self.text.clear();
        match object {
            Some(object) => self.object(&object)?,
            None => {
                self.text.extend_from_slice(line);
                self.text.push(b'\n');
            }
        }
        self.out.write_all(&self.text)
    }

    fn object(&mut self, object: &Value) -> io::Result<()> {
        if object.get("continued").and_then(Value::as_bool) == Some(true) {
            self.changes(object)
        } else if let Some(event) = member(object, "event") {
            self.separate()?;
            self.event(event, object)
        } else if member(object, "op").is_some() {
            self.separate()?;
            self.change(object)
        } else if let Some(gap) = member(object, "gap") {
            writeln!(self.text, "{}", shown::line(gap))
        } else if let Some(name) = member(object, "file") {
            let line = file_line(name, object);
            writeln!(self.text, "{}", shown::line(&line))
        } else {
            writeln!(self.text, "{object}")
        }
    }

    fn separate(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.is_first, false) {
            true => Ok(()),
            false => self.text.write_all(b"\n"),
        }
    }

    fn event(&mut self, event: &str, object: &Value) -> io::Result<()> {
        let text = |name| shown::line(member(object, name).unwrap_or_default());
        let heading = match event {
            "begin" => format!("history begins with the contents of {}", text("file")),
            "gap" => format!(
                "commits are missing before {}; their changes together:",
                text("file")
            ),
            "schema" => {
                let (old, new) = (text("old"), text("new"));
                let (old, new) = (version(&old), version(&new));
                format!("conversion from schema version {old} to {new}")
            }
            "commit" => match object.get("confirmed").and_then(Value::as_bool) {
                Some(false) => format!("commit {} (not known to be committed)", text("id")),
                _ => format!("commit {}", text("id")),
            },
            other => shown::line(other).into_owned(),
        };
        writeln!(self.text, "{heading}")?;
        if let Some(date_ms) = object.get("date").and_then(Value::as_integer) {
            writeln!(self.text, "Date:    {}", date_text(date_ms))?;
        }
        if let Some(client) = object.get("client") {
            let client = client_of(client).to_string();
            writeln!(self.text, "Client:  {}", shown::line(&client))?;
        }
        if let Some(comment) = member(object, "comment") {
            self.text.write_all(b"\n")?;
            for line in comment.split('\n') {
                writeln!(self.text, "    {}", shown::line(line))?;
            }
        }
        self.changes(object)
    }

    /// Prints the changes of an event, each after an empty line.
    fn changes(&mut self, event: &Value) -> io::Result<()> {
        let changes = event.get("changes").and_then(Value::as_array);
        for change in changes.unwrap_or_default() {
            self.text.write_all(b"\n")?;
            self.change(change)?;
        }
        Ok(())
    }

    fn change(&mut self, change: &Value) -> io::Result<()> {
        let text = |name| shown::line(member(change, name).unwrap_or_default());
        write!(self.text, "{} {} ", text("op"), text("table"))?;
        if let Some(name) = member(change, "name") {
            write!(self.text, "\"{}\" ", Shown(BStr::new(name)))?;
        }
        writeln!(self.text, "{}", text("row"))?;
        let columns = change.get("columns").and_then(Value::as_object);
        for (name, values) in columns.into_iter().flatten() {
            // A column with at most one element has another value; a set or map has other elements.
            for (member, sign, is_composite) in [
                ("old", '-', false),
                ("new", '+', false),
                ("removed", '-', true),
                ("added", '+', true),
            ] {
                let Some(value) = values.get(member) else {
                    continue;
                };
                let (name, value) = (name.to_string(), datum_text(value, is_composite));
                let (name, value) = (shown::line(&name), shown::line(&value));
                writeln!(self.text, "{sign} {name}: {value}")?;
            }
        }
        Ok(())
    }
}

/// The client of a commit, from its object.
fn client_of(object: &Value) -> CommitClient {
    let text = |name| member(object, name).unwrap_or_default().to_owned();
    let via = object.get("via").and_then(Value::as_array);
    let via = via.unwrap_or_default().iter().filter_map(Value::as_str);
    CommitClient {
        client: text("client"),
        peer: text("peer"),
        role: text("role"),
        via: via.map(str::to_owned).collect(),
    }
}

fn member<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get(name).and_then(Value::as_str)
}

/// A schema's version, which may be missing.
fn version(version: &str) -> &str {
    match version {
        "" => "(none)",
        version => version,
    }
}

/// A datum in the notation of `corvid_data::text`. Its brackets follow from the type there, and
/// here from what the line tells of it.
fn datum_text(datum: &Value, is_composite: bool) -> String {
    let tagged = |tag: &str| match datum.as_array() {
        Some([first, Value::Array(elements)]) if first.as_str() == Some(tag) => {
            Some(elements.as_slice())
        }
        _ => None,
    };
    let (brackets, elements) = match tagged("map") {
        Some(pairs) => (['{', '}'], pairs),
        None => (
            ['[', ']'],
            tagged("set").unwrap_or(std::slice::from_ref(datum)),
        ),
    };
    let mut text = String::new();
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        match element.as_array() {
            Some([key, value]) if brackets[0] == '{' => {
                write_atom(&mut text, key);
                text.push('=');
                write_atom(&mut text, value);
            }
            _ => write_atom(&mut text, element),
        }
    }
    match is_composite || elements.is_empty() {
        true => format!("{}{text}{}", brackets[0], brackets[1]),
        false => text,
    }
}

fn write_atom(out: &mut String, atom: &Value) {
    match (atom, atom.as_array()) {
        (Value::Integer(integer), _) => text::write_atom(out, AtomRef::Integer(*integer)),
        (Value::Bool(boolean), _) => text::write_atom(out, AtomRef::Boolean(*boolean)),
        (Value::String(string), _) => {
            text::write_atom(out, AtomRef::String(&Str::new(&string.to_string())));
        }
        (_, Some([tag, Value::String(uuid)])) if tag.as_str() == Some("uuid") => {
            out.push_str(&uuid.to_string());
        }
        // Reals have the same form in both notations.
        _ => out.push_str(&atom.to_string()),
    }
}

/// A file of the history on one line.
fn file_line(name: &str, file: &Value) -> String {
    let number = |name| file.get(name).and_then(Value::as_integer);
    let place = number("number").map_or("-".to_owned(), |number| number.to_string());
    let dates = match (number("first"), number("last")) {
        (Some(first_ms), Some(last_ms)) => {
            format!("{} to {}", date_text(first_ms), date_text(last_ms))
        }
        _ => "no dates".to_owned(),
    };
    let bytes_of = |name| bytes_text(number(name).unwrap_or_default());
    let bytes = match file.get("compressed").and_then(Value::as_bool) {
        Some(true) => format!("{} of {}", bytes_of("bytes"), bytes_of("text_bytes")),
        _ => bytes_of("bytes"),
    };
    let transactions = number("transactions").unwrap_or_default();
    let mut line = format!("{place:>10}  {dates}  {transactions} transactions  {bytes}  {name}");
    if let Some(torn) = number("torn_bytes") {
        line.push_str(&format!(
            " ({torn} bytes at its end are not a whole record)"
        ));
    }
    line
}

/// A number of bytes for people.
fn bytes_text(bytes: i64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = "bytes";
    let mut tenths = bytes.saturating_mul(10);
    for larger in UNITS {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    match unit {
        "bytes" => format!("{bytes} {unit}"),
        _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use corvid_data::{Arc, Schema, Uuid, wire};
    use corvid_history::{ColumnChange, RowChange, json};
    use corvid_json::Reader;

    fn printed(lines: &[&str], is_json: bool) -> String {
        let mut printer = Printer::new(Vec::new(), is_json);
        for line in lines {
            printer.line(line.as_bytes()).expect("memory");
        }
        String::from_utf8(printer.out).expect("UTF-8")
    }

    /// Every value of a line is printed as `corvid_data::text` prints it with the column's type.
    #[test]
    fn values_have_the_notation_of_their_types() {
        let set =
            |key: &str, max: &str| format!(r#"{{"type":{{"key":"{key}","min":0,"max":{max}}}}}"#);
        let map = |max: &str| {
            format!(r#"{{"type":{{"key":"string","value":"integer","min":0,"max":{max}}}}}"#)
        };
        let all = "\"unlimited\"";
        let uuid = r#"["uuid","5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11"]"#;
        let words = r#"["set",["","a b","br-int","true"]]"#;
        for (column, old, new) in [
            (set("integer", "1"), r#"["set",[]]"#, "-7"),
            (set("integer", all), "7", r#"["set",[8,9]]"#),
            (set("real", all), "0.5", r#"["set",[1e20,5.0]]"#),
            (set("boolean", "1"), "true", r#"["set",[]]"#),
            (set("string", all), words, "\"x\\n\""),
            (set("string", "1"), "\"a=b\"", "\"ü\""),
            (set("uuid", all), uuid, r#"["set",[]]"#),
            (set("uuid", "1"), uuid, r#"["set",[]]"#),
            (set("real", "1"), "1e15", "0.5"),
            (
                set("real", all),
                r#"["set",[]]"#,
                r#"["set",[1e-7,5,1e18]]"#,
            ),
            (
                map(all),
                r#"["map",[["k",1]]]"#,
                r#"["map",[["k",2],["l m",3]]]"#,
            ),
            (map("1"), r#"["map",[["k",1]]]"#, r#"["map",[]]"#),
        ] {
            let schema =
                format!(r#"{{"name":"D","tables":{{"T":{{"columns":{{"c":{column}}}}}}}}}"#);
            let schema = Value::parse(schema.as_bytes()).expect("JSON");
            let schema = Arc::new(Schema::from_json(&schema).expect("a schema"));
            let table = schema.table_id("T").expect("the table");
            let column_type = schema.table(table).columns()[0].column_type.clone();
            let read = |text: &str| {
                let datum = wire::read_datum(&mut Reader::new(text.as_bytes()), &column_type, None);
                Arc::from(vec![datum.expect("a datum")])
            };
            let change = RowChange {
                schema: schema.clone(),
                table,
                uuid: Uuid::ZERO,
                old: Some(read(old)),
                new: Some(read(new)),
            };
            let typed = |datum| {
                let mut value = String::new();
                text::write_datum(&mut value, datum, &column_type);
                value
            };
            let mut expected = format!("modify T {}\n", Uuid::ZERO);
            let (_, changed) = change.columns().remove(0);
            let (before, after) = match &changed {
                ColumnChange::Value { old, new } => (Some(old), Some(new)),
                ColumnChange::Elements { removed, added } => {
                    let filled = |datum: &&_| !corvid_data::Datum::is_empty(datum);
                    (Some(removed).filter(filled), Some(added).filter(filled))
                }
            };
            for (sign, datum) in [('-', before), ('+', after)] {
                let line = datum.map(|datum| format!("{sign} c: {}\n", typed(datum)));
                expected.extend(line);
            }
            let mut line = Vec::new();
            json::write_change(&mut line, &change);
            let line = String::from_utf8(line).expect("UTF-8");
            assert_eq!(printed(&[&line], false), expected, "{line}");
            assert_eq!(printed(&[&line], true), format!("{line}\n"));
        }
    }

    #[test]
    fn files_have_one_line_each() {
        let segment = r#"{"number":7,"file":"a.db.history/0000000007.db.zst","compressed":true,"bytes":2048,"text_bytes":5000000,"transactions":12,"first":1700000000000,"last":1700000001000}"#;
        let torn = r#"{"file":"a.db","compressed":false,"bytes":100,"text_bytes":100,"torn_bytes":9,"transactions":1}"#;
        assert_eq!(
            printed(&[segment, torn, r#"{"gap":"segment 8 is missing"}"#], false),
            "         7  2023-11-14T22:13:20.000Z to 2023-11-14T22:13:21.000Z  12 transactions  2.0 KiB of 4.7 MiB  a.db.history/0000000007.db.zst\n         \
             -  no dates  1 transactions  100 bytes  a.db (9 bytes at its end are not a whole record)\nsegment 8 is missing\n"
        );
    }

    /// A server divides an event with many changes.
    #[test]
    fn the_rest_of_an_event_is_printed_without_its_heading() {
        let change = r#"{"table":"T","row":"5db7","op":"insert","columns":{}}"#;
        let first = format!(r#"{{"event":"commit","id":"a","changes":[{change}]}}"#);
        let rest =
            format!(r#"{{"event":"commit","id":"a","changes":[{change}],"continued":true}}"#);
        assert_eq!(
            printed(&[&first, &rest, &first], false),
            "commit a\n\ninsert T 5db7\n\ninsert T 5db7\n\ncommit a\n\ninsert T 5db7\n"
        );
    }

    #[test]
    fn no_foreign_text_forges_a_line() {
        let line = r#"{"event":"commit","id":"a\nb","comment":"one\ntwo\rcommit c\u001b[2J\u2028x","client":{"client":"hv\r1"},"changes":[{"table":"T\n","name":"n\r","row":"5db7","op":"insert","columns":{"c\n":{"new":"v\r"}}}]}"#;
        assert_eq!(
            printed(&[line, r#"{"gap":"a.db\r is missing"}"#], false),
            "commit a\\nb\nClient:  unknown address (client \"hv\\r1\")\n\n    one\n    two\\rcommit c\\u001b[2J\\u2028x\n\n\
             insert T\\n \"n\\r\" 5db7\n+ c\\n: \"v\\r\"\na.db\\r is missing\n"
        );
        assert_eq!(printed(&[line], true), format!("{line}\n"));
    }

    /// A server of a later release may send lines that this one does not know.
    #[test]
    fn unknown_lines_are_printed_as_they_are() {
        assert_eq!(
            printed(&[r#"{"later":[1]}"#, "7"], false),
            "{\"later\":[1]}\n7\n"
        );
        let event = printed(&[r#"{"event":"later","date":1700000000000}"#], false);
        assert_eq!(event, "later\nDate:    2023-11-14T22:13:20.000Z\n");
    }
}
