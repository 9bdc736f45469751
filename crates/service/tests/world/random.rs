//! A long random run: clients do everything at once, disks stall and fail, databases are converted,
//! removed and added; checkers watch.
//!
//! Checked: every request is answered once; requests that do not block are answered in the order of
//! sending; a client gets the update of its own insertion before the reply; replicas equal the
//! database; a lock has one owner, and its session agrees; nothing is left when all clients have
//! disconnected; files equal their databases. `CORVID_SEED` replays a run.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::Setting;
use corvid_service::message::{Control, ToDatabase};

use crate::databases::{schema, wider_schema};
use crate::seeds;
use crate::world::{Dice, World};

const ACTIONS: usize = 600;
const RUNS: u64 = 60;
const CLIENTS: usize = 6;
const LOCKS: [&str; 2] = ["L", "M"];

#[test]
fn no_message_is_lost_doubled_or_out_of_order() {
    seeds::each(RUNS, |seed| Run::new(seed).run());
}

/// A client's replica of the tables `T` and `Other` of `A`: table and row to columns.
type Replica = BTreeMap<(String, String), BTreeMap<String, Value>>;

/// The checkers' state of a client.
#[derive(Default)]
struct Watched {
    /// Requests in order of sending: id, and whether it may block.
    asked: Vec<(i64, bool)>,
    answered: BTreeSet<i64>,
    /// The position in `asked` of the last answered request that does not block.
    last: Option<usize>,
    replica: Replica,
    /// Lock requests without a reply: id to method and lock.
    lock_requests: BTreeMap<i64, (&'static str, &'static str)>,
    owned: BTreeSet<String>,
    /// Requests that insert into `Other`.
    inserts: BTreeSet<i64>,
    /// Number of messages checked.
    seen: usize,
}

struct Run {
    world: World,
    dice: Dice,
    clients: BTreeMap<SessionId, Watched>,
    next_id: i64,
    has_c: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            world: World::new(seed),
            dice: Dice::new(!seed),
            clients: BTreeMap::new(),
            next_id: 0,
            has_c: false,
        };
        // In every other run jobs write initial contents, and in every third they write updates.
        let update_rows_max = if seed.is_multiple_of(3) { 0 } else { 1000 };
        let rows_max = if seed.is_multiple_of(2) { 1000 } else { 0 };
        for name in ["A", "B"] {
            run.world
                .service(name)
                .set(Setting::InitialRowsMax, rows_max);
            run.world
                .service(name)
                .set(Setting::UpdateRowsMax, update_rows_max);
        }
        for _ in 0..CLIENTS {
            run.connect();
        }
        run
    }

    fn connect(&mut self) {
        let client = self.world.connect();
        self.clients.insert(client, Watched::default());
        self.ask(client, "set_db_change_aware", "[true]");
        let tables = r#"{"T":{"columns":["k","n"]},"Other":{"columns":["n"]}}"#;
        let nothing = r#""00000000-0000-0000-0000-000000000000""#;
        match self.dice.below(3) {
            0 => self.ask(client, "monitor", &format!(r#"["A","replica",{tables}]"#)),
            1 => self.ask(
                client,
                "monitor_cond",
                &format!(r#"["A","replica",{tables}]"#),
            ),
            _ => {
                let params = format!(r#"["A","replica",{tables},{nothing}]"#);
                self.ask(client, "monitor_cond_since", &params)
            }
        };
    }

    fn ask(&mut self, client: SessionId, method: &str, params: &str) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.world.ask(client, &id.to_string(), method, params);
        let watched = self.clients.get_mut(&client).expect("watched");
        let may_wait = params.contains(r#""op":"wait""#);
        watched.asked.push((id, may_wait));
        id
    }

    /// Sends a request for which only the number of replies is checked.
    fn ask_plainly(&mut self, client: SessionId, method: &str, params: &str) {
        self.ask(client, method, params);
    }

    fn run(mut self) {
        for _ in 0..ACTIONS {
            self.act();
            for _ in 0..self.dice.below(12) {
                self.world.step();
            }
            self.check_messages();
        }
        self.run_to_completion();
        self.check_replicas();
        self.world.check_idle();
    }

    /// A random event.
    fn act(&mut self) {
        let chosen = self.dice.below(self.clients.len());
        let client = *self.clients.keys().nth(chosen).expect("clients");
        match self.dice.below(100) {
            0..60 => self.request(client),
            60..66 => self.lock_request(client),
            66..74 => {
                let stalled = self.dice.below(2) == 0;
                self.world
                    .clients
                    .get_mut(&client)
                    .expect("connected")
                    .is_stalled = stalled;
            }
            74..82 => {
                let held = self.dice.below(3) == 0;
                let slow = self.dice.below(2) == 0;
                let failures = u32::from(self.dice.below(3) == 0);
                let database = self.pick(&["A", "B"]);
                let disk = self.world.disk(database);
                disk.is_held = held;
                disk.is_slow = slow;
                disk.failures = failures;
            }
            82..85 => {
                let ms = self.dice.below(40) as u64;
                self.world.wait(ms);
            }
            85..87 => {
                self.world.disconnect(client);
                self.clients.remove(&client);
                self.connect();
            }
            87..92 => self.change_databases(client),
            92..95 => {
                let back = i64::try_from(self.dice.below(20)).expect("small");
                let id = self.next_id - back;
                let text = format!(r#"{{"id":null,"method":"cancel","params":[{id}]}}"#);
                self.world.send(client, &text);
            }
            _ => self.world.run(),
        }
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.dice.below(choices.len())]
    }

    fn request(&mut self, client: SessionId) {
        let database = self.pick(&["A", "A", "B", "B", "B", "C", "_Server"]);
        let row = self.dice.below(8);
        let number = self.dice.below(5);
        let operation = match self.dice.below(16) {
            0..3 => format!(r#"{{"op":"insert","table":"T","row":{{"k":"{row}","n":{number}}}}}"#),
            3 | 4 => format!(
                r#"{{"op":"update","table":"T","where":[["k","==","{row}"]],"row":{{"n":{number}}}}}"#
            ),
            5 => format!(r#"{{"op":"delete","table":"T","where":[["k","==","{row}"]]}}"#),
            6 => format!(
                r#"{{"op":"insert","table":"T","row":{{"k":"{row}"}}}},{{"op":"commit","durable":true}}"#
            ),
            7 | 8 => {
                let operation = r#"{"op":"insert","table":"Other","row":{"n":1}}"#;
                let id = self.ask(client, "transact", &format!(r#"["A",{operation}]"#));
                let watched = self.clients.get_mut(&client).expect("watched");
                watched.inserts.insert(id);
                return;
            }
            9 | 10 => {
                let ms = self.dice.below(60);
                format!(
                    r#"{{"op":"wait","table":"T","where":[["k","==","{row}"]],"columns":["n"],"until":"==","rows":[{{"n":{number}}}],"timeout":{ms}}},{{"op":"update","table":"T","where":[["k","==","{row}"]],"row":{{"n":9}}}}"#
                )
            }
            11 => r#"{"op":"select","table":"T","where":[]}"#.to_owned(),
            12 => return self.ask_plainly(client, "list_dbs", "[]"),
            13 => {
                return self.ask_plainly(client, "get_schema", &format!(r#"["{database}"]"#));
            }
            14 => return self.monitor_request(client, database),
            _ => return self.ask_plainly(client, "echo", "[]"),
        };
        self.ask(
            client,
            "transact",
            &format!(r#"["{database}",{operation}]"#),
        );
    }

    fn monitor_request(&mut self, client: SessionId, database: &str) {
        let (id, other) = (self.dice.below(3), self.dice.below(3));
        match self.dice.below(4) {
            0 => self.ask(
                client,
                "monitor",
                &format!(r#"["{database}",{id},{{"T":{{}}}}]"#),
            ),
            1 => self.ask(
                client,
                "monitor_cond",
                &format!(r#"["{database}",{id},{{"T":{{}}}}]"#),
            ),
            2 => self.ask(
                client,
                "monitor_cond_change",
                &format!(r#"[{id},{other},{{"T":[{{"where":[["n","==",1]]}}]}}]"#),
            ),
            _ => self.ask(client, "monitor_cancel", &format!("[{id}]")),
        };
    }

    fn lock_request(&mut self, client: SessionId) {
        let method = self.pick(&["lock", "steal", "unlock", "unlock"]);
        let lock = self.pick(&LOCKS);
        let id = self.ask(client, method, &format!(r#"["{lock}"]"#));
        let watched = self.clients.get_mut(&client).expect("watched");
        watched.lock_requests.insert(id, (method, lock));
    }

    fn change_databases(&mut self, client: SessionId) {
        match self.dice.below(7) {
            3 | 4 => {
                let name = self.pick(&["A", "B"]);
                let id = self.world.id(name);
                let compact = Control::Compact(Some(0));
                self.world.post(id, ToDatabase::Control(compact));
            }
            0..3 => {
                let database = self.pick(&["B", "B", "C"]);
                let new = self.another_schema(database);
                self.ask(client, "convert", &format!(r#"["{database}",{new}]"#));
            }
            _ if self.has_c => {
                self.world.remove("C");
                self.has_c = false;
            }
            _ => {
                self.world.serve(schema("C"));
                self.has_c = true;
            }
        }
    }

    /// A schema with one more column, with rows that become garbage, or with a rule that clients
    /// may break; or the original schema.
    fn another_schema(&mut self, database: &str) -> String {
        match self.dice.below(4) {
            0 => wider_schema(database),
            1 => wider_schema(database).replace(r#""T":{"isRoot":true,"#, r#""T":{"#),
            2 => wider_schema(database).replace(r#"[["k"]]"#, r#"[["k"],["n"]]"#),
            _ => schema(database).to_json().to_string(),
        }
    }

    /// Runs until everything is complete: disks work, clients read, blocked transactions time out.
    fn run_to_completion(&mut self) {
        for database in ["A", "B"] {
            let disk = self.world.disk(database);
            (disk.is_held, disk.failures) = (false, 0);
        }
        for client in self.world.clients.values_mut() {
            client.is_stalled = false;
        }
        for _ in 0..3 {
            self.world.wait(1000);
            self.check_messages();
        }
        for (client, watched) in &self.clients {
            let open = watched
                .asked
                .iter()
                .find(|(id, _)| !watched.answered.contains(id));
            assert_eq!(open, None, "{client:?} has an open request");
        }
        for lock in LOCKS {
            let knows = |(_, watched): &(_, &Watched)| watched.owned.contains(lock);
            let owners: Vec<_> = self.clients.iter().filter(knows).collect();
            assert!(owners.len() <= 1, "{lock} has several owners");
            for client in self.clients.keys() {
                let owns = self
                    .world
                    .locks
                    .lock()
                    .expect("no panics")
                    .owns(*client, lock);
                let thinks = owners.iter().any(|(owner, _)| *owner == client);
                assert_eq!(owns, thinks, "{client:?} and {lock}");
            }
        }
    }

    /// Each client reads the tables; it must already have the rows.
    fn check_replicas(&mut self) {
        let select = r#"["A",{"op":"select","table":"T","where":[],"columns":["_uuid","k","n"]},{"op":"select","table":"Other","where":[],"columns":["_uuid","n"]}]"#;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.ask(client, "transact", select);
            self.world.run();
            let reply = self.world.clients[&client]
                .received
                .last()
                .expect("a reply");
            let mut rows = Replica::new();
            let results = reply
                .get("result")
                .and_then(Value::as_array)
                .expect("results");
            for (table, result) in ["T", "Other"].iter().zip(results) {
                for row in result.get("rows").and_then(Value::as_array).expect("rows") {
                    let mut columns = columns(row);
                    let uuid = columns.remove("_uuid").expect("asked for");
                    let uuid = uuid.as_array().expect("a pair")[1]
                        .as_str()
                        .expect("text")
                        .to_owned();
                    rows.insert(((*table).to_owned(), uuid), columns);
                }
            }
            self.check_messages();
            assert_eq!(self.clients[&client].replica, rows, "{client:?}");
        }
    }

    /// Passes new messages to the checkers.
    fn check_messages(&mut self) {
        for (client, watched) in &mut self.clients {
            let received = &self.world.clients[client].received;
            for message in &received[watched.seen..] {
                watched.take(message);
            }
            watched.seen = received.len();
        }
        self.replace_closed();
    }

    /// Replaces clients whose sessions were closed because they were not change-aware in time.
    fn replace_closed(&mut self) {
        let all = &self.world.clients;
        let is_closed = |client: &SessionId, _: &mut Watched| all[client].closed.is_some();
        let closed: Vec<_> = self.clients.extract_if(.., is_closed).collect();
        for (client, watched) in closed {
            let aware = watched.asked[0].0;
            let why = &self.world.clients[&client].closed;
            assert!(
                !watched.answered.contains(&aware),
                "{client:?} closed: {why:?}"
            );
            self.connect();
        }
    }
}

impl Watched {
    fn take(&mut self, message: &Value) {
        match message.get("method").and_then(Value::as_str) {
            Some(method) => {
                let params = message
                    .get("params")
                    .and_then(Value::as_array)
                    .expect("params");
                self.notified(method, params);
            }
            None => {
                let id = message
                    .get("id")
                    .and_then(Value::as_integer)
                    .expect("an id");
                self.replied(id, message);
            }
        }
    }

    fn notified(&mut self, method: &str, params: &[Value]) {
        let first = params[0].as_str().unwrap_or_default();
        match method {
            "locked" => drop(self.owned.insert(first.to_owned())),
            "stolen" => drop(self.owned.remove(first)),
            "update" | "update2" | "update3" if first == "replica" => {
                self.apply(params.last().expect("updates"));
            }
            _ => {}
        }
    }

    fn replied(&mut self, id: i64, reply: &Value) {
        assert!(self.answered.insert(id), "{id} is answered twice");
        let place = self.asked.iter().position(|(asked, _)| *asked == id);
        let place = place.unwrap_or_else(|| panic!("{id} was never asked"));
        if !self.asked[place].1 {
            assert!(self.last < Some(place), "{id} is answered out of turn");
            self.last = Some(place);
        }
        let result = reply.get("result");
        if let Some((method, lock)) = self.lock_requests.remove(&id)
            && let Some(result) = result
        {
            let is_owner = result.get("locked").and_then(Value::as_bool);
            match (method, is_owner) {
                ("unlock", _) => drop(self.owned.remove(lock)),
                (_, Some(true)) => drop(self.owned.insert(lock.to_owned())),
                _ => {}
            }
        }
        let Some(results) = result.and_then(Value::as_array) else {
            // The initial contents of the replica, from `monitor` or `monitor_cond`.
            if place == 1 {
                self.apply(result.expect("the monitor is accepted"));
            }
            return;
        };
        match results {
            [_, _, content] if place == 1 => self.apply(content),
            [inserted] if self.inserts.contains(&id) => {
                let uuid = inserted
                    .get("uuid")
                    .and_then(Value::as_array)
                    .expect("succeeds");
                let uuid = uuid[1].as_str().expect("text").to_owned();
                let key = ("Other".to_owned(), uuid);
                assert!(
                    self.replica.contains_key(&key),
                    "{id}: the reply came first"
                );
            }
            _ => {}
        }
    }

    /// Applies the updates of any version to the replica.
    fn apply(&mut self, updates: &Value) {
        for (table, rows) in updates.as_object().expect("tables") {
            for (uuid, update) in rows.as_object().expect("rows") {
                let key = (table.to_string(), uuid.to_string());
                let kind = |name: &str| update.get(name);
                if let Some(new) = kind("new") {
                    self.replica.insert(key, columns(new));
                } else if let Some(new) = kind("initial").or(kind("insert")) {
                    let mut row = defaults(&key.0);
                    row.extend(columns(new));
                    let old = self.replica.insert(key, row);
                    assert!(old.is_none(), "{uuid} is inserted twice");
                } else if let Some(diff) = kind("modify") {
                    let row = self.replica.get_mut(&key).expect("known before");
                    row.extend(columns(diff));
                } else {
                    assert!(self.replica.remove(&key).is_some(), "{uuid} is not there");
                }
            }
        }
    }
}

fn columns(row: &Value) -> BTreeMap<String, Value> {
    let members = row.as_object().expect("a row").iter();
    members
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect()
}

fn defaults(table: &str) -> BTreeMap<String, Value> {
    let row = match table {
        "T" => r#"{"k":"","n":0}"#,
        _ => r#"{"n":0}"#,
    };
    columns(&Value::parse(row.as_bytes()).expect("JSON"))
}
