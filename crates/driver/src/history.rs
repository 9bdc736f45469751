//! The history of the database, and its contents at a moment, from the server: `read_history` and
//! `select_at` (docs/reference/wire-extensions.md).
//!
//! [`HistoryReading`] is the conversation, without a way to wait: for [`polled::Client`] and the
//! bindings. The calls that wait are written over it once for all fronts, like `calls`.
//!
//! Invariant: a reading belongs to one connection. Its number may name another reading on the next
//! one, so it is never sent there.

use std::ops::ControlFlow;

use corvid_idl::Idl;
use corvid_net::logging::Shown;
use corvid_session::history::{Page, Question, select_params};
use corvid_session::{Outcome, RequestId, once};

use crate::calls::Front;
use crate::error::Error;
use crate::logging;
use crate::polled;

/// A part of what a reading has to say.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct HistoryPage {
    /// JSON objects, those that `ovsdb-tool --json` prints. There may be none, since a page comes
    /// at least every second or so.
    pub lines: Vec<Vec<u8>>,
    /// The date that the reading has reached, ms since the Unix epoch.
    pub at_ms: Option<i64>,
    /// The part of the history that has been read, 0 to 1.
    pub done: f64,
}

/// One request at a time, on a server that offers the method.
#[derive(Debug)]
struct Exchange {
    method: &'static str,
    /// The parameters of the next request.
    params: Vec<u8>,
    sent: Option<RequestId>,
    /// The connection on which the last request was sent.
    seqno: u64,
}

impl Exchange {
    fn is_ready(&self, client: &polled::Client) -> bool {
        match self.sent {
            // The id of the server arrives before its contents.
            None => client.session_state().is_monitoring(),
            Some(request) => client.is_answered(request),
        }
    }

    /// Sends the request, or takes its result. `None`: neither is possible, or it was just sent.
    fn take(&mut self, client: &mut polled::Client) -> Result<Option<Vec<u8>>, Error> {
        client.check_process()?;
        if !self.is_ready(client) {
            return Ok(None);
        }
        let Some(request) = self.sent.take() else {
            let id = client.session_state().server_id();
            if !id.is_some_and(once::reads_history) {
                return Err(Error::HistoryUnsupported);
            }
            self.seqno = client.session_state().session_seqno();
            self.sent = client.idl_mut().ask(self.method, &self.params);
            return Ok(None);
        };
        match client.idl_mut().take_answer(request) {
            Outcome::Result(result) => Ok(Some(result)),
            Outcome::Error(error) => {
                let error = String::from_utf8_lossy(&error).into_owned();
                Err(Error::HistoryRefused(error))
            }
            Outcome::Lost => Err(Error::HistoryLost),
        }
    }

    /// Withdraws the request. A reading whose first or next page is under way all the same is
    /// stopped when the page comes.
    fn cancel(&mut self, client: &mut polled::Client) {
        if let Some(request) = self.sent.take() {
            client.idl_mut().withdraw(request, stop_of);
        }
    }
}

/// The request that stops a reading, made of one of its pages.
fn stop_of(idl: &Idl, page: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let number = Page::parse(page)?.next?;
    let params = Question::stop(number).params(&idl.schema().name);
    Some(("read_history", params))
}

/// A reading of the history, or a query of a moment, under way: what
/// [`polled::Client::read_history`] or [`polled::Client::select_at`] has begun.
///
/// The server does a few readings at a time, and keeps one for a minute that nobody goes on with.
/// [`HistoryReading::cancel`] the one that is not wanted any more.
#[derive(Debug)]
pub struct HistoryReading {
    exchange: Exchange,
    database: String,
    /// The server's number of the reading, which it has on the connection of the last request.
    number: Option<i64>,
    is_over: bool,
}

impl HistoryReading {
    fn begin(
        client: &polled::Client,
        method: &'static str,
        params: Vec<u8>,
    ) -> Result<HistoryReading, Error> {
        client.check_process()?;
        Ok(HistoryReading {
            exchange: Exchange {
                method,
                params,
                sent: None,
                seqno: 0,
            },
            database: client.schema().name.to_string(),
            number: None,
            is_over: false,
        })
    }

    /// Whether the last page has been taken, or the reading has failed or was canceled.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether [`HistoryReading::take`] has something to do.
    #[must_use]
    pub fn is_ready(&self, client: &polled::Client) -> bool {
        self.is_over || self.is_lost(client) || self.exchange.is_ready(client)
    }

    /// Takes the next page, and asks for the one after it with the next call. `None`: it is not
    /// there yet, or the reading is over. Missing parts, such as a file, are logged as warnings.
    ///
    /// # Errors
    /// [`Error::HistoryUnsupported`], [`Error::HistoryRefused`], [`Error::HistoryLost`], or
    /// [`Misuse::Forked`](corvid_idl::Misuse::Forked). The reading is over then.
    pub fn take(&mut self, client: &mut polled::Client) -> Result<Option<HistoryPage>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let page = self.next(client);
        self.is_over |= page.is_err();
        page
    }

    fn next(&mut self, client: &mut polled::Client) -> Result<Option<HistoryPage>, Error> {
        if self.is_lost(client) {
            return Err(Error::HistoryLost);
        }
        let Some(reply) = self.exchange.take(client)? else {
            return Ok(None);
        };
        if self.exchange.method == "select_at" {
            self.is_over = true;
            return Ok(Some(HistoryPage {
                lines: vec![reply],
                at_ms: None,
                done: 1.0,
            }));
        }
        let malformed = || Error::HistoryRefused("\"the reply is malformed\"".to_owned());
        let page = Page::parse(&reply).ok_or_else(malformed)?;
        for warning in &page.warnings {
            let database = &self.database;
            log::warn!(target: logging::TARGET, "history of {database}: {}", Shown(warning));
        }
        self.number = page.next;
        match page.next {
            None => self.is_over = true,
            Some(number) => {
                self.exchange.params = Question::next(number).params(&self.database);
            }
        }
        Ok(Some(HistoryPage {
            lines: page.lines.iter().map(|line| line.to_vec()).collect(),
            at_ms: page.at_ms,
            done: page.done,
        }))
    }

    /// Whether the connection has ended on which the next page could be asked for.
    fn is_lost(&self, client: &polled::Client) -> bool {
        let is_continued = self.number.is_some() && self.exchange.sent.is_none();
        is_continued && client.session_state().session_seqno() != self.exchange.seqno
    }

    /// Ends the reading, also at the server. Nothing is awaited; the next [`polled::Client::run`]
    /// or [`polled::Client::flush`] sends it.
    pub fn cancel(&mut self, client: &mut polled::Client) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        if self.exchange.sent.is_some() {
            self.exchange.cancel(client);
        } else if let Some(number) = self.number.filter(|_| !self.is_lost(client)) {
            let stop = Question::stop(number).params(&self.database);
            if let Some(request) = client.idl_mut().ask("read_history", &stop) {
                // The answer says nothing that matters.
                let _ = client.idl_mut().take_answer(request);
            }
        }
    }
}

/// The past, for programs with a loop of their own.
impl polled::Client {
    /// Begins a reading of the database's history: [`HistoryReading::take`] its pages after each
    /// [`polled::Client::run`]. See [`crate::blocking::Client::read_history`].
    ///
    /// # Errors
    /// [`Error::HistoryQuestion`], or [`Misuse::Forked`](corvid_idl::Misuse::Forked).
    pub fn read_history(&self, question: &Question) -> Result<HistoryReading, Error> {
        question.check()?;
        let params = question.params(&self.schema().name);
        HistoryReading::begin(self, "read_history", params)
    }

    /// Begins a query of the contents at a moment. Its results are the only line of a reading with
    /// one page. See [`crate::blocking::Client::select_at`].
    ///
    /// # Errors
    /// [`Error::NotOperations`], or [`Misuse::Forked`](corvid_idl::Misuse::Forked).
    pub fn select_at(&self, moment: &str, operations: &str) -> Result<HistoryReading, Error> {
        // The server would end the session because of a malformed message.
        let params = select_params(&self.schema().name, moment, operations.as_bytes());
        HistoryReading::begin(self, "select_at", params.ok_or(Error::NotOperations)?)
    }
}

/// The reading of a call that waits. It is canceled when the call ends early: by a time limit, by
/// an error, or because its future is dropped.
struct Call<'f, F: Front> {
    front: &'f mut F,
    reading: HistoryReading,
}

impl<F: Front> Call<'_, F> {
    /// Waits for the next page.
    async fn page(&mut self) -> Result<HistoryPage, Error> {
        loop {
            let reading = &mut self.reading;
            // First: the client may not have run since its connection was lost.
            let is_ready = |client: &polled::Client| reading.is_ready(client).then_some(());
            self.front.wait(is_ready).await?;
            if let Some(page) = self.front.change(|client| reading.take(client))? {
                return Ok(page);
            }
        }
    }
}

impl<F: Front> Drop for Call<'_, F> {
    fn drop(&mut self) {
        let reading = &mut self.reading;
        if !reading.is_over() {
            self.front.change(|client| reading.cancel(client));
            self.front.flush();
        }
    }
}

/// Reads what `question` asks for, page by page. `line` gets each line, a JSON text; a break ends
/// the reading.
pub(crate) async fn read(
    front: &mut impl Front,
    question: &Question,
    mut line: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), Error> {
    let reading = front.look(|client| client.read_history(question))?;
    let mut call = Call { front, reading };
    loop {
        let page = call.page().await?;
        let flow = page.lines.iter().try_for_each(|text| line(text));
        if flow.is_break() || call.reading.is_over() {
            return Ok(());
        }
    }
}

/// Executes `select` operations on the contents at a moment. Returns their results, JSON.
pub(crate) async fn select_at(
    front: &mut impl Front,
    moment: &str,
    operations: &str,
) -> Result<Vec<u8>, Error> {
    let reading = front.look(|client| client.select_at(moment, operations))?;
    let page = Call { front, reading }.page().await?;
    Ok(page.lines.concat())
}
