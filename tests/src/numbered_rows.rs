//! Clustered databases whose rows have numbers, by which a test says what a member must hold.
//!
//! Invariant: a number that a reader finds twice is an error. Tests with writers that run all the time have [`crate::load`]. Called by the tests
//! of clusters.

use std::collections::BTreeSet;
use std::io;

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

/// The database of [`schema`].
pub const DATABASE: &str = "D";

/// A schema with one table, `T`, whose rows have a number and a text.
#[must_use]
pub fn schema() -> Value {
    schema_of(DATABASE)
}

/// The same for a database of this name.
#[must_use]
pub fn schema_of(name: &str) -> Value {
    json!({"name": name, "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": {
        "n": {"type": "integer"}, "text": {"type": "string"}}}}})
}

/// The parameters of a transaction that inserts a row.
pub fn insert(n: impl Into<Value>, text: &str) -> Value {
    insert_into(DATABASE, n, text)
}

fn insert_into(database: &str, n: impl Into<Value>, text: &str) -> Value {
    let n: Value = n.into();
    json!([database, {"op": "insert", "table": "T", "row": {"n": n, "text": text}}])
}

/// Inserts a row.
///
/// # Errors
///
/// As [`Client::call`], and a reply that does not say that it is there.
pub fn add(client: &mut Client, n: impl Into<Value>) -> io::Result<()> {
    transact(client, &insert(n, ""))
}

/// The same, with a text.
///
/// # Errors
///
/// As [`add`].
pub fn add_with(client: &mut Client, n: impl Into<Value>, text: &str) -> io::Result<()> {
    transact(client, &insert(n, text))
}

/// The same in a database of another name.
///
/// # Errors
///
/// As [`add`].
pub fn add_to(client: &mut Client, database: &str, n: impl Into<Value>) -> io::Result<()> {
    transact(client, &insert_into(database, n, ""))
}

fn transact(client: &mut Client, params: &Value) -> io::Result<()> {
    let reply = client.call("transact", params)?;
    match reply["result"][0]["uuid"].is_null() {
        false => Ok(()),
        true => Err(io::Error::other(reply.to_string())),
    }
}

/// The numbers of all rows.
///
/// # Errors
///
/// As [`Client::call`], a number that is there twice.
pub fn numbers(client: &mut Client) -> io::Result<BTreeSet<i64>> {
    numbers_of(client, DATABASE)
}

/// The same of a database of another name.
///
/// # Errors
///
/// As [`numbers`].
pub fn numbers_of(client: &mut Client, database: &str) -> io::Result<BTreeSet<i64>> {
    let select = json!({"op": "select", "table": "T", "where": [], "columns": ["_uuid", "n"]});
    let reply = client.call("transact", &json!([database, select]))?;
    let rows = reply["result"][0]["rows"].as_array().cloned();
    let rows = rows.ok_or_else(|| io::Error::other(reply.to_string()))?;
    let all: Vec<i64> = rows.iter().filter_map(|row| row["n"].as_i64()).collect();
    let set: BTreeSet<i64> = all.iter().copied().collect();
    match set.len() == all.len() {
        true => Ok(set),
        false => Err(io::Error::other(format!("twice: {all:?}"))),
    }
}

/// The numbers of all rows at a member.
///
/// # Errors
///
/// As [`numbers`].
pub fn numbers_at(cluster: &Cluster, member: usize) -> io::Result<BTreeSet<i64>> {
    numbers(&mut cluster.connect(member)?)
}

/// Waits until each of these members holds exactly these rows.
///
/// # Panics
///
/// They do not in time; then the text holds their logs.
pub fn await_rows(cluster: &Cluster, members: &[usize], expected: &BTreeSet<i64>) {
    for &member in members {
        let holds = || numbers_at(cluster, member).is_ok_and(|rows| rows == *expected);
        if let Err(problem) = cluster.wait_until("a member has all rows", holds) {
            panic!(
                "{expected:?} at {member}, which has {:?}: {problem}",
                numbers_at(cluster, member)
            );
        }
    }
}

/// Three members that run, and their leader.
///
/// # Panics
///
/// They cannot be started, or have no leader in time.
#[must_use]
pub fn three() -> (Cluster, usize) {
    started(Cluster::of(3, &schema()).expect("made"))
}

/// A cluster that runs now, and its leader.
///
/// # Panics
///
/// It cannot be started, or has no leader in time.
#[must_use]
pub fn started(mut cluster: Cluster) -> (Cluster, usize) {
    cluster.start().expect("started");
    let all: Vec<usize> = (0..cluster.members().len()).collect();
    let (leader, _) = cluster.leader_among(&all).expect("a leader");
    (cluster, leader)
}

/// The members of a cluster of three but this one.
#[must_use]
pub fn others(member: usize) -> Vec<usize> {
    (0..3).filter(|other| *other != member).collect()
}
