//! A small JSON tree, for schemas, error fragments and tools; never on the hot path.

use std::collections::BTreeMap;

use bstr::{BStr, BString};

use crate::{Error, Number};

/// Members sorted bytewise by name. The last of repeated names wins.
pub type Object = BTreeMap<BString, Value>;

/// A JSON value. Equality is structural. Numbers are compared as classified by the number rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// a number that is exactly an `i64`
    Integer(i64),
    /// any other number
    Real(f64),
    /// a byte string, usually UTF-8
    String(BString),
    /// an array
    Array(Vec<Value>),
    /// an object
    Object(Object),
}

impl Value {
    /// Parses one text of any kind. White space around it is allowed.
    ///
    /// # Errors
    /// Syntax.
    pub fn parse(text: &[u8]) -> Result<Value, Error> {
        let mut reader = crate::Reader::new(text);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Parses one text as a stream, a file or a tool's argument contains it: the outermost value is
    /// an object or an array.
    ///
    /// # Errors
    /// Syntax, or another kind of value (`syntax error at beginning of input`).
    pub fn parse_text(text: &[u8]) -> Result<Value, Error> {
        let mut reader = crate::Reader::new(text);
        reader.outermost()?;
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Shorthand for a string value.
    pub fn string(text: impl AsRef<[u8]>) -> Value {
        Value::String(BString::from(text.as_ref()))
    }

    /// The member `name`, if the value is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.get(BStr::new(name)),
            _ => None,
        }
    }

    /// The string, if the value is one and valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The elements, if the value is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members, if the value is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The integer, if the value is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The boolean, if the value is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(boolean) => Some(*boolean),
            _ => None,
        }
    }

    /// Appends the compact text, with members sorted by name.
    pub fn write(&self, out: &mut Vec<u8>) {
        crate::write::value(out, self);
    }

    /// The compact text as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// Appends the text indented by two spaces, one element per line, as the reference's `--pretty`
    /// prints it (docs/spec/cli.md 3.5).
    pub fn write_pretty(&self, out: &mut Vec<u8>) {
        crate::write::pretty(out, self);
    }
}

/// Displays the compact text. Replacement characters stand for invalid UTF-8.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Integer(integer) => Value::Integer(integer),
            Number::Real(real) => Value::Real(real),
        }
    }
}
