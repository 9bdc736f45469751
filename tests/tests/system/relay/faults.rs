//! Relays while servers die under load. No acknowledged write is lost or executed twice, and no
//! client gets older rows than it has already seen.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::numbered_rows::{self, DATABASE, numbers, schema};
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use super::node::{Node, await_contents, implementations, relay_of, row, wait_for};

/// The number of requests in flight of a writer.
const DEPTH: usize = 4;
/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The number of writes that count as progress.
const PROGRESS: i64 = 50;
/// The number of writes that count as progress of one writer. It is larger than `DEPTH`, so none of
/// the earlier requests is still in flight.
const PROGRESS_OF_EACH: i64 = 20;

/// Writers and watchers at the sockets of servers, until they are told to stop.
pub(super) struct Load {
    is_over: AtomicBool,
    next: AtomicI64,
    writers: Vec<Writer>,
}

/// A writer at a socket.
struct Writer {
    socket: PathBuf,
    acknowledged: AtomicI64,
}

/// The results of the writers.
#[derive(Debug, Default)]
pub(super) struct Written {
    acknowledged: BTreeSet<i64>,
    /// It is not known whether these were written.
    unknown: BTreeSet<i64>,
}

impl Load {
    /// Creates writers for these sockets.
    pub(super) fn new(sockets: impl IntoIterator<Item = PathBuf>) -> Load {
        let writers = sockets.into_iter().map(|socket| Writer {
            socket,
            acknowledged: AtomicI64::new(0),
        });
        Load {
            is_over: AtomicBool::new(false),
            next: AtomicI64::new(1),
            writers: writers.collect(),
        }
    }

    /// Runs `play` while a writer and a watcher use each of the sockets.
    pub(super) fn run(&self, play: impl FnOnce(&Load)) -> Written {
        thread::scope(|scope| {
            let watchers: Vec<_> = self
                .writers
                .iter()
                .map(|writer| scope.spawn(|| self.watch(&writer.socket)))
                .collect();
            let writers: Vec<_> = self
                .writers
                .iter()
                .map(|writer| scope.spawn(|| self.write(writer)))
                .collect();
            play(self);
            self.is_over.store(true, Ordering::Relaxed);
            let mut written = Written::default();
            for writer in writers {
                let mut of_writer = writer.join().expect("a writer");
                written.acknowledged.append(&mut of_writer.acknowledged);
                written.unknown.append(&mut of_writer.unknown);
            }
            for watcher in watchers {
                watcher.join().expect("a watcher");
            }
            written
        })
    }

    /// Waits until more writes have been acknowledged.
    pub(super) fn await_progress(&self) {
        self.await_more(|gained| gained.iter().sum::<i64>() >= PROGRESS);
    }

    /// Waits until each writer has had more writes acknowledged.
    pub(super) fn await_progress_of_each(&self) {
        self.await_more(|gained| gained.iter().all(|gained| *gained >= PROGRESS_OF_EACH));
    }

    /// Waits until `is_enough` accepts the numbers of writes that each writer has had acknowledged
    /// since the call.
    fn await_more(&self, is_enough: impl Fn(&[i64]) -> bool) {
        let counts = || -> Vec<i64> {
            let writers = self.writers.iter();
            let counts = writers.map(|writer| writer.acknowledged.load(Ordering::Relaxed));
            counts.collect()
        };
        let before = counts();
        let deadline = Instant::now() + LIMIT;
        loop {
            let now = counts();
            let gained: Vec<i64> = now
                .iter()
                .zip(&before)
                .map(|(now, was)| now - was)
                .collect();
            if is_enough(&gained) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "too few writes are acknowledged: {gained:?}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Writes rows until the end. If a connection is lost, opens a new one.
    fn write(&self, writer: &Writer) -> Written {
        let mut written = Written::default();
        while !self.is_over() {
            let Ok(mut client) = Client::connect_within(&writer.socket, LIMIT) else {
                continue;
            };
            let mut pending = BTreeSet::new();
            let _ = self.write_over(writer, &mut client, &mut pending, &mut written);
            written.unknown.append(&mut pending);
        }
        written
    }

    fn write_over(
        &self,
        writer: &Writer,
        client: &mut Client,
        pending: &mut BTreeSet<i64>,
        written: &mut Written,
    ) -> std::io::Result<()> {
        loop {
            while pending.len() < DEPTH && !self.is_over() {
                let n = self.next.fetch_add(1, Ordering::Relaxed);
                pending.insert(n);
                let params = numbered_rows::insert(n, "some text");
                let request = json!({"id": n, "method": "transact", "params": params});
                client.send(request.to_string().as_bytes())?;
            }
            if pending.is_empty() {
                return Ok(());
            }
            let reply = match client.receive(LIMIT)? {
                Received::Text(text) => serde_json::from_slice::<Value>(&text)?,
                Received::Closed => return Ok(()),
                Received::Nothing => panic!("no reply to {pending:?}"),
            };
            if reply["method"] == "echo" {
                client.send(br#"{"id":"echo","result":[],"error":null}"#)?;
                continue;
            }
            let n = reply["id"].as_i64().expect("an id");
            assert!(pending.remove(&n), "{reply}");
            if reply["result"][0]["uuid"].is_array() {
                written.acknowledged.insert(n);
                writer.acknowledged.fetch_add(1, Ordering::Relaxed);
            } else {
                // Either the relay was not serving yet, or the outcome is not known.
                let is_unknown = reply["error"] == "canceled";
                let is_unserved = reply["error"]["error"] == "unknown database"
                    || reply["error"]["error"] == "database not available";
                assert!(is_unknown || is_unserved, "{reply}");
                if is_unknown {
                    written.unknown.insert(n);
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Watches the rows until the end. Rows that it has seen must not disappear, on the same
    /// connection or the next.
    fn watch(&self, socket: &Path) {
        let mut seen = BTreeSet::new();
        while !self.is_over() {
            if let Ok(mut client) = Client::connect_within(socket, LIMIT) {
                let _ = self.watch_over(&mut client, &mut seen);
            }
        }
    }

    fn watch_over(&self, client: &mut Client, seen: &mut BTreeSet<i64>) -> std::io::Result<()> {
        let tables = json!({"T": [{"columns": ["n"]}]});
        let zero = "00000000-0000-0000-0000-000000000000";
        let reply = client.call("monitor_cond_since", &json!([DATABASE, "m", tables, zero]))?;
        if !reply["error"].is_null() {
            thread::sleep(Duration::from_millis(2));
            return Ok(());
        }
        let mut first = BTreeSet::new();
        collect(&reply["result"][2]["T"], &mut first);
        // A server that has just come back may have older contents than another server. But this
        // client always uses the same server, which never goes back.
        let lost: Vec<&i64> = seen.difference(&first).collect();
        assert!(lost.is_empty(), "rows that were seen are gone: {lost:?}");
        *seen = first;
        while !self.is_over() {
            let message = match client.receive(Duration::from_millis(100))? {
                Received::Text(text) => serde_json::from_slice::<Value>(&text)?,
                Received::Closed => return Ok(()),
                Received::Nothing => continue,
            };
            if message["method"] == "echo" {
                client.send(br#"{"id":"echo","result":[],"error":null}"#)?;
                continue;
            }
            assert_eq!(message["method"], "update3", "{message}");
            collect(&message["params"][2]["T"], seen);
        }
        Ok(())
    }
}

/// Collects the numbers of the rows in an update, which may only insert.
fn collect(rows: &Value, numbers: &mut BTreeSet<i64>) {
    for change in rows.as_object().into_iter().flat_map(|rows| rows.values()) {
        let row = change.get("initial").or_else(|| change.get("insert"));
        let row = row.unwrap_or_else(|| panic!("rows change: {change}"));
        numbers.insert(row["n"].as_i64().unwrap_or_default());
    }
}

impl Written {
    /// Returns the number of writes whose outcome is not known.
    pub(super) fn unknown(&self) -> usize {
        self.unknown.len()
    }

    /// Waits until the rows at these servers are equal, and checks them.
    pub(super) fn check(&self, mut at: Vec<Box<dyn FnMut() -> Option<BTreeSet<i64>> + '_>>) {
        let deadline = Instant::now() + LIMIT;
        let rows = loop {
            let rows: Vec<Option<BTreeSet<i64>>> = at.iter_mut().map(|rows| rows()).collect();
            match rows.first() {
                Some(Some(first)) if rows.iter().all(|rows| rows.as_ref() == Some(first)) => {
                    break first.clone();
                }
                _ => {}
            }
            let counts: Vec<Option<usize>> = rows
                .iter()
                .map(|rows| rows.as_ref().map(BTreeSet::len))
                .collect();
            assert!(Instant::now() < deadline, "rows differ: {counts:?}");
            thread::sleep(Duration::from_millis(50));
        };
        let lost: Vec<&i64> = self.acknowledged.difference(&rows).collect();
        assert!(lost.is_empty(), "acknowledged and not there: {lost:?}");
        let written: BTreeSet<i64> = self.acknowledged.union(&self.unknown).copied().collect();
        let strays: Vec<&i64> = rows.difference(&written).collect();
        assert!(strays.is_empty(), "there and never written: {strays:?}");
    }
}

/// Returns the rows at a node; `None` if it cannot tell them now.
pub(super) fn rows(node: &Node) -> Option<BTreeSet<i64>> {
    numbers(&mut node.process.connect().ok()?).ok()
}

fn relay(node: &Node) -> Node {
    let relay = relay_of(Corvid, DATABASE, &node.remote());
    await_contents(&relay, DATABASE);
    relay
}

#[test]
fn no_write_is_lost_or_doubled_when_the_source_dies_under_load() {
    for of in implementations() {
        let mut source = Node::started(of, &schema(), &[]);
        let first = relay(&source);
        let second = relay(&first);
        let other = relay(&source);
        let sockets = [&first, &second, &other].map(|node| node.process.socket());
        let written = Load::new(sockets).run(|load| {
            for _ in 0..5 {
                load.await_progress();
                source.process.kill();
                thread::sleep(Duration::from_millis(50));
                source.process.start().expect("a server");
            }
            load.await_progress();
        });
        let nodes = [&source, &first, &second, &other];
        let at = nodes.map(|node| -> Box<dyn FnMut() -> _> { Box::new(|| rows(node)) });
        written.check(at.into());
    }
}

#[test]
fn no_write_is_lost_or_doubled_when_relays_die_under_load() {
    let source = Node::started(Corvid, &schema(), &[]);
    let mut first = relay(&source);
    let second = relay(&first);
    let sockets = [&first, &second].map(|node| node.process.socket());
    let written = Load::new(sockets).run(|load| {
        for _ in 0..5 {
            load.await_progress();
            first.process.kill();
            first.process.start().expect("a server");
        }
        load.await_progress();
    });
    let nodes = [&source, &first, &second];
    let at = nodes.map(|node| -> Box<dyn FnMut() -> _> { Box::new(|| rows(node)) });
    written.check(at.into());
}

/// `connected` stays true for a while, so that the clients of a relay do not all leave when its
/// source restarts.
#[test]
fn clients_learn_half_a_minute_later_that_the_source_is_away() {
    let mut source = Node::started(Corvid, &schema(), &[]);
    let near = relay(&source);
    let far = relay(&near);
    numbered_rows::add(&mut far.client(), 1).expect("inserted");
    source.process.kill();
    let since = Instant::now();
    let is_connected = |node: &Node| row(node, DATABASE)["connected"] == true;
    wait_for("the relay gives up", &[&near], || !is_connected(&near));
    let took = since.elapsed();
    assert!(took > Duration::from_secs(27), "{took:?}");
    assert_eq!(rows(&near), Some([1].into()), "it can be read");
    // The second relay has no other source. It passes on the loss without waiting again.
    let since = Instant::now();
    wait_for("the next relay gives up", &[&far], || !is_connected(&far));
    let took = since.elapsed();
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert_eq!(rows(&far), Some([1].into()), "it can be read");
    source.process.start().expect("a server");
    for node in [&near, &far] {
        wait_for("the relay is connected again", &[node], || {
            is_connected(node)
        });
    }
    numbered_rows::add(&mut far.client(), 2).expect("inserted");
    assert_eq!(rows(&far), Some([1, 2].into()));
}
