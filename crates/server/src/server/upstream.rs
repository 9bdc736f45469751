//! The threads that decide the commits of databases shared with other servers: the member of a
//! cluster, or a relay. The main thread's view of them, before their databases have contents and
//! after.

use std::thread::JoinHandle;

use corvid_consensus::member::Absence;
use corvid_log::cluster::Index;
use corvid_service::message::DatabaseId;

use crate::database::handle::DatabaseHandle;
use crate::database::upstream::UpstreamHandle;
use crate::member::failure::Scenario;
use crate::member::handle::ToMember;
use crate::member::prepared::ServedMember;
use crate::relay::handle::ToRelay;
use crate::relay::served::ServedRelay;

/// The thread that decides the commits of a database.
pub(super) enum Upstream {
    /// The member of the database's cluster.
    Member(ServedMember),
    /// The relay, which gets the commits from its source.
    Relay(ServedRelay),
}

/// Settings of all upstreams.
#[derive(Debug)]
pub(super) struct UpstreamSettings {
    /// The probe interval towards the sources of relays, ms, if a command has set it; 0: no probes.
    pub(super) relay_probe_interval_ms: Option<u64>,
    /// A clustered database has been served since the start. From then on the commands for clusters
    /// exist.
    pub(super) has_clusters: bool,
    /// The scenario of `cluster/failure-test`, for members that are served later.
    pub(super) failure_scenario: Scenario,
}

impl Default for UpstreamSettings {
    fn default() -> UpstreamSettings {
        UpstreamSettings {
            relay_probe_interval_ms: None,
            has_clusters: false,
            failure_scenario: Scenario::Clear,
        }
    }
}

/// A database that is listed but has no contents: its server is joining a cluster, its file is
/// damaged, or its relay has not reached its source.
pub(super) struct JoiningDatabase {
    /// The database's number, which it keeps when it is served.
    pub(super) id: DatabaseId,
    /// The file's name, or the relay's argument.
    pub(super) name: String,
    /// Why the database has no contents.
    pub(super) absence: Absence,
    pub(super) upstream: Upstream,
}

impl Upstream {
    /// The member, if this is a member.
    pub(super) fn member(&self) -> Option<&ServedMember> {
        match self {
            Upstream::Member(member) => Some(member),
            Upstream::Relay(_) => None,
        }
    }

    /// The member, mutably, if this is a member.
    pub(super) fn member_mut(&mut self) -> Option<&mut ServedMember> {
        match self {
            Upstream::Member(member) => Some(member),
            Upstream::Relay(_) => None,
        }
    }

    /// The relay, if this is a relay.
    pub(super) fn relay(&self) -> Option<&ServedRelay> {
        match self {
            Upstream::Relay(relay) => Some(relay),
            Upstream::Member(_) => None,
        }
    }

    /// The relay, mutably, if this is a relay.
    pub(super) fn relay_mut(&mut self) -> Option<&mut ServedRelay> {
        match self {
            Upstream::Relay(relay) => Some(relay),
            Upstream::Member(_) => None,
        }
    }

    /// The queue of the upstream's thread, for the database.
    pub(super) fn handle(&self) -> UpstreamHandle {
        match self {
            Upstream::Member(member) => UpstreamHandle::Member(member.handle.clone()),
            Upstream::Relay(relay) => UpstreamHandle::Relay(relay.handle.clone()),
        }
    }

    /// Announces that the database is served, with the contents through this entry.
    pub(super) fn served(&self, applied: Index, database: DatabaseHandle) {
        let database = Box::new(database);
        match self {
            Upstream::Member(member) => member.handle.post([ToMember::Served(applied, database)]),
            Upstream::Relay(relay) => relay.handle.post([ToRelay::Served(database)]),
        }
    }

    /// Orders the thread to end, and then its database. Returns the thread.
    pub(super) fn end(self) -> JoinHandle<()> {
        match self {
            Upstream::Member(member) => member.end(),
            Upstream::Relay(relay) => relay.end(),
        }
    }
}
