//! One run: clients, server and disk under a scheduler that draws who acts next, what goes wrong and when the machine goes down.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;
use corvid_monitor::Version;
use corvid_service::Now;

use super::client::{Client, LOCKS, View};
use super::disk::{Crash, SimDisk, Troubles};
use super::history::{History, Look};
use super::machine::{Choice, Machine, SeededUuids, ToClient};
use super::opening::{self, Opened};
use super::trace::Trace;
use super::workload::{self, Content, Txn};
use crate::dice::Dice;

const CLIENTS: usize = 4;

/// What clients, operators and fate do in a run.
const ACTIONS: usize = 90;

/// Steps within which everything must come to rest once nothing fails any more.
const PATIENCE: usize = 20_000;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// What a run saw, for whoever wants to know that runs are worth their time.
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
    /// New files put in place, as far as anybody asked for them.
    pub compactions: u64,
    /// Conversions that succeeded.
    pub conversions: u64,
    /// Commits that were undone because they could not be stored.
    pub store_failures: u64,
    /// Files whose end was damaged when they were opened.
    pub damages: u64,
    /// Operations of the disk.
    pub disk_operations: u64,
}

/// What fails in a run at all.
#[derive(Clone, Copy, Debug)]
struct Weather {
    has_full_disk: bool,
    has_write_errors: bool,
    has_sync_errors: bool,
    has_name_errors: bool,
    has_read_errors: bool,
    /// In percent of crashes.
    power_losses: usize,
    rots: bool,
}

/// Which schema the file may have.
#[derive(Clone, Copy, Debug)]
struct Schemas {
    is_wide: bool,
    /// A conversion has been asked for, and its end is not known, or not certain to last.
    maybe_wide: Option<bool>,
}

struct Run {
    dice: Dice,
    trace: Trace,
    weather: Weather,
    disk: SimDisk,
    /// `None` only while it is down.
    machine: Option<Machine>,
    crash: Crash,
    now_ms: u64,
    clients: Vec<Client>,
    view: View,
    history: History,
    schemas: Schemas,
    next_id: i64,
    next_txn: i64,
    /// Compactions that were asked for and not answered.
    compactions: BTreeSet<u64>,
    next_token: u64,
    /// A new file is being written; nobody else writes one.
    is_writing: bool,
    /// The file's first rows have rotted away: there is nothing left to do.
    is_over: bool,
    lives: u64,
    summary: Summary,
}

/// Acts the run of a seed; `is_printed`: its trace goes to standard output.
///
/// # Errors
/// What went wrong, in words.
pub fn run(seed: u64, is_printed: bool) -> Result<Summary, String> {
    let trace = Trace::new(is_printed);
    let mut run = Run::new(seed, trace)?;
    let outcome = run.act();
    if let Err(problem) = &outcome {
        run.trace.line(format_args!("PROBLEM: {problem}"));
    }
    run.summary.hash = run.trace.hash();
    run.summary.disk_operations = run.disk.operations();
    outcome.map(|()| run.summary)
}

impl Run {
    fn new(seed: u64, trace: Trace) -> Result<Run, String> {
        let mut dice = Dice::new(seed);
        let weather = Weather {
            has_full_disk: dice.chance(35),
            has_write_errors: dice.chance(35),
            has_sync_errors: dice.chance(35),
            has_name_errors: dice.chance(25),
            has_read_errors: dice.chance(15),
            power_losses: *dice.pick(&[0, 50, 70, 100]),
            rots: dice.chance(20),
        };
        let disk = SimDisk::new(dice.draw(), trace.clone(), workload::first_file());
        let mut run = Run {
            dice,
            trace,
            weather,
            disk,
            machine: None,
            crash: Crash::Kill,
            now_ms: 1000,
            clients: Vec::new(),
            view: View::new(),
            history: History::default(),
            schemas: Schemas {
                is_wide: false,
                maybe_wide: None,
            },
            next_id: 0,
            next_txn: 0,
            compactions: BTreeSet::new(),
            next_token: 0,
            is_writing: false,
            is_over: false,
            lives: 0,
            summary: Summary::default(),
        };
        run.start(Look::Killed)?;
        Ok(run)
    }

    fn act(&mut self) -> Result<(), String> {
        for _ in 0..ACTIONS {
            self.do_something()?;
            let steps = self.dice.below(10);
            self.advance(steps)?;
            if self.is_over {
                return Ok(());
            }
        }
        self.settle()?;
        self.draw_crash();
        self.disk.crash();
        self.restart()?;
        if !self.is_over {
            self.settle()?;
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

    // ---- what happens from outside ----

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
            86..90 => {
                self.draw_crash();
                let operations = 1 + self.dice.below(40) as u64;
                self.trace
                    .line(format_args!("{:?} in {operations} operations", self.crash));
                self.disk.crash_in(operations);
            }
            90..92 => self.settle()?,
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
        if self.schemas.maybe_wide.is_none() {
            let is_wide = !self.schemas.is_wide;
            self.trace.line(format_args!("convert, wide: {is_wide}"));
            self.schemas.maybe_wide = Some(is_wide);
            self.clients[client].convert(&mut self.next_id, is_wide);
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
            if weather.has_full_disk && dice.chance(70) {
                troubles.capacity = Some(used + dice.below(2000));
            }
        }
        self.disk.set_troubles(troubles);
    }

    // ---- clients come and go ----

    fn reconnect(&mut self, client: usize) {
        let session = self.clients[client].session;
        self.machine().disconnect(session);
        self.replace(client);
    }

    /// Somebody new in the place of a client whose session is gone.
    fn replace(&mut self, client: usize) {
        let version = *self
            .dice
            .pick(&[Version::V1, Version::V2, Version::V3, Version::V3]);
        let session = self.machine().connect();
        let fresh = Client::new(session, version, None);
        let earlier = std::mem::replace(&mut self.clients[client], fresh);
        for number in earlier.open_transactions() {
            self.history.orphaned(number);
        }
        let mut new = Client::new(session, version, Some(earlier));
        new.begin(&mut self.next_id);
        self.clients[client] = new;
    }

    // ---- the server's life ----

    fn start(&mut self, look: Look) -> Result<(), String> {
        let opened = self.open(look)?;
        if self.is_over {
            return Ok(());
        }
        let file = self.disk.open();
        let seed = self.dice.draw();
        let now = self.now();
        self.machine = Some(Machine::start(now, seed, &self.disk, file, opened));
        let clients = std::mem::take(&mut self.clients);
        if clients.is_empty() {
            let nobody = || Client::new(corvid_monitor::SessionId(0), Version::V1, None);
            self.clients = (0..CLIENTS).map(|_| nobody()).collect();
        } else {
            self.clients = clients;
        }
        for client in 0..CLIENTS {
            self.replace(client);
        }
        Ok(())
    }

    /// Reads the file and holds it against what must be in it.
    fn open(&mut self, look: Look) -> Result<Opened, String> {
        let opened = self.read()?;
        self.check_opened(&opened, look)?;
        let kept = self.history.check(&Content::of(&opened.database), look)?;
        self.history.restarted(kept, look);
        let is_first = self.lives == 0;
        self.lives += 1;
        if is_first || !self.weather.rots || !self.dice.chance(30) {
            return Ok(opened);
        }
        let first_record = first_record(&self.disk.bytes());
        let Some(rotten) = self.disk.rot(first_record) else {
            return Ok(opened);
        };
        let healthy = Content::of(&opened.database);
        let opened = self.read()?;
        let content = Content::of(&opened.database);
        match &opened.damage {
            None if content != healthy => {
                return Err(format!("byte {rotten} has rotted and nobody noticed"));
            }
            Some(damage) if damage.offset > rotten as u64 => {
                return Err(format!(
                    "byte {rotten} has rotted, and {damage:?} was found"
                ));
            }
            _ => {}
        }
        if content == Content::default() {
            self.is_over = true;
            return Ok(opened);
        }
        self.check_opened(&opened, Look::Rotten)?;
        let kept = self.history.check(&content, Look::Rotten)?;
        self.history.restarted(kept, Look::Rotten);
        Ok(opened)
    }

    fn read(&mut self) -> Result<Opened, String> {
        let file = self.disk.open();
        let mut uuids = SeededUuids(Dice::new(self.dice.draw()));
        let opened = opening::open(&file, &mut uuids);
        let opened = opened.map_err(|damage| damage.report("the file does not open"))?;
        let damage = opened.damage.as_ref().map(|damage| damage.report("a.db"));
        self.trace.line(format_args!(
            "opened, {} records, damage: {damage:?}",
            opened.state.records
        ));
        self.summary.damages += u64::from(damage.is_some());
        Ok(opened)
    }

    fn check_opened(&mut self, opened: &Opened, look: Look) -> Result<(), String> {
        opened.database.audit()?;
        let is_wide = workload::is_wide(opened.database.schema());
        let Schemas {
            is_wide: known,
            maybe_wide: maybe,
        } = self.schemas;
        if is_wide != known && maybe != Some(is_wide) {
            return Err(format!("the schema is wide: {is_wide}, and must not be"));
        }
        self.schemas = Schemas {
            is_wide,
            maybe_wide: None,
        };
        if look == Look::Killed {
            let content = Content::of(&opened.database);
            for client in &self.clients {
                if let Some(lost) = client.seen().difference(&content.txns).next() {
                    return Err(format!(
                        "transaction {lost} was shown to somebody and is lost by a kill"
                    ));
                }
            }
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        self.machine = None;
        self.is_writing = false;
        self.compactions.clear();
        for client in &self.clients {
            for number in client.open_transactions() {
                self.history.orphaned(number);
            }
        }
        match self.crash {
            Crash::PowerLoss => self.summary.power_losses += 1,
            Crash::Kill => self.summary.kills += 1,
        }
        self.disk.set_troubles(Troubles::default());
        let look = match self.disk.restart(self.crash) {
            Crash::PowerLoss => Look::PowerLost,
            Crash::Kill => Look::Killed,
        };
        self.start(look)
    }

    // ---- the scheduler ----

    /// Lets up to so many things happen, restarts included.
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

    /// Lets one thing happen; false when nothing can.
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
        // It writes on a thread of its own: others act whenever it looks up.
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

    /// Takes what the server has brought about.
    fn collect(&mut self) -> Result<(), String> {
        let machine = self.machine();
        let records = std::mem::take(&mut machine.records);
        let messages = std::mem::take(&mut machine.to_clients);
        let compacted = std::mem::take(&mut machine.compacted);
        let failures = std::mem::take(&mut machine.store_failures);
        for (ticket, record) in records {
            self.history.recorded(ticket, &record)?;
        }
        if let Some(offence) = self.disk.offence() {
            return Err(offence);
        }
        if failures > 0 {
            self.summary.store_failures += failures;
            self.history.note_failure();
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
                self.tell(client, message)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, number: usize, message: ToClient) -> Result<(), String> {
        let client = &mut self.clients[number];
        match message {
            ToClient::Message(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown: String = text.chars().take(400).collect();
                self.trace.line(format_args!("client {number} <- {shown}"));
                let value = Value::parse(&bytes).map_err(|error| error.to_string())?;
                client.is_full = true;
                let failures = self.disk.failures();
                client
                    .take(
                        &value,
                        &self.view,
                        &mut self.next_id,
                        &mut self.history,
                        failures,
                    )
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
        let Some(is_wide) = self.schemas.maybe_wide else {
            return;
        };
        if result.is_ok() {
            self.summary.conversions += 1;
            let before = self.schemas.is_wide;
            self.schemas = Schemas {
                is_wide,
                // The new file is there, and nobody knows for how long.
                maybe_wide: (self.disk.failures().directory_syncs > 0).then_some(before),
            };
        } else {
            self.schemas.maybe_wide = None;
        }
    }

    // ---- rest ----

    /// Ends all troubles, waits until nothing happens any more, and checks everything that must then be so.
    fn settle(&mut self) -> Result<(), String> {
        self.trace.line(format_args!("settle"));
        self.disk.set_troubles(Troubles::default());
        self.disk.crash_in(u64::MAX);
        for client in &mut self.clients {
            client.is_stalled = false;
        }
        self.rest()?;
        let seen = self.probe()?;
        if !seen {
            // A sync has failed: it takes a new file, and a new file is enough.
            self.compact();
            self.rest()?;
            if !self.probe()? {
                return Err("nothing can be stored although the disk is well".to_owned());
            }
        }
        self.check_rest()
    }

    /// Stores a durable transaction; false when that fails.
    fn probe(&mut self) -> Result<bool, String> {
        let number = self.next_txn;
        self.transact(0, Txn::plain(number));
        self.rest()?;
        Ok(!self.history.is_void(number))
    }

    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            if self.step()? {
                if self.disk.is_down() {
                    return Err("the machine goes down by itself".to_owned());
                }
                continue;
            }
            let is_content = self.clients.iter().all(Client::is_content);
            if is_content && self.compactions.is_empty() {
                return Ok(());
            }
            let now = self.now();
            match self.machine().next_deadline_ms(now) {
                Some(deadline) => self.now_ms = deadline.max(now.mono_ms + 1),
                None => break,
            }
        }
        let open: BTreeMap<usize, Vec<String>> = self
            .clients
            .iter()
            .map(Client::open_requests)
            .enumerate()
            .collect();
        Err(format!(
            "no rest: open requests {open:?}, compactions {:?}",
            self.compactions
        ))
    }

    fn check_rest(&mut self) -> Result<(), String> {
        let machine = self.machine.as_ref().expect("it is up");
        let database = machine.database();
        database.audit()?;
        self.history.check(&Content::of(database), Look::Alive)?;
        for (number, client) in self.clients.iter().enumerate() {
            client
                .check_replica(&self.view, database)
                .map_err(|problem| format!("client {number}: {problem}"))?;
            for lock in LOCKS {
                let owns = machine.owns(client.session, lock);
                if owns != client.owned.contains(lock) {
                    return Err(format!("client {number} owns {lock}: {owns}"));
                }
            }
        }
        Ok(())
    }
}

/// Length of the record that holds the schema.
fn first_record(file: &[u8]) -> usize {
    let mut lines = file.split_inclusive(|byte| *byte == b'\n');
    lines.next().map_or(0, <[u8]>::len) + lines.next().map_or(0, <[u8]>::len)
}
