//! The members of clustered databases: serving one, its row in `_Server`, its commands, its end. Part of the main thread.
//!
//! The commands and their arguments are in [`crate::control::cluster_commands`]. Invariant: a row in `_Server` is inserted before it is
//! changed, because the main thread does both, and a member's messages are handled after its database is served.

use corvid_consensus::BacklogLimits;
use corvid_consensus::member::{Command, CommandToken};
use corvid_consensus::peers::BACKLOG_CHECKED_FROM;
use corvid_net::logging::{self, Module};
use corvid_service::message::DatabaseId;
use corvid_shell::unixctl::Replier;

use super::Server;
use super::serving::Backing;
use crate::database::open::OpenedMember;
use crate::member::handle::ToMember;
use crate::member::prepared::{PreparedMember, ServedMember};
use crate::member::server_row;

/// The answer to a command about a database that is not clustered.
const UNKNOWN: &str = "unknown cluster";

impl Server {
    /// Serves a clustered database. Returns the transaction that inserts its row in `_Server`.
    pub(super) fn serve_member(
        &mut self,
        name: &str,
        opened: OpenedMember,
    ) -> Result<Vec<u8>, String> {
        let Some(contents) = opened.contents else {
            let database = &opened.recovered.name;
            return Err(format!(
                "ovsdb error: {database}: servers that have not joined their cluster yet are not built yet"
            ));
        };
        let credentials = self.tls.credentials().clone();
        let database = &opened.recovered.name;
        let liveness = self.liveness_registry.add(&format!("raft:{database}"));
        let member = PreparedMember::new(opened.recovered, opened.file, credentials, liveness)
            .map_err(|error| error.to_string())?;
        self.has_clusters = true;
        let backing = Backing::Member(Box::new(member), contents.applied, contents.eid);
        self.serve(name, contents.database, backing, None)
            .map_err(|error| error.to_string())
    }

    /// Whether a clustered database has been served since the start: from then on there are commands for clusters.
    #[must_use]
    pub(crate) fn has_clusters(&self) -> bool {
        self.has_clusters
    }

    /// Whether a served database is clustered.
    #[must_use]
    pub(crate) fn is_clustered(&self, database: &str) -> bool {
        let served = self.databases.get(database);
        served.is_some_and(|served| served.member.is_some())
    }

    /// Shows the newest state of a member in `_Server`.
    pub(super) fn show_member(&self, id: DatabaseId) {
        let mut databases = self.databases.iter();
        let Some((name, served)) = databases.find(|(_, served)| served.id == id) else {
            return;
        };
        let row = served.member.as_ref().and_then(|member| member.row.take());
        if let Some(row) = row {
            self.update_server_db(server_row::update(name, &row));
        }
    }

    /// A member has left its cluster for good, so its database is removed.
    pub(super) fn member_left(&mut self, id: DatabaseId) {
        let mut databases = self.databases.iter();
        let found = databases.find(|(_, served)| served.id == id);
        if let Some(name) = found.map(|(name, _)| name.clone()) {
            let why = "because storage disconnected permanently";
            logging::info(
                Module::OvsdbServer,
                format_args!("{name}: removing database {why}"),
            );
            self.remove_database(&name, &format!("removing database {name} {why}"), None);
        }
    }

    fn member(&self, database: &str) -> Result<&ServedMember, String> {
        let served = self.databases.get(database);
        let member = served.and_then(|served| served.member.as_ref());
        member.ok_or_else(|| UNKNOWN.to_owned())
    }

    /// `cluster/cid`.
    pub(crate) fn cluster_id(&self, database: &str) -> Result<String, String> {
        let cid = self.member(database)?.cid();
        cid.map(|cid| cid.uuid().to_string())
            .ok_or_else(|| "cluster id not yet known".to_owned())
    }

    /// `cluster/sid`.
    pub(crate) fn member_id(&self, database: &str) -> Result<String, String> {
        Ok(self.member(database)?.sid.0.to_string())
    }

    /// `cluster/status`.
    pub(crate) fn cluster_status(&mut self, database: &str, replier: Replier) {
        self.ask_member(database, replier, ToMember::Status);
    }

    /// Has a member carry out a command.
    pub(crate) fn command_member(&mut self, database: &str, command: Command, replier: Replier) {
        self.ask_member(database, replier, |token| ToMember::Command(token, command));
    }

    fn ask_member(
        &mut self,
        database: &str,
        replier: Replier,
        message: impl FnOnce(CommandToken) -> ToMember,
    ) {
        match self.member(database).map(|member| member.handle.clone()) {
            Err(error) => replier.reply(Err(error)),
            Ok(handle) => {
                let token = CommandToken(self.pending.of_member(replier));
                handle.post([message(token)]);
            }
        }
    }

    /// `cluster/set-backlog-threshold`.
    pub(crate) fn set_backlog_limits(
        &self,
        database: &str,
        messages: &str,
        bytes: &str,
    ) -> Result<(), String> {
        let member = self.member(database)?;
        let invalid = |_| "invalid argument".to_owned();
        let limits = BacklogLimits {
            messages_max: messages.parse().map_err(invalid)?,
            bytes_max: bytes.parse().map_err(invalid)?,
        };
        if limits.messages_max < BACKLOG_CHECKED_FROM {
            return Err("values out of range".to_owned());
        }
        member.handle.post([ToMember::BacklogLimits(limits)]);
        Ok(())
    }

    /// `cluster/failure-test`. Concerns all clustered databases of the process.
    pub(crate) fn test_failure(&self, scenario: &str) -> Result<&'static str, String> {
        let is_stopped = match scenario {
            "clear" => false,
            "stop-raft-rpc" => true,
            _ => return Err("unknown test scenario".to_owned()),
        };
        let served = self.databases.values();
        for member in served.filter_map(|served| served.member.as_ref()) {
            member.handle.post([ToMember::StopTraffic(is_stopped)]);
        }
        Ok(if is_stopped {
            "test engaged"
        } else {
            "test dismissed"
        })
    }
}
