//! A replica built from updates. It refuses every update that a server must not send
//! (docs/spec/protocol.md 4.6, 4.7).

use corvid_data::Uuid;
use corvid_json::Value;

use corvid_model::datum::{Datum, no_names};
use corvid_model::monitor::Monitor;
use corvid_model::schema::{Schema, Table};
use corvid_model::{Row, Tables};

/// Applies an update, or the first reply of a monitor, to a client's rows.
///
/// # Errors
/// The update contradicts the rows.
pub fn apply(
    schema: &Schema,
    monitor: &Monitor,
    rows: &mut Tables,
    updates: &Value,
) -> Result<(), String> {
    for (name, updates) in updates.as_object().ok_or("updates are not an object")? {
        let name = name.to_string();
        let table = schema.tables.get(&name).ok_or("unknown table")?;
        let columns = monitor.tables[&name].columns.keys();
        let rows = rows.entry(name.clone()).or_default();
        for (uuid, update) in updates.as_object().ok_or("rows are not an object")? {
            let uuid = Uuid::parse(uuid).ok_or("bad identity")?;
            let old = rows.remove(&uuid);
            let new = if monitor.is_v1 {
                whole(table, old, update)
            } else {
                partial(table, columns.clone(), old, update)
            };
            let new = new.map_err(|problem| format!("{name} {uuid}: {problem}: {update}"))?;
            rows.extend(new.map(|new| (uuid, new)));
        }
    }
    Ok(())
}

fn read(table: &Table, row: &Value) -> Result<Row, String> {
    let mut columns = Row::new();
    for (name, value) in row.as_object().ok_or("a row is not an object")? {
        let name = name.to_string();
        let ty = table.ty(&name).ok_or("unknown column")?;
        let unlimited = ty.limited(0, u64::MAX);
        let datum = Datum::read(&unlimited, value, &mut no_names);
        columns.insert(name, datum.map_err(|fault| fault.details)?);
    }
    Ok(columns)
}

fn whole(table: &Table, held: Option<Row>, update: &Value) -> Result<Option<Row>, String> {
    let part = |name| update.get(name).map(|row| read(table, row)).transpose();
    match (held, part("old")?, part("new")?) {
        (None, None, Some(new)) => Ok(Some(new)),
        (Some(held), Some(old), None) if held == old => Ok(None),
        (Some(held), Some(old), Some(new)) => {
            let is_right = old.iter().all(|(column, datum)| held[column] == *datum);
            if is_right {
                Ok(Some(new))
            } else {
                Err(format!("held {held:?}"))
            }
        }
        (held, _, _) => Err(format!("held {held:?}")),
    }
}

fn partial<'c>(
    table: &Table,
    columns: impl Iterator<Item = &'c String>,
    held: Option<Row>,
    update: &Value,
) -> Result<Option<Row>, String> {
    let members = update.as_object().ok_or("an update is not an object")?;
    let mut kinds = members.iter();
    let (Some((kind, row)), None) = (kinds.next(), kinds.next()) else {
        return Err("not exactly one kind".to_owned());
    };
    match (kind.to_string().as_str(), held) {
        ("initial" | "insert", None) => {
            let default = |column: &String| {
                (
                    column.clone(),
                    table.ty(column).expect("a column").default(),
                )
            };
            let mut complete: Row = columns.map(default).collect();
            complete.extend(read(table, row)?);
            Ok(Some(complete))
        }
        ("modify", Some(mut held)) => {
            for (column, difference) in read(table, row)? {
                let ty = table.ty(&column).expect("it was read");
                let patched = held
                    .get(&column)
                    .ok_or("not a monitored column")?
                    .patched(&difference, &ty);
                held.insert(column, patched);
            }
            Ok(Some(held))
        }
        ("delete", Some(_)) if *row == Value::Null => Ok(None),
        (_, held) => Err(format!("held {held:?}")),
    }
}
