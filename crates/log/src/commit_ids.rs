//! Ids of the commits in a standalone file, read from the comments of its records
//! (docs/reference/files.md, "Transaction ids").
//!
//! The last line of a record's comment names its commit, and may name the *seed* of a
//! [`Numbering`]: the id of a later commit is a hash of the seed and of the number of records
//! since. So a seed in one record of a run makes the ids of all later commits known to every reader
//! of the file.
//!
//! ```text
//! corvid: txn=ID ids=SEED ...       the record of commit ID; the state before it is that of SEED
//! (no line)                         the next commit: hash(SEED, 1)
//! (no line)                         hash(SEED, 2)
//! ```
//!
//! Invariants: no number of a seed is used twice. Each run begins a new seed, and so does a run
//! that has undone a commit, because commits of the old seed may be missing in the file. A seed is
//! the id of the commit before the record that names it, and no other record names it.

use corvid_data::Uuid;
use corvid_json::splitmix::{STEP, mix};
use sha1::{Digest, Sha1};

use crate::commit_client::{LAST_COMMITS, TRANSACTION_PREFIX, last_line};

/// The last line of a record's comment after which the lines before it prove nothing.
pub const END_LINE: &str = "corvid: txn=none";

/// The beginning of the last line of the record that names the last commits, if the commits after
/// it are numbered.
pub const NUMBERING_PREFIX: &str = "corvid: ids=";

/// The id that is a hash of these bytes, of the version that all ids of commits have.
#[must_use]
pub fn hashed(bytes: &[u8]) -> Uuid {
    let hash: [u8; 20] = Sha1::digest(bytes).into();
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    Uuid::from_random(id)
}

/// Ids that follow a record with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The seed.
    pub seed: Uuid,
    /// Number of the next record. The record that names the seed has number 0.
    pub next: u64,
}

impl Numbering {
    /// The ids after the record that names this seed.
    #[must_use]
    pub fn begin(seed: Uuid) -> Numbering {
        Numbering { seed, next: 1 }
    }

    /// The id that the next record has, unless it names another. Clients may foresee such ids, and
    /// nothing depends on their being secret: a cryptographic hash for each commit would be a
    /// twentieth of the cost of a small one.
    pub fn take(&mut self) -> Uuid {
        let half = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let (high, low) = self.seed.0.split_at(8);
        // Another one for each number, except for the bits of the version, which are set below.
        let first = mix(half(high).wrapping_add(self.next.wrapping_mul(STEP)));
        let second = mix(half(low) ^ first);
        self.next += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&first.to_be_bytes());
        id[8..].copy_from_slice(&second.to_be_bytes());
        Uuid::from_random(id)
    }

    /// Reads the last line of the record that names the last commits.
    #[must_use]
    pub fn parse(line: &str) -> Option<Numbering> {
        let text = line.strip_prefix(NUMBERING_PREFIX)?;
        let (seed, next) = text.split_once(" next=")?;
        Some(Numbering {
            seed: Uuid::parse(seed.as_bytes())?,
            next: next.parse().ok()?,
        })
    }
}

/// The beginning of the line of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLine<'t> {
    /// The id of the commit.
    pub id: Uuid,
    /// The seed of the numbering that begins with it.
    pub seed: Option<Uuid>,
    /// The rest: the result of its transaction.
    pub rest: &'t str,
}

impl<'t> CommitLine<'t> {
    /// Reads a line; `None` if it is not one of ours.
    #[must_use]
    pub fn parse(line: &'t str) -> Option<CommitLine<'t>> {
        let rest = line.strip_prefix(TRANSACTION_PREFIX)?;
        let (id, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let id = Uuid::parse(id.as_bytes())?;
        let mut seed = None;
        if let Some(after) = rest.strip_prefix("ids=") {
            let (text, after) = after.split_once(' ').unwrap_or((after, ""));
            (seed, rest) = (Some(Uuid::parse(text.as_bytes())?), after);
        }
        Some(CommitLine { id, seed, rest })
    }
}

/// The comment of a commit without rows: it only records that a transaction, which its last line
/// names, changed nothing.
pub const END_COMMENT: &str = "transact_once: nothing changed";

/// Whether a record is that of a commit. Other records without rows name the last commits before a
/// file was written, or other programs wrote them.
#[must_use]
pub fn is_commit(comment: &str, has_rows: bool) -> bool {
    let is_end = || {
        comment.lines().next() == Some(END_COMMENT)
            && CommitLine::parse(last_line(comment)).is_some()
    };
    has_rows || is_end()
}

/// The ids of a file's commits, while its records are read in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitIds {
    last: Option<Uuid>,
    numbering: Option<Numbering>,
}

impl CommitIds {
    /// The id of the state after the records so far; `None` if nothing says it.
    #[must_use]
    pub fn last(&self) -> Option<Uuid> {
        self.last
    }

    /// The ids of the commits that follow, unless their records name others.
    #[must_use]
    pub fn numbering(&self) -> Option<Numbering> {
        self.numbering
    }

    /// Reads the next record after the schema. `has_rows`: it has rows, not only a comment. Returns
    /// the id of the state *before* the record if only the record tells it.
    pub fn append(&mut self, comment: &str, has_rows: bool) -> Option<Uuid> {
        if last_line(comment) == END_LINE {
            *self = CommitIds::default();
            return None;
        }
        if !is_commit(comment, has_rows) {
            if let Some((LAST_COMMITS, lines)) = comment.split_once('\n')
                && let Some(numbering) = Numbering::parse(last_line(lines))
            {
                // Without a numbering, the lines may stop before the last commit.
                let mut named = lines.lines().rev().filter_map(CommitLine::parse);
                self.last = named.next().map(|line| line.id);
                self.numbering = Some(numbering);
            }
            return None;
        }
        let numbered = self.numbering.as_mut().map(Numbering::take);
        let Some(line) = CommitLine::parse(last_line(comment)) else {
            self.last = numbered;
            return None;
        };
        self.last = Some(line.id);
        if let Some(seed) = line.seed {
            self.numbering = Some(Numbering::begin(seed));
        }
        line.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Uuid = Uuid([7; 16]);

    #[test]
    fn ids_depend_on_the_seed_and_the_number_alone() {
        let mut first = Numbering::begin(SEED);
        let ids = [first.take(), first.take()];
        assert_ne!(ids[0], ids[1]);
        assert_ne!(ids[0], Numbering::begin(Uuid([8; 16])).take());
        let mut again = Numbering {
            seed: SEED,
            next: 2,
        };
        assert_eq!(again.take(), ids[1], "after a compaction in between");
        assert_eq!((ids[0].0[6] >> 4, ids[0].0[8] >> 6), (4, 2), "version 4");
    }

    #[test]
    fn records_after_a_seed_have_ids_and_the_one_before_it() {
        let mut ids = CommitIds::default();
        assert_eq!(ids.append("why", true), None);
        assert_eq!(ids.last(), None);
        let named = Uuid([1; 16]);
        let line = format!("why\ncorvid: txn={named} ids={SEED} results=-");
        assert_eq!(ids.append(&line, true), Some(SEED));
        assert_eq!(ids.last(), Some(named));
        let mut numbering = Numbering::begin(SEED);
        assert_eq!(ids.append("", true), None);
        assert_eq!(ids.last(), Some(numbering.take()));
        assert_eq!(ids.append("no rows", false), None);
        assert_eq!(ids.append(END_COMMENT, false), None, "of another program");
        let end = Uuid([3; 16]);
        let line = format!("{END_COMMENT}\ncorvid: txn={end} -");
        assert_eq!(ids.append(&line, false), None);
        assert_eq!(ids.last(), Some(end), "a commit of its own");
        assert_eq!(ids.append("", true), None);
        numbering.take();
        assert_eq!(ids.last(), Some(numbering.take()), "it has a number");
        let other = Uuid([2; 16]);
        ids.append(&format!("corvid: txn={other}"), true);
        assert_eq!(ids.last(), Some(other));
        let _ = numbering.take();
        ids.append("", true);
        assert_eq!(ids.last(), Some(numbering.take()), "its record counts");
        ids.append(END_LINE, true);
        assert_eq!(ids, CommitIds::default());
    }

    #[test]
    fn a_compacted_file_names_its_last_commit_and_goes_on() {
        let last = Uuid([3; 16]);
        let lines = format!("{LAST_COMMITS}\ncorvid: txn={last}");
        let mut ids = CommitIds::default();
        ids.append(&lines, false);
        assert_eq!(ids.last(), None, "it may not be the last one");
        ids.append(&format!("{lines}\n{NUMBERING_PREFIX}{SEED} next=9"), false);
        assert_eq!(ids.last(), Some(last));
        ids.append("", true);
        let mut numbering = Numbering {
            seed: SEED,
            next: 9,
        };
        assert_eq!(ids.last(), Some(numbering.take()));
    }
}
