//! The entries of one database for the audit trail ([`crate::audit`]), when there is one.
//!
//! Without a trail they cost one look at a flag. Entries leave with the other outputs, before the reply that they are about.

use corvid_consensus::database::ForwardOutcome;
use corvid_data::{Tag, WireError};
use corvid_log::storage::StoreError;

use super::slow_transactions::{elements, member};
use super::{DatabaseService, Now};
use crate::audit::{Action, Actor, Entry, ShortText};
use crate::message::{DatabaseMethod, Request};
use crate::once::CANCELED;

use super::pending::{Commit, Origin, Pending};

/// Operations of a refused transaction that an entry names.
const OPERATIONS_MAX: usize = 100;

impl DatabaseService {
    /// Turns the audit trail on or off; it is off at first.
    pub fn set_audited(&mut self, is_audited: bool) {
        self.is_audited = is_audited;
    }

    /// A commit is released.
    pub(super) fn audit_commit(&mut self, date_ms: i64, origin: &Origin, commit: &Commit) {
        if self.is_audited {
            let what = Action::Committed {
                txn: commit.txn,
                delta: commit.delta.clone(),
                record_bytes: commit.record_bytes,
            };
            self.audit(date_ms, who(origin), what);
        }
    }

    /// A commit could not be stored.
    pub(super) fn audit_unstored(&mut self, entry: &Pending, error: &StoreError) {
        if let Some(commit) = entry.commit.as_ref().filter(|_| self.is_audited) {
            let what = Action::Unstored {
                delta: commit.delta.clone(),
                record_bytes: commit.record_bytes,
                details: format!("{} ({})", error.details, error.io_error),
            };
            self.audit(entry.date_ms, who(&entry.origin), what);
        }
    }

    /// The reply to a refused transaction is released.
    pub(super) fn audit_refused(&mut self, date_ms: i64, origin: &Origin, refused: Action) {
        self.audit(date_ms, who(origin), refused);
    }

    /// The entry for a transaction that has failed with `error`, if the client lacked a right.
    pub(super) fn refusal(
        &self,
        request: &Request,
        error: Option<Tag>,
        result: &[u8],
    ) -> Option<Box<Action>> {
        let tag = error.filter(|tag| self.is_audited && is_refusal(*tag))?;
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

    /// A conversion was refused. It gets an entry if the client lacked a right.
    pub(super) fn audit_refusal(&mut self, now: Now, request: &Request, error: &WireError) {
        if self.is_audited && is_refusal(error.tag) {
            let (operations, comment) = operations_of(request);
            let what = Action::Denied {
                tag: error.tag,
                details: ShortText::of(&error.details),
                operations,
                comment,
            };
            self.audit(now.wall_ms, actor(request), what);
        }
    }

    /// This request has converted the database.
    pub(super) fn audit_conversion(&mut self, now: Now, request: &Request) {
        if self.is_audited {
            self.audit(now.wall_ms, actor(request), Action::Converted);
        }
    }

    /// The source of a relay has answered a request. The relay alone knows which client sent it,
    /// unless the source trusts the relay.
    pub(super) fn audit_relayed(&mut self, now: Now, request: &Request, outcome: &ForwardOutcome) {
        if !self.is_audited || !self.model.is_relay() {
            return;
        }
        let result = match outcome {
            ForwardOutcome::Unchanged(_, result) => result,
            ForwardOutcome::Refused(_, error) if **error == *CANCELED => {
                self.audit_relayed_as(now, request, false);
                return;
            }
            // A conversion has failed, or the request was not sent.
            _ => return,
        };
        let error = elements(result).find_map(|element| member(element, "error"));
        match error.as_deref() {
            None => self.audit_relayed_as(now, request, true),
            Some(error) => {
                let refusals = [Tag::PermissionError, Tag::NotAllowed];
                let tag = refusals.into_iter().find(|tag| tag.text() == error);
                if let Some(refused) = self.refusal(request, tag, result) {
                    self.audit(now.wall_ms, actor(request), *refused);
                }
            }
        }
    }

    fn audit_relayed_as(&mut self, now: Now, request: &Request, is_certain: bool) {
        let (mut operations, comment) = operations_of(request);
        operations.retain(|(operation, _)| operation.is_writing());
        let what = Action::Relayed {
            is_certain,
            operations,
            comment,
        };
        self.audit(now.wall_ms, actor(request), what);
    }

    fn audit(&mut self, date_ms: i64, who: Actor, what: Action) {
        self.outputs.audit.push(Entry {
            date_ms,
            schema: self.database.schema().clone(),
            who,
            what,
        });
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
