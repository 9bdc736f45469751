//! Errors in the protocol's words. If the protocol leaves open which of several errors is reported,
//! the model returns all of them.

use corvid_json::{Object, Value};

/// One error object, as it stands in a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// `error`
    pub tag: &'static str,
    /// `details`
    pub details: String,
    /// The value that `syntax` shows, if any.
    pub syntax: Option<Value>,
}

/// The errors of which any one may be reported; never empty in an `Err`.
pub type Faults = Vec<Fault>;

impl Fault {
    /// Makes an error without `syntax`.
    pub fn new(tag: &'static str, details: impl Into<String>) -> Fault {
        Fault {
            tag,
            details: details.into(),
            syntax: None,
        }
    }

    /// Makes a `syntax error` about `value`.
    pub fn syntax(value: &Value, details: impl Into<String>) -> Fault {
        Fault::new("syntax error", details).about(value)
    }

    /// Returns the error with `value` as its `syntax`.
    #[must_use]
    pub fn about(mut self, value: &Value) -> Fault {
        self.syntax = Some(value.clone());
        self
    }

    /// Makes a `constraint violation`.
    pub fn constraint(details: impl Into<String>) -> Fault {
        Fault::new("constraint violation", details)
    }

    /// Returns the JSON form.
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
