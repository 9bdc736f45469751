//! [`crate::Feed`] compared with [`Load`]: the same transactions, and the same damage in the same
//! words, for every kind of damaged file.

use super::*;
use crate::fixture::{append, schema};
use crate::{Damage, Load, Magic, Record, write_schema};

/// A source that returns a few bytes at a time.
struct SmallReads<'a>(&'a [u8], usize);

impl Source for SmallReads<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let taken = self.1.min(room.len());
        self.0.read(&mut room[..taken])
    }
}

/// The content of a log: the transactions, each as text, and the damage that ends it.
type Contents = (Vec<String>, Option<Damage>);

fn read_one_by_one(file: &[u8]) -> Contents {
    let mut load = Load::open(file).expect("a schema");
    let mut transactions = Vec::new();
    loop {
        match load.next_transaction() {
            Ok(Some(recorded)) => transactions.push(rows_of(&recorded)),
            Ok(None) => return (transactions, None),
            Err(damage) => return (transactions, Some(damage)),
        }
    }
}

/// Executes the jobs of a feed; `None` if it is irregular.
fn read_by_jobs<S: Source>(
    load: Load<S>,
    how: impl FnOnce(Feed<S>) -> Feed<S>,
) -> Option<Contents> {
    let schema = load.schema().clone();
    let (feed, mut extent) = load.into_feed();
    let mut feed = how(feed);
    let mut transactions = Vec::new();
    let mut filled = Vec::new();
    while let Some(job) = feed.job() {
        match job {
            Job::Records(records) => {
                let decoded = records.decode(&schema, |recorded| recorded);
                for (recorded, end) in decoded.transactions {
                    transactions.push(rows_of(&recorded));
                    extent.accept(end);
                }
                if let Some(cause) = decoded.damage {
                    return Some((transactions, Some(extent.damage(cause))));
                }
            }
            Job::Fill => assert_eq!(extent.records(), 1, "only the first transaction is long"),
            Job::Rows(text) => {
                assert_eq!(extent.records(), 1);
                filled.extend(text.decode(&schema)?);
                // The code that inserts rows detects repeated ones.
                let mut seen = std::collections::HashSet::new();
                let mut rows = filled.iter();
                if !rows.all(|row: &RecordedRow| seen.insert((row.table, row.uuid))) {
                    return None;
                }
            }
            Job::Filled { end, .. } => {
                let recorded = Recorded {
                    rows: std::mem::take(&mut filled).into(),
                    ..Recorded::default()
                };
                transactions.push(rows_of(&recorded));
                extent.accept(end);
            }
            Job::Irregular => {
                assert!(feed.job().is_none());
                return None;
            }
            Job::End(error) => {
                assert!(feed.job().is_none());
                let damage = error.map(|error| extent.damage(Cause::Read(error)));
                return Some((transactions, damage));
            }
        }
    }
    unreachable!("a feed ends with a job that says so")
}

fn rows_of(recorded: &Recorded) -> String {
    format!("{:?}", recorded.rows)
}

/// Reads a file in every way and compares the results.
fn assert_same(file: &[u8], context: &str) -> (Contents, bool) {
    let expected = read_one_by_one(file);
    let whole = Load::open(file).expect("a schema");
    let whole = read_by_jobs(whole, Feed::whole_records).expect("whole records are regular");
    assert_eq!(whole, expected, "{context}");
    let mut is_cut = true;
    for (sip, run_bytes) in [(1, 1), (7, 100), (64, 40), (100_000, 1000)] {
        let load = Load::open(SmallReads(file, sip)).expect("a schema");
        let cut = read_by_jobs(load, |feed| feed.with_limits(1, run_bytes));
        is_cut &= cut.is_some();
        if let Some(cut) = cut {
            assert_eq!(
                cut, expected,
                "{context}, sips of {sip}, runs of {run_bytes}"
            );
        }
    }
    (expected, is_cut)
}

fn file_of(bodies: &[&str]) -> Vec<u8> {
    let mut file = Vec::new();
    write_schema(&mut file, &schema());
    for body in bodies {
        append(&mut file, body);
    }
    file
}

const A: &str = "00000000-0000-4000-8000-00000000000a";
const B: &str = "00000000-0000-4000-8000-00000000000b";

/// How a file with this second record is read, and whether that record is read in pieces.
fn first_transaction(body: &str) -> (Contents, bool) {
    let later = format!("{{\"u\":{{\"{B}\":{{\"s\":\"later\"}}}}}}");
    assert_same(&file_of(&[body, &later]), body)
}

#[test]
fn regular_records_are_cut_into_rows() {
    for body in [
        "{}".to_owned(),
        " { } \n ".to_owned(),
        r#"{"_date":17,"_comment":"a \"b\" }","_is_diff":true,"t":{}}"#.to_owned(),
        format!(
            r#"{{"t":{{"{A}":{{"i":7}},"{B}":{{}}}},"u":{{"{A}":{{"s":"}},{{"}}}},"_date":5}}"#
        ),
        // After the rows, `_is_diff` changes nothing: all rows are new.
        format!(r#"{{"t":{{"{A}":{{"tags":["set",["a","b"]]}}}},"_is_diff":true}}"#),
        format!(
            "{{ \"t\" :\t{{ \"{A}\" : {{ \"i\" : 1 }} , \r\n \"{B}\":{{}} }} , \"_comment\" : [1,{{}}] }}\n\n"
        ),
        format!(
            r#"{{"_date":1,"_date":2,"_is_diff":true,"_is_diff":false,"u":{{"{A}":{{"_uuid":9,"s":"\\\""}}}}}}"#
        ),
    ] {
        let ((transactions, damage), is_cut) = first_transaction(&body);
        assert!(is_cut, "{body}");
        assert_eq!((transactions.len(), damage), (2, None), "{body}");
    }
}

#[test]
fn irregular_records_are_decoded_whole() {
    for (body, transactions) in [
        // Of repeated members, the last wins.
        (
            format!(r#"{{"t":{{"{A}":{{"i":1}}}},"t":{{"{B}":{{"i":2}}}}}}"#),
            2,
        ),
        (format!(r#"{{"t":{{"{A}":{{"i":1,"i":2}}}}}}"#), 2),
        (format!(r#"{{"\u0074":{{"{A}":{{"i":1}}}}}}"#), 2),
        (format!(r#"{{"t":{{"{A}":null}}}}"#), 2),
        (
            format!(r#"{{"t":{{"{A}":{{"two":["set",[1,2,3]]}}}},"_is_diff":true}}"#),
            2,
        ),
        (format!(r#"{{"t":{{"{A}":{{"two":["set",[1,2,3]]}}}}}}"#), 0),
        (r#"{"_date":1.5}"#.to_owned(), 0),
        (r#"{"_is_diff":1}"#.to_owned(), 0),
        (r#"{"t":[]}"#.to_owned(), 0),
        (r#"{"x":{}}"#.to_owned(), 0),
        (r#"{"t":{"no-uuid":{}}}"#.to_owned(), 0),
        (format!(r#"{{"t":{{"{A}":{{"x":1}}}}}}"#), 0),
        (format!(r#"{{"t":{{"{A}":{{}},}}}}"#), 0),
        (format!(r#"{{"t":{{"{A}":{{}} "{B}":{{}}}}}}"#), 0),
        (format!(r#"{{"t":{{,"{A}":{{}}}}}}"#), 0),
        (format!(r#"{{"t":{{"{A}":{{"i":1]}}}}"#), 0),
        (r#"{"t":{}} x"#.to_owned(), 0),
        (r#"{"t":{}"#.to_owned(), 0),
        (r#"{"t":{}}}"#.to_owned(), 0),
        ("[]".to_owned(), 0),
        ("7".to_owned(), 0),
    ] {
        let ((found, damage), is_cut) = first_transaction(&body);
        assert!(!is_cut, "{body}");
        assert_eq!(found.len(), transactions, "{body}");
        assert_eq!(damage.is_some(), transactions == 0, "{body}");
    }
}

#[test]
fn repeated_rows_are_handed_out_to_the_caller() {
    let body = format!(r#"{{"t":{{"{A}":{{"i":1}},"{A}":{{"i":2}}}}}}"#);
    let file = file_of(&[&body]);
    let load = Load::open(SmallReads(&file, 5)).expect("a schema");
    let (feed, _) = load.into_feed();
    let mut feed = feed.with_limits(1, 1000);
    let mut rows = Vec::new();
    while let Some(job) = feed.job() {
        if let Job::Rows(text) = job {
            rows.extend(text.decode(&schema()).expect("rows"));
        }
    }
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].uuid, rows[1].uuid);
}

/// A small generator of pseudo-random numbers: equal seeds give equal numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn body(&mut self) -> String {
        let mut body = String::from("{\"_date\":1700000000000");
        if self.below(2) == 0 {
            body.push_str(",\"_is_diff\":true");
        }
        body.push_str(",\"t\":{");
        for row in 0..self.below(6) {
            let comma = if row == 0 { "" } else { "," };
            let mut columns = vec![format!("\"i\":{}", self.below(50))];
            if self.below(3) == 0 {
                let tags = "\"x\",\\\"}".repeat(self.below(4));
                columns.push(format!("\"tags\":[\"set\",[\"a\",{tags:?}]]"));
            }
            let uuid = format!("00000000-0000-4000-8000-0000000000{:02x}", self.below(64));
            body.push_str(&format!("{comma}\"{uuid}\":{{{}}}", columns.join(",")));
        }
        body.push('}');
        if self.below(3) == 0 {
            body.push_str(",\"_is_diff\":true");
        }
        body.push('}');
        body
    }
}

#[test]
fn damaged_files_are_read_the_same_way() {
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let bodies: Vec<String> = (0..1 + chance.below(5)).map(|_| chance.body()).collect();
        let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
        let mut file = file_of(&bodies);
        let intact = file_of(&[]).len();
        for _ in 0..chance.below(3) {
            let at = intact + chance.below(file.len() - intact);
            match chance.below(4) {
                0 => file[at] ^= 1 << chance.below(8),
                1 => file.truncate(at.max(intact + 1)),
                2 => drop(file.remove(at)),
                _ => file.insert(at, b'}'),
            }
            if file.len() == intact {
                break;
            }
        }
        assert_same(&file, &format!("seed {seed}"));
    }
}

#[test]
fn well_framed_nonsense_is_read_the_same_way() {
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let mut file = file_of(&[]);
        for _ in 0..1 + chance.below(3) {
            let mut body = chance.body().into_bytes();
            if chance.below(2) == 0 {
                let at = chance.below(body.len());
                body[at] = b"{}[],:\"x0 \\"[chance.below(11)];
            }
            let mut record = Record::begin(&mut file, Magic::Standalone);
            record.body().extend_from_slice(&body);
            record.finish();
        }
        assert_same(&file, &format!("seed {seed}"));
    }
}
