//! A row: all columns, the rows that refer to it, the row as JSON and as a command.

use askama::Template;
use axum::response::Response;
use corvid::data::{ColumnId, ColumnType, TableId, Uuid};
use corvid::json::{Object, Value};
use corvid::{Column, RowId};
use hyper::StatusCode;

use crate::database::cell::{Cell, Context, cut};
use crate::database::contents::Contents;
use crate::database::naming::{NAME_LETTERS_MAX, short};
use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::pages::frame::{self, Frame};
use crate::pages::{REFERRERS_ROWS_MAX, command, table, tables};
use crate::refusal;
use crate::web::{App, reply};

/// The number of elements of a column that the page shows.
const ELEMENTS_MAX: usize = 2000;

/// The bytes of the row as JSON, and as a command, that the page shows.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The number of rows that refer to this one through a column that the page names.
const REFERRERS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "row.html")]
struct Row {
    frame: Frame,
    database: String,
    table: String,
    uuid: String,
    label: String,
    columns: Vec<Line>,
    referrers: Vec<Referrer>,
    trouble: String,
    json: String,
    command: String,
    events: String,
}

struct Line {
    name: String,
    kind: String,
    cell: String,
    is_default: bool,
    /// The address of the whole value, if the cell is cut.
    whole: Option<String>,
}

/// A column that may refer to the row.
struct Referrer {
    table: String,
    column: String,
    /// The rows: address and name.
    rows: Vec<(String, String)>,
    more: usize,
    /// The page of all these rows.
    href: String,
    /// The server was not asked, because the table is large.
    is_large: bool,
}

pub(crate) fn page(
    app: &App,
    database: &Database,
    open: &Open,
    table: TableId,
    uuid: Uuid,
) -> Response {
    let status = database.status.read();
    let counts = tables::counts(open, status.as_deref());
    open.look_for_names(table, &counts);
    let has_arrived = open.look(table);
    let schema = open.schema.table(table);
    let name = &database.source.name;
    let (referrers, trouble) = match referrers(open, name, table, uuid, &counts) {
        Ok(referrers) => (referrers, String::new()),
        Err(failure) => (Vec::new(), failure.text().to_owned()),
    };
    let shown = open.client.read(|idl| {
        let row = idl.row(table, uuid)?;
        let context = Context {
            database: name,
            idl,
            naming: &open.naming,
        };
        let columns = schema.iter().map(|(id, column)| {
            let value = idl.read(row, Column { table, id }).unwrap_or_default();
            let column_type = &column.column_type;
            let cell = Cell::whole(context, &value, column_type, ELEMENTS_MAX);
            let address = format!("/db/{name}/table/{}/row/{uuid}", schema.name);
            Line {
                whole: cell.is_cut().then(|| format!("{address}/{}", column.name)),
                name: column.name.to_string(),
                kind: column_type.english(),
                cell: cell.html(),
                is_default: value.is_default(column_type),
            }
        });
        let all: Vec<ColumnId> = schema.iter().map(|(id, _)| id).collect();
        let mut json = Vec::new();
        table::row_json(Contents::Now(idl, table), schema, uuid, &all).write_pretty(&mut json);
        Some((
            open.naming.label(idl, table, uuid),
            columns.collect(),
            String::from_utf8_lossy(&json).into_owned(),
            command::create(database, open, idl, RowId { table, uuid }),
        ))
    });
    let Some((label, columns, json, command)) = shown else {
        return match has_arrived {
            true => frame::missing(app, &format!("{} has no row {uuid}.", schema.name)),
            false => frame::arriving(app, database),
        };
    };
    reply::page(&Row {
        frame: Frame::of(app, database, "tables", &format!("{} {label}", schema.name)),
        database: name.clone(),
        table: schema.name.to_string(),
        uuid: uuid.to_string(),
        label,
        columns,
        referrers,
        trouble,
        json: bounded(json),
        command: bounded(command),
        events: format!("/db/{name}/table/{}/events", schema.name),
    })
}

/// A text, unless it is too long for the page.
fn bounded(text: String) -> String {
    match text.len() {
        ..=TEXT_BYTES_MAX => text,
        bytes => format!("{bytes} bytes: too long for this page"),
    }
}

/// The whole value of a column as a file.
pub(crate) fn value(app: &App, open: &Open, table: TableId, uuid: Uuid, column: &str) -> Response {
    let schema = open.schema.table(table);
    let has_arrived = open.look(table);
    let trouble = open.trouble();
    if !trouble.is_empty() {
        return frame::not_current(&trouble);
    }
    let text = schema.column_id(column).and_then(|id| {
        let column_type = &schema.column(id).column_type;
        open.client.read(|idl| {
            let value = idl.read(idl.row(table, uuid)?, Column { table, id })?;
            let mut text = String::new();
            corvid::data::text::write_datum_bare(&mut text, &value, column_type);
            Some(text)
        })
    });
    match text {
        Some(text) => {
            let name = format!("{column}.txt");
            reply::file(&name, "text/plain; charset=utf-8", text.into_bytes())
        }
        None if has_arrived => {
            let text = format!(
                "{} has no row {uuid} with a column \"{column}\".",
                schema.name
            );
            frame::missing(app, &text)
        }
        None => reply::text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the rows have not arrived\n",
        ),
    }
}

/// The columns that may refer to rows of a table.
fn referring(open: &Open, table: TableId) -> Vec<(TableId, ColumnId)> {
    let refers = |column_type: &ColumnType| {
        let bases = [Some(&column_type.key), column_type.value.as_ref()];
        bases.into_iter().flatten().any(|base| {
            let reference = base.reference.as_ref();
            reference.is_some_and(|reference| reference.table == table)
        })
    };
    let tables = open.schema.iter();
    tables
        .flat_map(|(id, table)| {
            table
                .iter()
                .map(move |(column, schema)| (id, column, schema))
        })
        .filter(|(_, _, schema)| refers(&schema.column_type))
        .map(|(table, column, _)| (table, column))
        .collect()
}

/// The rows that refer to a row, asked of the server by one transaction. A map is not judged by the
/// server without its other half, so its rows are only linked.
fn referrers(
    open: &Open,
    database: &str,
    table: TableId,
    uuid: Uuid,
    counts: &[Option<u64>],
) -> Result<Vec<Referrer>, Failure> {
    let columns = referring(open, table);
    let mut params = vec![Value::string(open.schema.name.as_str())];
    let is_asked: Vec<bool> = columns
        .iter()
        .map(|(table, column)| {
            let rows = counts[usize::from(table.0)];
            let schema = open.schema.table(*table);
            let column = schema.column(*column);
            let is_small = rows.is_none_or(|rows| rows <= REFERRERS_ROWS_MAX);
            let is_asked = is_small && !column.column_type.is_map();
            if is_asked {
                let names = open.naming.column(*table);
                params.push(select(schema, &column.name, names, uuid));
            }
            is_asked
        })
        .collect();
    let results = match params.len() {
        1 => Vec::new(),
        _ => {
            let results = open.call("transact", &Value::Array(params))?;
            if let Some(error) = refusal::of_results(&results) {
                return Err(Failure::Refused(error));
            }
            match results {
                Value::Array(results) => results,
                _ => Vec::new(),
            }
        }
    };
    let mut results = results.into_iter();
    let described = columns
        .iter()
        .zip(is_asked)
        .filter_map(|((table, column), is_asked)| {
            let schema = open.schema.table(*table);
            let is_map = schema.column(*column).column_type.is_map();
            let column = &schema.column(*column).name;
            // A map equals no UUID, but its text has it.
            let sign = if is_map { "~" } else { "==" };
            let filter = form_urlencoded::Serializer::new(String::new())
                .append_pair("where", &format!("{column} {sign} {uuid}"))
                .finish();
            let address = format!("/db/{database}/table/{}", schema.name);
            let mut referrer = Referrer {
                table: schema.name.to_string(),
                column: column.to_string(),
                rows: Vec::new(),
                more: 0,
                href: format!("{address}?{filter}"),
                is_large: !is_asked,
            };
            if is_asked {
                let result = results.next();
                let rows = result.as_ref().and_then(|result| result.get("rows"));
                let rows = rows.and_then(Value::as_array).unwrap_or_default();
                let name = open.naming.column(*table).map(|id| &schema.column(id).name);
                let named = rows.iter().take(REFERRERS_MAX).filter_map(|row| {
                    let uuid = row.get("_uuid")?.as_array()?.get(1)?.as_str()?;
                    let uuid = Uuid::parse(uuid.as_bytes())?;
                    let text = name.and_then(|name| row.get(name)?.as_str());
                    let name = text.filter(|text| !text.is_empty());
                    let label =
                        name.map_or_else(|| short(uuid), |name| cut(name, NAME_LETTERS_MAX));
                    Some((format!("{address}/row/{uuid}"), label))
                });
                referrer.rows = named.collect();
                referrer.more = rows.len() - referrer.rows.len();
                if rows.is_empty() {
                    return None;
                }
            }
            Some(referrer)
        });
    Ok(described.collect())
}

fn select(
    table: &corvid::data::TableSchema,
    column: &str,
    name: Option<ColumnId>,
    uuid: Uuid,
) -> Value {
    let uuid = vec![Value::string("uuid"), Value::string(uuid.to_string())];
    let clause = vec![
        Value::string(column),
        Value::string("includes"),
        Value::Array(uuid),
    ];
    let mut columns = vec![Value::string("_uuid")];
    columns.extend(name.map(|id| Value::string(table.column(id).name.as_str())));
    let mut select = Object::new();
    select.insert("op".into(), Value::string("select"));
    select.insert("table".into(), Value::string(table.name.as_str()));
    select.insert("where".into(), Value::Array(vec![Value::Array(clause)]));
    select.insert("columns".into(), Value::Array(columns));
    Value::Object(select)
}
