//! Why a client cannot connect. Mistakes in remotes are immediate errors, and a timeout names the
//! last failure.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use corvid_data::{Arc, Schema};
use corvid_driver::blocking::Client;
use corvid_driver::{Error, Failure, Reason, RemoteError, ServerFailure, Setup, polled};
use corvid_idl::Class;
use corvid_json::Value;

use crate::fixture::{SCHEMA, TIMEOUT, class, on_each, remote, server};

/// A class of the usual schema with `from` replaced by `to`.
fn other_class(from: &str, to: &str) -> Class {
    let text = SCHEMA.replace(from, to);
    let schema = Schema::from_json(&Value::parse(text.as_bytes()).expect("JSON"));
    Class::everything(Arc::new(schema.expect("a schema")))
}

/// Waits for contents that never arrive until something has failed, and returns the failure.
fn failure(client: &mut Client) -> Failure {
    client
        .wait_for_session(TIMEOUT, |session| session.last_failure.is_some())
        .expect("something fails");
    let outcome = client.wait_for_contents(Some(Duration::from_millis(20)));
    let Err(Error::TimedOut(Some(failure))) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(client.last_failure().as_ref(), Some(&failure));
    assert_eq!(client.session().last_failure.as_ref(), Some(&failure));
    failure
}

/// The failure of a client of `class` that connects to `remote`.
fn failure_of(class: Class, remote: &str) -> Reason {
    let mut client = Client::connect(class, remote).expect("a client");
    let failure = failure(&mut client);
    assert_eq!(failure.remote, remote);
    assert!(failure.to_string().starts_with(remote));
    failure.reason
}

#[test]
fn mistakes_in_remotes_are_errors_of_connect() {
    for remotes in ["", "cid:6731fef6"] {
        let outcome = Client::connect(class(), remotes);
        assert!(matches!(outcome, Err(Error::Remote(RemoteError::Missing))));
    }
    for remotes in ["localhost:6640", "unix:/a,tpc:127.0.0.1:6640"] {
        let outcome = Client::connect(class(), remotes);
        assert!(matches!(
            outcome,
            Err(Error::Remote(RemoteError::UnknownScheme { .. }))
        ));
    }
    for remotes in ["tcp:127.0.0.1:port", "tcp::6640", "pfd:x"] {
        let outcome = polled::Client::connect(class(), remotes);
        assert!(matches!(
            outcome,
            Err(Error::Remote(RemoteError::Malformed { .. }))
        ));
    }
    #[cfg(feature = "tokio")]
    {
        let outcome = corvid_driver::tokio::Client::connect(class(), "ssl:127.0.0.1:6640");
        assert!(matches!(
            outcome,
            Err(Error::Remote(RemoteError::NoCredentials { .. }))
        ));
    }
    // Later changes of the remotes are checked too. A wrong list changes nothing.
    let mut client = Client::connect(class(), "unix:/nowhere/at/all").expect("a client");
    let outcome = client.set_remotes("ssl:127.0.0.1:6640");
    assert!(matches!(outcome, Err(RemoteError::NoCredentials { .. })));
    assert_eq!(
        client.session().remote.as_deref(),
        Some("unix:/nowhere/at/all")
    );
}

#[test]
fn a_time_limit_says_what_the_operating_system_said() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("its own").port();
    drop(closed);
    for (remote, expected) in [
        (
            format!("tcp:127.0.0.1:{port}"),
            ErrorKind::ConnectionRefused,
        ),
        ("unix:/nowhere/at/all".to_owned(), ErrorKind::NotFound),
    ] {
        match failure_of(class(), &remote) {
            Reason::Connection { kind, text } => {
                assert_eq!(kind, expected, "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    let mut client = Client::connect(class(), &format!("tcp:127.0.0.1:{port}")).expect("a client");
    let text = failure(&mut client).to_string();
    assert_eq!(text, format!("tcp:127.0.0.1:{port}: Connection refused"));
}

#[test]
fn a_time_limit_says_that_the_peer_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let remote = format!("tcp:{}", listener.local_addr().expect("its own"));
    let setup = Setup {
        probe_interval: Some(Duration::from_secs(1)),
        ..Setup::default()
    };
    let mut client = Client::connect_with(class(), &remote, &setup).expect("a client");
    assert_eq!(failure(&mut client).reason, Reason::NoAnswer);
    // Closes every connection until the program ends, including those of later attempts.
    std::thread::spawn(move || {
        while let Ok(connection) = listener.accept() {
            drop(connection);
        }
    });
    let mut client = Client::connect(class(), &remote).expect("a client");
    let reason = failure(&mut client).reason;
    let is_reset =
        matches!(&reason, Reason::Connection { kind, .. } if *kind == ErrorKind::ConnectionReset);
    assert!(reason == Reason::Closed || is_reset, "{reason:?}");
}

#[test]
fn a_time_limit_says_why_a_server_does_not_suit() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let reason = failure_of(other_class("\"zoo\"", "\"farm\""), &remote(&server));
        assert_eq!(reason, Reason::Server(ServerFailure::NoSuchDatabase));
        // With two remotes, the error names the one that failed last.
        let both = format!("unix:/nowhere/at/all,{}", remote(&server));
        let setup = Setup {
            is_shuffled: false,
            ..Setup::default()
        };
        let class = other_class("\"zoo\"", "\"farm\"");
        let mut client = Client::connect_with(class, &both, &setup).expect("a client");
        let is_of_server = |failure: &Failure| matches!(failure.reason, Reason::Server(_));
        client
            .wait_for_session(TIMEOUT, |session| {
                session.last_failure.as_ref().is_some_and(is_of_server)
            })
            .expect("it answers");
        let failure = client.last_failure().expect("it does not suit");
        assert_eq!(failure.remote, remote(&server));
    });
}

#[test]
fn a_time_limit_says_what_the_schema_lacks() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let table = r#""cage":{"columns":{"size":{"type":"integer"}}},"keeper""#;
        let class = other_class("\"keeper\"", table);
        let cage = class.table("cage").expect("a table");
        let mut client = Client::connect(class, &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let soon = Some(Duration::from_millis(20));
        let outcome = client.wait_until(soon, |idl| idl.row_count(cage) > 0);
        let Err(Error::TimedOut(Some(failure))) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            failure.to_string(),
            format!("{}: the database lacks table cage", remote(&server))
        );
        let Reason::SchemaLacks(missing) = failure.reason else {
            panic!("{failure:?}");
        };
        assert_eq!(
            (missing[0].table.as_str(), &missing[0].column),
            ("cage", &None)
        );
    });
}
