//! Deliveries of clustered databases that wait until `_Server` has sent its update.
//!
//! A session that monitors `_Server` learns the index of a commit before it gets the reply, as with
//! the reference. The database and `_Server` run in parallel, so the shard orders them. It holds
//! the reply, sends a fence to `_Server`, and releases the reply once the fence has been passed.
//! `_Server` was sent the index before the reply was posted ([`crate::applied_index`]), so its
//! update precedes the answer to the fence.
//!
//! Invariant: deliveries to a session stay in order; a delivery that follows a held one is held
//! too. At most one fence per session is in flight. A session that does not monitor `_Server`, or
//! already has the newest index, waits for no fence.

use std::collections::VecDeque;

use corvid_log::cluster::Index;
use corvid_monitor::SessionId;

use super::Frontend;
use super::session::Session;
use crate::applied_index::AppliedIndex;
use crate::message::{Completion, DatabaseId, Deliver, Piece, ToDatabase};
use crate::served_databases::ServedDatabases;
use crate::server_db;

/// A clustered database and one of its indexes.
type IndexOf = (DatabaseId, Index);

/// The held deliveries of one session, and the fence that they wait for.
#[derive(Debug, Default)]
pub(super) struct HeldDeliveries {
    /// Deliveries in order, each with the index that must precede it, if any.
    queue: VecDeque<(Deliver, Option<IndexOf>)>,
    /// The index that `_Server` will have sent when it answers the fence in flight.
    awaited: Option<IndexOf>,
    /// The newest index that `_Server` is known to have sent to the session.
    sent: Option<IndexOf>,
}

impl HeldDeliveries {
    fn has_been_sent(&self, (database, index): IndexOf) -> bool {
        self.sent
            .is_some_and(|(of, sent)| of == database && sent >= index)
    }

    /// Takes all deliveries, in order: the session is closing and still gets what was posted
    /// before.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Deliver> + use<> {
        std::mem::take(&mut self.queue)
            .into_iter()
            .map(|(deliver, _)| deliver)
    }
}

/// Whether a delivery holds more than updates: a reply (also of a transaction that was blocked) or
/// a notification.
fn is_answer(deliver: &Deliver) -> bool {
    let completes = match &deliver.completion {
        Completion::Request
        | Completion::MonitorAdded(_)
        | Completion::MonitorRenamed(..)
        | Completion::MonitorRemoved(_) => true,
        Completion::None
        | Completion::LockNotification
        | Completion::MonitorLost(_)
        | Completion::NotificationFence
        | Completion::IndexFence => false,
    };
    let is_update = |piece: &Piece| matches!(piece, Piece::Update(_));
    completes || !deliver.pieces.iter().all(is_update)
}

/// The index that the session must have been sent before this delivery; `None` if it need not wait.
fn preceding_index(
    served: &ServedDatabases,
    session: &Session,
    deliver: &Deliver,
) -> Option<IndexOf> {
    if !is_answer(deliver) {
        return None;
    }
    let applied = served.applied_index(deliver.database)?;
    let server_db = served.get(server_db::NAME)?;
    let watches = session.monitors.values().any(|of| *of == server_db);
    watches.then(|| (deliver.database, applied.current()))
}

impl Frontend {
    /// Holds a delivery if it must wait for `_Server`; otherwise returns it.
    pub(super) fn hold(&mut self, deliver: Deliver) -> Option<Deliver> {
        let id = deliver.session;
        let session = self.sessions.get_mut(&id)?;
        let server_db = self.served.get(server_db::NAME);
        // The fence waits for this update, so the update must not wait for the fence.
        if server_db == Some(deliver.database) {
            return Some(deliver);
        }
        let preceding = preceding_index(&self.served, session, &deliver);
        let held = &mut session.held;
        let may_pass = preceding.is_none_or(|index| held.has_been_sent(index));
        if held.queue.is_empty() && may_pass {
            return Some(deliver);
        }
        held.queue.push_back((deliver, preceding));
        self.send_index_fence(id);
        None
    }

    /// Sends a fence for the first held delivery, unless one is in flight.
    fn send_index_fence(&mut self, id: SessionId) {
        let (Some(session), Some(server_db)) =
            (self.sessions.get_mut(&id), self.served.get(server_db::NAME))
        else {
            return;
        };
        let held = &mut session.held;
        if held.awaited.is_some() {
            return;
        }
        let first = held.queue.front().and_then(|(_, preceding)| *preceding);
        let Some((database, at_least)) = first else {
            return;
        };
        // Ask for the newest index, not only the first delivery's: it is already in the queue of
        // `_Server`, and one fence then covers later deliveries too. With deliveries at 7 and 9
        // held, the fence for 9 releases both.
        let newest = self.served.applied_index(database);
        let index = newest.map_or(at_least, AppliedIndex::current);
        held.awaited = Some((database, index));
        let fence = ToDatabase::Fence(id, Completion::IndexFence);
        self.outputs.to_databases.push((server_db, fence));
    }

    /// `_Server` has sent its updates: releases the deliveries that waited for them.
    pub(super) fn index_fence_passed(&mut self, now_ms: u64, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let passed = session.held.awaited.take().or(session.held.sent);
        if let (Some((database, index)), Some((of, sent))) = (passed, session.held.sent) {
            assert!(
                database != of || sent <= index,
                "a session is not sent an older index"
            );
        }
        session.held.sent = passed;
        while let Some(session) = self.sessions.get_mut(&id) {
            let held = &mut session.held;
            let Some((_, preceding)) = held.queue.front() else {
                return;
            };
            if preceding.is_some_and(|index| !held.has_been_sent(index)) {
                break;
            }
            if let Some((deliver, _)) = held.queue.pop_front() {
                self.pass_on(now_ms, deliver);
            }
        }
        // Deliveries that arrived after the fence was sent may need a newer index.
        self.send_index_fence(id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use corvid_data::Uuid;
    use corvid_monitor::{Frame, SharedBody};

    use super::*;
    use crate::applied_index::AppliedIndex;
    use crate::locks::Locks;
    use crate::message::{SessionInfo, ToShard};
    use crate::schema_epoch::SchemaEpochs;

    const SERVER: DatabaseId = DatabaseId(0);
    const CLUSTERED: DatabaseId = DatabaseId(1);
    const CLIENT: SessionId = SessionId(7);

    /// A shard with one client of a clustered database, and that database's index.
    fn shard(watches: bool) -> (Frontend, AppliedIndex) {
        let applied = AppliedIndex::new("C", Index(1));
        let mut served = ServedDatabases::default();
        served.insert(server_db::NAME, SERVER);
        served.insert_clustered("C", CLUSTERED, Some(applied.clone()));
        let locks = Arc::new(Mutex::new(Locks::new()));
        let epochs = SchemaEpochs::default();
        let mut frontend = Frontend::new(0, Arc::new(served), locks, epochs, Uuid::ZERO);
        frontend.opened(CLIENT, SessionInfo::new(false, String::new(), None));
        if watches {
            let session = frontend.sessions.get_mut(&CLIENT).expect("opened");
            session.monitors.insert(Arc::from(&b"1"[..]), SERVER);
        }
        (frontend, applied)
    }

    /// A database delivers an update.
    fn update(frontend: &mut Frontend, from: DatabaseId, text: &str) {
        let frame = Frame {
            head: text.into(),
            body: SharedBody::Whole(Arc::from(&b""[..])),
            tail: b"]}",
        };
        let deliver = Deliver {
            session: CLIENT,
            database: from,
            pieces: vec![Piece::Update(frame)],
            report_drained: true,
            completion: Completion::None,
        };
        frontend.message(0, ToShard::Deliver(deliver));
    }

    /// A database delivers an answer.
    fn deliver(frontend: &mut Frontend, from: DatabaseId, text: &str, completion: Completion) {
        if completion == Completion::Request {
            let session = frontend.sessions.get_mut(&CLIENT).expect("opened");
            session.begin(from, 1);
        }
        let deliver = Deliver {
            session: CLIENT,
            database: from,
            pieces: vec![Piece::Message(text.into())],
            report_drained: false,
            completion,
        };
        frontend.message(0, ToShard::Deliver(deliver));
    }

    /// The texts that the client has been sent, and whether a fence was sent to `_Server`.
    fn take(frontend: &mut Frontend) -> (String, bool) {
        let sent = frontend.outputs.send.drain(..);
        let sent = sent.map(|(_, piece)| match piece {
            Piece::Message(text) => String::from_utf8(text).expect("text"),
            Piece::Long(frame) | Piece::Update(frame) => {
                String::from_utf8(frame.head).expect("text")
            }
        });
        let sent = sent.collect::<Vec<_>>().join(" ");
        let is_fence = |(database, message): &(DatabaseId, ToDatabase)| {
            let is_it = matches!(message, ToDatabase::Fence(CLIENT, Completion::IndexFence));
            *database == SERVER && is_it
        };
        let fences = frontend.outputs.to_databases.drain(..);
        let fences = fences.filter(is_fence).count();
        assert!(fences <= 1);
        (sent, fences == 1)
    }

    fn pass_fence(frontend: &mut Frontend) {
        update(frontend, SERVER, "index");
        let deliver = Deliver {
            session: CLIENT,
            database: SERVER,
            pieces: Vec::new(),
            report_drained: false,
            completion: Completion::IndexFence,
        };
        frontend.message(0, ToShard::Deliver(deliver));
    }

    #[test]
    fn a_reply_follows_the_index_of_its_commit() {
        let (mut frontend, applied) = shard(true);
        let _ = applied.set(Index(2));
        deliver(&mut frontend, CLUSTERED, "a", Completion::Request);
        update(&mut frontend, CLUSTERED, "update");
        deliver(&mut frontend, CLUSTERED, "b", Completion::Request);
        assert_eq!(take(&mut frontend), (String::new(), true));
        pass_fence(&mut frontend);
        assert_eq!(take(&mut frontend), ("index a update b".to_owned(), false));
        // The reply to a transaction that was blocked completes no request.
        let _ = applied.set(Index(3));
        deliver(&mut frontend, CLUSTERED, "blocked", Completion::None);
        assert_eq!(take(&mut frontend), (String::new(), true));
        pass_fence(&mut frontend);
        assert_eq!(take(&mut frontend), ("index blocked".to_owned(), false));
        // No new index: the client already has it.
        deliver(&mut frontend, CLUSTERED, "c", Completion::Request);
        assert_eq!(take(&mut frontend), ("c".to_owned(), false));
    }

    #[test]
    fn a_commit_after_the_fence_has_a_fence_of_its_own() {
        let (mut frontend, applied) = shard(true);
        let _ = applied.set(Index(2));
        deliver(&mut frontend, CLUSTERED, "a", Completion::Request);
        assert_eq!(take(&mut frontend), (String::new(), true));
        let _ = applied.set(Index(3));
        deliver(&mut frontend, CLUSTERED, "b", Completion::Request);
        assert_eq!(take(&mut frontend), (String::new(), false));
        pass_fence(&mut frontend);
        assert_eq!(take(&mut frontend), ("index a".to_owned(), true));
        pass_fence(&mut frontend);
        assert_eq!(take(&mut frontend), ("index b".to_owned(), false));
    }

    #[test]
    fn others_wait_for_nothing() {
        let (mut frontend, applied) = shard(false);
        let _ = applied.set(Index(2));
        deliver(&mut frontend, CLUSTERED, "a", Completion::Request);
        assert_eq!(take(&mut frontend), ("a".to_owned(), false));
        let (mut frontend, applied) = shard(true);
        let _ = applied.set(Index(2));
        update(&mut frontend, CLUSTERED, "update");
        assert_eq!(take(&mut frontend), ("update".to_owned(), false));
    }

    #[test]
    fn a_session_that_is_closed_gets_what_was_posted_before() {
        let (mut frontend, applied) = shard(true);
        let _ = applied.set(Index(2));
        deliver(&mut frontend, CLUSTERED, "a", Completion::Request);
        let epoch = frontend.epochs.advance();
        frontend.message(0, ToShard::DisconnectUnaware(Arc::from("converted"), epoch));
        assert_eq!(take(&mut frontend), ("a".to_owned(), true));
        assert_eq!(frontend.outputs.close.len(), 1);
    }
}
