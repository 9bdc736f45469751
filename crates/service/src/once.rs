//! Transactions that are executed at most once, although clients send them again
//! (docs/internals/relay.md, "Exactly once").
//!
//! A client that loses its connection does not know the outcome of its last transactions. With
//! `transact_once` it gives each transaction an id, and sends it again under the same id. The *key*
//! of a transaction is a hash of that id. The id of the commit is the key, except for three bytes
//! that number the executions. So each execution has its own id, and the id of a commit reveals the
//! key of its transaction. Every client sees the ids of commits, but cannot compute a transaction's
//! id from them. So no client can name the transaction of another.
//!
//! The database remembers the ids of its last commits, and the results of those that came with an
//! id.
//!
//! Invariant: a transaction that may have been executed is not executed again. A client that sends
//! it again names the last commit it had seen when it first sent it. If that commit is remembered,
//! so are all later ones, among which the transaction's own would be. Example: the client had seen
//! commit 7 and sent T. With 7 remembered and no later commit of T, T was not executed. With 7
//! forgotten, T's commit may be forgotten too, and T is canceled. Regardless of what a client
//! names, a transaction whose key is that of a remembered commit is never executed. Memory is
//! bounded by `IDS_MAX` and `RESULTS_BYTES_MAX`.

pub(crate) mod recorded;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::BuildHasher;

use bytes::Bytes;
use corvid_data::{TrustedKeys, Uuid};
use corvid_json::{Kind, Reader};
use corvid_log::cluster::Term;
use corvid_log::commit_ids::{Numbering, hashed};
pub(crate) use corvid_session::once::{EXECUTION_AT, judges_clients, params};
pub use corvid_session::once::{announce, announce_history, is_announced, transaction_id};

use crate::relayed_client::RelayedClient;
use recorded::{COMPACTED_MAX, RecordedCommit};
pub use recorded::{NamedCommit, RecordedCommits, RecordedIn};

/// Commits that are remembered: 16 bytes each, and about 30 after the first `transact_once`.
const IDS_MAX: usize = 1 << 18;
/// Bytes of remembered results.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Memory of an outcome in addition to its text, bytes.
const OUTCOME_OVERHEAD_BYTES: usize = 128;
/// The longest result that is remembered, bytes. For a longer one, only the commit is remembered.
pub(crate) const RESULT_BYTES_MAX: usize = 64 << 10;

/// The error of a transaction of which it is unknown whether it was executed.
pub(crate) const CANCELED: &[u8] = b"\"canceled\"";

/// A transaction as its commits show it: a hash of its id, which cannot be inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Uuid);

impl Key {
    /// The key of the transaction with this id, which its client chose.
    pub(crate) fn of(transaction: Uuid) -> Key {
        Key(transaction_id(hashed(&transaction.0)))
    }

    /// The key of the transaction whose commit has this id.
    pub(crate) fn of_commit(commit: Uuid) -> Key {
        Key(transaction_id(commit))
    }

    /// The id of the transaction's commit in this execution.
    fn executed(self, execution: [u8; 3]) -> Uuid {
        let mut id = self.0;
        for (at, byte) in EXECUTION_AT.into_iter().zip(execution) {
            id.0[at] = byte;
        }
        id
    }

    /// The part of the key that the set of commits stores. Keys are random, so one transaction in
    /// 2^45 is mistaken for another.
    fn fingerprint(self) -> u64 {
        let id = u128::from_be_bytes(self.0.0);
        (id >> 64) as u64 ^ id as u64
    }
}

/// Whether a commit of the leader of this term has the form of ids that clients have chosen. Other
/// ids are random, so one in 65,536 has it too.
fn is_execution_in(commit: Uuid, term: Term) -> bool {
    let [low, high, ..] = term.0.to_le_bytes();
    [commit.0[EXECUTION_AT[0]], commit.0[EXECUTION_AT[1]]] == [low, high]
}

/// The identity of a transaction that must be executed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// The id that the client has drawn at random ([`transaction_id`]).
    pub id: Uuid,
    /// A commit that existed when the client first sent the transaction: the last one that it had
    /// seen, or the last one of the member that the transaction reached. `None`: this is the first
    /// time.
    pub after: Option<Uuid>,
    /// The client has sent the transaction before, so other copies may still be on their way.
    pub is_repeated: bool,
    /// When it came to a relay, and the last commit that the relay had seen then.
    pub(crate) came: Option<(u64, Uuid)>,
}

impl Once {
    /// The identity that a client has sent.
    #[must_use]
    pub const fn sent(id: Uuid, after: Option<Uuid>) -> Once {
        Once {
            id,
            after,
            is_repeated: after.is_some(),
            came: None,
        }
    }
}

/// The `params` of `transact_once`, `[ID, AFTER, PARAMS]` or `[ID, AFTER, PARAMS, CLIENT]`.
pub(crate) struct OnceParams<'a> {
    /// `None` if ID is `null`: the transaction is not remembered.
    pub(crate) once: Option<Once>,
    /// The client on whose behalf a relay sends the transaction.
    pub(crate) client: Option<Box<RelayedClient>>,
    /// The text of PARAMS: the `params` of `transact`.
    pub(crate) params: &'a [u8],
}

impl<'a> OnceParams<'a> {
    /// The parameters of a plain `transact`.
    pub(crate) fn plain(params: &'a [u8]) -> OnceParams<'a> {
        OnceParams {
            once: None,
            client: None,
            params,
        }
    }

    /// Reads the parameters from valid JSON; `None` if they are malformed.
    pub(crate) fn parse(params: &'a [u8]) -> Option<OnceParams<'a>> {
        let mut reader = Reader::trusted(params);
        reader.begin_array().ok()?;
        let id = uuid_or_null(&mut reader)?;
        let after = uuid_or_null(&mut reader)?;
        let params = element(&mut reader, Kind::Array)?.skip().ok()?;
        let mut client = None;
        if reader.next_element().ok()? {
            client = Some(Box::new(RelayedClient::parse(reader.skip().ok()?)?));
            if reader.next_element().ok()? {
                return None;
            }
        }
        // Zero stands for a client that has chosen no id.
        let is_chosen = |id: Uuid| id == transaction_id(id) && id != Uuid::ZERO;
        let once = match id {
            Some(id) if is_chosen(id) => Some(Once::sent(id, after)),
            // With neither an id nor a client, it would be a plain `transact`.
            None if client.is_some() => None,
            _ => return None,
        };
        Some(OnceParams {
            once,
            client,
            params,
        })
    }
}

/// The next element: a UUID or `null`.
fn uuid_or_null(reader: &mut Reader<'_>) -> Option<Option<Uuid>> {
    if !reader.next_element().ok()? {
        return None;
    }
    match reader.peek().ok()? {
        Kind::Null => reader.skip().ok().map(|_| None),
        Kind::String => Uuid::parse(&reader.string().ok()?).map(Some),
        _ => None,
    }
}

/// The reader at the next element, if that is of this kind.
fn element<'r, 'a>(reader: &'r mut Reader<'a>, kind: Kind) -> Option<&'r mut Reader<'a>> {
    let is_there = reader.next_element().ok()?;
    (is_there && reader.peek().ok()? == kind).then_some(reader)
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnceOutcome {
    /// The `result` of the transaction's commit; `None` if it is not remembered.
    Result(Option<Bytes>),
    /// The `error` that a relay's source returned.
    Error(Bytes),
}

/// The knowledge about a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'o> {
    /// The transaction was executed.
    Executed(&'o OnceOutcome),
    /// The transaction was not executed.
    New,
    /// Unknown: the commit that its client had seen is not remembered.
    Unknown,
}

/// A transaction whose outcome is remembered.
#[derive(Debug)]
struct Remembered {
    outcome: OnceOutcome,
    /// A hash of the transaction's text; `None` if another server executed it.
    text: Option<u64>,
    /// A commit has recorded the outcome, so every server that may get a copy knows it, or will. Or
    /// this server has told it to a repeated copy.
    is_lasting: bool,
}

impl Remembered {
    /// Whether the outcome may be told as an answer to this copy. One without a commit is known to
    /// this server only, so another one may execute another copy. The first copy is the only one
    /// when it is answered; later ones need a lasting outcome.
    fn answers(&self, once: Once) -> bool {
        self.is_lasting || !once.is_repeated
    }
}

/// The remembered commits, and the outcomes of their transactions.
#[derive(Debug)]
pub(crate) struct OnceTable {
    /// The commits, oldest first. The first may be the one at which the history began.
    commits: VecDeque<Uuid>,
    /// Fingerprints of the commits. Created for the first transaction with an id, so a server that
    /// gets none saves the memory.
    known: Option<HashSet<u64, TrustedKeys>>,
    /// How many times `IDS_MAX` commits have been made; a part of each commit's id. Invariant: a
    /// transaction that is executed again after its commit was forgotten is executed in another
    /// generation, so no two commits have the same id.
    generation: u32,
    /// Commits of the current generation.
    in_generation: usize,
    /// The ids of the next commits, if a record of this run has named a seed.
    numbering: Option<Numbering>,
    /// A record of the file may number the next one although this run does not: that one must name
    /// another seed, or end the lines. Otherwise it would get the id of a commit that was lost.
    is_numbered_before: bool,
    /// A record of the file names a seed, or did.
    has_seed: bool,
    outcomes: BTreeMap<Key, Remembered>,
    /// Transactions with outcomes, oldest first; some may have been forgotten.
    results: VecDeque<Key>,
    bytes: usize,
}

impl OnceTable {
    /// The table of a database whose last commit is this one.
    pub(crate) fn new(last: Uuid) -> OnceTable {
        let [.., a, b, c] = last.0;
        OnceTable {
            commits: VecDeque::from([last]),
            known: None,
            // Clients keep their ids when the server restarts, so each start must have a different
            // first generation.
            generation: u32::from_be_bytes([0, a, b, c]),
            in_generation: 0,
            numbering: None,
            is_numbered_before: false,
            has_seed: false,
            outcomes: BTreeMap::new(),
            results: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Forgets all commits but this one, which proves nothing about earlier transactions. Outcomes
    /// that were told stay true: a copy of a transaction that was refused may still be on its way.
    pub(crate) fn begin_anew(&mut self, last: Uuid) {
        *self = OnceTable {
            outcomes: std::mem::take(&mut self.outcomes),
            results: std::mem::take(&mut self.results),
            bytes: self.bytes,
            is_numbered_before: self.is_numbered_before || self.numbering.is_some(),
            has_seed: self.has_seed,
            ..OnceTable::new(last)
        };
    }

    /// The table of a database whose last commit is this one, after those that its file names.
    pub(crate) fn restored(last: Uuid, recorded: &RecordedCommits) -> OnceTable {
        let mut table = OnceTable::new(last);
        // A member's last entry is `last` itself.
        for commit in recorded.iter().filter(|commit| commit.id != last) {
            // Before `last`, with which this server's own history begins.
            table.commits.insert(table.commits.len() - 1, commit.id);
            if let Some(result) = &commit.result {
                let outcome = OnceOutcome::Result(Some(result.clone()));
                table.remember(Key::of_commit(commit.id), outcome, true);
            }
        }
        while table.commits.len() > IDS_MAX {
            table.commits.pop_front();
        }
        if recorded.has_ids() {
            table.make_known();
        }
        table.is_numbered_before = recorded.last().is_some();
        table.has_seed = table.is_numbered_before;
        table
    }

    /// A client has sent a transaction with an id to another member. The snapshots of this one name
    /// commits, too.
    pub(crate) fn note_ids(&mut self) {
        self.make_known();
    }

    /// Whether a client has sent a transaction with an id, to this server or to one that had its
    /// file before.
    pub(crate) fn has_ids(&self) -> bool {
        self.known.is_some()
    }

    /// The last commits, for a new file in place of the records that name them. All of them, not
    /// only those with ids: a client that sends a transaction again may name any. If no client
    /// does, the last commit and the numbering suffice.
    pub(crate) fn recorded(&self) -> RecordedCommits {
        let kept = match (self.has_ids(), self.numbering) {
            (true, _) => COMPACTED_MAX,
            (false, Some(_)) => 1,
            (false, None) => return RecordedCommits::default(),
        };
        let excess = self.commits.len().saturating_sub(kept);
        let commits = self.commits.iter().skip(excess);
        let commits = commits.filter(|id| **id != Uuid::ZERO).map(|id| {
            let outcome = self.outcomes.get(&Key::of_commit(*id));
            let result = match outcome.map(|remembered| &remembered.outcome) {
                Some(OnceOutcome::Result(result)) => result.clone(),
                _ => None,
            };
            RecordedCommit { id: *id, result }
        });
        RecordedCommits::new(commits.collect(), self.numbering)
    }

    /// The ids of the last commits up to this one, for a member's snapshot: later ones may be
    /// undone. None if no client sends transactions with ids.
    pub(crate) fn ids_through(&self, last: Uuid) -> Vec<Uuid> {
        let later = self.commits.iter().rev().position(|id| *id == last);
        let (Some(later), true) = (later, self.has_ids()) else {
            return Vec::new();
        };
        let end = self.commits.len() - later;
        let named = self.commits.range(end.saturating_sub(COMPACTED_MAX)..end);
        named.filter(|id| **id != Uuid::ZERO).copied().collect()
    }

    /// The contents are replaced by a snapshot whose last commit is this one, and which names these
    /// commits. It forgets the others, but outcomes stay true.
    pub(crate) fn install(&mut self, last: Uuid, recorded: &RecordedCommits) {
        let has_ids = self.has_ids();
        *self = OnceTable {
            outcomes: std::mem::take(&mut self.outcomes),
            results: std::mem::take(&mut self.results),
            bytes: self.bytes,
            ..OnceTable::restored(last, recorded)
        };
        if has_ids {
            self.make_known();
        }
    }

    /// Whether a restarted server would know the last commits by the ids that this one has given
    /// them, if it read this in the file.
    ///
    /// # Errors
    /// How they differ.
    pub(crate) fn check_recorded(&self, file: &RecordedCommits) -> Result<(), String> {
        let Some(numbering) = self.numbering else {
            return Ok(());
        };
        if file.numbering() != Some(numbering) {
            let there = file.numbering();
            return Err(format!(
                "records are numbered {numbering:?}, in the file {there:?}"
            ));
        }
        // Those before the seed may have other ids in memory.
        let since_seed = usize::try_from(numbering.next).unwrap_or(usize::MAX);
        let here = self.commits.iter().rev().take(since_seed);
        for (id, named) in here.zip(file.iter().rev()) {
            if *id != named.id {
                return Err(format!("a commit has id {id}, in the file {}", named.id));
            }
        }
        Ok(())
    }

    /// Whether the record of the next commit must name a seed, so that a restarted server knows the
    /// ids of this one and of later ones. `has_id`: its transaction has an id; `are_sent`: clients
    /// are sent ids of commits. Files of databases without such clients have no lines.
    pub(crate) fn needs_seed(&self, has_id: bool, are_sent: bool) -> bool {
        let is_wanted = has_id || are_sent || self.has_ids() || self.is_numbered_before;
        self.numbering.is_none() && is_wanted
    }

    /// Whether the next record must end the lines before it, if it names no seed.
    pub(crate) fn must_end_lines(&self) -> bool {
        self.is_numbered_before || self.numbering.is_some()
    }

    /// A record that ends the lines before it goes to the file.
    pub(crate) fn end_lines(&mut self) {
        self.numbering = None;
        self.is_numbered_before = false;
    }

    /// A record of a commit goes to the file, with this seed if it names one. Returns the commit's
    /// id, unless the record names it.
    pub(crate) fn number_record(&mut self, seed: Option<Uuid>) -> Option<Uuid> {
        match seed {
            Some(seed) => {
                self.numbering = Some(Numbering::begin(seed));
                self.is_numbered_before = false;
                self.has_seed = true;
                None
            }
            None => self.numbering.as_mut().map(Numbering::take),
        }
    }

    /// Ends the numbering, because the file was replaced or lost records. The next commit begins a
    /// new seed.
    pub(crate) fn end_numbering(&mut self) {
        self.numbering = None;
        // The record that ended the lines may be the one that was lost.
        self.is_numbered_before = self.has_seed;
    }

    /// The id of the commit if the transaction is executed now, by the leader of this term or by a
    /// database without one (`None`).
    pub(crate) fn commit_id(&self, transaction: Uuid, term: Option<u64>) -> Uuid {
        let [_, a, b, generation] = self.generation.to_be_bytes();
        let execution = match term.map(u64::to_le_bytes) {
            Some([low, high, ..]) => [low, high, generation],
            None => [a, b, generation],
        };
        Key::of(transaction).executed(execution)
    }

    /// The outcome that answers this copy of a transaction, if it is remembered.
    pub(crate) fn get(&self, once: Once) -> Option<&OnceOutcome> {
        let remembered = self.outcomes.get(&Key::of(once.id))?;
        remembered.answers(once).then_some(&remembered.outcome)
    }

    /// Records that the outcome of this transaction belongs to this text.
    pub(crate) fn bind(&mut self, transaction: Uuid, text: &[u8]) {
        if let Some(remembered) = self.outcomes.get_mut(&Key::of(transaction)) {
            remembered.text = Some(hash(text));
        }
    }

    /// Whether the remembered outcome is known to belong to another text.
    pub(crate) fn is_of_another(&self, transaction: Uuid, text: &[u8]) -> bool {
        let remembered = self.outcomes.get(&Key::of(transaction));
        let known = remembered.and_then(|remembered| remembered.text);
        known.is_some_and(|known| known != hash(text))
    }

    /// Makes the fingerprints of the commits, unless they are there.
    fn make_known(&mut self) {
        let commits = &self.commits;
        self.known.get_or_insert_with(|| {
            let keys = commits.iter().map(|commit| Key::of_commit(*commit));
            keys.map(Key::fingerprint).collect()
        });
    }

    /// Decides whether a transaction was executed.
    pub(crate) fn judge(&mut self, once: Once) -> Verdict<'_> {
        self.make_known();
        if let Some(outcome) = self.outcome(once) {
            return Verdict::Executed(outcome);
        }
        let is_known = |key: Key| self.is_known(key);
        // The transaction's commit is not remembered. It was not executed if the commit that its
        // client names still is: its own would be newer, and is not here.
        match once.after {
            None => Verdict::New,
            // Without a history, all commits have this id.
            Some(Uuid::ZERO) => Verdict::Unknown,
            Some(after) if is_known(Key::of_commit(after)) => Verdict::New,
            Some(_) => Verdict::Unknown,
        }
    }

    /// The outcome of a transaction, if its commit is remembered.
    pub(crate) fn executed(&mut self, once: Once) -> Option<&OnceOutcome> {
        self.make_known();
        self.outcome(once)
    }

    fn outcome(&self, once: Once) -> Option<&OnceOutcome> {
        let is_known = self.is_known(Key::of(once.id));
        self.get(once)
            .or_else(|| is_known.then_some(&OnceOutcome::Result(None)))
    }

    fn is_known(&self, key: Key) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.contains(&key.fingerprint()))
    }

    /// The id of the last commit.
    pub(crate) fn last(&self) -> Option<Uuid> {
        self.commits.back().copied()
    }

    /// Records a new commit.
    pub(crate) fn committed(&mut self, id: Uuid) {
        // Contents that replace others may have the same last commit, and without a history every
        // commit has the same id. Recording it once keeps the set and the queue equal.
        if self.commits.back() == Some(&id) {
            return;
        }
        // The oldest commit leaves both the queue and the set: a fingerprint left behind would make
        // its transaction look executed forever.
        if self.commits.len() == IDS_MAX
            && let Some(oldest) = self.commits.pop_front()
        {
            self.remove_known(oldest);
        }
        self.commits.push_back(id);
        assert!(
            self.commits.len() <= IDS_MAX,
            "remembered commits are bounded"
        );
        if let Some(known) = &mut self.known {
            known.insert(Key::of_commit(id).fingerprint());
        }
        self.in_generation += 1;
        if self.in_generation == IDS_MAX {
            self.in_generation = 0;
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Forgets the last commit, which has been undone.
    pub(crate) fn undone(&mut self, id: Uuid) {
        // Its number must not be used for another.
        self.end_numbering();
        if id == Uuid::ZERO {
            // Without a history, earlier commits have the same id.
            return;
        }
        // A commit that stayed would have its transaction reported as executed although it was
        // undone.
        assert_eq!(
            self.commits.back(),
            Some(&id),
            "commits are undone in order"
        );
        self.commits.pop_back();
        self.remove_known(id);
        self.forget(Key::of_commit(id));
    }

    fn remove_known(&mut self, commit: Uuid) {
        if let Some(known) = &mut self.known {
            known.remove(&Key::of_commit(commit).fingerprint());
        }
    }

    /// Remembers the outcome of a transaction; evicts the oldest outcomes beyond the limits.
    /// `is_lasting`: a commit has recorded it, or a repeated copy was told of it.
    pub(crate) fn remember(&mut self, key: Key, outcome: OnceOutcome, is_lasting: bool) {
        let outcome = match outcome {
            OnceOutcome::Result(Some(text)) | OnceOutcome::Error(text)
                if text.len() > RESULT_BYTES_MAX =>
            {
                OnceOutcome::Result(None)
            }
            outcome => outcome,
        };
        self.bytes += len(&outcome);
        let remembered = Remembered {
            outcome,
            text: None,
            is_lasting,
        };
        if let Some(before) = self.outcomes.insert(key, remembered) {
            self.bytes -= len(&before.outcome);
        } else {
            self.results.push_back(key);
        }
        while self.results.len() > IDS_MAX || self.bytes > RESULTS_BYTES_MAX {
            let Some(key) = self.results.pop_front() else {
                break;
            };
            self.forget(key);
        }
    }

    /// Forgets the outcome of a transaction.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(remembered) = self.outcomes.remove(&key) {
            self.bytes -= len(&remembered.outcome);
        }
    }

    /// Checks that the commits, their fingerprints and the count of bytes agree. O(commits): for
    /// simulations.
    ///
    /// # Panics
    /// The three disagree.
    pub(crate) fn check(&self) {
        if let Some(known) = &self.known {
            let mut commits = self.commits.iter();
            assert!(
                commits.all(|id| known.contains(&Key::of_commit(*id).fingerprint())),
                "a remembered commit is known"
            );
            assert!(
                known.len() <= self.commits.len(),
                "only remembered commits are known"
            );
        }
        let outcomes = self.outcomes.values();
        let bytes: usize = outcomes.map(|remembered| len(&remembered.outcome)).sum();
        assert_eq!(self.bytes, bytes, "the bytes of outcomes are their sum");
        assert!(
            self.bytes <= RESULTS_BYTES_MAX && self.results.len() <= IDS_MAX,
            "remembered outcomes are bounded"
        );
        assert!(
            self.outcomes.len() <= self.results.len(),
            "each outcome is forgotten in its turn"
        );
    }
}

fn hash(text: &[u8]) -> u64 {
    TrustedKeys::default().hash_one(text)
}

fn len(outcome: &OnceOutcome) -> usize {
    let text = match outcome {
        OnceOutcome::Result(Some(text)) | OnceOutcome::Error(text) => text.len(),
        OnceOutcome::Result(None) => 0,
    };
    OUTCOME_OVERHEAD_BYTES + text
}

#[cfg(test)]
mod tests;
