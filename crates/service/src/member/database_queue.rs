//! Events on their way from a member to its database, in the order in which they occurred, and the snapshots between them: an installed snapshot
//! takes time to load, and the events behind it wait.
//!
//! ```text
//! ready: events that the database may have now | snapshot under way | events | snapshot under way | events
//! ```
//!
//! Invariant: no event is lost and none overtakes a snapshot, but for commits behind a snapshot that cannot be loaded: they do not fit the
//! contents before it, and wait for the next snapshot, which replaces them. Used by the thread of a member, in the server and in the simulator,
//! which load the snapshots.

use std::collections::VecDeque;

use corvid_consensus::MemberEvent;
use corvid_log::cluster::{Index, Term};

use crate::message::ToDatabase;

/// See the module. `C` are the contents of a snapshot.
#[derive(Debug)]
pub struct DatabaseQueue<C> {
    ready: Vec<ToDatabase>,
    behind: VecDeque<Item<C>>,
    /// The database has had contents.
    has_contents: bool,
}

#[derive(Debug)]
enum Item<C> {
    Event(ToDatabase),
    /// Through this entry of this term.
    Snapshot(Index, Term, Load<C>),
}

#[derive(Debug)]
enum Load<C> {
    UnderWay,
    Done(C),
    Failed,
}

impl<C> DatabaseQueue<C> {
    /// An empty queue. `has_contents`: the database was loaded when the member started.
    #[must_use]
    pub fn new(has_contents: bool) -> DatabaseQueue<C> {
        DatabaseQueue {
            ready: Vec::new(),
            behind: VecDeque::new(),
            has_contents,
        }
    }

    /// An event has occurred.
    pub fn push(&mut self, event: ToDatabase) {
        if self.behind.is_empty() {
            self.ready.push(event);
        } else {
            self.behind.push_back(Item::Event(event));
        }
    }

    /// The events that the database may have now; the caller takes them.
    pub fn ready(&mut self) -> &mut Vec<ToDatabase> {
        &mut self.ready
    }

    /// Whether there are events that the database may have now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether events wait for a snapshot.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        !self.behind.is_empty()
    }

    /// The events and snapshots in the queue.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.ready.len() + self.behind.len()
    }

    /// A snapshot through this entry of this term has been installed, and is being loaded.
    pub fn begin_load(&mut self, index: Index, term: Term) {
        let before = self.behind.iter().rev().find_map(|item| match item {
            Item::Snapshot(before, ..) => Some(*before),
            Item::Event(_) => None,
        });
        assert!(before < Some(index), "a snapshot replaces older ones only");
        self.behind
            .push_back(Item::Snapshot(index, term, Load::UnderWay));
        self.skip_failed();
    }

    /// The snapshot is loaded, or cannot be (`None`). Returns the contents that the database is to be made with, once; later ones become
    /// events by `installed`.
    pub fn loaded(
        &mut self,
        index: Index,
        contents: Option<C>,
        installed: impl Fn(C, Term) -> ToDatabase,
    ) -> Option<C> {
        let found = self.behind.iter_mut().find_map(|item| match item {
            Item::Snapshot(at, _, load) if *at == index && matches!(load, Load::UnderWay) => {
                Some(load)
            }
            _ => None,
        });
        // Its events would wait for ever.
        assert!(found.is_some(), "a snapshot is loaded once");
        if let Some(load) = found {
            *load = contents.map_or(Load::Failed, Load::Done);
        }
        self.skip_failed();
        let mut first = None;
        while let Some(item) = self.behind.pop_front() {
            match item {
                Item::Event(event) => self.ready.push(event),
                Item::Snapshot(_, _, Load::Done(contents)) if !self.has_contents => {
                    self.has_contents = true;
                    first = Some(contents);
                }
                Item::Snapshot(_, term, Load::Done(contents)) => {
                    self.ready.push(installed(contents, term));
                }
                unfinished @ Item::Snapshot(..) => {
                    self.behind.push_front(unfinished);
                    break;
                }
            }
        }
        assert!(
            !matches!(self.behind.front(), Some(Item::Event(_))),
            "an event waits for a snapshot before it"
        );
        first
    }

    /// Forgets a snapshot at the front that cannot be loaded, and the commits behind it, when the next snapshot replaces them.
    fn skip_failed(&mut self) {
        while matches!(
            self.behind.front(),
            Some(Item::Snapshot(_, _, Load::Failed))
        ) {
            let is_snapshot = |item: &Item<C>| matches!(item, Item::Snapshot(..));
            let Some(next) = self.behind.iter().skip(1).position(is_snapshot) else {
                return;
            };
            let replaced = self.behind.drain(..=next).skip(1);
            let kept = replaced.filter_map(|item| match item {
                Item::Event(ToDatabase::Member(MemberEvent::Committed { .. })) => None,
                Item::Event(event) => Some(event),
                Item::Snapshot(..) => None,
            });
            self.ready.extend(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follows(term: u64) -> ToDatabase {
        let (term, leader) = (Term(term), None);
        ToDatabase::Member(MemberEvent::Follows { term, leader })
    }

    fn committed(through: u64) -> ToDatabase {
        ToDatabase::Member(MemberEvent::Committed {
            through: Index(through),
            term: Term(1),
            entries: Vec::new(),
        })
    }

    /// Contents are shown as events of terms from 1000 on.
    fn installed(index: u64, term: Term) -> ToDatabase {
        assert_eq!(term.0, index, "each snapshot has a term of its own");
        follows(1000 + index)
    }

    fn taken(queue: &mut DatabaseQueue<u64>) -> Vec<String> {
        let events = queue.ready().drain(..);
        let shown = |event| match event {
            ToDatabase::Member(MemberEvent::Follows { term, .. }) if term.0 >= 1000 => {
                format!("installed {}", term.0 - 1000)
            }
            ToDatabase::Member(MemberEvent::Follows { term, .. }) => format!("follows {term}"),
            ToDatabase::Member(MemberEvent::Committed { through, .. }) => {
                format!("committed {through}")
            }
            other => format!("{other:?}"),
        };
        events.map(shown).collect()
    }

    #[test]
    fn events_around_two_snapshots_keep_their_order() {
        let mut queue = DatabaseQueue::new(true);
        queue.push(committed(5));
        queue.begin_load(Index(10), Term(10));
        queue.push(follows(2));
        queue.push(committed(12));
        assert_eq!(taken(&mut queue), ["committed 5"]);
        // A second snapshot while the first one is being loaded.
        queue.begin_load(Index(20), Term(20));
        queue.push(committed(21));
        assert_eq!(taken(&mut queue), [""; 0]);
        assert_eq!(queue.loaded(Index(10), Some(10), installed), None);
        assert_eq!(
            taken(&mut queue),
            ["installed 10", "follows 2", "committed 12"]
        );
        assert_eq!(queue.loaded(Index(20), Some(20), installed), None);
        queue.push(committed(22));
        assert_eq!(
            taken(&mut queue),
            ["installed 20", "committed 21", "committed 22"]
        );
    }

    #[test]
    fn snapshots_may_be_loaded_in_any_order() {
        let mut queue = DatabaseQueue::new(true);
        queue.begin_load(Index(10), Term(10));
        queue.push(follows(2));
        queue.begin_load(Index(20), Term(20));
        assert_eq!(queue.loaded(Index(20), Some(20), installed), None);
        assert_eq!(taken(&mut queue), [""; 0]);
        assert_eq!(queue.loaded(Index(10), Some(10), installed), None);
        assert_eq!(
            taken(&mut queue),
            ["installed 10", "follows 2", "installed 20"]
        );
    }

    #[test]
    fn commits_behind_a_snapshot_that_cannot_be_loaded_wait_for_the_next() {
        let mut queue = DatabaseQueue::new(true);
        queue.begin_load(Index(10), Term(10));
        queue.push(committed(12));
        queue.push(follows(3));
        assert_eq!(queue.loaded(Index(10), None, installed), None);
        assert_eq!(taken(&mut queue), [""; 0]);
        queue.begin_load(Index(20), Term(20));
        assert_eq!(taken(&mut queue), ["follows 3"]);
        queue.push(committed(21));
        assert_eq!(queue.loaded(Index(20), Some(20), installed), None);
        assert_eq!(taken(&mut queue), ["installed 20", "committed 21"]);
    }

    #[test]
    fn the_first_contents_make_the_database() {
        let mut queue = DatabaseQueue::new(false);
        queue.begin_load(Index(10), Term(10));
        queue.push(committed(11));
        assert_eq!(queue.loaded(Index(10), Some(10), installed), Some(10));
        // A second snapshot before the database is served.
        queue.begin_load(Index(20), Term(20));
        queue.push(committed(21));
        assert_eq!(queue.loaded(Index(20), Some(20), installed), None);
        assert_eq!(
            taken(&mut queue),
            ["committed 11", "installed 20", "committed 21"]
        );
    }
}
