//! A backup of the real engine and its monitors. After generated transactions on generated schemas,
//! the backup holds the rows of its source, even after missed changes, and passes its own audit.

use std::collections::BTreeMap;

use corvid_data::wire::StringCache;
use corvid_data::{HashSeed, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::{Monitors, SessionId, Version};
use corvid_service::replication::difference::{Contents, difference};
use corvid_service::replication::{
    Exclusions, Following, Replication, ReplicationStatus, SourceId, Step, read_update,
};
use corvid_sim::generator::{Generator, Profile};
use corvid_sim::model_check::ModelCheck;
use corvid_sim::world::dice::{self, Dice};

/// Number of transactions on one schema.
const TRANSACTIONS: usize = 80;

const SESSION: SessionId = SessionId(1);

struct Seeded(Dice);

impl UuidSource for Seeded {
    fn fresh(&mut self) -> Uuid {
        let high = u128::from(self.0.draw());
        Uuid((high << 64 | u128::from(self.0.draw())).to_be_bytes())
    }
}

/// A source, its backup, and the connection between them.
struct Stage {
    generator: Generator,
    source: ModelCheck,
    /// The monitors of the source, which produce its messages.
    monitors: Monitors,
    backup: Database,
    replication: Replication,
    repeats: StringCache,
    uuids: Seeded,
    /// The source supports conditions, and therefore sends differences.
    knows_conditions: bool,
    is_connected: bool,
    /// Number of contents that were applied; `updates` counts updates.
    contents: usize,
    updates: usize,
}

impl Stage {
    fn new(seed: u64) -> Stage {
        let profile = Profile {
            suits_reference: false,
            keeps_reals_exact: true,
            damage_percent: 0,
        };
        let mut generator = Generator::new(Dice::new(seed), profile);
        let source = ModelCheck::new(&generator);
        let schema = source.database.schema().clone();
        let following = Following {
            id: SourceId(1),
            excluded: Exclusions::of("Gen", ""),
            server_id: Uuid([9; 16]),
        };
        Stage {
            knows_conditions: generator.dice.chance(70),
            monitors: Monitors::new(schema.clone(), Uuid::ZERO, HashSeed::FIXED),
            backup: Database::new(schema, HashSeed::FIXED),
            replication: Replication::new("Gen", following),
            repeats: StringCache::default(),
            uuids: Seeded(Dice::new(!seed)),
            is_connected: false,
            contents: 0,
            updates: 0,
            source,
            generator,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.is_connected && self.generator.dice.chance(8) {
            self.cut();
        }
        self.transact()?;
        if !self.is_connected && self.generator.dice.chance(40) {
            self.connect()?;
        }
        if self.is_connected && self.generator.dice.chance(60) {
            self.flush()?;
            self.check()?;
        }
        Ok(())
    }

    fn transact(&mut self) -> Result<(), String> {
        let operations = self.generator.transaction();
        let done = self.source.transact(&operations, false, false);
        let done = done.map_err(|problem| format!("{problem}\n{}", Value::Array(operations)))?;
        if let Some(delta) = done.delta {
            let atoms = self.source.database.atom_count();
            self.monitors.commit(&delta, Uuid::ZERO, atoms);
        }
        for (table, rows) in &self.source.model.tables {
            let rows = rows.keys().map(ToString::to_string).collect();
            self.generator.set_rows(table, rows);
        }
        Ok(())
    }

    fn cut(&mut self) {
        self.monitors.remove_session(SESSION);
        self.replication.disconnected();
        self.is_connected = false;
    }

    fn connect(&mut self) -> Result<(), String> {
        self.is_connected = true;
        let mut steps = Vec::new();
        self.replication.connected(&mut steps);
        self.take(&[], steps)?;
        if self.replication.status() == ReplicationStatus::Replicating {
            Ok(())
        } else {
            Err("the conversation has not come to its end".to_owned())
        }
    }

    /// Sends the source's changes to the backup.
    fn flush(&mut self) -> Result<(), String> {
        let mut frames = Vec::new();
        self.monitors.flush(SESSION, &mut frames);
        for frame in frames {
            self.receive(&frame.to_bytes())?;
        }
        Ok(())
    }

    fn receive(&mut self, text: &[u8]) -> Result<(), String> {
        let mut steps = Vec::new();
        let schema = self.backup.schema().clone();
        self.replication.receive(text, &schema, &mut steps);
        self.take(text, steps)
    }

    fn take(&mut self, text: &[u8], steps: Vec<Step>) -> Result<(), String> {
        for step in steps {
            let recorded = match step {
                Step::Log(_) => continue,
                Step::Send(request) => {
                    let reply = self.answer(&request)?;
                    self.receive(&reply)?;
                    continue;
                }
                Step::Contents(range, encoding) => {
                    let contents = Contents {
                        text: text.to_vec(),
                        range,
                        encoding,
                        excluded: Exclusions::of("Gen", ""),
                    };
                    self.replication.applied();
                    self.contents += 1;
                    difference(&contents, &self.backup.snapshot())
                }
                Step::Update(range, encoding) => {
                    self.updates += 1;
                    let schema = self.backup.schema().clone();
                    let backup = &self.backup;
                    let exists = |table, uuid| backup.get(table, uuid).is_some();
                    let updates = &text[range];
                    read_update(updates, &schema, encoding, &mut self.repeats, &exists)
                }
                other => return Err(format!("{other:?}")),
            };
            let applied =
                recorded.and_then(|recorded| self.backup.apply_recorded(recorded, &mut self.uuids));
            applied.map_err(|error| format!("{error}: {}", String::from_utf8_lossy(text)))?;
        }
        Ok(())
    }

    /// Returns the source's replies to a request.
    fn answer(&mut self, request: &[u8]) -> Result<Vec<u8>, String> {
        let request = Value::parse(request).map_err(|error| error.to_string())?;
        let member = |name| request.get(name).cloned().unwrap_or(Value::Null);
        let id = member("id").to_bytes();
        let params = member("params").to_bytes();
        let result = match member("method").as_str() {
            Some("get_server_id") => b"\"11111111-1111-4111-8111-111111111111\"".to_vec(),
            Some("list_dbs") => b"[\"Gen\"]".to_vec(),
            Some("get_schema") => self.generator.schema.json.to_bytes(),
            Some("monitor") => self.monitor(Version::V1, &params)?,
            Some("monitor_cond") if self.knows_conditions => self.monitor(Version::V2, &params)?,
            _ => {
                let error = b",\"result\":null,\"error\":\"unknown method\"}";
                return Ok([b"{\"id\":", &*id, error].concat());
            }
        };
        Ok([
            b"{\"id\":",
            &*id,
            b",\"result\":",
            &result,
            b",\"error\":null}",
        ]
        .concat())
    }

    fn monitor(&mut self, version: Version, params: &[u8]) -> Result<Vec<u8>, String> {
        let database = &self.source.database;
        let started = self
            .monitors
            .monitor(database, SESSION, version, params, &|_| false);
        let started = started.map_err(|error| error.to_string())?;
        Ok(started.result.to_bytes())
    }

    fn check(&self) -> Result<(), String> {
        self.backup
            .check_invariants()
            .map_err(|problem| problem.to_string())?;
        let (there, here) = (rows(&self.source.database), rows(&self.backup));
        if there == here {
            return Ok(());
        }
        let only = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
            let differs = one
                .iter()
                .filter(|(row, cells)| other.get(*row) != Some(cells));
            differs
                .map(|(row, cells)| format!("  {row} {cells}\n"))
                .collect::<String>()
        };
        Err(format!(
            "source:\n{}backup:\n{}",
            only(&there, &here),
            only(&here, &there)
        ))
    }
}

/// Returns every row without its version, which each server chooses itself.
fn rows(database: &Database) -> BTreeMap<String, String> {
    let schema = database.schema();
    let tables = schema.iter().flat_map(|(id, table)| {
        let rows = database.rows(id);
        rows.map(move |row| {
            (
                format!("{} {}", table.name, row.uuid),
                format!("{:?}", row.columns),
            )
        })
    });
    tables.collect()
}

#[test]
fn backup_holds_the_content_of_its_source() {
    let seed = dice::seed("replication");
    let cases = dice::cases(8_000);
    let (mut contents, mut updates) = (0, 0);
    for schema in 0..cases.div_ceil(TRANSACTIONS) {
        let mut stage = Stage::new(seed.wrapping_add(schema as u64));
        for number in 0..TRANSACTIONS {
            stage.step().unwrap_or_else(|problem| {
                panic!(
                    "CORVID_SEED={seed}, schema {schema}, step {number}: {problem}\nschema: {}",
                    stage.generator.schema.json
                )
            });
        }
        contents += stage.contents;
        updates += stage.updates;
    }
    println!("{contents} contents, {updates} updates");
    assert!(
        contents > cases / 40 && updates > cases / 20,
        "too little happens"
    );
}
