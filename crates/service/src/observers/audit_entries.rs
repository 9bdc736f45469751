//! The entries of one database for the audit trail ([`crate::audit`]), when there is one.
//!
//! Without a trail they cost one look at a flag. Invariant: an entry leaves with the other outputs,
//! before the reply that it is about; the caller adds it to the outputs at once.

use corvid_consensus::database::ForwardOutcome;
use corvid_data::{Arc, Schema, Tag, WireError};
use corvid_log::storage::StoreError;

use super::slow_transactions::{elements, member};
use crate::audit::{Action, Actor, Entry, ShortText};
use crate::message::Now;
use crate::message::{DatabaseMethod, Request};
use crate::once::CANCELED;
use crate::replies::{Commit, Origin, Pending};

/// Operations of a refused transaction that an entry names.
const OPERATIONS_MAX: usize = 100;

/// Composes entries, if there is an audit trail; there is none at first.
#[derive(Debug, Default)]
pub(crate) struct AuditEntries {
    is_on: bool,
}

impl AuditEntries {
    /// Turns the audit trail on or off.
    pub(crate) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// The entry of a commit that is released.
    pub(super) fn of_commit(
        &self,
        schema: &Arc<Schema>,
        date_ms: i64,
        origin: &Origin,
        commit: &Commit,
    ) -> Option<Entry> {
        self.is_on.then(|| {
            let what = Action::Committed {
                txn: commit.txn,
                delta: commit.delta.clone(),
                record_bytes: commit.record_bytes,
            };
            entry(schema, date_ms, who(origin), what)
        })
    }

    /// The entry of a commit that could not be stored.
    pub(crate) fn of_unstored(
        &self,
        schema: &Arc<Schema>,
        undone: &Pending,
        error: &StoreError,
    ) -> Option<Entry> {
        let commit = undone.commit.as_ref().filter(|_| self.is_on)?;
        let what = Action::Unstored {
            delta: commit.delta.clone(),
            record_bytes: commit.record_bytes,
            details: format!("{} ({})", error.details, error.io_error),
        };
        Some(entry(schema, undone.date_ms, who(&undone.origin), what))
    }

    /// The entry of a refused transaction whose reply is released. `refused` is what
    /// [`AuditEntries::describe_refusal`] found when it was executed.
    pub(crate) fn of_refused(
        schema: &Arc<Schema>,
        date_ms: i64,
        origin: &Origin,
        refused: Action,
    ) -> Entry {
        entry(schema, date_ms, who(origin), refused)
    }

    /// The refusal of a transaction that has failed with `error`, if the client lacked a right.
    pub(crate) fn describe_refusal(
        &self,
        request: &Request,
        error: Option<Tag>,
        result: &[u8],
    ) -> Option<Box<Action>> {
        let tag = error.filter(|tag| self.is_on && is_refusal(*tag))?;
        let (operations, comment) = operations_of(request);
        let is_it = |element: &&[u8]| member(element, "error").is_some_and(|e| e == tag.text());
        let details = elements(result).filter(is_it).last();
        let what = Action::Denied {
            tag,
            details: details
                .and_then(|element| member(element, "details"))
                .map(|details| ShortText::of(&details))
                .unwrap_or_default(),
            operations,
            comment,
        };
        Some(Box::new(what))
    }

    /// The entry of a conversion that was refused with `error`, if the client lacked a right.
    pub(crate) fn of_refused_conversion(
        &self,
        schema: &Arc<Schema>,
        now: Now,
        request: &Request,
        error: &WireError,
    ) -> Option<Entry> {
        (self.is_on && is_refusal(error.tag)).then(|| {
            let (operations, comment) = operations_of(request);
            let what = Action::Denied {
                tag: error.tag,
                details: ShortText::of(&error.details),
                operations,
                comment,
            };
            entry(schema, now.wall_ms, actor(request), what)
        })
    }

    /// The entry of a request that has converted the database to `schema`.
    pub(crate) fn of_conversion(
        &self,
        schema: &Arc<Schema>,
        now: Now,
        request: &Request,
    ) -> Option<Entry> {
        self.is_on
            .then(|| entry(schema, now.wall_ms, actor(request), Action::Converted))
    }

    /// The entry of a request that the source of a relay has answered. The relay alone knows which
    /// client sent it, unless the source trusts the relay.
    pub(crate) fn of_relayed(
        &self,
        schema: &Arc<Schema>,
        now: Now,
        request: &Request,
        outcome: &ForwardOutcome,
    ) -> Option<Entry> {
        if !self.is_on {
            return None;
        }
        let what = match outcome {
            ForwardOutcome::Unchanged(_, result) => {
                let error = elements(result).find_map(|element| member(element, "error"));
                match error.as_deref() {
                    None => relayed(request, true),
                    Some(error) => {
                        let refusals = [Tag::PermissionError, Tag::NotAllowed];
                        let tag = refusals.into_iter().find(|tag| tag.text() == error);
                        *self.describe_refusal(request, tag, result)?
                    }
                }
            }
            ForwardOutcome::Refused(_, error) if **error == *CANCELED => relayed(request, false),
            // A conversion has failed, or the request was not sent.
            _ => return None,
        };
        Some(entry(schema, now.wall_ms, actor(request), what))
    }
}

fn entry(schema: &Arc<Schema>, date_ms: i64, who: Actor, what: Action) -> Entry {
    Entry {
        date_ms,
        schema: schema.clone(),
        who,
        what,
    }
}

/// A request that a relay's source has executed, or may have executed.
fn relayed(request: &Request, is_certain: bool) -> Action {
    let (mut operations, comment) = operations_of(request);
    operations.retain(|(operation, _)| operation.is_writing());
    Action::Relayed {
        is_certain,
        operations,
        comment,
    }
}

fn actor(request: &Request) -> Actor {
    let (session, info) = (request.session, request.info.clone());
    match request.told_client() {
        Some(told) => Actor::RelayedClient(session, info, told.clone()),
        None => Actor::Client(session, info),
    }
}

/// Operation and table of the first operations, and their comments.
fn operations_of(request: &Request) -> (Vec<(ShortText, ShortText)>, ShortText) {
    if request.method != DatabaseMethod::Transact {
        let method = ShortText::of(request.method.name());
        return (vec![(method, ShortText::default())], ShortText::default());
    }
    let mut comments = Vec::new();
    let mut operations = Vec::new();
    for element in elements(request.params()).skip(1).take(OPERATIONS_MAX) {
        comments.extend(member(element, "comment"));
        let name = |name| ShortText::of(&member(element, name).unwrap_or_default());
        operations.push((name("op"), name("table")));
    }
    (operations, ShortText::of(&comments.join("\n")))
}

fn is_refusal(tag: Tag) -> bool {
    matches!(tag, Tag::PermissionError | Tag::NotAllowed)
}

fn who(origin: &Origin) -> Actor {
    match origin {
        Origin::Client(request) => actor(request),
        Origin::Cancel(..) => unreachable!("a cancel is never audited"),
        Origin::Server(_) | Origin::Control(_) => Actor::Server,
        Origin::Source => Actor::Source,
        Origin::Member(sid) => Actor::Member(*sid),
        Origin::Forwarded(forwarded) => Actor::Member(Some(forwarded.origin.sid)),
    }
}
