//! The network between the members of a cluster: messages that are lost, doubled, reordered,
//! delayed and held back by partitions, and connections that each side learns about in its own
//! time.
//!
//! Invariant: a lost message takes its connection down, as a stream would. Both sides are told
//! late, and later told that it is up again. This module knows no messages. A run of the simulation
//! of clusters drives it.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::dice::Dice;

/// How the network treats messages in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    /// Lost messages, per thousand.
    pub(crate) loss: usize,
    /// Messages that arrive twice, per thousand.
    pub(crate) doubling: usize,
    /// Longest usual delay, ms.
    pub(crate) delay_ms: usize,
    /// Messages delayed by up to [`LATE_MS`], per thousand.
    pub(crate) late: usize,
    /// Whether a message may overtake earlier ones.
    pub(crate) is_reordering: bool,
    /// Whether a partition goes unnoticed for some time: messages in the other direction still
    /// arrive.
    pub(crate) is_silent: bool,
}

/// The longest delay of a late message, ms.
const LATE_MS: usize = 3000;

/// The longest time until a side learns of a broken connection, ms.
const NOTICE_MS: usize = 1500;

/// The longest time until one side finds that the other refuses connections, ms; never before it
/// has noticed the broken one.
const REFUSAL_MS: usize = 50;

/// The longest time until a connection is re-established, ms.
const REDIAL_MS: usize = 800;

/// An arrival at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrival<M> {
    /// A message from this host.
    Message(usize, M),
    /// The connection to this host is up.
    Up(usize),
    /// The connection to this host is down.
    Down(usize),
    /// This host runs no process, so it refuses connections.
    Refused(usize),
}

#[derive(Debug, Default)]
struct Link {
    /// Whether the network considers it connected.
    is_up: bool,
    /// When it is re-established.
    redial_ms: u64,
    /// Number of the connection; messages of earlier connections do not arrive.
    epoch: u64,
}

#[derive(Debug)]
struct Parcel<M> {
    to: usize,
    from: usize,
    epoch: Option<u64>,
    arrival: Arrival<M>,
}

/// The network; `M` is a message.
#[derive(Debug)]
pub(crate) struct MessageNetwork<M> {
    dice: Dice,
    /// Used only for refusals, so that they change nothing else in a run.
    refusals: Dice,
    weather: Weather,
    /// By the lower and the higher number of the two hosts.
    links: BTreeMap<(usize, usize), Link>,
    /// Directions in which nothing arrives.
    cut: BTreeSet<(usize, usize)>,
    hosts_up: BTreeSet<usize>,
    /// By time of arrival and number.
    parcels: BTreeMap<(u64, u64), Parcel<M>>,
    /// The last arrival in each direction, where order is kept.
    last_ms: BTreeMap<(usize, usize), u64>,
    count: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl<M: Clone> MessageNetwork<M> {
    pub(crate) fn new(seed: u64) -> MessageNetwork<M> {
        MessageNetwork {
            dice: Dice::new(seed),
            refusals: Dice::new(seed ^ 0x5ef5),
            weather: Weather::default(),
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            hosts_up: BTreeSet::new(),
            parcels: BTreeMap::new(),
            last_ms: BTreeMap::new(),
            count: 0,
            lost: 0,
            doubled: 0,
        }
    }

    pub(crate) fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// A host has started.
    pub(crate) fn start(&mut self, now_ms: u64, host: usize) {
        for other in self.hosts_up.clone() {
            let redial_ms = now_ms + self.dice.below(REDIAL_MS) as u64;
            let link = self.links.entry(pair(host, other)).or_default();
            link.redial_ms = redial_ms;
        }
        self.hosts_up.insert(host);
    }

    /// A host has ended; the others learn of it late.
    pub(crate) fn stop(&mut self, now_ms: u64, host: usize) {
        self.hosts_up.remove(&host);
        for other in self.hosts_up.clone() {
            self.reset(now_ms, host, other);
            // A host without power refuses nothing.
            if !self.refusals.chance(25) {
                let late_ms = self.refusals.below(REFUSAL_MS) as u64;
                self.notify(now_ms + late_ms, other, Arrival::Refused(host));
            }
        }
        self.parcels.retain(|_, parcel| parcel.to != host);
    }

    /// Blocks one direction.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Whether a direction is blocked.
    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cut.contains(&(from, to))
    }

    /// Opens one direction. Messages were lost, so the connection is re-established.
    pub(crate) fn mend(&mut self, now_ms: u64, from: usize, to: usize) {
        if self.cut.remove(&(from, to)) {
            self.reset(now_ms, from, to);
        }
    }

    /// Opens all directions.
    pub(crate) fn mend_all(&mut self, now_ms: u64) {
        for (from, to) in self.cut.clone() {
            self.mend(now_ms, from, to);
        }
        for link in self.links.values_mut() {
            link.redial_ms = link.redial_ms.min(now_ms + REDIAL_MS as u64);
        }
    }

    /// Breaks the connection between two hosts.
    pub(crate) fn reset(&mut self, now_ms: u64, a: usize, b: usize) {
        let redial_ms = now_ms + self.dice.below(REDIAL_MS) as u64;
        let link = self.links.entry(pair(a, b)).or_default();
        let was_up = std::mem::replace(&mut link.is_up, false);
        link.redial_ms = redial_ms;
        if !was_up {
            return;
        }
        link.epoch += 1;
        for (host, other) in [(a, b), (b, a)] {
            let late_ms = self.dice.below(NOTICE_MS) as u64;
            self.notify(now_ms + late_ms, host, Arrival::Down(other));
        }
    }

    fn notify(&mut self, at_ms: u64, to: usize, arrival: Arrival<M>) {
        let from = match arrival {
            Arrival::Message(from, _)
            | Arrival::Up(from)
            | Arrival::Down(from)
            | Arrival::Refused(from) => from,
        };
        self.put(at_ms, to, from, None, arrival, true);
    }

    fn put(
        &mut self,
        at_ms: u64,
        to: usize,
        from: usize,
        epoch: Option<u64>,
        arrival: Arrival<M>,
        is_ordered: bool,
    ) {
        let mut at_ms = at_ms;
        if is_ordered {
            let last = self.last_ms.entry((from, to)).or_default();
            at_ms = at_ms.max(*last);
            *last = at_ms;
        }
        self.count += 1;
        let parcel = Parcel {
            to,
            from,
            epoch,
            arrival,
        };
        self.parcels.insert((at_ms, self.count), parcel);
    }

    /// Sends a message, which is dropped without a connection.
    pub(crate) fn send(&mut self, now_ms: u64, from: usize, to: usize, message: &M) {
        let Some(link) = self.links.get(&pair(from, to)).filter(|link| link.is_up) else {
            return;
        };
        let epoch = link.epoch;
        let weather = self.weather;
        if self.dice.below(1000) < weather.loss {
            self.lost += 1;
            self.reset(now_ms, from, to);
            return;
        }
        let copies = 1 + usize::from(self.dice.below(1000) < weather.doubling);
        self.doubled += copies as u64 - 1;
        for _ in 0..copies {
            let is_late = self.dice.below(1000) < weather.late;
            let span = if is_late { LATE_MS } else { weather.delay_ms };
            let at_ms = now_ms + self.dice.below(span + 1) as u64;
            let arrival = Arrival::Message(from, message.clone());
            self.put(
                at_ms,
                to,
                from,
                Some(epoch),
                arrival,
                !weather.is_reordering,
            );
        }
    }

    /// The time of the next event.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let parcel = self.parcels.keys().next().map(|(at_ms, _)| *at_ms);
        let dials = self.links.iter().filter(|(hosts, link)| {
            !link.is_up && self.can_connect(**hosts) && link.redial_ms < u64::MAX
        });
        let dial = dials.map(|(_, link)| link.redial_ms).min();
        parcel.into_iter().chain(dial).min()
    }

    fn can_connect(&self, (a, b): (usize, usize)) -> bool {
        let is_open = !self.is_cut(a, b) && !self.is_cut(b, a);
        is_open && self.hosts_up.contains(&a) && self.hosts_up.contains(&b)
    }

    /// The next arrival that is due.
    pub(crate) fn take(&mut self, now_ms: u64) -> Option<(usize, Arrival<M>)> {
        let due = |(hosts, link): (&(usize, usize), &Link)| {
            (!link.is_up && link.redial_ms <= now_ms).then_some(*hosts)
        };
        let dialled: Vec<_> = self.links.iter().filter_map(due).collect();
        for (a, b) in dialled {
            if self.can_connect((a, b)) {
                if let Some(link) = self.links.get_mut(&(a, b)) {
                    link.is_up = true;
                }
                for (host, other) in [(a, b), (b, a)] {
                    let late_ms = self.dice.below(20) as u64;
                    self.notify(now_ms + late_ms, host, Arrival::Up(other));
                }
            }
        }
        loop {
            let first = self.parcels.first_entry()?;
            if first.key().0 > now_ms {
                return None;
            }
            let Parcel {
                to,
                from,
                epoch,
                arrival,
            } = first.remove();
            let Some(epoch) = epoch else {
                let is_refusal = matches!(arrival, Arrival::Refused(_));
                if is_refusal && (self.hosts_up.contains(&from) || self.is_cut(from, to)) {
                    continue;
                }
                return Some((to, arrival));
            };
            let link = self.links.get(&pair(from, to));
            let is_current = link.is_some_and(|link| link.is_up && link.epoch == epoch);
            if self.is_cut(from, to) {
                // The stream stalls, and ends sooner or later.
                self.lost += 1;
                if !self.weather.is_silent || self.dice.chance(4) {
                    self.reset(now_ms, from, to);
                }
            } else if is_current || self.weather.is_reordering {
                return Some((to, arrival));
            }
        }
    }

    /// Number of messages in flight.
    pub(crate) fn count(&self) -> usize {
        self.parcels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_message_takes_its_connection_down_and_up_again() {
        let mut network = MessageNetwork::new(5);
        network.start(0, 0);
        network.start(0, 1);
        let mut seen = Vec::new();
        let mut now_ms = 0;
        let mut step =
            |network: &mut MessageNetwork<u8>, seen: &mut Vec<(usize, Arrival<u8>)>, until| {
                while let Some(at_ms) = network.next_ms().filter(|at| *at <= until) {
                    now_ms = at_ms;
                    while let Some(arrival) = network.take(now_ms) {
                        seen.push(arrival);
                    }
                }
                now_ms = until;
            };
        step(&mut network, &mut seen, 5000);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.contains(&(0, Arrival::Up(1))) && seen.contains(&(1, Arrival::Up(0))));
        seen.clear();
        network.send(5000, 0, 1, &7);
        step(&mut network, &mut seen, 6000);
        assert_eq!(seen, [(1, Arrival::Message(0, 7))]);
        seen.clear();
        network.cut(0, 1);
        network.send(6000, 0, 1, &8);
        step(&mut network, &mut seen, 9000);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.contains(&(0, Arrival::Down(1))) && seen.contains(&(1, Arrival::Down(0))));
        seen.clear();
        network.mend_all(9000);
        step(&mut network, &mut seen, 12_000);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.contains(&(0, Arrival::Up(1))) && seen.contains(&(1, Arrival::Up(0))));
    }
}
