//! Orders and selections against a naive model, while the replica changes: a scripted server sends
//! updates between the pieces in which rows are read.

use std::collections::BTreeMap;

use corvid::data::{Atom, Schema};
use corvid::json::Value;
use corvid::json::splitmix::SplitMix64;
use corvid::session::{Input, Output};
use corvid::{Class, Idl};

use super::*;
use crate::database::naming::Naming;

const SCHEMA: &str = r#"{"name":"Test","version":"1.0.0","tables":{"Item":{"isRoot":true,"columns":{
    "number":{"type":"integer"},"name":{"type":"string"},
    "tags":{"type":{"key":"integer","min":0,"max":"unlimited"}}}}}}"#;

const TABLE: TableId = TableId(0);

/// A replica, and what it should hold.
struct World {
    idl: Idl,
    random: SplitMix64,
    rows: BTreeMap<Uuid, (i64, String, Vec<i64>)>,
    last: u128,
    orders: Orders,
    naming: Naming,
    /// The longest time without an update, in accesses to the replica.
    holds: usize,
}

impl World {
    fn new(seed: u64, rows: usize) -> World {
        let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
        let mut class = Class::everything(corvid::data::Arc::new(schema.clone()));
        class.track_all();
        let mut world = World {
            idl: Idl::new(class, 1),
            random: SplitMix64::new(seed),
            rows: BTreeMap::new(),
            last: 0,
            orders: Orders::default(),
            naming: Naming::new(&schema),
            holds: 0,
        };
        world.idl.session().set_remote(0, "unix:server", true);
        world.talk();
        let mut left = rows;
        while left > 0 {
            let count = left.min(5000);
            let inserted = (0..count).map(|_| world.insert()).collect::<Vec<_>>();
            world.send(&inserted);
            left -= count;
        }
        world.idl.clear_changes();
        world
    }

    /// Answers the client's requests.
    fn talk(&mut self) {
        while let Some(output) = self.idl.poll_output() {
            let bytes = match output {
                Output::Connect { .. } => {
                    self.idl.handle(0, Input::Connected).unwrap();
                    continue;
                }
                Output::Disconnect => panic!("the client gave up"),
                Output::Send(bytes) => bytes,
            };
            let request = Value::parse(&bytes).unwrap();
            let id = request.get("id").unwrap().to_string();
            let method = request.get("method").unwrap().as_str().unwrap();
            let params = request.get("params").unwrap().to_string();
            let reply = match method {
                "get_schema" if params.contains("\"Test\"") => {
                    format!(r#""result":{SCHEMA},"error":null"#)
                }
                "monitor_cond" => r#""result":{},"error":null"#.to_owned(),
                _ => r#""result":null,"error":{"error":"unknown method"}"#.to_owned(),
            };
            let reply = format!(r#"{{"id":{id},{reply}}}"#);
            self.idl
                .handle(0, Input::Received(reply.as_bytes()))
                .unwrap();
        }
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.draw() % end as u64).unwrap()
    }

    fn contents(&mut self) -> (i64, String, Vec<i64>) {
        // Few different values, so that many rows are equal.
        let number = self.below(200) as i64 - 20;
        let name = format!("net{}-{}", self.below(30), self.below(5));
        let tags = (0..self.below(3)).map(|tag| (tag * 7) as i64).collect();
        (number, name, tags)
    }

    fn values(contents: &(i64, String, Vec<i64>)) -> String {
        let (number, name, tags) = contents;
        format!(r#"{{"number":{number},"name":"{name}","tags":["set",{tags:?}]}}"#)
    }

    fn insert(&mut self) -> String {
        self.last += 1;
        // Scattered, as UUIDs are.
        let number = self
            .last
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let uuid = Uuid(number.to_be_bytes());
        let contents = self.contents();
        let update = format!(r#""{uuid}":{{"insert":{}}}"#, World::values(&contents));
        self.rows.insert(uuid, contents);
        update
    }

    fn some(&mut self) -> Option<Uuid> {
        let at = self.below(self.rows.len().max(1));
        self.rows.keys().nth(at).copied()
    }

    fn send(&mut self, updates: &[String]) {
        let message = format!(
            r#"{{"id":null,"method":"update2","params":[["monid","Test"],{{"Item":{{{}}}}}]}}"#,
            updates.join(",")
        );
        self.idl
            .handle(0, Input::Received(message.as_bytes()))
            .unwrap();
        self.talk();
    }

    /// Changes some rows, in one update. Now and then the listed changes are distributed.
    fn change(&mut self) {
        let mut updates = BTreeMap::new();
        for _ in 0..self.below(6) {
            match self.below(4) {
                0 => {
                    let update = self.insert();
                    updates.insert(Uuid(self.last.to_be_bytes()), update);
                }
                1 => {
                    if let Some(uuid) = self.some().filter(|uuid| !self.is_in(&updates, *uuid)) {
                        self.rows.remove(&uuid);
                        updates.insert(uuid, format!(r#""{uuid}":{{"delete":null}}"#));
                    }
                }
                _ => {
                    if let Some(uuid) = self.some().filter(|uuid| !self.is_in(&updates, *uuid)) {
                        let number = self.below(200) as i64 - 20;
                        let name = format!("net{}", self.below(40));
                        let row = self.rows.get_mut(&uuid).unwrap();
                        if (row.0, &row.1) != (number, &name) {
                            (row.0, row.1) = (number, name.clone());
                            let change = format!(
                                r#""{uuid}":{{"modify":{{"number":{number},"name":"{name}"}}}}"#
                            );
                            updates.insert(uuid, change);
                        }
                    }
                }
            }
        }
        let updates: Vec<String> = updates.into_values().collect();
        self.send(&updates);
        if self.below(3) == 0 {
            self.distribute();
        }
    }

    /// Whether an update changes a row already. Keys of inserted rows are not their UUIDs.
    fn is_in(&self, updates: &BTreeMap<Uuid, String>, uuid: Uuid) -> bool {
        let text = uuid.to_string();
        updates.values().any(|update| update.contains(&text))
    }

    fn distribute(&mut self) {
        self.orders.catch_up(&self.idl);
        self.idl.clear_changes();
    }

    fn key(&mut self) -> Key {
        let column = match self.below(4) {
            0 => ColumnId::UUID,
            place => {
                self.idl
                    .schema()
                    .table(TABLE)
                    .iter()
                    .nth(place - 1)
                    .unwrap()
                    .0
            }
        };
        let is_descending = self.below(2) == 0;
        let filter = match self.below(3) {
            0 => "number > 30 and name ~ \"net1\"",
            _ => "",
        };
        Key {
            table: TABLE,
            filter: filter.to_owned(),
            sort: Some(Sort {
                column,
                is_descending,
            }),
        }
    }

    fn filter(&self, key: &Key) -> Option<Where> {
        filter::parse(&self.idl, &self.naming, TABLE, &key.filter).unwrap()
    }

    /// All rows in the order, found naively.
    fn wanted(&self, key: &Key) -> Vec<Uuid> {
        let sort = key.sort();
        let mut rows: Vec<(Datum, Uuid)> = self
            .rows
            .iter()
            .filter(|(_, (number, name, _))| {
                key.filter.is_empty() || (*number > 30 && name.contains("net1"))
            })
            .map(|(uuid, (number, name, tags))| {
                let name_of = |id| self.idl.schema().table(TABLE).column(id).name.to_string();
                let value = match sort.column {
                    ColumnId::UUID => Datum::empty(),
                    id if name_of(id) == "number" => Datum::one(Atom::Integer(*number)),
                    id if name_of(id) == "name" => Datum::one(Atom::String(name.as_str().into())),
                    _ => {
                        let mut set = Datum::empty();
                        for tag in tags {
                            set.insert(Atom::Integer(*tag), None);
                        }
                        set
                    }
                };
                (value, *uuid)
            })
            .collect();
        rows.sort_by(|one, other| sort.compare((&one.0, one.1), (&other.0, other.1)));
        rows.into_iter().map(|(_, uuid)| uuid).collect()
    }

    /// Begins to make an order, as a page does.
    fn begin(&mut self, key: &Key) -> Job {
        let state = self.orders.place(key);
        let work = Arc::new(Work {
            table: TABLE,
            filter: self.filter(key),
            sort: key.sort(),
            slots: self.idl.slot_count(TABLE),
        });
        let ledger = Ledger::new(&self.idl, TABLE, key.sort(), &[]);
        *locked(&state) = State::Made(work.clone(), ledger);
        Job {
            key: key.clone(),
            state,
            work,
        }
    }

    /// Makes an order while the replica changes after each access to it.
    fn make(&mut self, job: &Job) -> Option<usize> {
        let world = std::cell::RefCell::new(&mut *self);
        let mut hold = |look: &mut dyn FnMut(&Idl)| {
            let world = &mut **world.borrow_mut();
            look(&world.idl);
            world.holds += 1;
            world.change();
        };
        job.make(&mut hold, &|| true)
    }

    /// The whole order, once all changes have reached it; `None` if it was given up.
    fn order(&self, state: &Mutex<State>) -> Option<Vec<Uuid>> {
        let mut state = locked(state);
        let State::Ready(order) = &mut *state else {
            return None;
        };
        if !order.note(&self.idl) {
            return None;
        }
        while !order.is_complete() {
            assert!(
                order.move_changed(&self.idl, 3),
                "a row is not where it should be"
            );
        }
        Some(order.page(0..usize::MAX).uuids)
    }
}

#[test]
fn an_order_that_is_made_while_rows_change_is_that_of_a_model() {
    let mut kept = 0;
    for seed in 0..40 {
        let rows = if seed % 4 == 0 { 3 * PIECE } else { 300 };
        let mut world = World::new(seed, rows);
        world.change();
        let key = world.key();
        let job = world.begin(&key);
        world.change();
        world.make(&job).expect("it is made");
        for _ in 0..30 {
            world.change();
            if let Some(order) = world.order(&job.state) {
                assert_eq!(order, world.wanted(&key), "seed {seed}: {key:?}");
                kept += 1;
            }
        }
    }
    assert!(kept > 1000, "few orders were kept: {kept}");
}

#[test]
fn a_page_that_is_selected_while_rows_change_is_that_of_a_model() {
    let mut shown = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, 3 * PIECE + 100);
        let key = world.key();
        let places = world.below(400)..450;
        let filter = world.filter(&key);
        let ledger = Ledger::since(&world.idl, TABLE, key.sort(), &[]);
        let ledger = Arc::new(Mutex::new(ledger));
        world.orders.selections.push(ledger.clone());
        let mut selection = Selection::new(TABLE, filter, key.sort(), places.end);
        let mut other = selection.another();
        for piece in select::pieces(world.idl.slot_count(TABLE)) {
            let part = match world.below(2) {
                0 => &mut selection,
                _ => &mut other,
            };
            part.read(&world.idl, piece);
            world.change();
        }
        selection.merge(other);
        let mut ledger = locked(&ledger);
        assert!(ledger.note(&world.idl));
        let Some(page) = selection.finish(&world.idl, &ledger, places.clone()) else {
            continue;
        };
        shown += 1;
        let wanted = world.wanted(&key);
        let cut: Vec<Uuid> = wanted
            .iter()
            .copied()
            .skip(places.start)
            .take(places.len())
            .collect();
        assert_eq!(page.uuids, cut, "seed {seed}: {key:?}");
        match page.is_counted {
            true => assert_eq!(page.selected, wanted.len(), "seed {seed}"),
            false => assert!(page.selected <= wanted.len(), "seed {seed}"),
        }
    }
    assert!(shown > 50, "few pages were found: {shown}");
}

#[test]
fn the_replica_takes_updates_while_an_order_of_many_rows_is_made() {
    let mut world = World::new(5, 10 * PIECE);
    let key = Key {
        table: TABLE,
        filter: String::new(),
        sort: None,
    };
    let job = world.begin(&key);
    world.make(&job).expect("it is made");
    // Each access reads one piece, and the last one notes what has changed.
    assert_eq!(world.holds, 10 + 1);
    assert_eq!(world.order(&job.state), Some(world.wanted(&key)));
}

#[test]
fn threads_that_select_a_page_read_each_piece_once() {
    for pieces in [1, 7, 30] {
        let world = World::new(6, pieces * PIECE - 5);
        let key = Key {
            table: TABLE,
            filter: String::new(),
            sort: None,
        };
        let reads = Mutex::new(0);
        let mut selection = Selection::new(TABLE, None, key.sort(), 50);
        selection.read_all(world.idl.slot_count(TABLE), &|look| {
            look(&world.idl);
            *locked(&reads) += 1;
        });
        assert_eq!(*locked(&reads), pieces);
        let nothing = Ledger::since(&world.idl, TABLE, key.sort(), &[]);
        let page = selection.finish(&world.idl, &nothing, 0..50);
        let page = page.expect("nothing has changed");
        assert_eq!(page.selected, pieces * PIECE - 5);
        assert_eq!(page.uuids, world.wanted(&key)[..50]);
    }
}

#[test]
fn an_order_that_nobody_wants_any_more_is_not_made() {
    let mut world = World::new(5, 3 * PIECE);
    let key = world.key();
    let job = world.begin(&key);
    world.orders.forget(TABLE);
    assert!(!world.orders.has(&job.state));
    let mut holds = 0;
    let made = job.make(&mut |_| holds += 1, &|| world.orders.has(&job.state));
    assert_eq!((made, holds), (None, 0));
}

#[test]
fn pieces_are_all_slots_once() {
    for slots in [
        0,
        1,
        PIECE,
        PIECE + 1,
        2 * PIECE,
        7 * PIECE + 3,
        100 * PIECE,
        245 * PIECE,
    ] {
        let mut all: Vec<Range<usize>> = select::pieces(slots).collect();
        all.sort_by_key(|piece| piece.start);
        let lengths: usize = all.iter().map(Range::len).sum();
        assert_eq!(lengths, slots);
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}

#[test]
fn an_order_whose_making_panics_is_told_once_and_made_anew() {
    let mut world = World::new(1, 10);
    let key = Key {
        table: TABLE,
        filter: String::new(),
        sort: None,
    };
    let job = world.begin(&key);
    let made = job.attempt(&mut |_| panic!("on purpose"), &|| true);
    assert_eq!(made, None);
    // A page that waits finds the failure, also after further changes.
    world.orders.catch_up(&world.idl);
    let place = world.orders.place(&key);
    assert!(Arc::ptr_eq(&place, &job.state), "forgotten");
    let failure = locked(&place).take_failure().expect("a failure");
    assert!(failure.contains("could not be put in order"), "{failure}");
    assert_eq!(locked(&place).take_failure(), None);
    let again = world.begin(&key);
    let idl = &world.idl;
    let made = again.attempt(&mut |look| look(idl), &|| true);
    assert_eq!(made, Some(10));
}

#[test]
fn an_order_that_panics_does_not_touch_its_successor() {
    let mut world = World::new(1, 10);
    let key = Key {
        table: TABLE,
        filter: String::new(),
        sort: None,
    };
    let first = world.begin(&key);
    let second = world.begin(&key);
    first.attempt(&mut |_| panic!("on purpose"), &|| true);
    let idl = &world.idl;
    let made = second.attempt(&mut |look| look(idl), &|| true);
    assert_eq!(made, Some(10));
}
