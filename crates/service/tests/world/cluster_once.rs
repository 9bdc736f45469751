//! Transactions with a `wait` that clients of a cluster send again: at a member whose rows no
//! longer satisfy the `wait`, because the transaction was executed.

use corvid_data::Uuid;
use corvid_service::once::Once;

use crate::cluster::Cluster;

const FIRST: Once = Once::sent(
    Uuid([0xa7, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1]),
    None,
);

const SELECT: &str = r#"{"op":"select","table":"T","where":[["k","==","a"]],"columns":["n"]}"#;

/// Sets the counter of row `a` when it has this value; waits for that without a limit.
fn when(n: u64, then: u64) -> String {
    format!(
        r#"{{"op":"wait","table":"T","where":[["k","==","a"]],"columns":["n"],"until":"==","rows":[{{"n":{n}}}]}},{}"#,
        set(then)
    )
}

fn set(n: u64) -> String {
    format!(r#"{{"op":"update","table":"T","where":[["k","==","a"]],"row":{{"n":{n}}}}}"#)
}

fn result(id: u64, result: &str) -> String {
    format!("{{\"error\":null,\"id\":{id},\"result\":{result}}}\n")
}

/// The first connection is lost; the member of the second one has a snapshot in place of the entry.
#[test]
fn a_repeated_wait_gets_its_result_from_a_member_that_has_only_a_snapshot() {
    let mut cluster = Cluster::led(51, 3, 0);
    cluster.nodes[2].is_cut = true;
    let again = Once::sent(FIRST.id, Some(cluster.seen_at(0)));
    let client = cluster.connect(0);
    cluster.transact_once(client, 1, &when(0, 1), FIRST);
    cluster.run();
    cluster.disconnect(client);
    let installed = cluster.snapshot_of(0);
    cluster.install(2, installed);
    cluster.run();

    let client = cluster.connect(2);
    cluster.transact_once(client, 2, &when(0, 1), again);
    cluster.transact(client, 3, SELECT);
    cluster.run();
    let told = cluster.take(client);
    assert_eq!(
        told,
        result(2, r#"[{},{"count":1}]"#) + &result(3, r#"[{"rows":[{"n":1}]}]"#)
    );
    cluster.check_equal();
}

/// Two copies wait. One is executed, and the member of the other one gets its commit, and the
/// one that satisfied it, as a snapshot.
#[test]
fn a_copy_that_waits_is_answered_when_a_snapshot_contains_its_commit() {
    let mut cluster = Cluster::led(52, 3, 0);
    let again = Once::sent(FIRST.id, Some(cluster.seen_at(0)));
    let (first, second, writer) = (cluster.connect(0), cluster.connect(2), cluster.connect(0));
    let waits = format!("{},{SELECT}", when(5, 6));
    cluster.transact_once(first, 1, &waits, FIRST);
    cluster.transact_once(second, 2, &waits, again);
    // This one stays: no copy of it is executed.
    let other = Once::sent(
        Uuid([0xb7, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1]),
        None,
    );
    cluster.transact_once(second, 3, &when(7, 8), other);
    cluster.run();
    assert_eq!(cluster.nodes[2].pump.report().usage.triggers, 2);
    cluster.nodes[2].is_cut = true;
    cluster.transact(writer, 1, &set(5));
    cluster.run();
    let answer = r#"[{},{"count":1},{"rows":[{"n":6}]}]"#;
    assert_eq!(cluster.take(first), result(1, answer));
    let installed = cluster.snapshot_of(0);
    cluster.install(2, installed);
    cluster.announce();
    cluster.run();
    assert_eq!(cluster.take(second), result(2, answer));
    assert_eq!(cluster.nodes[2].pump.report().usage.triggers, 1);
    cluster.transact(writer, 2, &set(7));
    cluster.run();
    assert_eq!(cluster.take(second), result(3, r#"[{},{"count":1}]"#));
    cluster.check_equal();
    assert!(cluster.nodes[2].pump.service().is_idle());
}

/// The rows satisfied the `wait` here, and no longer when the leader had it.
#[test]
fn a_wait_that_is_canceled_while_the_leader_has_it_does_not_block_again() {
    let mut cluster = Cluster::led(54, 2, 0);
    let (waiting, writer) = (cluster.connect(1), cluster.connect(0));
    cluster.transact(waiting, 1, &when(5, 9));
    cluster.run();
    cluster.nodes[1].is_paused = true;
    cluster.transact(writer, 1, &set(5));
    cluster.transact(writer, 2, &set(6));
    cluster.run();
    cluster.cancel(waiting, 1);
    cluster.nodes[1].is_paused = false;
    cluster.run();
    assert_eq!(cluster.take(waiting), "{\"error\":\"canceled\",\"id\":1}\n");
    assert_eq!(cluster.nodes[1].pump.report().usage.triggers, 0);
    cluster.check_equal();
    assert!(cluster.nodes[1].pump.service().is_idle());
}

/// The first copy arrives last, at a member that knows the commit but not its long result.
#[test]
fn a_first_copy_that_arrives_late_does_not_wait() {
    let mut cluster = Cluster::led(53, 2, 0);
    let writer = cluster.connect(0);
    let row = format!(
        r#"{{"op":"insert","table":"T","row":{{"k":"{}"}}}}"#,
        "y".repeat(70_000)
    );
    cluster.transact(writer, 1, &row);
    cluster.run();
    let all = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
    let (first, second) = (cluster.connect(1), cluster.connect(0));
    let again = Once::sent(FIRST.id, Some(cluster.seen_at(0)));
    cluster.transact_once(second, 1, &format!("{},{all}", when(0, 1)), again);
    cluster.run();
    assert!(cluster.take(second).contains(r#"[{},{"count":1},"#));
    cluster.transact_once(first, 2, &format!("{},{all}", when(0, 1)), FIRST);
    cluster.run();
    assert_eq!(cluster.take(first), "{\"error\":\"canceled\",\"id\":2}\n");
    cluster.check_equal();
}

/// The client has been told that nothing changed. A copy that a member holds back comes to another
/// leader, where the same operations would change something.
#[test]
fn the_end_of_a_repeated_transaction_outlives_its_leader() {
    let mut cluster = Cluster::led(54, 3, 0);
    let again = Once::sent(FIRST.id, Some(cluster.seen_at(0)));
    let counted = cluster.committed_numbers().len();
    let update = r#"{"op":"update","table":"T","where":[["k","==","later"]],"row":{"n":9}}"#;
    let (first, second) = (cluster.connect(1), cluster.connect(2));
    cluster.transact_once(first, 1, update, FIRST);
    cluster.run();
    assert_eq!(cluster.take(first), result(1, r#"[{"count":0}]"#));
    assert_eq!(
        cluster.committed_numbers().len(),
        counted,
        "a first copy makes no entry"
    );
    cluster.transact_once(second, 2, update, again);
    cluster.run();
    assert_eq!(cluster.take(second), result(2, r#"[{"count":0}]"#));

    cluster.transact(
        second,
        3,
        r#"{"op":"insert","table":"T","row":{"k":"later","n":1}}"#,
    );
    cluster.run();
    cluster.take(second);
    cluster.depose();
    cluster.lead(1);
    cluster.run();
    for (number, copy) in [(4, FIRST), (5, again)] {
        for node in 0..3 {
            let client = cluster.connect(node);
            cluster.transact_once(client, number, update, copy);
            cluster.run();
            assert_eq!(cluster.take(client), result(number, r#"[{"count":0}]"#));
        }
    }
    let read = r#"{"op":"select","table":"T","where":[["k","==","later"]],"columns":["n"]}"#;
    cluster.transact(second, 6, read);
    cluster.run();
    assert_eq!(
        cluster.take(second),
        result(6, r#"[{"rows":[{"n":1}]}]"#),
        "nothing was executed again"
    );
    cluster.check_equal();
}

/// Only the leader that executed a first copy knows that nothing changed. A repeated one is
/// executed anew instead of being answered from its memory, because another leader would execute a
/// third.
#[test]
fn an_end_that_only_one_member_knows_answers_no_repeated_copy() {
    let mut cluster = Cluster::led(55, 3, 0);
    let again = Once::sent(FIRST.id, Some(cluster.seen_at(0)));
    let update = r#"{"op":"update","table":"T","where":[["k","==","later"]],"row":{"n":9}}"#;
    let client = cluster.connect(0);
    cluster.transact_once(client, 1, update, FIRST);
    cluster.transact(
        client,
        2,
        r#"{"op":"insert","table":"T","row":{"k":"later","n":1}}"#,
    );
    cluster.run();
    cluster.take(client);
    cluster.transact_once(client, 3, update, again);
    cluster.run();
    assert_eq!(cluster.take(client), result(3, r#"[{"count":1}]"#));
    let late = cluster.connect(2);
    cluster.transact_once(late, 4, update, FIRST);
    cluster.run();
    assert_eq!(cluster.take(late), result(4, r#"[{"count":1}]"#));
    cluster.check_equal();
}

/// A first copy lies unread at a member that is cut off, while another one is executed. The member
/// installs a snapshot, of the leader or of a follower, becomes the leader and reads its copy.
#[test]
fn a_snapshot_names_the_transactions_that_happened() {
    for source in [0, 1] {
        let mut cluster = Cluster::led(56, 3, 0);
        cluster.nodes[2].is_cut = true;
        let client = cluster.connect(0);
        cluster.transact_once(client, 1, &set(4), FIRST);
        cluster.transact(client, 2, &set(5));
        cluster.run();
        let installed = cluster.snapshot_of(source);
        cluster.install(2, installed);
        cluster.run();
        cluster.elect(2);
        cluster.run();
        let late = cluster.connect(2);
        cluster.transact_once(late, 3, &set(4), FIRST);
        let other = Once::sent(
            Uuid([0xa8, 2, 2, 2, 0, 0, 2, 0, 2, 2, 2, 2, 2, 2, 2, 2]),
            None,
        );
        cluster.transact_once(late, 4, &set(6), other);
        cluster.run();
        let told = cluster.take(late);
        assert_eq!(
            told,
            "{\"error\":\"canceled\",\"id\":3}\n".to_owned() + &result(4, r#"[{"count":1}]"#),
            "a snapshot of member {source}"
        );
        cluster.check_equal();
    }
}
