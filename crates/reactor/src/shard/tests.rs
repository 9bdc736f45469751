//! Shards with real sockets: an echo handler, and clients that misbehave.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;
use crate::segment::Segment;
use corvid_net::target::{Active, Passive, Target};

/// An event of the handler.
#[derive(Debug, PartialEq)]
enum Seen {
    Opened(ConnId),
    Frame(ConnId, String),
    Ended(ConnId),
    Closed(ConnId, CloseReason),
    Drained(ConnId),
    Timer(ConnId),
}

enum Order {
    Send(ConnId, Vec<Segment>),
    Pause(ConnId),
    Resume(ConnId),
    TimerIn(ConnId, u64),
    Connect(Active),
    Close(ConnId),
    Finish(ConnId),
    FinishUnlessBlocked(ConnId),
    CloseAll,
    /// Reports the end of a wake-up on the first channel; the next wake-up begins when the other
    /// end of the second is dropped.
    Hold(Sender<()>, Receiver<()>),
}

struct Probe {
    seen: Sender<Seen>,
    hold: Option<(Sender<()>, Receiver<()>)>,
    echo: bool,
    lingers: bool,
}

impl Handler for Probe {
    type Message = Order;

    fn opened(&mut self, _: Now, conn: ConnId, _: &ConnInfo, _: &mut Io) {
        self.seen.send(Seen::Opened(conn)).unwrap();
    }

    fn frame(&mut self, _: Now, conn: ConnId, frame: Pieces, io: &mut Io) {
        let frame = frame.into_bytes();
        self.seen
            .send(Seen::Frame(conn, String::from_utf8(frame.clone()).unwrap()))
            .unwrap();
        if self.echo {
            io.send(conn, frame);
        }
    }

    fn end_of_input(&mut self, _: Now, conn: ConnId, io: &mut Io) {
        self.seen.send(Seen::Ended(conn)).unwrap();
        if self.lingers {
            // A handler that still owes replies keeps the connection; resuming must not report the
            // end again.
            io.resume_reading(conn);
            io.set_timer(conn, io.received_ms(conn).unwrap() + 20);
        } else {
            io.close_after_flush(conn);
        }
    }

    fn closed(&mut self, _: Now, conn: ConnId, reason: CloseReason, _: &mut Io) {
        // The receiver is gone if a test ends before its shards.
        let _ = self.seen.send(Seen::Closed(conn, reason));
    }

    fn drained(&mut self, _: Now, conn: ConnId, io: &mut Io) {
        assert_eq!(io.backlog_bytes(conn), 0);
        self.seen.send(Seen::Drained(conn)).unwrap();
    }

    fn message(&mut self, now: Now, order: Order, io: &mut Io) {
        match order {
            Order::Send(conn, segments) => io.send_all(conn, segments),
            Order::Pause(conn) => io.pause_reading(conn),
            Order::Resume(conn) => io.resume_reading(conn),
            Order::TimerIn(conn, ms) => io.set_timer(conn, now.mono_ms + ms),
            Order::Close(conn) => io.close(conn),
            Order::Finish(conn) => io.close_after_flush(conn),
            Order::FinishUnlessBlocked(conn) => io.close_unless_blocked(conn),
            Order::CloseAll => {
                let all: Vec<ConnId> = io.connections().map(|(conn, _)| conn).collect();
                all.into_iter().for_each(|conn| io.close(conn));
            }
            Order::Hold(held, release) => self.hold = Some((held, release)),
            Order::Connect(target) => drop(io.connect(&target, "peer", 0).unwrap()),
        }
    }

    fn timer(&mut self, _: Now, conn: ConnId, _: &mut Io) {
        self.seen.send(Seen::Timer(conn)).unwrap();
    }

    fn flushed(&mut self, _: Now, _: &mut Io) {
        if let Some((held, release)) = self.hold.take() {
            held.send(()).unwrap();
            assert!(release.recv().is_err());
        }
    }
}

struct Fixture {
    shards: Shards<Order>,
    seen: Receiver<Seen>,
    directory: tempfile::TempDir,
    listener: ListenerHandle,
}

impl Fixture {
    fn new(count: usize, echo: bool) -> Fixture {
        Fixture::with(count, echo, false)
    }

    fn with(count: usize, echo: bool, lingers: bool) -> Fixture {
        Fixture::limited(count, echo, lingers, Limits::default())
    }

    fn limited(count: usize, echo: bool, lingers: bool, limits: Limits) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let mut shards = Shards::prepare(count).unwrap();
        shards.set_limits(limits);
        let (sender, seen) = channel();
        shards
            .start(|_| Probe {
                seen: sender.clone(),
                hold: None,
                echo,
                lingers,
            })
            .unwrap();
        let Target::Passive(target) = Target::parse("ptcp:0:127.0.0.1").unwrap() else {
            unreachable!()
        };
        let listener = shards.listen(ListenerId(1), "ptcp:0:127.0.0.1", target, 0);
        Fixture {
            shards,
            seen,
            directory,
            listener,
        }
    }

    fn client(&self) -> TcpStream {
        let port = self.listener.status().bound_port().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    fn next(&self) -> Seen {
        self.seen
            .recv_timeout(Duration::from_secs(20))
            .expect("the shard should have reported something")
    }

    fn opened(&self) -> ConnId {
        match self.next() {
            Seen::Opened(conn) => conn,
            other => panic!("{other:?}"),
        }
    }

    fn order(&self, order: Order) {
        self.shards.handles()[0].post(order);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.shards.shutdown();
    }
}

fn frame(conn: ConnId, text: &str) -> Seen {
    Seen::Frame(conn, text.to_owned())
}

#[test]
fn texts_are_cut_at_any_segment_boundary() {
    let fixture = Fixture::new(1, true);
    let mut client = fixture.client();
    client.set_nodelay(true).unwrap();
    let conn = fixture.opened();
    client.write_all(br#"{"a":[1]} [2]{"#).unwrap();
    assert_eq!(fixture.next(), frame(conn, r#"{"a":[1]}"#));
    assert_eq!(fixture.next(), frame(conn, "[2]"));
    client.write_all(br#""b":"}{"}"#).unwrap();
    assert_eq!(fixture.next(), frame(conn, r#"{"b":"}{"}"#));
    let mut echoed = vec![0; r#"{"a":[1]}[2]{"b":"}{"}"#.len()];
    client.read_exact(&mut echoed).unwrap();
    assert_eq!(echoed, br#"{"a":[1]}[2]{"b":"}{"}"#);
}

#[test]
fn texts_before_a_half_close_are_answered() {
    let fixture = Fixture::new(1, true);
    let mut client = fixture.client();
    client.write_all(b"[1][2]").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "[1][2]");
    let conn = fixture.opened();
    let rest: Vec<Seen> = (0..4).map(|_| fixture.next()).collect();
    let expected = [
        frame(conn, "[1]"),
        frame(conn, "[2]"),
        Seen::Ended(conn),
        Seen::Closed(conn, CloseReason::EndOfFile),
    ];
    assert_eq!(rest, expected);
}

/// Nobody will read an answer that the handler still owes, so the connection is closed without it.
#[test]
fn a_peer_that_closes_both_sides_is_closed_at_once() {
    let fixture = Fixture::with(1, false, true);
    let path = fixture.directory.path().join("hung-up.sock");
    let name = format!("punix:{}", path.display());
    let Target::Passive(target) = Target::parse(&name).unwrap() else {
        unreachable!()
    };
    let _listener = fixture.shards.listen(ListenerId(2), &name, target, 0);
    for is_half_closed_first in [false, true] {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"[1]").unwrap();
        let conn = fixture.opened();
        assert_eq!(fixture.next(), frame(conn, "[1]"));
        if is_half_closed_first {
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(fixture.next(), Seen::Ended(conn));
        }
        drop(client);
        let mut seen = fixture.next();
        while seen == Seen::Timer(conn) {
            seen = fixture.next();
        }
        assert_eq!(seen, Seen::Closed(conn, CloseReason::EndOfFile));
    }
}

#[test]
fn texts_before_bad_framing_are_answered_and_the_connection_closed() {
    for bad in ["x", "}", "\0"] {
        let fixture = Fixture::new(1, true);
        let mut client = fixture.client();
        let conn = fixture.opened();
        let text = format!("[1] [2] {bad} [3]");
        client.write_all(text.as_bytes()).unwrap();
        assert_eq!(fixture.next(), frame(conn, "[1]"));
        assert_eq!(fixture.next(), frame(conn, "[2]"));
        assert_eq!(fixture.next(), Seen::Ended(conn));
        assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::BadFraming));
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "[1][2]", "before {bad:?}");
    }
}

#[test]
fn a_connection_with_bad_framing_stays_open_until_its_replies_are_sent() {
    let fixture = Fixture::with(1, false, true);
    let mut client = fixture.client();
    let conn = fixture.opened();
    client.write_all(b"[1]}[2]").unwrap();
    assert_eq!(fixture.next(), frame(conn, "[1]"));
    assert_eq!(fixture.next(), Seen::Ended(conn));
    assert_eq!(fixture.next(), Seen::Timer(conn));
    fixture.order(Order::Send(conn, vec![b"[]".to_vec().into()]));
    fixture.order(Order::Finish(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::BadFraming));
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "[]");
}

#[test]
fn a_peer_that_does_not_read_cannot_delay_its_close() {
    let long: Arc<[u8]> = vec![b'x'; 64 << 20].into();
    let long = || vec![Segment::Shared(Arc::clone(&long))];
    let fixture = Fixture::new(1, false);

    // The order arrives before the first write, and then after a write that left bytes unsent.
    let _deaf = fixture.client();
    let conn = fixture.opened();
    let (held, is_held) = channel();
    let (release, released) = channel();
    fixture.order(Order::Hold(held, released));
    is_held.recv().unwrap();
    fixture.order(Order::Send(conn, long()));
    fixture.order(Order::FinishUnlessBlocked(conn));
    drop(release);
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));

    let _deaf = fixture.client();
    let conn = fixture.opened();
    fixture.order(Order::Send(conn, long()));
    let (held, is_held) = channel();
    let (release, released) = channel();
    fixture.order(Order::Hold(held, released));
    is_held.recv().unwrap();
    drop(release);
    fixture.order(Order::FinishUnlessBlocked(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));

    // A close that waits for output stops waiting when an immediate close is requested.
    let _deaf = fixture.client();
    let conn = fixture.opened();
    fixture.order(Order::Send(conn, long()));
    fixture.order(Order::Finish(conn));
    fixture.order(Order::FinishUnlessBlocked(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));
}

#[test]
fn a_peer_gets_what_it_takes_before_its_close() {
    let fixture = Fixture::new(1, false);
    let mut client = fixture.client();
    let conn = fixture.opened();
    fixture.order(Order::Send(conn, vec![b"[]".to_vec().into()]));
    fixture.order(Order::FinishUnlessBlocked(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "[]");
}

#[test]
fn bad_bytes_close_the_connection_before_their_text_ends() {
    let fixture = Fixture::new(1, false);
    let mut client = fixture.client();
    let conn = fixture.opened();
    client
        .write_all(b"[1] {\"id\":1, \"method\": nope")
        .unwrap();
    assert_eq!(fixture.next(), frame(conn, "[1]"));
    client.write_all(b",").unwrap();
    assert_eq!(fixture.next(), Seen::Ended(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::BadFraming));
}

#[test]
fn a_connection_with_unsent_output_is_not_read() {
    let fixture = Fixture::new(1, false);
    let mut client = fixture.client();
    let conn = fixture.opened();
    let body: Arc<[u8]> = vec![b'x'; 1 << 20].into();
    let total = 64;
    fixture.order(Order::Send(conn, vec![Segment::Shared(body); total]));
    // The client reads nothing before the first write has ended, so that write leaves bytes unsent.
    let (held, is_held) = channel();
    let (release, released) = channel();
    fixture.order(Order::Hold(held, released));
    is_held.recv().unwrap();
    client.write_all(b"[1]").unwrap();
    drop(release);
    let mut left = total << 20;
    let mut buffer = vec![0; 1 << 20];
    let mut seen = Vec::new();
    while left > 0 {
        seen.extend(fixture.seen.try_iter());
        // The kernel's buffers hold bytes that have left the shard. If more than that are unread,
        // output is still unsent.
        assert!(
            seen.is_empty() || left < 32 << 20,
            "read while output was waiting: {seen:?}"
        );
        left -= client.read(&mut buffer).unwrap();
    }
    while seen.last() != Some(&frame(conn, "[1]")) {
        seen.push(fixture.next());
    }
    assert_eq!(seen, [Seen::Drained(conn), frame(conn, "[1]")]);
}

#[test]
fn a_paused_connection_delivers_no_texts() {
    let fixture = Fixture::new(1, false);
    let mut client = fixture.client();
    let conn = fixture.opened();
    fixture.order(Order::Pause(conn));
    fixture.order(Order::TimerIn(conn, 30));
    client.write_all(b"[1]").unwrap();
    assert_eq!(fixture.next(), Seen::Timer(conn));
    fixture.order(Order::Resume(conn));
    assert_eq!(fixture.next(), frame(conn, "[1]"));
    fixture.order(Order::Close(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));
}

#[test]
fn connections_are_distributed_and_closed_with_their_listener() {
    let fixture = Fixture::new(2, true);
    let mut clients: Vec<TcpStream> = (0..6).map(|_| fixture.client()).collect();
    for client in &mut clients {
        client.write_all(b"[]").unwrap();
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
    }
    assert_eq!(fixture.listener.status().connections(), 6);
    let port = fixture.listener.status().bound_port().unwrap();
    fixture.shards.unlisten(&fixture.listener);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    for client in &mut clients {
        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
    }
    let closed = fixture
        .seen
        .iter()
        .filter(|seen| matches!(seen, Seen::Closed(_, CloseReason::ListenerRemoved)));
    assert_eq!(closed.take(6).count(), 6);
}

#[test]
fn messages_posted_before_a_connection_are_received_before_it() {
    let fixture = Fixture::new(1, true);
    let (held, is_held) = channel();
    let (release, released) = channel();
    fixture.order(Order::Hold(held, released));
    is_held.recv_timeout(Duration::from_secs(20)).unwrap();
    // Both are queued by the time the shard continues.
    fixture.order(Order::CloseAll);
    let mut client = fixture.client();
    drop(release);
    client.write_all(b"[]").unwrap();
    let mut answer = [0; 2];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"[]");
}

#[test]
fn a_failed_listener_is_opened_once_its_directory_exists() {
    let fixture = Fixture::new(1, true);
    let folder = fixture.directory.path().join("later");
    let path = folder.join("db.sock");
    let handle = fixture.shards.listen(
        ListenerId(2),
        "punix:db.sock",
        Passive::Unix(path.clone()),
        0,
    );
    assert!(!handle.status().is_listening());
    std::fs::create_dir(&folder).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let mut client = loop {
        match UnixStream::connect(&path) {
            Ok(client) => break client,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    client.write_all(b"{}").unwrap();
    let mut answer = [0; 2];
    client.read_exact(&mut answer).unwrap();
    fixture.shards.unlisten(&handle);
    assert!(!path.exists());
}

#[test]
fn a_handler_opens_connections() {
    let fixture = Fixture::new(1, false);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let Target::Active(target) = Target::parse(&format!("tcp:127.0.0.1:{port}")).unwrap() else {
        unreachable!()
    };
    fixture.order(Order::Connect(target.clone()));
    let (mut peer, _) = listener.accept().unwrap();
    let conn = fixture.opened();
    peer.write_all(b"[7]").unwrap();
    assert_eq!(fixture.next(), frame(conn, "[7]"));
    drop((peer, listener));
    assert_eq!(fixture.next(), Seen::Ended(conn));
    assert!(matches!(fixture.next(), Seen::Closed(closed, _) if closed == conn));
    fixture.order(Order::Connect(target));
    assert!(matches!(
        fixture.next(),
        Seen::Closed(_, CloseReason::ConnectFailed(libc::ECONNREFUSED))
    ));
}

#[test]
fn end_of_input_is_reported_once() {
    let fixture = Fixture::with(1, false, true);
    let client = fixture.client();
    let conn = fixture.opened();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(fixture.next(), Seen::Ended(conn));
    assert_eq!(fixture.next(), Seen::Timer(conn));
    fixture.order(Order::Send(conn, vec![b"[]".to_vec().into()]));
    fixture.order(Order::Close(conn));
    assert_eq!(fixture.next(), Seen::Closed(conn, CloseReason::Local));
}

#[test]
fn a_stalled_message_on_another_shard_makes_room() {
    let limits = Limits {
        unfinished_bytes_max: 1 << 20,
        ..Limits::default()
    };
    let fixture = Fixture::limited(2, false, false, limits);
    let limits = fixture.shards.refusals();
    let text = format!("[\"{}\"]", "x".repeat(900 << 10));
    // Connections are distributed over the shards in turn.
    let mut stalled = fixture.client();
    let first = fixture.opened();
    stalled
        .write_all(&text.as_bytes()[..text.len() - 1])
        .unwrap();
    while limits.unfinished_bytes().0 < 800 << 10 {
        std::thread::yield_now();
    }
    let mut honest = fixture.client();
    let second = fixture.opened();
    honest.write_all(text.as_bytes()).unwrap();
    let seen = [fixture.next(), fixture.next()];
    let closed = Seen::Closed(first, CloseReason::LimitReached);
    assert!(seen.contains(&closed) && seen.contains(&frame(second, &text)));
    assert_eq!(stalled.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    while limits.unfinished_bytes().0 > 0 {
        std::thread::yield_now();
    }
}
