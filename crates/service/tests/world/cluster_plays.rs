//! Plays on a cluster: which member answers, when, and the effects of a change of leader.

use corvid_data::Uuid;
use corvid_monitor::Version;
use corvid_service::message::{Completion, Control, DatabaseMethod, ToDatabase};
use corvid_service::once::Once;
use expect_test::expect;

use crate::cluster::Cluster;
use crate::made_snapshot::MadeSnapshot;

/// Adds one to the counter of row `a`, and a number to its set.
fn add(number: u64) -> String {
    format!(
        r#"{{"op":"mutate","table":"T","where":[["k","==","a"]],"mutations":[["n","+=",1],["s","insert",{number}]]}}"#
    )
}

const SELECT: &str = r#"{"op":"select","table":"T","where":[["k","==","a"]],"columns":["n"]}"#;

const ADDED: &str = "[{\"count\":1}]";

fn reply(id: u64, result: &str) -> String {
    format!("{{\"error\":null,\"id\":{id},\"result\":{result}}}\n")
}

#[test]
fn a_commit_of_the_leader_is_answered_when_it_is_committed_and_its_reads_wait() {
    let mut cluster = Cluster::led(1, 3, 0);
    let (writer, reader) = (cluster.connect(0), cluster.connect(0));
    for number in 0..3 {
        cluster.transact(writer, number, &add(number));
    }
    cluster.transact(reader, 7, SELECT);
    cluster.run_without_commits();
    assert_eq!(cluster.take(writer) + &cluster.take(reader), "");
    cluster.committed += 2;
    cluster.run_without_commits();
    assert_eq!(cluster.take(writer), reply(0, ADDED) + &reply(1, ADDED));
    assert_eq!(cluster.take(reader), "", "it has seen the third commit");
    cluster.run();
    assert_eq!(cluster.take(writer), reply(2, ADDED));
    assert_eq!(cluster.take(reader), reply(7, r#"[{"rows":[{"n":3}]}]"#));
    cluster.check_equal();
}

#[test]
fn a_follower_answers_behind_its_updates_and_reads_what_it_has_written() {
    let mut cluster = Cluster::led(2, 3, 0);
    let client = cluster.connect(1);
    cluster.ask(
        client,
        1,
        DatabaseMethod::Monitor(Version::V2),
        r#"["A","m",{"T":{"columns":["n"],"select":{"initial":false}}}]"#,
    );
    cluster.transact(client, 2, &add(1));
    cluster.transact(client, 3, &format!("{},{SELECT}", add(2)));
    cluster.transact(client, 4, SELECT);
    cluster.run();
    let told = cluster.take(client);
    let row = told.split('"').find(|text| text.len() == 36);
    let told = told.replace(row.expect("a row"), "<row>");
    expect![[r#"
        {"error":null,"id":1,"result":{}}
        {"id":null,"method":"update2","params":["m",{"T":{"<row>":{"modify":{"n":1}}}}]}
        {"error":null,"id":2,"result":[{"count":1}]}
        {"id":null,"method":"update2","params":["m",{"T":{"<row>":{"modify":{"n":2}}}}]}
        {"error":null,"id":3,"result":[{"count":1},{"rows":[{"n":2}]}]}
        {"error":null,"id":4,"result":[{"rows":[{"n":2}]}]}
    "#]]
    .assert_eq(&told);
    cluster.check_equal();
}

#[test]
fn reads_of_a_follower_need_no_leader() {
    let mut cluster = Cluster::new(3, 3);
    let (reader, writer) = (cluster.connect(1), cluster.connect(1));
    cluster.transact(writer, 1, &add(1));
    cluster.transact(writer, 2, SELECT);
    cluster.transact(reader, 1, SELECT);
    // Like the reference's followers: a commit of nothing is answered, too.
    cluster.transact(reader, 2, r#"{"op":"commit","durable":true}"#);
    cluster.run();
    let told = reply(1, r#"[{"rows":[{"n":0}]}]"#) + &reply(2, "[{}]");
    assert_eq!(cluster.take(reader), told);
    assert_eq!(cluster.take(writer), "", "it waits for a leader");
    cluster.lead(2);
    let told = reply(1, ADDED) + &reply(2, r#"[{"rows":[{"n":1}]}]"#);
    assert_eq!(cluster.take(writer), told);
}

#[test]
fn updates_of_a_session_whose_write_waits_can_be_asked_for() {
    let mut cluster = Cluster::new(3, 3);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &add(1));
    cluster.transact(client, 2, SELECT);
    cluster.run();
    let fence = ToDatabase::Fence(client, Completion::NotificationFence);
    cluster.nodes[1].inbox.push_back(fence);
    cluster.run();
    // A probe is answered after the update.
    assert_eq!(cluster.sessions[&client].completed, 1);
    assert_eq!(cluster.take(client), "");
}

#[test]
fn a_request_that_waits_for_a_leader_can_be_canceled() {
    let mut cluster = Cluster::new(3, 3);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &add(1));
    cluster.transact(client, 2, &add(2));
    cluster.cancel(client, 1);
    cluster.run();
    assert_eq!(
        cluster.take(client),
        "{\"error\":\"canceled\",\"id\":1}\n".to_owned()
    );
    cluster.lead(2);
    assert_eq!(cluster.take(client), reply(2, ADDED));
    assert_eq!(cluster.sessions[&client].completed, 3);
}

#[test]
fn a_result_that_is_lost_is_computed_again_with_the_same_rows() {
    let mut cluster = Cluster::led(4, 3, 0);
    cluster.loss = 1;
    let client = cluster.connect(1);
    let insert = r#"{"op":"insert","table":"Log","row":{"id":5}}"#;
    cluster.transact(client, 1, &format!("{insert},{SELECT},{}", add(1)));
    cluster.run();
    let told = cluster.take(client);
    let row = told.split('"').find(|text| text.len() == 36);
    let row = row.expect("the new row").to_owned();
    assert!(told.contains(r#"{"rows":[{"n":0}]},{"count":1}"#), "{told}");
    cluster.check_equal();
    let found = cluster.contents(0).join("\n");
    assert!(found.contains(&row), "{row} is not among {found}");
}

#[test]
fn a_wait_blocks_on_the_follower_and_is_tried_again_when_rows_change() {
    let mut cluster = Cluster::led(5, 2, 0);
    let (waiting, writer) = (cluster.connect(1), cluster.connect(0));
    let wait = r#"{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["n"],"until":"==","rows":[{"n":2}]}"#;
    cluster.transact(waiting, 1, &format!("{wait},{}", add(9)));
    cluster.transact(waiting, 2, SELECT);
    cluster.run();
    assert_eq!(cluster.take(waiting), reply(2, r#"[{"rows":[{"n":0}]}]"#));
    assert_eq!(cluster.nodes[1].pump.report().usage.triggers, 1);
    cluster.transact(writer, 1, &add(1));
    cluster.run();
    assert_eq!(cluster.take(waiting), "");
    cluster.transact(writer, 2, &add(2));
    cluster.run();
    assert_eq!(cluster.take(waiting), reply(1, "[{},{\"count\":1}]"));
    assert_eq!(cluster.nodes[1].pump.report().usage.triggers, 0);
    cluster.check_equal();
}

#[test]
fn a_wait_that_the_leader_finds_unsatisfied_blocks_where_its_session_is() {
    let mut cluster = Cluster::led(6, 2, 0);
    let (waiting, writer) = (cluster.connect(1), cluster.connect(0));
    let wait = r#"{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["n"],"until":"==","rows":[{"n":0}]}"#;
    // The leader has executed a commit that the follower has not applied.
    cluster.transact(writer, 1, &add(1));
    cluster.execute(0, 1);
    cluster.transact(waiting, 1, &format!("{wait},{}", add(9)));
    cluster.execute(1, 1);
    cluster.run();
    assert_eq!(cluster.take(waiting), "");
    assert_eq!(cluster.nodes[1].pump.report().usage.triggers, 1);
    let back = r#"{"op":"update","table":"T","where":[["k","==","a"]],"row":{"n":0}}"#;
    cluster.transact(writer, 2, back);
    cluster.run();
    assert_eq!(cluster.take(waiting), reply(1, "[{},{\"count\":1}]"));
    cluster.check_equal();
}

#[test]
fn speculative_commits_of_a_lost_leadership_are_true_or_executed_again() {
    for kept in 0..=3 {
        let mut cluster = Cluster::led(7, 3, 0);
        let (writer, reader) = (cluster.connect(0), cluster.connect(0));
        cluster.ask(
            reader,
            1,
            DatabaseMethod::Monitor(Version::V2),
            r#"["A","m",{"T":{"columns":["n"],"select":{"initial":false}}}]"#,
        );
        cluster.run();
        cluster.take(reader);
        for number in 0..3 {
            cluster.transact(writer, number, &add(number));
        }
        cluster.transact(writer, 3, SELECT);
        cluster.transact(reader, 2, SELECT);
        cluster.execute(0, 9);
        // The next leader has the first of these entries.
        cluster.log.truncate(cluster.committed + kept);
        cluster.leader = None;
        cluster.announce();
        cluster.execute(0, 9);
        let told = reply(2, r#"[{"rows":[{"n":0}]}]"#);
        assert_eq!(
            cluster.take(reader),
            told,
            "nothing is speculative any more"
        );
        assert_eq!(cluster.take(writer), "");
        cluster.lead(if kept == 1 { 0 } else { 1 });
        let added: String = (0..3).map(|number| reply(number, ADDED)).collect();
        let told = added + &reply(3, r#"[{"rows":[{"n":3}]}]"#);
        assert_eq!(cluster.take(writer), told, "{kept} kept");
        let told = cluster.take(reader);
        assert!(told.ends_with("{\"modify\":{\"n\":3}}}}]}\n"), "{told}");
        cluster.check_equal();
    }
}

#[test]
fn a_history_is_the_same_on_every_member() {
    let mut cluster = Cluster::led(8, 3, 0);
    let writer = cluster.connect(0);
    // A history holds no more atoms than the database.
    let rows = (0..50).map(|id| format!(r#"{{"op":"insert","table":"Log","row":{{"id":{id}}}}}"#));
    let rows: Vec<String> = rows.collect();
    cluster.transact(writer, 0, &rows.join(","));
    cluster.transact(writer, 1, &add(1));
    cluster.run();
    let told = cluster.connect(1);
    let since = |txn: &str| format!(r#"["A","m",{{"T":{{"columns":["n"]}}}},"{txn}"]"#);
    let method = DatabaseMethod::Monitor(Version::V3);
    cluster.ask(
        told,
        1,
        method,
        &since("00000000-0000-0000-0000-000000000000"),
    );
    cluster.run();
    let first = cluster.take(told);
    let (eid, _) = cluster
        .log
        .last()
        .expect("entries")
        .data
        .clone()
        .expect("data");
    assert!(first.contains(&format!("[false,\"{}\"", eid.0)), "{first}");
    cluster.transact(writer, 2, &add(2));
    cluster.run();
    for node in [0, 2] {
        let client = cluster.connect(node);
        cluster.ask(client, 1, method, &since(&eid.0.to_string()));
        cluster.run();
        let told = cluster.take(client);
        assert!(told.contains("\"result\":[true,"), "{told}");
        assert!(told.contains(r#"{"modify":{"n":2}}"#), "{told}");
    }
}

#[test]
fn a_snapshot_for_compaction_shows_committed_rows_and_delays_no_commit() {
    let mut cluster = Cluster::led(9, 2, 0);
    let writer = cluster.connect(0);
    cluster.transact(writer, 1, &add(1));
    cluster.run();
    let (applied, before) = (cluster.nodes[0].applied, cluster.contents(1));
    let insert = r#"{"op":"insert","table":"Log","row":{"id":5}}"#;
    let gone = r#"{"op":"delete","table":"T","where":[]}"#;
    for (number, operations) in [&add(2), insert, gone].into_iter().enumerate() {
        cluster.transact(writer, 2 + number as u64, operations);
    }
    cluster.nodes[0]
        .inbox
        .push_back(ToDatabase::Control(Control::Compact(Some(3))));
    cluster.transact(writer, 9, insert);
    cluster.run_without_commits();
    let after = cluster.contents(0);
    let made = cluster.nodes[0].snapshots.pop().expect("a snapshot");
    let MadeSnapshot {
        index,
        eid,
        snapshot,
        ..
    } = made;
    assert_eq!(index.0, applied);
    let last = cluster.log[..cluster.committed].last().expect("entries");
    assert_eq!(Some(eid), last.data.as_ref().map(|(eid, _)| *eid));
    let rows: usize = snapshot
        .schema()
        .iter()
        .map(|(table, _)| snapshot.rows(table).count())
        .sum();
    assert_eq!(rows, before.len(), "{before:?}");
    cluster.run();
    assert_eq!(cluster.contents(0), after);
    cluster.check_equal();
    assert_eq!(cluster.take(writer).lines().count(), 5);
}

#[test]
fn a_session_with_two_monitors_continues_both_after_a_change_of_leader() {
    let mut cluster = Cluster::led(11, 3, 0);
    let writer = cluster.connect(0);
    // A history holds no more atoms than the database.
    let rows = (0..50).map(|id| format!(r#"{{"op":"insert","table":"Log","row":{{"id":{id}}}}}"#));
    let rows: Vec<String> = rows.collect();
    cluster.transact(writer, 0, &rows.join(","));
    cluster.transact(writer, 1, &add(1));
    cluster.run();
    let method = DatabaseMethod::Monitor(Version::V3);
    let since = |name: &str, table: &str, txn: &str| {
        let column = if table == "T" { "n" } else { "id" };
        format!(r#"["A","{name}",{{"{table}":{{"columns":["{column}"]}}}},"{txn}"]"#)
    };
    let none = "00000000-0000-0000-0000-000000000000";
    let client = cluster.connect(0);
    cluster.ask(client, 1, method, &since("one", "T", none));
    cluster.ask(client, 2, method, &since("two", "Log", none));
    cluster.run();
    let known = cluster.log.last().and_then(|entry| entry.data.clone());
    let known = known.expect("an entry").0.0.to_string();
    // The leader is lost, and the client misses a commit in each table.
    cluster.disconnect(client);
    cluster.lead(1);
    let writer = cluster.connect(1);
    cluster.transact(writer, 2, &add(2));
    cluster.transact(
        writer,
        3,
        r#"{"op":"insert","table":"Log","row":{"id":77}}"#,
    );
    cluster.run();
    let client = cluster.connect(1);
    cluster.ask(client, 1, method, &since("one", "T", &known));
    cluster.ask(client, 2, method, &since("two", "Log", &known));
    cluster.run();
    let told = cluster.take(client);
    assert_eq!(told.matches("\"result\":[true,").count(), 2, "{told}");
    assert!(told.contains(r#"{"modify":{"n":2}}"#), "{told}");
    assert!(told.contains(r#""id":77"#), "{told}");
    // Both monitors continue.
    cluster.transact(writer, 4, &add(3));
    cluster.transact(
        writer,
        5,
        r#"{"op":"insert","table":"Log","row":{"id":78}}"#,
    );
    cluster.run();
    let told = cluster.take(client);
    assert!(told.contains(r#"["one","#), "{told}");
    assert!(told.contains(r#"["two","#), "{told}");
}

#[test]
fn an_id_whose_outcome_is_forgotten_is_not_executed_again_by_any_member() {
    let mut cluster = Cluster::led(12, 3, 0);
    let client = cluster.connect(1);
    let first = Once::sent(
        Uuid([0xa7, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1]),
        None,
    );
    cluster.transact_once(client, 1, &add(1), first);
    cluster.run();
    assert_eq!(cluster.take(client), reply(1, ADDED));
    // The results of other transactions evict this one in every member.
    let row = format!(
        r#"{{"op":"insert","table":"T","row":{{"k":"{}"}}}}"#,
        "y".repeat(60_000)
    );
    cluster.transact(client, 2, &row);
    let select = r#"{"op":"select","table":"T","where":[["k","!=","a"]],"columns":["k"]}"#;
    for number in 3..300 {
        let once = Once::sent(
            Uuid((u128::from(number) << 64 | 0xb7_0000).to_be_bytes()),
            None,
        );
        cluster.transact_once(client, number, &format!("{},{select}", add(number)), once);
        cluster.run();
    }
    cluster.take(client);
    for node in 0..3 {
        let other = cluster.connect(node);
        cluster.transact_once(other, 1, &add(1), first);
        cluster.run();
        assert_eq!(cluster.take(other), "{\"error\":\"canceled\",\"id\":1}\n");
    }
    // A leader that has only seen the entries does not execute it either.
    cluster.lead(2);
    let other = cluster.connect(2);
    cluster.transact_once(other, 1, &add(1), first);
    cluster.run();
    assert_eq!(cluster.take(other), "{\"error\":\"canceled\",\"id\":1}\n");
    cluster.check_equal();
}
