//! The picture of what a database describes: its network, or its tables and their references. Drawn
//! by `corvid-picture` from the replica; the tables that a picture needs are looked at meanwhile.
//!
//! Pictures of the present are shared by their viewers ([`crate::database::pictures`]). Those of
//! earlier moments, and differences between moments, are drawn for each request.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use askama::Template;
use axum::response::Response;
use bytes::Bytes;
use corvid::data::TableId;
use corvid_picture::{
    Graph, Id, Interpretation, Part, Picture, Tables, Target, Texts, View, difference,
    interpretations, path, search,
};
use hyper::StatusCode;
use tokio::sync::broadcast;

use crate::database::contents::Contents;
use crate::database::looks::Lease;
use crate::database::naming::NAME_LETTERS_MAX;
use crate::database::{Database, Event, Open};
use crate::failure::Failure;
use crate::pages::frame::{self, Frame};
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
    at: String,
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
struct Canvas<'c> {
    version: u64,
    summary: &'c str,
    svg: String,
    found: &'c [(String, String)],
}

/// A picture of one version of the graph.
pub(crate) struct Drawn {
    /// The version.
    pub(crate) version: u64,
    graph: Arc<Graph>,
    /// The cards and links, and their places.
    pub(crate) picture: Picture,
    title: &'static str,
    /// The contents in sentences.
    pub(crate) summary: String,
    /// The nodes that a search has found: addresses and names.
    found: Vec<(String, String)>,
    /// Why the picture is not the one that was asked for.
    trouble: String,
    is_part: bool,
    params: Params,
    html: OnceLock<Bytes>,
}

/// The number of names that are offered for completion.
const NAMES_MAX: usize = 3000;

/// Whether the database has a picture of its own, which is its first page then.
pub(crate) fn is_known(open: &Open) -> bool {
    interpretations::of(&open.schema.name).is_some()
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let told = database.status.read();
    let counts = tables::counts(open, told.as_deref());
    let known = interpretations::of(&open.schema.name);
    let (before, at) = (params.get("before").trim(), params.get("at").trim());
    let mut trouble = String::new();
    let mut status = StatusCode::OK;
    let drawn = match known {
        Some(known) => {
            let wanted = needed(open, known, &counts);
            // All of them arrive together.
            for table in &wanted {
                open.begin_look(*table);
            }
            if !wanted.iter().all(|table| open.look(*table)) {
                trouble = frame::ARRIVING.to_owned();
                status = frame::status_of_rows(open, false);
            }
            let now = open.graph(known, &wanted);
            if before.is_empty() && at.is_empty() {
                let view = open.pictures.view(&viewed(params));
                view.current(open, now)
            } else {
                let past = past(open, known, &wanted, (before, at), &now.1);
                let (version, now) = now;
                let graph = match past {
                    Ok(graph) => Arc::new(graph),
                    Err(failure) => {
                        trouble = failure.text().to_owned();
                        status = failure.status(StatusCode::NOT_FOUND);
                        now
                    }
                };
                Arc::new(Drawn::new(open, (version, graph), &viewed(params), None))
            }
        }
        None => {
            let mut of_counts = Tables::new();
            for ((_, table), rows) in open.schema.iter().zip(&counts) {
                let rows = rows.and_then(|rows| usize::try_from(rows).ok());
                of_counts.set_count(&table.name, rows.unwrap_or_default());
            }
            let graph = interpretations::any::read(&open.schema, &of_counts);
            let view = viewed(params);
            Arc::new(Drawn::new(open, (0, Arc::new(graph)), &view, None))
        }
    };
    if !params.get("part").is_empty() {
        return reply::of(status, "text/html; charset=utf-8", drawn.html(open.name()));
    }
    let labels = drawn.graph.nodes.iter().map(|node| node.label.as_str());
    // A longer one is found by its beginning.
    let labels = labels.filter(|label| label.len() <= NAME_LETTERS_MAX);
    let names: BTreeSet<&str> = labels.collect();
    let name = &database.source.name;
    let query = viewed(params).with("part", "");
    let is_live = known.is_some() && before.is_empty() && at.is_empty();
    let page = Network {
        frame: Frame::of(app, database, "network", drawn.title),
        title: drawn.title.to_owned(),
        find: params.get("find").to_owned(),
        from: params.get("from").to_owned(),
        to: params.get("to").to_owned(),
        before: before.to_owned(),
        at: at.to_owned(),
        names: names
            .into_iter()
            .take(NAMES_MAX)
            .map(str::to_owned)
            .collect(),
        is_part: drawn.is_part,
        trouble: match trouble.is_empty() {
            true => drawn.trouble.clone(),
            false => trouble,
        },
        picture: String::from_utf8_lossy(&drawn.html(open.name())).into_owned(),
        address: format!("/db/{name}/network{}", params.with("part", "1")),
        events: match is_live {
            true => format!("/db/{name}/network/events{query}"),
            false => String::new(),
        },
    };
    reply::page_with(status, &page)
}

/// The parameters that the contents of a picture depend on.
fn viewed(params: &Params) -> Params {
    params.only(&["find", "from", "to", "around", "depth", "before", "at"])
}

/// The events of a picture, with the version that they begin after.
pub(crate) fn subscribe(
    database: &Database,
    open: &Arc<Open>,
    params: &Params,
) -> (broadcast::Receiver<Event>, u64, Vec<Lease>) {
    let wanted = watched(database, open);
    let leases = open.leases(&wanted);
    match interpretations::of(&open.schema.name) {
        Some(known) => {
            let view = open.pictures.view(&viewed(params));
            let (events, version) = view.subscribe(open, open.graph(known, &wanted));
            (events, version, leases)
        }
        None => (open.subscribe(None), 0, leases),
    }
}

/// The graph of a moment, or the difference between two; an empty text is now.
fn past(
    open: &Open,
    known: &Interpretation,
    wanted: &[TableId],
    (before, at): (&str, &str),
    now: &Graph,
) -> Result<Graph, Failure> {
    let read = |moment: &str| {
        let tables = then(open, known, wanted, moment);
        let tables = tables.map_err(|failure| failure.of(moment))?;
        Ok::<_, Failure>((known.read)(&tables))
    };
    Ok(match (before, at) {
        ("", at) => read(at)?,
        (before, "") => difference::between(&read(before)?, now),
        (before, at) => difference::between(&read(before)?, &read(at)?),
    })
}

impl Drawn {
    /// Draws the part of a graph that a viewer asks for. `before` is the picture that this one
    /// replaces.
    pub(crate) fn new(
        open: &Open,
        (version, graph): (u64, Arc<Graph>),
        params: &Params,
        before: Option<&Picture>,
    ) -> Drawn {
        let known = interpretations::of(&open.schema.name);
        let title = known.map_or("Tables and references", |known| known.title);
        let (view, found, trouble) = match view(&graph, params) {
            Ok((view, found)) => (view, found, String::new()),
            Err(error) => (View::default(), Vec::new(), error),
        };
        let picture = Picture::new(&graph, &view, before);
        let found = found.iter().map(|node| {
            let node = &graph.nodes[*node];
            let text = format!("{} {}", node.kind.word(), node.label);
            (params.with("around", &node.id.to_string()), text)
        });
        Drawn {
            version,
            title,
            summary: picture.description(&graph),
            found: found.collect(),
            trouble,
            is_part: view.focus.is_some() || view.only.is_some(),
            params: params.clone(),
            html: OnceLock::new(),
            picture,
            graph,
        }
    }

    /// Calls `write` with the texts of the picture.
    fn with_texts<T>(&self, database: &str, write: impl FnOnce(&Texts<'_>) -> T) -> T {
        let links = |target: Target<'_>| {
            let table = |table: &str| format!("/db/{database}/table/{table}");
            Some(match target {
                Target::Row(row) => format!("{}/row/{}", table(row.table), row.uuid),
                Target::Table(other) => table(other),
                Target::Around(id) => self.params.with("around", &id.to_string()),
            })
        };
        write(&Texts {
            links: Some(&links),
            ..Texts::new(self.title)
        })
    }

    /// The links, then the cards.
    pub(crate) fn parts(&self, database: &str) -> Vec<Part> {
        self.with_texts(database, |texts| self.picture.parts(&self.graph, texts))
    }

    /// The picture as HTML, which is made once.
    fn html(&self, database: &str) -> Bytes {
        let made = self.html.get_or_init(|| {
            let svg = self.with_texts(database, |texts| self.picture.svg(&self.graph, texts));
            let canvas = Canvas {
                version: self.version,
                summary: &self.summary,
                svg,
                found: &self.found,
            };
            canvas.render().unwrap_or_default().into()
        });
        made.clone()
    }
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

/// The rows of an earlier moment that a picture needs.
fn then(
    open: &Open,
    known: &Interpretation,
    wanted: &[TableId],
    moment: &str,
) -> Result<Tables, Failure> {
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
