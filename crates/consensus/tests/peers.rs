//! Three members whose connections fail at random: refused, broken, silent, slow. The invariants of
//! the outputs hold throughout, messages of a connection arrive in order, and once the network
//! recovers, all members find each other.

use std::collections::{BTreeMap, VecDeque};

use corvid_consensus::{
    ConnectionNumber, DialTarget, PeerMessage, Peers, PeersOutput, PeersSettings,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Sid, Term};
use corvid_rpc::Level;
use corvid_rpc::log_event::End;

const COUNT: usize = 3;

fn sid(member: usize) -> Sid {
    Sid(Uuid([u8::try_from(member).expect("few") + 1; 16]))
}

fn address(member: usize) -> String {
    format!("tcp:10.0.0.{member}:6644")
}

/// One end of a connection.
type Endpoint = (usize, ConnectionNumber);

/// The bytes in flight from one end to the other.
struct Wire {
    to: Endpoint,
    bytes: VecDeque<u8>,
    /// Nothing arrives any longer, and neither end notices.
    is_dead: bool,
}

struct Network {
    random: u64,
    now_ms: u64,
    members: Vec<Peers>,
    wires: BTreeMap<Endpoint, Wire>,
    /// Open connections, according to the outputs.
    open: Vec<Vec<ConnectionNumber>>,
    up: Vec<Vec<Sid>>,
    /// The number of the last message from each member to each other one, sent and arrived.
    sent: [[u64; COUNT]; COUNT],
    arrived: [[u64; COUNT]; COUNT],
    is_well: bool,
    deliveries: u64,
}

impl Network {
    fn new(seed: u64) -> Network {
        let members = (0..COUNT).map(|member| {
            Peers::new(PeersSettings {
                sid: sid(member),
                cid: Cid::new(Uuid([0xcc; 16])),
                address: address(member),
                message_bytes_max: 1 << 20,
            })
        });
        let mut network = Network {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now_ms: 0,
            members: members.collect(),
            wires: BTreeMap::new(),
            open: vec![Vec::new(); COUNT],
            up: vec![Vec::new(); COUNT],
            sent: [[0; COUNT]; COUNT],
            arrived: [[0; COUNT]; COUNT],
            is_well: false,
            deliveries: 0,
        };
        let targets: Vec<DialTarget> = (0..COUNT)
            .map(|member| DialTarget {
                address: address(member),
                sid: Some(sid(member)),
            })
            .collect();
        for member in 0..COUNT {
            network.members[member].set_targets(0, &targets);
            network.carry_out(member);
        }
        network
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        !self.is_well && self.below(100) < percent
    }

    fn carry_out(&mut self, member: usize) {
        while let Some(output) = self.members[member].next_output() {
            self.check_output(member, &output);
            match output {
                PeersOutput::Dial {
                    number,
                    address: to,
                } => self.dial(member, number, &to),
                PeersOutput::Write { number, bytes } => {
                    if let Some(wire) = self.wires.get_mut(&(member, number)) {
                        wire.bytes.extend(&bytes[..]);
                        // A dead peer's system still accepts what fits into its buffers.
                        self.members[member].written(self.now_ms, number, bytes.len());
                    }
                }
                PeersOutput::Close { number } => self.end((member, number)),
                _ => {}
            }
        }
    }

    fn check_output(&mut self, member: usize, output: &PeersOutput) {
        let (open, up) = (&mut self.open[member], &mut self.up[member]);
        match output {
            PeersOutput::Write { number, .. } => assert!(open.contains(number)),
            PeersOutput::Close { number } => open.retain(|other| other != number),
            PeersOutput::PeerUp(sid) => {
                assert!(!open.is_empty());
                if !up.contains(sid) {
                    up.push(*sid);
                }
            }
            PeersOutput::PeerDown(sid) => {
                assert!(up.contains(sid), "down only after up");
                up.retain(|other| other != sid);
            }
            PeersOutput::PeerRefused(sid) => assert!(!up.contains(sid), "refused though up"),
            PeersOutput::Message { from, message } => {
                assert!(up.contains(from));
                let PeerMessage::NotMember { term } = message else {
                    panic!("{message:?} was never sent");
                };
                let from = (0..COUNT)
                    .find(|other| sid(*other) == *from)
                    .expect("a member");
                assert!(term.0 <= self.sent[from][member]);
                self.arrived[from][member] = term.0;
                self.deliveries += 1;
            }
            PeersOutput::Log { level, text } => {
                assert!(
                    *level < Level::Error || text.contains("no response"),
                    "{text}"
                );
            }
            PeersOutput::Dial { .. } | PeersOutput::Traffic { .. } => {}
            PeersOutput::LearnedCluster(_) => panic!("the cluster was known"),
        }
    }

    fn dial(&mut self, member: usize, number: ConnectionNumber, to: &str) {
        let peer = (0..COUNT)
            .find(|peer| address(*peer) == to)
            .expect("a member");
        assert_ne!(peer, member);
        if self.chance(30) {
            let end = End::Failed("Connection refused".to_owned());
            return self.members[member].refused(self.now_ms, number, end);
        }
        if self.chance(10) {
            // The attempt hangs until the member abandons it.
            return;
        }
        let accepted = self.members[peer].accepted(self.now_ms, "tcp:peer:1");
        self.open[peer].push(accepted);
        self.open[member].push(number);
        let (one, other) = ((member, number), (peer, accepted));
        for (from, to) in [(one, other), (other, one)] {
            let wire = Wire {
                to,
                bytes: VecDeque::new(),
                is_dead: false,
            };
            self.wires.insert(from, wire);
        }
        self.members[member].connected(self.now_ms, number);
        self.carry_out(peer);
    }

    /// Closes one end. The other end hears of it, unless the connection is dead.
    fn end(&mut self, end: Endpoint) {
        let Some(wire) = self.wires.remove(&end) else {
            return;
        };
        if !wire.is_dead && self.wires.remove(&wire.to).is_some() {
            let (peer, number) = wire.to;
            self.open[peer].retain(|other| *other != number);
            self.members[peer].closed(self.now_ms, number, End::Closed);
            self.carry_out(peer);
        }
    }

    fn deliver(&mut self) {
        let ends: Vec<Endpoint> = self.wires.keys().copied().collect();
        for end in ends {
            if self.chance(20) {
                continue;
            }
            let most = 1 + usize::try_from(self.below(3000)).expect("small");
            let Some(wire) = self.wires.get_mut(&end).filter(|wire| !wire.is_dead) else {
                continue;
            };
            let count = most.min(wire.bytes.len());
            let bytes: Vec<u8> = wire.bytes.drain(..count).collect();
            let (peer, number) = wire.to;
            if !bytes.is_empty() {
                self.members[peer].received(self.now_ms, number, &bytes);
                self.carry_out(peer);
            }
        }
    }

    fn break_something(&mut self) {
        let ends: Vec<Endpoint> = self.wires.keys().copied().collect();
        if ends.is_empty() {
            return;
        }
        let end = ends[usize::try_from(self.below(ends.len() as u64)).expect("few")];
        if self.chance(3) {
            let (member, number) = end;
            self.open[member].retain(|other| *other != number);
            let reset = End::Failed("Connection reset by peer".to_owned());
            self.members[member].closed(self.now_ms, number, reset);
            self.end(end);
            self.carry_out(member);
        } else if self.chance(2) {
            let to = self.wires[&end].to;
            for end in [end, to] {
                if let Some(wire) = self.wires.get_mut(&end) {
                    wire.is_dead = true;
                }
            }
        }
    }

    fn step(&mut self) {
        let step_ms = 1 + self.below(100);
        self.now_ms += step_ms;
        self.break_something();
        for from in 0..COUNT {
            let to = (from + 1 + usize::try_from(self.below(2)).expect("small")) % COUNT;
            self.sent[from][to] += 1;
            let message = PeerMessage::NotMember {
                term: Term(self.sent[from][to]),
            };
            self.members[from].send(self.now_ms, sid(to), &message);
            self.carry_out(from);
        }
        self.deliver();
        for member in 0..COUNT {
            self.members[member].time(self.now_ms);
            self.carry_out(member);
            for other in 0..COUNT {
                let is_up = self.members[member].is_up(sid(other));
                assert_eq!(self.up[member].contains(&sid(other)), is_up);
            }
            let deadline_ms = self.members[member].deadline_ms(self.now_ms);
            assert!(deadline_ms.is_some_and(|at_ms| at_ms > self.now_ms));
        }
    }
}

#[test]
fn members_find_each_other_through_every_failure() {
    let first = std::env::var("CORVID_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = match first {
        Some(seed) => seed..seed + 1,
        None => 1..if cfg!(miri) { 2 } else { 60 },
    };
    for seed in seeds {
        println!("CORVID_SEED={seed}");
        let mut network = Network::new(seed);
        for _ in 0..1500 {
            network.step();
        }
        assert!(network.deliveries > 100);
        network.is_well = true;
        let end_ms = network.now_ms + 20_000;
        while network.now_ms < end_ms {
            network.step();
        }
        for member in 0..COUNT {
            assert_eq!(
                network.up[member].len(),
                COUNT - 1,
                "member {member} is alone"
            );
            for other in (0..COUNT).filter(|other| *other != member) {
                let (sent, arrived) = (network.sent[member][other], network.arrived[member][other]);
                assert!(
                    arrived + 20 > sent,
                    "{member} to {other}: {arrived} of {sent}"
                );
            }
            assert!(network.members[member].connection_count() <= 2 * (COUNT - 1));
        }
    }
}
