//! Clients whose servers change: the list grows or shrinks, the schema differs, the server is a
//! relay or falls silent.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use corvid_driver::blocking::Client;
use corvid_driver::{Idl, Reason};
use corvid_session::Failure;
use corvid_tests::binary;
use corvid_tests::process::pause;
use corvid_tests::server::{Implementation, Server, Setup};

use crate::fixture::{SCHEMA, TIMEOUT, class, column, insert, names, on_each, remote, server};
use crate::logs;

/// A server whose schema lacks `tags`.
fn narrow(implementation: Implementation) -> Server {
    let mut schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    let columns = &mut schema["tables"]["keeper"]["columns"];
    columns.as_object_mut().expect("columns").remove("tags");
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    Server::start(implementation, &setup).expect("a server")
}

fn set_remote(client: &mut Client, remotes: &str) {
    let now_ms = corvid_net::clock::mono_ms();
    let session = client.idl_mut().session();
    session.set_shuffle_remotes(false);
    session.set_remote(now_ms, remotes, true);
}

/// Runs until the client is connected to `remote` and has its contents.
fn until_connected_to(client: &mut Client, remote: &str) {
    client
        .wait_until(TIMEOUT, |idl| {
            let state = idl.session_state();
            state.is_monitoring() && state.remote() == remote
        })
        .expect("it serves");
}

#[test]
fn remotes_may_change_under_a_connection() {
    on_each(|implementation| {
        let (one, two) = (server(implementation, &[]), narrow(implementation));
        let (first, second) = (remote(&one), remote(&two));
        let mut client = Client::connect(class(), &first).expect("a client");
        until_connected_to(&mut client, &first);
        insert(&mut client, "ann");
        let (tags, table) = (column(&client, "tags"), column(&client, "name").table);
        assert!(client.server_has_table(table) && client.server_column(tags).is_some());
        // The connected server is still listed, so the connection stays.
        let seqno = client.session_state().session_seqno();
        for remotes in [
            format!("{second},{first}"),
            format!("{first},{second}"),
            first.clone(),
        ] {
            set_remote(&mut client, &remotes);
            insert(&mut client, &remotes);
            assert_eq!(client.session_state().session_seqno(), seqno);
        }
        assert_eq!(names(&client).len(), 4);
        // The connected server is no longer listed, so the client moves to the other one. That
        // server lacks the column `tags` and has no rows.
        set_remote(&mut client, &second);
        until_connected_to(&mut client, &second);
        assert!(client.server_has_table(table) && client.server_column(tags).is_none());
        assert_eq!(names(&client), [""; 0]);
        set_remote(&mut client, &first);
        until_connected_to(&mut client, &first);
        assert!(client.server_column(tags).is_some());
        assert_eq!(names(&client).len(), 4);
    });
}

#[test]
fn connections_that_are_asked_for_wait_for_nothing() {
    logs::collect();
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = Client::connect(class(), &remote(&server)).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        for _ in 0..5 {
            let seqno = client.session_state().session_seqno();
            let now_ms = corvid_net::clock::mono_ms();
            client.idl_mut().session().force_reconnect(now_ms);
            let is_back = |idl: &Idl| {
                let state = idl.session_state();
                state.session_seqno() >= seqno + 2 && state.is_monitoring()
            };
            client.wait_until(TIMEOUT, is_back).expect("again");
        }
        let records = logs::records(&remote(&server));
        assert!(!records.is_empty());
        for record in records {
            assert!(!record.contains("waiting"), "{record}");
        }
    });
}

#[test]
fn a_server_that_falls_silent_is_left() {
    on_each(|implementation| {
        let (one, two) = (server(implementation, &[]), server(implementation, &[]));
        let (first, second) = (remote(&one), remote(&two));
        let mut client = Client::connect(class(), &first).expect("a client");
        until_connected_to(&mut client, &first);
        set_remote(&mut client, &format!("{first},{second}"));
        client.idl_mut().session().set_probe_interval(Some(1000));
        pause(one.pid(), true).expect("stopped");
        until_connected_to(&mut client, &second);
        pause(one.pid(), false).expect("it goes on");
    });
}

/// A relay of the reference; dropping it kills the process.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_relay_does_not_lead() {
    let Some(program) = binary::reference("ovsdb-server") else {
        eprintln!(
            "SKIPPED: the reference server is not installed, so no client was tried on a relay"
        );
        return;
    };
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let at = |name: &str| server.dir().join(name).display().to_string();
        let relay = Command::new(&program)
            .args(["-vconsole:off", "-vfile:off"])
            .arg(format!("--remote=punix:{}", at("relay.sock")))
            .arg(format!("--unixctl={}", at("relay.ctl")))
            .arg(format!("relay:zoo:{}", remote(&server)))
            .env("OVS_RUNDIR", server.dir())
            .stderr(Stdio::null())
            .spawn();
        let _relay = Relay(relay.expect("it starts"));
        let remote = format!("unix:{}", at("relay.sock"));
        let mut client = Client::connect(class(), &remote).expect("a client");
        client
            .wait_until(TIMEOUT, |idl| {
                idl.session_state().last_failure() == Some(&Failure::NotLeader)
            })
            .expect("it is asked, and left");
        assert!(matches!(
            client.last_failure(),
            Some(corvid_driver::Failure {
                reason: Reason::Server(Failure::NotLeader),
                ..
            })
        ));
        assert!(!client.has_ever_connected());
        let setup = corvid_driver::Setup {
            is_leader_only: false,
            ..corvid_driver::Setup::default()
        };
        let mut client = Client::connect_with(class(), &remote, &setup).expect("a client");
        assert_eq!(client.session().is_leader(), None);
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        client
            .wait_until(Some(Duration::from_secs(60)), |idl| names(idl) == ["ann"])
            .expect("told");
    });
}
