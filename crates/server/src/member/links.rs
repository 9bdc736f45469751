//! The sockets of one member: the listening socket, and the connections to other members. Runs on
//! the member's thread.
//!
//! Every event is reported to [`Peers`], whose outputs come back as calls: [`Links::dial`],
//! [`Links::write`], [`Links::close`]. Invariant: the end of a connection is reported once, and
//! [`Peers`] hears nothing more of a connection that it has closed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use corvid_consensus::peers::ACCEPTED_MAX;
use corvid_consensus::{ConnectionNumber, Peers};
use corvid_net::logging::{self, Module, RateLimit};
use corvid_net::stream::{Resolve, Stream};
use corvid_net::target::{Active, Target};
use corvid_net::tls::Credentials;
use corvid_net::{errno, socket};
use corvid_reactor::channel::Received;
use corvid_rpc::log_event::End;
use mio::{Events, Interest, Poll, Token};
use rustix::io::Errno;
use slab::Slab;

use super::acceptor::Acceptor;
use super::link::Link;

/// The token of the thread's waker.
pub(super) const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// The number of bytes read at a time.
const READ_BYTES: usize = 128 * 1024;
/// The number of bytes read from one connection in one turn, so that the other connections and the
/// timers get their turn.
const READ_BYTES_PER_TURN: usize = 8 * READ_BYTES;
/// The number of connections accepted in one turn.
const ACCEPTS_MAX: usize = 16;
/// The maximum number of connections. [`Peers`] limits the accepted ones; the rest of this limit is
/// for handshakes and for connections to members, of which a cluster has a few. At the limit the
/// oldest handshake is closed.
const LINKS_MAX: usize = 2 * ACCEPTED_MAX;
/// The maximum duration of an accepted connection's handshake, ms.
const HANDSHAKE_MS_MAX: u64 = 10_000;

/// The sockets of a member.
pub(super) struct Links {
    poll: Poll,
    events: Events,
    credentials: Arc<Credentials>,
    acceptor: Acceptor,
    may_accept: bool,
    links: Slab<Link>,
    slots: HashMap<ConnectionNumber, usize>,
    scratch: Box<[u8]>,
    /// A connection has more input than was read in its turn.
    has_more: bool,
    /// Nothing is sent, received, accepted or dialled (`cluster/failure-test stop-raft-rpc`).
    is_stopped: bool,
}

impl Links {
    /// No connections yet; the first [`Links::receive`] opens the listening socket.
    pub(super) fn new(poll: Poll, address: &str, credentials: Arc<Credentials>) -> Links {
        Links {
            poll,
            events: Events::with_capacity(LINKS_MAX),
            acceptor: Acceptor::new(address, credentials.clone()),
            credentials,
            may_accept: false,
            links: Slab::new(),
            slots: HashMap::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            has_more: false,
            is_stopped: false,
        }
    }

    /// Stops all traffic, or resumes it.
    pub(super) fn set_stopped(&mut self, is_stopped: bool) {
        self.has_more |= self.is_stopped && !is_stopped;
        self.is_stopped = is_stopped;
    }

    /// Whether [`Links::wait`] must return at once.
    pub(super) fn has_more(&self) -> bool {
        self.has_more && !self.is_stopped
    }

    /// When the listening socket or a handshake next needs [`Links::receive`], monotonic ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let links = self
            .links
            .iter()
            .filter_map(|(_, link)| link.handshake_until_ms);
        links.chain(self.acceptor.deadline_ms()).min()
    }

    /// Waits for a socket event or a wake-up, at most `timeout`; `None`: forever.
    ///
    /// # Errors
    /// The kernel's poll has failed.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// Reports everything that has arrived.
    pub(super) fn receive(&mut self, now_ms: u64, peers: &mut Peers) {
        let mut opening = Vec::new();
        for event in &self.events {
            match event.token() {
                WAKER => {}
                LISTENER => self.may_accept = true,
                Token(slot) => {
                    let Some(link) = self.links.get_mut(slot) else {
                        continue;
                    };
                    if link.channel.is_open {
                        link.record(event);
                    } else {
                        opening.push(slot);
                    }
                }
            }
        }
        self.events.clear();
        for slot in opening {
            self.finish_opening(now_ms, slot, peers);
        }
        let registry = self.poll.registry();
        self.may_accept |= self.acceptor.retry(now_ms, registry, LISTENER);
        if self.is_stopped {
            return;
        }
        self.accept(now_ms, peers);
        self.end_handshakes(now_ms);
        self.has_more = false;
        for slot in self.slots_of(|link| link.channel.may_read) {
            self.read(now_ms, slot, peers);
        }
    }

    /// Whether there is output that the kernel may accept. The next part of a long message is
    /// queued once the previous part is written.
    pub(super) fn may_write(&self) -> bool {
        !self.is_stopped && self.links.iter().any(|(_, link)| link.may_write())
    }

    /// Sends as much as the kernel accepts.
    pub(super) fn flush(&mut self, now_ms: u64, peers: &mut Peers) {
        if self.is_stopped {
            return;
        }
        for slot in self.slots_of(Link::may_write) {
            let Some(link) = self.links.get_mut(slot) else {
                continue;
            };
            match (link.write(), link.number) {
                (Ok(written), Some(number)) if written > 0 => {
                    peers.written(now_ms, number, written);
                }
                (Ok(_), _) => {}
                (Err(error), _) => self.end(now_ms, slot, failed(&error), peers),
            }
        }
    }

    /// Starts to dial an address.
    pub(super) fn dial(
        &mut self,
        now_ms: u64,
        number: ConnectionNumber,
        address: &str,
        peers: &mut Peers,
    ) {
        let stream = self.try_dial(address).and_then(|stream| {
            self.insert(Link::dialled(number, stream))?;
            Ok(())
        });
        if let Err(error) = stream {
            report_failed_dial(now_ms, number, &error, peers);
        }
    }

    fn try_dial(&self, address: &str) -> io::Result<Stream> {
        let target: Active = match Target::parse(address) {
            Ok(Target::Active(target)) => target,
            Ok(Target::Passive(_)) => {
                return Err(errno::from_code(Errno::AFNOSUPPORT.raw_os_error()));
            }
            Err(error) => return Err(errno::from_code(error.errno())),
        };
        let credentials = Some(&self.credentials);
        Stream::connect(&target, socket::DSCP_DEFAULT, Resolve::Later, credentials)
    }

    /// Queues output for a connection.
    pub(super) fn write(&mut self, number: ConnectionNumber, bytes: Bytes) {
        if let Some(link) = self.slots.get(&number).map(|slot| &mut self.links[*slot]) {
            link.channel.output.push(bytes);
        }
    }

    /// Closes a connection; its unsent output is lost.
    pub(super) fn close(&mut self, number: ConnectionNumber) {
        if let Some(slot) = self.slots.get(&number) {
            self.remove(*slot);
        }
    }

    fn insert(&mut self, mut link: Link) -> io::Result<usize> {
        if self.links.len() >= LINKS_MAX && !self.end_oldest_handshake() {
            return Err(errno::from_code(Errno::MFILE.raw_os_error()));
        }
        let entry = self.links.vacant_entry();
        let slot = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(link.channel.stream.source(), Token(slot), interest)?;
        if let Some(number) = link.number {
            self.slots.insert(number, slot);
        }
        entry.insert(link);
        Ok(slot)
    }

    /// Closes the connection with the oldest unfinished handshake, so that idle strangers cannot
    /// keep members out. Returns false if no handshake is unfinished.
    fn end_oldest_handshake(&mut self) -> bool {
        let links = self.links.iter();
        let handshakes = links.filter_map(|(slot, link)| Some((link.handshake_until_ms?, slot)));
        let Some((_, slot)) = handshakes.min() else {
            return false;
        };
        warn_of_handshake(&self.links[slot].name, "too many connections");
        self.remove(slot);
        true
    }

    fn remove(&mut self, slot: usize) -> Option<ConnectionNumber> {
        let mut link = self.links.try_remove(slot)?;
        // Closing the socket deregisters it too, unless the descriptor was shared with a child
        // process.
        let _ = self
            .poll
            .registry()
            .deregister(link.channel.stream.source());
        let number = link.number?;
        self.slots.remove(&number);
        Some(number)
    }

    fn end(&mut self, now_ms: u64, slot: usize, end: End, peers: &mut Peers) {
        if let Some(number) = self.remove(slot) {
            peers.closed(now_ms, number, end);
        }
    }

    fn finish_opening(&mut self, now_ms: u64, slot: usize, peers: &mut Peers) {
        let Some(link) = self.links.get_mut(slot) else {
            return;
        };
        match link.channel.finish_opening() {
            Ok(false) => {}
            Ok(true) => {
                link.handshake_until_ms = None;
                match link.number {
                    Some(number) => peers.connected(now_ms, number),
                    None => self.accepted(now_ms, slot, peers),
                }
            }
            Err(error) => {
                if link.number.is_none() {
                    warn_of_handshake(&link.name, &errno::text(&error));
                }
                if let Some(number) = self.remove(slot) {
                    report_failed_dial(now_ms, number, &error, peers);
                }
            }
        }
    }

    fn end_handshakes(&mut self, now_ms: u64) {
        let is_late = |link: &Link| link.handshake_until_ms.is_some_and(|at_ms| at_ms <= now_ms);
        for slot in self.slots_of(is_late) {
            warn_of_handshake(
                &self.links[slot].name,
                &errno::text_of(Errno::TIMEDOUT.raw_os_error()),
            );
            self.remove(slot);
        }
    }

    /// Reports to the peers that an accepted connection is open.
    fn accepted(&mut self, now_ms: u64, slot: usize, peers: &mut Peers) {
        let link = &mut self.links[slot];
        let number = peers.accepted(now_ms, &link.name);
        link.number = Some(number);
        self.slots.insert(number, slot);
    }

    fn slots_of(&self, is_wanted: impl Fn(&Link) -> bool) -> Vec<usize> {
        let links = self.links.iter();
        links
            .filter(|(_, link)| is_wanted(link))
            .map(|(slot, _)| slot)
            .collect()
    }

    fn accept(&mut self, now_ms: u64, peers: &mut Peers) {
        static LIMIT: RateLimit = RateLimit::new(5, 5);
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.acceptor.listener().filter(|_| self.may_accept) else {
                return;
            };
            match listener.accept() {
                Ok(None) => self.may_accept = false,
                Ok(Some((stream, name))) => {
                    let link = Link::accepted(name.clone(), stream, now_ms + HANDSHAKE_MS_MAX);
                    let is_open = link.channel.is_open;
                    match self.insert(link) {
                        Ok(slot) if is_open => self.accepted(now_ms, slot, peers),
                        Ok(_) => {}
                        Err(error) => warn_of_handshake(&name, &errno::text(&error)),
                    }
                }
                Err(error) => {
                    let reason = errno::text(&error);
                    logging::warn_limited(&LIMIT, Module::Raft, format_args!("accept: {reason}"));
                    self.may_accept = false;
                    self.acceptor.pause(now_ms);
                }
            }
        }
        // More connections may be pending.
        self.has_more |= self.may_accept;
    }

    fn read(&mut self, now_ms: u64, slot: usize, peers: &mut Peers) {
        let mut received = 0;
        loop {
            // A message may have made the peers close the connection.
            let Some(link) = self.links.get_mut(slot) else {
                return;
            };
            let Some(number) = link.number.filter(|_| link.channel.may_read) else {
                return;
            };
            if received >= READ_BYTES_PER_TURN {
                self.has_more = true;
                return;
            }
            match link.channel.read(&mut self.scratch) {
                Ok(Received::Bytes(count)) => {
                    received += count;
                    peers.received(now_ms, number, &self.scratch[..count]);
                }
                Ok(Received::Nothing) => return,
                Ok(Received::End) => return self.end(now_ms, slot, End::Closed, peers),
                Err(error) => return self.end(now_ms, slot, failed(&error), peers),
            }
        }
    }
}

fn failed(error: &io::Error) -> End {
    End::Failed(errno::text(error))
}

/// Reports a failed dial. If the address refuses, or its socket file does not exist, no process
/// listens there.
fn report_failed_dial(now_ms: u64, number: ConnectionNumber, error: &io::Error, peers: &mut Peers) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            peers.refused(now_ms, number, failed(error));
        }
        _ => peers.closed(now_ms, number, failed(error)),
    }
}

fn warn_of_handshake(name: &str, reason: &str) {
    static LIMIT: RateLimit = RateLimit::new(5, 5);
    let line = format_args!("{name}: connection refused ({reason})");
    logging::warn_limited(&LIMIT, Module::Raft, line);
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use corvid_consensus::{DialTarget, PeerMessage, PeersOutput, PeersSettings};
    use corvid_data::Uuid;
    use corvid_log::cluster::{Cid, Index, Sid, Term};
    use corvid_net::clock;

    use super::*;

    /// One side: its sockets, its peers, and the messages that have arrived.
    struct Side {
        links: Links,
        peers: Peers,
        is_up: bool,
        is_refused: bool,
        arrived: Vec<PeerMessage>,
    }

    fn address(folder: &Path, number: u8) -> String {
        format!("unix:{}", folder.join(format!("s{number}")).display())
    }

    fn side(folder: &Path, number: u8) -> Side {
        let address = address(folder, number);
        let peers = Peers::new(PeersSettings {
            sid: Sid(Uuid([number; 16])),
            cid: Cid::new(Uuid([9; 16])),
            address: address.clone(),
            message_bytes_max: 1 << 26,
        });
        let poll = Poll::new().expect("a poll");
        Side {
            links: Links::new(poll, &address, Arc::default()),
            peers,
            is_up: false,
            is_refused: false,
            arrived: Vec::new(),
        }
    }

    impl Side {
        fn turn(&mut self) {
            let now_ms = clock::mono_ms();
            self.links
                .wait(Some(Duration::from_millis(1)))
                .expect("polled");
            self.links.receive(now_ms, &mut self.peers);
            self.peers.time(now_ms);
            self.carry_out(now_ms);
            self.links.flush(now_ms, &mut self.peers);
            self.carry_out(now_ms);
        }

        fn carry_out(&mut self, now_ms: u64) {
            while let Some(output) = self.peers.next_output() {
                match output {
                    PeersOutput::Dial { number, address } => {
                        self.links.dial(now_ms, number, &address, &mut self.peers);
                    }
                    PeersOutput::Write { number, bytes } => self.links.write(number, bytes),
                    PeersOutput::Close { number } => self.links.close(number),
                    PeersOutput::PeerUp(_) => self.is_up = true,
                    PeersOutput::PeerDown(_) => self.is_up = false,
                    PeersOutput::Message { message, .. } => self.arrived.push(message),
                    PeersOutput::PeerRefused(_) => self.is_refused = true,
                    PeersOutput::LearnedCluster(_)
                    | PeersOutput::Traffic { .. }
                    | PeersOutput::Log { .. } => {}
                }
            }
        }
    }

    /// Runs turns of both sides until a condition holds.
    fn until(sides: &mut [Side; 2], what: &str, holds: impl Fn(&[Side; 2]) -> bool) {
        let began = Instant::now();
        while !holds(sides) {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            sides.iter_mut().for_each(Side::turn);
        }
    }

    fn pair(folder: &Path) -> [Side; 2] {
        let mut sides = [side(folder, 1), side(folder, 2)];
        for (side, other) in sides.iter_mut().zip([2, 1]) {
            let target = DialTarget {
                address: address(folder, other),
                sid: Some(Sid(Uuid([other; 16]))),
            };
            side.peers.set_targets(clock::mono_ms(), &[target]);
        }
        until(&mut sides, "both are up", |sides| {
            sides.iter().all(|side| side.is_up)
        });
        sides
    }

    /// A message of this length.
    fn long_message(number: u64, bytes: usize) -> PeerMessage {
        PeerMessage::SnapshotChunk {
            term: Term(1),
            index: Index(number),
            offset: 0,
            bytes: vec![b'x'; bytes].into(),
        }
    }

    #[test]
    fn two_members_that_send_each_other_much_at_once_do_not_wait_for_each_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut sides = pair(folder.path());
        // Far more than the sockets buffer.
        const MESSAGES: u64 = 64;
        for (side, other) in sides.iter_mut().zip([2, 1]) {
            for number in 1..=MESSAGES {
                let message = long_message(number, 256 * 1024);
                let to = Sid(Uuid([other; 16]));
                side.peers.send(clock::mono_ms(), to, &message);
            }
        }
        until(&mut sides, "everything arrives", |sides| {
            let mut sides = sides.iter();
            sides.all(|side| side.arrived.len() as u64 == MESSAGES)
        });
        for side in &sides {
            let expected: Vec<PeerMessage> = (1..=MESSAGES)
                .map(|number| long_message(number, 256 * 1024))
                .collect();
            assert!(side.arrived == expected, "in order, unchanged");
        }
    }

    #[test]
    fn a_member_that_returns_at_its_address_is_found_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let [first, second] = pair(folder.path());
        drop(second);
        let mut sides = [first, side(folder.path(), 2)];
        let target = DialTarget {
            address: address(folder.path(), 1),
            sid: Some(Sid(Uuid([1; 16]))),
        };
        let now_ms = clock::mono_ms();
        sides[1].peers.set_targets(now_ms, &[target]);
        until(&mut sides, "the old connection ends", |sides| {
            sides[1].is_up && sides[0].is_up
        });
        let to = Sid(Uuid([2; 16]));
        let message = long_message(7, 10);
        until(&mut sides, "both know each other again", |sides| {
            sides[0].peers.connection_count() >= 2
        });
        sides[0].peers.send(clock::mono_ms(), to, &message);
        until(&mut sides, "the message arrives", |sides| {
            !sides[1].arrived.is_empty()
        });
    }
}
