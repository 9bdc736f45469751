//! `history`, `log` and `diff`: the history of a served database, in the form of `ovsdb-tool`.

use corvid_session::history::Question;
use corvid_shell::output::Output;

use super::Invocation;
use crate::failure::Failure;
use crate::history::Printer;
use crate::past::{Past, moment};
use crate::session::Session;

/// Lists the files.
pub(crate) fn history(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let question = Question::files();
    print(session, invocation, question, "ovsdb-tool history FILE")
}

/// Prints the commits of a range, oldest first.
pub(crate) fn log(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let options = &invocation.settings.history;
    let mut question = filtered(Question::log(), invocation);
    if let Some(text) = &options.filter.client {
        question = question.client(text);
    }
    if let Some(since) = &options.since {
        question = question.since(&moment(since)?);
    }
    if let Some(until) = &options.until {
        question = question.until(&moment(until)?);
    }
    if let Some(count) = options.count {
        question = question.newest(count);
    }
    print(session, invocation, question, "ovsdb-tool log FILE")
}

/// Prints the difference between two moments.
pub(crate) fn diff(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let [from, to] = invocation.args else {
        return Err(Failure::new("FROM TO expected"));
    };
    let question = Question::diff(&moment(from)?, &moment(to)?);
    let question = filtered(question, invocation);
    let instead = "ovsdb-tool diff FILE FROM TO";
    print(session, invocation, question, instead)
}

/// Adds `--table`, `--row` and `--column`.
fn filtered(mut question: Question, invocation: &Invocation<'_>) -> Question {
    let options = &invocation.settings.history;
    if let Some(table) = &options.filter.table {
        question = question.table(table);
    }
    if let Some(row) = &options.row {
        question = question.row(row);
    }
    if let Some(column) = &options.filter.column {
        question = question.column(column);
    }
    question
}

/// Prints the lines that the server has for a question.
fn print(
    session: &mut Session,
    invocation: &Invocation<'_>,
    question: Question,
    instead: &'static str,
) -> Result<(), Failure> {
    let mut past = Past::of(session, &invocation.database, instead)?;
    let mut printer = Printer::new(Output, invocation.settings.history.json);
    past.read(question, &mut |line| Ok(printer.line(line)?))
}
