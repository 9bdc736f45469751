//! The question of a database to its files for a client that was away: which rows have changed
//! since the client's last transaction, and how were they then (docs/internals/monitors.md, "Long
//! absences").
//!
//! The database orders a reading as a job; a thread of its own opens the files and calls
//! [`PastOrder::read`]. If anything goes wrong, nothing is known, and the client gets the contents.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Row, Schema, TableId, Uuid, wire};
use corvid_history::{Bound, NoPast, Past, PastLimits, ReadAt, Timeline};
use corvid_log::cluster::Index;

use crate::codec::{Damage, Reader, Writer};

/// An order to read. Pure data, apart from the sign that the answer is not wanted any more.
#[derive(Clone, Debug)]
pub struct PastOrder {
    /// The client's last transaction.
    pub txn: Uuid,
    /// Names of the tables that are of interest.
    pub tables: Vec<String>,
    /// How long the answer may be.
    pub limits: PastLimits,
    /// In a member: what the database has applied.
    pub applied: Option<AppliedEntry>,
    /// False once nobody waits for the answer.
    pub is_wanted: StdArc<AtomicBool>,
}

/// The entries that a member's database has applied: the answer must include them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    /// The last one.
    pub index: Index,
    /// The id of the last one with data.
    pub id: Uuid,
}

/// The rows of an answer.
#[derive(Clone, Debug)]
pub enum PastRead {
    /// As they were read.
    Rows(Arc<Schema>, Vec<PastVersion>),
    /// As a recording has them.
    Recorded(Vec<u8>),
}

/// A row as it was; `None`: there was no such row.
pub type PastVersion = (TableId, Uuid, Option<Arc<Row>>);

impl PastOrder {
    /// Whether somebody waits for the answer.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Reads. `end` is the published end of a standalone file, taken after the order was given.
    ///
    /// # Errors
    /// There is no answer.
    pub fn read<F: ReadAt>(&self, mut history: Timeline<F>, end: u64) -> Result<PastRead, NoPast> {
        history.end_at(match self.applied {
            Some(applied) => Bound::Index(applied.index.0),
            None => Bound::Offset(end),
        })?;
        let past = history.past(self.txn, &self.tables, self.limits)?;
        // The answer must reach what the database has applied. The file has it, unless its end
        // cannot be read.
        if let Some(applied) = self.applied
            && past.last != Some(applied.id)
        {
            return Err(NoPast::Missing("the end of the file".to_owned()));
        }
        Ok(PastRead::from(past))
    }
}

impl From<Past> for PastRead {
    fn from(past: Past) -> PastRead {
        let rows = past.rows.into_iter().map(|row| {
            let (table, uuid) = (row.table, row.uuid);
            let version = row.columns.map(|columns| {
                Arc::new(Row {
                    uuid,
                    // Nobody who monitors versions is answered from files.
                    version: Uuid::ZERO,
                    columns: columns.iter().cloned().collect(),
                })
            });
            (table, uuid, version)
        });
        PastRead::Rows(past.schema, rows.collect())
    }
}

impl PastRead {
    /// The rows, if they are of this schema.
    pub(crate) fn into_rows(self, schema: &Schema) -> Option<Vec<PastVersion>> {
        match self {
            PastRead::Rows(of, rows) => of.same_as(schema).then_some(rows),
            PastRead::Recorded(text) => PastRead::parse(&text, schema).ok(),
        }
    }

    /// Writes them into a recording. Those of another schema are unusable.
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        let PastRead::Rows(schema, rows) = self else {
            return;
        };
        let mut text = Vec::new();
        let mut inner = Writer(&mut text);
        inner.bytes(&schema.to_json().to_bytes());
        for (table, uuid, version) in rows {
            inner.number(u64::from(table.0));
            inner.bytes(&uuid.0);
            inner.flag(version.is_some());
            let columns = schema.table(*table).columns().iter();
            let cells = version.iter().flat_map(|row| row.columns.iter());
            for (column, datum) in columns.zip(cells) {
                let mut cell = Vec::new();
                wire::write_datum(&mut cell, datum, column.column_type.is_map());
                inner.bytes(&cell);
            }
        }
        out.bytes(&text);
    }

    fn parse(text: &[u8], schema: &Schema) -> Result<Vec<PastVersion>, Damage> {
        let mut from = Reader(text);
        if from.bytes()? != schema.to_json().to_bytes() {
            return Err(Damage::new("rows of another schema"));
        }
        let mut rows = Vec::new();
        while !from.is_empty() {
            let table = schema
                .iter()
                .nth(usize::try_from(from.number()?).unwrap_or(usize::MAX));
            let (id, table) = table.ok_or_else(|| Damage::new("a row of no table"))?;
            let uuid = from.bytes()?.try_into().map(Uuid);
            let uuid = uuid.map_err(|_| Damage::new("a row without a UUID"))?;
            let mut version = None;
            if from.flag()? {
                let mut columns = Vec::new();
                for column in table.columns() {
                    let mut cell = corvid_json::Reader::new(from.bytes()?);
                    let datum =
                        wire::read_datum_unconstrained(&mut cell, &column.column_type, None);
                    columns.push(datum.map_err(|error| Damage(error.to_string()))?);
                }
                version = Some(Arc::new(Row {
                    uuid,
                    version: Uuid::ZERO,
                    columns: columns.into(),
                }));
            }
            rows.push((id, uuid, version));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use corvid_data::{Atom, Datum};
    use corvid_json::Value;

    use super::*;

    fn schema(version: &str) -> Schema {
        let text = format!(
            r#"{{"name":"D","version":"{version}","tables":{{"T":{{"columns":{{"n":{{"type":"integer"}}}}}}}}}}"#
        );
        Schema::from_json(&Value::parse(text.as_bytes()).expect("JSON")).expect("a schema")
    }

    #[test]
    fn a_recording_has_the_rows_and_only_for_their_schema() {
        let mut datum = Datum::empty();
        datum.insert(Atom::Integer(5), None);
        let row = Row {
            uuid: Uuid([7; 16]),
            version: Uuid::ZERO,
            columns: [datum].into(),
        };
        let rows = vec![
            (TableId(0), Uuid([6; 16]), None),
            (TableId(0), row.uuid, Some(Arc::new(row))),
        ];
        let read = PastRead::Rows(Arc::new(schema("1.0.0")), rows.clone());
        let mut out = Vec::new();
        read.write(&mut Writer(&mut out));
        let text = Reader(&out).bytes().expect("a text").to_vec();
        let recorded = PastRead::Recorded(text.clone());
        assert_eq!(recorded.into_rows(&schema("1.0.0")), Some(rows));
        let recorded = PastRead::Recorded(text);
        assert_eq!(recorded.into_rows(&schema("2.0.0")), None);
        assert_eq!(read.into_rows(&schema("2.0.0")), None);
    }
}
