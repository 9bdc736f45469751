//! The threads that decide the commits of databases shared with other servers: the member of a
//! cluster, or a relay. The main thread's view of them, before their databases have contents and
//! after.

use std::thread::JoinHandle;

use corvid_consensus::member::Absence;
use corvid_log::cluster::Index;
use corvid_service::message::DatabaseId;

use super::Server;
use crate::database::handle::DatabaseHandle;
use crate::database::upstream::UpstreamHandle;
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

impl Server {
    /// The upstream of a database, served or joining.
    pub(super) fn upstream(&self, database: &str) -> Option<&Upstream> {
        let served = self.databases.get(database);
        let joining = || Some(&self.joining.get(database)?.upstream);
        let upstream = served.and_then(|served| served.upstream.as_ref());
        upstream.or_else(joining)
    }

    /// The upstream of the database with this number, and the database's name.
    pub(super) fn upstream_numbered(&mut self, id: DatabaseId) -> Option<(&str, &mut Upstream)> {
        let served = self.databases.iter_mut().filter_map(|(name, served)| {
            let upstream = served.upstream.as_mut()?;
            (served.id == id).then_some((name, upstream))
        });
        let joining = self.joining.iter_mut().filter_map(|(name, joining)| {
            (joining.id == id).then_some((name, &mut joining.upstream))
        });
        let (name, upstream) = served.chain(joining).next()?;
        Some((name, upstream))
    }

    /// All upstreams with the names of their databases, including databases without contents.
    pub(super) fn upstreams(&self) -> impl Iterator<Item = (&str, &Upstream)> {
        let served = self.databases.iter();
        let served =
            served.filter_map(|(name, served)| Some((name.as_str(), served.upstream.as_ref()?)));
        let joining = self.joining.iter();
        served.chain(joining.map(|(name, joining)| (name.as_str(), &joining.upstream)))
    }
}
