//! The network: connections with a pipe in each direction. A pipe carries openings, bytes and ends
//! in order, each with its own delay.
//!
//! Invariant: bytes in the middle are never lost. The network delays, stalls and ends connections,
//! at any byte, and possibly only one side notices. This module knows no messages.

use std::collections::{BTreeMap, VecDeque};

use crate::world::dice::Dice;

/// A connection; numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// The side that made a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Client(usize),
    /// The source connection of a backup.
    Host(usize),
}

/// The receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Server,
    Caller,
}

/// One unit of transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parcel {
    Open,
    Bytes(Vec<u8>),
    /// The end. If it replaces an opening, the connection is refused.
    End,
}

#[derive(Debug, Default)]
struct Pipe {
    /// The parcels, with increasing times of arrival.
    parcels: VecDeque<(u64, Parcel)>,
    last_ms: u64,
    /// Whether an end was sent or the receiver is closed: nothing more is transferred.
    is_over: bool,
}

impl Pipe {
    fn push(&mut self, at_ms: u64, parcel: Parcel) {
        if !self.is_over {
            self.is_over = parcel == Parcel::End;
            self.last_ms = self.last_ms.max(at_ms);
            self.parcels.push_back((self.last_ms, parcel));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) caller: Caller,
    pub(crate) host: usize,
    /// Whether the server has accepted its opening.
    pub(crate) is_accepted: bool,
    to_server: Pipe,
    to_caller: Pipe,
    /// Usual delay, ms.
    delay_ms: u64,
}

impl Conn {
    fn pipe(&mut self, to: To) -> &mut Pipe {
        match to {
            To::Server => &mut self.to_server,
            To::Caller => &mut self.to_caller,
        }
    }
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    conns: BTreeMap<ConnId, Conn>,
    last: u64,
    dice: Dice,
}

impl Connections {
    pub(crate) fn new(seed: u64) -> Connections {
        Connections {
            conns: BTreeMap::new(),
            last: 0,
            dice: Dice::new(seed),
        }
    }

    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn> {
        self.conns.get(&id)
    }

    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.conns.keys().copied().collect()
    }

    /// Opens a connection to a host.
    pub(crate) fn dial(&mut self, now_ms: u64, caller: Caller, host: usize) -> ConnId {
        self.last += 1;
        let id = ConnId(self.last);
        let conn = Conn {
            caller,
            host,
            is_accepted: false,
            to_server: Pipe::default(),
            to_caller: Pipe::default(),
            delay_ms: *self.dice.pick(&[0, 1, 5, 50]),
        };
        self.conns.insert(id, conn);
        self.send(now_ms, id, To::Server, Parcel::Open);
        id
    }

    /// Sends a parcel; bytes may be torn into several.
    pub(crate) fn send(&mut self, now_ms: u64, id: ConnId, to: To, parcel: Parcel) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let dice = &mut self.dice;
        let span_ms = conn.delay_ms as usize + 1;
        let pipe = conn.pipe(to);
        let mut parcel = parcel;
        while let Parcel::Bytes(bytes) = &mut parcel
            && bytes.len() > 1
            && dice.chance(20)
        {
            let rest = bytes.split_off(1 + dice.below(bytes.len() - 1));
            let torn = std::mem::replace(&mut parcel, Parcel::Bytes(rest));
            pipe.push(now_ms + dice.below(span_ms) as u64, torn);
        }
        pipe.push(now_ms + dice.below(span_ms) as u64, parcel);
    }

    /// Stalls both directions for this long.
    pub(crate) fn stall(&mut self, now_ms: u64, id: ConnId, for_ms: u64) {
        if let Some(conn) = self.conns.get_mut(&id) {
            for pipe in [&mut conn.to_server, &mut conn.to_caller] {
                let held_ms = now_ms + for_ms;
                pipe.last_ms = pipe.last_ms.max(held_ms);
                for (at_ms, _) in &mut pipe.parcels {
                    *at_ms = (*at_ms).max(held_ms);
                }
            }
        }
    }

    /// Ends stalls.
    pub(crate) fn loosen(&mut self, now_ms: u64) {
        for conn in self.conns.values_mut() {
            for pipe in [&mut conn.to_server, &mut conn.to_caller] {
                pipe.last_ms = pipe.last_ms.min(now_ms);
                for (at_ms, _) in &mut pipe.parcels {
                    *at_ms = (*at_ms).min(now_ms);
                }
            }
        }
    }

    /// Cuts a connection at a random byte in transit. The server learns of it `late_ms` later.
    pub(crate) fn cut(&mut self, now_ms: u64, id: ConnId, late_ms: u64) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        for (to, at_ms) in [(To::Server, now_ms + late_ms), (To::Caller, now_ms)] {
            let pipe = conn.pipe(to);
            if pipe.is_over {
                continue;
            }
            let kept = self.dice.below(pipe.parcels.len() + 1);
            let torn = pipe.parcels.get(kept).cloned();
            pipe.parcels.truncate(kept);
            if let Some((torn_ms, Parcel::Bytes(mut bytes))) = torn
                && bytes.len() > 1
            {
                bytes.truncate(1 + self.dice.below(bytes.len() - 1));
                pipe.parcels.push_back((torn_ms, Parcel::Bytes(bytes)));
            }
            pipe.push(at_ms, Parcel::End);
        }
    }

    /// One side has closed the connection: parcels to that side are dropped, and the other side
    /// gets the end.
    pub(crate) fn close(&mut self, now_ms: u64, id: ConnId, by: To) {
        let other = match by {
            To::Server => To::Caller,
            To::Caller => To::Server,
        };
        self.send(now_ms, id, other, Parcel::End);
        self.vanish(id, by);
    }

    /// One side has vanished without an end for the other.
    pub(crate) fn vanish(&mut self, id: ConnId, side: To) {
        if let Some(conn) = self.conns.get_mut(&id) {
            let pipe = conn.pipe(side);
            pipe.parcels.clear();
            pipe.is_over = true;
            let is_dead = conn.to_server.is_over
                && conn.to_caller.is_over
                && conn.to_server.parcels.is_empty()
                && conn.to_caller.parcels.is_empty();
            if is_dead {
                self.conns.remove(&id);
            }
        }
    }

    /// Parcels that could arrive now.
    pub(crate) fn ready(&self, now_ms: u64) -> Vec<(ConnId, To)> {
        let mut ready = Vec::new();
        for (id, conn) in &self.conns {
            for (to, pipe) in [(To::Server, &conn.to_server), (To::Caller, &conn.to_caller)] {
                if pipe
                    .parcels
                    .front()
                    .is_some_and(|(at_ms, _)| *at_ms <= now_ms)
                {
                    ready.push((*id, to));
                }
            }
        }
        ready
    }

    /// The time of the next arrival.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let pipes = self
            .conns
            .values()
            .flat_map(|conn| [&conn.to_server, &conn.to_caller]);
        let firsts = pipes.filter_map(|pipe| Some(pipe.parcels.front()?.0));
        firsts.min()
    }

    /// The time of the next arrival after this time.
    pub(crate) fn next_ms_after(&self, now_ms: u64) -> Option<u64> {
        let pipes = self
            .conns
            .values()
            .flat_map(|conn| [&conn.to_server, &conn.to_caller]);
        let firsts = pipes.filter_map(|pipe| Some(pipe.parcels.front()?.0));
        firsts.filter(|at_ms| *at_ms > now_ms).min()
    }

    /// Takes the next parcel from a pipe.
    pub(crate) fn take(&mut self, id: ConnId, to: To) -> Option<Parcel> {
        let conn = self.conns.get_mut(&id)?;
        let (_, parcel) = conn.pipe(to).parcels.pop_front()?;
        conn.is_accepted |= to == To::Server && parcel == Parcel::Open;
        Some(parcel)
    }

    /// Whether a side has received everything that was sent to it.
    pub(crate) fn is_drained(&self, id: ConnId, to: To) -> bool {
        self.conns.get(&id).is_none_or(|conn| match to {
            To::Server => conn.to_server.parcels.is_empty(),
            To::Caller => conn.to_caller.parcels.is_empty(),
        })
    }

    /// Whether nothing is in transit.
    pub(crate) fn is_quiet(&self) -> bool {
        self.next_ms().is_none()
    }
}
