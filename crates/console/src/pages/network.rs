//! The picture of what a database describes: its network, or its tables and their references. Drawn
//! by `corvid-picture` from the replica; the tables that a picture needs are looked at meanwhile.

use std::collections::BTreeSet;

use askama::Template;
use axum::response::Response;
use corvid::data::TableId;
use corvid::{Column, Idl};
use corvid_picture::{
    Graph, Id, Interpretation, Picture, Tables, Target, Texts, View, difference, interpretations,
    path, search,
};

use crate::database::contents::Contents;
use crate::database::{Database, Open};
use crate::pages::frame::Frame;
use crate::pages::params::Params;
use crate::pages::tables;
use crate::web::{App, reply};

/// The number of nodes that a search marks.
const FOUND_MAX: usize = 40;

/// Steps around a node that the picture is limited to.
const DEPTH: usize = 1;

/// A table with more rows is left out of pictures.
const ROWS_MAX: u64 = 200_000;

#[derive(Template)]
#[template(path = "network.html")]
struct Network {
    frame: Frame,
    title: String,
    find: String,
    from: String,
    to: String,
    before: String,
    /// The names of nodes, for completion.
    names: Vec<String>,
    /// The picture is limited to a part.
    is_part: bool,
    trouble: String,
    picture: String,
    address: String,
    events: String,
}

/// The picture alone.
#[derive(Template)]
#[template(path = "network_part.html")]
struct Part {
    summary: String,
    svg: String,
    found: Vec<(String, String)>,
}

/// The number of names that are offered for completion.
const NAMES_MAX: usize = 3000;

/// Whether the database has a picture of its own, which is its first page then.
pub(crate) fn is_known(open: &Open) -> bool {
    interpretations::of(&open.schema.name).is_some()
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let status = database.status.read();
    let counts = tables::counts(open, status.as_deref());
    let known = interpretations::of(&open.schema.name);
    let wanted = known
        .map(|known| needed(open, known, &counts))
        .unwrap_or_default();
    // All of them arrive together.
    for table in &wanted {
        open.begin_look(*table);
    }
    let have_arrived = wanted.iter().all(|table| open.look(*table));
    let graph = match known {
        Some(known) => (known.read)(&open.client.read(|idl| now(idl, open, known, &wanted))),
        None => {
            let mut of_counts = Tables::new();
            for ((_, table), rows) in open.schema.iter().zip(&counts) {
                let rows = rows.and_then(|rows| usize::try_from(rows).ok());
                of_counts.set_count(&table.name, rows.unwrap_or_default());
            }
            interpretations::any::read(&open.schema, &of_counts)
        }
    };
    let moment = params.get("before").trim();
    let (graph, mut trouble) = match (known, moment) {
        (Some(known), moment) if !moment.is_empty() => match then(open, known, &wanted, moment) {
            Ok(before) => (
                difference::between(&(known.read)(&before), &graph),
                String::new(),
            ),
            Err(error) => (graph, format!("{moment}: {error}")),
        },
        _ => (graph, String::new()),
    };
    if !have_arrived {
        trouble = "The rows are still arriving: read the page again in a moment.".to_owned();
    }
    let (view, found) = match view(&graph, params) {
        Ok(view) => view,
        Err(error) => {
            trouble = error;
            (View::default(), Vec::new())
        }
    };
    let name = &database.source.name;
    let title = known.map_or("Tables and references", |known| known.title);
    let links = |target: Target<'_>| {
        let table = |table: &str| format!("/db/{name}/table/{table}");
        Some(match target {
            Target::Row(row) => format!("{}/row/{}", table(row.table), row.uuid),
            Target::Table(other) => table(other),
            Target::Around(id) => params.with("around", &id.to_string()),
        })
    };
    let picture = Picture::new(&graph, &view, None);
    let texts = Texts {
        links: Some(&links),
        ..Texts::new(title)
    };
    let is_part = view.focus.is_some() || view.only.is_some();
    let part = Part {
        summary: picture.description(&graph),
        svg: picture.svg(&graph, &texts),
        found: found
            .iter()
            .map(|node| {
                let node = &graph.nodes[*node];
                let text = format!("{} {}", node.kind.word(), node.label);
                (params.with("around", &node.id.to_string()), text)
            })
            .collect(),
    };
    if !params.get("part").is_empty() {
        return reply::page(&part);
    }
    let names: BTreeSet<&str> = graph.nodes.iter().map(|node| node.label.as_str()).collect();
    reply::page(&Network {
        frame: Frame::of(app, database, "network", title),
        title: title.to_owned(),
        find: params.get("find").to_owned(),
        from: params.get("from").to_owned(),
        to: params.get("to").to_owned(),
        before: moment.to_owned(),
        names: names
            .into_iter()
            .take(NAMES_MAX)
            .map(str::to_owned)
            .collect(),
        is_part,
        trouble,
        picture: part.render().unwrap_or_default(),
        address: format!("/db/{name}/network{}", params.with("part", "1")),
        events: match (known, moment) {
            (Some(_), "") => format!("/db/{name}/network/events"),
            _ => String::new(),
        },
    })
}

/// The tables that the page of a database needs, and that are not too large.
pub(crate) fn watched(database: &Database, open: &Open) -> Vec<TableId> {
    let status = database.status.read();
    let counts = tables::counts(open, status.as_deref());
    let known = interpretations::of(&open.schema.name);
    known
        .map(|known| needed(open, known, &counts))
        .unwrap_or_default()
}

fn needed(open: &Open, known: &Interpretation, counts: &[Option<u64>]) -> Vec<TableId> {
    let tables = known
        .tables
        .iter()
        .filter_map(|(name, _)| open.schema.table_id(name));
    tables
        .filter(|table| counts[usize::from(table.0)].is_none_or(|rows| rows <= ROWS_MAX))
        .collect()
}

/// The names of the columns of a table that a picture needs.
fn columns(known: &Interpretation, table: &str) -> &'static [&'static str] {
    let found = known.tables.iter().find(|(name, _)| *name == table);
    found.map_or(&[], |(_, columns)| *columns)
}

/// The rows of the replica that a picture needs.
fn now(idl: &Idl, open: &Open, known: &Interpretation, wanted: &[TableId]) -> Tables {
    let mut filled = Tables::new();
    for table in wanted {
        let schema = open.schema.table(*table);
        let columns: Vec<(&str, Column)> = columns(known, &schema.name)
            .iter()
            .filter_map(|name| {
                let id = schema.column_id(name)?;
                Some((*name, Column { table: *table, id }))
            })
            .collect();
        for row in idl.rows(*table) {
            let cells = columns
                .iter()
                .map(|(name, column)| (*name, idl.read(row, *column).unwrap_or_default()));
            filled.set(&schema.name, row.uuid, cells);
        }
    }
    filled
}

/// The rows of an earlier moment that a picture needs.
fn then(
    open: &Open,
    known: &Interpretation,
    wanted: &[TableId],
    moment: &str,
) -> Result<Tables, String> {
    let mut filled = Tables::new();
    for table in wanted {
        let schema = open.schema.table(*table);
        let past = open.past(schema, moment)?;
        let contents = Contents::Then(&past);
        for uuid in contents.uuids() {
            let cells = columns(known, &schema.name).iter().filter_map(|name| {
                let id = schema.column_id(name)?;
                Some((*name, contents.value(uuid, id)))
            });
            filled.set(&schema.name, uuid, cells);
        }
    }
    Ok(filled)
}

/// The part that the viewer asks for, and the nodes that a search has found.
fn view(graph: &Graph, params: &Params) -> Result<(View, Vec<usize>), String> {
    let mut view = View::default();
    let mut found = Vec::new();
    let find = params.get("find");
    if !find.is_empty() {
        found = search(graph, find, FOUND_MAX);
        if found.is_empty() {
            return Err(format!("Nothing is named \"{find}\"."));
        }
        view.marked = found
            .iter()
            .map(|node| graph.nodes[*node].id.clone())
            .collect();
    }
    let around = params.get("around");
    if !around.is_empty() {
        let id = Id::parse(around).filter(|id| graph.find(id).is_some());
        let id = id.ok_or_else(|| format!("There is no \"{around}\" any more."))?;
        view.depth = params.get("depth").parse().unwrap_or(DEPTH).clamp(1, 5);
        view.focus = Some(id);
    }
    let (from, to) = (params.get("from"), params.get("to"));
    if !from.is_empty() && !to.is_empty() {
        let end = |name: &str| {
            let node = search(graph, name, 1).first().copied();
            let node = node.ok_or_else(|| format!("Nothing is named \"{name}\"."))?;
            Ok::<_, String>(graph.nodes[node].id.clone())
        };
        let found = path::between(graph, &end(from)?, &end(to)?);
        let path = found.ok_or_else(|| format!("No path leads from \"{from}\" to \"{to}\"."))?;
        view.only = Some(path.ids(graph));
        view.marked = path.ids(graph);
    }
    Ok((view, found))
}
