//! The rules of a cluster of whole servers, checked from outside: which entries are committed, on
//! which disks they are durable, which contents follow from them, and what clients were told.
//!
//! Invariant: the witness knows every committed entry with data, whichever member reported it
//! first, and never forgets one. It knows nothing of how members, databases and connections work.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corvid_consensus::Committed;
use corvid_data::Uuid;
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Recovered, Servers, Sid, Term};
use corvid_service::once::transaction_id;

use crate::cluster::linearizability::{self, Action, Operation};
use crate::server::client::Outcomes;
use crate::server::workload::{Content, Txn};

/// The outcome of a transaction, as its client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// No reply yet.
    Open,
    /// Committed, with this number in the order of commits.
    Acknowledged(i64),
    /// Answered with this error.
    Failed(String),
    /// A relay answered that the outcome can no longer be found: the transaction was committed
    /// once, or not at all.
    Canceled,
    /// The session ended before the reply.
    Unknown,
}

#[derive(Debug)]
struct Known {
    txn: Txn,
    /// The transaction was sent to a relay, which executes it once even after its session has
    /// ended.
    is_relayed: bool,
    fate: Fate,
    called: u64,
    returned: Option<u64>,
}

/// A committed entry with data.
#[derive(Debug)]
struct Entry {
    eid: Eid,
    data: Bytes,
    /// The content after the entry; `is_wide` says whether its schema is the wide one.
    content: Content,
    is_wide: bool,
}

/// The history of a run, and the rules that it must obey.
#[derive(Debug)]
pub(super) struct Witness {
    leaders: BTreeMap<Term, usize>,
    /// Votes of hosts in terms, in all lives.
    votes: BTreeMap<(usize, Term), Sid>,
    /// Data of proposed entries.
    proposed: BTreeMap<Eid, Bytes>,
    /// Committed entries with data.
    entries: BTreeMap<Index, Entry>,
    eids: BTreeMap<Eid, Index>,
    /// The transactions of the entries, as ids of entries name them.
    keys: BTreeSet<Uuid>,
    /// The entry of each committed transaction, by its number.
    indexes: BTreeMap<i64, Index>,
    /// The last entry that is known to be committed, and its term.
    commit: (Index, Term),
    /// Positions in the order of commits, by numbers of transactions.
    positions: BTreeMap<i64, i64>,
    txns: BTreeMap<i64, Known>,
    first: Content,
    /// Logical clock that orders calls and returns.
    tick: u64,
    /// Number of transactions that were executed twice, which is allowed once their session has
    /// ended.
    pub(super) repeated: u64,
    /// Transactions acknowledged since the last check, with their numbers in the order of commits.
    pub(super) newly_acknowledged: Vec<(i64, i64)>,
    /// Transactions canceled since the last check.
    pub(super) newly_canceled: Vec<i64>,
}

impl Witness {
    pub(super) fn new() -> Witness {
        Witness {
            leaders: BTreeMap::new(),
            votes: BTreeMap::new(),
            proposed: BTreeMap::new(),
            entries: BTreeMap::new(),
            eids: BTreeMap::new(),
            keys: BTreeSet::new(),
            indexes: BTreeMap::new(),
            commit: (Index(1), Term(1)),
            positions: BTreeMap::new(),
            txns: BTreeMap::new(),
            first: Content::first(),
            tick: 0,
            repeated: 0,
            newly_acknowledged: Vec::new(),
            newly_canceled: Vec::new(),
        }
    }

    /// Returns the newest term in which a server led.
    pub(super) fn newest_term(&self) -> Term {
        let newest = self.leaders.keys().next_back();
        newest.copied().unwrap_or_default()
    }

    /// Returns the last entry that is known to be committed.
    pub(super) fn commit(&self) -> Index {
        self.commit.0
    }

    pub(super) fn commits(&self) -> u64 {
        self.positions.len() as u64
    }

    pub(super) fn leaderships(&self) -> u64 {
        self.leaders.len() as u64
    }

    /// Number of transactions that clients know to be committed.
    pub(super) fn acknowledged_count(&self) -> u64 {
        let is_acknowledged = |known: &&Known| matches!(known.fate, Fate::Acknowledged(_));
        self.txns.values().filter(is_acknowledged).count() as u64
    }

    /// Number of transactions that were answered with an error.
    pub(super) fn failed_count(&self) -> u64 {
        let is_failed = |known: &&Known| matches!(known.fate, Fate::Failed(_));
        self.txns.values().filter(is_failed).count() as u64
    }

    /// Notes that a member leads.
    ///
    /// # Errors
    /// Another member leads in this term.
    pub(super) fn leads(&mut self, host: usize, term: Term) -> Result<(), String> {
        let first = *self.leaders.entry(term).or_insert(host);
        if first == host {
            return Ok(());
        }
        Err(format!("hosts {first} and {host} both lead in term {term}"))
    }

    /// Notes a vote that leaves a host.
    ///
    /// # Errors
    /// The host has voted for another server in this term.
    pub(super) fn votes(&mut self, host: usize, term: Term, vote: Sid) -> Result<(), String> {
        let first = *self.votes.entry((host, term)).or_insert(vote);
        if first == vote {
            return Ok(());
        }
        Err(format!(
            "host {host} votes for {vote} in term {term}, and has voted for {first}"
        ))
    }

    /// Checks that a database may begin to execute, with the entries up to `applied` applied.
    ///
    /// # Errors
    /// The database lacks a committed entry of an earlier term.
    pub(super) fn began(&self, host: usize, term: Term, applied: Index) -> Result<(), String> {
        let (commit, of_term) = self.commit;
        if of_term < term && applied < commit {
            return Err(format!(
                "host {host} executes in term {term} on the state after {applied}, and {commit} is committed"
            ));
        }
        Ok(())
    }

    /// Notes an entry that a database proposes.
    pub(super) fn proposed(&mut self, eid: Eid, data: Bytes) {
        self.proposed.insert(eid, data);
    }

    /// Whether this entry has never been reported as committed.
    pub(super) fn is_new(&self, index: Index) -> bool {
        index > self.commit.0
    }

    /// Notes entries that a member reports as committed, up to `through` of this term.
    ///
    /// # Errors
    /// Another entry is committed at one of these indexes, or a transaction is committed twice.
    pub(super) fn committed(
        &mut self,
        host: usize,
        through: Index,
        term: Term,
        entries: &[Committed],
    ) -> Result<(), String> {
        for entry in entries {
            match entry {
                Committed::Own { index, eid } => {
                    let data = self.proposed.get(eid).cloned();
                    let data = data.ok_or_else(|| format!("{eid:?} was never proposed"))?;
                    self.entry(host, *index, *eid, data)?;
                }
                Committed::Data {
                    index, eid, data, ..
                } => {
                    self.entry(host, *index, *eid, data.clone())?;
                }
            }
        }
        self.commit = self.commit.max((through, term));
        Ok(())
    }

    /// Notes the entries up to `commit` that a file reports as committed.
    ///
    /// # Errors
    /// As for [`Witness::committed`].
    pub(super) fn recovered(&mut self, host: usize, recovered: &Recovered) -> Result<(), String> {
        let Some(joined) = recovered.joined() else {
            return Ok(());
        };
        let mut term = joined.snapshot.term;
        for entry in joined.committed() {
            term = entry.term;
            if let Some((eid, data)) = &entry.commit {
                self.entry(host, entry.index, *eid, data.clone())?;
            }
        }
        self.commit = self.commit.max((joined.commit, term));
        Ok(())
    }

    fn entry(&mut self, host: usize, index: Index, eid: Eid, data: Bytes) -> Result<(), String> {
        if let Some(known) = self.entries.get(&index) {
            if (known.eid, &known.data) != (eid, &data) {
                return Err(format!(
                    "host {host} commits {eid:?} at {index}, where {:?} is committed",
                    known.eid
                ));
            }
            return Ok(());
        }
        if let Some(before) = self.eids.insert(eid, index) {
            return Err(format!("{eid:?} is committed at {before} and at {index}"));
        }
        // One whose end is recorded must not be executed later, either.
        if !self.keys.insert(transaction_id(eid.0)) {
            return Err(format!("the transaction of {eid:?} has another entry"));
        }
        if self.entries.range(index..).next().is_some() {
            return Err(format!(
                "host {host} commits {eid:?} at {index}, which was committed without data"
            ));
        }
        let (mut content, mut is_wide) = match self.entries.values().next_back() {
            Some(last) => (last.content.clone(), last.is_wide),
            None => (self.first.clone(), false),
        };
        match number_of(&data) {
            Some(number) => {
                let known = self.txns.get(&number);
                let known = known.ok_or_else(|| format!("transaction {number} was never sent"))?;
                if let Fate::Failed(error) = &known.fate {
                    return Err(format!(
                        "transaction {number} was answered with {error} and is committed at {index}"
                    ));
                }
                content.apply(&known.txn)?;
                self.indexes.insert(number, index);
                if self.positions.insert(number, content.seq).is_some() {
                    self.repeated += 1;
                    if known.fate != Fate::Unknown || known.is_relayed {
                        return Err(format!("transaction {number} is committed twice"));
                    }
                }
            }
            None if is_end(&data) => {}
            None => is_wide = is_wide_schema(&data)?,
        }
        let entry = Entry {
            eid,
            data,
            content,
            is_wide,
        };
        self.entries.insert(index, entry);
        Ok(())
    }

    /// Checks what a server is told: that a snapshot contains the entry with this id.
    ///
    /// # Errors
    /// No entry with this id is committed.
    pub(super) fn found(&self, eid: Eid) -> Result<(), String> {
        if self.eids.contains_key(&eid) {
            return Ok(());
        }
        Err(format!(
            "{eid:?} is found in a snapshot and was never committed"
        ))
    }

    /// Checks the content of a database that has applied the entries up to `index`. With
    /// `may_be_ahead` the database leads, and may have executed more.
    ///
    /// # Errors
    /// The content differs from the expected one.
    pub(super) fn check_content(
        &self,
        index: Index,
        database: &corvid_engine::Database,
        may_be_ahead: bool,
    ) -> Result<(), String> {
        let entry = self.entries.range(..=index).next_back();
        let (expected, is_wide) = match entry {
            Some((_, entry)) => (&entry.content, entry.is_wide),
            None => (&self.first, false),
        };
        let content = Content::of(database);
        if may_be_ahead && content.seq > expected.seq {
            return Ok(());
        }
        if content != *expected {
            return Err(format!(
                "the content after {index} is not that of the committed entries (is, should be): {}",
                content.difference(expected)
            ));
        }
        if crate::server::workload::is_wide(database.schema()) != is_wide && !may_be_ahead {
            return Err(format!("after {index} the schema is another one"));
        }
        Ok(())
    }

    /// Checks that a content is the content after some committed transaction.
    ///
    /// # Errors
    /// The content follows no committed transaction.
    pub(super) fn check_prefix(&self, content: &Content) -> Result<(), String> {
        let entries = self.entries.values().rev().map(|entry| &entry.content);
        let mut prefixes = entries.chain([&self.first]);
        let expected = prefixes.find(|prefix| prefix.seq == content.seq);
        let expected = expected
            .ok_or_else(|| format!("{} transactions are shown, not committed", content.seq))?;
        if content == expected {
            return Ok(());
        }
        Err(format!(
            "the content after {} transactions is not that of the committed ones (is, should be): {}",
            content.seq,
            content.difference(expected)
        ))
    }

    /// Notes a transaction that a client sends.
    pub(super) fn sent(&mut self, txn: Txn, is_relayed: bool) {
        self.tick += 1;
        let known = Known {
            fate: Fate::Open,
            called: self.tick,
            returned: None,
            is_relayed,
            txn,
        };
        self.txns.insert(known.txn.number, known);
    }

    /// Notes that the session of a transaction has ended before the reply.
    pub(super) fn orphaned(&mut self, number: i64) {
        if let Some(known) = self.txns.get_mut(&number)
            && known.fate == Fate::Open
        {
            known.fate = Fate::Unknown;
        }
    }

    /// Whether a transaction waits for a condition.
    pub(super) fn waits(&self, number: i64) -> bool {
        let known = self.txns.get(&number);
        known.is_some_and(|known| known.txn.waits())
    }

    /// Notes that a transaction was canceled because a conversion ended its wait. Such a
    /// transaction has certainly not happened.
    ///
    /// # Errors
    /// The transaction has happened, or does not wait.
    pub(super) fn ended_waiting(&mut self, number: i64) -> Result<(), String> {
        if self.positions.contains_key(&number) || !self.waits(number) {
            return Err(format!("transaction {number} is canceled without a reason"));
        }
        if let Some(known) = self.txns.get_mut(&number) {
            known.fate = Fate::Failed("canceled".to_owned());
        }
        Ok(())
    }

    /// Whether a transaction was acknowledged.
    pub(super) fn is_acknowledged(&self, number: i64) -> bool {
        let known = self.txns.get(&number);
        known.is_some_and(|known| matches!(known.fate, Fate::Acknowledged(_)))
    }

    fn returned(&mut self, number: i64, fate: Fate) -> Result<(), String> {
        self.tick += 1;
        let known = self.txns.get_mut(&number);
        let known = known
            .filter(|known| known.fate == Fate::Open)
            .ok_or_else(|| format!("transaction {number} is answered and was not open"))?;
        known.fate = fate;
        known.returned = Some(self.tick);
        Ok(())
    }

    /// Checks that the transactions could have happened one by one, each between its request and
    /// its reply.
    ///
    /// # Errors
    /// No such order exists.
    pub(super) fn check_order(&self) -> Result<(), String> {
        let operations = self.positions.iter().filter_map(|(number, seq)| {
            let known = self.txns.get(number)?;
            let new = u64::try_from(*seq).ok()?;
            Some(Operation {
                key: 0,
                action: Action::Swap {
                    new,
                    old: Some(new - 1),
                },
                called: known.called,
                returned: known.returned.filter(|_| known.fate != Fate::Canceled),
            })
        });
        linearizability::check(&operations.collect::<Vec<_>>())
    }
}

impl Outcomes for Witness {
    fn acknowledged(&mut self, number: i64, seq: i64) -> Result<(), String> {
        match self.positions.get(&number) {
            Some(position) if *position == seq => {}
            Some(position) => {
                return Err(format!(
                    "transaction {number} is number {position} and its reply says {seq}"
                ));
            }
            None => {
                return Err(format!(
                    "transaction {number} is acknowledged and not committed"
                ));
            }
        }
        self.newly_acknowledged.push((number, seq));
        self.returned(number, Fate::Acknowledged(seq))
    }

    fn failed(&mut self, number: i64, error: &Value) -> Result<(), String> {
        if error.as_str() == Some("canceled") {
            self.newly_canceled.push(number);
            return self.returned(number, Fate::Canceled);
        }
        if let Some(position) = self.positions.get(&number) {
            return Err(format!(
                "transaction {number} is committed as number {position} and answered with {error}"
            ));
        }
        self.returned(number, Fate::Failed(error.to_string()))
    }

    fn is_void(&self, number: i64) -> bool {
        !self.positions.contains_key(&number)
    }

    fn index_of(&self, number: i64) -> Option<i64> {
        let index = self.indexes.get(&number)?;
        i64::try_from(index.0).ok()
    }
}

/// Returns the number that a transaction adds to its set.
fn number_of(data: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(data).ok()?;
    let (_, rest) = text.split_once(r#""txns":"#)?;
    let digits = rest.split(|other: char| !other.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Whether an entry records that a transaction changed nothing.
fn is_end(data: &[u8]) -> bool {
    data.starts_with(br#"[null,{"_comment":"transact_once: nothing changed"#)
}

/// Whether the schema of a conversion is the wide one.
fn is_wide_schema(data: &[u8]) -> Result<bool, String> {
    let text = String::from_utf8_lossy(data);
    if !text.starts_with("[{") {
        return Err(format!(
            "an entry of no transaction and no conversion: {text}"
        ));
    }
    Ok(text.contains(r#""version":"2.0.0""#))
}

/// The state of a file after a power loss, in the worst case.
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    pub(super) sid: Sid,
    /// The last entry of the snapshot, and its term.
    base: Index,
    base_term: Term,
    /// Terms of the entries after the snapshot.
    terms: BTreeMap<Index, Term>,
    /// The member list of the snapshot, and those of entries.
    lists: Vec<(Index, BTreeSet<Sid>)>,
}

impl Lasting {
    pub(super) fn of(recovered: &Recovered) -> Lasting {
        let mut lasting = Lasting {
            sid: recovered.server_id,
            base: Index(0),
            base_term: Term(0),
            terms: BTreeMap::new(),
            lists: Vec::new(),
        };
        if let Some(joined) = recovered.joined() {
            (lasting.base, lasting.base_term) = (joined.snapshot.index, joined.snapshot.term);
            lasting
                .lists
                .push((lasting.base, members(&joined.snapshot.servers)));
            for entry in &joined.entries {
                lasting.terms.insert(entry.index, entry.term);
                let list = entry.servers.as_ref().map(members);
                lasting.lists.extend(list.map(|list| (entry.index, list)));
            }
        }
        lasting
    }

    /// Returns the last entry, with its term.
    pub(super) fn last(&self) -> (Term, Index) {
        let last = self.terms.last_key_value();
        last.map_or((self.base_term, self.base), |(index, term)| (*term, *index))
    }

    /// Adds everything that was promised to everything that the file has.
    pub(super) fn add(&mut self, promised: &Lasting) {
        if promised.base > self.base {
            (self.base, self.base_term) = (promised.base, promised.base_term);
        }
        for (index, term) in &promised.terms {
            self.terms.entry(*index).or_insert(*term);
        }
        self.lists.extend(promised.lists.iter().cloned());
        self.lists.sort_by_key(|(index, _)| *index);
    }

    /// Returns the member lists in the file, newest first.
    pub(super) fn lists(&self) -> impl Iterator<Item = &BTreeSet<Sid>> {
        self.lists.iter().rev().map(|(_, list)| list)
    }

    /// Returns the newest member list, and the index of its entry.
    pub(super) fn newest_list(&self) -> Option<&(Index, BTreeSet<Sid>)> {
        self.lists.last()
    }

    /// Whether the file has this entry.
    pub(super) fn has(&self, index: Index, term: Term) -> bool {
        self.base >= index || self.terms.get(&index) == Some(&term)
    }
}

fn members(servers: &Servers) -> BTreeSet<Sid> {
    servers.iter().map(|(sid, _)| sid).collect()
}
