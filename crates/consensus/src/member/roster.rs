//! The roster: the list of members, the servers that join and leave, and whether this server does.
//!
//! | File | Owns |
//! |---|---|
//! | `membership.rs` | the committed lists, servers that are being added or removed |
//! | `joining.rs` | the server that asks for admission, and the leader that admits it |
//! | `leaving.rs` | the member that leaves, and the leader that removes it |
//! | `addresses.rs` | names in log lines, wanted connections |
//!
//! Invariant: the voters of the algorithm are the servers of the last committed list. A leader
//! whose database leads proposes one change of the list at a time. A server that has been dropped
//! hears of it only once the file records that the list is committed. Until then a crash may make
//! this member forget the list, and it would wait for a vote that never comes. This part must not
//! know transactions or the contents of snapshots. Of elections it knows the lease, which tells
//! which members have caught up.

pub(crate) mod addresses;
pub(crate) mod joining;
pub(crate) mod leaving;
pub(crate) mod membership;

use corvid_log::cluster::{Eid, Index, Servers, Sid};
use corvid_rpc::Level;

use super::Phase;
use super::context::Context;
use super::disk::log_file::LogFile;
use crate::peers::DialTarget;
use joining::Joining;
use leaving::{Departing, Leaving};
use membership::{Joiner, Membership};

/// The members of the cluster, and changes to them.
#[derive(Debug)]
pub(crate) struct Roster {
    list: Membership,
    /// Set while this server asks for admission.
    joining: Option<Joining>,
    /// Set while this member asks to be removed.
    leaving: Option<Leaving>,
    /// Set once this leader has committed its own removal.
    departing: Option<Departing>,
    has_left: bool,
    /// The connections requested last.
    targets: Option<Vec<DialTarget>>,
}

/// The consequences of a committed list for other parts.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// The list drops this server, which leaves now.
    pub(crate) must_leave: bool,
    /// The list adds this server.
    pub(crate) adds_own: bool,
    /// Servers that are no longer members.
    pub(crate) gone: Vec<Sid>,
}

impl Roster {
    /// `remotes`: the servers to ask for admission; `None` if this server is a member, or was one.
    pub(crate) fn new(
        first: Option<(Index, Servers)>,
        later: Vec<(Index, Servers)>,
        remotes: Option<Vec<String>>,
        now_ms: u64,
    ) -> Roster {
        let mut list = Membership::new(first);
        for (index, servers) in later {
            list.commit(index, servers);
        }
        Roster {
            list,
            joining: remotes.map(|remotes| Joining::new(remotes, now_ms)),
            leaving: None,
            departing: None,
            has_left: false,
            targets: None,
        }
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        let joining = self.joining.as_ref().map_or(u64::MAX, Joining::next_ms);
        let leaving = self.leaving.as_ref().map_or(u64::MAX, Leaving::next_ms);
        joining.min(leaving)
    }

    /// The servers of the last committed list, with their addresses: the voters.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Sid, &str)> {
        self.list.servers().into_iter().flat_map(Servers::iter)
    }

    /// The members other than this one.
    pub(crate) fn others(&self, own: Sid) -> impl Iterator<Item = Sid> {
        self.members()
            .map(|(sid, _)| sid)
            .filter(move |sid| *sid != own)
    }

    /// The list as of an entry.
    pub(crate) fn servers_at(&self, index: Index) -> Option<&Servers> {
        self.list.servers_at(index)
    }

    pub(crate) fn contains(&self, sid: Sid) -> bool {
        self.list.contains(sid)
    }

    pub(crate) fn count(&self) -> usize {
        self.list.count()
    }

    /// Number of members that must agree.
    pub(crate) fn quorum(&self) -> usize {
        self.count() / 2 + 1
    }

    /// Finds a server by an exact address, or by the beginning of its id.
    pub(crate) fn find(&self, text: &str) -> Option<Sid> {
        self.list.find(text)
    }

    pub(crate) fn address(&self, sid: Sid) -> Option<&str> {
        self.list.address(sid)
    }

    pub(crate) fn is_joining(&self) -> bool {
        self.joining.is_some()
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Whether this leader has committed its own removal, so that its proposals may be lost.
    pub(crate) fn is_departing(&self) -> bool {
        self.departing.is_some()
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left
    }

    /// Servers that are asked for admission.
    pub(crate) fn remotes(&self) -> &[String] {
        self.joining.as_ref().map_or(&[], Joining::remotes)
    }

    /// The members, and the servers that are being added, with the phase of each.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (Sid, &str, Phase)> {
        let members = self.members().map(|(sid, address)| {
            let phase = if self.list.is_going(sid) {
                Phase::Removing
            } else {
                Phase::Stable
            };
            (sid, address, phase)
        });
        let joiners = self.list.joiners.iter();
        members.chain(joiners.map(|(sid, joiner)| (*sid, &*joiner.address, joiner.phase())))
    }

    /// A list is committed: gives the algorithm its new voters.
    pub(crate) fn commit(
        &mut self,
        cx: &mut Context,
        file: &mut LogFile,
        (index, servers): (Index, Servers),
        last_eid: Eid,
    ) -> Committed {
        let own = cx.own();
        // First of all: from here on, nothing that reveals the list leaves before its records are
        // stored.
        file.commit_list();
        let (added, gone) = self.list.commit(index, servers);
        let mut outcome = Committed::default();
        // A dropped leader stays until a majority of the others knows: without its vote they might
        // never find out. The library ends the process if a leader applies its own removal, so the
        // removal is never applied.
        if gone.contains(&own) {
            if !cx.node.is_leader() || self.count() == 0 {
                outcome.must_leave = true;
            } else {
                self.departing = Some(Departing::new(index));
            }
            return outcome;
        }
        for sid in added {
            cx.node.apply_change(sid, true, false);
            self.complete_joiner(cx, sid);
            if sid == own {
                if self.joining.is_some() {
                    let eid = last_eid.0;
                    let text = format!(
                        "added to configuration without reply (eid: {eid}, commit index: {index})"
                    );
                    cx.log(Level::Info, text);
                }
                self.complete_joining(cx);
                outcome.adds_own = true;
            }
        }
        for sid in &gone {
            cx.node.apply_change(*sid, false, false);
            self.complete_removal(cx, file, *sid);
        }
        outcome.gone = gone;
        outcome
    }

    /// A snapshot has replaced the log.
    pub(crate) fn restart(&mut self, index: Index, servers: Servers) {
        self.list.restart(index, servers);
    }

    /// The log now begins after this entry.
    pub(crate) fn compact(&mut self, index: Index) {
        self.list.compact(index);
    }
}

impl Joiner {
    fn phase(&self) -> Phase {
        match (self.is_proposed, self.is_caught_up) {
            (true, _) => Phase::Committing,
            (false, true) => Phase::CaughtUp,
            (false, false) => Phase::CatchUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, list, sid};
    use crate::member::disk::log_file::Mark;
    use crate::message::PeerMessage;
    use corvid_data::Uuid;
    use corvid_log::cluster::Term;
    use corvid_log::storage::LogPosition;

    const EID: Eid = Eid(Uuid::ZERO);

    fn file() -> LogFile {
        let mark = Mark {
            hard: (Term(3), None),
            last: Index(1),
            commit: Index(1),
        };
        LogFile::new(sid(1), true, LogPosition::OPENING, mark)
    }

    /// The comments of replies to joiners.
    fn take_comments(cx: &mut Context) -> Vec<(bool, String)> {
        let messages = fixture::take_messages(cx).into_iter();
        let comments = messages.filter_map(|(_, message)| match message {
            PeerMessage::AddServerReply {
                is_success,
                comment,
                ..
            } => Some((is_success, comment)),
            _ => None,
        });
        comments.collect()
    }

    #[test]
    fn a_server_is_added_once_and_told_when_its_list_is_committed() {
        let mut cx = fixture::leader();
        let mut roster = Roster::new(Some((Index(1), list(&[1]))), Vec::new(), None, 0);
        let server = ("tcp:10.0.0.2:6644", "D");
        let hear = |cx: &mut Context, roster: &mut Roster, leads, server| {
            let begins = roster.hear_joiner(cx, leads, false, sid(2), server);
            (begins, take_comments(cx))
        };
        let no = |comment: &str| (false, vec![(false, comment.to_owned())]);
        assert_eq!(hear(&mut cx, &mut roster, false, server), no("not leader"));
        let other = ("tcp:10.0.0.2:6644", "E");
        let refusal = no("wrong database E (expected D)");
        assert_eq!(hear(&mut cx, &mut roster, true, other), refusal);
        assert_eq!(hear(&mut cx, &mut roster, true, server), (true, vec![]));
        assert_eq!(hear(&mut cx, &mut roster, true, server), no("in progress"));
        assert!(!roster.contains(sid(2)) && roster.phases().count() == 2);
        let mut file = file();
        let committed = roster.commit(&mut cx, &mut file, (Index(2), list(&[1, 2])), EID);
        assert!(!committed.must_leave && !committed.adds_own && committed.gone.is_empty());
        assert_eq!(take_comments(&mut cx), [(true, "completed".to_owned())]);
        let known = (false, vec![(true, "already in cluster".to_owned())]);
        assert_eq!(hear(&mut cx, &mut roster, true, server), known);
    }

    #[test]
    fn a_server_that_is_out_of_the_list_is_told_when_the_list_is_stored() {
        let mut cx = fixture::leader();
        let first = Some((Index(1), list(&[1, 2, 3])));
        let mut roster = Roster::new(first, Vec::new(), None, 0);
        let mut file = file();
        let committed = roster.commit(&mut cx, &mut file, (Index(2), list(&[1, 3])), EID);
        assert_eq!(committed.gone, [sid(2)]);
        let tell = |cx: &mut Context, is_pending| {
            roster.tell_not_member(cx, sid(2), true, is_pending) && {
                let told = fixture::take_messages(cx);
                matches!(told[..], [(_, PeerMessage::NotMember { .. })])
            }
        };
        assert!(file.is_list_pending() && !tell(&mut cx, true));
        assert!(fixture::take_messages(&mut cx).is_empty());
        assert!(tell(&mut cx, false));
    }
}
