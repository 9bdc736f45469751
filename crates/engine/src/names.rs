//! Names of rows within one execution: `uuid-name` and `["named-uuid", NAME]`
//! (docs/spec/protocol.md 2.6, 5.2).
//!
//! Invariant: a name means one UUID throughout an execution, in operations before its insert as
//! well as after. If the insert also gives `uuid`, the name means that UUID, even before the
//! insert. To find that UUID, the operations are searched once, when a name is first mentioned
//! before its insert.

use corvid_data::members::{self, is_id};
use corvid_data::wire::{Content, StringCache};
use corvid_data::{HashSeed, Str, Symbols, Uuid, UuidSource, WireError};
use corvid_json::Reader;

use crate::hash::Map;
use crate::operations::Operations;

/// The names of one execution, the source of fresh UUIDs, and the strings that executions share.
pub(crate) struct Names<'a> {
    uuids: &'a mut dyn UuidSource,
    strings: &'a mut StringCache,
    params: &'a [u8],
    bound: Map<Box<str>, Name>,
    /// The names that later inserts bind to a given UUID; `None` until they are needed.
    announced: Option<Map<Box<str>, Uuid>>,
}

struct Name {
    uuid: Uuid,
    is_inserted: bool,
}

impl<'a> Names<'a> {
    /// No names yet.
    pub(crate) fn new(
        uuids: &'a mut dyn UuidSource,
        strings: &'a mut StringCache,
        params: &'a [u8],
        seed: HashSeed,
    ) -> Names<'a> {
        Names {
            uuids,
            strings,
            params,
            bound: Map::with_hasher(seed),
            announced: None,
        }
    }

    /// Binds the name of an `insert` and returns the row's UUID; `None` if an earlier `insert` has
    /// the name. `given` is the `uuid` member, if there is one.
    pub(crate) fn insert(&mut self, name: &str, given: Option<Uuid>) -> Option<Uuid> {
        if let Some(known) = self.bound.get_mut(name) {
            if known.is_inserted {
                return None;
            }
            known.is_inserted = true;
            if let Some(given) = given {
                known.uuid = given;
            }
            return Some(known.uuid);
        }
        let uuid = given.unwrap_or_else(|| self.uuids.fresh());
        self.bound.insert(
            name.into(),
            Name {
                uuid,
                is_inserted: true,
            },
        );
        Some(uuid)
    }

    /// A UUID for a row or version without a name.
    pub(crate) fn fresh(&mut self) -> Uuid {
        self.uuids.fresh()
    }

    /// The source of fresh UUIDs.
    pub(crate) fn source(&mut self) -> &mut dyn UuidSource {
        self.uuids
    }
}

impl Symbols for Names<'_> {
    fn resolve(&mut self, name: &str) -> Uuid {
        if let Some(known) = self.bound.get(name) {
            return known.uuid;
        }
        let announced = self
            .announced
            .get_or_insert_with(|| announcements(self.params, *self.bound.hasher()));
        let uuid = match announced.get(name) {
            Some(uuid) => *uuid,
            None => self.uuids.fresh(),
        };
        self.bound.insert(
            name.into(),
            Name {
                uuid,
                is_inserted: false,
            },
        );
        uuid
    }

    fn string(&mut self, text: &[u8]) -> Result<Str, WireError> {
        self.strings.intern(text)
    }

    fn content(&mut self, text: &[u8], role: Content) -> Result<Str, WireError> {
        self.strings.intern_content(text, role)
    }
}

/// The names that operations of `params` bind to a UUID that they give. Malformed operations are
/// skipped; their execution reports them.
fn announcements(params: &[u8], seed: HashSeed) -> Map<Box<str>, Uuid> {
    let mut first = Map::with_hasher(seed);
    let mut operations = Operations::new(params);
    while operations.advance() {
        let members = operations.split().0.ok();
        if let Some((name, uuid)) = members.and_then(|members| announcement(members.whole())) {
            // A second insert of a name fails, so its UUID is not used.
            first.entry(name).or_insert(uuid);
        }
    }
    let mut announced = Map::with_hasher(seed);
    announced.extend(
        first
            .into_iter()
            .filter_map(|(name, uuid)| Some((name, uuid?))),
    );
    announced
}

/// The name of an operation, and the UUID that it gives.
fn announcement(operation: &[u8]) -> Option<(Box<str>, Option<Uuid>)> {
    let (mut name, mut uuid) = (None, None);
    let mut reader = Reader::trusted(operation);
    reader.begin_object().ok()?;
    while let Some(member) = reader.next_member().ok()? {
        let value = reader.skip().ok()?;
        match &*member {
            b"uuid-name" => name = members::text(value),
            b"uuid" => uuid = members::string(value),
            _ => {}
        }
    }
    let name = name.filter(|name| is_id(name.as_bytes()))?;
    Some((name.into(), uuid.and_then(|uuid| Uuid::parse(&uuid))))
}

/// Reborrows an optional symbol table.
pub(crate) fn reborrow<'s>(
    symbols: &'s mut Option<&mut dyn Symbols>,
) -> Option<&'s mut dyn Symbols> {
    match symbols {
        Some(symbols) => Some(&mut **symbols),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u8);

    impl UuidSource for Counter {
        fn fresh(&mut self) -> Uuid {
            self.0 += 1;
            Uuid([self.0; 16])
        }
    }

    #[test]
    fn a_mention_before_the_insert_means_the_uuid_that_the_insert_gives() {
        let params = br#"["D",
            {"op":"insert","uuid-name":"a","uuid":"99999999-9999-9999-9999-999999999999"},
            {"op":"insert","uuid-name":"b"},
            {"op":"insert","uuid-name":"b","uuid":"88888888-8888-8888-8888-888888888888"},
            5]"#;
        let mut source = Counter(0);
        let mut strings = StringCache::default();
        let mut names = Names::new(&mut source, &mut strings, params, HashSeed::FIXED);
        let given = Uuid([0x99; 16]);
        assert_eq!(names.resolve("a"), given);
        assert_eq!(names.resolve("b"), Uuid([1; 16]));
        assert_eq!(names.insert("b", None), Some(Uuid([1; 16])));
        assert_eq!(names.insert("b", None), None);
        assert_eq!(names.insert("a", Some(given)), Some(given));
        assert_eq!(names.insert("c", None), Some(Uuid([2; 16])));
        assert_eq!(names.resolve("c"), Uuid([2; 16]));
    }
}
