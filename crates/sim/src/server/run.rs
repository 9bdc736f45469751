//! One run: clients, server and disk under a scheduler. The scheduler draws which part acts next,
//! which operations fail and when the machine goes down.

mod lifecycle;
mod quiescence;

use std::cell::RefCell;
use std::collections::BTreeSet;

use corvid_data::HashSeed;
use corvid_json::Value;
use corvid_service::Now;

use super::client::{Client, LOCKS, View};
use super::history::{History, Judge, Observation};
use super::machine::{Choice, Machine, ToClient};
use super::workload::{self, Txn};
use crate::world::dice::Dice;
use crate::world::disk::{Crash, Moment, SimDisk, Troubles};
use crate::world::seeds::{self, Simulation};
use crate::world::trace::{Trace, Tracing};

const CLIENTS: usize = 4;

/// Number of actions by clients, operators and chance in a run.
const ACTIONS: usize = 90;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Statistics of a run, which show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Hash of the trace.
    pub hash: u64,
    /// Transactions sent.
    pub transactions: u64,
    /// Restarts after a power loss.
    pub power_losses: u64,
    /// Restarts after a kill.
    pub kills: u64,
    /// New files put in place, as far as their requests were answered.
    pub compactions: u64,
    /// Conversions that succeeded.
    pub conversions: u64,
    /// Commits that were undone because they could not be stored.
    pub store_failures: u64,
    /// Files whose end was damaged when they were opened.
    pub damages: u64,
    /// Removals of the database, in the middle of rewrites.
    pub removals: u64,
    /// Batches that a shard executed.
    pub inline_batches: u64,
    /// Transactions that a shard rolled back and left to the database thread.
    pub rolled_back: u64,
    /// Writes of the holder of the database that failed; the disk thread cuts off their remains.
    pub inline_failures: u64,
    /// Batches of the database thread that ended before a long transaction.
    pub cut_batches: u64,
    /// Records that the holder of the database wrote at once.
    pub inline_writes: u64,
    /// Writes that took long.
    pub slow_writes: u64,
    /// Operations of the disk.
    pub disk_operations: u64,
    /// Segments of history at the end of runs.
    pub segments: u64,
    /// How often history was removed or not kept.
    pub gaps: u64,
}

/// The failures that can happen in a run.
#[derive(Clone, Copy, Debug)]
struct Weather {
    has_full_disk: bool,
    has_write_errors: bool,
    has_sync_errors: bool,
    has_name_errors: bool,
    has_read_errors: bool,
    has_slow_writes: bool,
    /// Share of crashes that are power losses, percent.
    power_losses: usize,
    rots: bool,
}

/// The schemas that the file may have.
#[derive(Clone, Copy, Debug)]
struct Schemas {
    is_wide: bool,
    /// The schema that a conversion with unknown outcome asked for.
    asked: Option<bool>,
    /// The schema before the conversion, as long as a power loss may bring the earlier file back.
    earlier: Option<bool>,
}

impl Simulation for Summary {
    const OPTION: &'static str = "";

    fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
        run(seed, tracing)
    }

    fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash;
        self.transactions += other.transactions;
        self.power_losses += other.power_losses;
        self.kills += other.kills;
        self.compactions += other.compactions;
        self.conversions += other.conversions;
        self.store_failures += other.store_failures;
        self.damages += other.damages;
        self.removals += other.removals;
        self.inline_batches += other.inline_batches;
        self.rolled_back += other.rolled_back;
        self.inline_failures += other.inline_failures;
        self.cut_batches += other.cut_batches;
        self.inline_writes += other.inline_writes;
        self.slow_writes += other.slow_writes;
        self.disk_operations += other.disk_operations;
        self.segments += other.segments;
        self.gaps += other.gaps;
    }
}

struct CrashRun {
    dice: Dice,
    trace: Trace,
    weather: Weather,
    disk: SimDisk,
    hash_seed: HashSeed,
    /// `None` while the server is down.
    machine: Option<Machine>,
    crash: Crash,
    now_ms: u64,
    clients: Vec<Client>,
    view: View,
    history: History,
    schemas: Schemas,
    next_id: i64,
    next_txn: i64,
    /// Requested compactions without a reply.
    compactions: BTreeSet<u64>,
    next_token: u64,
    /// A new file is being written. No other thread writes one.
    is_writing: bool,
    /// The file's first rows are damaged, which ends the run.
    is_over: bool,
    /// At the last crash, the medium held the whole file.
    was_synced: bool,
    lives: u64,
    summary: Summary,
}

/// Runs a seed.
///
/// # Errors
/// A description of the failure.
pub fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
    let trace = Trace::new(tracing);
    let mut run = CrashRun::new(seed, trace)?;
    let outcome = run.run();
    if let Err(problem) = &outcome {
        run.trace.line(format_args!("PROBLEM: {problem}"));
    }
    run.summary.hash = run.trace.hash();
    run.summary.disk_operations = run.disk.operations();
    run.summary.inline_writes = run.disk.writes().inline;
    run.summary.inline_failures = run.disk.writes().inline_failures;
    run.summary.slow_writes = run.disk.writes().slow;
    run.summary.segments = run.disk.segments() as u64;
    run.summary.gaps = run.disk.gaps();
    outcome.map(|()| run.summary)
}

impl CrashRun {
    fn new(seed: u64, trace: Trace) -> Result<CrashRun, String> {
        let mut dice = Dice::new(seed);
        let weather = Weather {
            has_full_disk: dice.chance(35),
            has_write_errors: dice.chance(45),
            has_sync_errors: dice.chance(35),
            has_name_errors: dice.chance(25),
            has_read_errors: dice.chance(15),
            has_slow_writes: dice.chance(30),
            power_losses: *dice.pick(&[0, 50, 70, 100]),
            rots: dice.chance(20),
        };
        let disk = SimDisk::new(dice.draw(), trace.clone(), workload::first_file());
        disk.keep_history(seeds::policy(seed));
        let mut run = CrashRun {
            dice,
            trace,
            weather,
            disk,
            hash_seed: HashSeed::new(seed),
            machine: None,
            crash: Crash::Kill,
            now_ms: 1000,
            clients: Vec::new(),
            view: View::new(),
            history: History::default(),
            schemas: Schemas {
                is_wide: false,
                asked: None,
                earlier: None,
            },
            next_id: 0,
            next_txn: 0,
            compactions: BTreeSet::new(),
            next_token: 0,
            is_writing: false,
            is_over: false,
            was_synced: true,
            lives: 0,
            summary: Summary::default(),
        };
        run.start(Observation::Killed)?;
        Ok(run)
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..ACTIONS {
            self.do_something()?;
            let steps = self.dice.below(10);
            self.advance(steps)?;
            if self.is_over {
                return Ok(());
            }
        }
        self.run_until_idle()?;
        self.draw_crash();
        self.disk.crash();
        self.restart()?;
        if !self.is_over {
            self.run_until_idle()?;
        }
        Ok(())
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 1_700_000_000_000 + self.now_ms as i64,
        }
    }

    fn machine(&mut self) -> &mut Machine {
        self.machine.as_mut().expect("it is up")
    }

    fn do_something(&mut self) -> Result<(), String> {
        let chosen = self.dice.below(self.clients.len());
        match self.dice.below(100) {
            0..58 => {
                let txn = Txn::draw(self.next_txn, &mut self.dice);
                self.transact(chosen, txn);
            }
            58..63 => {
                let method = *self.dice.pick(&["lock", "steal", "unlock", "unlock"]);
                let lock = *self.dice.pick(&LOCKS);
                self.clients[chosen].lock(&mut self.next_id, method, lock);
            }
            63..67 => self.reconnect(chosen),
            67..71 => self.clients[chosen].is_stalled = self.dice.chance(50),
            71..75 => self.compact(),
            75..77 => self.convert(chosen),
            77..80 => {
                let days = self.dice.chance(30);
                self.now_ms += if days {
                    25 * HOUR_MS
                } else {
                    self.dice.below(400) as u64
                };
            }
            80..86 => self.draw_troubles(),
            86..90 => self.plan_crash(40),
            90..91 => self.run_until_idle()?,
            91..92 => self.remove()?,
            _ => self.advance(60)?,
        }
        Ok(())
    }

    fn transact(&mut self, client: usize, txn: Txn) {
        self.next_txn = txn.number + 1;
        self.summary.transactions += 1;
        self.trace
            .line(format_args!("client {client}: {}", txn.params()));
        self.clients[client].transact(&mut self.next_id, &txn);
        self.history.sent(txn, self.disk.failures());
    }

    fn compact(&mut self) {
        self.next_token += 1;
        let token = self.next_token;
        self.trace.line(format_args!("compact {token}"));
        self.compactions.insert(token);
        self.machine().compact(token);
    }

    fn convert(&mut self, client: usize) {
        if self.schemas.asked.is_none() {
            let is_wide = !self.schemas.is_wide;
            self.trace.line(format_args!("convert, wide: {is_wide}"));
            self.schemas.asked = Some(is_wide);
            self.clients[client].convert(&mut self.next_id, is_wide);
        }
    }

    /// Plans a crash of the machine: after the next rename or failure, or within this number of
    /// disk operations.
    pub(super) fn plan_crash(&mut self, operations_max: usize) {
        self.draw_crash();
        let crash = self.crash;
        if self.dice.chance(40) {
            let moment = *self.dice.pick(&[Moment::Rename, Moment::Failure]);
            self.trace
                .line(format_args!("{crash:?} after the next {moment:?}"));
            self.disk.crash_after(moment);
            if moment == Moment::Failure {
                self.draw_troubles();
            }
        } else {
            let operations = 1 + self.dice.below(operations_max) as u64;
            self.trace
                .line(format_args!("{crash:?} in {operations} operations"));
            self.disk.crash_in(operations);
        }
    }

    fn draw_crash(&mut self) {
        self.crash = if self.dice.chance(self.weather.power_losses) {
            Crash::PowerLoss
        } else {
            Crash::Kill
        };
    }

    fn draw_troubles(&mut self) {
        let weather = self.weather;
        let mut troubles = Troubles::default();
        let used = self.disk.used();
        let percent = |possible: bool, dice: &mut Dice| {
            if possible && dice.chance(50) {
                *dice.pick(&[5, 30, 100])
            } else {
                0
            }
        };
        if self.dice.chance(60) {
            let dice = &mut self.dice;
            troubles.write = percent(weather.has_write_errors, dice);
            troubles.cut = percent(weather.has_write_errors, dice) / 2;
            troubles.sync = percent(weather.has_sync_errors, dice);
            troubles.directory = percent(weather.has_sync_errors, dice);
            troubles.name = percent(weather.has_name_errors, dice);
            troubles.read = percent(weather.has_read_errors, dice);
            troubles.slow = percent(weather.has_slow_writes, dice);
            if weather.has_full_disk && dice.chance(70) {
                troubles.capacity = Some(used + dice.below(2000));
            }
        }
        self.disk.set_troubles(troubles);
    }

    /// Takes up to this many steps, restarts included.
    fn advance(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            if self.is_over || !self.step()? {
                break;
            }
            if self.disk.is_down() {
                self.restart()?;
            }
        }
        Ok(())
    }

    /// Takes one step. Returns false when no step is possible.
    fn step(&mut self) -> Result<bool, String> {
        let now = self.now();
        let mut choices = self.machine().choices(now);
        choices.retain(|choice| *choice != Choice::Rewrite || !self.is_writing);
        let of_server = choices.len();
        let can_send = |(number, client): (usize, &Client)| client.can_send().then_some(number);
        let senders: Vec<usize> = self
            .clients
            .iter()
            .enumerate()
            .filter_map(can_send)
            .collect();
        let readers: Vec<usize> = (0..CLIENTS)
            .filter(|number| {
                let client = &self.clients[*number];
                client.is_full && !client.is_stalled
            })
            .collect();
        let all = of_server + senders.len() + readers.len();
        if all == 0 {
            return Ok(false);
        }
        if self.dice.chance(30) {
            self.now_ms += 1;
        }
        let chosen = self.dice.below(all);
        if let Some(choice) = choices.get(chosen) {
            self.act_on_server(*choice)?;
        } else if let Some(sender) = senders.get(chosen - of_server) {
            let client = &mut self.clients[*sender];
            let session = client.session;
            if let Some(text) = client.texts.pop_front() {
                self.machine().text(now, session, text);
            }
        } else {
            let client = &mut self.clients[readers[chosen - of_server - senders.len()]];
            client.is_full = false;
            let session = client.session;
            self.machine().drained(session);
        }
        self.collect()?;
        Ok(true)
    }

    fn act_on_server(&mut self, choice: Choice) -> Result<(), String> {
        let now = self.now();
        let mut dice = self.dice.clone();
        let rewriter = self.machine().act(now, choice, &mut dice);
        self.dice = dice;
        let Some(mut rewriter) = rewriter else {
            return Ok(());
        };
        // The new file is written on a thread of its own: other parts act at each check of
        // `is_wanted`.
        self.is_writing = true;
        let meanwhile = RefCell::new((&mut *self, Ok(())));
        let outcome = rewriter.run(
            || {
                let (run, problem) = &mut *meanwhile.borrow_mut();
                run.step_meanwhile(problem);
                run.machine().end()
            },
            || {
                let (run, problem) = &mut *meanwhile.borrow_mut();
                run.step_meanwhile(problem);
                run.machine().is_rewrite_wanted()
            },
        );
        let (_, problem) = meanwhile.into_inner();
        self.is_writing = false;
        self.machine().written(rewriter, outcome);
        problem
    }

    fn step_meanwhile(&mut self, problem: &mut Result<(), String>) {
        for _ in 0..self.dice.below(12) {
            if self.disk.is_down() || problem.is_err() {
                return;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => *problem = Err(error),
            }
        }
    }

    /// Handles the outputs of the server.
    fn collect(&mut self) -> Result<(), String> {
        let machine = self.machine();
        let records = std::mem::take(&mut machine.records);
        let messages = std::mem::take(&mut machine.to_clients);
        let compacted = std::mem::take(&mut machine.compacted);
        let failures = std::mem::take(&mut machine.store_failures);
        let batches = std::mem::take(&mut machine.batches);
        self.summary.inline_batches += batches.inline;
        self.summary.rolled_back += batches.rolled_back;
        self.summary.cut_batches += batches.cut;
        for (position, record) in records {
            self.history.recorded(position, &record)?;
        }
        if let Some(offence) = self.disk.offence() {
            return Err(offence);
        }
        if failures > 0 {
            self.summary.store_failures += failures;
            self.history.record_failure();
        }
        for (token, result) in compacted {
            self.trace
                .line(format_args!("compacted {token:?}: {result:?}"));
            self.summary.compactions += u64::from(result.is_ok());
            if let Some(token) = token
                && !self.compactions.remove(&token)
            {
                return Err(format!("compaction {token} is answered twice"));
            }
        }
        for (session, message) in messages {
            let client = self.clients.iter().position(|c| c.session == session);
            if let Some(client) = client {
                self.deliver(client, message)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, number: usize, message: ToClient) -> Result<(), String> {
        let client = &mut self.clients[number];
        match message {
            ToClient::Message(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown: String = text.chars().take(400).collect();
                self.trace.line(format_args!("client {number} <- {shown}"));
                let value = Value::parse(&bytes).map_err(|error| error.to_string())?;
                client.is_full = true;
                let mut judge = Judge {
                    history: &mut self.history,
                    failures: self.disk.failures(),
                };
                client
                    .take(&value, &self.view, &mut self.next_id, &mut judge)
                    .map_err(|problem| format!("client {number}: {problem}"))?;
                if let Some(result) = client.converted.take() {
                    self.converted(&result);
                }
            }
            ToClient::Pause(is_paused) => client.is_paused = is_paused,
            ToClient::Closed(why) => {
                self.trace
                    .line(format_args!("client {number} closed: {why:?}"));
                let session = client.session;
                self.machine().disconnect(session);
                self.replace(number);
            }
        }
        Ok(())
    }

    fn converted(&mut self, result: &Result<(), String>) {
        let Some(is_wide) = self.schemas.asked.take() else {
            return;
        };
        if result.is_ok() {
            self.summary.conversions += 1;
            let before = self.schemas.is_wide;
            self.schemas.is_wide = is_wide;
            // If the directory sync fails, the new file has its name, but a power loss may take the
            // name away.
            let is_doubtful = self.disk.failures().directory_syncs > 0;
            self.schemas.earlier = is_doubtful.then_some(before);
        }
    }
}
