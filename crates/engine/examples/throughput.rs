//! Measures how many transactions per second one engine executes: single-row inserts, updates,
//! mutates, selects and waits through `execute()`, in memory, on the OVN Southbound shape of a
//! port.
//!
//! `cargo run --release -p corvid-engine --example throughput [ROWS [PHASE]]`: all phases, or for a
//! profile the inserts and the phases whose names begin with PHASE.

use std::fmt::Write as _;
use std::time::Instant;

use corvid_data::{Arc, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;
use corvid_json::splitmix::SplitMix64;

const SCHEMA: &str = r#"{"name":"Ports","tables":{
    "Datapath":{"isRoot":true,"columns":{
        "tunnel_key":{"type":"integer"},
        "ports":{"type":{"key":{"type":"uuid","refTable":"Port","refType":"weak"},"min":0,"max":"unlimited"}}},
        "indexes":[["tunnel_key"]]},
    "Port":{"isRoot":true,"columns":{
        "logical_port":{"type":"string"},
        "type":{"type":"string"},
        "datapath":{"type":{"key":{"type":"uuid","refTable":"Datapath"}}},
        "tunnel_key":{"type":{"key":{"type":"integer","minInteger":1,"maxInteger":32767}}},
        "mac":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "up":{"type":{"key":"boolean","min":0,"max":1}},
        "tag":{"type":{"key":"integer","min":0,"max":1}}},
        "indexes":[["logical_port"],["datapath","tunnel_key"]]}}}"#;

struct Uuids(SplitMix64);

impl UuidSource for Uuids {
    fn fresh(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&self.0.draw().to_le_bytes());
        }
        Uuid::from_random(bytes)
    }
}

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

fn execute(database: &mut Database, uuids: &mut Uuids, params: &str) -> Vec<u8> {
    let outcome = database.execute(
        params.as_bytes(),
        &mut Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: true,
            uuids,
            locks: &NoLocks,
        },
    );
    match outcome {
        Outcome::Done { result, .. } => {
            assert!(
                !result.windows(8).any(|bytes| bytes == b"\"error\":"),
                "{}",
                String::from_utf8_lossy(&result)
            );
            result
        }
        Outcome::Blocked { .. } => panic!("nothing here waits"),
    }
}

fn measure(what: &str, requests: &[String], database: &mut Database, uuids: &mut Uuids) {
    let phase = std::env::args().nth(2).unwrap_or_default();
    if what != "insert" && !what.starts_with(&phase) {
        return;
    }
    let start = Instant::now();
    for request in requests {
        execute(database, uuids, request);
    }
    let nanoseconds = start.elapsed().as_nanos() as f64 / requests.len() as f64;
    println!(
        "{what:<28} {:>8.0} ns {:>9.0} /s {:>6.0} B",
        nanoseconds,
        1e9 / nanoseconds,
        requests[0].len() as f64
    );
}

fn main() {
    let rows: usize = match std::env::args().nth(1) {
        Some(rows) => rows.parse().expect("a number of rows"),
        None => 100_000,
    };
    let json = Value::parse(SCHEMA.as_bytes()).expect("JSON");
    let schema = Arc::new(Schema::from_json(&json).expect("a schema"));
    let mut database = Database::new(Arc::clone(&schema), HashSeed::FIXED);
    let mut uuids = Uuids(SplitMix64::new(7));
    let datapath = execute(
        &mut database,
        &mut uuids,
        r#"["Ports",{"op":"insert","table":"Datapath","row":{"tunnel_key":1}}]"#,
    );
    let datapath = String::from_utf8(datapath).expect("UTF-8")[18..54].to_owned();

    let inserts: Vec<String> = (0..rows)
        .map(|n| {
            format!(
                r#"["Ports",{{"op":"insert","table":"Port","uuid":"{:08x}-0000-4000-8000-000000000000","row":{{"logical_port":"lsp-{n}","datapath":["uuid","{datapath}"],"tunnel_key":{},"mac":["set",["0a:00:00:00:{:02x}:{:02x} 10.0.0.5","unknown"]],"options":["map",[["requested-chassis","hv-{}"],["mcast_flood","false"]]],"external_ids":["map",[["neutron:cidrs","10.0.0.5/24"],["neutron:device_id","d-{n}"],["neutron:host_id","hv-{}"]]],"up":false}}}}]"#,
                n * 2_654_435_761 % 4_294_967_296, n % 32_767 + 1, n / 256 % 256, n % 256, n % 100, n % 100,
            )
        })
        .take(rows.min(32_767))
        .collect();
    let uuid = |n: usize| {
        let n = n % inserts.len();
        format!(
            "{:08x}-0000-4000-8000-000000000000",
            n * 2_654_435_761 % 4_294_967_296
        )
    };
    measure("insert", &inserts, &mut database, &mut uuids);
    let by = |operation: &dyn Fn(usize) -> String| -> Vec<String> {
        (0..rows)
            .map(|n| format!("[\"Ports\",{}]", operation(n * 7919)))
            .collect()
    };
    let updates = by(&|n| {
        format!(
            r#"{{"op":"update","table":"Port","where":[["_uuid","==",["uuid","{}"]]],"row":{{"up":{},"tag":{n}}}}}"#,
            uuid(n),
            n % 2 == 0
        )
    });
    measure("update by _uuid", &updates, &mut database, &mut uuids);
    let updates = by(&|n| {
        format!(
            r#"{{"op":"update","table":"Port","where":[["logical_port","==","lsp-{}"]],"row":{{"tag":{n}}}}}"#,
            n % inserts.len()
        )
    });
    measure("update by index", &updates, &mut database, &mut uuids);
    let mutates = by(&|n| {
        format!(
            r#"{{"op":"mutate","table":"Port","where":[["_uuid","==",["uuid","{}"]]],"mutations":[["external_ids","delete","k"],["external_ids","insert",["map",[["k","{n}"]]]]]}}"#,
            uuid(n)
        )
    });
    measure("mutate a map", &mutates, &mut database, &mut uuids);
    let mutates = by(&|n| {
        format!(
            r#"{{"op":"mutate","table":"Datapath","where":[["tunnel_key","==",1]],"mutations":[["ports","insert",["uuid","{}"]]]}}"#,
            uuid(n)
        )
    });
    measure(
        "mutate a large weak set",
        &mutates,
        &mut database,
        &mut uuids,
    );
    let selects = by(&|n| {
        format!(
            r#"{{"op":"select","table":"Port","where":[["_uuid","==",["uuid","{}"]]]}}"#,
            uuid(n)
        )
    });
    measure("select by _uuid", &selects, &mut database, &mut uuids);
    let waits = by(&|n| {
        format!(
            r#"{{"op":"wait","table":"Port","where":[["_uuid","==",["uuid","{}"]]],"columns":["up","logical_port"],"until":"!=","rows":[{{"logical_port":"x"}}],"timeout":0}},{{"op":"update","table":"Port","where":[["_uuid","==",["uuid","{}"]]],"row":{{"tag":{}}}}}"#,
            uuid(n),
            uuid(n),
            n + 1
        )
    });
    measure("wait and update", &waits, &mut database, &mut uuids);
    let mut big = String::from("[\"Ports\"");
    for n in 0..inserts.len() {
        write!(big, r#",{{"op":"update","table":"Port","where":[["_uuid","==",["uuid","{}"]]],"row":{{"tag":{}}}}}"#, uuid(n), n + 5).expect("a string takes all");
    }
    big.push(']');
    let start = Instant::now();
    execute(&mut database, &mut uuids, &big);
    let elapsed = start.elapsed();
    println!(
        "one transaction of {} updates {:>6.0} ns each",
        inserts.len(),
        elapsed.as_nanos() as f64 / inserts.len() as f64
    );
    let deletes = by(&|n| {
        format!(
            r#"{{"op":"delete","table":"Port","where":[["_uuid","==",["uuid","{}"]]]}}"#,
            uuid(n)
        )
    });
    measure(
        "delete by _uuid",
        &deletes[..inserts.len()],
        &mut database,
        &mut uuids,
    );
    let start = Instant::now();
    database.check_invariants().expect("audit");
    println!("audit {:?}", start.elapsed());
}
