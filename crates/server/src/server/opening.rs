//! Opens database files, each on its own thread. Part of the main thread, which serves a database
//! once its file is loaded. A relay, which has no file, begins at once.
//!
//! Until a file is loaded no command finds its database: it is not listed, and `remove-db` fails.
//! The service model is decided when the database is served. If two files have the same schema
//! name, the file that is loaded first is served.
//!
//! Invariant: at most one thread at a time opens a file. A request for a file that is being opened
//! waits until that opening ends, and is then treated as if it had just arrived. So the second
//! `add-db` of a file fails with `already open`, or opens the file if the first one failed. Each
//! request is answered exactly once, even if the thread panics or the server exits. An exit does
//! not wait for loads.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use corvid_data::HashSeed;
use corvid_net::{errno, os_name};
use corvid_shell::unixctl::Replier;

use super::Server;
use super::databases::{check_name, same_file};
use super::serving::Backing;
use crate::config::applied::{check_kind, replication_of};
use crate::config::file::DatabaseConfig;
use crate::config::relay::RelaySettings;
use crate::database::open::{self, Opened, Progress, RandomUuids};
use crate::liveness::{Liveness, STUCK_MS};
use crate::main_handle::MainHandle;

/// The maximum number of files that are opened at the same time. Further requests wait: at most one
/// for each control connection, and one of the configuration that is being applied.
const OPENINGS_MAX: usize = 8;

/// How long an exit waits for threads to cancel, for example the copy of a damaged file. A thread
/// cancels at the next piece of the file; a thread that is blocked in the file system cannot.
const GIVE_UP_MAX: Duration = Duration::from_millis(500);

/// The openings in progress, and the requests that wait.
#[derive(Default)]
pub(super) struct Openings {
    last_token: u64,
    under_way: Vec<Opening>,
    /// In the order of arrival.
    pending: VecDeque<Request>,
    /// The number of threads that were abandoned and have not ended.
    abandoned: usize,
}

/// A file that a thread is opening.
struct Opening {
    token: u64,
    request: Request,
    progress: Progress,
}

/// A request to open and serve a file.
pub(super) struct Request {
    /// The file name, as given by the user.
    file: String,
    absolute: String,
    /// The configuration file's entry that asks for the database.
    entry: Option<(String, DatabaseConfig)>,
    requester: Requester,
}

/// The receiver of the answer.
pub(super) enum Requester {
    Command(Replier),
    Reconfiguration,
}

impl Request {
    pub(super) fn new(
        file: &str,
        entry: Option<(String, DatabaseConfig)>,
        requester: Requester,
    ) -> Request {
        Request {
            file: file.to_owned(),
            absolute: std::path::absolute(os_name::path(file))
                .map_or_else(|_| file.to_owned(), |path| os_name::text(path.as_os_str())),
            entry,
            requester,
        }
    }

    /// The relay that is requested; `None`: the request is for a file.
    fn relay(&self) -> Option<RelaySettings> {
        match &self.entry {
            Some((entry, config)) => RelaySettings::of_entry(entry, config),
            None => RelaySettings::of_argument(&self.file),
        }
    }
}

impl Openings {
    /// Whether no opening in progress is stuck.
    pub(super) fn make_progress(&self, now_ms: u64) -> bool {
        let mut openings = self.under_way.iter();
        openings.all(|opening| opening.progress.busy_ms(now_ms) <= STUCK_MS)
    }

    /// The server is exiting: answers the commands that wait for openings, and cancels the
    /// openings.
    pub(super) fn abandon(&mut self) {
        self.abandoned = self.under_way.len();
        let under_way = self.under_way.drain(..).map(|opening| opening.request);
        for request in under_way.chain(self.pending.drain(..)) {
            if let Requester::Command(replier) = request.requester {
                let file = request.file;
                replier.reply(Err(format!("{file}: not opened: the server is exiting")));
            }
        }
    }

    /// The next request for a file that is not being opened.
    fn next(&mut self) -> Option<Request> {
        if self.under_way.len() >= OPENINGS_MAX {
            return None;
        }
        let is_busy = |request: &Request| {
            let mut openings = self.under_way.iter();
            openings.any(|opening| same_file(&opening.request.absolute, &request.absolute))
        };
        let next = self.pending.iter().position(|request| !is_busy(request))?;
        self.pending.remove(next)
    }
}

impl Server {
    /// Opens a file and serves its database. `replier` is answered, in the reference's words, when
    /// the database is served or has failed.
    pub(crate) fn add_database(&mut self, file: &str, replier: Replier) {
        self.open(Request::new(file, None, Requester::Command(replier)));
    }

    /// Queues a request, and begins the openings that can begin.
    pub(super) fn open(&mut self, request: Request) {
        if let Some(relay) = request.relay() {
            let outcome = self.add_relay(relay);
            return self.answer_opening(request.requester, outcome);
        }
        self.openings.pending.push_back(request);
        self.begin_openings();
    }

    fn begin_openings(&mut self) {
        while let Some(request) = self.openings.next() {
            if self.databases.has_file(&request.absolute) {
                let error = format!("ovsdb error: {}: already open", request.file);
                self.answer_opening(request.requester, Err(error));
                continue;
            }
            // During the start, the service manager may restart the server if the file system
            // hangs. Once the server serves other databases, a hanging file must not end it.
            let liveness = if self.configuration.is_started() {
                Liveness::default()
            } else {
                self.shared
                    .liveness_registry
                    .add(&format!("open:{}", request.file))
            };
            let progress = Progress::new(liveness, self.pending.is_exiting.clone());
            self.openings.last_token += 1;
            let token = self.openings.last_token;
            let work = Work {
                file: request.file.clone(),
                hash_seed: self.shared.hash_seed,
                entry: request.entry.clone(),
                progress: progress.clone(),
                report: Outcome::new(token, self.shared.main.clone()),
            };
            self.openings.under_way.push(Opening {
                token,
                request,
                progress,
            });
            // If the thread cannot be created, its work is dropped, and `Outcome` reports the
            // failure.
            let thread = std::thread::Builder::new().name("open".to_owned());
            let _ = thread.spawn(move || work.run());
        }
    }

    /// Handles the outcome of an opening thread.
    pub(super) fn opened(&mut self, token: u64, outcome: Result<Opened, String>) {
        let mut under_way = self.openings.under_way.iter();
        let Some(index) = under_way.position(|opening| opening.token == token) else {
            self.openings.abandoned = self.openings.abandoned.saturating_sub(1);
            // The process is exiting; freeing millions of rows one by one would only delay the
            // exit.
            std::mem::forget(outcome);
            return;
        };
        let request = self.openings.under_way.remove(index).request;
        let outcome = outcome.and_then(|opened| self.serve_opened(&request, opened));
        self.answer_opening(request.requester, outcome);
        self.begin_openings();
    }

    /// Serves a loaded file. Returns the database's name.
    fn serve_opened(&mut self, request: &Request, opened: Opened) -> Result<String, String> {
        let name = opened.database_name().to_owned();
        if let Err(error) = check_name(&name, self.is_taken(&name)) {
            opened.discard();
            return Err(error);
        }
        let replication = match &request.entry {
            Some((_, wanted)) => replication_of(wanted),
            None => self.roles.settings().replication(),
        };
        let row = match opened {
            Opened::Standalone(opened) => {
                let backing = Backing::File(opened.file, opened.state, opened.recorded);
                let row = self.serve(&request.absolute, opened.database, backing, replication);
                if let Some(copy) = opened.salvage_copy {
                    self.config.metrics.set_salvage_copy(&name, copy);
                }
                row.map_err(|error| errno::text(&error))?
            }
            Opened::Member(_) if replication.is_some() => {
                let file = &request.file;
                let error = "database is clustered and not active-backup";
                return Err(format!("ovsdb error: {file}: {error}"));
            }
            Opened::Member(opened) => self.serve_member(&request.absolute, *opened)?,
        };
        // A configuration that is being applied reads all columns once all databases are served.
        if matches!(request.requester, Requester::Command(_)) {
            self.watch_columns_again(&name);
        }
        // Sessions are closed before `_Server` changes: a closed session must get no update about
        // this database.
        if self.configuration.is_started() {
            self.shared
                .disconnect_unaware(&format!("adding {name} database"));
        }
        self.databases.update_server_db(row);
        self.databases.show_index(&name);
        self.save();
        Ok(name)
    }

    fn answer_opening(&mut self, requester: Requester, outcome: Result<String, String>) {
        match requester {
            Requester::Command(replier) => replier.reply(outcome.map(|_| String::new())),
            Requester::Reconfiguration => self.reconfiguration_opened(outcome),
        }
    }

    /// Waits for abandoned threads until [`GIVE_UP_MAX`] after `since`, the time of their
    /// cancellation.
    pub(super) fn await_abandoned_openings(&mut self, since: Instant) {
        while self.openings.abandoned > 0
            && let Ok(report) = self.shared.inbox.recv_deadline(since + GIVE_UP_MAX)
        {
            self.run_message(report);
        }
    }
}

/// The work of an opening thread.
struct Work {
    file: String,
    hash_seed: HashSeed,
    entry: Option<(String, DatabaseConfig)>,
    progress: Progress,
    report: Outcome,
}

impl Work {
    fn run(self) {
        let outcome = self.open();
        self.report.send(outcome);
    }

    fn open(&self) -> Result<Opened, String> {
        if let Some((entry, wanted)) = &self.entry {
            check_kind(entry, &self.file, wanted)?;
        }
        let mut uuids = RandomUuids::new().map_err(|error| errno::text(&error))?;
        let opened = open::open(&self.file, self.hash_seed, &mut uuids, &self.progress);
        opened.map_err(|error| error.to_string())
    }
}

/// Sends the outcome of an opening. If it is dropped unsent, because the thread panicked or could
/// not be created, it sends a failure.
struct Outcome {
    token: u64,
    main: Option<MainHandle>,
}

impl Outcome {
    fn new(token: u64, main: MainHandle) -> Outcome {
        Outcome {
            token,
            main: Some(main),
        }
    }

    fn send(mut self, outcome: Result<Opened, String>) {
        if let Some(main) = self.main.take() {
            main.opened(self.token, outcome);
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if let Some(main) = self.main.take() {
            main.opened(
                self.token,
                Err("the thread that opens it failed".to_owned()),
            );
        }
    }
}
