//! A connection to a server: requests with their replies, and notifications.
//!
//! [`Session::call`] sends a request and waits for its reply. Commands that watch send a request
//! with [`Session::send`] and read all messages with [`Session::receive`]. The session answers echo
//! requests itself. It knows no methods except `list_dbs`, `get_schema`, `get_server_id` and
//! `set_db_change_aware`, which several commands need.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use corvid_data::{Schema, Uuid};
use corvid_json::Value;
use corvid_net::target::Target;
use corvid_net::tls::Credentials;
use corvid_net::{errno, logging};
use corvid_rpc::Message;
use corvid_rpc::message::write_request;
use corvid_rpc::session::Received;
use corvid_rpc::wire_log::{Direction, LoggedMessage};
use corvid_shell::blocking::Connection;
use corvid_shell::progress::Spinner;
use corvid_shell::signals;
use corvid_shell::vlog::{self, Module};

use crate::failure::Failure;

/// A connection to a server.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    next_id: u64,
    /// When requests time out, monotonic ms; `None` waits forever.
    deadline_ms: Option<u64>,
    /// Notifications dropped by [`Session::call`] since they were last counted.
    dropped: u64,
}

/// Identifies a request of this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u64);

/// A message from the server, other than an echo request. `T` is the form of a reply.
#[derive(Debug)]
pub enum Incoming<T = Value> {
    /// The result of a request, or its error.
    Reply(RequestId, Result<T, T>),
    /// A notification: method and parameters.
    Notification(String, Vec<Value>),
}

impl Session {
    /// Connects to a server, or waits for one to connect if the method is passive. With a time
    /// (monotonic ms), connecting and later every request time out there.
    ///
    /// # Errors
    /// The connection fails: `failed to connect to "SERVER" (REASON)`. The reason after a missed
    /// deadline is `timed out`.
    pub fn open_until(
        server: &str,
        credentials: &Arc<Credentials>,
        deadline_ms: Option<u64>,
    ) -> Result<Session, Failure> {
        let target = Target::parse(server);
        if let Err(error) = &target {
            error.log(server);
        }
        let listening = || {
            let line = format_args!("{server}: waiting for connection...");
            vlog::info(Module::OvsdbClient, line);
        };
        Connection::open_or_await(server, deadline_ms, Some(credentials), listening)
            .map(|connection| Session {
                deadline_ms,
                ..Session::over(connection)
            })
            .map_err(|error| {
                // A name of an unknown method may have been meant as a passive one.
                let is_active = matches!(target, Ok(Target::Active(_)))
                    && error.raw_os_error() != Some(libc::EAFNOSUPPORT);
                let verb = if is_active {
                    "connect"
                } else {
                    "connect or listen"
                };
                let reason = errno::text(&error);
                Failure::new(format!("failed to {verb} to \"{server}\" ({reason})"))
            })
    }

    /// A session over an open connection.
    #[must_use]
    pub fn over(connection: Connection) -> Session {
        Session {
            connection,
            next_id: 0,
            deadline_ms: None,
            dropped: 0,
        }
    }

    /// The same session, whose requests time out at this time (monotonic ms).
    #[must_use]
    pub fn until(self, deadline_ms: Option<u64>) -> Session {
        Session {
            deadline_ms,
            ..self
        }
    }

    /// From now on requests time out at this time (monotonic ms).
    pub fn set_deadline(&mut self, deadline_ms: Option<u64>) {
        self.deadline_ms = deadline_ms;
    }

    /// The number of notifications that arrived while a call waited for its reply, since the last
    /// call of this function.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// The server's name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        self.connection.name()
    }

    /// The descriptor that becomes readable when input arrives.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.connection.fd()
    }

    /// Whether the connection has received more than its limit.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.connection.is_exhausted()
    }

    /// Sends a request and waits for its result. Notifications that arrive in the meantime are
    /// dropped.
    ///
    /// # Errors
    /// The connection broke, or the server returned an error.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.transact(method, params)?
            .map_err(|error| Failure::returned_error(&error))
    }

    /// As [`Session::call`], but returns the server's error as a result.
    ///
    /// # Errors
    /// The connection broke, or the deadline passed.
    pub fn transact(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Result<Value, Value>, Failure> {
        let _progress = Spinner::new("Waiting for the server");
        self.exchange(method, &params.to_bytes(), value)
    }

    /// As [`Session::transact`], with parameters and reply as JSON texts. Shows no progress.
    ///
    /// # Errors
    /// As for [`Session::transact`].
    pub fn transact_text(
        &mut self,
        method: &str,
        params: &[u8],
    ) -> Result<Result<Vec<u8>, Vec<u8>>, Failure> {
        self.exchange(method, params, <[u8]>::to_vec)
    }

    fn exchange<T>(
        &mut self,
        method: &str,
        params: &[u8],
        read: fn(&[u8]) -> T,
    ) -> Result<Result<T, T>, Failure> {
        let broken = |error: io::Error| Failure::transaction(&errno::text(&error));
        let id = self.try_send(method, params).map_err(broken)?;
        loop {
            let received = self.try_receive_as(self.deadline_ms, read);
            match received.map_err(broken)? {
                Some(Incoming::Reply(answered, result)) if answered == id => return Ok(result),
                Some(Incoming::Notification(..)) => self.dropped += 1,
                _ => {}
            }
        }
    }

    /// Sends a request without waiting for its reply.
    ///
    /// # Errors
    /// Sending fails: `SERVER: send failed (REASON)`.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<RequestId, Failure> {
        self.try_send(method, &params.to_bytes())
            .map_err(|error| self.failure("send", &error))
    }

    /// Waits for the server's next message.
    ///
    /// # Errors
    /// Receiving fails: `SERVER: receive failed (REASON)`.
    pub fn receive(&mut self) -> Result<Incoming, Failure> {
        loop {
            match self.try_receive(None) {
                Ok(Some(incoming)) => return Ok(incoming),
                Ok(None) => {}
                Err(error) => return Err(self.failure("receive", &error)),
            }
        }
    }

    /// The next message, if one has arrived.
    ///
    /// # Errors
    /// As for [`Session::receive`].
    pub fn poll(&mut self) -> Result<Option<Incoming>, Failure> {
        loop {
            match self.try_receive(Some(0)) {
                Ok(Some(incoming)) => return Ok(Some(incoming)),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
                Err(error) => return Err(self.failure("receive", &error)),
            }
        }
    }

    /// The databases that the server serves, sorted.
    ///
    /// # Errors
    /// As for [`Session::call`], or the result has another shape.
    pub fn list_dbs(&mut self) -> Result<Vec<String>, Failure> {
        let result = self.call("list_dbs", &Value::Array(Vec::new()))?;
        let names = result
            .as_array()
            .ok_or_else(|| Failure::new("list_dbs response is not array"))?;
        let mut names: Vec<String> = names
            .iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| Failure::new("list_dbs response contains non-string"))?;
        names.sort();
        Ok(names)
    }

    /// The schema of a database.
    ///
    /// # Errors
    /// As for [`Session::call`], or the result is not a schema.
    pub fn schema(&mut self, database: &str) -> Result<Schema, Failure> {
        let json = self.call("get_schema", &Value::Array(vec![Value::string(database)]))?;
        Ok(Schema::from_json(&json)?)
    }

    /// The id of the server, which tells what it supports. `None`: the server does not know the
    /// method.
    ///
    /// # Errors
    /// The connection broke, or the deadline passed.
    pub fn server_id(&mut self) -> Result<Option<Uuid>, Failure> {
        let reply = self.transact("get_server_id", &Value::Array(Vec::new()))?;
        Ok(reply
            .ok()
            .and_then(|id| Uuid::parse(id.as_str()?.as_bytes())))
    }

    /// Sends `set_db_change_aware`, so that the server keeps this session open when databases are
    /// added, removed or converted. `demand` is the setting: `Some(false)` does not send it,
    /// `Some(true)` requires success, `None` accepts a refusal.
    ///
    /// # Errors
    /// The connection broke, or the server refused although success is required.
    pub fn set_aware(&mut self, demand: Option<bool>) -> Result<(), Failure> {
        if demand == Some(false) {
            return Ok(());
        }
        let reply = self.transact(
            "set_db_change_aware",
            &Value::Array(vec![Value::Bool(true)]),
        )?;
        match reply {
            Err(error) if demand == Some(true) => {
                let name = self.name();
                Err(Failure::new(format!(
                    "{name}: set_db_change_aware failed ({error})"
                )))
            }
            _ => Ok(()),
        }
    }

    fn failure(&self, what: &str, error: &io::Error) -> Failure {
        Failure::new(format!(
            "{}: {what} failed ({})",
            self.name(),
            errno::text(error)
        ))
    }

    fn try_send(&mut self, method: &str, params: &[u8]) -> io::Result<RequestId> {
        let id = self.next_id;
        self.next_id += 1;
        let mut bytes = Vec::new();
        write_request(&mut bytes, method, params, id.to_string().as_bytes());
        self.log_message(Direction::Sent, &bytes);
        self.connection.send(&bytes, self.deadline_ms)?;
        Ok(RequestId(id))
    }

    fn try_receive(&mut self, deadline_ms: Option<u64>) -> io::Result<Option<Incoming>> {
        self.try_receive_as(deadline_ms, value)
    }

    /// Receives one message; `read` makes the form of a reply. Returns `None` for an echo request,
    /// and for a reply to a request that this session did not send.
    fn try_receive_as<T>(
        &mut self,
        deadline_ms: Option<u64>,
        read: fn(&[u8]) -> T,
    ) -> io::Result<Option<Incoming<T>>> {
        signals::run();
        let frame = match self.connection.receive(deadline_ms) {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let failed = self.protocol_error(&format!("error parsing stream: {error}"));
                if let Some(protocol) = self.connection.foreign_protocol() {
                    self.warn(&format!("received {protocol} data on JSON-RPC channel"));
                }
                return Err(failed);
            }
            Err(error) => return Err(error),
        };
        self.log_message(Direction::Received, &frame);
        let message = match Message::parse(&frame) {
            Ok(message) => message,
            Err(error) => return Err(self.protocol_error(&error.log_text())),
        };
        let message = match Received::of(message) {
            Received::Echo(reply) => {
                self.log_message(Direction::Sent, &reply);
                self.connection.send(&reply, self.deadline_ms)?;
                return Ok(None);
            }
            Received::ProbeReply => return Ok(None),
            Received::Message(message) => message,
        };
        match message {
            Message::Request { .. } => Ok(None),
            Message::Notification { method, params } => {
                let params = match value(params) {
                    Value::Array(params) => params,
                    _ => Vec::new(),
                };
                Ok(Some(Incoming::Notification(
                    String::from_utf8_lossy(&method).into_owned(),
                    params,
                )))
            }
            Message::Reply { id, result } => {
                Ok(own_id(id).map(|id| Incoming::Reply(id, Ok(read(result)))))
            }
            Message::ErrorReply { id, error } => {
                Ok(own_id(id).map(|id| Incoming::Reply(id, Err(read(error)))))
            }
        }
    }

    fn log_message(&self, direction: Direction, text: &[u8]) {
        let (name, message) = (self.name(), LoggedMessage::new(direction, text));
        // Formatted only if the level is enabled.
        logging::dbg(Module::Jsonrpc, format_args!("{name}: {message}"));
    }

    /// Logs why a message cannot be used.
    fn protocol_error(&self, reason: &str) -> io::Error {
        self.warn(reason);
        errno::from_code(libc::EPROTO)
    }

    fn warn(&self, text: &str) {
        let name = self.name();
        vlog::warn(Module::Jsonrpc, format_args!("{name}: {text}"));
    }
}

fn value(raw: &[u8]) -> Value {
    Value::parse(raw).unwrap_or(Value::Null)
}

fn own_id(raw: &[u8]) -> Option<RequestId> {
    let id = Value::parse(raw).ok()?.as_integer()?;
    u64::try_from(id).ok().map(RequestId)
}
