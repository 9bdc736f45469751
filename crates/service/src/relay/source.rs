//! The machine of a relay: the session with its source, and what the relay's database learns from
//! it. See [`crate::relay`].
//!
//! ```text
//! session: contents  ---> Contents once, then Installed        updates ---> Changes
//!          monitored ---> Reachable                            not any more ---> not Reachable
//!          reply     ---> Outcome, after the updates before it
//! database: Forward ---> request   Applied ---> room for more input   Misfit ---> refetch contents
//! ```
//!
//! Invariant: changes and contents are numbered without gaps in the order in which the source sent
//! them, and each is passed on once. The machine keeps no rows and knows no client of the relay.

use std::collections::VecDeque;

use corvid_consensus::database::ForwardOutcome;
use corvid_data::{HashSeed, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index};
use corvid_rpc::log_event::End;
use corvid_session::{Client, Event, Input, Options, Output, Update};

use super::changes;
use super::outcomes::Outcomes;
use super::reachability::{Reachability, Source};
use super::source_locks::{News, SourceLocks};
use super::unapplied::Unapplied;
use super::{RelayEvent, server_row};
use crate::member::Contents;
use crate::message::{InstalledSnapshot, RELAY_TERM, SourceNews, SourceRequest, ToDatabase};
use crate::once::RecordedCommits;

/// Default probe interval of the source, on every kind of connection, ms.
const PROBE_MS: u64 = 5000;
/// The shortest probe interval, ms; a shorter setting acts as this one.
const PROBE_MIN_MS: u64 = 1000;
/// The shortest wait between attempts to connect, ms.
const BACKOFF_MIN_MS: u64 = 1000;
/// Changes per event. With more, the database would not execute the event inline.
const CHANGES_MAX: usize = 256;

/// The fixed options of a relay.
pub struct RelayOptions {
    /// Name of the database.
    pub database: String,
    /// Seed of the random choice of remotes and of random waits. Give each relay its own.
    pub seed: u64,
    /// Seed of the hashes in the database.
    pub hash_seed: HashSeed,
    /// Source of ids for changes of a source that sends none, and for versions of rows.
    pub uuids: Box<dyn UuidSource + Send>,
}

/// The figures of a relay, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayCounts {
    /// Requests that have not been sent.
    pub waiting: u64,
    /// Requests sent to the source and not answered yet.
    pub sent: u64,
    /// Changes and whole contents received from the source.
    pub changes: u64,
    /// Bytes of those that the database has not applied.
    pub unapplied_bytes: u64,
}

/// Contents that have not been passed on yet.
struct Arriving {
    database: Database,
    /// The last transaction that the contents include.
    eid: Eid,
    bytes: usize,
}

/// The machine of a relay; see [`crate::relay`] for how a thread drives it.
pub struct RelaySource {
    client: Client,
    hash_seed: HashSeed,
    uuids: Box<dyn UuidSource + Send>,
    /// The number of the last change or contents.
    last: Index,
    /// The contents that make the database have been passed on.
    has_contents: bool,
    /// Changes cannot be passed on: the database has no contents that they could continue.
    awaits_contents: bool,
    /// New contents, and the changes that arrived together with them.
    arriving: Option<Arriving>,
    /// Changes and contents so far include everything that the source did before its last message.
    is_current: bool,
    /// The database has been told that it may forward requests.
    is_followed: bool,
    source: Source,
    /// The last change or contents that had arrived when `source` took its present value.
    caught_up_from: Index,
    outcomes: Outcomes,
    locks: SourceLocks,
    reachability: Reachability,
    unapplied: Unapplied,
    events: VecDeque<RelayEvent>,
}

/// Settings.
impl RelaySource {
    /// A relay without remotes.
    #[must_use]
    pub fn new(options: RelayOptions) -> RelaySource {
        let RelayOptions {
            database,
            seed,
            hash_seed,
            uuids,
        } = options;
        let mut client = Client::new(Options {
            is_strict: true,
            asks_server_id: true,
            stays_at_lost_relays: true,
            ..Options::new(&database, seed)
        });
        client.set_leader_only(0, false);
        client.set_probe_interval(Some(PROBE_MS));
        RelaySource {
            client,
            hash_seed,
            uuids,
            last: Index(0),
            has_contents: false,
            awaits_contents: true,
            arriving: None,
            is_current: false,
            is_followed: false,
            source: Source::Lost,
            caught_up_from: Index(0),
            outcomes: Outcomes::default(),
            locks: SourceLocks::default(),
            reachability: Reachability::default(),
            unapplied: Unapplied::default(),
            events: VecDeque::new(),
        }
    }

    /// Sets the sources, as in `tcp:10.0.0.1:6642,tcp:10.0.0.2:6642`. A connection to a source that
    /// is still listed is kept.
    pub fn set_remote(&mut self, now_ms: u64, remotes: &str) {
        self.client.set_remote(now_ms, remotes, true);
        self.advance(now_ms);
    }

    /// Sets the probe interval, ms; 0 disables probes.
    pub fn set_probe_interval(&mut self, interval_ms: u64) {
        let interval_ms = match interval_ms {
            0 => 0,
            _ => interval_ms.max(PROBE_MIN_MS),
        };
        self.client.set_probe_interval(Some(interval_ms));
    }

    /// Whether to log each message to and from the source from now on.
    pub fn show_messages(&mut self, shows_messages: bool) {
        self.client.show_messages(shows_messages);
    }

    /// Sets the longest wait between attempts to connect, ms.
    pub fn set_backoff(&mut self, max_ms: u64) {
        let max_ms = max_ms.max(BACKOFF_MIN_MS);
        self.client.set_backoff(BACKOFF_MIN_MS, max_ms);
    }
}

/// The state.
impl RelaySource {
    /// The session with the source, for reports.
    #[must_use]
    pub fn session(&self) -> &Client {
        &self.client
    }

    /// Whether the relay has its source's contents and can send requests to it.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.is_followed
    }

    /// The relay's figures.
    #[must_use]
    pub fn counts(&self) -> RelayCounts {
        RelayCounts {
            waiting: self.outcomes.waiting() as u64,
            sent: self.outcomes.sent() as u64,
            changes: self.last.0,
            unapplied_bytes: self.unapplied.bytes() as u64,
        }
    }

    /// Whether `_Server` shows the relay as connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.reachability.is_shown()
    }

    /// Whether the thread should read from the connection.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.client.wants_input() && self.unapplied.has_room()
    }
}

/// Inputs and outputs.
impl RelaySource {
    /// Handles an event of the connection, or the passage of time.
    pub fn handle(&mut self, now_ms: u64, input: Input<'_>) {
        // An output that has not been carried out yet may have abandoned this connection.
        let is_of_connection = matches!(input, Input::Received(_) | Input::Sent);
        if is_of_connection && !self.client.is_connected() {
            return;
        }
        // Before the session handles the end, which ends each request: the outcomes then know
        // whether the source closed the connection.
        if let Input::Disconnected(end) = &input {
            self.outcomes.connection_ends(*end != End::Local);
        }
        self.client.handle(now_ms, input);
        self.advance(now_ms);
    }

    /// Handles a request of the database.
    pub fn request(&mut self, now_ms: u64, request: SourceRequest) {
        match request {
            SourceRequest::Forward(forward) => self.outcomes.push(forward),
            SourceRequest::Applied(through) => self.unapplied.applied(through),
            SourceRequest::Misfit { details } => {
                // The database drops the changes after the one that does not fit: they count as
                // applied so that reading continues.
                self.unapplied.applied(self.last);
                self.refuse(now_ms, &details);
            }
            SourceRequest::Withdraw { id, why } => {
                let outcome = self.outcomes.withdraw(&mut self.client, id, why, self.last);
                if let Some(outcome) = outcome {
                    self.decided(id, outcome);
                }
            }
            SourceRequest::Lock { name, claim } => match self.locks.claim(&name, claim) {
                Some(news) => self.tell_of_lock(news),
                None => self.outcomes.push_lock(name),
            },
        }
        self.advance(now_ms);
    }

    /// The next output for the connection.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.client.poll_output()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<RelayEvent> {
        self.events.pop_front()
    }

    /// When [`RelaySource::handle`] must be called next, monotonic ms, with [`Input::Tick`] if
    /// there is no other input. `None` if nothing is due before the next input.
    #[must_use]
    pub fn poll_timeout(&self, now_ms: u64) -> Option<u64> {
        let deadlines = [
            self.client.poll_timeout(now_ms),
            self.reachability.deadline_ms(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Handles the session's events, then sends what can be sent.
    fn advance(&mut self, now_ms: u64) {
        while let Some(event) = self.client.poll_event() {
            // Contents leave before anything that follows their updates, such as a reply.
            // Consecutive updates still join them.
            if !matches!(event, Event::Update(_)) {
                self.pass_contents();
            }
            match event {
                Event::Update(update) => self.update(now_ms, update),
                Event::Reply { id, outcome } if self.locks.is_request(id) => {
                    if let Some(news) = self.locks.replied(id, outcome) {
                        self.tell_of_lock(news);
                    }
                }
                Event::Reply { id, outcome } => {
                    let ended = self.outcomes.ended(
                        id,
                        outcome,
                        self.last,
                        self.is_current,
                        &mut self.client,
                    );
                    if let Some((id, outcome)) = ended {
                        self.decided(id, outcome);
                    }
                }
                Event::Log(message) => self.events.push_back(RelayEvent::Log(message)),
                Event::LockNotification { name, is_locked } => {
                    if let Some(news) = self.locks.notified(&name, is_locked) {
                        self.tell_of_lock(news);
                    }
                }
                Event::MonitorEnded => self.is_current = false,
                Event::Disconnected => {
                    self.is_current = false;
                    self.outcomes.drop_locks();
                    let lost = self.locks.disconnected();
                    lost.into_iter().for_each(|news| self.tell_of_lock(news));
                }
                Event::Connected | Event::Locked => {}
            }
        }
        self.pass_contents();
        // Judged after all events: a source that was lost and regained within them is not reported.
        let is_reachable = self.client.is_monitoring() && !self.awaits_contents;
        if self.is_followed != is_reachable {
            self.is_followed = is_reachable;
            self.tell(SourceNews::Reachable(is_reachable));
        }
        // Claims are queued after the requests that waited for a source, and `send` keeps that
        // order.
        if is_reachable {
            for lock in self.locks.connected() {
                self.outcomes.push_lock(lock);
            }
            let decided = self
                .outcomes
                .send(&mut self.client, &mut self.locks, self.last);
            for (id, outcome) in decided {
                self.decided(id, outcome);
            }
        }
        let source = if self.client.is_at_lost_relay() {
            Source::Orphaned
        } else if is_reachable {
            Source::Reachable
        } else {
            Source::Lost
        };
        if std::mem::replace(&mut self.source, source) != source {
            self.caught_up_from = self.last;
        }
        let has_caught_up = self.unapplied.has_applied(self.caught_up_from);
        let news = self.reachability.set(now_ms, source, has_caught_up);
        if let Some(is_connected) = news {
            let row = server_row(is_connected);
            self.events.push_back(RelayEvent::Row(row));
        }
    }

    fn tell_of_lock(&mut self, (name, number, news): News) {
        self.tell(SourceNews::Lock { name, number, news });
    }

    fn tell(&mut self, news: SourceNews) {
        let news = ToDatabase::Relay(news);
        self.events.push_back(RelayEvent::Database(news));
    }

    fn decided(&mut self, id: Eid, outcome: ForwardOutcome) {
        self.tell(SourceNews::Outcome { id, outcome });
    }

    /// Handles a change, or contents, from the source.
    fn update(&mut self, now_ms: u64, update: Update) {
        let is_reply = update.is_reply;
        if update.clear {
            self.contents(now_ms, update);
        } else if self.awaits_contents {
            // The update continues contents that could not be used. Changes are dropped, but the
            // reply to a monitor request must bring contents.
            if is_reply {
                self.refuse(now_ms, "contents are missing");
            }
        } else if self.arriving.is_some() {
            self.add_to_contents(now_ms, update);
        } else {
            self.change(update);
            // The source continued from the relay's last id: it sent the difference instead of
            // contents.
            if is_reply {
                self.contents_come(self.last);
            }
        }
    }

    fn change(&mut self, update: Update) {
        let has_rows = update.updates.tables.iter().any(|of| !of.rows.is_empty());
        if !has_rows {
            return;
        }
        let index = self.next_index();
        let eid = self.id_of(&update);
        self.unapplied.push(index, update.bytes);
        let change = changes::change(index, eid, update);
        if let Some(RelayEvent::Database(ToDatabase::Relay(SourceNews::Changes {
            through,
            changes,
        }))) = self.events.back_mut()
            && changes.len() < CHANGES_MAX
        {
            *through = index;
            changes.push(change);
            return;
        }
        self.tell(SourceNews::Changes {
            through: index,
            changes: vec![change],
        });
    }

    fn contents(&mut self, now_ms: u64, update: Update) {
        let (eid, bytes) = (self.id_of(&update), update.bytes);
        let database = match changes::contents(update, self.hash_seed, &mut *self.uuids) {
            Ok(database) => database,
            Err(error) => return self.refuse(now_ms, &error.to_string()),
        };
        self.awaits_contents = false;
        self.arriving = Some(Arriving {
            database,
            eid,
            bytes,
        });
    }

    /// Adds changes to contents that the session had held back: clients are not shown the state
    /// without them.
    fn add_to_contents(&mut self, now_ms: u64, update: Update) {
        let eid = self.id_of(&update);
        let Some(arriving) = &mut self.arriving else {
            return;
        };
        arriving.eid = eid;
        arriving.bytes += update.bytes;
        let added = changes::add(&mut arriving.database, update, &mut *self.uuids);
        if let Err(error) = added {
            self.arriving = None;
            self.refuse(now_ms, &error.to_string());
        }
    }

    /// Passes on the contents that have arrived.
    fn pass_contents(&mut self) {
        let Some(arriving) = self.arriving.take() else {
            return;
        };
        let Arriving {
            database,
            eid,
            bytes,
        } = arriving;
        let index = self.next_index();
        if !std::mem::replace(&mut self.has_contents, true) {
            let contents = Contents {
                database,
                applied: index,
                eid,
                recorded: RecordedCommits::default(),
            };
            self.events
                .push_back(RelayEvent::Contents(Box::new(contents)));
            self.contents_come(index);
            return;
        }
        self.unapplied.push(index, bytes);
        self.contents_come(index);
        let installed = ToDatabase::Installed(Box::new(InstalledSnapshot {
            database,
            index,
            term: RELAY_TERM,
            eid,
            recorded: RecordedCommits::default(),
        }));
        self.events.push_back(RelayEvent::Database(installed));
    }

    /// The contents are complete as of this change: releases the outcomes that waited for them.
    fn contents_come(&mut self, index: Index) {
        self.is_current = true;
        for (id, outcome) in self.outcomes.contents_come(index) {
            self.decided(id, outcome);
        }
    }

    /// Drops an update that cannot be used, and fetches all contents again over another connection.
    fn refuse(&mut self, now_ms: u64, details: &str) {
        self.awaits_contents = true;
        self.client.flag_inconsistency(now_ms, details);
    }

    fn next_index(&mut self) -> Index {
        self.last = Index(self.last.0 + 1);
        self.last
    }

    /// The transaction id of an update; a fresh one if the source sends none.
    fn id_of(&mut self, update: &Update) -> Eid {
        match update.last_id {
            Uuid::ZERO => Eid(self.uuids.fresh()),
            id => Eid(id),
        }
    }
}
