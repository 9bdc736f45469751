//! The rules of a cluster, checked at every step from outside, against the records that members
//! write, the events that they report, and the outcomes that sessions learn.
//!
//! Invariant: the oracle knows everything that any member has ever committed, and never forgets it.
//! It knows nothing of how members work.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corvid_log::cluster::{Eid, Index, Sid, Term};

use super::linearizability::{self, Action, Operation};
use super::registers::{Outcome, Swap, of_data};

/// Returns the FNV-1a hash.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The log of a member as its records describe it.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberLog {
    /// The last entry of the snapshot.
    pub(super) base: Index,
    pub(super) base_term: Term,
    /// The entries after the snapshot: term, and hash of the body.
    pub(super) entries: Vec<(Term, u64)>,
    /// The last synced entry.
    pub(super) synced: Index,
}

impl MemberLog {
    pub(super) fn last(&self) -> Index {
        Index(self.base.0 + self.entries.len() as u64)
    }

    pub(super) fn term(&self, index: Index) -> Option<Term> {
        if index == self.base {
            return Some(self.base_term);
        }
        Some(self.entry(index)?.0)
    }

    pub(super) fn entry(&self, index: Index) -> Option<(Term, u64)> {
        let at = index.0.checked_sub(self.base.0 + 1)?;
        self.entries.get(usize::try_from(at).ok()?).copied()
    }

    /// Writes an entry and removes all entries that follow it.
    ///
    /// # Errors
    /// The entry leaves a gap, or is in the snapshot.
    pub(super) fn put(&mut self, index: Index, term: Term, body: u64) -> Result<(), String> {
        let at = index
            .0
            .checked_sub(self.base.0 + 1)
            .and_then(|at| usize::try_from(at).ok())
            .filter(|at| *at <= self.entries.len());
        let at = at.ok_or_else(|| {
            format!(
                "entry {index} is written to a log of {}+{}",
                self.base,
                self.entries.len()
            )
        })?;
        if self.entries.get(at) == Some(&(term, body)) && at + 1 == self.entries.len() {
            return Ok(());
        }
        self.entries.truncate(at);
        self.entries.push((term, body));
        self.synced = self.synced.min(index.previous());
        Ok(())
    }

    /// Writes an entry unless the log already has it.
    ///
    /// # Errors
    /// As [`MemberLog::put`].
    pub(super) fn merge(&mut self, index: Index, term: Term, body: u64) -> Result<(), String> {
        if index <= self.base || self.entry(index) == Some((term, body)) {
            return Ok(());
        }
        self.put(index, term, body)
    }

    /// Removes the entries after this one.
    pub(super) fn cut(&mut self, last: Index) {
        let kept = usize::try_from(last.0.saturating_sub(self.base.0)).unwrap_or(usize::MAX);
        self.entries.truncate(kept);
    }

    /// Marks these entries as synced, if they are still in the log.
    pub(super) fn synced_through(&mut self, entries: &[(Index, Term)]) {
        for (index, term) in entries {
            if *index == self.synced.next() && self.term(*index) == Some(*term) {
                self.synced = *index;
            }
        }
    }

    /// A snapshot up to this entry replaces the entries before it. With `keeps_rest`, the entries
    /// after it stay.
    pub(super) fn rebase(&mut self, index: Index, term: Term, keeps_rest: bool) {
        let behind = if keeps_rest {
            usize::try_from(index.0.saturating_sub(self.base.0)).unwrap_or(usize::MAX)
        } else {
            usize::MAX
        };
        self.entries.drain(..behind.min(self.entries.len()));
        (self.base, self.base_term) = (index, term);
        self.synced = self.synced.max(index).min(self.last());
    }
}

/// A transaction of a session.
#[derive(Clone, Copy, Debug)]
struct Known {
    swap: Swap,
    called: u64,
    returned: Option<(u64, Outcome)>,
    /// The session's member went down, so no outcome will come.
    is_orphaned: bool,
}

/// A committed entry.
#[derive(Clone, Copy, Debug)]
struct Committed {
    term: Term,
    body: u64,
    /// The term of the first member that reported the entry. The entry was committed in this term
    /// or before it. Leaders of later terms must have the entry; leaders of earlier terms need not.
    /// For example, an entry of term 2 that a leader of term 5 commits is unknown to a leader of
    /// term 4 that was asleep.
    in_term: Term,
}

/// Everything that has happened so far, and the rules.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    leaders: BTreeMap<Term, usize>,
    /// Every entry that was ever written: the hash of its body, and the term of the preceding
    /// entry.
    written: BTreeMap<(Index, Term), (u64, Option<Term>)>,
    /// The member lists among the written entries, as numbers of hosts.
    listed: BTreeMap<(Index, Term), Vec<usize>>,
    /// The committed member lists, in order.
    lists: Vec<Vec<usize>>,
    /// Votes that have left a host.
    votes: BTreeMap<(usize, Term), Sid>,
    /// Committed entries.
    committed: BTreeMap<Index, Committed>,
    /// Ids and data of written entries.
    payloads: BTreeMap<(Index, Term), (Eid, Bytes)>,
    /// Committed entries with data.
    applied: BTreeMap<Index, (Eid, Bytes)>,
    eids: BTreeMap<Eid, Index>,
    /// Numbers of committed transactions.
    numbers: BTreeMap<u64, Index>,
    never: BTreeMap<Eid, u64>,
    executed: BTreeSet<Eid>,
    transactions: BTreeMap<u64, Known>,
    /// Logical clock that orders calls and returns.
    tick: u64,
}

impl Oracle {
    /// Returns the rules of a cluster that begins with these members.
    pub(super) fn new(members: Vec<usize>) -> Oracle {
        Oracle {
            lists: vec![members],
            ..Oracle::default()
        }
    }

    /// Returns the members of the last committed list.
    pub(super) fn members(&self) -> &[usize] {
        self.lists.last().map_or(&[], Vec::as_slice)
    }

    /// Number of changes of the member list.
    pub(super) fn changes(&self) -> u64 {
        self.lists.len() as u64 - 1
    }

    /// Notes the data of a written entry.
    pub(super) fn has_data(&mut self, index: Index, term: Term, payload: (Eid, Bytes)) {
        self.payloads.insert((index, term), payload);
    }

    /// Notes the member list of a written entry.
    pub(super) fn listed(&mut self, index: Index, term: Term, members: Vec<usize>) {
        self.listed.insert((index, term), members);
    }

    /// Notes that a leader went down, with terms up to `synced` on its disk. Messages of a later
    /// term never left it, so after its restart it may lead in the same term again, with other
    /// entries. Only a sole member leads before its vote is synced.
    pub(super) fn forget_unsynced(&mut self, host: usize, synced: Term) {
        let is_forgotten = |term: Term, leaders: &BTreeMap<Term, usize>| {
            term > synced && leaders.get(&term) == Some(&host)
        };
        let leaders = &self.leaders;
        self.written
            .retain(|(_, term), _| !is_forgotten(*term, leaders));
        self.payloads
            .retain(|(_, term), _| !is_forgotten(*term, leaders));
        self.listed
            .retain(|(_, term), _| !is_forgotten(*term, leaders));
    }

    /// Returns the last committed entry.
    pub(super) fn commit(&self) -> Index {
        self.committed
            .keys()
            .next_back()
            .copied()
            .unwrap_or(Index(1))
    }

    /// Number of committed transactions.
    pub(super) fn commits(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Number of leaderships.
    pub(super) fn leaderships(&self) -> u64 {
        self.leaders.len() as u64
    }

    /// Number of transactions that were judged never to have happened.
    pub(super) fn judged(&self) -> u64 {
        self.never.len() as u64
    }

    /// Checks a member's claim to lead.
    ///
    /// # Errors
    /// Another member leads in this term, or the log of this member lacks committed entries.
    pub(super) fn leads(&mut self, host: usize, term: Term, log: &MemberLog) -> Result<(), String> {
        let first = *self.leaders.entry(term).or_insert(host);
        if first != host {
            return Err(format!("hosts {first} and {host} both lead in term {term}"));
        }
        let missing = self.committed.iter().find(|(index, known)| {
            **index > log.base && known.in_term < term && log.term(**index) != Some(known.term)
        });
        match missing {
            Some((index, known)) => Err(format!(
                "host {host} leads in term {term} without the committed entry {index} of term {}",
                known.term
            )),
            None => Ok(()),
        }
    }

    /// Checks that a member's database may begin to execute, with the entries up to `applied`
    /// applied.
    ///
    /// # Errors
    /// The database has not applied a committed entry of an earlier term.
    pub(super) fn began(&self, host: usize, term: Term, applied: Index) -> Result<(), String> {
        let earlier = self.committed.range(applied.next()..);
        let mut missing = earlier.filter(|(_, known)| known.in_term < term);
        match missing.next() {
            Some((index, _)) => Err(format!(
                "host {host} executes in term {term} on the state after {applied}, and {index} is committed"
            )),
            None => Ok(()),
        }
    }

    /// Notes an entry that a member writes.
    ///
    /// # Errors
    /// An entry of this index and term was written before with another body or another preceding
    /// term, or an entry of another term is committed at this index.
    pub(super) fn written(
        &mut self,
        host: usize,
        index: Index,
        term: Term,
        body: u64,
        before: Option<Term>,
    ) -> Result<(), String> {
        let (first, first_before) = *self.written.entry((index, term)).or_insert((body, before));
        let is_same_before = before.is_none() || first_before.is_none() || before == first_before;
        if first != body || !is_same_before {
            return Err(format!(
                "host {host} writes another entry {index} of term {term} than was written before"
            ));
        }
        match self.committed.get(&index) {
            // A leader that has not learned yet that its term is over may still write.
            Some(known) if known.in_term < term && known.term != term => Err(format!(
                "host {host} writes entry {index} of term {term}; one of term {} is committed",
                known.term
            )),
            _ => Ok(()),
        }
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

    /// Checks the entries that a member in this term reports as committed, those after `from`, up
    /// to `through`. `logs` has the logs of all hosts.
    ///
    /// # Errors
    /// A committed entry changes, or no quorum has synced it.
    pub(super) fn committed(
        &mut self,
        host: usize,
        in_term: Term,
        from: Index,
        through: Index,
        logs: &[&MemberLog],
    ) -> Result<(), String> {
        let log = logs[host];
        for index in from.0 + 1..=through.0 {
            let index = Index(index);
            let Some((term, body)) = log.entry(index) else {
                if index <= log.base && self.commit() >= index {
                    continue;
                }
                return Err(format!(
                    "host {host} commits {index}, which its log of {} to {} has not",
                    log.base,
                    log.last()
                ));
            };
            if let Some(known) = self.committed.get(&index) {
                if (known.term, known.body) != (term, body) {
                    return Err(format!(
                        "host {host} commits {index} of term {term}; one of term {} is committed",
                        known.term
                    ));
                }
                continue;
            }
            let has = |voter: &&usize| {
                let log = logs[**voter];
                log.base >= index || log.synced >= index && log.entry(index) == Some((term, body))
            };
            // A new list counts once the leader has applied it, so either of the last two lists may
            // form the quorum.
            let mut lists = self.lists.iter().rev().take(2);
            let is_quorum =
                |voters: &Vec<usize>| voters.iter().filter(has).count() > voters.len() / 2;
            if !lists.any(is_quorum) {
                let synced: Vec<Index> = logs.iter().map(|log| log.synced).collect();
                return Err(format!(
                    "host {host} commits {index} of term {term}, synced are {synced:?} of {:?}",
                    self.lists
                ));
            }
            let committed = Committed {
                term,
                body,
                in_term,
            };
            self.committed.insert(index, committed);
            self.lists.extend(self.listed.get(&(index, term)).cloned());
            if let Some((eid, data)) = self.payloads.get(&(index, term)).cloned() {
                self.data_committed(index, eid, &data)?;
                self.applied.insert(index, (eid, data));
            }
        }
        Ok(())
    }

    /// Checks an entry with data that a member has applied.
    ///
    /// # Errors
    /// Another entry is committed at this index.
    pub(super) fn applied(
        &self,
        host: usize,
        index: Index,
        eid: Eid,
        data: &Bytes,
    ) -> Result<(), String> {
        match self.applied.get(&index) {
            Some((known, known_data)) if *known == eid && known_data == data => Ok(()),
            known => Err(format!(
                "host {host} applies {eid:?} at {index}, where {known:?} is committed"
            )),
        }
    }

    /// Notes an entry with data that is committed for the first time.
    ///
    /// # Errors
    /// The entry's transaction is committed twice, was refused, or was judged never to have
    /// happened.
    fn data_committed(&mut self, index: Index, eid: Eid, data: &Bytes) -> Result<(), String> {
        if let Some(number) = self.never.get(&eid) {
            return Err(format!(
                "transaction {number} is committed at {index} and was judged never to have happened"
            ));
        }
        if let Some(before) = self.eids.insert(eid, index) {
            return Err(format!("{eid:?} is committed at {before} and at {index}"));
        }
        let number = of_data(data).map(|(_, number)| number);
        let number =
            number.ok_or_else(|| format!("{index} has data of no transaction: {data:?}"))?;
        if let Some(before) = self.numbers.insert(number, index) {
            return Err(format!(
                "transaction {number} is committed at {before} and again at {index}"
            ));
        }
        let known = self.transactions.get(&number);
        let known = known.ok_or_else(|| format!("transaction {number} was never sent"))?;
        if matches!(known.returned, Some((_, Outcome::Refused))) || known.swap.is_refused {
            return Err(format!("transaction {number} was refused and is committed"));
        }
        Ok(())
    }

    /// Notes a member's judgement that a transaction never happened.
    ///
    /// # Errors
    /// The transaction is committed.
    pub(super) fn never(&mut self, eid: Eid, number: u64) -> Result<(), String> {
        self.never.insert(eid, number);
        match self.eids.get(&eid) {
            Some(index) => Err(format!(
                "transaction {number} is committed at {index} and is judged never to have happened"
            )),
            None => Ok(()),
        }
    }

    /// Checks what other members tell a member that has installed a snapshot: that this entry is in
    /// it.
    ///
    /// # Errors
    /// The entry is not committed.
    pub(super) fn found(&self, eid: Eid) -> Result<(), String> {
        if self.eids.contains_key(&eid) {
            return Ok(());
        }
        Err(format!(
            "{eid:?} is found in a snapshot and was never committed"
        ))
    }

    /// Notes a forwarded transaction that a leader executes.
    ///
    /// # Errors
    /// The transaction was executed before.
    pub(super) fn executed(&mut self, id: Eid) -> Result<(), String> {
        if self.executed.insert(id) {
            Ok(())
        } else {
            Err(format!(
                "the forwarded transaction {id:?} is executed twice"
            ))
        }
    }

    /// Notes a transaction that a session sends.
    pub(super) fn sent(&mut self, swap: Swap) {
        self.tick += 1;
        let known = Known {
            swap,
            called: self.tick,
            returned: None,
            is_orphaned: false,
        };
        self.transactions.insert(swap.number, known);
    }

    /// Notes an outcome that a session learns.
    ///
    /// # Errors
    /// The outcome is not true, or not the first.
    pub(super) fn returned(&mut self, number: u64, outcome: Outcome) -> Result<(), String> {
        self.tick += 1;
        let tick = self.tick;
        let is_committed = self.numbers.contains_key(&number);
        let known = self.transactions.get_mut(&number);
        let known = known.ok_or_else(|| format!("transaction {number} was never sent"))?;
        if known.returned.is_some() || known.is_orphaned {
            return Err(format!("transaction {number} is answered again"));
        }
        known.returned = Some((tick, outcome));
        match outcome {
            Outcome::Done(_) if !is_committed => Err(format!(
                "transaction {number} is acknowledged and is not committed"
            )),
            Outcome::Refused if is_committed => {
                Err(format!("transaction {number} is refused and is committed"))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the member of a session went down.
    pub(super) fn orphaned(&mut self, number: u64) {
        if let Some(known) = self.transactions.get_mut(&number) {
            known.is_orphaned = known.returned.is_none();
        }
    }

    /// Checks, at the end, that every transaction with a session has an outcome and that the
    /// history is linearizable.
    ///
    /// # Errors
    /// A transaction has no outcome, or the history is not linearizable.
    pub(super) fn finish(&self) -> Result<(), String> {
        let mut history = Vec::new();
        for (number, known) in &self.transactions {
            let (returned, old) = match known.returned {
                Some((tick, Outcome::Done(old))) => (Some(tick), Some(old)),
                Some((_, Outcome::Refused)) => continue,
                // The transaction has not happened, and never will.
                None if known.is_orphaned && !self.numbers.contains_key(number) => continue,
                None if known.is_orphaned => (None, None),
                None => return Err(format!("transaction {number} has no outcome")),
            };
            history.push(Operation {
                key: known.swap.key,
                action: Action::Swap { new: *number, old },
                called: known.called,
                returned,
            });
        }
        linearizability::check(&history)
    }

    /// Number of entries with data committed up to this index.
    pub(super) fn count(&self, through: Index) -> u64 {
        let later = self.applied.range(through.next()..).count();
        (self.applied.len() - later) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_needs_what_was_committed_before_its_term() {
        let full = MemberLog {
            entries: vec![(Term(2), 7)],
            synced: Index(1),
            ..MemberLog::default()
        };
        let mut oracle = Oracle::new(vec![0, 1]);
        let logs = [&full, &full];
        assert!(
            oracle
                .committed(0, Term(5), Index(0), Index(1), &logs)
                .is_ok()
        );
        // Host 1 has been asleep since before the entry of term 2 was committed.
        let empty = MemberLog::default();
        assert!(oracle.leads(1, Term(4), &empty).is_ok());
        assert!(oracle.leads(1, Term(6), &empty).is_err());
    }

    #[test]
    fn one_vote_leaves_in_a_term() {
        let [one, other] = [1, 2].map(|byte| Sid(corvid_data::Uuid([byte; 16])));
        let mut oracle = Oracle::new(vec![0]);
        assert!(oracle.votes(0, Term(5), one).is_ok());
        assert!(oracle.votes(0, Term(5), one).is_ok());
        assert!(oracle.votes(0, Term(6), other).is_ok());
        assert!(oracle.votes(0, Term(5), other).is_err());
    }
}
