//! `create-cluster` and `join-cluster`: create the files of new members.

use std::path::Path;

use corvid_data::uuid::UuidSource;
use corvid_data::{Schema, Str};
use corvid_log::cluster::{
    Cid, Data, Eid, Entry, Header, Index, Kind, Membership, Record, Servers, Sid, Snapshot, Term,
};
use corvid_log::{Magic, Stamp, snapshot};
use corvid_net::{clock, os_name};
use corvid_shell::progress::Spinner;
use corvid_shell::vlog::{self, Module};

use super::{Invocation, Outcome};
use crate::failure::{Failure, shown};
use crate::schema_file;
use crate::tool::answer::Answer;
use crate::tool::database::DatabaseFile;
use crate::tool::{address, new_file};
use crate::uuids::RandomUuids;

/// Creates the file of a cluster's first member. Its contents are those of a schema file or of a
/// standalone database.
pub(super) fn create_cluster(invocation: &Invocation<'_>) -> Outcome {
    let [path, contents, local_address] = invocation.args else {
        return Err(Failure::new("DB CONTENTS LOCAL expected"));
    };
    let mut uuids = RandomUuids::new()?;
    let (name, data) = read_contents(&os_name::path(contents), &mut uuids)?;
    address::check(local_address)?;
    let server_id = Sid(uuids.fresh());
    let header = Header {
        server_id,
        name,
        local_address: local_address.clone(),
        cluster_id: Cid::new(uuids.fresh()),
        membership: Membership::Joined {
            servers: Servers::one(server_id, local_address),
            snapshot: Some(Snapshot {
                index: FIRST_INDEX,
                term: FIRST_TERM,
                eid: Eid(uuids.fresh()),
                data,
                election_timer_ms: None,
            }),
        },
    };
    let mut records = frame(|body| header.encode(body));
    if let Some(timer) = invocation.options.election_timer_ms {
        let entry = Record::new(Kind::Entry(Entry {
            term: FIRST_TERM,
            index: FIRST_INDEX.next(),
            servers: None,
            election_timer_ms: Some(timer),
            payload: None,
        }));
        records.extend(frame(|body| entry.encode(body)));
    }
    new_file::create(&os_name::path(path), &records)?;
    Ok(Answer::Yes)
}

/// Creates the file of a server that will later ask the members of a cluster for admission. Sends
/// nothing itself.
pub(super) fn join_cluster(invocation: &Invocation<'_>) -> Outcome {
    let [path, name, local_address, remote_addresses @ ..] = invocation.args else {
        return Err(Failure::new("DB NAME LOCAL REMOTE... expected"));
    };
    if !corvid_data::members::is_id(name.as_bytes()) {
        return Err(Failure::new(format!(
            "{name}: not a valid schema name (use \"schema-name\" command to find the correct name)"
        )));
    }
    address::check(local_address)?;
    let mut remotes: Vec<String> = Vec::with_capacity(remote_addresses.len());
    for remote in remote_addresses {
        address::check(remote)?;
        if remote == local_address {
            return Err(Failure::new(
                "ovsdb error: remote addresses cannot be the same as the local address",
            ));
        }
        if !remotes.contains(remote) {
            remotes.push(remote.clone());
        }
    }
    let header = Header {
        server_id: Sid(RandomUuids::new()?.fresh()),
        name: name.clone(),
        local_address: local_address.clone(),
        cluster_id: invocation.options.cluster_id.and_then(Cid::new),
        membership: Membership::Joining {
            remote_addresses: remotes,
        },
    };
    new_file::create(&os_name::path(path), &frame(|body| header.encode(body)))?;
    Ok(Answer::Yes)
}

/// The index at which the log of a new cluster begins. The snapshot counts as its first entry.
const FIRST_INDEX: Index = Index(1);
const FIRST_TERM: Term = Term(1);

/// Reads name and snapshot from a schema file, or from a database if the file is not a schema. Logs
/// a warning about ephemeral columns, which clusters do not support.
fn read_contents(path: &Path, uuids: &mut RandomUuids) -> Result<(String, Data), Failure> {
    let Ok(mut schema) = schema_file::read(path) else {
        let (database, _) = DatabaseFile::open(path)?.load()?.finish(uuids)?;
        let mut schema = Schema::clone(database.schema());
        warn_of_ephemeral(path, &schema.name.clone(), &schema.make_clustered());
        let _progress = Spinner::new("Copying rows");
        let mut rows = Vec::new();
        let comment = format!("created from {}", shown(path));
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment: &comment,
            is_diff: true,
            with_defaults: false,
        };
        // Ephemeral columns have default values here, which are not written. Both schemas have the
        // same column ids.
        snapshot::append_rows(&mut rows, &schema, &stamp, |table| database.rows(table));
        return Ok(contents(&schema, &rows));
    };
    warn_of_ephemeral(path, &schema.name.clone(), &schema.make_clustered());
    Ok(contents(&schema, b"{}"))
}

fn contents(schema: &Schema, rows: &[u8]) -> (String, Data) {
    let json = schema.to_json().to_bytes();
    (
        schema.name.as_str().to_owned(),
        Data::of(Some(&json), Some(rows)),
    )
}

fn warn_of_ephemeral(path: &Path, database: &str, changed: &[(Str, Str)]) {
    if let Some((table, column)) = changed.first() {
        vlog::warn(
            Module::Ovsdb,
            format_args!(
                "{}: changed {} columns in '{database}' database from ephemeral to persistent, including '{column}' column in '{table}' table, because clusters do not support ephemeral columns",
                path.display(),
                changed.len(),
            ),
        );
    }
}

fn frame(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut record = corvid_log::Record::begin(&mut out, Magic::Clustered);
    encode(record.body());
    record.finish();
    out
}
