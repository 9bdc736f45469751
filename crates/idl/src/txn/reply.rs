//! Reads the reply to a transaction (docs/spec/idl.md 2.7).
//!
//! If several things are wrong, the gravest counts: first an error, then a missing lock, then
//! failures that a retry may cure.

use std::collections::BTreeMap;

use corvid_data::{Uuid, WireError};
use corvid_json::Value;

use super::Status;
use super::compose::Expected;
use super::refused::Refused;

/// How a transaction ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) status: Status,
    /// For [`Status::Error`]: the first result that is an error, as JSON with sorted members.
    pub(crate) error: Option<String>,
    /// For [`Status::Error`]: the same error, parsed.
    pub(crate) refused: Option<Refused>,
    /// The server turns out to lack the database, so the replica cannot be trusted.
    pub(crate) is_inconsistent: bool,
    /// The new value of the incremented counter.
    pub(crate) counter: Option<i64>,
    /// The server's UUIDs of inserted rows, by their provisional UUIDs.
    pub(crate) inserted: BTreeMap<Uuid, Uuid>,
}

impl Verdict {
    pub(crate) fn of(status: Status) -> Verdict {
        Verdict {
            status,
            error: None,
            refused: None,
            is_inconsistent: false,
            counter: None,
            inserted: BTreeMap::new(),
        }
    }

    fn error(json: &Value, refused: Refused) -> Verdict {
        Verdict {
            error: Some(json.to_string()),
            refused: Some(refused),
            ..Verdict::of(Status::Error)
        }
    }

    /// The verdict for a transaction that was not sent, in the form of a server's error.
    pub(crate) fn refused(error: &WireError) -> Verdict {
        let mut json = Vec::new();
        error.write_json(&mut json);
        judge_error(&json)
    }

    /// The verdict for a reply that is malformed.
    fn odd(json: &Value) -> Verdict {
        Verdict::error(json, Refused::other(json))
    }

    /// The verdict for a reply that is not JSON. A session never passes one on.
    fn unreadable(text: &[u8]) -> Verdict {
        let json = String::from_utf8_lossy(text).into_owned();
        Verdict {
            refused: Some(Refused::Other { json }),
            ..Verdict::of(Status::Error)
        }
    }
}

/// The verdict for an error that replaces the results.
pub(crate) fn judge_error(error: &[u8]) -> Verdict {
    let Ok(json) = Value::parse(error) else {
        return Verdict::unreadable(error);
    };
    if json.as_str() == Some("canceled") {
        return Verdict::of(Status::TryAgain);
    }
    if json.get("error").and_then(Value::as_str) == Some("unknown database") {
        return Verdict {
            is_inconsistent: true,
            ..Verdict::of(Status::TryAgain)
        };
    }
    Verdict::error(&json, Refused::by_error(&json))
}

/// The verdict for the results.
pub(crate) fn judge(result: &[u8], expected: &Expected) -> Verdict {
    let Ok(json) = Value::parse(result) else {
        return Verdict::unreadable(result);
    };
    let Some(results) = json.as_array() else {
        return Verdict::odd(&json);
    };
    let (mut may_try_again, mut is_unlocked, mut is_inconsistent) = (false, false, false);
    for (index, result) in results.iter().enumerate() {
        let members = match result {
            // The server did not try this operation, because an earlier one failed.
            Value::Null => {
                may_try_again = true;
                continue;
            }
            Value::Object(_) => result.get("error"),
            _ => return Verdict::odd(result),
        };
        let Some(error) = members else { continue };
        match error.as_str() {
            Some("timed out") => may_try_again = true,
            Some("unknown database") => (may_try_again, is_inconsistent) = (true, true),
            Some("not owner") => is_unlocked = true,
            // The `abort` that ends a dry run. A dry run counts as a success.
            Some("aborted") => {}
            _ => {
                let refused = Refused::by_result(result, index, expected.count);
                return Verdict::error(result, refused);
            }
        }
    }
    if is_unlocked || may_try_again {
        let status = if is_unlocked {
            Status::NotLocked
        } else {
            Status::TryAgain
        };
        return Verdict {
            is_inconsistent,
            ..Verdict::of(status)
        };
    }
    details(results, expected).unwrap_or_else(|| Verdict::odd(&json))
}

/// The results of the inserts and of the increment; `None` if they are malformed.
fn details(results: &[Value], expected: &Expected) -> Option<Verdict> {
    let mut verdict = Verdict::of(Status::Success);
    for &(place, provisional) in &expected.inserts {
        let [tag, uuid] = results.get(place)?.get("uuid")?.as_array()? else {
            return None;
        };
        let uuid = Uuid::parse(uuid.as_str()?.as_bytes()).filter(|_| tag.as_str() == Some("uuid"));
        verdict.inserted.insert(provisional, uuid?);
    }
    if let Some(place) = expected.increment {
        let count = results.get(place)?.get("count")?.as_integer();
        let rows = results.get(place + 1)?.get("rows")?.as_array()?;
        let (Some(1), [row]) = (count, rows) else {
            return None;
        };
        let counter = row.as_object()?.values().next()?.as_integer()?;
        verdict.counter = Some(counter);
    }
    Some(verdict)
}
