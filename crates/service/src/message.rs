//! Messages between shards, databases and the server's main thread. All of them are data, so a simulator carries them as well as a queue
//! between threads.

mod control;

pub(crate) use control::database_removed;
pub use control::{Control, ControlAnswer};

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_consensus::database::MemberEvent;
use corvid_data::Schema;
use corvid_engine::{Database, Identity};
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_log::storage::{StorageReply, StoreError};
use corvid_monitor::{Frame, SessionId, Version};

use crate::counters::Counters;
use crate::job::{JobNumber, JobResult};
use crate::once::Once;
use crate::relayed_client::RelayedClient;
use crate::remote_rows::RemoteRows;
use crate::replication::{LogMessage, ReplicationStatus, SourceEvent, SourceId};
use crate::schema_epoch::SchemaEpoch;
use crate::upstream::SourceNews;

/// A served database; a database that is removed and added again gets another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u32);

/// A session, as databases and logs see it.
#[derive(Debug)]
pub struct SessionInfo {
    /// Its remote is read-only (docs/spec/protocol.md 7.3).
    pub read_only: bool,
    /// Role of its remote; empty: none.
    pub role: String,
    /// Common name of its certificate.
    pub client_id: Option<String>,
    /// It is a relay that the operator trusts to speak for its clients.
    pub is_trusted_relay: bool,
    /// The peer of its connection, as log lines name it; empty: unknown.
    pub peer: Arc<str>,
    /// The remote that it connected to, as configured.
    pub remote: Arc<str>,
    /// The schema epoch in which it began; set by its shard.
    pub(crate) epoch: SchemaEpoch,
    aware: AtomicBool,
    /// It lost a monitor or a request while it was not aware of changes, so it was not notified.
    missed_cancellation: AtomicBool,
    closed: AtomicBool,
}

impl SessionInfo {
    /// A session that has not turned on change awareness.
    #[must_use]
    pub fn new(read_only: bool, role: String, client_id: Option<String>) -> SessionInfo {
        SessionInfo {
            read_only,
            role,
            client_id,
            is_trusted_relay: false,
            peer: Arc::default(),
            remote: Arc::default(),
            epoch: SchemaEpoch::default(),
            aware: AtomicBool::new(false),
            missed_cancellation: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The same session with its peer and remote.
    #[must_use]
    pub fn of_peer(self, peer: Arc<str>, remote: Arc<str>) -> SessionInfo {
        SessionInfo {
            peer,
            remote,
            ..self
        }
    }

    /// The same session as that of a relay that may speak for its clients, or may not.
    #[must_use]
    pub fn of_trusted_relay(self, is_trusted_relay: bool) -> SessionInfo {
        SessionInfo {
            is_trusted_relay,
            ..self
        }
    }

    /// The client, for people: `tcp:192.0.2.1:50000 (client "ch1", role "ovn-controller")`.
    #[must_use]
    pub fn who(&self) -> String {
        let mut known = Vec::new();
        known.extend(
            self.client_id
                .as_ref()
                .map(|id| format!("client {}", Value::string(id))),
        );
        known
            .extend((!self.role.is_empty()).then(|| format!("role {}", Value::string(&self.role))));
        match known.as_slice() {
            [] => self.peer.to_string(),
            known => format!("{} ({})", self.peer, known.join(", ")),
        }
    }

    /// Whether it asked for database change awareness (docs/spec/protocol.md 4.14).
    #[must_use]
    pub fn is_aware(&self) -> bool {
        self.aware.load(Ordering::Relaxed)
    }

    /// Whether the client has disconnected: its transactions are dropped instead of blocking.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Marks the client as disconnected.
    pub fn set_closed(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether it is about to be closed although it may have become aware since: it waits for updates or replies that will never come.
    #[must_use]
    pub fn has_missed_cancellation(&self) -> bool {
        self.missed_cancellation.load(Ordering::Relaxed)
    }

    /// Records that it lost a monitor or a request without notification.
    pub fn miss_cancellation(&self) {
        self.missed_cancellation.store(true, Ordering::Relaxed);
    }

    /// Turns awareness on or off.
    pub fn set_aware(&self, aware: bool) {
        self.aware.store(aware, Ordering::Relaxed);
    }
}

/// The methods that a database answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DatabaseMethod {
    Transact,
    Convert,
    GetSchema,
    Monitor(Version),
    MonitorCondChange,
    MonitorCancel,
}

impl DatabaseMethod {
    /// All methods, in the order of their numbers in recordings.
    pub(crate) const ALL: [DatabaseMethod; 8] = [
        DatabaseMethod::Transact,
        DatabaseMethod::Convert,
        DatabaseMethod::GetSchema,
        DatabaseMethod::Monitor(Version::V1),
        DatabaseMethod::Monitor(Version::V2),
        DatabaseMethod::Monitor(Version::V3),
        DatabaseMethod::MonitorCondChange,
        DatabaseMethod::MonitorCancel,
    ];

    /// The method with this name on the wire.
    pub(crate) fn of(name: &[u8]) -> Option<DatabaseMethod> {
        let mut methods = DatabaseMethod::ALL.into_iter();
        methods.find(|method| method.name().as_bytes() == name)
    }

    /// Whether it starts, changes or ends a monitor.
    #[must_use]
    pub fn is_about_monitors(self) -> bool {
        matches!(
            self,
            DatabaseMethod::Monitor(_)
                | DatabaseMethod::MonitorCondChange
                | DatabaseMethod::MonitorCancel
        )
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DatabaseMethod::Transact => "transact",
            DatabaseMethod::Convert => "convert",
            DatabaseMethod::GetSchema => "get_schema",
            DatabaseMethod::Monitor(Version::V1) => "monitor",
            DatabaseMethod::Monitor(Version::V2) => "monitor_cond",
            DatabaseMethod::Monitor(Version::V3) => "monitor_cond_since",
            DatabaseMethod::MonitorCondChange => "monitor_cond_change",
            DatabaseMethod::MonitorCancel => "monitor_cancel",
        }
    }
}

/// A request for a database. The frame is kept whole; nothing is copied out of it.
#[derive(Debug)]
pub struct Request {
    /// The session that sent it.
    pub session: SessionId,
    /// Its description.
    pub info: Arc<SessionInfo>,
    /// When it arrived, ms.
    pub arrived_ms: u64,
    /// The stamp of its frame ([`Frontend::set_stamp`](crate::Frontend::set_stamp)); zero: none.
    pub stamp: u64,
    /// The request id, canonical JSON.
    pub id: Box<[u8]>,
    /// The method.
    pub method: DatabaseMethod,
    /// The whole message.
    pub frame: Vec<u8>,
    /// The range of the `params` array in the frame.
    pub params: Range<usize>,
    /// Its number in the order of first executions; set by the first execution and kept by retries.
    pub seqno: Option<u64>,
    /// It blocked before (a `wait`) and was reported as complete then.
    pub blocked: bool,
    /// For monitor requests: ids of this session's monitors on other databases.
    pub foreign_monitors: Vec<Arc<[u8]>>,
    /// The identity of a transaction that is executed once.
    pub once: Option<Once>,
    /// From a relay: its client.
    pub client: Option<Box<RelayedClient>>,
}

impl Request {
    /// The roles under which it is judged: each must allow it.
    #[must_use]
    pub fn identities(&self) -> Vec<Identity<'_>> {
        let info = &self.info;
        let speaks_for_client = self.client.is_some() && info.is_trusted_relay;
        let own = (!info.role.is_empty() && !speaks_for_client).then_some(Identity {
            role: &info.role,
            client_id: info.client_id.as_deref(),
        });
        let mut identities: Vec<_> = own.into_iter().collect();
        for identity in self.client.iter().flat_map(|client| client.identities()) {
            if !identity.role.is_empty() && !identities.contains(&identity) {
                identities.push(identity);
            }
        }
        identities
    }

    /// Whether it may not write. A relay's own session is judged as well, trusted or not.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let client = self.client.as_ref();
        self.info.read_only || client.is_some_and(|client| client.is_read_only())
    }

    /// The client of a trusted relay, as that tells it: a JSON object.
    #[must_use]
    pub fn told_client(&self) -> Option<&Arc<str>> {
        let client = self.client.as_ref();
        client.filter(|_| self.info.is_trusted_relay)?.who()
    }

    /// The raw text of the `params` array.
    #[must_use]
    pub fn params(&self) -> &[u8] {
        &self.frame[self.params.clone()]
    }
}

/// To a database.
#[derive(Debug)]
pub enum ToDatabase {
    /// A client's request.
    Request(Box<Request>),
    /// `cancel` of a pending request, by canonical id. Completes like a request, whether or not the canceled request exists.
    Cancel(SessionId, Box<[u8]>),
    /// Send the session's pending updates, then report this completion: the shard is about to send something else to it.
    Fence(SessionId, Completion),
    /// The session's output is drained.
    Drained(SessionId),
    /// The client has disconnected.
    Closed(SessionId),
    /// Of a relay: the lock table has claims for its source ([`Locks::relay_with_claims`](crate::Locks::relay_with_claims)).
    LockClaims,
    /// A reply of the storage.
    Storage(StorageReply),
    /// The result of a [`Job`](crate::job::Job).
    JobDone(JobNumber, JobResult),
    /// From the connection to a backup's source.
    Source(SourceId, SourceEvent),
    /// From the member of a clustered database.
    Member(MemberEvent),
    /// From a relay's conversation with its source.
    Relay(SourceNews),
    /// The contents of a snapshot that the member of a clustered database has installed, because it was too far behind for entries. The
    /// holder sends them in place of [`MemberEvent::Replaced`], before later events of the member. Answered by
    /// [`MemberRequest::Applied`](corvid_consensus::database::MemberRequest::Applied).
    Installed(Box<InstalledSnapshot>),
    /// From the server itself.
    Control(Control),
}

/// The contents of a snapshot of a cluster.
#[derive(Debug)]
pub struct InstalledSnapshot {
    /// Schema and rows.
    pub database: Database,
    /// The last entry that they contain.
    pub index: Index,
    /// Its term.
    pub term: Term,
    /// The id of the last entry with data that they contain.
    pub eid: Eid,
}

/// A piece of an outgoing message stream; the pieces of one [`Deliver`] are whole messages, in order.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A message of one session.
    Message(Vec<u8>),
    /// A reply or a notification that is long, or whose body other sessions may share.
    Long(Frame),
    /// An update, whose body other sessions may share.
    Update(Frame),
}

impl Piece {
    /// Its frame, if it leaves as one.
    pub(crate) fn frame(&self) -> Option<&Frame> {
        match self {
            Piece::Message(_) => None,
            Piece::Long(frame) | Piece::Update(frame) => Some(frame),
        }
    }

    /// Its length, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Piece::Message(text) => text.len(),
            Piece::Long(frame) | Piece::Update(frame) => {
                let body: usize = frame.body.pieces().iter().map(|piece| piece.len()).sum();
                frame.head.len() + body + frame.tail.len()
            }
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The request that a delivery completes, for the session on its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Nothing.
    None,
    /// A request (or it blocks, or is canceled).
    Request,
    /// A request that created the monitor with this id.
    MonitorAdded(Arc<[u8]>),
    /// A request that renamed the first id to the second.
    MonitorRenamed(Arc<[u8]>, Arc<[u8]>),
    /// A request that removed this monitor.
    MonitorRemoved(Arc<[u8]>),
    /// No request, but the lock table has a notification for the session.
    LockNotification,
    /// No request, but this monitor is lost: its database was removed or converted.
    MonitorLost(Arc<[u8]>),
    /// The fence before a notification about a lock; no request.
    NotificationFence,
    /// The fence in `_Server` before the reply of a clustered database; no request.
    IndexFence,
}

impl Completion {
    /// That of the reply to a request. One that blocked was reported as complete then.
    pub(crate) fn of(request: &Request) -> Completion {
        if request.blocked {
            Completion::None
        } else {
            Completion::Request
        }
    }
}

/// Bytes for one session, in order.
#[derive(Debug)]
pub struct Deliver {
    /// The recipient.
    pub session: SessionId,
    /// The database that sends it.
    pub database: DatabaseId,
    /// The bytes.
    pub pieces: Vec<Piece>,
    /// It holds updates, or reaches the limit of unread replies: report [`ToDatabase::Drained`] when it is written.
    pub report_drained: bool,
    /// The completed request.
    pub completion: Completion,
}

/// To a shard.
#[derive(Debug)]
pub enum ToShard {
    /// Write this.
    Deliver(Deliver),
    /// The lock table holds notifications for this session.
    LockNotifications(SessionId),
    /// The served databases have changed.
    ServedDatabases(Arc<crate::served_databases::ServedDatabases>),
    /// Close every session that is not change-aware and began before this epoch, after its queued
    /// output. Nothing more is sent to them. The main thread sends this before it shows the change
    /// to any client.
    DisconnectUnaware(Arc<str>, SchemaEpoch),
    /// Close this session, if it is still there, for this reason.
    CloseSession(SessionId, Arc<str>),
    /// Close every session.
    DisconnectAll(Arc<str>),
    /// Refuse conditional monitoring from now on (`ovsdb-server/disable-monitor-cond`).
    DisableMonitorCond,
}

/// From a database to the server's main thread.
#[derive(Debug)]
pub enum Event {
    /// A client converted it. Sessions of earlier epochs that are not aware are closed, then `_Server` shows the new schema.
    Converted(DatabaseId, corvid_data::Arc<Schema>, SchemaEpoch),
    /// Answer to the [`Control`] message with this number.
    Answered(u64, ControlAnswer),
    /// A compaction that nobody asked for has ended ([`Control::Compact`] without a number).
    Compacted(Result<(), StoreError>),
    /// Answer to [`Control::Remove`].
    Removed(DatabaseId),
    /// Answer to [`Control::WatchColumn`]: the remotes, or why there are none.
    ColumnWatched(String, Result<RemoteRows, String>),
    /// The remotes that a watched column names have changed.
    RemotesChanged(String, RemoteRows),
    /// A watched column cannot be used after a conversion, for this reason. Its remotes have been reported as removed.
    ColumnLost(String),
    /// A transaction took long: the line.
    Slow(String),
    /// A log message of a backup.
    Replication(LogMessage),
    /// Close this session, for this reason: the outcome of one of its transactions will never be known, because the cluster's entry is
    /// part of a snapshot.
    OutcomeUnknown(SessionId, Arc<str>),
    /// A clustered database cannot apply a committed entry, and applies nothing any more: the line.
    EntryRefused(String),
    /// A row of a table that is logged has changed: the line.
    RowLogged(String),
    /// A table whose rows configure remotes has no `status` column.
    NoStatusColumn(String),
    /// A row of this table describes a remote and has no `target`.
    NoTarget(String),
}

/// The state of a database, for commands and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The amounts of everything.
    pub usage: Usage,
    /// Its tables.
    pub tables: Vec<TableReport>,
    /// The state of replication; `None`: it is active.
    pub replication: Option<ReplicationStatus>,
    /// Its counters.
    pub counts: Counters,
    /// Replies that wait for a record to be stored.
    pub pending: u64,
    /// Inputs that wait at a barrier.
    pub queued: u64,
    /// Its file, if it has one.
    pub file: Option<FileReport>,
    /// A conversion is under way.
    pub is_converting: bool,
}

/// The state of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Its name.
    pub name: String,
    /// Its rows are logged as they change.
    pub is_logged: bool,
    /// The number of its rows.
    pub rows: u64,
}

/// The state of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// Its length with the records that are being written, bytes.
    pub size: u64,
    /// The length of its schema and first transaction when it was last written as a whole, bytes.
    pub base: u64,
    /// Records since then.
    pub records: u64,
    /// The last commit could not be stored.
    pub has_failed: bool,
    /// A new file is being written.
    pub is_rewriting: bool,
}

/// Figures for `memory/show`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Atoms in rows.
    pub atoms: u64,
    /// Rows times columns, `_uuid` and `_version` included.
    pub cells: u64,
    /// Monitors.
    pub monitors: u64,
    /// Blocked transactions.
    pub triggers: u64,
    /// Weak references.
    pub weak_references: u64,
    /// Commits in the transaction history.
    pub history_commits: u64,
    /// Atoms in the history.
    pub history_atoms: u64,
}
