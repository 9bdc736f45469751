//! The history of the database, and its contents at a moment, from the server: `read_history` and
//! `select_at` (docs/reference/wire-extensions.md).
//!
//! [`HistoryReading`] and [`HistorySelection`] are the conversations, without a way to wait: for
//! [`polled::Client`] and the bindings. The calls that wait are written over them once for all
//! fronts, like `calls`.
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

impl HistoryPage {
    /// The results of a [`HistorySelection`] as a page of one line, for bindings that treat both
    /// alike.
    #[must_use]
    pub fn of_results(results: Vec<u8>) -> HistoryPage {
        HistoryPage {
            lines: vec![results],
            at_ms: None,
            done: 1.0,
        }
    }
}

/// One request at a time, on a server that offers the method.
#[derive(Debug)]
struct Exchange {
    method: &'static str,
    /// The parameters of the next request.
    params: Vec<u8>,
    sent: Option<RequestId>,
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

/// A reading of the history under way: what [`polled::Client::read_history`] has begun.
///
/// The server does a few readings at a time, and keeps one for a minute that nobody goes on with.
/// [`HistoryReading::cancel`] the one that is not wanted any more.
#[derive(Debug)]
pub struct HistoryReading {
    exchange: Exchange,
    database: String,
    /// The server's number of the reading, and the connection on which it has that number.
    number: Option<(i64, u64)>,
    is_over: bool,
}

impl HistoryReading {
    fn begin(client: &polled::Client, question: &Question) -> Result<HistoryReading, Error> {
        client.check_process()?;
        question.check()?;
        let database = client.schema().name.to_string();
        Ok(HistoryReading {
            exchange: Exchange {
                method: "read_history",
                params: question.params(&database),
                sent: None,
            },
            database,
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
        let malformed = || Error::HistoryRefused("\"the reply is malformed\"".to_owned());
        let page = Page::parse(&reply).ok_or_else(malformed)?;
        for warning in &page.warnings {
            let database = &self.database;
            log::warn!(target: logging::TARGET, "history of {database}: {}", Shown(warning));
        }
        self.number = (page.next).map(|number| (number, client.session_state().session_seqno()));
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
        let now = client.session_state().session_seqno();
        self.exchange.sent.is_none() && self.number.is_some_and(|(_, seqno)| seqno != now)
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
        } else if let Some((number, _)) = self.number.filter(|_| !self.is_lost(client)) {
            let stop = Question::stop(number).params(&self.database);
            if let Some(request) = client.idl_mut().ask("read_history", &stop) {
                // The answer says nothing that matters.
                let _ = client.idl_mut().take_answer(request);
            }
        }
    }
}

/// A query of the contents at a moment under way: what [`polled::Client::select_at`] has begun.
#[derive(Debug)]
pub struct HistorySelection {
    exchange: Exchange,
    is_over: bool,
}

impl HistorySelection {
    fn begin(
        client: &polled::Client,
        moment: &str,
        operations: &[u8],
    ) -> Result<HistorySelection, Error> {
        client.check_process()?;
        // The server would end the session because of a malformed message.
        let params = select_params(&client.schema().name, moment, operations);
        Ok(HistorySelection {
            exchange: Exchange {
                method: "select_at",
                params: params.ok_or(Error::NotOperations)?,
                sent: None,
            },
            is_over: false,
        })
    }

    /// Whether the results were taken, or the query has failed or was canceled.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether [`HistorySelection::take`] has something to do.
    #[must_use]
    pub fn is_ready(&self, client: &polled::Client) -> bool {
        self.is_over || self.exchange.is_ready(client)
    }

    /// Takes the results, a JSON array. `None`: they are not there yet, or it is over.
    ///
    /// # Errors
    /// Those of [`HistoryReading::take`]. The query is over then.
    pub fn take(&mut self, client: &mut polled::Client) -> Result<Option<Vec<u8>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let results = self.exchange.take(client);
        self.is_over = !matches!(results, Ok(None));
        results
    }

    /// Ends the query, also at the server, as [`HistoryReading::cancel`] does.
    pub fn cancel(&mut self, client: &mut polled::Client) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        self.exchange.cancel(client);
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
        HistoryReading::begin(self, question)
    }

    /// Begins a query of the contents at a moment: [`HistorySelection::take`] its results after
    /// each [`polled::Client::run`]. See [`crate::blocking::Client::select_at`].
    ///
    /// # Errors
    /// [`Error::NotOperations`], or [`Misuse::Forked`](corvid_idl::Misuse::Forked).
    pub fn select_at(&self, moment: &str, operations: &str) -> Result<HistorySelection, Error> {
        HistorySelection::begin(self, moment, operations.as_bytes())
    }
}

/// A conversation of a call that waits. It is canceled when the call ends early: by a time limit,
/// by an error, or because its future is dropped.
struct Call<'f, F: Front, C: Conversation> {
    front: &'f mut F,
    conversation: C,
}

/// The parts that both conversations have.
trait Conversation {
    type Answer;
    fn is_ready(&self, client: &polled::Client) -> bool;
    fn take(&mut self, client: &mut polled::Client) -> Result<Option<Self::Answer>, Error>;
    fn is_over(&self) -> bool;
    fn cancel(&mut self, client: &mut polled::Client);
}

macro_rules! conversation {
    ($type:ty, $answer:ty) => {
        impl Conversation for $type {
            type Answer = $answer;

            fn is_ready(&self, client: &polled::Client) -> bool {
                <$type>::is_ready(self, client)
            }

            fn take(&mut self, client: &mut polled::Client) -> Result<Option<$answer>, Error> {
                <$type>::take(self, client)
            }

            fn is_over(&self) -> bool {
                <$type>::is_over(self)
            }

            fn cancel(&mut self, client: &mut polled::Client) {
                <$type>::cancel(self, client);
            }
        }
    };
}

conversation!(HistoryReading, HistoryPage);
conversation!(HistorySelection, Vec<u8>);

impl<F: Front, C: Conversation> Call<'_, F, C> {
    async fn answer(&mut self) -> Result<C::Answer, Error> {
        loop {
            let conversation = &mut self.conversation;
            // First: the client may not have run since its connection was lost.
            let is_ready = |client: &polled::Client| conversation.is_ready(client).then_some(());
            self.front.wait(is_ready).await?;
            let answer = self.front.change(|client| conversation.take(client))?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }
}

impl<F: Front, C: Conversation> Drop for Call<'_, F, C> {
    fn drop(&mut self) {
        let conversation = &mut self.conversation;
        if !conversation.is_over() {
            self.front.change(|client| conversation.cancel(client));
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
    let conversation = front.look(|client| client.read_history(question))?;
    let mut call = Call {
        front,
        conversation,
    };
    loop {
        let page = call.answer().await?;
        let flow = page.lines.iter().try_for_each(|text| line(text));
        if flow.is_break() || call.conversation.is_over() {
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
    let conversation = front.look(|client| client.select_at(moment, operations))?;
    let mut call = Call {
        front,
        conversation,
    };
    call.answer().await
}
