//! Tests the example programs while a third client changes rows, on Corvid's server and on the
//! reference server if it is installed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use corvid::Class;
use corvid::blocking::Client;
use corvid::typed::Row;
use corvid_examples::ovn_northbound::{self, LogicalSwitch, LogicalSwitchPort, PortGroup};
use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};

/// Longer than any wait takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program under test, which is killed when this is dropped.
struct Program {
    process: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(path: &str, remote: &str) -> Program {
        Program::start_with(path, remote, Stdio::null())
    }

    fn start_with(path: &str, remote: &str, errors: Stdio) -> Program {
        let mut process = Command::new(path)
            .arg(remote)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Program { process, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("a line")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn on_each(play: impl Fn(&str, &mut Client)) {
    for implementation in [Implementation::Corvid, Implementation::Reference] {
        if implementation == Implementation::Reference
            && binary::reference("ovsdb-server").is_none()
        {
            eprintln!("SKIPPED: the reference server is not installed");
            continue;
        }
        let schema = serde_json::from_str(include_str!("../../schemas/northbound.ovsschema"));
        let setup = Setup {
            databases: vec![schema.expect("JSON")],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup).expect("a server");
        let remote = format!("unix:{}", server.socket().display());
        let class = Class::everything(ovn_northbound::schema());
        let mut client = Client::connect(class, &remote).expect("a client");
        client.wait_for_contents(Some(TIMEOUT)).expect("contents");
        play(&remote, &mut client);
    }
}

/// Adds a port to the only switch, and creates the switch if it is missing.
fn add_port(client: &mut Client, name: &str, group: &str) -> LogicalSwitchPort {
    let made = client.transact(Some(TIMEOUT), |idl| -> Result<_, corvid::Misuse> {
        let there = LogicalSwitch::all(idl).next();
        let switch = match there {
            Some(switch) => switch,
            None => LogicalSwitch::insert(idl)?,
        };
        let port = LogicalSwitchPort::insert(idl)?;
        port.set_name(idl, name)?;
        port.set_addresses(idl, ["0a:00:00:00:00:01 10.0.0.1"])?;
        port.set_external_ids_key(idl, "group", group)?;
        switch.add_ports(idl, port)?;
        Ok(port)
    });
    let made = made.expect("it fits");
    let port = made.row(made.value);
    assert!(port != made.value && port.is_there(client));
    port
}

fn change(
    client: &mut Client,
    mut make: impl FnMut(&mut corvid::Idl) -> Result<(), corvid::Misuse>,
) {
    client.transact(Some(TIMEOUT), &mut make).expect("it fits");
}

#[test]
fn the_watcher_tells_what_happens() {
    on_each(|remote, client| {
        add_port(client, "old", "");
        let watcher = Program::start(env!("CARGO_BIN_EXE_port-watcher"), remote);
        assert_eq!(watcher.line(), r#"+ old ["0a:00:00:00:00:01 10.0.0.1"]"#);
        let port = add_port(client, "new", "");
        assert_eq!(watcher.line(), r#"+ new ["0a:00:00:00:00:01 10.0.0.1"]"#);
        change(client, |idl| port.set_up(idl, Some(true)));
        assert_eq!(watcher.line(), "~ new up: true");
        change(client, |idl| port.add_addresses(idl, "dynamic").map(drop));
        assert_eq!(
            watcher.line(),
            r#"~ new addresses: ["0a:00:00:00:00:01 10.0.0.1", "dynamic"]"#
        );
        change(client, |idl| {
            let switch = LogicalSwitch::all(idl).next().expect("one");
            switch.remove_ports(idl, port).map(drop)
        });
        assert_eq!(watcher.line(), "- new");
    });
}

#[test]
fn a_client_prints_nothing_by_itself() {
    on_each(|remote, client| {
        add_port(client, "old", "");
        let errors = tempfile::NamedTempFile::new().expect("a file");
        let stderr = errors.reopen().expect("a file").into();
        // Most remotes cannot be reached, so whichever remote it tries first, the client has
        // something that it could print.
        let hosts = ["a", "b", "c", "d"].map(|host| format!("tcp:{host}.host.invalid:6640"));
        let remotes = format!("unix:/nonexistent,{},{remote}", hosts.join(","));
        let watcher = Program::start_with(env!("CARGO_BIN_EXE_port-watcher"), &remotes, stderr);
        assert_eq!(watcher.line(), r#"+ old ["0a:00:00:00:00:01 10.0.0.1"]"#);
        drop(watcher);
        let printed = std::fs::read_to_string(errors.path()).expect("text");
        assert_eq!(printed, "");
    });
}

/// Lists the groups by name, with the names of their ports.
fn groups(idl: &corvid::Idl) -> Vec<(String, Vec<String>)> {
    let groups = PortGroup::all(idl).map(|group| {
        let ports = group.ports(idl).into_iter();
        let mut ports: Vec<String> = ports.map(|port| port.name(idl).to_string()).collect();
        ports.sort();
        (group.name(idl).to_string(), ports)
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort();
    groups
}

fn expect_groups(client: &mut Client, expected: &[(&str, &[&str])]) {
    let expected: Vec<(String, Vec<String>)> = expected
        .iter()
        .map(|(group, ports)| {
            let ports = ports.iter().map(|port| (*port).to_owned()).collect();
            ((*group).to_owned(), ports)
        })
        .collect();
    let outcome = client.wait_until(Some(TIMEOUT), |idl| groups(idl) == expected);
    assert!(
        outcome.is_ok(),
        "{:?} instead of {expected:?}",
        groups(client.idl())
    );
}

#[test]
fn the_controller_keeps_groups_in_step() {
    on_each(|remote, client| {
        let a = add_port(client, "a", "web");
        add_port(client, "loner", "");
        let controller = Program::start(env!("CARGO_BIN_EXE_port-groups"), remote);
        expect_groups(client, &[("web", &["a"])]);
        let b = add_port(client, "b", "web");
        add_port(client, "c", "db");
        expect_groups(client, &[("db", &["c"]), ("web", &["a", "b"])]);
        change(client, |idl| {
            a.set_external_ids_key(idl, "group", "db").map(drop)
        });
        expect_groups(client, &[("db", &["a", "c"]), ("web", &["b"])]);
        change(client, |idl| {
            b.remove_external_ids_key(idl, "group").map(drop)
        });
        expect_groups(client, &[("db", &["a", "c"]), ("web", &[])]);
        // A new controller finds the groups that the old one wrote.
        drop(controller);
        change(client, |idl| {
            a.set_external_ids_key(idl, "group", "web").map(drop)
        });
        let _successor = Program::start(env!("CARGO_BIN_EXE_port-groups"), remote);
        expect_groups(client, &[("db", &["c"]), ("web", &["a"])]);
        change(client, |idl| {
            let switch = LogicalSwitch::all(idl).next().expect("one");
            switch.remove_ports(idl, a).map(drop)
        });
        expect_groups(client, &[("db", &["c"]), ("web", &[])]);
    });
}
