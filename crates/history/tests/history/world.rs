//! A database that makes its own history: the engine executes random transactions, the log's codec
//! writes them, and every state is remembered as plain rows.

use std::collections::BTreeMap;

use corvid_data::{Arc, Datum, Delta, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, Outcome, Snapshot};
use corvid_history::segment::FrameMemory;
use corvid_history::{Bound, Part, SegmentWriter, Timeline};
use corvid_json::Value;
use corvid_log::cluster::{
    Cid, Data, Eid, Entry, Header, Index, Kind, Membership, Payload, Record, Servers, Sid, Term,
    append_record, write_data,
};
use corvid_log::commit_client::{LAST_COMMITS, TRANSACTION_PREFIX};
use corvid_log::commit_ids::{NUMBERING_PREFIX, Numbering};
use corvid_log::{Magic, Stamp, write_schema, write_snapshot, write_transaction};

pub(crate) const START_MS: i64 = 1_700_000_000_000;

const SCHEMA: &str = r#"{"name":"D","version":"VERSION","tables":{FIRST
 "Port":{"isRoot":true,"columns":{
  "name":{"type":"string"},
  "tag":{"type":{"key":"integer","min":0,"max":1}},
  "set":{"type":{"key":"integer","min":0,"max":"unlimited"}},
  "map":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
  "peers":{"type":{"key":{"type":"uuid","refTable":"Port","refType":"weak"},"min":0,"max":"unlimited"}}}},
 "Other":{"isRoot":true,"columns":{"name":{"type":"string"},"tag":{"type":"integer"} EXTRA}}}}"#;

/// The columns of every row by table and UUID.
pub(crate) type State = BTreeMap<(String, Uuid), Vec<Datum>>;

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

impl UuidSource for Random {
    fn fresh(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(4) {
            half.copy_from_slice(&(self.below(1 << 31) as u32).to_be_bytes());
        }
        Uuid::from_random(bytes)
    }
}

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

/// The statement of a new file about the commits before it.
#[derive(Clone, Copy)]
struct Mark {
    index: u64,
    term: u64,
    id: Uuid,
    numbering: Option<Numbering>,
}

pub(crate) struct World {
    pub(crate) random: Random,
    database: Database,
    magic: Magic,
    /// The files that were replaced, and the present one.
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) present: Vec<u8>,
    /// A compaction that is being made: the contents, and the records appended since.
    rewrite: Option<(Snapshot, Mark, Vec<u8>)>,
    /// The state with which the history begins, then the one after each commit.
    pub(crate) states: Vec<State>,
    /// The states that a conversion replaced, by their numbers.
    pub(crate) replaced: BTreeMap<usize, State>,
    /// Dates of the commits.
    pub(crate) dates_ms: Vec<i64>,
    pub(crate) comments: Vec<String>,
    now_ms: i64,
    index: u64,
    term: u64,
    version: u32,
    /// New files have a record that names the last commits.
    names_commits: bool,
    /// The id of each state, as clients are told it.
    pub(crate) ids: Vec<Uuid>,
    /// The version of the schema of each state.
    pub(crate) versions: Vec<u32>,
    /// The states with which a standalone file begins that does not say which one it is.
    pub(crate) unmarked: Vec<usize>,
    /// A standalone file tells the ids of its commits.
    is_numbered: bool,
    numbering: Option<Numbering>,
}

pub(crate) fn schema(version: u32) -> Schema {
    // The new table comes first, so the others have other numbers afterwards.
    let (extra, first) = match version {
        0 => ("", ""),
        _ => (
            r#","extra":{"type":"string"}"#,
            r#""First":{"isRoot":true,"columns":{"name":{"type":"string"}}},"#,
        ),
    };
    let text = SCHEMA
        .replace("VERSION", &format!("1.{version}.0"))
        .replace("EXTRA", extra)
        .replace("FIRST", first);
    let json = Value::parse(text.as_bytes()).expect("a constant");
    Schema::from_json(&json).expect("a constant")
}

pub(crate) fn state(database: &Database) -> State {
    let mut state = State::new();
    for (id, table) in database.schema().iter() {
        for row in database.rows(id) {
            state.insert((table.name.to_string(), row.uuid), row.columns.to_vec());
        }
    }
    state
}

impl World {
    pub(crate) fn new(seed: u64, magic: Magic) -> World {
        let schema = Arc::new(schema(0));
        let database = Database::new(schema.clone(), HashSeed::new(1));
        let mut world = World {
            random: Random(seed),
            database,
            magic,
            files: Vec::new(),
            present: Vec::new(),
            rewrite: None,
            states: vec![State::new()],
            replaced: BTreeMap::new(),
            dates_ms: Vec::new(),
            comments: Vec::new(),
            now_ms: START_MS,
            index: 1,
            term: 1,
            version: 0,
            names_commits: seed % 2 == 1,
            ids: vec![Uuid([1; 16])],
            versions: vec![0],
            unmarked: Vec::new(),
            is_numbered: false,
            numbering: None,
        };
        world.present = match magic {
            Magic::Standalone => {
                let mut text = Vec::new();
                write_schema(&mut text, &schema);
                text
            }
            Magic::Clustered => world.beginning(&world.database.snapshot(), world.mark()),
        };
        world
    }

    /// As [`World::of`], with ids that a standalone file tells.
    pub(crate) fn numbered(seed: u64, magic: Magic, commits: usize) -> World {
        let mut world = World::new(seed, magic);
        world.is_numbered = true;
        world.names_commits = false;
        while world.dates_ms.len() < commits {
            world.step();
            // A restart ends the numbering. The next commit begins another.
            if world.rewrite.is_none() && world.random.below(20) == 0 {
                world.numbering = None;
            }
        }
        world
    }

    fn mark(&self) -> Mark {
        Mark {
            index: self.index,
            term: self.term,
            id: self.ids[self.ids.len() - 1],
            numbering: self.numbering,
        }
    }

    /// Makes a history of `commits` commits.
    pub(crate) fn of(seed: u64, magic: Magic, commits: usize) -> World {
        let mut world = World::new(seed, magic);
        while world.dates_ms.len() < commits {
            world.step();
        }
        world
    }

    pub(crate) fn step(&mut self) {
        match self.random.below(40) {
            0 if self.rewrite.is_none() => {
                self.rewrite = Some((self.database.snapshot(), self.mark(), Vec::new()));
                self.note_unmarked();
            }
            1 | 2 => self.swap(),
            3 if self.random.below(3) == 0 && self.rewrite.is_none() => self.convert(),
            _ => self.commit(),
        }
    }

    /// Executes a random transaction.
    pub(crate) fn commit(&mut self) {
        let names: Vec<(String, Uuid)> = state(&self.database).into_keys().collect();
        let mut operations = vec![r#""D""#.to_owned()];
        for _ in 0..=self.random.below(3) {
            operations.push(self.operation(&names));
        }
        let comment = format!("client-{} does \\\"things\\\"", self.random.below(3));
        operations.push(format!(r#"{{"op":"comment","comment":"{comment}"}}"#));
        let params = format!("[{}]", operations.join(","));
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: false,
            uuids: &mut self.random,
            locks: &NoLocks,
        };
        let outcome = self.database.execute(params.as_bytes(), &mut context);
        let Outcome::Done { result, delta, .. } = outcome else {
            panic!("{params} waits");
        };
        let Some(delta) = delta else {
            assert!(
                !String::from_utf8_lossy(&result).contains("syntax error"),
                "{params}"
            );
            return;
        };
        self.now_ms += 1 + self.random.below(5000) as i64;
        self.record(&delta);
    }

    fn operation(&mut self, rows: &[(String, Uuid)]) -> String {
        let name = self.random.below(100);
        let table = if self.random.below(4) == 0 {
            "Other"
        } else {
            "Port"
        };
        if rows.len() < 3 || self.random.below(4) == 0 {
            return format!(r#"{{"op":"insert","table":"{table}","row":{{"name":"n{name}"}}}}"#);
        }
        let (table, uuid) = &rows[self.random.below(rows.len() as u64) as usize];
        let uuid: String = uuid.to_text().map(char::from).iter().collect();
        let at = format!(r#""table":"{table}","where":[["_uuid","==",["uuid","{uuid}"]]]"#);
        let number = self.random.below(50);
        if self.random.below(8) == 0 {
            return format!(r#"{{"op":"delete",{at}}}"#);
        }
        if table == "Other" {
            return format!(r#"{{"op":"update",{at},"row":{{"tag":{number}}}}}"#);
        }
        match self.random.below(5) {
            0 => format!(r#"{{"op":"update",{at},"row":{{"tag":{number},"name":"n{name}"}}}}"#),
            1 => format!(r#"{{"op":"update",{at},"row":{{"tag":["set",[]]}}}}"#),
            2 => format!(
                r#"{{"op":"mutate",{at},"mutations":[["set","insert",{number}],["set","delete",{}]]}}"#,
                name % 50
            ),
            3 => format!(
                r#"{{"op":"update",{at},"row":{{"map":["map",[["k{}","v{number}"],["k{}","w"]]]}}}}"#,
                name % 3,
                name % 3 + 3
            ),
            _ => format!(
                r#"{{"op":"mutate",{at},"mutations":[["peers","insert",["uuid","{uuid}"]]]}}"#
            ),
        }
    }

    fn record(&mut self, delta: &Arc<Delta>) {
        let mut delta = delta.clone();
        let mut id = self.random.fresh();
        if self.is_numbered && self.magic == Magic::Standalone {
            if let Some(numbering) = &mut self.numbering {
                id = numbering.take();
            } else {
                // Only a run that has made no commit yet knows its last one by an id of its own.
                let seed = self.ids[self.ids.len() - 1];
                self.numbering = Some(Numbering::begin(seed));
                let comment = &mut Arc::make_mut(&mut delta).comment;
                comment.push_str(&format!("\n{TRANSACTION_PREFIX}{id} ids={seed}"));
            }
        }
        let delta = &delta;
        let mut record = Vec::new();
        let is_diff = self.random.below(10) > 0;
        let schema = self.database.schema().clone();
        match self.magic {
            Magic::Standalone => {
                if write_transaction(&mut record, &schema, delta, self.now_ms, is_diff).is_none() {
                    return;
                }
            }
            Magic::Clustered => {
                // Sometimes an entry of a leader that was lost comes first.
                if self.random.below(10) == 0 {
                    self.entry(&mut record, None);
                    self.term += 1;
                }
                let mut data = Vec::new();
                write_data(&mut data, &schema, delta, self.now_ms, is_diff);
                id = self.entry(&mut record, Some(&data));
                self.index += 1;
                if self.random.below(3) == 0 {
                    Record::new(Kind::CommitIndex(Index(self.index))).append(&mut record);
                }
            }
        }
        self.append(&record);
        self.push_state(id);
        self.comments.push(delta.comment.clone());
    }

    fn push_state(&mut self, id: Uuid) {
        self.states.push(state(&self.database));
        self.dates_ms.push(self.now_ms);
        self.ids.push(id);
        self.versions.push(self.version);
    }

    /// Appends the next entry of a member's log, and returns its id; without data it is one that is
    /// superseded.
    fn entry(&mut self, record: &mut Vec<u8>, data: Option<&[u8]>) -> Uuid {
        let eid = self.random.fresh();
        let superseded =
            br#"[null,{"_date":1,"Other":{"00000000-0000-4000-8000-00000000dead":{}}}]"#;
        Record::new(Kind::Entry(Entry {
            term: Term(self.term),
            index: Index(self.index + 1),
            servers: None,
            election_timer_ms: None,
            payload: Some(Payload {
                eid: Eid(eid),
                data: Data::from_valid(data.unwrap_or(superseded)),
            }),
        }))
        .append(record);
        eid
    }

    fn append(&mut self, record: &[u8]) {
        self.present.extend_from_slice(record);
        if let Some((_, _, appended)) = &mut self.rewrite {
            appended.extend_from_slice(record);
        }
    }

    /// Puts the new file in place.
    pub(crate) fn swap(&mut self) {
        let Some((snapshot, mark, appended)) = self.rewrite.take() else {
            return;
        };
        let mut new = self.beginning(&snapshot, mark);
        new.extend_from_slice(&appended);
        self.files.push(std::mem::replace(&mut self.present, new));
    }

    /// Compacts at once.
    pub(crate) fn compact(&mut self) {
        self.rewrite = Some((self.database.snapshot(), self.mark(), Vec::new()));
        self.note_unmarked();
        self.swap();
    }

    fn note_unmarked(&mut self) {
        if self.magic == Magic::Standalone && self.numbering.is_none() {
            self.unmarked.push(self.states.len() - 1);
        }
    }

    /// Converts to another schema. A cluster has an entry for that.
    fn convert(&mut self) {
        self.version = 1 - self.version;
        let schema = Arc::new(schema(self.version));
        let converted = self.database.convert(schema.clone(), &mut self.random);
        self.database = converted.expect("the rows fit");
        self.now_ms += 1;
        match self.magic {
            Magic::Standalone => {
                self.numbering = None;
                self.compact();
                let at = self.states.len() - 1;
                let before = std::mem::replace(&mut self.states[at], state(&self.database));
                self.replaced.entry(at).or_insert(before);
                self.ids[at] = self.random.fresh();
                self.versions[at] = self.version;
            }
            Magic::Clustered => {
                let text = schema.to_json().to_bytes();
                let data = [b"[", &text[..], b",null]"].concat();
                let mut record = Vec::new();
                let id = self.entry(&mut record, Some(&data));
                self.index += 1;
                self.append(&record);
                self.push_state(id);
                self.comments.push(String::new());
            }
        }
    }

    /// The text of a new file with these contents.
    fn beginning(&self, snapshot: &Snapshot, mark: Mark) -> Vec<u8> {
        let (index, term) = (mark.index, mark.term);
        let mut text = Vec::new();
        let schema = snapshot.schema();
        let stamp = Stamp {
            date_ms: self.now_ms,
            comment: "compacting database online",
            is_diff: false,
            with_defaults: false,
        };
        match self.magic {
            Magic::Standalone => {
                write_schema(&mut text, schema);
                let written = write_snapshot(
                    schema,
                    &stamp,
                    |table| snapshot.rows(table),
                    &mut |piece: &[u8]| -> Result<(), ()> {
                        text.extend_from_slice(piece);
                        Ok(())
                    },
                );
                written.expect("memory");
                if self.names_commits || mark.numbering.is_some() {
                    // As servers do whose clients send transactions with ids.
                    let id = mark.id;
                    let mut comment = format!("{LAST_COMMITS}\\n{TRANSACTION_PREFIX}{id}");
                    if let Some(Numbering { seed, next }) = mark.numbering {
                        comment.push_str(&format!("\\n{NUMBERING_PREFIX}{seed} next={next}"));
                    }
                    let mut record = corvid_log::Record::begin(&mut text, Magic::Standalone);
                    let body = format!(r#"{{"_comment":"{comment}","_date":{}}}"#, self.now_ms);
                    record.body().extend_from_slice(body.as_bytes());
                    record.finish();
                }
            }
            Magic::Clustered => {
                let mut rows = Vec::new();
                corvid_log::snapshot::append_rows(&mut rows, schema, &stamp, |table| {
                    snapshot.rows(table)
                });
                let data = Data::of(Some(&schema.to_json().to_bytes()), Some(&rows));
                let sid = Sid(Uuid::parse(b"11111111-1111-4111-8111-111111111111").expect("an id"));
                let cid = Uuid::parse(b"22222222-2222-4222-8222-222222222222").and_then(Cid::new);
                let header = Header {
                    server_id: sid,
                    name: "D".to_owned(),
                    local_address: "unix:a".to_owned(),
                    cluster_id: cid,
                    membership: Membership::Joined {
                        servers: Servers::one(sid, "unix:a"),
                        snapshot: Some(corvid_log::cluster::Snapshot {
                            index: Index(index),
                            term: Term(term),
                            eid: Eid(mark.id),
                            data,
                            election_timer_ms: None,
                        }),
                    },
                };
                append_record(&mut text, 1000, |out| header.encode(out));
                let term = Record::new(Kind::Term(Term(term)));
                term.append(&mut text);
            }
        }
        text
    }

    /// Where the present file ends now.
    pub(crate) fn bound(&self) -> Bound {
        match self.magic {
            Magic::Standalone => Bound::Offset(self.present.len() as u64),
            Magic::Clustered => Bound::Index(self.index),
        }
    }

    /// The files as a history. Replaced ones are compressed, but sometimes the newest is not yet.
    pub(crate) fn timeline(&mut self) -> Timeline<Vec<u8>> {
        Timeline::of(self.parts()).expect("one database")
    }

    /// The files, oldest first.
    pub(crate) fn parts(&mut self) -> Vec<Part<Vec<u8>>> {
        let plain = self.random.below(2) == 0;
        let count = self.files.len();
        let memory = FrameMemory::default();
        let mut parts: Vec<Part<Vec<u8>>> = Vec::new();
        for (at, text) in self.files.iter().enumerate() {
            let number = at as u64 + 1;
            let name = format!("d.db.history/{number}");
            parts.push(match plain && at + 1 == count {
                true => Part::plain(&name, Some(number), text.clone()),
                false => {
                    Part::segment(&name, number, segment(text), memory.clone()).expect("a segment")
                }
            });
        }
        parts.push(Part::present("d.db", self.present.clone()).expect("a file"));
        parts
    }
}

/// The file of a server that is joining a cluster.
pub(crate) fn unjoined() -> Vec<u8> {
    let header = Header {
        server_id: Sid(Uuid::parse(b"33333333-3333-4333-8333-333333333333").expect("an id")),
        name: "D".to_owned(),
        local_address: "unix:b".to_owned(),
        cluster_id: None,
        membership: Membership::Joining {
            remote_addresses: vec!["unix:a".to_owned()],
        },
    };
    let mut text = Vec::new();
    append_record(&mut text, 1000, |out| header.encode(out));
    text
}

/// Compresses a text.
pub(crate) fn segment(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = SegmentWriter::new();
    writer.push(text, &mut out).expect("a database");
    writer.finish(&mut out).expect("a database");
    out
}
