//! A server for one connection that plays a test's script.

use std::path::Path;
use std::thread::JoinHandle;

use corvid_json::Value;
use corvid_net::clock;
use corvid_rpc::message::{
    Message, write_error_reply, write_notification, write_reply, write_request,
};
use corvid_shell::blocking::Connection;

use crate::support::{TIMEOUT, wait_until};

/// The server's end of a connection.
pub(crate) struct Peer(Connection);

/// Listens on `DIR/NAME` in a thread that runs `script` over the first connection.
pub(crate) fn serve(
    dir: &Path,
    name: &str,
    script: impl FnOnce(&mut Peer) + Send + 'static,
) -> JoinHandle<()> {
    let path = dir.join(name);
    let method = format!("punix:{}", path.display());
    let thread = std::thread::spawn(move || {
        script(&mut Peer(
            Connection::open(&method, deadline()).expect("the program connects"),
        ));
    });
    // A socket has its name before it listens, and a program that connects in between is refused.
    wait_until("the listener", || listens(&path) || thread.is_finished());
    thread
}

/// Whether somebody listens on a socket, by the flag that the kernel shows.
fn listens(path: &Path) -> bool {
    const ACCEPTS: &str = " 00010000 ";
    let path = path.display().to_string();
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut sockets = sockets.lines();
    sockets.any(|socket| socket.contains(ACCEPTS) && socket.ends_with(&path))
}

/// Connects to `DIR/NAME`, where the program listens.
pub(crate) fn connect(dir: &Path, name: &str) -> Peer {
    let method = format!("unix:{}", dir.join(name).display());
    let mut opened = None;
    wait_until("the program to listen", || {
        opened = Connection::open(&method, deadline()).ok();
        opened.is_some()
    });
    Peer(opened.expect("it was just opened"))
}

fn deadline() -> Option<u64> {
    Some(clock::mono_ms() + u64::try_from(TIMEOUT.as_millis()).unwrap_or(u64::MAX))
}

impl Peer {
    /// Waits for a request of this method. Returns its id and parameters.
    pub(crate) fn expect(&mut self, method: &str) -> (String, Value) {
        let frame = self.receive();
        match Message::parse(&frame) {
            Ok(Message::Request {
                method: found,
                params,
                id,
            }) if *found == *method.as_bytes() => (
                String::from_utf8_lossy(id).into_owned(),
                Value::parse(params).expect("parameters are JSON"),
            ),
            _ => panic!("expected {method}, got {}", String::from_utf8_lossy(&frame)),
        }
    }

    pub(crate) fn receive(&mut self) -> Vec<u8> {
        self.0
            .receive(deadline())
            .expect("the connection is whole")
            .expect("the program has more to say")
    }

    /// Waits for a request and answers it. Returns its parameters.
    pub(crate) fn answer(&mut self, method: &str, result: &str) -> Value {
        let (id, params) = self.expect(method);
        self.reply(&id, result);
        params
    }

    /// Waits for a request and answers it with an error.
    pub(crate) fn refuse(&mut self, method: &str, error: &str) {
        let (id, _) = self.expect(method);
        let mut bytes = Vec::new();
        write_error_reply(&mut bytes, id.as_bytes(), error.as_bytes());
        self.send(&bytes);
    }

    pub(crate) fn reply(&mut self, id: &str, result: &str) {
        let mut bytes = Vec::new();
        write_reply(&mut bytes, id.as_bytes(), result.as_bytes());
        self.send(&bytes);
    }

    pub(crate) fn notify(&mut self, method: &str, params: &str) {
        let mut bytes = Vec::new();
        write_notification(&mut bytes, method, params.as_bytes());
        self.send(&bytes);
    }

    /// Sends an echo request and waits for its reply.
    pub(crate) fn probe(&mut self) {
        let mut bytes = Vec::new();
        write_request(&mut bytes, "echo", b"[1,\"x\"]", b"\"probe\"");
        self.send(&bytes);
        let frame = self.receive();
        let expected = Message::Reply {
            id: b"\"probe\"",
            result: b"[1,\"x\"]",
        };
        assert_eq!(Message::parse(&frame), Ok(expected));
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0
            .send(bytes, deadline())
            .expect("the connection is whole");
    }
}
