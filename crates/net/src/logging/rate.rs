//! Rate limits: a token bucket per call site, with a count of the dropped messages.
//!
//! A limit is a `static` next to the call that it limits. The bucket starts full, so a burst right
//! after the start passes.

use std::sync::{Mutex, PoisonError};

/// The cost of one message. A bucket gains `per_minute` units each millisecond, so a minute pays
/// for `per_minute` messages.
const MESSAGE_COST: u64 = 60_000;

/// A limit of `per_minute` messages a minute in the long run, and `burst` at once.
#[derive(Debug)]
pub struct RateLimit {
    per_minute: u32,
    burst: u32,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// `None` until the first message; means full.
    tokens: Option<u64>,
    filled_ms: u64,
    dropped: u32,
    first_dropped_ms: u64,
    last_dropped_ms: u64,
}

/// The decision for one message.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is dropped and counted.
    Drop,
    /// The message passes. The value describes the messages dropped since the last one that passed.
    Pass(Option<Dropped>),
}

/// The messages dropped since the last message that passed.
#[derive(Debug, PartialEq, Eq)]
pub struct Dropped {
    count: u32,
    first_s: u64,
    last_s: u64,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Dropped {} log messages in last {} seconds (most recently, {} seconds ago) due to excessive rate",
            self.count, self.first_s, self.last_s
        )
    }
}

impl RateLimit {
    /// A full bucket.
    #[must_use]
    pub const fn new(per_minute: u32, burst: u32) -> RateLimit {
        let bucket = Bucket {
            tokens: None,
            filled_ms: 0,
            dropped: 0,
            first_dropped_ms: 0,
            last_dropped_ms: 0,
        };
        RateLimit {
            per_minute,
            burst,
            bucket: Mutex::new(bucket),
        }
    }

    /// Pays for one message at this monotonic time.
    pub(super) fn admit(&self, now_ms: u64) -> Verdict {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let capacity = u64::from(self.burst) * MESSAGE_COST;
        let gained = now_ms
            .saturating_sub(bucket.filled_ms)
            .saturating_mul(u64::from(self.per_minute));
        let tokens = bucket.tokens.map_or(capacity, |tokens| {
            tokens.saturating_add(gained).min(capacity)
        });
        bucket.filled_ms = now_ms;
        if tokens < MESSAGE_COST {
            bucket.tokens = Some(tokens);
            if bucket.dropped == 0 {
                bucket.first_dropped_ms = now_ms;
            }
            bucket.last_dropped_ms = now_ms;
            bucket.dropped = bucket.dropped.saturating_add(1);
            return Verdict::Drop;
        }
        bucket.tokens = Some(tokens - MESSAGE_COST);
        let count = std::mem::take(&mut bucket.dropped);
        let seconds_since = |then: u64| now_ms.saturating_sub(then) / 1000;
        Verdict::Pass((count > 0).then(|| Dropped {
            count,
            first_s: seconds_since(bucket.first_dropped_ms),
            last_s: seconds_since(bucket.last_dropped_ms),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_applies_and_dropped_messages_are_counted() {
        let limit = RateLimit::new(5, 2);
        let start = 1_000_000;
        assert_eq!(limit.admit(start), Verdict::Pass(None));
        assert_eq!(limit.admit(start), Verdict::Pass(None));
        assert_eq!(limit.admit(start + 1000), Verdict::Drop);
        assert_eq!(limit.admit(start + 5000), Verdict::Drop);
        // Five a minute means one every twelve seconds.
        let Verdict::Pass(Some(dropped)) = limit.admit(start + 12_000) else {
            panic!("must pass")
        };
        assert_eq!(
            dropped.to_string(),
            "Dropped 2 log messages in last 11 seconds (most recently, 7 seconds ago) due to excessive rate"
        );
        assert_eq!(limit.admit(start + 12_001), Verdict::Drop);
    }
}
