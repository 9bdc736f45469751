//! The texts of requests, which are built before a measurement starts, and functions that read
//! replies.
//!
//! The requests of a writer are in one buffer, and sending one writes a slice of the buffer. So
//! between a reply and the next request, the generator only has to find the end of the reply.

use std::fmt::Write as _;
use std::ops::Range;

use memchr::memmem;

use crate::load::{Load, Operation};

/// The number of rows that one transaction of the preparation inserts.
pub(crate) const ROWS_PER_FILL: u32 = 1_000;

/// Requests, one after another in one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    text: Vec<u8>,
    /// The position at which each request ends.
    ends: Vec<usize>,
}

impl Requests {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the size of all requests in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// A list of a single request.
    pub(crate) fn one(text: &str) -> Requests {
        let mut requests = Requests::default();
        requests.push(text);
        requests
    }

    /// Returns all requests as one text.
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Returns the text of request `number`.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    /// Returns the position at which request `number` ends.
    pub(crate) fn end(&self, number: usize) -> usize {
        self.ends[number]
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.ends.push(self.text.len());
    }
}

/// Appends the contents of one row, about 200 bytes of JSON.
pub(crate) fn row(out: &mut String, name: &str, number: u32) {
    let (high, low) = (number / 256 % 256, number % 256);
    let _ = write!(
        out,
        r#"{{"name":"{name}","number":{number},"up":true,"addresses":["set",["0a:00:00:00:{high:02x}:{low:02x}","10.0.{high}.{low}"]],"options":["map",[["requested-chassis","host-{low}"],["mcast_flood","true"]]]}}"#
    );
}

/// Returns the requests of writer `writer`. `uuids` are the existing rows.
pub(crate) fn of_writer(load: &Load, writer: u32, uuids: &[String]) -> Requests {
    let mut requests = Requests::default();
    let mut text = String::new();
    // All servers get the rows in the same fixed order, which has no locality. The step has no
    // common factor with the number of rows, so all rows are visited.
    let stride = stride(uuids.len());
    let mut at = uuids.len() * writer as usize / load.writers as usize;
    for number in 0..load.transactions {
        text.clear();
        match load.operation {
            Operation::Insert => {
                text.push_str(r#"{"method":"transact","params":["Bench",{"op":"insert","table":"Item","row":"#);
                row(&mut text, &format!("port-{writer:04}-{number:08}"), number);
            }
            Operation::Update => {
                let uuid = &uuids[at];
                at = (at + stride) % uuids.len();
                let _ = write!(
                    text,
                    r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{number},"options":["map",[["requested-chassis","host-{}"],["mcast_flood","true"]]]}}"#,
                    number % 512
                );
            }
        }
        text.push('}');
        if load.is_durable {
            text.push_str(r#",{"op":"commit","durable":true}"#);
        }
        let _ = write!(text, r#"],"id":{number}}}"#);
        requests.push(&text);
    }
    requests
}

/// Returns a step near the golden section of `count` that has no common factor with `count`.
fn stride(count: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut stride = (count * 618 / 1000).max(1);
    while count > 1 && gcd(stride, count) != 1 {
        stride += 1;
    }
    stride
}

/// Returns a request that sets the number of a row.
pub(crate) fn set_number(id: u64, uuid: &str, number: u64) -> String {
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{number}}}}}],"id":{id}}}"#
    )
}

/// Returns an echo request.
pub(crate) fn echo(id: u64) -> String {
    format!(r#"{{"method":"echo","params":[],"id":{id}}}"#)
}

/// Returns transactions that insert `rows` rows.
pub(crate) fn fill(rows: u32) -> Requests {
    let mut requests = Requests::default();
    for first in (0..rows).step_by(ROWS_PER_FILL as usize) {
        requests.push(&insertion(first..rows.min(first + ROWS_PER_FILL)));
    }
    requests
}

/// Returns one transaction that inserts the rows with these numbers.
pub(crate) fn insert_many(numbers: Range<u32>) -> Requests {
    Requests::one(&insertion(numbers))
}

fn insertion(numbers: Range<u32>) -> String {
    let first = numbers.start;
    let mut text = r#"{"method":"transact","params":["Bench""#.to_owned();
    for number in numbers {
        text.push_str(r#",{"op":"insert","table":"Item","row":"#);
        row(&mut text, &format!("item-{number:08}"), number);
        text.push('}');
    }
    let _ = write!(text, r#"],"id":{first}}}"#);
    text
}

/// Monitors the whole table, as current clients do.
pub(crate) fn monitor() -> Requests {
    let mut requests = Requests::default();
    requests.push(
        r#"{"method":"monitor_cond","params":["Bench","m",{"Item":[{"columns":["name","number","up","addresses","options"]}]}],"id":0}"#,
    );
    requests
}

/// The name of the marker row. Inserting this row ends a measurement: a monitor that has received
/// it has received all earlier changes.
pub(crate) const MARKER: &[u8] = b"the-last-row";

/// Inserts the marker row.
pub(crate) fn marker() -> Requests {
    let mut requests = Requests::default();
    requests.push(
        r#"{"method":"transact","params":["Bench",{"op":"insert","table":"Item","row":{"name":"the-last-row"}}],"id":"marker"}"#,
    );
    requests
}

/// Whether a reply contains an error of the request or of an operation.
pub(crate) fn is_error(reply: &[u8]) -> bool {
    let member = br#""error":"#;
    memmem::find_iter(reply, member).any(|at| !reply[at + member.len()..].starts_with(b"null"))
}

/// Returns the UUIDs of the inserted rows, in the order of their operations.
pub(crate) fn inserted_uuids(reply: &[u8]) -> impl Iterator<Item = String> + '_ {
    let lead = br#"["uuid",""#;
    memmem::find_iter(reply, lead).filter_map(move |at| {
        let uuid = reply.get(at + lead.len()..at + lead.len() + 36)?;
        Some(String::from_utf8_lossy(uuid).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    fn load(operation: Operation) -> Load {
        Load {
            operation,
            rows: 0,
            writers: 2,
            transactions: 3,
            depth: 1,
            monitors: 0,
            is_durable: operation == Operation::Insert,
        }
    }

    #[test]
    fn requests_are_json() {
        let uuids = vec!["00000000-0000-4000-8000-000000000000".to_owned()];
        let inserts = of_writer(&load(Operation::Insert), 0, &[]);
        let updates = of_writer(&load(Operation::Update), 1, &uuids);
        for requests in [inserts, updates, fill(1_500), monitor(), marker()] {
            for number in 0..requests.len() {
                Value::parse(requests.get(number)).unwrap();
            }
        }
        assert_eq!(fill(1_500).len(), 2);
    }

    #[test]
    fn strides_reach_every_row() {
        for count in [1, 2, 7, 1_000, 200_000] {
            let step = stride(count);
            let mut at = 0;
            let mut steps = 0;
            loop {
                at = (at + step) % count;
                steps += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(steps, count);
        }
    }

    #[test]
    fn errors_of_operations_are_seen() {
        assert!(!is_error(
            br#"{"id":1,"result":[{"count":1}],"error":null}"#
        ));
        assert!(is_error(
            br#"{"id":1,"result":[{"error":"x"}],"error":null}"#
        ));
        assert!(is_error(br#"{"id":1,"result":null,"error":{"error":"x"}}"#));
    }
}
