//! Random runs of three databases of a cluster: writers, readers and waiting clients on every
//! member. Leaders change at any moment, commits are delayed, results are lost, and clients
//! disconnect; some of them send unanswered transactions again at another member. Some runs have
//! conversions or installed snapshots.
//!
//! Checked: every request of a client that stays is answered once, in the order of sending unless
//! it may block. Each acknowledged transaction happened exactly once. No transaction happened
//! twice, or after its client was gone and its leader was lost. A reply follows its update. A
//! select returns only committed numbers, all that its session has written before, and none that it
//! has written later. UUIDs in results are those of the rows. Contents at equal indexes are equal
//! (`cluster.rs`). Nothing is left at the end. `CORVID_SEED` replays a run.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::Uuid;
use corvid_json::Value;
use corvid_monitor::{SessionId, Version};
use corvid_service::message::{Control, DatabaseMethod, Event, ToDatabase};
use corvid_service::once::Once;

use crate::cluster::{Cluster, SCHEMA};
use crate::cluster_contents::WIDER;
use crate::seeds;
use crate::world::Dice;

const RUNS: u64 = 150;
const STEPS: usize = 1500;
const MEMBERS: usize = 3;
const CLIENTS: usize = 7;

#[test]
fn each_transaction_happens_exactly_once_through_any_change_of_leadership() {
    let mut totals = Totals::default();
    let is_usual = seeds::each(RUNS, |seed| Run::new(seed).run(&mut totals));
    println!("{totals:?}");
    // The runs reach the situations that they are about.
    if is_usual {
        assert!(totals.answered > 6_000, "{totals:?}");
        assert!(totals.elections > 500, "{totals:?}");
        assert!(totals.conversions > 20, "{totals:?}");
        assert!(totals.installed > 8, "{totals:?}");
        assert!(totals.sent_again > 200, "{totals:?}");
    }
}

#[derive(Debug, Default)]
struct Totals {
    answered: usize,
    elections: usize,
    conversions: usize,
    installed: usize,
    found_committed: usize,
    found_absent: usize,
    found_unknown: usize,
    sent_again: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Adds its number to the set of row `a`, and one to the counter.
    Add,
    /// The same, followed by a `select`.
    AddAndSelect,
    /// Inserts a row with its number.
    Insert,
    Select,
    /// Waits until the counter is even, then adds.
    WaitAndAdd,
    /// Matches no row.
    Nothing,
    Other,
}

#[derive(Default)]
struct Watched {
    /// Requests in order of sending.
    asked: Vec<(u64, Kind)>,
    answered: BTreeSet<u64>,
    /// The additions among `asked` that were made.
    made: BTreeSet<u64>,
    last: Option<usize>,
    /// Numbers in the set of row `a`, according to updates.
    replica: BTreeSet<i64>,
    seen: usize,
    is_closed: bool,
    /// Requests that the client has canceled.
    canceled: BTreeSet<u64>,
    cancels: usize,
    /// The client's monitor has been canceled.
    has_lost_monitor: bool,
    /// The client's transactions have ids, so it may send them again.
    is_once: bool,
}

struct Run {
    cluster: Cluster,
    dice: Dice,
    clients: BTreeMap<SessionId, Watched>,
    kinds: BTreeMap<u64, Kind>,
    next: u64,
    acknowledged: BTreeSet<u64>,
    /// UUIDs of inserted rows by number, according to results.
    inserted: BTreeMap<u64, String>,
    /// Numbers that must not appear any more.
    over: BTreeSet<u64>,
    elections: usize,
    is_announced: bool,
    /// The run includes conversions.
    converts: bool,
    installs: bool,
    conversions: usize,
    installed: usize,
    /// Transactions that may be sent again.
    once: BTreeMap<u64, (Once, String)>,
    /// Transactions that were sent again.
    again: BTreeSet<u64>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut cluster = Cluster::new(seed, MEMBERS);
        cluster.loss = [0, 2, 4][seed as usize % 3];
        cluster.inline = seed % 2 == 1;
        let mut run = Run {
            cluster,
            dice: Dice::new(!seed),
            clients: BTreeMap::new(),
            kinds: BTreeMap::new(),
            next: 0,
            acknowledged: BTreeSet::new(),
            inserted: BTreeMap::new(),
            over: BTreeSet::new(),
            elections: 0,
            is_announced: true,
            converts: seed % 4 == 1 || seed % 8 == 3,
            installs: seed % 4 == 2 || seed % 8 == 3,
            conversions: 0,
            installed: 0,
            once: BTreeMap::new(),
            again: BTreeSet::new(),
        };
        for _ in 0..CLIENTS {
            run.connect();
        }
        run
    }

    fn connect(&mut self) -> SessionId {
        let node = self.dice.below(MEMBERS);
        let client = self.cluster.connect(node);
        let watched = Watched {
            is_once: self.dice.below(2) == 0,
            ..Watched::default()
        };
        self.clients.insert(client, watched);
        let version = [Version::V2, Version::V3][self.dice.below(2)];
        let since = match version {
            Version::V3 => r#","00000000-0000-0000-0000-000000000000""#,
            _ => "",
        };
        let params =
            format!(r#"["A","m",{{"T":{{"columns":["s"],"where":[["k","==","a"]]}}}}{since}]"#);
        self.next += 1;
        let number = self.next;
        self.kinds.insert(number, Kind::Other);
        self.watched(client).asked.push((number, Kind::Other));
        let method = DatabaseMethod::Monitor(version);
        self.cluster.ask(client, number, method, &params);
        client
    }

    /// A client loses its connection, and sends unanswered transactions again over another one.
    fn move_client(&mut self, client: SessionId) {
        let watched = self.watched(client);
        watched.is_closed = true;
        let answered = watched.answered.clone();
        let asked = watched.asked.clone();
        self.cluster.disconnect(client);
        let other = self.connect();
        self.watched(other).is_once = true;
        for (number, kind) in asked {
            if answered.contains(&number) {
                continue;
            }
            if let Some((once, operations)) = self.once.get(&number).cloned() {
                self.again.insert(number);
                self.watched(other).asked.push((number, kind));
                self.cluster.transact_once(other, number, &operations, once);
            }
        }
    }

    fn watched(&mut self, client: SessionId) -> &mut Watched {
        self.clients.get_mut(&client).expect("watched")
    }

    fn transact(&mut self, client: SessionId) {
        self.next += 1;
        let number = self.next;
        let add = format!(
            r#"{{"op":"mutate","table":"T","where":[["k","==","a"]],"mutations":[["n","+=",1],["s","insert",{number}]]}}"#
        );
        let select = r#"{"op":"select","table":"T","where":[["k","==","a"]],"columns":["n","s"]}"#;
        let (kind, operations) = match self.dice.below(12) {
            0..3 => (Kind::Add, add),
            3 => (Kind::AddAndSelect, format!("{add},{select}")),
            4 => {
                let insert = format!(r#"{{"op":"insert","table":"Log","row":{{"id":{number}}}}}"#);
                (Kind::Insert, insert)
            }
            5 => {
                let row = format!(r#"{{"k":"{}","n":{number}}}"#, self.dice.below(4));
                let insert = format!(r#"{{"op":"insert","table":"T","row":{row}}}"#);
                (Kind::Other, insert)
            }
            6 => {
                let wait = format!(
                    r#"{{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["n"],"until":"!=","rows":[{{"n":{}}}]}}"#,
                    self.dice.below(40)
                );
                (Kind::WaitAndAdd, format!("{wait},{add}"))
            }
            7 | 8 => {
                let delete = r#"{"op":"delete","table":"T","where":[["k","==","none"]]}"#;
                (Kind::Nothing, delete.to_owned())
            }
            _ => (Kind::Select, select.to_owned()),
        };
        self.kinds.insert(number, kind);
        self.watched(client).asked.push((number, kind));
        let writes = !matches!(kind, Kind::Select | Kind::Other);
        if writes && self.watched(client).is_once {
            let id = Uuid(u128::from(number << 8 | 0xb7).to_be_bytes());
            let seen = self.cluster.seen_at(self.cluster.sessions[&client].node);
            let once = Once::sent(id, Some(seen));
            self.once.insert(number, (once, operations.clone()));
            let first = Once::sent(id, Some(seen).filter(|_| number.is_multiple_of(2)));
            self.cluster
                .transact_once(client, number, &operations, first);
        } else {
            self.cluster.transact(client, number, &operations);
        }
    }

    /// Requests the schema, or another monitor.
    fn ask_other(&mut self, client: SessionId) {
        self.next += 1;
        let number = self.next;
        self.kinds.insert(number, Kind::Other);
        self.watched(client).asked.push((number, Kind::Other));
        if self.dice.below(3) == 0 {
            let method = DatabaseMethod::GetSchema;
            self.cluster.ask(client, number, method, r#"["A"]"#);
        } else {
            let params = format!(r#"["A","m{number}",{{"Log":{{"columns":["id"]}}}}]"#);
            let method = DatabaseMethod::Monitor(Version::V2);
            self.cluster.ask(client, number, method, &params);
        }
    }

    /// The transactions of disconnected clients cannot happen any more, unless the new leader's log
    /// has them.
    fn give_up_ended(&mut self) {
        let appended = self.cluster.appended_numbers();
        for (id, watched) in &self.clients {
            if watched.is_closed && self.cluster.has_ended(*id) {
                let numbers = watched.asked.iter().map(|(number, _)| *number);
                let over = numbers.filter(|it| !appended.contains(it) && !self.again.contains(it));
                self.over.extend(over);
            }
        }
    }

    fn run(mut self, totals: &mut Totals) {
        for _ in 0..STEPS {
            self.act();
            self.disconnect_unknown();
            self.check_messages();
        }
        // The cluster is healed.
        let leader = self.dice.below(MEMBERS);
        for node in &mut self.cluster.nodes {
            node.is_paused = false;
            node.is_cut = false;
        }
        self.cluster.elect(leader);
        self.give_up_ended();
        self.cluster.announce();
        self.cluster.run();
        self.disconnect_unknown();
        self.cluster.run();
        // One more commit satisfies every wait for the counter.
        let last = self.cluster.connect(leader);
        let add = r#"{"op":"mutate","table":"T","where":[["k","==","a"]],"mutations":[["n","+=",1],["s","insert",-1]]}"#;
        self.cluster.transact(last, 0, add);
        self.cluster.run();
        self.cluster.take(last);
        self.check_messages();
        self.check_end();
        totals.answered += self.acknowledged.len();
        totals.elections += self.elections;
        totals.conversions += self.conversions;
        totals.installed += self.installed;
        totals.found_committed += self.cluster.findings.committed;
        totals.found_absent += self.cluster.findings.absent;
        totals.found_unknown += self.cluster.findings.unknown;
        totals.sent_again += self.again.len();
    }

    fn act(&mut self) {
        let clients: Vec<SessionId> = self.clients.keys().copied().collect();
        let client = clients[self.dice.below(clients.len())];
        let is_open = !self.clients[&client].is_closed;
        match self.dice.below(200) {
            0..40 if is_open => self.transact(client),
            40 if is_open && clients.len() < 30 => {
                self.watched(client).is_closed = true;
                self.cluster.disconnect(client);
                self.connect();
            }
            41 if is_open => {
                let asked = &self.clients[&client].asked;
                let number = asked[self.dice.below(asked.len())].0;
                self.watched(client).canceled.insert(number);
                self.watched(client).cancels += 1;
                self.cluster.cancel(client, number);
            }
            42 => {
                self.cluster.depose();
                self.is_announced = false;
                if self.dice.below(2) == 0 {
                    self.cluster.announce();
                }
            }
            43..45 if self.cluster.leader.is_none() || self.dice.below(5) == 0 => {
                let node = self.dice.below(MEMBERS);
                self.cluster.elect(node);
                self.give_up_ended();
                self.elections += 1;
                self.is_announced = false;
            }
            45..50 if !self.is_announced => {
                self.cluster.announce();
                self.is_announced = true;
            }
            50 => {
                let node = self.dice.below(MEMBERS);
                let node = &mut self.cluster.nodes[node];
                node.is_paused = !node.is_paused;
            }
            51 => {
                let node = self.dice.below(MEMBERS);
                let compact = ToDatabase::Control(Control::Compact(None));
                self.cluster.nodes[node].inbox.push_back(compact);
            }
            52 => self.cluster.now_ms += 1,
            53 if self.converts && is_open && self.dice.below(3) == 0 => {
                self.next += 1;
                let number = self.next;
                self.kinds.insert(number, Kind::Other);
                self.watched(client).asked.push((number, Kind::Other));
                let schema = [SCHEMA, WIDER][self.dice.below(2)];
                let params = format!(r#"["A",{schema}]"#);
                let method = DatabaseMethod::Convert;
                self.cluster.ask(client, number, method, &params);
                self.conversions += 1;
            }
            54 if self.installs => self.install(),
            57 if self.installs => {
                let node = self.dice.below(MEMBERS);
                let node = &mut self.cluster.nodes[node];
                node.is_cut = !node.is_cut;
            }
            55 | 56 if is_open => self.ask_other(client),
            58 if is_open && clients.len() < 30 && self.clients[&client].is_once => {
                self.move_client(client);
            }
            _ => self.cluster.step(),
        }
    }

    /// A follower installs a member's snapshot, if it is newer.
    fn install(&mut self) {
        let node = self.dice.below(MEMBERS);
        let from = self.dice.below(MEMBERS);
        if from == node || !self.cluster.may_install(node) {
            return;
        }
        let installed = self.cluster.snapshot_of(from);
        if installed.index.0 <= self.cluster.told(node) {
            return;
        }
        self.cluster.install(node, installed);
        self.installed += 1;
    }

    /// Disconnects the clients whose outcomes no member knows.
    fn disconnect_unknown(&mut self) {
        for node in &mut self.cluster.nodes {
            for event in node.events.drain(..) {
                if let Event::OutcomeUnknown(session, _) = event
                    && let Some(watched) = self.clients.get_mut(&session)
                {
                    watched.is_closed = true;
                }
            }
        }
        let sessions = self.clients.iter();
        let gone = sessions
            .filter(|(id, watched)| watched.is_closed && !self.cluster.sessions[*id].is_closed);
        let gone: Vec<SessionId> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.cluster.disconnect(id);
        }
    }

    fn check_messages(&mut self) {
        let committed = self.cluster.committed_numbers();
        for (id, watched) in &mut self.clients {
            let session = &self.cluster.sessions[id];
            let messages = &session.received[watched.seen..];
            watched.seen = session.received.len();
            for message in messages {
                let text = String::from_utf8_lossy(&message.to_bytes()).into_owned();
                if message.get("method").and_then(Value::as_str) == Some("monitor_canceled") {
                    watched.has_lost_monitor = true;
                    continue;
                }
                if message.get("method").is_some() {
                    replay(&mut watched.replica, message);
                    continue;
                }
                let number = message.get("id").and_then(Value::as_integer);
                let number = u64::try_from(number.expect("a reply")).expect("ours");
                let kind = self.kinds[&number];
                assert!(watched.answered.insert(number), "answered twice: {text}");
                let at = watched.asked.iter().position(|(asked, _)| *asked == number);
                let at = at.expect("asked");
                let is_canceled = text.contains("\"canceled\"");
                if is_canceled {
                    // A conversion cancels blocked transactions. A leader that has installed a
                    // snapshot does not know the commits in it.
                    let is_unknown = self.installs && self.once.contains_key(&number);
                    assert!(
                        watched.canceled.contains(&number) || self.converts || is_unknown,
                        "{text}"
                    );
                    continue;
                }
                if kind != Kind::WaitAndAdd {
                    assert!(
                        watched.last.is_none_or(|last| last < at),
                        "out of order: {text}, of {:?}",
                        watched.asked,
                    );
                    watched.last = Some(at);
                }
                let Some(results) = message.get("result").and_then(Value::as_array) else {
                    assert_eq!(kind, Kind::Other, "{text}");
                    if let Some(result) = message.get("result") {
                        replay_rows(&mut watched.replica, result);
                    }
                    continue;
                };
                if kind == Kind::Nothing {
                    assert!(text.contains("\"count\":0"), "{text}");
                }
                if at == 0 {
                    // The reply to the monitor request.
                    replay_rows(&mut watched.replica, &results[results.len() - 1]);
                    continue;
                }
                // A closed session has no monitor.
                let has_monitor = watched.answered.contains(&watched.asked[0].0)
                    && !watched.is_closed
                    && !watched.has_lost_monitor;
                if matches!(kind, Kind::Add | Kind::AddAndSelect | Kind::WaitAndAdd) {
                    assert!(text.contains("\"count\":1"), "{text}");
                    self.acknowledged.insert(number);
                    watched.made.insert(number);
                    assert!(committed.contains(&number), "answered early: {text}");
                    let own = i64::try_from(number).expect("small");
                    assert!(
                        !has_monitor || watched.replica.contains(&own),
                        "update behind {text}"
                    );
                }
                if kind == Kind::Insert {
                    let uuid = results[0].get("uuid").expect("a row").to_bytes();
                    let uuid = String::from_utf8_lossy(&uuid).into_owned();
                    let before = self.inserted.insert(number, uuid.clone());
                    assert!(
                        before.is_none_or(|it| it == uuid),
                        "another row of {number}"
                    );
                }
                if matches!(kind, Kind::Select | Kind::AddAndSelect) {
                    let rows = results[results.len() - 1].get("rows").expect("rows");
                    let found = numbers(rows);
                    for number in &found {
                        assert!(committed.contains(number), "not committed: {text}");
                        let signed = i64::try_from(*number).expect("small");
                        let is_told = watched.replica.contains(&signed);
                        assert!(!has_monitor || is_told, "update behind {text}");
                    }
                    // A transaction that one leader did not know was canceled, and may be executed
                    // when it is sent to another.
                    let may_be_late = |it: &u64| self.installs && self.once.contains_key(it);
                    let is_ordered = !may_be_late(&number);
                    for (earlier, kind) in &watched.asked[..at] {
                        let is_add = matches!(kind, Kind::Add | Kind::AddAndSelect);
                        if is_add
                            && watched.made.contains(earlier)
                            && is_ordered
                            && !may_be_late(earlier)
                        {
                            assert!(found.contains(earlier), "{earlier} is not in {text}");
                        }
                    }
                    for (later, kind) in &watched.asked[at + 1..] {
                        let is_later = *kind != Kind::WaitAndAdd && is_ordered;
                        assert!(!is_later || !found.contains(later), "{later} is in {text}");
                    }
                }
            }
        }
    }

    fn check_end(&mut self) {
        self.cluster.check_equal();
        let committed = self.cluster.committed_numbers();
        for number in &self.acknowledged {
            assert!(committed.contains(number), "{number} is lost");
        }
        for number in &self.over {
            let message = "happened after its client had gone";
            assert!(!committed.contains(number), "{number} {message}");
        }
        let contents = self.cluster.contents(0);
        let row = contents
            .iter()
            .find(|row| row.contains("\"a\"") || row.contains("(a)"));
        let row = row.unwrap_or_else(|| panic!("no row a in {contents:#?}"));
        let counter = row.split("n=").nth(1).expect("a counter");
        let digits: String = counter
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        // Every addition puts a different number into the set, so the counter reveals any that
        // happened twice.
        assert_eq!(digits.parse(), Ok(committed.len() + 1), "{row}");
        for (number, uuid) in &self.inserted {
            let uuid = uuid
                .split('"')
                .find(|part| part.len() == 36)
                .expect("a UUID");
            let rows = contents.iter().filter(|row| row.contains(uuid));
            assert_eq!(rows.count(), 1, "row of {number}");
        }
        for (id, watched) in &self.clients {
            if watched.is_closed {
                continue;
            }
            for (number, _) in &watched.asked {
                assert!(
                    watched.answered.contains(number),
                    "{number} of {id:?} has no reply"
                );
            }
            let session = &self.cluster.sessions[id];
            let expected = watched.asked.len() + watched.cancels;
            assert_eq!(session.completed, expected, "of {id:?}");
        }
        for id in self.clients.keys().copied().collect::<Vec<_>>() {
            if !self.clients[&id].is_closed {
                self.cluster.disconnect(id);
            }
        }
        let last: Vec<SessionId> = self.cluster.sessions.keys().copied().collect();
        for id in last {
            if !self.cluster.sessions[&id].is_closed {
                self.cluster.disconnect(id);
            }
        }
        self.cluster.run();
        for node in &self.cluster.nodes {
            assert!(node.pump.service().is_idle(), "something is left");
        }
    }
}

/// The integers of a set in wire notation.
fn numbers(value: &Value) -> BTreeSet<u64> {
    let text = String::from_utf8_lossy(&value.to_bytes()).into_owned();
    let set = text.split("\"s\":").nth(1).unwrap_or_default();
    let set = set.split('}').next().unwrap_or_default();
    let digits = set.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Applies an update: rows with initial contents, or differences of the set.
fn replay(replica: &mut BTreeSet<i64>, message: &Value) {
    let params = message.get("params").and_then(Value::as_array);
    let params = params.expect("an update");
    replay_rows(replica, &params[params.len() - 1]);
}

fn replay_rows(replica: &mut BTreeSet<i64>, tables: &Value) {
    let is_whole = |text: &str| text.contains("\"initial\"");
    let text = String::from_utf8_lossy(&tables.to_bytes()).into_owned();
    let changed = numbers(tables);
    let changed = changed
        .iter()
        .map(|number| i64::try_from(*number).expect("small"));
    if is_whole(&text) {
        replica.extend(changed);
        return;
    }
    // A difference of sets contains the elements of only one version; nothing is removed here.
    replica.extend(changed);
}
