//! The end of a member's part in its cluster: it no longer votes, acknowledges or serves.
//!
//! If its log is the reason, a note in its file says so, and a restart begins with that note
//! ([`Unfit`]). Without it the member would serve its log until it hears the leader's next append.
//!
//! Invariant: a failed member sends nothing and handles no message, until it gets a new file. The
//! note is written as soon as the file accepts records. Nothing waits for it, because a member
//! without the note detects the problem again before it acknowledges anything.

use corvid_log::cluster::Unfit;

use super::disk::records::Records;
use super::status::FileState;

/// Why a member no longer takes part.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The fault of its log; `None` if the reason is another one.
    unfit: Option<Unfit>,
    reason: String,
    /// Reason and advice for operators.
    text: String,
    is_noted: bool,
}

impl Failure {
    /// A failure that has nothing to do with the log.
    pub(crate) fn other(reason: &str) -> Failure {
        Failure::new(None, reason)
    }

    /// A log that lost entries or diverged.
    pub(crate) fn unfit(unfit: Unfit, reason: &str) -> Failure {
        Failure::new(Some(unfit), reason)
    }

    /// A failure that a note in the file recorded earlier.
    pub(crate) fn noted(unfit: Unfit, reason: &str) -> Failure {
        Failure {
            is_noted: true,
            ..Failure::new(Some(unfit), reason)
        }
    }

    fn new(unfit: Option<Unfit>, reason: &str) -> Failure {
        let advice = match unfit {
            Some(Unfit::Diverged) => {
                "Keep its file: it may be the only copy of acknowledged commits, and \"ovsdb-tool \
                 cluster-to-standalone\" makes them readable. Then remove this member from the cluster \
                 (cluster/kick at another member) and join the cluster again with a new file"
            }
            Some(Unfit::Lost) | None => {
                "Remove it from the cluster (cluster/kick at another member), remove its file, and join the cluster again"
            }
        };
        Failure {
            unfit,
            reason: reason.to_owned(),
            text: format!("{reason}. This member no longer votes or serves clients. {advice}"),
            is_noted: unfit.is_none(),
        }
    }

    /// The file state that this failure implies.
    pub(crate) fn file_state(&self) -> FileState {
        match self.unfit {
            Some(Unfit::Diverged) => FileState::Diverged,
            Some(Unfit::Lost) | None => FileState::Lost,
        }
    }

    /// Reason and advice for operators.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Requests to the file have failed, perhaps the one with the note.
    pub(crate) fn forget_note(&mut self) {
        self.is_noted = self.unfit.is_none();
    }

    /// The note for the file, unless it has been requested already.
    pub(crate) fn take_note(&mut self) -> Option<Records> {
        if std::mem::replace(&mut self.is_noted, true) {
            return None;
        }
        let unfit = self.unfit?;
        let mut records = Records::default();
        records.note(unfit.note(), self.reason.clone());
        // Without a sync, a restart might serve the log before it hears from its leader.
        records.must_last();
        Some(records)
    }
}
