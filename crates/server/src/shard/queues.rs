//! What a shard sends to the databases, collected through one wake-up of the shard.
//!
//! A wake-up of a database thread costs more than the request that it is woken for, so a shard that found many requests
//! sends them to each database at once, or does them itself. Messages to one database keep their order; those to different ones
//! have none.

use std::collections::HashMap;

use corvid_data::TrustedKeys;
use corvid_service::message::{DatabaseId, ToDatabase};

use crate::database::handle::Inbox;

/// The served databases, each with what is yet to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(HashMap<DatabaseId, Lane, TrustedKeys>);

#[derive(Debug)]
struct Lane {
    inbox: Inbox,
    messages: Vec<ToDatabase>,
}

impl Outbox {
    /// Databases came or went. Those that are kept, and those that go, get what was collected for them.
    pub(crate) fn replace(&mut self, inboxes: HashMap<DatabaseId, Inbox>) {
        self.post();
        let lane = |(database, inbox)| {
            let messages = Vec::new();
            (database, Lane { inbox, messages })
        };
        self.0 = inboxes.into_iter().map(lane).collect();
    }

    /// Adds a message; [`Outbox::post`] must follow. Messages to databases that are gone have no one to answer them.
    pub(crate) fn push(&mut self, database: DatabaseId, message: ToDatabase) {
        if let Some(lane) = self.0.get_mut(&database) {
            lane.messages.push(message);
        }
    }

    /// Sends what was collected, or does it.
    pub(crate) fn post(&mut self) {
        self.0
            .values_mut()
            .filter(|lane| !lane.messages.is_empty())
            .for_each(|lane| lane.inbox.send_and_work(&mut lane.messages));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::handle::tests::database;
    use corvid_monitor::SessionId;

    #[test]
    fn a_removed_database_gets_what_was_meant_for_it() {
        let (mailbox, inbox) = database();
        let mut outbox = Outbox::default();
        outbox.replace(HashMap::from([(DatabaseId(1), inbox)]));
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
