//! Objects with named members, as operations are parsed (docs/spec/protocol.md 1.7).

use std::collections::BTreeSet;

use corvid_json::Value;

use super::datum::is_id;
use super::fault::{Fault, Faults};

/// The required shape of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// An `<id>`
    Id,
    /// A string
    String,
    /// `true` or `false`
    Boolean,
    /// A whole number
    Integer,
    /// An array
    Array,
    /// An object
    Object,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Id, value) => value.as_str().is_some_and(is_id),
            (Shape::String, Value::String(_))
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::Integer, Value::Integer(_))
            | (Shape::Array, Value::Array(_))
            | (Shape::Object, Value::Object(_)) => true,
            _ => false,
        }
    }
}

/// A value that should be an object, and the members that were read.
pub(super) struct Members<'v> {
    /// Its name in messages.
    pub what: String,
    /// The whole value.
    pub whole: &'v Value,
    asked: BTreeSet<&'static str>,
}

impl<'v> Members<'v> {
    /// Begins to parse.
    ///
    /// # Errors
    /// When it is no object.
    pub(super) fn new(what: String, whole: &'v Value) -> Result<Members<'v>, Fault> {
        if whole.as_object().is_none() {
            let details = format!("Parsing {what} failed: Object expected.");
            return Err(Fault::new("syntax error", details));
        }
        Ok(Members {
            what,
            whole,
            asked: BTreeSet::new(),
        })
    }

    /// A `syntax error` about the whole.
    #[must_use]
    pub(super) fn fault(&self, problem: &str) -> Fault {
        Fault::syntax(
            self.whole,
            format!("Parsing {} failed: {problem}", self.what),
        )
    }

    /// A member that may be absent.
    ///
    /// # Errors
    /// When it is not of the shape.
    pub(super) fn optional(
        &mut self,
        name: &'static str,
        shape: Shape,
    ) -> Result<Option<&'v Value>, Fault> {
        self.asked.insert(name);
        match self.whole.get(name) {
            Some(value) if !shape.fits(value) => {
                Err(self.fault(&format!("Type mismatch for member '{name}'.")))
            }
            value => Ok(value),
        }
    }

    /// A member that must be there.
    ///
    /// # Errors
    /// When it is absent or not of the shape.
    pub(super) fn required(
        &mut self,
        name: &'static str,
        shape: Shape,
    ) -> Result<&'v Value, Fault> {
        let found = self.optional(name, shape)?;
        found.ok_or_else(|| self.fault(&format!("Required '{name}' member is missing.")))
    }

    /// Reports members that were not read; the message may name any of them.
    ///
    /// # Errors
    /// When there are some.
    pub(super) fn finish(&self) -> Result<(), Faults> {
        let members = self.whole.as_object().expect("an object").keys();
        let is_strange = |name: &&bstr::BString| {
            !self
                .asked
                .iter()
                .any(|asked| name.as_slice() == asked.as_bytes())
        };
        let strange: Vec<_> = members.filter(is_strange).collect();
        let others = match strange.len() {
            0 => return Ok(()),
            1 => "is".to_owned(),
            2 => "and 1 other member are".to_owned(),
            count => format!("and {} other members are", count - 1),
        };
        let fault = |name| {
            self.fault(&format!(
                "Member '{name}' {others} present but not allowed here."
            ))
        };
        Err(strange.into_iter().map(fault).collect())
    }
}
