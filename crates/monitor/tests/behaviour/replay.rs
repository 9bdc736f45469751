//! Random transactions, sessions, conditions and flush points, on a disk that is fast, slow or
//! fails. A client that applies its notifications in order must hold the subscribed part of the
//! stored contents. `CORVID_SEED=N` repeats one run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Uuid};
use corvid_json::Value;
use corvid_json::splitmix::SplitMix64;
use corvid_monitor::{ConditionChange, Frame, MonitorResult, SessionId, StartOutcome, Version};

use crate::clauses::{CLAUSES, Clause, text};
use crate::fixture::{Fixture, ZOO, txn};
use crate::replica::{self, Row, Rows};

const SESSIONS: u64 = 3;
const STEPS: usize = 80;

/// SplitMix64: good enough for tests, and the same everywhere.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.draw() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[usize::try_from(self.below(among.len() as u64)).expect("small")]
    }
}

/// A monitor, and the replica that its client builds from notifications.
struct Client {
    session: SessionId,
    id: u64,
    version: Version,
    columns: BTreeMap<String, Vec<String>>,
    /// By table; a table without an entry has every row.
    conditions: BTreeMap<String, Vec<Option<Clause>>>,
    rows: Rows,
    last_txn: Uuid,
}

/// A request or commit that is executed. It takes effect once the commits before it are stored.
enum Pending {
    Commit {
        number: u64,
        delta: Arc<Delta>,
        content: Rows,
    },
    Start {
        position: usize,
        result: Value,
    },
    Change {
        position: usize,
        request: ChangeRequest,
        change: ConditionChange,
    },
}

/// The conditions that a client has requested.
#[derive(Clone)]
struct ChangeRequest {
    new_id: u64,
    params: String,
    conditions: BTreeMap<String, Vec<Option<Clause>>>,
}

/// One run.
struct Run {
    random: Random,
    fixture: Fixture,
    pending: VecDeque<Pending>,
    /// The number of the last stored commit, and the contents after it.
    stored: (u64, Rows),
    executed: u64,
    /// Commits are not stored at once.
    is_slow: bool,
    /// Number of commits that were undone.
    undone: usize,
    /// Every result so far, kept so that an equal request may share it.
    shared: Vec<MonitorResult>,
    clients: Vec<Client>,
    ids: u64,
    dead: Vec<(String, String)>,
    /// Restarts that got a net change from the history.
    found: usize,
    /// Updates that covered only a part of the pending changes.
    steps: usize,
}

#[test]
fn replicas_equal_the_part_of_the_database_that_they_ask_for() {
    let seed = std::env::var("CORVID_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(0..250, |seed: u64| seed..seed + 1);
    let (mut found, mut undone, mut steps) = (0, 0, 0);
    for seed in seeds.clone() {
        eprintln!("CORVID_SEED={seed}");
        let mut run = Run::new(seed);
        for _ in 0..STEPS {
            run.step();
        }
        run.release(usize::MAX);
        for session in 0..SESSIONS {
            run.flush(SessionId(session));
        }
        found += run.found;
        undone += run.undone;
        steps += run.steps;
    }
    assert!(
        (found > 0 && undone > 0 && steps > 0) || seeds.end - seeds.start < 10,
        "no restart was answered from the history, nothing was undone, or no update was a step"
    );
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            random: Random(SplitMix64::new(seed)),
            fixture: Fixture::new(ZOO),
            pending: VecDeque::new(),
            stored: (0, Rows::new()),
            executed: 0,
            is_slow: false,
            undone: 0,
            shared: Vec::new(),
            clients: Vec::new(),
            ids: 0,
            dead: Vec::new(),
            found: 0,
            steps: 0,
        };
        if run.random.chance(80) {
            run.fixture.insert_ballast();
            run.executed = 1;
        }
        for _ in 0..5 {
            run.transact();
            run.release(usize::MAX);
        }
        for session in 0..SESSIONS * 3 {
            run.add_client(SessionId(session % SESSIONS));
        }
        run
    }

    fn step(&mut self) {
        let session = SessionId(self.random.below(SESSIONS));
        match self.random.below(14) {
            0..5 => self.transact(),
            5 => self.flush(session),
            6 => {
                let ready = self.random.chance(50);
                self.fixture.monitors.set_ready(session, ready);
            }
            7 => {
                for session in self.fixture.pending() {
                    self.flush(SessionId(session));
                }
            }
            8 => self.change_condition(),
            9 => self.is_slow = self.random.chance(70),
            10 => {
                let entries = self.random.below(1 + self.pending.len() as u64);
                self.release(usize::try_from(entries).expect("small"));
            }
            11 if self.random.chance(50) => self.undo(),
            12 => self.flush_step(session),
            _ => self.restart(),
        }
        if !self.is_slow {
            self.release(usize::MAX);
        }
    }

    /// Releases up to this many pending entries.
    fn release(&mut self, entries: usize) {
        for _ in 0..entries.min(self.pending.len()) {
            match self.pending.pop_front().expect("counted") {
                Pending::Commit {
                    number,
                    delta,
                    content,
                } => {
                    let atoms = self.fixture.database.atom_count();
                    self.fixture.monitors.stored(&delta, atoms);
                    self.stored = (number, content);
                }
                Pending::Start { position, result } => self.started(position, &result),
                Pending::Change {
                    position,
                    request,
                    change,
                } => self.changed(position, request, change),
            }
        }
    }

    /// Undoes everything that is executed and not stored, and executes monitor requests again.
    fn undo(&mut self) {
        let undone = std::mem::take(&mut self.pending);
        for entry in undone.iter().rev() {
            if let Pending::Commit { delta, .. } = entry {
                self.fixture.database.undo(delta);
                self.undone += 1;
            }
        }
        self.fixture.monitors.undo();
        for entry in &undone {
            if let Pending::Start { position, .. } = entry {
                let client = &self.clients[*position];
                let id = client.id.to_string();
                assert!(self.fixture.monitors.cancel(client.session, id.as_bytes()));
            }
        }
        self.dead.clear();
        for entry in undone {
            match entry {
                Pending::Commit { .. } => {}
                Pending::Start { position, .. } => self.start(position),
                Pending::Change {
                    position, request, ..
                } => self.request_change(position, request),
            }
        }
    }

    /// Whether a request about monitors of this session is pending. Later ones wait until it is
    /// released.
    fn is_busy(&self, session: SessionId) -> bool {
        self.pending.iter().any(|entry| match entry {
            Pending::Commit { .. } => false,
            Pending::Start { position, .. } | Pending::Change { position, .. } => {
                self.clients[*position].session == session
            }
        })
    }

    fn transact(&mut self) {
        let before = replica::content(&self.fixture.database);
        let count = 1 + self.random.below(4);
        let mut operations = Vec::new();
        for _ in 0..count {
            operations.push(self.operation(&before));
        }
        let delta = self.fixture.attempt(&operations.join(","));
        let after = replica::content(&self.fixture.database);
        if let Some(delta) = delta {
            self.executed += 1;
            let number = self.executed;
            self.fixture.monitors.execute(&delta, txn(number));
            let content = after.clone();
            self.pending.push_back(Pending::Commit {
                number,
                delta,
                content,
            });
        }
        self.dead
            .extend(before.into_keys().filter(|key| !after.contains_key(key)));
        self.dead.retain(|key| !after.contains_key(key));
    }

    fn operation(&mut self, before: &Rows) -> String {
        let is_keeper = self.random.chance(70);
        let table = if is_keeper { "Keeper" } else { "Pet" };
        match self.random.below(6) {
            0 | 1 => {
                let reborn = self.dead.iter().position(|(dead, _)| dead == table);
                let uuid = match reborn {
                    Some(position) if self.random.chance(40) => {
                        let (_, uuid) = self.dead.swap_remove(position);
                        format!(r#""uuid":"{uuid}","#)
                    }
                    _ => String::new(),
                };
                let row = self.row(is_keeper);
                format!(r#"{{"op":"insert","table":"{table}",{uuid}"row":{row}}}"#)
            }
            2 | 3 => {
                let (selection, row) = (self.selection(before, table), self.row(is_keeper));
                format!(r#"{{"op":"update","table":"{table}","where":{selection},"row":{row}}}"#)
            }
            4 if is_keeper => {
                let selection = self.selection(before, table);
                let mutator = self.random.pick(&["insert", "delete"]);
                let mutation = match self.random.pick(&["tags", "cfg"]) {
                    "tags" => format!(
                        r#"["tags","{mutator}","{}"]"#,
                        self.random.pick(&["x", "y", "z"])
                    ),
                    _ => format!(
                        r#"["cfg","{mutator}",["map",[["{}","1"]]]]"#,
                        self.random.pick(&["k", "l"])
                    ),
                };
                format!(
                    r#"{{"op":"mutate","table":"{table}","where":{selection},"mutations":[{mutation}]}}"#
                )
            }
            _ => {
                let selection = self.selection(before, table);
                format!(r#"{{"op":"delete","table":"{table}","where":{selection}}}"#)
            }
        }
    }

    /// A `where` that matches one row, or a few.
    fn selection(&mut self, before: &Rows, table: &str) -> String {
        let rows: Vec<&str> = before
            .keys()
            .filter(|key| key.0 == table)
            .map(|key| &*key.1)
            .collect();
        if rows.is_empty() || self.random.chance(15) {
            let column = if table == "Keeper" { "name" } else { "kind" };
            return format!(
                r#"[["{column}","==","{}"]]"#,
                self.random.pick(&["a", "b", "c"])
            );
        }
        format!(r#"[["_uuid","==",["uuid","{}"]]]"#, self.random.pick(&rows))
    }

    fn row(&mut self, is_keeper: bool) -> String {
        let columns: &[(&str, &[&str])] = if is_keeper {
            &[
                ("name", &[r#""a""#, r#""b""#, r#""c""#, r#""""#]),
                ("age", &["0", "1", "2", r#"["set",[]]"#]),
                (
                    "tags",
                    &[
                        r#""x""#,
                        r#"["set",["x","y"]]"#,
                        r#"["set",["y","z"]]"#,
                        r#"["set",[]]"#,
                    ],
                ),
                (
                    "badge",
                    &[
                        r#"["map",[]]"#,
                        r#"["map",[["x",1]]]"#,
                        r#"["map",[["x",2]]]"#,
                    ],
                ),
                (
                    "cfg",
                    &[
                        r#"["map",[]]"#,
                        r#"["map",[["k","1"],["l","2"]]]"#,
                        r#"["map",[["k","2"]]]"#,
                    ],
                ),
            ]
        } else {
            &[
                ("kind", &[r#""a""#, r#""b""#, r#""""#]),
                ("size", &["0", "1", "2"]),
            ]
        };
        let mut members = Vec::new();
        for (name, values) in columns {
            if self.random.chance(50) {
                members.push(format!(r#""{name}":{}"#, self.random.pick(values)));
            }
        }
        format!("{{{}}}", members.join(","))
    }

    /// Adds a client. Every other one copies the subscription of an earlier client, so that groups
    /// have several members.
    fn add_client(&mut self, session: SessionId) {
        if !self.clients.is_empty() && self.random.chance(50) {
            let twin = self.any_client();
            let twin = &self.clients[twin];
            let (version, columns) = (twin.version, twin.columns.clone());
            let conditions = twin.conditions.clone();
            self.add(session, version, columns, conditions);
            return;
        }
        let version = match self.random.below(3) {
            0 => Version::V1,
            1 => Version::V2,
            _ => Version::V3,
        };
        let mut columns = BTreeMap::new();
        let mut conditions = BTreeMap::new();
        for (table, all) in [
            (
                "Keeper",
                &["name", "age", "tags", "badge", "cfg", "_version"][..],
            ),
            ("Pet", &["kind", "size", "_uuid"][..]),
        ] {
            if self.random.chance(80) {
                let chosen = all.iter().filter(|_| self.random.chance(60));
                let chosen: Vec<String> = chosen.map(|&name| name.to_owned()).collect();
                columns.insert(table.to_owned(), chosen);
                if version != Version::V1 && self.random.chance(70) {
                    conditions.insert(table.to_owned(), self.condition(table));
                }
            }
        }
        self.add(session, version, columns, conditions);
    }

    fn add(
        &mut self,
        session: SessionId,
        version: Version,
        columns: BTreeMap<String, Vec<String>>,
        conditions: BTreeMap<String, Vec<Option<Clause>>>,
    ) {
        self.ids += 1;
        self.clients.push(Client {
            session,
            id: self.ids,
            version,
            columns,
            conditions,
            rows: Rows::new(),
            last_txn: Uuid::ZERO,
        });
        self.start(self.clients.len() - 1);
    }

    /// Clauses; `None` stands for `false`.
    fn condition(&mut self, table: &str) -> Vec<Option<Clause>> {
        let of_table = CLAUSES
            .iter()
            .find(|(name, _)| *name == table)
            .expect("known")
            .1;
        let percent = if self.random.chance(50) { 10 } else { 30 };
        let mut chosen: Vec<Option<Clause>> = vec![None];
        for clause in of_table {
            if self.random.chance(percent) {
                chosen.push(Some(clause.clone()));
            }
        }
        chosen
    }

    fn start(&mut self, position: usize) {
        let client = &mut self.clients[position];
        let tables = client.columns.iter().map(|(table, columns)| {
            let condition = client.conditions.get(table);
            let condition = condition.map_or(String::new(), |clauses| {
                format!(r#","where":{}"#, text(clauses))
            });
            format!(r#""{table}":{{"columns":{columns:?}{condition}}}"#)
        });
        let tables = tables.collect::<Vec<_>>().join(",");
        let since = match client.version {
            Version::V3 => format!(r#","{}""#, client.last_txn),
            _ => String::new(),
        };
        let params = format!(r#"["Zoo",{},{{{tables}}}{since}]"#, client.id);
        let (session, version) = (client.session, client.version);
        let rows_max = match self.random.below(2) {
            0 => 0,
            _ => usize::MAX - 1,
        };
        let outcome = self.fixture.begin(session, version, &params, rows_max);
        let result = match outcome {
            StartOutcome::Started(started) => started.result,
            StartOutcome::ContentsPending(pending) => {
                let order = pending.order.expect("no contents are being written");
                let written = order.write(|_| StdArc::new(()));
                self.fixture.monitors.written(&written);
                pending.head.with(written.text.expect("there is room"))
            }
            StartOutcome::Retry(_) | StartOutcome::AwaitsPast(..) => {
                panic!("no contents are being written")
            }
        };
        let text = Value::parse(&result.to_bytes()).expect("result");
        self.shared.push(result);
        self.pending.push_back(Pending::Start {
            position,
            result: text,
        });
        if !self.is_slow {
            self.release(usize::MAX);
        }
    }

    /// Records that the reply to a monitor request is sent.
    fn started(&mut self, position: usize, result: &Value) {
        let client = &mut self.clients[position];
        let id = client.id.to_string();
        self.fixture.mark_replied(client.session, &id);
        let schema = self.fixture.database.schema();
        let (found, updates) = match result.as_array() {
            Some([found, txn, updates]) => {
                client.last_txn =
                    Uuid::parse(txn.as_str().expect("text").as_bytes()).expect("uuid");
                (found.as_bool().expect("boolean"), updates)
            }
            _ => (false, result),
        };
        if found {
            self.found += 1;
        } else {
            client.rows.clear();
        }
        replica::apply(
            &mut client.rows,
            schema,
            client.version,
            &client.columns,
            updates,
        );
        self.check(position);
    }

    /// Cancels a monitor, flushed or not, and starts it again with the last transaction of its
    /// replica.
    fn restart(&mut self) {
        let position = self.any_client();
        let client = &self.clients[position];
        if self.is_busy(client.session) {
            return;
        }
        let id = client.id.to_string();
        assert!(self.fixture.monitors.cancel(client.session, id.as_bytes()));
        self.start(position);
    }

    fn any_client(&mut self) -> usize {
        usize::try_from(self.random.below(self.clients.len() as u64)).expect("small")
    }

    fn change_condition(&mut self) {
        let position = self.any_client();
        let example = self.any_client();
        if self.is_busy(self.clients[position].session) {
            return;
        }
        let tables: Vec<String> = self.clients[position].columns.keys().cloned().collect();
        let mut changed = Vec::new();
        let mut conditions = self.clients[position].conditions.clone();
        for table in tables {
            if self.random.chance(60) {
                let known = self.clients[example].conditions.get(&table).cloned();
                let condition = match known {
                    Some(condition) if self.random.chance(50) => condition,
                    _ => self.condition(&table),
                };
                changed.push(format!(r#""{table}":[{{"where":{}}}]"#, text(&condition)));
                if self.clients[position].version != Version::V1 {
                    conditions.insert(table, condition);
                }
            }
        }
        let old_id = self.clients[position].id;
        let mut new_id = old_id;
        if self.random.chance(50) {
            self.ids += 1;
            new_id = self.ids;
        }
        let params = format!("[{old_id},{new_id},{{{}}}]", changed.join(","));
        let request = ChangeRequest {
            new_id,
            params,
            conditions,
        };
        self.request_change(position, request);
    }

    /// Executes a condition change.
    fn request_change(&mut self, position: usize, request: ChangeRequest) {
        let session = self.clients[position].session;
        let change = self.fixture.execute_change(session, &request.params);
        self.pending.push_back(Pending::Change {
            position,
            request,
            change,
        });
    }

    /// Records that a condition change is applied and its reply is sent.
    fn changed(&mut self, position: usize, request: ChangeRequest, change: ConditionChange) {
        let session = self.clients[position].session;
        let changed = self.fixture.monitors.apply(session, change);
        let changed = changed.expect("its monitor");
        let client = &mut self.clients[position];
        let old_id = std::mem::replace(&mut client.id, request.new_id);
        client.conditions = request.conditions;
        for frame in &changed.frames {
            self.receive(frame, Some((old_id, position)));
        }
        // A client that reconnects must name a transaction that it received under these conditions.
        self.clients[position].last_txn = txn(self.stored.0);
        self.check_session(session);
    }

    /// Flushes a part of the pending updates, of random length.
    fn flush_step(&mut self, session: SessionId) {
        self.fixture.monitors.set_step_bytes(self.random.below(300));
        let mut frames = Vec::new();
        let is_behind = self.fixture.monitors.flush_step(session, &mut frames);
        self.steps += usize::from(is_behind);
        for frame in frames {
            self.receive(&frame, None);
        }
        self.fixture.monitors.set_step_bytes(u64::MAX);
        if !is_behind {
            self.check_session(session);
        }
    }

    fn flush(&mut self, session: SessionId) {
        for frame in self.fixture.frames(session) {
            self.receive(&frame, None);
        }
        self.check_session(session);
    }

    fn receive(&mut self, frame: &Frame, renamed: Option<(u64, usize)>) {
        let message = Value::parse(&frame.to_bytes()).expect("message");
        let params = message
            .get("params")
            .and_then(Value::as_array)
            .expect("params");
        let id = params[0]
            .as_integer()
            .and_then(|id| u64::try_from(id).ok())
            .expect("id");
        let position = match renamed {
            Some((old_id, position)) if old_id == id => position,
            _ => self
                .clients
                .iter()
                .position(|client| client.id == id)
                .expect("known"),
        };
        let client = &mut self.clients[position];
        let (method, updates) = match client.version {
            Version::V1 => ("update", &params[1]),
            Version::V2 => ("update2", &params[1]),
            Version::V3 => {
                client.last_txn =
                    Uuid::parse(params[1].as_str().expect("text").as_bytes()).expect("uuid");
                ("update3", &params[2])
            }
        };
        assert_eq!(message.get("method").and_then(Value::as_str), Some(method));
        assert_ne!(updates.to_bytes(), b"{}", "an empty notification");
        let schema = self.fixture.database.schema();
        replica::apply(
            &mut client.rows,
            schema,
            client.version,
            &client.columns,
            updates,
        );
    }

    fn check_session(&self, session: SessionId) {
        let is_starting = |position: usize| {
            let mut entries = self.pending.iter();
            entries.any(
                |entry| matches!(entry, Pending::Start { position: other, .. } if *other == position),
            )
        };
        for (position, client) in self.clients.iter().enumerate() {
            if client.session == session && !is_starting(position) {
                self.check(position);
            }
        }
    }

    /// Compares a replica that has applied every update.
    fn check(&self, position: usize) {
        let client = &self.clients[position];
        let mut expected = Rows::new();
        for ((table, uuid), row) in self.stored.1.clone() {
            let Some(columns) = client.columns.get(&table) else {
                continue;
            };
            if client.shows(&self.fixture, &table, &row) {
                let row: Row = row
                    .into_iter()
                    .filter(|(name, _)| columns.contains(name))
                    .collect();
                expected.insert((table, uuid), row);
            }
        }
        assert_eq!(
            client.rows, expected,
            "client {} {:?}",
            client.id, client.version
        );
    }
}

impl Client {
    fn shows(&self, fixture: &Fixture, table: &str, row: &Row) -> bool {
        let Some(clauses) = self.conditions.get(table) else {
            return true;
        };
        let schema = fixture.database.schema();
        let schema = schema.table(schema.table_id(table).expect("known"));
        let mut clauses = clauses.iter().flatten();
        clauses.any(|clause| clause.holds(schema, row))
    }
}
