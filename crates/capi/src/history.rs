//! The past of the database: readings of its history, and queries of its contents at a moment.
//!
//! Invariant: the lock of a client is taken before that of a reading.

use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, MutexGuard};

use corvid::fork::Lock;
use corvid::{Error, HistoryPage, HistoryQuestion, HistoryReading, polled};

use crate::abi::{SizedOut, Versioned, sized_array};
use crate::client::{Cell, Client, corvid_client, put_text};
use crate::error::{Failure, corvid_error, guard};
use crate::handle::{self, Kind};
use crate::pointer::{self, Out};

/// The part of the history that a reading reads. Its lines are those that `ovsdb-tool --json`
/// prints.
#[repr(C)]
pub enum corvid_history_read {
    /// The files of the history.
    CORVID_READ_FILES = 0,
    /// The commits, oldest first.
    CORVID_READ_LOG = 1,
    /// The rows that differ between two moments.
    CORVID_READ_DIFF = 2,
    /// The schema at a moment.
    CORVID_READ_SCHEMA = 3,
}

const READS: [&str; 4] = ["files", "log", "diff", "schema"];

/// A question about the history. Begin with CORVID_HISTORY_QUESTION_INIT. Members that are null, or
/// 0, restrict nothing. A moment is text such as "HEAD~3", "-2h", "2026-11-28T10:00Z",
/// "@1700000000000" (ms since the Unix epoch) or the id of a commit; a time without a zone is
/// one of UTC.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_history_question {
    /// `sizeof(corvid_history_question)`, set by the caller.
    pub size: usize,
    /// A corvid_history_read.
    pub read: c_int,
    /// Of a log: its last commits only, this many.
    pub newest: u64,
    /// Of a log or difference: rows of this table.
    pub table: *const c_char,
    /// Of a log or difference: rows whose UUID begins like this.
    pub row: *const c_char,
    /// Of a log or difference: rows of which this column has changed.
    pub column: *const c_char,
    /// Of a log: commits with this text in their client or comment.
    pub client: *const c_char,
    /// Of a log: changes after this moment.
    pub since: *const c_char,
    /// Of a log: changes up to this moment.
    pub until: *const c_char,
    /// Of a difference: the first moment. It is needed.
    pub from: *const c_char,
    /// Of a difference: the second moment. It is needed.
    pub to: *const c_char,
    /// Of a schema: the moment. It is needed.
    pub at: *const c_char,
}

// SAFETY: numbers and pointers only, the size first.
unsafe impl Versioned for corvid_history_question {
    const NAME: &'static str = "corvid_history_question";
    const LEAST: usize = 96;
}

impl corvid_history_question {
    fn to_question(self) -> Result<HistoryQuestion, Failure> {
        let read = usize::try_from(self.read).ok();
        let read = read.and_then(|read| READS.get(read));
        let read = read.ok_or_else(|| Failure::argument("there is no such reading"))?;
        let mut question = HistoryQuestion::named(read);
        for (name, text) in [
            ("table", self.table),
            ("row", self.row),
            ("column", self.column),
            ("client", self.client),
            ("since", self.since),
            ("until", self.until),
            ("from", self.from),
            ("to", self.to),
            ("at", self.at),
        ] {
            if let Some(text) = pointer::optional_text(text, name)? {
                question = question.member(name, text);
            }
        }
        if self.newest > 0 {
            question = question.newest(usize::try_from(self.newest).unwrap_or(usize::MAX));
        }
        Ok(question)
    }
}

/// The status of a reading or query.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum corvid_history_status {
    /// The next page is not there yet. Run the client and ask again.
    CORVID_HISTORY_PENDING = 0,
    /// A page is there: corvid_history_lines.
    CORVID_HISTORY_PAGE = 1,
    /// It has ended: the page before was the last one.
    CORVID_HISTORY_DONE = 2,
    /// The server does not read history: it is an older release or another program.
    CORVID_HISTORY_UNSUPPORTED = 3,
    /// The server refused; corvid_history_error_text says why.
    CORVID_HISTORY_REFUSED = 4,
    /// The connection ended first. Ask again from the beginning.
    CORVID_HISTORY_LOST = 5,
}

use corvid_history_status::{
    CORVID_HISTORY_DONE, CORVID_HISTORY_LOST, CORVID_HISTORY_PAGE, CORVID_HISTORY_PENDING,
    CORVID_HISTORY_REFUSED, CORVID_HISTORY_UNSUPPORTED,
};

/// A reading of the history, or a query of a moment, under way. Free it with corvid_history_free.
pub struct corvid_history {
    _private: [u8; 0],
}

/// The object behind the handle.
pub(crate) struct History {
    client: Arc<Cell>,
    state: Lock<State>,
}

impl Kind for History {
    type Opaque = corvid_history;
    const NAME: &'static str = "reading of history";
}

struct State {
    reading: HistoryReading,
    page: Page,
    /// The error of the server, JSON.
    refusal: Option<String>,
    /// How it ended with a failure.
    failed: Option<corvid_history_status>,
}

/// The lines of a page as C reads them.
#[derive(Default)]
struct Page {
    /// Point into `_texts`.
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
    at_ms: i64,
    done: f64,
}

// SAFETY: the pointers point into `_texts`, which goes with the page, and nothing writes there.
unsafe impl Send for Page {}

impl Page {
    fn of(page: HistoryPage) -> Page {
        // A JSON text has no NUL, and the reply was read as JSON.
        let lines = page.lines.into_iter();
        let texts: Vec<CString> = lines
            .map(|line| CString::new(line).unwrap_or_default())
            .collect();
        Page {
            pointers: texts.iter().map(|text| text.as_ptr()).collect(),
            _texts: texts,
            at_ms: page.at_ms.unwrap_or(0),
            done: page.done,
        }
    }
}

impl State {
    /// Lets go of the page at hand, and takes the next one.
    fn next(&mut self, client: &mut polled::Client) -> Result<corvid_history_status, Failure> {
        self.page = Page {
            at_ms: self.page.at_ms,
            done: self.page.done,
            ..Page::default()
        };
        if let Some(failed) = self.failed {
            return Ok(failed);
        }
        if self.reading.is_over() {
            return Ok(CORVID_HISTORY_DONE);
        }
        let failed = match self.reading.take(client) {
            Ok(None) => return Ok(CORVID_HISTORY_PENDING),
            Ok(Some(page)) => {
                self.page = Page::of(page);
                return Ok(CORVID_HISTORY_PAGE);
            }
            Err(Error::HistoryUnsupported) => CORVID_HISTORY_UNSUPPORTED,
            Err(Error::HistoryLost) => CORVID_HISTORY_LOST,
            Err(Error::HistoryRefused(error)) => {
                self.refusal = Some(error);
                CORVID_HISTORY_REFUSED
            }
            Err(error) => return Err(failure(error)),
        };
        self.failed = Some(failed);
        Ok(failed)
    }
}

impl History {
    fn state(&self) -> Result<MutexGuard<'_, State>, Failure> {
        let state = self.state.lock();
        state.map_err(|error| Failure::locking(Self::NAME, error))
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Misuse(misuse) => misuse.into(),
        error => Failure::argument(error.to_string()),
    }
}

fn begin(
    client: *const corvid_client,
    history: *mut *mut corvid_history,
    begin: impl FnOnce(&polled::Client) -> Result<HistoryReading, Error>,
) -> Result<(), Failure> {
    let out = Out::new(history, "history")?;
    let client = handle::get::<Client>(client)?;
    let reading = (client.0).with(|client| begin(client).map_err(failure))?;
    out.set(handle::store(History {
        client: client.0.clone(),
        state: Lock::new(State {
            reading,
            page: Page::default(),
            refusal: None,
            failed: None,
        }),
    })?);
    Ok(())
}

/// Begins to read the history of the database from the server, as `ovsdb-client log` does. Take its
/// pages with corvid_history_next. A part that is missing, such as a file, is logged as a warning.
/// CORVID_ERR_ARGUMENT: every server would refuse the question, such as one for a difference with
/// `since`. Free the reading with corvid_history_free.
///
/// ```c
/// corvid_history_question question = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
/// corvid_history *history;
/// int status;
///
/// question.table = "Port";
/// question.since = "-2h";
/// corvid_history_new(client, &question, &history);
/// for (;;) {
///     corvid_history_next(history, &status);
///     if (status == CORVID_HISTORY_PENDING) {
///         turn(client);       // polls what corvid_client_wait says, then corvid_client_run
///     } else if (status == CORVID_HISTORY_PAGE) {
///         for (size_t i = 0; i < corvid_history_count(history); i++) {
///             puts(corvid_history_lines(history)[i]);
///         }
///     } else {
///         break;              // CORVID_HISTORY_DONE, or a failure
///     }
/// }
/// corvid_history_free(history);
/// ```
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_new(
    client: *mut corvid_client,
    question: *const corvid_history_question,
    history: *mut *mut corvid_history,
) -> corvid_error {
    guard("corvid_history_new", || {
        let mut questions = sized_array(question, 1, "question")?;
        let question = questions
            .next()
            .ok_or_else(|| Failure::null("question"))??;
        let question = question.to_question()?;
        begin(client, history, |client| client.read_history(&question))
    })
}

/// Begins to execute `select` operations of RFC 7047, a JSON array, on the contents at a moment,
/// under the schema that the database had then. Their results, a JSON array too, come as a page of
/// one line. CORVID_ERR_ARGUMENT: the operations are not a JSON array. Free it with
/// corvid_history_free.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_select_new(
    client: *mut corvid_client,
    moment: *const c_char,
    operations: *const c_char,
    history: *mut *mut corvid_history,
) -> corvid_error {
    guard("corvid_history_select_new", || {
        let moment = pointer::text(moment, "moment")?;
        let operations = pointer::text(operations, "operations")?;
        begin(client, history, |client| {
            client.select_at(moment, operations)
        })
    })
}

/// Lets go of the page at hand, and takes or asks for the next one; `*status` is a
/// corvid_history_status. The next corvid_client_run sends the request. The server answers within a
/// second or so, also with a page without lines, and reads no further before it is asked to. After
/// a minute without a call it ends the reading.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_next(
    history: *mut corvid_history,
    status: *mut c_int,
) -> corvid_error {
    guard("corvid_history_next", || {
        let out = Out::new(status, "status")?;
        let history = handle::get::<History>(history)?;
        let status = (history.client).with(|client| history.state()?.next(client))?;
        out.set(status as c_int);
        Ok(())
    })
}

/// The number of lines of the page at hand; 0 without one, and for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_count(history: *const corvid_history) -> usize {
    let mut count = 0;
    guard("corvid_history_count", || {
        count = handle::get::<History>(history)?
            .state()?
            .page
            .pointers
            .len();
        Ok(())
    });
    count
}

/// The lines of the page at hand, each a JSON text: an array of corvid_history_count elements. It
/// belongs to the reading and stays valid until the next corvid_history_next or
/// corvid_history_free, of any thread. Null for a handle that is none.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_lines(history: *const corvid_history) -> *const *const c_char {
    let mut lines = std::ptr::null();
    guard("corvid_history_lines", || {
        lines = handle::get::<History>(history)?
            .state()?
            .page
            .pointers
            .as_ptr();
        Ok(())
    });
    lines
}

/// How far a reading has come. Begin with CORVID_HISTORY_PROGRESS_INIT.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_history_progress {
    /// `sizeof(corvid_history_progress)`, set by the caller.
    pub size: usize,
    /// The date that the last page has reached, ms since the Unix epoch; 0 if it is not known.
    pub at_ms: i64,
    /// The part of the history that has been read, 0 to 1.
    pub done: f64,
}

// SAFETY: numbers only, the size first.
unsafe impl Versioned for corvid_history_progress {
    const NAME: &'static str = "corvid_history_progress";
    const LEAST: usize = 24;
}

/// Tells how far a reading has come with its last page.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_progress_of(
    history: *const corvid_history,
    progress: *mut corvid_history_progress,
) -> corvid_error {
    guard("corvid_history_progress_of", || {
        let out = SizedOut::new(progress)?;
        let history = handle::get::<History>(history)?;
        let state = history.state()?;
        out.set(corvid_history_progress {
            size: size_of::<corvid_history_progress>(),
            at_ms: state.page.at_ms,
            done: state.page.done,
        });
        Ok(())
    })
}

/// Copies the server's error, JSON, after CORVID_HISTORY_REFUSED, into `buffer`, cut to `size`
/// bytes with its NUL. `*length` is the length of the whole text; `length` may be null, and so may
/// `buffer` if `size` is 0. CORVID_ERR_NONE: there is no error.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_error_text(
    history: *const corvid_history,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> corvid_error {
    guard("corvid_history_error_text", || {
        let history = handle::get::<History>(history)?;
        let state = history.state()?;
        let refusal = state.refusal.as_ref();
        let refusal = refusal.ok_or_else(|| Failure::none("there is no error"))?;
        put_text(refusal, buffer, size, length)
    })
}

/// Frees a reading or query. One that has not ended is canceled, also at the server. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_history_free(history: *mut corvid_history) -> corvid_error {
    guard("corvid_history_free", || {
        if let Some(history) = handle::take::<History>(history)? {
            // There is nothing to cancel if the client was freed, or belongs to another process.
            let _ = history.client.with(|client| {
                history.state()?.reading.cancel(client);
                client.flush();
                Ok(())
            });
        }
        Ok(())
    })
}
