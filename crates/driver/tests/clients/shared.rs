//! The client that threads share.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use corvid_data::{Atom, Datum};
use corvid_driver::shared::Client;
use corvid_driver::{Error, Idl, polled};
use corvid_idl::Misuse;
use corvid_idl::track::Kind;

use crate::fixture::{TIMEOUT, class, column, names, on_each, remote, server, string};

const THREADS: i64 = 8;
const ROUNDS: i64 = 25;

#[test]
fn threads_read_and_write_through_one_connection() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let (name, age) = client.read(|idl| (column(idl, "name"), column(idl, "age")));
        let made = client.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("ann"))?;
            Ok(row)
        });
        let made = made.expect("it fits");
        let row = made.inserted(made.value).expect("inserted");
        let read_age = |idl: &Idl| idl.read(row, age).and_then(|age| age.as_integer());
        // Threads increment a counter as often as they can, competing with each other, while others
        // read.
        thread::scope(|scope| {
            for _ in 0..THREADS {
                let client = client.clone();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let counted = client.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
                            idl.verify(row, age)?;
                            let now = read_age(idl).unwrap_or_default();
                            idl.write(row, age, Datum::one(Atom::Integer(now + 1)))?;
                            Ok(now + 1)
                        });
                        let counted = counted.expect("in the end").value;
                        let shown = client.read(read_age).expect("it is there");
                        assert!(shown >= counted, "a success shows: {shown} after {counted}");
                    }
                });
            }
            scope.spawn(|| {
                let is_done = |idl: &Idl| read_age(idl) == Some(THREADS * ROUNDS);
                client
                    .wait_until(TIMEOUT, is_done)
                    .expect("all were counted");
            });
        });
        assert_eq!(client.read(read_age), Some(THREADS * ROUNDS));
        assert_eq!(client.metrics().session.connects, 1);
    });
}

#[test]
fn updates_come_while_nobody_waits() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let table = client.read(|idl| column(idl, "name").table);
        let (sender, events) = mpsc::channel();
        client.with(|idl| {
            idl.on_change(table, Kind::Insert, move |idl, _, _| {
                sender
                    .send((names(idl), thread::current().name().map(str::to_owned)))
                    .expect("read");
            })
        });
        let mut other =
            corvid_driver::blocking::Client::connect(class(), &remote(&server)).expect("a client");
        crate::fixture::insert(&mut other, "ann");
        let (names, thread) = events.recv_timeout(TIMEOUT.expect("some")).expect("heard");
        assert_eq!(names, ["ann"]);
        assert_eq!(thread.as_deref(), Some("corvid-client"));
    });
}

#[test]
fn what_goes_wrong_in_a_closure_leaves_no_transaction_open() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let name = client.read(|idl| column(idl, "name"));
        let panicking = client.clone();
        let panicked = thread::spawn(move || {
            let _ = panicking.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
                idl.insert_new(name.table)?;
                if idl.row_count(name.table) > 0 {
                    panic!("a mistake of the program");
                }
                Ok(())
            });
        });
        assert!(panicked.join().is_err());
        let left_open = client.with(Idl::begin);
        assert!(left_open.is_ok());
        let refused = client.transact(TIMEOUT, |idl| {
            idl.insert_new(name.table)?;
            Err::<(), _>(Misuse::ReadOnly)
        });
        assert!(refused.is_err());
        assert_eq!(client.read(Idl::open_txn), None);
        assert_eq!(client.read(|idl| idl.row_count(name.table)), 0);
        let made = client.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("ann"))
        });
        made.expect("as if nothing had happened");
        assert_eq!(client.read(names), ["ann"]);
    });
}

#[test]
fn waits_end_with_their_time_and_with_the_last_remote() {
    let socket = std::env::temp_dir().join(format!("corvid-absent-{}.sock", std::process::id()));
    let remotes = format!("unix:{}", socket.display());
    let client = Client::connect(class(), &remotes).expect("a client");
    let outcome = client.wait_for_contents(Some(Duration::from_millis(20)));
    assert!(matches!(outcome, Err(Error::TimedOut(_))), "{outcome:?}");
    let mut once = polled::Client::new(class(), None).expect("a client");
    let now_ms = once.now_ms();
    once.idl_mut().session().set_remote(now_ms, &remotes, false);
    let client = Client::over(once).expect("a thread");
    let outcome = client.wait_for_contents(TIMEOUT);
    assert!(matches!(outcome, Err(Error::Dead(_))), "{outcome:?}");
}

#[test]
fn a_call_within_a_closure_of_the_same_client_panics_instead_of_waiting_for_ever() {
    let client = Client::connect(class(), "unix:/nonexistent").expect("a client");
    let other = Client::connect(class(), "unix:/nonexistent").expect("a client");
    let both = client.read(|_| other.read(Idl::open_txn));
    assert_eq!(both, None, "two clients do not disturb each other");
    let nested = || client.read(|_| client.read(Idl::open_txn));
    let within = std::panic::catch_unwind(std::panic::AssertUnwindSafe(nested));
    assert!(within.is_err());
    assert_eq!(client.read(Idl::open_txn), None);
}

#[test]
fn the_connection_ends_with_the_last_handle() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let clone = client.clone();
        drop(client);
        assert!(clone.read(|idl| idl.session_state().is_monitoring()));
        let seqno = clone.session().seqno;
        clone
            .set_remotes(&format!("{},unix:/nonexistent", remote(&server)))
            .expect("remotes");
        clone
            .wait_for_session(TIMEOUT, |session| session.seqno == seqno)
            .expect("the connection is kept");
        clone.set_lock(Some("tests")).expect("a name");
        clone
            .wait_for_lock(TIMEOUT)
            .expect("no other client wants it");
        let owned = Arc::new(());
        let (table, kept) = (clone.read(|idl| column(idl, "name").table), owned.clone());
        clone.with(|idl| idl.on_change(table, Kind::Insert, move |_, _, _| drop(kept.clone())));
        assert_eq!(Arc::strong_count(&owned), 2);
        // Dropping the last handle joins the thread, so everything that the client owned is gone
        // afterwards.
        drop(clone);
        assert_eq!(Arc::strong_count(&owned), 1);
    });
}

#[test]
fn a_client_that_pauses_between_readings_delays_nothing_that_it_waits_for() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let name = client.read(|idl| column(idl, "name"));
        let mut other =
            corvid_driver::blocking::Client::connect(class(), &remote(&server)).expect("a client");
        let mut insert = |text: &str| {
            let done = other.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string(text))
            });
            done.expect("it fits");
        };
        // A pause longer than the test.
        client.set_reading_pause(Duration::from_secs(3600));
        client.with(|_| {});
        let count = |idl: &Idl| idl.row_count(name.table);
        insert("first");
        let seen = client.wait_until(TIMEOUT, |idl| count(idl) == 1);
        seen.expect("the first update is read at once");
        insert("second");
        thread::sleep(Duration::from_millis(50));
        assert_eq!(client.read(count), 1, "the client pauses");
        // A request ends the pause, and its reply is read although it pauses otherwise.
        let done = client.transact(TIMEOUT, |idl| -> Result<_, Misuse> {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("third"))
        });
        done.expect("a reply");
        assert_eq!(client.read(count), 3);
        insert("fourth");
        // So does any call that may change something.
        let mut tries = 0;
        while client.read(count) < 4 && tries < 1000 {
            client.with(|_| {});
            thread::sleep(Duration::from_millis(5));
            tries += 1;
        }
        assert_eq!(client.read(count), 4);
    });
}
