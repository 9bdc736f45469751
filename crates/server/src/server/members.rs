//! The members of clustered databases: serving one, its row in `_Server`, its commands, its end.
//! Part of the main thread.
//!
//! The commands and their arguments are in [`crate::control::cluster_commands`]. Invariant: a row
//! in `_Server` is inserted before it is updated. The main thread does both, and handles a member's
//! messages only after the member's database is served.

use std::sync::Arc;

use corvid_consensus::member::{Absence, Command, CommandToken};
use corvid_net::errno;
use corvid_net::logging::{self, Module};
use corvid_service::member::Contents;
use corvid_service::member_row;
use corvid_service::message::DatabaseId;
use corvid_shell::unixctl::Replier;

use super::Server;
use super::pending_replies;
use super::serving::Backing;
use super::upstream::{JoiningDatabase, Upstream};
use crate::database::open::OpenedMember;
use crate::member::failure::Scenario;
use crate::member::handle::ToMember;
use crate::member::prepared::PreparedMember;
use crate::metrics::member::MemberFigures;
use crate::metrics::switch::Switched;
use crate::status::MemberStatus;

impl Server {
    /// Serves a clustered database. Returns the transaction that inserts its row in `_Server`.
    pub(super) fn serve_member(
        &mut self,
        name: &str,
        opened: OpenedMember,
    ) -> Result<Vec<u8>, String> {
        let credentials = self.tls.credentials().clone();
        let database = opened.recovered.name.clone();
        let liveness = self
            .shared
            .liveness_registry
            .add(&format!("raft:{database}"));
        let seed = self.shared.hash_seed;
        let histories = self.config.histories.clone();
        let (recovered, file) = (opened.recovered, opened.file);
        let jobs = self.config.jobs.clone();
        let member = PreparedMember::new(
            recovered,
            file,
            credentials,
            seed,
            histories,
            jobs,
            liveness,
        )
        .map_err(|error| errno::text(&error))?;
        if self.upstreams.failure_scenario != Scenario::Clear {
            member
                .handle()
                .post([ToMember::Fail(self.upstreams.failure_scenario)]);
        }
        let member = Box::new(member);
        self.upstreams.has_clusters = true;
        let row = match opened.contents {
            Some(contents) => {
                let Contents {
                    database,
                    applied,
                    eid,
                    recorded,
                } = contents;
                let backing = Backing::Member(member, applied, eid, recorded);
                self.serve(name, database, backing, None)
            }
            None => self.begin_joining(name, &database, member),
        };
        row.map_err(|error| errno::text(&error))
    }

    /// Starts a member without contents: its server is joining the cluster, or its file is damaged.
    /// Its database is listed but not served.
    fn begin_joining(
        &mut self,
        name: &str,
        database: &str,
        member: Box<PreparedMember>,
    ) -> std::io::Result<Vec<u8>> {
        let id = self.databases.new_id();
        let row = member_row::insert(database, None, member.row());
        let absence = member.row().absence.unwrap_or(Absence::Joining);
        let figures = self.member_figures(database);
        let member = match member.start(id, None, self.shared.main.clone(), figures) {
            Ok(member) => member,
            Err(error) => {
                // Figures without a member would count as one that is starting, for ever.
                self.config.metrics.remove_database(database);
                return Err(error);
            }
        };
        let joining = JoiningDatabase {
            id,
            name: name.to_owned(),
            absence,
            upstream: Upstream::Member(member),
        };
        self.databases.add_joining(database, joining);
        self.publish();
        Ok(row)
    }

    /// The figures for a database's member.
    pub(super) fn member_figures(&self, database: &str) -> Switched<MemberFigures> {
        let metrics = &self.config.metrics;
        let figures = Arc::<MemberFigures>::default();
        metrics.add_member(database, figures.clone());
        Switched::new(figures, metrics.switch())
    }

    /// Serves a database whose initial contents have arrived: its server has joined the cluster, or
    /// its relay has reached its source.
    pub(super) fn joined(&mut self, id: DatabaseId, contents: Contents) {
        let Some((database, joining)) = self.databases.take_joining(id) else {
            return;
        };
        let handle = joining.upstream.handle();
        let upstream = Box::new(joining.upstream);
        let Contents {
            database: initial,
            applied,
            eid,
            recorded,
        } = contents;
        let backing = Backing::Joined(id, upstream, applied, eid, recorded);
        match self.serve(&joining.name, initial, backing, None) {
            Ok(row) => {
                // Sessions are closed before `_Server` changes: a closed session must get no update
                // about this database.
                self.shared
                    .disconnect_unaware(&format!("database {database} connected to storage"));
                self.databases.update_server_db(row);
                self.databases.show_index(&database);
                self.watch_columns_again(&database);
            }
            Err(error) => {
                let reason = errno::text(&error);
                logging::err(Module::OvsdbServer, format_args!("{database}: {reason}"));
                // A database that cannot be served is removed: its member or relay ends, clients
                // no longer find it, and its row goes when the thread reports its end.
                self.await_removal(id, &database, &format!("{database}: {reason}"), None);
                handle.end();
                self.publish();
            }
        }
    }

    /// Whether a clustered database has been served since the start. From then on the commands for
    /// clusters exist.
    #[must_use]
    pub(crate) fn has_clusters(&self) -> bool {
        self.upstreams.has_clusters
    }

    /// Whether a database of this name is served, joining, or being removed. The end of a removal
    /// deletes the row of `_Server` with its name, which must not be that of another database.
    pub(super) fn is_taken(&self, database: &str) -> bool {
        let mut removals = self.pending.removals.values();
        self.databases.contains(database) || removals.any(|removal| removal.name == database)
    }

    /// Shows the newest state of a member in `_Server`.
    pub(super) fn show_member(&mut self, id: DatabaseId) {
        let Some((name, member)) = self.databases.member_numbered(id) else {
            return;
        };
        let Some(row) = member.take_row() else {
            return;
        };
        let name = name.to_owned();
        self.databases
            .update_server_db(member_row::update(&name, &row));
        // A member that joins, or whose file is damaged, may fail for good. A row without a reason
        // announces contents; until they arrive, the last reason stays.
        if let Some(absence) = row.absence
            && self.databases.set_absence(&name, absence)
        {
            self.publish();
        }
    }

    /// Removes the database of a member that has left its cluster for good.
    pub(super) fn member_left(&mut self, id: DatabaseId) {
        let found = self.databases.member_numbered(id);
        if let Some(name) = found.map(|(name, _)| name.to_owned()) {
            let why = "because storage disconnected permanently";
            logging::info(
                Module::OvsdbServer,
                format_args!("{name}: removing database {why}"),
            );
            self.remove_database(&name, &format!("removing database {name} {why}"), None);
        }
    }

    /// `cluster/status`.
    pub(crate) fn cluster_status(&mut self, database: &str, replier: Replier) {
        if let Err(error) = self.databases.member(database) {
            return replier.reply(Err(error));
        }
        let ended = pending_replies::ended(database);
        self.ask_member(database, |_, status| match status {
            Some(status) => replier.reply_in_format(|| status.text(), || status.json()),
            None => replier.reply(Err(ended)),
        });
    }

    /// Asks the member of a database for its status; `finish` gets it, or `None` if the member has
    /// ended or there is none.
    pub(super) fn ask_member(
        &mut self,
        database: &str,
        finish: impl FnOnce(&mut Server, Option<MemberStatus>) + 'static,
    ) {
        match self.databases.member(database) {
            Ok(member) if !member.has_ended => {
                let handle = member.handle.clone();
                let token = self.pending.await_member(database, finish);
                handle.post([ToMember::Status(CommandToken(token))]);
            }
            _ => finish(self, None),
        }
    }

    /// Passes a member's status to the continuation with this token.
    pub(super) fn member_told(&mut self, token: u64, status: MemberStatus) {
        if let Some(finish) = self.pending.told(token) {
            finish(self, Some(status));
        }
    }

    /// The thread of a member has ended. If nobody has ordered that, `poll` has failed, or there
    /// was a panic: commands are answered all the same.
    pub(super) fn member_thread_ended(&mut self, id: DatabaseId) {
        let Some((name, member)) = self.databases.member_numbered(id) else {
            return;
        };
        member.has_ended = true;
        let name = name.to_owned();
        logging::err(
            Module::OvsdbServer,
            format_args!(
                "{name}: the thread of the cluster member has ended unexpectedly: restart this server"
            ),
        );
        self.member_ended(&name);
    }

    /// Ends the commands that wait for a member of this database: it has ended.
    pub(super) fn member_ended(&mut self, database: &str) {
        for finish in self.pending.member_ended(database) {
            finish(self, None);
        }
    }

    /// Has a member carry out a command.
    pub(crate) fn command_member(&mut self, database: &str, command: Command, replier: Replier) {
        match self.databases.member(database) {
            Err(error) => replier.reply(Err(error)),
            Ok(member) if member.has_ended => {
                replier.reply(Err(pending_replies::ended(database)));
            }
            Ok(member) => {
                let handle = member.handle.clone();
                let token = CommandToken(self.pending.await_reply(Some(database), replier));
                handle.post([ToMember::Command(token, command)]);
            }
        }
    }

    /// `cluster/failure-test`. Applies to all clustered databases of the process.
    pub(crate) fn test_failure(&mut self, name: &str) -> Result<&'static str, String> {
        let scenario = Scenario::parse(name).ok_or("unknown test scenario")?;
        self.upstreams.failure_scenario = scenario.lasting(self.upstreams.failure_scenario);
        for (_, member) in self.databases.members() {
            member.handle.post([ToMember::Fail(scenario)]);
        }
        Ok(match scenario {
            Scenario::Clear => "test dismissed",
            _ => "test engaged",
        })
    }
}
