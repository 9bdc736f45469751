//! `fairness`: the latencies of clients with small requests, while another client sends large
//! requests or does not read.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::client_pool::ClientPool;
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::latency_probe::{self, Latencies, Phase};
use crate::requests;
use crate::stream::Address;
use crate::workload::{Run, Scale, Workload};

pub(crate) struct Fairness;

/// How long the clients run alone at first.
const BEFORE: Duration = Duration::from_secs(2);
/// How long a repeated disturbance lasts.
const DURING: Duration = Duration::from_secs(3);
/// The number of rows that the probing client updates in turn.
const PROBED_ROWS: u64 = 1_000;
/// The number of rows in each transaction of the writer, which writes for the client that monitors
/// the whole table.
const ROWS_PER_WRITE: u32 = 100;
/// The aim for the rise of a p99, in ms.
const RISE_MAX: Aim = Aim::AtMost(2.0);

impl Workload for Fairness {
    fn name(&self) -> &'static str {
        "fairness"
    }

    fn about(&self) -> &'static str {
        "latencies of a transaction and an echo each millisecond next to a slow reader, huge requests, and one that sees everything"
    }

    fn prepare(&self, scale: Scale, file: &Path) -> Result<(), Error> {
        let history = History {
            rows: rows(scale),
            versions: 1,
            rows_per_record: 1_000,
        };
        Ok(database_file::write(file, history)?)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let rows = rows(run.scale);
        let mut figures = Vec::new();
        let mut trial = |titles: &Titles, disturb: &dyn Fn(&Address) -> Result<(), Error>| {
            run.show(titles.name);
            figures.extend(measure(run, titles, disturb)?);
            Ok::<(), Error>(())
        };
        trial(&SLOW_READER, &slow_reader)?;
        trial(&SELECT, &select)?;
        trial(&DUMP, &dump)?;
        trial(&EVERYTHING, &everything)?;
        let insertion = insertion(rows);
        trial(&HUGE, &|address| send_request(address, &insertion))?;
        Ok(figures)
    }
}

/// The number of rows of the table, and of the huge transaction.
fn rows(scale: Scale) -> u32 {
    scale.pick(100_000, 500_000)
}

/// The titles of the figures of one disturbance.
struct Titles {
    name: &'static str,
    transaction: [&'static str; 4],
    echo: [&'static str; 4],
    /// The aim for the rise of the transactions' p99.
    transaction_aim: Aim,
}

macro_rules! titles {
    ($name:literal, $aim:expr) => {
        Titles {
            name: $name,
            transaction: [
                concat!($name, ": transaction p50"),
                concat!($name, ": transaction p99"),
                concat!($name, ": transaction p99.9"),
                concat!($name, ": transaction p99 - p99 before"),
            ],
            echo: [
                concat!($name, ": echo p50"),
                concat!($name, ": echo p99"),
                concat!($name, ": echo p99.9"),
                concat!($name, ": echo p99 - p99 before"),
            ],
            transaction_aim: $aim,
        }
    };
}

const SLOW_READER: Titles = titles!("slow reader", RISE_MAX);
const SELECT: Titles = titles!("huge select", RISE_MAX);
const DUMP: Titles = titles!("initial dump", RISE_MAX);
const EVERYTHING: Titles = titles!("monitors all", RISE_MAX);
// There is no aim: other writers of the same database have to wait until the transaction is
// executed.
const HUGE: Titles = titles!("huge transaction", Aim::None);

/// Probes a server while `disturb` runs.
fn measure(
    run: &Run<'_>,
    titles: &Titles,
    disturb: &dyn Fn(&Address) -> Result<(), Error>,
) -> Result<Vec<Figure>, Error> {
    let server = run.start()?;
    let address = server.address();
    // The first transaction may have to wait until the file is on the disk, so it is not measured.
    address.request(&update(1_000_000))?;
    let phase = Phase::default();
    let (transaction, echo, outcome) = thread::scope(|scope| {
        let transaction = scope.spawn(|| latency_probe::run(address, &phase, update));
        let echo = scope.spawn(|| latency_probe::run(address, &phase, echo));
        thread::sleep(BEFORE);
        phase.begin();
        let outcome = disturb(address);
        phase.end();
        (joined(transaction), joined(echo), outcome)
    });
    outcome?;
    let mut figures = of_client(&transaction?, titles.transaction, titles.transaction_aim);
    figures.extend(of_client(&echo?, titles.echo, RISE_MAX));
    Ok(figures)
}

/// Waits for a thread and returns its result. A panic of the thread is a bug, and is passed on.
fn joined(
    thread: thread::ScopedJoinHandle<'_, Result<Latencies, Error>>,
) -> Result<Latencies, Error> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn of_client(latencies: &Latencies, titles: [&'static str; 4], aim: Aim) -> Vec<Figure> {
    let at = |latencies: &Histogram<u64>, part: f64| latencies.value_at_quantile(part) as f64 / 1e6;
    let (before, during) = (&latencies.before, &latencies.during);
    let values = [
        at(during, 0.5),
        at(during, 0.99),
        at(during, 0.999),
        at(during, 0.99) - at(before, 0.99),
    ];
    let mut figures: Vec<Figure> = titles
        .into_iter()
        .zip(values)
        .map(|(title, value)| Figure::lower(title, "ms", value).digits(3))
        .collect();
    if let Some(rise) = figures.pop() {
        figures.push(rise.aim(aim));
    }
    figures
}

/// A client that monitors the table and never reads.
fn slow_reader(address: &Address) -> Result<(), Error> {
    let mut stream = address.open()?;
    stream.write_all(requests::monitor().get(0))?;
    thread::sleep(DURING);
    Ok(())
}

/// A client that repeatedly selects the whole table.
fn select(address: &Address) -> Result<(), Error> {
    let request =
        br#"{"method":"transact","params":["Bench",{"op":"select","table":"Item","where":[]}],"id":0}"#;
    let began = Instant::now();
    while began.elapsed() < DURING {
        send_request(address, &Arc::from(request.as_slice()))?;
    }
    Ok(())
}

/// Clients that monitor the whole table, one after another.
fn dump(address: &Address) -> Result<(), Error> {
    let request: Arc<[u8]> = requests::monitor().get(0).into();
    let began = Instant::now();
    while began.elapsed() < DURING {
        send_request(address, &request)?;
    }
    Ok(())
}

/// Sends one request on a new connection, and waits for the reply.
fn send_request(address: &Address, request: &Arc<[u8]>) -> Result<(), Error> {
    let mut pool = ClientPool::new()?;
    let client = pool.connect(address)?;
    pool.call(client, [request.clone()], |_| {})
}

/// A client that monitors the whole table and reads, while another client writes many rows.
fn everything(address: &Address) -> Result<(), Error> {
    let mut pool = ClientPool::new()?;
    let (writer, client) = (pool.connect(address)?, pool.connect(address)?);
    pool.call(client, [requests::monitor().get(0).into()], |_| {})?;
    let began = Instant::now();
    let texts = (0..).map(write).take_while(|_| began.elapsed() < DURING);
    pool.call(writer, texts, |_| {})
}

/// A transaction on rows that the probes do not change.
fn write(number: u32) -> Arc<[u8]> {
    let mut text = r#"{"method":"transact","params":["Bench""#.to_owned();
    let first = 10_000 + number % 100 * ROWS_PER_WRITE;
    for row in first..first + ROWS_PER_WRITE {
        let uuid = database_file::uuid(row);
        let _ = write!(
            text,
            r#",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{number}}}}}"#
        );
    }
    let _ = write!(text, r#"],"id":{number}}}"#);
    text.into_bytes().into()
}

/// A single transaction that inserts `rows` rows.
fn insertion(rows: u32) -> Arc<[u8]> {
    let mut text = r#"{"method":"transact","params":["Bench""#.to_owned();
    for row in 0..rows {
        text.push_str(r#",{"op":"insert","table":"Item","row":"#);
        requests::row(&mut text, &format!("huge-{row:08}"), row);
        text.push('}');
    }
    text.push_str(r#"],"id":0}"#);
    text.into_bytes().into()
}

/// Sets the row's number to a new value.
fn update(number: u64) -> String {
    let uuid = database_file::uuid(u32::try_from(number % PROBED_ROWS).unwrap_or(0));
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{}}}}}],"id":{number}}}"#,
        number + 1_000_000
    )
}

fn echo(number: u64) -> String {
    format!(r#"{{"method":"echo","params":[],"id":{number}}}"#)
}
