//! A backup: the database applies its source's updates in order, and clients may only read.
//!
//! Invariants: while a database is a backup, only the source changes it. Contents are compared by a job on a snapshot, which stays true for
//! that reason. Messages that arrive meanwhile are queued. The connection learns only of consumed messages, so
//! it stops reading before the queue is long. Events and job results of an earlier time as a backup are ignored.

use std::collections::VecDeque;

use corvid_data::wire::StringCache;
use corvid_data::{Recorded, WireError};
use corvid_json::Pieces;

use super::transactions::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::job::garbage::Garbage;
use crate::job::{Job, JobNumber};
use crate::message::Event;
use crate::replication::difference::Contents;
use crate::replication::{
    Replication, ReplicationStatus, Role, SourceEvent, SourceId, SourceOrder, Step, read_update,
};

/// Longer messages are freed by the reaper, bytes.
const FREED_BYTES: usize = 1 << 20;

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
}

impl DatabaseService {
    /// The state of replication; `None`: the database is active.
    pub(super) fn backup_status(&self) -> Option<ReplicationStatus> {
        let backup = self.model.source()?;
        Some(backup.replication.status())
    }

    /// Changes roles while nothing is pending. Blocked transactions are tried in the new role.
    pub(super) fn set_role(&mut self, now: Now, role: Role, token: u64) {
        if self.model.cluster().is_some() {
            // The member decides the role of a clustered database.
            self.outputs.events.push(Event::RoleSet(token));
            return;
        }
        self.end_backup();
        if let Role::Backup(following) = role {
            let name = self.database.schema().name.to_string();
            self.model.begin_backup(Box::new(Backup {
                replication: Replication::new(&name, *following),
                connection: 0,
                comparing: None,
                queued: VecDeque::new(),
                strings: StringCache::default(),
            }));
            if self.conversion.is_some() {
                self.give_up_conversion(now, Some(&conversion_not_allowed(&name)));
            }
        }
        self.outputs.events.push(Event::RoleSet(token));
    }

    /// Ends being a backup: from here on clients may write.
    pub(super) fn end_backup(&mut self) {
        if let Some(backup) = self.model.end_backup() {
            self.outputs.free(messages(backup.queued));
        }
    }

    /// Handles an event of the connection to the source.
    pub(super) fn source(&mut self, now: Now, id: SourceId, event: SourceEvent) {
        let Some(backup) = self.model.source_mut().filter(|backup| backup.id() == id) else {
            return;
        };
        match event {
            SourceEvent::Connected(number) => {
                backup.connection = number;
                let mut steps = Vec::new();
                backup.replication.connected(&mut steps);
                self.carry_out(now, Vec::new(), steps);
            }
            SourceEvent::Disconnected => {
                backup.replication.disconnected();
                backup.comparing = None;
                let queued = std::mem::take(&mut backup.queued);
                if !queued.is_empty() {
                    self.outputs.free(messages(queued));
                }
            }
            SourceEvent::Message(text) => {
                backup.queued.push_back(text);
                self.apply_messages(now);
            }
        }
    }

    /// Applies queued messages, up to contents that must be compared.
    fn apply_messages(&mut self, now: Now) {
        while let Some(backup) = self.model.source_mut()
            && backup.comparing.is_none()
            && let Some(text) = backup.queued.pop_front()
        {
            let text = text.into_bytes();
            let bytes = text.len();
            let mut steps = Vec::new();
            let schema = self.database.schema();
            backup.replication.receive(&text, schema, &mut steps);
            let consumed = SourceOrder::Consumed(bytes);
            let consumed = (backup.id(), backup.connection, consumed);
            self.carry_out(now, text, steps);
            self.outputs.source_orders.push(consumed);
        }
    }

    /// Carries steps out, which may refer to `text`.
    fn carry_out(&mut self, now: Now, mut text: Vec<u8>, steps: Vec<Step>) {
        for step in steps {
            let Some(backup) = self.model.source_mut() else {
                return;
            };
            let (id, connection) = (backup.id(), backup.connection);
            let mut order = |order| self.outputs.source_orders.push((id, connection, order));
            match step {
                Step::Send(text) => order(SourceOrder::Send(text)),
                Step::Reconnect => order(SourceOrder::Reconnect),
                Step::Rest => order(SourceOrder::Rest),
                Step::Log(message) => self.outputs.events.push(Event::Replication(message)),
                Step::Contents(range, encoding) => {
                    self.last_job += 1;
                    let number = JobNumber(self.last_job);
                    backup.comparing = Some(number);
                    let contents = Contents {
                        text: std::mem::take(&mut text),
                        range,
                        encoding,
                        excluded: backup.replication.following().excluded.clone(),
                    };
                    self.outputs.jobs.push(Job::Compare {
                        number,
                        contents,
                        snapshot: self.database.snapshot(),
                    });
                }
                Step::Update(range, encoding) => {
                    let database = &self.database;
                    let recorded = read_update(
                        &text[range],
                        database.schema(),
                        encoding,
                        &mut backup.strings,
                        &|table, uuid| database.get(table, uuid).is_some(),
                    );
                    let applied = recorded.and_then(|recorded| self.replicate(now, recorded));
                    self.check_applied(now, applied);
                }
            }
        }
        if text.len() > FREED_BYTES {
            self.outputs.free(Garbage::new(text.len(), text));
        }
    }

    fn check_applied(&mut self, now: Now, applied: Result<(), WireError>) {
        if let (Err(error), Some(backup)) = (applied, self.model.source_mut()) {
            let mut steps = Vec::new();
            backup.replication.update_refused(error, &mut steps);
            self.carry_out(now, Vec::new(), steps);
        }
    }

    /// Applies the difference between our contents and the source's, which the job has found.
    pub(super) fn compared(
        &mut self,
        now: Now,
        number: JobNumber,
        found: Result<Recorded, WireError>,
    ) {
        let is_awaited = |backup: &&mut Backup| backup.comparing == Some(number);
        let Some(backup) = self.model.source_mut().filter(is_awaited) else {
            self.outputs
                .free(found.map_or_else(|error| Garbage::new(0, error), Garbage::recorded));
            return;
        };
        backup.comparing = None;
        let applied = found.and_then(|recorded| self.replicate(now, recorded));
        if let Some(backup) = self.model.source_mut() {
            let mut steps = Vec::new();
            match applied {
                Ok(()) => backup.replication.applied(),
                Err(error) => backup.replication.contents_refused(&error, &mut steps),
            }
            self.carry_out(now, Vec::new(), steps);
        }
        self.apply_messages(now);
        self.resume(now);
    }

    /// A commit from the source could not be stored and is undone.
    pub(super) fn source_not_stored(&mut self, now: Now) {
        if let Some(backup) = self.model.source_mut() {
            backup.comparing = None;
            let mut steps = Vec::new();
            backup.replication.not_stored(&mut steps);
            self.carry_out(now, Vec::new(), steps);
        }
    }
}

impl Backup {
    fn id(&self) -> SourceId {
        self.replication.following().id
    }
}

/// Messages that are not needed any more; there are few.
fn messages(messages: VecDeque<Pieces>) -> Garbage {
    let bytes = messages.iter().map(Pieces::len).sum();
    Garbage::new(bytes, messages)
}
