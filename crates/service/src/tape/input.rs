//! Inputs of a database as bytes: the table of their numbers and fields.
//!
//! Omitted are only parts that the database does not read: the stamp of a request, and the result
//! of a job, which the replay executes again, unless it came from files. A session is described
//! with its first request. `message/control.rs` has the form of control messages.

use std::collections::HashMap;
use std::sync::Arc;

use corvid_data::{TrustedKeys, Uuid};
use corvid_json::Pieces;
use corvid_log::storage::{
    FileSize, LogPosition, RewriteNumber, RewriteStage, StorageReply, StoreError,
};
use corvid_monitor::SessionId;

use crate::codec::{Damage, Reader, Recordable, Writer, recorded};
use crate::job::{JobKey, JobNumber, JobResult};
use crate::message::{Completion, DatabaseMethod, Request, SessionInfo, ToDatabase};
use crate::once::Once;
use crate::read_history::PastRead;
use crate::relayed_client::RelayedClient;
use crate::replication::SourceEvent;
use crate::schema_epoch::SchemaEpoch;

/// Descriptions of sessions, by id.
pub(super) type Sessions = HashMap<SessionId, Arc<SessionInfo>, TrustedKeys>;

/// A recorded input.
pub(crate) enum Input {
    Plain(ToDatabase),
    /// The result of this job; the flag says that it was refused because memory was exhausted.
    Done(JobKey, bool),
    /// The outcome of a search in files, which a replay does not have.
    PastRead(JobNumber, Option<Box<PastRead>>),
}

const REQUEST: u64 = 0;
const DONE: u64 = 7;
const PAST_READ: u64 = 10;

/// A transaction that is executed once; stands in place of the method's number.
const TRANSACT_ONCE: u64 = DatabaseMethod::ALL.len() as u64;
/// A transaction of a relay's client, whether or not it is executed once.
const TRANSACT_FOR: u64 = TRANSACT_ONCE + 1;

/// Makes the writer and the reader of inputs whose form depends only on themselves.
macro_rules! inputs {
    ($($number:literal ($($field:ident),*) => [$($form:tt)*];)* except $($other:pat),*) => {
        /// Writes the number and the fields of such an input.
        fn write_plain(out: &mut Writer<'_>, input: &ToDatabase) {
            match input {
                $($($form)* => {
                    out.number($number);
                    $($field.write(out);)*
                })*
                $($other)|* => unreachable!("it has a form of its own, or its database is not recorded"),
            }
        }

        /// Reads the fields of the input with this number.
        fn read_plain(number: u64, from: &mut Reader<'_>) -> Result<ToDatabase, Damage> {
            match number {
                $($number => {
                    $(let $field = Recordable::read(from)?;)*
                    Ok($($form)*)
                })*
                _ => Err(Damage::unknown()),
            }
        }
    };
}

inputs! {
    1 (session, id) => [ToDatabase::Cancel(session, id)];
    2 (session, completion) => [ToDatabase::Fence(session, completion)];
    3 (session) => [ToDatabase::Drained(session)];
    4 (session) => [ToDatabase::Closed(session)];
    5 (position, outcome) => [ToDatabase::Storage(StorageReply::Appended(position, outcome))];
    6 (number, outcome) => [ToDatabase::Storage(StorageReply::Rewrite(number, outcome))];
    8 (source, event) => [ToDatabase::Source(source, event)];
    9 (control) => [ToDatabase::Control(control)];
    except
        ToDatabase::Request(_),
        ToDatabase::JobDone(..),
        // Clustered databases are not recorded.
        ToDatabase::Member(_),
        ToDatabase::Relay(_),
        ToDatabase::Installed(_),
        ToDatabase::LockClaims
}

recorded! { Completion:
    0 () => [Completion::None];
    1 () => [Completion::Request];
    2 (id) => [Completion::MonitorAdded(id)];
    3 (from_id, to_id) => [Completion::MonitorRenamed(from_id, to_id)];
    4 (id) => [Completion::MonitorRemoved(id)];
    5 (id) => [Completion::MonitorLost(id)];
    6 () => [Completion::NotificationFence];
    7 () => [Completion::LockNotification];
    8 () => [Completion::IndexFence];
}

recorded! { Result<(), StoreError>:
    0 () => [Ok(())];
    1 (error) => [Err(error)];
}

recorded! { Result<RewriteStage, StoreError>:
    0 () => [Ok(RewriteStage::Written)];
    1 (size) => [Ok(RewriteStage::InPlace(size))];
    2 () => [Ok(RewriteStage::Lasting)];
    3 (error) => [Err(error)];
}

recorded! { SourceEvent:
    0 (number) => [SourceEvent::Connected(number)];
    1 (text) => [SourceEvent::Message(text)];
    2 () => [SourceEvent::Disconnected];
}

recorded!(SessionId, LogPosition, RewriteNumber, SchemaEpoch);
recorded!(StoreError { details, io_error });
recorded!(FileSize { base, end });
recorded!(JobKey { kind, number });

/// Makes the functions that write and read these fields of a struct, in this order.
macro_rules! fields {
    ($type:ty: $write:ident, $read:ident, $($field:ident),*) => {
        fn $write(value: &$type, out: &mut Writer<'_>) {
            $(value.$field.write(out);)*
        }

        /// Replaces these fields.
        fn $read(value: &mut $type, from: &mut Reader<'_>) -> Result<(), Damage> {
            $(value.$field = Recordable::read(from)?;)*
            Ok(())
        }
    };
}

fields!(SessionInfo: write_info, read_info,
    read_only, role, client_id, peer, remote, is_trusted_relay, epoch);
fields!(Request: write_rest, read_rest,
    arrived_ms, id, frame, params, seqno, blocked, foreign_monitors);

pub(super) fn write(out: &mut Writer<'_>, input: &ToDatabase, sessions: &mut Sessions) {
    match input {
        ToDatabase::Request(request) => {
            out.number(REQUEST);
            write_request(out, request, sessions);
        }
        ToDatabase::JobDone(number, JobResult::PastRead(read)) => {
            out.number(PAST_READ);
            number.0.write(out);
            out.option(read.as_ref(), |out, read| read.write(out));
        }
        ToDatabase::JobDone(number, done) => {
            out.number(DONE);
            JobKey::of_done(*number, done).write(out);
            out.flag(matches!(done, JobResult::InitialContents(written) if written.text.is_none()));
        }
        input => {
            write_plain(out, input);
            forget_closed(input, sessions);
        }
    }
}

/// Reads an input.
pub(super) fn read(from: &mut Reader<'_>, sessions: &mut Sessions) -> Result<Input, Damage> {
    let input = match from.number()? {
        REQUEST => ToDatabase::Request(Box::new(read_request(from, sessions)?)),
        DONE => return Ok(Input::Done(JobKey::read(from)?, from.flag()?)),
        PAST_READ => {
            let number = JobNumber(from.number()?);
            let text = from.option(|from| Ok(from.bytes()?.to_vec()))?;
            let read = text.map(|text| Box::new(PastRead::Recorded(text)));
            return Ok(Input::PastRead(number, read));
        }
        number => read_plain(number, from)?,
    };
    forget_closed(&input, sessions);
    Ok(Input::Plain(input))
}

/// The id of a closed session may be reused.
fn forget_closed(input: &ToDatabase, sessions: &mut Sessions) {
    if let ToDatabase::Closed(session) = input {
        sessions.remove(session);
    }
}

fn write_request(out: &mut Writer<'_>, request: &Request, sessions: &mut Sessions) {
    request.session.write(out);
    let is_known = sessions
        .get(&request.session)
        .is_some_and(|info| Arc::ptr_eq(info, &request.info));
    out.flag(!is_known);
    if !is_known {
        sessions.insert(request.session, request.info.clone());
        write_info(&request.info, out);
    }
    match (&request.client, &request.once) {
        (Some(client), once) => {
            out.number(TRANSACT_FOR);
            Recordable::write(client, out);
            once.write(out);
        }
        (None, Some(once)) => {
            out.number(TRANSACT_ONCE);
            once.write(out);
        }
        (None, None) => {
            let mut methods = DatabaseMethod::ALL.iter();
            let number = methods.position(|method| *method == request.method);
            number.unwrap_or_default().write(out);
        }
    }
    write_rest(request, out);
}

fn read_request(from: &mut Reader<'_>, sessions: &mut Sessions) -> Result<Request, Damage> {
    let session = SessionId::read(from)?;
    if from.flag()? {
        let mut info = SessionInfo::new(false, String::new(), None);
        read_info(&mut info, from)?;
        sessions.insert(session, Arc::new(info));
    }
    let info = sessions.get(&session).cloned();
    let mut request = Request {
        session,
        info: info.ok_or_else(|| Damage::new("a session of which nothing is known"))?,
        arrived_ms: 0,
        stamp: 0,
        id: Box::default(),
        method: DatabaseMethod::Transact,
        frame: Vec::new(),
        params: 0..0,
        seqno: None,
        blocked: false,
        foreign_monitors: Vec::new(),
        once: None,
        client: None,
    };
    match from.number()? {
        TRANSACT_FOR => {
            request.client = Some(Recordable::read(from)?);
            request.once = Recordable::read(from)?;
        }
        TRANSACT_ONCE => request.once = Some(Once::read(from)?),
        number => {
            let number = usize::try_from(number).ok();
            let method = number.and_then(|number| DatabaseMethod::ALL.get(number));
            request.method = *method.ok_or_else(Damage::unknown)?;
        }
    }
    read_rest(&mut request, from)?;
    if request.params.start > request.params.end || request.params.end > request.frame.len() {
        return Err(Damage::unknown());
    }
    Ok(request)
}

impl Recordable for Box<RelayedClient> {
    fn write(&self, out: &mut Writer<'_>) {
        let mut text = Vec::new();
        RelayedClient::write(self, &mut text);
        out.bytes(&text);
    }

    fn read(from: &mut Reader<'_>) -> Result<Box<RelayedClient>, Damage> {
        let client = RelayedClient::parse(from.bytes()?);
        client.map(Box::new).ok_or_else(Damage::unknown)
    }
}

/// As the client has sent it. The ids are written with their length.
impl Recordable for Once {
    fn write(&self, out: &mut Writer<'_>) {
        out.bytes(&self.id.0);
        out.option(self.after, |out, after| out.bytes(&after.0));
    }

    fn read(from: &mut Reader<'_>) -> Result<Once, Damage> {
        let uuid = |from: &mut Reader<'_>| -> Result<Uuid, Damage> {
            let bytes: Result<[u8; 16], _> = from.bytes()?.try_into();
            Ok(Uuid(bytes.map_err(|_| Damage::unknown())?))
        };
        Ok(Once::sent(uuid(from)?, from.option(uuid)?))
    }
}

impl Recordable for Pieces {
    fn write(&self, out: &mut Writer<'_>) {
        out.bytes(&self.clone().into_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Pieces, Damage> {
        Ok(Pieces::from(from.bytes()?.to_vec()))
    }
}

#[cfg(test)]
mod tests;
