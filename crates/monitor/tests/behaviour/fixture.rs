//! A database with monitors. Row UUIDs count up, so tests can write them down.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, HashSeed, Schema, TableId, Uuid};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;
use corvid_monitor::{
    ConditionChange, Frame, Monitors, PastAnswer, SessionId, StartOutcome, Version,
};

/// The schema of the worked examples (docs/spec/protocol.md 10), with every table in the root set.
pub(crate) const ZOO: &str = r#"{"name":"Zoo","version":"1.0.0","tables":{
    "Keeper":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "age":{"type":{"key":"integer","min":0,"max":1}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "badge":{"type":{"key":"string","value":"integer","min":0,"max":1}},
        "cfg":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
    "Pet":{"isRoot":true,"columns":{
        "kind":{"type":"string"},
        "size":{"type":"integer"}}},
    "Ballast":{"isRoot":true,"columns":{
        "atoms":{"type":{"key":"integer","min":0,"max":"unlimited"}}}}}}"#;

/// The session of most tests.
pub(crate) const SESSION: SessionId = SessionId(1);

/// A database and its monitors.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) monitors: Monitors,
    versions: Counter,
    rows: u64,
    commits: u64,
    /// Updates of each commit are precomputed before the commit is recorded.
    pub(crate) precomputes_updates: bool,
    /// Commits have ids, so there is a history.
    has_history: bool,
}

/// Row versions, and UUIDs of rows inserted without one.
struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        numbered(0xbb, self.0)
    }
}

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

/// A UUID with a number at its end.
fn numbered(first: u8, number: u64) -> Uuid {
    let mut bytes = [first; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uuid(bytes)
}

/// The id of the commit with a number.
pub(crate) fn txn(number: u64) -> Uuid {
    numbered(0xaa, number)
}

impl Fixture {
    /// An empty database that keeps a history beginning at [`txn`] 0.
    pub(crate) fn new(schema: &str) -> Fixture {
        Fixture::with_history(schema, true)
    }

    pub(crate) fn with_history(schema: &str, has_history: bool) -> Fixture {
        let json = Value::parse(schema.as_bytes()).expect("schema text");
        let schema = Arc::new(Schema::from_json(&json).expect("schema"));
        let last_txn = if has_history { txn(0) } else { Uuid::ZERO };
        Fixture {
            database: Database::new(schema.clone(), HashSeed::FIXED),
            monitors: Monitors::new(schema, last_txn, HashSeed::FIXED),
            versions: Counter(0),
            rows: 0,
            commits: 0,
            precomputes_updates: false,
            has_history,
        }
    }

    /// Executes operations (JSON, comma-separated), which must succeed, and commits.
    pub(crate) fn transact(&mut self, operations: &str) {
        if let Some(delta) = self.attempt(operations) {
            self.commit(&delta);
        }
    }

    /// Executes operations that must change something, and returns the commit without recording it.
    pub(crate) fn execute(&mut self, operations: &str) -> Arc<Delta> {
        self.attempt(operations).expect("a change")
    }

    pub(crate) fn attempt(&mut self, operations: &str) -> Option<Arc<Delta>> {
        let params = format!("[\"Zoo\",{operations}]");
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: false,
            uuids: &mut self.versions,
            locks: &NoLocks,
        };
        let outcome = self.database.execute(params.as_bytes(), &mut context);
        let Outcome::Done { result, delta, .. } = outcome else {
            panic!("blocked: {operations}");
        };
        let text = String::from_utf8_lossy(&result).into_owned();
        assert!(!text.contains("\"error\""), "{operations}: {text}");
        delta
    }

    /// Records a commit as executed and stored.
    pub(crate) fn commit(&mut self, delta: &Arc<Delta>) {
        if self.precomputes_updates {
            for text in self.monitors.precompute_updates(delta) {
                text.pieces();
            }
        }
        self.commits += 1;
        let txn = if self.has_history {
            txn(self.commits)
        } else {
            Uuid::ZERO
        };
        self.monitors.commit(delta, txn, self.database.atom_count());
    }

    /// Inserts a row under the next number and returns its UUID as text.
    pub(crate) fn insert(&mut self, table: &str, row: &str) -> String {
        self.rows += 1;
        let uuid = numbered(0, self.rows).to_string();
        self.transact(&format!(
            r#"{{"op":"insert","table":"{table}","uuid":"{uuid}","row":{row}}}"#
        ));
        uuid
    }

    /// Inserts enough atoms to keep the whole history, which may hold as many as the database
    /// (docs/spec/protocol.md 4.9).
    pub(crate) fn insert_ballast(&mut self) {
        let atoms: Vec<String> = (0..5_000).map(|atom: u32| atom.to_string()).collect();
        let atoms = atoms.join(",");
        self.transact(&format!(
            r#"{{"op":"insert","table":"Ballast","row":{{"atoms":["set",[{atoms}]]}}}}"#
        ));
    }

    /// Updates the row with this UUID.
    pub(crate) fn update(&mut self, table: &str, uuid: &str, row: &str) {
        self.transact(&format!(
            r#"{{"op":"update","table":"{table}","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{row}}}"#
        ));
    }

    /// Deletes the row with this UUID.
    pub(crate) fn delete(&mut self, table: &str, uuid: &str) {
        self.transact(&format!(
            r#"{{"op":"delete","table":"{table}","where":[["_uuid","==",["uuid","{uuid}"]]]}}"#
        ));
    }

    /// Starts a monitor. `params` is the text of the array without the database name. Returns the
    /// result, or the error as tools print it.
    pub(crate) fn start(
        &mut self,
        session: SessionId,
        version: Version,
        params: &str,
    ) -> Result<String, String> {
        let comma = if params.is_empty() { "" } else { "," };
        let params = format!("[\"Zoo\"{comma}{params}]");
        let started =
            self.monitors
                .monitor(&self.database, session, version, params.as_bytes(), &|_| {
                    false
                });
        match started {
            Ok(started) => Ok(shown(&started.result.to_bytes())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Executes a monitor request. `params` is the text of the whole array. Contents of more than
    /// `rows_max` rows become an order. The reply may be sent later: then call
    /// [`Fixture::mark_replied`].
    pub(crate) fn begin(
        &mut self,
        session: SessionId,
        version: Version,
        params: &str,
        rows_max: usize,
    ) -> StartOutcome {
        let (monitors, params) = (&mut self.monitors, params.as_bytes());
        let outcome = monitors.begin(
            &mut self.database,
            session,
            version,
            params,
            corvid_monitor::RequestContext {
                past: &corvid_monitor::no_past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
            rows_max,
        );
        outcome.expect("a valid request")
    }

    /// Starts a monitor of version 3 with what is known of the past, and returns its result.
    pub(crate) fn begin_from<'a>(
        &mut self,
        session: SessionId,
        params: &str,
        past: &'a dyn Fn(Uuid, &[TableId]) -> PastAnswer<'a>,
    ) -> String {
        let params = format!(r#"["Zoo",{params}]"#);
        let outcome = self.monitors.begin(
            &mut self.database,
            session,
            Version::V3,
            params.as_bytes(),
            corvid_monitor::RequestContext {
                past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
            1000,
        );
        match outcome.expect("a valid request") {
            StartOutcome::Started(started) => shown(&started.result.to_bytes()),
            other => panic!("{other:?}"),
        }
    }

    /// Marks the commits before the request of the monitor `id` as stored, and its reply as sent.
    pub(crate) fn mark_replied(&mut self, session: SessionId, id: &str) {
        assert!(self.monitors.mark_contents_stored(session, id.as_bytes()));
        self.monitors.mark_replied(session, id.as_bytes());
    }

    /// Executes a condition change, to be applied once the commits before it are stored.
    pub(crate) fn execute_change(&mut self, session: SessionId, params: &str) -> ConditionChange {
        let (monitors, params) = (&self.monitors, params.as_bytes());
        let change = monitors.change_condition(
            &mut self.database,
            session,
            params,
            corvid_monitor::RequestContext {
                past: &corvid_monitor::no_past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
        );
        change.expect("a valid change")
    }

    /// Starts a monitor in the session of most tests and returns its result.
    pub(crate) fn monitor(&mut self, version: Version, params: &str) -> String {
        self.start(SESSION, version, params).expect("started")
    }

    /// Changes conditions. Returns the messages sent before the reply, or the error as tools print
    /// it.
    pub(crate) fn change(&mut self, params: &str) -> Result<Vec<String>, String> {
        let changed = self.monitors.change_condition(
            &mut self.database,
            SESSION,
            params.as_bytes(),
            corvid_monitor::RequestContext {
                past: &corvid_monitor::no_past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
        );
        match changed {
            Ok(change) => {
                let changed = self.monitors.apply(SESSION, change).expect("its monitor");
                Ok(changed.frames.iter().map(text).collect())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The pending notifications of the session of most tests.
    pub(crate) fn notifications(&mut self) -> Vec<String> {
        self.notifications_to(SESSION)
    }

    /// The pending notifications of a session.
    pub(crate) fn notifications_to(&mut self, session: SessionId) -> Vec<String> {
        self.frames(session).iter().map(text).collect()
    }

    /// The same as frames.
    pub(crate) fn frames(&mut self, session: SessionId) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        frames
    }

    /// Sessions that have to be flushed.
    pub(crate) fn pending(&mut self) -> Vec<u64> {
        let mut sessions = Vec::new();
        self.monitors.take_pending(&mut sessions);
        sessions.into_iter().map(|session| session.0).collect()
    }

    /// Whether the updates of two sessions have the same bytes in the same memory.
    pub(crate) fn share_a_body(&mut self, one: SessionId, other: SessionId) -> bool {
        let (one, other) = (self.frames(one), self.frames(other));
        assert_eq!((one.len(), other.len()), (1, 1));
        one[0].body.ptr_eq(&other[0].body)
    }
}

pub(crate) fn text(frame: &Frame) -> String {
    shown(&frame.to_bytes())
}

/// A message without its fixed parts. UUIDs appear as `#1`, transactions as `t1`, versions as `v`:
/// `update2 "m",{"Keeper":{"#1":..}}`.
pub(crate) fn shown(message: &[u8]) -> String {
    let text = String::from_utf8(message.to_vec()).expect("text");
    let text = shorten(&text, "00000000-0000-0000-0000-", "#");
    let text = shorten(&text, "aaaaaaaa-aaaa-aaaa-0000-", "t");
    let text = hide(&text, "bbbbbbbb-bbbb-bbbb-0000-", "v");
    match text.strip_prefix(r#"{"id":null,"method":""#) {
        Some(rest) => {
            let rest = rest.strip_suffix("]}").expect("end of params");
            rest.replacen(r#"","params":["#, " ", 1)
        }
        None => text,
    }
}

/// Replaces `prefix` and the leading zeros after it by `sign`.
fn shorten(text: &str, prefix: &str, sign: &str) -> String {
    let mut pieces = text.split(prefix);
    let mut short = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        short.push_str(sign);
        let digits = piece[..11].trim_start_matches('0');
        short.push_str(digits);
        short.push_str(&piece[11..]);
    }
    short
}

/// Replaces `prefix` and the twelve digits after it by `sign`.
fn hide(text: &str, prefix: &str, sign: &str) -> String {
    let mut pieces = text.split(prefix);
    let mut short = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        short.push_str(sign);
        short.push_str(&piece[12..]);
    }
    short
}
