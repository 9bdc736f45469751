//! The service model of a database. The rest of the database asks these questions:
//!
//! | Question | Method | Where it is asked |
//! |---|---|---|
//! | May clients write and convert? | [`Model::accepts_client_writes`] | execution of a transaction (`execution.rs`), checks of a conversion (`requests.rs`) |
//! | May the server itself write, to show the status of remotes? | [`Model::accepts_server_writes`] | `inputs.rs` |
//! | Do commits come from another server? | [`Model::source`], [`Model::source_mut`] | replication (`following.rs`), and the report (`database.rs`) |
//! | Does a cluster, or a relay's source, decide the order of commits? | [`Model::upstream`], [`Model::upstream_mut`]; of a cluster alone [`Model::member`], [`Model::member_mut`] | `following.rs`, which takes its events; where a request is executed or passed on (`requests.rs`, `execution.rs`); where replies of its requests leave (`requests.rs`, `replying.rs`); compaction (`inputs.rs`) |
//! | Is it a relay? | [`Model::is_relay`] | holders, which have the thread of its source; within the database, [`Upstream`] knows |
//! | Which event makes a commit stored, so that it has a log position? | [`Model::stored_by`] | `execution.rs`, and nowhere else |
//! | Is a transaction history always kept? | [`Model::shares_history`] | `database.rs`, when the database is made, and `inputs.rs`, when the setting changes |
//! | What does `_Server` show? | [`Model::server_row`] | the main thread, once: when it adds the database's row to `_Server` |
//! | Is it `_Server` itself? | [`Model::is_server_db`] | the head of a recording (`pump/head.rs`) |
//! | Can it be recorded? | [`Model::can_be_recorded`] | `pump.rs`, and the server before it begins a recording |
//!
//! This code distinguishes the models as well:
//!
//! | Place | Does |
//! |---|---|
//! | `server/serving.rs` and `server/roles.rs` of `corvid-server` | choose the model of a new database, and make a database a backup, and a backup standalone |
//! | `following.rs` | undoes executed commits: after a failed write, with an error to their clients; after a loss of leadership, without |
//! | `pump/head.rs` | writes and reads two models: `_Server` and standalone |
//!
//! To add a model: add a variant of [`Kind`] with the state that the model needs, answer each
//! question above (the compiler names the places with a `match`), add a constructor beside
//! [`Model::standalone`], and go through the second table. Further:
//!
//! - Commits come from elsewhere: the protocol's state is in the variant (its machine may be a
//!   crate of level 3), its inputs are [`crate::message::ToDatabase`], and its commits go to
//!   `DatabaseService::replicate`, as in `backup.rs`.
//! - A position counts as stored only when other servers have it: a value of [`StoredBy`], and an
//!   input that calls `release_through`.
//! - The row in `_Server` changes: that needs an [`crate::message::Event`] for the main thread and
//!   an update in `server_db.rs`, unless the main thread learns of it elsewhere, as from the member
//!   of a cluster.

use corvid_log::cluster::{Eid, Index};

use super::backup::Backup;
use super::clustered::Clustered;
use crate::barrier::Activity;
use crate::message::ToDatabase;
use crate::server_db::ServerRow;
use crate::upstream::{Action, InFlight, Next, Parts, Upstream};

/// The service model of a database.
pub struct Model {
    kind: Kind,
}

enum Kind {
    /// `_Server`: a database that the server keeps for its clients to read.
    ServerDb,
    /// Clients write.
    Standalone,
    /// A copy of another server's database (docs/spec/distribution.md 3): only its source changes
    /// it.
    Backup(Box<Backup>),
    /// One of the copies of a cluster: its member decides the order of commits.
    Clustered(Box<Clustered>),
    /// A copy of another server's database that passes writes on to it (docs/spec/distribution.md
    /// 2): a follower of that server.
    Relay(Box<Upstream>),
}

/// The event that makes a commit count as stored. It only decides whether commits have a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredBy {
    /// Its execution: the database is kept in memory only, and commits have no position.
    Execution,
    /// The write of its record to the file, and the sync if the commit is durable.
    Log,
    /// The commit of its entry in the cluster.
    Cluster,
}

impl Model {
    /// The model of `_Server`: clients may not write.
    #[must_use]
    pub fn server_db() -> Model {
        Model {
            kind: Kind::ServerDb,
        }
    }

    /// The model of a standalone database.
    #[must_use]
    pub fn standalone() -> Model {
        Model {
            kind: Kind::Standalone,
        }
    }

    /// The model of a clustered database whose contents are those after the entry `applied`; `eid`
    /// is the id of the last entry with data by then. Its member sends the entries after that as
    /// committed. It follows no leader until its member says so, and has no
    /// [`crate::Options::file`]: the file is the member's.
    #[must_use]
    pub fn clustered(applied: Index, eid: Eid) -> Model {
        Model {
            kind: Kind::Clustered(Box::new(Clustered::new(applied, eid))),
        }
    }

    /// The model of a relay whose contents are those after the change `applied` of its source;
    /// `eid` is that change's transaction id ([`crate::relay::RelayEvent::Contents`] has both). It
    /// forwards nothing until its [`crate::relay::RelaySource`] says so, and has no
    /// [`crate::Options::file`]. Shards must know that its transactions may wait
    /// ([`crate::ServedDatabases::insert_clustered`]).
    #[must_use]
    pub fn relay(applied: Index, eid: Eid) -> Model {
        Model {
            kind: Kind::Relay(Box::new(Upstream::of_relay(applied, eid))),
        }
    }

    /// Whether the inputs of the database can be recorded ([`crate::Pump::with_tape`]). Those of a
    /// clustered database cannot: a replay would need the other members. Nor can those of a relay,
    /// which would need the source.
    #[must_use]
    pub fn can_be_recorded(&self) -> bool {
        !matches!(self.kind, Kind::Clustered(_) | Kind::Relay(_))
    }

    /// Whether it is a relay.
    #[must_use]
    pub fn is_relay(&self) -> bool {
        matches!(self.kind, Kind::Relay(_))
    }

    /// The part of a clustered database, or a relay, that depends on another server.
    pub(super) fn upstream(&self) -> Option<&Upstream> {
        match &self.kind {
            Kind::Clustered(member) => Some(&member.upstream),
            Kind::Relay(upstream) => Some(upstream),
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => None,
        }
    }

    /// [`Model::upstream`], to be changed.
    pub(super) fn upstream_mut(&mut self) -> Option<&mut Upstream> {
        match &mut self.kind {
            Kind::Clustered(member) => Some(&mut member.upstream),
            Kind::Relay(upstream) => Some(upstream),
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => None,
        }
    }

    /// The state of a clustered database.
    pub(super) fn member(&self) -> Option<&Clustered> {
        match &self.kind {
            Kind::Clustered(member) => Some(member),
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) | Kind::Relay(_) => None,
        }
    }

    /// [`Model::member`], to be changed.
    pub(super) fn member_mut(&mut self) -> Option<&mut Clustered> {
        match &mut self.kind {
            Kind::Clustered(member) => Some(member),
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) | Kind::Relay(_) => None,
        }
    }

    /// Handles an event of the member, an installed snapshot, or news of a relay's source.
    pub(super) fn handle_upstream(&mut self, input: ToDatabase, parts: &mut Parts<'_>) {
        match &mut self.kind {
            Kind::Clustered(member) => member.handle(input, parts),
            Kind::Relay(upstream) => upstream.handle(input, parts),
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => {}
        }
    }

    /// The next step of the database that following the other server makes necessary.
    pub(super) fn next_action(&mut self, parts: &mut Parts<'_>) -> Option<Action> {
        match &mut self.kind {
            Kind::Clustered(member) => member.next(parts),
            Kind::Relay(upstream) => match upstream.next(parts)? {
                Next::Action(action) => Some(action),
                Next::Member(_) => unreachable!("a relay is a member of no cluster"),
            },
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => None,
        }
    }

    /// The requests that depend on the rest of the cluster.
    pub(super) fn in_flight_mut(&mut self) -> Option<&mut InFlight> {
        Some(self.upstream_mut()?.forwarding.in_flight_mut())
    }

    /// Whether transactions that change something must be forwarded.
    pub(super) fn is_follower(&self) -> bool {
        let upstream = self.upstream();
        upstream.is_some_and(|upstream| upstream.forwarding.follows())
    }

    /// Whether the leader of a cluster executes transactions that change something.
    pub(super) fn follows_leader(&self) -> bool {
        self.member().is_some() && self.is_follower()
    }

    /// Whether a transaction history is always kept: members of a cluster know each other's
    /// transaction ids, relays those of their source.
    pub(super) fn shares_history(&self) -> bool {
        matches!(self.kind, Kind::Clustered(_) | Kind::Relay(_))
    }

    /// Whether the database is `_Server`.
    pub(crate) fn is_server_db(&self) -> bool {
        matches!(self.kind, Kind::ServerDb)
    }

    /// Whether clients may write.
    pub(super) fn accepts_client_writes(&self) -> bool {
        matches!(
            self.kind,
            Kind::Standalone | Kind::Clustered(_) | Kind::Relay(_)
        )
    }

    /// Whether the server may write on its own account. A backup stays as its source has it.
    /// Members of a cluster would overwrite each other's status (docs/spec/distribution.md 1.7),
    /// and so would a source and its relays.
    pub(super) fn accepts_server_writes(&self) -> bool {
        matches!(self.kind, Kind::ServerDb | Kind::Standalone)
    }

    /// The source of commits, if another server is.
    pub(super) fn source(&self) -> Option<&Backup> {
        match &self.kind {
            Kind::Backup(backup) => Some(backup),
            Kind::ServerDb | Kind::Standalone | Kind::Clustered(_) | Kind::Relay(_) => None,
        }
    }

    /// [`Model::source`], to be changed.
    pub(super) fn source_mut(&mut self) -> Option<&mut Backup> {
        match &mut self.kind {
            Kind::Backup(backup) => Some(backup),
            Kind::ServerDb | Kind::Standalone | Kind::Clustered(_) | Kind::Relay(_) => None,
        }
    }

    /// The event that makes a commit count as stored.
    pub(super) fn stored_by(&self, has_file: bool) -> StoredBy {
        match self.kind {
            Kind::Clustered(_) => StoredBy::Cluster,
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) if has_file => StoredBy::Log,
            // A relay has no commits of its own.
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) | Kind::Relay(_) => {
                StoredBy::Execution
            }
        }
    }

    /// Reports what is under way with other members of a cluster.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        match &self.kind {
            // No client waits for the messages of a backup's source.
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => {}
            Kind::Clustered(member) => member.report_activity(activity),
            Kind::Relay(upstream) => upstream.report_activity(activity),
        }
    }

    /// Makes the database a copy of another server's.
    pub(super) fn begin_backup(&mut self, backup: Box<Backup>) {
        self.kind = Kind::Backup(backup);
    }

    /// Makes a backup a standalone database, which accepts writes. Returns the state of the backup,
    /// if the database was one.
    pub(super) fn end_backup(&mut self) -> Option<Box<Backup>> {
        if !matches!(self.kind, Kind::Backup(_)) {
            return None;
        }
        match std::mem::replace(&mut self.kind, Kind::Standalone) {
            Kind::Backup(backup) => Some(backup),
            Kind::ServerDb | Kind::Standalone | Kind::Clustered(_) | Kind::Relay(_) => None,
        }
    }

    /// The row of the database in `_Server`, except its schema. A backup counts as standalone
    /// there, as with the reference. That of a clustered database or a relay begins like this; its
    /// member or its [`crate::relay::RelaySource`] tells what changes.
    #[must_use]
    pub fn server_row(&self) -> ServerRow {
        match self.kind {
            Kind::ServerDb | Kind::Standalone | Kind::Backup(_) => ServerRow {
                model: "standalone",
                is_connected: true,
                is_leader: true,
            },
            Kind::Clustered(_) => ServerRow {
                model: "clustered",
                is_connected: false,
                is_leader: false,
            },
            // It is served when its contents have come.
            Kind::Relay(_) => crate::relay::server_row(true),
        }
    }
}
