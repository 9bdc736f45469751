//! What a shard sends to the databases, collected through one wake-up of the shard.
//!
//! A wake-up of a database thread costs more than the request that it is woken for, so a shard that found many requests
//! wakes each database once. Messages to one database keep their order; those to different ones have none.

use std::collections::HashMap;

use corvid_os::mailbox::MailSender;
use corvid_service::message::{DatabaseId, ToDatabase};

/// A long batch is sent in parts, so that the database works while the shard still parses.
const PART: usize = 32;

/// The queues of the served databases, each with what is yet to be sent.
#[derive(Debug, Default)]
pub struct Outbox(HashMap<DatabaseId, Lane>);

#[derive(Debug)]
struct Lane {
    inbox: MailSender<ToDatabase>,
    messages: Vec<ToDatabase>,
}

impl Outbox {
    /// Databases came or went. Those that are kept, and those that go, get what was collected for them.
    pub fn replace(&mut self, inboxes: HashMap<DatabaseId, MailSender<ToDatabase>>) {
        self.post();
        let lane = |(database, inbox)| {
            let messages = Vec::new();
            (database, Lane { inbox, messages })
        };
        self.0 = inboxes.into_iter().map(lane).collect();
    }

    /// Adds a message; [`Outbox::post`] must follow. Messages to databases that are gone have no one to answer them.
    pub fn push(&mut self, database: DatabaseId, message: ToDatabase) {
        if let Some(lane) = self.0.get_mut(&database) {
            lane.messages.push(message);
            if lane.messages.len() >= PART {
                lane.post();
            }
        }
    }

    /// Sends what was collected.
    pub fn post(&mut self) {
        self.0
            .values_mut()
            .filter(|lane| !lane.messages.is_empty())
            .for_each(Lane::post);
    }
}

impl Lane {
    fn post(&mut self) {
        // A database thread ends only after every shard has dropped its queue.
        let _ = self.inbox.send_batch(self.messages.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_monitor::SessionId;
    use corvid_os::mailbox::Mailbox;

    #[test]
    fn a_removed_database_gets_what_was_meant_for_it() {
        let mailbox = Mailbox::new();
        let mut outbox = Outbox::default();
        outbox.replace(HashMap::from([(DatabaseId(1), mailbox.sender())]));
        outbox.push(DatabaseId(1), ToDatabase::Drained(SessionId(7)));
        outbox.push(DatabaseId(2), ToDatabase::Drained(SessionId(8)));
        outbox.replace(HashMap::new());
        let mut arrived = Vec::new();
        assert!(mailbox.receive(&mut arrived, None));
        assert!(matches!(
            arrived.as_slice(),
            [ToDatabase::Drained(SessionId(7))]
        ));
        arrived.clear();
        assert!(!mailbox.receive(&mut arrived, None), "no sender is left");
    }
}
