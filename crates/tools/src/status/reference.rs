//! The answers of the control socket of Open vSwitch's server, as a part of a status document.
//!
//! That server has no status as JSON. Its texts `version`, `cluster/status` and `memory/show` have
//! some of the members; the others stay absent.

use bstr::BString;
use corvid_json::{Object, Value};

/// A document without databases, with the program of the text of `version`. `None`: another program
/// answers on this socket.
#[must_use]
pub fn document(version: &str, memory: &str, databases: Vec<Value>) -> Option<Value> {
    let program = version.lines().next()?.strip_prefix("ovsdb-server ")?;
    let program = program.replace(['(', ')'], "");
    let mut server = vec![("program", Value::string(program))];
    // The text has only counts that are not 0.
    if !memory.is_empty() {
        let sessions = counted(memory, "sessions").unwrap_or(0);
        server.push(("session_count", Value::Integer(sessions)));
    }
    Some(object([
        ("server", object(server)),
        ("databases", Value::Array(databases)),
    ]))
}

/// A database with this model and, of a member, the text of `cluster/status`.
#[must_use]
pub fn database(name: &str, status: Option<&str>) -> Value {
    let mut members = vec![("name", Value::string(name))];
    if let Some(text) = status {
        members.push(("model", Value::string("clustered")));
        members.push(("cluster", cluster(text)));
    }
    object(members)
}

/// The members of the text of `cluster/status`.
fn cluster(text: &str) -> Value {
    let field = |name: &str| {
        let rest = |line: &str| {
            let rest = line.strip_prefix(name)?.strip_prefix(": ")?;
            Some(rest.trim().to_owned())
        };
        text.lines().find_map(rest)
    };
    let id = |name: &str| field(name).as_deref().map(in_parentheses);
    let number = |name: &str| field(name)?.parse().ok().map(Value::Integer);
    let own = id("Server ID");
    let leader = match field("Leader").as_deref() {
        Some("self") => own.clone(),
        Some("unknown") | None => None,
        Some(other) => Some(Value::string(other)),
    };
    let members = [
        ("cluster_id", id("Cluster ID")),
        ("server_id", own),
        ("address", field("Address").map(Value::string)),
        ("status", field("Status").map(Value::string)),
        ("role", field("Role").map(Value::string)),
        ("term", number("Term")),
        ("leader", leader),
        ("election_timer_ms", number("Election timer")),
        ("disconnections", number("Disconnections")),
        ("servers", Some(Value::Array(servers(text)))),
    ];
    object(
        members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    )
}

/// The lines below `Servers:`, as `    s2 (ab12 at tcp:192.0.2.1:6644) (self) next_index=…`.
fn servers(text: &str) -> Vec<Value> {
    let lines = text
        .lines()
        .skip_while(|line| *line != "Servers:")
        .skip(1)
        .take_while(|line| line.starts_with(' '));
    let server = |line: &str| {
        // Before the parenthesis is a nickname, which may be the id.
        let (_, rest) = line.trim().split_once(" (")?;
        let (id, rest) = rest.split_once(" at ")?;
        let (address, rest) = rest.split_once(')')?;
        let mut members = vec![
            ("server_id", Value::string(id)),
            ("address", Value::string(address)),
            ("self", Value::Bool(rest.contains("(self)"))),
        ];
        let after = |mark: &str| {
            let (_, rest) = rest.split_once(mark)?;
            let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
            digits?.parse().ok().map(Value::Integer)
        };
        let numbers = [
            ("match", after("match_index=")),
            ("last_message_age_ms", after("last msg ")),
        ];
        members.extend(
            numbers
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Some(object(members))
    };
    lines.filter_map(server).collect()
}

/// The text in parentheses of `ab12 (ab12cdef-…)`, or all of it.
fn in_parentheses(text: &str) -> Value {
    let inner = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    Value::string(inner.map_or(text, |(inner, _)| inner))
}

/// The number after `NAME:` in a text such as `cells:20 monitors:0`.
fn counted(text: &str, name: &str) -> Option<i64> {
    let fields = text.split_whitespace();
    let mut found = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix(':'));
    found.next()?.parse().ok()
}

/// An object of these members.
pub fn object<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let members = members
        .into_iter()
        .map(|(name, value)| (BString::from(name), value));
    Value::Object(members.collect::<Object>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::document;

    const TEXT: &str = "\
734d
Name: Lab
Cluster ID: a21a (a21ac227-057d-4c3f-87df-8384ed3d0afd)
Server ID: 734d (734d6de3-f4ee-42af-b7fb-2971cff63efb)
Address: tcp:192.0.2.1:7741
Status: cluster member
Role: leader
Term: 7
Leader: self
Vote: self

Election timer: 1000
Log: [2, 3]
Connections: ->0000 <-0000
Disconnections: 2
Servers:
    734d (734d at tcp:192.0.2.1:7741) (self) next_index=2 match_index=2
    nick (fecb at tcp:192.0.2.2:7741) next_index=3 match_index=2 last msg 31 ms ago
";

    #[test]
    fn a_text_of_cluster_status_becomes_members() {
        let database = database("Lab", Some(TEXT));
        assert_eq!(document::text(&database, "cluster.role"), Some("leader"));
        assert_eq!(document::number(&database, "cluster.term"), Some(7));
        let own = Some("734d6de3-f4ee-42af-b7fb-2971cff63efb");
        assert_eq!(document::text(&database, "cluster.server_id"), own);
        assert_eq!(document::text(&database, "cluster.leader"), own);
        let servers = document::list(&database, "cluster.servers").unwrap();
        assert_eq!(servers.len(), 2);
        assert_eq!(document::flag(&servers[0], "self"), Some(true));
        assert_eq!(
            document::text(&servers[1], "address"),
            Some("tcp:192.0.2.2:7741")
        );
        assert_eq!(document::text(&servers[1], "server_id"), Some("fecb"));
        assert_eq!(document::number(&servers[1], "match"), Some(2));
        assert_eq!(
            document::number(&servers[1], "last_message_age_ms"),
            Some(31)
        );
    }

    #[test]
    fn only_a_database_server_has_a_document() {
        let version = "ovsdb-server (Open vSwitch) 3.1.0\nDB Schema 8.3.0\n";
        let found = document(version, "cells:20 monitors:0 sessions:3", Vec::new()).unwrap();
        assert_eq!(
            document::text(&found, "server.program"),
            Some("Open vSwitch 3.1.0")
        );
        assert_eq!(document::number(&found, "server.session_count"), Some(3));
        assert_eq!(
            document("ovs-vswitchd (Open vSwitch) 3.1.0", "", Vec::new()),
            None
        );
    }
}
