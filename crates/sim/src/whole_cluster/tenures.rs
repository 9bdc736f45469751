//! Which session owned a lock for which commits: a lock is exclusive at one source, whichever servers are between it and the sessions.
//!
//! Invariant: of the transactions that assert a lock at one source, those of one tenure follow each other without one of another tenure
//! between them. Judged are those during which the tenure and the way to the source stayed the same, as their client knows it.

use std::collections::BTreeMap;

/// A life of a server that has a lock table of its own: a member, and its number of processes.
pub(super) type LockSource = (usize, u64);

/// The first and last commit of each tenure.
type Spans = BTreeMap<i64, (i64, i64)>;

/// A transaction that asserts a lock.
#[derive(Debug)]
pub(super) struct Asserting {
    pub(super) lock: &'static str,
    pub(super) source: Option<LockSource>,
    /// The newest tenure of its client by then, and whether it lasted.
    pub(super) tenure: (Option<i64>, bool),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    sent: BTreeMap<i64, Asserting>,
    /// By source and lock.
    spans: BTreeMap<(LockSource, &'static str), Spans>,
    /// Commits that were judged.
    pub(super) judged: u64,
}

impl Tenures {
    /// A client sends a transaction that asserts a lock.
    pub(super) fn sent(&mut self, number: i64, asserting: Asserting) {
        self.sent.insert(number, asserting);
    }

    /// The assertion of a transaction that is not acknowledged.
    pub(super) fn asserting(&self, number: i64) -> Option<&Asserting> {
        self.sent.get(&number)
    }

    /// A transaction has committed as the `seq`-th. `source` and `tenure` are those of its client now.
    ///
    /// # Errors
    /// Its client did not own the lock, or another session did.
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
