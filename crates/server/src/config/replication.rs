//! Active-backup replication as operators see it (docs/spec/distribution.md 3.1, 3.4): what is set, and how it is shown.
//!
//! Without a configuration file one setting holds for all databases; with one, each entry has its own. Carrying it out is the server's
//! ([`crate::server`]).

use corvid_service::replication::{Exclusions, ReplicationStatus};

use crate::remotes::options::RemoteOptions;

/// What the command line and the control commands have set, for all databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicationSettings {
    /// Databases are of the active-backup kind, rather than standalone.
    pub(crate) is_on: bool,
    /// They begin as backups.
    pub(crate) is_backup: bool,
    /// Whom backups follow.
    pub(crate) source: Option<String>,
    /// Tables that are left alone, as given.
    pub(crate) excluded: String,
    /// Probe interval towards the source, ms, if one was set.
    pub(crate) probe_interval_ms: Option<u64>,
}

/// A database of the active-backup kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActiveBackup {
    /// It is a backup now, or is to be one.
    pub(crate) is_backup: bool,
    /// Whom it follows as a backup.
    pub(crate) source: String,
    /// How it connects.
    pub(crate) options: RemoteOptions,
    /// Tables that it leaves alone as a backup, as given.
    pub(crate) excluded: String,
}

impl ReplicationSettings {
    /// How a database is to be served; `None`: as a standalone one.
    #[must_use]
    pub(crate) fn model(&self) -> Option<ActiveBackup> {
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

/// A served database, for the status.
#[derive(Debug)]
pub(crate) struct StatusEntry<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// `None`: standalone.
    pub(crate) model: Option<&'a ActiveBackup>,
    /// Whom it follows; its model may name another, whom it is to follow from the next time on.
    pub(crate) source: &'a str,
    /// How it says that it stands; `None`: active.
    pub(crate) standing: Option<ReplicationStatus>,
}

/// The text of `ovsdb-server/sync-status`. `databases` are all of them, sorted by name.
///
/// One block for each database of the active-backup kind. The state comes first, because scripts of OVN up to 23.09 take it from the first
/// line; later ones look for `state:`. A block ends with a line feed where another database follows, shown or not, as in the reference.
#[must_use]
pub(crate) fn status(databases: &[StatusEntry<'_>]) -> String {
    let mut out = String::new();
    for (place, shown) in databases.iter().enumerate() {
        let Some(model) = shown.model else { continue };
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
                out.push_str(&format!("Replication to ({source}) failed"))
            }
            Some(ReplicationStatus::Replicating) => {
                out.push_str(&format!("replicating: {source}\n"));
                let excluded = Exclusions::of(name, &model.excluded);
                let tables: Vec<String> = excluded
                    .tables()
                    .map(|table| format!("{name}:{table}"))
                    .collect();
                if !tables.is_empty() {
                    out.push_str(&format!("exclude: {}", tables.join(",")));
                }
            }
        }
        if place + 1 < databases.len() {
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
    fn each_database_has_a_block_and_the_state_comes_first() {
        let model = ActiveBackup {
            is_backup: true,
            source: "tcp:next:1".to_owned(),
            excluded: "A:T,U B:V".to_owned(),
            ..ActiveBackup::default()
        };
        let shown = |name, standing| StatusEntry {
            name,
            model: Some(&model),
            source: "tcp:h:1",
            standing,
        };
        let server = StatusEntry {
            name: "_Server",
            model: None,
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
                model: None,
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
