//! Members of a cluster are killed, paused and power-cycled under load, again and again. Nothing acknowledged is lost, nothing happens twice,
//! and all members have equal contents afterwards.
//!
//! Each member has writers of its own, which stay connected to it. A writer whose member survives gets a reply to every transaction, and each
//! of its transactions is there exactly once; a writer whose member is killed may have a few unanswered ones, of which a beginning is there.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_CLUSTER_SEED` | the seed of a run that is to be repeated; threads and kills still fall as they like |
//! | `CORVID_CLUSTER_ROUNDS` | faults for each size of a cluster |
//! | `CORVID_REFERENCE=1` | members of the reference, which execute some transactions twice |

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use corvid_tests::client::{Client, Received};
use corvid_tests::cluster::{Cluster, LIMIT};
use corvid_tests::ledger::{self, Answer, Contents, DATABASE, Ledger};
use corvid_tests::process::Process;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation;

/// Faults by default, for each size of a cluster.
const ROUNDS: u64 = 10;
/// Requests in flight of the two writers of each member.
const DEPTHS: [usize; 2] = [1, 4];
/// Longest text of a row that writers write, bytes.
const TEXT_BYTES: u64 = 400;
/// Transactions acknowledged before a fault, and after it when a majority is left.
const PROGRESS: u64 = 40;
/// Longer than the longest election timeout, 2 s by default.
const PAUSE: Duration = Duration::from_millis(2_500);

/// A fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillLeader,
    KillFollower,
    PauseLeader,
    PauseFollower,
    PowerCycle,
}

const FAULTS: [Fault; 5] = [
    Fault::KillLeader,
    Fault::PauseLeader,
    Fault::KillFollower,
    Fault::PowerCycle,
    Fault::PauseFollower,
];

fn all(size: usize) -> Vec<usize> {
    (0..size).collect()
}

type Outcome<T> = Result<T, String>;

/// A writer of a member.
struct Writer {
    member: usize,
    depth: usize,
    ledger: Ledger,
}

#[test]
fn three_members_lose_nothing_and_execute_nothing_twice() {
    play(3);
}

#[test]
fn five_members_lose_nothing_and_execute_nothing_twice() {
    play(5);
}

fn play(size: usize) {
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let rounds = std::env::var("CORVID_CLUSTER_ROUNDS").map_or(ROUNDS, |text| {
        text.parse().expect("CORVID_CLUSTER_ROUNDS is a number")
    });
    let implementation = Implementation::from_env();
    let mut cluster = Cluster::joined(implementation, size, &ledger::schema(1)).expect("a cluster");
    let mut writers: Vec<Writer> = (0..size)
        .flat_map(|member| DEPTHS.map(|depth| (member, depth)))
        .zip(0..)
        .map(|((member, depth), number)| Writer {
            member,
            depth,
            ledger: Ledger::new(number, false, TEXT_BYTES),
        })
        .collect();
    let (leader, _) = cluster.leader_among(&all(size)).expect("a leader");
    let mut params = vec![json!(DATABASE)];
    params.extend(writers.iter().map(|writer| writer.ledger.beginning()));
    let mut client = cluster.connect(leader).expect("a connection");
    client
        .call("transact", &Value::Array(params))
        .expect("a reply");
    let mut random = Random::new(seed);
    for round in 0..rounds {
        let fault = FAULTS[usize::try_from(round).unwrap_or(0) % FAULTS.len()];
        if let Err(problem) = self::round(&mut cluster, &mut writers, fault, &mut random) {
            let said = cluster.said();
            panic!(
                "round {round} ({fault:?}) of {size} members, seed {seed}, files in {}:\n{problem}\n{said}",
                cluster.keep().display()
            );
        }
    }
    let count: i64 = writers.iter().map(|writer| writer.ledger.count()).sum();
    println!("{size} members: {count} transactions");
}

/// Load, a fault, load on the rest, an end of the fault, a comparison.
fn round(
    cluster: &mut Cluster,
    writers: &mut [Writer],
    fault: Fault,
    random: &mut Random,
) -> Outcome<()> {
    let problem = |error: std::io::Error| error.to_string();
    let size = cluster.members().len();
    let (leader, _) = cluster.leader_among(&all(size)).map_err(problem)?;
    let other = (leader + 1 + usize::try_from(random.below(size as u64 - 1)).unwrap_or(0)) % size;
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let sockets: Vec<_> = cluster.members().iter().map(Process::socket).collect();
    let delay = Duration::from_micros(random.below(200_000));
    let mut killed = Vec::new();
    thread::scope(|scope| -> Outcome<()> {
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| {
                let (socket, random) = (&sockets[writer.member], Random::new(random.next_u64()));
                let (acknowledged, is_over) = (&acknowledged, &is_over);
                scope.spawn(move || write(writer, socket, random, acknowledged, is_over))
            })
            .collect();
        let outcome = (|| {
            progress(&acknowledged)?;
            thread::sleep(delay);
            match fault {
                Fault::KillLeader => killed.push(leader),
                Fault::KillFollower => killed.push(other),
                Fault::PowerCycle => killed.extend(0..size),
                Fault::PauseLeader => cluster.pause(leader, true).map_err(problem)?,
                Fault::PauseFollower => cluster.pause(other, true).map_err(problem)?,
            }
            for &member in &killed {
                cluster.member(member).kill();
            }
            let mut outcome = Ok(());
            if fault != Fault::PowerCycle {
                outcome = progress(&acknowledged);
            }
            if matches!(fault, Fault::PauseLeader | Fault::PauseFollower) {
                thread::sleep(PAUSE);
                let paused = if fault == Fault::PauseLeader {
                    leader
                } else {
                    other
                };
                cluster.pause(paused, false).map_err(problem)?;
            }
            outcome
        })();
        for &member in &killed {
            cluster.member(member).launch().map_err(problem)?;
        }
        is_over.store(true, Ordering::Relaxed);
        let mut outcomes = vec![outcome];
        for thread in threads {
            let ended = thread.join();
            outcomes.push(ended.unwrap_or_else(|_| Err("a writer panicked".to_owned())));
        }
        outcomes.into_iter().collect()
    })?;
    for writer in writers.iter() {
        let may_lack_replies = killed.contains(&writer.member);
        if !may_lack_replies && writer.ledger.in_flight() > 0 {
            return Err(format!(
                "a writer of member {} lacks {} replies",
                writer.member,
                writer.ledger.in_flight()
            ));
        }
    }
    compare(cluster, writers)
}

/// Waits until so many more transactions are acknowledged.
fn progress(acknowledged: &AtomicU64) -> Outcome<()> {
    let (begin, deadline) = (acknowledged.load(Ordering::Relaxed), Instant::now() + LIMIT);
    while acknowledged.load(Ordering::Relaxed) < begin + PROGRESS {
        if Instant::now() > deadline {
            let now = acknowledged.load(Ordering::Relaxed);
            return Err(format!("{} transactions within {LIMIT:?}", now - begin));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// One writer: keeps some transactions in flight until the round is over or the member is gone.
fn write(
    writer: &mut Writer,
    socket: &Path,
    mut random: Random,
    acknowledged: &AtomicU64,
    is_over: &AtomicBool,
) -> Outcome<()> {
    let mut client = Client::connect(socket).map_err(|error| format!("connecting: {error}"))?;
    let ledger = &mut writer.ledger;
    loop {
        while ledger.in_flight() < writer.depth && !is_over.load(Ordering::Relaxed) {
            let request = ledger.request(random.one_in(2));
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
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    Answer::Refused(reply) => return Err(format!("refused: {reply}")),
                }
            }
            Ok(Received::Closed) | Err(_) => return Ok(()),
            Ok(Received::Nothing) => return Err(format!("no answer within {LIMIT:?}")),
        }
    }
}

/// Waits until all members have equal contents, which must be those of the ledgers.
fn compare(cluster: &mut Cluster, writers: &mut [Writer]) -> Outcome<()> {
    let deadline = Instant::now() + LIMIT;
    let members = all(cluster.members().len());
    let contents = loop {
        let all: Result<Vec<Contents>, _> = members
            .iter()
            .map(|&number| read(cluster, number))
            .collect();
        match all {
            Ok(mut all) if all.iter().all(|contents| *contents == all[0]) => {
                break all.swap_remove(0);
            }
            // A member that has just started is not connected to the others yet.
            _ if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
            Ok(_) => return Err(format!("members differ after {LIMIT:?}")),
            Err(problem) => return Err(problem.to_string()),
        }
    };
    let ledgers = writers.iter_mut().map(|writer| &mut writer.ledger);
    let mut faults = Vec::new();
    for ledger in ledgers {
        ledger.reconcile(&contents);
        faults.extend(ledger.check(&contents));
    }
    if faults.is_empty() {
        return Ok(());
    }
    faults.truncate(20);
    Err(faults.join("\n"))
}

/// The contents of a member that is connected to the others.
fn read(cluster: &Cluster, number: usize) -> std::io::Result<Contents> {
    let status = cluster.status(number)?;
    if status.contains("\nLeader: unknown\n") || !status.contains("\nEntries not yet applied: 0\n")
    {
        return Err(std::io::Error::other("not connected"));
    }
    Contents::read(&mut cluster.connect(number)?)
}

#[test]
fn the_demonstration_kills_a_leader_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = corvid_tests::binary::bin("corvid-demo");
    // The second time the files are there already.
    for _ in 0..2 {
        let output = std::process::Command::new(&program)
            .arg("--cluster")
            .arg(folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("a program");
        let said = String::from_utf8_lossy(&output.stdout);
        let problems = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && problems.is_empty(),
            "{said}{problems}"
        );
        assert_eq!(said.matches("\n  written-").count(), 2, "{said}");
    }
}
