//! One transaction per iteration of a daemon's main loop (docs/spec/idl.md 2.8).
//!
//! In each iteration a daemon compares all contents with the desired state and writes the
//! difference. An iteration gets a transaction unless the previous one is still outstanding. It
//! also gets none if the previous one failed with [`Status::TryAgain`] and nothing has changed
//! since, because its writes would fail again.
//!
//! ```text
//! idl_loop.begin(idl)    Some: the iteration writes      None: it only reads
//! idl_loop.end(idl)      commits the open transaction, or returns the outcome of the previous one
//! ```

use crate::idl::Idl;
use crate::txn::{Status, TxnId};

/// The transactions of a main loop.
#[derive(Debug, Default)]
pub struct IdlLoop {
    /// While the change number is this one, another attempt would see the same contents as the
    /// last. 0: before the initial contents.
    skip_seqno: u64,
    committing: Option<TxnId>,
    /// The change number just before the last commit.
    precommit_seqno: u64,
}

/// The outcome of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopOutcome {
    /// There was nothing to commit, or nothing to change.
    Idle,
    /// The reply is outstanding.
    InProgress,
    /// The transaction succeeded. The replica shows its changes, so the next iteration is due at
    /// once.
    Committed,
    /// The transaction failed. If the contents have changed since, the next iteration is due at
    /// once.
    Failed {
        /// The transaction's status.
        status: Status,
        /// Whether the next iteration is due at once.
        is_due: bool,
    },
}

impl IdlLoop {
    /// A loop before its first iteration.
    #[must_use]
    pub fn new() -> IdlLoop {
        IdlLoop::default()
    }

    /// Opens the transaction of this iteration, if it gets one. `comment` names the client in the
    /// server's log. Call this after the driver has run.
    pub fn begin(&mut self, idl: &mut Idl, comment: &str) -> Option<TxnId> {
        // The end of an iteration returns the outcome of the previous transaction.
        if self.committing.is_some() || idl.change_seqno() == self.skip_seqno {
            return None;
        }
        let txn = idl.begin().ok()?;
        if !comment.is_empty() {
            idl.add_comment(comment).ok()?;
        }
        Some(txn)
    }

    /// Commits the open transaction, if any, and returns its outcome or that of the previous one.
    pub fn end(&mut self, idl: &mut Idl) -> LoopOutcome {
        if let Some(txn) = idl.open_txn() {
            self.precommit_seqno = idl.change_seqno();
            // Cannot fail: the transaction is open.
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
