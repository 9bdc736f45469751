//! Clustered databases whose rows have numbers, by which a test describes the rows that a member
//! must have.
//!
//! Invariant: it is an error if a reader finds a number twice. Tests with writers that run all the
//! time use [`crate::load`]. Called by the tests of clusters.

use std::collections::BTreeSet;
use std::io;

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

/// The name of the database of [`schema`].
pub const DATABASE: &str = "D";

/// Returns a schema with one table, `T`. Its rows have a number and a text.
#[must_use]
pub fn schema() -> Value {
    schema_of(DATABASE)
}

/// Like [`schema`], for a database with the given name.
#[must_use]
pub fn schema_of(name: &str) -> Value {
    json!({"name": name, "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": {
        "n": {"type": "integer"}, "text": {"type": "string"}}}}})
}

/// Returns the parameters of a transaction that inserts a row.
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
/// The errors of [`Client::call`], and if the reply does not say that the row was inserted.
pub fn add(client: &mut Client, n: impl Into<Value>) -> io::Result<()> {
    transact(client, &insert(n, ""))
}

/// Inserts a row with a text.
///
/// # Errors
///
/// The errors of [`add`].
pub fn add_with(client: &mut Client, n: impl Into<Value>, text: &str) -> io::Result<()> {
    transact(client, &insert(n, text))
}

/// Inserts a row into the database with the given name.
///
/// # Errors
///
/// The errors of [`add`].
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

/// Returns the numbers of all rows.
///
/// # Errors
///
/// The errors of [`Client::call`], and if a number exists twice.
pub fn numbers(client: &mut Client) -> io::Result<BTreeSet<i64>> {
    numbers_of(client, DATABASE)
}

/// Like [`numbers`], for the database with the given name.
///
/// # Errors
///
/// The errors of [`numbers`].
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

/// Returns the numbers of all rows at a member.
///
/// # Errors
///
/// The errors of [`numbers`].
pub fn numbers_at(cluster: &Cluster, member: usize) -> io::Result<BTreeSet<i64>> {
    numbers(&mut cluster.connect(member)?)
}

/// Waits until each of these members has exactly these rows.
///
/// # Panics
///
/// If they do not have them in time. The text contains their logs.
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

/// Starts a cluster of three members. Returns it with the number of its leader.
///
/// # Panics
///
/// If the members cannot be started, or do not elect a leader in time.
#[must_use]
pub fn three() -> (Cluster, usize) {
    started(Cluster::of(3, &schema()).expect("made"))
}

/// Starts a cluster. Returns it with the number of its leader.
///
/// # Panics
///
/// If it cannot be started, or does not elect a leader in time.
#[must_use]
pub fn started(mut cluster: Cluster) -> (Cluster, usize) {
    cluster.start().expect("started");
    let all: Vec<usize> = (0..cluster.members().len()).collect();
    let (leader, _) = cluster.leader_among(&all).expect("a leader");
    (cluster, leader)
}

/// Returns the numbers of the other members of a cluster of three.
#[must_use]
pub fn others(member: usize) -> Vec<usize> {
    (0..3).filter(|other| *other != member).collect()
}
