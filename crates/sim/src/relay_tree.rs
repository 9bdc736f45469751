//! A study of relays in virtual time: how long until all of many clients have a commit, through a
//! given number of levels of relays.
//!
//! The servers are real state machines; processors and wires are models ([`Costs`]). One core
//! serves each server: an input waits until the core is free, and outputs leave one after the
//! other, in the order in which the machine emits them. docs/internals/relay.md, "A tree for 10,000
//! clients", has the results. Invariant: everything follows from the seed. This study does not
//! check correctness; [`crate::whole_cluster`] does.

mod node;
pub mod plot;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use corvid_json::Assembler;
use corvid_monitor::SessionId;
use corvid_session::Input;

use crate::world::dice::Dice;
use node::{Node, Sent};

/// The constants of the model.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Time to execute or apply one message, ns.
    pub message_ns: u64,
    /// Time per delivered byte, ps.
    pub byte_ps: u64,
    /// Median delay of a wire, ns. Delays are spread evenly from half to one and a half times this.
    pub hop_ns: u64,
}

/// From docs/performance/history.md, "Relays". 45.93 us of server CPU per transaction through a
/// relay (`relay`, "server CPU": relay and source together, so an upper bound for either). 15.82 us
/// of relay CPU per delivered kB (`relay-fan-out`, rows as here). The delay is assumed.
pub const COSTS: Costs = Costs {
    message_ns: 45_930,
    byte_ps: 15_820_000,
    hop_ns: 250_000,
};

/// A tree and its load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of relays in each level below the source.
    pub relays: Vec<usize>,
    /// Number of clients of the last level, spread evenly.
    pub clients: usize,
    /// Number of clients at each server of the levels above, which only observe.
    pub observers: usize,
    /// Number of commits that are measured.
    pub commits: usize,
    /// Mean rate of commits, per second; the intervals are random.
    pub rate: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// The results for one level. Times count from the arrival of a transaction at the source until
/// that share of the level's clients has its change; the value is the median over all commits, ms.
#[derive(Clone, Debug)]
pub struct Level {
    /// Number of the level; 0 is the source.
    pub level: usize,
    /// Number of clients of the level.
    pub clients: usize,
    /// Time until half of the clients have a change.
    pub half_ms: f64,
    /// Time until 99 % of the clients have it.
    pub most_ms: f64,
    /// Time until all clients have it.
    pub all_ms: f64,
    /// The longest time until all have a change, over all commits.
    pub worst_ms: f64,
    /// Number of changes that its clients received.
    pub changes: usize,
    /// The load of the level's busiest core while it delivered, in percent of the time of the
    /// commits.
    pub busy_percent: f64,
}

/// The other end of a session.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Client(usize),
    Relay(usize),
}

/// An arrival at a node, at a relay's connection or at a client.
enum Arrival {
    Dialled {
        source: usize,
        relay: usize,
    },
    Connected {
        relay: usize,
    },
    Request {
        node: usize,
        session: SessionId,
        bytes: Vec<u8>,
    },
    Updates {
        relay: usize,
        bytes: Vec<u8>,
    },
    Client {
        client: usize,
        bytes: Vec<u8>,
    },
    /// A server has postponed work until now.
    Timer {
        node: usize,
    },
}

struct Client {
    level: usize,
    /// When each change arrived, by its number.
    got_ns: Vec<Option<u64>>,
}

struct Tree {
    nodes: Vec<Node>,
    levels: Vec<usize>,
    sources: Vec<usize>,
    /// When each core becomes free.
    free_ns: Vec<u64>,
    busy_ns: Vec<u64>,
    peers: Vec<BTreeMap<SessionId, Peer>>,
    /// When each server's next timer fires.
    timers_ns: Vec<Option<u64>>,
    /// The session of each relay at its source.
    uplinks: Vec<Option<SessionId>>,
    assemblers: BTreeMap<(usize, SessionId), Assembler>,
    /// The last arrival in each direction of a connection, so that bytes keep their order.
    last_ns: BTreeMap<(usize, SessionId, bool), u64>,
    clients: Vec<Client>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    arrivals: BTreeMap<u64, Arrival>,
    number: u64,
    now_ns: u64,
    dice: Dice,
}

const MONITOR: &str = r#"{"id":0,"method":"monitor_cond_since","params":["Bench","m",{"Item":[{"columns":["name","number","up","addresses","options"]}]},"00000000-0000-0000-0000-000000000000"]}"#;

/// A little more than the longest time for which a flush is postponed.
const TIMER_MAX_NS: u64 = 100_000_000;

/// Precedes the number of a change in an update.
const MARK: &[u8] = b"item-";

fn insertion(number: usize) -> String {
    let (high, low) = (number / 256 % 256, number % 256);
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"insert","table":"Item","row":{{"name":"item-{number:08}","number":{number},"up":true,"addresses":["set",["0a:00:00:00:{high:02x}:{low:02x}","10.0.{high}.{low}"]],"options":["map",[["requested-chassis","host-{low}"],["mcast_flood","true"]]]}}}}],"id":{number}}}"#
    )
}

/// Executes a plan.
///
/// # Errors
/// A server behaved as the study does not expect, or a client lacks a change.
pub fn run(plan: &Plan, costs: &Costs) -> Result<Vec<Level>, String> {
    let mut tree = Tree::new(plan)?;
    // A newly served relay closes its earlier sessions, so each level starts once the level above
    // is served.
    for level in 0..=plan.relays.len() {
        for node in 0..tree.nodes.len() {
            if tree.levels[node] == level {
                tree.drain(node, tree.now_ns, costs)?;
            }
        }
        tree.run(costs)?;
    }
    if !tree.nodes.iter().all(Node::is_ready) {
        return Err("a relay has not reached its source".to_owned());
    }
    tree.connect_clients(plan, costs);
    tree.run(costs)?;
    let writer = tree.nodes[0].machine.connect();
    let began_ns = tree
        .free_ns
        .iter()
        .copied()
        .max()
        .unwrap_or(0)
        .max(tree.now_ns);
    tree.busy_ns.fill(0);
    let mut at_ns = began_ns + 1_000_000;
    let mut commits = Vec::new();
    for number in 0..plan.commits {
        let draw = ((tree.dice.draw() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        at_ns += (-draw.ln() * 1e9 / plan.rate as f64) as u64;
        commits.push(at_ns);
        let bytes = insertion(number).into_bytes();
        tree.post(
            at_ns,
            Arrival::Request {
                node: 0,
                session: writer,
                bytes,
            },
        );
    }
    tree.run(costs)?;
    tree.report(plan, &commits, at_ns - began_ns)
}

impl Tree {
    fn new(plan: &Plan) -> Result<Tree, String> {
        let mut dice = Dice::new(plan.seed);
        let mut nodes = vec![Node::source(dice.draw())?];
        let (mut levels, mut sources) = (vec![0], vec![0]);
        let mut above = 0..1;
        for (level, count) in plan.relays.iter().enumerate() {
            let first = nodes.len();
            for number in 0..*count {
                nodes.push(Node::relay(dice.draw()));
                levels.push(level + 1);
                sources.push(above.start + number * above.len() / count);
            }
            above = first..nodes.len();
        }
        let count = nodes.len();
        Ok(Tree {
            nodes,
            levels,
            sources,
            free_ns: vec![0; count],
            busy_ns: vec![0; count],
            peers: vec![BTreeMap::new(); count],
            timers_ns: vec![None; count],
            uplinks: vec![None; count],
            assemblers: BTreeMap::new(),
            last_ns: BTreeMap::new(),
            clients: Vec::new(),
            queue: BinaryHeap::new(),
            arrivals: BTreeMap::new(),
            number: 0,
            now_ns: 0,
            dice,
        })
    }

    fn connect_clients(&mut self, plan: &Plan, costs: &Costs) {
        let last = plan.relays.len();
        let leaves: Vec<usize> = (0..self.nodes.len())
            .filter(|it| self.levels[*it] == last)
            .collect();
        let mut at: Vec<usize> = Vec::new();
        for node in (0..self.nodes.len()).filter(|it| self.levels[*it] < last) {
            at.extend(std::iter::repeat_n(node, plan.observers));
        }
        at.extend((0..plan.clients).map(|number| leaves[number % leaves.len()]));
        for node in at {
            let session = self.nodes[node].machine.connect();
            self.peers[node].insert(session, Peer::Client(self.clients.len()));
            self.clients.push(Client {
                level: self.levels[node],
                got_ns: vec![None; plan.commits],
            });
            let at_ns = self.arrival_ns(self.now_ns, node, session, true, costs);
            let bytes = MONITOR.as_bytes().to_vec();
            self.post(
                at_ns,
                Arrival::Request {
                    node,
                    session,
                    bytes,
                },
            );
        }
    }

    fn post(&mut self, at_ns: u64, arrival: Arrival) {
        self.number += 1;
        self.queue.push(Reverse((at_ns, self.number)));
        self.arrivals.insert(self.number, arrival);
    }

    fn delay_ns(&mut self, costs: &Costs) -> u64 {
        costs.hop_ns / 2 + self.dice.below(costs.hop_ns as usize + 1) as u64
    }

    /// When bytes that leave now arrive over this session's connection, ns.
    fn arrival_ns(
        &mut self,
        from_ns: u64,
        node: usize,
        session: SessionId,
        is_up: bool,
        costs: &Costs,
    ) -> u64 {
        let at_ns = from_ns + self.delay_ns(costs);
        let last_ns = self.last_ns.entry((node, session, is_up)).or_default();
        *last_ns = at_ns.max(*last_ns);
        *last_ns
    }

    fn run(&mut self, costs: &Costs) -> Result<(), String> {
        while let Some(Reverse((at_ns, number))) = self.queue.pop() {
            self.now_ns = at_ns;
            if let Some(arrival) = self.arrivals.remove(&number) {
                self.arrive(at_ns, arrival, costs)?;
            }
        }
        Ok(())
    }

    fn arrive(&mut self, at_ns: u64, arrival: Arrival, costs: &Costs) -> Result<(), String> {
        match arrival {
            Arrival::Dialled { source, relay } => {
                let session = self.nodes[source].machine.connect();
                self.peers[source].insert(session, Peer::Relay(relay));
                self.uplinks[relay] = Some(session);
                let at_ns = at_ns + self.delay_ns(costs);
                self.post(at_ns, Arrival::Connected { relay });
                Ok(())
            }
            Arrival::Connected { relay } => {
                let start_ns = at_ns.max(self.free_ns[relay]);
                self.nodes[relay].source_event(start_ns, Input::Connected);
                self.drain(relay, start_ns, costs)
            }
            Arrival::Request {
                node,
                session,
                bytes,
            } => {
                let assembler = self.assemblers.entry((node, session)).or_default();
                let texts: Result<Vec<_>, _> = assembler.texts(&bytes).collect();
                for text in texts.map_err(|error| error.to_string())? {
                    let start_ns = self.execute(node, at_ns, costs);
                    self.nodes[node].text(start_ns, session, text.into_owned());
                    self.drain(node, start_ns, costs)?;
                }
                Ok(())
            }
            Arrival::Updates { relay, bytes } => {
                let start_ns = self.execute(relay, at_ns, costs);
                self.nodes[relay].source_event(start_ns, Input::Received(&bytes));
                self.nodes[relay].source_event(start_ns, Input::Received(&[]));
                self.drain(relay, start_ns, costs)
            }
            Arrival::Timer { node } => {
                if self.timers_ns[node].is_some_and(|due_ns| due_ns <= at_ns) {
                    self.timers_ns[node] = None;
                }
                let start_ns = at_ns.max(self.free_ns[node]);
                self.drain(node, start_ns, costs)
            }
            Arrival::Client { client, bytes } => {
                let got_ns = &mut self.clients[client].got_ns;
                for at in marks(&bytes) {
                    let digits = bytes.get(at + MARK.len()..at + MARK.len() + 8);
                    let number =
                        digits.and_then(|it| str::from_utf8(it).ok()?.parse::<usize>().ok());
                    if let Some(got) = number.and_then(|number| got_ns.get_mut(number)) {
                        got.get_or_insert(at_ns);
                    }
                }
                Ok(())
            }
        }
    }

    /// A core executes a message. Returns when it is done, ns.
    fn execute(&mut self, node: usize, at_ns: u64, costs: &Costs) -> u64 {
        let end_ns = at_ns.max(self.free_ns[node]) + costs.message_ns;
        self.free_ns[node] = end_ns;
        self.busy_ns[node] += costs.message_ns;
        end_ns
    }

    /// Lets a server do everything it can, and sends its outputs one after the other.
    fn drain(&mut self, node: usize, start_ns: u64, costs: &Costs) -> Result<(), String> {
        let mut free_ns = start_ns;
        for sent in self.nodes[node].drain(start_ns)? {
            let length = match &sent {
                Sent::Client(_, bytes) | Sent::Source(bytes) => bytes.len() as u64,
                Sent::Dial => 0,
            };
            let cost_ns = length * costs.byte_ps / 1_000_000;
            free_ns += cost_ns;
            self.busy_ns[node] += cost_ns;
            match sent {
                Sent::Client(session, bytes) => {
                    let at_ns = self.arrival_ns(free_ns, node, session, false, costs);
                    match self.peers[node].get(&session).copied() {
                        Some(Peer::Client(client)) => {
                            self.post(at_ns, Arrival::Client { client, bytes });
                        }
                        Some(Peer::Relay(relay)) => {
                            self.post(at_ns, Arrival::Updates { relay, bytes });
                        }
                        None => {}
                    }
                }
                Sent::Dial => {
                    let (at_ns, source) = (free_ns + self.delay_ns(costs), self.sources[node]);
                    self.post(
                        at_ns,
                        Arrival::Dialled {
                            source,
                            relay: node,
                        },
                    );
                }
                Sent::Source(bytes) => {
                    if let Some(session) = self.uplinks[node] {
                        let source = self.sources[node];
                        let at_ns = self.arrival_ns(free_ns, source, session, true, costs);
                        self.post(
                            at_ns,
                            Arrival::Request {
                                node: source,
                                session,
                                bytes,
                            },
                        );
                    }
                }
            }
        }
        self.free_ns[node] = self.free_ns[node].max(free_ns);
        self.set_timer(node, start_ns);
        Ok(())
    }

    /// Sets a server's timer. Flushes are postponed by milliseconds; work due every few seconds
    /// does not matter here.
    fn set_timer(&mut self, node: usize, now_ns: u64) {
        let Some(due_ns) = self.nodes[node].due_ns(now_ns) else {
            return;
        };
        let is_set = self.timers_ns[node].is_some_and(|at_ns| at_ns <= due_ns);
        if due_ns < now_ns + TIMER_MAX_NS && !is_set {
            self.timers_ns[node] = Some(due_ns);
            self.post(due_ns, Arrival::Timer { node });
        }
    }

    fn report(&self, plan: &Plan, commits: &[u64], span_ns: u64) -> Result<Vec<Level>, String> {
        let mut reported = Vec::new();
        for level in 0..=plan.relays.len() {
            let of_level: Vec<&Client> =
                self.clients.iter().filter(|it| it.level == level).collect();
            if of_level.is_empty() {
                continue;
            }
            let mut shares = [Vec::new(), Vec::new(), Vec::new()];
            for (number, commit_ns) in commits.iter().enumerate() {
                let times: Option<Vec<u64>> = of_level.iter().map(|it| it.got_ns[number]).collect();
                let Some(mut times) = times else {
                    return Err(format!("a client of level {level} lacks change {number}"));
                };
                times.sort_unstable();
                let last = times.len() - 1;
                for (share, at) in shares.iter_mut().zip([last / 2, last * 99 / 100, last]) {
                    share.push((times[at] - commit_ns) as f64 / 1e6);
                }
            }
            for share in &mut shares {
                share.sort_unstable_by(f64::total_cmp);
            }
            let nodes = (0..self.nodes.len()).filter(|it| self.levels[*it] == level);
            let busy_ns = nodes.map(|it| self.busy_ns[it]).max().unwrap_or(0);
            reported.push(Level {
                level,
                clients: of_level.len(),
                half_ms: shares[0][commits.len() / 2],
                most_ms: shares[1][commits.len() / 2],
                all_ms: shares[2][commits.len() / 2],
                worst_ms: shares[2][commits.len() - 1],
                changes: of_level.len() * commits.len(),
                busy_percent: busy_ns as f64 * 100.0 / span_ns as f64,
            });
        }
        Ok(reported)
    }
}

/// The positions of [`MARK`].
fn marks(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let windows = bytes.windows(MARK.len()).enumerate();
    windows
        .filter(|(_, window)| *window == MARK)
        .map(|(at, _)| at)
}
