//! The connections between hosts: streams of bytes that are torn, delayed, held back in one or both
//! directions, refused and broken, like those of TCP. Nothing is lost while a connection is alive.
//!
//! Invariant: the bytes of one direction arrive in order, followed by its end. An end that a host
//! has closed receives nothing more. This module knows no messages. A run of the simulation of
//! whole clusters drives it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use corvid_consensus::ConnectionNumber;
use corvid_rpc::log_event::End;

use crate::world::dice::Dice;

/// How the network treats connections in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Longest usual delay, ms.
    pub(crate) delay_ms: usize,
    /// Pieces delayed by up to [`LATE_MS`], per thousand.
    pub(crate) late: usize,
    /// Writes that break their connection, per thousand.
    pub(crate) breaks: usize,
    /// Attempts that are refused, in percent.
    pub(crate) refusals: usize,
    /// Maximum bytes of the pieces into which messages are torn.
    pub(crate) piece_bytes: usize,
    /// Bytes that the systems of both ends buffer, for each direction.
    pub(crate) buffer_bytes: usize,
}

/// The longest delay of a late piece, ms.
const LATE_MS: usize = 3000;

/// The longest time until one side learns that the other is gone, ms.
const NOTICE_MS: usize = 1500;

/// One end of a connection.
pub(crate) type WireEnd = (WireNumber, usize);

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WireNumber(u64);

/// An event at a host.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Another host has connected; answer with [`Wires::accept`].
    Incoming(WireEnd),
    /// A connection that this host dialled is established.
    Connected(ConnectionNumber),
    /// Bytes have arrived.
    Bytes(WireEnd, Bytes),
    /// The other end has closed the connection, or it has broken.
    Ended(WireEnd, End),
    /// An attempt to connect has failed.
    Refused(ConnectionNumber, End),
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Stream {
    /// Written by the sender, but not accepted by its system yet.
    unsent: VecDeque<Bytes>,
    /// In flight, with the time of arrival; `None` is the end.
    under_way: VecDeque<(u64, Option<Bytes>)>,
    under_way_bytes: usize,
    last_ms: u64,
}

#[derive(Debug)]
struct Wire {
    hosts: [usize; 2],
    /// Each side's number of the connection; `None` before it is accepted and after it is closed.
    numbers: [Option<ConnectionNumber>; 2],
    is_closed: [bool; 2],
    /// The two directions, by sending end.
    streams: [Stream; 2],
    /// One end has lost power: nothing arrives any longer, and neither end is told.
    is_dead: bool,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Wires {
    dice: Dice,
    weather: Weather,
    listeners: BTreeMap<String, usize>,
    hosts_up: BTreeSet<usize>,
    wires: BTreeMap<WireNumber, Wire>,
    ends: BTreeMap<(usize, ConnectionNumber), WireEnd>,
    last_number: u64,
    /// Directions in which nothing arrives.
    cut: BTreeSet<(usize, usize)>,
    /// Attempts and refusals that are due later, by time and number.
    timed: BTreeMap<(u64, u64), (usize, Arrival)>,
    timed_count: u64,
    /// Unread arrivals at each host.
    arrived: BTreeMap<usize, VecDeque<Arrival>>,
    pub(crate) broken: u64,
}

impl Wires {
    pub(crate) fn new(seed: u64, weather: Weather) -> Wires {
        Wires {
            dice: Dice::new(seed),
            weather,
            listeners: BTreeMap::new(),
            hosts_up: BTreeSet::new(),
            wires: BTreeMap::new(),
            ends: BTreeMap::new(),
            last_number: 0,
            cut: BTreeSet::new(),
            timed: BTreeMap::new(),
            timed_count: 0,
            arrived: BTreeMap::new(),
            broken: 0,
        }
    }

    pub(crate) fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// A host starts to listen. If several listen at one address, the last one gets its
    /// connections.
    pub(crate) fn start(&mut self, host: usize, address: &str) {
        self.listeners.insert(address.to_owned(), host);
        self.join(host);
    }

    /// A host is up that does not listen.
    pub(crate) fn join(&mut self, host: usize) {
        self.hosts_up.insert(host);
        self.arrived.insert(host, VecDeque::new());
    }

    /// The process of a host has ended. `tells`: its system informs the other ends.
    pub(crate) fn stop(&mut self, now_ms: u64, host: usize, tells: bool) {
        self.hosts_up.remove(&host);
        self.arrived.remove(&host);
        let numbers: Vec<WireNumber> = self.wires.keys().copied().collect();
        for number in numbers {
            let Some(wire) = self.wires.get(&number) else {
                continue;
            };
            let sides: Vec<usize> = (0..2).filter(|side| wire.hosts[*side] == host).collect();
            for side in sides {
                if tells {
                    self.close_end(now_ms, (number, side));
                } else if let Some(wire) = self.wires.get_mut(&number) {
                    wire.is_dead = true;
                    self.forget((number, side));
                }
            }
        }
        let is_other = |(of, _): &mut (usize, Arrival)| *of != host;
        self.timed.retain(|_, event| is_other(event));
    }

    /// Blocks one direction.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Opens all directions: everything held back arrives.
    pub(crate) fn mend_all(&mut self) {
        self.cut.clear();
    }

    /// Makes late bytes arrive now: otherwise a leader could hear nothing for seconds after the
    /// last fault.
    pub(crate) fn hurry(&mut self, now_ms: u64) {
        let streams = self.wires.values_mut().flat_map(|wire| &mut wire.streams);
        for stream in streams {
            stream.last_ms = stream.last_ms.min(now_ms);
            for (at_ms, _) in &mut stream.under_way {
                *at_ms = now_ms.min(*at_ms);
            }
        }
    }

    fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cut.contains(&(from, to))
    }

    fn delay_ms(&mut self) -> u64 {
        let is_late = self.dice.below(1000) < self.weather.late;
        let span = if is_late {
            LATE_MS
        } else {
            self.weather.delay_ms
        };
        self.dice.below(span + 1) as u64
    }

    fn at(&mut self, at_ms: u64, host: usize, arrival: Arrival) {
        self.timed_count += 1;
        self.timed
            .insert((at_ms, self.timed_count), (host, arrival));
    }

    /// A host dials an address.
    pub(crate) fn dial(&mut self, now_ms: u64, host: usize, number: ConnectionNumber, to: &str) {
        let at_ms = now_ms + self.delay_ms();
        let listener = self.listeners.get(to).copied();
        let Some(peer) = listener.filter(|peer| self.hosts_up.contains(peer)) else {
            let refused = Arrival::Refused(number, End::Failed("Connection refused".to_owned()));
            return self.at(at_ms, host, refused);
        };
        if self.is_cut(host, peer) || self.is_cut(peer, host) {
            // The attempt hangs until the dialling side gives up.
            return;
        }
        if self.dice.chance(self.weather.refusals) {
            let refused = Arrival::Refused(number, End::Failed("Connection refused".to_owned()));
            return self.at(at_ms, host, refused);
        }
        self.last_number += 1;
        let wire = WireNumber(self.last_number);
        self.wires.insert(
            wire,
            Wire {
                hosts: [host, peer],
                numbers: [Some(number), None],
                is_closed: [false; 2],
                streams: [Stream::default(), Stream::default()],
                is_dead: false,
            },
        );
        self.ends.insert((host, number), (wire, 0));
        self.at(at_ms, peer, Arrival::Incoming((wire, 1)));
        self.at(at_ms, host, Arrival::Connected(number));
    }

    /// The accepting side has given a dialled connection its number. Returns false if the
    /// connection is already gone.
    pub(crate) fn accept(&mut self, end: WireEnd, number: ConnectionNumber) -> bool {
        let Some(wire) = self.wires.get_mut(&end.0) else {
            return false;
        };
        wire.numbers[end.1] = Some(number);
        self.ends.insert((wire.hosts[end.1], number), end);
        true
    }

    /// A host's number of a connection that it has not closed.
    pub(crate) fn number(&self, end: WireEnd) -> Option<ConnectionNumber> {
        self.wires.get(&end.0)?.numbers[end.1]
    }

    /// A host writes to a connection.
    pub(crate) fn write(&mut self, host: usize, number: ConnectionNumber, bytes: Bytes) {
        if let Some((wire, side)) = self.ends.get(&(host, number)).copied()
            && let Some(wire) = self.wires.get_mut(&wire)
        {
            wire.streams[side].unsent.push_back(bytes);
        }
    }

    /// The system of a host accepts as many bytes as it has room for. Returns their number for each
    /// connection.
    pub(crate) fn flush(&mut self, now_ms: u64, host: usize) -> Vec<(ConnectionNumber, usize)> {
        let mut written = Vec::new();
        let ends: Vec<(ConnectionNumber, WireEnd)> = self
            .ends
            .range((host, ConnectionNumber(0))..=(host, ConnectionNumber(u64::MAX)))
            .map(|((_, number), end)| (*number, *end))
            .collect();
        for (number, end) in ends {
            let bytes = self.flush_end(now_ms, end);
            if bytes > 0 {
                written.push((number, bytes));
            }
        }
        written
    }

    fn flush_end(&mut self, now_ms: u64, (number, side): WireEnd) -> usize {
        let mut taken = 0;
        loop {
            let delay_ms = self.delay_ms();
            let (room, piece_bytes) = (self.weather.buffer_bytes, self.weather.piece_bytes);
            let breaks = self.dice.below(1000) < self.weather.breaks;
            let Some(wire) = self.wires.get_mut(&number) else {
                return taken;
            };
            let stream = &mut wire.streams[side];
            let room = room.saturating_sub(stream.under_way_bytes).min(piece_bytes);
            let Some(first) = stream.unsent.front_mut().filter(|_| room > 0) else {
                return taken;
            };
            let piece = first.split_to(first.len().min(room));
            if first.is_empty() {
                stream.unsent.pop_front();
            }
            taken += piece.len();
            if wire.is_dead {
                stream.under_way_bytes += piece.len();
                let host = wire.hosts[side];
                if self.hosts_up.contains(&wire.hosts[1 - side]) {
                    // The other host is back, and knows nothing about this connection.
                    let end = End::Failed("Connection reset by peer".to_owned());
                    self.at(now_ms + delay_ms, host, Arrival::Ended((number, side), end));
                }
                continue;
            }
            stream.last_ms = stream.last_ms.max(now_ms + delay_ms);
            stream.under_way_bytes += piece.len();
            let at_ms = stream.last_ms;
            stream.under_way.push_back((at_ms, Some(piece)));
            if breaks {
                self.break_wire(now_ms, number);
            }
        }
    }

    /// Breaks a connection: both sides learn of it, and bytes in flight are lost.
    fn break_wire(&mut self, now_ms: u64, number: WireNumber) {
        self.broken += 1;
        let late_ms = [0; 2].map(|_| self.dice.below(NOTICE_MS) as u64);
        let Some(wire) = self.wires.get_mut(&number) else {
            return;
        };
        for (stream, late_ms) in wire.streams.iter_mut().zip(late_ms) {
            let kept = self.dice.below(stream.under_way.len() + 1);
            stream.under_way.truncate(kept);
            stream.unsent.clear();
            let at_ms = stream.last_ms.max(now_ms + late_ms);
            stream.under_way.push_back((at_ms, None));
        }
    }

    /// Breaks all connections between two hosts.
    pub(crate) fn reset(&mut self, now_ms: u64, a: usize, b: usize) {
        let is_between = |wire: &Wire| wire.hosts == [a, b] || wire.hosts == [b, a];
        let wires = self.wires.iter().filter(|(_, wire)| is_between(wire));
        let numbers: Vec<WireNumber> = wires.map(|(number, _)| *number).collect();
        for number in numbers {
            self.break_wire(now_ms, number);
        }
    }

    /// A host closes a connection, or abandons an attempt.
    pub(crate) fn close(&mut self, now_ms: u64, host: usize, number: ConnectionNumber) {
        if let Some(end) = self.ends.get(&(host, number)).copied() {
            self.close_end(now_ms, end);
        }
    }

    fn close_end(&mut self, now_ms: u64, end: WireEnd) {
        let delay_ms = self.delay_ms();
        if let Some(wire) = self.wires.get_mut(&end.0)
            && !wire.is_dead
        {
            let stream = &mut wire.streams[end.1];
            stream.unsent.clear();
            stream.last_ms = stream.last_ms.max(now_ms + delay_ms);
            stream.under_way.push_back((stream.last_ms, None));
        }
        self.forget(end);
    }

    /// An end is closed: nothing arrives there any longer.
    fn forget(&mut self, end: WireEnd) {
        let Some(wire) = self.wires.get_mut(&end.0) else {
            return;
        };
        if let Some(number) = wire.numbers[end.1].take() {
            self.ends.remove(&(wire.hosts[end.1], number));
        }
        wire.is_closed[end.1] = true;
        if wire.is_closed == [true; 2] {
            self.wires.remove(&end.0);
        }
    }

    /// Moves everything that is due to its hosts.
    pub(crate) fn deliver(&mut self, now_ms: u64) {
        while let Some(first) = self.timed.first_entry()
            && first.key().0 <= now_ms
        {
            let (host, arrival) = first.remove();
            if let Some(arrived) = self.arrived.get_mut(&host) {
                arrived.push_back(arrival);
            }
        }
        let mut ended = Vec::new();
        for (number, wire) in &mut self.wires {
            for side in 0..2 {
                let (from, to) = (wire.hosts[side], wire.hosts[1 - side]);
                if wire.is_dead || self.cut.contains(&(from, to)) {
                    continue;
                }
                let stream = &mut wire.streams[side];
                while let Some((at_ms, _)) = stream.under_way.front()
                    && *at_ms <= now_ms
                    && let Some((_, piece)) = stream.under_way.pop_front()
                {
                    let end = (*number, 1 - side);
                    let arrival = match piece {
                        Some(bytes) => {
                            stream.under_way_bytes -= bytes.len();
                            Arrival::Bytes(end, bytes)
                        }
                        None => {
                            ended.push(end);
                            Arrival::Ended(end, End::Closed)
                        }
                    };
                    if wire.is_closed[1 - side] {
                        continue;
                    }
                    if let Some(arrived) = self.arrived.get_mut(&to) {
                        arrived.push_back(arrival);
                    }
                }
            }
        }
        for (number, _) in ended {
            // The reader learns of the end after it has read the bytes before.
            if let Some(wire) = self.wires.get_mut(&number) {
                for stream in &mut wire.streams {
                    stream.unsent.clear();
                }
            }
        }
    }

    /// The reader has learned that a connection has ended.
    pub(crate) fn ended(&mut self, end: WireEnd) {
        self.forget(end);
    }

    /// Whether anything unread has arrived at a host.
    pub(crate) fn has_arrived(&self, host: usize) -> bool {
        self.arrived
            .get(&host)
            .is_some_and(|arrived| !arrived.is_empty())
    }

    /// Whether the system of a host now has room for bytes that it could not accept before.
    pub(crate) fn can_flush(&self, host: usize) -> bool {
        let mut ends = self
            .ends
            .range((host, ConnectionNumber(0))..=(host, ConnectionNumber(u64::MAX)));
        ends.any(|(_, (number, side))| {
            let stream = self.wires.get(number).map(|wire| &wire.streams[*side]);
            stream.is_some_and(|stream| {
                !stream.unsent.is_empty() && stream.under_way_bytes < self.weather.buffer_bytes
            })
        })
    }

    /// Whether the system of a host lacks room for some bytes.
    pub(crate) fn has_unsent(&self, host: usize) -> bool {
        let mut ends = self
            .ends
            .range((host, ConnectionNumber(0))..=(host, ConnectionNumber(u64::MAX)));
        ends.any(|(_, (number, side))| {
            let stream = self.wires.get(number).map(|wire| &wire.streams[*side]);
            stream.is_some_and(|stream| !stream.unsent.is_empty())
        })
    }

    /// Whether bytes written to a connection can still arrive.
    pub(crate) fn is_live(&self, host: usize, number: ConnectionNumber) -> bool {
        let end = self.ends.get(&(host, number));
        let wire = end.and_then(|(number, _)| self.wires.get(number));
        wire.is_some_and(|wire| !wire.is_dead && wire.is_closed == [false; 2])
    }

    /// The host at the other end of a connection.
    pub(crate) fn peer(&self, host: usize, number: ConnectionNumber) -> Option<usize> {
        let (wire, side) = self.ends.get(&(host, number))?;
        Some(self.wires.get(wire)?.hosts[1 - side])
    }

    /// Takes everything that has arrived at a host.
    pub(crate) fn take(&mut self, host: usize) -> VecDeque<Arrival> {
        self.arrived
            .get_mut(&host)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The time of the next event.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let timed = self.timed.keys().next().map(|(at_ms, _)| *at_ms);
        let wires = self.wires.values().filter(|wire| !wire.is_dead);
        let streams = wires.flat_map(|wire| {
            (0..2).filter_map(|side| {
                let is_cut = self.is_cut(wire.hosts[side], wire.hosts[1 - side]);
                let first = wire.streams[side].under_way.front();
                first.filter(|_| !is_cut).map(|(at_ms, _)| *at_ms)
            })
        });
        timed.into_iter().chain(streams).min()
    }

    /// Bytes that no system has accepted yet, and bytes in flight.
    pub(crate) fn bytes(&self) -> usize {
        let streams = self.wires.values().flat_map(|wire| &wire.streams);
        streams
            .map(|stream| {
                let unsent: usize = stream.unsent.iter().map(Bytes::len).sum();
                unsent + stream.under_way_bytes
            })
            .sum()
    }
}
