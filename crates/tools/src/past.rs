//! The history of a served database: the methods `read_history` and `select_at`
//! (docs/reference/wire-extensions.md).
//!
//! A [`Past`] reads what happened, page by page: the program holds one page, and the server holds
//! the reading between two of them. [`Contents`] are those of now, or of the moment of `--at`.

use std::io::Write;

use corvid_data::Schema;
use corvid_history::{Civil, HistoryError, Moment};
use corvid_json::Value;
use corvid_json::shown::Shown;
use corvid_net::clock;
use corvid_session::history::{Page, Question};
use corvid_session::once;
use corvid_shell::output::{self, Output};
use corvid_shell::program;
use corvid_shell::progress::{Progress, Spinner};

use crate::failure::Failure;
use crate::history::{date_text, local};
use crate::session::Session;

/// The steps of a reading's progress.
const STEPS: u32 = 1 << 20;

/// The history of one database.
#[derive(Debug)]
pub struct Past<'a> {
    session: &'a mut Session,
    database: &'a str,
    /// The command that does the same with a file.
    instead: &'static str,
}

impl<'a> Past<'a> {
    /// Checks that the server reads history. `instead` is the command that does the same with a
    /// file.
    ///
    /// # Errors
    /// It does not, or the connection broke.
    pub fn of(
        session: &'a mut Session,
        database: &'a str,
        instead: &'static str,
    ) -> Result<Past<'a>, Failure> {
        let reads = session.server_id()?.is_some_and(once::reads_history);
        let past = Past {
            session,
            database,
            instead,
        };
        match reads {
            true => Ok(past),
            false => Err(past.unsupported()),
        }
    }

    fn unsupported(&self) -> Failure {
        let (server, instead) = (self.session.name(), self.instead);
        Failure::new(format!(
            "{server}: the server cannot read the history of its databases: it is an older release or another \
             program; use \"{instead}\" on a host that has the database's file"
        ))
    }

    /// The failure that the server's error means.
    fn refused(&self, error: &Value) -> Failure {
        // An id of an older release may look like one that announces the methods.
        let tag = error.get("error").unwrap_or(error);
        match tag.as_str() == Some("unknown method") {
            true => self.unsupported(),
            false => Failure::wire(error),
        }
    }

    /// Reads what `question` asks for; `sink` gets each line, a JSON text. Ends early when the
    /// reader of the output is gone.
    ///
    /// # Errors
    /// The server refused, the connection broke, or `sink` returned an error.
    pub fn read(
        &mut self,
        question: Question,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut progress = Some(Progress::new("Reading the history", u64::from(STEPS)));
        let mut shown = 0;
        let mut question = question;
        loop {
            let reply = self.ask(&question)?;
            let page = Page::parse(&reply).ok_or_else(|| self.malformed("read_history"))?;
            for warning in &page.warnings {
                let warning = Shown(warning);
                output::error_line(format_args!("{}: {warning}", program::name()));
            }
            if !page.lines.is_empty() {
                // On a terminal the lines themselves are the progress.
                if output::is_terminal() {
                    progress = None;
                }
                for line in &page.lines {
                    sink(line)?;
                }
                // The next page may take long, or not come.
                Output.flush()?;
            }
            if let Some(progress) = &progress {
                let done = steps(page.done);
                progress.advance(done.saturating_sub(shown));
                shown = shown.max(done);
            }
            match page.next {
                // The server drops the reading when the connection ends.
                Some(reading) if !output::reader_is_gone() => question = Question::next(reading),
                _ => return Ok(()),
            }
        }
    }

    /// The schema that the database had at a moment.
    ///
    /// # Errors
    /// The server refused, or the connection broke.
    pub fn schema_at(&mut self, moment: &str) -> Result<Schema, Failure> {
        let reply = self.ask(&Question::schema(moment))?;
        let schema = Page::parse(&reply)
            .and_then(|page| Value::parse(page.lines.first()?).ok())
            .ok_or_else(|| self.malformed("read_history"))?;
        Ok(Schema::from_json(&schema)?)
    }

    /// The results of operations, which only read, at a moment.
    ///
    /// # Errors
    /// The server refused, or the connection broke.
    pub fn select_at(&mut self, moment: &str, operations: Vec<Value>) -> Result<Value, Failure> {
        let mut params = vec![Value::string(self.database), Value::string(moment)];
        params.extend(operations);
        let reply = self.session.transact("select_at", &Value::Array(params))?;
        reply.map_err(|error| self.refused(&error))
    }

    /// The same as a JSON text.
    ///
    /// # Errors
    /// As for [`Past::select_at`].
    fn select_text_at(&mut self, moment: &str, operations: Vec<Value>) -> Result<Vec<u8>, Failure> {
        let mut params = vec![Value::string(self.database), Value::string(moment)];
        params.extend(operations);
        let params = Value::Array(params).to_bytes();
        let reply = self.session.transact_text("select_at", &params)?;
        reply.map_err(|error| self.refused(&Value::parse(&error).unwrap_or(Value::Null)))
    }

    /// Sends a `read_history`. Returns its reply, a JSON text.
    fn ask(&mut self, question: &Question) -> Result<Vec<u8>, Failure> {
        let params = question.params(self.database);
        let reply = self.session.transact_text("read_history", &params)?;
        reply.map_err(|error| self.refused(&Value::parse(&error).unwrap_or(Value::Null)))
    }

    fn malformed(&self, method: &str) -> Failure {
        let server = self.session.name();
        Failure::new(format!("{server}: the reply to {method} is malformed"))
    }
}

/// A part, 0 to 1, in steps of the progress.
fn steps(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * f64::from(STEPS)) as u64
}

/// A moment of the command line, as the server expects it. The server does not know the zone of
/// local times, so these become universal ones. Ages are measured by the server's clock.
///
/// # Errors
/// The text is not a moment.
pub fn moment(text: &str) -> Result<String, Failure> {
    let is_local = Civil::parse(text).is_some();
    // Only the server can tell what is in its future.
    let now_ms = if is_local { clock::wall_ms() } else { i64::MAX };
    let failure = |error: HistoryError| Failure::new(error.to_string());
    Ok(
        match Moment::parse(text, now_ms, &local).map_err(failure)? {
            Moment::Time(time_ms) if is_local => date_text(time_ms),
            _ => text.to_owned(),
        },
    )
}

/// The contents of a database, now or at a moment.
#[derive(Debug)]
pub struct Contents<'a> {
    past: Past<'a>,
    /// `None`: now.
    at: Option<String>,
}

impl<'a> Contents<'a> {
    /// Those at the moment `at`. `instead` is the command that reads a file.
    ///
    /// # Errors
    /// `at` is not a moment, the server cannot read history, or the connection broke.
    pub fn at(
        session: &'a mut Session,
        database: &'a str,
        at: Option<&str>,
        instead: &'static str,
    ) -> Result<Contents<'a>, Failure> {
        let at = at.map(moment).transpose()?;
        let past = match at {
            Some(_) => Past::of(session, database, instead)?,
            None => Past {
                session,
                database,
                instead,
            },
        };
        Ok(Contents { past, at })
    }

    /// The schema.
    ///
    /// # Errors
    /// The server refused, or the connection broke.
    pub fn schema(&mut self) -> Result<Schema, Failure> {
        match &self.at {
            Some(moment) => {
                let _progress = Spinner::new("Waiting for the server");
                self.past.schema_at(moment)
            }
            None => self.past.session.schema(self.past.database),
        }
    }

    /// The results of operations, which only read.
    ///
    /// # Errors
    /// As for [`Contents::schema`].
    pub fn select(&mut self, operations: Vec<Value>) -> Result<Value, Failure> {
        if let Some(moment) = &self.at {
            return self.past.select_at(moment, operations);
        }
        let mut params = vec![Value::string(self.past.database)];
        params.extend(operations);
        self.past.session.call("transact", &Value::Array(params))
    }

    /// The results as a JSON text, of which a caller reads more than a tree of values would leave
    /// room for.
    ///
    /// # Errors
    /// As for [`Contents::schema`].
    pub fn select_text(&mut self, operations: Vec<Value>) -> Result<Vec<u8>, Failure> {
        let _progress = Spinner::new("Waiting for the server");
        if let Some(moment) = &self.at {
            return self.past.select_text_at(moment, operations);
        }
        let mut params = vec![Value::string(self.past.database)];
        params.extend(operations);
        let params = Value::Array(params).to_bytes();
        let reply = self.past.session.transact_text("transact", &params)?;
        reply.map_err(|error| Failure::returned_error(&Value::parse(&error).unwrap_or(Value::Null)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_times_are_converted() {
        for text in [
            "HEAD",
            "HEAD~3",
            "-2h",
            "@1700000000000",
            "2023-11-14T22:13:20Z",
            "5f36b2ea",
        ] {
            assert_eq!(moment(text).as_deref(), Ok(text));
        }
        let civil = Civil::parse("2023-11-14T22:13:20.5").expect("a local time");
        let ms = local(civil).expect("a time");
        assert_eq!(moment("2023-11-14T22:13:20.5"), Ok(date_text(ms)));
        for wrong in ["yesterday", "", "2023-02-29", "2999-01-01"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
