//! The client of a request as access control sees it, for the server that executes the request: the
//! leader of the cluster, or the source of a relay.
//!
//! Invariant: access is checked where a transaction is executed, on the rows that it changes. A
//! source that does not check a relay's clients gets the transaction with guards
//! (`corvid_engine::guards`).

use corvid_consensus::database::{ClientIdentity, ForSource, Guard, Guarded};
use corvid_data::{Tag, WireError};
use corvid_engine::{Database, Identity};
use corvid_json::ObjectWriter;

use crate::message::{Request, SessionInfo};
use crate::relayed_client::RelayedClient;

/// The longest string in the description of a client for the audit log, bytes; longer ones are
/// truncated.
const WHO_TEXT_BYTES_MAX: usize = 256;

/// The client of a request, with the locks that it owns.
pub(crate) fn identity_of(request: &Request, locks: Vec<String>) -> ClientIdentity {
    let owned = |identity: Identity<'_>| {
        let client_id = identity.client_id.map(str::to_owned);
        (identity.role.to_owned(), client_id)
    };
    let mut identities = request.identities().into_iter().map(owned);
    // Without a role the common name has no effect on access, but members show it.
    let of_session = || (String::new(), request.info.client_id.clone());
    let (role, client_id) = identities.next().unwrap_or_else(of_session);
    ClientIdentity {
        role,
        client_id,
        is_read_only: request.is_read_only(),
        locks,
        further: identities.collect(),
        description: None,
        for_source: None,
    }
}

/// The roles that must allow this client's transactions.
pub(crate) fn identities_in(client: &ClientIdentity) -> Vec<Identity<'_>> {
    let first = Identity {
        role: &client.role,
        client_id: client.client_id.as_deref(),
    };
    let further = client.further.iter().map(|(role, client_id)| Identity {
        role,
        client_id: client_id.as_deref(),
    });
    std::iter::once(first).chain(further).collect()
}

/// The forms in which a relay may send a transaction. `database` has the relay's rows.
///
/// # Errors
/// The client's restrictions cannot be expressed to the source, so the transaction must not be
/// sent.
pub(crate) fn for_source(
    database: &mut Database,
    request: &Request,
) -> Result<ForSource, WireError> {
    let who = match request.told_client() {
        Some(who) => who.clone(),
        None => who_is(&request.info, request.session.0).into(),
    };
    let client = RelayedClient::describe(request.identities(), request.is_read_only(), who);
    let client = client.map_err(|_| {
        let details =
            "the client has too many roles, or too long ones, for a relay to tell its source";
        WireError::new(Tag::ResourcesExhausted, details)
    })?;
    let mut text = Vec::new();
    client.write(&mut text);
    let identities = request.identities();
    // No role restricts this client, so its transactions need no guards.
    let guarded = match identities.is_empty() {
        true => None,
        false => database.guarded(request.params(), &identities)?,
    };
    let guarded = guarded.map(|guarded| {
        let guards = guarded.guards.into_iter().map(|guard| {
            let mut error = Vec::new();
            guard.error.write_json(&mut error);
            Guard {
                at: guard.at,
                error: error.into(),
            }
        });
        Guarded {
            params: guarded.params.into(),
            guards: guards.collect(),
        }
    });
    Ok(ForSource {
        client: text.into(),
        guarded,
    })
}

/// A session of this server as a JSON object.
fn who_is(info: &SessionInfo, session: u64) -> String {
    let mut out = Vec::new();
    let text = |text: &str| {
        let end = text.floor_char_boundary(WHO_TEXT_BYTES_MAX);
        text.as_bytes()[..end].to_vec()
    };
    let mut object = ObjectWriter::new(&mut out).string("peer", &text(&info.peer));
    if let Some(client) = &info.client_id {
        object = object.string("client", &text(client));
    }
    if !info.role.is_empty() {
        object = object.string("role", &text(&info.role));
    }
    object = object.string("remote", &text(&info.remote));
    let session = format!("{session:x}");
    object.string("session", session.as_bytes()).end();
    String::from_utf8_lossy(&out).into_owned()
}
