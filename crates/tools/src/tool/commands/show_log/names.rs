//! The names of rows in a listing: the values of their `name` columns before the current record.

use std::collections::HashMap;

/// The rows that exist at a position of the log.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Keyed by the UUID as the record spells it: invalid records are listed too.
    rows: HashMap<String, Option<String>>,
}

impl Names {
    /// `None` if the row does not exist; else its name, if it has one.
    pub(super) fn of(&self, uuid: &str) -> Option<&Option<String>> {
        self.rows.get(uuid)
    }

    /// Adds a row, or renames an existing row. Without `name`, an existing row keeps its name.
    pub(super) fn insert(&mut self, uuid: &str, name: Option<String>) {
        let stored = self.rows.entry(uuid.to_owned()).or_default();
        if name.is_some() {
            *stored = name;
        }
    }

    /// Removes a deleted row. Its UUID may be inserted again later, as another row.
    pub(super) fn remove(&mut self, uuid: &str) {
        self.rows.remove(uuid);
    }
}
