//! The clients of a run. Each has a session at one server at a time, and keeps its replica when it
//! moves to another server.

use corvid_json::Value;
use corvid_monitor::Version;
use corvid_service::frontend::Close;

use super::relays::machine_at;
use super::{Choice, ClusterRun};
use crate::server::client::{Client, LOCKS};
use crate::server::machine::ToClient;
use crate::server::workload::Txn;
use crate::whole_cluster::location::Location;
use crate::world::dice::Dice;

/// A client.
#[derive(Debug)]
pub(super) struct SimClient {
    version: Version,
    /// The server; `client` is the session there. While the client has no server, `client` is its
    /// previous session, with its replica.
    pub(super) host: Option<Location>,
    client: Option<Client>,
    /// The client wants the leader, and leaves a server that does not lead.
    pub(super) wants_leader: bool,
    /// The client connects to relays if there are any, and occasionally to a member.
    is_of_relays: bool,
    /// When the client connects again, ms.
    connect_ms: u64,
}

impl SimClient {
    pub(super) fn draw(dice: &mut Dice) -> SimClient {
        SimClient {
            version: *dice.pick(&[Version::V1, Version::V2, Version::V3, Version::V3]),
            host: None,
            client: None,
            wants_leader: dice.chance(25),
            is_of_relays: false,
            connect_ms: 0,
        }
    }

    /// Returns a client that mostly connects to relays.
    pub(super) fn draw_of_relays(dice: &mut Dice) -> SimClient {
        SimClient {
            wants_leader: false,
            is_of_relays: true,
            ..SimClient::draw(dice)
        }
    }

    /// Returns the client's newest tenure of a lock in this session, and whether it lasts.
    pub(super) fn tenure(&self, lock: &str) -> (Option<i64>, bool) {
        let session = self.session();
        session.map_or((None, false), |session| session.tenure(lock))
    }

    /// Returns the client's session while it is connected.
    pub(super) fn session(&self) -> Option<&Client> {
        self.client.as_ref().filter(|_| self.host.is_some())
    }

    /// When the client acts by itself, ms.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.host.is_none().then_some(self.connect_ms)
    }
}

impl ClusterRun {
    /// Lists the steps of clients that can be taken now.
    pub(super) fn client_choices(&self, choices: &mut Vec<Choice>) {
        for (number, client) in self.clients.iter().enumerate() {
            let (Some(host), Some(session)) = (client.host, &client.client) else {
                if client.connect_ms <= self.now_ms && client.host.is_none() {
                    choices.push(Choice::Send(number));
                }
                continue;
            };
            if !self.server(host).is_running(self.now_ms) {
                continue;
            }
            if session.can_send() {
                choices.push(Choice::Send(number));
            }
            if session.is_full && !session.is_stalled {
                choices.push(Choice::Read(number));
            }
        }
    }

    /// A server reads a client's next message. A client without a server connects to one.
    pub(super) fn client_sends(&mut self, number: usize) -> Result<(), String> {
        let Some(host) = self.clients[number].host else {
            self.connect(number);
            return Ok(());
        };
        let now = self.server(host).now(self.now_ms);
        let machine = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            host,
        );
        if let (Some(machine), Some(client)) = (machine, &mut self.clients[number].client)
            && let Some(text) = client.texts.pop_front()
        {
            machine.text(now, client.session, text);
        }
        self.collect_at(host)
    }

    /// Clients that want the leader leave servers that say that they do not lead.
    pub(super) fn leave_followers(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            let client = &self.clients[number];
            let Some(host) = client.host.filter(|_| client.wants_leader) else {
                continue;
            };
            let server = self.server(host);
            if server.is_running(self.now_ms) && !server.shows_leader() {
                self.disconnect(number)?;
            }
        }
        Ok(())
    }

    /// A client has read everything.
    pub(super) fn client_reads(&mut self, number: usize) -> Result<(), String> {
        let Some(host) = self.clients[number].host else {
            return Ok(());
        };
        let machine = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            host,
        );
        if let (Some(machine), Some(client)) = (machine, &mut self.clients[number].client) {
            client.is_full = false;
            machine.drained(client.session);
        }
        self.collect_at(host)
    }

    /// Connects a client to any server that serves the database.
    fn connect(&mut self, number: usize) {
        let is_of_relays = self.clients[number].is_of_relays;
        let host = self.draw_location(is_of_relays);
        let wants_leader = self.clients[number].wants_leader;
        let server = self.server(host);
        let is_fit = self.avoided != Some(host)
            && server.is_running(self.now_ms)
            && (!wants_leader || server.shows_leader());
        let machine = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            host,
        );
        let Some(machine) = machine.filter(|machine| is_fit && machine.is_served()) else {
            let later_ms = 1 + self.dice.below(300) as u64;
            self.clients[number].connect_ms = self.now_ms + later_ms;
            return;
        };
        let client = &mut self.clients[number];
        let earlier = client.client.take();
        self.summary.moves += u64::from(earlier.is_some());
        let session = machine.connect();
        let mut session = Client::new(session, client.version, earlier);
        session.begin(&mut self.next_id);
        // Some clients also learn of commits from `_Server`. A relay shows no index.
        if number.is_multiple_of(2) && matches!(host, Location::Member(_)) {
            session.watch_server(&mut self.next_id);
        }
        client.client = Some(session);
        client.host = Some(host);
        self.trace.line(format_args!(
            "{} client {number} connects to {host}",
            self.now_ms
        ));
    }

    /// The session of a client has ended.
    pub(super) fn lose_session(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if client.host.take().is_none() {
            return;
        }
        if let Some(session) = &client.client {
            for transaction in session.open_transactions() {
                self.witness.orphaned(transaction);
            }
            self.summary.continued += session.continued;
            self.is_converting &= !session.is_converting();
        }
        client.connect_ms = self.now_ms + self.dice.below(200) as u64;
    }

    /// A client disconnects.
    pub(super) fn disconnect(&mut self, number: usize) -> Result<(), String> {
        let client = &self.clients[number];
        let (Some(host), Some(session)) = (client.host, &client.client) else {
            return Ok(());
        };
        let session = session.session;
        self.lose_session(number);
        if let Some(machine) = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            host,
        ) {
            machine.disconnect(session);
        }
        self.collect_at(host)
    }

    /// All clients of a server lose it.
    pub(super) fn clients_lose(&mut self, host: Location) {
        for number in 0..self.clients.len() {
            if self.clients[number].host == Some(host) {
                self.lose_session(number);
            }
        }
    }

    /// Delivers the messages that a server has sent to its clients.
    pub(super) fn deliver(&mut self, host: Location) -> Result<(), String> {
        loop {
            let Some(machine) = machine_at(
                &mut self.hosts,
                &mut self.standalone,
                &mut self.relays.hosts,
                host,
            ) else {
                return Ok(());
            };
            let messages = std::mem::take(&mut machine.to_clients);
            if messages.is_empty() {
                return Ok(());
            }
            for (session, message) in messages {
                let Some(message) = self.deliver_to_relay(host, session, message) else {
                    continue;
                };
                let is_of = |client: &SimClient| {
                    client.host == Some(host)
                        && client
                            .client
                            .as_ref()
                            .is_some_and(|of| of.session == session)
                };
                if let Some(number) = self.clients.iter().position(is_of) {
                    self.deliver_to(number, host, message)?;
                } else {
                    self.deliver_to_guest(host, session, message);
                }
            }
        }
    }

    fn deliver_to(
        &mut self,
        number: usize,
        host: Location,
        message: ToClient,
    ) -> Result<(), String> {
        let Some(client) = &mut self.clients[number].client else {
            return Ok(());
        };
        match message {
            ToClient::Message(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown: String = text.chars().take(300).collect();
                self.trace
                    .line(format_args!("{} client {number} <- {shown}", self.now_ms));
                let value = Value::parse(&bytes).map_err(|error| error.to_string())?;
                client.is_full = true;
                client
                    .take(&value, &self.view, &mut self.next_id, &mut self.witness)
                    .map_err(|problem| format!("client {number} of {host}: {problem}"))?;
                if let Some(result) = client.converted.take() {
                    self.is_converting = false;
                    self.summary.conversions += u64::from(result.is_ok());
                }
                let went_back = client.went_back.take();
                self.judge_news(number, host, went_back)
                    .map_err(|problem| format!("client {number} of {host}: {problem}"))?;
            }
            ToClient::Pause(is_paused) => client.is_paused = is_paused,
            ToClient::Closed(why) => {
                let is_unknown = |reason: &str| reason.starts_with("the outcome of");
                if matches!(&why, Close::Disconnect(reason) if is_unknown(reason)) {
                    self.summary.unknown += 1;
                }
                self.trace.line(format_args!(
                    "{} client {number} closed: {why:?}",
                    self.now_ms
                ));
                let session = client.session;
                self.lose_session(number);
                if let Some(machine) = machine_at(
                    &mut self.hosts,
                    &mut self.standalone,
                    &mut self.relays.hosts,
                    host,
                ) {
                    machine.disconnect(session);
                }
            }
        }
        Ok(())
    }

    /// A client sends a transaction. Returns false if the client is not connected.
    pub(super) fn transact(&mut self, number: usize, txn: &Txn) -> bool {
        let client = &mut self.clients[number];
        let (Some(location), Some(session)) = (client.host, client.client.as_mut()) else {
            return false;
        };
        self.next_txn = txn.number + 1;
        self.summary.transactions += 1;
        self.trace.line(format_args!(
            "{} client {number}: {}",
            self.now_ms,
            txn.params().chars().take(300).collect::<String>()
        ));
        session.transact(&mut self.next_id, txn);
        let is_relayed = matches!(location, Location::Relay(_));
        self.witness.sent(txn.clone(), is_relayed);
        self.judge_sent(number, location, txn);
        true
    }

    /// A client requests or releases a lock.
    pub(super) fn lock(&mut self, number: usize) {
        let method = *self.dice.pick(&["lock", "steal", "unlock", "unlock"]);
        let lock = *self.dice.pick(&LOCKS);
        let client = &mut self.clients[number];
        if let Some(session) = client.client.as_mut().filter(|_| client.host.is_some()) {
            session.lock(&mut self.next_id, method, lock);
        }
    }

    /// A client stops reading, or continues.
    pub(super) fn stall(&mut self, number: usize, is_stalled: bool) {
        if let Some(session) = &mut self.clients[number].client {
            session.is_stalled = is_stalled;
        }
    }

    /// A client requests a conversion, unless one is in flight.
    pub(super) fn convert(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if self.is_converting {
            return;
        }
        if let Some(session) = client.client.as_mut().filter(|_| client.host.is_some()) {
            self.is_converting = true;
            self.is_wide = !self.is_wide;
            let is_wide = self.is_wide;
            self.trace.line(format_args!(
                "{} client {number} converts, wide: {is_wide}",
                self.now_ms
            ));
            session.convert(&mut self.next_id, is_wide);
        }
    }

    /// Checks the replicas and locks of all clients.
    pub(super) fn check_clients(&self) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let (Some(host), Some(session)) = (client.host, client.session()) else {
                continue;
            };
            let Some(machine) = self.server(host).machine() else {
                continue;
            };
            session
                .check_replica(&self.view, machine.service().database())
                .map_err(|problem| format!("client {number} of {host}: {problem}"))?;
            for lock in LOCKS {
                let owns = machine.owns(session.session, lock);
                if owns != session.owned.contains(lock) {
                    return Err(format!("client {number} owns {lock}: {owns}"));
                }
            }
        }
        Ok(())
    }
}
