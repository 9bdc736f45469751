//! Random runs with two levels of relays. Their clients and those of the source request one lock,
//! steal it, release it, and write while they believe that they own it; connections are cut and
//! servers go away. `CORVID_SEED` replays a run.
//!
//! Each write asserts the lock and inserts a unique number. Checked: while a client owns the lock
//! according to every server between it and the source, no write of another client is committed. A
//! client that gets the lock has seen every write of earlier owners. At the end one client owns the
//! lock, and each client knows whether it does.

use std::collections::BTreeMap;

use corvid_json::Value;
use corvid_monitor::SessionId;

use crate::relays::Tree;
use crate::seeds;
use crate::world::Dice;

const ACTIONS: usize = 200;
const RUNS: u64 = 60;
/// The source, two relays of it, and one relay of the first.
const SOURCES: &[&[usize]] = &[&[0], &[0], &[1]];

/// A client.
struct Claimant {
    world: usize,
    session: SessionId,
    /// The client has requested the lock and not released it.
    has_asked: bool,
    /// Whether the client owns the lock, as far as it has been told.
    believes: bool,
    /// The numbers that the client has seen.
    replica: Vec<u64>,
    /// Number of messages read.
    seen: usize,
    /// The client's requests: the number that each writes, or the method.
    asked: BTreeMap<i64, Unanswered>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unanswered {
    Lock,
    Unlock,
    Write(u64),
    Other,
}

struct Run {
    tree: Tree,
    dice: Dice,
    claimants: Vec<Claimant>,
    next: i64,
    /// The numbers at the source, in the order of their commits.
    committed: Vec<u64>,
    /// The client of each number.
    writers: BTreeMap<u64, (usize, SessionId)>,
    /// The owner of the lock at the source, and how many numbers existed when it became the owner.
    owner: (Option<SessionId>, usize),
    /// The client that certainly owned the lock at the last check.
    certain_owner: Option<(usize, SessionId)>,
    writes: usize,
    refusals: usize,
    owned_commits: usize,
    grants_checked: usize,
}

#[test]
fn one_client_of_a_tree_owns_a_lock() {
    let mut sums = [0; 4];
    let is_usual = seeds::each(RUNS, |seed| {
        for (sum, count) in sums.iter_mut().zip(Run::new(seed).run()) {
            *sum += count;
        }
    });
    println!("writes, refusals, checked writes, checked grants: {sums:?}");
    if is_usual {
        let least = [3, 1, 1, 3].map(|count| count * RUNS as usize);
        assert!(sums.iter().zip(least).all(|(sum, least)| *sum > least));
    }
}

fn is_about_locks(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let result = message.get("result").and_then(|it| it.get("locked"));
    matches!(method, Some("locked" | "stolen")) || result.is_some()
}

impl Run {
    fn new(seed: u64) -> Run {
        let tree = Tree::started_with_ids(seed, SOURCES, seed.is_multiple_of(2));
        let mut run = Run {
            tree,
            dice: Dice::new(seed),
            claimants: Vec::new(),
            next: 0,
            committed: Vec::new(),
            writers: BTreeMap::new(),
            owner: (None, 0),
            certain_owner: None,
            writes: 0,
            refusals: 0,
            owned_commits: 0,
            grants_checked: 0,
        };
        for world in [0, 1, 1, 2, 3, 3] {
            run.connect(world);
        }
        run
    }

    fn run(mut self) -> [usize; 4] {
        for _ in 0..ACTIONS {
            self.act();
        }
        self.tree.is_down.fill(false);
        self.wait(60_000);
        self.check_quiet();
        for at in 0..self.claimants.len() {
            self.write(at);
        }
        self.wait(5000);
        self.check_quiet();
        self.tree.check_idle();
        [
            self.writes,
            self.refusals,
            self.owned_commits,
            self.grants_checked,
        ]
    }

    fn act(&mut self) {
        let at = self.dice.below(self.claimants.len());
        match self.dice.below(24) {
            0 => {
                let world = 1 + self.dice.below(3);
                self.tree.cut(world);
            }
            1 => {
                let world = self.dice.below(3);
                self.tree.is_down[world] = self.dice.below(3) == 0;
            }
            2 => {
                let ms = self.dice.below(4000) as u64;
                self.wait(ms);
            }
            3 => {
                let gone = self.claimants.remove(at);
                self.tree.worlds[gone.world].disconnect(gone.session);
                self.connect(gone.world);
            }
            4..=7 => self.lock(at),
            8 | 9 => self.unlock(at),
            10..=14 => {
                if self.claimants[at].believes || self.dice.below(8) == 0 {
                    self.write(at);
                }
            }
            _ => {
                for _ in 0..self.dice.below(40) {
                    self.tree.step();
                    self.look();
                }
            }
        }
    }

    fn connect(&mut self, world: usize) {
        let session = self.tree.worlds[world].connect();
        self.claimants.push(Claimant {
            world,
            session,
            has_asked: false,
            believes: false,
            replica: Vec::new(),
            seen: 0,
            asked: BTreeMap::new(),
        });
        let at = self.claimants.len() - 1;
        self.ask(at, "set_db_change_aware", "[true]", Unanswered::Other);
        let params = r#"["A","m",{"Other":{"columns":["n"]}}]"#;
        self.ask(at, "monitor", params, Unanswered::Other);
    }

    fn ask(&mut self, at: usize, method: &str, params: &str, asked: Unanswered) {
        self.next += 1;
        let claimant = &mut self.claimants[at];
        claimant.asked.insert(self.next, asked);
        let (world, session) = (claimant.world, claimant.session);
        self.tree.worlds[world].ask(session, &self.next.to_string(), method, params);
    }

    fn lock(&mut self, at: usize) {
        if std::mem::replace(&mut self.claimants[at].has_asked, true) {
            return;
        }
        let method = ["lock", "lock", "steal"][self.dice.below(3)];
        self.ask(at, method, r#"["L"]"#, Unanswered::Lock);
    }

    fn unlock(&mut self, at: usize) {
        let is_asking = self.claimants[at]
            .asked
            .values()
            .any(|it| *it == Unanswered::Lock);
        if is_asking || !std::mem::take(&mut self.claimants[at].has_asked) {
            return;
        }
        self.claimants[at].believes = false;
        self.ask(at, "unlock", r#"["L"]"#, Unanswered::Unlock);
    }

    fn write(&mut self, at: usize) {
        let number = self.next as u64 + 1;
        let claimant = &self.claimants[at];
        self.writers
            .insert(number, (claimant.world, claimant.session));
        let insert = format!(r#"{{"op":"insert","table":"Other","row":{{"n":{number}}}}}"#);
        let params = format!(r#"["A",{{"op":"assert","lock":"L"}},{insert}]"#);
        self.ask(at, "transact", &params, Unanswered::Write(number));
    }

    fn wait(&mut self, ms: u64) {
        let end_ms = self.tree.now_ms() + ms;
        while self.tree.now_ms() < end_ms {
            while self.tree.step() {
                self.look();
            }
            let piece_ms = (end_ms - self.tree.now_ms()).min(300);
            for world in &mut self.tree.worlds {
                world.wait(piece_ms);
            }
            self.look();
        }
        while self.tree.step() {
            self.look();
        }
    }

    /// Checks everything new.
    fn look(&mut self) {
        self.look_at_owners();
        self.look_at_commits();
        for at in 0..self.claimants.len() {
            let claimant = &self.claimants[at];
            let client = &self.tree.worlds[claimant.world].clients[&claimant.session];
            assert!(client.closed.is_none(), "{:?}", client.closed);
            let news: Vec<Value> = client.received[claimant.seen..].to_vec();
            self.claimants[at].seen += news.len();
            for message in news {
                self.take(at, &message);
            }
        }
    }

    fn look_at_owners(&mut self) {
        let sessions: Vec<_> = self.tree.worlds[0].clients.keys().copied().collect();
        let locks = self.tree.worlds[0].locks.lock().expect("a lock");
        let owner = sessions.into_iter().find(|it| locks.owns(*it, "L"));
        if owner != self.owner.0 {
            self.owner = (owner, self.committed.len());
        }
    }

    fn look_at_commits(&mut self) {
        let certain = (0..self.claimants.len()).find(|at| self.is_certain(*at));
        let certain = certain.map(|at| (self.claimants[at].world, self.claimants[at].session));
        let before = std::mem::replace(&mut self.certain_owner, certain);
        let owner = certain.filter(|_| certain == before);
        let database = self.tree.worlds[0].service("A").database();
        let table = database.schema().table_named(b"Other").expect("there");
        let column = database.schema().table(table).column_named(b"n");
        let column = usize::from(column.expect("there").0);
        let rows = database.rows(table);
        let numbers = rows.filter_map(|row| row.columns[column].as_integer());
        let numbers: Vec<u64> = numbers.map(|number| number as u64).collect();
        if numbers.len() == self.committed.len() {
            return;
        }
        for number in numbers {
            if self.committed.contains(&number) {
                continue;
            }
            self.committed.push(number);
            // While the lock changes hands, the owner's last write may come in the same step.
            if let Some(owner) = owner {
                assert_eq!(owner, self.writers[&number], "{number} is of another one");
                self.owned_commits += 1;
            }
        }
    }

    /// Whether this client owns the lock according to each server on the way, with nothing in
    /// flight between them.
    fn is_certain(&mut self, at: usize) -> bool {
        let (mut world, mut session) = (self.claimants[at].world, self.claimants[at].session);
        loop {
            let locks = self.tree.worlds[world].locks.lock().expect("a lock");
            if !locks.owns(session, "L") {
                return false;
            }
            drop(locks);
            if world == 0 {
                return true;
            }
            if self.tree.has_unread(world, is_about_locks) {
                return false;
            }
            let Some(link) = self.tree.relay(world).link else {
                return false;
            };
            (world, session) = link;
        }
    }

    fn take(&mut self, at: usize, message: &Value) {
        let method = message.get("method").and_then(Value::as_str);
        match method {
            Some("update") => {
                let params = message.get("params").and_then(Value::as_array);
                self.see(at, &params.expect("an array")[1]);
            }
            Some("locked") => self.is_told(at, true),
            Some("stolen") => self.is_told(at, false),
            Some(other) => panic!("{other}"),
            None => self.answered(at, message),
        }
    }

    fn is_told(&mut self, at: usize, owns: bool) {
        let is_leaving = self.claimants[at]
            .asked
            .values()
            .any(|it| *it == Unanswered::Unlock);
        self.claimants[at].believes = owns && !is_leaving && self.claimants[at].has_asked;
        if owns && self.is_certain(at) {
            self.grants_checked += 1;
            let before = &self.committed[..self.owner.1];
            for number in before {
                let has_seen = self.claimants[at].replica.contains(number);
                assert!(has_seen, "an owner has not seen {number}");
            }
        }
    }

    fn see(&mut self, at: usize, updates: &Value) {
        let rows = updates.get("Other").and_then(Value::as_object);
        for row in rows.into_iter().flat_map(|rows| rows.values()) {
            let number = row.get("new").and_then(|new| new.get("n"));
            let number = number.and_then(Value::as_integer).expect("inserted");
            self.claimants[at].replica.push(number as u64);
        }
    }

    fn answered(&mut self, at: usize, message: &Value) {
        let id = message.get("id").and_then(Value::as_integer);
        let asked = self.claimants[at].asked.remove(&id.expect("an id"));
        let result = message.get("result");
        match asked.expect("answered once") {
            Unanswered::Lock => match result.and_then(|it| it.get("locked")?.as_bool()) {
                Some(owns) => self.is_told(at, owns),
                None => self.claimants[at].has_asked = false,
            },
            Unanswered::Unlock => {}
            Unanswered::Write(number) => {
                let results = result.and_then(Value::as_array).unwrap_or_default();
                let is_done = !results.is_empty()
                    && results.iter().all(|result| result.get("error").is_none());
                if is_done {
                    self.writes += 1;
                    assert!(self.committed.contains(&number), "{number} is lost");
                } else {
                    self.refusals += 1;
                    // A canceled write may or may not have been made.
                    let is_known = result.is_some_and(|result| result.as_array().is_some());
                    assert!(!is_known || !self.committed.contains(&number), "{message}");
                }
            }
            Unanswered::Other => {
                if let Some(contents) = result.filter(|it| it.get("Other").is_some()).cloned() {
                    self.see(at, &contents);
                }
            }
        }
    }

    fn check_quiet(&mut self) {
        let mut owners = 0;
        let mut waiting = 0;
        for claimant in &self.claimants {
            let locks = self.tree.worlds[claimant.world].locks.lock();
            let locks = locks.expect("a lock");
            let owns = locks.owns(claimant.session, "L");
            assert_eq!(owns, claimant.believes, "world {}", claimant.world);
            owners += usize::from(owns);
            waiting += locks.requested_by(claimant.session).waiting.len();
        }
        assert!(owners <= 1, "{owners} own it");
        assert!(
            owners == 1 || waiting == 0,
            "nobody owns it, and {waiting} wait"
        );
    }
}
