//! Inputs of a database as bytes.
//!
//! Only parts that the database does not read are left out: the stamp of a request, and the result of a job, which the replay does again.
//! The description of a session is written with its first request.

use corvid_log::cluster::Index;
use corvid_log::storage::{
    FileSize, LogPosition, RewriteNumber, RewriteStage, StorageReply, StoreError,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use corvid_data::{TrustedKeys, Uuid};
use corvid_json::Pieces;
use corvid_monitor::{SessionId, Version};

use super::codec::{Damage, Reader, Writer};
use crate::applied_index::AppliedIndex;
use crate::job::{JobKey, JobResult};
use crate::message::{Completion, Control, DatabaseMethod, Request, SessionInfo, ToDatabase};
use crate::once::Once;
use crate::relayed_client::RelayedClient;
use crate::remote_status::{RemoteStatus, RemoteStatuses};
use crate::replication::{Exclusions, Following, Role, SourceEvent, SourceId};
use crate::schema_epoch::SchemaEpoch;

/// Descriptions of sessions, by number.
pub(super) type Sessions = HashMap<SessionId, Arc<SessionInfo>, TrustedKeys>;

/// A recorded input.
pub(super) enum Input {
    Plain(ToDatabase),
    /// The result of this job; the flag: it was refused because memory was short.
    Done(JobKey, bool),
}

const METHODS: [DatabaseMethod; 8] = [
    DatabaseMethod::Transact,
    DatabaseMethod::Convert,
    DatabaseMethod::GetSchema,
    DatabaseMethod::Monitor(Version::V1),
    DatabaseMethod::Monitor(Version::V2),
    DatabaseMethod::Monitor(Version::V3),
    DatabaseMethod::MonitorCondChange,
    DatabaseMethod::MonitorCancel,
];

/// In place of the number of a method: a transaction that is executed once.
const TRANSACT_ONCE: usize = METHODS.len();
/// The same with a relay's client, and perhaps without an identity.
const TRANSACT_FOR: usize = METHODS.len() + 1;

pub(super) fn write(out: &mut Writer<'_>, input: &ToDatabase, sessions: &mut Sessions) {
    match input {
        ToDatabase::Request(request) => {
            out.number(0);
            write_request(out, request, sessions);
        }
        ToDatabase::Cancel(session, id) => {
            out.number(1);
            out.number(session.0);
            out.bytes(id);
        }
        ToDatabase::Fence(session, completion) => {
            out.number(2);
            out.number(session.0);
            write_handled(out, completion);
        }
        ToDatabase::Drained(session) => {
            out.number(3);
            out.number(session.0);
        }
        ToDatabase::Closed(session) => {
            out.number(4);
            out.number(session.0);
            sessions.remove(session);
        }
        ToDatabase::Storage(StorageReply::Appended(position, outcome)) => {
            out.number(5);
            out.number(position.0);
            out.option(outcome.as_ref().err(), write_error);
        }
        ToDatabase::Storage(StorageReply::Rewrite(number, outcome)) => {
            out.number(6);
            out.number(number.0);
            match outcome {
                Ok(RewriteStage::Written) => out.number(0),
                Ok(RewriteStage::InPlace(size)) => {
                    out.number(1);
                    out.number(size.base);
                    out.number(size.end);
                }
                Ok(RewriteStage::Lasting) => out.number(2),
                Err(error) => {
                    out.number(3);
                    write_error(out, error);
                }
            }
        }
        ToDatabase::JobDone(number, done) => {
            out.number(7);
            let key = JobKey::of_done(*number, done);
            out.number(key.kind.into());
            out.number(key.number);
            out.flag(matches!(done, JobResult::InitialContents(written) if written.text.is_none()));
        }
        ToDatabase::Source(id, event) => {
            out.number(8);
            out.number(id.0);
            match event {
                SourceEvent::Connected(number) => {
                    out.number(0);
                    out.number(*number);
                }
                SourceEvent::Message(text) => {
                    out.number(1);
                    out.bytes(&text.clone().into_bytes());
                }
                SourceEvent::Disconnected => out.number(2),
            }
        }
        ToDatabase::Member(_) | ToDatabase::Installed(_) | ToDatabase::LockClaims => {
            unreachable!("clustered databases are not recorded")
        }
        ToDatabase::Control(control) => {
            out.number(9);
            write_control(out, control);
        }
    }
}

/// Reads an input.
pub(super) fn read(from: &mut Reader<'_>, sessions: &mut Sessions) -> Result<Input, Damage> {
    let session = |from: &mut Reader<'_>| from.number().map(SessionId);
    let plain = match from.number()? {
        0 => ToDatabase::Request(Box::new(read_request(from, sessions)?)),
        1 => ToDatabase::Cancel(session(from)?, from.bytes()?.into()),
        2 => ToDatabase::Fence(session(from)?, read_handled(from)?),
        3 => ToDatabase::Drained(session(from)?),
        4 => {
            let session = session(from)?;
            sessions.remove(&session);
            ToDatabase::Closed(session)
        }
        5 => {
            let position = LogPosition(from.number()?);
            let error = from.option(read_error)?;
            ToDatabase::Storage(StorageReply::Appended(position, error.map_or(Ok(()), Err)))
        }
        6 => {
            let number = RewriteNumber(from.number()?);
            let outcome = match from.number()? {
                0 => Ok(RewriteStage::Written),
                1 => Ok(RewriteStage::InPlace(FileSize {
                    base: from.number()?,
                    end: from.number()?,
                })),
                2 => Ok(RewriteStage::Lasting),
                _ => Err(read_error(from)?),
            };
            ToDatabase::Storage(StorageReply::Rewrite(number, outcome))
        }
        7 => {
            let kind = u8::try_from(from.number()?).map_err(|_| unknown())?;
            let key = JobKey {
                kind,
                number: from.number()?,
            };
            return Ok(Input::Done(key, from.flag()?));
        }
        8 => {
            let id = SourceId(from.number()?);
            let event = match from.number()? {
                0 => SourceEvent::Connected(from.number()?),
                1 => SourceEvent::Message(Pieces::from(from.bytes()?.to_vec())),
                _ => SourceEvent::Disconnected,
            };
            ToDatabase::Source(id, event)
        }
        9 => ToDatabase::Control(read_control(from)?),
        _ => return Err(unknown()),
    };
    Ok(Input::Plain(plain))
}

fn unknown() -> Damage {
    Damage::new("an input of an unknown kind")
}

fn write_request(out: &mut Writer<'_>, request: &Request, sessions: &mut Sessions) {
    out.number(request.session.0);
    let is_known = sessions
        .get(&request.session)
        .is_some_and(|info| Arc::ptr_eq(info, &request.info));
    out.flag(!is_known);
    if !is_known {
        let info = &request.info;
        sessions.insert(request.session, info.clone());
        out.flag(info.read_only);
        out.text(&info.role);
        out.option(info.client_id.as_deref(), Writer::text);
        out.text(&info.peer);
        out.text(&info.remote);
        out.flag(info.is_trusted_relay);
        out.number(info.epoch.0);
    }
    match (&request.client, request.once) {
        (Some(client), once) => {
            out.number(TRANSACT_FOR as u64);
            let mut text = Vec::new();
            client.write(&mut text);
            out.bytes(&text);
            out.option(once, write_once);
        }
        (None, Some(once)) => {
            out.number(TRANSACT_ONCE as u64);
            write_once(out, once);
        }
        (None, None) => {
            let method = METHODS.iter().position(|method| *method == request.method);
            out.number(method.unwrap_or_default() as u64);
        }
    }
    out.number(request.arrived_ms);
    out.bytes(&request.id);
    out.bytes(&request.frame);
    out.number(request.params.start as u64);
    out.number(request.params.end as u64);
    out.option(request.seqno, Writer::number);
    out.flag(request.blocked);
    out.number(request.foreign_monitors.len() as u64);
    for id in &request.foreign_monitors {
        out.bytes(id);
    }
}

fn write_once(out: &mut Writer<'_>, once: Once) {
    out.bytes(&once.id.0);
    out.option(once.after.as_ref().map(|after| &after.0), |out, after| {
        out.bytes(after);
    });
}

fn read_once(from: &mut Reader<'_>) -> Result<Once, Damage> {
    let uuid = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).map(Uuid).map_err(|_| unknown());
    let id = uuid(from.bytes()?)?;
    let after = from.option(Reader::bytes)?.map(uuid).transpose()?;
    Ok(Once { id, after })
}

fn read_request(from: &mut Reader<'_>, sessions: &mut Sessions) -> Result<Request, Damage> {
    let session = SessionId(from.number()?);
    if from.flag()? {
        let read_only = from.flag()?;
        let role = from.text()?;
        let info = SessionInfo::new(read_only, role, from.option(Reader::text)?);
        let (peer, remote) = (from.text()?, from.text()?);
        let info = info.of_peer(peer.into(), remote.into());
        let mut info = info.of_trusted_relay(from.flag()?);
        info.epoch = SchemaEpoch(from.number()?);
        sessions.insert(session, Arc::new(info));
    }
    let info = sessions.get(&session).cloned();
    let method = usize::try_from(from.number()?).ok();
    let (client, once) = match method {
        Some(TRANSACT_ONCE) => (None, Some(read_once(from)?)),
        Some(TRANSACT_FOR) => {
            let client = RelayedClient::parse(from.bytes()?).ok_or_else(unknown)?;
            (Some(Box::new(client)), from.option(read_once)?)
        }
        _ => (None, None),
    };
    let is_once = client.is_some() || once.is_some();
    let method = method.map(|at| if is_once { 0 } else { at });
    let arrived_ms = from.number()?;
    let id = from.bytes()?.into();
    let frame = from.bytes()?.to_vec();
    let offset = |from: &mut Reader<'_>| {
        let seqno = usize::try_from(from.number()?).ok();
        seqno
            .filter(|seqno| *seqno <= frame.len())
            .ok_or_else(unknown)
    };
    let params = offset(from)?..offset(from)?;
    let seqno = from.option(Reader::number)?;
    let blocked = from.flag()?;
    let mut foreign_monitors = Vec::new();
    for _ in 0..from.number()? {
        foreign_monitors.push(from.bytes()?.into());
    }
    if params.start > params.end {
        return Err(unknown());
    }
    Ok(Request {
        session,
        info: info.ok_or_else(|| Damage::new("a session of which nothing is known"))?,
        arrived_ms,
        stamp: 0,
        id,
        method: *method.and_then(|at| METHODS.get(at)).ok_or_else(unknown)?,
        frame,
        params,
        seqno,
        blocked,
        foreign_monitors,
        once,
        client,
    })
}

fn write_handled(out: &mut Writer<'_>, completion: &Completion) {
    match completion {
        Completion::None => out.number(0),
        Completion::Request => out.number(1),
        Completion::MonitorAdded(id) => {
            out.number(2);
            out.bytes(id);
        }
        Completion::MonitorRenamed(from, to) => {
            out.number(3);
            out.bytes(from);
            out.bytes(to);
        }
        Completion::MonitorRemoved(id) => {
            out.number(4);
            out.bytes(id);
        }
        Completion::MonitorLost(id) => {
            out.number(5);
            out.bytes(id);
        }
        Completion::NotificationFence => out.number(6),
        Completion::LockNotification => out.number(7),
        Completion::IndexFence => out.number(8),
    }
}

fn read_handled(from: &mut Reader<'_>) -> Result<Completion, Damage> {
    Ok(match from.number()? {
        0 => Completion::None,
        1 => Completion::Request,
        2 => Completion::MonitorAdded(from.bytes()?.into()),
        3 => Completion::MonitorRenamed(from.bytes()?.into(), from.bytes()?.into()),
        4 => Completion::MonitorRemoved(from.bytes()?.into()),
        5 => Completion::MonitorLost(from.bytes()?.into()),
        6 => Completion::NotificationFence,
        7 => Completion::LockNotification,
        8 => Completion::IndexFence,
        _ => return Err(unknown()),
    })
}

fn write_error(out: &mut Writer<'_>, error: &StoreError) {
    out.text(&error.details);
    out.text(&error.io_error);
}

fn read_error(from: &mut Reader<'_>) -> Result<StoreError, Damage> {
    Ok(StoreError {
        details: from.text()?,
        io_error: from.text()?,
    })
}

fn write_control(out: &mut Writer<'_>, control: &Control) {
    match control {
        Control::Transact(params) => {
            out.number(0);
            out.bytes(params);
        }
        Control::Compact(token) => {
            out.number(1);
            out.option(*token, Writer::number);
        }
        Control::EnableColumnDiff => out.number(2),
        Control::EnableNoDataConversion => out.number(15),
        // The index is read when it is shown, and recorded there.
        Control::ShowIndex(applied) => {
            out.number(16);
            out.text(applied.database());
        }
        Control::Snapshot(token) => {
            out.number(3);
            out.number(*token);
        }
        Control::Remove => out.number(4),
        Control::SetRole(role, token) => {
            out.number(5);
            out.number(*token);
            let following = match role {
                Role::Active => None,
                Role::Backup(following) => Some(following),
            };
            out.option(following, |out, following| {
                out.number(following.id.0);
                out.0.extend_from_slice(&following.server_id.0);
                let tables: Vec<&str> = following.excluded.tables().collect();
                out.text(&tables.join(","));
            });
        }
        Control::StorageStatus(token) => {
            out.number(6);
            out.number(*token);
        }
        Control::WatchColumn {
            name,
            table,
            column,
            texts_only,
        } => {
            out.number(7);
            for text in [name, table, column] {
                out.text(text);
            }
            out.flag(*texts_only);
        }
        Control::UnwatchColumn(name) => {
            out.number(8);
            out.text(name);
        }
        Control::SetSlow(threshold_ms) => {
            out.number(9);
            out.number(*threshold_ms);
        }
        Control::SetHistory(is_kept) => {
            out.number(10);
            out.flag(*is_kept);
        }
        Control::SetAudited(is_audited) => {
            out.number(11);
            out.flag(*is_audited);
        }
        Control::Report(token) => {
            out.number(12);
            out.number(*token);
        }
        Control::LogRows(table, is_logged) => {
            out.number(13);
            out.text(table);
            out.flag(*is_logged);
        }
        Control::ShowStatus(statuses) => {
            out.number(14);
            out.number(statuses.len() as u64);
            for (target, status) in &**statuses {
                out.text(target);
                out.flag(status.is_connected);
                out.number(status.status.len() as u64);
                for (key, value) in &status.status {
                    out.text(key);
                    out.text(value);
                }
            }
        }
    }
}

fn read_control(from: &mut Reader<'_>) -> Result<Control, Damage> {
    Ok(match from.number()? {
        0 => Control::Transact(from.bytes()?.to_vec()),
        1 => Control::Compact(from.option(Reader::number)?),
        2 => Control::EnableColumnDiff,
        15 => Control::EnableNoDataConversion,
        16 => Control::ShowIndex(AppliedIndex::new(&from.text()?, Index(0))),
        3 => Control::Snapshot(from.number()?),
        4 => Control::Remove,
        5 => {
            let token = from.number()?;
            let following = from.option(|from| {
                let id = SourceId(from.number()?);
                let server_id: [u8; 16] = from.take(16)?.try_into().map_err(|_| unknown())?;
                Ok(Following {
                    id,
                    server_id: Uuid(server_id),
                    excluded: Exclusions::of("", &from.text()?),
                })
            })?;
            let role =
                following.map_or(Role::Active, |following| Role::Backup(Box::new(following)));
            Control::SetRole(role, token)
        }
        6 => Control::StorageStatus(from.number()?),
        7 => Control::WatchColumn {
            name: from.text()?,
            table: from.text()?,
            column: from.text()?,
            texts_only: from.flag()?,
        },
        8 => Control::UnwatchColumn(from.text()?),
        9 => Control::SetSlow(from.number()?),
        10 => Control::SetHistory(from.flag()?),
        11 => Control::SetAudited(from.flag()?),
        12 => Control::Report(from.number()?),
        13 => Control::LogRows(from.text()?, from.flag()?),
        14 => {
            let mut statuses = RemoteStatuses::new();
            for _ in 0..from.number()? {
                let target = from.text()?;
                let is_connected = from.flag()?;
                let mut status = BTreeMap::new();
                for _ in 0..from.number()? {
                    status.insert(from.text()?, from.text()?);
                }
                let status = RemoteStatus {
                    is_connected,
                    status,
                };
                statuses.insert(target, status);
            }
            Control::ShowStatus(Arc::new(statuses))
        }
        _ => return Err(unknown()),
    })
}
