//! The members of a cluster as an entry or a header lists them: always the complete list.

use std::collections::BTreeMap;

use corvid_data::{Uuid, WireError};
use corvid_json::{Object, ObjectWriter, Value, write};

use super::{Sid, address};

/// Server ids and addresses, sorted by id; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers(BTreeMap<Sid, String>);

impl Servers {
    /// The list of a one-member cluster.
    #[must_use]
    pub fn one(sid: Sid, address: &str) -> Servers {
        Servers(BTreeMap::from([(sid, address.to_owned())]))
    }

    /// Parses the JSON text of an object.
    ///
    /// # Errors
    /// The list is empty, or holds a malformed id or address.
    pub fn decode(raw: &[u8]) -> Result<Servers, WireError> {
        let json = Value::parse(raw).unwrap_or(Value::Null);
        let empty = Object::new();
        let members = json.as_object().unwrap_or(&empty);
        if members.is_empty() {
            return Err(WireError::syntax(raw, "must have at least one server"));
        }
        let mut servers = BTreeMap::new();
        for (id, address) in members {
            let sid = Uuid::parse(id).ok_or_else(|| {
                WireError::syntax(
                    raw,
                    format!("{} is not a UUID", String::from_utf8_lossy(id)),
                )
            })?;
            servers.insert(Sid(sid), checked_address(address)?);
        }
        Ok(Servers(servers))
    }

    /// Appends the JSON object.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        for (sid, address) in &self.0 {
            write::string(object.member(sid.0.to_text()), address.as_bytes());
        }
        object.end();
    }

    /// Whether a server is listed.
    #[must_use]
    pub fn contains(&self, sid: Sid) -> bool {
        self.0.contains_key(&sid)
    }

    /// The list with one more server.
    #[must_use]
    pub fn with(&self, sid: Sid, address: &str) -> Servers {
        let mut servers = self.0.clone();
        servers.insert(sid, address.to_owned());
        Servers(servers)
    }

    /// The list without a server; `None` if it was the only one.
    #[must_use]
    pub fn without(&self, sid: Sid) -> Option<Servers> {
        let mut servers = self.0.clone();
        servers.remove(&sid);
        (!servers.is_empty()).then_some(Servers(servers))
    }

    /// Every server with its address, by id.
    pub fn iter(&self) -> impl Iterator<Item = (Sid, &str)> {
        self.0.iter().map(|(sid, address)| (*sid, address.as_str()))
    }
}

/// Reads and checks an address in JSON.
///
/// # Errors
/// It is not a string, or not an address.
pub(super) fn checked_address(json: &Value) -> Result<String, WireError> {
    let Some(text) = json.as_str() else {
        return Err(WireError::syntax_value(
            json,
            "server address is not string",
        ));
    };
    address::check(text)?;
    Ok(text.to_owned())
}
