//! Events on their way from a member to its database, in order, and the snapshots between them. An
//! installed snapshot takes time to load; the events after it wait.
//!
//! ```text
//! ready: events that the database may have now | snapshot loading | events | snapshot | ...
//! ```
//!
//! Invariant: no event is lost and none overtakes a snapshot, with one exception. Commits after a
//! snapshot that cannot be loaded do not fit the database's contents; they wait for the next
//! snapshot, which replaces them. The thread of a member owns the queue, in the server and in the
//! simulator; both load the snapshots.

use std::collections::VecDeque;

use corvid_consensus::MemberEvent;
use corvid_log::cluster::{Index, Term};

use crate::message::ToDatabase;

/// The events of a member on their way to its database. `C` is the contents of a snapshot.
#[derive(Debug)]
pub struct DatabaseQueue<C> {
    ready: Vec<ToDatabase>,
    behind: VecDeque<Item<C>>,
    /// The database has been given contents.
    has_contents: bool,
}

#[derive(Debug)]
enum Item<C> {
    Event(ToDatabase),
    /// A snapshot through this entry of this term.
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

    /// Appends an event.
    pub fn push(&mut self, event: ToDatabase) {
        if self.behind.is_empty() {
            self.ready.push(event);
        } else {
            self.behind.push_back(Item::Event(event));
        }
    }

    /// The events that the database may have now; the caller drains them.
    pub fn ready(&mut self) -> &mut Vec<ToDatabase> {
        &mut self.ready
    }

    /// Whether there are events that the database may have now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether events wait for a snapshot to load.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        !self.behind.is_empty()
    }

    /// The number of events and snapshots in the queue.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.ready.len() + self.behind.len()
    }

    /// A snapshot through this entry of this term has been installed and is being loaded.
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

    /// The snapshot has been loaded, or cannot be (`None`). The earliest contents are returned, to
    /// make the database from; later ones become events through `installed`.
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
        // The events after an unknown snapshot would wait forever.
        assert!(found.is_some(), "a snapshot is loaded once");
        if let Some(load) = found {
            *load = contents.map_or(Load::Failed, Load::Done);
        }
        // Only now: this load may be the one that failed, with its successor already queued.
        self.skip_failed();
        let mut first = None;
        // Drains up to the next snapshot that is not loaded. If snapshot 20 loads before 10,
        // nothing moves until 10 is done; then both leave, with their events between them.
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

    /// Drops a snapshot at the front that cannot be loaded, and the commits after it, once the next
    /// snapshot replaces them. Other events, such as a change of leader, stay.
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

    /// Contents appear as events of terms from 1000 on.
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
