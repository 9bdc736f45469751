//! Row updates of replies and notifications as tables (docs/spec/protocol.md 4.6, 4.7). Rows are
//! ordered by UUID.

use corvid_json::Value;

use super::request::MonitoredTable;
use crate::failure::Failure;
use crate::table::{Cell, Table};

/// The message that contains an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The reply to the request.
    Initial,
    /// A notification.
    Update,
}

/// A table of `{"old":ROW,"new":ROW}` updates.
///
/// # Errors
/// The update is malformed.
pub(crate) fn plain(
    monitored: &MonitoredTable,
    rows: &Value,
    phase: Phase,
) -> Result<Table, Failure> {
    let mut table = heading(monitored);
    for (uuid, update) in members(rows)? {
        let (old, new) = (update.get("old"), update.get("new"));
        match (old, new) {
            (None, Some(new)) => {
                let action = if phase == Phase::Initial {
                    "initial"
                } else {
                    "insert"
                };
                table.rows.push(row(monitored, uuid, action, new)?);
            }
            (Some(old), None) => table.rows.push(row(monitored, uuid, "delete", old)?),
            (Some(old), Some(new)) => {
                table.rows.push(row(monitored, uuid, "old", old)?);
                table.rows.push(row(monitored, "", "new", new)?);
            }
            (None, None) => return Err(malformed("row-update", update)),
        }
    }
    Ok(table)
}

/// A table of `{KIND:ROW}` updates.
///
/// # Errors
/// The update is malformed.
pub(crate) fn conditional(monitored: &MonitoredTable, rows: &Value) -> Result<Table, Failure> {
    let mut table = heading(monitored);
    for (uuid, update) in members(rows)? {
        let Some((kind, content)) = update.as_object().and_then(|object| object.iter().next())
        else {
            return Err(malformed("row-update", update));
        };
        table
            .rows
            .push(row(monitored, uuid, &kind.to_string(), content)?);
    }
    Ok(table)
}

fn heading(monitored: &MonitoredTable) -> Table {
    let fixed = ["row", "action"].map(str::to_owned);
    let names = monitored.columns.iter().map(|(name, _)| name.clone());
    Table {
        headings: fixed.into_iter().chain(names).collect(),
        ..Table::default()
    }
}

fn members(rows: &Value) -> Result<impl Iterator<Item = (&str, &Value)>, Failure> {
    let rows = rows
        .as_object()
        .ok_or_else(|| malformed("table-update", rows))?;
    Ok(rows
        .iter()
        .map(|(uuid, update)| (std::str::from_utf8(uuid).unwrap_or_default(), update)))
}

/// A row of the printed table. `content` is an object, or null for a deleted row.
fn row(
    monitored: &MonitoredTable,
    uuid: &str,
    action: &str,
    content: &Value,
) -> Result<Vec<Cell>, Failure> {
    if content.as_object().is_none() && *content != Value::Null {
        return Err(malformed("row", content));
    }
    let mut cells = vec![Cell::Text(uuid.to_owned()), Cell::Text(action.to_owned())];
    cells.extend(
        monitored
            .columns
            .iter()
            .map(|(name, column_type)| match content.get(name) {
                None => Cell::Empty,
                Some(value) => Cell::Received(value.clone(), column_type.clone()),
            }),
    );
    Ok(cells)
}

fn malformed(what: &str, value: &Value) -> Failure {
    Failure::new(format!("server sent a malformed <{what}>: {value}"))
}
