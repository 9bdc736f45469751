//! Quiescence: all faults end, every request gets its reply, and the final state is checked.

use super::content;
use super::host::ServerHost;
use super::run::{ClientRun, pair};
use super::sim_client::SimClient;
use crate::world::network::connections::{Caller, To};

/// Maximum number of steps until the run is idle.
const STEPS_MAX: usize = 40_000;

impl ClientRun {
    /// Ends all faults, runs until only probes happen, and checks the final state.
    pub(super) fn run_until_idle(&mut self) -> Result<(), String> {
        self.trace.line(format_args!("run until idle"));
        self.network.loosen(self.now_ms);
        for host in 0..self.hosts.len() {
            self.hosts[host].frozen_until_ms = 0;
            if !self.hosts[host].is_up() {
                self.start(host)?;
            }
        }
        for client in &mut self.clients {
            client.is_deaf = false;
        }
        self.end_dead_connections();
        self.rest()?;
        for client in &mut self.clients {
            client.fetch_all()?;
            client.output(self.now_ms, &pair(self.active), &mut self.network)?;
        }
        self.rest()?;
        self.check()
    }

    /// Ends connections to killed servers for clients that would not detect the end themselves.
    fn end_dead_connections(&mut self) {
        for id in self.network.ids() {
            let conn = self.network.get(id).filter(|conn| conn.is_accepted);
            let dead = conn.filter(|conn| self.hosts[conn.host].session_of(id).is_none());
            let is_told = dead.is_some_and(|conn| match conn.caller {
                Caller::Host(_) => true,
                Caller::Client(client) => !self.clients[client].probes,
            });
            if is_told {
                self.network.close(self.now_ms, id, To::Server);
            }
        }
    }

    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..STEPS_MAX {
            if self.step()? {
                continue;
            }
            let is_quiet = self.network.is_quiet() && self.is_handed_over();
            if is_quiet && self.are_schemas_apart() {
                self.copy_file()?;
                continue;
            }
            let is_followed = self.hosts.iter().all(ServerHost::is_following);
            if is_quiet && is_followed && self.clients.iter().all(|client| self.is_served(client)) {
                return Ok(());
            }
            self.wait();
        }
        let states = self
            .clients
            .iter()
            .map(|client| client.idl.session_state().state());
        let states: Vec<_> = states.collect();
        Err(format!(
            "no rest at {} ms: clients are {states:?}, could act: {:?}",
            self.now_ms,
            self.actors()
        ))
    }

    /// Whether a client has all its content, from a server that still has its session.
    fn is_served(&self, client: &SimClient) -> bool {
        let id = client.conn();
        let conn = id.and_then(|id| Some((id, self.network.get(id)?.host)));
        let is_known = conn.is_some_and(|(id, host)| self.hosts[host].session_of(id).is_some());
        is_known && client.is_content()
    }

    fn are_schemas_apart(&self) -> bool {
        let [one, two] = [0, 1].map(|host| {
            let machine = self.hosts[host].machine();
            machine.map(|machine| machine.service().database().schema().version.clone())
        });
        one != two
    }

    /// Copies the active server's file to the backup, as an operator does after a conversion has
    /// ended the replication for good.
    fn copy_file(&mut self) -> Result<(), String> {
        let backup = 1 - self.active;
        self.trace.line(format_args!("host {backup} gets a copy"));
        let file = self.hosts[self.active].file();
        self.kill(backup);
        let seed = self.dice.draw();
        self.hosts[backup].replace_file(seed, file);
        self.start(backup)?;
        self.end_dead_connections();
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let [one, two] = [0, 1].map(|host| self.hosts[host].machine().ok_or("a host is down"));
        let (one, two) = (one?.service().database(), two?.service().database());
        for (number, client) in self.clients.iter().enumerate() {
            let problem = |problem: String| format!("client {number}: {problem}");
            let conn = client.conn().and_then(|conn| self.network.get(conn));
            let host = conn.ok_or("a client is not connected")?.host;
            let database = [one, two][host];
            let expected = content::expected(&client.idl, database, client.limit());
            let held = content::held(&client.idl, true);
            if let Some(difference) = content::difference(&client.idl, &held, &expected) {
                return Err(problem(format!("of host {host}: {difference}")));
            }
            let session = client
                .conn()
                .and_then(|conn| self.hosts[host].session_of(conn));
            let machine = self.hosts[host].machine();
            let owns = machine
                .zip(session)
                .is_some_and(|(machine, session)| machine.owns(session, super::workload::LOCK));
            if owns != client.idl.session_state().has_lock() {
                return Err(problem(format!("it owns the lock: {owns}")));
            }
        }
        let reader = &self.clients[0].idl;
        let [first, second] = [one, two].map(|database| content::expected(reader, database, None));
        if let Some(difference) = content::difference(reader, &first, &second) {
            return Err(format!("the hosts differ: {difference}"));
        }
        let held = content::transactions([one, two][self.active]).unwrap_or_default();
        self.ledger.check(&held)?;
        for (number, client) in self.clients.iter_mut().enumerate() {
            let outcome = client.check().and_then(|()| client.check_fetches());
            outcome.map_err(|problem| format!("client {number}: {problem}"))?;
        }
        Ok(())
    }
}
