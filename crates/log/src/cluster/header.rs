//! The first record of a member's file: the member's identity and the beginning of its log.

use corvid_data::{Kinds, Members, Subject, Uuid, WireError};
use corvid_json::{ArrayWriter, ObjectWriter, Value, write};

use super::fields::{
    Fields, take_number, take_required_number, take_required_text, take_required_uuid, take_uuid,
    write_number, write_text, write_uuid,
};
use super::servers::checked_address;
use super::{Cid, Data, Eid, Index, Servers, Sid, Term};

/// A member's identity and the beginning of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The member's id.
    pub server_id: Sid,
    /// The database's name. Not validated.
    pub name: String,
    /// The address at which the member listens for its peers. Not validated.
    pub local_address: String,
    /// The cluster's id, if known.
    pub cluster_id: Option<Cid>,
    /// Whether the server has joined, and the rest of the header.
    pub membership: Membership,
}

/// The part of a header that depends on whether the server has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// The file was created to join a cluster and the server has not joined yet. The file holds no
    /// log.
    Joining {
        /// Servers to ask for admission: at least one, not counting the member's own address.
        remote_addresses: Vec<String>,
    },
    /// The file of a member.
    Joined {
        /// The members of the cluster as of the snapshot. The member itself may be missing.
        servers: Servers,
        /// The state before the entries of the file, if any.
        snapshot: Option<Snapshot>,
    },
}

/// The state of the database up to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry that the snapshot includes.
    pub index: Index,
    /// That entry's term.
    pub term: Term,
    /// The id of the last entry with data that the snapshot includes.
    pub eid: Eid,
    /// Schema and all rows.
    pub data: Data,
    /// The cluster's election timer, ms, if it is not the default.
    pub election_timer_ms: Option<u64>,
}

impl Header {
    /// Decodes the body of the record, which must be a valid JSON object.
    ///
    /// # Errors
    /// The first problem, in the reference's words.
    pub fn decode(body: &[u8]) -> Result<Header, WireError> {
        let mut members = Members::parse(Subject::RaftHeader, body)?;
        let server_id = Sid(take_required_uuid(&mut members, "server_id")?);
        let name = take_required_text(&mut members, "name")?;
        let local_address = take_required_text(&mut members, "local_address")?;
        let remotes = members.optional("remote_addresses", Kinds::ARRAY)?;
        let (cluster_id, membership) = match remotes {
            Some(raw) => {
                let remote_addresses = remote_addresses(&members, raw, &local_address)?;
                (
                    take_uuid(&mut members, "cluster_id")?,
                    Membership::Joining { remote_addresses },
                )
            }
            None => {
                let raw = members.required("prev_servers", Kinds::OBJECT)?;
                let servers = Servers::decode(raw)?;
                let cluster_id = take_required_uuid(&mut members, "cluster_id")?;
                let snapshot = take_snapshot(&mut members)?;
                (Some(cluster_id), Membership::Joined { servers, snapshot })
            }
        };
        members.finish()?;
        Ok(Header {
            server_id,
            name,
            local_address,
            cluster_id: cluster_id.and_then(Cid::new),
            membership,
        })
    }

    /// Appends the body of the record, without its LF.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        write_uuid(&mut object, "server_id", self.server_id.0);
        write_text(&mut object, "name", &self.name);
        write_text(&mut object, "local_address", &self.local_address);
        match &self.membership {
            Membership::Joining { remote_addresses } => {
                if let Some(cluster_id) = self.cluster_id {
                    write_uuid(&mut object, "cluster_id", cluster_id.uuid());
                }
                let mut array = ArrayWriter::new(object.member("remote_addresses"));
                for address in remote_addresses {
                    write::string(array.element(), address.as_bytes());
                }
                array.end();
            }
            Membership::Joined { servers, snapshot } => {
                let cluster_id = self.cluster_id.map_or(Uuid::ZERO, Cid::uuid);
                write_uuid(&mut object, "cluster_id", cluster_id);
                servers.encode(object.member("prev_servers"));
                if let Some(snapshot) = snapshot {
                    snapshot.encode(&mut object);
                }
            }
        }
        object.end();
    }

    /// The snapshot, if the file has one.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        match &self.membership {
            Membership::Joining { .. } => None,
            Membership::Joined { snapshot, .. } => snapshot.as_ref(),
        }
    }
}

impl Snapshot {
    fn encode(&self, object: &mut ObjectWriter<'_>) {
        write_number(object, "prev_index", self.index.0);
        write_number(object, "prev_term", self.term.0);
        write_uuid(object, "prev_eid", self.eid.0);
        if let Some(timer) = self.election_timer_ms {
            write_number(object, "prev_election_timer", timer);
        }
        object
            .member("prev_data")
            .extend_from_slice(self.data.json());
    }
}

/// Reads the snapshot. Without an index there is none, and its other members must be absent.
fn take_snapshot(members: &mut Fields<'_>) -> Result<Option<Snapshot>, WireError> {
    let Some(index) = take_number(members, "prev_index")? else {
        return Ok(None);
    };
    let data = members.required("prev_data", Kinds::OBJECT.or(Kinds::ARRAY))?;
    let eid = Eid(take_required_uuid(members, "prev_eid")?);
    let election_timer_ms = take_number(members, "prev_election_timer")?;
    let term = Term(take_required_number(members, "prev_term")?);
    Ok(Some(Snapshot {
        index: Index(index),
        term,
        eid,
        data: Data::from_valid(data),
        election_timer_ms,
    }))
}

fn remote_addresses(
    members: &Fields<'_>,
    raw: &[u8],
    local_address: &str,
) -> Result<Vec<String>, WireError> {
    let json = Value::parse(raw).unwrap_or(Value::Null);
    let listed = json.as_array().unwrap_or_default();
    if listed.is_empty() {
        let problem = "at least one remote address is required";
        return Err(WireError::syntax(raw, problem));
    }
    let mut addresses: Vec<String> = Vec::with_capacity(listed.len());
    for address in listed {
        let address = checked_address(address)?;
        if address != local_address && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        let problem = "at least one remote address (other than the local address) is required";
        return Err(members.error(problem));
    }
    Ok(addresses)
}
