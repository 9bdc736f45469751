//! The allowed differences between the servers, each with its reason. Every other difference is an
//! error.

use corvid_json::{Object, Value};

/// An allowed difference between two errors for one operation.
struct Deviation {
    reason: &'static str,
    applies: fn(operation: Option<&Value>, ours: &Value, theirs: &Value) -> bool,
}

const DEVIATIONS: [Deviation; 7] = [
    Deviation {
        reason: "elapsed milliseconds",
        applies: |_, ours, theirs| {
            let is_timeout = |error: &Value| {
                tag(error) == "timed out" && details(error).contains(" timed out after ")
            };
            is_timeout(ours) && is_timeout(theirs)
        },
    },
    Deviation {
        reason: "duplicate uuid names the table since 2026 (docs/spec/protocol.md 5.2)",
        applies: |_, ours, theirs| tag(ours) == "duplicate uuid" && tag(theirs) == "duplicate uuid",
    },
    Deviation {
        reason: "which of two rows with one key is named first (docs/spec/protocol.md 5.12)",
        applies: |_, ours, theirs| {
            let is_index =
                |error: &Value| details(error).starts_with("Transaction causes multiple rows");
            is_index(ours) && is_index(theirs)
        },
    },
    Deviation {
        reason: "which of several violations of a commit is reported (docs/spec/protocol.md 5.12)",
        applies: |operation, ours, theirs| {
            operation.is_none() && tag(ours) == tag(theirs) && tag(ours) != "syntax error"
        },
    },
    Deviation {
        reason: "which of several rows that a mutation does not fit is visited first (docs/spec/protocol.md 5.5)",
        applies: |operation, ours, theirs| {
            operation.is_some_and(|operation| operation.get("mutations").is_some())
                && tag(ours) == tag(theirs)
                && tag(ours) != "syntax error"
        },
    },
    Deviation {
        reason: "which of several repeated columns of a monitor request is named (docs/spec/protocol.md 11)",
        applies: |_, ours, theirs| {
            let is_repeated = |error: &Value| details(error).ends_with(" mentioned more than once");
            is_repeated(ours) && is_repeated(theirs)
        },
    },
    Deviation {
        reason: "which of several faults of one object is reported first (docs/spec/protocol.md 11)",
        applies: |operation, _, _| {
            operation.is_some_and(|operation| {
                operation.get("row").is_some() || operation.get("rows").is_some()
            })
        },
    },
];

/// Returns the reason why two errors may differ, if there is one.
#[must_use]
pub fn of_errors(operation: Option<&Value>, ours: &Value, theirs: &Value) -> Option<&'static str> {
    let mut applying = DEVIATIONS
        .iter()
        .filter(|deviation| (deviation.applies)(operation, ours, theirs));
    applying.next().map(|deviation| deviation.reason)
}

fn tag(error: &Value) -> &str {
    error
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn details(error: &Value) -> &str {
    error
        .get("details")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns a reply to a monitor request without the id of the newest transaction. Our standalone
/// server sends that id, and the reference does not (docs/spec/protocol.md 4.9).
#[must_use]
pub fn monitor_reply(reply: &Value) -> Value {
    let mut reply = reply.clone();
    if let Value::Object(members) = &mut reply
        && let Some(Value::Array(result)) = members.get_mut(bstr::BStr::new("result"))
        && let [_, id, _] = &mut result[..]
    {
        *id = Value::Null;
    }
    reply
}

/// Whether two lists of updates are equal except for rows for which the reference reports only a
/// new `_version`. Such a row gained a dangling weak reference and lost it in the same commit; in
/// our server the row does not change.
#[must_use]
pub fn without_renewals(ours: &[Value], theirs: &[Value]) -> bool {
    let is_renewal = |row: &Value| {
        // `update` has the old values of changed columns; `update2` and `update3` have the
        // differences.
        let old = row.get("old").filter(|_| row.get("new").is_some());
        let changed = old.or_else(|| row.get("modify"));
        let changed = changed.and_then(Value::as_object);
        changed.is_some_and(|changed| changed.keys().all(|column| *column == "_version"))
    };
    let has_row = |updates: &Value, table: &str, uuid: &str| {
        updates.get(table).and_then(|rows| rows.get(uuid)).is_some()
    };
    let strip = |theirs: &Value| {
        let mut rest = Object::new();
        for (table, rows) in theirs.as_object().into_iter().flatten() {
            let rows = rows
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(uuid, row)| {
                    let is_ours = ours
                        .iter()
                        .any(|ours| has_row(ours, &table.to_string(), &uuid.to_string()));
                    is_ours || !is_renewal(row)
                });
            let rows: Object = rows
                .map(|(uuid, row)| (uuid.clone(), row.clone()))
                .collect();
            if !rows.is_empty() {
                rest.insert(table.clone(), Value::Object(rows));
            }
        }
        Value::Object(rest)
    };
    let nothing = Value::Object(Object::new());
    let theirs: Vec<Value> = theirs
        .iter()
        .map(strip)
        .filter(|updates| *updates != nothing)
        .collect();
    theirs == ours
}
