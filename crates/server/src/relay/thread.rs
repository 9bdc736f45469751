//! The thread of one relay (`relay:NAME`): a loop over the connection to its source, its queue and
//! its deadlines. [`RelaySource`] decides what happens.
//!
//! Invariant: the source's changes reach the database in the order in which they arrive. The thread
//! never waits for the database. It executes events inline if the database's mailbox is free,
//! within the budget of an inline execution. While the database falls behind, the thread stops
//! reading from the source.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use corvid_data::Uuid;
use corvid_driver::transport::{Transport, TransportEvent};
use corvid_net::clock;
use corvid_net::errno;
use corvid_net::logging::{self, Module};
use corvid_net::random::Random;
use corvid_net::stream::Resolve;
use corvid_net::target::Target;
use corvid_net::tls::Credentials;
use corvid_net::waker::{self, Sleeper};
use corvid_reactor::poll_interval::PollInterval;
use corvid_service::message::{Control, DatabaseId, Event, ToDatabase};
use corvid_service::relay::{RelayEvent, RelayOptions, RelaySource};
use corvid_session::{Input, Output, once};

use super::handle::{RelayHandle, ToRelay};
use super::log_lines;
use super::served::PreparedRelay;
use super::sources::ReachedSource;
use crate::config::relay::SourceSettings;
use crate::coverage;
use crate::database::handle::DatabaseHandle;
use crate::database::history::Histories;
use crate::database::open::RandomUuids;
use crate::liveness::Liveness;
use crate::main_handle::{MainHandle, MainMessage};
use crate::metrics::relay::RelayStage;

/// The maximum number of reads in one turn, so that the database's requests get their turn.
const READS_MAX: usize = 64;

/// The maximum wait, ms: the thread wakes this often so that its liveness stays current.
const WAIT_MAX_MS: u64 = 5000;

/// The state of the thread.
pub(super) struct RelayThread {
    id: DatabaseId,
    name: String,
    machine: RelaySource,
    transport: Transport,
    sleeper: Sleeper,
    inbox: RelayHandle,
    /// The messages of the current turn; kept to reuse its capacity.
    mail: Vec<ToRelay>,
    /// Events for the database: those of this turn, or, until the database is served, all events
    /// since the initial contents.
    events: Vec<ToDatabase>,
    /// The database, once it is served.
    database: Option<DatabaseHandle>,
    main: MainHandle,
    liveness: Liveness,
    credentials: Arc<Credentials>,
    dscp: u8,
    /// Where readings of history find the source.
    histories: Arc<Histories>,
    /// The remote that they find, and the id of its server.
    shown: Option<(String, Option<Uuid>)>,
    /// The connection may have more input.
    has_more: bool,
    is_ended: bool,
}

impl RelayThread {
    /// The thread's state, and its queue.
    ///
    /// # Errors
    /// No descriptor is left, or the system has no random source.
    pub(super) fn new(prepared: PreparedRelay) -> std::io::Result<(RelayThread, RelayHandle)> {
        let (waker, sleeper) = waker::pair()?;
        let inbox = RelayHandle::new(waker);
        let machine = RelaySource::new(RelayOptions {
            database: prepared.name.clone(),
            seed: u64::from_ne_bytes(Random::new()?.bytes()?),
            hash_seed: prepared.hash_seed,
            uuids: Box::new(RandomUuids::new()?),
        });
        let mut transport = Transport::new(Resolve::Later);
        transport.set_credentials(Some(prepared.credentials.clone()));
        prepared.histories.relays().set(&prepared.name, None);
        let mut thread = RelayThread {
            id: prepared.id,
            name: prepared.name,
            machine,
            transport,
            sleeper,
            inbox: inbox.clone(),
            mail: Vec::new(),
            events: Vec::new(),
            database: None,
            main: prepared.main,
            liveness: prepared.liveness,
            credentials: prepared.credentials,
            dscp: prepared.source.options.dscp,
            histories: prepared.histories,
            shown: None,
            has_more: false,
            is_ended: false,
        };
        thread.set_source(&prepared.source);
        Ok((thread, inbox))
    }

    /// Runs until the main thread ends the relay.
    pub(super) fn run(mut self) {
        let mut interval = PollInterval::new(&format!("relay_{}", self.name));
        while !self.is_ended {
            let now_ms = clock::mono_ms();
            interval.begin(now_ms);
            self.liveness.busy(now_ms);
            self.turn(now_ms);
            self.liveness.idle();
            interval.end();
            if let Err(error) = self.wait() {
                let reason = errno::text(&error);
                logging::err(Module::PollLoop, format_args!("poll: {reason}"));
                break;
            }
        }
        self.end();
    }

    fn turn(&mut self, now_ms: u64) {
        let mut mail = std::mem::take(&mut self.mail);
        self.inbox.take(&mut mail);
        for message in mail.drain(..) {
            self.deliver(now_ms, message);
        }
        self.mail = mail;
        let shows_messages = logging::is_shown(Module::Jsonrpc, logging::Level::Debug);
        self.machine.show_messages(shows_messages);
        self.machine.handle(now_ms, Input::Tick);
        self.exchange();
        self.carry_out();
        self.publish(now_ms);
        self.show_source();
    }

    fn deliver(&mut self, now_ms: u64, message: ToRelay) {
        match message {
            ToRelay::Request(request) => self.machine.request(now_ms, request),
            ToRelay::Served(database) => self.database = Some(*database),
            ToRelay::SetSource(source) => self.set_source(&source),
            ToRelay::End => self.is_ended = true,
        }
    }

    fn set_source(&mut self, source: &SourceSettings) {
        let options = &source.options;
        self.dscp = options.dscp;
        self.transport.set_dscp(options.dscp);
        self.machine.set_probe_interval(source.probe_interval_ms());
        self.machine.set_backoff(options.max_backoff_ms);
        self.machine.set_remote(clock::mono_ms(), &source.remotes);
    }

    /// Passes the connection's events to the state machine, and sends its output.
    fn exchange(&mut self) {
        self.transport.begin_round();
        self.has_more = true;
        for _ in 0..READS_MAX {
            self.order();
            let wants_input = self.machine.wants_input();
            let Some(happened) = self.transport.step(wants_input) else {
                self.has_more = false;
                break;
            };
            let input = match happened {
                TransportEvent::Listening => Input::Listening,
                TransportEvent::Connected => {
                    coverage::RECONNECT_CONNECTED.bump();
                    Input::Connected
                }
                TransportEvent::Received(count) => Input::Received(self.transport.bytes(count)),
                TransportEvent::Sent => Input::Sent,
                TransportEvent::Ended(end) => Input::Disconnected(end),
            };
            self.machine.handle(clock::mono_ms(), input);
        }
        self.order();
    }

    /// Carries out the session's orders.
    fn order(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            if matches!(output, Output::Connect { .. }) {
                coverage::RECONNECT_ATTEMPT.bump();
            }
            self.transport.carry_out(output);
        }
    }

    /// Passes on the state machine's events.
    fn carry_out(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                RelayEvent::Contents(contents) => {
                    self.main.report(MainMessage::Joined(self.id, contents));
                }
                RelayEvent::Database(event) => self.events.push(event),
                RelayEvent::Row(row) => {
                    self.main.report(MainMessage::RelayRowChanged(self.id, row));
                }
                RelayEvent::Log(message) => log_lines::log(&message),
            }
        }
        if let Some(database) = &self.database
            && !self.events.is_empty()
        {
            database.send_or_execute(&mut self.events);
        }
    }

    /// Shows readings of history the source, if it has changed.
    fn show_source(&mut self) {
        let session = self.machine.session();
        let is_reachable = self.machine.is_reachable();
        let reached = is_reachable.then(|| (session.remote(), session.server_id()));
        let shown = self.shown.as_ref();
        if reached == shown.map(|(remote, id)| (remote.as_str(), *id)) {
            return;
        }
        let source = reached.map(|(remote, id)| {
            let is_active = matches!(Target::parse(remote), Ok(Target::Active(_)));
            ReachedSource {
                remote: is_active.then(|| remote.to_owned()),
                dscp: self.dscp,
                credentials: self.credentials.clone(),
                reads_history: id.is_some_and(once::reads_history),
            }
        });
        self.histories.relays().set(&self.name, source);
        self.shown = reached.map(|(remote, id)| (remote.to_owned(), id));
    }

    fn publish(&self, now_ms: u64) {
        let (machine, figures) = (&self.machine, self.inbox.figures());
        let counts = machine.counts();
        let stage = match counts.changes {
            _ if machine.is_reachable() => RelayStage::Connected,
            0 => RelayStage::Empty,
            _ => RelayStage::Lost,
        };
        figures.set_stage(now_ms, stage);
        let session = machine.session().metrics();
        for (figure, value) in [
            (&figures.waiting, counts.waiting),
            (&figures.sent, counts.sent),
            (&figures.changes, counts.changes),
            (&figures.unapplied_bytes, counts.unapplied_bytes),
            (&figures.received_bytes, session.bytes_received),
            (&figures.connects, session.connects),
        ] {
            figure.store(value, Ordering::Relaxed);
        }
    }

    /// Waits for the connection, the queue or the next deadline.
    fn wait(&mut self) -> std::io::Result<()> {
        let wants_input = self.machine.wants_input();
        let interest = self.transport.interest(wants_input);
        let is_busy = interest.is_due || self.has_more || self.is_ended;
        // The database may have queued requests during this turn. `sleep` reports them; the thread
        // must not wait then.
        if is_busy || !self.inbox.sleep() {
            return Ok(());
        }
        let now = clock::Now::read();
        let deadline_ms = self.machine.poll_timeout(now.mono_ms);
        let deadline_ms = deadline_ms
            .unwrap_or(u64::MAX)
            .min(now.mono_ms + WAIT_MAX_MS);
        let timeout = now.until(deadline_ms);
        let fd = interest.fd.map(|fd| fd.as_raw_fd());
        let wanted = (interest.readable, interest.writable);
        self.sleeper.wait(fd, wanted, Some(timeout))
    }

    /// Closes the connection, and lets the database end. Requests in flight get their outcomes
    /// first.
    fn end(mut self) {
        self.histories.relays().remove(&self.name);
        self.machine.set_remote(clock::mono_ms(), "");
        self.carry_out();
        drop(self.transport);
        match self.database {
            Some(database) => {
                let mut events = vec![ToDatabase::Control(Control::Remove)];
                database.send_or_execute(&mut events);
            }
            None => self.main.post([Event::Removed(self.id)]),
        }
    }
}
