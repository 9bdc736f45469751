//! The served databases by name: an immutable list that shards share and the main thread replaces.

use std::collections::{BTreeMap, BTreeSet};

use crate::applied_index::AppliedIndex;
use crate::message::DatabaseId;

/// Served databases in name order, `_Server` included.
#[derive(Clone, Debug, Default)]
pub struct ServedDatabases {
    by_name: BTreeMap<String, DatabaseId>,
    /// Names of databases that are listed and have no contents yet: their servers are joining a cluster.
    joining: BTreeSet<String>,
    /// Databases whose transactions may wait for other servers, with the index that members of a
    /// cluster show.
    clustered: BTreeMap<DatabaseId, Option<AppliedIndex>>,
}

impl ServedDatabases {
    /// The number of a database.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<DatabaseId> {
        self.by_name.get(name).copied()
    }

    /// Whether a number is served.
    #[must_use]
    pub fn contains(&self, id: DatabaseId) -> bool {
        self.by_name.values().any(|served| *served == id)
    }

    /// Numbers of the served databases.
    pub fn ids(&self) -> impl Iterator<Item = DatabaseId> + '_ {
        self.by_name.values().copied()
    }

    /// Names in bytewise order, those of joining databases included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .by_name
            .keys()
            .chain(&self.joining)
            .map(String::as_str)
            .collect();
        names.into_iter()
    }

    /// Whether a database of this name is joining its cluster.
    #[must_use]
    pub fn is_joining(&self, name: &str) -> bool {
        self.joining.contains(name)
    }

    /// Adds the name of a database that is joining its cluster.
    pub fn insert_joining(&mut self, name: &str) {
        self.joining.insert(name.to_owned());
    }

    /// Adds or replaces a database.
    pub fn insert(&mut self, name: &str, id: DatabaseId) {
        self.by_name.insert(name.to_owned(), id);
    }

    /// Adds or replaces a clustered database, with its index, or a relay, which has none.
    pub fn insert_clustered(&mut self, name: &str, id: DatabaseId, applied: Option<AppliedIndex>) {
        self.insert(name, id);
        self.clustered.insert(id, applied);
    }

    /// The index that a clustered database shows in `_Server`.
    #[must_use]
    pub fn applied_index(&self, id: DatabaseId) -> Option<&AppliedIndex> {
        self.clustered.get(&id)?.as_ref()
    }

    /// Whether transactions of a database may wait for other members of its cluster.
    #[must_use]
    pub fn is_clustered(&self, id: DatabaseId) -> bool {
        self.clustered.contains_key(&id)
    }

    /// Removes a database.
    pub fn remove(&mut self, name: &str) -> Option<DatabaseId> {
        let removed = self.by_name.remove(name);
        if let Some(id) = removed {
            self.clustered.remove(&id);
        }
        removed
    }
}
