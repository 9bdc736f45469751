//! Operations that touch no table: `commit`, `abort`, `comment`, `assert` (docs/spec/protocol.md
//! 5.9 to 5.11).

use corvid_data::members::{self, Kinds};
use corvid_data::{Tag, WireError};

use super::{Executable, Source};
use crate::execution::{Execution, Failure};

/// The members of a `commit`.
pub(crate) struct Commit {
    is_durable: bool,
}

/// An `abort`, which has no members and always fails.
pub(crate) struct Abort;

/// The members of a `comment`: a text for the log.
pub(crate) struct Comment<'a> {
    text: &'a [u8],
}

/// The members of an `assert`, which fails unless the session owns the lock.
pub(crate) struct Assert<'a> {
    lock: &'a [u8],
}

impl<'a> Executable<'a> for Commit {
    fn parse(source: &mut Source<'a, '_>) -> Result<Commit, WireError> {
        let raw = source.required("durable", Kinds::BOOLEAN)?;
        Ok(Commit {
            is_durable: members::boolean(raw).unwrap_or_default(),
        })
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        // One durable `commit` suffices: a later one with `durable: false` takes nothing back.
        execution.is_durable |= self.is_durable;
        write_empty(execution);
        Ok(())
    }
}

impl<'a> Executable<'a> for Abort {
    fn parse(_: &mut Source<'a, '_>) -> Result<Abort, WireError> {
        Ok(Abort)
    }

    fn execute(self, _: &mut Execution<'_, '_>) -> Result<(), Failure> {
        Err(WireError::new(Tag::Aborted, "aborted by request").into())
    }
}

impl<'a> Executable<'a> for Comment<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Comment<'a>, WireError> {
        Ok(Comment {
            text: source.required("comment", Kinds::STRING)?,
        })
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        if !execution.comment.is_empty() {
            execution.comment.push('\n');
        }
        let text = members::string(self.text).unwrap_or_default();
        execution.comment.push_str(&String::from_utf8_lossy(&text));
        write_empty(execution);
        Ok(())
    }
}

impl<'a> Executable<'a> for Assert<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Assert<'a>, WireError> {
        Ok(Assert {
            lock: source.required("lock", Kinds::ID)?,
        })
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let lock = members::text(self.lock).unwrap_or_default();
        if !execution.requester.locks.owns(&lock) {
            let details = format!("Asserted lock {lock} not held.");
            return Err(WireError::new(Tag::NotOwner, details).into());
        }
        write_empty(execution);
        Ok(())
    }
}

/// Appends the result of an operation that returns nothing.
fn write_empty(execution: &mut Execution<'_, '_>) {
    execution.out.extend_from_slice(b"{}");
}
