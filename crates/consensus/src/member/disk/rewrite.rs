//! Writing the member's file again, with a new snapshot: after growth, or when a failed sync has
//! made the present file useless.
//!
//! ```text
//! SnapshotMade --> Rewrite (header, entries after the snapshot) --> Written --> Extend(journal) --> Written --> Swap, appends held
//! ```
//!
//! Invariant: the new file takes the place only when it has every record that was requested from
//! the present one. For that the last records are held back while the journal is added for the last
//! time.

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

/// Bytes of a journal that are added while appends are held back.
const SMALL_BYTES: usize = 64 * 1024;
/// Time until a rewrite is tried again that the present file needs, ms.
const REWRITE_RETRY_MS: u64 = 1000;
/// Additions before the last one.
const ROUNDS_MAX: u32 = 8;

/// Why a server that joins stores no snapshot.
pub(crate) const JOINING: &str = "cannot store a snapshot while joining cluster";
/// Why a member that leaves stores none.
pub(crate) const LEAVING: &str = "cannot store a snapshot while leaving cluster";

/// How far the new file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Written in the background.
    Writing,
    /// The journal is added for the last time; appends are held back.
    Holding,
    /// It takes the place of the present one.
    Swapping,
}

/// A new file under way.
#[derive(Debug)]
pub(crate) struct Rewriting {
    number: RewriteNumber,
    pub(super) stage: Stage,
    journal: Vec<u8>,
    rounds: u32,
    /// The contents without the journal.
    mark: Mark,
    snapshot: StoredSnapshot,
    /// This is stored when the swap is lasting.
    swap_position: LogPosition,
    /// The state of the present file before the swap was requested: a swap that fails brings it
    /// back.
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
    pub(crate) fn journal(&mut self, records: &RecordText) {
        for piece in records.slices() {
            self.journal.extend_from_slice(piece);
        }
    }

    /// Entries from this one on are replaced.
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
    /// The last entry with data that it includes.
    pub(crate) eid: Eid,
    /// The database's own, with its token; `None`: the caller has the contents.
    pub(crate) contents: Option<(Option<u64>, Snapshot)>,
}

/// The progress of a rewrite, as far as others are concerned.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing.
    None,
    /// The new file is in place: the file has this snapshot.
    InPlace(StoredSnapshot),
    /// A crash cannot bring the old file back: everything through this position is stored. The
    /// database is told with [`Disk::end_rewrite`].
    Lasting {
        position: LogPosition,
        token: Option<Option<u64>>,
    },
}

impl Disk {
    /// A sync of the present file has failed. Returns whether that is news: then another member
    /// should lead.
    pub(crate) fn poison(&mut self, cx: &mut Context) -> bool {
        if self.is_poisoned() || !self.file.is_recording {
            return false;
        }
        cx.log(
            Level::Error,
            "a sync of the file has failed: this member stores nothing and acknowledges nothing until its file is written again, \
             which begins now"
                .to_owned(),
        );
        self.give_up_file(cx);
        true
    }

    /// Bytes of the present file have changed. Returns whether another member should lead.
    pub(crate) fn damage(&mut self, cx: &mut Context) -> bool {
        let is_replaced = self.is_rewriting() || self.is_poisoned();
        let text = "bytes of the file have changed on the disk: it is written again from memory, and until then this member stores nothing \
                    and acknowledges nothing. Replace the disk if it happens again";
        cx.log(Level::Error, text.to_owned());
        let is_given_up = self.file.is_recording && !is_replaced;
        if is_given_up {
            self.give_up_file(cx);
        }
        is_given_up
    }

    /// The present file is not written to any more: a new one takes its place.
    fn give_up_file(&mut self, cx: &mut Context) {
        self.file.give_up();
        self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
        match &mut self.file.rewriting {
            // A swap cannot be taken back, and its file may be the useless one: it is written again
            // when the swap is over.
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

    /// The time of another attempt has come. There is one as long as the file takes no records.
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

    /// The database has made a snapshot, of which a new file is written. `servers`: the list as of
    /// its last entry; `refusal`: why a file that takes records is not compacted now.
    pub(crate) fn compact(
        &mut self,
        cx: &mut Context,
        made: Made,
        servers: Option<Servers>,
        timer_ms: u64,
        refusal: Option<&'static str>,
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
        if let Some(reason) = self.refuse_snapshot(cx, index, servers.is_some(), refusal) {
            if self.is_poisoned() && !self.is_rewriting() {
                self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
            }
            match token {
                Some(token) => tell_compacted(cx, token, Err(refused(reason))),
                None => cx.put(Output::RejectSnapshot),
            }
            return;
        }
        let (Some(term), Some(servers)) = (cx.node.term_of(index), servers) else {
            return;
        };
        // A new file whose snapshot is not committed would open with entries that nobody agreed on.
        assert!(
            index <= cx.node.commit(),
            "a snapshot through {index}, but {} is committed",
            cx.node.commit()
        );
        let from = Mark {
            hard: (Term(0), None),
            last: index,
            commit: index,
        };
        let (records, mark) = self.file.missing(&cx.node, from);
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
        refusal: Option<&'static str>,
    ) -> Option<&'static str> {
        if !self.file.is_recording {
            return Some(JOINING);
        }
        // A file that takes no records is written again in any case: without it the server can
        // neither join nor leave.
        if refusal.is_some() && !self.is_poisoned() {
            return refusal;
        }
        if cx.has_failed() || matches!(self.file.trouble, Trouble::Failed { .. }) {
            return Some("cannot store a snapshot following failure");
        }
        if self.is_rewriting() {
            return Some("a snapshot is being stored");
        }
        // Entries that the file's snapshot includes cannot be written again, so an older one would
        // leave a gap before the first entry; the database makes another one soon.
        let is_old =
            index < self.snapshot.index || index == self.snapshot.index && !self.is_poisoned();
        let is_known = cx.node.term_of(index).is_some() && index <= cx.node.commit() && has_servers;
        (is_old || !is_known).then_some("not storing a duplicate snapshot")
    }

    /// An append to the present file has failed: a new file that is not taking the place yet is
    /// given up with it.
    pub(crate) fn give_up_unswapped(&mut self, cx: &mut Context) {
        let is_swapping = |it: &Rewriting| it.stage == Stage::Swapping;
        if !self.is_poisoned()
            && let Some(rewriting) = self.file.rewriting.take_if(|it| !is_swapping(it))
        {
            self.give_up_rewrite(cx, &rewriting);
        }
    }

    /// A rewrite that is under way is given up.
    pub(crate) fn give_up_rewrite(&self, cx: &mut Context, rewriting: &Rewriting) {
        cx.store(vec![StorageRequest::Abandon(rewriting.number)]);
        match rewriting.token {
            Some(token) => tell_compacted(
                cx,
                token,
                Err(refused("cannot store a snapshot following failure")),
            ),
            // The storage does not answer: without this the snapshot would be kept, and no other
            // one taken.
            None if rewriting.stage != Stage::Swapping => cx.put(Output::RejectSnapshot),
            None => {}
        }
    }

    /// The new file has reached a stage.
    pub(crate) fn advance_rewrite(
        &mut self,
        cx: &mut Context,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) -> Progress {
        let mark = self.file.whole_mark(&cx.node);
        let rewriting = self.file.rewriting.as_mut();
        let Some(rewriting) = rewriting.filter(|it| it.number == number) else {
            return Progress::None;
        };
        match (outcome, rewriting.stage) {
            (Ok(RewriteStage::Written), Stage::Writing) => {
                let journal = std::mem::take(&mut rewriting.journal);
                rewriting.rounds += 1;
                rewriting.mark = mark;
                if journal.len() <= SMALL_BYTES || rewriting.rounds > ROUNDS_MAX {
                    // From here on appends are held back, so that the journal ends.
                    rewriting.stage = Stage::Holding;
                }
                cx.store(vec![StorageRequest::Extend(number, vec![journal])]);
            }
            (Ok(RewriteStage::Written), _) => self.swap(cx, number),
            (Ok(RewriteStage::InPlace(_)), _) => {
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

    /// The new file is lasting, and everything that waited for it is released: tells the database.
    pub(crate) fn end_rewrite(&self, cx: &mut Context, token: Option<Option<u64>>) {
        if let Some(token) = token {
            tell_compacted(cx, token, Ok(()));
        }
        // The sync of the swap may have failed meanwhile.
        if self.is_poisoned() {
            cx.put(Output::MakeSnapshot);
        }
    }

    /// The new file has everything that was requested before the held appends: it takes the place,
    /// and they follow.
    fn swap(&mut self, cx: &mut Context, number: RewriteNumber) {
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
            // After trouble even an empty record: its sync, which the directory's belongs to, is
            // what promises wait for. The answer to a later record that nobody syncs would come
            // before the new file is lasting.
            requests.push(StorageRequest::Append {
                position,
                record: record.into(),
                durable: true,
            });
        }
        if self.file.trouble != Trouble::None {
            // The present file took nothing; everything is in the new one or follows the swap.
            self.file.trouble = Trouble::None;
            self.file.wait_for_all(mark);
            requests.insert(0, StorageRequest::Recover);
        }
        cx.store(requests);
    }

    fn fail_rewrite(&mut self, cx: &mut Context, error: &StoreError) {
        let Some(rewriting) = self.file.rewriting.take() else {
            return;
        };
        let StoreError { details, io_error } = error;
        cx.log(
            Level::Error,
            format!(
                "the file could not be written again ({details}: {io_error}); this is tried again"
            ),
        );
        if let Some(token) = rewriting.token {
            tell_compacted(cx, token, Err(error.clone()));
        }
        if rewriting.stage == Stage::Swapping {
            match rewriting.before_swap {
                Trouble::None => {}
                Trouble::Failed { .. } => {
                    self.file.fail(cx.now_ms);
                }
                Trouble::Poisoned => self.file.give_up(),
            }
        }
        if self.is_poisoned() {
            self.next_rewrite_ms = cx.now_ms + REWRITE_RETRY_MS;
        } else if rewriting.stage == Stage::Holding && !rewriting.journal.is_empty() {
            // The records that were held back follow in the present file.
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
