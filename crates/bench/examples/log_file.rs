//! Writes database files for measurements of start-up: the same rows as many small records, or as one compacted record.
//!
//! ```text
//! log_file twice 500000 FILE       each row inserted, then modified, one record each
//! log_file compacted 500000 FILE   what compaction leaves of that
//! log_file small 100000 FILE       that many records over 1,000 rows
//! ```
//!
//! A tool beside the benchmark, which measures running servers. It writes records as the reference writes them, with differences.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use corvid_data::Schema;
use corvid_json::Value;
use corvid_log::{Magic, Record, write_schema};

const SCHEMA: &str = r#"{"name":"Bench","version":"1.0.0","tables":{"Item":{
  "columns":{
    "name":{"type":"string"},
    "number":{"type":"integer"},
    "up":{"type":{"key":"boolean","min":0,"max":1}},
    "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
    "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},
  "indexes":[["name"]],"isRoot":true}}}"#;

/// Commit time of the first record, ms since the Unix epoch.
const DATE_MS: u64 = 1_700_000_000_000;
/// Rows that the records of `small` are spread over.
const FEW_ROWS: u32 = 1_000;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count, path] = &arguments[..] else {
        return Err(std::io::Error::other(
            "log_file twice|compacted|small COUNT FILE",
        ));
    };
    let count: u32 = count.parse().map_err(std::io::Error::other)?;
    let mut records = Records::create(path)?;
    match kind.as_str() {
        "twice" => {
            for row in 0..count {
                records.append(&insertion(row))?;
            }
            for row in 0..count {
                records.append(&modification(row, 0))?;
            }
        }
        "compacted" => {
            let mut body = format!(
                "{{\"_comment\":\"compacting database online\",\"_date\":{DATE_MS},\"Item\":{{"
            );
            for row in 0..count {
                let comma = if row == 0 { "" } else { "," };
                let _ = write!(body, "{comma}\"{}\":{}", uuid(row), columns(row, true));
            }
            body.push_str("},\"_is_diff\":true}");
            records.append_body(&body)?;
        }
        "small" => {
            for number in 0..count {
                let row = number % FEW_ROWS;
                match number / FEW_ROWS {
                    0 => records.append(&insertion(row))?,
                    round => records.append(&modification(row, round - 1))?,
                }
            }
        }
        _ => return Err(std::io::Error::other("no such kind of file")),
    }
    records.out.flush()
}

/// A file under construction.
struct Records {
    out: BufWriter<File>,
    record: Vec<u8>,
    written: u64,
}

impl Records {
    /// A file that holds the schema.
    fn create(path: &str) -> std::io::Result<Records> {
        let schema = Value::parse(SCHEMA.as_bytes()).map_err(std::io::Error::other)?;
        let schema =
            Schema::from_json(&schema).map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut record = Vec::new();
        write_schema(&mut record, &schema);
        let mut out = BufWriter::new(File::create_new(path)?);
        out.write_all(&record)?;
        Ok(Records {
            out,
            record,
            written: 0,
        })
    }

    /// Appends the record of one row of the table.
    fn append(&mut self, row: &str) -> std::io::Result<()> {
        let date = DATE_MS + self.written;
        self.append_body(&format!(
            "{{\"_date\":{date},\"Item\":{{{row}}},\"_is_diff\":true}}"
        ))
    }

    fn append_body(&mut self, body: &str) -> std::io::Result<()> {
        self.record.clear();
        let mut record = Record::begin(&mut self.record, Magic::Standalone);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
        self.written += 1;
        self.out.write_all(&self.record)
    }
}

fn insertion(row: u32) -> String {
    format!("\"{}\":{}", uuid(row), columns(row, false))
}

/// Another number, one address more or less, another value of an option.
fn modification(row: u32, round: u32) -> String {
    format!(
        "\"{}\":{{\"number\":{},\"addresses\":\"0a:ff:00:00:00:01\",\"options\":[\"map\",[[\"requested-chassis\",\"{}\"]]]}}",
        uuid(row),
        modified_number(row, round),
        modified_chassis(row, round)
    )
}

fn modified_number(row: u32, round: u32) -> u32 {
    row.wrapping_mul(7).wrapping_add(round + 1)
}

fn modified_chassis(row: u32, round: u32) -> String {
    format!("chassis-{}", (row + round + 1) % 500)
}

/// The columns of a row, as inserted or after its first modification.
fn columns(row: u32, is_modified: bool) -> String {
    let [_, b, c, d] = row.to_be_bytes();
    let more = if is_modified {
        ",\"0a:ff:00:00:00:01\""
    } else {
        ""
    };
    let (number, chassis) = if is_modified {
        (modified_number(row, 0), modified_chassis(row, 0))
    } else {
        (row, format!("chassis-{}", row % 500))
    };
    format!(
        "{{\"name\":\"port-{row:08}\",\"number\":{number},\"up\":true,\"addresses\":[\"set\",[\"0a:00:00:{b:02x}:{c:02x}:{d:02x} 10.{b}.{c}.{d}\",\
         \"unknown\"{more}]],\"options\":[\"map\",[[\"requested-chassis\",\"{chassis}\"],[\"vlan\",\"{}\"]]]}}",
        row % 4096
    )
}

/// A version 4 UUID that is not in order of rows.
fn uuid(row: u32) -> String {
    let mixed = u64::from(row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-4{:03x}-8000-{row:012x}",
        mixed >> 32,
        (mixed >> 16) & 0xffff,
        mixed & 0xfff
    )
}
