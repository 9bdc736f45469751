//! `watch`: the rows of a table, then every change of them.

use std::collections::BTreeMap;

use corvid_data::{ColumnId, Datum, Schema, TableId, TableSchema, Uuid, text};
use corvid_json::Value;
use corvid_shell::output;

use super::show::{label, name_column};
use crate::contents::Contents;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::names;
use crate::grammar::where_form::{self, Where};
use crate::server::Server;
use crate::settings::Settings;

pub(super) fn watch(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
) -> Result<(), Failure> {
    server.choose(settings.database.as_deref())?;
    let schema = server.schema()?;
    let id = names::table(&schema, &invocation.args[0])?;
    let table = schema.table(id);
    let mut shown = names::columns(table, invocation.value("--columns"))?;
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
    let watched = Watched {
        table,
        name,
        shown,
        needed,
        expression,
    };
    watched.run(server, &schema, id)
}

/// The rows that are watched.
struct Watched<'s> {
    table: &'s TableSchema,
    name: Option<ColumnId>,
    /// The columns to print.
    shown: Vec<ColumnId>,
    /// The columns that the server reports.
    needed: Vec<ColumnId>,
    expression: Option<Where>,
}

/// The values of a row.
type Row = BTreeMap<ColumnId, Datum>;

impl Watched<'_> {
    /// Prints changes until the connection ends or nobody reads the output any more.
    fn run(&self, server: &mut Server, schema: &Schema, id: TableId) -> Result<(), Failure> {
        let mut updates = server.monitor(schema, id, &self.needed)?;
        loop {
            let rows = updates
                .get(self.table.name.as_str())
                .and_then(Value::as_object);
            for (uuid, change) in rows.into_iter().flatten() {
                if let Some(uuid) = Uuid::parse(uuid) {
                    self.print(uuid, change)?;
                }
            }
            output::flush()?;
            if output::reader_is_gone() {
                return Ok(());
            }
            updates = server.next_update()?;
        }
    }

    /// Prints the change of one row. A row that begins to satisfy the expression appears, one that
    /// no longer does disappears.
    fn print(&self, uuid: Uuid, change: &Value) -> Result<(), Failure> {
        let new = change.get("new").map(|row| self.row(row)).transpose()?;
        let old = change.get("old").map(|row| self.row(row)).transpose()?;
        // For a changed row the server sends the old values of the changed columns only.
        let before = old.map(|old| {
            let mut before = new.clone().unwrap_or_default();
            before.extend(old);
            before
        });
        let (before, after) = (self.selected(before, uuid)?, self.selected(new, uuid)?);
        let line = match (&before, &after) {
            (None, None) => return Ok(()),
            (None, Some(row)) => {
                let values = self.shown.iter().filter_map(|id| {
                    let column = self.table.column(*id);
                    let value = row.get(id)?;
                    let is_told = !value.is_default(&column.column_type) && Some(*id) != self.name;
                    is_told.then(|| format!(" {}={}", column.name, self.text(*id, value)))
                });
                format!("+ {}{}", self.label(row, uuid), values.collect::<String>())
            }
            (Some(row), None) => format!("- {}", self.label(row, uuid)),
            (Some(before), Some(after)) => {
                let changes = self.shown.iter().filter_map(|id| {
                    let (old, new) = (before.get(id)?, after.get(id)?);
                    let name = &self.table.column(*id).name;
                    (old != new).then(|| {
                        format!(
                            " {name}: {} -> {}",
                            self.text(*id, old),
                            self.text(*id, new)
                        )
                    })
                });
                let changes: Vec<String> = changes.collect();
                if changes.is_empty() {
                    return Ok(());
                }
                format!("~ {}{}", self.label(after, uuid), changes.join(","))
            }
        };
        output::line(output::part(&line));
        Ok(())
    }

    /// The row, if there is one and the expression holds for it.
    fn selected(&self, row: Option<Row>, uuid: Uuid) -> Result<Option<Row>, Failure> {
        let (Some(row), Some(expression)) = (&row, &self.expression) else {
            return Ok(row);
        };
        let mut read = |column| {
            Ok(match column {
                ColumnId::UUID => Datum::one(corvid_data::Atom::Uuid(uuid)),
                column => row.get(&column).cloned().unwrap_or_default(),
            })
        };
        let holds = expression.holds(&mut read)?;
        Ok(holds.then(|| row.clone()))
    }

    fn row(&self, json: &Value) -> Result<Row, Failure> {
        let mut row = Row::new();
        for id in &self.needed {
            let column = self.table.column(*id);
            if let Some(value) = json.get(&column.name) {
                row.insert(*id, crate::server::datum(value, &column.column_type)?);
            }
        }
        Ok(row)
    }

    fn label(&self, row: &Row, uuid: Uuid) -> String {
        let name = self.name.and_then(|name| row.get(&name)).cloned();
        label(&name.unwrap_or_default(), uuid)
    }

    fn text(&self, column: ColumnId, value: &Datum) -> String {
        let mut shown = String::new();
        text::write_datum(&mut shown, value, &self.table.column(column).column_type);
        shown
    }
}
