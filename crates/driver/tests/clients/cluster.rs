//! Clients of a cluster of three reference servers, if the reference is installed: they find the
//! leader.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use corvid_data::Uuid;
use corvid_driver::blocking::Client;
use corvid_driver::polled;
use corvid_tests::binary;

use crate::fixture::{SCHEMA, TIMEOUT, class, column, insert, names};

/// A member; dropping it kills the server.
struct Member(Child);

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a reference program in the cluster's folder.
fn command(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(binary::reference(name).expect("it is installed"));
    command.current_dir(folder).env("OVS_RUNDIR", folder);
    command
}

fn start(folder: &Path, number: usize) -> Member {
    let member = command("ovsdb-server", folder)
        .args(["-vconsole:off", "-vfile:off"])
        .arg(format!("--remote=punix:{}", socket(folder, number)))
        .arg(format!(
            "--unixctl={}",
            folder.join(format!("{number}.ctl")).display()
        ))
        .arg(format!("{number}.db"))
        .stderr(Stdio::null())
        .spawn();
    Member(member.expect("it starts"))
}

fn socket(folder: &Path, number: usize) -> String {
    folder.join(format!("{number}.sock")).display().to_string()
}

fn tool(folder: &Path, arguments: &[&str]) {
    let status = command("ovsdb-tool", folder).args(arguments).status();
    assert!(status.expect("it runs").success(), "{arguments:?}");
}

/// The number of the member that a client is connected to.
fn member_of(client: &Client) -> usize {
    let remote = client.session_state().remote();
    let name = remote.rsplit('/').next().expect("a path");
    name.trim_end_matches(".sock").parse().expect("a number")
}

/// A client of this member, whether or not it leads.
fn client_of(remote: &str) -> Client {
    let mut client = polled::Client::new(class(), None).expect("a client");
    let now_ms = client.now_ms();
    let session = client.idl_mut().session();
    session.set_leader_only(now_ms, false);
    session.set_remote(now_ms, remote, true);
    Client::over(client)
}

#[test]
fn a_client_follows_the_leader() {
    if binary::reference("ovsdb-server").is_none() || binary::reference("ovsdb-tool").is_none() {
        eprintln!(
            "SKIPPED: the reference server is not installed, so no client was tried on a cluster"
        );
        return;
    }
    let folder = tempfile::Builder::new()
        .prefix("corvid-cluster")
        .tempdir()
        .expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("schema"), SCHEMA).expect("written");
    tool(folder, &["create-cluster", "0.db", "schema", "unix:0.raft"]);
    let mut members = vec![Some(start(folder, 0))];
    for number in 1..3 {
        let (file, own) = (format!("{number}.db"), format!("unix:{number}.raft"));
        tool(folder, &["join-cluster", &file, "zoo", &own, "unix:0.raft"]);
        members.push(Some(start(folder, number)));
    }
    let remotes: Vec<String> = (0..3)
        .map(|number| format!("unix:{}", socket(folder, number)))
        .collect();
    // A server that has not joined yet is not part of a majority. Later, two servers must form one.
    for remote in &remotes {
        client_of(remote)
            .wait_for_contents(TIMEOUT)
            .expect("it has joined");
    }
    let mut class = class();
    class.track_all();
    let mut client = Client::connect(class, &remotes.join(",")).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    insert(&mut client, "ann");
    // A client that does not need the leader stays with a follower, even if that is its only
    // remote.
    let leader = member_of(&client);
    let follower = (leader + 1) % 3;
    let mut watcher = client_of(&remotes[follower]);
    watcher
        .wait_until(TIMEOUT, |idl| names(idl) == ["ann"])
        .expect("told");
    insert(&mut watcher, "bob");
    client
        .wait_until(TIMEOUT, |idl| names(idl) == ["ann", "bob"])
        .expect("told");
    // The leader dies. The client finds another leader, receives the missed changes, and nothing
    // else.
    client.idl_mut().clear_changes();
    members[leader] = None;
    insert(&mut client, "cid");
    assert_ne!(member_of(&client), leader);
    assert_ne!(client.session_state().last_id(), Uuid::ZERO);
    let table = column(&client, "name").table;
    assert_eq!(
        client.changes(table).len(),
        1,
        "what was there did not come again"
    );
    assert_eq!(names(&client), ["ann", "bob", "cid"]);
    watcher
        .wait_until(TIMEOUT, |idl| names(idl).len() == 3)
        .expect("told");
    // The dead server returns as a follower. The client does not choose it.
    members[leader] = Some(start(folder, leader));
    client
        .idl_mut()
        .session()
        .force_reconnect(corvid_net::clock::mono_ms());
    insert(&mut client, "dan");
    assert_ne!(member_of(&client), leader);
}
