//! Counters of clients.

use corvid_data::Datum;
use corvid_driver::blocking::Client;
use corvid_idl::{Metrics, Misuse};

use crate::fixture::{TIMEOUT, class, column, insert, on_each, remote, server, string};

fn value(metrics: &Metrics, name: &str) -> u64 {
    let found = metrics.named().find(|(named, _)| *named == name);
    found.unwrap_or_else(|| panic!("no metric {name}")).1
}

#[test]
fn a_life_is_counted() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        let (name, age) = (column(&client, "name"), column(&client, "age"));
        let row = client.idl().rows(name.table).next().expect("one");
        // One transaction is refused, one changes nothing, one is aborted; then one changes a row
        // and one deletes it.
        let refused = client.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("ann"))
        });
        assert!(refused.is_err());
        client
            .transact(TIMEOUT, |_| Ok::<_, Misuse>(()))
            .expect("nothing to do");
        let txn = client.idl_mut().begin().expect("none is open");
        client.idl_mut().abort(txn);
        let older = Datum::one(corvid_data::Atom::Integer(7));
        client
            .transact(TIMEOUT, |idl| idl.write(row, age, older.clone()))
            .expect("it fits");
        client
            .transact(TIMEOUT, |idl| idl.delete(row))
            .expect("it fits");
        insert(&mut client, "bob");
        // On a new connection the server resumes the contents, or sends all of them anew if it
        // keeps no history.
        let seqno = client.session_state().session_seqno();
        let now_ms = corvid_net::clock::mono_ms();
        client.idl_mut().session().force_reconnect(now_ms);
        client
            .wait_until(TIMEOUT, |idl| {
                let state = idl.session_state();
                state.session_seqno() >= seqno + 2 && state.is_monitoring()
            })
            .expect("again");
        let metrics = client.metrics();
        for (name, expected) in [
            ("attempts", 2),
            ("failures", 0),
            ("connects", 2),
            ("reconnects", 1),
            ("disconnects", 1),
            ("servers_left", 0),
            ("updates_refused", 0),
            ("rows_inserted", 2),
            ("rows_modified", 1),
            ("rows_deleted", 1),
            ("rows", 1),
            ("transactions_committed", 4),
            ("transactions_unchanged", 1),
            ("transactions_refused", 1),
            ("transactions_not_locked", 0),
            ("transactions_aborted", 1),
            ("events", 0),
        ] {
            let found = value(&metrics, name);
            assert_eq!(
                found, expected,
                "{name} with {implementation:?}: {metrics:?}"
            );
        }
        let resyncs = value(&metrics, "resyncs_full") + value(&metrics, "resyncs_fast");
        assert_eq!(resyncs, 2, "one for each connection");
        assert!(value(&metrics, "updates_applied") >= 6);
        assert!(value(&metrics, "messages_received") > 6);
        assert!(value(&metrics, "bytes_received") > value(&metrics, "messages_received"));
        assert!(value(&metrics, "bytes_sent") > 500);
    });
}

#[test]
fn attempts_that_fail_are_counted() {
    let socket = std::env::temp_dir().join(format!("corvid-nobody-{}.sock", std::process::id()));
    let remotes = format!("unix:{}", socket.display());
    let mut client = Client::connect(class(), &remotes).expect("a client");
    client
        .wait_until(TIMEOUT, |idl| idl.metrics().session.failures >= 1)
        .expect("counted");
    let metrics = client.metrics();
    assert_eq!(metrics.session.connects, 0);
    assert!(
        client
            .transact(Some(std::time::Duration::ZERO), |_| Ok::<_, Misuse>(()))
            .is_err()
    );
    assert!(client.metrics().transactions_retried >= 1);
}
