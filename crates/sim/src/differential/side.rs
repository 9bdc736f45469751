//! One server with its connections, and the common names of its rows.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use corvid_json::Value;
use corvid_model::schema::Schema;
use corvid_tests::client::{Client, Received};
use corvid_tests::server::{Implementation, Server, Setup};

use super::CONNECTIONS;
use super::weak::Contents;
use crate::normal::Known;

/// Longest time without an answer from a server on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Messages of one connection up to a barrier.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Replies, by the numbers of their requests.
    pub(super) replies: BTreeMap<u64, Value>,
    /// Other messages, in order, without redundant notifications of a lock that the connection
    /// already owns.
    pub(super) notifications: Vec<Value>,
}

/// A server under test.
#[derive(Debug)]
pub(super) struct Side {
    server: Server,
    clients: Vec<Client>,
    /// Names of rows, by UUID.
    pub(super) known: Known,
    /// UUIDs of rows, by name.
    identities: HashMap<String, String>,
    /// The newest reply on the first connection.
    pub(super) last_reply: Option<Value>,
    barriers: u64,
    /// The owner of each lock, by the params of the lock's requests.
    owners: HashMap<String, usize>,
}

impl Side {
    pub(super) fn start(implementation: Implementation, schema: &Value) -> io::Result<Side> {
        let schema = serde_json::from_slice(&schema.to_bytes())?;
        let setup = Setup {
            databases: vec![schema],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup)?;
        let clients = (0..CONNECTIONS)
            .map(|_| server.connect())
            .collect::<io::Result<_>>()?;
        let mut known = Known::new();
        // UUIDs that the generator writes are the same on both sides.
        known.keep_prefix("00000000-");
        let mut side = Side {
            server,
            clients,
            known,
            identities: HashMap::new(),
            last_reply: None,
            barriers: 0,
            owners: HashMap::new(),
        };
        for connection in 0..CONNECTIONS {
            let text = r#"{"id":0,"method":"set_db_change_aware","params":[true]}"#;
            let message = Value::parse(text.as_bytes()).expect("valid JSON");
            side.exchange(connection, &message, None)?;
        }
        Ok(side)
    }

    pub(super) fn learn(&mut self, uuid: &str, name: &str) {
        self.known.name(uuid, name);
        self.identities.insert(name.to_owned(), uuid.to_owned());
    }

    /// Sends a message, then a barrier on every connection. Returns the messages received on each.
    /// With `awaited`, the first barrier waits for the reply to that request.
    pub(super) fn exchange(
        &mut self,
        connection: usize,
        message: &Value,
        awaited: Option<u64>,
    ) -> io::Result<Vec<Heard>> {
        let text = self.with_identities(&message.to_string());
        let sent = self.clients[connection].send(text.as_bytes());
        sent.map_err(|error| self.in_context(&error.to_string()))?;
        let mut heard: Vec<Heard> = (0..CONNECTIONS).map(|_| Heard::default()).collect();
        if let Some(id) = awaited {
            while !heard[connection].replies.contains_key(&id) {
                let message = self.receive(connection)?;
                self.sort(connection, message, &mut heard[connection]);
            }
        }
        // A second round is needed because a commit may satisfy a wait on a connection whose
        // barrier has already passed.
        for _ in 0..2 {
            for other in 0..CONNECTIONS {
                let connection = (connection + other) % CONNECTIONS;
                self.barrier(connection, &mut heard[connection])?;
            }
        }
        Ok(heard)
    }

    /// Returns all rows of all tables, with this server's identities. Other messages of the first
    /// connection are dropped.
    pub(super) fn contents(&mut self, schema: &Schema) -> io::Result<Contents> {
        let selects = schema.tables.keys().map(|table| {
            let text = format!(r#"{{"op":"select","table":"{table}","where":[]}}"#);
            Value::parse(text.as_bytes()).expect("valid JSON")
        });
        let params = std::iter::once(Value::string("Gen")).chain(selects);
        let params = Value::Array(params.collect());
        self.barriers += 1;
        let id = format!("contents {}", self.barriers);
        let text = format!(r#"{{"id":"{id}","method":"transact","params":{params}}}"#);
        self.clients[0].send(text.as_bytes())?;
        let reply = loop {
            let message = self.receive(0)?;
            if message.get("id").and_then(Value::as_str) == Some(&id) {
                break message;
            }
        };
        let results = reply.get("result").and_then(Value::as_array);
        let rows = results.unwrap_or_default().iter().map(|result| {
            let rows = result.get("rows").and_then(Value::as_array);
            rows.unwrap_or_default().to_vec()
        });
        Ok(schema.tables.keys().cloned().zip(rows).collect())
    }

    fn barrier(&mut self, connection: usize, heard: &mut Heard) -> io::Result<()> {
        self.barriers += 1;
        let id = format!("barrier {}", self.barriers);
        let text = format!(r#"{{"id":"{id}","method":"transact","params":["Gen"]}}"#);
        let sent = self.clients[connection].send(text.as_bytes());
        sent.map_err(|error| self.in_context(&error.to_string()))?;
        loop {
            let message = self.receive(connection)?;
            if message.get("id").and_then(Value::as_str) == Some(&id) {
                return Ok(());
            }
            self.sort(connection, message, heard);
        }
    }

    fn sort(&mut self, connection: usize, message: Value, heard: &mut Heard) {
        match message.get("id").and_then(Value::as_integer) {
            Some(id) => {
                if connection == 0 {
                    self.last_reply = Some(message.clone());
                }
                heard.replies.insert(id as u64, message);
            }
            None => {
                if self.is_news(connection, &message) {
                    heard.notifications.push(message);
                }
            }
        }
    }

    /// Returns false for the redundant `locked` that the owner gets when another connection stops
    /// waiting (docs/spec/protocol.md 4.11).
    fn is_news(&mut self, connection: usize, message: &Value) -> bool {
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name = message
            .get("params")
            .map(ToString::to_string)
            .unwrap_or_default();
        match method {
            "stolen" => {
                self.owners.remove(&name);
                true
            }
            "locked" => self.owners.insert(name, connection) != Some(connection),
            _ => true,
        }
    }

    /// Records the owner of a lock after a reply.
    pub(super) fn set_owner(&mut self, params: &Value, owner: usize) {
        self.owners.insert(params.to_string(), owner);
    }

    fn receive(&mut self, connection: usize) -> io::Result<Value> {
        match self.clients[connection].receive(SILENCE_MAX)? {
            Received::Text(text) => {
                Value::parse(&text).map_err(|error| io::Error::other(error.to_string()))
            }
            Received::Closed => Err(self.in_context("closed by the server")),
            Received::Nothing => Err(io::Error::other("no answer")),
        }
    }

    /// Returns an error with the server's log, which explains the failure.
    fn in_context(&self, problem: &str) -> io::Error {
        io::Error::other(format!("{problem}\n{}", self.server.log()))
    }

    /// Returns a request in which names are replaced by this server's UUIDs.
    fn with_identities(&self, text: &str) -> String {
        let mut pieces = text.split('#');
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for (position, piece) in pieces.enumerate() {
            match self.identities.get(&format!("#{piece}#")) {
                Some(uuid) if position % 2 == 0 => out.push_str(uuid),
                _ => out.push_str(piece),
            }
        }
        out
    }

    /// Opens a new connection, sends `text`, and returns the outcome.
    pub(super) fn outcome_of(&self, text: &str) -> io::Result<Received> {
        let mut client = self.server.connect()?;
        client.send(text.as_bytes())?;
        client.receive(SILENCE_MAX)
    }
}
