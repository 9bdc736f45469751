//! Servers to connect to, and shared helpers of the tests.

use std::time::Duration;

use corvid_data::{Arc, Atom, Datum, Schema};
use corvid_driver::blocking::Client;
use corvid_idl::{Class, Column, Idl};
use corvid_json::Value;
use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};

pub(crate) const SCHEMA: &str = r#"{"name":"zoo","version":"1.0.0","tables":{
 "keeper":{"isRoot":true,"indexes":[["name"]],"columns":{
   "name":{"type":"string"},"age":{"type":"integer"},
   "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
   "secret":{"type":"string"}}}}}"#;

/// Longer than anything takes, even on a busy machine.
pub(crate) const TIMEOUT: Option<Duration> = Some(Duration::from_secs(60));

pub(crate) fn server(implementation: Implementation, options: &[&str]) -> Server {
    let setup = Setup {
        databases: vec![serde_json::from_str(SCHEMA).expect("JSON")],
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        ..Setup::default()
    };
    Server::start(implementation, &setup).expect("a server")
}

/// Runs a test with each available server.
pub(crate) fn on_each(play: impl Fn(Implementation)) {
    play(Implementation::Corvid);
    if binary::reference("ovsdb-server").is_some() {
        play(Implementation::Reference);
    } else {
        eprintln!("SKIPPED: the reference server is not installed, so no client was tried on it");
    }
}

/// The server's socket as a remote.
pub(crate) fn remote(server: &Server) -> String {
    format!("unix:{}", server.socket().display())
}

/// Everything is monitored except `secret`, which is fetched on demand.
pub(crate) fn class() -> Class {
    let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).expect("JSON"));
    let mut class = Class::everything(Arc::new(schema.expect("a schema")));
    let secret = class.column("keeper", "secret").expect("a column");
    class.on_demand(secret);
    class
}

pub(crate) fn column(idl: &Idl, name: &str) -> Column {
    idl.class().column("keeper", name).expect("a column")
}

pub(crate) fn string(text: &str) -> Datum {
    Datum::one(Atom::String(text.into()))
}

/// Inserts a keeper; panics if the transaction fails.
pub(crate) fn insert(client: &mut Client, text: &str) {
    let name = column(client, "name");
    client
        .transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string(text))
        })
        .expect("it fits");
}

/// Names of keepers, sorted.
pub(crate) fn names(idl: &Idl) -> Vec<String> {
    let name = column(idl, "name");
    let rows = idl.rows(name.table);
    let mut names: Vec<String> = rows
        .filter_map(|row| Some(idl.read(row, name)?.as_string()?.to_string()))
        .collect();
    names.sort();
    names
}
