//! Gathers the status of the server from its threads (`ovsdb-server/status`, `/status.json`). Part
//! of the main thread.
//!
//! Every database, member and shard is asked, and answers between two pieces of its work. A
//! gathering that is not complete after [`ANSWER_MAX_MS`] ends with the parts that have arrived,
//! and names the threads that are silent: the status must be readable above all when a thread is
//! stuck.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use corvid_net::clock;
use corvid_service::message::{Control, ControlAnswer};
use corvid_service::server_db;
use corvid_shell::unixctl::Replier;

use super::Server;
use super::upstream::Upstream;
use crate::control::reports::Reports;
use crate::control::sessions::{self, SessionList};
use crate::metrics::member::fault;
use crate::process_figures::ProcessFigures;
use crate::status::{DatabaseStatus, MemberStatus, RelayStatus, Status};

/// How long a status waits for the answers of threads, ms.
const ANSWER_MAX_MS: u64 = 1000;

/// The name of the part that the shards answer.
const SESSIONS: &str = "sessions";

/// Receives the complete status.
type Finish = Box<dyn FnOnce(&Status)>;

/// The gatherings that are not complete. Each part's continuation has a clone.
#[derive(Default)]
pub(super) struct StatusGatherings(Vec<Rc<RefCell<Gathered>>>);

struct Gathered {
    deadline_ms: u64,
    /// The names of the parts that have not arrived.
    awaited: BTreeSet<String>,
    reports: Reports,
    members: BTreeMap<String, MemberStatus>,
    sessions: Option<SessionList>,
    /// Taken when the status is made.
    finish: Option<Finish>,
}

impl Server {
    /// Replies with the status, as JSON if the client or the argument asks for it.
    pub(crate) fn status(&mut self, is_json: bool, replier: Replier) {
        self.gather_status(Box::new(move |status| {
            let json = || status.json();
            if is_json {
                replier.reply(Ok(format!("{}\n", json())));
            } else {
                replier.reply_in_format(|| status.text(), json);
            }
        }));
    }

    /// Publishes the status for the page.
    pub(super) fn publish_status(&mut self) {
        let metrics = self.config.metrics.clone();
        self.gather_status(Box::new(move |status| {
            metrics.publish_status(format!("{}\n", status.json()));
        }));
    }

    /// Ends gatherings whose time is over. Called between two pieces of work.
    pub(super) fn end_late_statuses(&mut self) {
        let now_ms = clock::mono_ms();
        let late: Vec<_> = self
            .statuses
            .0
            .extract_if(.., |gathered| gathered.borrow().deadline_ms <= now_ms)
            .collect();
        for gathered in late {
            self.finish_status(&gathered);
        }
    }

    /// How long the main thread may wait, at most `timeout`, until a gathering has to end.
    #[must_use]
    pub(crate) fn status_wait_max(&self, timeout: Duration) -> Duration {
        let now_ms = clock::mono_ms();
        let deadlines = self.statuses.0.iter();
        let deadline_ms = deadlines
            .map(|gathered| gathered.borrow().deadline_ms)
            .min();
        deadline_ms.map_or(timeout, |deadline_ms| {
            timeout.min(Duration::from_millis(deadline_ms.saturating_sub(now_ms)))
        })
    }

    pub(super) fn gather_status(&mut self, finish: Finish) {
        let databases = self.databases.served_names();
        // One that has ended answers nothing; the faults say so.
        let members = self.databases.members();
        let members: Vec<String> = members
            .filter(|(_, member)| !member.has_ended)
            .map(|(name, _)| name.to_owned())
            .collect();
        let awaited = databases.iter().map(|name| format!("db:{name}"));
        let awaited = awaited.chain(members.iter().map(|name| format!("raft:{name}")));
        let gathered = Rc::new(RefCell::new(Gathered {
            deadline_ms: clock::mono_ms() + ANSWER_MAX_MS,
            awaited: awaited.chain([SESSIONS.to_owned()]).collect(),
            reports: Reports::new(),
            members: BTreeMap::new(),
            sessions: None,
            finish: Some(finish),
        }));
        self.statuses.0.push(gathered.clone());
        for name in databases {
            let (gathered, database) = (gathered.clone(), name.clone());
            self.ask_database(&name, Control::Report, move |server, answer| {
                if let ControlAnswer::Report(report) = answer {
                    let part = format!("db:{database}");
                    gathered.borrow_mut().reports.insert(database, *report);
                    server.status_part_arrived(&gathered, &part);
                }
            });
        }
        for name in members {
            let gathered = gathered.clone();
            let database = name.clone();
            self.ask_member(&database, move |server, status| {
                let part = format!("raft:{name}");
                let status = status.map(|status| (name, status));
                gathered.borrow_mut().members.extend(status);
                server.status_part_arrived(&gathered, &part);
            });
        }
        self.gather_sessions(move |server, sessions| {
            gathered.borrow_mut().sessions = Some(sessions);
            server.status_part_arrived(&gathered, SESSIONS);
        });
    }

    fn status_part_arrived(&mut self, gathered: &Rc<RefCell<Gathered>>, part: &str) {
        let is_complete = {
            let mut gathered = gathered.borrow_mut();
            gathered.awaited.remove(part);
            gathered.awaited.is_empty()
        };
        if is_complete {
            self.statuses.0.retain(|other| !Rc::ptr_eq(other, gathered));
            self.finish_status(gathered);
        }
    }

    /// Makes the status of what has arrived. A late part finds no continuation.
    fn finish_status(&self, gathered: &Rc<RefCell<Gathered>>) {
        let mut gathered = gathered.borrow_mut();
        let Some(finish) = gathered.finish.take() else {
            return;
        };
        let status = self.status_of(&mut gathered);
        drop(gathered);
        finish(&status);
    }

    fn status_of(&self, gathered: &mut Gathered) -> Status {
        let faults = self.config.metrics.faults(
            |name| match gathered.members.get(name) {
                Some(member) => fault(&member.status),
                None => Some("the thread of the member does not answer".to_owned()),
            },
            |name| gathered.reports.get(name)?.replication,
        );
        let served = self.databases.all_served().map(|(name, served)| {
            let model = match (&served.upstream, &served.replication) {
                (Some(upstream), _) => model(upstream),
                (None, Some(backup)) if backup.is_backup => "backup",
                (None, _) if name == server_db::NAME => "memory",
                (None, _) => "standalone",
            };
            let has_file = !matches!(model, "memory" | "relay");
            DatabaseStatus {
                name: name.to_owned(),
                model,
                file: has_file.then(|| served.name.clone()),
                has_contents: true,
                report: gathered.reports.remove(name),
                member: gathered.members.remove(name),
                relay: served.upstream.as_ref().and_then(relay),
                source: served.source.as_ref().map(|(_, source)| source.clone()),
            }
        });
        let mut databases: Vec<DatabaseStatus> = served.collect();
        let joining = self.databases.all_joining();
        databases.extend(joining.map(|(name, joining)| DatabaseStatus {
            name: name.to_owned(),
            model: model(&joining.upstream),
            file: joining.upstream.member().map(|_| joining.name.clone()),
            has_contents: false,
            report: None,
            member: gathered.members.remove(name),
            relay: relay(&joining.upstream),
            source: None,
        }));
        databases.sort_by(|left, right| left.name.cmp(&right.name));
        let mut jobs = self.config.jobs.list();
        for database in &databases {
            let member = database.member.iter();
            jobs.extend(member.flat_map(|member| member.transfers(&database.name)));
        }
        let listed = gathered.sessions.take();
        let requests = listed.as_ref().map(|listed| listed.requests);
        let (sessions, locks) = listed
            .map(|listed| {
                let all = listed.sessions;
                let locks = self.shared.locks();
                let all_locks = sessions::locks_json(&all, &locks);
                (sessions::json(&all, &locks), all_locks)
            })
            .unzip();
        Status {
            time_ms: clock::wall_ms(),
            process: ProcessFigures::read(),
            faults,
            config_file: self.config_file().map(str::to_owned),
            remotes: self.remote_names().map(str::to_owned).collect(),
            databases,
            requests,
            sessions,
            locks,
            jobs,
            settings: self.settings(),
            unanswered: gathered.awaited.iter().cloned().collect(),
        }
    }
}

fn model(upstream: &Upstream) -> &'static str {
    match upstream {
        Upstream::Member(_) => "clustered",
        Upstream::Relay(_) => "relay",
    }
}

fn relay(upstream: &Upstream) -> Option<RelayStatus> {
    let relay = upstream.relay()?;
    let figures = relay.handle.figures();
    Some(RelayStatus {
        source: relay.source().remotes.clone(),
        stage: figures.stage(),
        stage_ms: figures.stage_ms(),
        waiting: figures.waiting.load(Ordering::Relaxed),
        sent: figures.sent.load(Ordering::Relaxed),
        changes: figures.changes.load(Ordering::Relaxed),
        received_bytes: figures.received_bytes.load(Ordering::Relaxed),
        unapplied_bytes: figures.unapplied_bytes.load(Ordering::Relaxed),
        connects: figures.connects.load(Ordering::Relaxed),
    })
}
