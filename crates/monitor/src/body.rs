//! Writes `<table-updates>` objects: tables by name, and in each its rows by UUID
//! (docs/spec/protocol.md 4.6, 4.7).
//!
//! Invariant: the first row of a table opens the table, so tables without events never appear; a
//! row without visible changes is removed whole. Long bodies are cut into pieces between rows, so
//! bytes are never copied again. Both encoders use this file, which knows nothing of events.

use std::sync::Arc as StdArc;

use corvid_data::{AtomRef, ColumnId, Datum, Row, TableSchema, Uuid, wire};

/// Size of a piece in bytes: large enough to be worth a system call, small enough for the cache.
const PIECE_BYTES: usize = 256 << 10;

/// A `<table-updates>` object under construction.
#[derive(Debug)]
pub(crate) struct Body {
    /// Finished pieces; `out` continues them.
    pieces: Vec<StdArc<[u8]>>,
    /// Length of `pieces` in bytes.
    cut_bytes: usize,
    out: Vec<u8>,
    /// A row of the current table has been written.
    is_table_open: bool,
}

/// A state of a [`Body`] to return to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    length: usize,
    is_table_open: bool,
}

impl Body {
    /// An object in which nothing is written yet.
    pub(crate) fn new() -> Body {
        Body {
            pieces: Vec::new(),
            cut_bytes: 0,
            out: vec![b'{'],
            is_table_open: false,
        }
    }

    /// Writes `"<uuid>":`, and opens the table before its first row. The caller appends the row's
    /// value to [`Body::out`]. Rows of a table must be written together, followed by
    /// [`Body::end_table`].
    pub(crate) fn begin_row(&mut self, table: &TableSchema, uuid: Uuid) {
        if self.is_table_open {
            self.out.push(b',');
        } else {
            if self.out.len() > 1 || !self.pieces.is_empty() {
                self.out.push(b',');
            }
            // Names of tables and columns are identifiers, so there is nothing to escape.
            write_name(&mut self.out, &table.name);
            self.out.push(b'{');
            self.is_table_open = true;
        }
        self.out.push(b'"');
        self.out.extend_from_slice(&uuid.to_text());
        self.out.extend_from_slice(b"\":");
    }

    /// The buffer to which values are appended.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Closes the table, if any of its rows was written.
    pub(crate) fn end_table(&mut self) {
        if self.is_table_open {
            self.out.push(b'}');
            self.is_table_open = false;
        }
    }

    /// Cuts off a piece if the buffer is long enough. Invalidates earlier marks.
    pub(crate) fn cut(&mut self) {
        if self.out.len() >= PIECE_BYTES {
            self.pieces.push(StdArc::from(&*self.out));
            self.cut_bytes += self.out.len();
            self.out.clear();
        }
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.cut_bytes + self.out.len()
    }

    /// The current state, for [`Body::rewind`].
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            length: self.out.len(),
            is_table_open: self.is_table_open,
        }
    }

    /// Removes everything written since `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.out.truncate(mark.length);
        self.is_table_open = mark.is_table_open;
    }

    /// The whole object; `{}` if no row was written.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        debug_assert!(!self.is_table_open);
        if !self.pieces.is_empty() {
            return self.finish_pieces().concat();
        }
        self.out.push(b'}');
        self.out
    }

    /// The object in pieces.
    pub(crate) fn finish_pieces(mut self) -> Vec<StdArc<[u8]>> {
        debug_assert!(!self.is_table_open);
        self.out.push(b'}');
        self.pieces.push(self.out.into());
        self.pieces
    }
}

/// Writes a `<row>`, member by member.
#[derive(Debug)]
pub(crate) struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    table: &'a TableSchema,
    is_empty: bool,
}

impl<'a> RowWriter<'a> {
    /// Opens the row.
    pub(crate) fn begin(out: &'a mut Vec<u8>, table: &'a TableSchema) -> RowWriter<'a> {
        out.push(b'{');
        RowWriter {
            out,
            table,
            is_empty: true,
        }
    }

    /// Writes a column with its value in `row`.
    pub(crate) fn cell(&mut self, row: &Row, column: ColumnId) {
        match column {
            ColumnId::UUID => self.identity(column, row.uuid),
            ColumnId::VERSION => self.identity(column, row.version),
            ColumnId(own) => self.datum(column, &row.columns[usize::from(own)]),
        }
    }

    /// Writes a column with a datum or a difference as its value.
    pub(crate) fn datum(&mut self, column: ColumnId, datum: &Datum) {
        let is_map = self.name(column);
        wire::write_datum(self.out, datum, is_map);
    }

    /// Closes the row. Returns whether it is empty.
    pub(crate) fn end(self) -> bool {
        self.out.push(b'}');
        self.is_empty
    }

    fn identity(&mut self, column: ColumnId, uuid: Uuid) {
        self.name(column);
        wire::write_atom(self.out, AtomRef::Uuid(uuid));
    }

    /// Writes `"<column>":`. Returns whether the column holds a map.
    fn name(&mut self, column: ColumnId) -> bool {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        let schema = self.table.column(column);
        write_name(self.out, &schema.name);
        schema.column_type.is_map()
    }
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}
