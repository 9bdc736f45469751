//! The member's file, as the member sees it: which records are requested, which of them are stored,
//! and which messages wait for that.
//!
//! Invariant: [`LogFile::mark`] is a state that the file holds for certain. After a failed append
//! the file has everything up to the mark, and the missing records are made again from the log in
//! memory, which never lost them; so nothing is acknowledged that is not stored.
//!
//! While a new file is written, records go to the present one and to a journal, which is added to
//! the new file before it takes the place (`rewrite.rs`).

use std::collections::VecDeque;

use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::{LogPosition, StorageRequest};

use super::records::Records;
use super::rewrite::{Rewriting, Stage};
use crate::raft_node::{Outgoing, RaftNode, Work};

/// The first delay before a failed append is tried again, ms.
const RETRY_MIN_MS: u64 = 50;
/// The longest, ms.
const RETRY_MAX_MS: u64 = 2000;

/// A state of the log in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) hard: (Term, Option<Sid>),
    /// The file and the memory have the same entries through this one.
    pub(crate) last: Index,
    pub(crate) commit: Index,
}

/// Records that are requested and not answered.
#[derive(Debug)]
struct Waiting {
    position: u64,
    number: u64,
    mark: Mark,
    /// To be sent when the records are stored.
    messages: Vec<(Sid, Outgoing)>,
}

/// Why nothing is appended at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// An append has failed; it is tried again.
    Failed {
        retry_ms: u64,
        delay_ms: u64,
    },
    /// A sync has failed: the file must be written again.
    Poisoned,
}

/// Whether the file says for certain that the last list of members is committed. Servers that are
/// out of the list go as soon as they learn that, so a member that forgot it would wait for their
/// votes for ever: until it is synced, nothing that tells of it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListState {
    Stored,
    /// No record says so.
    Committed,
    /// The request at this position says so.
    Requested(u64),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LogFile {
    own: Sid,
    /// A joining server's file has no records after its header.
    pub(super) is_recording: bool,
    position: u64,
    /// The newest work of the algorithm.
    number: u64,
    /// The newest work that is stored.
    released: u64,
    waiting: VecDeque<Waiting>,
    pub(super) mark: Mark,
    /// In the newest record, stored or not.
    hard: (Term, Option<Sid>),
    /// In the newest record, stored or not.
    commit: Index,
    leader: Option<(Term, Sid)>,
    list: ListState,
    /// To be sent when the list is stored.
    about_list: Vec<(Sid, Outgoing)>,
    pub(super) trouble: Trouble,
    /// Failures of requests through this position concern a file that another one replaces, which
    /// has everything.
    obsolete: u64,
    pub(super) rewriting: Option<Rewriting>,
    pub(super) next_rewrite: u64,
}

/// The outcome of stored records.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// For [`RaftNode::stored`].
    pub(crate) number: Option<u64>,
    /// To be sent now.
    pub(crate) messages: Vec<(Sid, Outgoing)>,
}

impl LogFile {
    /// Records that are found in the file may never have been synced, if the process before this
    /// one was killed. So nothing that they hold is promised before the storage has answered
    /// [`LogPosition::OPENING`]: the first sync.
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

    /// Whether a failure of the request at this position is of no interest any more.
    pub(crate) fn is_obsolete(&self, position: LogPosition) -> bool {
        position.0 <= self.obsolete
    }

    /// Requests so far went to a file that another one replaces, with everything that they wrote.
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

    /// Another file is in place, which holds this. If the next append fails, only what is after it
    /// is missing: entries that are written again after a commit index that includes them make a
    /// file that does not open. Term and vote are promised when the name lasts.
    pub(crate) fn replace(&mut self, mark: Mark) {
        self.mark = Mark {
            hard: self.mark.hard,
            ..mark
        };
    }

    /// A list of members is committed: the next work's records say so.
    pub(crate) fn commit_list(&mut self) {
        if self.is_recording {
            self.list = ListState::Committed;
        }
    }

    /// Whether a list of members is committed and not stored as such.
    pub(crate) fn is_list_pending(&self) -> bool {
        self.list != ListState::Stored
    }

    /// Sends a message that tells of the committed list when that is stored.
    pub(crate) fn send_with_list(&mut self, to: Sid, message: Outgoing) {
        self.about_list.push((to, message));
    }

    /// The request at the present position has all records.
    fn request_list(&mut self) {
        if self.list == ListState::Committed {
            self.list = ListState::Requested(self.position);
        }
    }

    /// Requests were lost.
    fn forget_list(&mut self) {
        if self.is_list_pending() {
            self.list = ListState::Committed;
            // The servers that are not told ask again.
            self.about_list.clear();
        }
    }

    /// Requests the records of this work. Returns messages that may leave at once.
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

    /// The answers of the storage, and the messages that wait for them, rely on this.
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
        // The library takes work in the order of its numbers, so each one is newer.
        assert!(
            work.number > self.number,
            "work {} after work {}",
            work.number,
            self.number
        );
        self.number = work.number;
        if let Some(first) = work.entries.first() {
            self.truncate(first.index.previous());
        }
        // Messages of this term say that the member is in it and has voted so: a crash that forgot
        // either could make it vote twice.
        let hard = (node.term(), node.vote());
        let is_hard_stored =
            !self.is_recording || self.mark.hard == hard && !self.is_list_pending();
        let mut now = Vec::new();
        if is_hard_stored {
            now.append(&mut work.messages);
        }
        let mut later = std::mem::take(&mut work.messages);
        // Promises name entries of this very work, so all wait for it but those that promise
        // nothing.
        for (to, message) in work.promises.drain(..) {
            let is_early = is_hard_stored && promises_nothing(&message);
            if is_early { &mut now } else { &mut later }.push((to, message));
        }
        if !self.is_recording {
            // A server that is joining has promised nothing, and its file takes no records yet.
            now.append(&mut later);
            self.released = work.number;
            return Stored {
                number: Some(work.number),
                messages: now,
            };
        }
        let mut records = self.records_of(&work, node);
        let mark = self.whole_mark(node);
        if self.list == ListState::Committed {
            // The commit index may be in a record already that is not synced.
            if records.is_empty() {
                records.commit(mark.commit);
            }
            records.must_last();
        }
        if self.trouble != Trouble::None {
            // Promises are dropped as if the network had lost them: the file has room for them
            // again later, and peers repeat themselves.
            if let Some(rewriting) = &mut self.rewriting {
                rewriting.journal(&records.into_text());
            }
            return Stored {
                number: None,
                messages: now,
            };
        }
        if records.is_empty() && self.waiting.is_empty() {
            // Everything that this work relies on is stored already.
            now.append(&mut later);
            self.released = work.number;
            return Stored {
                number: Some(work.number),
                messages: now,
            };
        }
        // A commit index alone is found again after a crash, so nothing waits for its sync. Earlier
        // records that are not stored are waited for all the same: answers come in order.
        let is_waited_for = records.is_durable() || !self.waiting.is_empty();
        if !is_waited_for {
            now.append(&mut later);
        }
        if !records.is_empty() {
            self.append(records, requests);
            self.request_list();
        }
        later.append(&mut self.about_list);
        self.wait(work.number, mark, later);
        Stored {
            number: (!is_waited_for).then_some(work.number),
            messages: now,
        }
    }

    /// Entries after this one are about to be replaced: what the file has of them does not count.
    fn truncate(&mut self, before: Index) {
        // Replacing an entry that the file commits makes a file that does not open, and takes back
        // what clients were told.
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

    /// The records of this work, in the reference's order: an entry comes before the commit index
    /// that includes it.
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

    /// The request at the present position brings the file to this mark, and releases these
    /// messages.
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

    /// Requests records that nothing waits for.
    pub(crate) fn append(&mut self, records: Records, requests: &mut Vec<StorageRequest>) {
        if !self.is_recording || self.trouble != Trouble::None {
            return;
        }
        let durable = records.is_durable();
        let record = records.into_text();
        self.position += 1;
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

    /// The storage has answered.
    pub(crate) fn release(&mut self, position: LogPosition) -> Stored {
        // An answer to a request that was never made would acknowledge records that are nowhere.
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
        self.waiting.clear();
        self.forget_list();
        self.trouble = Trouble::Failed {
            retry_ms: now_ms + delay_ms,
            delay_ms,
        };
        is_news
    }

    /// When the next attempt is due.
    pub(crate) fn deadline_ms(&self) -> u64 {
        match self.trouble {
            Trouble::Failed { retry_ms, .. } => retry_ms,
            _ => u64::MAX,
        }
    }

    /// Requests everything that is missing in the file, if the time has come.
    pub(crate) fn retry(
        &mut self,
        now_ms: u64,
        node: &RaftNode,
        requests: &mut Vec<StorageRequest>,
    ) {
        let Trouble::Failed { retry_ms, delay_ms } = self.trouble else {
            return;
        };
        if now_ms < retry_ms || !self.waiting.is_empty() {
            return;
        }
        let (records, mark) = self.missing(node, self.mark);
        // Every record after the mark is made again, so the file lacks none of what is promised
        // next.
        assert!(
            mark.last >= self.mark.last && mark.commit >= self.mark.commit,
            "the log in memory ends at {mark:?}, but the file has {:?}",
            self.mark
        );
        // The failure of an older request may still come. It must not make this one be repeated:
        // entries that are written twice, the second time after a commit index that includes them,
        // make a file that does not open.
        self.forget_failures();
        self.position += 1;
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
        // Its answer ends the trouble, or begins it anew: nothing else is under way.
        assert_eq!(self.waiting.len(), 1, "one request has everything");
        self.check();
    }

    /// The records between a mark and the log in memory; at least one.
    pub(crate) fn missing(&mut self, node: &RaftNode, from: Mark) -> (Records, Mark) {
        let hard = (node.term(), node.vote());
        let mut records = Records::default();
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
        // The mark counts as stored with these records, so they reach it.
        assert!(
            next.previous() == mark.last,
            "the records end at {}, not at {mark:?}",
            next.previous()
        );
        let is_list_missing = self.list == ListState::Committed;
        if mark.commit > from.commit || records.is_empty() || is_list_missing {
            records.commit(mark.commit);
        }
        if is_list_missing {
            records.must_last();
        }
        self.hard = hard;
        self.commit = self.commit.max(mark.commit);
        (records, mark)
    }

    /// The log in memory.
    pub(crate) fn whole_mark(&self, node: &RaftNode) -> Mark {
        let last = node.logged();
        Mark {
            hard: (node.term(), node.vote()),
            last,
            commit: node.commit().min(last),
        }
    }

    /// After trouble: requests what was not requested meanwhile. Returns the number of the work
    /// that needs nothing more.
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

    /// The request at the present position stores everything.
    pub(crate) fn wait_for_all(&mut self, mark: Mark) {
        self.request_list();
        self.wait(self.number, mark, Vec::new());
    }

    /// Forgets what was requested from a file that takes no appends any more.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
        self.forget_list();
        self.trouble = Trouble::Poisoned;
    }

    /// The next position, for a request that the caller makes.
    pub(crate) fn take_position(&mut self) -> LogPosition {
        self.position += 1;
        LogPosition(self.position)
    }

    /// Whether some requests are not answered.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Answers to heartbeats and rejections hold whatever the disk does. Without them a slow disk would
/// cost the leader its quorum.
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
