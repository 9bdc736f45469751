//! Locks, time and the session's state, through the clients' own methods.

use corvid_driver::blocking::Client;
use corvid_driver::{Error, LockState, Setup, shared};
use corvid_idl::Status;
use corvid_tests::server::Implementation;

use crate::fixture::{TIMEOUT, class, column, insert, names, on_each, remote, server, string};

#[test]
fn a_lock_is_asked_for_waited_for_and_given_back() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let setup = Setup {
            lock: Some("zoo".to_owned()),
            ..Setup::default()
        };
        let mut ann = Client::connect_with(class(), &remote(&server), &setup).expect("a client");
        assert_eq!(ann.session().lock, LockState::Requested);
        ann.wait_for_lock(TIMEOUT).expect("nobody else wants it");
        assert!(ann.has_lock());
        assert_eq!(ann.session().lock, LockState::Held);
        let mut bob = Client::connect(class(), &remote(&server)).expect("a client");
        assert_eq!(bob.session().lock, LockState::Unset);
        bob.wait_for_contents(TIMEOUT).expect("contents");
        bob.set_lock(Some("zoo")).expect("a name");
        bob.wait_for_session(TIMEOUT, |session| session.lock == LockState::Contended)
            .expect("told");
        let name = column(&bob, "name");
        let outcome = bob.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("bob"))
        });
        assert!(matches!(outcome, Err(Error::Ended(Status::NotLocked))));
        insert(&mut ann, "ann");
        ann.set_lock(None).expect("no name");
        ann.run().expect("no transaction is open");
        assert_eq!(ann.session().lock, LockState::Unset);
        bob.wait_for_lock(TIMEOUT).expect("it was given back");
        insert(&mut bob, "bob");
        assert_eq!(names(&bob), ["ann", "bob"]);
    });
}

/// A server may refuse a lock even if its name is an id: ours accepts no name of 5,000 bytes.
#[test]
fn a_refused_lock_is_an_error_of_those_who_wait() {
    let server = server(Implementation::Corvid, &[]);
    let long = "l".repeat(5_000);
    let mut client = Client::connect(class(), &remote(&server)).expect("a client");
    client.set_lock(Some(&long)).expect("an id");
    let outcome = client.wait_for_lock(TIMEOUT);
    assert!(matches!(outcome, Err(Error::LockRefused(_))), "{outcome:?}");
    assert!(matches!(client.session().lock, LockState::Refused(_)));
    client.set_lock(Some("short")).expect("an id");
    client.wait_for_lock(TIMEOUT).expect("nobody else wants it");
    let shared = shared::Client::connect(class(), &remote(&server)).expect("a client");
    shared.set_lock(Some(&long)).expect("an id");
    let outcome = shared.wait_for_lock(TIMEOUT);
    assert!(matches!(outcome, Err(Error::LockRefused(_))), "{outcome:?}");
}

#[test]
fn the_state_of_the_session_is_one_value() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        let mut client = Client::connect(class(), &remote).expect("a client");
        let before = client.session();
        assert!(!before.is_connected && !before.is_synced && !before.has_contents);
        assert!(before.is_alive && before.is_leader().is_none() && before.seqno == 0);
        client.wait_for_contents(TIMEOUT).expect("contents");
        let state = client.session();
        assert!(state.is_connected && state.is_synced && state.has_contents);
        assert_eq!(state.remote.as_deref(), Some(remote.as_str()));
        assert_eq!(state.is_leader(), Some(true), "it is the only one");
        let model = state.server.as_ref().map(|server| server.model.to_string());
        assert_eq!(model.as_deref(), Some("standalone"));
        assert_eq!((state.last_failure, state.seqno), (None, 1));
        let now_ms = client.now_ms();
        client.reconnect();
        client
            .wait_for_session(TIMEOUT, |session| session.seqno >= 3 && session.is_synced)
            .expect("again");
        assert!(client.now_ms() >= now_ms);
        assert_eq!(client.session().last_failure, None, "it was asked for");
    });
}

#[cfg(feature = "tokio")]
#[test]
fn asynchronous_clients_have_the_same() {
    use corvid_driver::tokio::Client;

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        let play = async {
            let mut client = Client::connect(class(), &remote).expect("a client");
            client.set_lock(Some("zoo")).expect("a name");
            client.wait_for_lock().await.expect("nobody else wants it");
            client.wait_for_contents().await.expect("contents");
            let state = client.session();
            assert!(state.is_synced && state.lock == LockState::Held);
            let table = column(&client, "name").table;
            let none = corvid_session::Condition::none();
            client.set_condition((table, none)).await.expect("in force");
            let outcome = client
                .transact(|_| -> Result<(), Box<dyn std::error::Error>> { Err("enough")? })
                .await;
            assert_eq!(outcome.unwrap_err().to_string(), "enough");
            client
                .set_remotes("unix:/nowhere/at/all")
                .expect("well formed");
            let soon = std::time::Duration::from_secs(60);
            let fails = client.wait_for_session(|session| session.last_failure.is_some());
            tokio::time::timeout(soon, fails)
                .await
                .expect("in time")
                .expect("no transaction is open");
            let failure = client.last_failure().expect("no such socket");
            assert!(failure.to_string().contains("No such file"), "{failure}");
        };
        let limit = TIMEOUT.expect("some");
        runtime
            .block_on(async { tokio::time::timeout(limit, play).await })
            .expect("in time");
    });
}
