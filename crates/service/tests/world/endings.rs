//! A rewrite of a file, and an event that ends the database or overtakes the rewrite: each request
//! that waits for the file gets one reply, and nothing is left behind. Covers all pairs of a
//! rewrite and an event, at every stage of the new file, under many orders of events.

use corvid_monitor::SessionId;
use corvid_service::message::{Control, ControlAnswer, Event, ToDatabase};

use crate::databases::wider_schema;
use crate::disk::Stage;
use crate::world::World;

/// Orders of events per pair and stage.
const SEEDS: u64 = 24;

/// The first use of the file of `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    CompactOne,
    CompactAll,
    Convert,
    Snapshot,
}

/// The event that overtakes the first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    Remove,
    Exit,
    Convert,
    Compact,
    FailedSwap,
}

/// How far the first use has come by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// No machine has handled it.
    Asked,
    /// A conversion has its job.
    AtWork,
    File(Stage),
}

const FIRSTS: [First; 4] = [
    First::CompactOne,
    First::CompactAll,
    First::Convert,
    First::Snapshot,
];

const SECONDS: [Second; 5] = [
    Second::Remove,
    Second::Exit,
    Second::Convert,
    Second::Compact,
    Second::FailedSwap,
];

const MOMENTS: [Moment; 7] = [
    Moment::Asked,
    Moment::AtWork,
    Moment::File(Stage::Writing),
    Moment::File(Stage::Written),
    Moment::File(Stage::Swapping),
    Moment::File(Stage::InPlace),
    Moment::File(Stage::Lasting),
];

#[test]
fn every_request_that_waits_for_a_file_gets_one_reply() {
    for first in FIRSTS {
        for second in SECONDS {
            for moment in MOMENTS {
                let can_be = match (first, moment) {
                    (First::Snapshot, _) => moment == Moment::Asked,
                    (_, Moment::AtWork) => first == First::Convert,
                    _ => true,
                };
                for seed in 0..if can_be { SEEDS } else { 0 } {
                    Pair::new(seed, (first, second, moment)).act();
                }
            }
        }
    }
}

/// One pair under one order of events.
struct Pair {
    world: World,
    /// Description for panic messages.
    what: String,
    first: First,
    second: Second,
    moment: Moment,
    askers: [SessionId; 2],
    /// Tokens of control commands without a reply.
    tokens: Vec<u64>,
}

impl Pair {
    fn new(seed: u64, (first, second, moment): (First, Second, Moment)) -> Pair {
        let mut world = World::new(seed);
        let askers = [world.connect_aware(), world.connect_aware()];
        Pair {
            world,
            what: format!("{first:?} at {moment:?}, then {second:?}, seed {seed}"),
            first,
            second,
            moment,
            askers,
            tokens: Vec::new(),
        }
    }

    fn act(mut self) {
        self.insert("x", "early");
        self.world.run();
        self.begin();
        self.insert("y", "meanwhile");
        self.wait_for_moment();
        self.come_upon();
        self.world.run();
        self.check();
    }

    /// A commit that also expects a reply.
    fn insert(&mut self, id: &str, key: &str) {
        let operations = format!(
            r#"{{"op":"insert","table":"T","row":{{"k":"{key}"}}}},{{"op":"commit","durable":true}}"#
        );
        let id = format!("\"{id}\"");
        self.world.transact(self.askers[1], &id, "A", &operations);
    }

    fn compact(&mut self, database: &str) {
        let token = 7 + self.tokens.len() as u64;
        self.tokens.push(token);
        let id = self.world.id(database);
        let order = Control::Compact(Some(token));
        self.world.post(id, ToDatabase::Control(order));
    }

    fn convert(&mut self, asker: usize) {
        let params = format!(r#"["A",{}]"#, wider_schema("A"));
        self.world
            .ask(self.askers[asker], r#""convert""#, "convert", &params);
    }

    fn begin(&mut self) {
        match self.first {
            First::CompactOne => self.compact("A"),
            First::CompactAll => {
                self.compact("A");
                self.compact("B");
            }
            First::Convert => self.convert(0),
            First::Snapshot => {
                self.tokens.push(7);
                let id = self.world.id("A");
                let order = Control::Snapshot(7);
                self.world.post(id, ToDatabase::Control(order));
            }
        }
    }

    fn wait_for_moment(&mut self) {
        let id = self.world.id("A");
        match self.moment {
            Moment::Asked => {}
            Moment::AtWork => self
                .world
                .run_until(|world| !world.databases[&id].jobs.is_empty()),
            Moment::File(stage) => self.world.run_until(|world| {
                let disk = world.databases[&id].disk.as_ref();
                disk.is_some_and(|disk| disk.stage == stage)
            }),
        }
    }

    fn come_upon(&mut self) {
        match self.second {
            Second::Remove => self.world.remove("A"),
            Second::Exit => self.world.exit(),
            Second::Convert => self.convert(1),
            Second::Compact => self.compact("A"),
            Second::FailedSwap => self.world.disk("A").fails_to_swap = true,
        }
    }

    fn check(&mut self) {
        let what = &self.what;
        for token in &self.tokens {
            let is_answer = |event: &&Event| {
                matches!(event, Event::Answered(found, ControlAnswer::Compacted(_) | ControlAnswer::Snapshot(_))
                    if found == token)
            };
            let answers = self.world.events.iter().filter(is_answer).count();
            assert_eq!(answers, 1, "{what}: command {token}");
        }
        let mut ids = vec![vec![], vec!["x", "y"]];
        if self.first == First::Convert {
            ids[0].push("convert");
        }
        if self.second == Second::Convert {
            ids[1].push("convert");
        }
        for (asker, ids) in self.askers.iter().zip(ids) {
            for id in ids {
                let received = self.world.clients[asker].received.iter();
                let is_answer = |found: &&str| *found == id;
                let found = received
                    .filter_map(|message| message.get("id")?.as_str())
                    .filter(is_answer);
                assert_eq!(found.count(), 1, "{what}: request {id}");
            }
        }
        for (id, served) in &self.world.databases {
            assert!(
                served.pump.service().is_idle() || id.0 == 0,
                "{what}: {id:?}"
            );
            if let Some(disk) = &served.disk {
                assert!(disk.is_idle() && !disk.has_new_file(), "{what}: {id:?}");
            }
        }
        let removed = self.world.removed.len();
        let expected = match self.second {
            Second::Remove => 1,
            Second::Exit => self.world.databases.len(),
            _ => 0,
        };
        assert_eq!(removed, expected, "{what}");
    }
}
