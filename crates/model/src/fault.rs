//! Errors in the protocol's words. Where the protocol does not say which of several is reported, the model returns all of them.

use corvid_json::{Object, Value};

/// An error object of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// `error`
    pub tag: &'static str,
    /// `details`
    pub details: String,
    /// The value in `syntax`, if any.
    pub syntax: Option<Value>,
}

/// Errors of which any one may be reported; never empty.
pub type Faults = Vec<Fault>;

impl Fault {
    /// An error without `syntax`.
    pub fn new(tag: &'static str, details: impl Into<String>) -> Fault {
        Fault {
            tag,
            details: details.into(),
            syntax: None,
        }
    }

    /// A `syntax error` about `value`.
    pub fn syntax(value: &Value, details: impl Into<String>) -> Fault {
        Fault::new("syntax error", details).about(value)
    }

    /// The same error with `value` in `syntax`.
    #[must_use]
    pub fn about(mut self, value: &Value) -> Fault {
        self.syntax = Some(value.clone());
        self
    }

    /// A `constraint violation`.
    pub fn constraint(details: impl Into<String>) -> Fault {
        Fault::new("constraint violation", details)
    }

    /// Its wire form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut members = Object::new();
        members.insert("error".into(), Value::string(self.tag));
        members.insert("details".into(), Value::string(&self.details));
        if let Some(syntax) = &self.syntax {
            members.insert("syntax".into(), Value::string(syntax.to_bytes()));
        }
        Value::Object(members)
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Faults {
        vec![fault]
    }
}
