//! Tracks which session owned a lock at which commits. A lock is exclusive at one source, however
//! many servers are between the source and the sessions.
//!
//! Invariant: among the transactions that assert a lock at one source, those of one tenure are
//! consecutive: no transaction of another tenure is between them. A transaction is judged if, as
//! far as its client knows, the tenure and the path to the source stayed the same from request to
//! reply.

use std::collections::BTreeMap;

/// A life of a server with a lock table of its own: the member, and the number of its process.
pub(super) type LockSource = (usize, u64);

/// The first and last commit of each tenure.
type Spans = BTreeMap<i64, (i64, i64)>;

/// A transaction that asserts a lock.
#[derive(Debug)]
pub(super) struct Asserting {
    pub(super) lock: &'static str,
    pub(super) source: Option<LockSource>,
    /// The client's newest tenure when it sent the transaction, and whether that tenure lasted.
    pub(super) tenure: (Option<i64>, bool),
}

/// The assertions in flight, and the tenures that commits have shown.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    sent: BTreeMap<i64, Asserting>,
    /// Spans by source and lock.
    spans: BTreeMap<(LockSource, &'static str), Spans>,
    /// Number of judged commits.
    pub(super) judged: u64,
}

impl Tenures {
    /// Notes that a client sends a transaction that asserts a lock.
    pub(super) fn sent(&mut self, number: i64, asserting: Asserting) {
        self.sent.insert(number, asserting);
    }

    /// Returns the assertion of a transaction that is not acknowledged.
    pub(super) fn asserting(&self, number: i64) -> Option<&Asserting> {
        self.sent.get(&number)
    }

    /// Judges a transaction that has committed as the `seq`-th. `source` and `tenure` are those of
    /// its client at present.
    ///
    /// # Errors
    /// The client did not own the lock, or another session owned it too.
    pub(super) fn acknowledged(
        &mut self,
        number: i64,
        seq: i64,
        source: Option<LockSource>,
        tenure: (Option<i64>, bool),
    ) -> Result<(), String> {
        let Some(sent) = self.sent.remove(&number) else {
            return Ok(());
        };
        let lock = sent.lock;
        if !sent.tenure.1 && sent.tenure.0 == tenure.0 {
            return Err(format!(
                "transaction {number} is committed without the lock {lock} that it asserts"
            ));
        }
        let (Some(of), Some(now), (Some(tenure), true)) = (sent.source, source, tenure) else {
            return Ok(());
        };
        if sent.tenure != (Some(tenure), true) || of != now {
            return Ok(());
        }
        self.judged += 1;
        let spans = self.spans.entry((of, lock)).or_default();
        let span = spans.entry(tenure).or_insert((seq, seq));
        *span = (span.0.min(seq), span.1.max(seq));
        let (from, to) = *span;
        for (other, (first, last)) in spans {
            if *other != tenure && from <= *last && *first <= to {
                return Err(format!(
                    "transaction {number} is committed under tenure {tenure} of {lock}, which overlaps with tenure {other}"
                ));
            }
        }
        Ok(())
    }
}
