//! Checks of servers that depend on each other: members of clusters, relays, backups.

use corvid_json::Value;

use super::{Facts, Finding, Judgement, Verdict, fine};
use crate::commands::lag as entries_behind;
use crate::fleet::{Origin, Seen};
use corvid_tools::status::document;

/// A member that lacks more entries than this is behind.
const LAG_MAX: i64 = 1_000;
/// A member is silent after this many election timers without a message.
const SILENT_TIMERS: i64 = 10;
/// The election timer if the server does not tell it, ms.
const ELECTION_TIMER_MS: i64 = 1_000;
/// An election is a recent one for this time, ms.
const RECENT_ELECTION_MS: i64 = 60_000;

/// Every server answers its clients.
pub(super) fn reached(facts: &Facts) -> Vec<Finding> {
    let of = |look: &crate::fleet::Look| {
        let judged = match (&look.failure, &look.origin) {
            (None, _) => fine("answers"),
            (Some(reason), Origin::Member { .. }) => (Verdict::Unknown, reason.clone()),
            (Some(reason), _) => (Verdict::Bad, reason.clone()),
        };
        Finding::of(look, None, judged)
    };
    facts.fleet.looks.iter().map(of).collect()
}

/// A judgement of each database that clients see.
fn of_seen(facts: &Facts, judge: impl Fn(&Seen) -> Option<Judgement>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for look in &facts.fleet.looks {
        for seen in &look.seen {
            let judged = judge(seen);
            findings.extend(judged.map(|judged| Finding::of(look, Some(&seen.name), judged)));
        }
    }
    findings
}

/// Members are connected to their cluster, relays to their source.
pub(super) fn connected(facts: &Facts) -> Vec<Finding> {
    of_seen(facts, |seen| {
        let to = match seen.model.as_deref()? {
            "clustered" => "its cluster",
            "relay" => "its source",
            _ => return None,
        };
        Some(match seen.connected {
            Some(true) => fine(format!("connected to {to}")),
            Some(false) => (Verdict::Bad, format!("not connected to {to}")),
            None => return None,
        })
    })
}

/// Each cluster has a leader.
pub(super) fn leader(facts: &Facts) -> Vec<Finding> {
    let looks = &facts.fleet.looks;
    let clustered = looks.iter().flat_map(|look| {
        let seen = look.seen.iter();
        seen.filter(|seen| seen.model.as_deref() == Some("clustered"))
            .map(move |seen| (look, seen))
    });
    let mut findings: Vec<Finding> = Vec::new();
    for (look, seen) in clustered.clone() {
        let is_judged = |it: &Finding| it.database.as_deref() == Some(&seen.name);
        if findings.iter().any(is_judged) {
            continue;
        }
        let same = || clustered.clone().filter(|(_, it)| it.name == seen.name);
        let leads = same().find(|(_, it)| it.leader == Some(true));
        let follows = same().find(|(_, it)| it.connected == Some(true));
        let told = same().find_map(|(look, it)| {
            document::text(look.database(&it.name)?, "cluster.leader").map(str::to_owned)
        });
        let judged = match (leads, told, follows) {
            (Some((leader, _)), _, _) => fine(format!("{} leads", leader.address)),
            (None, Some(sid), _) => fine(format!("server {sid} leads")),
            (None, None, Some(_)) => fine("a member that was not asked leads"),
            (None, None, None) => (Verdict::Bad, "no member leads".to_owned()),
        };
        findings.push(Finding::of(look, Some(&seen.name), judged));
    }
    findings
}

/// The other members in the status of a member, if it leads.
fn followers(database: &Value) -> Option<impl Iterator<Item = &Value>> {
    let leads = document::text(database, "cluster.role") == Some("leader");
    let servers = document::list(database, "cluster.servers").filter(|_| leads)?;
    let is_other = |server: &&Value| document::flag(server, "self") != Some(true);
    Some(servers.iter().filter(is_other))
}

/// A member's id and address.
fn named(server: &Value) -> String {
    let text = |path| document::text(server, path).unwrap_or("?");
    let sid = text("server_id");
    format!("{} ({})", sid.get(..4).unwrap_or(sid), text("address"))
}

/// The leader hears all members.
pub(super) fn members_heard(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let timer_ms = document::number(database, "cluster.election_timer_ms");
        let limit_ms = timer_ms
            .unwrap_or(ELECTION_TIMER_MS)
            .saturating_mul(SILENT_TIMERS);
        let silent: Vec<String> = followers(database)?
            .filter_map(|server| {
                let age_ms = document::number(server, "last_message_age_ms");
                let told_ms = document::number(server, "silent_ms");
                let long_ms = told_ms.or(age_ms.filter(|age_ms| *age_ms > limit_ms))?;
                Some(format!("{} for {} s", named(server), long_ms / 1000))
            })
            .collect();
        Some(match silent.is_empty() {
            true => fine("all members are heard"),
            false => (Verdict::Bad, format!("silent: {}", silent.join(", "))),
        })
    })
}

/// Members make progress.
pub(super) fn members_stalled(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        document::member(database, "cluster")?;
        let mut stalled: Vec<String> = Vec::new();
        if let Some(ms) = document::number(database, "cluster.stalled_ms").filter(|ms| *ms > 0) {
            stalled.push(format!("this member for {} s", ms / 1000));
        }
        for server in followers(database).into_iter().flatten() {
            if let Some(ms) = document::number(server, "stalled_ms") {
                stalled.push(format!("{} for {} s", named(server), ms / 1000));
            }
        }
        Some(match stalled.is_empty() {
            true => fine("no member is stalled"),
            false => (Verdict::Bad, format!("stalled: {}", stalled.join(", "))),
        })
    })
}

/// No member is being added or removed.
pub(super) fn membership(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        document::member(database, "cluster")?;
        let status = document::text(database, "cluster.status");
        if let Some(status) = status.filter(|status| *status != "cluster member") {
            return Some((Verdict::Warn, status.to_owned()));
        }
        let servers = document::list(database, "cluster.servers").unwrap_or_default();
        let changing: Vec<String> = servers
            .iter()
            .filter_map(|server| {
                let phase = document::text(server, "phase").filter(|phase| *phase != "member")?;
                Some(format!("{} {phase}", named(server)))
            })
            .collect();
        Some(match changing.is_empty() {
            true => fine("all servers are members"),
            false => (Verdict::Warn, changing.join(", ")),
        })
    })
}

/// The number of members is odd.
pub(super) fn members_odd(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let count = document::list(database, "cluster.servers")?.len();
        Some(match count % 2 {
            0 if count > 0 => (Verdict::Warn, format!("{count} members")),
            _ => fine(format!("{count} members")),
        })
    })
}

/// Members are close to their leader.
pub(super) fn lag(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for look in &facts.fleet.looks {
        for seen in &look.seen {
            let Some(lag) = entries_behind(&facts.fleet, look, &seen.name) else {
                continue;
            };
            let verdict = match lag > LAG_MAX {
                true => Verdict::Warn,
                false => Verdict::Ok,
            };
            let judged = (verdict, format!("{lag} entries behind the leader"));
            findings.push(Finding::of(look, Some(&seen.name), judged));
        }
    }
    findings
}

/// No election is going on.
pub(super) fn elections(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|look, _, database| {
        document::member(database, "cluster")?;
        let document = look.document()?;
        let now_ms = document::number(document, "time_ms")?;
        let up_ms = now_ms.saturating_sub(document::number(document, "server.started_ms")?);
        let age_ms = document::number(database, "cluster.election_started_age_ms");
        let is_recent = |age_ms: &i64| *age_ms < RECENT_ELECTION_MS && up_ms > RECENT_ELECTION_MS;
        Some(match age_ms.filter(is_recent) {
            Some(age_ms) => {
                let evidence = format!("an election began {} s ago", age_ms / 1000);
                (Verdict::Warn, evidence)
            }
            None => fine("no recent election"),
        })
    })
}

/// Relays are connected and keep up.
pub(super) fn relay(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let state = document::text(database, "relay.state")?;
        let source = document::text(database, "relay.source").unwrap_or("its source");
        if state == "connected" {
            return Some(fine(format!("connected to {source}")));
        }
        let age_ms = document::number(database, "relay.state_age_ms").unwrap_or(0);
        let waiting = document::number(database, "relay.waiting_requests").unwrap_or(0);
        Some((
            Verdict::Bad,
            format!(
                "{state} for {} s ({source}); {waiting} requests wait",
                age_ms / 1000
            ),
        ))
    })
}

/// Backups replicate.
pub(super) fn backup(facts: &Facts) -> Vec<Finding> {
    facts.of_databases(|_, _, database| {
        let state = document::text(database, "replication.state")?;
        let source = document::text(database, "replication.source").unwrap_or("its source");
        Some(match state {
            "replicating" => fine(format!("replicates {source}")),
            other => (Verdict::Bad, format!("{other} ({source})")),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Bad, Ok, Unknown, Warn};
    use super::*;
    use crate::doctor::tests::{database, facts, verdicts};
    use crate::fleet::tests::member;

    #[test]
    fn a_server_that_does_not_answer_is_bad() {
        let mut facts = facts("{}");
        assert_eq!(verdicts(reached, &facts), [Ok]);
        facts.fleet.looks[0].failure = Some("x".to_owned());
        assert_eq!(verdicts(reached, &facts), [Bad]);
        facts.fleet.looks[0].origin = Origin::Member {
            database: "Lab".to_owned(),
            sid: "a".to_owned(),
            address: String::new(),
        };
        assert_eq!(verdicts(reached, &facts), [Unknown]);
    }

    #[test]
    fn a_cluster_needs_a_leader_and_a_connection() {
        let mut facts = facts("{}");
        let of = |leads, connected| Seen {
            connected: Some(connected),
            ..member("aaaa", leads, 1)
        };
        for (leads, is_connected, expected) in [
            (true, true, [Ok, Ok]),
            (false, true, [Ok, Ok]),
            (false, false, [Bad, Bad]),
        ] {
            facts.fleet.looks[0].seen = vec![of(leads, is_connected)];
            assert_eq!(verdicts(leader, &facts), [expected[0]]);
            assert_eq!(verdicts(connected, &facts), [expected[1]]);
        }
    }

    #[test]
    fn silent_and_stalled_members_are_found() {
        let servers = |members: &str| {
            database(&format!(
                r#""cluster":{{"role":"leader","status":"cluster member","election_timer_ms":1000,"servers":[{{"self":true}},{{"server_id":"bbbb",{members}}}]}}"#
            ))
        };
        let fresh = servers(r#""phase":"member","last_message_age_ms":9000"#);
        assert_eq!(verdicts(members_heard, &fresh), [Ok]);
        assert_eq!(verdicts(members_stalled, &fresh), [Ok]);
        assert_eq!(verdicts(membership, &fresh), [Ok]);
        assert_eq!(verdicts(members_odd, &fresh), [Warn]);
        let old = servers(r#""phase":"being added","last_message_age_ms":11000,"stalled_ms":3"#);
        assert_eq!(verdicts(members_heard, &old), [Bad]);
        assert_eq!(verdicts(members_stalled, &old), [Bad]);
        assert_eq!(verdicts(membership, &old), [Warn]);
        let follower = database(r#""cluster":{"role":"follower","servers":[{}]}"#);
        assert_eq!(verdicts(members_heard, &follower), []);
        assert_eq!(verdicts(members_odd, &follower), [Ok]);
        assert_eq!(verdicts(members_odd, &database(r#""model":"relay""#)), []);
    }

    #[test]
    fn a_member_far_behind_is_found() {
        let mut facts = facts("{}");
        for (index, expected) in [(1_500, Ok), (400, Warn)] {
            facts.fleet.looks[0].seen = vec![member("aaaa", true, 2_000)];
            let mut other = facts.fleet.looks[0].clone();
            other.seen = vec![member("bbbb", false, index)];
            facts.fleet.looks.truncate(1);
            facts.fleet.looks.push(other);
            assert_eq!(verdicts(lag, &facts), [Ok, expected]);
        }
    }

    #[test]
    fn recent_elections_are_found_unless_the_server_has_just_started() {
        let of = |started_ms: i64, age_ms: i64| {
            facts(&format!(
                r#"{{"version":1,"time_ms":900000,"server":{{"started_ms":{started_ms}}},"databases":[{{"name":"Lab","cluster":{{"election_started_age_ms":{age_ms}}}}}]}}"#
            ))
        };
        assert_eq!(verdicts(elections, &of(0, 1_000)), [Warn]);
        assert_eq!(verdicts(elections, &of(0, 70_000)), [Ok]);
        assert_eq!(verdicts(elections, &of(890_000, 1_000)), [Ok]);
    }

    #[test]
    fn relays_and_backups_must_follow() {
        for (state, expected) in [
            ("connected", Ok),
            ("disconnected", Bad),
            ("connecting", Bad),
        ] {
            let of = database(&format!(
                r#""relay":{{"source":"tcp:x:1","state":"{state}"}}"#
            ));
            assert_eq!(verdicts(relay, &of), [expected]);
        }
        for (state, expected) in [("replicating", Ok), ("lost", Bad)] {
            let of = database(&format!(r#""replication":{{"state":"{state}"}}"#));
            assert_eq!(verdicts(backup, &of), [expected]);
        }
        assert_eq!(verdicts(relay, &database(r#""model":"standalone""#)), []);
        // A server that tells only a part leaves it open.
        let part = facts(r#"{"databases":[{"name":"Lab"}]}"#);
        assert_eq!(verdicts(relay, &part), [Unknown]);
    }
}
