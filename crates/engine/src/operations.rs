//! The operations of a request, one after the other: where each ends is found by the same look that splits it into members.
//!
//! Invariant: the text was read before, as part of its message. An operation is come to only when those before it were executed, so how many
//! there are is not known, and is counted where somebody asks: by errors, and where the count might matter to a budget.

use corvid_data::members::{self, Subject};
use corvid_data::{Members, WireError};
use corvid_json::Reader;

use crate::operation::OperationMembers;

/// No operation is shorter, bytes, unless it is wrong.
const BYTES_MIN: usize = 10;

/// What is left of the array of a request.
pub(crate) struct Operations<'a> {
    params: &'a [u8],
    reader: Reader<'a>,
    /// The one come to last, from 1; 0 before the first.
    number: usize,
}

impl<'a> Operations<'a> {
    /// Those of `params`, behind the name of the database. What is no JSON array has none; framing has refused it before.
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

    /// At least as many as there are, for less than counting them costs.
    pub(crate) fn count_max(params: &[u8]) -> usize {
        params.len() / BYTES_MIN
    }

    /// How many there are. Goes through all of them.
    pub(crate) fn count(params: &[u8]) -> usize {
        members::elements(params).saturating_sub(1)
    }

    /// Comes to the next one. Whether there is one.
    pub(crate) fn advance(&mut self) -> bool {
        let is_there = matches!(self.reader.next_element(), Ok(true));
        self.number += usize::from(is_there);
        is_there
    }

    /// How many were come to.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// How errors name the one come to.
    pub(crate) fn what(&self) -> Subject<'a> {
        Subject::Operation {
            number: self.number,
            params: self.params,
        }
    }

    /// The members of the one come to, which is passed, and its length in bytes.
    pub(crate) fn split(&mut self) -> (Result<OperationMembers<'a>, WireError>, usize) {
        let start = self.reader.offset();
        let members = Members::read(self.what(), self.params, &mut self.reader);
        (members, self.reader.offset() - start)
    }

    /// How many come behind it.
    #[cold]
    pub(crate) fn untried(&self) -> usize {
        Operations::count(self.params).saturating_sub(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_come_to_in_order_whatever_they_are() {
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
