//! What rows are called in a listing: by their `name` column as it was before the record at hand.

use std::collections::HashMap;

/// The rows that exist at a place in the log.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By row name as the record spells it: records that no database would accept are listed too.
    rows: HashMap<String, Option<String>>,
}

impl Names {
    /// `None` for a row not seen before; else its name, if it ever had one.
    pub(super) fn of(&self, uuid: &str) -> Option<&Option<String>> {
        self.rows.get(uuid)
    }

    /// A row is there, with a new name if it got one.
    pub(super) fn learn(&mut self, uuid: &str, name: Option<String>) {
        let known = self.rows.entry(uuid.to_owned()).or_default();
        if name.is_some() {
            *known = name;
        }
    }

    /// The row is deleted; its identity may come back as another row.
    pub(super) fn forget(&mut self, uuid: &str) {
        self.rows.remove(uuid);
    }
}
