//! No result depends on the hash seed. Two databases with different seeds, under the same generated
//! traffic, give the same replies, commits, records and updates, byte for byte.

use corvid_data::{Arc, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, LongResult, Outcome};
use corvid_json::Value;
use corvid_log::encode::write_transaction;
use corvid_monitor::{Frame, Monitors, SessionId, Version};
use corvid_sim::generator::{Generator, Profile};
use corvid_sim::model_check::content;
use corvid_sim::world::dice::{self, Dice};

/// Number of transactions on one schema.
const TRANSACTIONS: usize = 120;

const SESSIONS: u64 = 3;

const VERSIONS: [Version; 3] = [Version::V1, Version::V2, Version::V3];

#[derive(Clone, Debug)]
struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let mut dice = Dice::new(self.0);
        let halves = [dice.draw(), dice.draw()].map(u64::to_be_bytes);
        Uuid::from_random(halves.concat().try_into().expect("16 bytes"))
    }
}

struct Locks;

impl LockOwner for Locks {
    fn owns(&self, lock: &str) -> bool {
        lock.len().is_multiple_of(2)
    }
}

/// A database with its monitors.
struct Side {
    database: Database,
    monitors: Monitors,
    uuids: Counter,
}

impl Side {
    fn new(schema: &Arc<Schema>, seed: u64) -> Side {
        let seed = HashSeed::new(seed);
        Side {
            database: Database::new(schema.clone(), seed),
            monitors: Monitors::new(schema.clone(), Uuid([0xaa; 16]), seed),
            uuids: Counter(0),
        }
    }

    /// Executes a transaction. Returns the reply, and for a commit also the delta and the record.
    fn transact(&mut self, params: &[u8]) -> String {
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: true,
            uuids: &mut self.uuids,
            locks: &Locks,
        };
        let (result, deferred_selections, delta) = match self.database.execute(params, &mut context)
        {
            Outcome::Blocked { deadline_ms, reads } => return format!("{deadline_ms:?} {reads:?}"),
            Outcome::Done {
                result,
                deferred_selections,
                delta,
                ..
            } => (result, deferred_selections, delta),
        };
        let mut seen = LongResult::new(result, deferred_selections).text().concat();
        if let Some(delta) = delta {
            let schema = self.database.schema();
            write_transaction(&mut seen, schema, &delta, 0, true);
            seen.extend_from_slice(format!("{delta:?}").as_bytes());
            let txn = self.uuids.fresh();
            self.monitors
                .commit(&delta, txn, self.database.atom_count());
        }
        // Indexes are built as between batches.
        self.database.index(usize::MAX >> 1);
        String::from_utf8_lossy(&seen).into_owned()
    }

    fn monitor(&mut self, session: SessionId, version: Version, params: &[u8]) -> String {
        let started = self
            .monitors
            .monitor(&self.database, session, version, params, &|_| false);
        match started {
            Ok(started) => String::from_utf8_lossy(&started.result.to_bytes()).into_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn change(&mut self, session: SessionId, params: &[u8]) -> String {
        let changed = self.monitors.change_condition(
            &mut self.database,
            session,
            params,
            corvid_monitor::RequestContext {
                past: &corvid_monitor::no_past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
        );
        let change = match changed {
            Ok(change) => change,
            Err(error) => return error.to_string(),
        };
        let changed = self.monitors.apply(session, change);
        shown(&changed.expect("its monitor is there").frames)
    }

    fn flush(&mut self, session: SessionId) -> String {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        shown(&frames)
    }
}

fn shown(frames: &[Frame]) -> String {
    let texts = frames.iter().map(|frame| frame.to_bytes().to_vec());
    String::from_utf8_lossy(&texts.collect::<Vec<_>>().concat()).into_owned()
}

struct Stage {
    generator: Generator,
    sides: [Side; 2],
    /// Session, id and requests of each monitor.
    monitors: Vec<(SessionId, String, Value)>,
    ids: u64,
    bytes: usize,
}

impl Stage {
    fn new(seed: u64) -> Stage {
        let profile = Profile {
            suits_reference: false,
            keeps_reals_exact: false,
            damage_percent: 3,
        };
        let generator = Generator::new(Dice::new(seed), profile);
        let schema = Arc::new(Schema::from_json(&generator.schema.json).expect("a valid schema"));
        Stage {
            sides: [seed, !seed].map(|seed| Side::new(&schema, seed)),
            generator,
            monitors: Vec::new(),
            ids: 0,
            bytes: 0,
        }
    }

    /// Makes both sides do the same. Panics if their outputs differ.
    fn both(&mut self, what: &str, act: impl Fn(&mut Side) -> String) {
        let [one, other] = self.sides.each_mut().map(act);
        assert_eq!(one, other, "{what}");
        self.bytes += one.len();
    }

    fn step(&mut self) {
        match self.generator.dice.below(10) {
            0 => self.start(),
            1 if !self.monitors.is_empty() => self.change(),
            _ => {}
        }
        let mut params = vec![Value::string("Gen")];
        params.extend(self.generator.transaction());
        let params = Value::Array(params);
        let text = params.to_bytes();
        self.both(&params.to_string(), |side| side.transact(&text));
        for session in 1..=SESSIONS {
            if self.generator.dice.chance(50) {
                self.both("updates", |side| side.flush(SessionId(session)));
            }
        }
        for (table, rows) in content(&self.sides[0].database) {
            let rows = rows.keys().map(ToString::to_string).collect();
            self.generator.set_rows(&table, rows);
        }
    }

    fn start(&mut self) {
        let version = *self.generator.dice.pick(&VERSIONS);
        let session = SessionId(1 + self.generator.dice.below(SESSIONS as usize) as u64);
        let requests = self.generator.monitor(version == Version::V1);
        let id = self.next_id();
        let mut params = vec![Value::string("Gen"), Value::string(&id), requests.clone()];
        if version == Version::V3 {
            params.push(Value::string(Uuid([0xaa; 16]).to_string()));
        }
        let text = Value::Array(params).to_bytes();
        self.both("updates before a reply", |side| side.flush(session));
        self.both(&requests.to_string(), |side| {
            side.monitor(session, version, &text)
        });
        self.monitors.push((session, id, requests));
    }

    fn change(&mut self) {
        let position = self.generator.dice.below(self.monitors.len());
        let (session, id, requests) = self.monitors[position].clone();
        let change = self.generator.condition_change(&requests);
        let new_id = self.next_id();
        let names = [&id, &new_id].map(Value::string);
        let text = Value::Array([&names[..], &[change]].concat()).to_bytes();
        self.both("a change of conditions", |side| side.change(session, &text));
        self.monitors[position].1 = new_id;
    }

    fn next_id(&mut self) -> String {
        self.ids += 1;
        format!("m{}", self.ids)
    }
}

#[test]
fn replies_records_and_updates_do_not_depend_on_the_seed_of_hashes() {
    let seed = dice::seed("hash_seeds");
    let cases = dice::cases(6_000);
    let mut bytes = 0;
    for schema in 0..cases.div_ceil(TRANSACTIONS) {
        let mut stage = Stage::new(seed.wrapping_add(schema as u64));
        for _ in 0..TRANSACTIONS {
            stage.step();
        }
        bytes += stage.bytes;
    }
    println!("{bytes} bytes compared");
    assert!(bytes > 500 * cases, "too little was said: {bytes} bytes");
}

/// Rows found by many values of a condition come in one order, and among equal keys the same one is
/// named.
#[test]
fn rows_found_by_hash_come_in_the_order_of_the_table() {
    let schema = r#"{"name": "Gen", "tables": {"T": {"isRoot": true, "indexes": [["name"]], "columns": {
        "name": {"type": "string"}, "host": {"type": "string"}}}}}"#;
    let schema = Value::parse(schema.as_bytes()).expect("a constant");
    let schema = Arc::new(Schema::from_json(&schema).expect("a constant"));
    let mut sides = [1, 2, 3].map(|seed| Side::new(&schema, seed));
    let mut all = |act: &dyn Fn(&mut Side) -> String| {
        let [one, two, three] = sides.each_mut().map(act);
        assert_eq!(one, two);
        assert_eq!(one, three);
        one
    };
    for number in 0..400 {
        let host = number % 40;
        let insert = format!(
            r#"["Gen",{{"op":"insert","table":"T","row":{{"name":"n{number}","host":"h{host}"}}}}]"#
        );
        all(&|side| side.transact(insert.as_bytes()));
    }
    for column in ["name", "host"] {
        let clauses: Vec<String> = (0..30)
            .map(|number| format!(r#"["{column}","==","{}{number}"]"#, &column[..1]))
            .collect();
        // In the second round, the column has an index.
        for round in 0..2 {
            let params = format!(
                r#"["Gen","{column}{round}",{{"T":[{{"where":[{}]}}]}}]"#,
                clauses.join(",")
            );
            let reply = all(&|side| {
                let params = params.as_bytes();
                let reply = side.monitor(SessionId(round), Version::V2, params);
                side.transact(br#"["Gen"]"#);
                reply
            });
            assert!(reply.matches("initial").count() >= 30, "{reply}");
        }
    }
    let twins: Vec<String> = (0..20)
        .map(|number| {
            format!(
                r#"{{"op":"insert","table":"T","row":{{"name":"twin","host":"{}"}}}}"#,
                number % 2
            )
        })
        .collect();
    let select = r#"{"op":"select","table":"T","where":[["name","==","twin"]]}"#;
    let params = format!(r#"["Gen",{},{select}]"#, twins.join(","));
    let reply = all(&|side| side.transact(params.as_bytes()));
    assert!(reply.contains("identical values"), "{reply}");
}
