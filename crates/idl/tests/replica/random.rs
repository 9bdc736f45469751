//! Random runs of clients: transactions of all kinds, lost connections, unread input, changing
//! conditions, fetches, conversions, two kinds of server. After each synchronization every replica
//! equals the server's contents as its condition restricts them. Tracked changes lead from the
//! previous contents to the new, event handlers saw the same contents, and indexes equal sorted
//! scans. Every transaction leaves the replica as it was.

use std::collections::BTreeMap;

use corvid_data::{Arc, Atom, Datum, TableId, Uuid};
use corvid_idl::{Class, FetchId, FetchOutcome, IndexColumn, IndexId, Resync, RowId, Status};
use corvid_json::splitmix::SplitMix64;
use corvid_session::{Clause, Condition, Function};

use crate::fixture::{Fixture, integer, integers, narrow_schema, schema, string, text_atom};
use crate::heard::Heard;
use crate::server::LIVES;

const STEPS: usize = 150;

/// Rows by table and UUID.
pub(crate) type Contents = BTreeMap<(TableId, Uuid), Vec<Datum>>;

struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.draw() % bound as u64).expect("below usize")
    }

    fn number(&mut self) -> i64 {
        self.below(8) as i64
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len())])
    }
}

/// The changes that a peer has certainly seen.
struct Watcher {
    shadow: Contents,
    epoch: u64,
    /// The peer's condition: the greatest `i` of `simple` to replicate.
    limit: Option<i64>,
    promise: u64,
    /// Its fetches without an outcome yet.
    fetches: Vec<FetchId>,
    heard: Heard,
}

/// The peer that fetches `o` of `simple` on demand; the others monitor it.
const FETCHER: usize = 1;

/// `CORVID_CASES` sets the number of runs, `CORVID_SEED` selects a single one.
#[test]
fn replicas_equal_the_server_after_random_lives() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text: String| text.parse().expect("a number"))
    };
    let seeds = match number("CORVID_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CORVID_CASES").unwrap_or(LIVES),
    };
    for seed in seeds {
        println!("CORVID_SEED={seed}");
        live(seed);
    }
}

fn live(seed: u64) {
    let mut dice = Dice(SplitMix64::new(seed));
    let mut fixture = Fixture::new(seed.is_multiple_of(2));
    let mut watchers = Vec::new();
    for peer in 0..3 {
        let mut class = Class::everything(Arc::new(schema()));
        class.track_all();
        if seed % 4 > 1 {
            write_changes_only(&mut class);
        }
        let (i, s) = (
            class.column("simple", "i").expect("a column"),
            class.column("simple", "s").expect("a column"),
        );
        let columns = vec![IndexColumn::descending(i), IndexColumn::ascending(s)];
        class.add_index(i.table, "", columns).expect("new");
        if peer == FETCHER {
            let o = class.column("simple", "o").expect("a column");
            class.on_demand(o);
        }
        let heard = Heard::default();
        fixture.add_with(class, |idl| heard.listen(idl));
        if peer == 2 {
            fixture.peers[peer].idl.set_resync(Resync::Reload);
        }
        watchers.push(Watcher {
            shadow: Contents::new(),
            epoch: 0,
            limit: None,
            promise: 0,
            fetches: Vec::new(),
            heard,
        });
    }
    for _ in 0..STEPS {
        match dice.below(14) {
            0..6 => transact(&mut fixture, &mut dice),
            6 => meddle(&mut fixture, &mut dice),
            7 => fixture.cut(dice.below(3)),
            8 => {
                let peer = dice.below(3);
                fixture.peers[peer].is_deaf ^= true;
            }
            9 => want(&mut fixture, &mut dice, &mut watchers),
            10 if dice.below(4) == 0 => {
                let is_narrow = dice.below(2) == 0;
                fixture
                    .server
                    .convert(&if is_narrow { narrow_schema() } else { schema() });
            }
            13 => fetch(&mut fixture, &mut dice, &mut watchers[FETCHER]),
            _ => synchronize(&mut fixture, &mut watchers),
        }
    }
    synchronize(&mut fixture, &mut watchers);
}

fn write_changes_only(class: &mut Class) {
    let schema = class.schema().clone();
    for (table, columns) in schema.iter() {
        for (id, _) in columns.iter() {
            class.set_write_changed_only(corvid_idl::Column { table, id }, true);
        }
    }
}

/// A transaction of the first client.
fn transact(fixture: &mut Fixture, dice: &mut Dice) {
    fixture.run();
    let before = contents(fixture, 0);
    let txn = fixture.idl().begin().expect("none is open");
    for _ in 0..=dice.below(5) {
        change(fixture, dice);
        check_index(fixture, 0);
    }
    let is_committed = dice.below(4) > 0;
    if is_committed {
        fixture.idl().commit().expect("it is open");
    } else {
        fixture.idl().abort(txn);
    }
    assert_eq!(contents(fixture, 0), before, "put back");
    fixture.idl().check_consistency().expect("put back");
    fixture.run();
    let status = fixture.idl().status(txn).expect("remembered");
    assert_eq!(status == Status::Aborted, !is_committed);
    if status == Status::Error {
        let error = fixture.idl().txn_error(txn).expect("told").to_owned();
        // After a conversion the server lacks parts of the client's schema.
        let is_expected = [
            "constraint violation",
            "referential integrity violation",
            "unknown column",
            "No table named",
            "is not a valid column name",
        ]
        .iter()
        .any(|tag| error.contains(tag));
        assert!(is_expected, "{error}");
    }
}

/// Makes one change in the open transaction, if there is a row for it.
fn change(fixture: &mut Fixture, dice: &mut Dice) {
    let tables = [
        "simple", "simple", "maps", "link", "parent", "child", "unique",
    ];
    let name = tables[dice.below(tables.len())];
    let table = fixture.table(name);
    let mut rows: Vec<RowId> = fixture.idl().rows(table).collect();
    rows.sort();
    let kind = dice.below(8);
    let Some(row) = dice
        .pick(&rows)
        .filter(|_| kind > 1 && (rows.len() < 12 || kind > 2))
    else {
        let uuid = fixture.uuid();
        let is_persistent = dice.below(2) == 0;
        fixture
            .idl()
            .insert(table, uuid, is_persistent)
            .expect("new");
        return;
    };
    if kind == 2 {
        fixture.idl().delete(row).expect("it is there");
        return;
    }
    let number = dice.number();
    let children: Vec<RowId> = {
        let child = fixture.table(if name == "link" { "link" } else { "child" });
        let mut rows: Vec<RowId> = fixture.idl().rows(child).collect();
        rows.sort();
        rows
    };
    let target = dice.pick(&children).map(|row| Atom::Uuid(row.uuid));
    let (column, value, element) = match (name, dice.below(3)) {
        ("simple", 0) => ("i", integer(number), None),
        ("simple", 1) => (
            "ia",
            integers(&[number, number + 8]),
            Some((Atom::Integer(number), None)),
        ),
        ("simple", _) => ("s", string(["a", "b", "c"][dice.below(3)]), None),
        ("maps", _) => {
            let key = text_atom(["k", "l", "m"][dice.below(3)]);
            let value = text_atom(&number.to_string());
            let datum = Datum::pair(key.clone(), value.clone());
            ("smap", datum, Some((key, Some(value))))
        }
        ("link", 0) => ("i", integer(number), None),
        ("link", 1) => (
            "one",
            target.clone().map_or(Datum::empty(), Datum::one),
            None,
        ),
        ("link", _) => {
            let datum = target.clone().map_or(Datum::empty(), Datum::one);
            ("many", datum, target.map(|target| (target, None)))
        }
        ("parent", _) => {
            let datum = target.clone().map_or(Datum::empty(), Datum::one);
            ("children", datum, target.map(|target| (target, None)))
        }
        ("unique", _) => ("i", integer(number), None),
        (_, _) => ("name", string("x"), None),
    };
    let column = fixture.column(name, column);
    if dice.below(8) == 0 {
        fixture.idl().verify(row, column).expect("it is held");
    }
    let idl = fixture.idl();
    match (element, dice.below(3)) {
        (Some((key, Some(value))), 0) => idl.set_key(row, column, key, value).map(drop),
        (Some((key, Some(_))), 1) => idl.remove_key(row, column, key).map(drop),
        (Some((key, None)), 0) => idl.add_value(row, column, key).map(drop),
        (Some((key, None)), 1) => idl.remove_value(row, column, key).map(drop),
        _ => idl.write(row, column, value),
    }
    .expect("it fits");
}

/// Another client makes a change.
fn meddle(fixture: &mut Fixture, dice: &mut Dice) {
    let (low, high) = (dice.number(), dice.number());
    let operations = [
        format!(
            r#"{{"op":"update","table":"simple","where":[["i","<",{low}]],"row":{{"i":{high}}}}}"#
        ),
        format!(r#"{{"op":"delete","table":"simple","where":[["i","==",{low}]]}}"#),
        format!(
            r#"{{"op":"mutate","table":"simple","where":[],"mutations":[["ia","insert",{high}],["ia","delete",{low}]]}}"#
        ),
        format!(
            r#"{{"op":"mutate","table":"maps","where":[],"mutations":[["smap","insert",["map",[["k","{low}"]]]]]}}"#
        ),
        r#"{"op":"update","table":"link","where":[],"row":{"many":["set",[]]}}"#.to_owned(),
        format!(
            r#"{{"op":"update","table":"simple","where":[["i",">",{low}]],"row":{{"o":{high}}}}}"#
        ),
    ];
    fixture
        .server
        .transact(&operations[dice.below(operations.len())]);
}

/// Fetches something, if the client can.
fn fetch(fixture: &mut Fixture, dice: &mut Dice, watcher: &mut Watcher) {
    let o = fixture.column("simple", "o");
    let idl = &mut fixture.peers[FETCHER].idl;
    let mut rows: Vec<RowId> = idl.rows(o.table).collect();
    rows.sort();
    let begun = match (dice.below(3), dice.pick(&rows)) {
        (0, Some(row)) => idl.fetch_row(row, o),
        (1, _) => idl.fetch_column(o),
        _ => idl.fetch_table(o.table),
    };
    watcher.fetches.extend(begun);
}

/// Fetches everything; all earlier fetches have ended.
fn fetch_all(fixture: &mut Fixture, watcher: &mut Watcher) {
    let o = fixture.column("simple", "o");
    let fetch = fixture.peers[FETCHER]
        .idl
        .fetch_column(o)
        .expect("connected");
    fixture.run();
    let idl = &mut fixture.peers[FETCHER].idl;
    assert_eq!(idl.take_fetch_outcome(fetch), Some(FetchOutcome::Success));
    for fetch in watcher.fetches.drain(..) {
        let outcome = idl.take_fetch_outcome(fetch);
        assert!(outcome.is_some_and(|outcome| outcome != FetchOutcome::Pending));
    }
    assert!(!idl.is_column_fetch_pending(o) && !idl.is_table_fetch_pending(o.table));
}

/// Contents without the fetched column, which is not tracked.
fn tracked(fixture: &Fixture, peer: usize, mut contents: Contents) -> Contents {
    let o = fixture.column("simple", "o");
    let rows = contents
        .iter_mut()
        .filter(|((table, _), _)| *table == o.table);
    for (_, columns) in rows.filter(|_| peer == FETCHER) {
        columns[usize::from(o.id.0)] = Datum::empty();
    }
    contents
}

/// A client other than the first changes its condition on `simple`.
fn want(fixture: &mut Fixture, dice: &mut Dice, watchers: &mut [Watcher]) {
    let peer = 1 + dice.below(2);
    let watcher = &mut watchers[peer];
    watcher.limit = (dice.below(3) > 0).then(|| dice.number());
    let mut condition = Condition::none();
    match watcher.limit {
        None => condition = Condition::all(),
        Some(limit) => {
            let clause = Clause::new("i", Function::LessOrEqual, &integer(limit), false);
            condition.add(clause);
        }
    }
    let simple = fixture.table("simple");
    let now_ms = fixture.now_ms;
    let idl = &mut fixture.peers[peer].idl;
    watcher.promise = idl
        .set_condition(now_ms, simple, condition)
        .expect("accepted");
}

/// Runs until all clients are idle, and checks everything.
fn synchronize(fixture: &mut Fixture, watchers: &mut [Watcher]) {
    for peer in &mut fixture.peers {
        peer.is_deaf = false;
    }
    fixture.run_until_connected();
    fetch_all(fixture, &mut watchers[FETCHER]);
    let served = served(fixture);
    let simple = fixture.table("simple");
    let i = fixture.column("simple", "i").id;
    for (peer, watcher) in watchers.iter_mut().enumerate() {
        let held = contents(fixture, peer);
        let mut expected = served.clone();
        expected.retain(|(table, _), columns| {
            let value = columns[usize::from(i.0).min(columns.len() - 1)].as_integer();
            *table != simple || watcher.limit.is_none_or(|limit| value <= Some(limit))
        });
        assert_eq!(held, expected, "peer {peer}");
        let idl = &mut fixture.peers[peer].idl;
        assert!(idl.condition_seqno() >= watcher.promise);
        replay(fixture, peer, watcher);
        let (seen, held) = (watcher.shadow.clone(), tracked(fixture, peer, held));
        assert_eq!(
            tracked(fixture, peer, seen),
            held,
            "tracked changes of peer {peer}"
        );
        let (copy, calls) = watcher.heard.contents(&fixture.peers[peer].idl);
        let (copy, held) = (tracked(fixture, peer, copy), contents(fixture, peer));
        assert_eq!(copy, tracked(fixture, peer, held), "what peer {peer} heard");
        assert_eq!(fixture.peers[peer].idl.metrics().events, calls);
        fixture.peers[peer].idl.clear_changes();
        fixture.peers[peer]
            .idl
            .check_consistency()
            .expect("synchronized");
        check_index(fixture, peer);
        assert_eq!(fixture.peers[peer].idl.outstanding_count(), 0);
    }
}

/// Applies the tracked changes to the contents seen before.
fn replay(fixture: &Fixture, peer: usize, watcher: &mut Watcher) {
    let idl = &fixture.peers[peer].idl;
    if idl.resync_epoch() != watcher.epoch {
        watcher.epoch = idl.resync_epoch();
        watcher.shadow.clear();
    }
    for (table, schema) in idl.schema().iter() {
        for change in idl.changes(table) {
            let key = (table, change.uuid);
            if change.is_deleted {
                let was_there = watcher.shadow.remove(&key).is_some();
                assert!(was_there || change.is_new, "deleted, not seen");
                continue;
            }
            if change.is_new {
                watcher
                    .shadow
                    .insert(key, columns(fixture, peer, table, change.uuid));
                continue;
            }
            let seen = watcher.shadow.get_mut(&key).expect("modified, so seen");
            for column in change.updated() {
                let value = &mut seen[usize::from(column.0)];
                assert_eq!(
                    Some(&*value),
                    change.old(column),
                    "{}",
                    schema.column(column).name
                );
                *value = columns(fixture, peer, table, change.uuid)[usize::from(column.0)].clone();
            }
        }
    }
}

fn columns(fixture: &Fixture, peer: usize, table: TableId, uuid: Uuid) -> Vec<Datum> {
    let idl = &fixture.peers[peer].idl;
    let ids = idl.schema().table(table).iter();
    ids.map(|(id, _)| {
        let column = corvid_idl::Column { table, id };
        idl.read(RowId { table, uuid }, column).expect("a row")
    })
    .collect()
}

/// The contents of a client.
fn contents(fixture: &Fixture, peer: usize) -> Contents {
    let idl = &fixture.peers[peer].idl;
    let tables = idl.schema().iter();
    let rows = tables.flat_map(|(table, _)| idl.rows(table));
    rows.map(|row| {
        (
            (row.table, row.uuid),
            columns(fixture, peer, row.table, row.uuid),
        )
    })
    .collect()
}

/// The contents of the server, with defaults for columns that it lacks.
fn served(fixture: &mut Fixture) -> Contents {
    let served = fixture.server.contents();
    let own = fixture.peers[0].idl.schema();
    let rows = served.into_iter().map(|((table, uuid), mut row)| {
        let table = own.table_id(&table).expect("none is foreign");
        let columns = own.table(table).columns().iter();
        let columns = columns.map(|column| {
            let held = row.remove(column.name.as_str());
            held.unwrap_or_else(|| Datum::default_for(&column.column_type))
        });
        ((table, uuid), columns.collect())
    });
    rows.collect()
}

fn check_index(fixture: &Fixture, peer: usize) {
    let idl = &fixture.peers[peer].idl;
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    let index = IndexId {
        table: i.table,
        number: 0,
    };
    let key = |row: RowId| {
        let (i, s) = (
            idl.read(row, i).expect("a row"),
            idl.read(row, s).expect("a row"),
        );
        (std::cmp::Reverse(i), s, row.uuid)
    };
    let mut scan: Vec<RowId> = idl.rows(i.table).collect();
    scan.sort_by_key(|row| key(*row));
    let listed: Vec<RowId> = idl.range_of(index, None, None).collect();
    assert_eq!(listed, scan);
}
