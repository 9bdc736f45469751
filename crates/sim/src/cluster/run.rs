//! One run: members, disks, network and sessions under a scheduler. The scheduler draws which part
//! acts next, and which faults occur when.

mod calm;
mod faults;
mod outputs;
mod summary;

pub use summary::Summary;

use corvid_consensus::{Input, MemberEvent, Output, PeerMessage};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Sid};

use super::file::{self, Identity};
use super::host::{MemberHost, OUTPUTS_MAX};
use super::oracle::Oracle;
use super::registers::{KEYS, News, Swap};
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::disk::{Crash, SimDisk};
use crate::world::host_faults;
use crate::world::network::messages::{Arrival, MessageNetwork, Weather};
use crate::world::seeds;
use crate::world::trace::{Trace, Tracing};
use faults::Faults;

/// Number of actions by sessions, operators and chance in a run.
const ACTIONS: usize = 70;

/// Maximum number of steps at one moment of virtual time. A member that never comes to rest is an
/// error.
const STEPS_PER_MS_MAX: usize = 20_000;

/// A step that can be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Inbox(usize),
    Reply(usize),
    Event(usize),
    Request(usize),
    Disk(usize),
    Rewrite(usize),
    Snapshot(usize),
    /// The hash of the file's snapshot is checked for a peer.
    Check(usize),
    /// A part of a peer's snapshot has reached the disk.
    Part(usize),
    Time(usize),
}

/// A message in flight.
#[derive(Clone, Debug)]
struct Sent {
    /// The sender's cluster, if the sender knew it.
    cluster: Option<Cid>,
    message: PeerMessage,
}

pub(super) struct MemberRun {
    dice: Dice,
    trace: Trace,
    now_ms: u64,
    hosts: Vec<MemberHost>,
    network: MessageNetwork<Sent>,
    oracle: Oracle,
    faults: Faults,
    /// Open transactions of the sessions at each host.
    sessions: Vec<Vec<u64>>,
    next_number: u64,
    /// Draws which files rot; only in runs with rot.
    rot: Option<Dice>,
    steps_at: (u64, usize),
    /// The last list of possible steps. Its memory is reused.
    choices: Vec<Choice>,
    summary: Summary,
}

/// Runs a seed.
///
/// # Errors
/// A description of the failure.
pub fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
    let trace = Trace::new(tracing);
    let mut run = MemberRun::new(seed, trace);
    let outcome = run.run();
    if let Err(problem) = &outcome {
        run.trace.line(format_args!("PROBLEM: {problem}"));
    }
    run.summary.hash = run.trace.hash();
    run.summary.commits = run.oracle.commits();
    run.summary.leaderships = run.oracle.leaderships();
    run.summary.changes = run.oracle.changes();
    run.summary.judged = run.oracle.judged();
    run.summary.lost = run.network.lost;
    run.summary.doubled = run.network.doubled;
    run.summary.virtual_ms = run.now_ms;
    outcome.map(|()| run.summary)
}

fn uuid(dice: &mut Dice) -> Uuid {
    let high = u128::from(dice.draw());
    Uuid((high << 64 | u128::from(dice.draw())).to_be_bytes())
}

impl MemberRun {
    fn new(seed: u64, trace: Trace) -> MemberRun {
        let mut dice = Dice::new(seed);
        let count = *dice.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7]);
        let faults = Faults::draw(&mut dice);
        trace.line(format_args!("{count} members, {faults:?}"));
        let cid = Cid::new(uuid(&mut dice));
        let identities: Vec<Identity> = (0..count)
            .map(|number| Identity {
                sid: Sid(uuid(&mut dice)),
                address: format!("tcp:10.0.0.{}:6641", number + 1),
                cid,
            })
            .collect();
        let servers = file::servers(&identities);
        let hosts = identities
            .into_iter()
            .map(|identity| {
                let bytes = file::first(&identity, &servers);
                let seed = dice.draw();
                let disk = SimDisk::new(seed, trace.clone(), bytes);
                disk.keep_history(seeds::policy(seed));
                let rate = faults.hosts.draw_rate(&mut dice);
                let clock = Clock::new(0, dice.below(1_000_000) as u64, rate);
                MemberHost::new(identity, disk, dice.draw(), clock)
            })
            .collect();
        let mut network = MessageNetwork::new(dice.draw());
        network.set_weather(faults.weather);
        MemberRun {
            trace,
            now_ms: 0,
            hosts,
            network,
            oracle: Oracle::new((0..count).collect()),
            faults,
            sessions: vec![Vec::new(); count],
            next_number: 1,
            rot: Some(Dice::new(seed ^ 0x0072_6f74)).filter(|_| seed.is_multiple_of(4)),
            steps_at: (0, 0),
            choices: Vec::new(),
            summary: Summary {
                members: count as u64,
                ..Summary::default()
            },
            dice,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.advance(2500)?;
        for _ in 0..ACTIONS {
            self.do_something()?;
            let pause_ms = *self.dice.pick(&[0, 1, 10, 50, 200, 500, 1500]);
            let pause_ms = self.dice.below(pause_ms + 1) as u64;
            self.advance(pause_ms)?;
        }
        self.calm_down()?;
        self.oracle.finish()
    }

    /// A session at a host requests transactions.
    fn submit(&mut self, host: usize, count: usize) -> Result<(), String> {
        for _ in 0..count {
            let swap = Swap {
                number: self.next_number,
                key: self.dice.below(KEYS) as u8,
                is_refused: self.dice.chance(8),
            };
            let life = self.hosts[host].life.as_mut();
            let Some(life) = life.filter(|life| life.ended.is_none()) else {
                return Ok(());
            };
            self.next_number += 1;
            self.summary.transactions += 1;
            self.trace.line(format_args!("host {host}: {swap:?}"));
            self.oracle.sent(swap);
            self.sessions[host].push(swap.number);
            life.registers.submit(swap);
            self.news(host)?;
        }
        Ok(())
    }

    /// Lets virtual time pass.
    fn advance(&mut self, for_ms: u64) -> Result<(), String> {
        let until_ms = self.now_ms + for_ms;
        loop {
            if self.step()? {
                continue;
            }
            match self.next_ms() {
                Some(at_ms) if at_ms <= until_ms => self.now_ms = self.now_ms.max(at_ms),
                _ => break,
            }
        }
        self.now_ms = until_ms;
        Ok(())
    }

    /// Returns the next time at which something can happen, ms.
    fn next_ms(&self) -> Option<u64> {
        let mut next = self.network.next_ms();
        let mut add = |at_ms: u64| next = Some(next.map_or(at_ms, |next| next.min(at_ms)));
        for host in &self.hosts {
            if let Some(at_ms) = host.start_ms {
                add(at_ms);
            }
            let Some(life) = host.life.as_ref().filter(|life| life.ended.is_none()) else {
                continue;
            };
            let deadline_ms = life.member.deadline_ms();
            if deadline_ms < u64::MAX {
                add(host.clock.global(deadline_ms).max(host.paused_ms));
            }
            let threads = life.file.effects();
            if threads.disk_has_work() {
                add(life.disk_ms.max(host.paused_ms));
            }
            let has_queue = !life.inbox.is_empty()
                || !life.replies.is_empty()
                || !life.events.is_empty()
                || !life.registers.requests.is_empty()
                || life.wants_snapshot
                || threads.rewrite_has_work()
                || threads.has_check()
                || threads.has_part();
            if has_queue {
                add(host.paused_ms);
            }
        }
        next.map(|next| next.max(self.now_ms))
    }

    /// Lists the steps that can be taken now.
    fn list_choices(&self, choices: &mut Vec<Choice>) {
        choices.clear();
        let now_ms = self.now_ms;
        for (number, host) in self.hosts.iter().enumerate() {
            let Some(life) = host.life.as_ref().filter(|_| host.paused_ms <= now_ms) else {
                continue;
            };
            if life.ended.is_some() {
                continue;
            }
            if !life.inbox.is_empty() {
                choices.push(Choice::Inbox(number));
            }
            if !life.replies.is_empty() {
                choices.push(Choice::Reply(number));
            }
            if !life.events.is_empty() {
                choices.push(Choice::Event(number));
            }
            if !life.registers.requests.is_empty() {
                choices.push(Choice::Request(number));
            }
            let threads = life.file.effects();
            if threads.disk_has_work() && life.disk_ms <= now_ms {
                choices.push(Choice::Disk(number));
            }
            if threads.rewrite_has_work() {
                choices.push(Choice::Rewrite(number));
            }
            if threads.has_check() {
                choices.push(Choice::Check(number));
            }
            if threads.has_part() {
                choices.push(Choice::Part(number));
            }
            if life.wants_snapshot {
                choices.push(Choice::Snapshot(number));
            }
            if life.member.deadline_ms() <= host.clock.local(now_ms) {
                choices.push(Choice::Time(number));
            }
        }
    }

    /// Takes one step. Returns false when no step is possible now.
    fn step(&mut self) -> Result<bool, String> {
        let (at_ms, steps) = self.steps_at;
        self.steps_at = (
            self.now_ms,
            if at_ms == self.now_ms { steps + 1 } else { 0 },
        );
        if steps > STEPS_PER_MS_MAX {
            return Err(format!("the cluster spins: {:?}", self.choices));
        }
        for number in 0..self.hosts.len() {
            if self.hosts[number]
                .start_ms
                .is_some_and(|at| at <= self.now_ms)
            {
                self.start(number)?;
                return Ok(true);
            }
        }
        if self.network.count() > 50_000 {
            return Err(format!("{} messages are under way", self.network.count()));
        }
        while let Some((to, arrival)) = self.network.take(self.now_ms) {
            self.arrive(to, arrival)?;
        }
        let mut choices = std::mem::take(&mut self.choices);
        self.list_choices(&mut choices);
        self.choices = choices;
        if self.choices.is_empty() {
            return Ok(false);
        }
        // Threads are occasionally slow.
        if self.dice.chance(2) {
            self.now_ms += 1;
        }
        self.summary.steps += 1;
        let choice = self.choices[self.dice.below(self.choices.len())];
        self.act(choice)?;
        Ok(true)
    }

    fn arrive(&mut self, to: usize, arrival: Arrival<Sent>) -> Result<(), String> {
        let cluster = match &arrival {
            Arrival::Message(_, sent) => sent.cluster,
            Arrival::Up(peer) => self.hosts[*peer].identity.cid,
            Arrival::Down(_) | Arrival::Refused(_) => None,
        };
        // A joining server adopts the cluster of the first message that names one, as `Peers` does.
        if let Some(cid) = cluster.filter(|_| self.hosts[to].identity.cid.is_none()) {
            self.hosts[to].identity.cid = Some(cid);
            self.queue(to, Input::LearnedCluster(cid));
        }
        let input = match arrival {
            Arrival::Message(from, Sent { message, .. }) => Input::Peer {
                from: self.hosts[from].identity.sid,
                message,
            },
            Arrival::Up(peer) => Input::PeerUp(self.hosts[peer].identity.sid),
            Arrival::Down(peer) => Input::PeerDown(self.hosts[peer].identity.sid),
            Arrival::Refused(peer) => Input::PeerRefused(self.hosts[peer].identity.sid),
        };
        if let Some(life) = &mut self.hosts[to].life {
            life.inbox.push_back(input);
            if life.inbox.len() > 20_000 {
                return Err(format!("host {to} has {} inputs", life.inbox.len()));
            }
        }
        Ok(())
    }

    fn act(&mut self, choice: Choice) -> Result<(), String> {
        let (Choice::Inbox(number)
        | Choice::Reply(number)
        | Choice::Event(number)
        | Choice::Request(number)
        | Choice::Disk(number)
        | Choice::Rewrite(number)
        | Choice::Snapshot(number)
        | Choice::Check(number)
        | Choice::Part(number)
        | Choice::Time(number)) = choice;
        let host = &mut self.hosts[number];
        let local_ms = host.clock.local(self.now_ms);
        let Some(life) = &mut host.life else {
            return Ok(());
        };
        let inputs: Vec<Input> = match choice {
            Choice::Inbox(_) => life.inbox.pop_front().into_iter().collect(),
            Choice::Request(_) => {
                let request = life.registers.requests.pop_front();
                request.map(Input::Database).into_iter().collect()
            }
            Choice::Time(_) => vec![Input::Time],
            Choice::Reply(_) => match life.replies.pop_front() {
                Some(reply) => host.receive(self.now_ms, reply),
                None => Vec::new(),
            },
            Choice::Event(_) => {
                if let Some(event) = life.events.pop_front() {
                    self.event(number, event)?;
                }
                Vec::new()
            }
            Choice::Snapshot(_) => {
                life.wants_snapshot = false;
                let applied = &life.registers.applied;
                let index = applied.index;
                let eid = applied.eid.unwrap_or(file::FIRST_EID);
                match life
                    .file
                    .keep_snapshot(None, applied.to_snapshot(), Vec::new())
                {
                    Ok(()) => {
                        life.snapshot = Some(index);
                        vec![Input::SnapshotMade { index, eid }]
                    }
                    // An earlier part is not written yet.
                    Err(_) => Vec::new(),
                }
            }
            Choice::Rewrite(_) => {
                let reply = life.file.effects_mut().work_on_rewrite();
                life.replies.extend(reply);
                Vec::new()
            }
            Choice::Check(_) => {
                let (to, index, outcome) = life.file.effects_mut().check();
                let checked = life.file.snapshot_checked(local_ms, to, index, outcome);
                let (input, is_damaged) = checked;
                let damaged = is_damaged.then_some(Input::FileDamaged);
                damaged.into_iter().chain([input]).collect()
            }
            Choice::Part(_) => {
                let (reception, outcome) = life.file.effects_mut().take_part();
                let input = life.file.written_back(reception, outcome);
                input.into_iter().collect()
            }
            Choice::Disk(_) => {
                let slow_ms = self.faults.hosts.disk_ms;
                let took_ms = self.dice.below(slow_ms + 1) as u64;
                let mut dice = self.dice.clone();
                let replies = life.file.effects_mut().work_on_disk(&mut dice);
                self.dice = dice;
                life.replies.extend(replies);
                life.disk_ms = self.now_ms + took_ms;
                Vec::new()
            }
        };
        if !inputs.is_empty() {
            let inputs = self.with_others(number, inputs);
            for input in &inputs {
                self.trace
                    .line(format_args!("{} host {number} <- {input:?}", self.now_ms));
            }
            let outputs = self.hosts[number].handle(self.now_ms, inputs);
            self.carry_out(number, outputs)?;
        }
        if self.hosts[number].disk.is_down() {
            self.crashed(number);
        }
        if let Some(offence) = self.hosts[number].disk.offence() {
            return Err(format!("host {number}: {offence}"));
        }
        Ok(())
    }

    /// The member's thread may find several inputs at once. It handles all of them before it takes
    /// an output.
    fn with_others(&mut self, number: usize, mut inputs: Vec<Input>) -> Vec<Input> {
        if !self.dice.chance(15) {
            return inputs;
        }
        let count = 1 + self.dice.below(4);
        if let Some(life) = &mut self.hosts[number].life {
            let count = count.min(life.inbox.len());
            inputs.extend(life.inbox.drain(..count));
        }
        inputs
    }

    fn carry_out(&mut self, number: usize, outputs: Vec<Output>) -> Result<(), String> {
        if outputs.len() >= OUTPUTS_MAX {
            return Err(format!(
                "host {number} has outputs without end: {:?}",
                outputs.last()
            ));
        }
        for output in outputs {
            self.trace
                .line(format_args!("{} host {number} -> {output:?}", self.now_ms));
            self.output(number, output)?;
            if self.hosts[number].disk.is_down() {
                return Ok(());
            }
        }
        self.check_leader(number)
    }

    fn check_leader(&mut self, number: usize) -> Result<(), String> {
        let host = &self.hosts[number];
        let Some(life) = &host.life else {
            return Ok(());
        };
        let (role, term) = life.member.role_and_term();
        if role == corvid_consensus::member::Role::Leader {
            self.oracle.leads(number, term, &host.log)?;
        }
        Ok(())
    }

    /// The database of a host handles an event.
    fn event(&mut self, number: usize, event: MemberEvent) -> Result<(), String> {
        self.trace.line(format_args!(
            "{} registers {number} <- {event:?}",
            self.now_ms
        ));
        let host = &mut self.hosts[number];
        let Some(life) = &mut host.life else {
            return Ok(());
        };
        let outcome = match event {
            MemberEvent::Replaced { index, term, eid } => {
                let body = file::snapshot_body(&host.disk.open());
                match body.filter(|(found, _)| *found >= index) {
                    // A later snapshot may have been installed by now; its event follows.
                    Some((found, _)) if found > index => Ok(()),
                    Some((_, body)) => life.registers.replaced(index, term, eid, &body),
                    None => Err(format!("the file has no snapshot through {index}")),
                }
            }
            event => life.registers.event(event),
        };
        outcome.map_err(|problem| format!("host {number}: {problem}"))?;
        self.news(number)
    }

    fn news(&mut self, number: usize) -> Result<(), String> {
        let Some(life) = &mut self.hosts[number].life else {
            return Ok(());
        };
        let applied = &life.registers.applied;
        let (index, applied_count) = (applied.index, applied.count);
        for news in std::mem::take(&mut life.registers.news) {
            match news {
                News::Outcome(transaction, outcome) => {
                    self.trace
                        .line(format_args!("transaction {transaction}: {outcome:?}"));
                    self.oracle.returned(transaction, outcome)?;
                    self.sessions[number].retain(|open| *open != transaction);
                    self.summary.acknowledged += 1;
                }
                News::Unknown(transaction) => {
                    self.summary.unknown += 1;
                    self.oracle.orphaned(transaction);
                    self.sessions[number].retain(|open| *open != transaction);
                }
                News::Never(eid, transaction) => self.oracle.never(eid, transaction)?,
                News::Found(eid) => {
                    self.summary.found += 1;
                    self.oracle.found(eid)?;
                }
                News::Executed(eid) => {
                    self.summary.forwarded += 1;
                    self.oracle.executed(eid)?;
                }
                News::Applied(at, eid, data) => {
                    self.oracle.applied(number, at, eid, &data)?;
                }
                News::Leads(term) => self.oracle.began(number, term, index)?,
            }
        }
        let count = self.oracle.count(index);
        if count != applied_count {
            return Err(format!(
                "host {number} has applied {applied_count} entries through {index}, of {count}"
            ));
        }
        Ok(())
    }

    /// A new server is to join the cluster.
    fn join(&mut self) {
        let number = self.hosts.len();
        let mut remotes: Vec<String> = Vec::new();
        for member in self.oracle.members() {
            if remotes.is_empty() || self.dice.chance(50) {
                remotes.push(self.hosts[*member].identity.address.clone());
            }
        }
        let identity = Identity {
            sid: Sid(uuid(&mut self.dice)),
            address: format!("tcp:10.0.0.{}:6641", number + 1),
            cid: None,
        };
        self.trace.line(format_args!(
            "{} host {number} joins through {remotes:?}",
            self.now_ms
        ));
        self.summary.joins += 1;
        let bytes = file::joining(&identity, remotes);
        let seed = self.dice.draw();
        let disk = SimDisk::new(seed, self.trace.clone(), bytes);
        disk.keep_history(seeds::policy(seed));
        let rate = self.faults.hosts.draw_rate(&mut self.dice);
        let clock = Clock::new(self.now_ms, self.dice.below(1_000_000) as u64, rate);
        let mut host = MemberHost::new(identity, disk, self.dice.draw(), clock);
        host.start_ms = Some(self.now_ms);
        self.hosts.push(host);
        self.sessions.push(Vec::new());
    }

    /// Starts a host.
    fn start(&mut self, number: usize) -> Result<(), String> {
        let now_ms = self.now_ms;
        self.trace
            .line(format_args!("{now_ms} host {number} starts"));
        let host = &mut self.hosts[number];
        host.start(now_ms)
            .map_err(|problem| format!("host {number}: {problem}"))?;
        self.network.start(now_ms, number);
        // A commit may have reached the file before any other part of the system has seen it.
        let host = &mut self.hosts[number];
        if let Some(life) = &mut host.life {
            // The first sync may take long, so that messages arrive before it ends.
            let slow_ms = *self.dice.pick(&[0, 0, 20, 2000]);
            life.disk_ms = now_ms + self.dice.below(slow_ms + 1) as u64;
            let through = std::mem::replace(&mut life.reported, host.log.base);
            self.committed(number, through)?;
        }
        let outputs: Vec<Output> = match &mut self.hosts[number].life {
            Some(life) => std::iter::from_fn(|| life.member.next_output())
                .take(OUTPUTS_MAX)
                .collect(),
            None => Vec::new(),
        };
        self.carry_out(number, outputs)?;
        if self.hosts[number].disk.is_down() {
            self.crashed(number);
        }
        Ok(())
    }

    /// The machine of a host has gone down.
    fn crashed(&mut self, number: usize) {
        let crash = self.faults.hosts.draw_crash(&mut self.dice);
        let down_ms = host_faults::draw_down_ms(&mut self.dice);
        self.trace.line(format_args!(
            "{} host {number} is down: {crash:?}, for {down_ms} ms",
            self.now_ms
        ));
        for transaction in self.sessions[number].drain(..) {
            self.oracle.orphaned(transaction);
        }
        let host = &mut self.hosts[number];
        host.end();
        let synced = host.synced_term();
        self.oracle.forget_unsynced(number, synced);
        let host = &mut self.hosts[number];
        let seen = host.disk.restart(crash);
        if seen == Crash::PowerLoss {
            self.summary.power_losses += 1;
        }
        self.summary.restarts += 1;
        host.start_ms = Some(self.now_ms + down_ms);
        self.network.stop(self.now_ms, number);
        self.rot(number);
    }

    fn set_weather(&mut self, weather: Weather) {
        self.network.set_weather(weather);
    }
}
