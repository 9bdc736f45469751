//! Checks of sessions and what they do.

use corvid_json::Value;

use super::{Facts, Finding, Verdict, bytes, fine, share};
use corvid_tools::status::document;

/// A session with less unsent output keeps up, bytes.
const BACKLOG_BYTES: i64 = 16 << 20;
/// Transactions that wait.
const BLOCKED_MAX: i64 = 100;
/// Requests that are queued.
const QUEUED_MAX: i64 = 10_000;
/// Fewer failures say nothing.
const FAILURES_MIN: i64 = 100;
/// A slow transaction is a recent one for this time, ms.
const RECENT_MS: i64 = 3_600_000;
/// A transaction that takes longer is slow, if no setting says otherwise, ms.
const SLOW_MS: i64 = 1_000;
/// A shorter probe interval is too short for a client that is busy for a moment, ms.
const PROBE_MIN_MS: i64 = 5_000;

/// Sessions are left.
pub(super) fn sessions(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let count = document::list(document, "sessions")?.len();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let limit = setting(document, "max-sessions")?;
        let (verdict, percent) = share(count, limit, 80, 95);
        Some((verdict, format!("{count} of {limit} ({percent} %)")))
    })
}

/// The number that a setting has.
fn setting(document: &Value, name: &str) -> Option<i64> {
    let text = document.get("settings")?.get(name)?.as_str()?;
    text.parse().ok()
}

/// The name of a session.
fn named(session: &Value) -> String {
    let text = |path| document::text(session, path).filter(|text| !text.is_empty());
    let peer = text("peer").unwrap_or("?");
    match text("program").or_else(|| text("client")) {
        Some(name) => format!("{peer} ({name})"),
        None => peer.to_owned(),
    }
}

/// Clients read what they ask for.
pub(super) fn backlog(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let sessions = document::list(document, "sessions")?.iter();
        let worst = sessions.max_by_key(|session| document::number(session, "backlog_bytes"));
        let Some(session) = worst else {
            return Some(fine("no sessions"));
        };
        let size = document::number(session, "backlog_bytes")?;
        let limit = setting(document, "max-session-backlog").filter(|limit| *limit > 0);
        let verdict = match limit {
            Some(limit) if size > limit / 2 => Verdict::Bad,
            _ if size > BACKLOG_BYTES => Verdict::Warn,
            _ => Verdict::Ok,
        };
        Some((
            verdict,
            format!("at most {}: {}", bytes(size), named(session)),
        ))
    })
}

/// Few transactions wait.
pub(super) fn blocked(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let blocked = document::number(database, "blocked_transactions")?;
        let queued = document::number(database, "queue.requests").unwrap_or(0);
        let evidence = format!("{blocked} transactions wait, {queued} requests are queued");
        Some(match blocked > BLOCKED_MAX || queued > QUEUED_MAX {
            true => (Verdict::Warn, evidence),
            false => fine(evidence),
        })
    })
}

/// Most transactions succeed.
pub(super) fn failed(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let count = |name: &str| document::number(database, &format!("transactions.{name}"));
        let failed = count("failed")?;
        let all = failed
            .saturating_add(count("committed")?)
            .saturating_add(count("unchanged").unwrap_or(0));
        let evidence = format!("{failed} of {all} transactions failed");
        Some(match failed >= FAILURES_MIN && failed > all / 2 {
            true => (Verdict::Warn, evidence),
            false => fine(evidence),
        })
    })
}

/// No transaction of the last hour was slow.
pub(super) fn slow(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|look, _, database| {
        let Some(all) = document::list(database, "slow_transactions") else {
            return Some((Verdict::Unknown, "this server does not tell it".to_owned()));
        };
        let document = look.document()?;
        let now_ms = document::number(document, "time_ms")?;
        let limit_ms = setting(document, "slow-transaction-ms").unwrap_or(SLOW_MS);
        let recent: Vec<&Value> = all
            .iter()
            .filter(|it| {
                let time_ms = document::number(it, "time_ms").unwrap_or(0);
                let is_slow = document::number(it, "duration_ms") >= Some(limit_ms);
                is_slow && now_ms.saturating_sub(time_ms) < RECENT_MS
            })
            .collect();
        let slowest = recent
            .iter()
            .max_by_key(|it| document::number(it, "duration_ms"));
        Some(match slowest {
            None => fine("none in the last hour"),
            Some(slowest) => {
                let duration_ms = document::number(slowest, "duration_ms").unwrap_or(0);
                let client = document::text(slowest, "client").unwrap_or("?");
                let count = recent.len();
                let evidence =
                    format!("{count} in the last hour, the slowest {duration_ms} ms of {client}");
                (Verdict::Warn, evidence)
            }
        })
    })
}

/// Remotes in rows probe their clients, and not too often.
pub(super) fn probes(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for look in &facts.fleet.looks {
        for row in &look.remotes {
            let (verdict, words) = match row.probe_ms {
                None => (Verdict::Ok, "the default interval".to_owned()),
                Some(0) => (Verdict::Warn, "off".to_owned()),
                Some(ms) if ms < PROBE_MIN_MS => (Verdict::Warn, format!("every {ms} ms")),
                Some(ms) => (Verdict::Ok, format!("every {ms} ms")),
            };
            let evidence = format!("probes of {}: {words}", row.target);
            findings.push(Finding {
                words: vec![
                    ("TABLE", row.table.to_owned()),
                    ("RECORD", row.uuid.clone()),
                ],
                ..Finding::of(look, Some(&row.database), (verdict, evidence))
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Bad, Ok, Unknown, Warn};
    use super::*;
    use crate::doctor::tests::{database, facts, verdicts};
    use crate::fleet::remotes::RemoteRow;

    #[test]
    fn sessions_have_a_limit() {
        let of = |limit: i64| {
            facts(&format!(
                r#"{{"version":1,"databases":[],"sessions":[{{}},{{}},{{}},{{}}],"settings":{{"max-sessions":"{limit}"}}}}"#
            ))
        };
        assert_eq!(verdicts(sessions, &of(100)), [Ok]);
        assert_eq!(verdicts(sessions, &of(5)), [Warn]);
        assert_eq!(verdicts(sessions, &of(4)), [Bad]);
    }

    #[test]
    fn a_client_that_does_not_read_is_named() {
        let of = |bytes: i64| {
            facts(&format!(
                r#"{{"version":1,"databases":[],"sessions":[{{"peer":"unix#1","backlog_bytes":0}},{{"peer":"unix#2","client":"c","backlog_bytes":{bytes}}}],
                    "settings":{{"max-session-backlog":"100000000"}}}}"#
            ))
        };
        assert_eq!(verdicts(backlog, &of(1_000)), [Ok]);
        let findings = backlog(&of(20 << 20));
        assert_eq!(findings[0].verdict, Warn);
        assert!(findings[0].evidence.ends_with("unix#2 (c)"));
        assert_eq!(verdicts(backlog, &of(60_000_000)), [Bad]);
    }

    #[test]
    fn waits_and_failures_are_counted() {
        let of = database(
            r#""blocked_transactions":3,"queue":{"requests":0},"transactions":{"failed":50,"committed":3,"unchanged":0}"#,
        );
        assert_eq!(verdicts(blocked, &of), [Ok]);
        assert_eq!(verdicts(failed, &of), [Ok]);
        let of = database(
            r#""blocked_transactions":300,"transactions":{"failed":150,"committed":3,"unchanged":0}"#,
        );
        assert_eq!(verdicts(blocked, &of), [Warn]);
        assert_eq!(verdicts(failed, &of), [Warn]);
    }

    #[test]
    fn slow_transactions_of_the_last_hour_count() {
        let of = |list: &str| {
            facts(&format!(
                r#"{{"version":1,"time_ms":9000000,"databases":[{{"name":"Lab"{list}}}]}}"#
            ))
        };
        assert_eq!(verdicts(slow, &of("")), [Unknown]);
        let old = r#","slow_transactions":[{"time_ms":1,"duration_ms":5000}]"#;
        assert_eq!(verdicts(slow, &of(old)), [Ok]);
        let new = r#","slow_transactions":[{"time_ms":8999999,"duration_ms":1000,"client":"c"}]"#;
        assert_eq!(verdicts(slow, &of(new)), [Warn]);
        // The server tells shorter ones too.
        assert_eq!(verdicts(slow, &of(&new.replace("1000", "999"))), [Ok]);
    }

    #[test]
    fn probes_may_be_neither_off_nor_short() {
        let mut of = facts("{}");
        for (probe_ms, expected) in [
            (None, Ok),
            (Some(0), Warn),
            (Some(1_000), Warn),
            (Some(60_000), Ok),
        ] {
            of.fleet.looks[0].remotes = vec![RemoteRow {
                database: "Lab".to_owned(),
                table: "Connection",
                uuid: "u".to_owned(),
                target: "ptcp:1".to_owned(),
                probe_ms,
            }];
            assert_eq!(verdicts(probes, &of), [expected]);
        }
    }
}
