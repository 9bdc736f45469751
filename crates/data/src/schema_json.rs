//! Schemas from JSON and back: every error of protocol.md 3.5, the canonical form of 3.4.

use corvid_json::Value;

use crate::WireError;
use crate::schema::Schema;

impl Schema {
    /// Parses and validates a database schema.
    ///
    /// # Errors
    /// The texts of protocol.md 3.5.
    pub fn from_json(json: &Value) -> Result<Schema, WireError> {
        let _ = json;
        todo!()
    }

    /// The canonical form, as `get_schema`, `_Server` and the database file show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        todo!()
    }
}
