//! Backups: two worlds, one with the source and one with its backup, and the bytes between them.

use std::collections::BTreeSet;

use corvid_data::Uuid;
use corvid_json::{Pieces, Value};
use corvid_monitor::SessionId;
use corvid_service::message::{Control, ControlAnswer, Event, ToDatabase};
use corvid_service::remote_status::{RemoteStatus, RemoteStatuses};
use corvid_service::replication::{
    Exclusions, Following, ReplicationStatus, Role, SourceEvent, SourceId, SourceOrder,
};

use crate::databases::wider_schema;
use crate::relay_once::last_commit;
use crate::world::{Dice, World};

/// Orders of events per play.
const SEEDS: u64 = 40;

/// A source, its backup, and the connection between them.
struct Pair {
    source: World,
    backup: World,
    id: SourceId,
    session: Option<SessionId>,
    connections: u64,
    /// Messages of the source that have been passed on.
    passed: usize,
    /// Bytes of messages that the backup has not consumed.
    untaken: usize,
    /// Number of orders to rest.
    rests: usize,
}

impl Pair {
    fn new(seed: u64, excluded: &str) -> Pair {
        let mut pair = Pair {
            source: World::new(seed),
            backup: World::new(seed + 1000),
            id: SourceId(0),
            session: None,
            connections: 0,
            passed: 0,
            untaken: 0,
            rests: 0,
        };
        pair.begin_backup(excluded);
        pair
    }

    /// Makes the second world's database a new backup.
    fn begin_backup(&mut self, excluded: &str) {
        self.cut();
        self.id = SourceId(self.id.0 + 1);
        let following = Following {
            id: self.id,
            excluded: Exclusions::of("A", excluded),
            server_id: Uuid([9; 16]),
        };
        self.set_role(Role::Backup(Box::new(following)));
    }

    fn set_role(&mut self, role: Role) {
        let id = self.backup.id("A");
        let order = Control::SetRole(role, 1);
        self.backup.post(id, ToDatabase::Control(order));
    }

    fn tell(&mut self, event: SourceEvent) {
        let id = self.backup.id("A");
        self.backup.post(id, ToDatabase::Source(self.id, event));
    }

    fn connect(&mut self) {
        self.session = Some(self.source.connect());
        self.passed = 0;
        self.untaken = 0;
        self.connections += 1;
        self.tell(SourceEvent::Connected(self.connections));
    }

    /// Cuts the connection.
    fn cut(&mut self) {
        if let Some(session) = self.session.take() {
            if !self.source.clients[&session].is_gone {
                self.source.disconnect(session);
            }
            self.tell(SourceEvent::Disconnected);
        }
    }

    /// Carries bytes until none are left.
    fn run(&mut self) {
        loop {
            self.source.run();
            self.backup.run();
            if !self.pass() {
                return;
            }
        }
    }

    fn pass(&mut self) -> bool {
        let mut is_busy = false;
        let id = self.id;
        let orders = std::mem::take(&mut self.backup.served("A").source_orders);
        for (of, connection, order) in orders {
            is_busy = true;
            if (of, connection) != (id, self.connections) {
                continue;
            }
            match order {
                SourceOrder::Send(text) => {
                    let text = String::from_utf8(text).expect("text");
                    if let Some(session) = self.session {
                        self.source.send(session, &text);
                    }
                }
                SourceOrder::Consumed(bytes) => self.untaken = self.untaken.saturating_sub(bytes),
                SourceOrder::Reconnect => {
                    self.cut();
                    self.connect();
                }
                SourceOrder::Rest => {
                    self.rests += 1;
                    self.cut();
                }
            }
        }
        let Some(session) = self.session else {
            return is_busy;
        };
        let client = &self.source.clients[&session];
        let texts: Vec<Vec<u8>> = client.received[self.passed..]
            .iter()
            .map(Value::to_bytes)
            .collect();
        let is_lost = client.closed.is_some();
        self.passed += texts.len();
        for text in texts {
            is_busy = true;
            self.untaken += text.len();
            self.tell(SourceEvent::Message(Pieces::from(text)));
        }
        if is_lost {
            is_busy = true;
            self.cut();
            self.connect();
        }
        is_busy
    }

    fn write(&mut self, operations: &str) {
        let client = self.source.connect();
        self.source.transact(client, "1", "A", operations);
        self.source.run();
        self.source.disconnect(client);
    }

    fn standing(&mut self) -> Option<ReplicationStatus> {
        let id = self.backup.id("A");
        self.backup.events.clear();
        let report = ToDatabase::Control(Control::Report(7));
        self.backup.post(id, report);
        self.backup.run();
        let mut events = self.backup.events.iter();
        events.find_map(|event| match event {
            Event::Answered(7, ControlAnswer::Report(report)) => Some(report.replication),
            _ => None,
        })?
    }

    fn check_equal(&mut self) {
        assert_eq!(self.backup.contents("A"), self.source.contents("A"));
        assert_eq!(self.untaken, 0, "every text is worked off");
    }

    fn check_idle(mut self) {
        self.cut();
        self.source.check_idle();
        self.backup.check_idle();
    }
}

fn insert(key: &str, number: i64) -> String {
    format!(r#"{{"op":"insert","table":"T","row":{{"k":"{key}","n":{number}}}}}"#)
}

#[test]
fn a_backup_equals_its_source_after_disconnections() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.write(&insert("a", 1));
        pair.connect();
        for _ in 0..seed % 7 {
            pair.source.run();
            pair.backup.run();
            pair.pass();
        }
        pair.write(&[insert("b", 2), insert("c", 3)].join(","));
        pair.write(r#"{"op":"delete","table":"T","where":[["k","==","a"]]}"#);
        if seed % 3 == 0 {
            pair.cut();
            pair.write(&insert("while-cut", 4));
            pair.connect();
        }
        pair.run();
        pair.check_equal();
        assert_eq!(pair.standing(), Some(ReplicationStatus::Replicating));
        pair.write(r#"{"op":"mutate","table":"T","where":[],"mutations":[["n","*=",3]]}"#);
        // Two rows swap their keys: this is valid only as a whole.
        pair.write(
            r#"{"op":"update","table":"T","where":[["k","==","b"]],"row":{"k":"x"}},
               {"op":"update","table":"T","where":[["k","==","c"]],"row":{"k":"b"}},
               {"op":"update","table":"T","where":[["k","==","x"]],"row":{"k":"c"}}"#,
        );
        pair.run();
        pair.check_equal();
        pair.cut();
        pair.run();
        assert_eq!(pair.standing(), Some(ReplicationStatus::Lost));
        pair.check_idle();
    }
}

/// A random operation on the table `T`, which may fail.
fn anything(dice: &mut Dice) -> String {
    let (key, number) = (dice.below(12), dice.below(100));
    match dice.below(5) {
        0 | 1 => insert(&format!("k{key}"), number as i64),
        2 => format!(r#"{{"op":"delete","table":"T","where":[["k","==","k{key}"]]}}"#),
        3 => {
            format!(
                r#"{{"op":"update","table":"T","where":[["n","<",{number}]],"row":{{"n":{key}}}}}"#
            )
        }
        _ => r#"{"op":"mutate","table":"T","where":[],"mutations":[["n","+=",1]]}"#.to_owned(),
    }
}

#[test]
fn a_backup_equals_its_source_after_random_events() {
    let mut looks = 0;
    for seed in 0..SEEDS * 5 {
        println!("seed {seed}");
        let mut dice = Dice::new(seed);
        let mut pair = Pair::new(seed, "");
        let (mut is_backup, mut written) = (true, 0);
        let (writer, mut is_asked) = (pair.source.connect(), false);
        let mut history = BTreeSet::from([pair.source.contents("A")]);
        for _ in 0..120 {
            match dice.below(32) {
                // One at a time, so that the backup sees every state.
                0..=3 if !is_asked || !pair.source.take(writer).is_empty() => {
                    let operations = anything(&mut dice);
                    pair.source.transact(writer, "1", "A", &operations);
                    is_asked = true;
                }
                4 => pair.cut(),
                5 | 6 if is_backup && pair.session.is_none() => pair.connect(),
                7 => {
                    pair.begin_backup("");
                    is_backup = true;
                }
                8 => {
                    pair.cut();
                    pair.set_role(Role::Active);
                    is_backup = false;
                }
                9 => {
                    let client = pair.backup.connect();
                    let operations = anything(&mut dice);
                    // Both worlds count their UUIDs, but rows of two servers must never share one.
                    written += 1;
                    let own =
                        format!(r#""op":"insert","uuid":"00000000-0000-4000-9000-{written:012x}""#);
                    let operations = operations.replace(r#""op":"insert""#, &own);
                    pair.backup.transact(client, "1", "A", &operations);
                }
                10 => pair.backup.disk("A").failures = 1,
                11 => pair.backup.served("A").is_worker_held = dice.below(2) == 0,
                13 => pair.backup.disk("A").is_held = dice.below(2) == 0,
                12 => {
                    let id = pair.backup.id("A");
                    let compact = Control::Compact(Some(dice.below(1000) as u64));
                    pair.backup.post(id, ToDatabase::Control(compact));
                }
                _ => {
                    for _ in 0..dice.below(60) {
                        match dice.below(5) {
                            0 => drop(pair.pass()),
                            1 | 2 => {
                                pair.source.step();
                                history.insert(pair.source.contents("A"));
                            }
                            _ => drop(pair.backup.step()),
                        }
                        // A backup that once had all contents holds a state that the source had at
                        // some time.
                        let standing = pair.backup.service("A").report().replication;
                        if matches!(
                            standing,
                            Some(ReplicationStatus::Replicating | ReplicationStatus::Lost)
                        ) {
                            let contents = pair.backup.contents("A");
                            assert!(history.contains(&contents), "{contents:#?}");
                            looks += 1;
                        }
                    }
                }
            }
        }
        pair.backup.disk("A").failures = 0;
        pair.backup.disk("A").is_held = false;
        pair.backup.served("A").is_worker_held = false;
        if !is_backup {
            pair.begin_backup("");
        }
        if pair.session.is_none() {
            pair.connect();
        }
        pair.run();
        assert_eq!(
            pair.standing(),
            Some(ReplicationStatus::Replicating),
            "seed {seed}"
        );
        assert_eq!(pair.rests, 0, "seed {seed}");
        pair.check_equal();
        pair.check_idle();
    }
    assert!(looks > 1000, "only {looks}");
}

#[test]
fn clients_read_and_wait_on_a_backup_and_write_when_it_is_active() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.connect();
        pair.run();
        let client = pair.backup.connect();
        let wait = r#"{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["n"],"until":"==","rows":[{"n":1}]}"#;
        pair.backup.transact(client, "1", "A", wait);
        pair.backup.transact(client, "2", "A", &insert("b", 1));
        pair.backup.ask(client, "3", "lock", r#"["l"]"#);
        pair.backup.ask(
            client,
            "4",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("A")),
        );
        pair.backup.run();
        let said = pair.backup.take(client);
        let refusal = "insert operation not allowed when database server is in read only mode";
        assert!(
            said.contains(refusal) && said.contains(r#"{"locked":true}"#),
            "{said}"
        );
        assert!(said.contains("conversion is not allowed for read-only database A"));
        pair.write(&insert("a", 1));
        pair.run();
        assert!(pair.backup.take(client).contains(r#""id":1,"result":[{}]"#));
        pair.set_role(Role::Active);
        pair.backup.transact(client, "5", "A", &insert("b", 1));
        pair.backup.run();
        assert!(
            pair.backup
                .take(client)
                .contains(r#""id":5,"result":[{"uuid""#)
        );
        // Messages of the old source are ignored.
        pair.write(&insert("c", 1));
        pair.run();
        assert_eq!(pair.backup.contents("A").len(), 2);
        pair.untaken = 0;
        pair.check_idle();
    }
}

#[test]
fn a_conversion_at_the_source_is_replicated_or_refused() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.write(&insert("a", 1));
        pair.connect();
        pair.run();
        let client = pair.source.connect();
        let convert = format!(r#"["A",{}]"#, wider_schema("A"));
        pair.source.ask(client, "1", "convert", &convert);
        pair.run();
        assert_eq!(pair.standing(), Some(ReplicationStatus::Failed));
        assert_eq!((pair.rests, pair.session), (1, None));
        assert_eq!(pair.backup.contents("A").len(), 1, "it keeps what it has");
        // Once active, it can be converted too, and then become a backup again.
        pair.set_role(Role::Active);
        let client = pair.backup.connect();
        pair.backup.ask(client, "1", "convert", &convert);
        pair.backup.run();
        pair.begin_backup("");
        pair.connect();
        pair.write(&insert("b", 1));
        pair.run();
        pair.check_equal();
        assert_eq!(pair.standing(), Some(ReplicationStatus::Replicating));
        pair.check_idle();
    }
}

#[test]
fn a_conversion_of_a_database_that_becomes_a_backup_is_given_up() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.set_role(Role::Active);
        pair.backup.run();
        pair.backup.served("A").is_worker_held = true;
        let client = pair.backup.connect();
        let convert = format!(r#"["A",{}]"#, wider_schema("A"));
        pair.backup.ask(client, "1", "convert", &convert);
        pair.backup.run();
        pair.begin_backup("");
        pair.backup.run();
        let said = pair.backup.take(client);
        assert!(
            said.contains("conversion is not allowed for read-only database A"),
            "{said}"
        );
        pair.backup.served("A").is_worker_held = false;
        pair.connect();
        pair.run();
        pair.check_equal();
        pair.check_idle();
    }
}

/// The copy names a commit that the backup has told its clients, so it may be known to the source.
#[test]
fn a_transaction_of_the_source_is_not_executed_again_after_a_fail_over() {
    let once =
        |id: &str, after: &str, key: &str| format!(r#"["{id}",{after},["A",{}]]"#, insert(key, 1));
    let [first, second] =
        ["5e10", "5e11"].map(|it| format!("{it}3c9a-0000-4a00-9c66-2f0d8e5b7a11"));
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.write(&insert("a", 1));
        pair.connect();
        pair.run();
        let seen = format!("\"{}\"", last_commit(&mut pair.backup));
        let client = pair.source.connect();
        let params = once(&first, "null", "b");
        pair.source.ask(client, "1", "transact_once", &params);
        let copy = once(&first, &seen, "b");
        let other = pair.backup.connect();
        pair.backup.ask(other, "1", "transact_once", &copy);
        pair.run();
        pair.set_role(Role::Active);
        let last = format!("\"{}\"", last_commit(&mut pair.backup));
        pair.backup.ask(other, "2", "transact_once", &copy);
        let params = once(&second, &last, "c");
        pair.backup.ask(other, "3", "transact_once", &params);
        pair.backup.run();
        let said = pair.backup.take(other);
        for id in [1, 2] {
            let canceled = format!(r#"{{"error":"canceled","id":{id}}}"#);
            assert!(said.contains(&canceled), "{said}");
        }
        assert!(said.contains(r#""id":3,"result":[{"uuid""#), "{said}");
        assert_eq!(pair.backup.contents("A").len(), 3);
        pair.untaken = 0;
        pair.check_idle();
    }
}

#[test]
fn excluded_tables_are_not_changed() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "A:Other");
        let other = r#"{"op":"insert","table":"Other","row":{"n":1}}"#;
        pair.write(&[&insert("a", 1), other].map(String::from).join(","));
        pair.connect();
        pair.run();
        assert_eq!(pair.backup.contents("A").len(), 1);
        pair.write(other);
        pair.write(r#"{"op":"update","table":"T","where":[],"row":{"n":5}}"#);
        pair.run();
        let rows = pair.backup.contents("A");
        assert!(rows.len() == 1 && rows[0].starts_with("T "), "{rows:?}");
        pair.begin_backup("");
        pair.connect();
        pair.run();
        pair.check_equal();
        pair.check_idle();
    }
}

#[test]
fn changes_that_cannot_be_stored_are_fetched_again() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.connect();
        pair.run();
        pair.backup.disk("A").failures = 1;
        pair.write(&insert("a", 1));
        pair.write(&insert("b", 1));
        pair.run();
        pair.check_equal();
        assert_eq!(pair.standing(), Some(ReplicationStatus::Replicating));
        pair.check_idle();
    }
}

#[test]
fn the_server_writes_no_status_into_rows_of_a_backup() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, "");
        pair.write(
            r#"{"op":"insert","table":"Connection","uuid-name":"c","row":{"target":"tcp:x"}},
               {"op":"insert","table":"Global","row":{"connections":["named-uuid","c"]}}"#,
        );
        pair.connect();
        pair.run();
        let id = pair.backup.id("A");
        let follow = Control::WatchColumn {
            name: "db:A,Global,connections".to_owned(),
            table: "Global".to_owned(),
            column: "connections".to_owned(),
            texts_only: false,
        };
        let connected = RemoteStatus {
            is_connected: true,
            ..RemoteStatus::default()
        };
        let statuses = RemoteStatuses::from([("tcp:x".to_owned(), connected)]);
        for order in [follow, Control::ShowStatus(statuses.into())] {
            pair.backup.post(id, ToDatabase::Control(order));
        }
        pair.run();
        pair.check_equal();
        pair.check_idle();
    }
}
