//! Transactions that are executed at most once, although they are sent again (docs/design/relay.md, "Exactly once").
//!
//! A client that loses its connection does not know what became of its last transactions. With `transact_once` it gives each of them an id, and
//! sends it again under the same id. The id becomes that of the commit, but for three bytes, in which the leader of a cluster writes its term: so
//! each execution has an id of its own, and every id tells which transaction it was. The database remembers the ids of its last commits in their order, and the
//! results of those that came with an id.
//!
//! Invariant: a transaction that may have been executed is not executed again. A client that sends it again tells which commit it had seen when it
//! sent it first. If that one is remembered, so are all later ones, and the transaction's own would be among them. Bounded by `IDS_MAX` and
//! `RESULTS_BYTES_MAX`.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_data::Uuid;
use corvid_json::{Kind, Reader};

/// Ids of commits that are remembered, 16 bytes each.
const IDS_MAX: usize = 1 << 18;
/// Bytes of results that are remembered.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// A longer result is not remembered, only that there was a commit, bytes.
pub(crate) const RESULT_BYTES_MAX: usize = 64 << 10;

/// The error of a transaction of which nobody knows whether it was executed.
pub(crate) const CANCELED: &[u8] = b"\"canceled\"";

/// The bits of a server id by which a server says that it knows `transact_once`.
const MARK: [(usize, u8); 4] = [
    // Version 8 (RFC 9562): the meaning of the other bits is the server's.
    (6, 0x8c),
    (7, 0x01),
    // The variant of all UUIDs, and bits that distinguish ours from others of version 8.
    (8, 0xb7),
    (9, 0x1d),
];

/// A server id with the bits that announce `transact_once`; the other bits are those of `id`.
#[must_use]
pub fn announce(mut id: Uuid) -> Uuid {
    for (at, byte) in MARK {
        id.0[at] = byte;
    }
    id
}

/// Whether the server with this id knows `transact_once`.
#[must_use]
pub fn is_announced(id: Uuid) -> bool {
    MARK.iter().all(|(at, byte)| id.0[*at] == *byte)
}

/// The bytes of an id that tell its executions apart; the one between them has the version. Those of a client's id are zero.
const EXECUTION_AT: [usize; 3] = [4, 5, 7];

/// The id of a transaction from random bytes.
#[must_use]
pub fn transaction_id(mut random: Uuid) -> Uuid {
    EXECUTION_AT.into_iter().for_each(|at| random.0[at] = 0);
    random
}

/// The id of the commit of a transaction which the leader of this term executes. It executes none twice.
#[must_use]
pub fn commit_id(transaction: Uuid, term: u64) -> Uuid {
    let mut id = transaction;
    for (at, byte) in EXECUTION_AT.into_iter().zip(term.to_le_bytes()) {
        id.0[at] = byte;
    }
    id
}

/// The identity of a transaction that is executed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Drawn by the client ([`transaction_id`]).
    pub id: Uuid,
    /// The last commit that the client had seen when it sent the transaction first. `None`: it has not sent it before.
    pub after: Option<Uuid>,
}

impl Once {
    /// The identity in the `params` of `transact_once`, `[ID, AFTER, PARAMS]`, and the text of the last one, which is that of `transact`.
    pub(crate) fn parse(params: &[u8]) -> Option<(Once, &[u8])> {
        let mut reader = Reader::trusted(params);
        reader.begin_array().ok()?;
        let id = Uuid::parse(&element(&mut reader, Kind::String)?.string().ok()?)?;
        if id != transaction_id(id) {
            return None;
        }
        if !reader.next_element().ok()? {
            return None;
        }
        let after = match reader.peek().ok()? {
            Kind::Null => reader.skip().ok().map(|_| None)?,
            _ => Some(Uuid::parse(&reader.string().ok()?)?),
        };
        let inner = element(&mut reader, Kind::Array)?.skip().ok()?;
        let is_all = !reader.next_element().ok()?;
        is_all.then_some((Once { id, after }, inner))
    }
}

/// The reader before the next element, if that is of this kind.
fn element<'r, 'a>(reader: &'r mut Reader<'a>, kind: Kind) -> Option<&'r mut Reader<'a>> {
    let is_there = reader.next_element().ok()?;
    (is_there && reader.peek().ok()? == kind).then_some(reader)
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnceOutcome {
    /// The `result` of its commit; `None`: it is not remembered.
    Result(Option<Bytes>),
    /// The `error`, from a relay's source.
    Error(Bytes),
}

/// The knowledge about a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'o> {
    /// It was executed.
    Executed(&'o OnceOutcome),
    /// It was not.
    New,
    /// The commit that its client had seen is not remembered.
    Unknown,
}

/// The commits that are remembered.
#[derive(Debug)]
pub(crate) struct OnceTable {
    /// The commits, oldest first. The first one may be where a history began.
    commits: VecDeque<Uuid>,
    /// By the ids of their transactions.
    outcomes: BTreeMap<Uuid, OnceOutcome>,
    /// Transactions with outcomes, in the order in which those came; some may be forgotten.
    results: VecDeque<Uuid>,
    bytes: usize,
}

impl OnceTable {
    /// Of a database whose last commit is this one.
    pub(crate) fn new(last: Uuid) -> OnceTable {
        OnceTable {
            commits: VecDeque::from([last]),
            outcomes: BTreeMap::new(),
            results: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The outcome of an id, if it is remembered.
    pub(crate) fn get(&self, id: Uuid) -> Option<&OnceOutcome> {
        self.outcomes.get(&id)
    }

    /// Whether a transaction was executed. The cost is linear in the commits since its client sent it first.
    pub(crate) fn judge(&self, once: Once) -> Verdict<'_> {
        if let Some(outcome) = self.outcomes.get(&once.id) {
            return Verdict::Executed(outcome);
        }
        let Some(after) = once.after else {
            return Verdict::New;
        };
        if after == Uuid::ZERO {
            // Where no history is kept, all commits have this id.
            return Verdict::Unknown;
        }
        for commit in self.commits.iter().rev() {
            if transaction_id(*commit) == once.id {
                return Verdict::Executed(&OnceOutcome::Result(None));
            }
            if *commit == after {
                return Verdict::New;
            }
        }
        Verdict::Unknown
    }

    /// The last commit.
    pub(crate) fn last(&self) -> Option<Uuid> {
        self.commits.back().copied()
    }

    /// There is a new commit.
    pub(crate) fn committed(&mut self, id: Uuid) {
        if self.commits.len() == IDS_MAX
            && let Some(oldest) = self.commits.pop_front()
        {
            self.forget(oldest);
        }
        self.commits.push_back(id);
    }

    /// The last commit has been undone.
    pub(crate) fn undone(&mut self, id: Uuid) {
        debug_assert_eq!(
            self.commits.back(),
            Some(&id),
            "commits are undone in order"
        );
        if self.commits.back() == Some(&id) {
            self.commits.pop_back();
        }
        self.forget(id);
    }

    /// The outcome of a transaction has become known; its id, or that of its commit.
    pub(crate) fn remember(&mut self, id: Uuid, outcome: OnceOutcome) {
        let id = transaction_id(id);
        let outcome = match outcome {
            OnceOutcome::Result(Some(text)) if text.len() > RESULT_BYTES_MAX => {
                OnceOutcome::Result(None)
            }
            outcome => outcome,
        };
        self.bytes += len(&outcome);
        if let Some(before) = self.outcomes.insert(id, outcome) {
            self.bytes -= len(&before);
        }
        self.results.push_back(id);
        while self.results.len() > IDS_MAX || self.bytes > RESULTS_BYTES_MAX {
            let Some(id) = self.results.pop_front() else {
                break;
            };
            self.forget(id);
        }
    }

    /// The outcome of a transaction, or of its commit, is forgotten.
    pub(crate) fn forget(&mut self, id: Uuid) {
        if let Some(outcome) = self.outcomes.remove(&transaction_id(id)) {
            self.bytes -= len(&outcome);
        }
    }
}

fn len(outcome: &OnceOutcome) -> usize {
    match outcome {
        OnceOutcome::Result(Some(text)) | OnceOutcome::Error(text) => text.len(),
        OnceOutcome::Result(None) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Uuid {
        Uuid(u128::from(number).to_be_bytes())
    }

    fn result(length: usize) -> OnceOutcome {
        OnceOutcome::Result(Some(vec![b'x'; length].into()))
    }

    #[test]
    fn ids_announce_and_random_ids_do_not() {
        let random = Uuid::parse(b"d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10").expect("a UUID");
        let announced = announce(random);
        assert!(is_announced(announced) && !is_announced(random));
        assert_eq!(
            announced.to_string(),
            "d7a3bf0c-5e0c-8c01-b71d-0d8ad7a2ce10"
        );
    }

    #[test]
    fn params_name_an_id_a_commit_and_a_transaction() {
        let (uuid, after) = (id(7), id(8));
        let text = format!(r#"["{uuid}", "{after}", ["D",{{"op":"comment"}}]]"#);
        let (once, inner) = Once::parse(text.as_bytes()).expect("well formed");
        let known = Once {
            id: uuid,
            after: Some(after),
        };
        assert_eq!(once, known);
        let first = format!(r#"["{uuid}", null, ["D"]]"#);
        let (once, _) = Once::parse(first.as_bytes()).expect("well formed");
        assert_eq!(once.after, None);
        assert_eq!(inner, br#"["D",{"op":"comment"}]"#);
        for wrong in [
            r#"["D"]"#.to_owned(),
            format!(r#"["{uuid}",1,["D"]]"#),
            format!(r#"["{}","{after}",["D"]]"#, commit_id(uuid, 1)),
            format!(r#"["{uuid}","x",["D"]]"#),
            format!(r#"["{uuid}","{after}","D"]"#),
            format!(r#"["{uuid}","{after}",["D"],2]"#),
            "{}".to_owned(),
        ] {
            assert!(Once::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn nothing_that_may_have_been_forgotten_is_executed_again() {
        let mut table = OnceTable::new(id(1));
        let of = |after| Once {
            id: id(9),
            after: Some(id(after)),
        };
        assert_eq!(table.judge(of(1)), Verdict::New);
        assert_eq!(table.judge(of(0)), Verdict::Unknown, "no history");
        assert_eq!(table.judge(of(5)), Verdict::Unknown, "an earlier one");
        table.committed(id(2));
        assert_eq!(
            (table.judge(of(1)), table.judge(of(2))),
            (Verdict::New, Verdict::New)
        );
        table.committed(commit_id(id(9), 5));
        let lost = OnceOutcome::Result(None);
        assert_eq!(
            table.judge(of(1)),
            Verdict::Executed(&lost),
            "only its result is lost"
        );
        table.remember(id(9), result(10));
        table.remember(id(9), result(20));
        assert_eq!((table.bytes, table.get(id(9))), (20, Some(&result(20))));
        table.undone(commit_id(id(9), 5));
        assert_eq!((table.bytes, table.get(id(9)).is_none()), (0, true));
        assert_eq!(table.judge(of(1)), Verdict::New);
        table.committed(id(10));
        table.remember(id(10), result(RESULT_BYTES_MAX + 1));
        assert_eq!(table.get(id(10)), Some(&lost));
        for number in 0..IDS_MAX as u64 {
            table.committed(id(100 + number));
        }
        assert!(table.get(id(10)).is_none(), "it is forgotten");
        assert_eq!(
            (table.judge(of(2)), table.judge(of(100))),
            (Verdict::Unknown, Verdict::New)
        );
    }

    #[test]
    fn results_are_forgotten_before_ids() {
        let mut table = OnceTable::new(id(1));
        for number in 2..400 {
            table.committed(id(number));
            table.remember(id(number), result(RESULT_BYTES_MAX));
        }
        assert!(table.bytes <= RESULTS_BYTES_MAX);
        let first = Once {
            id: id(2),
            after: Some(id(1)),
        };
        assert_eq!(
            table.judge(first),
            Verdict::Executed(&OnceOutcome::Result(None))
        );
    }
}
