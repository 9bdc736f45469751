//! Notifications about locks (`locked`, `stolen`), and replies that must follow them.
//!
//! Invariant: a session gets a notification after the updates of every commit that preceded the
//! change of ownership. So each notification waits for a fence in every database that the session
//! monitors, and later notifications and local replies are queued after it. Any session can steal
//! locks, so the queue is limited ([`NOTIFICATIONS_MAX`]): a session that exceeds the limit is
//! closed.

use std::sync::Arc;

use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::local_requests::locked;
use super::session::{NOTIFICATIONS_MAX, PendingNotification};
use super::{Close, Frontend, shard_of};
use crate::locks::LockNotification;
use crate::message::{DatabaseId, Piece, ToDatabase, ToShard, message_piece};

impl Frontend {
    /// Tells these sessions that the lock table has notifications for them, and relays that it has
    /// claims for their sources.
    pub(super) fn pass_on_locks(&mut self, notified: impl IntoIterator<Item = SessionId>) {
        let relays = self.lock_table().relays_with_claims();
        for relay in relays {
            let claims = (relay, ToDatabase::LockClaims);
            self.outputs.to_databases.push(claims);
        }
        for session in notified {
            let shard = shard_of(session);
            if shard == self.shard && !self.awaits_lock(session) {
                let notifications = self.lock_table().take_notifications(session);
                self.queue_notifications(session, notifications);
            } else {
                let notifications = ToShard::LockNotifications(session);
                self.outputs.to_shards.push((shard, notifications));
            }
        }
    }

    /// Whether the source of a relay is deciding on a lock request of the session, whose later
    /// messages wait for that.
    pub(super) fn awaits_lock(&self, id: SessionId) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| session.lock_request.is_some())
    }

    /// Sends a session its notifications from the lock table.
    pub(super) fn send_lock_notifications(&mut self, now_ms: u64, id: SessionId) {
        let notifications = self.lock_table().take_notifications(id);
        if self.queue_notifications(id, notifications) {
            self.resume_if_room(now_ms, id);
        }
    }

    /// Queues a session's notifications from the lock table after the updates of all commits so
    /// far. Returns true if that completed a request.
    pub(super) fn queue_notifications(
        &mut self,
        id: SessionId,
        notifications: Vec<LockNotification>,
    ) -> bool {
        let mut has_replied = false;
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if session.is_dismissed {
            return false;
        }
        for notification in notifications {
            if session.notifications.len() >= NOTIFICATIONS_MAX {
                if !session.is_closing {
                    let why = Arc::from("its locks change hands faster than its databases answer");
                    self.close(id, Close::Disconnect(why));
                }
                return has_replied;
            }
            // The lock has already changed hands. Everything its previous owner has committed
            // precedes these fences, so the session sees it before the notification.
            let awaits = self.outputs.fence_notification(id, session.monitored());
            let mut text = Vec::new();
            let is_reply = match notification {
                LockNotification::Changed { method, lock } => {
                    let params = Value::Array(vec![Value::string(&lock)]).to_bytes();
                    message::write_notification(&mut text, method, &params);
                    false
                }
                LockNotification::Answer(answer) => {
                    let Some(request) = session.lock_request.take() else {
                        continue;
                    };
                    match answer {
                        Ok(is_owner) => {
                            message::write_reply(&mut text, &request, &locked(is_owner));
                        }
                        Err(error) => message::write_error_reply(&mut text, &request, &error),
                    }
                    true
                }
            };
            // Short: the names of locks are limited, and so are the errors of a relay's source.
            let text = message_piece(&self.memory, text);
            // A notification without fences still waits for earlier ones.
            if awaits.is_empty() && session.notifications.is_empty() {
                self.outputs.send.push((id, text));
                if is_reply {
                    session.in_flight.end();
                    has_replied = true;
                }
                continue;
            }
            session.notifications.push_back(PendingNotification {
                awaits,
                text,
                is_reply,
            });
        }
        has_replied
    }

    /// A fence has been passed: sends the notifications and replies that waited for nothing else.
    /// Returns true if that completed a request.
    pub(super) fn fence_passed(&mut self, id: SessionId, database: DatabaseId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let mut has_replied = false;
        for passed in session.pass_fence(database) {
            if passed.is_reply {
                session.in_flight.end();
                has_replied = true;
            }
            self.outputs.send.push((id, passed.text));
        }
        has_replied
    }

    /// Answers a request after the updates of all commits so far and the pending notifications
    /// about locks.
    pub(super) fn reply_behind_updates(&mut self, id: SessionId, text: Piece) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let awaits = self.outputs.fence_notification(id, session.monitored());
        if awaits.is_empty() && session.notifications.is_empty() {
            self.outputs.send.push((id, text));
            return;
        }
        // Later requests, even for the same database as the last one, must be answered after this
        // reply. Only an `echo` can find requests in flight; it does not delay the requests after
        // it.
        if session.in_flight.is_empty() {
            session.target = None;
        }
        session.in_flight.begin(0);
        session.notifications.push_back(PendingNotification {
            awaits,
            text,
            is_reply: true,
        });
    }

    /// Answers a request after the pending notifications about locks.
    pub(super) fn reply_after_notifications(&mut self, id: SessionId, text: Piece) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.notifications.is_empty() {
            self.outputs.send.push((id, text));
            return;
        }
        session.in_flight.begin(0);
        session.target = None;
        session.notifications.push_back(PendingNotification {
            awaits: Vec::new(),
            text,
            is_reply: true,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use corvid_data::Uuid;

    use super::*;
    use crate::locks::Locks;
    use crate::message::SessionInfo;
    use crate::schema_epoch::SchemaEpochs;
    use crate::served_databases::ServedDatabases;

    /// The frontend of a server with the databases `D` (0) and `E` (1), and a session that monitors
    /// `D`.
    fn monitoring() -> (Frontend, SessionId) {
        let locks = Arc::new(Mutex::new(Locks::new()));
        let mut served = ServedDatabases::default();
        served.insert("D", DatabaseId(0));
        served.insert("E", DatabaseId(1));
        let (served, epochs) = (Arc::new(served), SchemaEpochs::default());
        let mut frontend = Frontend::new(0, served, locks, epochs, Uuid::ZERO);
        let id = SessionId(7);
        frontend.opened(id, SessionInfo::new(false, String::new(), None));
        let session = frontend.sessions.get_mut(&id).expect("opened");
        let monitor: Arc<[u8]> = Arc::from(&b"1"[..]);
        session.monitors.insert(monitor, DatabaseId(0));
        (frontend, id)
    }

    #[test]
    fn a_request_does_not_overtake_the_reply_to_a_lock() {
        let (mut frontend, id) = monitoring();
        let admits = |frontend: &mut Frontend, database| {
            let session = frontend.sessions.get_mut(&id).expect("opened");
            session.admits(DatabaseId(database))
        };
        // The session's last request was for `E` and is complete.
        let session = frontend.sessions.get_mut(&id).expect("opened");
        session.begin(DatabaseId(1), 10);
        session.in_flight.end();
        frontend.reply_behind_updates(id, Piece::Message(b"locked".to_vec()));
        assert!(!admits(&mut frontend, 0) && !admits(&mut frontend, 1));
        assert!(frontend.fence_passed(id, DatabaseId(0)), "the reply leaves");
        assert!(admits(&mut frontend, 1));
    }

    #[test]
    fn a_session_whose_locks_change_hands_faster_than_its_databases_answer_is_closed() {
        let (mut frontend, victim) = monitoring();
        let notifications = |count| {
            let notification = LockNotification::Changed {
                method: "stolen",
                lock: "L".to_owned(),
            };
            vec![notification; count]
        };
        frontend.queue_notifications(victim, notifications(NOTIFICATIONS_MAX));
        assert_eq!(frontend.outputs.close, []);
        frontend.queue_notifications(victim, notifications(2));
        frontend.queue_notifications(victim, notifications(1));
        assert_eq!(frontend.outputs.close.len(), 1, "once");
        assert_eq!(
            frontend.sessions[&victim].notifications.len(),
            NOTIFICATIONS_MAX
        );
    }
}
