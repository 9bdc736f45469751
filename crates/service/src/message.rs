//! Messages between shards, databases and the server's main thread. All of them are plain data: a
//! simulator carries them as well as a queue between threads does.

mod control;
mod relay;

pub use crate::served_databases::DatabaseId;
pub(crate) use control::database_removed;
pub use control::{Control, ControlAnswer};
pub(crate) use relay::RELAY_TERM;
pub use relay::{LockClaim, LockNews, SourceChange, SourceNews, SourceRequest, Withdrawal};

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use corvid_consensus::database::MemberEvent;
use corvid_data::{Schema, WireError};
use corvid_engine::{Database, Identity};
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_log::storage::{StorageReply, StoreError};
use corvid_monitor::{Frame, SessionId, Version};

use crate::client_memory::{COUNTED_BYTES, ClientMemory, charged_body};
use crate::counters::Counters;
use crate::job::{JobDone, JobNumber, JobResult};
use crate::once::{Once, RecordedCommits};
use crate::relayed_client::RelayedClient;
use crate::remote_rows::RemoteRows;
use crate::replication::{LogMessage, ReplicationStatus, SourceEvent, SourceId};
use crate::schema_epoch::SchemaEpoch;

/// The time of an input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Milliseconds on a clock that never jumps.
    pub mono_ms: u64,
    /// Milliseconds since the Unix epoch, for record dates.
    pub wall_ms: i64,
}

/// A session, as databases and logs see it.
#[derive(Debug)]
pub struct SessionInfo {
    /// The session's remote is read-only (docs/spec/protocol.md 7.3).
    pub read_only: bool,
    /// The role that the session's remote assigns; empty if none.
    pub role: String,
    /// Common name of the client's certificate.
    pub client_id: Option<String>,
    /// The session is a relay that the operator trusts to speak for its clients.
    pub is_trusted_relay: bool,
    /// The connection's peer, as log lines name it; empty if unknown.
    pub peer: Arc<str>,
    /// The remote that accepted the connection, as configured.
    pub remote: Arc<str>,
    /// The schema epoch in which the session began; set by its shard.
    pub(crate) epoch: SchemaEpoch,
    aware: AtomicBool,
    /// The last schema epoch that began while the session was aware. The change that began it does
    /// not concern the session, even if it is not aware any more.
    survived: AtomicU64,
    /// The session lost a monitor or a request while it was not change-aware, so it was not
    /// notified.
    missed_cancellation: AtomicBool,
    closed: AtomicBool,
    /// The CPU time that the session has cost, ns. Every thread that works for it adds to it.
    cpu_ns: AtomicU64,
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
            survived: AtomicU64::new(0),
            missed_cancellation: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            cpu_ns: AtomicU64::new(0),
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

    /// The same session, with whether it is a relay that may speak for its clients.
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

    /// Whether the session has asked for database change awareness (docs/spec/protocol.md 4.14).
    #[must_use]
    pub fn is_aware(&self) -> bool {
        // With `set_aware`: a session that is seen unaware shows what it has survived.
        self.aware.load(Ordering::Acquire)
    }

    /// Whether the change that began this schema epoch concerns the session: the session began
    /// before it, and was not aware of changes then.
    #[must_use]
    pub fn is_concerned_by(&self, epoch: SchemaEpoch) -> bool {
        self.epoch < epoch && !self.is_aware() && self.survived.load(Ordering::Relaxed) < epoch.0
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

    /// Charges CPU time to the session, ns.
    pub fn charge_cpu(&self, cpu_ns: u64) {
        self.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    }

    /// The CPU time that was charged to the session, ns.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }

    /// Whether the session lost a monitor or a request without notification. It is about to be
    /// closed, even if it has become change-aware since: it waits for updates or replies that will
    /// never come.
    #[must_use]
    pub fn has_missed_cancellation(&self) -> bool {
        self.missed_cancellation.load(Ordering::Relaxed)
    }

    /// Records that the session lost a monitor or a request without notification.
    pub fn miss_cancellation(&self) {
        self.missed_cancellation.store(true, Ordering::Relaxed);
    }

    /// Turns awareness on or off, in the schema epoch `now`. A session that turns it off stays: as
    /// with the reference, only later changes close it.
    pub fn set_aware(&self, aware: bool, now: SchemaEpoch) {
        if self.is_aware() && !aware {
            self.survived.store(now.0, Ordering::Relaxed);
        }
        self.aware.store(aware, Ordering::Release);
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

    /// Whether the method starts, changes or ends a monitor.
    #[must_use]
    pub fn is_about_monitors(self) -> bool {
        matches!(
            self,
            DatabaseMethod::Monitor(_)
                | DatabaseMethod::MonitorCondChange
                | DatabaseMethod::MonitorCancel
        )
    }

    /// The method's name on the wire.
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

/// A request for a database. The frame is moved in whole; nothing is copied out of it.
#[derive(Debug)]
pub struct Request {
    /// The session that sent the request.
    pub session: SessionId,
    /// The description of that session.
    pub info: Arc<SessionInfo>,
    /// When the request arrived, ms.
    pub arrived_ms: u64,
    /// The frame's stamp ([`Frontend::set_stamp`](crate::Frontend::set_stamp)); 0 if none.
    pub stamp: u64,
    /// The request id, canonical JSON.
    pub id: Box<[u8]>,
    /// The method.
    pub method: DatabaseMethod,
    /// The whole message.
    pub frame: Vec<u8>,
    /// The range of the `params` array in the frame.
    pub params: Range<usize>,
    /// The request's number in the order of first executions; set by the first execution and kept
    /// by retries.
    pub seqno: Option<u64>,
    /// The request blocked earlier (a `wait`); its session was told then that it is complete.
    pub blocked: bool,
    /// For monitor requests: ids of this session's monitors on other databases.
    pub foreign_monitors: Vec<Arc<[u8]>>,
    /// The identity of a transaction that is executed once.
    pub once: Option<Once>,
    /// The client on whose behalf a relay sends the request.
    pub client: Option<Box<RelayedClient>>,
}

impl Request {
    /// The identities that must all be allowed to execute the request; those without a role are
    /// omitted.
    #[must_use]
    pub fn identities(&self) -> Vec<Identity<'_>> {
        let info = &self.info;
        let speaks_for_client = self.client.is_some() && info.is_trusted_relay;
        // Naming a client frees only a trusted relay from its own role. Any other session could
        // name a client with more rights than its own.
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

    /// Whether the request may not write. A read-only relay session makes all its clients
    /// read-only, whether or not the relay is trusted.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let client = self.client.as_ref();
        self.info.read_only || client.is_some_and(|client| client.is_read_only())
    }

    /// The client of a trusted relay, as the relay describes it: a JSON object. `None` if the relay
    /// is not trusted.
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

/// An input of a database.
#[derive(Debug)]
pub enum ToDatabase {
    /// A client's request.
    Request(Box<Request>),
    /// `cancel` of a pending request, by canonical id. It completes like a request, whether or not
    /// the canceled request exists.
    Cancel(SessionId, Box<[u8]>),
    /// Sends the session's pending updates, then reports this completion: the shard is about to
    /// send something that must follow them.
    Fence(SessionId, Completion),
    /// The session's outbound queue is empty.
    Drained(SessionId),
    /// The client has disconnected.
    Closed(SessionId),
    /// To a relay: the lock table has claims for its source
    /// ([`Locks::relay_with_claims`](crate::Locks::relay_with_claims)).
    LockClaims,
    /// A completion from the storage.
    Storage(StorageReply),
    /// The result of a [`Job`](crate::job::Job).
    JobDone(JobNumber, JobResult),
    /// From the connection to a backup's source.
    Source(SourceId, SourceEvent),
    /// From the member of a clustered database.
    Member(MemberEvent),
    /// From a relay's conversation with its source.
    Relay(SourceNews),
    /// The contents of a snapshot that the member of a clustered database has installed, because it
    /// had fallen too far behind for entries. The sender replaces [`MemberEvent::Replaced`] by this
    /// message, before later events of the member. Answered by
    /// [`MemberRequest::Applied`](corvid_consensus::database::MemberRequest::Applied).
    Installed(Box<InstalledSnapshot>),
    /// From the server itself.
    Control(Control),
}

impl From<JobDone> for ToDatabase {
    fn from(JobDone(number, done): JobDone) -> ToDatabase {
        ToDatabase::JobDone(number, done)
    }
}

/// The contents of a snapshot that a cluster member has installed.
#[derive(Debug)]
pub struct InstalledSnapshot {
    /// Schema and rows.
    pub database: Database,
    /// The last entry that the contents include.
    pub index: Index,
    /// The term of that entry.
    pub term: Term,
    /// The id of the last entry with data that the contents include.
    pub eid: Eid,
    /// The last commits that the snapshot names.
    pub recorded: RecordedCommits,
}

/// A piece of an outgoing stream. Each piece is one or more whole messages, in order.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Messages for one session only.
    Message(Vec<u8>),
    /// A long reply or notification, or one whose body other sessions may share.
    Long(Frame),
    /// An update, whose body other sessions may share.
    Update(Frame),
}

impl Piece {
    /// The frame of a long message or an update.
    pub(crate) fn frame(&self) -> Option<&Frame> {
        match self {
            Piece::Message(_) => None,
            Piece::Long(frame) | Piece::Update(frame) => Some(frame),
        }
    }

    /// The piece's length, bytes.
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

    /// Whether the piece is empty.
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
    /// A request: it is answered, it blocks or it was canceled. A fence that the shard counts as a
    /// request.
    Request,
    /// A request that created the monitor with this id.
    MonitorAdded(Arc<[u8]>),
    /// A request that renamed the first id to the second.
    MonitorRenamed(Arc<[u8]>, Arc<[u8]>),
    /// A request that removed this monitor.
    MonitorRemoved(Arc<[u8]>),
    /// No request: the lock table has a notification for the session.
    LockNotification,
    /// No request: this monitor is lost because its database was removed or converted.
    MonitorLost(Arc<[u8]>),
    /// No request: the fence that precedes a notification about a lock.
    NotificationFence,
    /// No request: the fence in `_Server` that precedes the reply of a clustered database.
    IndexFence,
}

impl Completion {
    /// The completion of a reply to this request. A request that blocked was reported as complete
    /// when it blocked.
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
    /// The session that receives the bytes.
    pub session: SessionId,
    /// The database that sends the bytes.
    pub database: DatabaseId,
    /// The bytes.
    pub pieces: Vec<Piece>,
    /// The pieces hold updates, or reach the limit of unread replies: report
    /// [`ToDatabase::Drained`] once they are written.
    pub report_drained: bool,
    /// The completed request.
    pub completion: Completion,
}

/// An input of a shard.
#[derive(Debug)]
pub enum ToShard {
    /// Send these bytes to a session.
    Deliver(Deliver),
    /// The lock table holds notifications for this session.
    LockNotifications(SessionId),
    /// The served databases have changed.
    ServedDatabases(Arc<crate::served_databases::ServedDatabases>),
    /// Close every session that is not change-aware and began before this epoch, after its queued
    /// output. Nothing more is sent to these sessions. The main thread sends this before any client
    /// can see the change.
    DisconnectUnaware(Arc<str>, SchemaEpoch),
    /// The answer to the session's request about history: the result as JSON, or the error.
    History(SessionId, Result<Vec<u8>, WireError>),
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
    /// A client has converted the database. The main thread closes sessions of earlier epochs that
    /// are not change-aware, then shows the new schema in `_Server`.
    Converted(DatabaseId, corvid_data::Arc<Schema>, SchemaEpoch),
    /// Answer to the [`Control`] message with this number.
    Answered(u64, ControlAnswer),
    /// A compaction that no command asked for has ended ([`Control::Compact`] without a number).
    Compacted(Result<(), StoreError>),
    /// Answer to [`Control::Remove`].
    Removed(DatabaseId),
    /// Answer to [`Control::WatchColumn`]: the remotes, or why the column cannot be watched.
    ColumnWatched(String, Result<RemoteRows, String>),
    /// The remotes that a watched column names have changed.
    RemotesChanged(String, RemoteRows),
    /// A conversion made a watched column unusable, for this reason. Its remotes have been reported
    /// as removed.
    ColumnLost(String),
    /// A transaction was slow: the log line.
    Slow(String),
    /// A log message of a backup.
    Replication(LogMessage),
    /// Close this session, for this reason: the outcome of one of its transactions will never be
    /// known, because a snapshot has replaced the transaction's log entry.
    OutcomeUnknown(SessionId, Arc<str>),
    /// A clustered database cannot apply a committed entry and applies nothing more: the log line.
    EntryRefused(String),
    /// A row of a logged table has changed: the log line.
    RowLogged(String),
    /// A table whose rows configure remotes has no `status` column.
    NoStatusColumn(String),
    /// A row of this table describes a remote and has no `target`.
    NoTarget(String),
}

/// The state of a database, for commands and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Figures for `memory/show`.
    pub usage: Usage,
    /// The database's tables.
    pub tables: Vec<TableReport>,
    /// The state of replication; `None` if the database is active.
    pub replication: Option<ReplicationStatus>,
    /// The database's counters.
    pub counts: Counters,
    /// Replies whose commit records are not stored yet.
    pub pending: u64,
    /// Inputs queued at a barrier.
    pub queued: u64,
    /// The database's file; `None` if it has none.
    pub file: Option<FileReport>,
    /// A conversion is in progress.
    pub is_converting: bool,
    /// The last slow transactions, the newest first.
    pub slow_transactions: Vec<SlowTransaction>,
}

/// A transaction that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowTransaction {
    /// When it was answered, ms since the Unix epoch.
    pub time_ms: i64,
    /// How long it took, ms.
    pub duration_ms: u64,
    /// The client, as log lines name it.
    pub client: String,
    /// How many operations of each kind it had; of a long one, its length.
    pub operations: String,
    /// The beginning of its comment; empty if it had none.
    pub comment: String,
}

/// The state of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// The table's name.
    pub name: String,
    /// Changes of the table's rows are logged.
    pub is_logged: bool,
    /// Number of rows.
    pub rows: u64,
}

/// The state of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file's length, including records that are being written, bytes.
    pub size: u64,
    /// File size right after the last compaction, bytes: the length of its schema and first
    /// transaction.
    pub base: u64,
    /// Records written since that compaction.
    pub records: u64,
    /// Why the last commit could not be stored, in the operating system's words; `None`: it was.
    pub error: Option<String>,
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

/// A whole message for one session. A long one is charged as long as its bytes are unread.
pub(crate) fn message_piece(memory: &Arc<ClientMemory>, text: Vec<u8>) -> Piece {
    if text.len() <= COUNTED_BYTES {
        return Piece::Message(text);
    }
    Piece::Long(Frame {
        head: Vec::new(),
        body: charged_body(memory, &text),
        tail: b"",
    })
}
