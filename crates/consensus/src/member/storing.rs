//! Requests to the storage, and its answers: stored work is reported to the algorithm, and the messages that waited for it leave.

use corvid_log::storage::{LogPosition, StorageRequest, StoreError};
use corvid_rpc::Level;

use super::log_file::Trouble;
use super::{Member, Output, rewrite};

impl Member {
    /// Records through this position are stored.
    pub(super) fn release(&mut self, position: LogPosition) {
        if self.file.trouble != Trouble::None && self.file.trouble != Trouble::Poisoned {
            if !self.file.is_waiting() {
                return;
            }
            self.file.trouble = Trouble::None;
            let text = "the file takes records again: this member has stored what was missing";
            self.log(Level::Info, text.to_owned());
        }
        let stored = self.file.answered(position);
        if let Some(number) = stored.number {
            self.node.stored(number);
        }
        self.send_all(stored.messages);
        // Records that were made while the file was in trouble.
        let mut requests = Vec::new();
        let number = self.file.catch_up(&self.node, &mut requests);
        self.request(requests);
        if let Some(number) = number {
            self.node.stored(number);
        }
    }

    pub(super) fn append_failed(&mut self, error: &StoreError) {
        let is_swapping = |it: &rewrite::Rewriting| it.stage == rewrite::Stage::Swapping;
        if !self.is_poisoned()
            && let Some(rewriting) = self.file.rewriting.take_if(|it| !is_swapping(it))
        {
            self.give_up_rewrite(&rewriting);
        }
        self.failure_unnoted();
        if !self.file.failed(self.now_ms) {
            return;
        }
        self.log(
            Level::Error,
            format!(
                "{}: {}; this member acknowledges nothing until the file takes records again, which is tried until it succeeds: \
                 check the disk",
                error.details, error.io_error
            ),
        );
        self.hand_over_leadership();
    }

    pub(super) fn request(&mut self, requests: Vec<StorageRequest>) {
        if !requests.is_empty() {
            self.outputs.push_back(Output::Store(requests));
        }
    }
}
