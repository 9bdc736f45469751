//! The real monitors compared with the model's. After generated transactions, the updates of every
//! session of every version, flushed at once or later, are exactly the difference between the
//! client's content and the database's. Replaying the updates yields that content.

use std::collections::BTreeMap;

use corvid_data::{Delta, HashSeed, Uuid};
use corvid_json::{Object, Value};
use corvid_model::Tables;
use corvid_model::monitor::Monitor;
use corvid_monitor::{Monitors, SessionId, Version};
use corvid_sim::generator::{Generator, Profile};
use corvid_sim::model_check::ModelCheck;
use corvid_sim::normal::{Known, without_empty_modifications};
use corvid_sim::replica;
use corvid_sim::world::dice::{self, Dice};

/// Number of transactions on one schema.
const TRANSACTIONS: usize = 80;

const SESSIONS: u64 = 4;

/// A monitor as its client sees it.
struct Client {
    session: SessionId,
    id: String,
    version: Version,
    requests: Value,
    monitor: Monitor,
    /// The content at the last flush.
    flushed: Tables,
    /// The client's replica.
    replica: Tables,
    is_complete: bool,
}

/// All state for one schema.
struct Stage {
    generator: Generator,
    bench: ModelCheck,
    monitors: Monitors,
    clients: Vec<Client>,
    ids: u64,
    commits: u64,
    /// Contents after commits that have an id.
    history: BTreeMap<Uuid, Tables>,
    has_history: bool,
}

fn txn(number: u64) -> Uuid {
    let mut bytes = [0xaa; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uuid(bytes)
}

impl Stage {
    fn new(seed: u64) -> Stage {
        let profile = Profile {
            suits_reference: false,
            keeps_reals_exact: true,
            damage_percent: 1,
        };
        let mut generator = Generator::new(Dice::new(seed), profile);
        let bench = ModelCheck::new(&generator);
        let has_history = generator.dice.chance(60);
        let newest = if has_history { txn(0) } else { Uuid::ZERO };
        let monitors = Monitors::new(bench.database.schema().clone(), newest, HashSeed::FIXED);
        Stage {
            history: BTreeMap::from([(newest, bench.model.tables.clone())]),
            generator,
            bench,
            monitors,
            clients: Vec::new(),
            ids: 0,
            commits: 0,
            has_history,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.generator.dice.below(20) {
            0 | 1 if self.clients.len() < 10 => self.start(),
            2 if !self.clients.is_empty() => self.change(),
            3 if !self.clients.is_empty() => self.stop(),
            _ => Ok(()),
        }?;
        self.transact()?;
        for session in 1..=SESSIONS {
            if self.generator.dice.chance(60) {
                self.flush(SessionId(session))?;
            }
        }
        Ok(())
    }

    fn transact(&mut self) -> Result<(), String> {
        let operations = self.generator.transaction();
        let done = self.bench.transact(&operations, false, false);
        let done = done.map_err(|problem| format!("{problem}\n{}", Value::Array(operations)))?;
        if let Some(delta) = done.delta {
            self.commits += 1;
            let id = if self.has_history {
                txn(self.commits)
            } else {
                Uuid::ZERO
            };
            check_delta(&delta)?;
            self.monitors
                .commit(&delta, id, self.bench.database.atom_count());
            if self.has_history {
                self.history.insert(id, self.bench.model.tables.clone());
            }
        }
        for (table, rows) in &self.bench.model.tables {
            self.generator
                .set_rows(table, rows.keys().map(ToString::to_string).collect());
            // `ModelCheck` names only rows in results; here every row needs a name.
            for uuid in rows.keys() {
                self.bench.known.name(&uuid.to_string(), uuid.to_string());
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), String> {
        let version = *self
            .generator
            .dice
            .pick(&[Version::V1, Version::V2, Version::V3]);
        let session = SessionId(1 + self.generator.dice.below(SESSIONS as usize) as u64);
        self.flush(session)?;
        self.ids += 1;
        let id = format!("m{}", self.ids);
        let twin = self
            .clients
            .iter()
            .filter(|client| client.version == version)
            .map(|client| client.requests.clone())
            .next();
        let requests = match twin {
            Some(twin) if self.generator.dice.chance(30) => twin,
            _ => self.generator.monitor(version == Version::V1),
        };
        let monitor = Monitor::read(&self.generator.schema, version == Version::V1, &requests);
        let mut params = vec![Value::string("Gen"), Value::string(&id), requests.clone()];
        let known: Vec<Uuid> = self.history.keys().rev().take(120).copied().collect();
        let last_txn = *self.generator.dice.pick(&known);
        if version == Version::V3 {
            params.push(Value::string(last_txn.to_string()));
        }
        let params = Value::Array(params).to_bytes();
        let started =
            self.monitors
                .monitor(&self.bench.database, session, version, &params, &|_| false);
        let started = started.map_err(|error| format!("{requests}: {error}"))?;
        let result = parse(&started.result.to_bytes());
        let (schema, tables) = (&self.generator.schema, &self.bench.model.tables);
        let mut replica = Tables::new();
        let (expected, updates) = match (version, result.as_array()) {
            (Version::V3, Some([found, newest, updates])) => {
                let is_found = *found == Value::Bool(true);
                let current = if self.has_history {
                    txn(self.commits)
                } else {
                    Uuid::ZERO
                };
                if newest.as_str() != Some(&current.to_string())
                    || (self.has_history && last_txn == current && !is_found)
                {
                    return Err(format!("{last_txn} of {current}: {result}"));
                }
                if is_found {
                    replica = monitor.content(&self.history[&last_txn]);
                    (
                        monitor.update(schema, &self.history[&last_txn], tables, &monitor),
                        updates.clone(),
                    )
                } else {
                    (monitor.initial(schema, tables), updates.clone())
                }
            }
            _ => (monitor.initial(schema, tables), result),
        };
        self.compare(&expected, &updates)
            .map_err(|problem| format!("start of {requests}: {problem}"))?;
        let is_complete = monitor.shows_everything();
        if is_complete {
            replica::apply(schema, &monitor, &mut replica, &updates)?;
        }
        self.clients.push(Client {
            session,
            id,
            version,
            requests,
            monitor,
            flushed: tables.clone(),
            replica,
            is_complete,
        });
        Ok(())
    }

    fn stop(&mut self) -> Result<(), String> {
        let position = self.generator.dice.below(self.clients.len());
        let client = self.clients.remove(position);
        let id = Value::string(&client.id).to_bytes();
        if self.monitors.cancel(client.session, &id) {
            Ok(())
        } else {
            Err(format!("{} is not known", client.id))
        }
    }

    fn change(&mut self) -> Result<(), String> {
        let position = self.generator.dice.below(self.clients.len());
        let requests = self.clients[position].requests.clone();
        let change = self.generator.condition_change(&requests);
        self.ids += 1;
        let new_id = format!("m{}", self.ids);
        let client = &self.clients[position];
        let session = client.session;
        let params = Value::Array(vec![
            Value::string(&client.id),
            Value::string(&new_id),
            change.clone(),
        ]);
        let prepared = self.monitors.change_condition(
            &mut self.bench.database,
            session,
            &params.to_bytes(),
            corvid_monitor::RequestContext {
                past: &corvid_monitor::no_past,
                id_in_use: &|_| false,
                admit: &|_| Ok(std::sync::Arc::new(())),
            },
        );
        let prepared = prepared.map_err(|error| format!("{params}: {error}"))?;
        let changed = self.monitors.apply(session, prepared);
        let changed = changed.ok_or_else(|| format!("{params}: its monitor does not exist"))?;
        let mut frames: Vec<Value> = changed
            .frames
            .iter()
            .map(|frame| parse(&frame.to_bytes()))
            .collect();
        let is_effect = |frame: &Value| {
            frame
                .get("params")
                .and_then(Value::as_array)
                .is_some_and(|params| params[0].as_str() == Some(&new_id))
        };
        let effect = if frames.last().is_some_and(is_effect) {
            frames.pop()
        } else {
            None
        };
        self.check_updates(session, frames)?;

        let schema = self.generator.schema.clone();
        let client = &mut self.clients[position];
        let mut monitor = client.monitor.clone();
        monitor.change(&schema, &change);
        let earlier = std::mem::replace(&mut client.monitor, monitor);
        client.id = new_id;
        let tables = self.bench.model.tables.clone();
        let client = &self.clients[position];
        let expected = client.monitor.update(&schema, &tables, &tables, &earlier);
        let nothing = Value::Object(Object::new());
        let updates = effect
            .as_ref()
            .and_then(|effect| effect.get("params")?.as_array()?.last())
            .unwrap_or(&nothing);
        self.compare(&expected, updates)
            .map_err(|problem| format!("effect of {change} on {requests}: {problem}"))?;
        self.replay(position, updates)
    }

    /// Composes the pending updates of a session, and checks that they are exactly the changes that
    /// its monitors have missed.
    fn flush(&mut self, session: SessionId) -> Result<(), String> {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        self.check_updates(
            session,
            frames
                .iter()
                .map(|frame| parse(&frame.to_bytes()))
                .collect(),
        )
    }

    fn check_updates(&mut self, session: SessionId, frames: Vec<Value>) -> Result<(), String> {
        let mut by_id = BTreeMap::new();
        for frame in frames {
            let params = frame
                .get("params")
                .and_then(Value::as_array)
                .ok_or("no params")?
                .to_vec();
            let id = params[0].as_str().ok_or("no id")?.to_owned();
            if by_id.insert(id.clone(), params).is_some() {
                return Err(format!("{id} has two updates"));
            }
        }
        let tables = self.bench.model.tables.clone();
        let nothing = Value::Object(Object::new());
        for position in 0..self.clients.len() {
            let client = &self.clients[position];
            if client.session != session {
                continue;
            }
            let params = by_id.remove(&client.id);
            if let (Version::V3, Some(params)) = (client.version, &params) {
                let newest = if self.has_history {
                    txn(self.commits)
                } else {
                    Uuid::ZERO
                };
                if params[1].as_str() != Some(&newest.to_string()) {
                    return Err(format!("{} instead of {newest}", params[1]));
                }
            }
            let updates = params
                .as_ref()
                .and_then(|params| params.last())
                .unwrap_or(&nothing);
            let expected = client.monitor.update(
                &self.generator.schema,
                &client.flushed,
                &tables,
                &client.monitor,
            );
            self.compare(&expected, updates)
                .map_err(|problem| format!("update of {}: {problem}", client.requests))?;
            self.replay(position, updates)?;
            self.clients[position].flushed = tables.clone();
        }
        if by_id.is_empty() {
            Ok(())
        } else {
            Err(format!("unknown monitors: {by_id:?}"))
        }
    }

    fn compare(&self, expected: &Value, actual: &Value) -> Result<(), String> {
        let normal =
            |updates: &Value| without_empty_modifications(&self.bench.known.value(updates));
        let (expected, actual) = (normal(expected), normal(actual));
        if expected == actual {
            Ok(())
        } else {
            Err(format!("updates {actual}\nmodel: {expected}"))
        }
    }

    fn replay(&mut self, position: usize, updates: &Value) -> Result<(), String> {
        let client = &mut self.clients[position];
        if !client.is_complete {
            return Ok(());
        }
        replica::apply(
            &self.generator.schema,
            &client.monitor,
            &mut client.replica,
            updates,
        )?;
        let expected = client.monitor.content(&self.bench.model.tables);
        let shown = |tables: &Tables| shown(&self.bench.known, tables);
        let (expected, actual) = (shown(&expected), shown(&client.replica));
        if expected == actual {
            Ok(())
        } else {
            Err(format!("replica {actual:?}\nmodel: {expected:?}"))
        }
    }
}

/// Returns rows as text, without versions, which the model chooses itself.
fn shown(known: &Known, tables: &Tables) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for (table, content) in tables {
        for (uuid, row) in content {
            let row: Vec<_> = row
                .iter()
                .filter(|(column, _)| *column != "_version")
                .collect();
            rows.insert(format!("{table} {uuid}"), known.text(&format!("{row:?}")));
        }
    }
    rows
}

fn parse(text: &[u8]) -> Value {
    Value::parse(text).expect("valid JSON")
}

/// Checks that a delta names each row once, and no unchanged row.
fn check_delta(delta: &Delta) -> Result<(), String> {
    let mut seen = Vec::new();
    for change in &delta.changes {
        let key = (change.table, change.uuid);
        let is_real = match (&change.old, &change.new) {
            (Some(old), Some(new)) => old.columns != new.columns && !change.diffs.is_empty(),
            (None, None) => false,
            _ => true,
        };
        if seen.contains(&key) || !is_real {
            return Err(format!("delta holds {change:?}"));
        }
        seen.push(key);
    }
    Ok(())
}

#[test]
fn updates_of_every_version_equal_those_of_the_model() {
    let seed = dice::seed("monitors");
    let cases = dice::cases(10_000);
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
    }
}
