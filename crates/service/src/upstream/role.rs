//! The role that a server has for the order of commits, as its database knows it.

use corvid_data::Uuid;
use corvid_log::cluster::{Sid, Term};

/// The leader that a relay follows. It is never shown.
pub(super) const SOURCE: Sid = Sid(Uuid::ZERO);

/// The role of the member in its cluster. A relay always follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It leads in this term: the database executes and proposes.
    Leads(Term),
    /// It follows in this term: the database applies, and forwards to the leader if there is one.
    Follows(Term, Option<Sid>),
}

impl Role {
    /// Its term.
    pub(crate) fn term(self) -> Term {
        let (Role::Leads(term) | Role::Follows(term, _)) = self;
        term
    }
}
