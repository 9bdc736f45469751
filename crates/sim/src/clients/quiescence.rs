//! Quiescence: all faults end, every request gets its reply, and the final state is checked.

use super::content;
use super::host::Host;
use super::member::Member;
use super::network::{Caller, To};
use super::run::Run;

/// Maximum number of steps until the run is idle.
const STEPS_MAX: usize = 40_000;

impl Run {
    /// Ends all faults, runs until nothing but probes happens any more, and checks the final state.
    pub(super) fn run_until_idle(&mut self) -> Result<(), String> {
        self.trace.line(format_args!("run until idle"));
        self.network.loosen(self.now_ms);
        for host in 0..self.hosts.len() {
            self.hosts[host].frozen_until_ms = 0;
            if !self.hosts[host].is_up() {
                self.start(host)?;
            }
        }
        for member in &mut self.members {
            member.is_deaf = false;
        }
        self.end_dead_connections();
        self.rest()?;
        for member in &mut self.members {
            member.fetch_all()?;
            member.output(self.now_ms, self.active, &mut self.network)?;
        }
        self.rest()?;
        self.check()
    }

    /// Ends connections to killed servers for clients that would not detect it themselves.
    fn end_dead_connections(&mut self) {
        for id in self.network.ids() {
            let conn = self.network.get(id).filter(|conn| conn.is_accepted);
            let dead = conn.filter(|conn| self.hosts[conn.host].session_of(id).is_none());
            let is_told = dead.is_some_and(|conn| match conn.caller {
                Caller::Host(_) => true,
                Caller::Member(member) => !self.members[member].probes,
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
            let is_followed = self.hosts.iter().all(Host::is_following);
            if is_quiet && is_followed && self.members.iter().all(|member| self.is_served(member)) {
                return Ok(());
            }
            self.wait();
        }
        let states = self
            .members
            .iter()
            .map(|member| member.idl.session_state().state());
        let states: Vec<_> = states.collect();
        Err(format!(
            "no rest at {} ms: clients are {states:?}, could act: {:?}",
            self.now_ms,
            self.actors()
        ))
    }

    /// Whether a client has all its content, from a server that still has its session.
    fn is_served(&self, member: &Member) -> bool {
        let id = member.conn();
        let conn = id.and_then(|id| Some((id, self.network.get(id)?.host)));
        let is_known = conn.is_some_and(|(id, host)| self.hosts[host].session_of(id).is_some());
        is_known && member.is_content()
    }

    fn are_schemas_apart(&self) -> bool {
        let [one, two] = [0, 1].map(|host| {
            let machine = self.hosts[host].machine();
            machine.map(|machine| machine.database().schema().version.clone())
        });
        one != two
    }

    /// A conversion has ended the replication for good: the operator copies the active server's file to the backup.
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
        let (one, two) = (one?.database(), two?.database());
        for (number, member) in self.members.iter().enumerate() {
            let problem = |problem: String| format!("client {number}: {problem}");
            let conn = member.conn().and_then(|conn| self.network.get(conn));
            let host = conn.ok_or("a client is not connected")?.host;
            let database = [one, two][host];
            let expected = content::expected(&member.idl, database, member.limit());
            let held = content::held(&member.idl, true);
            if let Some(difference) = content::difference(&member.idl, &held, &expected) {
                return Err(problem(format!("of host {host}: {difference}")));
            }
            let session = member
                .conn()
                .and_then(|conn| self.hosts[host].session_of(conn));
            let machine = self.hosts[host].machine();
            let owns = machine
                .zip(session)
                .is_some_and(|(machine, session)| machine.owns(session, super::workload::LOCK));
            if owns != member.idl.session_state().has_lock() {
                return Err(problem(format!("it owns the lock: {owns}")));
            }
        }
        let reader = &self.members[0].idl;
        let [first, second] = [one, two].map(|database| content::expected(reader, database, None));
        if let Some(difference) = content::difference(reader, &first, &second) {
            return Err(format!("the hosts differ: {difference}"));
        }
        let held = content::transactions([one, two][self.active]).unwrap_or_default();
        self.ledger.check(&held)?;
        for (number, member) in self.members.iter_mut().enumerate() {
            let outcome = member.check().and_then(|()| member.check_fetches());
            outcome.map_err(|problem| format!("client {number}: {problem}"))?;
        }
        Ok(())
    }
}
