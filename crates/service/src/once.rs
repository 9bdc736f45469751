//! Transactions that are executed at most once, although they are sent again (docs/design/relay.md, "Exactly once").
//!
//! A client that loses its connection does not know what became of its last transactions. With `transact_once` it gives each of them an id, and
//! sends it again to the same server under the same id. The database remembers the ids of its commits, with their results.
//!
//! Invariant: a transaction whose id was forgotten is never executed again. So an id that is not remembered is executed only if it was first
//! sent after every commit that was forgotten. Bounded by `IDS_MAX` and `RESULTS_BYTES_MAX`.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_data::Uuid;
use corvid_json::{Kind, Reader};

/// Ids that are remembered.
const IDS_MAX: usize = 65_536;
/// Bytes of results that are remembered.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// A longer result is not remembered, only that there was a commit, bytes.
const RESULT_BYTES_MAX: usize = 64 << 10;
/// A request takes no longer than this from its client to the database, ms.
const TRANSIT_MS: u64 = 60_000;

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

/// The identity of a transaction that is executed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Drawn by the client.
    pub id: Uuid,
    /// The time since the client sent it first, ms; zero: it has not been sent before.
    pub age_ms: u64,
}

impl Once {
    /// The identity in the `params` of `transact_once`, `[ID, AGE, PARAMS]`, and the text of the last one, which is that of `transact`.
    pub(crate) fn parse(params: &[u8]) -> Option<(Once, &[u8])> {
        let mut reader = Reader::trusted(params);
        reader.begin_array().ok()?;
        let id = element(&mut reader, Kind::String)?.string().ok()?;
        let id = Uuid::parse(&id)?;
        let age = element(&mut reader, Kind::Number)?.skip().ok()?;
        let age_ms = std::str::from_utf8(age).ok()?.parse().ok()?;
        let inner = element(&mut reader, Kind::Array)?.skip().ok()?;
        let is_all = !reader.next_element().ok()?;
        is_all.then_some((Once { id, age_ms }, inner))
    }
}

/// The reader before the next element, if that is of this kind.
fn element<'r, 'a>(reader: &'r mut Reader<'a>, kind: Kind) -> Option<&'r mut Reader<'a>> {
    let is_there = reader.next_element().ok()?;
    (is_there && reader.peek().ok()? == kind).then_some(reader)
}

/// The outcome of a transaction that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnceOutcome {
    /// The `result` of its commit; `None`: it is too long to be remembered.
    Result(Option<Bytes>),
    /// The `error`, from a relay's source.
    Error(Bytes),
}

/// The commits that are remembered.
#[derive(Debug)]
pub(crate) struct OnceTable {
    by_id: BTreeMap<Uuid, OnceOutcome>,
    /// In the order of their execution, with its time; an id that was undone may be here without an outcome.
    order: VecDeque<(Uuid, u64)>,
    bytes: usize,
    /// Transactions that were first sent before this time may have been forgotten.
    horizon_ms: u64,
}

impl OnceTable {
    /// Remembers nothing; all that was executed before is forgotten.
    pub(crate) fn new(now_ms: u64) -> OnceTable {
        OnceTable {
            by_id: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            horizon_ms: now_ms,
        }
    }

    /// The outcome of an id.
    pub(crate) fn get(&self, id: Uuid) -> Option<&OnceOutcome> {
        self.by_id.get(&id)
    }

    /// Whether a transaction that is not remembered was certainly not executed.
    pub(crate) fn vouches(&self, now_ms: u64, once: Once) -> bool {
        once.age_ms == 0 || now_ms.saturating_sub(once.age_ms) >= self.horizon_ms
    }

    /// A transaction has been executed.
    pub(crate) fn remember(&mut self, now_ms: u64, id: Uuid, outcome: OnceOutcome) {
        let outcome = match outcome {
            OnceOutcome::Result(Some(text)) if text.len() > RESULT_BYTES_MAX => {
                OnceOutcome::Result(None)
            }
            outcome => outcome,
        };
        self.bytes += len(&outcome);
        if let Some(before) = self.by_id.insert(id, outcome) {
            self.bytes -= len(&before);
        }
        self.order.push_back((id, now_ms));
        while self.order.len() > IDS_MAX || self.bytes > RESULTS_BYTES_MAX {
            let Some((id, executed_ms)) = self.order.pop_front() else {
                break;
            };
            self.horizon_ms = self.horizon_ms.max(executed_ms + TRANSIT_MS);
            self.undone(id);
        }
    }

    /// The commit of a transaction has been undone.
    pub(crate) fn undone(&mut self, id: Uuid) {
        if let Some(outcome) = self.by_id.remove(&id) {
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
    fn params_name_an_id_an_age_and_a_transaction() {
        let uuid = id(7);
        let text = format!(r#"["{uuid}", 12, ["D",{{"op":"comment"}}]]"#);
        let (once, inner) = Once::parse(text.as_bytes()).expect("well formed");
        assert_eq!(
            once,
            Once {
                id: uuid,
                age_ms: 12
            }
        );
        assert_eq!(inner, br#"["D",{"op":"comment"}]"#);
        for wrong in [
            r#"["D"]"#.to_owned(),
            format!(r#"["{uuid}",-1,["D"]]"#),
            format!(r#"["{uuid}",1.5,["D"]]"#),
            format!(r#"["{uuid}",1,"D"]"#),
            format!(r#"["{uuid}",1,["D"],2]"#),
            "{}".to_owned(),
        ] {
            assert!(Once::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn nothing_that_may_have_been_forgotten_is_executed_again() {
        let mut table = OnceTable::new(1000);
        let of = |age_ms| Once { id: id(9), age_ms };
        assert!(table.vouches(1500, of(0)) && table.vouches(1500, of(400)));
        assert!(
            !table.vouches(1500, of(600)),
            "another database of this name had it"
        );
        table.remember(2000, id(1), result(10));
        table.remember(2001, id(1), result(20));
        assert_eq!((table.bytes, table.get(id(1)).is_some()), (20, true));
        table.undone(id(1));
        assert_eq!((table.bytes, table.get(id(1)).is_none()), (0, true));
        table.remember(3000, id(2), result(RESULT_BYTES_MAX + 1));
        assert_eq!(table.get(id(2)), Some(&OnceOutcome::Result(None)));
        for number in 0..IDS_MAX as u64 {
            table.remember(4000, id(100 + number), result(1));
        }
        assert!(table.get(id(2)).is_none() && table.get(id(100)).is_some());
        assert!(!table.vouches(60_000, of(1)), "it may have been forgotten");
        assert!(table.vouches(200_000, of(1)));
    }
}
