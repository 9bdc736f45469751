//! The database of most workloads: one table with the usual kinds of columns and an index. It is
//! written as a standalone file that every server can open, either empty or with a history.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use corvid_data::Schema;
use corvid_json::Value;
use corvid_log::{Magic, Record};

use crate::error::Error;
use crate::requests;

/// A table that resembles one of ports: an indexed name, a number, a short map and a set.
const SCHEMA: &str = include_str!("bench.ovsschema");

/// The commit time of the first record, in ms since the Unix epoch.
const DATE_MS: u64 = 1_700_000_000_000;
/// The number of hosts that rows belong to.
const HOSTS: u64 = 512;

/// The contents of the records after the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    pub(crate) rows: u32,
    /// The number of times that each row is written: it is inserted once, then modified. A
    /// modification changes the number and one pair of the map. The records go over all rows before
    /// they write any row again.
    pub(crate) versions: u32,
    /// The number of rows in each transaction.
    pub(crate) rows_per_record: u32,
}

impl History {
    /// An empty database.
    pub(crate) const NONE: History = History {
        rows: 0,
        versions: 0,
        rows_per_record: 1,
    };

    /// Rows that were inserted by transactions of moderate size and never changed.
    pub(crate) fn of_rows(rows: u32) -> History {
        History {
            rows,
            versions: 1,
            rows_per_record: 1_000,
        }
    }

    /// Rows that were each written `versions` times, each time by a separate transaction.
    pub(crate) fn of_changes(rows: u32, versions: u32) -> History {
        History {
            rows,
            versions,
            rows_per_record: 1,
        }
    }
}

/// Creates a database with a history at `path`. It is recorded as the reference does: modified
/// columns as differences.
pub(crate) fn write(path: &Path, history: History) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut record, mut text, mut date_ms) = (Vec::new(), String::new(), DATE_MS);
    corvid_log::write_schema(&mut record, &schema());
    out.write_all(&record)?;
    for version in 0..history.versions {
        for first in (0..history.rows).step_by(history.rows_per_record as usize) {
            let end = history.rows.min(first + history.rows_per_record);
            text.clear();
            let _ = write!(text, r#"{{"_date":{date_ms},"_is_diff":true,"Item":{{"#);
            for row in first..end {
                let comma = if row == first { "" } else { "," };
                let _ = write!(text, r#"{comma}"{}":"#, uuid(row));
                change(&mut text, row, version);
            }
            text.push_str("}}");
            record.clear();
            let mut body = Record::begin(&mut record, Magic::Standalone);
            body.body().extend_from_slice(text.as_bytes());
            body.finish();
            out.write_all(&record)?;
            date_ms += 1;
        }
    }
    out.flush()?;
    write_through(path)
}

/// Syncs a file to the disk. Otherwise the system would write it later, which would delay the syncs
/// of servers.
pub(crate) fn write_through(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Returns the UUID of a row of such a file.
pub(crate) fn uuid(row: u32) -> String {
    // The UUIDs are spread over the whole range like random UUIDs, because hash tables use their
    // bits directly.
    let high = u64::from(row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let low = u64::from(row + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9) & 0xffff_ffff_ffff;
    format!(
        "{:08x}-{:04x}-4{:03x}-8000-{low:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff
    )
}

/// Writes the columns of a row: all of them for its insertion, the differences for later versions.
fn change(out: &mut String, row: u32, version: u32) {
    if version == 0 {
        requests::row(out, &format!("item-{row:08}"), row);
        return;
    }
    // An inserted row belongs to the host whose number is the row's number.
    let host = (u64::from(row % 256) + u64::from(version)) % HOSTS;
    let _ = write!(
        out,
        r#"{{"number":{},"options":["map",[["requested-chassis","host-{host}"]]]}}"#,
        u64::from(row) + u64::from(version)
    );
}

/// Returns the schema in the first record of a file.
pub(crate) fn schema_of(path: &Path) -> Result<Schema, Error> {
    let bad = |reason: String| Error::File {
        path: path.to_owned(),
        reason,
    };
    let mut lines = BufReader::new(File::open(path)?).lines();
    let (_, text) = (lines.next(), lines.next());
    let text = text
        .transpose()?
        .ok_or_else(|| bad("no schema".to_owned()))?;
    let json = Value::parse(text.as_bytes())?;
    Schema::from_json(&json).map_err(|error| bad(error.to_string()))
}

/// Whether a file has records after its schema.
pub(crate) fn has_rows(path: &Path) -> io::Result<bool> {
    // Each record is two lines.
    let mut lines = BufReader::new(File::open(path)?).lines().skip(2);
    Ok(lines.next().transpose()?.is_some())
}

/// Creates an empty database of another schema at `path`.
pub(crate) fn create_with(path: &Path, schema: &Schema) -> io::Result<()> {
    let mut record = Vec::new();
    corvid_log::write_schema(&mut record, schema);
    std::fs::write(path, record)
}

fn schema() -> Schema {
    let json = Value::parse(SCHEMA.as_bytes()).expect("the schema is a constant");
    Schema::from_json(&json).expect("the schema is a constant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_is_valid() {
        assert_eq!(schema().tables().len(), 1);
    }

    #[test]
    fn history_has_records_for_all_rows_and_versions() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.db");
        let history = History {
            rows: 7,
            versions: 2,
            rows_per_record: 3,
        };
        write(&path, history).expect("a file");
        let text = std::fs::read_to_string(&path).expect("a text");
        let bodies: Vec<&str> = text.lines().skip(1).step_by(2).collect();
        assert_eq!(bodies.len(), 1 + 2 * 3);
        for body in &bodies {
            Value::parse(body.as_bytes()).expect("JSON");
        }
        assert_eq!(text.matches(&uuid(6)).count(), 2);
        assert!(bodies[1].contains("item-00000002") && !bodies[4].contains("item-"));
    }
}
