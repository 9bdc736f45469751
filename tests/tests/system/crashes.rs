//! A real server is killed repeatedly under load, and its file is damaged while it is down. Nothing
//! may be lost, and no transaction may be applied in part.
//!
//! Several connections write transactions of several rows, some of them durable. Killing the
//! process does not affect the page cache, so that both kinds must exist afterwards if they were
//! acknowledged. Compactions and schema conversions run at random moments, including the moment of
//! the kill. After each start, the contents are compared with the writers' ledgers, and the rows
//! that the reference's tool reads from the file are compared with those of the server.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_CRASH_SEED` | the seed of a run to be repeated; the timing of threads and kills still differs |
//! | `CORVID_CRASH_ROUNDS` | the number of kills, 20 by default |
//! | `CORVID_REFERENCE=1` | the reference is killed instead, which tests the test itself |

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{self, Answer, Contents, DATABASE, Ledger};
use corvid_tests::process::Process;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation;
use corvid_tests::{database_file, peer, tails};

/// The default number of rounds.
const ROUNDS: u64 = 20;
/// The number of writers whose transactions wait for the disk, one at a time.
const DURABLE_WRITERS: i64 = 5;
/// The number of writers whose transactions do not wait for the disk, several at a time.
const ORDINARY_WRITERS: i64 = 3;
const ORDINARY_DEPTH: usize = 6;
/// The number of rows that no writer changes, which make compacting and converting take some time.
const FILLERS: usize = 30_000;
const FILLER_BYTES: usize = 200;
/// The maximum size of the text in a row, in bytes.
const TEXT_BYTES: u64 = 2_000;
/// The number of acknowledged transactions in a round before anything else happens.
const WARM_UP: u64 = 40;
/// The number of acknowledged transactions in a round after which the writers slow down. On a busy
/// machine a compaction takes long. Writers at full speed would make the file ten times longer in
/// this time, which would also slow down each later round.
const FULL_SPEED: u64 = 800;
/// How long a writer then waits after each reply.
const PAUSE: Duration = Duration::from_millis(50);
/// The time after which the server counts as hung.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The work that is done in a round in addition to the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Compaction,
    Conversion,
    Both,
}

const BESIDE: [Beside; 4] = [
    Beside::Compaction,
    Beside::Conversion,
    Beside::Both,
    Beside::Nothing,
];

/// The moment at which the server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Any time after the compaction and the conversion have begun.
    Any,
    /// When they are done and the load continues.
    Done,
    /// While one of them writes the replacement of the file.
    Replacing,
}

const MOMENTS: [Moment; 3] = [Moment::Any, Moment::Done, Moment::Replacing];

/// Counts of the events in the rounds, for the report. If no kill happened during a compaction, a
/// run proves little about compactions.
#[derive(Debug, Default)]
struct Tally {
    acknowledged: i64,
    unanswered_and_there: i64,
    compactions: u64,
    conversions: u64,
    killed_while_replacing: u64,
    tails: Vec<&'static str>,
}

struct Play {
    folder: TempDir,
    file: PathBuf,
    process: Process,
    random: Random,
    ledgers: Vec<Ledger>,
    /// The version of the schema that was acknowledged last.
    version: u32,
    /// The version of a conversion that has not been answered.
    converting: Option<u32>,
    is_tail_torn: bool,
    /// The replacement that existed at the last start.
    stale: Option<Identity>,
    tally: Tally,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_applied() {
    let implementation = Implementation::from_env();
    let program = implementation.server_binary().unwrap();
    let seed = random::seed("CORVID_CRASH_SEED");
    let rounds = std::env::var("CORVID_CRASH_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    if corvid_tests::binary::reference("ovsdb-tool").is_none() {
        peer::say_skipped(
            "ovsdb-tool of the reference is not installed: files are not shown to it",
        );
    }
    let mut play = Play::new(&program, seed).unwrap();
    for round in 0..rounds {
        let beside = BESIDE[usize::try_from(round).unwrap() % BESIDE.len()];
        if let Err(fault) = play.round(beside) {
            let said = play.process.said();
            let kept = play.folder.keep();
            panic!(
                "round {round} ({beside:?}), seed {seed}, files in {}:\n{fault}\n{said}",
                kept.display()
            );
        }
    }
    if let Err(fault) = play.last() {
        panic!("after the last round, seed {seed}:\n{fault}");
    }
    println!("{:?}", play.tally);
}

type Outcome<T> = Result<T, String>;

/// A file and the time of its last change. An inode number alone may be that of a file that no
/// longer exists.
type Identity = (u64, i64, i64);

/// Returns the identity of a file, if it exists.
fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.ctime(), found.ctime_nsec()))
}

/// Converts an error of the operating system, which may be a server that does not answer, to a
/// failure of the round.
fn fault(what: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

impl Play {
    fn new(program: &Path, seed: u64) -> io::Result<Play> {
        let folder = tempfile::Builder::new().prefix("crashes").tempdir()?;
        let file = folder.path().join("ledger.db");
        database_file::create(&file, &ledger::schema(1))?;
        let mut process = Process::new(program, folder.path(), &[file.clone().into()]);
        process.start()?;
        let mut client = process.connect()?;
        ledger::fill(&mut client, FILLERS, FILLER_BYTES)?;
        // Writer 0 writes between the rounds.
        let ledgers: Vec<Ledger> = (0..=DURABLE_WRITERS + ORDINARY_WRITERS)
            .map(|writer| Ledger::new(writer, writer <= DURABLE_WRITERS, TEXT_BYTES))
            .collect();
        let mut params = vec![json!(DATABASE)];
        params.extend(ledgers.iter().map(Ledger::beginning));
        client.call("transact", &Value::Array(params))?;
        process.kill();
        Ok(Play {
            folder,
            file,
            process,
            random: Random::new(seed),
            ledgers,
            version: 1,
            converting: None,
            is_tail_torn: false,
            stale: None,
            tally: Tally::default(),
        })
    }

    /// Starts the server, compares the contents, applies load, kills the server and damages the
    /// file.
    fn round(&mut self, beside: Beside) -> Outcome<()> {
        if self.random.one_in(4) {
            // The server is killed while it reads the file, or a moment later.
            self.process.launch().map_err(fault("starting"))?;
            thread::sleep(Duration::from_millis(self.random.below(200)));
            self.process.kill();
        }
        self.process.start().map_err(fault("starting"))?;
        self.compare()?;
        let counts = |ledgers: &[Ledger]| ledgers.iter().map(Ledger::count).sum::<i64>();
        let before = counts(&self.ledgers);
        self.load_and_kill(beside)?;
        self.tally.acknowledged += counts(&self.ledgers) - before;
        self.damage().map_err(fault("damaging the file"))
    }

    /// Checks that the contents after a start are those of the ledgers, also according to the
    /// reference's tool.
    fn compare(&mut self) -> Outcome<()> {
        let mut client = self.process.connect().map_err(fault("connecting"))?;
        let contents = Contents::read(&mut client).map_err(fault("reading"))?;
        let mut faults = contents.strays(&self.ledgers);
        for ledger in &mut self.ledgers {
            let before = ledger.count();
            ledger.reconcile(&contents);
            self.tally.unanswered_and_there += ledger.count() - before;
            faults.extend(ledger.check(&contents));
        }
        if contents.fillers() != FILLERS {
            faults.push(format!("{} fillers", contents.fillers()));
        }
        faults.extend(self.compare_schema(&mut client)?);
        if faults.is_empty() {
            self.write_once(&mut client)?;
            faults.extend(self.compare_with_reference(&mut client)?);
        }
        if faults.is_empty() {
            return Ok(());
        }
        let mut text = format!(
            "{} faults, file torn before the start: {}",
            faults.len(),
            self.is_tail_torn
        );
        for fault in faults.iter().take(20) {
            let _ = write!(text, "\n  {fault}");
        }
        Err(text)
    }

    /// Checks that the schema is the one that was acknowledged last, or that of a conversion that
    /// was not answered.
    fn compare_schema(&mut self, client: &mut Client) -> Outcome<Option<String>> {
        let reply = client
            .call("get_schema", &json!([DATABASE]))
            .map_err(fault("get_schema"))?;
        let found = reply["result"]["version"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let may_be = [Some(self.version), self.converting.take()];
        for version in may_be.into_iter().flatten() {
            if found == format!("{version}.0.0") {
                self.version = version;
                return Ok(None);
            }
        }
        Ok(Some(format!("schema {found}, not one of {may_be:?}")))
    }

    /// Writes one transaction. This is the first write after a start, which removes a torn end of
    /// the file.
    fn write_once(&mut self, client: &mut Client) -> Outcome<()> {
        let ledger = &mut self.ledgers[0];
        client
            .send(ledger.request(true).as_bytes())
            .map_err(fault("sending"))?;
        match client.receive(TIME_LIMIT).map_err(fault("receiving"))? {
            Received::Text(text) => match apply_reply(ledger, &text)? {
                Answer::Acknowledged => Ok(()),
                Answer::Refused(reply) => Err(format!("refused: {reply}")),
            },
            other => Err(format!("no answer to the first write: {other:?}")),
        }
    }

    fn compare_with_reference(&mut self, client: &mut Client) -> Outcome<Option<String>> {
        let params = ledger::selection();
        let Some(theirs) = peer::query(&self.file, &params).map_err(fault("the reference"))? else {
            return Ok(None);
        };
        let ours = Contents::read(client).map_err(fault("reading"))?;
        let is_equal = Contents::from_results(&theirs).is_some_and(|theirs| theirs == ours);
        Ok((!is_equal).then(|| "the reference's tool reads other contents".to_owned()))
    }

    /// Lets writers write and other things happen, and kills the server in the middle of it.
    fn load_and_kill(&mut self, beside: Beside) -> Outcome<()> {
        let acknowledged = AtomicU64::new(0);
        let moment = MOMENTS[usize::try_from(self.random.below(3)).unwrap_or(0)];
        let mut delay = || {
            let most_us = 5_000 << self.random.below(5);
            Duration::from_micros(self.random.below(most_us))
        };
        let delays = [delay(), delay(), delay()];
        let (replacement, stale) = (tails::replacement(&self.file), self.stale);
        let version = 3 - self.version;
        let (process, ledgers) = (&mut self.process, &mut self.ledgers[1..]);
        let (socket, control) = (process.socket(), process.control_socket());
        let mut outcomes: Vec<Outcome<()>> = Vec::new();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for ledger in ledgers {
                let (socket, acknowledged) = (&socket, &acknowledged);
                let random = Random::new(self.random.next_u64());
                threads.push(scope.spawn(move || write(ledger, socket, random, acknowledged)));
            }
            let deadline = Instant::now() + TIME_LIMIT;
            while acknowledged.load(Ordering::Relaxed) < WARM_UP && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(delays[0]);
            let compaction = matches!(beside, Beside::Compaction | Beside::Both)
                .then(|| scope.spawn(|| compact(&control)));
            let conversion = matches!(beside, Beside::Conversion | Beside::Both).then(|| {
                thread::sleep(delays[1]);
                scope.spawn(|| convert(&socket, version))
            });
            let beside: Vec<_> = compaction.iter().chain(&conversion).collect();
            let is_replacing = || {
                moment == Moment::Replacing
                    && identity(&replacement).is_some_and(|found| Some(found) != stale)
            };
            while moment != Moment::Any
                && !beside.iter().all(|thread| thread.is_finished())
                && !is_replacing()
            {
                thread::sleep(Duration::from_micros(200));
            }
            thread::sleep(if moment == Moment::Replacing {
                delays[2] / 16
            } else {
                delays[2]
            });
            if process.has_ended() {
                outcomes.push(Err("the server has ended by itself".to_owned()));
            }
            process.kill();
            if acknowledged.load(Ordering::Relaxed) < WARM_UP {
                outcomes.push(Err(format!(
                    "less than {WARM_UP} transactions in {TIME_LIMIT:?}"
                )));
            }
            for thread in threads {
                outcomes.push(
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("a writer panicked".to_owned())),
                );
            }
            let ended = |thread: thread::ScopedJoinHandle<'_, Outcome<bool>>| {
                thread.join().unwrap_or_else(|_| Err("panicked".to_owned()))
            };
            match compaction.map(ended) {
                Some(Ok(is_done)) => self.tally.compactions += u64::from(is_done),
                Some(Err(fault)) => outcomes.push(Err(format!("compaction: {fault}"))),
                None => {}
            }
            match conversion.map(ended) {
                Some(Ok(true)) => {
                    self.version = version;
                    self.tally.conversions += 1;
                }
                Some(Ok(false)) => self.converting = Some(version),
                Some(Err(fault)) => outcomes.push(Err(format!("conversion: {fault}"))),
                None => {}
            }
        });
        outcomes.into_iter().collect()
    }

    /// Damages the files as the machine may do while nothing runs.
    fn damage(&mut self) -> io::Result<()> {
        let replacement = tails::replacement(&self.file);
        let left = identity(&replacement);
        if left.is_some() && left != self.stale {
            self.tally.killed_while_replacing += 1;
        }
        if self.random.one_in(2) {
            tails::leave_stale_replacement(&self.file, &mut self.random)?;
        }
        self.stale = identity(&replacement);
        self.is_tail_torn = !self.random.one_in(4);
        if self.is_tail_torn {
            self.tally
                .tails
                .push(tails::append(&self.file, &mut self.random)?);
        }
        Ok(())
    }

    /// Checks once more that the file is right, also after the server has been asked to exit, and
    /// for the reference's server.
    fn last(&mut self) -> Outcome<()> {
        self.process.start().map_err(fault("starting"))?;
        self.compare()?;
        let reply = self
            .process
            .control("ovsdb-server/compact", &[])
            .map_err(fault("compacting"))?;
        if !reply["error"].is_null() {
            return Err(format!("compaction: {reply}"));
        }
        if tails::replacement(&self.file).exists() {
            return Err("a replacement is left behind".to_owned());
        }
        self.process.stop().map_err(fault("exit"))?;
        self.is_tail_torn = false;
        if let Ok(program) = Implementation::Reference.server_binary() {
            let home = tempfile::tempdir().map_err(fault("a folder"))?;
            let file = self.file.clone().into();
            let mut reference = Process::new(&program, home.path(), &[file]);
            reference.start().map_err(fault("the reference server"))?;
            let mut client = reference.connect().map_err(fault("the reference server"))?;
            let contents = Contents::read(&mut client).map_err(fault("the reference server"))?;
            let mut faults = contents.strays(&self.ledgers);
            faults.extend(
                self.ledgers
                    .iter()
                    .flat_map(|ledger| ledger.check(&contents)),
            );
            if !faults.is_empty() {
                return Err(format!("the reference server: {faults:?}"));
            }
        }
        Ok(())
    }
}

fn apply_reply(ledger: &mut Ledger, text: &[u8]) -> Outcome<Answer> {
    let reply = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    ledger.apply_reply(&reply)
}

/// Runs one writer: keeps some transactions in flight until the server is gone.
fn write(
    ledger: &mut Ledger,
    socket: &Path,
    mut random: Random,
    acknowledged: &AtomicU64,
) -> Outcome<()> {
    let mut client = Client::connect(socket).map_err(fault("connecting"))?;
    // A conversion disconnects clients that do not ask to stay connected.
    let reply = client
        .call("set_db_change_aware", &json!([true]))
        .map_err(fault("set_db_change_aware"))?;
    if !reply["error"].is_null() {
        return Err(format!("set_db_change_aware: {reply}"));
    }
    let depth = if ledger.is_durable() {
        1
    } else {
        ORDINARY_DEPTH
    };
    loop {
        while ledger.in_flight() < depth {
            let request = ledger.request(random.one_in(2));
            if client.send(request.as_bytes()).is_err() {
                // Replies may have arrived before the end of the connection. The ledger is complete
                // only when they have been read.
                break;
            }
        }
        match client.receive(TIME_LIMIT) {
            Ok(Received::Text(text)) => match apply_reply(ledger, &text)? {
                Answer::Acknowledged => {
                    if acknowledged.fetch_add(1, Ordering::Relaxed) >= FULL_SPEED {
                        thread::sleep(PAUSE);
                    }
                }
                Answer::Refused(reply) if is_canceled(&reply) => {}
                Answer::Refused(reply) => return Err(format!("refused: {reply}")),
            },
            Ok(Received::Closed) | Err(_) => return Ok(()),
            Ok(Received::Nothing) => return Err(format!("no answer within {TIME_LIMIT:?}")),
        }
    }
}

/// Whether a reply says that a transaction was canceled. A conversion cancels transactions that
/// wait.
fn is_canceled(reply: &Value) -> bool {
    reply["error"] == "canceled" || reply["error"]["error"] == "canceled"
}

/// Asks for a compaction. Returns false if the server is gone before it has replied.
fn compact(control: &Path) -> Outcome<bool> {
    let Ok(mut client) = Client::connect(control) else {
        return Ok(false);
    };
    match client.call("ovsdb-server/compact", &json!([])) {
        Ok(reply) if reply["error"].is_null() => Ok(true),
        Ok(reply) => Err(reply.to_string()),
        Err(_) => Ok(false),
    }
}

/// Asks for a conversion. Returns false if the server is gone before it has replied.
fn convert(socket: &Path, version: u32) -> Outcome<bool> {
    let Ok(mut client) = Client::connect(socket) else {
        return Ok(false);
    };
    if client.call("set_db_change_aware", &json!([true])).is_err() {
        return Ok(false);
    }
    match client.call("convert", &json!([DATABASE, ledger::schema(version)])) {
        Ok(reply) if reply["error"].is_null() => Ok(true),
        Ok(reply) => Err(reply.to_string()),
        Err(_) => Ok(false),
    }
}
