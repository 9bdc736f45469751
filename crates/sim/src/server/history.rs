//! What was done to the database in which order, and what of it may, must and must not be there after a restart.
//!
//! The order is known from the records that the database asks to be written; which of them are in a content, the content tells. The rules:
//! nothing that was not asked for; nothing that was refused or lost before; what was acknowledged is there, but for ordinary commits
//! after a power loss, and those go only from the end; and the content is what those transactions make of it, in their order.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::{Crash, Failures};
use super::workload::{Content, Txn};

/// What its client knows of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It has not been answered.
    Open,
    /// It committed; it was the so manieth.
    Acknowledged(i64),
    /// It was refused for what it is, or canceled.
    Refused,
    /// It could not be stored. Whether the disk may nevertheless hold it: after a power loss, and after a kill.
    Failed { excuse: [bool; 2] },
    /// Its client will never know.
    Unknown,
    /// A restart has shown that it is gone.
    Lost,
}

#[derive(Debug)]
struct Known {
    txn: Txn,
    fate: Fate,
    /// No crash may lose it.
    is_safe: bool,
    /// What had failed when it was sent.
    failures: Failures,
}

/// Under which circumstances a content is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The server is alive and idle.
    Alive,
    /// It was killed, and has read its file.
    Killed,
    /// Power was lost, and it has read its file.
    PowerLost,
    /// As before, and its file has rotted.
    Rotten,
}

/// All transactions of a run.
#[derive(Debug, Default)]
pub(super) struct History {
    txns: BTreeMap<i64, Known>,
    /// Those that were there when the server started, in order.
    base: Vec<i64>,
    /// The last position of each that it has executed since.
    positions: BTreeMap<i64, u64>,
    /// Some were undone, whoever knows which.
    has_failed: bool,
    /// Those that a restart has shown to be gone, in order, while the medium may still hold them: their removal was not forced to disk when
    /// the process was killed.
    hidden: Vec<i64>,
}

impl History {
    /// A transaction is sent.
    pub(super) fn sent(&mut self, txn: Txn, failures: Failures) {
        let known = Known {
            fate: Fate::Open,
            is_safe: false,
            failures,
            txn,
        };
        self.txns.insert(known.txn.number, known);
    }

    /// The database has asked for a record to be written.
    ///
    /// # Errors
    /// It is of no transaction.
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

    /// A client was told that its transaction committed as the `seq`-th.
    ///
    /// # Errors
    /// It was told something else before.
    pub(super) fn acknowledged(&mut self, number: i64, seq: i64) -> Result<(), String> {
        let known = self.open(number)?;
        known.fate = Fate::Acknowledged(seq);
        known.is_safe = known.txn.is_durable;
        Ok(())
    }

    /// A client was told that its transaction changes nothing.
    ///
    /// # Errors
    /// It was told something else before.
    pub(super) fn refused(&mut self, number: i64) -> Result<(), String> {
        self.open(number)?.fate = Fate::Refused;
        Ok(())
    }

    /// A client was told that its transaction could not be stored.
    ///
    /// # Errors
    /// It was told something else before.
    pub(super) fn failed(&mut self, number: i64, now: Failures) -> Result<(), String> {
        self.has_failed = true;
        let known = self.open(number)?;
        let then = known.failures;
        // Nobody can take back what a disk that does not do what it is told may hold.
        let no_cut = now.cuts != then.cuts;
        let no_sync = now.syncs != then.syncs || now.directory_syncs != then.directory_syncs;
        known.fate = Fate::Failed {
            excuse: [no_cut || no_sync, no_cut],
        };
        Ok(())
    }

    /// Whoever sent it is gone.
    pub(super) fn orphaned(&mut self, number: i64) {
        if let Ok(known) = self.open(number) {
            known.fate = Fate::Unknown;
        }
    }

    /// Some commits were undone.
    pub(super) fn note_failure(&mut self) {
        self.has_failed = true;
    }

    fn open(&mut self, number: i64) -> Result<&mut Known, String> {
        let known = self.txns.get_mut(&number);
        known
            .filter(|known| known.fate == Fate::Open)
            .ok_or_else(|| format!("transaction {number} is answered and was not open"))
    }

    /// Whether nobody may ever see this transaction.
    pub(super) fn is_void(&self, number: i64) -> bool {
        let fate = self.txns.get(&number).map(|known| &known.fate);
        matches!(
            fate,
            None | Some(Fate::Refused | Fate::Failed { .. } | Fate::Lost)
        )
    }

    /// Compares a content with what must be.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(super) fn check(&self, content: &Content, look: Look) -> Result<Vec<i64>, String> {
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

    /// Power was lost before anything was forced to disk since the process was killed: what its end had hidden may be back, but for what
    /// was undone before.
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

    /// All that may be in the database, in order.
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

    fn check_present(&self, known: &Known, missing: Option<i64>, look: Look) -> Result<(), String> {
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
                Look::Alive => false,
                Look::Killed => excuse[1],
                Look::PowerLost | Look::Rotten => excuse[0],
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

    /// Whether something is missing that nothing after it can do without.
    fn check_absent(&self, known: &Known, look: Look) -> Result<bool, String> {
        let number = known.txn.number;
        let is_acknowledged = matches!(known.fate, Fate::Acknowledged(_));
        let must_be = match look {
            Look::Alive | Look::Killed => is_acknowledged || known.is_safe,
            Look::PowerLost => known.is_safe,
            Look::Rotten => false,
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
            if let Fate::Acknowledged(told) = known.fate
                && told != seq
            {
                return Err(format!(
                    "transaction {number} is number {seq} and was told {told}"
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

    /// The server has started with these transactions; what else there was is lost. After a power loss they are on the medium.
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
                // Whatever its client was told, or not: it is there.
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
