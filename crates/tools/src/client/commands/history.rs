//! `history`, `log` and `diff`: the history of a served database, in the form of `ovsdb-tool`.

use bstr::BString;
use corvid_json::{Object, Value};
use corvid_shell::output::Output;

use super::Invocation;
use crate::client::past::{Past, moment};
use crate::client::session::Session;
use crate::failure::Failure;
use crate::history::Printer;

/// Lists the files.
pub(crate) fn history(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let question = Question::new("files");
    print(session, invocation, question, "ovsdb-tool history FILE")
}

/// Prints the commits of a range, oldest first.
pub(crate) fn log(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let options = &invocation.settings.history;
    let mut question = Question::new("log").filtered(invocation);
    question.text("client", options.filter.client.as_deref());
    for (name, text) in [("since", &options.since), ("until", &options.until)] {
        question.set(name, text.as_deref().map(moment).transpose()?);
    }
    let count = options.count.and_then(|count| i64::try_from(count).ok());
    question.set("newest", count.map(Value::Integer));
    print(session, invocation, question, "ovsdb-tool log FILE")
}

/// Prints the difference between two moments.
pub(crate) fn diff(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let mut question = Question::new("diff").filtered(invocation);
    for (name, text) in ["from", "to"].into_iter().zip(invocation.args) {
        question.set(name, Some(moment(text)?));
    }
    print(
        session,
        invocation,
        question,
        "ovsdb-tool diff FILE FROM TO",
    )
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
    past.read(question.0, &mut |line| Ok(printer.line(line)?))
}

/// The object that says what to read.
struct Question(Object);

impl Question {
    fn new(read: &str) -> Question {
        Question(Object::from([(BString::from("read"), Value::string(read))]))
    }

    /// Adds `--table`, `--row` and `--column`.
    fn filtered(mut self, invocation: &Invocation<'_>) -> Question {
        let options = &invocation.settings.history;
        self.text("table", options.filter.table.as_deref());
        self.text("row", options.row.as_deref());
        self.text("column", options.filter.column.as_deref());
        self
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        self.set(name, text.map(Value::string));
    }

    fn set(&mut self, name: &str, value: Option<Value>) {
        self.0
            .extend(value.map(|value| (BString::from(name), value)));
    }
}
