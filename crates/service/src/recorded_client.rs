//! The client of a commit for its record (`--record-clients`).
//!
//! The server that executes a transaction writes the line (`corvid_log::commit_client`). It knows
//! its own sessions. A trusted relay describes its client with the transaction, and so does another
//! member of the cluster. Invariant: nobody else is believed. A relay that the operator does not
//! trust counts as the client.

use corvid_consensus::database::{ClientIdentity, ForwardOrigin};
use corvid_data::{Arc, Delta};
use corvid_engine::Outcome;
use corvid_json::Value;
use corvid_log::commit_client::{self, CommitClient};

use crate::message::{Request, SessionInfo};

/// The client of a request.
pub(crate) fn of_request(request: &Request) -> CommitClient {
    let info = &request.info;
    match request.told_client() {
        Some(told) => CommitClient {
            via: vec![relay_of(info)],
            ..of_description(told)
        },
        None => CommitClient {
            client: info.client_id.clone().unwrap_or_default(),
            peer: info.peer.to_string(),
            role: info.role.clone(),
            via: Vec::new(),
        },
    }
}

/// The client of a transaction that another member has forwarded. A member that does not record
/// clients describes them only as far as access control needs it.
pub(crate) fn of_forward(origin: ForwardOrigin, client: &ClientIdentity) -> CommitClient {
    let described = client.description.as_deref().and_then(CommitClient::parse);
    let mut found = described.unwrap_or_else(|| CommitClient {
        client: client.client_id.clone().unwrap_or_default(),
        role: client.role.clone(),
        ..CommitClient::default()
    });
    found.via.push(format!("member:{}", origin.sid.0));
    found
}

/// The server itself.
pub(crate) fn of_server() -> CommitClient {
    CommitClient {
        peer: "server".to_owned(),
        ..CommitClient::default()
    }
}

/// The client of a request, for the member that executes its transaction.
pub(crate) fn describe(request: &Request) -> String {
    let mut text = String::new();
    of_request(request).write(&mut text);
    text
}

/// Makes a new commit's comment name this client; `None`: keeps the text that the client wrote from
/// naming one, or a commit. A cluster's file has no lines that name commits, but a tool may copy
/// its transactions to a standalone file. The delta is not shared yet, so nothing is copied.
pub(crate) fn complete(delta: &mut Arc<Delta>, client: Option<&CommitClient>) {
    if client.is_some() || commit_client::ends_like_ours(&delta.comment) {
        commit_client::complete(&mut Arc::make_mut(delta).comment, client);
    }
}

/// The same for the commit of an outcome, if it has one.
pub(crate) fn complete_outcome(
    outcome: &mut Outcome,
    client: impl FnOnce() -> Option<CommitClient>,
) {
    if let Outcome::Done {
        delta: Some(delta), ..
    } = outcome
    {
        complete(delta, client().as_ref());
    }
}

/// A trusted relay, which always has a certificate.
fn relay_of(info: &SessionInfo) -> String {
    let name = info.client_id.as_deref().unwrap_or_default();
    format!("relay:{name}@{}", info.peer)
}

/// A client as a relay describes it: a JSON object of strings.
fn of_description(text: &str) -> CommitClient {
    let json = Value::parse(text.as_bytes()).ok();
    let member = |name| {
        let value = json.as_ref().and_then(|json| json.get(name));
        value
            .and_then(Value::as_str)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    CommitClient {
        client: member("client"),
        peer: member("peer"),
        role: member("role"),
        via: Vec::new(),
    }
}
