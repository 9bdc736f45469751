//! Files, events and changes as JSON: one object for each, for programs (`--json`, `read_history`).
//! The tools make their texts of these lines, so an object has everything that a text shows.

use corvid_data::{Datum, wire};
use corvid_json::{ArrayWriter, ObjectWriter, write};
use corvid_log::CommitClient;

use crate::ReadAt;
use crate::change::{ColumnChange, RowChange};
use crate::error::HistoryError;
use crate::part::Part;
use crate::walk::Event;

/// Appends an event as one object.
pub fn write_event(out: &mut Vec<u8>, event: &Event<'_>) {
    let mut object = ObjectWriter::new(out);
    match event {
        Event::Begin {
            file,
            date_ms,
            changes,
        } => {
            write::string(object.member("event"), b"begin");
            head(&mut object, file, *date_ms);
            write_changes(object.member("changes"), changes);
        }
        Event::Gap {
            file,
            date_ms,
            changes,
        } => {
            write::string(object.member("event"), b"gap");
            head(&mut object, file, *date_ms);
            write_changes(object.member("changes"), changes);
        }
        Event::Schema {
            file,
            date_ms,
            old,
            new,
        } => {
            write::string(object.member("event"), b"schema");
            head(&mut object, file, *date_ms);
            write::string(object.member("old"), old.version.as_bytes());
            write::string(object.member("new"), new.version.as_bytes());
        }
        Event::Commit {
            id,
            file,
            date_ms,
            client,
            comment,
            is_confirmed,
            changes,
        } => {
            write::string(object.member("event"), b"commit");
            write::string(object.member("id"), id.to_string().as_bytes());
            head(&mut object, file, *date_ms);
            if let Some(client) = client {
                write_client(object.member("client"), client);
            }
            if let Some(comment) = comment {
                write::string(object.member("comment"), comment.as_bytes());
            }
            if !is_confirmed {
                write::boolean(object.member("confirmed"), false);
            }
            write_changes(object.member("changes"), changes);
        }
    }
    object.end();
}

/// Appends what a file of the history has as one object (`history --json`).
///
/// # Errors
/// The file cannot be read, or is not a database.
pub fn write_part<F: ReadAt>(out: &mut Vec<u8>, part: &Part<F>) -> Result<(), HistoryError> {
    let index = part.index()?;
    let integer = |object: &mut ObjectWriter<'_>, name: &str, value: u64| {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        write::integer(object.member(name), value);
    };
    let mut object = ObjectWriter::new(out);
    if let Some(number) = part.number() {
        integer(&mut object, "number", number);
    }
    write::string(object.member("file"), part.name().as_bytes());
    write::string(object.member("database"), index.identity.name.as_bytes());
    write::string(
        object.member("schema_version"),
        index.identity.version.as_bytes(),
    );
    write::boolean(object.member("compressed"), part.is_segment());
    integer(&mut object, "bytes", index.bytes);
    integer(&mut object, "text_bytes", index.text_length);
    let torn = index.text_length - index.good_length;
    if torn > 0 {
        integer(&mut object, "torn_bytes", torn);
    }
    integer(&mut object, "records", index.records);
    integer(&mut object, "transactions", index.transactions);
    if let Some((first_ms, last_ms)) = index.dates_ms {
        write::integer(object.member("first"), first_ms);
        write::integer(object.member("last"), last_ms);
    }
    object.end();
    Ok(())
}

/// Appends a description of missing files as one object, which comes after those of the files.
pub fn write_gap(out: &mut Vec<u8>, gap: &str) {
    ObjectWriter::new(out).string("gap", gap.as_bytes()).end();
}

/// Appends changes as an array of objects.
pub fn write_changes(out: &mut Vec<u8>, changes: &[RowChange]) {
    let mut array = ArrayWriter::new(out);
    for change in changes {
        write_change(array.element(), change);
    }
    array.end();
}

fn write_client(out: &mut Vec<u8>, client: &CommitClient) {
    let mut object = ObjectWriter::new(out);
    let texts = [
        ("client", &client.client),
        ("peer", &client.peer),
        ("role", &client.role),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            object = object.string(name, text.as_bytes());
        }
    }
    if !client.via.is_empty() {
        let mut list = ArrayWriter::new(object.member("via"));
        for via in &client.via {
            write::string(list.element(), via.as_bytes());
        }
        list.end();
    }
    object.end();
}

fn head(object: &mut ObjectWriter<'_>, file: &str, date_ms: Option<i64>) {
    if let Some(date_ms) = date_ms {
        write::integer(object.member("date"), date_ms);
    }
    write::string(object.member("file"), file.as_bytes());
}

/// Appends the change of one row.
pub fn write_change(out: &mut Vec<u8>, change: &RowChange) {
    let table = change.table();
    let mut object = ObjectWriter::new(out);
    write::string(object.member("table"), table.name.as_bytes());
    write::string(object.member("row"), &change.uuid.to_text());
    if let Some(name) = change.name() {
        write::string(object.member("name"), name.as_bytes());
    }
    let op: &[u8] = match (&change.old, &change.new) {
        (None, _) => b"insert",
        (Some(_), Some(_)) => b"modify",
        (Some(_), None) => b"delete",
    };
    write::string(object.member("op"), op);
    let mut columns = ObjectWriter::new(object.member("columns"));
    for (at, column) in change.columns() {
        let described = &table.columns()[at];
        let is_map = described.column_type.is_map();
        let mut value = ObjectWriter::new(columns.member(described.name.as_bytes()));
        let mut member = |name: &str, datum: &Datum| {
            wire::write_datum(value.member(name), datum, is_map);
        };
        match &column {
            ColumnChange::Value { old, new } => {
                if change.old.is_some() {
                    member("old", old);
                }
                if change.new.is_some() {
                    member("new", new);
                }
            }
            ColumnChange::Elements { removed, added } => {
                if !removed.is_empty() {
                    member("removed", removed);
                }
                if !added.is_empty() {
                    member("added", added);
                }
            }
        }
        value.end();
    }
    columns.end();
    object.end();
}
