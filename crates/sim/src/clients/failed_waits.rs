//! The transactions whose `wait` has failed, as the replies say. The library reports the same
//! status for them and for those with an unknown outcome, but these are decided: they were not
//! executed.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;
use corvid_json::frame::{Framed, Framer};

/// The messages of one client, and what they say about its transactions.
#[derive(Default)]
pub(super) struct FailedWaits {
    requests: Messages,
    replies: Messages,
    /// The number of the transaction of each request.
    numbers: BTreeMap<i64, i64>,
    failed: BTreeSet<i64>,
}

impl FailedWaits {
    /// Whether the `wait` of the transaction with this number has failed.
    pub(super) fn contains(&self, number: i64) -> bool {
        self.failed.contains(&number)
    }

    /// A connection begins.
    pub(super) fn connected(&mut self) {
        (self.requests, self.replies) = Default::default();
    }

    /// Reads what the client sends.
    ///
    /// # Errors
    /// It is not JSON.
    pub(super) fn sent(&mut self, bytes: &[u8]) -> Result<(), String> {
        for message in self.requests.add(bytes)? {
            let id = message.get("id").and_then(Value::as_integer);
            let number = message.get("params").and_then(marked);
            self.numbers.extend(id.zip(number));
        }
        Ok(())
    }

    /// Reads what the server sends.
    ///
    /// # Errors
    /// It is not JSON.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<(), String> {
        for message in self.replies.add(bytes)? {
            let id = message.get("id").and_then(Value::as_integer);
            let results = message.get("result").and_then(Value::as_array);
            let is_timed_out =
                |result: &Value| result.get("error").and_then(Value::as_str) == Some("timed out");
            if results.is_some_and(|results| results.iter().any(is_timed_out))
                && let Some(number) = id.and_then(|id| self.numbers.get(&id))
            {
                self.failed.insert(*number);
            }
        }
        Ok(())
    }
}

/// The number that a transaction adds to `Head.txns`.
fn marked(params: &Value) -> Option<i64> {
    let params = params.as_array()?;
    let is_mark = |operation: &Value| -> Option<i64> {
        let [mutation] = operation.get("mutations")?.as_array()? else {
            return None;
        };
        let [column, _, value] = mutation.as_array()? else {
            return None;
        };
        let [_, elements] = value.as_array()? else {
            return None;
        };
        let [number] = elements.as_array()? else {
            return None;
        };
        number
            .as_integer()
            .filter(|_| column.as_str() == Some("txns"))
    };
    // Those of `transact_once` are an element of its parameters.
    let found = params.iter().find_map(is_mark);
    found.or_else(|| params.iter().find_map(marked))
}

/// A stream of messages that are torn anywhere.
#[derive(Default)]
struct Messages {
    framer: Framer,
    begun: Vec<u8>,
}

impl Messages {
    fn add(&mut self, mut bytes: &[u8]) -> Result<Vec<Value>, String> {
        let mut whole = Vec::new();
        while !bytes.is_empty() {
            match self
                .framer
                .advance(bytes)
                .map_err(|error| error.to_string())?
            {
                Framed::Complete { start, end } => {
                    self.begun.extend_from_slice(&bytes[start..end]);
                    let text = std::mem::take(&mut self.begun);
                    whole.push(Value::parse(&text).map_err(|error| error.to_string())?);
                    bytes = &bytes[end..];
                }
                Framed::Partial { start } => {
                    self.begun.extend_from_slice(&bytes[start..]);
                    break;
                }
            }
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_fails_belongs_to_the_transaction_of_its_request() {
        let mark = r#"{"op":"mutate","table":"Head","where":[],"mutations":[["txns","insert",["set",[52]]]]}"#;
        let plain = format!(r#"{{"id":7,"method":"transact","params":["A",{mark}]}}"#);
        let once =
            format!(r#"{{"id":7,"method":"transact_once","params":["x",null,["A",{mark}]]}}"#);
        let reply = |id: u64, error: &str| {
            format!(r#"{{"id":{id},"result":[{{"error":"{error}"}},null],"error":null}}"#)
        };
        for request in [plain, once] {
            let mut waits = FailedWaits::default();
            let (torn, rest) = request.split_at(60);
            waits.sent(torn.as_bytes()).expect("JSON");
            waits.sent(rest.as_bytes()).expect("JSON");
            let others = reply(8, "timed out") + &reply(7, "aborted");
            waits.received(others.as_bytes()).expect("JSON");
            assert!(!waits.contains(52));
            waits
                .received(reply(7, "timed out").as_bytes())
                .expect("JSON");
            assert!(waits.contains(52));
        }
    }
}
