//! Changes: those that arrive now, of the tables that somebody looks at, and the history that the
//! server keeps, if it does.

use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::response::Response;
use corvid::HistoryQuestion;
use corvid::data::TableId;
use corvid::json::Value;
use corvid_shell::date::utc_text;
use hyper::StatusCode;

use crate::database::cell::cut;
use crate::database::changes::TableChange;
use crate::database::naming::NAME_LETTERS_MAX;
use crate::database::{Database, Open};
use crate::pages::frame::Frame;
use crate::pages::grid::{counted, shown};
use crate::pages::params::Params;
use crate::pages::tables;
use crate::web::{App, reply};

/// A table with more rows is not monitored only because somebody reads the page.
const WATCHED_ROWS_MAX: u64 = 10_000;

/// The number of commits of the history.
const COMMITS: usize = 50;

/// The number of rows of a commit that are shown.
const CHANGES_MAX: usize = 50;

/// The number of letters of a comment, or of what a client is.
const COMMENT_LETTERS_MAX: usize = 1000;

/// How long the server may read its history for one page.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "changes.html")]
struct Changes {
    frame: Frame,
    watched: Vec<String>,
    /// Names of all tables, for the filter.
    names: Vec<String>,
    table: String,
    client: String,
    since: String,
    row: String,
    from: String,
    to: String,
    recent: String,
    past: History,
    events: String,
}

/// The latest changes as lines of a table.
#[derive(Template)]
#[template(path = "recent.html")]
pub(crate) struct Lines {
    database: String,
    lines: Vec<Line>,
}

struct Line {
    at: String,
    table: String,
    kind: &'static str,
    uuid: String,
    label: String,
    columns: Vec<(String, String, String)>,
}

/// The history that the server keeps.
#[derive(Template)]
#[template(path = "past.html")]
pub(crate) struct History {
    database: String,
    events: Vec<Commit>,
    trouble: String,
    /// That of the page: it has no history if the server is not reached.
    status: StatusCode,
}

/// A commit, or another event of the history.
struct Commit {
    at: String,
    id: String,
    client: String,
    comment: String,
    changes: Vec<Change>,
    /// The number of rows that are left out.
    more: usize,
}

struct Change {
    kind: String,
    table: String,
    uuid: String,
    label: String,
    columns: Vec<(String, String, String)>,
}

impl Lines {
    pub(crate) fn of<'c>(
        database: &str,
        open: &Open,
        changes: impl Iterator<Item = &'c TableChange>,
    ) -> Lines {
        let lines = changes.flat_map(|change| {
            let table = open.schema.table(change.table).name.to_string();
            let since = change.at.duration_since(SystemTime::UNIX_EPOCH);
            let at_ms = since.map(|since| since.as_millis()).unwrap_or_default();
            let at = utc_text(i64::try_from(at_ms).unwrap_or_default());
            let more = (change.more > 0).then(|| Line {
                at: at.clone(),
                table: table.clone(),
                kind: "",
                uuid: String::new(),
                label: counted(change.more, "more row"),
                columns: Vec::new(),
            });
            let rows = change.rows.iter().map(move |row| Line {
                at: at.clone(),
                table: table.clone(),
                kind: row.kind.word(),
                uuid: row.uuid.to_string(),
                label: row.label.clone(),
                columns: row.columns.clone(),
            });
            rows.chain(more).collect::<Vec<_>>()
        });
        Lines {
            database: database.to_owned(),
            lines: lines.collect(),
        }
    }
}

/// The tables that the page monitors: those that are known to be small.
pub(crate) fn watched(database: &Database, open: &Open) -> Vec<TableId> {
    let status = database.status.read();
    let counts = tables::counts(open, status.as_deref());
    let counted = (0..).map(TableId).zip(counts);
    counted
        .filter(|(_, rows)| rows.is_some_and(|rows| rows <= WATCHED_ROWS_MAX))
        .map(|(table, _)| table)
        .collect()
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let name = &database.source.name;
    let watched = watched(database, open);
    for table in &watched {
        open.begin_look(*table);
    }
    let wanted = params.get("table");
    let recent = {
        let recent = open.recent();
        let changes = recent.iter().filter(|change| {
            wanted.is_empty() || open.schema.table(change.table).name.as_str() == wanted
        });
        Lines::of(name, open, changes)
    };
    let names = open.schema.iter().map(|(_, table)| table.name.to_string());
    let past = past(name, open, params);
    let page = Changes {
        frame: Frame::of(app, database, "changes", "Changes"),
        watched: watched
            .iter()
            .map(|table| open.schema.table(*table).name.to_string())
            .collect(),
        names: names.collect(),
        table: wanted.to_owned(),
        client: params.get("client").to_owned(),
        since: params.get("since").to_owned(),
        row: params.get("row").to_owned(),
        from: params.get("from").to_owned(),
        to: params.get("to").to_owned(),
        recent: recent.render().unwrap_or_default(),
        events: format!("/db/{name}/events"),
        past,
    };
    reply::page_with(page.past.status, &page)
}

/// The newest commits that the viewer asks for.
pub(crate) fn past(database: &str, open: &Open, params: &Params) -> History {
    let (mut question, names) = match params.get("from") {
        "" => (
            HistoryQuestion::log().newest(COMMITS),
            &["table", "row", "client", "since", "until"][..],
        ),
        from => (
            HistoryQuestion::diff(from, or_now(params.get("to"))),
            &["table", "row"][..],
        ),
    };
    for name in names {
        if !params.get(name).is_empty() {
            question = question.member(name, params.get(name));
        }
    }
    let mut history = History {
        database: database.to_owned(),
        events: Vec::new(),
        trouble: String::new(),
        status: StatusCode::OK,
    };
    // A refusal comes before the first line.
    let read = open.ask_history(|| {
        open.client
            .read_history(&question, Some(HISTORY_TIMEOUT), |line| {
                if let Ok(event) = Value::parse(line) {
                    history.add(&event, params);
                }
                ControlFlow::Continue(())
            })
    });
    history.events.reverse();
    if let Err(failure) = read {
        if history.events.is_empty() {
            history.status = failure.status(StatusCode::OK);
        }
        history.trouble = failure.text().to_owned();
    }
    history
}

impl History {
    /// Adds a line of the server: an event, more changes of the last one, or a row that differs
    /// between two moments.
    fn add(&mut self, line: &Value, params: &Params) {
        let is_continued = line.get("continued").and_then(Value::as_bool) == Some(true);
        let last = self.events.last_mut();
        match (line.get("op"), last) {
            (Some(_), Some(differences)) => differences.add(vec![change(line)]),
            (Some(_), None) => self.events.push(Commit {
                at: format!("{} to {}", params.get("from"), or_now(params.get("to"))),
                id: "differences".to_owned(),
                client: String::new(),
                comment: String::new(),
                changes: vec![change(line)],
                more: 0,
            }),
            (None, Some(last)) if is_continued => last.add(changes(line)),
            (None, _) => self.events.push(commit(line)),
        }
    }
}

impl Commit {
    /// Adds rows, as long as there is room.
    fn add(&mut self, changes: Vec<Change>) {
        let room = CHANGES_MAX.saturating_sub(self.changes.len());
        self.more += changes.len().saturating_sub(room);
        self.changes.extend(changes.into_iter().take(room));
    }
}

fn or_now(moment: &str) -> &str {
    match moment {
        "" => "HEAD",
        moment => moment,
    }
}

fn text(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
    text.to_owned()
}

fn commit(event: &Value) -> Commit {
    let client = event.get("client").map(|client| {
        let parts = ["client", "role", "peer"].map(|name| text(client, name));
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    });
    let kind = text(event, "event");
    let mut commit = Commit {
        at: event
            .get("date")
            .and_then(Value::as_integer)
            .map(utc_text)
            .unwrap_or_default(),
        id: match kind.as_str() {
            "commit" => text(event, "id"),
            _ => kind,
        },
        client: cut(&client.unwrap_or_default(), COMMENT_LETTERS_MAX),
        comment: cut(&text(event, "comment"), COMMENT_LETTERS_MAX),
        changes: Vec::new(),
        more: 0,
    };
    commit.add(changes(event));
    commit
}

fn changes(event: &Value) -> Vec<Change> {
    let changes = event.get("changes").and_then(Value::as_array);
    changes.unwrap_or_default().iter().map(change).collect()
}

fn change(change: &Value) -> Change {
    let columns = change.get("columns").and_then(Value::as_object);
    let columns = columns.into_iter().flatten().map(|(name, values)| {
        let side = |names: [&str; 2]| {
            let values = names.iter().filter_map(|name| values.get(name));
            let texts: Vec<String> = values.map(shown).collect();
            texts.join(" ")
        };
        (
            name.to_string(),
            side(["old", "removed"]),
            side(["new", "added"]),
        )
    });
    let (uuid, name) = (text(change, "row"), text(change, "name"));
    Change {
        kind: text(change, "op"),
        table: text(change, "table"),
        label: match name.is_empty() {
            true => uuid.chars().take(8).collect(),
            false => cut(&name, NAME_LETTERS_MAX),
        },
        uuid,
        columns: columns.collect(),
    }
}
