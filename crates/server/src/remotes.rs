//! The remotes that are open, and why: given on the command line or the control socket, or named by followed columns.
//!
//! Invariant: after every change the open remotes are exactly the wanted ones. A remote whose role or DSCP changes is closed
//! and opened again; other options apply to the sessions that come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use corvid_os::shard::{ListenerHandle, ListenerId, Shards};
use corvid_os::target::Target;
use corvid_os::vlog::{self, Module};
use corvid_rpc::remote::ColumnRemote;
use corvid_service::remote_rows::RemoteRows;

use crate::remote_options::RemoteOptions;
use crate::shard::{RemoteTable, ShardMessage};

/// All remotes.
pub struct Remotes {
    shards: Arc<Shards<ShardMessage>>,
    options: RemoteTable,
    next_listener: u64,
    /// As given, `db:` forms included.
    given: BTreeSet<String>,
    /// What each `db:` remote names now.
    sourced: BTreeMap<String, RemoteRows>,
    open: BTreeMap<String, Open>,
}

struct Open {
    /// `None`: we connect, and shard 0 keeps at it.
    listener: Option<ListenerHandle>,
    options: RemoteOptions,
}

impl Remotes {
    /// None.
    #[must_use]
    pub fn new(shards: Arc<Shards<ShardMessage>>, options: RemoteTable) -> Remotes {
        Remotes {
            shards,
            options,
            next_listener: 0,
            given: BTreeSet::new(),
            sourced: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Remotes as they were given, sorted.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(String::as_str)
    }

    /// Whether this remote was given.
    #[must_use]
    pub fn contains(&self, remote: &str) -> bool {
        self.given.contains(remote)
    }

    /// Adds a remote; adding one twice changes nothing.
    pub fn add(&mut self, remote: &str) {
        self.given.insert(remote.to_owned());
        self.reconcile();
    }

    /// Takes a remote out and closes what only it wanted. False when it was not given.
    pub fn remove(&mut self, remote: &str) -> bool {
        let was_given = self.given.remove(remote);
        self.sourced.remove(remote);
        self.reconcile();
        was_given
    }

    /// Takes note of what a `db:` remote names now.
    pub fn set_rows(&mut self, remote: &str, rows: RemoteRows) {
        self.sourced.insert(remote.to_owned(), rows);
        self.reconcile();
    }

    /// Opens what is wanted and not open, closes what is open and not wanted.
    fn reconcile(&mut self) {
        let wanted = self.wanted();
        let obsolete = |name: &String, open: &mut Open| {
            wanted.get(name).is_none_or(|options| {
                options.role != open.options.role || options.dscp != open.options.dscp
            })
        };
        let closing: Vec<(String, Open)> = self.open.extract_if(.., obsolete).collect();
        for (name, open) in closing {
            if !wanted.contains_key(&name) {
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
                    if let Some(listener) = &open.listener {
                        let mut table = self.options.lock().unwrap_or_else(PoisonError::into_inner);
                        table.insert(listener.id(), options.clone());
                    }
                    open.options = options;
                }
                Some(_) => {}
            }
        }
    }

    fn wanted(&self) -> BTreeMap<String, RemoteOptions> {
        let given = self
            .given
            .iter()
            .filter(|remote| !ColumnRemote::matches(remote));
        let mut wanted: BTreeMap<_, _> = given
            .map(|remote| (remote.clone(), RemoteOptions::default()))
            .collect();
        for (target, row) in self.sourced.values().flatten() {
            if target.starts_with("pfd:") {
                vlog::warn(
                    Module::OvsdbJsonrpcServer,
                    format_args!("{target}: pfd: remotes cannot come from a database"),
                );
                continue;
            }
            wanted.insert(target.clone(), RemoteOptions::from_row(row));
        }
        wanted
    }

    fn open_remote(&mut self, name: String, options: RemoteOptions) {
        // What is no connection method at all counts as one that never succeeds, as the reference has it.
        let listener = match Target::parse(&name) {
            Ok(Target::Passive(passive)) => {
                let id = ListenerId(self.next_listener);
                self.next_listener += 1;
                self.options
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(id, options.clone());
                Some(self.shards.listen(id, &name, passive, options.dscp))
            }
            Ok(Target::Active(_)) | Err(_) => {
                self.shards.handles()[0].post(ShardMessage::Connect(name.clone(), options.clone()));
                None
            }
        };
        self.open.insert(name, Open { listener, options });
    }

    fn close(&self, name: &str, open: &Open) {
        match &open.listener {
            Some(listener) => {
                self.shards.unlisten(listener);
                self.options
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&listener.id());
            }
            None => self.shards.handles()[0].post(ShardMessage::Disconnect(name.to_owned())),
        }
    }
}
