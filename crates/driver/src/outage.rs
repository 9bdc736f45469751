//! Decides when to log that a client has no usable server.
//!
//! A program may wait for its client without a time limit, so the log has to name the obstacle. An
//! answer from an unsuitable server is logged at once, because it seldom changes by itself. A
//! server that is unreachable or is waiting for its leader is logged after [`ABSENCE_MS`], because
//! servers restart. Each kind is logged once per outage.

use corvid_session::Failure as ServerFailure;

use crate::failure::{Failure, Reason};

/// How long a server may be unavailable before the client logs it, in milliseconds.
const ABSENCE_MS: u64 = 3_000;

/// The current outage, if any.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// When the outage was first seen, in milliseconds; `None` without an outage.
    since_ms: Option<u64>,
    is_absence_told: bool,
    is_answer_told: bool,
}

impl Outage {
    /// Ends the outage: the contents are up to date, or the client has no remotes.
    pub(crate) fn ends(&mut self) {
        *self = Outage::default();
    }

    /// Whether both kinds of failure have been logged, so the caller need not look for the reason.
    pub(crate) fn is_told(&self) -> bool {
        self.is_absence_told && self.is_answer_told
    }

    /// Records that the client still has no server, with the reason as far as known. Returns
    /// whether to log it now.
    pub(crate) fn goes_on(&mut self, now_ms: u64, failure: Option<&Failure>) -> bool {
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        let Some(failure) = failure else { return false };
        let (is_told, is_due) = if is_answer(&failure.reason) {
            (&mut self.is_answer_told, true)
        } else {
            let is_due = now_ms.saturating_sub(since_ms) >= ABSENCE_MS;
            (&mut self.is_absence_told, is_due)
        };
        let is_news = is_due && !*is_told;
        *is_told |= is_due;
        is_news
    }
}

/// Whether the reason is the answer of a wrong server, as opposed to one that is not ready yet.
fn is_answer(reason: &Reason) -> bool {
    match reason {
        Reason::Server(failure) => !matches!(
            failure,
            ServerFailure::NoSchema
                | ServerFailure::Disconnected
                | ServerFailure::NotLeader
                | ServerFailure::Stale
        ),
        Reason::Tls(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(reason: Reason) -> Failure {
        Failure {
            remote: "unix:s".to_owned(),
            reason,
        }
    }

    #[test]
    fn an_absence_is_told_late_and_an_answer_at_once_each_once() {
        let absent = failure(Reason::NoAnswer);
        let follower = failure(Reason::Server(ServerFailure::NotLeader));
        let wrong = failure(Reason::Server(ServerFailure::NoSuchDatabase));
        let mut outage = Outage::default();
        assert!(!outage.goes_on(1000, None));
        assert!(!outage.goes_on(1000 + ABSENCE_MS, None));
        assert!(outage.goes_on(1000 + ABSENCE_MS, Some(&absent)));
        assert!(!outage.goes_on(1000 + ABSENCE_MS, Some(&follower)));
        assert!(outage.goes_on(1000 + ABSENCE_MS, Some(&wrong)));
        assert!(!outage.goes_on(9000, Some(&wrong)));
        assert!(!outage.goes_on(9000, Some(&absent)));
        outage.ends();
        assert!(!outage.goes_on(9000, Some(&follower)));
        assert!(outage.goes_on(9000, Some(&wrong)));
        assert!(outage.goes_on(9000 + ABSENCE_MS, Some(&follower)));
    }
}
