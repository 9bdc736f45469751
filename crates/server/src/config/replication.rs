//! Active-backup replication for operators (docs/spec/distribution.md 3.1, 3.4): its settings, and
//! the text of its status.
//!
//! Without a configuration file, the same settings apply to all databases; with one, each entry has
//! its own. [`crate::server`] applies the settings.

use corvid_service::replication::{Exclusions, ReplicationStatus};

use crate::remotes::options::RemoteOptions;

/// The settings of the command line and of control commands, for all databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicationSettings {
    /// Databases use active-backup replication; otherwise they are standalone.
    pub(crate) is_on: bool,
    /// Databases begin as backups.
    pub(crate) is_backup: bool,
    /// The source that backups follow.
    pub(crate) source: Option<String>,
    /// Tables that are not replicated, as given by the user.
    pub(crate) excluded: String,
    /// The probe interval towards the source, ms, if one was set.
    pub(crate) probe_interval_ms: Option<u64>,
}

/// The settings of a database that uses active-backup replication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActiveBackup {
    /// The database's role is backup; otherwise it is active.
    pub(crate) is_backup: bool,
    /// The source that the database follows as a backup.
    pub(crate) source: String,
    /// The options of the connection.
    pub(crate) options: RemoteOptions,
    /// Tables that are not replicated, as given by the user.
    pub(crate) excluded: String,
}

impl ReplicationSettings {
    /// The settings of each database; `None`: databases are standalone.
    #[must_use]
    pub(crate) fn replication(&self) -> Option<ActiveBackup> {
        self.is_on.then(|| ActiveBackup {
            is_backup: self.is_backup,
            source: self.source.clone().unwrap_or_default(),
            options: RemoteOptions {
                probe_interval: self.probe_interval_ms,
                ..RemoteOptions::default()
            },
            excluded: self.excluded.clone(),
        })
    }
}

/// A served database in the status.
#[derive(Debug)]
pub(crate) struct StatusEntry<'a> {
    /// The name of the database.
    pub(crate) name: &'a str,
    /// `None`: standalone.
    pub(crate) replication: Option<&'a ActiveBackup>,
    /// The source that the database currently follows. Its settings may name another source, which
    /// applies at the next connect.
    pub(crate) source: &'a str,
    /// The state that the database reports; `None`: it is active.
    pub(crate) standing: Option<ReplicationStatus>,
}

/// The text of `ovsdb-server/sync-status`. `databases` are all served databases, sorted by name.
///
/// There is one block for each database that uses active-backup replication. The state comes first,
/// because OVN's scripts up to 23.09 read it from the first line; later scripts look for `state:`.
/// As in the reference, a block ends with a line feed if another database follows, shown or not.
#[must_use]
pub(crate) fn status(databases: &[StatusEntry<'_>]) -> String {
    let mut out = String::new();
    for (index, shown) in databases.iter().enumerate() {
        let Some(replication) = shown.replication else {
            continue;
        };
        let StatusEntry { name, source, .. } = shown;
        let state = if shown.standing.is_some() {
            "backup"
        } else {
            "active"
        };
        out.push_str(&format!("state: {state}\ndatabase: {name}\n"));
        match shown.standing {
            None => {}
            Some(ReplicationStatus::Connecting | ReplicationStatus::Lost) => {
                out.push_str(&format!("connecting: {source}"));
            }
            Some(ReplicationStatus::Failed) => {
                out.push_str(&format!("Replication to ({source}) failed"));
            }
            Some(ReplicationStatus::Replicating) => {
                out.push_str(&format!("replicating: {source}\n"));
                let excluded = Exclusions::of(name, &replication.excluded);
                let tables: Vec<String> = excluded
                    .tables()
                    .map(|table| format!("{name}:{table}"))
                    .collect();
                if !tables.is_empty() {
                    out.push_str(&format!("exclude: {}", tables.join(",")));
                }
            }
        }
        if index + 1 < databases.len() {
            out.push('\n');
        }
    }
    if out.is_empty() {
        out.push_str("state: active\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_has_a_block_for_each_database_with_its_state_first() {
        let replication = ActiveBackup {
            is_backup: true,
            source: "tcp:next:1".to_owned(),
            excluded: "A:T,U B:V".to_owned(),
            ..ActiveBackup::default()
        };
        let shown = |name, standing| StatusEntry {
            name,
            replication: Some(&replication),
            source: "tcp:h:1",
            standing,
        };
        let server = StatusEntry {
            name: "_Server",
            replication: None,
            source: "",
            standing: None,
        };
        assert_eq!(status(&[server]), "state: active\n");
        let databases = [
            shown("A", Some(ReplicationStatus::Replicating)),
            shown("C", Some(ReplicationStatus::Connecting)),
            shown("D", Some(ReplicationStatus::Failed)),
            shown("E", None),
            StatusEntry {
                name: "_Server",
                replication: None,
                source: "",
                standing: None,
            },
            shown("a", Some(ReplicationStatus::Lost)),
        ];
        let lines = [
            "state: backup",
            "database: A",
            "replicating: tcp:h:1",
            "exclude: A:T,A:U",
            "state: backup",
            "database: C",
            "connecting: tcp:h:1",
            "state: backup",
            "database: D",
            "Replication to (tcp:h:1) failed",
            "state: active",
            "database: E",
            "",
            "state: backup",
            "database: a",
            "connecting: tcp:h:1",
        ];
        assert_eq!(status(&databases), lines.join("\n"));
    }
}
