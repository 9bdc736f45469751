//! Step 5: no touched table holds more rows than its schema allows.

use corvid_data::{Tag, WireError};

use super::Commit;
use crate::journal::Effect;

impl Commit<'_, '_> {
    /// Checks the tables of inserted rows: only an insertion can exceed a table's limit.
    pub(super) fn check_max_rows(&mut self) -> Result<(), WireError> {
        let mut checked = None;
        for touched in self.txn.journal.rows() {
            let table = touched.id.table;
            if touched.effect != Effect::Inserted || checked == Some(table) {
                continue;
            }
            checked = Some(table);
            let schema = self.txn.table_schema(table);
            let rows = self.txn.table(table).len();
            if schema.max_rows != u32::MAX && rows > schema.max_rows as usize {
                return Err(WireError::new(
                    Tag::ConstraintViolation,
                    format!(
                        "transaction causes \"{}\" table to contain {rows} rows, greater than the schema-defined limit of {} row(s)",
                        schema.name, schema.max_rows,
                    ),
                ));
            }
        }
        Ok(())
    }
}
