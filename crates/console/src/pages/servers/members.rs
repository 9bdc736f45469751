//! The members of a cluster: role, term, lag, when each was heard, the state of its file.
//!
//! The status of each member that can be read tells about itself, the leader's about the others.
//! What nobody tells is a dash.

use std::sync::Arc;

use corvid::json::Value;
use corvid_tools::status::document;

use super::list::{Cell, Head, List, Row, text};
use crate::pages::grid::duration;
use crate::status::Status;

/// A cluster, as far as it is known.
pub(super) struct Cluster<'s> {
    /// The statuses of the database by its members.
    told: Vec<&'s Value>,
    /// That of the server that the page is about.
    main: &'s Value,
}

impl<'s> Cluster<'s> {
    /// The cluster of a database; `None` if it has none.
    pub(super) fn of(main: &'s Value, all: &'s [Arc<Status>], name: &str) -> Option<Cluster<'s>> {
        main.get("cluster")?;
        let id = text(main, "cluster.cluster_id");
        let is_of_it = |database: &&Value| {
            database.get("cluster").is_some() && text(database, "cluster.cluster_id") == id
        };
        let told = all.iter().filter_map(|status| status.of_database(name));
        Some(Cluster {
            told: told.filter(is_of_it).collect(),
            main,
        })
    }

    /// The status by the leader, if it can be read.
    fn leader(&self) -> Option<&'s Value> {
        let leaders = self.told.iter().copied();
        leaders
            .filter(|database| text(database, "cluster.role") == Some("leader"))
            .max_by_key(|database| document::number(database, "cluster.term"))
    }

    /// The id of the leader.
    pub(super) fn leader_id(&self) -> Option<&'s str> {
        match self.leader() {
            Some(leader) => text(leader, "cluster.server_id"),
            None => text(self.main, "cluster.leader"),
        }
    }

    /// The address of a member for the others.
    pub(super) fn address(&self, sid: &str) -> Option<&'s str> {
        let servers = document::list(self.main, "cluster.servers").unwrap_or_default();
        let found = servers
            .iter()
            .find(|server| is_id(server, "server_id", sid));
        found.and_then(|server| text(server, "address"))
    }

    /// The ids and the addresses of the members.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'s str, &'s str)> {
        let servers = document::list(self.leader().unwrap_or(self.main), "cluster.servers");
        let servers = servers.unwrap_or_default().iter();
        servers.filter_map(|server| Some((text(server, "server_id")?, text(server, "address")?)))
    }

    /// The members as a table.
    pub(super) fn list(&self, metrics: Option<&str>) -> List {
        let term = document::number(self.leader().unwrap_or(self.main), "cluster.term");
        let count = match self.members().count() {
            1 => "1 member".to_owned(),
            count => format!("{count} members"),
        };
        let summary = match (self.leader_id(), term) {
            (Some(leader), Some(term)) => {
                format!("{count} in term {term}, led by {}", short(leader))
            }
            (None, Some(term)) => format!("{count} in term {term}, without a leader"),
            _ => count,
        };
        let told = document::list(self.leader().unwrap_or(self.main), "cluster.servers");
        let rows = told.unwrap_or_default().iter();
        List {
            id: "members",
            title: "Members of the cluster",
            summary,
            heads: vec![
                Head::text("Member"),
                Head::text("Role").measured("corvid_cluster_role", metrics),
                Head::number("Term").measured("corvid_cluster_term", metrics),
                Head::number("Lag").measured("corvid_cluster_peer_lag_entries", metrics),
                Head::text("Address"),
                Head::text("Last heard").measured("corvid_cluster_peer_silent_seconds", metrics),
                Head::text("State").measured("corvid_cluster_file_state", metrics),
            ],
            rows: rows.map(|server| self.row(server)).collect(),
            more: 0,
        }
    }

    fn row(&self, server: &Value) -> Row {
        let sid = text(server, "server_id").unwrap_or_default();
        let is_this = is_id(self.main, "cluster.server_id", sid);
        let own = self.told.iter().copied();
        let own = own
            .chain([self.main])
            .find(|database| is_id(database, "cluster.server_id", sid));
        let is_leader = self.leader_id().is_some_and(|leader| is_same(leader, sid));
        // Another member's view of it, for a page about a member that does not lead.
        let seen = document::list(self.main, "cluster.servers").unwrap_or_default();
        let seen = seen.iter().find(|server| is_id(server, "server_id", sid));
        let is_connected = |server: &Value| document::flag(server, "connected");
        let is_lost = own.is_none() && is_connected(seen.unwrap_or(server)) == Some(false);
        let role = match own.and_then(|own| text(own, "cluster.role")) {
            Some(role) => Some(role),
            None if is_leader => Some("leader"),
            None if is_lost => None,
            None => Some("follower"),
        };
        let mut name = Cell {
            text: short(sid).to_owned(),
            title: sid.to_owned(),
            class: "mono",
            ..Cell::default()
        };
        if is_this {
            name.marks.push("this");
        }
        let (state, is_bad) = self.state(server, own, is_lost);
        let heard = match document::number(server, "last_message_age_ms") {
            _ if is_this => Cell {
                text: "this server".to_owned(),
                class: "quiet",
                ..Cell::default()
            },
            Some(age_ms) => Cell {
                text: match age_ms {
                    0 => "just now".to_owned(),
                    age_ms => format!("{} ago", duration(age_ms.saturating_mul(1000))),
                },
                title: format!("{age_ms} ms"),
                ..Cell::default()
            },
            None if is_lost => Cell::text("never"),
            None => Cell::unknown(),
        };
        let lag = self.lag(server, own);
        Row {
            class: if is_bad { "bad" } else { "" },
            cells: vec![
                name,
                Cell {
                    class: if role == Some("leader") { "good" } else { "" },
                    ..Cell::of(role)
                },
                Cell::number(own.and_then(|own| document::number(own, "cluster.term"))),
                Cell {
                    title: match lag {
                        Some(_) => "entries behind the leader".to_owned(),
                        None => String::new(),
                    },
                    ..Cell::number(lag)
                },
                Cell::of(text(server, "address")).mono(),
                heard,
                Cell {
                    class: if is_bad { "trouble" } else { "" },
                    ..Cell::text(&state)
                },
            ],
        }
    }

    /// The entries that the leader has applied and the member has not; of a member that cannot be
    /// asked, those that it has not stored.
    fn lag(&self, server: &Value, own: Option<&Value>) -> Option<i64> {
        let behind = |last: i64, own: i64| last.saturating_sub(own).max(0);
        let applied = |database| document::number(database, "cluster.applied");
        match (self.leader(), own.and_then(applied)) {
            (Some(leader), Some(own)) => Some(behind(applied(leader)?, own)),
            (Some(leader), None) => {
                let last = document::number(leader, "cluster.committed")?;
                Some(behind(last, document::number(server, "match")?))
            }
            (None, Some(applied)) => Some(behind(
                document::number(own?, "cluster.known_committed")?,
                applied,
            )),
            (None, None) => None,
        }
    }

    /// The state in words, and whether it is a fault.
    fn state(&self, server: &Value, own: Option<&Value>, is_lost: bool) -> (String, bool) {
        let time = |ms: i64| duration(ms.saturating_mul(1000));
        let of_own = |path: &str| own.and_then(|own| document::number(own, path));
        let mut words: Vec<String> = Vec::new();
        if let Some(own) = own {
            let status = text(own, "cluster.status");
            words.extend(
                status
                    .filter(|status| *status != "cluster member")
                    .map(str::to_owned),
            );
            words.extend(text(own, "cluster.file_error").map(str::to_owned));
        }
        if let Some(ms) = of_own("cluster.stalled_ms") {
            words.push(format!("has applied nothing for {}", time(ms)));
        }
        if let Some(ms) = document::number(server, "stalled_ms") {
            // The member itself says whether writes fail.
            let why = match own.map(|own| text(own, "cluster.file_error")) {
                None => ": its disk is slow or full",
                Some(None) => ": its disk or its connection is slow",
                Some(Some(_)) => "",
            };
            words.push(format!("has stored nothing for {}{why}", time(ms)));
        }
        if own.is_none()
            && let Some(ms) = document::number(server, "silent_ms")
        {
            words.push(format!("not heard for {}", time(ms)));
        } else if is_lost {
            words.push("not heard".to_owned());
        }
        let is_bad = !words.is_empty();
        if let Some(phase) = text(server, "phase").filter(|phase| *phase != "member") {
            words.push(phase.to_owned());
        }
        if let (Some(sent), Some(of)) = (
            document::number(server, "snapshot.sent_bytes"),
            document::number(server, "snapshot.bytes"),
        ) {
            let share = sent.saturating_mul(100) / of.max(1);
            words.push(format!("receives a snapshot, {share} %"));
        }
        match words.is_empty() {
            true if own.is_none() && document::flag(server, "connected").is_none() => {
                ("–".to_owned(), false)
            }
            true => ("ok".to_owned(), false),
            false => (words.join("; "), is_bad),
        }
    }
}

/// Whether the id at a path is this one. The reference's text has the first digits of an id.
fn is_id(object: &Value, path: &str, id: &str) -> bool {
    text(object, path).is_some_and(|known| is_same(known, id))
}

fn is_same(one: &str, other: &str) -> bool {
    let is_known = !one.is_empty() && !other.is_empty();
    is_known && (one.starts_with(other) || other.starts_with(one))
}

/// The digits by which people tell ids apart.
pub(super) fn short(id: &str) -> &str {
    id.get(..4).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_tools::status::source::Source;

    fn member(sid: &str, role: &str, term: i64, applied: i64, peers: &str) -> Arc<Status> {
        let text = format!(
            r#"{{"version":1,"databases":[{{"name":"D","cluster":{{"cluster_id":"c","server_id":"{sid}","status":"cluster member",
                "role":"{role}","term":{term},"leader":"aaaa1","applied":{applied},"committed":9,"known_committed":9,"servers":[{peers}]}}}}]}}"#
        );
        Arc::new(Status {
            document: Arc::new(Value::parse(text.as_bytes()).expect("JSON")),
            source: Source::pages("h:1"),
        })
    }

    fn texts(list: &List) -> Vec<String> {
        let row = |row: &Row| {
            let texts = row.cells.iter().map(|cell| cell.text.as_str());
            texts.collect::<Vec<_>>().join("|")
        };
        list.rows.iter().map(row).collect()
    }

    #[test]
    fn each_member_tells_of_itself_and_the_leader_of_the_others() {
        let peers = r#"{"server_id":"aaaa1","address":"tcp:a:1","self":true,"connected":true,"phase":"member"},
            {"server_id":"bbbb1","address":"tcp:b:1","self":false,"connected":true,"phase":"member","match":9,"last_message_age_ms":31},
            {"server_id":"cccc1","address":"tcp:c:1","self":false,"connected":false,"phase":"member","match":4,"last_message_age_ms":8000,"silent_ms":8000}"#;
        let all = [
            member("aaaa1", "leader", 3, 9, peers),
            member("bbbb1", "follower", 3, 7, peers),
        ];
        let main = all[1].of_database("D").expect("a database");
        let cluster = Cluster::of(main, &all, "D").expect("a cluster");
        let list = cluster.list(None);
        assert_eq!(list.summary, "3 members in term 3, led by aaaa");
        assert_eq!(
            texts(&list),
            [
                "aaaa|leader|3|0|tcp:a:1|–|ok",
                "bbbb|follower|3|2|tcp:b:1|this server|ok",
                "cccc|–|–|5|tcp:c:1|8.0 s ago|not heard for 8.0 s",
            ]
        );
        assert_eq!(list.rows[0].cells[1].class, "good");
        assert_eq!(list.rows[1].cells[0].marks, ["this"]);
        assert_eq!(list.rows[2].class, "bad");
    }

    #[test]
    fn a_follower_alone_tells_what_it_knows() {
        let peers = r#"{"server_id":"aaaa1","address":"tcp:a:1","connected":false,"phase":"member"},
            {"server_id":"bbbb1","address":"tcp:b:1","connected":true,"phase":"being added"}"#;
        let all = [member("bbbb1", "follower", 3, 7, peers)];
        let main = all[0].of_database("D").expect("a database");
        let list = Cluster::of(main, &all, "D").expect("a cluster").list(None);
        assert_eq!(
            texts(&list),
            [
                "aaaa|leader|–|–|tcp:a:1|never|not heard",
                "bbbb|follower|3|2|tcp:b:1|this server|being added",
            ]
        );
        assert_eq!(list.rows[1].class, "");
    }
}
