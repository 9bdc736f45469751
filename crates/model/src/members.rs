//! Parses objects with named members, such as operations (docs/spec/protocol.md 1.7).

use std::collections::BTreeSet;

use corvid_json::Value;

use super::datum::is_id;
use super::fault::{Fault, Faults};

/// The required shape of a member's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// An `<id>`.
    Id,
    /// A string.
    String,
    /// `true` or `false`.
    Boolean,
    /// An integer.
    Integer,
    /// An array.
    Array,
    /// An object.
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

/// An object under parsing, with the names of the members that were read.
pub(super) struct Members<'v> {
    /// The object's name in error messages.
    pub what: String,
    /// The object itself.
    pub whole: &'v Value,
    asked: BTreeSet<&'static str>,
}

impl<'v> Members<'v> {
    /// Starts to parse `whole`.
    ///
    /// # Errors
    /// If `whole` is not an object.
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

    /// Makes a `syntax error` about the whole object.
    #[must_use]
    pub(super) fn fault(&self, problem: &str) -> Fault {
        Fault::syntax(
            self.whole,
            format!("Parsing {} failed: {problem}", self.what),
        )
    }

    /// Reads a member that may be absent.
    ///
    /// # Errors
    /// If the member does not have the shape.
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

    /// Reads a member that must be present.
    ///
    /// # Errors
    /// If the member is absent or does not have the shape.
    pub(super) fn required(
        &mut self,
        name: &'static str,
        shape: Shape,
    ) -> Result<&'v Value, Fault> {
        let found = self.optional(name, shape)?;
        found.ok_or_else(|| self.fault(&format!("Required '{name}' member is missing.")))
    }

    /// Checks that every member has been read. The message may name any other member.
    ///
    /// # Errors
    /// If a member has not been read: one error per such member.
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
