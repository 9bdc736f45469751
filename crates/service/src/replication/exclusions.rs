//! Tables that a backup does not replicate (`--sync-exclude-tables`).
//!
//! A list contains `DB:TABLE`, or `TABLE` for that table in every database, separated by commas or
//! spaces. Every list is valid: unknown tables exclude nothing.

use std::collections::BTreeSet;

/// The excluded tables of one database, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions(BTreeSet<String>);

impl Exclusions {
    /// The exclusions of a database in a list.
    #[must_use]
    pub fn of(database: &str, list: &str) -> Exclusions {
        let entries = list.split([',', ' ']).filter(|entry| !entry.is_empty());
        let tables = entries.filter_map(|entry| match entry.split_once(':') {
            None => Some(entry),
            Some((named, table)) => (named == database && !table.is_empty()).then_some(table),
        });
        Exclusions(tables.map(str::to_owned).collect())
    }

    /// Whether no table is excluded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a table is excluded.
    #[must_use]
    pub fn contains(&self, table: &str) -> bool {
        self.0.contains(table)
    }

    /// The excluded tables, sorted.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_a_table_of_one_database_or_of_all() {
        let excluded = Exclusions::of("A", "A:T,B:U V , A:,:W,A:x:y");
        assert!(excluded.tables().eq(["T", "V", "x:y"]));
        assert!(excluded.contains("T") && !excluded.contains("U"));
        assert!(Exclusions::of("A", " ,").is_empty());
    }
}
