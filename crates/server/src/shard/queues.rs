//! A shard's messages to the databases, collected during one wake-up of the shard.
//!
//! Waking a database's thread costs more than a small request, so a shard posts all requests for a
//! database at once, or executes them itself. Messages to one database keep their order; messages
//! to different databases have no order.

use std::collections::HashMap;

use corvid_data::TrustedKeys;
use corvid_service::message::{DatabaseId, ToDatabase};

use crate::database::handle::DatabaseHandle;

/// The served databases, each with its unsent messages.
#[derive(Debug, Default)]
pub(crate) struct DatabaseQueues(HashMap<DatabaseId, Queue, TrustedKeys>);

#[derive(Debug)]
struct Queue {
    handle: DatabaseHandle,
    messages: Vec<ToDatabase>,
}

impl DatabaseQueues {
    /// Replaces the set of databases. All collected messages are posted first, including those to
    /// databases that are being removed.
    pub(crate) fn replace(&mut self, handles: HashMap<DatabaseId, DatabaseHandle>) {
        self.post();
        let queue = |(database, handle)| {
            let messages = Vec::new();
            (database, Queue { handle, messages })
        };
        self.0 = handles.into_iter().map(queue).collect();
    }

    /// Adds a message, which the next [`DatabaseQueues::post`] posts. A message to a database that
    /// is not served is dropped.
    pub(crate) fn push(&mut self, database: DatabaseId, message: ToDatabase) {
        if let Some(queue) = self.0.get_mut(&database) {
            queue.messages.push(message);
        }
    }

    /// Posts the collected messages, or executes them inline.
    pub(crate) fn post(&mut self) {
        self.0
            .values_mut()
            .filter(|queue| !queue.messages.is_empty())
            .for_each(|queue| queue.handle.send_or_execute(&mut queue.messages));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::handle::tests::database;
    use corvid_monitor::SessionId;

    #[test]
    fn a_removed_database_gets_its_collected_messages() {
        let (mailbox, handle) = database();
        let mut queues = DatabaseQueues::default();
        queues.replace(HashMap::from([(DatabaseId(1), handle)]));
        queues.push(DatabaseId(1), ToDatabase::Drained(SessionId(7)));
        queues.push(DatabaseId(2), ToDatabase::Drained(SessionId(8)));
        queues.replace(HashMap::new());
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
