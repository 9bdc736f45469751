//! Checks of servers: one table, in which each check is a function of the facts.
//!
//! A check that lacks a fact says so ([`Verdict::Unknown`]) and never guesses. [`gather`] collects
//! the facts; the command `doctor` prints. `docs/operate/servers-at-a-glance.md` lists the checks.

mod clients;
mod cluster;
pub(crate) mod gather;
mod process;
mod security;
mod storage;

pub(crate) use storage::why_not_stored;

use std::collections::BTreeMap;

use corvid_json::Value;

use crate::fleet::{Fleet, Look};
use corvid_tools::status::document;

/// The outcome of a check for one server or database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Something is broken.
    Bad,
    /// Something will break, or surprises.
    Warn,
    /// A fact is missing.
    Unknown,
    /// Nothing is wrong.
    Ok,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Bad => "bad",
            Verdict::Warn => "warn",
            Verdict::Unknown => "unknown",
            Verdict::Ok => "ok",
        }
    }
}

/// A verdict with its evidence.
pub(crate) type Judgement = (Verdict, String);

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// The address of the server; empty if it is about several ones or about this machine.
    pub server: String,
    /// The database.
    pub database: Option<String>,
    /// The evidence.
    pub evidence: String,
    /// Further words of the check's command, with the texts for which they stand.
    pub words: Vec<(&'static str, String)>,
}

impl Finding {
    /// A finding about a server.
    fn of(look: &Look, database: Option<&str>, (verdict, evidence): Judgement) -> Finding {
        Finding {
            verdict,
            server: look.address.clone(),
            database: database.map(str::to_owned),
            evidence,
            words: Vec::new(),
        }
    }

    /// A finding about no single server.
    fn overall((verdict, evidence): Judgement) -> Finding {
        Finding {
            verdict,
            server: String::new(),
            database: None,
            evidence,
            words: Vec::new(),
        }
    }
}

/// The source of the facts of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The database `_Server`, which every client sees, on every server.
    Client,
    /// The status of the server.
    Status,
    /// The status by a control socket on this machine.
    Local,
    /// The metrics of the server.
    Metrics,
}

impl Needs {
    /// The word for it on the page.
    #[must_use]
    #[cfg(test)]
    fn word(self) -> &'static str {
        match self {
            Needs::Client => "client",
            Needs::Status => "status",
            Needs::Local => "control socket",
            Needs::Metrics => "metrics",
        }
    }
}

/// A check.
pub(crate) struct Check {
    /// Its name.
    pub name: &'static str,
    /// The source of its facts.
    #[cfg_attr(not(test), allow(dead_code))]
    pub needs: Needs,
    /// Its judgement: nothing where it does not apply.
    pub judge: fn(&Facts) -> Vec<Finding>,
    /// The advice.
    pub advice: &'static str,
    /// A command that shows more or mends it; `CTL`, `DB` and `SERVER` stand for the control
    /// socket, the database and the address.
    pub command: &'static str,
}

/// Facts about one server besides its [`Look`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The text of `vlog/list`.
    pub log_levels: Option<String>,
    /// The text of the page `/metrics`.
    pub metrics: Option<String>,
    /// The file systems of the databases' files.
    pub disks: BTreeMap<String, Disk>,
    /// The memory of the machine, bytes.
    pub memory_bytes: Option<i64>,
}

/// The room on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Bytes that are free for the server.
    pub free_bytes: i64,
    /// All bytes.
    pub bytes: i64,
}

/// Everything that the checks judge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The servers.
    pub fleet: Fleet,
    /// More about each of them.
    pub extras: Vec<Extra>,
    /// When this program's own certificate ends, s since 1970.
    pub own_expiry_s: Option<i64>,
    /// Now, s since 1970.
    pub now_s: i64,
}

impl Facts {
    /// The servers with their facts.
    fn servers(&self) -> impl Iterator<Item = (&Look, &Extra)> {
        self.fleet.looks.iter().zip(&self.extras)
    }

    /// A finding for each server, from its status. Where the judge tells nothing, the check does
    /// not apply, or the server does not tell it.
    fn of_status(
        &self,
        judge: impl Fn(&Look, &Extra, &Value) -> Option<Judgement>,
    ) -> Vec<Finding> {
        let of = |(look, extra): (&Look, &Extra)| {
            let judged = match look.document() {
                None => Some(no_status()),
                Some(document) => judge(look, extra, document).or_else(|| untold(document)),
            };
            Some(Finding::of(look, None, judged?))
        };
        self.servers().filter_map(of).collect()
    }

    /// As [`Facts::of_status`], for each database.
    fn of_databases(
        &self,
        judge: impl Fn(&Look, &str, &Value) -> Option<Judgement>,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (look, _) in self.servers() {
            let Some(document) = look.document() else {
                findings.push(Finding::of(look, None, no_status()));
                continue;
            };
            for (name, database) in document::databases(document) {
                let judged = judge(look, name, database).or_else(|| untold(document));
                findings.extend(judged.map(|judged| Finding::of(look, Some(name), judged)));
            }
        }
        findings
    }
}

/// The judgement of a server without a status.
fn no_status() -> Judgement {
    (Verdict::Unknown, "the status is not known".to_owned())
}

/// The judgement of a server that tells only a part of the status.
fn untold(document: &Value) -> Option<Judgement> {
    let is_whole = document::number(document, "version").is_some();
    (!is_whole).then(|| (Verdict::Unknown, "this server does not tell it".to_owned()))
}

/// Nothing is wrong.
fn fine(evidence: impl Into<String>) -> Judgement {
    (Verdict::Ok, evidence.into())
}

/// A verdict about a share of a limit, in percent.
fn share(part: i64, whole: i64, warn: i64, bad: i64) -> (Verdict, i64) {
    let percent = part.saturating_mul(100) / whole.max(1);
    let verdict = match percent {
        percent if percent >= bad => Verdict::Bad,
        percent if percent >= warn => Verdict::Warn,
        _ => Verdict::Ok,
    };
    (verdict, percent)
}

/// Bytes for people.
pub(crate) fn bytes(count: i64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return match unit {
                "B" => format!("{count} B"),
                _ => format!("{value:.1} {unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// All checks, the most urgent first.
pub(crate) const CHECKS: [Check; 33] = [
    Check {
        name: "reached",
        needs: Needs::Client,
        judge: cluster::reached,
        advice: "Start the server, or mend the network, the address or the certificates. A member whose address for clients is not known \
can be named as a further SERVER.",
        command: "ovsdb-client list-dbs SERVER",
    },
    Check {
        name: "connected",
        needs: Needs::Client,
        judge: cluster::connected,
        advice: "The server has lost its cluster or source. Start the missing servers, or mend the network between them.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "leader",
        needs: Needs::Client,
        judge: cluster::leader,
        advice: "Nobody leads, so nothing can be written. Start members until a majority runs and reaches each other.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "ready",
        needs: Needs::Status,
        judge: process::ready,
        advice: "The page on metrics and health says what to do about each reason.",
        command: "ovs-appctl -t CTL ovsdb-server/status",
    },
    Check {
        name: "contents",
        needs: Needs::Status,
        judge: storage::contents,
        advice: "The database cannot be read here yet. If that stays so, the log says why: a file that is damaged, a cluster or a source that \
cannot be reached.",
        command: "ovs-appctl -t CTL ovsdb-server/get-db-storage-status DB",
    },
    Check {
        name: "storage",
        needs: Needs::Status,
        judge: storage::storage,
        advice: "The last commit could not be stored. Make room or repair the disk, and do not restart the server before.",
        command: "ovs-appctl -t CTL ovsdb-server/get-db-storage-status DB",
    },
    Check {
        name: "disk",
        needs: Needs::Local,
        judge: storage::disk,
        advice: "Make room: compaction needs as much as the new file. Then compact.",
        command: "ovs-appctl -t CTL ovsdb-server/compact DB",
    },
    Check {
        name: "threads",
        needs: Needs::Status,
        judge: process::threads,
        advice: "A thread is busy or stuck. If it stays so, keep a core of the process, then restart it.",
        command: "ovs-appctl -t CTL ovsdb-server/status",
    },
    Check {
        name: "members-heard",
        needs: Needs::Status,
        judge: cluster::members_heard,
        advice: "Start the member, or mend the network. Remove it if it is gone for good.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "members-stalled",
        needs: Needs::Status,
        judge: cluster::members_stalled,
        advice: "The member runs but makes no progress. Look at its disk and its log.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "membership",
        needs: Needs::Status,
        judge: cluster::membership,
        advice: "A server is being added or removed. If that does not end, the server cannot be reached, or a majority is missing.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "members-odd",
        needs: Needs::Status,
        judge: cluster::members_odd,
        advice: "An even number of members survives no more failures than one member less. Add or remove one.",
        command: "ovs-appctl -t CTL cluster/status DB",
    },
    Check {
        name: "lag",
        needs: Needs::Client,
        judge: cluster::lag,
        advice: "The member is behind. If the lag grows, its disk or its network is too slow.",
        command: "corvid SERVER servers",
    },
    Check {
        name: "elections",
        needs: Needs::Status,
        judge: cluster::elections,
        advice: "Elections interrupt writes. If they go on, members are overloaded or the network loses messages: raise the election timer.",
        command: "ovs-appctl -t CTL cluster/change-election-timer DB 2000",
    },
    Check {
        name: "relay",
        needs: Needs::Status,
        judge: cluster::relay,
        advice: "The relay serves old contents, and its clients' writes wait. Start the source, or mend the network.",
        command: "ovs-appctl -t CTL ovsdb-server/status",
    },
    Check {
        name: "backup",
        needs: Needs::Status,
        judge: cluster::backup,
        advice: "The copy is not kept up to date. Start the active server, or make this one active if it is gone for good.",
        command: "ovs-appctl -t CTL ovsdb-server/sync-status",
    },
    Check {
        name: "versions",
        needs: Needs::Status,
        judge: process::versions,
        advice: "Different versions are for the time of an upgrade. Finish it.",
        command: "corvid SERVER servers",
    },
    Check {
        name: "clocks",
        needs: Needs::Status,
        judge: process::clocks,
        advice: "Times in logs and histories cannot be compared, and certificates may seem to have ended. Start a time service on every machine.",
        command: "timedatectl timesync-status",
    },
    Check {
        name: "descriptors",
        needs: Needs::Status,
        judge: process::descriptors,
        advice: "New connections will be refused. Raise LimitNOFILE of the unit, and look for clients that connect too often.",
        command: "ovs-appctl -t CTL ovsdb-server/list-sessions",
    },
    Check {
        name: "memory",
        needs: Needs::Local,
        judge: process::memory,
        advice: "The kernel may end the process. Look for sessions with a backlog and for large databases, or give the machine more memory.",
        command: "ovs-appctl -t CTL memory/show",
    },
    Check {
        name: "log-level",
        needs: Needs::Local,
        judge: process::log_level,
        advice: "Debug messages slow the server down and fill the disk. Set the level back.",
        command: "ovs-appctl -t CTL vlog/set info",
    },
    Check {
        name: "file-growth",
        needs: Needs::Status,
        judge: storage::file_growth,
        advice: "The file is much larger than its contents, so a start takes long. Compact it, and look in the log for why that does not happen by itself.",
        command: "ovs-appctl -t CTL ovsdb-server/compact DB",
    },
    Check {
        name: "jobs",
        needs: Needs::Status,
        judge: storage::jobs,
        advice: "A job takes unusually long: a slow disk, or a client that reads a history slowly.",
        command: "ovs-appctl -t CTL ovsdb-server/status",
    },
    Check {
        name: "history",
        needs: Needs::Metrics,
        judge: storage::history,
        advice: "Parts of the history were not kept. The log says why: a full disk, or a file system without hard links.",
        command: "ovs-appctl -t CTL ovsdb-server/history DB",
    },
    Check {
        name: "sessions",
        needs: Needs::Status,
        judge: clients::sessions,
        advice: "Further clients will be refused. Raise the limit, or look for clients that connect too often.",
        command: "ovs-appctl -t CTL ovsdb-server/list-sessions",
    },
    Check {
        name: "backlog",
        needs: Needs::Status,
        judge: clients::backlog,
        advice: "A client does not read what it asked for. Look at that client; the server closes its connection at the limit.",
        command: "ovs-appctl -t CTL ovsdb-server/list-sessions",
    },
    Check {
        name: "blocked",
        needs: Needs::Status,
        judge: clients::blocked,
        advice: "Many transactions wait for a condition, or for something to be stored. Look for clients that wait without a timeout, and at the disk.",
        command: "ovs-appctl -t CTL ovsdb-server/list-sessions",
    },
    Check {
        name: "failed-transactions",
        needs: Needs::Status,
        judge: clients::failed,
        advice: "Most transactions fail. A client repeats one that cannot succeed: its log names the error.",
        command: "ovs-appctl -t CTL ovsdb-server/list-sessions",
    },
    Check {
        name: "slow-transactions",
        needs: Needs::Status,
        judge: clients::slow,
        advice: "Look at the client and its operations: conditions on columns without an index read every row of a table.",
        command: "corvid SERVER top",
    },
    Check {
        name: "probes",
        needs: Needs::Client,
        judge: clients::probes,
        advice: "Without probes a client that is gone holds its session and its locks. With short ones a busy client is disconnected. Five \
seconds is the default, a minute is usual for many clients.",
        command: "corvid SERVER --database=DB set TABLE RECORD inactivity_probe=60000",
    },
    Check {
        name: "open-remotes",
        needs: Needs::Status,
        judge: security::open_remotes,
        advice: "Everybody on the network can read and write. Use pssl: with certificates, or bind the remote to an address of this machine.",
        command: "ovs-appctl -t CTL ovsdb-server/list-remotes",
    },
    Check {
        name: "open-metrics",
        needs: Needs::Status,
        judge: security::open_metrics,
        advice: "The pages have no authentication. Bind them to an address that only the collector reaches.",
        command: "ovs-appctl -t CTL ovsdb-server/set-setting metrics-listen 127.0.0.1:9641",
    },
    Check {
        name: "certificates",
        needs: Needs::Metrics,
        judge: security::certificates,
        advice: "Renew the certificate. Servers and tools read the new files by themselves.",
        command: "openssl x509 -noout -dates -in CERTIFICATE",
    },
];

/// A finding with its check.
pub(crate) struct Diagnosis {
    /// The check.
    pub check: &'static Check,
    /// The finding.
    pub finding: Finding,
}

/// Runs all checks. The worst findings come first.
pub(crate) fn diagnose(facts: &Facts) -> Vec<Diagnosis> {
    static TABLE: [Check; CHECKS.len()] = CHECKS;
    let of = |check: &'static Check| {
        let findings = (check.judge)(facts).into_iter();
        findings.map(move |finding| Diagnosis { check, finding })
    };
    let mut all: Vec<Diagnosis> = TABLE.iter().flat_map(of).collect();
    all.sort_by_key(|diagnosis| diagnosis.finding.verdict);
    all
}

impl Diagnosis {
    /// The command for this finding, ready to be pasted; `None` if there is nothing to do.
    #[must_use]
    pub(crate) fn command(&self, fleet: &Fleet) -> Option<String> {
        let is_wrong = matches!(self.finding.verdict, Verdict::Bad | Verdict::Warn);
        if !is_wrong || self.check.command.is_empty() {
            return None;
        }
        let mut looks = fleet.looks.iter();
        let look = match self.finding.server.is_empty() {
            true => looks.next(),
            false => looks.find(|look| look.address == self.finding.server),
        };
        let control = look
            .and_then(|look| look.status.as_ref()?.source.control())
            .map_or("ovsdb-server".to_owned(), |path| path.display().to_string());
        let server = look.map_or("", |look| look.address.as_str());
        let database = self.finding.database.as_deref().unwrap_or("DATABASE");
        let quoted = |text: &str| {
            let is_plain =
                |letter: char| letter.is_ascii_alphanumeric() || "_-./:@[]".contains(letter);
            match text.chars().all(is_plain) {
                true => text.to_owned(),
                false => format!("'{}'", text.replace('\'', "'\\''")),
            }
        };
        let word = |word: &str| match word {
            "CTL" => quoted(&control),
            "DB" => quoted(database),
            "--database=DB" => format!("--database={}", quoted(database)),
            "SERVER" => quoted(server),
            other => {
                let mut words = self.finding.words.iter();
                let found = words.find(|(word, _)| *word == other);
                found.map_or(other.to_owned(), |(_, text)| quoted(text))
            }
        };
        let words = self.check.command.split(' ').map(word);
        Some(words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::fleet::tests::look;

    /// Facts about one server with this status.
    pub(crate) fn facts(status: &str) -> Facts {
        Facts {
            fleet: Fleet {
                looks: vec![look("tcp:192.0.2.1:6641", &[], Some(status))],
                ..Fleet::default()
            },
            extras: vec![Extra::default()],
            own_expiry_s: None,
            now_s: 1_000,
        }
    }

    /// Facts about one server with a database, whose status has these members.
    pub(crate) fn database(members: &str) -> Facts {
        facts(&format!(
            r#"{{"version":1,"server":{{}},"databases":[{{"name":"Lab",{members}}}]}}"#
        ))
    }

    /// The verdicts of a check.
    pub(crate) fn verdicts(judge: fn(&Facts) -> Vec<Finding>, facts: &Facts) -> Vec<Verdict> {
        let findings = judge(facts).into_iter();
        findings.map(|finding| finding.verdict).collect()
    }

    /// The page lists every check with what it needs, in the order of the table.
    #[test]
    fn the_page_lists_all_checks() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/operate/servers-at-a-glance.md"
        );
        let text = fs::read_to_string(page).expect("the page");
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let listed: Vec<(String, String)> = rows
            .map(|row| {
                let mut cells = row.split('|').skip(1).map(str::trim);
                let mut cell = || cells.next().unwrap_or_default().to_owned();
                let name = cell().trim_matches('`').to_owned();
                (name, cell())
            })
            .collect();
        let known: Vec<(String, String)> = CHECKS
            .iter()
            .map(|check| (check.name.to_owned(), check.needs.word().to_owned()))
            .collect();
        assert_eq!(listed, known);
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
    }

    /// Nothing is found wrong with a server that tells nothing, and no check is silent about it
    /// where the status is needed.
    #[test]
    fn without_facts_every_check_is_undecided() {
        let mut facts = facts("{}");
        facts.fleet.looks[0].status = None;
        let all = diagnose(&facts);
        let is_undecided =
            |it: &Diagnosis| matches!(it.finding.verdict, Verdict::Ok | Verdict::Unknown);
        assert!(all.iter().all(is_undecided));
        for check in CHECKS {
            let findings = (check.judge)(&facts);
            let is_known = findings.iter().any(|it| it.verdict != Verdict::Unknown);
            assert!(!is_known || check.needs == Needs::Client, "{}", check.name);
        }
    }

    /// A server may tell any numbers.
    #[test]
    fn no_number_of_a_status_is_too_large() {
        let numbers = [i64::MIN, -1, 0, i64::MAX];
        for (a, b) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            let text = format!(
                r#"{{"version":1,"time_ms":{a},"server":{{"started_ms":{b},"cpu_ms":{a},"memory_bytes":{a},"descriptors":{a},"descriptors_max":{b}}},
                "sessions":[{{"backlog_bytes":{a},"cost":{{"cpu_us":{b}}}}},{{"backlog_bytes":{a}}}],"settings":{{"max-sessions":"{b}","max-session-backlog":"{a}"}},
                "jobs":[{{"age_ms":{a},"done":{a},"total":{b}}}],
                "databases":[{{"name":"Lab","file":"/a","storage":{{"bytes":{a},"compacted_bytes":{b}}},"blocked_transactions":{a},
                    "tables":[{{"rows":{a}}},{{"rows":{a}}}],"transactions":{{"committed":{a},"failed":{b},"unchanged":{a}}},
                    "slow_transactions":[{{"time_ms":{b},"duration_ms":{a}}}],"relay":{{"state":"x","state_age_ms":{a}}},
                    "cluster":{{"role":"leader","election_timer_ms":{a},"election_started_age_ms":{b},"committed":{a},"stalled_ms":{a},
                        "servers":[{{"server_id":"bbbb","last_message_age_ms":{b},"match":{b}}}]}}}}]}}"#
            );
            let mut facts = facts(&text);
            facts.extras[0].memory_bytes = Some(b);
            facts.extras[0].metrics = Some(format!(
                "corvid_tls_certificate_expiry_timestamp_seconds {a}\n"
            ));
            facts.own_expiry_s = Some(a);
            facts.now_s = b;
            let room = Disk {
                free_bytes: a,
                bytes: b,
            };
            facts.extras[0].disks.insert("Lab".to_owned(), room);
            diagnose(&facts);
            let now = facts.fleet.looks[0].document().unwrap();
            let before = Value::parse_text(text.replace(&a.to_string(), "3").as_bytes()).unwrap();
            for (before, now) in [(&before, now), (now, &before)] {
                let mut page = corvid_shell::terminal::Painted::new(true, false);
                crate::top::picture(&mut page, "x", &crate::top::Readings { before, now }, 80);
            }
        }
    }

    #[test]
    fn commands_can_be_pasted() {
        let facts = facts(
            r#"{"version":1,"server":{},"databases":[{"name":"La b","storage":{"failed":true}}]}"#,
        );
        let all = diagnose(&facts);
        let command = all[0].command(&facts.fleet).unwrap();
        assert_eq!(
            command,
            "ovs-appctl -t /run/x.ctl ovsdb-server/get-db-storage-status 'La b'"
        );
        assert_eq!(all.last().unwrap().command(&facts.fleet), None);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
