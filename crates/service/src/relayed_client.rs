//! The client of a relay, as the relay describes it to its source.
//!
//! At a source, all clients of a relay are one session with the role of the relay's connection. So
//! the relay sends a description of the client with each transaction that it forwards, as the
//! fourth parameter of `transact_once` (docs/internals/relay.md, "Clients with roles"):
//!
//! ```json
//! {
//!   "roles": [{"role": "ovn-controller", "client": "hv1"}],
//!   "read_only": true,
//!   "who": {"peer": "ssl:192.0.2.7:50122", "client": "hv1"}
//! }
//! ```
//!
//! Invariant: roles only restrict. A transaction must be allowed under each role, where it is
//! executed, so anyone may send any role. Only a relay that the operator trusts speaks for its
//! clients: then the description replaces the relay's own role, and the audit log shows `who`. A
//! description with unknown parts is refused, because they may be restrictions.

use std::sync::Arc;

use corvid_engine::Identity;
use corvid_json::{ArrayWriter, ObjectWriter, Value, write};

/// Roles in a description at most: one for each level of a tree of relays.
const ROLES_MAX: usize = 8;
/// The longest role or common name, bytes; the same limit as between members of a cluster.
const NAME_BYTES_MAX: usize = corvid_consensus::limits::TEXT_BYTES_MAX;
/// The longest `who`, bytes.
const WHO_BYTES_MAX: usize = 4096;
/// The longest description, bytes: far more than the limits above allow.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A role and its common name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Role {
    role: String,
    client_id: Option<String>,
}

/// The client on whose behalf a relay sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayedClient {
    /// All of them must allow the transaction.
    roles: Vec<Role>,
    is_read_only: bool,
    /// The client for the audit log: a JSON object whose members are strings.
    who: Option<Arc<str>>,
}

/// A client that cannot be described: a name is too long, or the tree is too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Indescribable;

impl RelayedClient {
    /// A client with these roles, whom `who` describes for the audit log: a JSON object whose
    /// members are strings.
    ///
    /// # Errors
    /// The client exceeds the limits of a description.
    pub(crate) fn describe(
        identities: Vec<Identity<'_>>,
        is_read_only: bool,
        who: Arc<str>,
    ) -> Result<RelayedClient, Indescribable> {
        let is_short = |identity: &Identity<'_>| {
            let client_id = identity.client_id.map_or(0, str::len);
            identity.role.len().max(client_id) <= NAME_BYTES_MAX
        };
        if identities.len() > ROLES_MAX || !identities.iter().all(is_short) {
            return Err(Indescribable);
        }
        let roles = identities.into_iter().map(|identity| Role {
            role: identity.role.to_owned(),
            client_id: identity.client_id.map(str::to_owned),
        });
        Ok(RelayedClient {
            roles: roles.collect(),
            is_read_only,
            who: Some(who),
        })
    }

    /// Reads a description from JSON; `None` if it is not understood or exceeds a limit.
    #[must_use]
    pub fn parse(raw: &[u8]) -> Option<RelayedClient> {
        if raw.len() > TEXT_BYTES_MAX {
            return None;
        }
        let json = Value::parse(raw).ok()?;
        let mut client = RelayedClient::default();
        for (name, value) in json.as_object()? {
            let name: &[u8] = name;
            match name {
                b"roles" => client.roles = roles(value)?,
                b"read_only" => client.is_read_only = value.as_bool()?,
                b"who" => client.who = Some(checked_who(value)?),
                _ => return None,
            }
        }
        Some(client)
    }

    /// Appends the description as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        if !self.roles.is_empty() {
            let mut list = ArrayWriter::new(object.member("roles"));
            for Role { role, client_id } in &self.roles {
                let mut entry = ObjectWriter::new(list.element()).string("role", role.as_bytes());
                if let Some(client_id) = client_id {
                    entry = entry.string("client", client_id.as_bytes());
                }
                entry.end();
            }
            list.end();
        }
        if self.is_read_only {
            write::boolean(object.member("read_only"), true);
        }
        if let Some(who) = &self.who {
            object = object.raw("who", who.as_bytes());
        }
        object.end();
    }

    /// The roles that must allow the client's transactions.
    pub(crate) fn identities(&self) -> impl Iterator<Item = Identity<'_>> {
        self.roles.iter().map(|Role { role, client_id }| Identity {
            role,
            client_id: client_id.as_deref(),
        })
    }

    /// Whether the client may not write.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The client for the audit log: a JSON object.
    pub(crate) fn who(&self) -> Option<&Arc<str>> {
        self.who.as_ref()
    }
}

fn roles(list: &Value) -> Option<Vec<Role>> {
    let list = list.as_array().filter(|list| list.len() <= ROLES_MAX)?;
    let read = |entry: &Value| {
        let mut found = Role {
            role: String::new(),
            client_id: None,
        };
        for (name, value) in entry.as_object()? {
            let name: &[u8] = name;
            let text = value.as_str().filter(|text| text.len() <= NAME_BYTES_MAX)?;
            match name {
                b"role" => found.role = text.to_owned(),
                b"client" => found.client_id = Some(text.to_owned()),
                _ => return None,
            }
        }
        Some(found)
    };
    list.iter().map(read).collect()
}

/// The canonical text of an object whose members are strings: always one line.
fn checked_who(value: &Value) -> Option<Arc<str>> {
    let members = value.as_object()?;
    if !members.values().all(|value| value.as_str().is_some()) {
        return None;
    }
    let text = String::from_utf8(value.to_bytes()).ok()?;
    (text.len() <= WHO_BYTES_MAX).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(client: &RelayedClient) -> String {
        let mut out = Vec::new();
        client.write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn descriptions_come_back_from_their_text() {
        for description in [
            "{}",
            r#"{"roles":[{"role":"r","client":"hv1"},{"role":"s"}],"read_only":true,"who":{"peer":"ssl:1"}}"#,
        ] {
            let client = RelayedClient::parse(description.as_bytes()).expect("well formed");
            assert_eq!(text(&client), description);
        }
        let spread = b"{\"who\":{\"peer\":\n\"a\"}}";
        let client = RelayedClient::parse(spread).expect("well formed");
        assert_eq!(text(&client), r#"{"who":{"peer":"a"}}"#, "one line");
    }

    #[test]
    fn text_that_is_not_understood_is_refused() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for wrong in [
            "[]".to_owned(),
            r#"{"other":1}"#.to_owned(),
            r#"{"roles":[{"role":"r","other":"x"}]}"#.to_owned(),
            r#"{"roles":[{"role":1}]}"#.to_owned(),
            r#"{"who":{"peer":{}}}"#.to_owned(),
            format!(r#"{{"roles":[{{"role":"{long}"}}]}}"#),
            format!(r#"{{"who":{{"peer":"{long}"}}}}"#),
            format!(r#"{{"roles":[{}]}}"#, ["{}"; ROLES_MAX + 1].join(",")),
        ] {
            assert_eq!(RelayedClient::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
