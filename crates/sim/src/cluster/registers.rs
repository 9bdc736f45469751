//! The simplest form of a member's database: registers that transactions swap, under the rules of
//! `corvid_consensus::database`.
//!
//! The leader executes transactions on speculative values; a follower forwards them. The database
//! keeps transactions in doubt, and applies committed entries. Each session learns the outcome of a
//! transaction exactly once. Invariant: pure. The run passes requests and events between the
//! database and its member.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::{
    ClientIdentity, Committed, Finding, Forward, ForwardOrigin, ForwardOutcome, MemberEvent,
    MemberRequest, Proposal,
};
use corvid_data::{
    Arc, Atom, ColumnId, Datum, HashSeed, Recorded, RecordedRow, Schema, TableId, Uuid, UuidSource,
};
use corvid_engine::{Database, Snapshot};
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Sid, Term};

use crate::world::dice::Dice;

/// Number of registers.
pub(super) const KEYS: usize = 3;

/// The schema of the registers.
pub(super) const SCHEMA: &str = r#"{"name":"A","version":"1.0.0","tables":{"R":{"columns":{"key":{"type":"integer"},"value":{"type":"integer"}}}}}"#;
/// The schema's only table.
const TABLE: &str = "R";
/// The key of the row that counts the entries with data.
const COUNT: i64 = -1;

/// Snapshots contain no row versions.
struct NoVersions;

impl UuidSource for NoVersions {
    fn fresh(&mut self) -> Uuid {
        Uuid::ZERO
    }
}

/// A transaction that swaps a register. The new value is the transaction's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swap {
    pub(super) number: u64,
    pub(super) key: u8,
    /// The leader refuses the transaction.
    pub(super) is_refused: bool,
}

impl Swap {
    /// Returns the data of the transaction's entry.
    fn data(self) -> Bytes {
        Bytes::from(format!("[null,{{\"{}\":{}}}]", self.key, self.number))
    }

    fn params(self) -> Bytes {
        let refused = u8::from(self.is_refused);
        Bytes::from(format!("[{},{},{refused}]", self.key, self.number))
    }

    fn of_params(params: &[u8]) -> Option<Swap> {
        let value = Value::parse(params).ok()?;
        let parts = value.as_array()?;
        let part = |at: usize| parts.get(at)?.as_integer();
        Some(Swap {
            key: u8::try_from(part(0)?).ok()?,
            number: u64::try_from(part(1)?).ok()?,
            is_refused: part(2)? == 1,
        })
    }
}

/// Returns the register and the number in the data of an entry.
pub(super) fn of_data(data: &[u8]) -> Option<(u8, u64)> {
    let value = Value::parse(data).ok()?;
    let parts = value.as_array()?;
    let values = parts.get(1)?.as_object()?;
    let (key, number) = values.iter().next()?;
    let key = std::str::from_utf8(key).ok()?.parse().ok()?;
    Some((key, u64::try_from(number.as_integer()?).ok()?))
}

/// The applied state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) index: Index,
    pub(super) eid: Option<Eid>,
    pub(super) values: BTreeMap<u8, u64>,
    /// Number of applied entries with data.
    pub(super) count: u64,
}

impl Applied {
    /// Returns the state as a database, from which the member's file makes the body of a snapshot.
    pub(super) fn to_snapshot(&self) -> Snapshot {
        let schema = Value::parse(SCHEMA.as_bytes()).expect("JSON");
        let schema = Schema::from_json(&schema).expect("a schema");
        let values = self
            .values
            .iter()
            .map(|(key, value)| (i64::from(*key), *value));
        let rows = values.chain([(COUNT, self.count)]).map(|(key, value)| {
            let integer = |number: i64| Datum::one(Atom::Integer(number));
            RecordedRow {
                table: TableId(0),
                // One UUID for each key: keys start at `COUNT`.
                uuid: Uuid(u128::from((key - COUNT).unsigned_abs() + 1).to_be_bytes()),
                columns: Some(vec![
                    (ColumnId(0), integer(key)),
                    (ColumnId(1), integer(value.cast_signed())),
                ]),
            }
        });
        let recorded = Recorded {
            rows: rows.collect(),
            ..Recorded::default()
        };
        let mut database = Database::new(Arc::new(schema), HashSeed::FIXED);
        let applied = database.apply_recorded(recorded, &mut NoVersions);
        applied.expect("the registers fit their schema");
        database.snapshot()
    }

    /// Reads the state from the body of a snapshot.
    pub(super) fn of_body(index: Index, eid: Eid, body: &[u8]) -> Result<Applied, String> {
        let bad = || {
            format!(
                "the body of a snapshot: {:?}",
                String::from_utf8_lossy(body)
            )
        };
        let value = Value::parse(body).map_err(|_| bad())?;
        let rows = value.as_array().and_then(|parts| parts.get(1));
        let rows = rows.ok_or_else(bad)?.get(TABLE);
        let mut applied = Applied {
            index,
            eid: Some(eid),
            ..Applied::default()
        };
        for (_, row) in rows.and_then(Value::as_object).into_iter().flatten() {
            // Columns with default values are left out.
            let integer = |name| row.get(name).map_or(Some(0), Value::as_integer);
            let value = integer("value").and_then(|value| u64::try_from(value).ok());
            let (Some(key), Some(value)) = (integer("key"), value) else {
                return Err(bad());
            };
            if key == COUNT {
                applied.count = value;
            } else {
                let key = u8::try_from(key).map_err(|_| bad())?;
                applied.values.insert(key, value);
            }
        }
        Ok(applied)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Idle,
    Leads(Term),
    Follows(Term, Option<Sid>),
}

/// A commit of this leadership that is not committed by the cluster yet.
#[derive(Debug)]
struct Speculative {
    eid: Eid,
    swap: Swap,
    old: u64,
    is_own_session: bool,
}

/// A transaction of a local session whose entry may be committed.
#[derive(Debug)]
struct InDoubt {
    term: Term,
    swap: Swap,
    /// The result, computed elsewhere or speculatively.
    old: Option<u64>,
    /// This leader has proposed the transaction in its present leadership.
    is_in_flight: bool,
}

/// A transaction whose entry an installed snapshot may contain.
#[derive(Debug)]
struct Sought {
    doubt: InDoubt,
    /// The entry, if it exists, follows this index.
    after: Index,
    /// Other members have said that the snapshot contains the entry.
    is_found: bool,
}

/// The outcome of a transaction for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Committed, with the value before.
    Done(u64),
    /// Never committed, now or later.
    Refused,
}

/// News for the run and its checks.
#[derive(Debug)]
pub(super) enum News {
    Outcome(u64, Outcome),
    /// The session is disconnected without an outcome.
    Unknown(u64),
    /// The member has judged that the transaction never happened.
    Never(Eid, u64),
    /// Other members report this entry as committed.
    Found(Eid),
    /// The leader has executed a transaction for another member.
    Executed(Eid),
    /// An entry with data was applied.
    Applied(Index, Eid, Bytes),
    Leads(Term),
}

/// The database of one member, in one life.
#[derive(Debug)]
pub(super) struct Registers {
    dice: Dice,
    pub(super) applied: Applied,
    role: Role,
    speculative: VecDeque<Speculative>,
    /// The values after all speculative commits.
    values: BTreeMap<u8, u64>,
    /// Transactions of local sessions that wait for the next attempt.
    waiting: VecDeque<Swap>,
    in_doubt: BTreeMap<Eid, InDoubt>,
    /// No transaction of a term before this one is in doubt.
    judged: Term,
    /// Transactions whose entries an installed snapshot may contain.
    sought: BTreeMap<Eid, Sought>,
    /// The last entry of the installed snapshot.
    sought_through: Index,
    /// Refused on a state that includes this entry.
    refused: Vec<(Index, u64)>,
    /// Blocked on a state that includes this entry.
    blocked: Vec<(Index, Swap)>,
    pub(super) requests: VecDeque<MemberRequest>,
    pub(super) news: Vec<News>,
}

impl Registers {
    pub(super) fn new(seed: u64, applied: Applied) -> Registers {
        Registers {
            dice: Dice::new(seed),
            values: applied.values.clone(),
            applied,
            role: Role::Idle,
            speculative: VecDeque::new(),
            waiting: VecDeque::new(),
            in_doubt: BTreeMap::new(),
            judged: Term(0),
            sought: BTreeMap::new(),
            sought_through: Index(0),
            refused: Vec::new(),
            blocked: Vec::new(),
            requests: VecDeque::new(),
            news: Vec::new(),
        }
    }

    /// A local session requests a transaction.
    pub(super) fn submit(&mut self, swap: Swap) {
        self.waiting.push_back(swap);
        self.attempt();
    }

    /// Returns the term in which the database executes transactions.
    pub(super) fn leads(&self) -> Option<Term> {
        match self.role {
            Role::Leads(term) => Some(term),
            _ => None,
        }
    }

    /// Number of transactions without an outcome.
    pub(super) fn open(&self) -> usize {
        let undecided = self.in_doubt.len() + self.sought.len();
        self.waiting.len() + undecided + self.refused.len() + self.blocked.len()
    }

    fn fresh(&mut self) -> Eid {
        let high = u128::from(self.dice.draw());
        Eid(Uuid(
            (high << 64 | u128::from(self.dice.draw())).to_be_bytes(),
        ))
    }

    /// Executes or forwards the waiting transactions.
    fn attempt(&mut self) {
        match self.role {
            Role::Leads(term) => {
                let mut proposals = Vec::new();
                for swap in std::mem::take(&mut self.waiting) {
                    if swap.is_refused {
                        // A real refusal reflects speculative commits, so it is released after
                        // them. Here the refusal does not depend on them.
                        self.news.push(News::Outcome(swap.number, Outcome::Refused));
                        continue;
                    }
                    let eid = self.fresh();
                    self.execute(term, eid, swap, true, &mut proposals);
                }
                self.propose(term, proposals);
            }
            Role::Follows(term, Some(_)) => {
                for swap in std::mem::take(&mut self.waiting) {
                    let id = self.fresh();
                    let forward = Forward {
                        id,
                        method: corvid_consensus::database::ForwardMethod::Transact,
                        params: swap.params(),
                        client: ClientIdentity::default(),
                        elapsed_ms: 0,
                        once: None,
                    };
                    let doubt = InDoubt {
                        term,
                        swap,
                        old: None,
                        is_in_flight: false,
                    };
                    self.in_doubt.insert(id, doubt);
                    self.requests.push_back(MemberRequest::Forward {
                        term,
                        forward: Box::new(forward),
                    });
                }
            }
            Role::Follows(_, None) | Role::Idle => {}
        }
    }

    fn propose(&mut self, term: Term, proposals: Vec<Proposal>) {
        if !proposals.is_empty() {
            self.requests
                .push_back(MemberRequest::Propose { term, proposals });
        }
    }

    /// Executes a transaction on speculative values.
    fn execute(
        &mut self,
        term: Term,
        eid: Eid,
        swap: Swap,
        is_own_session: bool,
        proposals: &mut Vec<Proposal>,
    ) -> u64 {
        let old = self.values.insert(swap.key, swap.number).unwrap_or(0);
        proposals.push(Proposal {
            eid,
            data: swap.data(),
            result: None,
        });
        self.speculative.push_back(Speculative {
            eid,
            swap,
            old,
            is_own_session,
        });
        if is_own_session {
            let doubt = InDoubt {
                term,
                swap,
                old: Some(old),
                is_in_flight: true,
            };
            self.in_doubt.insert(eid, doubt);
        }
        old
    }

    /// Handles an event of the member.
    ///
    /// # Errors
    /// The event breaks a rule.
    pub(super) fn event(&mut self, event: MemberEvent) -> Result<(), String> {
        match event {
            MemberEvent::Leads { term } => {
                self.undo();
                self.role = Role::Leads(term);
                self.news.push(News::Leads(term));
                self.attempt();
            }
            MemberEvent::Follows { term, leader } => {
                self.undo();
                self.role = Role::Follows(term, leader);
                self.attempt();
            }
            MemberEvent::Committed {
                through,
                term,
                entries,
            } => self.committed(through, term, entries)?,
            MemberEvent::Execute { origin, forwards } => self.serve(origin, forwards)?,
            MemberEvent::Outcome { id, outcome } => self.outcome(id, outcome),
            MemberEvent::Found { through, findings } => self.found(through, &findings),
            MemberEvent::ElectionTimer { .. } | MemberEvent::Compacted { .. } => {}
            MemberEvent::Replaced { index, .. } => {
                return Err(format!("a snapshot through {index} without a body"));
            }
        }
        Ok(())
    }

    /// The member's file now has this snapshot, whose last entry has this term. The other members
    /// know which transactions in doubt the snapshot contains. A transaction that it does not
    /// contain never happened if it was requested in an earlier term.
    ///
    /// # Errors
    /// The snapshot is older than the applied state, or broken.
    pub(super) fn replaced(
        &mut self,
        index: Index,
        term: Term,
        eid: Eid,
        body: &[u8],
    ) -> Result<(), String> {
        if index < self.applied.index {
            return Err(format!(
                "replaced by the state after {index}, behind {}",
                self.applied.index
            ));
        }
        let after = self.applied.index;
        self.applied = Applied::of_body(index, eid, body)?;
        self.judged = self.judged.max(term);
        self.undo();
        for (id, doubt) in std::mem::take(&mut self.in_doubt) {
            let sought = Sought {
                doubt,
                after,
                is_found: false,
            };
            self.sought.insert(id, sought);
        }
        self.requests.push_back(MemberRequest::Applied(index));
        self.sought_through = index;
        if let Some(after) = self.sought.values().map(|sought| sought.after).min() {
            self.requests.push_back(MemberRequest::Find {
                after,
                through: index,
                ids: self.sought.keys().copied().collect(),
            });
        }
        self.resolve();
        Ok(())
    }

    /// Handles the answers of other members about the transactions that are sought.
    fn found(&mut self, through: Index, findings: &[(Eid, Finding)]) {
        for (id, finding) in findings {
            match finding {
                Finding::Committed => {
                    self.news.push(News::Found(*id));
                    if let Some(sought) = self.sought.get_mut(id) {
                        sought.is_found = true;
                        self.answer_found(*id);
                    }
                }
                _ if through != self.sought_through => {}
                Finding::Absent => {
                    if let Some(sought) = self.sought.remove(id) {
                        self.in_doubt.insert(*id, sought.doubt);
                    }
                }
                Finding::Unknown => {
                    if let Some(sought) = self.sought.remove(id) {
                        self.news.push(News::Unknown(sought.doubt.swap.number));
                    }
                }
            }
        }
        self.judge(self.judged);
    }

    /// Answers a sought transaction once its entry is found and its result is known.
    fn answer_found(&mut self, id: Eid) {
        let sought = self.sought.get(&id).filter(|sought| sought.is_found);
        if let Some((number, old)) =
            sought.and_then(|it| Some((it.doubt.swap.number, it.doubt.old?)))
        {
            self.sought.remove(&id);
            self.news.push(News::Outcome(number, Outcome::Done(old)));
        }
    }

    /// Undoes the speculative commits, because a leadership begins or ends.
    fn undo(&mut self) {
        self.speculative.clear();
        self.values.clone_from(&self.applied.values);
        for doubt in self.in_doubt.values_mut() {
            doubt.is_in_flight = false;
        }
    }

    fn committed(
        &mut self,
        through: Index,
        term: Term,
        entries: Vec<Committed>,
    ) -> Result<(), String> {
        if through < self.applied.index {
            return Err(format!(
                "committed through {through} after {}",
                self.applied.index
            ));
        }
        for entry in entries {
            let (index, eid, data) = match entry {
                Committed::Own { index, eid } => {
                    let first = self.speculative.pop_front();
                    let first = first.filter(|first| first.eid == eid).ok_or_else(|| {
                        format!("{index} is reported as the oldest own proposal and is not")
                    })?;
                    if !first.is_own_session && self.in_doubt.contains_key(&eid) {
                        return Err(format!("{index} is forwarded and of this session"));
                    }
                    let before = self.applied.values.get(&first.swap.key);
                    if before.copied().unwrap_or(0) != first.old {
                        return Err(format!(
                            "{index} was executed on {} and is applied to {before:?}",
                            first.old
                        ));
                    }
                    (index, eid, first.swap.data())
                }
                Committed::Data {
                    index, eid, data, ..
                } => {
                    if !self.speculative.is_empty() {
                        return Err(format!(
                            "{index} of somebody else is committed before own proposals"
                        ));
                    }
                    (index, eid, data)
                }
            };
            if index <= self.applied.index || index > through {
                return Err(format!(
                    "{index} is committed after {}, through {through}",
                    self.applied.index
                ));
            }
            let (key, number) =
                of_data(&data).ok_or_else(|| format!("{index} has other data: {data:?}"))?;
            let old = self.applied.values.insert(key, number).unwrap_or(0);
            if self.speculative.is_empty() {
                self.values.clone_from(&self.applied.values);
            }
            self.applied.index = index;
            self.applied.eid = Some(eid);
            self.applied.count += 1;
            self.news.push(News::Applied(index, eid, data));
            let sought = self.sought.remove(&eid).map(|sought| sought.doubt);
            if let Some(doubt) = self.in_doubt.remove(&eid).or(sought) {
                if doubt.old.is_some_and(|told| told != old) {
                    return Err(format!(
                        "transaction {} was told {:?} and is applied to {old}",
                        doubt.swap.number, doubt.old
                    ));
                }
                self.news
                    .push(News::Outcome(doubt.swap.number, Outcome::Done(old)));
            }
        }
        self.applied.index = through;
        self.requests.push_back(MemberRequest::Applied(through));
        self.judge(term);
        self.resolve();
        Ok(())
    }

    /// An entry of this term is committed: transactions in doubt from earlier terms never happened.
    fn judge(&mut self, term: Term) {
        self.judged = self.judged.max(term);
        let never: Vec<Eid> = self
            .in_doubt
            .iter()
            .filter(|(_, doubt)| doubt.term < term)
            .map(|(eid, _)| *eid)
            .collect();
        for eid in never {
            if let Some(doubt) = self.in_doubt.remove(&eid) {
                self.news.push(News::Never(eid, doubt.swap.number));
                self.waiting.push_back(doubt.swap);
            }
        }
        self.attempt();
    }

    /// Reports the outcomes whose state is applied here by now.
    fn resolve(&mut self) {
        let now = self.applied.index;
        for (index, number) in std::mem::take(&mut self.refused) {
            if index <= now {
                self.news.push(News::Outcome(number, Outcome::Refused));
            } else {
                self.refused.push((index, number));
            }
        }
        for (index, swap) in std::mem::take(&mut self.blocked) {
            if index <= now {
                self.waiting.push_back(swap);
            } else {
                self.blocked.push((index, swap));
            }
        }
        if !self.waiting.is_empty() {
            self.attempt();
        }
    }

    /// Executes the transactions that another member forwarded.
    fn serve(&mut self, origin: ForwardOrigin, forwards: Vec<Forward>) -> Result<(), String> {
        let mut proposals = Vec::new();
        let mut outcomes = Vec::new();
        for forward in forwards {
            let swap = Swap::of_params(&forward.params).ok_or("params have changed on the way")?;
            self.news.push(News::Executed(forward.id));
            let outcome = match self.role {
                Role::Leads(term) if term == origin.term => {
                    if swap.is_refused {
                        ForwardOutcome::Refused(self.applied.index, Bytes::from_static(b"\"no\""))
                    } else if self.dice.chance(3) {
                        ForwardOutcome::Blocked(self.applied.index)
                    } else {
                        let old = self.execute(term, forward.id, swap, false, &mut proposals);
                        ForwardOutcome::Proposed(Bytes::from(old.to_string()))
                    }
                }
                // A transaction must not be executed in another term than the one in which it was
                // forwarded.
                _ => {
                    return Err(format!(
                        "a transaction forwarded in term {} is to be executed as {:?}",
                        origin.term, self.role
                    ));
                }
            };
            outcomes.push((forward.id, outcome));
        }
        if let Role::Leads(term) = self.role {
            self.propose(term, proposals);
        }
        for (id, outcome) in outcomes {
            self.requests.push_back(MemberRequest::Outcome {
                origin,
                id,
                outcome,
            });
        }
        Ok(())
    }

    /// Handles the leader's answer to a forwarded transaction.
    fn outcome(&mut self, id: Eid, outcome: ForwardOutcome) {
        let sought = self.sought.get_mut(&id).map(|sought| &mut sought.doubt);
        let Some(doubt) = self.in_doubt.get_mut(&id).or(sought) else {
            return;
        };
        match outcome {
            ForwardOutcome::Proposed(result) => {
                doubt.old = std::str::from_utf8(&result)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.answer_found(id);
            }
            ForwardOutcome::Refused(index, _) | ForwardOutcome::Unchanged(index, _) => {
                let number = doubt.swap.number;
                self.in_doubt.remove(&id);
                self.sought.remove(&id);
                self.refused.push((index, number));
            }
            ForwardOutcome::Blocked(index) => {
                let swap = doubt.swap;
                self.in_doubt.remove(&id);
                self.sought.remove(&id);
                self.blocked.push((index, swap));
            }
        }
        self.resolve();
    }
}
