//! `wait`: waits until a database is added, connected or removed (docs/spec/cli.md 3.3). The
//! request is sent again after each reconnection, until `--timeout` ends the process.

use std::sync::Arc;

use bstr::BString;
use corvid_json::{Object, Value};
use corvid_net::target::Target;
use corvid_net::tls::Credentials;
use corvid_net::{clock, errno};
use corvid_rpc::log_event::End;
use corvid_rpc::reconnect::{Action, Reconnect};
use corvid_rpc::remote::Scheme;
use corvid_shell::blocking::Connection;

use crate::client::selection;
use crate::client::settings::Settings;
use crate::failure::Failure;
use crate::leader;
use crate::session::{Incoming, RequestId, Session};

pub(crate) fn wait(settings: &Settings, words: &[String]) -> Result<(), Failure> {
    let default = selection::default_server();
    let (server, database, state) = match words {
        [database, state] => (&default, database, state),
        [server, database, state] => (server, database, state),
        _ => {
            return Err(Failure::new(
                "invalid syntax for 'wait' (use --help for help)",
            ));
        }
    };
    let condition = condition(database, state)?;
    let mut waiter = Waiter {
        server,
        reconnect: Reconnect::new(),
        session: None,
        asked: None,
        aware: settings.aware,
        credentials: &settings.credentials,
    };
    waiter.run(&condition)
}

/// The transaction that completes when the database has reached `state`.
fn condition(database: &str, state: &str) -> Result<Value, Failure> {
    let object = |members: &[(&str, Value)]| {
        Value::Object(
            members
                .iter()
                .map(|(name, value)| (BString::from(*name), value.clone()))
                .collect::<Object>(),
        )
    };
    let (columns, rows) = match state {
        "added" => (vec![], vec![object(&[])]),
        "connected" => (
            vec![Value::string("connected")],
            vec![object(&[("connected", Value::Bool(true))])],
        ),
        "removed" => (vec![], vec![]),
        _ => return Err(Failure::new(format!("{state}: unknown state"))),
    };
    let clause = ["name", "==", database].map(Value::string).to_vec();
    let wait = object(&[
        ("op", Value::string("wait")),
        ("table", Value::string("Database")),
        ("where", Value::Array(vec![Value::Array(clause)])),
        ("columns", Value::Array(columns)),
        ("until", Value::string("==")),
        ("rows", Value::Array(rows)),
    ]);
    Ok(Value::Array(vec![Value::string("_Server"), wait]))
}

struct Waiter<'a> {
    server: &'a str,
    reconnect: Reconnect,
    session: Option<Session>,
    /// The request in flight; its reply ends the wait.
    asked: Option<RequestId>,
    aware: Option<bool>,
    credentials: &'a Arc<Credentials>,
}

impl Waiter<'_> {
    fn run(&mut self, condition: &Value) -> Result<(), Failure> {
        if let Some((scheme, _)) = Scheme::split(self.server) {
            self.reconnect.set_passive(scheme.is_passive());
            self.reconnect
                .set_probe_interval(scheme.probe_interval_ms());
        }
        self.reconnect.enable(clock::mono_ms());
        loop {
            let is_done = match self.session.as_mut() {
                Some(_) => self.listen()?,
                None => {
                    self.attempt(condition);
                    false
                }
            };
            self.report();
            if is_done {
                return Ok(());
            }
            if self.session.is_none() {
                self.sleep()?;
            }
        }
    }

    /// Connects and sends the request, if an attempt is due.
    fn attempt(&mut self, condition: &Value) {
        let now = clock::mono_ms();
        if self.reconnect.handle(now) != Some(Action::Connect) {
            return;
        }
        self.reconnect.connecting(now);
        self.report();
        // A passive method waits for its peer without a limit.
        let is_active = matches!(Target::parse(self.server), Ok(Target::Active(_)));
        let deadline = if is_active {
            self.reconnect.deadline_ms(now)
        } else {
            None
        };
        let opened = Connection::open_with(self.server, deadline, Some(self.credentials));
        let now = clock::mono_ms();
        match opened {
            Ok(connection) => {
                self.reconnect.connected(now);
                self.report();
                let mut session = Session::over(connection);
                match self.send_request(&mut session, condition) {
                    Ok(asked) => (self.session, self.asked) = (Some(session), Some(asked)),
                    Err(_) => self.reconnect.disconnected(now, End::Closed),
                }
            }
            Err(error)
                if error.kind() == std::io::ErrorKind::TimedOut
                    && error.raw_os_error().is_none() =>
            {
                self.reconnect.disconnected(now, End::Local);
            }
            Err(error) => self
                .reconnect
                .disconnected(now, End::Failed(errno::text(&error))),
        }
    }

    fn send_request(&self, session: &mut Session, condition: &Value) -> Result<RequestId, Failure> {
        if self.aware != Some(false) {
            session.send(
                "set_db_change_aware",
                &Value::Array(vec![Value::Bool(true)]),
            )?;
        }
        session.send("transact", condition)
    }

    /// Handles messages and probes. Returns true once the state is reached.
    fn listen(&mut self) -> Result<bool, Failure> {
        let Some(session) = self.session.as_mut() else {
            return Ok(false);
        };
        let now = clock::mono_ms();
        match session.poll() {
            Ok(Some(Incoming::Reply(id, reply))) if Some(id) == self.asked => {
                return answer(reply).map(|()| true);
            }
            Ok(Some(_)) => self.reconnect.activity(now),
            Ok(None) => {
                self.reconnect.receive_attempted(now);
                self.idle()?;
            }
            Err(_) => {
                self.session = None;
                self.reconnect.disconnected(now, End::Closed);
            }
        }
        Ok(false)
    }

    /// Waits for input or for the next probe.
    fn idle(&mut self) -> Result<(), Failure> {
        let now = clock::mono_ms();
        let Some(session) = self.session.as_mut() else {
            return Ok(());
        };
        match self.reconnect.handle(now) {
            Some(Action::Probe) => {
                // If the connection has ended, the next read reports it.
                let _ = session.send("echo", &Value::Array(Vec::new()));
            }
            Some(Action::Disconnect) => {
                self.session = None;
                self.reconnect.disconnected(now, End::Local);
                return Ok(());
            }
            Some(Action::Connect) | None => {}
        }
        let fd = session.fd();
        let left = self
            .reconnect
            .deadline_ms(now)
            .map(|at| std::time::Duration::from_millis(at.saturating_sub(now)));
        let ready = corvid_net::poll::wait(Some((fd, libc::POLLIN)), left)?;
        if ready != 0 {
            self.reconnect.activity(clock::mono_ms());
        }
        Ok(())
    }

    /// Waits until the next attempt is due.
    fn sleep(&self) -> Result<(), Failure> {
        let now = clock::mono_ms();
        let left = self
            .reconnect
            .deadline_ms(now)
            .unwrap_or(now)
            .saturating_sub(now);
        corvid_net::poll::wait(None, Some(std::time::Duration::from_millis(left)))?;
        Ok(())
    }

    fn report(&mut self) {
        for notice in self.reconnect.take_log_events() {
            leader::report(self.server, &notice);
        }
    }
}

/// Checks the reply to the request: the state is reached unless the reply has an error.
fn answer(reply: Result<Value, Value>) -> Result<(), Failure> {
    let result = reply.map_err(|error| Failure::returned_error(&error))?;
    match result
        .as_array()
        .unwrap_or_default()
        .iter()
        .find(|result| result.get("error").is_some())
    {
        Some(error) => Err(Failure::returned_error(error)),
        None => Ok(()),
    }
}
