//! The polled client: an event loop with two of them.

use std::time::{Duration, Instant};

use corvid_driver::polled::Client;
use corvid_idl::{Misuse, Status};
use corvid_net::poll;

use crate::fixture::{TIMEOUT, class, column, names, on_each, remote, server, string};

/// Runs clients in turn until `holds` returns true, waiting briefly for one at a time.
fn run_until(clients: &mut [&mut Client], mut holds: impl FnMut(&[&mut Client]) -> bool) {
    let begin = Instant::now();
    loop {
        for client in clients.iter_mut() {
            client.run().expect("none is open");
        }
        if holds(clients) {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT.expect("some"), "it never holds");
        for client in clients.iter_mut() {
            let wait = client.wait();
            let (readable, writable) = (i16::from(wait.readable), 4 * i16::from(wait.writable));
            let fd = wait.fd.map(|fd| (fd, readable | writable));
            let short = Duration::from_millis(5);
            let timeout = wait.timeout.map_or(short, |timeout| timeout.min(short));
            poll::wait(fd, Some(timeout)).expect("polled");
        }
    }
}

#[test]
fn two_clients_share_a_loop() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let connect = || Client::connect(class(), &remote(&server)).expect("a client");
        let (mut ann, mut bob) = (connect(), connect());
        run_until(&mut [&mut ann, &mut bob], |clients| {
            clients
                .iter()
                .all(|client| client.idl().has_ever_connected())
        });
        let name = column(ann.idl(), "name");
        let idl = ann.idl_mut();
        let txn = idl.begin().unwrap();
        let row = idl.insert_new(name.table).unwrap();
        idl.write(row, name, string("ann")).unwrap();
        assert_eq!(ann.run(), Err(Misuse::TransactionOpen));
        assert_eq!(ann.idl_mut().commit(), Ok(Status::Incomplete));
        let wait = ann.wait();
        assert!(
            wait.fd.is_some() && wait.writable,
            "what is sent leaves with the next run"
        );
        run_until(&mut [&mut ann, &mut bob], |clients| {
            clients
                .iter()
                .all(|client| client.idl().row_count(name.table) == 1)
        });
        run_until(&mut [&mut ann, &mut bob], |clients| {
            clients[0].idl().status(txn) == Some(Status::Success)
        });
        assert_eq!(names(bob.idl()), ["ann"]);
        // An idle client waits only to read and for its timers.
        let wait = bob.wait();
        assert!(wait.readable && !wait.writable && wait.timeout != Some(Duration::ZERO));
    });
}

/// A client that has lost its lock must discard the work that it did as the owner. So the program
/// sees each loss, however fast the server grants the lock on the next connection.
#[test]
fn a_lock_that_is_lost_by_a_reconnection_is_seen_to_be_lost() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        client.set_lock(Some("zoo")).expect("a name");
        for _ in 0..20 {
            run_until(&mut [&mut client], |clients| {
                clients[0].has_lock() && clients[0].session().is_synced
            });
            client.reconnect();
            client.run().expect("none is open");
            assert!(!client.has_lock());
        }
    });
}
