//! The requests of one writer and which of them were acknowledged, and a check that a database
//! contains exactly the acknowledged ones.
//!
//! Everything that a transaction writes follows from its serial number: a few rows of `Entry`, a
//! row of `Total` with the number and the sum of these rows, changes of the writer's row of `Tally`
//! (a counter, a set and a map, which files contain as differences), and sometimes the deletion of
//! the rows of an older transaction. So a part of a transaction cannot be mistaken for the whole,
//! and a lost transaction cannot be mistaken for one that was never sent.
//!
//! Invariant: the transactions of a writer are sent on one connection and are answered in order.
//! After a crash, some of those without a reply may have been committed, but only the first ones,
//! in the order in which they were sent. See [`Ledger::reconcile`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use serde_json::{Value, json};

use crate::client::Client;
use crate::random::mix;

/// The name of the database.
pub const DATABASE: &str = "Ledger";
/// The number of most recent serial numbers that the row of `Tally` contains.
const RECENT: i64 = 20;

/// Returns the schema of the database. Version 2 has one more column and one more table. Both
/// versions have everything that writers need.
#[must_use]
pub fn schema(version: u32) -> Value {
    let integers = json!({"key": "integer", "min": 0, "max": "unlimited"});
    let strings = json!({"key": "integer", "value": "string", "min": 0, "max": "unlimited"});
    let mut schema = json!({"name": DATABASE, "version": format!("{version}.0.0"), "tables": {
        "Entry": {
            "columns": {
                "writer": {"type": "integer"}, "serial": {"type": "integer"}, "part": {"type": "integer"},
                "value": {"type": "integer"}, "text": {"type": "string"}},
            "indexes": [["writer", "serial", "part"]], "isRoot": true},
        "Total": {
            "columns": {
                "writer": {"type": "integer"}, "serial": {"type": "integer"},
                "parts": {"type": "integer"}, "sum": {"type": "integer"}},
            "indexes": [["writer", "serial"]], "isRoot": true},
        "Tally": {
            "columns": {
                "writer": {"type": "integer"}, "count": {"type": "integer"},
                "recent": {"type": integers}, "digits": {"type": strings},
                "mood": {"type": "integer", "ephemeral": true}},
            "indexes": [["writer"]], "isRoot": true},
        "Filler": {
            "columns": {"number": {"type": "integer"}, "text": {"type": "string"}},
            "isRoot": true}}});
    if version > 1 {
        schema["tables"]["Entry"]["columns"]["note"] =
            json!({"type": {"key": "string", "min": 0, "max": 1}});
        schema["tables"]["Extra"] =
            json!({"columns": {"number": {"type": "integer"}}, "isRoot": true});
    }
    schema
}

/// Returns the rows that the transaction with this serial number of this writer inserts.
fn parts(writer: i64, serial: i64, text_bytes_max: u64) -> Vec<(i64, String)> {
    let seed = mix(mix(writer.cast_unsigned()) ^ serial.cast_unsigned());
    let part = |part: u64| {
        let bits = mix(seed.wrapping_add(part));
        let value = i64::from(u32::try_from(bits >> 32).unwrap_or(0));
        let piece = format!("{bits:016x}\u{e9}\"");
        let bytes = usize::try_from(bits % text_bytes_max.max(1)).unwrap_or(0);
        (value, piece.repeat(bytes / piece.len()))
    };
    (0..1 + seed % 6).map(part).collect()
}

/// A request that has not been answered yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    serial: i64,
    /// The serial number of the transaction whose rows it deletes.
    deleted: Option<i64>,
}

/// The server's reply to a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The transaction was committed.
    Acknowledged,
    /// The transaction was not committed. This is the whole reply.
    Refused(Value),
}

/// The ledger of one writer.
#[derive(Debug)]
pub struct Ledger {
    writer: i64,
    is_durable: bool,
    text_bytes_max: u64,
    next: i64,
    /// The serial numbers of acknowledged transactions whose rows have not been deleted.
    alive: BTreeSet<i64>,
    /// The number of committed transactions.
    count: i64,
    recent: BTreeSet<i64>,
    /// For each last digit, the last serial number that ends with it.
    digits: BTreeMap<i64, i64>,
    pending: VecDeque<Pending>,
}

impl Ledger {
    /// Creates the ledger of a new writer. Each of its texts has less than `text_bytes_max` bytes.
    #[must_use]
    pub fn new(writer: i64, is_durable: bool, text_bytes_max: u64) -> Ledger {
        Ledger {
            writer,
            is_durable,
            text_bytes_max,
            next: 1,
            alive: BTreeSet::new(),
            count: 0,
            recent: BTreeSet::new(),
            digits: BTreeMap::new(),
            pending: VecDeque::new(),
        }
    }

    /// Returns the operation that inserts the writer's row. It must be executed once, before the
    /// writer's first transaction.
    #[must_use]
    pub fn beginning(&self) -> Value {
        json!({"op": "insert", "table": "Tally", "row": {"writer": self.writer}})
    }

    /// Whether the transactions of this writer wait for the disk.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Returns the number of requests that have not been answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Returns the number of transactions that are known to be committed.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Returns the next transaction, a whole request that must be sent without changes. If
    /// `delete_old` is true, it may also delete the rows of the oldest transaction.
    pub fn request(&mut self, delete_old: bool) -> String {
        let (writer, serial) = (self.writer, self.next);
        self.next += 1;
        let parts = parts(writer, serial, self.text_bytes_max);
        let mut params = vec![json!(DATABASE)];
        for (part, (value, text)) in parts.iter().enumerate() {
            let row = json!({"writer": writer, "serial": serial, "part": part, "value": value, "text": text});
            params.push(json!({"op": "insert", "table": "Entry", "row": row}));
        }
        let sum: i64 = parts.iter().map(|(value, _)| value).sum();
        let row = json!({"writer": writer, "serial": serial, "parts": parts.len(), "sum": sum});
        params.push(json!({"op": "insert", "table": "Total", "row": row}));
        let digit = serial % 10;
        params.push(json!({"op": "mutate", "table": "Tally", "where": [["writer", "==", writer]], "mutations": [
            ["count", "+=", 1],
            ["recent", "insert", serial],
            ["recent", "delete", serial - RECENT],
            ["digits", "delete", digit],
            ["digits", "insert", ["map", [[digit, serial.to_string()]]]]]}));
        // Only rows that are known to exist are deleted, so the result of requests in flight does
        // not matter.
        let taken: BTreeSet<i64> = self
            .pending
            .iter()
            .filter_map(|sent| sent.deleted)
            .collect();
        let oldest = self.alive.iter().find(|serial| !taken.contains(serial));
        let deleted = oldest.copied().filter(|_| delete_old);
        if let Some(old) = deleted {
            for part in 0..self::parts(writer, old, self.text_bytes_max).len() {
                params.push(json!({"op": "delete", "table": "Entry",
                    "where": [["writer", "==", writer], ["serial", "==", old], ["part", "==", part]]}));
            }
            params.push(json!({"op": "delete", "table": "Total",
                "where": [["writer", "==", writer], ["serial", "==", old]]}));
        }
        if serial % 7 == 0 {
            params.push(
                json!({"op": "comment", "comment": format!("writer {writer}\nserial {serial}")}),
            );
        }
        if self.is_durable {
            params.push(json!({"op": "commit", "durable": true}));
        }
        self.pending.push_back(Pending { serial, deleted });
        json!({"id": serial, "method": "transact", "params": params}).to_string()
    }

    /// Records the reply to the oldest request that has not been answered.
    ///
    /// # Errors
    ///
    /// If the message answers another request, or none.
    pub fn apply_reply(&mut self, reply: &Value) -> Result<Answer, String> {
        let sent = self.pending.pop_front();
        let Some(sent) = sent.filter(|sent| reply.get("id") == Some(&json!(sent.serial))) else {
            return Err(format!("writer {}: unexpected {reply}", self.writer));
        };
        let results = reply.get("result").and_then(Value::as_array);
        let is_done = results
            .is_some_and(|results| !results.iter().any(|result| result.get("error").is_some()))
            && reply.get("error").is_none_or(Value::is_null);
        if is_done {
            self.apply(sent);
            Ok(Answer::Acknowledged)
        } else {
            Ok(Answer::Refused(reply.clone()))
        }
    }

    fn apply(&mut self, sent: Pending) {
        self.alive.insert(sent.serial);
        if let Some(deleted) = sent.deleted {
            self.alive.remove(&deleted);
        }
        self.count += 1;
        self.recent.insert(sent.serial);
        self.recent.remove(&(sent.serial - RECENT));
        self.digits.insert(sent.serial % 10, sent.serial);
    }

    /// Records, after a crash, which of the requests without a reply were committed nevertheless.
    /// Requests after the first one that was not committed are assumed not to be committed either.
    /// If this is wrong, [`Ledger::check`] finds it.
    pub fn reconcile(&mut self, contents: &Contents) {
        for sent in std::mem::take(&mut self.pending) {
            if !contents.totals.contains_key(&(self.writer, sent.serial)) {
                break;
            }
            self.apply(sent);
        }
    }

    /// Returns the differences between `contents` and this ledger; empty if there are none. No
    /// request may be in flight.
    #[must_use]
    pub fn check(&self, contents: &Contents) -> Vec<String> {
        let mut faults = Vec::new();
        let writer = self.writer;
        for &serial in &self.alive {
            let parts = parts(writer, serial, self.text_bytes_max);
            let sum = parts.iter().map(|(value, _)| value).sum();
            let count = i64::try_from(parts.len()).unwrap_or(0);
            match contents.totals.get(&(writer, serial)) {
                None => faults.push(format!("writer {writer}: acknowledged {serial} is lost")),
                Some(&total) if total != (count, sum) => {
                    faults.push(format!(
                        "writer {writer}: {serial} totals {total:?}, not {:?}",
                        (count, sum)
                    ));
                }
                Some(_) => {}
            }
            for (part, entry) in (0..).zip(&parts) {
                if contents.entries.get(&(writer, serial, part)) != Some(entry) {
                    faults.push(format!("writer {writer}: {serial} has not its part {part}"));
                }
            }
        }
        let mine = |&(of, serial): &(i64, i64)| of == writer && !self.alive.contains(&serial);
        for (_, serial) in contents.totals.keys().copied().filter(mine) {
            faults.push(format!(
                "writer {writer}: {serial} is there, although refused, deleted or never sent"
            ));
        }
        let expected = (self.count, self.recent.clone(), self.digits.clone());
        match contents.tallies.get(&writer) {
            None => faults.push(format!("writer {writer}: has no tally")),
            Some(tally) if *tally != expected => {
                faults.push(format!(
                    "writer {writer}: tally {tally:?}, not {expected:?}"
                ));
            }
            Some(_) => {}
        }
        faults
    }
}

/// The row of `Tally`: the counter, the set and the map.
type Tally = (i64, BTreeSet<i64>, BTreeMap<i64, i64>);

/// The contents of a database.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The value and the text, by writer, serial number and part.
    entries: BTreeMap<(i64, i64, i64), (i64, String)>,
    /// The number of parts and their sum, by writer and serial number.
    totals: BTreeMap<(i64, i64), (i64, i64)>,
    tallies: BTreeMap<i64, Tally>,
    /// The texts, by number.
    fillers: BTreeMap<i64, String>,
}

/// Returns the operations whose results [`Contents::from_results`] reads, as parameters of
/// `transact`.
#[must_use]
pub fn selection() -> Value {
    let select = |table: &str, columns: Value| json!({"op": "select", "table": table, "where": [], "columns": columns});
    json!([
        DATABASE,
        select(
            "Entry",
            json!(["writer", "serial", "part", "value", "text"])
        ),
        select("Total", json!(["writer", "serial", "parts", "sum"])),
        select("Tally", json!(["writer", "count", "recent", "digits"])),
        select("Filler", json!(["number", "text"])),
    ])
}

impl Contents {
    /// Reads the contents of the database through a connection.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::call`], and if the reply is not as expected.
    pub fn read(client: &mut Client) -> io::Result<Contents> {
        let reply = client.call("transact", &selection())?;
        reply
            .get("result")
            .and_then(Contents::from_results)
            .ok_or_else(|| io::Error::other(format!("cannot read the contents: {reply}")))
    }

    /// Reads the contents from the results of [`selection`].
    #[must_use]
    pub fn from_results(results: &Value) -> Option<Contents> {
        let rows = |index: usize| results.get(index)?.get("rows")?.as_array();
        let mut contents = Contents::default();
        for row in rows(0)? {
            let key = (
                integer(row, "writer")?,
                integer(row, "serial")?,
                integer(row, "part")?,
            );
            let text = row.get("text")?.as_str()?.to_owned();
            contents.entries.insert(key, (integer(row, "value")?, text));
        }
        for row in rows(1)? {
            let key = (integer(row, "writer")?, integer(row, "serial")?);
            contents
                .totals
                .insert(key, (integer(row, "parts")?, integer(row, "sum")?));
        }
        for row in rows(2)? {
            let recent = elements(row.get("recent")?, "set")?;
            let recent = recent.iter().map(Value::as_i64).collect::<Option<_>>()?;
            let pair =
                |pair: &Value| Some((pair.get(0)?.as_i64()?, pair.get(1)?.as_str()?.parse().ok()?));
            let digits = elements(row.get("digits")?, "map")?;
            let digits = digits.iter().map(pair).collect::<Option<_>>()?;
            contents.tallies.insert(
                integer(row, "writer")?,
                (integer(row, "count")?, recent, digits),
            );
        }
        for row in rows(3)? {
            let text = row.get("text")?.as_str()?.to_owned();
            contents.fillers.insert(integer(row, "number")?, text);
        }
        Some(contents)
    }

    /// Returns the number of rows of `Filler`.
    #[must_use]
    pub fn fillers(&self) -> usize {
        self.fillers.len()
    }

    /// Returns parts that do not belong to a transaction, and transactions of writers that are not
    /// in `ledgers`.
    #[must_use]
    pub fn strays(&self, ledgers: &[Ledger]) -> Vec<String> {
        let known: BTreeSet<i64> = ledgers.iter().map(|ledger| ledger.writer).collect();
        let mut faults = Vec::new();
        for (writer, serial, part) in self.entries.keys() {
            let total = self.totals.get(&(*writer, *serial));
            if total.is_none_or(|(parts, _)| part >= parts) {
                faults.push(format!("writer {writer}: part {part} of {serial} is alone"));
            }
        }
        for (writer, serial) in self.totals.keys() {
            if !known.contains(writer) {
                faults.push(format!("writer {writer} of {serial} is unknown"));
            }
        }
        faults
    }
}

fn integer(row: &Value, column: &str) -> Option<i64> {
    row.get(column)?.as_i64()
}

/// Returns the elements of a set or map. A set of one element may be written as that element.
fn elements<'a>(value: &'a Value, word: &str) -> Option<&'a [Value]> {
    match value.as_array() {
        Some(array) if array.first().is_some_and(|first| first == word) => {
            array.get(1)?.as_array().map(Vec::as_slice)
        }
        _ => Some(std::slice::from_ref(value)),
    }
}

/// Inserts `count` rows into the table `Filler`. The text of each row has about `text_bytes` bytes.
///
/// # Errors
///
/// The errors of [`Client::call`], and if the server rejects the transaction.
pub fn fill(client: &mut Client, count: usize, text_bytes: usize) -> io::Result<()> {
    let numbers: Vec<usize> = (0..count).collect();
    for numbers in numbers.chunks(1000) {
        let mut params = vec![json!(DATABASE)];
        for number in numbers {
            let text = format!("{number:08}-").repeat(text_bytes / 9);
            let row = json!({"number": number, "text": text});
            params.push(json!({"op": "insert", "table": "Filler", "row": row}));
        }
        let reply = client.call("transact", &Value::Array(params))?;
        let results = reply.get("result").and_then(Value::as_array);
        if results.is_none_or(|results| results.iter().any(|result| result.get("error").is_some()))
        {
            return Err(io::Error::other(format!("filling: {reply}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents_of(ledger: &Ledger, serials: &[i64]) -> Contents {
        let mut contents = Contents::default();
        for &serial in serials {
            let parts = parts(ledger.writer, serial, ledger.text_bytes_max);
            let sum = parts.iter().map(|(value, _)| value).sum();
            let count = i64::try_from(parts.len()).unwrap();
            contents
                .totals
                .insert((ledger.writer, serial), (count, sum));
            for (part, entry) in (0..).zip(parts) {
                contents
                    .entries
                    .insert((ledger.writer, serial, part), entry);
            }
        }
        let count = i64::try_from(serials.len()).unwrap();
        let recent = serials.iter().copied().collect();
        let digits = serials
            .iter()
            .map(|serial| (serial % 10, *serial))
            .collect();
        contents
            .tallies
            .insert(ledger.writer, (count, recent, digits));
        contents
    }

    fn ledger_of_three() -> Ledger {
        let mut ledger = Ledger::new(1, true, 100);
        for serial in 1..=3 {
            ledger.request(false);
            if serial < 3 {
                let reply = json!({"id": serial, "result": [{}], "error": null});
                assert_eq!(ledger.apply_reply(&reply), Ok(Answer::Acknowledged));
            }
        }
        ledger
    }

    #[test]
    fn a_transaction_without_an_answer_may_be_there_or_not() {
        for serials in [&[1, 2][..], &[1, 2, 3]] {
            let mut ledger = ledger_of_three();
            let contents = contents_of(&ledger, serials);
            ledger.reconcile(&contents);
            assert_eq!(ledger.check(&contents), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_lost_or_partial_is_found() {
        let mut ledger = ledger_of_three();
        let lost = contents_of(&ledger, &[1]);
        ledger.reconcile(&lost);
        assert!(!ledger.check(&lost).is_empty());
        let mut partial = contents_of(&ledger, &[1, 2]);
        partial.entries.remove(&(1, 2, 0));
        assert!(!ledger.check(&partial).is_empty());
        partial.totals.remove(&(1, 1));
        assert!(!partial.strays(&[ledger]).is_empty());
    }
}
