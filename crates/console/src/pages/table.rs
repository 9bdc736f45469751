//! The rows of a table: a filter, an order, chosen columns, pages; as a page, as its rows alone for
//! a script, and as a file.

use askama::Template;
use axum::response::Response;
use corvid::Idl;
use corvid::data::{ColumnId, ColumnType, TableId, TableSchema, Uuid};
use corvid::json::{Object, Value};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

use crate::database::cell::{Cell, Context};
use crate::database::contents::{Contents, Past};
use crate::database::orders::{self, Key, Page, SORTED_ROWS_MAX, Sort};
use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::filter;
use crate::pages::frame::{self, Frame};
use crate::pages::params::Params;
use crate::web::{App, reply};

/// The number of rows on a page, unless the viewer chooses another.
const ROWS: usize = 50;

/// The numbers of rows that a viewer may choose.
const CHOICES: [usize; 4] = [25, 50, 100, 500];

/// The number of columns that are shown unless the viewer chooses them.
const COLUMNS_MAX: usize = 10;

/// The number of rows in a file.
const FILE_ROWS_MAX: usize = 100_000;

/// The last page that is counted.
const PAGES_MAX: usize = 1 << 40;

/// The header of a file that tells its rows, `ROWS of ALL`.
const ROWS_HEADER: HeaderName = HeaderName::from_static("corvid-rows");

/// The size of a file after which no row is added, MiB.
const FILE_MIB_MAX: usize = 64;

/// The same in bytes.
const FILE_BYTES_MAX: usize = FILE_MIB_MAX * 1024 * 1024;

/// The page.
#[derive(Template)]
#[template(path = "table.html")]
struct Table {
    frame: Frame,
    table: String,
    filter: String,
    sort: String,
    columns_text: String,
    trouble: String,
    names: Vec<ColumnChoice>,
    hidden: usize,
    rows: Rows,
    /// Why a file may not have all rows.
    cut: String,
    previous: Option<String>,
    next: Option<String>,
    sizes: Vec<(usize, String, bool)>,
    csv: String,
    json: String,
    command: String,
    /// Where changes come from; empty for an earlier moment.
    events: String,
    /// The moment; empty for now.
    at: String,
}

/// A column that the viewer may choose.
struct ColumnChoice {
    name: String,
    kind: String,
    is_shown: bool,
}

/// The rows of a page.
#[derive(Template)]
#[template(path = "rows.html")]
struct Rows {
    /// The address of the table.
    address: String,
    heads: Vec<Head>,
    lines: Vec<Line>,
    /// Rows of the table.
    total: usize,
    /// Rows that the filter selects.
    selected: usize,
    /// The number of the first row of the page, from 1.
    first: usize,
    last: usize,
    /// The rows are not sorted.
    is_unsorted: bool,
    /// The number of selected rows is exact, as opposed to one that it is not below.
    is_counted: bool,
    /// The rows are known. If not, the order is being made.
    is_ready: bool,
    /// The number of the last event that the rows show.
    event: u64,
}

/// The head of a column.
struct Head {
    name: String,
    kind: String,
    href: String,
    /// `ascending`, `descending` or nothing.
    order: &'static str,
}

struct Line {
    uuid: String,
    short: String,
    cells: Vec<(String, String)>,
}

/// The choices of a viewer.
struct Choices {
    filter: String,
    sort: Option<Sort>,
    /// The columns that the viewer chooses.
    columns: Vec<ColumnId>,
    page: usize,
    rows: usize,
}

/// The number of the page.
fn page_of(params: &Params) -> usize {
    let page = params.get("page").parse().unwrap_or(1_usize);
    page.clamp(1, PAGES_MAX)
}

impl Choices {
    fn of(table: &TableSchema, params: &Params) -> Result<Choices, String> {
        let column = |name: &str| {
            let id = match name {
                "_uuid" => Some(ColumnId::UUID),
                name => table.column_id(name),
            };
            id.ok_or_else(|| format!("{} has no column \"{name}\"", table.name))
        };
        let sort = match params.get("sort") {
            "" => None,
            text => Some(match text.strip_prefix('-') {
                Some(name) => Sort {
                    column: column(name)?,
                    is_descending: true,
                },
                None => Sort {
                    column: column(text)?,
                    is_descending: false,
                },
            }),
        };
        let words = params
            .all("columns")
            .flat_map(|text| text.split([',', ' ']));
        let columns = words.filter(|word| !word.is_empty()).map(column);
        let rows = params.get("rows").parse().unwrap_or(ROWS);
        Ok(Choices {
            filter: params.get("where").trim().to_owned(),
            sort,
            columns: columns.collect::<Result<_, _>>()?,
            page: page_of(params),
            rows: if CHOICES.contains(&rows) { rows } else { ROWS },
        })
    }
}

/// The page of a table, or with `part` in the query its rows alone.
pub(crate) fn page(
    app: &App,
    database: &Database,
    open: &Open,
    table: TableId,
    params: &Params,
) -> Response {
    let status = database.status.read();
    open.look_for_names(table, &super::tables::counts(open, status.as_deref()));
    let has_arrived = open.look(table);
    let schema = open.schema.table(table);
    let (choices, wrong) = match Choices::of(schema, params) {
        Ok(choices) => (choices, None),
        Err(error) => match Choices::of(schema, &Params::default()) {
            Ok(choices) => (choices, Some(error)),
            Err(error) => return reply::text(StatusCode::BAD_REQUEST, &error),
        },
    };
    let name = &database.source.name;
    let view = View {
        name,
        open,
        table,
        params,
        past: None,
    };
    let moment = params.get("at").trim();
    let mut unread = None;
    let past = match moment {
        "" => None,
        moment => Some(past(open, schema, moment).unwrap_or_else(|failure| {
            // The form stays, so that the moment can be corrected.
            unread = Some(failure);
            Past::default()
        })),
    };
    let wrong = match &unread {
        Some(failure) => Some(failure.text().to_owned()),
        None => wrong,
    };
    let view = View {
        past: past.as_ref(),
        ..view
    };
    let (rows, wrong) = match view.rows(&choices) {
        Ok(rows) => (rows, wrong),
        Err(error) => {
            let parse = |idl: &Idl| filter::parse(idl, &open.naming, table, &choices.filter);
            // Other rows than the viewer asked for are shown only if the filter itself is wrong.
            if open.client.read(parse).is_ok() {
                return reply::text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n"));
            }
            let all = Choices {
                filter: String::new(),
                ..choices
            };
            match view.rows(&all) {
                Ok(rows) => (rows, wrong.or(Some(error))),
                Err(error) => return reply::text(StatusCode::BAD_REQUEST, &error),
            }
        }
    };
    let unread = unread.map(|failure| failure.status(StatusCode::NOT_FOUND));
    if !params.get("part").is_empty() {
        return reply::page_with(unread.unwrap_or(StatusCode::OK), &rows);
    }
    let trouble = match (wrong, has_arrived) {
        (Some(error), _) => error,
        (None, false) => frame::ARRIVING.to_owned(),
        (None, true) => String::new(),
    };
    let shown: Vec<String> = rows.heads.iter().map(|head| head.name.clone()).collect();
    let names = schema.iter().map(|(_, column)| ColumnChoice {
        name: column.name.to_string(),
        kind: column.column_type.english(),
        is_shown: shown.iter().any(|name| *name == column.name.as_str()),
    });
    let names: Vec<ColumnChoice> = names.collect();
    let status = match unread {
        Some(status) => status,
        None if trouble.is_empty() || !has_arrived => frame::status_of_rows(open, has_arrived),
        None => StatusCode::BAD_REQUEST,
    };
    let address = &rows.address;
    let filter = params.get("where").trim().to_owned();
    let page = page_of(params);
    let page_at = |page: usize| params.with("page", &page.to_string());
    let page = Table {
        frame: Frame::of(app, database, "tables", &schema.name),
        table: schema.name.to_string(),
        sort: params.get("sort").to_owned(),
        columns_text: params.get("columns").to_owned(),
        trouble,
        hidden: names.iter().filter(|one| !one.is_shown).count(),
        names,
        cut: match rows.selected {
            ..=FILE_ROWS_MAX => format!("at most {FILE_MIB_MAX} MiB"),
            _ => format!("the first {FILE_ROWS_MAX} rows, at most {FILE_MIB_MAX} MiB"),
        },
        previous: rows.page_before(page, choices_rows(params)).map(page_at),
        next: rows.has_next().then(|| page_at(page + 1)),
        sizes: CHOICES
            .into_iter()
            .map(|size| {
                let query = params.with("rows", &size.to_string());
                (size, query, size == choices_rows(params))
            })
            .collect(),
        csv: format!("{address}.csv{}", params.with("page", "")),
        json: format!("{address}.json{}", params.with("page", "")),
        command: super::command::list(database, open, schema, &filter, &shown),
        events: match moment {
            "" => format!("{address}/events"),
            _ => String::new(),
        },
        at: moment.to_owned(),
        filter,
        rows,
    };
    reply::page_with(status, &page)
}

/// The rows of a table at a moment; a failure names both.
fn past(open: &Open, table: &TableSchema, moment: &str) -> Result<Past, Failure> {
    let past = open.past(table, moment);
    past.map_err(|failure| failure.of(&format!("{} at {moment}", table.name)))
}

fn choices_rows(params: &Params) -> usize {
    let rows = params.get("rows").parse().unwrap_or(ROWS);
    if CHOICES.contains(&rows) { rows } else { ROWS }
}

/// The inputs of a page.
struct View<'v> {
    name: &'v str,
    open: &'v Open,
    table: TableId,
    params: &'v Params,
    /// The rows of an earlier moment, if they are wanted.
    past: Option<&'v Past>,
}

impl Rows {
    /// The page before this one; beyond the end, the last page.
    fn page_before(&self, page: usize, rows: usize) -> Option<usize> {
        let before = page.checked_sub(1).filter(|before| *before > 0)?;
        match (self.lines.is_empty(), self.is_ready && self.is_counted) {
            (true, true) => Some(before.min(self.selected.div_ceil(rows).max(1))),
            (true, false) => None,
            (false, _) => Some(before),
        }
    }

    /// Whether there is a next page.
    fn has_next(&self) -> bool {
        !self.lines.is_empty() && (self.last < self.selected || !self.is_counted)
    }
}

impl View<'_> {
    fn contents<'c>(&'c self, idl: &'c Idl) -> Contents<'c> {
        match self.past {
            Some(past) => Contents::Then(past),
            None => Contents::Now(idl, self.table),
        }
    }

    /// The rows of the page.
    fn rows(&self, choices: &Choices) -> Result<Rows, String> {
        let client = &self.open.client;
        let total = client.read(|idl| self.contents(idl).len());
        let sort = choices.sort.or_else(|| self.natural_order(total));
        let skipped = (choices.page - 1).saturating_mul(choices.rows);
        let places = skipped..skipped.saturating_add(choices.rows);
        if let Some(past) = self.past {
            let parse =
                |idl: &Idl| filter::parse(idl, &self.open.naming, self.table, &choices.filter);
            let filter = client.read(parse)?;
            let contents = Contents::Then(past);
            let page = orders::of_past(contents, filter.as_ref(), sort, places);
            return Ok(client.read(|idl| self.shown(idl, choices, sort, &page)));
        }
        // The order of the replica costs nothing: the page is cut out of it.
        if sort.is_none() && choices.filter.is_empty() {
            return Ok(client.read(|idl| {
                let contents = self.contents(idl);
                let page = Page {
                    uuids: contents.uuids().skip(skipped).take(choices.rows).collect(),
                    selected: contents.len(),
                    is_counted: true,
                    is_ready: true,
                };
                self.shown(idl, choices, sort, &page)
            }));
        }
        let key = self.key(&choices.filter, sort);
        self.open.with_order(&key, &places, |idl, page| {
            self.shown(idl, choices, sort, page)
        })
    }

    fn key(&self, filter: &str, sort: Option<Sort>) -> Key {
        Key {
            table: self.table,
            filter: filter.to_owned(),
            sort,
        }
    }

    /// The rows of a page, as they are shown.
    fn shown(&self, idl: &Idl, choices: &Choices, sort: Option<Sort>, page: &Page) -> Rows {
        let schema = self.open.schema.table(self.table);
        let contents = self.contents(idl);
        let total = contents.len();
        let skipped = (choices.page - 1).saturating_mul(choices.rows);
        let uuids = &page.uuids;
        let columns = match choices.columns.is_empty() {
            true => self.columns(contents, uuids),
            false => choices.columns.clone(),
        };
        let context = Context {
            database: self.name,
            idl,
            naming: &self.open.naming,
        };
        let lines = uuids.iter().map(|uuid| Line {
            uuid: uuid.to_string(),
            short: crate::database::naming::short(*uuid),
            cells: columns
                .iter()
                .filter(|id| !id.is_standard())
                .map(|id| {
                    let column = schema.column(*id);
                    let value = contents.value(*uuid, *id);
                    let column_type = &column.column_type;
                    let cell = Cell::new(context, &value, column_type);
                    (column.name.to_string(), cell.html())
                })
                .collect(),
        });
        let lines: Vec<Line> = lines.collect();
        Rows {
            address: format!("/db/{}/table/{}", self.name, schema.name),
            heads: columns
                .iter()
                .filter(|id| !id.is_standard())
                .map(|id| self.head(schema, *id, sort))
                .collect(),
            total,
            selected: page.selected,
            is_counted: page.is_counted,
            is_ready: page.is_ready,
            first: if lines.is_empty() { 0 } else { skipped + 1 },
            last: if lines.is_empty() {
                0
            } else {
                skipped + lines.len()
            },
            lines,
            is_unsorted: sort.is_none(),
            event: self.open.last_event(self.table),
        }
    }

    fn head(&self, schema: &TableSchema, id: ColumnId, sort: Option<Sort>) -> Head {
        let column = schema.column(id);
        let order = sort.filter(|sort| sort.column == id);
        let next = match order {
            Some(sort) if !sort.is_descending => format!("-{}", column.name),
            _ => column.name.to_string(),
        };
        Head {
            name: column.name.to_string(),
            kind: column.column_type.english(),
            href: self.params.with("sort", &next),
            order: match order {
                None => "none",
                Some(sort) if sort.is_descending => "descending",
                Some(_) => "ascending",
            },
        }
    }

    /// By name, if the table is not too large to be sorted for everybody.
    fn natural_order(&self, total: usize) -> Option<Sort> {
        (total <= SORTED_ROWS_MAX).then(|| Sort {
            column: self
                .open
                .naming
                .column(self.table)
                .unwrap_or(ColumnId::UUID),
            is_descending: false,
        })
    }

    /// The columns of a page whose viewer chooses none: the one that names rows, then those that
    /// have values on this page.
    fn columns(&self, contents: Contents<'_>, uuids: &[Uuid]) -> Vec<ColumnId> {
        let schema = self.open.schema.table(self.table);
        let naming = self.open.naming.column(self.table);
        let has_values = |id: ColumnId, column_type: &ColumnType| {
            let mut rows = uuids.iter();
            rows.any(|uuid| !contents.value(*uuid, id).is_default(column_type))
        };
        let is_late = |name: &str| matches!(name, "external_ids" | "other_config" | "options");
        let others = |late: bool| {
            schema.iter().filter_map(move |(id, column)| {
                let is_wanted = Some(id) != naming && is_late(&column.name) == late;
                (is_wanted && has_values(id, &column.column_type)).then_some(id)
            })
        };
        let mut columns: Vec<ColumnId> = naming
            .into_iter()
            .chain(others(false))
            .chain(others(true))
            .take(COLUMNS_MAX)
            .collect();
        if columns.is_empty() {
            columns.extend(schema.iter().map(|(id, _)| id).take(COLUMNS_MAX));
        }
        columns
    }
}

/// The forms of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    Json,
}

/// The rows that the filter selects as a file.
pub(crate) fn file(
    database: &Database,
    open: &Open,
    table: TableId,
    params: &Params,
    form: Form,
) -> Response {
    if !open.look(table) {
        return reply::text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the rows have not arrived\n",
        );
    }
    let trouble = open.trouble();
    if !trouble.is_empty() {
        return frame::not_current(&trouble);
    }
    let schema = open.schema.table(table);
    let past = match params.get("at").trim() {
        "" => None,
        moment => match past(open, schema, moment) {
            Ok(past) => Some(past),
            Err(failure) => {
                let text = format!("{}\n", failure.text());
                return reply::text(failure.status(StatusCode::BAD_REQUEST), &text);
            }
        },
    };
    let view = View {
        name: &database.source.name,
        open,
        table,
        params,
        past: past.as_ref(),
    };
    let made = Choices::of(schema, params).and_then(|choices| {
        let rows = open.client.read(|idl| view.contents(idl).len());
        let sort = choices.sort.or_else(|| view.natural_order(rows));
        let key = view.key(&choices.filter, sort);
        let write = |idl: &Idl, page: &Page| {
            if !page.is_ready {
                return None;
            }
            let rows = &page.uuids[..];
            let contents = view.contents(idl);
            let columns: Vec<ColumnId> = match choices.columns.is_empty() {
                true => schema.iter().map(|(id, _)| id).collect(),
                false => choices.columns.clone(),
            };
            let (bytes, written) = match form {
                Form::Csv => csv(contents, schema, rows, &columns),
                Form::Json => json(contents, schema, rows, &columns),
            };
            let least = if page.is_counted { "" } else { "at least " };
            Some((bytes, format!("{written} of {least}{}", page.selected)))
        };
        let Some(past) = &past else {
            return open.with_order(&key, &(0..FILE_ROWS_MAX), write);
        };
        let filter = |idl: &Idl| filter::parse(idl, &open.naming, table, &choices.filter);
        let filter = open.client.read(filter)?;
        let page = orders::of_past(
            Contents::Then(past),
            filter.as_ref(),
            sort,
            0..FILE_ROWS_MAX,
        );
        Ok(open.client.read(|idl| write(idl, &page)))
    });
    let (mut response, rows) = match (made, form) {
        (Err(error), _) => return reply::text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
        (Ok(None), _) => {
            return reply::text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the rows are being put in order: ask again in a moment\n",
            );
        }
        (Ok(Some((bytes, rows))), Form::Csv) => {
            let name = format!("{}.csv", schema.name);
            (reply::file(&name, "text/csv; charset=utf-8", bytes), rows)
        }
        (Ok(Some((bytes, rows))), Form::Json) => {
            let name = format!("{}.json", schema.name);
            (reply::file(&name, "application/json", bytes), rows)
        }
    };
    if let Ok(rows) = HeaderValue::from_str(&rows) {
        response.headers_mut().insert(ROWS_HEADER, rows);
    }
    response
}

/// The rows as CSV, and their number.
fn csv(
    contents: Contents<'_>,
    schema: &TableSchema,
    rows: &[Uuid],
    columns: &[ColumnId],
) -> (Vec<u8>, usize) {
    let columns: Vec<ColumnId> = columns
        .iter()
        .copied()
        .filter(|id| !id.is_standard())
        .collect();
    let mut out = String::from("_uuid");
    for id in &columns {
        out.push(',');
        field(&mut out, &schema.column(*id).name);
    }
    let mut written = 0;
    for uuid in rows {
        if out.len() > FILE_BYTES_MAX {
            break;
        }
        written += 1;
        out.push_str("\r\n");
        out.push_str(&uuid.to_string());
        for id in &columns {
            let mut text = String::new();
            let column_type = &schema.column(*id).column_type;
            let value = contents.value(*uuid, *id);
            corvid::data::text::write_datum_bare(&mut text, &value, column_type);
            out.push(',');
            field(&mut out, &text);
        }
    }
    out.push_str("\r\n");
    (out.into_bytes(), written)
}

/// Appends a field of RFC 4180. A text that a spreadsheet would take for a formula gets an
/// apostrophe.
fn field(out: &mut String, text: &str) {
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if !is_formula && !text.contains(['"', ',', '\r', '\n']) {
        out.push_str(text);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

/// The rows as JSON, and their number.
fn json(
    contents: Contents<'_>,
    schema: &TableSchema,
    rows: &[Uuid],
    columns: &[ColumnId],
) -> (Vec<u8>, usize) {
    let mut written = 0;
    let mut out = b"[".to_vec();
    for (index, uuid) in rows.iter().enumerate() {
        if out.len() > FILE_BYTES_MAX {
            break;
        }
        out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        written += 1;
        row_json(contents, schema, *uuid, columns).write(&mut out);
    }
    out.extend_from_slice(b"\n]\n");
    (out, written)
}

/// A row as JSON in the notation of the protocol.
pub(crate) fn row_json(
    contents: Contents<'_>,
    schema: &TableSchema,
    uuid: Uuid,
    columns: &[ColumnId],
) -> Value {
    let mut object = Object::new();
    let id = vec![Value::string("uuid"), Value::string(uuid.to_string())];
    object.insert("_uuid".into(), Value::Array(id));
    for id in columns.iter().filter(|id| !id.is_standard()) {
        let column = schema.column(*id);
        let value = contents
            .value(uuid, *id)
            .to_json(column.column_type.is_map());
        object.insert(column.name.as_str().into(), value);
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_csv_are_quoted_and_no_formulas() {
        let shown = |text: &str| {
            let mut out = String::new();
            field(&mut out, text);
            out
        };
        assert_eq!(shown("br-int"), "br-int");
        assert_eq!(shown("-5"), "-5");
        assert_eq!(shown("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(shown("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }
}
