//! The sessions of one server's callers: what the `server` crate does with sockets. Streams are
//! split into messages, and outputs become parcels of the network.
//!
//! Invariant: a session has one connection, and no server outlives its sessions. This module does
//! not know which server it is, and sends no probes.

use std::collections::BTreeMap;

use corvid_json::Assembler;
use corvid_monitor::SessionId;
use corvid_service::Now;

use crate::server::machine::{Machine, ToClient};
use crate::world::network::connections::{ConnId, Connections, Parcel, To};
use crate::world::trace::Trace;

struct Session {
    conn: ConnId,
    assembler: Assembler,
    is_paused: bool,
    /// The server has written output to the session and not yet been told that it is drained.
    is_full: bool,
}

/// The sessions of a server.
pub(super) struct Sessions {
    /// The server's name in the trace.
    name: String,
    sessions: BTreeMap<SessionId, Session>,
    trace: Trace,
}

impl Sessions {
    pub(super) fn new(name: String, trace: &Trace) -> Sessions {
        Sessions {
            name,
            sessions: BTreeMap::new(),
            trace: trace.clone(),
        }
    }

    /// Returns the session of a connection.
    pub(super) fn of(&self, conn: ConnId) -> Option<SessionId> {
        let found = self
            .sessions
            .iter()
            .find(|(_, session)| session.conn == conn);
        found.map(|(id, _)| *id)
    }

    /// Returns the connection of a session.
    pub(super) fn conn(&self, id: SessionId) -> Option<ConnId> {
        self.sessions.get(&id).map(|session| session.conn)
    }

    /// Whether the server reads from a connection. It reads the opening of one that it does not
    /// know.
    pub(super) fn reads(&self, conn: ConnId) -> bool {
        let session = self.of(conn).and_then(|id| self.sessions.get(&id));
        session.is_none_or(|session| !session.is_paused)
    }

    /// Accepts a parcel from a caller, at a time by the server's clock and by that of the network.
    /// Returns false if the connection is unknown.
    pub(super) fn take(
        &mut self,
        now: Now,
        now_ms: u64,
        conn: ConnId,
        parcel: Parcel,
        machine: &mut Machine,
        network: &mut Connections,
    ) -> Result<bool, String> {
        let known = self.of(conn);
        match (parcel, known) {
            (Parcel::Open, _) => {
                let session = Session {
                    conn,
                    assembler: Assembler::default(),
                    is_paused: false,
                    is_full: false,
                };
                self.sessions.insert(machine.connect(), session);
                network.send(now_ms, conn, To::Caller, Parcel::Open);
            }
            (Parcel::Bytes(bytes), Some(id)) => {
                let Some(session) = self.sessions.get_mut(&id) else {
                    return Ok(true);
                };
                for text in session.assembler.texts(&bytes) {
                    let text = text.map_err(|error| error.to_string())?.into_owned();
                    self.trace.line(format_args!(
                        "{} {conn:?} <- {}",
                        self.name,
                        String::from_utf8_lossy(&text)
                    ));
                    machine.text(now, id, text);
                }
            }
            (Parcel::End, Some(id)) => {
                machine.disconnect(id);
                self.sessions.remove(&id);
                network.vanish(conn, To::Server);
            }
            // The server that had the connection has ended.
            (_, None) => return Ok(false),
        }
        Ok(true)
    }

    /// Sends a message of the server.
    pub(super) fn deliver(
        &mut self,
        now_ms: u64,
        id: SessionId,
        message: ToClient,
        machine: &mut Machine,
        network: &mut Connections,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        match message {
            ToClient::Message(bytes) => {
                session.is_full = true;
                network.send(now_ms, session.conn, To::Caller, Parcel::Bytes(bytes));
            }
            ToClient::Pause(is_paused) => session.is_paused = is_paused,
            ToClient::Closed(_) => {
                network.close(now_ms, session.conn, To::Server);
                self.sessions.remove(&id);
                machine.disconnect(id);
            }
        }
    }

    /// Tells the server which sessions have no output left.
    pub(super) fn drain(&mut self, machine: &mut Machine, network: &Connections) {
        for (id, session) in &mut self.sessions {
            if session.is_full && network.is_drained(session.conn, To::Caller) {
                session.is_full = false;
                machine.drained(*id);
            }
        }
    }

    /// The server has ended. With `is_heard`, its callers are told that their connections have
    /// ended. Otherwise they learn it when they next send.
    pub(super) fn end(&mut self, now_ms: u64, network: &mut Connections, is_heard: bool) {
        for session in std::mem::take(&mut self.sessions).into_values() {
            if is_heard {
                network.close(now_ms, session.conn, To::Server);
            }
        }
    }
}
