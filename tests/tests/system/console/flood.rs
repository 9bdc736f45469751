//! Many addresses at once: each has its share of connections, and viewers on this machine are
//! served. A program in Python connects, because it can choose its own address.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::peer;

use super::Shown;

/// Connects from so many addresses so many times each, asks for a stream of events on each
/// connection, and prints how many of each address get one: the console closes the others at once.
/// Holds them until its input ends.
const CONNECTOR: &str = r#"
import socket, sys
port, addresses, each = map(int, sys.argv[1:])
request = b"GET /db/net/table/Port/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
held = []
for number in range(addresses):
    source = (f"127.9.{number // 250}.{1 + number % 250}", 0)
    own = [socket.create_connection(("127.0.0.1", port), 60, source) for _ in range(each)]
    count = 0
    for one in own:
        try:
            one.sendall(request)
            if one.recv(100):
                count += 1
                held.append(one)
        except OSError:
            # It was closed before the request arrived.
            pass
    print(count, flush=True)
print("done", flush=True)
sys.stdin.read()
"#;

struct Flood {
    process: Child,
    /// Open connections of each address.
    shares: Vec<usize>,
}

impl Flood {
    fn of(port: u16, addresses: usize, each: usize) -> Option<Flood> {
        let process = Command::new("python3")
            .args(["-c", CONNECTOR])
            .args([port.to_string(), addresses.to_string(), each.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut process) = process else {
            peer::say_skipped("python3 is not installed: many addresses at the console");
            return None;
        };
        let output = process.stdout.take().expect("its output");
        let mut shares = Vec::new();
        for line in BufReader::new(output).lines() {
            let line = line.expect("a line");
            if line == "done" {
                return Some(Flood { process, shares });
            }
            shares.push(line.parse().expect("a number"));
        }
        panic!("the program has ended after {shares:?}");
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn many_addresses_do_not_exhaust_the_console() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    let Some(flood) = Flood::of(shown.console.port(), 40, 70) else {
        return;
    };
    let shares = &flood.shares;
    assert_eq!(shares.len(), 40, "{shares:?}");
    assert!(shares.iter().all(|share| *share <= 64), "{shares:?}");
    assert!(
        shares.iter().all(|share| *share >= 2),
        "the last has room, too: {shares:?}"
    );
    assert!(shares[0] > 32 && shares[39] < 32, "{shares:?}");
    let held: usize = shares.iter().sum();
    assert!(held > 500, "{shares:?}");
    // Another address has its page, and this machine has, too.
    for number in 0..30 {
        let answer = shown.console.get("/db/net/table/Port").expect("an answer");
        assert_eq!(answer.status, 200, "{number}: {answer:?}");
    }
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(super::live::Viewer::of(&shown, "Port"));
    }
    drop((streams, flood));
    // Connections that end leave their places: a new address has the whole share.
    let begin = Instant::now();
    loop {
        let after = Flood::of(shown.console.port(), 1, 70).expect("it ran before");
        if after.shares[0] == 64 {
            break;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{:?}",
            after.shares
        );
    }
}
