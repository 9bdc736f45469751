//! The open remotes: listeners, and connections that the server opens itself. A remote is wanted
//! because the command line or the control socket gave it, or because a row of a database names it.
//!
//! Invariant: after every change the open remotes are exactly the wanted ones. A remote whose role
//! or DSCP changes is closed and opened again; other options also apply to its open sessions. Used
//! by the main thread; the connections run on shards.

pub(crate) mod connection;
pub(crate) mod options;
pub(crate) mod outgoing;
pub(crate) mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use corvid_net::clock::Now;
use corvid_net::target::Target;
use corvid_reactor::shard::{ListenerHandle, ListenerId, ListenerStatus, Shards};
use corvid_rpc::remote::ColumnRemote;
use corvid_service::locks::Locks;
use corvid_service::remote_rows::RemoteRows;
use corvid_service::remote_status::{RemoteStatus, RemoteStatuses};
use corvid_shell::vlog::{self, Module};

use crate::remotes::options::RemoteOptions;
use crate::remotes::outgoing::{ConnectionStatus, SharedStatus};
use crate::shard::{RemoteTable, SessionOrigin, ShardMessage};

/// All remotes.
pub(crate) struct Remotes {
    shards: Arc<Shards<ShardMessage>>,
    options: RemoteTable,
    next_listener: u64,
    /// The remotes as given, `db:` forms included.
    given: BTreeMap<String, RemoteOptions>,
    /// The rows that each `db:` remote currently names.
    sourced: BTreeMap<String, RemoteRows>,
    open: BTreeMap<String, OpenRemote>,
}

struct OpenRemote {
    kind: RemoteKind,
    options: RemoteOptions,
}

/// Which side opens the connections.
enum RemoteKind {
    /// Clients connect to this listener.
    Passive(ListenerHandle),
    /// Shard 0 connects, and publishes the status of the connection here.
    Active(SharedStatus),
}

impl OpenRemote {
    /// Whether the remote counts as open. A listener that could not be opened does not.
    fn is_remote(&self) -> bool {
        match &self.kind {
            RemoteKind::Passive(listener) => listener.status().is_listening(),
            RemoteKind::Active(_) => true,
        }
    }
}

impl Remotes {
    /// A set without remotes.
    #[must_use]
    pub(crate) fn new(shards: Arc<Shards<ShardMessage>>, options: RemoteTable) -> Remotes {
        Remotes {
            shards,
            options,
            next_listener: 0,
            given: BTreeMap::new(),
            sourced: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// The given remotes, sorted.
    pub(crate) fn given(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str)
    }

    /// Whether this remote was given.
    #[must_use]
    pub(crate) fn contains(&self, remote: &str) -> bool {
        self.given.contains_key(remote)
    }

    /// Adds a given remote, or changes its options.
    pub(crate) fn add(&mut self, remote: &str, options: RemoteOptions) {
        self.given.insert(remote.to_owned(), options);
        self.reconcile();
    }

    /// Removes a given remote, and closes the remotes that nothing else wants. Returns false if it
    /// was not given.
    pub(crate) fn remove(&mut self, remote: &str) -> bool {
        let was_given = self.given.remove(remote).is_some();
        self.sourced.remove(remote);
        self.reconcile();
        was_given
    }

    /// Replaces the rows that a `db:` remote names.
    pub(crate) fn set_rows(&mut self, remote: &str, rows: RemoteRows) {
        let before = self.sourced.insert(remote.to_owned(), rows);
        let (before, rows) = (before.unwrap_or_default(), &self.sourced[remote]);
        let is_new = |target: &&String| is_descriptor(target) && !before.contains_key(*target);
        for target in rows.keys().filter(is_new) {
            vlog::warn(
                Module::OvsdbServer,
                format_args!(
                    "pfd: remotes can only be specified on the command line; ignoring \"{target}\" from database"
                ),
            );
        }
        self.reconcile();
    }

    /// Opens the wanted remotes that are not open, and closes the open remotes that are not wanted.
    fn reconcile(&mut self) {
        let wanted = self.wanted();
        let obsolete = |name: &String, open: &mut OpenRemote| {
            wanted.get(name).is_none_or(|options| {
                options.role != open.options.role || options.dscp != open.options.dscp
            })
        };
        let closing: Vec<(String, OpenRemote)> = self.open.extract_if(.., obsolete).collect();
        for (name, open) in closing {
            if !wanted.contains_key(&name) && open.is_remote() {
                vlog::info(
                    Module::OvsdbJsonrpcServer,
                    format_args!("{name}: remote deconfigured"),
                );
            }
            self.close(&name, &open);
        }
        for (name, options) in wanted {
            match self.open.get_mut(&name) {
                None => self.open_remote(name, options),
                Some(open) if open.options != options => {
                    let shards = self.shards.handles();
                    match &open.kind {
                        RemoteKind::Passive(listener) => {
                            // The table changes before the shards are notified. A session that
                            // opens after the change reads the new options from the table. A
                            // session that is already open gets them by the message. In the reverse
                            // order, a session that opens in between would miss both.
                            let mut table =
                                self.options.lock().unwrap_or_else(PoisonError::into_inner);
                            table
                                .insert(listener.id(), (Arc::from(name.as_str()), options.clone()));
                            let source = SessionOrigin::Listener(listener.id());
                            for shard in shards {
                                shard.post(ShardMessage::SetOptions(
                                    source.clone(),
                                    options.clone(),
                                ));
                            }
                            open.options = options;
                        }
                        RemoteKind::Active(_) => {
                            let source = SessionOrigin::Remote(name);
                            shards[0].post(ShardMessage::SetOptions(source, options.clone()));
                            open.options = options;
                        }
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn wanted(&self) -> BTreeMap<String, RemoteOptions> {
        let given = self
            .given
            .iter()
            .filter(|(remote, _)| !ColumnRemote::matches(remote));
        let mut wanted: BTreeMap<_, _> = given
            .map(|(remote, options)| (remote.clone(), options.clone()))
            .collect();
        let sourced = self.sourced.values().flatten();
        for (target, row) in sourced.filter(|(target, _)| !is_descriptor(target)) {
            wanted.insert(target.clone(), RemoteOptions::from_row(row));
        }
        wanted
    }

    fn open_remote(&mut self, name: String, options: RemoteOptions) {
        // A text that is not a connection method counts as a remote that never connects, as in the
        // reference.
        let kind = match Target::parse(&name) {
            Ok(Target::Passive(passive)) => {
                let id = ListenerId(self.next_listener);
                self.next_listener += 1;
                self.options
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(id, (Arc::from(name.as_str()), options.clone()));
                RemoteKind::Passive(self.shards.listen(id, &name, passive, options.dscp))
            }
            active => {
                if let Err(error) = active {
                    error.log(&name);
                }
                let board = SharedStatus::default();
                let connect = ShardMessage::Connect(name.clone(), options.clone(), board.clone());
                self.shards.handles()[0].post(connect);
                RemoteKind::Active(board)
            }
        };
        self.open.insert(name, OpenRemote { kind, options });
    }

    fn close(&self, name: &str, open: &OpenRemote) {
        match &open.kind {
            RemoteKind::Passive(listener) => {
                self.shards.unlisten(listener);
                self.options
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&listener.id());
            }
            RemoteKind::Active(_) => {
                self.shards.handles()[0].post(ShardMessage::Disconnect(name.to_owned()));
            }
        }
    }

    /// The number of sessions as the reference counts them: the open sessions of listeners, plus
    /// one for each remote that the server connects to, connected or not.
    #[must_use]
    pub(crate) fn session_count(&self) -> usize {
        let of = |open: &OpenRemote| match &open.kind {
            RemoteKind::Passive(listener) => listener.status().connections(),
            RemoteKind::Active(_) => 1,
        };
        self.open.values().map(of).sum()
    }

    /// The status of every open remote, by target (docs/spec/cli.md 1.6).
    #[must_use]
    pub(crate) fn statuses(&self, now: Now, locks: &Locks) -> RemoteStatuses {
        let open = self.open.iter();
        let statuses = open.filter_map(|(name, open)| {
            let status = match &open.kind {
                RemoteKind::Passive(listener) => of_listener(listener.status())?,
                RemoteKind::Active(board) => of_connection(now, &board.read(), locks),
            };
            Some((name.clone(), status))
        });
        statuses.collect()
    }
}

/// Whether a remote is a file descriptor of this process. Rows of databases cannot name such a
/// remote.
fn is_descriptor(target: &str) -> bool {
    target.starts_with("pfd:")
}

/// The status of a listener; `None`: it could not be opened, so it does not count as a remote.
fn of_listener(listener: &ListenerStatus) -> Option<RemoteStatus> {
    if !listener.is_listening() {
        return None;
    }
    let mut status = RemoteStatus::default();
    let connections = listener.connections();
    status.is_connected = connections > 0;
    if connections > 1 {
        status.set("n_connections", connections.to_string());
    }
    if let Some(port) = listener.bound_port() {
        status.set("bound_port", port.to_string());
    }
    Some(status)
}

/// The status of a remote that the server connects to.
fn of_connection(now: Now, standing: &ConnectionStatus, locks: &Locks) -> RemoteStatus {
    let mut status = RemoteStatus {
        is_connected: standing.session.is_some(),
        status: BTreeMap::new(),
    };
    status.set("state", standing.state.to_owned());
    let seconds_since = |at_ms: u64| (now.mono_ms.saturating_sub(at_ms) / 1000).to_string();
    if let Some(at_ms) = standing.connected_at_ms {
        status.set("sec_since_connect", seconds_since(at_ms));
    }
    if let Some(at_ms) = standing.disconnected_at_ms {
        status.set("sec_since_disconnect", seconds_since(at_ms));
    }
    if let Some(session) = standing.session {
        let claims = locks.requested_by(session);
        for (key, names) in [
            ("locks_held", claims.owned),
            ("locks_waiting", claims.waiting),
            ("locks_lost", claims.lost),
        ] {
            if !names.is_empty() {
                status.set(key, names.join(" "));
            }
        }
    }
    status
}
