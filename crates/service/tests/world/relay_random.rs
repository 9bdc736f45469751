//! Random runs with two levels of relays: clients everywhere write, wait and read, while
//! connections are cut, servers go away and return, the source forgets its history, and the schema
//! is converted. `CORVID_SEED` replays a run.
//!
//! Each transaction inserts a unique number into `Other`, so a state is known by its numbers.
//! Checked: every request is answered once. A client sees its own change before the reply.
//! Acknowledged changes stay, refused ones never happen. The contents of a relay are those of the
//! source after some commit and never go back; neither does what a client has seen. At the end all
//! are equal and nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::message::{Control, ToDatabase};

use crate::databases::{schema, wider_schema};
use crate::relays::Tree;
use crate::seeds;
use crate::world::Dice;

const ACTIONS: usize = 250;
const RUNS: u64 = 40;

/// A request without an answer.
enum Unanswered {
    /// A transaction that inserts this number.
    Write(u64),
    Monitor,
    Other,
}

/// A client of one of the worlds.
struct Watched {
    world: usize,
    asked: BTreeMap<i64, Unanswered>,
    /// The numbers that the client has seen.
    replica: BTreeSet<u64>,
    is_monitoring: bool,
    /// Number of messages checked.
    seen: usize,
}

struct Run {
    tree: Tree,
    dice: Dice,
    clients: BTreeMap<(usize, SessionId), Watched>,
    next_id: i64,
    next_number: u64,
    /// Numbers in the order of their commits at the source.
    committed: Vec<u64>,
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// How many commits each world's contents included.
    reached: Vec<usize>,
    is_wide: bool,
    /// The servers execute ids once, so only clients cancel transactions.
    is_once: bool,
    /// Numbers of transactions that their clients have canceled.
    given_up: BTreeSet<u64>,
    canceled: usize,
    looks: usize,
}

#[test]
fn relays_lose_no_write_and_show_no_older_state() {
    let (mut acknowledged, mut canceled, mut looks) = (0, 0, 0);
    let is_usual = seeds::each(RUNS, |seed| {
        let run = Run::new(seed).run();
        acknowledged += run.0;
        canceled += run.1;
        looks += run.2;
    });
    println!("{acknowledged} acknowledged, {canceled} canceled, {looks} looks");
    if is_usual {
        assert!(acknowledged > 1000 && canceled > 10 && looks > 500);
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let sources: &[&[usize]] = match seed % 3 {
            0 => &[&[0], &[1]],
            1 => &[&[0], &[0], &[2]],
            _ => &[&[0], &[1], &[1]],
        };
        let is_once = seed.is_multiple_of(2);
        let tree = Tree::started_with_ids(seed, sources, is_once);
        let worlds = tree.worlds.len();
        Run {
            tree,
            dice: Dice::new(!seed),
            clients: BTreeMap::new(),
            next_id: 0,
            next_number: 0,
            committed: Vec::new(),
            acknowledged: BTreeSet::new(),
            refused: BTreeSet::new(),
            reached: vec![0; worlds],
            is_wide: false,
            is_once,
            given_up: BTreeSet::new(),
            canceled: 0,
            looks: 0,
        }
    }

    fn run(mut self) -> (usize, usize, usize) {
        let worlds = self.tree.worlds.len();
        for world in 0..worlds {
            self.connect(world);
            self.connect(world);
        }
        for _ in 0..ACTIONS {
            self.act();
            self.look();
        }
        for world in 0..worlds {
            self.tree.is_down[world] = false;
            if world > 0 {
                self.tree.relay(world).is_held = false;
            }
        }
        self.wait(60_000);
        self.tree.check_equal();
        for watched in self.clients.values() {
            assert!(
                watched.asked.is_empty(),
                "unanswered: {:?}",
                watched.asked.keys()
            );
            let committed: BTreeSet<u64> = self.committed.iter().copied().collect();
            assert_eq!(
                watched.replica, committed,
                "of a client of {}",
                watched.world
            );
        }
        let committed: BTreeSet<u64> = self.committed.iter().copied().collect();
        assert!(self.acknowledged.is_subset(&committed));
        assert!(self.refused.is_disjoint(&committed));
        self.tree.check_idle();
        (self.acknowledged.len(), self.canceled, self.looks)
    }

    fn act(&mut self) {
        let worlds = self.tree.worlds.len();
        let world = self.dice.below(worlds);
        let relay = 1 + self.dice.below(worlds - 1);
        match self.dice.below(40) {
            0 => self.tree.cut(relay),
            1 => {
                let is_down = !self.tree.is_down[world];
                self.tree.is_down[world] = is_down;
            }
            2 => self.tree.is_down.fill(false),
            3 => {
                let is_held = self.dice.below(3) == 0;
                self.tree.relay(relay).is_held = is_held;
            }
            4 => {
                // Without a history no commit can be named, so no server executes ids once.
                let is_kept = self.dice.below(3) > 0 || self.is_once;
                let id = self.tree.worlds[0].id("A");
                let history = Control::SetHistory(is_kept);
                self.tree.worlds[0].post(id, ToDatabase::Control(history));
            }
            5 => self.convert(),
            6 => {
                let ms = self.dice.below(6000) as u64;
                self.wait(ms);
            }
            7 => {
                if let Some(key) = self.any_client() {
                    self.clients.remove(&key);
                    self.tree.worlds[key.0].disconnect(key.1);
                    self.connect(key.0);
                }
            }
            8 => self.cancel(),
            9 => {
                self.tree.worlds[world].served("A").is_worker_held = self.dice.below(3) == 0;
                if self.dice.below(2) == 0 {
                    self.release_workers();
                }
            }
            10..=24 => self.write(),
            _ => {
                for _ in 0..self.dice.below(60) {
                    self.tree.step();
                    self.look();
                }
            }
        }
    }

    fn release_workers(&mut self) {
        for world in &mut self.tree.worlds {
            world.served("A").is_worker_held = false;
        }
    }

    fn wait(&mut self, ms: u64) {
        self.release_workers();
        let end_ms = self.tree.now_ms() + ms;
        while self.tree.now_ms() < end_ms {
            let piece_ms = (end_ms - self.tree.now_ms()).min(700);
            self.tree.wait(piece_ms);
            self.look();
        }
        self.tree.run();
        self.look();
    }

    fn any_client(&mut self) -> Option<(usize, SessionId)> {
        let at = self.dice.below(self.clients.len());
        self.clients.keys().nth(at).copied()
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn connect(&mut self, world: usize) {
        let session = self.tree.worlds[world].connect();
        let watched = Watched {
            world,
            asked: BTreeMap::new(),
            replica: BTreeSet::new(),
            is_monitoring: false,
            seen: 0,
        };
        self.clients.insert((world, session), watched);
        let id = self.id();
        self.ask(
            (world, session),
            id,
            Unanswered::Other,
            "set_db_change_aware",
            "[true]",
        );
        self.monitor((world, session));
    }

    fn monitor(&mut self, key: (usize, SessionId)) {
        let id = self.id();
        let params = format!(r#"["A","m{id}",{{"Other":{{"columns":["n"]}}}}]"#);
        self.ask(key, id, Unanswered::Monitor, "monitor", &params);
    }

    fn ask(
        &mut self,
        key: (usize, SessionId),
        id: i64,
        asked: Unanswered,
        method: &str,
        params: &str,
    ) {
        if let Some(watched) = self.clients.get_mut(&key) {
            watched.asked.insert(id, asked);
            self.tree.worlds[key.0].ask(key.1, &id.to_string(), method, params);
        }
    }

    fn write(&mut self) {
        let Some(key) = self.any_client() else {
            return;
        };
        self.next_number += 1;
        let number = self.next_number;
        let name = self.dice.below(12);
        let mut operations = vec![format!(
            r#"{{"op":"insert","table":"Other","row":{{"n":{number}}}}}"#
        )];
        operations.push(match self.dice.below(6) {
            0 | 1 => format!(r#"{{"op":"insert","table":"T","row":{{"k":"k{name}"}}}}"#),
            2 => format!(r#"{{"op":"delete","table":"T","where":[["k","==","k{name}"]]}}"#),
            3 => format!(
                r#"{{"op":"update","table":"T","where":[["k","==","k{name}"]],"row":{{"n":{number}}}}}"#
            ),
            4 => {
                let limit = [0, 300, 3000][self.dice.below(3)];
                if limit > 0 {
                    // A conversion cancels blocked transactions.
                    self.given_up.insert(number);
                }
                format!(
                    r#"{{"op":"wait","timeout":{limit},"table":"T","where":[["k","==","k{name}"]],"columns":["k"],"until":"==","rows":[{{"k":"k{name}"}}]}}"#
                )
            }
            _ => r#"{"op":"commit","durable":true}"#.to_owned(),
        });
        if self.dice.below(2) == 0 {
            operations.reverse();
        }
        let params = format!(r#"["A",{}]"#, operations.join(","));
        let id = self.id();
        self.ask(key, id, Unanswered::Write(number), "transact", &params);
    }

    fn convert(&mut self) {
        let Some(key) = self.any_client() else {
            return;
        };
        self.is_wide = !self.is_wide;
        let schema = match self.is_wide {
            true => wider_schema("A"),
            false => schema("A").to_json().to_string(),
        };
        let id = self.id();
        self.ask(
            key,
            id,
            Unanswered::Other,
            "convert",
            &format!(r#"["A",{schema}]"#),
        );
    }

    /// A client cancels one of its requests.
    fn cancel(&mut self) {
        if let Some(key) = self.any_client()
            && let Some(watched) = self.clients.get(&key)
            && let Some((id, asked)) = watched.asked.first_key_value()
        {
            if let Unanswered::Write(number) = asked {
                self.given_up.insert(*number);
            }
            let text = format!(r#"{{"id":null,"method":"cancel","params":[{id}]}}"#);
            self.tree.worlds[key.0].send(key.1, &text);
        }
    }

    /// Checks everything new.
    fn look(&mut self) {
        self.look_at_contents();
        let keys: Vec<_> = self.clients.keys().copied().collect();
        for key in keys {
            let client = &self.tree.worlds[key.0].clients[&key.1];
            if client.closed.is_some() {
                // The client was not change-aware yet when the schema changed.
                self.clients.remove(&key);
                self.connect(key.0);
                continue;
            }
            let Some(watched) = self.clients.get_mut(&key) else {
                continue;
            };
            let messages: Vec<Value> = client.received[watched.seen..].to_vec();
            watched.seen = client.received.len();
            for message in messages {
                self.take(key, &message);
            }
        }
    }

    /// The contents of each world are a state of the source, and not older than before.
    fn look_at_contents(&mut self) {
        for world in 0..self.tree.worlds.len() {
            let numbers = self.numbers(world);
            if world == 0 {
                let known: BTreeSet<u64> = self.committed.iter().copied().collect();
                assert!(known.is_subset(&numbers), "a commit is lost");
                self.committed.extend(numbers.difference(&known));
                self.reached[0] = self.committed.len();
                continue;
            }
            let count = numbers.len();
            if count != self.reached[world] {
                self.looks += 1;
            }
            assert!(count >= self.reached[world], "world {world} went back");
            self.reached[world] = count;
            let known: BTreeSet<u64> = self.committed.iter().copied().collect();
            assert!(
                numbers.is_subset(&known),
                "world {world} has more than the source"
            );
        }
    }

    fn numbers(&mut self, world: usize) -> BTreeSet<u64> {
        let database = self.tree.worlds[world].service("A").database();
        let table = database.schema().table_named(b"Other").expect("there");
        let column = database
            .schema()
            .table(table)
            .column_named(b"n")
            .expect("there");
        let rows = database.rows(table);
        let numbers = rows.map(|row| row.columns[usize::from(column.0)].as_integer());
        let mut found = BTreeSet::new();
        for number in numbers.flatten() {
            assert!(found.insert(number as u64), "{number} happened twice");
        }
        found
    }

    fn take(&mut self, key: (usize, SessionId), message: &Value) {
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").and_then(Value::as_array);
        if let (Some(method), Some(params)) = (method, params) {
            match method {
                "update" => {
                    let numbers = numbers_of(&params[1]);
                    self.clients
                        .get_mut(&key)
                        .expect("there")
                        .replica
                        .extend(numbers);
                }
                "monitor_canceled" => {
                    self.clients.get_mut(&key).expect("there").is_monitoring = false;
                    self.monitor(key);
                }
                other => panic!("{other}"),
            }
            return;
        }
        let id = message
            .get("id")
            .and_then(Value::as_integer)
            .expect("an id");
        let watched = self.clients.get_mut(&key).expect("there");
        let asked = watched.asked.remove(&id);
        let asked = asked.unwrap_or_else(|| panic!("{id} is answered twice: {message}"));
        let result = message.get("result");
        let results = result.and_then(Value::as_array);
        let has_failed = |results: &[Value]| results.iter().any(|it| it.get("error").is_some());
        match (asked, results) {
            (Unanswered::Write(number), Some(results)) if !has_failed(results) => {
                self.acknowledged.insert(number);
                if watched.is_monitoring {
                    assert!(
                        watched.replica.contains(&number),
                        "{number}: the reply came first"
                    );
                }
            }
            (Unanswered::Write(number), Some(_)) => drop(self.refused.insert(number)),
            (Unanswered::Write(number), None) => {
                let error = message.get("error").and_then(Value::as_str);
                assert_eq!(error, Some("canceled"), "{message}");
                assert!(
                    !self.is_once || self.given_up.contains(&number),
                    "{number} is canceled"
                );
                self.canceled += 1;
            }
            (Unanswered::Monitor, _) => match result.filter(|it| it.as_object().is_some()) {
                Some(contents) => {
                    let numbers: BTreeSet<u64> = numbers_of(contents).collect();
                    assert!(
                        watched.replica.is_subset(&numbers),
                        "older than it has seen"
                    );
                    watched.replica = numbers;
                    watched.is_monitoring = true;
                }
                None => self.monitor(key),
            },
            (Unanswered::Other, _) => {}
        }
    }
}

/// The numbers in an update of version 1.
fn numbers_of(updates: &Value) -> impl Iterator<Item = u64> + '_ {
    let rows = updates.get("Other").and_then(Value::as_object);
    let rows = rows.into_iter().flat_map(|rows| rows.values());
    rows.map(|row| {
        let number = row.get("new").and_then(|new| new.get("n"));
        number.and_then(Value::as_integer).expect("inserted") as u64
    })
}
