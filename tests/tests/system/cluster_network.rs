//! Members of a cluster over real sockets: TLS, IPv6, slow members, and strangers at the members'
//! port.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::cluster::{Cluster, LIMIT};
use corvid_tests::numbered_rows::{add, add_with, await_rows, schema, started, three};
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

fn write_through_all(cluster: &Cluster) {
    for member in 0..3 {
        let mut client = cluster.connect(member).expect("a connection");
        add(&mut client, member).expect("inserted");
    }
    await_rows(cluster, &[0, 1, 2], &(0..3).collect());
}

/// Makes an authority, a key `NAME-key.pem` and a certificate `NAME-cert.pem` that the authority
/// has signed. Returns false if there is no program for this.
pub(crate) fn make_identity(folder: &Path, name: &str) -> bool {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let outcome = command
            .args(arguments.split(' '))
            .current_dir(folder)
            .output();
        matches!(outcome, Ok(output) if output.status.success())
    };
    openssl(&format!(
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name}-authority -keyout {name}-ca-key.pem -out {name}-ca.pem"
    )) && openssl(&format!(
        "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}-key.pem -out {name}.csr"
    )) && openssl(&format!(
        "x509 -req -in {name}.csr -CA {name}-ca.pem -CAkey {name}-ca-key.pem -CAcreateserial -days 2 -out {name}-cert.pem"
    ))
}

pub(crate) fn tls_options(folder: &Path, name: &str, authority: &str) -> Vec<OsString> {
    let option = |option: &str, file: String| -> OsString {
        format!("--{option}={}", folder.join(file).display()).into()
    };
    vec![
        option("private-key", format!("{name}-key.pem")),
        option("certificate", format!("{name}-cert.pem")),
        option("ca-cert", format!("{authority}-ca.pem")),
    ]
}

/// Makes a server that will join through the first member, over the scheme and with these options.
fn joiner(
    cluster: &Cluster,
    folder: &Path,
    scheme: &str,
    name: &str,
    tool: &[&str],
    options: &[OsString],
) -> Process {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = format!("{scheme}:{}", free.local_addr().expect("an address"));
    drop(free);
    let folder = folder.join(format!("joiner-{name}-{}", own.replace(':', "-")));
    fs::create_dir(&folder).expect("made");
    let file = folder.join("file.db");
    let mut command = Command::new(binary::bin("ovsdb-tool"));
    command.args(tool).arg("join-cluster").arg(&file);
    command.args([name, &own, &cluster.peer_address(0).expect("an address")]);
    peer::run(&mut command).expect("made");
    let program = Implementation::Corvid.server_binary().expect("built");
    Process::new(&program, &folder, &[options, &[file.into()]].concat())
}

fn await_line(process: &Process, text: &str) {
    let began = Instant::now();
    while !process.log().contains(text) {
        let log = process.log();
        assert!(began.elapsed() < LIMIT, "no line {text}:\n{log}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn members_reach_each_other_over_tls_and_refuse_strangers() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !make_identity(at, "ours") || !make_identity(at, "stranger") {
        return peer::say_skipped("openssl, which makes certificates, is not installed");
    }
    let options = tls_options(at, "ours", "ours");
    let cluster = Cluster::over("ssl", "127.0.0.1", 3, &options, &schema());
    let (mut cluster, _) = started(cluster.expect("made"));
    write_through_all(&cluster);
    let status = cluster.status(0).expect("a status");
    assert_eq!(status.matches(" at ssl:127.0.0.1:").count(), 3, "{status}");

    // A server with a certificate of another authority is rejected, and each side reports this.
    let options = tls_options(at, "stranger", "ours");
    let mut stranger = joiner(&cluster, at, "ssl", "D", &[], &options);
    stranger.start().expect("started");
    let began = Instant::now();
    loop {
        let log = cluster.member(0).log();
        let is_refused =
            |line: &str| line.contains("|raft|WARN|ssl:") && line.contains("connection refused (");
        if log.lines().any(is_refused) {
            break;
        }
        assert!(began.elapsed() < LIMIT, "{log}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let log = stranger.log();
    assert!(!log.contains("learned server ID"), "{log}");
    // A member's certificate is also useless to a server that does not trust that certificate's
    // authority.
    let options = tls_options(at, "ours", "stranger");
    let mut distrustful = joiner(&cluster, at, "ssl", "D", &[], &options);
    distrustful.start().expect("started");
    await_line(&distrustful, ": connection attempt failed (");
    // A server without TLS is rejected, too.
    let address = cluster.peer_address(0).expect("an address");
    let mut plain = TcpStream::connect(address.trim_start_matches("ssl:")).expect("connected");
    plain
        .write_all(b"{\"id\":null,\"method\":\"hello_request\"}")
        .expect("sent");
    assert_closed(&mut plain);

    // A server with the right certificate joins.
    let options = tls_options(at, "ours", "ours");
    let mut fourth = joiner(&cluster, at, "ssl", "D", &[], &options);
    fourth.start().expect("started");
    await_line(&fourth, "|raft|INFO|joined cluster ");
    // The new member may hear of it before the leader knows that its list is committed.
    let is_listed = |status: String| status.matches(" at ssl:127.0.0.1:").count() == 4;
    let listed = cluster.wait_until("four members are listed", || {
        cluster.status(0).is_ok_and(is_listed)
    });
    listed.expect("they are listed");
}

#[test]
fn members_reach_each_other_over_ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        return peer::say_skipped("this machine has no IPv6");
    }
    let cluster = Cluster::over("tcp", "[::1]", 3, &[], &schema());
    let (cluster, leader) = started(cluster.expect("made"));
    write_through_all(&cluster);
    let status = cluster.status(leader).expect("a status");
    assert_eq!(status.matches(" at tcp:[::1]:").count(), 3, "{status}");
    let next = (leader + 1) % 3;
    cluster.move_leadership(next).expect("transferred");
}

#[test]
fn member_that_takes_nothing_is_disconnected_at_the_threshold() {
    let (mut cluster, leader) = three();
    let slow = (leader + 1) % 3;
    let set = |messages: &str, bytes: &str| {
        let command = "cluster/set-backlog-threshold";
        let reply = cluster.control(leader, command, &["D", messages, bytes]);
        reply.expect("accepted")
    };
    assert_eq!(set("50", "1000000"), "");
    let mut client = cluster.connect(leader).expect("a connection");
    // A leader sends many entries at once only to members that have answered.
    write_through_all(&cluster);
    cluster.pause(slow, true).expect("paused");
    let text = "x".repeat(100_000);
    // It depends on the load which of the two limits is reached first.
    let line = "sending backlog exceeded maximum ";
    let began = Instant::now();
    let mut written = 3;
    while !cluster.members()[leader].log().contains(line) {
        add_with(&mut client, written, &text).expect("the others are a majority");
        written += 1;
        assert!(began.elapsed() < LIMIT, "{}", cluster.said());
    }
    cluster.pause(slow, false).expect("goes on");
    let log = cluster.members()[leader].log();
    let is_disconnected = [
        " > 1000000 bytes), disconnecting, ",
        " > 50), disconnecting, ",
    ];
    let is_disconnected = is_disconnected.iter().any(|line| log.contains(line));
    assert!(is_disconnected, "{log}");
    await_rows(&cluster, &[slow], &(0..written).collect());
}

/// Checks that the other side closes the connection.
fn assert_closed(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error} after {received:?}"),
    }
}

fn hello(cluster: &str, from: &str, comment: Option<&str>) -> Value {
    let mut params = json!({"cluster": cluster, "from": from, "address": "tcp:127.0.0.1:9"});
    if let Some(comment) = comment {
        params["comment"] = json!(comment);
    }
    json!({"id": null, "method": "hello_request", "params": [params]})
}

#[test]
fn strangers_at_the_members_port_change_nothing() {
    let (cluster, leader) = started(Cluster::over_tcp(3, &schema()).expect("made"));
    write_through_all(&cluster);
    let essence = |cluster: &Cluster| -> Vec<String> {
        let status = cluster.status(leader).expect("a status");
        let kept = ["Term:", "Leader:", "Vote:", "Log:", "Status:", "Role:"];
        let is_kept = |line: &&str| kept.iter().any(|kept| line.starts_with(kept));
        status.lines().filter(is_kept).map(str::to_owned).collect()
    };
    let before = essence(&cluster);
    let cid = cluster
        .control(leader, "cluster/cid", &["D"])
        .expect("an id");
    let cid = cid.trim();
    let stranger = "0bad0000-0000-4000-8000-000000000bad";
    let codec = Some("corvid 1");
    let member = cluster.control((leader + 1) % 3, "cluster/sid", &["D"]);
    let member = member.expect("an id").trim().to_owned();
    let vote = |from: &str| {
        let params =
            json!({"cluster": cid, "from": from, "term": 99, "last_index": 99, "last_term": 99});
        json!({"id": null, "method": "request_vote", "params": [params]}).to_string()
    };
    let huge = format!("{{\"id\":null,\"method\":\"{}", "m".repeat(20_000));
    let nested = "[".repeat(5000);
    let own = cluster
        .control(leader, "cluster/sid", &["D"])
        .expect("an id");
    let attacks: [(&str, Vec<u8>, &str); 9] = [
        ("garbage", b"\x00\xff\x17 garbage".to_vec(), ""),
        ("a huge first message", huge.into_bytes(), ""),
        ("a deep one", nested.into_bytes(), ""),
        ("a request", b"{\"id\":1,\"method\":\"list_dbs\",\"params\":[]}".to_vec(), "expecting notify RPC but received request"),
        (
            "a member of the reference",
            hello(cid, stranger, None).to_string().into_bytes(),
            "cannot be a member of this cluster",
        ),
        (
            "another cluster",
            hello("12340000-0000-4000-8000-00000000c1d0", stranger, codec).to_string().into_bytes(),
            "wrong cluster 1234 (expected 5a0c)",
        ),
        (
            "a message without hello",
            vote(&member).into_bytes(),
            "",
        ),
        (
            "this server's own id",
            hello(cid, own.trim(), codec).to_string().into_bytes(),
            "the server at the other end has this server's ID",
        ),
        (
            "a forged sender",
            (hello(cid, stranger, codec).to_string()
                + &json!({"id": null, "method": "hello_request", "params": [
                    {"cluster": cid, "from": member, "address": "tcp:127.0.0.1:9", "comment": "corvid 1"}]}).to_string())
                .into_bytes(),
            "ignoring message with unexpected server ID",
        ),
    ];
    let address = cluster.peer_address(leader).expect("an address");
    let port = address.trim_start_matches("tcp:");
    for (what, bytes, line) in attacks {
        let mut stream = TcpStream::connect(port).expect("connected");
        let name = format!("tcp:{}: ", stream.local_addr().expect("an address"));
        stream.write_all(&bytes).expect("sent");
        assert_closed(&mut stream);
        let log = cluster.members()[leader].log();
        let is_told = |it: &str| it.contains(&name) && it.contains(line);
        assert!(log.lines().any(is_told), "{what}: {line}\n{log}");
        assert_eq!(essence(&cluster), before, "{what}");
    }
    // After half a message and then silence, the connection ends. Others are served in the
    // meantime.
    let mut silent = TcpStream::connect(port).expect("connected");
    silent.write_all(b"{\"id\":null,\"meth").expect("sent");
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 3).expect("inserted");
    assert_closed(&mut silent);

    // Servers of another database or of another cluster are rejected before they become members.
    let folder = tempfile::tempdir().expect("a folder");
    let mut wrong = joiner(&cluster, folder.path(), "tcp", "Wrong", &[], &[]);
    wrong.start().expect("started");
    await_line(
        &wrong,
        "refuses to add this server to its cluster: wrong database Wrong (expected D)",
    );
    let other = "--cid=12340000-0000-4000-8000-00000000c1d0";
    let mut other = joiner(&cluster, folder.path(), "tcp", "D", &[other], &[]);
    other.start().expect("started");
    await_line(&cluster.members()[0], "wrong cluster 1234 (expected 5a0c)");
    let status = cluster.status(leader).expect("a status");
    assert_eq!(status.matches(" at tcp:127.0.0.1:").count(), 3, "{status}");
}

fn resident_bytes(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") * 1024
}

#[test]
fn thousand_half_open_connections_keep_no_member_out() {
    let (mut cluster, leader) = started(Cluster::over_tcp(3, &schema()).expect("made"));
    write_through_all(&cluster);
    let address = cluster.peer_address(leader).expect("an address");
    let port = address.trim_start_matches("tcp:");
    let before = resident_bytes(&cluster.members()[leader]);
    let begun = format!("{{\"id\":null,\"method\":\"{}", "m".repeat(15_000));
    let flood = || -> Vec<TcpStream> {
        let connect = |_| {
            let mut stream = TcpStream::connect(port).ok()?;
            stream.write_all(begun.as_bytes()).ok()?;
            Some(stream)
        };
        (0..1000).filter_map(connect).collect()
    };
    let held = flood();
    assert!(held.len() > 250, "{}", held.len());
    let after = resident_bytes(&cluster.members()[leader]);
    assert!(after < before + (32 << 20), "{before} bytes, then {after}");
    // A member that starts in the meantime can still connect.
    let other = (leader + 1) % 3;
    cluster.member(other).kill();
    cluster.member(other).start().expect("started again");
    let again = flood();
    let mut client = cluster.connect(other).expect("a connection");
    add(&mut client, 3).expect("inserted");
    assert!(cluster.leads(leader).expect("a row"), "{}", cluster.said());
    drop((held, again));
}
