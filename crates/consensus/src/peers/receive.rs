//! Turns bytes into messages of identified servers.

use bytes::Bytes;
use corvid_json::StreamError;
use corvid_json::unfinished::Growth;
use corvid_log::cluster::ids::short;
use corvid_log::cluster::{Cid, Sid};
use corvid_rpc::session::Received;
use corvid_rpc::wire_log::Direction;
use corvid_rpc::{Level, Message, MessageError};

use super::connection::Connection;
use super::{ACCEPTED_PER_SERVER_MAX, ConnectionNumber, Peers, PeersOutput, unfinished, vouching};
use crate::wire::{self, CODEC, DecodeError, Incoming, Receiver};

/// Maximum bytes of the first message of a connection.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;
/// Unfinished bytes of a connection from which those of all connections are added up.
const BEGUN_BYTES_CHECKED_FROM: usize = 256 * 1024;

impl Peers {
    /// Bytes have arrived on a connection.
    pub fn received(&mut self, now_ms: u64, number: ConnectionNumber, bytes: &[u8]) {
        let mut rest = bytes;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.session.probe().activity(now_ms);
            connection.answer_until_ms = None;
            if connection.begun_bytes() == 0 {
                connection.growth = Growth::new(now_ms);
            }
            connection.growth.arrive(now_ms, bytes.len());
            let dialled = connection.dialled.clone();
            if let Some(remote) = dialled.and_then(|address| self.remotes.get_mut(&address)) {
                remote.reconnect.activity(now_ms);
            }
        }
        // A message may reset the connection, so look it up each time.
        while let Some(connection) = self.connections.get_mut(&number) {
            // A stranger may send a hello, which is short, before it has named a server.
            let bytes_max = match connection.peer {
                Some(_) => self.settings.message_bytes_max,
                None => HELLO_BYTES_MAX.min(self.settings.message_bytes_max),
            };
            connection.assembler.set_bytes_max(bytes_max);
            match connection.assembler.next(&mut rest) {
                Ok(Some(text)) => {
                    let text = Bytes::from(text.into_owned());
                    self.receive_text(now_ms, number, &text, false);
                }
                Ok(None) => return self.limit_begun(now_ms, number),
                Err(error) => {
                    let problem = match error {
                        StreamError::Syntax(error) => MessageError::from(error).log_text(),
                        StreamError::TooLong(_) => error.to_string(),
                    };
                    return self.refuse_connection(now_ms, number, Level::Warn, &problem);
                }
            }
        }
    }

    /// If the unfinished messages of all connections are too long together, resets connections
    /// until they fit.
    fn limit_begun(&mut self, now_ms: u64, number: ConnectionNumber) {
        let connection = self.connections.get(&number);
        if connection.map_or(0, Connection::begun_bytes) <= BEGUN_BYTES_CHECKED_FROM {
            return;
        }
        let bytes_max = 2 * self.settings.message_bytes_max;
        while let Some(number) = unfinished::to_close(now_ms, &self.connections, bytes_max) {
            let connection = self.connections.get(&number);
            let (bytes, idle_ms) = connection.map_or((0, 0), |connection| {
                (connection.begun_bytes(), connection.growth.idle_ms(now_ms))
            });
            let problem = format!(
                "incomplete messages of all peers take too much memory, disconnecting the peer of one with {bytes} bytes (no progress for {idle_ms} ms)"
            );
            self.reset(now_ms, number, Level::Warn, &problem);
        }
    }

    /// Handles a complete text. `is_joined`: it arrived in parts.
    fn receive_text(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        text: &Bytes,
        is_joined: bool,
    ) {
        // Parts are shown as they arrive.
        if !is_joined {
            self.show_message(number, Direction::Received, text);
        }
        let receiver = Receiver {
            sid: self.settings.sid,
            cid: self.settings.cid,
        };
        match wire::decode(text, &receiver) {
            Ok(Incoming::Message {
                from,
                cluster,
                message,
            }) => {
                if self.is_of(now_ms, number, from) {
                    self.learn_cluster(number, cluster);
                    self.outputs
                        .push_back(PeersOutput::Message { from, message });
                }
            }
            Ok(Incoming::Hello {
                from,
                cluster,
                address,
                codec,
            }) => {
                if codec.as_deref() != Some(CODEC) {
                    let found = match codec {
                        Some(codec) => format!("its hello_request announces \"{codec}\""),
                        None => "its hello_request announces none".to_owned(),
                    };
                    return self.refuse_implementation(now_ms, number, Some(from), &found);
                }
                self.receive_hello(now_ms, number, from, cluster, &address);
            }
            // Refuse parts within parts: reading them would recurse as deeply as a stranger likes.
            Ok(Incoming::Part { .. }) if is_joined => {
                let problem = "a message in parts that is itself a part";
                self.refuse_connection(now_ms, number, Level::Warn, problem);
            }
            Ok(Incoming::Part {
                from,
                bytes,
                is_last,
            }) => {
                if self.is_of(now_ms, number, from) {
                    self.receive_part(now_ms, number, &bytes, is_last);
                }
            }
            Ok(Incoming::Echo(message)) => self.receive_echo(number, message),
            Err(DecodeError::ReferenceMethod(method)) => {
                let found = format!("it sent {method}");
                self.refuse_implementation(now_ms, number, None, &found);
            }
            Err(error) => {
                self.refuse_connection(now_ms, number, Level::Info, &error.to_string());
            }
        }
    }

    /// Handles a part of a long message. Other messages may arrive between two parts.
    fn receive_part(&mut self, now_ms: u64, number: ConnectionNumber, part: &[u8], is_last: bool) {
        let bytes_max = self.settings.message_bytes_max;
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.inbound.bytes() + part.len() > bytes_max {
            let problem = format!("message is longer than {bytes_max} bytes");
            return self.refuse_connection(now_ms, number, Level::Warn, &problem);
        }
        match connection.inbound.add(part, is_last) {
            Some(text) => self.receive_text(now_ms, number, &text, true),
            None => self.limit_begun(now_ms, number),
        }
    }

    fn receive_echo(&mut self, number: ConnectionNumber, message: Message<'_>) {
        let Some(connection) = self.connections.get(&number) else {
            return;
        };
        if let Received::Echo(answer) = connection.session.receive(message) {
            self.write(number, answer.into());
        }
    }

    /// Whether the connection belongs to this server; if not, resets it.
    fn is_of(&mut self, now_ms: u64, number: ConnectionNumber, from: Sid) -> bool {
        let known = self
            .connections
            .get(&number)
            .and_then(|connection| connection.peer);
        match known {
            Some(peer) if peer == from => true,
            Some(peer) => {
                self.refuse_identity(now_ms, number, from, peer);
                false
            }
            None => {
                let problem = format!("the first message of server {from} is not hello_request");
                self.refuse_connection(now_ms, number, Level::Info, &problem);
                false
            }
        }
    }

    /// Handles the first message of a connection, which fixes its server.
    fn receive_hello(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        from: Sid,
        cluster: Option<Cid>,
        address: &str,
    ) {
        let expected = self.expected_at(number);
        if let Some(expected) = expected.filter(|expected| *expected != from) {
            return self.refuse_identity(now_ms, number, from, expected);
        }
        // Only a connection to itself, or a copied file, has this server's own id.
        if from == self.settings.sid {
            let problem = "the server at the other end has this server's ID";
            return self.refuse_connection(now_ms, number, Level::Warn, problem);
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let dialled = connection.dialled.clone();
        let is_new = connection.peer.replace(from).is_none();
        let is_new_address = connection.address.as_deref() != Some(address);
        let name = connection.name.clone();
        connection.address = Some(address.to_owned());
        if is_new {
            self.last_identified += 1;
            connection.identified = self.last_identified;
            self.log(Level::Info, format!("{name}: learned server ID {from}"));
        }
        if is_new_address && dialled.as_deref() != Some(address) {
            self.log(
                Level::Info,
                format!("{name}: learned remote address {address}"),
            );
        }
        self.learn_cluster(number, cluster);
        let is_accepted = dialled.is_none();
        match dialled {
            Some(address) => {
                if let Some(remote) = self.remotes.get_mut(&address) {
                    remote.refusal = None;
                }
            }
            None => self.accepted_refusal = None,
        }
        if is_new {
            self.identified(now_ms, number, from);
        }
        if is_accepted {
            self.limit_accepted_of(now_ms, from);
        }
    }

    /// A joining server adopts the cluster of the first message that names one. That need not be a
    /// hello: the peer may have been joining too when the connection was made, and may lead now.
    fn learn_cluster(&mut self, number: ConnectionNumber, cluster: Option<Cid>) {
        let (None, Some(cid)) = (self.settings.cid, cluster) else {
            return;
        };
        self.settings.cid = Some(cid);
        let name = self.connections.get(&number).map(|it| it.name.as_str());
        let name = name.unwrap_or_default();
        let text = format!("{name}: learned cluster ID {}", short(cid.uuid()));
        self.log(Level::Info, text);
        self.outputs.push_back(PeersOutput::LearnedCluster(cid));
    }

    /// The server to which a connection must belong: the identified one, or the one that the list
    /// names for the address.
    fn expected_at(&self, number: ConnectionNumber) -> Option<Sid> {
        let connection = self.connections.get(&number)?;
        let remote = || self.remotes.get(connection.dialled.as_ref()?);
        connection.peer.or_else(|| remote()?.sid)
    }

    /// Resets a connection if the list now names another server for its address than the one that
    /// answered.
    pub(super) fn check_identity(&mut self, now_ms: u64, address: &str) {
        let Some(remote) = self.remotes.get(address) else {
            return;
        };
        let (Some(number), Some(expected)) = (remote.number, remote.sid) else {
            return;
        };
        let found = self
            .connections
            .get(&number)
            .and_then(|connection| connection.peer);
        if let Some(found) = found.filter(|found| *found != expected) {
            self.refuse_identity(now_ms, number, found, expected);
        }
    }

    fn limit_accepted_of(&mut self, now_ms: u64, sid: Sid) {
        let numbers = self.by_server.get(&sid).into_iter().flatten();
        let accepted: Vec<(ConnectionNumber, &Connection)> = numbers
            .filter_map(|number| Some((*number, self.connections.get(number)?)))
            .filter(|(_, connection)| connection.dialled.is_none())
            .collect();
        if accepted.len() <= ACCEPTED_PER_SERVER_MAX {
            return;
        }
        if let Some(number) = vouching::least(accepted.into_iter()) {
            let problem = "the server has newer connections, closing this one";
            self.reset(now_ms, number, Level::Info, problem);
        }
    }

    fn refuse_identity(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        found: Sid,
        expected: Sid,
    ) {
        let problem =
            format!("ignoring message with unexpected server ID {found} (expected {expected})");
        self.refuse_connection(now_ms, number, Level::Warn, &problem);
    }

    /// The peer is not a Corvid server, or has another version of the codec.
    fn refuse_implementation(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        from: Option<Sid>,
        found: &str,
    ) {
        let server = from.map_or_else(|| "the server".to_owned(), |from| format!("server {from}"));
        let problem = format!(
            "{server} cannot be a member of this cluster: members must exchange messages as \"{CODEC}\", and {found}. \
             Stop all members, install the same program on each, and start them on their files"
        );
        self.refuse_connection(now_ms, number, Level::Warn, &problem);
    }

    /// The peer has not identified itself. A member of the reference waits for the other side to
    /// start.
    pub(super) fn refuse_silent(&mut self, now_ms: u64, number: ConnectionNumber) {
        let problem = "the peer did not identify itself, disconnecting";
        let connection = self.connections.get(&number);
        if connection.is_none_or(|connection| connection.dialled.is_none()) {
            return self.refuse_connection(now_ms, number, Level::Info, problem);
        }
        let problem = format!(
            "{problem}. If it is a member of a cluster, it runs another program: members must exchange messages as \"{CODEC}\". Stop all \
             members, install the same program on each, start them on their files, and then let this server join"
        );
        self.refuse_connection(now_ms, number, Level::Warn, &problem);
    }

    /// Resets a connection. The same reason as last time, from the same address, is logged at debug
    /// level: the peer keeps trying.
    fn refuse_connection(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        level: Level,
        problem: &str,
    ) {
        let Some(connection) = self.connections.get(&number) else {
            return;
        };
        let dialled = connection.dialled.as_ref();
        let last = match dialled.and_then(|address| self.remotes.get_mut(address)) {
            Some(remote) => &mut remote.refusal,
            None => &mut self.accepted_refusal,
        };
        let is_repeated = last.as_deref() == Some(problem);
        *last = Some(problem.to_owned());
        let level = if is_repeated { Level::Debug } else { level };
        self.reset(now_ms, number, level, problem);
    }
}
