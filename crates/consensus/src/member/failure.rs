//! The end of a member's part in its cluster: it does not vote, acknowledge or serve any more.
//!
//! If the reason is its log, a note in its file says so, and a restart begins with it ([`Unfit`]).
//! Without the note the member would serve its log until it hears the leader's next append.
//!
//! Invariant: a failed member sends nothing and handles no message, and nothing but a new file ends
//! that. The note is written when the file takes records; nobody waits for it, because a member
//! without it finds out again before it acknowledges anything.

use corvid_log::cluster::Unfit;
use corvid_rpc::Level;

use super::log_file::Trouble;
use super::records::Records;
use super::status::FileState;
use super::{Member, Output};

/// See the module.
#[derive(Debug)]
pub(super) struct Failure {
    /// The fault of its log; `None`: another one.
    unfit: Option<Unfit>,
    reason: String,
    /// Reason and advice.
    pub(super) text: String,
    is_noted: bool,
}

impl Failure {
    fn new(unfit: Option<Unfit>, reason: &str) -> Failure {
        let advice = match unfit {
            Some(Unfit::Diverged) => {
                "Keep its file: it may be the only copy of commits that clients were told of, and \"ovsdb-tool cluster-to-standalone\" \
                 makes them readable. Then remove this member from the cluster (cluster/kick at another member) and join the cluster again \
                 with a new file"
            }
            Some(Unfit::Lost) | None => {
                "Remove it from the cluster (cluster/kick at another member), remove its file, and join the cluster again"
            }
        };
        Failure {
            unfit,
            reason: reason.to_owned(),
            text: format!("{reason}. This member does not vote or serve any more. {advice}"),
            is_noted: unfit.is_none(),
        }
    }

    /// The state of the file that this failure shows.
    pub(super) fn file_state(&self) -> FileState {
        match self.unfit {
            Some(Unfit::Diverged) => FileState::Diverged,
            Some(Unfit::Lost) | None => FileState::Lost,
        }
    }
}

impl Member {
    /// This member cannot take part any more.
    pub(super) fn fail(&mut self, reason: &str) {
        self.failed(Failure::new(None, reason));
    }

    /// Its log is not what it must be.
    pub(super) fn fail_unfit(&mut self, unfit: Unfit, reason: &str) {
        self.failed(Failure::new(Some(unfit), reason));
    }

    /// Its file says that it was found to be unfit before.
    pub(super) fn fail_again(&mut self, unfit: Unfit, reason: &str) {
        self.failed(Failure {
            is_noted: true,
            ..Failure::new(Some(unfit), reason)
        });
    }

    /// Requests to the file have failed, perhaps that with the note.
    pub(super) fn failure_unnoted(&mut self) {
        if let Some(failure) = &mut self.failure {
            failure.is_noted = failure.unfit.is_none();
        }
    }

    fn failed(&mut self, failure: Failure) {
        self.log(Level::Error, failure.text.clone());
        self.outputs.push_back(Output::Failed(failure.text.clone()));
        self.failure = Some(failure);
    }

    /// Writes the note, unless the file takes no record now or is being replaced: then it is tried
    /// again in a later turn.
    pub(super) fn note_failure(&mut self) {
        let is_ready = self.file.trouble == Trouble::None && self.file.rewriting.is_none();
        let Some(failure) = self.failure.as_mut().filter(|it| !it.is_noted && is_ready) else {
            return;
        };
        failure.is_noted = true;
        if let Some(unfit) = failure.unfit {
            let mut records = Records::default();
            records.note(unfit.note(), failure.reason.clone());
            records.must_last();
            let mut requests = Vec::new();
            self.file.append(records, &mut requests);
            self.request(requests);
        }
    }
}
