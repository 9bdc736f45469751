//! One life of a relay's process: shards and databases ([`Machine`]), the relay's thread around the
//! machine of its source ([`RelaySource`]), and the main thread's work for a relay.
//!
//! The thread works as in `crates/server/src/relay/thread.rs`, turn for turn; only the transport
//! differs ([`super::transport`]). Invariant: messages between two threads stay in order. The
//! caller draws which thread acts next.

use std::collections::VecDeque;

use corvid_consensus::ConnectionNumber;
use corvid_data::HashSeed;
use corvid_service::Now;
use corvid_service::member::Contents;
use corvid_service::message::{SourceRequest, ToDatabase};
use corvid_service::relay::{RelayEvent, RelayOptions, RelaySource};
use corvid_service::server_db::ServerRow;
use corvid_session::Input;

use super::transport::{Transport, TransportEvent};
use crate::server::machine::{Choice, Machine, SeededUuids};
use crate::whole_cluster::location::Location;
use crate::whole_cluster::opening::NAME;
use crate::world::dice::Dice;
use crate::world::disk::SimDisk;
use crate::world::network::wires::Wires;
use crate::world::trace::Trace;

/// Maximum number of reads in one turn.
const READS_MAX: usize = 64;

/// Longest wait of the thread, ms.
const WAIT_MAX_MS: u64 = 5000;

/// A step that can be taken next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::whole_cluster) enum RelayStep {
    /// A turn of the relay's thread.
    Thread,
    /// A shard, a database, or one of their threads acts.
    Machine(Choice),
    /// The main thread handles an event.
    Main,
}

/// A message to the relay's thread.
enum ToRelay {
    Request(SourceRequest),
    Served,
}

/// An event for the main thread.
enum ToMain {
    Joined(Box<Contents>),
    RowChanged(ServerRow),
}

/// One life of a relay's process.
pub(in crate::whole_cluster) struct RelayProcess {
    number: usize,
    pub(in crate::whole_cluster) machine: Machine,
    pub(in crate::whole_cluster) source: RelaySource,
    transport: Transport,
    mail: VecDeque<ToRelay>,
    main: VecDeque<ToMain>,
    /// Events for the database: those of this turn, or all since the initial contents while the
    /// database is not served yet.
    events: Vec<ToDatabase>,
    /// The database is served, as far as the thread knows.
    is_served: bool,
    /// The connection may have more to read.
    has_more: bool,
    /// The thread sleeps until this time unless something arrives, ms.
    wake_ms: u64,
    dice: Dice,
    trace: Trace,
    /// The database has applied something since the last check.
    pub(in crate::whole_cluster) has_applied: bool,
    /// Number of complete contents received.
    pub(in crate::whole_cluster) downloads: u64,
    /// The last transaction in the relay's contents, by its number in the order of commits, and the
    /// time since which it has been there, ms.
    pub(in crate::whole_cluster) shown: (i64, u64),
    /// Leaderships of the cluster at that time.
    pub(in crate::whole_cluster) leaderships: u64,
    /// Number of times that the contents have become older.
    pub(in crate::whole_cluster) went_back: u64,
    /// Number of changes that did not fit the contents.
    pub(in crate::whole_cluster) misfits: u64,
}

impl std::fmt::Debug for RelayProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayProcess").finish_non_exhaustive()
    }
}

impl RelayProcess {
    /// Starts a relay of the servers at these addresses.
    pub(super) fn start(
        number: usize,
        remotes: &str,
        now: Now,
        seed: u64,
        trace: &Trace,
    ) -> RelayProcess {
        let mut dice = Dice::new(seed);
        let disk = SimDisk::new(dice.draw(), trace.clone(), Vec::new());
        let machine = Machine::start_relay(now, dice.draw(), &disk, NAME);
        let mut source = RelaySource::new(RelayOptions {
            database: NAME.to_owned(),
            seed: dice.draw(),
            hash_seed: HashSeed::new(dice.draw()),
            uuids: Box::new(SeededUuids(Dice::new(dice.draw()))),
        });
        source.set_remote(now.mono_ms, remotes);
        RelayProcess {
            number,
            machine,
            source,
            transport: Transport::new(Location::caller(number)),
            mail: VecDeque::new(),
            main: VecDeque::new(),
            events: Vec::new(),
            is_served: false,
            has_more: true,
            wake_ms: now.mono_ms,
            dice,
            trace: trace.clone(),
            has_applied: false,
            downloads: 0,
            shown: (0, 0),
            leaderships: 0,
            went_back: 0,
            misfits: 0,
        }
    }

    /// Returns the connection to the source while it is up.
    pub(in crate::whole_cluster) fn connection(&self) -> Option<ConnectionNumber> {
        self.transport.connection()
    }

    /// Number of messages and events that wait.
    pub(in crate::whole_cluster) fn queued(&self) -> usize {
        self.mail.len() + self.main.len() + self.events.len() + self.machine.queued()
    }

    /// Bytes from the source that wait for the thread or for the database.
    pub(in crate::whole_cluster) fn bytes(&self) -> usize {
        self.transport.bytes() + self.source.counts().unapplied_bytes as usize
    }

    /// Whether nothing is in flight between the threads.
    pub(in crate::whole_cluster) fn is_idle(&self) -> bool {
        let counts = self.source.counts();
        self.queued() == 0 && counts.waiting + counts.sent + counts.unapplied_bytes == 0
    }

    /// Returns the next time at which something happens without input, by the process's clock, ms.
    pub(super) fn deadline_ms(&self, now: Now) -> u64 {
        let machine = self.machine.next_deadline_ms(now);
        machine.map_or(self.wake_ms, |at_ms| at_ms.min(self.wake_ms))
    }

    /// Returns all steps that can be taken now.
    pub(in crate::whole_cluster) fn steps(&self, now: Now, wires: &Wires) -> Vec<RelayStep> {
        let mut steps = Vec::new();
        let wants_input = self.source.wants_input();
        if self.has_more
            || !self.mail.is_empty()
            || self.wake_ms <= now.mono_ms
            || self.transport.has_work(wants_input, wires)
        {
            steps.push(RelayStep::Thread);
        }
        let machine = self.machine.choices(now).into_iter();
        steps.extend(machine.map(RelayStep::Machine));
        if !self.main.is_empty() {
            steps.push(RelayStep::Main);
        }
        steps
    }

    /// Takes a step.
    pub(in crate::whole_cluster) fn act(
        &mut self,
        step: RelayStep,
        now: Now,
        now_ms: u64,
        wires: &mut Wires,
    ) {
        match step {
            RelayStep::Thread => self.turn(now.mono_ms, now_ms, wires),
            RelayStep::Machine(choice) => {
                self.machine.act(now, choice, &mut self.dice);
                for request in self.machine.to_relay.drain(..) {
                    match &request {
                        SourceRequest::Applied(_) => self.has_applied = true,
                        SourceRequest::Misfit { .. } => self.misfits += 1,
                        _ => {}
                    }
                    self.mail.push_back(ToRelay::Request(request));
                }
            }
            RelayStep::Main => self.main_event(now),
        }
    }

    fn main_event(&mut self, now: Now) {
        match self.main.pop_front() {
            Some(ToMain::Joined(contents)) => {
                self.machine.serve_relay(now, *contents);
                self.has_applied = true;
                self.mail.push_back(ToRelay::Served);
            }
            Some(ToMain::RowChanged(row)) => self.machine.show_relay(NAME, row),
            None => {}
        }
    }

    fn turn(&mut self, local_ms: u64, now_ms: u64, wires: &mut Wires) {
        for message in std::mem::take(&mut self.mail) {
            match message {
                ToRelay::Request(request) => self.source.request(local_ms, request),
                ToRelay::Served => self.is_served = true,
            }
        }
        self.source.handle(local_ms, Input::Tick);
        self.exchange(local_ms, now_ms, wires);
        self.carry_out(local_ms);
        let deadline_ms = self.source.poll_timeout(local_ms).unwrap_or(u64::MAX);
        self.wake_ms = deadline_ms.min(local_ms + WAIT_MAX_MS);
    }

    /// Passes events of the connection to the source's machine, and sends its output.
    fn exchange(&mut self, local_ms: u64, now_ms: u64, wires: &mut Wires) {
        self.transport.begin_round();
        self.has_more = true;
        for _ in 0..READS_MAX {
            self.order(now_ms, wires);
            let wants_input = self.source.wants_input();
            let Some(happened) = self.transport.step(now_ms, wants_input, wires) else {
                self.has_more = false;
                break;
            };
            let (relay, shown) = (self.number, &happened);
            self.trace
                .detail(|| format!("{now_ms} relay {relay} <- {shown:?}"));
            let bytes;
            let input = match happened {
                TransportEvent::Connected => Input::Connected,
                TransportEvent::Received(received) => {
                    bytes = received;
                    Input::Received(&bytes)
                }
                TransportEvent::Sent => Input::Sent,
                TransportEvent::Ended(end) => Input::Disconnected(end),
            };
            self.source.handle(local_ms, input);
        }
        self.order(now_ms, wires);
    }

    /// Executes the outputs of the session.
    fn order(&mut self, now_ms: u64, wires: &mut Wires) {
        while let Some(output) = self.source.poll_output() {
            self.transport.carry_out(now_ms, output, wires);
        }
    }

    /// Executes the events of the source's machine.
    fn carry_out(&mut self, local_ms: u64) {
        while let Some(event) = self.source.poll_event() {
            match event {
                RelayEvent::Contents(contents) => {
                    self.downloads += 1;
                    self.main.push_back(ToMain::Joined(contents));
                }
                RelayEvent::Database(event) => {
                    let is_download = matches!(event, ToDatabase::Installed(_));
                    self.downloads += u64::from(is_download);
                    let number = self.number;
                    self.trace
                        .detail(|| format!("{local_ms} database of relay {number} <- {event:?}"));
                    self.events.push(event);
                }
                RelayEvent::Row(row) => self.main.push_back(ToMain::RowChanged(row)),
                RelayEvent::Log(message) => {
                    let number = self.number;
                    self.trace.line(format_args!(
                        "{local_ms} relay {number}: {:?}: {message}",
                        message.level()
                    ));
                }
            }
        }
        if self.is_served {
            for event in self.events.drain(..) {
                self.machine.member(event);
            }
        }
    }
}
