//! The pages of [`Metrics`] as a [`Site`]: status requests, checks, and the format of `/metrics`.
//! Runs on the `http` thread.

use crate::http::{Request, Response, Site};
use corvid_net::clock;
use corvid_service::replication::ReplicationStatus;

use super::database::DatabaseFigures;
use super::exposition;
use super::health::{self, Check};
use super::member::MemberFigures;
use super::status_request::StatusRequest;
use super::{Metrics, Stage, plain};
use crate::main_handle::MainMessage;
use crate::shard::ShardMessage;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Site for Metrics {
    fn gather(&self, request: &Request<'_>) {
        match request.path {
            "/metrics" | "/livez" | "/readyz" => self.request_all(),
            "/status.json" => self.request_status(),
            _ => {}
        }
    }

    fn is_gathered(&self) -> bool {
        let databases = self.served();
        let mut requests = databases
            .iter()
            .map(|(_, figures)| figures.request())
            .chain(self.shards().iter().map(|shard| shard.figures.request()))
            .chain([self.status.request()]);
        !requests.any(StatusRequest::is_pending)
    }

    fn answer(&self, request: &Request<'_>) -> Response {
        match request.path {
            "/metrics" => self.exposition(request),
            "/livez" => health::page("livez", &self.threads("livez"), request),
            "/readyz" => {
                let mut checks = self.readiness();
                checks.extend(self.threads("readyz"));
                health::page("readyz", &checks, request)
            }
            "/status.json" => self.status.page(),
            "/" => Response::text(200, "/metrics\n/livez\n/readyz\n/status.json\n"),
            _ => Response::text(
                404,
                "not found: the pages are /metrics, /livez, /readyz and /status.json\n",
            ),
        }
    }

    /// Requests the status regularly, so that the age of an unanswered request is known even if
    /// probes are rare.
    fn tick(&self) {
        self.request_all();
    }
}

impl Metrics {
    fn request_all(&self) {
        for (_, figures) in self.served() {
            figures.request_status();
        }
        for shard in self.shards() {
            // One message suffices until the shard has answered.
            if !shard.figures.request().is_pending() {
                shard.figures.request_status();
                shard.handle.post(ShardMessage::Sample);
            }
        }
    }

    /// Has the main thread publish a new status.
    fn request_status(&self) {
        if let Some(shared_state) = self.shared_state.get()
            && self.status.request_new()
        {
            shared_state.main.report(MainMessage::StatusWanted);
        }
    }

    /// Publishes the status that was requested.
    pub(crate) fn publish_status(&self, text: String) {
        self.status.publish(text);
    }

    fn exposition(&self, request: &Request<'_>) -> Response {
        let Ok(text) = exposition::text(self) else {
            return Response::text(500, "the metrics cannot be rendered\n");
        };
        let (content_type, body) = if wants_openmetrics(request.accept) {
            (OPENMETRICS, text)
        } else {
            (PLAIN, plain::from_openmetrics(&text))
        };
        Response {
            status: 200,
            content_type,
            body,
        }
    }

    fn threads(&self, page: &str) -> Vec<Check> {
        let limit_ms = health::limit_ms(page);
        self.unanswered()
            .map(|(name, unanswered_ms)| {
                Check::thread(format!("thread:{name}"), unanswered_ms, limit_ms)
            })
            .collect()
    }

    /// Every database's and shard's thread, each with the age of its unanswered request, ms.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (String, u64)> {
        let now_ms = clock::mono_ms();
        let databases = self.served().into_iter().map(move |(name, figures)| {
            let unanswered_ms = figures.request().unanswered_ms(now_ms);
            (format!("db:{name}"), unanswered_ms)
        });
        let shards = self
            .shards()
            .iter()
            .enumerate()
            .map(move |(number, shard)| {
                let unanswered_ms = shard.figures.request().unanswered_ms(now_ms);
                (format!("shard{number}"), unanswered_ms)
            });
        databases.chain(shards)
    }

    /// Whether `/readyz` would pass.
    pub(super) fn is_ready(&self) -> bool {
        let mut checks = self.readiness();
        checks.extend(self.threads("readyz"));
        checks.iter().all(|check| check.failure.is_none())
    }

    /// The checks of `/readyz` that fail, except those of threads: the name of each and why.
    /// `member` and `replication` judge what a database's member and backup have told just now;
    /// what they have published is old, or absent while metrics are off.
    pub(crate) fn faults(
        &self,
        member: impl Fn(&str) -> Option<String>,
        replication: impl Fn(&str) -> Option<ReplicationStatus>,
    ) -> Vec<(String, String)> {
        let checks = self.checks(|name, _| member(name), |name, _| replication(name));
        let fault = |check: Check| Some((check.name, check.failure?));
        checks.into_iter().filter_map(fault).collect()
    }

    /// The checks of `/readyz` except those of threads.
    pub(super) fn readiness(&self) -> Vec<Check> {
        self.checks(
            |_, figures| figures.fault(),
            |_, figures| figures.latest().replication,
        )
    }

    fn checks(
        &self,
        member_fault: impl Fn(&str, &MemberFigures) -> Option<String>,
        replication: impl Fn(&str, &DatabaseFigures) -> Option<ReplicationStatus>,
    ) -> Vec<Check> {
        let check = |name: &str, is_well: bool, why: &str| Check {
            name: name.to_owned(),
            failure: (!is_well).then(|| why.to_owned()),
            note: None,
        };
        let stage = self.stage();
        let mut checks = vec![
            check(
                "databases",
                stage != Stage::Opening,
                "not all databases are open yet",
            ),
            check("shutdown", stage != Stage::Ending, "the server is exiting"),
        ];
        checks.extend(self.served().iter().map(|(name, figures)| {
            let storage = check(
                &format!("storage:{name}"),
                !figures.is_poisoned(),
                "a sync has failed and the file takes no more writes: repair the disk, then run \
                 ovsdb-server/compact; do not restart the server before that",
            );
            let note = figures.salvage_copy().map(|copy| {
                format!(
                    "the file ended in damage when it was opened; the contents before the damage are served, and the file was copied to {}",
                    copy.display()
                )
            });
            Check { note, ..storage }
        }));
        checks.extend(self.members().iter().map(|(name, figures)| Check {
            name: format!("cluster:{name}"),
            failure: member_fault(name, figures),
            note: figures.note(),
        }));
        checks.extend(self.relays().iter().map(|(name, relay)| Check {
            name: format!("relay:{name}"),
            failure: relay.figures().fault(),
            note: relay.figures().note(),
        }));
        checks.extend(self.served().iter().filter_map(|(name, figures)| {
            let standing = replication(name, figures)?;
            let why = match standing {
                ReplicationStatus::Connecting => {
                    "this backup has not received its source's contents yet"
                }
                ReplicationStatus::Failed => "the source cannot be replicated; see the log",
                // A backup that has lost its source still serves the contents that it has.
                ReplicationStatus::Lost | ReplicationStatus::Replicating => "",
            };
            Some(check(&format!("replication:{name}"), why.is_empty(), why))
        }));
        checks
    }
}

/// Whether a client prefers OpenMetrics to the older format, or accepts both equally.
fn wants_openmetrics(accept: &str) -> bool {
    let weight = |wanted: &str| {
        accept
            .split(',')
            .map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let is_it = parts
                    .next()
                    .is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
                let weight = parts
                    .filter_map(|part| part.strip_prefix("q="))
                    .find_map(|weight| weight.parse().ok())
                    .unwrap_or(1.0_f64);
                if is_it { weight } else { 0.0 }
            })
            .fold(0.0, f64::max)
    };
    let openmetrics = weight("application/openmetrics-text");
    openmetrics > 0.0 && openmetrics >= weight("text/plain")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::database::handle::lock;
    use crate::database::handle::tests::database;
    use crate::database::thread::DatabaseThread;
    use crate::metrics::database::DatabaseFigures;
    use crate::metrics::switch::Switched;

    #[test]
    fn each_client_gets_the_format_that_it_prefers() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                             application/openmetrics-text;version=0.0.1;q=0.4,\
                             text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert!(wants_openmetrics(of_prometheus));
        assert!(wants_openmetrics("application/openmetrics-text"));
        for accept in ["", "*/*", "text/plain", "application/openmetrics-text;q=0"] {
            assert!(!wants_openmetrics(accept), "{accept}");
        }
        let otherwise = "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.5";
        assert!(!wants_openmetrics(otherwise));
    }

    fn ask(metrics: &Metrics, path: &str) -> (u16, String) {
        let request = Request {
            path,
            query: "verbose",
            accept: "",
        };
        metrics.gather(&request);
        let response = metrics.answer(&request);
        (response.status, response.body)
    }

    fn wait_until(mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(
                Instant::now() < deadline,
                "the condition does not come true"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A thread is blocked and continues. The time passed to [`Check::thread`] simulates minutes.
    #[test]
    fn a_blocked_thread_fails_the_pages_until_it_answers_again() {
        let (mailbox, handle) = database();
        let driver = handle.driver().clone();
        let sender = Arc::new(mailbox.sender());
        let figures = Arc::new(DatabaseFigures::new(Arc::downgrade(&sender)));
        let metrics = Metrics::default();
        metrics.switch().set(true);
        lock(&driver).effects.figures = Switched::new(figures.clone(), metrics.switch());
        metrics.set_stage(Stage::Serving);
        metrics.add_database("D", figures.clone());
        let thread = DatabaseThread {
            driver: driver.clone(),
            mailbox,
            label: String::new(),
        };
        let thread = std::thread::spawn(move || thread.run());

        // An idle thread wakes for each request.
        for _ in 0..3 {
            metrics.tick();
            wait_until(|| metrics.is_gathered());
        }
        assert_eq!(ask(&metrics, "/livez").0, 200);
        assert_eq!(
            figures.latest().tables.len(),
            1,
            "it has published its report"
        );

        let held = lock(&driver);
        metrics.tick();
        let now_ms = clock::mono_ms();
        wait_until(|| figures.request().unanswered_ms(clock::mono_ms()) > 20);
        metrics.tick();
        let unanswered_ms = |later_ms| figures.request().unanswered_ms(now_ms + later_ms);
        assert!(
            unanswered_ms(50_000) >= 50_000,
            "a repeated request keeps its time"
        );
        let check = |later_ms, page| {
            let limit_ms = health::limit_ms(page);
            Check::thread("t".to_owned(), unanswered_ms(later_ms), limit_ms).failure
        };
        assert_eq!(check(5_000, "readyz"), None);
        assert!(check(11_000, "readyz").is_some());
        assert_eq!(check(59_000, "livez"), None);
        assert!(check(61_000, "livez").is_some());
        assert_eq!(
            ask(&metrics, "/readyz").0,
            200,
            "the limit is not reached yet"
        );

        drop(held);
        wait_until(|| metrics.is_gathered());
        assert_eq!(ask(&metrics, "/livez").0, 200);
        drop(handle);
        drop(sender);
        thread.join().unwrap();
        // A database without a thread is not asked.
        metrics.tick();
        assert!(metrics.is_gathered());
    }

    #[test]
    fn readiness_depends_on_the_stage_of_the_server() {
        let metrics = Metrics::default();
        let (status, text) = ask(&metrics, "/readyz");
        assert!(text.contains("[-]databases failed: not all databases are open yet\n"));
        assert_eq!((status, ask(&metrics, "/livez").0), (503, 200));
        metrics.set_stage(Stage::Serving);
        assert_eq!(ask(&metrics, "/readyz").0, 200);
        metrics.set_stage(Stage::Ending);
        let (status, text) = ask(&metrics, "/readyz");
        assert!(text.contains("[-]shutdown failed: the server is exiting\n"));
        assert_eq!((status, ask(&metrics, "/livez").0), (503, 200));
    }
}
