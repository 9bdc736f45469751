//! The outcomes of transactions, as their clients learned them, and the content that the database
//! must therefore have.
//!
//! Every transaction adds its number to `Head.txns`, so contents show which transactions are in
//! them.

use std::collections::{BTreeMap, BTreeSet};

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The transaction is in the database.
    Committed,
    /// The transaction is not in the database, and never will be.
    Refused,
    /// The outcome is unknown.
    Unknown,
}

/// An event of a transaction, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Sent(i64),
    /// The end of a transaction, with its place in the order of commits if it was committed.
    Ended(i64, End, Option<i64>),
}

/// All transactions of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The end of each transaction; `None` while it is pending.
    ends: BTreeMap<i64, Option<End>>,
    /// Transactions that may be lost although clients got a success, because a server that lacked
    /// them took over.
    lost: BTreeSet<i64>,
    last: i64,
    /// The events since the last call of [`Ledger::news`].
    news: Vec<News>,
}

impl Ledger {
    /// Returns a new transaction number.
    pub(super) fn begin(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    pub(super) fn sent(&mut self, number: i64) {
        self.ends.insert(number, None);
        self.news.push(News::Sent(number));
    }

    /// Takes the events since the last call.
    pub(super) fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Notes the outcome of a transaction, and its place in the order of commits.
    ///
    /// # Errors
    /// The transaction already had an outcome.
    pub(super) fn ended(
        &mut self,
        number: i64,
        end: End,
        place: Option<i64>,
    ) -> Result<(), String> {
        self.news.push(News::Ended(number, end, place));
        match self.ends.insert(number, Some(end)) {
            Some(None) | None => Ok(()),
            Some(Some(before)) => Err(format!("transaction {number}: {before:?}, then {end:?}")),
        }
    }

    /// Notes that another server takes over, with these transactions.
    pub(super) fn taken_over(&mut self, held: &BTreeSet<i64>) {
        let missing = (1..=self.last).filter(|number| !held.contains(number));
        self.lost.extend(missing);
    }

    /// Whether a server that took over lacked the transaction.
    pub(super) fn is_lost(&self, number: i64) -> bool {
        self.lost.contains(&number)
    }

    /// Whether the client knows that the transaction is in the database.
    pub(super) fn is_committed(&self, number: i64) -> bool {
        self.ends.get(&number) == Some(&Some(End::Committed))
    }

    /// Number of transactions with this outcome.
    pub(super) fn count(&self, end: End) -> u64 {
        self.ends
            .values()
            .filter(|known| **known == Some(end))
            .count() as u64
    }

    /// Checks the transactions of a database at a time when no transaction is pending.
    ///
    /// # Errors
    /// The database has a transaction that it must not have, or lacks one.
    pub(super) fn check(&self, held: &BTreeSet<i64>) -> Result<(), String> {
        for (number, end) in &self.ends {
            match end {
                None => return Err(format!("transaction {number} never ended")),
                Some(End::Committed) if !held.contains(number) && !self.lost.contains(number) => {
                    return Err(format!(
                        "transaction {number} was committed and is not there"
                    ));
                }
                Some(End::Refused) if held.contains(number) => {
                    return Err(format!("transaction {number} was refused and is there"));
                }
                Some(_) => {}
            }
        }
        let strange = held.iter().find(|number| !self.ends.contains_key(number));
        strange.map_or(Ok(()), |number| {
            Err(format!("transaction {number} was never sent"))
        })
    }
}
