//! The served databases by name: an immutable list that shards share and the main thread replaces.

use std::collections::{BTreeMap, BTreeSet};

use corvid_consensus::member::Absence;

use crate::applied_index::AppliedIndex;
use crate::message::DatabaseId;

/// Served databases in name order, `_Server` included.
#[derive(Clone, Debug, Default)]
pub struct ServedDatabases {
    by_name: BTreeMap<String, DatabaseId>,
    /// Databases that are listed and have no contents, with the reason.
    absent: BTreeMap<String, Absence>,
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

    /// Names in bytewise order, those of databases without contents included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .by_name
            .keys()
            .chain(self.absent.keys())
            .map(String::as_str)
            .collect();
        names.into_iter()
    }

    /// Why a listed database of this name has no contents; `None`: it is not listed, or has some.
    #[must_use]
    pub fn absence(&self, name: &str) -> Option<Absence> {
        self.absent.get(name).copied()
    }

    /// Adds the name of a database that has no contents.
    pub fn insert_absent(&mut self, name: &str, absence: Absence) {
        self.absent.insert(name.to_owned(), absence);
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

/// Why a database is not available, for clients and operators. The first text is the reference's, for relays without a source too.
#[must_use]
pub fn absence_reason(absence: Absence) -> &'static str {
    match absence {
        Absence::Joining => "it has not completed joining its cluster",
        Absence::Damaged => {
            "the file of this member is damaged and the leader of its cluster has not replaced it"
        }
        Absence::Failed => {
            "this member takes no part in its cluster any more: its log and cluster/status say what to do"
        }
    }
}
