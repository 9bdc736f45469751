//! Writes arrays and objects with typed values straight into a byte vector. The writers insert the
//! commas.
//!
//! A writer borrows the vector, so a nested writer must end before the outer one continues. The
//! only run-time check is whether a comma is due.

use crate::write;

/// Writes one array.
///
/// ```
/// use corvid_json::{write, writer::ArrayWriter};
/// let mut out = Vec::new();
/// let mut array = ArrayWriter::new(&mut out);
/// write::string(array.element(), b"set");
/// ArrayWriter::new(array.element()).end();
/// array.end();
/// assert_eq!(out, br#"["set",[]]"#);
/// ```
#[derive(Debug)]
#[must_use = "the closing bracket is written by `end`"]
pub struct ArrayWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> ArrayWriter<'a> {
    /// Opens an array.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'[');
        ArrayWriter { out, first: true }
    }

    /// Begins the next element; the caller appends exactly one value to the returned vector.
    pub fn element(&mut self) -> &mut Vec<u8> {
        separate(self.out, &mut self.first);
        self.out
    }

    /// Closes the array.
    pub fn end(self) {
        self.out.push(b']');
    }
}

/// Writes one object. Members appear in the order of the calls.
///
/// ```
/// use corvid_json::{write, writer::ObjectWriter};
/// let mut out = Vec::new();
/// let mut object = ObjectWriter::new(&mut out);
/// write::integer(object.member("count"), 1);
/// object.string("error", b"timed out").end();
/// assert_eq!(out, br#"{"count":1,"error":"timed out"}"#);
/// ```
#[derive(Debug)]
#[must_use = "the closing bracket is written by `end`"]
pub struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens an object.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        ObjectWriter { out, first: true }
    }

    /// Begins the member `name`; the caller appends exactly one value to the returned vector.
    pub fn member(&mut self, name: impl AsRef<[u8]>) -> &mut Vec<u8> {
        separate(self.out, &mut self.first);
        write::string(self.out, name.as_ref());
        self.out.push(b':');
        self.out
    }

    /// Writes a member whose value is a string.
    pub fn string(mut self, name: impl AsRef<[u8]>, text: &[u8]) -> Self {
        write::string(self.member(name), text);
        self
    }

    /// Writes a member whose value is already JSON.
    pub fn raw(mut self, name: impl AsRef<[u8]>, json: &[u8]) -> Self {
        self.member(name).extend_from_slice(json);
        self
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

fn separate(out: &mut Vec<u8>, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}
