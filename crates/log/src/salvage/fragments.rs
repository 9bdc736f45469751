//! Reads the rows of a possibly damaged record, one by one.
//!
//! ```text
//! {"_date":17...,"t":{"0000...0001":{"i":1},"0000...#002":{"i":2},"0000...0003":{"i":3}},"u":{...
//!                ^ table            ^ row    ^ not read            ^ row
//! ```
//!
//! The name of a row is a UUID: a quoted text of 36 characters followed by a colon. Nothing else in
//! a record looks like that, so reading can resume at the next such name, whatever precedes it.
//! From a partly readable row, the readable columns are kept.
//!
//! Invariant: an undamaged text yields the rows that [`crate::decode`] reads, and loses nothing.
//! Content that is damaged but still valid goes undetected: the caller knows whether the text
//! matches its hash.

use corvid_data::{ColumnId, Datum, RecordedRow, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Kind, Reader};
use memchr::{memchr, memmem};

/// The rows of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Whether the columns of existing rows are differences.
    pub is_diff: bool,
    /// The rows, in the order of the text.
    pub rows: Vec<RecordedRow>,
    /// Rows and columns that were recognised but could not be read.
    pub lost: Vec<Lost>,
}

/// A row or a column that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The row's table, if known.
    pub table: Option<TableId>,
    /// The row's UUID.
    pub uuid: Uuid,
    /// The column; `None` means the whole row.
    pub column: Option<ColumnId>,
    /// The error.
    pub reason: String,
}

/// Reads every readable row.
#[must_use]
pub fn read(text: &[u8], schema: &Schema) -> Fragments {
    let mut scan = Scan {
        text,
        schema,
        table: None,
        found: Fragments {
            is_diff: memmem::find(text, b"\"_is_diff\":true").is_some(),
            ..Fragments::default()
        },
    };
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &text[at..]) {
        at = scan.name(at + quote);
    }
    scan.found
}

/// The name of a member, and the offset from which reading continues.
enum Mark<'a> {
    /// A row, and the offset of its value.
    Row(Uuid, usize),
    /// A table, and the offset just past its opening bracket.
    Table(&'a [u8], usize),
}

struct Scan<'a> {
    text: &'a [u8],
    schema: &'a Schema,
    /// The table whose rows are being read; `None` if unknown.
    table: Option<TableId>,
    found: Fragments,
}

impl<'a> Scan<'a> {
    /// Reads the row or table that the name at `quote` introduces. Returns the offset at which to
    /// continue.
    fn name(&mut self, quote: usize) -> usize {
        match self.mark(quote) {
            None => quote + 1,
            Some(Mark::Table(name, value)) => {
                self.table = self.schema.table_named(name);
                value
            }
            Some(Mark::Row(uuid, value)) => match self.table {
                Some(table) => self.row(table, uuid, value),
                None => {
                    self.lose(uuid, None, "its table is not known".to_owned());
                    value
                }
            },
        }
    }

    fn mark(&self, quote: usize) -> Option<Mark<'a>> {
        // An escaped quote within a string.
        if quote > 0 && self.text[quote - 1] == b'\\' {
            return None;
        }
        let rest = &self.text[quote + 1..];
        let close = memchr(b'"', rest)?;
        let (name, behind) = (&rest[..close], skip_blanks(&rest[close + 1..]));
        let value = skip_blanks(behind.strip_prefix(b":")?);
        let offset = self.text.len() - value.len();
        if name.len() == Uuid::TEXT_LEN
            && let Some(uuid) = Uuid::parse(name)
        {
            let is_row = value.starts_with(b"{") || value.starts_with(b"null");
            return is_row.then_some(Mark::Row(uuid, offset));
        }
        let rows = skip_blanks(value.strip_prefix(b"{")?);
        let is_table = rows.starts_with(b"}")
            || rows
                .strip_prefix(b"\"")
                .and_then(|rows| Uuid::parse(rows.get(..Uuid::TEXT_LEN)?))
                .is_some()
            || self.schema.table_named(name).is_some();
        is_table.then_some(Mark::Table(name, offset + 1))
    }

    /// Reads a row whose value is at `value`.
    fn row(&mut self, id: TableId, uuid: Uuid, value: usize) -> usize {
        let mut reader = Reader::new(&self.text[value..]);
        if matches!(reader.peek(), Ok(Kind::Null)) && reader.null().is_ok() {
            self.found.rows.push(RecordedRow {
                table: id,
                uuid,
                columns: None,
            });
            return value + reader.offset();
        }
        let table = self.schema.table(id);
        let lost = self.found.lost.len();
        let mut columns = Vec::new();
        let outcome = self.columns(&mut reader, uuid, table, &mut columns);
        if let Err(reason) = outcome {
            let reason = format!("what follows cannot be read ({reason})");
            self.lose(uuid, None, reason);
        }
        let is_whole = self.found.lost.len() == lost;
        if is_whole || !columns.is_empty() {
            self.found.rows.push(RecordedRow {
                table: id,
                uuid,
                columns: Some(columns),
            });
        }
        // A damaged quote or bracket can make later rows look like parts of this one, so look for
        // names inside it.
        if is_whole {
            value + reader.offset()
        } else {
            value + 1
        }
    }

    /// Reads the columns of a row up to its end, or up to text that is not JSON.
    fn columns(
        &mut self,
        reader: &mut Reader<'a>,
        uuid: Uuid,
        table: &TableSchema,
        columns: &mut Vec<(ColumnId, Datum)>,
    ) -> Result<(), corvid_json::Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            let start = reader.clone();
            let Some(id) = table.column_named(&name) else {
                reader.skip()?;
                let name = String::from_utf8_lossy(&name);
                self.lose(uuid, None, format!("unknown column {name}"));
                continue;
            };
            if id.is_standard() {
                reader.skip()?;
                continue;
            }
            let column_type = &table.column(id).column_type;
            match wire::read_diff(reader, column_type, None) {
                Ok(datum) => {
                    columns.retain(|(earlier, _)| *earlier != id);
                    columns.push((id, datum));
                }
                Err(error) => {
                    *reader = start;
                    reader.skip()?;
                    self.lose(uuid, Some(id), error.to_string());
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, uuid: Uuid, column: Option<ColumnId>, reason: String) {
        self.found.lost.push(Lost {
            table: self.table,
            uuid,
            column,
            reason,
        });
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{FieldOrderCache, decode};
    use crate::fixture::{schema, uuid};

    const TEXT: &str = r#"{"_comment":"a \"t\":{ b","_date":1700000000000,"_is_diff":true,"t":{
        "00000000-0000-4000-8000-000000000001":{"i":1,"tags":["set",["x","}\"u\":{"]]},
        "00000000-0000-4000-8000-000000000002":null,
        "00000000-0000-4000-8000-000000000003":{"map":["map",[["k","v"]]],"i":3}},
        "u":{"00000000-0000-4000-8000-000000000004":{"s":"four"}}}"#;

    #[test]
    fn an_undamaged_text_yields_what_it_holds() {
        let schema = schema();
        let found = read(TEXT.as_bytes(), &schema);
        let order = &mut FieldOrderCache::default();
        let recorded = decode(TEXT.as_bytes(), &schema, order).expect("valid");
        assert_eq!(found.lost, []);
        assert_eq!(found.is_diff, recorded.is_diff);
        assert_eq!(found.rows[..], recorded.rows[..]);
    }

    #[test]
    fn each_byte_hides_the_row_that_it_is_in_and_no_other() {
        let schema = schema();
        let intact = read(TEXT.as_bytes(), &schema);
        let begins: Vec<usize> = (1..=4)
            .map(|row| {
                let name = format!("\"00000000-0000-4000-8000-00000000000{row}");
                TEXT.find(&name).expect("a row")
            })
            .collect();
        for at in 0..TEXT.len() {
            for byte in [b'#', b'"', b'}', b'{'] {
                let mut damaged = TEXT.as_bytes().to_vec();
                damaged[at] = byte;
                let found = read(&damaged, &schema);
                let own = begins.iter().rposition(|begin| *begin <= at);
                for (number, row) in intact.rows.iter().enumerate() {
                    // The names of the tables precede rows 1 and 4.
                    let may_be_lost = own == Some(number)
                        || own == number.checked_sub(1)
                        || own.is_none() && number < 3;
                    let is_found = found.rows.contains(row);
                    assert!(is_found || may_be_lost, "{at} {byte}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn columns_that_can_be_read_are_taken() {
        let schema = schema();
        let text = r#"{"t":{"00000000-0000-4000-8000-000000000001":{"i":1,"two":["set",["a"]],"new":2,"tags":"x"}}}"#;
        let found = read(text.as_bytes(), &schema);
        let columns = found.rows[0].columns.as_ref().expect("a row");
        assert_eq!(columns.len(), 2);
        let lost: Vec<_> = found.lost.iter().map(|lost| lost.uuid).collect();
        assert_eq!(lost, [uuid(1), uuid(1)]);
        assert!(found.lost[1].reason.contains("unknown column new"));
    }
}
