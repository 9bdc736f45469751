//! Log messages of members. Messages of repeated kinds are rate-limited as in the reference: five
//! at once, then one a minute.
//!
//! A limit applies to the whole process, however many clustered databases it serves. Called by the
//! thread of a member.

use std::fmt::Arguments;

use corvid_consensus::member::Repeated;
use corvid_net::logging::{self, Module, RateLimit};
use corvid_rpc::Level;

use crate::remotes::connection::log_level;

/// Logs a message, unless its kind has exceeded its rate limit.
pub(super) fn log(level: Level, kind: Option<Repeated>, text: &str) {
    let line = format_args!("{text}");
    match kind {
        None => logging::log(Module::Raft, log_level(level), line),
        Some(kind) => log_limited(limit(kind), level, line),
    }
}

fn log_limited(limit: &RateLimit, level: Level, line: Arguments<'_>) {
    logging::log_limited(limit, Module::Raft, log_level(level), line);
}

/// The rate limit of a kind.
fn limit(kind: Repeated) -> &'static RateLimit {
    static TIMEOUT: RateLimit = RateLimit::new(1, 5);
    static ELECTION: RateLimit = RateLimit::new(1, 5);
    static ELECTED: RateLimit = RateLimit::new(1, 5);
    static IGNORED_VOTE: RateLimit = RateLimit::new(1, 5);
    static LOWER_TERM: RateLimit = RateLimit::new(1, 5);
    static LATE_PREVOTE: RateLimit = RateLimit::new(1, 5);
    static SECOND_LEADER: RateLimit = RateLimit::new(1, 5);
    static STRANGER: RateLimit = RateLimit::new(1, 5);
    static OTHER_HISTORY: RateLimit = RateLimit::new(1, 5);
    static UNSENT: RateLimit = RateLimit::new(1, 5);
    static JOINER: RateLimit = RateLimit::new(1, 5);
    static UNTIMELY: RateLimit = RateLimit::new(1, 5);
    match kind {
        Repeated::Timeout => &TIMEOUT,
        Repeated::Election => &ELECTION,
        Repeated::Elected => &ELECTED,
        Repeated::IgnoredVote => &IGNORED_VOTE,
        Repeated::LowerTerm => &LOWER_TERM,
        Repeated::LatePreVote => &LATE_PREVOTE,
        Repeated::SecondLeader => &SECOND_LEADER,
        Repeated::Stranger => &STRANGER,
        Repeated::OtherHistory => &OTHER_HISTORY,
        Repeated::Unsent => &UNSENT,
        Repeated::Joiner => &JOINER,
        Repeated::Untimely => &UNTIMELY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_limit_of_its_own() {
        let (first, second) = (limit(Repeated::Stranger), limit(Repeated::LowerTerm));
        assert!(std::ptr::eq(first, limit(Repeated::Stranger)));
        assert!(!std::ptr::eq(first, second));
        let passed =
            (0..20).filter(|_| logging::admit(first, Module::Raft) != logging::Verdict::Drop);
        assert_eq!(passed.count(), 5);
        assert_eq!(
            logging::admit(second, Module::Raft),
            logging::Verdict::Pass(None)
        );
    }
}
