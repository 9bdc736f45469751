//! A cluster, or a standalone server, with relays as the servers of another simulation, which has
//! the clients: the simulation of [`crate::clients`].
//!
//! Invariant: all checks of members, relays and commits apply as in every run. The stage opens no
//! session. It learns of transactions from the caller, and their effects are those of
//! [`Txn::plain`]: each adds its number to a set and counts. The commits of a standalone server are
//! judged by the caller alone.

use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::Now;

use super::faults::Faults;
use super::relays::machine_at;
use super::{ClusterRun, RelayTally};
use crate::server::client::Outcomes as _;
use crate::server::machine::{Machine, ToClient};
use crate::server::workload::Txn;
use crate::whole_cluster::location::Location;
use crate::whole_cluster::server::Server as _;
use crate::world::dice::Dice;
use crate::world::host_faults;
use crate::world::trace::Trace;

/// A message to a session of the caller.
#[derive(Debug)]
pub(crate) struct ToGuest {
    /// The number of the server, as in [`Stage::servers`].
    pub(crate) server: usize,
    /// The life of the server. A session number is used again in the next one.
    pub(crate) life: u64,
    pub(crate) session: SessionId,
    pub(crate) message: ToClient,
}

/// A cluster or a standalone server with relays, without clients of its own.
pub(crate) struct Stage(ClusterRun);

impl Stage {
    /// Returns a standalone server with this file, or a cluster of one server or three, with relays
    /// in one level or two.
    pub(crate) fn new(seed: u64, schema: &Value, file: Vec<u8>, trace: &Trace) -> Stage {
        let mut dice = Dice::new(seed);
        let faults = Faults::draw_with_relays(&mut dice);
        let members = *dice.pick(&[0, 1, 3, 3]);
        let levels = *dice.pick(&[[1, 0], [2, 0], [1, 1], [2, 1]]);
        let trace = trace.clone();
        let mut run = ClusterRun::of_schema(dice, faults, members, Vec::new(), trace, schema);
        if members == 0 {
            run.add_standalone(file);
        }
        run.add_relays(&levels);
        run.guests = Some(Vec::new());
        Stage(run)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.0.now_ms
    }

    /// Time passes, at most until the next event.
    pub(crate) fn set_now(&mut self, now_ms: u64) {
        self.0.now_ms = now_ms;
    }

    /// Returns the time of the next event, ms.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.0.next_ms()
    }

    /// Takes one step. Returns false when no step is possible now.
    pub(crate) fn step(&mut self) -> Result<bool, String> {
        self.0.step()
    }

    /// Causes a fault, or an operator acts.
    pub(crate) fn do_something(&mut self) -> Result<(), String> {
        if self.0.standalone.is_some() {
            match self.0.dice.chance(50) {
                true => self.0.do_something_to_relays()?,
                false => self.0.do_something_to_standalone(),
            }
            return Ok(());
        }
        let faults = self.0.faults.hosts;
        let host = self.0.dice.below(self.0.hosts.len());
        match self.0.dice.below(10) {
            0..5 => self.0.do_something_to_relays()?,
            5 if faults.has_compactions => self.0.compact(host),
            6 if faults.has_commands => {
                let command = host_faults::draw_command(&mut self.0.dice);
                self.0.order(host, command);
            }
            _ => self.0.trouble()?,
        }
        Ok(())
    }

    /// A part of the way to the cluster fails at once: the connection of a relay to its source, a
    /// relay, or a member.
    pub(crate) fn strike(&mut self) {
        let run = &mut self.0;
        let relay = run.dice.below(run.relays.hosts.len());
        let host = run.dice.below(run.hosts.len().max(1));
        let has_crashes = run.faults.hosts.has_crashes;
        match run.dice.below(4) {
            0 if has_crashes => run.kill_relay(relay),
            1 if has_crashes && run.standalone.is_some() => run.kill_standalone(),
            1 if has_crashes => run.power_cycle(host),
            _ => run.break_connection(relay),
        }
    }

    /// Whether the servers may have forgotten what became of a transaction: the process of a member
    /// or of the standalone server has ended, a member has got a snapshot, a relay is the source of
    /// another one, or the database was converted.
    pub(crate) fn may_have_forgotten(&self) -> bool {
        let summary = &self.0.summary;
        summary.restarts > 0
            || summary.snapshots > 0
            || self.0.relays.hosts.iter().any(|host| host.level > 1)
            || self.has_conversions()
    }

    /// Whether clients may convert the database.
    pub(crate) fn has_conversions(&self) -> bool {
        self.0.faults.has_conversions
    }

    /// Returns the numbers of all servers and their addresses, the relays first.
    pub(crate) fn servers(&self) -> Vec<(usize, String)> {
        let mut locations: Vec<Location> = self.0.locations().collect();
        locations.sort_by_key(|location| !matches!(location, Location::Relay(_)));
        let servers = locations.into_iter();
        servers.map(|it| (it.listener(), it.address())).collect()
    }

    /// Whether a server is a relay.
    pub(crate) fn is_relay(&self, server: usize) -> bool {
        matches!(self.location(server), Some(Location::Relay(_)))
    }

    fn location(&self, server: usize) -> Option<Location> {
        let mut locations = self.0.locations();
        locations.find(|location| location.listener() == server)
    }

    /// Returns the number of a server's life while it accepts connections.
    pub(crate) fn life(&self, server: usize) -> Option<u64> {
        let location = self.location(server)?;
        self.0.server(location).machine()?;
        Some(self.0.life(location))
    }

    /// Whether a server is up and not paused.
    pub(crate) fn is_running(&self, server: usize) -> bool {
        let location = self.location(server);
        location.is_some_and(|it| self.0.server(it).is_running(self.0.now_ms))
    }

    /// Returns the time as a server reads it.
    pub(crate) fn now(&self, server: usize) -> Option<Now> {
        let location = self.location(server)?;
        Some(self.0.server(location).now(self.0.now_ms))
    }

    /// Returns the machine of a server that is up.
    pub(crate) fn machine(&mut self, server: usize) -> Option<&mut Machine> {
        let location = self.location(server)?;
        machine_at(
            &mut self.0.hosts,
            &mut self.0.standalone,
            &mut self.0.relays.hosts,
            location,
        )
    }

    /// Returns the database that a server serves.
    pub(crate) fn database(&self, server: usize) -> Option<&Database> {
        let machine = self.0.server(self.location(server)?).machine()?;
        let served = Some(machine).filter(|machine| machine.is_served())?;
        Some(served.service().database())
    }

    /// Judges what a server did after an input of the caller.
    pub(crate) fn collect(&mut self, server: usize) -> Result<(), String> {
        let location = self.location(server);
        location.map_or(Ok(()), |location| self.0.collect_at(location))
    }

    /// Takes the messages to the caller's sessions.
    pub(crate) fn messages(&mut self) -> Vec<ToGuest> {
        self.0
            .guests
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// A client sends a transaction.
    pub(crate) fn sent(&mut self, number: i64) {
        self.0.witness.sent(Txn::plain(number), true);
    }

    /// A client learns that its transaction was committed as this one in the order of commits.
    ///
    /// # Errors
    /// It was not.
    pub(crate) fn committed(&mut self, number: i64, seq: i64) -> Result<(), String> {
        if self.0.standalone.is_some() {
            return Ok(());
        }
        self.0.witness.acknowledged(number, seq)?;
        self.0.witness.newly_acknowledged.clear();
        Ok(())
    }

    /// A client learns that its transaction is not committed and never will be.
    ///
    /// # Errors
    /// It is committed.
    pub(crate) fn refused(&mut self, number: i64) -> Result<(), String> {
        let error = Value::String("refused".into());
        self.0.witness.failed(number, &error)
    }

    /// A client cannot learn what became of its transaction.
    pub(crate) fn lost(&mut self, number: i64) {
        self.0.witness.orphaned(number);
    }

    /// Ends all faults.
    pub(crate) fn heal(&mut self) {
        self.0.heal();
        self.0.heal_standalone();
    }

    /// Describes a server that lacks commits, or reports that it does.
    pub(crate) fn problem(&mut self) -> Option<String> {
        let Some(host) = &self.0.standalone else {
            return self.0.problem();
        };
        let is_up = host.is_running(self.0.now_ms);
        let problem = (!is_up).then(|| "the source is down".to_owned());
        problem.or_else(|| self.0.relay_problem())
    }

    /// Checks the order of all commits.
    ///
    /// # Errors
    /// The transactions cannot have happened one by one.
    pub(crate) fn check_order(&self) -> Result<(), String> {
        self.0.witness.check_order()
    }

    /// Returns the statistics of the relays, and the number of ends of members.
    pub(crate) fn tally(&self) -> (RelayTally, u64) {
        let mut tally = self.0.relays.tally;
        tally.broken_connections = self.0.relays.wires.broken;
        (tally, self.0.summary.restarts)
    }
}

impl ClusterRun {
    pub(super) fn life(&self, location: Location) -> u64 {
        match location {
            Location::Member(number) => self.hosts[number].lives,
            Location::Standalone => self.standalone.as_ref().map_or(0, |host| host.lives),
            Location::Relay(number) => self.relays.hosts[number].lives,
        }
    }

    /// Keeps a message for the simulation whose session it is for.
    pub(super) fn deliver_to_guest(
        &mut self,
        location: Location,
        session: SessionId,
        message: ToClient,
    ) {
        let (server, life) = (location.listener(), self.life(location));
        if let Some(guests) = &mut self.guests {
            guests.push(ToGuest {
                server,
                life,
                session,
                message,
            });
        }
    }
}
