//! Rewriting the member's file with a new snapshot: after growth, because a failed sync has made
//! the present file unusable, or to make room on a full disk.
//!
//! ```text
//! SnapshotMade --> Rewrite (header, entries after the snapshot) --> Written
//!              --> Extend (journal) --> Written                 repeated while the journal is long
//!              --> Extend (journal), appends held --> Written
//!              --> Swap, then the held appends
//! ```
//!
//! Invariant: the swap happens only once the new file has every record that was requested from the
//! present one. For that, appends are held back while the journal is added for the last time.
//!
//! After a failed append, the new file gets what the present one certainly holds, and no more,
//! because it must fit in what is left of the disk. Nothing is appended to either until the new
//! one lasts; then the retry appends what is missing to it:
//!
//! ```text
//! append fails --SnapshotMade--> Rewrite (header, held entries after the snapshot) --> Written
//!              --> Swap --> Lasting, then the retry
//! ```

use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, Servers, Term};
use corvid_log::storage::{
    LogPosition, RecordText, RewriteNumber, RewriteStage, StorageRequest, StoreError,
};
use corvid_rpc::Level;

use super::log_file::{Mark, Trouble};
use super::{Disk, StoredSnapshot};
use crate::database::MemberEvent;
use crate::member::context::Context;
use crate::member::{Output, Rewrite};

/// Maximum size of a journal that is added while appends are held back, bytes.
const SMALL_BYTES: usize = 64 * 1024;
/// Time until a rewrite that the present file needs is retried, ms.
const REWRITE_RETRY_MS: u64 = 1000;
/// Maximum number of journal additions before the last one.
const ROUNDS_MAX: u32 = 8;

/// Why a joining server stores no snapshot.
pub(crate) const JOINING: &str = "cannot store a snapshot while joining cluster";
/// Why a member stores none while it stores another one.
pub(crate) const STORING: &str = "a snapshot is being stored";
/// Why a member whose file is damaged stores none.
const DAMAGED: &str = "cannot store a snapshot into a damaged file";
/// Why a member that has failed stores none, or whose file fails while it stores one.
const FAILED: &str = "cannot store a snapshot following failure";
/// Why a member stores none while it appends again what could not be appended.
const RETRYING: &str = "cannot store a snapshot while a failed write is repeated, try again";
/// Why a member stores none that includes nothing new.
const DUPLICATE: &str = "not storing a duplicate snapshot";
/// Why a leaving member stores none.
pub(crate) const LEAVING: &str = "cannot store a snapshot while leaving cluster";

/// The progress of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Written in the background.
    Writing,
    /// The journal is being added for the last time; appends are held back.
    Holding,
    /// Being swapped in.
    Swapping,
}

/// A rewrite in progress.
#[derive(Debug)]
pub(crate) struct Rewriting {
    number: RewriteNumber,
    pub(super) stage: Stage,
    journal: Vec<u8>,
    rounds: u32,
    /// The state of the new file without the journal.
    mark: Mark,
    snapshot: StoredSnapshot,
    /// Everything up to this position is stored once the swap is durable.
    swap_position: LogPosition,
    /// The state of the present file before the swap was requested. A failed swap restores it.
    before_swap: Trouble,
    /// For the answer to the database; `None` if the caller has the contents.
    token: Option<Option<u64>>,
}

fn refused(reason: &str) -> StoreError {
    StoreError {
        details: reason.to_owned(),
        io_error: String::new(),
    }
}

impl Rewriting {
    pub(crate) fn journal(&mut self, records: &RecordText) {
        for piece in records.slices() {
            self.journal.extend_from_slice(piece);
        }
    }

    /// Entries after this one are being replaced.
    pub(crate) fn truncate(&mut self, before: Index) {
        self.mark.last = self.mark.last.min(before);
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.stage == Stage::Holding
    }
}

/// A snapshot that the database has made of itself.
#[derive(Debug)]
pub(crate) struct Made {
    /// The last entry that it includes.
    pub(crate) index: Index,
    /// The id of the last entry with data that it includes.
    pub(crate) eid: Eid,
    /// The database's token and contents; `None` if the caller has the contents.
    pub(crate) contents: Option<(Option<u64>, Snapshot)>,
}

/// The progress of a rewrite, as far as other parts are concerned.
#[derive(Debug)]
pub(crate) enum Progress {
    /// No change for other parts.
    None,
    /// The new file is in place: the file has this snapshot.
    InPlace(StoredSnapshot),
    /// A crash cannot bring the old file back: everything up to this position is stored.
    /// [`Disk::end_rewrite`] then tells the database.
    Lasting {
        position: LogPosition,
        token: Option<Option<u64>>,
    },
}

impl Disk {
    /// A sync of the present file has failed. Returns whether that is news; another member should
    /// lead then.
    pub(crate) fn poison(&mut self, cx: &mut Context) -> bool {
        if self.is_poisoned() || !self.file.is_recording {
            return false;
        }
        cx.log(
            Level::Error,
            "a sync of the file has failed: this member stores and acknowledges nothing until it has \
             rewritten its file, which begins now"
                .to_owned(),
        );
        self.give_up_file(cx);
        true
    }

    /// Bytes of the present file have changed. Returns whether another member should lead.
    pub(crate) fn damage(&mut self, cx: &mut Context) -> bool {
        let is_replaced = self.is_rewriting() || self.is_poisoned();
        let text = "bytes of the file have changed on the disk: this member rewrites its file from memory, and \
                    stores and acknowledges nothing until then. Replace the disk if this happens again";
        cx.log(Level::Error, text.to_owned());
        let is_given_up = self.file.is_recording && !is_replaced;
        if is_given_up {
            self.give_up_file(cx);
        }
        is_given_up
    }

    /// Abandons the present file: no more records go to it, and a new one takes its place.
    fn give_up_file(&mut self, cx: &mut Context) {
        // Stop requesting first: from here on promises are dropped until the new file is in place.
        self.file.give_up();
        self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
        match &mut self.file.rewriting {
            // A swap cannot be taken back, and the file being swapped in may be the unusable one.
            // So it is rewritten once more after the swap.
            Some(rewriting) if rewriting.stage == Stage::Swapping => {
                rewriting.before_swap = Trouble::Poisoned;
            }
            rewriting => {
                if let Some(rewriting) = rewriting.take() {
                    self.give_up_rewrite(cx, &rewriting);
                }
                cx.put(Output::MakeSnapshot);
            }
        }
    }

    /// Retries a rewrite, if it is time. Retries continue as long as the file accepts no records.
    pub(crate) fn rewrite_time(&mut self, cx: &mut Context, is_installing: bool) {
        if cx.now_ms < self.next_rewrite_ms {
            return;
        }
        self.next_rewrite_ms = u64::MAX;
        if self.is_poisoned() && !cx.has_failed() {
            self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
            if !self.is_rewriting() && !is_installing {
                cx.put(Output::MakeSnapshot);
            }
        }
    }

    /// The database has made a snapshot, with which a new file is written. `servers` is the list as
    /// of its last entry. `refusal` is a reason not to compact a file that still accepts records.
    /// `is_installing`: a snapshot of the leader is about to replace the file, and a second new
    /// file beside it would lack the entries of the first one.
    pub(crate) fn compact(
        &mut self,
        cx: &mut Context,
        made: Made,
        (servers, timer_ms): (Option<Servers>, u64),
        refusal: Option<&'static str>,
        is_installing: bool,
    ) {
        let Made {
            index,
            eid,
            contents,
        } = made;
        let (token, snapshot) = match contents {
            Some((token, snapshot)) => (Some(token), Some(snapshot)),
            None => (None, None),
        };
        let is_busy = is_installing || self.is_rewriting();
        if let Some(reason) = self.refuse_snapshot(cx, index, servers.is_some(), is_busy, refusal) {
            if self.is_poisoned() && !self.is_rewriting() {
                self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
            }
            match token {
                Some(token) => tell_compacted(cx, token, Err(refused(reason))),
                None => cx.put(Output::RejectSnapshot(reason)),
            }
            return;
        }
        let (Some(term), Some(servers)) = (cx.node.term_of(index), servers) else {
            return;
        };
        // A snapshot past the commit index would open as entries on which no quorum has agreed.
        assert!(
            index <= cx.node.commit(),
            "a snapshot through {index}, but {} is committed",
            cx.node.commit()
        );
        // The new file starts from the snapshot alone, so term, vote and every later entry must be
        // written. The mark says what the new file will hold; later records reach it through the
        // journal, or by the retry.
        let from = Mark {
            hard: (Term(0), None),
            last: index,
            commit: index,
        };
        let (records, mark) = if self.file.is_between_retries() {
            // Failures of older appends may still arrive. They must not end the new file.
            self.file.forget_failures();
            self.file.held(&cx.node, from)
        } else {
            self.file.missing(&cx.node, from)
        };
        let number = RewriteNumber(self.file.next_rewrite);
        self.file.next_rewrite += 1;
        self.file.rewriting = Some(Rewriting {
            number,
            stage: Stage::Writing,
            journal: Vec::new(),
            rounds: 0,
            mark,
            snapshot: StoredSnapshot { index, term, eid },
            swap_position: LogPosition::OPENING,
            before_swap: Trouble::None,
            token,
        });
        cx.put(Output::Rewrite(Box::new(Rewrite {
            snapshot,
            number,
            cid: cx.cid,
            index,
            term,
            eid,
            servers,
            election_timer_ms: timer_ms,
            records: records.into_text().into(),
        })));
    }

    /// Why no snapshot of this index can be stored, in the words of docs/spec/distribution.md 1.9.
    fn refuse_snapshot(
        &self,
        cx: &Context,
        index: Index,
        has_servers: bool,
        is_busy: bool,
        refusal: Option<&'static str>,
    ) -> Option<&'static str> {
        if self.is_repairing() {
            return Some(DAMAGED);
        }
        if !self.file.is_recording {
            return Some(JOINING);
        }
        // A file that accepts no records is rewritten in any case: without it the server can
        // neither join nor leave.
        if refusal.is_some() && !self.is_poisoned() {
            return refusal;
        }
        if cx.has_failed() {
            return Some(FAILED);
        }
        if is_busy {
            return Some(STORING);
        }
        // A retry that succeeds after the new file has begun would be missing there.
        if matches!(self.file.trouble, Trouble::Failed { .. }) && self.file.is_waiting() {
            return Some(RETRYING);
        }
        // The log in memory does not yield entries that the file's snapshot includes. An older
        // snapshot would leave a gap before the first entry. The database makes another one soon.
        let is_old =
            index < self.snapshot.index || index == self.snapshot.index && !self.is_poisoned();
        let is_known = cx.node.term_of(index).is_some() && index <= cx.node.commit() && has_servers;
        (is_old || !is_known).then_some(DUPLICATE)
    }

    /// An append to the present file has failed: abandons a rewrite that is not being swapped in
    /// yet.
    pub(crate) fn give_up_unswapped(&mut self, cx: &mut Context) {
        let is_swapping = |it: &Rewriting| it.stage == Stage::Swapping;
        if !self.is_poisoned()
            && let Some(rewriting) = self.file.rewriting.take_if(|it| !is_swapping(it))
        {
            self.give_up_rewrite(cx, &rewriting);
        }
    }

    /// Abandons a rewrite in progress.
    pub(crate) fn give_up_rewrite(&self, cx: &mut Context, rewriting: &Rewriting) {
        cx.store(vec![StorageRequest::Abandon(rewriting.number)]);
        match rewriting.token {
            Some(token) => tell_compacted(cx, token, Err(refused(FAILED))),
            // The storage sends no reply for an abandoned rewrite. Without this output the caller
            // would keep the snapshot and take no other.
            None if rewriting.stage != Stage::Swapping => cx.put(Output::RejectSnapshot(FAILED)),
            None => {}
        }
    }

    /// A new file has reached a stage.
    pub(crate) fn advance_rewrite(
        &mut self,
        cx: &mut Context,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) -> Progress {
        let mark = self.file.whole_mark(&cx.node);
        let is_making_room = self.file.is_between_retries();
        let rewriting = self.file.rewriting.as_mut();
        let Some(rewriting) = rewriting.filter(|it| it.number == number) else {
            return Progress::None;
        };
        match (outcome, rewriting.stage) {
            (Ok(RewriteStage::Written), Stage::Writing) if is_making_room => {
                // The trouble lasts until the retry has succeeded. If the swap fails, the present
                // file has received nothing that follows a gap.
                rewriting.stage = Stage::Swapping;
                rewriting.before_swap = self.file.trouble;
                cx.store(vec![StorageRequest::Swap(number)]);
            }
            (Ok(RewriteStage::Written), Stage::Writing) => {
                // Everything requested so far is in the journal, so adding it brings the new file
                // to the present mark. Records requested meanwhile start the next journal.
                let journal = std::mem::take(&mut rewriting.journal);
                rewriting.rounds += 1;
                rewriting.mark = mark;
                if journal.len() <= SMALL_BYTES || rewriting.rounds > ROUNDS_MAX {
                    // Hold appends from here on, so that the journal cannot grow again.
                    rewriting.stage = Stage::Holding;
                }
                cx.store(vec![StorageRequest::Extend(number, vec![journal])]);
            }
            (Ok(RewriteStage::Written), _) => self.swap(cx, number),
            (Ok(RewriteStage::InPlace(_)), _) => {
                // The file has the name now, but its rename may not survive a crash. The mark's
                // entries hold in both files; term and vote wait for the durable stage.
                let (mark, snapshot) = (rewriting.mark, rewriting.snapshot);
                self.file.replace(mark);
                self.take_snapshot(snapshot);
                return Progress::InPlace(snapshot);
            }
            (Ok(RewriteStage::Lasting), _) => {
                let (position, token) = (rewriting.swap_position, rewriting.token);
                self.file.rewriting = None;
                return Progress::Lasting { position, token };
            }
            (Err(error), _) => self.fail_rewrite(cx, &error),
        }
        Progress::None
    }

    /// The new file is durable, and everything that waited for it is released: tells the database.
    pub(crate) fn end_rewrite(&self, cx: &mut Context, token: Option<Option<u64>>) {
        if let Some(token) = token {
            tell_compacted(cx, token, Ok(()));
        }
        // A sync may have failed during the swap.
        if self.is_poisoned() {
            cx.put(Output::MakeSnapshot);
        }
    }

    /// The new file has everything that was requested before appends were held: requests the swap,
    /// and then the held appends.
    ///
    /// Example, with records 21 and 22 held during the last addition:
    ///
    /// ```text
    /// Extend(.. 20)  Written | Swap, Append 23 [21][22] durable | 24 ..
    ///                          old file's name -> new file        new file
    /// ```
    ///
    /// One append carries all held records. Its answer also answers 21 and 22, because answers
    /// cover earlier positions.
    fn swap(&mut self, cx: &mut Context, number: RewriteNumber) {
        // After a failed append, older requests may still fail. They concern a file that is being
        // replaced.
        if self.is_in_trouble() {
            self.file.forget_failures();
        }
        let position = self.file.take_position();
        let mark = self.file.whole_mark(&cx.node);
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
            // A record is needed even if it is empty, after trouble: promises wait for its sync,
            // which also syncs the directory. Otherwise the answer to a later, unsynced record
            // would come before the new file is durable.
            requests.push(StorageRequest::Append {
                position,
                record: record.into(),
                durable: true,
            });
        }
        if self.file.trouble != Trouble::None {
            // The present file accepted nothing during the trouble. Everything is in the new file,
            // or follows the swap.
            self.file.trouble = Trouble::None;
            self.file.wait_for_all(mark);
            // The storage refuses appends until it is told that the failed ones were given up.
            requests.insert(0, StorageRequest::Recover);
        }
        cx.store(requests);
    }

    fn fail_rewrite(&mut self, cx: &mut Context, error: &StoreError) {
        let Some(rewriting) = self.file.rewriting.take() else {
            return;
        };
        self.error = Some(error.clone());
        let StoreError { details, io_error } = error;
        cx.log(
            Level::Error,
            format!("the file could not be rewritten ({details}: {io_error}); retrying"),
        );
        if let Some(token) = rewriting.token {
            tell_compacted(cx, token, Err(error.clone()));
        }
        if rewriting.stage == Stage::Swapping && rewriting.before_swap == Trouble::Poisoned {
            self.file.give_up();
        }
        if self.is_poisoned() {
            self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
        } else if rewriting.stage == Stage::Holding && !rewriting.journal.is_empty() {
            // Write the held records to the present file instead. They were never requested from
            // it.
            let position = self.file.take_position();
            cx.store(vec![StorageRequest::Append {
                position,
                record: rewriting.journal.into(),
                durable: true,
            }]);
        }
    }
}

fn tell_compacted(cx: &mut Context, token: Option<u64>, result: Result<(), StoreError>) {
    cx.tell_database(MemberEvent::Compacted { token, result });
}
