//! What a shard sends to the databases, collected through one wake-up of the shard.
//!
//! A wake-up of a database thread costs more than the request that it is woken for, so a shard that found many requests
//! sends them to each database at once, or does them itself. Messages to one database keep their order; those to different ones
//! have none.

use std::collections::HashMap;

use corvid_data::TrustedKeys;
use corvid_service::message::{DatabaseId, ToDatabase};

use crate::database::handle::DatabaseHandle;

/// The served databases, each with what is yet to be sent.
#[derive(Debug, Default)]
pub(crate) struct DatabaseQueues(HashMap<DatabaseId, Queue, TrustedKeys>);

#[derive(Debug)]
struct Queue {
    inbox: DatabaseHandle,
    messages: Vec<ToDatabase>,
}

impl DatabaseQueues {
    /// Databases came or went. Those that are kept, and those that go, get what was collected for them.
    pub(crate) fn replace(&mut self, inboxes: HashMap<DatabaseId, DatabaseHandle>) {
        self.post();
        let queue = |(database, inbox)| {
            let messages = Vec::new();
            (database, Queue { inbox, messages })
        };
        self.0 = inboxes.into_iter().map(queue).collect();
    }

    /// Adds a message; [`DatabaseQueues::post`] must follow. Messages to databases that are gone have no one to answer them.
    pub(crate) fn push(&mut self, database: DatabaseId, message: ToDatabase) {
        if let Some(queue) = self.0.get_mut(&database) {
            queue.messages.push(message);
        }
    }

    /// Sends what was collected, or does it.
    pub(crate) fn post(&mut self) {
        self.0
            .values_mut()
            .filter(|queue| !queue.messages.is_empty())
            .for_each(|queue| queue.inbox.send_or_execute(&mut queue.messages));
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
        let mut outbox = DatabaseQueues::default();
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
