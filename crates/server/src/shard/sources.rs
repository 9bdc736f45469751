//! The connections of all backups to their sources, on shard 0: finds the connection of an event or
//! a request, and sends events to the connection's database.

use corvid_json::Pieces;
use corvid_net::clock::Now;
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_service::message::ToDatabase;
use corvid_service::replication::{SourceEvent, SourceId};

use super::ToSource;
use crate::remotes::source::SourceConnection;
use crate::shard::queues::DatabaseQueues;

/// All connections of backups to their sources.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<SourceConnection>);

impl Sources {
    fn of(&mut self, conn: ConnId) -> Option<&mut SourceConnection> {
        self.0.iter_mut().find(|source| source.conn() == Some(conn))
    }

    /// Handles an opened connection. Returns false if it is not one of these.
    pub(super) fn opened(&mut self, now: Now, conn: ConnId, queues: &mut DatabaseQueues) -> bool {
        let Some(source) = self.of(conn) else {
            return false;
        };
        let number = source.opened(now);
        send(source, SourceEvent::Connected(number), queues);
        true
    }

    /// Handles a message on a connection that may be one of these.
    pub(super) fn frame(
        &mut self,
        conn: ConnId,
        text: Pieces,
        io: &mut Io,
        queues: &mut DatabaseQueues,
    ) {
        if let Some(source) = self.of(conn)
            && let Some(text) = source.frame(conn, text, io)
        {
            send(source, SourceEvent::Message(text), queues);
        }
    }

    /// Handles the end of a connection. Returns false if it is not one of these.
    pub(super) fn closed(
        &mut self,
        now: Now,
        conn: ConnId,
        reason: &CloseReason,
        queues: &mut DatabaseQueues,
    ) -> bool {
        let Some(source) = self.of(conn) else {
            return false;
        };
        source.closed(now, reason);
        send(source, SourceEvent::Disconnected, queues);
        true
    }

    pub(super) fn message(&mut self, now: Now, id: SourceId, message: ToSource, io: &mut Io) {
        if let ToSource::Open(database, name, options) = message {
            let mut source = SourceConnection::new(now, id, database, name, options);
            source.run(now, io);
            self.0.push(source);
            return;
        }
        // The connection may already be closed.
        let Some(index) = self.0.iter().position(|source| source.id() == id) else {
            return;
        };
        match message {
            ToSource::Open(..) => {}
            ToSource::SetOptions(options) => {
                self.0[index].set_options(options);
                self.0[index].run(now, io);
            }
            ToSource::Order(connection, order) => {
                self.0[index].order(now, connection, order, io);
            }
            ToSource::Close => self.0.swap_remove(index).close(io),
        }
    }

    /// Runs all connections.
    pub(super) fn run(&mut self, now: Now, io: &mut Io) {
        for source in &mut self.0 {
            source.run(now, io);
        }
    }

    /// When [`Sources::run`] is due, monotonic ms; in the past if it is late.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.0
            .iter()
            .filter_map(SourceConnection::deadline_ms)
            .min()
    }
}

fn send(source: &SourceConnection, event: SourceEvent, queues: &mut DatabaseQueues) {
    let event = ToDatabase::Source(source.id(), event);
    queues.push(source.database(), event);
}
