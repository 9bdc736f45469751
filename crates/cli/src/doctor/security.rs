//! Checks of what is open to others, and of certificates.

use corvid_json::Value;

use super::storage::no_metrics;
use super::{Facts, Finding, Judgement, Verdict, fine};
use corvid_tools::status::document;

/// A certificate that ends sooner should be renewed, s.
const SOON_S: i64 = 30 * DAY_S;
const DAY_S: i64 = 86_400;
/// The server's own certificate in the metrics.
const EXPIRY: &str = "corvid_tls_certificate_expiry_timestamp_seconds";

/// Remotes without TLS are bound to an address.
pub(super) fn open_remotes(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|look, _, document| {
        let told = document::list(document, "server.remotes")?.iter();
        let told = told.filter_map(Value::as_str);
        let rows = look.remotes.iter().map(|row| row.target.as_str());
        let open: Vec<&str> = told.chain(rows).filter(|remote| is_open(remote)).collect();
        Some(match open.is_empty() {
            true => fine("none without TLS on all addresses"),
            false => (Verdict::Warn, open.join(", ")),
        })
    })
}

/// Whether a remote listens without TLS on all addresses.
fn is_open(remote: &str) -> bool {
    let Some(rest) = remote.strip_prefix("ptcp:") else {
        return false;
    };
    match rest.split_once(':') {
        None => true,
        Some((_, host)) => matches!(host, "" | "0.0.0.0" | "[::]" | "::"),
    }
}

/// The pages are bound to an address.
pub(super) fn open_metrics(facts: &Facts) -> Vec<Finding> {
    facts.of_status(|_, _, document| {
        let address = document.get("settings")?.get("metrics-listen")?.as_str()?;
        let is_open = address.split(',').any(|part| {
            let part = part.rsplit('=').next().unwrap_or(part);
            [":", "0.0.0.0:", "[::]:"]
                .iter()
                .any(|open| part.starts_with(open))
        });
        Some(match is_open {
            true => (Verdict::Warn, format!("the pages are at {address}")),
            false => fine(address),
        })
    })
}

/// Certificates are valid for a while.
pub(super) fn certificates(facts: &Facts) -> Vec<Finding> {
    let mut findings = facts.of_status(|look, extra, document| {
        let remotes = document::list(document, "server.remotes").unwrap_or_default();
        let told = remotes.iter().filter_map(Value::as_str);
        let rows = look.remotes.iter().map(|row| row.target.as_str());
        let is_used = look.address.starts_with("ssl:")
            || told.chain(rows).any(|remote| remote.starts_with("pssl:"));
        if !is_used {
            return None;
        }
        let Some(metrics) = &extra.metrics else {
            return Some(no_metrics());
        };
        let line = metrics.lines().find(|line| line.starts_with(EXPIRY))?;
        let expiry_s: f64 = line.rsplit(' ').next()?.parse().ok()?;
        Some(ends(
            "the server's certificate",
            expiry_s as i64,
            facts.now_s,
        ))
    });
    if let Some(expiry_s) = facts.own_expiry_s {
        let judged = ends("this program's certificate", expiry_s, facts.now_s);
        findings.push(Finding::overall(judged));
    }
    findings
}

fn ends(name: &str, expiry_s: i64, now_s: i64) -> Judgement {
    let left_s = expiry_s.saturating_sub(now_s);
    let days = left_s / DAY_S;
    match left_s {
        left_s if left_s <= 0 => (Verdict::Bad, format!("{name} ended {} days ago", -days)),
        left_s if left_s < SOON_S => (Verdict::Warn, format!("{name} ends in {days} days")),
        _ => fine(format!("{name} ends in {days} days")),
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Bad, Ok, Unknown, Warn};
    use super::*;
    use crate::doctor::tests::{facts, verdicts};

    fn remotes(list: &str) -> Facts {
        facts(&format!(
            r#"{{"version":1,"databases":[],"server":{{"remotes":[{list}]}}}}"#
        ))
    }

    #[test]
    fn remotes_on_all_addresses_need_tls() {
        for (remote, expected) in [
            (r#""punix:/a""#, Ok),
            (r#""pssl:6641""#, Ok),
            (r#""ptcp:6641:127.0.0.1""#, Ok),
            (r#""ptcp:6641""#, Warn),
            (r#""ptcp:6641:0.0.0.0""#, Warn),
            (r#""ptcp:6641:[::]""#, Warn),
        ] {
            assert_eq!(verdicts(open_remotes, &remotes(remote)), [expected]);
        }
    }

    #[test]
    fn pages_on_all_addresses_are_found() {
        for (address, expected) in [
            ("none", Ok),
            ("127.0.0.1:9641", Ok),
            ("unix:/run/x", Ok),
            (":9641", Warn),
            ("Lab=0.0.0.0:9641", Warn),
        ] {
            let of = facts(&format!(
                r#"{{"version":1,"databases":[],"settings":{{"metrics-listen":"{address}"}}}}"#
            ));
            assert_eq!(verdicts(open_metrics, &of), [expected], "{address}");
        }
    }

    #[test]
    fn certificates_are_renewed_a_month_before_they_end() {
        assert_eq!(verdicts(certificates, &remotes("")), []);
        let mut of = remotes(r#""pssl:6641""#);
        assert_eq!(verdicts(certificates, &of), [Unknown]);
        for (days, expected) in [(40, Ok), (20, Warn), (-1, Bad)] {
            let expiry_s = of.now_s + days * DAY_S;
            of.extras[0].metrics = Some(format!("# x\n{EXPIRY} {expiry_s}.0\n"));
            assert_eq!(verdicts(certificates, &of), [expected], "{days}");
            of.own_expiry_s = Some(expiry_s);
            assert_eq!(verdicts(certificates, &of), [expected; 2], "{days}");
            of.own_expiry_s = None;
        }
    }
}
