//! The transactions of a run in their order, and which of them may, must and must not be in the
//! database after a restart.
//!
//! The order is the order of the records that the database asks to be written. The content shows
//! which transactions are in it. The rules:
//!
//! - No transaction that was not sent is in the content.
//! - No transaction that was refused, or lost before, is in the content.
//! - Every acknowledged transaction is in the content, except that a power loss may remove ordinary
//!   commits from the end.
//! - The content equals the effect of its transactions, in their order.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;

use super::client::Outcomes;
use super::workload::{Content, Txn};
use crate::world::disk::{Crash, Failures};

/// The outcome of a transaction, as its client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// No reply yet.
    Open,
    /// Committed, with this number in the order of commits.
    Acknowledged(i64),
    /// Refused because of its content, or canceled.
    Refused,
    /// Could not be stored. `excuse`: whether the disk may hold the transaction nevertheless, after
    /// a power loss and after a kill.
    Failed { excuse: [bool; 2] },
    /// The client can no longer learn the outcome.
    Unknown,
    /// A restart has shown that the transaction is lost.
    Lost,
}

#[derive(Debug)]
struct Known {
    txn: Txn,
    fate: Fate,
    /// No crash may lose the transaction.
    is_safe: bool,
    /// The number of disk failures when the transaction was sent.
    failures: Failures,
}

/// The circumstances under which a content is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// The server is alive and idle.
    Alive,
    /// The server was killed, and has read its file.
    Killed,
    /// The machine lost power, and the server has read its file.
    PowerLost,
    /// As before, and the file has rotted.
    Rotten,
}

/// All transactions of a run.
#[derive(Debug, Default)]
pub(super) struct History {
    txns: BTreeMap<i64, Known>,
    /// The transactions that were in the database when the server started, in order.
    base: Vec<i64>,
    /// The last position of each transaction that the server has executed since its start.
    positions: BTreeMap<i64, u64>,
    /// Some commits were undone; which ones is unknown.
    has_failed: bool,
    /// Transactions that a restart has shown to be lost, in order, while the medium may still hold
    /// them: their removal was not synced when the process was killed.
    hidden: Vec<i64>,
}

/// A history and the disk failures so far, for the outcomes that are noted in it.
pub(super) struct Judge<'h> {
    pub(super) history: &'h mut History,
    pub(super) failures: Failures,
}

impl Outcomes for Judge<'_> {
    fn acknowledged(&mut self, number: i64, seq: i64) -> Result<(), String> {
        self.history.acknowledged(number, seq)
    }

    fn failed(&mut self, number: i64, error: &Value) -> Result<(), String> {
        match error.as_str() {
            Some("I/O error") => self.history.failed(number, self.failures),
            _ => self.history.refused(number),
        }
    }

    fn is_void(&self, number: i64) -> bool {
        self.history.is_void(number)
    }
}

impl History {
    /// Notes a transaction that is sent.
    pub(super) fn sent(&mut self, txn: Txn, failures: Failures) {
        let known = Known {
            fate: Fate::Open,
            is_safe: false,
            failures,
            txn,
        };
        self.txns.insert(known.txn.number, known);
    }

    /// Notes a record that the database asks to be written.
    ///
    /// # Errors
    /// The record belongs to no transaction.
    pub(super) fn recorded(&mut self, position: u64, record: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(record);
        let (_, rest) = text
            .split_once(r#""txns":"#)
            .ok_or_else(|| format!("a record without a transaction: {text}"))?;
        let digits = rest.split(|other: char| !other.is_ascii_digit()).next();
        let number: i64 = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| format!("a record of several transactions: {text}"))?;
        self.positions.insert(number, position);
        Ok(())
    }

    /// Notes a client's reply: its transaction committed as the `seq`-th.
    ///
    /// # Errors
    /// An earlier reply said something else.
    pub(super) fn acknowledged(&mut self, number: i64, seq: i64) -> Result<(), String> {
        let known = self.open(number)?;
        known.fate = Fate::Acknowledged(seq);
        known.is_safe = known.txn.is_durable;
        Ok(())
    }

    /// Notes a client's reply: its transaction changes nothing.
    ///
    /// # Errors
    /// An earlier reply said something else.
    pub(super) fn refused(&mut self, number: i64) -> Result<(), String> {
        self.open(number)?.fate = Fate::Refused;
        Ok(())
    }

    /// Notes a client's reply: its transaction could not be stored.
    ///
    /// # Errors
    /// An earlier reply said something else.
    pub(super) fn failed(&mut self, number: i64, now: Failures) -> Result<(), String> {
        self.has_failed = true;
        let known = self.open(number)?;
        let then = known.failures;
        // A failing disk may hold bytes that could not be cut off.
        let no_cut = now.cuts != then.cuts;
        let no_sync = now.syncs != then.syncs || now.directory_syncs != then.directory_syncs;
        known.fate = Fate::Failed {
            excuse: [no_cut || no_sync, no_cut],
        };
        Ok(())
    }

    /// Notes that the client of a transaction has disconnected.
    pub(super) fn orphaned(&mut self, number: i64) {
        if let Ok(known) = self.open(number) {
            known.fate = Fate::Unknown;
        }
    }

    /// Notes that some commits were undone.
    pub(super) fn record_failure(&mut self) {
        self.has_failed = true;
    }

    fn open(&mut self, number: i64) -> Result<&mut Known, String> {
        let known = self.txns.get_mut(&number);
        known
            .filter(|known| known.fate == Fate::Open)
            .ok_or_else(|| format!("transaction {number} is answered and was not open"))
    }

    /// Whether no client may ever see this transaction.
    pub(super) fn is_void(&self, number: i64) -> bool {
        let fate = self.txns.get(&number).map(|known| &known.fate);
        matches!(
            fate,
            None | Some(Fate::Refused | Fate::Failed { .. } | Fate::Lost)
        )
    }

    /// Checks a content against the rules.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(super) fn check(&self, content: &Content, look: Observation) -> Result<Vec<i64>, String> {
        let order = self.order();
        let invented: Vec<i64> = content
            .txns
            .iter()
            .copied()
            .filter(|number| !order.contains(number))
            .collect();
        if !invented.is_empty() {
            let fates: Vec<_> = invented
                .iter()
                .map(|number| self.txns.get(number).map(|known| &known.fate))
                .collect();
            return Err(format!(
                "transactions {invented:?} are there and must not be: {fates:?}"
            ));
        }
        let mut missing = None;
        for number in &order {
            let known = &self.txns[number];
            if content.txns.contains(number) {
                self.check_present(known, missing, look)?;
            } else if self.check_absent(known, look)? {
                missing.get_or_insert(*number);
            }
        }
        let kept: Vec<i64> = order
            .into_iter()
            .filter(|number| content.txns.contains(number))
            .collect();
        self.check_content(content, &kept)?;
        Ok(kept)
    }

    /// Notes that power was lost before any sync since the process was killed. Transactions that
    /// the kill has hidden may be back, except those undone before.
    pub(super) fn unhide(&mut self, content: &Content) {
        let mut back = std::mem::take(&mut self.hidden);
        back.retain(|number| content.txns.contains(number));
        for number in &back {
            if let Some(known) = self.txns.get_mut(number) {
                known.fate = Fate::Unknown;
            }
        }
        if !back.is_empty() {
            self.base.extend(back);
            self.positions.clear();
        }
    }

    /// Returns all transactions that may be in the database, in order.
    fn order(&self) -> Vec<i64> {
        let mut executed: Vec<(u64, i64)> = self
            .positions
            .iter()
            .map(|(number, position)| (*position, *number))
            .collect();
        executed.sort_unstable();
        let executed = executed.into_iter().map(|(_, number)| number);
        self.base.iter().copied().chain(executed).collect()
    }

    fn check_present(
        &self,
        known: &Known,
        missing: Option<i64>,
        look: Observation,
    ) -> Result<(), String> {
        let number = known.txn.number;
        if let Some(missing) = missing {
            return Err(format!(
                "transaction {number} is there, and {missing} before it is not"
            ));
        }
        let may_be = match &known.fate {
            Fate::Open | Fate::Acknowledged(_) | Fate::Unknown => true,
            Fate::Refused | Fate::Lost => false,
            Fate::Failed { excuse } => match look {
                Observation::Alive => false,
                Observation::Killed => excuse[1],
                Observation::PowerLost | Observation::Rotten => excuse[0],
            },
        };
        if may_be {
            Ok(())
        } else {
            Err(format!(
                "transaction {number} is there although it was answered with an error: {:?}",
                known.fate
            ))
        }
    }

    /// Whether a transaction is missing that later ones depend on.
    fn check_absent(&self, known: &Known, look: Observation) -> Result<bool, String> {
        let number = known.txn.number;
        let is_acknowledged = matches!(known.fate, Fate::Acknowledged(_));
        let must_be = match look {
            Observation::Alive | Observation::Killed => is_acknowledged || known.is_safe,
            Observation::PowerLost => known.is_safe,
            Observation::Rotten => false,
        };
        if must_be {
            return Err(format!(
                "transaction {number} is lost: {:?}, durable: {}",
                known.fate, known.is_safe
            ));
        }
        let was_undone = match &known.fate {
            Fate::Refused | Fate::Failed { .. } => true,
            Fate::Open | Fate::Unknown => self.has_failed,
            Fate::Acknowledged(_) | Fate::Lost => false,
        };
        Ok(!was_undone)
    }

    fn check_content(&self, content: &Content, kept: &[i64]) -> Result<(), String> {
        let mut expected = Content::first();
        for (place, number) in kept.iter().enumerate() {
            let known = &self.txns[number];
            expected.apply(&known.txn)?;
            let seq = place as i64 + 1;
            if let Fate::Acknowledged(reported) = known.fate
                && reported != seq
            {
                return Err(format!(
                    "transaction {number} is number {seq} but its reply said {reported}"
                ));
            }
        }
        if *content != expected {
            return Err(format!(
                "the content is not what its transactions make of it (is, should be): {}",
                content.difference(&expected)
            ));
        }
        Ok(())
    }

    /// Notes that the server has started with these transactions. All others are lost. After a
    /// power loss, exactly these are on the medium.
    pub(super) fn restarted(&mut self, kept: Vec<i64>, crash: Crash) {
        let all: BTreeSet<i64> = kept.iter().copied().collect();
        let is_hidden = |number: &i64| !all.contains(number);
        match crash {
            Crash::PowerLoss => self.hidden.clear(),
            Crash::Kill if self.positions.is_empty() => {}
            Crash::Kill => self.hidden = self.order().into_iter().filter(is_hidden).collect(),
        }
        for (number, known) in &mut self.txns {
            if !all.contains(number) {
                if !matches!(known.fate, Fate::Refused) {
                    known.fate = Fate::Lost;
                }
                known.is_safe = false;
            } else {
                // The transaction is in the database, whether or not its client got a reply.
                if !matches!(known.fate, Fate::Acknowledged(_)) {
                    known.fate = Fate::Unknown;
                }
                known.is_safe |= crash == Crash::PowerLoss;
            }
        }
        self.base = kept;
        self.positions.clear();
        self.has_failed = false;
    }
}
