//! The operations of a request, one after the other. A single pass splits an operation into members
//! and finds its end.
//!
//! Invariant: the text was validated before, as part of its message. An operation is read only once
//! those before it were executed, so the number of operations is unknown. They are counted only for
//! errors, and where the number may matter for a budget.

use corvid_data::members::{self, Subject};
use corvid_data::{Members, WireError};
use corvid_json::Reader;

use crate::operation::OperationMembers;

/// The length of the shortest valid operation, in bytes.
const BYTES_MIN: usize = 10;

/// The rest of the array of a request.
pub(crate) struct Operations<'a> {
    params: &'a [u8],
    reader: Reader<'a>,
    /// The number of the current operation, from 1; 0 before the first.
    number: usize,
}

impl<'a> Operations<'a> {
    /// The operations of `params`, after the name of the database. A text that is not a JSON array
    /// has none; framing has refused it before.
    pub(crate) fn new(params: &'a [u8]) -> Operations<'a> {
        let mut reader = Reader::trusted(params);
        if reader.begin_array().is_ok() && matches!(reader.next_element(), Ok(true)) {
            let _ = reader.skip();
        }
        Operations {
            params,
            reader,
            number: 0,
        }
    }

    /// Upper bound on the number of operations, cheaper than counting.
    pub(crate) fn count_max(params: &[u8]) -> usize {
        params.len() / BYTES_MIN
    }

    /// The number of operations. Reads all of them.
    pub(crate) fn count(params: &[u8]) -> usize {
        members::elements(params).saturating_sub(1)
    }

    /// Moves to the next operation. Returns whether there is one.
    pub(crate) fn advance(&mut self) -> bool {
        let is_there = matches!(self.reader.next_element(), Ok(true));
        self.number += usize::from(is_there);
        is_there
    }

    /// The number of the current operation, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The name of the current operation in errors.
    pub(crate) fn what(&self) -> Subject<'a> {
        Subject::Operation {
            number: self.number,
            params: self.params,
        }
    }

    /// Splits the current operation and moves past it. Returns its members, and its length in
    /// bytes.
    pub(crate) fn split(&mut self) -> (Result<OperationMembers<'a>, WireError>, usize) {
        let start = self.reader.offset();
        let members = Members::read(self.what(), self.params, &mut self.reader);
        (members, self.reader.offset() - start)
    }

    /// The number of operations after the current one.
    #[cold]
    pub(crate) fn untried(&self) -> usize {
        Operations::count(self.params).saturating_sub(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_any_kind_are_read_in_order() {
        let params = br#" [ "D" , {"op":"comment","comment":"]}"} ,[{"op":1}], 5 ,{} ] "#;
        let mut operations = Operations::new(params);
        let mut seen = Vec::new();
        while operations.advance() {
            let left = operations.untried();
            let (members, bytes) = operations.split();
            let whole = members.map_or(String::new(), |members| {
                String::from_utf8_lossy(members.whole()).into_owned()
            });
            seen.push((whole, bytes, left));
        }
        let comment = r#"{"op":"comment","comment":"]}"}"#;
        assert_eq!(
            seen,
            [
                (comment.to_owned(), comment.len() + 1, 3),
                (String::new(), 10, 2),
                (String::new(), 2, 1),
                ("{}".to_owned(), 2, 0)
            ]
        );
        assert_eq!(operations.number(), 4);
        for none in [&b"[]"[..], b"[\"D\"]", b"5", b""] {
            assert!(!Operations::new(none).advance());
            assert_eq!(Operations::count(none), 0);
        }
    }
}
