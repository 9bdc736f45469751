//! The choice of server and database.

use crate::client::OURS;
use crate::client::scripted::peer::{connect, serve};
use crate::support::{Dir, command, run, without_dates};

const CID: &str = "6731fef6-afef-4e54-bb8b-892b04777101";

fn row(model: &str, connected: bool, leader: bool) -> String {
    format!(
        r#"[{{"rows":[{{"name":"D","model":"{model}","connected":{connected},"leader":{leader},"cid":["uuid","{CID}"]}}]}}]"#
    )
}

/// Runs `get-schema-version` on a list of three servers, the last of which is always suitable.
fn choose(options: &[&str], first: &str, second: &str, element: &str) -> (i32, String, String) {
    let dir = Dir::new();
    let good = row("clustered", true, true);
    let mut servers = Vec::new();
    for (name, row) in [
        ("a", first.to_owned()),
        ("b", second.to_owned()),
        ("c", good),
    ] {
        let schema = format!(
            r#"{{"name":"D","version":"1.0.{}","tables":{{}}}}"#,
            name.len()
        );
        servers.push(serve(dir.path(), name, move |peer| {
            peer.answer("transact", &row);
            // A server that is not chosen gets no further request.
            let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                peer.expect("get_schema")
            }));
            if let Ok((id, _)) = served {
                peer.reply(&id, &schema);
            }
        }));
    }
    let list = format!("unix:a,unix:b,unix:c{element}");
    let args: Vec<&str> = options
        .iter()
        .copied()
        .chain(["get-schema-version", &list, "D"])
        .collect();
    let done = run(OURS, dir.path(), &args, b"");
    let tried = done
        .stderr
        .lines()
        .filter(|line| line.ends_with(": connected"))
        .count();
    // Servers that were not tried are still listening.
    for (name, server) in ["a", "b", "c"].into_iter().zip(servers) {
        if !server.is_finished() && dir.file(name).exists() {
            drop(connect(dir.path(), name));
        }
        let _ = server.join();
    }
    (done.status, done.stdout, format!("{tried} tried"))
}

#[test]
fn first_suitable_server_is_chosen() {
    let (standalone, follower) = (row("standalone", true, true), row("clustered", true, false));
    let (cut_off, absent) = (
        row("clustered", false, false),
        r#"[{"rows":[]}]"#.to_owned(),
    );
    let chosen = |options: &[&str], first: &str, second: &str, element: &str| {
        let (status, stdout, tried) = choose(options, first, second, element);
        format!("{status} {} {tried}", stdout.trim())
    };
    assert_eq!(chosen(&[], &standalone, &follower, ""), "0 1.0.1 1 tried");
    assert_eq!(chosen(&[], &follower, &cut_off, ""), "0 1.0.1 3 tried");
    assert_eq!(
        chosen(&["--no-leader-only"], &absent, &follower, ""),
        "0 1.0.1 2 tried"
    );
    assert_eq!(
        chosen(&["--no-leader-only"], &cut_off, &follower, ""),
        "0 1.0.1 2 tried"
    );
    let (ours, other) = (
        format!(",cid:{CID}"),
        ",cid:01234567-afef-4e54-bb8b-892b04777101",
    );
    assert_eq!(chosen(&[], &follower, &absent, &ours), "0 1.0.1 3 tried");
    assert_eq!(chosen(&[], &follower, &absent, other), "1  3 tried");
}

#[test]
fn database_is_found_by_name_or_by_default() {
    let chosen = |served: &'static str, args: &[&str]| {
        let dir = Dir::new();
        let server = serve(dir.path(), "db.sock", move |peer| {
            peer.answer("list_dbs", served);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let (id, params) = peer.expect("get_schema");
                let name = params.as_array().and_then(|params| params.first()).cloned();
                let name = name.map(|name| name.to_string()).unwrap_or_default();
                peer.reply(
                    &id,
                    &format!(r#"{{"name":{name},"version":"1.0.0","tables":{{}}}}"#),
                );
                name
            }));
            drop(refused);
        });
        let done = run(OURS, dir.path(), args, b"");
        server.join().expect("the script ran to its end");
        format!("{} {}{}", done.status, done.stdout, done.stderr)
    };
    let schema =
        |name: &str| format!("0 {{\"name\":\"{name}\",\"tables\":{{}},\"version\":\"1.0.0\"}}\n");
    assert_eq!(
        chosen(r#"["B","A","_Server"]"#, &["get-schema", "A"]),
        schema("A")
    );
    assert_eq!(chosen(r#"["B","_Server"]"#, &["get-schema"]), schema("B"));
    assert_eq!(
        chosen(r#"["B","Open_vSwitch"]"#, &["get-schema"]),
        schema("Open_vSwitch")
    );
    assert_eq!(
        chosen(r#"["B","_Server"]"#, &["get-schema", "_Server"]),
        schema("_Server")
    );
    let none =
        "1 ovsdb-client: could not find a default database, please specify a database name\n";
    assert_eq!(chosen(r#"["B","A"]"#, &["get-schema"]), none);
    assert_eq!(
        chosen(r#"["B"]"#, &["get-schema", "A"]),
        "1 ovsdb-client: invalid syntax for 'get-schema' (use --help for help)\n"
    );
    assert_eq!(
        chosen(r#"["B","_Server"]"#, &["log", "A"]),
        "1 ovsdb-client: invalid syntax for 'log' (use --help for help)\n\
         ovsdb-client: if \"A\" is a database, the server does not have it; it has B\n"
    );
    assert_eq!(
        chosen("{}", &["get-schema"]),
        "1 ovsdb-client: list_dbs response is not array\n"
    );
    assert_eq!(
        chosen("[1]", &["get-schema"]),
        "1 ovsdb-client: list_dbs response contains non-string\n"
    );
}

#[test]
fn passive_method_waits_for_the_server() {
    let dir = Dir::new();
    let child = command(OURS, dir.path(), &["list-dbs", "punix:here"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    connect(dir.path(), "here").answer("list_dbs", "[\"B\",\"A\"]");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "A\nB\n");
    let log = without_dates(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        log,
        "ovsdb_client|INFO|punix:here: waiting for connection...\n"
    );
}

#[test]
fn arguments_are_read_before_a_server_is_needed() {
    let dir = Dir::new();
    let said = |args: &[&str]| {
        let outcome = run(OURS, dir.path(), args, b"");
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""));
        let text = outcome.stderr.trim_end();
        text.trim_start_matches("ovsdb-client: ").to_owned()
    };
    for name in ["transact", "query", "convert", "needs-conversion", "wait"] {
        let wrong = format!("invalid syntax for '{name}' (use --help for help)");
        assert_eq!(said(&[name]), wrong);
        assert_eq!(said(&[name, "unix:a", "b", "c", "d"]), wrong);
    }
    for name in ["log", "diff", "revert"] {
        let wrong = format!("invalid syntax for '{name}' (use --help for help)");
        assert_eq!(said(&[name, "unix:a", "b", "c", "d", "e"]), wrong);
    }
    for name in ["transact", "query"] {
        let keyword = "\"x\": line 0, column 1, byte 1: invalid keyword 'x'";
        assert_eq!(said(&[name, "x"]), keyword);
        assert_eq!(said(&[name, "unix:a", "x"]), keyword);
        assert_eq!(said(&[name, "unix:a,unix:b", "x"]), keyword);
        assert_eq!(said(&[name, "y", "x"]), keyword);
        assert_eq!(said(&[name, "{}"]), "not a valid OVSDB query");
    }
    for name in ["convert", "needs-conversion"] {
        let missing = "failed to read schema: \"x\" could not be read as JSON \
                       (error opening \"x\": No such file or directory)";
        assert_eq!(said(&[name, "x"]), missing);
        assert_eq!(said(&[name, "unix:a", "x"]), missing);
    }
    // The reference asks these servers first.
    for args in [["lock", "unix:a"], ["monitor", "mydb"], ["list-dbs", "x"]] {
        let error = said(&args);
        assert!(error.starts_with("failed to connect to"), "{error}");
    }
}

/// A word that was meant as a server is not ignored, or the transaction would go to another one.
#[test]
fn word_before_a_transaction_is_a_server() {
    let dir = Dir::new();
    let outcome = run(OURS, dir.path(), &["transact", "db.sock", r#"["D"]"#], b"");
    let wrong = "ovsdb-client: invalid syntax for 'transact' (use --help for help)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, wrong));
}
