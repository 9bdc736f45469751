//! Step 7: no two rows of a table may be equal in all columns of an index. Only the final state is
//! checked.

use std::cmp::Ordering;

use corvid_data::{AtomType, ColumnSchema, Row, TableId, TableSchema, Tag, WireError, text};

use super::Commit;
use crate::index::Index;
use crate::journal::{Effect, Touched};
use crate::row_id::RowId;

impl Commit<'_, '_> {
    /// Searches for another row with the key of each row that is new or whose key changed.
    pub(super) fn check_indexes(&self) -> Result<(), WireError> {
        for touched in self.txn.journal.rows() {
            if !matches!(touched.effect, Effect::Inserted | Effect::Modified) {
                continue;
            }
            let table = self.txn.table(touched.id.table);
            let Some(row) = self.txn.row(touched) else {
                continue;
            };
            for index in table.indexes() {
                if !has_new_key(touched, index) {
                    continue;
                }
                let twin = index
                    .candidates(index.key(row))
                    .filter(|slot| table.at(*slot).uuid != row.uuid)
                    .filter(|slot| index.same_key(table.at(*slot), row))
                    // The lowest slot, so that the error does not depend on the seed of the hashes.
                    .min()
                    .map(|slot| table.at(slot));
                if let Some(twin) = twin {
                    return Err(self.duplicate_key(touched.id.table, index, row, twin));
                }
            }
        }
        Ok(())
    }

    fn duplicate_key(&self, table: TableId, index: &Index, row: &Row, twin: &Row) -> WireError {
        let schema = self.txn.table_schema(table);
        let (first, second) = match compare_contents(schema, row, twin) {
            Ordering::Greater => (row, twin),
            Ordering::Less => (twin, row),
            Ordering::Equal if self.found_before(table, twin, row) => (twin, row),
            Ordering::Equal => (row, twin),
        };
        let names: Vec<String> = index
            .columns()
            .iter()
            .map(|column| format!("\"{}\"", schema.column(*column).name))
            .collect();
        let noun = if names.len() == 1 {
            "column"
        } else {
            "columns"
        };
        WireError::new(
            Tag::ConstraintViolation,
            format!(
                "Transaction causes multiple rows in \"{}\" table to have identical values ({}) for index on {noun} {}.  \
                 First row, with UUID {}, {}.  Second row, with UUID {}, {}.",
                schema.name,
                key_text(schema, index, row),
                english_list(&names),
                first.uuid,
                self.history(table, index, first),
                second.uuid,
                self.history(table, index, second),
            ),
        )
    }

    /// Whether the search found `a` before `b`.
    fn found_before(&self, table: TableId, a: &Row, b: &Row) -> bool {
        let position = |row: &Row| self.txn.journal.position(RowId::new(table, row.uuid));
        // An untouched row has no position in the journal, which sorts first: it existed before.
        position(a) < position(b)
    }

    /// The effect of the transaction on a row, in the words of the message.
    fn history(&self, table: TableId, index: &Index, row: &Row) -> String {
        let touched = self
            .txn
            .journal
            .find(RowId::new(table, row.uuid))
            // A modified row without differences lost dangling references that this transaction had
            // added to it.
            .filter(|touched| touched.effect == Effect::Inserted || !touched.diffs.is_empty());
        match touched.map(|touched| (touched, &touched.old)) {
            None => "existed in the database before this transaction and was not modified by the transaction".into(),
            Some((_, None)) => "was inserted by this transaction".into(),
            Some((touched, Some(old))) if has_new_key(touched, index) => {
                let schema = self.txn.table_schema(table);
                format!(
                    "had the following index values before the transaction: {}",
                    key_text(schema, index, old)
                )
            }
            Some(_) => "existed in the database before this transaction, which modified some of the row's columns but not \
                        any columns in this index"
                .into(),
        }
    }
}

/// Whether a touched row is new, or its key differs from its previous one.
fn has_new_key(touched: &Touched, index: &Index) -> bool {
    touched.effect == Effect::Inserted
        || touched
            .diffs
            .iter()
            .any(|diff| index.columns().contains(&diff.column))
}

/// Orders rows by their columns in the order of column names, ignoring columns that hold UUIDs.
/// This makes the choice of the first row stable.
fn compare_contents(schema: &TableSchema, a: &Row, b: &Row) -> Ordering {
    let has_uuids = |column: &ColumnSchema| {
        let column_type = &column.column_type;
        column_type.key.atom == AtomType::Uuid
            || column_type
                .value
                .as_ref()
                .is_some_and(|value| value.atom == AtomType::Uuid)
    };
    schema
        .columns()
        .iter()
        .zip(a.columns.iter().zip(&b.columns))
        .filter(|(column, _)| !has_uuids(column))
        .map(|(_, (a, b))| a.cmp(b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn key_text(schema: &TableSchema, index: &Index, row: &Row) -> String {
    let values: Vec<String> = index
        .columns()
        .iter()
        .zip(index.key(row))
        .map(|(column, datum)| {
            let mut value = String::new();
            text::write_datum(&mut value, datum, &schema.column(*column).column_type);
            value
        })
        .collect();
    english_list(&values)
}

/// `A`; `A and B`; `A, B, and C` (docs/spec/protocol.md 2.7).
fn english_list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [head @ .., last] => format!("{}, and {last}", head.join(", ")),
    }
}
