//! The first frame of a recording: the database with its rows in their slots, and its options.
//!
//! Cost: all rows. It is written once, before the database is served.

use corvid_data::{Arc, Datum, HashSeed, Row, Schema, TableId, Uuid, wire};
use corvid_engine::{Database, RowSlots};
use corvid_json::Value;
use corvid_log::storage::FileSize;

use super::codec::{Damage, Reader, Writer};
use crate::message::DatabaseId;
use crate::pump::Limits;
use crate::storage::FileState;
use crate::{Model, Now, Options};

/// The start of a replay.
pub(super) struct Head {
    pub(super) now: Now,
    pub(super) options: Options,
    pub(super) limits: Limits,
    pub(super) database: Database,
}

pub(super) fn write(
    out: &mut Writer<'_>,
    now: Now,
    options: &Options,
    limits: &Limits,
    database: &Database,
) {
    out.number(now.mono_ms);
    out.signed(now.wall_ms);
    out.number(options.id.0.into());
    out.flag(options.model.is_server_db());
    out.option(options.file, |out, file| {
        out.number(file.records);
        out.number(file.size.base);
        out.number(file.size.end);
    });
    out.flag(options.column_diff);
    out.flag(options.history);
    out.number(limits.batch_max as u64);
    out.number(limits.long_steps);
    out.number(limits.inline_sessions_max as u64);
    let schema = database.schema();
    out.bytes(&schema.to_json().to_bytes());
    let mut text = Vec::new();
    for ((id, table), row_slots) in schema.iter().zip(database.row_slots()) {
        for slots in [&row_slots.rows, &row_slots.free] {
            out.number(slots.len() as u64);
            for slot in slots {
                out.number((*slot).into());
            }
        }
        for row in database.rows(id) {
            out.0.extend_from_slice(&row.uuid.0);
            out.0.extend_from_slice(&row.version.0);
            for (column, datum) in table.columns().iter().zip(&row.columns) {
                text.clear();
                wire::write_datum(&mut text, datum, column.column_type.is_map());
                out.bytes(&text);
            }
        }
    }
}

pub(super) fn read(payload: &[u8]) -> Result<Head, Damage> {
    let mut from = Reader(payload);
    let from = &mut from;
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let now = Now {
        mono_ms: from.number()?,
        wall_ms: from.signed()?,
    };
    let id = u32::try_from(from.number()?).unwrap_or_default();
    let is_server_db = from.flag()?;
    let file = from.option(|from| {
        Ok(FileState {
            records: from.number()?,
            size: FileSize {
                base: from.number()?,
                end: from.number()?,
            },
        })
    })?;
    let options = Options {
        id: DatabaseId(id),
        model: match is_server_db {
            true => Model::server_db(),
            false => Model::standalone(),
        },
        file,
        column_diff: from.flag()?,
        history: from.flag()?,
    };
    let limits = Limits {
        batch_max: size(from.number()?),
        long_steps: from.number()?,
        inline_sessions_max: size(from.number()?),
    };
    let json = Value::parse(from.bytes()?).map_err(|error| Damage(error.to_string()))?;
    let schema = Schema::from_json(&json).map_err(|error| Damage(error.to_string()))?;
    let (mut rows, mut row_slots) = (Vec::new(), Vec::new());
    for (id, _) in schema.iter() {
        let of_table = read_row_slots(from)?;
        let mut of_rows = Vec::new();
        for _ in &of_table.rows {
            of_rows.push(read_row(from, &schema, id)?);
        }
        rows.push(of_rows);
        row_slots.push(of_table);
    }
    let database = Database::restore(Arc::new(schema), HashSeed::FIXED, rows, &row_slots);
    Ok(Head {
        now,
        options,
        limits,
        database: database.map_err(|error| Damage(error.to_string()))?,
    })
}

fn read_row_slots(from: &mut Reader<'_>) -> Result<RowSlots, Damage> {
    let mut slots = || {
        let mut slots = Vec::new();
        for _ in 0..from.number()? {
            let slot = u32::try_from(from.number()?);
            slots.push(slot.map_err(|_| Damage::new("a place that cannot be"))?);
        }
        Ok(slots)
    };
    Ok(RowSlots {
        rows: slots()?,
        free: slots()?,
    })
}

fn read_row(from: &mut Reader<'_>, schema: &Schema, table: TableId) -> Result<Row, Damage> {
    let uuid = |from: &mut Reader<'_>| -> Result<Uuid, Damage> {
        let bytes: Result<[u8; 16], _> = from.take(16)?.try_into();
        Ok(Uuid(bytes.unwrap_or_default()))
    };
    let (identity, version) = (uuid(from)?, uuid(from)?);
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
