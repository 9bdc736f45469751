//! The rules for the order of the records in one file (docs/spec/distribution.md 1.4).
//!
//! [`Replay`] tracks a log through the records read so far: where it begins and ends, its terms,
//! the current term and vote, the lists of servers and the timers. It keeps no entries: a caller
//! that needs them keeps them, and [`Step`] says which ones to drop. Invariant: `commit < end`, and
//! all information about entries concerns entries that are still in the log. Memory is proportional
//! to the number of elections and membership changes, not of entries.

use super::record::{Entry, Kind, Record};
use super::{Header, Index, Membership, Servers, Sid, Term};

/// The text of the note that a server writes when it leaves its cluster.
const LEFT: &str = "left";

/// The state of a log after some of its records.
#[derive(Clone, Debug)]
pub struct Replay {
    server_id: Sid,
    start: Index,
    end: Index,
    commit: Index,
    term: Term,
    vote: Option<Sid>,
    /// The winner of the current term's election, if recorded.
    leader: Option<Sid>,
    has_left: bool,
    /// The term of the snapshot, then each position at which the term changes.
    terms: Vec<(Index, Term)>,
    servers: Vec<(Index, Servers)>,
    timers: Vec<(Index, u64)>,
}

/// The effect of a record on the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The log is unchanged.
    Unchanged,
    /// An entry was appended after the remaining ones.
    Appended {
        /// Entries that were cut off first, if any.
        truncated: Option<Truncation>,
    },
    /// The member has left its cluster.
    Left,
}

/// Entries that a later record has superseded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Where the log ended before, exclusive.
    pub from: Index,
    /// Where the log ended after the cut, exclusive: the position of the new entry.
    pub to: Index,
    /// Whether the member was leader at the time. A correct leader never cuts entries off.
    pub by_leader: bool,
}

/// A record that cannot follow those before it: the file is damaged, or a server has violated the
/// algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The record would cut off committed entries.
    TruncatesCommitted {
        /// Where the log ends, exclusive.
        from: Index,
        /// Where it would end, exclusive.
        to: Index,
        /// The commit index.
        commit: Index,
    },
    /// The entry is not at the next position.
    Skips {
        /// The entry's position.
        index: Index,
        /// The next position.
        expected: Index,
    },
    /// The entry has an older term than the one before it.
    TermRegresses {
        /// The entry's position.
        index: Index,
        /// The entry's term.
        term: Term,
        /// The term of the previous entry.
        previous: Term,
    },
    /// The vote is for an election of an older term.
    StaleVote {
        /// The term of the election.
        term: Term,
        /// The member's term.
        current: Term,
    },
    /// The member voted for another server in the same term before.
    SecondVote {
        /// The term of the election.
        term: Term,
        /// The server that this record votes for.
        vote: Sid,
        /// The server that the earlier record voted for.
        previous: Sid,
    },
    /// The record would make committed entries uncommitted.
    CommitRegresses {
        /// The commit index.
        from: Index,
        /// The new, lower commit index.
        to: Index,
    },
    /// The record would commit entries that do not exist.
    CommitsMissing {
        /// The new commit index.
        to: Index,
        /// The position of the last entry.
        last: Index,
    },
}

impl Replay {
    /// The state after the header; `None` if the server has not joined and so has no log.
    #[must_use]
    pub fn new(header: &Header) -> Option<Replay> {
        let Membership::Joined { servers, snapshot } = &header.membership else {
            return None;
        };
        let (index, term) = match snapshot {
            Some(snapshot) => (snapshot.index, snapshot.term),
            None => (Index(0), Term(0)),
        };
        let timer = snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.election_timer_ms);
        Some(Replay {
            server_id: header.server_id,
            start: index.next(),
            end: index.next(),
            commit: index,
            term: Term(0),
            vote: None,
            leader: None,
            has_left: false,
            terms: vec![(index, term)],
            servers: vec![(index, servers.clone())],
            timers: timer.map(|timer| (index, timer)).into_iter().collect(),
        })
    }

    /// Applies the next record. After a violation the state is unchanged, except for the current
    /// term.
    ///
    /// # Errors
    /// See [`Violation`].
    pub fn apply(&mut self, record: &Record) -> Result<Step, Violation> {
        // Vote and leader belong to a term: a later term ends both.
        if let Some(term) = record.term().filter(|term| *term > self.term) {
            self.term = term;
            self.vote = None;
            self.leader = None;
        }
        match &record.kind {
            Kind::Entry(entry) => self.append(entry),
            Kind::Term(_) => Ok(Step::Unchanged),
            Kind::Vote { term, vote } => self.vote(*term, *vote),
            Kind::Leader { term, leader } => {
                if *term == self.term {
                    self.leader = Some(*leader);
                }
                Ok(Step::Unchanged)
            }
            Kind::CommitIndex(index) => self.commit(*index),
            Kind::Note(note) if note == LEFT => {
                self.has_left = true;
                Ok(Step::Left)
            }
            Kind::Note(_) => Ok(Step::Unchanged),
        }
    }

    /// The position of the first entry, which need not exist yet.
    #[must_use]
    pub fn start(&self) -> Index {
        self.start
    }

    /// The position just past the last entry.
    #[must_use]
    pub fn end(&self) -> Index {
        self.end
    }

    /// The last entry known to be committed.
    #[must_use]
    pub fn commit_index(&self) -> Index {
        self.commit
    }

    /// The member's term: the highest in any record.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// The server for which the member voted in its term.
    #[must_use]
    pub fn vote_cast(&self) -> Option<Sid> {
        self.vote
    }

    /// The winner of the election of the member's term, if recorded.
    #[must_use]
    pub fn leader(&self) -> Option<Sid> {
        self.leader
    }

    /// Whether the member has left its cluster, for good.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// The term of the last entry, or of the snapshot.
    #[must_use]
    pub fn last_term(&self) -> Term {
        self.terms.last().map_or(Term(0), |(_, term)| *term)
    }

    /// The latest list of servers, from the snapshot or an entry.
    #[must_use]
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.last().map(|(_, servers)| servers)
    }

    /// Whether the member is in any list, including superseded ones.
    #[must_use]
    pub fn was_listed(&self) -> bool {
        self.servers
            .iter()
            .any(|(_, servers)| servers.contains(self.server_id))
    }

    /// The election timer that applies once every entry is committed, ms.
    #[must_use]
    pub fn election_timer_ms(&self) -> u64 {
        self.timers
            .last()
            .map_or(super::ELECTION_TIMER_DEFAULT_MS, |(_, timer)| *timer)
    }

    fn append(&mut self, entry: &Entry) -> Result<Step, Violation> {
        let Entry { index, term, .. } = *entry;
        // Committed entries are final: only entries after the commit index may be superseded.
        if index <= self.commit {
            return Err(Violation::TruncatesCommitted {
                from: self.end,
                to: index,
                commit: self.commit,
            });
        }
        if index > self.end {
            return Err(Violation::Skips {
                index,
                expected: self.end,
            });
        }
        let previous = self.term_before(index);
        if term < previous {
            return Err(Violation::TermRegresses {
                index,
                term,
                previous,
            });
        }
        let truncated = (index < self.end).then(|| Truncation {
            from: self.end,
            to: index,
            by_leader: self.leader == Some(self.server_id) && term == self.term,
        });
        // Lists, terms and timers of the entries that go must go too. A member that kept a cut list
        // would count votes among the wrong servers.
        if truncated.is_some() {
            cut(&mut self.terms, index);
            cut(&mut self.servers, index);
            cut(&mut self.timers, index);
        }
        if term != previous {
            self.terms.push((index, term));
        }
        if let Some(servers) = &entry.servers {
            self.servers.push((index, servers.clone()));
        }
        if let Some(timer) = entry.election_timer_ms {
            self.timers.push((index, timer));
        }
        self.end = index.next();
        Ok(Step::Appended { truncated })
    }

    fn term_before(&self, index: Index) -> Term {
        let before = self.terms.partition_point(|(from, _)| *from < index);
        self.terms[..before]
            .last()
            .map_or(Term(0), |(_, term)| *term)
    }

    fn vote(&mut self, term: Term, vote: Sid) -> Result<Step, Violation> {
        if term < self.term {
            let current = self.term;
            return Err(Violation::StaleVote { term, current });
        }
        // A repeated vote for the same server is harmless; a second one for another server breaks
        // the election.
        match self.vote.replace(vote) {
            Some(previous) if previous != vote => {
                self.vote = Some(previous);
                Err(Violation::SecondVote {
                    term,
                    vote,
                    previous,
                })
            }
            _ => Ok(Step::Unchanged),
        }
    }

    fn commit(&mut self, index: Index) -> Result<Step, Violation> {
        if index < self.commit {
            return Err(Violation::CommitRegresses {
                from: self.commit,
                to: index,
            });
        }
        if index >= self.end {
            return Err(Violation::CommitsMissing {
                to: index,
                last: self.end.previous(),
            });
        }
        self.commit = index;
        Ok(Step::Unchanged)
    }
}

/// Drops information about entries at or after `index`.
fn cut<T>(told: &mut Vec<(Index, T)>, index: Index) {
    let kept = told.partition_point(|(from, _)| *from < index);
    told.truncate(kept);
}

impl Violation {
    /// The error text about record `number`; `name` renders server ids.
    #[must_use]
    pub fn text(&self, number: u64, name: impl Fn(Sid) -> String) -> String {
        match self {
            Violation::TruncatesCommitted { from, to, commit } => format!(
                "record {number} attempts to truncate log from {from} to {to} entries, but commit index is already {commit}"
            ),
            Violation::Skips { index, expected } => {
                format!("record {number} with index {index} skips past expected index {expected}")
            }
            Violation::TermRegresses {
                index,
                term,
                previous,
            } => format!(
                "record {number} with index {index} term {term} precedes previous entry's term {previous}"
            ),
            Violation::StaleVote { term, current } => {
                format!("record {number} votes for term {term} but current term is {current}")
            }
            Violation::SecondVote {
                term,
                vote,
                previous,
            } => format!(
                "record {number} votes for {} in term {term} but a previous record for the same term voted for {}",
                name(*vote),
                name(*previous)
            ),
            Violation::CommitRegresses { from, to } => {
                format!("record {number} regresses commit index from {from} to {to}")
            }
            Violation::CommitsMissing { to, last } => format!(
                "record {number} advances commit index to {to} but last log index is {last}"
            ),
        }
    }
}
