//! Raft's safety properties, checked on the logs of several members.

use std::collections::BTreeMap;

use corvid_json::shown::Shown;
use corvid_log::cluster::{Index, Sid, Term};

use super::Names;
use super::member::Member;
use crate::failure::Failure;

/// The elections that records report.
#[derive(Default)]
pub(super) struct Properties {
    leaders: BTreeMap<Term, Leadership>,
}

struct Leadership {
    leader: Sid,
    /// The first file that reports the leader.
    reported_by: String,
    /// The leader's own file, and the end of its log at the election.
    own: Option<(String, Index)>,
}

impl Properties {
    /// Checks election safety: a term has at most one leader. The caller passes each member in
    /// turn.
    pub(super) fn elections(&mut self, member: &Member, names: &Names) -> Result<(), Failure> {
        for (&term, reported) in &member.leaders {
            let leadership = self.leaders.entry(term).or_insert_with(|| Leadership {
                leader: reported.leader,
                reported_by: member.file.clone(),
                own: None,
            });
            if leadership.leader != reported.leader {
                return Err(Failure::new(format!(
                    "term {term} has two different leaders: {} says that the leader is {} and {} says that the leader is {}",
                    leadership.reported_by,
                    names.of_server(leadership.leader),
                    member.file,
                    names.of_server(reported.leader)
                )));
            }
            if leadership.leader == member.server_id {
                leadership.own = Some((member.file.clone(), reported.end));
            }
        }
        Ok(())
    }

    /// Checks the other properties, in the reference's order.
    pub(super) fn check(&self, members: &[Member]) -> Result<(), Failure> {
        if members.iter().all(|member| member.log.term() == Term(0)) {
            return Err(Failure::new("all logs are empty"));
        }
        self.leader_completeness(members)?;
        for (position, one) in members.iter().enumerate() {
            for other in &members[position + 1..] {
                log_matching(one, other)?;
            }
        }
        match members.iter().find(|member| !member.log.was_listed()) {
            None => Ok(()),
            Some(member) => Err(Failure::new(format!(
                "{}: server {} not found in server list",
                member.file, member.server_id
            ))),
        }
    }

    /// Checks that entries committed in a term are in the logs of the leaders of all later terms.
    fn leader_completeness(&self, members: &[Member]) -> Result<(), Failure> {
        for (term, leadership) in &self.leaders {
            let Some((file, end)) = &leadership.own else {
                continue;
            };
            let mut last: Option<(Index, &str)> = None;
            for member in members {
                for index in member.commits.range(..term).map(|(_, index)| *index) {
                    if last.is_none_or(|(known, _)| index > known) {
                        last = Some((index, &member.file));
                    }
                }
            }
            if let Some((index, committer)) = last.filter(|(index, _)| index >= end) {
                return Err(Failure::new(format!(
                    "leader {file} for term {term} has log entries only up to index {}, but index {index} was committed in a previous term (e.g. by {committer})",
                    end.previous()
                )));
            }
        }
        Ok(())
    }
}

/// Checks that two logs are equal up to each entry that has the same index and term in both.
fn log_matching(one: &Member, other: &Member) -> Result<(), Failure> {
    let start = one.log.start().max(other.log.start());
    let mut index = one.log.end().min(other.log.end());
    let mut must_be_equal = false;
    while index > start {
        index = index.previous();
        let (Some(a), Some(b)) = (one.entry(index), other.entry(index)) else {
            continue;
        };
        must_be_equal |= a.term == b.term;
        if !must_be_equal || a.hash == b.hash {
            continue;
        }
        return Err(Failure::of_lines(format!(
            "log entries with index {index} differ:\n{} has {}\n{} has {}",
            Shown(&one.file),
            Shown(one.show(a)?),
            Shown(&other.file),
            Shown(other.show(b)?)
        )));
    }
    Ok(())
}
