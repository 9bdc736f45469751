//! Exclusions from the audit trail: tables and columns, as the command line names them.
//!
//! Unknown names are ignored: a later schema may add the table.

use std::collections::HashSet;

use corvid_data::{ColumnId, Schema, TableId, TrustedKeys};

/// The exclusions of all databases, by name.
#[derive(Clone, Debug, Default)]
pub struct Exclusions(Vec<Exclusion>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Exclusion {
    database: String,
    table: String,
    /// The column; `None` excludes the whole table.
    column: Option<String>,
}

/// The exclusions of one database.
#[derive(Debug, Default)]
pub struct Excluded {
    tables: HashSet<TableId, TrustedKeys>,
    columns: HashSet<(TableId, ColumnId), TrustedKeys>,
}

impl Exclusions {
    /// Adds a comma-separated list of exclusions, each `DB:TABLE` or `DB:TABLE:COLUMN`.
    ///
    /// # Errors
    /// The first element that has neither form.
    pub fn add<'t>(&mut self, list: &'t str) -> Result<(), &'t str> {
        for element in list.split(',').filter(|element| !element.is_empty()) {
            let names: Vec<&str> = element.split(':').collect();
            let (database, table, column) = match names.as_slice() {
                [database, table] => (database, table, None),
                [database, table, column] => (database, table, Some((*column).to_owned())),
                _ => return Err(element),
            };
            if names.contains(&"") {
                return Err(element);
            }
            self.0.push(Exclusion {
                database: (*database).to_owned(),
                table: (*table).to_owned(),
                column,
            });
        }
        Ok(())
    }

    /// The exclusions of one database.
    pub(super) fn of(&self, schema: &Schema) -> Excluded {
        let mut excluded = Excluded::default();
        for exclusion in &self.0 {
            if *exclusion.database != *schema.name {
                continue;
            }
            let Some(table) = schema.table_id(&exclusion.table) else {
                continue;
            };
            match &exclusion.column {
                None => {
                    excluded.tables.insert(table);
                }
                Some(name) => {
                    let column = schema.table(table).column_id(name);
                    excluded
                        .columns
                        .extend(column.map(|column| (table, column)));
                }
            }
        }
        excluded
    }
}

impl Excluded {
    pub(super) fn has_table(&self, table: TableId) -> bool {
        self.tables.contains(&table)
    }

    pub(super) fn has_column(&self, table: TableId, column: ColumnId) -> bool {
        !self.columns.is_empty() && self.columns.contains(&(table, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_columns_are_named_with_their_database() {
        let mut exclusions = Exclusions::default();
        assert_eq!(exclusions.add("A:T,A:U:c"), Ok(()));
        assert_eq!(exclusions.add(""), Ok(()));
        assert_eq!(exclusions.0.len(), 2);
        assert_eq!(exclusions.0[1].column.as_deref(), Some("c"));
        for bad in ["T", "A:", "A::c", "A:T:c:d"] {
            assert_eq!(exclusions.add(bad), Err(bad));
        }
    }
}
