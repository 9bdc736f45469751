//! Files of members: a server's first file, and the content of its file when a process starts, read
//! with the server's own code.

use corvid_data::{HashSeed, WireError};
use corvid_json::Value;
use corvid_log::cluster::{
    BodyLocation, Cid, Data, Eid, Header, Index, Membership, Recovered, Servers, Sid, Snapshot,
    StoredEntry, Term, recover,
};
use corvid_log::{DiskFile as _, Magic, Source};
use corvid_service::member::Contents;
use corvid_service::storage::loading;
use corvid_service::storage::member_loading::{LoadedMember, load_member};

use crate::server::machine::SeededUuids;
use crate::server::opening::FileSource;
use crate::server::workload;
use crate::world::dice::Dice;
use crate::world::disk::Handle;

/// The name of the database.
pub(super) const NAME: &str = "A";

/// The id of the last entry of the first snapshot.
const FIRST_EID: Eid = Eid(corvid_data::Uuid([1; 16]));

/// A server's identity.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) sid: Sid,
    pub(super) address: String,
    pub(super) cid: Option<Cid>,
}

/// Returns these servers as a member list.
pub(super) fn servers(identities: &[Identity]) -> Servers {
    let listed: Vec<String> = identities
        .iter()
        .map(|identity| format!("\"{}\":\"{}\"", identity.sid.0, identity.address))
        .collect();
    let text = format!("{{{}}}", listed.join(","));
    Servers::decode(text.as_bytes()).expect("it has ids and addresses")
}

/// Returns the file of a member of a new cluster, as `ovsdb-tool create-cluster` creates it.
pub(super) fn first_file(identity: &Identity, servers: &Servers, schema: &Value) -> Vec<u8> {
    let rows = workload::FIRST_ROWS;
    framed(&Header {
        server_id: identity.sid,
        name: NAME.to_owned(),
        local_address: identity.address.clone(),
        cluster_id: identity.cid,
        membership: Membership::Joined {
            servers: servers.clone(),
            snapshot: Some(Snapshot {
                index: Index(1),
                term: Term(1),
                eid: FIRST_EID,
                data: Data::of(Some(&schema.to_bytes()), Some(rows.as_bytes())),
                election_timer_ms: None,
            }),
        },
    })
}

/// Returns the file of a server that is to join, as `ovsdb-tool join-cluster` creates it.
pub(super) fn joining_file(identity: &Identity, remote_addresses: Vec<String>) -> Vec<u8> {
    framed(&Header {
        server_id: identity.sid,
        name: NAME.to_owned(),
        local_address: identity.address.clone(),
        cluster_id: identity.cid,
        membership: Membership::Joining { remote_addresses },
    })
}

fn framed(header: &Header) -> Vec<u8> {
    let mut file = Vec::new();
    let mut record = corvid_log::Record::begin(&mut file, Magic::Clustered);
    header.encode(record.body());
    record.finish();
    file
}

/// Reads a member's file.
///
/// # Errors
/// A server would not open the file; the text says why.
pub(super) fn read(file: &Handle) -> Result<Recovered, String> {
    let length = file.length().map_err(|fault| fault.text)?;
    let recovered = recover(FileSource { file, offset: 0 }, length);
    recovered.map_err(|error| format!("the file does not open: {error:?}"))
}

/// Loads the database from a member's file, after the committed entries. Returns `None` while the
/// server joins.
///
/// # Errors
/// The database cannot be built from the file.
pub(super) fn load(
    file: &Handle,
    recovered: &Recovered,
    seed: u64,
) -> Result<Option<Contents>, String> {
    let contents = Contents::of_file(recovered, |body, committed| {
        load_body(file, body, committed, seed)
    });
    contents.map_err(|error| format!("the database does not load: {error}"))
}

/// Loads the database from a snapshot and the committed entries that follow it.
///
/// # Errors
/// The database cannot be built from the snapshot.
pub(super) fn load_body(
    file: &Handle,
    body: BodyLocation,
    committed: &[StoredEntry],
    seed: u64,
) -> Result<LoadedMember, WireError> {
    let open = || {
        Ok(Body {
            source: FileSource {
                file,
                offset: body.offset,
            },
            end: body.end(),
        })
    };
    let mut uuids = SeededUuids(Dice::new(seed));
    let mut versions = SeededUuids(Dice::new(seed ^ 1));
    let loaded = load_member(
        body,
        committed,
        open,
        HashSeed::new(seed),
        &mut uuids,
        |feed, database, uuids| loading::run(feed, database, uuids, &mut versions),
    );
    loaded.map_err(WireError::from)
}

/// The bytes of a snapshot's body.
struct Body<'f> {
    source: FileSource<'f>,
    end: u64,
}

impl Source for Body<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let left = usize::try_from(self.end - self.source.offset).unwrap_or(usize::MAX);
        let bytes = left.min(room.len());
        self.source.read(&mut room[..bytes])
    }
}
