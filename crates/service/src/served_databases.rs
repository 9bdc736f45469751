//! The served databases by name: an immutable list that shards share and the main thread replaces.

use std::collections::{BTreeMap, BTreeSet};

use corvid_consensus::member::Absence;

use crate::applied_index::AppliedIndex;

/// The number of a served database. A database that is removed and added again gets a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u32);

/// Served databases in the order of names, including `_Server`.
#[derive(Clone, Debug, Default)]
pub struct ServedDatabases {
    by_name: BTreeMap<String, DatabaseId>,
    /// Databases that are listed but have no contents, with the reason.
    absent: BTreeMap<String, Absence>,
    /// Databases whose transactions may wait for other servers. For a cluster member, with the
    /// index that `_Server` shows; a relay has none.
    clustered: BTreeMap<DatabaseId, Option<AppliedIndex>>,
    is_exiting: bool,
}

impl ServedDatabases {
    /// The number of the database with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<DatabaseId> {
        self.by_name.get(name).copied()
    }

    /// Whether the database with this number is served.
    #[must_use]
    pub fn contains(&self, id: DatabaseId) -> bool {
        self.by_name.values().any(|served| *served == id)
    }

    /// The numbers of the served databases.
    pub fn ids(&self) -> impl Iterator<Item = DatabaseId> + '_ {
        self.by_name.values().copied()
    }

    /// The names in bytewise order, including those of databases without contents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .by_name
            .keys()
            .chain(self.absent.keys())
            .map(String::as_str)
            .collect();
        names.into_iter()
    }

    /// Why the listed database with this name has no contents; `None` if it has, or is not listed.
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

    /// Adds or replaces a clustered database with its index, or a relay (`None`).
    pub fn insert_clustered(&mut self, name: &str, id: DatabaseId, applied: Option<AppliedIndex>) {
        self.insert(name, id);
        self.clustered.insert(id, applied);
    }

    /// The index that `_Server` shows for a clustered database; `None` for others.
    #[must_use]
    pub fn applied_index(&self, id: DatabaseId) -> Option<&AppliedIndex> {
        self.clustered.get(&id)?.as_ref()
    }

    /// Whether the database's transactions may wait for other servers.
    #[must_use]
    pub fn is_clustered(&self, id: DatabaseId) -> bool {
        self.clustered.contains_key(&id)
    }

    /// Marks the list as that of a server that is exiting: its databases end one after the other.
    pub fn set_exiting(&mut self) {
        self.is_exiting = true;
    }

    /// Whether the server is exiting.
    #[must_use]
    pub fn is_exiting(&self) -> bool {
        self.is_exiting
    }

    /// Removes a database; returns its number.
    pub fn remove(&mut self, name: &str) -> Option<DatabaseId> {
        let removed = self.by_name.remove(name);
        if let Some(id) = removed {
            self.clustered.remove(&id);
        }
        removed
    }
}

/// Why a database is unavailable, for clients and operators. The text of [`Absence::Joining`] is
/// the reference's, and is also used for relays without a source.
#[must_use]
pub fn absence_reason(absence: Absence) -> &'static str {
    match absence {
        Absence::Joining => "it has not completed joining its cluster",
        Absence::Damaged => {
            "the file of this member is damaged and the leader of its cluster has not replaced it"
        }
        Absence::Failed => {
            "this member no longer takes part in its cluster; its log and cluster/status say what to do"
        }
    }
}
