//! A database with monitors, in which row identities count up, so that expectations can be written down.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, HashSeed, Schema, Uuid};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;
use corvid_monitor::{Frame, Monitors, SessionId, Version};

/// The schema of the worked examples (docs/spec/protocol.md 10), every table in the root set.
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

/// The one session of most tests.
pub(crate) const SESSION: SessionId = SessionId(1);

/// A database, its monitors, and what happens to them.
pub(crate) struct Bed {
    pub(crate) database: Database,
    pub(crate) monitors: Monitors,
    versions: Counter,
    rows: u64,
    commits: u64,
    /// What monitors will be told is written before each commit is noted.
    pub(crate) is_foretelling: bool,
    /// Commits have ids, so there is a history.
    has_history: bool,
}

/// Row versions, and identities of rows inserted without one.
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

impl Bed {
    /// An empty database that keeps a history beginning at [`txn`] 0.
    pub(crate) fn new(schema: &str) -> Bed {
        Bed::with_history(schema, true)
    }

    pub(crate) fn with_history(schema: &str, has_history: bool) -> Bed {
        let json = Value::parse(schema.as_bytes()).expect("schema text");
        let schema = Arc::new(Schema::from_json(&json).expect("schema"));
        let last_txn = if has_history { txn(0) } else { Uuid::ZERO };
        Bed {
            database: Database::new(schema.clone(), HashSeed::FIXED),
            monitors: Monitors::new(schema, last_txn, HashSeed::FIXED),
            versions: Counter(0),
            rows: 0,
            commits: 0,
            is_foretelling: false,
            has_history,
        }
    }

    /// Executes operations (JSON, comma-separated), which must succeed, and notes the commit.
    pub(crate) fn transact(&mut self, operations: &str) {
        if let Some(delta) = self.attempt(operations) {
            self.commit(&delta);
        }
    }

    /// Executes operations that must change something, and leaves the commit to be noted.
    pub(crate) fn execute(&mut self, operations: &str) -> Arc<Delta> {
        self.attempt(operations).expect("a change")
    }

    pub(crate) fn attempt(&mut self, operations: &str) -> Option<Arc<Delta>> {
        let params = format!("[\"Zoo\",{operations}]");
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            role: None,
            client_id: None,
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

    /// Notes a commit.
    pub(crate) fn commit(&mut self, delta: &Arc<Delta>) {
        if self.is_foretelling {
            for text in self.monitors.foretell(delta) {
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

    /// Inserts a row under the next number and returns its identity as text.
    pub(crate) fn insert(&mut self, table: &str, row: &str) -> String {
        self.rows += 1;
        let uuid = numbered(0, self.rows).to_string();
        self.transact(&format!(
            r#"{{"op":"insert","table":"{table}","uuid":"{uuid}","row":{row}}}"#
        ));
        uuid
    }

    /// Inserts so many atoms that the history is not cut short: it may hold as many as the database (docs/spec/protocol.md 4.9).
    pub(crate) fn insert_ballast(&mut self) {
        let atoms: Vec<String> = (0..5_000).map(|atom: u32| atom.to_string()).collect();
        let atoms = atoms.join(",");
        self.transact(&format!(
            r#"{{"op":"insert","table":"Ballast","row":{{"atoms":["set",[{atoms}]]}}}}"#
        ));
    }

    /// Updates the row with an identity.
    pub(crate) fn update(&mut self, table: &str, uuid: &str, row: &str) {
        self.transact(&format!(
            r#"{{"op":"update","table":"{table}","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{row}}}"#
        ));
    }

    /// Deletes the row with an identity.
    pub(crate) fn delete(&mut self, table: &str, uuid: &str) {
        self.transact(&format!(
            r#"{{"op":"delete","table":"{table}","where":[["_uuid","==",["uuid","{uuid}"]]]}}"#
        ));
    }

    /// Starts a monitor; `params` is the text of the array without the database name. Returns the result, or the error as
    /// tools print it.
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

    /// Starts a monitor in the usual session and returns its result.
    pub(crate) fn monitor(&mut self, version: Version, params: &str) -> String {
        self.start(SESSION, version, params).expect("started")
    }

    /// Changes conditions; returns what is sent before the reply, or the error as tools print it.
    pub(crate) fn change(&mut self, params: &str) -> Result<Vec<String>, String> {
        let changed =
            self.monitors
                .change_condition(&mut self.database, SESSION, params.as_bytes(), &|_| false);
        match changed {
            Ok(change) => {
                let changed = self.monitors.apply(SESSION, change).expect("its monitor");
                Ok(changed.frames.iter().map(text).collect())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Everything the usual session is to be told now.
    pub(crate) fn told(&mut self) -> Vec<String> {
        self.told_to(SESSION)
    }

    /// Everything a session is to be told now.
    pub(crate) fn told_to(&mut self, session: SessionId) -> Vec<String> {
        self.frames(session).iter().map(text).collect()
    }

    /// The same as frames.
    pub(crate) fn frames(&mut self, session: SessionId) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        frames
    }

    /// Sessions that ask for a flush.
    pub(crate) fn pending(&mut self) -> Vec<u64> {
        let mut sessions = Vec::new();
        self.monitors.take_pending(&mut sessions);
        sessions.into_iter().map(|session| session.0).collect()
    }

    /// Whether two sessions are told the same bytes in the same memory.
    pub(crate) fn share_a_body(&mut self, one: SessionId, other: SessionId) -> bool {
        let (one, other) = (self.frames(one), self.frames(other));
        assert_eq!((one.len(), other.len()), (1, 1));
        one[0].body.ptr_eq(&other[0].body)
    }
}

pub(crate) fn text(frame: &Frame) -> String {
    shown(&frame.to_bytes())
}

/// A message without its fixed parts, identities shown as `#1`, transactions as `t1`, versions as `v`:
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
