//! Plays on a cluster whose contents are replaced by conversions, installed snapshots or removal,
//! and whose clients disconnect.

use corvid_log::cluster::Eid;
use corvid_monitor::{SessionId, Version};
use corvid_service::Setting;
use corvid_service::message::{
    Control, DatabaseMethod, Event, InstalledSnapshot, SessionInfo, ToDatabase,
};

use crate::cluster::{Cluster, SCHEMA, cluster_schema};
use crate::made_snapshot::MadeSnapshot;

fn insert(id: u64) -> String {
    format!(r#"{{"op":"insert","table":"Log","row":{{"id":{id}}}}}"#)
}

pub(crate) const WIDER: &str = r#"{"name":"A","version":"2.0.0","tables":{
 "T":{"isRoot":true,"indexes":[["k"]],"columns":{"k":{"type":"string"},"n":{"type":"integer"},
    "s":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
 "Log":{"isRoot":true,"columns":{"id":{"type":"integer"},"more":{"type":"string"}}}}}"#;

/// At most two rows of `Log`, with small ids.
const NARROW: &str = r#"{"name":"A","version":"2.0.0","tables":{
 "T":{"isRoot":true,"columns":{"k":{"type":"string"}}},
 "Log":{"isRoot":true,"columns":{"id":{"type":{"key":{"type":"integer","maxInteger":3}}}}}}}"#;

fn convert(cluster: &mut Cluster, session: SessionId, number: u64, schema: &str) {
    let params = format!(r#"["A",{schema}]"#);
    cluster.ask(session, number, DatabaseMethod::Convert, &params);
}

fn monitor(cluster: &mut Cluster, session: SessionId) {
    let params = r#"["A","m",{"Log":{"columns":["id"]}}]"#;
    let method = DatabaseMethod::Monitor(Version::V2);
    cluster.ask(session, 900, method, params);
    cluster.run();
    cluster.take(session);
}

fn version(cluster: &Cluster, node: usize) -> String {
    let schema = cluster.nodes[node]
        .pump
        .service()
        .database()
        .schema()
        .clone();
    schema.version.to_string()
}

fn check_version(cluster: &Cluster, expected: &str) {
    for node in 0..cluster.nodes.len() {
        assert_eq!(version(cluster, node), expected, "member {node}");
    }
    cluster.check_equal();
}

const DONE: &str = "{\"error\":null,\"id\":5,\"result\":{}}\n";

#[test]
fn a_snapshot_waits_neither_for_commits_nor_for_a_conversion_behind_them() {
    let mut cluster = Cluster::led(23, 2, 0);
    let client = cluster.connect(0);
    cluster.transact(client, 1, &insert(7));
    cluster.run();
    let (applied, before) = (cluster.nodes[0].applied, cluster.contents(1));
    // The member's file accepts nothing until it is rewritten with the snapshot.
    cluster.transact(client, 2, &insert(8));
    convert(&mut cluster, client, 5, WIDER);
    cluster.run_without_commits();
    let compact = ToDatabase::Control(Control::Compact(None));
    cluster.nodes[0].inbox.push_back(compact);
    cluster.run_without_commits();
    let made = cluster.nodes[0].snapshots.pop().expect("a snapshot");
    let MadeSnapshot {
        index, snapshot, ..
    } = made;
    assert_eq!(index.0, applied);
    let rows = snapshot.schema().iter();
    let rows = rows.map(|(table, _)| snapshot.rows(table).count());
    assert_eq!(rows.sum::<usize>(), before.len(), "{before:?}");
    cluster.run();
    check_version(&cluster, "2.0.0");
}

#[test]
fn a_conversion_is_one_entry_from_any_member() {
    for node in 0..3 {
        let mut cluster = Cluster::led(20, 3, 0);
        let writer = cluster.connect(1);
        cluster.transact(writer, 1, &insert(7));
        cluster.run();
        let watchers: Vec<SessionId> = (0..3).map(|node| cluster.connect(node)).collect();
        for watcher in &watchers {
            monitor(&mut cluster, *watcher);
        }
        let entries = cluster.log.len();
        let client = cluster.connect(node);
        convert(&mut cluster, client, 5, WIDER);
        cluster.transact(
            client,
            6,
            r#"{"op":"select","table":"Log","where":[],"columns":["more"]}"#,
        );
        cluster.transact(writer, 2, &insert(8));
        cluster.run();
        let read = "{\"error\":null,\"id\":6,\"result\":[{\"rows\":[{\"more\":\"\"}";
        let told = cluster.take(client);
        assert!(told.starts_with(&format!("{DONE}{read}")), "{told}");
        check_version(&cluster, "2.0.0");
        let data = cluster.log[entries..].iter();
        let data = data.filter_map(|entry| entry.data.as_ref());
        let conversions = data.filter(|(_, data)| data.ends_with(b",null]"));
        assert_eq!(conversions.count(), 1);
        for watcher in watchers {
            let told = cluster.take(watcher);
            assert!(told.contains("\"monitor_canceled\""), "{told}");
        }
        for node in &cluster.nodes {
            let mut events = node.events.iter();
            assert!(events.any(|event| matches!(event, Event::Converted(..))));
        }
        // The history starts with the conversion, under the same id everywhere.
        let since = |cluster: &mut Cluster, node| {
            let client = cluster.connect(node);
            let params =
                r#"["A","m",{"T":{"columns":["k"]}},"00000000-0000-0000-0000-000000000000"]"#;
            cluster.ask(client, 1, DatabaseMethod::Monitor(Version::V3), params);
            cluster.run();
            cluster.take(client)
        };
        let told = since(&mut cluster, 0);
        assert_eq!(since(&mut cluster, 1), told);
        assert_eq!(since(&mut cluster, 2), told);
    }
}

#[test]
fn a_conversion_carries_its_rows_when_members_need_them() {
    let mut cluster = Cluster::led(22, 3, 0);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &insert(7));
    cluster.run();
    cluster.take(client);
    let leader = cluster.nodes[0].pump.service_mut();
    leader.set_data_conversion(true);
    convert(&mut cluster, client, 5, WIDER);
    cluster.run();
    assert_eq!(cluster.take(client), DONE);
    check_version(&cluster, "2.0.0");
    let carries_rows = |cluster: &Cluster| {
        let data = cluster.log.iter().filter_map(|entry| entry.data.as_ref());
        let mut schemas = data.filter(|(_, data)| data.starts_with(b"[{"));
        let (_, last) = schemas.next_back().expect("a conversion");
        String::from_utf8_lossy(last).contains(r#""Log":{"#) && !last.ends_with(b",null]")
    };
    assert!(carries_rows(&cluster));
    cluster.transact(client, 6, &insert(8));
    cluster.run();
    cluster.check_equal();
    let enable = ToDatabase::Control(Control::EnableNoDataConversion);
    cluster.nodes[0].inbox.push_back(enable);
    let again = WIDER.replace("2.0.0", "3.0.0");
    convert(&mut cluster, client, 7, &again);
    cluster.run();
    check_version(&cluster, "3.0.0");
    assert!(!carries_rows(&cluster));
}

/// A member forwards the requests of its sessions that come at about the same time in one message.
#[test]
fn conversions_in_one_message_of_a_member_are_done_one_after_the_other() {
    let mut cluster = Cluster::led(24, 3, 0);
    let clients: Vec<SessionId> = (0..5).map(|_| cluster.connect(1)).collect();
    cluster.transact(clients[0], 5, &insert(1));
    convert(&mut cluster, clients[1], 5, WIDER);
    cluster.transact(clients[2], 5, &insert(2));
    convert(&mut cluster, clients[3], 5, SCHEMA);
    cluster.transact(clients[4], 5, &insert(3));
    cluster.execute(1, 9);
    cluster.run();
    for (number, client) in clients.iter().enumerate() {
        let told = cluster.take(*client);
        assert!(told.contains("\"id\":5,\"result\":"), "{number}: {told:?}");
    }
    check_version(&cluster, "1.0.0");
    assert_eq!(columns_and_rows(&mut cluster, 2), (1, 3));
}

/// Requests that arrive while a job replaces the contents are executed afterwards, conversions one
/// at a time.
#[test]
fn conversions_that_come_while_the_new_leader_converts_are_all_done() {
    let mut cluster = Cluster::led(25, 3, 0);
    let first = cluster.connect(0);
    cluster.has_time = false;
    convert(&mut cluster, first, 5, WIDER);
    cluster.run();
    assert!(cluster.carry_job(0));
    cluster.run();
    assert!(cluster.take(first).starts_with(DONE));
    assert!(cluster.carry_job(2));
    cluster.lead(1);
    assert_eq!(version(&cluster, 1), "1.0.0", "a job converts");
    let clients: Vec<SessionId> = (0..4).map(|_| cluster.connect(2)).collect();
    for (number, client) in clients.iter().enumerate() {
        let schema = [SCHEMA, WIDER][number % 2];
        convert(&mut cluster, *client, 5, schema);
        cluster.execute(2, 1);
        cluster.carry_forwards(2);
    }
    cluster.has_time = true;
    cluster.run();
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(cluster.take(*client), DONE, "{number}");
    }
    check_version(&cluster, "2.0.0");
}

#[test]
fn a_conversion_that_the_rows_do_not_fit_is_refused_on_every_member() {
    for node in 0..2 {
        let mut cluster = Cluster::led(21, 2, 0);
        let client = cluster.connect(node);
        cluster.transact(client, 1, &insert(7));
        cluster.run();
        cluster.take(client);
        let entries = cluster.log.len();
        convert(&mut cluster, client, 5, NARROW);
        let ephemeral = WIDER.replace(
            "{\"type\":\"string\"}}",
            "{\"type\":\"string\",\"ephemeral\":true}}",
        );
        convert(&mut cluster, client, 6, &ephemeral);
        cluster.run();
        let told = cluster.take(client);
        assert!(
            told.contains("7 is not in the valid range") || told.contains("constraint"),
            "{told}"
        );
        let ephemeral = "Table Log column more is ephemeral but clustered databases do not support ephemeral columns.";
        assert!(told.contains(ephemeral), "{told}");
        assert_eq!(cluster.log.len(), entries, "nothing was proposed");
        check_version(&cluster, "1.0.0");
    }
}

#[test]
fn a_conversion_in_doubt_is_done_or_done_again() {
    for is_kept in [true, false] {
        for next in [0, 1] {
            let mut cluster = Cluster::led(22, 3, 0);
            let client = cluster.connect(0);
            convert(&mut cluster, client, 5, WIDER);
            cluster.transact(client, 6, &insert(1));
            cluster.run_without_commits();
            assert_eq!(cluster.log.len(), cluster.committed + 1, "it is proposed");
            if !is_kept {
                cluster.log.truncate(cluster.committed);
            }
            cluster.leader = None;
            cluster.announce();
            cluster.run_without_commits();
            assert_eq!(cluster.take(client), "");
            cluster.lead(next);
            let told = cluster.take(client);
            assert!(told.starts_with(DONE), "{told}");
            assert_eq!(told.lines().count(), 2, "{told}");
            check_version(&cluster, "2.0.0");
        }
    }
}

/// A member that has been cut off, and the contents that the others have by then.
fn left_behind(cluster: &mut Cluster) -> InstalledSnapshot {
    cluster.nodes[2].is_paused = true;
    let writer = cluster.connect(0);
    for number in 0..5 {
        cluster.transact(writer, number, &insert(number));
    }
    cluster.transact(
        writer,
        9,
        r#"{"op":"update","table":"T","where":[],"row":{"n":42}}"#,
    );
    cluster.run();
    cluster.snapshot_of(0)
}

#[test]
fn an_installed_snapshot_of_the_same_schema_is_one_update() {
    let mut cluster = Cluster::led(23, 3, 0);
    let watcher = cluster.connect(2);
    monitor(&mut cluster, watcher);
    let installed = left_behind(&mut cluster);
    cluster.install(2, installed);
    cluster.run();
    let told = cluster.take(watcher);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(told.matches("\"insert\"").count(), 5, "{told}");
    cluster.check_equal();
    let client = cluster.connect(2);
    cluster.transact(client, 1, &insert(77));
    cluster.run();
    assert!(cluster.take(client).contains("\"uuid\""));
    assert!(cluster.take(watcher).contains("\"insert\":{\"id\":77}"));
    cluster.check_equal();
}

/// The number of columns of `Log` that a member serves, and the number of its rows.
fn columns_and_rows(cluster: &mut Cluster, node: usize) -> (usize, usize) {
    let client = cluster.connect(node);
    let select = r#"{"op":"select","table":"Log","where":[]}"#;
    cluster.transact(client, 1, select);
    cluster.execute(node, 9);
    let told = cluster.take(client);
    let told = told.split("\"result\"").nth(1).expect("a result");
    let columns = ["\"id\"", "\"more\""];
    let found = columns.iter().filter(|column| told.contains(**column));
    (found.count(), told.matches("\"_uuid\"").count())
}

#[test]
fn a_follower_serves_while_a_job_converts_and_loses_nothing_that_comes_meanwhile() {
    for bytes_max in [u64::MAX, 100] {
        let mut cluster = Cluster::led(29, 2, 0);
        let follower = cluster.nodes[1].pump.service_mut();
        follower.set(Setting::ConversionBytesMax, bytes_max);
        let (converter, writer) = (cluster.connect(0), cluster.connect(1));
        cluster.transact(writer, 1, &insert(1));
        cluster.run();
        cluster.take(writer);
        convert(&mut cluster, converter, 5, WIDER);
        cluster.has_time = false;
        cluster.run();
        assert!(cluster.carry_job(0));
        cluster.run();
        assert_eq!(version(&cluster, 0), "2.0.0");
        assert_eq!(version(&cluster, 1), "1.0.0", "a job converts");
        assert_eq!(columns_and_rows(&mut cluster, 1), (1, 1));
        // Commits under the new schema.
        let late = r#"{"op":"insert","table":"Log","row":{"id":2,"more":"x"}}"#;
        let other = cluster.connect(0);
        for number in 0..3 {
            cluster.transact(other, number, late);
        }
        cluster.transact(writer, 2, &insert(3));
        cluster.run();
        if bytes_max == u64::MAX {
            assert_eq!(version(&cluster, 1), "1.0.0");
            assert_eq!(cluster.take(writer), "");
            assert!(cluster.carry_job(1));
        } else {
            assert_eq!(version(&cluster, 1), "2.0.0", "too much is held");
        }
        cluster.has_time = true;
        cluster.run();
        check_version(&cluster, "2.0.0");
        assert!(
            cluster
                .take(writer)
                .contains("\"id\":2,\"result\":[{\"uuid\"")
        );
        assert_eq!(columns_and_rows(&mut cluster, 1), (2, 5));
    }
}

#[test]
fn a_member_serves_while_a_job_compares_a_snapshot_and_loses_nothing_that_comes_meanwhile() {
    let mut cluster = Cluster::led(30, 3, 0);
    let watcher = cluster.connect(2);
    monitor(&mut cluster, watcher);
    let installed = left_behind(&mut cluster);
    cluster.has_time = false;
    cluster.install(2, installed);
    assert_eq!(columns_and_rows(&mut cluster, 2), (0, 0), "a job compares");
    let writer = cluster.connect(0);
    cluster.transact(writer, 1, &insert(77));
    cluster.transact(
        writer,
        2,
        r#"{"op":"delete","table":"Log","where":[["id","==",1]]}"#,
    );
    cluster.run();
    assert_eq!(cluster.take(watcher), "");
    assert!(cluster.carry_job(2));
    cluster.has_time = true;
    cluster.run();
    let told = cluster.take(watcher);
    assert!(told.contains("\"insert\":{\"id\":4}"), "{told}");
    assert!(told.contains("\"insert\":{\"id\":77}"), "{told}");
    cluster.check_equal();
    assert_eq!(columns_and_rows(&mut cluster, 2), (1, 5));
}

#[test]
fn a_committed_entry_that_does_not_apply_is_the_last_one() {
    let mut cluster = Cluster::led(27, 2, 0);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &insert(7));
    cluster.run();
    let before: Vec<(u64, Vec<String>)> = (0..2)
        .map(|node| (cluster.nodes[node].applied, cluster.contents(node)))
        .collect();
    // The entry deletes a row that does not exist; the entry after it could be applied.
    let absent = Eid(corvid_data::Uuid([9; 16]));
    let data = r#"[null,{"Log":{"4d4d4d4d-0000-4000-8000-000000000001":null}}]"#;
    cluster.push_entry(absent, data.into());
    let row = r#"[null,{"Log":{"4d4d4d4d-0000-4000-8000-000000000002":{"id":8}}}]"#;
    cluster.push_entry(Eid(corvid_data::Uuid([10; 16])), row.into());
    cluster.elect(1);
    cluster.announce();
    cluster.run();
    for (node, (applied, contents)) in before.into_iter().enumerate() {
        assert_eq!(cluster.nodes[node].applied, applied, "member {node}");
        assert_eq!(cluster.contents(node), contents, "member {node}");
        let text = format!("A: committed entry {} cannot be applied: ", applied + 1);
        let is_told =
            |event: &Event| matches!(event, Event::EntryRefused(it) if it.starts_with(&text));
        let events = &cluster.nodes[node].events;
        assert!(events.iter().any(is_told), "member {node}");
    }
}

#[test]
fn a_client_that_goes_withdraws_what_no_leader_has() {
    let mut cluster = Cluster::new(25, 3);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &insert(1));
    cluster.run();
    cluster.disconnect(client);
    cluster.run();
    cluster.lead(0);
    let forwarded = cluster.connect(1);
    cluster.transact(forwarded, 1, &insert(2));
    cluster.transact(forwarded, 2, r#"{"op":"select","table":"Log","where":[]}"#);
    cluster.execute(1, 9);
    cluster.disconnect(forwarded);
    cluster.run();
    let rows: Vec<String> = cluster.contents(0);
    let rows: Vec<&String> = rows.iter().filter(|row| row.starts_with("Log")).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(cluster.nodes[1].pump.service().is_idle());
}

#[test]
fn the_identity_of_a_client_is_judged_where_its_transaction_is_executed() {
    let mut cluster = Cluster::led(26, 2, 0);
    let read_only = cluster.connect_as(1, SessionInfo::new(true, String::new(), None));
    cluster.transact(read_only, 1, &insert(1));
    let holder = cluster.connect(1);
    let other = cluster.connect(1);
    cluster.lock(1, holder, "L");
    let guarded = format!(r#"{{"op":"assert","lock":"L"}},{}"#, insert(2));
    cluster.transact(holder, 1, &guarded);
    cluster.transact(other, 1, &guarded);
    cluster.run();
    assert!(cluster.take(read_only).contains("read only mode"));
    assert!(cluster.take(holder).contains("\"uuid\""));
    assert!(cluster.take(other).contains("not owner"));
    cluster.check_equal();
}

#[test]
fn a_removal_answers_everything_that_depends_on_the_cluster() {
    let mut cluster = Cluster::new(27, 2);
    let client = cluster.connect(1);
    cluster.transact(client, 1, &insert(1));
    cluster.transact(client, 2, r#"{"op":"select","table":"Log","where":[]}"#);
    cluster.run();
    let remove = ToDatabase::Control(Control::Remove);
    cluster.nodes[1].inbox.push_back(remove);
    cluster.run();
    let told = cluster.take(client);
    assert!(
        told.starts_with("{\"error\":\"canceled\",\"id\":1}\n"),
        "{told}"
    );
    assert!(told.contains("\"id\":2"), "{told}");
    assert_eq!(cluster.sessions[&client].completed, 2);
}

#[test]
fn an_entry_with_schema_and_rows_replaces_everything() {
    let mut cluster = Cluster::led(28, 2, 0);
    let data = format!(
        r#"[{WIDER},{{"Log":{{"11111111-1111-4111-8111-111111111111":{{"id":4,"more":"x"}}}}}}]"#
    );
    cluster.leader = None;
    cluster.announce();
    cluster.run_without_commits();
    // A record from another server's file.
    let eid = Eid(corvid_data::Uuid([9; 16]));
    cluster.push_entry(eid, data.into_bytes());
    cluster.lead(1);
    check_version(&cluster, "2.0.0");
    assert_eq!(cluster.contents(0).len(), 1);
    let schema = cluster_schema(WIDER).to_json();
    assert_eq!(
        cluster.nodes[0]
            .pump
            .service()
            .database()
            .schema()
            .to_json(),
        schema
    );
}
