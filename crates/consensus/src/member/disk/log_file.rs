//! The member's file, as the member sees it: which records are requested, which are stored, and
//! which messages wait for that.
//!
//! Invariant: [`LogFile::mark`] is a state that the file certainly holds. After a failed append the
//! file has everything up to the mark. The missing records are then rebuilt from the log in memory,
//! which never lost them. So nothing is acknowledged that is not stored.
//!
//! While a new file is being written, records go to the present one and to a journal. The journal
//! is added to the new file before the swap (`rewrite.rs`).

use std::collections::VecDeque;

use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::{LogPosition, StorageRequest};

use super::records::Records;
use super::rewrite::{Rewriting, Stage};
use crate::raft_node::{Outgoing, RaftNode, Work};

/// The first delay before a failed append is retried, ms.
const RETRY_MIN_MS: u64 = 50;
/// The longest such delay, ms.
const RETRY_MAX_MS: u64 = 2000;

/// A state of the log in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) hard: (Term, Option<Sid>),
    /// The file and the memory have the same entries up to this one.
    pub(crate) last: Index,
    pub(crate) commit: Index,
}

/// A request that is in flight, and what depends on it.
#[derive(Debug)]
struct Waiting {
    position: u64,
    number: u64,
    mark: Mark,
    /// Messages to send once the records are stored.
    messages: Vec<(Sid, Outgoing)>,
}

/// Why nothing is appended at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// An append has failed and will be retried.
    Failed {
        retry_ms: u64,
        delay_ms: u64,
    },
    /// A sync has failed: the file must be rewritten.
    Poisoned,
}

/// Whether the file certainly records that the last list of members is committed. Dropped servers
/// leave as soon as they learn that, so a member that forgot it would wait for their votes forever.
/// Until the record is synced, nothing that reveals the list leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListState {
    Stored,
    /// No record says so yet.
    Committed,
    /// The request at this position says so.
    Requested(u64),
}

/// The member's file: requests, marks and waiting messages.
#[derive(Debug)]
pub(crate) struct LogFile {
    own: Sid,
    /// A joining server's file has no records after its header.
    pub(super) is_recording: bool,
    position: u64,
    /// Number of the algorithm's newest work.
    number: u64,
    /// Number of the newest stored work.
    released: u64,
    waiting: VecDeque<Waiting>,
    pub(super) mark: Mark,
    /// Term and vote in the newest record, stored or not.
    hard: (Term, Option<Sid>),
    /// The commit index in the newest record, stored or not.
    commit: Index,
    leader: Option<(Term, Sid)>,
    list: ListState,
    /// Messages to send once the list is stored.
    about_list: Vec<(Sid, Outgoing)>,
    pub(super) trouble: Trouble,
    /// Failures of requests up to this position concern a file that is being replaced by one that
    /// has everything.
    obsolete: u64,
    pub(super) rewriting: Option<Rewriting>,
    pub(super) next_rewrite: u64,
}

/// The work and the messages that stored records release.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// The work number for [`RaftNode::stored`].
    pub(crate) number: Option<u64>,
    /// Messages to send now.
    pub(crate) messages: Vec<(Sid, Outgoing)>,
}

impl LogFile {
    /// Starts with a file in the state `mark`. If the previous process was killed, the records
    /// found in the file may never have been synced. So nothing in them is promised before the
    /// storage has answered [`LogPosition::OPENING`], the first sync.
    pub(crate) fn new(own: Sid, is_recording: bool, position: LogPosition, mark: Mark) -> LogFile {
        let opening = is_recording.then(|| Waiting {
            position: LogPosition::OPENING.0,
            number: 0,
            mark,
            messages: Vec::new(),
        });
        LogFile {
            own,
            is_recording,
            position: position.0,
            number: 0,
            released: 0,
            waiting: opening.into_iter().collect(),
            mark,
            hard: mark.hard,
            commit: mark.commit,
            leader: None,
            list: ListState::Stored,
            about_list: Vec::new(),
            trouble: Trouble::None,
            obsolete: 0,
            rewriting: None,
            next_rewrite: 1,
        }
    }

    /// Whether a failure of the request at this position no longer matters.
    pub(crate) fn is_obsolete(&self, position: LogPosition) -> bool {
        position.0 <= self.obsolete
    }

    /// Requests so far went to a file that is being replaced by one that has everything they wrote.
    pub(crate) fn forget_failures(&mut self) {
        self.obsolete = self.position;
    }

    /// The file was replaced by one that holds exactly this.
    pub(crate) fn restart(&mut self, mark: Mark) {
        self.forget_failures();
        self.is_recording = true;
        self.waiting.clear();
        self.mark = mark;
        self.hard = mark.hard;
        self.commit = mark.commit;
        self.list = ListState::Stored;
        self.about_list.clear();
        self.trouble = Trouble::None;
        self.rewriting = None;
    }

    /// Another file is in place, which holds this. If the next append fails, only records after it
    /// are missing: entries written again after a commit index that includes them would make a file
    /// that does not open. Term and vote keep their old mark, because they may be promised only
    /// once the rename is durable.
    pub(crate) fn replace(&mut self, mark: Mark) {
        self.mark = Mark {
            hard: self.mark.hard,
            ..mark
        };
    }

    /// A list of members is committed: the records of the next work say so.
    pub(crate) fn commit_list(&mut self) {
        if self.is_recording {
            self.list = ListState::Committed;
        }
    }

    /// Whether a list of members is committed but not stored as such.
    pub(crate) fn is_list_pending(&self) -> bool {
        self.list != ListState::Stored
    }

    /// Queues a message that reveals the committed list until the list is stored.
    pub(crate) fn send_with_list(&mut self, to: Sid, message: Outgoing) {
        self.about_list.push((to, message));
    }

    /// The request at the present position contains the commit of the list.
    fn request_list(&mut self) {
        if self.list == ListState::Committed {
            self.list = ListState::Requested(self.position);
        }
    }

    /// The requests in flight were lost, perhaps with the commit of the list.
    fn forget_list(&mut self) {
        if self.is_list_pending() {
            self.list = ListState::Committed;
            // The servers that were not told will ask again.
            self.about_list.clear();
        }
    }

    /// Requests the records of this work. Returns the messages that may leave now.
    ///
    /// Example. The file's mark has term 3 when this member grants B its vote in term 4:
    ///
    /// ```text
    /// work 7: hard (4, B), promise VoteReply    -> Append 12 [term 4][vote B], durable
    ///                                              waits for 12: mark (4, B), VoteReply
    /// work 8: promise HeartbeatReply            -> no record, but the mark still has term 3:
    ///                                              waits for 12 too
    /// storage answers 12                        -> mark (4, B); VoteReply, HeartbeatReply leave
    /// work 9: promise HeartbeatReply            -> leaves now: it promises nothing new
    /// ```
    ///
    /// If B learned of the vote before the record was synced, a crash could make this member vote
    /// again in term 4, for another candidate.
    pub(crate) fn store(
        &mut self,
        work: Work,
        node: &RaftNode,
        requests: &mut Vec<StorageRequest>,
    ) -> Stored {
        let stored = self.request(work, node, requests);
        self.check();
        stored
    }

    /// Asserts what the storage's answers, and the messages that wait for them, rely on.
    fn check(&self) {
        // A file that commits an entry without having it does not open.
        assert!(
            self.mark.commit <= self.mark.last,
            "the file commits what it has, not {:?}",
            self.mark
        );
        assert!(
            self.released <= self.number,
            "work {} is stored, but {} is the newest",
            self.released,
            self.number
        );
        assert!(
            self.obsolete <= self.position,
            "no request after {} was made that could be obsolete",
            self.position
        );
        if let (Some(first), Some(last)) = (self.waiting.front(), self.waiting.back()) {
            assert!(
                self.released <= first.number && last.number <= self.number,
                "what waits is not stored yet"
            );
            assert!(
                last.position <= self.position,
                "nothing waits for a request that was not made"
            );
        }
    }

    fn request(
        &mut self,
        mut work: Work,
        node: &RaftNode,
        requests: &mut Vec<StorageRequest>,
    ) -> Stored {
        // The library hands out work in the order of its numbers.
        assert!(
            work.number > self.number,
            "work {} after work {}",
            work.number,
            self.number
        );
        self.number = work.number;
        // Truncate first: if this work's append fails, the retry starts from the mark, which must
        // not claim entries that memory has replaced.
        if let Some(first) = work.entries.first() {
            self.truncate(first.index.previous());
        }
        // A message of this term reveals that the member is in it and how it voted. A crash that
        // forgot either could make it vote twice. The same holds for a committed list that is not
        // stored.
        let hard = (node.term(), node.vote());
        let is_hard_stored =
            !self.is_recording || self.mark.hard == hard && !self.is_list_pending();
        let mut now = Vec::new();
        if is_hard_stored {
            now.append(&mut work.messages);
        }
        let mut later = std::mem::take(&mut work.messages);
        // A promise names entries of this very work, so it waits for them. Only messages that
        // promise nothing may leave earlier, and even they reveal the term.
        for (to, message) in work.promises.drain(..) {
            let is_early = is_hard_stored && promises_nothing(&message);
            if is_early { &mut now } else { &mut later }.push((to, message));
        }
        if !self.is_recording {
            // A joining server has promised nothing, and its file accepts no records yet.
            now.append(&mut later);
            self.released = work.number;
            return Stored {
                number: Some(work.number),
                messages: now,
            };
        }
        // The state that the file will have once this request is answered: memory already has the
        // new entries.
        let mut records = self.records_of(&work, node);
        let mark = self.whole_mark(node);
        if self.list == ListState::Committed {
            // The commit index may already be in an earlier record, which was not synced.
            if records.is_empty() {
                records.commit(mark.commit);
            }
            records.must_last();
        }
        if self.trouble != Trouble::None {
            // Drop the promises, as if the network had lost them: the peers repeat themselves, and
            // the retry writes these records later. A new file that replaces an unusable one still
            // needs them now; one that makes room is followed by the retry.
            if let Some(rewriting) = &mut self.rewriting
                && self.trouble == Trouble::Poisoned
            {
                rewriting.journal(&records.into_text());
            }
            return Stored {
                number: None,
                messages: now,
            };
        }
        if records.is_empty() && self.waiting.is_empty() {
            // Nothing to write and nothing in flight: everything on which this work relies is
            // stored already.
            now.append(&mut later);
            self.released = work.number;
            return Stored {
                number: Some(work.number),
                messages: now,
            };
        }
        // A crash may lose a commit index without harm, because the cluster announces it again. So
        // nothing waits for its sync. If earlier records are in flight, wait all the same: work is
        // reported as stored in order.
        let is_waited_for = records.is_durable() || !self.waiting.is_empty();
        if !is_waited_for {
            now.append(&mut later);
        }
        if !records.is_empty() {
            self.append(records, requests);
            self.request_list();
        }
        // Answers about the list leave with this request: it contains the list's commit, or an
        // earlier one does, and answers come in order.
        later.append(&mut self.about_list);
        // Register the wait even if nothing waits: the answer moves the mark.
        self.wait(work.number, mark, later);
        Stored {
            number: (!is_waited_for).then_some(work.number),
            messages: now,
        }
    }

    /// Entries after this one are about to be replaced: whatever the file has of them no longer
    /// counts.
    fn truncate(&mut self, before: Index) {
        // Replacing an entry that the file commits would make a file that does not open, and would
        // take back what clients were told.
        assert!(
            before >= self.mark.commit,
            "entries behind {before} are replaced, but the file commits {}",
            self.mark.commit
        );
        self.mark.last = self.mark.last.min(before);
        for waiting in &mut self.waiting {
            assert!(
                before >= waiting.mark.commit,
                "entries behind {before} are replaced, but a record commits {}",
                waiting.mark.commit
            );
            waiting.mark.last = waiting.mark.last.min(before);
        }
        if let Some(rewriting) = &mut self.rewriting {
            rewriting.truncate(before);
        }
    }

    /// Composes the records of this work in the reference's order: an entry precedes the commit
    /// index that includes it.
    fn records_of(&mut self, work: &Work, node: &RaftNode) -> Records {
        let hard = (node.term(), node.vote());
        let mut records = Records::default();
        if work.hard.is_some() {
            records.hard(self.own, self.hard.0, hard);
            self.hard = hard;
        }
        if let Some(leader) = node.leader()
            && self.leader != Some((hard.0, leader))
        {
            records.leader(hard.0, leader);
            self.leader = Some((hard.0, leader));
        }
        for entry in &work.entries {
            records.entry(entry);
        }
        if let Some(commit) = work.commit.filter(|commit| *commit > self.commit) {
            records.commit(commit);
            self.commit = commit;
        }
        records
    }

    /// Registers what depends on the request at the present position: its answer brings the file to
    /// this mark and releases these messages.
    fn wait(&mut self, number: u64, mark: Mark, messages: Vec<(Sid, Outgoing)>) {
        if let Some(last) = self.waiting.back() {
            assert!(
                last.position <= self.position && last.number <= number,
                "work {number} at {} waits before work {} at {}",
                self.position,
                last.number,
                last.position
            );
        }
        self.waiting.push_back(Waiting {
            position: self.position,
            number,
            mark,
            messages,
        });
    }

    /// Requests records on which nothing waits.
    pub(crate) fn append(&mut self, records: Records, requests: &mut Vec<StorageRequest>) {
        if !self.is_recording || self.trouble != Trouble::None {
            return;
        }
        let durable = records.is_durable();
        let record = records.into_text();
        self.position += 1;
        // Until the swap is requested, the new file needs each record too, through the journal.
        // While the journal is being added for the last time, records go only there: a record that
        // the present file stored after that point would be missing from the new one at the swap.
        if let Some(rewriting) = &mut self.rewriting {
            if rewriting.stage != Stage::Swapping {
                rewriting.journal(&record);
            }
            if rewriting.is_holding() {
                return;
            }
        }
        requests.push(StorageRequest::Append {
            position: LogPosition(self.position),
            record,
            durable,
        });
    }

    /// The storage has answered up to this position.
    pub(crate) fn release(&mut self, position: LogPosition) -> Stored {
        // Accepting an answer to a request that was never made would acknowledge records that do
        // not exist.
        assert!(
            position.0 <= self.position,
            "the storage answers {}, but {} is the last request",
            position.0,
            self.position
        );
        let mut stored = Stored::default();
        while let Some(waiting) = self.waiting.front()
            && waiting.position <= position.0
            && let Some(waiting) = self.waiting.pop_front()
        {
            // The mark moves before the messages are handed out: a promise never leaves ahead of
            // the state that backs it. One answer may cover several requests, and the last one's
            // mark counts.
            self.mark = waiting.mark;
            stored.number = Some(waiting.number);
            assert!(
                self.released <= waiting.number && waiting.number <= self.number,
                "work {} is stored after work {} of {}",
                waiting.number,
                self.released,
                self.number
            );
            self.released = waiting.number;
            stored.messages.extend(waiting.messages);
        }
        if let ListState::Requested(at) = self.list
            && at <= position.0
        {
            self.list = ListState::Stored;
        }
        self.check();
        stored
    }

    /// An append has failed. Returns whether that is news.
    pub(crate) fn fail(&mut self, now_ms: u64) -> bool {
        if self.trouble == Trouble::Poisoned {
            return false;
        }
        let (is_news, delay_ms) = match self.trouble {
            Trouble::Failed { delay_ms, .. } => (false, (delay_ms * 2).min(RETRY_MAX_MS)),
            _ => (true, RETRY_MIN_MS),
        };
        // Every request in flight may be lost, so nothing that waited for one may leave. The mark
        // stays: it covers only what was answered.
        self.waiting.clear();
        self.forget_list();
        self.trouble = Trouble::Failed {
            retry_ms: now_ms + delay_ms,
            delay_ms,
        };
        is_news
    }

    /// When the next retry is due, ms.
    pub(crate) fn deadline_ms(&self) -> u64 {
        match self.trouble {
            // A new file makes room first.
            Trouble::Failed { retry_ms, .. } if self.rewriting.is_none() => retry_ms,
            _ => u64::MAX,
        }
    }

    /// Whether an append has failed, and nothing is in flight that may write it again.
    pub(crate) fn is_between_retries(&self) -> bool {
        matches!(self.trouble, Trouble::Failed { .. }) && self.waiting.is_empty()
    }

    /// Requests everything that the file lacks, if a retry is due.
    pub(crate) fn retry(
        &mut self,
        now_ms: u64,
        node: &RaftNode,
        requests: &mut Vec<StorageRequest>,
    ) {
        let Trouble::Failed { retry_ms, delay_ms } = self.trouble else {
            return;
        };
        if now_ms < retry_ms || !self.waiting.is_empty() || self.rewriting.is_some() {
            return;
        }
        let (records, mark) = self.missing(node, self.mark);
        // Every record after the mark is written again, so the file will lack nothing that is
        // promised next.
        assert!(
            mark.last >= self.mark.last && mark.commit >= self.mark.commit,
            "the log in memory ends at {mark:?}, but the file has {:?}",
            self.mark
        );
        // The failure of an older request may still arrive and must not repeat this retry. Entries
        // written twice, the second time after a commit index that includes them, make a file that
        // does not open.
        self.forget_failures();
        self.position += 1;
        // `Recover` comes first: until then the storage refuses every append.
        requests.push(StorageRequest::Recover);
        requests.push(StorageRequest::Append {
            position: LogPosition(self.position),
            record: records.into_text(),
            durable: true,
        });
        self.wait_for_all(mark);
        self.trouble = Trouble::Failed {
            retry_ms: u64::MAX,
            delay_ms,
        };
        // Its answer ends the trouble or renews it: nothing else is in flight.
        assert_eq!(self.waiting.len(), 1, "one request has everything");
        self.check();
    }

    /// The records that lead from a mark to the log in memory; at least one.
    pub(crate) fn missing(&mut self, node: &RaftNode, from: Mark) -> (Records, Mark) {
        let hard = (node.term(), node.vote());
        let mut records = Records::default();
        // A new file begins with term and vote as one record. An existing file needs them only if
        // they have changed.
        if from.hard.0 == Term(0) {
            records.state(hard);
        } else if from.hard != hard {
            records.hard(self.own, from.hard.0, hard);
        }
        let mut next = from.last.next();
        for entry in node.entries_from(next) {
            assert!(
                entry.index == next,
                "entry {} is written behind entry {}",
                entry.index,
                next.previous()
            );
            next = next.next();
            records.entry(&entry);
        }
        let mark = self.whole_mark(node);
        // The answer will make this mark count as stored, so the records must reach it.
        assert!(
            next.previous() == mark.last,
            "the records end at {}, not at {mark:?}",
            next.previous()
        );
        let is_list_missing = self.list == ListState::Committed;
        if mark.commit > from.commit || records.is_empty() || is_list_missing {
            records.commit(mark.commit);
        }
        // Dropped servers leave as soon as they learn that the list is committed, so this record
        // must be synced before anything reveals it.
        if is_list_missing {
            records.must_last();
        }
        self.hard = hard;
        self.commit = self.commit.max(mark.commit);
        (records, mark)
    }

    /// The records that lead from a snapshot to what the file certainly holds, without the entries
    /// that could not be appended: a disk that has no room for these may have room for the rest.
    pub(crate) fn held(&mut self, node: &RaftNode, from: Mark) -> (Records, Mark) {
        let mut records = Records::default();
        // A later term or vote than the file has does no harm, because nothing promises it yet. An
        // earlier one might precede an entry of the snapshot.
        records.state((node.term(), node.vote()));
        let last = self.mark.last.max(from.last);
        let mut held = from.last;
        let entries = node.entries_from(from.last.next());
        for entry in entries.take_while(|entry| entry.index <= last) {
            assert!(
                entry.index == held.next(),
                "entry {} is written behind entry {held}",
                entry.index
            );
            held = entry.index;
            records.entry(&entry);
        }
        // The new file replaces the only one that has them.
        assert!(
            held == last,
            "the records end at {held}, but the file has {:?}",
            self.mark
        );
        let commit = node.commit().min(last);
        if commit > from.commit {
            records.commit(commit);
        }
        self.commit = self.commit.max(commit);
        let mark = Mark {
            hard: self.mark.hard,
            last,
            commit,
        };
        (records, mark)
    }

    /// The state of the log in memory, as far as work has listed it.
    pub(crate) fn whole_mark(&self, node: &RaftNode) -> Mark {
        let last = node.logged();
        Mark {
            hard: (node.term(), node.vote()),
            last,
            commit: node.commit().min(last),
        }
    }

    /// After trouble: requests what was left out. Returns the number of work that is stored without
    /// any further record.
    pub(crate) fn catch_up(
        &mut self,
        node: &RaftNode,
        requests: &mut Vec<StorageRequest>,
    ) -> Option<u64> {
        let is_idle = self.trouble == Trouble::None && self.waiting.is_empty();
        if !is_idle || self.released == self.number {
            return None;
        }
        if self.whole_mark(node) == self.mark && self.list != ListState::Committed {
            self.released = self.number;
            return Some(self.number);
        }
        let (records, mark) = self.missing(node, self.mark);
        self.append(records, requests);
        self.wait_for_all(mark);
        None
    }

    /// Registers that the request at the present position stores everything.
    pub(crate) fn wait_for_all(&mut self, mark: Mark) {
        self.request_list();
        self.wait(self.number, mark, Vec::new());
    }

    /// Abandons the requests to a file that accepts no more appends.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
        self.forget_list();
        self.trouble = Trouble::Poisoned;
    }

    /// Takes the next position, for a request that the caller makes.
    pub(crate) fn take_position(&mut self) -> LogPosition {
        self.position += 1;
        LogPosition(self.position)
    }

    /// Whether any request is unanswered.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Whether a message holds regardless of the disk: an answer to a heartbeat, or a rejection.
/// Delaying these on a slow disk would cost the leader its quorum.
fn promises_nothing(message: &Outgoing) -> bool {
    use crate::message::PeerMessage;
    matches!(
        message,
        Outgoing::Message(
            PeerMessage::HeartbeatReply { .. }
                | PeerMessage::AppendReply {
                    rejection: Some(_),
                    ..
                }
                | PeerMessage::VoteReply {
                    is_prevote: true,
                    ..
                }
                | PeerMessage::VoteReply {
                    is_granted: false,
                    ..
                }
        )
    )
}
