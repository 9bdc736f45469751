//! The connections of backups to what they follow, all on one shard: whose is whose, and what their databases are told.

use corvid_json::Pieces;
use corvid_net::clock::Now;
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_service::message::ToDatabase;
use corvid_service::replication::{SourceEvent, SourceId};

use super::ToSource;
use crate::remotes::source::SourceConnection;
use crate::shard::queues::DatabaseQueues;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<SourceConnection>);

impl Sources {
    fn of(&mut self, conn: ConnId) -> Option<&mut SourceConnection> {
        self.0.iter_mut().find(|source| source.conn() == Some(conn))
    }

    /// A connection stands; false when it is none of these.
    pub(super) fn opened(&mut self, now: Now, conn: ConnId, outbox: &mut DatabaseQueues) -> bool {
        let Some(source) = self.of(conn) else {
            return false;
        };
        let number = source.opened(now);
        tell(source, SourceEvent::Connected(number), outbox);
        true
    }

    /// A text has arrived on a connection that may be one of these.
    pub(super) fn frame(
        &mut self,
        conn: ConnId,
        text: Pieces,
        io: &mut Io,
        outbox: &mut DatabaseQueues,
    ) {
        if let Some(source) = self.of(conn)
            && let Some(text) = source.frame(conn, text, io)
        {
            tell(source, SourceEvent::Message(text), outbox);
        }
    }

    /// A connection has ended; false when it is none of these.
    pub(super) fn closed(
        &mut self,
        now: Now,
        conn: ConnId,
        reason: &CloseReason,
        outbox: &mut DatabaseQueues,
    ) -> bool {
        let Some(source) = self.of(conn) else {
            return false;
        };
        source.closed(now, reason);
        tell(source, SourceEvent::Disconnected, outbox);
        true
    }

    pub(super) fn message(&mut self, now: Now, id: SourceId, message: ToSource, io: &mut Io) {
        if let ToSource::Open(database, name, options) = message {
            let mut source = SourceConnection::new(now, id, database, name, options);
            source.run(now, io);
            self.0.push(source);
            return;
        }
        // It may be closed already: then nobody waits for anything.
        let Some(place) = self.0.iter().position(|source| source.id() == id) else {
            return;
        };
        match message {
            ToSource::Open(..) => {}
            ToSource::SetOptions(options) => {
                self.0[place].set_options(options);
                self.0[place].run(now, io);
            }
            ToSource::Order(connection, order) => {
                self.0[place].order(now, connection, order, io);
            }
            ToSource::Close => self.0.swap_remove(place).close(io),
        }
    }

    /// Does what is due.
    pub(super) fn run(&mut self, now: Now, io: &mut Io) {
        for source in &mut self.0 {
            source.run(now, io);
        }
    }

    /// When that is.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.0
            .iter()
            .filter_map(SourceConnection::deadline_ms)
            .min()
    }
}

fn tell(source: &SourceConnection, event: SourceEvent, outbox: &mut DatabaseQueues) {
    let event = ToDatabase::Source(source.id(), event);
    outbox.push(source.database(), event);
}
