//! The rows of a table: those of the replica, or those of an earlier moment.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use corvid::data::{Atom, ColumnId, Datum, TableId, TableSchema, Uuid};
use corvid::json::{Object, Value};
use corvid::{Column, Idl, RowId};

use super::Open;
use crate::failure::Failure;
use crate::refusal;

/// How long the server may take to read the contents of a moment.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The pause before a question about history is asked again.
const TURN: Duration = Duration::from_millis(100);

/// The rows of a table.
#[derive(Clone, Copy)]
pub(crate) enum Contents<'c> {
    /// Those of the replica.
    Now(&'c Idl, TableId),
    /// Those of an earlier moment.
    Then(&'c Past),
}

/// The rows of a table at a moment, each with all columns in the order of the schema.
#[derive(Default)]
pub(crate) struct Past(BTreeMap<Uuid, Vec<Datum>>);

/// The tag of a refusal by a server that has no room for the question now.
const NO_ROOM: &str = "resources exhausted";

/// The error of a question about history, for people: of a refusal its details alone.
fn of_history(error: &corvid::Error) -> Failure {
    let text = refused(error, "details").unwrap_or_else(|| error.to_string());
    let is_later = match error {
        corvid::Error::HistoryRefused(_) => refused(error, "error").as_deref() == Some(NO_ROOM),
        corvid::Error::TimedOut(_)
        | corvid::Error::Dead(_)
        | corvid::Error::Io(_)
        | corvid::Error::HistoryLost => true,
        _ => false,
    };
    match is_later {
        true => Failure::Unreached(text),
        false => Failure::Refused(text),
    }
}

/// A text in the server's refusal of a question about history.
fn refused(error: &corvid::Error, member: &str) -> Option<String> {
    let corvid::Error::HistoryRefused(json) = error else {
        return None;
    };
    let refusal = Value::parse(json.as_bytes()).ok()?;
    refusal.get(member)?.as_str().map(str::to_owned)
}

/// Asks a question while the server has no room for it, for a while.
fn in_turn<T>(mut ask: impl FnMut() -> Result<T, corvid::Error>) -> Result<T, corvid::Error> {
    let began = Instant::now();
    loop {
        let outcome = ask();
        let error = outcome.as_ref().err();
        let tag = error.and_then(|error| refused(error, "error"));
        if tag.as_deref() != Some(NO_ROOM) || began.elapsed() >= TIMEOUT {
            return outcome;
        }
        thread::sleep(TURN);
    }
}

impl Contents<'_> {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Contents::Now(idl, table) => idl.row_count(*table),
            Contents::Then(past) => past.0.len(),
        }
    }

    /// The rows, in no particular order.
    pub(crate) fn uuids(&self) -> Box<dyn Iterator<Item = Uuid> + '_> {
        match self {
            Contents::Now(idl, table) => Box::new(idl.rows(*table).map(|row| row.uuid)),
            Contents::Then(past) => Box::new(past.0.keys().copied()),
        }
    }

    /// The value of a column.
    pub(crate) fn value(&self, uuid: Uuid, id: ColumnId) -> Datum {
        if id == ColumnId::UUID {
            return Datum::one(Atom::Uuid(uuid));
        }
        match self {
            Contents::Now(idl, table) => {
                let table = *table;
                let value = idl.read(RowId { table, uuid }, Column { table, id });
                value.unwrap_or_default()
            }
            Contents::Then(past) => {
                let value = past.0.get(&uuid).and_then(|row| row.get(usize::from(id.0)));
                value.cloned().unwrap_or_default()
            }
        }
    }
}

impl Open {
    /// Asks a question about history. If the server has no room for it now, it is asked again for
    /// a while. All viewers of a database share one session, so the questions of two viewers meet
    /// there: a question that would wait for another of the same session is refused.
    ///
    /// # Errors
    /// The server is not reached, or refuses.
    pub(crate) fn ask_history<T>(
        &self,
        ask: impl FnMut() -> Result<T, corvid::Error>,
    ) -> Result<T, Failure> {
        // The client would wait for a server that is down, for as long as for an answer.
        self.reach()?;
        in_turn(ask).map_err(|error| of_history(&error))
    }

    /// The rows of a table at a moment, from the server's history.
    ///
    /// # Errors
    /// The server is not reached or keeps no history, or there is no such moment.
    pub(crate) fn past(&self, table: &TableSchema, moment: &str) -> Result<Past, Failure> {
        let mut select = Object::new();
        select.insert("op".into(), Value::string("select"));
        select.insert("table".into(), Value::string(table.name.as_str()));
        select.insert("where".into(), Value::Array(Vec::new()));
        let operations = Value::Array(vec![Value::Object(select)]).to_string();
        let reply = self.ask_history(|| self.client.select_at(moment, &operations, Some(TIMEOUT)));
        let reply = Value::parse(&reply?);
        let results = reply.map_err(|error| format!("the reply is malformed: {error}"))?;
        let rows = results
            .as_array()
            .and_then(|results| results.first()?.get("rows"));
        let rows = rows.and_then(Value::as_array).ok_or_else(|| {
            let failure = refusal::of_results(&results);
            failure.unwrap_or_else(|| format!("the reply is malformed: {results}"))
        })?;
        let read = rows.iter().filter_map(|row| {
            let uuid = row.get("_uuid")?.as_array()?.get(1)?.as_str()?;
            let uuid = Uuid::parse(uuid.as_bytes())?;
            // The schema may have been another one then: what does not fit is empty.
            let columns = table.iter().map(|(_, column)| {
                let value = row.get(&column.name)?;
                Datum::from_json(value, &column.column_type).ok()
            });
            Some((uuid, columns.map(Option::unwrap_or_default).collect()))
        });
        Ok(Past(read.collect()))
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    #[test]
    fn a_question_beside_another_is_asked_again() {
        let mut answers = ["resources exhausted", "invalid parameters"].into_iter();
        let outcome: Result<(), _> = in_turn(|| {
            let word = answers.next().unwrap();
            let json = format!(r#"{{"details":"x","error":"{word}"}}"#);
            Err(corvid::Error::HistoryRefused(json))
        });
        assert!(
            outcome
                .unwrap_err()
                .to_string()
                .contains("invalid parameters")
        );
        assert_eq!(answers.next(), None);
    }

    #[test]
    fn refusals_of_history_are_sentences() {
        let json = r#"{"details":"\"-2h\" is before the history","error":"no such moment"}"#;
        let refused = corvid::Error::HistoryRefused(json.to_owned());
        assert_eq!(of_history(&refused).text(), "\"-2h\" is before the history");
        let refused = corvid::Error::HistoryRefused("\"busy\"".to_owned());
        assert_eq!(of_history(&refused).text(), "history refused: \"busy\"");
    }

    #[test]
    fn only_an_answer_of_the_server_means_that_there_is_no_such_moment() {
        let missing = StatusCode::NOT_FOUND;
        let status = |error: corvid::Error| of_history(&error).status(missing);
        let refused = |tag: &str| {
            let json = format!(r#"{{"details":"x","error":"{tag}"}}"#);
            corvid::Error::HistoryRefused(json)
        };
        assert_eq!(status(refused("no such moment")), missing);
        assert_eq!(status(corvid::Error::HistoryUnsupported), missing);
        for error in [
            refused(NO_ROOM),
            corvid::Error::HistoryLost,
            corvid::Error::TimedOut(None),
        ] {
            assert_eq!(status(error), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
