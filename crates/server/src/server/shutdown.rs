//! The end of databases: of one that is removed, and of all when the server exits. Part of the main
//! thread.
//!
//! Invariant: a database that is being removed has a [`Removal`] until it reports
//! [`Event::Removed`]. Until then the answers of its disk, rewrite and job threads reach it, so
//! every request and every control command that waits for it is answered. Its file is closed before
//! the report.

use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use corvid_service::message::{Control, DatabaseId, Event};
use corvid_service::server_db;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::pending_replies::Removal;
use super::served::ServedDatabase;
use super::upstream::{JoiningDatabase, Upstream};
use super::{Server, answer, roles};
use crate::main_handle::MainMessage;
use crate::metrics::Stage;

/// How long an exiting server waits for databases and backups. A swap in progress takes two syncs
/// of the disk.
const EXIT_MAX: Duration = Duration::from_secs(10);

impl Server {
    /// Makes the main loop end.
    pub(crate) fn exit(&mut self) {
        self.is_exiting = true;
    }

    /// Whether the main loop must end.
    #[must_use]
    pub(crate) fn is_exiting(&self) -> bool {
        self.is_exiting
    }

    /// Stops serving a database; `replier` is answered when its sessions are closed and `_Server`
    /// has changed.
    pub(crate) fn remove_database(&mut self, name: &str, reason: &str, replier: Option<Replier>) {
        let refusal = if name.starts_with('_') {
            "Cannot remove reserved database."
        } else if self.databases.contains(name) {
            self.stop_serving(name, reason, replier);
            self.save();
            return;
        } else {
            "Failed to find the database."
        };
        answer(replier, Err(refusal.to_owned()));
    }

    /// Stops serving a database that is served or joining.
    fn stop_serving(&mut self, name: &str, reason: &str, replier: Option<Replier>) {
        self.config.metrics.remove_database(name);
        if let Some(served) = self.databases.remove_served(name) {
            roles::close_source(&served, &self.shared);
            self.publish();
            // The thread ends by itself, after the database has reported its removal.
            drop(self.end_database(name, served, reason, replier));
            self.watch_columns_again(name);
        } else if let Some(joining) = self.databases.remove_joining(name) {
            self.publish();
            drop(self.end_joining(name, joining, reason, replier));
        }
    }

    /// A database reports its removal. If nobody has ordered it, the thread of its member or relay
    /// has ended because `poll` has failed, and has ended the database. It is no longer served, but
    /// stays in the saved configuration, so a restarted server serves it again.
    pub(super) fn expect_removal(&mut self, id: DatabaseId) {
        if self.pending.removals.contains_key(&id) {
            return;
        }
        let Some((name, _)) = self.databases.upstream_numbered(id) else {
            return;
        };
        let name = name.to_owned();
        let why = "because the thread of its cluster member or relay has ended unexpectedly";
        vlog::err(
            Module::OvsdbServer,
            format_args!("{name}: removing database {why}: restart this server"),
        );
        self.stop_serving(&name, &format!("removing database {name} {why}"), None);
    }

    /// Orders a database to end. Returns its threads, which end after [`Event::Removed`] and after
    /// the shards have dropped their senders to the database.
    fn end_database(
        &mut self,
        name: &str,
        served: ServedDatabase,
        reason: &str,
        replier: Option<Replier>,
    ) -> Vec<JoinHandle<()>> {
        let removal = Removal {
            name: name.to_owned(),
            _mailbox: Some(served.mailbox.clone()),
            reason: reason.to_owned(),
            replier,
        };
        if served.upstream.is_none() {
            served.control(Control::Remove);
        }
        let mut threads = vec![served.thread];
        // A member orders its database to end once its file is closed, a relay once its connection
        // is closed.
        threads.extend(served.upstream.map(Upstream::end));
        self.pending.removals.insert(served.id, removal);
        threads
    }

    /// Orders the member or relay of a database that is not served yet to end.
    fn end_joining(
        &mut self,
        name: &str,
        joining: JoiningDatabase,
        reason: &str,
        replier: Option<Replier>,
    ) -> JoinHandle<()> {
        self.await_removal(joining.id, name, reason, replier);
        joining.upstream.end()
    }

    /// Expects the report of a thread, of a database that is not served, that was ordered to end.
    pub(super) fn await_removal(
        &mut self,
        id: DatabaseId,
        name: &str,
        reason: &str,
        replier: Option<Replier>,
    ) {
        let removal = Removal {
            name: name.to_owned(),
            _mailbox: None,
            reason: reason.to_owned(),
            replier,
        };
        self.pending.removals.insert(id, removal);
    }

    /// Ends every thread. Pending requests and control commands are answered, and queued log
    /// records are written.
    pub(crate) fn shut_down(mut self) {
        self.config.metrics.set_stage(Stage::Ending);
        self.pending.is_exiting.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let deadline = began + EXIT_MAX;
        self.openings.abandon();
        let names = self.databases.served_names();
        let is_server_db = |name: &String| *name == server_db::NAME;
        let mut threads = Vec::new();
        for name in names.iter().filter(|name| !is_server_db(name)) {
            threads.extend(self.begin_exit(name));
        }
        for (name, joining) in self.databases.take_all_joining() {
            threads.push(self.end_joining(&name, joining, "", None));
        }
        // Shards drop their handles to the databases here; a database's thread cannot end before.
        self.publish();
        self.await_removals(deadline);
        // `_Server` ends last, as in the reference: pending requests to it are answered, and no
        // session gets an update about the removals.
        threads.extend(self.begin_exit(server_db::NAME));
        self.publish();
        self.await_removals(deadline);
        self.await_abandoned_openings(began);
        // A database that has not ended in time loses its sender, so that its thread can end.
        self.pending.removals.clear();
        self.shared.shards.shutdown();
        for thread in threads {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }

    fn begin_exit(&mut self, name: &str) -> Vec<JoinHandle<()>> {
        let Some(served) = self.databases.remove_served(name) else {
            return Vec::new();
        };
        roles::close_source(&served, &self.shared);
        self.end_database(name, served, "", None)
    }

    /// Waits, at most until `deadline`, for every database that was ordered to end, and for every
    /// backup.
    fn await_removals(&mut self, deadline: Instant) {
        while self.pending.is_ending()
            && let Ok(report) = self.shared.inbox.recv_deadline(deadline)
        {
            if let MainMessage::Event(Event::Removed(id)) = report {
                drop(self.end_removal(id));
            } else {
                self.run_message(report);
            }
        }
        // Events that arrived together with the last removal.
        self.run_events();
    }
}
