//! `servers`: the members of a cluster, or a relay and its sources, in one table.
//!
//! [`rows`] is a function of what [`fleet`](crate::fleet) has found.

use std::fmt;

use corvid_json::Value;
use corvid_shell::{output, program};
use corvid_tools::table::{Cell, Format, Table};

use super::Output;
use crate::chain_run::print_outputs;
use crate::doctor::why_not_stored;
use crate::failure::Failure;
use crate::fleet::{self, Fleet, Look, Origin, Seen};
use crate::grammar::chain::Invocation;
use crate::settings::{Objects, Settings};
use corvid_tools::status::document;
use corvid_tools::status::source::LOCAL_FILE_BYTES;

/// The columns.
pub(super) const HEADINGS: [&str; 11] = [
    "address",
    "database",
    "model",
    "role",
    "term",
    "lag",
    "sessions",
    "requests",
    "file_bytes",
    "version",
    "state",
];

pub(super) fn servers(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    let settings = &settings_of(invocation, settings)?;
    let fleet = fleet::find(invocation, &invocation.args, settings)?;
    report_notes(&fleet);
    let rows = rows(&fleet, settings.database.as_deref());
    let table = table(&HEADINGS, rows, settings);
    // A person sees whole addresses: records if the rows are too wide.
    let output = match output::is_terminal() {
        true => Output::Table(table),
        false => Output::Listing(table),
    };
    if !settings.quiet {
        print_outputs([output].into_iter(), settings)?;
    }
    output::flush()?;
    if let Some(missing) = missing(&fleet) {
        remark(&missing);
    }
    match fleet.looks.iter().any(|look| look.failure.is_none()) {
        true => Ok(()),
        false => Err(Failure::connection("no server could be reached")),
    }
}

/// The settings with the option `--json` of the command.
///
/// # Errors
/// As for [`refuse_at`].
pub(super) fn settings_of(
    invocation: &Invocation,
    settings: &Settings,
) -> Result<Settings, Failure> {
    refuse_at(invocation, settings)?;
    let mut settings = settings.clone();
    if invocation.has("--json") && settings.objects.is_none() {
        settings.objects = Some(Objects::Array);
    }
    Ok(settings)
}

/// Refuses `--at`, which is about rows of the past.
pub(super) fn refuse_at(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    match settings.at {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "'{}' does not accept --at",
            invocation.command.name
        ))),
    }
}

/// Tells the user something next to the output.
pub(super) fn remark(text: impl fmt::Display) {
    output::error_line(format_args!("{}: {text}", program::prefix()));
}

/// Reports the sources that gave no status.
pub(super) fn report_notes(fleet: &Fleet) {
    for note in &fleet.notes {
        remark(note);
    }
}

/// A table of values, in which `null` is an unknown one. People see `-` for those.
pub(super) fn table(headings: &[&str], rows: Vec<Vec<Value>>, settings: &Settings) -> Table {
    let is_json = settings.objects.is_some() || settings.format == Some(Format::Json);
    let cell = |value: Value| match (is_json, value) {
        (true, value) => Cell::Json(value),
        (false, Value::Null) => Cell::Text("-".to_owned()),
        (false, Value::String(text)) => Cell::Text(text.to_string()),
        (false, other) => Cell::Text(other.to_string()),
    };
    Table {
        headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
        rows: rows
            .into_iter()
            .map(|row| row.into_iter().map(cell).collect())
            .collect(),
        ..Table::default()
    }
}

/// The servers whose status is not known, and how to let it be seen.
pub(super) fn missing(fleet: &Fleet) -> Option<String> {
    let is_silent = |look: &&Look| look.status.is_none() && look.failure.is_none();
    let without = fleet.looks.iter().filter(is_silent);
    let addresses: Vec<&str> = without.map(|look| look.address.as_str()).collect();
    if addresses.is_empty() {
        return None;
    }
    Some(format!(
        "the status of {} is not known: name the control socket on the same machine (--ctl=SOCKET), or the address of --metrics-listen \
(--metrics=http://HOST:PORT)",
        addresses.join(", ")
    ))
}

/// A row for each database of each server.
pub(super) fn rows(fleet: &Fleet, wanted: Option<&str>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for look in &fleet.looks {
        let mut names = look.names();
        names.retain(|name| wanted.is_none_or(|wanted| wanted == name));
        if names.is_empty() && look.failure.is_some() {
            rows.push(row(fleet, look, None));
        }
        rows.extend(names.iter().map(|name| row(fleet, look, Some(name))));
    }
    rows
}

fn row(fleet: &Fleet, look: &Look, name: Option<&str>) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::string);
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    let database = name.and_then(|name| look.database(name));
    let seen = name.and_then(|name| look.seen.iter().find(|seen| seen.name == name));
    let told = |path: &str| database.and_then(|database| document::text(database, path));
    let counted = |path: &str| database.and_then(|database| document::number(database, path));
    let model = told("model").or_else(|| seen.and_then(|seen| seen.model.as_deref()));
    let server = |path: &str| look.document().and_then(|it| document::text(it, path));
    let requests = look.document();
    let requests = requests.and_then(|it| document::number(it, "server.requests"));
    vec![
        Value::string(&look.address),
        text(name),
        text(model.or_else(|| is_member(look).then_some("clustered"))),
        text(told("cluster.role").or_else(|| role(seen?))),
        number(counted("cluster.term")),
        number(name.and_then(|name| lag(fleet, look, name))),
        number(sessions(look)),
        number(requests),
        number(counted("storage.bytes").or_else(|| counted(LOCAL_FILE_BYTES))),
        text(server("server.program")),
        Value::string(state(fleet, look, name)),
    ]
}

fn is_member(look: &Look) -> bool {
    matches!(look.origin, Origin::Member { .. })
}

/// The role that clients see.
fn role(seen: &Seen) -> Option<&'static str> {
    match (seen.model.as_deref()?, seen.leader?) {
        ("clustered", true) => Some("leader"),
        ("clustered", false) => Some("follower"),
        _ => None,
    }
}

/// The number of sessions of a server.
pub(super) fn sessions(look: &Look) -> Option<i64> {
    let document = look.document()?;
    let listed = document::list(document, "sessions");
    let listed = listed.and_then(|sessions| i64::try_from(sessions.len()).ok());
    listed.or_else(|| document::number(document, "server.session_count"))
}

/// The number of log entries that a member lacks of those that the leader has applied.
pub(crate) fn lag(fleet: &Fleet, look: &Look, name: &str) -> Option<i64> {
    let index_of = |look: &Look| {
        let seen = look.seen.iter().find(|seen| seen.name == name)?;
        let is_clustered = seen.model.as_deref() == Some("clustered");
        seen.index.filter(|_| is_clustered)
    };
    let cid_of = |look: &Look| {
        let seen = look.seen.iter().find(|seen| seen.name == name)?;
        seen.cid.clone()
    };
    if let Some(index) = index_of(look) {
        let leads = |look: &&Look| {
            let mut seen = look.seen.iter();
            seen.any(|seen| seen.name == name && seen.leader == Some(true))
        };
        let cid = cid_of(look);
        let mut leaders = fleet.looks.iter().filter(leads);
        let leader = leaders.find(|leader| cid_of(leader) == cid)?;
        return Some(index_of(leader)?.saturating_sub(index).max(0));
    }
    // A member that no client reaches, as its leader sees it.
    let (leader, told) = as_told(fleet, look, name)?;
    let last = document::number(leader, "cluster.committed")?;
    Some(last.saturating_sub(document::number(told, "match")?).max(0))
}

/// A member in the status of the leader of its cluster, with that status of the database.
pub(super) fn as_told<'f>(
    fleet: &'f Fleet,
    look: &Look,
    name: &str,
) -> Option<(&'f Value, &'f Value)> {
    let sid = look.sid(name)?;
    let leads = |database: &&Value| document::text(database, "cluster.role") == Some("leader");
    let databases = fleet.looks.iter().filter_map(|look| look.database(name));
    databases.filter(leads).find_map(|database| {
        let mut servers = document::list(database, "cluster.servers")?.iter();
        let is_it = |server: &&Value| {
            let told = document::text(server, "server_id").unwrap_or_default();
            !told.is_empty() && (told.starts_with(sid) || sid.starts_with(told))
        };
        Some((database, servers.find(is_it)?))
    })
}

/// The state in words; `ok` if there is nothing to tell.
fn state(fleet: &Fleet, look: &Look, name: Option<&str>) -> String {
    if let Some(failure) = &look.failure {
        let told = name.and_then(|name| as_told(fleet, look, name));
        let age_ms = told.and_then(|(_, told)| document::number(told, "last_message_age_ms"));
        let heard = match age_ms {
            Some(age_ms) => format!("; the leader heard it {age_ms} ms ago"),
            None => String::new(),
        };
        return format!("not reached: {failure}{heard}");
    }
    let Some(name) = name else {
        return "ok".to_owned();
    };
    let seen = look.seen.iter().find(|seen| seen.name == name);
    let model = seen.and_then(|seen| seen.model.as_deref());
    let mut remarks: Vec<String> = Vec::new();
    if seen.and_then(|seen| seen.connected) == Some(false) {
        remarks.push(match model {
            Some("relay") => "cut off from its source".to_owned(),
            _ => "cut off from its cluster".to_owned(),
        });
    }
    if let Some(database) = look.database(name) {
        let is = |path: &str| document::flag(database, path) == Some(true);
        if document::flag(database, "has_contents") == Some(false) {
            remarks.push("no contents yet".to_owned());
        }
        let status = document::text(database, "cluster.status");
        remarks.extend(
            status
                .filter(|status| *status != "cluster member")
                .map(str::to_owned),
        );
        match why_not_stored(database) {
            Some(why) => remarks.push(format!("commits cannot be stored: {why}")),
            None if is("storage.failed") => remarks.push("commits cannot be stored".to_owned()),
            None => {}
        }
        if is("converting") {
            remarks.push("converting".to_owned());
        }
        if is("storage.compacting") {
            remarks.push("compacting".to_owned());
        }
    }
    if remarks.is_empty() {
        remarks.extend(faults(look, name));
    }
    match remarks.is_empty() {
        true => "ok".to_owned(),
        false => remarks.join(", "),
    }
}

/// The checks of readiness that fail and are about a database, or about the whole server.
fn faults(look: &Look, name: &str) -> Vec<String> {
    let faults = look
        .document()
        .and_then(|it| document::list(it, "server.faults"));
    let concerns = |check: &str| match check.split_once(':') {
        Some((_, about)) => about == name,
        None => true,
    };
    let of = |fault: &Value| {
        let check = document::text(fault, "check")?;
        let why = document::text(fault, "why").unwrap_or(check);
        concerns(check).then(|| format!("not ready: {why}"))
    };
    faults.unwrap_or_default().iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::{look, member};

    fn texts(fleet: &Fleet) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.to_string(),
            other => other.to_string(),
        };
        let rows = rows(fleet, None);
        rows.iter()
            .map(|row| row.iter().map(text).collect::<Vec<_>>().join("|"))
            .collect()
    }

    #[test]
    fn a_cluster_is_a_row_for_each_member() {
        let status = r#"{"server":{"program":"Corvid 1","requests":512,"faults":[]},"sessions":[{},{}],"databases":[
            {"name":"Lab","model":"clustered","storage":{"bytes":70},"cluster":{"role":"leader","term":3,"committed":9,"status":"cluster member",
             "server_id":"aaaa","servers":[{"server_id":"cccc","match":4,"last_message_age_ms":77}]}}]}"#;
        let mut dead = look("tcp:192.0.2.3:6644", &[], None);
        dead.failure = Some("x".to_owned());
        dead.origin = Origin::Member {
            database: "Lab".to_owned(),
            sid: "cccc".to_owned(),
            address: "tcp:192.0.2.3:6644".to_owned(),
        };
        let fleet = Fleet {
            looks: vec![
                look("tcp:192.0.2.1:1", &[member("aaaa", true, 9)], Some(status)),
                look("tcp:192.0.2.2:1", &[member("bbbb", false, 7)], None),
                dead,
            ],
            ..Fleet::default()
        };
        assert_eq!(
            texts(&fleet),
            [
                "tcp:192.0.2.1:1|Lab|clustered|leader|3|0|2|512|70|Corvid 1|ok",
                "tcp:192.0.2.2:1|Lab|clustered|follower|-|2|-|-|-|-|ok",
                "tcp:192.0.2.3:6644|Lab|clustered|-|-|5|-|-|-|-|not reached: x; the leader heard it 77 ms ago",
            ]
        );
        let missing = missing(&fleet).unwrap();
        assert!(missing.starts_with("the status of tcp:192.0.2.2:1 is not known: "));
    }

    #[test]
    fn the_state_names_what_is_wrong() {
        let relay = Seen {
            name: "Lab".to_owned(),
            model: Some("relay".to_owned()),
            connected: Some(false),
            ..Seen::default()
        };
        let status = r#"{"server":{"faults":[{"check":"relay:Lab","why":"w"},{"check":"relay:Other","why":"o"}]},
            "databases":[{"name":"Lab","model":"relay","has_contents":false}]}"#;
        let state_of = |seen: Seen| {
            let fleet = Fleet {
                looks: vec![look("unix:/r", &[seen], Some(status))],
                ..Fleet::default()
            };
            state(&fleet, &fleet.looks[0], Some("Lab"))
        };
        assert_eq!(
            state_of(relay.clone()),
            "cut off from its source, no contents yet"
        );
        let fleet = Fleet {
            looks: vec![look(
                "unix:/r",
                &[relay],
                Some(&status.replace("false}", "true}")),
            )],
            ..Fleet::default()
        };
        assert_eq!(faults(&fleet.looks[0], "Lab"), ["not ready: w"]);
    }

    #[test]
    fn the_state_says_why_nothing_is_stored() {
        for (database, expected) in [
            (
                r#""storage":{"failed":true,"error":"No space left on device"}"#,
                "commits cannot be stored: No space left on device",
            ),
            (
                r#""storage":{"failed":true,"error":null}"#,
                "commits cannot be stored",
            ),
            (r#""storage":{"failed":false,"error":null}"#, "ok"),
            (
                r#""cluster":{"status":"cluster member","file_error":"Input/output error"}"#,
                "commits cannot be stored: Input/output error",
            ),
        ] {
            let status = format!(r#"{{"server":{{}},"databases":[{{"name":"Lab",{database}}}]}}"#);
            let fleet = Fleet {
                looks: vec![look("unix:/a", &[], Some(&status))],
                ..Fleet::default()
            };
            assert_eq!(state(&fleet, &fleet.looks[0], Some("Lab")), expected);
        }
    }
}
