//! The record that holds a whole database: compaction, conversion and backup write it.
//!
//! A header carries the hash and length of what follows it, so the rows are encoded twice: once to
//! measure, once to write. That costs CPU (about as much as the SHA-1 itself) and saves memory: at
//! most about [`CHUNK_BYTES`] are held at a time, however large the database. Rows must be a frozen
//! view that yields the same order both times. Runs on the caller's thread, never on the engine's.

use corvid_data::{Arc, Row, Schema, TableId};
use sha1::{Digest, Sha1};

use crate::encode::{Stamp, Tables, write_head, write_row};
use crate::header::{Header, Magic};

/// Size of the pieces passed to the sink, bytes; a single larger row makes a larger piece.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Writes a record that inserts every row to `sink`, in pieces; `rows` yields the rows of a table.
/// Returns the bytes of the record. An empty database makes a record too.
///
/// # Errors
/// The first failure of `sink`.
pub fn write_snapshot<'a, I, E>(
    schema: &Schema,
    stamp: &Stamp<'_>,
    rows: impl Fn(TableId) -> I,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E>
where
    I: Iterator<Item = &'a Arc<Row>>,
{
    let header = measure(schema, stamp, &rows);
    let mut line = Vec::new();
    header.write(Magic::Standalone, &mut line);
    sink(&line)?;
    let mut written = 0;
    let mut write = |piece: &[u8]| {
        written += piece.len() as u64;
        sink(piece)
    };
    write_rows(schema, stamp, &rows, &mut write)?;
    write(b"\n")?;
    assert_eq!(
        written, header.length,
        "a snapshot does not change while it is written"
    );
    Ok(line.len() as u64 + written)
}

/// Appends the object that inserts every row, without a record around it. A cluster member's
/// snapshot holds it next to the schema.
pub fn append_rows<'a, I>(
    out: &mut Vec<u8>,
    schema: &Schema,
    stamp: &Stamp<'_>,
    rows: impl Fn(TableId) -> I,
) where
    I: Iterator<Item = &'a Arc<Row>>,
{
    let Ok(()) = write_rows::<_, std::convert::Infallible>(schema, stamp, &rows, &mut |piece| {
        out.extend_from_slice(piece);
        Ok(())
    });
}

fn measure<'a, I>(schema: &Schema, stamp: &Stamp<'_>, rows: &impl Fn(TableId) -> I) -> Header
where
    I: Iterator<Item = &'a Arc<Row>>,
{
    let mut length = 0;
    let mut hash = Sha1::new();
    let Ok(()) = write_rows::<_, std::convert::Infallible>(schema, stamp, rows, &mut |piece| {
        length += piece.len() as u64;
        hash.update(piece);
        Ok(())
    });
    length += 1;
    hash.update(b"\n");
    Header {
        length,
        sha1: hash.finalize().into(),
    }
}

/// Passes the object that inserts every row to `sink`, in pieces, without a record around it.
///
/// # Errors
/// The first failure of `sink`.
pub fn write_rows<'a, I, E>(
    schema: &Schema,
    stamp: &Stamp<'_>,
    rows: &impl Fn(TableId) -> I,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E>
where
    I: Iterator<Item = &'a Arc<Row>>,
{
    let mut piece = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
    write_head(&mut piece, stamp);
    let mut tables = Tables::default();
    for (id, table) in schema.iter() {
        for row in rows(id) {
            tables.row(&mut piece, schema, id, row.uuid);
            write_row(&mut piece, table, row, stamp.with_defaults);
            if piece.len() >= CHUNK_BYTES {
                sink(&piece)?;
                piece.clear();
            }
        }
    }
    tables.finish(&mut piece);
    sink(&piece)
}
