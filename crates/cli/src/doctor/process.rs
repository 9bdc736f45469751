//! Checks of the process and its machine.

use std::collections::BTreeSet;

use super::{Facts, Finding, Verdict, bytes, fine, share};
use corvid_tools::status::document;

/// Clocks that differ by less are the same, ms.
const CLOCK_MAX_MS: i64 = 2_000;

/// The server is ready for clients.
pub(super) fn ready(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let faults = document::list(document, "server.faults")?;
        let reasons: Vec<String> = faults
            .iter()
            .filter_map(|fault| {
                let check = document::text(fault, "check")?;
                Some(format!("{check}: {}", document::text(fault, "why")?))
            })
            .collect();
        let is_ready = document::flag(document, "server.ready") != Some(false);
        Some(match (is_ready && reasons.is_empty(), reasons.is_empty()) {
            (true, _) => fine("ready"),
            (false, true) => (Verdict::Bad, "not ready".to_owned()),
            (false, false) => (Verdict::Bad, reasons.join("; ")),
        })
    })
}

/// Every thread answers.
pub(super) fn threads(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let silent = document::list(document, "unanswered")?;
        let names: Vec<&str> = silent.iter().filter_map(|name| name.as_str()).collect();
        Some(match names.is_empty() {
            true => fine("all threads answer"),
            false => (Verdict::Bad, format!("no answer: {}", names.join(", "))),
        })
    })
}

/// All servers have the same version.
pub(super) fn versions(facts: &Facts) -> Vec<Finding> {
    let looks = facts.fleet.looks.iter();
    let documents = looks.filter_map(|look| look.document());
    let versions: BTreeSet<&str> = documents
        .filter_map(|document| document::text(document, "server.program"))
        .collect();
    let all: Vec<&str> = versions.into_iter().collect();
    let judged = match all.as_slice() {
        [] => super::no_status(),
        [only] => fine(*only),
        several => (Verdict::Warn, several.join(", ")),
    };
    vec![Finding::overall(judged)]
}

/// The server's clock is the same as this machine's.
pub(super) fn clocks(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|look, _, document| {
        let status = look.status.as_ref()?;
        let time_ms = document::number(document, "time_ms")?;
        let took_ms = i64::try_from(status.took_ms).unwrap_or(i64::MAX);
        let apart_ms = time_ms.saturating_sub(status.read_ms);
        let is_near = apart_ms.saturating_abs() <= CLOCK_MAX_MS.saturating_add(took_ms);
        let evidence = format!(
            "{:.1} s from the clock of this machine",
            apart_ms as f64 / 1e3
        );
        Some(match is_near {
            true => fine(evidence),
            false => (Verdict::Warn, evidence),
        })
    })
}

/// Descriptors are left.
pub(super) fn descriptors(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let used = document::number(document, "server.descriptors")?;
        let limit = document::number(document, "server.descriptors_max")?;
        let (verdict, percent) = share(used, limit, 80, 95);
        Some((verdict, format!("{used} of {limit} ({percent} %)")))
    })
}

/// The machine has memory for the process.
pub(super) fn memory(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, extra, document| {
        let used = document::number(document, "server.memory_bytes")?;
        Some(match extra.memory_bytes {
            None => {
                let evidence = format!("{}; the machine's memory is not known", bytes(used));
                (Verdict::Unknown, evidence)
            }
            Some(all) => {
                let (verdict, percent) = share(used, all, 50, 80);
                let evidence = format!("{} of {} ({percent} %)", bytes(used), bytes(all));
                (verdict, evidence)
            }
        })
    })
}

/// Nothing is logged at the level of debugging.
pub(super) fn log_level(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, extra, _| {
        let Some(levels) = &extra.log_levels else {
            let evidence = "the log levels are known by the control socket only";
            return Some((Verdict::Unknown, evidence.to_owned()));
        };
        let modules: Vec<&str> = levels
            .lines()
            .filter(|line| line.split_whitespace().skip(1).any(|level| level == "DBG"))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        Some(match modules.as_slice() {
            [] => fine("no module logs at debug level"),
            [one] => (Verdict::Warn, format!("{one} logs at debug level")),
            [first, ..] => {
                let evidence = format!("{} modules log at debug level: {first}, …", modules.len());
                (Verdict::Warn, evidence)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Bad, Ok, Unknown, Warn};
    use super::*;
    use crate::doctor::tests::{facts, verdicts};

    fn server(members: &str) -> Facts {
        facts(&format!(
            r#"{{"version":1,"server":{{{members}}},"databases":[],"unanswered":[],"time_ms":1000000}}"#
        ))
    }

    #[test]
    fn a_server_that_is_not_ready_says_why() {
        let of = server(r#""ready":false,"faults":[{"check":"cluster:Lab","why":"no leader"}]"#);
        let findings = ready(&of);
        assert_eq!(findings[0].evidence, "cluster:Lab: no leader");
        assert_eq!(findings[0].verdict, Bad);
        assert_eq!(
            verdicts(ready, &server(r#""ready":true,"faults":[]"#)),
            [Ok]
        );
        assert_eq!(
            verdicts(ready, &server(r#""ready":false,"faults":[]"#)),
            [Bad]
        );
    }

    #[test]
    fn threads_and_versions_and_clocks_are_compared() {
        let of = server(r#""program":"Corvid 1""#);
        assert_eq!(verdicts(threads, &of), [Ok]);
        assert_eq!(verdicts(versions, &of), [Ok]);
        assert_eq!(verdicts(clocks, &of), [Ok]);
        let other = facts(
            r#"{"version":1,"server":{"program":"Corvid 2"},"databases":[],"unanswered":["db:Lab"],"time_ms":1003000}"#,
        );
        assert_eq!(verdicts(threads, &other), [Bad]);
        assert_eq!(verdicts(clocks, &other), [Warn]);
        let mut both = of;
        both.fleet.looks.push(other.fleet.looks[0].clone());
        assert_eq!(verdicts(versions, &both), [Warn]);
    }

    #[test]
    fn limits_are_near_at_four_fifths() {
        let of = |used| server(&format!(r#""descriptors":{used},"descriptors_max":100"#));
        assert_eq!(verdicts(descriptors, &of(79)), [Ok]);
        assert_eq!(verdicts(descriptors, &of(80)), [Warn]);
        assert_eq!(verdicts(descriptors, &of(95)), [Bad]);
        let mut of = server(r#""memory_bytes":60"#);
        assert_eq!(verdicts(memory, &of), [Unknown]);
        for (all, expected) in [(200, Ok), (100, Warn), (70, Bad)] {
            of.extras[0].memory_bytes = Some(all);
            assert_eq!(verdicts(memory, &of), [expected]);
        }
    }

    #[test]
    fn debug_messages_are_found() {
        let mut of = server("");
        assert_eq!(verdicts(log_level, &of), [Unknown]);
        let table = |level: &str| {
            format!(
                "       console syslog file\n       ------- ------ ----\nraft    OFF  ERR  {level}\n"
            )
        };
        of.extras[0].log_levels = Some(table("INFO"));
        assert_eq!(verdicts(log_level, &of), [Ok]);
        of.extras[0].log_levels = Some(table("DBG"));
        assert_eq!(verdicts(log_level, &of), [Warn]);
    }
}
