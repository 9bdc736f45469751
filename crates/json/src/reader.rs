//! A pull reader: one pass over a slice, no tree. Strings are byte strings (invalid UTF-8 passes, protocol.md 1.2).

use std::borrow::Cow;

use crate::{Error, Number, Value};

/// What the next value is, told from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// a number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

/// Reads values from a slice. Every method validates what it passes over, so a text read to its end is valid JSON.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    _bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts before the first value of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { _bytes: bytes }
    }

    /// Starts before a value that was read successfully before: [`Reader::skip`] then only matches brackets.
    #[must_use]
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Reader { _bytes: bytes }
    }

    /// The kind of the next value.
    ///
    /// # Errors
    /// End of input or a byte that begins no value.
    pub fn peek(&mut self) -> Result<Kind, Error> {
        todo!()
    }

    /// Enters an array (consumes `[`). Then call [`Reader::next_element`] before each element.
    ///
    /// # Errors
    /// The next value is no array, or nests too deep.
    pub fn begin_array(&mut self) -> Result<(), Error> {
        todo!()
    }

    /// Moves to the next element; `false` after the last (the closing bracket is consumed).
    ///
    /// # Errors
    /// Syntax.
    pub fn next_element(&mut self) -> Result<bool, Error> {
        todo!()
    }

    /// Enters an object (consumes `{`). Then call [`Reader::next_member`] before each member's value.
    ///
    /// # Errors
    /// The next value is no object, or nests too deep.
    pub fn begin_object(&mut self) -> Result<(), Error> {
        todo!()
    }

    /// Moves to the next member and returns its name; `None` after the last. Repeated names are reported each time.
    ///
    /// # Errors
    /// Syntax.
    pub fn next_member(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        todo!()
    }

    /// Reads a string; borrowed when it has no escapes.
    ///
    /// # Errors
    /// Not a string, or malformed.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, Error> {
        todo!()
    }

    /// Reads a number by the number rule.
    ///
    /// # Errors
    /// Not a number, or malformed.
    pub fn number(&mut self) -> Result<Number, Error> {
        todo!()
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// Anything else.
    pub fn boolean(&mut self) -> Result<bool, Error> {
        todo!()
    }

    /// Reads `null`.
    ///
    /// # Errors
    /// Anything else.
    pub fn null(&mut self) -> Result<(), Error> {
        todo!()
    }

    /// Passes over the next value and returns its text (without surrounding white space).
    ///
    /// # Errors
    /// Syntax.
    pub fn skip(&mut self) -> Result<&'a [u8], Error> {
        todo!()
    }

    /// Reads the next value as a tree.
    ///
    /// # Errors
    /// Syntax.
    pub fn value(&mut self) -> Result<Value, Error> {
        todo!()
    }

    /// Succeeds when only white space remains.
    ///
    /// # Errors
    /// Trailing bytes.
    pub fn end(&mut self) -> Result<(), Error> {
        todo!()
    }

    /// Byte offset of the next unread byte.
    #[must_use]
    pub fn offset(&self) -> usize {
        todo!()
    }
}
