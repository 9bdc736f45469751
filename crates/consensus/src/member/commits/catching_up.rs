//! Whether this member has caught up with its cluster, which `connected` in `_Server` promises.
//!
//! A member that starts, joins or was out of touch may lack commits that clients of other members
//! saw long ago. A client that came now would read old contents, and a conversion among those
//! commits would close its session. So the member first learns a *mark*: a commit index that the
//! leader has announced since. It shows `connected` once its database has applied everything up to
//! the mark.
//!
//! ```text
//!    out of touch   |     in touch, catching up       |  caught up
//! ------------------+----------------+----------------+------------->
//!              leader heard   append tells mark   mark is applied
//! ```
//!
//! A commit index counts as a mark only if its entry belongs to the leader's own term: an older one
//! may lack commits of earlier leaders. A joining server has a mark earlier: the list with it,
//! which the leader appends after hearing of it. After a restart that list proves nothing, because
//! it may be older than this run. Once caught up, a member stays so until it is out of touch again,
//! although it follows its leader with some delay.

use corvid_log::cluster::Index;

/// The member's place in its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// It leads, or hears its leader.
    pub(crate) is_in_touch: bool,
    /// It leads, and its database has applied the entry that begins its leadership, so it can lack
    /// nothing.
    pub(crate) leads: bool,
    /// The committed list has no other server. Its last leader has left then, and only its own
    /// leadership counts.
    pub(crate) is_alone: bool,
}

/// Tracks whether this member has caught up.
#[derive(Debug, Default)]
pub(crate) struct CatchingUp {
    mark: Option<Index>,
    has_caught_up: bool,
    /// Whether the server began this run without any entry of its cluster.
    is_new: bool,
}

impl CatchingUp {
    /// `is_new`: the server's file has no entry yet.
    pub(crate) fn new(is_new: bool) -> CatchingUp {
        CatchingUp {
            is_new,
            ..CatchingUp::default()
        }
    }

    /// A list that adds this server has been committed at this index.
    pub(crate) fn note_list(&mut self, index: Index) {
        if self.is_new {
            self.note_commit(index);
        }
    }

    /// The leader has committed this entry, which belongs to its own term. The first mark is
    /// enough: it covers everything that was committed when the member came back in touch.
    pub(crate) fn note_commit(&mut self, commit: Index) {
        self.mark.get_or_insert(commit);
    }

    /// Whether the member has caught up, now that its database has applied this entry.
    pub(crate) fn look(&mut self, standing: Standing, applied: Index) -> bool {
        let Standing {
            is_in_touch,
            leads,
            is_alone,
        } = standing;
        if !is_in_touch {
            *self = CatchingUp::new(self.is_new);
            return false;
        }
        let has_reached_mark = self.mark.is_some_and(|mark| applied >= mark);
        self.has_caught_up |= leads || (has_reached_mark && !is_alone);
        self.has_caught_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(it: &mut CatchingUp, standing: [bool; 3], applied: u64) -> bool {
        let [is_in_touch, leads, is_alone] = standing;
        let standing = Standing {
            is_in_touch,
            leads,
            is_alone,
        };
        it.look(standing, Index(applied))
    }

    #[test]
    fn the_list_that_adds_a_server_is_a_mark_unless_it_has_restarted_since() {
        for is_new in [true, false] {
            let mut it = CatchingUp::new(is_new);
            assert!(!look(&mut it, [false, false, false], 6), "it is joining");
            it.note_list(Index(7));
            assert!(!look(&mut it, [true, false, false], 6));
            assert_eq!(look(&mut it, [true, false, false], 7), is_new);
            it.note_commit(Index(8));
            assert!(look(&mut it, [true, false, false], 8));
        }
    }

    #[test]
    fn a_member_catches_up_with_the_first_mark_each_time_it_comes_in_touch() {
        let mut it = CatchingUp::default();
        assert!(!look(&mut it, [true, false, false], 7), "no mark yet");
        it.note_commit(Index(9));
        it.note_commit(Index(12));
        assert!(!look(&mut it, [true, false, false], 8));
        assert!(
            look(&mut it, [true, false, false], 9),
            "the first mark is enough"
        );
        assert!(
            look(&mut it, [true, false, false], 9),
            "later entries do not count"
        );
        assert!(!look(&mut it, [false, false, false], 9));
        assert!(
            !look(&mut it, [true, false, false], 9),
            "the old mark says nothing"
        );
        assert!(
            look(&mut it, [true, true, false], 9),
            "a leader lacks nothing"
        );
        assert!(look(&mut it, [true, false, false], 9));
    }

    #[test]
    fn a_member_whose_last_leader_has_left_catches_up_when_it_leads() {
        let mut it = CatchingUp::default();
        it.note_commit(Index(9));
        assert!(!look(&mut it, [true, false, true], 9), "nobody leads");
        assert!(look(&mut it, [true, true, true], 9));
        assert!(look(&mut it, [true, false, true], 9), "it stays connected");
    }
}
