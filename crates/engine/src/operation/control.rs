//! Operations that touch no table: `commit`, `abort`, `comment`, `assert` (docs/spec/protocol.md 5.9 to 5.11).

use corvid_data::members::{self, Kinds};
use corvid_data::{Tag, WireError};

use super::Source;
use crate::execution::Execution;

/// One of these operations, with its member.
pub(crate) enum Control<'a> {
    /// `commit`: with `durable`, the record is synced before the reply.
    Commit { is_durable: bool },
    /// `abort`: fails.
    Abort,
    /// `comment`: a text for the log.
    Comment { text: &'a [u8] },
    /// `assert`: fails unless the session owns the lock.
    Assert { lock: &'a [u8] },
}

impl<'a> Control<'a> {
    /// Reads the members of the operation `op`; `None` when it is another operation.
    pub(super) fn parse(
        op: &[u8],
        source: &mut Source<'a, '_>,
    ) -> Result<Option<Control<'a>>, WireError> {
        Ok(Some(match op {
            b"commit" => {
                let raw = source.required("durable", Kinds::BOOLEAN)?;
                Control::Commit {
                    is_durable: members::boolean(raw).unwrap_or_default(),
                }
            }
            b"abort" => Control::Abort,
            b"comment" => Control::Comment {
                text: source.required("comment", Kinds::STRING)?,
            },
            b"assert" => Control::Assert {
                lock: source.required("lock", Kinds::ID)?,
            },
            _ => return Ok(None),
        }))
    }

    /// Its index in [`crate::OPERATIONS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Control::Commit { .. } => 6,
            Control::Abort => 7,
            Control::Comment { .. } => 8,
            Control::Assert { .. } => 9,
        }
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self, Control::Commit { .. })
    }

    pub(super) fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), WireError> {
        match self {
            Control::Commit { is_durable } => execution.is_durable |= is_durable,
            Control::Abort => return Err(WireError::new(Tag::Aborted, "aborted by request")),
            Control::Comment { text } => {
                if !execution.comment.is_empty() {
                    execution.comment.push('\n');
                }
                let text = members::string(text).unwrap_or_default();
                execution.comment.push_str(&String::from_utf8_lossy(&text));
            }
            Control::Assert { lock } => {
                let lock = members::text(lock).unwrap_or_default();
                if !execution.requester.locks.owns(&lock) {
                    let details = format!("Asserted lock {lock} not held.");
                    return Err(WireError::new(Tag::NotOwner, details));
                }
            }
        }
        execution.out.extend_from_slice(b"{}");
        Ok(())
    }
}
