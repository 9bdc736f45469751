//! The connection of a relay's thread to its source over wires, under the contract of the driver's
//! `Transport`.
//!
//! Invariant: no event of a closed connection is reported. Only reading finds the end of a
//! connection, so the end is not reported while nothing is read.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::ConnectionNumber;
use corvid_rpc::log_event::End;
use corvid_session::Output;

use crate::world::network::wires::{Arrival, Wires};

/// An event of the connection.
#[derive(Debug)]
pub(super) enum TransportEvent {
    Connected,
    /// Bytes that were read; empty if nothing could be read.
    Received(Bytes),
    /// Output that had to wait was partly sent.
    Sent,
    Ended(End),
}

/// The connection of a relay's thread to its source.
#[derive(Debug)]
pub(super) struct Transport {
    /// The number that identifies the transport in the network.
    host: usize,
    /// The connection, or the attempt to open it.
    number: Option<ConnectionNumber>,
    is_open: bool,
    arrived: VecDeque<TransportEvent>,
    /// Some output could not be sent at once.
    has_waited: bool,
    /// Reading would block, as far as is known in this round.
    is_read_blocked: bool,
    last: u64,
}

impl Transport {
    pub(super) fn new(host: usize) -> Transport {
        Transport {
            host,
            number: None,
            is_open: false,
            arrived: VecDeque::new(),
            has_waited: false,
            is_read_blocked: false,
            last: 0,
        }
    }

    /// Returns the connection while it is up.
    pub(super) fn connection(&self) -> Option<ConnectionNumber> {
        self.number.filter(|_| self.is_open)
    }

    /// Number of bytes that are not read yet.
    pub(super) fn bytes(&self) -> usize {
        let lengths = self.arrived.iter().map(|happened| match happened {
            TransportEvent::Received(bytes) => bytes.len(),
            _ => 0,
        });
        lengths.sum()
    }

    /// Whether [`Transport::step`] has an event to report.
    pub(super) fn has_work(&self, wants_input: bool, wires: &Wires) -> bool {
        let is_due = match self.arrived.front() {
            None => false,
            Some(_) => wants_input || !self.is_open,
        };
        is_due || wires.has_arrived(self.host) || wires.can_flush(self.host)
    }

    pub(super) fn carry_out(&mut self, now_ms: u64, output: Output, wires: &mut Wires) {
        match output {
            Output::Connect { remote } => {
                self.close(now_ms, wires);
                self.last += 1;
                let number = ConnectionNumber(self.last);
                self.number = Some(number);
                wires.dial(now_ms, self.host, number, &remote);
            }
            Output::Disconnect => self.close(now_ms, wires),
            Output::Send(bytes) => {
                if let Some(number) = self.connection() {
                    wires.write(self.host, number, bytes.into());
                }
            }
        }
    }

    fn close(&mut self, now_ms: u64, wires: &mut Wires) {
        if let Some(number) = self.number.take() {
            wires.close(now_ms, self.host, number);
        }
        (self.is_open, self.has_waited) = (false, false);
        self.arrived.clear();
        self.is_read_blocked = false;
    }

    /// Begins a round, in which the descriptor may be ready again.
    pub(super) fn begin_round(&mut self) {
        self.is_read_blocked = false;
    }

    /// Returns the next event. A read that finds nothing is reported once in each round.
    pub(super) fn step(
        &mut self,
        now_ms: u64,
        wants_input: bool,
        wires: &mut Wires,
    ) -> Option<TransportEvent> {
        for arrival in wires.take(self.host) {
            self.arrive(arrival, wires);
        }
        if self.is_open {
            let written: usize = wires.flush(now_ms, self.host).iter().map(|it| it.1).sum();
            let is_news = self.has_waited && written > 0;
            self.has_waited = wires.has_unsent(self.host);
            if is_news {
                return Some(TransportEvent::Sent);
            }
            if !wants_input || self.is_read_blocked {
                // Without reading, only the end of a connection attempt is found.
                return None;
            }
        }
        match self.arrived.pop_front() {
            Some(TransportEvent::Connected) => {
                self.is_open = true;
                Some(TransportEvent::Connected)
            }
            Some(TransportEvent::Ended(end)) => {
                self.close(now_ms, wires);
                Some(TransportEvent::Ended(end))
            }
            Some(happened) => Some(happened),
            None if self.is_open => {
                self.is_read_blocked = true;
                Some(TransportEvent::Received(Bytes::new()))
            }
            None => None,
        }
    }

    fn arrive(&mut self, arrival: Arrival, wires: &mut Wires) {
        match arrival {
            Arrival::Connected(number) if self.number == Some(number) => {
                self.arrived.push_back(TransportEvent::Connected);
            }
            Arrival::Refused(number, end) if self.number == Some(number) => {
                self.arrived.push_back(TransportEvent::Ended(end));
            }
            Arrival::Bytes(end, bytes) if self.is_mine(wires.number(end)) => {
                self.arrived.push_back(TransportEvent::Received(bytes));
            }
            Arrival::Ended(end, how) => {
                if self.is_mine(wires.number(end)) {
                    self.arrived.push_back(TransportEvent::Ended(how));
                }
                wires.ended(end);
            }
            // The event belongs to an earlier connection; no one dials a relay's thread.
            _ => {}
        }
    }

    fn is_mine(&self, number: Option<ConnectionNumber>) -> bool {
        number.is_some() && self.number == number
    }
}
