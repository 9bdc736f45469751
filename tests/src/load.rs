//! Writers on every member of a cluster while a test does something to the cluster, and the
//! comparison afterwards. Every acknowledged transaction must exist exactly once, all members must
//! have equal contents, and replies must have come in order.
//!
//! Invariant: a writer keeps its connection. While its member is alive, it gets a reply to every
//! transaction. If the test has killed the member, the writer may have a few transactions without a
//! reply, of which only the first ones may have been committed. Called by the tests of clusters.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Received};
use crate::cluster::{Cluster, LIMIT};
use crate::ledger::{Answer, Contents, DATABASE, Ledger};
use crate::process::Process;
use crate::random::Random;

/// The number of requests in flight of each of the two writers of a member.
const DEPTHS: [usize; 2] = [1, 4];
/// The maximum size of the text in a row, in bytes.
const TEXT_BYTES: u64 = 400;
/// The number of transactions that count as progress.
const PROGRESS: u64 = 40;

/// The result of a step of a test. The text describes the fault that was found.
pub type Outcome<T> = Result<T, String>;

/// Converts an error of the operating system to a fault.
#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
pub fn problem(error: io::Error) -> String {
    error.to_string()
}

/// A writer of a member.
#[derive(Debug)]
struct Writer {
    member: usize,
    depth: usize,
    ledger: Ledger,
}

/// All writers.
#[derive(Debug)]
pub struct Load {
    /// The members that have writers, and whose contents are compared.
    members: Vec<usize>,
    writers: Vec<Writer>,
    random: Random,
    refusal: Option<&'static str>,
    pace: Duration,
    depth_max: usize,
    /// The number of rows of `Filler`, which nobody changes while writers write.
    fillers: usize,
}

/// The counters of all writers, with one number for each member.
#[derive(Debug)]
struct Counters {
    acknowledged: Vec<AtomicU64>,
    refused: Vec<AtomicU64>,
    /// The longest time that the writer with one request in flight has waited for a reply, in
    /// microseconds.
    longest_us: Vec<AtomicU64>,
    is_over: AtomicBool,
}

/// A cluster under load, as a test sees it.
#[derive(Debug)]
pub struct Run<'a> {
    /// The cluster.
    pub cluster: &'a mut Cluster,
    counters: &'a Counters,
    killed: BTreeSet<usize>,
}

impl Load {
    /// Creates writers for each of the members that exist now.
    ///
    /// # Errors
    ///
    /// If there is no leader in time, or if a transaction is rejected.
    pub fn new(cluster: &Cluster, seed: u64) -> io::Result<Load> {
        let size = cluster.members().len();
        let writers: Vec<Writer> = (0..size)
            .flat_map(|member| DEPTHS.map(|depth| (member, depth)))
            .zip(0..)
            .map(|((member, depth), number)| Writer {
                member,
                depth,
                ledger: Ledger::new(number, false, TEXT_BYTES),
            })
            .collect();
        let all: Vec<usize> = (0..size).collect();
        let (leader, _) = cluster.leader_among(&all)?;
        let mut params = vec![json!(DATABASE)];
        params.extend(writers.iter().map(|writer| writer.ledger.beginning()));
        let mut client = cluster.connect(leader)?;
        let reply = client.call("transact", &Value::Array(params))?;
        if reply["result"][0]["uuid"].is_null() {
            return Err(io::Error::other(reply.to_string()));
        }
        Ok(Load {
            members: all,
            writers,
            random: Random::new(seed),
            refusal: None,
            pace: Duration::ZERO,
            depth_max: usize::MAX,
            fillers: 0,
        })
    }

    /// Allows the server to reject transactions from now on, with a reply that contains this text.
    /// A rejected transaction must not be in the contents.
    pub fn allow_refusals(&mut self, text: &'static str) {
        self.refusal = Some(text);
    }

    /// Sets the time that each writer waits between replies, so that the number of rows stays small
    /// in a long test.
    pub fn set_pace(&mut self, pace: Duration) {
        self.pace = pace;
    }

    /// Excludes this member from the comparison of contents, because it will be removed.
    pub fn leave_out(&mut self, member: usize) {
        self.members.retain(|number| *number != member);
    }

    /// Sets the maximum number of requests in flight of each writer.
    pub fn set_depth_max(&mut self, depth_max: usize) {
        self.depth_max = depth_max;
    }

    /// Sets the number of rows of `Filler` that must exist.
    pub fn expect_fillers(&mut self, fillers: usize) {
        self.fillers = fillers;
    }

    /// Returns the number of transactions that were committed.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.writers
            .iter()
            .map(|writer| writer.ledger.count())
            .sum()
    }

    /// Runs `play` while all writers write, restarts the members that it has killed, and compares
    /// the contents ([`Load::compare`]).
    ///
    /// # Errors
    ///
    /// If `play` found a fault, a reply is wrong or missing, or contents differ.
    pub fn during(
        &mut self,
        cluster: &mut Cluster,
        play: impl FnOnce(&mut Run<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let size = cluster.members().len();
        let counters = Counters {
            acknowledged: zeros(size),
            refused: zeros(size),
            longest_us: zeros(size),
            is_over: AtomicBool::new(false),
        };
        let (random, refusal, pace) = (&mut self.random, self.refusal, self.pace);
        let depth_max = self.depth_max;
        let members = cluster.members();
        let sockets: Vec<_> = members.iter().map(Process::socket).collect();
        let mut killed = BTreeSet::new();
        thread::scope(|scope| -> Outcome<()> {
            let threads: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    let (socket, random) = (&sockets[writer.member], random.next_u64());
                    let depth = writer.depth.min(depth_max);
                    let counters = &counters;
                    scope.spawn(move || {
                        write(
                            writer,
                            socket,
                            Random::new(random),
                            refusal,
                            pace,
                            depth,
                            counters,
                        )
                    })
                })
                .collect();
            let mut run = Run {
                cluster,
                counters: &counters,
                killed: BTreeSet::new(),
            };
            let mut outcomes = vec![play(&mut run)];
            killed = std::mem::take(&mut run.killed);
            for &member in &killed {
                let process = cluster.member(member);
                if process.has_ended() {
                    outcomes.push(process.launch().map_err(problem));
                }
            }
            counters.is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                let ended = thread.join();
                outcomes.push(ended.unwrap_or_else(|_| Err("a writer panicked".to_owned())));
            }
            outcomes.into_iter().collect()
        })?;
        for writer in &self.writers {
            let (member, missing) = (writer.member, writer.ledger.in_flight());
            if missing > 0 && !killed.contains(&member) {
                return Err(format!(
                    "a writer of member {member} lacks {missing} replies"
                ));
            }
        }
        self.compare(cluster, &self.members.clone())
    }

    /// Waits until these members have equal contents. The contents must be those of the ledgers.
    ///
    /// # Errors
    ///
    /// If the contents are not equal in time, or are not those of the ledgers.
    pub fn compare(&mut self, cluster: &Cluster, members: &[usize]) -> Outcome<()> {
        let deadline = Instant::now() + LIMIT;
        let contents = loop {
            let all: Result<Vec<Contents>, _> = members
                .iter()
                .map(|&number| read(cluster, number))
                .collect();
            match all {
                Ok(mut all) if all.iter().all(|contents| *contents == all[0]) => {
                    break all.swap_remove(0);
                }
                // A member that has just started may not be connected to the others yet.
                _ if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
                Ok(_) => return Err(format!("members differ after {LIMIT:?}")),
                Err(problem) => return Err(problem.to_string()),
            }
        };
        let mut faults = Vec::new();
        for writer in &mut self.writers {
            writer.ledger.reconcile(&contents);
            faults.extend(writer.ledger.check(&contents));
        }
        if contents.fillers() != self.fillers {
            faults.push(format!(
                "{} fillers, not {}",
                contents.fillers(),
                self.fillers
            ));
        }
        if faults.is_empty() {
            return Ok(());
        }
        faults.truncate(20);
        Err(faults.join("\n"))
    }
}

impl Run<'_> {
    /// Kills a member.
    pub fn kill(&mut self, member: usize) {
        self.killed.insert(member);
        self.cluster.member(member).kill();
    }

    /// Allows the member to end its clients' connections from now on, because it is stopped or its
    /// database is removed.
    pub fn expect_end(&mut self, member: usize) {
        self.killed.insert(member);
    }

    /// Returns the number of transactions that were acknowledged in this run.
    #[must_use]
    pub fn acknowledged(&self, members: &[usize]) -> u64 {
        let count = |&member: &usize| self.counters.acknowledged[member].load(Ordering::Relaxed);
        members.iter().map(count).sum()
    }

    /// Returns the number of transactions that were rejected in this run.
    #[must_use]
    pub fn refused(&self, member: usize) -> u64 {
        self.counters.refused[member].load(Ordering::Relaxed)
    }

    /// Returns the longest time since the last call that a writer of these members has waited for a
    /// reply.
    #[must_use]
    pub fn longest_wait(&self, members: &[usize]) -> Duration {
        let longest = |&member: &usize| self.counters.longest_us[member].swap(0, Ordering::Relaxed);
        Duration::from_micros(members.iter().map(longest).max().unwrap_or(0))
    }

    /// Waits until more transactions are acknowledged at these members.
    ///
    /// # Errors
    ///
    /// If that does not happen in time.
    pub fn progress(&self, members: &[usize]) -> Outcome<()> {
        let begin = self.acknowledged(members);
        let reached = || self.acknowledged(members) >= begin + PROGRESS;
        if wait(LIMIT, reached) {
            return Ok(());
        }
        let now = self.acknowledged(members);
        Err(format!(
            "{} transactions at {members:?} within {LIMIT:?}",
            now - begin
        ))
    }
}

/// Waits until a condition is true. Returns false if it does not become true within the limit.
pub fn wait(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Runs one writer: keeps some transactions in flight until the run is over or the member is gone.
fn write(
    writer: &mut Writer,
    socket: &Path,
    mut random: Random,
    refusal: Option<&'static str>,
    pace: Duration,
    depth: usize,
    counters: &Counters,
) -> Outcome<()> {
    let mut client = Client::connect(socket).map_err(|error| format!("connecting: {error}"))?;
    let (member, ledger) = (writer.member, &mut writer.ledger);
    let mut sent = Instant::now();
    loop {
        thread::sleep(pace);
        while ledger.in_flight() < depth && !counters.is_over.load(Ordering::Relaxed) {
            let request = ledger.request(random.one_in(2));
            sent = Instant::now();
            if client.send(request.as_bytes()).is_err() {
                break;
            }
        }
        if ledger.in_flight() == 0 {
            return Ok(());
        }
        match client.receive(LIMIT) {
            Ok(Received::Text(text)) => {
                let reply: Value =
                    serde_json::from_slice(&text).map_err(|error| error.to_string())?;
                match ledger.apply_reply(&reply)? {
                    Answer::Acknowledged => {
                        counters.acknowledged[member].fetch_add(1, Ordering::Relaxed);
                        if writer.depth == 1 {
                            let took = u64::try_from(sent.elapsed().as_micros()).unwrap_or(0);
                            counters.longest_us[member].fetch_max(took, Ordering::Relaxed);
                        }
                    }
                    Answer::Refused(reply) => {
                        let text = reply.to_string();
                        if !refusal.is_some_and(|allowed| text.contains(allowed)) {
                            return Err(format!("refused at {member}: {reply}"));
                        }
                        counters.refused[member].fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Ok(Received::Closed) | Err(_) => return Ok(()),
            Ok(Received::Nothing) => return Err(format!("no answer at {member} within {LIMIT:?}")),
        }
    }
}

/// Returns the contents of a member that is connected to the others.
fn read(cluster: &Cluster, number: usize) -> io::Result<Contents> {
    let status = cluster.status(number)?;
    if status.contains("\nLeader: unknown\n") || !status.contains("\nEntries not yet applied: 0\n")
    {
        return Err(io::Error::other("not connected"));
    }
    Contents::read(&mut cluster.connect(number)?)
}
