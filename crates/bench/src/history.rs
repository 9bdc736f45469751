//! `corvid-bench history`: the cost of keeping the history of a database, and of reading it.
//!
//! `keeping` measures commits, compactions and the compression of a segment, `reading` the past of
//! the present file and of the segment, `segments` a moment among many segments. During each of
//! these another client commits every millisecond, and its latencies are figures too.

mod keeping;
mod reading;
mod segments;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use corvid_json::splitmix::SplitMix64;
use corvid_json::{Assembler, Value};
use corvid_shell::output;

use crate::cpu_interval::CpuTotals;
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::Figure;
use crate::latency_probe::{self, Phase};
use crate::options::HistoryOptions;
use crate::report;
use crate::requests;
use crate::server::Server;
use crate::stream::{self, Address};
use crate::target::Program;
use crate::tool;
use crate::workload::Scale;

/// One of the measurements.
type Part = fn(&Setup) -> Result<Vec<Figure>, Error>;

/// The number of rows. The probe writes the last one, the commits write the others.
const ROWS: u32 = 10_000;
/// The number of hexadecimal digits that a commit writes. They are random, so they compress to half
/// of their length.
const DIGITS: usize = 900;
/// The number of requests on their way.
const WINDOW: u32 = 64;
/// The time for which the probe runs alone before it is measured.
const LEAD_TIME: Duration = Duration::from_millis(300);

/// The input of all measurements.
struct Setup {
    program: Program,
    tool: PathBuf,
    scale: Scale,
}

impl Setup {
    /// Starts a server with rows and no history.
    fn serve(&self) -> Result<Server, Error> {
        Server::open_made(&self.program, &CpuTotals::default(), |file| {
            Ok(database_file::write(file, History::of_rows(ROWS))?)
        })
    }

    /// The number of commits of a whole file.
    fn commits(&self) -> u32 {
        self.scale.pick(100_000, 1_000_000)
    }
}

/// Runs all measurements and prints each figure.
pub(crate) fn measure(options: &HistoryOptions) -> Result<(), Error> {
    let setup = Setup {
        program: Program::plain(options.server.clone()),
        tool: tool::beside(&options.server, "ovsdb-tool")?,
        scale: options.scale,
    };
    let began = Instant::now();
    let parts: [(&str, Part); 3] = [
        ("keeping", keeping::measure),
        ("reading", reading::measure),
        ("segments", segments::measure),
    ];
    for (name, part) in parts {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        for figure in part(&setup)? {
            let digits = figure.digits;
            output::report(format_args!(
                "{:74}{:>12.digits$}",
                figure.label(),
                figure.value
            ));
        }
    }
    output::report(format_args!(
        "\ntotal time {}",
        report::seconds(began.elapsed())
    ));
    Ok(())
}

/// The rows that the commits write.
const WRITTEN: u32 = ROWS - 1;

/// Replaces the text of one of the first `rows` rows after the other, `count` times, and returns
/// the time that this takes. Several requests are on their way at a time.
fn commit(address: &Address, rows: u32, count: u32, seed: u64) -> Result<Duration, Error> {
    let mut stream = address.open()?;
    let mut random = SplitMix64::new(seed);
    let mut replies = Assembler::default();
    let began = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    let mut room = vec![0; 64 * 1024];
    while answered < count {
        let mut batch = String::new();
        while sent < count && sent - answered < WINDOW {
            batch.push_str(&update(sent % rows, &mut random));
            sent += 1;
        }
        stream.write_all(batch.as_bytes())?;
        let length = stream.read(&mut room)?;
        if length == 0 {
            return Err(Error::Closed);
        }
        for reply in replies.texts(&room[..length]) {
            let reply = reply?;
            if requests::is_error(&reply) {
                return Err(Error::Refused(String::from_utf8_lossy(&reply).into_owned()));
            }
            answered += 1;
        }
    }
    Ok(began.elapsed())
}

fn update(row: u32, random: &mut SplitMix64) -> String {
    let mut digits = String::with_capacity(DIGITS + 16);
    while digits.len() < DIGITS {
        digits.push_str(&format!("{:016x}", random.draw()));
    }
    digits.truncate(DIGITS);
    format!(
        r#"{{"id":0,"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{}"]]],"row":{{"name":"{digits}"}}}}]}}"#,
        database_file::uuid(row)
    )
}

/// Carries out `work` while another client commits, and returns its time, its result, and the
/// latencies of the other client in ms: the 99th percentile and the longest.
fn beside<T: Send>(
    address: &Address,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<(Duration, T, [f64; 2]), Error> {
    let phase = Phase::default();
    let probe = |number: u64| {
        format!(
            r#"{{"id":{number},"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{}"]]],"row":{{"number":{number}}}}}]}}"#,
            database_file::uuid(ROWS - 1)
        )
    };
    let (took, outcome, latencies) = thread::scope(|scope| {
        let other = scope.spawn(|| latency_probe::run(address, &phase, probe));
        thread::sleep(LEAD_TIME);
        phase.begin();
        let began = Instant::now();
        let outcome = work();
        let took = began.elapsed();
        phase.end();
        let latencies = other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (took, outcome, latencies)
    });
    let during = latencies?.during;
    let ms = |ns: u64| ns as f64 / 1e6;
    let latencies = [ms(during.value_at_quantile(0.99)), ms(during.max())];
    Ok((took, outcome?, latencies))
}

/// The figures of something that was done while another client committed.
fn figures(titles: [&'static str; 3], (took, [p99, longest]): (Duration, [f64; 2])) -> [Figure; 3] {
    [
        Figure::lower(titles[0], "s", took.as_secs_f64()).digits(3),
        Figure::lower(titles[1], "ms", p99).digits(2),
        Figure::lower(titles[2], "ms", longest).digits(2),
    ]
}

/// The titles of such figures.
macro_rules! titles {
    ($title:literal) => {
        [
            $title,
            concat!($title, ": p99 of another client"),
            concat!($title, ": longest commit of it"),
        ]
    };
}
use titles;

/// The contents of one row at a moment, from the server.
fn state_at(address: &Address, at: &str) -> Result<(), Error> {
    let request = format!(
        r#"{{"id":0,"method":"select_at","params":["Bench","{at}",{}]}}"#,
        one_row()
    );
    accepted(&address.request(&request)?)
}

/// The time and memory of `ovsdb-tool` for the same, from the files of a server.
fn offline_state_at(setup: &Setup, server: &Server, at: &str) -> Result<[Figure; 2], Error> {
    let file = server.file().ok_or(Error::NeedsProgram)?;
    let at = format!("--at={at}");
    let transaction = format!(r#"["Bench",{}]"#, one_row());
    let words = [
        "query".as_ref(),
        at.as_ref(),
        file.as_os_str(),
        transaction.as_ref(),
    ];
    let offline = tool::run(&setup.tool, words)?;
    let title = "the same by ovsdb-tool";
    Ok([
        Figure::lower(title, "s", offline.took.as_secs_f64()).digits(3),
        Figure::lower(title, "MiB", offline.peak_mib),
    ])
}

/// A `select` of one row.
fn one_row() -> String {
    format!(
        r#"{{"op":"select","table":"Item","where":[["_uuid","==",["uuid","{}"]]],"columns":["number"]}}"#,
        database_file::uuid(7)
    )
}

fn accepted(reply: &Value) -> Result<(), Error> {
    let text = reply.to_bytes();
    match requests::is_error(&text) {
        true => Err(Error::Refused(String::from_utf8_lossy(&text).into_owned())),
        false => Ok(()),
    }
}

/// All commits of one row. Returns their number, and the time until the first of them arrived.
fn commits_of_row(address: &Address) -> Result<(usize, Duration), Error> {
    let mut stream = address.open()?;
    let mut replies = Assembler::default();
    let began = Instant::now();
    let (mut count, mut first) = (0, None);
    let mut asked = format!(
        r#"{{"read":"log","table":"Item","row":"{}"}}"#,
        database_file::uuid(7)
    );
    loop {
        let request = format!(r#"{{"id":0,"method":"read_history","params":["Bench",{asked}]}}"#);
        stream.write_all(request.as_bytes())?;
        let page = Value::parse(&stream::receive(&mut *stream, &mut replies)?)?;
        accepted(&page)?;
        let member = |name| page.get("result").and_then(|result| result.get(name));
        let lines = member("lines").and_then(Value::as_array);
        count += lines.map_or(0, <[Value]>::len);
        if count > 0 {
            first.get_or_insert_with(|| began.elapsed());
        }
        match member("next").and_then(Value::as_integer) {
            Some(next) => asked = format!(r#"{{"next":{next}}}"#),
            None => return Ok((count, first.unwrap_or_else(|| began.elapsed()))),
        }
    }
}

/// Replaces the file by one with the present contents.
fn compact(server: &Server) -> Result<(), Error> {
    server.control("ovsdb-server/compact", &["Bench"]).map(drop)
}
