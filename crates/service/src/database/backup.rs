//! A backup: the database applies its source's updates in order, and clients may only read.
//!
//! Invariants: while a database is a backup, only the source changes it. Contents are compared by a
//! job on a snapshot, which stays true for that reason. Messages that arrive meanwhile are queued.
//! The connection learns only of consumed messages, so it stops reading before the queue is long.
//! Events and job results of an earlier time as a backup are ignored.
//!
//! The backup returns each change of its source ([`Backup::advance`]) and is told whether it could
//! be applied. It changes no row itself.

use std::collections::VecDeque;

use corvid_data::wire::StringCache;
use corvid_data::{Recorded, Schema, WireError};
use corvid_engine::Database;
use corvid_json::Pieces;

use crate::job::garbage::Garbage;
use crate::job::{Job, JobNumber};
use crate::message::Event;
use crate::replication::difference::Contents;
use crate::replication::{
    Following, Replication, ReplicationStatus, SourceId, SourceOrder, Step, read_update,
};
use crate::replies::Outputs;

/// Longer messages are freed by the reaper, bytes.
const FREED_BYTES: usize = 1 << 20;

/// A change of the source, or why its text is none.
pub(super) type Change = Result<Recorded, WireError>;

/// The state of a backup besides its rows.
pub(super) struct Backup {
    replication: Replication,
    /// The number of the connection.
    connection: u64,
    /// The comparison of contents that is under way.
    comparing: Option<JobNumber>,
    /// Messages that arrived since it began.
    queued: VecDeque<Pieces>,
    strings: StringCache,
    /// Steps that are left; those of a message refer to its text.
    steps: VecDeque<Step>,
    text: Vec<u8>,
    /// The length of the message that is being carried out.
    message_bytes: Option<usize>,
}

impl Backup {
    /// A backup of the database with this name, which has not connected to its source.
    pub(super) fn new(database: &str, following: Following) -> Backup {
        Backup {
            replication: Replication::new(database, following),
            connection: 0,
            comparing: None,
            queued: VecDeque::new(),
            strings: StringCache::default(),
            steps: VecDeque::new(),
            text: Vec::new(),
            message_bytes: None,
        }
    }

    /// The number of its source.
    pub(super) fn id(&self) -> SourceId {
        self.replication.following().id
    }

    /// The state of replication.
    pub(super) fn status(&self) -> ReplicationStatus {
        self.replication.status()
    }

    /// The connection with this number to the source begins.
    pub(super) fn connect(&mut self, number: u64) {
        self.connection = number;
        self.take_steps(Replication::connected);
    }

    /// The connection has ended. Messages of it are dropped.
    pub(super) fn disconnect(&mut self, outputs: &mut Outputs) {
        self.replication.disconnected();
        self.comparing = None;
        let queued = std::mem::take(&mut self.queued);
        if !queued.is_empty() {
            outputs.free(messages(queued));
        }
    }

    /// A message has come.
    pub(super) fn queue(&mut self, text: Pieces) {
        self.queued.push_back(text);
    }

    /// Works until the next change of the source, which it returns, or until nothing can be done.
    /// Further messages are begun only if `takes_messages`.
    pub(super) fn advance(
        &mut self,
        database: &Database,
        outputs: &mut Outputs,
        takes_messages: bool,
    ) -> Option<Change> {
        loop {
            while let Some(step) = self.steps.pop_front() {
                if let Some(change) = self.carry_out(step, database, outputs) {
                    return Some(change);
                }
            }
            self.end_message(outputs);
            // Later messages change the contents that are being compared.
            if !takes_messages || self.comparing.is_some() {
                return None;
            }
            let text = self.queued.pop_front()?;
            self.begin_message(text.into_bytes(), database.schema());
        }
    }

    fn begin_message(&mut self, text: Vec<u8>, schema: &Schema) {
        assert!(
            self.message_bytes.is_none() && self.steps.is_empty(),
            "a message of the source follows the steps of the one before"
        );
        self.message_bytes = Some(text.len());
        self.take_steps(|replication, steps| replication.receive(&text, schema, steps));
        self.text = text;
    }

    fn end_message(&mut self, outputs: &mut Outputs) {
        let text = std::mem::take(&mut self.text);
        if text.len() > FREED_BYTES {
            outputs.free(Garbage::new(text.len(), text));
        }
        if let Some(bytes) = self.message_bytes.take() {
            self.order(SourceOrder::Consumed(bytes), outputs);
        }
    }

    fn order(&self, order: SourceOrder, outputs: &mut Outputs) {
        let order = (self.id(), self.connection, order);
        outputs.source_orders.push(order);
    }

    /// Carries a step out. Returns the change of the source, if it is one.
    fn carry_out(
        &mut self,
        step: Step,
        database: &Database,
        outputs: &mut Outputs,
    ) -> Option<Change> {
        match step {
            Step::Send(text) => self.order(SourceOrder::Send(text), outputs),
            Step::Reconnect => self.order(SourceOrder::Reconnect, outputs),
            Step::Rest => self.order(SourceOrder::Rest, outputs),
            Step::Log(message) => outputs.events.push(Event::Replication(message)),
            Step::Contents(range, encoding) => {
                let number = outputs.number_job();
                self.comparing = Some(number);
                let contents = Contents {
                    text: std::mem::take(&mut self.text),
                    range,
                    encoding,
                    excluded: self.replication.following().excluded.clone(),
                };
                outputs.jobs.push(Job::Compare {
                    number,
                    contents,
                    snapshot: database.snapshot(),
                });
            }
            Step::Update(range, encoding) => {
                return Some(read_update(
                    &self.text[range],
                    database.schema(),
                    encoding,
                    &mut self.strings,
                    &|table, uuid| database.get(table, uuid).is_some(),
                ));
            }
        }
        None
    }

    /// The last change does not fit: what follows from that comes before the steps that are left.
    pub(super) fn refuse_update(&mut self, error: WireError) {
        let mut steps = Vec::new();
        self.replication.update_refused(error, &mut steps);
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }

    /// Ends the comparison with this number. False if it is not the one under way.
    pub(super) fn end_comparison(&mut self, number: JobNumber) -> bool {
        self.comparing
            .take_if(|awaited| *awaited == number)
            .is_some()
    }

    /// The contents are those of the source, or do not fit.
    pub(super) fn take_contents(&mut self, applied: Result<(), WireError>) {
        match applied {
            Ok(()) => self.replication.applied(),
            Err(error) => {
                self.take_steps(|replication, steps| replication.contents_refused(&error, steps));
            }
        }
    }

    /// A commit from the source could not be stored and is undone.
    pub(super) fn undo(&mut self) {
        self.comparing = None;
        self.take_steps(Replication::not_stored);
    }

    fn take_steps(&mut self, of: impl FnOnce(&mut Replication, &mut Vec<Step>)) {
        let mut steps = Vec::new();
        of(&mut self.replication, &mut steps);
        self.steps.extend(steps);
    }

    /// The messages that are not applied.
    pub(super) fn into_garbage(self) -> Garbage {
        messages(self.queued)
    }
}

/// Messages that are no longer needed; there are few.
fn messages(messages: VecDeque<Pieces>) -> Garbage {
    let bytes = messages.iter().map(Pieces::len).sum();
    Garbage::new(bytes, messages)
}

#[cfg(test)]
mod tests {
    use corvid_data::{Arc, HashSeed, Uuid};
    use corvid_json::Value;

    use super::*;
    use crate::message::DatabaseId;
    use crate::replication::Exclusions;

    const SOURCE: SourceId = SourceId(1);

    fn database() -> Database {
        let schema = Value::parse(br#"{"name":"D","tables":{}}"#).expect("JSON");
        let schema = Schema::from_json(&schema).expect("a schema");
        Database::new(Arc::new(schema), HashSeed::FIXED)
    }

    fn backup() -> Backup {
        let following = Following {
            id: SOURCE,
            excluded: Exclusions::of("D", ""),
            server_id: Uuid::ZERO,
        };
        Backup::new("D", following)
    }

    #[test]
    fn a_message_is_consumed_when_its_steps_are_carried_out() {
        let (database, mut outputs) = (database(), Outputs::new(DatabaseId(0)));
        let mut backup = backup();
        backup.connect(5);
        assert!(backup.advance(&database, &mut outputs, false).is_none());
        assert!(matches!(
            outputs.source_orders[..],
            [(SOURCE, 5, SourceOrder::Send(_))]
        ));
        outputs.source_orders.clear();
        let text = br#"{"id":1,"result":"a","error":null}"#.to_vec();
        let bytes = text.len();
        backup.queue(text.into());
        assert!(backup.advance(&database, &mut outputs, true).is_none());
        let last = outputs.source_orders.last();
        assert_eq!(last, Some(&(SOURCE, 5, SourceOrder::Consumed(bytes))));
        assert!(
            outputs.source_orders.len() > 1,
            "the next question is first"
        );
    }

    #[test]
    fn messages_wait_for_the_comparison_and_go_with_their_connection() {
        let (database, mut outputs) = (database(), Outputs::new(DatabaseId(0)));
        let mut backup = backup();
        backup.connect(5);
        assert!(backup.advance(&database, &mut outputs, true).is_none());
        outputs.source_orders.clear();
        backup.comparing = Some(JobNumber(3));
        backup.queue(br#"{"id":1,"result":"a","error":null}"#.to_vec().into());
        assert!(backup.advance(&database, &mut outputs, true).is_none());
        assert!(outputs.source_orders.is_empty(), "it is not consumed");
        assert!(!backup.end_comparison(JobNumber(2)), "of an earlier time");
        backup.disconnect(&mut outputs);
        assert!(!backup.end_comparison(JobNumber(3)));
        assert!(backup.advance(&database, &mut outputs, true).is_none());
        assert!(outputs.source_orders.is_empty());
        assert_eq!(outputs.jobs.len(), 1, "the reaper frees the message");
    }
}
