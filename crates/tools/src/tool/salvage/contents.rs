//! The rows of a database that is being salvaged, without its constraints: any value of a column's
//! type is accepted.

use std::collections::BTreeMap;

use corvid_data::{
    Arc, ColumnId, ColumnSchema, Datum, Recorded, RecordedRow, Schema, TableId, TableSchema, Uuid,
    wire,
};
use corvid_engine::Database;
use corvid_json::write;
use corvid_log::salvage::fragments::{Fragments, Lost};

use crate::failure::Failure;
use crate::uuids::RandomUuids;

/// The rows, and the losses.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(super) schema: Arc<Schema>,
    /// By table; the data of a row are in the order of the schema.
    pub(super) tables: Vec<BTreeMap<Uuid, Vec<Datum>>>,
    /// One line for each loss.
    pub(super) losses: Vec<String>,
}

impl Contents {
    /// An empty database.
    pub(super) fn new(schema: Arc<Schema>) -> Contents {
        Contents {
            tables: schema.iter().map(|_| BTreeMap::new()).collect(),
            schema,
            losses: Vec::new(),
        }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.tables.iter().map(BTreeMap::len).sum()
    }

    /// One line for each loss.
    pub(crate) fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Applies the readable parts of a transaction. `source` names the record.
    pub(super) fn apply(&mut self, found: Fragments, source: &str) {
        for lost in &found.lost {
            self.note_lost(lost, source);
        }
        for row in found.rows {
            self.apply_row(row, found.is_diff, source);
        }
    }

    fn note_lost(&mut self, lost: &Lost, source: &str) {
        let table = lost.table.map(|id| self.schema.table(id));
        let name = table.map_or("a row", |table| table.name.as_str());
        let column = lost.column.zip(table);
        let column = column.map(|(id, table)| format!(" column {}", table.column(id).name));
        let (column, reason) = (column.unwrap_or_default(), &lost.reason);
        let line = format!("{source}: {name} {}{column}: {reason}", lost.uuid);
        self.losses.push(line);
    }

    fn apply_row(&mut self, row: RecordedRow, is_diff: bool, source: &str) {
        let RecordedRow {
            table: id,
            uuid,
            columns,
        } = row;
        let table = self.schema.table(id);
        let rows = &mut self.tables[usize::from(id.0)];
        let Some(columns) = columns else {
            if rows.remove(&uuid).is_none() {
                let line = format!(
                    "{source}: {} {uuid}: deleted here, and not known",
                    table.name
                );
                self.losses.push(line);
            }
            return;
        };
        let is_known = rows.contains_key(&uuid);
        let data = rows.entry(uuid).or_insert_with(|| defaults(table));
        for (column, datum) in columns {
            let described = table.column(column);
            let column_type = &described.column_type;
            let slot = &mut data[usize::from(column.0)];
            let outcome = if is_diff && is_known {
                slot.apply_diff(&datum, column_type)
                    .map_err(|error| error.to_string())
            } else if column_type.admits(datum.len()) {
                *slot = datum;
                Ok(())
            } else {
                Err(column_type.count_problem(datum.len()))
            };
            if let Err(reason) = outcome {
                let line = format!(
                    "{source}: {} {uuid} column {}: {reason}",
                    table.name, described.name
                );
                self.losses.push(line);
            }
        }
    }

    /// Converts the rows to another schema, as the server does, after repairing them.
    pub(super) fn convert(
        &mut self,
        schema: Schema,
        uuids: &mut RandomUuids,
    ) -> Result<(), Failure> {
        let database = self.database(uuids)?;
        let database = database.convert(Arc::new(schema), uuids)?;
        let mut converted = Contents::new(Arc::clone(database.schema()));
        converted.losses = std::mem::take(&mut self.losses);
        for (id, _) in database.schema().iter() {
            let rows = database.rows(id);
            converted.tables[usize::from(id.0)] =
                rows.map(|row| (row.uuid, row.columns.to_vec())).collect();
        }
        *self = converted;
        Ok(())
    }

    /// Repairs the rows and builds a database from them.
    ///
    /// # Errors
    /// The rows still break a rule.
    pub(crate) fn database(&mut self, uuids: &mut RandomUuids) -> Result<Database, Failure> {
        self.repair();
        let mut recorded = Recorded::default();
        for (id, table) in self.schema.iter() {
            for (uuid, data) in &self.tables[usize::from(id.0)] {
                let columns = table.iter().zip(data);
                let columns = columns.filter(|((_, described), datum)| {
                    described.persistent && !datum.is_default(&described.column_type)
                });
                let columns = columns.map(|((column, _), datum)| (column, datum.clone()));
                recorded.rows.push(RecordedRow {
                    table: id,
                    uuid: *uuid,
                    columns: Some(columns.collect()),
                });
            }
        }
        let mut database = Database::new(Arc::clone(&self.schema), uuids.hash_seed());
        database.load(recorded, uuids)?;
        Ok(database)
    }

    /// Removes a row that no database may hold, and lists it with its content.
    pub(super) fn remove(&mut self, id: TableId, uuid: Uuid, reason: &str) {
        let table = self.schema.table(id);
        if let Some(data) = self.tables[usize::from(id.0)].remove(&uuid) {
            let content = content(table, &data);
            let line = format!("{} {uuid}: {reason}: {content}", table.name);
            self.losses.push(line);
        }
    }

    /// Lists the loss of a part of a column.
    pub(super) fn lose(&mut self, id: TableId, uuid: Uuid, column: ColumnId, reason: &str) {
        let table = self.schema.table(id);
        let column: &ColumnSchema = table.column(column);
        let line = format!("{} {uuid} column {}: {reason}", table.name, column.name);
        self.losses.push(line);
    }
}

fn defaults(table: &TableSchema) -> Vec<Datum> {
    let columns = table.columns().iter();
    columns
        .map(|column| Datum::default_for(&column.column_type))
        .collect()
}

/// The columns of a row that differ from their defaults, as a JSON object.
fn content(table: &TableSchema, data: &[Datum]) -> String {
    let mut out = vec![b'{'];
    for (described, datum) in table.columns().iter().zip(data) {
        if datum.is_default(&described.column_type) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        write::string(&mut out, described.name.as_bytes());
        out.push(b':');
        wire::write_datum(&mut out, datum, described.column_type.is_map());
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}
