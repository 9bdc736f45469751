//! Kinds of transactions, judged by the names of their operations. A follower answers read-only
//! transactions from its own state.
//!
//! Invariant: a wrong guess costs time but is never visible. A transaction that turns out to change
//! something is forwarded after all, and a leader executes one that changes nothing. Reads only the
//! text.

use corvid_data::members;
use corvid_engine::{Effect, OperationKind};
use corvid_json::Reader;

/// The effects that a transaction may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionKind {
    /// The transaction may change rows. A `commit` changes none, so a follower answers a
    /// transaction of it alone.
    pub(crate) may_change: bool,
    /// The transaction may wait for a condition.
    pub(crate) may_wait: bool,
    /// The transaction asserts locks.
    pub(crate) asserts: bool,
    /// The transaction has an operation of writing kind, `commit` among them, or an unknown one: a
    /// relay leaves it to its source.
    pub(crate) is_for_source: bool,
    /// The transaction has a `wait` that may block: its timeout is not zero.
    pub(crate) may_block: bool,
}

impl TransactionKind {
    /// The kind of the transaction with this `params` text, which is valid JSON.
    pub(crate) fn of(params: &[u8]) -> TransactionKind {
        let mut kind = TransactionKind::default();
        // Unreadable text fails on any server, so any kind will do.
        let _ = kind.read(params);
        kind
    }

    fn read(&mut self, params: &[u8]) -> Result<(), corvid_json::Error> {
        let mut reader = Reader::trusted(params);
        reader.begin_array()?;
        while reader.next_element()? {
            let mut operation = Reader::trusted(reader.skip()?);
            if operation.begin_object().is_err() {
                continue;
            }
            let (mut waits, mut has_limit_zero) = (false, false);
            while let Some(name) = operation.next_member()? {
                let value = operation.skip()?;
                if *name == *b"op" {
                    // Cleared so that `add` tells whether this operation waits.
                    let before = std::mem::take(&mut self.may_wait);
                    self.add(value);
                    waits = self.may_wait;
                    self.may_wait |= before;
                } else if *name == *b"timeout" {
                    // Another spelling of zero counts as a timeout: a wrong guess only costs time.
                    has_limit_zero = value == b"0";
                }
            }
            self.may_block |= waits && !has_limit_zero;
        }
        Ok(())
    }

    fn add(&mut self, operation: &[u8]) {
        let name = operation.strip_prefix(b"\"");
        let name = name.and_then(|name| name.strip_suffix(b"\""));
        let Some(kind) = name.and_then(OperationKind::of) else {
            self.is_for_source = true;
            // An escape may spell a known name differently, so assume every effect.
            let is_spelled_otherwise = operation.contains(&b'\\');
            self.may_change |= is_spelled_otherwise;
            self.may_wait |= is_spelled_otherwise;
            self.asserts |= is_spelled_otherwise;
            return;
        };
        self.is_for_source |= kind.is_writing();
        self.may_change |= kind.changes_rows();
        match kind.effect() {
            Effect::Waits => self.may_wait = true,
            Effect::Asserts => self.asserts = true,
            Effect::Changes(_) | Effect::Commits | Effect::Reads | Effect::Nothing => {}
        }
    }
}

/// The locks that a transaction asserts; `None` if its text does not tell.
pub(crate) fn asserted_locks(params: &[u8]) -> Option<Vec<String>> {
    let mut locks = Vec::new();
    let mut reader = Reader::trusted(params);
    reader.begin_array().ok()?;
    while reader.next_element().ok()? {
        let mut operation = Reader::trusted(reader.skip().ok()?);
        if operation.begin_object().is_err() {
            continue;
        }
        let (mut asserts, mut lock) = (false, None);
        while let Some(name) = operation.next_member().ok()? {
            match &*name {
                b"op" => {
                    let value = operation.skip().ok()?;
                    // An escape may spell `assert` differently.
                    if value.contains(&b'\\') {
                        return None;
                    }
                    asserts = value == b"\"assert\"";
                }
                b"lock" => {
                    let name = members::string(operation.skip().ok()?);
                    lock = name.and_then(|name| String::from_utf8(name.into_owned()).ok());
                }
                _ => drop(operation.skip().ok()?),
            }
        }
        if asserts {
            locks.push(lock?);
        }
    }
    Some(locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(operations: &str) -> (bool, bool, bool) {
        let kind = TransactionKind::of(format!("[\"D\",{operations}]").as_bytes());
        (kind.may_change, kind.may_wait, kind.asserts)
    }

    #[test]
    fn operations_are_found_by_name_wherever_it_stands() {
        let reads = r#"{"op":"select","where":[["op","==","insert"]]},{"op":"comment"}"#;
        assert_eq!(kind(reads), (false, false, false));
        let waits = r#"{"table":"T","op":"wait"},{"op":"assert"}"#;
        assert_eq!(kind(waits), (false, true, true));
        assert_eq!(kind(r#"{"row":{},"op":"mutate"}"#), (true, false, false));
        let commits = r#"{"op":"commit","durable":true}"#;
        assert_eq!(kind(commits), (false, false, false));
        assert_eq!(kind(r#"{"op":"\u0069nsert"}"#), (true, true, true));
        assert_eq!(kind("1,[],null"), (false, false, false));
    }

    #[test]
    fn asserted_locks_are_found_by_name() {
        let locks = |operations: &str| asserted_locks(format!("[\"D\",{operations}]").as_bytes());
        let two =
            r#"{"lock":"a","op":"assert"},{"op":"insert","lock":"x"},{"op":"assert","lock":"b"}"#;
        assert_eq!(locks(two), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(locks(r#"{"op":"comment"},1"#), Some(vec![]));
        for unclear in [
            r#"{"op":"assert"}"#,
            r#"{"op":"assert","lock":1}"#,
            r#"{"op":"\u0061ssert","lock":"a"}"#,
        ] {
            assert_eq!(locks(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn a_relay_passes_on_what_is_more_than_reading() {
        let kind = |operations: &str| {
            let kind = TransactionKind::of(format!("[\"D\",{operations}]").as_bytes());
            (kind.is_for_source, kind.may_block)
        };
        let reads = r#"{"op":"select"},{"op":"comment"},{"op":"assert"},{"op":"abort"}"#;
        assert_eq!(kind(reads), (false, false));
        assert_eq!(kind(r#"{"op":"commit"}"#), (true, false));
        assert_eq!(kind(r#"{"op":"wait"}"#), (false, true));
        assert_eq!(kind(r#"{"timeout":0,"op":"wait"}"#), (false, false));
        let both = r#"{"op":"wait","timeout":5},{"op":"insert"},{"op":"wait","timeout":0}"#;
        assert_eq!(kind(both), (true, true));
        assert_eq!(kind(r#"{"op":"w\u0061it"}"#), (true, true));
    }
}
