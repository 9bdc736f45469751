//! Kinds of connections, and what happens to a client when its connection is lost or refused.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use corvid_driver::blocking::Client;
use corvid_driver::{Authority, Credentials, Error, Failure, Reason, RemoteError, Settings, Setup};
use corvid_tests::server::{Implementation, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::fixture::{TIMEOUT, class, column, insert, names, on_each, remote, server};
use crate::logs;

/// The port that a server listens on, according to its log.
fn port(server: &Server) -> u16 {
    let log = server.log();
    let line = log.rsplit("listening on port ").next().expect("a line");
    let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no port in {log}"))
}

/// A port without a listener. The near end of a connection has it, so that no other process gets it
/// and listens.
struct ClosedPort {
    number: u16,
    _connection: (TcpListener, TcpStream),
}

fn closed_port() -> ClosedPort {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its own");
    let stream = TcpStream::connect(address).expect("a connection");
    ClosedPort {
        number: stream.local_addr().expect("its own").port(),
        _connection: (listener, stream),
    }
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    on_each(|implementation| {
        let mut server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        let seqno = client.session_state().session_seqno();
        server.restart().expect("it starts again");
        insert(&mut client, "bob");
        assert!(client.session_state().session_seqno() > seqno);
        assert_eq!(names(&client), ["ann", "bob"]);
    });
}

#[test]
fn of_several_remotes_one_that_answers_is_found() {
    on_each(|implementation| {
        for host in ["127.0.0.1", "[::1]"] {
            let server = server(implementation, &[&format!("--remote=ptcp:0:{host}")]);
            let closed = closed_port();
            let remotes = format!(
                "tcp:127.0.0.1:{},unix:/nowhere/at/all,tcp:{host}:{}",
                closed.number,
                port(&server)
            );
            let mut client = Client::connect(class(), &remotes).expect("a client");
            client.wait_for_contents(TIMEOUT).expect("contents");
            insert(&mut client, "ann");
            assert!(
                client
                    .session_state()
                    .remote()
                    .ends_with(&port(&server).to_string())
            );
        }
    });
}

#[test]
fn a_refused_connection_is_told_to_who_wants_one_attempt() {
    logs::collect();
    let closed = closed_port();
    let remote = format!("tcp:127.0.0.1:{}", closed.number);
    let setup = Setup {
        is_persistent: false,
        ..Setup::default()
    };
    let mut client = Client::connect_with(class(), &remote, &setup).expect("a client");
    let outcome = client.wait_for_contents(TIMEOUT);
    let Err(Error::Dead(Some(failure))) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.to_string(), format!("{remote}: Connection refused"));
    assert!(!client.session().is_alive);
    let lines = logs::records(&remote);
    assert!(
        lines.iter().any(|line| line.starts_with("INFO tcp:")
            && line.ends_with("connection attempt failed (Connection refused)")),
        "{lines:?}"
    );
    // A persistent client keeps trying until the time limit has passed.
    let mut client = Client::connect(class(), &remote).expect("a client");
    let outcome = client.wait_for_contents(Some(Duration::from_millis(50)));
    assert!(matches!(outcome, Err(Error::TimedOut(Some(_)))));
    assert!(client.session().is_alive);
}

#[test]
fn a_server_may_connect_to_the_client() {
    on_each(|implementation| {
        let folder = tempfile(implementation);
        let socket = folder.path().join("client.sock");
        let mut client =
            Client::connect(class(), &format!("punix:{}", socket.display())).expect("a client");
        let outcome = client.wait_for_contents(Some(Duration::from_millis(20)));
        assert!(
            matches!(outcome, Err(Error::TimedOut(None))),
            "nobody is there yet, and nothing failed"
        );
        let _server = server(
            implementation,
            &[&format!("--remote=unix:{}", socket.display())],
        );
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        assert_eq!(names(&client), ["ann"]);
    });
}

fn tempfile(implementation: Implementation) -> tempfile::TempDir {
    let prefix = format!("corvid-driver-{implementation:?}");
    tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir()
        .expect("a folder")
}

/// Waits for contents that never arrive, until `says_why` finds the expected failure.
fn until_time_is_over(client: &mut Client, says_why: impl Fn(&Client) -> bool) {
    let begin = Instant::now();
    loop {
        let outcome = client.wait_for_contents(Some(Duration::from_millis(100)));
        let Err(Error::TimedOut(failure)) = &outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(*failure, client.last_failure());
        if says_why(client) {
            return;
        }
        assert!(
            begin.elapsed() < TIMEOUT.expect("some"),
            "never said: {failure:?}"
        );
    }
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Writes a key and a certificate.
fn issue(folder: &Path, name: &str, issuer: &Issuer) {
    let key = KeyPair::generate().expect("a key");
    let certificate = named(name).signed_by(&key, issuer).expect("signed");
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("written");
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("written");
}

#[test]
fn tls_both_ways() {
    logs::collect();
    on_each(|implementation| {
        let folder = tempfile(implementation);
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = |params: CertificateParams| {
            Issuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA")
        };
        let (issuer, stranger) = (issuer(params.clone()), issuer(params));
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("ca.pem"), issuer.pem()).expect("written");
        issue(folder.path(), "server", &issuer);
        issue(folder.path(), "client", &issuer);
        let server = server(
            implementation,
            &[
                &format!("--private-key={}", at("server.key")),
                &format!("--certificate={}", at("server.pem")),
                &format!("--ca-cert={}", at("ca.pem")),
                "--remote=pssl:0:127.0.0.1",
            ],
        );
        let remote = format!("ssl:127.0.0.1:{}", port(&server));
        let credentials = |key: &str, authority: &str| Setup {
            credentials: Some(Credentials::new(&Settings {
                private_key: Some(at(key)),
                certificate: Some(at(&key.replace(".key", ".pem"))),
                authority: Some(Authority {
                    file: at(authority),
                    is_bootstrapped: false,
                }),
                ..Settings::default()
            })),
            ..Setup::default()
        };
        // Missing credentials are reported at once.
        let outcome = Client::connect(class(), &remote).map(drop);
        assert!(
            matches!(
                outcome,
                Err(Error::Remote(RemoteError::NoCredentials { .. }))
            ),
            "{outcome:?}"
        );
        std::fs::write(at("empty.pem"), "").expect("written");
        for (key, authority, part, why) in [
            (
                "nobody.key",
                "ca.pem",
                "Private key",
                "No such file or directory",
            ),
            ("ca.pem", "ca.pem", "Private key", "private key in PEM form"),
            (
                "client.key",
                "nowhere.pem",
                "CA certificate",
                "No such file or directory",
            ),
            (
                "client.key",
                "empty.pem",
                "CA certificate",
                "no certificate in PEM form",
            ),
        ] {
            let setup = credentials(key, authority);
            let outcome = Client::connect_with(class(), &remote, &setup).map(drop);
            assert!(
                matches!(&outcome, Err(Error::Remote(RemoteError::IncompleteCredentials { missing, .. })) if missing.iter().any(|missing| missing.name == part)),
                "{outcome:?}"
            );
            // The error text gives the reason and the file's name.
            let text = outcome.expect_err("refused").to_string();
            let file = if part == "Private key" {
                key
            } else {
                authority
            };
            assert!(
                text.contains(&format!("{file}: ")) && text.contains(why),
                "{text}"
            );
        }
        // A certificate that one side rejects: the error after the time limit says which side
        // rejected it.
        issue(folder.path(), "stranger", &stranger);
        std::fs::write(at("strangers.pem"), stranger.pem()).expect("written");
        for (key, authority, words) in [
            ("client.key", "strangers.pem", "certificate verify failed"),
            ("stranger.key", "ca.pem", "alert"),
        ] {
            let setup = credentials(key, authority);
            let mut client = Client::connect_with(class(), &remote, &setup).expect("a client");
            let is_tls = |client: &Client| matches!(client.last_failure(), Some(Failure { reason: Reason::Tls(text), .. }) if text.contains(words));
            until_time_is_over(&mut client, is_tls);
            // Connections also log to the program's logger, not to standard error.
            let records = logs::records("stream_ssl: ");
            let is_told = |record: &String| record.starts_with("WARN") && record.contains(words);
            assert!(records.iter().any(is_told), "{words}: {records:?}");
        }
        let setup = credentials("client.key", "ca.pem");
        let mut client = Client::connect_with(class(), &remote, &setup).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let long = "x".repeat(500_000);
        insert(&mut client, &long);
        assert_eq!(names(&client), [long]);
    });
}

#[test]
fn a_server_without_conditions_shows_everything() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        server
            .control("ovsdb-server/disable-monitor-cond", &[])
            .expect("done");
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        assert!(!client.session_state().conditions_supported());
        let table = column(&client, "name").table;
        let none = corvid_session::Condition::none();
        client
            .set_condition((table, none), TIMEOUT)
            .expect("in force at once");
        assert_eq!(names(&client), ["ann"]);
        let seqno = client.session().seqno;
        client.reconnect();
        let is_back = |idl: &corvid_driver::Idl| {
            let state = idl.session_state();
            state.session_seqno() > seqno + 1 && state.is_monitoring()
        };
        client.wait_until(TIMEOUT, is_back).expect("again");
        insert(&mut client, "bob");
        assert_eq!(names(&client), ["ann", "bob"]);
    });
}
