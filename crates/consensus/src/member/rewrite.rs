//! Writing the member's file again, with a new snapshot: after growth, or when a failed sync has made the present file useless.
//!
//! ```text
//! SnapshotMade --> Rewrite (header, entries behind the snapshot) --> Written --> Extend(journal) --> Written --> Swap, appends held
//! ```
//!
//! Invariant: the new file takes the place only when it has every record that was requested from the present one. For that the last
//! records are held back while the journal is added for the last time.

use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_log::storage::{LogPosition, RewriteNumber, RewriteStage, StorageRequest, StoreError};
use corvid_rpc::Level;

use super::log_file::{Mark, Trouble};
use super::{Member, Output, Rewrite};
use crate::database::MemberEvent;

/// Bytes of a journal that are added while appends are held back.
const SMALL_BYTES: usize = 64 * 1024;
/// Time until a rewrite is tried again that the present file needs, ms.
const REWRITE_RETRY_MS: u64 = 1000;
/// Additions before the last one.
const ROUNDS_MAX: u32 = 8;

/// How far the new file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Written in the background.
    Writing,
    /// The journal is added for the last time; appends are held back.
    Holding,
    /// It takes the place of the present one.
    Swapping,
}

/// A new file under way.
#[derive(Debug)]
pub(super) struct Rewriting {
    pub(super) number: RewriteNumber,
    pub(super) stage: Stage,
    journal: Vec<u8>,
    rounds: u32,
    /// The contents without the journal.
    mark: Mark,
    index: Index,
    term: Term,
    eid: Eid,
    /// This is stored when the swap is lasting.
    swap_position: LogPosition,
    /// The state of the present file before the swap was requested: a swap that fails brings it back.
    before_swap: Trouble,
    /// For the answer to the database.
    token: Option<Option<u64>>,
}

fn refused(reason: &str) -> StoreError {
    StoreError {
        details: reason.to_owned(),
        io_error: String::new(),
    }
}

impl Rewriting {
    pub(super) fn journal(&mut self, records: &[u8]) {
        self.journal.extend_from_slice(records);
    }

    /// Entries from this one on are replaced.
    pub(super) fn truncate(&mut self, before: Index) {
        self.mark.last = self.mark.last.min(before);
    }

    pub(super) fn is_holding(&self) -> bool {
        self.stage == Stage::Holding
    }
}

impl Member {
    /// A sync of the present file has failed.
    pub(super) fn file_poisoned(&mut self) {
        if self.file.trouble == Trouble::Poisoned || !self.file.is_recording {
            return;
        }
        self.log(
            Level::Error,
            "a sync of the file has failed: this member stores nothing and acknowledges nothing until its file is written again, \
             which begins now"
                .to_owned(),
        );
        self.give_up_file();
    }

    /// Bytes of the present file have changed.
    pub(super) fn file_damaged(&mut self) {
        let is_replaced = self.file.rewriting.is_some() || self.is_poisoned();
        let text = "bytes of the file have changed on the disk: it is written again from memory, and until then this member stores nothing \
                    and acknowledges nothing. Replace the disk if it happens again";
        self.log(Level::Error, text.to_owned());
        if self.file.is_recording && !is_replaced {
            self.give_up_file();
        }
    }

    /// The present file is not written to any more: a new one takes its place.
    fn give_up_file(&mut self) {
        self.file.give_up();
        self.next_rewrite_ms = self.now_ms + REWRITE_RETRY_MS;
        match &mut self.file.rewriting {
            // A swap cannot be taken back, and its file may be the useless one: it is written again when the swap is over.
            Some(rewriting) if rewriting.stage == Stage::Swapping => {
                rewriting.before_swap = Trouble::Poisoned;
            }
            rewriting => {
                if let Some(rewriting) = rewriting.take() {
                    self.give_up_rewrite(&rewriting);
                }
                self.outputs.push_back(Output::MakeSnapshot);
            }
        }
        self.hand_over_leadership();
    }

    /// The time of another attempt has come. There is one as long as the file takes no records.
    pub(super) fn rewrite_time(&mut self) {
        if self.now_ms < self.next_rewrite_ms {
            return;
        }
        self.next_rewrite_ms = u64::MAX;
        if self.is_poisoned() && self.failure.is_none() {
            self.next_rewrite_ms = self.now_ms + REWRITE_RETRY_MS;
            if self.file.rewriting.is_none() && !self.is_installing() {
                self.outputs.push_back(Output::MakeSnapshot);
            }
        }
    }

    /// The database has made a snapshot of the state after `index`.
    pub(super) fn snapshot_made(
        &mut self,
        index: Index,
        eid: Eid,
        contents: Option<(Option<u64>, Snapshot)>,
    ) {
        // Findings of the algorithm up to now belong to both files.
        self.work();
        let (token, snapshot) = match contents {
            Some((token, snapshot)) => (Some(token), Some(snapshot)),
            None => (None, None),
        };
        if let Some(reason) = self.refuse_snapshot(index) {
            if self.is_poisoned() && self.file.rewriting.is_none() {
                self.next_rewrite_ms = self.now_ms + REWRITE_RETRY_MS;
            }
            match token {
                Some(token) => self.compacted(token, Err(refused(reason))),
                None => self.outputs.push_back(Output::RejectSnapshot),
            }
            return;
        }
        let term = self.node.term_of(index);
        let servers = self.membership.servers_at(index);
        let (Some(term), Some(servers)) = (term, servers) else {
            return;
        };
        let servers = servers.clone();
        let from = Mark {
            hard: (Term(0), None),
            last: index,
            commit: index,
        };
        let (records, mark) = self.file.missing(&self.node, from);
        let number = RewriteNumber(self.file.next_rewrite);
        self.file.next_rewrite += 1;
        self.file.rewriting = Some(Rewriting {
            number,
            stage: Stage::Writing,
            journal: Vec::new(),
            rounds: 0,
            mark,
            index,
            term,
            eid,
            swap_position: LogPosition::OPENING,
            before_swap: Trouble::None,
            token,
        });
        self.outputs.push_back(Output::Rewrite(Box::new(Rewrite {
            snapshot,
            number,
            cid: self.cid,
            index,
            term,
            eid,
            servers,
            election_timer_ms: self.ticker.timer_ms(),
            records: records.into_bytes(),
        })));
    }

    /// Why no snapshot of this index can be stored, in the words of docs/spec/distribution.md 1.9.
    fn refuse_snapshot(&self, index: Index) -> Option<&'static str> {
        // A file that takes no records is written again in any case: without it the server can neither join nor leave.
        if self.joining.is_some() && !self.is_poisoned() || !self.file.is_recording {
            return Some("cannot store a snapshot while joining cluster");
        }
        if self.leaving.is_some() && !self.is_poisoned() {
            return Some("cannot store a snapshot while leaving cluster");
        }
        if self.failure.is_some() || matches!(self.file.trouble, Trouble::Failed { .. }) {
            return Some("cannot store a snapshot following failure");
        }
        if self.file.rewriting.is_some() {
            return Some("a snapshot is being stored");
        }
        let is_old = index <= self.snapshot_index() && !self.is_poisoned();
        let is_known = self.node.term_of(index).is_some()
            && index <= self.node.commit()
            && self.membership.servers_at(index).is_some();
        (is_old || !is_known).then_some("not storing a duplicate snapshot")
    }

    fn compacted(&mut self, token: Option<u64>, result: Result<(), StoreError>) {
        let event = MemberEvent::Compacted { token, result };
        self.outputs.push_back(Output::Database(event));
    }

    /// A rewrite that is under way is given up.
    pub(super) fn give_up_rewrite(&mut self, rewriting: &Rewriting) {
        let request = StorageRequest::Abandon(rewriting.number);
        self.request(vec![request]);
        match rewriting.token {
            Some(token) => self.compacted(
                token,
                Err(refused("cannot store a snapshot following failure")),
            ),
            // The storage does not answer: without this the snapshot would be kept, and no other one taken.
            None if rewriting.stage != Stage::Swapping => {
                self.outputs.push_back(Output::RejectSnapshot);
            }
            None => {}
        }
    }

    /// The new file has reached a stage.
    pub(super) fn rewrite_stage(
        &mut self,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) {
        // Findings of the algorithm up to now are in the journal before it is taken.
        self.work();
        let mark = self.file.whole_mark(&self.node);
        let Some(rewriting) = &mut self.file.rewriting else {
            return;
        };
        if rewriting.number != number {
            return;
        }
        match (outcome, rewriting.stage) {
            (Ok(RewriteStage::Written), Stage::Writing) => {
                let journal = std::mem::take(&mut rewriting.journal);
                rewriting.rounds += 1;
                rewriting.mark = mark;
                if journal.len() <= SMALL_BYTES || rewriting.rounds > ROUNDS_MAX {
                    rewriting.stage = Stage::Holding;
                }
                let request = StorageRequest::Extend(number, vec![journal]);
                self.outputs.push_back(Output::Store(vec![request]));
            }
            (Ok(RewriteStage::Written), _) => self.swap(number),
            (Ok(RewriteStage::InPlace(_)), _) => {
                let (index, term, eid) = (rewriting.index, rewriting.term, rewriting.eid);
                let mark = rewriting.mark;
                self.file.replaced(mark);
                self.new_snapshot(index, term, eid);
            }
            (Ok(RewriteStage::Lasting), _) => {
                let (position, token) = (rewriting.swap_position, rewriting.token);
                self.file.rewriting = None;
                self.release(position);
                if let Some(token) = token {
                    self.compacted(token, Ok(()));
                }
                if self.is_poisoned() {
                    self.outputs.push_back(Output::MakeSnapshot);
                }
            }
            (Err(error), _) => self.rewrite_failed(&error),
        }
    }

    /// The new file has everything that was requested before the held appends: it takes the place, and they follow.
    fn swap(&mut self, number: RewriteNumber) {
        if self.file.trouble != Trouble::None {
            self.file.forget_failures();
        }
        let position = self.file.take_position();
        let mark = self.file.whole_mark(&self.node);
        let Some(rewriting) = &mut self.file.rewriting else {
            return;
        };
        rewriting.stage = Stage::Swapping;
        rewriting.before_swap = self.file.trouble;
        let record = std::mem::take(&mut rewriting.journal);
        let mut requests = vec![StorageRequest::Swap(number)];
        if record.is_empty() && self.file.trouble == Trouble::None {
            rewriting.swap_position = position;
        } else {
            // After trouble even an empty record: its sync, which the directory's belongs to, is what promises wait for. The answer to a
            // later record that nobody syncs would come before the new file is lasting.
            requests.push(StorageRequest::Append {
                position,
                record,
                durable: true,
            });
        }
        if self.file.trouble != Trouble::None {
            // The present file took nothing; everything is in the new one or follows the swap.
            self.file.trouble = Trouble::None;
            self.file.wait_for_all(mark);
            requests.insert(0, StorageRequest::Recover);
        }
        self.outputs.push_back(Output::Store(requests));
    }

    fn rewrite_failed(&mut self, error: &StoreError) {
        let Some(rewriting) = self.file.rewriting.take() else {
            return;
        };
        self.log(
            Level::Error,
            format!(
                "the file could not be written again ({}: {}); this is tried again",
                error.details, error.io_error
            ),
        );
        if let Some(token) = rewriting.token {
            self.compacted(token, Err(error.clone()));
        }
        if rewriting.stage == Stage::Swapping {
            match rewriting.before_swap {
                Trouble::None => {}
                Trouble::Failed { .. } => {
                    self.file.failed(self.now_ms);
                }
                Trouble::Poisoned => self.file.give_up(),
            }
        }
        if self.is_poisoned() {
            self.next_rewrite_ms = self.now_ms + REWRITE_RETRY_MS;
        } else if rewriting.stage == Stage::Holding && !rewriting.journal.is_empty() {
            let position = self.file.take_position();
            let request = StorageRequest::Append {
                position,
                record: rewriting.journal,
                durable: true,
            };
            self.outputs.push_back(Output::Store(vec![request]));
        }
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.file.trouble == Trouble::Poisoned
    }
}
