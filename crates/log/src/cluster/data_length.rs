//! Decides whether an entry's data fit into a number of bytes, before the data are written.
//!
//! A transaction of ten megabytes may put one value into a thousand rows. Its data take ten
//! gigabytes, while the rows share the value. So the length is first bounded from the values,
//! without writing anything. The leader's database asks before each proposal.

use corvid_data::{AtomRef, AtomType, ColumnSchema, Datum, Delta, Schema};
use corvid_json::write;

/// Maximum bytes of an atom without the content of strings: `["uuid","…"]`, plus the brackets and
/// commas of a pair.
const ATOM_BYTES: usize = 52;
/// Maximum bytes of a column without its name and atoms: `"":["map",[]],`.
const COLUMN_BYTES: usize = 16;
/// Maximum bytes of a row without its table's name and its columns.
const ROW_BYTES: usize = 52;
/// Maximum bytes of everything else, without the comment.
const HEAD_BYTES: usize = 128;
/// Maximum bytes of a string's byte in JSON: `\u0001`.
const ESCAPED_BYTES: usize = 6;
/// Bytes of a string that are escaped at a time.
const BLOCK_BYTES: usize = 64 * 1024;

/// The lengths of the parts of an entry's data.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    /// Total bytes of all strings, unescaped.
    strings: usize,
    /// Upper bound of everything else, bytes.
    rest: usize,
}

/// Whether [`super::write_data`] writes at most `bytes_max` bytes for this commit. May say no if
/// the length is within a few percent of the limit.
#[must_use]
pub fn data_fits(schema: &Schema, delta: &Delta, is_diff: bool, bytes_max: usize) -> bool {
    let mut lengths = Lengths::default();
    let mut add = |text: &str| {
        lengths.strings = lengths.strings.saturating_add(text.len());
    };
    add(&delta.comment);
    let rest = walk(schema, delta, is_diff, &mut add);
    lengths.rest = rest;
    let most = lengths.strings.saturating_mul(ESCAPED_BYTES);
    if most.saturating_add(lengths.rest) <= bytes_max {
        return true;
    }
    if lengths.strings > bytes_max {
        return false;
    }
    // Between the two bounds, the escapes decide. Counting them costs as much as writing the
    // strings.
    let mut escaped = 0_usize;
    let mut block = Vec::new();
    let mut add = |text: &str| {
        for part in text.as_bytes().chunks(BLOCK_BYTES) {
            block.clear();
            write::escaped(&mut block, part);
            escaped = escaped.saturating_add(block.len());
        }
    };
    add(&delta.comment);
    let rest = walk(schema, delta, is_diff, &mut add);
    escaped.saturating_add(rest) <= bytes_max
}

/// Passes each string that would be written to `add`. Returns an upper bound for the length of
/// everything else.
fn walk(schema: &Schema, delta: &Delta, is_diff: bool, add: &mut impl FnMut(&str)) -> usize {
    let mut rest = HEAD_BYTES;
    for change in &delta.changes {
        let table = schema.table(change.table);
        rest += ROW_BYTES + table.name.len();
        let Some(new) = &change.new else {
            continue;
        };
        if change.old.is_none() {
            for (column, datum) in table.columns().iter().zip(&new.columns) {
                rest = rest.saturating_add(add_datum(column, datum, add));
            }
            continue;
        }
        for diff in &change.diffs {
            let datum = match is_diff {
                true => &diff.diff,
                false => &new.columns[usize::from(diff.column.0)],
            };
            let column = table.column(diff.column);
            rest = rest.saturating_add(add_datum(column, datum, add));
        }
    }
    rest
}

fn add_datum(column: &ColumnSchema, datum: &Datum, add: &mut impl FnMut(&str)) -> usize {
    if !column.persistent {
        return 0;
    }
    let atoms = usize::try_from(datum.atom_count()).unwrap_or(usize::MAX);
    let mut add_string = |atom: AtomRef<'_>| {
        if let AtomRef::String(text) = atom {
            add(text.as_str());
        }
    };
    // Only strings need a look: all other atoms are short.
    let column_type = &column.column_type;
    if column_type.key.atom == AtomType::String {
        datum.keys().for_each(&mut add_string);
    }
    let value = column_type.value.as_ref();
    if value.is_some_and(|value| value.atom == AtomType::String) {
        datum.values().for_each(&mut add_string);
    }
    let atoms = atoms.saturating_mul(ATOM_BYTES);
    atoms.saturating_add(COLUMN_BYTES + column.name.len())
}

#[cfg(test)]
mod tests {
    use corvid_data::{Arc, Atom, ColumnDiff, ColumnId, Row, RowChange, Str, TableId, Uuid};
    use corvid_json::Value;

    use super::super::write_data;
    use super::*;

    fn schema() -> Schema {
        let text = br#"{"name":"D","tables":{"T":{"columns":{
            "m":{"type":{"key":"string","value":"uuid","min":0,"max":"unlimited"}},
            "n":{"type":"string"},
            "x":{"type":"string","ephemeral":true}}}}}"#;
        Schema::from_json(&Value::parse(text).expect("JSON")).expect("a schema")
    }

    fn string(text: &str) -> Datum {
        Datum::one(Atom::String(Str::new(text)))
    }

    fn commit(texts: &[&str], comment: &str) -> Delta {
        let changes = texts.iter().enumerate().map(|(number, text)| {
            let uuid = Uuid([number as u8 + 1; 16]);
            let pair = Datum::pair(Atom::String(Str::new(text)), Atom::Uuid(uuid));
            let row = |columns: Vec<Datum>| {
                Arc::new(Row {
                    uuid,
                    version: uuid,
                    columns: columns.into(),
                })
            };
            let new = row(vec![pair, string(text), string("not written")]);
            let is_insert = number % 2 == 0;
            let diff = |column, diff| ColumnDiff {
                column: ColumnId(column),
                diff,
            };
            let diffs = match is_insert {
                true => Vec::new(),
                false => vec![diff(1, string(text)), diff(2, string("not written"))],
            };
            RowChange {
                table: TableId(0),
                uuid,
                old: (!is_insert).then(|| row(vec![Datum::default(), string(""), string("")])),
                new: Some(new),
                diffs: diffs.into(),
            }
        });
        Delta {
            changes: changes.collect(),
            comment: comment.to_owned(),
            durable: false,
        }
    }

    #[test]
    fn what_fits_is_never_written_longer() {
        let schema = schema();
        let control = "\u{1}".repeat(100_000);
        let quotes = "\"".repeat(100_000);
        let plain = "x".repeat(200_000);
        for texts in [
            vec![],
            vec!["", ""],
            vec![&*control],
            vec![&*quotes, &plain, "short"],
            vec![&plain, &control, &quotes],
        ] {
            let delta = commit(&texts, texts.first().copied().unwrap_or("none"));
            for is_diff in [true, false] {
                let mut data = Vec::new();
                write_data(&mut data, &schema, &delta, i64::MIN, is_diff);
                assert!(!data_fits(&schema, &delta, is_diff, data.len() - 1));
                let slack = HEAD_BYTES + texts.len() * 400;
                assert!(data_fits(&schema, &delta, is_diff, data.len() + slack));
            }
        }
    }
}
