//! Roles of databases: active, or backup of a source (docs/spec/distribution.md 3). Commands or a
//! configuration file set them; the databases, and the shard that connects to the source, carry
//! them out.
//!
//! Invariant: a database gets its role before clients can reach it, and its connection to the
//! source is opened only when the shard can reach the database. This part does not know commands,
//! nor when a role has been taken.

use corvid_data::Uuid;
use corvid_net::logging::{self, Module};
use corvid_service::message::Control;
use corvid_service::replication::{Exclusions, Following, LogMessage, Role, SourceId};
use corvid_service::server_db;

use super::databases::Databases;
use super::served::ServedDatabase;
use super::shared::Shared;
use crate::config::replication::{ActiveBackup, ReplicationSettings};
use crate::remotes::connection::log_level;
use crate::shard::{ShardMessage, ToSource};

/// The replication settings of the server, for databases that have none themselves.
pub(super) struct Roles {
    settings: ReplicationSettings,
    last_source: u64,
    server_id: Uuid,
}

/// A connection that a backup needs.
pub(super) struct SourceConnection(SourceId, ToSource);

impl Roles {
    pub(super) fn new(server_id: Uuid) -> Roles {
        Roles {
            settings: ReplicationSettings::default(),
            last_source: 0,
            server_id,
        }
    }

    pub(super) fn settings(&self) -> &ReplicationSettings {
        &self.settings
    }

    /// Restores saved settings, for databases that are served from now on.
    pub(super) fn restore(&mut self, settings: ReplicationSettings) {
        self.settings = settings;
    }

    /// The source that backups follow, or will follow.
    pub(super) fn source(&self, databases: &Databases) -> String {
        let own = || Some(replications(databases).next()?.source.clone());
        self.settings
            .source
            .clone()
            .or_else(own)
            .unwrap_or_default()
    }

    /// Sets the source. It takes effect when backups connect next.
    pub(super) fn set_source(&mut self, source: &str, databases: &mut Databases) {
        self.settings.source = Some(source.to_owned());
        for (_, served) in databases.all_served_mut() {
            if let Some(replication) = &mut served.replication {
                source.clone_into(&mut replication.source);
            }
        }
    }

    /// The tables that backups do not replicate, as given by the user.
    pub(super) fn excluded(&self, databases: &Databases) -> String {
        let own = || Some(replications(databases).next()?.excluded.clone());
        let excluded = Some(self.settings.excluded.clone()).filter(|list| !list.is_empty());
        excluded.or_else(own).unwrap_or_default()
    }

    /// Sets the tables that backups do not replicate. It takes effect when they get their roles
    /// again.
    pub(super) fn set_excluded(&mut self, excluded: &str, databases: &mut Databases) {
        excluded.clone_into(&mut self.settings.excluded);
        for (_, served) in databases.all_served_mut() {
            if let Some(replication) = &mut served.replication {
                excluded.clone_into(&mut replication.excluded);
            }
        }
    }

    /// Sets the probe interval towards the source, ms; 0: no probes.
    pub(super) fn set_probe_interval(
        &mut self,
        interval_ms: u64,
        databases: &mut Databases,
        shared: &Shared,
    ) {
        self.settings.probe_interval_ms = Some(interval_ms);
        for (_, served) in databases.all_served_mut() {
            if let Some(replication) = &mut served.replication {
                replication.options.probe_interval = Some(interval_ms);
                if let Some((id, _)) = served.source {
                    let options = ToSource::SetOptions(replication.options.clone());
                    let shard = shared.source_shard();
                    shard.post(ShardMessage::Source(id, options));
                }
            }
        }
    }

    /// Makes databases backups from now on.
    ///
    /// # Errors
    /// No source is set; nothing has changed. The text is the reference's.
    pub(super) fn become_backup(&mut self) -> Result<(), String> {
        if self.settings.source.is_none() {
            return Err("Unable to connect: active server is not specified.\n".to_owned());
        }
        self.settings.is_on = true;
        self.settings.is_backup = true;
        Ok(())
    }

    /// Makes databases active from now on.
    pub(super) fn become_active(&mut self) {
        self.settings.is_backup = false;
    }

    /// Gives the databases that `concerns` selects the present settings. Returns their names: each
    /// must be sent its role.
    pub(super) fn assign(
        &self,
        databases: &mut Databases,
        concerns: impl Fn(&ServedDatabase) -> bool,
    ) -> Vec<String> {
        let mut chosen = Vec::new();
        for (name, served) in databases.all_served_mut() {
            if name != server_db::NAME && served.upstream.is_none() && concerns(served) {
                served.replication = self.settings.replication();
                chosen.push(name.to_owned());
            }
        }
        chosen
    }

    /// Sends a database its role; its answer has this token. Returns the connection that it needs
    /// as a backup.
    #[must_use]
    pub(super) fn send(
        &mut self,
        database: &str,
        token: u64,
        databases: &mut Databases,
        shared: &Shared,
    ) -> Option<SourceConnection> {
        let served = databases.served_mut(database)?;
        // The old connection is closed first: the database must get nothing from it once it has its
        // new role.
        if let Some((id, _)) = served.source.take() {
            let shard = shared.source_shard();
            shard.post(ShardMessage::Source(id, ToSource::Close));
        }
        let backup = served
            .replication
            .as_ref()
            .filter(|replication| replication.is_backup);
        let Some(replication) = backup else {
            served.control(Control::SetRole(Role::Active, token));
            return None;
        };
        self.last_source += 1;
        let id = SourceId(self.last_source);
        let following = Following {
            id,
            excluded: Exclusions::of(database, &replication.excluded),
            server_id: self.server_id,
        };
        let role = Role::Backup(Box::new(following));
        served.control(Control::SetRole(role, token));
        let open = ToSource::Open(
            served.id,
            replication.source.clone(),
            replication.options.clone(),
        );
        served.source = Some((id, replication.source.clone()));
        Some(SourceConnection(id, open))
    }
}

/// The replication settings of the databases that have them.
fn replications(databases: &Databases) -> impl Iterator<Item = &ActiveBackup> {
    let served = databases.all_served();
    served.filter_map(|(_, served)| served.replication.as_ref())
}

/// Opens the connection of a backup, if there is one.
pub(super) fn open_source(connection: Option<SourceConnection>, shared: &Shared) {
    if let Some(SourceConnection(id, open)) = connection {
        shared.source_shard().post(ShardMessage::Source(id, open));
    }
}

/// Closes the connection of a database that is being removed.
pub(super) fn close_source(served: &ServedDatabase, shared: &Shared) {
    if let Some((id, _)) = served.source {
        let shard = shared.source_shard();
        shard.post(ShardMessage::Source(id, ToSource::Close));
    }
}

/// Logs a message of a backup.
pub(super) fn log(notice: &LogMessage) {
    let module = match notice {
        LogMessage::Failed(_) => Module::OvsdbError,
        _ => Module::Replication,
    };
    let level = log_level(notice.level());
    logging::log(module, level, format_args!("{notice}"));
}
