//! The databases of a server: those that are served, and those that are listed but have no contents
//! yet. Requests find their database here.
//!
//! Invariant: a name is that of at most one database, served or joining, and no number is given
//! twice. This part does not know how a database is opened, served or ended, and it changes nothing
//! that clients see: [`Databases::directory`] describes what shards are to be told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use corvid_consensus::BacklogLimits;
use corvid_consensus::member::Absence;
use corvid_consensus::peers::BACKLOG_CHECKED_FROM;
use corvid_log::Magic;
use corvid_net::os_name;
use corvid_rpc::remote::ColumnRemote;
use corvid_service::message::{Control, DatabaseId};
use corvid_service::served_databases::ServedDatabases;
use corvid_service::server_db;

use super::served::ServedDatabase;
use super::upstream::{JoiningDatabase, Upstream};
use crate::config::relay::RelaySettings;
use crate::control::c_number;
use crate::control::reports::{ClusterUsage, RelayUsage};
use crate::database::handle::DatabaseHandle;
use crate::member::handle::ToMember;
use crate::member::prepared::ServedMember;
use crate::relay::served::ServedRelay;

/// The answer to a command about a database that is not clustered.
const UNKNOWN: &str = "unknown cluster";

/// All databases of a server, by name.
#[derive(Default)]
pub(crate) struct Databases {
    served: BTreeMap<String, ServedDatabase>,
    /// Databases without contents yet: their servers are joining clusters, or their relays have not
    /// reached their sources.
    joining: BTreeMap<String, JoiningDatabase>,
    next_number: u32,
}

/// Which databases there are.
impl Databases {
    /// A number that no database has had.
    pub(super) fn new_id(&mut self) -> DatabaseId {
        let id = DatabaseId(self.next_number);
        self.next_number += 1;
        id
    }

    pub(super) fn add_served(&mut self, name: &str, database: ServedDatabase) {
        let replaced = self.served.insert(name.to_owned(), database);
        assert!(
            replaced.is_none() && !self.joining.contains_key(name),
            "a name is taken once"
        );
    }

    pub(super) fn add_joining(&mut self, name: &str, database: JoiningDatabase) {
        let replaced = self.joining.insert(name.to_owned(), database);
        assert!(
            replaced.is_none() && !self.served.contains_key(name),
            "a name is taken once"
        );
    }

    pub(super) fn remove_served(&mut self, name: &str) -> Option<ServedDatabase> {
        self.served.remove(name)
    }

    pub(super) fn remove_joining(&mut self, name: &str) -> Option<JoiningDatabase> {
        self.joining.remove(name)
    }

    /// Takes the joining database with this number, and its name.
    pub(super) fn take_joining(&mut self, id: DatabaseId) -> Option<(String, JoiningDatabase)> {
        let mut found = self.joining.extract_if(.., |_, joining| joining.id == id);
        found.next()
    }

    /// Takes all joining databases.
    pub(super) fn take_all_joining(&mut self) -> BTreeMap<String, JoiningDatabase> {
        std::mem::take(&mut self.joining)
    }

    pub(super) fn served(&self, name: &str) -> Option<&ServedDatabase> {
        self.served.get(name)
    }

    pub(super) fn served_mut(&mut self, name: &str) -> Option<&mut ServedDatabase> {
        self.served.get_mut(name)
    }

    pub(super) fn joining(&self, name: &str) -> Option<&JoiningDatabase> {
        self.joining.get(name)
    }

    /// All served databases with their names, sorted.
    pub(super) fn all_served(&self) -> impl Iterator<Item = (&str, &ServedDatabase)> {
        let served = self.served.iter();
        served.map(|(name, served)| (name.as_str(), served))
    }

    /// As [`Databases::all_served`], mutably.
    pub(super) fn all_served_mut(&mut self) -> impl Iterator<Item = (&str, &mut ServedDatabase)> {
        let served = self.served.iter_mut();
        served.map(|(name, served)| (name.as_str(), served))
    }

    /// All joining databases with their names, sorted.
    pub(super) fn all_joining(&self) -> impl Iterator<Item = (&str, &JoiningDatabase)> {
        let joining = self.joining.iter();
        joining.map(|(name, joining)| (name.as_str(), joining))
    }

    /// The names of served databases, `_Server` included, sorted.
    pub(super) fn served_names(&self) -> Vec<String> {
        self.served.keys().cloned().collect()
    }

    /// The names of served and joining databases, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.served.keys().chain(self.joining.keys());
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        names.into_iter()
    }

    /// As [`Databases::names`], without `_Server`.
    pub(super) fn users_names(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| *name != server_db::NAME)
    }

    /// The names of files and the arguments of relays, of all databases but `_Server`.
    pub(super) fn file_names(&self) -> impl Iterator<Item = &str> {
        let served = self.served.iter();
        let served = served.filter(|(name, _)| *name != server_db::NAME);
        let joining = self.joining.values().map(|joining| joining.name.as_str());
        served
            .map(|(_, served)| served.name.as_str())
            .chain(joining)
    }

    /// Whether a database of this name is served.
    pub(crate) fn serves(&self, name: &str) -> bool {
        self.served.contains_key(name)
    }

    /// Whether a database of this name is served or joining.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.served.contains_key(name) || self.joining.contains_key(name)
    }

    /// Whether the file with this absolute name is that of a database.
    pub(super) fn has_file(&self, absolute: &str) -> bool {
        self.file_names().any(|name| same_file(name, absolute))
    }

    /// Notes why a joining database has no contents. Returns whether that is news.
    pub(super) fn set_absence(&mut self, name: &str, absence: Absence) -> bool {
        let joining = self.joining.get_mut(name);
        joining.is_some_and(|joining| {
            let before = std::mem::replace(&mut joining.absence, absence);
            before != absence
        })
    }

    /// The databases as shards are to find them, and the handles of those that are served.
    pub(super) fn directory(&self) -> (ServedDatabases, HashMap<DatabaseId, DatabaseHandle>) {
        let mut directory = ServedDatabases::default();
        let mut handles = HashMap::new();
        for (name, joining) in &self.joining {
            directory.insert_absent(name, joining.absence);
        }
        for (name, served) in &self.served {
            match served.upstream {
                Some(_) => directory.insert_clustered(name, served.id, served.applied.clone()),
                None => directory.insert(name, served.id),
            }
            handles.insert(served.id, served.handle.clone());
        }
        (directory, handles)
    }
}

/// Messages.
impl Databases {
    /// Sends a message to a served database; does nothing if it does not exist.
    pub(crate) fn control(&self, name: &str, control: Control) {
        if let Some(served) = self.served.get(name) {
            served.control(control);
        }
    }

    /// Sends a message to every served database except `_Server`.
    pub(super) fn control_all(&self, control: impl Fn() -> Control) {
        for name in self.served.keys().filter(|name| *name != server_db::NAME) {
            self.control(name, control());
        }
    }

    /// Whether the database of a column is still joining. Its columns are read once it has
    /// contents.
    pub(super) fn has_no_contents_yet(&self, column: &str) -> bool {
        ColumnRemote::parse(column).is_some_and(|source| self.joining.contains_key(source.database))
    }

    /// Asks a database to read a column and report its changes: remotes, or a TLS setting
    /// (`texts_only`).
    pub(super) fn watch_column(&self, remote: &str, texts_only: bool) -> Result<(), String> {
        let source =
            ColumnRemote::parse(remote).ok_or_else(|| format!("\"{remote}\": invalid syntax"))?;
        if !self.serves(source.database) {
            let database = source.database;
            return Err(format!("\"{remote}\": no database named {database}"));
        }
        let watch = Control::WatchColumn {
            name: remote.to_owned(),
            table: source.table.to_owned(),
            column: source.column.to_owned(),
            texts_only,
        };
        self.control(source.database, watch);
        Ok(())
    }

    /// Stops the reports of a column's changes.
    pub(super) fn unwatch_column(&self, remote: &str) {
        if let Some(source) = ColumnRemote::parse(remote) {
            self.control(source.database, Control::UnwatchColumn(remote.to_owned()));
        }
    }

    /// Has `_Server` execute a transaction.
    pub(super) fn update_server_db(&self, params: Vec<u8>) {
        self.control(server_db::NAME, Control::Transact(params));
    }

    /// Has `_Server` show the index of a database, if it is clustered. The database's row is new,
    /// so indexes that the database published earlier may have found no row.
    pub(super) fn show_index(&self, name: &str) {
        let served = self.served.get(name);
        if let Some(applied) = served.and_then(|served| served.applied.clone()) {
            self.control(server_db::NAME, Control::ShowIndex(applied));
        }
    }
}

/// Members and relays.
impl Databases {
    /// The upstream of a database, served or joining.
    pub(super) fn upstream(&self, name: &str) -> Option<&Upstream> {
        let served = self.served.get(name);
        let joining = || Some(&self.joining.get(name)?.upstream);
        let upstream = served.and_then(|served| served.upstream.as_ref());
        upstream.or_else(joining)
    }

    /// The upstream of the database with this number, and the database's name.
    pub(super) fn upstream_numbered(&mut self, id: DatabaseId) -> Option<(&str, &mut Upstream)> {
        let served = self.served.iter_mut().filter_map(|(name, served)| {
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
        let served = self.served.iter();
        let served =
            served.filter_map(|(name, served)| Some((name.as_str(), served.upstream.as_ref()?)));
        let joining = self.joining.iter();
        served.chain(joining.map(|(name, joining)| (name.as_str(), &joining.upstream)))
    }

    /// All members with the names of their databases, including joining ones.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &ServedMember)> {
        self.upstreams()
            .filter_map(|(name, upstream)| Some((name, upstream.member()?)))
    }

    /// The member of a database.
    ///
    /// # Errors
    /// The database does not exist or has none.
    pub(super) fn member(&self, name: &str) -> Result<&ServedMember, String> {
        let member = self.upstream(name).and_then(Upstream::member);
        member.ok_or_else(|| UNKNOWN.to_owned())
    }

    /// The member of the database with this number, and the database's name.
    pub(super) fn member_numbered(&mut self, id: DatabaseId) -> Option<(&str, &mut ServedMember)> {
        let (name, upstream) = self.upstream_numbered(id)?;
        Some((name, upstream.member_mut()?))
    }

    /// `cluster/cid`: the cluster id.
    pub(crate) fn cluster_id(&self, name: &str) -> Result<String, String> {
        let cid = self.member(name)?.cid();
        cid.map(|cid| cid.uuid().to_string())
            .ok_or_else(|| "cluster id not yet known".to_owned())
    }

    /// `cluster/sid`: the member's server id.
    pub(crate) fn member_id(&self, name: &str) -> Result<String, String> {
        Ok(self.member(name)?.sid.0.to_string())
    }

    /// `cluster/set-backlog-threshold`.
    pub(crate) fn set_backlog_limits(
        &self,
        name: &str,
        messages: &str,
        bytes: &str,
    ) -> Result<(), String> {
        let member = self.member(name)?;
        let number = |text| c_number::wrapped(text).ok_or_else(|| "invalid argument".to_owned());
        let limits = BacklogLimits {
            messages_max: usize::try_from(number(messages)?).unwrap_or(usize::MAX),
            bytes_max: number(bytes)?,
        };
        if limits.messages_max < BACKLOG_CHECKED_FROM {
            return Err("values out of range".to_owned());
        }
        member.handle.post([ToMember::BacklogLimits(limits)]);
        Ok(())
    }

    /// Counts over all members, for `memory/show`.
    pub(super) fn cluster_usage(&self) -> ClusterUsage {
        let mut usage = ClusterUsage::default();
        for (_, member) in self.members() {
            let counts = member.handle.counts();
            usage.backlog_bytes += counts.backlog_bytes.load(Ordering::Relaxed);
            usage.connections += counts.connections.load(Ordering::Relaxed);
            usage.log += counts.log.load(Ordering::Relaxed);
        }
        usage
    }

    /// Counts over all relays, for `memory/show`.
    pub(super) fn relay_usage(&self) -> RelayUsage {
        let mut usage = RelayUsage::default();
        let relays = self.upstreams();
        for relay in relays.filter_map(|(_, upstream)| upstream.relay()) {
            usage.add(relay.handle.figures());
        }
        usage
    }

    /// The kind of a database's file; `None`: the database is a relay.
    #[must_use]
    pub(crate) fn file_kind(&self, name: &str) -> Option<Magic> {
        match self.upstream(name) {
            None => Some(Magic::Standalone),
            Some(Upstream::Member(_)) => Some(Magic::Clustered),
            Some(Upstream::Relay(_)) => None,
        }
    }

    /// Whether a served database is a relay.
    pub(super) fn is_relay(&self, id: DatabaseId) -> bool {
        let served = self.served.values().find(|served| served.id == id);
        let upstream = served.and_then(|served| served.upstream.as_ref());
        upstream.and_then(Upstream::relay).is_some()
    }

    /// The first relay by name that is served: locks live at its source.
    pub(super) fn first_relay(&self) -> Option<DatabaseId> {
        let mut ids = self.served.values().map(|served| served.id);
        ids.find(|id| self.is_relay(*id))
    }

    /// Whether a database with this number is served.
    pub(super) fn is_served(&self, id: DatabaseId) -> bool {
        self.served.values().any(|served| served.id == id)
    }

    /// All relays, served or not.
    pub(super) fn relays_mut(&mut self) -> impl Iterator<Item = &mut ServedRelay> {
        let served = self.served.values_mut();
        let served = served.filter_map(|served| served.upstream.as_mut());
        let joining = self.joining.values_mut();
        let joining = joining.map(|joining| &mut joining.upstream);
        served.chain(joining).filter_map(Upstream::relay_mut)
    }

    /// Changes the source of a relay, if it differs. The contents stay. Does nothing for other
    /// databases.
    pub(super) fn set_relay_source(&mut self, database: &str, settings: RelaySettings) {
        let argument = settings.argument();
        let (served, joining) = (&mut self.served, &mut self.joining);
        let found = match (served.get_mut(database), joining.get_mut(database)) {
            (Some(served), _) => Some((&mut served.name, served.upstream.as_mut())),
            (None, Some(joining)) => Some((&mut joining.name, Some(&mut joining.upstream))),
            (None, None) => None,
        };
        if let Some((name, Some(Upstream::Relay(relay)))) = found {
            *name = argument;
            relay.set_source(settings.source);
        }
    }
}

/// Checks whether a database may be served under this name.
///
/// # Errors
/// The name is reserved or taken, in the reference's words.
pub(crate) fn check_name(name: &str, is_taken: bool) -> Result<(), String> {
    if name.starts_with('_') {
        return Err(format!(
            "ovsdb error: {name}: names beginning with \"_\" are reserved"
        ));
    }
    if is_taken {
        return Err(format!("ovsdb error: {name}: duplicate database name"));
    }
    Ok(())
}

/// Whether two names mean the same file; symbolic links are followed.
pub(crate) fn same_file(a: &str, b: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let metadata = |name| std::fs::metadata(os_name::path(name));
    match (metadata(a), metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
