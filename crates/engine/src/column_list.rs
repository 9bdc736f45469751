//! Lists of columns in operations (`columns`, `sort`), and rows seen through them.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};

use corvid_data::{ColumnId, HashSeed, Row, TableSchema, WireError, wire};
use corvid_json::Reader;

use crate::condition::with_column;

/// Distinct columns of one table, which may include `_uuid` and `_version`, in the given order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnList(Vec<ColumnId>);

impl ColumnList {
    /// Every column.
    pub(crate) fn all(table: &TableSchema) -> ColumnList {
        let own = table.iter().map(|(column, _)| column);
        let standard = [ColumnId::UUID, ColumnId::VERSION];
        ColumnList(standard.into_iter().chain(own).collect())
    }

    /// Parses the raw text of an array of column names.
    ///
    /// # Errors
    /// A name that no column has, a repeated name, or an element that is not a string.
    pub(crate) fn parse(table: &TableSchema, raw: &[u8]) -> Result<ColumnList, WireError> {
        let distinct_expected =
            || WireError::syntax(raw, "array of distinct column names expected");
        let mut reader = Reader::trusted(raw);
        let mut columns = Vec::new();
        reader.begin_array().map_err(|_| distinct_expected())?;
        while reader.next_element().map_err(|_| distinct_expected())? {
            let name = reader.string().map_err(|_| distinct_expected())?;
            let Some(column) = std::str::from_utf8(&name)
                .ok()
                .and_then(|name| table.column_id(name))
            else {
                let name = String::from_utf8_lossy(&name);
                return Err(WireError::syntax(
                    raw,
                    format!("{name} is not a valid column name"),
                ));
            };
            if columns.contains(&column) {
                return Err(distinct_expected());
            }
            columns.push(column);
        }
        Ok(ColumnList(columns))
    }

    /// Whether the list contains `column`.
    pub(crate) fn contains(&self, column: ColumnId) -> bool {
        self.0.contains(&column)
    }

    /// Whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hash of these columns of `row`.
    pub(crate) fn hash(&self, seed: HashSeed, row: &Row) -> u64 {
        let mut hasher = seed.build_hasher();
        for column in &self.0 {
            match *column {
                ColumnId::UUID => row.uuid.hash(&mut hasher),
                ColumnId::VERSION => row.version.hash(&mut hasher),
                own => row.columns[usize::from(own.0)].hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Whether two rows are equal in these columns.
    pub(crate) fn same(&self, a: &Row, b: &Row) -> bool {
        self.compare(a, b).is_eq()
    }

    /// Orders rows by the first column that differs (docs/spec/protocol.md 2.4).
    pub(crate) fn compare(&self, a: &Row, b: &Row) -> Ordering {
        self.0
            .iter()
            .map(|column| match *column {
                ColumnId::UUID => a.uuid.cmp(&b.uuid),
                ColumnId::VERSION => a.version.cmp(&b.version),
                own => {
                    let index = usize::from(own.0);
                    a.columns[index].cmp(&b.columns[index])
                }
            })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Appends these columns of `row` as a row object.
    pub(crate) fn write(&self, table: &TableSchema, row: &Row, out: &mut Vec<u8>) {
        out.push(b'{');
        for (position, column) in self.0.iter().enumerate() {
            let schema = table.column(*column);
            out.extend_from_slice(if position == 0 { b"\"" } else { b",\"" });
            // Column names are identifiers, so there is nothing to escape.
            out.extend_from_slice(schema.name.as_bytes());
            out.extend_from_slice(b"\":");
            with_column(row, *column, |datum| {
                wire::write_datum(out, datum, schema.column_type.is_map());
            });
        }
        out.push(b'}');
    }
}
