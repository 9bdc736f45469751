//! Roles of databases: active, or backup of a source (docs/spec/distribution.md 3). Commands or a
//! configuration file set them; the databases, and the shard that connects to the source, carry
//! them out. Part of the main thread.
//!
//! Invariant: a database gets its role before clients can reach it, and its connection to the
//! source is opened only when the shard can reach the database.

use corvid_net::logging::{self, Module};
use corvid_service::message::{Control, ToDatabase};
use corvid_service::replication::{Exclusions, Following, LogMessage, Role, SourceId};
use corvid_service::server_db;
use corvid_shell::unixctl::Replier;

use super::serving::ServedDatabase;
use super::{Server, answer};
use crate::config::replication::{
    self as config_replication, ActiveBackup, ReplicationSettings, StatusEntry,
};
use crate::remotes::connection::log_level;
use crate::shard::{ShardMessage, ToSource};

impl Server {
    /// Restores saved settings, for databases that are served from now on.
    pub(crate) fn set_sync(&mut self, sync: ReplicationSettings) {
        self.sync = sync;
    }

    /// The replication settings of databases that have no settings themselves; `None`: standalone.
    pub(crate) fn default_replication(&self) -> Option<ActiveBackup> {
        self.sync.replication()
    }

    /// The source that backups follow, or will follow.
    pub(crate) fn sync_source(&self) -> String {
        let own = self
            .replications()
            .next()
            .map(|replication| replication.source.clone());
        self.sync.source.clone().or(own).unwrap_or_default()
    }

    /// Sets the source. It takes effect at the next command that makes backups connect.
    pub(crate) fn set_sync_source(&mut self, source: &str) {
        self.sync.source = Some(source.to_owned());
        for served in self.databases.values_mut() {
            if let Some(replication) = &mut served.replication {
                source.clone_into(&mut replication.source);
            }
        }
        self.save();
    }

    /// Makes every database a backup; `replier` is answered when all are backups.
    pub(crate) fn become_backup(&mut self, replier: Replier) {
        if self.sync.source.is_none() {
            let text = "Unable to connect: active server is not specified.\n";
            replier.reply(Ok(text.to_owned()));
            return;
        }
        self.sync.is_on = true;
        self.sync.is_backup = true;
        self.apply_roles(Some(replier), |_| true);
    }

    /// Makes every database active; `replier` is answered when all are active.
    pub(crate) fn become_active(&mut self, replier: Replier) {
        self.sync.is_backup = false;
        self.apply_roles(Some(replier), |served| served.replication.is_some());
    }

    /// The tables that backups do not replicate, as given by the user.
    pub(crate) fn sync_excluded(&self) -> String {
        let own = self
            .replications()
            .next()
            .map(|replication| replication.excluded.clone());
        let excluded = Some(self.sync.excluded.clone()).filter(|list| !list.is_empty());
        excluded.or(own).unwrap_or_default()
    }

    /// Sets the tables that backups do not replicate, and restarts the replication; `replier` is
    /// answered when it has restarted.
    pub(crate) fn set_sync_excluded(&mut self, excluded: &str, replier: Replier) {
        excluded.clone_into(&mut self.sync.excluded);
        for served in self.databases.values_mut() {
            if let Some(replication) = &mut served.replication {
                excluded.clone_into(&mut replication.excluded);
            }
        }
        let is_backup = |served: &ServedDatabase| served.source.is_some();
        self.apply_roles(Some(replier), is_backup);
    }

    /// Sets the probe interval towards the source, ms; 0: no probes.
    pub(crate) fn set_sync_probe_interval(&mut self, interval_ms: u64) {
        self.sync.probe_interval_ms = Some(interval_ms);
        for served in self.databases.values_mut() {
            if let Some(replication) = &mut served.replication {
                replication.options.probe_interval = Some(interval_ms);
                if let Some((id, _)) = served.source {
                    let options = ToSource::SetOptions(replication.options.clone());
                    self.shards.handles()[0].post(ShardMessage::Source(id, options));
                }
            }
        }
        self.save();
    }

    /// Reports the status of backups.
    pub(crate) fn sync_status(&mut self, replier: Replier) {
        self.ask_all(|server, reports| {
            let shown = server.databases.iter().map(|(name, served)| StatusEntry {
                name,
                replication: served.replication.as_ref(),
                source: served.source.as_ref().map_or("", |(_, source)| source),
                standing: reports.get(name).and_then(|report| report.replication),
            });
            let shown: Vec<StatusEntry<'_>> = shown.collect();
            replier.reply(Ok(config_replication::status(&shown)));
        });
    }

    /// Changes the replication of a served database without closing the database. Does nothing if
    /// the settings are the same.
    pub(crate) fn set_replication(&mut self, database: &str, replication: Option<ActiveBackup>) {
        let Some(served) = self.databases.get_mut(database) else {
            return;
        };
        if served.replication == replication {
            return;
        }
        served.replication = replication;
        let token = self.pending.countdown(1, None)[0];
        self.apply_role(database, token);
    }

    /// The replication settings of the databases that have them.
    fn replications(&self) -> impl Iterator<Item = &ActiveBackup> {
        let served = self.databases.values();
        served.filter_map(|served| served.replication.as_ref())
    }

    /// Applies the role in `sync` to the databases that `concerns` selects.
    fn apply_roles(
        &mut self,
        replier: Option<Replier>,
        concerns: impl Fn(&ServedDatabase) -> bool,
    ) {
        let chosen: Vec<String> = self
            .databases
            .iter()
            .filter(|(name, served)| {
                *name != server_db::NAME && served.upstream.is_none() && concerns(served)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in &chosen {
            if let Some(served) = self.databases.get_mut(name) {
                served.replication = self.sync.replication();
            }
        }
        self.save();
        if chosen.is_empty() {
            answer(replier, Ok(String::new()));
            return;
        }
        let tokens = self.pending.countdown(chosen.len(), replier);
        for (name, token) in chosen.iter().zip(tokens) {
            self.apply_role(name, token);
        }
    }

    /// Applies the role of a database from the beginning.
    fn apply_role(&mut self, database: &str, token: u64) {
        let connection = self.send_role(database, token);
        self.open_source(connection);
    }

    /// Sends a database its role. Returns the connection that it needs as a backup.
    #[must_use]
    pub(super) fn send_role(&mut self, database: &str, token: u64) -> Option<(SourceId, ToSource)> {
        let served = self.databases.get_mut(database)?;
        let shard = &self.shards.handles()[0];
        if let Some((id, _)) = served.source.take() {
            shard.post(ShardMessage::Source(id, ToSource::Close));
        }
        // The old connection is closed first: the database must get nothing from it once it has its
        // new role.
        self.pending.await_role(token);
        let backup = served
            .replication
            .as_ref()
            .filter(|replication| replication.is_backup);
        let Some(replication) = backup else {
            let active = Control::SetRole(Role::Active, token);
            let _ = served.mailbox.send(ToDatabase::Control(active));
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
        let role = ToDatabase::Control(Control::SetRole(role, token));
        let _ = served.mailbox.send(role);
        let open = ToSource::Open(
            served.id,
            replication.source.clone(),
            replication.options.clone(),
        );
        served.source = Some((id, replication.source.clone()));
        Some((id, open))
    }

    /// Opens the connection of a backup, if there is one.
    pub(super) fn open_source(&self, connection: Option<(SourceId, ToSource)>) {
        if let Some((id, open)) = connection {
            self.shards.handles()[0].post(ShardMessage::Source(id, open));
        }
    }

    /// Closes the connection of a database that is being removed.
    pub(super) fn close_source(&self, served: &ServedDatabase) {
        if let Some((id, _)) = served.source {
            self.shards.handles()[0].post(ShardMessage::Source(id, ToSource::Close));
        }
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
