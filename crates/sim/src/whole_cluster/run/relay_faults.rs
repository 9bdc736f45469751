//! The faults of relays, and how they occur.

use super::ClusterRun;
use crate::whole_cluster::location::Location;

impl ClusterRun {
    /// Causes one of the faults of relays that this run can have, or an action of their clients.
    pub(super) fn do_something_to_relays(&mut self) -> Result<(), String> {
        let relay = self.dice.below(self.relays.hosts.len());
        let faults = self.faults.hosts;
        match self.dice.below(20) {
            0..3 if faults.has_partitions => self.cut_relay(relay),
            3..5 if faults.has_partitions => {
                self.trace.line(format_args!("all relays are reachable"));
                self.relays.wires.mend_all();
            }
            5..8 => self.break_connection(relay),
            8..10 if faults.has_pauses => {
                let for_ms = *self.dice.pick(&[50, 500, 1500, 6000, 20_000]);
                self.trace
                    .line(format_args!("relay {relay} pauses for {for_ms} ms"));
                self.relays.tally.pauses += 1;
                self.relays.hosts[relay].paused_ms = self.now_ms + for_ms;
            }
            10..12 if faults.has_crashes => self.kill_relay(relay),
            _ if self.clients.is_empty() => self.break_connection(relay),
            _ => {
                let client = self.dice.below(self.clients.len());
                self.lock(client);
            }
        }
        Ok(())
    }

    /// A relay is killed, and starts again later.
    pub(super) fn kill_relay(&mut self, relay: usize) {
        if self.relays.hosts[relay].process.is_some() {
            self.relays.tally.kills += 1;
            let is_noticed = self.dice.chance(60);
            let down_ms = crate::world::host_faults::draw_down_ms(&mut self.dice);
            self.stop_relay(relay, is_noticed);
            self.relays.hosts[relay].start_ms = Some(self.now_ms + down_ms);
        }
    }

    /// The connection of a relay to its source breaks.
    pub(super) fn break_connection(&mut self, relay: usize) {
        if let Some(source) = self.source_of(relay) {
            self.trace.line(format_args!(
                "{} the connection of relay {relay} to {source} breaks",
                self.now_ms
            ));
            let (caller, listener) = (Location::caller(relay), source.listener());
            self.relays.wires.reset(self.now_ms, caller, listener);
        }
    }

    /// Nothing arrives between a relay and some servers, in one direction or both.
    fn cut_relay(&mut self, relay: usize) {
        self.trace.line(format_args!("relay {relay} is cut off"));
        let location = Location::Relay(relay);
        let is_partial = self.dice.chance(40);
        let directions = *self.dice.pick(&[0, 0, 1, 2]);
        for other in self.locations() {
            if other == location || is_partial && self.dice.chance(50) {
                continue;
            }
            for own in location.numbers() {
                for theirs in other.numbers() {
                    if directions != 1 {
                        self.relays.wires.cut(own, theirs);
                    }
                    if directions != 2 {
                        self.relays.wires.cut(theirs, own);
                    }
                }
            }
        }
    }
}
