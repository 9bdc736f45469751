//! Initial contents of monitors that are written by jobs.

use std::sync::Arc;

use corvid_service::Setting;
use corvid_service::client_memory::{Charge, ClientMemory};
use expect_test::expect;

use crate::databases::wider_schema;
use crate::world::{World, play};

const ALL: &str = r#"["A","m",{"T":[{"columns":["k"]}]}]"#;

/// Every monitor's contents are left to a job, which is held.
fn prepare(world: &mut World) {
    world.service("A").set(Setting::InitialRowsMax, 0);
    // The plays count jobs.
    world.service("A").set(Setting::UpdateRowsMax, 1000);
    world.served("A").is_worker_held = true;
    let writer = world.connect();
    world.insert(writer, "1", "A", "a");
    world.run();
}

#[test]
fn initial_contents_show_their_moment_and_updates_continue_from_it() {
    let told = play(|world| {
        prepare(world);
        let (watcher, writer) = (world.connect(), world.connect());
        world.ask(watcher, "1", "monitor_cond", ALL);
        world.run();
        world.insert(writer, "1", "A", "b");
        world.run();
        // Later requests of the session are answered after the reply, after all pending updates.
        world.insert(watcher, "2", "A", "c");
        world.ask(watcher, "3", "echo", "[]");
        world.run();
        assert_eq!(world.take(watcher), "", "nothing before the reply");
        world.served("A").is_worker_held = false;
        world.run();
        assert_eq!(world.jobs_done("A"), 1);
        world.take(watcher)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"T":{"<0>":{"initial":{"k":"a"}}}}}
        {"id":null,"method":"update2","params":["m",{"T":{"<1>":{"insert":{"k":"b"}},"<2>":{"insert":{"k":"c"}}}}]}
        {"error":null,"id":2,"result":[{"uuid":["uuid","<2>"]}]}
        {"error":null,"id":3,"result":[]}
    "#]].assert_eq(&told);
}

#[test]
fn contents_without_room_are_refused_and_can_be_requested_again() {
    let told = play(|world| {
        prepare(world);
        let memory = Arc::new(ClientMemory::new(1000));
        world.service("A").set_client_memory(memory.clone());
        let others = Charge::new(&memory);
        others.add(1001);
        let (one, other) = (world.connect(), world.connect());
        for watcher in [one, other] {
            world.ask(watcher, "1", "monitor_cond", ALL);
            world.ask(watcher, "2", "echo", "[]");
        }
        world.run();
        world.served("A").is_worker_held = false;
        world.run();
        let told = world.take(one);
        assert_eq!(world.take(other), told);
        assert!(memory.refused() > 0);
        drop(others);
        // The id is free, and nothing is left of the first request.
        world.ask(one, "3", "monitor_cond", ALL);
        world.run();
        world.insert(other, "3", "A", "b");
        world.run();
        let all = told + &world.take(one) + &world.take(other);
        world.service("A").set_client_memory(Arc::default());
        all
    });
    expect![[r#"
        {"error":{"details":"unread replies of all clients take too much memory","error":"resources exhausted"},"id":1}
        {"error":null,"id":2,"result":[]}
        {"error":null,"id":3,"result":{"T":{"<0>":{"initial":{"k":"a"}}}}}
        {"id":null,"method":"update2","params":["m",{"T":{"<1>":{"insert":{"k":"b"}}}}]}
        {"error":null,"id":3,"result":[{"uuid":["uuid","<0>"]}]}
    "#]].assert_eq(&told);
}

#[test]
fn equal_requests_share_contents_and_later_ones_wait_for_newer_contents() {
    let told = play(|world| {
        prepare(world);
        let watchers = [(); 3].map(|()| world.connect());
        for watcher in &watchers[..2] {
            world.ask(
                *watcher,
                "1",
                "monitor_cond_since",
                &ALL.replace("}]}]", r#"}]},"00000000-0000-0000-0000-000000000000"]"#),
            );
        }
        world.run();
        let writer = world.connect();
        world.insert(writer, "1", "A", "b");
        world.run();
        world.ask(watchers[2], "1", "monitor_cond", ALL);
        world.run();
        world.served("A").is_worker_held = false;
        world.run();
        assert_eq!(world.jobs_done("A"), 2, "one for two, one for the third");
        let late = world.connect();
        world.ask(late, "1", "monitor_cond", ALL);
        world.run();
        assert_eq!(world.jobs_done("A"), 2, "nothing has changed");
        let mut told: Vec<String> = watchers
            .iter()
            .map(|watcher| world.take(*watcher))
            .collect();
        told.push(world.take(late));
        told.join("\n")
    });
    expect![[r#"
        {"error":null,"id":1,"result":[false,"<0>",{"T":{"<1>":{"initial":{"k":"a"}}}}]}
        {"id":null,"method":"update3","params":["m","<2>",{"T":{"<3>":{"insert":{"k":"b"}}}}]}

        {"error":null,"id":1,"result":[false,"<0>",{"T":{"<1>":{"initial":{"k":"a"}}}}]}
        {"id":null,"method":"update3","params":["m","<2>",{"T":{"<3>":{"insert":{"k":"b"}}}}]}

        {"error":null,"id":1,"result":{"T":{"<0>":{"initial":{"k":"a"}},"<1>":{"initial":{"k":"b"}}}}}

        {"error":null,"id":1,"result":{"T":{"<0>":{"initial":{"k":"a"}},"<1>":{"initial":{"k":"b"}}}}}
    "#]].assert_eq(&told);
}

#[test]
fn a_session_closed_before_its_contents_leaves_nothing_behind() {
    play(|world| {
        prepare(world);
        let (gone, stays) = (world.connect(), world.connect());
        world.ask(gone, "1", "monitor", ALL);
        world.ask(stays, "1", "monitor", ALL);
        world.insert(gone, "2", "A", "last");
        world.run();
        world.disconnect(gone);
        world.run();
        world.served("A").is_worker_held = false;
        world.run();
        world.disconnect(stays);
        world.check_idle();
        world.contents("A").join("\n")
    });
}

#[test]
fn a_conversion_or_removal_restarts_the_monitor_request() {
    let told = play(|world| {
        prepare(world);
        let (watcher, asker) = (world.connect_aware(), world.connect_aware());
        world.take(watcher);
        world.ask(watcher, "1", "monitor", ALL);
        world.run();
        world.ask(
            asker,
            "1",
            "convert",
            &format!(r#"["A",{}]"#, wider_schema("A")),
        );
        // The conversion overtakes the contents, which are then no longer needed.
        let overtaken = world.served("A").jobs.pop_front().expect("ordered");
        world.served("A").is_worker_held = false;
        world.run();
        let converted = world.take(watcher);
        world.served("A").jobs.push_back(overtaken);
        world.run();
        world.served("A").is_worker_held = true;
        let other = world.connect_aware();
        world.take(other);
        world.insert(asker, "2", "A", "z");
        world.run();
        world.ask(other, "1", "monitor", ALL);
        world.run();
        world.remove("A");
        world.run();
        converted + "\n" + &world.take(other)
    });
    expect![[r#"
        {"error":null,"id":1,"result":{"T":{"<0>":{"new":{"k":"a"}}}}}

        {"error":{"details":"monitor request specifies unknown database A","error":"unknown database","syntax":"[\"A\",\"m\",{\"T\":[{\"columns\":[\"k\"]}]}]"},"id":1}
    "#]].assert_eq(&told);
}
