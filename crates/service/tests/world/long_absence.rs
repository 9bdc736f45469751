//! Requests that wait until the files are searched for what their client has missed.

use corvid_data::{Arc, Datum, Row, Uuid};
use corvid_service::Setting;
use corvid_service::job::{Job, JobDone, JobNumber, JobResult};
use corvid_service::read_history::{PastOrder, PastRead, PastVersion};
use expect_test::expect;

use crate::databases::wider_schema;
use crate::world::{World, play};

const SINCE: &str = r#"["A","m",{"T":[{"columns":["k"]}]},"11111111-1111-4111-8111-111111111111"]"#;

/// A row that was there.
const OLD: Uuid = Uuid([0x22; 16]);

fn prepare(world: &mut World) {
    // Updates need no jobs.
    world.service("A").set(Setting::UpdateRowsMax, 1000);
    world.served("A").is_worker_held = true;
    let writer = world.connect();
    world.insert(writer, "1", "A", "a");
    world.run();
}

/// Takes the search that was ordered.
fn search(world: &mut World) -> (JobNumber, Box<PastOrder>) {
    match world.served("A").jobs.pop_front() {
        Some(Job::ReadPast(number, order)) => (number, order),
        other => panic!("{other:?}"),
    }
}

fn answer(world: &mut World, number: JobNumber, rows: Option<Vec<PastVersion>>) {
    let schema = world.service("A").database().schema().clone();
    let read = rows.map(|rows| Box::new(PastRead::Rows(schema, rows)));
    let id = world.id("A");
    world.post(id, JobDone(number, JobResult::PastRead(read)).into());
}

/// The row that has been deleted since.
fn deleted(world: &mut World) -> PastVersion {
    let schema = world.service("A").database().schema().clone();
    let table = schema.table_id("T").expect("a table");
    let columns = schema.table(table).columns().iter();
    let row = Row {
        uuid: OLD,
        version: Uuid::ZERO,
        columns: columns
            .map(|column| Datum::default_for(&column.column_type))
            .collect(),
    };
    (table, OLD, Some(Arc::new(row)))
}

#[test]
fn the_difference_has_what_was_read_and_what_changed_meanwhile() {
    let told = play(|world| {
        prepare(world);
        let (watcher, writer) = (world.connect(), world.connect());
        world.ask(watcher, "1", "monitor_cond_since", SINCE);
        world.run();
        world.insert(writer, "1", "A", "b");
        world.insert(watcher, "2", "A", "c");
        world.ask(watcher, "3", "echo", "[]");
        world.run();
        assert_eq!(world.take(watcher), "", "nothing before the reply");
        let (number, order) = search(world);
        assert_eq!(order.tables, ["T"]);
        assert!(order.is_wanted() && order.applied.is_none());
        let row = deleted(world);
        answer(world, number, Some(vec![row]));
        world.run();
        // The outcome is remembered, and has all changes.
        let late = world.connect();
        world.ask(late, "1", "monitor_cond_since", SINCE);
        world.run();
        let mut jobs = world.served("A").jobs.iter();
        assert!(!jobs.any(|job| matches!(job, Job::ReadPast(..))));
        world.served("A").is_worker_held = false;
        world.run();
        world.take(watcher) + "\n" + &world.take(late)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[true,"<0>",{"T":{"<1>":{"insert":{"k":"b"}},"<2>":{"delete":null}}}]}
        {"id":null,"method":"update3","params":["m","<3>",{"T":{"<4>":{"insert":{"k":"c"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<4>"]}]}
        {"error":null,"id":3,"result":[]}

        {"error":null,"id":1,"result":[true,"<0>",{"T":{"<1>":{"insert":{"k":"b"}},"<2>":{"insert":{"k":"c"}},"<3>":{"delete":null}}}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn without_an_answer_the_contents_come() {
    let told = play(|world| {
        prepare(world);
        let watchers = [(); 2].map(|()| world.connect());
        for watcher in watchers {
            world.ask(watcher, "1", "monitor_cond_since", SINCE);
        }
        world.run();
        let (number, _) = search(world);
        assert!(world.served("A").jobs.is_empty(), "they share a search");
        answer(world, number, None);
        world.run();
        world.served("A").is_worker_held = false;
        let told = world.take(watchers[0]);
        assert_eq!(world.take(watchers[1]), told);
        told
    });
    expect![[r#"
        {"error":null,"id":1,"result":[false,"<0>",{"T":{"<1>":{"initial":{"k":"a"}}}}]}
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_session_that_closes_while_it_waits_leaves_nothing_behind() {
    play(|world| {
        prepare(world);
        let gone = world.connect();
        world.ask(gone, "1", "monitor_cond_since", SINCE);
        world.insert(gone, "2", "A", "last");
        world.run();
        world.disconnect(gone);
        world.run();
        let (number, _) = search(world);
        answer(world, number, None);
        world.served("A").is_worker_held = false;
        world.run();
        world.check_idle();
        world.contents("A").join("\n")
    });
}

#[test]
fn a_conversion_or_removal_ends_the_wait() {
    let told = play(|world| {
        prepare(world);
        let (watcher, asker) = (world.connect_aware(), world.connect_aware());
        world.take(watcher);
        world.ask(watcher, "1", "monitor_cond_since", SINCE);
        world.run();
        let (number, order) = search(world);
        let convert = format!(r#"["A",{}]"#, wider_schema("A"));
        world.ask(asker, "1", "convert", &convert);
        world.served("A").is_worker_held = false;
        world.run();
        assert!(!order.is_wanted());
        // The old search ends late. Nothing waits for it.
        answer(world, number, None);
        world.run();
        let converted = world.take(watcher);
        world.served("A").is_worker_held = true;
        let other = world.connect_aware();
        world.take(other);
        world.ask(
            other,
            "1",
            "monitor_cond_since",
            &SINCE.replace("1111\"", "3333\""),
        );
        world.run();
        world.remove("A");
        world.run();
        converted + &world.take(other)
    });
    expect![[r#"
        {"error":null,"id":1,"result":[false,"<0>",{"T":{"<1>":{"initial":{"k":"a"}}}}]}
        {"error":{"details":"monitor_cond_since request specifies unknown database A","error":"unknown database","syntax":"[\"A\",\"m\",{\"T\":[{\"columns\":[\"k\"]}]},\"<0>\"]"},"id":1}
    "#]]
    .assert_eq(&told);
}
