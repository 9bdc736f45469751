//! Which page shows what. Runs on the thread that serves HTTP.

use corvid_os::clock;
use corvid_os::http::{Request, Response, Site};

use super::call::Call;
use super::exposition;
use super::health::{self, Check};
use super::{Metrics, Stage, plain};
use crate::shard::ShardMessage;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Site for Metrics {
    fn gather(&self, request: &Request<'_>) {
        if matches!(request.path, "/metrics" | "/livez" | "/readyz") {
            self.call_all();
        }
    }

    fn is_gathered(&self) -> bool {
        let databases = self.served();
        let mut calls = databases
            .iter()
            .map(|(_, figures)| figures.call())
            .chain(self.shards().iter().map(|shard| shard.figures.call()));
        !calls.any(Call::is_made)
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
            "/" => Response::text(200, "/metrics\n/livez\n/readyz\n"),
            _ => Response::text(404, "there are /metrics, /livez and /readyz\n"),
        }
    }

    /// So it is known since when somebody does not come, however rarely probes ask.
    fn tick(&self) {
        self.call_all();
    }
}

impl Metrics {
    fn call_all(&self) {
        for (_, figures) in self.served() {
            figures.make_call();
        }
        for shard in self.shards() {
            // One message is enough until it is answered.
            if !shard.figures.call().is_made() {
                shard.figures.make_call();
                shard.handle.post(ShardMessage::Look);
            }
        }
    }

    fn exposition(&self, request: &Request<'_>) -> Response {
        let Ok(text) = exposition::text(self) else {
            return Response::text(500, "the figures cannot be written\n");
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

    /// Every thread that is called, and for how long it has not come, ms.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (String, u64)> {
        let now_ms = clock::mono_ms();
        let databases = self.served().into_iter().map(move |(name, figures)| {
            let unanswered_ms = figures.call().unanswered_ms(now_ms);
            (format!("db:{name}"), unanswered_ms)
        });
        let shards = self
            .shards()
            .iter()
            .enumerate()
            .map(move |(number, shard)| {
                let unanswered_ms = shard.figures.call().unanswered_ms(now_ms);
                (format!("shard{number}"), unanswered_ms)
            });
        databases.chain(shards)
    }

    /// Whether `/readyz` would say so.
    pub(super) fn is_ready(&self) -> bool {
        let mut checks = self.readiness();
        checks.extend(self.threads("readyz"));
        checks.iter().all(|check| check.failure.is_none())
    }

    /// What clients depend on beside threads.
    pub(super) fn readiness(&self) -> Vec<Check> {
        let check = |name: &str, is_well: bool, why: &str| Check {
            name: name.to_owned(),
            failure: (!is_well).then(|| why.to_owned()),
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
            check(
                &format!("storage:{name}"),
                !figures.is_poisoned(),
                "a sync has failed, nothing is written to the file any more: mend the disk, then run ovsdb-server/compact; \
                 do not restart before",
            )
        }));
        checks
    }
}

/// Whether a client asks for OpenMetrics at least as much as for the older format.
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
    use super::*;

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
}
