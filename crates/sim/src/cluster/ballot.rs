//! Terms and votes as a member writes them.
//!
//! Invariant: in the order of records, a term has one vote. The module serves the hosts, and knows
//! neither disks nor members.

use corvid_log::cluster::{Kind, Sid, Term};

use super::file;

/// A term and the vote in it.
pub(super) type Ballot = (Term, Option<Sid>);

/// Adds the terms and votes in records to `ballots`.
pub(super) fn note_ballots(records: &[u8], ballots: &mut Vec<Ballot>) -> Result<(), String> {
    for record in file::records(records)? {
        let ballot = match record.kind {
            Kind::Term(term) => (term, None),
            Kind::Vote { term, vote } => (term, Some(vote)),
            _ => continue,
        };
        let before = ballots.last().copied().unwrap_or_default();
        ballots.push(next_ballot(before, ballot)?);
    }
    Ok(())
}

/// Returns the newest term and vote after `next` is written following `before`. A term earlier than
/// `before` changes nothing: the new file may already have a later term.
///
/// # Errors
/// `next` is a second vote in the same term.
pub(super) fn next_ballot(before: Ballot, next: Ballot) -> Result<Ballot, String> {
    match (before, next) {
        ((old, _), (term, _)) if term < old => Ok(before),
        ((old, Some(was)), (term, Some(vote))) if old == term && was != vote => {
            Err(format!("a second vote in term {term} is written"))
        }
        ((old, was), (term, None)) if old == term => Ok((term, was)),
        _ => Ok(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_has_one_vote() {
        let [one, other] = [1, 2].map(|byte| Sid(corvid_data::Uuid([byte; 16])));
        let voted = (Term(5), Some(one));
        assert_eq!(next_ballot((Term(4), Some(other)), voted), Ok(voted));
        assert_eq!(next_ballot(voted, (Term(5), None)), Ok(voted));
        assert_eq!(next_ballot(voted, (Term(4), Some(other))), Ok(voted));
        assert!(next_ballot(voted, (Term(5), Some(other))).is_err());
    }
}
