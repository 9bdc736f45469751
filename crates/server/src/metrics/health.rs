//! The pages for probes: whether to restart the server (`/livez`), whether to send clients to it
//! (`/readyz`), and why.
//!
//! When `/livez` fails, a supervisor restarts the server, which then loads everything again. That
//! page therefore fails only for a fault that only a restart repairs: a thread that has not
//! answered for a minute ([`STUCK_MS`]). A disk error makes the server not ready instead, because a
//! restarted server would trust the disk again. A full disk does neither: reads and monitors
//! continue, and only a client's next write can show that there is space again.
//!
//! Pure: checks come in, a page goes out. The wording is that of the health pages of etcd and
//! Kubernetes.

use std::fmt::Write;

use corvid_json::shown::Shown;

use crate::http::{Request, Response};

use crate::liveness::STUCK_MS;

/// A thread that has not answered for this long makes the server not ready, ms.
pub(super) const BUSY_MS: u64 = 10_000;

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// The name for `?exclude`: `KIND` or `KIND:NAME`.
    pub(super) name: String,
    /// Why the check fails; `None`: it passes.
    pub(super) failure: Option<String>,
    /// The state in words, shown while the check passes.
    pub(super) note: Option<String>,
}

impl Check {
    /// The check of a thread: it fails if a request has been unanswered for longer than `limit_ms`.
    pub(super) fn thread(name: String, unanswered_ms: u64, limit_ms: u64) -> Check {
        let failure = (unanswered_ms > limit_ms).then(|| {
            let seconds = unanswered_ms / 1000;
            format!("has not answered a liveness check for {seconds} s")
        });
        Check {
            name,
            failure,
            note: None,
        }
    }

    /// Whether `?exclude=NAME` names this check, or its kind.
    fn is_meant_by(&self, excluded: &str) -> bool {
        let kind = self.name.split_once(':').map_or("", |(kind, _)| kind);
        self.name == excluded || kind == excluded
    }
}

/// How long a request may stay unanswered, for each page, ms.
pub(super) fn limit_ms(page: &str) -> u64 {
    match page {
        "livez" => STUCK_MS,
        _ => BUSY_MS,
    }
}

/// Renders the page. `?verbose` lists every check even if all pass; `?exclude=NAME` leaves out one
/// check, or all of a kind, and may be repeated.
pub(super) fn page(name: &str, checks: &[Check], request: &Request<'_>) -> Response {
    let is_verbose = request.options().any(|(option, _)| option == "verbose");
    let excluded: Vec<&str> = request
        .options()
        .filter(|(option, _)| *option == "exclude")
        .map(|(_, value)| value)
        .collect();
    let mut text = String::new();
    let mut has_failed = false;
    for check in checks {
        // Each check fits on one line, whatever the names of files and servers contain.
        let name = Shown(&check.name);
        // Writing to a string cannot fail; the same holds below.
        let _ = match &check.failure {
            _ if excluded.iter().any(|excluded| check.is_meant_by(excluded)) => {
                writeln!(text, "[+]{name} excluded: ok")
            }
            None => match &check.note {
                None => writeln!(text, "[+]{name} ok"),
                Some(note) => writeln!(text, "[+]{name} ok: {}", Shown(note)),
            },
            Some(why) => {
                has_failed = true;
                writeln!(text, "[-]{name} failed: {}", Shown(why))
            }
        };
    }
    for excluded in excluded {
        if !checks.iter().any(|check| check.is_meant_by(excluded)) {
            let _ = writeln!(
                text,
                "warn: some checks cannot be excluded: no match for {excluded:?}"
            );
        }
    }
    match (has_failed, is_verbose) {
        (true, _) => Response::text(503, format!("{text}{name} check failed\n")),
        (false, true) => Response::text(200, format!("{text}{name} check passed\n")),
        (false, false) => Response::text(200, "ok\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> [Check; 3] {
        [
            Check {
                name: "databases".to_owned(),
                failure: None,
                note: None,
            },
            Check {
                name: "storage:A".to_owned(),
                failure: Some("a sync has failed".to_owned()),
                note: None,
            },
            Check::thread("thread:db:A".to_owned(), 10_001, BUSY_MS),
        ]
    }

    fn asked(query: &str, checks: &[Check]) -> (u16, String) {
        let request = Request {
            query,
            ..Request::default()
        };
        let response = page("readyz", checks, &request);
        (response.status, response.body)
    }

    #[test]
    fn a_failed_check_is_listed_with_its_reason() {
        let text = "[+]databases ok\n\
                    [-]storage:A failed: a sync has failed\n\
                    [-]thread:db:A failed: has not answered a liveness check for 10 s\n\
                    readyz check failed\n";
        assert_eq!(asked("", &checks()), (503, text.to_owned()));
    }

    #[test]
    fn passed_checks_are_listed_only_with_verbose() {
        let well = &checks()[..1];
        assert_eq!(asked("", well), (200, "ok\n".to_owned()));
        let listed = "[+]databases ok\nreadyz check passed\n";
        assert_eq!(asked("verbose", well), (200, listed.to_owned()));
    }

    #[test]
    fn checks_are_excluded_by_name_or_by_kind() {
        let (status, text) = asked(
            "exclude=storage&exclude=thread:db:A&exclude=x&verbose",
            &checks(),
        );
        assert_eq!(status, 200);
        let listed = "[+]databases ok\n\
                      [+]storage:A excluded: ok\n\
                      [+]thread:db:A excluded: ok\n\
                      warn: some checks cannot be excluded: no match for \"x\"\n\
                      readyz check passed\n";
        assert_eq!(text, listed);
        assert_eq!(asked("exclude=storage:A", &checks()).0, 503);
    }

    #[test]
    fn a_thread_fails_after_the_limit_of_the_page() {
        let is_well = |ms, limit| Check::thread("t".to_owned(), ms, limit).failure.is_none();
        assert!(is_well(STUCK_MS, limit_ms("livez")) && !is_well(STUCK_MS + 1, limit_ms("livez")));
        assert!(is_well(BUSY_MS, limit_ms("readyz")) && !is_well(BUSY_MS + 1, limit_ms("readyz")));
    }
}
