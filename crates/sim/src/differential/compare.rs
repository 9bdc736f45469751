//! Compares the replies of two servers to the same request.

use std::collections::BTreeMap;

use corvid_json::Value;

use super::deviations;
use super::traffic::Request;
use crate::normal::{self, Known};

/// The context of comparisons.
pub struct Comparison<'c> {
    /// Names of our server's rows.
    pub ours: &'c Known,
    /// Names of the reference's rows.
    pub theirs: &'c Known,
    /// Number of occurrences of each documented deviation.
    pub deviations: &'c mut BTreeMap<&'static str, usize>,
}

impl Comparison<'_> {
    /// Compares two replies to one request.
    ///
    /// # Errors
    /// A difference that is not documented.
    pub fn reply(&mut self, request: &Request, ours: &Value, theirs: &Value) -> Result<(), String> {
        let raw = (ours, theirs);
        let (mut ours, mut theirs) = (self.ours.value(ours), self.theirs.value(theirs));
        if request.method == "transact" {
            self.results(request, &mut ours, &mut theirs)?;
            self.order(request, raw.0, raw.1)?;
        } else if request.method.starts_with("monitor") {
            (ours, theirs) = (
                deviations::monitor_reply(&ours),
                deviations::monitor_reply(&theirs),
            );
        }
        self.same(&request.method, &ours, &theirs)
    }

    /// Replaces documented deviations in the results of a transaction.
    fn results(
        &mut self,
        request: &Request,
        ours: &mut Value,
        theirs: &mut Value,
    ) -> Result<(), String> {
        let (Some(Value::Array(ours)), Some(Value::Array(theirs))) =
            (result_mut(ours), result_mut(theirs))
        else {
            return Ok(());
        };
        for (position, (ours, theirs)) in ours.iter_mut().zip(theirs.iter_mut()).enumerate() {
            let operation = request
                .params
                .as_array()
                .and_then(|params| params.get(position + 1));
            if ours != theirs && is_error(ours) && is_error(theirs) {
                self.same_error(operation, ours, theirs)?;
                *ours = theirs.clone();
            }
        }
        Ok(())
    }

    fn same_error(
        &mut self,
        operation: Option<&Value>,
        ours: &Value,
        theirs: &Value,
    ) -> Result<(), String> {
        match deviations::of_errors(operation, ours, theirs) {
            Some(reason) => {
                *self.deviations.entry(reason).or_default() += 1;
                Ok(())
            }
            None => Err(format!("{ours}\nreference: {theirs}")),
        }
    }

    fn same(&mut self, what: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
        if ours == theirs {
            return Ok(());
        }
        if let (Some(our_error), Some(their_error)) = (ours.get("error"), theirs.get("error"))
            && is_error(our_error)
            && is_error(their_error)
        {
            return self.same_error(None, our_error, their_error);
        }
        Err(format!("{what}: {ours}\nreference: {theirs}"))
    }

    /// Checks that sorted rows come in the same order from both servers.
    fn order(&mut self, request: &Request, ours: &Value, theirs: &Value) -> Result<(), String> {
        let operations = request.params.as_array().unwrap_or_default().iter().skip(1);
        for (position, operation) in operations.enumerate() {
            let Some(sort) = operation.get("sort").and_then(Value::as_array) else {
                continue;
            };
            let result = |reply: &Value| {
                reply
                    .get("result")
                    .and_then(Value::as_array)
                    .and_then(|results| results.get(position).cloned())
            };
            let (Some(ours), Some(theirs)) = (result(ours), result(theirs)) else {
                continue;
            };
            let ours = normal::sort_keys(self.ours, sort, &ours);
            let theirs = normal::sort_keys(self.theirs, sort, &theirs);
            // UUIDs that the servers chose sort differently.
            let is_chosen = format!("{theirs:?}").contains('#');
            if ours != theirs && !is_chosen {
                return Err(format!("order {ours:?}\nreference: {theirs:?}"));
            }
        }
        Ok(())
    }

    /// Compares the notifications on two connections. The comparison is less exact if more than one
    /// commit happened in between.
    ///
    /// # Errors
    /// A difference that is not documented.
    pub fn notifications(
        &mut self,
        ours: &[Value],
        theirs: &[Value],
        has_several_commits: bool,
    ) -> Result<(), String> {
        let ours = by_subject(self.ours, ours);
        let theirs = by_subject(self.theirs, theirs);
        let subjects: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
        for subject in subjects {
            let (ours, theirs) = (ours.get(subject), theirs.get(subject));
            if ours == theirs {
                continue;
            }
            let reason = "row whose only change was undone by the commit: the reference renews its _version (docs/spec/protocol.md 2.5)";
            if let (Some(theirs), ours) = (theirs, ours.map_or(&[][..], Vec::as_slice))
                && deviations::without_renewals(ours, theirs)
            {
                *self.deviations.entry(reason).or_default() += 1;
                continue;
            }
            if has_several_commits {
                let reason =
                    "several commits merged in one update or not (docs/spec/protocol.md 1.10)";
                *self.deviations.entry(reason).or_default() += 1;
                continue;
            }
            return Err(format!("{subject}: {ours:?}\nreference: {theirs:?}"));
        }
        Ok(())
    }
}

fn is_error(value: &Value) -> bool {
    value.get("error").is_some()
}

fn result_mut(reply: &mut Value) -> Option<&mut Value> {
    match reply {
        Value::Object(members) => members.get_mut(bstr::BStr::new("result")),
        _ => None,
    }
}

/// Groups notifications by subject: a monitor, or locks. The order between different monitors is
/// not fixed.
fn by_subject(known: &Known, messages: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut subjects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for message in messages {
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let params = message
            .get("params")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let subject = format!("{method} {}", params.first().unwrap_or(&Value::Null));
        let content = match (method.starts_with("update"), params.last()) {
            (true, Some(updates)) => normal::without_empty_modifications(&known.value(updates)),
            _ => message.clone(),
        };
        let is_empty = content
            .as_object()
            .is_some_and(std::collections::BTreeMap::is_empty);
        if !is_empty {
            subjects.entry(subject).or_default().push(content);
        }
    }
    subjects
}
