//! The first frame of a recording: the database with its rows in their slots, and its options.
//!
//! The frame contains all rows. It is written once, before the database is served.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Datum, HashSeed, Row, Schema, TableId, Uuid, wire};
use corvid_engine::{Database, RowSlots};
use corvid_json::Value;

use super::Limits;
use crate::codec::{Damage, Reader, Recordable, Writer, recorded};
use crate::message::{DatabaseId, Now};
use crate::once::RecordedCommits;
use crate::storage::FileState;
use crate::tape::Tape;
use crate::{Model, Options};

/// The state in which a replay starts.
pub(crate) struct Head {
    pub(crate) now: Now,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    pub(crate) database: Database,
}

/// Everything in the frame except the database.
struct Settings {
    now: Now,
    id: DatabaseId,
    is_server_db: bool,
    file: Option<FileState>,
    column_diff: bool,
    history: bool,
    limits: Limits,
}

recorded!(Settings {
    now,
    id,
    is_server_db,
    file,
    column_diff,
    history,
    limits
});
recorded!(Now { mono_ms, wall_ms });
recorded!(DatabaseId);
recorded!(FileState { records, size });
recorded!(Limits {
    batch_max,
    long_steps,
    inline_sessions_max
});
recorded!(RowSlots { rows, free });

/// Begins to record a database that is about to be made; the values that it reads meanwhile are a
/// batch of their own.
pub(super) fn begin(
    now: Now,
    options: &Options,
    limits: &Limits,
    database: &Database,
    uuids: Box<dyn UuidSource + Send>,
) -> (Tape, Box<dyn UuidSource + Send>) {
    let tape = Tape::recording();
    tape.begin_frame(|out| write(out, now, options, limits, database));
    tape.end_frame();
    let uuids = tape.uuids(uuids);
    tape.begin(None);
    (tape, uuids)
}

fn write(out: &mut Writer<'_>, now: Now, options: &Options, limits: &Limits, database: &Database) {
    let settings = Settings {
        now,
        id: options.id,
        is_server_db: options.model.is_server_db(),
        file: options.file,
        column_diff: options.column_diff,
        history: options.history,
        limits: *limits,
    };
    settings.write(out);
    let schema = database.schema();
    out.bytes(&schema.to_json().to_bytes());
    let mut text = Vec::new();
    for ((id, table), row_slots) in schema.iter().zip(database.row_slots()) {
        row_slots.write(out);
        for row in database.rows(id) {
            row.uuid.write(out);
            row.version.write(out);
            for (column, datum) in table.columns().iter().zip(&row.columns) {
                text.clear();
                wire::write_datum(&mut text, datum, column.column_type.is_map());
                out.bytes(&text);
            }
        }
    }
    // At the end, and only if there is something: recordings of earlier builds lack it.
    if let Some(recorded) = options.recorded.to_comment() {
        out.text(&recorded);
        out.flag(options.recorded.has_ids());
    }
}

pub(crate) fn read(payload: &[u8]) -> Result<Head, Damage> {
    let mut from = Reader(payload);
    let from = &mut from;
    let settings = Settings::read(from)?;
    let mut options = Options {
        id: settings.id,
        model: match settings.is_server_db {
            true => Model::server_db(),
            false => Model::standalone(),
        },
        file: settings.file,
        column_diff: settings.column_diff,
        history: settings.history,
        recorded: RecordedCommits::default(),
    };
    let json = Value::parse(from.bytes()?).map_err(|error| Damage(error.to_string()))?;
    let schema = Schema::from_json(&json).map_err(|error| Damage(error.to_string()))?;
    let (mut rows, mut row_slots) = (Vec::new(), Vec::new());
    for (id, _) in schema.iter() {
        let of_table = RowSlots::read(from)?;
        let mut of_rows = Vec::new();
        for _ in &of_table.rows {
            of_rows.push(read_row(from, &schema, id)?);
        }
        rows.push(of_rows);
        row_slots.push(of_table);
    }
    if !from.is_empty() {
        options.recorded = RecordedCommits::of_comment(&from.text()?);
        if !from.is_empty() {
            options.recorded.set_has_ids(from.flag()?);
        }
    }
    let database = Database::restore(Arc::new(schema), HashSeed::FIXED, rows, &row_slots);
    Ok(Head {
        now: settings.now,
        options,
        limits: settings.limits,
        database: database.map_err(|error| Damage(error.to_string()))?,
    })
}

fn read_row(from: &mut Reader<'_>, schema: &Schema, table: TableId) -> Result<Row, Damage> {
    let (identity, version) = (Uuid::read(from)?, Uuid::read(from)?);
    let mut columns: Vec<Datum> = Vec::new();
    for column in schema.table(table).columns() {
        let mut text = corvid_json::Reader::new(from.bytes()?);
        let datum = wire::read_datum_unconstrained(&mut text, &column.column_type, None);
        columns.push(datum.map_err(|error| Damage(error.to_string()))?);
    }
    Ok(Row {
        uuid: identity,
        version,
        columns: columns.into(),
    })
}

#[cfg(test)]
mod tests;
