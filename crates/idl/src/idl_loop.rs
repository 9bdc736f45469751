//! One transaction a turn of a main loop: the discipline that daemons follow (docs/spec/idl.md 2.8).
//!
//! A daemon looks at everything at each turn and writes what should be. At the beginning of a turn it may have a transaction, unless the
//! one before is still on its way, or nothing has changed since that one failed for a reason that time must cure; then its writes would
//! only fail again.
//!
//! ```text
//! turns.begin(idl)    Some: the loop writes      None: it only reads
//! turns.end(idl)      commits what was written, or looks what became of what was committed before
//! ```

use crate::idl::Idl;
use crate::txn::{Status, TxnId};

/// Where a main loop is with its transactions.
#[derive(Debug, Default)]
pub struct IdlLoop {
    /// At this change number another attempt would see what the last one saw. 0: before the first contents.
    skip_seqno: u64,
    committing: Option<TxnId>,
    /// Before the commit.
    precommit_seqno: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopOutcome {
    /// There was nothing to commit, or nothing to change.
    Idle,
    /// The answer is awaited.
    InProgress,
    /// The transaction succeeded. What it changed shows, so the next turn is due at once.
    Committed,
    /// It failed like this. Where `is_due`, the next turn can see something else already, so it need not wait.
    Failed {
        /// How.
        status: Status,
        /// Whether the next turn is due at once.
        is_due: bool,
    },
}

impl IdlLoop {
    /// Before the first turn.
    #[must_use]
    pub fn new() -> IdlLoop {
        IdlLoop::default()
    }

    /// The transaction of this turn, if it may have one; `comment` tells the server's log who it is of. Call it when the driver has run.
    pub fn begin(&mut self, idl: &mut Idl, comment: &str) -> Option<TxnId> {
        // What became of the one before is told at the end of a turn, never swallowed.
        if self.committing.is_some() || idl.change_seqno() == self.skip_seqno {
            return None;
        }
        let txn = idl.begin().ok()?;
        if !comment.is_empty() {
            idl.add_comment(comment).ok()?;
        }
        Some(txn)
    }

    /// Commits the open transaction, if there is one, and tells what became of it or of the one before.
    pub fn end(&mut self, idl: &mut Idl) -> LoopOutcome {
        if let Some(txn) = idl.open_txn() {
            self.precommit_seqno = idl.change_seqno();
            // It is open, so it can be committed.
            let _ = idl.commit();
            self.committing = Some(txn);
        }
        self.finish(idl)
    }

    fn finish(&mut self, idl: &mut Idl) -> LoopOutcome {
        let Some(txn) = self.committing else {
            return LoopOutcome::Idle;
        };
        let status = idl.status(txn).unwrap_or(Status::Aborted);
        if status == Status::Incomplete {
            return LoopOutcome::InProgress;
        }
        self.committing = None;
        idl.forget(txn);
        match status {
            Status::Success => LoopOutcome::Committed,
            Status::Unchanged => LoopOutcome::Idle,
            status => {
                if status == Status::TryAgain {
                    self.skip_seqno = self.precommit_seqno;
                }
                let is_due = idl.change_seqno() != self.precommit_seqno;
                LoopOutcome::Failed { status, is_due }
            }
        }
    }
}
