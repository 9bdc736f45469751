//! Results of calls: a code, and a text for each thread.
//!
//! Invariant: no panic passes [`guard`]. A panic under the lock of a client poisons the lock, so
//! later calls for this client report [`corvid_error::CORVID_ERR_PANIC`] too.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use corvid::data::WireError;
use corvid::fork::LockError;
use corvid::{Misuse, Tag};

use crate::logging;

/// The result of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum corvid_error {
    /// The call succeeded.
    CORVID_OK = 0,
    /// A required pointer is null.
    CORVID_ERR_NULL = 1,
    /// A handle is null, was freed, is of another type, or its client was freed.
    CORVID_ERR_HANDLE = 2,
    /// An argument is out of its range or malformed.
    CORVID_ERR_ARGUMENT = 3,
    /// The schema has no such table or column, or is no schema.
    CORVID_ERR_SCHEMA = 4,
    /// A remote is malformed, or needs TLS files that are missing.
    CORVID_ERR_REMOTE = 5,
    /// The row is not there, or no longer.
    CORVID_ERR_ROW_GONE = 6,
    /// The column belongs to another table, is not replicated, or is immutable.
    CORVID_ERR_COLUMN = 7,
    /// The value has another type than the column, or breaks its constraints.
    CORVID_ERR_TYPE = 8,
    /// A transaction is open, which the call does not allow.
    CORVID_ERR_TXN_OPEN = 9,
    /// The transaction is not open any more.
    CORVID_ERR_TXN_CLOSED = 10,
    /// The transaction does not allow this: it is read-only, the UUID is in use, or it increments a
    /// column already.
    CORVID_ERR_TXN = 11,
    /// The client is not connected, or has no contents yet.
    CORVID_ERR_NOT_CONNECTED = 12,
    /// There is nothing of the kind: the end of a cursor, no such value, no log message.
    CORVID_ERR_NONE = 13,
    /// Too many objects, or the system refused a resource.
    CORVID_ERR_LIMIT = 14,
    /// The library has failed, now or earlier with this client. The client is unusable: free it.
    CORVID_ERR_PANIC = 15,
    /// The client was connected by the process that this one was forked from. See
    /// corvid_inherit_connections.
    CORVID_ERR_FORKED = 16,
}

use corvid_error::{
    CORVID_ERR_ARGUMENT, CORVID_ERR_COLUMN, CORVID_ERR_FORKED, CORVID_ERR_HANDLE, CORVID_ERR_NONE,
    CORVID_ERR_NULL, CORVID_ERR_PANIC, CORVID_ERR_ROW_GONE, CORVID_ERR_TXN, CORVID_ERR_TXN_CLOSED,
    CORVID_ERR_TXN_OPEN, CORVID_ERR_TYPE, CORVID_OK,
};

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: corvid_error,
    pub(crate) text: Cow<'static, str>,
    /// For a value that breaks a constraint: the error in the words of a server.
    constraint: Option<Box<WireError>>,
}

impl Failure {
    pub(crate) fn new(code: corvid_error, text: impl Into<Cow<'static, str>>) -> Failure {
        Failure {
            code,
            text: text.into(),
            constraint: None,
        }
    }

    /// A value that breaks a constraint.
    pub(crate) fn constraint(error: WireError) -> Failure {
        Failure {
            code: CORVID_ERR_TYPE,
            text: error.to_string().into(),
            constraint: Some(Box::new(error)),
        }
    }

    /// The failure as the error of a transaction; `subject` says which change failed.
    pub(crate) fn to_wire_error(&self, subject: &str) -> WireError {
        match &self.constraint {
            Some(error) => WireError::clone(error),
            None => {
                let tag = match self.code {
                    CORVID_ERR_TYPE | CORVID_ERR_NULL => Tag::ConstraintViolation,
                    _ => Tag::OvsdbError,
                };
                WireError::new(tag, format!("{subject}: {}", self.text))
            }
        }
    }

    pub(crate) fn argument(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(CORVID_ERR_ARGUMENT, text)
    }

    pub(crate) fn null(name: &'static str) -> Failure {
        Failure::new(CORVID_ERR_NULL, format!("{name} is null"))
    }

    /// The state of an object (`subject`) cannot be had.
    pub(crate) fn locking(subject: &str, error: LockError) -> Failure {
        match error {
            LockError::Poisoned => Failure::new(
                CORVID_ERR_PANIC,
                format!("the {subject} has failed and is unusable; free it"),
            ),
            LockError::LeftLocked => Misuse::Forked.into(),
        }
    }

    pub(crate) fn none(text: &'static str) -> Failure {
        Failure::new(CORVID_ERR_NONE, text)
    }

    /// Whether it is a mistake in the program, which belongs in the log.
    fn is_misuse(&self) -> bool {
        matches!(
            self.code,
            CORVID_ERR_NULL
                | CORVID_ERR_HANDLE
                | CORVID_ERR_ARGUMENT
                | CORVID_ERR_COLUMN
                | CORVID_ERR_TYPE
                | CORVID_ERR_TXN_OPEN
                | CORVID_ERR_TXN_CLOSED
                | CORVID_ERR_TXN
                | CORVID_ERR_FORKED
        )
    }
}

impl From<Misuse> for Failure {
    fn from(misuse: Misuse) -> Failure {
        if let Misuse::Constraint(error) = misuse {
            return Failure::constraint(error);
        }
        let code = match &misuse {
            Misuse::NoTransaction => CORVID_ERR_TXN_CLOSED,
            Misuse::TransactionOpen => CORVID_ERR_TXN_OPEN,
            Misuse::RowGone => CORVID_ERR_ROW_GONE,
            Misuse::LockName(_) => CORVID_ERR_ARGUMENT,
            Misuse::Forked => CORVID_ERR_FORKED,
            Misuse::WrongTable | Misuse::NotReplicated | Misuse::Immutable => CORVID_ERR_COLUMN,
            Misuse::WrongType | Misuse::Condition(_) => CORVID_ERR_TYPE,
            _ => CORVID_ERR_TXN,
        };
        Failure::new(code, misuse.to_string())
    }
}

pub(crate) type Outcome = Result<(), Failure>;

thread_local! {
    /// The text of the last failure in this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of an exported function.
pub(crate) fn guard(name: &'static str, work: impl FnOnce() -> Outcome) -> corvid_error {
    let code = guard_silently(name, work);
    logging::deliver();
    code
}

/// As [`guard`], for a call that may find nothing: CORVID_ERR_NONE then. Programs ask after every
/// run, so that is no failure, and the text of the last one stays.
pub(crate) fn guard_find(
    name: &'static str,
    work: impl FnOnce() -> Result<Option<()>, Failure>,
) -> corvid_error {
    let mut is_found = true;
    let code = guard(name, || {
        is_found = work()?.is_some();
        Ok(())
    });
    if is_found { code } else { CORVID_ERR_NONE }
}

fn guard_silently(name: &'static str, work: impl FnOnce() -> Outcome) -> corvid_error {
    // After a panic the state behind a lock is out of reach, because the lock is poisoned.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => CORVID_OK,
        Ok(Err(failure)) => {
            report(name, &failure);
            failure.code
        }
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string));
            let text = text.unwrap_or_else(|| "a panic".to_owned());
            report(name, &Failure::new(CORVID_ERR_PANIC, text));
            // A payload whose destructor panics must not end the process.
            std::mem::forget(payload);
            CORVID_ERR_PANIC
        }
    }
}

/// Stores the text of a failure for [`corvid_error_text`], and logs misuse.
pub(crate) fn report(name: &str, failure: &Failure) {
    // The first call of a program may be the wrong one.
    logging::install();
    let text = format!("{name}: {}", failure.text);
    if failure.code == CORVID_ERR_PANIC {
        log::error!(target: corvid::LOG_TARGET, "{text}");
    } else if failure.is_misuse() {
        log::warn!(target: corvid::LOG_TARGET, "{text}");
    }
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no text any more.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Takes the text of this thread's last failure, while a handler of the program runs.
pub(crate) fn take_text() -> CString {
    LAST.try_with(RefCell::take).unwrap_or_default()
}

/// Puts it back. A program may have its address.
pub(crate) fn put_text(text: CString) {
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The text of the last failure of a call by this thread; empty if there was none. It belongs to
/// the library and stays valid until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_error_text() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// The name of a code, for messages: "CORVID_ERR_NULL". A constant of the library.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_error_name(code: c_int) -> *const c_char {
    let names = [
        c"CORVID_OK",
        c"CORVID_ERR_NULL",
        c"CORVID_ERR_HANDLE",
        c"CORVID_ERR_ARGUMENT",
        c"CORVID_ERR_SCHEMA",
        c"CORVID_ERR_REMOTE",
        c"CORVID_ERR_ROW_GONE",
        c"CORVID_ERR_COLUMN",
        c"CORVID_ERR_TYPE",
        c"CORVID_ERR_TXN_OPEN",
        c"CORVID_ERR_TXN_CLOSED",
        c"CORVID_ERR_TXN",
        c"CORVID_ERR_NOT_CONNECTED",
        c"CORVID_ERR_NONE",
        c"CORVID_ERR_LIMIT",
        c"CORVID_ERR_PANIC",
        c"CORVID_ERR_FORKED",
    ];
    let known = usize::try_from(code).ok().and_then(|code| names.get(code));
    known.unwrap_or(&c"unknown").as_ptr()
}
