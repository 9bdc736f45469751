//! Notifications about locks (`locked`, `stolen`), and replies that must follow them.
//!
//! Invariant: a session gets a notification after the updates of every commit before the change of ownership. So each notification waits
//! for a fence in every database that the session monitors, and later notifications and local replies wait behind it. Any session can steal
//! locks, so their number is limited ([`NOTIFICATIONS_MAX`]): a session with more is closed.

use std::sync::Arc;

use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::session::{NOTIFICATIONS_MAX, PendingNotification};
use super::{Close, Frontend, shard_of};
use crate::locks::LockNotification;
use crate::message::{DatabaseId, Piece, ToShard};

impl Frontend {
    /// Has a session get its notifications from the lock table.
    pub(super) fn wake(&mut self, session: SessionId) {
        let shard = shard_of(session);
        if shard == self.shard {
            self.send_lock_notifications(session);
        } else {
            self.outputs
                .to_shards
                .push((shard, ToShard::LockNotifications(session)));
        }
    }

    /// Sends a session its notifications from the lock table.
    pub(super) fn send_lock_notifications(&mut self, id: SessionId) {
        let notifications = self.lock_table().take_notifications(id);
        self.queue_notifications(id, notifications);
    }

    /// Notifies a session of changes of its locks, after the updates of all commits so far.
    pub(super) fn queue_notifications(
        &mut self,
        id: SessionId,
        notifications: Vec<LockNotification>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.is_dismissed {
            return;
        }
        for notification in notifications {
            if session.notifications.len() >= NOTIFICATIONS_MAX {
                if !session.is_closing {
                    let why = Arc::from("its locks change hands faster than its databases answer");
                    self.close(id, Close::Disconnect(why));
                }
                return;
            }
            let awaits = self.outputs.fence_notification(id, session.monitored());
            let params = Value::Array(vec![Value::string(&notification.lock)]).to_bytes();
            let mut text = Vec::new();
            message::write_notification(&mut text, notification.method, &params);
            if awaits.is_empty() && session.notifications.is_empty() {
                self.outputs.send.push((id, Piece::Message(text)));
                continue;
            }
            session.notifications.push_back(PendingNotification {
                awaits,
                text,
                is_reply: false,
            });
        }
    }

    /// A fence has been passed: sends the notifications and replies that waited for it alone. True if a request is complete by that.
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
            self.outputs.send.push((id, Piece::Message(passed.text)));
        }
        has_replied
    }

    /// Answers a request behind the updates of all commits so far, and the pending notifications about locks.
    pub(super) fn reply_behind_updates(&mut self, id: SessionId, text: Vec<u8>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let awaits = self.outputs.fence_notification(id, session.monitored());
        if awaits.is_empty() && session.notifications.is_empty() {
            self.outputs.send.push((id, Piece::Message(text)));
            return;
        }
        session.in_flight.begin(0);
        session.notifications.push_back(PendingNotification {
            awaits,
            text,
            is_reply: true,
        });
    }

    /// Answers a request, after the pending notifications about locks.
    pub(super) fn reply_after_notifications(&mut self, id: SessionId, text: Vec<u8>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if session.notifications.is_empty() {
            self.outputs.send.push((id, Piece::Message(text)));
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

    #[test]
    fn a_session_whose_locks_change_hands_faster_than_its_databases_answer_is_closed() {
        let locks = Arc::new(Mutex::new(Locks::new()));
        let mut served = ServedDatabases::default();
        served.insert("D", DatabaseId(0));
        let mut frontend = Frontend::new(
            0,
            Arc::new(served),
            locks,
            SchemaEpochs::default(),
            Uuid::ZERO,
        );
        let victim = SessionId(7);
        frontend.opened(victim, SessionInfo::new(false, String::new(), None));
        let session = frontend.sessions.get_mut(&victim).expect("opened");
        let monitor: Arc<[u8]> = Arc::from(&b"1"[..]);
        session.monitors.insert(monitor, DatabaseId(0));
        let notifications = |count| {
            let notification = LockNotification {
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
