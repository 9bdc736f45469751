//! The judgement of requests and replies of clients, as far as relays and locks are concerned.

use super::ClusterRun;
use crate::server::client::LOCKS;
use crate::server::workload::Txn;
use crate::whole_cluster::location::Location;
use crate::whole_cluster::tenures::{Asserting, LockSource};

impl ClusterRun {
    /// Lets some transactions assert a lock in runs with relays, mostly those of clients that own
    /// it.
    pub(super) fn draw_assertion(&mut self, client: usize, txn: &mut Txn) {
        if !self.has_relays() {
            return;
        }
        let lock = *self.dice.pick(&LOCKS);
        let owns = self.clients[client].tenure(lock).1;
        if self.dice.chance(if owns { 70 } else { 5 }) {
            txn.lock = Some(lock);
        }
    }

    /// Notes that a client sends a transaction.
    pub(super) fn judge_sent(&mut self, client: usize, location: Location, txn: &Txn) {
        if let Location::Relay(relay) = location {
            let process = self.relays.hosts[relay].process.as_ref();
            let since_ms = process.map_or(0, |process| process.shown.1);
            let doubts = &mut self.relays.doubts;
            doubts.sent(txn.number, self.now_ms, since_ms);
        }
        if let Some(lock) = txn.lock {
            let asserting = Asserting {
                lock,
                source: self.lock_source(location),
                tenure: self.clients[client].tenure(lock),
            };
            self.relays.tenures.sent(txn.number, asserting);
        }
    }

    /// Returns the server with the locks of another server's clients, if a path of connections
    /// leads to it.
    fn lock_source(&self, location: Location) -> Option<LockSource> {
        let mut location = location;
        loop {
            match location {
                Location::Member(number) => return Some((number, self.hosts[number].lives)),
                Location::Standalone => return Some((0, self.life(location))),
                Location::Relay(number) => location = self.source_of(number)?,
            }
        }
    }

    /// Returns the source to which a relay is connected.
    pub(super) fn source_of(&self, relay: usize) -> Option<Location> {
        let process = self.relays.hosts[relay].process.as_ref()?;
        let connection = process.connection()?;
        let peer = self
            .relays
            .wires
            .peer(Location::caller(relay), connection)?;
        self.locations()
            .find(|location| location.listener() == peer)
    }

    /// Whether a client has lost the lock that its transaction asserts, or never had it.
    fn has_lost_lock(&self, client: usize, number: i64) -> bool {
        let asserting = self.relays.tenures.asserting(number);
        asserting.is_some_and(|asserting| {
            let tenure = self.clients[client].tenure(asserting.lock);
            !tenure.1 || tenure != asserting.tenure
        })
    }

    /// Judges a message that a client has received. `went_back`: the client's replica has become
    /// older.
    pub(super) fn judge_news(
        &mut self,
        client: usize,
        location: Location,
        went_back: Option<(i64, i64)>,
    ) -> Result<(), String> {
        for number in std::mem::take(&mut self.witness.newly_canceled) {
            self.relays.tally.canceled += 1;
            match location {
                Location::Member(_) | Location::Standalone => {
                    self.witness.ended_waiting(number)?;
                }
                // A conversion has ended the transaction's wait, at the relay or at its source.
                Location::Relay(_) if self.faults.has_conversions && self.witness.waits(number) => {
                }
                // The transaction was waiting at the source when its lock was released.
                Location::Relay(_) if self.has_lost_lock(client, number) => {}
                Location::Relay(relay) => self.relays.doubts.canceled(number, relay)?,
            }
        }
        for (number, seq) in std::mem::take(&mut self.witness.newly_acknowledged) {
            if matches!(location, Location::Relay(_)) {
                self.relays.tally.acknowledged += 1;
            }
            let asserting = self.relays.tenures.asserting(number);
            if let Some(lock) = asserting.map(|asserting| asserting.lock) {
                let source = self.lock_source(location);
                let tenure = self.clients[client].tenure(lock);
                let tenures = &mut self.relays.tenures;
                tenures.acknowledged(number, seq, source, tenure)?;
            }
        }
        let Some((before, after)) = went_back else {
            return Ok(());
        };
        let relay = match location {
            Location::Member(_) | Location::Standalone => None,
            Location::Relay(relay) => self.relays.hosts[relay].process.as_ref(),
        };
        if relay.is_some_and(|process| process.went_back > 0) {
            return Ok(());
        }
        Err(format!(
            "its contents go back from transaction {before} to {after}"
        ))
    }
}
