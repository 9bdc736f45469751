//! When a client that has no server says so.
//!
//! A program may wait for its client without a time limit, so the log has to tell it what keeps the
//! client. An answer of a server that does not fit is told at once, because it seldom changes by
//! itself. A server that cannot be reached, or that looks for its leader, is told after
//! [`ABSENCE_MS`]: servers restart. Each of the two is told once in an outage.

use corvid_session::Failure as ServerFailure;

use crate::failure::{Failure, Reason};

/// How long a server may be away before the log tells it, in milliseconds.
const ABSENCE_MS: u64 = 3_000;

/// The present outage.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// When it was seen first, in milliseconds; `None`: there is none.
    since_ms: Option<u64>,
    is_absence_told: bool,
    is_answer_told: bool,
}

impl Outage {
    /// The client has its contents up to date, or is not to have any.
    pub(crate) fn ends(&mut self) {
        *self = Outage::default();
    }

    /// Whether nothing is left to be told, so that nobody has to find the reason.
    pub(crate) fn is_told(&self) -> bool {
        self.is_absence_told && self.is_answer_told
    }

    /// The client has no server, for this reason as far as is known. Whether that is to be told
    /// now.
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

/// Whether a server has answered that it is the wrong one, rather than that it is not ready.
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
