//! `watch`: the rows of a table, then every change of them.
//!
//! The rows are kept, so that a change of the server's form becomes old and new values, and so that
//! after a lost connection only what has changed meanwhile is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use corvid_data::{ColumnId, ColumnType, Datum, TableSchema, Uuid};
use corvid_json::{Object, Value};
use corvid_shell::{output, program};

use super::change_line::{Change, Lines};
use super::show::name_column;
use crate::contents::{Clause, Contents};
use crate::failure::{Failure, Kind};
use crate::grammar::chain::Invocation;
use crate::grammar::names;
use crate::grammar::where_form::{self, Where};
use crate::server::{self, Server, Update};
use crate::settings::Settings;

/// The first pause before connecting again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

pub(super) fn watch(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
) -> Result<(), Failure> {
    let mut rows = Rows::default();
    loop {
        let lost = match follow(server, invocation, settings, &mut rows) {
            // Only a watch that has begun goes on.
            Err(failure) if failure.kind == Kind::Connection && rows.is_known => failure,
            other => return other,
        };
        report(&format!("{lost}; connecting again"));
        let mut pause = PAUSE.0;
        *server = loop {
            if output::reader_is_gone() {
                return Ok(());
            }
            thread::sleep(pause);
            corvid_shell::signals::run();
            match Server::connect(settings) {
                Ok(server) => break server,
                Err(_) => pause = (pause * 2).min(PAUSE.1),
            }
        };
        report("connected again");
    }
}

/// Tells the user about the connection.
fn report(text: &str) {
    output::error_line(format_args!("{}: {text}", program::prefix()));
}

/// Prints what has changed since the last connection, then every change, until the connection ends
/// or nobody reads the output any more.
fn follow(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
    rows: &mut Rows,
) -> Result<(), Failure> {
    server.choose(settings.database.as_deref())?;
    let schema = server.schema()?;
    let id = names::table(&schema, &invocation.args[0])?;
    let table = schema.table(id);
    let mut shown = names::listed(table, invocation)?;
    shown.retain(|column| *column != ColumnId::UUID);
    let expression = match invocation.value("--where") {
        None => None,
        Some(text) => Some(where_form::parse(
            &mut Contents::new(&schema, server),
            id,
            text,
        )?),
    };
    let name = name_column(table);
    let mut needed: Vec<ColumnId> = shown.iter().copied().chain(name).collect();
    needed.extend(expression.iter().flat_map(Where::columns));
    needed.sort_unstable();
    needed.dedup();
    needed.retain(|column| !column.is_standard());
    let clauses: Vec<Clause> = expression.as_ref().map(Where::clauses).unwrap_or_default();
    let watched = Watched {
        table,
        needed,
        expression,
        lines: Lines {
            table,
            name,
            shown,
            is_json: settings.objects.is_some(),
        },
    };
    rows.adopt(&watched);
    let update = server.monitor(&schema, id, &watched.needed, &clauses)?;
    let mut known = std::mem::take(&mut rows.rows);
    // Rows that are gone since the last connection.
    let present = watched.updated(&mut BTreeMap::new(), &update)?;
    let uuids: BTreeSet<Uuid> = present.iter().map(|change| change.uuid).collect();
    for (uuid, row) in &known {
        if !uuids.contains(uuid) {
            watched.print(Change::gone(*uuid, row))?;
        }
    }
    for change in present {
        let before = known.remove(&change.uuid);
        rows.rows
            .extend(change.after.clone().map(|row| (change.uuid, row)));
        watched.print(Change {
            is_first: !rows.is_known,
            before,
            ..change
        })?;
    }
    rows.is_known = true;
    loop {
        output::flush()?;
        if output::reader_is_gone() {
            return Ok(());
        }
        let Some(update) = server.next_update()? else {
            return Ok(());
        };
        for change in watched.updated(&mut rows.rows, &update)? {
            watched.print(change)?;
        }
    }
}

/// The values of a row.
pub(super) type Row = BTreeMap<ColumnId, Datum>;

/// The rows that the server has reported.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<Uuid, Row>,
    /// The names and types of the columns.
    columns: Vec<(String, ColumnType)>,
    /// The present rows are printed already.
    is_known: bool,
}

impl Rows {
    /// Keeps the rows of the last connection if the columns are still the same.
    fn adopt(&mut self, watched: &Watched<'_>) {
        let columns: Vec<(String, ColumnType)> = watched
            .needed
            .iter()
            .map(|id| {
                let column = watched.table.column(*id);
                (column.name.to_string(), column.column_type.clone())
            })
            .collect();
        if self.columns != columns {
            *self = Rows {
                columns,
                ..Rows::default()
            };
        }
    }
}

/// The table, the columns and the expression that are watched.
struct Watched<'s> {
    table: &'s TableSchema,
    /// The columns that the server reports.
    needed: Vec<ColumnId>,
    expression: Option<Where>,
    lines: Lines<'s>,
}

impl Watched<'_> {
    /// Applies an update to the rows, and returns the changes.
    fn updated(
        &self,
        rows: &mut BTreeMap<Uuid, Row>,
        update: &Update,
    ) -> Result<Vec<Change>, Failure> {
        let (Update::Rows(tables) | Update::Changes(tables)) = update;
        let reported = tables
            .get(self.table.name.as_str())
            .and_then(Value::as_object);
        let mut changes = Vec::new();
        for (uuid, reported) in reported.into_iter().flatten() {
            let Some(uuid) = Uuid::parse(uuid) else {
                continue;
            };
            let before = rows.remove(&uuid);
            let after = match update {
                Update::Rows(_) => reported.get("new").map(|row| self.row(row)).transpose()?,
                Update::Changes(_) => self.changed(before.as_ref(), reported)?,
            };
            if let Some(row) = &after {
                rows.insert(uuid, row.clone());
            }
            changes.push(Change {
                uuid,
                is_first: false,
                before,
                after,
            });
        }
        Ok(changes)
    }

    /// The row after a change; `None` if it is gone.
    fn changed(&self, before: Option<&Row>, change: &Value) -> Result<Option<Row>, Failure> {
        if let Some(row) = change.get("initial").or_else(|| change.get("insert")) {
            return self.row(row).map(Some);
        }
        let Some(modified) = change.get("modify").and_then(Value::as_object) else {
            return Ok(None);
        };
        let unknown = || server::strange("a change of a row that was not reported");
        let mut row = before.cloned().ok_or_else(unknown)?;
        for (id, value) in self.values(modified) {
            let column_type = &self.table.column(id).column_type;
            let difference = server::difference(value, column_type)?;
            row.entry(id)
                .or_default()
                .apply_diff(&difference, column_type)
                .map_err(|error| server::strange(&error.to_string()))?;
        }
        Ok(Some(row))
    }

    /// A whole row; columns that are left out have their defaults.
    fn row(&self, json: &Value) -> Result<Row, Failure> {
        let default = |id: &ColumnId| {
            let column_type = &self.table.column(*id).column_type;
            (*id, Datum::default_for(column_type))
        };
        let mut row: Row = self.needed.iter().map(default).collect();
        for (id, value) in json
            .as_object()
            .into_iter()
            .flat_map(|json| self.values(json))
        {
            let column_type = &self.table.column(id).column_type;
            row.insert(id, server::datum(value, column_type)?);
        }
        Ok(row)
    }

    /// The reported columns among the needed ones.
    fn values<'j>(&self, json: &'j Object) -> impl Iterator<Item = (ColumnId, &'j Value)> {
        let of = |id: &ColumnId| {
            let name = self.table.column(*id).name.as_bytes();
            json.get(name).map(|value| (*id, value))
        };
        self.needed
            .iter()
            .filter_map(of)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Prints a change. A row that begins to satisfy the expression appears, one that no longer
    /// does disappears.
    fn print(&self, change: Change) -> Result<(), Failure> {
        let change = Change {
            before: self.selected(change.before, change.uuid)?,
            after: self.selected(change.after, change.uuid)?,
            ..change
        };
        if let Some(line) = self.lines.of(&change) {
            output::show(&line)?;
        }
        Ok(())
    }

    /// The row, if there is one and the expression holds for it.
    fn selected(&self, row: Option<Row>, uuid: Uuid) -> Result<Option<Row>, Failure> {
        let (Some(row), Some(expression)) = (&row, &self.expression) else {
            return Ok(row);
        };
        let mut read = |column| -> Result<Datum, Failure> {
            Ok(match column {
                ColumnId::UUID => Datum::one(corvid_data::Atom::Uuid(uuid)),
                column => row.get(&column).cloned().unwrap_or_default(),
            })
        };
        let holds = expression.holds(&mut read)?;
        Ok(holds.then(|| row.clone()))
    }
}
