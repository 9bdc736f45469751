//! The frame around the contents of each page: databases, the state of the connection, pages of the
//! database.

use askama::Template;
use axum::response::Response;
use hyper::StatusCode;

use crate::database::{Database, Open, State};
use crate::web::{App, reply};

/// The frame of a page.
pub(crate) struct Frame {
    /// The title.
    pub(crate) title: String,
    /// The names of all databases.
    pub(crate) databases: Vec<String>,
    /// The name of the database of this page; empty on pages without one.
    pub(crate) database: String,
    /// The page of the database.
    pub(crate) section: &'static str,
    /// Why the contents may be old; empty if they are current.
    pub(crate) trouble: String,
}

/// The pages of a database: address and title.
pub(crate) const SECTIONS: [(&str, &str); 5] = [
    ("network", "Network"),
    ("tables", "Tables"),
    ("changes", "Changes"),
    ("servers", "Servers"),
    ("query", "Query"),
];

impl Frame {
    /// The frame of a page without a database.
    pub(crate) fn new(app: &App, title: &str) -> Frame {
        Frame {
            title: title.to_owned(),
            databases: app
                .databases
                .iter()
                .map(|database| database.source.name.clone())
                .collect(),
            database: String::new(),
            section: "",
            trouble: String::new(),
        }
    }

    /// The frame of a page of a database.
    pub(crate) fn of(app: &App, database: &Database, section: &'static str, title: &str) -> Frame {
        let trouble = match database.state() {
            State::Unreached(why) => why,
            State::Open(open) => open.trouble(),
        };
        Frame {
            database: database.source.name.clone(),
            section,
            trouble,
            ..Frame::new(app, title)
        }
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let current = self.section;
        SECTIONS
            .into_iter()
            .map(move |(address, title)| (address, title, address == current))
    }
}

/// A page that says only what is wrong.
#[derive(Template)]
#[template(path = "problem.html")]
struct Problem {
    frame: Frame,
    text: String,
}

/// The page for what does not exist.
pub(crate) fn missing(app: &App, text: &str) -> Response {
    let page = Problem {
        frame: Frame::new(app, "Not found"),
        text: text.to_owned(),
    };
    reply::page_with(StatusCode::NOT_FOUND, &page)
}

/// The page of a database that has not told its schema yet.
pub(crate) fn unreached(app: &App, database: &Database, why: &str) -> Response {
    let page = Problem {
        frame: Frame::of(app, database, "", &database.source.name),
        text: format!("{}: {why}", database.source.remotes),
    };
    reply::page_with(StatusCode::SERVICE_UNAVAILABLE, &page)
}

/// The text of a page whose rows have not arrived.
pub(crate) const ARRIVING: &str = "The rows are still arriving: read the page again in a moment.";

/// The status of a page of rows. It is not an error if they are still on their way.
pub(crate) fn status_of_rows(open: &Open, have_arrived: bool) -> StatusCode {
    match have_arrived || open.trouble().is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The page of what cannot be known to exist until its rows have arrived.
pub(crate) fn arriving(app: &App, database: &Database) -> Response {
    let page = Problem {
        frame: Frame::of(app, database, "", &database.source.name),
        text: ARRIVING.to_owned(),
    };
    reply::page_with(StatusCode::SERVICE_UNAVAILABLE, &page)
}

/// The answer instead of a file whose contents would be old, which a file cannot say.
pub(crate) fn not_current(trouble: &str) -> Response {
    let text = format!("not current: {trouble}\n");
    reply::text(StatusCode::SERVICE_UNAVAILABLE, &text)
}

/// The page that asks for the token.
#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    frame: Frame,
    pub(crate) trouble: String,
    /// The page that was asked for.
    to: String,
}

/// The page that asks for the token, and leads to a page of this console then. It tells nothing
/// about databases.
pub(crate) fn login(app: &App, trouble: &str, to: &str) -> Response {
    let mut frame = Frame::new(app, "Token");
    frame.databases.clear();
    let page = Login {
        frame,
        trouble: trouble.to_owned(),
        to: to.to_owned(),
    };
    match trouble {
        "" => reply::page(&page),
        _ => reply::page_with(StatusCode::UNAUTHORIZED, &page),
    }
}
